"""Comparisons of judges from tables.

In: a table with one row per comparison: judge, winner, loser; or judge, left, right, outcome. Out:
:class:`~discreet.Comparisons`. Ids are read as for answers ("007" stays "007").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

import numpy as np
import pyarrow as pa

from discreet.answers.comparisons import ERROR, Comparisons, pair_keys
from discreet.answers.pack import find_repeated
from discreet.choices import Repeats, Ties
from discreet.coding.ids import spell_ids
from discreet.coding.reading import REPEATS, Form, check_choice
from discreet.coding.remedies import Detected, join_detected
from discreet.errors import BadResponses, BadUsage
from discreet.tables.columns import check_column, choose_column, list_column_names, plain_name
from discreet.tables.ids import IdCodes, read_ids
from discreet.tables.opener import RowPlaces, Source, read_tables
from discreet.types import Int8Array

_ALIASES = {
    "judge": {"judge", "person", "user", "rater", "voter", "annotator", "evaluator", "subject"},
    "winner": {"winner", "preferred", "chosen", "better"},
    "loser": {"loser", "rejected", "worse"},
    "left": {"left", "first", "a", "item_a", "object_a", "model_a", "option_a"},
    "right": {"right", "second", "b", "item_b", "object_b", "model_b", "option_b"},
    "outcome": {"outcome", "result", "choice", "preference"},
}


_LEFT_WORDS = frozenset({"left", "first", "a", "1", "1.0", "true"})


_RIGHT_WORDS = frozenset({"right", "second", "b", "0", "0.0", "false"})


_TIE_WORDS = frozenset({"tie", "draw", "equal", "both", "neither", "tie (bothbad)"})


_LEFT, _RIGHT, _TIE, _NONE = 1, 0, -2, -1


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
    check_choice("repeats", repeats, REPEATS)
    check_choice("ties", ties, get_args(Ties))
    columns = dict(zip(_ALIASES, (judge, winner, loser, left, right, outcome), strict=True))
    form = Form(sheet, delimiter, header)
    return read_tables(path, lambda s: _Table(columns, repeats, ties).read(s), form=form)


def open_comparisons(data: Any, words: Mapping[str, Any] | None = None) -> Comparisons:
    """Return comparisons, read if need be."""
    return data if isinstance(data, Comparisons) else read_comparisons(data, **(words or {}))


class _Table:
    """Rows as they come in, and the comparisons that are made of them."""

    def __init__(self, columns: Mapping[str, str | None], repeats: Repeats, ties: Ties) -> None:
        self._columns, self._repeats, self._ties = columns, repeats, ties
        self._rows = RowPlaces()
        self.judges, self.items = IdCodes(), IdCodes()
        self._outcomes: list[Int8Array] = []
        self._detected: tuple[Detected, ...] = ()

    def read(self, sources: Iterator[Source]) -> Comparisons:
        """Return the comparisons of all sources."""
        for source in sources:
            columns = _find_columns(source.names, self._columns, source.name)
            names = [source.names[number] for number in columns]
            self._rows.begin(source)
            roles = (self.judges, "judge"), (self.items, "object"), (self.items, "object")
            for batch in source.batches(columns):
                ids = []
                for column, name, (codes, role) in zip(batch, names, roles, strict=False):
                    ids.append(read_ids(column, name, role, self._rows))
                    codes.add(ids[-1], column.type)
                outcome = np.full(len(ids[0]), _LEFT, dtype=np.int8)
                if len(batch) > 3:
                    outcome = self._read_outcomes(batch[3], ids, names)
                self._outcomes.append(outcome)
                self._rows.n_rows += len(outcome)
            self._detected += source.detect(columns, has_ids=True)
        return self.finish()

    def _read_outcomes(
        self, column: pa.Array, ids: Sequence[Any], names: Sequence[str]
    ) -> Int8Array:
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
            own_names = {right_name: _RIGHT, left_name: _LEFT}
            code = own_names.get(value, word_codes.get(plain_name(value)))
            if code is None or (code == _TIE and self._ties == ERROR):
                place = self._rows.place(self._rows.n_rows + row)
                raise BadResponses(
                    f"{place}, column '{names[3]}': '{value}' is "
                    + (
                        "no outcome. It must be left or right, a or b, 1 (left) or 0 (right), or "
                        "the name of the preferred object."
                        if code is None
                        else "a tie, which the model does not know. Leave ties out with "
                        "ties='drop' (--ties drop), and say so where you publish."
                    )
                )
            outcomes[row] = _NONE if code == _TIE else code
        return outcomes

    def finish(self) -> Comparisons:
        """Return the comparisons."""
        if not self._rows.n_rows:
            raise BadResponses(
                "The table has column names but no rows, so there are no comparisons in it."
            )
        judges, items = self.judges.ids().cast("string").to_pylist(), spell_ids(self.items.ids())
        judge = self.judges.take_codes().astype(np.int64)
        # Each batch added its left objects and then its right ones.
        is_left = np.concatenate([np.repeat((True, False), len(part)) for part in self._outcomes])
        codes = self.items.take_codes().astype(np.int64)
        left, right = codes[is_left], codes[~is_left]
        outcome = np.concatenate(self._outcomes)
        rows = np.flatnonzero(outcome != _NONE)
        won = outcome[rows] == _LEFT
        winner = np.where(won, left[rows], right[rows])
        loser = np.where(won, right[rows], left[rows])
        repeat = find_repeated(pair_keys(judge[rows], winner, loser, len(items)))
        if repeat is not None and self._repeats == ERROR:
            first, second = repeat
            raise BadResponses(
                f"Judge '{judges[judge[rows[first]]]}' compared '{items[winner[first]]}' and "
                f"'{items[loser[first]]}' more than once: {self._rows.place(int(rows[first]))} and "
                f"{self._rows.place(int(rows[second]))}. Only one comparison of two objects can "
                "count for a judge. Remove one, or keep the first or the last with repeats='first' "
                "or repeats='last' (--repeats first, --repeats last)."
            )
        data = Comparisons.from_codes(
            judge[rows], winner, loser, items=items, judges=judges, repeats=self._repeats
        )
        return data.derive(detected=join_detected([self._detected]))


def _find_columns(
    names: Sequence[str], stated: Mapping[str, str | None], location: str
) -> list[int]:
    """Return the numbers of judge, winner, loser, or of judge, left, right, outcome."""
    plain = [plain_name(name) for name in names]
    candidates = {
        role: [number for number, name in enumerate(plain) if name in aliases]
        for role, aliases in _ALIASES.items()
    }
    judge, winner, loser, left, right, outcome = (
        find_role(names, role, stated[role], candidates[role], location) for role in _ALIASES
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


def find_role(
    names: Sequence[str], role: str, column: str | None, candidates: Sequence[int], location: str
) -> int | None:
    """Return the number of the column with a role: the stated one, or the only candidate."""
    if column is None:
        return choose_column(names, candidates, role, role, location)
    check_column(names, role, column, location)
    return list(names).index(column)
