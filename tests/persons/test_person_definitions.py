"""Abilities, their errors and the regression of abilities, each against its definition."""

import numpy as np
import pytest
from scipy import optimize, stats

import discreet
from discreet.answers.responses import Responses
from discreet.models.conditional import group_patterns
from discreet.persons import large, measures, plausible, scoring
from discreet.persons.measures import HalvesTest, compare_halves
from discreet.persons.plausible import code_columns, fit_posterior
from stepped import chances

STEPS = [[-0.8], [-0.6, 0.9], [-1.2, 0.1, 1.0], [0.7], [0.2, 1.3]]
KNOWN = {f"q{item}": own for item, own in enumerate(STEPS)}


def draw(persons=40, missing=0.2, seed=51):
    rng = np.random.default_rng(seed)
    ability = rng.normal(0.3, 1.4, persons)
    codes = np.stack(
        [(rng.random((persons, 1)) > chances(ability, np.array(own)).cumsum(axis=1)).sum(axis=1)
         for own in STEPS], axis=1).astype(float)  # fmt: skip
    codes[rng.random(codes.shape) < missing] = np.nan
    return Responses.from_array(codes, list(KNOWN)), codes


def log_likelihood(theta, row):
    """Of one person's answers, and the sums of central moments of the scores."""
    total, moments = 0.0, np.zeros(3)
    for own, code in zip(STEPS, row, strict=True):
        if np.isnan(code):
            continue
        share, category = chances(np.array([theta]), np.array(own))[0], np.arange(len(own) + 1)
        total += np.log(share[int(code)])
        mean = share @ category
        moments += [(share @ (category - mean) ** power) for power in (2, 3, 4)]
    return total, moments


@pytest.mark.parametrize("method", ["warm", "ml"])
def test_abilities_maximise_the_likelihood_and_err_by_the_root_of_the_information(method):
    """Warm's weight is the root of the information; it is maximised numerically here."""
    answers, codes = draw()
    found = discreet.score(answers, KNOWN, method=method)

    def miss(theta, row):
        total, (information, *_) = log_likelihood(theta, row)
        return -(total + (np.log(information) / 2 if method == "warm" else 0.0))

    for person in (0, 5, 17, 31):
        if not np.isfinite(found.ability[person]):
            continue
        best = optimize.minimize_scalar(miss, (-1, 1), args=(codes[person],), tol=1e-10).x
        assert found.ability[person] == pytest.approx(best, abs=1e-5)
        information = log_likelihood(found.ability[person], codes[person])[1][0]
        assert found.se[person] == pytest.approx(information**-0.5)


def test_very_many_answers_are_solved_as_few_are(monkeypatch):
    """Right and wrong answers with gaps: the compiled loop, and persons grouped by patterns."""
    rng = np.random.default_rng(52)
    b = np.linspace(-2, 2.3, 9)
    rows = (rng.random((50, 9)) < 1 / (1 + np.exp(b - rng.normal(size=(50, 1))))).astype(float)
    rows[rng.random(rows.shape) < 0.3] = np.nan
    rows[0], rows[1], rows[2, :8] = 1, 0, np.nan
    answers = Responses.from_array(rows)
    known = {str(item): value for item, value in enumerate(b)}
    for method in ("warm", "ml"):
        grouped = discreet.score(answers, known, method=method)
        with monkeypatch.context() as patch:
            patch.setattr(large, "MANY_ANSWERS", 1)
            each = discreet.score(answers, known, method=method)
        for name in ("ability", "se", "score", "answered"):
            assert getattr(each, name) == pytest.approx(getattr(grouped, name), nan_ok=True)
        assert each.status.tolist() == grouped.status.tolist()


def test_the_slope_of_warms_equation_is_its_derivative():
    b = np.array([[[-0.6, 0.9], [0.2, np.nan], [-1.0, 1.4]]])
    score = np.array([3])
    for theta in (-1.2, 0.1, 0.8):
        for correction in (0.0, 1.0):
            ends = [measures._equation(np.array([theta + h]), score, b, correction)[0][0]
                    for h in (1e-5, -1e-5)]  # fmt: skip
            slope = measures._equation(np.array([theta]), score, b, correction)[2][0]
            assert slope == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6)


GRID = np.linspace(-14, 14, 5601)


def trace(codes):
    """Return the likelihood of every person's answers along a fine grid of abilities."""
    tables = [chances(GRID, np.array(own)).T for own in STEPS]
    rows = []
    for row in codes:
        given = [table[int(code)] for table, code in zip(tables, row, strict=True) if code == code]
        rows.append(np.prod([np.ones(len(GRID)), *given], axis=0))
    return np.array(rows)


@pytest.mark.parametrize("prior", [(0.4, 1.7), (-1.0, 0.5)])
def test_posterior_means_and_their_errors_are_integrals(prior):
    answers, codes = draw(12)
    found = discreet.score(answers, KNOWN, method="posterior", prior=measures.NormalPrior(*prior))
    posterior = trace(codes) * stats.norm.pdf(GRID, *prior)
    posterior /= posterior.sum(axis=1, keepdims=True)
    mean = posterior @ GRID
    some = ~np.isnan(codes).all(axis=1)
    assert found.ability[some] == pytest.approx(mean[some], abs=1e-4)
    spread = np.sqrt(posterior @ GRID**2 - mean**2)
    assert found.se[some] == pytest.approx(spread[some], abs=1e-4)


def test_the_prior_is_where_the_marginal_likelihood_of_the_persons_is_largest():
    answers, codes = draw(60)
    likelihood = trace(codes)

    def miss(parameters):
        density = stats.norm.pdf(GRID, parameters[0], np.exp(parameters[1]))
        return -np.log(likelihood @ density).sum()

    found = discreet.score(answers, KNOWN, method="posterior").prior
    best = optimize.minimize(miss, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-5}).x
    assert (found.mean, found.sd) == pytest.approx((best[0], np.exp(best[1])), abs=1e-3)


def test_the_share_that_columns_explain_is_of_the_variance_of_abilities():
    answers, _ = draw(60, missing=0.0)
    grade = np.arange(60) % 3
    found = discreet.score(answers, KNOWN, regress={"grade": grade}).regression
    _, design = code_columns({"grade": grade}, 60)
    between = np.var(design @ found.coefficient)
    assert found.explained == pytest.approx(between / (between + found.sd**2))


@pytest.mark.parametrize("persons", [29, 30])
def test_halves_are_compared_from_eight_items_and_thirty_persons_on(persons):
    rng = np.random.default_rng(53)
    code = rng.integers(0, 2, (persons, 8))
    b, ability = np.linspace(-1, 1, 8)[:, None], rng.normal(size=persons)
    found = compare_halves(code, b, ability, np.full(8, 0.1))
    assert (found is None) is (persons < 30)
    assert compare_halves(code[:, :7], b[:7], ability, np.full(7, 0.1)) is None


@pytest.mark.parametrize(
    ("p", "times", "is_found", "is_large"),
    [(0.01, 1.3, False, True), (0.0099, 1.2, True, True), (0.0099, 1.199, True, False)],
)
def test_halves_disagree_below_one_percent_and_much_from_a_fifth_on(p, times, is_found, is_large):
    found = HalvesTest(2.6, p, times)
    assert (found.is_found, found.is_large) == (is_found, is_large)
    warned = scoring._doubt_errors(found)
    assert len(warned) == is_found
    assert all((one.kind == "understated_errors") is is_large for one in warned)


def test_kinds_of_persons_are_worked_on_in_parts_with_the_same_result(monkeypatch):
    """A chunk of three kinds at a time; draws are the same, person by person."""
    answers, _ = draw(30)
    b = np.array([[*own, *[np.nan] * (3 - len(own))] for own in STEPS])
    terms, design = code_columns({"g": np.arange(30) % 2}, 30)
    whole, parts = [], []
    for size, kept in ((1 << 22, whole), (200, parts)):
        monkeypatch.setattr(plausible, "CHUNK_CELLS", size)
        patterns = group_patterns(answers.store, np.arange(5))
        kept.append(
            fit_posterior(patterns, b, terms, design, draws=2, rng=np.random.default_rng(0))
        )
    for name in ("mean", "sd"):
        assert getattr(whole[0], name) == pytest.approx(getattr(parts[0], name), nan_ok=True)
    assert whole[0].regression.coefficient == pytest.approx(parts[0].regression.coefficient)
