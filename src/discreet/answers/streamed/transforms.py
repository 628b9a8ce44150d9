"""What can be asked of a stream of persons before it is read: other items, a cap.

Every batch of a later pass goes through these transforms. A cap is good for one pass only, because
a second one would be another draw.
"""

from __future__ import annotations

from discreet.answers.responses import Responses
from discreet.errors import DiscreetError
from discreet.secure import RandomSource


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
