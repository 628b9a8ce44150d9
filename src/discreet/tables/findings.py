"""What an inspection finds: decisions and questions, and what was detected in a file.

In: what looks at a table. Out: proposed fields of a reading, each with its reason, and questions
whose answers are changes of the reading.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from discreet.choices import PlainDict, PlainMapping
from discreet.coding.remedies import (
    LISTS,
    ROLE_FIELDS,
    Detected,
    TableFinding,
    list_values,
    make_remedy,
)
from discreet.errors import Remedy


class DeclaredSource:
    """A source whose format declares names and types of its columns, so nothing is detected."""

    def detect(self, columns: Sequence[int], *, has_ids: bool) -> tuple[Detected, ...]:
        """Return what was detected in the data to read these columns of answers."""
        del columns, has_ids
        return ()


def state_option(option: str, sentence: str, options: PlainMapping) -> Detected:
    """Return a parameter that these keywords state."""
    return Detected(option, sentence, make_remedy("state it with", options))


def detect_encoding(path: object, encoding: str) -> list[Detected]:
    """Return that a text file is not UTF-8, which one letter of one row can decide."""
    if encoding in ("utf-8", "utf-16"):
        return []
    sentence = f"{path} is not UTF-8 and was read as Windows-1252."
    return [Detected("encoding", sentence, Remedy("save the file as UTF-8"))]


def miscount(name: object, why: str) -> Detected:
    """Return that whether somebody left all blank may decide how many persons there are."""
    sentence = f"{name}: {why}, so one person's answers can decide how many persons there are."
    words = "give every person an id (person=, --person), or state persons= (--persons)"
    return Detected("persons", sentence, Remedy(words))


#: The answer that scores are ratings, each rater with a severity.
RATED = "these are raters, each with a severity of their own"


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


@dataclass
class Findings:
    """Decisions and questions as they come in; ``options`` are the fields proposed so far.

    ``key`` holds the right answers by item where a sheet of their own has them; ``items`` and
    ``blocks`` the columns that are items, and other series of columns. ``raters`` is the column of
    raters, or by rater the columns of each criterion, where something was asked about them.
    """

    stated: PlainMapping
    options: PlainDict = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    questions: list[TableFinding] = field(default_factory=list)
    key: Mapping[str, Sequence[str]] = field(default_factory=dict)
    items: list[str] = field(default_factory=list)
    blocks: list[list[str]] = field(default_factory=list)
    raters: str | Mapping[str, Mapping[str, str]] = ""

    def decide(
        self,
        name: str,
        value: object,
        reason: str,
        *,
        is_sure: bool = True,
        is_public: bool = False,
    ) -> None:
        """Propose the value of a field that nobody stated; lists grow."""
        if name in self.stated and name not in LISTS:
            return
        joined = merge_options(self.options, {name: value})
        self.options[name] = joined[name]
        self.decisions.append(Decision(name, value, is_sure, reason, is_public))

    def note(
        self,
        name: str,
        value: object,
        reason: str,
        cells: Sequence[str],
        undo: Sequence[Remedy] = (),
    ) -> None:
        """Propose a value of which the user is told, with what would undo it."""
        self.decide(name, value, reason)
        self.questions.append(TableFinding(name, reason, tuple(undo), tuple(cells), is_open=False))

    def ask(
        self,
        name: str,
        question: str,
        answers: Sequence[Remedy],
        cells: Sequence[str] = (),
        marked: int | None = 0,
    ) -> None:
        """Ask, and propose the answer that the evidence is for."""
        if name not in self.stated or name in LISTS:
            self.propose(TableFinding(name, question, tuple(answers), tuple(cells), marked=marked))

    def propose(self, finding: TableFinding) -> None:
        """Ask a question, also again about what was stated."""
        for option, value in finding.proposed.items():
            self.decide(option, value, finding.question, is_sure=False)
        self.questions.append(finding)


def merge_options(options: PlainMapping, change: PlainMapping) -> PlainDict:
    """Return keywords of a reading with those of an answer; lists and mappings grow.

    A column has one role: an answer about it takes the place of an earlier one.

    Examples
    --------
    >>> merge_options({"ignore": ["age"], "keep": ["date"]}, {"ignore": ["date"], "person": "id"})
    {'ignore': ['age', 'date'], 'person': 'id'}
    """
    moved = {label for name in ROLE_FIELDS for label in list_values(change.get(name))}
    merged = dict(options)
    for name in ROLE_FIELDS & options.keys():
        left = [label for label in list_values(options[name]) if label not in moved]
        merged = {k: v for k, v in merged.items() if k != name} | ({name: left} if left else {})
    for name, value in change.items():
        before = merged.get(name)
        if name in LISTS and before is not None and not isinstance(before, Mapping):
            have = list_values(before)
            merged[name] = [*have, *(entry for entry in list_values(value) if entry not in have)]
        elif isinstance(value, Mapping) and isinstance(before, Mapping):
            merged[name] = {**before, **value}
        else:
            merged[name] = value
    return merged
