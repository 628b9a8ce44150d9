"""Persons who answered items with steps: abilities, score tables, posteriors, the command line."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.analysis import tabulate_scores, trace_information
from discreet.answers.pack import store_codes
from discreet.api.persons import score
from discreet.api.scales import create_bank
from discreet.errors import BadResponses, BadUsage
from discreet.models.item_parameters import known_thresholds
from discreet.persons.measures import NormalPrior, abilities
from discreet.readers.calibrations import read_calibration
from refusals import refused
from stepped import chances, draw_answers, draw_codes, draw_thresholds, hold

STEPS = (1, 3, 2, 4)
METHODS = ("warm", "ml", "posterior")


def listed(thresholds):
    """Return thresholds as a mapping from item to list."""
    rows = ([value for value in row if not np.isnan(value)] for row in thresholds.tolist())
    return {str(item): row for item, row in enumerate(rows)}


def log_likelihood(theta, thresholds, codes):
    """From the definition: the product of the categories' probabilities."""
    total = np.zeros(len(theta))
    for own, code in zip(thresholds, codes, strict=True):
        if code >= 0:
            total += np.log(chances(theta, own[~np.isnan(own)])[:, code])
    return total


def test_abilities_are_the_maxima_of_the_definition():
    thresholds = draw_thresholds(np.random.default_rng(1), STEPS)
    codes = np.array([[1, 2, 0, 3], [0, -1, 2, 1], [-1, 1, -1, 2], [1, 3, 2, 4], [0, 0, 0, 0]])
    theta = np.linspace(-12, 12, 24_001)
    for method in ("ml", "warm"):
        answers = discreet.Responses.from_store(store_codes(codes, STEPS))
        found = score(answers, listed(thresholds), method=method)
        for row, one in zip(codes, found.ability, strict=True):
            weight = log_likelihood(theta, thresholds, row)
            if method == "warm":
                given_items = thresholds[row >= 0]
                weight += np.log(trace_information(listed(given_items), theta).information) / 2
            elif np.isnan(one):
                continue
            assert one == pytest.approx(theta[np.argmax(weight)], abs=2e-3)
    assert found.status.tolist()[-2:] == ["all_right", "all_wrong"]


def test_posterior_means_are_those_of_the_definition():
    thresholds = draw_thresholds(np.random.default_rng(2), STEPS)
    codes = np.array([[1, 2, 0, 3], [0, -1, 2, 1]])
    prior = NormalPrior(0.3, 0.8)
    answers = discreet.Responses.from_store(store_codes(codes, STEPS))
    found = score(answers, listed(thresholds), method="posterior", prior=prior)
    theta = np.linspace(-8, 8, 16_001)
    for place, row in enumerate(codes):
        weight = log_likelihood(theta, thresholds, row) - (theta - 0.3) ** 2 / (2 * 0.64)
        weight = np.exp(weight - weight.max())
        mean = weight @ theta / weight.sum()
        assert found.ability[place] == pytest.approx(mean, abs=1e-6)
        spread = np.sqrt(weight @ (theta - mean) ** 2 / weight.sum())
        assert found.se[place] == pytest.approx(spread, abs=1e-6)


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 5), min_size=1, max_size=8))
@settings(max_examples=40, deadline=None)
def test_a_higher_score_is_a_higher_ability(seed, steps):
    thresholds = np.full((len(steps), max(steps)), np.nan)
    rng = np.random.default_rng(seed)
    for row, most in zip(thresholds, steps, strict=True):
        row[:most] = rng.normal(0, 2, most)  # in any order
    for method in METHODS:
        table = tabulate_scores(listed(thresholds), method=method)
        assert table.score.tolist() == list(range(sum(steps) + 1))
        known = table.ability[~np.isnan(table.ability)]
        assert (np.diff(known) > 0).all()
        assert len(known) >= sum(steps) - 1


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=5, deadline=None)
def test_one_step_is_right_and_wrong(seed):
    rng = np.random.default_rng(seed)
    codes, b = draw_codes(seed, 60, (1,) * 6, missing=0.2), rng.normal(size=6)
    answers = discreet.Responses.from_store(store_codes(codes, (1,) * 6))
    difficulties = {str(item): value for item, value in enumerate(b)}
    # An item with two steps that nobody here answered makes the general path of it.
    general = difficulties | {"6": [-0.5, 0.5]}
    wider = discreet.Responses.from_store(
        store_codes(np.column_stack([codes, np.full(60, -1)]), (*(1,) * 6, 2))
    )
    for method in METHODS:
        one, other = (
            score(answers, difficulties, method=method),
            score(wider, general, method=method),
        )
        np.testing.assert_allclose(one.ability, other.ability, atol=1e-9)
        np.testing.assert_allclose(one.se, other.se, atol=1e-9)
        assert one.status.tolist() == other.status.tolist()


def test_arrays_have_the_abilities_of_answers():
    answers, thresholds = hold(3, 50, STEPS, missing=0.2)
    found = abilities(answers.to_array(), thresholds)
    wanted = score(answers, listed(thresholds))
    np.testing.assert_allclose(found.ability, wanted.ability, atol=1e-10)
    np.testing.assert_allclose(found.se, wanted.se, atol=1e-10)


def test_arrays_with_a_category_beyond_the_steps_are_refused():
    with refused(
        BadResponses, "answer_person_item_abilities", item_2="3", allowed="its categories, 0 to 2,"
    ):
        abilities([[1, 3]], [[0.0, np.nan], [-1.0, 1.0]])


def test_abilities_recover_the_truth_and_its_errors():
    rng = np.random.default_rng(4)
    thresholds = draw_thresholds(rng, (3,) * 30)
    ability = np.repeat([-1.5, 0.0, 1.5], 2000)
    codes = np.empty((6000, 30), dtype=np.int8)
    for item, own in enumerate(thresholds):
        share = chances(ability, own)
        codes[:, item] = (rng.random((6000, 1)) > share.cumsum(axis=1)).sum(axis=1)
    found = score(discreet.Responses.from_store(store_codes(codes, (3,) * 30)), listed(thresholds))
    error = (found.ability - ability) / found.se
    for part in error.reshape(3, 2000):
        assert abs(part.mean()) < 4 / np.sqrt(2000)
        assert abs(part.std() - 1) < 0.07


def test_plausible_values_have_the_spread_of_the_abilities():
    rng = np.random.default_rng(5)
    thresholds = draw_thresholds(rng, (3,) * 8)
    codes = draw_answers(rng, 3000, thresholds, spread=1.4)
    answers = discreet.Responses.from_store(store_codes(codes, (3,) * 8))
    found = score(answers, listed(thresholds), plausible=5)
    assert found.plausible.std() == pytest.approx(1.4, abs=0.06)
    assert found.prior.sd == pytest.approx(1.4, abs=0.06)
    assert found.ability.std() < 1.37


def test_unused_categories_are_matched_before_scoring():
    codes = draw_codes(6, 400, (3, 3, 3))
    codes[codes[:, 1] == 1, 1] = 2
    answers = discreet.Responses.from_store(store_codes(codes, (3, 3, 3)))
    estimate = discreet.fit(answers)
    found = score(answers, estimate)
    matched = np.column_stack([codes[:, 0], np.array([0, -1, 1, 2])[codes[:, 1]], codes[:, 2]])
    assert found.score.tolist() == codes.sum(axis=1).tolist()
    np.testing.assert_allclose(found.ability, abilities(matched, estimate.thresholds).ability)


def test_tables_of_an_estimate_stand_for_it():
    codes = draw_codes(21, 500, STEPS)
    codes[codes[:, 3] == 2, 3] = 3  # so that a category of the last item is not used
    answers = discreet.Responses.from_array(codes)
    estimate = discreet.fit(answers)
    bank = create_bank(estimate, scale="grades", source="spring")
    expected = score(answers, estimate).ability
    for table in (estimate.to_dataframe(), estimate.to_arrow(), bank.to_dataframe()):
        assert np.array_equal(score(answers, table).ability, expected)
        assert read_calibration(table).steps == estimate.steps
    assert estimate.to_dataframe().columns[-2:].tolist() == ["threshold_3", "threshold_3_se"]


def test_a_table_of_thresholds_is_a_calibration():
    answers, _ = hold(22, 500, STEPS)
    estimate = discreet.fit(answers)
    table = estimate.thresholds_to_dataframe()
    shuffled = table.sample(frac=1, random_state=5)
    expected = score(answers, estimate).ability
    for one in (table, shuffled, shuffled[["item", "step", "threshold"]]):
        assert score(answers, one).ability == pytest.approx(expected, abs=1e-12)
    read = read_calibration(shuffled)
    order = [read.items.index(item) for item in estimate.items]
    assert np.array_equal(read.threshold_se[order], estimate.threshold_se, equal_nan=True)
    assert np.isnan(read_calibration(table[["item", "step", "threshold"]]).threshold_se).all()


def test_an_item_that_lacks_a_threshold_is_not_scored():
    answers, _ = hold(23, 300, STEPS)
    table = discreet.fit(answers).thresholds_to_dataframe()
    table.loc[(table["item"] == "3") & (table["step"] == 2), "threshold"] = np.nan
    with pytest.warns(UserWarning, match="ignored because the calibration has no difficulty"):
        found = score(answers, table)
    kept = answers.select(["0", "1", "2"])
    assert np.array_equal(found.ability, score(kept, table[table["item"] != "3"]).ability)


@pytest.mark.parametrize(
    ("change", "code", "facts"),
    [
        ({"step": [1, 3]}, "item_steps_all_steps", {"listed": "1, 3"}),
        ({"step": [1, 1]}, "step_item_twice_keep", {"step": "1", "name": "a"}),
        ({"threshold": ["low", "high"]}, "step_threshold_both_must", {}),
    ],
)
def test_a_table_of_thresholds_that_cannot_be_used_is_refused(change, code, facts):
    table = pd.DataFrame({"item": "a", "step": [1, 2], "threshold": [-1.0, 1.0], **change})
    with refused(BadUsage, code, **facts):
        score(np.array([[0], [1], [2]]), table)


def test_answers_with_steps_need_thresholds():
    answers, _ = hold(7, 30, (2, 2))
    with refused(BadResponses, "item_category_calibration_knows", categories="0, 1"):
        score(answers, {"0": 0.0, "1": 1.0})


def test_a_threshold_that_is_no_number_is_refused():
    with refused(BadUsage, "item_thresholds_item_steps", item="a"):
        known_thresholds({"a": [0.0, np.nan], "b": 1.0})


def test_the_information_of_steps_is_the_variance_of_the_score():
    curve = trace_information({"a": [-1.0, 1.0], "b": 0.0}, [0.0])
    share = chances(np.zeros(1), [-1.0, 1.0])[0]
    assert curve.information[0] == pytest.approx(share[0] + share[2] + 0.25)
    assert curve.expected_score[0] == pytest.approx(1.5)
