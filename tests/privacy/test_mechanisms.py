"""The registry of mechanisms: one entry each, read by release, plan, audit, help and page.

The worked example of CONTRIBUTING.md shows that one file and one line in each table make a
mechanism.
"""

import json
import re
import sys
from pathlib import Path
from runpy import run_path

import numpy as np
import pytest

import discreet as library
from commandline import discreet
from discreet.cli.options import name_mechanisms
from discreet.errors import BadUsage
from discreet.models.noisy.released import FITS, fit_released_pairs
from discreet.planning.audit import Size, Verdict, audit_mechanism, make_attacks
from discreet.planning.study import FORECASTS, Setting, forecast_noise, forecast_pairs
from discreet.privacy import mechanisms
from discreet.privacy.accounting import Neighbours
from discreet.privacy.mechanisms import (
    AUTO_PAIRS,
    MECHANISMS,
    MechanismEntry,
    find_mechanism,
    mechanisms_for,
    pick_mechanism,
)
from discreet.privacy.mechanisms.comparisons import pick_comparison_mechanism
from discreet.privacy.noise import ExactNoise
from discreet.privacy.protocol import ComparedPublic, Public
from discreet.secure import SeededSource
from refusals import refused

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
CONTRIBUTING = PAGE.parents[1] / "CONTRIBUTING.md"
ANSWERS = mechanisms_for("answers")
PURE = {"laplace-pairs", "laplace-margins", "randomized-response"}


def test_every_mechanism_has_an_attack():
    for name in MECHANISMS:
        budget = library.Budget(1.0, 0.0 if name in PURE else 1e-6)
        assert make_attacks(find_mechanism(name), budget, Size(10, 5), SeededSource(2))
    assert set(MECHANISMS) == {*ANSWERS, "group-means", "net-wins", "win-pairs"}
    with refused(
        BadUsage, "choose_one_find_mechanism", problem="there is no mechanism called 'magic'"
    ):
        find_mechanism("magic")


def test_every_mechanism_has_a_fit_and_those_for_answers_a_forecast():
    assert list(FITS) == list(MECHANISMS)
    assert list(FORECASTS) == list(ANSWERS)
    with refused(BadUsage, "plans_know_nothing_about", mechanism="net-wins"):
        forecast_noise(Setting(100, 10, 5, 1.0, mechanism="net-wins"))


def test_the_choice_of_a_mechanism_changes_right_behind_its_limits():
    def pick(items, most):
        public = Public(tuple(map(str, range(items))), most, Neighbours.REPLACE_ONE, 100)
        return pick_mechanism(public)

    chosen, why = pick(AUTO_PAIRS, AUTO_PAIRS)
    assert (chosen.name, f"at most {AUTO_PAIRS}" in why) == ("pairs", True)
    chosen, why = pick(AUTO_PAIRS, AUTO_PAIRS - 1)
    assert (chosen.name, f"only {AUTO_PAIRS - 1} of" in why) == ("margins", True)
    chosen, why = pick(AUTO_PAIRS + 1, AUTO_PAIRS + 1)
    assert (chosen.name, f"more than {AUTO_PAIRS}" in why) == ("margins", True)
    with refused(
        BadUsage,
        "choose_one_find_mechanism",
        problem="'auto' needs public parameters, the list and the cap",
    ):
        find_mechanism("auto")


@pytest.mark.parametrize(
    ("cap", "design", "forms", "persons", "name", "reason"),
    [
        (4, "random", False, 749, "totals", "at most 4 of 6 items, given out at random"),
        (4, "random", False, 750, "residuals", "the design is stated as random"),
        (4, "unknown", False, 749, "margins", "only 4 of 6"),
        (4, "unknown", False, 750, "margins", "only 4 of 6"),
        (6, "random", False, 499, "pairs", "all of the 6 items"),
        (6, "complete", False, 499, "pairs", "all of the 6 items"),
        (6, "complete", False, 500, "residuals", "the design is stated as complete"),
        (6, "complete", True, 749, "totals", "which of 2 forms"),
        (6, "complete", True, 750, "residuals", "the design is stated as complete"),
        (6, "random", True, 749, "totals", "which of 2 forms"),
        (6, "unknown", True, 750, "margins", "only 4 of 6"),
    ],
)
def test_a_stated_design_decides_how_right_and_wrong_answers_are_released(
    cap, design, forms, persons, name, reason
):
    items = tuple("abcdef")
    booklets = (items[:4], items[2:]) if forms else ()
    public = Public(items, cap, Neighbours.REPLACE_ONE, persons, forms=booklets, design=design)
    chosen, why = pick_mechanism(public)
    assert chosen.name == name
    assert reason in why


def test_items_with_steps_always_go_into_totals():
    public = Public(("a", "b"), 2, Neighbours.ADD_REMOVE, None, steps=(1, 3))
    assert pick_mechanism(public)[0].name == "totals"


@pytest.mark.parametrize(
    ("items", "cap", "name"),
    [(5, 10, "win-pairs"), (10, 20, "win-pairs"), (10, 10, "net-wins"), (50, 30, "net-wins")],
)
def test_the_mechanism_for_comparisons_is_chosen_from_public_parameters(items, cap, name):
    objects = tuple(map(str, range(items)))
    public = ComparedPublic(objects, cap, Neighbours.REPLACE_ONE, 2)
    chosen, why = pick_comparison_mechanism(public)
    assert chosen.name == name
    assert why.startswith(f"auto: {name}, because")


@pytest.mark.parametrize("name", [name for name in ANSWERS if "response" not in name])
def test_the_noise_of_a_mechanism_is_of_the_kind_that_its_spend_was_computed_for(name):
    public = Public(tuple(map(str, range(6))), 6, Neighbours.REPLACE_ONE, 100)
    pure = name in PURE
    calibration = ANSWERS[name]().calibrate(
        public, library.Budget(1.0, 0.0 if pure else 1e-6), SeededSource(1)
    )
    assert {law.family for law in calibration.laws.values()} == {"laplace" if pure else "gaussian"}


def test_every_mechanism_is_named_in_help_and_page():
    release = PAGE.read_text().split("## discreet release\n")[1].split("\n## ")[0]
    assert set(re.findall(r"[a-z-]+", name_mechanisms("answers"))) - {"or"} == set(ANSWERS)
    assert all(f"`{name}`" in release for name in ANSWERS)


def test_the_table_of_mechanisms_and_the_help_say_what_the_registry_says():
    for name, entry in MECHANISMS.items():
        assert f"| `{name}` | {entry.kind} | {entry.help} |" in PAGE.read_text()
    shown = " ".join(discreet("audit", "--help").out.split())
    assert all(f"{name} {entry.help}" in shown for name, entry in MECHANISMS.items())


@pytest.fixture
def toy(tmp_path, monkeypatch):
    example = CONTRIBUTING.read_text().partition("### A new mechanism")[2]
    module, entries = re.findall(r"```(?:python|text)\n(.*?)```", example, re.S)[:2]
    (tmp_path / "toy.py").write_text(module)
    monkeypatch.setattr(mechanisms, "__path__", [*mechanisms.__path__, str(tmp_path)])
    tables = {"MECHANISMS": MECHANISMS, "FITS": FITS, "FORECASTS": FORECASTS}
    scope = {name: {} for name in tables}
    scope |= {function.__name__: function for function in (fit_released_pairs, forecast_pairs)}
    (tmp_path / "entries.py").write_text(entries)
    run_path(str(tmp_path / "entries.py"), {**scope, "MechanismEntry": MechanismEntry})
    for name, table in tables.items():
        for key, entry in scope[name].items():
            monkeypatch.setitem(table, key, entry)
    yield
    sys.modules.pop("discreet.privacy.mechanisms.toy", None)


@pytest.mark.usefixtures("toy")
def test_the_worked_example_is_released_with_a_ledger_and_resumed(tmp_path):
    answers = library.datasets.lsat()
    ledger = library.Ledger.create(tmp_path / "spent.db", epsilon=2.0, delta=1e-5)
    made = library.release(
        answers,
        library.Budget(1.0),
        items=[f"Item{number}" for number in range(1, 6)],
        mechanism="toy",
        ledger=ledger,
    )
    assert made.guarantee.mechanism == "toy"
    assert np.isfinite(made.estimate.se).all()
    again = library.resume_release(ledger, 1, out=tmp_path / "bundle")
    assert np.array_equal(again.estimate.difficulty, made.estimate.difficulty)


@pytest.mark.usefixtures("toy")
def test_the_worked_example_is_planned_beside_the_others_and_costs_more_than_pairs():
    ended = discreet(
        "plan", "--persons", 500, "--items", 8, "--epsilon", 1, "--mechanism", "toy",
        "--compare", "--json",
    )  # fmt: skip
    document = json.loads(ended.out)
    assert document["mechanism"] == "toy"
    assert document["mechanisms"]["toy"] == document["rmse"] > document["mechanisms"]["pairs"]


@pytest.mark.usefixtures("toy")
def test_the_worked_example_is_attacked_and_keeps_its_promise_with_room_to_spare():
    options = {"size": Size(8, 4), "runs": 100, "noise": ExactNoise(SeededSource(1))}
    report = audit_mechanism(find_mechanism("toy"), library.Budget(1.0), **options)
    assert report.verdict is not Verdict.REFUTED
    assert 0 < report.lower_bound < 0.9
    assert discreet("audit", "--mechanism", "toy", "--epsilon", 1, "--runs", 100).code == 0
