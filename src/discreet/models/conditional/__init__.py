"""Conditional maximum likelihood: abilities drop out, given every person's score.

Persons who answered the same items with the same score, taken together.

In: answers. Out: the different sets of answered items ("patterns"), how many persons have
which score on each, and where each person belongs. In the Rasch model nothing else about a
person matters for conditional likelihood, marginal likelihood and ability. Confidential.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet.answers.protocol import Job
from discreet.counts.planes import AnswerStore, SparseRows
from discreet.types import FloatArray, IndexArray, Int64Array, UInt64Array, Vector

#: Cells of the answer matrix looked at together: 4 MB, and 32 MB of hashes.
CHUNK_CELLS = 1 << 22


@dataclass(frozen=True, eq=False)
class Patterns:
    """Sets of answered items, and how many persons have which score on them.

    Attributes
    ----------
    indptr, item
        Pattern ``g`` holds the items ``item[indptr[g]:indptr[g + 1]]`` (positions among the
        items that were asked for, increasing; an item stands there once for each answer).
    pattern, score, persons
        One entry for each combination that occurs, sorted: ``persons`` have this ``score`` on
        this ``pattern``; sums of weights where persons have some.
    entry
        For each person the position in the three vectors above.
    n_items
        How many items were asked for.
    """

    indptr: Int64Array
    item: IndexArray
    pattern: Int64Array
    score: Int64Array
    persons: Int64Array | FloatArray
    entry: Int64Array
    n_items: int
    #: Whether persons are given by their paths too (:mod:`discreet.models.conditional.routed`).
    is_routed: ClassVar[bool] = False

    def weigh(self, weight: FloatArray) -> Patterns:
        """Return the same patterns with sums of weights in the place of numbers of persons."""
        total = np.bincount(self.entry, weight, minlength=len(self.persons))
        return replace(self, persons=total)

    @cached_property
    def repeats(self) -> bool:
        """Whether some pattern holds several answers to an item."""
        row = np.repeat(np.arange(len(self.lengths)), self.lengths)
        return bool(((np.diff(row) == 0) & (np.diff(self.item) == 0)).any())

    @property
    def lengths(self) -> Int64Array:
        """Answered items of each pattern."""
        return np.diff(self.indptr)

    def highest(self, steps: Int64Array) -> Int64Array:
        """Highest score on each pattern, of items with so many steps."""
        running = np.concatenate([[0], np.cumsum(steps[self.item])])
        return np.asarray(running[self.indptr[1:]] - running[self.indptr[:-1]])

    def items_of(self, which: Int64Array, length: int) -> IndexArray:
        """Items ``[pattern, answer]`` of patterns that all have so many."""
        return np.asarray(self.item[self.indptr[which, None] + np.arange(length)])

    def spread_items(self, which: Int64Array) -> tuple[Int64Array, IndexArray]:
        """Return the items of these patterns behind each other, and where each begins and ends."""
        ends = np.concatenate([[0], np.cumsum(self.lengths[which])])
        offset = np.repeat(self.indptr[which] - ends[:-1], np.diff(ends))
        return ends, self.item[offset + np.arange(ends[-1])]

    def answered_by(self, which: Int64Array) -> Vector:
        """Say which items these patterns hold, or how often, ``[pattern, item]``."""
        ends, item = self.spread_items(which)
        row = np.repeat(np.arange(len(which)), np.diff(ends))
        out = np.zeros((len(which), self.n_items), dtype=np.int64 if self.repeats else bool)
        if self.repeats:
            np.add.at(out, (row, item), 1)
        else:
            out[row, item] = True
        return out

    def item_sums(self, entries: npt.NDArray[np.bool_]) -> Int64Array | FloatArray:
        """Per item, the persons of these entries who answered it."""
        weight = np.bincount(
            self.pattern[entries], weights=self.persons[entries], minlength=len(self.indptr) - 1
        )
        sums = np.bincount(
            self.item, weights=np.repeat(weight, self.lengths), minlength=self.n_items
        )
        return sums if self.persons.dtype.kind == "f" else sums.astype(np.int64)


def group_counts(tried: Int64Array, right: Int64Array) -> Patterns:
    """Group persons who have so many answers to every item, ``[person, item]``, of them right."""
    rows, own = np.unique(tried, axis=0, return_inverse=True)
    item = np.repeat(np.tile(np.arange(tried.shape[1]), len(rows)), rows.ravel())
    return _count_entries(
        own.reshape(-1), right.sum(axis=1), rows.sum(axis=1), item, tried.shape[1]
    )


def _count_entries(
    pattern: IndexArray, score: Int64Array, lengths: Int64Array, item: IndexArray, n_items: int
) -> Patterns:
    """Count the persons of every pattern and score, of persons with these patterns and scores."""
    width = int(score.max(initial=0)) + 1
    code, entry, persons = np.unique(
        pattern * width + score, return_inverse=True, return_counts=True
    )
    return Patterns(
        indptr=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        item=item,
        pattern=code // width,
        score=code % width,
        persons=persons.astype(np.int64),
        entry=entry.reshape(-1).astype(np.int64),
        n_items=n_items,
    )


def group_patterns(store: AnswerStore, columns: IndexArray) -> Patterns:
    """Group persons by the set of kept items they answered and their score on it.

    Parameters
    ----------
    store
        The answers.
    columns
        Columns to look at, increasing; all others are ignored.
    """
    job = GroupPatterns(columns)
    return job.collect(job.block(store))


@dataclass(frozen=True, eq=False)
class Grouped:
    """Persons by the key of their pattern, and the items of every pattern that occurs.

    Attributes
    ----------
    key, right
        Per person; with steps the total score.
    pattern_keys, lengths, item
        Different keys in ascending order, how many items each stands for, and which.
    """

    key: UInt64Array
    right: Int64Array
    pattern_keys: UInt64Array
    lengths: Int64Array
    item: IndexArray


@dataclass(frozen=True, eq=False)
class GroupPatterns(Job[Grouped]):
    """Find the patterns of persons, of whom two numbers each are kept."""

    columns: IndexArray
    needs: str = "patterns of answers need two numbers of every person here"
    travels: bool = False
    sample: int | None = None

    def block(self, store: AnswerStore) -> Grouped:
        """Find the patterns of some persons."""
        columns, m = self.columns, len(self.columns)
        if m == store.n_items and store.n_answers == store.n_persons * m:
            pattern_keys = _item_keys(m).sum(dtype=np.uint64, keepdims=True)
            key, right = np.repeat(pattern_keys, store.n_persons), store.person_totals()[1]
            return Grouped(key, right, pattern_keys, np.array([m]), np.arange(m))
        if isinstance(store, SparseRows):
            key, right = _hash_rows(store, columns)
        else:
            key, right = _hash_planes(store, columns)
        pattern_keys, first = np.unique(key, return_index=True)
        row, item = _items_of(store, first, columns)
        return Grouped(key, right, pattern_keys, np.bincount(row, minlength=len(first)), item)

    def add(self, earlier: Grouped, later: Grouped) -> Grouped:
        """Put the persons of both behind each other, and list every pattern once."""
        keys = np.concatenate([earlier.pattern_keys, later.pattern_keys])
        lengths = np.concatenate([earlier.lengths, later.lengths])
        starts = np.cumsum(lengths) - lengths
        pattern_keys, first = np.unique(keys, return_index=True)
        taken = lengths[first]
        offset = np.repeat(starts[first] - (np.cumsum(taken) - taken), taken)
        item = np.concatenate([earlier.item, later.item])[offset + np.arange(int(taken.sum()))]
        key, right = np.append(earlier.key, later.key), np.append(earlier.right, later.right)
        return Grouped(key, right, pattern_keys, taken, item)

    def collect(self, grouped: Grouped) -> Patterns:
        """Count the persons of every pattern and score."""
        pattern = np.searchsorted(grouped.pattern_keys, grouped.key)
        about = grouped.right, grouped.lengths, grouped.item, len(self.columns)
        return _count_entries(pattern, *about)


def _item_keys(m: int) -> UInt64Array:
    """Return a random 64-bit number per item; a pattern is known by the sum of its numbers.

    Two of 10^6 different patterns share a sum with probability 3e-8. The generator is seeded,
    so that results repeat; nothing here is secret.
    """
    return np.random.default_rng(0x1DEA).integers(0, 1 << 64, size=m, dtype=np.uint64)


def _hash_rows(store: SparseRows, columns: IndexArray) -> tuple[UInt64Array, Int64Array]:
    key = np.zeros(store.n_items, dtype=np.uint64)
    inside = np.zeros(store.n_items, dtype=np.int64)
    key[columns], inside[columns] = _item_keys(len(columns)), 1
    # Differences of running sums are exact modulo 2^64.
    hashes = np.concatenate([np.zeros(1, np.uint64), np.cumsum(key[store.item])])
    rights = np.concatenate([[0], np.cumsum(inside[store.item] * store.right)])
    ends, starts = store.indptr[1:], store.indptr[:-1]
    return hashes[ends] - hashes[starts], rights[ends] - rights[starts]


def _hash_planes(store: AnswerStore, columns: IndexArray) -> tuple[UInt64Array, Int64Array]:
    key = _item_keys(len(columns))
    hashes, rights = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
    size = max(64, CHUNK_CELLS // max(store.n_items, 1))
    for start in range(0, store.n_persons, size):
        cells = store.rows(start, start + size)[:, columns]
        hashes.append((cells >= 0).astype(np.uint64) @ key)
        rights.append(np.maximum(cells, 0).sum(axis=1, dtype=np.int64))
    return np.concatenate(hashes), np.concatenate(rights)


def _items_of(
    store: AnswerStore, persons: IndexArray, columns: IndexArray
) -> tuple[IndexArray, IndexArray]:
    """List the kept items that some persons answered: position of the person, and item."""
    if isinstance(store, SparseRows):
        return _items_of_rows(store, persons, columns)
    order = np.argsort(persons)
    rows, items = [np.zeros(0, np.intp)], [np.zeros(0, np.intp)]
    size = max(64, CHUNK_CELLS // max(store.n_items, 1))
    for start in range(0, store.n_persons, size):
        part = order[np.searchsorted(persons, start, sorter=order) :]
        part = part[persons[part] < start + size]
        if len(part):
            cells = store.rows(start, start + size)[persons[part] - start]
            row, item = np.nonzero(cells[:, columns] >= 0)
            rows.append(part[row])
            items.append(item)
    row, item = np.concatenate(rows), np.concatenate(items)
    by_row = np.argsort(row, kind="stable")
    return row[by_row], item[by_row]


def _items_of_rows(
    store: SparseRows, persons: IndexArray, columns: IndexArray
) -> tuple[IndexArray, IndexArray]:
    lengths = np.diff(store.indptr)[persons]
    row = np.repeat(np.arange(len(persons)), lengths)
    offset = store.indptr[persons] - (np.cumsum(lengths) - lengths)
    answered = store.item[np.repeat(offset, lengths) + np.arange(len(row))]
    position = np.full(store.n_items, -1, dtype=np.intp)
    position[columns] = np.arange(len(columns))
    item = position[answered]
    return row[item >= 0], item[item >= 0]
