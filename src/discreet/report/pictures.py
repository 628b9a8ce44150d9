"""Numbers that pictures show, computed once for every way of drawing.

In: an estimate, abilities, fit statistics, differences between groups, counts, a ranking. Out:
frozen values that say what stands where, in logits and ranks. ``figures/`` draws them with
matplotlib, ``report/drawings.py`` within pages; neither computes. Curves and thresholds of items
are in ``curves.py``. A figure is exactly as confidential as the results in it.

To add a picture: a value and the function that makes it here, then a function there that draws it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from discreet.errors import BadUsage
from discreet.items.curves import BIN, ThresholdRows
from discreet.results.estimate import Estimate
from discreet.results.limits import FIT_HIGH, FIT_LOW
from discreet.text import count_of
from discreet.types import BoolArray, FloatArray, Int64Array

if TYPE_CHECKING:
    from discreet.counts import PairCounts
    from discreet.items.dif import DifTable
    from discreet.items.dimensionality import Dimensionality
    from discreet.items.residuals import InformationCurve
    from discreet.results.ranking import Ranking

#: More rows than this would make a picture longer than anyone scrolls.
PICTURE_ITEMS = 60
#: Items of a ladder below the last one that is possibly in the top.
CONTEXT = 5
#: Items that a picture of loadings names, half of them at either end.
CONTRAST_NAMED = 16
#: Kinds of items on a ladder.
RUNGS = ("surely in", "in, not surely", "outside, possibly in", "out")


@dataclass(frozen=True)
class ItemSummary:
    """The hardest and the easiest item, how far apart they are, and the median standard error."""

    hardest: str
    easiest: str
    spread: float
    typical_se: float | None


def summarise_items(estimate: Estimate) -> ItemSummary:
    """Say in four facts what an estimate found; it must have a number."""
    b, has_error = estimate.difficulty, np.isfinite(estimate.se)
    high, low = int(np.nanargmax(b)), int(np.nanargmin(b))
    typical = float(np.median(estimate.se[has_error])) if has_error.any() else None
    return ItemSummary(estimate.items[high], estimate.items[low], float(b[high] - b[low]), typical)


@dataclass(frozen=True, eq=False)
class ItemRows:
    """Items one below the other with their intervals; one entry per row, the first on top.

    Attributes
    ----------
    items, value, lower, upper
        Name, number and interval of each row; the interval has no width where there is no error.
    kind
        What a row is, where rows differ: a rung of :data:`RUNGS`, an ETS class.
    """

    items: tuple[str, ...]
    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    kind: tuple[str, ...] = ()

    def take(self, rows: Int64Array) -> ItemRows:
        """Return some of the rows."""
        names = tuple(self.items[i] for i in rows)
        kind = tuple(self.kind[i] for i in rows) if self.kind else ()
        return ItemRows(names, self.value[rows], self.lower[rows], self.upper[rows], kind)


Rows = TypeVar("Rows", ItemRows, ThresholdRows)


def thin_rows(rows: Rows) -> Rows:
    """Keep at most so many rows as a picture can hold, evenly chosen by rank."""
    count = len(rows.items)
    if count <= PICTURE_ITEMS:
        return rows
    return rows.take(np.linspace(0, count - 1, PICTURE_ITEMS).round().astype(np.int64))


def keep_largest(rows: ItemRows) -> ItemRows:
    """Keep the rows furthest from zero, as many as a picture can hold, in their order."""
    if len(rows.items) <= PICTURE_ITEMS:
        return rows
    return rows.take(np.sort(np.argsort(-np.abs(rows.value), kind="stable")[:PICTURE_ITEMS]))


def difficulty_rows(estimate: Estimate, level: float = 0.95) -> ItemRows:
    """Return the items with a number, hardest first."""
    return _rows(estimate, hardest_first(estimate), level)


def hardest_first(estimate: Estimate) -> Int64Array:
    """Items with a number, hardest first; ties stay in the order of the input."""
    estimated = np.flatnonzero(estimate.estimated)
    if not len(estimated):
        raise BadUsage("no item of this estimate has a number, so there is nothing to draw")
    return estimated[np.argsort(-estimate.difficulty[estimated], kind="stable")]


def _rows(
    estimate: Estimate, order: Int64Array, level: float, kind: tuple[str, ...] = ()
) -> ItemRows:
    b = estimate.difficulty[order]
    interval = estimate.interval(level)[order]
    lower, upper = np.where(np.isnan(interval), b[:, None], interval).T
    return ItemRows(tuple(estimate.items[i] for i in order), b, lower, upper, kind)


def ladder_rows(ranking: Ranking, estimate: Estimate, level: float = 0.95) -> ItemRows:
    """Return everything that is possibly in the top and a few items below, best first.

    Of more than a picture can hold, those around the cut below the top.
    """
    order = hardest_first(estimate)
    if ranking.easiest:
        estimated = np.flatnonzero(estimate.estimated)
        order = estimated[np.argsort(estimate.difficulty[estimated], kind="stable")]
    listed = {*ranking.top, *ranking.possibly_in}
    last = max((rank for rank, i in enumerate(order) if estimate.items[i] in listed), default=-1)
    above = find_ladder_start(ranking)
    order = order[above : min(last + 1 + CONTEXT, above + PICTURE_ITEMS)]
    top, sure, possible = map(set, (ranking.top, ranking.surely_in, ranking.possibly_in))

    def rung(name: str) -> str:
        if name in top:
            return RUNGS[0] if name in sure else RUNGS[1]
        return RUNGS[2] if name in possible else RUNGS[3]

    return _rows(estimate, order, level, tuple(rung(estimate.items[i]) for i in order))


def find_ladder_start(ranking: Ranking) -> int:
    """Return how many of the best items a ladder leaves out, so that the cut is on it."""
    return max(len(ranking.top) - PICTURE_ITEMS + 2 * CONTEXT, 0)


def dif_rows(table: DifTable, focal: str) -> ItemRows:
    """Return how much harder items are for a group than its ability explains, largest first."""
    columns = {**table.to_dict(), "group": [""] * len(table.item)}
    comparisons = [chart.rows for chart in difference_rows(columns) if chart.focal == focal]
    if not comparisons:
        raise BadUsage(f"no item could be compared for the group {focal!r}; see table.status")
    return comparisons[0]


@dataclass(frozen=True, eq=False)
class GroupRows:
    """Differences between two groups: the column, the groups, and the items, largest first."""

    column: str
    focal: str
    reference: str
    rows: ItemRows


def difference_rows(columns: Mapping[str, Sequence[Any]]) -> list[GroupRows]:
    """Return a picture's rows for every comparison in the table of differences between groups."""
    pairs = zip(columns["group"], columns["focal"], columns["reference"], strict=True)
    comparisons = []
    for compared in dict.fromkeys(pairs):
        mine = [
            i
            for i, value in enumerate(columns["difference"])
            if value is not None
            and np.isfinite(value)
            and compared == tuple(columns[name][i] for name in ("group", "focal", "reference"))
        ]
        mine.sort(key=lambda i: -columns["difference"][i])
        if mine:
            comparisons.append(GroupRows(*compared, _difference_rows(columns, mine)))
    return comparisons


def _difference_rows(columns: Mapping[str, Sequence[Any]], rows: Sequence[int]) -> ItemRows:
    x, se = (np.array([columns[name][i] for i in rows]) for name in ("difference", "se"))
    names, classes = (tuple(columns[name][i] for i in rows) for name in ("item", "ets"))
    if "step" in columns:
        names = tuple(
            f"{name} step {columns['step'][i]}" for name, i in zip(names, rows, strict=True)
        )
    return ItemRows(names, x, x - 1.96 * se, x + 1.96 * se, classes)


def choose_focal(table: DifTable, focal: str | None) -> str:
    """Return the group to compare with the reference; it must be said where there are several."""
    groups = sorted(set(table.focal))
    if focal is None and len(groups) == 1:
        return groups[0]
    if focal not in groups:
        raise BadUsage(
            f"the table compares {', '.join(groups)} with {table.reference}; choose one of them "
            f"as focal, found {focal!r}"
        )
    return focal


@dataclass(frozen=True, eq=False)
class WrightMap:
    """Persons and items on one scale, both in bins of :data:`BIN` logits.

    Attributes
    ----------
    starts, counts
        Where the bins of persons begin, and how many are in each.
    persons, mean
        How many persons, and their mean ability.
    items, difficulty
        Hardest first. Items with steps stand there once for each threshold.
    centre, level
        Middle of each item's bin, and its place (from 1) among the items in it.
    reach
        Whole logits that hold all persons and items.
    steps
        Per entry, the step whose threshold it is; empty where items have one step each.
    """

    starts: FloatArray
    counts: Int64Array
    persons: int
    mean: float
    items: tuple[str, ...]
    difficulty: FloatArray
    centre: FloatArray
    level: Int64Array
    reach: tuple[float, float]
    steps: tuple[int, ...] = ()

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return len(set(self.items))

    @property
    def count(self) -> str:
        """How many entries of which kind."""
        return count_of(len(self.items), "threshold" if self.steps else "item")

    @property
    def number(self) -> str:
        """What stands on the scale."""
        return "threshold" if self.steps else "difficulty"

    @cached_property
    def marks(self) -> tuple[str, ...]:
        """What stands behind each name: nothing, or a point and the step."""
        return tuple(f".{step}" for step in self.steps) or ("",) * len(self.items)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What the entries are called."""
        return tuple(f"{item}{mark}" for item, mark in zip(self.items, self.marks, strict=True))


def wright_map(
    estimate: Estimate,
    starts: Sequence[float] | FloatArray,
    counts: Sequence[int] | Int64Array,
    *,
    persons: int,
    mean: float,
) -> WrightMap:
    """Put binned abilities (:func:`bin_abilities`) and difficulties or thresholds on one scale."""
    order, steps, b = _place_items(estimate)
    column = np.floor(b / BIN)
    # Hardest first, so a bin's items follow each other: count from where the bin begins.
    _, begin, inverse = np.unique(-column, return_index=True, return_inverse=True)
    start, count = np.asarray(starts, dtype=np.float64), np.asarray(counts, dtype=np.int64)
    placed = [*start[count > 0], *b]
    return WrightMap(
        starts=start,
        counts=count,
        persons=persons,
        mean=mean,
        items=tuple(estimate.items[i] for i in order),
        difficulty=b,
        centre=(column + 0.5) * BIN,
        level=1 + np.arange(len(b)) - begin[inverse],
        reach=(float(np.floor(min(placed))), float(np.ceil(max(placed) + BIN))),
        steps=steps,
    )


def _place_items(estimate: Estimate) -> tuple[Int64Array, tuple[int, ...], FloatArray]:
    """Return which item stands where, hardest first; with steps once for each threshold."""
    if not estimate.has_steps:
        order = hardest_first(estimate)
        return order, (), estimate.difficulty[order]
    item, step = np.nonzero(np.isfinite(estimate.ladder.shown))
    value = estimate.thresholds[item, step]
    order = np.argsort(-value, kind="stable")
    return item[order], tuple((step[order] + 1).tolist()), value[order]


@dataclass(frozen=True, eq=False)
class FitMap:
    """A fit statistic of items against their difficulty.

    Attributes
    ----------
    statistic
        ``"infit"`` or ``"outfit"``.
    items, difficulty, value
        Of the items that have it, in the order of the estimate.
    unsure
        Standard errors as shares of the largest one.
    low, high
        Where the value lies when the model holds, per item.
    outside
        Whether the value lies beyond that, and far enough to matter.
    worst
        Places of those outside, the most unusual first.
    number
        What the difficulty is called.
    """

    statistic: str
    items: tuple[str, ...]
    difficulty: FloatArray
    value: FloatArray
    unsure: FloatArray
    low: FloatArray
    high: FloatArray
    outside: BoolArray
    worst: Int64Array
    number: str = "difficulty"


def fit_map(
    estimate: Estimate,
    values: Sequence[float | None] | FloatArray,
    statistic: str,
    limits: Sequence[Sequence[float] | FloatArray] | FloatArray | None = None,
) -> FitMap:
    """Hold a fit statistic, one value per item of the estimate, against the difficulties.

    ``limits`` are where it lies when the model holds, ``[lower and upper, item]``; without them the
    rules of thumb.
    """
    column = np.asarray(values, dtype=np.float64)
    items = np.flatnonzero(estimate.estimated & np.isfinite(column))
    if not len(items):
        raise BadUsage("no item has a fit statistic, so there is nothing to draw")
    value, error = column[items], estimate.se[items]
    has_error = np.isfinite(error)
    typical = float(np.median(error[has_error])) if has_error.any() else 1.0
    error = np.where(has_error, error, typical)
    low, high, centre = np.full((3, len(items)), [[FIT_LOW], [FIT_HIGH], [1.0]])
    if limits is not None:
        low, high = np.asarray(limits, dtype=np.float64)[:, items]
        centre = np.sqrt(low * high)
    outside = (value < low) | (value > high)
    distance = np.where(outside, np.abs(np.log(value / centre)), -1.0)
    return FitMap(
        statistic=statistic,
        items=tuple(estimate.items[i] for i in items),
        difficulty=estimate.difficulty[items],
        value=value,
        unsure=error / max(float(error.max()), 1e-9),
        low=low,
        high=high,
        outside=outside,
        worst=np.argsort(-distance, kind="stable")[: int(outside.sum())],
        number="location" if estimate.has_steps else "difficulty",
    )


@dataclass(frozen=True, eq=False)
class ContrastMap:
    """Loadings of items on the first component of the residuals, against their difficulty.

    Attributes
    ----------
    items, difficulty, loading
        The largest loading first.
    ends
        Places of the items to name: both ends in turn, the outermost first.
    eigenvalue, expected
        How many items the component is worth, and how many by chance.
    number
        What the difficulty is called.
    """

    items: tuple[str, ...]
    difficulty: FloatArray
    loading: FloatArray
    ends: Int64Array
    eigenvalue: float
    expected: float
    number: str = "difficulty"


def contrast_map(dimensionality: Dimensionality, number: str = "difficulty") -> ContrastMap:
    """Hold the loadings against the difficulties, and choose the items that speak for them."""
    count = len(dimensionality.items)
    rank = np.arange(min(CONTRAST_NAMED, count))
    turns = np.where(rank % 2 == 0, rank // 2, count - 1 - rank // 2)
    values = np.array(dimensionality.difficulty), np.array(dimensionality.loading)
    worth = dimensionality.eigenvalue[0], dimensionality.expected[0]
    return ContrastMap(dimensionality.items, *values, turns, *worth, number)


def error_ceiling(curve: InformationCurve) -> float:
    """Up to where standard errors are worth showing: tails shoot up and flatten what matters."""
    return min(float(curve.se.max()), 4 * float(curve.se.min()))


@dataclass(frozen=True, eq=False)
class PairMap:
    """How many persons compare two items: right on one, wrong on the other; NaN where nobody."""

    items: tuple[str, ...]
    persons: FloatArray
    never: int

    @property
    def pairs(self) -> int:
        """How many pairs of items there are."""
        return len(self.items) * (len(self.items) - 1) // 2


def pair_map(counts: PairCounts) -> PairMap:
    """Add both directions of every pair."""
    right_wrong = counts.dense("a picture of all pairs")
    either = (right_wrong + right_wrong.T).astype(np.float64)
    either[either == 0] = np.nan
    never = int(np.isnan(either).sum() - len(counts.items)) // 2
    return PairMap(tuple(counts.items), either, never)
