"""What a release can be about, and the words in which each kind is spoken of.

Persons answer items, or judges compare objects. Reading, wall, ledger, bundle and page are the
same for both; whatever differs is a word, and every word is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet.words import mark


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
    def nouns(self) -> dict[str, str]:
        """Every word, by its name in sentences; capital letters where a sentence begins with it."""
        plain = {**vars(self), "persons": self.persons, "items": self.items}
        capital = ("answers", "number", "most", "least")
        return plain | {name.capitalize(): plain[name].capitalize() for name in capital}

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of that file."""
        return ("item", self.number, "se", "lower", "upper", "status")


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
"""The kinds by name; a record that does not say is about answers."""


def find_kind(record: Mapping[str, Any]) -> ReleaseKind:
    """Return the kind of a record."""
    return KINDS[record.get("kind", "answers")]
