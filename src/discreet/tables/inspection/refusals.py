"""Values that are neither right nor wrong: steps of a scale, or refused with what to do first.

In: the cell and the columns of answers around it; or all tables. Out: one error, whose advice is
what the inspection makes of these columns; or a reading with the scale that the tally of all values
shows. The first advice gives the right analysis where the guess is right, and none can turn a code
for a missing answer into a right one: no threshold is ever made of the value found.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.choices import PlainMapping
from discreet.coding.reading import PLAIN, Reading
from discreet.coding.remedies import join_remedies, make_remedy
from discreet.coding.steps import (
    GAP,
    LARGEST,
    AskedSteps,
    BadScale,
    CategoryScale,
    Tally,
    UnlistedValue,
    find_scale,
    find_shared_run,
    find_without_words,
)
from discreet.coding.values import (
    ANSWERS,
    BAD,
    MISSING_WORDS,
    ValueScoring,
    as_number,
    show,
    spell,
    write_cell,
)
from discreet.errors import BadResponses, Remedy
from discreet.tables.cells import match_cells, read_integers
from discreet.tables.columns import LongPlan
from discreet.tables.findings import Findings
from discreet.tables.ids import encode_ids
from discreet.tables.inspection.answers import OFTEN, Tallied, give_key, judge_answers
from discreet.tables.inspection.columns import ColumnRoles
from discreet.tables.inspection.rows import limit_rows
from discreet.tables.opener import Source, plan_source
from discreet.tables.vocabulary import Column, drop_codes_above, is_code
from discreet.types import BoolArray, Int8Array

_ACCEPTED = (
    "Answers must be 0, 1, true or false, steps (whole numbers from 0 or 1 with at most "
    "eleven categories and no gap), or missing (blank, NA, NaN, '.' or null)."
)
#: Characters that a code for a missing answer may have, to be suggested as one.
_LONGEST_CODE = 12
_LETTER = re.compile(r"[A-Za-z]")
#: Either thousands or three decimals, which differ a little too much to guess.
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3},[0-9]{3}")


class BadAnswer(BadResponses):
    """A value that is neither right, wrong nor missing; it may be a step."""

    found: RefusedCell | None = None

    def _explain(self) -> tuple[str, dict[str, object]]:
        code, facts = super()._explain()
        cell = self.found
        if cell is None:
            return code, facts
        place = {"where": cell.where, "column": cell.column, "value": show(cell.value)}
        return code, place | facts


@dataclass(frozen=True)
class RefusedCell:
    """A value that is no answer, and where it was found.

    Attributes
    ----------
    where
        File and row, as a person would look for them.
    column
        The column's name.
    value
        What stood there.
    item
        The item.
    columns
        The answers by item, in the rows that were looked at.
    is_wide
        Whether the column was taken for an item, so that it may not be one.
    has_person
        Whether another column names the persons.
    reading
        What the user said.
    """

    where: str
    column: str
    value: Any
    item: str = ""
    columns: tuple[Column, ...] = ()
    is_wide: bool = False
    has_person: bool = True
    reading: Reading = PLAIN

    @property
    def is_listed(self) -> bool:
        """Whether a public list says which categories the item has."""
        return bool(self.reading.listed)

    @property
    def answers(self) -> Column:
        """The answers to the item."""
        alone = Column(0, self.item, [write_cell(self.value)])
        return next((column for column in self.columns if column.name == self.item), alone)

    @cached_property
    def everywhere(self) -> Counter[str]:
        """How often each value occurs, whatever the item."""
        return sum((column.words for column in self.columns), Counter[str]())

    @property
    def share(self) -> str:
        """How often the value occurs, in words; empty where nobody counted."""
        times, total = self.everywhere[spell(self.value)], sum(self.everywhere.values())
        return f" ({times:,} of {total:,} answers looked at)" if times else ""

    def tell(self) -> str:
        """Say what stands in the cell, and where that is."""
        return (
            f"{self.where}, column '{self.column}': found {show(self.value)} where an answer "
            "should be."
        )


def refuse_long(
    values: Int8Array, column: pa.Array, items: pa.Array, name: str, reading: Reading,
    locate: Callable[[int], str],
) -> BadAnswer:  # fmt: skip
    """Return the refusal of the first answer of a long table that is none.

    Parameters
    ----------
    values
        The codes of the answers.
    column, items, name
        What stood there, to which items (a dictionary), and the column's name; "" where each item
        has one, as in wide records.
    reading
        What the user said.
    locate
        Says where a row is.
    """
    row = int(np.flatnonzero(values == BAD)[0])
    item, by_item = items[row].as_py(), dict[str, list[str | None]]()
    for listed, cell in zip(*_list_cells([items, column], row), strict=True):
        by_item.setdefault(str(listed), []).append(cell)
    columns = tuple(Column(n, *entry) for n, entry in enumerate(by_item.items()))
    place, value = locate(row), column[row].as_py()
    cell = RefusedCell(place, name or item, value, item, columns, is_wide=not name, reading=reading)
    return refuse_answer(cell, reading.scoring_of(item))


def refuse_wide(
    location: str, items: Sequence[str], columns: Sequence[Any], position: tuple[int, int],
    reading: Reading, *, has_person: bool,
) -> BadAnswer:  # fmt: skip
    """Return the refusal of a value in a wide table.

    Parameters
    ----------
    location
        File and row.
    items, columns
        All columns of answers.
    position
        Number of the row, and of the column among them.
    reading
        What the user said.
    has_person
        Whether another column names the persons.
    """
    row, number = position
    cells = zip(items, _list_cells(columns, row), strict=True)
    looked_at = tuple(Column(n, *entry) for n, entry in enumerate(cells))
    cell = RefusedCell(
        location, items[number], columns[number][row].as_py(), items[number], looked_at,
        is_wide=True, has_person=has_person, reading=reading,
    )  # fmt: skip
    return refuse_answer(cell, reading.scoring_of(items[number]))


def _list_cells(columns: Sequence[Any], row: int) -> list[list[str | None]]:
    """Return columns as texts, as many rows as are looked at, with this one among them."""
    most = limit_rows(len(columns))
    start = max(0, row + 1 - most)
    return [
        [write_cell(cell) for cell in column.slice(start, most).to_pylist()] for column in columns
    ]


def refuse_answer(cell: RefusedCell, scoring: ValueScoring) -> BadAnswer:
    """Return the refusal of a value that is no answer, with what to do."""
    if scoring.codes is not None:
        why = f"The categories of this item are {', '.join(scoring.codes)}."
        remedies = list_scale_remedies(cell, scoring.codes)
    elif scoring.at_least is not None:
        why = (
            f"With at_least={scoring.at_least:g} every answer must be a number or missing (blank, "
            "NA, NaN, '.' or null)."
        )
        remedies = [_correct(cell), *_leave_out(cell)]
    else:
        why, remedies = _ACCEPTED, _advise(cell)
    return refuse_cell(cell, why, remedies)


def refuse_cell(cell: RefusedCell, why: str, remedies: Sequence[Remedy]) -> BadAnswer:
    """Return the refusal of a cell: what, where, why, what to do."""
    refusal = BadAnswer(f"{cell.tell()} {why} {join_remedies(remedies)}").offering(*remedies)
    refusal.found = cell
    return refusal


@contextmanager
def advise_listed() -> Iterator[None]:
    """Say what to do where a matrix holds a value that is none of the categories of its item."""
    try:
        yield
    except UnlistedValue as refusal:
        columns = tuple(Column(0, *counts) for counts in refusal.tally.items())
        listed = Reading(listed=frozenset({refusal.item}))
        cell = RefusedCell("", refusal.item, refusal.value, refusal.item, columns, reading=listed)
        remedies = list_scale_remedies(cell, refusal.codes)
        words = f"{refusal.reason} {join_remedies(remedies)}"
        raise BadResponses(words).offering(*remedies) from None


def list_scale_remedies(cell: RefusedCell, codes: Iterable[str]) -> list[Remedy]:
    """Return what to do about a value outside the categories of an item."""
    if not cell.is_listed:
        return [_correct(cell), *_leave_out(cell)]
    scale = list(map(int, codes))  # a list of items has whole numbers alone
    lowest = _find_lowest(cell, min(scale), max(scale))
    if lowest is not None:
        before = f"if the scale of the questionnaire begins at {lowest}, state"
        return [make_remedy(before, {"lowest": lowest}), Remedy("otherwise correct the cell")]
    number = as_number(cell.value)
    if number is not None and min(scale) - GAP < number < max(scale) + GAP:
        return [
            Remedy("correct the cell; or the steps on the item list, if the item has more of them")
        ]
    return [_correct(cell)]


def _find_lowest(cell: RefusedCell, low: int, high: int) -> int | None:
    """Return where a scale of as many steps must begin to hold the values that occur.

    Values that stand apart are left aside. None where the scale begins there already, or where
    the values need more steps.
    """
    least = min(0, low)
    used = [step for step in _find_numbers(cell.answers.words) if step >= least]
    while len(used) > 1 and used[-1] - used[-2] >= GAP:
        used.pop()
    if as_number(cell.value) not in used:
        return None
    first = max(used) - (high - low)
    last = min(step for step in (*used, *_find_numbers(cell.everywhere)) if step >= least)
    fitting = [step for step in (1, 0, int(first)) if first <= step <= last and step != low]
    return fitting[0] if fitting else None


# -- what it may be --------------------------------------------------------------------------


def _advise(cell: RefusedCell) -> list[Remedy]:
    """Return what to do, the likeliest first."""
    number = as_number(cell.value)
    if cell.item in cell.reading.keep:
        return [*_leave_out(cell), Remedy("correct the cell")]
    if cell.reading.right:
        words = f"the key has no right answer for item '{cell.item}': add it to the key"
        return [Remedy(words, asks="key"), *_leave_out(cell), _correct(cell)]
    if cell.is_listed and number is not None:
        return [*list_scale_remedies(cell, ("0", "1")), _name_steps(), *_name_scores(cell)]
    findings = Findings({"person": ""} if cell.has_person else {})
    items: Sequence[Column] = cell.columns
    if cell.is_wide:
        items = ColumnRoles(cell.columns, findings, len(cell.answers.cells)).find()
        if cell.answers not in items or cell.answers.is_called("groups"):
            return [*_name_role(cell, findings.options), *_leave_out(cell), _correct(cell)]
    if number is not None:
        is_lone = len(_answers_aside(cell)) == 1 and is_code(number)
        first = _name_scores(cell) if is_lone else [_name_scale(cell)]
        listed = [_correct(cell), *first] if is_lone else [*first, _correct(cell)]
        return [*listed, *_leave_out(cell)]
    judge_answers(items, findings, {})
    return [*_name_options(cell, findings.options), _correct(cell), *_leave_out(cell)]


def _name_role(cell: RefusedCell, options: PlainMapping) -> list[Remedy]:
    """Return what the inspection takes a column for that is no item."""
    name, answers = cell.column, cell.answers
    if answers.is_called("groups"):
        return [make_remedy(f"if '{name}' groups the persons, say", {"group": name})]
    is_person = options.get("person") == name or answers.is_called("ids", "names", "numbers")
    if is_person and not cell.has_person:
        return [make_remedy(f"if '{name}' tells the persons apart, say", {"person": name})]
    return []


def _name_options(cell: RefusedCell, options: PlainMapping) -> list[Remedy]:
    """Return what to say of letters and of texts."""
    if "categories" in options:
        before = "if these are ordered answers, state them from the lowest to the highest with"
        return [make_remedy(before, {"categories": options["categories"]})]
    words = _answers_aside(cell)
    letters = sum(n for word, n in cell.everywhere.items() if _LETTER.fullmatch(word))
    is_few = 1 < len(words) <= 8 and len(words) == len(cell.answers.words)
    is_letter = bool(words) and all(_LETTER.fullmatch(word) for word in words)
    are_options = is_few or is_letter or 2 * letters > sum(cell.everywhere.values())
    return [give_key()] if are_options else []


def _answers_aside(cell: RefusedCell) -> list[str]:
    """Return the words of a column that are neither answers nor blank."""
    answer_words = {"0", "1", *ANSWERS, *MISSING_WORDS}
    return [word for word in cell.answers.words if word.lower() not in answer_words]


# -- what to do ------------------------------------------------------------------------------


def _correct(cell: RefusedCell) -> Remedy:
    word, is_number = spell(cell.value), as_number(cell.value) is not None
    blank = "" if is_number else ", or leave it blank"
    if _THOUSANDS.fullmatch(word):
        return Remedy(
            f"write {show(cell.value)} with a point or without a comma: it could be thousands"
        )
    code = _missing_code(cell.value) if _may_be_missing(cell) else None
    if code is None:
        return Remedy(f"correct the cell{blank}")
    return make_remedy(
        f"if {word} stands for a missing answer{cell.share}, say so with",
        {"missing": [code]},
        f"; otherwise correct the cell{blank}",
    )


def _may_be_missing(cell: RefusedCell) -> bool:
    """Say whether a value can stand for a missing answer.

    Not a value inside the run of values that most items share, nor a letter that many cells hold.
    """
    word, every = spell(cell.value), cell.everywhere
    if as_number(word) is None:
        is_rare = every[word] <= OFTEN * sum(every.values())
        return is_rare or not _LETTER.fullmatch(word)
    runs = [_find_numbers(column.words) for column in cell.columns]
    return as_number(cell.value) not in find_shared_run(runs)


def _missing_code(value: object) -> int | str | None:
    """Return a value that can be a code for a missing answer, as a number where it is one."""
    word = spell(value)
    is_whole = word.isascii() and word.removeprefix("-").isdecimal()
    is_text = isinstance(value, str) and as_number(word) is None and word.lower() not in ANSWERS
    if not (is_whole or is_text) or len(word) > _LONGEST_CODE or "," in word or ":" in word:
        return None
    return int(word) if is_whole and str(int(word)) == word else word


def _leave_out(cell: RefusedCell) -> list[Remedy]:
    if not cell.is_wide:
        return []
    before = f"if '{cell.column}' is not an item, leave it out with"
    return [make_remedy(before, {"ignore": [cell.column]})]


def _name_steps() -> Remedy:
    return Remedy(
        "if items have steps, name them with the item list: a table with the columns item and "
        "steps, in Python items={'Q1': 4}"
    )


def _name_scores(cell: RefusedCell) -> list[Remedy]:
    if as_number(cell.value) is None:
        return []
    before = "if answers are scores, say from which score on they count as right with"
    return [make_remedy(before, {}, asks="at_least")]


def _name_scale(cell: RefusedCell) -> Remedy:
    """Name scores and rating scales; numbers that stand apart must be named missing with them."""
    numbers = _find_numbers(cell.everywhere or cell.answers.words)
    within = drop_codes_above(numbers)
    apart = [number for number in numbers if number not in within]
    span = f"{within[0]:g} to {within[-1]:g}" if len(within) > 1 else "these numbers"
    codes = [int(number) if number == int(number) else number for number in apart]
    because = (
        f"; {','.join(map(str, codes))} is far outside and would count as right otherwise"
        if apart
        else "; codes for missing answers must be named too, or they count as right"
    )
    return make_remedy(
        f"if {span} are steps of a rating scale or points, say from which score on they count as "
        "right with",
        {"missing": codes} if apart else {},
        because,
        asks="at_least",
    )


def _find_numbers(words: Iterable[str]) -> list[Any]:
    """Return the numbers among words, in order."""
    spelt = {number for word in words if (number := as_number(word)) is not None}
    return sorted(value for value in spelt if -LARGEST < value < LARGEST)


# -- values that may be steps ----------------------------------------------------------------

_TRUTH = {word: str(answer) for word, answer in ANSWERS.items()}


def locate_cell(
    reading: Reading, cells: Mapping[str, frozenset[int]], sources: Iterator[Source]
) -> RefusedCell | None:
    """Return the first cell of the tables that holds one of these values, by item."""
    for source in sources:
        plan, before = plan_source(source, reading), 0
        long = isinstance(plan, LongPlan)
        columns = (plan.response, plan.item) if isinstance(plan, LongPlan) else plan.items
        for batch in source.batches(columns):
            names = [source.names[number] for number in columns]
            position = _find_long(batch, cells) if long else _find_wide(batch, names, cells)
            if position is not None:
                row, index = position
                value, where = batch[index][row].as_py(), source.place(before + row)
                return RefusedCell(where, names[index], value, is_wide=not long)
            before += len(batch[0])
    return None


def _find_wide(
    batch: Sequence[object], names: Sequence[str], cells: Mapping[str, frozenset[int]]
) -> tuple[int, int] | None:
    """Return row and column of the first cell of a batch."""
    hits = [
        (int(rows[0]), index)
        for index, (name, column) in enumerate(zip(names, batch, strict=True))
        if name in cells and len(rows := np.flatnonzero(_hold(column, cells[name])))
    ]
    return min(hits, default=None)


def _find_long(batch: Sequence[Any], cells: Mapping[str, frozenset[int]]) -> tuple[int, int] | None:
    items = encode_ids(batch[1])
    code, hit = read_integers(items.indices), np.zeros(len(batch[0]), dtype=np.bool_)
    for number, name in enumerate(items.dictionary.to_pylist()):
        if cells.get(name):
            hit |= (code == number) & _hold(batch[0], cells[name])
    return (int(np.argmax(hit)), 0) if hit.any() else None


def _hold(column: pa.Array, values: frozenset[int]) -> BoolArray:
    """Say which cells of a column hold one of these numbers."""

    def is_one(word: object) -> bool:
        return as_number(_TRUTH.get(spell(word).lower(), spell(word))) in values

    return match_cells(column, is_one)


def settle_after(refusal: BadAnswer, reading: Reading, read: object) -> Reading:
    """Return the reading with the scale of answers of which one was refused, or refuse it still.

    Where some values are no numbers, the scale is that of the others: the reader then stops at the
    first of those values.
    """
    settled = settle_scale(reading, read, find_without_words)
    if settled is None:
        raise refusal
    return settled


def settle_scale(
    reading: Reading,
    read: Any,
    otherwise: Callable[[Tally, AskedSteps], CategoryScale | None] | None = None,
    *,
    has_rows: bool = True,
) -> Reading | None:
    """Return the reading with the scale of the answers; None where they are no steps.

    Parameters
    ----------
    reading
        What the user said.
    read
        Called with a function of tables and a reading; goes through the tables with both.
    otherwise
        Finds a scale where not all values are steps.
    has_rows
        Whether tables have rows that can be named.
    """
    looking = replace(reading, looking=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to say is said when answers are read
        tally = read(Tallied(looking).take, looking)
    try:
        scale = find_scale(tally, reading.asked)
        if scale is None and otherwise is not None:
            scale = otherwise(tally, reading.asked)
    except BadScale as reason:
        if has_rows and reason.cells:
            raise _point_at(reason, looking, read) from None
        raise
    return None if scale is None else replace(reading, scale=scale)


def _point_at(reason: BadScale, looking: Reading, read: Any) -> BadResponses:
    """Return a refusal that begins with the first cell that it is about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cell = read(partial(locate_cell, looking, reason.cells), looking)
    return reason if cell is None else refuse_cell(cell, reason.reason, reason.remedies)
