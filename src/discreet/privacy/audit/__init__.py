"""Attack our own mechanisms: a lower bound on epsilon that the adversary can prove.

In: a mechanism and a budget. Out: what an optimal test between two neighbouring data sets
achieved. It runs on synthetic data only, through the same wall as every release.

If a mechanism promises (epsilon, delta) with delta > 0 through a Gaussian curve of parameter
mu, then every test has Phi^-1(1 - a) - Phi^-1(b) <= mu for its error rates a and b (Dong, Roth
and Su 2022). If it promises epsilon alone, every test has (1 - b) / a <= e^epsilon. The error
rates are bounded from above by Clopper-Pearson limits on fresh runs, so a bound above the
promise refutes it, whatever the fault is. A promise about a random graph is attacked with a
fresh graph in every run (`random_graphs`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.privacy.accounting import Budget
from discreet.privacy.audit.attacks import Attack, make_attacks
from discreet.privacy.audit.discrimination import MISTAKES, choose_test, prove_epsilon
from discreet.privacy.audit.random_graphs import averages_graphs, prove_on_random_graphs
from discreet.privacy.mechanisms import AnyMechanism, SparsePairs
from discreet.privacy.noise import ExactNoise, Noise
from discreet.privacy.wall import Release, release_statistics
from discreet.responses import Responses

__all__ = ["AuditReport", "audit_mechanism"]

FloatArray = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class AuditReport:
    """What the attacks could prove.

    Attributes
    ----------
    mechanism, claimed_epsilon, delta
        The claim.
    lower_bound
        The largest epsilon (at that delta) that an attack proved with 99.9% confidence.
    passed
        Whether that is at most the claim.
    runs
        Releases made per data set and attack.
    attack
        The attack behind the lower bound.
    """

    mechanism: str
    claimed_epsilon: float
    delta: float
    lower_bound: float
    passed: bool
    runs: int
    attack: str


def audit_mechanism(
    mechanism: AnyMechanism,
    budget: Budget,
    *,
    runs: int = 10_000,
    noise: Noise | None = None,
    release: Callable[..., Release] = release_statistics,
    attacks: Sequence[Attack] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> AuditReport:
    """Run every attack on a mechanism and report the strongest.

    Parameters
    ----------
    mechanism
        The mechanism under attack.
    budget
        What it claims.
    runs
        Releases per data set and attack. A test that has to be learnt uses half of them.
    release
        The wall; tests pass a faulty one, which the audit must catch.
    attacks
        By default those of :func:`discreet.privacy.audit.attacks.make_attacks`.
    progress
        Called with (done, all) attacks.
    """
    noise = PooledNoise(noise or ExactNoise())
    attacks = attacks or make_attacks(mechanism, budget, noise.source)
    mistakes = MISTAKES / len(attacks)
    found = (0.0, "none")
    for done, attack in enumerate(attacks):
        if isinstance(mechanism, SparsePairs) and averages_graphs(mechanism):
            bound = prove_on_random_graphs(attack, mechanism, runs, noise, release, mistakes)
        else:
            bound = _strongest_claim(attack, mechanism, runs, noise, release, mistakes)
        found = max(found, (bound, attack.name))
        if progress:
            progress(done + 1, len(attacks))
    return AuditReport(
        mechanism=mechanism.name,
        claimed_epsilon=budget.epsilon,
        delta=budget.delta,
        lower_bound=found[0],
        passed=found[0] <= budget.epsilon,
        runs=runs,
        attack=found[1],
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


def _strongest_claim(
    attack: Attack,
    mechanism: AnyMechanism,
    runs: int,
    noise: Noise,
    release: Callable[..., Release],
    mistakes: float,
) -> float:
    """Return the epsilon that the best threshold test on one attack proves."""
    calibration = attack.calibration
    guarantee = calibration.spend.guarantee(ledger=None, is_private=noise.is_private)

    def repeat(data: Responses) -> FloatArray:
        made = (
            release(
                data,
                mechanism=mechanism,
                public=attack.public,
                calibration=calibration,
                guarantee=guarantee,
                noise=noise,
            )
            for _ in range(runs)
        )
        return np.array([flatten(one.values) for one in made], dtype=np.float64)

    inside, outside = repeat(attack.data), repeat(attack.neighbour)
    if (inside != np.rint(inside)).any() or (outside != np.rint(outside)).any():
        return inf  # the low bits of a float betray the exact count (Mironov 2012)
    half = runs // 2
    test = choose_test(inside[:half], outside[:half], attack, mechanism)
    judged = slice(half if test.is_learnt else 0, runs)
    misses = int(np.sum(test.score(inside[judged]) < test.threshold))
    alarms = int(np.sum(test.score(outside[judged]) >= test.threshold))
    return prove_epsilon(misses, alarms, len(inside[judged]), calibration.spend, mistakes)


def flatten(values: Any) -> FloatArray:
    """Join all released numbers of one release into a vector, in a fixed order."""
    return np.concatenate([np.ravel(values[name]) for name in sorted(values)]).astype(float)
