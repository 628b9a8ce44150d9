import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from discreet import datasets
from discreet.answers.pack import build_rows
from discreet.answers.responses import Responses
from discreet.api.calibrating import fit
from discreet.api.counting import count_pairs
from discreet.counts import PairCounts, matrix
from discreet.errors import BadUsage, DisconnectedItems
from discreet.models import refined, spectral
from discreet.models import standard_errors as scores
from discreet.models.standard_errors import random_signs as multipliers
from discreet.models.standard_errors import sandwich as sandwich
from refusals import refused
from sizes import is_chance

HERE = Path(__file__).parents[1]
METHODS = ["refined", "spectral"]


def simulate(seed, n=400, m=12, given=1.0, spread=1.0):
    rng = np.random.default_rng(seed)
    b = rng.normal(size=m) * spread
    X = (rng.random((n, m)) < 1 / (1 + np.exp(b - rng.normal(size=(n, 1))))).astype(np.int8)
    X[rng.random((n, m)) > given] = -1
    return X, b - b.mean()


def as_sparse(X):
    person, item = np.nonzero(X >= 0)
    store = build_rows(person, item, X[person, item] == 1, *X.shape)
    return Responses.from_store(store)


def reference(name):
    with (HERE / "data" / name).open() as file:
        return list(csv.DictReader(file))


# --- known answers -----------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "within"), [("refined", 0.015), ("spectral", 0.04)])
def test_lsat_agrees_with_conditional_maximum_likelihood(method, within):
    rows = reference("reference_lsat6.csv")
    estimate = fit(datasets.lsat(), method=method)
    known = np.array([float(row["cml_difficulty_centered"]) for row in rows])
    assert np.abs(estimate.difficulty - known).max() < within


def test_lsat_standard_errors_are_within_five_percent_of_conditional_ones():
    known = np.array([float(row["se"]) for row in reference("reference_lsat6.csv")])
    assert fit(datasets.lsat(), method="refined").se == pytest.approx(known, rel=0.05)


def test_the_page_on_analysis_has_the_differences_of_two_methods():
    page = " ".join((HERE.parent / "docs" / "rasch-analysis.md").read_text("utf-8").split())
    largest = []
    for load in (datasets.lsat, datasets.uci_student, datasets.three_grades):
        by_pairs, exact = (fit(load(), method=method) for method in ("refined", "conditional"))
        largest.append((np.abs(by_pairs.difficulty - exact.difficulty) / exact.se).max())
    assert f"{min(largest):.2f} to {max(largest):.2f} standard errors" in page


@pytest.mark.parametrize("method", METHODS)
def test_two_items_have_the_log_of_the_ratio_of_their_counts(method):
    X = np.array([[1, 0]] * 30 + [[0, 1]] * 10 + [[1, 1]] * 5)
    estimate = fit(X, method=method)
    assert np.diff(estimate.difficulty) == pytest.approx([np.log(3)], abs=1e-12)
    # The log of a ratio of two binomial counts has variance 1/30 + 1/10.
    assert 2 * estimate.se == pytest.approx(np.full(2, np.sqrt(1 / 30 + 1 / 10)), rel=0.05)


# --- what every calibration must satisfy ---------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("given", [1.0, 0.6])
def test_difficulties_have_mean_zero_and_follow_the_truth(method, given):
    X, b = simulate(1, n=3000, given=given)
    estimate = fit(X, method=method)
    assert estimate.difficulty.mean() == pytest.approx(0, abs=1e-12)
    assert np.abs((estimate.difficulty - b) / estimate.se).max() < 4.5


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_items_and_persons_does_not_matter(method):
    X, _ = simulate(2, given=0.7)
    rng = np.random.default_rng(0)
    people, items = rng.permutation(len(X)), rng.permutation(X.shape[1])
    one, two = fit(X, method=method), fit(X[np.ix_(people, items)], method=method)
    assert two.difficulty == pytest.approx(one.difficulty[items], abs=1e-9)
    assert two.se == pytest.approx(one.se[items], rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_turning_right_into_wrong_turns_the_sign(method):
    X, _ = simulate(3)
    flipped = np.where(X < 0, X, 1 - X)
    if method == "refined":
        assert fit(flipped).difficulty == pytest.approx(-fit(X).difficulty, abs=1e-9)
    else:
        assert np.corrcoef(fit(flipped, method=method).difficulty, fit(X).difficulty)[0, 1] < -0.99


@pytest.mark.parametrize("method", METHODS)
def test_sparse_rows_and_bit_planes_give_the_same_estimate(method):
    X, _ = simulate(4, given=0.4)
    planes, rows = fit(X, method=method), fit(as_sparse(X), method=method)
    assert rows.difficulty == pytest.approx(planes.difficulty, abs=1e-12)
    assert rows.covariance == pytest.approx(planes.covariance, rel=1e-9, abs=1e-12)


def test_sparse_counts_give_the_same_estimate_as_dense_ones(monkeypatch):
    X, _ = simulate(5, n=60, m=40, given=0.3)
    dense = fit(as_sparse(X))
    monkeypatch.setattr(matrix, "SPARSE_ITEMS", 10)
    monkeypatch.setattr(matrix, "SPARSE_FILL", 100.0)
    sparse = fit(as_sparse(X))
    assert sparse.status == dense.status
    assert sparse.difficulty == pytest.approx(dense.difficulty, abs=1e-8, nan_ok=True)
    assert sparse.se == pytest.approx(dense.se, rel=1e-6, nan_ok=True)


@pytest.mark.parametrize("method", METHODS)
def test_standard_errors_without_a_covariance_are_close_to_those_with_one(monkeypatch, method):
    X, _ = simulate(6, n=500, m=30, given=0.5)
    full = fit(X, method=method)
    monkeypatch.setattr(sandwich, "COVARIANCE_LIMIT", 10)
    exact = fit(X, method=method)
    assert exact.covariance is None
    assert exact.se == pytest.approx(full.se, rel=0.01)
    monkeypatch.setattr(multipliers, "EXACT_PERSONS", 100)
    drawn = fit(X, method=method)
    assert drawn.se == pytest.approx(full.se, rel=0.12)
    assert any("draws" in note for note in drawn.solution.notes)


def test_chunks_of_persons_do_not_change_the_covariance(monkeypatch):
    X, _ = simulate(7, given=0.7)
    whole = fit(X).covariance
    monkeypatch.setattr(scores, "CHUNK_CELLS", 100)
    monkeypatch.setattr(scores, "CHUNK_WORDS", 1)
    assert fit(X).covariance == pytest.approx(whole, rel=1e-12, abs=1e-16)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("given", [1.0, 0.6])
@pytest.mark.parametrize("steps", [1, 3])
def test_thin_factors_give_the_products_of_the_table_of_all_pairs(
    method, given, steps, monkeypatch
):
    rng = np.random.default_rng(5)
    X = rng.binomial(steps, 1 / (1 + np.exp(rng.normal(size=150) - rng.normal(size=(400, 1)))))
    X[rng.random(X.shape) >= given] = -1
    monkeypatch.setattr(scores, "THIN", 1)
    thin = fit(X, method=method)
    for kind in (refined.RefinedScoring, spectral.SpectralScoring):
        monkeypatch.setattr(kind, "factor", lambda *_: None)
    table = fit(X, method=method)
    assert thin.covariance == pytest.approx(table.covariance, rel=1e-10, abs=1e-15)


@pytest.mark.parametrize("method", METHODS)
def test_two_thousand_columns_and_four_persons_are_little_work(method, monkeypatch):
    X = np.random.default_rng(3).integers(0, 2, size=(4, 2100), dtype=np.int8)
    make, sizes = scores._Scorer._round, []

    def make_counted(scorer, *tables, **how):
        sizes.extend(table.size for table in tables)
        return make(scorer, *tables, **how)

    monkeypatch.setattr(scores._Scorer, "_round", make_counted)
    estimate = fit(X, method=method)
    # Tables of all pairs are what such a fit spends its time on: one is made, once, beside factors.
    assert sum(sizes) < 1.1 * estimate.estimated.sum() ** 2
    # Items with the same answers have the same difficulty and the same error.
    _, kind = np.unique(X[:, estimate.estimated], axis=1, return_inverse=True)
    for values in (estimate.difficulty, estimate.se):
        known = values[estimate.estimated]
        for k in range(kind.max() + 1):
            assert np.ptp(known[kind == k]) < 1e-5


@pytest.mark.parametrize("method", METHODS)
def test_the_sandwich_equals_its_formula_written_out_person_by_person(method, monkeypatch):
    monkeypatch.setattr(scores, "MAX_LEVERAGE", 0.0)
    X, _ = simulate(8, n=80, m=5)
    estimate = fit(X, method=method)
    b, m = estimate.difficulty, X.shape[1]
    products, L = np.zeros((m, m)), np.zeros((m, m))
    for x in X:
        score = np.zeros(m)
        for i in np.flatnonzero(x == 1):
            for j in np.flatnonzero(x == 0):
                p = 1 / (1 + np.exp(b[i] - b[j]))
                pull, weight = (
                    (1 - p, p * (1 - p))
                    if method == "refined"
                    else (np.exp(b[i]), np.exp(b[i]) / 2)
                )
                score[i] += pull
                score[j] -= pull
                edge = np.eye(m)[i] - np.eye(m)[j]
                L += weight * np.outer(edge, edge)
        if method == "spectral":
            T, F = np.exp(b[x == 1]).sum(), (x == 0).sum()
            assert -score == pytest.approx((1 - x) * T - x * np.exp(b) * F)
        products += np.outer(score, score)
    inverse = np.linalg.pinv(L)
    assert estimate.covariance == pytest.approx(inverse @ products @ inverse, abs=1e-10)


def test_the_small_sample_correction_widens_and_vanishes_with_many_persons(monkeypatch):
    few, many = simulate(9, n=60, m=8)[0], simulate(9, n=20_000, m=8)[0]
    corrected = [fit(X, method="refined").se for X in (few, many)]
    monkeypatch.setattr(scores, "MAX_LEVERAGE", 0.0)
    plain = [fit(X, method="refined").se for X in (few, many)]
    assert (corrected[0] > plain[0] * 1.005).all()
    assert corrected[1] == pytest.approx(plain[1], rel=1e-3)


# --- counts instead of answers -------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_counts_of_complete_answers_give_the_same_numbers_and_model_based_errors(method):
    X, _ = simulate(10, n=4000)
    whole, counts = fit(X, method=method), count_pairs(Responses.from_array(X))
    alone = fit(counts, method=method)
    assert alone.difficulty == pytest.approx(whole.difficulty, abs=1e-10)
    assert alone.se == pytest.approx(whole.se, rel=0.06)
    assert any("model-based" in note for note in alone.solution.notes)


def test_counts_of_incomplete_answers_have_no_standard_errors_and_say_why():
    X, _ = simulate(11, given=0.6)
    alone = fit(count_pairs(Responses.from_array(X)))
    assert np.isnan(alone.se).all()
    assert any("no standard errors" in warning for warning in alone.warnings)
    assert any("not weighted" in note for note in alone.solution.notes)


def test_counts_add_up_over_batches_of_persons():
    X, _ = simulate(12)
    parts = [count_pairs(Responses.from_array(part)) for part in (X[:150], X[150:])]
    whole = fit(X, method="refined").difficulty
    assert fit(parts[0] + parts[1]).difficulty == pytest.approx(whole, abs=1e-10)


# --- edges ---------------------------------------------------------------------------------------


def test_left_out_items_have_a_status_and_a_warning_and_do_not_move_the_others():
    X, _ = simulate(13)
    wider = np.insert(X, [0, 5], [[1, -1]] * len(X), axis=1)
    estimate = fit(wider)
    assert [str(estimate.status[i]) for i in (0, 6)] == ["always_right", "no_answers"]
    assert np.isnan(estimate.difficulty[[0, 6]]).all()
    assert np.isnan(estimate.se[[0, 6]]).all()
    assert len(estimate.warnings) == 2
    kept = estimate.estimated
    assert estimate.difficulty[kept] == pytest.approx(fit(X).difficulty, abs=1e-9)
    assert estimate.covariance.shape == (12, 12)


@pytest.mark.parametrize(
    "X",
    [
        np.ones((5, 4)),
        np.zeros((5, 4)),
        np.full((5, 4), np.nan),
        np.array([[1.0], [0.0]]),
        np.array([[1.0, 0.0, 1.0]]),
    ],
    ids=["everyone right", "everyone wrong", "nobody answered", "one item", "one person"],
)
@pytest.mark.parametrize("method", METHODS)
def test_answers_that_determine_nothing_are_an_error_with_a_name(X, method):
    with pytest.raises(DisconnectedItems):
        fit(X, method=method)


def test_two_forms_without_a_common_item_leave_the_smaller_one_out():
    X = np.full((300, 10), -1, dtype=np.int8)
    X[:200, :6] = simulate(14, 200, 6)[0]
    X[200:, 6:] = simulate(15, 100, 4)[0]
    estimate = fit(X)
    assert estimate.estimated.tolist() == [True] * 6 + [False] * 4
    assert [str(s) for s in estimate.status[6:]] == ["not_connected"] * 4


def test_regularisation_is_stated_and_gives_extreme_items_a_number():
    X = np.insert(simulate(16)[0], 0, 1, axis=1)
    estimate = fit(X, regularisation=0.5)
    assert estimate.estimated.all()
    assert estimate.difficulty.argmin() == 0
    assert any("regularised with 0.5" in warning for warning in estimate.warnings)


def test_standard_errors_are_optional():
    estimate = fit(simulate(17)[0], method="refined", standard_errors=False)
    assert np.isnan(estimate.se).all()
    assert estimate.covariance is None
    assert not estimate.warnings


def test_an_unknown_method_or_kind_of_data_is_refused():
    with refused(
        BadUsage,
        "no_called_one_check_choice_name",
        listed="auto, refined, spectral, conditional, marginal",
    ):
        fit(simulate(18)[0], method="magic")
    with refused(BadUsage, "data_frame_needed_pandas", name="set"):
        fit({1, 0})


def test_a_path_is_read(tmp_path):
    path = tmp_path / "answers.csv"
    rows = [
        f"p{p},i{i},{x}" for p, row in enumerate(simulate(19, 50, 4)[0]) for i, x in enumerate(row)
    ]
    path.write_text("\n".join(["person,item,response", *rows]))
    assert fit(path).difficulty == pytest.approx(fit(simulate(19, 50, 4)[0]).difficulty, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(
        np.int8, st.tuples(st.integers(1, 15), st.integers(1, 6)), elements=st.integers(-1, 1)
    ),
    st.sampled_from(METHODS),
)
def test_any_answers_give_a_status_for_every_item_or_an_error_with_a_name(X, method):
    try:
        estimate = fit(X, method=method)
    except DisconnectedItems:
        return
    has_number = [str(status) == "estimated" for status in estimate.status]
    assert estimate.estimated.tolist() == has_number
    assert np.isfinite(estimate.se).tolist() == has_number
    assert sum(has_number) >= 2
    assert bool(estimate.warnings) == (not all(has_number))
    assert np.nanmean(estimate.difficulty) == pytest.approx(0, abs=1e-9)


# --- intervals ------------------------------------------------------------------------------------


def test_simultaneous_intervals_are_wider_than_single_ones_and_repeat_with_the_same_source():
    estimate = fit(simulate(20)[0])
    single, together = estimate.interval(), estimate.simultaneous_interval()
    assert (np.diff(together, axis=1) > 1.2 * np.diff(single, axis=1)).all()
    assert np.array_equal(together, estimate.simultaneous_interval())
    other = estimate.simultaneous_interval(rng=np.random.default_rng(5))
    assert other == pytest.approx(together, abs=0.02)


def test_simultaneous_intervals_of_two_items_are_the_single_ones():
    X = np.array([[1, 0]] * 30 + [[0, 1]] * 10)
    estimate = fit(X)
    assert estimate.simultaneous_interval() == pytest.approx(estimate.interval(), abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_intervals_cover_and_simultaneous_ones_too(method):
    single, together = [], []
    for seed in range(200):
        X, b = simulate(1000 + seed, n=400, m=15, given=0.5)
        estimate = fit(X, method=method)
        inside = [
            (low <= b) & (b <= high)
            for low, high in (estimate.interval().T, estimate.simultaneous_interval().T)
        ]
        single.append(inside[0].mean())
        together.append(inside[1].all())
    assert 0.93 < np.mean(single) < 0.97
    assert is_chance(200 - sum(together), 200)


def test_pair_counts_are_left_as_they_were():
    counts = count_pairs(Responses.from_array(simulate(21)[0]))
    before = counts.right_wrong.copy()
    fit(counts, regularisation=1.0)
    assert isinstance(counts, PairCounts)
    assert np.array_equal(counts.right_wrong, before)
