"""How far items differ: the spreads of locations and of steps, learnt from the equations.

In: normal equations of the thresholds of each item. Out: the two spreads, by their marginal
likelihood. Thresholds are normal around the location of their item plus a pattern of steps that
items share, so that noise pulls towards a rating scale first and towards equal items last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.models.noisy.totals.model import Ladders
from discreet.types import FloatArray

LOCATION_SPREADS = np.exp(np.linspace(np.log(0.05), np.log(6.0), 41))
STEP_SPREADS = np.exp(np.linspace(np.log(0.01), np.log(3.0), 37))
NO_STEP_SPREAD = 1e-3
"""What stands for none at all in a rating scale."""

USUAL_LOCATION, LOCATION_DOUBT = 0.9, 0.5
USUAL_STEP, STEP_DOUBT = 0.25, 0.7
"""Where the spreads are thought to be, and how sure that is: log-normal priors."""


@dataclass(frozen=True)
class Spreads:
    """Standard deviations of locations, and of steps around their common pattern."""

    location: float
    step: float


def learn_spreads(
    ladders: Ladders, information: FloatArray, target: FloatArray, *, rating_scale: bool
) -> Spreads:
    """Return the spreads that explain the equations best.

    ``target`` is what the equations say about the thresholds less the common pattern:
    ``information @ deviation = target`` without a prior.
    """
    steps = np.array([NO_STEP_SPREAD]) if rating_scale else STEP_SPREADS
    likelihood = np.zeros((len(LOCATION_SPREADS), len(steps)))
    for many in np.unique(ladders.steps):
        own = np.flatnonzero(ladders.steps == many)
        likelihood += _likelihood(information[own], target[own], int(many), steps)
    likelihood -= 0.5 * (np.log(LOCATION_SPREADS / USUAL_LOCATION) / LOCATION_DOUBT)[:, None] ** 2
    if not rating_scale:
        likelihood -= 0.5 * (np.log(steps / USUAL_STEP) / STEP_DOUBT) ** 2
    weight = np.exp(likelihood - likelihood.max())
    weight /= weight.sum()
    location = float(np.exp(weight.sum(axis=1) @ np.log(LOCATION_SPREADS)))
    return Spreads(location, float(np.exp(weight.sum(axis=0) @ np.log(steps))))


def _likelihood(
    information: FloatArray, target: FloatArray, many: int, steps: FloatArray
) -> FloatArray:
    """Log marginal likelihood ``[location spread, step spread]`` of items with so many steps.

    With the steps turned into their mean and contrasts, the prior is diagonal, and with the
    contrasts turned once more so is their information: then the location is all that is left.
    """
    turn = np.linalg.qr(np.column_stack([np.ones(many), np.eye(many)[:, : many - 1]]))[0]
    own = turn.T @ information[:, :many, :many] @ turn
    score = target[:, :many] @ turn
    values, vectors = np.linalg.eigh(own[:, 1:, 1:])
    values = np.maximum(values, 0.0)[:, :, None]
    link = np.einsum("ij,ijk->ik", own[:, 0, 1:], vectors)[:, :, None]
    inner = np.einsum("ij,ijk->ik", score[:, 1:], vectors)[:, :, None]
    left = 1 / (values + 1 / steps**2)
    alone = np.maximum(own[:, 0, 0, None] - (link**2 * left).sum(axis=1), 0.0)
    pull = score[:, 0, None] - (link * inner * left).sum(axis=1)
    contrasts = (inner**2 * left - np.log1p(values * steps**2)).sum(axis=(0, 1)) / 2
    variance = many * LOCATION_SPREADS[:, None, None] ** 2
    means = pull**2 / (alone + 1 / variance) - np.log1p(variance * alone)
    return np.asarray(contrasts + means.sum(axis=1) / 2)
