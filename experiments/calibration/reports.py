"""How often a report names something in sound data, and how often it names what is wrong.

Run ``python -m experiments.calibration.reports [--only sound,power,dif] [--sets 400]`` with
one BLAS thread. Every set is a row of ``--rows`` when it is done, and sets that are there are
not drawn again, so that a run can be stopped. ``--write`` counts the rows into ``verdicts.csv``:
share, Monte Carlo error, sets, goal.

- sound: any finding of item fit, dependent pairs or unexpected persons, which share one 5%.
- power: an item with a slope of .65 among five with four steps (1,000 persons, locations of
  N(0, .25), or N(0, 1)) is named; 15% of 200 persons who answer 20 items by a coin are found.
- dif: three of 13 items are 1.2 logits harder for half of 1,000 persons; share of the ten sound
  items and of the three others that are confirmed.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import discreet
from discreet.analysis import correlate_residuals, measure_fit, simulate_cutoffs
from discreet.errors import DiscreetError
from discreet.items.cutoffs import FEW
from discreet.items.dependence import find_dependence
from discreet.report.findings import ANSWER_CHECKS, fit_remarks
from experiments.calibration.cutoffs import SIZES, draw_answers

TABLE = Path(__file__).with_suffix("").with_name("verdicts.csv")
CHECKS = {"items": "item fit", "pairs": "dependent items", "persons": "unexpected persons"}
SOUND = ("50 x 10", "100 x 5, 4 steps", "300 x 15", "300 x 15, 30% missing", "1000 x 40")
#: So small that a report draws 999 sets in no time; else 199, for which the level is as exact.
SMALL = SOUND[:2]
Outcomes = Mapping[str, float]


def judge_answers(answers: discreet.Responses, sets: int | None = None) -> SimpleNamespace:
    """Return what the findings of fit, pairs and persons need, as a report has it."""
    estimate = discreet.fit(answers)
    limits = simulate_cutoffs(answers, estimate, replications=sets)
    pairs = correlate_residuals(answers, estimate)
    fit = measure_fit(answers, estimate)
    counted = SimpleNamespace(
        unexpected=int(limits.unexpected.sum()), measured=int(np.isfinite(fit.persons.infit).sum())
    )
    return SimpleNamespace(
        estimate=estimate,
        fit=fit.items.align(estimate.items),
        limits=limits.align(estimate.items),
        dependence=find_dependence(pairs, limits, estimate.items),
        small_chances=limits.persons,
        abilities=counted,
    )


def count_sound(name: str, rng: np.random.Generator) -> Outcomes:
    """Say which of the three finds anything in sound answers, and whether any does."""
    study = judge_answers(draw_answers(**SIZES[name], rng=rng), None if name in SMALL else FEW)
    found = {key: any(ANSWER_CHECKS[check](study.estimate, study)) for key, check in CHECKS.items()}
    return {"any": any(found.values()), **found}


def count_slope(spread: float, rng: np.random.Generator) -> Outcomes:
    """Say whether the item with a low slope is named, and how many others are."""
    ability, difficulty = rng.normal(size=(1000, 1, 1)), rng.normal(0, spread, (1, 5, 1))
    slope = np.array([0.65, 1, 1, 1, 1])[:, None]
    logit = np.cumsum(slope * (ability - difficulty - np.linspace(-1, 1, 4)), axis=2)
    weight = np.exp(np.concatenate([np.zeros((1000, 5, 1)), logit], axis=2))
    share = np.cumsum(weight / weight.sum(axis=2, keepdims=True), axis=2)[..., :-1]
    code = (rng.random((1000, 5, 1)) > share).sum(axis=2)
    study = judge_answers(discreet.Responses.from_array(code.astype(float)), FEW)
    noisy = [fit_remarks(study, item) == ["noisy"] for item in range(5)]
    return {"named": noisy[0], "sound ones named": np.mean(noisy[1:])}


def count_careless(rng: np.random.Generator) -> Outcomes:
    """Say whether persons who answer by a coin are found."""
    ability, difficulty = rng.normal(size=(200, 1)), rng.normal(size=20)
    code = (rng.random((200, 20)) < 1 / (1 + np.exp(difficulty - ability))).astype(float)
    code[:30] = rng.integers(0, 2, (30, 20))
    study = judge_answers(discreet.Responses.from_array(code))
    return {"found": any(ANSWER_CHECKS["unexpected persons"](study.estimate, study))}


def count_dif(test: str, rng: np.random.Generator) -> Outcomes:
    """Return the shares of sound and of unsound items that are confirmed."""
    ability, difficulty = rng.normal(size=(1000, 1)), rng.normal(size=13)
    focal, differs = np.arange(1000) >= 500, np.arange(13) < 3
    logit = ability - difficulty - 1.2 * (focal[:, None] & differs)
    code = (rng.random((1000, 13)) < 1 / (1 + np.exp(-logit))).astype(float)
    table = discreet.find_dif(code, focal.astype(int).tolist(), test=test)  # type: ignore[arg-type]
    sure = table.confirmed
    return {"sound confirmed": sure[~differs].mean(), "true confirmed": sure[differs].mean()}


#: By part and setting: what draws a set and judges it.
SETTINGS = {
    "sound": {name: partial(count_sound, name) for name in SOUND},
    "power": {"slope .65 among 5, n = 1000": partial(count_slope, 0.5),
              "the same, difficulties twice as wide": partial(count_slope, 1.0),
              "15% coin-flippers, 200 x 20": count_careless},
    "dif": {test: partial(count_dif, test) for test in
            ("wald", "mantel-haenszel", "likelihood-ratio")},
}  # fmt: skip
#: Goals by part and outcome; the size of 5% is held on both sides.
GOALS = {
    ("sound", "any"): "0.022 to 0.083", ("power", "named"): "at least 0.88",
    ("power", "found"): "at least 0.80", ("dif", "sound confirmed"): "at most 0.03",
    ("dif", "true confirmed"): "at least 0.90",
}  # fmt: skip
COLUMNS = ("part", "setting", "seed", "outcome", "value")


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows that are there."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def run(part: str, seeds: range, path: Path, wanted: str = "") -> None:
    """Draw and judge the sets that are not there yet."""
    done = {(row["part"], row["setting"], int(row["seed"])) for row in read_rows(path)}
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if not file.tell():
            writer.writerow(COLUMNS)
        for setting, judge in SETTINGS[part].items():
            if wanted not in setting:
                continue
            for seed in (seed for seed in seeds if (part, setting, seed) not in done):
                try:
                    found = judge(np.random.default_rng(seed))
                except DiscreetError as error:  # answers that determine no difficulties
                    found = {f"refused ({type(error).__name__})": 1.0}
                writer.writerows([part, setting, seed, k, float(v)] for k, v in found.items())
                file.flush()


def summarise(rows: list[dict[str, str]]) -> Iterator[list[str]]:
    """Yield one row for each outcome: share, Monte Carlo error, sets, goal."""
    values: dict[tuple[str, str, str], list[float]] = {}
    for row in rows:
        key = (row["part"], row["setting"], row["outcome"])
        values.setdefault(key, []).append(float(row["value"]))
    for (part, setting, outcome), some in values.items():
        error = np.std(some) / np.sqrt(len(some))
        goal = GOALS.get((part, outcome), "")
        yield [part, setting, outcome, f"{np.mean(some):.4f}", f"{error:.4f}", str(len(some)), goal]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(SETTINGS), help="parts, separated by commas")
    parser.add_argument("--sets", type=int, default=400)
    parser.add_argument("--settings", help="only those whose name has this in it", default="")
    parser.add_argument("--first", type=int, default=0, help="seed of the first set")
    parser.add_argument("--rows", type=Path, default=Path("verdict-rows.csv"))
    parser.add_argument("--write", action="store_true", help="count the rows into verdicts.csv")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in filter(None, asked.only.split(",")):
        run(name, range(asked.first, asked.first + asked.sets), asked.rows, asked.settings)
    table = list(summarise(read_rows(asked.rows)))
    for line in table:
        print(*line, sep="\t")
    if asked.write:
        with TABLE.open("w", newline="", encoding="utf-8") as out:
            csv.writer(out).writerows(
                [["part", "setting", "outcome", "share", "error", "sets", "goal"], *table]
            )
