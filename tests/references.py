"""What R says of tables of answers, and the library beside it: bundled tables, and real ones.

``data/r`` has simulated tables and what R says of them (its scripts are beside them). Real tables
that may not be distributed are read where they lie beside the repository.
"""

import csv
import warnings
from pathlib import Path

import numpy as np
import pytest
from bench.conditional import collect_steps

import discreet
from discreet.analysis import compare_step_models, measure_fit, run_andersen
from discreet.answers.pack import store_codes
from discreet.models.conditional.estimator import maximise_conditional
from discreet.persons.scoring import tabulate_scores

BUNDLED = Path(__file__).parent / "data" / "r"
BESIDE = Path(__file__).parents[1].parent / "shared" / "data"
SETS = ("partial_credit", "rating_scale")
REAL_SETS = ("verbal_aggression", "pcmdat", "pcmdat2", "rsmdat")
RATINGS = {"ratings": "pcm", "guilford": "rsm"}
REAL_RATINGS = ("ratings1", "ratings2", "cqc03", "cqc04")
MODELS = {"PCM": "partial-credit", "RSM": "rating-scale"}
TIMSS = "timss2011_aut_math_long.csv.gz"
LEFT_OUT = {"partial_credit": ("P4",), "verbal_aggression": ("S3DoShout",), "pcmdat2": ()}
"""Items without answers in all categories in both groups of Andersen's test."""


def need(*names):
    """Return the places of files that may not be distributed, or skip the test."""
    places = [BESIDE / name for name in names]
    for place in places:
        if not place.exists():
            pytest.skip(f"{place.name} may not be distributed and is not beside the repository")
    return places


def find_timss(_=None):
    """Return the place of real answers to rotated booklets."""
    return need(TIMSS)[0]


def find_log(_=None):
    """Return the place of a real log, very sparse."""
    return need("assist2009_long.csv.gz")[0]


def simulate_booklets(folder):
    """Write the answers of 1,500 persons to a rotated fifth of 174 items, as a long table."""
    made = discreet.simulate(1500, 174, 0.2, design="booklets", rng=np.random.default_rng(1))
    codes = made.responses.to_array()
    rows = ((f"p{n}", made.responses.items[i], codes[n, i]) for n, i in np.argwhere(codes >= 0))
    with (folder / "booklets.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("person", "item", "response"), *rows])
    return folder / "booklets.csv"


def find_folder(name):
    return BUNDLED if name in SETS else BESIDE / "polytomous"


def read_rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def load_set(name):
    """Return the answers of a set of items with steps."""
    with (find_folder(name) / f"{name}.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    codes = np.array([[-1 if cell == "" else int(cell) for cell in row[1:]] for row in rows])
    store = store_codes(codes, codes.max(axis=0).tolist())
    return discreet.Responses.from_store(store, header[1:])


def load_reference(name, kind):
    """Return the columns of a table of reference values, texts as they are."""
    rows = read_rows(find_folder(name) / "ref" / f"{name}_{kind}.csv")
    return {column: tuple(row[column] for row in rows) for column in rows[0]}


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


def check_thresholds(name):
    reference = find_folder(name) / "ref"
    rows = read_rows(reference / f"{name}_own.csv") + read_rows(
        reference / f"{name}_thresholds.csv"
    )
    answers = load_set(name)
    for model in {row["model"] for row in rows}:
        here = centre_all(discreet.fit(answers, method="conditional", model=MODELS[model]))
        for program in ("own", "psychotools"):
            theirs = [row for row in rows if (row["model"], row["program"]) == (model, program)]
            assert len(theirs) == len(here)
            for row in theirs:
                wanted = float(row["threshold"]), float(row["se"])
                assert here[row["item"], row["step"]] == pytest.approx(wanted, abs=1e-6)


def check_likelihoods(name):
    answers, reference = load_set(name), load_reference(name, "fits")
    codes = answers.to_array()
    columns = (reference[column] for column in ("program", "model", "npar", "loglik"))
    rows = [row for row in zip(*columns, strict=True) if row[0].startswith("psychotools")]
    theirs = {model: numbers for _, model, *numbers in rows}
    for model, (free, value) in theirs.items():
        found = maximise_conditional(collect_steps(codes), shares_steps=model == "RSM", start=None)
        assert found.log_likelihood == pytest.approx(float(value), abs=1e-6)
        assert found.free == int(free)
    if "RSM" in theirs:
        test = compare_step_models(answers)
        assert test.free == tuple(int(theirs[model][0]) for model in MODELS)
        wanted = [float(theirs[model][1]) for model in MODELS]
        assert test.log_likelihoods == pytest.approx(wanted, abs=1e-5)


def check_fit(name):
    answers = load_set(name)
    fit = measure_fit(answers, discreet.fit(answers, method="conditional"))
    reference = load_reference(name, "itemfit_pcm_own")
    assert fit.items.items == reference["item"]
    assert fit.items.answers.tolist() == [int(value) for value in reference["n"]]
    for ours, theirs in (("infit", "infit_msq"), ("outfit", "outfit_msq")):
        wanted = [float(value) for value in reference[theirs]]
        np.testing.assert_allclose(getattr(fit.items, ours), wanted, atol=2e-4)
        standardised = [float(value) for value in reference[f"{ours}_t"]]
        np.testing.assert_allclose(getattr(fit.items, f"{ours}_t"), standardised, atol=2e-3)
    wanted = float(load_reference(name, "lrtest_pcm")["LR"][-1])
    assert fit.person_reliability.reliability == pytest.approx(wanted, abs=2e-3)


def check_persons(name):
    estimate = discreet.fit(load_set(name), method="conditional")
    reference = load_reference(name, "persons_pcm_own")
    for method, column, error in (("ml", "ml", "ml_se"), ("warm", "wle", "wle_se_info")):
        table = tabulate_scores(estimate, method=method)
        assert table.score.tolist() == [int(value) for value in reference["score"]]
        centre = np.nanmean(estimate.thresholds)
        for found, told in ((table.ability - centre, column), (table.se, error)):
            wanted = np.array([float(value or "nan") for value in reference[told]])
            np.testing.assert_allclose(found, wanted, atol=1e-4, equal_nan=True)


def check_andersen(name):
    answers, reference = load_set(name), load_reference(name, "lrtest_pcm")
    for split in ("median", "mean"):
        row = reference["split"].index(split)
        with warnings.catch_warnings(action="ignore"):
            test = run_andersen(answers, f"{split} score")
        assert test.statistic == pytest.approx(float(reference["LR"][row]), abs=1e-3)
        assert test.degrees == int(reference["df"][row])
        assert test.excluded == LEFT_OUT[name]


def measure_ratings(path, model, method):
    """Return measures of a table of ratings and their errors, by facet and level."""
    model = "rating-scale" if model == "rsm" else "partial-credit"
    words = {"method": method, "within": None, "model": model}
    estimate = discreet.fit(path, facets=["rater"], response="score", **words)
    facet, found = estimate.facets["rater"], {}
    for level, value, se in zip(facet.levels, facet.measure, facet.se, strict=True):
        found["rater", level] = value, se
    for number, item in enumerate(estimate.items):
        found["item", item] = estimate.difficulty[number], estimate.se[number]
        for step, value in enumerate(estimate.thresholds[number]):
            error = estimate.threshold_se[number, step]
            found["itemstep", f"{item}:{step + 1}"] = value, error
    return found


def check_ratings(path, reference, model, within):
    """Compare pairwise measures, and conditional ones with their errors."""
    rows = [row for row in read_rows(reference) if row["facet"] != "step"]
    assert len(rows) >= 8
    for method, column in (("refined", "pair_winv"), ("conditional", "cml")):
        found = measure_ratings(path, model, method)
        for row in rows:
            value, error = found[row["facet"], row["level"]]
            assert value == pytest.approx(float(row[column]), abs=within)
            if method == "conditional":
                assert error == pytest.approx(float(row["cml_se"]), abs=within)
