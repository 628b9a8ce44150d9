"""Limits of fit statistics from answers simulated under the fitted model."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from experiments.calibration.cutoffs import draw_answers, find_alarms
from scipy.stats import rankdata

import discreet
from discreet.analysis import correlate_residuals, measure_fit, simulate_cutoffs
from discreet.errors import BadUsage
from discreet.items import cutoffs as module
from discreet.items.cutoffs import _Refit, _Simulation
from discreet.items.given_totals import judge_outfit
from discreet.items.residuals import prepare
from discreet.results.estimate import Status
from refusals import refused
from sizes import is_chance


def simulate(answers, estimate=None, **options):
    estimate = discreet.fit(answers) if estimate is None else estimate
    return simulate_cutoffs(answers, estimate, **{"replications": 199, **options})


def log_gamma(loads, total, power):
    """Log of the sum over all answers with a total of the chances to this power."""
    law = np.ones(1)
    for load in loads:
        law = np.convolve(law, np.exp(-power * np.insert(np.cumsum(load), 0, 0.0)))
    return np.log(law[total])


def surprise(thresholds, code, answered):
    """How far the sum of reached thresholds is from its mean given the total, in its SD.

    Mean and variance are derivatives of the norm of the chances.
    """
    loads = [row[np.isfinite(row)] for row in thresholds[answered]]
    reached = sum(load[:x].sum() for load, x in zip(loads, code[answered], strict=True))
    step = 1e-3
    below, at, above = (log_gamma(loads, code[answered].sum(), 1 + by) for by in (-step, 0.0, step))
    mean, variance = (below - above) / (2 * step), (above - 2 * at + below) / step**2
    return (reached - mean) / np.sqrt(variance)


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_statistics_are_those_of_the_report(steps, missing):
    answers = draw_answers(120, 9, np.random.default_rng(1), missing=missing, steps=steps)
    estimate = discreet.fit(answers)
    simulation = _Simulation.of(prepare(answers, estimate, "ml"), 19)
    first, second = simulation.pairs
    values = simulation.measure(simulation.code, simulation.thresholds, simulation.ability)
    fit, pairs = measure_fit(answers, estimate), correlate_residuals(answers, estimate)
    np.testing.assert_allclose(np.exp(values[:9]), fit.items.conditional_infit, rtol=1e-9)
    judged = judge_outfit(fit.items.conditional_outfit, fit.items.outfit_without_one)
    assert (judged < fit.items.conditional_outfit).any()
    np.testing.assert_allclose(np.exp(values[9:18]), judged, rtol=1e-9)
    np.testing.assert_allclose(values[18 : 18 + len(first)], pairs.q3[first, second], rtol=1e-9)
    expected = [
        surprise(simulation.thresholds, code, own > 0)
        for code, own in zip(simulation.code.T, simulation.answered.T, strict=True)
    ]
    np.testing.assert_allclose(values[18 + len(first) :], expected, rtol=1e-3, atol=1e-3)


def test_answers_are_drawn_from_thresholds_whose_estimates_lie_around_the_fitted_ones():
    """Estimates of 60 persons lie 5% too far apart; those of the drawn sets must not."""
    answers = draw_answers(60, 6, np.random.default_rng(3))
    estimate = discreet.fit(answers, method="conditional")
    simulation = _Simulation.of(prepare(answers, estimate, "ml"), 19)
    draws, refit = _Refit.of(simulation, estimate).centre(
        simulation.draws, np.random.default_rng(3)
    )

    def spread(some):
        """Return the slope of estimates from drawn answers on the fitted difficulties."""
        whole = [
            discreet.fit(code.T.astype(float), method="conditional", standard_errors=False)
            for code in some.draw(200, np.random.default_rng(4))
        ]
        mean = np.mean([one.difficulty for one in whole], axis=0)
        return float(mean @ estimate.difficulty / (estimate.difficulty**2).sum())

    plain, nearer = spread(simulation.draws), spread(draws)
    assert plain > 1.04
    assert abs(nearer - 1) < 0.025
    moved = [refit.thresholds(code) for code in draws.draw(400, np.random.default_rng(5))]
    np.testing.assert_allclose(np.mean(moved, axis=0), simulation.thresholds, atol=0.08)


@pytest.mark.parametrize("model", ["rasch", "partial-credit", "rating-scale"])
def test_one_newton_step_is_near_a_whole_fit(model):
    """Drawn answers are fitted as a whole, and abilities found anew."""
    steps = 1 if model == "rasch" else 3
    answers = draw_answers(400, 8, np.random.default_rng(2), steps=steps)
    estimate = discreet.fit(answers, method="conditional", model=model)
    simulation = _Simulation.of(prepare(answers, estimate, "ml"), 19)
    code = next(simulation.draws.draw(1, np.random.default_rng(3)))
    thresholds = _Refit.of(simulation, estimate).thresholds(code)
    drawn = discreet.Responses.from_array(code.T.astype(float))
    whole = discreet.fit(drawn, method="conditional", model=model)
    assert np.abs(whole.thresholds - estimate.thresholds).max() > 0.1
    shift = np.nanmean(thresholds - whole.thresholds)
    np.testing.assert_allclose(thresholds - shift, whole.thresholds, atol=0.04)
    ability = discreet.score(drawn, dict(zip(whole.items, thresholds, strict=True)), method="ml")
    moved = simulation.update(thresholds)[simulation.group]
    np.testing.assert_allclose(moved, ability.ability, atol=0.02)


def test_anchored_items_and_known_difficulties_stay_where_they_are():
    answers = draw_answers(200, 6, np.random.default_rng(4))
    known = {str(item): value for item, value in enumerate(np.linspace(-1, 1, 6))}
    simulation = _Simulation.of(prepare(answers, known, "ml"), 19)
    code = next(simulation.draws.draw(1, np.random.default_rng(5)))
    np.testing.assert_array_equal(
        _Refit.of(simulation, known).thresholds(code), simulation.thresholds
    )
    status = [Status.ANCHORED if item in "14" else Status.ESTIMATED for item in known]
    anchored = replace(discreet.fit(answers), status=tuple(status))
    simulation = _Simulation.of(prepare(answers, anchored, "ml"), 19)
    moved = _Refit.of(simulation, anchored).thresholds(code) != simulation.thresholds
    assert moved[:, 0].tolist() == [True, False, True, True, False, True]


def test_without_the_refit_the_limits_are_too_wide():
    answers = draw_answers(150, 8, np.random.default_rng(6))
    estimate = discreet.fit(answers, method="conditional")
    known = dict(zip(estimate.items, estimate.difficulty, strict=True))
    width = [np.ptp(simulate(answers, one).infit, axis=1).mean() for one in (estimate, known)]
    assert width[0] < 0.93 * width[1]


def test_limits_shrink_with_the_persons_and_hold_one():
    rng = np.random.default_rng(7)
    few, many = (simulate(draw_answers(persons, 10, rng)) for persons in (100, 900))
    for cutoffs in (few, many):
        assert (cutoffs.infit[:, 0] < 1).all()
        assert (cutoffs.infit[:, 1] > 1).all()
    ratio = np.ptp(few.infit, axis=1).mean() / np.ptp(many.infit, axis=1).mean()
    assert 2 < ratio < 6  # about the square root of 9


@pytest.mark.slow
def test_sound_answers_raise_as_many_alarms_as_the_level_says():
    rng = np.random.default_rng(8)
    sound = [find_alarms(draw_answers(100, 6, rng), rng, 99) for _ in range(400)]
    kinds = ("items", "pairs", "persons")
    assert is_chance(sum(any(alarms[kind] for kind in kinds) for alarms in sound), 400)


def test_unsound_answers_are_found():
    rng = np.random.default_rng(8)
    noisy = [find_alarms(draw_answers(600, 10, rng, random_item=0.7), rng) for _ in range(4)]
    assert sum(alarms["items"] for alarms in noisy) >= 3
    twins = [find_alarms(draw_answers(600, 10, rng, twins=0.6), rng) for _ in range(4)]
    assert sum(alarms["pairs"] for alarms in twins) >= 3


def test_persons_are_judged_by_how_many_there_are_and_ranked_by_chance():
    rng = np.random.default_rng(9)
    away = rng.normal(size=(200, 1)) - np.linspace(2, -2, 20)
    rows = (rng.random((200, 20)) < 1 / (1 + np.exp(-away))).astype(float)
    rows[17, :8], rows[17, 8:] = 1, 0
    one = simulate(discreet.Responses.from_array(rows))
    assert np.nanargmin(one.person_p) == 17
    assert not one.unexpected.any()  # one of 200 is no more than chance
    careless = np.arange(0, 200, 6)
    rows[careless] = rng.integers(0, 2, (len(careless), 20))
    many = simulate(discreet.Responses.from_array(rows))
    assert many.persons.share > many.persons.limit > many.persons.expected > 0
    np.testing.assert_array_equal(many.unexpected, many.person_p <= many.persons.chance)
    assert many.unexpected[careless].mean() > 3 * np.delete(many.unexpected, careless).mean()


def test_persons_with_one_possible_sum_do_not_count():
    """All items are equally hard, so that only the total matters."""
    rows = np.random.default_rng(3).integers(0, 2, (60, 6)).astype(float)
    known = dict.fromkeys([str(item) for item in range(6)], 0.0)
    cutoffs = simulate(discreet.Responses.from_array(rows), known)
    assert np.isnan(cutoffs.person_p).all()
    assert cutoffs.persons.share == 0


def test_pairs_that_few_persons_share_have_no_limit():
    rows = draw_answers(300, 6, np.random.default_rng(10)).to_array().astype(float)
    rows[40:, 0] = np.nan
    cutoffs = simulate(discreet.Responses.from_array(rows))
    assert np.isnan(cutoffs.q3[0]).all()
    assert np.isfinite(cutoffs.q3[1, 2:]).all()


def test_so_many_items_that_pairs_would_take_too_long_keep_the_other_limits(monkeypatch):
    monkeypatch.setattr(module, "PAIR_WORK", 1000)
    cutoffs = simulate(draw_answers(100, 6, np.random.default_rng(11)))
    assert np.isnan(cutoffs.q3).all()
    assert np.isfinite(cutoffs.infit).all()


def test_pairs_that_would_not_fit_into_memory_are_left_out(monkeypatch):
    monkeypatch.setattr(module, "PAIR_VALUES", 199 * 15 - 1)
    answers = draw_answers(100, 6, np.random.default_rng(11))
    assert np.isnan(simulate(answers).q3).all()
    assert np.isfinite(simulate(answers, replications=198).q3).any()


def test_the_number_of_replications_follows_the_size_and_is_refused_beyond(monkeypatch):
    answers = draw_answers(60, 5, np.random.default_rng(12))
    estimate = discreet.fit(answers)
    cells = np.isfinite(discreet.score(answers, estimate, method="ml").ability).sum() * 5
    assert simulate_cutoffs(answers, estimate).replications == 999
    monkeypatch.setattr(module, "MANY_CELLS", 999 * cells - 1)
    assert simulate_cutoffs(answers, estimate).replications == 199
    monkeypatch.setattr(module, "FEW_CELLS", 199 * cells - 1)
    assert simulate_cutoffs(answers, estimate).replications == 99
    monkeypatch.setattr(module, "MOST_CELLS", 99 * cells - 1)
    with refused(BadUsage, "cut_offs_simulated_up"):
        simulate_cutoffs(answers, estimate)
    with refused(BadUsage, "cut_offs_need_replications"):
        simulate_cutoffs(answers, estimate, replications=5)


def test_the_same_answers_give_the_same_limits():
    answers = draw_answers(80, 6, np.random.default_rng(13))
    first, second = simulate(answers), simulate(answers)
    np.testing.assert_array_equal(first.outfit, second.outfit)
    other = simulate(answers, rng=np.random.default_rng(14))
    assert not np.array_equal(first.outfit, other.outfit)


def split_by_trial(families):
    """Return the limits at the highest common rank at which no more than 5% of the sets are."""
    ordered = [np.sort(one)[::-1] for one in families]
    sets = len(ordered[0])
    for rank in range(sets):
        limit = [one[rank] for one in ordered]
        beyond = np.any([one > at for one, at in zip(families, limit, strict=True)], axis=0)
        if beyond.sum() > 0.05 * sets:
            return [one[rank - 1] for one in ordered]
    raise AssertionError


def test_families_split_the_level_evenly():
    """99 replications of two items, one pair and three persons; mean squares count both ways."""
    rng = np.random.default_rng(15)
    replicates = rng.normal([0.1, -0.2, 0.3, 0.0, 0.2, 0.2, -0.1, 0.0], 0.3, (99, 8))
    replicates[:3, 0] -= 3  # far below: on one side nobody would see it
    replicates[:, 3] *= 0.18  # hardly ever a tenth from its centre
    observed = np.array([0.1, 0.1, 0.1, 0.04, 2.9, 0.3, 4.0, 0.1])
    every = np.vstack([replicates, observed])
    mean, sd = every.mean(axis=0), every.std(axis=0)
    z = (every - mean) / sd
    matters = np.abs(np.exp(every[:, :4]) - np.exp(mean[:4])) > 0.1
    assert 0 < matters[:, 3].sum() < 12
    items = np.where(matters, np.abs(z[:, :4]), -np.inf).max(axis=1)
    # The mean over the pairs of a set is that of the only one: none is above it.
    chance = 1 - (rankdata(every[:, 5:], axis=0) - 0.5) / 100
    shares = np.stack([(chance <= small).mean(axis=1) for small in (0.01, 0.02, 0.05)])
    expected, spread = shares.mean(axis=1, keepdims=True), shares.std(axis=1, keepdims=True)
    over = (shares - expected) / spread
    limit = split_by_trial([items, np.full(100, -np.inf), over.max(axis=0)])
    cutoffs = module._conclude(
        SimpleNamespace(
            used=np.array([True, False, True, True]), scores=SimpleNamespace(items=("a", "b"))
        ),
        SimpleNamespace(thresholds=np.zeros((2, 1)), pairs=(np.array([0]), np.array([1]))),
        observed,
        replicates.astype(np.float32),
    )
    assert cutoffs.limit == pytest.approx(limit[0], rel=1e-5)
    centre = np.exp(mean[:4])
    low = np.minimum(np.exp(mean - limit[0] * sd)[:4], centre - 0.1)
    high = np.maximum(np.exp(mean + limit[0] * sd)[:4], centre + 0.1)
    assert cutoffs.infit == pytest.approx(np.array([low[:2], high[:2]]).T, rel=1e-5)
    assert cutoffs.outfit == pytest.approx(np.array([low[2:4], high[2:4]]).T, rel=1e-5)
    assert cutoffs.q3[0, 1] == cutoffs.q3[1, 0] == pytest.approx(mean[4] + 0.1, rel=1e-5)
    assert np.isnan(cutoffs.q3.diagonal()).all()
    worst = over[:, -1].argmax()
    persons = cutoffs.persons
    assert persons.chance == (0.01, 0.02, 0.05)[worst]
    assert persons.share == pytest.approx(shares[worst, -1])
    assert persons.expected == pytest.approx(expected[worst, 0])
    assert persons.limit == pytest.approx((expected + limit[2] * spread)[worst, 0])
    np.testing.assert_allclose(cutoffs.person_p[[0, 2, 3]], chance[-1], rtol=1e-5)
    assert 0 < sum(cutoffs.split.values()) <= 0.08


def test_pairs_count_from_a_tenth_above_the_mean_on():
    """Four items whose residuals correlate by no more than .05 above the mean, but for one pair."""
    rng = np.random.default_rng(16)
    replicates = rng.uniform(-0.02, 0.02, (99, 4 * 2 + 6 + 3))
    replicates[:20, 8] += np.linspace(0.1, 0.4, 20)
    cutoffs = module._conclude(
        SimpleNamespace(
            used=np.ones(3, dtype=bool), scores=SimpleNamespace(items=("a", "b", "c", "d"))
        ),
        SimpleNamespace(thresholds=np.zeros((4, 1)), pairs=np.triu_indices(4, 1)),
        np.zeros(17),
        replicates.astype(np.float32),
    )
    every = np.vstack([replicates, np.zeros(17)])[:, 8:14]
    others = np.fmax(every.mean(axis=1), every.mean())
    assert ((every[:, 1:] - others[:, None]) < 0.1).all()
    told = (every[:, 0] > cutoffs.q3[0, 1]) & (every[:, 0] - others > 0.1)
    assert 0.02 <= told.mean() <= 0.05  # all of the level is left to it, and to persons
    assert cutoffs.split["items"] == 0
    centre = np.exp(np.vstack([replicates, np.zeros(17)])[:, :4].mean(axis=0))
    band = np.stack([centre - 0.1, centre + 0.1], axis=1)
    assert cutoffs.infit == pytest.approx(band, rel=1e-5)
    assert cutoffs.q3[2, 3] == pytest.approx(every.mean() + 0.1, abs=0.02)
