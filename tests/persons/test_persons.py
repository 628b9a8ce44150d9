"""Abilities against values found another way, and scoring against a calibration."""

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import discreet
from discreet.analysis import tabulate_scores
from discreet.api.persons import score
from discreet.errors import BadResponses, BadUsage
from discreet.persons.measures import NormalPrior, abilities
from refusals import refused

DATA = Path(__file__).parents[1] / "data"
SIMULATED = DATA / "simulated_300x12.csv"


def log_posterior(theta: float, right: int, b: np.ndarray) -> float:
    """Weighted likelihood is the likelihood times the root of the information (Warm 1989)."""
    p = 1 / (1 + np.exp(-(theta - b)))
    likelihood = right * theta - np.log1p(np.exp(theta - b)).sum()
    return float(likelihood + 0.5 * np.log((p * (1 - p)).sum()))


def test_equal_items_have_a_closed_form():
    # With k equal items Warm's equation is right - k P + (1 - 2 P) / 2 = 0.
    answers = np.tril(np.ones((6, 5)), k=-1)
    right = answers.sum(axis=1)
    expected = 0.7 + np.log((right + 0.5) / (5.5 - right))
    assert abilities(answers, np.full(5, 0.7)).ability == pytest.approx(expected, abs=1e-9)


def test_abilities_maximise_the_weighted_likelihood():
    rng = np.random.default_rng(3)
    b = rng.normal(size=12)
    answers = np.where(rng.random((40, 12)) < 0.4, np.nan, rng.integers(0, 2, (40, 12)))
    found = abilities(answers, b).ability
    for row, ability in zip(answers, found, strict=True):
        seen = ~np.isnan(row)
        best = minimize_scalar(
            lambda t, r, d: -log_posterior(t, r, d),
            args=(row[seen].sum(), b[seen]),
            bounds=(-12, 12),
            options={"xatol": 1e-9},
            method="bounded",
        ).x
        assert ability == pytest.approx(best, abs=1e-5)


def test_standard_error_is_the_root_of_the_inverse_information():
    result = abilities([[1, 0, 1, 0]], [0.0, 0.0, 0.0, 0.0])
    assert result.ability[0] == pytest.approx(0, abs=1e-9)
    assert result.se[0] == pytest.approx(1.0)


def test_minus_one_and_nan_both_mean_missing():
    b = [0.3, -0.2, 1.0]
    marked = abilities(np.array([[1, -1, 0]], dtype=np.int8), b)
    blank = abilities([[1, np.nan, 0]], b)
    fewer = abilities([[1, 0]], [0.3, 1.0])
    assert marked.ability[0] == blank.ability[0] == pytest.approx(fewer.ability[0])


def test_items_without_a_difficulty_do_not_count():
    assert abilities([[1, 1, 0]], [0.3, np.nan, 1.0]).ability[0] == pytest.approx(
        abilities([[1, 0]], [0.3, 1.0]).ability[0]
    )


def test_nobody_without_answers_gets_an_ability():
    result = abilities([[np.nan, np.nan], [1, 0]], [0.0, 0.0])
    assert np.isnan(result.ability).tolist() == [True, False]
    assert np.isnan(abilities([[1, 0]], [np.nan, np.nan]).se).all()


def test_no_persons_give_no_abilities():
    assert abilities(np.zeros((0, 3)), [0.0, 1.0, 2.0]).ability.shape == (0,)


def test_a_two_is_refused_with_its_place():
    with refused(BadResponses, "answer_person_item_abilities", person="1", item="0", item_2="2"):
        abilities([[1, 0], [2, 0]], [0.0, 0.0])


def test_shapes_that_do_not_match_are_refused():
    with refused(BadUsage, "answers_must_table_person"):
        abilities([[1, 0]], [0.0, 0.0, 0.0])


@given(b=st.lists(st.floats(-30, 30), min_size=1, max_size=15), data=st.data())
def test_abilities_are_finite_and_rise_with_the_score(b, data):
    order = data.draw(st.permutations(range(len(b))))
    answers = np.zeros((len(b) + 1, len(b)))
    for row in range(len(b)):
        answers[row + 1 :, order[row]] = 1
    found = abilities(answers, b).ability
    assert np.isfinite(found).all()
    assert (np.diff(found) > 0).all()


# --- scoring against a calibration ----------------------------------------------------------------


def best_on_grid(b, right):
    """No derivatives: the highest point of the weighted likelihood on a grid."""
    theta = np.linspace(-8, 8, 32_001)[:, None]
    p = 1 / (1 + np.exp(b - theta))
    value = (right * theta).sum(axis=1) + np.log(1 - p).sum(axis=1)
    return theta[np.argmax(value + 0.5 * np.log((p * (1 - p)).sum(axis=1))), 0]


def test_all_scores_of_a_twenty_item_test_equal_an_independent_table():
    b = np.random.default_rng(20).normal(size=20)
    found = tabulate_scores({str(i): value for i, value in enumerate(b)})
    assert found.score.tolist() == list(range(21))
    expected = [best_on_grid(b, right) for right in range(21)]
    assert found.ability == pytest.approx(expected, abs=1e-3)


def test_maximum_likelihood_and_its_errors_equal_erm():
    for name, answers in (
        ("lsat6", discreet.datasets.lsat()),
        ("simulated_300x12", discreet.read_responses(SIMULATED, group="group")),
    ):
        calibration = discreet.fit(answers, method="conditional")
        table = tabulate_scores(calibration, method="ml")
        with (DATA / f"erm_{name}_persons.csv").open() as file:
            for row in csv.DictReader(file):
                score = int(row["score"])
                assert table.ability[score] == pytest.approx(float(row["theta"]), abs=1e-4)
                assert table.se[score] == pytest.approx(float(row["se"]), abs=2e-4)
        assert np.isnan(table.ability[[0, -1]]).all()
        assert table.status[0] == "all_wrong"
        assert table.status[-1] == "all_right"


def test_scores_match_items_by_name_and_report_what_they_ignore():
    answers = discreet.Responses.from_array(
        np.array([[1, 0, 1], [1, 1, 0], [0, 0, 1], [np.nan, np.nan, 1]]), items=["b", "x", "a"]
    )
    scores = score(answers, {"a": 0.5, "b": -0.5, "absent": 3.0})
    expected = abilities([[1, 1], [1, 0], [0, 1], [np.nan, 1]], [-0.5, 0.5])
    assert scores.ability == pytest.approx(expected.ability)
    assert scores.se == pytest.approx(expected.se)
    assert scores.status.tolist() == ["all_right", "measured", "measured", "all_right"]
    assert scores.answered.tolist() == [2, 2, 2, 1]
    assert scores.extreme.tolist() == [True, False, False, True]
    assert len(scores.warnings) == 1
    assert "x" in scores.warnings[0]
    assert set(scores.to_dict()) == {"person", "ability", "se", "score", "answered", "status"}


def test_a_person_without_usable_answers_has_a_status_and_no_number():
    answers = np.array([[1.0, 0.0], [np.nan, np.nan]])
    for method in ("warm", "ml", "posterior"):
        scores = score(answers, {"0": 0.0, "1": 0.0}, method=method)
        assert np.isnan(scores.ability).tolist() == [False, True]
        assert scores.status[1] == "no_answers"


def test_maximum_likelihood_has_no_number_for_extreme_scores_and_says_so():
    scores = score(np.array([[1, 1], [0, 0], [1, 0]]), {"0": 0.0, "1": 1.0}, method="ml")
    assert np.isnan(scores.ability).tolist() == [True, True, False]
    assert scores.ability[2] == pytest.approx(0.5)
    assert scores.status.tolist() == ["all_right", "all_wrong", "measured"]


def test_posterior_means_are_the_integral():
    prior = NormalPrior(0.4, 1.3)
    b = np.array([-1.0, 0.2, 0.9])
    found = tabulate_scores(dict(zip("abc", b, strict=True)), method="posterior", prior=prior)
    theta = np.linspace(-12, 12, 20_001)
    for right in range(4):
        log = right * theta - np.log1p(np.exp(theta[:, None] - b)).sum(axis=1)
        post = np.exp(log - 0.5 * ((theta - 0.4) / 1.3) ** 2)
        post /= post.sum()
        mean = post @ theta
        assert found.ability[right] == pytest.approx(mean, abs=1e-6)
        assert found.se[right] == pytest.approx(np.sqrt(post @ (theta - mean) ** 2), abs=1e-6)


def test_the_prior_is_learnt_from_the_persons():
    rng = np.random.default_rng(4)
    ability = rng.normal(0.7, 1.4, 4000)
    sim = discreet.simulate(4000, 30, ability=ability, rng=rng)
    truth = dict(zip(sim.responses.items, sim.difficulty, strict=True))
    scores = score(sim.responses, truth, method="posterior")
    assert scores.prior.mean == pytest.approx(0.7, abs=0.1)
    assert scores.prior.sd == pytest.approx(1.4, abs=0.1)
    warm = score(sim.responses, truth)
    assert np.mean((scores.ability - ability) ** 2) < np.mean((warm.ability - ability) ** 2)


def test_warm_estimates_are_nearly_unbiased_and_their_errors_right():
    rng = np.random.default_rng(5)
    sim = discreet.simulate(4000, 40, ability=np.full(4000, 1.0), rng=rng)
    scores = score(sim.responses, dict(zip(sim.responses.items, sim.difficulty, strict=True)))
    assert scores.ability.mean() == pytest.approx(1.0, abs=0.03)
    assert scores.ability.std() == pytest.approx(scores.se.mean(), rel=0.06)


def test_sparse_answers_are_scored_like_dense_ones():
    sim = discreet.simulate(300, 200, 0.04, rng=np.random.default_rng(6))
    truth = dict(zip(sim.responses.items, sim.difficulty, strict=True))
    scores = score(sim.responses, truth)
    expected = abilities(sim.responses.to_array(), sim.difficulty)
    assert scores.ability == pytest.approx(expected.ability, nan_ok=True)


def test_an_object_with_an_estimate_is_a_calibration():
    class Bundle:
        estimate = discreet.fit(discreet.datasets.lsat())

    one = score(discreet.datasets.lsat(), Bundle())
    two = score(discreet.datasets.lsat(), Bundle.estimate)
    assert one.ability.tolist() == two.ability.tolist()


@pytest.mark.parametrize(
    ("calibration", "options", "code", "facts"),
    [
        ({"other": 0.0}, {}, "none_items_answers_difficulty", {}),
        ({"0": float("nan")}, {}, "none_items_calibration_difficulty", {"n_names": "1"}),
        (42, {}, "calibration_items_difficulty_each", {}),
        (
            {"0": 0.0},
            {"method": "eap"},
            "no_called_one_check_choice_name",
            {"ask": "did you mean 'posterior'? Choose"},
        ),
        ({"0": 0.0}, {"prior": NormalPrior(0, 1)}, "prior_belongs_method_posterior_found", {}),
    ],
)
def test_wrong_use_is_explained(calibration, options, code, facts):
    with refused(BadUsage, code, **facts):
        score(np.array([[1, 0]]), calibration, **options)


def test_a_prior_without_spread_is_refused():
    with refused(BadUsage, "prior_needs_finite_mean"):
        NormalPrior(0.0, 0.0)


def test_posterior_means_do_not_depend_on_how_many_are_worked_on_together(monkeypatch):
    sim = discreet.simulate(200, 12, 0.5, rng=np.random.default_rng(7))
    truth = dict(zip(sim.responses.items, sim.difficulty, strict=True))
    one = score(sim.responses, truth, method="posterior", prior=NormalPrior(0, 1))
    monkeypatch.setattr("discreet.persons.measures.CHUNK_PATTERNS", 7)
    two = score(sim.responses, truth, method="posterior", prior=NormalPrior(0, 1))
    assert one.ability == pytest.approx(two.ability, nan_ok=True, abs=1e-12)
