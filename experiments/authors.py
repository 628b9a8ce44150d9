"""Our copies of the published curves beside the output of the authors' own scripts.

``authors.csv`` holds the mean errors that the authors' scripts printed when we ran them; the README
says which commit, with which commands. Here the same curves come from `published`, on the same
difficulties (the scripts draw them once, with seed 119) and the same real data. Films are not run
here: the answers that the authors' script makes of the ratings begin with random factors.

    python -m experiments authors [--quick] [--trials N] [--workers W]
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments import education, synthetic
from experiments.curves import Scene
from experiments.panels import Panel, run_panels, summarise
from experiments.results import print_table, read_options, write_csv

NAME = "authors"
REFERENCE = Path(__file__).with_name("authors.csv")
SEED = 119
"""The default seed of the authors' scripts."""

CURVES = (
    "non-private",
    "published Gauss",
    "published sparse",
    "published Laplace",
    "published response",
)
DATASETS = {"lsat": "lsat", "grades_three": "three_grades", "uci_student": "uci_student"}
"""Our names of their data sets."""


@dataclass(frozen=True)
class FixedItems:
    """The difficulties of the authors' script, the same in every trial; abilities from N(0, 1)."""

    items: int
    persons: int

    def __call__(self, rng: np.random.Generator) -> Scene:
        difficulty = np.random.RandomState(SEED).normal(size=self.items)
        difficulty -= difficulty.mean()
        ability = rng.normal(size=(self.persons, 1))
        chance = 1 / (1 + np.exp(difficulty - ability))
        return Scene((rng.random(chance.shape) < chance).astype(np.int8), difficulty)


def read_reference() -> dict[tuple[str, float, str], dict[str, str]]:
    """Return the authors' rows by panel, epsilon and curve."""
    with REFERENCE.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {(name_panel(row), float(row["epsilon"]), row["curve"]): row for row in rows}


def name_panel(row: dict[str, str]) -> str:
    """Return our name of the panel that a row of theirs belongs to."""
    words = row["arguments"].split()
    if "--dataset" not in words:
        return f"m={row['items']}, n={row['persons']}"
    name = words[words.index("--dataset") + 1]
    return DATASETS.get(name, f"films, m={row['items']}")


def make_panels() -> list[Panel]:
    """Return one panel for each that the authors' scripts were run on."""
    known = read_reference()
    panels = [
        Panel(f"m={m}, n={n}", f"{m} items, {n} persons", FixedItems(m, n), synthetic.SETTING,
              CURVES)
        for m, n in synthetic.SHAPES
    ]  # fmt: skip
    panels += education.make_panels()
    return [
        Panel(panel.name, panel.title, panel.make, panel.setting, curves, epsilons)
        for panel in panels
        if (epsilons := tuple(sorted({e for name, e, _ in known if name == panel.name})))
        and (curves := tuple(c for c in panel.curves if (panel.name, epsilons[0], c) in known))
    ]


def compare(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put the authors' error beside ours, and how many standard errors they are apart."""
    known, lines = read_reference(), []
    for row in rows:
        theirs = known.get((row["panel"], row["epsilon"], row["curve"]))
        if theirs is None:
            continue
        error = float(theirs["centred_error"])
        spread = math.hypot(row["standard_error"], float(theirs["standard_error"]))
        lines.append({
            "panel": row["panel"],
            "epsilon": row["epsilon"],
            "curve": row["curve"],
            "ours": row["error"],
            "authors": error,
            "ratio": row["error"] / error if error else math.nan,
            "apart": (row["error"] - error) / spread if spread else math.nan,
            "trials": f"{row['trials']} and {theirs['trials']}",
        })  # fmt: skip
    return lines


def main() -> None:
    options = read_options(__doc__ or "", trials=100, quick_trials=4)
    panels = make_panels()
    lines = compare(summarise(run_panels(NAME, panels, options), panels))
    print_table("Our copies and the authors' scripts", lines, {name: name for name in lines[0]})
    write_csv(options.out / f"{NAME}.csv", lines)


if __name__ == "__main__":
    main()
