"""The scikit-learn estimators: glue only.

In: an answer matrix as scikit-learn passes it. Out: fitted attributes and abilities. Importing
this module imports scikit-learn; nothing else in the package does.
"""

from __future__ import annotations

import warnings
from os import PathLike
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from discreet.analysis.abilities import abilities
from discreet.answers.responses import Responses
from discreet.errors import MissingExtra
from discreet.models.calibrate import fit
from discreet.models.methods import AUTO
from discreet.privacy.accounting import Budget
from discreet.publishing.release import release
from discreet.results.estimate import Estimate
from discreet.tables.values import Codes, Scoring, make_scoring

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "sklearn":
        raise
    raise MissingExtra("discreet's scikit-learn estimators", "sklearn") from error


class _Answers(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What both estimators share: checked answers in, abilities out."""

    at_least: float | None
    missing: Codes

    def _responses(self, X: Any) -> Responses:
        answers = self._answers(X, reset=True)
        names = getattr(self, "feature_names_in_", None)
        return Responses.from_array(answers, items=None if names is None else list(names))

    def _remember(self, estimate: Estimate) -> Self:
        self.estimate_ = estimate
        self.difficulty_ = np.array(estimate.difficulty)
        self.se_ = np.array(estimate.se)
        self.status_ = np.array([str(status) for status in estimate.status])
        self._n_features_out = 1
        return self

    def transform(self, X: Any) -> npt.NDArray[np.float64]:
        """Return Warm's ability estimate of every row, as one column.

        NaN for a row without an answer to an item that has a difficulty.
        """
        check_is_fitted(self, "difficulty_")
        answers = self._answers(X, reset=False)
        return abilities(answers, self.difficulty_).ability.reshape(-1, 1)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return the name of the one output column, ``"ability"``."""
        super().get_feature_names_out(input_features)  # checks input_features
        return np.array(["ability"], dtype=object)

    def _answers(self, X: Any, *, reset: bool) -> npt.NDArray[Any]:
        """Check X as scikit-learn does, and turn numbers into answers if asked to."""
        # Difficulties are relative and need answers of more than one person; abilities do not.
        least = 2 if reset else 1
        matrix: npt.NDArray[Any] = validate_data(
            self,
            X,
            reset=reset,
            ensure_all_finite="allow-nan",
            ensure_min_samples=least,
            ensure_min_features=least,
        )
        scoring = make_scoring(self.at_least, self.missing)
        if scoring == Scoring():
            return matrix
        values = matrix.astype(np.float64)
        values[np.isin(values, np.array(scoring.missing, dtype=np.float64))] = np.nan
        if scoring.at_least is None:
            return values
        return np.where(np.isnan(values), np.nan, values >= scoring.at_least)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # a missing answer
        tags.transformer_tags.preserves_dtype = []  # abilities are float64 whatever X is
        return tags


class Rasch(_Answers):
    """Rasch difficulties of the columns, abilities of the rows.

    Parameters
    ----------
    method : {"auto", "conditional", "refined", "spectral", "marginal"}
        The estimator, as in :func:`discreet.fit`; ``estimate_.choice`` says what auto took.
    regularisation : float
        Added to both directions of every compared pair; 0 leaves items without a connection
        without a number.
    at_least : float or None
        Turn numbers into answers: 1 where a value is at least this large, 0 below. ``None``
        refuses anything but 0, 1 and missing.
    missing : number or sequence of numbers
        Codes that stand for a missing answer, besides NaN.

    Attributes
    ----------
    difficulty_, se_ : ndarray of shape (n_features,)
        In logits, mean zero, harder is larger. NaN where ``status_`` says why.
    status_ : ndarray of shape (n_features,)
        ``"estimated"``, ``"always_right"``, ``"always_wrong"``, ``"no_answers"`` or
        ``"not_connected"``.
    estimate_ : Estimate
        The whole result.
    n_features_in_ : int
        Number of items.
    feature_names_in_ : ndarray of str
        Item names, when X had any.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [1, 0, 1], [0, 1, np.nan]])
    >>> Rasch().fit(X).transform(X).shape
    (5, 1)
    """

    def __init__(
        self,
        method: str = AUTO,
        *,
        regularisation: float = 0.0,
        at_least: float | None = None,
        missing: Codes = (),
    ) -> None:
        self.method = method
        self.regularisation = regularisation
        self.at_least = at_least
        self.missing = missing

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Estimate the difficulty of every column.

        Parameters
        ----------
        X : array-like of shape (n_persons, n_items)
            1 right, 0 wrong, NaN missing.
        y : ignored
            Present for pipelines.
        """
        responses = self._responses(X)
        return self._remember(
            fit(responses, method=self.method, regularisation=self.regularisation)
        )


class SpectralRasch(Rasch):
    """The former name of :class:`Rasch`; deprecated, with the method ``"refined"`` for ever."""

    def __init__(
        self,
        method: str = "refined",
        *,
        regularisation: float = 0.0,
        at_least: float | None = None,
        missing: Codes = (),
    ) -> None:
        super().__init__(method, regularisation=regularisation, at_least=at_least, missing=missing)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Do as :meth:`Rasch.fit`, and warn."""
        warnings.warn("SpectralRasch is now called Rasch", DeprecationWarning, stacklevel=2)
        return super().fit(X, y)


class PrivateRasch(_Answers):
    """Rasch difficulties of the columns, released under differential privacy.

    The columns of X are the public item list: they must be those of the test, not those that
    somebody answered. Every call of ``fit`` is a release: cloning,
    cross-validation and grid search release again and again. Without a ledger nothing adds that
    up, and ``fit`` warns.

    Parameters
    ----------
    epsilon : float
        The privacy budget of one fit.
    delta : float
        The guarantee's delta; 0 for the pure mechanisms.
    max_answers : int or None
        Public cap on answers per person; ``None`` means every item.
    mechanism : str
        As in :func:`discreet.release`.
    neighbours : {"replace-one", "add-remove"}
        The neighbouring relation.
    ledger : path or None
        Where the spend is recorded and limited.
    at_least : float or None
        Turn numbers into answers, as in :class:`Rasch`.
    missing : number or sequence of numbers
        Codes that stand for a missing answer, besides NaN.

    Attributes
    ----------
    difficulty_, se_ : ndarray of shape (n_features,)
        The standard errors include the privacy noise.
    guarantee_ : Guarantee
        What is promised to each person.
    published_ : Published
        The whole release; ``published_.save(folder)`` writes the bundle.

    Notes
    -----
    ``difficulty_``, ``se_`` and ``guarantee_`` may be published. ``transform`` returns abilities
    of the rows it is given, which are confidential.

    Examples
    --------
    >>> import warnings
    >>> from discreet.datasets import lsat
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     model = PrivateRasch(epsilon=1.0).fit(lsat().to_array())
    >>> model.difficulty_.shape, model.guarantee_.epsilon
    ((5,), 1.0)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        max_answers: int | None = None,
        mechanism: str = "auto",
        neighbours: str = "replace-one",
        ledger: str | PathLike[str] | None = None,
        at_least: float | None = None,
        missing: Codes = (),
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.max_answers = max_answers
        self.mechanism = mechanism
        self.neighbours = neighbours
        self.ledger = ledger
        self.at_least = at_least
        self.missing = missing

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Release the difficulty of every column; spends the budget once more.

        Parameters
        ----------
        X : array-like of shape (n_persons, n_items)
            1 right, 0 wrong, NaN missing.
        y : ignored
            Present for pipelines.
        """
        responses = self._responses(X)
        if self.ledger is None:
            warnings.warn(
                "PrivateRasch.fit without a ledger: every fit is another release about the same "
                "persons, and nothing adds them up; give ledger=",
                stacklevel=2,
            )
        self.published_ = release(
            responses,
            Budget(self.epsilon, self.delta, self.neighbours),
            items=responses.items,
            max_answers=self.max_answers,
            mechanism=self.mechanism,
            ledger=self.ledger,
        )
        self.guarantee_ = self.published_.guarantee
        return self._remember(self.published_.estimate)
