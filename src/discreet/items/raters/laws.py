"""How ratings fit the other ratings of the same persons: levels, persons, single ratings.

In: ratings, what a facets model says of each, and a way to fit it again. Out: mean squares given
the totals, levels beyond chance, the most unexpected ratings, categories. Confidential.

Given the total of a person's ratings, these do not depend on the ability
(:mod:`discreet.items.given_totals`), so that mean squares are 1 on average even with two ratings a
person. They hardly see a rater who marks at random, whose scores say nothing about the other
scores. What sees it is the surprise: minus the mean logarithm of the probability of the ratings of
a level given the other ratings of the same persons, with normal abilities. Its law is that of
scores that are drawn again given the totals, so that its level does not rest on these abilities.
One joint maximum of all levels and items on both sides, and the share of persons with a small
chance, share one 5%.

A rater who marks at random spoils the fit of others, and draws the steps together. So the worst one
is named, its ratings are taken out, the model is fitted again, and the others are tested again,
until none is beyond.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sparse
from scipy.special import logsumexp

from discreet.answers.ratings import Ratings
from discreet.choices import PlainMapping
from discreet.errors import DiscreetError
from discreet.items.cutoffs import FEW, PersonShares, SmallChances, split_level, take_largest
from discreet.items.fit import CategoryFit
from discreet.items.given_totals import DETERMINED, LISTED, condition_on_totals
from discreet.models.facets import kernels
from discreet.results.limits import FIT_HIGH, FIT_LOW, FIT_NEGLIGIBLE
from discreet.tabular import Columns, Tabular, list_field_columns
from discreet.types import FloatArray, Int64Array

ITEM = "item"
#: With fewer levels than this, a rater who marks at random cannot be told from the others.
FEWEST_TOLD = 4
#: Ratings whose chances are computed together.
AT_ONCE = 1 << 20
#: Ratings times steps up to which scores are drawn again: some seconds.
MOST_DRAWN = 50_000
#: Levels that are named.
MOST_NAMED = 10
#: Abilities at which the normal law is summed, out to so many standard deviations.
NODES, FAR = 41, 5.0
#: Steps towards the mean and spread of abilities.
PRIOR_STEPS = 50


@dataclass(frozen=True)
class Misfit:
    """A level (or of few the two worst) beyond the limit, without those that were found before.

    ``z`` is the surprise in standard deviations: positive where ratings are erratic.
    """

    facet: str
    levels: tuple[str, ...]
    z: float
    infit: float


@dataclass(frozen=True, eq=False, repr=False)
class UnexpectedRatings(Tabular):
    """The ratings that the other ratings of the same person foretell least. Confidential.

    Attributes
    ----------
    person, item
        Whose rating on what.
    facets
        By facet, the level.
    observed, expected
        The score, and its mean given the person's total.
    z
        The difference in standard deviations.
    """

    person: tuple[str, ...]
    item: tuple[str, ...]
    facets: Mapping[str, tuple[str, ...]]
    observed: Int64Array
    expected: FloatArray
    z: FloatArray

    def to_dict(self) -> Columns:
        """One list per column, the most unexpected rating first."""
        names = {"person": list(self.person), "item": list(self.item)}
        facets = {name: list(levels) for name, levels in self.facets.items()}
        return {**names, **facets, **list_field_columns(self, "observed", "expected", "z")}


@dataclass(frozen=True, eq=False)
class RatingLaws:
    """Usable ratings with their law given the total of the person.

    ``rows`` are those of the ratings, ``start`` says where those of each person begin, ``codes``
    has the number of each one's level by facet, and ``levels`` the names.
    """

    rows: Int64Array
    start: Int64Array
    score: Any
    threshold: FloatArray
    mean: FloatArray
    variance: FloatArray
    codes: PlainMapping
    levels: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, model: Any, ability: FloatArray) -> RatingLaws:
        """Take the ratings that have numbers."""
        ratings = model.ratings
        rows = np.flatnonzero(model.counts & np.isfinite(ability[ratings.person]))
        person, score = ratings.person[rows], model.score[rows].astype(np.int32)
        start = np.append(np.flatnonzero(np.diff(person, prepend=-1)), len(rows))
        threshold = model.thresholds[ratings.item[rows]] + model.severity[rows, None]
        total = np.add.reduceat(score, start[:-1]).astype(np.int64)
        mean, variance = condition_on_totals(start, threshold, ability[person[start[:-1]]], total)
        names = (*model.estimate.facets, ITEM)
        codes = {name: np.asarray(model.level_codes(name))[rows] for name in names}
        levels = {name: tuple(model.levels(name)) for name in names}
        return cls(rows, start, score, threshold, mean, variance, codes, levels)

    def draw(self, rng: np.random.Generator) -> Any:
        """Return scores drawn again given the totals."""
        n_ratings, width = self.threshold.shape
        first = np.arange(n_ratings, dtype=np.int32) * width
        columns = first, np.zeros((n_ratings, 0), np.int32)
        most = np.isfinite(self.threshold).sum(axis=1).astype(np.int32)
        score, values = self.score.copy(), np.nan_to_num(self.threshold).ravel()
        kernels.draw_scores(self.start, columns, most, values, rng.random(n_ratings), score)
        return score

    def square(self, codes: Any, size: int) -> tuple[FloatArray, FloatArray]:
        """Return infit and outfit of levels; NaN where the totals determine all ratings."""
        says = self.variance > DETERMINED
        squares, variance = (self.score - self.mean)[says] ** 2, self.variance[says]
        terms = squares, variance, squares / variance, np.ones(len(variance))
        sums = [np.bincount(codes[says], term, size) for term in terms]
        with np.errstate(invalid="ignore", divide="ignore"):
            return sums[0] / sums[1], sums[2] / sums[3]

    def square_levels(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Return, by facet, infit and outfit of its levels."""
        return {name: self.square(self.codes[name], len(own)) for name, own in self.levels.items()}

    def reach(self, score: Any) -> FloatArray:
        """Return the sum of the thresholds that each person's ratings reach."""
        reached = np.cumsum(np.nan_to_num(self.threshold), axis=1)
        sums = np.where(score > 0, reached[np.arange(len(score)), score - 1], 0.0)
        return np.asarray(np.add.reduceat(sums, self.start[:-1]))


class Surprise:
    """Measures how surprising the ratings of all levels are; see the top of the module."""

    def __init__(self, laws: RatingLaws, ability: FloatArray) -> None:
        self._start = laws.start[:-1]
        centre, spread = float(ability.mean()), float(ability.std()) + 1.0
        node = np.linspace(centre - FAR * spread, centre + FAR * spread, NODES)
        steps = node[:, None] - laws.threshold[:, None, :]
        logits = np.pad(np.cumsum(steps, axis=2), ((0, 0), (0, 0), (1, 0)))
        logits[np.isnan(logits)] = -np.inf
        self._chance = logits - logsumexp(logits, axis=2, keepdims=True)
        self._prior = self._find_prior(node, self._list(laws.score)[1])
        person = np.repeat(np.arange(len(self._start)), np.diff(laws.start))
        self._blocks = [
            self._block(laws.codes[name], person, len(own)) for name, own in laws.levels.items()
        ]

    def _list(self, score: Any) -> tuple[FloatArray, FloatArray]:
        """Return log chances ``[rating, node]``, and their sums ``[person, node]``."""
        own = self._chance[np.arange(len(score)), :, score]
        return own, np.add.reduceat(own, self._start)

    @staticmethod
    def _find_prior(node: FloatArray, chance: FloatArray) -> FloatArray:
        """Return the logarithm of the normal law of abilities that suits best."""
        prior = np.zeros(len(node))
        for _ in range(PRIOR_STEPS):
            weight = np.exp(chance + prior - logsumexp(chance + prior, axis=1, keepdims=True))
            weight = weight.mean(axis=0)
            mean = weight @ node
            prior = -0.5 * (node - mean) ** 2 / max(weight @ (node - mean) ** 2, 1e-2)
        return np.asarray(prior)

    @staticmethod
    def _block(code: Any, person: Any, size: int) -> tuple[Any, Any, Any, FloatArray]:
        """Return a person's ratings by a level as rows of a matrix; person and level; counts."""
        cells, row = np.unique(
            code.astype(np.int64) * (person[-1] + 1) + person, return_inverse=True
        )
        level, who = np.divmod(cells, person[-1] + 1)
        shape = len(cells), len(code)
        sums = sparse.csr_array((np.ones(len(code)), (row, np.arange(len(code)))), shape=shape)
        return sums, who, level, np.bincount(level, minlength=size).astype(float)

    def measure(self, score: object) -> FloatArray:
        """Return the surprise of all levels, facet after facet; NaN without ratings."""
        own, whole = self._list(score)
        whole = whole + self._prior
        total, parts = logsumexp(whole, axis=1), []
        for sums, person, level, count in self._blocks:
            others = logsumexp(whole[person] - sums @ own, axis=1)
            with np.errstate(invalid="ignore"):
                parts.append(np.bincount(level, others - total[person], len(count)) / count)
        return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class RatingLimits:
    """Surprise of all levels in standard deviations, its limit, and who is beyond; persons."""

    z: FloatArray
    limit: float
    beyond: npt.NDArray[np.bool_]
    person_p: FloatArray
    persons: SmallChances | None


def simulate_limits(laws: RatingLaws, ability: FloatArray) -> RatingLimits:
    """Draw scores again; of very many ratings infit is held against a rule of thumb."""
    infit = np.concatenate([part[0] for part in laws.square_levels().values()])
    if laws.threshold.size > MOST_DRAWN:
        beyond, chances = (
            (infit < FIT_LOW) | (infit > FIT_HIGH),
            np.full(len(laws.start) - 1, np.nan),
        )
        return RatingLimits(np.full(len(infit), np.nan), np.nan, beyond, chances, None)
    surprise, rng = Surprise(laws, ability), np.random.default_rng(0)
    sets = [*(laws.draw(rng) for _ in range(FEW)), laws.score]
    every = np.stack([surprise.measure(score) for score in sets])
    mean, sd = every.mean(axis=0), every.std(axis=0)
    z = (every - mean) / np.where(sd > 0, sd, np.inf)
    shares = PersonShares.of(np.stack([laws.reach(score) for score in sets]).astype(np.float32))
    families = {"levels": take_largest(np.abs(z)), "persons": shares.z.max(axis=0)}
    limits = split_level(families)
    with np.errstate(invalid="ignore"):
        beyond = (np.abs(z[-1]) > limits["levels"]) & (np.abs(infit - 1) > FIT_NEGLIGIBLE)
    persons = shares.conclude(limits["persons"])
    return RatingLimits(z[-1], limits["levels"], beyond, shares.list_chances(), persons)


def find_misfits(
    ratings: Ratings,
    laws: RatingLaws,
    limits: RatingLimits,
    fit: Callable[[Ratings], tuple[RatingLaws, FloatArray]],
) -> tuple[Misfit, ...]:
    """Name the worst level, take its ratings out, fit and test again, until none is beyond."""
    found: list[Misfit] = []
    while limits.beyond.any() and len(found) < MOST_NAMED:
        name, number, levels = _find_worst(laws, limits)
        place = sum(len(laws.levels[one]) for one in [*laws.levels][: [*laws.levels].index(name)])
        infit = float(laws.square_levels()[name][0][number])
        found.append(Misfit(name, levels, float(limits.z[place + number]), infit))
        if np.isnan(limits.limit):  # of very many ratings nobody's are taken out
            limits.beyond[place + number] = False
            continue
        if name == ITEM or len(levels) > 1:
            break
        ratings = ratings.select(laws.rows[laws.codes[name] != number])
        try:
            laws, ability = fit(ratings)
        except DiscreetError:  # what is left does not link the others
            break
        limits = simulate_limits(laws, ability)
    return tuple(found)


def _find_worst(laws: RatingLaws, limits: RatingLimits) -> tuple[str, int, tuple[str, ...]]:
    """Return the level that is farthest beyond; an item where no other level is."""
    infit = laws.square_levels()
    rows = [
        (name, number, infit[name][0][number])
        for name, levels in laws.levels.items()
        for number in range(len(levels))
    ]
    size = np.where(np.isnan(limits.z), np.log([row[2] for row in rows]), limits.z)
    order = [i for i in np.argsort(-np.abs(size), kind="stable").tolist() if limits.beyond[i]]
    worst = next((i for i in order if rows[i][0] != ITEM), order[0])
    name, number, _ = rows[worst]
    mine = [i for i, row in enumerate(rows) if row[0] == name and np.isfinite(row[2])]
    told = [worst]
    if name != ITEM and len(mine) < FEWEST_TOLD:
        told = sorted(mine, key=lambda i: -size[i] * np.sign(size[worst]))[:2]
    return name, number, tuple(laws.levels[name][rows[i][1]] for i in told)


def list_unexpected(model: Any, laws: RatingLaws) -> UnexpectedRatings:
    """Return the ratings with the largest standardised residuals, as the data call them."""
    spread = np.sqrt(np.where(laws.variance > DETERMINED, laws.variance, np.inf))
    z = (laws.score - laws.mean) / spread
    most = np.argsort(-np.abs(z), kind="stable")[:LISTED]
    rows, ratings = laws.rows[most], model.ratings
    kept = [np.array(model.kept[item]) for item in ratings.item[rows]]
    expected = [
        np.interp(mean, np.arange(len(own)), own)
        for mean, own in zip(laws.mean[most], kept, strict=True)
    ]
    names = {
        name: tuple(levels[code] for code in laws.codes[name][most])
        for name, levels in laws.levels.items()
    }
    return UnexpectedRatings(
        person=tuple(ratings.persons[ratings.person[rows]]),
        item=names.pop(ITEM),
        facets=names,
        observed=ratings.score[rows].astype(np.int64) + ratings.lowest,
        expected=np.array(expected) + ratings.lowest,
        z=z[most],
    )


def describe_ratings(model: Any, laws: RatingLaws, ability: FloatArray) -> CategoryFit:
    """Return what there is about every category; abilities are those less the severity.

    Mean squares of single categories are left out: at abilities from so few ratings they mislead.
    """
    ratings, steps = model.ratings, model.thresholds
    says = laws.rows[laws.variance > DETERMINED]
    sums = np.zeros((4, len(steps), steps.shape[1] + 1))
    for low in range(0, len(says), AT_ONCE):
        rows = says[low : low + AT_ONCE]
        level = (ability[ratings.person[rows]] - model.severity[rows])[:, None]
        chance = model.chances(level[:, 0], ratings.item[rows])
        own = (model.score[rows, None] == np.arange(chance.shape[1])) * 1.0
        cells = ratings.item[rows], np.arange(len(rows))
        places = sparse.csr_array((np.ones(len(rows)), cells), shape=(len(steps), len(rows)))
        sums += np.stack([places @ term for term in (own, own * level, chance, chance * level)])
    counts = ratings.count_categories()
    item, category = np.nonzero(np.arange(sums.shape[2]) < [[len(own)] for own in model.kept])
    code = np.array([model.kept[i][k] for i, k in zip(item, category, strict=True)])
    threshold, se = (
        np.pad(part, ((0, 0), (1, 0)), constant_values=np.nan)[item, category]
        for part in (steps, model.estimate.threshold_se)
    )
    seen, level, expected, at = sums[:, item, category]
    with np.errstate(invalid="ignore", divide="ignore"):
        return CategoryFit(
            item=tuple(ratings.items[i] for i in item),
            category=code + ratings.lowest,
            answers=counts[item, code],
            share=counts[item, code] / counts.sum(axis=1)[item],
            mean_ability=level / seen,
            expected_ability=at / expected,
            infit=np.full(len(item), np.nan),
            outfit=np.full(len(item), np.nan),
            threshold=threshold,
            se=se,
            answers_without_extremes=seen.astype(np.int64),
        )
