"""What runs inside a task: read, select, cap, and then one function of the stored answers.

Objects of this module are sent to the executors, where this package must be installed. What a
task returns depends on its rows, and not on their order, nor on which attempt it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from discreet.engines.memory import Weighting, count_store
from discreet.engines.spark.addition import encode_failure, encode_result, encode_vector
from discreet.engines.spark.capping import Cap, cap_store, name_rows
from discreet.engines.spark.layout import Layout
from discreet.engines.spark.reading import Persons, read_persons
from discreet.errors import BadResponses, BadUsage
from discreet.responses.compiling import load_kernels
from discreet.responses.store import BitPlanes, SparseRows
from discreet.responses.subsets import select_columns
from discreet.responses.threads import set_threads

__all__ = ["AskEach", "CapAnswers", "SelectItems", "Step", "SumUp", "View", "count_vector"]

Store = BitPlanes | SparseRows
Vector = npt.NDArray[Any]


class Step(Protocol):
    """Something that is done to the answers before they are counted."""

    def open(self) -> Callable[[Persons], Persons]:
        """Start a task; the result is applied to all of its persons, batch after batch."""
        ...


@dataclass(frozen=True, eq=False)
class SelectItems:
    """Keep these columns in this order; -1 is one that nobody answered."""

    columns: npt.NDArray[np.int64]

    def open(self) -> Callable[[Persons], Persons]:
        return lambda persons: replace(persons, store=_select(persons.store, self.columns))


@dataclass(frozen=True)
class CapAnswers:
    """Keep a random part of the answers of persons with many."""

    cap: Cap

    def open(self) -> Callable[[Persons], Persons]:
        seen: dict[bytes, int] = {}

        def apply(persons: Persons) -> Persons:
            names = persons.names() or name_rows(persons.store, persons.marks, seen)
            return replace(persons, store=cap_store(persons.store, names, self.cap))

        return apply


def _select(store: Store, columns: npt.NDArray[np.int64]) -> Store:
    selected: Any = select_columns(store, columns)
    return selected  # type: ignore[no-any-return]


@dataclass(frozen=True)
class View:
    """How rows become stored answers."""

    layout: Layout
    steps: tuple[Step, ...] = ()

    def stores(self, batches: Iterator[Any]) -> Iterator[Store]:
        """Yield the answers of one task."""
        # Spark runs a task on each core already.
        set_threads(1)
        if self.layout.many:
            load_kernels()
        steps = [step.open() for step in self.steps]
        for persons in read_persons(batches, self.layout):
            found = persons
            for step in steps:
                found = step(found)
            yield found.store


@dataclass(frozen=True)
class SumUp:
    """A task that sends the sum of a function of the stored answers."""

    view: View
    function: Callable[[Store], Vector]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        total: Vector | None = None
        try:
            for store in self.view.stores(batches):
                more = np.asarray(self.function(store)).ravel()
                total = more if total is None else total + more
        except (BadResponses, BadUsage) as failure:
            yield encode_failure(_part_number(), failure)
        else:
            if total is not None:
                yield from encode_vector(_part_number(), total)
        _drain(batches)


@dataclass(frozen=True)
class AskEach:
    """A task that sends the results of a function of the stored answers, one by one."""

    view: View
    function: Callable[[Store], Any]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        try:
            for store in self.view.stores(batches):
                yield encode_result(_part_number(), self.function(store))
        except (BadResponses, BadUsage) as failure:
            yield encode_failure(_part_number(), failure)
        _drain(batches)


def count_vector(store: Store, weighting: Weighting | None) -> npt.NDArray[np.int64]:
    """Return the pair counts, answers and right answers per item, and the number of persons."""
    answers, right = store.item_totals()
    pairs = count_store(store, weighting)
    return np.concatenate([pairs.ravel(), answers, right, [store.n_persons]])


def _part_number() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else int(context.partitionId())


def _drain(batches: Iterator[Any]) -> None:
    """Take what is left, because Spark waits until its rows are taken."""
    for _ in batches:
        pass
