"""Releasing a ranking: how far one judge moves it, one wall, the ledger, planted faults."""

import json
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from discreet.answers.comparisons import Comparisons
from discreet.api.comparing import rank_comparisons
from discreet.errors import BadBudget, BadResponses, BadUsage, BudgetExceeded, DiscreetError
from discreet.models.noisy import comparisons as comparison_fit
from discreet.models.noisy.comparisons import fit_net_wins
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.ledger import Ledger
from discreet.privacy.mechanisms.comparisons import (
    JudgeWeights,
    NetWins,
    WinPairs,
    net_wins_l2_sensitivity,
)
from discreet.privacy.noise import ExactNoise
from discreet.privacy.protocol import ComparedPublic
from discreet.publishing.release import release_comparisons
from discreet.publishing.verification import read_released_ranking
from discreet.report.statement import write_statement
from discreet.secure import SeededSource
from discreet.simulation import simulate_comparisons
from discreet.words import KINDS
from refusals import refused

BUDGET = Budget(1.0, 1e-6)


def names(items):
    return tuple(f"object {k}" for k in range(items))


def public_for(items, cap, relation=Neighbours.REPLACE_ONE, judges=2):
    persons = judges if relation is Neighbours.REPLACE_ONE else None
    return ComparedPublic(names(items), cap, relation, persons)


def patterns(items, cap):
    """Every set of comparisons that one judge can have made: (winners, losers)."""
    pairs = [(i, j) for i in range(items) for j in range(i + 1, items)]
    for row in product((0, 1, -1), repeat=len(pairs)):
        if np.count_nonzero(row) <= cap:
            made = [p if x == 1 else p[::-1] for p, x in zip(pairs, row, strict=True) if x]
            yield [w for w, _ in made], [lost for _, lost in made]


def cells_of(mechanism, public, calibration):
    """The exact numbers of every judge that there can be, ``int[judge, cell]`` by name."""
    weighting = mechanism.weighting(public, calibration)
    found = {}
    for winner, loser in patterns(len(public.items), public.max_answers):
        alone = Comparisons(public.items, None, [0, len(winner)], winner, loser)
        for name, cell in mechanism.cells(alone.count(weighting), calibration).items():
            found.setdefault(name, []).append(cell)
    return {name: np.array(rows) for name, rows in found.items()}


def squared_moves(rows, relation):
    """Squared distances between all judges, or of all judges from none."""
    rows = rows.astype(float)
    own = (rows**2).sum(axis=1)
    if relation is Neighbours.ADD_REMOVE:
        return own
    return (own[:, None] + own[None, :] - 2 * rows @ rows.T).ravel()


# --- sensitivity, by brute force ----------------------------------------------------------------

CASES = [(2, 1), (3, 1), (3, 2), (3, 3), (4, 1), (4, 2), (4, 3), (4, 4), (4, 6)]


@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize(("items", "cap"), CASES)
def test_wins_move_by_exactly_the_cap_or_twice_the_cap(items, cap, relation):
    public = public_for(items, cap, relation)
    calibration = WinPairs().calibrate(public, BUDGET, SeededSource(0))
    rows = cells_of(WinPairs(), public, calibration)["wins"]
    assert set(np.unique(rows)) <= {0, 1}
    claimed = 2 * cap if relation is Neighbours.REPLACE_ONE else cap
    # Two cells of one pair move when a comparison is turned round, so 2 c fit in any case.
    assert squared_moves(rows, relation).max() == claimed
    sigma = calibration.laws["wins"].scale
    assert calibration.spend.rho >= Fraction(claimed, 2) / sigma**2


def test_turning_one_comparison_round_moves_two_counts():
    public = public_for(2, 1)
    rows = cells_of(WinPairs(), public, WinPairs().calibrate(public, BUDGET, SeededSource(0)))
    assert sorted(rows["wins"].tolist()) == [[0, 0], [0, 1], [1, 0]]


@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize(("items", "cap"), CASES)
@pytest.mark.parametrize("typical", [None, 1, 2])
def test_net_wins_and_comparisons_never_move_further_than_claimed(items, cap, relation, typical):
    public = public_for(items, cap, relation)
    mechanism = NetWins(comparisons=typical)
    calibration = mechanism.calibrate(public, BUDGET, SeededSource(0))
    limits = net_wins_l2_sensitivity(mechanism.weighting(public, calibration), public)
    cells = cells_of(mechanism, public, calibration)
    apart = [squared_moves(cells[name], relation) for name in ("net_wins", "compared")]
    for found, limit in zip(apart, limits, strict=True):
        assert found.max() <= limit * (1 + 1e-12)
    scales = [float(calibration.laws[name].scale) for name in ("net_wins", "compared")]
    together = sum(found / scale**2 for found, scale in zip(apart, scales, strict=True))
    assert together.max() / 2 <= float(calibration.spend.rho) * (1 + 1e-9)


@pytest.mark.parametrize("relation", list(Neighbours))
def test_the_claimed_move_of_net_wins_is_reached(relation):
    # One object against three others, and all of it turned round.
    public = public_for(4, 3, relation)
    calibration = NetWins().calibrate(public, BUDGET, SeededSource(0))
    limits = net_wins_l2_sensitivity(NetWins().weighting(public, calibration), public)
    rows = cells_of(NetWins(), public, calibration)["net_wins"]
    assert squared_moves(rows, relation).max() == pytest.approx(limits[0], rel=1e-5)


def test_weights_never_let_a_judge_reach_further_than_the_limit():
    weights = JudgeWeights(grid=2**20, limit=37)
    reach = np.arange(1, 5000)
    weight = weights(np.ones_like(reach), reach)
    lengths = [int(w) ** 2 * int(r) for w, r in zip(weight, reach, strict=True)]
    assert max(lengths) <= 2**40 * 37
    assert (weight[:37] == 2**20).all()
    assert weights(np.array([0]), np.array([0]))[0] == 0


def test_a_repeated_pair_would_break_the_bound_so_no_data_can_hold_one():
    # The planted fault: one judge, the same comparison twice, is one cell moved by two.
    wins = np.zeros((3, 3), dtype=np.int64)
    np.add.at(wins, ([0, 0], [1, 1]), 1)
    assert (wins**2).sum() > 2
    with refused(BadResponses, "judge_compared_more_than"):
        Comparisons(names(3), None, [0, 2], [0, 0], [1, 1])
    with refused(BadResponses, "judge_compared_more_than"):
        Comparisons.from_codes([0, 0], [0, 1], [1, 0], items=names(3))


# --- the release --------------------------------------------------------------------------------


def made_votes(judges=400, items=10, comparisons=6, seed=0):
    return simulate_comparisons(judges, items, comparisons, rng=np.random.default_rng(seed))


def release(data, budget=BUDGET, **options):
    settings = {
        "items": data.items, "max_comparisons": 6, "noise": ExactNoise(SeededSource(3)), **options
    }  # fmt: skip
    return release_comparisons(data, budget, **settings)


def test_every_object_on_the_list_is_released_compared_or_not():
    data = made_votes().comparisons
    released = release(data, items=[*reversed(data.items), "never seen"])
    assert released.strengths.items == (*reversed(data.items), "never seen")
    assert set(released.strengths.status) == {"estimated"}
    assert np.isfinite(released.strengths.strength).all()
    assert released.noisy.values["compared"].size == 11 * 10 // 2
    assert released.strengths.to_dict().keys() == {
        "item", "strength", "se", "lower", "upper", "status"
    }  # fmt: skip


def test_a_budget_may_be_given_by_its_numbers():
    data = made_votes().comparisons
    words = {"items": data.items, "max_comparisons": 6, "noise": ExactNoise(SeededSource(3))}
    budget = Budget(0.7, 1e-5, Neighbours.ADD_REMOVE)
    whole = release_comparisons(data, budget, **words)
    words |= {"noise": ExactNoise(SeededSource(3))}
    parts = release_comparisons(
        data, epsilon=0.7, delta=1e-5, neighbours=Neighbours.ADD_REMOVE, **words
    )
    assert parts.guarantee == whole.guarantee
    assert (parts.strengths.strength == whole.strengths.strength).all()
    with refused(BadUsage, "release_one_budget_give"):
        release_comparisons(data, budget, epsilon=0.7, **words)


@pytest.mark.parametrize("mechanism", ["net-wins", "win-pairs"])
def test_with_a_generous_budget_the_release_is_near_the_confidential_ranking(mechanism):
    made = made_votes(judges=3000)
    with pytest.warns(UserWarning, match="above 5"):
        released = release(made.comparisons, Budget(50.0, 1e-6), mechanism=mechanism)
    exact = rank_comparisons(made.comparisons)
    assert released.strengths.strength == pytest.approx(exact.strength, abs=0.06)
    assert released.strengths.se == pytest.approx(exact.se, rel=0.35)


def test_the_guarantee_names_the_judge_and_the_noise_source():
    released = release(made_votes().comparisons)
    assert released.guarantee.unit == KINDS["comparisons"].unit
    assert released.guarantee.epsilon == 1.0
    assert not released.guarantee.is_private
    assert released.record["judges"] == 400
    assert "max_answers" not in released.record


def test_noise_for_tests_is_captioned_as_such():
    made = release(made_votes().comparisons)
    assert "not private" in made.strengths._repr_html_()
    assert "released with privacy" not in made.strengths._repr_html_()
    text = write_statement(made.record)
    assert "NOT PRIVATE" in text
    assert "differential privacy" not in text


def test_the_statement_speaks_of_judges():
    made = release(made_votes().comparisons, noise=ExactNoise())
    assert "knows everybody else's comparisons, and for whom a fact about one judge's" in (
        write_statement(made.record)
    )
    assert "released with privacy" in made.strengths._repr_html_()


def test_the_number_of_judges_is_not_released_under_add_remove():
    released = release(made_votes().comparisons, Budget(1.0, 1e-6, "add-remove"))
    assert released.record["judges"] is None
    assert released.strengths.judges is None


@pytest.mark.parametrize("mechanism", ["net-wins", "win-pairs"])
def test_a_public_number_of_judges_counts_those_without_comparisons_in(mechanism):
    data = made_votes().comparisons
    released = release(data, mechanism=mechanism, judges=500)
    assert released.record["judges"] == released.strengths.judges == 500
    moved = released.strengths.strength - release(data, mechanism=mechanism).strengths.strength
    assert (abs(moved) < 0.5 * released.strengths.se).all()
    listed = release(data, mechanism=mechanism, judges=[*data.judges, "without comparisons"])
    assert listed.record["judges"] == 401
    with refused(BadResponses, "data_people_more_than", n_persons="400", persons="399"):
        release(data, mechanism=mechanism, judges=399)
    with refused(BadResponses, "data_not_list_example", n_others="1", word="judges"):
        release(data, mechanism=mechanism, judges=list(data.judges)[1:])


def test_the_budget_is_reserved_before_noise_is_drawn(tmp_path):
    book = Ledger.create(tmp_path / "spent.db", epsilon=1.0, delta=1e-6)

    class Broken(ExactNoise):
        def gaussian(self, sigma, size):
            assert len(book.releases()) == 1
            raise RuntimeError("no noise today")

    data = made_votes().comparisons
    with pytest.raises(RuntimeError):
        release(data, ledger=book, noise=Broken(SeededSource(1)))
    assert book.spent()[0] == pytest.approx(1.0, abs=1e-3)
    with pytest.raises(BudgetExceeded):
        release(data, ledger=book)


def test_the_ledger_recognises_the_same_comparisons_in_another_order(tmp_path):
    book = Ledger.create(tmp_path / "spent.db", epsilon=9.0, delta=1e-6)
    data = made_votes().comparisons
    release(data, ledger=book)
    order = np.random.default_rng(1).permutation(data.n_comparisons)
    again = Comparisons.from_codes(
        data.judge[order], data.winner[order], data.loser[order], items=data.items
    )
    release(again, ledger=book.path)
    first, second = book.releases()
    assert first.fingerprint == second.fingerprint
    assert first.completed_at


def test_nothing_is_charged_for_a_mistake(tmp_path):
    book = Ledger.create(tmp_path / "spent.db", epsilon=9.0, delta=1e-6)
    data = made_votes().comparisons
    with refused(BadResponses, "no_comparison_two_listed"):
        release(data, ledger=book, items=["ash", "elm"])
    with refused(BadUsage, "no_called_choose_one", noun="mechanism for comparisons"):
        release(data, ledger=book, mechanism="margins")
    with refused(BadUsage, "items_must_list_item", type_name="one string"):
        release(data, ledger=book, items="ash")
    with refused(BadBudget, "max_comparisons_must_least"):
        release(data, ledger=book, max_comparisons=0)
    assert not book.releases()


def test_comparisons_of_objects_outside_the_list_are_ignored():
    """Judge by judge: whoever compared no two listed objects still counts."""
    votes = Comparisons.from_codes(
        [0, 0, 1, 2, 2], [0, 1, 2, 0, 3], [1, 2, 3, 3, 1], items=["a", "b", "c", "d"]
    )
    kept = votes.keep(["b", "a"])
    assert (kept.items, kept.n_judges) == (("b", "a"), 3)
    assert kept.count().wins.tolist() == [[0, 0], [1, 0]]
    released = release(votes, items=["a", "b"])
    assert released.record["judges"] == 3
    assert released.strengths.items == ("a", "b")


def test_judges_above_the_cap_are_cut_to_it():
    data = made_votes(comparisons=20).comparisons
    seen = []

    class Spy(WinPairs):
        def cells(self, counts, calibration):
            seen.append(counts)
            return super().cells(counts, calibration)

    release(data, mechanism=Spy(), max_comparisons=2)
    assert seen[0].wins.sum() == 400 * 2


def test_a_cell_without_a_noise_law_is_never_released():
    class Leaky(WinPairs):
        def cells(self, counts, calibration):
            return {**super().cells(counts, calibration), "exact": counts.wins.copy()}

    with refused(
        DiscreetError, "mechanism_defect_discreet_nothing", fault="has cells without a noise law"
    ):
        release(made_votes().comparisons, mechanism=Leaky())


def test_a_cap_above_all_pairs_is_all_pairs_and_objects_are_listed_once():
    assert public_for(4, 100).max_answers == 6
    with refused(BadUsage, "item_list_names_more"):
        ComparedPublic(("a", "b", "a"), 2, Neighbours.REPLACE_ONE, 2)


@pytest.mark.parametrize("bad", [{"share": 0.0}, {"share": 1.0}, {"comparisons": 0.5}])
def test_settings_that_mean_nothing_are_refused(bad):
    with pytest.raises(BadUsage):
        NetWins(**bad)


def test_a_saved_ranking_reads_back_and_speaks_of_judges(tmp_path):
    released = release(made_votes().comparisons)
    released.save(tmp_path / "ranking")
    again = read_released_ranking(tmp_path / "ranking")
    assert again.strengths.strength == pytest.approx(released.strengths.strength, abs=1e-6)
    assert again.guarantee == released.guarantee
    assert {p.name for p in (tmp_path / "ranking").iterdir()} == {
        "strengths.csv", "privacy.json", "statement.md", "registry.yaml", "report.html",
        "noisy.npz",
    }  # fmt: skip
    statement = (tmp_path / "ranking" / "statement.md").read_text()
    assert "strengths of 10 objects" in statement
    assert "comparisons counted per judge | at most 6" in statement
    assert "person's answers" not in statement
    registry = (tmp_path / "ranking" / "registry.yaml").read_text()
    assert "the cap of 6 comparisons per judge" in registry
    assert json.loads((tmp_path / "ranking" / "privacy.json").read_text())["kind"] == "comparisons"
    with refused(BadUsage, "exists_already_choose_another"):
        released.save(tmp_path / "ranking")
    with refused(BadUsage, "no_release_bundle_missing"):
        read_released_ranking(tmp_path / "nowhere")


# --- intervals ----------------------------------------------------------------------------------


def coverage(runs, epsilon, *, mechanism="auto", judges, items, comparisons):
    inside = []
    for seed in range(runs):
        made = made_votes(judges, items, comparisons, seed)
        released = release(
            made.comparisons,
            Budget(epsilon, 1e-6),
            max_comparisons=comparisons,
            mechanism=mechanism,
            noise=ExactNoise(SeededSource(seed)),
        )
        error = released.strengths.strength - made.strength
        inside.append(np.abs(error) < 1.96 * released.strengths.se)
    return float(np.mean(inside))


def test_intervals_of_a_release_cover():
    # 10 releases of 12 objects: the standard error of the coverage is about .02.
    assert 0.88 < coverage(10, 2.0, judges=400, items=12, comparisons=8) <= 1.0


def exact_fit(compared, strength, sigma):
    net = (compared * np.tanh((strength[:, None] - strength) / 2)).sum(axis=1)
    return fit_net_wins(net, compared, sigma_net_wins=sigma, sigma_compared=sigma / 100)


def test_intervals_are_wider_where_only_objects_of_like_strength_meet(monkeypatch):
    strength = np.linspace(-2, 2, 20)
    apart = strength[:, None] - strength
    often = np.exp(np.random.default_rng(0).normal(0, 0.7, 20))
    designs = {"near": np.exp(-(apart**2) / 0.3), "popular": often[:, None] * often}
    widened = {}
    for name, design in designs.items():
        compared = 10_000 * design / design.sum() * (1 - np.eye(20))
        after = exact_fit(compared, strength, 60.0).se
        with monkeypatch.context() as patch:
            patch.setattr(comparison_fit, "_admit_weak_links", lambda fit, _: fit)
            before = exact_fit(compared, strength, 60.0).se
        widened[name] = after / before
    assert widened["popular"] == pytest.approx(1.0)
    assert widened["near"].mean() > 1.2
    # The ends of the scale are what shrinking pulls in.
    assert widened["near"][0] > widened["near"][10]


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("mechanism", ["net-wins", "win-pairs"])
def test_intervals_cover_at_every_epsilon(mechanism, epsilon):
    share = coverage(30, epsilon, mechanism=mechanism, judges=500, items=20, comparisons=15)
    assert 0.92 < share <= 1.0


# --- votes without judges, ties ------------------------------------------------------------------

VOTES = {
    "left": ["x", "x", "y", "z", "x", "y"],
    "right": ["y", "z", "z", "x", "y", "x"],
    "outcome": ["left", "right", "left", "left", "tie", "left"],
}


def table(**columns):
    import pyarrow as pa

    return pa.table({**VOTES, **columns})


def test_votes_without_judges_are_released_only_as_votes():
    asked = {"items": ["x", "y", "z"], "max_comparisons": 1, "ties": "drop"}
    with refused(BadUsage, "these_votes_name_no"):
        release_comparisons(table(), BUDGET, **asked)
    with refused(BadUsage, "unit_vote_unit_vote", cap="2"):
        release_comparisons(table(), BUDGET, **{**asked, "max_comparisons": 2}, unit="vote")
    with refused(BadUsage, "unit_vote_unit_vote_votes"):
        release_comparisons(table(judge=list("abcdef")), BUDGET, **asked, unit="vote")
    named = simulate_comparisons(9, 3, 2, rng=np.random.default_rng(0)).comparisons
    with refused(BadUsage, "these_comparisons_name_their"):
        release_comparisons(named, BUDGET, items=names(3), max_comparisons=1, unit="vote")


@pytest.mark.parametrize("is_read", [False, True])
def test_a_release_of_votes_says_what_a_person_with_several_has(tmp_path, is_read):
    from discreet.readers.comparisons import read_comparisons

    book = Ledger.create(tmp_path / "spent.db", epsilon=2.0, delta=1e-5)
    data = read_comparisons(table(), ties="drop") if is_read else table()
    words = {} if is_read else {"ties": "drop"}
    released = release_comparisons(
        data, BUDGET, items=["x", "y", "z"], max_comparisons=1, unit="vote", ledger=book, **words
    )
    assert released.guarantee.unit == "one vote; a person with v votes has v times epsilon"
    assert released.record["person_is"] == "vote"
    released.save(tmp_path / "out")
    again = read_released_ranking(tmp_path / "out")
    assert again.guarantee.unit == released.guarantee.unit
    statement = write_statement(again.record)
    assert "a person with v votes counts as v" in statement
    assert released.record["judges"] == 6  # a tie is a vote: dropping it changes no number


def test_ties_that_count_and_covariates_are_not_released():
    asked = {"items": ["x", "y", "z"], "max_comparisons": 1}
    judges = table(judge=list("abcdef"), longer=[1.0, 2, 3, 4, 5, 6])
    for words in (
        {"ties": "davidson"},
        {"ties": "shrunk"},
        {"ties": "drop", "covariates": "longer"},
    ):
        # Where nothing is tied, too: whether a release is refused must not depend on one answer.
        for data in (judges, judges.filter([True, True, True, True, False, True])):
            with refused(BadUsage, "release_counts_who_won"):
                release_comparisons(data, BUDGET, **asked, **words)
    assert release_comparisons(judges, BUDGET, **asked, ties="drop").guarantee.epsilon == 1.0


@pytest.mark.parametrize("mechanism", [WinPairs(), NetWins()])
def test_a_judge_whose_ties_are_dropped_moves_no_further_than_any_other(mechanism):
    public = public_for(3, 3)
    calibration = mechanism.calibrate(public, BUDGET, SeededSource(0))
    weighting = mechanism.weighting(public, calibration)
    without = cells_of(mechanism, public, calibration)
    pairs = [(0, 1), (0, 2), (1, 2)]
    for outcomes in product((None, 1, -1, 0), repeat=3):  # not compared, won, lost, tied
        rows = [(p, x) for p, x in zip(pairs, outcomes, strict=True) if x is not None]
        sides = np.array([p if x >= 0 else p[::-1] for p, x in rows], dtype=int).reshape(-1, 2)
        judge = Comparisons(
            *(public.items, None, [0, len(rows)], *sides.T),
            tied=[x == 0 for _, x in rows],
            ties="drop",
        ).drop_ties()
        found = mechanism.cells(judge.count(weighting), calibration)
        index = {
            name: np.flatnonzero((without[name] == cell).all(axis=1))
            for name, cell in found.items()
        }
        assert set.intersection(*(set(one.tolist()) for one in index.values()))
