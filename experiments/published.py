"""The published algorithms, as published. NOT PRIVATE: for drawing the paper's figures only.

What is here follows the printed code of the supplement and the settings of the authors' scripts
(github.com/dnguyen1196/spectral-rasch), so that our figures can show the published curves. It must
never process real answers for release: whatever its epsilon says, it leaks. The library does not
import this module and offers none of it.

Flaws that are kept, because the published curves contain them, and their effect:

1. *Noise only where the count is not zero.* Which pairs nobody answered "right, wrong" is
   published exactly, so a single person can be seen: there is no differential privacy at any
   epsilon. In the figures this helps accuracy, most where there are many zero counts.
2. *The calibration.* ``epsilon / sqrt(2 ln(1 / delta)) / sqrt(pairs)`` drops a term of the
   conversion and counts pairs instead of bounding what one person moves. Too much noise below
   epsilon 1, too little above 7.5. The number of pairs is m (m - 1) in the lemma's proof and in
   the authors' script for real data; their script for synthetic data has half of it (`Pairs`).
   The lemma itself prints the variance as sqrt(m (m - 1)) / epsilon^2, which its proof
   contradicts; no script uses that.
3. *Clipping at 1* (``max(1, .)``) biases every small count upwards and pulls all difficulties
   together; with many items that, not the noise, is most of the error.
4. *lambda = 1* is added to both directions of every compared pair; next to the counts it is small.
5. *Power iteration* stops when a step is shorter than 1e-5, or after 1000 steps. The step is not
   the error: on a sparse chain it can stop early, without a word.
6. *Randomized response* is never debiased: flipped answers shrink all difficulties towards zero.
   Its epsilon is divided by the person's own number of answers, which is data (here everyone
   answers everything). The printed bisection for shuffling can return less than the epsilon
   without shuffling; the authors' scripts take the larger of the two, and so does this module.
7. *A sparse graph that is not connected* is used as it comes; items in a separate part then keep
   arbitrary levels relative to the others.

Replaced, because it changes no curve: the samplers. The printed ones decide by floating-point
coins; here the library's exact ones draw from a repeatable stream.
"""

from __future__ import annotations

from enum import Enum
from fractions import Fraction
from math import exp, log, sqrt

import numpy as np
import numpy.typing as npt

from discreet.privacy.noise import discrete_gaussian, discrete_laplace
from discreet.secure import RandomSource

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

REGULARISATION = 1.0
"""lambda of the printed code."""


class Pairs(Enum):
    """How many pairs a figure's calibration counts: m (m - 1), or half of it."""

    ORDERED = 1.0
    UNORDERED = 0.5


def split_epsilon(epsilon: float, delta: float, pairs: float) -> float:
    """Return the published epsilon of one pair count; its Gaussian noise has sigma 1 / that."""
    return epsilon / sqrt(2 * log(1 / delta)) / sqrt(pairs)


def draw_graph(m: int, probability: float, rng: np.random.Generator) -> BoolArray:
    """Erdos-Renyi graph as a symmetric matrix without a diagonal; connected or not."""
    upper = np.triu(rng.random((m, m)) < probability, 1)
    return np.asarray(upper | upper.T)


def every_pair(m: int) -> BoolArray:
    """Return the graph of Algorithm 2 with p0 = 1."""
    return ~np.eye(m, dtype=bool)


def gauss(
    counts: FloatArray,
    epsilon: float,
    delta: float,
    *,
    pairs: Pairs,
    graph: BoolArray,
    source: RandomSource,
) -> FloatArray:
    """Algorithm 2 as run for the figures; dense when ``graph`` has every pair."""
    sigma = gauss_sigma(epsilon, delta, max(graph.sum() * pairs.value, 1.0))
    noise = discrete_gaussian(sigma, counts.size, source).reshape(counts.shape)
    return estimate(perturb(counts, noise, graph), graph)


def gauss_sigma(epsilon: float, delta: float, moved: float) -> Fraction:
    """Return the sigma of the printed conversion for so many counts."""
    return Fraction(1 / split_epsilon(epsilon, delta, moved)).limit_denominator(10**6)


def gauss_everywhere(counts: FloatArray, sigma: Fraction, source: RandomSource) -> FloatArray:
    """Algorithm 2 with noise on every ordered pair, zero or not: the leak is closed."""
    noise = discrete_gaussian(sigma, counts.size, source).reshape(counts.shape)
    return estimate_floored(counts + noise)


def estimate_floored(noisy: FloatArray) -> FloatArray:
    """Floor, lambda = 1 and power iteration, as printed, on counts that all got noise."""
    graph = every_pair(len(noisy))
    return estimate(np.where(graph, np.maximum(1.0, noisy), 0.0), graph)


def laplace(
    counts: FloatArray, epsilon: float, *, pairs: Pairs, source: RandomSource
) -> FloatArray:
    """Return the discrete Laplace baseline: epsilon is divided evenly among the pairs."""
    graph = every_pair(len(counts))
    scale = Fraction(graph.sum() * pairs.value / epsilon).limit_denominator(10**6)
    noise = discrete_laplace(scale, counts.size, source).reshape(counts.shape)
    return estimate(perturb(counts, noise, graph), graph)


def randomized_response(
    answers: npt.NDArray[np.int8], epsilon: float, delta: float, rng: np.random.Generator
) -> FloatArray:
    """Return the local baseline: flip answers, count pairs, and do not debias."""
    n, m = answers.shape
    share = max(epsilon, shuffled_epsilon(epsilon, delta, n)) / m
    flip = rng.random((n, m)) < 1 / (1 + exp(share))
    return spectral(count(np.where(flip, 1 - answers, answers)))


def shuffled_epsilon(epsilon: float, delta: float, n: int) -> float:
    """Return the printed bisection for the local epsilon that shuffling turns into ``epsilon``."""

    def amplified(local: float) -> float:
        grown = exp(local)
        root = 8 * sqrt(grown * log(4 / delta)) / sqrt(n)
        return log(1 + (grown - 1) / (grown + 1) * (root + 8 * grown / n))

    upper = log(n / (16 * log(2 / delta)))
    if upper < 0:
        return epsilon
    lower = middle = 0.00001
    while amplified(lower) > epsilon:
        lower /= 2
    while upper - lower > 1e-8:
        middle = (upper + lower) / 2
        if amplified(middle) < epsilon:
            lower = middle
        else:
            upper = middle
    return middle


def spectral(counts: FloatArray) -> FloatArray:
    """Non-private estimate of the printed code, the reference on real data."""
    return estimate(counts, every_pair(len(counts)))


def count(answers: npt.NDArray[np.int8]) -> FloatArray:
    """``Y[i, j]``: persons with i right and j wrong; a missing answer is -1."""
    right, wrong = (answers == 1).astype(np.float64), (answers == 0).astype(np.float64)
    return np.asarray(right.T @ wrong)


def estimate(counts: FloatArray, graph: BoolArray) -> FloatArray:
    """Chain, power iteration and logarithm, as printed."""
    rates = np.where(graph, counts, 0.0)
    compared = (rates != 0) | (rates.T != 0)
    rates = np.where(compared, rates + REGULARISATION, rates)
    chain = rates / (rates.sum(axis=1).max() + 1)
    chain[np.diag_indices(len(chain))] = 1 - chain.sum(axis=1)
    weights = np.log(_iterate(chain))
    return np.asarray(weights - weights.mean())


def _iterate(chain: FloatArray, *, steps: int = 1000, tol: float = 1e-5) -> FloatArray:
    weights = np.ones(len(chain))
    for _ in range(steps):
        following = weights @ chain
        following /= following.sum()
        moved = float(np.linalg.norm(following - weights))
        weights = following
        if moved < tol:
            break
    return weights


def perturb(counts: FloatArray, noise: npt.NDArray[np.int64], graph: BoolArray) -> FloatArray:
    """Add noise to the counts that are not zero and clip them at 1. This is flaw 1 and flaw 3."""
    touched = graph & (counts != 0)
    return np.where(touched, np.maximum(1.0, counts + noise), counts)
