"""Pairwise conditional likelihood of ratings: score and second derivatives, summed over pairs.

In: ratings of whole persons with the columns of their steps and facets, and in which groups they
are compared. Out: sums over pairs for given thresholds, which add up over batches of persons.

Of two ratings a and b of one person, the step that a passed and the step that b failed are
exchangeable given their total, whatever the person's ability (the identity of Zwinderman 1995 and
Choppin; R's ``immer_ccml`` has it with a design matrix). Nothing here forms a matrix over
item x rater x step: second derivatives are summed row by row of the parameters.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Any

import numpy as np
import scipy.linalg as linalg
import scipy.sparse as sparse

from discreet.errors import LOG, NotConverged
from discreet.jit import map_tasks, thread_count
from discreet.models.facets import kernels
from discreet.types import BoolArray, FloatArray, Int32Array, Int64Array

#: Thresholds beyond it would overflow; a fit never needs them.
LARGEST_LOGIT = 250.0
#: Vectors that one thread multiplies at a time; their sums stay in its cache.
VECTORS_AT_ONCE = 16


@dataclass(frozen=True, eq=False)
class PairGroups:
    """Groups of consecutive ratings that are compared with each other.

    Attributes
    ----------
    start
        Where each group starts, and the end.
    weight
        One over the ratings of a group: then persons with many ratings do not outweigh others.
    """

    start: Int64Array
    weight: FloatArray

    @classmethod
    def between(cls, changes: BoolArray) -> PairGroups:
        """Make groups that start where ``changes`` is true."""
        start = np.append(np.flatnonzero(changes), len(changes)).astype(np.int64)
        return cls(start, 1.0 / np.diff(start))

    @cached_property
    def of_rating(self) -> Int32Array:
        """The group of each rating."""
        return np.repeat(np.arange(len(self.weight), dtype=np.int32), np.diff(self.start))


#: Seconds that a compiled loop takes for a pair of ratings; threads start for more than a few ms.
PAIR_SECONDS = 2e-8


@dataclass(frozen=True, eq=False)
class RatingPairs:
    """The pairs of a batch of whole persons.

    Attributes
    ----------
    passed, failed
        Column of the highest step that each rating passed and of the next one; -1 where there is
        none, or none that has a number.
    levels
        Columns of the facets, ``[rating, term]``.
    groups
        Which ratings are compared.
    person
        Of each rating, counted from 0 within the batch.
    n_columns
        All columns; those of steps come first.
    """

    passed: Int32Array
    failed: Int32Array
    levels: Int32Array
    groups: PairGroups
    person: Int32Array
    n_columns: int

    @property
    def columns(self) -> tuple[Int32Array, Int32Array, Int32Array]:
        """Columns of passed steps, failed steps and facets."""
        return self.passed, self.failed, self.levels

    def stack_columns(self) -> Int32Array:
        """Return all columns of each rating, -1 for facets of a rating that has no step."""
        has_step = (self.passed >= 0) | (self.failed >= 0)
        levels = np.where(has_step[:, None], self.levels, np.int32(-1))
        return np.column_stack([self.passed, self.failed, levels])

    def score(self, thresholds: FloatArray) -> tuple[float, FloatArray]:
        """Return the weighted log-likelihood of all pairs and its gradient."""
        return self._sum_scores(thresholds, np.empty((0, 2)))

    def score_ratings(self, thresholds: FloatArray) -> FloatArray:
        """Return each rating's part of the gradient, ``[rating, passed or failed]``."""
        scores = np.empty((len(self.passed), 2))
        self._sum_scores(thresholds, scores)
        return scores

    def _sum_scores(self, thresholds: FloatArray, scores: FloatArray) -> tuple[float, FloatArray]:
        facts = self._list_facts(thresholds)
        parts = self._each_group(
            lambda groups: kernels.sum_scores(*facts, groups, self.n_columns, scores)
        )
        return sum(part[0] for part in parts), np.sum([part[1] for part in parts], axis=0)

    def multiply(self, thresholds: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return minus the second derivatives times vectors ``[column, vector]``."""
        facts, size = self._list_facts(thresholds), VECTORS_AT_ONCE
        slabs = range(0, vectors.shape[1], size)
        # Threads share the groups of one slab of vectors, or the slabs.
        ranges = self._cut_groups() if len(slabs) == 1 else [(0, len(self.groups.weight))]

        def multiply_some(task: tuple[int, tuple[int, int]]) -> FloatArray:
            some = np.ascontiguousarray(vectors[:, task[0] : task[0] + size])
            out = np.zeros_like(some)
            kernels.multiply_pairs(*facts, task[1], some, out)
            return out

        parts = list(map_tasks(multiply_some, product(slabs, ranges)))
        return np.hstack(parts) if len(ranges) == 1 else np.asarray(sum(parts))

    def second_derivatives(self, thresholds: FloatArray, size: int) -> FloatArray:
        """Return minus the second derivatives between the first ``size`` columns."""
        facts = self._list_facts(thresholds)
        return np.asarray(
            sum(self._each_group(lambda groups: kernels.sum_matrix(*facts, groups, size)))
        )

    def diagonal(self, thresholds: FloatArray) -> FloatArray:
        """Return the diagonal of minus the second derivatives."""
        facts, n = self._list_facts(thresholds), self.n_columns
        parts = self._each_group(lambda groups: kernels.sum_diagonal(*facts, groups, n))
        return np.asarray(sum(parts))

    def _list_facts(self, thresholds: FloatArray) -> Any:
        # exp(threshold) of the passed and of the failed step of every rating.
        severity = thresholds[self.levels].sum(axis=1)
        odds = []
        for nodes in (self.passed, self.failed):
            logit = np.clip(severity + thresholds[nodes], -LARGEST_LOGIT, LARGEST_LOGIT)
            odds.append(np.exp(logit, out=logit))
        return self.groups.start, self.groups.weight, self.columns, (odds[0], odds[1])

    def sum_persons(self, scores: FloatArray, factors: FloatArray) -> FloatArray:
        """Return the persons' scores times their factors ``[person, draw]``, by column."""
        cuts = np.linspace(0, factors.shape[1], thread_count() + 1).astype(int)
        table = self.stack_columns()

        def sum_draws(draws: tuple[int, int]) -> FloatArray:
            out = np.zeros((self.n_columns, draws[1] - draws[0]))
            chosen = np.ascontiguousarray(factors[:, draws[0] : draws[1]])
            kernels.spread_scores(table, scores, self.person, chosen, out)
            return out

        return np.hstack(list(map_tasks(sum_draws, pairwise(cuts.tolist()))))

    def person_scores(self, scores: FloatArray, rows: slice = slice(None)) -> sparse.csr_array:
        """Return the gradient of each person of some ratings, ``[person, column]``."""
        table, n_terms = self.stack_columns()[rows], self.levels.shape[1]
        both = np.repeat(scores[rows].sum(axis=1)[:, None], n_terms, axis=1)
        values = np.column_stack([scores[rows], both])
        person = self.person[rows] - self.person[rows][0]
        seen = (table >= 0) & (values != 0)
        cells = np.repeat(person, seen.sum(axis=1)), table[seen]
        shape = (int(person[-1]) + 1, self.n_columns)
        return sparse.csr_array((values[seen], cells), shape=shape)

    def find_links(self, codes: tuple[Int32Array, ...], labels: Any, most: int) -> Any:
        """Return which codes of different labels beat which, the first ``most`` of each or more.

        ``codes`` are those of passed and of failed steps.
        """
        size = len(labels)
        n, links = 2 * size, np.empty((2, 0), np.int32)
        while labels.any() and n > links.shape[1]:
            links = np.empty((2, n), np.int32)
            n = kernels.list_links(self.groups.start, codes, labels, most, links)
        chosen = tuple(links[:, :n])
        return sparse.csr_array((np.ones(len(chosen[0]), bool), chosen), shape=(size, size))

    def _cut_groups(self) -> list[tuple[int, int]]:
        """Return ranges of groups with about as many ratings, one for each thread."""
        starts = self.groups.start
        aims = np.linspace(0, starts[-1], thread_count() + 1)
        return list(pairwise(np.unique(np.searchsorted(starts, aims)).tolist()))

    def _each_group(self, task: Any) -> list[Any]:
        pairs = float((np.diff(self.groups.start).astype(float) ** 2).sum())
        return list(map_tasks(task, self._cut_groups(), PAIR_SECONDS * pairs))


# Solve the estimating equations of pairs: Newton steps with a sparse or a dense matrix.
#
# In: pairs, and a linear structure ``thresholds = offset + B phi`` with its constraints. Out: phi
# where the gradient is zero, and the solver of the last matrix for standard errors.


#: Parameters, and columns, up to which the matrix is factorised: a second at most.
DENSE_PARAMETERS, DENSE_COLUMNS = 1500, 3000
#: Columns of the block that preconditions conjugate gradients: steps, where they are so few.
BLOCK_COLUMNS = 2000
NEWTON_STEPS = 60
#: Logits; a longer Newton step is shortened.
LONGEST_STEP = 3.0
#: Logits that the last step may move any parameter; of many parameters ``LARGE_TOLERANCE``.
TOLERANCE = 1e-9
LARGE_TOLERANCE = 1e-7
#: Logits from zero at which a parameter counts as running away: far beyond what ratings tell.
FARTHEST = 25.0
#: Relative accuracy of conjugate gradients: the first steps are far off anyway.
ROUGH, FINE = 0.1, 1e-4


@dataclass(frozen=True, eq=False)
class LinearStructure:
    """Thresholds of all columns as ``offset + basis @ parameters``.

    Attributes
    ----------
    basis
        ``[column, parameter]``.
    offset
        What is held fixed.
    gauges
        ``[constraint, parameter]``: sums that the ratings do not determine, held at zero.
    block, n_nodes
        How many of the first parameters meet most others, and in how many of the first columns:
        they get a dense block.
    """

    basis: sparse.csr_array
    offset: FloatArray
    gauges: sparse.csr_array
    block: int
    n_nodes: int

    def thresholds(self, parameters: FloatArray) -> FloatArray:
        """Return the thresholds of all columns."""
        return np.asarray(self.offset + self.basis @ parameters)


class SecondDerivatives:
    """Minus the second derivatives at some thresholds.

    Attributes
    ----------
    matrix
        Between the first ``size`` columns; None where these are too many for a matrix.
    """

    def __init__(self, batches: Iterable[RatingPairs], thresholds: FloatArray, size: int) -> None:
        self._batches, self._thresholds = batches, thresholds
        self.matrix: Any = None
        if 0 < size <= DENSE_COLUMNS:
            self.matrix = sum(pairs.second_derivatives(thresholds, size) for pairs in batches)

    def multiply(self, vectors: FloatArray) -> FloatArray:
        """Return the product with vectors ``[column, vector]``."""
        if self.matrix is not None and len(self.matrix) == len(vectors):
            return np.asarray(self.matrix @ vectors)
        return np.asarray(sum(p.multiply(self._thresholds, vectors) for p in self._batches))

    def diagonal(self) -> FloatArray:
        """Return the diagonal, of all columns."""
        return np.asarray(sum(pairs.diagonal(self._thresholds) for pairs in self._batches))


class NormalEquations:
    """Solves ``(B'HB + G'G) x = y``: by factors where small, else by conjugate gradients.

    Attributes
    ----------
    is_dense
        Whether the matrix is factorised.
    information
        The diagonal of ``B'HB``; nearly, where it is not factorised and B adds columns up.
    """

    def __init__(
        self, batches: Iterable[RatingPairs], thresholds: FloatArray, structure: LinearStructure
    ) -> None:
        self._basis = basis = structure.basis
        size = basis.shape[1]
        touched = int(np.flatnonzero(np.diff(basis.indptr)).max(initial=-1)) + 1
        self.is_dense = size <= DENSE_PARAMETERS and touched <= DENSE_COLUMNS
        has_block = max(structure.block, structure.n_nodes) <= BLOCK_COLUMNS
        self._block = size if self.is_dense else structure.block * has_block
        n_columns = touched if self.is_dense else structure.n_nodes * has_block
        self._curvature = SecondDerivatives(batches, thresholds, n_columns)
        leading = basis[:n_columns, : self._block]
        full = np.asarray(leading.T @ (self._curvature.matrix @ leading)) if self._block else None
        if full is not None and self.is_dense:
            information = full.diagonal()
        else:
            information = (basis**2).T @ self._curvature.diagonal()
        scale = max(float(information.mean()) if size else 1.0, 1e-300)
        self.information = np.maximum(information, 1e-12 * scale)
        norms = np.sqrt(np.asarray((structure.gauges**2).sum(axis=1)).ravel())
        self._gauges = sparse.diags_array(np.sqrt(scale) / norms) @ structure.gauges
        if full is not None:
            gauges = self._gauges[:, : self._block]
            full = full + (gauges.T @ gauges).toarray()
            ridge = 1e-13 * full.diagonal().max() if self.is_dense else 1e-9 * full.diagonal()
            self._factor = linalg.cho_factor(full + np.diag(ridge + np.zeros(self._block)))

    def solve(self, vectors: FloatArray, tolerance: float = 1e-8) -> FloatArray:
        """Return the solution for vectors ``[parameter, vector]``."""
        if self.is_dense:
            return np.asarray(linalg.cho_solve(self._factor, vectors)) if self._block else vectors
        # Solve for several right-hand sides at once, each with its own step lengths.
        solution, residual = np.zeros_like(vectors), vectors.copy()
        direction = self._precondition(residual)
        product = (residual * direction).sum(0)
        goal = tolerance * np.sqrt((vectors**2).sum(0)) + 1e-300
        for _ in range(2000):
            image = self._multiply(direction)
            step = product / ((direction * image).sum(0) + 1e-300)
            solution += step * direction
            residual -= step * image
            if (np.sqrt((residual**2).sum(0)) <= goal).all():
                return solution
            ready = self._precondition(residual)
            product, before = (residual * ready).sum(0), product
            direction = ready + product / (before + 1e-300) * direction
        raise NotConverged(
            f"conjugate gradients did not solve the equations of {len(vectors):,} parameters in "
            "2,000 steps. The ratings hardly link some raters or items; leave those out and fit "
            "again."
        )

    def violate(self, parameters: FloatArray) -> FloatArray:
        """Return the gradient of the squared constraints, which inexact steps violate a little."""
        return np.asarray(self._gauges.T @ (self._gauges @ parameters))

    def _multiply(self, vectors: FloatArray) -> FloatArray:
        product = self._basis.T @ self._curvature.multiply(self._basis @ vectors)
        return np.asarray(product + self.violate(vectors))

    def _precondition(self, vectors: FloatArray) -> FloatArray:
        out = vectors / self.information[:, None]
        if self._block:
            out[: self._block] = linalg.cho_solve(self._factor, vectors[: self._block])
        return np.asarray(out)


@dataclass(frozen=True, eq=False)
class PairSolution:
    """Where the gradient is zero."""

    thresholds: FloatArray
    equations: NormalEquations
    likelihood: float
    gradient: float
    steps: int


class RunningAway(NotConverged):
    """The ratings do not bound some parameter; ``thresholds`` are the last ones."""

    def __init__(self, message: str, thresholds: FloatArray) -> None:
        super().__init__(message)
        self.thresholds = thresholds


def maximise_pairs(batches: Iterable[Any], structure: LinearStructure) -> PairSolution:
    """Find the parameters at which the gradient of the likelihood is zero.

    ``batches`` are :class:`RatingPairs`, or what else has its scores and second derivatives.
    """
    parameters = np.zeros(structure.basis.shape[1])
    thresholds = structure.thresholds(parameters)
    likelihood, gradient = _score(batches, structure, thresholds)
    length = np.inf
    for number in range(NEWTON_STEPS):
        equations = NormalEquations(batches, thresholds, structure)
        accuracy = 1e-8 if equations.is_dense else min(max(length / 10, FINE), ROUGH)
        target = gradient - equations.violate(parameters)
        step = equations.solve(target[:, None], accuracy)[:, 0]
        length = float(np.abs(step).max(initial=0.0))
        LOG.debug("step %d: likelihood %.6f, longest move %.2e", number, likelihood, length)
        # The next step would move about the square of this one, and what this one leaves.
        left = length if equations.is_dense else length * max(length, accuracy)
        if left < (TOLERANCE if equations.is_dense else LARGE_TOLERANCE):
            thresholds = structure.thresholds(parameters + step)
            likelihood, gradient = _score(batches, structure, thresholds)
            size = float(np.abs(gradient).max(initial=0.0))
            return PairSolution(thresholds, equations, likelihood, size, number + 1)
        step *= min(1.0, LONGEST_STEP / length)
        before = likelihood - 1e-9 * abs(likelihood)
        likelihood = -np.inf
        while not likelihood >= before and np.abs(step).max() > 1e-12:
            thresholds = structure.thresholds(parameters + step)
            likelihood, gradient = _score(batches, structure, thresholds)
            accepted, step = step, step / 2
        parameters = parameters + accepted
        if np.abs(parameters).max(initial=0.0) > FARTHEST:
            break
    raise RunningAway(
        f"after {number + 1} steps some parameter still moved by {length:.2g} logits: the "
        "ratings do not determine a finite value. Look for raters or steps with very few ratings.",
        thresholds,
    )


def _score(
    batches: Iterable[RatingPairs], structure: LinearStructure, thresholds: FloatArray
) -> tuple[float, FloatArray]:
    """Return log-likelihood and gradient of the parameters, over all batches."""
    parts = [pairs.score(thresholds) for pairs in batches]
    gradient = np.sum([part[1] for part in parts], axis=0)
    return sum(part[0] for part in parts), np.asarray(structure.basis.T @ gradient)
