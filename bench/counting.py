"""Counting pairs against matrix products, ratios within one run.

Run ``python -P bench/counting.py`` (about five minutes and 6 GB), or with names of parts:
``dense sparse layouts memory old``. Our time is from row-major int8 to the matrix of counts,
packing included. The peers are timed twice: the product alone, on matrices that are already
in the peer's favourite type, and from the same int8 input. Every number is the smallest of
several repeats that take turns, so that a busy machine slows all of them. ``--cpu`` compares
processor seconds of one thread instead of wall time: the way to measure on a shared machine.
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

from discreet.engines.memory import count_store
from discreet.responses.compiling import load_kernels
from discreet.responses.packing import build_rows, pack_columns, pack_rows
from discreet.responses.threads import set_threads

REPEATS = 5
CLOCK = {"now": time.perf_counter}
Job = Callable[[], object]


def time_jobs(jobs: dict[str, Job], repeats: int = REPEATS) -> dict[str, float]:
    """Return the smallest time of each job; the jobs take turns."""
    best = dict.fromkeys(jobs, float("inf"))
    for name in jobs:
        if name == "ours":
            jobs[name]()  # compile
    for _ in range(repeats):
        for name, job in jobs.items():
            start = CLOCK["now"]()
            job()
            best[name] = min(best[name], CLOCK["now"]() - start)
    return best


def report(title: str, best: dict[str, float]) -> dict[str, float]:
    ours = best["ours"]
    ratios = {name: round(seconds / ours, 2) for name, seconds in best.items() if name != "ours"}
    shown = "  ".join(f"{name} {ratio:.1f}x" for name, ratio in ratios.items())
    print(f"{title:<40} ours {1e3 * ours:8.1f} ms   {shown}", flush=True)
    return ratios


def make_answers(persons: int, items: int, missing: float) -> np.ndarray:
    rng = np.random.default_rng(1)
    answers = rng.integers(0, 2, size=(persons, items), dtype=np.int8)
    if missing:
        for start in range(0, persons, 100_000):
            part = answers[start : start + 100_000]
            part[rng.random(part.shape, dtype=np.float32) < missing] = -1
    return answers


def blas(answers: np.ndarray) -> np.ndarray:
    right, wrong = (answers == 1).astype(np.float32), (answers == 0).astype(np.float32)
    return right.T @ wrong


def bitwise(right: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    """Count with NumPy's own population count on planes ``[item, word]``."""
    return np.stack([np.bitwise_count(row & wrong).sum(axis=1, dtype=np.int64) for row in right])


def bench_dense() -> dict[str, dict[str, float]]:
    from scipy.linalg.blas import ssyrk

    results = {}
    cases = [(100_000, 100, 0.0), (1_000_000, 200, 0.0), (1_000_000, 200, 0.8)]
    cases += [(100_000, 1000, 0.0), (100_000, 1000, 0.8)]
    for persons, items, missing in cases:
        answers = make_answers(persons, items, missing)
        right, wrong = ((answers == value).astype(np.float32) for value in (1, 0))
        planes = pack_rows(answers)
        words = [
            plane.transpose(1, 0, 2).reshape(items, -1) for plane in (planes.right, planes.wrong)
        ]
        jobs: dict[str, Job] = {
            "ours": lambda a=answers: count_store(pack_rows(a)),
            "BLAS product": lambda r=right, w=wrong: r.T @ w,
            "BLAS from int8": lambda a=answers: blas(a),
        }
        if not missing:
            jobs["syrk product"] = lambda r=right: ssyrk(1.0, r.T)
        if persons * items**2 <= 5e10:
            jobs["bitwise_count product"] = lambda w=words: bitwise(*w)
        if persons * items <= 2e7:
            exact = (right.astype(np.float64).T @ wrong).astype(np.int64)
            assert (count_store(pack_rows(answers)) == exact).all()
        title = f"{persons} x {items}, {missing:.0%} missing"
        results[title] = report(title, time_jobs(jobs))
    return results


def bench_sparse() -> dict[str, dict[str, float]]:
    from scipy import sparse

    persons, items, each = 1_000_000, 5000, 20
    rng = np.random.default_rng(1)
    item = rng.integers(0, items, size=(persons, each + 6))
    item.sort(axis=1)
    fresh = np.concatenate([np.ones((persons, 1), bool), np.diff(item, axis=1) > 0], axis=1)
    fresh &= np.cumsum(fresh, axis=1) <= each
    person = np.repeat(np.arange(persons), fresh.sum(axis=1)).astype(np.int32)
    item = item[fresh].astype(np.int32)
    right = rng.integers(0, 2, size=len(item)).astype(bool)
    shape = (persons, items)
    ones = np.ones(len(item), dtype=np.int32)
    rights, wrongs = (
        sparse.csr_array((ones[mask], (person[mask], item[mask])), shape=shape)
        for mask in (right, ~right)
    )
    rows = build_rows(person, item, right, persons, items)
    jobs: dict[str, Job] = {
        "ours": lambda: count_store(rows),
        "ours from long rows": lambda: count_store(build_rows(person, item, right, persons, items)),
        "scipy.sparse product": lambda: rights.T.tocsr() @ wrongs,
    }
    title = f"{persons} x {items}, {each} answers each"
    best = time_jobs(jobs, 3)
    assert (count_store(rows)[:50] == (rights.T.tocsr()[:50] @ wrongs).toarray()).all()
    return {title: report(title, best)}


def bench_layouts() -> dict[str, dict[str, float]]:
    import pyarrow as pa

    persons, items = 1_000_000, 100
    answers = make_answers(persons, items, 0.5)
    floats = np.where(answers < 0, np.nan, answers)
    masks = [answers[:, j] < 0 for j in range(items)]
    booleans = [pa.array(answers[:, j] == 1, mask=masks[j]) for j in range(items)]
    integers = [pa.array(answers[:, j].copy(), mask=masks[j]) for j in range(items)]
    numbers = list(np.asfortranarray(floats).T)
    jobs: dict[str, Job] = {
        "ours": lambda: count_store(pack_rows(answers)),
        "Arrow boolean columns": lambda: count_store(pack_columns(booleans)),
        "Arrow int8 columns": lambda: count_store(pack_columns(integers)),
        "float64 rows with NaN": lambda: count_store(pack_rows(floats)),
        "float64 columns with NaN": lambda: count_store(pack_columns(numbers)),
        "packing alone": lambda: pack_rows(answers),
    }
    for name in list(jobs)[1:]:
        jobs[name]()
    title = f"{persons} x {items}, half missing"
    return {title: report(title, time_jobs(jobs))}


def bench_memory() -> dict[str, float]:
    """Peak memory of packing and counting 1M x 100, beyond the int8 input itself."""
    code = (
        "import resource, numpy as np\n"
        "from discreet.engines.memory import count_store\n"
        "from discreet.responses.packing import pack_rows\n"
        "answers = np.random.default_rng(1).integers(-1, 2, size=(1_000_000, 100), dtype=np.int8)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "count_store(pack_rows(answers))\n"
        "after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print((after - before) / 1000)\n"
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
        command = [sys.executable, "-P", __file__, "dense"]
        if CLOCK["now"] is time.process_time:
            command.append("--cpu")
        done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
        print(done.stdout.decode(), flush=True)
        results[blas_kind] = done.stdout.decode()
    return results


PARTS = {
    "dense": bench_dense,
    "sparse": bench_sparse,
    "layouts": bench_layouts,
    "memory": bench_memory,
    "old": bench_old,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=", ".join(PARTS))
    parser.add_argument("--json", help="also write the ratios to this file")
    parser.add_argument("--cpu", action="store_true", help="processor seconds of one thread")
    options = parser.parse_args()
    load_kernels()
    if options.cpu:
        from threadpoolctl import threadpool_limits

        threadpool_limits(1)
        set_threads(1)
        CLOCK["now"] = time.process_time
    results = {part: PARTS[part]() for part in options.parts}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"peak memory of the benchmark {peak:.1f} GB")
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
