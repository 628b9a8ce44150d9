"""A look at a file of answers: its first rows, what each column is taken for, and what is wrong.

In: a file, and how to read it. Out: a :class:`Look` for the page, and, where they could be read,
the answers beside it for whoever calibrates them. Runs in a worker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from discreet.answers.reading import read_responses
from discreet.answers.responses import Responses
from discreet.errors import BadResponses, BadUsage, DiscreetError, Remedy
from discreet.studio.jobs import TaskProgress, keep
from discreet.tables.columns import LongPlan, WidePlan
from discreet.tables.inspection.refusals import BadAnswer
from discreet.tables.opener import Source, plan_source, read_tables
from discreet.tables.paths import find_files
from discreet.tables.reading import Reading
from discreet.tables.tally import Tallied
from discreet.tables.values import MISSING_WORDS, letter_column, spell, write_cell

ROWS = 8
"""Rows that are shown."""
MOST_WORDS = 30
"""Different values of a column that are shown."""
BLOCK = 50_000
"""Persons whose answers are counted at a time."""
ANSWERS = "answers"
"""The file beside the result that holds the answers."""

PERSON, ITEM, ITEMS, ANSWER = "person", "item", "names of items", "answers"
GROUP, ORDER, LEFT_OUT, UNKNOWN = "group", "order", "left out", "not clear"


@dataclass(frozen=True)
class ReadingProblem:
    """Why answers cannot be read as they are: the message, the place, and what may help."""

    message: str
    where: str = ""
    column: str = ""
    value: str = ""
    remedies: tuple[Remedy, ...] = ()


@dataclass(frozen=True)
class ColumnSummary:
    """One column: what it is taken for and, of an item, what stands there."""

    name: str
    role: str
    words: Mapping[str, int]
    answers: int | None = None
    mean: float | None = None
    number: int = 0

    @property
    def label(self) -> str:
        """What a page calls it; a column without a name goes by its letter."""
        return self.name or f"column {letter_column(self.number)} (no name)"


@dataclass(frozen=True)
class Summary:
    """What was read; ``steps`` is the highest score of an item, ``groups`` who is where."""

    persons: int
    items: tuple[str, ...]
    answers: int
    steps: int
    keyed: bool
    groups: Mapping[str, Mapping[str, int]]

    @property
    def filled(self) -> float:
        """The share of cells that hold an answer."""
        return self.answers / max(1, self.persons * len(self.items))


@dataclass(frozen=True)
class Look:
    """What a file holds, as far as it was understood."""

    names: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    is_long: bool = False
    columns: tuple[ColumnSummary, ...] = ()
    items: tuple[ColumnSummary, ...] = ()
    problem: ReadingProblem | None = None
    summary: Summary | None = None


def look(progress: TaskProgress, source: Path, name: str, options: Mapping[str, Any]) -> Look:
    """Read a file as far as that is possible, and say what was found."""
    inspection = Look()
    try:
        progress.begin("Looking at the first rows")
        reading = Reading(**options)
        inspection, plan = _peek(source, reading)
        if isinstance(plan, DiscreetError):
            return replace(inspection, problem=_explain(plan, source, name))
        progress.begin("Looking at what stands in each column")
        words = _count_words(source, reading, progress)
        inspection = replace(inspection, columns=_list_columns(inspection.names, plan, words))
        progress.begin("Reading the answers")
        responses = read_responses(source, **options, progress=counting(progress, source))
    except (BadResponses, BadUsage) as error:
        return replace(inspection, problem=_explain(error, source, name))
    keep(progress.folder / ANSWERS, responses)
    progress.begin("Counting what is missing and what is right")
    return _describe(inspection, responses, words)


def counting(progress: TaskProgress, source: Path) -> Any:
    """Return what a reader of a file tells how far it is."""
    total = sum(path.stat().st_size for path in find_files(source))
    return lambda done: progress.count(min(done, total), total)


def _explain(error: DiscreetError, source: Path, name: str) -> ReadingProblem:
    """Return a refusal with the name that the user knows instead of the place of a copy.

    What it proposes stands below it, each with a button, and is not said twice.
    """
    message = str(error).replace(str(source), name)
    for remedy in error.remedies:
        message = message.replace(f"{remedy.words[0].upper()}{remedy.words[1:]}.", "").strip()
    bad_cell = error.found if isinstance(error, BadAnswer) else None
    if bad_cell is None:
        return ReadingProblem(message, remedies=error.remedies)
    location = bad_cell.where.replace(str(source), name)
    return ReadingProblem(message, location, bad_cell.column, spell(bad_cell.value), error.remedies)


# -- the first rows --------------------------------------------------------------------------


Plan = LongPlan | WidePlan


def _peek(source: Path, reading: Reading) -> tuple[Look, Plan | DiscreetError]:
    """Return names and first rows, and what the columns are or why nobody knows."""

    def take(tables: Iterator[Source]) -> tuple[Look, Plan | DiscreetError]:
        first = next(tables)
        names = tuple(first.names)
        batch = next(first.batches(range(len(names))), [])
        columns = [[_show(cell) for cell in part.slice(0, ROWS).to_pylist()] for part in batch]
        inspection = Look(names, tuple(zip(*columns, strict=True)))
        try:
            plan = plan_source(first, reading)
        except (BadResponses, BadUsage) as error:
            unknown = tuple(
                ColumnSummary(name, UNKNOWN, {}, number=i) for i, name in enumerate(names)
            )
            return replace(inspection, columns=unknown), error
        # The rest of the file may be damaged: then this is all that is known of the columns.
        listed = _list_columns(names, plan, {})
        return replace(inspection, is_long=isinstance(plan, LongPlan), columns=listed), plan

    return read_tables(source, take, reading=reading)


def _show(cell: Any) -> str:
    return "" if cell is None else str(write_cell(cell))[:60]


class _Words(Tallied):
    """How often every value occurs, as it is written, whatever it means."""

    def _count(self, item: str, value: Any, times: int) -> None:
        counts = self.by_item.setdefault(item, {})
        word = spell(value)
        if value is None or not times or word.lower() in MISSING_WORDS or len(counts) > MOST_WORDS:
            return
        counts[word] = counts.get(word, 0) + times


def _count_words(
    source: Path, reading: Reading, progress: TaskProgress
) -> Mapping[str, Mapping[str, int]]:
    return read_tables(
        source,
        _Words(replace(reading, looking=True)).take,
        reading=replace(reading, looking=True),
        progress=counting(progress, source),
    )


def _list_columns(
    names: tuple[str, ...], plan: Plan, words: Mapping[str, Mapping[str, int]]
) -> tuple[ColumnSummary, ...]:
    roles = dict.fromkeys(range(len(names)), LEFT_OUT)
    if isinstance(plan, LongPlan):
        roles |= {plan.person: PERSON, plan.item: ITEMS, plan.response: ANSWER}
    else:
        roles |= dict.fromkeys(plan.items, ITEM)
        roles |= {} if plan.person is None else {plan.person: PERSON}
    roles |= dict.fromkeys(plan.groups, GROUP) | dict.fromkeys(plan.order, ORDER)
    return tuple(
        ColumnSummary(
            name,
            roles[number],
            words.get(name, {}) if roles[number] == ITEM else {},
            number=number,
        )
        for number, name in enumerate(names)
    )


# -- what was read ---------------------------------------------------------------------------


def _describe(
    inspection: Look, responses: Responses, words: Mapping[str, Mapping[str, int]]
) -> Look:
    answers, score = _sum_answers(responses)
    means = np.divide(score, answers, where=answers > 0, out=np.full(len(answers), np.nan))
    items = tuple(
        ColumnSummary(name, ITEM, words.get(name, {}), int(answers[i]), float(means[i]))
        for i, name in enumerate(responses.items)
    )
    by_name = {column.name: column for column in items}
    columns = tuple(
        by_name.get(column.name, column) if column.role == ITEM else column
        for column in inspection.columns
    )
    summary = Summary(
        responses.n_persons,
        responses.items,
        int(answers.sum()),
        max(responses.steps),
        responses.choices is not None,
        {name: _count_labels(labels) for name, labels in responses.groups.items()},
    )
    return replace(inspection, columns=columns, items=items, summary=summary)


def _sum_answers(responses: Responses) -> tuple[Any, Any]:
    """Return how many answers each item has, and their sum."""
    answers = np.zeros(responses.n_items, dtype=np.int64)
    score = np.zeros(responses.n_items, dtype=np.int64)
    for start in range(0, responses.n_persons, BLOCK):
        block = responses.rows(start, min(start + BLOCK, responses.n_persons))
        answers += (block >= 0).sum(axis=0)
        score += np.maximum(block, 0).sum(axis=0, dtype=np.int64)
    return answers, score


def _count_labels(labels: Any) -> dict[str, int]:
    counted: dict[str, int] = {}
    for label in map(str, labels):
        counted[label] = counted.get(label, 0) + 1
    first = sorted(counted.items(), key=lambda pair: -pair[1])
    return dict(islice(first, MOST_WORDS))
