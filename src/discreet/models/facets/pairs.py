"""Pairwise conditional likelihood of ratings: score and second derivatives, summed over pairs.

In: ratings of whole persons with the columns of their steps and facets, and in which groups they
are compared. Out: sums over pairs for given thresholds, which add up over batches of persons.

Of two ratings a and b of one person, the step that a passed and the step that b failed are
exchangeable given their total, whatever the person's ability (the identity of Zwinderman 1995 and
Choppin; R's ``immer_ccml`` has it with a design matrix). Nothing here forms a matrix over
item x rater x step: second derivatives are summed row by row of the parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sparse

from discreet.jit import map_tasks, thread_count
from discreet.models.facets import kernels
from discreet.types import BoolArray, FloatArray, Int32Array, Int64Array

LARGEST_LOGIT = 250.0
"""Thresholds beyond it would overflow; a fit never needs them."""


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

    @cached_property
    def index(self) -> Any:
        """The ratings of each column."""
        return kernels.index_columns(self.columns, self.n_columns)

    @cached_property
    def pattern(self) -> tuple[Int64Array, Int32Array]:
        """Which columns meet in pairs, as the pointers and entries of a sparse matrix."""
        counts = np.zeros(self.n_columns, np.int64)
        facts = self.groups.start, self.groups.of_rating, self.columns, self.index, self.n_columns
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

        def sum_draws(draws: tuple[int, int]) -> FloatArray:
            out = np.zeros((self.n_columns, draws[1] - draws[0]))
            chosen = np.ascontiguousarray(factors[:, draws[0] : draws[1]])
            kernels.spread_scores(self.columns, scores, self.person, chosen, 0, out)
            return out

        return np.hstack(list(map_tasks(sum_draws, pairwise(cuts.tolist()))))

    def person_scores(self, scores: FloatArray) -> sparse.csr_array:
        """Return each person's gradient, ``[person, column]``."""
        n_terms = self.levels.shape[1]
        both = scores.sum(axis=1)
        values = np.column_stack([scores, np.repeat(both[:, None], n_terms, axis=1)]).ravel()
        columns = np.column_stack([self.passed, self.failed, self.levels]).ravel()
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
        index = kernels.index_columns((*codes, self.levels[:, :0]), size)
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
