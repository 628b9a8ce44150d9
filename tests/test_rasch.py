"""The scikit-learn estimator keeps scikit-learn's promises, as far as binary data allows."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from discreet.analysis.abilities import abilities
from discreet.datasets import lsat
from discreet.errors import BadResponses, BadUsage, BudgetExceeded
from discreet.models.calibrate import fit
from discreet.simulation import simulate
from discreet.sklearn import PrivateRasch, Rasch, SpectralRasch

CONTINUOUS = "fits continuous X; an answer is 0, 1 or missing and anything else is refused"

EXPECTED_FAILURES = dict.fromkeys(
    [
        "check_dict_unchanged",
        "check_dont_overwrite_parameters",
        "check_dtype_object",
        "check_estimators_dtypes",
        "check_estimators_fit_returns_self",
        "check_estimators_overwrite_params",
        "check_estimators_pickle",
        "check_f_contiguous_array_estimator",
        "check_fit2d_predict1d",
        "check_fit_check_is_fitted",
        "check_fit_idempotent",
        "check_fit_score_takes_y",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_n_features_in",
        "check_n_features_in_after_fitting",
        "check_pipeline_consistency",
        "check_positive_only_tag_during_fit",
        "check_readonly_memmap_input",
        "check_transformer_data_not_an_array",
        "check_transformer_general",
    ],
    CONTINUOUS,
)


class Striped(Rasch):
    """The same estimator on answers made from continuous X: is it in an odd stripe?

    scikit-learn's checks pass continuous X. Here they can run: a failure is about the glue.
    Stripes of width 1 / pi, because some checks have whole numbers, and some have columns so
    alike that one threshold would never tell them apart.
    """

    def _answers(self, X, *, reset):
        matrix = np.asarray(super()._answers(X, reset=reset), dtype=float)
        return np.floor(matrix * np.pi) % 2


def expected_failures(estimator):
    return {} if isinstance(estimator, Striped) else EXPECTED_FAILURES


# scikit-learn marks the expected ones xfail; with xfail_strict one that passes is a failure, so
# the list above can only shrink.
@parametrize_with_checks(
    [Rasch(), Striped(), Striped("spectral")],
    expected_failed_checks=expected_failures,
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
    with pytest.raises(BadResponses, match=str(value)):
        Rasch().fit(bad)
    with pytest.raises(BadResponses, match=str(value)):
        Rasch().fit(answers).transform(bad)


def test_at_least_turns_marks_into_answers_and_keeps_missing(answers):
    marks = np.where(answers == 1, 4.0, 2.0)
    marks[np.isnan(answers)] = np.nan
    from_marks = Rasch(at_least=3).fit(marks)
    assert np.array_equal(from_marks.difficulty_, Rasch().fit(answers).difficulty_)
    assert np.array_equal(
        from_marks.transform(marks), Rasch().fit_transform(answers), equal_nan=True
    )


def test_at_least_must_be_a_number(answers):
    with pytest.raises(BadUsage, match="at_least must be a finite number"):
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
    assert "pip install 'discreet[sklearn]'" in run.stdout


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


def test_private_rasch_warns_without_a_ledger():
    with pytest.warns(UserWarning, match="without a ledger"):
        PrivateRasch(epsilon=1.0).fit(lsat().to_array())


def test_private_rasch_uses_the_column_names_as_the_public_list():
    frame = pd.DataFrame(lsat().to_array(), columns=list("abcde"))
    with pytest.warns(UserWarning, match="without a ledger"):
        model = PrivateRasch(epsilon=2.0, mechanism="pairs").fit(frame)
    assert model.published_.estimate.items == tuple("abcde")
    assert model.set_output(transform="pandas").transform(frame).columns.tolist() == ["ability"]


def test_the_former_name_still_works_and_says_so(answers):
    with pytest.warns(DeprecationWarning, match="now called Rasch"):
        former = SpectralRasch().fit(answers)
    assert np.array_equal(former.difficulty_, Rasch("refined").fit(answers).difficulty_)


def test_rasch_chooses_a_method_and_its_former_name_keeps_refined():
    X = lsat().to_array()
    assert Rasch().fit(X).estimate_.method == "conditional"
    with pytest.warns(DeprecationWarning, match="now called Rasch"):
        assert SpectralRasch().fit(X).estimate_.method == "refined"
