"""How precise are the estimates? Root mean square error, against peers on the same data.

Run ``python experiments/calibration/accuracy.py [--reps 20] [--seconds 120]`` with one BLAS thread.
Peers (RaschPy, girth, mirt) are compared where they are installed and left out where they are not;
install them in an environment of their own and put this package's ``src`` on its path. Difficulties
and abilities are drawn anew from N(0, 1) in every replication; a replication counts only when every
item has a number (the truth is centred).
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
import warnings

import numpy as np

from discreet.api.calibrating import fit
from discreet.counts import PairCounts
from discreet.errors import DisconnectedItems

DESIGNS = [(10_000, 100, 0.1), (5000, 100, 0.1), (1000, 50, 0.5), (2000, 30, 1.0), (300, 60, 0.3)]
PUBLISHED = {
    (10_000, 100, 0.1): 0.082,
    (5000, 100, 0.1): 0.115,
    (1000, 50, 0.5): 0.108,
    (2000, 30, 1.0): 0.056,
    (300, 60, 0.3): 0.283,
}


def simulate(rng, n, m, answered):
    b = rng.normal(size=m)
    X = (rng.random((n, m)) < 1 / (1 + np.exp(b - rng.normal(size=(n, 1))))).astype(np.int8)
    X[rng.random((n, m)) >= answered] = -1
    return b, X


def count(X):
    """Unweighted counts, for the estimate as published (lambda = 1)."""
    right, wrong = (X == 1).astype(np.float64), (X == 0).astype(np.float64)
    totals = (X >= 0).sum(axis=0), (X == 1).sum(axis=0)
    names = tuple(map(str, range(X.shape[1])))
    return PairCounts(names, (right.T @ wrong).astype(np.int64), *totals, len(X))


def fit_raschpy(X):
    import pandas as pd
    import raschpy

    model = raschpy.SLM(pd.DataFrame(np.where(X < 0, np.nan, X)))
    model.calibrate()
    return np.asarray(model.items, dtype=float)


def fit_girth(X):
    import girth

    answers = np.where(X < 0, girth.INVALID_RESPONSE, X.astype(int))
    return girth.rasch_mml(answers.T)["Difficulty"]


def fit_mirt(X):
    import mirt

    result = mirt.fit_mirt(X.astype(int), model="1PL", compute_standard_errors=False)
    return np.asarray(result.model.parameters["difficulty"]).ravel()


OURS = {
    "lambda=1": lambda X: (
        fit(count(X), method="spectral", standard_errors=False, regularisation=1.0).difficulty
    ),
    "spectral": lambda X: fit(X, method="spectral", standard_errors=False).difficulty,
    "refined": lambda X: fit(X, method="refined", standard_errors=False).difficulty,
}
PEERS = {"raschpy": fit_raschpy, "girth": fit_girth, "mirt": fit_mirt}


def square_error(estimate, truth):
    error = np.asarray(estimate, dtype=float) - truth
    return float(np.mean((error - error.mean()) ** 2))


def measure(design, reps, seconds, methods):
    """Mean square error per method over the replications in which all of them gave numbers."""
    rng = np.random.default_rng(20)
    errors = {name: [] for name in methods}
    used, tried, start = 0, 0, time.perf_counter()
    while tried < reps or (tried < 20 and time.perf_counter() - start < 4 * seconds):
        if tried >= 20 and time.perf_counter() - start > seconds:
            break
        tried += 1
        truth, X = simulate(rng, *design)
        try:
            row = {name: square_error(method(X), truth) for name, method in methods.items()}
        except DisconnectedItems:
            continue
        if np.isfinite(list(row.values())).all():
            used += 1
            for name, value in row.items():
                errors[name].append(value)
    return used, {name: float(np.sqrt(np.mean(value))) for name, value in errors.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reps", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=120.0, help="time limit per design")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    methods = dict(OURS)
    for name, method in PEERS.items():
        if importlib.util.find_spec(name) is None:
            print(f"# {name} is not installed: left out", file=sys.stderr)
        else:
            methods[name] = method
    print("persons,items,answered,replications," + ",".join(methods) + ",goal,refined/best peer")
    for design in DESIGNS:
        used, rmse = measure(design, options.reps, options.seconds, methods)
        peers = [rmse[name] for name in PEERS if name in rmse]
        ratio = f"{rmse['refined'] / min(peers):.3f}" if peers else ""
        numbers = ",".join(f"{rmse[name]:.4f}" for name in methods)
        print(*design, used, numbers, PUBLISHED[design], ratio, sep=",", flush=True)


if __name__ == "__main__":
    main()
