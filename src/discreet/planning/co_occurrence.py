"""How often two items are given to one person, for plans.

In: how many items, how many of them each person answers, and who gets which. Out: the items that a
prediction looks at, and for every two of them the chance that a person is given both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.types import FloatArray

THIN_ITEMS = 24
"""Items at which a longer list is looked at: the error per item depends on the sums over the
other items, which quantiles give as well with 24 as with 500 (at most 6%
lower, tested; the fitted factor knows)."""
BOOKLET_ITEMS, BOOKLET_BLOCKS, BLOCK_ITEMS = 120, 150, 2
"""In booklets so many, if there are more: as many blocks as there are, because what links distant
ones goes through all between, and at least two items in each."""


@dataclass(frozen=True, eq=False)
class Together:
    """Items that stand for all, and how often two of them are given to one person.

    Attributes
    ----------
    shares
        Chance that a person is given both, ``float[item, item]``; zero on the diagonal.
    others
        How many items each of them stands for.
    """

    shares: FloatArray
    others: float

    @property
    def size(self) -> int:
        """How many items are looked at."""
        return len(self.shares)

    @property
    def is_uneven(self) -> bool:
        """Whether some two items are given together more often than others."""
        off = self.shares[~np.eye(self.size, dtype=bool)]
        return bool(np.ptp(off) > 0)

    @property
    def average(self) -> float:
        """The mean chance over all pairs."""
        return float(self.shares.sum()) / (self.size * (self.size - 1))


def give_at_random(items: int, answers: int) -> Together:
    """Return the chances where everybody answers a random part of the items."""
    size = min(items, THIN_ITEMS)
    share = answers * (answers - 1) / (items * (items - 1))
    return Together(share * (1 - np.eye(size)), (items - 1) / (size - 1))


def give_booklets(items: int, answers: int) -> Together:
    """Return the chances where everybody answers two neighbouring blocks of items.

    Blocks stand in a ring, as :func:`discreet.simulate` gives them out.

    Examples
    --------
    >>> give_booklets(6, 4).shares[0].round(2).tolist()
    [0.0, 0.67, 0.33, 0.33, 0.33, 0.33]
    """
    size, each = items, answers
    if items > BOOKLET_ITEMS:
        blocks = min(-(-items // max(answers // 2, 1)), BOOKLET_BLOCKS)
        block = max(BLOCK_ITEMS, BOOKLET_ITEMS // blocks)
        size, each = min(items, blocks * block), min(items, 2 * block)
    block = max(each // 2, 1)
    starts = block * np.arange(-(-size // block))
    given = np.zeros((len(starts), size))
    given[np.arange(len(starts))[:, None], (starts[:, None] + np.arange(each)) % size] = 1.0
    shares = given.T @ given / len(starts)
    np.fill_diagonal(shares, 0.0)
    return Together(shares, items / size if size < items else 1.0)
