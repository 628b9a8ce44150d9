"""Residuals: observed minus expected answers, and what is left in common between items.

In: answers and a calibration. Out: residuals chunk by chunk, their correlations, and the
information that the items carry. Confidential, except for the information curve, which is
about items only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from discreet.answers.opening import load_answers
from discreet.answers.responses import Responses
from discreet.errors import BadUsage
from discreet.models.item_parameters import KnownItems, known_thresholds
from discreet.persons.scoring import PersonScores, PersonStatus, score
from discreet.results.thresholds import score_moments
from discreet.tables.reading import ReadingWords
from discreet.tables.survey import OF_SAMPLE, refuse_weights
from discreet.tabular import Tabular, brief_repr, list_field_columns
from discreet.types import BoolArray, FloatArray, Int8Array, Int64Array, ScoreMethod

CHUNK_CELLS = 1 << 20
"""Cells worked on at a time: 8 MB of float64 per array."""
ITEM_LIMIT = 5000
"""Correlations between all items are a dense matrix: 200 MB here."""


@dataclass(frozen=True, eq=False)
class ResidualChunk:
    """Residuals of some persons, zero where an answer is missing, ``[person, item]``.

    Attributes
    ----------
    persons
        Which persons these are.
    answered, code
        Which answers there are, and what they are; of persons who are not used too.
    residual, variance, fourth
        Observed less expected score, the variance of the score and its fourth central moment.
    """

    persons: slice
    answered: BoolArray
    code: Int8Array
    residual: FloatArray
    variance: FloatArray
    fourth: FloatArray

    def squares(self) -> FloatArray:
        """Return squared standardised residuals, zero where an answer is missing."""
        nothing = np.zeros_like(self.variance)
        return np.divide(self.residual**2, self.variance, out=nothing, where=self.answered)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Answers on calibrated items, with an ability for each person."""

    responses: Responses
    item_parameters: KnownItems
    scores: PersonScores
    source_items: tuple[str, ...]
    """All items of the answers, also those without a difficulty."""

    @property
    def thresholds(self) -> FloatArray:
        """Thresholds of the items, ``[item, step]``."""
        return self.item_parameters.thresholds

    @property
    def difficulty(self) -> FloatArray:
        """Difficulties of the items; with steps the mean of their thresholds."""
        return np.asarray(np.nanmean(self.thresholds, axis=1))

    @property
    def used(self) -> BoolArray:
        """Persons with right and wrong answers; extreme scores fit by construction.

        With steps all but those with the lowest or the highest score on what they answered.
        """
        return np.asarray(self.scores.status == PersonStatus.MEASURED)

    def chunks(self) -> Iterator[ResidualChunk]:
        """Yield residuals; persons who are not used have no answers."""
        used = self.used
        size = max(1, CHUNK_CELLS // max(self.thresholds.size, 1))
        for start in range(0, self.responses.n_persons, size):
            span = slice(start, min(start + size, self.responses.n_persons))
            code = self.responses.rows(span.start, span.stop)
            answered = (code >= 0) & used[span, None]
            theta = np.where(used[span], self.scores.ability[span], 0.0)
            item = score_moments(theta, self.thresholds)
            residual = np.where(answered, code - item.mean, 0.0)
            variance = np.where(answered, item.variance, 0.0)
            yield ResidualChunk(span, answered, code, residual, variance, item.fourth)


def prepare(
    responses: Any, calibration: Any, method: ScoreMethod, words: ReadingWords | None = None
) -> Prepared:
    """Match items, score persons, and refuse answers that nothing can be said about."""
    source = load_answers(responses, words)
    refuse_weights(source.sample, "fit by residuals", OF_SAMPLE)
    scores = score(source, calibration, method=method)
    item_parameters = known_thresholds(calibration).select(set(scores.items))
    answers = item_parameters.match(source.select(item_parameters.items))
    prepared = Prepared(answers, item_parameters, scores, source.items)
    if not prepared.used.any():
        raise BadUsage(
            f"none of the {source.n_persons} persons has both right and wrong answers on items "
            "with a difficulty, so fit cannot be measured"
        )
    return prepared


@dataclass(frozen=True, eq=False)
class ResidualCorrelations(Tabular):
    """Correlations of residuals between items (Yen's Q3), and their first component.

    Attributes
    ----------
    items
        Items with a difficulty, in the order of the answers.
    q3
        ``[item, item]``; NaN where fewer than three persons answered both items, or the
        residuals do not vary. ``together`` says how many persons answered both.
    mean
        Over all pairs; about -1 / (items - 1) when the model holds and everybody answered all.
    eigenvalue, share, loading
        Of the first principal component of ``q3`` (NaN counted as 0): its size in items, its
        share of the total, and each item's weight. Above 2 items it hints at a second dimension.
    """

    items: tuple[str, ...]
    q3: FloatArray
    together: Int64Array
    mean: float
    eigenvalue: float
    share: float
    loading: FloatArray

    __repr__ = brief_repr

    def to_dict(self) -> dict[str, list[Any]]:
        """Pairs, the largest excess over the mean first: item, other, q3, excess, persons."""
        first, second = np.triu_indices(len(self.items), 1)
        value = self.q3[first, second]
        excess = value - self.mean
        order = np.argsort(-np.where(np.isnan(excess), -np.inf, np.abs(excess)), kind="stable")
        return {
            "item": [self.items[i] for i in first[order]],
            "other": [self.items[j] for j in second[order]],
            "q3": value[order].tolist(),
            "excess": excess[order].tolist(),
            "persons": self.together[first, second][order].tolist(),
        }


def correlate_residuals(
    responses: Any, calibration: Any, *, method: ScoreMethod = "ml", **reading: Unpack[ReadingWords]
) -> ResidualCorrelations:
    """Correlate what the model leaves unexplained, for every pair of items. Confidential.

    Parameters
    ----------
    responses, calibration, reading
        As for :func:`discreet.score`.
    method
        How abilities are estimated: ``"ml"``, ``"warm"`` or ``"posterior"``. Persons with
        extreme scores are left out.

    References
    ----------
    Yen, W. M. (1984). Effects of local item dependence on the fit and equating performance of
    the three-parameter logistic model. Applied Psychological Measurement 8(2), 125-145.
    """
    prepared = prepare(responses, calibration, method, reading)
    m = len(prepared.item_parameters.items)
    if m > ITEM_LIMIT:
        raise BadUsage(f"residual correlations stop at {ITEM_LIMIT} items, found {m}")
    count, total, square, product = (np.zeros((m, m)) for _ in range(4))
    for chunk in prepared.chunks():
        answered = chunk.answered.astype(np.float64)
        count += answered.T @ answered
        total += chunk.residual.T @ answered
        square += (chunk.residual**2).T @ answered
        product += chunk.residual.T @ chunk.residual
    return _summarise(prepared.scores.items, count, total, square, product)


def _summarise(
    items: tuple[str, ...],
    count: FloatArray,
    total: FloatArray,
    square: FloatArray,
    product: FloatArray,
) -> ResidualCorrelations:
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = square - total**2 / count
        q3 = (product - total * total.T / count) / np.sqrt(spread * spread.T)
    q3[(count < 3) | ~np.isfinite(q3)] = np.nan
    np.fill_diagonal(q3, 1.0)
    pairs = q3[np.triu_indices(len(items), 1)]
    finite = pairs[~np.isnan(pairs)]
    values, vectors = np.linalg.eigh(np.where(np.isnan(q3), 0.0, q3))
    first = vectors[:, -1] * np.sqrt(max(values[-1], 0.0))
    return ResidualCorrelations(
        items=items,
        q3=q3,
        together=count.astype(np.int64),
        mean=float(finite.mean()) if len(finite) else 0.0,
        eigenvalue=float(values[-1]),
        share=float(values[-1] / len(items)),
        loading=first * (1.0 if first.sum() >= 0 else -1.0),
    )


@dataclass(frozen=True, eq=False)
class InformationCurve(Tabular):
    """What a complete test tells at each ability: information, standard error, expected score."""

    ability: FloatArray
    information: FloatArray
    se: FloatArray
    expected_score: FloatArray

    __repr__ = brief_repr

    def to_dict(self) -> dict[str, list[float]]:
        """One list per column: ability, information, se, expected_score."""
        return list_field_columns(self, "ability", "information", "se", "expected_score")


def trace_information(calibration: Any, ability: npt.ArrayLike | None = None) -> InformationCurve:
    """Test information, standard error and expected score along the ability scale.

    Parameters
    ----------
    calibration
        As for :func:`discreet.score`.
    ability
        Where to look; by default 121 points from 3 logits below the easiest to 3 above the
        hardest item, or step.

    Examples
    --------
    >>> trace_information({"a": 0.0, "b": 0.0}, [0.0]).information.tolist()
    [0.5]
    """
    b = known_thresholds(calibration).thresholds
    points = np.linspace(np.nanmin(b) - 3, np.nanmax(b) + 3, 121) if ability is None else ability
    theta = np.atleast_1d(np.asarray(points, dtype=np.float64))
    moments = score_moments(theta, b)
    information = moments.variance.sum(axis=1)
    return InformationCurve(theta, information, 1 / np.sqrt(information), moments.mean.sum(axis=1))
