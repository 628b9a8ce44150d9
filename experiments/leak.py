"""What leaks from the paper's private counts as printed: a count of zero gets no noise.

Two tables that differ in one person. In the first everybody has Item1 of the LSAT right, so nobody
has Item2 right and Item1 wrong. In the second one person is replaced by a person with Item1 wrong
and all other items right. Privacy means that both tables give the same output about equally often.

    python -m experiments.leak
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import discreet
from discreet.privacy.noise import discrete_gaussian
from discreet.secure import SeededSource
from experiments.published import count, every_pair, gauss_sigma, perturb
from experiments.results import print_table

EPSILON, DELTA = 1.0, 1e-4
RUNS = 10_000
PAIR = (1, 0)
"""Item2 right, Item1 wrong."""


def make_tables() -> dict[str, npt.NDArray[np.int8]]:
    """Return the two neighbouring tables."""
    answers = discreet.datasets.lsat().to_array()
    everybody_right = answers[answers[:, 0] == 1].astype(np.int8)
    one_wrong = everybody_right.copy()
    one_wrong[0] = (0, 1, 1, 1, 1)
    return {"without the person": everybody_right, "with the person": one_wrong}


def count_zeros(answers: npt.NDArray[np.int8], seed: int) -> dict[str, int]:
    """Return in how many runs the noisy count of the pair is exactly 0."""
    counts = count(answers)
    graph = every_pair(len(counts))
    sigma = gauss_sigma(EPSILON, DELTA, float(graph.sum()))
    noise = discrete_gaussian(sigma, RUNS * counts.size, SeededSource(seed))
    draws = noise.reshape(RUNS, *counts.shape)
    printed = [perturb(counts, draw, graph)[PAIR] for draw in draws]
    return {
        "as printed": int(np.sum(np.array(printed) == 0)),
        "noise on every count": int(np.sum(counts[PAIR] + draws[:, *PAIR] == 0)),
    }


def measure() -> list[dict[str, object]]:
    """Return one row for each table."""
    tables = make_tables().items()
    return [
        {"table": name, "count": int(count(answers)[PAIR]), **count_zeros(answers, seed)}
        for seed, (name, answers) in enumerate(tables)
    ]


def print_leak() -> None:
    """Print in how many runs each table gives a count of zero."""
    title = f"Runs of {RUNS:,} that publish 0 for Item2 right, Item1 wrong"
    rows = measure()
    print_table(title, rows, {name: name for name in rows[0]})


if __name__ == "__main__":
    print_leak()
