"""Fits of counts: every sample as an item of its own, and errors over units by their definition."""

from itertools import product
from math import comb

import numpy as np
import pandas as pd
import pytest

import discreet
from commandline import discreet as command
from discreet.answers.repeated import SampleCounts, sum_graded
from discreet.errors import BadResponses, BadUsage, WarningKind
from discreet.models import repeated
from discreet.models.conditional import group_counts
from discreet.models.conditional.batches import expect_entries
from discreet.models.repeated import fit_counts
from refusals import refused


def draw(rng, units=40, items=4, most=3, clusters=None):
    """Counts with unequal numbers of samples, some of them none, and an item x unit effect."""
    tried = rng.integers(0, most + 1, (units, items))
    eta = rng.normal(size=(units, 1)) - np.linspace(-1, 1, items) + rng.normal(0, 0.8, tried.shape)
    success = rng.binomial(tried, 1 / (1 + np.exp(-eta))).astype(float)
    cluster = np.arange(units) if clusters is None else np.arange(units) % clusters
    names = tuple(f"p{n}" for n in range(units)), tuple(f"i{n}" for n in range(items))
    return SampleCounts(*names, success, tried, cluster)


def list_samples(counts, unit):
    """The item of every sample of a unit, and whether it was right."""
    for item, (right, tried) in enumerate(
        zip(counts.success[unit], counts.tried[unit], strict=True)
    ):
        yield from ((item, int(sample < right)) for sample in range(tried))


def log_chance(samples, difficulty):
    """Of a unit's samples given their sum: over all other answers with it, one by one."""
    item = np.array([one for one, _ in samples], dtype=int)
    right = np.array([mark for _, mark in samples])
    ways = np.array([way for way in product((0, 1), repeat=len(item)) if sum(way) == right.sum()])
    weight = np.exp(-(ways @ difficulty[item]))
    return -(right @ difficulty[item]) - np.log(weight.sum())


def score(counts, difficulty, step=1e-5):
    """Derivatives of every unit's conditional likelihood, ``[unit, item]``."""
    units = [list(list_samples(counts, unit)) for unit in range(len(counts.units))]
    up, down = (difficulty + sign * step * np.eye(len(difficulty)) for sign in (1, -1))
    rise = [[log_chance(own, a) - log_chance(own, b) for a, b in zip(up, down, strict=True)]
            for own in units]  # fmt: skip
    return np.array(rise) / 2 / step


def test_conditional_fits_of_counts_are_those_of_samples_as_items_of_one_difficulty():
    counts = draw(np.random.default_rng(1), clusters=17)
    found = fit_counts(counts, "conditional")
    scores = score(counts, found.difficulty)
    assert np.abs(scores.sum(axis=0)).max() < 1e-8
    slopes = [
        (score(counts, found.difficulty + m) - score(counts, found.difficulty - m)).sum(axis=0)
        / 2e-4
        for m in 1e-4 * np.eye(4)
    ]
    moves = scores @ np.linalg.pinv(-np.array(slopes), rcond=1e-4)
    total = np.array([moves[counts.cluster == c].sum(axis=0) for c in range(17)])
    np.testing.assert_allclose(found.covariance, 17 / 16 * total.T @ total, rtol=2e-5, atol=1e-8)
    assert found.degrees == 16
    assert found.difficulty.mean() == pytest.approx(0, abs=1e-12)


def test_chances_given_the_total_are_those_of_binomial_products():
    counts = draw(np.random.default_rng(2), units=25, items=3, most=16)
    difficulty = np.array([-1.3, 0.2, 1.1])
    right = counts.success.astype(int)
    patterns = group_counts(counts.tried, right)
    found = expect_entries(patterns, difficulty[:, None])[patterns.entry, :, 0]
    for unit, tried in enumerate(counts.tried):
        cells = np.array([*product(*(range(n + 1) for n in tried))])
        cells = cells[cells.sum(axis=1) == right[unit].sum()]
        ways = [np.prod([comb(n, c) for n, c in zip(tried, own, strict=True)]) for own in cells]
        weight = np.array(ways, dtype=float) * np.exp(-(cells @ difficulty))
        np.testing.assert_allclose(
            found[unit], weight @ cells / weight.sum(), rtol=1e-10, atol=1e-12
        )


def test_one_answer_each_is_the_conditional_fit_of_answers():
    answers = discreet.simulate(persons=300, items=6, rng=np.random.default_rng(3)).responses
    cells = answers.to_array()
    about = tuple(answers.persons), answers.items, cells.astype(float), np.ones_like(cells)
    counts = SampleCounts(*about, np.arange(300))
    direct = discreet.fit(answers, method="conditional")
    found = fit_counts(counts, "conditional")
    np.testing.assert_allclose(found.difficulty, direct.difficulty, atol=1e-9)
    np.testing.assert_allclose(found.se, direct.se, rtol=0.2)  # of the model, and of the data
    assert found.right.tolist() == direct.right.tolist()


@pytest.mark.parametrize("samples", [5, 16])
@pytest.mark.parametrize("effect", [0.0, 1.5])
def test_errors_hold_with_and_without_a_difference_by_unit(samples, effect):
    rng, truth = np.random.default_rng(4), np.linspace(-1, 1, 4)
    names, tried = (tuple(map(str, range(60))), tuple("abcd")), np.full((60, 4), samples)
    fits = []
    for _ in range(150):
        eta = rng.normal(size=(60, 1)) - truth + rng.normal(0, effect, (60, 4))
        success = rng.binomial(tried, 1 / (1 + np.exp(-eta))).astype(float)
        fits.append(fit_counts(SampleCounts(*names, success, tried, np.arange(60)), "conditional"))
    spread = np.std([one.difficulty for one in fits], axis=0, ddof=1)
    ratio = np.sqrt(np.mean([one.se**2 for one in fits]) / np.mean(spread**2))
    assert (
        0.9 < ratio < 1.1
    )  # of a fixed seed, 1 ± .033; the study beside leaderboards has 400 sets


def test_a_method_is_chosen_by_its_work_and_by_what_the_counts_hold(monkeypatch):
    counts = draw(np.random.default_rng(5))
    assert fit_counts(counts, "auto").method == "conditional"
    monkeypatch.setattr(repeated, "WORK_SECONDS", 0.0)
    found = fit_counts(counts, "auto")
    assert found.method == "refined"
    assert found.choice
    np.testing.assert_array_equal(found.se, fit_counts(counts).se)
    monkeypatch.undo()
    graded = sum_graded([("a", "x", 0.5), ("a", "y", 0.2), ("b", "x", 0.3), ("b", "y", 0.9)])
    assert fit_counts(graded, "auto").method == "refined"
    assert fit_counts(graded).right is None
    with refused(BadUsage, "method_conditional_given_how"):
        fit_counts(graded, "conditional")


def test_few_units_are_told():
    counts = draw(np.random.default_rng(6), clusters=9)
    assert [one.kind for one in fit_counts(counts).warnings] == [WarningKind.ROUGH]
    assert not fit_counts(draw(np.random.default_rng(6), clusters=10)).warnings


@pytest.fixture
def table():
    counts = draw(np.random.default_rng(7), clusters=15)
    rows = [
        (counts.units[unit], f"s{counts.cluster[unit]}", counts.items[item], right)
        for unit in range(len(counts.units))
        for item, right in list_samples(counts, unit)
    ]
    return counts, pd.DataFrame(rows, columns=["person", "school", "item", "response"])


def test_fit_counts_the_samples_of_a_table_and_a_command_does_too(table, tmp_path, monkeypatch):
    counts, frame = table
    found = discreet.fit(frame, repeats="sum", cluster="school")
    place = [found.items.index(name) for name in counts.items]
    wanted = fit_counts(counts, "conditional")
    np.testing.assert_allclose(found.difficulty[place], wanted.difficulty, atol=1e-9)
    np.testing.assert_allclose(found.se[place], wanted.se, atol=1e-9)
    assert found.answers[place].tolist() == counts.tried.sum(axis=0).tolist()
    alone = discreet.fit(frame, repeats="sum", method="refined")
    assert (alone.method, alone.degrees) == ("refined", 39)
    assert discreet.rank(found, 1).top == (found.items[int(np.argmax(found.difficulty))],)
    monkeypatch.chdir(tmp_path)
    frame.to_csv("log.csv", index=False)
    shown = command("fit", "log.csv", "--repeats", "sum", "--cluster", "school", "--out", "kept")
    assert shown.code == 0, shown.err
    kept = discreet.load("kept/calibration.confidential.json")
    np.testing.assert_allclose(kept.difficulty, found.difficulty, atol=1e-12)
    assert command("fit", "log.csv", "--repeats", "sum", "--method", "marginal").code == 2
    assert command("fit", "log.csv", "--repeats", "sum", "--scale", "mean=500,sd=100").code == 2


def test_what_is_for_one_answer_each_is_refused_beside_counts(table):
    _, frame = table
    for words in (
        {"anchors": {"i0": 0.0}}, {"model": "partial-credit"}, {"weight": "school"},
        {"regularisation": 1.0}, {"engine": "disk"}, {"split": {"i0": "school"}},
        {"keep_categories": True}, {"facets": "school"},
    ):  # fmt: skip
        with refused(BadUsage, "repeats_sum_counts_right", stated=next(iter(words))):
            discreet.fit(frame, repeats="sum", **words)
    with refused(BadUsage, "method_marginal_takes_samples"):
        discreet.fit(frame, repeats="sum", method="marginal")
    with refused(BadUsage, "repeats_sum_counts_repeated"):
        discreet.fit(np.eye(3), repeats="sum")
    for call in (discreet.count_pairs, discreet.Responses.from_dataframe):
        with refused(BadUsage, "repeats_sum_repeats_sum"):
            call(frame, repeats="sum")
    estimate = discreet.fit(frame, repeats="sum")
    with refused(BadUsage, "repeats_sum_repeats_sum"):
        discreet.score(frame, estimate, repeats="sum")
    with refused(BadUsage, "repeats_sum_repeats_sum"):
        discreet.analysis.measure_fit(frame, estimate, repeats="sum")
    with refused(BadUsage, "repeats_sum_repeats_sum"):
        discreet.release(frame, epsilon=1.0, items=["i0", "i1"], repeats="sum")


GRADED = pd.DataFrame(
    {"model": ["a", "b", "c"], "q1": [0.9, 0.4, 0.25], "q2": [0.5, 0.75, None], "q3": [1, 0.5, 0]}
)


def test_graded_scores_come_from_tables_of_any_layout_and_from_arrays(tmp_path):
    long = GRADED.melt(id_vars="model", var_name="question", value_name="score")
    wanted = discreet.leaderboard(long, graded=True)
    assert wanted.models == ("a", "b", "c")
    turned = GRADED.set_index("model").T.rename_axis("question").reset_index()
    GRADED.to_csv(tmp_path / "wide.csv", index=False)
    GRADED.to_csv(tmp_path / "comma.csv", index=False, sep=";", decimal=",")
    cells = GRADED.drop(columns="model").to_numpy(dtype=float)
    for source, words in (
        (GRADED, {"person": "model"}), (GRADED.set_index("model"), {}), (cells, {}),
        (np.ma.masked_invalid(cells), {}), (np.nan_to_num(cells, nan=-1), {}),
        (tmp_path / "wide.csv", {"person": "model"}), (tmp_path / "comma.csv", {"person": "model"}),
        (turned, {"layout": "transposed"}),
    ):  # fmt: skip
        board = discreet.leaderboard(source, graded=True, **words)
        np.testing.assert_allclose(board.measure, wanted.measure, atol=1e-12)
        np.testing.assert_allclose(board.se, wanted.se, atol=1e-12)
        assert board.questions == 3
    assert discreet.leaderboard(GRADED.set_index("model"), graded=True).models == wanted.models
    again = pd.concat([GRADED, GRADED])  # several scores of a model on a question are averaged
    twice = discreet.leaderboard(again, graded=True, person="model")
    np.testing.assert_allclose(twice.accuracy, wanted.accuracy)


def test_what_graded_scores_cannot_be_is_refused():
    words = {"graded": True, "person": "model"}
    with refused(BadResponses, "found_scores_graded_scores"):
        discreet.leaderboard(GRADED.assign(q1=[1, 2, 3]), **words)
    with refused(BadResponses, "found_score_where_graded"):
        discreet.leaderboard(GRADED.assign(q1=["x", "y", "z"]), **words)
    with refused(BadUsage, "graded_scores_count_they"):
        discreet.leaderboard(GRADED, at_least=0.5, **words)
    with refused(BadUsage, "scores_need_array_person"):
        discreet.leaderboard(np.ones(3), graded=True)
    with refused(BadUsage, "pass_counts_right_samples"):
        discreet.leaderboard(GRADED, pass_at=1, **words)
    with refused(BadUsage, "method_conditional_given_how"):
        discreet.leaderboard(GRADED, method="conditional", **words)
    cells = GRADED.set_index("model")
    estimate = discreet.fit(np.array([[1, 0, 1], [0, 1, 1], [1, 1, 0]]))
    for call in (
        lambda: discreet.fit(cells), lambda: discreet.fit(cells, method="conditional"),
        lambda: discreet.fit(cells, method="marginal"), lambda: discreet.count_pairs(cells),
        lambda: discreet.score(cells, estimate), lambda: discreet.analysis.check_model(cells),
        lambda: discreet.analysis.measure_fit(cells, estimate),
        lambda: discreet.release(cells, epsilon=1.0, items=["q1", "q2"], layout="wide"),
    ):  # fmt: skip
        with pytest.raises(BadResponses):
            call()
