"""What a plan is about: a study that has not happened yet, in public parameters only.

A prediction about it can be checked by doing it: made-up answers, the real wall, the real
estimator. Slow, and honest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import get_args

import numpy as np

from discreet.counts.planes import MOST_STEPS
from discreet.errors import BadUsage
from discreet.models.noisy.released import estimate_release
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.mechanisms import check_steps_taken, find_mechanism
from discreet.privacy.noise import ExactNoise
from discreet.privacy.protocol import NoiseCalibration, Public
from discreet.privacy.wall import release_statistics
from discreet.secure import SeededSource
from discreet.simulation import Simulation, simulate
from discreet.types import PlannedDesign

GRAPH_SEED = 7
"""`sparse-pairs` draws a public graph; plans look at one typical draw."""
LEAST_SPREAD, MOST_SPREAD = 0.001, 5.0
"""Logits: below, all items are alike; above, hardly any answer is uncertain."""
MOST_ITEMS, MOST_PERSONS = 100_000, 10**12
"""More items take minutes and gigabytes; there are fewer people."""


@dataclass(frozen=True)
class Assumptions:
    """What a plan has to assume about people and items.

    Attributes
    ----------
    difficulty_spread
        Standard deviation of the difficulties, in logits; normal around zero.
    ability_spread, ability_mean
        Of the abilities, in logits; normal. The mean is relative to the average difficulty.
    """

    difficulty_spread: float = 1.0
    ability_spread: float = 1.0
    ability_mean: float = 0.0

    def __post_init__(self) -> None:
        for name in ("difficulty_spread", "ability_spread"):
            value = getattr(self, name)
            if not LEAST_SPREAD <= value <= MOST_SPREAD:
                raise BadUsage(
                    f"{name} must lie between {LEAST_SPREAD:g} and {MOST_SPREAD:g} logits, found "
                    f"{value}; 1 is usual"
                )
        if not (math.isfinite(self.ability_mean) and abs(self.ability_mean) <= 5):
            raise BadUsage(
                f"ability_mean must lie within 5 logits of the average difficulty, found "
                f"{self.ability_mean}"
            )


@dataclass(frozen=True)
class Setting:
    """One complete study: everybody answers ``answers`` of the items.

    They are drawn at random, or are two neighbouring blocks of items (``design="booklets"``, as
    :func:`discreet.simulate` gives them out). Every item has as many ``steps``: 1 for right and
    wrong.
    """

    persons: int
    items: int
    answers: int
    epsilon: float
    delta: float = 1e-6
    mechanism: str = "margins"
    neighbours: Neighbours = Neighbours.REPLACE_ONE
    assumptions: Assumptions = field(default_factory=Assumptions)
    steps: int = 1
    design: PlannedDesign = "uniform"

    def __post_init__(self) -> None:
        if self.design not in get_args(PlannedDesign):
            raise BadUsage(
                f"plans know the designs {' and '.join(get_args(PlannedDesign))}, found "
                f"{self.design!r}. Of another, release made-up answers (discreet simulate) a few "
                "times and look at the error"
            )
        if self.design != "uniform" and (self.steps > 1 or self.mechanism == "totals"):
            raise BadUsage(
                "plans of the mechanism totals, and of items with steps, are for items that are "
                f"given out at random; leave out the design {self.design!r}"
            )
        if not 1 <= self.steps <= MOST_STEPS:
            raise BadUsage(
                f"steps must lie between 1 (right and wrong) and {MOST_STEPS}, found {self.steps}"
            )
        if not 2 <= self.items <= MOST_ITEMS:
            raise BadUsage(f"items must lie between 2 and {MOST_ITEMS:,}, found {self.items:,}")
        if not 2 <= self.answers <= self.items:
            raise BadUsage(
                f"answers per person must lie between 2 and the {self.items} items, found "
                f"{self.answers}: one answer alone compares no two items"
            )
        if not 2 <= self.persons <= MOST_PERSONS:
            raise BadUsage(
                f"persons must lie between 2 and {MOST_PERSONS:,}, found {self.persons:,}"
            )

    @property
    def budget(self) -> Budget:
        """Return epsilon, delta and the relation; checked."""
        return Budget(self.epsilon, self.delta, self.neighbours)

    @property
    def public(self) -> Public:
        """Return the public parameters that a release of this study would have."""
        return make_public(
            self.items, self.answers, self.neighbours, self.persons, steps=self.steps
        )

    def calibrate(self) -> NoiseCalibration:
        """Return exactly the noise that a release of this study would get."""
        return _calibrate(self.mechanism, self.items, self.answers, self.budget, self.steps)


def make_public(
    items: int, answers: int, neighbours: Neighbours, persons: int, *, steps: int = 1
) -> Public:
    """Return public parameters with items "0", "1", ...."""
    public_persons = persons if neighbours is Neighbours.REPLACE_ONE else None
    return Public(
        tuple(map(str, range(items))),
        answers,
        neighbours,
        public_persons,
        steps=(steps,) * items,
        design="complete" if answers == items else "random",
    )


@lru_cache(maxsize=256)
def _calibrate(
    mechanism: str, items: int, answers: int, budget: Budget, steps: int
) -> NoiseCalibration:
    chosen = find_mechanism(mechanism)
    if budget.neighbours not in chosen.relations:
        raise BadUsage(
            f"{chosen.name} shows how many persons there are, so it has no {budget.neighbours} "
            "guarantee; plan it with replace-one"
        )
    # No mechanism's default noise depends on the number of persons.
    public = make_public(items, answers, budget.neighbours, persons=1000, steps=steps)
    check_steps_taken(chosen, public)
    return chosen.calibrate(public, budget, SeededSource(GRAPH_SEED))


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
    in_booklets = setting.design == "booklets"
    full = simulate(
        setting.persons,
        setting.items,
        answered=setting.answers / setting.items if in_booklets else 1.0,
        design=setting.design,
        difficulty=difficulty - difficulty.mean(),
        ability=ability,
        steps=setting.steps if setting.steps > 1 else None,
        rng=rng,
    )
    if setting.answers == setting.items or in_booklets:
        return full
    capped = full.responses.cap(setting.answers, SeededSource(int(rng.integers(2**62))))
    return replace(full, responses=capped)


def released_error(study: Simulation, setting: Setting, seed: int) -> float:
    """Mean square error of one release; seeded, so it is not private and needs not be."""
    calibration = setting.calibrate()
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
