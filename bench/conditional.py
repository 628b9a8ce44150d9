"""Conditional maximum likelihood against psychotools and eRm, on the same answers in one run.

Run ``python -m bench.conditional [--case NAME] [--reps 3] [--peer-limit 120]`` with one BLAS
thread. Times are the smallest of the repetitions of the fit call alone (standard errors included),
ours and R's; R is left out, with a note, where it or the packages are not installed, and a package
that takes longer than the limit is stopped. Beside the time stand the processor seconds of all
threads, which mean something on a busy machine too, what was foretold from the patterns of missing
answers for one core, and the largest difference from psychotools.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import discreet
from discreet.models.patterns import group_patterns
from discreet.models.score_groups import conditional_work

CASES = {
    "complete": ("10,000 persons x 50 items", 10_000, 50, 0.0),
    "roll-calls": ("100 persons x 520 items, absences scattered", 100, 520, None),
    "scattered": ("20,000 persons x 60 items, 20% missing", 20_000, 60, 0.2),
    "many-items": ("60 persons x 2,000 items, 5% missing", 60, 2000, 0.05),
    "half": ("10,000 persons x 50 items, half missing", 10_000, 50, 0.5),
}
R_CODE = """
arguments <- commandArgs(trailingOnly = TRUE)
answers <- as.matrix(read.csv(arguments[1], header = FALSE))
reps <- as.integer(arguments[2])
fastest <- function(call) min(replicate(reps, system.time(call())["elapsed"]))
if (arguments[3] == "psychotools" && requireNamespace("psychotools", quietly = TRUE)) {
  cat("seconds", fastest(function() psychotools::raschmodel(answers)), "\\n")
  fit <- psychotools::itempar(psychotools::raschmodel(answers, reltol = 1e-14))
  cat("difficulties", format(as.numeric(fit), digits = 12), "\\n")
}
if (arguments[3] == "eRm" && requireNamespace("eRm", quietly = TRUE)) {
  cat("seconds", fastest(function() eRm::RM(answers)), "\\n")
}
"""


def simulate(persons, items, missing, seed=0):
    """Draw Rasch answers; absences are scattered, with a rate of each person's own if None."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(size=(persons, 1)) - rng.normal(size=items)
    answers = (rng.random((persons, items)) < 1 / (1 + np.exp(-odds))).astype(np.int8)
    rate = rng.beta(1, 9, size=(persons, 1)) if missing is None else missing
    answers[rng.random((persons, items)) < rate] = -1
    return answers


def time_ours(responses, reps):
    wall, processor = [], []
    for _ in range(reps + 1):
        start, used = time.perf_counter(), time.process_time()
        estimate = discreet.fit(responses, method="conditional")
        wall.append(time.perf_counter() - start)
        processor.append(time.process_time() - used)
    return min(wall[1:]), min(processor[1:]), estimate


def time_r(package, answers, reps, limit):
    with tempfile.TemporaryDirectory() as folder:
        table, script = Path(folder) / "answers.csv", Path(folder) / "time.R"
        text = [",".join("NA" if x < 0 else str(x) for x in row) for row in answers]
        table.write_text("\n".join(text) + "\n")
        script.write_text(R_CODE)
        command = ["Rscript", str(script), str(table), str(reps), package]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            return None
    return {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line}


def compare_with_r(package, answers, ours, estimate, options):
    found = time_r(package, answers, min(options.reps, 3), options.peer_limit)
    if found is None:
        print(f"  {package:12} stopped after {options.peer_limit} s")
    elif "seconds" not in found:
        print(f"  {package:12} is not installed")
    else:
        seconds = float(found["seconds"][0])
        print(f"  {package:12} {seconds:8.3f} s   {seconds / ours:.0f} times as long")
        if "difficulties" in found:
            theirs = np.array(found["difficulties"], dtype=float)
            away = np.abs(theirs - theirs.mean() - estimate.difficulty).max()
            print(f"  largest difference from psychotools: {away:.1e} logits")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", choices=CASES, action="append")
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--peer-limit", type=int, default=120, help="seconds for a package of R")
    options = parser.parse_args()
    if shutil.which("Rscript") is None:
        print("R is not installed: no comparison with psychotools and eRm")
    for name in options.case or CASES:
        words, persons, items, missing = CASES[name]
        answers = simulate(persons, items, missing)
        responses = discreet.Responses.from_array(answers)
        work = conditional_work(group_patterns(responses.store, np.arange(items)))
        ours, processor, estimate = time_ours(responses, options.reps)
        print(f"{words}\n  discreet     {ours:8.3f} s", end="   ")
        print(f"processor seconds {processor:.3f}, foretold {work:.2f}", flush=True)
        if shutil.which("Rscript") is not None:
            for package in ("psychotools", "eRm"):
                compare_with_r(package, answers, ours, estimate, options)


if __name__ == "__main__":
    main()
