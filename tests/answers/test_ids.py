"""Ids come back from tables in the type in which they came; names are text."""

import json
import pickle
import uuid

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet
from discreet import Responses, analysis
from discreet.names import NumberName, name_id, read_names, settle_names

PERSONS, ITEMS = 80, 6
CELLS = discreet.simulate(PERSONS, ITEMS, rng=np.random.default_rng(3)).responses.to_array()
ROW, COLUMN = np.indices(CELLS.shape).reshape(2, -1)


def table(person=lambda n: 1000 + n, item=lambda n: 10 * n):
    return {
        "person": [person(number) for number in ROW.tolist()],
        "item": [item(number) for number in COLUMN.tolist()],
        "correct": CELLS[ROW, COLUMN].tolist(),
        "sex": ["fm"[number % 2] for number in ROW],
    }


@pytest.fixture(scope="module")
def answers():
    return Responses.from_dataframe(pd.DataFrame(table()), group="sex")


def results_about_items(answers):
    estimate = discreet.fit(answers)
    fitted = analysis.measure_fit(answers, estimate)
    return {
        "estimate": estimate,
        "ranking": discreet.rank(estimate, top=3),
        "item fit": fitted.items,
        "link": discreet.link_calibrations(estimate, estimate),
        "bank": discreet.create_bank(estimate, scale="s", source="first"),
        "dif": analysis.find_dif(answers, "sex"),
        "wald": analysis.run_wald(answers),
        "residuals": analysis.correlate_residuals(answers, estimate),
        "anchored": discreet.fit(answers, anchors={10: 0.5, 20: 0.0, 30: 0.1}),
        "mislabelled": analysis.find_mislabelled(answers, estimate),
        "dimensions": analysis.find_dimensions(answers, estimate, simulations=1).contrast,
        "drift": discreet.find_drift([estimate, estimate]),
        "released": discreet.release(
            answers, discreet.Budget(epsilon=5.0), items=answers.items
        ).estimate,
    }


def test_numbers_are_numbers_in_every_table_about_items_and_names_are_text(answers):
    assert all(isinstance(item, str) for item in answers.items)
    for name, result in results_about_items(answers).items():
        frame = result.to_dataframe()
        assert frame["item"].dtype == np.int64, name
        assert set(frame["item"]) <= set(range(0, 10 * ITEMS, 10)), name
        assert pl.from_arrow(result.to_arrow())["item"].dtype == pl.Int64, name
    assert (
        analysis.correlate_residuals(answers, discreet.fit(answers)).to_arrow()["other"].type
        == pa.int64()
    )


def test_numbers_are_numbers_in_every_table_about_persons(answers):
    estimate = discreet.fit(answers)
    scores = discreet.score(answers, estimate)
    assert all(isinstance(person, str) for person in scores.persons)
    for result in (scores, analysis.measure_fit(answers, estimate).persons):
        assert result.to_dataframe()["person"].tolist() == list(range(1000, 1000 + PERSONS))
    long = answers.to_dataframe()
    assert (long["person"].dtype, long["item"].dtype) == (np.int64, np.int64)
    assert answers.to_dataframe("wide")["person"].dtype == np.int64


def test_tables_join_with_what_the_ids_come_from(answers):
    estimate = discreet.fit(answers)
    subjects = pd.DataFrame({"item": range(0, 10 * ITEMS, 10), "subject": list("abcabc")})
    joined = estimate.to_dataframe().merge(subjects, on="item", validate="one_to_one")
    assert len(joined) == ITEMS
    people = pl.DataFrame({"person": range(1000, 1000 + PERSONS), "age": range(PERSONS)})
    scores = pl.from_arrow(discreet.score(answers, estimate).to_arrow())
    assert len(scores.join(people, on="person")) == PERSONS


FRAMES = {
    "pandas": lambda t: pd.DataFrame(t),
    "an index": lambda t: pd.DataFrame(t).set_index(["person", "item"]),
    "narrow": lambda t: pd.DataFrame(t).astype({"person": "int16", "item": "uint8"}),
    "categories": lambda t: pd.DataFrame(t).astype({"person": "category", "item": "category"}),
    "nullable": lambda t: pd.DataFrame(t).astype({"person": "Int64", "item": "Int64"}),
    "floats": lambda t: pd.DataFrame(t).astype({"person": float, "item": float}),
    "polars": lambda t: pl.DataFrame(t),
    "arrow": lambda t: pa.table(t),
    "duckdb": lambda t: duckdb.from_arrow(pa.table(t)),
    "records": lambda t: pa.table(t).to_pylist(),
}


@pytest.mark.parametrize("form", FRAMES)
def test_numbers_of_every_kind_of_frame_come_back(form):
    found = Responses.from_dataframe(FRAMES[form](table()), group="sex").to_dataframe()
    assert (found["person"].dtype, found["item"].dtype) == (np.int64, np.int64)


@pytest.mark.parametrize("form", ["pandas", "an index", "categories", "polars", "arrow", "records"])
def test_text_that_looks_like_numbers_stays_text_in_a_frame(form):
    frame = FRAMES[form](table(str, str))
    found = Responses.from_dataframe(frame, group="sex").to_dataframe()
    assert isinstance(found["person"][0], str)
    assert isinstance(found["item"][0], str)


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize(
    ("spell", "kind"),
    [
        (str, int),
        (lambda n: f"{n:03}", str),  # leading zeros
        (lambda n: f"+{n + 1}", str),
        (lambda n: "last" if n == ITEMS - 1 else str(n), str),  # one of them is a word
        (lambda n: str(10**20 + n), str),  # more than 64 bits
        (lambda n: str(10**18 + n), int),
        (lambda n: str(-n), int),
    ],
)
def test_ids_in_a_text_file_are_numbers_where_all_of_them_are_plain_whole_numbers(
    tmp_path, engine, spell, kind
):
    path = tmp_path / "answers.csv"
    pd.DataFrame(table(item=spell)).to_csv(path, index=False)
    counts = discreet.count_pairs(path, engine=engine, ignore="sex")
    found = discreet.fit(counts).to_dataframe()["item"]
    assert found.tolist() == [kind(spell(number)) for number in range(ITEMS)]
    if engine == "memory":
        answers = discreet.read_responses(path, ignore="sex")
        assert set(answers.to_dataframe()["item"]) == set(found)
        assert answers.to_dataframe()["person"].dtype == np.int64


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_typed_files_and_queries_say_what_their_ids_are(tmp_path, engine):
    for spell, kind in ((int, int), (str, str)):
        path = tmp_path / f"{kind.__name__}.parquet"
        pd.DataFrame(table(spell, spell)).to_parquet(path)
        for source in (path, f"FROM '{path}'"):
            counts = discreet.count_pairs(source, engine=engine, ignore="sex")
            found = discreet.fit(counts).to_dataframe()["item"]
            assert found.tolist() == [kind(number) for number in range(ITEMS)]


@pytest.mark.parametrize(("spell", "kind"), [(int, int), (str, str), (lambda n: n + 0.0, int)])
def test_json_says_what_its_ids_are(tmp_path, spell, kind):
    path = tmp_path / "answers.jsonl"
    rows = pa.table(table(spell, spell)).drop_columns("sex").to_pylist()
    path.write_text("\n".join(map(json.dumps, rows)))
    found = discreet.read_responses(path).to_dataframe()
    assert {type(one) for one in found["item"].tolist()} == {kind}
    assert {type(one) for one in found["person"].tolist()} == {kind}


def test_labels_of_columns_that_are_numbers_come_back_as_numbers():
    frame = pd.DataFrame(CELLS, columns=range(100, 100 + ITEMS))
    frame.insert(0, "person", range(PERSONS))
    found = discreet.fit(frame)
    assert found.items[0] == "100"
    assert found.to_dataframe()["item"].tolist() == list(range(100, 100 + ITEMS))
    assert discreet.score(frame, found).to_dataframe()["person"].dtype == np.int64


def test_names_that_nobody_gave_are_text():
    assert discreet.fit(CELLS).to_dataframe()["item"].tolist() == [str(n) for n in range(ITEMS)]
    named = Responses.from_array(CELLS, items=range(ITEMS), persons=np.arange(PERSONS) + 5)
    assert discreet.fit(named).to_dataframe()["item"].tolist() == list(range(ITEMS))
    assert named.to_dataframe()["person"][0] == 5


def test_uuids_and_dates_are_text():
    ids = [uuid.UUID(int=number) for number in range(PERSONS)]
    frame = pd.DataFrame(table(person=lambda n: ids[n]))
    assert Responses.from_dataframe(frame, group="sex").to_dataframe()["person"][0] == str(ids[0])


def test_numbers_are_numbers_after_every_way_through_the_library(answers, tmp_path):
    wanted = list(range(0, 10 * ITEMS, 10))
    estimate = discreet.fit(answers)
    estimate.save(tmp_path / "e.json")
    scores = discreet.score(answers, estimate)
    scores.save(tmp_path / "s.json")
    counts = discreet.count_pairs(answers, folds=8)
    counts.save(tmp_path / "c.npz")
    loaded = discreet.PairCounts.load(tmp_path / "c.npz")
    parts = [answers.select_persons(slice(0, 40)), answers.select_persons(slice(40, None))]
    whole = Responses.concat(parts)
    assert whole == answers
    for found in (
        discreet.Estimate.load(tmp_path / "e.json"),
        pickle.loads(pickle.dumps(estimate)),  # noqa: S301
        discreet.fit(loaded),
        discreet.fit(sum(map(discreet.count_pairs, parts))),
        discreet.fit(pickle.loads(pickle.dumps(whole))),  # noqa: S301
        discreet.fit(answers.select([str(item) for item in wanted])),
    ):
        assert found.to_dataframe()["item"].tolist() == wanted
    again = discreet.PersonScores.load(tmp_path / "s.json")
    assert again.to_dataframe()["person"].tolist() == list(range(1000, 1000 + PERSONS))
    assert whole.to_dataframe()["person"].dtype == np.int64


def test_a_release_that_is_read_back_has_the_ids_of_its_list(answers, tmp_path):
    budget = discreet.Budget(epsilon=5.0)
    published = discreet.release(answers, budget, items=[10, 0, 20, 30, 40, 50])
    published.save(tmp_path / "bundle")
    again = discreet.read_release(tmp_path / "bundle")
    for found in (published, again):
        assert found.estimate.items == ("10", "0", "20", "30", "40", "50")
        assert found.to_dataframe()["item"].tolist() == [10, 0, 20, 30, 40, 50]


def test_a_bank_that_is_read_back_has_its_numbers(answers, tmp_path):
    bank = discreet.create_bank(discreet.fit(answers), scale="s", source="first")
    discreet.write_bank(tmp_path / "bank.csv", bank)
    assert discreet.read_bank(tmp_path / "bank.csv").to_dataframe()["item"].dtype == np.int64


def test_numbers_beside_words_are_words():
    one = Responses.from_array([[1, 0]], items=[1, 2], persons=[1])
    two = Responses.from_array([[1, 0]], items=["2", "x"], persons=["b"])
    both = Responses.concat([one, two]).to_dataframe()
    assert both["item"].tolist() == ["1", "2", "2", "x"]
    assert both["person"].tolist() == ["1", "1", "b", "b"]


def test_judges_and_objects_keep_their_type():
    votes = pd.DataFrame({"judge": [1, 1, 2, 2, 3], "winner": [7, 7, 8, 9, 9],
                          "loser": [8, 9, 9, 7, 8]})  # fmt: skip
    found = discreet.rank_comparisons(discreet.read_comparisons(votes))
    assert set(found.to_dataframe()["item"]) == {7, 8, 9}


def test_a_name_is_a_number_or_not_all_of_them_or_none():
    assert name_id(np.int8(3)) == "3"
    assert not isinstance(name_id(True), NumberName)
    assert not isinstance(name_id(2**63), NumberName)
    assert [type(one) for one in settle_names([name_id(1), "x"])] == [str, str]
    assert [type(one) for one in read_names(["-5", "0"])] == [NumberName] * 2
    assert read_names(["-0"]) == ("-0",)
    assert not isinstance(read_names(["-0"])[0], NumberName)
