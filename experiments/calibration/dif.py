"""How often differential item functioning is found, and seen where there is none.

Run ``python experiments/calibration/dif.py [--reps 200]`` with one BLAS thread. 30 items, 500 + 500
persons, abilities N(0, 1), three items 0.6 logits harder for one group. Power is the share of those
three that is flagged, false alarms the share of the other 27, by unadjusted and adjusted p-values.
"""

from __future__ import annotations

import argparse

import numpy as np

from discreet.analysis import find_dif
from discreet.items.groups import ADJUSTMENTS, adjust

ITEMS, SIZE, MOVED, EFFECT = 30, 500, 3, 0.6


def draw(rng, effect):
    difficulty = rng.normal(size=ITEMS)
    shifted = difficulty + np.where(np.arange(ITEMS) < MOVED, effect, 0.0)
    parts = [
        rng.random((SIZE, ITEMS)) < 1 / (1 + np.exp(b - rng.normal(size=(SIZE, 1))))
        for b in (difficulty, shifted)
    ]
    return np.concatenate(parts).astype(np.int8)


def measure(reps, effect=EFFECT, seed=0):
    rng = np.random.default_rng(seed)
    groups = np.repeat(["reference", "with effect"], SIZE)
    hits = {name: np.zeros(2) for name in ADJUSTMENTS}
    for _ in range(reps):
        table = find_dif(draw(rng, effect), groups, reference="reference")
        for name in ADJUSTMENTS:
            flagged = adjust(table.p_value, name) < 0.05
            hits[name] += flagged[:MOVED].mean(), flagged[MOVED:].mean()
    return {name: tuple(value / reps) for name, value in hits.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reps", type=int, default=200)
    reps = parser.parse_args().reps
    for effect in (EFFECT, 0.0):
        for name, (power, alarms) in measure(reps, effect).items():
            print(f"effect {effect}: {name:20} power {power:.3f}  false alarms {alarms:.4f}")
