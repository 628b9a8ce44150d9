"""`margins`, `pairs` or `totals` for right and wrong answers: what `auto` should choose.

Run ``python -m experiments.calibration.choosing [--runs 20] [--only tenth,booklets]`` with one BLAS
thread. Every mechanism has its default settings and releases the same answers through the wall at
the same budget (delta 1e-4; ``--neighbours``, by default replace-one); `totals` is told of a design
and of forms where these are public. Prints the root mean square error of the difficulties, with its
Monte Carlo error, and the ratio of `totals` to each of the others over the same answers; with
``--intervals`` also how many 95% intervals have the truth.
"""

from __future__ import annotations

import argparse

import numpy as np

import discreet
from discreet.models.noisy.released import FITS
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.mechanisms.margins import Margins
from discreet.privacy.mechanisms.pairs import DensePairs
from discreet.privacy.mechanisms.totals import Totals
from discreet.privacy.noise import ExactNoise
from discreet.privacy.protocol import Public
from discreet.privacy.wall import release_statistics
from discreet.secure import SeededSource
from experiments.calibration.totals_alternatives import DELTA, compare, root

EPSILONS = (0.3, 1.0, 3.0)
DESIGNS = {
    "complete, 1000 x 10": ("random", 1000, 10, 1.0, 10),
    "complete, 3000 x 20": ("random", 3000, 20, 1.0, 20),
    "complete, 1000 x 50": ("random", 1000, 50, 1.0, 50),
    "complete, 1000 x 100": ("random", 1000, 100, 1.0, 100),
    "skewed, 1000 x 50": ("skewed", 1000, 50, 1.0, 50),
    "third, 5000 x 100": ("random", 5000, 100, 0.3, 40),
    "tenth, 5000 x 100": ("random", 5000, 100, 0.1, 18),
    "most, 1000 x 20": ("random", 1000, 20, 0.8, 20),
    "fifth, 2000 x 60": ("random", 2000, 60, 0.2, 18),
    "quarter, 1000 x 40": ("random", 1000, 40, 0.25, 16),
    "booklets, 3000 x 70": ("booklets", 3000, 70, 0.0, 20),
    "levels, 3000 x 70": ("levels", 3000, 70, 0.0, 20),
    "targeted, 5000 x 100": ("targeted", 5000, 100, 0.0, 40),
}
"""Kind, persons, items, share answered, cap. Levels are booklets that are
not given out at random: from one to the next, abilities are half a logit higher."""


def simulate(design, persons, items, answered, cap, rng):
    """Draw difficulties and answers, and which of them count after the cap."""
    difficulty = rng.uniform(-2, 2, items)
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


def list_ways(name):
    """Return which mechanism is told what of the design."""
    ways = {"margins": (Margins(), "unknown"), "pairs": (DensePairs(), "unknown")}
    if name.startswith(("complete", "skewed")):
        return {**ways, "totals": (Totals(), "complete")}
    ways["totals, unknown"] = (Totals(), "unknown")
    if name.startswith(("booklets", "levels")):
        ways["totals, forms"] = (Totals(), "complete")
    if not name.startswith(("targeted", "levels")):
        ways["totals"] = (Totals(), "random")
    return ways


def make_answers(name, seed):
    """Return difficulties, answers, and the forms if there are any."""
    kind, persons, items, answered, cap = DESIGNS[name]
    rng = np.random.default_rng([seed, list(DESIGNS).index(name)])
    draw = draw_levels if kind == "levels" else simulate
    truth, right, seen = draw(kind, persons, items, answered, cap, rng)
    answers = discreet.Responses.from_array(np.where(seen, right, -1).astype(np.int8))
    return truth, answers, () if answered else find_forms(answers.items, seen, cap)


def draw_levels(_kind, persons, items, _answered, _cap, rng):
    """Give booklets of two neighbouring blocks out by ability."""
    truth = rng.uniform(-2, 2, items)
    truth -= truth.mean()
    block, form = rng.permutation(items) % 7, rng.integers(7, size=persons)
    ability = rng.normal(size=persons) + 0.5 * (form - 3)
    right = rng.random((persons, items)) < 1 / (1 + np.exp(truth - ability[:, None]))
    return truth, right, (block == form[:, None]) | (block == (form[:, None] + 1) % 7)


def find_forms(items, seen, cap):
    """Return the sets of items that were given out together, if the simulation made such."""
    kinds = np.unique(seen, axis=0) if (seen.sum(axis=1) == cap).all() else []
    return tuple(tuple(np.array(items)[row].tolist()) for row in kinds)


def release(answers, mechanism, public, epsilon, seed, intervals):
    """Fit of one release, as ``discreet.release`` makes it."""
    source = SeededSource(seed)
    calibration = mechanism.calibrate(public, Budget(epsilon, DELTA), source)
    released = release_statistics(
        answers,
        mechanism=mechanism,
        public=public,
        calibration=calibration,
        guarantee=calibration.spend.guarantee(ledger=None, is_private=False),
        noise=ExactNoise(source),
    )
    return FITS[mechanism.name](released, standard_errors=intervals)


def run(name, way, data, epsilon, seed, options):
    """Squared error of one mechanism on one data set, and the share of intervals that hold."""
    truth, answers, forms = data
    mechanism, design = list_ways(name)[way]
    neighbours = Neighbours(options.neighbours)
    public = Public(
        answers.items,
        DESIGNS[name][-1],
        neighbours,
        answers.n_persons if neighbours is Neighbours.REPLACE_ONE else None,
        design=design,
        forms=forms if way == "totals, forms" else (),
    )
    fit = release(answers, mechanism, public, epsilon, seed, options.intervals)
    away = fit.difficulty - np.mean(fit.difficulty) - truth + truth.mean()
    return np.mean(away**2), np.mean(np.abs(away) <= 1.959964 * fit.se)


def measure(name, options):
    print(f"{name}, {options.runs} data sets", flush=True)
    sets = [make_answers(name, 1900 + k) for k in range(options.runs)]
    for epsilon in EPSILONS:
        found = {
            way: np.transpose([run(name, way, d, epsilon, k, options) for k, d in enumerate(sets)])
            for way in list_ways(name)
        }
        for way, (squares, held) in found.items():
            over = [
                f"{other} {show(*compare(squares, found[other][0]))}"
                for other in ("margins", "pairs")
            ]
            words = "; ".join(over) if way.startswith("totals") else ""
            words += f"  held {held.mean():.3f}" if options.intervals else ""
            print(f"  epsilon {epsilon:g} {way:16} {show(*root(squares))}  {words}", flush=True)


def show(value, rough):
    return f"{value:.3f} +- {rough:.3f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--intervals", action="store_true")
    kinds = [kind.value for kind in Neighbours]
    parser.add_argument("--neighbours", choices=kinds, default=kinds[0])
    parser.add_argument("--only", default="", help="starts of designs, with commas")
    options = parser.parse_args()
    chosen = tuple(options.only.split(","))
    for name in DESIGNS:
        if name.startswith(chosen):
            measure(name, options)


if __name__ == "__main__":
    main()
