"""What an inspection says: decisions about fields of a reading, and questions to the user.

In: nothing. Out: values that a page, a command or a program can show. Every answer to a question is
a change of the reading.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from discreet.errors import Remedy

LISTS = ("ignore", "group", "missing", "drop_rows", "keep", "reverse")
"""Fields that hold several values: an answer adds to them."""


@dataclass(frozen=True)
class Decision:
    """The proposed value of a field of a reading.

    Attributes
    ----------
    field, value
        The field, and its value.
    is_sure
        Whether nobody needs to be asked.
    reason
        Why, in one sentence.
    is_public
        Whether column names alone decide, as a reader does without an inspection.
    """

    field: str
    value: Any
    is_sure: bool
    reason: str
    is_public: bool = False


@dataclass(frozen=True)
class TableFinding:
    """Something that is unclear or looks wrong, and what may be done about it.

    Attributes
    ----------
    field
        The field of the reading that it is about.
    question
        In plain words.
    answers
        What may be answered, the proposed answer first. ``options`` of each is the change of the
        reading; ``asks`` names a field whose value only the user knows.
    cells
        Where: columns, rows or cells, as a person would look for them.
    is_open
        Whether the user has to answer. Otherwise the proposed answer is taken and can be undone.
    """

    field: str
    question: str
    answers: tuple[Remedy, ...] = ()
    cells: tuple[str, ...] = ()
    is_open: bool = True


@dataclass
class Findings:
    """Decisions and questions as they come in; ``options`` are the fields proposed so far."""

    stated: Mapping[str, Any]
    options: dict[str, Any] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    questions: list[TableFinding] = field(default_factory=list)

    def decide(
        self, name: str, value: Any, reason: str, *, is_sure: bool = True, is_public: bool = False
    ) -> None:
        """Propose the value of a field that nobody stated; lists grow."""
        if name in self.stated and name not in LISTS:
            return
        joined = merge_options(self.options, {name: value})
        self.options[name] = joined[name]
        self.decisions.append(Decision(name, value, is_sure, reason, is_public))

    def note(
        self, name: str, value: Any, reason: str, cells: Sequence[str], undo: Sequence[Remedy] = ()
    ) -> None:
        """Propose a value of which the user is told, with what would undo it."""
        self.decide(name, value, reason)
        self.questions.append(TableFinding(name, reason, tuple(undo), tuple(cells), is_open=False))

    def ask(
        self, name: str, question: str, answers: Sequence[Remedy], cells: Sequence[str] = ()
    ) -> None:
        """Ask, and propose the first answer."""
        if name in self.stated and name not in LISTS:
            return
        for option, value in answers[0].options.items() if answers else ():
            self.decide(option, value, question, is_sure=False)
        self.questions.append(TableFinding(name, question, tuple(answers), tuple(cells)))


def merge_options(options: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return keywords of a reading with those of an answer; lists and mappings grow.

    Examples
    --------
    >>> merge_options({"ignore": ["age"]}, {"ignore": ["date"], "person": "id"})
    {'ignore': ['age', 'date'], 'person': 'id'}
    """
    merged = dict(options)
    for name, value in change.items():
        before = merged.get(name)
        if name in LISTS and before is not None and not isinstance(before, Mapping):
            have = [before] if isinstance(before, str | int) else list(before)
            new = [value] if isinstance(value, str | int) else list(value)
            merged[name] = [*have, *(entry for entry in new if entry not in have)]
        elif isinstance(value, Mapping) and isinstance(before, Mapping):
            merged[name] = {**before, **value}
        else:
            merged[name] = value
    return merged
