"""The library's release beside the published mechanism, same answers, same (epsilon, delta).

Prints the root mean square error of both through the whole pipeline (`discreet.release` with its
exact noise) and their ratio. The published mechanism is calibrated as its lemma's proof says,
with m (m - 1) counts.

    python -m experiments.calibration.beside_published [--runs 20]
"""

import argparse

import numpy as np

import discreet
from discreet.privacy.noise import ExactNoise
from discreet.secure import SeededSource
from experiments import published

SETTINGS = [
    # persons, items, answered, cap, largest ratio that we promise, largest error that we promise
    (1_000, 50, 1.0, 50, 0.38, 0.155),
    (5_000, 100, 0.3, 40, 0.14, 0.12),
    (20_000, 200, 0.1, 30, 0.10, 0.095),
]


def one_run(persons, items, answered, cap, seed, epsilon=1.0, delta=1e-4):
    """Return the mean square errors of the release, the published mechanism and all zero."""
    rng = np.random.default_rng(seed)
    difficulty = rng.uniform(-2, 2, items)
    difficulty -= difficulty.mean()
    sim = discreet.simulate(persons, items, answered, difficulty=difficulty, rng=rng)
    source = SeededSource(seed)
    made = discreet.release(
        sim.responses,
        discreet.Budget(epsilon, delta),
        items=[str(number) for number in range(items)],
        max_answers=cap,
        mechanism="margins",
        noise=ExactNoise(source),
    )
    counts = discreet.count_pairs(sim.responses).right_wrong.astype(float)
    theirs = published.gauss(
        counts,
        epsilon,
        delta,
        pairs=published.Pairs.ORDERED,
        graph=published.every_pair(items),
        source=source,
    )
    return [np.mean((b - difficulty) ** 2) for b in (made.estimate.difficulty, theirs, 0.0)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    print("persons items answered |  ours  goal | published | ratio  goal | all zero")
    for persons, items, answered, cap, ratio_goal, goal in SETTINGS:
        errors = [one_run(persons, items, answered, cap, seed) for seed in range(runs)]
        ours, theirs, zero = np.sqrt(np.mean(errors, axis=0))
        print(
            f"{persons:7d} {items:5d} {answered:8.0%} | {ours:.3f} {goal:.3f} | {theirs:9.3f} "
            f"| {ours / theirs:.3f} {ratio_goal:.2f} | {zero:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
