"""Without a named method: conditional likelihood where it is little work, else refined; and why."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

import discreet
from discreet import datasets
from discreet.analysis import find_dif, run_wald
from discreet.api.counting import count_pairs
from discreet.errors import BadUsage, NotConverged
from discreet.models.conditional import GroupPatterns, automatic
from discreet.readers import streamed
from discreet.simulation import simulate
from refusals import refused


@pytest.fixture(scope="module")
def scattered():
    return simulate(400, 12, 0.7, rng=np.random.default_rng(5)).responses


@pytest.fixture
def blocks(monkeypatch):
    """How many persons each search for patterns looked at."""
    seen, real = [], GroupPatterns.block

    def block(self, store):
        seen.append(store.n_persons)
        return real(self, store)

    monkeypatch.setattr(GroupPatterns, "block", block)
    return seen


def test_answers_in_memory_are_fitted_by_conditional_likelihood(scattered):
    found, named = discreet.fit(scattered), discreet.fit(scattered, method="conditional")
    assert found.method == "conditional"
    assert found.choice == automatic.TOOK_CONDITIONAL
    assert found.model == named.model == "rasch"
    assert found.difficulty == pytest.approx(named.difficulty, abs=1e-9)
    assert found.se == pytest.approx(named.se, abs=1e-9)
    assert named.choice == ""


def test_complete_answers_give_the_published_numbers():
    found = discreet.fit(datasets.lsat())
    published = [-1.2561, 0.4749, 1.2360, 0.1684, -0.6232]
    assert found.difficulty == pytest.approx(published, abs=1e-4)


def test_patterns_are_looked_for_once(scattered, blocks):
    discreet.fit(scattered)
    assert blocks == [400]


def test_standard_errors_that_cost_nothing_are_there_unasked(scattered):
    asked, unasked = (discreet.fit(scattered, standard_errors=wanted) for wanted in (True, False))
    assert unasked.method == "conditional"
    assert unasked.se == pytest.approx(asked.se, abs=0)
    by_pairs = discreet.fit(scattered, method="refined", standard_errors=False)
    assert np.isnan(by_pairs.se).all()


def test_too_much_work_means_refined_and_the_same_numbers(scattered, monkeypatch):
    monkeypatch.setattr(automatic, "WORK_SECONDS", 1e-9)
    found, named = discreet.fit(scattered), discreet.fit(scattered, method="refined")
    assert found.method == "refined"
    assert "would take more than 2 s" in found.choice
    assert (found.difficulty == named.difficulty).all()
    assert (found.se == named.se).all()


def test_a_sample_of_many_persons_tells_that_it_is_too_much_work(scattered, blocks, monkeypatch):
    monkeypatch.setattr(automatic, "FEWEST_SAMPLED", 80)
    monkeypatch.setattr(automatic, "SAMPLE_CELLS", 0)
    monkeypatch.setattr(automatic, "WORK_SECONDS", 1e-5)
    assert discreet.fit(scattered).method == "refined"
    assert blocks == [80]


def test_a_sample_that_is_little_work_leads_to_all_persons(scattered, blocks, monkeypatch):
    monkeypatch.setattr(automatic, "FEWEST_SAMPLED", 80)
    monkeypatch.setattr(automatic, "SAMPLE_CELLS", 0)
    assert discreet.fit(scattered).method == "conditional"
    assert blocks == [80, 400]


def test_very_many_items_are_not_even_looked_at(blocks, monkeypatch):
    monkeypatch.setattr(automatic, "SOLVE_SECONDS", 1.0)
    assert discreet.fit(datasets.lsat()).method == "refined"
    assert blocks == []


def test_counts_are_fitted_by_pairs(scattered):
    found = discreet.fit(count_pairs(scattered))
    assert found.method == "refined"
    assert "counts of pairs" in found.choice


@pytest.fixture
def places(scattered, tmp_path):
    """One long table in memory and wherever else answers can be."""
    cells = scattered.to_array()
    person, item = np.nonzero(cells >= 0)
    table = pa.table({"person": person, "item": item, "response": cells[person, item]})
    file, database = tmp_path / "answers.parquet", tmp_path / "answers.duckdb"
    pq.write_table(table, file)
    with duckdb.connect(str(database)) as connection:
        connection.execute(f"CREATE TABLE answers AS SELECT * FROM '{file}'")  # noqa: S608
        connection.execute("CREATE VIEW seen AS SELECT * FROM answers")
    query = f"SELECT * FROM '{file}'"  # noqa: S608
    return [table, file, f"{database}::answers", f"{database}::seen", query]


def test_one_table_has_one_answer_wherever_it_lies(places):
    first, *others = [discreet.fit(place) for place in places]
    others.append(discreet.fit(places[1], engine="disk"))
    for estimate in others:
        order = [estimate.items.index(item) for item in first.items]
        assert estimate.choice == first.choice == automatic.TOOK_CONDITIONAL
        assert estimate.difficulty[order] == pytest.approx(first.difficulty, abs=1e-9)
        assert estimate.se[order] == pytest.approx(first.se, abs=1e-9)


def test_very_many_answers_that_are_not_in_memory_are_fitted_by_pairs(places, monkeypatch):
    monkeypatch.setattr(automatic, "FEWEST_SAMPLED", 100)
    monkeypatch.setattr(automatic, "SAMPLE_CELLS", 0)
    found = discreet.fit(places[1], engine="disk")
    assert found.method == "refined"
    assert "more than 100 persons that are not in memory" in found.choice
    assert discreet.fit(places[1]).method == "conditional"


def test_many_rows_that_come_once_are_fitted_by_pairs(places, monkeypatch):
    monkeypatch.setattr(streamed, "COPIED_ROWS", 100)
    found = discreet.fit(places[-1])
    assert found.method == "refined"
    assert "only once" in found.choice


def test_regularisation_is_for_pairs(scattered):
    found = discreet.fit(scattered, regularisation=0.5)
    assert found.method == "refined"
    assert "regularisation" in found.choice


def test_without_a_maximum_refined_is_taken_and_the_reason_told(scattered, monkeypatch):
    def fail(*_):
        raise NotConverged("the steps went nowhere")

    monkeypatch.setattr(automatic.ConditionalTask, "maximise", fail)
    found = discreet.fit(scattered)
    assert found.method == "refined"
    assert "the steps went nowhere" in found.choice


def test_an_option_of_marginal_likelihood_is_refused():
    with refused(BadUsage, "ability_option_method_marginal"):
        discreet.fit(datasets.lsat(), ability="empirical")


def test_routed_answers_are_warned_of_by_default():
    sim = simulate(4000, 60, 1 / 3, design="adaptive", rng=np.random.default_rng(1))
    found = discreet.fit(sim.responses)
    assert [warning.kind for warning in found.warnings] == ["routed"]


def test_groups_are_compared_by_one_method(scattered, monkeypatch):
    labels = ["few"] * 100 + ["many"] * 300
    table = find_dif(scattered, labels)
    assert table.method == "conditional"
    assert table.choice == automatic.TOOK_CONDITIONAL
    real = automatic.conditional_work
    monkeypatch.setattr(
        automatic,
        "conditional_work",
        lambda found, steps: 9.0 * (found.persons.sum() > 200) + real(found, steps),
    )
    table = find_dif(scattered, labels)
    assert table.method == "refined"
    assert "more than 2 s" in table.choice
    assert table.difference == pytest.approx(
        find_dif(scattered, labels, method="refined").difference
    )
    assert run_wald(scattered, labels).method == "refined"
