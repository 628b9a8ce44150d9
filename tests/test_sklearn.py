"""The scikit-learn estimator keeps scikit-learn's promises, as far as binary data allows."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix, issparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import discreet
from discreet.answers.pack import store_codes
from discreet.api.calibrating import fit
from discreet.datasets import lsat
from discreet.errors import BadResponses, BadUsage, BudgetExceeded
from discreet.persons.measures import abilities
from discreet.simulation import simulate
from discreet.sklearn import PrivateRasch, Rasch
from refusals import refused

NOT_LINKED = (
    "fits clusters of continuous numbers, rounded: no person has one item right and another wrong, "
    "or categories have gaps, and then no difficulty is determined"
)
EXPECTED_FAILURES = dict.fromkeys(
    [
        "check_estimator_sparse_array",
        "check_estimator_sparse_matrix",
        "check_estimator_sparse_tag",
        "check_estimators_pickle",
        "check_pipeline_consistency",
        "check_positive_only_tag_during_fit",
        "check_transformer_data_not_an_array",
        "check_transformer_general",
    ],
    NOT_LINKED,
)

CLASSES_ONLY = dict.fromkeys(
    ["check_estimator_sparse_array", "check_estimator_sparse_matrix"],
    "takes whatever predicts probabilities for a classifier with a column per class; here it is a "
    "column per item",
)


class Striped(Rasch):
    """The same estimator on answers made from continuous X: is it in an odd stripe?

    scikit-learn's checks pass continuous X. Here they can run: a failure is about the glue.
    Stripes of width 1 / pi, because some checks have whole numbers, and some have columns so
    alike that one threshold would never tell them apart.
    """

    def _answers(self, X, *, reset):
        matrix = super()._answers(X, reset=reset)
        dense = matrix.toarray() if issparse(matrix) else np.asarray(matrix)
        return np.floor(dense.astype(float) * np.pi) % 2

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = False  # so that checks do not round X first
        return tags


def expected_failures(estimator):
    return CLASSES_ONLY if isinstance(estimator, Striped) else EXPECTED_FAILURES


# scikit-learn marks the expected ones xfail; with xfail_strict one that passes is a failure, so
# the list above can only shrink.
@parametrize_with_checks(
    [Rasch(), Striped(), Striped("spectral")], expected_failed_checks=expected_failures
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture
def answers():
    X = simulate(300, 8, 0.8, rng=np.random.default_rng(4)).responses.store.rows(0, 300)
    return np.where(X < 0, np.nan, X.astype(float))


def test_fitted_numbers_are_those_of_fit():
    X = lsat().store.rows(0, 1000)
    model = Rasch(method="spectral").fit(X)
    expected = fit(lsat(), method="spectral")
    assert np.array_equal(model.difficulty_, expected.difficulty)
    assert np.array_equal(model.se_, expected.se)
    assert model.status_.tolist() == ["estimated"] * 5


def test_transform_gives_the_ability_of_every_row(answers):
    model = Rasch().fit(answers)
    ability = model.transform(answers[:7])
    assert ability.shape == (7, 1)
    assert np.array_equal(ability[:, 0], abilities(answers[:7], model.difficulty_).ability)


def test_a_row_without_answers_has_no_ability(answers):
    model = Rasch().fit(answers)
    assert np.isnan(model.transform(np.full((1, 8), np.nan))).all()


def test_an_item_without_a_number_says_why_and_does_not_count(answers):
    answers[:, 3] = 1
    model = Rasch().fit(answers)
    assert model.status_[3] == "always_right"
    assert np.isnan(model.difficulty_[3])
    assert np.isfinite(model.transform(answers)).any()


def test_regularisation_reaches_the_fit(answers):
    plain = Rasch().fit(answers).difficulty_
    assert not np.array_equal(Rasch(regularisation=5.0).fit(answers).difficulty_, plain)


@pytest.mark.parametrize("value", [2, -0.5, 0.3])
def test_a_value_that_is_no_answer_is_refused_in_fit_and_transform(answers, value):
    bad = answers.copy()
    bad[5, 2] = value
    for look in (Rasch().fit, Rasch().fit(answers).transform):
        with pytest.raises(BadResponses, match=str(value)):
            look(bad)


def test_at_least_turns_marks_into_answers_and_keeps_missing(answers):
    marks = np.where(answers == 1, 4.0, 2.0)
    marks[np.isnan(answers)] = np.nan
    from_marks = Rasch(at_least=3).fit(marks)
    assert np.array_equal(from_marks.difficulty_, Rasch().fit(answers).difficulty_)
    assert np.array_equal(
        from_marks.transform(marks), Rasch().fit_transform(answers), equal_nan=True
    )


def test_at_least_must_be_a_number(answers):
    with refused(BadUsage, "least_must_finite_number"):
        Rasch(at_least=np.nan).fit(answers)


def test_item_names_come_from_the_columns_of_a_frame(answers):
    frame = pd.DataFrame(answers, columns=[f"item {j}" for j in range(8)])
    model = Rasch().fit(frame)
    assert model.feature_names_in_.tolist() == list(frame.columns)
    assert model.estimate_.items == tuple(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame[frame.columns[::-1]])


@pytest.mark.parametrize(("name", "frame"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_output_can_be_a_frame_with_one_named_column(answers, name, frame):
    out = Rasch().set_output(transform=name).fit_transform(answers)
    assert isinstance(out, frame)
    assert list(out.columns) == ["ability"]


def test_it_works_inside_a_pipeline(answers):
    target = (np.nanmean(answers, axis=1) > 0.5).astype(int)
    pipeline = make_pipeline(Rasch(), LogisticRegression())
    assert pipeline.fit(answers, target).score(answers, target) > 0.9
    assert pipeline[:-1].get_feature_names_out().tolist() == ["ability"]


def test_clones_and_pickles_keep_parameters_and_numbers(answers):
    model = Rasch("spectral", regularisation=0.1, at_least=0.5)
    assert clone(model).get_params() == model.get_params()
    back = pickle.loads(pickle.dumps(model.fit(answers)))  # noqa: S301
    assert np.array_equal(back.transform(answers), model.transform(answers), equal_nan=True)


def test_before_fitting_there_is_nothing_to_transform_with(answers):
    with pytest.raises(NotFittedError):
        Rasch().transform(answers)


def test_a_missing_scikit_learn_is_named():
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "from discreet.errors import MissingExtra\n"
        "try:\n    import discreet.sklearn\n"
        "except MissingExtra as error:\n    print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[sklearn]" in run.stdout


def test_private_rasch_releases_and_says_what_it_promises(tmp_path):
    from discreet.privacy.ledger import Ledger

    Ledger.create(tmp_path / "spent.db", 1.0, 1e-6)
    model = PrivateRasch(epsilon=1.0, ledger=tmp_path / "spent.db")
    X = lsat().to_array()
    fitted = clone(model).fit(X)
    assert fitted.guarantee_.ledger == Ledger.open(tmp_path / "spent.db").id
    assert np.isfinite(fitted.difficulty_).all()
    assert fitted.transform(X[:3]).shape == (3, 1)
    with pytest.raises(BudgetExceeded):
        clone(model).fit(X)


def test_private_rasch_warns_without_a_ledger_and_lists_the_names_of_the_columns():
    frame = pd.DataFrame(lsat().to_array(), columns=list("abcde"))
    with pytest.warns(UserWarning, match="without a ledger"):
        model = PrivateRasch(epsilon=2.0, mechanism="pairs").fit(frame)
    assert model.published_.estimate.items == tuple("abcde")
    assert model.set_output(transform="pandas").transform(frame).columns.tolist() == ["ability"]


def test_rasch_chooses_a_method():
    assert Rasch().fit(lsat().to_array()).estimate_.method == "conditional"


# -- prediction --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def halves():
    """Two samples of persons who answer 60% of the same items, and the truth."""
    sim = simulate(3000, 25, 0.6, rng=np.random.default_rng(11))
    X = sim.responses.to_array().astype(float)
    X[X < 0] = np.nan
    return X[:1500], X[1500:], sim.difficulty


def with_difficulty(model, difficulty):
    """The fitted model with other difficulties and everything else as it was."""
    other = copy.copy(model)
    other.difficulty_ = np.asarray(difficulty, dtype=float)
    return other


def brute_force(row, item, difficulty, mean, sd):
    """Probability of a right answer to one item, given all others of the row, on a fine grid."""
    theta = np.linspace(mean - 9 * sd, mean + 9 * sd, 4001)
    weight = np.exp(-(((theta - mean) / sd) ** 2) / 2)
    for other, answer in enumerate(row):
        if other != item and not np.isnan(answer):
            chance = expit(theta - difficulty[other])
            weight = weight * (chance if answer == 1 else 1 - chance)
    return float(weight @ expit(theta - difficulty[item]) / weight.sum())


def test_every_cell_is_predicted_from_the_other_answers_of_its_row(answers):
    model = Rasch().fit(answers)
    found = model.predict_proba(answers[:6])
    about = model.difficulty_, model.ability_mean_, model.ability_sd_
    expected = [[brute_force(row, item, *about) for item in range(8)] for row in answers[:6]]
    assert found == pytest.approx(np.array(expected), abs=1e-6)


def test_the_score_is_the_mean_log_probability_of_the_answers(answers):
    model = Rasch().fit(answers[:200])
    new = answers[200:]
    chance = model.predict_proba(new)
    given = ~np.isnan(new)
    logs = np.log(np.where(new == 1, chance, 1 - chance)[given])
    assert model.score(new) == pytest.approx(logs.mean(), rel=1e-12)


def test_the_true_difficulties_beat_wrong_ones_on_new_persons(halves):
    train, new, truth = halves
    model = Rasch().fit(train)
    true = with_difficulty(model, truth - truth.mean()).score(new)
    assert abs(model.score(new) - true) < 0.003
    for wrong in (np.zeros(25), truth[::-1], truth * 2, truth / 2):
        assert with_difficulty(model, wrong - wrong.mean()).score(new) < true - 0.003


def test_the_score_does_not_grow_by_knowing_the_answers(halves):
    # Given a person's other answers nobody does better than the truth, not even on the persons
    # that the difficulties were fitted to, by more than the fit's own optimism: items / answers.
    train, _, truth = halves
    model = Rasch().fit(train)
    true = with_difficulty(model, truth - truth.mean()).score(train)
    assert 0 < model.score(train) - true < 3 * 25 / np.isfinite(train).sum() + 1e-3


def test_methods_have_comparable_scores_and_a_spoilt_one_a_lower(halves):
    train, new, _ = halves
    methods = ("conditional", "refined", "spectral", "marginal")
    found = [Rasch(method).fit(train).score(new) for method in methods]
    assert max(found) - min(found) < 0.002
    assert Rasch("refined", regularisation=1000.0).fit(train).score(new) < min(found) - 0.003


def test_an_item_without_a_difficulty_counts_in_every_score(halves):
    train, new, _ = (part.copy() for part in halves)
    train[:, 3] = np.where(np.isnan(train[:, 3]), np.nan, 1.0)
    model = Rasch().fit(train)
    assert np.isnan(model.difficulty_[3])
    right = int(np.nansum(train[:, 3]))
    assert np.allclose(model.predict_proba(new)[:, 3], (right + 0.5) / (right + 1))
    alone = np.full_like(new, np.nan)
    alone[:, 3] = new[:, 3]
    assert np.isfinite(model.score(alone))


def test_predicted_probabilities_are_the_shares_that_come_true(halves):
    train, new, _ = halves
    hidden = new.copy()
    hidden[:, :5] = np.nan
    model = Rasch().fit(train)
    asked = ~np.isnan(new[:, :5])
    chance, came = model.predict_proba(hidden)[:, :5][asked], new[:, :5][asked]
    for low, high in ((0.0, 0.35), (0.35, 0.65), (0.65, 1.0)):
        here = (chance >= low) & (chance < high)
        error = np.sqrt((chance[here] * (1 - chance[here])).sum()) / here.sum()
        assert abs(chance[here].mean() - came[here].mean()) < 4 * error


def test_pairs_are_rows_and_columns_or_names_of_items(answers):
    frame = pd.DataFrame(answers, columns=[f"q{item}" for item in range(8)])
    model = Rasch().fit(frame)
    whole = model.predict_proba(frame[:9])
    found = model.predict_proba(frame[:9], [(2, "q5"), (8, 0)])
    assert found.tolist() == [whole[2, 5], whole[8, 0]]
    for wrong in ((9, 0), (0, "q9"), (0, 8), (-1, 0), 3, ("a", 1)):
        with refused(BadUsage, "pair_row_item_row"):
            model.predict_proba(frame[:9], [wrong])


def test_a_score_of_no_answers_is_refused(answers):
    with refused(BadUsage, "score_needs_answers_none"):
        Rasch().fit(answers).score(np.full((2, 8), np.nan))


def sparse(X):
    """The answers as a sparse matrix that holds its zeros."""
    row, column = np.nonzero(~np.isnan(X))
    return csr_matrix((X[row, column], (row, column)), shape=X.shape)


def test_sparse_answers_give_the_same_numbers(answers):
    dense, thin = Rasch().fit(answers), Rasch().fit(sparse(answers))
    assert np.array_equal(dense.difficulty_, thin.difficulty_)
    assert np.array_equal(dense.transform(answers), thin.transform(sparse(answers)))
    assert dense.score(answers) == thin.score(sparse(answers))


def test_marks_and_codes_in_a_sparse_matrix_are_understood(answers):
    marks = sparse(np.where(np.isnan(answers), 9.0, answers * 4))
    model = Rasch(at_least=3, missing=9).fit(marks)
    assert np.array_equal(model.difficulty_, Rasch().fit(answers).difficulty_)


def test_cross_validation_and_grid_search_run(answers):
    assert cross_val_score(Rasch(), answers, cv=3).shape == (3,)
    grid = {"method": ["refined", "spectral"], "regularisation": [0.0, 500.0]}
    search = GridSearchCV(Rasch(), grid, cv=3).fit(answers)
    assert search.best_params_["regularisation"] == 0.0
    assert search.score(answers) == search.best_estimator_.score(answers)


def test_a_long_frame_is_the_matrix_of_its_persons(answers):
    wide = pd.DataFrame(answers, columns=[f"Q{number}" for number in range(8)])
    long = wide.rename_axis("user").reset_index().melt("user", var_name="question")
    long = long.rename(columns={"value": "correct"}).dropna()
    model, plain = Rasch().fit(long), Rasch().fit(wide)
    assert dict(zip(model.feature_names_in_, model.difficulty_, strict=True)) == pytest.approx(
        dict(zip(plain.feature_names_in_, plain.difficulty_, strict=True))
    )
    part = long[long["user"].isin([5, 7]) & (long["question"] != "Q0")]
    hidden = wide.iloc[[5, 7]].assign(Q0=np.nan)
    order = [[5, 7].index(user) for user in part["user"].unique()]
    np.testing.assert_allclose(model.transform(part), plain.transform(hidden)[order])
    assert model.score(long) == pytest.approx(plain.score(wide))
    folds = cross_val_score(Rasch(), long, groups=long["user"], cv=GroupKFold(3))
    assert folds.shape == (3,)
    assert (folds < 0).all()
    with refused(BadResponses, "two_answers_person_item"):
        Rasch().fit(pd.concat([long, long]))
    assert np.array_equal(Rasch().fit(pl.from_pandas(long)).difficulty_, model.difficulty_)


def test_private_rasch_has_no_score_and_no_cross_validation_begins(answers, monkeypatch):
    def refuse(*_args, **_options):
        raise AssertionError("a release was made")

    monkeypatch.setattr("discreet.sklearn.release", refuse)
    with pytest.raises(AttributeError):
        PrivateRasch().score(answers)
    assert not hasattr(PrivateRasch(), "score")
    with pytest.raises(TypeError):
        cross_val_score(PrivateRasch(), answers)
    with pytest.raises(TypeError):
        GridSearchCV(PrivateRasch(), {"epsilon": [1.0, 2.0]}).fit(answers)


# -- items with steps ----------------------------------------------------------------------------


def chances(ability, thresholds):
    share = np.exp(np.concatenate([[0.0], np.cumsum(ability - np.asarray(thresholds))]))
    return share / share.sum()


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
