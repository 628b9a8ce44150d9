"""Sentences of published pages and of the studio, in every language.

In: a sentence in English, which is its own key, and the values in it by name. Out: the sentence in
the reader's language. A release carries its language in its record, so that whoever has the record
finds its words (:func:`speak`). ``words.pot`` lists every sentence with the files that say it, and
``de.po`` and ``es.po`` translate them; ``python -m tools.words`` brings them up to date, and writes
what is read here, ``de.json`` and ``es.json``.

Sentences differ where persons answer items and where judges compare objects. English puts the nouns
into one sentence; other languages bend them, so that they have a whole sentence for each kind.
Whatever differs between the two kinds is a word, and every such word is in :data:`KINDS`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from discreet.choices import PlainDict, PlainMapping
from discreet.errors import BadUsage


def mark(sentence: str) -> str:
    """Return a sentence as it is; it is translated where it is shown."""
    return sentence


def mark_of(sentence: str) -> str:
    """Return a sentence with nouns of its kind as it is; it is translated where it is shown."""
    return sentence


@dataclass(frozen=True)
class ReleaseKind:
    """How releases of one kind speak of themselves.

    Attributes
    ----------
    answers, person, item
        What is given, by whom, to what.
    number, numbers
        What is published of each item; the table is named after it.
    listed
        The public list.
    unit
        What is protected; None for one person's whole set of answers.
    title, question, scale, most, least
        Words of the public page: its title, what the picture answers, the direction of the scale,
        what the items at its ends are called.
    model, use, domain
        Words for the method and for the registry of deployments.
    """

    answers: str
    person: str
    item: str
    number: str
    numbers: str
    listed: str
    unit: str | None
    title: str
    question: str
    scale: str
    most: str
    least: str
    model: str
    use: str
    domain: str

    @property
    def persons(self) -> str:
        """Who contributes; also the field of the record with their number."""
        return f"{self.person}s"

    @property
    def items(self) -> str:
        """What the numbers are about."""
        return f"{self.item}s"

    @property
    def cap(self) -> str:
        """The field of the record with the cap on what each person contributes."""
        return f"max_{self.answers}"

    @property
    def table(self) -> str:
        """The file with the numbers."""
        return f"{self.numbers}.csv"

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of that file."""
        return ("item", self.number, "se", "lower", "upper", "status")

    @property
    def nouns(self) -> dict[str, str]:
        """Every word, by its name in sentences; capital letters where a sentence begins with it."""
        plain = {**vars(self), "persons": self.persons, "items": self.items}
        capital = ("answers", "number", "most", "least")
        return plain | {name.capitalize(): plain[name].capitalize() for name in capital}


#: What is protected where no judges are known.
VOTE_UNIT = mark("one vote; a person with v votes has v times epsilon")
#: The kinds by name; a record that does not say is about answers.
KINDS = {
    one.answers: one
    for one in (
        ReleaseKind(
            answers="answers",
            person="person",
            item="item",
            number="difficulty",
            numbers="difficulties",
            listed="item list",
            unit=None,
            title="Item difficulties",
            question="How hard each item is",
            scale="harder",
            most="hardest",
            least="easiest",
            model="Rasch difficulties",
            use="Item difficulties of the Rasch model",
            domain="Right, wrong or missing answers of persons to listed items",
        ),
        ReleaseKind(
            answers="comparisons",
            person="judge",
            item="object",
            number="strength",
            numbers="strengths",
            listed="list of objects",
            unit=mark("one judge's whole set of comparisons"),
            title="Strengths of objects",
            question="How strong each object is",
            scale="stronger",
            most="strongest",
            least="weakest",
            model="Bradley-Terry strengths",
            use="Ranking of objects by the Bradley-Terry model",
            domain="Which of two listed objects a judge preferred, for some pairs",
        ),
    )
}


def find_kind(record: PlainMapping) -> ReleaseKind:
    """Return the kind of a record."""
    return KINDS[record.get("kind", "answers")]


FOLDER = Path(__file__).parent
#: The languages of pages and statements, by their codes.
LANGUAGES = {"en": "English", "de": "Deutsch", "es": "Español"}


@dataclass(frozen=True, eq=False)
class Language:
    """The words of one language.

    Attributes
    ----------
    language
        Its code, such as ``"de"``.
    catalogue
        Translations by context, English sentence and form; a sentence without one stays English.
    kind
        What it speaks about.
    """

    language: str
    catalogue: Mapping[tuple[str, str, int], str]
    kind: ReleaseKind = KINDS["answers"]

    def __call__(self, sentence: str, /, **values: object) -> str:
        """Return a sentence, with these values in it."""
        return self.term(sentence).format(**values)

    def about(self, kind: ReleaseKind) -> Language:
        """Return the same words for something else."""
        return replace(self, kind=kind)

    def of(self, sentence: str, /, **values: object) -> str:
        """Return a sentence with nouns of what is spoken about."""
        text = self.catalogue.get((self.kind.answers, sentence, 0), sentence)
        return text.format(**{**self.kind.nouns, **values})

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

    def decimal(self, value: float, digits: int) -> str:
        """Return a number with decimals, after a comma where the language has one."""
        return f"{value:.{digits}f}".replace(".", "." if self.language == "en" else ",")


ENGLISH = Language("en", {})


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
    stored = json.loads((FOLDER / f"{language}.json").read_text("utf-8"))
    return Language(
        language,
        {
            (context, sentence, form): text
            for context, forms_by_sentence in stored.items()
            for sentence, forms in forms_by_sentence.items()
            for form, text in enumerate(forms)
        },
    )


def speak(record: PlainMapping) -> Language:
    """Return the words in which a release speaks of itself."""
    words = load_words(record.get("identity", {}).get("language", "en"))
    return words.about(find_kind(record))


def translate_record(record: PlainMapping, language: str) -> PlainDict:
    """Return the record of a release that speaks another language; nothing else differs."""
    identity = {**record.get("identity", {}), "language": check_language(language)}
    if language == "en":
        del identity["language"]
    translated = {**record, "identity": identity}
    if not identity:
        del translated["identity"]
    return translated
