"""Comparisons: the value, its readers, the ranking and its standard errors."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.answers.comparisons import Comparisons, measure_reach
from discreet.api.comparing import count_comparisons, rank_comparisons
from discreet.errors import BadResponses, BadUsage, DisconnectedItems, NotConverged
from discreet.readers.comparisons import read_comparisons
from discreet.secure import SeededSource
from discreet.simulation import simulate_comparisons
from refusals import refused

DATA = Path(__file__).parents[1] / "data"
NAMES = ("ash", "elm", "oak", "yew")


def votes(rows, items=NAMES, **options):
    """Comparisons from (judge, winner, loser) by number."""
    judge, winner, loser = (np.array(column, dtype=int) for column in zip(*rows, strict=True))
    return Comparisons.from_codes(judge, winner, loser, items=items, **options)


@st.composite
def any_votes(draw):
    """Some judges, each with a set of different pairs, in any order."""
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    rows = []
    for judge in range(draw(st.integers(1, 4))):
        for i, j in draw(st.lists(st.sampled_from(pairs), unique=True, max_size=6)):
            rows.append((judge, i, j) if draw(st.booleans()) else (judge, j, i))
    return draw(st.permutations(rows))


# --- the value ---------------------------------------------------------------------------------


@given(any_votes())
def test_wins_count_every_comparison_once(rows):
    data = votes(rows, judges=4) if rows else Comparisons(NAMES, None, [0], [], [])
    counts = data.count()
    expected = np.zeros((4, 4), dtype=int)
    for _, winner, loser in rows:
        expected[winner, loser] += 1
    assert (counts.wins == expected).all()
    assert (counts.won == expected.sum(axis=1)).all()
    assert (counts.compared == (expected + expected.T).sum(axis=1)).all()


def test_counts_of_different_judges_add_up():
    first, second = votes([(0, 0, 1), (0, 2, 1)]), votes([(0, 1, 0), (1, 3, 0)])
    both = votes([(0, 0, 1), (0, 2, 1), (1, 1, 0), (2, 3, 0)])
    total = first.count() + second.count()
    assert (total.wins == both.count().wins).all()
    assert total.judges == 3
    with refused(BadResponses, "these_counts_about_different"):
        first.count() + votes([(0, 0, 1)], items=("x", "y")).count()


def test_a_judge_who_compared_two_objects_twice_is_refused_or_settled():
    rows = [(0, 0, 1), (1, 0, 1), (0, 1, 0)]
    with refused(BadResponses, "judge_compared_more_than", at="0", at_2="elm", at_3="ash"):
        votes(rows)
    assert votes(rows, repeats="first").count().wins[0, 1] == 2
    assert votes(rows, repeats="last").count().wins[1, 0] == 1
    with refused(
        BadUsage, "must_found_check_choice", name="repeats", allowed="'error' or 'first' or 'last'"
    ):
        votes(rows, repeats="sum")


def test_the_constructor_itself_refuses_a_repeated_pair():
    # The sensitivity rests on it, so no way in may leave it out.
    with refused(BadResponses, "judge_compared_more_than"):
        Comparisons(NAMES, None, [0, 2], [0, 1], [1, 0])


def test_an_object_is_not_compared_with_itself():
    with refused(BadResponses, "judge_compared_itself_comparison", at_2="elm"):
        votes([(0, 1, 1)])


@pytest.mark.parametrize(
    ("starts", "winner", "loser"), [([0, 3], [0], [1]), ([1, 1], [0], [1]), ([0, 1], [0, 1], [1])]
)
def test_parts_that_do_not_fit_together_are_refused(starts, winner, loser):
    with refused(BadUsage, "starts_must_begin_never"):
        Comparisons(NAMES, None, starts, winner, loser)


def test_codes_and_judges_must_exist():
    with refused(BadResponses, "entry_belongs_number_check_codes", role="object", wrong_2="4"):
        votes([(0, 4, 1)])
    with refused(BadResponses, "entry_belongs_number_check_codes", role="judge", wrong_2="1"):
        votes([(1, 0, 1)], judges=1)
    with refused(BadUsage, "judges_need_many_different"):
        votes([(0, 0, 1)], judges=["ann", "ann"])


def test_selecting_puts_objects_in_another_order_and_refuses_to_lose_one():
    data = votes([(0, 0, 1), (0, 2, 1)])
    turned = data.select(["oak", "new", "elm", "ash"])
    assert turned.count().wins[3, 2] == 1
    assert turned.count().wins[0, 2] == 1
    assert turned.count().compared[1] == 0
    with refused(BadUsage, "comparisons_about_objects_not", name="oak"):
        data.select(["ash", "elm"])


def test_the_cap_keeps_a_random_part_of_every_judge_and_whole_small_ones():
    data = simulate_comparisons(20, 8, 10, rng=np.random.default_rng(0)).comparisons
    capped = data.cap(4, SeededSource(1))
    assert (np.diff(capped.starts) == 4).all()
    before = set(zip(data.judge.tolist(), data.winner.tolist(), data.loser.tolist(), strict=True))
    after = set(
        zip(capped.judge.tolist(), capped.winner.tolist(), capped.loser.tolist(), strict=True)
    )
    assert after < before
    assert data.cap(10, SeededSource(1)) is data
    for bad in (0, "many", 1.5):
        with refused(BadUsage, "must_whole_number_least", name="max_comparisons"):
            data.cap(bad, SeededSource(1))


def test_the_cap_keeps_every_comparison_equally_often():
    data = votes([(0, 0, 1), (0, 1, 2), (0, 2, 3), (0, 3, 0)])
    source, kept = SeededSource(5), np.zeros((4, 4))
    for _ in range(2000):
        kept += data.cap(1, source).count().wins
    shares = kept[kept > 0] / 2000
    assert len(shares) == 4
    assert abs(shares - 0.25).max() < 0.05  # five standard deviations


@given(any_votes(), st.randoms())
@settings(max_examples=30)
def test_a_fingerprint_depends_on_judges_sets_and_on_nothing_else(rows, random):
    if not rows:
        return
    data = votes(rows, judges=4)
    shuffled = list(rows)
    random.shuffle(shuffled)
    relabelled = [3 - row[0] for row in shuffled]
    place = [2, 0, 3, 1]
    names = ["", "", "", ""]
    for old, new in enumerate(place):
        names[new] = NAMES[old]
    moved = [(j, place[r[1]], place[r[2]]) for j, r in zip(relabelled, shuffled, strict=True)]
    assert votes(moved, items=names, judges=4).digest(b"k") == data.digest(b"k")
    assert votes(rows, judges=9, items=[*NAMES, "new"]).digest(b"k") == data.digest(b"k")
    turned = [(rows[0][0], rows[0][2], rows[0][1]), *rows[1:]]
    assert votes(turned, judges=4).digest(b"k") != data.digest(b"k")


# --- readers -----------------------------------------------------------------------------------

WINNERS = "Rater_ID,winner,loser\nann,ash,elm\nbob,elm,ash\nann,oak,ash\n"
SIDES = (
    "user,model_a,model_b,winner\nann,ash,elm,model_a\nbob,elm,ash,a\nann,ash,oak,right\n"
    "cat,ash,elm,\n"
)


def test_both_layouts_give_the_same_comparisons(tmp_path):
    (tmp_path / "winners.csv").write_text(WINNERS)
    (tmp_path / "sides.csv").write_text(SIDES)
    first, second = (
        read_comparisons(tmp_path / f"{n}.csv").select(["ash", "elm", "oak"])
        for n in ("winners", "sides")
    )
    assert (first.count().wins == second.count().wins).all()
    assert first.count().wins.tolist() == [[0, 1, 0], [1, 0, 0], [1, 0, 0]]
    assert list(second.judges) == ["ann", "bob", "cat"]  # a blank outcome: a judge all the same


def test_parquet_and_frames_are_read_as_well(tmp_path):
    table = pa.table({"judge": [7, 7, 8], "chosen": ["a", "b", "a"], "rejected": ["b", "c", "c"]})
    pq.write_table(table, tmp_path / "votes.parquet")
    from_file = read_comparisons(tmp_path / "votes.parquet")
    from_frame = discreet.read_comparisons(table)
    assert (from_file.count().wins == from_frame.count().wins).all()
    assert list(from_file.judges) == ["7", "8"]
    assert from_file.items == ("a", "b", "c")


def test_outcomes_may_name_the_winner_or_be_numbers():
    table = {"judge": ["j"] * 4, "left": ["x", "x", "y", "b"], "right": ["y", "z", "z", "x"]}
    table["outcome"] = ["y", "1", "0", "b"]
    data = discreet.read_comparisons(pa.table(table)).select(["x", "y", "z", "b"])
    wins = data.count().wins
    assert wins[1, 0] == wins[0, 2] == wins[2, 1] == wins[3, 0] == 1


def test_many_batches_keep_left_and_right_apart():
    from discreet.readers.comparisons import _Rules, _Table
    from discreet.tables.findings import DeclaredSource

    class Pieces(DeclaredSource):
        name, names = "pieces", ["judge", "winner", "loser"]

        def batches(self, columns):
            for judge in ("ann", "bob", "cat"):
                yield [pa.array([judge, judge]), pa.array(["x", judge]), pa.array(["y", "x"])]

        def place(self, row):
            return f"row {row}"

    roles = dict.fromkeys(("judge", "winner", "loser", "left", "right", "outcome"))
    table = _Table(_Rules(roles, "error", "error", None, ()))
    data = table.read(iter([Pieces()])).select(["x", "y", "ann", "bob", "cat"])
    assert data.count().wins[0, 1] == 3
    assert (data.count().wins[2:, 0] == 1).all()


@pytest.mark.parametrize(
    ("text", "code", "facts"),
    [
        ("judge,winner\nann,ash\n", "comparisons_need_columns_judge", {}),
        (
            "judge,rater,winner,loser\na,a,x,y\n",
            "could_each_column_say",
            {"listed": "'judge' and 'rater'", "meaning": "judge"},
        ),
        (
            "judge,winner,loser\nann,ash,\n",
            "column_id_missing_without",
            {"row": "votes.csv, line 2", "name": "loser", "role": "object"},
        ),
        (
            "judge,winner,loser\n,ash,elm\n",
            "column_id_missing_without",
            {"name": "judge", "role": "judge"},
        ),
        (
            "judge,winner,loser\nann,x,y\nann,y,x\n",
            "judge_compared_more_than_once",
            {"first": "votes.csv, line 2", "second": "votes.csv, line 3"},
        ),
        (
            "judge,left,right,outcome\nann,x,y,maybe\n",
            "no_outcome_must_left",
            {"where": "votes.csv, line 2, column 'outcome': 'maybe'"},
        ),
        (
            "judge,left,right,outcome\nann,x,y,tie\n",
            "tie_leave_ties_out",
            {"where": "votes.csv, line 2, column 'outcome': 'tie'"},
        ),
        ("judge,winner,loser\nann,x,x\n", "judge_compared_itself_comparison", {"at_2": "x"}),
        ("judge,winner,loser\n", "table_column_names_no", {}),
    ],
)
def test_bad_tables_are_refused_with_the_place(tmp_path, text, code, facts):
    (tmp_path / "votes.csv").write_text(text)
    with refused(BadResponses, code, **facts):
        read_comparisons(tmp_path / "votes.csv")


def test_json_lines_and_a_file_that_is_not_there_are_refused(tmp_path):
    (tmp_path / "votes.jsonl").write_text('{"judge": "ann", "winner": "ash", "loser": "elm"}')
    with refused(BadResponses, "looks_like_read_answers"):
        read_comparisons(tmp_path / "votes.jsonl")
    with refused(BadUsage, "no_file_check_path_folder"):
        read_comparisons(tmp_path / "nowhere.csv")


def test_ties_may_be_left_out(tmp_path):
    (tmp_path / "votes.csv").write_text("judge,left,right,outcome\nann,x,y,tie\nbob,x,y,left\n")
    data = read_comparisons(tmp_path / "votes.csv", ties="drop")
    assert (data.n_judges, data.n_comparisons) == (2, 1)
    with refused(BadUsage, "must_found_check_choice", name="ties"):
        read_comparisons(tmp_path / "votes.csv", ties="half")


def test_named_columns_are_taken_and_wrong_names_refused(tmp_path):
    (tmp_path / "votes.csv").write_text("who,up,down\nann,x,y\n")
    data = read_comparisons(tmp_path / "votes.csv", judge="who", winner="up", loser="down")
    assert data.count().wins[0, 1] == 1
    with refused(BadUsage, "asks_columns_check_column", how_often="has no column", name="nobody"):
        read_comparisons(tmp_path / "votes.csv", judge="nobody")
    with refused(BadUsage, "one_column_cannot_two"):
        read_comparisons(tmp_path / "votes.csv", judge="who", winner="up", loser="up")


def test_json_lines_are_refused_in_words(tmp_path):
    (tmp_path / "votes.jsonl").write_text('{"judge": "a"}\n')
    with refused(BadResponses, "looks_like_read_answers"):
        read_comparisons(tmp_path / "votes.jsonl")


# --- the ranking -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["refined", "spectral"])
def test_two_objects_have_the_log_odds_of_their_wins(method):
    data = votes([(k, 0, 1) for k in range(6)] + [(6 + k, 1, 0) for k in range(2)], NAMES[:2])
    found = rank_comparisons(data, method=method)
    assert found.strength[0] - found.strength[1] == pytest.approx(np.log(3))
    # Binomial: the variance of a log-odds is 1/6 + 1/2; each strength is half the difference.
    from_counts = rank_comparisons(data.count(), method=method)
    assert from_counts.se[0] == pytest.approx(np.sqrt(1 / 6 + 1 / 2) / 2)


def test_the_refined_ranking_maximises_the_bradley_terry_likelihood():
    made = simulate_comparisons(60, 6, 8, rng=np.random.default_rng(3))
    wins = made.comparisons.count().wins
    strength = rank_comparisons(made.comparisons).strength

    def likelihood(s):
        return -(wins * np.log1p(np.exp(s[None, :] - s[:, None]))).sum()

    best = likelihood(strength)
    rng = np.random.default_rng(0)
    assert all(likelihood(strength + 0.05 * rng.standard_normal(6)) < best for _ in range(50))


def test_the_spectral_ranking_is_rank_centrality():
    made = simulate_comparisons(60, 6, 8, rng=np.random.default_rng(3))
    wins = made.comparisons.count().wins.astype(float)
    # Rank centrality walks from the loser to the winner; its stationary vector is exp(strength).
    walk = wins.T / wins.sum()
    walk += np.diag(1 - walk.sum(axis=1))
    values, vectors = np.linalg.eig(walk.T)
    stationary = np.abs(vectors[:, np.argmax(values.real)].real)
    strength = rank_comparisons(made.comparisons, method="spectral").strength
    expected = np.log(stationary) - np.log(stationary).mean()
    assert strength == pytest.approx(expected, abs=1e-9)


def test_winners_are_higher_and_the_ranking_names_them():
    made = simulate_comparisons(400, 8, 10, rng=np.random.default_rng(1))
    found = rank_comparisons(made.comparisons)
    assert np.corrcoef(found.strength, made.strength)[0, 1] > 0.98
    ranking = discreet.rank(found, 3)
    best = [found.items[k] for k in np.argsort(-found.strength)[:3]]
    assert list(ranking.top) == best
    assert set(ranking.surely_in) <= set(best) <= set(ranking.possibly_in)
    interval = found.interval()
    assert ((interval[:, 0] < found.strength) & (found.strength < interval[:, 1])).all()
    assert found.to_dict()["strength"] == found.strength.tolist()
    assert "object 0" in found._repr_html_()
    assert found.to_arrow().num_rows == 8


def test_objects_without_a_strength_say_why():
    rows = [(0, 0, 1), (1, 1, 0), (0, 2, 0), (0, 1, 3)]
    data = votes(rows, items=(*NAMES, "fir"))
    found = rank_comparisons(data)
    assert found.status == ("estimated", "estimated", "always_won", "always_lost", "no_comparisons")
    assert np.isnan(found.strength[2:]).all()
    assert "no strength for 1 object that never lost: oak" in found.warnings
    assert not np.isnan(rank_comparisons(data, regularisation=0.5).strength[:4]).any()


def test_a_circle_is_needed_and_unknown_methods_are_refused():
    with refused(DisconnectedItems, "no_two_objects_linked", n_items="4"):
        rank_comparisons(votes([(0, 0, 1), (0, 1, 2)]))
    with refused(BadUsage, "no_called_one_check_choice_name", subject="method", name="marginal"):
        rank_comparisons(votes([(0, 0, 1)]), method="marginal")


def test_a_path_can_be_counted_and_ranked(tmp_path):
    (tmp_path / "votes.csv").write_text(WINNERS)
    assert count_comparisons(tmp_path / "votes.csv").wins.sum() == 3
    assert discreet.rank_comparisons(tmp_path / "votes.csv").status[2] == "always_won"


@pytest.mark.parametrize("method", ["refined", "spectral"])
def test_independent_judges_with_one_comparison_each_need_no_sandwich(method):
    made = simulate_comparisons(3000, 6, 1, rng=np.random.default_rng(2))
    by_judge = rank_comparisons(made.comparisons, method=method)
    alone = rank_comparisons(made.comparisons.count(), method=method)
    assert by_judge.se == pytest.approx(alone.se, rel=0.03)  # leverages
    assert "independent" in alone.solution.notes[-1]


def coverage(level_of, runs, **setting):
    inside = []
    for seed in range(runs):
        made = simulate_comparisons(rng=np.random.default_rng(seed), **setting)
        found = level_of(made.comparisons)
        inside.append(np.abs(found.strength - made.strength) < 1.96 * found.se)
    return float(np.mean(inside))


def test_standard_errors_cover_under_the_model():
    # 60 runs of 12 objects: the standard error of the coverage is about .01.
    share = coverage(rank_comparisons, 60, judges=80, items=12, comparisons=15)
    assert 0.91 < share < 0.98


def test_judges_of_their_own_taste_make_independent_standard_errors_too_short():
    # With equal strengths a judge's taste changes no mean, so zero stays the truth.
    setting = {"judges": 50, "items": 6, "comparisons": 15, "strength": np.zeros(6), "taste": 3.0}
    by_judge = coverage(rank_comparisons, 60, **setting)
    alone = coverage(lambda data: rank_comparisons(data.count()), 60, **setting)
    assert 0.91 < by_judge < 0.98
    assert alone < 0.85


# --- what the weight of a judge rests on --------------------------------------------------------


@given(any_votes())
def test_the_reach_bounds_net_wins_whatever_the_outcomes_are(rows):
    if not rows:
        return
    data = votes(rows, judges=4)
    reach = measure_reach(data)
    for judge in range(4):
        edges = [row[1:] for row in rows if row[0] == judge]
        longest = 0
        for signs in np.ndindex(*[2] * len(edges)):
            net = np.zeros(4, dtype=int)
            for (one, other), sign in zip(edges, signs, strict=True):
                net[one] += 1 - 2 * sign
                net[other] -= 1 - 2 * sign
            longest = max(longest, int(net @ net))
        assert longest <= reach[judge]
        assert reach[judge] >= 2 * len(edges)


def test_the_reach_is_exact_for_a_star_a_matching_and_close_for_all_pairs():
    star = [(0, 0, k) for k in (1, 2, 3)]
    matching = [(1, 0, 1), (1, 2, 3)]
    full = [(2, i, j) for i in range(4) for j in range(i + 1, 4)]
    assert measure_reach(votes(star + matching + full)).tolist() == [12, 4, 24]


def test_the_reach_does_not_look_at_who_won():
    data = simulate_comparisons(30, 7, 9, rng=np.random.default_rng(0)).comparisons
    turned = Comparisons(data.items, None, data.starts, data.loser, data.winner)
    assert (measure_reach(data) == measure_reach(turned)).all()


def test_a_simulation_cannot_ask_for_more_pairs_than_there_are():
    with refused(BadUsage, "judge_compare_different_pairs", n_first="6"):
        simulate_comparisons(2, 4, 7, rng=np.random.default_rng(0))


# --- votes without judges, ties, covariates -----------------------------------------------------

#: Left, right, outcome, how much longer the left one was: asymmetric in everything.
ARENA = [
    *[("ash", "elm", "left", 2.0)] * 5,
    *[("ash", "elm", "right", -1.0)] * 3,
    *[("elm", "ash", "left", 0.5)] * 2,
    *[("elm", "oak", "left", 1.5)] * 4,
    *[("elm", "oak", "tie", 0.25)] * 3,
    *[("oak", "elm", "left", -2.0)] * 3,
    *[("oak", "ash", "right", 1.0)] * 4,
    *[("oak", "ash", "left", 3.0)] * 2,
    *[("ash", "oak", "tie", -0.5)] * 2,
]


def arena(**columns):
    """Votes as a table without judges."""
    names = ("model_a", "model_b", "outcome", "longer")
    table = dict(zip(names, map(list, zip(*ARENA, strict=True)), strict=True))
    return pa.table(table | columns)


def direct_fit(ties, covariate):
    """Davidson's likelihood, written down vote by vote and maximised by a general optimiser."""
    from scipy.optimize import minimize

    place = {"ash": 0, "elm": 1, "oak": 2}

    def loss(p):
        strength = np.array([p[0], p[1], -p[0] - p[1]])
        total = 0.0
        for left, right, outcome, longer in ARENA:
            gap = strength[place[left]] - strength[place[right]] + covariate * p[3] * longer
            if outcome == "tie" and ties == "drop":
                continue
            odds = {"left": np.exp(gap / 2), "right": np.exp(-gap / 2)}
            if ties == "davidson":
                odds["tie"] = np.exp(p[2])
            share = {name: one / sum(odds.values()) for name, one in odds.items()}
            if outcome == "tie" and ties == "shrunk":
                total -= (np.log(share["left"]) + np.log(share["right"])) / 2
            else:
                total -= np.log(share[outcome])
        return total + (p[2] ** 2 * (ties != "davidson")) + (p[3] ** 2 * (not covariate))

    return minimize(loss, np.zeros(4), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12,
                    "maxiter": 20000, "maxfev": 20000}).x  # fmt: skip


@pytest.mark.parametrize("ties", ["drop", "davidson", "shrunk"])
@pytest.mark.parametrize("covariate", [False, True])
def test_ties_and_covariates_maximise_the_likelihood_that_is_written_down(ties, covariate):
    found = rank_comparisons(arena(), ties=ties, covariates=["longer"] if covariate else None)
    p = direct_fit(ties, covariate)
    assert found.items == ("ash", "elm", "oak")
    assert found.strength == pytest.approx([p[0], p[1], -p[0] - p[1]], abs=1e-5)
    names = ["longer"] * covariate + ["tie"] * (ties == "davidson")
    assert ([] if found.effects is None else list(found.effects.names)) == names
    if covariate:
        assert found.effects.effect[0] == pytest.approx(p[3], abs=1e-5)
    if ties == "davidson":
        assert found.effects.effect[-1] == pytest.approx(p[2], abs=1e-5)


def test_a_tie_is_symmetric_and_shrinks_only_as_half_a_win():
    rows = [*ARENA, *[("ash", "elm", "tie", 0.0)] * 30]
    names = ("left", "right", "outcome", "longer")
    table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    by = {
        ties: rank_comparisons(table, ties=ties).strength for ties in ("drop", "davidson", "shrunk")
    }
    turned = table.append_column("r", table["left"]).drop_columns("left").rename_columns(
        ["left", "outcome", "longer", "right"]
    )  # fmt: skip
    ties_only = pa.compute.equal(table["outcome"], "tie")
    mixed = pa.concat_tables(
        [
            table.filter(pa.compute.invert(ties_only)).select(["left", "right", "outcome"]),
            turned.filter(ties_only).select(["left", "right", "outcome"]),
        ]
    )
    assert rank_comparisons(mixed, ties="davidson").strength == pytest.approx(
        by["davidson"], abs=1e-9
    )
    assert np.ptp(by["shrunk"]) < np.ptp(by["drop"])


def sandwich(votes, found, names):
    """The sandwich over judges from numerical derivatives, leverage included."""
    m, n = votes.n_items, votes.n_comparisons
    rows = np.zeros((n, m + len(names)))
    rows[np.arange(n), votes.winner] = 1
    rows[np.arange(n), votes.loser] -= 1
    rows[:, m:] = votes.covariate
    eta = rows @ np.append(found.strength, found.effects.effect[: len(names)])
    chance = 1 / (1 + np.exp(-eta))
    inverse = np.linalg.pinv((rows * (chance * (1 - chance))[:, None]).T @ rows)
    leverage = np.zeros(votes.n_judges)
    total = np.zeros((votes.n_judges, m + len(names)))
    for vote in range(n):
        weight = chance[vote] * (1 - chance[vote])
        leverage[votes.judge[vote]] += weight * rows[vote] @ inverse @ rows[vote]
    for vote in range(n):
        judge = votes.judge[vote]
        total[judge] += rows[vote] * (1 - chance[vote]) / (1 - min(leverage[judge], 0.9))
    return np.sqrt(np.diag(inverse @ (total.T @ total) @ inverse))


def clustered_votes(seed=0, judges=150, each=4, objects=5):
    """Judges whose votes lean to the longer one, each in their own measure."""
    rng = np.random.default_rng(seed)
    strength = np.linspace(-1, 1.5, objects)
    pairs = [(i, j) for i in range(objects) for j in range(i + 1, objects)]
    rows = []
    for judge in range(judges):
        lean = rng.normal(0.4, 0.8)
        for pair in rng.choice(len(pairs), each, replace=False):
            i, j = pairs[pair]
            longer = rng.normal(0.3, 1.5)
            won = rng.random() < 1 / (1 + np.exp(strength[j] - strength[i] - lean * longer))
            rows.append((judge, i, j, longer) if won else (judge, j, i, -longer))
    judge, winner, loser, longer = map(np.array, zip(*rows, strict=True))
    return Comparisons.from_codes(
        judge, winner, loser, items=[f"m{k}" for k in range(objects)], covariates={"longer": longer}
    )


def test_errors_of_strengths_and_effects_add_up_over_judges():
    votes = clustered_votes()
    found = rank_comparisons(votes)
    expected = sandwich(votes, found, ["longer"])
    assert found.se == pytest.approx(expected[:-1], rel=1e-6)
    assert found.effects.se == pytest.approx(expected[-1:], rel=1e-6)


def test_errors_of_strengths_and_of_ties_are_those_of_davidsons_likelihood():
    rng, n = np.random.default_rng(3), 4000
    strength, tau = np.array([0.8, 0.1, -0.9]), -0.4
    pairs = np.array([(0, 1), (1, 2), (0, 2)])[rng.choice(3, n, p=[0.6, 0.3, 0.1])]
    gap = strength[pairs[:, 0]] - strength[pairs[:, 1]]
    odds = np.stack([np.exp(gap / 2), np.exp(-gap / 2), np.full(n, np.exp(tau))], axis=1)
    outcome = (rng.random(n)[:, None] > np.cumsum(odds / odds.sum(1)[:, None], axis=1)).sum(1)
    sides = np.where(outcome[:, None] == 1, pairs[:, ::-1], pairs)
    tied = outcome == 2
    data = Comparisons.from_codes(None, *sides.T, items=["a", "b", "c"], tied=tied, ties="davidson")
    found = rank_comparisons(data)

    def terms(p):
        eta = (np.append(p[:2], -p[0] - p[1])[sides] * [1, -1]).sum(1)
        total = np.exp(eta / 2) + np.exp(-eta / 2) + np.exp(p[2])
        return np.where(tied, p[2], eta / 2) - np.log(total)

    at, step = np.append(found.strength[:2], found.effects.effect), 1e-4
    ends = [(at + step * one, at - step * one) for one in np.eye(3)]
    scores = np.stack([(terms(up) - terms(down)) / (2 * step) for up, down in ends], axis=1)
    assert np.abs(scores.sum(0)).max() < 1e-3  # the maximum

    def gradient(p):
        return np.array(
            [(terms(p + step * e).sum() - terms(p - step * e).sum()) / 2 / step for e in np.eye(3)]
        )

    second = np.stack([(gradient(up) - gradient(down)) / (2 * step) for up, down in ends])
    inverse = np.linalg.inv(second)
    covariance = inverse @ (scores.T @ scores) @ inverse
    last = covariance[0, 0] + covariance[1, 1] + 2 * covariance[0, 1]
    expected = np.sqrt([covariance[0, 0], covariance[1, 1], last])
    assert found.se == pytest.approx(expected, rel=0.005)  # leverages
    assert found.effects.se[0] == pytest.approx(np.sqrt(covariance[2, 2]), rel=0.005)


def test_without_judges_every_vote_is_its_own_and_the_result_says_so():
    found = rank_comparisons(arena(), ties="drop")
    assert any("each counts as a judge of its own" in note for note in found.solution.notes)
    named = rank_comparisons(arena(judge=[f"j{k}" for k in range(len(ARENA))]), ties="drop")
    assert found.se == pytest.approx(named.se)
    assert not any("each counts as" in note for note in named.solution.notes)
    assert "no judges" in repr(discreet.read_comparisons(arena(), ties="shrunk"))
    assert "5 tied" in repr(discreet.read_comparisons(arena(), ties="shrunk"))


def test_ones_and_zeros_in_a_column_of_winners_are_asked_about():
    cells = {"model_a": ["gpt"] * 10, "model_b": ["llama"] * 10, "winner": [0] * 8 + [1] * 2}
    with refused(BadResponses, "not_say_who_won") as caught:
        rank_comparisons(pa.table(cells))
    assert [remedy.options for remedy in caught.value.remedies] == [
        {"one_means": "left"},
        {"one_means": "right"},
    ]
    right = rank_comparisons(pa.table(cells), one_means="right")
    assert right.strength[0] > right.strength[1]
    left = rank_comparisons(pa.table(cells), one_means="left")
    assert left.strength[0] < left.strength[1]


def test_a_covariate_needs_numbers_that_the_objects_do_not_settle():
    with refused(
        BadResponses, "column_found_no_number", row="The data frame, row 2 (counted from 0)"
    ):
        rank_comparisons(
            arena(longer=["1", "2", "", *["0.5"] * (len(ARENA) - 3)]),
            ties="drop",
            covariates="longer",
        )
    size = {"ash": 7.0, "elm": 13.0, "oak": 70.0}
    larger = [size[left] - size[right] for left, right, _, _ in ARENA]
    with refused(BadResponses, "covariate_says_nothing_beside", name="larger"):
        rank_comparisons(arena(larger=larger), ties="drop", covariates=["longer", "larger"])
    won = [1.0 if outcome == "left" else -1.0 for _, _, outcome, _ in ARENA]
    with refused(NotConverged, "covariates_tell_winners_losers", names="won"):
        rank_comparisons(arena(won=won), ties="drop", covariates="won")


def test_what_counts_vote_by_vote_takes_no_other_method():
    for options in ({"method": "spectral"}, {"regularisation": 0.5}):
        with refused(BadUsage, "covariates_ties_count_need"):
            rank_comparisons(arena(), ties="davidson", **options)


def test_words_of_reading_go_to_tables_only():
    data = discreet.read_comparisons(arena(), ties="davidson")
    with refused(BadUsage, "says_how_table_read_these", stated="ties"):
        rank_comparisons(data, ties="drop")
    dropped = rank_comparisons(data.derive(ties="drop"))
    assert dropped.strength == pytest.approx(rank_comparisons(arena(), ties="drop").strength)
    assert count_comparisons(arena(), ties="drop").wins.tolist() == data.count().wins.tolist()


def test_results_with_effects_are_kept(tmp_path):
    found = rank_comparisons(arena(), ties="davidson", covariates="longer")
    found.save(tmp_path / "strengths.json")
    again = discreet.load(tmp_path / "strengths.json")
    assert again.effects.names == ("longer", "tie")
    assert (again.effects.se == found.effects.se).all()


#: 240 votes of six models, 62 of them ties. The strengths are those of evalica 0.4.2
#: (`bradley_terry`, tolerance 1e-12; ties left out, and as half a win) and choix 0.4.1
#: (`ilsr_pairwise` and `lsr_pairwise`, without the ties), less their mean.
PEERS = {
    "evalica, choix": ({}, [-1.42980502, -0.64236583, -0.03354877, -0.01377149, 0.88998748]),
    "evalica, half wins": (
        {"ties": "shrunk"},
        [-0.909355042, -0.323455987, -0.023104751, -0.044006645, 0.559631032],
    ),
    "choix, spectral": (
        {"method": "spectral"},
        [-1.39362476, -0.77100617, -0.05052761, 0.04438457, 0.96438994],
    ),
}


@pytest.mark.parametrize("peer", PEERS)
def test_strengths_are_those_of_evalica_and_choix_where_models_agree(peer):
    options, expected = PEERS[peer]
    found = discreet.rank_comparisons(DATA / "votes_240x6.csv", **({"ties": "drop"} | options))
    strength = dict(zip(found.items, found.strength.tolist(), strict=True))
    named = [strength[f"m{number}"] for number in range(6)]
    assert named == pytest.approx([*expected, -sum(expected)], abs=1e-7)


def test_votes_that_are_given_to_fit_are_sent_to_the_ranking():
    with refused(BadResponses, "each_row_table_compares"):
        discreet.fit(DATA / "votes_240x6.csv")
    frame = pa.table({"model_a": ["x", "y"], "model_b": ["y", "z"], "winner": ["x", "tie"]})
    with refused(BadResponses, "each_row_table_compares"):
        discreet.fit(frame)
