"""Counting pairs against matrix products, ratios within one run.

Run ``python -P bench/counting.py`` (some minutes and 6 GB), or with names of parts: ``dense
weighted sparse layouts cap memory old``. Our time is from row-major int8 to the matrix of
counts, packing included; the peers' is the product alone, on matrices that are already in their
favourite type. Every number is the smallest of several repeats that take turns, so that a busy
machine slows all of them; a job that has used its share of time is not repeated. ``--cpu``
compares processor seconds of one thread instead of wall time: the way to measure on a shared
machine. ``--scale 0.2`` takes a fifth of the persons.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from discreet.answers.pack import build_rows, pack_columns, pack_rows
from discreet.counts.pairs import count_store
from discreet.jit import load_kernels
from discreet.threads import set_threads

REPEATS = 7
SHARE_SECONDS = 6.0
SETTING = {"now": time.perf_counter, "scale": 1.0}
Job = Callable[[], object]
Table = list[dict[str, object]]


def scaled(persons: int) -> int:
    return max(1000, int(persons * SETTING["scale"]))


def time_jobs(jobs: dict[str, Job]) -> dict[str, float]:
    """Return the smallest time of each job; the jobs take turns while they have time left."""
    best, spent = dict.fromkeys(jobs, float("inf")), dict.fromkeys(jobs, 0.0)
    for name, job in jobs.items():
        if name.startswith("ours"):
            job()  # compile
    for _ in range(REPEATS):
        for name, job in jobs.items():
            if spent[name] > SHARE_SECONDS:
                continue
            begun, start = time.perf_counter(), SETTING["now"]()
            job()
            best[name] = min(best[name], SETTING["now"]() - start)
            spent[name] += time.perf_counter() - begun
    return best


def compare(case: str, jobs: dict[str, Job], goals: dict[str, float]) -> Table:
    """Time the jobs and print one line for each against the first; goals are least ratios."""
    best = time_jobs(jobs)
    first, *others = best
    table: Table = []
    for name in others:
        ratio, goal = best[name] / best[first], goals.get(name)
        verdict = "" if goal is None else "met" if ratio >= goal else "MISSED"
        print(
            f"{case:<34} {1e3 * best[first]:9.1f} ms  {name:<26} {1e3 * best[name]:9.1f} ms "
            f"{ratio:7.2f}x  {'' if goal is None else f'goal {goal:g}':<10} {verdict}",
            flush=True,
        )
        table.append({"case": case, "peer": name, "ratio": round(ratio, 2), "goal": goal})
    return table


def make_answers(persons: int, items: int, missing: float) -> np.ndarray:
    rng = np.random.default_rng(1)
    answers = rng.integers(0, 2, size=(persons, items), dtype=np.int8)
    if missing:
        for start in range(0, persons, 100_000):
            part = answers[start : start + 100_000]
            part[rng.random(part.shape, dtype=np.float32) < missing] = -1
    return answers


def bitwise(right: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    """Count with NumPy's own population count on planes ``[item, word]``."""
    return np.stack([np.bitwise_count(row & wrong).sum(axis=1, dtype=np.int64) for row in right])


DENSE = [(100_000, 100, 0.0, 0), (1_000_000, 200, 0.0, 15), (1_000_000, 200, 0.8, 10)]
DENSE += [(100_000, 1000, 0.0, 15), (100_000, 1000, 0.8, 10)]


def bench_dense(goal: float | None = None) -> Table:
    from scipy.linalg.blas import ssyrk

    table: Table = []
    for persons, items, missing, own_goal in DENSE:
        persons = scaled(persons)
        answers = make_answers(persons, items, missing)
        right, wrong = ((answers == value).astype(np.float32) for value in (1, 0))
        planes = pack_rows(answers)
        words = [p.transpose(1, 0, 2).reshape(items, -1) for p in (planes.right, planes.wrong)]
        jobs: dict[str, Job] = {
            "ours": lambda a=answers: count_store(pack_rows(a)),
            "ours, packing alone": lambda a=answers: pack_rows(a),
            "float32 BLAS": lambda r=right, w=wrong: r.T @ w,
        }
        if not missing:
            jobs["float32 syrk"] = lambda r=right: ssyrk(1.0, r.T)
        if persons * items**2 <= 5e10:
            jobs["np.bitwise_count"] = lambda w=words: bitwise(*w)
        if persons * items <= 2e7:
            exact = (right.astype(np.float64).T @ wrong).astype(np.int64)
            assert (count_store(planes) == exact).all()
        goals = {"float32 BLAS": goal or own_goal} if own_goal else {}
        table += compare(f"{persons} x {items}, {missing:.0%} missing", jobs, goals)
    return table


def bench_weighted() -> Table:
    """Count with a weight per person, relative to counting without."""
    from discreet.counts.folds import PersonWeight
    from discreet.privacy.mechanisms.margins import PersonWeights

    table: Table = []
    for persons, items, missing in ((1_000_000, 200, 0.8), (1_000_000, 200, 0.0)):
        persons = scaled(persons)
        planes = pack_rows(make_answers(persons, items, missing))
        longest = 0.7 * np.sqrt(items * (1 - missing)) / 2
        jobs: dict[str, Job] = {
            "ours, no weights": lambda p=planes: count_store(p),
            "ours, refined": lambda p=planes: count_store(p, PersonWeight()),
            "ours, margins": lambda p=planes, w=longest: count_store(p, PersonWeights(2**20, w)),
            "ours, person totals alone": planes.person_totals,
        }
        table += compare(f"{persons} x {items}, {missing:.0%} missing", jobs, {})
    return table


def draw_thin(persons: int, items: int, each: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return person, item and right of about ``each`` answers of everybody."""
    rng = np.random.default_rng(1)
    item = rng.integers(0, items, size=(persons, each + 6))
    item.sort(axis=1)
    fresh = np.concatenate([np.ones((persons, 1), bool), np.diff(item, axis=1) > 0], axis=1)
    fresh &= np.cumsum(fresh, axis=1) <= each
    person = np.repeat(np.arange(persons), fresh.sum(axis=1)).astype(np.int32)
    item = item[fresh].astype(np.int32)
    return person, item, rng.integers(0, 2, size=len(item)).astype(bool)


def bench_sparse() -> Table:
    from scipy import sparse

    persons, items, each = scaled(1_000_000), 5000, 20
    person, item, right = draw_thin(persons, items, each)
    ones = np.ones(len(item), dtype=np.int32)
    rights, wrongs = (
        sparse.csr_array((ones[mask], (person[mask], item[mask])), shape=(persons, items))
        for mask in (right, ~right)
    )
    rows = build_rows(person, item, right, persons, items)
    assert (count_store(rows)[:50] == (rights.T.tocsr()[:50] @ wrongs).toarray()).all()
    jobs: dict[str, Job] = {
        "ours": lambda: count_store(rows),
        "ours from long rows": lambda: count_store(build_rows(person, item, right, persons, items)),
        "scipy.sparse": lambda: rights.T.tocsr() @ wrongs,
    }
    return compare(f"{persons} x {items}, {each} answers each", jobs, {"scipy.sparse": 4})


def bench_layouts() -> Table:
    import pyarrow as pa

    persons, items = scaled(1_000_000), 100
    answers = make_answers(persons, items, 0.5)
    floats = np.where(answers < 0, np.nan, answers)
    masks = [answers[:, j] < 0 for j in range(items)]
    booleans = [pa.array(answers[:, j] == 1, mask=masks[j]) for j in range(items)]
    integers = [pa.array(answers[:, j].copy(), mask=masks[j]) for j in range(items)]
    numbers = list(np.asfortranarray(floats).T)
    jobs: dict[str, Job] = {
        "ours, Arrow booleans": lambda: count_store(pack_columns(booleans)),
        "ours, row-major int8": lambda: count_store(pack_rows(answers)),
        "ours, Arrow int8": lambda: count_store(pack_columns(integers)),
        "ours, float64 rows, NaN": lambda: count_store(pack_rows(floats)),
        "ours, float64 columns, NaN": lambda: count_store(pack_columns(numbers)),
    }
    title = f"{persons} x {items}, Arrow booleans"
    return compare(title, jobs, {"ours, row-major int8": 1})


def bench_cap() -> dict[str, float]:
    """Keep 20 of about 50 answers of everybody, with the operating system's randomness."""
    from discreet.answers.select import cap_answers
    from discreet.secure import SystemSource

    planes = pack_rows(make_answers(scaled(1_000_000), 100, 0.5))
    best = time_jobs({"ours": lambda: cap_answers(planes, 20, SystemSource())})
    print(f"cap {planes.n_answers} answers to 20 each: {best['ours']:.2f} s   goal 3")
    return best


def bench_memory() -> dict[str, float]:
    """Peak memory of packing and counting 1M x 100, beyond the int8 input itself."""
    # The high-water mark of this process image: that of getrusage starts with the parent's.
    code = (
        "import numpy as np\n"
        "from discreet.counts.pairs import count_store\n"
        "from discreet.answers.pack import pack_rows\n"
        "def peak():\n"
        "    lines = open('/proc/self/status').read().splitlines()\n"
        "    return int(next(line for line in lines if line.startswith('VmHWM')).split()[1])\n"
        "answers = np.random.default_rng(1).integers(-1, 2, size=(1_000_000, 100), dtype=np.int8)\n"
        "before = peak()\n"
        "count_store(pack_rows(answers))\n"
        "print((peak() - before) / 1000)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    megabytes = float(done.stdout)
    print(f"memory beyond the input, 1000000 x 100: {megabytes:.0f} MB")
    return {"MB": megabytes}


def bench_old() -> dict[str, str]:
    """Count as on a processor without AVX-512, against BLAS with and without it."""
    environment = {**os.environ, "NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": ""}
    results = {}
    for blas_kind in ("AVX-512", "AVX2"):
        if blas_kind == "AVX2":
            environment["OPENBLAS_CORETYPE"] = "Haswell"
        print(f"-- ours without AVX-512, BLAS with {blas_kind}", flush=True)
        command = [sys.executable, "-P", __file__, "dense", "--goal", "4"]
        command += ["--scale", str(SETTING["scale"])]
        if SETTING["now"] is time.process_time:
            command.append("--cpu")
        done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
        results[blas_kind] = done.stdout.decode()
        print(results[blas_kind], flush=True)
    return results


PARTS: dict[str, Callable[[], object]] = {
    "dense": bench_dense,
    "weighted": bench_weighted,
    "sparse": bench_sparse,
    "layouts": bench_layouts,
    "cap": bench_cap,
    "memory": bench_memory,
    "old": bench_old,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=", ".join(PARTS))
    parser.add_argument("--json", help="also write the ratios to this file")
    parser.add_argument("--cpu", action="store_true", help="processor seconds of one thread")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the persons")
    parser.add_argument("--goal", type=float, help="another goal for dense counting")
    options = parser.parse_args()
    load_kernels()
    SETTING["scale"] = options.scale
    if options.cpu:
        import scipy.linalg  # noqa: F401 - its BLAS must be loaded before it can be limited
        from threadpoolctl import threadpool_limits

        threadpool_limits(1)
        set_threads(1)
        SETTING["now"] = time.process_time
    results = {}
    for part in options.parts:
        print(f"== {part}", flush=True)
        results[part] = bench_dense(options.goal) if part == "dense" else PARTS[part]()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"peak memory of the benchmark {peak:.1f} GB")
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
