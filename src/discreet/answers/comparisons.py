"""Comparisons: which of two objects each judge preferred.

In: codes of judges, winners and losers, with names; :mod:`discreet.readers.comparisons` takes them
from tables. Out: :class:`Comparisons`, which never changes, and holds at most one comparison of a
judge for each two objects. It computes nothing about strength.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from discreet.answers.pack import find_repeated, keep_one
from discreet.answers.protocol import digest_ids, digest_rows
from discreet.answers.select import check_cap, number_items
from discreet.checking import checked
from discreet.choices import Kept, PrivacyUnit, Ties
from discreet.coding.ids import check_codes, check_items, make_ids
from discreet.coding.reading import check_choice
from discreet.coding.remedies import Detected
from discreet.counts import ComparisonCounts
from discreet.counts.pairs import Weighting
from discreet.errors import BadResponses, BadUsage
from discreet.secure import RandomSource, random_ranks
from discreet.types import BoolArray, Int64Array, Texts

ERROR = "error"


@dataclass(frozen=True, eq=False, repr=False)
class Comparisons:
    """Judges who each preferred one of two objects, pair by pair. It cannot be changed.

    Made by :func:`discreet.read_comparisons` or :meth:`from_codes`.

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
    tied
        Which comparisons nobody won; their two objects then stand in the order of the table.
    ties
        What a ranking does with those; as for :func:`discreet.read_comparisons`.
    covariate, covariates
        ``[comparison, covariate]``: by how much the winner had more of it than the loser, and the
        names of the covariates.
    unit
        ``"vote"`` where no judges are known, so that every comparison counts as a judge of its own.
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
    tied: Any = field(default=None, kw_only=True)
    ties: Ties = field(default="error", kw_only=True)
    covariate: Any = field(default=None, kw_only=True)
    covariates: tuple[str, ...] = field(default=(), kw_only=True)
    unit: PrivacyUnit = field(default="judge", kw_only=True)
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
        covariates, shape = tuple(self.covariates), (len(winner), len(self.covariates))
        tied = np.zeros(len(winner), bool) if self.tied is None else np.array(self.tied, bool)
        given = np.zeros(shape) if self.covariate is None else np.array(self.covariate, float)
        if tied.shape != winner.shape or given.shape != shape or not np.isfinite(given).all():
            raise BadUsage(
                f"{len(winner)} comparisons need as many marks of ties, and a finite number for "
                f"each of {len(covariates)} covariates; found {tied.shape} and {given.shape}"
            )
        if (tied.any() and self.ties == ERROR) or (
            self.unit == "vote" and np.diff(starts).max(initial=0) > 1
        ):
            raise BadUsage(
                "comparisons with ties need ties='drop', 'davidson' or 'shrunk', and votes without "
                "judges have one comparison each"
            )
        rows = (items, judges, starts, winner, loser, self.judges is None)
        values = (*rows, tied, self.ties, given, covariates, self.unit, tuple(self.detected))
        for part, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, part.name, value)
        for array in (starts, winner, loser, tied, given):
            array.setflags(write=False)
        self._refuse_same_and_repeated()

    @classmethod
    @checked
    def from_codes(
        cls,
        judge: npt.ArrayLike | None,
        winner: npt.ArrayLike,
        loser: npt.ArrayLike,
        *,
        items: Sequence[object],
        judges: Sequence[object] | int | None = None,
        repeats: Kept = "error",
        tied: npt.ArrayLike | None = None,
        ties: Ties = "error",
        covariates: Mapping[str, npt.ArrayLike] | None = None,
    ) -> Comparisons:
        """Take one entry per comparison: number of the judge, of the winner, of the loser.

        Numbers count from 0. ``items`` names the objects in the order of their numbers, ``judges``
        the judges, or says how many there are; with None for the judges every comparison is a vote
        of its own. ``repeats`` says what happens where a judge compared the same two objects more
        than once: "error", or keep the "first" or the "last". ``tied`` marks comparisons that
        nobody won; ``covariates`` says by how much the winner had more of something.
        """
        check_choice("repeats", repeats, get_args(Kept))
        unit: PrivacyUnit = "vote" if judge is None else "judge"
        numbers = np.arange(np.size(winner)) if judge is None else np.asarray(judge)
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
        order = np.argsort(judge_codes, kind="stable")
        if repeats != ERROR:
            kept_rows = keep_one(pair_keys(judge_codes, first, second, len(items)), repeats)
            order = kept_rows[np.argsort(judge_codes[kept_rows], kind="stable")]
        counts = np.bincount(judge_codes[order], minlength=n_judges)
        ids = None if isinstance(judges, int) else judges
        columns = {} if covariates is None else covariates
        return cls(
            check_items(items, len(items)),
            ids,
            np.concatenate([[0], np.cumsum(counts)]),
            first[order],
            second[order],
            tied=None if tied is None else np.asarray(tied)[order],
            ties=ties,
            covariate=np.stack([*columns.values()], axis=1)[order] if columns else None,
            covariates=tuple(columns),
            unit=unit,
        )

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
        new = number_items(self.items, names)
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
        new = number_items(self.items, names)
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
        names = ("winner", "loser", "tied", "covariate")
        rows = {name: getattr(self, name)[is_kept] for name in names}
        return self.derive(starts=np.concatenate([[0], np.cumsum(is_kept)])[self.starts], **rows)

    def drop_ties(self) -> Comparisons:
        """Return the comparisons that somebody won."""
        return self._keep_rows(~self.tied) if self.tied.any() else self

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
        """Count wins, exactly; ties are left out.

        ``weighting`` gives the integer weight of a judge from (comparisons made, squared reach),
        see :func:`measure_reach`; by default one.
        """
        weight = np.ones(self.n_judges, dtype=np.int64)
        if weighting is not None:
            weight = weighting(np.diff(self.starts), measure_reach(self))
        wins = np.zeros((self.n_items, self.n_items), dtype=np.int64)
        won_by, lost_by = self.winner[~self.tied], self.loser[~self.tied]
        np.add.at(wins, (won_by, lost_by), weight[self.judge[~self.tied]])
        won = np.bincount(won_by, minlength=self.n_items).astype(np.int64)
        compared = won + np.bincount(lost_by, minlength=self.n_items)
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
        repeat = find_repeated(pair_keys(self.judge, self.winner, self.loser, self.n_items))
        if repeat is not None:
            at = repeat[1]
            raise BadResponses(
                f"Judge '{self.judges[self.judge[at]]}' compared "
                f"'{self.items[self.winner[at]]}' and '{self.items[self.loser[at]]}' more "
                "than once. Only one comparison of two objects can count for a judge. Remove one, "
                "or keep the first or the last with repeats='first' or repeats='last'."
            )

    def __repr__(self) -> str:
        judges = "no" if self.unit == "vote" else f"{self.n_judges:,}"
        ties = f", {np.count_nonzero(self.tied):,} tied" if self.tied.any() else ""
        return (
            f"<Comparisons: {judges} judges, {self.n_items:,} objects, "
            f"{self.n_comparisons:,} comparisons{ties}>"
        )


def pair_keys(judge: Int64Array, first: Int64Array, second: Int64Array, m: int) -> Int64Array:
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
