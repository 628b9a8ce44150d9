"""Conditional maximum likelihood against eRm and psychotools, on the same answers in one run.

Run ``python bench/conditional.py [--persons 10000] [--items 50] [--reps 5]`` with one BLAS thread.
Times are the smallest of the repetitions of the fit call alone (standard errors included), ours and
R's; R is left out, with a note, where it or the packages are not installed. The largest difference
between our difficulties and psychotools' is printed beside the ratios.
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

R_CODE = """
arguments <- commandArgs(trailingOnly = TRUE)
answers <- as.matrix(read.csv(arguments[1], header = FALSE))
reps <- as.integer(arguments[2])
fastest <- function(call) min(replicate(reps, system.time(call())["elapsed"]))
if (requireNamespace("psychotools", quietly = TRUE)) {
  cat("psychotools", fastest(function() psychotools::raschmodel(answers)), "\\n")
  fit <- psychotools::itempar(psychotools::raschmodel(answers, reltol = 1e-14))
  cat("difficulties", format(as.numeric(fit), digits = 12), "\\n")
}
if (requireNamespace("eRm", quietly = TRUE)) {
  cat("eRm", fastest(function() eRm::RM(answers)), "\\n")
}
"""


def time_ours(responses, reps):
    times = []
    for _ in range(reps + 1):
        start = time.perf_counter()
        estimate = discreet.fit(responses, method="conditional")
        times.append(time.perf_counter() - start)
    return min(times[1:]), estimate


def time_r(answers, reps):
    if shutil.which("Rscript") is None:
        print("R is not installed: no comparison")
        return {}
    with tempfile.TemporaryDirectory() as folder:
        table, script = Path(folder) / "answers.csv", Path(folder) / "time.R"
        np.savetxt(table, answers, fmt="%d", delimiter=",")
        script.write_text(R_CODE)
        done = subprocess.run(
            ["Rscript", str(script), str(table), str(reps)], capture_output=True, text=True
        )
    return {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--persons", type=int, default=10_000)
    parser.add_argument("--items", type=int, default=50)
    parser.add_argument("--reps", type=int, default=5)
    options = parser.parse_args()
    sim = discreet.simulate(options.persons, options.items, rng=np.random.default_rng(0))
    ours, estimate = time_ours(sim.responses, options.reps)
    print(f"discreet     {ours:.4f} s   {estimate.solution.iterations} Newton steps")
    found = time_r(sim.responses.to_array(), min(options.reps, 3))
    for name in ("psychotools", "eRm"):
        if name in found:
            print(f"{name:12} {float(found[name][0]):.4f} s   {float(found[name][0]) / ours:.0f}x")
    if "difficulties" in found:
        theirs = np.array(found["difficulties"], dtype=float)
        away = np.abs(theirs - theirs.mean() - estimate.difficulty).max()
        print(f"largest difference from psychotools: {away:.1e} logits")


if __name__ == "__main__":
    main()
