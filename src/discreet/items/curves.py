"""Curves of items: what the model expects at each ability, and what groups of persons did.

In: an estimate and, for what was observed, answers and abilities or a study. Out: frozen values
for whoever draws them: the expected score, and how likely each category is. Of a right/wrong item
the expected score is the share right. With observed points, confidential.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, TypeAlias

import numpy as np

from discreet.answers.logistic import logistic
from discreet.answers.responses import Responses
from discreet.errors import BadUsage
from discreet.models.categories import match_categories
from discreet.persons.scoring import PersonScores
from discreet.results.chances import category_chances, expected_scores
from discreet.results.estimate import Estimate
from discreet.schema import Along, Count, Distinct, Logit, NonNegative, Proportion
from discreet.tabular import brief_repr
from discreet.types import FloatArray, Int64Array

if TYPE_CHECKING:
    from discreet.answers.responses import Responses
    from discreet.items.study import Study
    from discreet.persons.scoring import PersonScores

#: Item curves that one picture can hold and still be read.
CURVES = 5
#: Logits from the mean that every item curve shows at least, so that curves compare.
CURVE_REACH = 3.5
#: Points along a curve of a category, which bends more than that of an expected score.
CURVE_POINTS = 121

#: Groups of persons: enough to see a shape, few enough that each has answers to each item.
GROUPS = 8


@dataclass(frozen=True, eq=False)
class ItemCurve:
    """The curves that the model expects of an item, and what was observed (or nothing).

    Attributes
    ----------
    item, thresholds
        Of the item; a right/wrong item has one threshold, its difficulty.
    labels
        What its categories are called in the answers.
    points
        Groups of persons: mean ability, mean score, answers.
    ability, expected
        A line along the expected score, over at least :data:`CURVE_REACH` logits to both sides.
    shares
        Per point, the share of every category.
    """

    item: str
    thresholds: FloatArray
    labels: tuple[int, ...]
    points: Curve
    ability: FloatArray
    expected: FloatArray
    shares: Shares = field(default=())

    @property
    def steps(self) -> int:
        """The highest score."""
        return len(self.thresholds)

    @property
    def difficulty(self) -> float:
        """The item's location: the mean of its thresholds."""
        return float(self.thresholds.mean())

    def expect(self, ability: FloatArray) -> FloatArray:
        """Return the expected score; of a right/wrong item the expected share right."""
        return _expect(self.thresholds, ability)

    def expect_categories(self, ability: FloatArray) -> FloatArray:
        """Return how likely every category is, ``[ability, category]``."""
        return np.asarray(category_chances(ability, self.thresholds[None])[:, 0, :])

    def observe(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return ability, mean score, and a 95% interval of it, for each group of persons."""
        ability, mean, n = np.array(self.points, dtype=np.float64).reshape(-1, 3).T
        highest = self.steps
        # Agresti and Coull (1998): the plain interval has no width where all answer alike, so two
        # answers are added at either end.
        centre = (mean * n + 2 * highest) / (n + 4)
        square = (self._mean_square() * n + 2 * highest**2) / (n + 4)
        half = 1.96 * np.sqrt((square - centre**2) / (n + 4))
        return ability, mean, np.maximum(centre - half, 0), np.minimum(centre + half, highest)

    def _mean_square(self) -> FloatArray:
        """Return the mean of the squared scores at every point."""
        if not self.shares:  # right and wrong: 1 is its own square
            return np.array([point[1] for point in self.points], dtype=np.float64)
        shares = np.array(self.shares, dtype=np.float64)
        return np.asarray(shares @ np.arange(shares.shape[1]) ** 2)


def _expect(thresholds: FloatArray, ability: FloatArray) -> FloatArray:
    if len(thresholds) == 1:
        return logistic(ability - thresholds[0])
    return np.asarray(expected_scores(ability, thresholds[None])[:, 0])


def _make_curve(estimate: Estimate, index: int, points: Curve, shares: Shares = ()) -> ItemCurve:
    steps = estimate.steps[index]
    thresholds = estimate.thresholds[index, :steps]
    shown, abilities = estimate.ladder.shown[index], [point[0] for point in points]
    low, high = (
        (-CURVE_REACH, CURVE_REACH)
        if np.isnan(shown).all()
        else (float(np.nanmin(shown)) - 1, float(np.nanmax(shown)) + 1)
    )
    low, high = min(-CURVE_REACH, low, *abilities), max(CURVE_REACH, high, *abilities)
    ability = np.linspace(low, high, 50 if steps == 1 else CURVE_POINTS)
    labels = estimate.ladder.labels[index]
    item_shares = tuple(group_shares[: steps + 1] for group_shares in shares)
    expected = _expect(thresholds, ability)
    return ItemCurve(
        estimate.items[index], thresholds, labels, points, ability, expected, item_shares
    )


def item_curves(
    estimate: Estimate,
    names: Sequence[str],
    responses: Responses | None = None,
    scores: PersonScores | None = None,
    groups: int = GROUPS,
) -> list[ItemCurve]:
    """Return the curves of some items, with what was observed where answers are given."""
    indices = _find_items(estimate, names)
    if (responses is None) != (scores is None):
        raise BadUsage("observed points need both responses= and scores=, found one of them")
    if responses is None or scores is None:
        return [_make_curve(estimate, i, ()) for i in indices]
    chosen = match_categories(responses.select(list(names)), estimate)
    binned = bin_measured(chosen, scores, groups)
    return [
        _make_curve(estimate, i, binned.trace_curve(name), binned.trace_shares(name))
        for name, i in zip(names, indices, strict=True)
    ]


def _find_items(estimate: Estimate, names: Sequence[str]) -> list[int]:
    if not 1 <= len(names) <= CURVES:
        raise BadUsage(f"one picture holds 1 to {CURVES} item curves, found {len(names)} items")
    index_of = {name: i for i, name in enumerate(estimate.items)}
    unknown = [name for name in names if name not in index_of]
    if unknown:
        raise BadUsage(f"there is no item {unknown[0]!r} in this estimate; items go by name")
    indices = [index_of[name] for name in names]
    for i in indices:
        if not estimate.estimated[i]:
            raise BadUsage(
                f"item {estimate.items[i]!r} has no difficulty ({estimate.status[i]}), so no curve"
            )
    return indices


def worst_curves(estimate: Estimate, study: Study, limit: int) -> list[ItemCurve]:
    """Return the observed curves of the items that fit worst, the worst first."""
    index_of = {name: i for i, name in enumerate(estimate.items)}

    def distance(name: str) -> float:
        index, fit = index_of[name], study.fit
        squares = fit.conditional_infit[index], fit.conditional_outfit[index]
        return max((abs(float(np.log(v))) for v in squares if v > 0), default=0.0)

    worst = sorted(study.observed.items, key=distance, reverse=True)[:limit]
    return [observed_curve(estimate, study.observed, index_of[name]) for name in worst]


def observed_curve(estimate: Estimate, observed: BinnedAnswers, index: int) -> ItemCurve:
    """Return the curve of an item with what was observed of it."""
    name = estimate.items[index]
    points, shares = observed.trace_curve(name), observed.trace_shares(name) * estimate.has_steps
    # More digits than a picture has would only make it longer.
    return _make_curve(
        estimate,
        index,
        tuple((round(ability, 3), round(mean, 4), n) for ability, mean, n in points),
        tuple(tuple(round(one, 4) for one in point) for point in shares),
    )


@dataclass(frozen=True, eq=False)
class ThresholdRows:
    """Items one below the other with all of their thresholds; the hardest on top.

    Attributes
    ----------
    items, location
        Of each row.
    value, lower, upper
        ``[row, step]``, NaN where there is none; the interval has no width without an error.
    labels
        Per row, what its categories are called in the answers; a step lies between two of them.
    disordered
        Whether a threshold lies below the one before it, or above the one after, ``[row][step]``.
    """

    items: tuple[str, ...]
    location: FloatArray
    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    labels: tuple[tuple[int, ...], ...]
    disordered: tuple[tuple[bool, ...], ...]

    def take(self, rows: Int64Array) -> ThresholdRows:
        """Return some of the rows."""
        chosen = rows.tolist()
        return ThresholdRows(
            tuple(self.items[i] for i in chosen),
            self.location[rows],
            self.value[rows],
            self.lower[rows],
            self.upper[rows],
            tuple(self.labels[i] for i in chosen),
            tuple(self.disordered[i] for i in chosen),
        )


def threshold_rows(estimate: Estimate, level: float = 0.95) -> ThresholdRows:
    """Return the items with thresholds, hardest first, and which thresholds are out of order."""
    estimated = np.flatnonzero(estimate.estimated)
    if not len(estimated):
        raise BadUsage("no item of this estimate has a number, so there is nothing to draw")
    order = estimated[np.argsort(-estimate.difficulty[estimated], kind="stable")]
    value = estimate.ladder.shown[order]
    interval = estimate.threshold_interval(level)[order]
    interval = np.where(np.isnan(interval + value[:, :, None]), value[:, :, None], interval)
    labels = estimate.ladder.labels
    return ThresholdRows(
        items=tuple(estimate.items[i] for i in order),
        location=estimate.difficulty[order],
        value=value,
        lower=interval[:, :, 0],
        upper=interval[:, :, 1],
        labels=tuple(labels[i] for i in order),
        disordered=tuple(map(mark_disordered, value)),
    )


def mark_disordered(thresholds: FloatArray) -> tuple[bool, ...]:
    """Say of each threshold of an item whether it and a neighbour are in the wrong order.

    Examples
    --------
    >>> mark_disordered(np.array([-1.0, 0.5, 0.2, 2.0]))
    (False, True, True, False)
    """
    with np.errstate(invalid="ignore"):
        falls = np.diff(thresholds) < 0
    edge = np.zeros(1, dtype=np.bool_)
    return tuple((np.concatenate([edge, falls]) | np.concatenate([falls, edge])).tolist())


#: Points of an observed curve: mean ability of a group, its mean score, its answers. The mean
#: score on a right/wrong item is the share right.
Curve: TypeAlias = tuple[tuple[Logit, NonNegative, Count], ...]
#: Per point of an observed curve, the share of every category.
Shares: TypeAlias = tuple[tuple[Proportion, ...], ...]

#: Width in logits of a bar of abilities: about half a standard error of an ability.
BIN = 0.25
#: Answers looked at together (one byte each).
CHUNK_CELLS = 1 << 22


@dataclass(frozen=True, eq=False)
class BinnedAnswers:
    """Answers of groups of persons.

    Attributes
    ----------
    items
        Names of the columns.
    ability
        Mean ability of those who answered, ``[group, item]``; NaN where nobody did.
    chosen
        How many are in each category, ``[group, item, category]``.
    """

    items: Annotated[tuple[str, ...], Distinct()]
    ability: Annotated[FloatArray, Along("", "items")]
    chosen: Annotated[Int64Array, Along("", "items")]

    __repr__ = brief_repr

    @property
    def answers(self) -> Int64Array:
        """How many answered, ``[group, item]``."""
        return np.asarray(self.chosen.sum(axis=2))

    @property
    def score(self) -> Int64Array:
        """Sum of their scores, ``[group, item]``; of right/wrong items, how many were right."""
        return np.asarray(self.chosen @ np.arange(self.chosen.shape[2]))

    def trace_curve(self, item: str) -> Curve:
        """Return the observed curve of an item; no points where it is not here."""
        if item not in self.items:
            return ()
        i = self.items.index(item)
        columns = (self.ability[:, i], self.answers[:, i], self.score[:, i])
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return tuple((a, r / n, n) for a, n, r in rows if n)

    def trace_shares(self, item: str) -> Shares:
        """Return the shares of the categories at every point of the curve of an item."""
        chosen = self.chosen[:, self.items.index(item)] if item in self.items else ()
        return tuple(tuple((row / row.sum()).tolist()) for row in chosen if row.any())


def bin_answers(responses: Responses, ability: FloatArray, groups: int = GROUPS) -> BinnedAnswers:
    """Count answers in equally large groups of persons, from the least to the most able.

    Parameters
    ----------
    responses
        The answers.
    ability
        One number per person; persons with NaN are left out.
    groups
        How many groups.
    """
    if ability.shape != (responses.n_persons,):
        raise BadUsage(
            f"binning needs one ability for each of the {responses.n_persons} persons, found "
            f"shape {ability.shape}; score the same answers that are drawn"
        )
    group = _group_persons(ability, groups)
    m, categories = responses.n_items, max(responses.steps, default=1) + 1
    chosen = np.zeros((groups, m, categories), dtype=np.int64)
    total = np.zeros((groups, m))
    step = max(1, CHUNK_CELLS // max(m, 1))
    for start in range(0, responses.n_persons, step):
        cells = responses.rows(start, start + step)
        here = slice(start, start + len(cells))
        for number in range(groups):
            mine = cells[group[here] == number]
            for category in range(categories):
                chosen[number, :, category] += (mine == category).sum(axis=0)
            total[number] += ability[here][group[here] == number] @ (mine >= 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return BinnedAnswers(responses.items, total / chosen.sum(axis=2), chosen)


def _group_persons(ability: FloatArray, groups: int) -> Int64Array:
    """Return each person's group, -1 without an ability; equal abilities stay together."""
    measured = np.isfinite(ability)
    group = np.full(len(ability), -1, dtype=np.int64)
    if not measured.any():
        return group
    cuts = np.quantile(ability[measured], np.arange(1, groups) / groups)
    group[measured] = np.searchsorted(cuts, ability[measured], side="left")
    return group


def bin_abilities(ability: FloatArray) -> tuple[FloatArray, Int64Array]:
    """Return where bins of :data:`BIN` logits start and how many persons are in each."""
    bin_number = np.floor(ability / BIN).astype(np.int64)
    counts = np.bincount(bin_number - bin_number.min())
    starts = np.arange(len(counts), dtype=np.float64)
    return (bin_number.min() + starts) * BIN, counts.astype(np.int64)


def bin_measured(responses: Responses, scores: PersonScores, groups: int = GROUPS) -> BinnedAnswers:
    """Count answers in groups of persons who have neither the lowest nor the highest score."""
    # All right or all wrong: by construction such points lie at 0% or 100%.
    return bin_answers(responses, np.where(scores.extreme, np.nan, scores.ability), groups)
