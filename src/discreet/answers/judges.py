"""Comparisons: which of two objects each judge preferred.

In: codes of judges, winners and losers, with names; or a table with one row per comparison: judge,
winner, loser; or judge, left, right, outcome. Out: :class:`Comparisons`, which never changes, and
holds at most one comparison of a judge for each two objects. Ids are read as for answers ("007"
stays "007"). It computes nothing about strength.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, TypedDict, Unpack, get_args

import numpy as np
import numpy.typing as npt

from discreet.answers.pack import find_repeated, keep_one
from discreet.answers.protocol import digest_ids, digest_rows
from discreet.answers.select import check_cap
from discreet.checking import checked
from discreet.counts import ComparisonCounts
from discreet.counts.pairs import Weighting
from discreet.errors import BadResponses, BadUsage
from discreet.secure import RandomSource, random_ranks
from discreet.tables.columns import check_column, choose_column, list_column_names, plain_name
from discreet.tables.ids import IdCodes, check_codes, check_items, make_ids, read_ids, spell_ids
from discreet.tables.opener import RowPlaces, Source, read_tables
from discreet.tables.reading import REPEATS, Form, check_choice
from discreet.tables.remedies import Detected, join_detected
from discreet.types import BoolArray, Int8Array, Int64Array, Repeats, Texts, Ties

ERROR = "error"


class ComparisonWords(TypedDict, total=False):
    """Keywords about the columns of a table of comparisons."""

    judge: str | None
    winner: str | None
    loser: str | None
    left: str | None
    right: str | None
    outcome: str | None
    repeats: Repeats
    ties: Ties


@dataclass(frozen=True, eq=False, repr=False)
class Comparisons:
    """Judges who each preferred one of two objects, pair by pair. It cannot be changed.

    Made by :func:`discreet.read_comparisons`, :meth:`from_codes` or :meth:`from_dataframe`.

    Parameters
    ----------
    items
        Names of the objects, all different.
    judges
        Ids of the judges, all different; None numbers them "0", "1", ...
    starts
        Judge l made the comparisons ``starts[l]`` to ``starts[l + 1] - 1``.
    winner, loser
        Numbers of the two objects of each comparison.
    detected
        What the data decided about how they were read.

    Examples
    --------
    >>> votes = Comparisons.from_codes(
    ...     judge=[0, 0, 1], winner=[0, 1, 0], loser=[1, 2, 2], items=["ash", "elm", "oak"]
    ... )
    >>> votes
    <Comparisons: 2 judges, 3 objects, 3 comparisons>
    >>> votes.count().wins.tolist()
    [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    """

    items: tuple[str, ...]
    judges: Any
    starts: Int64Array
    winner: Int64Array
    loser: Int64Array
    is_numbered: bool = field(init=False)
    detected: tuple[Detected, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        starts, n_items = np.array(self.starts, dtype=np.int64), len(self.items)
        winner, loser = (
            check_codes(side, n_items, "object").copy() for side in (self.winner, self.loser)
        )
        fits = starts.ndim == 1 and len(starts) and starts[0] == 0 and (np.diff(starts) >= 0).all()
        if not fits or not len(winner) == len(loser) == starts[-1]:
            raise BadUsage(
                "starts must begin with 0, never fall, and end with the number of comparisons; use "
                "Comparisons.from_codes for entries in any order"
            )
        items = check_items(self.items, n_items)
        judges = _check_judges(self.judges, len(starts) - 1)
        values = (items, judges, starts, winner, loser, self.judges is None, tuple(self.detected))
        for part, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, part.name, value)
        for array in (starts, winner, loser):
            array.setflags(write=False)
        self._refuse_same_and_repeated()

    @classmethod
    @checked
    def from_codes(
        cls,
        judge: npt.ArrayLike,
        winner: npt.ArrayLike,
        loser: npt.ArrayLike,
        *,
        items: Sequence[object],
        judges: Sequence[object] | int | None = None,
        repeats: Repeats = "error",
    ) -> Comparisons:
        """Take one entry per comparison: number of the judge, of the winner, of the loser.

        Numbers count from 0. ``items`` names the objects in the order of their numbers, ``judges``
        the judges, or says how many there are. ``repeats`` says what happens where a judge compared
        the same two objects more than once: "error", or keep the "first" or the "last".
        """
        check_choice("repeats", repeats, REPEATS)
        numbers = np.asarray(judge)
        if judges is None:
            judges = int(numbers.max(initial=-1)) + 1
        n_judges = judges if isinstance(judges, int) else len(judges)
        judge_codes = check_codes(numbers, n_judges, "judge")
        first, second = (check_codes(side, len(items), "object") for side in (winner, loser))
        if not len(judge_codes) == len(first) == len(second):
            raise BadResponses(
                "Comparisons need a judge, a winner and a loser each; found vectors of length "
                f"{len(judge_codes)}, {len(first)} and {len(second)}."
            )
        if repeats != ERROR:
            kept_rows = keep_one(_pair_keys(judge_codes, first, second, len(items)), repeats)
            judge_codes, first, second = judge_codes[kept_rows], first[kept_rows], second[kept_rows]
        order = np.argsort(judge_codes, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(judge_codes, minlength=n_judges))])
        ids = None if isinstance(judges, int) else judges
        return cls(check_items(items, len(items)), ids, starts, first[order], second[order])

    @classmethod
    def from_dataframe(cls, frame: Any, **words: Unpack[ComparisonWords]) -> Comparisons:
        """Take a data frame with one row per comparison: pandas, polars, pyarrow and others.

        The keywords are those of :func:`discreet.read_comparisons`.
        """
        return read_comparisons(frame, **words)

    @property
    def n_judges(self) -> int:
        """Number of judges, those without a comparison included."""
        return len(self.starts) - 1

    @property
    def n_items(self) -> int:
        """Number of objects, those that were never compared included."""
        return len(self.items)

    @property
    def n_comparisons(self) -> int:
        """Number of comparisons."""
        return len(self.winner)

    @cached_property
    def judge(self) -> Int64Array:
        """Number of the judge of each comparison."""
        return np.repeat(np.arange(self.n_judges), np.diff(self.starts))

    def select(self, items: Sequence[object]) -> Comparisons:
        """Return the same comparisons with exactly these objects in this order.

        New names are objects that nobody compared. Leaving out an object that somebody compared
        is refused, because the comparisons would no longer be whole judges'.
        """
        names = check_items(items, len(items))
        new = self._number_in(names)
        winner, loser = new[self.winner], new[self.loser]
        lost = np.flatnonzero((winner < 0) | (loser < 0))
        if lost.size:
            first = int(lost[0])
            codes = (self.winner[first], self.loser[first])
            name = next(self.items[int(code)] for code in codes if new[code] < 0)
            raise BadUsage(
                f"{lost.size} comparisons are about objects that are not in the list, for "
                f"example {name!r}. Add them to the list, or remove those comparisons first."
            )
        return self.derive(items=names, winner=winner, loser=loser)

    def keep(self, items: Sequence[object]) -> Comparisons:
        """Return the comparisons of two of these objects; a judge may be left without any."""
        names = check_items(items, len(items))
        new = self._number_in(names)
        is_kept = (new[self.winner] >= 0) & (new[self.loser] >= 0)
        if not is_kept.any() and is_kept.size:
            raise BadResponses(
                f"no comparison is of two listed objects: the list begins with {names[0]!r}, the "
                f"data with {self.items[0]!r}. Write objects as the data does"
            )
        rest = self._keep_rows(is_kept)
        return rest.derive(items=names, winner=new[rest.winner], loser=new[rest.loser])

    def _keep_rows(self, is_kept: BoolArray) -> Comparisons:
        """Return some of the comparisons."""
        starts = np.concatenate([[0], np.cumsum(is_kept)])[self.starts]
        return self.derive(starts=starts, winner=self.winner[is_kept], loser=self.loser[is_kept])

    def _number_in(self, names: Sequence[str]) -> Int64Array:
        """Return the number that each object has in another list; -1 where it is not in it."""
        number = {name: index for index, name in enumerate(names)}
        return np.array([number.get(name, -1) for name in self.items], dtype=np.int64)

    def derive(self, **changes: Any) -> Comparisons:
        """Return other comparisons of the same judges."""
        return replace(self, judges=self._ids, **changes)

    def cap(self, max_comparisons: int, source: RandomSource) -> Comparisons:
        """Keep a uniformly random ``max_comparisons`` of each judge with more.

        Parameters
        ----------
        max_comparisons
            The most comparisons that one judge may contribute, at least 1.
        source
            :class:`discreet.secure.SystemSource` for anything that is released.
        """
        limit = check_cap(max_comparisons, "max_comparisons")
        if (np.diff(self.starts) <= limit).all():
            return self
        return self._keep_rows(random_ranks(source, self.starts) < limit)

    @property
    def has_ids(self) -> bool:
        """Whether judges have ids; otherwise they are numbered."""
        return not self.is_numbered

    @property
    def _ids(self) -> list[str] | None:
        """Ids of the judges; None where they are numbered."""
        return None if self.is_numbered else list(self.judges)

    def count(self, weighting: Weighting | None = None) -> ComparisonCounts:
        """Count wins, exactly.

        ``weighting`` gives the integer weight of a judge from (comparisons made, squared reach),
        see :func:`measure_reach`; by default one.
        """
        weight = np.ones(self.n_judges, dtype=np.int64)
        if weighting is not None:
            weight = weighting(np.diff(self.starts), measure_reach(self))
        wins = np.zeros((self.n_items, self.n_items), dtype=np.int64)
        np.add.at(wins, (self.winner, self.loser), weight[self.judge])
        won = np.bincount(self.winner, minlength=self.n_items).astype(np.int64)
        compared = won + np.bincount(self.loser, minlength=self.n_items)
        return ComparisonCounts(self.items, wins, compared, won, self.n_judges)

    @property
    def n_persons(self) -> int:
        """Number of judges: what the wall calls them."""
        return self.n_judges

    @property
    def steps(self) -> tuple[int, ...]:
        """Steps of each object: one, because a comparison is won or lost."""
        return (1,) * self.n_items

    @property
    def lowest(self) -> int:
        """The value of an object that was not preferred."""
        return 0

    def digest(self, key: bytes) -> tuple[int, int]:
        """Return the sum of the judges' keyed digests, and how many were added."""
        counts = np.diff(self.starts).tolist()
        rows = zip(self.rows(), counts, strict=True)
        return digest_rows(key, (row for row, count in rows if count))

    def digest_ids(self, key: bytes) -> bytes:
        """Return keyed digests of the judges' ids, for a ledger that remembers persons."""
        return digest_ids(key, [self._ids])

    def rows(self) -> Iterator[bytes]:
        """Yield each judge's comparisons as bytes: the same whatever the order of anything."""
        names = np.array([f"{len(name)}:{name}" for name in self.items], dtype=object)
        rank = np.empty(self.n_items, dtype=np.int64)
        rank[np.argsort(names.astype(str), kind="stable")] = np.arange(self.n_items)
        order = np.lexsort((rank[self.loser], rank[self.winner], self.judge))
        winner, loser = names[self.winner[order]], names[self.loser[order]]
        for low, high in zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True):
            pairs = zip(winner[low:high], loser[low:high], strict=True)
            yield b"comparisons:" + "".join(f"{a}>{b};" for a, b in pairs).encode()

    def _refuse_same_and_repeated(self) -> None:
        same = np.flatnonzero(self.winner == self.loser)
        if same.size:
            at = int(same[0])
            raise BadResponses(
                f"Judge '{self.judges[self.judge[at]]}' compared "
                f"'{self.items[self.winner[at]]}' with itself. A comparison needs two different "
                "objects; remove it."
            )
        repeat = find_repeated(_pair_keys(self.judge, self.winner, self.loser, self.n_items))
        if repeat is not None:
            at = repeat[1]
            raise BadResponses(
                f"Judge '{self.judges[self.judge[at]]}' compared "
                f"'{self.items[self.winner[at]]}' and '{self.items[self.loser[at]]}' more "
                "than once. Only one comparison of two objects can count for a judge. Remove one, "
                "or keep the first or the last with repeats='first' or repeats='last'."
            )

    def __repr__(self) -> str:
        return (
            f"<Comparisons: {self.n_judges:,} judges, {self.n_items:,} objects, "
            f"{self.n_comparisons:,} comparisons>"
        )


def _pair_keys(judge: Int64Array, first: Int64Array, second: Int64Array, m: int) -> Int64Array:
    """Return one number for each judge and unordered pair."""
    low, high = np.minimum(first, second), np.maximum(first, second)
    return (judge * m + low) * m + high


def _check_judges(judges: Iterable[object] | None, n_judges: int) -> Texts:
    """Return the ids of judges as texts, which differ; numbers where there are none."""
    if judges is None:
        return make_ids(None, n_judges)
    ids = list(map(str, judges))
    if len(ids) != n_judges or len(set(ids)) < len(ids):
        raise BadUsage(
            f"{n_judges} judges need as many different ids; found {len(set(ids))} different among "
            f"{len(ids)}."
        )
    texts = np.array(ids, dtype=object)
    texts.setflags(write=False)
    return texts


def measure_reach(data: Comparisons) -> Int64Array:
    """Bound, for every judge, the squared length of net wins that any outcome could give.

    It depends on which objects the judge compared, never on who won. A judge compared the two
    ends of c edges of a graph; net wins are ``B x`` with B its incidence matrix and x one sign
    an edge. Three bounds hold at once (docs/privacy.md), and the smallest is taken: the sum of
    squared degrees; c times the number of objects; c times the largest sum of the degrees of two
    compared objects.
    """
    number = data.n_judges
    if not data.n_comparisons:
        return np.zeros(number, dtype=np.int64)
    ends = np.concatenate([data.winner, data.loser])
    cell = np.concatenate([data.judge, data.judge]) * data.n_items + ends
    cells, index, degree = np.unique(cell, return_inverse=True, return_counts=True)
    owner = cells // data.n_items
    squares = np.zeros(number, dtype=np.int64)
    np.add.at(squares, owner, degree**2)
    objects = np.bincount(owner, minlength=number)
    pair_degree = degree[index[: data.n_comparisons]] + degree[index[data.n_comparisons :]]
    largest = np.zeros(number, dtype=np.int64)
    np.maximum.at(largest, data.judge, pair_degree)
    n_made = np.diff(data.starts)
    return np.asarray(np.minimum(squares, n_made * np.minimum(objects, largest)))


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

    def _read_outcomes(self, column: Any, ids: Sequence[Any], names: Sequence[str]) -> Int8Array:
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
        repeat = find_repeated(_pair_keys(judge[rows], winner, loser, len(items)))
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
