"""Whatever a browser sends or a file holds, the studio answers with a page: never a bare error."""

import contextlib
import io
import os
import re
import shlex
import stat
from html import unescape
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from test_studio import ANSWERS, HOST, ORIGIN, PORT, enter

from commandline import discreet
from discreet.studio.forms import MOST_FILES
from discreet.studio.kept_files import Home, Recent
from discreet.studio.safety import Keys
from discreet.studio.server import build_app
from discreet.studio.session import StudioSession
from spreadsheet_files import write_xlsx
from studio_tasks import InPlace

ENDLESS = "9" * 5000


@pytest.fixture
def session(tmp_path):
    (tmp_path / "private").mkdir()
    home, recent = Home(tmp_path / "home"), Recent(tmp_path / "state" / "studio.json")
    made = StudioSession(
        tmp_path / "private", recent, home, Recent(tmp_path / "state" / "ledgers.json")
    )
    made.__dict__["jobs"] = InPlace(made.folder)
    return made


@pytest.fixture
def browser(session):
    return enter(session)


def open_file(browser, path):
    opened = browser.post("/open", data={"path": str(path)}, headers=ORIGIN)
    assert opened.status_code == 303, opened.text
    return browser.get(opened.headers["location"])


def calibrate(browser, **settings):
    begun = browser.post("/calibrate/work-1", data=settings, headers=ORIGIN)
    assert begun.status_code == 303, begun.text
    assert browser.get(begun.headers["location"]).status_code == 200
    return begun.headers["location"]


# -- files -------------------------------------------------------------------------------------

ROWS = "".join(f"p{p},q{i},{(p * 7 + i * 3) % 5 % 2}\n" for p in range(60_000) for i in range(5))
LONG = f"person,item,response\n{ROWS}"


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("p9,q1\n", "line 300002"),
        ("p9,q1,1,1\n", "line 300002"),
        ('p9,q1,"1\n', "line 300002"),
        ("p9,q1,yes\n", "line 300002"),
    ],
)
def test_a_file_that_is_damaged_beyond_its_first_rows_is_shown_with_the_damage(
    browser, tmp_path, end, words
):
    path = tmp_path / "late.csv"
    path.write_text(LONG + end)
    page = open_file(browser, path)
    assert page.status_code == 200
    assert "Calibrate these answers" not in page.text
    assert words in unescape(page.text)
    assert '<div class="column person"><b title="person">person</b>' in page.text


def test_a_folder_with_one_damaged_file_is_shown_with_the_damage(browser, tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.csv").write_text("person,item,response\nann,q1,1\nann,q2,0\nbob,q1,0\n")
    (folder / "b.csv").write_text("person,item,response\ncat,q1\n")
    page = open_file(browser, folder)
    assert page.status_code == 200
    assert "b.csv, line 2" in unescape(page.text)


def test_a_column_without_a_name_goes_by_its_letter(browser, tmp_path):
    rows = [["Klasse 7a", "Datum:", "2025-10-14", None], ["x", 1, 0, 1], ["y", 0, 1, 1]]
    page = open_file(browser, write_xlsx(tmp_path / "class.xlsx", {"7a": rows})).text
    assert "Column(" not in page
    assert ">column D</b>" in page


def test_a_file_whose_name_is_not_utf_8_is_read_and_named(session, browser, tmp_path):
    path = tmp_path / os.fsdecode(b"caf\xe9.csv")
    try:
        path.write_text(ANSWERS)
    except OSError:
        pytest.skip("this file system takes no such name")
    work = session.open(path)  # as `discreet studio FILE` does
    page = browser.get(f"/data/{work.name}")
    assert page.status_code == 200
    assert "3 persons, 2 items" in page.text
    assert "caf\\udce9.csv" in page.text


# -- numbers and paths in forms and addresses --------------------------------------------------


@pytest.mark.parametrize("spread", ["0.001", "3", "4", "5"])
@pytest.mark.parametrize("field", ["ability_spread", "difficulty_spread"])
def test_every_spread_that_is_allowed_gets_a_forecast(browser, field, spread):
    study = {"persons": "1000", "items": "20", "epsilon": "1", "delta": "1e-6", field: spread}
    page = browser.get("/plan", params=study)
    assert page.status_code == 200
    assert "nan" not in page.text.lower().split()
    assert "Typical error of a released difficulty" in page.text


@pytest.mark.parametrize("number", [ENDLESS, "-1", "2", "x", "²", "1.5", "%00"])
def test_an_item_that_there_is_not_is_not_found(browser, tmp_path, number):
    path = tmp_path / "answers.csv"
    path.write_text("q1,q2\n" + "1,0\n0,1\n1,1\n0,0\n" * 9)
    open_file(browser, path)
    address = calibrate(browser)
    assert browser.get(f"{address}/items/1").status_code == 200
    assert browser.get(f"{address}/items/{number}").status_code == 404


@pytest.mark.parametrize("number", [ENDLESS, "²", "-1", "2"])
def test_an_answer_that_there_is_not_is_refused(browser, tmp_path, number):
    path = tmp_path / "answers.csv"
    path.write_text("person,q1,q2\nann,1,0\nbob,9,1\ncat,1,1\n")
    page = open_file(browser, path).text
    look = re.search(r'name="look" value="([^"]+)"', page)[1]
    said = {"look": look, "answer:0": number}
    assert browser.post("/data/work-1", data=said, headers=ORIGIN).status_code == 400


@pytest.mark.parametrize("name", ["persons", "items", "epsilon", "ability_spread", "top"])
@pytest.mark.parametrize("value", [ENDLESS, "-" + ENDLESS, "1e999", "nan", "1e-320", "²"])
def test_an_endless_number_in_a_plan_is_explained(browser, name, value):
    study = {"persons": "1000", "items": "20", "epsilon": "1", "delta": "1e-6", name: value}
    page = browser.get("/plan", params=study)
    assert page.status_code in (200, 400)
    assert len(page.text) < 100_000


@pytest.mark.parametrize(
    "path", ["~nobody-has-this-name/a.db", "/a\x00b", "LOOP", "/" + "a/" * 3000, "/dev/null"]
)
@pytest.mark.parametrize("address", ["/open", "/ledgers/open", "/releases/unseen"])
def test_a_path_that_is_none_is_refused_in_words(browser, tmp_path, address, path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    sent = browser.post(address, data={"path": path.replace("LOOP", str(loop))}, headers=ORIGIN)
    assert sent.status_code == 400


def test_a_fault_of_the_program_is_a_page_too(session, monkeypatch):
    def fail(*_):
        raise RuntimeError("a surprise")

    keys = Keys(PORT)
    app = build_app(session, keys)
    browser = TestClient(app, base_url=f"http://{HOST}", raise_server_exceptions=False)
    browser.get(f"/enter?token={keys.token}")
    monkeypatch.setattr("discreet.studio.pages.plan.plan", fail)
    page = browser.get("/plan")
    assert page.status_code == 500
    assert "This is a fault of the program" in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]


# -- what is compared --------------------------------------------------------------------------


def test_the_python_of_a_comparison_gives_the_numbers_of_the_page(session, browser, tmp_path):
    path = tmp_path / "survey.csv"
    rows = [(p * 3 % 5, 4 - p * 3 % 5 + p % 2, p * 7 % 5, p * p % 5) for p in range(60)]
    cells = [",".join(str(min(max(cell, 0), 4)) for cell in row) for row in rows]
    path.write_text("a,b,c,d\n" + "\n".join(cells) + "\n")
    session.open(path, options={"reverse": []})
    browser.get("/data/work-1")
    first = calibrate(browser)
    for options in ({"reverse": ["b"]}, {"reverse": ["b"], "ignore": ["d"]}):
        session.change("work-1", lambda _, new=options: {"options": new, "reading": None})
        browser.get("/data/work-1")
        second = calibrate(browser, model="rating-scale")
        names = [one.rpartition("/")[2] for one in (first, second)]
        page = unescape(browser.get(f"/compare/work-1?first={names[0]}&second={names[1]}").text)
        code = re.search(r'<pre id="same-python">(.*?)</pre>', page, re.S)[1]
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, {})  # noqa: S102
        shown = re.findall(r'<tr><th scope="row">(\w+)</th>.*<td[^>]*>([^<]*)</td></tr>', page)
        wanted = {item: float(value.replace("\u2212", "-")) for item, value in shown}
        lines = [line.split("\t") for line in printed.getvalue().splitlines()]
        assert {item: float(value) for item, value in lines} == wanted
        assert len(wanted) == 4 - len(options.get("ignore", ()))
        assert max(map(abs, wanted.values())) > 0.1


# -- what is kept ------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files cannot be counted here")
def test_more_files_than_one_are_closed_and_removed(session, browser):
    def count():
        return len(list(Path("/proc/self/fd").iterdir()))

    before = count()
    for _ in range(3):
        files = [("file", (f"{n}.csv", ANSWERS)) for n in range(300)]
        assert browser.post("/upload", files=files, headers=ORIGIN).status_code == 303
    assert count() <= before + 5
    sent = [path for path in session.folder.rglob("*") if path.is_file()]
    assert len(sent) == 3 * MOST_FILES


def test_what_workers_write_is_for_their_owner_alone(session, browser, tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("q1,q2,q3\n" + "1,0,1\n0,1,1\n1,1,0\n0,0,0\n" * 9)
    before = os.umask(0)
    try:
        open_file(browser, path)
        calibrate(browser)
        files = [one for one in session.folder.rglob("*") if one.is_file()]
    finally:
        os.umask(before)
    assert {"result", "progress.json", "answers", "report.confidential.html"} <= {
        one.name for one in files
    }
    assert {stat.S_IMODE(one.stat().st_mode) for one in files} == {0o600}


def test_what_programmers_copy_from_a_report_gives_its_numbers(
    browser, tmp_path, monkeypatch, write_survey
):
    monkeypatch.chdir(tmp_path)
    path = write_survey(tmp_path / "survey.csv")
    look = re.search(r'name="look" value="([^"]+)"', open_file(browser, path).text)[1]
    said = {"look": look, "role:1": "item, reversed", "missing": "9"}
    browser.post("/data/work-1", data=said, headers=ORIGIN)
    assert "2 cells missing" in browser.get("/data/work-1").text
    report = calibrate(browser, model="rating-scale")
    table = browser.get(f"{report}/files/items.confidential.csv").text.splitlines()[1:]
    shown = {row.split(",")[0]: float(row.split(",")[1]) for row in table}
    page = unescape(browser.get(report).text)
    command = re.search(r'<pre id="same-command">(.*?)</pre>', page)[1]
    ended = discreet(*shlex.split(command)[1:])
    assert ended.code == 0, ended.err
    (written,) = tmp_path.glob("results-*/items.confidential.csv")
    lines = written.read_text().splitlines()[1:]
    assert {row.split(",")[0]: float(row.split(",")[1]) for row in lines} == pytest.approx(shown)
    for address in (report, report.replace("report", "persons")):
        page = unescape(browser.get(address).text)
        code = re.search(r'<pre id="same-python">(.*?)</pre>', page, re.S)[1]
        known = {}
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, known)  # noqa: S102
        assert printed.getvalue()
        fitted = known["calibration"]
        assert dict(zip(fitted.items, fitted.difficulty, strict=True)) == pytest.approx(shown)


@pytest.fixture
def write_survey():
    """A questionnaire with a reversed item and a code for missing answers."""

    def write(path):
        lines = ["a,b,c,d"]
        for p in range(80):
            mood = p * 7 % 5
            row = [mood, 4 - (mood + p % 11 // 10) % 5, (mood + p % 3) % 5, min(4, mood + p % 2)]
            lines.append(
                ",".join(str(9 if p in (3, 30) and i == 2 else v) for i, v in enumerate(row))
            )
        path.write_text("\n".join(lines) + "\n")
        return path

    return write


def test_settings_under_which_reading_failed_are_not_kept(session, browser, tmp_path, monkeypatch):
    """A fault while a file is read as stated would come back with the file for ever."""
    path = tmp_path / "class.csv"
    path.write_text("id,a,b\np1,1,0\np2,0,1\np3,1,1\n")
    page = open_file(browser, path)
    look = re.search(r'name="look" value="([^"]+)"', page.text)[1]

    def state(options):
        monkeypatch.setattr("discreet.studio.pages.data.state_reading", lambda *_: options)
        return browser.post("/data/work-1", data={"look": look}, headers=ORIGIN)

    good, bad = {"ignore": ["b"]}, {"categories": 5}
    assert state(good).status_code == 303
    assert "2 items" not in browser.get("/data/work-1").text
    assert session.recent.recall(str(path))["options"] == good
    look = session.works["work-1"].reading.name
    assert state(bad).status_code == 303
    assert "Something went wrong inside discreet" in browser.get("/data/work-1").text
    assert session.recent.recall(str(path))["options"] == good
    assert session.open(path).options == good
    assert browser.post("/data/work-1/again", headers=ORIGIN).status_code == 303
    assert "2 items" in browser.get("/data/work-1").text
    assert session.works["work-1"].options == {}
