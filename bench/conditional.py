"""Conditional maximum likelihood against psychotools and eRm, on the same answers in one run.

Items are right or wrong, or have four steps (partial credit).

Run ``python -m bench.conditional [--case NAME] [--reps 7] [--peer-limit 120]`` with one BLAS
thread. Times are the smallest of the repetitions of the fit call alone, standard errors included,
from a data frame on both sides. R is left out, with a note, where it or the packages are not
installed, and a package that takes longer than the limit is stopped. Ratios are of processor
seconds of all threads, which mean something on a busy machine too. Beside them stand the time,
what was foretold from the patterns of missing answers for one core, and the largest difference
from psychotools. Goals are printed where there is one.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import discreet
from discreet.answers.pack import store_codes
from discreet.jit import load_kernels
from discreet.models.conditional import group_patterns
from discreet.models.conditional.batches import conditional_work
from discreet.models.conditional.estimator import StepPatterns

CASES = {
    "complete": ("10,000 persons x 50 items", 10_000, 50, 0.0),
    "roll-calls": ("100 persons x 520 items, absences scattered", 100, 520, None),
    "scattered": ("20,000 persons x 60 items, 20% missing", 20_000, 60, 0.2),
    "many-items": ("60 persons x 2,000 items, 5% missing", 60, 2000, 0.05),
    "half": ("10,000 persons x 50 items, half missing", 10_000, 50, 0.5),
    "short": ("2,000 persons x 40 items", 2000, 40, 0.0),
    "steps": ("2,000 persons x 20 items x 4 steps", 2000, 20, 0.0),
    "steps-scattered": ("2,000 persons x 20 items x 4 steps, 10% missing", 2000, 20, 0.1),
}
STEPS = {"steps": 4, "steps-scattered": 4}
GOALS = {
    ("short", "eRm"): 100,
    ("short", "psychotools"): 15,
    ("steps", "eRm"): 150,
    ("steps", "psychotools"): 25,
}
R_CODE = """
arguments <- commandArgs(trailingOnly = TRUE)
answers <- read.csv(arguments[1], header = FALSE)
reps <- as.integer(arguments[2])
fastest <- function(call) apply(replicate(reps, {
  used <- system.time(call())
  c(used["elapsed"], used["user.self"] + used["sys.self"])
}), 1, min)
if (arguments[3] == "psychotools" && requireNamespace("psychotools", quietly = TRUE)) {
  model <- if (arguments[4] == "1") psychotools::raschmodel else psychotools::pcmodel
  cat("seconds", fastest(function() model(answers)), "\\n")
  fit <- unlist(psychotools::threshpar(model(answers, reltol = 1e-14)))
  cat("thresholds", format(as.numeric(fit), digits = 12), "\\n")
}
if (arguments[3] == "eRm" && requireNamespace("eRm", quietly = TRUE)) {
  model <- if (arguments[4] == "1") eRm::RM else eRm::PCM
  cat("seconds", fastest(function() model(answers)), "\\n")
}
"""


def simulate(persons, items, missing, steps=1, seed=0):
    """Draw answers; absences are scattered, with a rate of each person's own if None."""
    rng = np.random.default_rng(seed)
    ability, location = rng.normal(size=(persons, 1, 1)), rng.normal(size=(items, 1))
    threshold = location + (np.arange(steps) - (steps - 1) / 2) * 0.8
    odds = np.cumsum(ability - threshold, axis=2)
    odds = np.concatenate([np.zeros((persons, items, 1)), odds], axis=2)
    chance = np.exp(odds - odds.max(axis=2, keepdims=True))
    below = np.cumsum(chance / chance.sum(axis=2, keepdims=True), axis=2)[:, :, :-1]
    answers = (rng.random((persons, items, 1)) > below).sum(axis=2).astype(np.int8)
    rate = rng.beta(1, 9, size=(persons, 1)) if missing is None else missing
    answers[rng.random((persons, items)) < rate] = -1
    return answers


def collect_steps(codes, steps=None):
    """Group persons, ``codes[person, item]`` from 0 and -1 where missing, by items and score."""
    highest = np.asarray(codes.max(axis=0) if steps is None else steps, dtype=np.int64)
    patterns = group_patterns(store_codes(codes, highest.tolist()), np.arange(len(highest)))
    reached = [(codes >= step).sum(axis=0) for step in range(1, highest.max() + 1)]
    return StepPatterns(patterns, highest, np.stack(reached, axis=1))


def fit_ours(answers, steps):
    """Return a fit of a data frame that returns its thresholds, and what it costs."""
    work = conditional_work(collect_steps(answers.astype(np.int64)).patterns, steps)
    frame = pd.DataFrame(answers.astype(float) if (answers < 0).any() else answers)
    frame = frame.mask(frame < 0)
    frame.columns = [f"V{item}" for item in range(1, answers.shape[1] + 1)]
    model = "rasch" if steps == 1 else "partial-credit"
    return lambda: discreet.fit(frame, method="conditional", model=model).thresholds, work


def time_ours(fit, reps):
    wall, processor = [], []
    for _ in range(reps + 1):
        start, used = time.perf_counter(), time.process_time()
        thresholds = fit()
        wall.append(time.perf_counter() - start)
        processor.append(time.process_time() - used)
    return min(wall[1:]), min(processor[1:]), thresholds


def time_r(package, answers, steps, options):
    with tempfile.TemporaryDirectory() as folder:
        table, script = Path(folder) / "answers.csv", Path(folder) / "time.R"
        text = [",".join("NA" if x < 0 else str(x) for x in row) for row in answers]
        table.write_text("\n".join(text) + "\n")
        script.write_text(R_CODE)
        command = ["Rscript", script, table, str(min(options.reps, 5)), package, str(steps)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=options.peer_limit
            )
        except subprocess.TimeoutExpired:
            return None
    return {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line}


def compare_with_r(case, package, found, ours, thresholds, options):
    """Print the processor time of a package of R beside ours."""
    if found is None:
        print(f"  {package:12} stopped after {options.peer_limit} s")
    elif "seconds" not in found:
        print(f"  {package:12} is not installed")
    else:
        elapsed, seconds = map(float, found["seconds"])
        goal = f", goal {GOALS[case, package]}" if (case, package) in GOALS else ""
        print(f"  {package:12} {elapsed:8.3f} s   processor {seconds:.3f}", end="")
        print(f"   {seconds / ours:.0f} times as long{goal}")
        if "thresholds" in found:
            theirs = np.array(found["thresholds"], dtype=float)
            away = np.abs(theirs - theirs.mean() - (thresholds - thresholds.mean()).ravel()).max()
            print(f"  largest difference from psychotools: {away:.1e} logits")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", choices=CASES, action="append")
    parser.add_argument("--reps", type=int, default=7)
    parser.add_argument("--peer-limit", type=int, default=120, help="seconds for a package of R")
    options = parser.parse_args()
    load_kernels()
    packages = ("psychotools", "eRm") if shutil.which("Rscript") else ()
    if not packages:
        print("R is not installed: no comparison with psychotools and eRm")
    for name in options.case or CASES:
        words, persons, items, missing = CASES[name]
        steps = STEPS.get(name, 1)
        answers = simulate(persons, items, missing, steps)
        fit, work = fit_ours(answers, steps)
        ours, processor, thresholds = time_ours(fit, options.reps)
        print(f"{words}\n  discreet     {ours:8.3f} s", end="   ")
        print(f"processor {processor:.4f}, foretold {work:.2f}", flush=True)
        for package in packages:
            found = time_r(package, answers, steps, options)
            compare_with_r(name, package, found, processor, thresholds, options)


if __name__ == "__main__":
    main()
