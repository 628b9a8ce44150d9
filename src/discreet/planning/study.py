"""What a plan is about: a study that has not happened yet, in public parameters only.

In: public parameters and assumptions. Out: a :class:`Setting`, and what the noise of its mechanism
does to the numbers that difficulties are fitted to: standard deviations in units of the persons'
weights, or the errors themselves where the mechanism's fit can tell them. A prediction can be
checked by doing it: made-up answers, the real wall, the real estimator. Slow, and honest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from math import sqrt
from typing import Any, Literal, get_args

import numpy as np

from discreet.answers.logistic import logistic
from discreet.answers.residual_sums import CENTRE_BITS, Centre
from discreet.choices import PlannedDesign
from discreet.counts.planes import MOST_STEPS
from discreet.errors import BadUsage
from discreet.models.noisy.released import estimate_release, find_answer_variance
from discreet.models.noisy.totals import expect_forms, thin_form
from discreet.models.noisy.totals.fit import TotalsForecast, assume_thresholds, forecast_totals
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.mechanisms import check_steps_taken, find_mechanism
from discreet.privacy.mechanisms.residuals import LAST
from discreet.privacy.mechanisms.totals import unpack_shapes
from discreet.privacy.noise import ExactNoise
from discreet.privacy.protocol import NoiseCalibration, Public
from discreet.privacy.wall import release_statistics
from discreet.secure import SeededSource
from discreet.simulation import Simulation, simulate
from discreet.types import FloatArray

#: `sparse-pairs` draws a public graph; plans look at one typical draw.
GRAPH_SEED = 7
#: Logits: below, all items are alike; above, hardly any answer is uncertain.
LEAST_SPREAD, MOST_SPREAD = 0.001, 5.0
#: More items take minutes and gigabytes; there are fewer people.
MOST_ITEMS, MOST_PERSONS, MOST_GROUPS = 100_000, 10**12, 100


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
    wrong. With ``groups`` the persons are in so many groups of one size, which are compared.
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
    groups: int = 0

    def __post_init__(self) -> None:
        if self.design not in get_args(PlannedDesign):
            raise BadUsage(
                f"the design of a plan must be {' or '.join(get_args(PlannedDesign))}, found "
                f"{self.design!r}. For another design, simulate answers (discreet simulate), "
                "release them a few times and look at the error"
            )
        if self.design != "uniform" and (self.steps > 1 or self.mechanism in AT_RANDOM):
            raise BadUsage(
                "plans of the mechanisms totals and residuals, and of items with steps, are for "
                f"items that are given out at random; leave out the design {self.design!r}"
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
        if self.groups and not (self.mechanism == "residuals" and 2 <= self.groups <= MOST_GROUPS):
            raise BadUsage(
                f"groups are compared by the mechanism residuals, from 2 to {MOST_GROUPS} of them; "
                f"found groups={self.groups} and the mechanism {self.mechanism}. Leave out the "
                "mechanism, or the groups"
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
        is_counted = self.neighbours is Neighbours.REPLACE_ONE
        return Public(
            tuple(map(str, range(self.items))),
            self.answers,
            self.neighbours,
            self.persons if is_counted else None,
            steps=(self.steps,) * self.items,
            design="complete" if self.answers == self.items else "random",
            group_column="group" if self.groups else "",
            groups=tuple(f"group {number}" for number in range(self.groups)),
        )

    def calibrate(self) -> NoiseCalibration:
        """Return exactly the noise that a release of this study would get."""
        # No mechanism's default noise depends on the persons.
        return _calibrate(replace(self, persons=1000, assumptions=Assumptions()))


@lru_cache(maxsize=256)
def _calibrate(setting: Setting) -> NoiseCalibration:
    chosen, public = find_mechanism(setting.mechanism), setting.public
    if setting.neighbours not in chosen.relations:
        raise BadUsage(
            f"{chosen.name} shows how many persons there are, so it has no {setting.neighbours} "
            "guarantee; plan it with replace-one"
        )
    check_steps_taken(chosen, public)
    return chosen.calibrate(public, setting.budget, SeededSource(GRAPH_SEED))


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


@dataclass(frozen=True, eq=False)
class NoiseForecast:
    """What a release adds to the numbers that difficulties are fitted to, in person weights.

    Attributes
    ----------
    total, disagreement
        Standard deviations of the noise on an item's total (or a pair's difference) and on a
        pair's disagreements.
    weights
        Weight of a person with k answers right, k from 0.
    fitted
        What the fit is made from: ``"totals"`` of items, or ``"pairs"`` of them.
    density
        Share of the pairs that are counted; below 1 they are a random graph.
    """

    total: float
    disagreement: float
    weights: FloatArray
    fitted: Literal["totals", "pairs"]
    density: float = 1.0


SIMILAR_ANSWERS = 40
#: Between these caps the noise of `margins` is similar to itself: with c times the answers the
#: totals need sqrt(c) times the noise and the disagreements the same (within .5%, tested).
#: Comparing all kinds of persons at 40 answers takes a thousandth of the time that it takes at 200.
LARGEST_SIMILAR = 200


def forecast_margins(setting: Setting) -> NoiseForecast:
    """Say what the noise on totals and disagreements is in units of the weights."""
    calibration, answers = expect_margins_noise(setting), setting.answers
    grid = calibration.settings["grid"]
    mechanism: Any = find_mechanism(setting.mechanism)
    weights = mechanism.weighting(setting.public, calibration)
    return NoiseForecast(
        sqrt(calibration.laws["total"].variance) / grid,
        sqrt(calibration.laws["disagreement"].variance) / grid,
        weights(np.full(answers + 1, answers), np.arange(answers + 1)) / grid,
        "totals",
    )


def expect_margins_noise(setting: Setting) -> NoiseCalibration:
    """Return the noise of the study, or for long answer sets nearly the same."""
    long = SIMILAR_ANSWERS < setting.answers <= LARGEST_SIMILAR
    paired = setting.neighbours is Neighbours.REPLACE_ONE
    if not (long and paired and setting.mechanism == "margins"):
        return setting.calibrate()
    ratio = setting.answers / SIMILAR_ANSWERS
    items = max(SIMILAR_ANSWERS, round(setting.items / ratio))
    similar = replace(setting, items=items, answers=SIMILAR_ANSWERS).calibrate()
    total = similar.laws["total"]
    longer = replace(total, scale=total.scale * Fraction(sqrt(ratio)))
    longest = similar.settings["longest"] * sqrt(ratio)
    return replace(
        similar,
        laws={**similar.laws, "total": longer},
        settings={**similar.settings, "longest": longest},
    )


def forecast_pairs(setting: Setting) -> NoiseForecast:
    """Every pair's difference and sum have the noise of two counts; of a graph, on its edges."""
    calibration = setting.calibrate()
    sigma = sqrt(2 * calibration.laws["right_wrong"].variance)
    density = calibration.settings.get("edge_probability", 1.0)
    return NoiseForecast(sigma, sigma, np.ones(setting.answers + 1), "pairs", density)


def forecast_flipped_answers(setting: Setting) -> NoiseForecast:
    """Say what the flips of everybody's answers add up to."""
    variance = find_answer_variance(setting.calibrate().settings)
    takers = setting.persons * setting.answers / setting.items
    together = takers * (setting.answers - 1) / (setting.items - 1)
    return NoiseForecast(
        sqrt(variance * takers),
        sqrt((2 * variance + 4 * variance**2) * together) / setting.answers,
        np.full(setting.answers + 1, 1 / setting.answers),
        "totals",
    )


#: Items at which plans look at a longer list: what is released about an item does not depend on the
#: number of the others. The error of 300 items so found is within 4% (tested).
THIN_ITEMS = 48


def forecast_released_totals(setting: Setting) -> TotalsForecast:
    """Say how far thresholds and locations will be off."""
    public, assumed, calibration = setting.public, setting.assumptions, setting.calibrate()
    shapes = unpack_shapes(public, calibration.settings["forms"])
    form = expect_forms(public, shapes, calibration.laws, setting.persons)[0]
    steps, answers = public.steps[:THIN_ITEMS], setting.answers
    if len(public.items) > THIN_ITEMS:
        form, answers = thin_form(form, answers, THIN_ITEMS)
    return forecast_totals(
        [form],
        assume_thresholds(steps, assumed.difficulty_spread),
        answers=answers,
        ability_mean=assumed.ability_mean,
        ability_spread=assumed.ability_spread,
    )


def forecast_residuals(setting: Setting) -> TotalsForecast:
    """Say how far locations will be off: noise of both rounds, sampling, and the prior.

    Items do not hang together but for a person's total, so that a few stand for many.
    """
    known = find_residual_information(setting, ("rough", LAST), setting.persons)
    spread = setting.assumptions.difficulty_spread
    error = sqrt(float(np.mean(1 / (known + spread**-2))))
    return TotalsForecast(error, error)


def find_residual_information(
    setting: Setting, rounds: Sequence[str], persons: float
) -> FloatArray:
    """Return what rounds of residuals of so many persons say of each item: 1 / variance."""
    calibration, assumed = setting.calibrate(), setting.assumptions
    difficulty = assume_thresholds((1,) * min(setting.items, 300), assumed.difficulty_spread)[:, 0]
    normal = np.linspace(-4, 4, 41)
    weight = np.exp(-(normal**2) / 2)
    ability = assumed.ability_mean + assumed.ability_spread * normal
    chance = logistic(ability[:, None] - difficulty)
    left = 1 - 1 / setting.answers  # of a variance, once the person's total is known
    steep = weight @ (chance * (1 - chance)) / weight.sum() * left
    steep *= persons * setting.answers / setting.items
    typical, clip = calibration.settings["typical"], calibration.settings["clip"]
    centres = {"rough": 0 * difficulty, LAST: difficulty}
    precision = np.zeros_like(steep)
    for name in rounds:
        steps = np.rint(centres[name] * 2**CENTRE_BITS).astype(np.int64)
        slope = Centre.around(steps, typical, clip).unit * min(clip, 1.0) * steep
        precision += slope**2 / calibration.laws[name].variance
    return np.asarray(1 / (1 / np.maximum(precision, 1e-12) + 1 / steep))


def forecast_difference(setting: Setting) -> float:
    """Say the standard error of an item's difference between two of the setting's groups."""
    known = find_residual_information(setting, (LAST,), setting.persons / setting.groups)
    return sqrt(2 * float(np.mean(1 / known)) * (1 - 1 / setting.items))


#: Mechanisms whose forecast knows items that are given out at random, and nothing else.
AT_RANDOM = ("totals", "residuals")

#: What plans know about each mechanism for answers, by its name.
FORECASTS: dict[str, Callable[[Setting], NoiseForecast | TotalsForecast]] = {
    "margins": forecast_margins,
    "laplace-margins": forecast_margins,
    "pairs": forecast_pairs,
    "sparse-pairs": forecast_pairs,
    "laplace-pairs": forecast_pairs,
    "randomized-response": forecast_flipped_answers,
    "totals": forecast_released_totals,
    "residuals": forecast_residuals,
}


def forecast_noise(setting: Setting) -> NoiseForecast | TotalsForecast:
    """Say what a release adds to the numbers of a study that has not happened yet."""
    if setting.mechanism not in FORECASTS:
        raise BadUsage(
            f"plans know nothing about the mechanism {setting.mechanism}; it has no forecast"
        )
    return FORECASTS[setting.mechanism](setting)
