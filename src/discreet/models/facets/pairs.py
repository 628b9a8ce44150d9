"""Pairwise conditional likelihood of ratings: score and second derivatives, summed over pairs.

In: ratings of whole persons with the columns of their steps and facets, and in which groups they
are compared. Out: sums over pairs for given thresholds, which add up over batches of persons.

Of two ratings a and b of one person, the step that a passed and the step that b failed are
exchangeable given their total, whatever the person's ability (the identity of Zwinderman 1995 and
Choppin; R's ``immer_ccml`` has it with a design matrix). Nothing here forms a matrix over
item x rater x step: second derivatives are summed row by row of the parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Any

import numpy as np
import scipy.sparse as sparse

from discreet.models.facets import kernels
from discreet.threads import map_tasks, thread_count
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
