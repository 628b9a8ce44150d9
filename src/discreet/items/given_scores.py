"""Draw answers from the model, given the items that each person answered and the total score.

In: thresholds, who answered what, total scores. Out: sets of answers with exactly these totals.
Given the answered items and the total score the answers do not depend on the ability, so that
nothing about the persons has to be assumed. Confidential where the totals are.

An item after the other is drawn. With ``e_ix = exp(-d_i1 - ... - d_ix)`` and ``g_r(i)`` the
coefficient of ``t^r`` in the product of ``sum_x e_jx t^x`` over the answered items j from i on,

    P(X_i = x | r points are left for i and later items) = e_ix g_(r-x)(i + 1) / g_r(i).

That is exact, also for items with steps. The coefficients are kept as logarithms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.types import BoolArray, FloatArray, IndexArray, Int8Array, Int64Array

Float32Array = npt.NDArray[np.float32]

TABLE_CELLS = 1 << 22
"""Entries of the tables of chances that are kept at a time: 16 MB."""
DRAW_CELLS = 1 << 23
"""Answers that are drawn at a time: 8 MB."""


@dataclass(frozen=True, eq=False)
class ScoreDraws:
    """Persons whose answers are drawn again.

    Attributes
    ----------
    thresholds
        ``[item, step]``, NaN beyond an item's steps.
    answered
        ``[pattern, item]``: which items the persons of a pattern answered.
    pattern, score
        Per person.
    """

    thresholds: FloatArray
    answered: BoolArray
    pattern: IndexArray
    score: Int64Array

    @classmethod
    def of(cls, thresholds: FloatArray, cells: Int8Array) -> ScoreDraws:
        """Take who answered what, and the scores, from answers ``[person, item]``, -1 missing."""
        packed = np.packbits(cells >= 0, axis=1)
        _, first, pattern = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        score = np.maximum(cells, 0).sum(axis=1, dtype=np.int64)
        return cls(thresholds, cells[first] >= 0, pattern.reshape(-1), score)

    def draw(self, sets: int, rng: np.random.Generator) -> Iterator[Int8Array]:
        """Yield sets of answers, ``[item, person]``; zero where an answer is missing."""
        persons, items = len(self.score), len(self.thresholds)
        size = max(1, DRAW_CELLS // max(persons * items, 1))
        parts = list(self._parts())
        for start in range(0, sets, size):
            number = min(size, sets - start)
            block = np.empty((items, number, persons), dtype=np.int8)
            for chosen in parts:
                self._draw_part(block, chosen, rng)
            yield from (block[:, row] for row in range(number))

    def _parts(self) -> Iterator[IndexArray | slice]:
        """Yield persons whose tables of chances fit into memory together."""
        width = len(self.thresholds) * (int(self.score.max(initial=0)) + 1)
        size = max(1, TABLE_CELLS // width)
        if len(self.answered) <= size:
            yield slice(None)
            return
        for start in range(0, len(self.answered), size):
            yield np.flatnonzero((self.pattern >= start) & (self.pattern < start + size))

    def _draw_part(
        self, block: Int8Array, chosen: IndexArray | slice, rng: np.random.Generator
    ) -> None:
        """Fill in the answers of some persons, in all sets of the block."""
        patterns, row = np.unique(self.pattern[chosen], return_inverse=True)
        score = self.score[chosen]
        chance = self._chances(self.answered[patterns], int(score.max(initial=0)))
        width = chance[0].shape[-1]
        sets = block.shape[1]
        # Position in a pattern's table, which moves down by every point that is drawn.
        position = np.tile(row.reshape(-1) * width + score, (sets, 1))
        for item, reach in enumerate(chance):
            uniform = rng.random(position.shape, dtype=np.float32)
            code = (uniform < reach[0].ravel()[position]).astype(np.int8)
            for step in reach[1:]:
                code += uniform < step.ravel()[position]
            block[item][:, chosen] = code
            position -= code

    def _chances(self, answered: BoolArray, highest: int) -> list[Float32Array]:
        """Return for every item ``[step, pattern, points left]`` the chance to reach the step."""
        later = np.full((len(answered), highest + 1), -np.inf)
        later[:, 0] = 0.0
        tables = []
        for thresholds, has_item in zip(self.thresholds[::-1], answered.T[::-1], strict=True):
            steps = thresholds[~np.isnan(thresholds)]
            terms = [later]
            for category, weight in enumerate(-np.cumsum(steps), 1):
                term = np.full_like(later, -np.inf)
                term[has_item, category:] = later[has_item, : highest + 1 - category] + weight
                terms.append(term)
            total = np.logaddexp.reduce(terms)
            with np.errstate(invalid="ignore"):
                share = np.exp(np.stack(terms[1:]) - total)
            share[np.isnan(share)] = 0.0
            reach = np.cumsum(share[::-1], axis=0)[::-1]
            tables.append(reach.astype(np.float32))
            later = total
        return tables[::-1]
