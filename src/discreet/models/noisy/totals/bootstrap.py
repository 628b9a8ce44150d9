"""How far the fit of totals really scatters.

In: a state of the fit. Out: the covariance of the thresholds. The linearised posterior says how
errors of items, of mean abilities, of the pattern and of the shape of abilities hang together; a
small bootstrap from released values only stretches it to what refits of drawn truths show.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discreet.models.noisy import HONEST_SPREAD
from discreet.models.noisy.iterate import smooth_ratio, temper_ratios
from discreet.models.noisy.margins import PUBLIC_SEED
from discreet.models.noisy.totals.covariance import Shared, around_part, location_part
from discreet.models.noisy.totals.equations import count_takers
from discreet.models.noisy.totals.iterate import (
    HIGHEST_SHAPE,
    LOWEST_SHAPE,
    TotalsProblem,
    TotalsState,
    linearise,
    settle,
    solve_step,
)
from discreet.models.noisy.totals.linear import Inner, Outer
from discreet.models.noisy.totals.model import Ladders
from discreet.models.noisy.totals.simulate import Measure, redraw_forms
from discreet.models.noisy.totals.takers import Spreads
from discreet.types import FloatArray

HONEST_STEP = 0.3
"""Intervals never assume that steps differ less than this from their pattern."""

POOLED_ERRORS = 1500
FEWEST_DRAWS, MOST_DRAWS = 4, 30
"""Squared errors to pool, and how often truths are drawn."""

REFIT_ROUNDS = 6

SMALLEST_VARIANCE = 1e-6
"""Below this the prior alone decides, as about the steps of a rating scale around each other."""


@dataclass(frozen=True, eq=False)
class LinearPosterior:
    """The linearised posterior: independent parts, and how they add up.

    An error of the thresholds is ``own + lever common + by_outer outer``, and of the outer
    parameters ``by_own own + by_common common + alone``.
    """

    inner: Inner
    outer: Outer
    alone: FloatArray

    def covariance(self, ladders: Ladders) -> Shared:
        """Covariance of all thresholds, their mean location held at zero."""
        outer_loads = np.einsum("iab,rib->iar", self.inner.block, self.outer.by_threshold)
        loads = np.concatenate([self.inner.lever, self.inner.by_outer, outer_loads], axis=2)
        block = self.inner.block * (ladders.open[:, :, None] & ladders.open[:, None, :])
        return Shared(block, loads, self._core()).centre(ladders)

    def _core(self) -> FloatArray:
        """Covariance of common errors, outer errors, and what links outer to own ones."""
        common, outer = self.inner.common, self.outer.covariance
        cross = common @ self.outer.by_common.T
        none = np.zeros((len(common), len(outer)))
        same = np.eye(len(outer))
        return np.block(
            [[common, cross, none], [cross.T, outer, same], [none.T, same, np.zeros_like(same)]]
        )

    def draw(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Draw errors of thresholds, of common and of outer parameters."""
        block_errors = _draw_normal(self.inner.block, rng)
        common = _draw_normal(self.inner.common, rng)
        outer = np.tensordot(self.outer.by_threshold, block_errors, axes=2)
        outer = outer + self.outer.by_common @ common + _draw_normal(self.alone, rng)
        thresholds = block_errors + self.inner.lever @ common + self.inner.by_outer @ outer
        return thresholds, common + self.inner.common_by_outer @ outer, outer


def _draw_normal(covariance: FloatArray, rng: np.random.Generator) -> FloatArray:
    values, vectors = np.linalg.eigh(covariance)
    normal = np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(values.shape)
    return np.asarray((vectors @ normal[..., None])[..., 0])


def honest_spreads(problem: TotalsProblem, spreads: Spreads) -> Spreads:
    """Return spreads that are not too small for an interval."""
    step = spreads.step if problem.rating_scale else max(spreads.step, HONEST_STEP)
    return Spreads(max(spreads.location, HONEST_SPREAD), step)


def posterior_around(
    problem: TotalsProblem, state: TotalsState, spreads: Spreads
) -> LinearPosterior:
    """Return the linearised posterior around a state, for given spreads."""
    inner, outer = solve_step(problem, state, linearise(problem, state), spreads)
    block_product = np.einsum("iab,rib->ria", inner.block, outer.by_threshold)
    explained = np.tensordot(outer.by_threshold, block_product, axes=((1, 2), (1, 2)))
    explained += outer.by_common @ inner.common @ outer.by_common.T
    return LinearPosterior(inner, outer, outer.covariance - explained)


def bootstrap_covariance(
    problem: TotalsProblem, state: TotalsState, measure: Measure
) -> tuple[FloatArray, float]:
    """Covariance of all thresholds, item after item, and the mean stretch of its diagonal.

    Locations and steps around them are compared with their refits apart: what the linearised
    posterior leaves out (who took an item, say) moves whole items.
    """
    rng = np.random.default_rng(PUBLIC_SEED)
    ladders = problem.ladders
    posterior = posterior_around(problem, state, honest_spreads(problem, state.spreads))
    covariance = posterior.covariance(ladders)
    variance = covariance.variances()[ladders.open]
    draws = int(np.clip(np.ceil(POOLED_ERRORS / len(variance)), FEWEST_DRAWS, MOST_DRAWS))
    refits = [_refit(problem, state, posterior, measure, rng) for _ in range(draws)]
    truths, errors = (np.array(one) for one in zip(*refits, strict=True))
    reliability = float(np.clip(1 - variance.mean() / HONEST_SPREAD**2, 0.0, 1.0))
    location_projection, around = location_part(ladders), around_part(ladders)
    wider, longer = _doubt_takers(state)
    turn = np.zeros(posterior.inner.block.shape)
    for part, factor in ((location_projection, np.sqrt(wider)), (around, 1.0)):
        spread = covariance.turn(part).variances()
        missed = np.einsum("iab,dib->dia", part, errors)
        stretch = _stretch(truths, missed, spread, state.thresholds, reliability)
        turn += factor * stretch[..., None] * part
    location = np.einsum("iab,ib->ia", location_projection, state.thresholds)
    stretched = covariance.turn(turn).add(location, longer)
    ratio = stretched.variances()[ladders.open] / variance
    return stretched.fill(ladders), float(ratio.mean())


def _stretch(
    truths: FloatArray,
    errors: FloatArray,
    variance: FloatArray,
    thresholds: FloatArray,
    reliability: float,
) -> FloatArray:
    """Factor ``[item, step]`` of the standard error that errors ``[draw, item, step]`` ask for."""
    informative = np.broadcast_to(variance > SMALLEST_VARIANCE, errors.shape)
    if not informative.any():
        return np.ones(thresholds.shape)
    ratio = errors[informative] ** 2 / np.broadcast_to(variance, errors.shape)[informative]
    smooth = smooth_ratio(truths[informative], ratio, thresholds.ravel())
    return np.sqrt(temper_ratios(smooth, reliability)).reshape(thresholds.shape)


def _doubt_takers(state: TotalsState) -> tuple[float, float]:
    """Return the most that any form doubts who took what; one and zero where everybody did."""
    doubts = [one.slope.stretch_locations() for one in state.shifts if one is not None]
    return max(doubts, default=(1.0, 0.0))


def _refit(
    problem: TotalsProblem,
    state: TotalsState,
    posterior: LinearPosterior,
    measure: Measure,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Draw a truth and what it would release; return it, and the error of the fit to that."""
    truth = _draw_truth(problem, state, posterior, rng)
    forms = redraw_forms(problem, truth, measure, rng)
    simulated = replace(problem, forms=forms, numbers=tuple(map(count_takers, forms)))
    refit, _ = settle(simulated, state, REFIT_ROUNDS)
    return truth.thresholds, refit.thresholds - truth.thresholds


def _draw_truth(
    problem: TotalsProblem, state: TotalsState, posterior: LinearPosterior, rng: np.random.Generator
) -> TotalsState:
    step, common, outer = posterior.draw(rng)
    thresholds, shift = problem.ladders.centre(state.thresholds + step)
    forms = len(problem.forms)
    shapes = state.shapes + np.column_stack([common[:forms] - shift, outer.reshape(forms, -1)])
    shapes = np.clip(shapes, LOWEST_SHAPE, HIGHEST_SHAPE)
    return replace(state, thresholds=thresholds, shapes=shapes)
