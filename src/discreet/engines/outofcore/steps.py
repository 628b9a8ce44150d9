"""What can be asked of a stream of persons before it is read: totals, other items, a cap.

In: batches of whole persons. Out: per item totals of a first pass, and steps that every batch of
a later pass goes through. A cap is good for one pass only, because a second one would be another
draw.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.engines.outofcore.snapshot import Passes
from discreet.errors import DiscreetError
from discreet.responses import Responses
from discreet.secure import RandomSource

__all__ = ["Cap", "ItemTotals", "Selection", "find_totals"]

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ItemTotals:
    """Items, how often each was answered and answered right, and how many persons there are."""

    items: tuple[str, ...]
    answers: Int64Array
    right: Int64Array
    persons: int

    def select(self, items: tuple[str, ...]) -> ItemTotals:
        """Return the totals of these items; zero for items that nobody answered."""
        place = {name: number for number, name in enumerate(self.items)}
        columns = [place.get(name, len(self.items)) for name in items]
        answers, right = (np.append(values, 0)[columns] for values in (self.answers, self.right))
        return ItemTotals(items, answers, right, self.persons)


def find_totals(passes: Passes) -> ItemTotals:
    """Go through all persons once."""
    totals = ItemTotals((), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), 0)
    for batch in passes.batches():
        sums = zip((totals.answers, totals.right), batch.store.item_totals(), strict=True)
        more = len(batch.items) - len(totals.items)
        answers, right = (np.pad(old, (0, more)) + new for old, new in sums)
        persons = totals.persons + batch.store.n_persons
        totals = ItemTotals(batch.items, answers, right, persons)
    return totals


class Selection:
    """Leave items out, bring them into another order, or add unanswered ones."""

    def __init__(self, items: tuple[str, ...]) -> None:
        self._items = items

    def begin(self) -> None:
        """Get ready for a pass."""

    def apply(self, batch: Responses) -> Responses:
        """Return the items of one batch."""
        return batch if batch.items == self._items else batch.select(self._items)


class Cap:
    """Keep a random part of every person's answers; drawn once, so good for one pass only."""

    def __init__(self, most: int, source: RandomSource) -> None:
        self._most, self._source = most, source
        self._is_drawn = False

    def begin(self) -> None:
        """Get ready for the pass, or refuse: a second one would be another draw."""
        if self._is_drawn:
            raise DiscreetError(
                "the cap on answers of a stream is drawn while the stream is read, so capped "
                "answers can be gone through once: a second pass would keep other answers. Count "
                "all that is needed in one pass, or cap anew"
            )
        self._is_drawn = True

    def apply(self, batch: Responses) -> Responses:
        """Return what the persons of one batch keep."""
        return batch.cap(self._most, self._source)
