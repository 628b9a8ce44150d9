"""The model behind the totals: steps of items, abilities on a grid, probabilities of categories.

In: thresholds and the shape of an ability distribution. Out: probabilities and densities at the
nodes of a grid, and what is public about the items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.types import BoolArray, FloatArray, IndexArray

NODES = np.linspace(-5.0, 5.0, 41)
"""Standardised abilities: ability = mean + scale * node."""

TIE = 0.4
"""How much of the squared lean is taken from the bunching: without it the density of leaning
abilities climbs again at an end of the grid."""

USUAL_GAP = 0.5
"""From one threshold of an item to the next: categories are meant to come in order."""

SHAPE_SIZE = 4
"""Numbers that describe abilities: mean, logarithm of the scale, lean, bunching."""


@dataclass(frozen=True, eq=False)
class Ladders:
    """What is public about the items.

    Attributes
    ----------
    steps
        Per item, its highest category.
    open
        ``[item, step]``: which steps an item has.
    pattern
        ``[item, step, coefficient]``: contrasts of steps that all items with as many steps share.
    usual
        The coefficients of steps that rise by the usual gap.
    location, contrast
        ``[item, step, step]``: prior precision of the thresholds of an item whose location, or
        whose steps around the pattern, have spread 1.
    """

    steps: IndexArray
    open: BoolArray
    pattern: FloatArray
    usual: FloatArray
    location: FloatArray
    contrast: FloatArray

    def precision(self, location_spread: float, step_spread: float) -> FloatArray:
        """Return the prior precision of the thresholds of each item."""
        return np.asarray(self.location / location_spread**2 + self.contrast / step_spread**2)

    @property
    def beyond(self) -> FloatArray:
        """A precision for steps that an item does not have, ``[item, step, step]``."""
        return np.asarray((~self.open)[:, :, None] * np.eye(self.open.shape[1]))

    def centre(self, thresholds: FloatArray) -> tuple[FloatArray, float]:
        """Return thresholds whose mean location is zero, and how far they moved."""
        shift = float((thresholds.sum(axis=1) / self.steps).mean())
        return np.where(self.open, thresholds - shift, 0.0), shift


def describe_items(steps: Sequence[int]) -> Ladders:
    """Gather what the numbers of steps say.

    Examples
    --------
    >>> describe_items([1, 2]).pattern[1].round(2).tolist()
    [[-0.71], [0.71]]
    """
    count = np.asarray(steps, dtype=np.intp)
    widest = int(count.max())
    is_open = np.arange(widest) < count[:, None]
    columns = [_contrasts(int(many), widest) for many in np.unique(count)]
    blocks = [
        (count == many)[:, None, None] * block
        for many, block in zip(np.unique(count), columns, strict=True)
    ]
    usual = np.concatenate([USUAL_GAP * np.arange(widest) @ block for block in columns])
    open_pairs = is_open[:, :, None] & is_open[:, None, :]
    mean = open_pairs / count[:, None, None] ** 2
    contrast = open_pairs * np.eye(widest) - mean * count[:, None, None]
    return Ladders(count, is_open, np.concatenate(blocks, axis=2), usual, mean, contrast)


def _contrasts(steps: int, widest: int) -> FloatArray:
    """Orthonormal contrasts of so many steps, the first of them linear, ``[step, contrast]``."""
    powers = np.vander(np.linspace(-1, 1, steps) if steps > 1 else np.zeros(1), steps)[:, ::-1]
    basis = np.linalg.qr(powers)[0][:, 1:]
    basis = basis * np.sign(basis[-1:] + 1e-12)
    return np.pad(basis, ((0, widest - steps), (0, 0)))


def category_node_probabilities(
    thresholds: FloatArray, is_open: BoolArray, ability: FloatArray
) -> FloatArray:
    """Probabilities ``[item, category, node]`` of the categories at the given abilities."""
    climbed = np.pad(np.cumsum(np.where(is_open, thresholds, 0.0), axis=1), ((0, 0), (1, 0)))
    has_category = np.pad(is_open, ((0, 0), (1, 0)), constant_values=True)
    logit = np.arange(has_category.shape[1])[:, None] * ability - climbed[:, :, None]
    logit = np.where(has_category[:, :, None], logit, -np.inf)
    chance = np.exp(logit - logit.max(axis=1, keepdims=True))
    return np.asarray(chance / chance.sum(axis=1, keepdims=True))


def lean_slope(shape: FloatArray, node: FloatArray) -> FloatArray:
    """How the log density moves with the lean."""
    return np.asarray(_third(node) - 2 * TIE * shape[2] * _fourth(node))


def _third(node: FloatArray) -> FloatArray:
    return np.asarray((node**3 - 3 * node) / 6)


def _fourth(node: FloatArray) -> FloatArray:
    return np.asarray((node**4 - 6 * node**2 + 3) / 24)


THIRD, FOURTH = _third(NODES), _fourth(NODES)


def ability_density(shape: FloatArray, shift: FloatArray | None = None) -> FloatArray:
    """Weights of the nodes that sum to one, ``[1 or item, node]``.

    ``shape`` holds mean, log scale, lean and bunching. ``shift``: by how much, in logits, those who
    took an item are abler than all.

    Examples
    --------
    >>> weights = ability_density(np.zeros(4))[0]
    >>> round(float(weights @ NODES**2), 3)
    1.0
    """
    moved = np.zeros(1) if shift is None else shift / np.exp(shape[1])
    node = np.clip(NODES - moved[:, None], NODES[0], NODES[-1])
    bunching = shape[3] - TIE * shape[2] ** 2
    log = -(node**2) / 2 + shape[2] * _third(node) + bunching * _fourth(node)
    weight = np.exp(log - log.max(axis=1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))
