"""How far predicted scores of new models are off, and how often their intervals cover.

Run ``python -m experiments.calibration.predicted_scores [--matrices 200] [--raw FILE]``. Each
matrix has its own 60 past and 8 new models (abilities N(.5, 1)) and 400 questions (N(0, 1.2));
slopes are 1, or log-normal with sd .5, or these with guessing of .25 (``--kinds`` takes some of
them). A new model answers 60 questions: at random, as ``select_items`` chooses them, or in an
adaptive session from the shrunk bank. Its score on all questions with a difficulty is predicted,
with and without the answers of the past models (``past=``), and by the plain share right. Lines
for each matrix are added to the raw file, so that a run may be continued; the summary is
``predicted_scores.csv``. The error of a coverage is taken over matrices.

``--answers FILE --family COLUMN`` takes a real matrix instead, a wide table with a row per model:
every family is left out in turn, the rest are calibrated with ``cluster=`` the family, and the
error of the coverage is taken over families.
"""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
from pathlib import Path

import numpy as np

import discreet
from discreet.adaptive import shrink, start

PAST, NEW, ITEMS, ASKED = 60, 8, 400, 60
ADAPTIVE = 3  # new models that take adaptive sessions, which are slow
KINDS = ("rasch", "slopes", "slopes and guessing")


def simulate(kind, rng):
    """Return right and wrong answers of past and new models."""
    slope = np.exp(rng.normal(0, 0.5, ITEMS)) if "slopes" in kind else np.ones(ITEMS)
    floor = 0.25 if "guessing" in kind else 0.0
    ability = rng.normal(0.5, 1, (PAST + NEW, 1))
    chance = 1 / (1 + np.exp(-slope * (ability - rng.normal(0, 1.2, ITEMS))))
    return (rng.random(chance.shape) < floor + (1 - floor) * chance).astype(float)


def ask(estimate, answers, n_asked):
    """Return the items that an adaptive session asks a model, and leave out the others."""
    column = {name: place for place, name in enumerate(map(str, range(len(answers))))}
    session = start(shrink(estimate), max_items=n_asked)
    while session.item is not None:
        session = session.answer(bool(answers[column[session.item]]))
    return [column[name] for name in session.items]


def keep(answers, columns):
    """Leave out all answers but those of some columns; one list of columns, or one per model."""
    out = np.full(answers.shape, np.nan)
    for row, own in enumerate(columns):
        out[row, own] = answers[row, own]
    return out


def predict(past, new, estimate, n_asked, n_adaptive, rng):
    """Yield the way, whether past answers helped, errors, plain errors, cover and half widths."""
    number = np.flatnonzero(np.isfinite(estimate.difficulty))
    chosen = [int(name) for name in discreet.select_items(estimate, n_asked)]
    ways = {
        "random": [rng.choice(number, n_asked, replace=False) for _ in new],
        "chosen": [chosen] * len(new),
        "adaptive": [ask(estimate, one, n_asked) for one in new[:n_adaptive]],
    }
    for way, columns in ways.items():
        some = keep(new[: len(columns)], columns)
        truth = new[: len(columns), number].mean(axis=1)
        plain = np.abs(np.nanmean(some, axis=1) - truth)
        for is_helped in (False, True):
            found = discreet.predict_scores(some, estimate, past=past if is_helped else None)
            covered = (found.lower <= truth) & (truth <= found.upper)
            error = np.abs(found.score - truth)
            yield way, is_helped, error, plain, covered, (found.upper - found.lower) / 2


def run_matrix(kind, seed):
    rng = np.random.default_rng([KINDS.index(kind), seed])
    answers = simulate(kind, rng)
    past, new = answers[:PAST], answers[PAST:]
    estimate = discreet.fit(past, method="refined")
    for way, is_helped, *columns in predict(past, new, estimate, ASKED, ADAPTIVE, rng):
        yield kind, seed, way, int(is_helped), *(f"{column.mean():.5f}" for column in columns)


def simulate_all(matrices, kinds, path):
    """Run the matrices that the raw file lacks, and return all of its rows."""
    path.touch()
    with path.open(newline="") as file:
        done = {(row[0], row[1]) for row in csv.reader(file)}
    for seed in range(matrices):
        for kind in kinds:
            if (kind, str(seed)) not in done:
                rows = list(run_matrix(kind, seed))
                with path.open("a", newline="") as file:
                    csv.writer(file).writerows(rows)
    with path.open(newline="") as file:
        return [row for row in csv.reader(file) if int(row[1]) < matrices]


def leave_out_families(path, column, n_asked):
    """Yield rows of a real matrix, where families take the place of matrices."""
    import pandas as pd

    frame = pd.read_csv(path)
    family = frame.pop(column).to_numpy()
    answers = frame.select_dtypes("number").to_numpy(dtype=float)
    rng = np.random.default_rng(0)
    for left_out in np.unique(family):
        past, new = answers[family != left_out], answers[family == left_out]
        model, item = np.indices(past.shape).reshape(2, -1)
        rows = pd.DataFrame({"model": model, "item": item, "response": past.ravel(), "one": 1})
        rows["family"] = family[family != left_out][model]
        estimate = discreet.fit(
            rows, person="model", item="item", response="response", cluster="family",
            weight="one", method="refined",
        )  # fmt: skip
        for way, is_helped, *values in predict(past, new, estimate, n_asked, len(new), rng):
            yield "real", left_out, way, int(is_helped), *(value.mean() for value in values)


def summarise(rows):
    """Return for each way the means over matrices, and the error of the coverage."""
    yield ("answers", "way", "past", "matrices", "error", "plain_error", "coverage",
           "coverage_error", "half_width")  # fmt: skip
    for key in dict.fromkeys((row[0], row[2], str(row[3])) for row in rows):
        own = np.array([row[4:] for row in rows if (row[0], row[2], str(row[3])) == key], float)
        error, plain, covered, half = own.mean(axis=0)
        spread = own[:, 2].std(ddof=1) / np.sqrt(len(own))
        numbers = (f"{one:.4f}" for one in (error, plain, covered, spread, half))
        yield *key, len(own), *numbers


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--matrices", type=int, default=200)
    parser.add_argument("--kinds", nargs="*", default=KINDS, choices=KINDS)
    parser.add_argument("--raw", type=Path, default=Path("predicted_scores_raw.csv"))
    parser.add_argument("--answers", type=Path)
    parser.add_argument("--family", default="family")
    parser.add_argument("--asked", type=int, default=100)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    if asked.answers is None:
        rows = list(summarise(simulate_all(asked.matrices, asked.kinds, asked.raw)))
    else:
        rows = list(summarise([*leave_out_families(asked.answers, asked.family, asked.asked)]))
    csv.writer(sys.stdout).writerows(rows)
