"""Standard errors from counts alone: whether they are those of the answers, and cover.

Run ``python -m experiments.calibration.folds [--reps 200]`` with one BLAS thread. Answers are
counted in 32 folds of persons, as two days that are added; difficulties and abilities are drawn
anew from N(0, 1) in every replication. Columns: the median over items and replications of the
standard error over that of a fit of the answers (the sandwich), the share of 95% intervals with
Student's quantiles that contain the truth, the mean standard error over the true spread, and the
standard error over that of fitting anew without each fold.
"""

from __future__ import annotations

import argparse
import csv
import sys

import numpy as np

from discreet.answers.responses import Responses
from discreet.api.calibrating import fit
from discreet.api.counting import count_pairs
from discreet.counts import PairCounts
from discreet.models.connectivity import build_chain
from discreet.models.methods import PAIR_METHODS
from experiments.calibration.intervals import DESIGNS, simulate

FOLDS = 32


def replicate(rng, design):
    """Return one replication's numbers, item by item where there is one for each."""
    truth, answers = simulate(rng, *design)
    responses = Responses.from_array(answers)
    half = len(answers) // 2
    ids = [f"p{number}" for number in range(len(answers))]
    days = (
        Responses.from_array(answers[:half], persons=ids[:half]),
        Responses.from_array(answers[half:], persons=ids[half:]),
    )
    counts = sum(count_pairs(day, folds=FOLDS) for day in days)
    ours, theirs = fit(counts), fit(responses, method="refined")
    known = np.isfinite(ours.se)
    error = (ours.difficulty - (truth - truth[ours.estimated].mean()))[known]
    half_width = (ours.interval()[:, 1] - ours.difficulty)[known]
    return {
        "ratio": np.median(ours.se[known] / theirs.se[known]),
        "covered": np.mean(np.abs(error) <= half_width),
        "square": np.mean(error**2),
        "se": np.mean(ours.se[known] ** 2),
        "counts": counts,
        "estimate": ours,
    }


def compare_anew(counts, estimate):
    """Return the median of the standard error over that of fitting anew without each fold."""
    total, moves = counts.folds.right_wrong.sum(axis=0), []
    for fold in counts.folds.right_wrong:
        left = PairCounts(counts.items, total - fold, counts.answers, counts.right, counts.persons)
        chain = build_chain(left)
        moves.append(
            chain.spread(PAIR_METHODS["refined"].solve(chain.rates)[0]) - estimate.difficulty
        )
    share = counts.folds.persons / counts.persons
    anew = np.sqrt(((1 - share)[:, None] * np.array(moves) ** 2).sum(axis=0))
    return np.nanmedian(estimate.se / anew)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reps", type=int, default=200)
    reps = parser.parse_args().reps
    names = ["persons", "items", "design", "answered", "to_sandwich", "covered", "se_to_spread",
             "to_fitting_anew"]  # fmt: skip
    table = csv.DictWriter(sys.stdout, names)
    table.writeheader()
    for number, design in enumerate(DESIGNS):
        rng = np.random.default_rng(number)
        found = [replicate(rng, design) for _ in range(reps)]
        mean = {name: np.mean([one[name] for one in found]) for name in ("covered", "square", "se")}
        row = dict(zip(names, (*design[:3], round(design[3], 3)), strict=False))
        row["to_sandwich"] = round(np.median([one["ratio"] for one in found]), 3)
        row["covered"] = round(mean["covered"], 4)
        row["se_to_spread"] = round(np.sqrt(mean["se"] / mean["square"]), 3)
        row["to_fitting_anew"] = round(compare_anew(found[0]["counts"], found[0]["estimate"]), 3)
        table.writerow(row)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
