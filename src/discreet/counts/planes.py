"""Storage of answers in memory: bit planes and sparse rows.

In: validated answers. Out: immutable forms with one small interface. Dense data is held as bit
planes (2 bits a cell), sparse data as rows of (item, right) pairs (3 to 5 bytes an answer). Nothing
here knows item names, files or privacy.

Answers with steps are whole numbers from 0. A **node** is an item's step: of somebody in category
x, the step x counts as right and the step x + 1 as wrong, the others as missing. So a store of
nodes is one of right and wrong answers, every kernel that counts pairs of those counts pairs of
nodes, and an item of one step is its own node.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt

from discreet.counts.matrix import Recoding, item_of_nodes
from discreet.jit import worth_compiling
from discreet.threads import map_tasks
from discreet.types import (
    BoolArray,
    IndexArray,
    Int8Array,
    Int32Array,
    Int64Array,
    UInt64Array,
    Vector,
)

Numbers = TypeVar("Numbers", bound=Vector)

#: Words of 64 persons in a block: 16,384 persons, so that a tile of items stays in cache.
BLOCK_WORDS = 256

#: Cells unpacked together when planes become rows: 16 MB.
CHUNK_CELLS = 1 << 24

MISSING = np.int8(-1)

#: Seconds that NumPy needs to count the bits of one word and add them up.
PLAIN_WORD = 3e-9

#: Seconds that NumPy needs to add one word to the totals of its 64 persons.
PLAIN_PERSON_WORD = 2e-8


class AnswerStore(Protocol):
    """What all forms offer. Persons are rows, items are columns, -1 is missing.

    With steps answers are whole numbers from 0, and totals of
    right answers are totals of these numbers.
    """

    @property
    def n_persons(self) -> int: ...
    @property
    def n_items(self) -> int: ...
    @property
    def n_answers(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def nodes(self) -> BitPlanes | SparseRows:
        """Right and wrong answers to steps of items; of items with one step, to the items."""
        ...

    @property
    def steps(self) -> tuple[int, ...]:
        """Per item, its highest category: 1 for right and wrong."""
        ...

    def rows(self, start: int, stop: int) -> Int8Array:
        """Answers of the persons ``start`` to ``stop`` as a dense matrix."""
        ...

    def take(self, persons: IndexArray) -> AnswerStore:
        """Answers of these persons, given by their numbers in ascending order, as sparse rows."""
        ...

    def pick(self, persons: IndexArray) -> AnswerStore:
        """Answers of these persons, in ascending order, in the form in which they are."""
        ...

    def item_totals(self) -> tuple[Int64Array, Int64Array]:
        """Per item, how many persons answered it and how many of them had it right."""
        ...

    def person_totals(self) -> tuple[Int64Array, Int64Array]:
        """Per person, how many items were answered and how many of them right."""
        ...


@dataclass(frozen=True, eq=False)
class BitPlanes:
    """One bit plane for "right" and one for "wrong"; a missing answer is in neither.

    Attributes
    ----------
    right, wrong
        ``uint64[block, item, word]``. Person ``l`` is bit ``l % 64`` of word
        ``l // 64 % words`` in block ``l // (64 * words)``; bits past the last person are 0.
    n_persons
        How many of the bits are persons.
    """

    right: UInt64Array
    wrong: UInt64Array
    n_persons: int

    def __post_init__(self) -> None:
        for name in ("right", "wrong"):
            # The compiled loops go through whole blocks; an indexed array may lie otherwise.
            plane = np.ascontiguousarray(getattr(self, name))
            plane.setflags(write=False)
            object.__setattr__(self, name, plane)

    @property
    def n_items(self) -> int:
        return int(self.right.shape[1])

    @property
    def n_answers(self) -> int:
        return int(self.item_totals()[0].sum())

    @property
    def nbytes(self) -> int:
        return self.right.nbytes + self.wrong.nbytes

    @property
    def nodes(self) -> BitPlanes:
        return self

    @property
    def steps(self) -> tuple[int, ...]:
        return (1,) * self.n_items

    @property
    def block_persons(self) -> int:
        """Persons in a full block."""
        return 64 * int(self.right.shape[2])

    def rows(self, start: int, stop: int) -> Int8Array:
        stop = min(stop, self.n_persons)
        out = np.full((max(stop - start, 0), self.n_items), MISSING, dtype=np.int8)
        size = self.block_persons
        for block in range(start // size, -(-stop // size) if out.size else 0):
            first = block * size
            low, high = max(start, first), min(stop, first + size)
            right = _unpack(self.right[block])[low - first : high - first]
            wrong = _unpack(self.wrong[block])[low - first : high - first]
            out[low - start : high - start] = np.where(right | wrong, right, MISSING)
        return out

    def take(self, persons: IndexArray) -> SparseRows:
        step = max(64, CHUNK_CELLS // max(self.n_items, 1))
        starts = range(0, max(len(persons), 1), step)
        return join_rows([self._list_answers(persons[start : start + step]) for start in starts])

    def _list_answers(self, persons: IndexArray) -> SparseRows:
        first, last = (int(persons[0]), int(persons[-1])) if len(persons) else (0, -1)
        if last - first + 1 == len(persons):
            cells = self.rows(first, last + 1)
        else:
            cells = self.pick(persons).rows(0, len(persons))
        person, item = np.nonzero(cells >= 0)
        starts, items = row_starts(person, len(persons)), narrow_items(item, self.n_items)
        return SparseRows(starts, items, cells[cells >= 0] == 1, self.n_items)

    def pick(self, persons: IndexArray) -> BitPlanes:
        planes = empty_planes(len(persons), self.n_items)
        size = 64 * planes[0].shape[2]

        def copy(block: int) -> None:
            some = persons[block * size : (block + 1) * size]
            for plane, out in zip((self.right, self.wrong), planes, strict=True):
                bits = np.packbits(_pick_bits(plane, some), axis=1, bitorder="little")
                out[block].view(np.uint8)[:, : bits.shape[1]] = bits

        list(map_tasks(copy, range(planes[0].shape[0])))
        return BitPlanes(*planes, len(persons))

    def item_totals(self) -> tuple[Int64Array, Int64Array]:
        return self._item_totals

    @cached_property
    def _item_totals(self) -> tuple[Int64Array, Int64Array]:
        right, wrong = (_item_counts(plane) for plane in (self.right, self.wrong))
        return right + wrong, right

    def person_totals(self) -> tuple[Int64Array, Int64Array]:
        right, wrong = (self.count_bits(plane) for plane in (self.right, self.wrong))
        return right + wrong, right

    def count_bits(self, plane: UInt64Array) -> Int64Array:
        """Count the bits of each person in a plane of these persons, 64 of them to a word."""
        counts = np.zeros(plane.shape[0] * self.block_persons, dtype=np.int64)
        by_block = counts.reshape(plane.shape[0], self.block_persons)
        count, seconds = add_up_bits, PLAIN_PERSON_WORD * plane.size
        if worth_compiling(seconds):
            from discreet.counts.pack_kernels import count_persons as count

            seconds /= 10
        blocks = range(plane.shape[0])
        list(map_tasks(lambda block: count(plane[block], by_block[block]), blocks, seconds))
        return counts[: self.n_persons]


def _item_counts(plane: UInt64Array) -> Int64Array:
    """Count the bits of each item in one plane."""
    if not worth_compiling(PLAIN_WORD * plane.size):
        return np.asarray(np.bitwise_count(plane).sum(axis=(0, 2), dtype=np.int64))
    from discreet.counts.pack_kernels import count_ones

    totals, blocks = np.zeros((len(plane), plane.shape[1]), dtype=np.int64), range(len(plane))
    seconds = PLAIN_WORD * plane.size / 10
    list(map_tasks(lambda block: count_ones(plane[block], totals[block]), blocks, seconds))
    return np.asarray(totals.sum(axis=0))


def add_up_bits(plane: UInt64Array, total: Int64Array) -> None:
    """Set ``total[person]`` to the number of bits of a person, with NumPy alone."""
    total[:] = 0
    for power, digit in enumerate(_add_bits(plane)):
        bits = np.unpackbits(digit.view(np.uint8), bitorder="little")
        total += bits.astype(np.int64) << power


def _add_bits(plane: UInt64Array) -> list[UInt64Array]:
    """Add up the items of ``[item, word]`` in every bit position; return binary digits.

    Half of the numbers is added to the other half until one is left. All 64 persons of a
    word are added at once, with the logic of a hardware adder: sum is XOR, carry is majority.
    """
    digits, left = [plane], len(plane)
    while left > 1:
        half = left // 2
        odd = [digit[2 * half : left] for digit in digits]
        carry = np.zeros((half, plane.shape[1]), dtype=np.uint64)
        added = []
        for digit in digits:
            left_half, right_half = digit[:half], digit[half : 2 * half]
            either = left_half ^ right_half
            added.append(either ^ carry)
            carry = (left_half & right_half) | (either & carry)
        added.append(carry)
        odd.append(np.zeros_like(carry[: left - 2 * half]))
        digits = [np.concatenate(pair) for pair in zip(added, odd, strict=True)]
        left -= half
    return [digit[0].copy() for digit in digits] if left else []


def _unpack(plane: UInt64Array) -> Int8Array:
    """Turn ``uint64[item, word]`` into 0/1 ``int8[person, item]``."""
    octets = np.ascontiguousarray(plane).view(np.uint8)
    return np.unpackbits(octets, axis=1, bitorder="little").T.view(np.int8)


def _pick_bits(plane: UInt64Array, persons: IndexArray) -> npt.NDArray[np.uint8]:
    """Return 0 and 1, ``[item, person]``, of persons in ascending order."""
    block, inside = np.divmod(persons, 64 * plane.shape[2])
    octet, bit = inside >> 3, (inside & 7).astype(np.uint8)
    out = np.empty((plane.shape[1], len(persons)), dtype=np.uint8)
    starts = np.searchsorted(block, np.arange(plane.shape[0] + 1))
    for number, (low, high) in enumerate(pairwise(starts)):
        np.take(plane[number].view(np.uint8), octet[low:high], axis=1, out=out[:, low:high])
    out >>= bit
    out &= np.uint8(1)
    return out


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Only the answers that were given, person after person.

    Attributes
    ----------
    indptr
        ``int64[n + 1]``; person ``l`` owns the entries ``indptr[l]`` to ``indptr[l + 1]``.
    item
        Column of each answer, increasing within a person (``uint16`` up to 65,536 items).
    right
        Whether the answer was 1.
    """

    indptr: Int64Array
    item: npt.NDArray[np.uint16] | Int32Array
    right: BoolArray
    n_items: int

    def __post_init__(self) -> None:
        for array in (self.indptr, self.item, self.right):
            array.setflags(write=False)

    @property
    def n_persons(self) -> int:
        return len(self.indptr) - 1

    @property
    def n_answers(self) -> int:
        return len(self.item)

    @property
    def nbytes(self) -> int:
        return self.indptr.nbytes + self.item.nbytes + self.right.nbytes

    @property
    def nodes(self) -> SparseRows:
        return self

    @property
    def steps(self) -> tuple[int, ...]:
        return (1,) * self.n_items

    def rows(self, start: int, stop: int) -> Int8Array:
        stop = min(stop, self.n_persons)
        out = np.full((max(stop - start, 0), self.n_items), MISSING, dtype=np.int8)
        if out.shape[0]:
            span = slice(self.indptr[start], self.indptr[stop])
            person = np.repeat(np.arange(stop - start), np.diff(self.indptr[start : stop + 1]))
            out[person, self.item[span]] = self.right[span]
        return out

    def take(self, persons: IndexArray) -> SparseRows:
        lengths = np.diff(self.indptr)[persons]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        cell = np.repeat(self.indptr[persons] - starts[:-1], lengths) + np.arange(starts[-1])
        return SparseRows(starts, self.item[cell], self.right[cell], self.n_items)

    def pick(self, persons: IndexArray) -> SparseRows:
        return self.take(persons)

    @property
    def person(self) -> IndexArray:
        """The person of each answer."""
        return np.repeat(np.arange(self.n_persons), np.diff(self.indptr))

    def keep(self, stays: BoolArray) -> SparseRows:
        """Return the answers that stay; persons without any stay too."""
        starts = np.concatenate([[0], np.cumsum(stays, dtype=np.int64)])[self.indptr]
        return SparseRows(starts, self.item[stays], self.right[stays], self.n_items)

    def item_totals(self) -> tuple[Int64Array, Int64Array]:
        answers = np.bincount(self.item, minlength=self.n_items)
        right = np.bincount(self.item[self.right], minlength=self.n_items)
        return answers.astype(np.int64), right.astype(np.int64)

    def person_totals(self) -> tuple[Int64Array, Int64Array]:
        running = np.concatenate([[0], np.cumsum(self.right, dtype=np.int64)])
        return np.diff(self.indptr), np.diff(running[self.indptr])


def join_rows(parts: Sequence[SparseRows]) -> SparseRows:
    """Return the persons of all parts, which are over the same items."""
    lengths = np.concatenate([np.diff(part.indptr) for part in parts])
    return SparseRows(
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([part.item for part in parts]),
        np.concatenate([part.right for part in parts]),
        parts[0].n_items,
    )


def restrict_rows(
    store: SparseRows, columns: IndexArray
) -> tuple[Int64Array, IndexArray, BoolArray]:
    """Rows with the kept items only, renumbered."""
    position = np.full(store.n_items, -1, dtype=np.intp)
    position[columns] = np.arange(len(columns))
    item = position[store.item]
    inside = item >= 0
    running = np.concatenate([[0], np.cumsum(inside)])
    indptr = running[store.indptr].astype(np.int64)
    return indptr, item[inside], store.right[inside]


def row_starts(person: Vector, n_persons: int) -> Int64Array:
    """Return where each person's answers start, and the end, of answers in person order."""
    starts = np.zeros(n_persons + 1, dtype=np.int64)
    np.cumsum(np.bincount(person, minlength=n_persons), out=starts[1:])
    return starts


def block_shape(n_persons: int) -> tuple[int, int]:
    """Return how many blocks hold the persons, and the words of 64 persons in each."""
    words = min(BLOCK_WORDS, max(1, -(-n_persons // 64)))
    return -(-n_persons // (64 * words)), words


def prefers_planes(n_persons: int, n_items: int, n_answers: int) -> bool:
    """Say whether bit planes take less memory than sparse rows.

    Planes take a quarter of a byte a cell, rows about 4 bytes an answer.
    """
    return n_persons * n_items <= 16 * n_answers


def empty_planes(n_persons: int, n_items: int) -> tuple[UInt64Array, UInt64Array]:
    """Return two planes with nobody's answers, each starting on a cache line."""
    blocks, words = block_shape(n_persons)
    return _aligned_zeros((blocks, n_items, words)), _aligned_zeros((blocks, n_items, words))


def mark_planes(
    person: Vector, item: Vector, value: Int8Array, n_persons: int, n_items: int
) -> BitPlanes | None:
    """Fill bit planes with long rows (1, 0; -1 holds no answer) by a compiled loop.

    None where a person answers an item twice.
    """
    from discreet.counts.pack_kernels import mark_answers

    planes = empty_planes(n_persons, n_items)
    coded = as_codes(person), as_codes(item), read_only(value)
    is_repeated = mark_answers(*coded, *planes, *find_words(planes[0]))
    return None if is_repeated else BitPlanes(*planes, n_persons)


def find_words(plane: UInt64Array) -> tuple[np.uint64, np.uint64]:
    """Return by how much a word's number is shifted for its block, and what masks its place."""
    n_blocks, _, words = plane.shape
    # Only the last block is not full, so several blocks have a power of two of words.
    shift = 63 if n_blocks <= 1 else words.bit_length() - 1
    return np.uint64(shift), np.uint64((1 << shift) - 1)


def as_codes(codes: Vector) -> Int32Array:
    """Return codes in the one form that the loops are compiled for."""
    return read_only(np.ascontiguousarray(codes, dtype=np.int32))


def read_only(array: Numbers) -> Numbers:
    """Return an array that cannot be written: loops are compiled once a type."""
    view = array.view()
    view.setflags(write=False)
    return view


def _aligned_zeros(shape: tuple[int, int, int]) -> UInt64Array:
    size = math.prod(shape)
    room = np.zeros(size + 7, dtype=np.uint64)
    skip = -(room.ctypes.data // 8) % 8
    return room[skip : skip + size].reshape(shape)


def narrow_items(item: Vector, n_items: int) -> npt.NDArray[np.uint16] | Int32Array:
    """Return item codes in the narrowest type of :class:`SparseRows`."""
    return item.astype(np.uint16) if n_items <= 1 << 16 else item.astype(np.int32)


Nodes = BitPlanes | SparseRows

#: Of a released or drawn item. Categories 0 to 9 are one digit each, in digests of persons too.
MOST_STEPS = 9


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

    @cached_property
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
        planes = self.nodes
        if isinstance(planes, SparseRows):
            step_of, right = self.step_of[planes.item], planes.right
            counts = np.stack([right | (step_of == 1), right * step_of]).astype(np.int64)
            running = np.pad(np.cumsum(counts, axis=1), ((0, 0), (1, 0)))
            answered, score = np.diff(running[:, planes.indptr], axis=1)
            return answered, score
        answered = planes.count_bits(planes.wrong[:, self._first, :])
        score = np.zeros_like(answered)
        for step in range(1, max(self.steps) + 1):
            n_reached = planes.count_bits(planes.right[:, self.step_of == step, :])
            answered, score = answered + n_reached, score + step * n_reached
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
        inside = nodes.keep(item >= 0)
        items = narrow_items(item[item >= 0], len(right))
        return step_store(replace(inside, item=items, n_items=len(right)), recoding.new_steps)

    def answered(self) -> Nodes:
        """Return who answered what: a right answer, whatever was answered."""
        if isinstance(self.nodes, SparseRows):
            rows = self.nodes.keep(self.nodes.right | (self.step_of[self.nodes.item] == 1))
            item = narrow_items(self.item_of[rows.item], self.nodes.n_items)
            return SparseRows(rows.indptr, item, np.ones(len(item), dtype=bool), self.n_items)
        first = self._first
        either = np.bitwise_or.reduceat(self.nodes.right, first, axis=1)
        either |= self.nodes.wrong[:, first, :]
        return BitPlanes(either, np.zeros_like(either), self.n_persons)

    def keep(self, mask_nodes: Nodes) -> StepStore:
        """Return the answers to the items that are right in ``mask_nodes``, of this form."""
        if isinstance(self.nodes, SparseRows):
            rows, mask_rows = self.nodes, cast(SparseRows, mask_nodes)
            entries = rows.person * self.n_items + self.item_of[rows.item]
            allowed = mask_rows.person * self.n_items + mask_rows.item
            return StepStore(rows.keep(np.isin(entries, allowed)), self.steps)
        mask = cast(BitPlanes, mask_nodes).right[:, self.item_of, :]
        planes = self.nodes.right & mask, self.nodes.wrong & mask
        return StepStore(BitPlanes(*planes, self.n_persons), self.steps)


def step_store(nodes: Nodes, steps: Sequence[int]) -> AnswerStore:
    """Return a store with steps, or the nodes themselves where every item has one."""
    return nodes if all(step == 1 for step in steps) else StepStore(nodes, tuple(steps))


def join_sparse(parts: Sequence[Any]) -> Any:
    """Return the persons of all parts, which are sparse and over the same items."""
    if isinstance(parts[0], StepStore):
        return StepStore(join_rows([part.nodes for part in parts]), parts[0].steps)
    return join_rows(parts)
