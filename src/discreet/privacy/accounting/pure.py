"""Pure epsilon: discrete Laplace noise, and how pure releases enter a Gaussian ledger.

In: an L1 sensitivity and a budget. Out: the scale as an exact fraction, rounded up, and the
spend. Proofs: docs/privacy-accounting.md, section 7.
"""

from __future__ import annotations

import math
from fractions import Fraction

from scipy.special import ndtri_exp

from discreet.errors import BadBudget
from discreet.privacy.accounting.budget import Budget, Neighbours
from discreet.privacy.accounting.gaussian import GaussianBound
from discreet.privacy.accounting.rounding import round_up
from discreet.privacy.accounting.spend import Spend
from discreet.privacy.accounting.unit_moves import PRECISION_BITS

__all__ = ["calibrate_laplace", "laplace_spend", "pure_mu_squared", "pure_spend"]


def calibrate_laplace(
    l1: int,
    budget: Budget,
    *,
    mechanism: str = "discrete Laplace noise",
    bits: int = PRECISION_BITS,
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
    scale = round_up(Fraction(l1) / Fraction(budget.epsilon), bits)
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
