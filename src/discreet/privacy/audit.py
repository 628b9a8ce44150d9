"""Attack our own mechanisms: a lower bound on epsilon that the adversary can prove.

In: a mechanism and a budget. Out: what an optimal test between two neighbouring data sets
achieved. It runs on synthetic data only, through the same wall as every release.

If a mechanism promises (epsilon, delta) with delta > 0 through a Gaussian curve of parameter
mu, then every test has Phi^-1(1 - a) - Phi^-1(b) <= mu for its error rates a and b (Dong, Roth
and Su 2022). If it promises epsilon alone, every test has (1 - b) / a <= e^epsilon. The error
rates are bounded from above by Clopper-Pearson limits on fresh runs, so a bound above the
promise refutes it, whatever the fault is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import inf, log
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtri

from discreet.engines import count_pairs
from discreet.privacy.accounting import Budget, Neighbours, Spend, gaussian_epsilon
from discreet.privacy.mechanisms import (
    AnyMechanism,
    Calibration,
    Mechanism,
    NoiseLaw,
    Public,
    RandomizedResponse,
)
from discreet.privacy.noise import ExactNoise, Noise
from discreet.privacy.wall import Release, release_statistics
from discreet.responses import Responses
from discreet.secure import RandomSource

__all__ = ["Attack", "AuditReport", "audit_mechanism"]

FloatArray = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]
Score = Callable[[FloatArray], FloatArray]

MISTAKES = 0.001
"""How often an honest mechanism may fail the audit: one in a thousand audits."""


@dataclass(frozen=True)
class Attack:
    """Two neighbouring data sets, and how they are released."""

    name: str
    data: Responses
    neighbour: Responses
    public: Public
    calibration: Calibration


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
    progress
        Called with (done, all) attacks.
    """
    noise = PooledNoise(noise or ExactNoise())
    attacks = make_attacks(mechanism, budget, noise.source)
    mistakes = MISTAKES / len(attacks)
    found = (0.0, "none")
    for done, attack in enumerate(attacks):
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


def make_attacks(mechanism: AnyMechanism, budget: Budget, source: RandomSource) -> list[Attack]:
    """Build neighbouring data sets that stretch a mechanism: one person, empty surroundings.

    The other persons leave most counts at zero, so a zero that gets no noise shows. One attack
    takes the answers that move the mechanism's own numbers farthest. The other has more answers
    than the cap and shows a cap that is not enforced.
    """
    persons = 2 if budget.neighbours is Neighbours.REPLACE_ONE else None

    def attack(name: str, rows: list[list[int]], cap: int) -> Attack:
        items = tuple(f"item {i}" for i in range(len(rows[0])))
        public = Public(items, cap, budget.neighbours, persons)
        calibration = mechanism.calibrate(public, budget, source)
        tried = [_neighbours(name, row, public, calibration) for row in rows]
        return max(tried, key=lambda one: _distance(one, mechanism))

    patterns = [[1, *rest] for rest in product([0, 1], repeat=3) if not all(rest)]
    return [
        attack("the farthest answers", patterns, 4),
        attack("more answers than the cap", [[1, 1, 1, 0, 0, 0]], 2),
    ]


def _neighbours(name: str, person: list[int], public: Public, calibration: Calibration) -> Attack:
    """One person beside another: reversed, or left out."""
    other_person = [1.0, 0.0, *[np.nan] * (len(person) - 2)]
    changed = [[1 - answer for answer in person]] if public.persons else []
    data, neighbour = (
        Responses.from_array(np.array([other_person, *rows], dtype=float), items=public.items)
        for rows in ([person], changed)
    )
    return Attack(name, data, neighbour, public, calibration)


def _distance(attack: Attack, mechanism: AnyMechanism) -> float:
    """Say how far apart the exact numbers of the two data sets are, in units of their noise."""
    if isinstance(mechanism, RandomizedResponse):
        return 0.0
    return sum(
        float(np.sum(np.abs(one - other) ** (2 if law.family == "gaussian" else 1)))
        / float(law.scale) ** (2 if law.family == "gaussian" else 1)
        for law, one, other in _exact_cells(attack, mechanism)
    )


def _exact_cells(
    attack: Attack, mechanism: Mechanism
) -> list[tuple[NoiseLaw, Int64Array, Int64Array]]:
    """Every array of cells by name: its noise law, and its exact values on both sides."""
    calibration = attack.calibration
    weighting = mechanism.weighting(attack.public, calibration)
    first, second = (
        mechanism.cells(count_pairs(side, weighting=weighting), calibration)
        for side in (attack.data, attack.neighbour)
    )
    return [
        (calibration.laws[name], np.ravel(first[name]), np.ravel(second[name]))
        for name in sorted(first)
    ]


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


@dataclass(frozen=True)
class Test:
    """Say "the first data set" where the score reaches the threshold.

    A test that was learnt from some runs must be judged on others.
    """

    score: Score
    threshold: float
    is_learnt: bool


def choose_test(
    inside: FloatArray,
    outside: FloatArray,
    attack: Attack,
    mechanism: AnyMechanism,
) -> Test:
    """Return the test that tells the two data sets apart best.

    First whatever is wrong in a crude way: a number that never varies on one side. Then the
    likelihood ratio, which is known for additive noise; where the cap makes the centre random,
    and for randomized response, the best linear statistic on the runs at hand.
    """
    score = find_telltale(inside, outside)
    if score is None and not isinstance(mechanism, RandomizedResponse) and cap_is_idle(attack):
        score = likelihood_ratio(attack, mechanism)
        if not attack.calibration.spend.is_pure:
            return Test(score, 0.0, is_learnt=False)  # equal errors prove most of a Gaussian
    if score is None:
        spread = inside.var(axis=0) + outside.var(axis=0) + 1e-12
        direction = (inside.mean(axis=0) - outside.mean(axis=0)) / spread
        score = _projection(direction)
    threshold = choose_threshold(score(inside), score(outside), attack.calibration.spend)
    return Test(score, threshold, is_learnt=True)


def _projection(direction: FloatArray) -> Score:
    return lambda values: values @ direction


def find_telltale(inside: FloatArray, outside: FloatArray) -> Score | None:
    """Look for a number that is always the same on one side and not on the other."""
    for still, moving, sign in ((outside, inside, 1.0), (inside, outside, -1.0)):
        fixed = (still == still[0]).all(axis=0) & (moving != still[0]).any(axis=0)
        if fixed.any():
            column = int(np.argmax(fixed))
            value = still[0, column]
            return lambda values: sign * (values[:, column] != value)
    return None


def cap_is_idle(attack: Attack) -> bool:
    """Say whether nobody has more answers than the cap, so that the exact cells are fixed."""
    most = max(int(side.store.person_totals()[0].max()) for side in (attack.data, attack.neighbour))
    return most <= attack.public.max_answers


def likelihood_ratio(attack: Attack, mechanism: Mechanism) -> Score:
    """Return the log likelihood ratio of additive noise around the two exact answers."""
    parts = _exact_cells(attack, mechanism)

    def score(values: FloatArray) -> FloatArray:
        total = np.zeros(len(values))
        start = 0
        for law, one, other in parts:
            block = values[:, start : start + one.size]
            total += (log_density(law, block - one) - log_density(law, block - other)).sum(axis=1)
            start += one.size
        return total

    return score


def log_density(law: NoiseLaw, noise: FloatArray) -> FloatArray:
    """Return the log of the noise's probability, up to a constant."""
    scale = float(law.scale)
    if law.family == "gaussian":
        return -(noise**2) / (2 * scale**2)
    return -np.abs(noise) / scale


def choose_threshold(inside: FloatArray, outside: FloatArray, spend: Spend) -> float:
    """Pick the cut that proves most on the runs at hand."""
    cuts = np.unique(np.quantile(np.concatenate([inside, outside]), np.linspace(0.02, 0.98, 49)))
    cuts = np.append(cuts, (inside.mean() + outside.mean()) / 2)
    proved = [
        prove_epsilon(
            int(np.sum(inside < cut)), int(np.sum(outside >= cut)), len(inside), spend, MISTAKES
        )
        for cut in cuts
    ]
    return float(cuts[int(np.argmax(proved))])


def prove_epsilon(misses: int, alarms: int, runs: int, spend: Spend, mistakes: float) -> float:
    """Return the epsilon that these error rates prove, at the spend's delta.

    Parameters
    ----------
    misses, alarms
        Runs in which the test took the first data set for the second, and the other way round.
    runs
        On each side.
    mistakes
        Probability that the bound is wrong, split between the two error rates.
    """
    miss = highest_rate(misses, runs, mistakes / 2)
    alarm = highest_rate(alarms, runs, mistakes / 2)
    if spend.is_pure:
        return max(0.0, log(max(1 - miss, 1e-300) / alarm)) if miss < 1 else 0.0
    mu = float(-ndtri(alarm) - ndtri(miss)) if max(miss, alarm) < 1 else 0.0
    # Slack of the accountant's curve over the pure Gaussian one: allowed for, not attacked.
    return 0.0 if mu <= 0 else gaussian_epsilon(mu, spend.delta)


def highest_rate(successes: int, runs: int, mistakes: float) -> float:
    """Upper Clopper-Pearson limit of a rate."""
    if successes >= runs:
        return 1.0
    return float(betaincinv(successes + 1, runs - successes, 1 - mistakes))
