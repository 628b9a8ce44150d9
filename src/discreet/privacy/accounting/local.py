"""Pure epsilon: discrete Laplace noise, randomized response, and what a shuffler adds to it.

In: an L1 sensitivity, or the public cap on answers and the number of rows if they are shuffled; a
budget. Out: the scale or the epsilon of one answer as an exact fraction, rounded to the safe side,
and the spend. Shuffling hides a row among its clones, and only where all rows come from one
randomiser, that is, where everyone answers the same public items: Feldman, McMillan and Talwar
(2021), Theorem III.1 (closed form) and III.2 (the pair of distributions that is evaluated here).
Proofs: docs/privacy-accounting.md, sections 7 and 8.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, ndtri_exp

from discreet.errors import BadBudget
from discreet.privacy.accounting import SMALLEST_DELTA, Budget, Neighbours, check_epsilon
from discreet.privacy.accounting.gaussian import GaussianBound, grid_step, round_up
from discreet.privacy.accounting.gaussian_noise import (
    PRECISION_BITS,
    WEIGHT_ERROR,
    binomial_weights,
    binomial_window,
)
from discreet.privacy.accounting.spend import Spend


def calibrate_laplace(
    l1: int,
    budget: Budget,
    *,
    mechanism: str = "discrete Laplace noise",
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


# The coin's epsilon keeps 24 bits: short numbers for the exact coin, 6e-8 of epsilon given up.
ANSWER_BITS = 24


def calibrate_local(
    max_answers: int,
    budget: Budget,
    *,
    shuffled_persons: int | None = None,
    mechanism: str = "randomized response",
) -> tuple[Fraction, Spend]:
    """Return the epsilon of one answer, and the spend of the whole release.

    Parameters
    ----------
    max_answers : int
        The public cap; never the person's own number of answers.
    budget : Budget
        Replace-one only: the output has one row per person.
    shuffled_persons : int, optional
        How many rows a trusted shuffler mixes. Give it only when everyone answers the same
        public items; a pattern of items that few share hides among those few alone.
    mechanism : str
        Name for the spend.

    Examples
    --------
    >>> share, spend = calibrate_local(10, Budget(1.0, delta=0))
    >>> float(share) <= 0.1, spend.epsilon, spend.delta
    (True, 1.0, 0.0)
    """
    if max_answers < 1:
        raise BadBudget(f"the cap on answers must be at least 1, found {max_answers}.")
    if budget.neighbours is not Neighbours.REPLACE_ONE:
        raise BadBudget(
            "randomized response protects under replace-one only: its output has one row per "
            "person, which shows that somebody was added. Use neighbours='replace-one'."
        )
    row = budget.epsilon
    if shuffled_persons is not None:
        row = largest_local_epsilon(budget.epsilon, shuffled_persons, budget.delta)
    share = _round_down(Fraction(row) / max_answers)
    if row == budget.epsilon:
        return share, pure_spend(budget.epsilon, budget.neighbours, mechanism=mechanism)
    return share, _shuffled_spend(budget, mechanism)


def _shuffled_spend(budget: Budget, mechanism: str) -> Spend:
    """Return the spend of an (epsilon, delta) release of which no more is known (section 6)."""
    extra = Fraction(budget.delta)
    bound = GaussianBound(pure_mu_squared(budget.epsilon), extra_delta=extra)
    return Spend.of(budget, mechanism, bound, is_average=True)


def _round_down(value: Fraction) -> Fraction:
    step = grid_step(value, ANSWER_BITS)
    return (value // step) * step


# No number of rows hides a row that is this exposed.
LARGEST_LOCAL = 500.0
# More rows than this amplify more, but are counted as this many: the window stays below 2e6.
MOST_PERSONS = 10**9
# Relative error granted to scipy's betainc (tests compare with mpmath).
BETAINC_ERROR = 1e-9
# The number of clones outside a window of this probability is given up as lost.
WINDOW_SHARE = 1e-4


def _check(persons: int, delta: float) -> None:
    if persons < 1:
        raise BadBudget(f"the number of persons must be at least 1, found {persons}.")
    if not SMALLEST_DELTA <= delta < 1:
        raise BadBudget(
            f"shuffling amplifies only with a delta between 0 and 1, found {delta!r}. Give a "
            f"delta, or use randomized response without a shuffler."
        )


def _clone_deltas(counts: NDArray[np.float64], local: float, epsilon: float) -> NDArray[np.float64]:
    """Return delta at `epsilon` given the number of clones.

    Given c clones the pair is (A + D, c - A + 1 - D) against the same with 1 - D, A binomial
    (c, 1/2) and D a coin of bias p = e^local/(1 + e^local); its likelihood ratio grows with the
    first number, so the best event is a tail.
    """
    truth = 1 / (1 + math.exp(-local))
    lie = math.exp(-local) * truth
    growth = math.exp(epsilon)
    gain, loss = truth - growth * lie, growth * truth - lie
    first = np.floor((counts + 1) * (loss / (gain + loss))) + 1  # smallest favourable value
    above, beyond = _half_tail(counts, first - 1), _half_tail(counts, first)
    values = gain * above * (1 + BETAINC_ERROR) - loss * beyond * (1 - BETAINC_ERROR)
    result: NDArray[np.float64] = np.clip(values, 0.0, 1.0)
    return result


def _half_tail(counts: NDArray[np.float64], least: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Pr[binomial(counts, 1/2) >= least]."""
    inside = (least > 0) & (least <= counts)
    tail = np.where(least <= 0, 1.0, 0.0)
    tail[inside] = betainc(least[inside], counts[inside] - least[inside] + 1, 0.5)
    result: NDArray[np.float64] = tail
    return result


def shuffled_delta(local: float, persons: int, epsilon: float, *, lost: float) -> float:
    """Return an upper bound on delta at `epsilon` after shuffling.

    Parameters
    ----------
    local : float
        Epsilon of one whole row.
    persons : int
        Rows that are shuffled together.
    epsilon : float
        Where to evaluate the curve.
    lost : float
        Probability that may be given up for a bounded computation; it is part of the result.
    """
    if epsilon >= local:
        return 0.0
    if local > LARGEST_LOCAL:
        return 1.0
    persons = min(persons, MOST_PERSONS)
    low, high = binomial_window(persons - 1, math.exp(-local), lost)
    counts = np.arange(low, high + 1, dtype=np.float64)
    weights = binomial_weights(persons - 1, 1 / math.expm1(local), low, high)
    inside = float(weights @ _clone_deltas(counts, local, epsilon))
    return min(1.0, inside * (1 + WEIGHT_ERROR) + lost)


def largest_local_epsilon(epsilon: float, persons: int, delta: float) -> float:
    """Return the largest epsilon of one row that shuffling brings down to `epsilon`.

    Never less than `epsilon`: without amplification a row may spend all of it.
    """
    _check(persons, delta)
    low = check_epsilon(epsilon)
    lost = WINDOW_SHARE * delta

    def passes(local: float) -> bool:
        return shuffled_delta(local, persons, epsilon, lost=lost) <= delta

    high = low + 1.0
    while passes(high):
        low, high = high, high + 1.0
    while high - low > 1e-6 * low:
        middle = (low + high) / 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low
