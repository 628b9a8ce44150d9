"""How ratings fit the other ratings of the same persons: levels, persons, single ratings.

In: ratings and what a facets model says of each. Out: mean squares given the totals, the most
unexpected ratings, categories. Confidential.

Given the total of a person's ratings, these do not depend on the ability
(:mod:`discreet.items.given_totals`), so that mean squares are 1 on average even with two ratings a
person.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sparse

from discreet.choices import PlainMapping
from discreet.items.fit import CategoryFit
from discreet.items.given_totals import DETERMINED, LISTED, condition_on_totals
from discreet.models.facets import kernels
from discreet.tabular import Columns, Tabular, list_field_columns
from discreet.types import FloatArray, Int64Array

ITEM = "item"
#: Ratings whose chances are computed together.
AT_ONCE = 1 << 20


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
    has the number of each one's level by facet, and ``levels`` the names. ``ability`` is of the
    persons, and ``error`` their smallest standard error.
    """

    rows: Int64Array
    start: Int64Array
    score: Any
    threshold: FloatArray
    mean: FloatArray
    variance: FloatArray
    codes: PlainMapping
    levels: Mapping[str, tuple[str, ...]]
    ability: FloatArray
    error: float

    @classmethod
    def of(cls, model: Any, ability: FloatArray, error: FloatArray) -> RatingLaws:
        """Take the ratings that have numbers."""
        ratings = model.ratings
        rows = np.flatnonzero(model.counts & np.isfinite(ability[ratings.person]))
        person, score = ratings.person[rows], model.score[rows].astype(np.int32)
        start = np.append(np.flatnonzero(np.diff(person, prepend=-1)), len(rows))
        threshold = model.thresholds[ratings.item[rows]] + model.severity[rows, None]
        total = np.add.reduceat(score, start[:-1]).astype(np.int64)
        first = person[start[:-1]]
        own, least = ability[first], float(error[first].min(initial=1.0))
        mean, variance = condition_on_totals(start, threshold, own, total)
        names = (*model.estimate.facets, ITEM)
        codes = {name: np.asarray(model.level_codes(name))[rows] for name in names}
        levels = {name: tuple(model.levels(name)) for name in names}
        return cls(rows, start, score, threshold, mean, variance, codes, levels, own, least)

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
