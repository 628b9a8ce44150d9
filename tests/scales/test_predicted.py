"""Scores on all items, predicted from answers to some, against their formulas written anew."""

import numpy as np
import pytest

import discreet
from discreet import adaptive
from discreet.errors import BadUsage
from refusals import refused


def calibrated():
    """Return 40 persons' answers to eight items and their calibration."""
    rng = np.random.default_rng(4)
    made = discreet.simulate(40, 8, answered=0.9, difficulty=np.linspace(-2, 1.5, 8), rng=rng)
    return made.responses, discreet.fit(made.responses, method="refined")


def shrink_anew(estimate):
    """Return shrunken difficulties, reliabilities and what is left of the errors' covariance."""
    b, se = estimate.difficulty, estimate.se
    spread = b.var() - (se**2).mean()
    keep = np.diag(spread / (spread + se**2))
    rest = np.eye(len(b)) - keep
    left = keep @ estimate.covariance @ keep + rest @ rest * spread
    return b.mean() + keep @ (b - b.mean()), left


def forecast_anew(estimate, answers):
    """Return points, expected points, the person's own variance and that of the items."""
    b, left = shrink_anew(estimate)
    seen = ~np.isnan(answers)
    named = {name: float(value) for name, value in zip(estimate.items, b, strict=True)}
    known = discreet.Responses.from_array(answers[None], estimate.items)
    ability = discreet.score(known, named).ability[0]
    chance = 1 / (1 + np.exp(b - ability))
    w = chance * (1 - chance)
    moved = sum(w[~seen]) / sum(w[seen])
    gradient = np.array([w[i] * moved if seen[i] else -w[i] for i in range(len(b))])
    own = sum(w[~seen]) ** 2 / sum(w[seen]) + sum(w[~seen])
    return answers[seen].sum(), chance[~seen].sum(), own, gradient @ left @ gradient


NEW = np.array(
    [[1, 1, np.nan, 0, np.nan, 0, np.nan, np.nan], [np.nan, 1, np.nan, np.nan, 1, np.nan, 1, 0]]
)


def test_a_prediction_and_its_error_are_those_written_down():
    _, estimate = calibrated()
    found = discreet.predict_scores(NEW, named(estimate), level=0.9)
    for row, answers in enumerate(NEW):
        points, expected, own, shared = forecast_anew(estimate, answers)
        error, left = np.sqrt(own + shared), np.isnan(answers).sum()
        assert found.score[row] == pytest.approx((points + expected) / 8, abs=1e-9)
        assert found.se[row] == pytest.approx(error / 8, abs=1e-9)
        part = expected / left
        reach = 1.6448536269514722 * error / left / (part * (1 - part))
        odds = np.log(part / (1 - part)) + np.array([-reach, reach])
        ends = (points + left / (1 + np.exp(-odds))) / 8
        assert [found.lower[row], found.upper[row]] == pytest.approx(ends, abs=1e-9)
    assert found.answered.tolist() == [4, 4]
    assert found.n_items == 8


def named(estimate):
    """Return a calibration whose items are "0", "1", ...: as it is."""
    assert estimate.items == tuple("01234567")
    return estimate


def test_past_answers_widen_by_how_far_their_own_predictions_miss():
    responses, estimate = calibrated()
    guessing = np.where(np.random.default_rng(1).random((30, 8)) < 0.5, 1.0, 0.0)
    for past in (guessing, responses.to_array()):
        found = discreet.predict_scores(NEW, estimate, past=np.where(past < 0, np.nan, past))
        for row, answers in enumerate(NEW):
            seen, ratios = ~np.isnan(answers), []
            for codes in np.where(past < 0, np.nan, past):
                part = np.where(seen, codes, np.nan)
                if np.isnan(part).all() or np.isnan(codes[~seen]).all():
                    continue
                had = ~np.isnan(codes)
                _, _, own, _, expected = forecast_some(estimate, part, had & ~seen)
                ratios.append((codes[had & ~seen].sum() - expected) ** 2 / own)
            misfit = max(1.0, np.mean(ratios))
            assert found.misfit[row] == pytest.approx(misfit, abs=1e-9)
            _, _, own, shared = forecast_anew(estimate, answers)
            assert found.se[row] == pytest.approx(np.sqrt(misfit * own + shared) / 8, abs=1e-9)
    assert found.misfit.min() >= 1.0


def forecast_some(estimate, answers, unseen):
    """Return the same for the unseen items that a past person answered."""
    b, _ = shrink_anew(estimate)
    seen = ~np.isnan(answers)
    known = dict(zip(estimate.items, b.tolist(), strict=True))
    row = discreet.Responses.from_array(answers[None], estimate.items)
    chance = 1 / (1 + np.exp(b - discreet.score(row, known).ability[0]))
    w = chance * (1 - chance)
    own = sum(w[unseen]) ** 2 / sum(w[seen]) + sum(w[unseen])
    return answers[seen].sum(), w, own, 0.0, chance[unseen].sum()


def test_standard_errors_are_those_of_many_new_persons():
    rng = np.random.default_rng(8)
    made = discreet.simulate(1500, 60, ability=rng.normal(0.8, 1.2, 1500), rng=rng)
    truth = dict(zip(made.responses.items, made.difficulty.tolist(), strict=True))
    answers = made.responses.to_array().astype(float)
    some = answers.copy()
    some[:, 15:] = np.nan
    found = discreet.predict_scores(some, truth)
    z = (answers.mean(axis=1) - found.score) / found.se
    assert 0.9 < np.mean(z**2) < 1.1
    covered = (found.lower <= answers.mean(axis=1)) & (answers.mean(axis=1) <= found.upper)
    assert 0.94 < covered.mean() < 0.96
    assert "no_standard_errors" in [str(one.kind) for one in found.warnings]


def test_whoever_answered_everything_is_known_and_whoever_answered_nothing_is_not():
    _, estimate = calibrated()
    rows = np.full((3, 8), np.nan)
    rows[0], rows[1, :5] = [1, 0, 1, 1, 0, 0, 1, 1], 1.0
    found = discreet.predict_scores(rows, estimate)
    assert (found.score[0], found.se[0], found.lower[0], found.upper[0]) == (0.625, 0, 0.625, 0.625)
    assert 5 / 8 < found.lower[1] < found.score[1] < found.upper[1] < 1
    assert np.isnan([found.score[2], found.se[2], found.lower[2], found.upper[2]]).all()


def test_an_adaptive_session_is_predicted_as_its_answers_are():
    _, estimate = calibrated()
    session = adaptive.start(adaptive.shrink(estimate), max_items=3)
    for right in (True, False, True):
        session = session.answer(right)
    row = np.full((1, 8), np.nan)
    row[0, [estimate.items.index(item) for item in session.items]] = session.right
    one = discreet.predict_scores(session, estimate)
    assert one.score == pytest.approx(discreet.predict_scores(row, estimate).score)


def test_an_adaptive_session_of_items_with_steps_is_predicted():
    answers = discreet.datasets.wellbeing()
    estimate = discreet.fit(answers)
    session = adaptive.start(estimate, max_items=2)
    while session.item is not None:
        session = session.answer(session.categories[session.item][-1])
    found = discreet.predict_scores(session, estimate)
    assert 0.5 < found.lower[0] < found.upper[0] < 1
    points = dict.fromkeys(session.items, 4)
    frame = discreet.Responses.from_array([[4, 4]], session.items, steps=points, lowest=0)
    assert found.score == pytest.approx(discreet.predict_scores(frame, estimate).score)


def test_chosen_items_are_the_middle_ones_of_equal_parts():
    b = {f"q{k}": float(value) for k, value in enumerate(np.random.default_rng(2).normal(size=11))}
    order = sorted(b, key=b.__getitem__)
    parts = [order[int((part + 0.5) * 11 / 3)] for part in range(3)]
    assert discreet.select_items(b, 3) == tuple(sorted(parts, key=list(b).index))
    assert discreet.select_items(b, 11) == tuple(b)


@pytest.mark.parametrize("k", [0, 12])
def test_more_items_than_there_are_cannot_be_chosen(k):
    b = {f"q{place}": float(place) for place in range(11)}
    with refused(BadUsage, "must_items_difficulty_found", n_names="11", k=str(k)):
        discreet.select_items(b, k)


@pytest.mark.parametrize("level", [0.0, 1.0])
def test_a_level_lies_between_nothing_and_everything(level):
    with refused(BadUsage, "level_must_lie_between_predict_scores", level=str(level)):
        discreet.predict_scores([[1, 0]], {"0": 0.0, "1": 1.0}, level=level)
