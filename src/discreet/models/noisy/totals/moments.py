"""Moments of scores, linearised: how abilities spread, lean and bunch.

In: what the model expects of one form. Out: expected moments of a person, how they move with
thresholds and abilities, and how they scatter. ``h_r`` is the mean over r answers of a person of
the product of ``z = 2 x / steps - 1``; given the ability its expectation is a mean of products of
expectations, whichever items were answered.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from discreet.models.noisy.totals import FormTotals
from discreet.models.noisy.totals.equations import ExpectedMoments, Numbers
from discreet.models.noisy.totals.model import FOURTH, NODES, lean_slope
from discreet.types import FloatArray, IndexArray

POLYNOMIALS = np.array([[0.0, 2.0, 0.0, 0.0], [-3.0, 0.0, 4.0, 0.0], [0.0, -8.0, 0.0, 8.0]])
CONSTANTS = np.array([-1.0, 0.0, 1.0])
"""T2, T3 and T4 as sums of h1 to h4 and a constant."""

LEAST_SHARE = 0.01
"""Part that an item keeps among persons of any ability, against that of a mean item. Where takers
differ much, the most able may have been given a single item, and products of four have no mean."""


@dataclass(frozen=True, eq=False)
class MomentsView:
    """Moments of one form, per person.

    Attributes
    ----------
    mean
        Expected.
    surprise
        Released less expected.
    by_threshold
        ``[moment, own item, step]``.
    by_shape
        ``[moment, 4]``.
    noise
        Covariance: privacy noise and answers given abilities.
    """

    mean: FloatArray
    surprise: FloatArray
    by_threshold: FloatArray
    by_shape: FloatArray
    noise: FloatArray


def view_moments(
    form: FormTotals,
    numbers: Numbers,
    expected: ExpectedMoments,
    steps: IndexArray,
    shape: FloatArray,
) -> MomentsView:
    """Linearise the moments of one form; ``steps`` are those of its items."""
    size = len(form.moment)
    basis, constants = POLYNOMIALS[:size, : size + 1], CONSTANTS[:size]
    means, by_threshold, by_shape = _means_and_slopes(expected, steps, shape, size + 1)
    released, noise = _mean_moments(form, numbers)
    sampling = basis @ _scatter_of_means(numbers, expected, steps, size + 1) @ basis.T
    mean = basis @ means + constants
    return MomentsView(
        mean,
        released - mean,
        np.tensordot(basis, by_threshold, axes=(1, 0)),
        basis @ by_shape,
        noise + sampling,
    )


def _mean_moments(form: FormTotals, numbers: Numbers) -> tuple[FloatArray, FloatArray]:
    """Released moments of a mean person, and the covariance of their noise."""
    contributing, doubt = numbers.contributing, numbers.doubt
    mean = np.clip(form.moment / contributing, -1.0, 1.0)
    noise = np.diag(form.moment_noise) + doubt * np.outer(mean, mean)
    return mean, np.asarray(noise / contributing**2 + 1e-12 * np.eye(len(mean)))


def elementary_sums(values: FloatArray, order: int) -> list[FloatArray]:
    """Return sums over all sets of 0, 1, .. order rows of the product of their values.

    Examples
    --------
    >>> [float(one) for one in elementary_sums(np.array([1.0, 2.0, 3.0]), 3)]
    [1.0, 6.0, 11.0, 6.0]
    """
    powers = [(values**k).sum(axis=0) for k in range(1, order + 1)]
    sums = [np.ones(values.shape[1:])]
    for r in range(1, order + 1):
        terms = [(-1) ** k * sums[r - 1 - k] * powers[k] for k in range(r)]
        sums.append(np.asarray(sum(terms) / r))
    return sums


def _means_and_slopes(
    expected: ExpectedMoments, steps: IndexArray, shape: FloatArray, order: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """h1 .. h_order, and how they move with the thresholds and with the shape."""
    overall = expected.overall
    share = expected.weight * (expected.takers / expected.takers.mean())[:, None]
    share = np.maximum(share / np.maximum(overall, 1e-12), LEAST_SHARE)
    value = share * (2 * expected.score / steps[:, None] - 1)
    sums, ways = elementary_sums(value, order), elementary_sums(share, order)
    falling = _score_slopes(expected, steps)
    rising = 2 * expected.variance / steps[:, None]
    lean = lean_slope(shape, NODES)
    tilts = [overall * (tilt - overall @ tilt) for tilt in (lean, FOURTH)]
    means, by_threshold, by_shape = [], [], []
    without = np.ones_like(value)
    for r in range(1, order + 1):
        mean = sums[r] / ways[r]
        slope = share * without / ways[r]
        climb = (slope * rising).sum(axis=0) * overall
        means.append(mean @ overall)
        by_threshold.append(np.einsum("it,ijt->ij", slope * overall, falling))
        along = [climb.sum(), climb @ (expected.scale * NODES), *(mean @ tilt for tilt in tilts)]
        by_shape.append(np.array(along))
        without = sums[r] - value * without
    return np.array(means), np.array(by_threshold), np.array(by_shape)


def _score_slopes(expected: ExpectedMoments, steps: IndexArray) -> FloatArray:
    """How ``z`` moves with the thresholds, ``[own item, step, node]``."""
    category = np.arange(expected.chance.shape[1])[:, None]
    above = np.cumsum((expected.chance * category)[:, ::-1], axis=1)[:, ::-1][:, 1:]
    reached = np.cumsum(expected.chance[:, ::-1], axis=1)[:, ::-1][:, 1:]
    covariance = above - expected.score[:, None, :] * reached
    return np.asarray(covariance * (-2 / steps[:, None, None]))


def _scatter_of_means(
    numbers: Numbers, expected: ExpectedMoments, steps: IndexArray, order: int
) -> FloatArray:
    """Covariance of h1 .. h_order over persons, given their abilities.

    For q independent values with mean u and variance v, h_r and h_s have the covariance
    ``sum_j C(r, j) C(s, j) / C(q, j) v^j u^(r + s - 2 j)``.
    """
    centre = (2 * expected.score / steps[:, None] - 1).mean(axis=0)
    spread = (4 * expected.variance / steps[:, None] ** 2).mean(axis=0)
    answers = max(numbers.answers, float(order))
    out = np.zeros((order, order))
    ways = 1.0
    for j in range(1, order + 1):
        ways *= (answers - j + 1) / j
        rows = np.array([comb(r, j) * centre ** max(r - j, 0) for r in range(1, order + 1)])
        out += (rows * (expected.overall * spread**j)) @ rows.T / ways
    return out / numbers.persons
