"""Statistics of attacks: how well a release distinguishes two neighbouring data sets.

In: a calibration, and the exact cells of one person on both sides. Out: the log likelihood ratio
of a release, and its known distribution; the audit attacks with it. How well two data sets can be
told apart is put as a separation s: both are mixed up with the rate Phi(-s / 2), as two normal
distributions s standard deviations apart are. The statistic of additive noise is here; mechanisms
with noise of another kind bring their own. So is what a number of mistakes proves about the noise,
and how many runs it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import ceil, inf, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtr, ndtri
from scipy.stats import binom

from discreet.privacy.accounting.spend import bisect_down, gaussian_epsilon
from discreet.privacy.protocol import NoiseCalibration, NoiseLaw, Public
from discreet.secure import RandomSource
from discreet.types import FloatArray

NeighbourCells = Mapping[str, tuple[npt.NDArray[Any], npt.NDArray[Any]]]
Separation = Callable[[float], float]
Values = Mapping[str, npt.NDArray[Any]]

#: Noise that is too small by this factor makes epsilon a tenth larger than promised.
#:
#: The smallest mistakes that are made with sensitivities are as large: a cap of ten that lets an
#: eleventh answer pass (1.1), replace-one noise from an add-remove bound (1.41).
MATTERS = 1.1

FACTORS = np.array([0, 0.7, 0.9, 1, 1.1, 1.2, 1.5, 2.5, 5])
#: Many times the runs of an audit, so that its own chance is what counts.
TABLE_RUNS = 40_000

DRAWN_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class Statistic:
    """What tells two data sets apart.

    Attributes
    ----------
    reach
        How far one person changes the cells, in standard deviations of their noise.
    score
        Of a release; at least 0 says "the first data set".
    separation
        Of the two data sets, if the noise is too small by a factor.
    permitted
        What the promise permits of it.
    ceiling
        What the promise permits of any two neighbours, also where a cap picks answers at random.
    epsilon
        What the release promises, if its noise is too small by a factor.
    arrange
        A release's numbers in a fixed order.
    redraw
        The calibration of another release: the same, or with a fresh graph.
    excess
        The factor by which the declared noise is too small for these two persons, by arithmetic: at
        most 1 where it keeps the promise. 0 where the noise is no sum of declared laws.
    """

    reach: float
    score: Callable[[Values, NoiseCalibration], float]
    separation: Separation
    permitted: Separation
    ceiling: Separation
    epsilon: Callable[[float], float]
    arrange: Callable[[Values, NoiseCalibration], FloatArray]
    redraw: Callable[[RandomSource], NoiseCalibration]
    excess: float = 0.0


def join_values(values: Values, calibration: NoiseCalibration) -> FloatArray:  # noqa: ARG001
    """Join all released numbers into a vector, in a fixed order."""
    return np.concatenate([np.ravel(values[name]) for name in sorted(values)]).astype(float)


def additive_statistic(
    calibration: NoiseCalibration, cells: NeighbourCells, group: int
) -> Statistic:
    """Return the log likelihood ratio of additive noise around the two exact answers."""
    laws, spend = calibration.laws, calibration.spend
    parts = {name: (group * one, group * other) for name, (one, other) in cells.items()}
    steps = [(one - other) / float(laws[name].scale) for name, (one, other) in cells.items()]
    reach = sqrt(sum(float(step @ step) for step in steps))

    def score(values: Values, calibration: NoiseCalibration) -> float:  # noqa: ARG001
        return sum(
            float(
                (_log_density(laws[k], values[k] - a) - _log_density(laws[k], values[k] - b)).sum()
            )
            for k, (a, b) in parts.items()
        )

    if spend.is_pure:
        separation = permitted = ceiling = _laplace_separation(laws, parts)
        epsilon = pure_epsilon(calibration)
        excess = sum(float(np.abs(step).sum()) for step in steps) / spend.epsilon
    else:
        claim = sqrt(float(spend.bound.mu_squared))
        kinds = (reach, min(reach, claim), claim)
        separation, permitted, ceiling = (_in_proportion(group * mu) for mu in kinds)
        epsilon = gaussian_claim(calibration, claim)
        excess = reach / claim
    return Statistic(
        reach,
        score,
        separation,
        permitted,
        ceiling,
        epsilon,
        arrange=join_values,
        redraw=lambda _: calibration,
        excess=excess,
    )


def _in_proportion(separation: float) -> Separation:
    return lambda factor: factor * separation


def _log_density(law: NoiseLaw, noise: FloatArray) -> FloatArray:
    """Return the log of the noise's probability, up to a constant."""
    scale = float(law.scale)
    if law.family == "gaussian":
        return -(noise**2) / (2 * scale**2)
    return -np.abs(noise) / scale


def pure_epsilon(calibration: NoiseCalibration) -> Callable[[float], float]:
    """Return the epsilon of pure noise that is too small by a factor."""
    # Of shuffled answers it is a lower bound: amplification fades as answers are flipped less.
    return lambda factor: factor * calibration.spend.epsilon


def gaussian_claim(calibration: NoiseCalibration, claim: float) -> Callable[[float], float]:
    """In proportion to the Gaussian curve, so that the factor 1 is the claim itself."""
    spend = calibration.spend

    def epsilon(factor: float) -> float:
        changed, claimed = (gaussian_epsilon(mu, spend.delta) for mu in (factor * claim, claim))
        # Of so small a claim delta alone bounds everything: then in proportion to the factor.
        return spend.epsilon * (changed / claimed if claimed > 0 else factor)

    return epsilon


def _laplace_separation(laws: Mapping[str, NoiseLaw], parts: NeighbourCells) -> Separation:
    """Draw the log likelihood ratio with noise of other scales, and tabulate its mistakes."""
    shift = np.concatenate([np.ravel(np.abs(one - other)) for one, other in parts.values()])
    sizes = [(float(laws[name].scale), one.size) for name, (one, _) in parts.items()]
    scale = np.concatenate([np.full(size, t) for t, size in sizes])
    shift, scale = shift[shift > 0].astype(np.float32), scale[shift > 0].astype(np.float32)

    @cache
    def table() -> FloatArray:
        rng = np.random.default_rng(0)
        chunk = int(np.clip(DRAWN_AT_ONCE // len(shift), 1, TABLE_RUNS))
        rates = [
            [_mistakes(factor, shift, scale, *drawn) for factor in FACTORS[1:]]
            for _ in range(ceil(TABLE_RUNS / chunk))
            for drawn in [rng.standard_exponential((2, chunk, len(shift)), dtype=np.float32)]
        ]
        rate = np.maximum(np.mean(rates, axis=0), 0.5 / TABLE_RUNS)
        return np.maximum.accumulate(np.concatenate([[0.0], -2 * ndtri(np.minimum(rate, 0.5))]))

    def separation(factor: float) -> float:
        beyond = max(1.0, factor / float(FACTORS[-1]))
        return beyond * float(np.interp(factor, FACTORS, table()))

    return separation


def _mistakes(
    factor: float, shift: Any, scale: Any, up: npt.NDArray[Any], down: npt.NDArray[Any]
) -> float:
    """How often discrete Laplace noise misleads; the whole part of an exponential is geometric."""
    noise = np.floor(up * (scale / factor)) - np.floor(down * (scale / factor))
    score = ((np.abs(noise + shift) - np.abs(noise)) / scale).sum(axis=1)
    return float((score < 0).mean() + (score <= 0).mean()) / 2


# --- what a number of mistakes proves -------------------------------------------------------------

LARGEST_FACTOR = 64.0
#: Where the number is chosen, and the most that may be asked for: hours of a core.
FEWEST_RUNS, MOST_RUNS, ALLOWED_RUNS = 200, 20_000, 1_000_000


@dataclass(frozen=True)
class Attack:
    """Two neighbouring data sets, how they are released, and what tells them apart.

    Attributes
    ----------
    permitted
        The separation that the promise permits if the noise is too small by a factor.
    is_crude
        Looks for numbers without noise only, which takes few runs.
    """

    name: str
    data: Any
    neighbour: Any
    public: Public
    calibration: NoiseCalibration
    statistic: Statistic
    permitted: Separation
    is_crude: bool = False


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
