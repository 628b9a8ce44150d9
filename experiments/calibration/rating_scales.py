"""Items with steps: every promise that is made of them, measured and printed beside its goal.

Run ``python -m experiments.calibration.rating_scales [PART ...] [--reps 200]`` with one BLAS
thread. Parts:

- ``references``: distances from psychotools, eRm, survey and an independent solver on the bundled
  tables of ``tests/data/r``: steps, raters, booklets, weights;
- ``chain``: the stationary vector of expected counts against the thresholds behind them;
- ``accuracy``: simulated under the model; error and coverage with their Monte Carlo errors;
- ``engines``: the same answers in memory, from disk and on Spark;
- ``speed``: conditional likelihood, and many persons;
- ``binary``: right and wrong answers against an earlier version, whose sources ``--before`` names
  (``git worktree add FOLDER COMMIT``);
- ``large``: long rows of scores out of core against as many rows of right and wrong (``--rows``).

Without a part: all but the last two.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from bench import conditional

import discreet
from discreet.answers.pack import store_codes
from discreet.models.methods import PAIR_METHODS
from experiments.calibration import references

DESIGNS = {(1000, 10, 2, 1.0): 1.10, (3000, 20, 4, 1.0): 1.05, (2000, 40, 3, 0.3): None}
"""Persons, items, steps, share answered: the largest error of refined over that of conditional."""
SPARSE_GOAL = 0.155
COVERAGE = (0.93, 0.97)


def say(what, found, goal, met):
    print(f"  {what:58} {found:24} goal {goal:16} {'met' if met else 'MISSED'}", flush=True)


def hold(codes, steps):
    return discreet.Responses.from_store(store_codes(codes, [steps] * codes.shape[1]))


# -- simulated answers -----------------------------------------------------------------------


def draw_thresholds(rng, items, steps):
    """Return locations between -1.5 and 1.5, steps from -1 to 1 around them, and some scatter."""
    spread = np.linspace(-1, 1, steps) + rng.normal(0, 0.2, (items, steps))
    thresholds = rng.uniform(-1.5, 1.5, (items, 1)) + spread
    return thresholds - thresholds.mean()


def draw(rng, persons, thresholds, answered=1.0):
    """Return answers of standard normal abilities."""
    made = discreet.simulate(persons, len(thresholds), answered, thresholds=thresholds, rng=rng)
    return made.responses


def replicate(seed, design, methods):
    """Return per method the mean square error and the share of 95% intervals with the truth."""
    persons, items, steps, answered = design
    rng = np.random.default_rng(seed)
    truth = draw_thresholds(rng, items, steps)
    answers = draw(rng, persons, truth, answered)
    row = []
    for method in methods:
        found = discreet.fit(answers, method=method)
        away = found.thresholds - truth
        row.append([np.mean(away**2), np.mean(np.abs(away) <= 1.959964 * found.threshold_se)])
    return row


def measure_accuracy(options):
    print(f"accuracy: {options.reps} repetitions, seeds from {options.seed} on; +- is one standard")
    print("  error of the Monte Carlo; intervals are those of 95%")
    for number, (design, goal) in enumerate(DESIGNS.items()):
        methods = ("refined", "conditional") if goal else ("refined",)
        seeds = [[options.seed, number, rep] for rep in range(options.reps)]
        rows = np.array([replicate(seed, design, methods) for seed in seeds])
        report_design(design, goal, methods, rows)


def report_design(design, goal, methods, rows):
    persons, items, steps, answered = design
    name = f"{persons} x {items} x {steps}" + (f", {answered:.0%} answered" * (answered < 1))
    square, covered = rows[:, :, 0], rows[:, :, 1]
    rmse = np.sqrt(square.mean(axis=0))
    rough = square.std(axis=0, ddof=1) / np.sqrt(len(rows)) / (2 * rmse)
    for method, error, loose in zip(methods, rmse, rough, strict=True):
        print(f"  {name}, {method}: error {error:.4f} +- {loose:.4f}")
    if goal:
        ratio = rmse[0] / rmse[1]
        # Both methods have the same answers: the error of the ratio is that of the differences.
        pull = square[:, 0] / square[:, 0].mean() - square[:, 1] / square[:, 1].mean()
        loose = ratio * pull.std(ddof=1) / np.sqrt(len(rows)) / 2
        found = f"{ratio:.3f} +- {loose:.3f}"
        say(f"{name}: refined over conditional", found, f"<= {goal}", ratio <= goal)
    else:
        found = f"{rmse[0]:.4f} +- {rough[0]:.4f}"
        say(f"{name}: error of refined", found, f"<= {SPARSE_GOAL}", rmse[0] <= SPARSE_GOAL)
    for method, share in zip(methods, covered.T, strict=True):
        mean, loose = share.mean(), share.std(ddof=1) / np.sqrt(len(rows))
        inside = COVERAGE[0] <= mean <= COVERAGE[1]
        say(f"{name}: coverage, {method}", f"{mean:.4f} +- {loose:.4f}", ".93 to .97", inside)


# -- other programs --------------------------------------------------------------------------


def measure_references(_):
    print("references: largest distances from other programs, on bundled tables")
    for one in references.compare_bundled():
        words = f"{one.what}, {one.program}"
        say(words, f"{one.found:.1e}", f"{one.goal:.0e}", one.found <= one.goal)


# -- the chain, and the engines --------------------------------------------------------------


def expected_counts(thresholds, ability):
    """Return the expected pair counts of nodes, without pairs inside an item."""
    odds = np.cumsum(ability[:, None, None] - thresholds, axis=2)
    share = np.concatenate([np.ones((*odds.shape[:2], 1)), np.exp(odds)], axis=2)
    share /= share.sum(axis=2, keepdims=True)
    right, wrong = (one.reshape(len(ability), -1) for one in (share[..., 1:], share[..., :-1]))
    item = np.repeat(np.arange(len(thresholds)), thresholds.shape[1])
    return np.where(item[:, None] == item, 0, right.T @ wrong)


def measure_chain(options):
    print("chain: thresholds from expected counts")
    rng = np.random.default_rng(options.seed)
    thresholds = draw_thresholds(rng, 20, 4)
    rates = expected_counts(thresholds, rng.normal(size=1000))
    for method, solver in PAIR_METHODS.items():
        found, _ = solver.solve(rates)
        away = np.abs(found - found.mean() - thresholds.ravel()).max()
        say(f"20 items x 4 steps, {method}", f"{away:.1e}", "1e-12", away <= 1e-12)


def write_long(path, answers):
    import pyarrow as pa
    import pyarrow.parquet as pq

    codes = answers.to_array()
    person, item = np.nonzero(codes >= 0)
    rows = {
        "person": person,
        "item": np.array(answers.items)[item],
        "response": codes[person, item],
    }
    pq.write_table(pa.table(rows), path)


def measure_engines(options):
    print("engines: refined and spectral on the same 20,000 x 20 x 4 answers, 80% answered")
    rng = np.random.default_rng(options.seed)
    answers = draw(rng, 20_000, draw_thresholds(rng, 20, 4), 0.8)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.parquet"
        write_long(path, answers)
        sources = {
            "a file": lambda: (str(path), "memory"),
            "disk": lambda: (str(path), "disk"),
            "spark": lambda: read_spark(path),
        }
        for method in PAIR_METHODS:
            for engine, source in sources.items():
                compare_engine(engine, source, method, answers)


def read_spark(path):
    from bench.spark import start_session

    return start_session(2).read.parquet(str(path)), "spark"


def compare_engine(engine, source, method, answers):
    try:
        data, name = source()
        # Spark reads steps where a model is named.
        found = discreet.fit(data, engine=name, method=method, model="partial-credit")
    except (discreet.errors.DiscreetError, ImportError, RuntimeError) as error:
        print(f"  {engine}, {method}: cannot be measured here ({error})")
        return
    ours = discreet.fit(answers.select(found.items), method=method)
    away = np.abs(found.thresholds - ours.thresholds).max()
    errors = np.abs(found.threshold_se - ours.threshold_se).max()
    words = f"{away:.1e}, errors {errors:.1e}"
    say(f"{engine} against memory, {method}", words, "0, 1e-12", not away and errors <= 1e-12)


# -- speed -----------------------------------------------------------------------------------


def clock(work, rounds=3):
    """Return the smallest wall and processor times of some rounds after one that warms up."""
    times = []
    for _ in range(rounds + 1):
        began, used = time.perf_counter(), time.process_time()
        work()
        times.append((time.perf_counter() - began, time.process_time() - used))
    return np.min(times[1:], axis=0)


def measure_speed(options):
    print("speed: standard errors included, from a data frame; ratios of processor seconds")
    codes = conditional.simulate(2000, 20, 0.0, 4)
    fit, _ = conditional.fit_ours(codes, 4)
    seconds, processor = clock(fit, 10)
    print(f"  2000 x 20 x 4, conditional: {seconds:.3f} s, processor {processor:.4f} s")
    if shutil.which("Rscript"):
        for package in ("eRm", "psychotools"):
            compare_peer(package, codes, processor, options)
    else:
        print("  R is not installed here: no ratio")
    rng = np.random.default_rng(options.seed)
    many = draw(rng, 100_000, draw_thresholds(rng, 50, 4))
    seconds, processor = clock(lambda: discreet.fit(many, method="refined"), 4)
    found = f"{seconds:.2f} s, processor {processor:.2f} s"
    say("100,000 x 50 x 4, refined", found, "2 s", seconds <= 2)


def compare_peer(package, codes, ours, options):
    goal = conditional.GOALS["steps", package]
    found = conditional.time_r(package, codes, 4, options)
    if not found or "seconds" not in found:
        print(f"  {package}: not installed, or stopped after {options.peer_limit} s")
        return
    ratio = float(found["seconds"][1]) / ours
    say(f"2000 x 20 x 4: {package} over ours", f"{ratio:.0f}", f">= {goal}", ratio >= goal)


# -- right and wrong answers, before and now -------------------------------------------------

BINARY = """
import hashlib, json, sys, time
import numpy as np, discreet
rng = np.random.default_rng(5)
def draw(n, m, missing):
    chance = 1 / (1 + np.exp(rng.normal(size=m) - rng.normal(size=(n, 1))))
    codes = (rng.random((n, m)) < chance).astype(np.int8)
    codes[rng.random((n, m)) < missing] = -1
    return codes
big, small = draw(200_000, 100, 0.3), draw(10_000, 50, 0.0)
held, few = discreet.Responses.from_array(big), discreet.Responses.from_array(small)
files = sys.argv[1]
tasks = {
    "array to counts, 200,000 x 100": lambda: discreet.count_pairs(big).right_wrong,
    "refined, 200,000 x 100": lambda: discreet.fit(held, method="refined").difficulty,
    "spectral, 200,000 x 100": lambda: discreet.fit(held, method="spectral").difficulty,
    "conditional, 10,000 x 50": lambda: discreet.fit(few, method="conditional").difficulty,
    "long Parquet out of core": lambda: discreet.count_pairs(files, engine="disk").right_wrong,
    "long Parquet to memory": lambda: discreet.read_responses(files).count().right_wrong,
}
for name in sys.stdin:
    work = tasks[name.strip()]
    began, used = time.perf_counter(), time.process_time()
    value = work()
    spent = [time.perf_counter() - began, time.process_time() - used]
    print(json.dumps([*spent, hashlib.sha256(value.tobytes()).hexdigest()]), flush=True)
"""

TASKS = re.findall(r'^    "(.+)": lambda', BINARY, re.MULTILINE)


def start_version(sources, files):
    environment = {**os.environ, "PYTHONPATH": str(sources)}
    command = [sys.executable, "-P", "-c", BINARY, files]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True)


def ask(version, name):
    print(name, file=version.stdin, flush=True)
    return json.loads(version.stdout.readline())


def measure_binary(options):
    print("binary: right and wrong answers, this version over the earlier one, call by call")
    if options.before is None:
        print("  name the folder with the earlier version: --before FOLDER")
        return
    now, before = Path(discreet.__file__).parents[1], options.before / "src"
    with tempfile.TemporaryDirectory() as folder:
        files = str(Path(folder) / "answers.parquet")
        rng = np.random.default_rng(options.seed)
        write_long(files, draw(rng, 50_000, draw_thresholds(rng, 60, 1), 0.5))
        with start_version(now, files) as new, start_version(before, files) as old:
            for name in TASKS:
                compare_task(name, new, old, 10 * options.turns)


def compare_task(name, new, old, turns):
    """Take the middle of the ratios of neighbouring calls: both meet the same other work."""
    pairs = [(ask(new, name), ask(old, name)) for _ in range(turns + 3)][3:]
    wall, processor = (
        np.array([now[column] / then[column] for now, then in pairs]) for column in (0, 1)
    )
    middle, spread = np.median(processor), 1.25 * processor.std() / math.sqrt(turns)
    same = pairs[0][0][2] == pairs[0][1][2]
    words = f"processor {middle:.2f} ± {spread:.2f}, wall {np.median(wall):.2f}"
    name += ", same numbers" if same else ", OTHER NUMBERS"
    say(name, words, "processor 1.05", same and middle <= 1.05)


# -- out of core -----------------------------------------------------------------------------


def generate(folder, persons, items, steps):
    """Write complete answers in person order, block by block."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    place = folder / f"steps-{steps}-{persons}"
    if (place / "done").exists():
        return place
    place.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(3)
    thresholds = draw_thresholds(rng, items, steps)
    for number, first in enumerate(range(0, persons, 20_000)):
        codes = draw(rng, min(20_000, persons - first), thresholds).to_array()
        person = np.repeat(np.arange(first, first + len(codes)), items)
        item = np.tile(np.arange(items, dtype=np.int32), len(codes))
        rows = pa.table({"person": person, "item": item, "response": codes.ravel()})
        pq.write_table(rows, place / f"{number:03}.parquet")
    (place / "done").touch()
    return place


COUNT = """
import json, sys, time, discreet
began, used = time.perf_counter(), time.process_time()
counts = discreet.count_pairs(sys.argv[1], engine="disk")
print(json.dumps([time.perf_counter() - began, time.process_time() - used, counts.persons]))
"""


def measure_large(options):
    print(f"large: {options.rows:,} long rows of 100 items out of core, in turns")
    persons = options.rows // 100
    places = {steps: generate(options.folder, persons, 100, steps) for steps in (1, 4)}
    found = {1: [], 4: []}
    for _ in range(options.turns):
        for steps, place in places.items():
            command = [sys.executable, "-P", "-c", COUNT, str(place / "*.parquet")]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            wall, processor, counted = json.loads(done.stdout)
            found[steps].append((wall, processor))
            words = f"wall {wall:.1f} s, processor {processor:.1f} s, {counted:,} persons"
            print(f"  {'scores 0 to 4' if steps > 1 else 'right and wrong'}: {words}", flush=True)
    wall, processor = np.min(found[4], axis=0) / np.min(found[1], axis=0)
    words = f"wall {wall:.1f}, processor {processor:.1f}"
    say("scores over right and wrong", words, "<= 3", wall <= 3)


PARTS = {
    "references": measure_references,
    "chain": measure_chain,
    "accuracy": measure_accuracy,
    "engines": measure_engines,
    "speed": measure_speed,
    "binary": measure_binary,
    "large": measure_large,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="*", choices=[[], *PARTS], default=[])
    parser.add_argument("--reps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--peer-limit", type=int, default=300, help="seconds for a package of R")
    parser.add_argument("--before", type=Path, help="a checkout of an earlier version")
    parser.add_argument("--turns", type=int, default=5, help="rounds of each kind")
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "steps")
    options = parser.parse_args()
    for part in options.part or [name for name in PARTS if name not in ("binary", "large")]:
        PARTS[part](options)


if __name__ == "__main__":
    main()
