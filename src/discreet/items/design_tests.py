"""Tests of thresholds where persons have weights, in the place of likelihood ratios.

In: answers with a sampling design. Out: Rao and Scott's tests that groups have the same thresholds,
and that items have the same distances between their steps. Confidential.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from scipy.linalg import block_diag

from discreet.answers.responses import Responses
from discreet.answers.survey import apply_rao_scott
from discreet.errors import BadUsage
from discreet.items.groups import GroupCalibration, Split, calibrate_groups, fit_group
from discreet.models.item_parameters import RASCH
from discreet.models.weighted import DesignFit
from discreet.types import FloatArray, Model


def compare_thresholds(split: Split, model: str) -> dict[str, Any]:
    """Test that all groups have the same thresholds; there are no likelihoods.

    The items have numbers in all groups, and the same categories.
    """
    name: Model = "auto" if model == RASCH else cast("Model", model)
    fits = [_take_design(one) for one in calibrate_groups(split, "conditional", name)]
    value = [fit.estimate.thresholds[np.isfinite(fit.estimate.thresholds)] for fit in fits]
    deviation = [fit.sample.deviate(fit.threshold) for fit in fits]
    first, *others = [_weigh_scores(fit).T @ _weigh_scores(fit) for fit in fits]
    test = apply_rao_scott(
        np.concatenate([part - value[0] for part in value[1:]]),
        np.hstack([part - deviation[0] for part in deviation[1:]]),
        np.tile(first, (len(others), len(others))) + block_diag(*others),
        fits[0].estimate.degrees or 1,
    )
    nothing = float("nan")
    likelihoods = {"log_likelihood": nothing, "log_likelihoods": (nothing,) * len(fits)}
    difficulty = np.stack([fit.estimate.difficulty for fit in fits])
    return {**vars(test), **likelihoods, "difficulty": difficulty}


def compare_step_distances(answers: Responses) -> dict[str, Any]:
    """Test that all items have the same distances of steps, as in a rating scale."""
    fitted = _take_design(fit_group(answers, "conditional", "partial-credit"))
    items, steps = answers.n_items, answers.steps[0]

    def leave_distances(nodes: FloatArray) -> FloatArray:
        table = nodes.reshape(-1, items, steps)
        table = table - table.mean(axis=2, keepdims=True)
        return np.asarray(table - table.mean(axis=1, keepdims=True)).reshape(len(table), -1)

    scores = leave_distances(_weigh_scores(fitted))
    test = apply_rao_scott(
        leave_distances(fitted.estimate.thresholds.reshape(1, -1))[0],
        leave_distances(fitted.sample.deviate(fitted.threshold)),
        scores.T @ scores,
        fitted.estimate.degrees or 1,
    )
    free = items * steps - 1, items - 1 + steps - 1
    return {**vars(test), "log_likelihoods": (float("nan"),) * 2, "free": free}


def _take_design(fitted: GroupCalibration) -> DesignFit:
    if fitted.design is None:
        raise BadUsage("these answers have no weights")
    return fitted.design


def _weigh_scores(fitted: DesignFit) -> FloatArray:
    """Return the metric of a test: persons are independent; its scale cancels."""
    return np.asarray(fitted.threshold / np.sqrt(fitted.sample.weight)[:, None])
