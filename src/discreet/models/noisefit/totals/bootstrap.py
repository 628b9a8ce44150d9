"""How far the fit of totals really scatters.

In: a state of the fit. Out: the covariance of the thresholds. The linearised posterior says how
errors of items, of mean abilities, of the pattern and of the shape of abilities hang together; a
small bootstrap from released values only stretches it to what refits of drawn truths show.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discreet.models.noisefit import HONEST_SPREAD
from discreet.models.noisefit.iterate import smooth_ratio, temper_ratios
from discreet.models.noisefit.margins import PUBLIC_SEED
from discreet.models.noisefit.totals.equations import count_takers
from discreet.models.noisefit.totals.iterate import (
    HIGHEST_SHAPE,
    LOWEST_SHAPE,
    Problem,
    State,
    linearise,
    settle,
    solve_step,
)
from discreet.models.noisefit.totals.linear import Inner, Outer
from discreet.models.noisefit.totals.model import Ladders
from discreet.models.noisefit.totals.prior import Spreads
from discreet.models.noisefit.totals.simulate import Measure, redraw_forms
from discreet.types import FloatArray

HONEST_STEP = 0.3
"""Intervals never assume that steps differ less than this from their pattern."""

POOLED_ERRORS = 1500
FEWEST_DRAWS, MOST_DRAWS = 4, 30
"""Squared errors to pool, and how often truths are drawn."""

REFIT_ROUNDS = 6

SMALLEST_VARIANCE = 1e-6
"""Below this the prior alone decides, as about the steps of a rating scale around each other."""

STRETCH_DOUBT = 0.3
"""Share by which all thresholds may be stretched for each unit of the takers' slope."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """The linearised posterior: independent parts, and how they add up.

    An error of the thresholds is ``own + lever common + by_outer outer``, and of the outer
    parameters ``by_own own + by_common common + alone``.
    """

    inner: Inner
    outer: Outer
    alone: FloatArray

    def covariance(self) -> FloatArray:
        """Covariance of all thresholds ``[item x step]``, in places of a full table."""
        m, widest = self.inner.block.shape[:2]
        size = m * widest
        own = np.einsum("iab,rib->iar", self.inner.block, self.outer.by_threshold)
        parts = [one.reshape(size, -1) for one in (self.inner.lever, self.inner.by_outer, own)]
        loads = np.concatenate(parts, axis=1)
        out = loads @ self._core() @ loads.T
        blocks = out.reshape(m, widest, m, widest)
        blocks[np.arange(m), :, np.arange(m), :] += self.inner.block
        return np.asarray(out)

    def _core(self) -> FloatArray:
        """Covariance of common errors, outer errors, and what links outer to own ones."""
        common, outer = self.inner.common, self.outer.covariance
        both = common @ self.outer.by_common.T
        none = np.zeros((len(common), len(outer)))
        same = np.eye(len(outer))
        return np.block(
            [[common, both, none], [both.T, outer, same], [none.T, same, np.zeros_like(same)]]
        )

    def draw(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Draw errors of thresholds, of common and of outer parameters."""
        own = _draw_normal(self.inner.block, rng)
        common = _draw_normal(self.inner.common, rng)
        outer = np.tensordot(self.outer.by_threshold, own, axes=2)
        outer = outer + self.outer.by_common @ common + _draw_normal(self.alone, rng)
        thresholds = own + self.inner.lever @ common + self.inner.by_outer @ outer
        return thresholds, common + self.inner.common_by_outer @ outer, outer


def _draw_normal(covariance: FloatArray, rng: np.random.Generator) -> FloatArray:
    values, vectors = np.linalg.eigh(covariance)
    normal = np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(values.shape)
    return np.asarray((vectors @ normal[..., None])[..., 0])


def honest_spreads(problem: Problem, spreads: Spreads) -> Spreads:
    """Return spreads that are not too small for an interval."""
    step = spreads.step if problem.rating_scale else max(spreads.step, HONEST_STEP)
    return Spreads(max(spreads.location, HONEST_SPREAD), step)


def posterior_around(problem: Problem, state: State, spreads: Spreads) -> Posterior:
    """Return the linearised posterior around a state, for given spreads."""
    inner, outer = solve_step(problem, state, linearise(problem, state), spreads)
    own = np.einsum("iab,rib->ria", inner.block, outer.by_threshold)
    explained = np.tensordot(outer.by_threshold, own, axes=((1, 2), (1, 2)))
    explained += outer.by_common @ inner.common @ outer.by_common.T
    return Posterior(inner, outer, outer.covariance - explained)


def bootstrap_covariance(
    problem: Problem, state: State, measure: Measure
) -> tuple[FloatArray, float]:
    """Covariance of all thresholds, item after item, and the mean stretch of its diagonal.

    Locations and steps around them are compared with their refits apart: what the linearised
    posterior leaves out (who took an item, say) moves whole items.
    """
    rng = np.random.default_rng(PUBLIC_SEED)
    posterior = posterior_around(problem, state, honest_spreads(problem, state.spreads))
    parts = Parts(problem.ladders)
    covariance = keep_and_centre(posterior.covariance(), problem.ladders)
    draws = int(np.clip(np.ceil(POOLED_ERRORS / len(covariance)), FEWEST_DRAWS, MOST_DRAWS))
    refits = [_refit(problem, state, posterior, measure, rng) for _ in range(draws)]
    truths, errors = (np.array(one).T for one in zip(*refits, strict=True))
    own = state.thresholds[problem.ladders.open]
    variance = float(np.diag(covariance).mean())
    reliability = float(np.clip(1 - variance / HONEST_SPREAD**2, 0.0, 1.0))
    scales = []
    for part in (parts.locations, parts.around):
        spread = np.maximum(np.diag(part(part(covariance).T)), 1e-12)[:, None]
        ratio = part(errors) ** 2 / spread
        seen = np.broadcast_to(spread > SMALLEST_VARIANCE, ratio.shape)
        scales.append(_stretch(truths[seen], ratio[seen], own, reliability))

    def stretch(matrix: FloatArray) -> FloatArray:
        whole = parts.locations(matrix)
        return np.asarray(scales[0] * whole + scales[1] * (matrix - whole))

    stretched = stretch(stretch(covariance).T) + doubt_of_takers(problem, state)
    ratio = np.diag(stretched) / np.maximum(np.diag(covariance), 1e-12)
    return stretched, float(ratio.mean())


@dataclass(frozen=True, eq=False)
class Parts:
    """Locations, and steps around them, of values that stand below each other by threshold."""

    ladders: Ladders

    def locations(self, values: FloatArray) -> FloatArray:
        """Return the mean over the steps of each item, at every one of them."""
        steps = self.ladders.steps
        first = np.cumsum(steps) - steps
        sums = np.add.reduceat(values, first.astype(np.intp), axis=0)
        return np.repeat(sums / steps[:, None], steps, axis=0)

    def around(self, values: FloatArray) -> FloatArray:
        """Return what is left without the locations."""
        return np.asarray(values - self.locations(values))


def _stretch(
    truth: FloatArray, ratio: FloatArray, own: FloatArray, reliability: float
) -> FloatArray:
    """Factor ``[threshold, 1]`` of the standard error that squared errors of refits ask for."""
    if not len(ratio):
        return np.ones((len(own), 1))
    tempered = temper_ratios(smooth_ratio(truth, ratio, own), reliability)
    return np.asarray(np.sqrt(tempered)[:, None])


def doubt_of_takers(problem: Problem, state: State) -> FloatArray:
    """Covariance for what a line says too simply about who took what.

    Where takers get abler with difficulty, they also get more alike, and lean towards the middle.
    Taking no notice stretches or shrinks all thresholds, by up to a seventh where takers are half a
    logit abler for each logit of difficulty.
    """
    own = state.thresholds[problem.ladders.open]
    slopes = [abs(one.slope) for one in state.shifts if one is not None]
    share = STRETCH_DOUBT * max(slopes, default=0.0)
    return np.asarray(share**2 * np.outer(own, own))


def _refit(
    problem: Problem,
    state: State,
    posterior: Posterior,
    measure: Measure,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Draw a truth and what it would release; return it, and the error of the fit to that."""
    truth = _draw_truth(problem, state, posterior, rng)
    forms = redraw_forms(problem, truth, measure, rng)
    drawn = replace(problem, forms=forms, numbers=tuple(map(count_takers, forms)))
    again, _ = settle(drawn, state, REFIT_ROUNDS)
    is_open = problem.ladders.open
    return truth.thresholds[is_open], (again.thresholds - truth.thresholds)[is_open]


def _draw_truth(
    problem: Problem, state: State, posterior: Posterior, rng: np.random.Generator
) -> State:
    step, common, outer = posterior.draw(rng)
    thresholds, shift = problem.ladders.centre(state.thresholds + step)
    forms = len(problem.forms)
    shapes = state.shapes + np.column_stack([common[:forms] - shift, outer.reshape(forms, -1)])
    shapes = np.clip(shapes, LOWEST_SHAPE, HIGHEST_SHAPE)
    return replace(state, thresholds=thresholds, shapes=shapes)


def keep_and_centre(covariance: FloatArray, ladders: Ladders) -> FloatArray:
    """Keep the steps that items have, and hold the mean location at zero."""
    kept = np.flatnonzero(ladders.open.ravel())
    inner = covariance[np.ix_(kept, kept)]
    weight = np.repeat(1 / ladders.steps / len(ladders.steps), ladders.steps)
    rows = inner - weight @ inner
    return np.asarray(rows - (rows @ weight)[:, None])
