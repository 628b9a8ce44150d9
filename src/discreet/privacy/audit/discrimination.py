"""Tests: statistics that tell two neighbouring data sets apart, and what their errors prove.

In: released values of both data sets. Out: a test, and the epsilon that its error rates prove.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtri

from discreet.privacy.accounting import Spend, gaussian_epsilon
from discreet.privacy.audit.attacks import Attack, exact_cells
from discreet.privacy.mechanisms import AnyMechanism, Mechanism, NoiseLaw, RandomizedResponse

__all__ = [
    "MISTAKES",
    "Score",
    "Test",
    "cap_is_idle",
    "choose_test",
    "find_telltale",
    "highest_rate",
    "linear_score",
    "prove_epsilon",
]

FloatArray = npt.NDArray[np.float64]
Score = Callable[[FloatArray], FloatArray]

MISTAKES = 0.001
"""How often an honest mechanism may fail the audit: one in a thousand audits."""


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
        score = linear_score(inside, outside)
    threshold = choose_threshold(score(inside), score(outside), attack.calibration.spend)
    return Test(score, threshold, is_learnt=True)


def linear_score(inside: FloatArray, outside: FloatArray) -> Score:
    """Return the best linear statistic on the runs at hand."""
    spread = inside.var(axis=0) + outside.var(axis=0) + 1e-12
    direction = (inside.mean(axis=0) - outside.mean(axis=0)) / spread
    return lambda values: values @ direction


def find_telltale(inside: FloatArray, outside: FloatArray) -> Score | None:
    """Look for numbers that are always the same on one side and not on the other."""
    for still, moving, sign in ((outside, inside, 1.0), (inside, outside, -1.0)):
        fixed = (still == still[0]).all(axis=0) & (moving != still[0]).any(axis=0)
        if fixed.any():
            value = still[0, fixed]
            return lambda values: sign * (values[:, fixed] != value).any(axis=1)
    return None


def cap_is_idle(attack: Attack) -> bool:
    """Say whether nobody has more answers than the cap, so that the exact cells are fixed."""
    most = max(int(side.store.person_totals()[0].max()) for side in (attack.data, attack.neighbour))
    return most <= attack.public.max_answers


def likelihood_ratio(attack: Attack, mechanism: Mechanism) -> Score:
    """Return the log likelihood ratio of additive noise around the two exact answers."""
    parts = exact_cells(attack, mechanism)

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
