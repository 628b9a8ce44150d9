"""Distances of the library's numbers from those of R's packages and of independent solvers.

In: a folder with tables and what other programs say of them: ``tests/data/r``, whose scripts in R
made it, or a folder of the same form. Out: one `Distance` after the other, for
``python -m experiments.calibration.rating_scales references`` and for tests.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from bench.conditional import collect_steps

import discreet
from discreet.analysis import compare_step_models, measure_fit, run_andersen
from discreet.answers.pack import store_codes
from discreet.models.conditional.estimator import maximise_conditional
from discreet.persons.scoring import tabulate_scores

BUNDLED = Path(__file__).parents[2] / "tests" / "data" / "r"
MODELS = {
    "PCM": "partial-credit",
    "RSM": "rating-scale",
    "pcm": "partial-credit",
    "rsm": "rating-scale",
}
EXACT, ROUGH = 1e-6, 1e-3
"""Goals: other programs at the maximum, and eRm, which stops before it."""


@dataclass(frozen=True)
class Distance:
    """How far some numbers are from another program's at most."""

    what: str
    program: str
    found: float

    @property
    def goal(self) -> float:
        """How far they may be."""
        return ROUGH if self.program == "eRm" else EXACT


def read_rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def read_column(rows, column):
    return np.array([float(row[column] or "nan") for row in rows])


def load_table(folder, name):
    """Return answers to items with steps: scores from 0, blank where there is none."""
    with (folder / f"{name}.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    codes = np.array([[-1 if cell == "" else int(cell) for cell in row[1:]] for row in rows])
    store = store_codes(codes, codes.max(axis=0).tolist())
    return discreet.Responses.from_store(store, header[1:])


def largest(ours, theirs):
    """Return the largest difference; where one has no number, the other may have none."""
    ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
    if ours.shape != theirs.shape or (np.isnan(ours) != np.isnan(theirs)).any():
        return np.inf
    return float(np.nanmax(np.abs(ours - theirs)))


# -- items with steps ------------------------------------------------------------------------


def compare_steps(folder, name) -> Iterator[Distance]:
    """Compare everything that a folder has of a table of items with steps."""
    answers = load_table(folder, name)
    yield from compare_thresholds(folder, name, answers)
    yield from compare_likelihoods(folder, name, answers)
    yield from compare_fit(folder, name, answers)
    yield from compare_persons(folder, name, answers)
    yield from compare_andersen(folder, name, answers)


def centre_all(estimate):
    """Return thresholds of mean zero and their errors, by item and step.

    The library centres locations. Where items differ in their steps the errors differ too, and
    turning them needs the whole covariance.
    """
    there = np.argwhere(~np.isnan(estimate.thresholds))
    centring = np.eye(len(there)) - 1 / len(there)
    value = centring @ estimate.thresholds[tuple(there.T)]
    error = np.sqrt((centring @ estimate.threshold_covariance @ centring).diagonal())
    names = [(estimate.items[item], str(step + 1)) for item, step in there]
    return dict(zip(names, zip(value, error, strict=True), strict=True))


def compare_thresholds(folder, name, answers):
    rows = [
        row for kind in ("own", "thresholds") for row in read_rows(name_file(folder, name, kind))
    ]
    for model in sorted({row["model"] for row in rows}):
        here = centre_all(discreet.fit(answers, method="conditional", model=MODELS[model]))
        for program in ("psychotools", "own"):
            theirs = [row for row in rows if (row["model"], row["program"]) == (model, program)]
            ours = np.array([here[row["item"], row["step"]] for row in theirs])
            complete = len(theirs) == len(here)
            for words, column, values in zip(
                ("thresholds", "their errors"), ("threshold", "se"), ours.T, strict=True
            ):
                found = largest(values, read_column(theirs, column)) if complete else np.inf
                yield Distance(f"{name}, {model}: {words}", program, found)


def name_file(folder, name, kind):
    return folder / "ref" / f"{name}_{kind}.csv"


def compare_likelihoods(folder, name, answers):
    rows = read_rows(name_file(folder, name, "fits"))
    theirs = {row["model"]: row for row in rows if row["program"].startswith("psychotools")}
    for model, row in theirs.items():
        collected = collect_steps(answers.to_array())
        found = maximise_conditional(collected, shares_steps=model == "RSM", start=None)
        same = found.free == int(row["npar"])
        away = abs(found.log_likelihood - float(row["loglik"])) if same else np.inf
        yield Distance(f"{name}, {model}: log-likelihood", "psychotools", away)
    if "RSM" in theirs:
        value = [float(theirs[model]["loglik"]) for model in ("PCM", "RSM")]
        found = largest(compare_step_models(answers).log_likelihoods, value)
        yield Distance(f"{name}: both likelihoods compared", "psychotools", found)


def compare_fit(folder, name, answers):
    found = measure_fit(answers, discreet.fit(answers, method="conditional"))
    rows = read_rows(name_file(folder, name, "itemfit_pcm_own"))
    same = list(found.items.items) == [row["item"] for row in rows]
    assert same, f"{name}: other items than in the reference"
    yield Distance(f"{name}: answers", "own", largest(found.items.answers, read_column(rows, "n")))
    for kind, end in product(("infit", "outfit"), ("", "_t")):
        theirs = read_column(rows, kind + (end or "_msq"))
        away = largest(getattr(found.items, kind + end), theirs)
        yield Distance(f"{name}: {kind}{end.replace('_', ' ')}", "own", away)
    wanted = read_column(read_rows(name_file(folder, name, "lrtest_pcm")), "LR")[-1]
    away = abs(found.person_reliability.reliability - wanted)
    yield Distance(f"{name}: reliability of persons", "eRm", away)


def compare_persons(folder, name, answers):
    estimate = discreet.fit(answers, method="conditional")
    rows = read_rows(name_file(folder, name, "persons_pcm_own"))
    for method, column, error in (("ml", "ml", "ml_se"), ("warm", "wle", "wle_se_info")):
        table = tabulate_scores(estimate, method=method)
        # The references centre all thresholds, we the locations.
        ability = table.ability - np.nanmean(estimate.thresholds)
        for words, ours, theirs in (("", ability, column), (", errors", table.se, error)):
            away = largest(ours, read_column(rows, theirs))
            yield Distance(f"{name}: persons by score, {method}{words}", "own", away)


def compare_andersen(folder, name, answers):
    """Compare Andersen's test where eRm leaves out the items that we leave out."""
    for row in read_rows(name_file(folder, name, "lrtest_pcm"))[:-1]:
        with warnings.catch_warnings(action="ignore"):
            try:
                test = run_andersen(answers, f"{row['split']} score")
            except discreet.errors.DisconnectedItems:
                continue  # eRm estimates what the answers of a group do not determine
        if test.degrees == int(row["df"]):
            away = abs(test.statistic - float(row["LR"]))
            yield Distance(f"{name}: Andersen, {row['split']} score", "eRm", away)


# -- raters, booklets, weights ---------------------------------------------------------------


def compare_ratings(table, reference) -> Iterator[Distance]:
    """Compare a table of ratings with a file of reference values, named after its model."""
    model = MODELS[reference.stem.split("_")[-2]]
    rows = [row for row in read_rows(reference) if row["facet"] != "step"]
    for method, column in (("refined", "pair_winv"), ("conditional", "cml")):
        found = measure_ratings(table, model, method)
        ours = np.array([found[row["facet"], row["level"]] for row in rows]).T
        away = largest(ours[0], read_column(rows, column))
        yield Distance(f"{table.stem}: {method} measures", "own", away)
        if method == "conditional":
            away = largest(ours[1], read_column(rows, "cml_se"))
            yield Distance(f"{table.stem}: {method} errors", "own", away)


def measure_ratings(table, model, method):
    """Return measures and errors by facet and level."""
    words = {"method": method, "within": None, "model": model}
    estimate = discreet.fit(table, facets=["rater"], response="score", **words)
    facet, found = estimate.facets["rater"], {}
    for level, value, se in zip(facet.levels, facet.measure, facet.se, strict=True):
        found["rater", level] = value, se
    for number, item in enumerate(estimate.items):
        found["item", item] = estimate.difficulty[number], estimate.se[number]
        for step, value in enumerate(estimate.thresholds[number]):
            error = estimate.threshold_se[number, step]
            found["itemstep", f"{item}:{step + 1}"] = value, error
    return found


def compare_difficulties(folder, name, program, **words) -> Iterator[Distance]:
    """Compare conditional difficulties of right and wrong answers and their errors."""
    rows = read_rows(name_file(folder, name, "difficulties"))
    found = discreet.fit(folder / f"{name}.csv", method="conditional", **words)
    for words, ours, column in (
        ("difficulties", found.difficulty, "value"),
        ("errors", found.se, "se"),
    ):
        yield Distance(f"{name}: {words}", program, largest(ours, read_column(rows, column)))


DESIGN = {"weight": "weight", "strata": "stratum", "cluster": "school"}


def compare_bundled() -> Iterator[Distance]:
    """Compare all bundled tables."""
    for name in ("partial_credit", "rating_scale"):
        yield from compare_steps(BUNDLED, name)
    for name, model in (("ratings", "pcm"), ("guilford", "rsm")):
        reference = name_file(BUNDLED, name, f"mfrm_{model}_ref")
        yield from compare_ratings(BUNDLED / f"{name}.csv", reference)
    yield from compare_difficulties(BUNDLED, "booklets", "own")
    yield from compare_difficulties(BUNDLED, "weighted", "survey", **DESIGN)
