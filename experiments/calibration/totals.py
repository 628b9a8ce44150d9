"""Private rating scales: every promise about released thresholds, measured beside its goal.

Run ``python -m experiments.calibration.totals [PART ...] [--reps 40] [--first 1001]`` with one BLAS
thread. Parts:

- ``accuracy``: error of thresholds at epsilon 1; at epsilon 3 against an estimate without privacy;
- ``coverage``: share of 95% intervals that hold the truth, at epsilon 1 and .1;
- ``nothing``: error over that of equal items at epsilon .05;
- ``hard``: abilities and items that spread further than usual, with no goal;
- ``forecast``: predicted errors over those that were found;
- ``speed``: the fit of many items, and of many persons.

All releases go through the wall with exact noise of a seeded stream: delta 1e-4, replace-one.
The settings were chosen on seeds 1 to 40; by default fresh ones are measured.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

import numpy as np

import discreet
from discreet import Budget
from discreet.models.noisy.released import fit_released_totals
from discreet.models.noisy.totals import read_released_forms
from discreet.models.noisy.totals.fit import forecast_totals
from discreet.privacy.accounting import Neighbours
from discreet.privacy.mechanisms.totals import Totals, unpack_shapes
from discreet.privacy.noise import ExactNoise
from discreet.privacy.protocol import Public
from discreet.privacy.wall import release_statistics
from discreet.secure import SeededSource
from experiments.calibration.rating_scales import draw_thresholds, hold, say

DELTA = 1e-4


@dataclass(frozen=True)
class Design:
    """A study, and the largest error at epsilon 1 that is promised for it."""

    persons: int
    items: int
    steps: int
    goal: float | None = None
    abilities: str = "normal"
    missing: float = 0.0
    answered: int | None = None
    target: float = 0.0
    ability_spread: float = 1.0
    item_spread: float = 1.5

    @property
    def name(self) -> str:
        words = [f"{self.persons} x {self.items} x {self.steps}"]
        words += [self.abilities] if self.abilities != "normal" else []
        words += [f"{self.missing:.0%} missing"] if self.missing else []
        if self.answered:
            words += [f"{self.answered} answered", "targeted" if self.target else "random"]
        words += [f"abilities {self.ability_spread}"] if self.ability_spread != 1 else []
        words += [f"items +-{self.item_spread}"] if self.item_spread != 1.5 else []
        return ", ".join(words)

    @property
    def design(self) -> str:
        if self.target:
            return "unknown"
        return "random" if self.missing or self.answered else "complete"


BASIC = ((1000, 10, 2, 0.15), (1000, 20, 3, 0.20), (3000, 20, 4, 0.11), (316, 24, 2, 0.38))
COMPLETE = [Design(*one) for one in BASIC]
SKEWED = [Design(n, m, k, round(1.35 * goal, 3), "skewed") for n, m, k, goal in BASIC]
PARTIAL = [
    Design(1000, 20, 3, 0.22, missing=0.3),
    Design(5000, 100, 3, 0.155, answered=30),
    Design(5000, 100, 3, 0.24, answered=30, target=1.0),
]
HARD = [
    Design(1000, 20, 3, ability_spread=1.6),
    Design(1000, 20, 3, ability_spread=0.6),
    Design(1000, 20, 3, item_spread=3.0),
    Design(5000, 100, 3, answered=30, target=2.0),
]
EMPTY = [Design(300, 10, 2), Design(300, 20, 3), Design(300, 24, 1), Design(300, 5, 4)]
COVERAGE, LEAST_COVERAGE = (0.93, 0.98), 0.92


# -- made-up studies -------------------------------------------------------------------------


def simulate(design, seed):
    """Return thresholds and answers, -1 where there is none."""
    rng = np.random.default_rng(seed)
    truth = draw_thresholds(rng, design.items, design.steps)
    location = truth.mean(axis=1, keepdims=True)
    truth = truth + location * (design.item_spread / 1.5 - 1)
    truth -= truth.mean()
    ability = design.ability_spread * draw_abilities(rng, design)
    codes = discreet.simulate(
        design.persons, design.items, thresholds=truth, ability=ability, rng=rng
    ).responses.to_array()
    if design.missing:
        codes[rng.random(codes.shape) < design.missing] = -1
    if design.answered:
        key = -design.target * np.abs(ability[:, None] - truth.mean(axis=1))
        key += rng.gumbel(size=codes.shape)
        place = design.items - design.answered
        codes[key < np.partition(key, place, axis=1)[:, place : place + 1]] = -1
    return truth, codes


def draw_abilities(rng, design):
    if design.abilities == "skewed":
        return (rng.gamma(2, 1, design.persons) - 2) / np.sqrt(2)
    return rng.normal(size=design.persons)


# -- one release -----------------------------------------------------------------------------


def describe(design, answers):
    cap = design.answered or design.items
    return Public(
        answers.items,
        cap,
        Neighbours.REPLACE_ONE,
        design.persons,
        steps=(design.steps,) * design.items,
        design=design.design,
    )


def release_totals(design, codes, epsilon, seed):
    """Release answers through the wall; return the release and its mechanism."""
    answers = hold(codes, design.steps)
    typical = round(design.items * (1 - design.missing)) if design.missing else None
    mechanism, public = Totals(answers=typical), describe(design, answers)
    budget = Budget(epsilon, DELTA, Neighbours.REPLACE_ONE)
    calibration = mechanism.calibrate(public, budget, SeededSource(seed))
    return release_statistics(
        answers,
        mechanism=mechanism,
        public=public,
        calibration=calibration,
        guarantee=calibration.spend.guarantee(is_private=False),
        noise=ExactNoise(SeededSource(seed)),
    )


def fit_release(design, codes, epsilon, seed, standard_errors=False):
    made = release_totals(design, codes, epsilon, seed)
    return fit_released_totals(made, standard_errors)


def fit_plainly(design, codes):
    """Estimate without any privacy, by conditional likelihood."""
    return discreet.fit(hold(codes, design.steps), method="conditional", standard_errors=False)


# -- numbers over seeds ----------------------------------------------------------------------


def seeds_of(options):
    return range(options.first, options.first + options.reps)


def square_error(found, truth):
    away = found.thresholds - truth
    return float(np.mean((away - away.mean()) ** 2))


def root_mean(squares):
    """Return the root mean square and its Monte Carlo error."""
    square = np.asarray(squares)
    root = float(np.sqrt(square.mean()))
    return root, float(square.std(ddof=1) / np.sqrt(len(square)) / (2 * root))


def measure_accuracy(options):
    print("accuracy: root mean square error of thresholds at epsilon 1")
    for design in (*COMPLETE, *SKEWED, *PARTIAL):
        squares = []
        for seed in seeds_of(options):
            truth, codes = simulate(design, seed)
            squares.append(square_error(fit_release(design, codes, 1.0, seed), truth))
        root, error = root_mean(squares)
        say(design.name, f"{root:.4f} +- {error:.4f}", f"{design.goal}", root <= design.goal)
    print("accuracy at epsilon 3, over that of conditional likelihood without privacy")
    for design in COMPLETE[:3]:
        noisy, plain = [], []
        for seed in seeds_of(options):
            truth, codes = simulate(design, seed)
            noisy.append(square_error(fit_release(design, codes, 3.0, seed), truth))
            plain.append(square_error(fit_plainly(design, codes), truth))
        ratio = root_mean(noisy)[0] / root_mean(plain)[0]
        words = f"{root_mean(noisy)[0]:.4f} / {root_mean(plain)[0]:.4f} = {ratio:.3f}"
        say(design.name, words, "1.25", ratio <= 1.25)


def measure_coverage(options):
    for epsilon, most in ((1.0, COVERAGE[1]), (0.1, 1.0)):
        least = COVERAGE[0] if epsilon == 1 else LEAST_COVERAGE
        print(f"coverage of 95% intervals of thresholds, and of locations, at epsilon {epsilon}")
        for design in (*COMPLETE, *SKEWED, *PARTIAL):
            found = np.array([covered(design, seed, epsilon) for seed in seeds_of(options)])
            mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(len(found))
            words = f"{mean[0]:.3f} +- {error[0]:.3f}, {mean[1]:.3f}"
            say(design.name, words, f"{least} to {most}", least <= mean[0] <= most)


def covered(design, seed, epsilon):
    """Return the shares of intervals with the truth inside, of thresholds and of locations."""
    truth, codes = simulate(design, seed)
    found = fit_release(design, codes, epsilon, seed, standard_errors=True)
    inside = np.abs(found.thresholds - truth) <= 1.96 * found.threshold_se
    location = np.abs(found.difficulty - truth.mean(axis=1)) <= 1.96 * found.se
    return inside.mean(), location.mean()


def measure_nothing(options):
    print("nothing: error over that of equal thresholds at epsilon .05, 200 seeds")
    for design in EMPTY:
        ratios = []
        for seed in range(options.first, options.first + 200):
            truth, codes = simulate(design, seed)
            found = square_error(fit_release(design, codes, 0.05, seed), truth)
            ratios.append(np.sqrt(found / np.mean(truth**2)))
        mean, high = float(np.mean(ratios)), float(np.quantile(ratios, 0.95))
        words = f"mean {mean:.3f}, 95% {high:.3f}"
        say(design.name, words, "1.02, 1.15", mean <= 1.02 and high <= 1.15)


def measure_hard(options):
    print("hard: root mean square error of thresholds at epsilon 1, no goal")
    for design in HARD:
        squares = []
        for seed in seeds_of(options):
            truth, codes = simulate(design, seed)
            squares.append(square_error(fit_release(design, codes, 1.0, seed), truth))
        root, error = root_mean(squares)
        print(f"  {design.name:58} {root:.4f} +- {error:.4f}", flush=True)


def measure_forecast(options):
    print("forecast: predicted error over the one found, thresholds and locations")
    for design in (*COMPLETE, *PARTIAL[:2]):
        for epsilon in (0.3, 1.0, 3.0):
            found, predicted = [], []
            for seed in seeds_of(options):
                truth, codes = simulate(design, seed)
                made = release_totals(design, codes, epsilon, seed)
                fit = fit_released_totals(made, False)
                away = (fit.difficulty - truth.mean(axis=1)) ** 2
                found.append((square_error(fit, truth), away.mean()))
                forms = read_released_forms(
                    made.public,
                    unpack_shapes(made.public, made.settings["forms"]),
                    made.values,
                    made.laws,
                )
                ahead = forecast_totals(forms, truth)
                predicted.append((ahead.threshold**2, ahead.location**2))
            ratio = np.sqrt(np.mean(predicted, axis=0) / np.mean(found, axis=0))
            words = f"{ratio[0]:.3f}, {ratio[1]:.3f}"
            met = abs(ratio - 1).max() <= 0.1
            say(f"{design.name}, epsilon {epsilon}", words, ".9 to 1.1", met)


def measure_speed(options):
    print("speed: the fit of a release, standard errors included, in seconds")
    for design, goal in ((Design(1_000_000, 50, 4), 2.0), (Design(2000, 1000, 4), 10.0)):
        _, codes = simulate(design, options.first)
        made = release_totals(design, codes, 1.0, options.first)
        fit_released_totals(made, True)
        began, used = time.perf_counter(), time.process_time()
        fit_released_totals(made, True)
        seconds, processor = time.perf_counter() - began, time.process_time() - used
        words = f"{seconds:.2f}, processor {processor:.2f}"
        say(design.name, words, f"{goal}", seconds <= goal)


PARTS = {
    "accuracy": measure_accuracy,
    "coverage": measure_coverage,
    "nothing": measure_nothing,
    "hard": measure_hard,
    "forecast": measure_forecast,
    "speed": measure_speed,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="*", choices=[[], *PARTS], default=[])
    parser.add_argument("--reps", type=int, default=40)
    parser.add_argument("--first", type=int, default=1001, help="the first seed")
    options = parser.parse_args()
    for part in options.part or PARTS:
        PARTS[part](options)


if __name__ == "__main__":
    main()
