"""What one release costs, and whether one more may follow; under both, the Gaussian privacy curve.

In: mu (shift over standard deviation), with epsilon or delta; spends that were made. Out: the other
one, rounded to the side that costs privacy nothing (noise and spends up, what is left down); how
sure somebody can become of a fact about one person; what is spent and left. The curve is that of
Balle and Wang, an upper bound in floating point.

Mechanisms return spends, a ledger stores them and adds them up by one rule, fixed when it is
created. Each rule is a filter: a set of caps fixed in advance, so it stays valid when later
releases, and how much they spend, are chosen after looking at earlier ones. Public parameters only.
Proofs: docs/privacy-accounting.md, sections 1, 2 and 6; docs/privacy.md, "What epsilon means".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from fractions import Fraction
from functools import cached_property
from operator import add, le
from typing import Protocol

from scipy.special import erfcx, log_ndtr, ndtri_exp

from discreet.choices import PlainDict, PlainMapping
from discreet.errors import BadBudget
from discreet.privacy.accounting import Budget, Guarantee, Neighbours


def float_up(value: Fraction) -> float:
    """Return the smallest float that is not below `value`.

    Examples
    --------
    >>> float_up(Fraction(1, 10)) >= Fraction(1, 10)
    True
    """
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def float_down(value: Fraction) -> float:
    """Return the largest float that is not above `value`."""
    return -float_up(-value)


def sqrt_up(value: Fraction) -> float:
    """Return a float that is not below the square root of `value`."""
    if value == 0:
        return 0.0
    # math.sqrt rounds correctly, so one step up from the root of a number >= value suffices.
    return math.nextafter(math.sqrt(float_up(value)), math.inf)


def grid_step(value: Fraction, bits: int) -> Fraction:
    """Return the power of two that cuts `value` into 2**bits to 2**(bits + 1) steps."""
    numerator, denominator = value.numerator, value.denominator
    exponent = numerator.bit_length() - denominator.bit_length()
    if Fraction(2) ** exponent > value:
        exponent -= 1
    return Fraction(2) ** (exponent - bits)


def round_up(value: Fraction, bits: int) -> Fraction:
    """Return the smallest multiple of the value's own grid step that is not below `value`.

    The result costs at most a factor 1 + 2**-bits, and its numerator and denominator stay short:
    that is what an exact sampler needs of a scale, and a long history of a sum.

    Examples
    --------
    >>> round_up(Fraction(10, 3), 4)
    Fraction(27, 8)
    """
    if value <= 0:
        return Fraction(0)
    step = grid_step(value, bits)
    return math.ceil(value / step) * step


# Relative error granted to scipy's erfcx (its source claims about 1e-15; tests compare with
# mpmath) and to one rounded operation (a few units in the last place, taken generously).
ERFCX_ERROR = 1e-13
OPERATION_ERROR = 2.0**-50
# Nothing smaller is ever reported: it keeps underflow from reading as perfect privacy.
SMALLEST_REPORTED = 1e-300


def _mills(x: float) -> float:
    """Return the upper tail of the normal distribution over its density."""
    return math.sqrt(math.pi / 2) * float(erfcx(x / math.sqrt(2)))


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return an upper bound on the delta of the Gaussian mechanism at `epsilon`.

    Balle and Wang (2018, Theorem 8): Phi(-a) - e^epsilon Phi(-b) with a = epsilon/mu - mu/2 and
    b = epsilon/mu + mu/2. Since phi(a) = e^epsilon phi(b), this is phi(a) times a difference of
    two Mills ratios, which neither overflows nor cancels at tiny delta; what rounding can take
    away is added back.

    Examples
    --------
    >>> 0.99e-4 < gaussian_delta(1 / 3.186, 1.0) < 1.01e-4
    True
    """
    if epsilon < 0:  # the curve of a symmetric pair: delta(e) = 1 - e^e + e^e delta(-e)
        mirrored = -math.expm1(epsilon) + math.exp(epsilon) * gaussian_delta(mu, -epsilon)
        return min(1.0, mirrored * (1 + 1e-12))
    if mu == 0:
        return SMALLEST_REPORTED
    point, reach = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if point < -8:  # 1 - delta is below 1e-14 here
        return 1.0
    log_density = -point * point / 2 - math.log(2 * math.pi) / 2
    log_density += (1 + abs(point) * reach) * OPERATION_ERROR
    upper = _mills(point)
    slope = 1 + abs(point) * upper  # bounds the derivative of the Mills ratio
    slack = ERFCX_ERROR * upper + slope * reach * OPERATION_ERROR
    value = math.exp(log_density) * (upper - _mills(reach) + slack) * (1 + 1e-12)
    return min(1.0, max(value, SMALLEST_REPORTED))


def bisect_down(
    passes: Callable[[float], bool], low: float, high: float, within: float = 1e-14
) -> float:
    """Return a number that passes, as near to the edge; `high` passes, `low` does not."""
    while high - low > within * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high


def largest_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu (to 1e-14) whose curve stays at or below delta at `epsilon`.

    Examples
    --------
    >>> round(1 / largest_mu(1.0, 1e-4), 3)
    3.186
    """

    def passes(sigma: float) -> bool:
        return gaussian_delta(1 / sigma, epsilon) <= delta

    high = 1.0
    while not passes(high):
        high *= 2
        if high > 2.0**200:
            raise BadBudget(
                f"no Gaussian noise reaches epsilon {epsilon:g} with delta {delta:g} in floating "
                f"point. Ask for a larger epsilon or delta."
            )
    low = high / 2
    while passes(low):
        low, high = low / 2, low
    mu = 1 / bisect_down(passes, low, high)
    while gaussian_delta(mu, epsilon) > delta:  # the slack is not monotone to the last digit
        mu *= 1 - 1e-13
    return mu


@dataclass(frozen=True)
class GaussianBound:
    """The curve e^exponent * BW(sqrt(mu_squared), epsilon - eta) + extra_delta.

    It bounds a mechanism, or a whole history of them: the four numbers add under composition
    (docs/privacy-accounting.md, section 6).
    """

    mu_squared: Fraction
    eta: Fraction = Fraction(0)
    exponent: Fraction = Fraction(0)
    extra_delta: Fraction = Fraction(0)

    def __add__(self, other: GaussianBound) -> GaussianBound:
        return GaussianBound(*map(add, astuple(self), astuple(other)))

    def delta(self, epsilon: float) -> float:
        """Return an upper bound on delta at `epsilon`."""
        shifted = float_down(Fraction(epsilon) - self.eta)
        factor = math.exp(float_up(self.exponent)) * (1 + 1e-15)
        value = factor * gaussian_delta(sqrt_up(self.mu_squared), shifted)
        return min(1.0, (value + float_up(self.extra_delta)) * (1 + 1e-15))

    def epsilon(self, delta: float) -> float:
        """Return an upper bound on epsilon at `delta`; infinite when there is none."""
        if delta <= float_up(self.extra_delta):
            return math.inf

        def passes(epsilon: float) -> bool:
            return self.delta(epsilon) <= delta

        if passes(0.0):
            return 0.0
        high = 1.0
        while not passes(high):
            high *= 2
            if high > 2.0**100:
                return math.inf
        return bisect_down(passes, 0.0, high)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return an upper bound on the epsilon of the Gaussian mechanism at `delta`."""
    return GaussianBound(Fraction(mu) ** 2).epsilon(delta)


# Granted to the logarithms of scipy's normal distribution (tests compare with mpmath).
LOG_ERROR = 1e-11


def tail_probability(bound: GaussianBound, epsilon: float, neighbours: Neighbours) -> float:
    """Bound the probability of becoming surer of a fact than epsilon allows.

    The largest p with p <= T(p e^-epsilon), T the trade-off of the Gaussian curve `bound`:
    Phi(Phi^-1(x) + mu) but for its slack. Under add-remove T is applied twice, to p e^(-2 epsilon).

    Examples
    --------
    >>> from fractions import Fraction
    >>> from discreet.privacy.accounting.spend import largest_mu
    >>> bound = GaussianBound(Fraction(largest_mu(1.0, 1e-6)) ** 2)
    >>> round(1e6 * tail_probability(bound, 1.0, Neighbours.REPLACE_ONE))
    52
    """
    steps = neighbours.steps

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
    log_mass = min(0.0, log_chance + float_up(bound.eta - bound.exponent))
    moved = float(ndtri_exp(log_mass)) + sqrt_up(bound.mu_squared)
    reached = math.exp(float(log_ndtr(moved)) + exponent + LOG_ERROR)
    return math.log(min(1.0, max(reached + float_up(bound.extra_delta), SMALLEST_REPORTED)))


# --- what a release costs, and what it adds up to -------------------------------------------------

# Stored fractions keep this many bits, rounded up: a millionth of a millionth too much.
STORED_BITS = 60


def check_promise(delta: float, budget: Budget, subject: str) -> None:
    """Refuse noise that does not keep the budget: the last check before noise is drawn."""
    if not delta <= budget.delta:
        raise BadBudget(
            f"{subject} gives delta {delta:.6g} at epsilon {budget.epsilon:g}, above the promised "
            f"{budget.delta:.6g}. A release with it would break its own guarantee; calibrate the "
            f"noise for this budget."
        )


@dataclass(frozen=True)
class Spend:
    """What a release costs.

    Parameters
    ----------
    mechanism : str
        Its name.
    neighbours : Neighbours
        The relation that the numbers are for.
    epsilon, delta : float
        The guarantee of this release alone. A first release is judged by it.
    bound : GaussianBound
        The Gaussian curve that dominates it; composition adds these. Rounded up when made.
    rho : Fraction or None
        Zero-concentrated guarantee, where there is one. Rounded up when made.
    is_average : bool
        Whether the release keeps delta on an average that lies below `bound` (random graphs,
        shuffled rows), so that `bound` says little about this release alone.
    """

    mechanism: str
    neighbours: Neighbours
    epsilon: float
    delta: float
    bound: GaussianBound
    rho: Fraction | None = None
    is_average: bool = False

    def __post_init__(self) -> None:
        Budget(self.epsilon, self.delta, self.neighbours)  # refuses what means nothing
        parts = astuple(self.bound)
        if min(parts) < 0 or (self.rho is not None and self.rho < 0):
            raise BadBudget("a spend cannot be negative: it would give budget back.")
        object.__setattr__(self, "neighbours", Neighbours(self.neighbours))
        object.__setattr__(
            self, "bound", GaussianBound(*(round_up(part, STORED_BITS) for part in parts))
        )
        if self.rho is not None:
            object.__setattr__(self, "rho", round_up(self.rho, STORED_BITS))

    @classmethod
    def of(
        cls,
        budget: Budget,
        mechanism: str,
        bound: GaussianBound,
        rho: Fraction | None = None,
        *,
        is_average: bool = False,
    ) -> Spend:
        """Return the spend of a release that uses up its budget."""
        return cls(
            mechanism, budget.neighbours, budget.epsilon, budget.delta, bound, rho, is_average
        )

    @property
    def is_pure(self) -> bool:
        """Say whether the guarantee has delta 0."""
        return self.delta == 0

    @property
    def tail(self) -> float | None:
        """Return the probability of becoming surer of a fact than epsilon allows, if known."""
        if self.is_average:
            return None
        return 0.0 if self.is_pure else tail_probability(self.bound, self.epsilon, self.neighbours)

    def guarantee(
        self, *, is_private: bool, ledger: str | None = None, conditions: tuple[str, ...] = ()
    ) -> Guarantee:
        """Return the promise that goes with this spend.

        `is_private` is the noise source's own word (False for a seeded one); `ledger` the id of
        the ledger that was charged.
        """
        return Guarantee(
            epsilon=self.epsilon,
            delta=self.delta,
            rho=None if self.rho is None else float_up(self.rho),
            neighbours=self.neighbours,
            mechanism=self.mechanism,
            ledger=ledger,
            is_private=is_private,
            conditions=conditions,
            tail=self.tail,
        )

    def to_dict(self) -> PlainDict:
        """Return plain values; fractions as text, exact."""
        return {
            "mechanism": self.mechanism,
            "neighbours": str(self.neighbours),
            "epsilon": self.epsilon,
            "delta": self.delta,
            **{part: str(number) for part, number in asdict(self.bound).items()},
            "rho": None if self.rho is None else str(self.rho),
            "is_average": self.is_average,
        }

    @classmethod
    def from_dict(cls, values: PlainMapping) -> Spend:
        """Rebuild a spend from `to_dict`."""
        rho = values["rho"]
        return cls(
            mechanism=values["mechanism"],
            neighbours=Neighbours(values["neighbours"]),
            epsilon=values["epsilon"],
            delta=values["delta"],
            bound=GaussianBound(*(Fraction(values[part.name]) for part in fields(GaussianBound))),
            rho=None if rho is None else Fraction(rho),
            is_average=values["is_average"],
        )


# Room for the tiny eta and exponent of discrete noise: thousands of releases fit, and the limit
# on mu shrinks by about a hundred-millionth for it.
SLACK = Fraction(1, 10**8)
# Part of the limit's delta kept for graphs that touch more of a person's pairs than expected
# (a ten-thousandth of a release's delta each); the limit on mu shrinks by less than 0.01% for it.
SPARE = Fraction(1, 1000)


class Allowance(Protocol):
    """The caps of one rule."""

    def weigh(self, spends: Sequence[Spend]) -> tuple[Fraction, ...]:
        """Return the totals that have caps; each of them is a sum over the spends."""

    def accepts(self, spends: Sequence[Spend], new: Spend) -> bool:
        """Say whether `new` may follow `spends`."""

    def spent(self, spends: Sequence[Spend]) -> float:
        """Return the epsilon spent so far, at the limit's delta."""

    def left(self, spends: Sequence[Spend]) -> float:
        """Return the epsilon that one more release at the limit's delta may have, or 0."""


def _fits_alone(limit: Budget, spends: Sequence[Spend], new: Spend) -> bool:
    """Say whether `new` is the first release and keeps the limit by its own guarantee.

    Nothing was released before it, so choosing this way of counting reveals nothing.
    """
    return not spends and new.epsilon <= limit.epsilon and new.delta <= limit.delta


def _single_epsilon(limit: Budget, spends: Sequence[Spend]) -> float:
    """Return a single release's own epsilon where it holds at the limit's delta."""
    if len(spends) == 1 and spends[0].delta <= limit.delta:
        return spends[0].epsilon
    return math.inf


def _total(spends: Sequence[Spend]) -> GaussianBound:
    return sum((spend.bound for spend in spends), GaussianBound(Fraction(0)))


@dataclass(frozen=True)
class GaussianAllowance:
    """The default rule: Gaussian curves add, within caps on each of their four numbers.

    Parameters
    ----------
    limit : Budget
        What all releases together may spend.
    set_aside : float
        The part of the limit's delta kept for releases that add a delta of their own
        (shuffled ones); fixed in advance, 0 unless the steward plans for such releases.
    """

    limit: Budget
    set_aside: float = 0.0

    def __post_init__(self) -> None:
        self.limit.require_delta("a ledger with the Gaussian rule")
        if not 0 <= self.set_aside < self.limit.delta:
            raise BadBudget(
                f"the delta set aside must be at least 0 and below the limit's "
                f"{self.limit.delta:g}, found {self.set_aside!r}."
            )

    @cached_property
    def cap(self) -> GaussianBound:
        """Return the caps: with all of them reached, the limit just holds."""
        eta = SLACK * min(Fraction(1), Fraction(self.limit.epsilon))
        epsilon = float_down(Fraction(self.limit.epsilon) - eta)
        left = Fraction(self.limit.delta) - Fraction(self.set_aside)
        mu = largest_mu(epsilon, float_down(left * (1 - SPARE) * (1 - 2 * SLACK)))
        extra = Fraction(self.set_aside) + left * SPARE
        return GaussianBound(Fraction(mu) ** 2, eta, SLACK, extra)

    def weigh(self, spends: Sequence[Spend]) -> tuple[Fraction, ...]:
        """Return the four numbers of the Gaussian curve of all spends together."""
        return astuple(_total(spends))

    def accepts(self, spends: Sequence[Spend], new: Spend) -> bool:
        """Say whether `new` may follow `spends`."""
        return _fits_alone(self.limit, spends, new) or self._within(_total([*spends, new]))

    def _within(self, total: GaussianBound) -> bool:
        return all(map(le, astuple(total), astuple(self.cap)))

    def spent(self, spends: Sequence[Spend]) -> float:
        """Return the epsilon spent so far, at the limit's delta."""
        if not spends:
            return 0.0
        composed = _total(spends).epsilon(self.limit.delta)
        return min(composed, _single_epsilon(self.limit, spends))

    def left(self, spends: Sequence[Spend]) -> float:
        """Return the epsilon that a Gaussian release at the limit's delta may still have.

        Rounded down to what any calibration can use: a thousandth of mu^2 is kept back.
        """
        if not spends:
            return self.limit.epsilon
        total = _total(spends)
        room = (self.cap.mu_squared - total.mu_squared) * Fraction(999, 1000)
        if room <= 0 or not self._within(total):
            return 0.0
        return min(self.limit.epsilon, GaussianBound(room).epsilon(self.limit.delta))


@dataclass(frozen=True)
class BasicAllowance:
    """The plain rule: epsilons add, deltas add. Better for a few pure releases."""

    limit: Budget

    def weigh(self, spends: Sequence[Spend]) -> tuple[Fraction, ...]:
        """Return the sums of the epsilons and of the deltas."""
        epsilon = sum((Fraction(spend.epsilon) for spend in spends), Fraction(0))
        return epsilon, sum((Fraction(spend.delta) for spend in spends), Fraction(0))

    def accepts(self, spends: Sequence[Spend], new: Spend) -> bool:
        """Say whether `new` may follow `spends`."""
        epsilon, delta = self.weigh([*spends, new])
        return epsilon <= Fraction(self.limit.epsilon) and delta <= Fraction(self.limit.delta)

    def spent(self, spends: Sequence[Spend]) -> float:
        """Return the epsilon spent so far."""
        return float_up(self.weigh(spends)[0])

    def left(self, spends: Sequence[Spend]) -> float:
        """Return the epsilon that is left."""
        return max(0.0, self.limit.epsilon - self.spent(spends))


def compose_guarantees(first: Guarantee | None, second: Guarantee | None) -> Guarantee | None:
    """Return what holds for numbers that come from two releases together, or None for nothing.

    Basic composition: epsilons add, deltas add, for a person who is in both. There is no promise
    where one side is no release, and none known where the two protect different things.
    """
    if first is None or second is None:
        return None
    if (first.neighbours, first.unit) != (second.neighbours, second.unit):
        return None
    rhos = (first.rho, second.rho)
    return Guarantee(
        epsilon=_add_up(first.epsilon, second.epsilon),
        delta=_add_up(first.delta, second.delta),
        rho=None if rhos[0] is None or rhos[1] is None else _add_up(rhos[0], rhos[1]),
        neighbours=first.neighbours,
        mechanism=" and ".join(dict.fromkeys((first.mechanism, second.mechanism))),
        unit=first.unit,
        ledger=first.ledger if first.ledger == second.ledger else None,
        is_private=first.is_private and second.is_private,
        conditions=tuple(dict.fromkeys(first.conditions + second.conditions)),
    )


def _add_up(first: float, second: float) -> float:
    return float_up(Fraction(first) + Fraction(second))
