"""Standard errors where few persons or judges link two parts: coverage of 95% intervals.

::

    python -m experiments.calibration.weak_links --commit `git log -1 --format=%h`

That is 400 studies of each design, method and number of linking persons, and takes 7 minutes. Items
and abilities are drawn from N(0, 1), 600 persons answer one part each, and some answer two. Studies
in which the answers do not link all items are left out, because these have no numbers. ``ratio`` is
the median standard error over the standard deviation of the errors, for the median item. Rows go to
the end of ``weak_links.csv`` beside this file.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import discreet
from discreet.answers.comparisons import Comparisons
from discreet.api.comparing import rank_comparisons
from discreet.errors import DisconnectedItems, DiscreetWarning, NotConverged, WarningKind

FILE = Path(__file__).with_suffix(".csv")
SEED = 1000
LINKING = 1, 2, 3, 5, 10
PERSONS = 600
#: By name: items of each part, and steps of an item.
DESIGNS: dict[str, tuple[tuple[int, ...], int]] = {
    "two forms of 3 items": ((3, 3), 1),
    "10 and 2 items": ((10, 2), 1),
    "two forms of 20 items": ((20, 20), 1),
    "chain of 3 forms": ((3, 3, 3), 1),
    "two forms of 5 items with 2 steps": ((5, 5), 2),
}
METHODS = "refined", "spectral", "conditional"
#: Judges of one half of the objects, objects in all, comparisons of a judge who links the halves.
JUDGES, OBJECTS, VOTES = 200, 8, 4

Study = tuple[Any, np.ndarray]


def draw_answers(design: str, linking: int, rng: np.random.Generator) -> Study:
    """Return answers to parts of which neighbours are linked, and the truth."""
    sizes, steps = DESIGNS[design]
    part = np.repeat(np.arange(len(sizes)), sizes)
    truth = rng.normal(size=len(part))
    threshold = truth[:, None] + np.linspace(-0.8, 0.8, steps) * (steps > 1)
    points = np.cumsum(rng.normal(size=PERSONS)[:, None, None] - threshold, axis=2)
    points = np.pad(points, ((0, 0), (0, 0), (1, 0)))
    cells = (points + rng.gumbel(size=points.shape)).argmax(axis=2).astype(float)
    own = np.arange(PERSONS) % len(sizes)
    seen = own[:, None] == part
    for first in range(len(sizes) - 1):
        seen[np.flatnonzero(own == first)[:linking]] |= part == first + 1
    return np.where(seen, cells, np.nan), truth


def draw_votes(linking: int, rng: np.random.Generator) -> Study:
    """Return comparisons of two halves of the objects that some judges link, and the truth."""
    truth, half = rng.normal(size=OBJECTS), OBJECTS // 2
    inside = np.transpose(np.triu_indices(half, 1))
    pairs = [inside + half * (judge % 2) for judge in range(JUDGES)]
    across = np.array([*product(range(half), range(half, OBJECTS))])
    pairs += [rng.permutation(across)[:VOTES] for _ in range(linking)]
    judge = np.repeat(np.arange(len(pairs)), [len(some) for some in pairs])
    first, second = np.concatenate(pairs).T
    wins = rng.random(len(judge)) < 1 / (1 + np.exp(truth[second] - truth[first]))
    winner, loser = np.where(wins, first, second), np.where(wins, second, first)
    names = [f"o{number}" for number in range(OBJECTS)]
    votes = Comparisons.from_codes(judge=judge, winner=winner, loser=loser, items=names)
    return votes, truth


def fit_folds(answers: Any, method: str) -> Any:
    """Fit counts with folds."""
    weighting = "refined" if method == "refined" else "none"
    return discreet.fit(discreet.count_pairs(answers, folds=32, weighting=weighting), method=method)


def list_cells() -> Iterator[tuple[str, str, Callable[..., Study], Callable[[Any], Any]]]:
    """Yield a name of the design, the method, how to draw a study and how to estimate."""
    for design, method in product(DESIGNS, METHODS):
        yield (design, method, lambda *of, name=design: draw_answers(name, *of),
               lambda data, name=method: discreet.fit(data, method=name))  # fmt: skip
    for method in METHODS[:2]:
        yield (f"{next(iter(DESIGNS))}, folds", method,
               lambda *of: draw_answers(next(iter(DESIGNS)), *of),
               lambda data, name=method: fit_folds(data, name))  # fmt: skip
        yield (f"judges of {VOTES} comparisons", method, draw_votes,
               lambda data, name=method: rank_comparisons(data, method=name))  # fmt: skip


def measure(
    draw: Callable[..., Study], estimate: Callable[[Any], Any], linking: int, studies: int
) -> dict[str, float]:
    """Return how often intervals hold the truth, and how long they are."""
    error, se, warned = [], [], 0
    for study in range(studies):
        data, truth = draw(linking, np.random.default_rng(SEED + study))
        try:
            fitted = estimate(data)
        except (DisconnectedItems, NotConverged):
            continue
        value = getattr(fitted, "strength", getattr(fitted, "difficulty", None))
        if np.isfinite(value).all():
            error.append(value - (truth - truth.mean()))
            se.append(fitted.se)
            warned += any(one.kind is WarningKind.WEAK_LINK for one in fitted.warnings)
    errors, ses = (np.reshape(one, (len(se), -1)) for one in (error, se))
    finite = np.isfinite(ses).all(axis=1)
    share = round(float(finite.mean()), 3) if len(finite) else np.nan
    about = {"fits": len(ses), "warned": warned, "finite": share}
    if finite.sum() < 2:
        return about | {"coverage": np.nan, "error": np.nan, "ratio": np.nan}
    held = (np.abs(errors) <= 1.96 * ses)[finite].mean(axis=1)
    ratio = np.median(ses[finite], axis=0) / errors[finite].std(axis=0, ddof=1)
    numbers = held.mean(), held.std(ddof=1) / len(held) ** 0.5, np.median(ratio)
    return about | dict(zip(("coverage", "error", "ratio"), np.round(numbers, 3), strict=True))


def main() -> None:
    """Measure every cell and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--commit", required=True, help="what is measured")
    given = parser.parse_args()
    warnings.simplefilter("ignore", DiscreetWarning)
    for (design, method, draw, estimate), linking in product(list_cells(), LINKING):
        row = {"design": design, "method": method, "linking": linking, "studies": given.studies}
        row |= measure(draw, estimate, linking, given.studies)
        row |= {"seed": SEED, "commit": given.commit}
        is_new = not FILE.exists()
        with FILE.open("a", newline="") as file:
            writer = csv.DictWriter(file, list(row), lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerow(row)
        print(*(f"{name} {value}" for name, value in row.items()), sep=", ", flush=True)


if __name__ == "__main__":
    main()
