"""Every sentence that is published comes from a catalogue, and every catalogue has them all."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tools.catalogues import (
    SOURCE,
    CatalogueEntry,
    list_texts,
    placeholders,
    read_entries,
    read_language,
    write_entries,
    write_texts,
)
from tools.words import find_sentences

import discreet
from catalogues import SENTENCES, Bracketed, english_in, outside, read_catalogue
from commandline import LSAT_ITEMS
from commandline import discreet as typed
from discreet import Budget, Ledger
from discreet.errors import BadUsage
from discreet.privacy.noise import ExactNoise
from discreet.publishing.notices import correction_notice, withdrawal_notice
from discreet.report.public import write_public_page
from discreet.report.spending import describe_spending, write_spending_page, write_spending_text
from discreet.report.statement import write_statement
from discreet.secure import SeededSource
from discreet.words import FOLDER, KINDS, LANGUAGES, Language, load_words
from refusals import refused

ABOUT = {"title": "TITLE", "version": "V", "body": "BODY", "contact": "CONTACT", "note": "NOTE"}
LATER = {**ABOUT, "version": "W", "supersedes": "V", "reason": "REASON."}


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
            pd.DataFrame(table), budget, items=named, forms=[list(named)], design="complete"
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
    tell = Language("xx", Bracketed())
    for module in ("words", "report.spending"):
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


def check_catalogue(entries):
    """Say what a translation lacks or has too much."""
    said = {entry.key: entry for entry in entries}
    yield from (f"missing: {key}" for key in SENTENCES if key not in said)
    yield from (f"nobody says: {key}" for key in said if key not in SENTENCES)
    for entry in entries:
        source = SENTENCES.get(entry.key, entry)
        forms = 2 if source.plural else 1
        if entry.is_fuzzy or len(entry.said) != forms or not all(map(str.strip, entry.said)):
            yield f"not translated: {entry.sentence}"
        # A whole sentence for each kind has no room for English nouns.
        nouns = set(KINDS[entry.context].nouns) if entry.context else set()
        for text in entry.said:
            if placeholders(text) != placeholders(source.sentence) - nouns:
                yield f"other names in braces: {text}"


@pytest.mark.parametrize("language", sorted({*LANGUAGES} - {"en"}))
def test_a_translation_is_complete(language):
    text = SOURCE.with_name(f"{language}.po").read_text("utf-8")
    assert [*check_catalogue(read_catalogue(language))] == []
    assert read_language(text, language) == language
    assert "#~" not in text, "an obsolete entry"
    assert write_texts(read_catalogue(language)) == (FOLDER / f"{language}.json").read_text("utf-8")


def test_what_is_wrong_with_a_translation_is_found():
    good = read_catalogue("de")
    assert next(check_catalogue(good[1:])).startswith("missing")
    assert [*check_catalogue([*good, CatalogueEntry("new", said=("neu",))])] == [
        "nobody says: ('', 'new')"
    ]
    place = next(i for i, one in enumerate(good) if one.sentence == "at most {cap}")
    for wrong, found in (
        ({"said": ("",)}, "not translated"),
        ({"said": ("höchstens",)}, "other names"),
        ({"said": ("höchstens {limit}",)}, "other names"),
        ({"is_fuzzy": True}, "not translated"),
    ):
        bad = [*good]
        bad[place] = replace(bad[place], **wrong)
        assert any(one.startswith(found) for one in check_catalogue(bad))


@pytest.mark.parametrize("language", ["de", "es"])
def test_a_bundle_in_another_language_has_no_english_sentence(language, tmp_path):
    ledger, out, lsat = tmp_path / "spent.db", tmp_path / "out", tmp_path / "lsat.csv"
    rows = discreet.datasets.lsat().store.rows(0, 1000).tolist()
    lsat.write_text("\n".join(",".join(map(str, row)) for row in [LSAT_ITEMS, *rows]) + "\n")
    (tmp_path / "items.txt").write_text("\n".join(LSAT_ITEMS))
    (tmp_path / "release.toml").write_text(f'title = "TITLE"\nlanguage = "{language}"\n')
    assert typed("ledger", "create", ledger, "--epsilon", 3).code == 0
    asked = ["--items", tmp_path / "items.txt", "--epsilon", 1, "--ledger", ledger]
    about = ["--about", tmp_path / "release.toml", "--out", out]
    assert typed("release", lsat, *asked, *about).code == 0
    assert typed("verify", out).code == 0
    spending = typed("ledger", "report", ledger, "--language", language).out
    notice = typed("steward", "withdraw", out, "--because", "REASON.").out
    assert f'<html lang="{language}">' in (out / "report.html").read_text("utf-8")
    entries = read_catalogue(language)
    texts = [(out / name).read_text("utf-8") for name in ("report.html", "statement.md")]
    for text in [*texts, spending, notice]:
        bare = re.sub(r"<(style|script>).*?</(style|script)>", "", text, flags=re.S)
        assert english_in(bare, entries) == []
    # The reference is there, in English, and so are the words of the registry.
    assert "statement.en.md" in texts[1]
    reference = (out / "statement.en.md").read_text("utf-8")
    assert reference.startswith("# Privacy statement: TITLE")
    assert "translation" not in reference
    assert "Item difficulties of the Rasch model" in (out / "registry.yaml").read_text("utf-8")


def test_a_sentence_that_was_left_in_english_is_found(monkeypatch, releases):
    entries = read_catalogue("de")
    promise = next(i for i, one in enumerate(entries) if one.sentence.startswith("It was made"))
    left = list_texts(entries[:promise] + entries[promise + 1 :])
    monkeypatch.setattr("discreet.words.load_words", lambda _: Language("de", left))
    found = english_in(write_statement(releases["plain"].record), entries)
    assert found == []  # nothing is promised with noise for tests
    found = english_in(write_statement(releases["alone"].record), entries)
    assert found == [entries[promise].sentence]


def test_a_release_is_translated_without_changing_its_numbers(tmp_path, releases):
    first = releases["folder"] / "first"
    for language in ("de", "es"):
        done = typed(
            "steward", "translate", first, "--language", language, "--out", tmp_path / language
        )
        assert (done.code, done.err) == (0, f"Wrote {tmp_path / language} (may be published)\n")
        assert typed("verify", tmp_path / language).code == 0
        for same in ("difficulties.csv", "registry.yaml", "noisy.npz"):
            assert (tmp_path / language / same).read_bytes() == (first / same).read_bytes()
        reference = tmp_path / language / "statement.en.md"
        assert reference.read_bytes() == (first / "statement.md").read_bytes()
    back = tmp_path / "back"
    assert (
        typed("steward", "translate", tmp_path / "de", "--language", "en", "--out", back).code == 0
    )
    assert sorted(path.name for path in back.iterdir()) == sorted(p.name for p in first.iterdir())
    assert all((back / p.name).read_bytes() == p.read_bytes() for p in first.iterdir())


def test_a_bundle_in_german_can_be_replaced(tmp_path, releases):
    releases["alone"].save(tmp_path / "out", language="de")
    releases["alone"].save(tmp_path / "out", force=True)
    assert not (tmp_path / "out" / "statement.en.md").exists()


def test_a_notice_speaks_the_language_that_is_asked_for(releases):
    first, later = releases["folder"] / "first", releases["folder"] / "later"
    assert "# Retirada: TITLE" in withdrawal_notice(first, "REASON.", language="es")
    assert "Berichtigt: TITLE, Version V" in correction_notice(first, later, language="de")
    assert "# Corrected: TITLE" in typed("steward", "correct", first, "--by", later).out
    assert (
        "# Corregida: TITLE"
        in typed("steward", "correct", first, "--by", later, "--language", "es").out
    )


@pytest.mark.parametrize("given", [{"language": "tlh"}, {"language": "DE"}])
def test_an_unknown_language_is_refused_before_anything_is_spent(given, tmp_path):
    book = Ledger.create(tmp_path / "spent.db", 3.0)
    with refused(
        BadUsage, "no_pages_language_known", languages="en (English), de (Deutsch), es (Español)"
    ):
        discreet.release("no such file", Budget(1.0), items=LSAT_ITEMS, ledger=book, about=given)
    assert book.spent()[0] == 0


def test_english_is_what_a_release_speaks_unless_told_otherwise(releases):
    made = discreet.release(
        discreet.datasets.lsat(), Budget(1.0), items=LSAT_ITEMS, about={"language": "en"}
    )
    assert "identity" not in made.record


def test_a_sentence_without_a_translation_is_said_in_english():
    silent = Language("xx", list_texts([]))
    assert silent("{count} of {total}", count=2, total=3) == "2 of 3"
    assert silent.count(1, "{number} cat", "{number} cats") == "1 cat"


def test_a_sentence_is_said_by_its_number_and_by_its_kind():
    entries = [
        CatalogueEntry("{number} cat", "{number} cats", said=("{number} Katze", "{number} Katzen")),
        CatalogueEntry("all {items}", context="answers", said=("alle Aufgaben",)),
    ]
    tell = Language("de", list_texts(entries))
    assert tell.count(1, "{number} cat", "{number} cats") == "1 Katze"
    many = tell.count(1234, "{number} cat", "{number} cats")
    assert many == "1\N{NARROW NO-BREAK SPACE}234 Katzen"
    assert tell.of("all {items}") == "alle Aufgaben"
    assert tell.about(KINDS["comparisons"]).of("all {items}") == "all objects"


def test_a_catalogue_is_read_as_it_was_written():
    entries = [
        CatalogueEntry(
            'a "quoted"\nline \\ {name}', said=("ein „Wort“\t" * 40,), places=("a.py", "b.py")
        ),
        CatalogueEntry("one", "many", "answers", ("eins", "viele")),
    ]
    text = write_entries(entries, "de")
    assert max(map(len, text.splitlines())) <= 110
    assert read_entries(text, "de.po") == entries


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("hello", "own.po, line 1:"),
        ('msgid "a"\nmsgstr "b\n', "own.po, line 2:"),
        ('msgstr "b"\n', "own.po, line 1:"),
        ('msgid "a"\n', "own.po: the last"),
        ('msgid "a"\nmsgstr b\n', "own.po, line 2:"),
    ],
)
def test_what_is_no_catalogue_is_refused_with_its_line(text, place):
    with pytest.raises(ValueError) as refusal:
        read_entries(text, "own.po")
    assert str(refusal.value).startswith(place)


@pytest.mark.parametrize("text", ["{name!r}", "{name:>9}", "{", "{na{me}"])
def test_only_names_stand_in_braces(text):
    with pytest.raises(ValueError):
        placeholders(text)


def test_an_unknown_language_is_refused():
    with refused(
        BadUsage, "no_pages_language_known", languages="en (English), de (Deutsch), es (Español)"
    ):
        load_words("tlh")
