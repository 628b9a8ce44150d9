"""Wins: how often one object was preferred to another.

In: comparisons. Out: an immutable value that adds up over batches of whole judges, in the form
that the chain and both estimators take. Confidential: it never crosses the wall without noise.

An object that is hard to beat is like an item that is hard to answer: where i loses to j, i is
the item that is right and j the one that is wrong. So ``right_wrong[i, j]`` is "i lost to j", and
the difficulty that the estimators find is the strength.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from discreet.errors import BadResponses, BadUsage
from discreet.markup import brief_repr
from discreet.types import Int64Array

if TYPE_CHECKING:
    from discreet.answers.judges import Comparisons
    from discreet.answers.pairs import Weighting


@dataclass(frozen=True, eq=False)
class ComparisonCounts:
    """Everything that both estimators need to know about the comparisons.

    A type of its own, and not :class:`discreet.PairCounts`: there the pairs of one person belong
    together through the person's ability, and standard errors are made for that.

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


def count_wins(data: Comparisons, weighting: Weighting | None = None) -> ComparisonCounts:
    """Count wins, exactly.

    Parameters
    ----------
    data
        The comparisons.
    weighting
        Integer weight of a judge from (comparisons made, squared reach), see
        :func:`measure_reach`; by default one.
    """
    m = data.n_items
    wins = np.zeros((m, m), dtype=np.int64)
    if weighting is None:
        np.add.at(wins, (data.winner, data.loser), 1)
    else:
        weight = weighting(np.diff(data.starts), measure_reach(data))
        np.add.at(wins, (data.winner, data.loser), weight[data.judge])
    won = np.bincount(data.winner, minlength=m).astype(np.int64)
    compared = won + np.bincount(data.loser, minlength=m)
    return ComparisonCounts(data.items, wins, compared, won, data.n_judges)


def measure_reach(data: Comparisons) -> Int64Array:
    """Bound, for every judge, the squared length of net wins that any outcome could give.

    It depends on which objects the judge compared, never on who won. A judge compared the two
    ends of c edges of a graph; net wins are ``B x`` with B its incidence matrix and x one sign
    an edge. Three bounds hold at once (docs/privacy.md), and the smallest is taken: the sum of
    squared degrees; c times the number of objects; c times the largest sum of the degrees of two
    compared objects.
    """
    number = data.n_judges
    if not data.n_comparisons:
        return np.zeros(number, dtype=np.int64)
    ends = np.concatenate([data.winner, data.loser])
    cell = np.concatenate([data.judge, data.judge]) * data.n_items + ends
    cells, place, degree = np.unique(cell, return_inverse=True, return_counts=True)
    owner = cells // data.n_items
    squares = np.zeros(number, dtype=np.int64)
    np.add.at(squares, owner, degree**2)
    objects = np.bincount(owner, minlength=number)
    both = degree[place[: data.n_comparisons]] + degree[place[data.n_comparisons :]]
    largest = np.zeros(number, dtype=np.int64)
    np.maximum.at(largest, data.judge, both)
    made = np.diff(data.starts)
    return np.asarray(np.minimum(squares, made * np.minimum(objects, largest)))
