"""Cut rows that are in person order into batches of whole persons.

In: blocks of rows. Out: batches in which every person is whole, as long as ids only ever
ascend; :class:`OutOfOrder` at the first one that does not, because then a person might come
back later. Nothing is sorted and nothing is written to disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.engines.outofcore.blocks import Block
from discreet.responses.compiling import worth_compiling
from discreet.responses.values import read_integers

__all__ = ["OutOfOrder", "Span", "check_order", "cut_persons"]

Int32Array = npt.NDArray[np.int32]
Int8Array = npt.NDArray[np.int8]


PLAIN_ROW = 1e-8
"""Seconds that NumPy needs per row."""


class OutOfOrder(Exception):
    """An id was followed by a smaller one."""


@dataclass(frozen=True)
class Span:
    """Rows ``start`` to ``stop``: all rows of ``n_persons`` persons.

    ``person`` are codes from 0 that ascend, ``ids`` the ids behind them.
    """

    person: Int32Array
    ids: Any
    item: Int32Array
    value: Int8Array
    n_items: int
    start: int
    stop: int
    finished: tuple[int, ...]


def cut_persons(
    blocks: Iterable[Block], target_rows: int, after: int | str | None = None
) -> Iterator[Span]:
    """Yield spans of about ``target_rows`` rows; every id must be greater than ``after``."""
    gathered = _Gathered(after=after)
    for block in blocks:
        gathered.add(block)
        if gathered.rows >= target_rows and gathered.n_persons > 1:
            yield gathered.take(keep_last=True)
    if gathered.rows:
        yield gathered.take(keep_last=False)


def check_order(persons: Iterable[Any]) -> None:
    """Raise ``OutOfOrder`` unless these columns of ids, one after the other, ascend."""
    last: Any = None
    for person in persons:
        ids = _find_runs(person)[1]
        if last is not None and ids[0] < last:
            raise OutOfOrder
        last = ids[-1]


@dataclass
class _Gathered:
    """Rows that wait to be cut."""

    after: int | str | None = None
    person: list[Int32Array] = field(default_factory=list)
    item: list[Int32Array] = field(default_factory=list)
    value: list[Int8Array] = field(default_factory=list)
    ids: list[Any] = field(default_factory=list)
    rows: int = 0
    n_persons: int = 0
    start: int = -1
    n_items: int = 0
    finished: tuple[int, ...] = ()

    def add(self, block: Block) -> None:
        codes, ids = _find_runs(block.person)
        if self.n_persons:
            last = self.ids[-1][-1]
            if ids[0] == last:
                codes, ids = codes - np.int32(1), ids[1:]
            elif ids[0] < last:
                raise OutOfOrder
        elif self.after is not None and ids[0] <= self.after:
            raise OutOfOrder
        if self.start < 0:
            self.start = block.start
        self.person.append(codes + np.int32(self.n_persons))
        self.item.append(block.item)
        self.value.append(block.value)
        if len(ids):
            self.ids.append(ids)
        self.rows += len(codes)
        self.n_persons += len(ids)
        self.n_items, self.finished = block.n_items, block.finished

    def take(self, *, keep_last: bool) -> Span:
        """Return the rows of all persons, or of all but the last, who may go on."""
        person, item = np.concatenate(self.person), np.concatenate(self.item)
        value = np.concatenate(self.value)
        ids = np.concatenate(self.ids)
        stop = self.rows
        if keep_last:
            stop = int(np.searchsorted(person, np.int32(self.n_persons - 1)))
        span = Span(
            person[:stop], ids[:-1] if keep_last else ids, item[:stop], value[:stop],
            self.n_items, self.start, self.start + stop, self.finished,
        )  # fmt: skip
        rest = np.zeros(len(person) - stop, dtype=np.int32)
        self.person, self.item, self.value = [rest], [item[stop:]], [value[stop:]]
        self.ids = [ids[-1:]]
        self.rows, self.n_persons, self.start = len(rest), 1, self.start + stop
        return span


def _find_runs(person: Any) -> tuple[Int32Array, Any]:
    """Return ascending codes per row and the ids behind them, as an array of numbers or texts."""
    if isinstance(person, np.ndarray):
        if worth_compiling(PLAIN_ROW * len(person)):
            return _find_runs_compiled(person)
        changed = person[1:] != person[:-1]
        if (person[1:] < person[:-1]).any():
            raise OutOfOrder
        codes = np.zeros(len(person), dtype=np.int32)
        np.cumsum(changed, out=codes[1:])
        starts = np.concatenate([[0], np.flatnonzero(changed) + 1])
        return codes, person[starts]
    codes, words = read_integers(person.indices), person.dictionary
    steps = np.diff(codes)
    # First appearances are numbered 0, 1, ...: a step of 0 or 1 means that nobody came back.
    if codes[0] != 0 or codes[-1] != len(words) - 1 or ((steps < 0) | (steps > 1)).any():
        raise OutOfOrder
    texts = np.array(words.to_pylist(), dtype=object)
    if (texts[1:] <= texts[:-1]).any():
        raise OutOfOrder
    return codes, texts


def _find_runs_compiled(person: npt.NDArray[np.int64]) -> tuple[Int32Array, Any]:
    from discreet.engines.outofcore.kernels import number_runs

    codes, starts = np.empty((2, len(person)), dtype=np.int32)
    runs = number_runs(person, codes, starts)
    if runs < 0:
        raise OutOfOrder
    return codes, person[starts[:runs]]
