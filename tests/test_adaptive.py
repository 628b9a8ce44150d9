"""Adaptive sessions: the most informative item, rules, stopping, and what it saves."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from experiments.calibration.adaptive import compare, compare_banks
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet import adaptive
from discreet.adaptive import Exposure, Rules, item_information, next_item, shrink, start
from discreet.answers.pack import store_codes
from discreet.api.scales import create_bank
from discreet.errors import BadUsage
from discreet.persons.measures import NormalPrior
from refusals import refused

LADDER = {f"q{k}": b for k, b in enumerate(np.linspace(-3, 3, 61))}


def run(session, truth, rng):
    while session.item is not None:
        chance = 1 / (1 + np.exp(session.calibration[session.item] - truth))
        session = session.answer(rng.random() < chance)
    return session


def test_information_is_the_variance_of_an_answer_in_the_order_of_the_calibration():
    known = {"a": 0.0, "b": float("nan"), "c": 1.5}
    p = 1 / (1 + np.exp(-(0.5 - np.array([0.0, 1.5]))))
    found = item_information(known, 0.5)
    assert found[[0, 2]] == pytest.approx(p * (1 - p))
    assert np.isnan(found[1])
    assert item_information(known, [0.0, 0.5, 1.0]).shape == (3, 3)


def test_information_adds_up_to_the_standard_error_of_the_test():
    from discreet.analysis import trace_information

    total = item_information(LADDER, 0.7).sum()
    assert 1 / np.sqrt(total) == pytest.approx(trace_information(LADDER, [0.7]).se[0])


@given(ability=st.floats(-4, 4), used=st.sets(st.sampled_from(sorted(LADDER)), max_size=60))
def test_the_next_item_has_the_most_information_of_those_left(ability, used):
    best = next_item(LADDER, ability, used=used)
    information = dict(zip(LADDER, item_information(LADDER, ability), strict=True))
    assert best not in used
    assert information[best] >= max(information[n] for n in LADDER if n not in used) - 1e-12


def test_every_kind_of_calibration_gives_the_same_next_item():
    responses = discreet.simulate(500, 12, rng=np.random.default_rng(1)).responses
    estimate = discreet.fit(responses)
    bank = discreet.create_bank(estimate, scale="s", source="a")
    known = dict(zip(estimate.items, estimate.difficulty, strict=True))
    assert len({next_item(one, 0.4) for one in (estimate, bank, known)}) == 1
    noise = discreet.Budget(epsilon=5.0, delta=1e-6)
    released = discreet.release(responses, noise, items=list(responses.items))
    assert next_item(released, 0.4) == next_item(released.estimate, 0.4)


def test_items_of_a_bank_that_drifted_are_not_asked():
    from dataclasses import replace

    responses = discreet.simulate(500, 4, rng=np.random.default_rng(1)).responses
    bank = discreet.create_bank(discreet.fit(responses), scale="s", source="a")
    best = next_item(bank, 0.0)
    status = tuple("drifted" if name == best else "active" for name in bank.items)
    assert next_item(replace(bank, status=status), 0.0) != best


def test_no_item_is_left_when_all_were_used():
    assert next_item({"a": 0.0}, 0.0, used=["a"]) is None


@pytest.mark.parametrize(
    ("call", "code", "facts"),
    [
        (lambda: next_item(LADDER, 0.0, used=["Q1"]), "calibration_no_difficulty_items", {}),
        (
            lambda: discreet.next_item(LADDER, 0.0, used="q1"),
            "must_found_nothing_read",
            {"wanted": "a list"},
        ),
        (lambda: next_item(LADDER, float("nan")), "ability_must_finite_number_found", {}),
        (lambda: item_information(LADDER, [[0.0]]), "ability_must_finite_number", {}),
        (lambda: start(LADDER, target_se=0.0), "target_se_must_positive", {}),
        (lambda: start(LADDER, max_items=0), "max_items_must_more", {}),
        (lambda: start(LADDER, method="ml"), "method_must_warm_posterior", {}),
        (lambda: start(LADDER, prior=NormalPrior(0, 1)), "prior_belongs_method_posterior", {}),
        (lambda: start(LADDER).answer(0.5), "answer_right_true_wrong", {}),
        (lambda: start(LADDER).answer(True, "other"), "calibration_no_difficulty_items", {}),
        (lambda: start({"a": 0.0}).answer(True).answer(True), "session_over_start_another", {}),
        (lambda: start(LADDER).answer(1, "q1").answer(1, "q1"), "item_answered_before_session", {}),
        (lambda: Rules(at_most={"algebra": 3}), "content_no_item_area", {"unknown": "algebra"}),
        (lambda: Rules({"a": "x"}, shares={"x": 0.0}), "share_must_positive_leave", {}),
        (lambda: Rules(among=0), "among_must_more_found", {}),
        (lambda: Exposure(0.0), "exposure_rate_must_lie", {}),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(call, code, facts):
    with refused(BadUsage, code, **facts):
        call()


@pytest.mark.parametrize("method", ["warm", "posterior"])
def test_a_session_ends_with_the_ability_that_score_gives(method):
    prior = NormalPrior(0.5, 1.5) if method == "posterior" else None
    session = start(LADDER, max_items=15, method=method, prior=prior)
    session = run(session, 0.8, np.random.default_rng(3))
    answers = discreet.Responses.from_array(
        np.array([session.right], dtype=float), items=session.items
    )
    scored = discreet.score(answers, LADDER, method=method, prior=prior)
    assert session.ability == pytest.approx(scored.ability[0], abs=1e-9)
    assert session.se == pytest.approx(scored.se[0], abs=1e-9)
    assert len(session.to_dataframe()) == 15


def test_a_session_stops_at_the_standard_error_and_not_before():
    session = run(start(LADDER, target_se=0.4), 0.3, np.random.default_rng(0))
    assert session.stopped == adaptive.REACHED
    assert session.path_se[-1] <= 0.4 < session.path_se[-2]


def test_a_session_stops_when_no_item_is_left():
    session = run(start({"a": 0.0, "b": 1.0}, target_se=0.1), 0.0, np.random.default_rng(0))
    assert (session.stopped, len(session.items)) == (adaptive.NOTHING_LEFT, 2)


def test_content_areas_keep_their_shares_and_limits():
    content = {name: "xyz"[k % 3] for k, name in enumerate(LADDER)}
    shares = {"x": 0.5, "y": 0.25, "z": 0.25}
    session = start(LADDER, max_items=20, rules=Rules(content, shares=shares))
    had = Counter(content[name] for name in run(session, 0.0, np.random.default_rng(1)).items)
    assert had == {"x": 10, "y": 5, "z": 5}
    session = start(LADDER, max_items=12, rules=Rules(content, at_most={"x": 2}))
    had = Counter(content[name] for name in run(session, 0.0, np.random.default_rng(1)).items)
    assert had["x"] == 2
    session = start(LADDER, rules=Rules(content, at_most={"x": 1, "y": 1, "z": 1}))
    over = run(session, 0.0, np.random.default_rng(1))
    assert (over.stopped, len(over.items)) == (adaptive.NOTHING_LEFT, 3)


@settings(max_examples=15, deadline=None)
@given(rate=st.floats(0.15, 1.0), seed=st.integers(0, 1000))
def test_no_item_is_given_more_often_than_the_exposure_rate_allows(rate, seed):
    rng = np.random.default_rng(seed)
    exposure = Exposure(rate)
    for _ in range(25):
        session = start(LADDER, max_items=6, rules=Rules(exposure=exposure), rng=rng)
        exposure = exposure.after(run(session, 0.0, rng).items)
    assert exposure.sessions == 25
    assert max(exposure.given.values()) <= rate * 25 + 1


def test_a_draw_among_the_best_varies_the_first_item_and_stays_among_them():
    rng = np.random.default_rng(0)
    first = {start(LADDER, rules=Rules(among=5), rng=rng).item for _ in range(60)}
    assert first == {"q28", "q29", "q30", "q31", "q32"}


def test_shrinking_draws_unsure_difficulties_towards_the_mean_and_sure_ones_hardly():
    sim = discreet.simulate(60, 300, rng=np.random.default_rng(1))
    few = discreet.fit(sim.responses, method="refined")
    many = discreet.fit(discreet.simulate(5000, 12, rng=np.random.default_rng(1)).responses)
    truth = dict(zip(sim.responses.items, sim.difficulty - sim.difficulty.mean(), strict=True))
    drawn = shrink(few)
    assert tuple(drawn) == few.items
    error = few.difficulty - [truth[item] for item in few.items]
    shrunk = np.array([drawn[item] - truth[item] for item in few.items])
    assert np.mean(shrunk**2) < np.mean(error**2)
    values = np.array(list(drawn.values()))
    assert ((np.abs(values) <= np.abs(few.difficulty)) | (np.abs(few.difficulty) < 0.05)).all()
    assert list(shrink(many).values()) == pytest.approx(list(many.difficulty), abs=0.01)
    bank = discreet.create_bank(few, scale="s", source="a")
    assert shrink(bank) == pytest.approx(drawn)
    assert start(drawn, max_items=3).item in few.items


def test_items_that_differ_by_no_more_than_their_errors_are_all_alike_when_shrunk():
    estimate = SimpleNamespace(
        items=("a", "b"), difficulty=np.array([-0.1, 0.1]), se=np.array([1.0, 1.0])
    )
    assert shrink(estimate) == {"a": 0.0, "b": 0.0}


def test_shrinking_without_standard_errors_is_refused():
    with refused(BadUsage, "found_no_standard_errors", name="dict"):
        shrink({"a": 0.0})
    answers = discreet.simulate(200, 5, rng=np.random.default_rng(1)).responses
    plain = discreet.fit(answers, method="refined", standard_errors=False)
    with refused(BadUsage, "found_no_standard_errors"):
        shrink(plain)


@pytest.mark.slow
def test_abilities_from_a_bank_of_sixty_models_are_not_too_far_out_when_it_is_shrunk(capsys):
    found = compare_banks(60, persons=200, seed=1)
    with capsys.disabled():
        print("\n", found)
    assert found["as calibrated"][0] > 0.05
    assert abs(found["shrunk"][0]) < 0.05
    assert found["shrunk"][1] > 0.91


@pytest.mark.slow
def test_a_session_saves_questions_against_a_random_order_and_its_error_is_true(capsys):
    found = compare(persons=150, seed=1)
    with capsys.disabled():
        print("\n", found)
    assert found.adaptive_items < 0.8 * found.random_items
    assert 0.92 < found.adaptive_coverage < 0.98


# -- items with steps ----------------------------------------------------------------------------

ITEMS = {"one": 0.3, "two": [-1.0, 1.5], "three": [-0.5, 0.0, 0.8]}


def chances(ability, thresholds):
    share = np.exp(np.concatenate([[0.0], np.cumsum(ability - np.asarray(thresholds))]))
    return share / share.sum()


def test_the_information_of_an_item_is_the_variance_of_its_score():
    found = adaptive.item_information(ITEMS, [0.4, -2.0])
    for row, ability in zip(found, (0.4, -2.0), strict=True):
        for value, own in zip(row, ITEMS.values(), strict=True):
            share, score = chances(ability, np.atleast_1d(own)), np.arange(np.size(own) + 1)
            assert value == pytest.approx(share @ score**2 - (share @ score) ** 2)
    assert adaptive.item_information(ITEMS, 0.4).shape == (3,)


def test_the_next_item_has_the_most_information():
    for ability in (-3.0, 0.0, 1.0, 4.0):
        best = np.argmax(adaptive.item_information(ITEMS, ability))
        assert adaptive.next_item(ITEMS, ability) == list(ITEMS)[best]


def test_a_session_scores_categories_as_score_does(tmp_path):
    session = adaptive.start(ITEMS)
    answers = {"one": 1, "two": 2, "three": 1}
    while session.item is not None:
        session = session.answer(answers[session.item])
    codes = np.array([[answers[name] for name in ITEMS]])
    responses = discreet.Responses.from_store(store_codes(codes, [1, 2, 3]), list(ITEMS))
    expected = discreet.score(responses, ITEMS)
    assert session.ability == pytest.approx(expected.ability[0])
    assert session.se == pytest.approx(expected.se[0])
    assert session.to_dict()["right"] == [answers[name] for name in session.items]
    session.save(tmp_path / "session.json")
    assert adaptive.AdaptiveSession.load(tmp_path / "session.json").ability == session.ability


def test_a_session_takes_the_categories_that_the_answers_had():
    drawn = discreet.simulate(600, 5, steps=3, rng=np.random.default_rng(1))
    codes = drawn.responses.to_array()
    codes[codes[:, 2] == 1, 2] = 0  # nobody is in category 1
    estimate = discreet.fit(discreet.Responses.from_store(store_codes(codes, [3] * 5)))
    session = adaptive.start(create_bank(estimate, scale="s", source="one"))
    with refused(
        BadUsage, "item_categories_found_accept", item="2", categories="0, 2, 3", answer=1
    ):
        session.answer(1, "2")
    low, high = session.answer(2, "2").ability, session.answer(3, "2").ability
    assert low < high


def test_an_answer_that_an_item_does_not_have_is_refused():
    session = adaptive.start(ITEMS)
    with refused(BadUsage, "answer_right_true_wrong"):
        session.answer(2, "one")
    with refused(BadUsage, "item_categories_found_accept", categories="0, 1, 2", answer=3):
        session.answer(3, "two")
