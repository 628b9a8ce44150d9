"""Do the intervals cover? Coverage of intervals, simultaneous intervals and "surely in" sets.

Run ``python experiments/calibration/intervals.py [--reps 200] [--method refined]`` with one BLAS
thread. Difficulties and abilities are drawn anew from N(0, 1) in every replication. Columns: share
of 95% intervals that contain the truth, share of replications in which all simultaneous intervals
do, share in which a "surely in the top K" (or "possibly in") statement is wrong (K a fifth of the
items), and the mean standard error over the true spread.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time

import numpy as np

from discreet.api.calibrating import fit
from discreet.api.ranks import rank
from discreet.errors import DisconnectedItems

BOOKLETS = 7
DESIGNS = [
    (300, 20, "complete", 1.0),
    (300, 40, "uniform", 0.5),
    (300, 60, "uniform", 0.3),
    (300, 60, "uniform", 0.1),
    (300, 42, "booklets", 2 / BOOKLETS),
    (2000, 30, "complete", 1.0),
    (2000, 50, "uniform", 0.5),
    (2000, 70, "booklets", 2 / BOOKLETS),
    (5000, 100, "uniform", 0.1),
    (20_000, 40, "complete", 1.0),
    (20_000, 40, "uniform", 0.5),
    (20_000, 40, "uniform", 0.1),
    (20_000, 70, "booklets", 2 / BOOKLETS),
]


def simulate(rng, persons, items, design, answered):
    """Draw difficulties and answers; a booklet holds two of seven neighbouring item blocks."""
    difficulty = rng.normal(size=items)
    chance = 1 / (1 + np.exp(difficulty - rng.normal(size=(persons, 1))))
    answers = (rng.random((persons, items)) < chance).astype(np.int8)
    if design == "booklets":
        block = np.arange(items) * BOOKLETS // items
        form = rng.integers(BOOKLETS, size=(persons, 1))
        given = (block == form) | (block == (form + 1) % BOOKLETS)
    else:
        given = rng.random((persons, items)) < answered
    answers[~given] = -1
    return difficulty, answers


def replicate(rng, design, method):
    truth, answers = simulate(rng, *design)
    estimate = fit(answers, method=method)
    known = estimate.estimated
    truth = truth - truth[known].mean()
    error = (estimate.difficulty - truth)[known]
    inside = np.abs(error) <= (estimate.interval()[:, 1] - estimate.difficulty)[known]
    band = (estimate.simultaneous_interval()[:, 1] - estimate.difficulty)[known]
    ranking = rank(estimate, top=max(1, int(known.sum()) // 5))
    # The true top K among the items that have a number, as the ranking defines it.
    cut = np.sort(truth[known])[-len(ranking.top)]
    names = {
        name for name, b, use in zip(estimate.items, truth, known, strict=True) if use and b >= cut
    }
    return {
        "item": inside.mean(),
        "together": bool((np.abs(error) <= band).all()),
        "surely_wrong": not set(ranking.surely_in) <= names,
        "possibly_wrong": not names <= set(ranking.possibly_in),
        "surely_size": len(ranking.surely_in) / len(ranking.top),
        "square": (error**2).mean(),
        "variance": (estimate.se[known] ** 2).mean(),
        "left_out": int((~known).sum()),
    }


def measure(design, method, reps, seed):
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(reps):
        try:
            rows.append(replicate(rng, design, method))
        except DisconnectedItems:
            continue
    mean = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
    return {
        "persons": design[0],
        "items": design[1],
        "design": f"{design[2]} {design[3]:.0%}",
        "method": method,
        "replications": len(rows),
        "covers": round(mean["item"], 4),
        "covers_together": round(mean["together"], 3),
        "surely_in_wrong": round(mean["surely_wrong"], 3),
        "possibly_in_wrong": round(mean["possibly_wrong"], 3),
        "surely_in_share": round(mean["surely_size"], 2),
        "se_over_spread": round(float(np.sqrt(mean["variance"] / mean["square"])), 3),
        "rmse": round(float(np.sqrt(mean["square"])), 4),
        "left_out": round(mean["left_out"], 2),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reps", type=int, default=200)
    parser.add_argument("--method", choices=["refined", "spectral"], default="refined")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0, help="time limit per design")
    options = parser.parse_args()
    writer = None
    for design in DESIGNS:
        start = time.perf_counter()
        measure(design, options.method, 1, 0)
        each = time.perf_counter() - start
        reps = int(min(options.reps, max(20, options.seconds / each)))
        row = measure(design, options.method, reps, options.seed)
        writer = writer or csv.DictWriter(sys.stdout, row.keys())
        if writer and design is DESIGNS[0]:
            writer.writeheader()
        writer.writerow(row)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
