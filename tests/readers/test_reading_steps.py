"""Steps from every table, array and engine: what is a scale, what is a slip, and what is said."""

import json
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp

import discreet
from commandline import discreet as typed
from discreet import Responses, read_responses
from discreet.coding.reading import Reading
from discreet.coding.steps import CategoryScale
from discreet.errors import BadResponses, BadUsage
from discreet.readers import batches
from discreet.readers import rows as blocks
from discreet.readers.streamed.counting import count_source
from discreet.tables.inspection.answers import Tallied
from discreet.tables.sources import FrameSource
from refusals import refused
from stepped import draw_codes

STEPS = (4, 3, 2, 4, 1, 4)
ITEMS = [f"q{number}" for number in range(len(STEPS))]


@pytest.fixture(scope="module")
def codes():
    return draw_codes(0, 600, STEPS, missing=0.2)


def frame(codes, shift=0):
    cells = pd.DataFrame(np.where(codes < 0, np.nan, codes + shift), columns=ITEMS)
    cells.insert(0, "person", [f"p{row}" for row in range(len(codes))])
    return cells


def melt(wide):
    return wide.melt("person", var_name="item", value_name="response").dropna()


def same(answers, codes):
    found = answers.select(ITEMS)
    order = [list(found.persons).index(f"p{row}") for row in range(len(codes))]
    return found.steps == STEPS and np.array_equal(found.to_array()[order], codes)


def write(folder, kind, codes):
    path = folder / f"answers.{kind}"
    wide = frame(codes)
    if kind == "csv":
        wide.to_csv(path, index=False)
    elif kind == "parquet":
        melt(wide).sample(frac=1, random_state=3).to_parquet(path)
    elif kind == "xlsx":
        pytest.importorskip("xlsxwriter")
        wide.to_excel(path, index=False, engine="xlsxwriter")
    else:
        lines = [
            json.dumps({"person": row["person"], "responses": {
                item: int(row[item]) for item in ITEMS if not np.isnan(row[item])}})
            for _, row in wide.iterrows()
        ]  # fmt: skip
        path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_files_of_every_kind_have_the_same_steps(tmp_path, codes, kind, engine):
    path = write(tmp_path, kind, codes)
    expected = discreet.count_pairs(Responses.from_array(codes, ITEMS), folds=8)
    found = discreet.count_pairs(path, engine=engine, folds=8).select(ITEMS)
    assert found.steps == STEPS
    assert np.array_equal(found.right_wrong, expected.right_wrong)
    assert np.array_equal(found.categories, expected.categories)


def test_compiled_loops_store_the_same_steps(monkeypatch):
    rng = np.random.default_rng(8)
    steps, persons = (1, 4, 2), 20_000
    codes = np.stack([rng.integers(-1, step + 1, persons) for step in steps], axis=1).astype("int8")
    person, item = (part.ravel() for part in np.indices(codes.shape))
    order = rng.permutation(len(person))
    rows = person[order], item[order], codes[person[order], item[order]]
    monkeypatch.setattr(batches, "worth_compiling", lambda _: True)
    found = batches._mark_steps(*rows, persons, steps)
    assert np.array_equal(found.rows(0, persons), codes)
    twice = [np.append(part, part[rows[2] >= 0][:1]) for part in rows]
    assert batches._mark_steps(*twice, persons, steps) is None


def test_compiled_loops_read_the_same_numbers_as_words_do(tmp_path, monkeypatch, codes):
    rows = melt(frame(codes, 1)).assign(item=lambda long: long["item"].str[1:].astype(int) + 10)
    rows["response"] = rows["response"].astype(int)
    rows.loc[rows.index[::50], "response"] = 9
    said = {"missing": 9, "lowest": 1, "reverse": "12", "merge": {"13": "2+3"}}
    rows.to_parquet(tmp_path / "numbers.parquet")
    rows.assign(response=rows["response"].astype(str)).to_csv(tmp_path / "words.csv", index=False)
    monkeypatch.setattr(batches, "worth_compiling", lambda _: True)
    monkeypatch.setattr(blocks, "worth_compiling", lambda _: True)
    paths = [str(tmp_path / name) for name in ("numbers.parquet", "words.csv")]
    found, words = (discreet.count_pairs(path, engine="disk", **said) for path in paths)
    assert found.steps == words.steps == (4, 3, 4, 3, 1, 4)
    assert np.array_equal(found.right_wrong, words.right_wrong)


def test_a_number_that_is_no_category_is_named_by_compiled_loops_too(tmp_path, monkeypatch):
    rows = pd.DataFrame({"person": np.repeat(range(50), 2), "item": [1, 2] * 50, "response": 1})
    rows["response"] += rows["person"] % 3
    rows.loc[77, "response"] = 12
    rows.to_parquet(tmp_path / "answers.parquet")
    monkeypatch.setattr(blocks, "worth_compiling", lambda _: True)
    with refused(
        BadResponses, "answers_refuse_apart", reason="Answers go from 1 to 3, and 12 is far outside"
    ):
        discreet.count_pairs(tmp_path / "answers.parquet", engine="disk")
    said = Reading(
        scale=CategoryScale({name: {"1": 0, "2": 1, "3": 2} for name in "12"}, {"1": 2, "2": 2})
    )
    with refused(
        BadResponses, "bad_answer", where="answers.parquet, row 78", column="response", value="12"
    ):
        count_source(tmp_path / "answers.parquet", reading=said)


def test_numbers_are_tallied_as_their_words_are():
    rng = np.random.default_rng(4)
    items, values = rng.integers(0, 300, 5000), rng.integers(0, 5, 5000)
    numbers, words = Tallied(Reading()), Tallied(Reading())
    source = [FrameSource(pa.table({"person": items, "item": items, "response": values}))]
    numbers.take(iter(source))
    words.add_long(pa.array(items).cast("string"), pa.array(values).cast("string"))
    assert numbers.by_item == words.by_item
    assert sum(map(sum, (own.values() for own in words.by_item.values()))) == 5000


def test_a_workbook_has_steps_too(tmp_path, codes):
    assert same(read_responses(write(tmp_path, "xlsx", codes)), codes)


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_fit_is_the_same_wherever_answers_are(tmp_path, codes, engine):
    path = write(tmp_path, "parquet", codes)
    found = discreet.fit(path, engine=engine, method="refined")
    expected = discreet.fit(Responses.from_array(codes, ITEMS), method="refined")
    order = [found.items.index(item) for item in ITEMS]
    assert found.thresholds[order] == pytest.approx(expected.thresholds, abs=1e-12, nan_ok=True)
    assert found.threshold_se[order] == pytest.approx(expected.threshold_se, rel=1e-9, nan_ok=True)


def test_a_query_that_comes_once_is_counted_with_steps(tmp_path, codes):
    path = write(tmp_path, "parquet", codes)
    found = discreet.fit(f"SELECT * FROM '{path}'")  # noqa: S608
    assert found.model == "partial-credit"
    assert np.isfinite(found.se).all()


def test_frames_arrays_and_sparse_matrices_have_steps(codes):
    wide = frame(codes)
    assert same(Responses.from_dataframe(wide), codes)
    assert same(Responses.from_dataframe(melt(wide)), codes)
    assert Responses.from_array(codes).steps == STEPS
    assert Responses.from_array(codes.tolist()).steps == STEPS
    person, item = np.nonzero(codes >= 0)
    held = sp.coo_array((codes[person, item], (person, item)), shape=codes.shape)
    assert np.array_equal(Responses.from_array(held).to_array(), codes)
    masked = np.ma.masked_less(codes, 0)
    assert np.array_equal(Responses.from_array(masked).to_array(), codes)


def test_answers_from_one_on_are_shifted_without_a_warning(tmp_path, codes, caplog):
    path = tmp_path / "survey.csv"
    frame(codes, 1).to_csv(path, index=False)
    with caplog.at_level("INFO", "discreet"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert same(read_responses(path), codes)
    assert "answers from 1 to 5 are read as steps from 0" in caplog.text
    assert same(read_responses(path, lowest=1), codes)
    ended = typed("fit", path)
    assert ended.code == 0
    assert "Warning" not in ended.err


def test_a_code_that_stands_apart_is_refused_and_the_advice_is_right(tmp_path, codes):
    path = tmp_path / "survey.csv"
    coded = frame(codes, 1).fillna(9)
    coded.to_csv(path, index=False)
    ended = typed("fit", path)
    assert ended.code == 3
    assert "answers go from 1 to 5, and 9 is far outside" in ended.err.replace("Answers", "answers")
    assert "--missing 9" in ended.err
    followed = typed("fit", path, "--missing", "9", "--json")
    assert followed.code == 0
    assert json.loads(followed.out)["model"] == "partial-credit"
    assert same(read_responses(path, missing=9), codes)


def binary(rows=50):
    return pd.DataFrame(np.random.default_rng(1).integers(0, 2, (rows, 4)), columns=list("abcd"))


def test_one_stray_two_does_not_turn_a_test_into_partial_credit():
    test = binary()
    test.loc[3, "b"] = 2
    where = "The data frame, row 3 (counted from 0)"
    with refused(BadResponses, "bad_answer", where=where, column="b", value="2") as caught:
        Responses.from_dataframe(test)
    assert {"model": "partial-credit"} in [one.options for one in caught.value.remedies]
    assert Responses.from_dataframe(test, model="partial-credit").steps == (1, 2, 1, 1)
    assert Responses.from_dataframe(test, missing=2).steps == (1,) * 4
    with pytest.raises(BadResponses, match="Row 3, column 1"):
        Responses.from_array(test.to_numpy())
    assert discreet.fit(test.to_numpy(), model="partial-credit").steps == (1, 2, 1, 1)


def test_a_category_that_hardly_occurs_is_refused_unless_the_model_is_named(codes):
    many = np.tile(codes, (4, 1))
    many[many[:, 0] == 4, 0] = 3
    many[0, 0] = 4
    with refused(BadResponses, "times_refuse_stray", times="The answer 4 to item '0' occurs 1"):
        Responses.from_array(many)
    assert Responses.from_array(many, model="partial-credit").steps[0] == 4


def test_what_is_no_scale_is_refused_as_before():
    for cells in ([[1, 2], [2, 1]], [[0, 11], [5, 0]], [[0.5, 1], [0, 2]], [[0, 3], [1, 0]]):
        with pytest.raises(BadResponses):
            Responses.from_array(np.array(cells, dtype=float))
    with pytest.raises(BadResponses, match="steps"):
        Responses.from_array(np.array([[0, 1], [1, 2]]), model="rasch")


def test_scales_are_reversed_merged_and_given_more_steps(codes):
    wide = frame(codes, 1)
    turned = Responses.from_dataframe(wide, reverse="q1", merge={"q3": "2+3", "*": "4+5"})
    assert turned.steps == (3, 3, 2, 2, 1, 3)
    cells = turned.to_array()
    # q1 ends where the scale of all items ends: 1 to 5 the other way round, with 5 and 4 as one.
    assert np.array_equal(cells[:, 1] >= 0, codes[:, 1] >= 0)
    assert set(cells[codes[:, 1] == 3, 1]) == {0}
    assert set(cells[codes[:, 1] == 0, 1]) == {3}
    assert set(cells[np.isin(codes[:, 3], (1, 2)), 3]) == {1}
    known = Responses.from_array(codes, steps={"4": 3, "*": 4})
    assert known.steps == (4, 4, 4, 4, 3, 4)
    scale = discreet.fit(Responses.from_array(codes, model="rating-scale"), model="rating-scale")
    assert scale.steps == (4,) * 6


def test_mistakes_about_steps_are_explained(codes):
    wide = frame(codes)
    for words, code in (
        ({"reverse": "q9"}, "names_items_steps_write"),
        ({"merge": {"q0": "1+3"}}, "merge_merge_joins_item"),
        ({"merge": {"q4": "0+1"}}, "merge_merge_leaves_one"),
        ({"merge": "2+3"}, "must_found_nothing_read"),
        ({"steps": 12}, "steps_steps_may_most"),
        ({"steps": 1.5}, "must_found_nothing_read"),
        ({"model": "grm"}, "no_called_one_check_choice_name"),
        ({"model": "rasch", "steps": 2}, "model_rasch_model_rasch"),
        ({"at_least": 2, "model": "partial-credit"}, "least_least_one_means"),
    ):
        with refused(BadUsage, code):
            Responses.from_dataframe(wide, **words)
    with refused(BadResponses, "bad_scale", column="q0", value="3.0"):
        Responses.from_dataframe(wide, steps=2)
    with refused(BadResponses, "bad_scale", column="q4", value="0.0"):
        Responses.from_dataframe(wide, lowest=1)


def test_a_release_never_looks_which_values_there_are(tmp_path, codes):
    path = write(tmp_path, "csv", codes)
    budget = discreet.Budget(epsilon=1.0, delta=1e-6)
    with refused(BadResponses, "bad_answer"):
        discreet.release(path, budget, items=ITEMS)
    with refused(BadResponses, "item_read_steps_list", steps="4", item_2="1"):
        discreet.release(Responses.from_array(codes, ITEMS), budget, items=ITEMS)
    with refused(BadUsage, "model_items_steps_list"):
        discreet.release(path, budget, items=ITEMS, model="partial-credit")


def test_a_model_that_is_typed_is_the_model_that_is_fitted(tmp_path, codes):
    path = write(tmp_path, "csv", codes)
    found = {
        name: json.loads(typed("fit", path, "--model", name, "--json").out)
        for name in ("auto", "partial-credit", "rating-scale")
    }
    assert [one["model"] for one in found.values()] == [
        *("partial-credit", "partial-credit", "rating-scale")
    ]
    assert found["auto"]["choice"].startswith("The model is partial-credit: answers have up to 4")
    assert "model" not in found["partial-credit"]["choice"]
    assert (
        found["auto"]["items"][0]["difficulty"] != found["rating-scale"]["items"][0]["difficulty"]
    )


def test_words_about_steps_are_typed_too(tmp_path, codes):
    path = write(tmp_path, "csv", codes)
    counts = tmp_path / "counts.npz"
    options = ("--steps", "q4:2,4", "--reverse", "q0,q3", "--merge", "q1:2+3", "--lowest", "0")
    assert typed("table", "counts", path, "--out", counts, *options).code == 0
    assert discreet.PairCounts.load(counts).steps == (4, 3, 4, 4, 2, 4)
    ended = typed("table", "counts", path, "--out", tmp_path / "x.npz", "--merge", "2+3")
    assert ended.code == 2
    assert "for which item" in ended.err
