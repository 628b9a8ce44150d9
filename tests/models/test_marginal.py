"""Marginal maximum likelihood against the reference and on designs where others are wrong."""

import csv
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet.errors import BadUsage, DisconnectedItems
from discreet.models.conditional import group_patterns
from discreet.models.marginal.maximise import maximise_marginal
from discreet.models.routing import look_for_routing
from refusals import refused

DATA = Path(__file__).parents[1] / "data"


def slope(truth, estimate):
    return np.polyfit(truth, estimate, 1)[0]


def fit_all(answers, ability="normal"):
    responses = discreet.Responses.from_array(answers)
    _, right = responses.store.item_totals()
    patterns = group_patterns(responses.store, np.arange(responses.n_items))
    start = np.zeros(responses.n_items)
    return maximise_marginal(patterns, right, start=start, ability=ability)


def log_likelihood(answers, b, mean, sd):
    """From the definition, with a far finer and wider grid than the program's."""
    theta = mean + sd * np.linspace(-10, 10, 2001)
    p = 1 / (1 + np.exp(b - theta[:, None]))
    bell = np.exp(-0.5 * ((theta - mean) / sd) ** 2) / np.sqrt(2 * np.pi) * 0.01
    total = 0.0
    for row in answers:
        total += np.log(bell @ np.where(row == 1, p, np.where(row == 0, 1 - p, 1)).prod(axis=1))
    return total


def test_lsat_equals_the_reference():
    with (DATA / "reference_lsat6_mml.csv").open() as file:
        rows = list(csv.DictReader(file))
    estimate = discreet.fit(discreet.datasets.lsat(), method="marginal")
    expected = [float(row["mml_rasch_delta_centered"]) for row in rows]
    assert estimate.difficulty == pytest.approx(expected, abs=1e-6)
    found = fit_all(discreet.datasets.lsat().to_array())
    assert found.sd == pytest.approx(float(rows[0]["latent_sd"]), abs=1e-6)
    assert found.log_likelihood == pytest.approx(float(rows[0]["loglik_1pl"]), abs=1e-4)


def test_the_likelihood_is_the_integral_and_cannot_be_increased():
    rng = np.random.default_rng(1)
    answers = (rng.random((60, 5)) < 0.5).astype(np.int8)
    answers[:20, 0] = answers[20:40, 3] = -1
    answers[:, 1] |= (answers[:, 2] == 1).astype(np.int8)
    found = fit_all(answers)
    top = log_likelihood(answers, found.difficulty, found.mean, found.sd)
    assert found.log_likelihood == pytest.approx(top, abs=1e-6)
    for i in range(5):
        for step in (-0.02, 0.02):
            b = found.difficulty + step * np.eye(5)[i]
            assert log_likelihood(answers, b, found.mean, found.sd) < top
    assert log_likelihood(answers, found.difficulty, found.mean, found.sd + 0.02) < top
    assert log_likelihood(answers, found.difficulty, found.mean + 0.02, found.sd) < top


def test_standard_errors_are_those_of_the_second_derivatives():
    sim = discreet.simulate(300, 4, rng=np.random.default_rng(2))
    answers = sim.responses.to_array()
    found = fit_all(answers)
    rows, count = np.unique(answers, axis=0, return_counts=True)

    def value(parameters):
        b, sd = parameters[:4], parameters[4]
        return count @ np.array([log_likelihood(row[None], b, 0.0, sd) for row in rows])

    at = np.append(found.difficulty - found.mean, found.sd)
    step, k = 1e-3, 5
    hessian = np.zeros((k, k))
    for i in range(k):
        for j in range(k):
            e, f = np.eye(k)[i] * step, np.eye(k)[j] * step
            hessian[i, j] = (
                value(at + e + f) - value(at + e - f) - value(at - e + f) + value(at - e - f)
            ) / (4 * step**2)
    centre = np.eye(4) - 0.25
    expected = centre @ np.linalg.inv(-hessian)[:4, :4] @ centre
    assert found.covariance == pytest.approx(expected, rel=1e-3, abs=1e-6)


def test_empirical_abilities_give_the_conditional_estimate_on_complete_answers():
    # De Leeuw and Verhelst (1986): the two coincide when the scores allow it.
    sim = discreet.simulate(2000, 12, rng=np.random.default_rng(3))
    one = discreet.fit(sim.responses, method="conditional")
    two = discreet.fit(sim.responses, method="marginal", ability="empirical")
    assert (np.abs(two.difficulty - one.difficulty) < 0.1 * one.se).all()
    assert two.se == pytest.approx(one.se, rel=0.03)


def test_skewed_abilities_need_the_empirical_distribution():
    rng = np.random.default_rng(4)
    sim = discreet.simulate(20_000, 10, ability=rng.exponential(2.0, 20_000) - 1.0, rng=rng)
    normal = discreet.fit(sim.responses, method="marginal")
    empirical = discreet.fit(sim.responses, method="marginal", ability="empirical")

    def error(estimate):
        return np.sqrt(np.mean((estimate.difficulty - sim.difficulty) ** 2))

    assert error(empirical) < 0.03
    assert error(empirical) < error(normal)


def test_only_marginal_is_right_on_an_adaptive_test():
    sim = discreet.simulate(2000, 60, 1 / 3, design="adaptive", rng=np.random.default_rng(5))
    marginal = discreet.fit(sim.responses, method="marginal")
    assert 0.96 < slope(sim.difficulty, marginal.difficulty) < 1.04
    assert not any("look routed" in text for text in marginal.warnings)
    for method in ("refined", "conditional"):
        other = discreet.fit(sim.responses, method=method)
        assert slope(sim.difficulty, other.difficulty) > 1.3
        assert any("look routed" in text for text in other.warnings)


@pytest.mark.slow
def test_the_large_adaptive_test_has_slope_one():
    sim = discreet.simulate(5000, 200, 0.1, design="adaptive", rng=np.random.default_rng(6))
    marginal = discreet.fit(sim.responses, method="marginal")
    assert abs(slope(sim.difficulty, marginal.difficulty) - 1) < 0.03
    for method in ("refined", "conditional"):
        other = discreet.fit(sim.responses, method=method)
        assert slope(sim.difficulty, other.difficulty) > 1.2
        assert any("look routed" in text for text in other.warnings)


def test_marginal_is_wrong_where_items_are_targeted_and_pairs_are_right():
    sim = discreet.simulate(4000, 60, 1 / 3, design="targeted", rng=np.random.default_rng(7))
    marginal = discreet.fit(sim.responses, method="marginal")
    refined = discreet.fit(sim.responses)
    assert slope(sim.difficulty, marginal.difficulty) < 0.85
    assert 0.95 < slope(sim.difficulty, refined.difficulty) < 1.05
    assert not any("look routed" in text for text in refined.warnings)


def routing(design, seed, persons=1000, items=60):
    sim = discreet.simulate(persons, items, 1 / 3, design=design, rng=np.random.default_rng(seed))
    return look_for_routing(sim.responses, np.arange(items), sim.difficulty)


@pytest.mark.parametrize("design", ["uniform", "booklets", "targeted"])
def test_designs_that_answers_do_not_choose_raise_no_alarm(design):
    found = [routing(design, seed) for seed in range(5)]
    assert not any(one.looks_routed for one in found)
    assert min(one.dispersion for one in found) > 1


@pytest.mark.parametrize("design", ["adaptive", "two-stage"])
def test_routed_designs_raise_an_alarm(design):
    assert sum(routing(design, seed, persons=2000).looks_routed for seed in range(5)) >= 4


def test_common_items_alone_raise_no_alarm():
    rng = np.random.default_rng(8)
    b, theta = rng.normal(size=40), rng.normal(size=(2000, 1))
    answers = (rng.random((2000, 40)) < 1 / (1 + np.exp(b - theta))).astype(np.int8)
    far = np.abs(b - theta) + rng.exponential(size=(2000, 40))
    far[:, :8] = 0
    answers[far > np.sort(far, axis=1)[:, 20:21]] = -1
    found = look_for_routing(discreet.Responses.from_array(answers), np.arange(40), b)
    assert not np.isnan(found.core_p_value)
    assert not found.looks_routed


def test_unlinked_forms_are_compared_by_assumption_and_said_so():
    rng = np.random.default_rng(9)
    sim = discreet.simulate(400, 8, rng=rng)
    answers = sim.responses.to_array().astype(float)
    answers[:200, :4] = np.nan
    answers[200:, 4:] = np.nan
    found = discreet.fit(answers, method="marginal")
    assert set(found.status) == {"estimated"}
    assert any("only by assuming" in text for text in found.warnings)
    assert slope(sim.difficulty, found.difficulty) == pytest.approx(1, abs=0.4)


def test_items_without_a_number_say_why():
    sim = discreet.simulate(200, 6, rng=np.random.default_rng(10))
    extra = np.column_stack([np.ones(200), np.zeros(200), np.full(200, -1)])
    found = discreet.fit(np.hstack([sim.responses.to_array(), extra]), method="marginal")
    assert found.status[6:] == ("always_right", "always_wrong", "no_answers")
    assert np.isnan(found.difficulty[6:]).all()
    assert np.isfinite(found.se[:6]).all()


def test_answers_without_any_differences_between_persons_are_reported():
    rng = np.random.default_rng(11)
    answers = np.stack([rng.permutation([1, 1, 0, 0]) for _ in range(300)])
    found = discreet.fit(answers, method="marginal")
    assert np.isfinite(found.difficulty).all()
    assert np.isfinite(found.se).all()
    assert any("do not tell persons apart" in text for text in found.warnings)


def test_one_answer_each_is_not_enough():
    answers = np.full((40, 2), -1)
    answers[:20, 0] = np.arange(20) % 2
    answers[20:, 1] = np.arange(20) % 2
    with refused(DisconnectedItems, "items_right_wrong_answers_one"):
        discreet.fit(answers, method="marginal")


def test_an_unknown_distribution_is_refused():
    with refused(BadUsage, "ability_must_one_found", distributions="normal, empirical"):
        discreet.fit(discreet.datasets.lsat(), method="marginal", ability="uniform")
    with refused(BadUsage, "ability_option_method_marginal"):
        discreet.fit(discreet.datasets.lsat(), ability="empirical")


def test_unlinked_items_are_named_and_answers_that_link_nothing_are_refused():
    rng = np.random.default_rng(9)
    answers = np.full((200, 5), np.nan)
    answers[:100, :3] = rng.integers(0, 2, (100, 3))
    answers[100:, 3:] = rng.integers(0, 2, (100, 2))
    found = discreet.fit(answers, method="marginal")
    assert "do not link 2 of 5 items to the other 3: 3, 4; marginal" in found.warnings[0]
    alike = np.repeat([[1, 1], [0, 0]], 20, axis=0)
    with refused(DisconnectedItems, "none_items_linked_another", m="2"):
        discreet.fit(alike, method="marginal")
