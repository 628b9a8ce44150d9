"""Scores on all items of a calibration, predicted from answers to some of them.

In: a calibration and answers to a part of its items, chosen beforehand or by an adaptive session.
Out: the share that each person would have right of all items, with an interval; and items that can
stand for all. About single persons, and so confidential.

The interval adds up what is not known: the ability, the luck in the items that were not answered,
and the errors of the difficulties. With answers of past persons it also widens by how far the model
missed their scores, predicted from the same items.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.answers.responses import Responses
from discreet.errors import BadUsage, FitWarning, WarningKind
from discreet.models.item_parameters import KnownItems, known_thresholds
from discreet.persons.measures import abilities
from discreet.persons.scoring import score
from discreet.results.calibrated import Calibration, find_source
from discreet.results.chances import count_item_steps, score_moments
from discreet.results.estimate import two_sided_quantile
from discreet.scales.bank import Bank, draw_to_mean
from discreet.tabular import Columns, Tabular, list_field_columns
from discreet.types import BoolArray, FloatArray, Int8Array, Int64Array, Texts

#: Persons times items worked on at a time: 8 MB of float64.
CHUNK_CELLS = 1 << 20
#: A share of the answers that are still to come is kept this far from 0 and 1, in answers.
NEAREST = 0.25

NO_ERRORS = (
    "the calibration has no standard errors, so that the intervals take its difficulties as exact "
    "and are too short where few persons were calibrated; give what fit returned"
)


@dataclass(frozen=True, eq=False)
class PredictedScores(Tabular):
    """The score of each person on all items, from answers to some of them. Confidential.

    Attributes
    ----------
    persons
        Ids, in the order of the answers.
    score, se, lower, upper
        Predicted share of all points (of right/wrong items: share right), its standard error and
        the interval of ``level``. NaN for persons without an answer.
    answered
        Items that the person answered, of ``n_items``.
    misfit
        Mean squared error of the predictions for past persons from the same items, as a multiple
        of what the model expects; at least 1, and 1 without answers of past persons.
    warnings
        What was ignored, and where standard errors are too small.

    Examples
    --------
    >>> import discreet
    >>> found = discreet.predict_scores([[1, 0, 1]], {"0": 0.0, "1": 0.5, "2": 1.0, "3": 0.5})
    >>> found.score.round(3).tolist(), found.answered.tolist(), found.n_items
    ([0.658], [3], 4)
    """

    persons: Texts
    score: FloatArray
    se: FloatArray
    lower: FloatArray
    upper: FloatArray
    answered: Int64Array
    misfit: FloatArray
    n_items: int
    level: float
    warnings: tuple[FitWarning, ...] = ()
    noun = "person"

    def to_dict(self) -> Columns:
        """One list per column: person, score, se, lower, upper, answered, misfit."""
        names = ("score", "se", "lower", "upper", "answered", "misfit")
        return {"person": list(self.persons), **list_field_columns(self, *names)}


@dataclass(frozen=True, eq=False)
class _ShrunkItems:
    """Items with difficulties drawn to their mean, and what is left of their errors.

    The error of a difficulty is ``reliability`` times that of the estimate, whose covariance this
    is (a vector where errors are independent), and an own part of variance ``own``.
    """

    known: KnownItems
    thresholds: FloatArray
    reliability: FloatArray
    own: FloatArray
    covariance: FloatArray

    def find_variance(self, gradient: FloatArray) -> FloatArray:
        """Return the variance of sums with these weights ``[person, item]`` of the difficulties."""
        moved = gradient * self.reliability
        if self.covariance.ndim == 1:
            return np.asarray(moved**2 @ self.covariance + gradient**2 @ self.own)
        return np.asarray(((moved @ self.covariance) * moved).sum(axis=1) + gradient**2 @ self.own)


def _shrink_items(calibration: Calibration) -> _ShrunkItems:
    known = known_thresholds(calibration.active() if isinstance(calibration, Bank) else calibration)
    se, location = np.nan_to_num(known.se), np.nanmean(known.thresholds, axis=1)
    drawn, reliability, spread = draw_to_mean(location, se)
    covariance = getattr(find_source(calibration), "covariance", None)
    is_whole = covariance is not None and len(covariance) == len(se)
    return _ShrunkItems(
        known,
        known.thresholds + (drawn - location)[:, None],
        reliability,
        (1.0 - reliability) ** 2 * spread,
        np.asarray(covariance) if is_whole else se**2,
    )


@dataclass(frozen=True, eq=False)
class _Forecast:
    """Points that persons have, points still expected, and the variances of their prediction.

    ``own`` is of the person: ability and luck; ``shared`` comes from the errors of the items.
    """

    points: FloatArray
    expected: FloatArray
    own: FloatArray
    shared: FloatArray


def _forecast(
    codes: Int8Array, seen: BoolArray, unseen: BoolArray, items: _ShrunkItems
) -> _Forecast:
    """Predict the points on unseen items from the answers to seen ones.

    With information ``I`` of the seen items and ``W`` of the unseen ones the ability's error has
    the variance ``1 / I`` and moves the prediction by ``W``; luck has the variance ``W``. A harder
    unseen item lowers the prediction by its own information; a harder seen one raises the ability.
    """
    ability = abilities(np.where(seen, codes, -1), items.thresholds).ability
    moments = score_moments(ability, items.thresholds)
    coming = np.where(unseen, moments.variance, 0.0)
    known = np.where(seen, moments.variance, 0.0)
    luck, information = coming.sum(axis=1), known.sum(axis=1)
    rate = luck / np.where(information > 0, information, np.nan)
    return _Forecast(
        points=np.where(seen, codes, 0).sum(axis=1).astype(np.float64),
        expected=np.where(unseen, moments.mean, 0.0).sum(axis=1),
        own=luck * rate + luck,
        shared=items.find_variance(known * rate[:, None] - coming),
    )


def predict_scores(
    responses: Responses,
    calibration: Calibration,
    *,
    past: Responses | None = None,
    level: float = 0.95,
) -> PredictedScores:
    """Predict the score of each person on all items of a calibration. Confidential.

    Parameters
    ----------
    responses
        Answers to some of the items, as for :func:`discreet.score`; or an adaptive session.
    calibration
        As for :func:`discreet.score`; its items with a difficulty are what "all" means (not those
        that everybody had right, or wrong). Difficulties are drawn to
        their mean as by :func:`discreet.adaptive.shrink`, since those of items that were chosen
        for their difficulty err. With ``fit(..., cluster=)`` the errors of the difficulties allow
        for persons who answer alike, such as the models of a family.
    past
        Answers of the persons of the calibration, or of others, to all items. Their own scores
        are predicted from the items that each new person answered. Where that misses by more than
        the model expects (items differ in slope, or ask for several abilities), intervals widen.
    level
        Of the intervals.
    reading
        ``person=``, ``item=``, ``response=`` and the other keywords of
        :func:`discreet.read_responses`.

    Notes
    -----
    Persons are taken to be from the population of the calibration only as far as the difficulties
    hold for them too: a person who knows some of the items by heart is predicted too high.

    Examples
    --------
    >>> import discreet
    >>> bank = discreet.fit(discreet.datasets.lsat())
    >>> new = discreet.Responses.from_array([[1, 0, 1]], ["Item1", "Item2", "Item3"])
    >>> discreet.predict_scores(new, bank).score.round(2).tolist()
    [0.7]
    """
    if not 0 < level < 1:
        raise BadUsage(f"level must lie between 0 and 1, found {level}; use 0.95 for 95%")
    items = _shrink_items(calibration)
    warnings = score(responses, calibration).warnings
    if not np.isfinite(items.known.se).any():
        warnings = (*warnings, FitWarning(WarningKind.NO_STANDARD_ERRORS, NO_ERRORS))
    before = None if past is None else _take_codes(past, items)
    codes = _take_codes(responses, items)
    n_points = int(count_item_steps(items.thresholds).sum())
    step = max(1, CHUNK_CELLS // codes.shape[1])
    parts = [
        _predict(codes[first : first + step], items, before, n_points, level)
        for first in range(0, len(codes), step)
    ]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    share, se, lower, upper, misfit = columns
    return PredictedScores(
        persons=responses.persons,
        score=share,
        se=se,
        lower=lower,
        upper=upper,
        answered=(codes >= 0).sum(axis=1),
        misfit=misfit,
        n_items=codes.shape[1],
        level=level,
        warnings=warnings,
    )


def _take_codes(responses: Responses, items: _ShrunkItems) -> Int8Array:
    """Return the categories of all items, -1 where there is no answer."""
    known = items.known
    chosen = known.match(responses.select(known.items))
    return chosen.store.rows(0, chosen.n_persons)


def _predict(
    codes: Int8Array, items: _ShrunkItems, before: Int8Array | None, n_points: int, level: float
) -> tuple[FloatArray, ...]:
    """Return predicted share, error, both ends of the interval and misfit."""
    seen = codes >= 0
    found = _forecast(codes, seen, ~seen, items)
    misfit = np.ones(len(codes)) if before is None else _find_misfit(seen, before, items)
    left = np.maximum((~seen * count_item_steps(items.thresholds)).sum(axis=1), 1)
    error = np.sqrt(misfit * found.own + found.shared)
    # On the scale of logits an interval stays between nothing and everything.
    part = np.clip(found.expected / left, NEAREST / left, 1 - NEAREST / left)
    logit = np.log(part / (1 - part))
    reach = two_sided_quantile(1 - level) * error / left / (part * (1 - part))
    ends = [left / (1 + np.exp(-(logit + side * reach))) for side in (-1, 1)]
    # With every item answered nothing is left to predict, and the error is zero.
    ends = [np.where(seen.all(axis=1), 0.0, end) for end in ends]
    shares = [(found.points + more) / n_points for more in (found.expected, *ends)]
    return shares[0], error / n_points, shares[1], shares[2], misfit


def _find_misfit(seen: BoolArray, before: Int8Array, items: _ShrunkItems) -> FloatArray:
    """Return for each set of seen items by how much the model misses the scores of past persons."""
    sets, number = np.unique(seen, axis=0, return_inverse=True)
    factors = np.ones(len(sets))
    for row, chosen in enumerate(sets):
        had = before >= 0
        unseen = had & ~chosen
        found = _forecast(before, had & chosen, unseen, items)
        missed = np.where(unseen, before, 0).sum(axis=1) - found.expected
        usable = found.own > 0
        if usable.any():
            factors[row] = max(1.0, float(np.mean(missed[usable] ** 2 / found.own[usable])))
    return factors[np.ravel(number)]


def select_items(calibration: Calibration, k: int) -> tuple[str, ...]:
    """Choose k items that stand for all: the middle one of each of k equal parts by difficulty.

    Their share of right answers is near that of all items, whatever the slopes of the items and
    however much is guessed. Items chosen for their information alone are not so: all of them are
    of middling difficulty, and where the model does not hold, prediction from them is biased.

    Parameters
    ----------
    calibration
        As for :func:`discreet.score`. Of a bank only items that did not drift are chosen.
    k
        How many.

    Returns
    -------
    tuple
        Names, in the order of the calibration.

    Examples
    --------
    >>> select_items({"a": 2.0, "b": -1.0, "c": 0.0, "d": 1.0, "e": -2.0, "f": 3.0}, 3)
    ('b', 'd', 'f')
    """
    items = _shrink_items(calibration)
    names = items.known.items
    if not 1 <= k <= len(names):
        raise BadUsage(f"k must be from 1 to {len(names)}, the items with a difficulty; found {k}")
    order = np.argsort(np.nanmean(items.thresholds, axis=1), kind="stable")
    middle = ((np.arange(k) + 0.5) * len(names) / k).astype(np.int64)
    return tuple(names[place] for place in sorted(order[middle]))
