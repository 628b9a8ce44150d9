"""Conditional likelihood of multistage tests: given the path and the total score.

In: answers with paths. Out: patterns that evaluate themselves like those of any answers. Which
module comes next may depend on the answers before it. So what is given is the total score and the
path, and only those module scores count that the rules of the path allow (Zwitser and Maris 2015):

    log P = -sum_i sum_{k <= x_i} d_ik - log sum_{(s_1, ..., s_M)} prod_m gamma_m(s_m),

over allowed module scores that sum to the total, where gamma_m has the coefficients of the
polynomial of the answered items of a module. Given the module scores, modules are independent, and
the answers to each follow the law of any answers with that score. So all comes from sums over
pieces (the answered items of one module) and scores, with persons weighted by the chance of a
module's score given path and total; and second derivatives are those within pieces, and the
covariance of the expectations over the combinations of module scores. Confidential.

References
----------
Zwitser, R. J. and Maris, G. (2015). Conditional statistical inference with multistage testing
designs. Psychometrika 80(1), 65-84.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from discreet.answers.routed import RoutedPersons
from discreet.errors import BadUsage
from discreet.models.conditional import Patterns
from discreet.models.conditional.batches import expect_entries, plan_batches
from discreet.models.conditional.moments import BatchPlan, ConditionalSums, evaluate_conditional
from discreet.models.weighted import weigh_totals
from discreet.types import BoolArray, FloatArray, IndexArray, Int8Array, Int64Array

#: Combinations of module scores that are kept: 200 MB.
MOST_COMBINATIONS = 4_000_000


@dataclass(eq=False)
class RoutedSums(ConditionalSums):
    """Sums over persons given their paths, with the information already put together."""

    whole: FloatArray | None = None

    def information(self) -> FloatArray:
        """Return the second derivatives of the normalising part."""
        return super().information() if self.whole is None else self.whole


@dataclass(frozen=True, eq=False)
class RoutedPatterns(Patterns):
    """Pieces with all their scores, and persons with the same pieces, path and total.

    The fields of :class:`Patterns` are about pieces, and count persons by module scores; but
    ``entry`` is the group of each person, with the same path, answered items and total.

    Attributes
    ----------
    combination
        ``[combination, module]``: allowed scores of the modules, as positions among the entries
        (pattern and score) of the pieces. Paths with fewer modules have an empty piece.
    group
        Of each combination, in ascending order.
    size, total
        Persons of each group, and their total score.
    """

    combination: IndexArray
    group: IndexArray
    size: Int64Array
    total: Int64Array
    is_routed = True

    @property
    def marks(self) -> csr_array[Any, Any]:
        """Which entries make up a combination."""
        rows, modules = self.combination.shape
        ends = np.arange(rows + 1) * modules
        ones = np.ones(self.combination.size)
        return csr_array((ones, self.combination.ravel(), ends), shape=(rows, len(self.score)))

    def find_chances(self, threshold: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the chance of each combination in its group, and the groups' log norms."""
        log_weight = weigh_totals(threshold, self)[self.pattern, self.score]
        logs = log_weight[self.combination].sum(axis=1)
        starts = np.flatnonzero(np.diff(self.group, prepend=-1))
        top = np.maximum.reduceat(logs, starts)
        weight = np.exp(logs - top[self.group])
        norm = np.add.reduceat(weight, starts)
        return weight / norm[self.group], np.log(norm) + top

    def spread_chances(self, chance: FloatArray) -> csr_array[Any, Any]:
        """Return the chance of each entry in each group, ``[group, entry]``."""
        ends = np.searchsorted(self.group, np.arange(len(self.size) + 1))
        return csr_array((chance, np.arange(len(chance)), ends)) @ self.marks

    def evaluate(
        self, threshold: FloatArray, *, information: bool = True
    ) -> tuple[BatchPlan, RoutedSums]:
        """Sum the normalising part and its derivatives over all persons.

        Thresholds are ``[item, step]``, infinite beyond an item's steps. Expected numbers include
        scores that leave no choice.
        """
        chance, norm = self.find_chances(np.where(np.isfinite(threshold), threshold, np.nan))
        persons = self.spread_chances(chance).T @ self.size.astype(np.float64)
        pieces = replace(self, persons=persons)
        plan = plan_batches(pieces, threshold)
        sums = evaluate_conditional(plan, threshold, information=information)
        used = np.isfinite(threshold)
        highest = self.score == self.highest(used.sum(axis=1))[self.pattern]
        whole = sums.information() + self._vary(threshold, chance) if information else None
        expected = sums.expected + pieces.item_sums(highest)[:, None] * used
        log_norm = float(self.size @ norm)
        return plan, RoutedSums(log_norm, expected, sums.covariance, sums.products, whole)

    def _vary(self, threshold: FloatArray, chance: FloatArray) -> FloatArray:
        """Return the covariance of expectations over combinations, summed over persons."""
        reached = expect_entries(self, threshold)
        law, size = self.spread_chances(chance), self.size.astype(np.float64)
        weighted = self.marks.multiply((size[self.group] * chance)[:, None])
        together = self.marks.T @ weighted - law.T @ law.multiply(size[:, None])
        nodes = csr_array(np.nan_to_num(reached.reshape(len(reached), -1)))
        return np.asarray((nodes.T @ together @ nodes).toarray())


def group_routes(
    cells: Int8Array, routing: RoutedPersons, items: Sequence[str], steps: Sequence[int]
) -> RoutedPatterns:
    """Group persons by path, answered items and total score.

    Parameters
    ----------
    cells
        ``[person, item]``, below 0 where an answer is missing.
    routing
        The paths of these persons.
    items, steps
        Names of the columns, and their highest categories.
    """
    place = routing.place_modules(items)
    modules = int(place.max()) + 1
    inside = (place[routing.path, None] == np.arange(modules)[:, None]) & (cells >= 0)[:, None]
    score = np.where(inside, cells[:, None], 0).sum(axis=2, dtype=np.int64)
    packed = np.packbits(inside, axis=2).reshape(len(cells) * modules, -1)
    _, first, piece = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    answered = inside.reshape(len(packed), -1)[first]
    piece = piece.reshape(len(cells), modules)
    return _lay_out(answered, piece, score, np.array(steps), routing)


def _lay_out(
    answered: BoolArray,
    piece: IndexArray,
    score: Int64Array,
    steps: Int64Array,
    routing: RoutedPersons,
) -> RoutedPatterns:
    """Put pieces, their scores and the combinations of every group side by side."""
    highest = answered @ steps
    first = np.cumsum(highest + 1) - highest - 1
    pattern = np.repeat(np.arange(len(answered)), highest + 1)
    persons = np.bincount((first[piece] + score).ravel(), minlength=len(pattern))
    code = np.column_stack([routing.path, piece, score.sum(axis=1)])
    routes, entry, size = np.unique(code, axis=0, return_inverse=True, return_counts=True)
    parts = list(_combine(routes, highest, first, routing))
    return RoutedPatterns(
        indptr=np.concatenate([[0], np.cumsum(answered.sum(axis=1))]),
        item=np.nonzero(answered)[1],
        pattern=pattern,
        score=np.arange(len(pattern)) - first[pattern],
        persons=persons,
        entry=entry.reshape(-1),
        n_items=len(steps),
        combination=np.concatenate([part for part, _ in parts]),
        group=np.concatenate([group for _, group in parts]),
        size=size,
        total=routes[:, -1],
    )


def _combine(
    routes: Int64Array, highest: Int64Array, first: Int64Array, routing: RoutedPersons
) -> Iterator[tuple[IndexArray, IndexArray]]:
    """Yield the allowed combinations of the groups of a route: entries, and the group of each."""
    paths, kept = list(routing.design.paths), 0
    starts = np.flatnonzero((np.diff(routes[:, :-1], axis=0, prepend=-1) != 0).any(axis=1))
    for start, stop in zip(starts, [*starts[1:], len(routes)], strict=True):
        path, pieces, totals = paths[routes[start, 0]], routes[start, 1:-1], routes[start:stop, -1]
        kept += int(np.prod(highest[pieces] + 1))
        if kept > MOST_COMBINATIONS:
            raise BadUsage(
                f"the module scores of these paths have more than {MOST_COMBINATIONS:,} "
                "combinations; use fewer or shorter modules, or the method 'marginal'"
            )
        every = np.stack(np.meshgrid(*map(np.arange, highest[pieces] + 1), indexing="ij"), axis=-1)
        scores = every.reshape(-1, len(pieces))
        place = np.searchsorted(totals, scores.sum(axis=1))
        place[place == len(totals)] = 0
        allowed = routing.design.allow(path, scores[:, : len(routing.design.paths[path])])
        allowed &= totals[place] == scores.sum(axis=1)
        order = np.flatnonzero(allowed)[np.argsort(place[allowed], kind="stable")]
        yield first[pieces] + scores[order], start + place[order]
