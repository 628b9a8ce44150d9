"""Anchors hold, links find the shift and the items that drifted, banks grow and stay put."""

import gzip
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.answers.responses import Responses
from discreet.api.banks import read_bank
from discreet.api.scales import create_bank, grow_bank, link_calibrations
from discreet.errors import BadResponses, BadUsage, DisconnectedItems, WarningKind
from discreet.privacy.noise import ExactNoise
from discreet.results.estimate import Estimate, Solution, Status
from discreet.scales.bank import shrink, write_bank
from discreet.scales.linking import _centre, _compare_spread, _doubt_correlation, _doubt_spread
from discreet.secure import SeededSource
from discreet.simulation import simulate
from refusals import disk_full, refused
from sizes import is_chance, is_chance_by_study


def calibration(names, difficulty, se=0.1):
    m = len(names)
    return Estimate(
        items=tuple(names),
        difficulty=np.asarray(difficulty, dtype=float).copy(),
        se=np.full(m, float(se)),
        status=(Status.ESTIMATED,) * m,
        method="refined",
        solution=Solution("made for a test", 0, 0.0),
        answers=np.full(m, 500),
        right=np.full(m, 250),
        persons=500,
    )


def drawn(persons=600, items=10, answered=0.7, seed=3):
    return simulate(persons, items, answered, rng=np.random.default_rng(seed))


# --- anchors ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "conditional", "marginal", "refined"])
def test_one_anchor_is_the_free_estimate_moved(method):
    responses = drawn().responses
    free = discreet.fit(responses, method=method)
    held = discreet.fit(responses, anchors={responses.items[4]: 3.0}, method=method)
    assert held.difficulty - held.difficulty[4] == pytest.approx(
        free.difficulty - free.difficulty[4], abs=1e-8
    )
    assert held.difficulty[4] == 3.0
    assert held.status[4] is Status.ANCHORED


@pytest.mark.parametrize("method", ["auto", "conditional", "marginal", "refined"])
def test_with_one_anchor_standard_errors_are_those_of_differences(method):
    responses = drawn().responses
    free = discreet.fit(responses, method=method)
    held = discreet.fit(responses, anchors={responses.items[0]: 0.0}, method=method)
    own = free.covariance.diagonal()
    expected = np.sqrt(own + own[0] - 2 * free.covariance[:, 0])
    assert held.se[0] == 0
    assert held.se[1:] == pytest.approx(expected[1:], rel=0.02)


@pytest.mark.parametrize("method", ["auto", "conditional", "marginal", "refined"])
def test_anchors_at_the_free_estimate_change_nothing(method):
    responses = drawn().responses
    free = discreet.fit(responses, method=method)
    anchors = dict(zip(free.items[:5], free.difficulty[:5], strict=True))
    anchored = discreet.fit(responses, anchors=anchors, method=method)
    assert anchored.difficulty == pytest.approx(free.difficulty, abs=1e-7)
    assert anchored.displacement[:5] == pytest.approx(np.zeros(5), abs=1e-7)
    assert np.isnan(anchored.displacement[5:]).all()


@pytest.mark.parametrize("method", ["auto", "conditional", "marginal", "refined"])
def test_a_wrong_anchor_is_displaced_by_what_it_is_wrong(method):
    responses = drawn(persons=4000).responses
    free = discreet.fit(responses, method=method)
    anchors = dict(zip(free.items[:8], free.difficulty[:8], strict=True))
    anchors[free.items[2]] += 0.8
    anchored = discreet.fit(responses, anchors=anchors, method=method)
    assert anchored.displacement[2] == pytest.approx(-0.8, abs=1e-6)
    assert abs(anchored.displacement[2]) > 5 * anchored.displacement_se[2]
    assert np.abs(np.delete(anchored.displacement[:8], 2)).max() < 0.35
    assert any(free.items[2] in text for text in anchored.warnings)


@pytest.mark.parametrize("method", ["auto", "conditional", "marginal", "refined"])
def test_a_test_anchored_to_its_own_values_is_not_displaced(method):
    answers = discreet.datasets.lsat()
    free = discreet.fit(answers, method=method)
    anchored = discreet.fit(answers, anchors=free, method=method)
    assert anchored.method == free.method
    assert bool(anchored.choice) == (method == "auto")
    assert anchored.displacement == pytest.approx(np.zeros(5), abs=1e-8)


def test_marginal_anchors_fix_where_the_abilities_are():
    answers = drawn(persons=3000, items=12).responses
    free = discreet.fit(answers, method="marginal")
    anchors = dict(zip(free.items[:4], free.difficulty[:4] + 1.5, strict=True))
    held = discreet.fit(answers, anchors=anchors, method="marginal")
    assert held.difficulty == pytest.approx(free.difficulty + 1.5, abs=1e-6)
    place, moved = (
        [float(word) for word in re.findall(r"-?\d+\.\d+", one.solution.notes[-1])]
        for one in (free, held)
    )
    assert moved == pytest.approx([place[0] + 1.5, place[1]], abs=2e-4)


def test_marginal_anchors_reach_items_that_only_one_distribution_links():
    table = drawn(persons=2000, items=8, answered=1.0).responses.store.rows(0, 2000).astype(float)
    table[:1000, 4:] = np.nan
    table[1000:, :4] = np.nan
    free = discreet.fit(table, method="marginal")
    anchors = dict(zip(free.items[:3], free.difficulty[:3], strict=True))
    anchored = discreet.fit(table, anchors=anchors, method="marginal")
    assert anchored.difficulty == pytest.approx(free.difficulty, abs=1e-6)
    assert anchored.displacement[:3] == pytest.approx(np.zeros(3), abs=1e-6)
    assert [one.kind for one in anchored.warnings] == [WarningKind.LINKED_BY_ASSUMPTION]


def test_marginal_anchors_that_nobody_answered_stay_and_do_not_disturb():
    table = drawn(persons=500, items=6).responses.store.rows(0, 500).astype(float)
    table[table < 0] = np.nan
    table[:, 5] = np.nan
    alone = discreet.fit(table, anchors={"0": 0.3, "1": -0.2}, method="marginal")
    beside = discreet.fit(table, anchors={"0": 0.3, "1": -0.2, "5": 2.0}, method="marginal")
    assert beside.difficulty[:5] == pytest.approx(alone.difficulty[:5], abs=1e-6)
    assert beside.se[:5] == pytest.approx(alone.se[:5], rel=1e-6)
    assert beside.difficulty[5] == 2.0
    assert beside.displacement_reason[5] == "nobody answered it"


def test_marginal_anchors_that_everybody_had_right_are_refused():
    table = np.array([[1, 0, 1], [1, 1, 0], [1, 0, 0], [1, 1, 1]])
    with refused(DisconnectedItems, "anchors_right_among_answers", totals="4", anchors="4"):
        discreet.fit(table, anchors={"0": 0.0}, method="marginal")


def test_anchors_of_the_chain_are_boundary_values():
    """Held nodes keep their weights; at every free node as much flows in as out."""
    answers = discreet.datasets.lsat()
    held = discreet.fit(answers, anchors={"Item1": -1.3, "Item3": 1.2}, method="spectral")
    assert held.difficulty[[0, 2]].tolist() == [-1.3, 1.2]
    flow = np.exp(held.difficulty)[:, None] * discreet.count_pairs(answers).right_wrong
    surplus = flow.sum(axis=1) - flow.sum(axis=0)
    assert surplus[[1, 3, 4]] == pytest.approx(0, abs=1e-9 * flow.max())
    assert np.abs(surplus[[0, 2]]).min() > 1e-3 * flow.max()


def test_anchors_need_the_answers_themselves():
    counts = discreet.count_pairs(discreet.datasets.lsat())
    with refused(BadUsage, "anchors_need_answers_themselves"):
        discreet.fit(counts, anchors={"Item1": 0.0})


@pytest.mark.parametrize("wrong", [0.1, 2.0, 8.0, -8.0])
def test_a_displacement_is_what_leaving_the_anchor_out_gives(wrong):
    responses = drawn().responses
    names = responses.items
    anchors = {names[0]: 0.4, names[1]: wrong, names[2]: -0.3}
    anchored = discreet.fit(responses, anchors=anchors)
    without = discreet.fit(responses, anchors={names[0]: 0.4, names[2]: -0.3})
    assert anchored.displacement[1] == pytest.approx(without.difficulty[1] - wrong, abs=1e-7)


def test_an_anchor_that_only_free_items_tie_to_the_others_has_a_displacement():
    nan = np.nan
    answers = np.array([[1, 0, nan], [0, 1, nan], [nan, 1, 0], [nan, 0, 1], [nan, 0, 1]])
    responses = discreet.Responses.from_array(answers, items=["x", "a", "y"])
    anchored = discreet.fit(responses, anchors={"x": 0.0, "y": 0.0})
    # With y free: a equals x, and y was right twice and wrong once against a.
    assert anchored.displacement[2] == pytest.approx(-np.log(2), abs=1e-8)


@pytest.mark.parametrize("times", [20, pytest.param(60, marks=pytest.mark.slow)])
def test_displacements_have_the_standard_errors_they_claim(times):
    rng = np.random.default_rng(8)
    truth = np.linspace(-1.5, 1.5, 8)
    z = []
    for _ in range(times):
        sim = simulate(300, 8, 0.8, difficulty=truth, rng=rng)
        known = dict(zip(map(str, range(8)), truth, strict=True))
        anchored = discreet.fit(sim.responses.select([str(i) for i in range(8)]), anchors=known)
        held = np.isfinite(anchored.displacement)
        z.append((anchored.displacement / anchored.displacement_se)[held])
    # Eight values each time: after 60 times the standard deviation is known to about 6%.
    wider = np.sqrt(60 / times)
    assert np.std(z) == pytest.approx(1.0, abs=0.2 * wider)
    assert abs(np.mean(z)) < 0.3 * wider


def test_anchored_estimates_have_the_standard_errors_they_claim():
    rng = np.random.default_rng(9)
    truth = np.linspace(-1.5, 1.5, 8)
    names = [str(i) for i in range(8)]
    z = []
    for _ in range(60):
        responses = simulate(300, 8, 0.8, difficulty=truth, rng=rng).responses.select(names)
        held = discreet.fit(responses, anchors={"0": truth[0], "7": truth[7]})
        z.append(((held.difficulty - truth) / np.where(held.se > 0, held.se, 1.0))[1:7])
    assert np.std(z) == pytest.approx(1.0, abs=0.2)


def test_anchors_tie_items_together_that_the_answers_do_not_link():
    # a beats b never and b beats a never, so free estimation fails; each is linked to an anchor.
    nan = np.nan
    answers = np.array(
        [[1, 0, nan, nan], [0, 1, nan, nan], [nan, nan, 1, 0], [nan, nan, 0, 1], [nan, nan, 0, 1]]
    )
    responses = discreet.Responses.from_array(answers, items=["x", "a", "y", "b"])
    held = discreet.fit(responses, anchors={"x": 0.0, "y": 1.0})
    assert held.difficulty == pytest.approx([0.0, 0.0, 1.0, 1.0 - np.log(2)], abs=1e-9)


def test_items_that_nothing_ties_to_the_anchors_say_why():
    answers = np.array([[1, 0, 1, 0, np.nan], [0, 1, 1, 0, np.nan], [1, 0, 1, 0, np.nan]] * 4)
    responses = discreet.Responses.from_array(answers, items=["x", "a", "easy", "hard", "new"])
    held = discreet.fit(responses, anchors={"x": 0.0})
    assert [str(one) for one in held.status] == [
        "anchored",
        "estimated",
        "always_right",
        "always_wrong",
        "no_answers",
    ]
    assert np.isnan(held.difficulty[2:]).all()
    assert "easy (always_right)" in held.warnings[0]


def test_an_anchor_without_a_displacement_says_why():
    answers = np.array([[1, 0, 1, np.nan], [0, 1, 1, np.nan], [1, 0, 1, np.nan]])
    responses = discreet.Responses.from_array(answers, items=["x", "a", "easy", "new"])
    anchored = discreet.fit(responses, anchors={"x": 0.0, "easy": -3.0, "new": 1.0})
    reasons = anchored.anchors_to_dict()["reason"]
    assert reasons[1:] == ["everybody had it right", "nobody answered it"]
    alone = discreet.fit(responses, anchors={"x": 0.0})
    assert alone.displacement_reason[0] == "it is the only anchor"
    assert np.isnan(alone.displacement).all()


def test_every_item_may_be_an_anchor():
    responses = discreet.datasets.lsat()
    anchored = discreet.fit(responses, anchors=dict.fromkeys(responses.items, 0.0))
    assert (anchored.difficulty == 0).all()
    assert set(anchored.status) == {Status.ANCHORED}
    assert np.isfinite(anchored.displacement).all()


@pytest.mark.parametrize(
    ("anchors", "code", "facts"),
    [
        ({"nonsense": 1.0}, "items_answers_do_not", {"unknown": "nonsense"}),
        ({"Item1": np.nan}, "anchor_item_anchor_must", {}),
        ({"Item1": np.inf}, "anchor_item_anchor_must", {}),
        ([("Item1", 1.0), ("Item1", 2.0)], "anchors_contradict_each_other", {"name": "Item1"}),
        ({}, "no_anchor_any_item", {}),
        ({"Item1": "hard"}, "anchor_item_difficulty_logits", {}),
        (7, "calibration_items_difficulty_each", {"name": "int"}),
    ],
)
def test_anchors_that_cannot_be_used_are_refused(anchors, code, facts):
    with refused(BadUsage, code, **facts):
        discreet.fit(discreet.datasets.lsat(), anchors=anchors)


def test_the_same_anchor_twice_is_no_contradiction():
    anchors = [("Item1", 1.0), ("Item1", 1.0)]
    anchored = discreet.fit(discreet.datasets.lsat(), anchors=anchors)
    assert anchored.anchors_to_dict()["item"] == ["Item1"]


def anchor_tables(folder):
    """The same two anchors as every kind of table."""
    frame = pd.DataFrame({"item": ["Item1", "Item2", "Item3"], "difficulty": [1.0, 0.5, None]})
    text = "difficulty;item\n1;Item1\n0.5;Item2\n;Item3\n"
    (folder / "plain.csv").write_text(text)
    (folder / "packed.csv.gz").write_bytes(gzip.compress(text.encode()))
    (folder / "tabs.tsv").write_text(text.replace(";", "\t"))
    (folder / "wide.txt").write_bytes(text.encode("utf-16"))
    frame.to_parquet(folder / "arrow.parquet")
    return [frame, pa.Table.from_pandas(frame), *sorted(folder.iterdir())]


def test_anchors_are_read_from_whatever_is_tabular(tmp_path):
    answers = discreet.datasets.lsat()
    wanted = discreet.fit(answers, anchors={"Item1": 1.0, "Item2": 0.5}).difficulty
    for table in anchor_tables(tmp_path):
        found = discreet.fit(answers, anchors=table)
        assert found.anchors_to_dict()["item"] == ["Item1", "Item2"]
        assert np.array_equal(found.difficulty, wanted)
    with refused(
        BadUsage,
        "need_columns_each_once",
        column_names="'item' and 'difficulty'",
        names_2="Item1, Item2",
    ):
        discreet.fit(answers, anchors=pd.DataFrame({"Item1": [1.0], "Item2": [2.0]}))


def test_a_latin_letter_far_into_a_table_of_anchors_is_read_with_a_warning(tmp_path, monkeypatch):
    monkeypatch.setattr("discreet.tables.paths._HEAD", 64)
    answers = Responses.from_array([[1, 0], [0, 1], [1, 1]], items=["höhe", "b"])
    rows = b"difficulty,item\n" + b",nobody\n" * 99 + "0.5,höhe\n".encode("latin-1")
    (tmp_path / "anchors.csv").write_bytes(rows)
    with pytest.warns(UserWarning, match="not UTF-8"):
        anchored = discreet.fit(answers, anchors=tmp_path / "anchors.csv")
    assert anchored.anchors_to_dict()["item"] == ["höhe"]


def test_anchors_that_no_other_item_is_linked_to_are_refused():
    nan = np.nan
    answers = np.array([[1, nan, nan], [0, nan, nan], [nan, 1, 0], [nan, 0, 1]])
    with refused(DisconnectedItems, "answers_link_none_other", n_names="2"):
        discreet.fit(answers, anchors={"0": 0.0})


def test_a_calibration_serves_as_anchors_and_its_other_items_do_not_matter():
    base = calibration(["Item1", "Item2", "elsewhere"], [0.5, 1.5, 9.0])
    anchored = discreet.fit(discreet.datasets.lsat(), anchors=base)
    assert anchored.anchors_to_dict()["item"] == ["Item1", "Item2"]


def test_a_drifted_item_of_a_bank_is_no_anchor():
    bank = create_bank(calibration(["Item1", "Item2"], [0.5, 1.5]), scale="law", source="a")
    bank = replace(bank, status=("active", "drifted"))
    anchored = discreet.fit(discreet.datasets.lsat(), anchors=bank)
    assert anchored.anchors_to_dict()["item"] == ["Item1"]


@settings(max_examples=25, deadline=None)
@given(shift=st.floats(-5, 5), seed=st.integers(0, 1000))
def test_moving_the_anchors_moves_everything_else_along(shift, seed):
    rng = np.random.default_rng(seed)
    responses = discreet.Responses.from_array(rng.integers(0, 2, (60, 6)))
    first = discreet.fit(responses, anchors={"0": 0.3, "1": -0.2})
    second = discreet.fit(responses, anchors={"0": 0.3 + shift, "1": -0.2 + shift})
    assert second.difficulty == pytest.approx(first.difficulty + shift, abs=1e-7)
    assert second.displacement == pytest.approx(first.displacement, abs=1e-6, nan_ok=True)


# --- links ------------------------------------------------------------------------------------

NAMES = [f"q{i}" for i in range(12)]
SPREAD = np.linspace(-1.5, 1.5, 12)


def test_a_link_finds_the_shift():
    noise = np.random.default_rng(0).normal(0, 0.1, (2, 12))
    base = calibration(NAMES, SPREAD + noise[0])
    new = calibration(NAMES, SPREAD - 0.7 + noise[1])
    link = link_calibrations(base, new)
    assert link.shift == pytest.approx(0.7, abs=3 * link.se)
    assert link.se == pytest.approx(np.sqrt(0.02 / 12), rel=0.5)
    assert not link.flagged.any()


def test_a_drifted_item_is_left_out_and_both_shifts_are_told():
    moved = SPREAD - 0.7
    moved[3] += 1.5
    link = link_calibrations(calibration(NAMES, SPREAD), calibration(NAMES, moved))
    assert link.flagged_items == ("q3",)
    assert link.shift == pytest.approx(0.7)
    assert link.shift_all == pytest.approx(0.7 - 1.5 / 12)
    assert link.drift[3] == pytest.approx(-1.5)
    assert abs(link.z[3]) > 5
    assert "q3" in link.warnings[0]


def test_several_items_that_drift_together_do_not_hide_each_other():
    moved = SPREAD.copy()
    moved[:4] += 1.2
    link = link_calibrations(calibration(NAMES, SPREAD), calibration(NAMES, moved))
    assert link.flagged_items == ("q0", "q1", "q2", "q3")
    assert link.shift == pytest.approx(0.0, abs=1e-9)


def test_sound_items_are_rarely_flagged():
    rng = np.random.default_rng(1)
    flagged = [
        link_calibrations(
            calibration(NAMES, SPREAD + rng.normal(0, 0.1, 12)),
            calibration(NAMES, SPREAD + rng.normal(0, 0.1, 12)),
        ).flagged
        for _ in range(1000)
    ]
    # 1% of a normal variable lies beyond 2.576; the scatter takes half of that away.
    assert is_chance_by_study(np.mean(flagged, axis=1), 0.005)


def test_a_drift_that_one_sound_item_in_a_hundred_shows_is_flagged():
    moved = SPREAD.copy()
    moved[3] -= 0.1 * np.sqrt(2) * 2.6
    pair = calibration(NAMES, SPREAD), calibration(NAMES, moved)
    link = link_calibrations(*pair)
    assert link.z[3] == pytest.approx(2.6)
    assert link.flagged_items == (NAMES[3],)
    assert not link_calibrations(*pair, flag_at=2.7).flagged.any()


def release_two(tmp_path, ledgers):
    noise = [ExactNoise(SeededSource(seed)) for seed in (1, 2)]
    for name in set(ledgers) - {None}:
        discreet.Ledger.create(tmp_path / name, epsilon=9.0, delta=1e-5)
    lsat = discreet.datasets.lsat()
    return [
        discreet.release(
            lsat,
            discreet.Budget(2.0, 1e-6),
            items=lsat.items,
            noise=own,
            ledger=None if name is None else tmp_path / name,
        )
        for own, name in zip(noise, ledgers, strict=True)
    ]


def test_linking_two_releases_of_one_ledger_warns_that_persons_may_be_the_same(tmp_path):
    link = link_calibrations(*release_two(tmp_path, ["a.db", "a.db"]))
    (found,) = [one for one in link.warnings if one.kind is WarningKind.SAME_PERSONS]
    assert "charged to the same ledger" in found


@pytest.mark.parametrize("ledgers", [["a.db", "b.db"], [None, None]])
def test_releases_of_different_ledgers_or_of_none_do_not_warn(tmp_path, ledgers):
    link = link_calibrations(*release_two(tmp_path, ledgers))
    assert not [one for one in link.warnings if one.kind is WarningKind.SAME_PERSONS]


def test_a_population_that_both_records_name_is_named(tmp_path):
    first, second = release_two(tmp_path, ["a.db", "a.db"])
    for one in (first, second):
        one.record["population"] = "grade 8"
    link = link_calibrations(first, second)
    assert any("about the same persons (population 'grade 8'" in one for one in link.warnings)


def test_the_standard_error_of_the_shift_covers_scatter_beyond_the_standard_errors():
    rng = np.random.default_rng(2)
    z = []
    for _ in range(200):
        drift = rng.normal(0, 0.3, 12)
        link = link_calibrations(
            calibration(NAMES, SPREAD, se=0.02), calibration(NAMES, SPREAD + drift, se=0.02)
        )
        z.append(link.shift / link.se)
    # 1.19 with 12 items, 1.05 with 30: the scatter itself is an estimate.
    assert np.std(z) == pytest.approx(1.0, abs=0.3)


def test_a_link_needs_two_common_items():
    with refused(
        DisconnectedItems, "two_calibrations_common_first", n_items="1", by="items", items=" (q0)"
    ):
        link_calibrations(calibration(["q0", "x"], [0, 1]), calibration(["q0", "y"], [0, 1]))
    pair = calibration(["q0", "q1"], [0, 1])
    assert "only 2 common items" in link_calibrations(pair, pair).warnings[0]


def test_items_without_a_number_do_not_link():
    base = calibration(NAMES, SPREAD)
    new = calibration(NAMES, np.where(np.arange(12) < 10, SPREAD, np.nan))
    assert link_calibrations(base, new).items == tuple(NAMES[:10])


def test_a_calibration_without_standard_errors_cannot_be_linked():
    with refused(BadUsage, "calibration_no_standard_errors"):
        link_calibrations(calibration(NAMES, SPREAD), calibration(NAMES, SPREAD, se=np.nan))


def test_something_that_is_no_calibration_cannot_be_linked():
    with refused(BadUsage, "calibration_link_needs_items", which="second", name="dict"):
        link_calibrations(calibration(NAMES, SPREAD), {"q0": 1.0})


def test_a_scale_in_another_unit_is_warned_about():
    link = link_calibrations(calibration(NAMES, SPREAD), calibration(NAMES, 2 * SPREAD))
    assert any("another unit" in text for text in link.warnings)


def test_exactly_known_items_link_too():
    base = calibration(NAMES, SPREAD, se=0.0)
    link = link_calibrations(base, calibration(NAMES, SPREAD + 1, se=0.0))
    assert link.shift == pytest.approx(-1.0)
    assert np.isfinite(link.se)


def test_moving_adds_the_error_of_the_link_to_everything():
    base, new = calibration(NAMES, SPREAD), calibration(NAMES, SPREAD - 1)
    link = link_calibrations(base, new)
    moved = link.move(new)
    assert moved.difficulty == pytest.approx(SPREAD)
    assert moved.se == pytest.approx(np.sqrt(0.01 + link.se**2))


@settings(max_examples=50, deadline=None)
@given(shift=st.floats(-4, 4), seed=st.integers(0, 10_000))
def test_linking_the_other_way_round_turns_the_shift(shift, seed):
    rng = np.random.default_rng(seed)
    base = calibration(NAMES, SPREAD + rng.normal(0, 0.3, 12))
    new = calibration(NAMES, SPREAD + shift + rng.normal(0, 0.3, 12))
    there, back = link_calibrations(base, new), link_calibrations(new, base)
    assert there.shift == pytest.approx(-back.shift, abs=1e-9)
    assert (there.flagged == back.flagged).all()


LSAT_ITEMS = ["Item1", "Item2", "Item3", "Item4", "Item5"]


def release_lsat(epsilon=4.0, **settings):
    budget = discreet.Budget(epsilon, 1e-6, neighbours=settings.pop("neighbours", "replace-one"))
    settings = {"mechanism": "pairs", "items": LSAT_ITEMS, **settings}
    return discreet.release(discreet.datasets.lsat(), budget, **settings)


def test_two_releases_link_and_their_guarantees_add_up():
    first, second = release_lsat(4.0), release_lsat(3.0)
    link = link_calibrations(first, second)
    assert abs(link.shift) < 6 * link.se
    moved = link.move(second)
    assert moved.guarantee == link.guarantee
    assert (moved.guarantee.epsilon, moved.guarantee.delta) == (7.0, 2e-6)
    assert moved.guarantee.rho >= first.guarantee.rho + second.guarantee.rho
    assert moved.guarantee.is_private
    assert create_bank(moved, scale="law", source="a").access == "public"


def test_a_release_on_a_confidential_scale_is_confidential():
    release, confidential = release_lsat(), discreet.fit(discreet.datasets.lsat())
    onto = link_calibrations(confidential, release).move(release)
    assert onto.guarantee is None
    assert create_bank(onto, scale="law", source="a").access == "confidential"
    assert link_calibrations(release, confidential).move(confidential).guarantee is None


def test_a_third_calibration_that_a_link_moves_adds_its_own_guarantee():
    first, second, third = release_lsat(1.0), release_lsat(2.0), release_lsat(4.0)
    link = link_calibrations(first, second)
    assert link.move(second).guarantee.epsilon == 3.0
    assert link.move(third).guarantee.epsilon == 7.0
    assert link.move(discreet.fit(discreet.datasets.lsat())).guarantee is None


def test_releases_that_protect_different_things_have_no_common_promise():
    kept = release_lsat()
    other = release_lsat(neighbours="add-remove")
    assert link_calibrations(kept, other).move(other).guarantee is None


def test_an_anchored_calibration_is_confidential_also_with_released_anchors():
    anchored = discreet.fit(discreet.datasets.lsat(), anchors=release_lsat())
    assert anchored.guarantee is None
    assert create_bank(anchored, scale="law", source="a").access == "confidential"


def test_noise_for_tests_never_reaches_a_public_bank_nor_is_called_private(tmp_path):
    seeded = release_lsat(noise=ExactNoise(SeededSource(3)))
    assert "released with privacy" not in seeded.estimate._repr_html_()
    assert "not private" in seeded.estimate._repr_html_()
    assert "not private" in seeded._repr_html_()
    bank = create_bank(seeded, scale="law", source="a")
    write_bank(tmp_path / "bank.csv", bank)
    assert bank.access == read_bank(tmp_path / "bank.csv").access == "confidential"
    real = release_lsat()
    assert "released with privacy" in real.estimate._repr_html_()
    moved = link_calibrations(real, seeded).move(seeded)
    assert not moved.guarantee.is_private
    grown, _ = grow_bank(create_bank(real, scale="law", source="a"), seeded, source="b")
    assert grown.access == "confidential"


# --- banks ------------------------------------------------------------------------------------


def small_bank():
    return create_bank(calibration(NAMES[:6], SPREAD[:6]), scale="maths", source="spring")


def test_a_bank_comes_back_as_it_was_written(tmp_path):
    bank = small_bank()
    write_bank(tmp_path / "bank.csv", bank)
    again = read_bank(tmp_path / "bank.csv")
    assert again.items == bank.items
    assert (again.difficulty == bank.difficulty).all()
    assert (again.se == bank.se).all()
    assert (again.scale, again.n, again.source, again.access) == (
        bank.scale,
        bank.n,
        bank.source,
        bank.access,
    )
    assert list(tmp_path.iterdir()) == [tmp_path / "bank.csv"]


@settings(max_examples=30, deadline=None)
@given(names=st.lists(st.text(min_size=1), min_size=2, max_size=6, unique=True))
def test_item_names_of_any_kind_survive_a_bank(names, tmp_path_factory):
    path = tmp_path_factory.mktemp("bank") / "bank.csv"
    names = [name.encode("utf-8", "replace").decode() for name in names]
    if len(set(names)) < len(names):
        return
    bank = create_bank(calibration(names, range(len(names))), scale="größe", source="s")
    write_bank(path, bank)
    assert read_bank(path).items == tuple(names)


def test_a_bank_grows_and_what_is_in_it_does_not_move():
    bank = small_bank()
    later = calibration(NAMES[3:], SPREAD[3:] - 1.0)
    grown, link = grow_bank(bank, later, source="autumn")
    assert link.shift == pytest.approx(1.0)
    assert grown.items == tuple(NAMES)
    assert (grown.difficulty[:6] == bank.difficulty).all()
    assert grown.difficulty[6:] == pytest.approx(SPREAD[6:])
    assert (grown.se[6:] > 0.1).all()
    assert grown.source == ("spring",) * 6 + ("autumn",) * 6


def test_a_drifted_item_is_marked_in_the_bank_and_links_no_more():
    bank = create_bank(calibration(NAMES, SPREAD), scale="maths", source="spring")
    moved = SPREAD.copy()
    moved[2] += 2
    grown, _ = grow_bank(bank, calibration(NAMES, moved), source="autumn")
    assert grown.status[2] == "drifted"
    assert grown.difficulty[2] == bank.difficulty[2]
    again, link = grow_bank(grown, calibration(NAMES, SPREAD), source="winter")
    assert "q2" not in link.items
    assert again.status[2] == "drifted"


def test_a_calibration_is_not_added_twice():
    with refused(BadUsage, "bank_items_calibration_called", source="spring"):
        grow_bank(small_bank(), calibration(NAMES, SPREAD), source="spring")


def test_a_confidential_calibration_makes_a_public_bank_confidential():
    bank = create_bank(release_lsat(), scale="law", source="spring")
    assert bank.access == "public"
    grown, _ = grow_bank(bank, discreet.fit(discreet.datasets.lsat()), source="autumn")
    assert grown.access == "confidential"


def test_a_bank_of_releases_carries_what_they_promise_together(tmp_path):
    bank = create_bank(release_lsat(4.0), scale="law", source="spring")
    grown, _ = grow_bank(bank, release_lsat(2.0), source="autumn")
    write_bank(tmp_path / "bank.csv", grown)
    again = read_bank(tmp_path / "bank.csv")
    assert again.access == "public"
    assert again.guarantee == grown.guarantee
    assert (again.guarantee.epsilon, again.guarantee.delta) == (6.0, 2e-6)


def test_a_bank_that_calls_itself_public_without_a_guarantee_is_not_believed(tmp_path):
    (tmp_path / "bank.csv").write_text(bank_text("a,1,0.1,5,s,active\n", access="public"))
    assert read_bank(tmp_path / "bank.csv").access == "confidential"


def test_persons_are_scored_against_a_bank():
    bank = create_bank(discreet.fit(discreet.datasets.lsat()), scale="law", source="a")
    scores = discreet.score(discreet.datasets.lsat(), bank)
    assert np.isfinite(scores.ability).all()


def test_a_calibration_without_difficulties_makes_no_bank():
    with refused(BadUsage, "no_item_difficulty_nothing"):
        create_bank(calibration(["a", "b"], [np.nan, np.nan]), scale="s", source="x")


HEAD = {
    "format": "discreet-bank",
    "version": 1,
    "unit": "logit",
    "scale": "maths",
    "access": "confidential",
}
TITLES = "item,difficulty,se,n,source,status\n"


def bank_text(rows, **changes):
    return f"# {json.dumps(HEAD | changes)}\n{TITLES}{rows}"


@pytest.mark.parametrize(
    ("text", "error", "code", "facts"),
    [
        ("item,difficulty\n", BadUsage, "not_item_bank_first", {}),
        ("", BadUsage, "not_item_bank_first", {}),
        (
            bank_text("a,1,0.1,5,s,active\n", unit="chit"),
            BadUsage,
            "unit_difficulties_here_convert",
            {"head": "chit"},
        ),
        (
            bank_text("a,1,0.1,5,s,active\n", version=9),
            BadUsage,
            "bank_version_version_discreet",
            {"head": "9"},
        ),
        (
            bank_text("a,1,0.1,5,s,active\n", access="who knows"),
            BadUsage,
            "first_line_bank_must",
            {},
        ),
        (
            bank_text("a,1,0.1,5,s,active\n", guarantee="yes"),
            BadUsage,
            "guarantee_first_line_none",
            {},
        ),
        (
            bank_text("a,1,0.1,5,s,active\n", guarantee={}),
            BadUsage,
            "guarantee_first_line_none",
            {},
        ),
        (
            bank_text("a,1,0.1,5,s,active\na,2,0.1,5,t,active\n"),
            BadResponses,
            "line_item_bank_already",
            {"number": "4", "row": "a", "row_2": "3"},
        ),
        (
            bank_text("a,hard,0.1,5,s,active\n"),
            BadResponses,
            "item_no_number_number",
            {"name": "difficulty", "name_2": "hard"},
        ),
        (
            bank_text("a,nan,0.1,5,s,active\n"),
            BadResponses,
            "item_no_number_number",
            {"name": "difficulty", "name_2": "nan"},
        ),
        (bank_text("a,1,-0.1,5,s,active\n"), BadResponses, "item_no_number_number", {"low": "0"}),
        (bank_text("a,1e308,0.1,5,s,active\n"), BadResponses, "item_no_number_number", {}),
        (
            bank_text("a,1,0.1,5,s,perhaps\n"),
            BadResponses,
            "line_status_must_check_rows",
            {"row": "perhaps"},
        ),
        (bank_text("a,1\n"), BadResponses, "line_bank_columns_check_rows", {"columns": "6"}),
        (bank_text(""), BadResponses, "bank_no_items_check_rows", {}),
        (
            f"# {json.dumps(HEAD)}\nitem,se\n",
            BadResponses,
            "bank_no_column_read_bank",
            {"missing": "difficulty"},
        ),
    ],
)
def test_a_bank_that_cannot_be_used_is_refused(tmp_path, text, error, code, facts):
    (tmp_path / "bank.csv").write_text(text)
    with refused(error, code, **facts):
        read_bank(tmp_path / "bank.csv")


def test_a_bank_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "bank.csv"
    write_bank(path, small_bank())
    before = path.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", fail)
    with disk_full():
        write_bank(path, replace(small_bank(), scale="other"))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


# --- links by persons -------------------------------------------------------------------------


def two_forms(seed, persons=60, items=80, shift=0.7):
    """Two forms without a common item, the second harder, and the persons who took both."""
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(size=2 * items)
    difficulty[:items] -= difficulty[:items].mean()
    difficulty[items:] -= difficulty[items:].mean() - shift
    answers = simulate(persons, 2 * items, difficulty=difficulty, rng=rng).responses
    return answers.select(answers.items[:items]), answers.select(answers.items[items:])


def link_forms(seed, **design):
    forms = two_forms(seed, **design)
    fitted = [discreet.fit(form, method="refined") for form in forms]
    pairs = zip(forms, fitted, strict=True)
    return link_calibrations(*(discreet.score(form, known) for form, known in pairs)), fitted


def test_common_persons_link_two_tests_without_a_common_item():
    link, (_, new) = link_forms(1)
    assert link.by == "persons"
    assert link.shift == pytest.approx(0.7, abs=4 * link.se)
    assert link.se < 0.1
    assert list(link.to_dict()) == ["person", "drift", "se", "z", "flagged"]
    moved = link.move(new)
    assert moved.difficulty == pytest.approx(new.difficulty + link.shift, nan_ok=True)
    assert moved.guarantee is None


def test_a_person_who_changed_between_the_tests_is_left_out():
    first, second = two_forms(2)
    cells = second.to_array().astype(float)
    changed = int(np.argmax(first.to_array().sum(axis=1)))
    cells[changed] = 1 - cells[changed]
    second = Responses.from_array(cells, items=second.items)
    scores = [discreet.score(one, discreet.fit(one, method="refined")) for one in (first, second)]
    link = link_calibrations(*scores)
    assert str(changed) in link.flagged_items
    assert "common persons drifted" in link.warnings[0]


def test_abilities_are_linked_to_abilities_only():
    first, second = two_forms(3)
    estimate = discreet.fit(first, method="refined")
    with refused(BadUsage, "one_calibration_other_abilities"):
        link_calibrations(estimate, discreet.score(first, estimate))
    other = Responses.from_array(second.to_array().astype(float), items=second.items,
                                 persons=[f"x{k}" for k in range(60)])  # fmt: skip
    with refused(DisconnectedItems, "two_calibrations_common_first", n_items="0", by="persons"):
        link_calibrations(
            discreet.score(first, estimate), discreet.score(other, discreet.fit(other))
        )


def test_the_command_line_links_by_persons(tmp_path):
    from commandline import discreet as run

    for name, form in zip("ab", two_forms(4), strict=True):
        lines = [
            ",".join(form.items),
            *(",".join(map(str, row)) for row in form.to_array().tolist()),
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines).replace("-1", ""))
        assert run("fit", str(tmp_path / f"{name}.csv"), "--out", str(tmp_path / name)).code == 0
    answers = [f"--answers-{name}={tmp_path / name}.csv" for name in "ab"]
    ended = run("link", str(tmp_path / "a"), str(tmp_path / "b"), "--json", *answers)
    found = json.loads(ended.out)
    assert found["shift"] == pytest.approx(0.7, abs=4 * found["se"])
    assert len(found["persons"]) == 60
    alone = run("link", str(tmp_path / "a"), str(tmp_path / "b"), "--answers-a", "a.csv")
    assert alone.code == 2
    assert "--answers-b" in alone.err


@pytest.mark.slow
def test_the_error_of_a_link_by_persons_is_true():
    z = []
    for seed in range(200):
        link, _ = link_forms(seed)
        z.append((link.shift - 0.7) / link.se)
    assert abs(np.mean(z)) < 0.6
    assert is_chance(np.sum(np.abs(z) > 1.96), 200)


def test_a_correlation_just_below_the_limit_is_not_written_as_the_limit():
    first = np.linspace(-1, 1, 40)
    wave = np.resize([1.0, -1.0, -1.0, 1.0], 40)  # neither shift nor slope
    second = first + wave * np.sqrt((1 / 0.949**2 - 1) * (first @ first) / (wave @ wave))
    items = tuple(f"i{number}" for number in range(40))
    link = link_calibrations(*(calibration(items, one, 0.1) for one in (first, second)))
    assert any("correlate by 0.94 only" in str(one) for one in link.warnings)


# --- numbers of a link --------------------------------------------------------------------------


def test_exactly_known_items_drift_infinitely_or_not_at_all():
    base = calibration("abcde", [0.0, 1.0, 2.0, 3.0, 4.0], se=0.0)
    new = calibration("abcde", [-0.5, 0.5, 1.5, 2.5, 3.6], se=0.0)
    link = link_calibrations(base, new)
    assert link.shift == pytest.approx(0.5)
    assert link.flagged_items == ("e",)
    assert link.z[:4].tolist() == [0.0] * 4
    assert link.z[4] == -np.inf
    assert link.drift[4] == pytest.approx(-0.1)


@pytest.mark.parametrize("error", [[0.0, 0.0], [0.3, 0.1]])
def test_spreads_are_compared_without_what_is_error_in_them(error):
    first = np.array([-1.0, 0.2, 0.5, 1.9])
    second = np.array([-0.7, 0.4, 0.1, 1.1])
    correlation, ratio = _compare_spread(first, second, error)
    own = [np.var(side) - part for side, part in zip((first, second), error, strict=True)]
    together = np.cov(first, second, bias=True)[0, 1]
    assert correlation == pytest.approx(min(together / np.sqrt(own[0] * own[1]), 1.0))
    assert ratio == pytest.approx(np.sqrt(own[1] / own[0]))
    assert np.isnan(_compare_spread(first, second, [np.var(first), 0.0])).all()
    assert np.isnan(_compare_spread(first[:2], second[:2], [0.0, 0.0])).all()


@pytest.mark.parametrize(
    ("correlation", "ratio", "chance", "warned"),
    [
        (0.95, 0.9, 0.049, ""),
        (0.949, 1.1, 0.049, "correlate by 0.94 only"),
        (0.949, 0.899, 0.05, ""),
        (0.96, 0.899, 0.049, "spread 0.90 times"),
        (0.96, 1.101, 0.049, "spread 1.10 times"),
        (float("nan"), float("nan"), 0.0, ""),
    ],
)
def test_doubts_about_a_link_begin_beyond_their_limits(correlation, ratio, chance, warned):
    said = [
        *_doubt_correlation(correlation, chance=chance, by="items"),
        *_doubt_spread(ratio, chance=chance, by="items"),
    ]
    assert [warned in str(one) for one in said] == [True] * bool(warned)


@pytest.mark.parametrize("away", [0.4, 0.5, 0.62, 0.9])
def test_flags_agree_with_the_centre_of_the_items_that_are_left(away):
    """Ten items; the last is off. The scatter is at least that of all items, robustly."""
    moved = 0.1 * np.array([1, -1, 1.5, -1.2, 0.8, -0.7, 1, -1, 1, 0.0])
    moved[9] = away
    first_se, second_se = np.linspace(0.05, 0.15, 10), np.linspace(0.12, 0.06, 10)
    spread = np.linspace(-1, 1, 10)
    link = link_calibrations(
        replace(calibration(NAMES[:10], spread + moved), se=first_se),
        replace(calibration(NAMES[:10], spread), se=second_se),
    )
    variance = first_se**2 + second_se**2
    deviation = np.median(np.abs(moved - np.median(moved))) * 1.4826 * 10 / 9.2
    least = max(deviation**2 - np.median(variance), 0.0)
    kept = ~link.flagged
    weight, own = 1 / variance[kept], moved[kept]
    mean = weight @ own / weight.sum()
    excess = weight @ (own - mean) ** 2 - (kept.sum() - 1)
    scatter = max(excess / (weight.sum() - (weight**2).sum() / weight.sum()), least)
    weight = 1 / (variance[kept] + scatter)
    shift = weight @ own / weight.sum()
    z = (moved - shift) / np.sqrt(variance + scatter)
    assert (link.shift, link.scatter) == pytest.approx((shift, scatter**0.5))
    assert link.z == pytest.approx(z)
    assert link.flagged.tolist() == (np.abs(z) > 2.576).tolist()
    assert bool(link.flagged[9]) is (away > 0.55)


def test_a_single_difference_shows_no_scatter_and_two_show_theirs():
    alone = _centre(np.array([0.3]), np.array([0.04]))
    assert (alone.shift, alone.se, alone.scatter) == pytest.approx((0.3, 0.2, 0.0))
    assert _centre(np.array([0.3]), np.array([0.04]), 0.5).scatter == pytest.approx(0.5)
    # DerSimonian and Laird of two equally sure ones: half the squared distance, less the variance.
    two = _centre(np.array([0.0, 1.0]), np.array([0.04, 0.04]))
    assert (two.shift, two.scatter) == pytest.approx((0.5, np.sqrt(0.5 - 0.04)))
    assert two.se == pytest.approx(np.sqrt(0.5 / 2))


def test_difficulties_are_shrunk_by_their_own_reliability():
    difficulty, se = np.array([-1.0, 0.3, 0.4, 1.9]), np.array([0.1, 0.5, 0.2, 0.9])
    bank = replace(calibration("abcd", difficulty), se=se)
    spread = np.var(difficulty) - np.mean(se**2)
    assert spread > 0.5
    mean = difficulty.mean()
    expected = mean + spread / (spread + se**2) * (difficulty - mean)
    assert list(shrink(bank).values()) == pytest.approx(expected.tolist())
    flat = replace(calibration("abcd", difficulty), se=np.full(4, 2.0))
    assert list(shrink(flat).values()) == pytest.approx([mean] * 4)


@pytest.mark.parametrize("use", ["anchors", "score"])
def test_thresholds_of_a_calibration_that_are_no_logits_are_refused(use):
    answers = simulate(200, 4, steps=3, rng=np.random.default_rng(0)).responses
    estimate = discreet.fit(answers)
    value = estimate.ladder.value.copy()
    value[1, :2] += (-2.5e6, 2.5e6)  # the mean of the item stays in place
    broken = replace(estimate, ladder=replace(estimate.ladder, value=value))
    with refused(BadUsage, "item_number_difficulties_thresholds", item="1"):
        discreet.fit(answers, anchors=broken) if use == "anchors" else discreet.score(
            answers, broken
        )
