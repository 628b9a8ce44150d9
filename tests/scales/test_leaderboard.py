"""Leaderboards: measures and errors against their definitions, ranks, tiers, samples, pass@k."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet.answers.repeated import SampleCounts, number_samples
from discreet.errors import BadResponses, BadUsage, DisconnectedItems, WarningKind
from discreet.models.repeated import fit_counts, sum_clusters
from discreet.readers.repeated import read_counts
from discreet.report.leaderboard import write_board_page
from discreet.scales.leaderboard import find_families, make_leaderboard
from refusals import refused


def draw(rng, models=5, questions=60, tries=(1, 4), measure=None, clusters=None):
    """Counts in which cells have unequal numbers of samples, some of them none."""
    measure = np.linspace(-1, 1, models) if measure is None else measure
    cluster = np.arange(questions) if clusters is None else np.arange(questions) % clusters
    eta = measure - rng.normal(size=(questions, 1)) + rng.normal(0, 0.8, (questions, models))
    tried = rng.integers(tries[0], tries[1] + 1, eta.shape)
    success = rng.binomial(tried, 1 / (1 + np.exp(-eta))).astype(float)
    names = tuple(f"q{n}" for n in range(questions)), tuple(f"m{n}" for n in range(models))
    return SampleCounts(*names, success, tried, cluster)


def long_table(counts):
    rows = [
        (model, question, f"p{counts.cluster[q]}", int(sample < counts.success[q, m]))
        for q, question in enumerate(counts.units)
        for m, model in enumerate(counts.items)
        for sample in range(counts.tried[q, m])
    ]
    return pd.DataFrame(rows, columns=["model", "question", "passage", "correct"])


def score(counts, value):
    """The derivative of each question's pairwise likelihood, sample by sample of every pair."""
    out = np.zeros(counts.success.shape)
    for q in range(len(out)):
        weight = 1 / counts.tried[q].sum()
        for i, j in combinations(range(out.shape[1]), 2):
            chance = 1 / (1 + np.exp(value[i] - value[j]))  # that i is the one that is right
            first = counts.success[q, i] * counts.failure[q, j]
            second = counts.success[q, j] * counts.failure[q, i]
            pull = weight * (first * (1 - chance) - second * chance)
            out[q, i] -= pull
            out[q, j] += pull
    return out


def test_measures_solve_the_pairwise_score_and_errors_are_its_sandwich_over_clusters():
    counts = draw(np.random.default_rng(3), tries=(0, 4), clusters=23)
    found = fit_counts(counts)
    value, step = found.difficulty, 1e-5
    assert np.abs(score(counts, value).sum(axis=0)).max() < 1e-9
    slopes = [
        (score(counts, value + move).sum(axis=0) - score(counts, value - move).sum(axis=0)) / 2
        for move in step * np.eye(5)
    ]
    inverse = np.linalg.pinv(np.array(slopes) / step, rcond=1e-6)
    moves = score(counts, value) @ inverse
    total = np.array([moves[counts.cluster == c].sum(axis=0) for c in range(23)])
    wanted = 23 / 22 * sum(np.outer(row, row) for row in total)
    np.testing.assert_allclose(found.covariance, wanted, rtol=1e-6, atol=1e-10)
    assert found.degrees == 22


def test_one_answer_each_has_the_measures_of_a_fit_with_models_as_items():
    answers = draw(np.random.default_rng(1), tries=(1, 1)).success
    board = discreet.leaderboard(answers.T.astype(int))
    turned = discreet.fit(answers.astype(int), method="refined")
    order = [int(name) for name in board.models]
    np.testing.assert_allclose(board.measure, -turned.difficulty[order], atol=1e-9)
    np.testing.assert_allclose(board.se, turned.se[order], rtol=0.05)
    assert (np.diff(board.measure) <= 0).all()


def test_the_spectral_method_agrees_where_the_model_holds():
    counts = draw(np.random.default_rng(2), questions=3000)
    refined, spectral = fit_counts(counts), fit_counts(counts, "spectral")
    np.testing.assert_allclose(refined.difficulty, spectral.difficulty, atol=0.05)
    np.testing.assert_allclose(refined.se, spectral.se, rtol=0.25)


def test_a_table_with_samples_counts_them_and_a_file_says_the_same(tmp_path):
    counts = draw(np.random.default_rng(4), clusters=15)
    frame = long_table(counts)
    board = discreet.leaderboard(frame, cluster="passage", repeats="sum", pass_at=1)
    direct = make_leaderboard(counts, pass_at=(1,))
    assert board.models == direct.models
    np.testing.assert_allclose(board.measure, direct.measure, atol=1e-12)
    np.testing.assert_allclose(board.se, direct.se, atol=1e-12)
    assert (board.questions, board.clusters, board.samples) == (60, 15, 4)
    frame.sample(frac=1, random_state=1).to_csv(tmp_path / "log.csv", index=False)
    read = discreet.leaderboard(tmp_path / "log.csv", cluster="passage", repeats="sum", pass_at=1)
    assert read.models == board.models
    np.testing.assert_allclose(read.se, board.se, atol=1e-12)
    passages = dict(zip(frame["question"], frame["passage"], strict=True))
    assert discreet.leaderboard(frame, cluster=passages, repeats="sum", pass_at=1) == board


def test_persons_of_a_wide_table_may_stand_in_several_rows():
    frame = pd.DataFrame({"model": ["a", "a", "b"], "q1": [1, 0, 1], "q2": [1, 1, None]})
    counts = read_counts(frame, {"person": "model", "repeats": "sum"}).turn(("question", "model"))
    assert (counts.units, counts.items) == (("q1", "q2"), ("a", "b"))
    assert counts.success.tolist() == [[1, 1], [2, 0]]
    assert counts.tried.tolist() == [[2, 1], [2, 0]]


def test_samples_are_numbered_in_the_order_of_rows():
    code, items = number_samples(np.array([1, 0, 1, 1]), np.array([1, 0, 1, 1]), ("x", "y"))
    assert code.tolist() == [1, 0, 2, 3]
    assert [name.replace("\x1f", "#") for name in items] == ["x", "y", "y#2", "y#3"]


def test_accuracy_and_pass_at_k_are_means_over_questions_with_errors_over_clusters():
    counts = draw(np.random.default_rng(5), tries=(3, 5), clusters=12)
    board = make_leaderboard(counts, pass_at=(2, 3))
    model = counts.items.index(board.models[1])
    cells = []
    for c, n in zip(counts.success[:, model], counts.tried[:, model], strict=True):
        samples = [1] * int(c) + [0] * int(n - c)
        cells.append(np.mean([any(chosen) for chosen in combinations(samples, 2)]))
    assert board.passed[1, 0] == pytest.approx(np.mean(cells))
    apart = np.array(cells) - np.mean(cells)
    sums = [apart[counts.cluster == c].sum() for c in range(12)]
    wanted = np.sqrt(12 / 11 * np.square(sums).sum()) / len(cells)
    assert board.passed_se[1, 0] == pytest.approx(wanted)
    shares = (counts.success / counts.tried)[:, model]
    assert board.accuracy[1] == pytest.approx(shares.mean())
    assert (board.passed[:, 1] > board.passed[:, 0]).all()


def test_pass_at_one_is_the_accuracy_and_its_error_too():
    board = make_leaderboard(draw(np.random.default_rng(6)), pass_at=(1,))
    np.testing.assert_allclose(board.passed[:, 0], board.accuracy)
    np.testing.assert_allclose(board.passed_se[:, 0], board.accuracy_se)


def test_clusters_count_once_whatever_their_answers_share():
    counts = draw(np.random.default_rng(7), questions=40)
    twice = SampleCounts(
        tuple(f"{name}{copy}" for copy in "ab" for name in counts.units),
        counts.items, np.tile(counts.success, (2, 1)), np.tile(counts.tried, (2, 1)),
        np.tile(counts.cluster, 2),
    )  # fmt: skip
    once, copied = fit_counts(counts), fit_counts(twice)
    np.testing.assert_allclose(copied.difficulty, once.difficulty, atol=1e-9)
    np.testing.assert_allclose(copied.se, once.se, rtol=1e-6)


def test_the_covariance_of_clusters_is_that_of_their_sums():
    moves, cluster = np.array([[1.0], [2.0], [-3.0]]), np.array([4, 4, 9])
    covariance, degrees = sum_clusters(moves, cluster)
    assert covariance.tolist() == [[2 * (9 + 9)]]
    assert degrees == 1


def test_models_of_one_tier_are_never_told_apart_and_a_lower_one_is_below_somebody():
    counts = draw(np.random.default_rng(8), models=12, questions=400, tries=(2, 2))
    board = make_leaderboard(counts)
    tier = dict(zip(board.models, board.tier, strict=True))
    below = {name: [] for name in board.models}
    for row in board.comparisons:
        assert not (row.told_apart and tier[row.first] == tier[row.second])
        if row.told_apart:
            below[row.second].append(tier[row.first])
    assert max(tier.values()) > 2
    for name, tiers in below.items():
        assert tier[name] == 1 + max(tiers, default=0)


def test_all_true_ranks_are_in_the_ranges_and_ties_are_not_torn():
    truth = np.array([1.0, 1.0, 0.3, 0.0, 0.0, -1.5])
    rng, inside = np.random.default_rng(9), 0
    for _ in range(30):
        board = make_leaderboard(draw(rng, 6, 300, measure=truth))
        own = truth[[int(name[1:]) for name in board.models]]
        best = 1 + (own[None] > own[:, None]).sum(axis=1)
        worst = (own[None] >= own[:, None]).sum(axis=1)
        inside += (board.rank_low <= best).all() and (board.rank_high >= worst).all()
    assert inside >= 28  # of a fixed seed; 95% of any


def test_a_model_without_a_measure_may_have_any_rank_and_widens_all_others():
    counts = draw(np.random.default_rng(10), models=4, questions=900, tries=(1, 1))
    full = np.ones((900, 1))
    more = SampleCounts(
        counts.units, (*counts.items, "m9"), np.hstack([counts.success, full]),
        np.hstack([counts.tried, full.astype(int)]), counts.cluster,
    )  # fmt: skip
    board, known = make_leaderboard(more), make_leaderboard(counts)
    assert board.models[-1] == "m9"
    assert board.status[-1] == "always_right"
    assert (board.rank_low[-1], board.rank_high[-1], board.tier[-1]) == (1, 5, 0)
    assert board.rank_low[:-1].tolist() == known.rank_low.tolist()
    assert board.rank_high[:-1].tolist() == (known.rank_high + 1).tolist()
    assert np.isnan(board.accuracy_se[-1])
    assert [warning.kind for warning in board.warnings] == [WarningKind.LEFT_OUT]


def test_models_that_few_questions_link_have_no_error_and_any_rank():
    rng = np.random.default_rng(11)
    tried = np.zeros((84, 6), dtype=int)
    tried[:40, :3], tried[40:80, 3:], tried[80:] = 1, 1, 1
    success = rng.binomial(tried, 0.5).astype(float)
    success[80:, 2:4] = [[1, 0], [0, 1], [1, 0], [0, 1]]
    names = tuple(map(str, range(84))), tuple("abcdef")
    board = make_leaderboard(SampleCounts(*names, success, tried, np.arange(84)))
    lost = np.isnan(board.se)
    assert lost.any()
    assert (board.tier[lost] == 0).all()
    assert (board.rank_low[lost] == 1).all()
    assert (board.rank_high[lost] == 6).all()
    assert WarningKind.WEAK_LINK in [warning.kind for warning in board.warnings]


def test_the_conditional_method_ranks_as_the_others_and_solves_its_own_likelihood():
    counts = draw(np.random.default_rng(18), questions=2000, tries=(0, 3))
    board, refined = make_leaderboard(counts, method="conditional"), make_leaderboard(counts)
    assert board.estimate.method == "conditional"
    assert board.models == refined.models
    np.testing.assert_allclose(board.measure, refined.measure, atol=0.05)
    np.testing.assert_allclose(board.se, refined.se, rtol=0.1)
    direct = fit_counts(counts, "conditional")
    order = [counts.items.index(name) for name in board.models]
    np.testing.assert_array_equal(board.measure, -direct.difficulty[order])


def test_few_clusters_are_told():
    board = make_leaderboard(draw(np.random.default_rng(12), clusters=9))
    assert [warning.kind for warning in board.warnings] == [WarningKind.ROUGH]
    assert not make_leaderboard(draw(np.random.default_rng(12), clusters=10)).warnings


def test_families_are_named_by_the_first_word_behind_the_maker():
    names = ["a/llama-7b", "b/Llama3", "llama_70", "gpt-4", "gpt-5", "7b"]
    assert find_families(names) == (("a/llama-7b", "b/Llama3", "llama_70"),)
    counts = draw(np.random.default_rng(13), models=6)
    named = SampleCounts(counts.units, tuple(names), *list(vars(counts).values())[2:])
    assert [w.kind for w in make_leaderboard(named).warnings] == [WarningKind.RELATED]
    assert not make_leaderboard(counts).warnings  # m0, m1, ...: all of them


def test_a_leaderboard_is_ranked_saved_and_shown(tmp_path):
    board = make_leaderboard(draw(np.random.default_rng(14), tries=(2, 3)), pass_at=(1, 2))
    board.save(tmp_path / "board.json")
    assert discreet.load(tmp_path / "board.json") == board
    assert discreet.rank(board, 1).top == board.models[:1]
    ranges = discreet.rank_ranges(board)
    assert ranges.noun == "model"
    assert ranges.first.tolist() == board.rank_low.tolist()
    pair = discreet.compare_items(board, *board.models[:2])
    row = board.comparisons.to_dict()
    assert (pair.difference, pair.se) == pytest.approx((row["difference"][0], row["se"][0]))
    assert pair.probability == pytest.approx(row["probability"][0])
    assert row["upper"][0] - row["difference"][0] == pytest.approx(ranges.quantile * pair.se)
    assert board.to_markdown().count("\n| m") == 5
    page = write_board_page(board, title="<b>", note="Simulated.")
    assert "Simulated." in page
    assert "&lt;b&gt;" in page
    assert all(name in page for name in board.models)


def test_graded_scores_are_sums_whose_measures_solve_the_same_equation(tmp_path):
    counts = draw(np.random.default_rng(17), tries=(1, 4), clusters=20)
    frame = long_table(counts).groupby(["model", "question", "passage"], as_index=False).mean()
    frame["score"] = frame.pop("correct") * 0.9 + 0.05
    board = discreet.leaderboard(frame, graded=True, cluster="passage")
    share = counts.success / counts.tried * 0.9 + 0.05
    ones = np.ones(share.shape, dtype=int)
    direct = SampleCounts(counts.units, counts.items, share, ones, counts.cluster)
    wanted = make_leaderboard(direct)
    assert board.models == wanted.models
    np.testing.assert_allclose(board.measure, wanted.measure, atol=1e-12)
    np.testing.assert_allclose(board.se, wanted.se, atol=1e-12)
    assert np.abs(score(direct, fit_counts(direct).difficulty).sum(axis=0)).max() < 1e-9
    frame.to_csv(tmp_path / "scores.csv", index=False)
    read = discreet.leaderboard(tmp_path / "scores.csv", graded=True, cluster="passage")
    np.testing.assert_allclose(read.se, board.se, atol=1e-12)


def test_what_a_leaderboard_cannot_take_is_refused():
    answers = draw(np.random.default_rng(16), tries=(1, 1)).success.T.astype(int)
    with refused(BadUsage, "repeats_sum_counts_repeated"):
        discreet.leaderboard(answers, repeats="sum")
    with refused(BadUsage, "cluster_names_column_none"):
        discreet.leaderboard(answers, cluster="passage")
    with refused(BadUsage, "belong_no_cluster_answers"):
        discreet.leaderboard(answers, cluster={"0": "a"})
    with refused(BadUsage, "pass_needs_fewest_samples"):
        discreet.leaderboard(answers, pass_at=2)
    with refused(BadResponses, "found_answers_steps_leaderboard"):
        discreet.leaderboard(answers * 2 + 1 - answers[::-1])
    with refused(DisconnectedItems, "no_two_models_compared"):
        discreet.leaderboard(np.ones((3, 4), dtype=int))
    wide = pd.DataFrame({"model": ["a", "b"], "q1": [1, 0], "q2": [0, 1]})
    with refused(BadUsage, "column_each_question_no"):
        discreet.leaderboard(wide, person="model", cluster="passage")


def test_models_in_columns_are_told_from_models_in_rows(tmp_path):
    counts = draw(np.random.default_rng(19), models=3, tries=(1, 1))
    frame = pd.DataFrame(counts.success.astype(int), columns=["ash", "elm", "oak"])
    frame.insert(0, "question", counts.units)
    frame.to_csv(tmp_path / "wide.csv", index=False)
    for source in (frame, frame.set_index("question"), tmp_path / "wide.csv"):
        with refused(BadUsage, "column_says_each_row", column="question"):
            discreet.leaderboard(source)
        board = discreet.leaderboard(source, layout="transposed")
        assert set(board.models) == {"ash", "elm", "oak"}
        turned = discreet.leaderboard(source, person="question")
        assert WarningKind.TRANSPOSED in [warning.kind for warning in turned.warnings]
    assert WarningKind.TRANSPOSED not in [warning.kind for warning in board.warnings]


def test_scores_that_are_no_answers_lead_to_graded_and_one_model_is_told():
    frame = pd.DataFrame({"model": ["a", "b"], "question": ["x", "x"], "correct": [0.7, 0.2]})
    with refused(BadResponses, "found_among_answers_if", score="0.7"):
        discreet.leaderboard(frame)
    with refused(DisconnectedItems, "found_leaderboard_compares_least"):
        discreet.leaderboard(np.array([[1, 0, 1]]))


def test_names_that_differ_by_case_are_told():
    counts = draw(np.random.default_rng(20), models=3)
    named = SampleCounts(counts.units, ("GPT", "gpt", "elm"), *list(vars(counts).values())[2:])
    (warning,) = make_leaderboard(named).warnings
    assert (warning.kind, set(warning.items)) == (WarningKind.RELATED, {"GPT", "gpt"})
