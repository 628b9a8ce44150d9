"""Thresholds by `totals` against what a user would do instead, at the same guarantee.

Run ``python -m experiments.calibration.totals_alternatives [PART ...] [--seeds 40] [--out
results]`` with one BLAS thread. Parts:

- ``normal``: complete answers of standard normal abilities, as the alternatives assume (see
  `experiments/calibration/_alternatives.py`), at six epsilons.
- ``spread``: the same with abilities 1.5 times as wide, and with skewed ones, and the settings of
  ``normal``. `totals` learns the distribution; the alternatives have to believe theirs.
- ``verbal``: distance to the conditional estimate on 316 persons and 24 items of verbal
  aggression, which are not distributed (``--verbal FILE``). Settings are those that come nearest
  to it on this very table.
- ``draw``: the picture, from the numbers that ``normal`` left in ``--out``.
- ``tune``: chooses the alternatives' settings and keeps them in
`experiments.calibration.totals_alternatives.json`.

Settings are chosen for every design and every epsilon by the error on other data sets of the same
kind, which nobody with one confidential table can do, and which costs no budget here: it flatters
the alternatives. `totals` runs as it is. Without a part: all but ``tune``.

Errors are root mean squares over all thresholds and data sets, both with mean zero; +- is the
Monte Carlo's standard error. Ratios are over the same data sets.
"""

from __future__ import annotations

import argparse
import csv
import json
from dataclasses import astuple
from itertools import product
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import discreet
from discreet.models.noisy.released import fit_released_totals
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.mechanisms.totals import Totals
from discreet.privacy.noise import ExactNoise
from discreet.privacy.protocol import Public
from discreet.privacy.wall import release_statistics
from discreet.secure import SeededSource
from experiments.calibration._alternatives import Gradients, Responses, Shares
from experiments.calibration.rating_scales import draw_thresholds
from experiments.calibration.references import load_table
from experiments.results import COLOURS, plain_ticks, save_figure, style, write_csv

DELTA = 1e-4
EPSILONS = (0.3, 0.5, 1.0, 2.0, 3.0, 5.0)
DESIGNS = {
    "1000 x 10 x 2": (1000, 10, 2),
    "1000 x 20 x 3": (1000, 20, 3),
    "3000 x 20 x 4": (3000, 20, 4),
    "316 x 24 x 2": (316, 24, 2),
}
"""Persons, items, steps."""
SEED, TUNING_SEED = 1701, 1702
TUNED = Path(__file__).with_suffix(".json")
ABILITIES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "wide": lambda rng, n: 1.5 * rng.normal(size=n),
    "skewed": lambda rng, n: (rng.gamma(2, 1, n) - 2) / np.sqrt(2),
}
FLOORS, SHRINKS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8), (0.1, 0.25, 0.4, 0.6, 0.8, 0.9, 1.0)
CLIPS, ROUNDS = (0.1, 0.2, 0.3, 0.45), (1, 2, 3, 6, 12, 25, 50)
STRIDES, PRIORS = (0.4, 0.8, 1.6, 3.2, 6.4), (0, 10)
"""A stride is a rate times a clip: how far a round goes where every gradient is clipped."""
GRIDS = {
    "shares": [Shares(*setting) for setting in product(FLOORS, SHRINKS)],
    "gradients": [
        Gradients(clip, rounds, stride / clip, prior)
        for clip, rounds, stride, prior in product(CLIPS, ROUNDS, STRIDES, PRIORS)
    ],
    "responses": [Responses(*setting) for setting in product((1, 2, 5, 0), FLOORS, SHRINKS)],
}
LABELS = {
    "totals": "discreet: totals",
    "shares": "noise on category shares, textbook fit",
    "gradients": "clipped gradients, tuned",
    "responses": "randomized response, tuned",
    "conditional": "conditional estimate without privacy",
    "all zero": "answering zero for every threshold",
}
WAYS = ("totals", *GRIDS)


# -- data and errors -------------------------------------------------------------------------


def make_data(design, seed, abilities="normal"):
    """Return thresholds, answers and their scores of one simulated data set."""
    persons, items, steps = DESIGNS[design]
    rng = np.random.default_rng([*seed, list(DESIGNS).index(design)])
    truth = draw_thresholds(rng, items, steps)
    ability = ABILITIES[abilities](rng, persons)
    made = discreet.simulate(persons, items, thresholds=truth, ability=ability, rng=rng)
    return truth, made.responses, made.responses.to_array().astype(np.int64)


def square_error(found, truth):
    return float(np.mean((found - found.mean() - truth + truth.mean()) ** 2))


def release_thresholds(answers, steps, epsilon, seed):
    """Thresholds of one release, as ``discreet.release`` makes them, less the standard errors."""
    everybody = Neighbours.REPLACE_ONE
    public = Public(
        answers.items, len(answers.items), everybody, answers.n_persons,
        steps=(steps,) * len(answers.items), design="complete",
    )  # fmt: skip
    mechanism, source = Totals(), SeededSource(seed)
    calibration = mechanism.calibrate(public, Budget(epsilon, DELTA), source)
    released = release_statistics(
        answers,
        mechanism=mechanism,
        public=public,
        calibration=calibration,
        guarantee=calibration.spend.guarantee(ledger=None, is_private=False),
        noise=ExactNoise(source),
    )
    return fit_released_totals(released, standard_errors=False).thresholds


def run_way(way, settings, data, epsilon, seed):
    """Squared error of one way on one data set."""
    truth, answers, codes = data
    steps = truth.shape[1]
    if way == "totals":
        return square_error(release_thresholds(answers, steps, epsilon, seed), truth)
    rng = np.random.default_rng(seed)
    return square_error(settings(codes, steps, epsilon, DELTA, rng), truth)


def tune(way, epsilon, sets):
    """Return the settings of least error: all of them on a few data sets, the best on all."""
    left = GRIDS[way]
    for some, survivors in ((4, 10), (len(sets), 1)):
        errors = [
            np.mean([run_way(way, s, data, epsilon, k) for k, data in enumerate(sets[:some])])
            for s in left
        ]
        left = [left[k] for k in np.argsort(errors)[:survivors]]
    return left[0]


def tune_all(options):
    kept = json.loads(TUNED.read_text()) if TUNED.exists() else {}
    for design in DESIGNS:
        sets = [make_data(design, (TUNING_SEED, k)) for k in range(options.tuning)]
        for epsilon in (*EPSILONS, 10.0):
            best = {way: tune(way, epsilon, sets) for way in options.ways.split(",")}
            print(f"{design}, epsilon {epsilon:g}: {best}", flush=True)
            cell = kept.setdefault(f"{design}, {epsilon:g}", {})
            cell.update({way: astuple(found) for way, found in best.items()})
            TUNED.write_text(json.dumps(kept, indent=1) + "\n")


def read_settings(design, epsilon):
    """Return the settings that ``tune`` chose, by way."""
    kept = json.loads(TUNED.read_text())[f"{design}, {epsilon:g}"]
    return {"totals": None, **{way: type(GRIDS[way][0])(*found) for way, found in kept.items()}}


def root(squares):
    """Root mean square, and its Monte Carlo error."""
    value = float(np.sqrt(np.mean(squares)))
    return value, float(np.std(squares, ddof=1) / np.sqrt(len(squares)) / (2 * value))


def compare(squares, others):
    """Ratio of two roots over the same data sets, and its Monte Carlo error."""
    ratio = float(np.sqrt(np.mean(squares) / np.mean(others)))
    pull = np.asarray(squares) / np.mean(squares) - np.asarray(others) / np.mean(others)
    return ratio, float(ratio * pull.std(ddof=1) / np.sqrt(len(pull)) / 2)


# -- simulated answers -----------------------------------------------------------------------


def measure_normal(options):
    rows = []
    for design in DESIGNS:
        print(f"{design}, standard normal abilities, {options.seeds} data sets", flush=True)
        sets = [make_data(design, (SEED, k)) for k in range(options.seeds)]
        rows += measure_references(design, sets)
        for epsilon in EPSILONS:
            tuned = read_settings(design, epsilon)
            rows += measure_cell(design, "normal", epsilon, sets, tuned)
        write_csv(options.out / "totals_alternatives.csv", rows)


def measure_references(design, sets):
    """Return what is known without privacy, and what without any data."""
    found = {"conditional": [], "all zero": []}
    for truth, answers, _ in sets:
        fitted = discreet.fit(answers, method="conditional", standard_errors=False)
        found["conditional"].append(square_error(fitted.thresholds, truth))
        found["all zero"].append(square_error(np.zeros_like(truth), truth))
    return [make_row(design, "normal", way, 0.0, squares, None) for way, squares in found.items()]


def measure_cell(design, abilities, epsilon, sets, tuned):
    """Run every way at one epsilon and print its error and its ratio to `totals`."""
    squares = {
        way: [run_way(way, tuned[way], data, epsilon, 100 + k) for k, data in enumerate(sets)]
        for way in WAYS
    }
    rows = [
        make_row(design, abilities, way, epsilon, squares[way], squares["totals"], tuned[way])
        for way in WAYS
    ]
    for row in rows:
        words = f"{row['error']:.3f} +- {row['error_mc']:.3f}  over totals {row['ratio']:.2f}"
        print(f"  epsilon {epsilon:g} {row['way']:10} {words} +- {row['ratio_mc']:.2f}"
              f"  {row['settings']}", flush=True)  # fmt: skip
    return rows


def make_row(design, abilities, way, epsilon, squares, totals, settings=None):
    error, error_mc = root(squares)
    ratio, ratio_mc = compare(squares, totals) if totals else (float("nan"), float("nan"))
    return {
        "design": design,
        "abilities": abilities,
        "way": way,
        "epsilon": epsilon,
        "seeds": len(squares),
        "error": error,
        "error_mc": error_mc,
        "ratio": ratio,
        "ratio_mc": ratio_mc,
        "settings": "" if settings is None else repr(settings),
    }


def measure_spread(options):
    design, rows = "1000 x 20 x 3", []
    for abilities in ("wide", "skewed"):
        print(f"{design}, {abilities} abilities, {options.seeds} data sets", flush=True)
        sets = [make_data(design, (SEED, k), abilities) for k in range(options.seeds)]
        for epsilon in (0.5, 1.0, 3.0):
            tuned = read_settings(design, epsilon)
            rows += measure_cell(design, abilities, epsilon, sets, tuned)
    write_csv(options.out / "totals_alternatives_spread.csv", rows)


# -- verbal aggression -----------------------------------------------------------------------


def measure_verbal(options):
    if options.verbal is None:
        print("verbal: left out, --verbal FILE names no table (it may not be distributed)")
        return
    answers = load_table(options.verbal.parent, options.verbal.stem)
    codes = answers.to_array().astype(np.int64)
    reference = discreet.fit(answers, method="conditional").thresholds
    data = (reference, answers, codes)
    print(f"verbal aggression: {codes.shape[0]} persons, {codes.shape[1]} items, "
          f"{reference.shape[1]} steps; distance to the conditional estimate")  # fmt: skip
    print(f"  all zero: {np.sqrt(square_error(np.zeros_like(reference), reference)):.3f}")
    for epsilon in (1.0, 3.0, 10.0):
        tuned = {way: tune(way, epsilon, [data] * options.tuning) for way in GRIDS}
        tuned["totals"] = None
        measure_cell("verbal", "real", epsilon, [data] * options.seeds, tuned)


# -- the picture -----------------------------------------------------------------------------

BLUE, RED, GREEN, _, YELLOW, _ = COLOURS
LOOKS = {
    "totals": {"color": RED, "marker": "s", "linewidth": 2.4},
    "shares": {"color": BLUE, "marker": "o"},
    "gradients": {"color": GREEN, "marker": "^"},
    "responses": {"color": YELLOW, "marker": "v"},
}


def draw(options):
    with (options.out / "totals_alternatives.csv").open() as file:
        rows = list(csv.DictReader(file))
    figure = Figure(figsize=(12.4, 9), layout="constrained")
    grid = figure.subplots(2, 2).ravel()
    for axes, design in zip(grid, DESIGNS, strict=True):
        draw_design(axes, design, [row for row in rows if row["design"] == design])
    handles, labels = grid[0].get_legend_handles_labels()
    figure.suptitle("Thresholds of rating scales at the same guarantee", x=0.01, ha="left")
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    save_figure(figure, options.out / "totals_alternatives.png")


def draw_design(axes, design, rows):
    for way, look in LOOKS.items():
        line = [row for row in rows if row["way"] == way]
        x, y, rough = (
            np.array([float(row[k]) for row in line]) for k in ("epsilon", "error", "error_mc")
        )
        axes.plot(x, y, label=LABELS[way], **{"linewidth": 1.5, "markersize": 5, **look})
        axes.fill_between(x, y - 2 * rough, y + 2 * rough, color=look["color"], alpha=0.15, lw=0)
    for way, dash in (("conditional", "-."), ("all zero", ":")):
        level = float(next(row for row in rows if row["way"] == way)["error"])
        axes.axhline(
            level, ls=dash, color="black" if way == "all zero" else "0.45", label=LABELS[way]
        )
    axes.set(xscale="log", yscale="log")
    plain_ticks(axes.xaxis, EPSILONS)
    plain_ticks(axes.yaxis, [0.05, 0.1, 0.2, 0.5, 1, 2])
    axes.set_ylim(0.05, 2.5)
    persons, items, steps = DESIGNS[design]
    title = f"{persons:,} persons, {items} items, {steps} steps  ({rows[0]['seeds']} data sets)"
    style(axes, title, "epsilon (smaller = more private)", "root mean square error (logits)")


PARTS = {
    "normal": measure_normal,
    "spread": measure_spread,
    "verbal": measure_verbal,
    "draw": draw,
    "tune": tune_all,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="*", choices=[[], *PARTS], default=[])
    parser.add_argument("--seeds", type=int, default=40, help="data sets; noises for verbal")
    parser.add_argument("--ways", default=",".join(GRIDS), help="which are tuned")
    parser.add_argument("--tuning", type=int, default=16, help="data sets for choosing settings")
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--verbal", type=Path, help="psychotools' VerbalAggression as a table")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for part in options.part or [name for name in PARTS if name != "tune"]:
        PARTS[part](options)


if __name__ == "__main__":
    main()
