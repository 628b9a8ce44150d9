"""Comparisons: which of two objects each judge preferred.

In: codes of judges, winners and losers, with names. Out: :class:`Comparisons`, which never
changes, and holds at most one comparison of a judge for each two objects. It computes nothing
about strength.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.answers.intake import keep_one
from discreet.answers.pairs import Weighting
from discreet.answers.select import CELLS, ROWS, check_cap, digest_ids, digest_rows
from discreet.counts import ComparisonCounts
from discreet.errors import BadResponses, BadUsage
from discreet.hints import Guessable
from discreet.secure import RandomSource, random_ranks
from discreet.tables.ids import check_codes, check_items, make_ids
from discreet.tables.reading import REPEATS, check_choice
from discreet.tables.remedies import Detected
from discreet.types import Int64Array, Repeats, Ties

ERROR = "error"


class Comparisons(Guessable):
    """Judges who each preferred one of two objects, pair by pair. It cannot be changed.

    Usually made by :func:`discreet.read_comparisons`, :meth:`from_codes` or
    :meth:`from_dataframe`.

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

    def __init__(
        self,
        items: Sequence[object],
        judges: Sequence[object] | None,
        starts: npt.ArrayLike,
        winner: npt.ArrayLike,
        loser: npt.ArrayLike,
        *,
        detected: Sequence[Detected] = (),
    ) -> None:
        self.detected = tuple(detected)
        self._items = check_items(items, len(items))
        self._starts = np.array(starts, dtype=np.int64)
        n_judges = len(self._starts) - 1
        ids = None if judges is None else [str(judge) for judge in judges]
        self._judges, self._are_numbered = _checked_judges(ids, n_judges), judges is None
        self._winner = check_codes(winner, len(self._items), "object").copy()
        self._loser = check_codes(loser, len(self._items), "object").copy()
        _check_lengths(self._starts, self._winner, self._loser)
        self._refuse_same_and_repeated()
        for array in (self._starts, self._winner, self._loser):
            array.setflags(write=False)

    @classmethod
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

        Parameters
        ----------
        judge, winner, loser
            Three vectors of one length; numbers count from 0.
        items
            Names of the objects, in the order of their numbers.
        judges
            Ids in the order of their numbers, or how many judges there are; by default as many
            as the largest number says.
        repeats
            When a judge compared the same two objects more than once: "error", or keep the
            "first" or the "last".
        """
        check_choice("repeats", repeats, REPEATS)
        numbers = np.asarray(judge)
        if judges is None:
            judges = int(numbers.max(initial=-1)) + 1
        n_judges = judges if isinstance(judges, int) else len(judges)
        judge_codes = check_codes(numbers, n_judges, "judge")
        first = check_codes(winner, len(items), "object")
        second = check_codes(loser, len(items), "object")
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
        return cls(items, ids, starts, first[order], second[order])

    @classmethod
    def from_dataframe(
        cls,
        frame: Any,
        *,
        judge: str | None = None,
        winner: str | None = None,
        loser: str | None = None,
        left: str | None = None,
        right: str | None = None,
        outcome: str | None = None,
        repeats: Repeats = "error",
        ties: Ties = "error",
    ) -> Comparisons:
        """Take a data frame with one row per comparison: pandas, polars, pyarrow and others.

        The keywords are those of :func:`discreet.read_comparisons`.
        """
        from discreet.answers.read_judges import read_comparisons

        return read_comparisons(
            frame, judge=judge, winner=winner, loser=loser, left=left, right=right,
            outcome=outcome, repeats=repeats, ties=ties,
        )  # fmt: skip

    # -- what it holds -----------------------------------------------------------------------

    @property
    def items(self) -> tuple[str, ...]:
        """Names of the objects."""
        return self._items

    @property
    def judges(self) -> npt.NDArray[np.object_]:
        """Ids of the judges as text."""
        return self._judges

    @property
    def starts(self) -> Int64Array:
        """Where each judge's comparisons begin; one more entry than judges."""
        return self._starts

    @property
    def winner(self) -> Int64Array:
        """Number of the preferred object of each comparison."""
        return self._winner

    @property
    def loser(self) -> Int64Array:
        """Number of the other object of each comparison."""
        return self._loser

    @property
    def n_judges(self) -> int:
        """Number of judges, those without a comparison included."""
        return len(self._starts) - 1

    @property
    def n_items(self) -> int:
        """Number of objects, those that were never compared included."""
        return len(self._items)

    @property
    def n_comparisons(self) -> int:
        """Number of comparisons."""
        return len(self._winner)

    @cached_property
    def judge(self) -> Int64Array:
        """Number of the judge of each comparison."""
        return np.repeat(np.arange(self.n_judges), np.diff(self._starts))

    # -- parts of it -------------------------------------------------------------------------

    def select(self, items: Sequence[object]) -> Comparisons:
        """Return the same comparisons with exactly these objects in this order.

        New names are objects that nobody compared. Leaving out an object that somebody compared
        is refused, because the comparisons would no longer be whole judges'.
        """
        names = check_items(items, len(items))
        position = {name: number for number, name in enumerate(names)}
        new = np.array([position.get(name, -1) for name in self._items], dtype=np.int64)
        winner, loser = new[self._winner], new[self._loser]
        lost = np.flatnonzero((winner < 0) | (loser < 0))
        if lost.size:
            first = int(lost[0])
            codes = (self._winner[first], self._loser[first])
            name = next(self._items[int(code)] for code in codes if new[code] < 0)
            raise BadUsage(
                f"{lost.size} comparisons are about objects that are not in the list, for "
                f"example {name!r}. Add them to the list, or remove those comparisons first."
            )
        return self._derive(names, self._starts, winner, loser)

    def keep(self, items: Sequence[object]) -> Comparisons:
        """Return the comparisons of two of these objects; a judge may be left without any."""
        names = check_items(items, len(items))
        is_listed = np.isin(np.array(self._items, dtype=object), np.array(names, dtype=object))
        is_kept = is_listed[self._winner] & is_listed[self._loser]
        if not is_kept.any() and is_kept.size:
            raise BadResponses(
                f"no comparison is of two listed objects: the list begins with {names[0]!r}, the "
                f"data with {self._items[0]!r}. Write objects as the data does"
            )
        starts = np.concatenate([[0], np.cumsum(is_kept)])[self._starts]
        position = {name: number for number, name in enumerate(names)}
        new = np.array([position.get(name, -1) for name in self._items], dtype=np.int64)
        return self._derive(names, starts, new[self._winner[is_kept]], new[self._loser[is_kept]])

    def _derive(
        self, items: Sequence[object], starts: Int64Array, winner: Int64Array, loser: Int64Array
    ) -> Comparisons:
        """Return other comparisons of the same judges."""
        return Comparisons(items, self._ids, starts, winner, loser, detected=self.detected)

    def remember(self, detected: Sequence[Detected]) -> Comparisons:
        """Return the same comparisons with what the data decided about how they were read."""
        parts = self._starts, self._winner, self._loser
        return Comparisons(self._items, self._ids, *parts, detected=detected)

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
        if (np.diff(self._starts) <= limit).all():
            return self
        is_kept = random_ranks(source, self._starts) < limit
        starts = np.concatenate([[0], np.cumsum(is_kept)])[self._starts]
        return self._derive(self._items, starts, self._winner[is_kept], self._loser[is_kept])

    @property
    def _ids(self) -> list[str] | None:
        """Ids of the judges; None where they are numbered."""
        return None if self._are_numbered else list(self._judges)

    def count(self, weighting: Weighting | None = None) -> ComparisonCounts:
        """Count wins; see :func:`count_wins`."""
        return count_wins(self, weighting)

    @property
    def n_persons(self) -> int:
        """Number of judges: what the wall calls them."""
        return self.n_judges

    @property
    def steps(self) -> tuple[int, ...]:
        """Per object, how many steps a comparison has: it was preferred or not."""
        return (1,) * self.n_items

    @property
    def lowest(self) -> int:
        """The value of an object that was not preferred."""
        return 0

    def digest(self, key: bytes, rule: str = CELLS) -> tuple[int, int]:
        """Return the sum of the judges' keyed digests, and how many were added."""
        counts = np.diff(self._starts).tolist()
        rows = zip(self.rows(), counts, strict=True)
        return digest_rows(key, (row for row, count in rows if count or rule == ROWS))

    def digest_ids(self, key: bytes) -> bytes:
        """Return keyed digests of the judges' ids, for a ledger that remembers persons."""
        return digest_ids(key, [self._ids])

    def rows(self) -> Iterator[bytes]:
        """Yield each judge's comparisons as bytes: the same whatever the order of anything."""
        names = np.array([f"{len(name)}:{name}" for name in self._items], dtype=object)
        rank = np.empty(self.n_items, dtype=np.int64)
        rank[np.argsort(names.astype(str), kind="stable")] = np.arange(self.n_items)
        order = np.lexsort((rank[self._loser], rank[self._winner], self.judge))
        winner, loser = names[self._winner[order]], names[self._loser[order]]
        for low, high in zip(self._starts[:-1].tolist(), self._starts[1:].tolist(), strict=True):
            pairs = zip(winner[low:high], loser[low:high], strict=True)
            yield b"comparisons:" + "".join(f"{a}>{b};" for a, b in pairs).encode()

    # -- checks ------------------------------------------------------------------------------

    def _refuse_same_and_repeated(self) -> None:
        same = np.flatnonzero(self._winner == self._loser)
        if same.size:
            at = int(same[0])
            raise BadResponses(
                f"Judge '{self._judges[self.judge[at]]}' compared "
                f"'{self._items[self._winner[at]]}' with itself. A comparison needs two different "
                "objects; remove it."
            )
        repeat = find_repeat(self.judge, self._winner, self._loser, self.n_items)
        if repeat is not None:
            at = repeat[1]
            raise BadResponses(
                f"Judge '{self._judges[self.judge[at]]}' compared "
                f"'{self._items[self._winner[at]]}' and '{self._items[self._loser[at]]}' more "
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


def find_repeat(
    judge: Int64Array, winner: Int64Array, loser: Int64Array, m: int
) -> tuple[int, int] | None:
    """Return two entries in which a judge compared the same two objects, or None."""
    keys = _pair_keys(judge, winner, loser, m)
    order = np.argsort(keys, kind="stable")
    twice = np.flatnonzero(np.diff(keys[order]) == 0)
    return (int(order[twice[0]]), int(order[twice[0] + 1])) if twice.size else None


def _checked_judges(ids: list[str] | None, n_judges: int) -> npt.NDArray[np.object_]:
    if ids is None:
        return make_ids(None, n_judges)
    if len(ids) != n_judges or len(set(ids)) < len(ids):
        raise BadUsage(
            f"{n_judges} judges need as many different ids; found {len(set(ids))} different among "
            f"{len(ids)}."
        )
    out = np.empty(n_judges, dtype=object)
    out[:] = ids
    out.setflags(write=False)
    return out


def _check_lengths(starts: Int64Array, winner: Int64Array, loser: Int64Array) -> None:
    fits = starts.ndim == 1 and len(starts) and starts[0] == 0 and (np.diff(starts) >= 0).all()
    if not fits or not len(winner) == len(loser) == starts[-1]:
        raise BadUsage(
            "starts must begin with 0, never fall, and end with the number of comparisons; use "
            "Comparisons.from_codes for entries in any order"
        )


def count_wins(data: Comparisons, weighting: Weighting | None = None) -> ComparisonCounts:
    """Count wins, exactly.

    Parameters
    ----------
    data
        The comparisons.
    weighting
        Integer weight of a judge from (comparisons made, squared reach), see
        :func:`measure_reach`; by default one.
    """
    m = data.n_items
    wins = np.zeros((m, m), dtype=np.int64)
    if weighting is None:
        np.add.at(wins, (data.winner, data.loser), 1)
    else:
        weight = weighting(np.diff(data.starts), measure_reach(data))
        np.add.at(wins, (data.winner, data.loser), weight[data.judge])
    won = np.bincount(data.winner, minlength=m).astype(np.int64)
    compared = won + np.bincount(data.loser, minlength=m)
    return ComparisonCounts(data.items, wins, compared, won, data.n_judges)


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
