"""Answers with steps: an item's highest category may be more than one.

In: whole numbers from 0. Out: a store with the interface of :mod:`discreet.counts.planes`. A
**node** is an item's step: of somebody in category x, the step x counts as right and the step x + 1
as wrong, the others as missing. So a store of nodes is one of right and wrong answers, every kernel
that counts pairs of those counts pairs of nodes, and an item of one step is its own node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from discreet.answers.pack import (
    Repeated,
    compact,
    find_repeated,
    pack_bits,
    pack_columns,
    store_long,
)
from discreet.counts.nodes import Recoding, item_of_nodes
from discreet.counts.planes import (
    MISSING,
    AnswerStore,
    BitPlanes,
    SparseRows,
    empty_planes,
    join_rows,
    narrow_items,
)
from discreet.jit import map_tasks
from discreet.types import BoolArray, IndexArray, Int8Array, Int64Array

Nodes = BitPlanes | SparseRows

MOST_STEPS = 9
"""Categories 0 to 9: one digit each, in digests of persons too."""


@dataclass(frozen=True, eq=False)
class StepStore:
    """Whole numbers from 0 to an item's steps; see :class:`discreet.counts.planes.AnswerStore`.

    Attributes
    ----------
    nodes
        Right and wrong answers to nodes, item after item, step after step.
    steps
        Per item, its highest category.
    """

    nodes: Nodes
    steps: tuple[int, ...]

    @cached_property
    def item_of(self) -> IndexArray:
        """The item of every node."""
        return item_of_nodes(self.steps)

    @cached_property
    def step_of(self) -> Int64Array:
        """The step of every node, from 1."""
        return np.arange(1, len(self.item_of) + 1) - self._first[self.item_of]

    @property
    def _first(self) -> Int64Array:
        """The first node of every item."""
        return np.concatenate([[0], np.cumsum(self.steps)[:-1]]).astype(np.int64)

    @property
    def n_persons(self) -> int:
        return self.nodes.n_persons

    @property
    def n_items(self) -> int:
        return len(self.steps)

    @property
    def n_answers(self) -> int:
        return int(self.item_totals()[0].sum())

    @property
    def nbytes(self) -> int:
        return self.nodes.nbytes

    def rows(self, start: int, stop: int) -> Int8Array:
        cells = self.nodes.rows(start, stop)
        lowest = (cells == 0) & (self.step_of == 1)
        code = np.where(cells == 1, self.step_of.astype(np.int8), np.where(lowest, 0, MISSING))
        return np.maximum.reduceat(code, self._first, axis=1).astype(np.int8)

    def take(self, persons: IndexArray) -> StepStore:
        return StepStore(self.nodes.take(persons), self.steps)

    def pick(self, persons: IndexArray) -> StepStore:
        return StepStore(self.nodes.pick(persons), self.steps)

    def category_totals(self) -> Int64Array:
        """Per item, how many persons are in each category; zero beyond an item's steps."""
        answers, right = self.nodes.item_totals()
        totals = np.zeros((self.n_items, max(self.steps) + 1), dtype=np.int64)
        totals[self.item_of, self.step_of] = right
        totals[:, 0] = (answers - right)[self._first]
        return totals

    def item_totals(self) -> tuple[Int64Array, Int64Array]:
        totals = self.category_totals()
        return totals.sum(axis=1), totals @ np.arange(totals.shape[1])

    def person_totals(self) -> tuple[Int64Array, Int64Array]:
        if isinstance(self.nodes, SparseRows):
            return self._sum_rows(self.nodes)
        planes = self.nodes
        answered = planes.count_bits(planes.wrong[:, self._first, :])
        score = np.zeros_like(answered)
        for step in range(1, max(self.steps) + 1):
            n_reached = planes.count_bits(planes.right[:, self.step_of == step, :])
            answered, score = answered + n_reached, score + step * n_reached
        return answered, score

    def _sum_rows(self, rows: SparseRows) -> tuple[Int64Array, Int64Array]:
        step = self.step_of[rows.item]
        counts = np.stack([rows.right | (step == 1), rows.right * step]).astype(np.int64)
        running = np.concatenate([np.zeros((2, 1), np.int64), np.cumsum(counts, axis=1)], axis=1)
        answered, score = running[:, rows.indptr[1:]] - running[:, rows.indptr[:-1]]
        return answered, score

    def recode(self, recoding: Recoding) -> AnswerStore:
        """Return the answers without categories that nobody used."""
        right, wrong, nodes = recoding.right, recoding.wrong, self.nodes
        if isinstance(nodes, BitPlanes):
            planes = nodes.right[:, right, :], nodes.wrong[:, wrong, :]
            return step_store(BitPlanes(*planes, nodes.n_persons), recoding.new_steps)
        # Within a person's rows order is kept: a higher category stays above a lower one.
        new_node = np.full((2, nodes.n_items), -1, dtype=np.int64)
        new_node[0, wrong], new_node[1, right] = np.arange(len(wrong)), np.arange(len(right))
        item = new_node[nodes.right.astype(np.intp), nodes.item]
        stays = item >= 0
        starts = np.concatenate([[0], np.cumsum(stays)])[nodes.indptr]
        rows = SparseRows(
            starts, narrow_items(item[stays], len(right)), nodes.right[stays], len(right)
        )
        return step_store(rows, recoding.new_steps)

    def answered(self) -> Nodes:
        """Return who answered what: a right answer, whatever was answered."""
        if isinstance(self.nodes, SparseRows):
            rows = self.nodes
            is_answer = rows.right | (self.step_of[rows.item] == 1)
            starts = np.concatenate([[0], np.cumsum(is_answer)])[rows.indptr]
            item = self.item_of[rows.item[is_answer]].astype(rows.item.dtype)
            return SparseRows(starts, item, np.ones(len(item), dtype=np.bool_), self.n_items)
        first = self._first
        either = np.bitwise_or.reduceat(self.nodes.right, first, axis=1)
        either |= self.nodes.wrong[:, first, :]
        return BitPlanes(either, np.zeros_like(either), self.n_persons)

    def keep(self, mask_nodes: Nodes) -> StepStore:
        """Return the answers to the items that are right in ``mask_nodes``, of this form."""
        if isinstance(self.nodes, SparseRows):
            stays = self._find_entries(self.nodes, mask_nodes)
            starts = np.concatenate([[0], np.cumsum(stays)])[self.nodes.indptr]
            item, right = self.nodes.item[stays], self.nodes.right[stays]
            return StepStore(SparseRows(starts, item, right, self.nodes.n_items), self.steps)
        mask = cast(BitPlanes, mask_nodes).right[:, self.item_of, :]
        planes = self.nodes.right & mask, self.nodes.wrong & mask
        return StepStore(BitPlanes(*planes, self.n_persons), self.steps)

    def _find_entries(self, rows: SparseRows, mask_rows: Any) -> BoolArray:
        entries = _number_entries(rows, self.item_of[rows.item], self.n_items)
        allowed = _number_entries(mask_rows, mask_rows.item, self.n_items)
        return np.isin(entries, allowed)


def _number_entries(rows: SparseRows, item: Any, n_items: int) -> Int64Array:
    person = np.repeat(np.arange(rows.n_persons), np.diff(rows.indptr))
    return np.asarray(person * n_items + item)


def step_store(nodes: Nodes, steps: Sequence[int]) -> AnswerStore:
    """Return a store with steps, or the nodes themselves where every item has one."""
    return nodes if all(step == 1 for step in steps) else StepStore(nodes, tuple(steps))


def store_codes(codes: npt.NDArray[Any], steps: Sequence[int]) -> AnswerStore:
    """Store a matrix ``[person, item]`` of whole numbers from 0; below 0 is missing."""
    n_persons = len(codes)
    right, wrong = empty_planes(n_persons, sum(steps))
    first = np.concatenate([[0], np.cumsum(steps)])

    def pack(item: int) -> None:
        column = np.ascontiguousarray(codes[:, item])
        for category in range(steps[item] + 1):
            bits = np.packbits(column == category, bitorder="little")
            if category:
                pack_bits(bits, right[:, first[item] + category - 1, :])
            if category < steps[item]:
                pack_bits(bits, wrong[:, first[item] + category, :])

    if n_persons:
        list(map_tasks(pack, range(len(steps))))
    return step_store(compact(BitPlanes(right, wrong, n_persons)), steps)


def store_long_codes(
    person: npt.NDArray[Any],
    item: npt.NDArray[Any],
    code: npt.NDArray[Any],
    n_persons: int,
    steps: Sequence[int],
) -> AnswerStore:
    """Hold long rows of whole numbers from 0 in whichever form takes less memory.

    Raises
    ------
    Repeated
        If a person answers an item twice.
    """
    repeated = find_repeated(person.astype(np.int64) * max(len(steps), 1) + item)
    if repeated is not None:
        raise Repeated(*repeated)
    n_steps = np.asarray(steps, dtype=np.int64)
    node = (np.cumsum(n_steps) - n_steps)[item] + code
    above, below = code > 0, code < n_steps[item]
    nodes = store_long(
        np.concatenate([person[above], person[below]]),
        np.concatenate([node[above] - 1, node[below]]),
        np.repeat([True, False], [int(above.sum()), int(below.sum())]),
        n_persons,
        int(n_steps.sum()),
    )
    return step_store(nodes, steps)


def store_steps(
    person: npt.NDArray[Any],
    item: npt.NDArray[Any],
    code: npt.NDArray[Any],
    n_persons: int,
    steps: Sequence[int],
) -> AnswerStore:
    """Hold long rows of categories, which are right and wrong where every item has one step."""
    if all(step == 1 for step in steps):
        return store_long(person, item, code == 1, n_persons, len(steps))
    return store_long_codes(person, item, code, n_persons, steps)


def pack_steps(columns: Sequence[npt.NDArray[Any]], steps: Sequence[int]) -> AnswerStore:
    """Hold one column of categories per item, -1 where missing."""
    if all(step == 1 for step in steps):
        return compact(pack_columns(columns))
    return store_codes(np.stack(columns, axis=1), steps)


def list_category_answers(store: AnswerStore) -> tuple[IndexArray, IndexArray, Int8Array]:
    """Return one entry per answer: person, item, category."""
    if isinstance(store, SparseRows):
        person = np.repeat(np.arange(store.n_persons), np.diff(store.indptr))
        return person, store.item.astype(np.intp), store.right.astype(np.int8)
    cells = store.rows(0, store.n_persons)
    person, item = np.nonzero(cells >= 0)
    return person, item, cells[person, item]


def join_sparse(parts: Sequence[Any]) -> Any:
    """Return the persons of all parts, which are sparse and over the same items."""
    if isinstance(parts[0], StepStore):
        return StepStore(join_rows([part.nodes for part in parts]), parts[0].steps)
    return join_rows(parts)
