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
from discreet.counts.matrix import Locations
from discreet.counts.pairs import Weighting
from discreet.counts.planes import AnswerStore, BitPlanes
from discreet.errors import FitWarning
from discreet.models.laplacian import Laplacian
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
from discreet.models.structure import Structure
from discreet.models.weak_links import WeakLinks
from discreet.threads import map_tasks, one_blas_thread, thread_count, threads_for
from discreet.types import FloatArray, IndexArray, Int64Array

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
        from discreet.models.standard_errors.random_signs import LinearSystem, ManyPlan

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
        from discreet.models.standard_errors.random_signs import ScoreRows

        return Sandwich(ScoreRows(plan), lambda scores: _finish_few(scores, inverse))
    return Sandwich(SumProducts(plan), lambda products: _finish(products, plan, inverse, n_persons))


def _finish_few(scores: Any, inverse: FloatArray) -> Uncertainty:
    rows = scores.toarray()
    moves = inverse @ rows.T
    se = np.sqrt((moves**2).sum(axis=1))
    se_method = tell_persons(scores.shape[0], sampled=False)
    return Uncertainty(se, moves @ moves.T, se_method=se_method, products=rows.T @ rows)


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
