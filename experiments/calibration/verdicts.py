"""How often verdicts about a test are false, and how often they are right.

Run ``python -m experiments.calibration.verdicts [--reps 200] [--only andersen,halves,errors]``
with one BLAS thread. Every share stands beside its Monte Carlo standard error. Before is the rule
of the version before: Andersen's groups from mean ability. What whole reports say is counted by
``experiments.calibration.reports``.

- andersen: 800 persons, 5 items in 4 categories, a ceiling, 24 persons with a gap. Share of sets in
  which Andersen's test could be made, and of those the share with p below 1% and 5%.
- halves: Martin-Löf's test of easier and harder items, and of the true parts, where two abilities
  are on items of all difficulties.
- errors: the warning that the scale of abilities is distorted or, where easier and harder items
  differ much, that standard errors are too small; and what these are in truth: coverage and the
  spread of z after a straight line from true to estimated abilities.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from discreet import Responses, fit, score
from discreet.analysis import run_andersen, run_martin_loef
from discreet.errors import BadUsage, DisconnectedItems, WarningKind
from discreet.items.groups import LOW_HIGH, SCORE_SPLITS
from discreet.results.limits import ANDERSEN_LEVEL

SKEWED = 800
THRESHOLDS = np.array([[-1.6, -1.2, -0.4], [-1.2, -1.0, 0.0], [-1.8, -0.8, -0.2],
                       [-1.4, -1.4, -0.3], [-1.0, -0.9, 0.1]])  # fmt: skip


def say_share(name, hits):
    """Print a share and its Monte Carlo standard error."""
    share = np.mean(hits)
    error = np.sqrt(share * (1 - share) / len(hits))
    print(f"  {name:58} {share:.3f} +- {error:.3f} ({len(hits)})", flush=True)


def draw_rasch(rng, persons, items, *, slopes=0.0, guess=0.0):
    """Return abilities, difficulties and right and wrong answers."""
    ability, difficulty = rng.normal(size=persons), rng.normal(size=items)
    slope = np.exp(slopes * rng.normal(size=items))
    chance = guess + (1 - guess) / (1 + np.exp(-slope * (ability[:, None] - difficulty)))
    return ability, difficulty, (rng.random(chance.shape) < chance).astype(float)


# --- Andersen's test with gaps ------------------------------------------------------------------


def draw_skewed(rng, slopes):
    """Return answers with a ceiling and few gaps."""
    ability = rng.normal(0.9, 1.3, size=(SKEWED, 1))
    answers = np.empty((SKEWED, 5))
    for item, slope in enumerate(slopes):
        total = np.cumsum(slope * (ability - THRESHOLDS[item]), axis=1)
        weight = np.exp(np.hstack([np.zeros_like(ability), total]))
        share = weight.cumsum(axis=1) / weight.sum(axis=1, keepdims=True)
        answers[:, item] = (rng.random((SKEWED, 1)) > share).sum(axis=1)
    answers[rng.choice(SKEWED, 24, replace=False), rng.integers(0, 5, 24)] = np.nan
    return Responses.from_array(answers)


def split_by_ability(answers):
    """Return the groups of the version before: below and above the mean ability."""
    ability = score(answers, fit(answers, standard_errors=False)).ability
    return np.array(LOW_HIGH)[(ability > ability.mean()).astype(int)]


def test_groups(answers, splits):
    """Return the p-value of the first split that makes a test; None where none does."""
    for split in splits:
        try:
            return run_andersen(answers, split).p_value
        except (BadUsage, DisconnectedItems):
            continue
    return None


def measure_andersen(reps):
    print("Andersen's test, skewed answers with gaps")
    for world, slopes in (
        ("equal slopes", np.full(5, 0.75)),
        ("slopes .3 to 1.5", np.array([0.3, 0.8, 1.5, 0.5, 1.1])),
    ):
        sets = [draw_skewed(np.random.default_rng([1, seed]), slopes) for seed in range(reps)]
        for rule, choose in (("before", lambda one: [split_by_ability(one)]),
                             ("now", lambda _: SCORE_SPLITS)):  # fmt: skip
            found = [test_groups(one, choose(one)) for one in sets]
            say_share(f"{world}, {rule}: tested", [p is not None for p in found])
            made = [p for p in found if p is not None]
            for level in (0.01, 0.05) if made else ():
                say_share(f"{world}, {rule}: p < {level}", [p < level for p in made])


# --- two abilities and Martin-Löf ---------------------------------------------------------------


def measure_halves(reps):
    print("Martin-Löf's test at 1%, 1000 persons, 12 items, two abilities that correlate at .5")
    hits = {"by difficulty": [], "true parts": []}
    for seed in range(reps):
        rng = np.random.default_rng([3, seed])
        first, other = rng.normal(size=(2, 1000, 1))
        second = 0.5 * first + np.sqrt(0.75) * other
        part = np.arange(12) % 2 == 0
        away = np.where(part, first, second) - np.linspace(-1.5, 1.5, 12)
        answers = (rng.random(away.shape) < 1 / (1 + np.exp(-away))).astype(float)
        hits["by difficulty"].append(run_martin_loef(answers).p_value < ANDERSEN_LEVEL)
        named = [str(item) for item in np.flatnonzero(part)]
        hits["true parts"].append(run_martin_loef(answers, named).p_value < ANDERSEN_LEVEL)
    for name, some in hits.items():
        say_share(name, some)


# --- standard errors of abilities ---------------------------------------------------------------


def measure_errors(reps):
    worlds = {
        "Rasch": {},
        "slopes log-sd .5": {"slopes": 0.5},
        "guessing .25": {"guess": 0.25},
        "slopes log-sd .5 + guessing .25": {"slopes": 0.5, "guess": 0.25},
    }
    for persons, items in ((60, 1000), (1000, 40)):
        print(f"Standard errors of abilities, {persons} persons x {items} items")
        for world, settings in worlds.items():
            runs = [check_errors(seed, persons, items, **settings) for seed in range(reps)]
            warned, large, times, covered, spread = zip(*runs, strict=True)
            say_share(f"{world}: warned", warned)
            say_share(f"{world}: errors said to be too small", large)
            print(f"    halves differ {np.mean(times):.2f} times as much as errors allow; true "
                  f"coverage {np.mean(covered):.3f}, sd of z {np.mean(spread):.2f}")  # fmt: skip
    print("Standard errors of abilities, Rasch, other designs")
    for persons, items in ((100, 10), (300, 15), (2000, 8), (2000, 20)):
        runs = [check_errors(seed, persons, items) for seed in range(reps)]
        say_share(f"{persons} x {items}: warned", [one[0] for one in runs])


def check_errors(seed, persons, items, **settings):
    """Return whether there is a warning, of what, its factor, and coverage and spread in truth."""
    ability, _, answers = draw_rasch(np.random.default_rng([4, seed]), persons, items, **settings)
    responses = Responses.from_array(answers)
    found = score(responses, fit(responses, method="refined"))
    known = found.status == "measured"
    line = np.polyfit(ability[known], found.ability[known], 1)
    z = (found.ability[known] - np.polyval(line, ability[known])) / found.se[known]
    kinds = {one.kind for one in found.warnings}
    large = WarningKind.UNDERSTATED_ERRORS in kinds
    covered = float((np.abs(z) < 1.96).mean())
    return found.halves.is_found, large, found.halves.times, covered, float(z.std())


PARTS = {"andersen": measure_andersen, "halves": measure_halves, "errors": measure_errors}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reps", type=int, default=200)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, separated by commas")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in asked.only.split(","):
        PARTS[name](asked.reps)
