"""What epsilon and delta mean for somebody who wants to know a fact about one person.

In: a guarantee, or a Gaussian curve. Out: how sure that somebody can become, and how often surer;
one sentence for statements and pages. Proofs: docs/privacy.md, "What epsilon means".
"""

from __future__ import annotations

import math

from scipy.special import log_ndtr, ndtri_exp

from discreet.privacy.accounting.budget import Guarantee, Neighbours
from discreet.privacy.accounting.gaussian import SMALLEST_REPORTED, GaussianBound, float_up, sqrt_up

# Granted to the logarithms of scipy's normal distribution (tests compare with mpmath).
LOG_ERROR = 1e-11


def _steps(neighbours: Neighbours) -> int:
    """How many neighbouring data sets lie between two sets of answers of one person."""
    return 2 if neighbours is Neighbours.ADD_REMOVE else 1


def surest_belief(epsilon: float, neighbours: Neighbours) -> float:
    """Return how likely somebody can hold a fact about answers that was as likely as not.

    Without an exception for pure epsilon; otherwise see :func:`tail_probability`.

    Examples
    --------
    >>> round(surest_belief(1.0, Neighbours.REPLACE_ONE), 2)
    0.73
    >>> round(surest_belief(1.0, Neighbours.ADD_REMOVE), 2)
    0.88
    """
    return 1 / (1 + math.exp(-_steps(neighbours) * epsilon))


def best_guess(epsilon: float, delta: float, neighbours: Neighbours) -> float:
    """Return the largest probability of guessing right what was as likely as not.

    It holds for every (epsilon, delta) guarantee: (e^epsilon + delta) / (1 + e^epsilon), under
    add-remove with 2 epsilon and (1 + e^epsilon) delta.
    """
    steps = _steps(neighbours)
    # Divided by e^(steps epsilon), so that nothing overflows.
    shares = delta * sum(math.exp(-step * epsilon) for step in range(1, steps + 1))
    return min(1.0, (1 + shares) / (1 + math.exp(-steps * epsilon)))


def tail_probability(bound: GaussianBound, epsilon: float, neighbours: Neighbours) -> float:
    """Bound the probability of becoming surer of a fact than epsilon allows.

    The largest p with p <= T(p e^-epsilon), T the trade-off of the Gaussian curve `bound`:
    Phi(Phi^-1(x) + mu) but for its slack. Under add-remove T is applied twice, to p e^(-2 epsilon).

    Examples
    --------
    >>> from fractions import Fraction
    >>> from discreet.privacy.accounting.gaussian import largest_mu
    >>> bound = GaussianBound(Fraction(largest_mu(1.0, 1e-6)) ** 2)
    >>> round(1e6 * tail_probability(bound, 1.0, Neighbours.REPLACE_ONE))
    52
    """
    steps = _steps(neighbours)

    def holds(log_chance: float) -> bool:
        """Say whether no p from here on solves the inequality: T is concave."""
        reached = log_chance - steps * epsilon
        for _ in range(steps):
            reached = _log_trade_off(bound, reached)
        return reached <= log_chance

    low, high = math.log(SMALLEST_REPORTED), 0.0
    while high - low > LOG_ERROR:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return min(1.0, math.exp(high) * (1 + LOG_ERROR))


def _log_trade_off(bound: GaussianBound, log_chance: float) -> float:
    """Bound ln P(S) by ln Q(S) for every set S of releases.

    P <= e^exponent P' and Q' <= e^(eta - exponent) Q with a Gaussian pair P', Q' (section 4).
    """
    exponent = float_up(bound.exponent)
    given = min(0.0, log_chance + float_up(bound.eta - bound.exponent))
    moved = float(ndtri_exp(given)) + sqrt_up(bound.mu_squared)
    reached = math.exp(float(log_ndtr(moved)) + exponent + LOG_ERROR)
    return math.log(min(1.0, max(reached + float_up(bound.extra_delta), SMALLEST_REPORTED)))


def explain_belief(
    guarantee: Guarantee, *, person: str = "person", answers: str = "answers"
) -> str:
    """Say in one sentence what somebody can learn about one person from a release."""
    who = (
        f"Somebody who knows everybody else's {answers}, and for whom a fact about one {person}'s "
        f"{answers} is as likely as not,"
    )
    if guarantee.tail is None:
        right = best_guess(guarantee.epsilon, guarantee.delta, guarantee.neighbours)
        return (
            f"{who} guesses it right with a probability of {show_share(right)} after reading "
            "this release."
        )
    sure = show_share(surest_belief(guarantee.epsilon, guarantee.neighbours))
    beyond = show_chance(guarantee.tail) if guarantee.tail else ""
    exception = f", except with probability at most {beyond}" if beyond else ""
    return f"{who} can become {sure} sure of it by reading this release{exception}."


def show_share(share: float) -> str:
    """Return a probability that bounds another, as a percentage."""
    return "more than 99.9%" if share > 0.999 else f"at most about {100 * share:.0f}%"


def show_chance(chance: float) -> str:
    """Return two digits of a small probability, rounded up.

    Examples
    --------
    >>> show_chance(0.0000512)
    '5.2e-05'
    """
    scale = 10.0 ** (math.floor(math.log10(chance)) - 1)
    return f"{min(1.0, math.ceil(chance / scale - 1e-9) * scale):.2g}"
