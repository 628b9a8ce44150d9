"""Sixty calls that a data scientist would guess from the README, each one written before looking.

A call counts as answered where it works or where its error names the call that does. The
second entry of a row is a word of that call: it must be in the message where there is an error.
"""

import pickle
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet
from discreet.hints import explain_call

Guess = Callable[[SimpleNamespace], Any]

GUESSES: dict[str, tuple[Guess, str]] = {
    # Fitting
    "fit(df)": (lambda w: discreet.fit(w.df), ""),
    "fit(df, names of columns)": (
        lambda w: discreet.fit(w.df, person="user", item="item", response="correct"),
        "",
    ),
    "fit(df, correct=)": (lambda w: discreet.fit(w.df, correct="correct"), "response="),
    "fit(df, user=, question=, score=)": (
        lambda w: discreet.fit(w.df, user="user", question="item", score="correct"),
        "person=",
    ),
    "fit(path)": (lambda w: discreet.fit(w.folder / "answers.csv"), ""),
    "fit(array)": (lambda w: discreet.fit(w.array), ""),
    "fit(wide pandas)": (lambda w: discreet.fit(w.wide), ""),
    "fit(polars)": (lambda w: discreet.fit(pl.from_pandas(w.df)), ""),
    "fit(df, by=)": (lambda w: discreet.fit(w.df, by="month")["jan"].difficulty, ""),
    "fit(df, model='pcm')": (lambda w: discreet.fit(w.df, model="pcm"), "partial-credit"),
    "fit(df, method='cml')": (lambda w: discreet.fit(w.df, method="cml"), "conditional"),
    "fit(df, is_correct)": (
        lambda w: discreet.fit(w.df.rename(columns={"correct": "is_correct"})),
        "response=",
    ),
    "read_csv(path)": (lambda w: discreet.read_csv(w.folder / "answers.csv"), "read_responses"),
    "RaschModel().fit(X)": (lambda w: discreet.RaschModel().fit(w.array), "Rasch"),
    # Item parameters as a table
    "e.to_pandas()": (lambda w: w.e.to_pandas().merge(w.df, on="item"), ""),
    "e.to_polars()": (lambda w: w.e.to_polars().filter(pl.col("se") > 0), ""),
    "e.to_frame()": (lambda w: w.e.to_frame(), "to_pandas"),
    "e.to_csv(path)": (lambda w: w.e.to_csv(w.folder / "items.csv"), "to_pandas"),
    "e.to_dict()": (lambda w: w.e.to_dict(), "to_pandas"),
    "e.table": (lambda w: w.e.table, "to_"),
    "pandas.DataFrame(e)": (lambda w: w.e.items.index("Q1") + len(pd.DataFrame(w.e)["item"]), ""),
    "polars.DataFrame(e)": (lambda w: pl.DataFrame(w.e)["difficulty"], ""),
    "pyarrow.table(e)": (lambda w: pa.table(w.e)["difficulty"], ""),
    "e.difficulties": (lambda w: w.e.difficulties, "difficulty"),
    "e.coef_": (lambda w: w.e.coef_, "difficulty"),
    "e['Q1']": (lambda w: w.e["Q1"].difficulty, ""),
    "e['no such item']": (lambda w: w.e["Q1 "], "Q1"),
    "len(e)": (lambda w: range(len(w.e)), ""),
    "for item in e": (lambda w: [item.difficulty for item in w.e], ""),
    "'Q1' in e": (lambda w: {True: "yes"}["Q1" in w.e], ""),
    "e.standard_errors": (lambda w: w.e.standard_errors, "se"),
    "e.std_err": (lambda w: w.e.std_err, "se"),
    "e.conf_int()": (lambda w: w.e.conf_int(), "interval"),
    "e.summary()": (lambda w: w.e.summary(), ""),
    "e.plot()": (lambda w: w.e.plot(), ""),
    "plot(e)": (lambda w: discreet.plot(w.e), "plot"),
    # Probabilities and persons
    "e.predict_proba(ability, item)": (lambda w: float(w.e.predict_proba(0.5, "Q1")), ""),
    "e.predict_proba(abilities)": (lambda w: w.e.predict_proba([-1.0, 0.0, 1.0])[2], ""),
    "e.predict(df)": (lambda w: w.e.predict(w.df), "predict_proba"),
    "e.score(df)": (lambda w: w.e.score(w.df), "discreet.score"),
    "e.abilities": (lambda w: w.e.abilities, "score"),
    "score(df, e)": (lambda w: discreet.score(w.df, w.e), ""),
    "score(e, df)": (lambda w: discreet.score(w.e, w.df), "score("),
    "predict(e, df)": (lambda w: discreet.predict(w.e, w.df), "predict_proba"),
    "scores.to_pandas()": (lambda w: discreet.score(w.df, w.e).to_pandas()["ability"], ""),
    "scores.theta": (lambda w: discreet.score(w.df, w.e).theta, "ability"),
    # Comparisons over time and between groups
    "find_drift(a, b)": (lambda w: discreet.find_drift(w.e, w.e2), ""),
    "compare(a, b)": (lambda w: discreet.compare(w.e, w.e2), "find_drift"),
    "dif(df, group=)": (lambda w: discreet.dif(w.df, group="month"), "find_dif"),
    "link(a, b)": (lambda w: discreet.link(w.e, w.e2), "link_calibrations"),
    "rank(e, top=)": (lambda w: discreet.rank(w.e, top=3).surely_in, ""),
    "item_fit(df, e)": (lambda w: discreet.item_fit(w.df, w.e), "fit"),
    # Saving
    "save, load": (
        lambda w: (w.e.save(w.folder / "e.json"), discreet.load(w.folder / "e.json")),
        "",
    ),
    "pickle": (lambda w: pickle.loads(pickle.dumps(w.e)).difficulty, ""),  # noqa: S301
    # Privacy
    "release(df, epsilon=)": (
        lambda w: discreet.release(w.df, epsilon=1, items=w.e.items).difficulty,
        "",
    ),
    "private_fit(df, epsilon=)": (lambda w: discreet.private_fit(w.df, epsilon=1.0), "release"),
    "released.to_dataframe()": (
        lambda w: discreet.release(w.df, epsilon=1, items=w.e.items).to_dataframe(),
        "",
    ),
    "Ledger.create(path, epsilon=, delta=)": (
        lambda w: discreet.Ledger.create(w.folder / "spent.db", epsilon=2.0, delta=1e-6),
        "",
    ),
    # Data
    "datasets.lsat()": (lambda w: discreet.fit(discreet.datasets.lsat()), ""),
    "simulate(1000, 20)": (lambda w: discreet.simulate(1000, 20), "persons="),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A long table of two months as ed-tech people have it, what a fit makes of it, a folder."""
    folder = tmp_path_factory.mktemp("world")
    rng = np.random.default_rng(1)
    sim = discreet.simulate(persons=120, items=6, rng=rng)
    answers = sim.responses.rows(0, 120)
    rows = [
        (f"u{user}", f"Q{item + 1}", "jan" if user < 60 else "feb", int(answers[user, item]))
        for user in range(120)
        for item in range(6)
    ]
    df = pd.DataFrame(rows, columns=["user", "item", "month", "correct"])
    df.drop(columns="month").to_csv(folder / "answers.csv", index=False)
    wide = df.pivot_table(index="user", columns="item", values="correct").reset_index()
    halves = [df[df.month == month].drop(columns="month") for month in ("jan", "feb")]
    first, second = map(discreet.fit, halves)
    return SimpleNamespace(
        df=df, array=answers.astype(float), wide=wide, e=first, e2=second, folder=folder
    )


def answer(guess: Guess, word: str, world: SimpleNamespace) -> str:
    """Say how a call ended: it works, its error names the call that does, or neither."""
    try:
        guess(world)
    except Exception as error:
        # What follows the first sentence: that repeats the guess itself.
        # A list of everything that there is names no call.
        advice = str(error).partition("'.")[2] if isinstance(error, AttributeError) else str(error)
        advice = advice.partition(" It has ")[0]
        return "named" if word and word in advice else f"{type(error).__name__}: {error}"
    return "works"


@pytest.mark.filterwarnings("ignore")
def test_guessed_calls_work_or_are_told_the_right_one(world):
    ends = {name: answer(*guess, world) for name, guess in GUESSES.items()}
    wrong = {name: end for name, end in ends.items() if end not in ("works", "named")}
    assert len(GUESSES) == 60
    assert len(wrong) <= 6, wrong
    # What is missing here belongs to releases, and to nothing else.
    assert all("release" in name for name in wrong), wrong


@pytest.mark.filterwarnings("ignore")
def test_an_error_about_a_guess_is_the_error_that_python_expects(world):
    assert not hasattr(world.e, "difficulties")
    with pytest.raises(AttributeError, match=r"has no attribute 'difficulties'. Use difficulty"):
        _ = world.e.difficulties
    with pytest.raises(AttributeError, match="Did you mean fit"):
        _ = discreet.fitt
    with pytest.raises(TypeError, match=r"Call it as discreet.rank\(estimate, top, easiest=False"):
        discreet.rank(world.e, 3, 4, 5)
    with pytest.raises(TypeError, match=r"^(?!.*Call it as)"):
        explain_call(lambda: len(3))()  # an error from inside stays as it is
    with pytest.raises(KeyError, match="there is Q1"):
        world.e["Q1x"]


def test_a_result_is_a_table_for_every_program(world):
    whole = world.e.to_dict()
    for frame in (pd.DataFrame(world.e), world.e.to_pandas(), world.e.to_dataframe()):
        assert frame.to_dict("list").keys() == whole.keys()
        np.testing.assert_array_equal(frame["difficulty"], world.e.difficulty)
    for table in (pl.DataFrame(world.e), world.e.to_polars(), pa.table(world.e)):
        np.testing.assert_array_equal(table["se"].to_numpy(), world.e.se)
    import duckdb

    estimate = world.e
    ((hardest,),) = duckdb.sql("SELECT max(difficulty) FROM estimate").fetchall()
    assert hardest == estimate.difficulty.max()
    assert pa.RecordBatchReader.from_stream(estimate).read_all().num_rows == len(estimate) == 6
    assert [row.item for row in estimate] == list(estimate.items)
    assert "Q1" in estimate
    assert "difficulty" not in estimate
    np.testing.assert_array_equal(estimate["se"], estimate.se)


def test_probabilities_are_those_of_the_model(world):
    e = world.e
    theta, b = np.array([-1.0, 0.3]), e.difficulty
    expected = 1 / (1 + np.exp(b - theta[:, None]))
    np.testing.assert_allclose(e.predict_proba(theta), expected, rtol=1e-12)
    np.testing.assert_allclose(e.predict_proba(theta, "Q2"), expected[:, 1], rtol=1e-12)
    np.testing.assert_allclose(e.predict_proba(0.3, ["Q3", "Q1"]), expected[1, [2, 0]], rtol=1e-12)
    scores = discreet.score(world.df.drop(columns="month"), e)
    person = scores["u3"]
    assert e.predict_proba(person, "Q1") == pytest.approx(
        1 / (1 + np.exp(b[0] - person.ability)), rel=1e-12
    )
    assert e.predict_proba(scores).shape == (120, 6)
    with pytest.raises(discreet.errors.BadUsage, match="'Q9'"):
        e.predict_proba(0.0, "Q9")


def test_probabilities_of_steps_follow_their_thresholds():
    from discreet.results.estimate import Estimate, Solution
    from discreet.results.thresholds import Thresholds

    thresholds = np.array([[-0.5, 0.8], [0.4, np.nan], [np.nan, np.nan]])
    status = (("estimated",) * 2, ("estimated",), ("no_answers",) * 2)
    estimate = Estimate(
        items=("a", "b", "c"),
        difficulty=np.array([0.15, 0.4, np.nan]),
        se=np.full(3, np.nan),
        status=("estimated", "estimated", "no_answers"),
        method="given",
        solution=Solution("given", 0, 0.0),
        steps=(2, 1, 2),
        model="partial-credit",
        ladder=Thresholds(thresholds, np.full((3, 2), np.nan), status),
    )
    shares = estimate.predict_proba(0.2)
    weights = np.exp([0.0, 0.2 + 0.5, 0.4 + 0.5 - 0.8])
    np.testing.assert_allclose(shares[0], weights / weights.sum(), rtol=1e-12)
    np.testing.assert_allclose(shares[1, :2], [1 / (1 + np.exp(-0.2)), 1 / (1 + np.exp(0.2))])
    assert np.isnan(shares[1, 2])
    assert np.isnan(shares[2]).all()
    np.testing.assert_allclose(shares[1, 0], 1 / (1 + np.exp(0.2 - 0.4)))


def test_fits_by_group_are_those_of_each_group_alone(world):
    fits = discreet.fit(world.df, by="month")
    assert list(fits) == ["jan", "feb"]
    np.testing.assert_array_equal(fits["jan"].difficulty, world.e.difficulty)
    np.testing.assert_array_equal(fits["feb"].difficulty, world.e2.difficulty)
    table = fits.to_pandas()
    assert list(table.columns[:3]) == ["month", "item", "difficulty"]
    assert len(table) == 12
    world.df.to_csv(world.folder / "months.csv", index=False)
    again = discreet.fit(world.folder / "months.csv", by="month", method="refined")
    assert again["feb"].method == "refined"
    fits.save(world.folder / "fits.json")
    assert discreet.load(world.folder / "fits.json")["jan"].items == world.e.items
    with pytest.raises(discreet.errors.BadUsage, match=r"no column 'week'.*month"):
        discreet.fit(world.df, by="week")


def test_whatever_was_written_is_loaded(world, tmp_path):
    items = list(world.e.items)
    budget = discreet.Budget(epsilon=1.0, delta=1e-6)
    answers = discreet.Responses.from_dataframe(world.df.drop(columns="month"))
    discreet.release(answers, budget, items=items).save(tmp_path / "release")
    discreet.count_pairs(answers).save(tmp_path / "counts.npz")
    discreet.Ledger.create(tmp_path / "spent.db", epsilon=2.0, delta=1e-6)
    bank = discreet.create_bank(world.e, scale="s", source="first")
    discreet.write_bank(tmp_path / "bank.csv", bank)
    kinds = ["release", "counts.npz", "spent.db", "bank.csv"]
    loaded = [type(discreet.load(tmp_path / name)).__name__ for name in kinds]
    assert loaded == ["Published", "PairCounts", "Ledger", "Bank"]
    with pytest.raises(discreet.errors.BadUsage, match="read_responses"):
        discreet.load(world.folder / "answers.csv")
    with pytest.raises(discreet.errors.BadUsage, match="cannot be read"):
        discreet.load(tmp_path / "nowhere")
