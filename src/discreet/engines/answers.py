"""What all answers have in common, wherever they are: in memory, on disk, in a cluster.

A release is made from anything that fits this description, by one wall. Whoever implements it
promises that every person is whole and counts once, and that a cap is drawn once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from discreet.responses.digests import CELLS
from discreet.secure import RandomSource

__all__ = ["Answers", "Contributions", "Totals"]

Int64Array = npt.NDArray[np.int64]


class Totals(Protocol):
    """The sizes of answers, as their ``store`` knows them."""

    @property
    def n_persons(self) -> int: ...
    @property
    def n_items(self) -> int: ...
    @property
    def n_answers(self) -> int: ...
    def item_totals(self) -> tuple[Int64Array, Int64Array]:
        """Per item, how many persons answered it and how many of them had it right."""
        ...


class Contributions(Protocol):
    """What whole persons contribute to a release: answers, or comparisons."""

    @property
    def items(self) -> tuple[str, ...]:
        """Names of the items that occur, in column order."""
        ...

    @property
    def n_persons(self) -> int:
        """Number of persons, those without any answer included."""
        ...

    def select(self, items: Sequence[str]) -> Self:
        """Return exactly these items in this order; an unknown name is an unanswered column."""
        ...

    def cap(self, max_answers: int, source: RandomSource, /) -> Self:
        """Return answers of which each person keeps at most so many, a uniformly random part.

        What a person keeps is drawn once: whatever is counted from the result comes from one
        and the same draw.
        """
        ...

    def sum_digests(self, key: bytes, rule: str = CELLS) -> tuple[int, int]:
        """Return the sum of the persons' keyed digests, and how many were added.

        See :mod:`discreet.responses.digests` for the rules.
        """
        ...


class Answers(Contributions, Protocol):
    """Answers of whole persons.

    :func:`discreet.count_pairs` counts them with the engine that their attribute ``engine``
    names (memory, if there is none), in one pass.
    """

    @property
    def store(self) -> Totals:
        """Sizes and totals."""
        ...
