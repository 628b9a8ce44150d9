"""How raters rate: fit, fair averages, agreement, bias and drift; persons adjusted for raters.

In: ratings and the estimate of a facets model. Out: :class:`RatingStudy` with a table for each
facet and one of persons, and :class:`BiasTable` of two facets that are crossed. Confidential.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
from scipy.special import stdtr

from discreet.answers.ratings import Ratings
from discreet.choices import Adjustment
from discreet.errors import BadUsage
from discreet.items.cutoffs import SmallChances
from discreet.items.fit import CategoryFit
from discreet.items.groups import adjust
from discreet.items.raters.judging import Misfit, find_misfits, simulate_limits
from discreet.items.raters.laws import (
    ITEM,
    RatingLaws,
    UnexpectedRatings,
    describe_ratings,
    list_unexpected,
)
from discreet.jit import compiled_loop
from discreet.models.facets.fit import FacetRequest, fit_facets
from discreet.results.estimate import Estimate
from discreet.saving import Kept
from discreet.tabular import Columns, Tabular, brief_repr, list_field_columns
from discreet.types import FloatArray, IndexArray, Int64Array, Texts, Vector

#: Newton steps for a person's measure, at most.
ROUNDS = 50
#: Ratings whose chances are computed together.
AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False, repr=False)
class LevelFit(Tabular):
    """How the levels of one facet rate.

    Attributes
    ----------
    name
        The facet, or "item".
    levels
        Its levels.
    measure, se
        Of the estimate.
    observed
        Mean score given.
    fair
        Mean score that the level would give if it rated the mean person on all items (of an
        item: rated by the mean rater).
    infit, outfit
        Mean squared residuals at the persons' measures, weighted by information, and plain. With
        few ratings a person they are far below 1; other programs have them.
    conditional_infit, conditional_outfit
        The same given each person's total: 1 where the model holds.
    surprise
        How far the ratings are from what the other ratings of the same persons foretell, in
        standard deviations: positive where they are erratic, negative where too predictable. NaN
        of very many ratings.
    far_p
        Chance that any level of the facet would be as far from the mean in standard errors, if none
        differed from it; NaN of items.
    agreement, expected
        Share of ratings equal to another rating of the same person and item, and what the model
        expects; NaN for items.
    agreement_z
        How far they differ in standard errors.

    Examples
    --------
    >>> import numpy as np, discreet
    >>> from discreet.answers.ratings import Ratings
    >>> from discreet import analysis
    >>> rng = np.random.default_rng(0)
    >>> person, rater = np.repeat(np.arange(200), 2), np.tile([0, 1], 200)
    >>> ratings = Ratings.from_codes(
    ...     person, np.zeros(400, int), rng.integers(0, 3, 400), facets={"rater": rater})
    >>> study = analysis.study_ratings(ratings, discreet.fit(ratings))
    >>> study.facets["rater"].ratings.tolist()
    [200, 200]
    """

    name: str
    levels: tuple[str, ...]
    measure: FloatArray
    se: FloatArray
    ratings: Int64Array
    observed: FloatArray
    fair: FloatArray
    infit: FloatArray
    outfit: FloatArray
    conditional_infit: FloatArray
    conditional_outfit: FloatArray
    surprise: FloatArray
    far_p: FloatArray
    agreement: FloatArray
    expected: FloatArray
    agreement_z: FloatArray

    def to_dict(self) -> Columns:
        """One list per column; the first is called as the facet is."""
        names = [field.name for field in fields(self) if field.name not in ("name", "levels")]
        return {self.name: list(self.levels), **list_field_columns(self, *names)}


@dataclass(frozen=True, eq=False, repr=False)
class RatedPersons(Tabular):
    """Persons' measures, adjusted for the severity of their raters.

    Attributes
    ----------
    persons
        Their ids.
    measure, se
        Warm's weighted likelihood estimate in logits; NaN for a person without a usable rating.
    ratings, observed
        How many ratings, and their mean.
    fair
        Mean score that the mean rater would give on all items.
    infit, outfit
        Mean squares given the person's total; NaN where it leaves one possibility.
    p
        Chance of ratings at least as unexpected (mid-p); of very many ratings NaN.

    Examples
    --------
    >>> import numpy as np, discreet
    >>> from discreet.answers.ratings import Ratings
    >>> from discreet import analysis
    >>> rng = np.random.default_rng(0)
    >>> person, rater = np.repeat(np.arange(200), 2), np.tile([0, 1], 200)
    >>> ratings = Ratings.from_codes(
    ...     person, np.zeros(400, int), rng.integers(0, 3, 400), facets={"rater": rater})
    >>> study = analysis.study_ratings(ratings, discreet.fit(ratings))
    >>> len(study.persons)
    200
    """

    persons: Texts
    measure: FloatArray
    se: FloatArray
    ratings: Int64Array
    observed: FloatArray
    fair: FloatArray
    infit: FloatArray
    outfit: FloatArray
    p: FloatArray

    def to_dict(self) -> Columns:
        """One list per column: person, measure, se, ratings, observed, fair, infit, outfit, p."""
        names = ("measure", "se", "ratings", "observed", "fair", "infit", "outfit", "p")
        return {"person": self.persons.tolist(), **list_field_columns(self, *names)}


@dataclass(frozen=True, eq=False, repr=False)
class BiasTable(Tabular):
    """Where two facets together differ from their sum: a rater's bias on an item, or drift.

    Attributes
    ----------
    names
        The two facets.
    first, second
        The levels that meet.
    ratings
        How many ratings they share.
    bias, se
        Logits by which the pair is harsher than its parts say, all else held; errors from persons,
        less what the parts take up. NaN where a level has one pair only: then these are the same.
    p, adjusted
        Of no bias, and corrected for the number of pairs.

    Examples
    --------
    >>> import numpy as np, discreet
    >>> from discreet.answers.ratings import Ratings
    >>> from discreet import analysis
    >>> rng = np.random.default_rng(0)
    >>> person, rater = np.repeat(np.arange(200), 2), np.tile([0, 1], 200)
    >>> ratings = Ratings.from_codes(
    ...     person, np.zeros(400, int), rng.integers(0, 3, 400), facets={"rater": rater})
    >>> study = analysis.study_ratings(ratings, discreet.fit(ratings))
    >>> study.find_bias("rater", "item").ratings.tolist()
    [200, 200]
    """

    names: tuple[str, str]
    first: tuple[str, ...]
    second: tuple[str, ...]
    ratings: Int64Array
    bias: FloatArray
    se: FloatArray
    p: FloatArray
    adjusted: FloatArray

    def to_dict(self) -> Columns:
        """One list per column, the two facets first."""
        numbers = list_field_columns(self, "ratings", "bias", "se", "p", "adjusted")
        return {self.names[0]: list(self.first), self.names[1]: list(self.second), **numbers}

    def flagged(self, level: float = 0.05) -> BiasTable:
        """Return the pairs whose corrected p-value is at most ``level``, the largest first."""
        order = np.argsort(-np.abs(self.bias))
        rows = order[self.adjusted[order] <= level]
        first, second = (tuple(np.array(part)[rows].tolist()) for part in (self.first, self.second))
        columns: list[Any] = [self.ratings, self.bias, self.se, self.p, self.adjusted]
        return BiasTable(self.names, first, second, *(column[rows] for column in columns))


@dataclass(frozen=True, eq=False, repr=False)
class RatingStudy(Kept):
    """What ratings say about raters, items and persons.

    Attributes
    ----------
    ratings
        What was studied; a file does not hold it.
    about
        How many ratings, persons, items and levels there are.
    facets
        By name, the levels of every facet; "item" holds the items.
    persons
        Persons' measures.
    mean_ability
        Of the persons, at which fair averages are computed.
    limits
        Of the surprise: below the first one a level is too predictable (in 1% of sound studies),
        above the second one erratic (3%); another 1% have too many persons with unexpected ratings.
    sets
        Of ratings drawn for the limits; 0 of more than 100,000 ratings, where infit beyond .7 and
        1.3 is named.
    misfits
        Raters, other levels and items beyond their limits, the worst first, each without the
        ratings of those before.
    unexpected_persons
        Their share against its limit; None of very many ratings.
    unexpected
        The 20 most unexpected ratings.
    categories
        Every category of every item.
    """

    estimate: Estimate
    ratings: Ratings | None
    about: str
    facets: Mapping[str, LevelFit]
    persons: RatedPersons
    mean_ability: float
    limits: tuple[float, float]
    sets: int
    misfits: tuple[Misfit, ...]
    unexpected_persons: SmallChances | None
    unexpected: UnexpectedRatings
    categories: CategoryFit

    __repr__ = brief_repr
    derived_parts = ("ratings",)

    def find_bias(
        self, first: str, second: str, *, adjustment: Adjustment = "benjamini-hochberg"
    ) -> BiasTable:
        """Test every pair of levels of two facets; ``"item"`` is a facet here too.

        The second may be a column that the model does not have, such as the time of rating: then
        this is a table of drift.
        """
        return _cross(self, (first, second), adjustment)


def study_ratings(ratings: Ratings, estimate: Estimate) -> RatingStudy:
    """Compute fit, fair averages, agreement and persons' measures of a facets model.

    Examples
    --------
    >>> import numpy as np, discreet
    >>> from discreet.answers.ratings import Ratings
    >>> rng = np.random.default_rng(0)
    >>> person, rater = np.repeat(np.arange(200), 2), np.tile([0, 1], 200)
    >>> ratings = Ratings.from_codes(
    ...     person, np.zeros(400, int), rng.integers(0, 3, 400), facets={"rater": rater})
    >>> study = study_ratings(ratings, discreet.fit(ratings))
    >>> bool((study.facets["rater"].infit < 1.2).all())
    True
    """
    if not isinstance(ratings, Ratings):
        raise BadUsage("study_ratings needs ratings in memory: discreet's read_ratings reads them")
    model = _Scores(ratings, estimate)
    ability, error = _measure_persons(model)
    is_measured = np.isfinite(ability)
    centre = float(ability[is_measured].mean()) if is_measured.any() else 0.0
    residuals, laws = model.residuals(ability), RatingLaws.of(model, ability, error)
    limits, agreement = simulate_limits(ratings, estimate, laws), _compare_raters(model, ability)
    cuts = np.cumsum([len(own) for own in laws.levels.values()])[:-1]
    judged = zip(np.split(limits.z, cuts), np.split(limits.far_p, cuts), strict=True)
    given = {
        name: (*squares, *own)
        for (name, squares), own in zip(laws.square_levels().items(), judged, strict=True)
    }
    facets = {
        name: _fit_levels(model, name, residuals, given[name], agreement, centre)
        for name in (*estimate.facets, ITEM)
    }
    counts = np.bincount(ratings.person, minlength=ratings.n_persons)
    observed = np.bincount(ratings.person, ratings.score) / counts + ratings.lowest
    fair = model.fair(ability, np.zeros(len(ability)))
    p = np.full(ratings.n_persons, np.nan)
    p[ratings.person[laws.rows[laws.start[:-1]]]] = limits.person_p
    squares = *laws.square(ratings.person[laws.rows], ratings.n_persons), p
    persons = RatedPersons(ratings.persons, ability, error, counts, observed, fair, *squares)
    misfits = find_misfits(ratings, laws, limits, partial(_fit_again, estimate))
    unexpected, categories = list_unexpected(model, laws), describe_ratings(model, laws, ability)
    found = limits.limits, limits.sets, misfits, limits.persons, unexpected, categories
    return RatingStudy(estimate, ratings, ratings.describe(), facets, persons, centre, *found)


def _fit_again(estimate: Estimate, ratings: Ratings) -> tuple[Estimate, RatingLaws]:
    """Fit some of the ratings by a model of the same structure."""
    nodes = "item + step" if estimate.model == "rating-scale" else "item:step"
    terms = " + ".join([nodes, *estimate.facets])
    with warnings.catch_warnings(action="ignore"):
        request = FacetRequest(tuple(ratings.facets), structure=terms, standard_errors=False)
        again = fit_facets(ratings, request)
    model = _Scores(ratings, again)
    return again, RatingLaws.of(model, *_measure_persons(model))


class _Scores:
    """Chances of scores under an estimate."""

    def __init__(self, ratings: Ratings, estimate: Estimate) -> None:
        self.ratings, self.estimate = ratings, estimate
        self.thresholds, self.kept = estimate.thresholds, estimate.ladder.kept
        widest = int(ratings.score.max(initial=0)) + 1
        table = np.full((len(estimate.items), widest), -1)
        for row, kept in zip(table, self.kept, strict=True):
            row[list(kept)] = np.arange(len(kept))
        self.score = table[ratings.item, ratings.score]
        self.severity = np.zeros(ratings.n_ratings)
        for name in estimate.facets:
            self.severity += estimate.facets[name].measure[self.level_codes(name)]
        has_steps = np.asarray(~np.isnan(self.thresholds).all(axis=1))
        # No chance is known of a category above a step without a number.
        reached = np.cumsum(np.insert(self.thresholds, 0, 0.0, axis=1), axis=1)
        is_known = np.isfinite(reached[ratings.item, self.score]) & (self.score >= 0)
        self.counts = np.isfinite(self.severity) & has_steps[ratings.item] & is_known

    def level_codes(self, name: str) -> Any:
        """Return the number of each rating's level of a facet, or of facets that are crossed."""
        if name == ITEM:
            return self.ratings.item
        if name in self.ratings.codes:
            return self.ratings.codes[name]
        labels = {level: number for number, level in enumerate(self.levels(name))}
        columns = [np.array(self.levels(part))[self.level_codes(part)] for part in name.split(":")]
        return np.array([labels[":".join(row)] for row in zip(*columns, strict=True)])

    def levels(self, name: str) -> Sequence[str]:
        """Return the names of the levels of a facet."""
        if name in self.estimate.facets:
            return self.estimate.facets[name].levels
        return self.ratings.items if name == ITEM else self.ratings.facets[name]

    def chances(self, level: FloatArray, item: Vector) -> FloatArray:
        """Return the chance of every category at ability minus severity."""
        logits = np.cumsum(level[:, None] - self.thresholds[item], axis=1)
        logits = np.column_stack([np.zeros(len(level)), logits])
        logits[np.isnan(logits)] = -np.inf
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def moments(self, ability: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return mean, variance and third moment of every rating's score."""
        out = np.full((3, self.ratings.n_ratings), np.nan)
        for low in range(0, self.ratings.n_ratings, AT_ONCE):
            rows = slice(low, low + AT_ONCE)
            level = ability[self.ratings.person[rows]] - self.severity[rows]
            chance = self.chances(level, self.ratings.item[rows])
            category = np.arange(chance.shape[1])
            mean = chance @ category
            centred = category - mean[:, None]
            out[:, rows] = mean, (chance * centred**2).sum(1), (chance * centred**3).sum(1)
        return out[0], out[1], out[2]

    def residuals(self, ability: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what ratings exceed their expectation by, and its variance; NaN if not usable."""
        mean, variance, _ = self.moments(ability)
        usable = self.counts & np.isfinite(mean)
        residual = np.where(usable, self.score - mean, np.nan)
        return residual, np.where(usable, variance, np.nan)

    def fair(self, ability: FloatArray, severity: FloatArray) -> FloatArray:
        """Return the mean score over all items at abilities and severities, as the data count."""
        total, n_items = np.zeros(len(ability)), 0
        for item, kept in enumerate(self.kept):
            if np.isnan(self.thresholds[item, : len(kept) - 1]).any():
                continue
            chance = self.chances(ability - severity, np.full(len(ability), item))
            total += chance[:, : len(kept)] @ np.array(kept)
            n_items += 1
        return np.asarray(total / max(n_items, 1) + self.ratings.lowest)


def _measure_persons(model: _Scores) -> tuple[FloatArray, FloatArray]:
    """Return Warm's estimate of every person and its standard error."""
    ratings = model.ratings
    person, n_persons = ratings.person, ratings.n_persons
    weight = model.counts.astype(float)
    ability = np.zeros(n_persons)
    has_any = np.bincount(person, weight, n_persons) > 0

    def add(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(person, np.nan_to_num(values) * weight, n_persons), float)

    information = np.ones(n_persons)
    for _ in range(ROUNDS):
        mean, variance, skew = model.moments(ability)
        information = np.maximum(add(variance), 1e-9)
        step = (add(model.score - mean) + add(skew) / (2 * information)) / information
        ability += np.clip(step, -1, 1)
        if np.abs(step[has_any]).max(initial=0.0) < 1e-6:
            break
    error = 1 / np.sqrt(information)
    return np.where(has_any, ability, np.nan), np.where(has_any, error, np.nan)


@compiled_loop
def _sum_agreement(start: Vector, score: Vector, chance: Vector, code: Vector, out: Vector) -> None:
    """Add, for each level, comparisons, equal scores, expected ones and their variance."""
    for g in range(len(start) - 1):
        for a in range(start[g], start[g + 1]):
            for b in range(start[g], start[g + 1]):
                if code[a] == code[b]:
                    continue
                expected = 0.0
                for k in range(chance.shape[1]):
                    expected += chance[a, k] * chance[b, k]
                out[code[a], 0] += 1.0
                out[code[a], 1] += 1.0 if score[a] == score[b] else 0.0
                out[code[a], 2] += expected
                out[code[a], 3] += expected * (1.0 - expected)


def _compare_raters(model: _Scores, ability: FloatArray) -> Mapping[str, FloatArray]:
    """Return, by facet, the sums of agreement of its levels on the same person and item."""
    ratings = model.ratings
    rows = np.flatnonzero(model.counts & np.isfinite(ability[ratings.person]))
    person, item = ratings.person[rows], ratings.item[rows]
    changes = (np.diff(person, prepend=-1) != 0) | (np.diff(item, prepend=-1) != 0)
    start = np.append(np.flatnonzero(changes), len(rows))
    chance = model.chances(ability[person] - model.severity[rows], item)
    sums = {}
    for name, facet in model.estimate.facets.items():
        out = np.zeros((len(facet.levels), 4))
        code = np.asarray(model.level_codes(name))[rows]
        _sum_agreement(start, model.score[rows], chance, code, out)
        sums[name] = out
    return sums


def _fit_levels(
    model: _Scores,
    name: str,
    residuals: tuple[FloatArray, FloatArray],
    given: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    agreement: Mapping[str, FloatArray],
    centre: float,
) -> LevelFit:
    ratings, estimate = model.ratings, model.estimate
    residual, variance = residuals
    codes, levels = model.level_codes(name), tuple(model.levels(name))
    size = len(levels)
    usable = np.isfinite(residual)
    counts = np.bincount(codes, minlength=size)

    def add(values: FloatArray) -> FloatArray:
        usable_values = np.where(usable, np.nan_to_num(values), 0.0)
        return np.asarray(np.bincount(codes, usable_values, size), float)

    n_usable = np.bincount(codes, usable, size)
    squared = residual**2
    with np.errstate(divide="ignore", invalid="ignore"):
        infit = add(squared) / add(variance)
        outfit = add(squared / variance) / n_usable
        observed = np.bincount(codes, ratings.score, size) / counts + ratings.lowest
        pairs, equal, expected, spread = agreement.get(name, np.full((size, 4), np.nan)).T
        shares = equal / pairs, expected / pairs, (equal - expected) / np.sqrt(spread)
    if name == ITEM:
        measure, se = estimate.difficulty, estimate.se
        chance = model.chances(np.full(size, centre), np.arange(size))
        scores = np.array([[*kept, *[0] * (chance.shape[1] - len(kept))] for kept in model.kept])
        fair = (chance * scores).sum(axis=1) + ratings.lowest
    else:
        measure, se = estimate.facets[name].measure, estimate.facets[name].se
        fair = model.fair(np.full(size, centre), np.nan_to_num(measure))
        fair[np.isnan(measure)] = np.nan
    squares = infit, outfit, *given
    return LevelFit(name, levels, measure, se, counts, observed, fair, *squares, *shares)


def _cross(study: RatingStudy, names: tuple[str, str], adjustment: Adjustment) -> BiasTable:
    if study.ratings is None:
        raise BadUsage("the study was read from a file, which does not hold ratings; study them")
    for name in names:
        if name != ITEM and name not in study.ratings.facets:
            raise BadUsage(
                f"the ratings have no facet '{name}'; they have: {', '.join(study.ratings.facets)} "
                "and item. Name the column in facets= (--facet), or with --drift-over."
            )
    model = _Scores(study.ratings, study.estimate)
    residual, variance = model.residuals(study.persons.measure)
    usable = np.flatnonzero(np.isfinite(residual))
    residual, variance = residual[usable], variance[usable]
    levels = [model.levels(name) for name in names]
    numbers = [np.asarray(model.level_codes(name), np.int64)[usable] for name in names]
    cells, code = np.unique(numbers[0] * len(levels[1]) + numbers[1], return_inverse=True)
    places = np.divmod(cells, len(levels[1]))
    information = np.bincount(code, variance)
    sums = [_sum_persons(model.ratings.person[usable], of, residual) for of in (code, *numbers)]
    owner = code[sums[0][2]]
    n_persons = np.bincount(owner)
    fitted = [name in (*study.estimate.facets, ITEM) for name in names]
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = [
            is_fitted * information / np.bincount(number, variance)[place]
            for is_fitted, number, place in zip(fitted, numbers, places, strict=True)
        ]
        bias = -np.bincount(code, residual) / information
        correction = np.where(n_persons > 1, n_persons / (n_persons - 1), np.nan)
        se = np.sqrt(_find_spread(sums, owner, places, shares) * correction) / information
        p = 2 * stdtr(np.maximum(n_persons - 1, 1), -np.abs(bias / se))
    adjusted = adjust(p, adjustment)
    labels = [
        tuple(part[number] for number in place.tolist())
        for part, place in zip(levels, places, strict=True)
    ]
    return BiasTable(names, labels[0], labels[1], np.bincount(code), bias, se, p, adjusted)


#: Every person's sum of residuals in every level: at each rating; squared and added by level; and
#: one rating of each person and level.
_PersonSums = tuple[FloatArray, FloatArray, IndexArray]


def _sum_persons(person: Vector, level: Vector, residual: FloatArray) -> _PersonSums:
    key = level * (int(person.max(initial=0)) + 1) + person
    _, first, entry = np.unique(key, return_index=True, return_inverse=True)
    sums = np.bincount(entry, residual).astype(float)
    return sums[entry], np.bincount(level[first], sums**2).astype(float), first


def _find_spread(
    sums: Sequence[_PersonSums], owner: IndexArray, places: Any, shares: Sequence[FloatArray]
) -> FloatArray:
    """Return the variance of the sum of residuals of every pair of levels, summed over persons.

    Both levels are estimated from these ratings, so that the residuals of each add up to about
    nothing. What varies is the part of a pair's sum that the two sums do not foretell: with shares
    p and q of the pair in the information on its levels, they foretell p (1 - q) / (1 - p q) of the
    first one and q (1 - p) / (1 - p q) of the second. NaN where a level has no other pair.
    """
    (pair, _, first), *both = sums
    foretold = [p * (1 - q) / (1 - p * q) for p, q in (shares, shares[::-1])]
    parts = [share[owner] * own[first] for share, (own, *_) in zip(foretold, both, strict=True)]
    spread = np.bincount(owner, (pair[first] - sum(parts)) ** 2)
    # The same levels in other pairs.
    for share, part, (_, squares, _), place in zip(foretold, parts, both, places, strict=True):
        spread += share**2 * squares[place] - np.bincount(owner, part**2)
    return np.where(sum(foretold) < 1 - 1e-9, spread, np.nan)
