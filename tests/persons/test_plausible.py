"""Plausible values and latent regressions against the truth that answers were drawn from."""

import numpy as np
import pytest
from scipy.optimize import minimize

import discreet
from commandline import discreet as run
from discreet.errors import BadUsage
from discreet.persons import scoring
from discreet.persons.measures import NormalPrior
from discreet.persons.plausible import code_columns
from refusals import refused

ITEMS = 8
DIFFICULTY = np.linspace(-1.5, 1.5, ITEMS)
KNOWN = {str(item): b for item, b in enumerate(DIFFICULTY)}
MEANS, SD = np.array([-0.7, 0.0, 0.9]), 0.8


def draw(scoring, seed, missing=0.0):
    """Persons of three grades, and their answers to a short test."""
    rng = np.random.default_rng(seed)
    grade = np.arange(scoring) % 3
    ability = MEANS[grade] + SD * rng.normal(size=scoring)
    away = ability[:, None] - DIFFICULTY
    answers = (rng.random(away.shape) < 1 / (1 + np.exp(-away))).astype(float)
    answers[rng.random(away.shape) < missing] = np.nan
    return answers, grade, ability


def marginal(parameters, answers, design):
    """Return minus the log-likelihood by brute force on a wide grid."""
    beta, sd = parameters[:-1], np.exp(parameters[-1])
    nodes = np.linspace(-9, 9, 721)
    away = nodes[:, None] - DIFFICULTY
    likelihood = np.nan_to_num(answers) @ away.T - ~np.isnan(answers) @ np.logaddexp(0, away).T
    prior = -((nodes - (design @ beta)[:, None]) ** 2) / (2 * sd**2) - np.log(sd)
    return -np.logaddexp.reduce(likelihood + prior, axis=1).sum()


def bend(function, place, step=1e-3):
    """Return second derivatives by differences."""
    moves = step * np.eye(len(place))

    def both(first, second):
        return sum(
            i * j * function(place + i * first + j * second) for i in (1, -1) for j in (1, -1)
        )

    return np.array([[both(a, b) for b in moves] for a in moves]) / (4 * step**2)


def test_the_regression_is_at_the_maximum_of_the_marginal_likelihood():
    answers, grade, _ = draw(240, 1, missing=0.2)
    found = discreet.score(answers, KNOWN, regress={"grade": grade}).regression
    _, design = code_columns({"grade": grade}, 240)
    top = np.append(found.coefficient, np.log(found.sd))
    start = np.zeros(len(top))
    best = minimize(marginal, start, args=(answers, design), method="BFGS")
    np.testing.assert_allclose(top, best.x, atol=2e-4)
    information = bend(lambda one: marginal(one, answers, design), top)
    error = np.sqrt(np.diag(np.linalg.inv(information)))
    np.testing.assert_allclose([*found.se, found.sd_se / found.sd], error, rtol=1e-3)


def test_without_columns_posterior_means_are_those_of_the_normal_prior():
    answers, _, _ = draw(300, 2, missing=0.3)
    plain = discreet.score(answers, KNOWN, method="posterior")
    drawn = discreet.score(answers, KNOWN, plausible=2)
    assert drawn.prior.mean == pytest.approx(plain.prior.mean, abs=1e-4)
    assert drawn.prior.sd == pytest.approx(plain.prior.sd, abs=1e-4)
    np.testing.assert_allclose(drawn.ability, plain.ability, atol=1e-4)
    np.testing.assert_allclose(drawn.se, plain.se, atol=1e-4)


def test_plausible_values_recover_means_and_variances_that_posterior_means_shrink():
    """Tolerance: four standard errors of a group's mean and variance, from 2000 noisy persons.

    A plausible value varies by SD around the group's mean; the test's errors leave about half of
    that as information, so that the variance of a group's mean is about doubled.
    """
    scoring = 6000
    answers, grade, _ = draw(scoring, 3)
    scores = discreet.score(answers, KNOWN, plausible=20, regress={"grade": grade})
    size = scoring / 3
    for group, mean in enumerate(MEANS):
        mine = scores.plausible[grade == group]
        assert mine.mean() == pytest.approx(mean, abs=4 * SD * np.sqrt(2 / size))
        spread = mine.var(axis=0).mean()
        assert spread == pytest.approx(SD**2, abs=4 * SD**2 * np.sqrt(2 * 4 / size))
        assert scores.ability[grade == group].var() < 0.75 * SD**2
    assert scores.regression.explained == pytest.approx(
        MEANS.var() / (MEANS.var() + SD**2), abs=0.04
    )


def test_draws_follow_each_persons_posterior():
    answers, grade, _ = draw(90, 4)
    scores = discreet.score(answers, KNOWN, plausible=800, regress={"grade": grade})
    error = np.sqrt((scores.plausible.var(axis=1)) / 800)
    # Coefficients vary between draws with a standard error of up to 0.25 for 30 persons a grade.
    assert (np.abs(scores.plausible.mean(axis=1) - scores.ability) < 5 * error + 0.05).all()
    ratio = scores.plausible.std(axis=1) / scores.se
    assert 1.0 < np.median(ratio) < 1.25


def test_draws_differ_by_how_little_the_regression_is_known():
    """The mean of few persons varies between draws by more than their own posteriors explain."""
    answers, grade, _ = draw(60, 5)
    scores = discreet.score(answers, KNOWN, plausible=400, regress={"grade": grade})
    means = scores.plausible[grade == 0].mean(axis=0)
    alone = np.sqrt((scores.se[grade == 0] ** 2).sum()) / 20
    assert means.std() > 1.3 * alone


def test_the_same_seed_gives_the_same_values_and_another_seed_others():
    answers, _, _ = draw(60, 6)

    def values(seed):
        rng = np.random.default_rng(seed)
        return discreet.score(answers, KNOWN, plausible=2, rng=rng).plausible

    np.testing.assert_array_equal(values(1), values(1))
    assert (values(1) != values(2)).all()


def test_persons_without_answers_have_no_plausible_values():
    answers, grade, _ = draw(60, 7)
    answers[3] = np.nan
    scores = discreet.score(answers, KNOWN, plausible=3, regress={"grade": grade})
    assert np.isnan(scores.plausible[3]).all()
    assert np.isfinite(np.delete(scores.plausible, 3, axis=0)).all()
    assert list(scores.to_dict())[-3:] == ["pv1", "pv2", "pv3"]


def test_group_columns_of_the_answers_are_taken_by_name():
    answers, grade, _ = draw(60, 8)
    labels = [f"grade {one}" for one in grade]
    plain = discreet.Responses.from_array(answers)
    responses = discreet.Responses(plain.items, plain.persons, plain.store, {"grade": labels})
    by_name = discreet.score(responses, KNOWN, regress="grade").regression
    assert by_name.terms == ("intercept", "grade = grade 1", "grade = grade 2")
    given = discreet.score(answers, KNOWN, regress={"grade": labels}).regression
    np.testing.assert_array_equal(by_name.coefficient, given.coefficient)


def test_groups_come_in_the_order_of_numbers_and_unknown_ones_are_a_group():
    terms, design = code_columns({"age": ["10", "9", "", "11"]}, 4)
    assert terms == ("intercept", "age = 10", "age = 11", "age unknown")
    assert design[2].tolist() == [1, 0, 0, 1]


def test_many_different_numbers_enter_as_numbers():
    values = [*range(40), None]
    terms, design = code_columns({"income": values}, 41)
    assert terms == ("intercept", "income", "income unknown")
    assert design[40].tolist() == [1, np.mean(range(40)), 1]


@pytest.mark.parametrize(
    ("columns", "code", "facts"),
    [
        ({"a": [1, 2]}, "column_needs_one_value", {"n_persons": "4", "n_labels": "2"}),
        ({"a": ["x"] * 4}, "column_one_value_everybody", {"levels": "x"}),
        ({"a": [1, 1, 2, 2], "b": list("xxyy")}, "columns_say_same_thing", {"columns": "a, b"}),
    ],
)
def test_columns_that_say_nothing_are_refused(columns, code, facts):
    with refused(BadUsage, code, **facts):
        code_columns(columns, 4)


def test_many_different_words_are_refused():
    with refused(BadUsage, "column_different_values_not", n_labelled="40"):
        code_columns({"school": [f"school {one}" for one in range(40)]}, 40)


@pytest.mark.parametrize(
    ("options", "code", "facts"),
    [
        (
            {"plausible": -1},
            "plausible_number_plausible_values",
            {"most_plausible": "1,000", "plausible": "-1"},
        ),
        (
            {"plausible": 1_000_000},
            "plausible_number_plausible_values",
            {"most_plausible": "1,000", "plausible": "1,000,000"},
        ),
        (
            {"plausible": 5, "method": "warm"},
            "plausible_values_regressions_belong",
            {"method": "warm"},
        ),
        ({"plausible": 5, "prior": NormalPrior(0, 1)}, "plausible_values_regressions_estimate", {}),
        (
            {"regress": "grade"},
            "answers_no_group_column_regress",
            {"name": "grade", "groups": "none"},
        ),
    ],
)
def test_contradictions_are_refused(options, code, facts):
    with refused(BadUsage, code, **facts):
        discreet.score(draw(30, 9)[0], KNOWN, **options)


def test_more_terms_than_persons_are_refused():
    answers = draw(6, 1)[0]
    with refused(BadUsage, "regression_terms_needs_more", n_terms="6"):
        discreet.score(answers, KNOWN, regress={"name": list("abcdef")})


def test_more_plausible_values_than_fit_into_memory_are_refused(monkeypatch):
    answers, _, _ = draw(30, 3)
    monkeypatch.setattr(scoring, "MOST_DRAWN", 299)
    assert discreet.score(answers, KNOWN, plausible=9).plausible.shape == (30, 9)
    with refused(
        BadUsage, "plausible_values_each_persons", plausible="10", persons="30", persons_2="300"
    ):
        discreet.score(answers, KNOWN, plausible=10)


def test_the_command_line_has_the_same_limit_and_says_it(tmp_path):
    rows = [KNOWN, *draw(60, 5)[0].astype(int).tolist()]
    (tmp_path / "a.csv").write_text("".join(f"{','.join(map(str, row))}\n" for row in rows))
    assert run("fit", tmp_path / "a.csv", "--out", tmp_path / "fitted").code == 0
    asked = ["score", tmp_path / "a.csv", "--with", tmp_path / "fitted", "--plausible"]
    assert run(*asked, scoring.MOST_PLAUSIBLE).code == 0
    ended = run(*asked, scoring.MOST_PLAUSIBLE + 1)
    assert (ended.code, ended.out) == (2, "")
    assert "less than or equal to 1000" in ended.err or "0<=x<=1000" in ended.err
    assert "at most 1,000" in " ".join(run("score", "--help").out.split())
