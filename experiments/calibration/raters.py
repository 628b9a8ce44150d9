"""How often reports on raters name somebody in sound ratings, and a rater who marks at random.

Run ``python -m experiments.calibration.raters PERSONS ITEMS RATERS MARKS SETS [--random] [--steps
1.5]`` with one BLAS thread. Abilities have SD 1, severities SD 0.5 (``--severity``). Without
``--steps`` ratings are those of :func:`discreet.simulate_ratings`, whose steps are closer together.
Prints the share of sets with any finding of fit (level or persons), of sets in which the rater at
random is named, in which a sound one is, and in which somebody is called severe or lenient.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import replace

import numpy as np

import discreet
from discreet.analysis import study_ratings
from discreet.answers.ratings import Ratings
from discreet.report.raters import find_rater_problems


def draw(rng, persons, items, raters, marks, steps, severity):
    """Return ratings with steps so far apart."""
    if steps is None:
        return discreet.simulate_ratings(
            persons, items, raters, marks=marks, severity_sd=severity, rng=rng
        ).ratings
    severities = rng.normal(0, severity, raters)
    location = rng.normal(0, 0.5, items) * (items > 1)
    chosen = np.argsort(rng.random((persons, raters)), axis=1)[:, :marks]
    ability = rng.normal(size=persons)
    person = np.repeat(np.arange(persons), items * marks)
    item = np.tile(np.repeat(np.arange(items), marks), persons)
    rater = np.repeat(chosen[:, None, :], items, axis=1).ravel()
    level = ability[person] - location[item] - (severities - severities.mean())[rater]
    logits = np.arange(4) * level[:, None] - np.array([0, -steps, -steps, 0])
    score = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return Ratings.from_codes(person, item, score, facets={"rater": rater})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("persons", "items", "raters", "marks", "sets"):
        parser.add_argument(name, type=int)
    parser.add_argument("--random", action="store_true")
    parser.add_argument("--steps", type=float)
    parser.add_argument("--severity", type=float, default=0.5)
    options = parser.parse_args()
    size = options.persons, options.items, options.raters, options.marks
    counts = dict.fromkeys(("any finding of fit", "named", "a sound one named", "severe"), 0)
    for seed in range(options.sets):
        ratings = draw(np.random.default_rng(seed), *size, options.steps, options.severity)
        bad = ratings.facets["rater"][seed % options.raters] if options.random else ""
        if bad:
            dice = np.random.default_rng(seed + 10_000).integers(0, 4, ratings.n_ratings)
            mine = ratings.codes["rater"] == seed % options.raters
            ratings = replace(ratings, score=np.where(mine, dice, ratings.score).astype(np.int32))
        with warnings.catch_warnings(action="ignore"):
            study = study_ratings(ratings, discreet.fit(ratings))
        levels = {level for one in study.misfits for level in one.levels}
        counts["any finding of fit"] += bool(levels) or study.unexpected_persons.is_beyond
        counts["named"] += bad in levels
        counts["a sound one named"] += bool(levels - {bad})
        titles = [finding.title for finding in find_rater_problems(study)]
        counts["severe"] += any("severe" in one or "lenient" in one for one in titles)
    for name, count in counts.items():
        share = count / options.sets
        error = np.sqrt(share * (1 - share) / options.sets)
        print(f"{name:20} {share:.3f} +- {error:.3f} ({options.sets})", flush=True)


if __name__ == "__main__":
    main()
