"""Every sentence that is published comes from a catalogue, and every catalogue has them all."""

import html
import json
import re
from gettext import NullTranslations

import numpy as np
import pandas as pd
import pytest
from tests.commandline import LSAT_ITEMS
from tools.words import find_sentences

import discreet
from discreet import Budget, Ledger
from discreet.errors import BadUsage
from discreet.output.pages import write_public_page
from discreet.output.spending import describe_spending, write_spending_page, write_spending_text
from discreet.output.statement import write_statement
from discreet.privacy.noise import ExactNoise
from discreet.publishing.notices import correction_notice, withdrawal_notice
from discreet.secure import SeededSource
from discreet.words import SOURCE, Words, load_words
from discreet.words.catalogue import (
    Entry,
    compile_entries,
    placeholders,
    read_entries,
    write_entries,
)

ABOUT = {"title": "TITLE", "version": "V", "body": "BODY", "contact": "CONTACT", "note": "NOTE"}
LATER = {**ABOUT, "version": "W", "supersedes": "V", "reason": "REASON."}


class Bracketed(NullTranslations):
    """A language that says everything in English, between brackets: what is outside is no word."""

    def gettext(self, message):
        return f"⟦{message}⟧"

    def pgettext(self, _context, message):
        return f"⟦{message}⟧"

    def ngettext(self, one, many, number):
        return f"⟦{one if number == 1 else many}⟧"


def outside(text):
    """Return the words of a text that no brackets hold."""
    scripts = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.S)
    spoken = [sentence for one in scripts for sentence in json.loads(one)["words"].values()]
    bare = re.sub(r"<(style|script)\b.*?</(style|script)>", "", text, flags=re.S)
    text = "\n".join([html.unescape(bare), *spoken])
    while "⟦" in text:
        text, former = re.sub(r"⟦[^⟦⟧]*⟧", "", text), text
        assert text != former, "a bracket without its other half"
    shown = re.sub(r"<[^>]*>", " ", text)
    named = re.findall(r'(?:aria-label|title|alt|data-shown)="([^"]*)"', text)
    return set(re.findall(r"[A-Za-zÀ-ÿ]{2,}", " ".join([shown, *named])))


def test_words_outside_of_the_brackets_are_found():
    page = '<p aria-label="seen">⟦in ⟦deep⟧⟧ out</p><script>unseen</script><b>⟦x⟧</b>'
    assert outside(page) == {"seen", "out"}


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """Releases of every kind, with whatever they may say of themselves."""
    folder = tmp_path_factory.mktemp("releases")
    book = Ledger.create(folder / "spent.db", 9.0, 1e-6)
    (folder / "audit.json").write_text(
        json.dumps(
            {"mechanism": "pairs", "claimed_epsilon": 1.0, "lower_bound": 0.6, "runs": 12345}
            | {"verdict": "consistent", "items": 5, "max_answers": 5}
        )
    )
    lsat, rng = discreet.datasets.lsat(), np.random.default_rng(3)
    many = discreet.simulate(400, 90, rng=rng).responses
    votes = discreet.simulate_comparisons(300, 8, 5, rng=rng).comparisons
    objects = [f"object {number}" for number in range(8)]
    steps = rng.integers(0, 4, size=(400, 6))
    named = {f"q{i}": 3 for i in range(6)}
    table = {name: steps[:, i].tolist() for i, name in enumerate(named)}
    budget, audit = Budget(1.0, 1e-6), folder / "audit.json"
    local = {"mechanism": "randomized-response", "persons": 1000}
    return {
        "plain": discreet.release(lsat, budget, items=LSAT_ITEMS, noise=seeded()),
        "first": discreet.release(
            lsat, budget, items=LSAT_ITEMS, ledger=book, about=ABOUT, out=folder / "first"
        ),
        "later": discreet.release(
            lsat,
            budget,
            items=LSAT_ITEMS,
            mechanism="pairs",
            ledger=book,
            about=LATER,
            audit=audit,
            out=folder / "later",
        ),
        "alone": discreet.release(lsat, budget, items=LSAT_ITEMS, about=LATER),
        "local": discreet.release(lsat, Budget(4.0, 0), items=LSAT_ITEMS, **local),
        "sparse": discreet.release(lsat, budget, items=LSAT_ITEMS, mechanism="sparse-pairs"),
        "removed": discreet.release(lsat, Budget(1.0, 1e-6, "add-remove"), items=LSAT_ITEMS),
        "nothing": discreet.release(lsat, Budget(0.001), items=LSAT_ITEMS, mechanism="pairs"),
        "many": discreet.release(many, budget, items=many.items),
        "votes": discreet.release_comparisons(
            votes, budget, items=objects, max_comparisons=5, about={"version": "V"}
        ),
        "steps": discreet.release(
            pd.DataFrame(table),
            budget,
            items=named,
            forms=[list(named)],
            design="complete",
        ),
        "folder": folder,
        "book": book,
    }


def seeded():
    return ExactNoise(SeededSource(7))


KNOWN = {
    # What a release is called, and what its items, files and mechanisms are called.
    *("TITLE", "BODY", "CONTACT", "NOTE", "REASON", "everyone", "gaussian", "SHA"),
    # Names of mechanisms, and of the library.
    *("pairs", "margins", "randomized", "response", "sparse", "net", "wins", "totals"),
}


def check_bracketed(text, items=LSAT_ITEMS):
    for name in sorted((one for one in items if not one.isdigit()), key=len, reverse=True):
        text = text.replace(name, "")
    left = {word for word in outside(text) if not re.fullmatch(r"[0-9a-f]{2,}", word)}
    assert left - KNOWN == set()


@pytest.fixture
def bracketed(monkeypatch):
    tell = Words("xx", Bracketed())
    for module in ("words", "output.spending"):
        monkeypatch.setattr(f"discreet.{module}.load_words", lambda _: tell)
    monkeypatch.setattr("discreet.words.check_language", lambda language: language)


@pytest.mark.usefixtures("bracketed")
def test_every_word_of_a_page_and_a_statement_comes_from_the_catalogue(releases):
    for name, made in releases.items():
        if name not in ("folder", "book"):
            items = made.record["items"]
            check_bracketed(write_public_page(made.estimate, made.record), items)
            check_bracketed(write_statement(made.record), items)


@pytest.mark.usefixtures("bracketed")
def test_every_word_of_notices_and_spending_reports_comes_from_the_catalogue(releases):
    folder, book = releases["folder"], releases["book"]
    check_bracketed(withdrawal_notice(folder / "first", "REASON."))
    check_bracketed(correction_notice(folder / "first", folder / "later"))
    told = describe_spending(book, book.history(), "xx")
    for broken in (told, {**told, "keeps_limit": False, "releases": [], "neighbours": None}):
        check_bracketed(write_spending_page(broken))
        check_bracketed(write_spending_text(broken))


def test_the_list_of_sentences_is_that_of_the_source():
    """Run ``python -m tools.words`` where this fails."""
    assert read_entries(SOURCE.read_text("utf-8"), SOURCE.name) == find_sentences()


def test_a_sentence_without_a_translation_is_said_in_english():
    silent = Words("xx", compile_entries([]))
    assert silent("{count} of {total}", count=2, total=3) == "2 of 3"
    assert silent.count(1, "{number} cat", "{number} cats") == "1 cat"


def test_a_sentence_is_said_by_its_number_and_by_its_kind():
    entries = [
        Entry("{number} cat", "{number} cats", said=("{number} Katze", "{number} Katzen")),
        Entry("all {items}", context="answers", said=("alle Aufgaben",)),
    ]
    tell = Words("de", compile_entries(entries))
    assert tell.count(1, "{number} cat", "{number} cats") == "1 Katze"
    many = tell.count(1234, "{number} cat", "{number} cats")
    assert many == "1\N{NARROW NO-BREAK SPACE}234 Katzen"
    from discreet.results.kinds import KINDS

    assert tell.of(KINDS["answers"], "all {items}") == "alle Aufgaben"
    assert tell.of(KINDS["comparisons"], "all {items}") == "all objects"


def test_a_catalogue_is_read_as_it_was_written():
    entries = [
        Entry('a "quoted"\nline \\ {name}', said=("ein „Wort“\t" * 40,), places=("a.py", "b.py")),
        Entry("one", "many", "answers", ("eins", "viele")),
    ]
    text = write_entries(entries, "de")
    assert max(map(len, text.splitlines())) <= 110
    assert read_entries(text, "de.po") == entries


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", "line 1"),
        ('msgid "a"\nmsgstr "b\n', "line 2"),
        ('msgstr "b"\n', "line 1"),
        ('msgid "a"\n', "no msgstr"),
        ('msgid "a"\nmsgstr b\n', "line 2"),
    ],
)
def test_what_is_no_catalogue_is_refused_with_its_line(text, message):
    with pytest.raises(BadUsage, match=message):
        read_entries(text, "own.po")


@pytest.mark.parametrize("text", ["{name!r}", "{name:>9}", "{", "{na{me}"])
def test_only_names_stand_in_braces(text):
    with pytest.raises(BadUsage):
        placeholders(text)


def test_an_unknown_language_is_refused():
    with pytest.raises(BadUsage, match="known are en"):
        load_words("tlh")
