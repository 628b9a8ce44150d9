"""What a plan is about: a study that has not happened yet, in public parameters only."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache

from discreet.errors import BadUsage
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.mechanisms import Calibration, Public, RandomizedResponse, find_mechanism
from discreet.secure import SeededSource

__all__ = ["Assumptions", "Setting", "calibrate_setting", "expect_calibration"]

GRAPH_SEED = 7
"""`sparse-pairs` draws a public graph; plans look at one typical draw."""

SIMILAR_ANSWERS = 40
LARGEST_SIMILAR = 200
"""Between these caps the noise of `margins` is similar to itself: with c times the answers its
totals need sqrt(c) times the noise and its disagreements the same (within .5%, tested). Comparing
all kinds of persons at 40 answers takes a thousandth of the time that it takes at 200."""


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
            if not (math.isfinite(value) and 0 < value <= 5):
                raise BadUsage(
                    f"{name} must lie above 0 and up to 5 logits, found {value}; 1 is usual"
                )
        if not (math.isfinite(self.ability_mean) and abs(self.ability_mean) <= 5):
            raise BadUsage(
                f"ability_mean must lie within 5 logits of the average difficulty, found "
                f"{self.ability_mean}"
            )


@dataclass(frozen=True)
class Setting:
    """One complete study: everybody answers ``answers`` of the items, drawn at random."""

    persons: int
    items: int
    answers: int
    epsilon: float
    delta: float = 1e-6
    mechanism: str = "margins"
    neighbours: Neighbours = Neighbours.REPLACE_ONE
    assumptions: Assumptions = field(default_factory=Assumptions)

    def __post_init__(self) -> None:
        if self.items < 2:
            raise BadUsage(f"items must be at least 2, found {self.items}")
        if not 2 <= self.answers <= self.items:
            raise BadUsage(
                f"answers per person must lie between 2 and the {self.items} items, found "
                f"{self.answers}: one answer alone compares no two items"
            )
        if self.persons < 2:
            raise BadUsage(f"persons must be at least 2, found {self.persons}")

    @property
    def budget(self) -> Budget:
        """Return epsilon, delta and the relation; checked."""
        return Budget(self.epsilon, self.delta, self.neighbours)

    @property
    def public(self) -> Public:
        """Return the public parameters that a release of this study would have."""
        return make_public(self.items, self.answers, self.neighbours, self.persons)


def make_public(items: int, answers: int, neighbours: Neighbours, persons: int) -> Public:
    """Return public parameters with items "0", "1", ...."""
    known = persons if neighbours is Neighbours.REPLACE_ONE else None
    return Public(tuple(map(str, range(items))), answers, neighbours, known)


def calibrate_setting(setting: Setting) -> Calibration:
    """Return exactly the noise that a release of this study would get."""
    return _calibrate(
        setting.mechanism,
        setting.items,
        setting.answers,
        setting.budget,
    )


def expect_calibration(setting: Setting) -> Calibration:
    """Return the noise to plan with: the same, or for long answer sets nearly the same."""
    long = SIMILAR_ANSWERS < setting.answers <= LARGEST_SIMILAR
    paired = setting.neighbours is Neighbours.REPLACE_ONE
    if not (long and paired and setting.mechanism == "margins"):
        return calibrate_setting(setting)
    ratio = setting.answers / SIMILAR_ANSWERS
    items = max(SIMILAR_ANSWERS, round(setting.items / ratio))
    similar = calibrate_setting(replace(setting, items=items, answers=SIMILAR_ANSWERS))
    root = Fraction(math.sqrt(ratio))
    total = similar.laws["total"]
    return replace(
        similar,
        laws={**similar.laws, "total": replace(total, scale=total.scale * root)},
        settings={**similar.settings, "longest": similar.settings["longest"] * math.sqrt(ratio)},
    )


@lru_cache(maxsize=256)
def _calibrate(mechanism: str, items: int, answers: int, budget: Budget) -> Calibration:
    chosen = find_mechanism(mechanism)
    if isinstance(chosen, RandomizedResponse) and budget.neighbours is Neighbours.ADD_REMOVE:
        raise BadUsage(
            "randomized-response shows how many persons there are, so it has no add-remove "
            "guarantee; plan it with replace-one"
        )
    # No mechanism's default noise depends on the number of persons.
    public = make_public(items, answers, budget.neighbours, persons=1000)
    return chosen.calibrate(public, budget, SeededSource(GRAPH_SEED))
