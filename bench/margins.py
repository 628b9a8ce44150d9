"""The `margins` mechanism against its targets: error, coverage, slope.

Run with ``python bench/margins.py [--runs 20] [--only complete,targeted] [--intervals]``. Weights,
sensitivity and noise scales are the library's own; noise is drawn from a normal distribution,
which on a grid of 2^20 steps cannot be told from the discrete one and is not private.
Prints, for each cell, the error, the target where there is one, and their ratio.
"""

import argparse
from pathlib import Path

import numpy as np
from experiments.films import read_ratings

from discreet import datasets
from discreet.models.noisy import iterate as spread_module
from discreet.models.noisy.margins import MarginsNoise, fit_margins
from discreet.models.noisy.pairs import fit_noisy_pairs
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.mechanisms.margins import Margins
from discreet.privacy.mechanisms.pairs import DensePairs
from discreet.privacy.protocol import Public
from discreet.secure import SeededSource

DELTA = 1e-4

# name: (design, persons, items, share answered, cap, {epsilon: target root mean square error})
DESIGNS = {
    "complete": ("random", 1000, 50, 1.0, 50, {0.1: 0.81, 0.5: 0.26, 1: 0.155, 2: 0.112, 5: 0.082}),
    "third": ("random", 5000, 100, 0.3, 40, {0.1: 0.61, 0.5: 0.18, 1: 0.12, 2: 0.09, 5: 0.075}),
    "tenth": ("random", 5000, 100, 0.1, 18, {0.1: 0.92, 0.5: 0.35, 1: 0.23, 2: 0.174, 5: 0.139}),
    "large": ("random", 20000, 200, 0.1, 30, {0.1: 0.43, 0.5: 0.137, 1: 0.093, 2: 0.077, 5: 0.064}),
    "targeted": ("targeted", 5000, 100, 0.0, 40, {0.1: 0.95, 0.5: 0.31, 1: 0.2, 2: 0.115, 5: 0.08}),
    "booklets": ("booklets", 3000, 70, 0.0, 20, dict.fromkeys((0.1, 0.5, 1, 2, 5))),
    "skewed": ("skewed", 1000, 50, 1.0, 50, dict.fromkeys((0.1, 0.5, 1, 2, 5))),
}
# panels of the paper: difficulties and abilities N(0, 1), error ||b~ - b||
PANELS = {
    (25, 200): {1: 2.5, 2: 1.6, 5: 1.0},
    (200, 200): {1: 10.5, 2: 9.3, 5: 5.4},
    (25, 1000): {0.1: 3.1, 1: 0.61, 2: 0.49, 5: 0.37},
    (200, 1000): {1: 4.1, 2: 2.4, 5: 1.5},
}
REAL = {  # best of the published curves and of the prototype
    "lsat": {0.01: 2.0, 0.1: 0.69, 1: 0.19, 2: 0.13, 5: 0.06},
    "three_grades": {0.01: 1.0, 0.1: 0.97, 1: 0.35, 2: 0.17, 5: 0.08},
    "uci_student": {0.01: 0.93, 0.1: 0.97, 1: 0.5, 2: 0.41, 5: 0.16},
}
FILMS = {25: {1: 2.1, 2: 1.3, 5: 0.95}, 200: {1: 7.6, 2: 5.2, 5: 4.0}}


def simulate(design, persons, items, answered, cap, rng, normal=False):
    difficulty = rng.normal(size=items) if normal else rng.uniform(-2, 2, items)
    difficulty -= difficulty.mean()
    ability = rng.normal(size=persons)
    if design == "skewed":
        ability = rng.exponential(size=persons) - 1
    if design == "booklets":
        block, form = rng.permutation(items) % 7, rng.integers(7, size=(persons, 1))
        seen = (block == form) | (block == (form + 1) % 7)
    elif design == "targeted":
        near = np.exp(-((difficulty - ability[:, None]) ** 2) / 2)
        seen = rng.random((persons, items)) < 0.53 * near
    else:
        seen = rng.random((persons, items)) < answered
    right = rng.random((persons, items)) < 1 / (1 + np.exp(difficulty - ability[:, None]))
    order = np.argsort(np.where(seen, rng.random(seen.shape), 2.0), axis=1)
    rank = np.argsort(order, axis=1)
    return difficulty, right, seen & (rank < cap)


def weigh(right, seen, weighting):
    answered, correct = seen.sum(axis=1), (right & seen).sum(axis=1)
    weight = weighting(answered, correct).astype(float)
    return ((right & seen) * weight[:, None]).T @ (~right & seen).astype(float)


def refine(weighted, steps=60):
    both, total = weighted + weighted.T, weighted.sum(axis=1) - weighted.sum(axis=0)
    m = len(total)
    b = np.zeros(m)
    for _ in range(steps):
        tanh = np.tanh((b[None] - b[:, None]) / 2)
        weight = both * (1 - tanh**2) / 2
        full = np.diag(weight.sum(axis=1)) - weight
        step = np.linalg.solve(full + np.trace(full) / m**2, total - (both * tanh).sum(axis=1))
        b = b - np.clip(step, -1, 1)
    return b - b.mean()


def spectral(counts):
    chain = counts / (1.01 * counts.sum(axis=1).max())
    chain += np.diag(1 - chain.sum(axis=1))
    values, vectors = np.linalg.eig(chain.T)
    b = np.log(np.abs(np.real(vectors[:, np.argmax(np.real(values))])))
    return b - b.mean()


_calibrated = {}


def calibrate(mechanism, items, cap, persons, epsilon):
    key = (mechanism, items, cap, persons, epsilon)
    if key not in _calibrated:
        public = Public(tuple(map(str, range(items))), cap, Neighbours.REPLACE_ONE, persons)
        calibration = mechanism.calibrate(public, Budget(epsilon, DELTA), SeededSource(0))
        _calibrated[key] = (public, calibration)
    return _calibrated[key]


def release_margins(right, seen, cap, epsilon, rng, mechanism=Margins()):  # noqa: B008
    persons, items = right.shape
    public, calibration = calibrate(mechanism, items, cap, persons, epsilon)
    grid = calibration.settings["grid"]
    weighted = weigh(right, seen, mechanism.weighting(public, calibration)) / grid
    total, both = weighted.sum(axis=1) - weighted.sum(axis=0), weighted + weighted.T
    sigmas = [np.sqrt(calibration.laws[n].variance) / grid for n in ("total", "disagreement")]
    upper = np.triu(sigmas[1] * rng.standard_normal((items, items)), 1)
    noise = MarginsNoise(*sigmas, calibration.settings["longest"], persons, cap)
    total = total + sigmas[0] * rng.standard_normal(items)
    return fit_margins(total, both + upper + upper.T, noise=noise)


def release_pairs(right, seen, cap, epsilon, rng):
    persons, items = right.shape
    _, calibration = calibrate(DensePairs(), items, cap, persons, epsilon)
    counts = weigh(right, seen, lambda answered, _: np.ones_like(answered))
    variance = calibration.laws["right_wrong"].variance
    noisy = counts + np.sqrt(variance) * rng.standard_normal(counts.shape)
    return fit_noisy_pairs(noisy, variance=variance, answers=cap, persons=persons)


def report(name, epsilon, target, errors, covered, slopes, zero, extra=""):
    mean = np.mean(errors)
    ratio = f"{mean / target:5.2f}" if target else "     "
    print(
        f"{name:14s} eps {epsilon:<6g} error {mean:7.4f} "
        f"+- {np.std(errors) / len(errors) ** 0.5:.4f}"
        f"  target {target or float('nan'):6.3f} ratio {ratio}  of zero {mean / zero:5.3f}"
        f"  coverage {np.mean(covered):.3f} slope {np.mean(slopes):.2f} {extra}",
        flush=True,
    )


def run_cell(name, draw, epsilons, runs, scale, pairs=False):
    """Draw data once per run, release at every epsilon; scale: 'rms' or 'norm'."""
    rows = {e: ([], [], [], []) for e in epsilons}
    zeros, plain = [], []
    for run in range(runs):
        rng = np.random.default_rng([run, 7])
        truth, right, seen, cap, reference = draw(rng)
        size = np.sqrt(len(truth)) if scale == "rms" else 1.0
        zeros.append(np.linalg.norm(truth) / size)
        plain.append(np.linalg.norm(reference - truth) / size)
        for epsilon in epsilons:
            fit = release_margins(right, seen, cap, epsilon, rng)
            error = fit.difficulty - truth
            errors, covered, slopes, others = rows[epsilon]
            errors.append(np.linalg.norm(error) / size)
            covered.append(np.mean(np.abs(error) < 1.96 * fit.se))
            slopes.append(fit.difficulty @ truth / (truth @ truth))
            if pairs:
                other = release_pairs(right, seen, cap, epsilon, rng)
                others.append(np.linalg.norm(other.difficulty - truth) / size)
    for epsilon, target in epsilons.items():
        errors, covered, slopes, others = rows[epsilon]
        extra = f"non-private {np.mean(plain):.4f} ({np.mean(errors) / np.mean(plain):.2f})"
        if others:
            extra += f" pairs {np.mean(others):.4f} ({np.mean(errors) / np.mean(others):.2f})"
        report(name, epsilon, target, errors, covered, slopes, np.mean(zeros), extra)


def inverse(answered, _):
    return 1 / np.maximum(answered, 1)


def draw_design(name, normal=False, spec=None):
    design, persons, items, answered, cap, _ = spec or DESIGNS[name]

    def draw(rng):
        truth, right, seen = simulate(design, persons, items, answered, cap, rng, normal)
        return truth, right, seen, cap, refine(weigh(right, seen, inverse))

    return draw


def draw_real(name):
    right = getattr(datasets, name)().to_array() == 1
    seen = np.ones_like(right)
    truth = spectral(weigh(right, seen, lambda answered, _: np.ones_like(answered)))
    return lambda _: (truth, right, seen, right.shape[1], refine(weigh(right, seen, inverse)))


def complete_films(path, rank=10, rounds=30):
    """Ratings of films with at least 25 ratings, completed by a low-rank matrix; 1 = below mean."""
    ratings = read_ratings(Path(path))
    ratings = np.where(ratings > 0, ratings, np.nan)[:, (ratings > 0).sum(axis=0) >= 25]
    ratings = ratings[~np.isnan(ratings).all(axis=1)]
    known = ~np.isnan(ratings)
    mean = np.nanmean(ratings)
    filled = np.where(known, ratings, mean)
    for _ in range(rounds):
        left, values, rest = np.linalg.svd(filled, full_matrices=False)
        low = (left[:, :rank] * values[:rank]) @ rest[:rank]
        filled = np.where(known, ratings, low)
    return low < low.mean(axis=1, keepdims=True)


def draw_films(low, items):
    def draw(rng):
        while True:
            right = low[:, rng.choice(low.shape[1], items, replace=False)]
            counts = weigh(right, np.ones_like(right), lambda a, _: np.ones_like(a))
            if (counts > 0).sum() == items * (items - 1):
                break
        seen = np.ones_like(right)
        return spectral(counts), right, seen, items, refine(weigh(right, seen, inverse))

    return draw


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--only", default="")
    parser.add_argument("--intervals", action="store_true", help="full bootstrap (slower)")
    parser.add_argument("--pairs", action="store_true", help="run `pairs` beside it")
    parser.add_argument("--films", help="your copy of MovieLens latest-small")
    parser.add_argument("--epsilon", default="", help="comma-separated, instead of the table's")
    options = parser.parse_args()
    if not options.intervals:  # the error does not depend on the bootstrap
        spread_module.FEWEST_DRAWS = spread_module.MOST_DRAWS = 1
    chosen = set(filter(None, options.only.split(",")))
    other = [float(e) for e in options.epsilon.split(",") if e]

    def go(name, draw, epsilons, runs, scale):
        if not chosen or name in chosen:
            table = {e: epsilons.get(e) for e in other} or epsilons
            run_cell(name, draw, table, runs, scale, options.pairs)

    for name, spec in DESIGNS.items():
        go(name, draw_design(name), spec[-1], options.runs, "rms")
    for (items, persons), targets in PANELS.items():
        spec = ("random", persons, items, 1.0, items, targets)
        go(f"panel-{items}-{persons}", draw_design("", True, spec), targets, options.runs, "norm")
    for name, targets in REAL.items():
        go(name, draw_real(name), targets, 5 * options.runs, "norm")
    if options.films:
        low = complete_films(options.films)
        for items, targets in FILMS.items():
            go(f"films-{items}", draw_films(low, items), targets, options.runs, "norm")


if __name__ == "__main__":
    main()
