"""Published answers that may not be distributed, and simulated ones of a similar shape."""

import csv
from pathlib import Path

import numpy as np
import pytest

import discreet

BESIDE = Path(__file__).parents[1].parent / "shared" / "data"
TIMSS = "timss2011_aut_math_long.csv.gz"


def need(*names):
    """Return the places of files that may not be distributed, or skip the test."""
    places = [BESIDE / name for name in names]
    for place in places:
        if not place.exists():
            pytest.skip(f"{place.name} may not be distributed and is not beside the repository")
    return places


def find_timss(_=None):
    """Return the place of real answers to rotated booklets."""
    return need(TIMSS)[0]


def find_log(_=None):
    """Return the place of a real log, very sparse."""
    return need("assist2009_long.csv.gz")[0]


def simulate_booklets(folder):
    """Write the answers of 1,500 persons to a rotated fifth of 174 items, as a long table."""
    made = discreet.simulate(1500, 174, 0.2, design="booklets", rng=np.random.default_rng(1))
    codes = made.responses.to_array()
    rows = ((f"p{n}", made.responses.items[i], codes[n, i]) for n, i in np.argwhere(codes >= 0))
    with (folder / "booklets.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("person", "item", "response"), *rows])
    return folder / "booklets.csv"
