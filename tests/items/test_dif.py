"""Differential item functioning: found where it is, not where it is not, never silent."""

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

import discreet
from discreet.analysis import find_dif, run_wald
from discreet.answers.pack import store_codes
from discreet.errors import BadUsage, DisconnectedItems, WarningKind
from discreet.items import dif
from discreet.items.group_differences import calibrate_groups
from discreet.items.groups import adjust
from refusals import refused
from sizes import is_chance_by_study


def draw(rng, effect, size=500, items=30, moved=3, gap=0.0):
    b = rng.normal(size=items)
    shifted = b + np.where(np.arange(items) < moved, effect, 0.0)
    parts = [
        rng.random((size, items)) < 1 / (1 + np.exp(d - rng.normal(shift, 1, (size, 1))))
        for d, shift in ((b, 0.0), (shifted, gap))
    ]
    return np.concatenate(parts).astype(np.int8), np.repeat(["reference", "focal"], size)


def test_a_large_effect_is_found_with_its_size_sign_and_class():
    answers, groups = draw(np.random.default_rng(1), 1.2, size=1500)
    found = find_dif(answers, groups, reference="reference")
    assert found.flagged[:3].all()
    assert found.confirmed[:3].all()
    assert found.ets[:3] == ("C", "C", "C")
    assert found.difference[:3] == pytest.approx([1.2] * 3, abs=0.35)
    assert not found.anchor[:3].any()
    assert found.confirmed[3:].mean() < 0.1


def test_abilities_that_differ_are_not_taken_for_dif():
    answers, groups = draw(np.random.default_rng(2), 0.0, gap=1.5)
    found = find_dif(answers, groups)
    assert found.confirmed.sum() <= 1
    assert set(found.ets) <= {"A", "B"}


def test_anchors_undo_the_shift_that_unequal_items_cause():
    # Ten of thirty items moved by one logit move the mean by a third of a logit.
    answers, groups = draw(np.random.default_rng(3), 1.0, size=3000, moved=10)
    found = find_dif(answers, groups, reference="reference")
    assert found.difference[10:].mean() == pytest.approx(0.0, abs=0.05)
    assert found.difference[:10].mean() == pytest.approx(1.0, abs=0.1)


def test_exchanging_the_groups_changes_the_sign_only():
    answers, groups = draw(np.random.default_rng(4), 0.6)
    one = find_dif(answers, groups, reference="reference")
    two = find_dif(answers, groups, reference="focal")
    assert one.difference == pytest.approx(-two.difference)
    assert one.p_value == pytest.approx(two.p_value)


def test_several_groups_are_compared_with_the_largest():
    rng = np.random.default_rng(5)
    sim = discreet.simulate(900, 10, rng=rng)
    groups = np.repeat(["a", "b", "c"], [200, 400, 300])
    found = find_dif(sim.responses, groups)
    assert found.reference == "b"
    assert len(found.item) == 20
    assert found.focal == ("a",) * 10 + ("c",) * 10
    assert found.persons == {"a": 200, "b": 400, "c": 300}
    assert {len(column) for column in found.to_dict().values()} == {20}


def test_a_group_column_of_the_answers_can_be_named(tmp_path):
    answers, groups = draw(np.random.default_rng(6), 0.0, size=100, items=6)
    lines = ["school,q1,q2,q3,q4,q5,q6"]
    lines += [f"{g}," + ",".join(map(str, row)) for g, row in zip(groups, answers, strict=True)]
    lines[1] = "," + lines[1].split(",", 1)[1]
    (tmp_path / "answers.csv").write_text("\n".join(lines) + "\n")
    responses = discreet.read_responses(tmp_path / "answers.csv", group="school")
    found = find_dif(responses, "school")
    assert found.persons == {"focal": 100, "reference": 99}
    assert found.warnings == ("1 persons without a group label were left out",)


@pytest.mark.parametrize("missing", [None, float("nan"), ""])
def test_missing_labels_are_counted_and_left_out(missing):
    answers, groups = draw(np.random.default_rng(7), 0.0, size=100, items=6)
    labels = list(groups)
    labels[3] = labels[150] = missing
    found = find_dif(answers, labels)
    assert found.persons == {"focal": 99, "reference": 99}
    keep = np.delete(np.arange(200), [3, 150])
    assert found.z == pytest.approx(find_dif(answers[keep], groups[keep]).z)


def test_an_item_without_variance_in_a_group_has_a_reason_beside_the_nan():
    answers, groups = draw(np.random.default_rng(8), 0.0, size=200, items=8)
    answers[groups == "focal", 5] = 0
    answers[:, 6] = -1
    found = find_dif(answers, groups, reference="reference")
    assert found.status[5] == "always_wrong in focal"
    assert found.status[6] == "no_answers in reference, no_answers in focal"
    for index in (5, 6):
        assert np.isnan(found.difference[index])
        assert found.ets[index] == ""
        assert not found.flagged[index]
    assert np.isfinite(np.delete(found.p_adjusted, [5, 6])).all()


def test_persons_with_one_answer_do_no_harm():
    answers, groups = draw(np.random.default_rng(9), 0.0, size=200, items=8)
    more = np.full((2, 8), -1, dtype=np.int8)
    more[0, 0], more[1, 3] = 1, 0
    one = find_dif(answers, groups, reference="reference")
    two = find_dif(np.vstack([answers, more]), [*groups, "focal", "focal"], reference="reference")
    assert two.difference == pytest.approx(one.difference, abs=1e-8)


@pytest.mark.parametrize(
    ("groups", "options", "code", "facts"),
    [
        (["a"] * 1000, {}, "comparing_groups_needs_two", {"n_names": "1"}),
        ([None] * 1000, {}, "comparing_groups_needs_two", {"at": "no labels at all"}),
        (["a", "b"], {}, "groups_need_one_label", {"n_persons": "1000", "n_labels": "2"}),
        ("school", {}, "answers_no_group_column", {"groups": "school"}),
        (["a", "b"] * 500, {"reference": "z"}, "no_group_choose_reference", {"reference": "z"}),
        (["a", "b"] * 500, {"adjustment": "bonferroni"}, "adjustment_must_one_found", {}),
        (["a", "b"] * 500, {"level": 5}, "level_must_lie_between", {}),
    ],
)
def test_wrong_use_is_explained(groups, options, code, facts):
    with refused(BadUsage, code, **facts):
        find_dif(discreet.datasets.lsat(), groups, **options)


def test_a_group_that_determines_nothing_is_named():
    groups = ["one person"] + ["all others"] * 999
    with refused(DisconnectedItems, "group_persons_cannot_calibrated", label="one person"):
        find_dif(discreet.datasets.lsat(), groups)


def test_holm_and_benjamini_hochberg_equal_worked_values():
    p = [0.001, 0.008, 0.039, 0.041, np.nan, 0.6]
    assert adjust(p, "holm") == pytest.approx(
        [0.005, 0.032, 0.117, 0.117, np.nan, 0.6], nan_ok=True
    )
    assert adjust(p, "benjamini-hochberg") == pytest.approx(
        [0.005, 0.02, 0.05125, 0.05125, np.nan, 0.6], nan_ok=True
    )
    assert adjust(p, "none") == pytest.approx(p, nan_ok=True)
    assert adjust([], "holm").shape == (0,)


@pytest.mark.slow
def test_power_and_false_alarms():
    rng = np.random.default_rng(10)
    hits, alarms = [], []
    for _ in range(150):
        answers, groups = draw(rng, 0.6)
        found = find_dif(answers, groups, reference="reference")
        hits.append(found.flagged[:3].mean())
        alarms.append(found.flagged[3:].mean())
    assert np.mean(hits) > 0.90
    assert is_chance_by_study(alarms)


# -- items with steps ----------------------------------------------------------------------------


def draw_steps(seed, moves, *, size=800, items=10, steps=3, model="auto", gap=0.0):
    """Two groups of persons; ``moves`` says by how much the steps of some items differ."""
    rng = np.random.default_rng(seed)
    where = {"difficulty": np.linspace(-1, 1, items), "steps": steps, "model": model}
    thresholds = discreet.simulate(1, items, **where, rng=rng).thresholds.copy()
    parts = []
    for mean in (0.0, gap):
        ability = rng.normal(mean, 1.2, size)
        drawn = discreet.simulate(size, items, thresholds=thresholds, ability=ability, rng=rng)
        parts.append(drawn.responses.to_array())
        for item, move in moves.items():
            thresholds[item] += move
    store = store_codes(np.concatenate(parts), [steps] * items)
    return discreet.Responses.from_store(store), np.repeat(["reference", "focal"], size)


@pytest.mark.parametrize("method", ["conditional", "refined"])
@pytest.mark.parametrize("model", ["partial-credit", "rating-scale"])
def test_a_location_that_differs_is_found_with_its_size(method, model):
    answers, groups = draw_steps(1, {0: 0.8, 1: -0.6}, model=model, gap=0.7)
    found = find_dif(answers, groups, reference="reference", method=method, model=model)
    assert len(found.item) == 10
    assert found.confirmed[:2].all()
    assert found.difference[:2] == pytest.approx([0.8, -0.6], abs=0.25)
    assert np.abs(found.difference[2:]).max() < 0.3
    assert "step" not in found.to_dict()


def test_steps_that_differ_in_opposite_ways_are_found_by_step_only():
    moves = np.array([0.9, 0.0, -0.9])
    answers, groups = draw_steps(2, {3: moves}, size=1500)
    whole = find_dif(answers, groups, reference="reference")
    assert not whole.confirmed.any()
    found = find_dif(answers, groups, reference="reference", by_step=True)
    assert found.step == (1, 2, 3) * 10
    assert np.flatnonzero(found.confirmed).tolist() == [9, 11]
    assert np.abs((found.difference[9:12] - moves) / found.se[9:12]).max() < 3
    assert found.to_dict()["step"] == list(found.step)


def test_steps_of_an_item_average_to_its_location():
    answers, groups = draw_steps(3, {})
    everything = {"method": "conditional", "groups": groups}
    by_item, by_step = (
        run_wald(answers, **everything),
        run_wald(answers, by_step=True, **everything),
    )
    assert by_step.difficulty.reshape(2, 10, 3).mean(axis=2) == pytest.approx(by_item.difficulty)
    assert by_step.items == tuple(item for item in by_item.items for _ in range(3))


def test_an_item_without_a_category_in_one_group_is_not_compared_and_says_why():
    answers, groups = draw_steps(4, {}, size=300)
    codes = answers.to_array()
    focal = groups == "focal"
    codes[focal & (codes[:, 2] == 3), 2] = 2
    thinner = discreet.Responses.from_store(store_codes(codes, [3] * 10))
    for by_step in (False, True):
        found = find_dif(thinner, groups, reference="reference", by_step=by_step)
        status = dict(zip(found.item, found.status, strict=True))
        assert status["2"] == "no answers in category 3 in focal"
        assert np.isnan(found.difference[[item == "2" for item in found.item]]).all()
        assert {said for item, said in status.items() if item != "2"} == {"compared"}


def test_right_and_wrong_items_may_be_compared_by_step_too():
    answers, groups = draw(np.random.default_rng(7), 0.8, items=8)
    by_item, by_step = find_dif(answers, groups), find_dif(answers, groups, by_step=True)
    assert by_step.step == (1,) * 8
    assert by_step.difference.tolist() == by_item.difference.tolist()


def test_the_questionnaire_has_one_item_that_differs_between_ages():
    found = find_dif(discreet.datasets.wellbeing(), "age")
    sure = [item for item, one in zip(found.item, found.confirmed, strict=True) if one]
    assert sure == ["exercised"]


@pytest.mark.slow
@pytest.mark.parametrize("by_step", [False, True])
def test_sound_items_with_steps_are_flagged_as_often_as_the_level_says(by_step):
    flagged = []
    for seed in range(60):
        answers, groups = draw_steps(seed, {}, size=400, items=8)
        found = find_dif(answers, groups, by_step=by_step)
        flagged.append(np.nanmean(found.flagged))
    # 60 studies of 8 items: the share is known to about a percentage point.
    assert 0.03 < np.mean(flagged) < 0.08


def test_without_a_covariance_errors_count_as_independent_and_the_table_says_so(monkeypatch):
    made = discreet.simulate(400, 9, answered=0.8, rng=np.random.default_rng(6))
    groups = np.repeat(["a", "b"], [250, 150])
    fits = []

    def strip(split, request):
        fits.extend(
            replace(one, estimate=replace(one.estimate, covariance=None))
            for one in calibrate_groups(split, request)
        )
        return fits

    monkeypatch.setattr(dif, "calibrate_groups", strip)
    anchors = [made.responses.items[i] for i in (0, 2, 3, 7)]
    table = find_dif(made.responses, groups, anchors=anchors)
    expected = np.zeros(9)
    for one in fits:
        for i, name in enumerate(one.estimate.items):
            weight = dict.fromkeys(anchors, -1 / 4)
            weight[name] = weight.get(name, 0.0) + 1.0
            errors = dict(zip(one.estimate.items, one.estimate.se, strict=True))
            expected[i] += sum((w * errors[a]) ** 2 for a, w in weight.items())
    assert table.se == pytest.approx(np.sqrt(expected), rel=1e-12)
    reach = NormalDist().inv_cdf(1 - 0.05 / 18) * table.se
    assert table.upper - table.difference == pytest.approx(reach)
    assert [one.kind for one in table.warnings] == [WarningKind.INDEPENDENT]
