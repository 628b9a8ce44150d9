"""Anchors with steps: all thresholds of an item are held, and the others are on their scale."""

import numpy as np
import pytest

import discreet
from discreet.answers.pack import store_codes
from discreet.api.scales import create_bank
from discreet.errors import BadResponses, BadUsage, DisconnectedItems
from refusals import refused

STEPS = (1, 2, 3, 3, 2, 4, 3, 3)


def draw(seed, *, persons=800, answered=1.0, mean=0.0, steps=STEPS):
    rng = np.random.default_rng(seed)
    where = np.linspace(-1, 1, len(steps))
    ability = rng.normal(mean, 1.2, persons)
    return discreet.simulate(
        persons, len(steps), answered, difficulty=where, ability=ability, steps=steps, rng=rng
    )


def list_thresholds(estimate, items):
    place = {name: i for i, name in enumerate(estimate.items)}
    rows = {item: estimate.thresholds[place[item]] for item in items}
    return {item: row[~np.isnan(row)].tolist() for item, row in rows.items()}


@pytest.mark.parametrize("method", ["conditional", "refined"])
@pytest.mark.parametrize("answered", [1.0, 0.6])
def test_a_test_anchored_to_its_own_thresholds_is_the_free_fit(method, answered):
    answers = draw(1, answered=answered).responses
    free = discreet.fit(answers, method=method)
    found = discreet.fit(answers, anchors=list_thresholds(free, ["0", "3", "5"]), method=method)
    estimate = found
    held = [0, 3, 5]
    assert estimate.thresholds == pytest.approx(free.thresholds, abs=1e-6, nan_ok=True)
    assert estimate.difficulty == pytest.approx(free.difficulty, abs=1e-6)
    assert found.displacement[held] == pytest.approx(0, abs=1e-6)
    assert set(found.displacement_reason) == {""}
    assert estimate.method == method
    assert estimate.steps == STEPS
    assert np.nanmax(estimate.threshold_se[held]) == 0
    assert (estimate.se[held] == 0).all()
    assert [str(estimate.status[i]) for i in held] == ["anchored"] * 3


def test_covariances_are_those_of_the_thresholds_and_the_locations():
    answers = draw(2).responses
    found = discreet.fit(answers, anchors={"2": [-1.0, 0.0, 1.0], "4": [0.0, 0.5]})
    known = ~np.isnan(found.thresholds)
    spread = np.sqrt(found.threshold_covariance.diagonal())
    assert spread == pytest.approx(found.threshold_se[known])
    assert np.sqrt(found.covariance.diagonal()) == pytest.approx(found.se)
    assert found.choice


@pytest.mark.parametrize("method", ["conditional", "refined"])
def test_thresholds_come_out_on_the_scale_of_true_anchors(method):
    drawn = draw(3, persons=4000, mean=1.0)
    truth = drawn.thresholds + 2.0
    anchors = {str(i): truth[i][: STEPS[i]].tolist() for i in (0, 2, 5)}
    found = discreet.fit(drawn.responses, anchors=anchors, method=method)
    free = np.setdiff1d(np.arange(8), [0, 2, 5])
    z = (found.thresholds - truth)[free] / found.threshold_se[free]
    assert np.nanmax(np.abs(z)) < 4
    assert np.nanmax(np.abs(found.displacement / found.displacement_se)) < 3.5


def test_an_anchor_that_moved_shows_by_how_much():
    drawn = draw(4, persons=3000)
    anchors = {str(i): drawn.thresholds[i][: STEPS[i]].tolist() for i in range(6)}
    anchors["2"] = [value + 0.9 for value in anchors["2"]]
    for method in ("conditional", "refined"):
        found = discreet.fit(drawn.responses, anchors=anchors, method=method)
        assert found.displacement[2] == pytest.approx(-0.9, abs=0.3)
        assert any("2 (-" in str(one) for one in found.warnings)


def test_anchors_may_be_a_table_a_calibration_or_a_bank(tmp_path):
    answers = draw(5).responses
    free = discreet.fit(answers, method="conditional")
    some = list_thresholds(free, ["1", "6"])
    rows = [f"{item},{k + 1},{value!r}" for item in some for k, value in enumerate(some[item])]
    (tmp_path / "anchors.csv").write_text("item,step,threshold\n" + "\n".join(rows[::-1]) + "\n")
    by_table = discreet.fit(answers, anchors=tmp_path / "anchors.csv")
    assert by_table.anchors_to_dict()["item"] == ["1", "6"]
    other = answers.select(["1", "6", "7"])
    bank = create_bank(discreet.fit(answers), scale="s", source="one")
    for known in (free, bank):
        assert discreet.fit(other, anchors=known).anchors_to_dict()["item"] == ["1", "6", "7"]
    assert by_table.thresholds == pytest.approx(free.thresholds, abs=1e-6, nan_ok=True)


def test_items_whose_steps_nothing_links_are_left_out_and_named():
    codes = draw(6).responses.to_array()
    codes = np.column_stack([codes, np.zeros(len(codes)), np.full(len(codes), -1)]).astype(np.int8)
    answers = discreet.Responses.from_store(store_codes(codes, [*STEPS, 2, 2]))
    found = discreet.fit(answers, anchors={"3": [-1.0, 0.0, 1.0]})
    assert [str(one) for one in found.status[-2:]] == ["always_wrong", "no_answers"]
    assert np.isnan(found.difficulty[-2:]).all()
    assert np.isfinite(found.difficulty[:-2]).all()
    assert any("8 (always_wrong)" in str(one) for one in found.warnings)


def test_an_anchor_keeps_categories_that_nobody_used_here():
    drawn = draw(7)
    codes = drawn.responses.to_array()
    codes[codes[:, 5] == 4, 5] = 3
    answers = discreet.Responses.from_store(store_codes(codes, STEPS))
    anchors = {str(i): drawn.thresholds[i][: STEPS[i]].tolist() for i in (1, 5)}
    found = discreet.fit(answers, anchors=anchors)
    assert found.steps == STEPS
    assert found.displacement_reason[5] == "nobody is in some of its categories"
    assert found.thresholds[5].tolist() == pytest.approx(anchors["5"])


@pytest.mark.parametrize(
    ("anchors", "error", "code", "facts"),
    [
        (
            {"3": [0.0, 1.0]},
            BadResponses,
            "item_category_calibration_knows",
            {"categories": "0, 1, 2"},
        ),
        ({"3": 0.5}, BadResponses, "item_category_calibration_knows", {"categories": "0, 1"}),
        ({"x": [0.0, 1.0]}, BadUsage, "items_answers_do_not", {"unknown": "x"}),
        ({"3": [0.0, float("nan"), 1.0]}, BadUsage, "item_thresholds_item_steps", {}),
        ({"3": [0.0, 1.0, 500.0]}, BadUsage, "item_number_difficulties_thresholds", {}),
        ({}, BadUsage, "no_anchor_any_item", {}),
    ],
)
def test_anchors_that_cannot_be_used_are_refused(anchors, error, code, facts):
    with refused(error, code, **facts):
        discreet.fit(draw(8).responses, anchors=anchors)


@pytest.mark.parametrize(
    ("rows", "code", "facts"),
    [
        ("3,1,0\n3,3,1\n", "item_steps_all_steps", {}),
        ("3,1,0\n3,1,1\n", "step_item_twice_keep", {"step": "1", "name": "3"}),
        ("3,1,easy\n", "step_threshold_both_must", {}),
    ],
)
def test_a_table_of_anchors_needs_every_step_once(rows, code, facts, tmp_path):
    (tmp_path / "anchors.csv").write_text("item,step,threshold\n" + rows)
    with refused(BadUsage, code, **facts):
        discreet.fit(draw(8).responses, anchors=tmp_path / "anchors.csv")


SAME_STEPS = (3,) * 6
HELD = ["1", "4", "5"]


@pytest.mark.parametrize("method", ["conditional", "refined", "spectral", "marginal"])
@pytest.mark.parametrize("answered", [1.0, 0.6])
def test_anchors_at_the_free_estimate_change_nothing_whatever_the_method(method, answered):
    answers = draw(11, answered=answered, steps=SAME_STEPS).responses
    free = discreet.fit(answers, method=method)
    anchored = discreet.fit(answers, anchors=list_thresholds(free, HELD), method=method)
    assert anchored.thresholds == pytest.approx(free.thresholds, abs=2e-6)
    assert anchored.displacement[[1, 4, 5]] == pytest.approx(0, abs=2e-6)
    assert (anchored.displacement_se[[1, 4, 5]] > 0.01).all()


@pytest.mark.parametrize("method", ["conditional", "refined", "spectral", "marginal"])
@pytest.mark.parametrize("model", ["partial-credit", "rating-scale"])
def test_moving_the_anchors_moves_all_thresholds_along_whatever_the_model(method, model):
    answers = draw(16, answered=0.7, steps=SAME_STEPS).responses
    anchors = {"0": [-2.0, -1.0, 0.3], "2": [0.5, 1.0, 1.5]}
    moved = {name: np.add(row, 1.5).tolist() for name, row in anchors.items()}
    first, second = (
        discreet.fit(answers, anchors=held, method=method, model=model) for held in (anchors, moved)
    )
    assert second.thresholds == pytest.approx(first.thresholds + 1.5, abs=2e-6)
    assert second.threshold_se == pytest.approx(first.threshold_se, rel=1e-5)
    assert second.displacement == pytest.approx(first.displacement, abs=2e-6, nan_ok=True)
    assert second.model == model


@pytest.mark.parametrize("method", ["conditional", "refined", "marginal"])
def test_a_displacement_in_a_rating_scale_is_what_leaving_the_anchor_out_gives(method):
    answers = draw(12, steps=SAME_STEPS).responses
    anchors = {"0": [-2.0, -1.0, 0.3], "2": [0.5, 1.0, 1.5], "5": [-0.5, 0.5, 2.0]}
    fit = {"method": method, "model": "rating-scale"}
    anchored = discreet.fit(answers, anchors=anchors, **fit)
    for item in anchors:
        others = {name: value for name, value in anchors.items() if name != item}
        without = discreet.fit(answers, anchors=others, **fit)
        where = anchored.items.index(item)
        moved = without.difficulty[where] - np.mean(anchors[item])
        assert anchored.displacement[where] == pytest.approx(moved, abs=1e-6)


def test_free_items_of_an_anchored_rating_scale_share_their_distances():
    answers = draw(13, steps=SAME_STEPS).responses
    held = discreet.fit(answers, anchors={"0": [-2.0, 0.0, 0.1]}, model="rating-scale")
    distance = held.thresholds - held.difficulty[:, None]
    assert np.ptp(distance[1:], axis=0) == pytest.approx(0, abs=1e-12)
    assert held.thresholds[0].tolist() == [-2.0, 0.0, 0.1]
    assert np.abs(distance[0] - distance[1]).max() > 0.1


def test_marginal_anchors_with_steps_fix_where_the_abilities_are():
    answers = draw(14, steps=SAME_STEPS, mean=0.4).responses
    free = discreet.fit(answers, method="marginal")
    moved = {name: np.add(row, 1.5).tolist() for name, row in list_thresholds(free, HELD).items()}
    held = discreet.fit(answers, anchors=moved, method="marginal")
    assert held.thresholds == pytest.approx(free.thresholds + 1.5, abs=2e-6)
    means = [float(e.solution.notes[0].split("mean ")[1].split()[0]) for e in (free, held)]
    assert means[1] - means[0] == pytest.approx(1.5, abs=2e-4)


def test_marginal_anchors_hold_with_empirical_abilities():
    answers = draw(15, steps=SAME_STEPS).responses
    fit = {"method": "marginal", "ability": "empirical"}
    free = discreet.fit(answers, **fit)
    held = discreet.fit(answers, anchors=list_thresholds(free, HELD), **fit)
    # Both stop where the likelihood is flat within FLAT_STEP.
    assert held.thresholds == pytest.approx(free.thresholds, abs=5e-3)
    assert np.abs(held.displacement[[1, 4, 5]]).max() < 5e-3


def test_anchors_that_nobody_links_to_the_others_are_refused():
    codes = np.full((100, 4), -1, dtype=np.int8)
    codes[:50, :2] = draw(9, persons=50, steps=(2, 2)).responses.to_array()
    codes[50:, 2:] = draw(10, persons=50, steps=(2, 2)).responses.to_array()
    answers = discreet.Responses.from_store(store_codes(codes, [2] * 4))
    with refused(DisconnectedItems, "answers_link_none_other", n_names="2"):
        discreet.fit(answers, anchors={"0": [0.0, 1.0], "1": [0.0, 1.0]})
