"""Every public function that takes answers takes them in every form, with the same keywords."""

import inspect
import re
import sys
import uuid
from types import SimpleNamespace

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

import discreet
from commandline import discreet as run_command
from discreet import Responses, analysis
from discreet.errors import BadResponses, BadUsage, DiscreetError, OutOfReach
from discreet.readers.opening import load_answers
from discreet.readers.spark.tasks import check_workers
from refusals import refused

PERSONS, ITEMS = 120, 5
CELLS = discreet.simulate(PERSONS, ITEMS, rng=np.random.default_rng(3)).responses.to_array()
NAMES = [str(number) for number in range(ITEMS)]
"""As arrays have them, so that every form holds the same items."""
CALIBRATION = discreet.fit(CELLS)
BUDGET = discreet.Budget(epsilon=1.0, delta=1e-6)
TESTLET = {"0": "text", "1": "text"}


def long_columns() -> dict[str, list]:
    row, item = np.indices(CELLS.shape).reshape(2, -1)
    return {
        "who": [f"p{number:03}" for number in row],
        "what": [NAMES[number] for number in item],
        "right": CELLS.ravel().astype(int).tolist(),
        "sex": ["fm"[number % 2] for number in row],
    }


WORDS = {"person": "who", "item": "what", "response": "right", "group": "sex"}

# From a folder to a source, and the keywords that it needs.
FORMS = {
    "responses": (lambda _: Responses.from_dataframe(pd.DataFrame(long_columns()), **WORDS), {}),
    "pandas": (lambda _: pd.DataFrame(long_columns()), WORDS),
    "named index": (lambda _: pd.DataFrame(long_columns()).set_index(["who", "what"]), WORDS),
    "series": (
        lambda _: pd.DataFrame(long_columns()).set_index(["who", "what", "sex"])["right"],
        WORDS,
    ),
    "polars": (lambda _: pl.DataFrame(long_columns()), WORDS),
    "lazy polars": (lambda _: pl.LazyFrame(long_columns()), WORDS),
    "arrow": (lambda _: pa.table(long_columns()), WORDS),
    "duckdb relation": (lambda _: duckdb.from_arrow(pa.table(long_columns())), WORDS),
    "records": (lambda _: pa.table(long_columns()).to_pylist(), WORDS),
    "array": (lambda _: CELLS, {}),
    "sparse matrix": (lambda _: sparse(), {}),
    "list": (lambda _: CELLS.tolist(), {}),
    "path": (lambda folder: csv_file(folder), WORDS),
    "query": (lambda folder: f"FROM '{csv_file(folder)}'", WORDS),
}


def sparse():
    row, item = np.indices(CELLS.shape).reshape(2, -1)
    return scipy.sparse.coo_array((CELLS.ravel(), (row, item)), shape=CELLS.shape)


def csv_file(folder):
    path = folder / "answers.csv"
    pd.DataFrame(long_columns()).to_csv(path, index=False)
    return path


SEX = ["fm"[number % 2] for number in range(PERSONS)]

# Every public function that takes answers, and a number or two of what it finds.
FUNCTIONS = {
    # By the method that every place can do: "auto" takes another where answers are in memory.
    "fit": lambda x, **w: [
        discreet.fit(x, method="refined", anchors=anchors, **w).difficulty
        for anchors in (None, {"0": 0.5})
    ],
    "count_pairs": lambda x, **w: discreet.count_pairs(x, **w).right_wrong,
    "score": lambda x, **w: np.sort(discreet.score(x, CALIBRATION, **w).ability),
    "release": lambda x, **w: len(discreet.release(x, BUDGET, items=NAMES, **w).estimate.items),
    "measure_fit": lambda x, **w: analysis.measure_fit(x, CALIBRATION, **w).items.infit,
    "check_model": lambda x, **w: [
        test.p_value for test in analysis.check_model(x, CALIBRATION, **w).tests[:1]
    ],
    "find_dif": lambda x, **w: analysis.find_dif(x, SEX, **w).difference,
    "resolve_dif": lambda x, **w: analysis.resolve_dif(x, SEX, **w).left.difference,
    "split_items": lambda x, **w: analysis.split_items(x, {"0": SEX}, **w).to_array(),
    "find_group_means": lambda x, **w: analysis.find_group_means(x, CALIBRATION, SEX, **w).mean,
    "run_wald": lambda x, **w: analysis.run_wald(x, **w).z,
    "run_andersen": lambda x, **w: analysis.run_andersen(x, **w).statistic,
    "run_martin_loef": lambda x, **w: analysis.run_martin_loef(x, **w).statistic,
    "measure_alpha": lambda x, **w: analysis.measure_alpha(x, **w).alpha,
    "find_dimensions": lambda x, **w: (
        analysis.find_dimensions(x, CALIBRATION, simulations=2, **w).eigenvalue
    ),
    "find_mislabelled": lambda x, **w: analysis.find_mislabelled(x, CALIBRATION, **w).probability,
    "correlate_residuals": lambda x, **w: analysis.correlate_residuals(x, CALIBRATION, **w).q3,
    "simulate_cutoffs": lambda x, **w: (
        analysis.simulate_cutoffs(x, CALIBRATION, replications=19, **w).infit
    ),
    "combine_testlets": lambda x, **w: analysis.combine_testlets(x, TESTLET, **w).to_array(),
    "measure_testlets": lambda x, **w: analysis.measure_testlets(x, TESTLET, **w).reliability,
}
NEEDS_A_KEY = {"analyse_distractors"}
NEEDS_STEPS = {"compare_step_models"}
NEEDS_PERIODS = {"find_drift"}
NEEDS_GROUPS = {"release_dif", "release_means"}
"""Its groups are in a column of the answers; tested with its releases."""
FROM_THE_LEDGER = {"resume_release"}
"""Answers are given once more only where a release stopped half-way; tested with deliveries."""


SPEAKS_OF_MODELS = {"leaderboard", "predict_scores"}
"""Of answers by models; tested with their tables."""
READERS = {"read_responses", "inspect_table"}
"""From a file alone."""


def test_the_functions_that_are_walked_over_are_all_that_take_the_keywords_of_readers():
    public = {
        name: value
        for module in (discreet, analysis)
        for name in module.__all__
        if inspect.isfunction(value := getattr(module, name))
    }
    taking = {
        name
        for name, value in public.items()
        if re.search(r"(Reading|Fit|Listed)Words", str(inspect.signature(value)))
    }
    special = (
        SPEAKS_OF_MODELS
        | NEEDS_A_KEY
        | NEEDS_STEPS
        | NEEDS_PERIODS
        | NEEDS_GROUPS
        | FROM_THE_LEDGER
    )
    assert taking == FUNCTIONS.keys() | special | READERS
    about_answers = {
        name
        for name, value in public.items()
        if {"responses", "source"} & inspect.signature(value).parameters.keys()
    }
    told_elsewhere = {"create_bank", "grow_bank", "read_ratings", "release_request"}
    assert about_answers - told_elsewhere <= taking


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_finds_the_same_in_answers_of_every_form(function, tmp_path):
    ask = FUNCTIONS[function]
    wanted = ask(CELLS)
    for form, (make, words) in FORMS.items():
        found = ask(make(tmp_path), **words)
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8, err_msg=form)


def test_answers_are_read_with_a_key_wherever_they_are_taken():
    frame = pd.DataFrame({"id": list("abcdef"), "q1": list("AABBCA"), "q2": list("CCABCA")})
    found = analysis.analyse_distractors(frame, key={"q1": "A", "q2": "C"})
    assert set(found.item) == {"q1", "q2"}


def test_the_column_of_groups_need_not_be_named_twice():
    frame = pd.DataFrame(long_columns()).rename(
        columns={name: word for word, name in WORDS.items()}
    )
    frame = frame.rename(columns={"group": "sex"})
    by_name = analysis.find_dif(frame, "sex").difference
    np.testing.assert_allclose(by_name, analysis.find_dif(CELLS, SEX).difference, rtol=1e-6)
    assert discreet.score(frame, CALIBRATION, regress="sex").regression is not None


class DataFrame:
    """Stands for a frame of a cluster, where none is running."""


DataFrame.__module__ = "pyspark.sql.dataframe"


@pytest.mark.parametrize("function", sorted(FUNCTIONS.keys() - {"fit", "count_pairs", "release"}))
def test_what_needs_persons_says_what_to_do_with_a_frame_of_spark(function):
    with refused(OutOfReach, "spark_data_frame_stays"):
        FUNCTIONS[function](DataFrame())
    with refused(OutOfReach, "spark_data_frame_stays"):
        Responses.from_dataframe(DataFrame())


@pytest.mark.parametrize("function", sorted(FUNCTIONS))
def test_what_is_no_form_of_answers_is_refused_in_one_line(function):
    for wrong in (pd.Series([1, 0, 1]), pl.Series([1, 0]), 7, {"a": 1}):
        with pytest.raises(BadUsage) as caught:
            FUNCTIONS[function](wrong)
        assert "\n" not in str(caught.value)


def test_keywords_about_columns_are_refused_where_there_are_none():
    answers = Responses.from_array(CELLS)
    with refused(BadUsage, "says_how_table_read", keywords="person=", name="Responses"):
        discreet.fit(answers, person="who")
    with refused(BadUsage, "says_how_table_read"):
        discreet.fit(discreet.count_pairs(answers), person="who")
    with refused(BadUsage, "speaks_columns_names_matrix"):
        discreet.score(CELLS, CALIBRATION, item="what")
    with refused(
        BadUsage, "asks_columns_check_column", how_often="data frame has no column", name="nobody"
    ):
        discreet.fit(pd.DataFrame(long_columns()), **{**WORDS, "person": "nobody"})


def test_codes_for_missing_answers_are_heeded_in_a_matrix_too():
    coded = np.where(np.random.default_rng(0).random(CELLS.shape) < 0.1, 9, CELLS)
    wanted = discreet.fit(np.where(coded == 9, -1, coded)).difficulty
    np.testing.assert_array_equal(discreet.fit(coded, missing=9).difficulty, wanted)


def test_pair_counts_are_refused_where_persons_are_looked_at():
    with refused(BadUsage, "analysis_needs_answers_each"):
        discreet.score(discreet.count_pairs(CELLS), CALIBRATION)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_data_frame_of_items_and_difficulties_is_a_calibration(make):
    frame = make({"item": NAMES, "difficulty": CALIBRATION.difficulty.tolist(), "note": NAMES})
    wanted = discreet.score(CELLS, CALIBRATION).ability
    np.testing.assert_array_equal(discreet.score(CELLS, frame).ability, wanted)
    with refused(BadUsage, "need_columns_each_once", names="no", wrong="column 'difficulty'"):
        discreet.score(CELLS, make({"item": NAMES, "b": NAMES}))


def test_ids_may_be_categories_enumerations_or_uuids():
    ids = [uuid.UUID(int=number // 2) for number in range(4)]
    columns = {"person": list("aabb"), "item": list("xyxy"), "correct": [1, 0, 0, 1]}
    wanted = Responses.from_dataframe(pa.table(columns))
    kinds = {"person": pl.Categorical, "item": pl.Enum(["y", "x", "unused"])}
    assert Responses.from_dataframe(pl.DataFrame(columns, schema_overrides=kinds)) == wanted
    texts = list(dict.fromkeys(map(str, ids)))
    of_bytes = pa.array([one.bytes for one in ids], pa.uuid())
    for frame in (
        pd.DataFrame({**columns, "person": ids}),
        pd.DataFrame({**columns, "person": ids}).set_index(["person", "item"]),
        pa.table({**columns, "person": of_bytes}),
        [
            {"person": a, "item": b, "correct": c}
            for a, b, c in zip(ids, "xyxy", [1, 0, 0, 1], strict=True)
        ],
    ):
        assert Responses.from_dataframe(frame).persons.tolist() == texts


def test_an_index_whose_levels_have_no_names_is_refused_with_the_way_to_name_them():
    frame = pd.DataFrame(
        {"correct": [1, 0]}, index=pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")])
    )
    with refused(BadUsage, "data_frame_index_levels"):
        Responses.from_dataframe(frame)


def test_a_list_that_is_no_matrix_is_refused_with_the_library_s_own_error():
    for wrong in ([], [1, 0], [[1, 0], [1]], [["a", "b"]]):
        with pytest.raises(DiscreetError):
            load_answers(wrong)
    with refused(BadResponses, "rows_answers_differ_length"):
        discreet.fit([[1, 0], [1]])


# -- order by time ---------------------------------------------------------------------------------

TRIES = {
    "person": ["a", "a", "a", "b", "b"],
    "item": ["x", "x", "y", "x", "x"],
    "correct": [1, 0, 1, 0, 1],
}
"""Person a has x right and then wrong by the rows, person b wrong and then right."""


def times(kind):
    numbers = [20, 10, 5, 9, 100]
    big = 2**60
    return {
        "numbers": numbers,
        "large numbers": [big + number for number in numbers],
        "decimals": [number / 8 for number in numbers],
        "dates": [f"2024-05-{number:02}" for number in (20, 10, 5, 9, 30)],
        "zoned": [f"2024-05-01T10:00:{number:02}Z" for number in (20, 10, 5, 9, 30)],
        "days": list(pd.to_datetime([f"2024-05-{number:02}" for number in (20, 10, 5, 9, 30)])),
    }[kind]


KINDS = ["numbers", "large numbers", "decimals", "dates", "zoned", "days"]


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("which", "wanted"), [("last", [1, 1]), ("first", [0, 0])])
def test_the_last_answer_is_the_last_by_the_column_and_not_by_row(
    tmp_path, engine, kind, which, wanted
):
    frame = pd.DataFrame({**TRIES, "time": times(kind)})
    words = {"repeats": which, "order_by": "time"}
    frame.to_csv(tmp_path / "answers.csv", index=False)
    frame.to_parquet(tmp_path / "answers.parquet")
    for source in (tmp_path / "answers.csv", tmp_path / "answers.parquet"):
        counts = discreet.count_pairs(source, engine=engine, **words)
        right = dict(zip(counts.items, counts.right.tolist(), strict=True))
        assert right == {"x": sum(wanted), "y": 1}
        assert counts.answers.tolist() == [2, 1]
    if engine == "memory":
        found = Responses.from_dataframe(frame, **words)
        assert found.select(["x"]).to_array()[:, 0].tolist() == wanted


def test_rows_in_buckets_keep_their_time(tmp_path, monkeypatch):
    from discreet.readers.streamed import passes

    monkeypatch.setattr(passes.batches, "choose_bits", lambda *_: 2)
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "person": rng.integers(0, 50, 3000),
            "item": rng.integers(0, 8, 3000),
            "correct": rng.integers(0, 2, 3000),
            "time": rng.permutation(3000) + 2**55,
        }
    )
    path = tmp_path / "answers.csv"
    frame.to_csv(path, index=False)
    by_hand = frame.sort_values("time").drop_duplicates(["person", "item"], keep="last")
    wanted = discreet.count_pairs(Responses.from_dataframe(by_hand.drop(columns="time")))
    for engine in ("memory", "disk"):
        found = discreet.count_pairs(path, engine=engine, repeats="last", order_by="time")
        place = [found.items.index(name) for name in wanted.items]
        assert np.array_equal(found.right_wrong[np.ix_(place, place)], wanted.right_wrong)


def test_wide_rows_and_records_and_choices_are_ordered_too(tmp_path):
    wide = pd.DataFrame({"id": ["a", "b", "a"], "time": [2, 1, 1], "x": [1, 1, 0], "y": [0, 1, 1]})
    words = {"repeats": "last", "order_by": "time"}
    found = Responses.from_dataframe(wide, **words)
    assert found.items == ("x", "y")
    assert found.to_array().tolist() == [[1, 0], [1, 1]]
    path = tmp_path / "answers.jsonl"
    pd.DataFrame({**TRIES, "time": times("numbers")}).to_json(path, orient="records", lines=True)
    assert discreet.count_pairs(path, **words).right.tolist() == [2, 1]
    letters = pd.DataFrame({"id": list("aab"), "time": [2, 1, 1], "x": list("ABA")})
    chosen = Responses.from_dataframe(letters, key={"x": "A"}, **words).choices
    assert [chosen.options[0][code] for code in chosen.chosen[:, 0]] == ["A", "A"]
    by_row = Responses.from_dataframe(letters, key={"x": "A"}, repeats="last", ignore="time")
    assert by_row.choices.options[0][by_row.choices.chosen[0, 0]] == "B"


def test_a_column_without_an_order_is_refused_with_its_row():
    frame = pd.DataFrame({**TRIES, "time": ["1", "2", "soon", "4", "5"]})
    with refused(
        BadResponses,
        "column_found_no_place",
        location="The data frame, row 2 (counted from 0)",
        name="time",
        spelling="'soon'",
    ):
        Responses.from_dataframe(frame, repeats="last", order_by="time")
    frame["time"] = [1.0, None, 3.0, 4.0, 5.0]
    with refused(
        BadResponses, "column_found_no_place", location="The data frame, row 1 (counted from 0)"
    ):
        Responses.from_dataframe(frame, repeats="last", order_by="time")
    with refused(BadUsage, "order_order_says_repeated"):
        Responses.from_dataframe(frame, order_by="time")
    with refused(BadUsage, "asks_columns_check_column", option="order_by", flag="order-by"):
        Responses.from_dataframe(frame, repeats="last", order_by="tim")


def test_the_command_line_orders_by_a_column_too(tmp_path):
    path = tmp_path / "answers.csv"
    pd.DataFrame({**TRIES, "time": times("dates")}).to_csv(path, index=False)
    out = tmp_path / "counts.npz"
    done = run_command(
        "table", "counts", path, "--repeats", "last", "--order-by", "time", "--out", out
    )
    assert done.code == 0, done.err
    assert discreet.PairCounts.load(out).right.tolist() == [2, 1]


# -- the Python of a Spark session ----------------------------------------------------------------


class Session:
    """Stands for a session: where it runs, and which Python its tasks start."""

    def __init__(self, master, python):
        self._sc = SimpleNamespace(master=master, pythonExec=str(python))


def test_a_local_session_with_another_python_names_the_variable_to_set(tmp_path):
    bare = tmp_path / "python3"
    bare.write_text("#!/bin/sh\nexit 1\n")
    bare.chmod(0o755)
    old = tmp_path / "python2"
    old.write_text("#!/bin/sh\necho 2.7\n")
    old.chmod(0o755)
    here = ".".join(map(str, sys.version_info[:2]))
    for python, wrong in (
        (bare, "cannot import discreet and pyarrow"),
        (old, f"is Python 2.7, not {here}"),
        (tmp_path / "none", "is not there"),
    ):
        frame = SimpleNamespace(sparkSession=Session("local[2]", python))
        with refused(BadUsage, "spark_session_would_run", wrong=wrong) as caught:
            check_workers(frame)
        assert "\n" not in str(caught.value)


def test_a_session_with_this_python_or_in_a_cluster_is_left_alone(tmp_path):
    check_workers(SimpleNamespace(sparkSession=Session("local[2]", sys.executable)))
    check_workers(SimpleNamespace(sparkSession=Session("spark://far:7077", tmp_path / "none")))
