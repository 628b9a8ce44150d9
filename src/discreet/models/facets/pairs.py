"""Pairwise conditional likelihood of ratings: score and second derivatives, summed over pairs.

In: ratings of whole persons with the columns of their steps and facets, and in which groups they
are compared. Out: sums over pairs for given thresholds, which add up over batches of persons.

Of two ratings a and b of one person, the step that a passed and the step that b failed are
exchangeable given their total, whatever the person's ability (the identity of Zwinderman 1995 and
Choppin; R's ``immer_ccml`` has it with a design matrix). Nothing here forms a matrix over
item x rater x step: second derivatives are summed row by row of the parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.linalg as linalg
import scipy.sparse as sparse

from discreet.errors import LOG, NotConverged
from discreet.jit import map_tasks, thread_count
from discreet.models.facets import kernels
from discreet.types import BoolArray, FloatArray, IndexArray, Int32Array, Int64Array

#: Thresholds beyond it would overflow; a fit never needs them.
LARGEST_LOGIT = 250.0


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
    n_nodes, n_columns
        Columns of steps come first; all columns.
    n_rows
        Rows of the second derivatives that are wanted, the first ones; others stay empty.
    """

    passed: Int32Array
    failed: Int32Array
    levels: Int32Array
    groups: PairGroups
    person: Int32Array
    n_nodes: int
    n_columns: int
    n_rows: int

    @property
    def columns(self) -> tuple[Int32Array, Int32Array, Int32Array]:
        """Columns of passed steps, failed steps and facets."""
        return self.passed, self.failed, self.levels

    def stack_columns(self) -> Int32Array:
        """Return all columns of each rating, -1 for facets of a rating that has no step."""
        has_step = (self.passed >= 0) | (self.failed >= 0)
        levels = np.where(has_step[:, None], self.levels, np.int32(-1))
        return np.column_stack([self.passed, self.failed, levels])

    @cached_property
    def index(self) -> Any:
        """The ratings of each column."""
        return kernels.index_columns(self.stack_columns(), self.n_columns)

    @cached_property
    def pattern(self) -> tuple[Int64Array, Int32Array]:
        """Which columns meet in pairs, as the pointers and entries of a sparse matrix."""
        counts = np.zeros(self.n_columns, np.int64)
        groups, table = self.groups, self.stack_columns()
        facts = groups.start, groups.of_rating, table, self.index, self.n_columns
        self._each_row(lambda rows: kernels.count_entries(rows, *facts, counts))
        pointers = np.concatenate([[0], np.cumsum(counts)])
        entries = np.empty(pointers[-1], np.int32)
        self._each_row(lambda rows: kernels.list_entries(rows, *facts, pointers, entries))
        return pointers, entries

    def find_odds(self, thresholds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return exp(threshold) of the passed and of the failed step of every rating."""
        severity = thresholds[self.levels].sum(axis=1)
        odds = []
        for nodes in (self.passed, self.failed):
            logit = np.clip(severity + thresholds[nodes], -LARGEST_LOGIT, LARGEST_LOGIT)
            odds.append(np.exp(logit, out=logit))
        return odds[0], odds[1]

    def score(self, thresholds: FloatArray) -> tuple[float, FloatArray]:
        """Return the weighted log-likelihood of all pairs and its gradient."""
        odds = self.find_odds(thresholds)
        facts = self.groups.start, self.groups.weight, self.columns, odds
        parts = self._each_group(lambda groups: kernels.sum_scores(*facts, groups, self.n_columns))
        return sum(part[0] for part in parts), np.sum([part[1] for part in parts], axis=0)

    def second_derivatives(self, thresholds: FloatArray) -> sparse.csr_array:
        """Return minus the second derivatives: a Laplacian between columns."""
        odds = self.find_odds(thresholds)
        pointers, entries = self.pattern
        values = np.empty(len(entries))
        groups = self.groups
        facts = groups.start, groups.weight, groups.of_rating, self.columns, odds, self.index
        self._each_row(
            lambda rows: kernels.sum_entries(rows, *facts, self.n_nodes, self.pattern, values)
        )
        shape = (self.n_columns, self.n_columns)
        return sparse.csr_array((values, entries, pointers), shape=shape, copy=False)

    def score_ratings(self, thresholds: FloatArray) -> FloatArray:
        """Return each rating's part of the gradient, ``[rating, passed or failed]``."""
        odds = self.find_odds(thresholds)
        out = np.empty((len(self.passed), 2))
        facts = self.groups.start, self.groups.weight, self.columns, odds
        self._each_group(lambda groups: kernels.rate_ratings(*facts, groups, out))
        return out

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

    def person_scores(self, scores: FloatArray) -> sparse.csr_array:
        """Return each person's gradient, ``[person, column]``."""
        n_terms = self.levels.shape[1]
        both = scores.sum(axis=1)
        values = np.column_stack([scores, np.repeat(both[:, None], n_terms, axis=1)]).ravel()
        columns = self.stack_columns().ravel()
        rows = np.repeat(self.person, 2 + n_terms)
        seen = (columns >= 0) & (values != 0)
        shape = (int(self.person[-1]) + 1, self.n_columns)
        return sparse.coo_array((values[seen], (rows[seen], columns[seen])), shape=shape).tocsr()

    def find_links(
        self, codes: Sequence[Int32Array], size: int, reach: int | None = None
    ) -> sparse.csr_array:
        """Return which codes beat which: ``codes`` are those of passed and of failed steps.

        ``reach`` looks at ratings at most so far apart only.
        """
        index = kernels.index_columns(np.column_stack(codes), size)
        facts = self.groups.start, self.groups.of_rating, tuple(codes), index
        farthest = len(self.passed) if reach is None else reach
        pointers, entries = kernels.find_links(*facts, farthest, size)
        ones = np.ones(len(entries), np.int8)
        return sparse.csr_array((ones, entries, pointers), shape=(size, size))

    def _each_group(self, task: Any) -> list[Any]:
        starts = self.groups.start
        aims = np.linspace(0, starts[-1], 4 * thread_count() + 1)
        cuts = np.unique(np.searchsorted(starts, aims))
        return list(map_tasks(task, pairwise(cuts.tolist())))

    def _each_row(self, task: Any) -> None:
        starts = self.index[0]
        aims = np.linspace(0, starts[self.n_rows], 16 * thread_count() + 1)
        cuts = np.unique(np.minimum([0, *np.searchsorted(starts, aims)], self.n_rows))
        cuts = np.unique([*cuts, self.n_rows])
        list(map_tasks(task, pairwise(cuts.tolist())))


# Solve the estimating equations of pairs: Newton steps with a sparse or a dense matrix.
#
# In: pairs, and a linear structure ``thresholds = offset + B phi`` with its constraints. Out: phi
# where the gradient is zero, and the solver of the last matrix for standard errors.


#: Up to here the matrix is factorised: a second at most.
DENSE_PARAMETERS = 1500
#: Columns of the block that preconditions conjugate gradients: items, where they are so few.
BLOCK_PARAMETERS = 2000
NEWTON_STEPS = 60
#: Logits; a longer Newton step is shortened.
LONGEST_STEP = 3.0
#: Logits that the last step may move any parameter; of many parameters ``LARGE_TOLERANCE``.
TOLERANCE = 1e-9
LARGE_TOLERANCE = 1e-7
#: Logits from zero at which a parameter counts as running away: far beyond what ratings tell.
FARTHEST = 25.0
#: The matrix is computed again where a step with an old one shrinks the gradient less than so.
SLOW = 0.1


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
    block
        How many of the first parameters meet most others: they get a dense block.
    """

    basis: sparse.csr_array
    offset: FloatArray
    gauges: sparse.csr_array
    block: int

    def thresholds(self, parameters: FloatArray) -> FloatArray:
        """Return the thresholds of all columns."""
        return np.asarray(self.offset + self.basis @ parameters)


def sum_score(batches: Iterable[RatingPairs], thresholds: FloatArray) -> tuple[float, FloatArray]:
    """Return log-likelihood and gradient over all batches."""
    likelihood, gradient = 0.0, np.zeros(len(thresholds))
    for pairs in batches:
        part, slope = pairs.score(thresholds)
        likelihood, gradient = likelihood + part, gradient + slope
    return likelihood, gradient


def sum_second_derivatives(batches: Iterable[RatingPairs], thresholds: FloatArray) -> Any:
    """Return the matrix of all batches."""
    total = None
    for pairs in batches:
        part = pairs.second_derivatives(thresholds)
        total = part if total is None else total + part
    return total


class NormalEquations:
    """Solves ``(B'HB + G'G) x = y``: by factors where small, else by conjugate gradients."""

    def __init__(self, matrix: Any, structure: LinearStructure) -> None:
        basis, gauges = structure.basis, structure.gauges
        # A large matrix is not copied to leave out some rows: vectors are spread instead.
        self._rows = _find_selection(basis)
        self.matrix = matrix if self._rows is not None else (basis.T @ matrix @ basis).tocsr()
        diagonal = self.matrix.diagonal()[self._rows if self._rows is not None else slice(None)]
        self.size = len(diagonal)
        scale = float(diagonal.mean()) if self.size else 1.0
        norms = np.sqrt(np.asarray((gauges**2).sum(axis=1)).ravel())
        self._gauges = sparse.diags_array(np.sqrt(scale) / norms) @ gauges
        self._diagonal = np.maximum(diagonal, 1e-12 * max(scale, 1e-300))
        if self.size <= DENSE_PARAMETERS:
            full = self._select(slice(None)).toarray() + (self._gauges.T @ self._gauges).toarray()
            self._factor: Any = linalg.cho_factor(full + _ridge(full))
        else:
            self._block = structure.block if structure.block <= BLOCK_PARAMETERS else 0
            self._factor = self._factor_block() if self._block else None

    def _factor_block(self) -> Any:
        block = self._select(slice(self._block)).toarray()
        gauges = self._gauges[:, : self._block]
        full = block + (gauges.T @ gauges).toarray()
        return linalg.cho_factor(full + 1e-9 * np.diag(full.diagonal()))

    def _select(self, part: slice) -> Any:
        """Return the matrix between some of the parameters."""
        rows = np.arange(self.size)[part] if self._rows is None else self._rows[part]
        return self.matrix[rows][:, rows]

    @property
    def information(self) -> FloatArray:
        """The diagonal of the matrix."""
        return np.asarray(self._diagonal)

    def multiply(self, vectors: FloatArray) -> FloatArray:
        """Return the matrix times vectors ``[parameter, vector]``, without the constraints."""
        if self._rows is None or len(self._rows) == self.matrix.shape[0]:
            return self._multiply_matrix(vectors)
        spread = np.zeros((self.matrix.shape[0], vectors.shape[1]))
        spread[self._rows] = vectors
        return np.asarray(self._multiply_matrix(spread)[self._rows])

    def _multiply_matrix(self, vectors: FloatArray) -> FloatArray:
        matrix = self.matrix
        out = np.empty_like(vectors)
        pattern = (matrix.indptr.astype(np.int64, copy=False), matrix.indices)
        cuts = np.searchsorted(pattern[0], np.linspace(0, pattern[0][-1], 4 * thread_count() + 1))
        cuts = np.unique([0, *cuts, matrix.shape[0]])
        values, dense = matrix.data, np.ascontiguousarray(vectors)
        list(
            map_tasks(
                lambda rows: kernels.multiply_rows(rows, pattern, values, dense, out),
                pairwise(cuts.tolist()),
            )
        )
        return out

    def solve(self, vectors: FloatArray, tolerance: float = 1e-8) -> FloatArray:
        """Return the solution for vectors ``[parameter, vector]``."""
        if self.size <= DENSE_PARAMETERS:
            return np.asarray(linalg.cho_solve(self._factor, vectors))
        return conjugate_gradients(self._multiply_all, self._precondition, vectors, tolerance)

    def violate(self, parameters: FloatArray) -> FloatArray:
        """Return the gradient of the squared constraints, which inexact steps violate a little."""
        return np.asarray(self._gauges.T @ (self._gauges @ parameters))

    def _multiply_all(self, vectors: FloatArray) -> FloatArray:
        return np.asarray(self.multiply(vectors) + self._gauges.T @ (self._gauges @ vectors))

    def _precondition(self, vectors: FloatArray) -> FloatArray:
        out = vectors / self._diagonal[:, None]
        if self._block:
            out[: self._block] = linalg.cho_solve(self._factor, vectors[: self._block])
        return np.asarray(out)


def _find_selection(basis: Any) -> IndexArray | None:
    """Return the rows that a basis selects, one for each parameter; None if it does more."""
    columns = basis.tocsc()
    if (np.diff(columns.indptr) != 1).any() or (columns.data != 1).any():
        return None
    return np.asarray(columns.indices, np.intp)


def _ridge(full: FloatArray) -> FloatArray:
    """Return a diagonal that keeps the factorisation of a nearly singular matrix going."""
    return np.diag(np.full(len(full), 1e-13 * max(float(full.diagonal().max(initial=0.0)), 1e-300)))


def conjugate_gradients(
    multiply: Callable[[FloatArray], FloatArray],
    precondition: Callable[[FloatArray], FloatArray],
    target: FloatArray,
    tolerance: float,
    most: int = 2000,
) -> FloatArray:
    """Solve for several right-hand sides at once, each with its own step lengths."""
    solution, residual = np.zeros_like(target), target.copy()
    direction = precondition(residual)
    product = (residual * direction).sum(0)
    goal = tolerance * np.sqrt((target**2).sum(0)) + 1e-300
    for _ in range(most):
        image = multiply(direction)
        step = product / ((direction * image).sum(0) + 1e-300)
        solution += step * direction
        residual -= step * image
        if (np.sqrt((residual**2).sum(0)) <= goal).all():
            return solution
        ready = precondition(residual)
        product, before = (residual * ready).sum(0), product
        direction = ready + product / (before + 1e-300) * direction
    raise NotConverged(
        f"conjugate gradients did not solve the equations of {len(target):,} parameters in "
        f"{most:,} steps. The ratings hardly link some raters or items; leave those out and fit "
        "again."
    )


@dataclass(frozen=True, eq=False)
class PairSolution:
    """Where the gradient is zero."""

    parameters: FloatArray
    thresholds: FloatArray
    equations: NormalEquations
    gradient: float
    steps: int


class RunningAway(NotConverged):
    """The ratings do not bound some parameter; ``thresholds`` are the last ones."""

    def __init__(self, message: str, thresholds: FloatArray) -> None:
        super().__init__(message)
        self.thresholds = thresholds


def maximise_pairs(
    batches: Iterable[RatingPairs], structure: LinearStructure, start: FloatArray | None = None
) -> PairSolution:
    """Find the parameters at which the gradient of the pairs' likelihood is zero.

    The matrix is computed again only where an old one has become slow: the gradient is cheap.
    """
    basis = structure.basis
    parameters = np.zeros(basis.shape[1]) if start is None else start.copy()
    thresholds = structure.thresholds(parameters)
    likelihood, gradient = _score(batches, structure, thresholds)
    equations: NormalEquations | None = None
    size, is_new = np.inf, False
    for number in range(NEWTON_STEPS):
        if equations is None:
            # No second name for the matrix: with 20,000 steps two of them would fill the memory.
            equations = NormalEquations(sum_second_derivatives(batches, thresholds), structure)
            is_new = True
        accuracy = 1e-8 if equations.size <= DENSE_PARAMETERS else 1e-2 if size > 1e-2 else 1e-4
        target = gradient - equations.violate(parameters)
        step = equations.solve(target[:, None], accuracy)[:, 0]
        length = float(np.abs(step).max(initial=0.0))
        LOG.debug("step %d: likelihood %.6f, longest move %.2e", number, likelihood, length)
        if length < (TOLERANCE if equations.size <= DENSE_PARAMETERS else LARGE_TOLERANCE):
            if not is_new:
                equations = None  # its memory, before the matrix is computed again
            return _finish(batches, structure, parameters + step, equations, number + 1)
        step *= min(1.0, LONGEST_STEP / length)
        trial = structure.thresholds(parameters + step)
        value, slope = _score(batches, structure, trial)
        while value < likelihood - 1e-9 * abs(likelihood) and length > 1e-12:
            step, length = step / 2, length / 2
            trial = structure.thresholds(parameters + step)
            value, slope = _score(batches, structure, trial)
        parameters, thresholds, likelihood = parameters + step, trial, value
        shrunk = np.linalg.norm(slope) / max(float(np.linalg.norm(gradient)), 1e-300)
        gradient, size = slope, length
        if shrunk > SLOW:
            equations, is_new = None, False
        else:
            is_new = False
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
    likelihood, gradient = sum_score(batches, thresholds)
    return likelihood, np.asarray(structure.basis.T @ gradient)


def _finish(
    batches: Iterable[RatingPairs],
    structure: LinearStructure,
    parameters: FloatArray,
    equations: NormalEquations | None,
    steps: int,
) -> PairSolution:
    thresholds = structure.thresholds(parameters)
    if equations is None:
        equations = NormalEquations(sum_second_derivatives(batches, thresholds), structure)
    gradient = _score(batches, structure, thresholds)[1]
    size = float(np.abs(gradient).max(initial=0.0))
    return PairSolution(parameters, thresholds, equations, size, steps)
