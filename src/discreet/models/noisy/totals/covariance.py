"""Covariances of many thresholds: a block for each item, and a few directions that all share.

In: blocks and shared directions. Out: variances, and one full matrix where it is asked for. A
thousand items with four steps have sixteen million covariances; everything up to the last step is
done on the parts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.models.noisy.totals.model import Ladders
from discreet.types import FloatArray


@dataclass(frozen=True, eq=False)
class Shared:
    """``block + loads core loads'``, with zeros beyond an item's steps.

    Attributes
    ----------
    block
        ``[item, step, step]``.
    loads
        ``[item, step, direction]``.
    core
        ``[direction, direction]``, symmetric.
    """

    block: FloatArray
    loads: FloatArray
    core: FloatArray

    def variances(self) -> FloatArray:
        """Variances ``[item, step]``."""
        shared = np.einsum("iar,iar->ia", self.loads @ self.core, self.loads)
        return np.asarray(self.block.diagonal(axis1=1, axis2=2) + shared)

    def turn(self, matrix: FloatArray) -> Shared:
        """Return the covariance of ``matrix @ thresholds``, item by item."""
        block = matrix @ self.block @ matrix.transpose(0, 2, 1)
        return Shared(block, matrix @ self.loads, self.core)

    def add(self, direction: FloatArray, variance: float) -> Shared:
        """Return the sum with an error along one direction ``[item, step]``."""
        core = np.pad(self.core, (0, 1))
        core[-1, -1] = variance
        return Shared(self.block, np.concatenate([self.loads, direction[..., None]], axis=2), core)

    def centre(self, ladders: Ladders) -> Shared:
        """Return the covariance of thresholds whose mean location is held at zero."""
        everywhere = ladders.open.astype(np.float64)
        weight = everywhere / ladders.steps[:, None] / len(ladders.steps)
        weighted = np.einsum("iab,ib->ia", self.block, weight)
        moved = np.einsum("ia,iar->r", weight, self.loads)
        loads = self.loads - everywhere[..., None] * moved
        core = np.zeros((len(self.core) + 2,) * 2)
        core[:-2, :-2] = self.core
        core[-2:, -2:] = [[float((weight * weighted).sum()), -1.0], [-1.0, 0.0]]
        shift_loads = np.stack([everywhere, weighted], axis=2)
        return Shared(self.block, np.concatenate([loads, shift_loads], axis=2), core)

    def fill(self, ladders: Ladders) -> FloatArray:
        """Return the full matrix over the steps that items have, item after item."""
        is_open = ladders.open
        loads = self.loads[is_open]
        out = (loads @ self.core) @ loads.T
        position = np.cumsum(is_open.ravel()).reshape(is_open.shape) - 1
        item, row, column = np.nonzero(is_open[:, :, None] & is_open[:, None, :])
        out[position[item, row], position[item, column]] += self.block[item, row, column]
        return np.asarray(out)


def location_part(ladders: Ladders) -> FloatArray:
    """Return the matrices ``[item, step, step]`` that put a location at each of its steps."""
    open_pairs = ladders.open[:, :, None] & ladders.open[:, None, :]
    return np.asarray(open_pairs / ladders.steps[:, None, None])


def around_part(ladders: Ladders) -> FloatArray:
    """Return the matrices that leave what is around the location."""
    identity = ladders.open[:, :, None] * np.eye(ladders.open.shape[1])
    return np.asarray(identity - location_part(ladders))
