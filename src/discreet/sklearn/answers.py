"""What both estimators share: checked answers in, abilities out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, issparse

from discreet.answers.responses import Responses
from discreet.errors import MissingExtra
from discreet.models.steps import match_categories
from discreet.persons.measures import abilities
from discreet.results.estimate import Estimate
from discreet.tables.reading import StepWords
from discreet.tables.values import Codes, ValueScoring, make_scoring

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "sklearn":
        raise
    raise MissingExtra("discreet's scikit-learn estimators", "sklearn") from error

BLOCK_CELLS = 1 << 22
"""Cells of a sparse matrix that are unfolded at a time: 4 MB."""


class AnswerEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What both estimators share: checked answers in, abilities out."""

    at_least: float | None
    missing: Codes

    def _responses(self, X: Any, *, reset: bool = True) -> Responses:
        answers = self._answers(X, reset=reset)
        names = getattr(self, "feature_names_in_", None)
        items = None if names is None else list(names)
        return self._store(answers, items, reset)

    def _store(self, answers: Any, items: Sequence[str] | None, reset: bool) -> Responses:
        return Responses.from_array(answers, items=items, **self._words(answers, reset))

    def _words(self, answers: Any, reset: bool) -> StepWords:  # noqa: ARG002
        """Say which answers there are: right and wrong, in a release and after one."""
        return {"model": "rasch"}

    def _blocks(self, X: Any) -> Iterator[npt.NDArray[np.int8]]:
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

    def transform(self, X: Any) -> npt.NDArray[np.float64]:
        """Return Warm's ability estimate of every row, as one column.

        NaN for a row without an answer to an item that has a difficulty.
        """
        check_is_fitted(self, "difficulty_")
        parts = [abilities(block, self.thresholds_).ability for block in self._blocks(X)]
        return np.concatenate(parts).reshape(-1, 1)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return the name of the one output column, ``"ability"``."""
        super().get_feature_names_out(input_features)  # checks input_features
        return np.array(["ability"], dtype=object)

    def _answers(self, X: Any, *, reset: bool) -> Any:
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
        tags.transformer_tags.preserves_dtype = []  # abilities are float64 whatever X is
        return tags


def _score_values(values: npt.NDArray[Any], scoring: ValueScoring) -> npt.NDArray[np.float64]:
    """Turn numbers into answers, and codes for missing ones into NaN."""
    numbers = values.astype(np.float64)
    numbers[np.isin(numbers, np.array(scoring.missing, dtype=np.float64))] = np.nan
    if scoring.at_least is None:
        return numbers
    return np.where(np.isnan(numbers), np.nan, numbers >= scoring.at_least)
