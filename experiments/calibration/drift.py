"""The alarm for items that drift: how often it is false, and how often it is right.

Run ``python -m experiments.calibration.drift [--reps 200] [--design 0]`` with one BLAS thread.
Persons of every period are other persons, with abilities from N(mean, 1). Slopes are equal, or have
a log-sd of 0.3. Every design is drawn twice: no item drifts, or a tenth of the items becomes 0.5
logits easier in the last period. Tests: ``before`` takes slopes as equal (fits without cohort
means, as version 0.2.0 did), ``answers``, ``fits`` and ``folds`` (counts in 32 folds). Columns: the
share of runs with an alarm where nothing drifts (the level is 5%), the share of drifted items that
is found, and the share of runs that name another item; each with its Monte Carlo error.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from dataclasses import dataclass, replace

import numpy as np

from discreet.answers.responses import Responses
from discreet.api.calibrating import fit
from discreet.api.counting import count_pairs
from discreet.api.drift import find_drift

EASIER = 0.5
TESTS = ("before", "answers", "fits", "folds")


@dataclass(frozen=True)
class Design:
    """Cohort means, persons in each period, items, the share answered, log-sd of slopes."""

    means: tuple[float, ...]
    persons: int
    items: int
    answered: float
    spread: float


COHORTS = (0.0, 0.3, 0.6, 1.0)
DESIGNS = [
    Design(means, persons, items, answered, spread)
    for means, persons, items, answered in [
        (COHORTS, 1500, 25, 1.0),
        (COHORTS, 1500, 25, 0.6),
        ((0.0, 0.5), 1500, 25, 1.0),
        ((0.0, 1.0), 1500, 25, 1.0),
        ((0.0, 0.5), 1500, 25, 0.6),
        ((0.0, 0.4), 300, 10, 1.0),
    ]
    for spread in (0.0, 0.3)
]


def draw(rng, design, difficulty, slope, mean):
    """Return the answers of one period."""
    logit = slope * (rng.normal(mean, size=(design.persons, 1)) - difficulty)
    cells = (rng.random(logit.shape) < 1 / (1 + np.exp(-logit))).astype(np.int8)
    cells[rng.random(logit.shape) > design.answered] = -1
    return Responses.from_array(cells)


def take(answers, test):
    """Return one period as a test takes it."""
    if test == "answers":
        return answers
    if test == "folds":
        return fit(count_pairs(answers, folds=32))
    known = fit(answers, method="refined")
    return known if test == "fits" else replace(known, answers=None, right=None)


def replicate(rng, design, tests, seconds):
    """Return by test which items raise the alarm: where none drifts, and where some do."""
    difficulty = rng.normal(size=design.items)
    slope = np.exp(rng.normal(0, design.spread, design.items))
    days = [draw(rng, design, difficulty, slope, mean) for mean in design.means]
    easier = difficulty - EASIER * (np.arange(design.items) < count_drifted(design))
    days.append(draw(rng, design, easier, slope, design.means[-1]))
    named = {}
    for test in tests:
        *before, quiet, loud = (take(day, test) for day in days)
        begin = time.process_time()
        alarms = find_drift([*before, quiet]).moved
        seconds[test] += time.process_time() - begin
        named[test] = alarms, find_drift([*before, loud]).moved
    return named


def count_drifted(design):
    """Return how many items drift."""
    return max(1, design.items // 10)


def summarise(runs, number):
    """Return false alarms, drifted items found, and other items named, each with its error."""
    quiet, loud = (np.array([run[which] for run in runs]) for which in (0, 1))
    columns = quiet.any(axis=1), loud[:, :number].mean(axis=1), loud[:, number:].any(axis=1)
    return [f"{one.mean():.3f} +- {one.std() / len(one) ** 0.5:.3f}" for one in columns]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reps", type=int, default=200)
    parser.add_argument("--design", type=int, nargs="*", default=range(len(DESIGNS)))
    parser.add_argument("--tests", nargs="*", choices=TESTS, default=TESTS)
    options = parser.parse_args()
    table = csv.writer(sys.stdout)
    names = ["means", "persons", "items", "answered", "slopes", "test"]
    table.writerow([*names, "false alarms", "found", "others named", "CPU seconds"])
    for number in options.design:
        design = DESIGNS[number]
        seconds = dict.fromkeys(options.tests, 0.0)
        rng = np.random.default_rng(number)
        runs = [replicate(rng, design, options.tests, seconds) for _ in range(options.reps)]
        means = "/".join(map(str, design.means))
        about = [means, design.persons, design.items, design.answered, design.spread]
        for test in options.tests:
            row = summarise([run[test] for run in runs], count_drifted(design))
            table.writerow([*about, test, *row, f"{seconds[test] / options.reps:.2f}"])
        sys.stdout.flush()


if __name__ == "__main__":
    main()
