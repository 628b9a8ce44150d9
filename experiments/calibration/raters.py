"""How often reports on raters name somebody in sound ratings, and a rater who marks at random.

Run ``python -m experiments.calibration.raters SETTING --sets 400 --rows ROWS.csv`` with one BLAS
thread. A setting is PERSONSxTASKSxRATERS, with two raters a person, and words: ``300x1x12``,
``300x1x12-random`` (one rater marks at random, uniformly), ``-marginal`` (at random, with the
shares of scores that all have), ``-steps1.5`` (steps so far apart and abilities with SD 1; without
it ratings are those of :func:`discreet.simulate_ratings`), ``-equal`` (severities with SD 0, else
0.5), ``-groups`` (the raters of one half mark persons who are 2 logits better than the others'),
``-skewed`` (abilities are exponential). Every set is a row when it is done, and sets that are there
are not drawn again. ``--write`` counts them into ``raters.csv``: share, Monte Carlo error, sets.
``--bound`` prints instead how often a test would find the rater at random that knows everything but
whom to suspect, and one that has to estimate the severity too, at 5% and 3% of sound sets.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

import discreet
from discreet.analysis import study_ratings
from discreet.answers.ratings import Ratings
from discreet.report.raters import find_rater_problems

TABLE = Path(__file__).with_suffix(".csv")
COLUMNS = ("setting", "seed", "outcome", "value")
SCORES = 4


class Setting:
    """Sizes and words of a setting."""

    def __init__(self, name: str) -> None:
        size, *words = name.split("-")
        self.persons, self.tasks, self.raters = map(int, size.split("x"))
        self.words = [word for word in words if not word.startswith("steps")]
        steps = [float(word[5:]) for word in words if word.startswith("steps")]
        self.steps = steps[0] if steps else None
        self.spread = 0.0 if "equal" in words else 0.5
        self.is_spoiled = "random" in words or "marginal" in words

    def draw(self, seed: int) -> tuple[Ratings, str]:
        """Return ratings, and who marks at random."""
        ratings = self._draw_sound(np.random.default_rng(seed))
        if not self.is_spoiled:
            return ratings, ""
        rng, bad = np.random.default_rng(seed + 10_000), seed % self.raters
        dice = rng.integers(0, SCORES, ratings.n_ratings)
        dice = rng.permutation(ratings.score) if "marginal" in self.words else dice
        score = np.where(ratings.codes["rater"] == bad, dice, ratings.score).astype(np.int32)
        return replace(ratings, score=score), ratings.facets["rater"][bad]

    def _draw_sound(self, rng: np.random.Generator) -> Ratings:
        size = self.persons, self.tasks, self.raters
        if self.steps is None and not {"groups", "skewed"} & {*self.words}:
            return discreet.simulate_ratings(*size, severity_sd=self.spread, rng=rng).ratings
        steps = np.sort(rng.normal(0, 1.2, SCORES - 1)) - 0.0
        if self.steps is not None:
            steps = self.steps * np.array([-1.0, 0.0, 1.0])
        severity = rng.normal(0, self.spread, self.raters)
        location = rng.normal(0, 0.5, self.tasks) * (self.tasks > 1)
        order = rng.random((self.persons, self.raters))
        ability = rng.normal(size=self.persons)
        if "skewed" in self.words:
            ability = rng.exponential(size=self.persons) - 1
        if "groups" in self.words:  # one person in ten links the halves
            half = np.arange(self.persons) % 2
            apart = (np.arange(self.raters) % 2 == half[:, None]) * 2.0
            order += apart * (np.arange(self.persons) % 10 > 1)[:, None]
            ability += 2.0 * half
        chosen = np.argsort(order, axis=1)[:, :2]
        person = np.repeat(np.arange(self.persons), self.tasks * 2)
        item = np.tile(np.repeat(np.arange(self.tasks), 2), self.persons)
        rater = np.repeat(chosen[:, None, :], self.tasks, axis=1).ravel()
        level = ability[person] - location[item] - (severity - severity.mean())[rater]
        logits = np.cumsum(level[:, None] - steps, axis=1)
        logits = np.insert(logits, 0, 0.0, axis=1)
        score = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
        return Ratings.from_codes(person, item, score, facets={"rater": rater})

    def judge(self, seed: int) -> dict[str, float]:
        """Say what a report finds."""
        ratings, bad = self.draw(seed)
        with warnings.catch_warnings(action="ignore"):
            study = study_ratings(ratings, discreet.fit(ratings))
            titles = [finding.title for finding in find_rater_problems(study)]
        levels = {level for one in study.misfits for level in one.levels}
        persons = study.unexpected_persons is not None and study.unexpected_persons.is_beyond
        found: dict[str, float] = {
            "any finding of fit": bool(levels) or persons,
            "persons": persons,
        }
        if bad:
            found |= {"named": bad in levels, "a sound one named": bool(levels - {bad})}
            found["infit"] = study.facets["rater"].conditional_infit[seed % self.raters]
            found["first"] = study.facets["rater"].surprise[seed % self.raters] > study.limits[1]
        return {**found, "severe": any(" severe:" in one or " lenient:" in one for one in titles)}

    # --- what could be attained -------------------------------------------------------------

    def bound(self, sets: int, drawings: int = 3_000) -> Iterator[tuple[str, float]]:
        """Yield the share of random raters found by tests that know more than any can.

        The best test of known laws is the likelihood ratio (Neyman and Pearson). Of R raters each
        may be called random in the R-th part of the sound sets that are given up. One task.
        """
        node = np.linspace(-6, 6, 61)
        weight = np.exp(-(node**2) / 2)
        shares: dict[str, list[float]] = {}
        for seed in range(sets):
            rng = np.random.default_rng(seed)
            if self.steps is None:
                true = discreet.simulate_ratings(self.persons, 1, self.raters, rng=rng)
                steps, severity = true.thresholds[0], true.severity
            else:
                steps = self.steps * np.array([-1.0, 0.0, 1.0])
                severity = rng.normal(0, self.spread, self.raters)
                severity -= severity.mean()
            bad, rng = seed % self.raters, np.random.default_rng(seed + 2)
            tried = severity[bad] + np.linspace(-2.4, 2.4, 17)
            chance = [_list_chances(steps, one, node) for one in (tried, severity)]
            joint = np.einsum("n,gnj,pnk->gpjk", weight / weight.sum(), *chance)
            others = [one for one in range(self.raters) if one != bad]
            n = 2 * self.persons // self.raters
            joint = joint[:, rng.choice(others, n)].reshape(len(tried), n, -1)
            sound = joint[8].reshape(n, SCORES, SCORES).sum(axis=1)
            random = np.tile(sound, SCORES) / SCORES
            ratio = np.log(random) - np.log(joint)
            found = []
            for law in (joint[8], random):
                below = np.cumsum(law, axis=1)[None] < rng.random((drawings, n, 1))
                cell = np.minimum(below.sum(axis=2), SCORES**2 - 1)
                sums = np.stack([one[np.arange(n), cell].sum(axis=1) for one in ratio])
                found.append((sums[8], sums.min(axis=0)))
            for number, name in enumerate(("all known", "severity estimated")):
                for level in (0.05, 0.03):
                    limit = np.quantile(found[0][number], 1 - level / self.raters)
                    key = f"{name}, {level:.0%}"
                    shares.setdefault(key, []).append(float((found[1][number] > limit).mean()))
        for key, values in shares.items():
            yield key, float(np.mean(values))


def _list_chances(steps: np.ndarray, severity: np.ndarray, node: np.ndarray) -> np.ndarray:
    """Return the chances of scores, ``[severity, ability, score]``."""
    logits = np.cumsum(node[:, None] - steps - severity[:, None, None], axis=2)
    odds = np.exp(np.insert(logits, 0, 0.0, axis=2))
    return odds / odds.sum(axis=2, keepdims=True)


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows that are there."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def run(names: list[str], seeds: range, path: Path) -> None:
    """Draw and judge the sets that are not there yet."""
    done = {(row["setting"], int(row["seed"])) for row in read_rows(path)}
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if not file.tell():
            writer.writerow(COLUMNS)
        for seed, name in product(seeds, names):
            if (name, seed) not in done:
                found = Setting(name).judge(seed)
                writer.writerows([name, seed, key, float(value)] for key, value in found.items())
                file.flush()


def summarise(rows: list[dict[str, str]]) -> list[list[str]]:
    """Return one row for each outcome: share, Monte Carlo error, sets."""
    values: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        values.setdefault((row["setting"], row["outcome"]), []).append(float(row["value"]))
    return [
        [*key, f"{np.mean(some):.4f}", f"{np.std(some) / len(some) ** 0.5:.4f}", str(len(some))]
        for key, some in values.items()
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("settings", nargs="*")
    parser.add_argument("--sets", type=int, default=400)
    parser.add_argument("--rows", type=Path, default=Path("rater-rows.csv"))
    parser.add_argument("--bound", action="store_true")
    parser.add_argument("--write", action="store_true", help="count the rows into raters.csv")
    asked = parser.parse_args()
    if asked.bound:
        for one in asked.settings:
            for words, share in Setting(one).bound(asked.sets):
                print(one, words, f"{share:.3f}", sep="\t", flush=True)
    else:
        run(asked.settings, range(asked.sets), asked.rows)
        table = summarise(read_rows(asked.rows))
        for line in table:
            print(*line, sep="\t")
        if asked.write:
            with TABLE.open("w", newline="", encoding="utf-8") as out:
                header = ["setting", "outcome", "share", "error", "sets"]
                csv.writer(out).writerows([header, *table])
