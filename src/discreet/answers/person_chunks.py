"""Some persons' answers at a time, and what is added up of them, whichever way they are held.

In: a store of answers and the steps that its items are said to have. Out: chunks that count a
person's answers by kind and add up integer values of persons by cell. A **cell** is a category of
an item, item after item, the lowest first; cells of categories that no answer is in are there too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from discreet.counts.nodes import item_of_nodes
from discreet.counts.planes import (
    PLAIN_PERSON_WORD,
    AnswerStore,
    SparseRows,
    add_up_bits,
)
from discreet.jit import worth_compiling
from discreet.types import BoolArray, IndexArray, Int64Array, UInt64Array

ENTRIES = 1 << 20
"""Entries of sparse rows that are looked at together."""


@dataclass(frozen=True)
class Cells:
    """The cells of a list of items with these steps.

    Examples
    --------
    >>> Cells((2, 1)).first.tolist(), Cells((2, 1)).kinds
    ([0, 3, 5], [(1, 0), (1, 1), (2, 0), (2, 1), (2, 2)])
    """

    steps: tuple[int, ...]

    @cached_property
    def first(self) -> Int64Array:
        """The first cell of every item, and one more entry: how many cells there are."""
        return np.concatenate([[0], np.cumsum(np.array(self.steps, dtype=np.int64) + 1)])

    @cached_property
    def kinds(self) -> list[tuple[int, int]]:
        """Every (steps, category) that an answer can have."""
        return [(n_steps, k) for n_steps in sorted(set(self.steps)) for k in range(n_steps + 1)]

    @cached_property
    def kind_of(self) -> Int64Array:
        """The kind of every cell."""
        index = {kind: number for number, kind in enumerate(self.kinds)}
        return np.array([index[top, k] for top in self.steps for k in range(top + 1)])

    def of_items(self, columns: IndexArray) -> IndexArray:
        """Return the cells of these items, in their order."""
        return np.concatenate([np.arange(self.first[i], self.first[i + 1]) for i in columns])


class Chunk(Protocol):
    """Some whole persons."""

    @property
    def persons(self) -> int:
        """How many."""
        ...

    def count_kinds(self) -> Int64Array:
        """Return how many answers of every kind a person gave, ``[kind, person]``."""

    def answers_other(self, columns: IndexArray) -> BoolArray:
        """Say who answered an item besides these."""

    def add_values(self, values: Int64Array, columns: IndexArray) -> Int64Array:
        """Return, for every cell of these items, the sum of the values of the persons in it."""


def cut_chunks(store: AnswerStore, cells: Cells) -> Iterator[Chunk]:
    """Yield all persons of a store, in chunks of bounded size."""
    nodes = store.nodes
    if isinstance(nodes, SparseRows):
        yield from _cut_rows(nodes, store, cells)
        return
    size = nodes.block_persons
    compiled = worth_compiling(PLAIN_PERSON_WORD * 3 * nodes.right.size)
    for block in range(len(nodes.right)):
        persons = min(size, nodes.n_persons - block * size)
        planes = nodes.right[block], nodes.wrong[block]
        yield PlaneChunk(*planes, store.steps, cells, persons, compiled)


@dataclass(frozen=True, eq=False)
class PlaneChunk:
    """A block of bit planes ``[node, word]``; see :class:`Chunk`."""

    right: UInt64Array
    wrong: UInt64Array
    held: tuple[int, ...]
    cells: Cells
    persons: int
    compiled: bool

    @cached_property
    def _node(self) -> Int64Array:
        """The first node of every item."""
        return np.asarray(np.cumsum(self.held) - np.array(self.held))

    @cached_property
    def _cell_of_node(self) -> Int64Array:
        """The cell of those who have a node right."""
        item = item_of_nodes(self.held)
        return np.asarray(self.cells.first[item] + np.arange(len(item)) - self._node[item] + 1)

    def count_kinds(self) -> Int64Array:
        counts = np.zeros((len(self.cells.kinds), self.persons), dtype=np.int64)
        upper = self.cells.kind_of[self._cell_of_node]
        lowest = self.cells.kind_of[self.cells.first[:-1]]
        for plane, kind_of in ((self.right, upper), (self.wrong[self._node], lowest)):
            for kind in np.unique(kind_of):
                counts[kind] += self._count(plane[kind_of == kind])
        return counts

    def _count(self, plane: UInt64Array) -> Int64Array:
        total = np.zeros(64 * plane.shape[1], dtype=np.int64)
        count: Any = add_up_bits
        if self.compiled:
            from discreet.counts.pack_kernels import count_persons as count
        count(np.ascontiguousarray(plane), total)
        return total[: self.persons]

    def answers_other(self, columns: IndexArray) -> BoolArray:
        others = np.ones(len(self.held), dtype=bool)
        others[columns] = False
        nodes = np.repeat(others, self.held)
        answered = np.bitwise_or.reduce(self.right[nodes] | self.wrong[nodes], axis=0)
        bits = np.unpackbits(np.ascontiguousarray(answered).view(np.uint8), bitorder="little")
        return bits[: self.persons].astype(bool)

    def add_values(self, values: Int64Array, columns: IndexArray) -> Int64Array:
        padded = np.zeros(64 * self.right.shape[1], dtype=np.int64)
        padded[: self.persons] = values
        totals = np.zeros(self.cells.first[-1], dtype=np.int64)
        mine = np.zeros(len(self.held), dtype=bool)
        mine[columns] = True
        nodes = np.flatnonzero(np.repeat(mine, self.held))
        totals[self._cell_of_node[nodes]] = self._add(self.right, nodes, padded)
        items = np.flatnonzero(mine)
        totals[self.cells.first[items]] = self._add(self.wrong, self._node[items], padded)
        return totals[self.cells.of_items(columns)]

    def _add(self, plane: UInt64Array, rows: IndexArray, values: Int64Array) -> Int64Array:
        totals = np.zeros(len(rows), dtype=np.int64)
        if self.compiled:
            from discreet.counts.pack_kernels import add_values

            add_values(plane, rows, values, totals)
            return totals
        for index, row in enumerate(rows):
            bits = np.unpackbits(plane[row].view(np.uint8), bitorder="little")
            totals[index] = values[bits.view(bool)].sum()
        return totals


@dataclass(frozen=True, eq=False)
class RowChunk:
    """Answers one after the other, person after person; see :class:`Chunk`."""

    starts: Int64Array
    item: npt.NDArray[Any]
    category: Int64Array
    cells: Cells

    @property
    def persons(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def _cell(self) -> Int64Array:
        return np.asarray(self.cells.first[self.item] + self.category)

    @cached_property
    def _person(self) -> IndexArray:
        return np.repeat(np.arange(self.persons), np.diff(self.starts))

    def count_kinds(self) -> Int64Array:
        kinds = len(self.cells.kinds)
        code = self.cells.kind_of[self._cell] * self.persons + self._person
        return np.bincount(code, minlength=kinds * self.persons).reshape(kinds, self.persons)

    def answers_other(self, columns: IndexArray) -> BoolArray:
        others = ~np.isin(self.item, columns)
        return np.bincount(self._person[others], minlength=self.persons) > 0

    def add_values(self, values: Int64Array, columns: IndexArray) -> Int64Array:
        totals = np.zeros(self.cells.first[-1], dtype=np.int64)
        np.add.at(totals, self._cell, values[self._person])
        return totals[self.cells.of_items(columns)]


def _cut_rows(rows: SparseRows, store: AnswerStore, cells: Cells) -> Iterator[RowChunk]:
    item_of = item_of_nodes(store.steps)
    step_of = np.arange(len(item_of)) - (np.cumsum(store.steps) - store.steps)[item_of] + 1
    edges = np.searchsorted(rows.indptr, np.arange(0, rows.n_answers + ENTRIES, ENTRIES))
    edges = np.unique(np.append(np.minimum(edges, rows.n_persons), [0, rows.n_persons]))
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        span = slice(rows.indptr[low], rows.indptr[high])
        node, right = rows.item[span], rows.right[span]
        # Of somebody in category x the step x is right and x + 1 is wrong: one entry tells x.
        tells = right | (step_of[node] == 1)
        starts = np.concatenate([[0], np.cumsum(tells)])[rows.indptr[low : high + 1] - span.start]
        category = np.where(right, step_of[node], 0)[tells]
        yield RowChunk(starts, item_of[node[tells]], category, cells)
