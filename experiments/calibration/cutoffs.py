"""False alarms and power of simulated limits of fit, beside the usual rules of thumb.

``python -m experiments.calibration.cutoffs [--sets N]`` prints, for each size, the share of sound
data sets with any alarm (goal .05, at most .072 of 400), the power against an item with random
answers and a pair of items that depend on each other, the same for the fixed rules (mean squares
outside .7 to 1.3 with |t| > 2, Q3 more than .2 above the mean), and the processor time of 199
replications.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import discreet
from discreet.analysis import correlate_residuals, measure_fit, simulate_cutoffs
from discreet.errors import DiscreetError
from discreet.items.given_totals import judge_outfit

SIZES = {
    "50 x 10": {"persons": 50, "items": 10},
    "100 x 5, 4 steps": {"persons": 100, "items": 5, "steps": 4},
    "100 x 10": {"persons": 100, "items": 10},
    "300 x 15": {"persons": 300, "items": 15},
    "1000 x 40": {"persons": 1000, "items": 40},
    "100 x 10, 30% missing": {"persons": 100, "items": 10, "missing": 0.3},
    "300 x 15, 30% missing": {"persons": 300, "items": 15, "missing": 0.3},
    "1000 x 40, 30% missing": {"persons": 1000, "items": 40, "missing": 0.3},
    "100 x 10, 3 steps": {"persons": 100, "items": 10, "steps": 3},
    "300 x 15, 3 steps": {"persons": 300, "items": 15, "steps": 3},
    "1000 x 40, 3 steps": {"persons": 1000, "items": 40, "steps": 3},
    "300 x 15, 3 steps, 30% missing": {"persons": 300, "items": 15, "missing": 0.3, "steps": 3},
}


def draw_answers(
    persons: int,
    items: int,
    rng: np.random.Generator,
    *,
    missing: float = 0.0,
    steps: int = 1,
    random_item: float = 0.0,
    twins: float = 0.0,
) -> discreet.Responses:
    """Draw answers from the model, with difficulties and abilities from N(0, 1).

    ``random_item`` is the share of random answers to the first item, ``twins`` the share of
    persons who repeat their answer to the second item in the third.
    """
    ability, difficulty = rng.normal(size=persons), rng.normal(size=items)
    thresholds = difficulty[:, None] + (np.linspace(-1, 1, steps) if steps > 1 else np.zeros(1))
    weight = np.cumsum(ability[:, None, None] - thresholds, axis=2)
    chance = np.exp(np.concatenate([np.zeros((persons, items, 1)), weight], axis=2))
    chance /= chance.sum(axis=2, keepdims=True)
    code = (rng.random((persons, items, 1)) > np.cumsum(chance, axis=2)[..., :-1]).sum(axis=2)
    guessed = rng.random(persons) < random_item
    code[guessed, 0] = rng.integers(0, steps + 1, int(guessed.sum()))
    repeated = rng.random(persons) < twins
    code[repeated, 2] = code[repeated, 1]
    table = code.astype(float)
    table[rng.random(table.shape) < missing] = np.nan
    return discreet.Responses.from_array(table)


def find_alarms(
    answers: discreet.Responses, rng: np.random.Generator, replications: int = 199
) -> dict[str, bool]:
    """Say which families raise an alarm: by simulated limits, and by the fixed rules."""
    estimate = discreet.fit(answers)
    fit, pairs = measure_fit(answers, estimate).items, correlate_residuals(answers, estimate)
    limits = simulate_cutoffs(answers, estimate, replications=replications, rng=rng)
    rows = [fit.items.index(item) for item in limits.items]
    beyond, fixed = [], []
    for name in ("infit", "outfit"):
        value, t, band = getattr(fit, name)[rows], getattr(fit, f"{name}_t")[rows], getattr(
            limits, name
        )  # fmt: skip
        given = getattr(fit, f"conditional_{name}")[rows]
        if name == "outfit":
            given = judge_outfit(given, fit.outfit_without_one[rows])
        beyond.append((given < band[:, 0]) | (given > band[:, 1]))
        fixed.append(((value < 0.7) | (value > 1.3)) & (np.abs(t) > 2))
    excess = np.triu(pairs.q3 - pairs.mean, 1)
    with np.errstate(invalid="ignore"):
        dependent = np.triu(pairs.q3 > limits.q3, 1)
    return {
        "items": bool(np.any(beyond)),
        "pairs": bool(dependent.any()),
        "persons": bool(limits.unexpected.any()),
        "fixed items": bool(np.any(fixed)),
        "fixed pairs": bool((excess > 0.2).any()),
    }


def count_shares(size: dict[str, float], sets: int, seed: int, **fault: float) -> dict[str, float]:
    """Return the share of data sets with an alarm of each kind, and with any simulated one."""
    rng = np.random.default_rng(seed)
    rows = []
    while len(rows) < sets:
        try:
            rows.append(find_alarms(draw_answers(**size, rng=rng, **fault), rng))  # type: ignore[arg-type]
        except DiscreetError:  # answers that determine no difficulties
            continue
    shares = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    joint = [row["items"] or row["pairs"] or row["persons"] for row in rows]
    return {"any": float(np.mean(joint)), **shares}


def time_replications() -> float:
    """Return the processor time of 199 replications of 1000 x 40, in seconds."""
    answers = draw_answers(1000, 40, np.random.default_rng(0))
    estimate = discreet.fit(answers)
    start = time.process_time()
    simulate_cutoffs(answers, estimate, replications=199)
    return time.process_time() - start


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=400, help="sound data sets of each size")
    parser.add_argument("--power-sets", type=int, default=100, help="unsound ones of each size")
    parser.add_argument("--sizes", nargs="*", default=list(SIZES), help="which sizes")
    chosen = parser.parse_args()
    print(f"199 replications of 1000 x 40: {time_replications():.2f} s of processor time")
    for name in chosen.sizes:
        size = SIZES[name]
        null = count_shares(size, chosen.sets, 1)
        error = np.sqrt(0.05 * 0.95 / chosen.sets)
        print(f"{name}: any alarm {null['any']:.3f} (Monte Carlo error {error:.3f});", end=" ")
        print(", ".join(f"{kind} {share:.3f}" for kind, share in null.items()), flush=True)
        for fault in ({"random_item": 0.3}, {"twins": 0.2}) if chosen.power_sets else ():
            power = count_shares(size, chosen.power_sets, 2, **fault)
            kind = "items" if "random_item" in fault else "pairs"
            fixed = power[f"fixed {kind}"]
            print(f"    power, {fault}: simulated {power[kind]:.2f}, fixed {fixed:.2f}", flush=True)


if __name__ == "__main__":
    main()
