"""Comparisons: the value, its readers, the ranking and its standard errors."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.answers.comparisons import Comparisons, measure_reach
from discreet.api.comparing import count_comparisons, rank_comparisons
from discreet.errors import BadResponses, BadUsage, DisconnectedItems
from discreet.readers.comparisons import read_comparisons
from discreet.secure import SeededSource
from discreet.simulation import simulate_comparisons
from refusals import refused

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
    from discreet.readers.comparisons import _Table
    from discreet.tables.findings import DeclaredSource

    class Pieces(DeclaredSource):
        name, names = "pieces", ["judge", "winner", "loser"]

        def batches(self, columns):
            for judge in ("ann", "bob", "cat"):
                yield [pa.array([judge, judge]), pa.array(["x", judge]), pa.array(["y", "x"])]

        def place(self, row):
            return f"row {row}"

    table = _Table(
        dict.fromkeys(("judge", "winner", "loser", "left", "right", "outcome")), "error", "error"
    )
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
            {"first_4": "votes.csv, line 2", "second": "votes.csv, line 3"},
        ),
        (
            "judge,left,right,outcome\nann,x,y,maybe\n",
            "column_read_outcomes",
            {"place": "votes.csv, line 2", "value": "maybe"},
        ),
        (
            "judge,left,right,outcome\nann,x,y,tie\n",
            "column_read_outcomes",
            {"place": "votes.csv, line 2", "value": "tie"},
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
    ranking = found.rank(3)
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
