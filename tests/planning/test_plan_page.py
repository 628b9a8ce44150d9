"""The page with sliders: its numbers are the library's, in a real browser, offline."""

import json
import re

import pytest

import discreet
from browser import needs_browser, visit
from discreet.planning.page import (
    WITHOUT,
    Grid,
    cubic_weights,
    linear_weights,
    make_page,
    measure_interpolation,
    tabulate,
)

SMALL = Grid(
    persons=tuple(300 * 10 ** (k / 3) for k in range(6)),
    items=(20, 40),
    steps=3,
    epsilons=(0.25, 0.5, 1.0, 2.0, 4.0),
    mechanisms=("margins", "pairs"),
)
PLAN = discreet.plan(persons=3000, items=30, answers=20, epsilon=1.0)
STATED = 0.06


@pytest.fixture(scope="module")
def page():
    return make_page(PLAN, grid=SMALL, checked=10)


@pytest.fixture(scope="module")
def table():
    return tabulate(PLAN.setting, SMALL)


def test_weights_add_up_and_meet_the_grid():
    axis = [0.0, 1.0, 2.0, 3.0]
    for at in (0.0, 0.3, 1.0, 2.7, 3.0):
        for weights in (linear_weights(axis, at), cubic_weights(axis, at)):
            assert sum(weight for _, weight in weights) == pytest.approx(1)
            assert sum(axis[k] * weight for k, weight in weights) == pytest.approx(at)


def test_the_table_is_exact_on_its_grid(table):
    for name in ("margins", "pairs"):
        answers = SMALL.answers(40)[2]
        here = discreet.plan(round(SMALL.persons[2]), 40, answers, 2.0, mechanism=name)
        found = table.interpolate(name, SMALL.persons[2], 40, answers, 2.0)
        assert found == pytest.approx(here.rmse, rel=2e-3)
    found = table.interpolate(WITHOUT, SMALL.persons[2], 40, answers, 2.0)
    assert found == pytest.approx(here.rmse_without_privacy, rel=2e-3)


def test_between_its_points_the_table_is_as_good_as_the_page_says(table, page):
    stated = float(re.search(r"by at most ([\d.]+)%", page)[1]) / 100
    assert stated <= STATED
    assert measure_interpolation(table, PLAN.setting, 10)[2] == pytest.approx(stated, abs=6e-4)


def test_the_page_is_small_and_needs_no_network(page):
    assert len(page.encode()) < 1_000_000
    assert "default-src 'none'" in page
    assert "unsafe-inline" not in page
    without_names = page.replace("http://www.w3.org/2000/svg", "")
    assert "http" not in without_names.replace("http-equiv", "")
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
    assert set(data["errors"]) == {WITHOUT, "margins", "pairs"}


def test_the_page_says_how_sure_somebody_can_become(page):
    """The numbers of the statement; delta is not the probability of the exception."""
    rows = dict(re.findall(r'<tr><th scope="row">([\d.]+)</th>(.*?)</tr>', page))
    assert rows["1"] == "<td>at most about 73%</td><td>5.3e-05</td>"
    assert rows["0.1"] == "<td>at most about 52%</td><td>0.0004</td>"
    assert rows["10"].startswith("<td>more than 99.9%</td>")
    assert "Delta is not that probability" in page


def test_the_page_of_a_pure_plan_under_add_remove_doubles_epsilon():
    plan = discreet.plan(
        3000, 30, 20, 1.0, delta=0, mechanism="laplace-pairs", neighbours="add-remove"
    )
    grid = Grid(**{**vars(SMALL), "mechanisms": ("laplace-pairs",)})
    made = make_page(plan, grid=grid, checked=1)
    assert '<th scope="row">1</th><td>at most about 88%</td><td>cannot be had</td>' in made


def test_the_full_page_would_stay_below_a_megabyte():
    grid = Grid()
    blocks = sum(len(grid.answers(items)) for items in grid.items)
    numbers = blocks * len(grid.persons) * len(grid.epsilons) * len(grid.mechanisms)
    assert 8 * numbers < 900_000


def test_add_remove_leaves_out_the_mechanism_that_cannot_promise_it():
    plan = discreet.plan(3000, 30, 20, 1.0, neighbours="add-remove")
    grid = Grid((1000.0, 2000.0), (20, 30), 1, (0.5, 1.0), ("pairs", "randomized-response"))
    assert set(tabulate(plan.setting, grid).errors) == {WITHOUT, "pairs"}


READ = """
  const show = id => document.getElementById(id).textContent.replace(/,/g, "");
  const move = (id, value) => { const e = document.getElementById(id); e.value = value;
    e.dispatchEvent(new Event("input", { bubbles: true })); };
  const state = () => ["show-persons", "show-items", "show-answers", "show-epsilon", "rmse",
    "rmse-without", "equivalent", "order"].map(show).concat(
    [document.getElementById("mechanism").value, document.getElementById("warnings").textContent]);
"""


@needs_browser
def test_moving_a_slider_shows_what_the_library_computes(page, tmp_path):
    file = tmp_path / "plan.html"
    file.write_text(page)
    moves = "".join(
        f"move({name!r}, {value!r}); seen.push(state());"
        for name, value in [
            ("persons", "800"),
            ("epsilon", "250"),
            ("items", "900"),
            ("answers", "600"),
            ("mechanism", "pairs"),
            ("persons", "0"),
            ("epsilon", "1000"),
        ]
    )
    script = f"{READ} const seen = [state()]; {moves} return JSON.stringify(seen);"
    title, _, console = visit(file, tmp_path, script)
    assert console == ""
    states = json.loads(title)
    assert len({tuple(state) for state in states}) == len(states)
    for state in states:
        persons, items, answers = (int(text) for text in state[:3])
        made = discreet.plan(persons, items, answers, float(state[3]), mechanism=state[8])
        assert float(state[4]) == pytest.approx(made.rmse, rel=STATED, abs=1e-3)
        assert float(state[5]) == pytest.approx(made.rmse_without_privacy, rel=STATED, abs=1e-3)
        assert int(state[6]) == pytest.approx(made.equivalent_persons, rel=4 * STATED, abs=3)
        order = float(state[7].removeprefix("over ").rstrip("%")) / 100
        assert order == pytest.approx(made.order_probability, abs=0.03)


@needs_browser
def test_a_hopeless_plan_and_a_large_epsilon_are_called_so(tmp_path):
    hopeless = discreet.plan(300, 30, 3, 0.25, mechanism="pairs")
    file = tmp_path / "plan.html"
    file.write_text(
        make_page(hopeless, grid=SMALL, checked=1).replace(
            '"large_epsilon":5.0', '"large_epsilon":2.0'
        )
    )
    script = "const first = state()[9]; move('epsilon', '1000'); return first + '|' + state()[9];"
    before, after = visit(file, tmp_path, READ + script)[0].split("|")
    assert "will say nothing about most items" in before
    assert "too large to mean much" in after
