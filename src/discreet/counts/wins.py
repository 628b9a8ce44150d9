"""Wins among objects that judges compared: the counts of comparisons.

In: numbers from answers of judges. Out: :class:`ComparisonCounts`, an immutable value that adds up.
Confidential, like all counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from discreet.errors import BadResponses, BadUsage
from discreet.markup import brief_repr
from discreet.types import Int64Array


@dataclass(frozen=True, eq=False)
class ComparisonCounts:
    """How often one object was preferred to another: all that both estimators need to know.

    An object that is hard to beat is like an item that is hard to answer: where i loses to j, i is
    the item that is right and j the one that is wrong. So ``right_wrong[i, j]`` is "i lost to j",
    and the difficulty that the estimators find is the strength. A type of its own, and not
    :class:`discreet.PairCounts`: there the pairs of one person belong together through the
    person's ability, and standard errors are made for that.

    Attributes
    ----------
    items
        Names of the objects, in the order of rows and columns.
    wins
        ``wins[i, j]``: comparisons (or the sum of their judges' integer weights) in which i beat
        j. The diagonal is zero.
    compared, won
        Per object, in how many comparisons it was and how many it won; never weighted.
    judges
        How many judges were counted.
    """

    items: tuple[str, ...]
    wins: Int64Array
    compared: Int64Array
    won: Int64Array
    judges: int

    __repr__ = brief_repr

    def __post_init__(self) -> None:
        m = len(self.items)
        if self.wins.shape != (m, m) or self.compared.shape != (m,) or self.won.shape != (m,):
            raise BadUsage(
                f"wins among {m} objects must be a {m} x {m} matrix, found {self.wins.shape}"
            )
        for array in (self.wins, self.compared, self.won):
            array.setflags(write=False)

    def __add__(self, other: ComparisonCounts) -> ComparisonCounts:
        if self.items != other.items:
            raise BadResponses(
                "these counts are about different objects, or the same in another order; bring "
                "both to one list with Comparisons.select before counting"
            )
        return ComparisonCounts(
            self.items,
            self.wins + other.wins,
            self.compared + other.compared,
            self.won + other.won,
            self.judges + other.judges,
        )

    # The names under which the chain, the estimators and the mechanisms look for the same.

    @property
    def right_wrong(self) -> Int64Array:
        """Losses: ``right_wrong[i, j]`` is how often i lost to j."""
        return self.wins.T

    @property
    def answers(self) -> Int64Array:
        """How often each object was compared."""
        return self.compared

    @property
    def right(self) -> Int64Array:
        """How often each object lost."""
        return self.compared - self.won

    @property
    def persons(self) -> int:
        """How many judges."""
        return self.judges
