"""How many mislabelled questions are found among many, and how many good ones are blamed.

Run ``python -m experiments.calibration.mislabelled [--reps 20] [--first 0] [--oracle]``. 60 models
answer 2,000 questions; 40 of these have a wrong key, so that right counts as wrong and wrong as
right. A run passes with at least 36 found and at most 2 false alarms. Worlds differ in what the
Rasch model does not have: slopes that vary between questions (log-normal, by that SD), and
guessing.

``--oracle`` shows the best that can be had where slopes vary: a judge who knows the abilities, the
laws of slopes and difficulties and the number of wrong keys, and flags what is more likely wrong
than sound.
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


def draw(rng, *, spread=1.0, slopes=0.0, guess=0.0, planted=PLANTED):
    """Abilities, answers ``[model, question]``, and which questions have a wrong key."""
    ability = rng.normal(scale=spread, size=(MODELS, 1))
    slope = np.exp(slopes * rng.normal(size=QUESTIONS))
    chance = 1 / (1 + np.exp(-slope * (ability - rng.normal(size=QUESTIONS))))
    answers = rng.random((MODELS, QUESTIONS)) < guess + (1 - guess) * chance
    wrong = rng.choice(QUESTIONS, planted, replace=False)
    answers[:, wrong] = ~answers[:, wrong]
    return ability[:, 0], answers, wrong


def plant(rng, **world):
    """Answers of models to questions, and which questions have a wrong key."""
    _, answers, wrong = draw(rng, **world)
    return Responses.from_array(answers.astype(np.int8)), {str(k) for k in wrong}


def search(seed, **world):
    """Return how many were found, and how many false alarms there were."""
    answers, wrong = plant(np.random.default_rng(seed), **world)
    estimate = fit(answers, method="refined", standard_errors=False)
    suspects = set(find_mislabelled(answers, estimate).suspects)
    return len(suspects & wrong), len(suspects - wrong)


def know_all(seed, *, slopes):
    """Return the same for a judge who knows all that is not about single questions."""
    ability, answers, wrong = draw(np.random.default_rng(seed), slopes=slopes)
    b, u = np.linspace(-4, 4, 61), np.linspace(-3, 3, 21)
    away = np.exp(slopes * u)[:, None, None] * (ability - b[:, None])
    right, not_right = (-np.logaddexp(0, sign * away).reshape(-1, MODELS) for sign in (-1, 1))
    before = -np.add.outer(u**2, b**2).reshape(-1, 1) / 2
    sound, flipped = (
        np.logaddexp.reduce(right @ one + not_right @ (1 - one) + before, axis=0)
        for one in (answers.astype(float), 1.0 - answers)
    )
    suspects = set(np.flatnonzero(flipped - sound > np.log(QUESTIONS / PLANTED - 1)))
    return len(suspects & set(wrong)), len(suspects - set(wrong))


def tell(name, runs, wanted=36):
    """Print how many runs pass."""
    found, false = np.array(runs).T
    passed = int(((found >= wanted) & (false <= 2)).sum())
    print(f"{name}: {passed} of {len(runs)} runs pass; found {found.min()} to {found.max()}, "
          f"false alarms {false.min()} to {false.max()}", flush=True)  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--reps", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--oracle", action="store_true")
    asked = parser.parse_args()
    seeds = range(asked.first, asked.first + asked.reps)
    if asked.oracle:
        tell("a judge who knows all, slopes vary by 0.3", [know_all(s, slopes=0.3) for s in seeds])
    else:
        for name, world in WORLDS.items():
            runs = [search(seed, **world) for seed in seeds]
            tell(name, runs, wanted=min(36, world.get("planted", 36)))
