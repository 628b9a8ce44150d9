"""Numbers that a change of structure must not change, computed through public names alone.

::

    python -m tests.golden          writes tests/data/golden.json

`compute` returns a nested dictionary of lists of numbers. Counts, noisy values and charges are
exact; difficulties agree to 1e-11; other solved quantities to 1e-9 relative (`test_golden.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import discreet
from discreet import analysis
from discreet.privacy.noise import ExactNoise
from discreet.secure import SeededSource

FILE = Path(__file__).parent / "data" / "golden.json"
METHODS = ("conditional", "refined", "spectral", "marginal")
STEP_MECHANISMS = ("totals",)
MECHANISMS = ("margins", "totals", "pairs", "sparse-pairs", "laplace-margins", "laplace-pairs")


def incomplete() -> Any:
    """Return 300 persons with half of 12 items each: a fixed simulation."""
    rng = np.random.default_rng(20)
    return discreet.simulate(persons=300, items=12, answered=0.5, rng=rng).responses


DATA: dict[str, Callable[[], Any]] = {
    "lsat": discreet.datasets.lsat,
    "incomplete": incomplete,
    "wellbeing": discreet.datasets.wellbeing,
}


def compute() -> dict[str, Any]:
    """Compute every golden number."""
    answers = {name: load() for name, load in DATA.items()}
    return {
        "estimates": {name: estimate_all(data) for name, data in answers.items()},
        "analyses": {name: analyse(data) for name, data in answers.items()},
        "links": link(answers["incomplete"]),
        "releases": {name: release_all(data) for name, data in answers.items()},
    }


def estimate_all(data: Any) -> dict[str, Any]:
    """Fit every method, and the rating scale model where items have steps."""
    results = {method: describe(discreet.fit(data, method=method)) for method in METHODS}
    if has_steps(data):
        results["rating-scale"] = describe(discreet.fit(data, model="rating-scale"))
    return results


def has_steps(data: Any) -> bool:
    """Tell whether an item has more than one step."""
    return bool(discreet.fit(data, standard_errors=False).thresholds.shape[1] > 1)


def describe(estimate: Any) -> dict[str, Any]:
    """Return the numbers of an estimate."""
    return {
        "difficulty": numbers(estimate.difficulty),
        "se": numbers(estimate.se),
        "thresholds": numbers(estimate.thresholds),
        "threshold_se": numbers(estimate.threshold_se),
    }


def analyse(data: Any) -> dict[str, Any]:
    """Score persons, measure fit, compare two groups, test the model, rank the items."""
    estimate = discreet.fit(data)
    scores = discreet.score(data, estimate)
    fit = analysis.measure_fit(data, estimate)
    groups = ["a" if person % 3 else "b" for person in range(data.n_persons)]
    dif = analysis.find_dif(data, groups)
    ranges = discreet.rank_ranges(estimate)
    return {
        "ability": numbers(scores.ability[:50]),
        "ability_se": numbers(scores.se[:50]),
        "infit": numbers(fit.items.infit),
        "outfit": numbers(fit.items.outfit),
        "dif": numbers(dif.difference),
        "dif_se": numbers(dif.se),
        "rank_first": numbers(ranges.first),
        "rank_last": numbers(ranges.last),
    }


def link(data: Any) -> dict[str, Any]:
    """Link two halves of the persons."""
    half = data.n_persons // 2
    first = discreet.fit(data.select_persons(range(half)))
    second = discreet.fit(data.select_persons(range(half, data.n_persons)))
    result = discreet.link_calibrations(first, second)
    return {"shift": numbers(result.shift), "se": numbers(result.se)}


def release_all(data: Any) -> dict[str, Any]:
    """Release with fixed noise: noisy values, the estimate, the charge."""
    estimate = discreet.fit(data, standard_errors=False)
    steps = np.isfinite(estimate.thresholds).sum(axis=1)
    items = dict(zip(data.items, map(int, steps), strict=True))
    budget = discreet.Budget(epsilon=2.0, delta=1e-5)
    mechanisms = STEP_MECHANISMS if max(items.values()) > 1 else MECHANISMS
    return {name: release_one(data, budget, items, name) for name in mechanisms}


def release_one(data: Any, budget: Any, items: dict[str, int], mechanism: Any) -> dict[str, Any]:
    """Release by one mechanism, with noise from a fixed seed."""
    noise = ExactNoise(SeededSource(11))
    cap = 6 if len(items) > 6 else None
    released = discreet.release(
        data, budget, items=items, max_answers=cap, mechanism=mechanism, noise=noise
    )
    return {
        "values": {name: numbers(part) for name, part in released.noisy.values.items()},
        "charge": [released.guarantee.epsilon, released.guarantee.delta],
        **describe(released.estimate),
    }


def numbers(values: Any) -> list[Any]:
    """Return an array as a flat list; JSON has no NaN, so it is null."""
    flat = np.asarray(values, dtype=float).ravel()
    return [None if np.isnan(value) else float(value) for value in flat]


if __name__ == "__main__":
    FILE.write_text(json.dumps(compute(), indent=0) + "\n")
    print(f"{FILE.name} written")
