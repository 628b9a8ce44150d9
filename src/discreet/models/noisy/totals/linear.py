"""One linear step over all forms: thresholds given abilities, abilities from the moments.

In: views of all forms around a state. Out: the step to the next state, with the covariance of the
linearised posterior. The totals decide about thresholds, the mean ability of each form and the
common pattern of steps; scale, lean and bunching come from the moments only, with what
they do to all the rest taken into account. A joint maximum would let the shrinkage of thresholds
shrink the abilities too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.models.noisy.totals import FormTotals
from discreet.models.noisy.totals.equations import TotalsView
from discreet.models.noisy.totals.model import SHAPE_SIZE, Ladders
from discreet.models.noisy.totals.moments import MomentsView
from discreet.models.noisy.totals.takers import Spreads
from discreet.types import FloatArray, IndexArray

PATTERN_SPREAD = 0.8
"""Prior standard deviation of the contrasts of the common pattern around the usual one."""

SHAPE_DOUBT = np.array([0.25, 0.4, 0.8])
"""Prior standard deviations of log scale, lean and bunching."""

FORMS_DIFFER = np.array([0.5, 0.5, 0.5])
"""By how much those of one form deviate from those of all, in units of the same."""

MEANS_DIFFER = 1.0
"""The same for the mean abilities of forms, in logits."""

MOST_BUNCHING = 0.1
"""Beyond, the density climbs again at the ends of the grid."""


@dataclass(frozen=True, eq=False)
class System:
    """Normal equations of all forms; ``common`` are means of abilities and the pattern.

    Attributes
    ----------
    information, score
        Of the thresholds, prior excluded, ``[item, step, step]`` and ``[item, step]``.
    cross
        ``[item, step, parameter]``: four of each form, then the pattern.
    common_information, common_score
        Of these parameters.
    """

    information: FloatArray
    score: FloatArray
    cross: FloatArray
    common_information: FloatArray
    common_score: FloatArray


@dataclass(frozen=True, eq=False)
class Inner:
    """Thresholds, mean abilities and pattern as linear functions of the outer parameters.

    ``block`` is the posterior covariance of the thresholds of each item given the inner common
    parameters, whose covariance is ``common``; ``lever`` says how thresholds move with them.
    """

    step: FloatArray
    by_outer: FloatArray
    common_step: FloatArray
    common_by_outer: FloatArray
    block: FloatArray
    common: FloatArray
    lever: FloatArray


@dataclass(frozen=True, eq=False)
class Outer:
    """Step of the outer parameters, their covariance, and how inner errors enter them."""

    step: FloatArray
    covariance: FloatArray
    by_threshold: FloatArray
    by_common: FloatArray


def inner_places(forms: int, pattern: int) -> IndexArray:
    """Places of the mean abilities and the pattern among the common parameters."""
    mean_positions = np.arange(forms) * SHAPE_SIZE
    return np.concatenate([mean_positions, SHAPE_SIZE * forms + np.arange(pattern)]).astype(np.intp)


def outer_places(forms: int) -> IndexArray:
    """Places of log scale, lean and bunching of each form."""
    places = np.arange(forms * SHAPE_SIZE, dtype=np.intp)
    return places[places % SHAPE_SIZE > 0]


def gather(ladders: Ladders, forms: Sequence[FormTotals], views: Sequence[TotalsView]) -> System:
    """Add up the equations of all forms; the pattern's places stay empty."""
    m, widest, coefficients = ladders.pattern.shape
    size = SHAPE_SIZE * len(forms) + coefficients
    information, score = np.zeros((m, widest, widest)), np.zeros((m, widest))
    cross, common, target = np.zeros((m, widest, size)), np.zeros((size, size)), np.zeros(size)
    for number, (form, view) in enumerate(zip(forms, views, strict=True)):
        span = slice(SHAPE_SIZE * number, SHAPE_SIZE * (number + 1))
        information[form.columns] += view.information
        score[form.columns] += view.score
        cross[form.columns, :, span] += view.cross
        common[span, span] = view.shape_information
        target[span] = view.shape_score
    return System(information, score, cross, common, target)


def add_prior(
    system: System,
    ladders: Ladders,
    spreads: Spreads,
    thresholds: FloatArray,
    pattern: FloatArray,
    means: FloatArray,
) -> System:
    """Add the prior of thresholds around the pattern, of the pattern, and between the forms."""
    precision = ladders.precision(spreads.location, spreads.step)
    deviation = thresholds - ladders.pattern @ pattern
    pulled = precision @ ladders.pattern
    cross, common = system.cross.copy(), system.common_information.copy()
    target = system.common_score.copy()
    places = slice(SHAPE_SIZE * len(means), None)
    cross[:, :, places] = -pulled
    common[places, places] = np.tensordot(ladders.pattern, pulled, axes=((0, 1), (0, 1)))
    common[places, places] += np.eye(len(pattern)) / PATTERN_SPREAD**2
    target[places] = np.einsum("ija,ij->a", pulled, deviation)
    target[places] -= (pattern - ladders.usual) / PATTERN_SPREAD**2
    forms = np.arange(len(means)) * SHAPE_SIZE
    common[np.ix_(forms, forms)] += (np.eye(len(means)) - 1 / len(means)) / MEANS_DIFFER**2
    target[forms] -= (means - means.mean()) / MEANS_DIFFER**2
    score = system.score - np.einsum("iab,ib->ia", precision, deviation)
    information = system.information + precision + ladders.beyond
    return System(information, score, cross, common, target)


def solve_inner(system: System, inner: IndexArray, outer: IndexArray) -> Inner:
    """Eliminate the thresholds, then mean abilities and pattern."""
    block: FloatArray = np.asarray(np.linalg.inv(system.information))
    block_step = np.einsum("iab,ib->ia", block, system.score)
    lever = block @ system.cross
    left = system.common_information - np.tensordot(system.cross, lever, axes=((0, 1), (0, 1)))
    score = system.common_score - np.einsum("iac,ia->c", system.cross, block_step)
    common: FloatArray = np.asarray(np.linalg.inv(left[np.ix_(inner, inner)]))
    common_step = common @ score[inner]
    common_by_outer = -common @ left[np.ix_(inner, outer)]
    by_common = -lever[:, :, inner]
    return Inner(
        block_step + by_common @ common_step,
        by_common @ common_by_outer - lever[:, :, outer],
        common_step,
        common_by_outer,
        block,
        common,
        by_common,
    )


def prior_of_shapes(forms: int, tightness: FloatArray) -> FloatArray:
    """Prior precision of the outer parameters; ``tightness`` divides their doubt, per form."""
    doubt = np.concatenate([SHAPE_DOUBT * np.array([1.0, t, t]) for t in tightness])
    same = np.kron(np.ones((forms, forms)), np.eye(len(SHAPE_DOUBT)))
    between_forms = np.eye(len(doubt)) * np.tile(FORMS_DIFFER**2, forms) if forms > 1 else 0.0
    return np.asarray(np.linalg.inv((same + between_forms) * np.outer(doubt, doubt)))


def solve_outer(
    forms: Sequence[FormTotals],
    views: Sequence[MomentsView],
    inner: Inner,
    shapes: FloatArray,
    prior: FloatArray,
) -> Outer:
    """Solve for scale, lean and bunching of each form from the moments of all."""
    surprise = np.concatenate([view.surprise for view in views])
    by_threshold, by_shape, noise = _stack_moments(forms, views, inner.block.shape[:2])
    means = np.arange(len(forms)) * SHAPE_SIZE
    by_mean = np.zeros((len(surprise), len(inner.common)))
    by_mean[:, : len(forms)] = by_shape[:, means]
    slope = by_shape[:, outer_places(len(forms))] + by_mean @ inner.common_by_outer
    slope += np.tensordot(by_threshold, inner.by_outer, axes=2)
    surprise = surprise - np.tensordot(by_threshold, inner.step, axes=2)
    surprise -= by_mean @ inner.common_step
    by_common = by_mean + np.tensordot(by_threshold, inner.lever, axes=2)
    doubt = noise + by_common @ inner.common @ by_common.T
    spread = np.einsum("iab,rib->ria", inner.block, by_threshold)
    doubt += np.tensordot(by_threshold, spread, axes=((1, 2), (1, 2)))
    gain = np.linalg.solve(doubt, slope).T
    value = shapes[:, 1:].ravel()
    precision = gain @ slope + prior
    step = _bounded_step(precision, gain @ surprise - prior @ value, value)
    covariance: FloatArray = np.asarray(np.linalg.inv(precision))
    back = -covariance @ gain
    return Outer(step, covariance, np.tensordot(back, by_threshold, axes=1), back @ by_common)


def _stack_moments(
    forms: Sequence[FormTotals], views: Sequence[MomentsView], size: tuple[int, ...]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Put the moments of all forms below each other, over all thresholds and shapes."""
    rows = sum(len(view.surprise) for view in views)
    by_threshold, noise = np.zeros((rows, *size)), np.zeros((rows, rows))
    by_shape = np.zeros((rows, SHAPE_SIZE * len(forms)))
    first = 0
    for number, (form, view) in enumerate(zip(forms, views, strict=True)):
        span = slice(first, first + len(view.surprise))
        by_threshold[span, form.columns] = view.by_threshold
        by_shape[span, SHAPE_SIZE * number : SHAPE_SIZE * (number + 1)] = view.by_shape
        noise[span, span] = view.noise
        first = span.stop
    return by_threshold, by_shape, noise


def _bounded_step(precision: FloatArray, score: FloatArray, value: FloatArray) -> FloatArray:
    """Solve, and hold the bunching of those forms at its bound that would go beyond."""
    step = np.linalg.solve(precision, score)
    bound = np.where(np.arange(len(value)) % 3 == 2, MOST_BUNCHING, np.inf)
    held = value + step > bound
    if not held.any():
        return np.asarray(step)
    step[held] = bound[held] - value[held]
    free = ~held
    free_score = score[free] - precision[np.ix_(free, held)] @ step[held]
    step[free] = np.linalg.solve(precision[np.ix_(free, free)], free_score)
    return np.asarray(step)
