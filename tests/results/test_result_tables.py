"""Results as tables, probabilities of answers, fits by group, and loading what was saved."""

import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet
from refusals import refused


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
    assert estimate["Q1"].difficulty == estimate.difficulty[0]
    with pytest.raises(KeyError, match="there is Q1"):
        estimate["Q1x"]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(estimate)).se, estimate.se)  # noqa: S301
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
    with refused(discreet.errors.BadUsage, "no_item_calibration_see", unknown="Q9"):
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
    with refused(discreet.errors.BadUsage, "no_file_discreet_wrote"):
        discreet.load(world.folder / "answers.csv")
    with refused(discreet.errors.BadUsage, "cannot_read_check_path"):
        discreet.load(tmp_path / "nowhere")
