"""What people wait for: fits with standard errors, fit statistics and first calls.

Run ``python -m bench.felt [--scale 0.1] [--cpu] [--only WORDS]`` with two cores. Every line is the
time of a process of its own, and its ratio to the time in which pandas reads the same answers from
a wide CSV file. Warm times are the smallest of a few repeats. A first call includes all imports but
NumPy's; "no folder" decides as where compiled loops cannot be kept, "ever" compiles all that it
needs.
``--cpu`` runs everything in one thread and takes processor seconds, for a busy machine. "all
persons" is the refined fit with the scores of everybody, and how far standard errors from a sample
are from its (root mean square, relative).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

CASES = {
    "300k x 200, complete": (300_000, 200, 1.0),
    "300k x 200, half missing": (300_000, 200, 0.5),
    "60 x 2000, complete": (60, 2000, 1.0),
}
GOALS = {
    ("300k x 200, complete", "fit refined"): 0.15,
    ("300k x 200, complete", "fit auto"): 0.15,
    ("300k x 200, half missing", "fit refined"): 0.4,
    ("300k x 200, half missing", "fit auto"): 0.4,
    ("60 x 2000, complete", "fit refined"): 0.7,
    ("60 x 2000, complete", "fit auto"): 0.7,
    ("300k x 200, half missing", "measure_fit"): 3.0,
}
METHODS = ("refined", "spectral", "auto")
REPEATS = 3


def simulate(persons, items, given):
    """Draw answers of abilities and difficulties from N(0, 1), a part of the persons at a time."""
    rng = np.random.default_rng(0)
    b = rng.normal(size=items).astype(np.float32)
    parts = []
    for start in range(0, persons, 50_000):
        shape = (min(50_000, persons - start), items)
        away = b - rng.normal(size=(shape[0], 1)).astype(np.float32)
        cells = (rng.random(shape, dtype=np.float32) < 1 / (1 + np.exp(away))).astype(np.int8)
        cells[rng.random(shape, dtype=np.float32) > given] = -1
        parts.append(cells)
    return np.concatenate(parts)


def write(folder, cells):
    """Write the answers for pandas and for the other processes."""
    np.save(folder / "cells.npy", cells)
    words = np.array(["0", "1", ""])
    with (folder / "answers.csv").open("w") as out:
        out.write(",".join(f"q{item}" for item in range(cells.shape[1])) + "\n")
        for row in cells:
            out.write(",".join(words[row]) + "\n")


# -- in a process of its own ---------------------------------------------------------------------


def peak():
    """Return the largest memory of this process so far, in bytes."""
    # Not getrusage: its maximum is inherited from the process that started this one.
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", status).group(1))


def measure(function, repeats, *, cpu):
    clock = time.process_time if cpu else time.perf_counter
    found = []
    for _ in range(repeats):
        start = clock()
        function()
        found.append(clock() - start)
    return {"seconds": min(found), "peak": peak()}


def run_task(task, folder, cpu):
    """Do one thing and return its time."""
    if task == "pandas":
        import pandas as pd

        return measure(partial(pd.read_csv, folder / "answers.csv"), 2, cpu=cpu)
    cells = np.load(folder / "cells.npy")
    if task.startswith("first"):
        return measure(partial(call_first, cells, keep="no folder" not in task), 1, cpu=cpu)
    import discreet
    from discreet.jit import load_kernels

    load_kernels()
    answers = discreet.Responses.from_array(cells)
    del cells
    if task == "measure_fit":
        from discreet.analysis import measure_fit

        estimate = discreet.fit(answers, standard_errors=False)
        return measure(partial(measure_fit, answers, estimate), 2, cpu=cpu)
    if task == "all persons":
        return compare_samples(answers, cpu=cpu)
    method, errors = task.split()[1], "without" not in task
    fit = partial(discreet.fit, answers, method=method, standard_errors=errors)
    fit()
    return measure(fit, REPEATS, cpu=cpu)


def call_first(cells, *, keep):
    import discreet
    from discreet import jit

    if not keep:  # as where neither the package's nor the user's folder can be written
        jit.can_keep_loops = lambda: False
    discreet.fit(cells)


def compare_samples(answers, *, cpu):
    import discreet
    from discreet.models import standard_errors as person_scores

    some = discreet.fit(answers, method="refined").se
    person_scores.ENOUGH = 1 << 60
    everybody = []
    found = measure(
        lambda: everybody.append(discreet.fit(answers, method="refined").se), 2, cpu=cpu
    )
    return {**found, "error": float(np.sqrt(np.mean((some / everybody[-1] - 1) ** 2)))}


# -- here ----------------------------------------------------------------------------------------


def ask(task, folder, options):
    """Return the numbers of a process of its own."""
    surroundings = dict(os.environ)
    if options.cpu:
        surroundings |= {"OPENBLAS_NUM_THREADS": "1", "DISCREET_THREADS": "1"}
    if task == "first call ever":
        surroundings["NUMBA_CACHE_DIR"] = str(folder / "loops")
    command = [sys.executable, "-m", "bench.felt", "--task", task, "--folder", str(folder)]
    command += ["--cpu"] if options.cpu else []
    done = subprocess.run(command, env=surroundings, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def show(case, task, found, reading):
    goal = GOALS.get((case, task))
    line = f"  {task:<28} {found['seconds']:7.3f} s {found['seconds'] / reading:7.2f} of pandas"
    line += f"  peak {found['peak'] / 1e9:.2f} GB"
    line += f"  (goal {goal} s)" if goal else ""
    line += f"  error {found['error']:.2%}" if "error" in found else ""
    print(line, flush=True)


def list_tasks(case, persons, only):
    """Return the tasks of a case whose line has the wanted words."""
    tasks = [f"fit {method}{how}" for method in METHODS for how in ("", " without errors")]
    if persons > 60:
        tasks += ["measure_fit", "all persons"]
    tasks += ["first call", "first call, no folder", "first call ever"]
    return [task for task in tasks if only in f"{case}: {task}"]


def compare(case, shape, options):
    persons, items, given = shape
    tasks = list_tasks(case, persons, options.only)
    if not tasks:
        return
    persons = max(60, int(persons * options.scale)) if persons > 60 else persons
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, simulate(persons, items, given))
        reading = ask("pandas", folder, options)
        print(f"{case}: {persons:,} persons; pandas reads them in {reading['seconds']:.2f} s")
        for task in tasks:
            show(case, task, ask(task, folder, options), reading["seconds"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="part of the persons")
    parser.add_argument("--cpu", action="store_true", help="processor seconds of one thread")
    parser.add_argument("--only", default="", help='lines with these words: "complete: fit auto"')
    parser.add_argument("--task", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        print(json.dumps(run_task(options.task, options.folder, options.cpu)))
        return
    print("processor seconds of one thread" if options.cpu else "wall seconds")
    for case, shape in CASES.items():
        compare(case, shape, options)


if __name__ == "__main__":
    main()
