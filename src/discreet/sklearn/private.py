"""A private release as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from os import PathLike
from typing import Any, NoReturn, Self

from discreet.answers.matrices import store_array
from discreet.answers.responses import Responses
from discreet.privacy.accounting import Budget
from discreet.privacy.protocol import check_steps
from discreet.publishing.release import release
from discreet.sklearn.rasch import AnswerEstimator
from discreet.tables.scales import list_scale
from discreet.tables.values import Codes
from discreet.types import AnswerMechanism, Design, Relation


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
        self.published_ = release(
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
        store, read = store_array(answers, names, (), None, scale)
        return Responses.from_store(store, names, scale=read)

    @property
    def score(self) -> NoReturn:
        """Refuse: absent for ``hasattr``, so that a cross-validation stops before any release."""
        raise AttributeError(
            "PrivateRasch has no score: computed from the answers it would not be private, and "
            "every fold of a cross-validation is another release; discreet.plan tells the error "
            "of a release beforehand, and Rasch has a score for confidential use"
        )
