"""Partial credit against rating scale: whether all items share the distances between steps.

In: answers with steps. Out: a likelihood ratio test by conditional likelihood. Confidential.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from discreet.answers.opening import load_answers
from discreet.answers.responses import Responses
from discreet.errors import BadUsage, DisconnectedItems
from discreet.items.groups import chi_squared_tail
from discreet.models.conditional.estimator import find_maximum
from discreet.models.item_parameters import (
    PARTIAL_CREDIT,
    RATING_SCALE,
    category_totals,
)
from discreet.results.dropped import warn_of_dropped
from discreet.results.estimate import FitWarning, WarningKind
from discreet.tables.reading import ReadingWords
from discreet.tables.survey import PSEUDO_LIKELIHOOD, refuse_weights
from discreet.tabular import Tabular, brief_repr
from discreet.text import name_some


@dataclass(frozen=True, eq=False)
class StepModelTest(Tabular):
    """The rating scale model within the partial credit model. Confidential.

    Attributes
    ----------
    statistic, degrees, p_value
        Chi-squared when the rating scale model holds, with as many degrees of freedom as partial
        credit has more free numbers.
    models, log_likelihoods, free
        Partial credit, then rating scale: their conditional log-likelihoods, and how many numbers
        are free in each.
    items, excluded
        Items compared, and those that are not, because nobody is in one of their categories.
    """

    statistic: float
    degrees: int
    p_value: float
    models: tuple[str, ...]
    log_likelihoods: tuple[float, ...]
    free: tuple[int, ...]
    items: tuple[str, ...]
    excluded: tuple[str, ...] = ()
    warnings: tuple[FitWarning, ...] = ()

    __repr__ = brief_repr

    def to_dict(self) -> dict[str, list[Any]]:
        """One row per model: model, log_likelihood, free, aic."""
        pairs = zip(self.log_likelihoods, self.free, strict=True)
        return {
            "model": list(self.models),
            "log_likelihood": list(self.log_likelihoods),
            "free": list(self.free),
            "aic": [2 * (free - value) for value, free in pairs],
        }


def compare_step_models(responses: Any, **reading: Unpack[ReadingWords]) -> StepModelTest:
    """Test whether a rating scale describes answers as well as partial credit. Confidential.

    In a rating scale the distances between the steps are the same for all items. Items with a
    category that nobody is in are left out: partial credit cannot have it, a rating scale has.

    Parameters
    ----------
    responses, reading
        As for :func:`discreet.score`.

    Raises
    ------
    BadUsage
        If answers are right and wrong, or items differ in their steps.
    DisconnectedItems
        If fewer than two items have answers in all categories.

    References
    ----------
    Andrich, D. (1978). A rating formulation for ordered response categories. Psychometrika 43(4),
    561-573. Masters, G. N. (1982). A Rasch model for partial credit scoring. Psychometrika 47(2),
    149-174.
    """
    source = load_answers(responses, reading)
    refuse_weights(
        source.sample, "the test of partial credit against rating scale", PSEUDO_LIKELIHOOD
    )
    if max(source.steps) == 1:
        raise BadUsage(
            "partial credit and rating scale are models of answers with steps; of right and wrong "
            "answers both are the Rasch model"
        )
    items, excluded = _full_items(source)
    chosen = source.select(items)
    models = (PARTIAL_CREDIT, RATING_SCALE)
    fits = [find_maximum(chosen, model) for model in models]
    statistic = 2 * (fits[0].log_likelihood - fits[1].log_likelihood)
    degrees = fits[0].free - fits[1].free
    warnings = _tell_excluded(excluded)
    warn_of_dropped(warnings)
    return StepModelTest(
        statistic=statistic,
        degrees=degrees,
        p_value=chi_squared_tail(statistic, degrees),
        models=models,
        log_likelihoods=tuple(fit.log_likelihood for fit in fits),
        free=tuple(fit.free for fit in fits),
        items=items,
        excluded=excluded,
        warnings=warnings,
    )


def _full_items(source: Responses) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return items with answers in all categories, and the others."""
    used = category_totals(source.store) > 0
    inside = np.arange(used.shape[1]) <= np.array(source.steps)[:, None]
    full = (used | ~inside).all(axis=1)
    parts = [tuple(source.items[i] for i in np.flatnonzero(which)) for which in (full, ~full)]
    if len(parts[0]) < 2:
        raise DisconnectedItems(
            f"partial credit and rating scale are compared on items with answers in all of their "
            f"categories, found {len(parts[0])} of {source.n_items}; merge rare categories"
        )
    return parts[0], parts[1]


def _tell_excluded(excluded: tuple[str, ...]) -> tuple[FitWarning, ...]:
    if not excluded:
        return ()
    sentence = (
        f"{len(excluded)} items were not compared, because nobody is in one of their categories: "
        f"{name_some(list(excluded))}"
    )
    return (FitWarning(WarningKind.NOT_COMPARED, sentence, excluded),)
