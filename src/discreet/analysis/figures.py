"""What pictures show: numbers, computed once, for whoever draws them.

In: an estimate, abilities, fit statistics, differences between groups, counts, a ranking. Out:
frozen values that say what stands where, in logits and ranks. ``output/figures`` draws them with
matplotlib, ``output/svg.py`` within pages; neither computes. A figure is exactly as
confidential as the results in it.

To add a picture: a value and the function that makes it here, then a function there that draws it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.analysis.diagnostics import BIN, GROUPS, Curve, Diagnostics, observe_curves
from discreet.analysis.rules import FIT_HIGH, FIT_LOW
from discreet.errors import BadUsage
from discreet.results.estimate import Estimate
from discreet.types import BoolArray, FloatArray, Int64Array

if TYPE_CHECKING:
    from discreet.analysis.dif import DifTable
    from discreet.analysis.dimensionality import Dimensionality
    from discreet.analysis.persons import PersonScores
    from discreet.analysis.residuals import InformationCurve
    from discreet.answers.responses import Responses
    from discreet.counts import PairCounts
    from discreet.results.ranking import Ranking

CONTEXT = 5
"""Items of a ladder below the last one that is possibly in the top."""
CURVES = 5
"""Item curves that one picture can hold and still be read."""
CURVE_REACH = 3.5
"""Logits from the mean that every item curve shows at least, so that curves compare."""
CONTRAST_NAMED = 16
"""Items that a picture of loadings names, half of them at either end."""
RUNGS = ("surely in", "in, not surely", "outside, possibly in", "out")
"""Kinds of items on a ladder."""


@dataclass(frozen=True)
class ItemSummary:
    """The hardest and the easiest item, how far apart they are, and the median standard error."""

    hardest: str
    easiest: str
    spread: float
    typical_se: float | None


def summarise_items(estimate: Estimate) -> ItemSummary:
    """Say in four facts what an estimate found; it must have a number."""
    b, known = estimate.difficulty, np.isfinite(estimate.se)
    high, low = int(np.nanargmax(b)), int(np.nanargmin(b))
    typical = float(np.median(estimate.se[known])) if known.any() else None
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


def difficulty_rows(estimate: Estimate, level: float = 0.95) -> ItemRows:
    """Return the items with a number, hardest first."""
    return _rows(estimate, hardest_first(estimate), level)


def hardest_first(estimate: Estimate) -> Int64Array:
    """Items with a number, hardest first; ties stay in the order of the input."""
    shown = np.flatnonzero(estimate.estimated)
    if not len(shown):
        raise BadUsage("no item of this estimate has a number, so there is nothing to draw")
    return shown[np.argsort(-estimate.difficulty[shown], kind="stable")]


def _rows(
    estimate: Estimate, order: Int64Array, level: float, kind: tuple[str, ...] = ()
) -> ItemRows:
    b = estimate.difficulty[order]
    interval = estimate.interval(level)[order]
    lower, upper = np.where(np.isnan(interval), b[:, None], interval).T
    return ItemRows(tuple(estimate.items[i] for i in order), b, lower, upper, kind)


def ladder_rows(ranking: Ranking, estimate: Estimate, level: float = 0.95) -> ItemRows:
    """Return everything that is possibly in the top and a few items below, best first."""
    order = hardest_first(estimate)
    if ranking.easiest:
        shown = np.flatnonzero(estimate.estimated)
        order = shown[np.argsort(estimate.difficulty[shown], kind="stable")]
    named = {*ranking.top, *ranking.possibly_in}
    last = max((rank for rank, i in enumerate(order) if estimate.items[i] in named), default=-1)
    order = order[: last + 1 + CONTEXT]
    top, sure, possible = map(set, (ranking.top, ranking.surely_in, ranking.possibly_in))

    def rung(name: str) -> str:
        if name in top:
            return RUNGS[0] if name in sure else RUNGS[1]
        return RUNGS[2] if name in possible else RUNGS[3]

    return _rows(estimate, order, level, tuple(rung(estimate.items[i]) for i in order))


def dif_rows(table: DifTable, focal: str) -> ItemRows:
    """Return how much harder items are for a group than its ability explains, largest first."""
    mine = np.array([name == focal for name in table.focal]) & np.isfinite(table.difference)
    rows = np.flatnonzero(mine)
    if not len(rows):
        raise BadUsage(f"no item could be compared for the group {focal!r}; see table.status")
    rows = rows[np.argsort(-table.difference[rows], kind="stable")]
    return _difference_rows(table.to_dict(), rows.tolist())


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
    found = []
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
            found.append(GroupRows(*compared, _difference_rows(columns, mine)))
    return found


def _difference_rows(columns: Mapping[str, Sequence[Any]], rows: Sequence[int]) -> ItemRows:
    x, se = (np.array([columns[name][i] for i in rows]) for name in ("difference", "se"))
    names, classes = (tuple(columns[name][i] for i in rows) for name in ("item", "ets"))
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
        Hardest first.
    centre, level
        Middle of each item's bin, and its place (from 1) among the items in it.
    reach
        Whole logits that hold all persons and items.
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


def wright_map(
    estimate: Estimate,
    starts: Sequence[float] | FloatArray,
    counts: Sequence[int] | Int64Array,
    *,
    persons: int,
    mean: float,
) -> WrightMap:
    """Put binned abilities (:func:`bin_abilities`) and the difficulties on one scale."""
    order = hardest_first(estimate)
    b = estimate.difficulty[order]
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
    )


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
    outside
        Whether the value lies outside of what is usual.
    worst
        Places of those outside, the most unusual first.
    """

    statistic: str
    items: tuple[str, ...]
    difficulty: FloatArray
    value: FloatArray
    unsure: FloatArray
    outside: BoolArray
    worst: Int64Array


def fit_map(
    estimate: Estimate, values: Sequence[float | None] | FloatArray, statistic: str
) -> FitMap:
    """Hold a fit statistic, one value per item of the estimate, against the difficulties."""
    column = np.asarray(values, dtype=np.float64)
    known = np.flatnonzero(estimate.estimated & np.isfinite(column))
    if not len(known):
        raise BadUsage("no item has a fit statistic, so there is nothing to draw")
    value, error = column[known], estimate.se[known]
    has_error = np.isfinite(error)
    typical = float(np.median(error[has_error])) if has_error.any() else 1.0
    error = np.where(has_error, error, typical)
    outside = (value < FIT_LOW) | (value > FIT_HIGH)
    away = np.where(outside, np.abs(np.log(value)), -1.0)
    return FitMap(
        statistic=statistic,
        items=tuple(estimate.items[i] for i in known),
        difficulty=estimate.difficulty[known],
        value=value,
        unsure=error / max(float(error.max()), 1e-9),
        outside=outside,
        worst=np.argsort(-away, kind="stable")[: int(outside.sum())],
    )


@dataclass(frozen=True, eq=False)
class ItemCurve:
    """The curve that the model expects of an item, and the observed shares (or none).

    Attributes
    ----------
    item, difficulty, points
        Of the item; the points are groups of persons.
    ability, expected
        A line along the curve, over at least :data:`CURVE_REACH` logits to both sides.
    """

    item: str
    difficulty: float
    points: Curve
    ability: FloatArray
    expected: FloatArray

    def expect(self, ability: FloatArray) -> FloatArray:
        """Return the expected share of right answers."""
        return _expect(self.difficulty, ability)

    def observe(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return ability, share right, and a 95% interval of it, for each group of persons."""
        ability, share, n = np.array(self.points, dtype=np.float64).reshape(-1, 3).T
        # Agresti and Coull (1998): the plain interval has no width at 0% and 100%.
        centre = (share * n + 2) / (n + 4)
        half = 1.96 * np.sqrt(centre * (1 - centre) / (n + 4))
        return ability, share, np.maximum(centre - half, 0), np.minimum(centre + half, 1)


def _expect(difficulty: float, ability: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(difficulty - ability)))


def _make_curve(item: str, difficulty: float, points: Curve) -> ItemCurve:
    seen = [point[0] for point in points]
    low = min(-CURVE_REACH, difficulty - 1, *seen)
    ability = np.linspace(low, max(CURVE_REACH, difficulty + 1, *seen))
    return ItemCurve(item, difficulty, points, ability, _expect(difficulty, ability))


def item_curves(
    estimate: Estimate,
    names: Sequence[str],
    responses: Responses | None = None,
    scores: PersonScores | None = None,
    groups: int = GROUPS,
) -> list[ItemCurve]:
    """Return the curves of some items, with the observed shares where answers are given."""
    where = _find_items(estimate, names)
    if (responses is None) != (scores is None):
        raise BadUsage("observed points need both responses= and scores=, found one of them")
    seen: Mapping[str, Curve] = {}
    if responses is not None and scores is not None:
        seen = observe_curves(responses.select(list(names)), scores, groups)
    return [
        _make_curve(name, float(estimate.difficulty[i]), seen.get(name, ()))
        for name, i in zip(names, where, strict=True)
    ]


def _find_items(estimate: Estimate, names: Sequence[str]) -> list[int]:
    if not 1 <= len(names) <= CURVES:
        raise BadUsage(f"one picture holds 1 to {CURVES} item curves, found {len(names)} items")
    place = {name: i for i, name in enumerate(estimate.items)}
    unknown = [name for name in names if name not in place]
    if unknown:
        raise BadUsage(f"there is no item {unknown[0]!r} in this estimate; items go by name")
    where = [place[name] for name in names]
    for i in where:
        if not estimate.estimated[i]:
            raise BadUsage(
                f"item {estimate.items[i]!r} has no difficulty ({estimate.status[i]}), so no curve"
            )
    return where


def worst_curves(estimate: Estimate, diagnostics: Diagnostics, most: int) -> list[ItemCurve]:
    """Return the observed curves of the items that fit worst, the worst first."""
    place = {name: i for i, name in enumerate(estimate.items)}

    def distance(name: str) -> float:
        squares = (diagnostics.infit[place[name]], diagnostics.outfit[place[name]])
        return max((abs(float(np.log(v))) for v in squares if v), default=0.0)

    worst = sorted(diagnostics.curves, key=distance, reverse=True)[:most]
    return [
        _make_curve(name, float(estimate.difficulty[place[name]]), diagnostics.curves[name])
        for name in worst
    ]


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
    """

    items: tuple[str, ...]
    difficulty: FloatArray
    loading: FloatArray
    ends: Int64Array
    eigenvalue: float
    expected: float


def contrast_map(found: Dimensionality) -> ContrastMap:
    """Hold the loadings against the difficulties, and choose the items that speak for them."""
    count = len(found.items)
    rank = np.arange(min(CONTRAST_NAMED, count))
    turns = np.where(rank % 2 == 0, rank // 2, count - 1 - rank // 2)
    values = np.array(found.difficulty), np.array(found.loading)
    return ContrastMap(found.items, *values, turns, found.eigenvalue[0], found.expected[0])


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
