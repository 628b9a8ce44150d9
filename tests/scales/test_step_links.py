"""Links, banks, drift and ranks of items with steps: by location, with all their thresholds."""

from dataclasses import replace

import numpy as np
import pytest

import discreet
from discreet.answers.pack import store_codes
from discreet.api.banks import read_bank
from discreet.api.drift import find_drift
from discreet.api.ranks import rank
from discreet.api.scales import create_bank, grow_bank, link_calibrations
from discreet.errors import BadResponses, BadUsage, DisconnectedItems, WarningKind
from discreet.scales.bank import write_bank
from refusals import refused

TRUTH = discreet.simulate(1, 18, steps=3, rng=np.random.default_rng(3)).thresholds


def draw(seed, items, *, persons=1500, mean=0.0, moved=None):
    """Let persons answer some of the items of the truth."""
    rng = np.random.default_rng(seed)
    thresholds = TRUTH[items] + (0.0 if moved is None else np.asarray(moved)[:, None])
    ability = rng.normal(mean, 1.3, persons)
    drawn = discreet.simulate(persons, len(items), thresholds=thresholds, ability=ability, rng=rng)
    names = [f"q{item}" for item in items]
    return discreet.Responses.from_store(drawn.responses.store, names)


def halves():
    first, second = np.arange(12), np.arange(6, 18)
    return discreet.fit(draw(1, first)), discreet.fit(draw(2, second, mean=0.8))


def test_linking_two_halves_gives_back_the_shift_and_every_threshold():
    first, second = halves()
    link = link_calibrations(first, second)
    location = TRUTH.mean(axis=1)
    assert abs(link.shift - (location[6:].mean() - location[:12].mean())) < 3 * link.se
    moved = link.move(second)
    truth = TRUTH[6:] - location[:12].mean()
    z = (moved.thresholds - truth) / moved.threshold_se
    assert np.abs(z).max() < 4
    assert moved.thresholds.mean(axis=1) == pytest.approx(moved.difficulty)
    assert (moved.threshold_se > second.threshold_se).all()
    variance = moved.threshold_covariance.diagonal()
    assert variance == pytest.approx(moved.threshold_se.ravel() ** 2)


def test_a_calibration_linked_to_itself_moved_stays_as_it_is():
    first, _ = halves()
    away = replace(first, difficulty=first.difficulty + 1.5, ladder=first.ladder.move(1.5))
    link = link_calibrations(first, away)
    assert link.shift == pytest.approx(-1.5)
    assert link.move(away).thresholds == pytest.approx(first.thresholds)


def test_items_with_other_categories_there_are_not_linked_by_and_named():
    first, second = halves()
    answers = draw(2, np.arange(6, 18), mean=0.8)
    codes = answers.to_array()
    codes[codes[:, 0] == 3, 0] = 2
    merged = discreet.fit(
        discreet.Responses.from_store(store_codes(codes, [3] * 12), answers.items)
    )
    link = link_calibrations(first, merged)
    assert "q6" not in link.items
    assert len(link.items) == 5
    (notice,) = [one for one in link.warnings if one.kind == WarningKind.NOT_COMPARED]
    assert notice.items == ("q6",)
    drift = find_drift([first, merged])
    assert "q6" not in drift.items
    assert any(one.kind == WarningKind.NOT_COMPARED for one in drift.warnings)
    binary = replace(second, ladder=None)
    with refused(
        DisconnectedItems,
        "two_calibrations_common_first",
        recoded="; 6 have other categories here than there",
    ):
        link_calibrations(first, binary)


def test_drift_is_of_locations():
    items = np.arange(10)
    moved = np.zeros(10)
    moved[4] = 0.7
    before = discreet.fit(draw(5, items, persons=2500))
    after = discreet.fit(draw(6, items, persons=2500, moved=moved))
    found = find_drift([before, after])
    assert found.moved_items == ("q4",)
    assert found.change[4] == pytest.approx(0.7, abs=0.25)
    assert not find_drift([before, discreet.fit(draw(7, items, persons=2500))]).alarm


def test_ranks_are_by_location():
    estimate = discreet.fit(draw(8, np.arange(18)))
    order = np.argsort(-estimate.difficulty)
    found = rank(estimate, 4)
    assert found.top == tuple(estimate.items[i] for i in order[:4])
    truth = {f"q{i}" for i in np.argsort(-TRUTH.mean(axis=1))[:4]}
    assert set(found.surely_in) <= truth <= set(found.possibly_in)


# -- banks ---------------------------------------------------------------------------------------


def test_a_bank_keeps_thresholds_through_a_file(tmp_path):
    first, second = halves()
    bank, _ = grow_bank(create_bank(first, scale="s", source="one"), second, source="two")
    assert len(bank.items) == 18
    assert bank.ladder.value.mean(axis=1) == pytest.approx(bank.difficulty)
    write_bank(tmp_path / "bank.csv", bank)
    again = read_bank(tmp_path / "bank.csv")
    assert again.to_dict() == bank.to_dict()
    assert again.ladder.kept == bank.ladder.kept
    assert again.active().ladder.value.tolist() == bank.active().ladder.value.tolist()


def test_a_bank_of_right_and_wrong_items_can_take_items_with_steps(tmp_path):
    rng = np.random.default_rng(9)
    easy = discreet.simulate(1500, 6, rng=rng)
    both = np.column_stack(
        [
            easy.responses.to_array(),
            discreet.simulate(
                1500, 4, ability=easy.ability, steps=[1, 2, 3, 3], rng=rng
            ).responses.to_array(),
        ]
    )
    steps = [1] * 6 + [1, 2, 3, 3]
    mixed = discreet.fit(discreet.Responses.from_store(store_codes(both, steps)))
    bank = create_bank(discreet.fit(easy.responses), scale="s", source="one")
    grown, link = grow_bank(bank, mixed, source="two")
    assert len(link.items) == 6
    assert grown.items == mixed.items
    assert grown.ladder.steps == tuple(steps)
    write_bank(tmp_path / "bank.csv", grown)
    assert read_bank(tmp_path / "bank.csv").to_dict()["categories"][-1] == "0 1 2 3"


def test_a_bank_without_steps_is_written_and_read_as_ever(tmp_path):
    estimate = discreet.fit(discreet.datasets.lsat())
    write_bank(tmp_path / "bank.csv", create_bank(estimate, scale="s", source="one"))
    text = (tmp_path / "bank.csv").read_text()
    assert '"version": 1' in text
    assert text.splitlines()[1] == '"item","difficulty","se","n","source","status"'
    assert read_bank(tmp_path / "bank.csv").ladder is None


@pytest.mark.parametrize(
    ("old", "new", "error", "code", "facts"),
    [
        ('"0 1 2 3"', '"0 2 1 3"', BadResponses, "item_categories_mean_thresholds", {"row": "q0"}),
        ('"0 1 2 3"', '""', BadResponses, "item_categories_mean_thresholds", {"row": "q0"}),
        ('"threshold_1"', '"threshold_one"', BadResponses, "item_bank_steps_needs", {"row": "q0"}),
        ('"version": 2', '"version": 3', BadUsage, "bank_version_version_discreet", {"head": "3"}),
    ],
)
def test_a_damaged_bank_with_steps_is_refused_with_the_item(tmp_path, old, new, error, code, facts):
    path = tmp_path / "bank.csv"
    write_bank(path, create_bank(halves()[0], scale="s", source="one"))
    path.write_text(path.read_text().replace(old, new, 1))
    with refused(error, code, **facts):
        read_bank(path)
