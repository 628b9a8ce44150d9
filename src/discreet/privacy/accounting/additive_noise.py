"""Additive integer noise for a sensitivity: delta, curves, calibrated scales.

In: the sensitivity of counts (how many of them one person changes, each by at most one: the square
of the L2 sensitivity), or squared L2 sensitivities of blocks under noise of several scales, or an
L1 sensitivity; sigma, epsilon or a budget. Out: delta, the Gaussian curve that dominates the
release, a calibrated scale of discrete Gaussian or discrete Laplace noise, or the spend. Proofs:
docs/privacy-accounting.md, sections 3 to 5 and 7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

import numpy as np
from scipy.special import ndtri_exp

from discreet.errors import BadBudget
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.accounting.spend import (
    SMALLEST_REPORTED,
    GaussianBound,
    Spend,
    check_promise,
    gaussian_delta,
    grid_step,
    largest_mu,
    round_up,
    sqrt_up,
)

# The sum of discrete Gaussians is again one up to e^tau; at sigma >= 2 tau stays below 1e-15.
SMALLEST_SIGMA = Fraction(2)
# Up to this standard deviation of the sum its lattice is summed (about 200 000 terms, 10 ms);
# beyond, one summand more than the integral costs less than 0.1% of delta, 0.01% of sigma.
LARGEST_SUMMED = 2.0**14
# Terms of relative size e^-80 and less are bounded, not summed.
WINDOW = 160
# Grid of calibrated scales: 2^12 steps per octave, at most 0.025% too much noise.
PRECISION_BITS = 12
# Variance lent to the rounding kernel (section 4); its error is 5 e^(-3 pi^2) < 1e-12.
UNIT_KERNEL_VARIANCE = Fraction(3, 2)
UNIT_KERNEL_ERROR = Fraction(1, 10**12)


def _check(sensitivity: int, sigma: Fraction) -> None:
    if sensitivity < 1:
        raise BadBudget(
            f"at least one count must change, found {sensitivity}; nothing needs noise then."
        )
    if sigma < SMALLEST_SIGMA:
        raise BadBudget(
            f"sigma must be at least {SMALLEST_SIGMA}, found {float(sigma):g}: below that, sums of "
            f"discrete Gaussians are not close enough to one for exact accounting. Use 2."
        )


def _sum_error(sensitivity: int, sigma: Fraction) -> float:
    """Bound the log-ratio of the sum of `sensitivity` noises to one discrete Gaussian.

    Kairouz, Liu and Steinke (2021): 10 sum_{k < sensitivity} exp(-2 pi^2 sigma^2 k / (k + 1)).
    """
    rate = -2 * math.pi**2 * float(sigma * sigma) * (1 - 1e-12)
    n_terms = min(sensitivity - 1, 50)
    head = sum(math.exp(rate * k / (k + 1)) for k in range(1, n_terms + 1))
    tail = (sensitivity - 1 - n_terms) * math.exp(rate * 51 / 52)
    return 10 * (head + tail) * (1 + 1e-9)


def _lattice_sum(threshold: Fraction, sigma: Fraction, variance: Fraction) -> float:
    """Sum p(s) (1 - e^-(s - threshold)/sigma^2) over the integers above the threshold.

    p is at most the normal density (the discrete normaliser exceeds the continuous one); what
    lies outside the window is bounded by the sub-Gaussian tail.
    """
    spread = float(variance)
    first = math.floor(threshold) + 1
    low = max(first, -math.ceil(math.sqrt(WINDOW * spread)))
    high = math.ceil(math.sqrt(float(max(first, 0)) ** 2 + WINDOW * spread)) + 1
    steps = np.arange(high - low + 1, dtype=np.float64)
    excess = (steps + float(low - threshold)) / float(sigma * sigma)
    terms = np.exp(-((steps + low) ** 2) / (2 * spread)) * -np.expm1(-excess)
    total = float(terms.sum()) / math.sqrt(2 * math.pi * spread)
    outside = math.exp(-(float(high) ** 2) / (2 * spread))
    if low > first:
        outside += math.exp(-(float(low) ** 2) / (2 * spread))
    return total + outside


def _largest_summand(threshold: float, sensitivity: int, sigma: float) -> float:
    """Bound the largest summand: the log-concave peak is bracketed and bounded on the bracket."""
    variance = sensitivity * sigma**2
    low, high = 0.0, 1.0

    def rising(u: float) -> bool:
        return 1 / math.expm1(u) > (threshold + sigma**2 * u) / sensitivity

    while rising(high) and high < 500:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) else (low, middle)
    nearest = max(0.0, threshold + sigma**2 * low)
    peak = math.exp(-(nearest**2) / (2 * variance)) * -math.expm1(-high)
    return peak / math.sqrt(2 * math.pi * variance) * (1 + 1e-9)


def counts_delta(sensitivity: int, sigma: Fraction, epsilon: float) -> float:
    """Return delta at `epsilon` when one person changes `sensitivity` counts by at most one each.

    Exact up to a relative 1e-9, always an upper bound.

    Examples
    --------
    >>> 0.99e-4 < counts_delta(5000, Fraction(22530, 100), 1.0) < 1e-4
    True
    """
    _check(sensitivity, sigma)
    variance = sensitivity * sigma * sigma
    threshold = Fraction(epsilon) * sigma * sigma - Fraction(sensitivity, 2)
    if variance <= LARGEST_SUMMED**2:
        value = _lattice_sum(threshold, sigma, variance)
    else:
        value = gaussian_delta(sqrt_up(sensitivity / sigma**2), epsilon)
        value += _largest_summand(float(threshold), sensitivity, float(sigma))
    edge = float(max(threshold, Fraction(0)))
    tail = math.exp(-(edge**2) / (2 * float(variance)) * (1 - 1e-12))
    drift = 2.01 * _sum_error(sensitivity, sigma) * tail
    # 1e-9 covers the rounding of exponents up to 500 and of the sum (section 3).
    return min(1.0, value * (1 + 1e-9) + drift + SMALLEST_REPORTED)


def calibrate_counts(
    sensitivity: int,
    budget: Budget,
    *,
    mechanism: str = "discrete Gaussian noise",
    bits: int = PRECISION_BITS,
) -> tuple[Fraction, Spend]:
    """Return the smallest sigma that keeps the budget, and what it spends.

    Parameters
    ----------
    sensitivity : int
        How many counts one person can change, each by at most one.
    budget : Budget
        What may be spent; its delta must be above 0.
    mechanism : str
        Name for the spend.
    bits : int
        Sigma lies on a grid of 2**bits steps per octave.

    The continuous answer only says where to look: every candidate is judged by `counts_delta` at
    the very fraction that is returned, so no rounding on the way can make it too small.

    Examples
    --------
    >>> sigma, spend = calibrate_counts(5000, Budget(1.0, 1e-4))
    >>> float(sigma)
    225.28125
    """
    delta = budget.require_delta("discrete Gaussian noise")

    def keeps(sigma: Fraction) -> bool:
        return counts_delta(sensitivity, sigma, budget.epsilon) <= delta

    _check(sensitivity, SMALLEST_SIGMA)
    guess = Fraction(math.sqrt(sensitivity) / largest_mu(budget.epsilon, delta))
    guess = round_up(max(guess, SMALLEST_SIGMA), bits)
    step = grid_step(guess, bits)
    while not keeps(guess):
        guess += step
    while guess - step >= SMALLEST_SIGMA and keeps(guess - step):
        guess -= step
    return guess, counts_spend(sensitivity, guess, budget, mechanism=mechanism)


def counts_bound(sensitivity: int, sigma: Fraction) -> GaussianBound:
    """Return the Gaussian curve that dominates the release (section 4), for composition."""
    _check(sensitivity, sigma)
    error = Fraction(_sum_error(sensitivity, sigma)) + UNIT_KERNEL_ERROR
    mu_squared = Fraction(sensitivity * sensitivity) / (
        sensitivity * sigma * sigma - UNIT_KERNEL_VARIANCE
    )
    return GaussianBound(mu_squared, eta=2 * error, exponent=error)


def counts_spend(sensitivity: int, sigma: Fraction, budget: Budget, *, mechanism: str) -> Spend:
    """Return the spend of a release, or refuse a sigma that breaks the budget's promise."""
    check_promise(
        counts_delta(sensitivity, sigma, budget.epsilon),
        budget,
        f"sigma {float(sigma):g} on counts of which one person changes {sensitivity}",
    )
    rho = Fraction(sensitivity) / (2 * sigma * sigma)
    return Spend.of(budget, mechanism, counts_bound(sensitivity, sigma), rho)


# Variance lent to the rounding kernel, and its error per coordinate, 5 e^(-6 pi^2) < 1e-24:
# small enough for a million coordinates, and nothing against scales of a fine grid.
KERNEL_VARIANCE = Fraction(3)
KERNEL_ERROR = Fraction(1, 10**24)

Blocks = Sequence[tuple[int, Fraction]]


def bound_sensitivity(sensitivities: Iterable[Blocks], *, coordinates: int) -> GaussianBound:
    """Return the Gaussian curve that dominates a release, over its extreme differences.

    Parameters
    ----------
    sensitivities : iterable of sequences of (squared_length, sigma)
        One entry per extreme difference that one person makes; in it, one pair per block of
        coordinates that share a sigma: the squared Euclidean length (an integer) of the difference
        within the block, and sigma.
    coordinates : int
        How many noisy numbers the release holds.

    Examples
    --------
    >>> bound = bound_sensitivity([[(5000, Fraction(225))]], coordinates=9900)
    >>> round(float(bound.mu_squared), 5)
    0.09877
    """
    worst = Fraction(0)
    for blocks in sensitivities:
        _check_sigmas([sigma for _, sigma in blocks])
        mu_squared = sum(
            (Fraction(squared) / (sigma * sigma - KERNEL_VARIANCE) for squared, sigma in blocks),
            Fraction(0),
        )
        worst = max(worst, mu_squared)
    error = coordinates * KERNEL_ERROR
    return GaussianBound(worst, eta=2 * error, exponent=error)


def sensitivity_rho(sensitivities: Iterable[Blocks]) -> Fraction:
    """Return the zero-concentrated rho: the largest half squared length over sigma squared."""
    return max(
        sum((Fraction(squared) / (2 * sigma * sigma) for squared, sigma in blocks), Fraction(0))
        for blocks in sensitivities
    )


def calibrate_scale(
    bound_at: Callable[[Fraction], GaussianBound],
    budget: Budget,
    *,
    smallest: Fraction = SMALLEST_SIGMA,
) -> Fraction:
    """Return the smallest scale on the grid whose curve keeps the budget.

    `bound_at` maps a scale to the curve that dominates the release at that scale; more scale
    must mean less spent. Only the returned fraction's own curve is trusted.

    Examples
    --------
    >>> def bound_at(scale):
    ...     return bound_sensitivity([[(5000, scale)]], coordinates=9900)
    >>> float(calibrate_scale(bound_at, Budget(1.0, 1e-4)))
    225.28125
    """
    delta = budget.require_delta("discrete Gaussian noise")

    def keeps(scale: Fraction) -> bool:
        return bound_at(scale).delta(budget.epsilon) <= delta

    promise = f"epsilon {budget.epsilon:g} with delta {delta:g}"
    return search_scale(keeps, promise, smallest=smallest)


def calibrate_blocks(
    sensitivities: Iterable[Sequence[int]],
    ratios: Sequence[Fraction],
    budget: Budget,
    *,
    coordinates: int,
    mechanism: str,
) -> tuple[Fraction, Spend]:
    """Return the scale of several blocks of numbers, and the spend of all of them together.

    ``sensitivities`` are the squared lengths of extreme differences in every block; a block's
    sigma is its ratio times the scale.

    Examples
    --------
    >>> ratios = [Fraction(1), Fraction(2)]
    >>> scale, _ = calibrate_blocks(
    ...     [(5000, 0), (0, 20000)], ratios, Budget(1.0, 1e-4), coordinates=99, mechanism="two"
    ... )
    >>> float(scale)
    225.28125
    """
    lengths = [tuple(one) for one in sensitivities]

    def blocks(scale: Fraction) -> list[Blocks]:
        sigmas = [scale * ratio for ratio in ratios]
        return [list(zip(one, sigmas, strict=True)) for one in lengths]

    def bound_at(scale: Fraction) -> GaussianBound:
        return bound_sensitivity(blocks(scale), coordinates=coordinates)

    scale = calibrate_scale(bound_at, budget, smallest=SMALLEST_SIGMA / min(ratios))
    rho = sensitivity_rho(blocks(scale))
    return scale, blocks_spend(bound_at(scale), rho=rho, budget=budget, mechanism=mechanism)


def round_ratio(ratio: float) -> Fraction:
    """Return the ratio of two blocks' sigmas as a short fraction: public, so rounding is fine."""
    return Fraction(math.ceil(ratio * 2**16), 2**16)


def search_scale(
    keeps: Callable[[Fraction], bool],
    promise: str,
    *,
    smallest: Fraction = SMALLEST_SIGMA,
    bits: int = PRECISION_BITS,
) -> Fraction:
    """Return the smallest scale on the grid that keeps a promise; larger ones must keep it too."""
    if keeps(smallest):
        return smallest
    low, high = smallest, 2 * smallest
    while not keeps(high):
        low, high = high, 2 * high
        if high > 2**200:
            raise BadBudget(
                f"no scale keeps {promise}: the bound does not fall as the noise grows."
            )
    step = grid_step(low, bits)
    while high - low > step:
        middle = low + step * math.ceil((high - low) / (2 * step))
        if middle >= high:
            break
        low, high = (low, middle) if keeps(middle) else (middle, high)
    rounded = round_up(high, bits)
    return rounded if keeps(rounded) else high


def blocks_spend(bound: GaussianBound, *, rho: Fraction, budget: Budget, mechanism: str) -> Spend:
    """Return the spend of a release with this curve, or refuse one that breaks the budget."""
    budget.require_delta(mechanism)
    check_promise(
        bound.delta(budget.epsilon), budget, f"noise with mu^2 = {float(bound.mu_squared):.6g}"
    )
    return Spend.of(budget, mechanism, bound, rho)


def _check_sigmas(sigmas: Sequence[Fraction]) -> None:
    for sigma in sigmas:
        if sigma < SMALLEST_SIGMA:
            raise BadBudget(
                f"sigma must be at least {SMALLEST_SIGMA}, found {float(sigma):g}: the bound for "
                f"several blocks does not hold below. Use a finer grid or 2."
            )


# --- pure epsilon: discrete Laplace noise ---------------------------------------------------------


def calibrate_laplace(
    l1: int, budget: Budget, *, mechanism: str = "discrete Laplace noise"
) -> tuple[Fraction, Spend]:
    """Return the scale of discrete Laplace noise, L1 sensitivity over epsilon, and its spend.

    The scale is rounded up. The budget's delta is not used: the guarantee is pure.

    Examples
    --------
    >>> scale, spend = calibrate_laplace(12, Budget(0.5, delta=0))
    >>> scale, spend.is_pure
    (Fraction(24, 1), True)
    """
    if l1 < 1:
        raise BadBudget(f"the L1 sensitivity must be at least 1, found {l1}.")
    scale = round_up(Fraction(l1) / Fraction(budget.epsilon), PRECISION_BITS)
    return scale, laplace_spend(l1, scale, budget, mechanism=mechanism)


def laplace_spend(l1: int, scale: Fraction, budget: Budget, *, mechanism: str) -> Spend:
    """Return the spend of a Laplace release, or refuse a scale that breaks the budget."""
    if scale <= 0 or Fraction(l1) / scale > Fraction(budget.epsilon):
        raise BadBudget(
            f"a Laplace scale of {float(scale):g} with L1 sensitivity {l1} does not keep epsilon "
            f"{budget.epsilon:g}. A release with it would break its own guarantee; calibrate it."
        )
    return pure_spend(budget.epsilon, budget.neighbours, mechanism=mechanism)


def pure_mu_squared(epsilon: float) -> Fraction:
    """Return mu^2 of the Gaussian curve that dominates every epsilon-private mechanism.

    mu = 2 Phi^-1(e^epsilon / (1 + e^epsilon)): Dong, Roth and Su (2022); section 7.
    """
    # Phi^-1(p) = -Phi^-1(1 - p), from the logarithm of 1 - p so that no digits are lost.
    log_small = -epsilon - math.log1p(math.exp(-epsilon))
    mu = -2 * float(ndtri_exp(log_small))
    return Fraction(mu * (1 + 1e-9) + 1e-12) ** 2


def pure_spend(epsilon: float, neighbours: Neighbours, *, mechanism: str) -> Spend:
    """Return the spend of any epsilon-private release; rho is epsilon^2 / 2 (Bun and Steinke)."""
    return Spend(
        mechanism=mechanism,
        neighbours=neighbours,
        epsilon=epsilon,
        delta=0.0,
        bound=GaussianBound(pure_mu_squared(epsilon)),
        rho=Fraction(epsilon) ** 2 / 2,
    )
