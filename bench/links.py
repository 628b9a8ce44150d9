"""Where to flag drift: sound items lost, drifted ones found, and the error of the link.

Run ``python -m bench.links [--reps 2000]``. Two calibrations with standard errors of 0.1 have so
many common items; all of them are sound, or one has drifted by so many standard errors of its
difference. Columns: share of the sound items that is flagged, share of runs in which the drifted
one is, and the root mean square error of the shift over that without any drift and without a flag.
"""

from __future__ import annotations

import argparse
import csv
import sys

import numpy as np

from discreet.analysis.equate import link_calibrations
from discreet.errors import DisconnectedItems

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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reps", type=int, default=2000)
    reps = parser.parse_args().reps
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
