"""Infit and outfit of items and persons, point-measure correlations, separation, reliability.

In: answers and a calibration. Out: one row per item, one per person, one per category of items with
steps, and a few totals. Confidential.

With residual ``y = x - p`` and variance ``w = p (1 - p)`` outfit is the mean of ``y^2 / w`` and
infit is ``sum y^2 / sum w``; both are 1 on average when the model holds. The standardised values
use the cube root of Wilson and Hilferty with the model variance of each mean square (Wright and
Masters 1982, ch. 5). The expected point-measure correlation has ``cov(theta, p)`` above and
``var(p) + mean(w)`` as the variance of the answers below; the discrimination is ``1 + sum y (theta
- b) / sum w (theta - b)^2``. With steps ``x`` is the category, ``p`` and ``w`` are mean and
variance of the score, and the discrimination is that of a slope on all thresholds.

One person can make an outfit large: an answer with a chance of 1 in 1000 adds about 1000 to a sum
that is about the number of persons. The bounded outfit is ``sum min(y^2 / w, 9)`` over its mean by
the model: no answer counts for more than three standard deviations.

Of those in category k of an item with steps, infit is the sum of ``y^2`` over what the model
expects of it, ``sum P_k (k - E)^2`` over everybody; outfit is the same with ``y^2 / w``. Both are 1
on average when the model holds, and an item's infit is the mean of its categories', weighted by
what is expected.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from discreet.errors import FitWarning
from discreet.items.residuals import Prepared, ResidualChunk, prepare
from discreet.models.item_parameters import category_totals, known_difficulties
from discreet.persons.large import is_many, sum_many
from discreet.persons.scoring import PersonScores
from discreet.results.limits import FIT_BOUND
from discreet.results.thresholds import category_chances, count_item_steps, slope_terms
from discreet.tables.reading import ReadingWords
from discreet.tabular import Tabular, list_field_columns
from discreet.types import FloatArray, Int64Array, ScoreMethod

if TYPE_CHECKING:
    from discreet.items.residuals import Prepared, ResidualChunk

MEASURED = "measured"
MEAN_SQUARES = ("infit", "infit_t", "outfit", "outfit_t")
NO_SPREAD = 1e-12
SLOPES = ("point_measure", "point_measure_expected", "discrimination")
BOUNDED = ("outfit_bounded", "outfit_bounded_t", "outfit_without_one")


@dataclass(frozen=True, eq=False)
class MeanSquares:
    """Mean squares and standardised values; NaN where nothing was answered."""

    infit: FloatArray
    infit_t: FloatArray
    outfit: FloatArray
    outfit_t: FloatArray


@dataclass(frozen=True, eq=False)
class ItemFit(Tabular):
    """Fit of every item of the answers. Confidential.

    Attributes
    ----------
    answers
        Answers of persons with right and wrong answers; extreme scores fit by construction.
    infit, infit_t, outfit, outfit_t
        Mean squares and standardised values.
    outfit_bounded, outfit_bounded_t
        Outfit in which no answer counts for more than 9, three standard deviations squared.
    outfit_without_one
        Outfit without the most unexpected answer.
    point_measure, point_measure_expected
        Correlation of the answers with the abilities, and what it is when the model holds.
    discrimination
        How steeply the chance rises with ability, as a multiple of what the model says: the
        first step of a two-parameter model's slope from 1.
    status
        ``measured``; ``no_difficulty`` and ``no_answers``, without numbers; ``no_variance``:
        always right or always wrong among the persons used, without a correlation.

    Examples
    --------
    >>> import discreet
    >>> from discreet import analysis
    >>> answers = discreet.datasets.lsat()
    >>> estimate = discreet.fit(answers)
    >>> analysis.measure_fit(answers, estimate).items["Item1"].status
    'measured'
    """

    items: tuple[str, ...]
    answers: Int64Array
    infit: FloatArray
    infit_t: FloatArray
    outfit: FloatArray
    outfit_t: FloatArray
    point_measure: FloatArray
    point_measure_expected: FloatArray
    discrimination: FloatArray
    status: tuple[str, ...]
    # Results saved by version 0.2.0 do not hold these; NaN then.
    outfit_bounded: FloatArray = field(default_factory=lambda: np.empty(0))
    outfit_bounded_t: FloatArray = field(default_factory=lambda: np.empty(0))
    outfit_without_one: FloatArray = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        for name in BOUNDED:
            if getattr(self, name).size == 0:
                object.__setattr__(self, name, np.full(len(self.items), np.nan))

    def to_dict(self) -> dict[str, list[Any]]:
        """One list per column."""
        columns = list_field_columns(self, "answers", *MEAN_SQUARES, *BOUNDED, *SLOPES, "status")
        return {"item": list(self.items), **columns}


@dataclass(frozen=True, eq=False)
class PersonFit(Tabular):
    """Fit of every person, with NaN for those that ``scores.status`` calls extreme or empty.

    Examples
    --------
    >>> import discreet
    >>> from discreet import analysis
    >>> answers = discreet.datasets.lsat()
    >>> estimate = discreet.fit(answers)
    >>> len(analysis.measure_fit(answers, estimate).persons)
    1000
    """

    scores: PersonScores
    infit: FloatArray
    infit_t: FloatArray
    outfit: FloatArray
    outfit_t: FloatArray

    def to_dict(self) -> dict[str, list[Any]]:
        """One list per column; the columns of the scores first."""
        return {**self.scores.to_dict(), **list_field_columns(self, *MEAN_SQUARES)}


@dataclass(frozen=True)
class Reliability(Tabular):
    """How far the differences between persons, or items, exceed their errors.

    ``reliability = (variance - mse) / variance`` and ``separation = sqrt(variance - mse) /
    sqrt(mse)``, from persons with right and wrong answers. A negative reliability means errors
    larger than the spread. NaN where there are fewer than two numbers, or no standard errors.

    Examples
    --------
    >>> from discreet import analysis
    >>> analysis.Reliability(variance=1.0, mse=0.2).reliability
    0.8
    """

    variance: float
    mse: float

    @property
    def reliability(self) -> float:
        return (self.variance - self.mse) / self.variance if self.variance > 0 else float("nan")

    @property
    def separation(self) -> float:
        if not self.mse > 0:
            return float("nan")
        return float(np.sqrt(max(self.variance - self.mse, 0.0) / self.mse))

    def to_dict(self) -> dict[str, float]:
        """Variance, mean square error, reliability and separation."""
        derived = {"reliability": self.reliability, "separation": self.separation}
        return {"variance": self.variance, "mse": self.mse, **derived}


@dataclass(frozen=True, eq=False)
class FitStatistics(Tabular):
    """Fit of items and persons, and the reliability of both. Confidential.

    ``categories`` is there where some item has more than one step.

    Examples
    --------
    >>> import discreet
    >>> from discreet import analysis
    >>> answers = discreet.datasets.lsat()
    >>> estimate = discreet.fit(answers)
    >>> fit = analysis.measure_fit(answers, estimate)
    >>> round(fit.person_reliability.reliability, 2)
    -0.66
    """

    items: ItemFit
    persons: PersonFit
    person_reliability: Reliability
    item_reliability: Reliability
    warnings: tuple[FitWarning, ...] = ()
    categories: CategoryFit | None = None

    def to_dict(self) -> dict[str, list[Any]]:
        """Reliability of persons and of items, one row each; items and persons have their own."""
        rows = [self.person_reliability.to_dict(), self.item_reliability.to_dict()]
        numbers = {name: [row[name] for row in rows] for name in rows[0]}
        return {"of": ["persons", "items"], **numbers}


def measure_fit(
    responses: Any, calibration: Any, *, method: ScoreMethod = "ml", **reading: Unpack[ReadingWords]
) -> FitStatistics:
    """Measure how well items and persons fit the model. Confidential.

    Parameters
    ----------
    responses, calibration, reading
        As for :func:`discreet.score`.
    method
        How abilities are estimated: ``"ml"`` (as other programs do), ``"warm"`` or
        ``"posterior"``. Persons with everything right or wrong are left out.

    Examples
    --------
    >>> import discreet
    >>> answers = discreet.datasets.lsat()
    >>> fit = measure_fit(answers, discreet.fit(answers, method="conditional"))
    >>> fit.items.infit.round(3).tolist()
    [0.828, 0.968, 0.973, 0.954, 0.895]
    """
    prepared = prepare(responses, calibration, method, reading)
    sums, persons = _add_up(prepared)
    used = prepared.used
    return FitStatistics(
        items=_spread_items(prepared, sums),
        persons=PersonFit(prepared.scores, **vars(persons)),
        person_reliability=compare_spread(prepared.scores.ability[used], prepared.scores.se[used]),
        item_reliability=_item_reliability(calibration),
        warnings=prepared.scores.warnings,
        categories=describe_categories(prepared, sums["categories"], calibration),
    )


@dataclass(eq=False)
class _Sums:
    """Running sums over one axis of the residuals."""

    count: FloatArray
    squared: FloatArray
    standardised: FloatArray
    variance: FloatArray
    kurtosis: FloatArray
    excess: FloatArray

    @classmethod
    def of(cls, chunk: ResidualChunk, axis: int) -> _Sums:
        w, y2 = chunk.variance, chunk.residual**2
        answered = chunk.answered
        ratio = chunk.squares()
        kurtosis = np.divide(chunk.fourth, w * w, out=np.zeros_like(w), where=answered)
        excess = np.where(answered, chunk.fourth - w * w, 0.0)
        parts = (answered.astype(np.float64), y2, ratio, w, kurtosis, excess)
        return cls(*(part.sum(axis=axis) for part in parts))

    def add(self, sums: _Sums) -> None:
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(sums, name))

    def mean_squares(self) -> MeanSquares:
        with np.errstate(invalid="ignore", divide="ignore"):
            outfit, infit = self.standardised / self.count, self.squared / self.variance
            outfit_sd = np.sqrt(self.kurtosis / self.count**2 - 1 / self.count)
            infit_sd = np.sqrt(self.excess) / self.variance
            return MeanSquares(
                infit, _standardise(infit, infit_sd), outfit, _standardise(outfit, outfit_sd)
            )


@dataclass(eq=False)
class _BoundedSums:
    """Sums over persons of bounded squares: observed, mean and variance by the model.

    And the largest square, which is not bounded.
    """

    observed: FloatArray
    expected: FloatArray
    variance: FloatArray
    largest: FloatArray

    def add(self, chunk: ResidualChunk, ability: FloatArray, thresholds: FloatArray) -> None:
        answered, square = chunk.answered[..., None], chunk.squares()
        chance = np.where(answered, category_chances(ability, thresholds), 0.0)
        category = np.arange(chance.shape[-1])
        mean = (chunk.code - chunk.residual)[..., None]
        scale = np.where(chunk.answered, chunk.variance, 1.0)[..., None]
        bounded = np.minimum((category - mean) ** 2 / scale, FIT_BOUND)
        expected = (chance * bounded).sum(axis=-1)
        variance = (chance * bounded**2).sum(axis=-1) - expected**2
        self.observed = self.observed + np.minimum(square, FIT_BOUND).sum(axis=0)
        self.expected = self.expected + expected.sum(axis=0)
        self.variance = self.variance + variance.sum(axis=0)
        self.largest = np.maximum(self.largest, square.max(axis=0))

    def outfit(self) -> tuple[FloatArray, FloatArray]:
        """Return bounded outfits and their standardised values."""
        with np.errstate(invalid="ignore", divide="ignore"):
            outfit = self.observed / self.expected
            return outfit, _standardise(outfit, np.sqrt(self.variance) / self.expected)


@dataclass(eq=False)
class _Moments:
    """Running sums over persons of abilities, answers and chances, per item."""

    ability: FloatArray
    ability_squared: FloatArray
    right: FloatArray
    right_squared: FloatArray
    ability_right: FloatArray
    chance: FloatArray
    chance_squared: FloatArray
    ability_chance: FloatArray
    pull: FloatArray
    curvature: FloatArray

    def add(self, chunk: ResidualChunk, ability: FloatArray, centre: float, b: FloatArray) -> None:
        answered = chunk.answered
        theta = (ability - centre)[:, None] * answered
        right = np.where(answered, chunk.code, 0).astype(np.float64)
        chance = right - chunk.residual
        pull, curvature = slope_terms(ability, b, chunk.code)
        parts = (theta, theta**2, right, right**2, theta * right, chance, chance**2,
                 theta * chance, pull * answered, curvature * answered)  # fmt: skip
        for name, part in zip(self.__dataclass_fields__, parts, strict=True):
            setattr(self, name, getattr(self, name) + part.sum(axis=0))

    def seen(self, count: FloatArray) -> FloatArray:
        """Return the sum of squares of the answers around their mean."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.right_squared - self.right**2 / count)

    def slopes(self, count: FloatArray, variance: FloatArray) -> dict[str, FloatArray]:
        """Return how strongly answers go with ability: observed, expected, and as a slope."""
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = self.ability_squared - self.ability**2 / count
            observed = self.seen(count)
            expected = self.chance_squared - self.chance**2 / count + variance
            together = self.ability_right - self.ability * self.right / count
            foreseen = self.ability_chance - self.ability * self.chance / count
            columns = (
                _correlate(together, spread * observed),
                _correlate(foreseen, spread * expected),
                np.where(observed > 0, 1 + self.pull / self.curvature, np.nan),
            )
        return dict(zip(SLOPES, columns, strict=True))


def _correlate(covariance: FloatArray, spread: FloatArray) -> FloatArray:
    # Rounding leaves a trace of spread where all abilities are equal.
    return np.where(spread > NO_SPREAD, covariance / np.sqrt(spread), np.nan)


def _standardise(mean_square: FloatArray, sd: FloatArray) -> FloatArray:
    """Turn a mean square into a nearly standard normal value (Wilson and Hilferty 1931)."""
    return np.asarray((np.cbrt(mean_square) - 1) * (3 / sd) + sd / 3)


def _add_up(prepared: Prepared) -> tuple[dict[str, Any], MeanSquares]:
    """Make one pass: mean squares of items and persons, and the correlation with ability."""
    used, b = prepared.used, prepared.thresholds
    ability = np.where(used, prepared.scores.ability, 0.0)
    centre = float(ability[used].mean())
    if is_many(prepared.responses.store, b):
        return _sum_many(prepared, ability, centre)
    items = _Sums(*np.zeros((6, len(b))))
    persons: list[MeanSquares] = []
    moments = _Moments(*np.zeros((10, len(b))))
    bounded = _BoundedSums(*np.zeros((4, len(b))))
    categories = CategorySums.start(b)
    for chunk in prepared.chunks():
        items.add(_Sums.of(chunk, 0))
        persons.append(_Sums.of(chunk, 1).mean_squares())
        moments.add(chunk, ability[chunk.persons], centre, b)
        bounded.add(chunk, ability[chunk.persons], b)
        if categories is not None:
            categories.add(chunk, ability[chunk.persons], b)
    joined = [np.concatenate([getattr(part, name) for part in persons]) for name in MEAN_SQUARES]
    sums = {"sums": items, "moments": moments, "categories": categories, "bounded": bounded}
    return sums, MeanSquares(*joined)


def _sum_many(
    prepared: Prepared, ability: FloatArray, centre: float
) -> tuple[dict[str, Any], MeanSquares]:
    """Do the same for very many right and wrong answers."""
    b, used = prepared.thresholds[:, 0], prepared.used
    by_item, by_person = sum_many(prepared.responses.store, b, ability, used, centre)
    # A right answer is its own square.
    moments = _Moments(*np.insert(by_item[6:15], 3, by_item[8], axis=0))
    parts, bounded = _Sums(*by_item[:6]), _BoundedSums(*by_item[15:])
    sums = {"sums": parts, "moments": moments, "categories": None, "bounded": bounded}
    return sums, _Sums(*by_person).mean_squares()


def _spread_items(prepared: Prepared, sums: dict[str, Any]) -> ItemFit:
    """Put the numbers at the items' places among all items of the answers, with a status."""
    names = prepared.source_items
    column_of = {name: column for column, name in enumerate(names)}
    columns = np.array([column_of[name] for name in prepared.scores.items])
    count = sums["sums"].count
    constant = ~(sums["moments"].seen(count) > 0)
    slopes = sums["moments"].slopes(count, sums["sums"].variance)
    status = np.full(len(names), "no_difficulty", dtype=object)
    status[columns] = MEASURED
    status[columns[constant]] = "no_variance"
    status[columns[count == 0]] = "no_answers"
    squares = sums["sums"].mean_squares()
    bounded, bounded_t = sums["bounded"].outfit()
    with np.errstate(invalid="ignore", divide="ignore"):
        without_largest = (sums["sums"].standardised - sums["bounded"].largest) / (count - 1)
    answers = np.zeros(len(names), dtype=np.int64)
    answers[columns] = count.astype(np.int64)

    def spread_out(value: FloatArray) -> FloatArray:
        column = np.full(len(names), np.nan)
        column[columns] = value
        return column

    return ItemFit(
        items=names,
        answers=answers,
        **{name: spread_out(getattr(squares, name)) for name in MEAN_SQUARES},
        outfit_bounded=spread_out(bounded),
        outfit_bounded_t=spread_out(bounded_t),
        outfit_without_one=spread_out(without_largest),
        **{name: spread_out(value) for name, value in slopes.items()},
        status=tuple(status),
    )


def compare_spread(value: FloatArray, se: FloatArray) -> Reliability:
    """Hold the spread of some numbers against their standard errors."""
    if len(value) < 2:
        return Reliability(float("nan"), float("nan"))
    return Reliability(float(np.var(value, ddof=1)), float(np.mean(se**2)))


def _item_reliability(calibration: Any) -> Reliability:
    """From the standard errors of the calibration; NaN where it has none."""
    source = getattr(calibration, "estimate", calibration)
    _, b = known_difficulties(calibration)
    se = getattr(source, "se", None)
    if se is None:
        return Reliability(float(np.var(b, ddof=1)) if len(b) > 1 else float("nan"), float("nan"))
    calibrated = np.isfinite(np.asarray(source.difficulty))
    return compare_spread(b, np.asarray(se)[calibrated])


@dataclass(frozen=True, eq=False)
class CategoryFit(Tabular):
    """Every category of every item, the lowest first. Confidential.

    Attributes
    ----------
    item, category
        The category as the data call it.
    answers, share
        All answers in it, and their share of all answers to the item.
    answers_without_extremes
        Those of persons with neither the lowest nor the highest score. The columns that follow
        are about them.
    mean_ability, expected_ability
        Of these persons, and what it is when the model holds. It should rise from category to
        category.
    infit, outfit
        Mean squares; 1 is expected.
    threshold, se
        Of the step into the category; NaN for the lowest.

    Examples
    --------
    >>> import discreet
    >>> from discreet import analysis
    >>> answers = discreet.datasets.wellbeing()
    >>> fit = analysis.measure_fit(answers, discreet.fit(answers))
    >>> len(fit.categories) > len(answers.items)
    True
    """

    item: tuple[str, ...]
    category: Int64Array
    answers: Int64Array
    share: FloatArray
    mean_ability: FloatArray
    expected_ability: FloatArray
    infit: FloatArray
    outfit: FloatArray
    threshold: FloatArray
    se: FloatArray
    answers_without_extremes: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))

    def __post_init__(self) -> None:
        if self.answers_without_extremes.size == 0:
            # A result saved by version 0.2.0 counts these alone.
            object.__setattr__(self, "answers_without_extremes", self.answers)

    def to_dict(self) -> dict[str, list[Any]]:
        """One list per column."""
        return {"item": list(self.item), **list_field_columns(self, *COLUMNS)}


COLUMNS = (
    *("category", "answers", "share", "answers_without_extremes", "mean_ability"),
    *("expected_ability", "infit", "outfit", "threshold", "se"),
)


@dataclass(eq=False)
class CategorySums:
    """Running sums over persons, ``[item, category]``: observed, and expected by the model."""

    answers: FloatArray
    ability: FloatArray
    squared: FloatArray
    standardised: FloatArray
    expected: FloatArray
    expected_ability: FloatArray
    expected_squared: FloatArray
    expected_standardised: FloatArray

    @classmethod
    def start(cls, thresholds: FloatArray) -> CategorySums | None:
        """Return empty sums; None where all answers are right or wrong."""
        items, steps = thresholds.shape
        return None if steps == 1 else cls(*np.zeros((8, items, steps + 1)))

    def add(self, chunk: ResidualChunk, ability: FloatArray, thresholds: FloatArray) -> None:
        """Add the persons of a chunk."""
        category = np.arange(self.answers.shape[1])
        answered = chunk.answered[..., None]
        share = np.where(answered, category_chances(ability, thresholds), 0.0)
        observed = (chunk.code[..., None] == category) & answered
        mean = share @ category.astype(np.float64)
        squared = (category - mean[..., None]) ** 2
        scale = np.where(chunk.answered, chunk.variance, 1.0)[..., None]
        theta = ability[:, None, None]
        for name, weight in (("", observed), ("expected_", share)):
            parts = (weight, weight * theta, weight * squared, weight * squared / scale)
            names = ("answers", "ability", "squared", "standardised")
            for sum_name, part in zip(names, parts, strict=True):
                key = "expected" if name and sum_name == "answers" else name + sum_name
                setattr(self, key, getattr(self, key) + part.sum(axis=0))


def describe_categories(
    prepared: Prepared, sums: CategorySums | None, calibration: Any
) -> CategoryFit | None:
    """Return the categories of all items that have numbers; None of right and wrong answers."""
    if sums is None:
        return None
    steps = count_item_steps(prepared.thresholds)
    item, category = np.nonzero(np.arange(steps.max() + 1) <= steps[:, None])
    cells: CategorySums = CategorySums(*(value[item, category] for value in vars(sums).values()))
    totals = category_totals(prepared.responses.store)
    codes, lowest = prepared.item_parameters.kept, prepared.item_parameters.lowest
    with np.errstate(invalid="ignore", divide="ignore"):
        return CategoryFit(
            item=tuple(prepared.item_parameters.items[i] for i in item),
            category=np.array([codes[i][k] for i, k in zip(item, category, strict=True)]) + lowest,
            answers=totals[item, category],
            share=totals[item, category] / totals.sum(axis=1)[item],
            answers_without_extremes=cells.answers.astype(np.int64),
            mean_ability=cells.ability / cells.answers,
            expected_ability=cells.expected_ability / cells.expected,
            infit=cells.squared / cells.expected_squared,
            outfit=cells.standardised / cells.expected_standardised,
            threshold=_into(prepared.thresholds)[item, category],
            se=_into(_errors(prepared, calibration))[item, category],
        )


def _into(step: FloatArray) -> FloatArray:
    """Return values of steps at the category that they lead to."""
    return np.column_stack([np.full(len(step), np.nan), step])


def _errors(prepared: Prepared, calibration: Any) -> FloatArray:
    """Return standard errors of the thresholds; NaN where the calibration has none."""
    source = getattr(calibration, "estimate", calibration)
    ladder = getattr(source, "ladder", None)
    if ladder is None:
        return np.full(prepared.thresholds.shape, np.nan)
    row_of = {name: row for row, name in enumerate(source.items)}
    return np.asarray(ladder.se[[row_of[name] for name in prepared.item_parameters.items]])
