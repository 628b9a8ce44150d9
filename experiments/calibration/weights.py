"""Coverage of 95% intervals under a stratified cluster design, with and without weights.

``python -m experiments.calibration.weights [SAMPLES]`` draws samples of schools from one population
and prints how often intervals contain the census value, the fit of the whole population:

* ``ability``: the model holds, and the weights depend on the ability of the stratum;
* ``dif``: two items are easier in the oversampled stratum, so that only the weighted fit estimates
  the census;
* ``means``: the mean abilities of two language groups; the second is larger in the stratum that is
  oversampled. The target is the mean of the whole population.

``python -m experiments.calibration.weights SAMPLES --tests`` prints how often tests with weights
reject at 5% where the model holds: Andersen's test by score and by language, and per item tests of
difficulty by calibrations (Wald), at equal scores (Mantel-Haenszel) and with the item split by
group (likelihood ratio); Martin-Löf's test of the easier against the harder half; and how often a
report with simulated limits of fit raises any alarm.

``python -m experiments.calibration.weights SAMPLES --parts`` prints how often Martin-Löf's test at
5% rejects, with weights and without, where every other item measures an ability that correlates
with the other.
"""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa

import discreet
from discreet.analysis import (
    correlate_residuals,
    find_group_means,
    measure_fit,
    run_andersen,
    run_martin_loef,
    simulate_cutoffs,
)
from discreet.answers.responses import Responses

SCHOOLS = (400, 1600)
"""Schools of the two strata of the population."""
SAMPLED = (20, 20)
PUPILS = 12
DIFFICULTY = np.linspace(-1.5, 1.5, 8)
SHIFT = np.array([0.8, 0, 0, -0.6, 0, 0, 0, 0])
"""How much harder items are in the oversampled stratum, in the setting ``dif``."""


def draw_population(rng: np.random.Generator, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return answers ``[school, pupil, item]`` and the stratum of every school."""
    stratum = np.repeat([0, 1], SCHOOLS)
    school = rng.normal(0, 0.6, len(stratum)) + np.where(stratum == 0, 0.8, -0.2)
    ability = school[:, None] + rng.normal(0, 0.9, (len(stratum), PUPILS))
    difficulty = DIFFICULTY + np.where(stratum[:, None] == 0, shift, 0.0)
    logit = ability[:, :, None] - difficulty[:, None, :]
    return rng.random(logit.shape) < 1 / (1 + np.exp(-logit)), stratum


def make_table(right: np.ndarray, stratum: np.ndarray, weight: np.ndarray) -> pa.Table:
    """Return a row for every pupil of these schools."""
    schools = len(right)
    columns = {
        "id": np.arange(schools * PUPILS),
        "s": np.repeat(stratum, PUPILS),
        "school": np.repeat(np.arange(schools), PUPILS),
        "w": np.repeat(weight, PUPILS),
    }
    items = right.reshape(schools * PUPILS, -1).astype(int)
    return pa.table({**columns, **{f"q{i}": column for i, column in enumerate(items.T)}})


def measure_coverage(shift: np.ndarray, samples: int, method: str) -> tuple[float, float]:
    """Return the coverage with weights and without."""
    rng = np.random.default_rng(20)
    right, stratum = draw_population(rng, shift)
    census = discreet.fit(right.reshape(-1, right.shape[2]).astype(int), method=method).difficulty
    hits = np.zeros((2, samples))
    for sample in range(samples):
        chosen = [
            rng.choice(np.flatnonzero(stratum == h), number, replace=False)
            for h, number in enumerate(SAMPLED)
        ]
        weight = np.repeat([SCHOOLS[h] / SAMPLED[h] for h in (0, 1)], SAMPLED)
        rows = np.concatenate(chosen)
        for place, values in enumerate((weight, np.ones(len(rows)))):
            table = make_table(right[rows], stratum[rows], values)
            estimate = discreet.fit(table, weight="w", strata="s", cluster="school", method=method)
            low, high = estimate.interval().T
            hits[place, sample] = np.mean((low <= census) & (census <= high))
    weighted, plain = hits.mean(axis=1)
    return float(weighted), float(plain)


def measure_mean_coverage(samples: int) -> tuple[float, float]:
    """Return the coverage of group means with weights and without."""
    rng = np.random.default_rng(21)
    right, stratum = draw_population(rng, 0 * SHIFT)
    share = np.where(stratum == 0, 0.6, 0.2)[:, None]
    language = np.where(rng.random(right.shape[:2]) < share, "b", "a")
    answers = _name_languages(right, stratum, np.ones(len(right)), language)
    census = find_group_means(answers, discreet.fit(answers), "language").mean
    hits = np.zeros((2, samples))
    for sample in range(samples):
        chosen = [
            rng.choice(np.flatnonzero(stratum == h), number, replace=False)
            for h, number in enumerate(SAMPLED)
        ]
        weight = np.repeat([SCHOOLS[h] / SAMPLED[h] for h in (0, 1)], SAMPLED)
        rows = np.concatenate(chosen)
        for number, values in enumerate((weight, np.ones(len(rows)))):
            answers = _name_languages(right[rows], stratum[rows], values, language[rows])
            means = find_group_means(answers, discreet.fit(answers), "language")
            hits[number, sample] = np.mean((means.lower <= census) & (census <= means.upper))
    weighted, plain = hits.mean(axis=1)
    return float(weighted), float(plain)


def measure_sizes(samples: int) -> dict[str, float]:
    """Return the share of rejections at 5% where the model holds, of tests with weights."""
    rng = np.random.default_rng(22)
    right, stratum = draw_population(rng, 0 * SHIFT)
    share = np.where(stratum == 0, 0.6, 0.2)[:, None]
    language = np.where(rng.random(right.shape[:2]) < share, "b", "a")
    weight = np.repeat([SCHOOLS[h] / SAMPLED[h] for h in (0, 1)], SAMPLED)
    rows = []
    for _ in range(samples):
        chosen = np.concatenate(
            [
                rng.choice(np.flatnonzero(stratum == h), number, replace=False)
                for h, number in enumerate(SAMPLED)
            ]
        )
        # Weights also differ within a stratum, as they do after non-response.
        own = weight * rng.uniform(0.5, 1.5, len(weight))
        answers = _name_languages(right[chosen], stratum[chosen], own, language[chosen])
        estimate = discreet.fit(answers)
        wald, matched, ratio = (
            discreet.find_dif(answers, "language", test=test).omnibus.p_value
            for test in ("wald", "mantel-haenszel", "likelihood-ratio")
        )
        limits = simulate_cutoffs(answers, estimate, replications=199, rng=rng)
        fit, pairs = measure_fit(answers, estimate).items, correlate_residuals(answers, estimate)
        alarms = [
            (getattr(fit, name) < getattr(limits, name)[:, 0])
            | (getattr(fit, name) > getattr(limits, name)[:, 1])
            for name in ("infit", "outfit")
        ]
        is_alarm = np.any(alarms) or np.triu(pairs.q3 > limits.q3, 1).any()
        rows.append(
            {
                "Andersen by score": run_andersen(answers).p_value < 0.05,
                "Andersen by language": run_andersen(answers, "language").p_value < 0.05,
                "Wald per item": np.mean(wald < 0.05),
                "Mantel-Haenszel per item": np.mean(matched < 0.05),
                "split item per item": np.mean(ratio < 0.05),
                "Martin-Löf": run_martin_loef(answers).p_value < 0.05,
                "any alarm by simulated limits": is_alarm or limits.unexpected.any(),
            }
        )
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def measure_parts(samples: int, correlation: float) -> dict[str, float]:
    """Return the share of rejections of Martin-Löf's test: two splits, with weights and without."""
    rng = np.random.default_rng(23)
    stratum = np.repeat([0, 1], SAMPLED)
    mix = np.linalg.cholesky([[1, correlation], [correlation, 1 + 1e-12]]).T
    weight = np.repeat([SCHOOLS[h] / SAMPLED[h] for h in (0, 1)], SAMPLED)
    splits = {"halves": "median difficulty", "every other": ["q0", "q2", "q4", "q6"]}
    rows = []
    for _ in range(samples):
        school = rng.normal(0, 0.6, (len(stratum), 2)) @ mix + np.where(stratum, -0.2, 0.8)[:, None]
        ability = school[:, None] + rng.normal(0, 0.9, (len(stratum), PUPILS, 2)) @ mix
        logit = ability[:, :, np.arange(len(DIFFICULTY)) % 2] - DIFFICULTY
        right = rng.random(logit.shape) < 1 / (1 + np.exp(-logit))
        own = weight * rng.uniform(0.5, 1.5, len(weight))
        answers = _name_languages(right, stratum, own, np.full(right.shape[:2], "a"))
        plain = Responses(answers.items, answers.persons, answers.store)
        rows.append(
            {
                f"{name}, {kind}": run_martin_loef(table, split).p_value < 0.05
                for name, split in splits.items()
                for kind, table in (("weighted", answers), ("unweighted", plain))
            }
        )
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def _name_languages(
    right: np.ndarray, stratum: np.ndarray, weight: np.ndarray, language: np.ndarray
) -> Responses:
    table = make_table(right, stratum, weight).append_column("language", [language.ravel()])
    answers = Responses.from_dataframe(table, group=["s", "school", "w", "language"])
    return answers.weigh(weight="w", strata="s", cluster="school")


def main(samples: int) -> None:
    """Print a table."""
    print("setting  method       weighted  unweighted")
    for setting, shift in (("ability", 0 * SHIFT), ("dif", SHIFT)):
        for method in ("conditional", "refined", "spectral", "marginal"):
            weighted, plain = measure_coverage(shift, samples, method)
            print(f"{setting:8} {method:12} {weighted:.3f}     {plain:.3f}", flush=True)
    weighted, plain = measure_mean_coverage(samples)
    print(f"means    {'warm':12} {weighted:.3f}     {plain:.3f}", flush=True)


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()] or [400]
    if "--parts" in sys.argv:
        for correlation in (1.0, 0.8, 0.5):
            for name, share in measure_parts(numbers[0], correlation).items():
                print(f"{correlation:.1f}  {name:24} {share:.3f}", flush=True)
    elif "--tests" in sys.argv:
        for name, share in measure_sizes(numbers[0]).items():
            print(f"{name:30} {share:.3f}")
    else:
        main(numbers[0])
