"""Check a prediction by doing it: made-up answers, the real wall, the real estimator.

In: a setting. Out: the error that releases of such studies had. Slow, and honest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet.estimators.released import estimate_release
from discreet.planning.setting import Setting, calibrate_setting
from discreet.privacy.mechanisms import find_mechanism
from discreet.privacy.noise import ExactNoise
from discreet.privacy.wall import release_statistics
from discreet.secure import SeededSource
from discreet.simulation import Simulation, simulate

__all__ = ["Check", "check_setting", "draw_study", "released_error"]


@dataclass(frozen=True)
class Check:
    """What simulated releases of a study had.

    Attributes
    ----------
    rmse
        Root mean square error of the released difficulties, over items and runs.
    uncertainty
        Standard error of ``rmse`` itself, from the scatter between runs.
    runs
        How many studies were made up.
    """

    rmse: float
    uncertainty: float
    runs: int


def check_setting(
    setting: Setting,
    *,
    runs: int = 20,
    rng: np.random.Generator | None = None,
    progress: Callable[[int], None] | None = None,
) -> Check:
    """Simulate a study ``runs`` times, release it, and measure the error.

    Parameters
    ----------
    setting
        The study.
    runs
        How often; the answer is good to about 1 / sqrt(2 runs items).
    rng
        For people, items and answers; fresh when left out.
    progress
        Called with the number of runs done.
    """
    rng = np.random.default_rng() if rng is None else rng
    squares = []
    for done in range(runs):
        study = draw_study(setting, rng)
        squares.append(released_error(study, setting, int(rng.integers(2**62))))
        if progress is not None:
            progress(done + 1)
    return summarise(squares)


def summarise(squares: list[float]) -> Check:
    """Turn mean square errors, one per run, into a root mean square error."""
    rmse = float(np.sqrt(np.mean(squares)))
    scatter = float(np.std(squares, ddof=1)) if len(squares) > 1 else float("nan")
    return Check(rmse, scatter / (2 * rmse * float(np.sqrt(len(squares)))), len(squares))


def draw_study(setting: Setting, rng: np.random.Generator) -> Simulation:
    """Draw people, items and answers as the setting's assumptions say."""
    assumed = setting.assumptions
    difficulty = assumed.difficulty_spread * rng.standard_normal(setting.items)
    ability = assumed.ability_mean + assumed.ability_spread * rng.standard_normal(setting.persons)
    full = simulate(
        setting.persons,
        setting.items,
        difficulty=difficulty - difficulty.mean(),
        ability=ability,
        rng=rng,
    )
    if setting.answers == setting.items:
        return full
    kept = full.responses.cap(setting.answers, SeededSource(int(rng.integers(2**62))))
    return Simulation(kept, full.difficulty, full.ability)


def released_error(study: Simulation, setting: Setting, seed: int) -> float:
    """Mean square error of one release; seeded, so it is not private and needs not be."""
    calibration = calibrate_setting(setting)
    noise = ExactNoise(SeededSource(seed))
    released = release_statistics(
        study.responses,
        mechanism=find_mechanism(setting.mechanism),
        public=setting.public,
        calibration=calibration,
        guarantee=calibration.spend.guarantee(ledger=None, is_private=False, conditions=()),
        noise=noise,
    )
    estimate = estimate_release(released, standard_errors=False)
    error = estimate.difficulty - study.difficulty
    return float(np.mean(error**2))
