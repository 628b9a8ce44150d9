"""Standard errors of the fit of totals, from simulated releases.

In: a state of the fit. Out: the covariance of the thresholds. The linearised posterior says how
errors of items, of mean abilities, of the pattern and of the shape of abilities hang together; a
small bootstrap from released values only stretches it to what refits of drawn truths show. Persons
are simulated and measured as the real ones were; of a large form only some thousands are, and
their scatter is scaled to the number of all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from discreet.models.noisy import HONEST_SPREAD
from discreet.models.noisy.fit import PUBLIC_SEED, smooth_ratio, temper_ratios
from discreet.models.noisy.totals import FormTotals
from discreet.models.noisy.totals.moments import (
    NODES,
    ExpectedMoments,
    Ladders,
    Numbers,
    count_takers,
)
from discreet.models.noisy.totals.solve import (
    HIGHEST_SHAPE,
    LOWEST_SHAPE,
    Inner,
    Linearised,
    Outer,
    TotalsProblem,
    TotalsState,
    linearise,
    settle,
    solve_step,
)
from discreet.models.noisy.totals.takers import Spreads, expected_standing
from discreet.types import FloatArray, Int8Array

# --- covariances: a block for each item, and directions that all share ---------------------------


@dataclass(frozen=True, eq=False)
class Shared:
    """``block + loads core loads'``, with zeros beyond an item's steps.

    Attributes
    ----------
    block
        ``[item, step, step]``.
    loads
        ``[item, step, direction]``.
    core
        ``[direction, direction]``, symmetric.
    """

    block: FloatArray
    loads: FloatArray
    core: FloatArray

    def variances(self) -> FloatArray:
        """Variances ``[item, step]``."""
        shared = np.einsum("iar,iar->ia", self.loads @ self.core, self.loads)
        return np.asarray(self.block.diagonal(axis1=1, axis2=2) + shared)

    def turn(self, matrix: FloatArray) -> Shared:
        """Return the covariance of ``matrix @ thresholds``, item by item."""
        block = matrix @ self.block @ matrix.transpose(0, 2, 1)
        return Shared(block, matrix @ self.loads, self.core)

    def add(self, direction: FloatArray, variance: float) -> Shared:
        """Return the sum with an error along one direction ``[item, step]``."""
        core = np.pad(self.core, (0, 1))
        core[-1, -1] = variance
        return Shared(self.block, np.concatenate([self.loads, direction[..., None]], axis=2), core)

    def centre(self, ladders: Ladders) -> Shared:
        """Return the covariance of thresholds whose mean location is held at zero."""
        everywhere = ladders.open.astype(np.float64)
        weight = everywhere / ladders.steps[:, None] / len(ladders.steps)
        weighted = np.einsum("iab,ib->ia", self.block, weight)
        moved = np.einsum("ia,iar->r", weight, self.loads)
        loads = self.loads - everywhere[..., None] * moved
        core = np.zeros((len(self.core) + 2,) * 2)
        core[:-2, :-2] = self.core
        core[-2:, -2:] = [[float((weight * weighted).sum()), -1.0], [-1.0, 0.0]]
        shift_loads = np.stack([everywhere, weighted], axis=2)
        return Shared(self.block, np.concatenate([loads, shift_loads], axis=2), core)

    def fill(self, ladders: Ladders) -> FloatArray:
        """Return the full matrix over the steps that items have, item after item."""
        is_open = ladders.open
        loads = self.loads[is_open]
        out = (loads @ self.core) @ loads.T
        position = np.cumsum(is_open.ravel()).reshape(is_open.shape) - 1
        item, row, column = np.nonzero(is_open[:, :, None] & is_open[:, None, :])
        out[position[item, row], position[item, column]] += self.block[item, row, column]
        return np.asarray(out)


def location_part(ladders: Ladders) -> FloatArray:
    """Return the matrices ``[item, step, step]`` that put a location at each of its steps."""
    open_pairs = ladders.open[:, :, None] & ladders.open[:, None, :]
    return np.asarray(open_pairs / ladders.steps[:, None, None])


# --- what would be released if a state were the truth --------------------------------------------


#: Codes ``[person, own item]`` of persons in a form (-1: no answer), and its number, to their
#: exact statistics; noise arrays may be zero.
Measure = Callable[[Int8Array, int], FormTotals]

#: Persons simulated of one form, at most.
MOST_PERSONS = 2000


def _redraw(
    problem: TotalsProblem,
    number: int,
    around: Linearised,
    measure: Measure,
    rng: np.random.Generator,
) -> FormTotals:
    expected, moment = around.expected[number], around.moments[number].mean
    form, numbers = problem.forms[number], problem.numbers[number]
    persons = max(round(numbers.persons), 1)
    n_simulated = min(persons, MOST_PERSONS)
    codes = simulate_form_answers(form, numbers, expected, n_simulated, rng)
    exact = measure(codes, number)
    if n_simulated < persons:
        steps = problem.ladders.steps[form.columns]
        standing = expected_standing(expected, numbers, steps)[0]
        exact = _scale_up(exact, expected, moment, standing, persons / n_simulated)
    return _add_noise(form, exact, numbers.persons, rng)


def simulate_form_answers(
    form: FormTotals,
    numbers: Numbers,
    expected: ExpectedMoments,
    persons: int,
    rng: np.random.Generator,
) -> Int8Array:
    """Simulate answers ``[person, own item]``, -1 where there is none."""
    node = rng.choice(len(NODES), persons, p=expected.overall / expected.overall.sum())
    passed = np.cumsum(expected.chance, axis=1)[:, :-1].transpose(1, 2, 0)
    coin = rng.random((persons, len(form.columns)))
    codes = np.zeros(coin.shape, dtype=np.int8)
    for below in passed:
        codes += coin > below[node]
    if not form.complete:
        # Draw who takes what: about as many items each, as often as the items were taken.
        odds = np.log(np.maximum(expected.takers[:, None] * expected.weight, 1e-300)).T[node]
        key = odds + rng.gumbel(size=odds.shape)
        floor = int(numbers.answers)
        answers = floor + (rng.random(len(node)) < numbers.answers - floor)
        rank = np.argsort(np.argsort(-key, axis=1), axis=1)
        codes[~np.asarray(rank < answers[:, None])] = -1
    return codes


def _scale_up(
    exact: FormTotals,
    expected: ExpectedMoments,
    moment: FloatArray,
    standing: FloatArray,
    factor: float,
) -> FormTotals:
    """Multiply what is expected by the factor, and the scatter around it by its root."""
    share = expected.chance * expected.weight[:, None, :]
    takers = expected.takers / factor
    category = takers[:, None] * share.sum(axis=2)

    def scale(value: FloatArray, mean: FloatArray) -> FloatArray:
        return np.asarray(factor * mean + np.sqrt(factor) * (value - mean))

    return replace(
        exact,
        category=scale(exact.category, category),
        moment=scale(exact.moment, exact.contributing * moment),
        contributing=factor * exact.contributing,
        takers=None if exact.takers is None else scale(exact.takers, takers * standing),
    )


def _add_noise(
    form: FormTotals, exact: FormTotals, persons: float, rng: np.random.Generator
) -> FormTotals:
    """Add noise as the release did it, normal instead of discrete."""
    category = draw_normal(form.category_noise, rng)
    moment = np.sqrt(form.moment_noise) * rng.standard_normal(len(form.moment))
    alone = rng.standard_normal(2) * np.sqrt([form.contributing_noise, form.persons_noise])
    takers = exact.takers
    if takers is not None:
        takers = takers + np.sqrt(form.takers_noise) * rng.standard_normal(len(takers))
    return replace(
        form,
        category=exact.category + category,
        moment=exact.moment + moment,
        contributing=exact.contributing + alone[0],
        takers=takers,
        persons=persons + alone[1],
    )


# --- the bootstrap -------------------------------------------------------------------------------


#: Intervals never assume that steps differ less than this from their pattern.
HONEST_STEP = 0.3

POOLED_ERRORS = 1500
#: Squared errors to pool, and how often truths are drawn.
FEWEST_DRAWS, MOST_DRAWS = 4, 30

REFIT_ROUNDS = 6

#: Below this the prior alone decides, as about the steps of a rating scale around each other.
SMALLEST_VARIANCE = 1e-6


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
        # Covariance of common errors, outer errors, and what links outer to own ones.
        common, outer = self.inner.common, self.outer.covariance
        cross = common @ self.outer.by_common.T
        none = np.zeros((len(common), len(outer)))
        same = np.eye(len(outer))
        core = np.block(
            [[common, cross, none], [cross.T, outer, same], [none.T, same, np.zeros_like(same)]]
        )
        return Shared(block, loads, core).centre(ladders)

    def draw(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Draw errors of thresholds, of common and of outer parameters."""
        block_errors = draw_normal(self.inner.block, rng)
        common = draw_normal(self.inner.common, rng)
        outer = np.tensordot(self.outer.by_threshold, block_errors, axes=2)
        outer = outer + self.outer.by_common @ common + draw_normal(self.alone, rng)
        thresholds = block_errors + self.inner.lever @ common + self.inner.by_outer @ outer
        return thresholds, common + self.inner.common_by_outer @ outer, outer


def draw_normal(covariance: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw by the symmetric root; eigenvectors alone may be others on another machine."""
    values, vectors = np.linalg.eigh(covariance)
    turned = rng.standard_normal(values.shape)[..., None, :] @ vectors
    scaled = turned * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    return np.asarray((scaled @ vectors.swapaxes(-1, -2))[..., 0, :])


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
    # Spreads that are not too small for an interval.
    step = state.spreads.step if problem.rating_scale else max(state.spreads.step, HONEST_STEP)
    posterior = posterior_around(
        problem, state, Spreads(max(state.spreads.location, HONEST_SPREAD), step)
    )
    covariance = posterior.covariance(ladders)
    variance = covariance.variances()[ladders.open]
    draws = int(np.clip(np.ceil(POOLED_ERRORS / len(variance)), FEWEST_DRAWS, MOST_DRAWS))
    refits = [_refit(problem, state, posterior, measure, rng) for _ in range(draws)]
    truths, errors = (np.array(one) for one in zip(*refits, strict=True))
    reliability = float(np.clip(1 - variance.mean() / HONEST_SPREAD**2, 0.0, 1.0))
    # The matrices that leave what is around the location.
    identity = ladders.open[:, :, None] * np.eye(ladders.open.shape[1])
    location_projection = location_part(ladders)
    around = identity - location_projection
    # The largest factors for unknown takers over forms; one and zero where all took all.
    factors = [one.slope.stretch_locations() for one in state.shifts if one is not None]
    wider, longer = max(factors, default=(1.0, 0.0))
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


def _refit(
    problem: TotalsProblem,
    state: TotalsState,
    posterior: LinearPosterior,
    measure: Measure,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Draw a truth and what it would release; return it, and the error of the fit to that."""
    truth = _draw_truth(problem, state, posterior, rng)
    # Draw released values of every form as if the state were the truth.
    around = linearise(problem, truth)
    forms = tuple(
        _redraw(problem, number, around, measure, rng) for number in range(len(problem.forms))
    )
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
