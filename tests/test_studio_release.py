"""The studio spends once: ledgers that stay, and releases in the only order that is safe."""

import json
import stat
from html import unescape

import pytest
from starlette.testclient import TestClient

from commandline import discreet
from discreet.privacy.accounting import Budget
from discreet.privacy.accounting.moves import calibrate_counts
from discreet.privacy.ledger import Ledger
from discreet.studio.app import build_app
from discreet.studio.home import Home
from discreet.studio.recent import Recent
from discreet.studio.session import Session
from test_studio import HOST, KEYS, ORIGIN


@pytest.fixture
def session(tmp_path):
    (tmp_path / "private").mkdir()
    state = tmp_path / "state"
    made = Session(
        tmp_path / "private",
        Recent(state / "studio.json"),
        home=Home(tmp_path / "home"),
        books=Recent(state / "ledgers.json"),
    )
    yield made
    made.jobs.end()


@pytest.fixture
def browser(session):
    client = TestClient(build_app(session, KEYS), base_url=f"http://{HOST}", follow_redirects=False)
    assert client.get(f"/enter?token={KEYS.token}").status_code == 200
    return client


def post(browser, address, **said):
    return browser.post(address, data=said, headers=ORIGIN)


def make_ledger(browser, name="Grade 8", epsilon="2", **said):
    return post(browser, "/ledgers", name=name, epsilon=epsilon, delta="1e-6", **said)


# -- ledgers ---------------------------------------------------------------------------------


def test_a_ledger_is_made_in_a_folder_that_stays(session, browser, tmp_path):
    made = make_ledger(browser)
    assert made.headers["location"] == "/ledgers/ledger-1"
    path = tmp_path / "home" / "ledgers" / "Grade 8.db"
    assert session.folder not in path.parents
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert Ledger.open(path).limit == Budget(2, 1e-6)
    page = unescape(browser.get("/ledgers/ledger-1").text)
    assert "Grade 8" in page
    assert "<svg" in page
    assert f"discreet ledger show '{path}'" in page
    assert discreet("ledger", "show", path).code == 0
    assert "Grade 8" in browser.get("/ledgers").text


def test_populations_are_declared_with_the_ledger_or_not_at_all(session, browser):
    refused = make_ledger(browser, populations="north,everyone")
    assert refused.status_code == 400
    assert "contains every population" in unescape(refused.text)
    assert not session.home.list_ledgers()
    make_ledger(browser, populations="north, south", apart="no")
    (path,) = session.home.list_ledgers()
    known = Ledger.open(path).history().populations
    assert known.names == ("north", "south")
    assert known.are_disjoint("north", "south")
    post(browser, "/ledgers/ledger-1", population="nation", contains="north,south")
    assert Ledger.open(path).history().populations.parts_of("nation") == ["north", "south"]
    refused = post(browser, "/ledgers/ledger-1", population="nation", disjoint="north")
    assert refused.status_code == 400
    assert "declared disjoint" in unescape(refused.text)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"name": "../../evil"}, "cannot be the name of a file"),
        ({"name": "/etc/evil"}, "cannot be the name of a file"),
        ({"name": ".."}, "cannot be the name of a file"),
        ({"name": ""}, "Name: this field is blank"),
        ({"epsilon": "many"}, "is no number"),
        ({"epsilon": "-1"}, "epsilon"),
        ({"epsilon": "nan"}, "epsilon"),
        ({"neighbours": "enemies"}, "not one of its choices"),
        ({"policy": "rules.toml"}, "whole path"),
        ({"policy": "/nowhere/rules.toml"}, "/nowhere/rules.toml"),
    ],
)
def test_a_ledger_that_cannot_be_made_is_refused_in_words(session, browser, tmp_path, said, words):
    refused = make_ledger(browser, **{"name": "fine", "epsilon": "1", **said})
    assert refused.status_code == 400
    assert words in unescape(refused.text)
    assert not list(tmp_path.rglob("*evil*"))
    assert not session.home.list_ledgers()


def test_a_ledger_is_never_made_twice(session, browser):
    make_ledger(browser)
    (path,) = session.home.list_ledgers()
    before = path.read_bytes()
    assert "never overwritten" in unescape(make_ledger(browser).text)
    assert path.read_bytes() == before


def test_a_ledger_elsewhere_is_opened_remembered_and_forgotten(session, browser, tmp_path):
    path = tmp_path / "office" / "spent.db"
    path.parent.mkdir()
    Ledger.create(path, 1.0)
    opened = post(browser, "/ledgers/open", path=f"'{path}'")
    assert opened.headers["location"] == "/ledgers/ledger-1"
    again = Session(session.folder, session.recent, home=session.home, books=session.books)
    assert list(again.list_ledgers().values()) == [path]
    post(browser, "/ledgers/forget", ledger="ledger-1")
    assert browser.get("/ledgers/ledger-1").status_code == 404
    assert path.exists()
    assert not session.books.paths()


def test_what_is_no_ledger_is_refused_and_a_damaged_one_is_named(session, browser, tmp_path):
    for path, words in (("spent.db", "whole path"), (tmp_path / "none.db", "no ledger here")):
        refused = post(browser, "/ledgers/open", path=str(path))
        assert refused.status_code == 400
        assert words in unescape(refused.text)
    make_ledger(browser)
    (path,) = session.home.list_ledgers()
    path.write_bytes(b"nothing of the kind" * 100)
    assert "not a ledger" in unescape(browser.get("/ledgers").text)
    assert browser.get("/ledgers/ledger-1").status_code == 400
    assert browser.get("/ledgers/ledger-1/spending.html").status_code == 400


def test_the_spending_report_is_the_command_lines(session, browser):
    make_ledger(browser, populations="north")
    (path,) = session.home.list_ledgers()
    ledger = Ledger.open(path)
    _, spend = calibrate_counts(12, Budget(0.5, 1e-6))
    mark = ledger.fingerprint([b"row"])
    ledger.reserve(spend, fingerprint=mark, description="spring", population="north")
    page = browser.get("/ledgers/ledger-1").text
    assert "Release 1 was paid for" not in page  # nothing says what was asked for
    report = browser.get("/ledgers/ledger-1/spending.md")
    assert report.text.strip() == discreet("ledger", "report", path).out.strip()
    told = json.loads(browser.get("/ledgers/ledger-1/spending.json").text)
    assert told == discreet("ledger", "report", path, "--json").document
    assert str(path) not in report.text
    sent = browser.get("/ledgers/ledger-1/spending.html")
    assert "attachment" in sent.headers["content-disposition"]
    for kind in ("exe", "../../x"):
        assert browser.get(f"/ledgers/ledger-1/spending.{kind}").status_code == 404


def test_a_ledger_that_wants_approvals_says_what_to_do(browser, tmp_path):
    path = tmp_path / "signed.db"
    Ledger.create(path, 1.0, approvals=2, policy={"max_epsilon": 0.5})
    post(browser, "/ledgers/open", path=str(path))
    page = browser.get("/ledgers/ledger-1").text
    assert "discreet propose" in page
    assert "epsilon per release at most 0.5" in page
