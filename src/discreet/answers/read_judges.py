"""Read comparisons from files and data frames.

In: a table with one row per comparison: judge, winner, loser; or judge, left, right, outcome.
Out: :class:`Comparisons`. Ids are read as for answers ("007" stays "007").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from discreet.answers.judges import ERROR, Comparisons, find_repeat
from discreet.errors import BadResponses, BadUsage
from discreet.tables.columns import check_column, choose_column, list_column_names, plain_name
from discreet.tables.ids import IdCodes, read_ids, spell_ids
from discreet.tables.opener import RowPlaces, Source, read_tables
from discreet.tables.reading import REPEATS, Form, check_choice
from discreet.tables.remedies import Detected, join_detected
from discreet.types import Repeats, Ties

Codes = npt.NDArray[np.int64]

_ALIASES = {
    "judge": {"judge", "person", "user", "rater", "voter", "annotator", "evaluator", "subject"},
    "winner": {"winner", "preferred", "chosen", "better"},
    "loser": {"loser", "rejected", "worse"},
    "left": {"left", "first", "a", "item_a", "object_a", "model_a", "option_a"},
    "right": {"right", "second", "b", "item_b", "object_b", "model_b", "option_b"},
    "outcome": {"outcome", "result", "choice", "preference"},
}

TIES: tuple[str, ...] = get_args(Ties)
_LEFT_WORDS = frozenset({"left", "first", "a", "1", "1.0", "true"})
_RIGHT_WORDS = frozenset({"right", "second", "b", "0", "0.0", "false"})
_TIE_WORDS = frozenset({"tie", "draw", "equal", "both", "neither", "tie (bothbad)"})
_LEFT, _RIGHT, _TIE, _NONE = 1, 0, -2, -1


@dataclass(frozen=True)
class Roles:
    """What the user said about the columns, and what to do with repeats and ties."""

    judge: str | None = None
    winner: str | None = None
    loser: str | None = None
    left: str | None = None
    right: str | None = None
    outcome: str | None = None
    repeats: Repeats = "error"
    ties: Ties = "error"

    def __post_init__(self) -> None:
        check_choice("repeats", self.repeats, REPEATS)
        check_choice("ties", self.ties, TIES)


def read_comparisons(
    path: Any,
    *,
    judge: str | None = None,
    winner: str | None = None,
    loser: str | None = None,
    left: str | None = None,
    right: str | None = None,
    outcome: str | None = None,
    repeats: Repeats = "error",
    ties: Ties = "error",
    sheet: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
) -> Comparisons:
    r"""Read comparisons from a text file, Parquet, a workbook, SPSS, Stata, SAS or a data frame.

    Parameters
    ----------
    path
        A file, a folder or a pattern; a judge may continue from one file to the next. Or a data
        frame: pandas, polars, pyarrow and others.
    judge, winner, loser
        Column names. By default they are recognised (``judge``, ``rater``, ``user``, ...;
        ``winner``, ``preferred``, ``chosen``; ``loser``, ``rejected``; with or without ``_id``).
    left, right, outcome
        The other layout: two objects and which one was preferred. An outcome is ``left`` or
        ``right``, ``a`` or ``b``, 1 or 0, the name of a column or of the preferred object.
    repeats
        When a judge compared the same two objects more than once: "error", "first" or "last".
    ties
        What to do with a row whose outcome is a tie: "error" or "drop". The model has no ties.
    sheet, delimiter, header
        As for :func:`discreet.read_responses`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "votes.csv")
    ...     _ = file.write_text("judge,winner,loser\nann,ash,elm\nbob,elm,ash\n")
    ...     read_comparisons(file)
    <Comparisons: 2 judges, 2 objects, 2 comparisons>
    """
    roles = Roles(judge, winner, loser, left, right, outcome, repeats, ties)
    form = Form(sheet, delimiter, header)
    return read_tables(path, partial(_take, roles), form=form)


def open_comparisons(data: Any, words: Mapping[str, Any] | None = None) -> Comparisons:
    """Return comparisons, read from a file or a data frame if need be."""
    return data if isinstance(data, Comparisons) else read_comparisons(data, **(words or {}))


def _take(roles: Roles, sources: Iterator[Source]) -> Comparisons:
    table = _Table(roles)
    for source in sources:
        table.add(source)
    return table.finish()


class _Table:
    """Rows as they come in; :meth:`finish` makes the comparisons of them."""

    def __init__(self, roles: Roles) -> None:
        self._roles = roles
        self._rows = RowPlaces()
        self._judges, self._items = IdCodes(), IdCodes()
        self._outcomes: list[npt.NDArray[np.int8]] = []
        self._detected: tuple[Detected, ...] = ()

    def add(self, source: Source) -> None:
        """Take in all rows of a source."""
        columns = _find_columns(source.names, self._roles, source.name)
        names = [source.names[number] for number in columns]
        self._rows.begin(source)
        self._detected = join_detected([self._detected, source.detect(columns, has_ids=True)])
        for batch in source.batches(columns):
            self._add_batch(batch, names)

    def _add_batch(self, batch: Sequence[Any], names: Sequence[str]) -> None:
        roles = zip(batch, names, ("judge", "object", "object"), strict=False)
        ids = [read_ids(column, name, role, self._rows) for column, name, role in roles]
        self._judges.add(ids[0], batch[0].type)
        self._items.add(ids[1], batch[1].type)
        self._items.add(ids[2], batch[2].type)
        count = len(ids[0])
        if len(batch) == 3:
            outcome = np.full(count, _LEFT, dtype=np.int8)
        else:
            outcome = self._read_outcomes(batch[3], ids, names)
        self._outcomes.append(outcome)
        self._rows.n_rows += count

    def _read_outcomes(
        self, column: Any, ids: Sequence[Any], names: Sequence[str]
    ) -> npt.NDArray[np.int8]:
        words = read_ids(column, names[3], "group", self._rows)
        word_codes = {plain_name(names[1]): _LEFT, plain_name(names[2]): _RIGHT}
        word_codes |= dict.fromkeys(_LEFT_WORDS, _LEFT) | dict.fromkeys(_RIGHT_WORDS, _RIGHT)
        word_codes |= dict.fromkeys(_TIE_WORDS, _TIE)
        values = words.to_pylist()
        left, right = ids[1].to_pylist(), ids[2].to_pylist()
        outcomes = np.full(len(values), _NONE, dtype=np.int8)
        for row, (value, left_name, right_name) in enumerate(zip(values, left, right, strict=True)):
            if value is None:
                continue
            # The object's own name first: an object may be called "a".
            code = (
                _LEFT
                if value == left_name
                else _RIGHT
                if value == right_name
                else word_codes.get(plain_name(value))
            )
            if code is None or (code == _TIE and self._roles.ties == ERROR):
                raise BadResponses(self._explain_outcome(row, names[3], value, code))
            outcomes[row] = _NONE if code == _TIE else code
        return outcomes

    def _explain_outcome(self, row: int, column: str, value: str, code: int | None) -> str:
        location = f"{self._rows.place(self._rows.n_rows + row)}, column '{column}'"
        if code == _TIE:
            return (
                f"{location}: '{value}' is a tie, which the model does not know. Leave ties out "
                "with ties='drop' (--ties drop), and say so where you publish."
            )
        return (
            f"{location}: '{value}' is no outcome. It must be left or right, a or b, 1 (left) or 0 "
            "(right), or the name of the preferred object."
        )

    def finish(self) -> Comparisons:
        """Return the comparisons."""
        if not self._rows.n_rows:
            raise BadResponses(
                "The table has column names but no rows, so there are no comparisons in it."
            )
        judges, items = spell_ids(self._judges.ids()), spell_ids(self._items.ids())
        judge = self._judges.take_codes().astype(np.int64)
        # Each batch added its left objects and then its right ones.
        is_left = np.concatenate([np.repeat((True, False), len(part)) for part in self._outcomes])
        codes = self._items.take_codes().astype(np.int64)
        left, right = codes[is_left], codes[~is_left]
        outcome = np.concatenate(self._outcomes)
        rows = np.flatnonzero(outcome != _NONE)
        won = outcome[rows] == _LEFT
        winner = np.where(won, left[rows], right[rows])
        loser = np.where(won, right[rows], left[rows])
        if self._roles.repeats == ERROR:
            self._refuse_repeat(judge[rows], winner, loser, rows, judges, items)
        data = Comparisons.from_codes(
            judge[rows], winner, loser, items=items, judges=judges, repeats=self._roles.repeats
        )
        return data.remember(self._detected)

    def _refuse_repeat(
        self, judge: Codes, winner: Codes, loser: Codes, rows: Any, judges: Any, items: Any
    ) -> None:
        repeat = find_repeat(judge, winner, loser, len(items))
        if repeat is None:
            return
        first, second = repeat
        raise BadResponses(
            f"Judge '{judges[judge[first]]}' compared '{items[winner[first]]}' and "
            f"'{items[loser[first]]}' more than once: {self._rows.place(int(rows[first]))} and "
            f"{self._rows.place(int(rows[second]))}. Only one comparison of two objects can count "
            "for a judge. Remove one, or keep the first or the last with repeats='first' or "
            "repeats='last' (--repeats first, --repeats last)."
        )


def _find_columns(names: Sequence[str], roles: Roles, location: str) -> list[int]:
    """Return the numbers of judge, winner, loser, or of judge, left, right, outcome."""
    judge, winner, loser, left, right, outcome = (
        _find(names, role, getattr(roles, role), location) for role in _ALIASES
    )
    if outcome is None and loser is None:
        outcome = winner  # "model_a, model_b, winner": which side won
    numbers = [judge, winner, loser] if loser is not None else [judge, left, right, outcome]
    chosen = [number for number in numbers if number is not None]
    if len(chosen) < len(numbers):
        raise BadResponses(
            f"{location}: comparisons need the columns judge, winner and loser, or judge, left, "
            f"right and outcome; the columns are {list_column_names(names)}. Name the ones that "
            "are called otherwise, for example judge='rater' (--judge rater)."
        )
    if len(set(chosen)) < len(chosen):
        raise BadUsage(f"{location}: one column cannot have two roles; name different columns.")
    return chosen


def _find(names: Sequence[str], role: str, column: str | None, location: str) -> int | None:
    if column is not None:
        check_column(names, role, column, location)
        return list(names).index(column)
    candidates = [number for number, name in enumerate(names) if plain_name(name) in _ALIASES[role]]
    return choose_column(names, candidates, role, role, location)
