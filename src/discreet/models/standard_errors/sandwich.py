"""Sandwich standard errors, from one sum over persons.

In: answers, difficulties, the estimator's scores and its Laplacian. Out: standard errors and,
for up to a few thousand items, the covariance. Confidential side: it reads every person. Its
contract is agreement to 1e-10 between stores and chunk sizes, not equality of bits; from 10,000
persons on, where sums are of single-precision products, to 1e-6.

With ``s_l`` the score of person l and ``L`` the Laplacian of the estimator, the covariance is
``pinv(L) (sum_l s_l s_l') pinv(L)``. Each score is divided by one minus the person's leverage,
because residuals at the estimate are smaller than at the truth.

The sum is estimated from a sample of very many persons
(:func:`~discreet.models.standard_errors.plan_draw`): those who are drawn count for as
many as they stand for, and items are scaled to the number of their takers.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.answers.protocol import Job, SumJob
from discreet.counts import PairCounts
from discreet.counts.folds import FEWEST_FOLDS, FoldCounts
from discreet.counts.matrix import Locations
from discreet.counts.pairs import Weighting
from discreet.counts.planes import AnswerStore, BitPlanes
from discreet.errors import FitWarning, WarningKind
from discreet.jit import map_tasks, one_blas_thread, thread_count, threads_for
from discreet.models.connectivity import Chain, find_reached
from discreet.models.laplacian import Laplacian, build_laplacian, invert, solve
from discreet.models.methods import Method
from discreet.models.refined import logistic
from discreet.models.standard_errors import (
    COARSE,
    ENOUGH,
    LEAST_SAVED,
    LOOSE,
    PairContribution,
    ScorePlan,
    Uncertainty,
    bound_leverage,
    chunk_words,
    model_links,
    plan_draw,
    score_persons,
    score_planes,
    weigh_scores,
)
from discreet.models.standard_errors.random_signs import LinearSystem, ManyPlan, ScoreRows
from discreet.models.structure import StepPlan, Structure
from discreet.models.weak_links import MANY_LOST, WeakLinks
from discreet.text import count_of, name_some
from discreet.types import BoolArray, FloatArray, IndexArray, Int64Array

#: Items up to which the full covariance is kept (32 MB); above, standard errors only.
COVARIANCE_LIMIT = 2000
#: Seconds that the products of one person cost per pair of items.
PERSON_PAIR = 5e-11
NO_COVARIANCE = f"no covariance above {COVARIANCE_LIMIT:,} items: "
NO_STEP_COVARIANCE = (
    f"no covariance of thresholds above {COVARIANCE_LIMIT:,} steps, only that of locations: "
)
OF_ALL = "Standard errors are sandwich estimates over all {persons:,} persons."
OF_SOME = (
    "Standard errors are sandwich estimates from a sample of the {persons:,} persons, drawn by a "
    "fixed hash of their ids: about {enough:,} or more of those who answered an item, all where "
    "fewer than {few:,} did. This changes them by about {error:.1%}."
)


@dataclass(frozen=True, eq=False)
class Sandwich:
    """Standard errors before the pass over persons: what is summed there, and what it means."""

    job: Job[Any]
    finish: Callable[[Any], Uncertainty]


def plan_sandwich(
    laplacian: Laplacian,
    *,
    difficulty: FloatArray,
    columns: IndexArray,
    scoring: PairContribution,
    weighting: Weighting | None,
    answers: Int64Array,
    n_persons: int,
    structure: Structure,
    locations: Locations | None = None,
    links: WeakLinks | None = None,
    is_complete: bool = False,
) -> Sandwich:
    """Prepare standard errors with the sandwich formula: one pass over persons is left.

    ``answers`` are how many persons answered each of all items, ``structure`` says which parameters
    the thresholds follow from, and ``locations`` how nodes make items, where items have steps;
    ``links`` are those that few persons hold; ``is_complete`` says whether everybody answered every
    item.
    """
    m, item_of = len(difficulty), None if locations is None else locations.item
    if m > COVARIANCE_LIMIT and not structure.is_anchored:
        system = LinearSystem(laplacian, structure.basis)
        plan = ScorePlan(
            difficulty, columns, scoring, system.spread, weighting, None, item_of, links=links
        )
        together = locations is not None and len(locations.whole) <= COVARIANCE_LIMIT
        job = ManyPlan(plan, system, locations, together).choose_job(n_persons)
        return Sandwich(job, lambda sums: _finish_many(job.finish(sums), n_persons))
    with threads_for(m):
        inverse = structure.invert(laplacian)
    spread = inverse.diagonal()
    resistance = -2.0 * inverse
    resistance += spread
    resistance += spread[:, None]
    slack = np.maximum(_find_slack(inverse, laplacian.diagonal), 1.0)
    items = (m if locations is None else len(locations.whole)) if is_complete else None
    plan = ScorePlan(
        difficulty,
        columns,
        scoring,
        resistance,
        weighting,
        plan_draw(answers, columns, slack),
        item_of,
        is_complete=is_complete and item_of is None,
        is_coarse=n_persons >= COARSE and bool(slack.max() <= LOOSE),
        leverage=bound_leverage(answers[columns], slack, items),
        links=links,
    )
    if n_persons < m and links is None:
        # Their scores are smaller than products of two items.
        return Sandwich(ScoreRows(plan), lambda scores: _finish_few(scores, inverse))
    return Sandwich(SumProducts(plan), lambda products: _finish(products, plan, inverse, n_persons))


def _finish_few(scores: Any, inverse: FloatArray) -> Uncertainty:
    moves = inverse @ scores.T.toarray()
    se = np.sqrt((moves**2).sum(axis=1))
    se_method = tell_persons(scores.shape[0], sampled=False)
    products = (scores.T @ scores).toarray()
    return Uncertainty(se, moves @ moves.T, se_method=se_method, products=products)


def _find_slack(inverse: FloatArray, diagonal: FloatArray) -> FloatArray:
    """Compare each item's variance with what its own comparisons alone would make it.

    Variances are those of differences from the mean of all items, weighted by how much each was
    compared, so that rare items do not make common ones uncertain.
    """
    share = diagonal / diagonal.sum()
    with_mean = inverse @ share
    return np.asarray(diagonal * (inverse.diagonal() - 2 * with_mean + share @ with_mean))


def _finish(
    products: FloatArray, plan: ScorePlan, inverse: FloatArray, n_persons: int
) -> Uncertainty:
    m = len(inverse)
    draw = plan.draw if len(products) > m else None
    scale = np.ones(m) if draw is None else draw.find_scale(products[m], plan.columns)
    scaled = products[:m] * scale * scale[:, None]
    if plan.links is not None:
        rows = model_links(plan, plan.links)
        scaled = scaled + (rows.T @ rows).toarray()
    with threads_for(m):
        covariance = inverse @ scaled @ inverse.T
    covariance = (covariance + covariance.T) / 2
    se = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
    se_method = tell_persons(n_persons, sampled=draw is not None)
    return Uncertainty(se, covariance, se_method=se_method, products=scaled)


def tell_persons(n_persons: int, *, sampled: bool) -> str:
    """Say which persons standard errors are from."""
    error = 1 / np.sqrt(2 * ENOUGH)
    template = OF_SOME if sampled else OF_ALL
    return template.format(persons=n_persons, enough=ENOUGH, few=LEAST_SAVED * ENOUGH, error=error)


def _finish_many(errors: Uncertainty, n_persons: int) -> Uncertainty:
    (note,) = errors.notes
    if isinstance(note, FitWarning):
        return errors
    together = errors.locations is not None and errors.locations.covariance is not None
    note = (NO_STEP_COVARIANCE if together else NO_COVARIANCE) + note
    return replace(errors, notes=(note,), se_method=tell_persons(n_persons, sampled=False))


@dataclass(frozen=True, eq=False)
class SumProducts(SumJob):
    """Sum the products of scores of two items over persons, ``[item, item]``.

    Of a sample there is one more row: how many takers of each item those who were drawn stand for.
    """

    plan: ScorePlan

    @property
    def every(self) -> Int64Array | None:  # type: ignore[override]
        """Of how many takers of an item one is enough."""
        return self.plan.every

    def of_everybody(self) -> SumProducts:
        """Return the same sum over all persons."""
        return SumProducts(replace(self.plan, draw=None))

    def block(self, store: AnswerStore) -> FloatArray:
        """Sum over some persons."""
        with threads_for(len(self.plan.columns)):
            products = sum_item_products(store, self.plan)
        draw = self.plan.draw
        if draw is None:
            return products
        return np.vstack([products, draw.count_seen(store)[self.plan.columns]])


def sum_item_products(store: AnswerStore, plan: ScorePlan) -> FloatArray:
    """Sum the products of scores of two items over persons."""
    weights, store = weigh_scores(store, plan), store.nodes
    if not isinstance(store, BitPlanes):
        scores = score_persons(store, plan, weights)
        return np.asarray((scores.T @ scores).toarray())
    step = chunk_words(store, plan)
    chunks = range(0, store.right.shape[0] * store.right.shape[2], step)
    share = -(-len(chunks) // thread_count()) or 1
    nothing = np.zeros((len(plan.columns), len(plan.columns)))

    def add_up(words: range) -> FloatArray:
        total = nothing.copy()
        for scores in score_planes(store, plan, words, weights):
            total += scores @ scores.T
        return total

    # One sum per thread, added in order: the same machine always gives the same bits.
    tasks = [chunks[start : start + share] for start in range(0, len(chunks), share)]
    with one_blas_thread() if len(chunks) > 1 else nullcontext():
        seconds = PERSON_PAIR * store.n_persons * len(plan.columns) ** 2
        return np.asarray(sum(map_tasks(add_up, tasks, seconds), start=nothing))


# Standard errors from counts alone, for complete answers.
#
# In: pair counts in which everybody answered every item, and the estimate from them. Out:
# model-based standard errors. The sandwich needs the answers of each person; with complete
# answers the counts still give the mean and the variance of the raw scores exactly, hence a
# normal ability distribution, and the model says what the scores of such persons would be.

#: Simulated persons: the standard errors have a relative error of about 0.5%.
SIMULATED = 20_000
CHUNK = 2000
NODES = 41


def simulate_uncertainty(
    counts: PairCounts, laplacian: Laplacian, difficulty: FloatArray, scoring: PairContribution
) -> Uncertainty:
    """Estimate the sandwich with persons simulated from the fitted model."""
    centre, spread = match_abilities(counts, difficulty)
    rng = np.random.default_rng(0)
    surprise = np.ascontiguousarray(scoring.residual(difficulty[:, None], difficulty[None, :]))
    products = np.zeros((len(difficulty), len(difficulty)))
    for _ in range(SIMULATED // CHUNK):
        ability = centre + spread * rng.standard_normal((CHUNK, 1))
        chance = logistic(ability - difficulty)
        right = (rng.random(chance.shape) < chance).astype(float)
        wrong = 1.0 - right
        scores = right * (wrong @ surprise.T) - wrong * (right @ surprise)
        products += scores.T @ scores
    inverse = invert(laplacian)
    covariance = inverse @ products @ inverse * (counts.persons / SIMULATED)
    note = "standard errors are model-based (from counts of complete answers)"
    se_method = f"{note[0].upper()}{note[1:]}."
    return Uncertainty(np.sqrt(covariance.diagonal()), covariance, (note,), se_method=se_method)


def match_abilities(counts: PairCounts, difficulty: FloatArray) -> tuple[float, float]:
    """Mean and standard deviation of normal abilities that give the observed raw scores.

    With everybody answering all m items, the sum of all pair counts is the sum over persons
    of r (m - r), so the mean and the variance of the raw scores r are known exactly.
    """
    n, m = counts.persons, len(counts.items)
    mean = counts.right.sum() / n
    variance = m * mean - counts.right_wrong.sum() / n - mean**2
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    weights = weights / weights.sum()
    centre, spread = 0.0, 1.0
    for _ in range(100):
        chance = logistic(centre + spread * nodes[:, None] - difficulty)
        score, noise = chance.sum(axis=1), (chance * (1 - chance)).sum(axis=1)
        middle, slope = weights @ score, weights @ noise
        between = weights @ score**2 - middle**2
        target = max(variance - weights @ noise, 1e-6 * m)
        # The score moves with ability by its slope: two damped fixed-point updates.
        shift = np.clip((mean - middle) / slope, -1.0, 1.0)
        factor = np.clip(np.sqrt(target / max(between, 1e-12)), 0.5, 2.0)
        centre, spread = centre + float(shift), float(np.clip(spread * factor, 1e-3, 10.0))
        if abs(shift) < 1e-8 and abs(factor - 1) < 1e-8:
            break
    return centre, spread


# Standard errors from folds: what the estimate would be without one fold of persons.
#
# In: counts of persons in folds, the chain and the estimate of all. Out: standard errors and a
# covariance that ask for no answers. Persons are independent and a person is always in the same
# fold, so folds are independent; how far the estimate moves when one of them is left out says how
# sure it is.
#
# Leaving out a fold changes the counts a little, so one Newton step with the Laplacian of the
# persons who are left finds where the estimate goes (experiments/calibration/folds.py compares it
# with fitting anew). With ``p`` the fold's share of the persons, the move has variance ``p / (1 -
# p)`` times that of the estimate, also where folds are of different sizes; so the covariance is the
# sum of ``(1 - p) move move'`` over folds.


def leave_folds_out(
    folds: FoldCounts,
    chain: Chain,
    method: Method,
    difficulty: FloatArray,
    plan: StepPlan,
    *,
    weight: int = 1,
) -> Uncertainty:
    """Estimate the uncertainty by leaving out one fold at a time.

    ``weight`` is what folds were multiplied by and the rates of the chain were not; ``plan`` says
    which items have steps, and the structure that the thresholds obey, if any.
    """
    with threads_for(len(difficulty)):
        structure = plan.build_structure(chain.linked)
        moves = _find_moves(folds, chain, method, difficulty, weight, structure)
    share = folds.persons / max(int(folds.persons.sum()), 1)
    scaled = moves * np.sqrt(1 - share)[:, None]
    lost = ~np.isfinite(scaled).all(axis=0)
    thin = _is_thin(folds, chain) | lost | (lost.mean() > MANY_LOST)
    degrees = int((folds.persons > 0).sum()) - 1
    note = (
        f"standard errors by leaving out one of {folds.number} folds of persons at a time "
        f"({degrees} degrees of freedom)"
    )
    locations = plan.locate(chain.linked)
    # The items without a standard error; with steps, those that lack one of a step.
    thin_names = [plan.items[place] for place in np.unique(plan.item_of[chain.linked[thin]])]
    notes = (note, *([_explain_thin(thin_names)] if thin_names else []))
    errors = _sum_moves(scaled, thin) if locations is None else _sum_steps(scaled, thin, locations)
    if len(difficulty) > COVARIANCE_LIMIT:
        apart = errors.locations is None or errors.locations.covariance is None
        missing = NO_COVARIANCE if apart else NO_STEP_COVARIANCE
        notes += (f"{missing}standard errors only",)
    se_method = f"{note[0].upper()}{note[1:]}."
    return replace(errors, notes=notes, degrees=degrees, se_method=se_method)


def _sum_moves(moves: FloatArray, thin: BoolArray) -> Uncertainty:
    """Return standard errors of moves ``[fold, item]``, and the covariance where it is complete."""
    se = np.sqrt((moves**2).sum(axis=0))
    se[thin] = np.nan
    complete = len(se) <= COVARIANCE_LIMIT and not thin.any()
    return Uncertainty(se, moves.T @ moves if complete else None)


def _sum_steps(moves: FloatArray, thin: BoolArray, locations: Locations) -> Uncertainty:
    """Return standard errors of thresholds and of locations from moves ``[fold, node]``."""
    # A step that only one fold links does not move the mean of the others.
    moves = np.where(np.isfinite(moves).all(axis=0), moves, 0.0).T
    nodes = _sum_moves(locations.centre(moves).T, thin)
    thin_items = locations.average(thin.astype(np.float64)) > 0
    return replace(nodes, locations=_sum_moves(locations.find(moves).T, thin_items))


def _find_moves(
    folds: FoldCounts,
    chain: Chain,
    method: Method,
    difficulty: FloatArray,
    weight: int,
    structure: Structure,
) -> FloatArray:
    """Return how far the difficulties move without each fold, ``[fold, item]``."""
    surprise = method.scoring(difficulty).residual(difficulty[:, None], difficulty[None, :])
    # Folds are kept of so few items only that a matrix between all of them is small.
    rates = chain.rates if isinstance(chain.rates, np.ndarray) else chain.rates.toarray()
    moves = np.zeros((folds.number, len(difficulty)))
    for fold in np.flatnonzero(folds.persons):
        counts = folds.right_wrong[fold][np.ix_(chain.linked, chain.linked)] / weight
        flow = counts * surprise
        score = flow.sum(axis=1) - flow.sum(axis=0)
        laplacian = method.laplacian(rates - counts, difficulty)
        if structure.is_identity:
            moves[fold] = _move(laplacian, score)
        else:
            moves[fold] = structure.invert(laplacian) @ score
    return moves


def _move(laplacian: Laplacian, score: FloatArray) -> FloatArray:
    """Return the Newton step; NaN for items that nobody else links to the others."""
    linked = find_reached(laplacian.weights, int(np.argmax(laplacian.diagonal)))
    step = np.full(len(score), np.nan)
    if linked.all():
        return solve(laplacian, score)
    part = build_laplacian(laplacian.weights[np.ix_(linked, linked)])
    step[linked] = solve(part, score[linked] - score[linked].mean())
    return step


def _is_thin(folds: FoldCounts, chain: Chain) -> BoolArray:
    """Say which of the linked items were answered in too few folds."""
    answered = (folds.answers[:, chain.linked] > 0).sum(axis=0)
    return np.asarray(answered < FEWEST_FOLDS)


def _explain_thin(names: list[str]) -> FitWarning:
    sentence = (
        f"no standard error for {count_of(len(names))} answered (or, with steps, in some category) "
        f"by persons of too few folds (fewer than {FEWEST_FOLDS}, or linked to the others by one "
        f"alone): {name_some(names)}. Fit the answers themselves, or count more persons"
    )
    return FitWarning(WarningKind.NO_STANDARD_ERRORS, sentence, names)
