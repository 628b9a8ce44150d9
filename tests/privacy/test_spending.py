"""The spending report of a ledger: right, complete, and fit to be published."""

import json
import warnings
from functools import cache

import pytest

from browser import needs_browser, visit
from commandline import discreet
from discreet.privacy.accounting import Budget
from discreet.privacy.accounting.additive_noise import calibrate_counts
from discreet.privacy.accounting.spend import Spend
from discreet.privacy.ledger import Ledger
from discreet.report.spending import describe_spending, write_spending_page, write_spending_text

ODD = "<b>south|1</b>"


@cache
def spend_of(epsilon: float) -> Spend:
    return calibrate_counts(500, Budget(epsilon, 1e-6))[1]


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    """Two regions and a nation, one of the three releases without a bundle."""
    ledger = Ledger.create(tmp_path / "hidden-place.db", 2.0, 1e-6)
    ledger.declare("north")
    ledger.declare(ODD, disjoint=["north"])
    ledger.declare("nation", contains=["north", ODD])
    for epsilon, name in ((0.96, "north"), (0.5, ODD), (0.7, "nation")):
        reservation = ledger.reserve(
            spend_of(epsilon),
            fingerprint=f"fingerprint-{epsilon}",
            description="a private note",
            population=name,
            order={"asked": "for this"},
        )
        if name != "nation":
            ledger.complete(reservation)
    return ledger


def report(ledger: Ledger, *options: object):
    return discreet("ledger", "report", ledger.path, *options)


def test_a_report_says_what_the_ledger_shows(ledger):
    told = report(ledger, "--json").document
    shown = discreet("ledger", "show", ledger.path, "--json").document
    assert told["limit"] == shown["limit"]
    assert told["largest"] == shown["largest"]
    assert told["largest"]["populations"] == ["north", "nation"]
    assert told["largest"]["epsilon"] == pytest.approx(1.2184, rel=1e-4)
    for row, other in zip(told["populations"], shown["populations"], strict=True):
        assert {name: row[name] for name in other} == other
    assert [one["epsilon"] for one in told["releases"]] == [0.96, 0.5, 0.7]
    assert [one["finished"] for one in told["releases"]] == [True, True, False]
    assert told["ledger"] == ledger.id


def test_a_report_holds_nothing_that_is_for_the_steward(ledger, tmp_path):
    texts = [report(ledger).out, report(ledger, "--json").out]
    for name in ("spending.html", "spending.md", "spending.json"):
        assert report(ledger, "--out", tmp_path / name).code == 0
        texts.append((tmp_path / name).read_text())
    secrets = ["fingerprint", "private note", "hidden-place", str(tmp_path), "asked", "digest"]
    secrets += [ledger.key.hex(), *(entry.reservation for entry in ledger.releases())]
    for text in texts:
        assert "1.218" in text
        assert not [secret for secret in secrets if secret in text]


def test_a_report_is_one_text_one_document_or_one_page(ledger, tmp_path):
    printed = report(ledger)
    assert printed.out.startswith("# What was spent on privacy\n")
    report(ledger, "--out", tmp_path / "spending.md")
    assert (tmp_path / "spending.md").read_text() == printed.out
    ended = report(ledger, "--out", tmp_path / "spending.json", "--json")
    assert json.loads((tmp_path / "spending.json").read_text()) == ended.document
    ended = report(ledger, "--out", tmp_path / "spending.html")
    assert (ended.code, ended.out) == (0, "")
    assert "may be published" in ended.err


def test_a_report_is_not_written_over_something_or_in_an_unknown_form(ledger, tmp_path):
    (tmp_path / "spending.html").write_text("mine")
    assert report(ledger, "--out", tmp_path / "spending.html").code == 2
    assert (tmp_path / "spending.html").read_text() == "mine"
    assert report(ledger, "--out", tmp_path / "spending.html", "--force").code == 0
    assert "mine" not in (tmp_path / "spending.html").read_text()
    ended = report(ledger, "--out", tmp_path / "spending.pdf")
    assert (ended.code, ended.out) == (2, "")
    assert ".html, .md or .json" in ended.err


def test_a_name_is_text_wherever_it_stands(ledger):
    told = describe_spending(ledger, ledger.history())
    page, text = write_spending_page(told), write_spending_text(told)
    assert ODD not in page
    assert "&lt;b&gt;south|1&lt;/b&gt;" in page
    assert "| &lt;b&gt;south&#124;1&lt;/b&gt; |" in text
    assert "<" not in text


def test_an_excess_is_said_first(ledger):
    ledger.reserve(spend_of(1.5), fingerprint="f", description="", population=ODD)
    told = describe_spending(ledger, ledger.history())
    assert told["keeps_limit"]
    assert "alarm" not in write_spending_page(told).partition("<main>")[2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ledger.declare("north", overlaps=[ODD], correct=True)
    told = describe_spending(ledger, ledger.history())
    assert not told["keeps_limit"]
    said = "More than the limit was spent on some persons"
    assert f'<p class="alarm">{said}' in write_spending_page(told)
    assert f"**{said}" in write_spending_text(told)


def test_a_report_of_an_empty_ledger_says_that_there_is_nothing_yet(tmp_path):
    ledger = Ledger.create(tmp_path / "new.db", 1.0, 1e-6, rule="basic")
    told = describe_spending(ledger, ledger.history())
    assert (told["as_of"], told["neighbours"], told["releases"]) == (None, None, [])
    assert "None so far." in write_spending_page(told)
    assert "None so far." in write_spending_text(told)
    assert "epsilons add" in write_spending_text(told)


@needs_browser
@pytest.mark.parametrize("width", [400, 1400])
def test_the_page_fits_and_opens_without_errors_and_without_a_network(ledger, tmp_path, width):
    report(ledger, "--out", tmp_path / "spending.html")
    script = "return document.documentElement.scrollWidth - document.documentElement.clientWidth;"
    overflow, dom, console = visit(tmp_path / "spending.html", tmp_path, script, width=width)
    assert int(overflow) <= 0
    assert console == ""
    assert "src=" not in dom
    assert dom.count("<tr>") == 2 + 4 + 3
