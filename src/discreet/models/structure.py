"""The linear structure of thresholds: threshold = offset + B parameter.

In: the items of nodes (a node is an item's step), the model, and values that are held. Out: the map
between parameters and thresholds, and what derivatives and covariances become under it. Every
estimator solves ``B' score(offset + B parameter) = 0`` for its own score:

===================== ============================================= =====================
model                 B                                             offset
===================== ============================================= =====================
Rasch, partial credit identity                                      zero
rating scale          the item's location, and distances of steps   zero
                      that all items share
anchored items        the same for the free thresholds, zero rows   the anchors' values
                      for the anchors
unused category       one column for all steps around it            far apart, sum zero
===================== ============================================= =====================

Where moving all thresholds alike is a combination of B's columns, answers say nothing about it, and
the mean of the items' locations is set to zero. Anchors take that freedom away.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from discreet.models.laplacian import Laplacian, invert, invert_within
from discreet.types import BoolArray, FloatArray, IndexArray


@dataclass(frozen=True, eq=False)
class Structure:
    """How thresholds follow from parameters.

    Attributes
    ----------
    item
        The item of every node, ascending.
    shares_steps
        Whether all free items share the distances between steps: a rating scale.
    held
        Thresholds of the nodes that are held, NaN where a node is free; None without anchors.
    unused
        Whether a node leads into a category that nobody is in and that the model keeps; None where
        there is none. Of the steps around such a category only the sum is determined: they share a
        parameter, and lie :data:`FAR_APART` from each other, so that nobody is expected there.

    Examples
    --------
    >>> anchored = Structure(np.array([0, 1]), held=np.array([0.5, np.nan]))
    >>> anchored.spread(np.array([2.0])).tolist()
    [0.5, 2.0]
    """

    item: IndexArray
    shares_steps: bool = False
    held: FloatArray | None = None
    unused: BoolArray | None = None

    @property
    def is_anchored(self) -> bool:
        """Whether some thresholds are held."""
        return self.held is not None

    @property
    def is_identity(self) -> bool:
        """Whether every node is a parameter of its own."""
        return self.held is None and self.unused is None and not self.shares_steps

    @cached_property
    def free(self) -> IndexArray:
        """The nodes that are not held."""
        return np.arange(len(self.item)) if self.held is None else np.flatnonzero(self.is_free)

    @property
    def is_free(self) -> BoolArray:
        """Which nodes are not held."""
        if self.held is None:
            return np.ones(len(self.item), dtype=bool)
        return np.isnan(self.held)

    @cached_property
    def basis(self) -> FloatArray | None:
        """Rows of B of the free nodes; None for the identity."""
        if self.unused is not None:
            joined = np.cumsum(~np.append(False, self.unused[:-1]))[self.free]
            return np.asarray(joined[:, None] == np.unique(joined), dtype=np.float64)
        if not self.shares_steps:
            return None
        items = len(np.unique(self.item[self.free]))
        return rating_basis(items, len(self.free) // max(items, 1))

    @cached_property
    def design(self) -> FloatArray:
        """B itself, ``[node, parameter]``; the rows of some nodes are those of observations."""
        columns = np.eye(len(self.free)) if self.basis is None else self.basis
        out = np.zeros((len(self.item), columns.shape[1]))
        out[self.free] = columns
        return out

    @cached_property
    def used(self) -> BoolArray:
        """``[item, step]``: which steps there are, where all steps of an item are nodes."""
        steps = np.bincount(self.item)
        return np.asarray(np.arange(steps.max(initial=1)) < steps[:, None])

    @cached_property
    def offset(self) -> FloatArray:
        """The values of held nodes, and how far apart the steps around an unused category are."""
        offset = np.zeros(len(self.item)) if self.held is None else np.nan_to_num(self.held)
        if self.unused is None:
            return offset
        after = np.append(False, self.unused[:-1])
        apart = FAR_APART * (1.0 * (self.unused & ~after) - (after & ~self.unused))
        return np.asarray(offset + apart * self.is_free)

    def spread(self, parameter: FloatArray) -> FloatArray:
        """Thresholds of all nodes."""
        moved = self.move(parameter)
        return moved if self.held is None and self.unused is None else moved + self.offset

    def move(self, direction: FloatArray) -> FloatArray:
        """How the thresholds move with the parameters."""
        free = direction if self.basis is None else self.basis @ direction
        if self.held is None:
            return np.asarray(free)
        out = np.zeros(len(self.item))
        out[self.free] = free
        return out

    def fit(self, node: FloatArray) -> FloatArray:
        """Parameters whose thresholds are nearest to these."""
        free = node[self.free]
        if self.basis is None:
            return free
        return np.asarray(np.linalg.solve(self.basis.T @ self.basis, self.basis.T @ free))

    def project(self, node: FloatArray) -> FloatArray:
        """Find the derivatives by the parameters from those by the nodes."""
        free = node if self.held is None else node[self.free]
        return free if self.basis is None else self.basis.T @ free

    def project_matrix(self, matrix: FloatArray) -> FloatArray:
        """Find the second derivatives by the parameters from those by the nodes."""
        free = matrix if self.held is None else matrix[np.ix_(self.free, self.free)]
        return free if self.basis is None else self.basis.T @ free @ self.basis

    def expand(self, matrix: FloatArray) -> FloatArray:
        """Find the covariance of the nodes from that of the parameters; zero where held."""
        free = matrix if self.basis is None else self.basis @ matrix @ self.basis.T
        if self.held is None:
            return np.asarray(free)
        out = np.zeros((len(self.item), len(self.item)))
        out[np.ix_(self.free, self.free)] = free
        return out

    @cached_property
    def shift(self) -> FloatArray:
        """The direction in which all thresholds move alike, about which answers say nothing."""
        return self.fit(np.ones(len(self.item)))

    @cached_property
    def centre(self) -> FloatArray:
        """The mean of the items' locations, as weights of the parameters."""
        steps = np.bincount(self.item)
        return self.project(1.0 / (steps[self.item] * np.count_nonzero(steps)))

    def centred(self, parameter: FloatArray) -> FloatArray:
        """Shift the parameters so that the mean of the items' locations is zero."""
        if self.is_anchored:
            return parameter
        shift = self.shift
        return parameter - shift * (self.centre @ parameter) / (self.centre @ shift)

    def lift(self, information: FloatArray) -> FloatArray:
        """Give the shift, where the answers leave it open, an information of its own."""
        if self.is_anchored:
            return information
        scale = information.diagonal().mean() / len(information)
        return np.asarray(information + np.outer(self.shift, self.shift) * scale)

    def covariance(self, information: FloatArray) -> FloatArray:
        """Covariance of the thresholds, ``[node, node]``, from the parameters' information."""
        inverse = np.asarray(np.linalg.inv(self.lift(information)), dtype=np.float64)
        if self.is_anchored:
            return self.expand(inverse)
        # (1 - shift centre') inverse (1 - centre shift'), without products of matrices.
        weight = self.centre / (self.centre @ self.shift)
        along = inverse @ weight
        moved = np.outer(self.shift, along - self.shift * (weight @ along) / 2)
        return self.expand(inverse - moved - moved.T)

    def invert(self, laplacian: Laplacian) -> FloatArray:
        """Return the generalised inverse of a Laplacian among the thresholds of this structure."""
        if self.is_anchored:
            inverse = np.linalg.inv(self.project_matrix(laplacian.to_dense()))
            return self.expand(np.asarray(inverse, dtype=np.float64))
        return invert(laplacian) if self.basis is None else invert_within(laplacian, self.basis)

    def release(self, item: int) -> Structure:
        """Return the structure without the anchors of one item."""
        held = np.where(self.is_free | (self.item == item), np.nan, self.offset)
        return replace(self, held=held)


#: Logits: a category that is kept has a chance of at most 1e-9 beside its neighbours.
FAR_APART = 20.0


def rating_basis(m: int, steps: int) -> FloatArray:
    """Locations, then distances of all steps but the last, which follows as they sum to zero."""
    distance = np.concatenate([np.eye(steps - 1), -np.ones((1, steps - 1))])
    return np.hstack([np.repeat(np.eye(m), steps, axis=0), np.tile(distance, (m, 1))])
