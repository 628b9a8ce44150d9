"""How many mislabelled questions are found among many, and how many good ones are blamed.

Run ``python -m bench.mislabelled [--reps 20]``. 60 models answer 2,000 questions; 40 of these have
a wrong key, so that right counts as wrong and wrong as right. A run passes with at least 36 found
and at most 2 false alarms. Worlds differ in what the Rasch model does not have: slopes that vary
between questions (log-normal, by that SD), and guessing.
"""

from __future__ import annotations

import argparse

import numpy as np

from discreet import Responses, fit
from discreet.analysis import find_mislabelled

MODELS, QUESTIONS, PLANTED = 60, 2000, 40
WORLDS = {
    "Rasch": {},
    "abilities N(0, 1.5)": {"spread": 1.5},
    "slopes vary by 0.3": {"slopes": 0.3},
    "guessing at 0.25, abilities N(0, 1.5)": {"guess": 0.25, "spread": 1.5},
    "nothing planted, slopes vary by 0.3": {"slopes": 0.3, "planted": 0},
}


def plant(rng, *, spread=1.0, slopes=0.0, guess=0.0, planted=PLANTED):
    """Answers of models to questions, and which questions have a wrong key."""
    ability = rng.normal(scale=spread, size=(MODELS, 1))
    slope = np.exp(slopes * rng.normal(size=QUESTIONS))
    chance = 1 / (1 + np.exp(-slope * (ability - rng.normal(size=QUESTIONS))))
    answers = rng.random((MODELS, QUESTIONS)) < guess + (1 - guess) * chance
    wrong = rng.choice(QUESTIONS, planted, replace=False)
    answers[:, wrong] = ~answers[:, wrong]
    return Responses.from_array(answers.astype(np.int8)), {str(k) for k in wrong}


def search(seed, **world):
    """Return how many were found, and how many false alarms there were."""
    answers, wrong = plant(np.random.default_rng(seed), **world)
    estimate = fit(answers, method="refined", standard_errors=False)
    suspects = set(find_mislabelled(answers, estimate).suspects)
    return len(suspects & wrong), len(suspects - wrong)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--reps", type=int, default=20)
    reps = parser.parse_args().reps
    for name, world in WORLDS.items():
        found, false = np.array([search(seed, **world) for seed in range(reps)]).T
        passed = int(((found >= min(36, world.get("planted", 36))) & (false <= 2)).sum())
        print(f"{name}: {passed} of {reps} runs pass; found {found.min()} to {found.max()}, "
              f"false alarms {false.min()} to {false.max()}", flush=True)  # fmt: skip
