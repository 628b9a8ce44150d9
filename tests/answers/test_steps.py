"""Answers with steps: held, counted and estimated on nodes, alike in every form."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.answers.pack import Repeated, store_codes, store_steps
from discreet.counts import pairs
from discreet.counts.matrix import keep_used
from discreet.counts.planes import StepStore
from discreet.errors import BadResponses, BadUsage, DisconnectedItems
from discreet.models.categories import choose_model
from discreet.models.methods import PAIR_METHODS
from discreet.secure import SystemSource
from refusals import refused
from stepped import chances, draw_codes, hold

STEPS = (1, 3, 2, 4)


def forms(codes, steps):
    """Return the same answers as planes, as sparse rows and from long rows."""
    planes = store_codes(codes, steps)
    person, item = np.nonzero(codes >= 0)
    return [
        planes,
        planes.take(np.arange(len(codes))),
        store_steps(person, item, codes[person, item], len(codes), steps),
    ]


@st.composite
def tables(draw):
    steps = tuple(draw(st.lists(st.integers(1, 4), min_size=2, max_size=5)))
    seed, persons = draw(st.integers(0, 2**32 - 1)), draw(st.integers(1, 200))
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, step + 1, persons) for step in steps], axis=1)
    codes[rng.random(codes.shape) < draw(st.sampled_from([0.0, 0.3, 0.95]))] = -1
    return codes.astype(np.int8), steps


@given(tables())
@settings(max_examples=60, deadline=None)
def test_every_form_holds_the_same_answers(made):
    codes, steps = made
    answered = codes >= 0
    for store in forms(codes, steps):
        assert np.array_equal(store.rows(0, len(codes)), codes)
        for axis, totals in ((0, store.item_totals()), (1, store.person_totals())):
            assert np.array_equal(totals[0], answered.sum(axis=axis))
            assert np.array_equal(totals[1], np.maximum(codes, 0).sum(axis=axis))
        assert store.n_answers == answered.sum()
        assert store.steps == steps


@given(tables())
@settings(max_examples=40, deadline=None)
def test_pairs_of_nodes_are_counted_as_defined(made):
    codes, steps = made
    node = [(item, step) for item, most in enumerate(steps) for step in range(1, most + 1)]
    at = np.stack([codes[:, i] == k for i, k in node]).astype(np.int64)
    below = np.stack([codes[:, i] == k - 1 for i, k in node]).astype(np.int64)
    other = np.array([[i != j for j, _ in node] for i, _ in node])
    for store in forms(codes, steps):
        counts = discreet.Responses.from_store(store).count()
        assert np.array_equal(counts.right_wrong, (at @ below.T) * other)
        expected = [(codes == k).sum(axis=0) for k in range(max(steps) + 1)]
        assert np.array_equal(counts.categories, np.stack(expected, axis=1))


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("persons", [700, 40_000])
def test_compiled_loops_count_the_same_pairs(monkeypatch, persons, missing):
    codes = draw_codes(6, persons, (4, 1, 3, 2, 4), missing=missing)
    store = store_codes(codes, (4, 1, 3, 2, 4))
    expected = pairs.count_store(store)
    monkeypatch.setattr(pairs, "worth_compiling", lambda _: True)
    assert np.array_equal(pairs.count_store(store), expected)


@given(tables(), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_a_cap_keeps_whole_answers(made, most):
    codes, steps = made
    for store in forms(codes, steps):
        capped = discreet.Responses.from_store(store).cap(most, SystemSource()).to_array()
        assert np.array_equal((capped >= 0).sum(axis=1), np.minimum((codes >= 0).sum(1), most))
        assert ((capped == codes) | (capped == -1)).all()


def test_answers_are_selected_taken_joined_kept_and_recognised():
    codes = draw_codes(0, 150, STEPS, missing=0.3)
    answers = [discreet.Responses.from_store(store) for store in forms(codes, STEPS)]
    digests = {one.digest(b"key") for one in answers}
    assert len(digests) == 1
    changed = codes.copy()
    changed[0, 3] = 4 if codes[0, 3] != 4 else 3
    assert discreet.Responses.from_store(store_codes(changed, STEPS)).digest(b"key") not in digests
    for one in answers:
        chosen = one.select(["3", "new", "1"])
        assert chosen.steps == (4, 1, 3)
        assert np.array_equal(chosen.to_array()[:, [0, 2]], codes[:, [3, 1]])
        assert np.array_equal(one.select_persons([7, 3]).to_array(), codes[[7, 3]])
        assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301
        assert one == answers[0]
    low = discreet.Responses.from_store(store_codes(np.minimum(codes, 1), (1,) * 4))
    both = discreet.Responses.concat([low, answers[0]])
    assert both.steps == STEPS
    assert np.array_equal(both.to_array(), np.concatenate([np.minimum(codes, 1), codes]))


def test_a_second_answer_to_an_item_is_noticed_whatever_the_category():
    with pytest.raises(Repeated):
        store_steps(np.array([0, 0]), np.array([1, 1]), np.array([0, 3]), 1, STEPS)


def test_one_step_each_is_right_and_wrong():
    store = store_codes(np.array([[1, 0], [0, -1]]), (1, 1))
    assert not isinstance(store, StepStore)
    assert store.rows(0, 2).tolist() == [[1, 0], [0, -1]]


@pytest.mark.parametrize("method", ["spectral", "refined"])
def test_the_chain_of_expected_counts_gives_the_thresholds_back(method):
    rng = np.random.default_rng(4)
    thresholds = [rng.normal(0, 1.5, step) for step in STEPS]
    share = [chances(np.linspace(-3, 3, 9), own) for own in thresholds]
    node = [(item, step) for item, most in enumerate(STEPS) for step in range(1, most + 1)]
    rates = np.zeros((len(node), len(node)))
    for a, (i, k) in enumerate(node):
        for b, (j, low) in enumerate(node):
            if i != j:
                rates[a, b] = (share[i][:, k] * share[j][:, low - 1]).sum()
    found, _ = PAIR_METHODS[method].solve(rates)
    true = np.concatenate(thresholds)
    assert np.abs(found - found.mean() - (true - true.mean())).max() < 1e-12


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("method", ["conditional", "refined", "spectral"])
def test_thresholds_are_found_within_their_standard_errors(method, missing):
    answers, true = hold(1, 3000, (1, 3, 2, 4, 2, 2, 3, 3), missing=missing)
    estimate = discreet.fit(answers, method=method)
    known = ~np.isnan(true)
    z = ((estimate.thresholds - true) / estimate.threshold_se)[known]
    assert estimate.model == "partial-credit"
    assert 0.6 < z.std() < 1.5
    assert np.abs(z).max() < 4.5
    assert estimate.difficulty == pytest.approx(np.nanmean(estimate.thresholds, axis=1))
    assert estimate.difficulty.mean() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("method", ["conditional", "refined", "spectral"])
def test_a_rating_scale_has_the_same_distances_for_all_items(method):
    answers, true = hold(2, 3000, (3,) * 8, common=True)
    estimate = discreet.fit(answers, method=method, model="rating-scale")
    distance = estimate.thresholds - estimate.difficulty[:, None]
    assert np.abs(distance - distance[0]).max() < 1e-9
    z = (estimate.thresholds - true) / estimate.threshold_se
    assert np.abs(z).max() < 4.5
    free = discreet.fit(answers, method=method)
    assert (estimate.threshold_se < free.threshold_se).all()


def test_days_that_are_added_give_what_all_answers_give():
    answers, _ = hold(3, 4000, (2, 3, 2, 4, 3, 1), missing=0.2)
    parts = [answers.select_persons(slice(start, None, 2)) for start in range(2)]
    steps = dict(zip(answers.items, answers.steps, strict=True))
    days = [discreet.count_pairs(part, folds=32) for part in parts]
    assert days[0].steps == tuple(steps.values())
    found, whole = discreet.fit(sum(days)), discreet.fit(answers, method="refined")
    assert found.thresholds == pytest.approx(whole.thresholds, abs=1e-9, nan_ok=True)
    ratio = found.threshold_se / whole.threshold_se
    assert 0.8 < np.nanmedian(ratio) < 1.25


def test_counts_of_other_categories_are_not_added(tmp_path):
    answers, _ = hold(5, 300, (2, 2, 3))
    counts = discreet.count_pairs(answers)
    counts.save(tmp_path / "counts.npz")
    again = discreet.PairCounts.load(tmp_path / "counts.npz")
    assert again.steps == counts.steps
    assert np.array_equal((again + counts).right_wrong, 2 * counts.right_wrong)
    fewer = discreet.count_pairs(
        discreet.Responses.from_store(store_codes(np.minimum(answers.to_array(), 2), (2, 2, 2)))
    )
    with refused(BadResponses, "item_categories_some_these", item="2", first="3"):
        _ = counts + fewer


@pytest.mark.parametrize("method", ["conditional", "refined"])
def test_categories_that_nobody_used_are_left_out_and_said(method):
    answers, _ = hold(6, 2000, (3,) * 6)
    codes = answers.to_array()
    codes[codes[:, 0] == 1, 0] = 2
    codes[codes[:, 1] == 3, 1] = 2
    codes[codes[:, 2] == 0, 2] = 1
    used = discreet.Responses.from_store(store_codes(codes, (3,) * 6))
    estimate = discreet.fit(used, method=method)
    assert estimate.steps == (2, 2, 2, 3, 3, 3)
    assert estimate.ladder.kept[:3] == ((0, 2, 3), (0, 1, 2), (1, 2, 3))
    assert [notice.items for notice in estimate.warnings] == [("0",), ("1",), ("2",)]
    codes[:, 0] -= (codes[:, 0] > 1).astype(codes.dtype)
    codes[:, 2] -= 1
    renumbered = discreet.Responses.from_store(store_codes(codes, (2, 2, 2, 3, 3, 3)))
    again = discreet.fit(renumbered, method=method)
    assert again.thresholds == pytest.approx(estimate.thresholds, abs=1e-9, nan_ok=True)


def test_only_one_used_category_leaves_a_neighbour():
    assert keep_used(np.array([[0, 5, 0], [4, 0, 0], [0, 0, 0]]), (2, 2, 2)).kept == (
        *((0, 1), (0, 1), (0, 1)),
    )


def test_a_rating_scale_needs_one_scale_and_every_category():
    answers, _ = hold(7, 500, (2, 3, 3))
    with refused(BadUsage, "rating_scale_all_items", n_short="1", n_items="3", most_steps="3"):
        discreet.fit(answers, model="rating-scale")
    codes = np.where(answers.to_array() == 1, 2, answers.to_array())
    with refused(DisconnectedItems, "nobody_category_any_item_steps", total="1"):
        discreet.fit(
            discreet.Responses.from_store(store_codes(codes, (3, 3, 3))), model="rating-scale"
        )


def test_models_are_chosen_by_the_answers_or_by_name():
    assert choose_model("auto", (1, 1)) == choose_model("partial-credit", (1, 1)) == "rasch"
    assert choose_model("auto", (1, 2)) == "partial-credit"
    with refused(BadUsage, "model_rasch_right_wrong"):
        choose_model("rasch", (1, 2))
    with refused(BadUsage, "no_called_one_check_choice_name", subject="model", name="grm"):
        choose_model("grm", (1, 2))


def test_an_estimate_with_steps_has_tables_and_is_kept(tmp_path):
    answers, _ = hold(8, 800, (1, 3, 2, 2))
    estimate = discreet.fit(answers)
    rows = estimate.thresholds_to_dict()
    assert rows["item"] == ["0", "1", "1", "1", "2", "2", "3", "3"]
    assert rows["step"] == [1, 1, 2, 3, 1, 2, 1, 2]
    assert len(estimate.thresholds_to_dataframe()) == 8
    wider = estimate.threshold_interval(simultaneous=True)
    assert (np.diff(wider)[:, :, 0] > np.diff(estimate.threshold_interval())[:, :, 0])[0, 0]
    estimate.save(tmp_path / "estimate.json")
    again = discreet.Estimate.load(tmp_path / "estimate.json")
    assert np.array_equal(again.thresholds, estimate.thresholds, equal_nan=True)
    assert again.ladder.kept == estimate.ladder.kept
    assert "partial-credit model" in estimate.summary()


def test_right_and_wrong_answers_have_their_difficulties_as_thresholds():
    estimate = discreet.fit(discreet.simulate(400, 5, rng=np.random.default_rng(3)).responses)
    assert np.array_equal(estimate.thresholds[:, 0], estimate.difficulty)
    assert np.array_equal(estimate.threshold_se[:, 0], estimate.se)
    assert np.array_equal(estimate.threshold_interval()[:, 0], estimate.interval())
    assert estimate.thresholds_to_dict()["step"] == [1] * 5
