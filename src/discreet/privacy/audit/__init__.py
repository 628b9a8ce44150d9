"""Attack our own mechanisms: a lower bound on epsilon, and the faults that would have shown.

In: a mechanism, a budget, and the public parameters of a release. Out: what an optimal test
between two neighbouring data sets achieved, and what it could have. It runs on synthetic data only,
through the same wall as every release.

The promise says how often the best test must mix the two data sets up: no less than two normal
distributions mu apart (Dong, Roth and Su 2022), and no less than the noise that was declared
allows. A test that is wrong more rarely, beyond chance, proves that there is less noise.
A test that is not tells only of faults that it would have seen; so those are stated. The number of
mistakes in both data sets together is a sum of independent coins. Its lower tail is at most that of
the binomial distribution with their mean rate (Hoeffding 1956), so the promise's rate gives a test
that holds whatever the fault is.

Where noise is added to exact numbers, arithmetic comes first: how far two persons move the numbers,
in units of the declared noise, against what the accountant was told. That finds faults of any size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri
from scipy.stats import binom

from discreet.errors import BadUsage
from discreet.privacy.accounting import Budget
from discreet.privacy.accounting.gaussian import bisect_down
from discreet.privacy.attack_statistics import MATTERS
from discreet.privacy.audit.attacks import Attack, Size, make_attacks
from discreet.privacy.mechanisms.base import CompleteMechanism
from discreet.privacy.noise import ExactNoise, Noise
from discreet.privacy.wall import Release, release_statistics
from discreet.types import FloatArray, Int64Array
from discreet.words import mark

__all__ = ["AuditReport", "Size", "Verdict", "audit_mechanism"]

CRUDE_RUNS = 200
"""A number without noise is seen in far fewer runs than noise that is too small."""


class Verdict(StrEnum):
    """What an audit says about a promise."""

    REFUTED = mark("refuted")
    CONSISTENT = mark("consistent")
    INCONCLUSIVE = mark("inconclusive")


@dataclass(frozen=True)
class AuditReport:
    """What the attacks could prove, and what they could have proved.

    Attributes
    ----------
    mechanism, claimed_epsilon, delta, items, max_answers, forms, design
        The claim; ``forms`` is how many there are.
    lower_bound
        The epsilon of a release with as little noise as an attack proved with 99.9% confidence.
    detectable_factor
        The smallest factor by which noise could be too small and still be found out with
        probability ``power``; infinite if none.
    detectable_epsilon
        The epsilon that the release would then have.
    runs
        Releases made per data set and attack.
    attack
        The attack behind the lower bound.
    """

    mechanism: str
    claimed_epsilon: float
    delta: float
    items: int
    max_answers: int
    lower_bound: float
    detectable_factor: float
    detectable_epsilon: float
    power: float
    runs: int
    attack: str
    forms: int = 0
    design: str = "unknown"

    @property
    def verdict(self) -> Verdict:
        """Refuted; or consistent with the promise, if a fault that matters would have shown."""
        if self.lower_bound > self.claimed_epsilon:
            return Verdict.REFUTED
        is_sharp = self.detectable_factor <= MATTERS
        return Verdict.CONSISTENT if is_sharp else Verdict.INCONCLUSIVE

    @property
    def meaning(self) -> str:
        """The verdict in one sentence."""
        return {
            Verdict.REFUTED: "The promise does not hold: do not release with this mechanism.",
            Verdict.CONSISTENT: f"Noise too small by {MATTERS} or more would probably have shown.",
            Verdict.INCONCLUSIVE: f"A fault that matters (noise too small by {MATTERS}) may have "
            "gone unseen: more runs see more.",
        }[self.verdict]

    @property
    def passed(self) -> bool:
        """Whether the promise withstood an attack that would have shown a fault that matters."""
        return self.verdict is Verdict.CONSISTENT


def audit_mechanism(
    mechanism: CompleteMechanism,
    budget: Budget,
    *,
    size: Size | None = None,
    runs: int | None = None,
    power: float = 0.9,
    noise: Noise | None = None,
    release: Callable[..., Release] = release_statistics,
    progress: Callable[[int, int], None] | None = None,
) -> AuditReport:
    """Run every attack on a mechanism and report the strongest.

    Parameters
    ----------
    mechanism
        The mechanism under attack.
    budget
        What it claims.
    size
        The public parameters of the release that is meant: items, cap, steps, forms, design.
    runs
        Releases per data set and attack, at most a million; by default as many as show noise that
        is too small by 1.1 with probability ``power``, up to 20,000.
    release
        The wall; tests pass a faulty one, which the audit must catch.
    progress
        Called with (done, all) attacks.
    """
    size = size or Size()
    _check_effort(runs, power)
    noise = PooledNoise(noise or ExactNoise())
    attacks = make_attacks(mechanism, budget, size, noise.source)
    chance = MISTAKES / len(attacks)
    runs = runs or choose_runs(attacks[0], power, chance)
    strongest = _compare_declared(attacks[0])
    for done, attack in enumerate(attacks):
        bound = _strike(attack, mechanism, runs, noise, release, chance)
        strongest = max(strongest, (bound, attack.name))
        if progress:
            progress(done + 1, len(attacks))
    factor = find_detectable(attacks[0], runs, power, chance)
    return AuditReport(
        mechanism=mechanism.name,
        claimed_epsilon=budget.epsilon,
        delta=attacks[0].calibration.spend.delta,
        items=len(size.names),
        max_answers=attacks[0].public.max_answers,
        lower_bound=strongest[0],
        detectable_factor=factor,
        detectable_epsilon=inf if factor == inf else attacks[0].statistic.epsilon(factor),
        power=power,
        runs=runs,
        attack=strongest[1],
        forms=len(size.forms),
        design=size.design,
    )


def _compare_declared(attack: Attack) -> tuple[float, str]:
    """Return the epsilon that the declared noise has for two persons, where that is too large.

    No release is needed for this: it takes how far the persons move the exact numbers.
    """
    excess = attack.statistic.excess
    if excess <= 1 + ROUNDING:
        return 0.0, "none"
    return attack.statistic.epsilon(excess), "the declared noise, by arithmetic"


ROUNDING = 1e-9
"""Of the floating-point arithmetic with which declared noise is compared."""


def _check_effort(runs: int | None, power: float) -> None:
    """Refuse an audit that can show nothing, or that would hardly end."""
    if (runs is not None and runs < 2) or not 0 < power < 1:
        raise BadUsage(
            f"an audit needs at least 2 runs and a power between 0 and 1, found {runs} and {power}"
        )
    if runs is not None and runs > ALLOWED_RUNS:
        raise BadUsage(
            f"an audit makes at most {ALLOWED_RUNS:,} releases of each data set, found {runs:,}, "
            "which would not end in useful time; ask for fewer, or leave the number out to have it "
            "chosen for the power"
        )


class PooledNoise:
    """The same sampler, asked for many draws at a time: an audit makes thousands of releases."""

    POOL = 1 << 16

    def __init__(self, noise: Noise) -> None:
        self.noise, self.name, self.source = noise, noise.name, noise.source
        self.is_private = noise.is_private
        self._pools: dict[tuple[str, Fraction], Int64Array] = {}

    def gaussian(self, sigma: Fraction, size: int) -> Int64Array:
        """Hand out discrete Gaussians."""
        return self._take("gaussian", sigma, size)

    def laplace(self, scale: Fraction, size: int) -> Int64Array:
        """Hand out discrete Laplace draws."""
        return self._take("laplace", scale, size)

    def _take(self, family: str, scale: Fraction, size: int) -> Int64Array:
        pool = self._pools.get((family, scale), np.zeros(0, dtype=np.int64))
        if pool.size < size:
            draw = self.noise.gaussian if family == "gaussian" else self.noise.laplace
            pool = draw(scale, max(self.POOL, size))
        self._pools[family, scale] = pool[size:]
        return pool[:size]


def _strike(
    attack: Attack,
    mechanism: CompleteMechanism,
    runs: int,
    noise: Noise,
    release: Callable[..., Release],
    chance: float,
) -> float:
    """Return the epsilon that one attack proves."""
    statistic = attack.statistic
    guarantee = attack.calibration.spend.guarantee(ledger=None, is_private=noise.is_private)
    if attack.is_crude:
        runs = min(runs, CRUDE_RUNS)
    measure = statistic.arrange if attack.is_crude else statistic.score

    def repeat(data: Any) -> FloatArray:
        measured = []
        for _ in range(runs):
            calibration = statistic.redraw(noise.source)
            released = release(
                data,
                mechanism=mechanism,
                public=attack.public,
                calibration=calibration,
                guarantee=guarantee,
                noise=noise,
            )
            measured.append(measure(released.values, calibration))
        return np.array(measured, dtype=np.float64)

    inside, outside = repeat(attack.data), repeat(attack.neighbour)
    if attack.is_crude:
        if (inside != np.rint(inside)).any() or (outside != np.rint(outside)).any():
            return inf  # the low bits of a float betray the exact count (Mironov 2012)
        mistakes, runs = count_telltale_mistakes(inside, outside)
    else:
        mistakes = int((inside < 0).sum() + (outside >= 0).sum())
    return statistic.epsilon(prove_factor(attack, mistakes, runs, chance))


def count_telltale_mistakes(inside: FloatArray, outside: FloatArray) -> tuple[int, int]:
    """Learn from half of the runs which numbers vary on one side only; judge that by the others.

    Returns the mistakes, and the runs of each side that were judged.
    """
    half = len(inside) // 2
    for still, moving in ((outside, inside), (inside, outside)):
        value = still[0]
        fixed = (still[:half] == value).all(axis=0) & (moving[:half] != value).any(axis=0)
        if fixed.any():
            differs = [(side[half:, fixed] != value[fixed]).any(axis=1) for side in (still, moving)]
            return int(differs[0].sum() + (~differs[1]).sum()), len(inside) - half
    return len(inside), len(inside)  # no better than a coin


MISTAKES = 0.001
"""How often an honest mechanism may be refuted: in one of a thousand audits."""

LARGEST_FACTOR = 64.0
FEWEST_RUNS, MOST_RUNS, ALLOWED_RUNS = 200, 20_000, 1_000_000
"""Where the number is chosen, and the most that may be asked for: hours of a core."""


def prove_factor(attack: Attack, mistakes: int, runs: int, chance: float) -> float:
    """Return the factor by which noise is surely too small; below 1 it proves nothing.

    Parameters
    ----------
    mistakes
        Of the test, in ``runs`` runs of each data set.
    chance
        Probability with which the factor may be too large.
    """
    separation = -2 * float(ndtri(highest_rate(mistakes, 2 * runs, chance)))
    return (
        0.0
        if separation <= 0
        else _first(lambda factor: attack.permitted(factor) >= separation, 0.0)
    )


def find_detectable(attack: Attack, runs: int, power: float, chance: float) -> float:
    """Return the smallest factor that the attack shows with the wanted power; infinite if none."""
    permitted = float(ndtr(-attack.permitted(1.0) / 2))
    max_mistakes = int(binom.ppf(chance, 2 * runs, permitted)) - 1  # mistakes that still refute

    def is_seen(factor: float) -> bool:
        rate = float(ndtr(-attack.statistic.separation(factor) / 2))
        return max_mistakes >= 0 and float(binom.cdf(max_mistakes, 2 * runs, rate)) >= power

    return _first(is_seen, 1.0) if is_seen(LARGEST_FACTOR) else inf


def choose_runs(attack: Attack, power: float, chance: float) -> int:
    """Return the fewest runs that show a fault that matters with the wanted power, or the most."""
    runs = FEWEST_RUNS
    while runs < MOST_RUNS and find_detectable(attack, runs, power, chance) > MATTERS:
        runs = min(MOST_RUNS, runs + runs // 10)
    return runs


def _first(holds: Callable[[float], bool], low: float) -> float:
    """Bisect for the smallest factor at which something holds; the largest if it never does."""
    return low if holds(low) else bisect_down(holds, low, LARGEST_FACTOR, 1e-6)


def highest_rate(successes: int, runs: int, mistakes: float) -> float:
    """Upper Clopper-Pearson limit of a rate."""
    if successes >= runs:
        return 1.0
    return float(betaincinv(successes + 1, runs - successes, 1 - mistakes))
