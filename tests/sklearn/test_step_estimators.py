"""Adaptive tests and scikit-learn estimators on items with steps."""

import numpy as np
import pytest

import discreet
from discreet import adaptive
from discreet.answers.pack import store_codes
from discreet.errors import BadResponses, BadUsage
from discreet.scales.bank import create_bank
from discreet.sklearn import PrivateRasch, Rasch

ITEMS = {"one": 0.3, "two": [-1.0, 1.5], "three": [-0.5, 0.0, 0.8]}


def chances(ability, thresholds):
    share = np.exp(np.concatenate([[0.0], np.cumsum(ability - np.asarray(thresholds))]))
    return share / share.sum()


# -- adaptive tests ------------------------------------------------------------------------------


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
    with pytest.raises(BadUsage, match="item '2' has the categories 0, 2, 3, found 1"):
        session.answer(1, "2")
    low, high = session.answer(2, "2").ability, session.answer(3, "2").ability
    assert low < high


def test_an_answer_that_an_item_does_not_have_is_refused():
    session = adaptive.start(ITEMS)
    with pytest.raises(BadUsage, match=r"right \(True\) or wrong"):
        session.answer(2, "one")
    with pytest.raises(BadUsage, match="categories 0, 1, 2, found 3"):
        session.answer(3, "two")


# -- scikit-learn --------------------------------------------------------------------------------


def draw(seed, persons=500, items=6, steps=3, missing=0.1):
    rng = np.random.default_rng(seed)
    where = np.linspace(-1, 1, items)
    drawn = discreet.simulate(persons, items, difficulty=where, steps=steps, rng=rng)
    X = drawn.responses.to_array().astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X, drawn


def test_categories_are_fitted_as_fit_does_it():
    X, _ = draw(1)
    model = Rasch(method="conditional").fit(X)
    codes = np.where(np.isnan(X), -1, X).astype(np.int8)
    answers = discreet.Responses.from_store(store_codes(codes, [3] * 6))
    expected = discreet.fit(answers, method="conditional")
    assert model.thresholds_.tolist() == expected.thresholds.tolist()
    assert model.difficulty_ == pytest.approx(model.thresholds_.mean(axis=1))
    assert model.transform(X)[:, 0] == pytest.approx(discreet.score(answers, expected).ability)
    scale = Rasch(model="rating-scale").fit(X)
    away = scale.thresholds_ - scale.difficulty_[:, None]
    assert away == pytest.approx(np.tile(away[0], (6, 1)))


def test_answers_from_1_are_those_from_0_and_new_persons_are_read_alike():
    X, _ = draw(2)
    low = Rasch().fit(X)
    high = Rasch().fit(X + 1)
    assert low.thresholds_.tolist() == high.thresholds_.tolist()
    some = np.array([[0.0, 1, 1, np.nan, 0, 1]])
    assert high.transform(some + 1).tolist() == low.transform(some).tolist()
    with pytest.raises(BadResponses):
        low.transform(np.array([[0.0, 1, 1, 5, 0, 1]]))


def test_chances_of_categories_are_those_given_the_other_answers():
    X, _ = draw(3, persons=300, items=4)
    model = Rasch().fit(X)
    chance = model.predict_proba(X[:5])
    assert chance.shape == (5, 4, 4)
    assert chance.sum(axis=2) == pytest.approx(1)
    grid = model.ability_mean_ + model.ability_sd_ * np.linspace(-6, 6, 2001)
    prior = np.exp(-0.5 * np.linspace(-6, 6, 2001) ** 2)
    curves = np.array([[chances(t, own) for own in model.thresholds_] for t in grid])
    for row, answers in zip(chance, X[:5], strict=True):
        for item in range(4):
            weight = prior.copy()
            for other in np.flatnonzero(~np.isnan(answers)):
                if other != item:
                    weight *= curves[:, other, int(answers[other])]
            expected = weight @ curves[:, item] / weight.sum()
            assert row[item] == pytest.approx(expected, abs=1e-4)
    pairs = model.predict_proba(X[:5], pairs=[(2, 1), (0, 3)])
    assert pairs.tolist() == [chance[2, 1].tolist(), chance[0, 3].tolist()]


def test_the_score_is_the_mean_log_chance_and_best_near_the_truth():
    X, _ = draw(4)
    new, _ = draw(5)
    model = Rasch().fit(X)
    chance = model.predict_proba(new)
    person, item = np.nonzero(~np.isnan(new))
    given = chance[person, item, new[person, item].astype(int)]
    assert model.score(new) == pytest.approx(np.log(given).mean())
    assert model.score(new) > np.log(1 / 4)


def test_a_model_of_right_and_wrong_and_a_release_refuse_categories():
    X, _ = draw(6, missing=0.0)
    for model in (Rasch(model="rasch"), PrivateRasch()):
        with pytest.raises(BadResponses):
            model.fit(X)
    assert Rasch(at_least=2).fit(X).thresholds_.shape == (6, 1)
