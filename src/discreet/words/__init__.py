"""The words of what is published: every sentence in every language.

In: a sentence in English, which is its own key, and the values in it by name. Out: the sentence in
the reader's language. A release carries its language in its record, so that whoever has the record
finds its words (:func:`speak`). ``words.pot`` lists every sentence with the files that say it, and
``de.po`` and ``es.po`` translate them; ``python -m tools.words`` brings them up to date.

Sentences differ where persons answer items and where judges compare objects. English puts the nouns
into one sentence; other languages bend them, so that they have a whole sentence for each kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from discreet.errors import BadUsage
from discreet.words.catalogue import list_texts, read_entries, read_language

FOLDER = Path(__file__).parent
SOURCE = FOLDER / "words.pot"
"""Every sentence, without a translation."""
LANGUAGES = {"en": "English", "de": "Deutsch", "es": "Español"}
"""The languages of pages and statements, by their codes."""
CONTEXTS = ("answers", "comparisons")
"""What a sentence with nouns of its kind is about: it is translated once for each."""

NOUNS = frozenset(
    {
        *("answers", "person", "persons", "item", "items", "number", "numbers", "listed", "unit"),
        *("title", "question", "scale", "most", "least", "model", "use", "domain"),
        *("Answers", "Number", "Most", "Least"),
    }
)
"""What a kind has words for; whole sentences in other languages need none of them."""


class Spoken(Protocol):
    """A kind of release, with its nouns in English."""

    @property
    def answers(self) -> str:
        """What is given; also the context of its sentences."""

    @property
    def nouns(self) -> Mapping[str, str]:
        """Its words, by their names in sentences."""


@dataclass(frozen=True, eq=False)
class Language:
    """The words of one language.

    Attributes
    ----------
    language
        Its code, such as ``"de"``.
    catalogue
        Translations by context, English sentence and form; a sentence without one stays English.
    """

    language: str
    catalogue: Mapping[tuple[str, str, int], str]

    def __call__(self, sentence: str, /, **values: object) -> str:
        """Return a sentence, with these values in it."""
        return self.term(sentence).format(**values)

    def of(self, kind: Spoken, sentence: str, /, **values: object) -> str:
        """Return a sentence with nouns of its kind."""
        text = self.catalogue.get((kind.answers, sentence, 0), sentence)
        return text.format(**{**kind.nouns, **values})

    def count(self, number: int, singular: str, plural: str, /, **values: object) -> str:
        """Return the sentence for one or the one for many; both may name the ``number``."""
        is_many = number != 1
        text = self.catalogue.get(("", singular, int(is_many)), plural if is_many else singular)
        return text.format(number=self.number(number), **values)

    def term(self, words: str) -> str:
        """Return words that are looked up as they are, whatever signs they have."""
        return self.catalogue.get(("", words, 0), words)

    def number(self, number: int) -> str:
        """Return a whole number; a comma would be a decimal sign in most languages."""
        between = "," if self.language == "en" else "\N{NARROW NO-BREAK SPACE}"
        return f"{number:,}".replace(",", between)


ENGLISH = Language("en", {})


def mark(sentence: str) -> str:
    """Return a sentence as it is; it is translated where it is shown."""
    return sentence


def mark_of(sentence: str) -> str:
    """Return a sentence with nouns of its kind as it is; it is translated where it is shown."""
    return sentence


def check_language(language: str) -> str:
    """Return the code of a language, or say which there are."""
    if language not in LANGUAGES:
        languages = ", ".join(f"{code} ({name})" for code, name in LANGUAGES.items())
        raise BadUsage(f"there are no pages in the language {language!r}; known are {languages}")
    return language


@cache
def load_words(language: str) -> Language:
    """Return the words of a language."""
    if check_language(language) == "en":
        return ENGLISH
    path = FOLDER / f"{language}.po"
    return Language(language, list_texts(read_entries(path.read_text("utf-8"), path.name)))


def speak(record: Mapping[str, Any]) -> Language:
    """Return the words in which a release speaks of itself; an agency's own come first."""
    identity = record.get("identity", {})
    standard_words = load_words(identity.get("language", "en"))
    agency_words = identity.get("words", "")
    if not agency_words or read_language(agency_words, "own words") != standard_words.language:
        return standard_words
    texts = list_texts(read_entries(agency_words, "own words"))
    return Language(standard_words.language, {**standard_words.catalogue, **texts})


def translate_record(record: Mapping[str, Any], language: str) -> dict[str, Any]:
    """Return the record of a release that speaks another language; nothing else differs."""
    identity = {**record.get("identity", {}), "language": check_language(language)}
    if language == "en":
        del identity["language"]
    translated = {**record, "identity": identity}
    if not identity:
        del translated["identity"]
    return translated
