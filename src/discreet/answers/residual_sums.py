"""Residuals of whole persons around a public centre, summed in integers. Confidential.

In: answers wherever they are, and integer tables made from public values (:class:`Centre`). Out:
integers. A person with the answered items S, k of them right, adds ``w (x - e) d`` to the total of
every answered item: e is the expected answer at the ability at which k is expected of S, d a
public factor of the item, and w <= 1 shortens what is longer than a public length. Besides, the
person adds one to the cell of (form, answers, share right), and one to each answered item.

Everything is whole numbers: the ability is looked up in a table, and the only floating-point
operations are one division and one root a person, which IEEE 754 rounds in one way. So what a
person adds is a function of the own answers and the tables alone, whatever the batch, the place,
the order and the machine, and the squared length is checked after the last rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np

from discreet.answers.logistic import logistic
from discreet.answers.protocol import SumJob
from discreet.counts.planes import AnswerStore, SparseRows
from discreet.types import BoolArray, FloatArray, Int64Array

#: Parts of one answer in expectations, parts of a logit in centres, and steps of the length.
ANSWER_BITS, CENTRE_BITS, LENGTH_BITS = 14, 10, 20
#: Further bits of an item's factor.
FACTOR_BITS = 10
#: Most steps of an answer, as a power of 2: squares of 20,000 of them are below 2^63.
UNIT_BITS = 24
#: Abilities of the table, and how many logits it goes beyond the centres.
ABILITIES, BEYOND = 512, 9.0
#: Variance of an answer below which an item's factor grows no more.
LEAST_VARIANCE = 0.02
#: An item's factor is this power of the mean variance of its answers.
FACTOR_POWER = -0.75
#: Answers that are looked at together.
ENTRIES = 1 << 20


@dataclass(frozen=True, eq=False)
class Centre:
    """Difficulties around which residuals are taken, as tables.

    Attributes
    ----------
    expected
        ``[ability, item]``: probability of a right answer, in 1 / 2^14; rising with ability.
    factor
        ``[item]``: steps of the length for an answer that differs by 1 from what is expected.
    longest
        Largest length of what one person adds, in steps: 2^20.
    """

    expected: Int64Array
    factor: Int64Array
    longest: int = 1 << LENGTH_BITS

    @classmethod
    def around(cls, centre: Int64Array, typical: float, clip: float) -> Centre:
        """Return the tables around centres in 1 / 2^10 logits.

        ``clip`` is the longest contribution as a share of that of a person with so many typical
        answers; abilities are thought to be standard normal for this, and for nothing else.
        """
        logit = np.minimum(np.abs(centre), 20 << CENTRE_BITS) * np.sign(centre) / 2**CENTRE_BITS
        ability = np.linspace(logit.min() - BEYOND, logit.max() + BEYOND, ABILITIES)
        exact = logistic(ability[:, None] - logit) * 2**ANSWER_BITS
        expected = np.maximum.accumulate(np.rint(exact).astype(np.int64))
        normal = np.linspace(-4, 4, 41)
        weight = np.exp(-(normal**2) / 2)
        chance = logistic(normal[:, None] - logit)
        variance = weight @ (chance * (1 - chance)) / weight.sum()
        variance = np.maximum(variance, LEAST_VARIANCE)
        square = np.mean(variance ** (1 + 2 * FACTOR_POWER)) * (typical - 1)
        unit = variance**FACTOR_POWER * 2.0**LENGTH_BITS / (clip * np.sqrt(square))
        factor = np.minimum(unit, 2.0**UNIT_BITS) * 2.0 ** (FACTOR_BITS - ANSWER_BITS)
        return cls(expected, np.rint(factor).astype(np.int64))

    @property
    def unit(self) -> FloatArray:
        """Steps of the length that a whole answer of each item makes."""
        return np.asarray(self.factor * 2.0 ** (ANSWER_BITS - FACTOR_BITS))


@dataclass(frozen=True, eq=False)
class Contribution:
    """What some persons add: ``gap`` for each of their answers, and the share w of the residual."""

    gap: Int64Array
    share: Int64Array


def sum_persons(rows: SparseRows, values: Int64Array) -> Int64Array:
    """Return the sum of a whole number of each answer, by person.

    Exact also where the running sum goes round 2^64: a person's own sum does not.
    """
    running = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
    return np.diff(running[rows.indptr])


def contribute(rows: SparseRows, centre: Centre) -> Contribution:
    """Return what every person adds to the items that the person answered.

    Examples
    --------
    >>> rows = SparseRows(np.array([0, 2]), np.array([0, 1]), np.array([True, False]), 2)
    >>> contribute(rows, Centre.around(np.array([0, 0]), 2, 1.0)).gap.tolist()
    [734909, -747943]
    """
    from discreet.answers.residual_kernels import add_residuals

    gap, share = np.zeros(len(rows.item), dtype=np.int64), np.zeros(rows.n_persons, dtype=np.int64)
    answers = rows.indptr, rows.item.astype(np.int64), rows.right
    add_residuals(*answers, centre.expected, centre.factor, centre.longest, gap, share)
    return Contribution(gap, share)


@dataclass(frozen=True)
class PersonCells:
    """Cells of (form, answers, share right), one of which everybody with answers is in.

    Attributes
    ----------
    forms
        The items of every form, as places on the item list.
    cap
        Most answers of one person.
    counts
        Into how many kinds persons are divided by their number of answers; those with as many as
        the cap are the last kind.
    shares
        And by their share of right answers.
    is_complete
        Whether only persons with all answers belong to a form.
    """

    forms: tuple[tuple[int, ...], ...]
    cap: int
    counts: int
    shares: int
    is_complete: bool

    @property
    def shape(self) -> tuple[int, int, int]:
        """How many forms, kinds by answers and kinds by share there are."""
        return len(self.forms), self.counts, self.shares

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.forms) * self.counts * self.shares

    @property
    def ranges(self) -> tuple[Int64Array, Int64Array]:
        """Fewest and most answers of each kind."""
        steps = max(self.counts - 1, 1)
        first = -(-np.arange(self.counts) * (self.cap - 1) // steps) + 1
        return first, np.append(first[1:] - 1, self.cap)

    def place(self, rows: SparseRows) -> tuple[Int64Array, BoolArray]:
        """Return the cell of every person, one more for those without; and who has one."""
        answered = np.diff(rows.indptr)
        right = sum_persons(rows, rows.right.astype(np.int64))
        form = np.full(rows.n_persons, len(self.forms))
        for number, columns in reversed(list(enumerate(self.forms))):
            inside = np.zeros(rows.n_items, dtype=np.int64)
            inside[list(columns)] = 1
            fits = sum_persons(rows, inside[rows.item]) == answered
            form[fits & (answered == len(columns)) if self.is_complete else fits] = number
        fits = (form < len(self.forms)) & (answered > 0)
        count = np.clip(np.searchsorted(self.ranges[0], answered, "right") - 1, 0, None)
        share = right * self.shares // (answered + 1)
        cell = (form * self.counts + count) * self.shares + share
        return np.where(fits, cell, self.size), fits


#: What is counted of all persons: how many, those without answers, those who fit no form.
FACTS = ("persons", "silent", "misfits")


@dataclass(frozen=True)
class PersonCounts(SumJob):
    """One integer array: facts, and how many persons are in each cell.

    Persons without a form add to the facts only.
    """

    cells: PersonCells

    def block(self, store: AnswerStore) -> Int64Array:
        """Return the sums over some persons."""
        return np.asarray(np.sum([self._add_up(rows) for rows in _cut(store)], axis=0))

    def _add_up(self, rows: SparseRows) -> Int64Array:
        return self._place(rows)[0]

    def _place(self, rows: SparseRows) -> tuple[Int64Array, BoolArray]:
        """Return facts and cells, and who has one."""
        cell, fits = self.cells.place(rows)
        silent = np.diff(rows.indptr) == 0
        facts = [rows.n_persons, silent.sum(), (~fits & ~silent).sum()]
        persons = np.bincount(cell, minlength=self.cells.size + 1)[: self.cells.size]
        return np.concatenate([np.array(facts, dtype=np.int64), persons]), fits

    def read(self, sums: Int64Array) -> dict[str, Int64Array]:
        """Return the sums by name."""
        cells = sums[len(FACTS) :][: self.cells.size]
        return {**dict(zip(FACTS, sums, strict=False)), "cells": cells}


@dataclass(frozen=True)
class ResidualSums(PersonCounts):
    """The same, then answers of items, residuals of items.

    Persons with more answers than the cap are counted in no item.
    """

    centre: Centre

    def _add_up(self, rows: SparseRows) -> Int64Array:
        from discreet.answers.residual_kernels import sum_items

        persons, fits = self._place(rows)
        gap = contribute(rows, self.centre).gap
        items, residual = np.zeros((2, rows.n_items), dtype=np.int64)
        sum_items(rows.indptr, rows.item, gap, fits, self.cells.cap, items, residual)
        return np.concatenate([persons, items, residual])

    def read(self, sums: Int64Array) -> dict[str, Int64Array]:
        """Return the sums by name."""
        answered, residual = np.split(sums[len(FACTS) + self.cells.size :], 2)
        return {**super().read(sums), "answered": answered, "residual": residual}


def _cut(store: AnswerStore) -> Iterator[SparseRows]:
    """Yield all persons, some at a time; one batch without persons where there are none."""
    step = max(64, ENTRIES // max(store.n_items, 1))
    for start in range(0, max(store.n_persons, 1), step):
        persons = np.arange(start, min(start + step, store.n_persons))
        yield cast(SparseRows, store.take(persons))
