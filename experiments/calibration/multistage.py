"""Multistage tests: error and coverage of difficulties, sizes of tests, with and without the paths.

::

    python -m experiments.calibration.multistage

That is 300 sets of every design, each fitted by three methods, and takes 10 minutes; ``--design``
takes one of them. Difficulties are drawn from N(0, 1), less or more 0.8 in easy and hard modules,
and are the same in all sets of a design. 1,000 persons come from two groups, 700 from N(-0.7,
0.5^2) and 300 from N(1.6, 0.7^2), so that abilities are not normal. ``spread`` is the slope of
estimates on true difficulties, ``error`` the root mean square error of an item, and ``coverage``
the share of 95% intervals that hold the truth. ``andersen`` and ``random`` are the shares of sets
in which Andersen's test rejects at 5%: persons split by score, and by lot. ``findings`` is the
share with any item, pair or persons beyond the simulated limits of a report, and ``items`` with any
item; ``items_due`` is what the limits leave to items (given paths only). Rows go to the end of
``multistage.csv`` beside this file.

``--power`` counts instead, with one item of the first module that has a slope of .5 or 2, in how
many sets that item is named (``named``), another is (``others``), and Andersen's test rejects. All
of it is given the paths; rows go to ``multistage_power.csv``.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import discreet
from discreet import analysis
from discreet.errors import BadUsage, DiscreetWarning
from discreet.items.given_totals import judge_outfit

FILE = Path(__file__).with_suffix(".csv")
POWER = FILE.with_name("multistage_power.csv")
PERSONS, SEED, REPLICATIONS = 1000, 4000, 99
Rules = dict[str, list[tuple[str, int, int]]]
#: By name: items of each module, steps, paths, and whether scores are those so far.
DESIGNS: dict[str, tuple[dict[str, int], int, Rules, bool]] = {
    "8 then 8 items, score of the module": (
        {"first": 8, "easy": 8, "hard": 8},
        1,
        {"low": [("first", 0, 3), ("easy", 0, 8)], "high": [("first", 4, 8), ("hard", 0, 8)]},
        False,
    ),
    "5, 5 and 5 items, score so far": (
        {"first": 5, "easy": 5, "hard": 5, "last easy": 5, "last hard": 5},
        1,
        {
            "low low": [("first", 0, 2), ("easy", 0, 4), ("last easy", 0, 15)],
            "low high": [("first", 0, 2), ("easy", 5, 10), ("last hard", 0, 15)],
            "high low": [("first", 3, 5), ("hard", 0, 5), ("last easy", 0, 15)],
            "high high": [("first", 3, 5), ("hard", 6, 10), ("last hard", 0, 15)],
        },
        True,
    ),
    "4 then 5 items of 2 steps, score of the module": (
        {"first": 4, "easy": 5, "hard": 5},
        2,
        {"low": [("first", 0, 3), ("easy", 0, 10)], "high": [("first", 4, 8), ("hard", 0, 10)]},
        False,
    ),
}
METHODS = "given paths", "ignoring paths", "marginal"


def state_design(name: str) -> tuple[discreet.RoutingDesign, np.ndarray]:
    """Return modules and rules, and the thresholds ``[item, step]``, the same for all sets."""
    sizes, steps, paths, cumulated = DESIGNS[name]
    modules = {module: [f"{module} {i + 1}" for i in range(n)] for module, n in sizes.items()}
    rng = np.random.default_rng(SEED - 1)
    shift = [0.8 * (("hard" in module) - ("easy" in module)) for module in sizes]
    location = rng.normal(size=sum(sizes.values())) + np.repeat(shift, list(sizes.values()))
    threshold = location[:, None] + np.linspace(-0.6, 0.6, steps) * (steps > 1)
    return discreet.RoutingDesign(modules, paths, cumulated), threshold


def draw_answers(
    design: discreet.RoutingDesign, threshold: np.ndarray, seed: int, slope: float = 1.0
) -> Any:
    """Let everybody answer everything, and take away what was not on the path.

    The slope is that of the second item.
    """
    rng = np.random.default_rng(SEED + seed)
    few = int(0.3 * PERSONS)
    ability = np.append(rng.normal(-0.7, 0.5, PERSONS - few), rng.normal(1.6, 0.7, few))
    points = np.cumsum(ability[:, None, None] - threshold, axis=2)
    points[:, 1] *= slope
    points = np.pad(points, ((0, 0), (0, 0), (1, 0)))
    cells = (points + rng.gumbel(size=points.shape)).argmax(axis=2).astype(float)
    names = [item for module in design.modules.values() for item in module]
    column = {item: number for number, item in enumerate(names)}
    seen = np.zeros(cells.shape, dtype=bool)
    for path, stages in design.paths.items():
        own = [[column[item] for item in design.modules[module]] for module, *_ in stages]
        score = np.stack([cells[:, columns].sum(axis=1) for columns in own], axis=1)
        seen |= np.outer(
            design.allow(path, score), np.isin(np.arange(len(names)), np.concatenate(own))
        )
    return discreet.Responses.from_array(np.where(seen, cells, np.nan), items=names)


def look(answers: Any, method: str, seed: int) -> dict[str, Any]:
    """Return difficulties with their errors, and which tests reject."""
    name = "marginal" if method == "marginal" else "conditional"
    fitted = discreet.fit(answers, method=name)
    out = {"value": fitted.difficulty, "se": fitted.se}
    if method == "marginal":
        return out
    lot = np.random.default_rng([SEED, seed]).permutation(answers.n_persons) % 2
    for test, groups in (("andersen", "mean score"), ("random", lot.tolist())):
        try:
            out[test] = analysis.run_andersen(answers, groups).p_value < 0.05
        except BadUsage:
            out[test] = np.nan
    if method != "given paths":
        return out
    cutoffs = analysis.simulate_cutoffs(
        answers, fitted, replications=REPLICATIONS, rng=np.random.default_rng([SEED, seed, 1])
    )
    fit = analysis.measure_fit(answers, fitted).items
    outfit = judge_outfit(fit.conditional_outfit, fit.outfit_without_one)
    beyond = [
        (value < band[:, 0]) | (value > band[:, 1])
        for value, band in ((fit.conditional_infit, cutoffs.infit), (outfit, cutoffs.outfit))
    ]
    q3 = analysis.correlate_residuals(answers, fitted).q3
    with np.errstate(invalid="ignore"):
        pairs = np.triu(q3 > cutoffs.q3, 1).any()
    out["items"] = bool(np.any(beyond))
    named = np.any(beyond, axis=0)
    out["named"], out["others"] = bool(named[1]), bool(np.delete(named, 1).any())
    out["findings"] = bool(np.any(beyond) or pairs or cutoffs.persons.is_beyond)
    out["items_due"] = cutoffs.split["items"]
    return out


def study(name: str, method: str, seed: int) -> dict[str, Any]:
    """Draw a set of answers and look at it."""
    design, threshold = state_design(name)
    answers = draw_answers(design, threshold, seed)
    return look(answers.route(design) if method == "given paths" else answers, method, seed)


def measure_power(name: str, slope: float, sets: range) -> dict[str, Any]:
    """Return how often an item of another slope is named, and Andersen's test rejects."""
    design, threshold = state_design(name)
    found = [
        look(draw_answers(design, threshold, seed, slope).route(design), "given paths", seed)
        for seed in sets
    ]
    shares = {part: np.nanmean([one[part] for one in found]) for part in
              ("named", "others", "andersen")}  # fmt: skip
    return {"design": name, "slope": slope, "sets": len(found), **shares}


def sum_up(name: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return errors, coverage and sizes over sets."""
    threshold = state_design(name)[1]
    truth = threshold.mean(axis=1) - threshold.mean()
    value, se = (np.array([one[part] for one in found]) for part in ("value", "se"))
    error = value - truth
    slope = 1 + error @ truth / (truth @ truth)
    numbers = {
        "sets": len(found),
        "spread": float(np.mean(slope)),
        "spread_mc": float(np.std(slope) / np.sqrt(len(found))),
        "bias": float(np.abs(error.mean(axis=0)).max()),
        "error": float(np.sqrt(np.mean(error**2))),
        "ratio": float(np.mean(se.mean(axis=0) / error.std(axis=0))),
        "coverage": float(np.mean(np.abs(error) < 1.959964 * se)),
    }
    for test in ("andersen", "random", "items", "items_due", "findings"):
        numbers[test] = float(np.nanmean([one.get(test, np.nan) for one in found]))
    return numbers


def list_rows(designs: list[str], sets: range) -> Iterator[dict[str, Any]]:
    """Yield a row for each design and method."""
    for name in designs:
        for method in METHODS:
            found = [study(name, method, seed) for seed in sets]
            yield {"design": name, "method": method, **sum_up(name, found)}


def write_row(file: Path, row: dict[str, Any]) -> None:
    """Print a row, and put it at the end of a file."""
    row = {k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}
    print(row, flush=True)
    is_new = not file.exists()
    with file.open("a", newline="") as out:
        writer = csv.DictWriter(out, list(row), lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=300)
    parser.add_argument("--design", type=int, choices=range(len(DESIGNS)), default=None)
    parser.add_argument("--power", action="store_true", help="count where an item has a slope")
    options = parser.parse_args()
    warnings.simplefilter("ignore", DiscreetWarning)
    warnings.simplefilter("ignore", RuntimeWarning)
    designs = list(DESIGNS)
    chosen = designs if options.design is None else [designs[options.design]]
    sets = range(options.sets)
    if options.power:
        for name in chosen:
            for slope in (0.5, 2.0):
                write_row(POWER, measure_power(name, slope, sets))
        return
    for row in list_rows(chosen, sets):
        write_row(FILE, row)


if __name__ == "__main__":
    main()
