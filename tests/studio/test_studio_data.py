"""The page of a file: items as pictures, what counts as an answer, several files as one."""

import re
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from discreet.report.plain import AnswerBar
from discreet.studio.kept_files import Recent
from discreet.studio.labels import shorten
from discreet.studio.pages.data import find_look
from discreet.studio.safety import Keys
from discreet.studio.server import build_app
from discreet.studio.session import StudioSession
from studio_tasks import InPlace

TABLES = Path(__file__).parent.parent / "data" / "tables"
HOST = "127.0.0.1:8765"
ORIGIN = {"Origin": f"http://{HOST}"}


@pytest.fixture
def session(tmp_path):
    (tmp_path / "private").mkdir()
    made = StudioSession(tmp_path / "private", Recent(tmp_path / "studio.json"))
    made.__dict__["jobs"] = InPlace(made.folder)
    return made


@pytest.fixture
def browser(session):
    keys = Keys(8765)
    client = TestClient(build_app(session, keys), base_url=f"http://{HOST}", follow_redirects=False)
    assert client.get(f"/enter?token={keys.token}").status_code == 200
    return client


def send(browser, *files):
    """Send files, have them read, and return the page."""
    parts = [("file", (name, content)) for name, content in files]
    address = browser.post("/upload", files=parts, headers=ORIGIN).headers["location"]
    browser.get(address)
    return unescape(browser.get(address).text)


def bring(browser, name):
    return send(browser, (name, (TABLES / name).read_bytes()))


def look_of(session, name="work-1"):
    return find_look(session.works[name])


def state(browser, page, **said):
    """Send the form of a page; return the page that follows."""
    look = re.search(r'name="look" value="([^"]+)"', page)[1]
    sent = browser.post("/data/work-1", data={"look": look, **said}, headers=ORIGIN)
    assert sent.status_code < 400, sent.text
    browser.get("/data/work-1")
    return unescape(browser.get("/data/work-1").text)


def name_of(page, words):
    """Return the name of the question that has these words."""
    asked = re.findall(r"<fieldset class=\"finding.*?</fieldset>", page, re.S)
    (found,) = [one for one in asked if words in one]
    return re.search(r'name="(answer:\d+)"', found)[1]


def test_what_was_not_touched_is_no_answer_before_the_form_is_sent(session, browser):
    page = bring(browser, "Umfrage.csv")
    missing, reverse = name_of(page, "far outside"), name_of(page, "other way round")
    marked = {missing: "0", reverse: "0"}  # the browser sends every marked answer
    again = state(browser, page, live="yes", touched="role:1", **marked, **{"role:1": "left out"})
    assert session.works["work-1"].options == {
        "person": "lfd", "ignore": ["Alter", "Gewicht", "Datum", "Geschlecht"], "delimiter": ";",
    }  # fmt: skip
    assert "Calibrate these answers" not in again
    state(browser, page, live="yes", touched=f"role:1\n{reverse}", **marked)
    options = session.works["work-1"].options
    assert options["reverse"] == ["f02", "f05", "f09"]
    assert "missing" not in options
    ready = state(browser, page, **marked)
    assert session.works["work-1"].options["missing"] == [9]
    assert "Calibrate these answers" in ready


def test_a_question_without_evidence_must_be_answered_in_the_browser(browser):
    page = bring(browser, "befragung.sav")
    name = name_of(page, "What is geschl")
    asked = re.findall(rf'<input type="radio" name="{name}"[^>]*>', page)
    assert len(asked) == 3
    assert all(" required" in one and " checked" not in one for one in asked)
    page = bring(browser, "Umfrage.csv")
    marked = re.findall(rf'<input type="radio" name="{name_of(page, "far outside")}"[^>]*>', page)
    assert " required" not in "".join(marked)
    assert " checked" in marked[0]


def test_bars_count_the_answers_as_the_file_writes_them(session, browser):
    page = bring(browser, "Umfrage.csv")
    by_name = {one.name: one for one in look_of(session).summary.items}
    # f02 is proposed to be turned round; the file has 20 times 1, 15 times 2, and so on.
    times = {"1": 20, "2": 15, "3": 21, "4": 13, "5": 7}
    assert [bar[:2] for bar in by_name["f02"].bars] == [*times.items()]
    assert {bar.label: bar.times for bar in by_name["f01"].bars} == {
        "1": 1, "2": 13, "3": 16, "4": 26, "5": 15,
    }  # fmt: skip
    assert "with the answers 1 to 5" in page
    assert 'aria-label="1: 20; 2: 15; 3: 21; 4: 13; 5: 7"' in page


def test_bars_of_a_test_with_a_key_are_its_options_and_the_right_one_is_marked(session, browser):
    page = bring(browser, "quiz export.csv")
    state(browser, page, key="CABDDBACABDC")
    (item,) = [one for one in look_of(session).summary.items if one.name == "item12"]
    assert AnswerBar("B", 11) in item.bars
    assert AnswerBar("C", 5, is_right=True) in item.bars
    assert sum(bar.is_right for bar in item.bars) == 1
    assert sum(bar.times for bar in item.bars) == 35


def test_items_come_first_and_left_out_columns_are_folded(browser):
    page = bring(browser, "Umfrage.csv")
    items, _, rest = page.partition("<h3>Other columns</h3>")
    others, _, aside = rest.partition('<details class="aside">')
    assert re.findall(r'<b title="([^"]+)"', items) == [f"f{n:02}" for n in range(1, 13)]
    assert re.findall(r'<b title="([^"]+)"', others) == ["lfd", "Geschlecht"]
    assert re.findall(r'<b title="([^"]+)"', aside) == ["Alter", "Gewicht", "Datum"]


def test_columns_beyond_sixty_are_folded(browser):
    names = ",".join(f"q{n}" for n in range(70))
    answers = np.random.default_rng(1).integers(0, 2, (80, 70)).tolist()
    rows = "".join(",".join(map(str, row)) + "\n" for row in answers)
    page = send(browser, ("many.csv", f"{names}\n{rows}"))
    assert "10 more items" in page
    shown = page.partition("10 more items")[0]
    assert len(re.findall(r'<b title="q\d+"', shown)) == 60


SCALES = "id,a1,a2,a3,a4,b1,b2,b3\n" + "".join(
    f"{n},{n % 4 + 1},{n * 3 % 4 + 1},{n // 2 % 4 + 1},{n // 3 % 4 + 1},"
    f"{n % 7 + 1},{n * 3 % 7 + 1},{n // 2 % 7 + 1}\n"
    for n in range(60)
)


def test_another_scale_of_the_file_is_read_by_a_button(session, browser):
    page = send(browser, ("scales.csv", SCALES))
    assert "Read “b1” to “b3” instead" in page
    state(browser, page, block="0")
    assert look_of(session).items == ["b1", "b2", "b3"]


def test_files_with_the_same_columns_are_read_as_one(session, browser):
    rows = [f"{n},{n % 2},{n // 2 % 2},{n // 4 % 2}\n" for n in range(20)]
    halves = [f"id,q1,q2,q3\n{''.join(part)}" for part in (rows[:12], rows[12:])]
    page = send(browser, ("7a.csv", halves[0]), ("7b.csv", halves[1]))
    assert "<b>20 persons, 3 items, 0 cells missing</b>" in page
    assert session.works["work-1"].title == "7a.csv + 1"
    assert str(session.folder) not in page
    page = send(browser, ("7a.csv", halves[0]), ("7a.csv", halves[1]))  # equal names are two files
    assert "<b>20 persons" in page


def test_labels_fall_back_to_names_that_they_would_not_tell_apart():
    long = "Please say how much you agree with this sentence"
    assert shorten([f"{long} [a]", f"{long} [a]"]) == [f"{long} [a]"] * 2
    assert shorten([f"{long}: Maths", f"{long}: Music"]) == ["Maths", "Music"]
    assert shorten([]) == []
