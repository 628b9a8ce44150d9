"""Calibration and private release as scikit-learn estimators: glue only.

In: an answer matrix as scikit-learn passes it. Out: fitted attributes and abilities. Importing this
module imports scikit-learn; nothing else in the library does. What :class:`Rasch` learns is
confidential, what :class:`PrivateRasch` learns may be published.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from typing import Any, NoReturn, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, issparse

from discreet.answers.matrices import store_array
from discreet.answers.responses import Responses
from discreet.api.calibrating import fit
from discreet.checking import checked
from discreet.choices import AnswerMechanism, Design, Method, Model, Relation
from discreet.coding.reading import Reading, StepWords
from discreet.coding.steps import list_scale
from discreet.coding.values import Codes, ValueScoring, make_scoring
from discreet.errors import BadResponses, BadUsage, MissingExtra
from discreet.items.residuals import (
    describe_persons,
    log_likelihood,
    predict_categories,
    smooth_categories,
)
from discreet.models.categories import match_categories
from discreet.persons.measures import NormalPrior, abilities
from discreet.privacy.accounting import Budget
from discreet.privacy.protocol import check_steps
from discreet.publishing.release import release
from discreet.results.estimate import Estimate
from discreet.tables.columns import find_role_names
from discreet.tables.inspection.refusals import advise_listed

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "sklearn":
        raise
    raise MissingExtra("the scikit-learn interface", "sklearn") from error

__all__ = ["PrivateRasch", "Rasch"]

#: Cells of a sparse matrix that are unfolded at a time: 4 MB.
BLOCK_CELLS = 1 << 22


class AnswerEstimator(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """What both estimators share: checked answers in, abilities out."""

    at_least: float | None
    missing: Codes

    def _responses(self, X: object, *, reset: bool = True) -> Responses:
        answers = self._answers(X, reset=reset)
        names = getattr(self, "feature_names_in_", None)
        items = None if names is None else list(names)
        return self._store(answers, items, reset)

    def _store(self, answers: object, items: Sequence[str] | None, reset: bool) -> Responses:
        return Responses.from_array(answers, items=items, **self._words(answers, reset))

    def _words(self, answers: object, reset: bool) -> StepWords:  # noqa: ARG002
        """Say which answers there are: right and wrong, in a release and after one."""
        return {"model": "rasch"}

    def _blocks(self, X: object) -> Iterator[npt.NDArray[np.int8]]:
        """Yield all persons as matrices of 1, 0 (with steps, categories) and -1, some at a time."""
        responses = match_categories(self._responses(X, reset=False), self.estimate_)
        size = max(64, BLOCK_CELLS // responses.n_items)
        for start in range(0, responses.n_persons, size):
            yield responses.rows(start, min(start + size, responses.n_persons))

    def _remember(self, estimate: Estimate) -> Self:
        self.estimate_ = estimate
        self.difficulty_ = np.array(estimate.difficulty)
        self.se_ = np.array(estimate.se)
        self.thresholds_ = np.array(estimate.thresholds)
        self.status_ = np.array([str(status) for status in estimate.status])
        self._n_features_out = 1
        return self

    @checked
    def transform(self, X: object) -> npt.NDArray[np.float64]:
        """Return Warm's ability estimate of every row, as one column.

        NaN for a row without an answer to an item that has a difficulty.
        """
        check_is_fitted(self, "difficulty_")
        parts = [abilities(block, self.thresholds_).ability for block in self._blocks(X)]
        return np.concatenate(parts).reshape(-1, 1)

    def get_feature_names_out(self, input_features: object = None) -> npt.NDArray[np.object_]:
        """Return the name of the one output column, ``"ability"``."""
        super().get_feature_names_out(input_features)  # checks input_features
        return np.array(["ability"], dtype=object)

    def _answers(self, X: object, *, reset: bool) -> Any:
        """Check X as scikit-learn does, and turn numbers into answers if asked to."""
        # Difficulties are relative and need answers of more than one person; abilities do not.
        least = 2 if reset else 1
        matrix: Any = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            ensure_all_finite="allow-nan",
            ensure_min_samples=least,
            ensure_min_features=least,
        )
        scoring = make_scoring(self.at_least, self.missing)
        if scoring == ValueScoring():
            return matrix
        if not issparse(matrix):
            return _score_values(matrix, scoring)
        # Entries that are held are answers, a held 0 too; all others are missing.
        parts = (_score_values(matrix.data, scoring), matrix.indices, matrix.indptr)
        return csr_array(parts, shape=matrix.shape)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # a missing answer
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True  # right and wrong, or steps
        tags.transformer_tags.preserves_dtype = []  # abilities are float64 whatever X is
        return tags


def _score_values(values: npt.NDArray[Any], scoring: ValueScoring) -> npt.NDArray[np.float64]:
    """Turn numbers into answers, and codes for missing ones into NaN."""
    numbers = values.astype(np.float64)
    numbers[np.isin(numbers, np.array(scoring.missing, dtype=np.float64))] = np.nan
    if scoring.at_least is None:
        return numbers
    return np.where(np.isnan(numbers), np.nan, numbers >= scoring.at_least)


def _widen(X: Any, items: Sequence[str] | None) -> Any:
    """Return a long frame as a wide one, a row for each person in order; anything else as it is.

    ``items`` are the columns that it shall have; answers to others are left out.
    """
    roles = find_role_names([*map(str, getattr(X, "columns", ()))], Reading())
    if len(roles) < 3:
        return X
    import pandas as pd

    cells = pd.DataFrame({role: pd.Series(list(X[names[0]])) for role, names in roles.items()})
    cells["item"] = cells["item"].astype(str)
    if cells.duplicated(["person", "item"]).any():
        raise BadResponses("X has two answers of a person to an item; keep one of them")
    wide = cells.pivot(index="person", columns="item", values="response").astype(float)
    columns = cells["item"].unique() if items is None else items
    return wide.reindex(index=cells["person"].unique(), columns=columns)


class Rasch(AnswerEstimator):
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
        takes 0 and 1 for right and wrong answers, and whole numbers from 0 or 1 for steps.
    missing : number or sequence of numbers
        Codes that stand for a missing answer, besides NaN.
    model : {"auto", "rasch", "partial-credit", "rating-scale"}
        As in :func:`discreet.fit`; ``"rasch"`` refuses anything but 0, 1 and missing.

    Attributes
    ----------
    difficulty_, se_ : ndarray of shape (n_features,)
        In logits, mean zero, harder is larger; with steps the mean of an item's thresholds. NaN
        where ``status_`` says why.
    thresholds_ : ndarray of shape (n_features, steps)
        NaN beyond an item's steps; for right and wrong answers the difficulties.
    status_ : ndarray of shape (n_features,)
        ``"estimated"``, ``"always_right"``, ``"always_wrong"``, ``"no_answers"`` or
        ``"not_connected"``.
    estimate_ : Estimate
        The whole result.
    ability_mean_, ability_sd_ : float
        Of the persons of X: the ability distribution by which :meth:`score` and
        :meth:`predict_proba` begin with a new person.
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

    Cross-validation of a long frame keeps each person whole:

    >>> from sklearn.model_selection import GroupKFold, cross_val_score
    >>> from discreet.datasets import lsat
    >>> frame = lsat().to_dataframe()
    >>> scores = cross_val_score(Rasch(), frame, groups=frame["person"], cv=GroupKFold(3))
    >>> bool((scores > -0.6).all())
    True
    """

    def __init__(
        self,
        method: Method = "auto",
        *,
        regularisation: float = 0.0,
        at_least: float | None = None,
        missing: Codes = (),
        model: Model = "auto",
    ) -> None:
        self.method = method
        self.regularisation = regularisation
        self.at_least = at_least
        self.missing = missing
        self.model = model

    def _answers(self, X: object, *, reset: bool) -> Any:
        """Check X; a long frame is made wide first, with the items of ``fit``."""
        items = None if reset else list(getattr(self, "feature_names_in_", ())) or None
        return super()._answers(_widen(X, items), reset=reset)

    def _words(self, answers: Any, reset: bool) -> StepWords:
        """Say which answers there are: those that the persons of ``fit`` had."""
        if self.at_least is not None:
            return {}
        if reset or self.steps_ is None:
            return {"model": self.model}
        answered = answers.indices if issparse(answers) else np.nonzero(~np.isnan(answers))[1]
        names = [list(self.steps_)[column] for column in np.unique(answered)]
        steps = {name: self.steps_[name] for name in names}
        return {"model": "partial-credit", "steps": steps, "lowest": self.lowest_}

    @checked
    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Estimate the difficulty of every column.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_persons, n_items), or a long frame
            1 right, 0 wrong, NaN missing; or steps, as whole numbers from 0 or from 1. In a sparse
            matrix the entries it holds are the answers: a held 0 is a wrong answer, what is not
            held is missing. A long frame has a row for each answer, with columns for person, item
            and response (named so, or ``user``, ``question``, ``correct`` and the like); results
            have a row for each person. Cross-validate it with ``GroupKFold`` over the persons.
        y : ignored
            Present for pipelines.
        """
        responses = self._responses(X)
        # Remember which categories the items have, so that other persons are read alike.
        self.steps_: dict[str, int] | None = None
        self.lowest_: int | None = None
        if max(responses.steps) > 1:
            self.steps_ = dict(zip(responses.items, responses.steps, strict=True))
            answers = self._answers(X, reset=False)
            values = answers.data if issparse(answers) else answers
            self.lowest_ = int(np.nanmin(values) > 0)
        method, model, added = self.method, self.model, self.regularisation
        self._remember(checked(fit)(responses, method=method, model=model, regularisation=added))
        matched = match_categories(responses, self.estimate_)
        persons = describe_persons(matched, self.thresholds_)
        self.ability_mean_, self.ability_sd_ = persons.mean, persons.sd
        return self

    @checked
    def score(self, X: Any, y: Any = None) -> float:  # noqa: ARG002
        """Return the mean log-likelihood of the answers in X, each given the person's others.

        An answer is predicted from the difficulties, the other answers in its row, and the
        normal distribution of the abilities of the persons that the model was fitted to. Persons
        that the model has never seen are predicted honestly so: their own answer takes no part
        in its prediction. Every answer counts, also to an item without a difficulty, which is
        predicted by its share of right answers among the persons of ``fit``: so the scores of
        two models that were fitted to the same persons are comparable, whatever their method.
        Larger is better; coin tosses have -0.693.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_persons, n_items)
            Answers as in :meth:`fit`.
        y : ignored
            Present for cross-validation.
        """
        check_is_fitted(self, "difficulty_")
        parts = [log_likelihood(block, self._predict(block)) for block in self._blocks(X)]
        answers = sum(count for _, count in parts)
        if not answers:
            raise BadUsage("score needs answers, and X has none: every cell is missing")
        return sum(value for value, _ in parts) / answers

    def predict_proba(
        self, X: object, pairs: Iterable[tuple[int, int | str]] | None = None
    ) -> npt.NDArray[np.float64]:
        """Return the probability of a right answer, given the other answers in the row.

        With steps: of every category.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_persons, n_items)
            What is known of the persons. For a cell without an answer all of the row is used,
            for a cell with one all the rest of the row.
        pairs : iterable of (row, item), optional
            The persons and items that are asked for: a row of X, and a column or its name.

        Returns
        -------
        ndarray of shape (n_persons, n_items), or (number of pairs,)
            One probability for each cell, or for each pair. For an item without a difficulty
            it is the share of right answers among the persons of :meth:`fit`. With steps there
            is one more axis, of the categories that the model has.
        """
        check_is_fitted(self, "difficulty_")
        chance = np.concatenate([self._predict(block) for block in self._blocks(X)])
        chance = chance if self.estimate_.has_steps else chance[..., 1]
        if pairs is None:
            return chance
        return np.array([chance[self._cell(pair, len(chance))] for pair in pairs], dtype=float)

    def _predict(self, block: npt.NDArray[np.int8]) -> npt.NDArray[np.float64]:
        """Return the chance of every category, ``[person, item, category]``."""
        estimate, prior = self.estimate_, NormalPrior(self.ability_mean_, self.ability_sd_)
        counts = estimate.ladder.categories
        if counts is None and estimate.answers is not None and estimate.right is not None:
            counts = np.stack([estimate.answers - estimate.right, estimate.right], axis=1)
        shares = smooth_categories(counts, estimate.steps)
        thresholds = self.thresholds_ if estimate.has_steps else self.difficulty_[:, None]
        return predict_categories(block, thresholds, prior, shares)

    def _cell(self, pair: Any, persons: int) -> tuple[int, int]:
        """Return row and column of a pair, or say what is wrong with it."""
        try:
            person, item = pair
            names = self.estimate_.items
            column = names.index(item) if isinstance(item, str) else operator.index(item)
            row = operator.index(person)
        except (TypeError, ValueError):
            row = column = -1
        if not (0 <= row < persons and 0 <= column < self.n_features_in_):
            raise BadUsage(
                f"a pair is (row of X, item): a row from 0 to {persons - 1}, and a column from 0 "
                f"to {self.n_features_in_ - 1} or its name; found {pair!r}"
            )
        return row, column


class PrivateRasch(AnswerEstimator):
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
    steps : int or sequence of int
        How many steps each column has, or all of them: 1 for right and wrong. It is public.
    lowest : int
        The lowest category as X has it; it is told, never looked for.
    design : {"unknown", "random", "complete"}
        Who answered what, as in :func:`discreet.release`.

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
    of the rows it is given, which are confidential. There is no ``score``: it would not be
    private, and in a cross-validation every fold would be one more release; scikit-learn refuses
    to begin one. :func:`discreet.plan` says how precise a release will be, before any.

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
        mechanism: AnswerMechanism = "auto",
        neighbours: Relation = "replace-one",
        ledger: str | PathLike[str] | None = None,
        at_least: float | None = None,
        missing: Codes = (),
        steps: int | Sequence[int] = 1,
        lowest: int = 0,
        design: Design = "unknown",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.max_answers = max_answers
        self.mechanism = mechanism
        self.neighbours = neighbours
        self.ledger = ledger
        self.at_least = at_least
        self.missing = missing
        self.steps = steps
        self.lowest = lowest
        self.design = design

    @checked
    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Release the difficulty of every column; spends the budget once more.

        Parameters
        ----------
        X : array-like of shape (n_persons, n_items)
            1 right, 0 wrong, NaN missing; with steps whole numbers from ``lowest``.
        y : ignored
            Present for pipelines.
        """
        responses = self._responses(X)
        steps = self._list_steps(responses.n_items)
        if self.ledger is None:
            warnings.warn(
                "PrivateRasch.fit without a ledger: every fit is another release about the same "
                "persons, and nothing adds them up; give ledger=",
                stacklevel=2,
            )
        self.published_ = checked(release)(
            responses,
            Budget(self.epsilon, self.delta, self.neighbours),
            items=dict(zip(responses.items, steps, strict=True)),
            lowest=self.lowest,
            design=self.design,
            max_answers=self.max_answers,
            mechanism=self.mechanism,
            ledger=self.ledger,
        )
        self.guarantee_ = self.published_.guarantee
        return self._remember(self.published_.estimate)

    def _list_steps(self, columns: int) -> tuple[int, ...]:
        return (self.steps,) * columns if isinstance(self.steps, int) else tuple(self.steps)

    def _store(self, answers: Any, items: Sequence[str] | None, reset: bool) -> Responses:
        """Read categories as they were told; nothing is looked for in X."""
        names = tuple(items or map(str, range(answers.shape[1])))
        steps = self._list_steps(len(names))
        check_steps(names, steps)
        if self.lowest == 0 and max(steps) == 1:
            return super()._store(answers, items, reset)
        scale = list_scale(dict(zip(names, steps, strict=True)), self.lowest)
        with advise_listed():
            store, read = store_array(answers, names, (), None, scale)
        return Responses.from_store(store, names, reading=Reading(scale=read))

    @property
    def score(self) -> NoReturn:
        """Refuse: absent for ``hasattr``, so that a cross-validation stops before any release."""
        raise AttributeError(
            "PrivateRasch has no score: computed from the answers it would not be private, and "
            "every fold of a cross-validation is another release. discreet.plan predicts the error "
            "of a release, and Rasch has a score for confidential use"
        )
