"""Ratings scored, and linked, with known severities."""

from dataclasses import replace

import numpy as np
import pytest

import discreet
from discreet.analysis import study_ratings
from discreet.answers.ratings import Ratings
from discreet.errors import AssumedReading, BadUsage, ItemsLeftOut


def draw(seed=0, persons=150, **words):
    rng = np.random.default_rng(seed)
    return discreet.simulate_ratings(persons, 3, 5, rng=rng, steps=2, **words).ratings


def test_scores_are_those_of_the_study_and_use_what_is_known():
    ratings = draw()
    estimate = discreet.fit(ratings)
    scores = discreet.score(ratings, estimate)
    study = study_ratings(ratings, estimate)
    np.testing.assert_allclose(scores.ability, study.persons.measure, atol=1e-5)
    np.testing.assert_allclose(scores.se, study.persons.se, rtol=1e-3)
    # A rater who is 1 logit more severe than was thought raises who has this rater alone.
    raters = estimate.facets["rater"]
    measure = raters.measure + (np.arange(5) == 2)
    moved = replace(estimate, facets={"rater": replace(raters, measure=measure)})
    alone = ratings.select(np.flatnonzero(ratings.codes["rater"] == 2))
    gain = discreet.score(alone, moved).ability - discreet.score(alone, estimate).ability
    seen = np.unique(alone.person)
    np.testing.assert_allclose(gain[seen], 1, atol=1e-6)
    draws = discreet.score(ratings, estimate, plausible=2)
    assert draws.plausible.shape == (150, 2)


def test_raters_without_a_number_are_left_out_and_named():
    ratings = draw()
    estimate = discreet.fit(ratings.select(np.flatnonzero(ratings.codes["rater"] != 4)))
    with pytest.warns(ItemsLeftOut, match=r"I1:R5"):
        scores = discreet.score(ratings, estimate)
    others = ratings.select(np.flatnonzero(ratings.codes["rater"] != 4))
    expected = discreet.score(others, estimate)
    np.testing.assert_allclose(scores.ability, expected.ability)


def test_several_scores_of_one_rater_all_count():
    ratings = draw(persons=40)
    estimate = discreet.fit(ratings)
    twice = Ratings.from_codes(
        *(np.tile(part, 2) for part in (ratings.person, ratings.item, ratings.score)),
        facets={"rater": np.tile(ratings.codes["rater"], 2)},
        items=ratings.items,
        levels=ratings.facets,
    )
    assert discreet.score(twice, estimate).answered.tolist() == [12] * 40


def test_new_ratings_are_read_as_those_of_the_calibration(tmp_path):
    ratings = draw()
    rows = ["person,item,rater,score"]
    for row in range(ratings.n_ratings):
        codes = ratings.person[row], ratings.item[row], ratings.codes["rater"][row]
        rows.append(",".join(map(str, (*codes, ratings.score[row] + 1))))
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    old.write_text("\n".join([*rows, "0,1,1,9"]))
    new.write_text("\n".join([rows[0], "a,0,0,2", "a,0,1,3", "a,1,1,9"]))
    estimate = discreet.fit(old, facets=["rater"], missing=9)
    assert estimate.reading.lowest == 1
    with pytest.warns(AssumedReading):
        scores = discreet.score(new, estimate)
    assert scores.score.tolist() == [3]  # 2 and 3, from 1 on
    assert scores.answered.tolist() == [2]
    kept = tmp_path / "kept.json"
    estimate.save(kept)
    assert discreet.Estimate.load(kept).reading == estimate.reading


def test_a_link_by_raters_moves_severities_and_their_errors():
    first, second = (discreet.fit(draw(seed, persons=400)) for seed in (0, 0))
    raters = second.facets["rater"]
    shifted = replace(second, facets={"rater": replace(raters, measure=raters.measure - 0.7)})
    link = discreet.link_calibrations(first, shifted, by="rater")
    assert link.shift == pytest.approx(0.7)
    # Equal raters: the weighted mean's error is that of the sum of the weights.
    weight = 1 / (2 * raters.se**2)
    assert link.se == pytest.approx(weight.sum() ** -0.5)
    moved = link.move(shifted)
    np.testing.assert_allclose(moved.facets["rater"].measure, raters.measure)
    np.testing.assert_allclose(moved.facets["rater"].se ** 2, raters.se**2 + link.se**2)
    np.testing.assert_array_equal(moved.difficulty, second.difficulty)
    with pytest.raises(BadUsage):
        discreet.link_calibrations(first, shifted, by="task")


def test_persons_of_two_administrations_link_them():
    ratings = draw(persons=300)
    odd = ratings.codes["rater"] % 2 == 1
    halves = [ratings.select(np.flatnonzero(one)) for one in (odd, ~odd)]
    estimate = discreet.fit(ratings)
    scores = [discreet.score(half, estimate) for half in halves]
    link = discreet.link_calibrations(*scores)
    assert link.by == "persons"
    assert abs(link.shift) < 4 * link.se


def test_weights_of_ratings_are_refused():
    with pytest.raises(BadUsage):
        discreet.fit([{"person": "a", "rater": "b", "score": 1}], facets=["rater"], weight="w")
