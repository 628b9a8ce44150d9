"""What a table of answers looks like to the code that takes it in.

A source hands out columns a batch at a time and can say, in words, where one of its rows is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from discreet.store.planes import BitPlanes, SparseRows


class Source(Protocol):
    """A file or a data frame."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    @property
    def names(self) -> Sequence[str]:
        """Column names in order."""
        ...

    def batches(self, columns: Sequence[int]) -> Iterator[list[Any]]:
        """Yield these columns as Arrow arrays, some rows at a time, in row order."""
        ...

    def place(self, row: int) -> str:
        """Say where a row is, as a person would look for it; rows count from 0."""
        ...


class RowPlaces:
    """Where the rows of several sources, counted through, are to be found."""

    def __init__(self) -> None:
        self._sources: list[Source] = []
        self._starts: list[int] = []
        self.n_rows = 0

    def begin(self, source: Source) -> None:
        """Say that the rows from here on belong to this source."""
        self._sources.append(source)
        self._starts.append(self.n_rows)

    def place(self, row: int) -> str:
        """Return file and line of a row."""
        number = bisect_right(self._starts, row) - 1
        # Sources without rows share their start with the next one, which bisect passes over.
        return self._sources[number].place(row - self._starts[number])


# What every reader hands over: the parts of a table of answers, before they are checked.


class RawTable(NamedTuple):
    """Items, persons (Arrow strings, or None for numbers in order), answers, groups."""

    items: tuple[str, ...]
    persons: Any
    store: BitPlanes | SparseRows
    groups: dict[str, npt.NDArray[np.object_]]
