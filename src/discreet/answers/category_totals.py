"""Weighted totals of categories and moments of scores, as sums over whole persons. Confidential.

In: answers wherever they are, and integer tables made from public parameters. Out: integers. What
a person adds depends on that person's answers and the tables alone: not on the batch, the place or
the order, so memory, disk and a cluster give the same sums, bit for bit.

A person belongs to the first form that has all of the person's answers. Somebody with more answers
than the tables know of adds nothing.

Persons come in chunks that count a person's answers by kind and add up integer values of persons by
cell. A **cell** is a category of an item, item after item, the lowest first; cells of categories
that no answer is in are there too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from discreet.answers.protocol import SumJob
from discreet.counts.matrix import item_of_nodes
from discreet.counts.planes import PLAIN_PERSON_WORD, AnswerStore, SparseRows, add_up_bits
from discreet.jit import worth_compiling
from discreet.threads import map_tasks
from discreet.types import BoolArray, IndexArray, Int64Array, UInt64Array, Vector

#: Entries of sparse rows that are looked at together.
ENTRIES = 1 << 20


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
    """Some whole persons: a block of bit planes ``[node, word]``."""

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
        """Return how many answers of every kind a person gave, ``[kind, person]``."""
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
        """Say who answered an item besides these."""
        others = np.ones(len(self.held), dtype=bool)
        others[columns] = False
        nodes = np.repeat(others, self.held)
        answered = np.bitwise_or.reduce(self.right[nodes] | self.wrong[nodes], axis=0)
        bits = np.unpackbits(np.ascontiguousarray(answered).view(np.uint8), bitorder="little")
        return bits[: self.persons].astype(bool)

    def add_values(self, values: Int64Array, columns: IndexArray) -> Int64Array:
        """Return, for every cell of these items, the sum of the values of the persons in it."""
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
    """Batch of whole persons, answers one after the other, that answers like a block of planes."""

    starts: Int64Array
    item: Vector
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


Chunk = PlaneChunk | RowChunk


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


#: What is counted of all persons: how many, those without answers, those who fit no form.
FACTS = ("persons", "silent", "misfits")


@dataclass(frozen=True, eq=False)
class FormTable:
    """What somebody with so many answers to one form adds; the last entry is beyond the cap: 0.

    Attributes
    ----------
    columns
        The form's items.
    weight
        ``[answered]``: added to the cell of every answer.
    factors
        ``[answered, moment, product]``: see :mod:`discreet.answers.category_totals`.
    contributing
        ``[answered]``: how much of the person is in the moments; added beside them. None where
        that is public.
    has_takers
        Whether the person's standing is added for every answered item.
    is_complete
        Whether only persons with all answers belong to the form.
    """

    columns: IndexArray
    weight: Int64Array
    factors: Int64Array
    contributing: Int64Array | None
    has_takers: bool
    is_complete: bool

    def sizes(self, cells: Cells) -> dict[str, int]:
        """Return how many numbers of each kind are summed."""
        moments = self.factors.shape[1] + (self.contributing is not None)
        takers = len(self.columns) if self.has_takers else 0
        categories = len(cells.of_items(self.columns))
        return {"members": 1, "category": categories, "moment": moments, "takers": takers}


class CategoryTotals(SumJob):
    """One integer array: facts about all persons, then the sums of every form."""

    def __init__(self, steps: Sequence[int], forms: Sequence[FormTable]) -> None:
        self.cells, self.forms = Cells(tuple(steps)), tuple(forms)
        self.powers = power_table(self.cells.kinds)

    def block(self, store: AnswerStore) -> Int64Array:
        """Return the sums over some persons."""
        size = len(FACTS) + sum(sum(form.sizes(self.cells).values()) for form in self.forms)
        total = np.zeros(size, dtype=np.int64)
        for part in map_tasks(self._add_up, cut_chunks(store, self.cells)):
            total += part
        return total

    def _add_up(self, chunk: Chunk) -> Int64Array:
        counts = chunk.count_kinds()
        answered = counts.sum(axis=0)
        products = multiply_means(counts, self.powers)
        silent = answered == 0
        free, parts = ~silent, []
        for form in self.forms:
            mine = free & (answered == len(form.columns)) if form.is_complete else free
            if len(form.columns) < len(self.cells.steps):
                mine = mine & ~chunk.answers_other(form.columns)
            free = free & ~mine
            parts += list(self._sum_form(chunk, form, mine, counts, products))
        facts = [chunk.persons, int(silent.sum()), int(free.sum())]
        return np.concatenate([np.array(facts, dtype=np.int64), *parts])

    def _sum_form(
        self,
        chunk: Chunk,
        form: FormTable,
        mine: BoolArray,
        counts: Int64Array,
        products: Int64Array,
    ) -> Iterator[Int64Array]:
        """Yield members, cells, moments and takers of one form, whose persons are ``mine``."""
        # The last entry of a table is for whoever has more answers than it knows of.
        answered = np.minimum(counts.sum(axis=0), len(form.weight) - 1)
        weight = np.where(mine, form.weight[answered], 0)
        yield np.array([mine.sum()], dtype=np.int64)
        yield chunk.add_values(weight, form.columns)
        members = slice(None) if mine.all() else mine  # no copy where all persons have the one form
        yield find_moments(form.factors, answered[members], products[:, members]).sum(axis=1)
        if form.contributing is not None:
            yield form.contributing[answered[members]].sum(keepdims=True)
        if form.has_takers:
            # The weight times 2 (share of the best score) - 1, rounded: at most the weight.
            highest, category = np.array(self.cells.kinds).T
            score, best = category @ counts, np.maximum(highest @ counts, 1)
            standing = _divide(weight * (2 * score - best), best)
            cells = chunk.add_values(np.where(mine, standing, 0), form.columns)
            sizes = np.array([self.cells.steps[i] + 1 for i in form.columns])
            yield np.add.reduceat(cells, np.cumsum(sizes) - sizes)

    def read(self, sums: Int64Array) -> dict[str, Int64Array]:
        """Return the sums by name, those of all forms one after the other; and the facts."""
        sizes = [part for form in self.forms for part in form.sizes(self.cells).items()]
        cuts = len(FACTS) + np.cumsum([0, *(size for _, size in sizes)])
        parts = [
            (name, part) for (name, _), part in zip(sizes, np.split(sums, cuts)[1:], strict=False)
        ]
        by_name = {n: np.concatenate([p for name, p in parts if name == n]) for n, _ in parts}
        return {**dict(zip(FACTS, sums, strict=False)), **by_name}


ONE_BITS = 30
#: What stands for 1 in means and products: two of them can be multiplied in 64 bits.
ONE = 1 << ONE_BITS

#: Further bits of a factor, so that twelve rounded ones stay far below half a grid step.
FACTOR_BITS = 6

PRODUCTS = ("1", "a", "b", "c", "d", "aa", "ab", "ac", "bb", "aaa", "aab", "aaaa")
#: How far each product can be off, in units of 2^-30 (docs/privacy.md).
PRODUCT_ERRORS = (0, 1, 1, 1, 1, 3, 3, 3, 3, 5, 5, 7)

MOMENTS = 3


def power_table(groups: Sequence[tuple[int, int]]) -> Int64Array:
    """Return z, z^2, z^3, z^4 of each (steps, category), as multiples of 2^-30.

    Examples
    --------
    >>> (power_table([(2, 0), (2, 1), (4, 3)]) / ONE).tolist()
    [[-1.0, 0.0, 0.5], [1.0, 0.0, 0.25], [-1.0, 0.0, 0.125], [1.0, 0.0, 0.0625]]
    """
    scores = [Fraction(2 * category - steps, steps) for steps, category in groups]
    return np.array([[round(ONE * z**power) for z in scores] for power in range(1, 5)], np.int64)


def multiply_means(counts: Int64Array, powers: Int64Array) -> Int64Array:
    """Return the twelve products of each person, ``[product, person]``.

    Parameters
    ----------
    counts
        ``[group, person]``: answers of a person in each (steps, category).
    powers
        Of the same groups, from :func:`power_table`.
    """
    answered = np.maximum(counts.sum(axis=0), 1)
    a, b, c, d = (_divide(power @ counts, answered) for power in powers)
    aa, ab, ac, bb = _multiply(a, a), _multiply(a, b), _multiply(a, c), _multiply(b, b)
    longer = _multiply(aa, a), _multiply(aa, b), _multiply(aa, aa)
    return np.stack([np.full_like(a, ONE), a, b, c, d, aa, ab, ac, bb, *longer])


def _divide(total: Int64Array, number: Int64Array) -> Int64Array:
    """Round a quotient to the nearest whole number."""
    return np.asarray((2 * total + number) // (2 * number))


def _multiply(left: Int64Array, right: Int64Array) -> Int64Array:
    return np.asarray((left * right + (ONE >> 1)) >> ONE_BITS)


def list_factors(answered: int) -> list[dict[str, Fraction]]:
    """Return, for each moment, what the products are multiplied with; fewer of few answers.

    Examples
    --------
    >>> {name: str(factor) for name, factor in list_factors(2)[0].items()}
    {'1': '-1', 'aa': '4', 'b': '-2'}
    """
    q, first, second, third = (Fraction(answered - less) for less in range(4))
    factors = []
    if answered >= 2:
        h2 = {"aa": q / first, "b": -1 / first}
        factors.append({"1": Fraction(-1), **_times(2, h2)})
    if answered >= 3:
        below = first * second
        h3 = {"aaa": q * q / below, "ab": -3 * q / below, "c": 2 / below}
        factors.append({"a": Fraction(-3), **_times(4, h3)})
    if answered >= 4:
        below = first * second * third
        h4 = {"aaaa": q**3 / below, "aab": -6 * q * q / below, "bb": 3 * q / below}
        h4 |= {"ac": 8 * q / below, "d": -6 / below}
        factors.append({"1": Fraction(1), **_times(8, h4), **_times(-8, h2)})
    return factors


def _times(number: int, parts: dict[str, Fraction]) -> dict[str, Fraction]:
    return {name: number * part for name, part in parts.items()}


def round_factors(answered: int, scales: Sequence[Fraction]) -> Int64Array:
    """Return the factors of each moment times its scale, ``[moment, product]``, as integers."""
    table = np.zeros((len(scales), len(PRODUCTS)), dtype=np.int64)
    for row, scale, parts in zip(table, scales, list_factors(answered), strict=False):
        for name, part in parts.items():
            row[PRODUCTS.index(name)] = round(part * scale * 2**FACTOR_BITS)
    return table


def find_moments(factors: Int64Array, answered: Int64Array, products: Int64Array) -> Int64Array:
    """Return each person's moments on the grid, ``[moment, person]``.

    ``factors`` is ``[answered, moment, product]``, and ``products`` those of persons who answered
    so many.
    """
    moments = np.full((factors.shape[1], len(answered)), 1 << (ONE_BITS + FACTOR_BITS - 1))
    for moment, product in np.argwhere(factors.any(axis=0)):
        moments[moment] += factors[:, moment, product][answered] * products[product]
    return np.asarray(moments >> (ONE_BITS + FACTOR_BITS))


def bound_rounding(factors: Int64Array) -> list[Fraction]:
    """Say how far each moment of a person with these rounded factors is from exact, at most.

    In grid steps: products that are off, factors that are off by half a unit while a product is
    at most 1, and half a step of the last rounding. ``factors`` is ``[moment, product]``.
    """
    bounds = []
    for row in factors.tolist():
        if sum(map(abs, row)) >= 1 << (62 - ONE_BITS):
            raise OverflowError("the factors of a moment leave no room in 64 bits")
        products = sum(
            abs(factor) * error for factor, error in zip(row, PRODUCT_ERRORS, strict=True)
        )
        rounded = Fraction(len(row), 2) * ONE
        off = (products + rounded) / (1 << (ONE_BITS + FACTOR_BITS))
        bounds.append(off + Fraction(1, 2))
    return bounds
