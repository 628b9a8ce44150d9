"""The alarm for items that move: how often it is false, and how often it is right.

Run ``python -m bench.drift [--reps 200]`` with one BLAS thread. Persons of every period are other
persons, with abilities from N(0, 1) about a mean that changes from period to period. Columns:
the share of runs with an alarm where nothing moves (the level is 5%), from fits of the answers and
of counts in 32 folds; and where a tenth of the items becomes 0.7 logits easier in the last period,
the share of these items that is found and the share of runs in which another one is named.
"""

from __future__ import annotations

import argparse
import csv
import sys

import numpy as np

from discreet.analysis.drift import find_drift
from discreet.answers.opening import count_pairs
from discreet.answers.responses import Responses
from discreet.models.calibrate import fit

DESIGNS = [
    (2, 300, 10, 1.0), (2, 500, 40, 0.5), (2, 2000, 40, 0.3), (6, 300, 20, 1.0),
    (6, 1000, 40, 0.5), (12, 500, 30, 0.5),
]  # fmt: skip
EASIER = 0.7


def draw(rng, persons, difficulty, answered, mean):
    """Return the answers of one period."""
    chance = 1 / (1 + np.exp(difficulty - rng.normal(mean, size=(persons, 1))))
    cells = (rng.random(chance.shape) < chance).astype(np.int8)
    cells[rng.random(chance.shape) > answered] = -1
    return Responses.from_array(cells)


def replicate(rng, design, moved):
    """Return the items that sound the alarm, from answers and from counts."""
    periods, persons, items, answered = design
    difficulty = rng.normal(size=items)
    days = []
    for period in range(periods):
        now = difficulty - EASIER * moved * (period == periods - 1)
        days.append(draw(rng, persons, now, answered, rng.normal(scale=0.3)))
    known = find_drift([fit(day, method="refined") for day in days])
    counted = find_drift([count_pairs(day, folds=32) for day in days])
    return known, counted


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reps", type=int, default=200)
    reps = parser.parse_args().reps
    names = ["periods", "persons", "items", "answered", "false_answers", "false_folds",
             "found_answers", "found_folds", "wrong_answers", "wrong_folds"]  # fmt: skip
    table = csv.writer(sys.stdout)
    table.writerow(names)
    for number, design in enumerate(DESIGNS):
        rng = np.random.default_rng(number)
        still = np.zeros(design[2])
        some = (np.arange(design[2]) < max(1, design[2] // 10)).astype(float)
        quiet = [replicate(rng, design, still) for _ in range(reps)]
        loud = [replicate(rng, design, some) for _ in range(reps)]
        row = [np.mean([pair[way].alarm for pair in quiet]) for way in (0, 1)]
        moved = {str(i) for i in np.flatnonzero(some)}
        named = [[set(pair[way].moved_items) for pair in loud] for way in (0, 1)]
        row += [np.mean([len(moved & one) / len(moved) for one in way]) for way in named]
        row += [np.mean([bool(one - moved) for one in way]) for way in named]
        table.writerow([*design, *(f"{value:.3f}" for value in row)])
        sys.stdout.flush()


if __name__ == "__main__":
    main()
