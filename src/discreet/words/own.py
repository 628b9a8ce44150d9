"""An agency's own wording: its sentences in place of the library's, but for those of the promise.

In: a catalogue of a few sentences. Out: the same, checked. Which sentences are fixed is told by the
files that say them: what the statement says, NIST's points, notices, the spending report, and
whatever the guarantee itself says. They are the same for every release, so that readers and
lawyers who know one know all, and so that nobody weakens a warning or strengthens a promise.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from discreet.errors import BadUsage
from discreet.words import NOUNS, SOURCE
from discreet.words.catalogue import (
    CatalogueEntry,
    placeholders,
    read_entries,
    read_language,
    write_entries,
)

FIXED = (
    "report/statement_points.py",
    "report/spending.py",
    "report/statement.py",
    "privacy/",
    "publishing/",
)
"""Where the sentences of the promise are said."""
OWN_LETTERS = 100_000
"""Longest catalogue of an agency."""


@cache
def _list_sentences() -> dict[tuple[str, str], CatalogueEntry]:
    return {one.key: one for one in read_entries(SOURCE.read_text("utf-8"), SOURCE.name)}


def is_fixed(entry: CatalogueEntry) -> bool:
    """Say whether a sentence belongs to the promise."""
    return any(place.startswith(FIXED) for place in entry.places)


def check_own(text: str, language: str, source_name: str = "the own words of a release") -> str:
    """Return an agency's catalogue as it is kept, or say what is wrong with it."""
    if len(text) > OWN_LETTERS:
        raise BadUsage(f"{source_name}: a catalogue has at most {OWN_LETTERS:,} letters")
    stated_language = read_language(text, source_name) or language
    if stated_language != language:
        raise BadUsage(
            f"{source_name}: these words are in the language {stated_language!r}, and the "
            f"release speaks {language!r}"
        )
    entries = [one for one in read_entries(text, source_name) if any(one.said)]
    for entry in entries:
        _check_entry(entry, source_name)
    return write_entries([replace(one, places=(), is_fuzzy=False) for one in entries], language)


def _check_entry(entry: CatalogueEntry, source_name: str) -> None:
    source, excerpt = _list_sentences().get(entry.key), entry.sentence[:60]
    if source is None:
        raise BadUsage(
            f"{source_name}: no page says {excerpt!r}"
            + (f" about {entry.context}" if entry.context else "")
            + "; copy msgctxt and msgid from words.pot as they stand there"
        )
    if is_fixed(source):
        raise BadUsage(
            f"{source_name}: {excerpt!r} is part of the promise, which has the same words in every "
            "release; say what you want to add as note, introduction or footer"
        )
    forms = 2 if source.plural else 1
    if entry.plural != source.plural or len(entry.said) != forms or not all(entry.said):
        raise BadUsage(f"{source_name}: {excerpt!r} needs {forms} forms, none of them empty")
    if entry.is_fuzzy:
        raise BadUsage(
            f"{source_name}: {excerpt!r} is a guess of some program (fuzzy); confirm or remove it"
        )
    _check_names(entry, source, source_name)


def _check_names(entry: CatalogueEntry, source: CatalogueEntry, source_name: str) -> None:
    """Refuse names in braces that the sentence has not, and the loss of a value that it has."""
    allowed = placeholders(source.sentence) | placeholders(source.plural)
    needed = allowed - NOUNS if source.context else allowed
    for text in entry.said:
        names_in_text = placeholders(text)
        if not needed <= names_in_text <= allowed:
            names = ", ".join(f"{{{name}}}" for name in sorted(allowed)) or "none"
            raise BadUsage(f"{source_name}: {text[:60]!r} has other names in braces than {names}")
