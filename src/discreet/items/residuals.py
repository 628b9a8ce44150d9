"""Residuals: observed minus expected answers, and what is left in common between items.

In: answers and a calibration. Out: residuals chunk by chunk, their correlations, and the
information that the items carry. Confidential, except for the information curve, which is
about items only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from discreet.answers.responses import Responses
from discreet.answers.survey import SurveyDesign
from discreet.checking import as_numbers
from discreet.choices import ScoreMethod
from discreet.errors import BadUsage
from discreet.models.categories import category_totals
from discreet.models.conditional import GroupPatterns, Patterns, group_patterns
from discreet.models.conditional.routed import group_routes
from discreet.models.item_parameters import KnownItems, known_thresholds
from discreet.models.structure import FAR_APART
from discreet.persons.measures import GRID, NormalPrior, estimate_prior
from discreet.persons.scoring import PersonScores, PersonStatus, score
from discreet.results.calibrated import Calibration
from discreet.results.chances import category_chances, log_totals, score_moments
from discreet.tabular import Columns, Tabular, list_field_columns
from discreet.types import BoolArray, FloatArray, IndexArray, Int8Array, Int64Array

#: Cells worked on at a time: 8 MB of float64 per array.
CHUNK_CELLS = 1 << 20
#: Correlations between all items are a dense matrix: 200 MB here.
ITEM_LIMIT = 5000
#: Share of the cells with an answer up to which sums go over answers instead of cells.
SPARSE = 0.1
#: Items up to which all components are found; of more only the first, which is much quicker.
DIRECT = 2000


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
    #: All items of the answers, also those without a difficulty.
    source_items: tuple[str, ...]

    @property
    def sample(self) -> SurveyDesign | None:
        """The sampling design; None without weights."""
        return self.responses.sample

    def refuse_weights(self, feature: str) -> None:
        """Refuse a statistic that has no weighted form."""
        if self.sample is not None:
            raise BadUsage(
                f"{feature} is refused where persons have weights: it would describe the persons "
                "of the sample, not the population. Give the answers without weights if that is "
                "meant"
            )

    def weigh(self, persons: slice | BoolArray | IndexArray) -> FloatArray | None:
        """Return the weights of some persons; None where everybody counts alike."""
        return None if self.sample is None else self.sample.weight[persons]

    def count_used(self) -> Int64Array:
        """Return how many of the used persons are in each category, ``[item, category]``."""
        return category_totals(self.responses.store.pick(np.flatnonzero(self.used)))

    def group(self, persons: IndexArray, columns: IndexArray | None = None) -> Patterns:
        """Put persons together who are alike given their totals, and paths if these are known."""
        columns = np.arange(len(self.thresholds)) if columns is None else columns
        store, routing = self.responses.store.pick(persons), self.responses.routing
        if routing is None:
            return group_patterns(store, columns)
        cells, items = store.rows(0, len(persons)), [self.responses.items[i] for i in columns]
        steps = np.isfinite(self.thresholds[columns]).sum(axis=1)
        return group_routes(cells[:, columns], routing.take(persons), items, steps)

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


def prepare(responses: Responses, calibration: Calibration, method: ScoreMethod) -> Prepared:
    """Match items, score persons, and refuse answers that nothing can be said about.

    With weights, these are the persons of the domain.
    """
    source = responses
    if source.sample is not None:
        source = source.select_persons(source.sample.in_domain)
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


def add_persons(part: FloatArray, weight: FloatArray | None) -> FloatArray:
    """Return the sum over persons, each of whom counts as often as its weight says."""
    return part.sum(axis=0) if weight is None else np.tensordot(weight, part, axes=1)


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

    Examples
    --------
    >>> import discreet
    >>> from discreet import analysis
    >>> answers = discreet.datasets.lsat()
    >>> estimate = discreet.fit(answers)
    >>> analysis.correlate_residuals(answers, estimate).q3.shape
    (5, 5)
    """

    items: tuple[str, ...]
    q3: FloatArray
    together: Int64Array
    mean: float
    eigenvalue: float
    share: float
    loading: FloatArray

    def to_dict(self) -> Columns:
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
    responses: Responses, calibration: Calibration, *, method: ScoreMethod = "ml"
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

    Examples
    --------
    >>> import discreet
    >>> from discreet import analysis
    >>> answers = discreet.datasets.lsat()
    >>> estimate = discreet.fit(answers)
    >>> correlations = analysis.correlate_residuals(answers, estimate)
    >>> round(correlations.mean, 2)
    -0.24
    """
    prepared = prepare(responses, calibration, method)
    m = len(prepared.item_parameters.items)
    if m > ITEM_LIMIT:
        raise BadUsage(f"residual correlations stop at {ITEM_LIMIT} items, found {m}")
    together, count, total, square, product = np.zeros((5, m, m))
    for answered, residual, weight in _list_residuals(prepared):
        own = answered if weight is None else answered * weight[:, None]
        together += _multiply(answered, answered)
        if weight is not None:
            count += _multiply(own, answered)
        total += _multiply(residual, own)
        square += _multiply(residual**2, own)
        product += _multiply(residual * own, residual)
    count = together if prepared.sample is None else count
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = square - total**2 / count
        q3 = (product - total * total.T / count) / np.sqrt(spread * spread.T)
    return _summarise(prepared.scores.items, q3, together)


def _list_residuals(prepared: Prepared) -> Iterator[tuple[Any, Any, FloatArray | None]]:
    """Yield answers, residuals and weights by chunks of persons; all at once where few answered."""
    from scipy.sparse import csr_array, vstack

    chunks = (
        (one.answered.astype(np.float64), one.residual, prepared.weigh(one.persons))
        for one in prepared.chunks()
    )
    cells = prepared.responses.n_persons * len(prepared.item_parameters.items)
    if prepared.responses.n_answers > SPARSE * cells:
        yield from chunks
        return
    parts = [(csr_array(answered), csr_array(residual)) for answered, residual, _ in chunks]
    answered, residual = (vstack(part, format="csr") for part in zip(*parts, strict=True))
    yield answered, residual, prepared.weigh(slice(None))


def _multiply(first: Any, second: Any) -> FloatArray:
    """Return the sums over persons of products of two items' columns."""
    product = first.T @ second
    return np.asarray(product.toarray() if hasattr(product, "toarray") else product)


def _find_first(q3: FloatArray) -> tuple[float, FloatArray]:
    """Return the largest eigenvalue and its vector."""
    if len(q3) <= DIRECT:
        values, vectors = np.linalg.eigh(q3)
    else:
        from scipy.sparse.linalg import eigsh

        values, vectors = eigsh(q3, k=1, which="LA", v0=np.ones(len(q3)))
    return float(values[-1]), vectors[:, -1]


def _summarise(
    items: tuple[str, ...], q3: FloatArray, together: FloatArray
) -> ResidualCorrelations:
    q3[(together < 3) | ~np.isfinite(q3)] = np.nan
    np.fill_diagonal(q3, 1.0)
    pairs = q3[np.triu_indices(len(items), 1)]
    finite = pairs[~np.isnan(pairs)]
    largest, vector = _find_first(np.where(np.isnan(q3), 0.0, q3))
    first = vector * np.sqrt(max(largest, 0.0))
    return ResidualCorrelations(
        items=items,
        q3=q3,
        together=together.astype(np.int64),
        mean=float(finite.mean()) if len(finite) else 0.0,
        eigenvalue=largest,
        share=largest / len(items),
        loading=first * (1.0 if first.sum() >= 0 else -1.0),
    )


@dataclass(frozen=True, eq=False)
class InformationCurve(Tabular):
    """What a complete test tells at each ability: information, standard error, expected score.

    Examples
    --------
    >>> from discreet import analysis
    >>> analysis.trace_information({"a": 0.0, "b": 0.0}, [0.0]).expected_score.tolist()
    [1.0]
    """

    ability: FloatArray
    information: FloatArray
    se: FloatArray
    expected_score: FloatArray

    def to_dict(self) -> dict[str, list[float]]:
        """One list per column: ability, information, se, expected_score."""
        return list_field_columns(self, "ability", "information", "se", "expected_score")


def trace_information(
    calibration: Calibration, ability: npt.ArrayLike | None = None
) -> InformationCurve:
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
    # Steps beside an unused category that was kept lie far from all others.
    near = b[np.abs(b - np.nanmedian(b)) < FAR_APART / 2]
    points = np.linspace(near.min() - 3, near.max() + 3, 121) if ability is None else ability
    theta = np.atleast_1d(as_numbers("ability", points))
    moments = score_moments(theta, b)
    information = moments.variance.sum(axis=1)
    return InformationCurve(theta, information, 1 / np.sqrt(information), moments.mean.sum(axis=1))


#: Answers ``[person, item]``: categories, -1 missing.
Codes = npt.NDArray[np.int8]

#: Persons from whom mean and SD of abilities are estimated: the SD is then known to 1 or 2%, and
#: predictions depend on it only by the square of that.
PRIOR_PERSONS = 4000

#: Cells predicted at a time: 8 MB of float64.
BLOCK_CELLS = 1 << 20


def describe_persons(responses: Responses, difficulty: FloatArray) -> NormalPrior:
    """Return mean and SD of the abilities of these persons, by marginal maximum likelihood.

    ``difficulty`` may be thresholds ``[item, step]``; answers are then in their categories. Of more
    than :data:`PRIOR_PERSONS`, so many are taken from all over. Without an answer to an item that
    has a difficulty there is nothing to go by, and abilities are standard normal.
    """
    items = np.flatnonzero(np.isfinite(difficulty if difficulty.ndim == 1 else difficulty[:, 0]))
    job = GroupPatterns(items, sample=PRIOR_PERSONS)
    patterns = job.collect(responses.reduce(job))
    if not patterns.lengths.any():
        return NormalPrior(0.0, 1.0)
    return estimate_prior(patterns, difficulty[items])


def predict_categories(
    codes: Codes, thresholds: FloatArray, prior: NormalPrior, share: FloatArray
) -> FloatArray:
    """Return the chance of every category, given the other answers of the person.

    Parameters
    ----------
    codes
        ``[person, item]``: categories, -1 missing.
    thresholds
        ``[item, step]``, NaN beyond an item's steps, and all NaN where an item has none.
    prior
        Abilities of the persons that the thresholds come from.
    share
        ``[item, category]``: the chances of an item without thresholds, whoever answers.

    Returns
    -------
    chance
        ``[person, item, category]``.
    """
    items = np.flatnonzero(np.isfinite(thresholds[:, 0]))
    chance = np.repeat(share[None], len(codes), axis=0)
    size = max(1, BLOCK_CELLS // max(share.size, len(GRID)))
    for start in range(0, len(codes), size):
        part = codes[start : start + size][:, items]
        chance[start : start + size, items] = _predict_steps(part, thresholds[items], prior)
    return chance


def _predict_steps(codes: Codes, thresholds: FloatArray, prior: NormalPrior) -> FloatArray:
    nodes, steps = prior.mean + prior.sd * GRID, thresholds.shape[1]
    load = (codes >= 0).astype(np.float64) @ log_totals(nodes, thresholds)
    post = np.maximum(codes, 0).sum(axis=1)[:, None] * nodes - load - GRID**2 / 2
    post -= logsumexp(post, axis=1, keepdims=True)
    # How much likelier a person is to be so many categories higher than answered.
    higher = np.stack(
        [logsumexp(post + change * nodes, axis=1) for change in range(-steps, steps + 1)], axis=1
    )
    index = np.arange(steps + 1) - np.maximum(codes, 0)[:, :, None] + steps
    gain = np.take_along_axis(higher[:, None, :], index, axis=2)
    step = np.where(np.isnan(thresholds), np.inf, thresholds)
    load_of = np.concatenate([np.zeros((len(step), 1)), np.cumsum(step, axis=1)], axis=1)
    answered = np.exp(gain - load_of - logsumexp(gain - load_of, axis=2, keepdims=True))
    unseen = np.einsum("pg,gik->pik", np.exp(post), category_chances(nodes, thresholds))
    return np.asarray(np.where(codes[:, :, None] < 0, unseen, answered))


def log_likelihood(codes: Codes, chance: FloatArray) -> tuple[float, int]:
    """Return the sum of the log probabilities of all answers, and how many there are.

    ``chance`` is that of every category, ``[person, item, category]``.
    """
    category = np.maximum(codes, 0)[:, :, None].astype(np.intp)
    probability = np.take_along_axis(chance, category, axis=2)[:, :, 0][codes >= 0]
    with np.errstate(divide="ignore"):
        return float(np.log(probability).sum()), len(probability)


def smooth_categories(categories: npt.NDArray[np.int64] | None, steps: npt.ArrayLike) -> FloatArray:
    """Return the share of every category, ``[item, category]``, half an answer added to each.

    All are equal where the answers are not known, as in a release.
    """
    highest = np.asarray(steps)
    inside = np.arange(highest.max() + 1) <= highest[:, None]
    count = np.where(inside, (0 if categories is None else categories) + 0.5, 0.0)
    return np.asarray(count / count.sum(axis=1, keepdims=True))
