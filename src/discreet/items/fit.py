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
that is about the number of persons. So there is the outfit without the most unexpected answer.

Of those in category k of an item with steps, infit is the sum of ``y^2`` over what the model
expects of it, ``sum P_k (k - E)^2`` over everybody; outfit is the same with ``y^2 / w``. Both are 1
on average when the model holds, and an item's infit is the mean of its categories', weighted by
what is expected.

With sampling weights every sum over persons is a sum of weights, so that mean squares, correlations
and slopes are those of the population; persons with the weight zero are left out. The standardised
values then take the variance of a mean square from the sampling design, by linearisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from discreet.answers.responses import Responses
from discreet.choices import ScoreMethod
from discreet.errors import FitWarning
from discreet.items.given_totals import (
    UnexpectedAnswers,
    divide_sums,
    leave_one_out,
    square_given_totals,
)
from discreet.items.residuals import Prepared, ResidualChunk, add_persons, prepare
from discreet.models.categories import category_totals, weigh_categories
from discreet.models.item_parameters import known_difficulties
from discreet.persons.large import is_many, sum_many
from discreet.persons.scoring import PersonScores
from discreet.results.calibrated import Calibration, find_source
from discreet.results.chances import category_chances, count_item_steps, slope_terms
from discreet.schema import Along
from discreet.tabular import Columns, Tabular, find_rows, list_field_columns
from discreet.types import FloatArray, Int64Array

MEASURED = "measured"
MEAN_SQUARES = ("infit", "infit_t", "outfit", "outfit_t")
CONDITIONAL = ("conditional_infit", "conditional_outfit", "outfit_without_one")
NO_SPREAD = 1e-12
SLOPES = ("point_measure", "point_measure_expected", "discrimination")
PerItem = Annotated[FloatArray, Along("items")]


@dataclass(frozen=True, eq=False)
class ItemFit(Tabular):
    """Fit of every item of the answers. Confidential.

    Attributes
    ----------
    answers
        Answers of persons with right and wrong answers; extreme scores fit by construction.
    infit, infit_t, outfit, outfit_t
        Mean squares and standardised values at estimated abilities, as other programs have them.
        With L answers a person about ``1 - 1 / L`` is expected.
    conditional_infit, conditional_outfit
        Mean squares given the total scores, which need no abilities: 1 is expected at any length.
    outfit_without_one
        Conditional outfit without the most unexpected answer.
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
    answers: Annotated[Int64Array, Along("items")]
    infit: PerItem
    infit_t: PerItem
    outfit: PerItem
    outfit_t: PerItem
    point_measure: PerItem
    point_measure_expected: PerItem
    discrimination: PerItem
    status: Annotated[tuple[str, ...], Along("items")]
    outfit_without_one: PerItem
    conditional_infit: PerItem
    conditional_outfit: PerItem

    def align(self, items: Sequence[str]) -> ItemFit:
        """Return the fit of these items in their order; those without answers have no numbers."""
        rows = find_rows(self.items, items)
        numbers = {
            name: np.append(getattr(self, name), np.nan)[rows]
            for name in (*CONDITIONAL, *MEAN_SQUARES, *SLOPES)
        }
        status = (*self.status, "no_answers")
        return ItemFit(
            items=tuple(items),
            answers=np.append(self.answers, 0)[rows],
            status=tuple(status[row] for row in rows),
            **numbers,
        )

    def to_dict(self) -> Columns:
        """One list per column."""
        numbers = (*CONDITIONAL, *MEAN_SQUARES, *SLOPES)
        columns = list_field_columns(self, "answers", *numbers, "status")
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
    conditional_infit: FloatArray
    conditional_outfit: FloatArray

    def to_dict(self) -> Columns:
        """One list per column; the columns of the scores first."""
        names = (*CONDITIONAL[:2], *MEAN_SQUARES)
        return {**self.scores.to_dict(), **list_field_columns(self, *names)}


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

    ``infit``, ``outfit``, ``conditional_infit`` and ``conditional_outfit`` are those of the items.
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
    unexpected: UnexpectedAnswers
    warnings: tuple[FitWarning, ...] = ()
    categories: CategoryFit | None = None

    @property
    def infit(self) -> FloatArray:
        return self.items.infit

    @property
    def outfit(self) -> FloatArray:
        return self.items.outfit

    @property
    def conditional_infit(self) -> FloatArray:
        return self.items.conditional_infit

    @property
    def conditional_outfit(self) -> FloatArray:
        return self.items.conditional_outfit

    def to_dict(self) -> Columns:
        """Reliability of persons and of items, one row each; items and persons have their own."""
        rows = [self.person_reliability.to_dict(), self.item_reliability.to_dict()]
        numbers = {name: [row[name] for row in rows] for name in rows[0]}
        return {"of": ["persons", "items"], **numbers}


def measure_fit(
    responses: Responses, calibration: Calibration, *, method: ScoreMethod = "ml"
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
    prepared = prepare(responses, calibration, method)
    sums, persons = _add_up(prepared)
    given = square_given_totals(prepared)
    given_totals = *divide_sums(given.by_item), leave_one_out(given.by_item)
    used = prepared.used
    ability, se = prepared.scores.ability[used], prepared.scores.se[used]
    return FitStatistics(
        items=_spread_items(prepared, sums, given_totals),
        persons=PersonFit(prepared.scores, *[*persons, *divide_sums(given.by_person)]),
        person_reliability=compare_spread(ability, se, prepared.weigh(used)),
        item_reliability=_item_reliability(calibration),
        unexpected=given.unexpected,
        warnings=prepared.scores.warnings,
        categories=describe_categories(prepared, sums, calibration),
    )


#: Sums over the answers of an item or of a person, one row each.
Sums = dict[str, FloatArray]
SQUARES = ("count", "squared", "standardised", "variance", "kurtosis", "excess")
MOMENTS = (
    *("ability", "ability_squared", "right", "right_squared", "ability_right"),
    *("chance", "chance_squared", "ability_chance", "pull", "curvature"),
)


def _list_squares(chunk: ResidualChunk) -> Sums:
    w, answered = chunk.variance, chunk.answered
    kurtosis = np.divide(chunk.fourth, w * w, out=np.zeros_like(w), where=answered)
    excess = np.where(answered, chunk.fourth - w * w, 0.0)
    count = answered.astype(np.float64)
    parts = (count, chunk.residual**2, chunk.squares(), w, kurtosis, excess)
    return dict(zip(SQUARES, parts, strict=True))


def _list_moments(
    chunk: ResidualChunk, ability: FloatArray, centre: float, thresholds: FloatArray
) -> Sums:
    """Abilities, answers and chances, and their products."""
    answered = chunk.answered
    theta = (ability - centre)[:, None] * answered
    right = np.where(answered, chunk.code, 0).astype(np.float64)
    chance = right - chunk.residual
    pull, curvature = slope_terms(ability, thresholds, chunk.code)
    parts = (theta, theta**2, right, right**2, theta * right, chance, chance**2,
             theta * chance, pull * answered, curvature * answered)  # fmt: skip
    return dict(zip(MOMENTS, parts, strict=True))


def _list_categories(chunk: ResidualChunk, ability: FloatArray, thresholds: FloatArray) -> Sums:
    """Of every category, ``[person, item, category]``: observed, and expected by the model."""
    category = np.arange(thresholds.shape[1] + 1)
    answered = chunk.answered[..., None]
    share = np.where(answered, category_chances(ability, thresholds), 0.0)
    observed = (chunk.code[..., None] == category) & answered
    squared = (category - (share @ category.astype(np.float64))[..., None]) ** 2
    scale = np.where(chunk.answered, chunk.variance, 1.0)[..., None]
    measures = {
        "answers": 1.0,
        "ability": ability[:, None, None],
        "squared": squared,
        "standardised": squared / scale,
    }
    return {
        f"{kind}_{name}": weight * measure
        for kind, weight in (("category", observed), ("expected", share))
        for name, measure in measures.items()
    }


def _add_up(prepared: Prepared) -> tuple[Sums, FloatArray]:
    """Make one pass: sums of items, ``[item]`` or ``[item, category]``; mean squares of persons."""
    used, b = prepared.used, prepared.thresholds
    ability = np.where(used, prepared.scores.ability, 0.0)
    centre = float(ability[used].mean())
    if prepared.sample is None and is_many(prepared.responses.store, b):
        return _sum_many(prepared, ability, centre)
    sums: Sums = {}
    persons = []
    for chunk in prepared.chunks():
        theta, weight = ability[chunk.persons], prepared.weigh(chunk.persons)
        parts = _list_squares(chunk)
        persons.append(_find_mean_squares({name: part.sum(1) for name, part in parts.items()}))
        parts |= _list_moments(chunk, theta, centre, b)
        if b.shape[1] > 1:
            parts |= _list_categories(chunk, theta, b)
        for name, part in parts.items():
            sums[name] = sums.get(name, 0.0) + add_persons(part, weight)
    return sums, np.concatenate(persons, axis=1)


def _sum_many(prepared: Prepared, ability: FloatArray, centre: float) -> tuple[Sums, FloatArray]:
    """Do the same for very many right and wrong answers."""
    b, used = prepared.thresholds[:, 0], prepared.used
    by_item, by_person = sum_many(prepared.responses.store, b, ability, used, centre)
    # A right answer is its own square.
    rows = np.insert(by_item, 9, by_item[8], axis=0)
    sums = dict(zip((*SQUARES, *MOMENTS), rows, strict=True))
    return sums, _find_mean_squares(dict(zip(SQUARES, by_person, strict=True)))


def _find_mean_squares(sums: Sums, errors: Sums | None = None) -> FloatArray:
    """Return infit, outfit and their standardised values, in the order of ``MEAN_SQUARES``.

    ``errors`` are standard deviations of the sampling design; without them they are the model's.
    """
    count, variance = sums["count"], sums["variance"]
    with np.errstate(invalid="ignore", divide="ignore"):
        outfit, infit = sums["standardised"] / count, sums["squared"] / variance
        if errors is None:
            errors = {
                "infit": np.sqrt(sums["excess"]) / variance,
                "outfit": np.sqrt(sums["kurtosis"] / count**2 - 1 / count),
            }
        infit_t, outfit_t = (
            _standardise(value, errors[name])
            for name, value in (("infit", infit), ("outfit", outfit))
        )
        return np.stack([infit, infit_t, outfit, outfit_t])


def _standardise(mean_square: FloatArray, sd: FloatArray) -> FloatArray:
    """Turn a mean square into a nearly standard normal value (Wilson and Hilferty 1931)."""
    return np.asarray((np.cbrt(mean_square) - 1) * (3 / sd) + sd / 3)


def _find_design_errors(prepared: Prepared, sums: Sums) -> Sums | None:
    """Return standard deviations of mean squares under the sampling design; None without one.

    Each is a ratio of sums over persons, so that a person moves it by its weight times what its
    own part of the upper sum is more than the ratio times its part of the lower.
    """
    if prepared.sample is None:
        return None
    ratios = {"infit": ("squared", "variance"), "outfit": ("standardised", "count")}
    moves: dict[str, list[FloatArray]] = {name: [] for name in ratios}
    for chunk in prepared.chunks():
        parts = _list_squares(chunk)
        weight = prepared.sample.weight[chunk.persons, None]
        for name, (above, below) in ratios.items():
            with np.errstate(invalid="ignore", divide="ignore"):
                own = parts[above] - parts[below] * (sums[above] / sums[below])
                moves[name].append(weight * own / sums[below])
    deviations = {
        name: prepared.sample.deviate(np.nan_to_num(np.concatenate(rows)))
        for name, rows in moves.items()
    }
    return {name: np.sqrt((rows**2).sum(axis=0)) for name, rows in deviations.items()}


def _find_slopes(sums: Sums, observed: FloatArray) -> Sums:
    """Return how strongly answers go with ability: observed, expected, and as a slope.

    ``observed`` is the sum of squares of the answers around their mean.
    """
    count, ability, chance = sums["count"], sums["ability"], sums["chance"]
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = sums["ability_squared"] - ability**2 / count
        expected = sums["chance_squared"] - chance**2 / count + sums["variance"]
        together = sums["ability_right"] - ability * sums["right"] / count
        foreseen = sums["ability_chance"] - ability * chance / count
        columns = (
            _correlate(together, spread * observed),
            _correlate(foreseen, spread * expected),
            np.where(observed > 0, 1 + sums["pull"] / sums["curvature"], np.nan),
        )
    return dict(zip(SLOPES, columns, strict=True))


def _correlate(covariance: FloatArray, spread: FloatArray) -> FloatArray:
    # Rounding leaves a trace of spread where all abilities are equal.
    return np.where(spread > NO_SPREAD, covariance / np.sqrt(spread), np.nan)


def _spread_items(prepared: Prepared, sums: Sums, given_totals: Sequence[FloatArray]) -> ItemFit:
    """Put the numbers at the items' places among all items of the answers, with a status."""
    names = prepared.source_items
    column_of = {name: column for column, name in enumerate(names)}
    columns = np.array([column_of[name] for name in prepared.scores.items])
    count = sums["count"]
    errors = _find_design_errors(prepared, sums)
    values = dict(zip(MEAN_SQUARES, _find_mean_squares(sums, errors), strict=True))
    values |= dict(zip(CONDITIONAL, given_totals, strict=True))
    with np.errstate(invalid="ignore", divide="ignore"):
        observed = sums["right_squared"] - sums["right"] ** 2 / count
    values |= _find_slopes(sums, observed)
    status = np.full(len(names), "no_difficulty", dtype=object)
    status[columns] = MEASURED
    status[columns[~(observed > 0)]] = "no_variance"
    status[columns[count == 0]] = "no_answers"
    answers = np.zeros(len(names), dtype=np.int64)
    answers[columns] = prepared.count_used().sum(axis=1) if prepared.sample else count
    spread_out = np.full((len(values), len(names)), np.nan)
    spread_out[:, columns] = list(values.values())
    named = dict(zip(values, spread_out, strict=True))
    return ItemFit(items=names, answers=answers, **named, status=tuple(status))


def compare_spread(
    value: FloatArray, se: FloatArray, weight: FloatArray | None = None
) -> Reliability:
    """Hold the spread of some numbers against their standard errors.

    With weights both are those of the population; the correction of the variance is that of the
    number of persons.
    """
    n = len(value)
    if n < 2:
        return Reliability(float("nan"), float("nan"))
    if weight is None:
        return Reliability(float(np.var(value, ddof=1)), float(np.mean(se**2)))
    mean = np.average(value, weights=weight)
    variance = np.average((value - mean) ** 2, weights=weight) * n / (n - 1)
    return Reliability(float(variance), float(np.average(se**2, weights=weight)))


def _item_reliability(calibration: Calibration) -> Reliability:
    """From the standard errors of the calibration; NaN where it has none."""
    source = find_source(calibration)
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
    answers_without_extremes: Int64Array

    def to_dict(self) -> Columns:
        """One list per column."""
        return {"item": list(self.item), **list_field_columns(self, *COLUMNS)}


COLUMNS = (
    *("category", "answers", "share", "answers_without_extremes", "mean_ability"),
    *("expected_ability", "infit", "outfit", "threshold", "se"),
)


def describe_categories(
    prepared: Prepared, sums: Sums, calibration: Calibration
) -> CategoryFit | None:
    """Return the categories of all items that have numbers; None of right and wrong answers."""
    if prepared.thresholds.shape[1] == 1:
        return None
    steps = count_item_steps(prepared.thresholds)
    item, category = np.nonzero(np.arange(steps.max() + 1) <= steps[:, None])
    cells = {name: value[item, category] for name, value in sums.items() if value.ndim == 2}
    totals, store = category_totals(prepared.responses.store), prepared.responses.store
    weighted = weigh_categories(store, prepared.weigh(slice(None)))
    codes, lowest = prepared.item_parameters.kept, prepared.item_parameters.lowest
    with np.errstate(invalid="ignore", divide="ignore"):
        return CategoryFit(
            item=tuple(prepared.item_parameters.items[i] for i in item),
            category=np.array([codes[i][k] for i, k in zip(item, category, strict=True)]) + lowest,
            answers=totals[item, category],
            share=(weighted / weighted.sum(axis=1, keepdims=True))[item, category],
            answers_without_extremes=prepared.count_used()[item, category],
            mean_ability=cells["category_ability"] / cells["category_answers"],
            expected_ability=cells["expected_ability"] / cells["expected_answers"],
            infit=cells["category_squared"] / cells["expected_squared"],
            outfit=cells["category_standardised"] / cells["expected_standardised"],
            threshold=_into(prepared.thresholds)[item, category],
            se=_into(_errors(prepared, calibration))[item, category],
        )


def _into(step: FloatArray) -> FloatArray:
    """Return values of steps at the category that they lead to."""
    return np.column_stack([np.full(len(step), np.nan), step])


def _errors(prepared: Prepared, calibration: Calibration) -> FloatArray:
    """Return standard errors of the thresholds; NaN where the calibration has none."""
    source = find_source(calibration)
    ladder = getattr(source, "ladder", None)
    if ladder is None:
        return np.full(prepared.thresholds.shape, np.nan)
    row_of = {name: row for row, name in enumerate(source.items)}
    return np.asarray(ladder.se[[row_of[name] for name in prepared.item_parameters.items]])
