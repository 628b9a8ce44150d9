"""Where to flag drift: sound items lost, drifted ones found, and the error of the link.

Run ``python -m experiments.calibration.links [--reps 2000]``. Two calibrations with standard errors
of 0.1 have so many common items; all of them are sound, or one has drifted by so many standard
errors of its difference. Columns: share of the sound items that is flagged, share of runs in which
the drifted one is, and the root mean square error of the shift over that without any drift and
without a flag.

``python -m experiments.calibration.links --spread [--reps 200]`` asks about the warnings that the
common items spread more in one calibration, or correlate too little. Two tests of the same items
(and five more each) are simulated and calibrated; the second has the same unit, or a smaller one:
its slopes are all 0.8 or 0.7. Columns: share of links with either warning, now, and by the limits
0.9 to 1.1 and 0.95 alone, as in the version before; each with its Monte Carlo standard error.
"""

from __future__ import annotations

import argparse
import csv
import sys

import numpy as np

from discreet import Responses, fit
from discreet.api.scales import link_calibrations
from discreet.errors import DisconnectedItems
from discreet.scales.linking import CORRELATION, SPREAD

ERROR = 0.1
THRESHOLDS = (2.0, 2.326, 2.576, 2.7, 3.0)
COMMON = (4, 6, 12, 30)
DRIFTS = (3.0, 5.0, 7.0)


def calibrate(rng, items, drift):
    """Return a calibration as a table, its first item moved."""
    value = np.linspace(-1.5, 1.5, items) + rng.normal(0, ERROR, items)
    value[0] += drift
    return Known(tuple(f"q{number}" for number in range(items)), value, np.full(items, ERROR))


class Known:
    """Items with difficulties and standard errors."""

    def __init__(self, items, difficulty, se):
        self.items, self.difficulty, self.se = items, difficulty, se


def replicate(rng, items, drift, flag_at):
    """Return the flags and the error of the shift."""
    base, new = calibrate(rng, items, drift), calibrate(rng, items, 0.0)
    try:
        found = link_calibrations(base, new, flag_at=flag_at)
    except DisconnectedItems:
        return np.ones(items, dtype=bool), np.nan
    return found.flagged, found.shift


LINKS = [(700, 700, 10, 0.62), (300, 300, 6, 1.0), (2000, 500, 15, 1.0), (700, 700, 10, 1.5)]
"""Persons of the first and the second test, common items, and how far these reach from zero."""


def calibrate_answers(rng, persons, common, mean, unit, name):
    """Return a calibration of simulated answers to common items and five others."""
    difficulty = np.concatenate([common, rng.normal(size=5)])
    away = unit * (rng.normal(mean, 1, size=(persons, 1)) - difficulty)
    answers = (rng.random(away.shape) < 1 / (1 + np.exp(-away))).astype(np.int8)
    names = [f"common {k}" for k in range(len(common))] + [f"{name} {k}" for k in range(5)]
    return fit(Responses.from_array(answers, items=names), method="refined")


def link_tests(rng, design, unit):
    """Return whether a link is warned about: spread now and before, correlation now and before."""
    first, second, items, reach = design
    common = np.linspace(-reach, reach, items)
    found = link_calibrations(
        calibrate_answers(rng, first, common, 0.0, 1.0, "first"),
        calibrate_answers(rng, second, common, 0.3, unit, "second"),
    )
    said = " ".join(map(str, found.warnings))
    return (
        "times as much" in said,
        not SPREAD[0] <= found.spread_ratio <= SPREAD[1],
        "correlate by" in said,
        found.correlation < CORRELATION,
    )


def measure_spread(reps):
    table = csv.writer(sys.stdout)
    names = ["spread_now", "spread_before", "correlation_now", "correlation_before"]
    columns = [f"{name}{part}" for name in names for part in ("", "_error")]
    table.writerow(["first", "second", "items", "reach", "unit", *columns])
    for number, design in enumerate(LINKS):
        for unit in (1.0, 0.8, 0.7):
            rng = np.random.default_rng(number)
            share = np.mean([link_tests(rng, design, unit) for _ in range(reps)], axis=0)
            error = np.sqrt(share * (1 - share) / reps)
            numbers = np.column_stack([share, error]).reshape(-1)
            table.writerow([*design, unit, *(f"{one:.3f}" for one in numbers)])
            sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reps", type=int, default=2000)
    parser.add_argument("--spread", action="store_true")
    asked = parser.parse_args()
    if asked.spread:
        measure_spread(asked.reps)
    else:
        measure_drift(asked.reps)


def measure_drift(reps):
    table = csv.writer(sys.stdout)
    table.writerow(["items", "drift", "flag_at", "sound_flagged", "drifted_found", "error_ratio"])
    for items in COMMON:
        plain = ERROR * np.sqrt(2 / items)
        for drift in (0.0, *DRIFTS):
            for flag_at in THRESHOLDS:
                rng = np.random.default_rng(items)
                runs = [
                    replicate(rng, items, drift * ERROR * np.sqrt(2), flag_at) for _ in range(reps)
                ]
                flags = np.array([one for one, _ in runs])
                shift = np.sqrt(np.nanmean([two**2 for _, two in runs]))
                sound = flags[:, 1:].mean() if drift else flags.mean()
                found = flags[:, 0].mean() if drift else np.nan
                numbers = (sound, found, shift / plain)
                table.writerow([items, drift, flag_at, *(f"{one:.3f}" for one in numbers)])


if __name__ == "__main__":
    main()
