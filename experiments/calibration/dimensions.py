"""How often a second dimension is seen where there is none, and where there is one.

Run ``python -m experiments.calibration.dimensions [--reps 400]`` with one BLAS thread. 30 items,
500 persons, abilities N(0, 1); the first eigenvalue is an alarm where it exceeds those of 19
simulated sets, a test at 5%. Power is that against two abilities that correlate, on 15 items each.
Beside it stands the rule of the version before, which also asked for 1.1 times what chance gives.
"""

from __future__ import annotations

import argparse

import numpy as np

from discreet import Responses, fit
from discreet.analysis import find_dimensions

PERSONS, ITEMS, SETS = 500, 30, 19


def draw(rng, correlation, missing):
    first, other = rng.normal(size=(2, PERSONS))
    second = correlation * first + np.sqrt(1 - correlation**2) * other
    ability = np.where(np.arange(ITEMS) % 2, first[:, None], second[:, None])
    away = ability - rng.normal(size=ITEMS)
    answers = (rng.random(away.shape) < 1 / (1 + np.exp(-away))).astype(float)
    answers[rng.random(away.shape) < missing] = np.nan
    return Responses.from_array(answers)


def count_alarms(reps, correlation=1.0, missing=0.0, seed=0):
    """Share of sets of answers whose first eigenvalue is an alarm at 5%."""
    return measure(reps, correlation, missing, seed)[0]


def measure(reps, correlation=1.0, missing=0.0, seed=0):
    """Return that share, and the share of sets that are beyond 1.1 times chance too."""
    rng = np.random.default_rng(seed)
    alarms = np.zeros(2)
    for _ in range(reps):
        answers = draw(rng, correlation, missing)
        calibration = fit(answers, method="refined", standard_errors=False)
        found = find_dimensions(answers, calibration, simulations=SETS, rng=rng)
        is_alarm = found.p_value[0] <= 0.05
        alarms += is_alarm, is_alarm and found.eigenvalue[0] >= 1.1 * found.expected[0]
    return tuple(alarms / reps)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reps", type=int, default=400)
    reps = parser.parse_args().reps
    for correlation, missing in ((1.0, 0.0), (1.0, 0.3), (0.9, 0.0), (0.8, 0.0), (0.7, 0.0)):
        now, before = measure(reps, correlation, missing)
        error = [np.sqrt(share * (1 - share) / reps) for share in (now, before)]
        print(
            f"correlation {correlation}, {missing:.0%} missing: "
            f"alarms {now:.4f} +- {error[0]:.4f}, before {before:.4f} +- {error[1]:.4f}",
            flush=True,
        )
