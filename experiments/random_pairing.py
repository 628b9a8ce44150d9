"""Random pairing (Yang and Ma 2024, arXiv 2406.13989) beside the spectral and refined estimates.

RP-MLE splits each person's answers into random pairs; a pair whose two answers differ is one
comparison of two items, and all comparisons are independent. Their Bradley-Terry likelihood gives
difficulties and, by its curvature, standard errors. MRP-MLE averages over many random splits; here
its standard errors are sandwich estimates over persons.

    python -m experiments random_pairing [--quick] [--trials N]

This is here for the comparison and not part of the library. It does not help privacy on complete
answers: one person moves 2 floor(m / 2) comparisons instead of 2 floor(m^2 / 4) pair counts, so
sigma falls from m / sqrt(2) to sqrt(m) units, but every count falls by m - 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from discreet.answers.responses import Responses
from discreet.api.calibrating import fit
from discreet.models.connectivity import is_strongly_connected
from discreet.models.refined import solve_refined
from experiments.results import (
    COLOURS,
    MARKERS,
    plain_ticks,
    print_table,
    read_options,
    save_figure,
    style,
    write_csv,
)

NAME = "random_pairing"
ITEMS = 30
PERSONS = (500, 1000, 2000, 4000, 8000)
ANSWERED = (1.0, 0.5, 0.2)
SPLITS = 20
METHODS = ("spectral", "refined", "RP-MLE", "MRP-MLE")
QUANTILE = 1.959964
TICKS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)

FloatArray = npt.NDArray[np.float64]
Answers = npt.NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class RandomPairs:
    """Random pairs with two different answers: the person, the item right, the item wrong."""

    person: npt.NDArray[np.int64]
    right: npt.NDArray[np.int64]
    wrong: npt.NDArray[np.int64]

    def count(self, items: int) -> FloatArray:
        """``[i, j]``: comparisons with i right and j wrong."""
        cells = np.bincount(self.right * items + self.wrong, minlength=items**2)
        return cells.reshape(items, items).astype(np.float64)


def pair_answers(answers: Answers, rng: np.random.Generator) -> RandomPairs:
    """Split every person's answers into random pairs; of an odd number one is left over."""
    given = answers >= 0
    order = np.argsort(np.where(given, rng.random(answers.shape), 2.0), axis=1)
    pairs = answers.shape[1] // 2
    first, second = order[:, 0 : 2 * pairs : 2], order[:, 1 : 2 * pairs : 2]
    whole = np.arange(1, 2 * pairs, 2) < given.sum(axis=1)[:, None]
    one, other = (np.take_along_axis(answers, side, axis=1) for side in (first, second))
    person, place = np.nonzero(whole & (one != other))
    first, second = first[person, place], second[person, place]
    is_first = one[person, place] == 1
    return RandomPairs(person, np.where(is_first, first, second), np.where(is_first, second, first))


def estimate_once(drawn: RandomPairs, items: int) -> tuple[FloatArray, FloatArray]:
    """RP-MLE and its standard errors from the curvature of the likelihood."""
    counts = drawn.count(items)
    difficulty, _ = solve_refined(counts)
    return difficulty, np.sqrt(np.diag(np.linalg.pinv(curve(counts, difficulty))))


def curve(counts: FloatArray, difficulty: FloatArray) -> FloatArray:
    """Curvature of the likelihood of comparisons, a weighted graph Laplacian."""
    chance = 1 / (1 + np.exp(difficulty[:, None] - difficulty))
    weight = (counts + counts.T) * chance * (1 - chance)
    return np.asarray(np.diag(weight.sum(axis=1)) - weight)


def score_persons(drawn: RandomPairs, difficulty: FloatArray, persons: int) -> FloatArray:
    """Return each person's part of the derivative of the likelihood."""
    surprise = 1 - 1 / (1 + np.exp(difficulty[drawn.right] - difficulty[drawn.wrong]))
    score = np.zeros((persons, len(difficulty)))
    np.add.at(score, (drawn.person, drawn.right), -surprise)
    np.add.at(score, (drawn.person, drawn.wrong), surprise)
    return score


def estimate_many(
    answers: Answers, rng: np.random.Generator, splits: int = SPLITS
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """RP-MLE of the first split, and MRP-MLE of all of them; nothing where one is not connected."""
    items = answers.shape[1]
    drawn = [pair_answers(answers, rng) for _ in range(splits)]
    if not all(is_strongly_connected(one.count(items)) for one in drawn):
        return {}
    single = [estimate_once(one, items) for one in drawn]
    mean = np.mean([difficulty for difficulty, _ in single], axis=0)
    slope = np.mean([curve(one.count(items), mean) for one in drawn], axis=0)
    score = np.mean([score_persons(one, mean, len(answers)) for one in drawn], axis=0)
    inverse = np.linalg.pinv(slope)
    spread = np.sqrt(np.diag(inverse @ (score.T @ score) @ inverse))
    return {"RP-MLE": single[0], "MRP-MLE": (mean, spread)}


def run_trial(persons: int, answered: float, seed: Sequence[int]) -> list[dict[str, Any]]:
    """Return error, width of intervals and coverage of every method on one data set."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal(ITEMS)
    truth -= truth.mean()
    chance = 1 / (1 + np.exp(truth - rng.standard_normal((persons, 1))))
    answers = (rng.random(chance.shape) < chance).astype(np.int8)
    answers[rng.random(chance.shape) >= answered] = -1
    found = estimate_many(answers, rng)
    for method in ("spectral", "refined"):
        estimate = fit(Responses.from_array(answers), method=method)  # type: ignore[arg-type]
        found[method] = (np.array(estimate.difficulty), np.array(estimate.se))
    rows = []
    for method, (difficulty, se) in found.items():
        error = difficulty - truth
        rows.append({
            "answered": answered,
            "persons": persons,
            "method": method,
            "square": float(np.mean(error**2)),
            "width": float(np.mean(2 * QUANTILE * se)),
            "inside": float(np.mean(np.abs(error) <= QUANTILE * se)),
        })  # fmt: skip
    return rows


def summarise(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line for each design and method."""
    lines = []
    for key in dict.fromkeys((r["answered"], r["persons"]) for r in rows):
        for method in METHODS:
            here = [r for r in rows if (r["answered"], r["persons"]) == key]
            here = [r for r in here if r["method"] == method]
            if here:
                lines.append({
                    "answered": key[0],
                    "persons": key[1],
                    "method": method,
                    "error": float(np.sqrt(np.mean([r["square"] for r in here]))),
                    "width": float(np.mean([r["width"] for r in here])),
                    "coverage": float(np.mean([r["inside"] for r in here])),
                    "trials": len(here),
                })  # fmt: skip
    return lines


def draw(rows: Sequence[dict[str, Any]]) -> Figure:
    """Error and width of intervals against the number of persons, for each share of answers."""
    shares = sorted({row["answered"] for row in rows}, reverse=True)
    figure = Figure(figsize=(4.2 * len(shares), 6.6), layout="constrained")
    grid = figure.subplots(2, len(shares), squeeze=False, sharey="row")
    words = {"error": "root mean square error (logits)", "width": "width of a 95% interval"}
    for axes_row, (field, label) in zip(grid, words.items(), strict=True):
        low, high = (find(row[field] for row in rows) for find in (min, max))
        ticks = [tick for tick in TICKS if low / 1.2 < tick < 1.2 * high]
        for axes, share in zip(axes_row, shares, strict=True):
            here = [row for row in rows if row["answered"] == share]
            for method, colour, marker in zip(METHODS, COLOURS, MARKERS, strict=False):
                line = [row for row in here if row["method"] == method]
                x, y = [row["persons"] for row in line], [row[field] for row in line]
                axes.loglog(x, y, color=colour, marker=marker, markersize=5, label=method)
            plain_ticks(axes.xaxis, sorted({row["persons"] for row in here}))
            plain_ticks(axes.yaxis, ticks)
            style(axes, f"{share:.0%} of the items answered", "persons", label)
    grid[0][0].legend(fontsize=8.5, frameon=False)
    figure.suptitle(f"Random pairing, {ITEMS} items", x=0.01, ha="left", fontsize=12)
    return figure


def main() -> None:
    options = read_options(__doc__ or "", trials=40, quick_trials=2)
    persons = PERSONS[1:3] if options.quick else PERSONS
    rows = [
        row
        for answered in ANSWERED
        for n in persons
        for trial in range(options.trials)
        for row in run_trial(n, answered, [options.seed, trial, n, round(100 * answered)])
    ]
    lines = summarise(rows)
    print_table("Random pairing", lines, {name: name for name in lines[0]})
    write_csv(options.out / f"{NAME}.csv", lines)
    save_figure(draw(lines), options.out / f"{NAME}.png")


if __name__ == "__main__":
    main()
