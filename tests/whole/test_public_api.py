"""The public surface: every promised name is there, documented, and loads lazily."""

import dataclasses
import importlib
import inspect
import pickle
import pkgutil
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet import analysis
from discreet.answers.pack import store_codes
from discreet.privacy.noise import ExactNoise
from discreet.publishing.bundle import Published
from discreet.saving import Kept
from discreet.secure import SeededSource
from stepped import hold

ROOT = Path(__file__).parents[2]

# The contract: names that users and other programs rely on.
PROMISED = {
    "Budget",
    "PrivateRasch",
    "Responses",
    "count_pairs",
    "datasets",
    "errors",
    "fit",
    "rank",
    "read_release",
    "read_responses",
    "release",
    "score",
    "simulate",
}


def test_every_promised_name_is_public():
    assert set(discreet.__all__) >= PROMISED


@pytest.mark.parametrize("name", sorted(set(discreet.__all__) - {"__version__"}))
def test_every_public_name_loads_and_is_documented(name):
    value = getattr(discreet, name)
    assert inspect.getdoc(value), f"discreet.{name} has no docstring"


def test_every_public_name_has_an_example():
    def has_example(value):
        parts = vars(value).values() if inspect.isclass(value) else ()
        return any(">>>" in (inspect.getdoc(part) or "") for part in (value, *parts))

    values = {name: getattr(discreet, name) for name in discreet.__all__ if name != "__version__"}
    callables = {name: value for name, value in values.items() if callable(value)}
    assert not {name for name, value in callables.items() if not has_example(value)}


def test_every_public_name_has_a_home_and_nothing_else_has():
    modules = {name for name in discreet.__all__ if inspect.ismodule(getattr(discreet, name))}
    assert set(discreet._HOME) == set(discreet.__all__) - {"__version__"} - modules


def names_in_documents():
    """Every ``discreet.something`` that a document names, with its first word."""
    pages = [ROOT / "README.md", ROOT / "SECURITY.md", *(ROOT / "docs").rglob("*.md")]
    text = "\n".join(page.read_text() for page in pages)
    found = set(re.findall(r"(?<![\w./-])discreet((?:\.[A-Za-z_]\w*)+)(?!\w|://)", text))
    return sorted({name.lstrip(".") for name in found} - {"NAME"})


def test_every_name_in_the_documents_exists():
    assert {"fit", "figures", "analysis", "datasets.lsat"} <= set(names_in_documents())
    for name in names_in_documents():
        assert pydoc.locate(f"discreet.{name}") is not None, name


def test_every_name_and_module_in_the_documents_is_reached_by_importing_the_package_alone():
    first = sorted({name.split(".")[0] for name in names_in_documents()})
    for name in first:
        # Asked of the loader itself: the attribute may be there because another test set it.
        assert discreet.__getattr__(name) is getattr(discreet, name)


def with_steps(estimate, steps):
    return dataclasses.replace(estimate, steps=steps)


def public_results():
    """A result of every kind, of many persons and items with long names."""
    items = [f"an item with a long name, number {number}" for number in range(120)]
    sim = discreet.simulate(persons=600, items=120, rng=np.random.default_rng(1))
    answers = discreet.Responses.from_array(sim.responses.to_array(), items=items)
    estimate = discreet.fit(answers)
    half = discreet.fit(discreet.Responses.from_array(answers.to_array()[:300], items=items))
    known = dict(zip(items[:100], estimate.difficulty[:100], strict=True))
    noise = ExactNoise(SeededSource(1))
    budget = discreet.Budget(epsilon=1.0, delta=1e-6)
    compared = discreet.simulate_comparisons(300, 120, 20, rng=np.random.default_rng(1))
    objects = [f"object {number}" for number in range(120)]
    published = discreet.release(answers, budget, items=items, noise=noise)
    fitted = analysis.measure_fit(answers, estimate)
    small = answers.select(items[:5])
    grouped = discreet.Responses(small.items, None, small.store, {"group": ["a", "b"] * 300})
    groups = {"groups": {"group": ["a", "b"]}, "noise": noise}
    dimensions = analysis.find_dimensions(answers, estimate, simulations=1)
    letters = pa.table([[str(cell) for cell in column] for column in answers.to_array().T], items)
    chosen = discreet.Responses.from_dataframe(letters, key=dict.fromkeys(items, "1"))
    rated = discreet.Responses.from_store(store_codes(answers.to_array() * 2, [2] * 120), items)
    steps, _ = hold(1, 100, (2, 2, 2))
    marks = discreet.simulate_ratings(60, 3, 4, rng=np.random.default_rng(2)).ratings
    marked = analysis.study_ratings(marks, discreet.fit(marks))
    rated_fit = analysis.measure_fit(rated, {item: [-1.0, 1.0] for item in items})
    return [
        sim, answers, estimate, published, published.guarantee, published.noisy, budget, compared,
        marks, marked.persons, marked.facets["rater"], marked.find_bias("rater", "item"),
        discreet.count_pairs(answers),
        discreet.rank(estimate, top=60),
        discreet.rank_ranges(estimate),
        discreet.compare_items(estimate, items[0], items[1]),
        discreet.score(answers, estimate), discreet.predict_scores(answers, estimate),
        discreet.leaderboard(small),
        discreet.Scale.from_points({0: 500, 1: 600}),
        discreet.fit(answers, anchors=known),
        discreet.find_drift([estimate, estimate]),
        discreet.link_calibrations(estimate, half),
        discreet.create_bank(estimate, scale="mathematics", source="first"),
        discreet.plan(persons=1000, items=50, answers=20, epsilon=1.0),
        compared.comparisons,
        discreet.count_comparisons(compared.comparisons),
        discreet.rank_comparisons(compared.comparisons),
        discreet.release_comparisons(
            compared.comparisons, budget, items=objects, max_comparisons=20, noise=noise
        ),
        fitted, fitted.items, fitted.persons, fitted.unexpected, fitted.item_reliability,
        rated_fit.categories,
        analysis.compare_step_models(steps),
        analysis.correlate_residuals(answers, estimate),
        (differences := analysis.find_dif(answers, "mean score")), differences.omnibus,
        analysis.resolve_dif(answers, "mean score"),
        analysis.simulate_cutoffs(answers, estimate, replications=19),
        analysis.measure_testlets(small, dict.fromkeys(items[:2], "text")),
        analysis.find_mislabelled(answers, estimate),
        dimensions, dimensions.contrast,
        analysis.analyse_distractors(chosen),
        analysis.run_wald(answers),
        analysis.run_andersen(answers),
        analysis.find_group_means(answers, estimate, "mean score"),
        analysis.run_martin_loef(answers), analysis.measure_alpha(answers),
        discreet.score(answers, estimate, plausible=1).regression,
        analysis.trace_information(estimate), analysis.tabulate_scores(estimate),
        discreet.release_means(grouped, dict.fromkeys(items[:5], 0.0), budget, **groups),
        discreet.release_dif(grouped, budget, items=items[:5], **groups),
        (checked := analysis.check_model(answers, estimate)), checked.tests[0], checked.study,
        analysis.compare_fit(
            checked, dataclasses.replace(checked, estimate=with_steps(estimate, (2,) + (1,) * 119))
        ),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def results():
    return public_results()


def test_every_public_result_shows_itself_in_one_short_line(results):
    for result in results:
        shown = repr(result)
        assert len(shown) < 1200, f"{type(result).__name__}: {len(shown)} characters"
        assert "\n" not in shown
        assert "array(" not in shown


def test_every_result_of_an_analysis_is_a_table_for_other_programs(results):
    packages = ("items", "persons", "scales", "planning", "report")
    tables = [result for result in results if type(result).__module__.split(".")[1] in packages]
    assert len(tables) >= 12
    for result in tables:
        if isinstance(result, discreet.Plan | discreet.Scale):  # no table
            continue
        frame, columns = result.to_dataframe(), result.to_dict()
        assert list(frame.columns) == list(columns)
        assert len(frame) == max(
            len(one) if isinstance(one, list) else 1 for one in columns.values()
        )


def test_every_public_value_is_among_the_results_that_show_themselves_shortly(results):
    values = {
        value
        for module in (discreet, analysis)
        for value in (getattr(module, name) for name in module.__all__)
        if dataclasses.is_dataclass(value) and isinstance(value, type)
    }
    assert values - {type(result) for result in results} == {
        discreet.Ledger,
        discreet.Inspection,  # of a table, before there is a result
        discreet.Reading,  # what a user states, not a result
        discreet.RoutingDesign,
    }


@pytest.mark.everywhere
def test_every_result_is_saved_loaded_and_pickled_as_it_was(results, tmp_path):
    saved = [result for result in results if isinstance(result, Kept)]
    assert len(saved) >= 24
    for number, result in enumerate(saved):
        path = tmp_path / f"{number}.json"
        result.save(path)
        kind = type(result)
        for again in (kind.load(path), pickle.loads(pickle.dumps(result))):  # noqa: S301
            assert type(again) is kind
            assert again == result, kind.__name__
            assert again != object()
            assert repr(again) == repr(result)


def test_counts_and_releases_are_loaded_as_they_were_saved(results, tmp_path):
    saved = [one for one in results if isinstance(one, discreet.PairCounts | Published)]
    assert len(saved) == 3
    for number, result in enumerate(saved):
        result.save(tmp_path / str(number))
        assert discreet.load(tmp_path / str(number)) == result
    assert saved[0] != saved[1] != saved[2]
    rows = np.eye(3, dtype=int)
    assert discreet.count_pairs(rows) == discreet.count_pairs(rows)
    assert discreet.count_pairs(rows) != discreet.count_pairs(rows[::-1] * [[1], [0], [1]])
    wide = discreet.count_pairs(np.tile([1, 0, np.nan], (2, 800)))
    assert discreet.count_pairs(np.tile([1, 0, np.nan], (2, 800))) == wide


def test_every_result_with_a_table_can_be_saved_or_has_a_format_of_its_own(results):
    own = {"Simulation", "SimulatedComparisons", "Responses", "Comparisons", "Release", "Budget"}
    own |= {
        "Ratings",
        "PairCounts",
        "ComparisonCounts",
        "Published",
        "PublishedRanking",
        "Guarantee",
    }
    others = {type(result).__name__ for result in results if not isinstance(result, Kept)}
    assert others <= own, others - own


def test_dir_lists_the_public_names():
    assert set(dir(discreet)) >= set(discreet.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError):
        _ = discreet.nonsense


@pytest.mark.everywhere
def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, discreet; print(sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    for heavy in ("numpy", "scipy", "numba", "pyarrow", "duckdb", "sklearn", "matplotlib"):
        assert f"'{heavy}'" not in loaded


def modules():
    return [m.name for m in pkgutil.walk_packages(discreet.__path__, "discreet.")]


@pytest.mark.parametrize("name", [n for n in modules() if not n.endswith("__main__")])
def test_every_module_says_what_it_is_for(name):
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    for public in getattr(module, "__all__", []):
        assert hasattr(module, public), f"{name}.__all__ names {public}, which is not there"
