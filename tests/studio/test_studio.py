"""The studio keeps its answers: who may come in, what is kept where, and what a worker may do."""

import contextlib
import csv
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from html import unescape
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import studio_tasks
from commandline import discreet, environment
from discreet.api.calibrating import fit
from discreet.datasets import lsat
from discreet.errors import BadUsage
from discreet.studio.forms import plain_name
from discreet.studio.jobs import JobState, JobTable
from discreet.studio.kept_files import PREFIX, VARIABLE, Recent, private_folder, remove_left_behind
from discreet.studio.safety import Keys
from discreet.studio.server import build_app, listen
from discreet.studio.session import StudioSession
from refusals import refused

PORT = 8765
HOST = "127.0.0.1:8765"
ORIGIN = {"Origin": f"http://{HOST}"}
ANSWERS = "person,q1,q2\nann,1,0\nbob,0,1\ncat,1,1\n"


@pytest.fixture
def session(tmp_path):
    (tmp_path / "private").mkdir()
    made = StudioSession(tmp_path / "private", Recent(tmp_path / "state" / "studio.json"))
    yield made
    made.jobs.end()


def visit(session, keys):
    """Return a browser that was not given the address."""
    return TestClient(build_app(session, keys), base_url=f"http://{HOST}", follow_redirects=False)


def enter(session):
    """Return a browser that came with the token."""
    keys = Keys(PORT)
    client = visit(session, keys)
    assert client.get(f"/enter?token={keys.token}").status_code == 200
    return client


@pytest.fixture
def keys():
    return Keys(PORT)


@pytest.fixture
def stranger(session, keys):
    return visit(session, keys)


@pytest.fixture
def browser(stranger, keys):
    assert stranger.get(f"/enter?token={keys.token}").status_code == 200
    return stranger


def await_end(job):
    # No time is measured: a job that never ends would be the failure.
    while job.state is JobState.RUNNING:
        time.sleep(0.02)
    return job.state


# -- who may come in -------------------------------------------------------------------------


def test_without_the_token_nothing_is_shown(stranger):
    for path in ("/", "/data/work-1", "/jobs/job-1", "/nowhere"):
        refused = stranger.get(path)
        assert refused.status_code == 403
        assert "has not been let in" in refused.text
        assert "<nav" not in refused.text  # no way leads on
        for style in re.findall(r'<link rel="stylesheet" href="([^"]+)"', refused.text):
            assert stranger.get(style).status_code == 200
    assert stranger.get("/enter").status_code == 403
    assert stranger.get(f"/enter?token={'c' * 64}").status_code == 403
    assert stranger.get("/").status_code == 403


def test_the_token_gives_a_cookie_that_scripts_and_other_sites_do_not_get(stranger, keys):
    entered = stranger.get(f"/enter?token={keys.token}")
    said = entered.headers["set-cookie"]
    assert "HttpOnly" in said
    assert "SameSite=strict" in said
    assert keys.token not in said
    assert stranger.get("/").status_code == 200


def test_a_second_browser_is_refused_while_the_first_works(session, browser, keys):
    second = visit(session, keys)
    assert browser.get("/").status_code == 200
    assert second.get("/").status_code == 403
    second.cookies.set(keys.cookie_name, keys.token)  # the token is not the cookie
    assert second.get("/").status_code == 403


def test_an_address_opens_one_session_and_the_owner_is_told_of_a_second_try(session):
    told = []
    keys = Keys(PORT, on_reuse=lambda: told.append("used"))
    first, second = visit(session, keys), visit(session, keys)
    address = f"/enter?token={keys.token}"
    assert first.get(address).status_code == 200
    for _ in range(2):
        refused = second.get(address)
        assert refused.status_code == 403
        assert "was used already" in refused.text
        assert "press Enter" in refused.text
    assert "set-cookie" not in refused.headers
    assert second.get("/").status_code == 403
    assert told == ["used"]  # once, however often somebody tries
    assert second.get(f"/enter?token={'c' * 64}").status_code == 403
    assert told == ["used"]


def test_a_look_at_the_address_does_not_use_it_up(session, keys):
    stranger = visit(session, keys)
    address = f"/enter?token={keys.token}"
    looked = stranger.head(address)
    assert looked.status_code == 200
    assert "set-cookie" not in looked.headers
    assert stranger.head(f"/enter?token={'c' * 64}").status_code == 403
    assert stranger.get(address).status_code == 200
    assert stranger.get("/").status_code == 200


def test_a_known_browser_may_load_the_address_again(browser, keys):
    for _ in range(2):
        assert browser.get(f"/enter?token={keys.token}").status_code == 200
        assert browser.get("/").status_code == 200


def test_a_new_address_opens_another_session_and_ends_the_one_before_it(session, keys):
    old = keys.token
    new = keys.renew().partition("/enter")[2]
    late, first, second = visit(session, keys), visit(session, keys), visit(session, keys)
    assert late.get(f"/enter?token={old}").status_code == 403
    assert first.get(f"/enter{new}").status_code == 200
    again = keys.renew().partition("/enter")[2]
    assert second.get(f"/enter{again}").status_code == 200
    cookies = [one.cookies[keys.cookie_name] for one in (first, second)]
    assert cookies[0] != cookies[1]
    assert first.get("/").status_code == second.get("/").status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "127.0.0.1", "127.0.0.1:80", "127.0.0.1:87650"]
)
def test_a_name_that_was_made_to_point_here_is_refused(browser, keys, host):
    assert browser.get("/", headers={"Host": host}).status_code == 421
    assert browser.get(f"/enter?token={keys.token}", headers={"Host": host}).status_code == 421


def test_both_names_of_this_machine_are_known(browser):
    assert browser.get("/", headers={"Host": "localhost:8765"}).status_code != 421


@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", "http://127.0.0.1:80", f"https://{HOST}"]
)
def test_a_form_of_another_page_is_refused(session, browser, origin):
    headers = {} if origin is None else {"Origin": origin}
    sent = browser.post("/example", data={"name": "lsat.csv"}, headers=headers)
    assert sent.status_code == 403
    assert not session.works


def test_other_kinds_of_requests_are_refused(browser):
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH"):
        assert browser.request(method, "/", headers=ORIGIN).status_code == 405


def test_every_answer_forbids_scripts_frames_and_copies(browser, keys):
    for path in ("/", "/nowhere", "/static/style.css", f"/enter?token={keys.token}"):
        headers = browser.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"


def test_pages_hold_no_script_or_style_of_their_own(browser):
    page = browser.get("/").text
    assert not re.search(r"<style|<script(?! src)|\son\w+=|\sstyle=", page)
    assert not re.search(r"(src|href|action)=\"(https?:)?//", page)


def test_only_our_own_files_are_served(browser):
    assert browser.get("/static/style.css").status_code == 200
    for name in ("steward.html", "../html.py", "%2e%2e/html.py", "studio/../../html.py", ""):
        assert browser.get(f"/static/{name}").status_code == 404


def test_keys_are_new_each_time():
    first, second = Keys(1), Keys(1)
    tokens = {first.token, second.token, first.renew()[-64:]}
    cookies = {one.admit(one.token) for one in (first, second)}
    assert len(tokens | cookies) == 5
    assert {len(one) for one in tokens | cookies} == {64}


def test_it_listens_to_this_machine_alone():
    with listen(0) as door:
        assert door.getsockname()[0] == "127.0.0.1"
        with refused(BadUsage, "port_cannot_used_another"):
            listen(door.getsockname()[1])


# -- what is kept where ----------------------------------------------------------------------


def send(browser, name, content=ANSWERS):
    return browser.post("/upload", files={"file": (name, content)}, headers=ORIGIN)


def test_a_file_is_put_into_the_private_folder(session, browser):
    assert send(browser, "answers.csv").headers["location"] == "/data/work-1"
    (work,) = session.works.values()
    assert work.title == "answers.csv"
    assert work.source.read_text() == ANSWERS
    assert session.folder in work.source.parents
    assert stat.S_IMODE(work.source.stat().st_mode) == 0o600
    assert stat.S_IMODE(work.source.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "name",
    ["../../escape.csv", "/etc/passwd", "..\\..\\escape.csv", "...", "a/../../b.csv", "*.csv", "~"],
)
def test_the_name_of_a_file_leads_nowhere(session, browser, name):
    before = set(session.folder.parent.rglob("*"))
    send(browser, name)
    (work,) = session.works.values()
    assert session.folder in work.source.resolve().parents
    made = {path for path in session.folder.parent.rglob("*") if path.is_file()} - before
    assert made == {work.source}
    assert work.source.read_text() == ANSWERS


def test_a_plain_name_means_nothing_to_a_shell_or_a_pattern():
    assert plain_name("$(rm -rf) [a]*?.csv") == "_(rm -rf) _a___.csv"
    assert plain_name("größe.xlsx") == "größe.xlsx"
    assert len(plain_name("x" * 500 + ".csv")) <= 110
    assert plain_name("") == plain_name("-") == "answers"


def test_a_file_that_is_too_large_is_refused_and_removed(session, browser):
    session.most_bytes = 1000
    refused = send(browser, "answers.csv", "1" * 2000)
    assert refused.status_code == 400
    assert "Give its path below instead" in refused.text

    def stream():  # without a length, so that only counting helps
        yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
        yield from [b"1" * 500] * 8

    headers = {**ORIGIN, "Content-Type": "multipart/form-data; boundary=b"}
    assert browser.post("/upload", content=stream(), headers=headers).status_code == 400
    assert not session.works
    assert not list(session.folder.iterdir())


@pytest.mark.parametrize("content", [b"", b"nonsense", b"--b\r\n\r\n"])
def test_what_is_no_form_is_refused_in_words(session, browser, content):
    headers = {**ORIGIN, "Content-Type": "multipart/form-data; boundary=b"}
    refused = browser.post("/upload", content=content, headers=headers)
    assert refused.status_code == 400
    assert not session.works
    headers = {**ORIGIN, "Content-Type": "text/plain"}
    assert browser.post("/upload", content=content, headers=headers).status_code == 400


def test_the_private_folder_is_private_and_goes_when_the_studio_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with private_folder() as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "answers.csv").write_text(ANSWERS)
        assert remove_left_behind() == []  # it is in use
        assert (folder / "answers.csv").exists()
    assert not list(tmp_path.iterdir())


def test_what_a_crash_leaves_is_removed_at_the_next_start(tmp_path, monkeypatch):
    script = (
        "import os, signal\nfrom discreet.studio.kept_files import private_folder\n"
        "with private_folder() as folder:\n"
        "    (folder / 'answers.csv').write_text('1')\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    place = {**environment(), "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script], env=place, check=False)
    (left,) = tmp_path.glob(f"{PREFIX}*")
    assert (left / "answers.csv").exists()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with private_folder() as folder:
        assert set(tmp_path.iterdir()) == {folder, tmp_path / f".{folder.name}.lock"}
        assert remove_left_behind() == []  # it is held
    assert list(tmp_path.iterdir()) == []


def test_what_only_looks_like_a_folder_of_ours_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "lock").touch()
    (tmp_path / f"{PREFIX}link").symlink_to(precious)
    (tmp_path / f"{PREFIX}file").write_text("mine")
    assert remove_left_behind() == []
    assert (precious / "lock").exists()


# -- recent work -----------------------------------------------------------------------------


def test_recent_work_holds_paths_only_and_can_be_forgotten(session, browser, tmp_path):
    paths = [tmp_path / f"answers {n}.csv" for n in (1, 2)]
    for path in paths:
        path.write_text(ANSWERS)
        opened = browser.post("/open", data={"path": f"'{path}'"}, headers=ORIGIN)
        assert opened.headers["location"].startswith("/data/")
    send(browser, "sent.csv")
    place = session.recent.place
    assert session.recent.paths() == [str(path) for path in reversed(paths)]
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert str(paths[0]) in browser.get("/").text
    browser.post("/forget", data={"path": str(paths[0])}, headers=ORIGIN)
    assert session.recent.paths() == [str(paths[1])]
    browser.post("/forget", headers=ORIGIN)
    assert not place.exists()


def test_recent_work_can_be_turned_off(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv(VARIABLE, "0")
    Recent().add(tmp_path / "answers.csv")
    assert Recent().paths() == []
    assert not list(tmp_path.iterdir())


def test_a_damaged_list_of_recent_work_is_an_empty_one(tmp_path):
    for text in ("{", '{"a": 1}', "[1, 2]", "\ud800".encode("utf-16", "surrogatepass")):
        place = tmp_path / "studio.json"
        place.write_bytes(text if isinstance(text, bytes) else text.encode())
        assert Recent(place).paths() == []


@pytest.mark.parametrize(
    ("path", "words"),
    [("", "No path was given"), ("answers.csv", "whole path"), ("/nowhere/a.csv", "/nowhere")],
)
def test_a_path_that_leads_nowhere_is_refused_in_words(browser, path, words):
    refused = browser.post("/open", data={"path": path}, headers=ORIGIN)
    assert refused.status_code == 400
    assert words in refused.text


# -- data ------------------------------------------------------------------------------------

MESSY = "Nr,email,Klasse,Q1,Q2,Q3\n" + "".join(
    f"{n},{name}@school.org,7{'ab'[n % 2]},{row}\n"
    for n, (name, row) in enumerate(
        [("ann", "A,B,C"), ("bob", "B,B,9"), ("cat", "A,C,C"), ("dan", "A,B,A"), ("eve", "C,B,C"),
         ("fay", "A,A,B"), ("gus", "B,B,C"), ("hal", "A,C,9"), ("ida", "A,B,C")], start=1
    )
)  # fmt: skip
"""Letters, a 9, and two columns that are no items."""


def read(browser, name="work-1"):
    """Return the page of a file once it was read."""
    while "data-job" in (page := browser.get(f"/data/{name}").text):
        time.sleep(0.05)
    return page


def change(browser, **said):
    """Send the form of a page as it stands, with some fields changed; return the next page."""
    look = re.search(r'name="look" value="([^"]+)"', browser.get("/data/work-1").text)[1]
    sent = browser.post("/data/work-1", data={"look": look, **said}, headers=ORIGIN)
    assert sent.status_code == 303, unescape(sent.text)
    return read(browser)


@pytest.mark.usefixtures("in_place")
def test_a_messy_table_is_put_right_in_one_form(session, browser):
    send(browser, "messy.csv", MESSY)
    page = unescape(read(browser))
    assert "This looks like a multiple-choice test" in page
    assert str(session.folder) not in page
    assert "Calibrate these answers" not in page
    assert not re.search(
        r"--\w|\w+=\[", re.sub(r"<details class=\"same\">.*", "", page, flags=re.S)
    )
    page = change(browser, **{"key": "A b\tC", "answer:0": "", "answer:4": "2", "missing": "9"})
    assert "<b>9 persons, 3 items, 2 cells missing</b>" in page
    assert "right and wrong by the key" in page
    assert "Groups by Klasse: 7b (5), 7a (4)" in page
    assert "Calibrate these answers" in page
    options = session.works["work-1"].options
    assert (options["key"], options["missing"], options["keep"]) == ("ABC", ["9"], ["Q3"])


@pytest.mark.usefixtures("in_place")
def test_what_was_chosen_is_kept_by_the_next_click(session, browser):
    send(browser, "messy.csv", MESSY)
    read(browser)
    change(browser, **{"role:2": "left out", "answer:4": "2"})
    change(browser, missing="9")
    page = change(browser, **{f"key:Q{n}": letter for n, letter in enumerate("ABC", start=1)})
    assert "<b>9 persons, 3 items, 2 cells missing</b>" in page
    options = session.works["work-1"].options
    assert options["key"] == {"Q1": "A", "Q2": "B", "Q3": "C"}
    assert "Klasse" in options["ignore"]
    assert browser.get("/data/work-1/key.csv").text == "item,answer\nQ1,A\nQ2,B\nQ3,C\n"


@pytest.mark.usefixtures("in_place")
def test_a_change_is_read_while_the_form_stays(session, browser):
    send(browser, "messy.csv", MESSY)
    look = re.search(r'name="look" value="([^"]+)"', read(browser))[1]
    said = {"look": look, "live": "yes", "answer:4": "2", "missing": "9"}
    told = browser.post("/data/work-1", data={**said, "key": "ABC"}, headers=ORIGIN).json()
    assert session.jobs.find(told["job"]).outcome.value.is_ready
    # The same form again: its answers belong to the look that it was made from.
    again = browser.post("/data/work-1", data={**said, "key": "ABC"}, headers=ORIGIN).json()
    assert again == told
    refused = browser.post("/data/work-1", data={**said, "at_least": "many"}, headers=ORIGIN)
    assert "is no number" in refused.json()["problem"]


TITLED = "Class test\n\nName,Q1,Q2,Q3\n" + "".join(
    f"{name},{n % 2},{n // 2 % 2},{n // 4 % 2}\n" for n, name in enumerate("ABCDEFGHIJ")
)


@pytest.mark.usefixtures("in_place")
def test_header_key_and_rows_are_marked_on_the_table(session, browser):
    send(browser, "titled.csv", TITLED)
    assert "10 persons, 3 items" in read(browser)
    page = change(browser, **{"row:2": "left out", "row:5": "left out"})
    assert "8 persons, 3 items" in page
    assert session.works["work-1"].options["drop_rows"] == [2, 5]
    assert "9 persons, 3 items" in change(browser, **{"row:2": "person"})
    page = change(browser, **{"above:0": "names"})
    assert session.works["work-1"].options["skip_rows"] == 0
    assert "10 persons, 3 items" in change(browser, forget="yes")
    assert session.works["work-1"].options == {}


@pytest.mark.usefixtures("in_place")
def test_a_reversed_item_is_chosen_under_its_name(session, browser):
    rows = "".join(f"{n % 5 + 1},{n * 3 % 5 + 1},{n * 7 % 5 + 1}\n" for n in range(40))
    send(browser, "survey.csv", f"a,b,c\n{rows}")
    assert "5 categories" in read(browser)
    change(browser, **{"role:1": "item, reversed"})
    assert session.works["work-1"].options["reverse"] == ["b"]
    change(browser, **{"role:1": "item"})
    assert session.works["work-1"].options["reverse"] == []


@pytest.mark.usefixtures("in_place")
def test_the_command_line_of_a_page_reads_the_same(session, browser, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "messy.csv").write_text(MESSY)
    send(browser, "messy.csv", MESSY)
    read(browser)
    page = unescape(change(browser, **{"key": "ABC", "answer:4": "2", "missing": "9"}))
    command = re.search(r'<pre id="same-command">(.*?)</pre>', page)[1]
    ended = discreet(*shlex.split(command)[1:])
    assert ended.code == 0
    assert "3 items, 9 persons" in ended.out
    code = re.search(r'<pre id="same-python">(.*?)</pre>', page, re.S)[1]
    known = {}
    exec(code, known)  # noqa: S102
    assert known["answers"].n_answers == 25


@pytest.mark.usefixtures("in_place")
def test_settings_are_typed_checked_and_forgotten(session, browser):
    send(browser, "answers.csv", "person,q1,q2\nann,4,0\nbob,1,2\ncat,3,1\n")
    assert "5 categories" in read(browser)
    assert "right and wrong" in change(browser, at_least="2")
    assert session.works["work-1"].options["at_least"] == 2.0
    look = re.search(r'name="look" value="([^"]+)"', browser.get("/data/work-1").text)[1]
    said = {"look": look, "at_least": "many", "missing": "77"}
    refused = browser.post("/data/work-1", data=said, headers=ORIGIN)
    assert refused.status_code == 400
    assert "is no number" in refused.text
    assert 'value="77"' in refused.text  # nothing that was typed is lost
    said = {"look": look, "layout": "round"}
    assert browser.post("/data/work-1", data=said, headers=ORIGIN).status_code == 400
    assert "5 categories" in change(browser, forget="yes")
    odd = {"look": look, "answer:0": "7"}
    assert browser.post("/data/work-1", data=odd, headers=ORIGIN).status_code in (303, 400)


@pytest.mark.usefixtures("in_place")
def test_work_is_kept_without_answers(session, browser, tmp_path):
    path = tmp_path / "answers of ann.csv"
    path.write_text(MESSY)
    browser.post("/open", data={"path": str(path)}, headers=ORIGIN)
    read(browser)
    change(browser, **{"key": "ABC", "answer:4": "2", "missing": "9"})
    browser.post("/calibrate/work-1", data={"method": "refined"}, headers=ORIGIN)
    kept = session.recent.place.read_text()
    assert "school.org" not in kept
    assert "ABC" in kept
    later = StudioSession(session.folder, session.recent)
    later.__dict__["jobs"] = session.jobs
    browser = enter(later)
    assert "its answer key" in browser.get("/").text
    browser.post("/open", data={"path": str(path)}, headers=ORIGIN)
    assert "9 persons, 3 items" in read(browser)
    assert "refined pairs" in browser.get("/calibrate/work-1").text
    assert later.find_seen(later.works["work-1"])  # somebody looked, in an earlier run


@pytest.mark.usefixtures("in_place")
def test_a_sent_file_is_known_again_by_what_it_holds(session, browser):
    send(browser, "class.csv", MESSY)
    read(browser)
    change(browser, **{"key": "ABC", "answer:4": "2", "missing": "9"})
    kept = session.recent.place.read_text()
    assert '"name": "class.csv"' in kept
    assert "school.org" not in kept
    later = StudioSession(session.folder, session.recent)
    later.__dict__["jobs"] = session.jobs
    browser = enter(later)
    send(browser, "renamed.csv", MESSY)
    send(browser, "class.csv", MESSY.replace("A", "D", 1))
    same, other = later.works.values()
    assert same.options["key"] == "ABC"
    assert later.find_seen(same)
    assert other.options == {}  # another file of the same name
    assert not later.find_seen(other)
    listed = browser.get("/").text
    browser.post("/forget", data={"path": same.digest}, headers=ORIGIN)
    assert "send the file again" in listed
    assert "send the file again" not in browser.get("/").text


def write_colours():
    lines = [",".join(["blue", "green", "red"][(n * k) % 3] for k in (1, 2, 4)) for n in range(30)]
    return "\n".join(["q1,q2,q3", *lines]) + "\n"


@pytest.mark.usefixtures("in_place")
def test_an_order_of_texts_that_nobody_knows_is_typed(session, browser):
    send(browser, "colours.csv", write_colours())
    page = unescape(read(browser))
    assert "What is their order" in page
    (proposed,) = re.findall(r'<textarea name="categories"[^>]*>([^<]*)<', page)
    assert proposed == ""
    assert "30 persons, 3 items" in change(browser, categories="blue < green < red", key="")
    assert session.works["work-1"].options["categories"] == [["blue", "green", "red"]]
    change(browser, categories="red < blue < green")
    assert session.works["work-1"].options["categories"] == [["red", "blue", "green"]]


@pytest.mark.usefixtures("in_place")
def test_who_says_which_texts_are_right_takes_no_order(session, browser):
    send(browser, "colours.csv", write_colours())
    read(browser)
    change(browser, categories="blue < green < red", key="red,red,blue")
    assert "categories" not in session.works["work-1"].options
    assert session.works["work-1"].options["key"] == "RED,RED,BLUE"


@pytest.mark.parametrize(
    ("name", "content"),
    [("photo.jpg", b"\xff\xd8\xff\xe0" + bytes(range(256)) * 9), ("empty.csv", b""),
     ("broken.xlsx", b"PK\x03\x04 not really"), ("notes.txt", b"Dear all,\nsee you then\n")],
)  # fmt: skip
@pytest.mark.usefixtures("in_place")
def test_a_wrong_file_is_refused_in_words_that_name_it(session, browser, name, content):
    send(browser, name, content)
    page = read(browser)
    assert "cannot be read" in page
    assert name in page
    assert "inside discreet" not in page
    assert str(session.folder) not in page


def test_a_cancelled_reading_can_be_begun_again(session, browser, monkeypatch):
    send(browser, "answers.csv")
    with monkeypatch.context() as slow:
        slow.setattr("discreet.studio.pages.data.look", studio_tasks.wait)
        browser.get("/data/work-1")
    job = session.works["work-1"].reading
    browser.post(f"/jobs/{job.name}/cancel", data={"back": "/data/work-1"}, headers=ORIGIN)
    assert "Reading was cancelled" in read(browser)
    browser.post("/data/work-1/again", headers=ORIGIN)
    assert "3 persons, 2 items" in read(browser)


@pytest.mark.usefixtures("in_place")
def test_names_from_a_file_are_shown_and_do_nothing(browser):
    send(browser, "<img src=x>.csv", 'person,<script>x</script>,"a""b"\nann,1,0\nbob,0,1\n')
    page = read(browser)
    assert "<script>x" not in page
    assert "&lt;script&gt;x" in page
    assert "<img" not in page


# -- calibration -----------------------------------------------------------------------------


def calibrate(browser, **said):
    """Calibrate the first file; return the address and the page of its report."""
    begun = browser.post("/calibrate/work-1", data=said, headers=ORIGIN)
    assert begun.status_code == 303, begun.text
    address = begun.headers["location"]
    while "data-job" in (page := browser.get(address).text):
        time.sleep(0.05)
    return address, page


def take_example(browser, name):
    browser.post("/example", data={"name": name}, headers=ORIGIN)
    return read(browser)


def test_a_test_is_calibrated_shown_and_taken_away(session, browser, tmp_path):
    assert "1,000 persons, 5 items" in take_example(browser, "lsat.csv")
    address, page = calibrate(browser, scale="500,100")
    assert "<dt>reliability</dt>" in page
    assert "Hardest: Item3. Easiest: Item1." in page
    assert f'<a href="{address}/items/2">Item3</a>' in page
    assert "discreet fit lsat.csv --scale 500,100 --out results-2" in page
    assert not re.search(r"<style|<script(?! src)|\son\w+=|\sstyle=", page)
    # The same settings lead to the same calibration: a reload computes nothing twice.
    assert calibrate(browser, scale="500,100")[0] == address
    assert len(session.works["work-1"].runs) == 1
    files = session.works["work-1"].runs[0].job.outcome.value.files
    assert {"report.confidential.html", "analysis.confidential.xlsx"} < set(files)
    items = browser.get(f"{address}/files/items.confidential.csv")
    assert items.headers["content-disposition"] == 'attachment; filename="items.confidential.csv"'
    assert items.text.startswith("item,difficulty")
    numbers = {row[0]: float(row[1]) for row in csv.reader(items.text.splitlines()[1:])}
    known = fit(lsat())
    assert numbers == pytest.approx(dict(zip(known.items, known.difficulty, strict=True)))
    for name in ("result", "../lock", "..%2Flock", "nothing.csv"):
        assert browser.get(f"{address}/files/{name}").status_code == 404
    one = browser.get(f"{address}/items/2").text
    assert "<h1>Item3</h1>" in one
    assert one.count("<svg") == 2  # its answers, and its curve
    assert browser.get(f"{address}/items/5").status_code == 404
    persons = browser.get(address.replace("/report/", "/persons/")).text
    assert "Reported scale" in persons
    assert persons.count("<tr") > 1000
    other, _ = calibrate(browser, method="refined")
    names = [one.rpartition("/")[2] for one in (address, other)]
    both = browser.get(f"/compare/work-1?first={names[0]}&second={names[1]}").text
    assert "second less first" in both
    assert browser.get("/compare/work-1?first=job-9&second=job-8").status_code == 400


@pytest.mark.usefixtures("in_place")
def test_a_rating_scale_shows_categories_thresholds_and_groups(browser):
    assert "5 categories" in take_example(browser, "wellbeing.csv")
    address, page = calibrate(browser, model="rating-scale")
    assert "Threshold map" in page
    assert "Answered highest: " in page
    assert "--group age --model rating-scale" in page
    one = browser.get(f"{address}/items/11").text
    for words in ("Categories", "Differences between groups", "below 40"):
        assert words in one, words
    assert one.count("<svg") == 3  # its answers, and two curves


@pytest.mark.usefixtures("in_place")
def test_a_calibration_that_cannot_be_begun_says_why(session, browser):
    send(browser, "messy.csv", MESSY)
    assert "Look at the data first" in browser.get("/calibrate/work-1").text
    read(browser)
    refused = browser.post("/calibrate/work-1", data={}, headers=ORIGIN)
    assert refused.status_code == 400
    for said in ({"scale": "tall"}, {"method": "guess"}):
        refused = browser.post("/calibrate/work-1", data=said, headers=ORIGIN)
        assert refused.status_code == 400
        assert "This did not work" in refused.text
    assert not session.works["work-1"].runs


@pytest.mark.usefixtures("in_place")
def test_three_persons_are_described_and_no_model_is_judged(browser):
    send(browser, "answers.csv", "person,q1,q2,q3,q4\nann,1,0,1,0\nbob,0,1,1,1\ncat,1,1,0,0\n")
    read(browser)
    _, page = calibrate(browser)
    assert page.index("One group of 3 persons: enough to see") < page.index("All items")
    assert "<dt>reliability</dt>" not in page
    assert ">holds<" not in page


def test_answers_that_determine_nothing_end_in_words(browser):
    send(browser, "answers.csv", "person,q1,q2\nann,1,1\nbob,1,1\ncat,1,1\n")
    read(browser)
    _, page = calibrate(browser)
    assert "This did not work" in page
    assert "inside discreet" not in page


# -- workers ---------------------------------------------------------------------------------


@pytest.fixture
def jobs(tmp_path):
    table = JobTable(tmp_path)
    yield table
    table.end()


def test_a_job_leaves_its_result_on_disk(jobs):
    job = jobs.start("Adding", studio_tasks.add, first=1, second=2)
    assert await_end(job) is JobState.DONE
    assert job.outcome.value == 3
    assert job.progress["label"] == "Adding"


@pytest.mark.posix
def test_a_worker_gets_no_more_memory_than_it_may_have(tmp_path):
    jobs = JobTable(tmp_path, memory=4 << 30)
    greedy = jobs.start("Taking", studio_tasks.take_memory, size=8 << 30)
    assert await_end(greedy) is JobState.FAILED
    assert "not enough memory" in greedy.failure


def test_a_worker_that_dies_or_fails_takes_nobody_with_it(jobs):
    dead, failed = jobs.start("", studio_tasks.die), jobs.start("", studio_tasks.fail)
    assert await_end(dead) is JobState.FAILED
    assert "ended suddenly" in dead.failure
    assert await_end(failed) is JobState.FAILED
    assert "RuntimeError: a surprise" in failed.failure


def test_cancelling_ends_the_worker_at_once(session, browser):
    job = session.jobs.start("Waiting", studio_tasks.wait)
    told = {}
    while told.get("done") != 1:
        told = browser.get(f"/jobs/{job.name}").json()
    expected = {"state": "running", "label": "Waiting", "done": 1, "total": 4, "committed": False}
    assert told == expected
    back = {"back": "/data/work-1"}
    cancelled = browser.post(f"/jobs/{job.name}/cancel", data=back, headers=ORIGIN)
    assert cancelled.headers["location"] == "/data/work-1"
    assert job.state is JobState.CANCELLED
    assert not job.process.is_alive()
    away = browser.post(f"/jobs/{job.name}/cancel", data={"back": "//evil.example"}, headers=ORIGIN)
    assert away.headers["location"] == "/"


def test_what_does_not_exist_is_not_found(browser):
    for path in ("/jobs/job-99", "/data/work-99", "/nowhere"):
        assert browser.get(path).status_code == 404


# -- the command -----------------------------------------------------------------------------


ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/enter\?token=[0-9a-f]{64}")
BROWSER = """#!/bin/sh
echo "$@" > "$SEEN/arguments.part"
ls -l "${1#file://}" > "$SEEN/mode"
cat "${1#file://}" > "$SEEN/page"
mv "$SEEN/arguments.part" "$SEEN/arguments"
"""
"""Notes what it was started with, which every user of the machine can see, and the file's text."""


@contextlib.contextmanager
def running_command(tmp_path, *words, stdin=subprocess.DEVNULL, **variables):
    """Run `discreet studio` in folders of its own, and end it by Ctrl-C."""
    (tmp_path / "tmp").mkdir()
    place = {"TMPDIR": str(tmp_path / "tmp"), "XDG_STATE_HOME": str(tmp_path / "state")}
    running = subprocess.Popen(
        [sys.executable, "-m", "discreet", "studio", *map(str, words)],
        env={**environment(), **place, **variables},
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Whoever runs the tests in the background has told their processes to ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        yield running
    finally:
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=600)


def get_page(address):
    """Return the status and the text of an address, as a browser without cookies gets it."""
    try:
        with urllib.request.build_opener().open(address) as page:
            return page.status, page.read().decode()
    except urllib.error.HTTPError as answer:
        with answer:
            return answer.code, answer.read().decode()


def test_the_command_prints_its_address_serves_and_leaves_nothing_behind(tmp_path):
    answers = tmp_path / "answers.csv"
    answers.write_text(ANSWERS)
    with running_command(tmp_path, answers, "--no-browser") as running:
        address = running.stdout.readline().strip()
        assert ADDRESS.fullmatch(address)
        visit = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        assert b"discreet studio" in visit.open(address).read()
        page = visit.open(address.partition("/enter")[0]).read().decode()
        assert "answers.csv" in page
        (folder,) = (tmp_path / "tmp").glob(f"{PREFIX}*")
        assert folder.with_name(f".{folder.name}.lock").exists()
    assert running.returncode == 130
    assert not list((tmp_path / "tmp").iterdir())


def test_no_other_user_sees_the_token_in_the_list_of_programs(tmp_path):
    browser = tmp_path / "browser"
    browser.write_text(BROWSER)
    browser.chmod(0o700)
    variables = {"BROWSER": f"{browser} %s", "SEEN": str(tmp_path)}
    before = os.umask(0)
    try:
        with running_command(tmp_path, **variables) as running:
            address = running.stdout.readline().strip()
            while not (tmp_path / "arguments").exists():
                assert running.poll() is None
                time.sleep(0.02)
            started_with = (tmp_path / "arguments").read_text()
            assert "token" not in started_with
            assert address.partition("token=")[2] not in started_with
            assert (tmp_path / "mode").read_text().startswith("-rw-------")
            page = (tmp_path / "page").read_text()
            assert unescape(re.search(r'content="0;url=([^"]*)"', page)[1]) == address
            # The file has done its work when a browser has come in.
            assert get_page(address)[0] == 200
            (folder,) = (tmp_path / "tmp").glob(f"{PREFIX}*")
            assert not (folder / "enter.html").exists()
    finally:
        os.umask(before)


def test_whoever_started_it_is_told_of_a_second_visitor_and_gets_a_new_address(tmp_path):
    ours, terminal = os.openpty()
    try:
        with running_command(tmp_path, "--no-browser", stdin=terminal) as running:
            first = running.stdout.readline().strip()
            assert "press Enter for a new one" in running.stderr.readline()
            assert get_page(first)[0] == 200
            code, page = get_page(first)
            assert code == 403
            assert "was used already" in page
            assert "had been used already, and was refused" in running.stderr.readline()
            os.write(ours, b"\n")
            second = running.stdout.readline().strip()
            assert ADDRESS.fullmatch(second)
            assert second != first
            assert get_page(first)[0] == 403
            assert get_page(second)[0] == 200
    finally:
        os.close(ours)
        os.close(terminal)


def test_the_command_refuses_a_file_that_is_not_there(tmp_path):
    ended = discreet("studio", str(tmp_path / "nothing.csv"), "--no-browser")
    assert ended.code == 2
    assert "nothing.csv" in ended.err


def test_the_command_names_the_extra_that_it_needs(monkeypatch):
    monkeypatch.setattr("discreet.cli.app.find_spec", lambda name: None)
    ended = discreet("studio", "--no-browser")
    assert ended.code == 2
    assert "[studio]" in ended.err


def test_no_module_reaches_out():
    folder = Path(os.fspath(sys.modules["discreet.studio"].__path__[0]))
    for path in folder.rglob("*.py"):
        assert not re.search(
            r"import (requests|httpx|urllib|http\.client)|urlopen", path.read_text()
        )


@pytest.mark.usefixtures("in_place")
def test_a_table_of_very_many_columns_can_be_changed_in_its_form(session, browser):
    names = [f"i{number}" for number in range(1200)]
    rows = [",".join(str((n * k) % 7 % 2) for k in range(1, 1201)) for n in range(1, 9)]
    send(browser, "wide.csv", "\n".join([",".join(names), *rows]).encode())
    assert "8 persons, 1,200 items" in read(browser)
    left_out = {f"role:{n}": "left out" for n in range(1100, 1200)}
    page = change(browser, **left_out, **{f"role:{n}": "group" for n in range(70)})
    assert "8 persons, 1,030 items" in page
    assert page.count("<summary>970 more items</summary>") == 1
    assert page.count("<summary>10 more columns</summary>") == 1
