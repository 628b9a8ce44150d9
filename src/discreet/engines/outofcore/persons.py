"""Answers that stay on disk but can be looked at again, for what needs persons twice.

In: a source of any size. Out: something that :func:`discreet.fit` can treat like
:class:`~discreet.responses.Responses`: it knows its totals, counts with any weighting, and hands
out rows as long as they are asked for in ascending order. Going back starts a new pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.counts import PairCounts
from discreet.engines.memory import Weighting, count_responses
from discreet.engines.outofcore.counting import count_source
from discreet.engines.outofcore.origins import open_origin
from discreet.engines.outofcore.settings import Resources
from discreet.engines.outofcore.stream import stream_responses

if TYPE_CHECKING:
    from discreet.responses import Responses

__all__ = ["StreamedAnswers", "StreamedStore", "count_anything", "open_answers"]

MANY_ITEMS = 2000
"""Items up to which standard errors are a sum over persons, batch by batch."""

Int8Array = npt.NDArray[np.int8]
Int64Array = npt.NDArray[np.int64]


def count_anything(
    source: Responses | StreamedAnswers | str | PathLike[str], weighting: Weighting | None
) -> PairCounts:
    """Count with the default settings; answers that are in memory already stay there."""
    if isinstance(source, (str, PathLike)):
        return count_source(source, weighting=weighting)
    if isinstance(source, StreamedAnswers):
        return source.count(weighting)
    return count_responses(source, weighting)


def open_answers(
    source: str | PathLike[str], resources: Resources | None = None
) -> StreamedAnswers | PairCounts:
    """Count a source, and return it as answers that can be looked at again.

    A query may give other rows, or the same in another order, the second time, and with many
    items standard errors are computed in a way that needs all persons at once: then only the
    counts are returned.
    """
    limits = resources or Resources()
    counts = count_source(source, resources=limits)
    if len(counts.items) > MANY_ITEMS or not open_origin(source, {}, limits).steady:
        return counts
    return StreamedAnswers(source, counts, limits)


class StreamedAnswers:
    """A source that was counted once and can be streamed again."""

    engine = "duckdb"

    def __init__(
        self, source: str | PathLike[str], counts: PairCounts, resources: Resources
    ) -> None:
        self._source, self._counts, self._resources = source, counts, resources
        self.items = counts.items
        self.n_persons = counts.persons
        self.store = StreamedStore(source, counts, resources)

    @property
    def n_answers(self) -> int:
        """Number of answers that were given."""
        return self.store.n_answers

    def count(self, weighting: Weighting | None) -> PairCounts:
        """Count pairs; without weights that was done already."""
        if weighting is None:
            return self._counts
        return count_source(
            self._source, weighting=weighting, items=self.items, resources=self._resources
        )


class StreamedStore:
    """Rows of persons from a stream; see :class:`discreet.responses.store.AnswerStore`.

    Persons are numbered in the order of the stream, which is the same in every pass.
    """

    def __init__(
        self, source: str | PathLike[str], counts: PairCounts, resources: Resources
    ) -> None:
        self._source, self._counts, self._resources = source, counts, resources
        self._stream: Iterator[Responses] = iter(())
        self._batch: Any = None
        self._first = self._stop = -1
        self._totals: tuple[Int64Array, Int64Array] | None = None

    @property
    def n_persons(self) -> int:
        """Number of persons."""
        return self._counts.persons

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self._counts.items)

    @property
    def n_answers(self) -> int:
        """Number of answers."""
        return int(self._counts.answers.sum())

    @property
    def nbytes(self) -> int:
        """Bytes of the batch that is held."""
        return 0 if self._batch is None else int(self._batch.store.nbytes)

    def item_totals(self) -> tuple[Int64Array, Int64Array]:
        """Per item, how many persons answered it and how many of them had it right."""
        return self._counts.answers.copy(), self._counts.right.copy()

    def person_totals(self) -> tuple[Int64Array, Int64Array]:
        """Per person, how many items were answered and how many of them right."""
        if self._totals is None:
            parts = [part.person_totals() for part in self.parts()]
            answered, right = (np.concatenate(part) for part in zip(*parts, strict=True))
            self._totals = answered, right
        return self._totals

    def parts(self) -> Iterator[Any]:
        """Yield the stores of one batch of persons after the other."""
        for batch in self._open():
            yield batch.store

    def rows(self, start: int, stop: int) -> Int8Array:
        """Answers of the persons ``start`` to ``stop`` as a dense matrix."""
        stop = min(stop, self.n_persons)
        parts = [np.zeros((0, self.n_items), dtype=np.int8)]
        while start < stop:
            self._go_to(start)
            end = min(stop, self._stop)
            parts.append(self._batch.rows(start - self._first, end - self._first))
            start = end
        return np.concatenate(parts)

    def _go_to(self, person: int) -> None:
        """Hold the batch with this person."""
        if self._first < 0 or person < self._first:
            self._stream, self._first, self._stop = self._open(), 0, 0
        while person >= self._stop:
            self._batch = next(self._stream)
            self._first, self._stop = self._stop, self._stop + self._batch.n_persons

    def _open(self) -> Iterator[Responses]:
        return stream_responses(self._source, items=self._counts.items, resources=self._resources)
