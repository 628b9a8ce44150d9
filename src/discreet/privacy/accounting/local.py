"""Randomized response: how a person's epsilon is shared among the answers.

In: the public cap on answers, a budget, and the number of rows if they are shuffled. Out: the
epsilon of one answer as an exact fraction, rounded down, and the spend. Proofs:
docs/privacy-accounting.md, sections 7 and 8.
"""

from __future__ import annotations

from fractions import Fraction

from discreet.errors import BadBudget
from discreet.privacy.accounting.budget import Budget, Neighbours
from discreet.privacy.accounting.gaussian import GaussianBound
from discreet.privacy.accounting.pure import pure_mu_squared, pure_spend
from discreet.privacy.accounting.rounding import grid_step
from discreet.privacy.accounting.shuffle import largest_local_epsilon
from discreet.privacy.accounting.spend import Spend

__all__ = ["calibrate_local"]

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
    mu_squared = pure_mu_squared(budget.epsilon)
    return Spend(
        mechanism=mechanism,
        neighbours=budget.neighbours,
        epsilon=budget.epsilon,
        delta=budget.delta,
        bound=GaussianBound(mu_squared, extra_delta=Fraction(budget.delta)),
        is_average=True,
    )


def _round_down(value: Fraction) -> Fraction:
    step = grid_step(value, ANSWER_BITS)
    return (value // step) * step
