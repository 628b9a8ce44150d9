"""The studio spends once: ledgers that stay, and releases in the only order that is safe."""

import io
import json
import re
import shlex
import stat
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from html import unescape

import pytest
from test_studio import ORIGIN, enter

import studio_tasks
from commandline import discreet
from discreet.api.calibrating import fit
from discreet.api.scales import create_bank
from discreet.datasets import lsat, wellbeing
from discreet.errors import BadUsage
from discreet.privacy.accounting import Budget
from discreet.privacy.accounting.additive_noise import calibrate_counts
from discreet.privacy.ledger import Ledger
from discreet.publishing.release import release
from discreet.publishing.verification import read_release
from discreet.report.statement import write_statement
from discreet.scales.bank import write_bank
from discreet.studio import pages
from discreet.studio.jobs import JobState, TaskProgress
from discreet.studio.kept_files import EXAMPLES, Home, Recent
from discreet.studio.pages.release import start_release
from discreet.studio.releasing import read_listed
from discreet.studio.session import StudioSession, Ticket
from refusals import refused
from studio_tasks import InPlace


@pytest.fixture
def session(tmp_path):
    (tmp_path / "private").mkdir()
    state = tmp_path / "state"
    made = StudioSession(
        tmp_path / "private",
        Recent(state / "studio.json"),
        home=Home(tmp_path / "home"),
        books=Recent(state / "ledgers.json"),
    )
    yield made
    made.jobs.end()


@pytest.fixture
def browser(session):
    return enter(session)


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
    again = StudioSession(session.folder, session.recent, home=session.home, books=session.books)
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
    ledger.reserve(spend, fingerprint="f", description="spring", population="north")
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


def test_a_ledger_that_wants_approvals_says_so_and_has_its_rules(browser, tmp_path):
    path = tmp_path / "signed.db"
    Ledger.create(path, 1.0, approvals=2, policy={"max_epsilon": 0.5})
    post(browser, "/ledgers/open", path=str(path))
    page = browser.get("/ledgers/ledger-1").text
    assert "Every release has to be signed by 2 approvers." in page
    assert "epsilon per release at most 0.5" in page
    assert "discreet steward" not in page


# -- releases --------------------------------------------------------------------------------

LSAT = [f"Item{number}" for number in range(1, 6)]
LISTED = "\n".join(LSAT)
TERMS = {"epsilon": "1", "delta": "1e-6", "persons": "1,000", "account": "ledger-1/everyone"}


@pytest.fixture
def lsat_file(tmp_path):
    path = tmp_path / "lsat.csv"
    path.write_text(EXAMPLES["lsat.csv"].write())
    return path


@pytest.fixture
def asked(session, browser, lsat_file):
    """A ledger, and a file of answers that nobody has looked at."""
    make_ledger(browser)
    opened = post(browser, "/releases/unseen", path=str(lsat_file))
    assert opened.headers["location"] == "/release/work-1"
    return browser


def ask(browser, items=LISTED, name="items.txt", address="/release/work-1", **said):
    files = {"file": (name, items)} if items else {"file": ("", "")}
    return browser.post(address, data={**TERMS, **said}, files=files, headers=ORIGIN)


def get_ticket(browser, **said):
    asked = ask(browser, **said)
    assert asked.status_code == 303, unescape(asked.text)
    return asked.headers["location"]


def confirm(browser, ticket, epsilon="1"):
    return post(browser, ticket, epsilon=epsilon)


def fetch(browser, ticket):
    """Follow a release until it is made or has failed; return the last answer."""
    while "data-job" in (page := browser.get(ticket)).text:
        time.sleep(0.05)
    while page.status_code == 303:
        page = browser.get(page.headers["location"])
    return page


def list_spent(session):
    (path,) = session.home.list_ledgers()
    return Ledger.open(path).releases()


def unpack(browser, session, tmp_path):
    (name,) = session.home.list_releases()
    sent = browser.get(f"/bundles/{name}/zip")
    assert sent.headers["content-disposition"] == f'attachment; filename="{name}.zip"'
    with zipfile.ZipFile(io.BytesIO(sent.content)) as packed:
        packed.extractall(tmp_path / "unpacked")
    return tmp_path / "unpacked" / name


def test_a_release_is_made_in_the_safe_order(session, asked, tmp_path, in_place):
    assert "Nobody has looked at these answers" in asked.get("/release/work-1").text
    ticket = get_ticket(asked, title="Law school | test", number="fixed")
    page = unescape(asked.get(ticket).text)
    assert "typically be off by" in page
    assert "half of the epsilon" in page
    planned = unescape(asked.get(re.search(r'href="(/plan\?[^"]+)"', page)[1]).text)
    assert 'value="1000"' in planned
    assert not list_spent(session)
    foretold = re.search(r"<blockquote[^>]*>(.*?)<dl", page, re.S)[1]
    assert confirm(asked, ticket).headers["location"] == ticket
    made = fetch(asked, ticket)
    assert "numbers and the promise may be published" in made.text
    (entry,) = list_spent(session)
    assert entry.reservation == ticket.rpartition("/")[2]
    assert entry.completed_at
    folder = unpack(asked, session, tmp_path)
    ended = discreet("verify", folder)
    assert ended.code == 0, ended.err
    statement = (folder / "statement.md").read_text()
    said = re.findall(r"<p>(.*?)</p>", foretold, re.S)
    assert len(said) >= 5
    for paragraph in said:  # whether there are ids is seen when the file is opened
        assert paragraph.replace(*UNIT) in statement
    assert json.loads((folder / "privacy.json").read_text())["persons"] == 1000
    assert not session.works["work-1"].reading  # nobody has looked


UNIT = (
    "One id, or one row where there are no ids, counts as one person; whoever has two counts as "
    "two.",
    "One row counts as one person; whoever is in two rows counts as two.",
)


def test_the_preview_is_the_statement_word_for_word(session, asked, in_place):
    for more in (
        {"number": "fixed"},
        {"neighbours": "add-remove"},
        {"max_answers": "3", "language": "de"},
    ):
        ticket = get_ticket(asked, epsilon="0.1", title="A test", **more)
        terms = session.tickets[ticket.rpartition("/")[2]].terms
        record = terms.preview().record
        confirm(asked, ticket, "0.1")
        assert fetch(asked, ticket).status_code == 200
        (folder,) = (
            p for n, p in session.home.list_releases().items() if n in asked.get("/releases").text
        )
        written = (folder / "statement.md").read_text()
        counted = write_statement({**record, "person_is": "row"})
        assert counted.replace("as counted in the data", "1000") == written
        session.home.put_release_away(folder.name)
        (path,) = session.home.list_ledgers()
        path.unlink()
        make_ledger(asked)


def test_a_second_click_a_reload_and_another_tab_spend_once(session, asked, in_place):
    ticket = get_ticket(asked)
    for _ in range(3):
        assert confirm(asked, ticket).headers["location"] == ticket
        assert fetch(asked, ticket).status_code == 200
    other = get_ticket(asked)  # the same form, filled in in another tab
    assert other != ticket
    assert "was made already" in asked.get(other).text
    assert confirm(asked, other).headers["location"] == ticket
    assert len(list_spent(session)) == 1
    changed = get_ticket(asked, version="2")
    confirm(asked, changed)
    assert fetch(asked, changed).status_code == 200
    assert len(list_spent(session)) == 2


def test_many_clicks_at_a_time_start_one_job(session, asked):
    ticket = get_ticket(asked)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: confirm(asked, ticket), range(8)))
    assert {one.headers["location"] for one in answers} == {ticket}
    assert len(list(session.jobs)) == 1
    assert fetch(asked, ticket).status_code == 200
    assert len(list_spent(session)) == 1


def test_should_two_jobs_start_the_ledger_is_charged_once(session, asked, in_place, monkeypatch):
    """Plant the fault that tickets are not looked at: the ledger's own name for a charge holds."""
    monkeypatch.setattr(Ticket, "is_used", False)
    ticket = get_ticket(asked)
    for _ in range(2):
        confirm(asked, ticket)
    assert len(list(session.jobs)) == 2
    assert [job.state for job in session.jobs] == [JobState.DONE] * 2
    assert len(list_spent(session)) == 1


def test_without_both_safeguards_it_would_be_charged_twice(session, asked, in_place, monkeypatch):
    """Show that the tests above can fail: with both faults planted, the budget is spent twice."""
    monkeypatch.setattr(Ticket, "is_used", False)
    started = []

    def forget_the_name(session, ticket):
        again = replace(ticket, name=Ledger.name_reservation())
        started.append(start_release(session, replace(again, place=ticket.place / again.name)))
        return started[-1]

    monkeypatch.setattr(pages.release, "start_release", forget_the_name)
    ticket = get_ticket(asked)
    for _ in range(2):
        confirm(asked, ticket)
    assert len(list_spent(session)) == 2


@pytest.mark.parametrize("typed", ["", "0.9", "10", "one", "1e", "nan"])
def test_what_is_not_confirmed_is_not_spent(session, asked, typed):
    ticket = get_ticket(asked)
    refused = confirm(asked, ticket, typed)
    assert refused.status_code == 400
    assert "Nothing was spent" in refused.text
    assert not list_spent(session)
    assert not list(session.jobs)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"epsilon": ""}, "Epsilon: this field is blank"),
        ({"epsilon": "0"}, "epsilon"),
        ({"epsilon": "3"}, "Nothing was charged"),
        ({"persons": "many"}, "no whole number"),
        ({"max_answers": "1"}, "at least 2"),
        ({"account": "ledger-9/everyone"}, "not one of its choices"),
        ({"account": "../../etc/passwd"}, "not one of its choices"),
        ({"account": ""}, "Charge it to: this field is blank"),
        ({"mechanism": "magic"}, "not one of its choices"),
        ({"supersedes": "1"}, "must say why"),
        ({"model": "rating-scale"}, "the list names none"),
        ({"items": ""}, "There is no list of items"),
        ({"items": "Item1\nItem1\n"}, "on the list already"),
        ({"items": "Item1\n"}, "at least 2 items"),
        ({"items": "a,1,0\nb,1,1\n"}, "looks like a table"),
        ({"items": "item,steps\nItem1,many\n"}, "items.txt, line 2"),
        ({"items": "", "items_path": "/nowhere/items.txt"}, "no such file"),
        ({"items": "", "items_path": "items.txt"}, "whole path"),
    ],
)
def test_terms_that_cannot_be_are_refused_before_the_answers_are_opened(
    session, asked, said, words
):
    refused = ask(asked, **said)
    assert refused.status_code == 400
    assert words in unescape(refused.text)
    assert str(session.folder) not in refused.text
    assert not session.tickets


def test_items_are_never_taken_from_the_answers(session, asked, lsat_file):
    for said in ({"items": lsat_file.read_text()}, {"items": "", "items_path": str(lsat_file)}):
        refused = ask(asked, **said)
        assert refused.status_code == 400
        assert "This is the file of the answers" in refused.text
    assert not session.tickets


def test_items_come_from_a_bank_and_with_their_steps(session, asked, tmp_path):
    bank = create_bank(fit(lsat()), scale="law", source="spring")
    write_bank(tmp_path / "bank.csv", bank)
    ticket = get_ticket(asked, items="", items_path=str(tmp_path / "bank.csv"))
    assert session.tickets[ticket.rpartition("/")[2]].terms.items == LSAT
    assert asked.get(f"{ticket}/items.csv").text == "".join(f"{name}\n" for name in LSAT)
    steps = "item,steps\n" + "".join(f"{name},4\n" for name in LSAT)
    ticket = get_ticket(asked, items=steps)
    assert "thresholds of all steps" in asked.get(ticket).text
    assert asked.get(f"{ticket}/items.csv").text == steps


def test_steps_come_from_a_public_bank_and_never_from_a_confidential_one(tmp_path):
    answers, items = wellbeing(), wellbeing().items
    for calibration, name in (
        (fit(answers), "confidential.csv"),
        (release(answers, Budget(3.0), items=dict.fromkeys(items, 4), persons=600), "public.csv"),
    ):
        write_bank(tmp_path / name, create_bank(calibration, scale="mood", source="spring"))
    found = read_listed(tmp_path / "public.csv", "public.csv", tmp_path / "none.csv")
    assert found.items == dict.fromkeys(items, 4)
    with pytest.raises(BadUsage, match="confidential bank"):
        read_listed(tmp_path / "confidential.csv", "confidential.csv", tmp_path / "none.csv")


def test_a_form_that_was_refused_keeps_its_list_and_what_was_typed(session, asked):
    page = ask(asked, epsilon="", title="Mine").text
    assert "In use: items.txt, 5 items" in page
    kept = re.search(r'name="kept" value="([^"]+)"', page)[1]
    ticket = get_ticket(asked, items="", kept=kept)
    again = asked.get(f"/release/work-1?from={ticket.rpartition('/')[2]}").text
    assert 'value="1000"' in again
    assert "In use: items.txt" in again


def test_what_was_planned_is_taken_along(asked):
    page = asked.get("/release/work-1?epsilon=0.7&max_answers=4&mechanism=margins&junk=1").text
    assert 'name="epsilon" id="field-epsilon" value="0.7"' in page
    assert '<option value="margins" selected>' in page
    assert "junk" not in page


def test_without_a_ledger_there_is_no_release(session, browser, lsat_file):
    post(browser, "/releases/unseen", path=str(lsat_file))
    assert "There is no ledger yet" in browser.get("/release/work-1").text
    assert ask(browser).status_code == 400
    make_ledger(browser)
    ticket = get_ticket(browser)
    (path,) = session.home.list_ledgers()
    path.unlink()
    refused = browser.get(ticket)
    assert refused.status_code == 400
    assert "there is no ledger here" in unescape(refused.text)


def test_a_ledger_that_wants_approvals_offers_to_propose(browser, lsat_file, tmp_path):
    Ledger.create(tmp_path / "signed.db", 1.0, approvals=1)
    post(browser, "/ledgers/open", path=str(tmp_path / "signed.db"))
    post(browser, "/releases/unseen", path=str(lsat_file))
    page = browser.get(get_ticket(browser)).text
    assert "signed takes only releases that 1 colleague has signed." in page
    assert "Propose this release" in page


def test_a_policy_gets_the_number_that_was_typed(session, browser, lsat_file, tmp_path, in_place):
    rules = tmp_path / "policy.toml"
    rules.write_text("min_persons = 900\nmax_epsilon = 1.0\n")
    make_ledger(browser, policy=str(rules))
    post(browser, "/releases/unseen", path=str(lsat_file))
    assert "1,000 persons or more" not in ask(browser).text
    assert "900 persons or more" in unescape(ask(browser, persons="800").text)
    ticket = get_ticket(browser, neighbours="add-remove")
    confirm(browser, ticket)
    assert fetch(browser, ticket).status_code == 200
    (entry,) = list_spent(session)
    assert entry.order["persons"] is None


def test_what_was_seen_of_the_answers_is_said(asked, in_place):
    assert asked.get("/data/work-1").status_code == 200
    page = unescape(asked.get("/release/work-1").text)
    assert "You have looked at these answers in this studio." in page
    assert "the promise does not hold" in page
    assert "You have looked at these answers" in unescape(asked.get(get_ticket(asked)).text)


def read_records(session):
    paths = session.home.list_releases().values()
    return [json.loads((path / "privacy.json").read_text()) for path in paths]


def test_a_release_of_answers_that_were_looked_at_says_so(session, asked, in_place, lsat_file):
    asked.get("/data/work-1")
    assert session.works["work-1"].reading is not None
    ticket = get_ticket(asked)
    page = unescape(asked.get(ticket).text)
    assert "The answers were looked at before the item list, the cap" in page
    assert "without looking" not in page
    assert "--looked" in page
    assert "looked=True" in page
    confirm(asked, ticket)
    fetch(asked, ticket)
    assert [one["looked"] for one in read_records(session)] == [True]
    # Opening the same file once more does not make it unseen.
    opened = post(asked, "/releases/unseen", path=str(lsat_file)).headers["location"]
    assert "You have looked at these answers" in unescape(asked.get(opened).text)


def test_looking_between_the_terms_and_the_click_counts_too(session, asked, in_place):
    ticket = get_ticket(asked)
    assert "were looked at before" not in unescape(asked.get(ticket).text)
    asked.get("/data/work-1")
    confirm(asked, ticket)
    fetch(asked, ticket)
    assert [one["looked"] for one in read_records(session)] == [True]


@pytest.mark.parametrize("looked", ["", "yes"])
def test_whether_somebody_looked_elsewhere_is_asked(session, asked, in_place, looked):
    ticket = get_ticket(asked, looked=looked)
    changed = asked.get(f"/release/work-1?from={ticket.rpartition('/')[2]}").text
    assert ('<option value="yes" selected>' in changed) == bool(looked)
    confirm(asked, ticket)
    fetch(asked, ticket)
    assert [one["looked"] for one in read_records(session)] == [bool(looked)]


def test_answers_that_cannot_be_released_cost_nothing(session, asked, in_place):
    ticket = get_ticket(asked, persons="900", number="fixed")
    confirm(asked, ticket)
    failed = asked.get(ticket)
    assert failed.status_code == 400
    assert "900" in failed.text
    assert ". Nothing was spent." in failed.text
    assert "the refusal told something about them" in failed.text
    assert "Confidential" in failed.text
    assert not list_spent(session)


def test_a_crash_after_the_charge_is_made_good_without_paying(
    session, asked, in_place, monkeypatch
):
    """The worker dies when the values are stored and the bundle is not written."""

    def die(*_):
        raise RuntimeError("the power went out")

    with monkeypatch.context() as broken:
        broken.setattr("discreet.publishing.delivery.bundle_files", die)
        ticket = get_ticket(asked)
        confirm(asked, ticket)
    failed = asked.get(ticket).text
    assert "The budget is spent" in failed
    assert "Get it without paying again" in failed
    assert "was paid for and has not arrived" in asked.get("/releases").text
    assert "was paid for and has not arrived" in asked.get("/ledgers/ledger-1").text
    confirm(asked, ticket, "")
    assert fetch(asked, ticket).status_code == 200
    (entry,) = list_spent(session)
    assert entry.completed_at
    assert "has not arrived" not in asked.get("/releases").text


def test_where_the_ledger_cannot_be_opened_nothing_is_spent_unasked(session, asked, in_place):
    """The button that costs nothing must never be the one that spends."""
    ticket = get_ticket(asked, persons="900", number="fixed")
    confirm(asked, ticket)  # fails before the charge
    (path,) = session.home.list_ledgers()
    kept = path.read_bytes()
    path.write_bytes(b"damaged")
    page = asked.get(ticket)
    assert page.status_code == 400
    assert "cannot be opened just now" in page.text
    assert "Get it without paying again" not in page.text
    assert confirm(asked, ticket, "").status_code == 400
    path.write_bytes(kept)
    assert confirm(asked, ticket, "").status_code == 400
    assert len(list(session.jobs)) == 1


@pytest.mark.parametrize("stored", [True, False])
def test_a_new_studio_finishes_what_an_old_one_paid_for(
    session, asked, in_place, monkeypatch, stored, tmp_path, lsat_file
):
    def die(*_):
        raise RuntimeError("the power went out")

    late, early = "publishing.delivery.bundle_files", "privacy.ledger.LedgerSafe.keep"
    with monkeypatch.context() as broken:
        broken.setattr(f"discreet.{late if stored else early}", die)
        confirm(asked, get_ticket(asked))
    new = StudioSession(tmp_path / "private", Recent(None), home=session.home, books=Recent(None))
    new.__dict__["jobs"] = InPlace(tmp_path / "state")
    client = enter(new)
    page = client.get("/releases").text
    assert "was paid for and has not arrived" in page
    if not stored:
        assert "it needs the same answers again" in page
        post(client, "/releases/unseen", path=str(lsat_file))
        assert "The same answers again" in client.get("/releases").text
    (tmp_path / "state").mkdir(exist_ok=True)
    sent = post(client, "/ledgers/ledger-1/resume", number="1", work="" if stored else "work-1")
    assert fetch(client, sent.headers["location"]).status_code == 200
    assert len(list_spent(session)) == 1
    assert discreet("verify", *session.home.list_releases().values()).code == 0
    again = post(client, "/ledgers/ledger-1/resume", number="1")
    assert fetch(client, again.headers["location"]).status_code == 200
    assert len(list_spent(session)) == 1


def test_a_release_of_an_earlier_day_on_the_same_terms_is_named(
    session, asked, in_place, monkeypatch
):
    with monkeypatch.context() as broken:
        broken.setattr("discreet.publishing.delivery.bundle_files", lambda *_: 1 / 0)
        confirm(asked, get_ticket(asked))
    session.tickets.clear()  # as in a new studio
    page = asked.get(get_ticket(asked)).text
    assert "Release 1 of this ledger" in page
    assert "Get that one" in page
    assert "Release 1 of this ledger" not in asked.get(get_ticket(asked, epsilon="0.5")).text


def test_it_can_be_cancelled_before_the_charge_and_not_after(session, asked, tmp_path):
    job = session.jobs.start("Spending", studio_tasks.spend, gate=str(tmp_path / "gate"))
    while not job.progress["committed"]:
        time.sleep(0.02)
    post(asked, f"/jobs/{job.name}/cancel")
    assert job.state is JobState.RUNNING
    (tmp_path / "gate").touch()
    session.jobs.end()  # waits for it
    assert job.outcome.value == "spent"
    other = session.jobs.start("Waiting", studio_tasks.wait)
    post(asked, f"/jobs/{other.name}/cancel")
    assert other.state is JobState.CANCELLED
    with refused(BadUsage, "cancelled_before_anything_spent"):
        TaskProgress(other.folder).commit()


def test_a_release_stays_on_the_list_until_it_is_taken_off(session, asked, in_place, tmp_path):
    ticket = get_ticket(asked, title="Spring <test>")
    confirm(asked, ticket)
    page = fetch(asked, ticket).text
    (name,) = session.home.list_releases()
    assert name.startswith("spring-test-")
    assert f"/bundles/{name}" in asked.get("/releases").text
    shown = asked.get(f"/bundles/{name}/page")
    policy = shown.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts;")
    assert "allow-same-origin" not in policy
    assert "Spring &lt;test&gt;" in shown.text
    assert "<test>" not in page
    post(asked, f"/bundles/{name}/away")
    assert not session.home.list_releases()
    assert discreet("verify", session.home.put_away / name).code == 0
    assert asked.get(f"/bundles/{name}").status_code == 404


@pytest.mark.parametrize("name", ["%2e%2e", "..%2fledgers", "%2fetc", "put away", "x"])
def test_names_of_releases_lead_nowhere_else(session, asked, in_place, name):
    confirm(asked, get_ticket(asked))
    for end in ("", "/zip", "/page"):
        assert asked.get(f"/bundles/{name}{end}").status_code in (404, 405)
    post(asked, f"/bundles/{name}/away")
    assert len(session.home.list_releases()) == 1


def test_a_release_that_was_changed_is_neither_shown_nor_sent(session, asked, in_place):
    confirm(asked, get_ticket(asked))
    (folder,) = session.home.list_releases().values()
    with (folder / "report.html").open("a") as page:
        page.write("<script>alert(1)</script>")
    for end in ("", "/zip", "/page"):
        assert asked.get(f"/bundles/{folder.name}{end}").status_code == 400
    assert "report.html" in asked.get("/releases").text


def test_the_same_elsewhere_runs(session, asked, in_place, tmp_path, monkeypatch):
    session.change("work-1", lambda now: {"options": {"missing": ["9"]}})
    said = {"title": "A test", "version": "2", "max_answers": "4", "number": "fixed"}
    ticket = get_ticket(asked, epsilon="0.5", **said)
    page = unescape(asked.get(ticket).text)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "items.csv").write_text(asked.get(f"{ticket}/items.csv").text)
    command = re.search(r'<pre id="same-command">(.*?)</pre>', page)[1]
    ended = discreet(*shlex.split(command)[1:])
    assert ended.code == 0, ended.err
    code = re.search(r'<pre id="same-python">(.*?)</pre>', page, re.S)[1]
    known = {}
    exec(code.replace("out='", "out='again-"), known)  # noqa: S102
    confirm(asked, ticket, "0.5")
    fetch(asked, ticket)
    ours, theirs = (
        one.record
        for one in (
            read_release(next(iter(session.home.list_releases().values()))),
            known["published"],
        )
    )
    for name in ("mechanism", "items", "max_answers", "persons", "number_fixed", "identity"):
        assert ours[name] == theirs[name]
    first, *others = [one.order for one in list_spent(session)]
    assert others == [first] * 2


# -- the form --------------------------------------------------------------------------------


def test_the_person_column_is_asked_and_other_columns_are_left_out(session, browser, tmp_path):
    make_ledger(browser)
    path = tmp_path / "national.csv"
    rows = "".join(f"p{n},N,{n % 2},{n // 2 % 2}\n" for n in range(400))
    path.write_text(f"pupil,region,M1,M2\n{rows}")
    post(browser, "/releases/unseen", path=str(path))
    session.__dict__["jobs"] = InPlace(session.folder)
    ticket = get_ticket(browser, items="M1\nM2", persons="400", person="pupil")
    assert "--person pupil" in browser.get(ticket).text
    confirm(browser, ticket)
    assert "Download everything" in fetch(browser, ticket).text
    assert session.works["work-1"].reading is None  # nobody has looked
    assert str(path) in session.recent.paths()


@pytest.fixture
def looked_at(session, browser, tmp_path):
    """A file that a release reads by none of its fixed rules, after somebody looked at it."""
    make_ledger(browser)
    path = tmp_path / "survey.csv"
    rows = "".join(f"p{n};{n % 2};{(n // 2) % 2};{9 if n % 7 == 0 else n % 2}\n" for n in range(90))
    path.write_text(f"Survey of spring;;;\npupil;M1;M2;M3\n{rows}")
    session.__dict__["jobs"] = InPlace(session.folder)
    post(browser, "/open", path=str(path))
    browser.get("/data/work-1")
    return browser


def list_values(page):
    """Return what stands in each field of a form, and what was found beside it."""
    fields = re.findall(r'<div class="field">(.*?)</div>', page, re.S)
    values = {}
    for one in fields:
        name = re.search(r'name="(\w+)"', one)[1]
        value = re.search(r'value="([^"]*)"', one) if "<input" in one else None
        chosen = re.search(r'<option value="([^"]*)" selected', one)
        found = re.search(r"<strong>Found: (.*?)\. State it only if", one)
        given = value[1] if value else (chosen[1] if chosen else "")
        values[name] = given, found and found[1]
    return values


def test_what_was_found_stands_beside_empty_fields(looked_at):
    values = list_values(unescape(looked_at.get("/release/work-1").text))
    found = {name: beside for name, (_, beside) in values.items() if beside is not None}
    assert found["delimiter"] == ";"
    assert found["skip_rows"] == "1"
    assert found["person"] == "pupil"
    assert found["missing"].startswith("9")
    assert {values[name][0] for name in found} == {""}


def test_a_form_that_is_sent_as_it_came_states_nothing(session, looked_at):
    """What a program found in the data is no statement of the steward."""
    values = list_values(unescape(looked_at.get("/release/work-1").text))
    shown = {name: given for name, (given, _) in values.items() if given}
    ticket = get_ticket(looked_at, **{**shown, **TERMS}, items="M1\nM2\nM3")
    assert session.tickets[ticket.rpartition("/")[2]].terms.spec.reading == {}
    confirm(looked_at, ticket)
    page = unescape(fetch(looked_at, ticket).text)
    assert "Nothing was spent" in page
    assert not list_spent(session)


#: All that a release can be told about its reading, as it is typed; by sort of the answers.
TYPED = {
    "right": {
        "person": "who", "key": "ABC", "missing": "98,99", "one_means": "", "layout": "wide",
        "sheet": "7a", "delimiter": ";", "header": "no", "skip_rows": "2", "repeats": "last",
        "order_by": "when",
    },
    "points": {"at_least": "2.5", "item": "which", "response": "what", "layout": "long"},
    "mistakes": {"one_means": "wrong"},
    "steps": {"reverse": "M1,M3", "lowest": "1"},
}  # fmt: skip


@pytest.mark.parametrize("sort", TYPED)
def test_the_review_lists_all_that_will_be_used_to_read_the_answers(
    session, looked_at, sort, monkeypatch
):
    monkeypatch.setattr(pages.release, "check_columns", lambda *_: None)  # the file has others
    typed = TYPED[sort]
    steps = {"items": "item,steps\nM1,4\nM2,4\nM3,4\n", "name": "steps.csv", "kind": "steps"}
    more = steps if sort == "steps" else {"items": "M1\nM2\nM3"}
    ticket = get_ticket(looked_at, **more, **typed)
    terms = session.tickets[ticket.rpartition("/")[2]].terms
    stated = {name for name, text in typed.items() if text}
    assert {*terms.spec.reading, *({"lowest"} if sort == "steps" else ())} == stated
    listed = re.search(
        r'<dl class="about" id="reading">(.*?)</dl>', looked_at.get(ticket).text, re.S
    )
    shown = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", unescape(listed[1])))
    assert len(shown) == len(stated)
    for name in stated - {"repeats", "layout", "header", "one_means"}:  # those have words
        assert typed[name] in shown.values()
    if sort == "right":
        assert {"the last counts", "wide", "holds answers already"} <= set(shown.values())


def test_without_a_statement_the_review_says_that_fixed_rules_hold(looked_at):
    page = looked_at.get(get_ticket(looked_at, items="M1\nM2\nM3")).text
    assert "fixed rules hold" in page


def test_what_was_answered_on_the_data_page_does_not_come_along(session, looked_at):
    answered = {"at_least": 3, "ignore": ["M3"], "repeats": "last", "key": {"M1": "A"}}
    session.change("work-1", lambda _: {"options": answered, "reading": None})
    values = list_values(unescape(looked_at.get("/release/work-1").text))
    assert values["at_least"] == ("", "3")
    assert values["repeats"] == ("", "the last counts")
    ticket = get_ticket(looked_at, items="M1\nM2\nM3")
    assert session.tickets[ticket.rpartition("/")[2]].terms.spec.reading == {}


def test_a_refused_form_is_still_there(session, asked):
    refused = ask(asked, items="", title="My title", epsilon="many", person="who")
    assert refused.status_code == 400
    form = asked.get("/release/work-1").text
    for typed in ("My title", "many", "who"):
        assert f'value="{typed}"' in form
    lead = asked.get("/ledgers?back=/release/work-1").text
    assert 'name="back" value="/release/work-1"' in lead
    made = make_ledger(asked, name="Other", back="/release/work-1")
    assert 'href="/release/work-1">Back to the release' in asked.get(made.headers["location"]).text
    away = make_ledger(asked, name="Third", back="//evil.example")
    assert "evil" not in away.headers["location"]


def test_only_fields_that_were_asked_for_count(session, asked):
    ticket = get_ticket(asked, kind="right", edition="new", supersedes="1", reason="typo")
    terms = session.tickets[ticket.rpartition("/")[2]].terms
    assert not terms.spec.identity.to_dict().get("supersedes")
    refused = ask(asked, items="item,steps\nItem1,2\nItem2,2\n", name="steps.csv", kind="right")
    assert "Choose points or categories" in unescape(refused.text)


def test_rows_that_are_no_persons_are_taken_out_of_the_file_before_a_release(session, asked):
    session.change("work-1", lambda _: {"options": {"drop_rows": ["Total"]}})
    refused = ask(asked)
    assert refused.status_code == 400
    assert "A release reads every row" in unescape(refused.text)


def test_the_review_says_why_more_is_left_than_a_subtraction_gives(asked):
    page = unescape(asked.get(get_ticket(asked)).text)
    assert "2 less 1 would be 1. 1.67 is left because" in page


# -- colleagues who sign, versions that follow each other, files that are closed -------------------


def test_a_release_is_proposed_signed_and_delivered(
    session, browser, lsat_file, tmp_path, in_place
):
    make_ledger(browser, approvals="1")
    made = post(browser, "/ledgers/ledger-1/key", path=str(tmp_path / "ada.key"))
    public = re.search(r'value="(ed25519:[^"]+)"', made.text)[1]
    post(browser, "/ledgers/ledger-1/approver", name="Ada", public_key=public)
    assert "Ada" in browser.get("/ledgers/ledger-1").text
    post(browser, "/releases/unseen", path=str(lsat_file))
    ticket = get_ticket(browser, title="Law school")
    assert "Make the release" not in browser.get(ticket).text
    confirm(browser, ticket)
    assert not list_spent(session)  # nobody has signed
    address = post(browser, f"{ticket}/propose").headers["location"]
    page = unescape(browser.get(address).text)
    assert "1 signature is missing." in page
    assert "Item1, Item2, Item3, Item4, Item5; 5 in all" in page
    early = post(browser, f"{address}/deliver", path=str(lsat_file)).headers["location"]
    confirm(browser, early)
    fetch(browser, early)
    assert not list_spent(session)
    wrong = post(browser, f"{address}/sign", key=str(lsat_file))
    assert wrong.status_code == 400
    signed = post(browser, f"{address}/sign", key=str(tmp_path / "ada.key"))
    assert signed.status_code == 303, unescape(signed.text)
    assert "Signed by Ada." in browser.get(address).text
    sent = browser.get(f"{address}/request.json").text
    (tmp_path / "sent.json").write_text(sent)
    assert (
        post(browser, "/requests", path=str(tmp_path / "sent.json")).headers["location"] == address
    )
    delivered = post(browser, f"{address}/deliver", path=str(lsat_file)).headers["location"]
    confirm(browser, delivered)
    assert "numbers and the promise may be published" in fetch(browser, delivered).text
    (entry,) = list_spent(session)
    assert [one["name"] for one in entry.approved_by] == ["Ada"]
    assert discreet("verify", unpack(browser, session, tmp_path)).code == 0
    assert "was carried out" in browser.get(address).text
    assert "carried out" in browser.get("/releases").text


@pytest.mark.parametrize(
    ("said", "name"), [({"person": "pupil_id"}, "person"), ({"reverse": "Item9"}, "reverse")]
)
def test_a_column_that_is_not_there_is_told_at_its_field_and_nobody_has_looked(
    session, asked, said, name
):
    refused = ask(asked, kind="steps" if name == "reverse" else "right", **said)
    assert refused.status_code == 400
    page = unescape(refused.text)
    assert "There is no column “" in page
    field = re.search(rf'<div class="field wrong">\s*<label for="field-{name}">', page)
    assert field, page
    assert "Item1" not in page.partition("<main")[2]  # no other name of the file is told
    assert "Nobody has looked at these answers" in page
    assert not session.find_seen(session.works["work-1"])


def test_problems_stand_at_their_fields(asked):
    page = unescape(ask(asked, epsilon="much", persons="many").text)
    wrong = re.findall(r'<div class="field wrong">\s*<label for="field-(\w+)">', page)
    assert wrong == ["epsilon", "persons"]
    assert page.count("is no number. Type one") == 2  # above, and at the field


def test_a_correction_begins_with_what_was_released_and_follows_it(session, asked, in_place):
    first = get_ticket(asked, title="Law school", version="1", max_answers="4", number="fixed")
    confirm(asked, first)
    fetch(asked, first)
    (name,) = session.home.list_releases()
    link = f"/release/work-1?correct={name}"
    assert link in asked.get(f"/bundles/{name}").text
    page = unescape(asked.get(link).text)
    shown = dict(re.findall(r'name="(\w+)" id="field-\w+" value="([^"]*)"', page))
    assert (shown["title"], shown["version"], shown["supersedes"]) == ("Law school", "2", "1")
    assert (shown["epsilon"], shown["delta"], shown["persons"]) == ("1", "1e-06", "1000")
    assert shown["max_answers"] == "4"
    assert "In use: Law school, 5 items." in page
    assert re.search(r'value="correction" checked', page)
    kept = re.search(r'name="kept" value="([^"]+)"', page)[1]
    terms = {**shown, "kept": kept, "edition": "correction", "reason": "a wrong key"}
    wrong = ask(asked, items="", **{**terms, "supersedes": "77"})
    assert "There is no version “77” of “Law school”" in unescape(wrong.text)
    ticket = get_ticket(asked, items="", **terms)
    confirm(asked, ticket)
    assert "version 2, takes the place of version 1" in fetch(asked, ticket).text
    assert "version 1, replaced by version 2" in asked.get(f"/bundles/{name}").text
    listed = asked.get("/releases").text
    assert "version 1, replaced by version 2" in listed
    assert "version 2, takes the place of version 1" in listed
    assert "Law school (version 1, replaced by version 2)" in asked.get("/ledgers/ledger-1").text


def test_a_file_that_is_closed_leaves_nothing_behind(session, browser, in_place):
    content = EXAMPLES["lsat.csv"].write()
    sent = browser.post("/upload", files=[("file", ("mine.csv", content))], headers=ORIGIN)
    address = sent.headers["location"]
    browser.get(address)
    post(browser, address.replace("data", "calibrate"))
    assert [*session.folder.rglob("mine.csv")]
    assert "Close this file and delete its copy" in browser.get(address).text
    assert post(browser, f"{address}/close").headers["location"] == "/"
    assert not [*session.folder.iterdir()]
    assert "mine.csv" not in browser.get("/").text
    assert browser.get(address).status_code == 404


def test_a_file_that_was_opened_stays_where_it_is(session, browser, lsat_file, in_place):
    address = post(browser, "/open", path=str(lsat_file)).headers["location"]
    browser.get(address)
    post(browser, f"{address}/close")
    assert lsat_file.exists()
    assert not [*session.folder.iterdir()]
