"""`group-means`: how stated groups did on forms whose difficulties are public.

In: public parameters and a budget. Out: the noise of three blocks and what it spends. Everybody
answers every item of one form. Of each group and form is released how many persons have it
(``number``), the sum of y and the sum of y^2 (``score``, ``square``), where y is the share of right
answers, stretched to -1 to 1 and cut at .8.

Sensitivity: a person adds one row of an integer table, (1, y, y^2), in one place. Under
replace-one two persons differ by two rows of one form, or, where they are in different places, by
a row in each; under add-remove there is one row. All pairs are tried, and the largest counts with
the noise of every block (docs/privacy.md; tests/publishing/test_private_means.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from discreet.answers.residual_sums import PersonCells, PersonCounts
from discreet.errors import BadUsage
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.accounting.additive_noise import calibrate_blocks, round_ratio
from discreet.privacy.mechanisms.base import AdditiveMechanism
from discreet.privacy.mechanisms.residuals import sum_groups
from discreet.privacy.mechanisms.totals import check_design_kept, list_columns
from discreet.privacy.protocol import NoiseCalibration, NoiseLaw, NoiselessValues, Public
from discreet.privacy.wall import add_noise
from discreet.secure import RandomSource
from discreet.types import Int64Array

NAME = "group-means"

#: Steps of a person, and of the ends of y.
GRID = 2**16

#: Farther from the middle no y counts: who answers nearly all right or wrong says little about a
#: mean, and the noise would have to hide it.
FARTHEST = 0.8

#: Sigmas of the blocks to each other. Who reverses all answers moves ``score`` twice as far as it
#: goes and the others not; who goes to another group moves every block: both are as far.
RATIOS = {
    "number": round_ratio(sqrt(2) / FARTHEST),
    "score": round_ratio(1.0),
    "square": round_ratio(sqrt(2) * FARTHEST),
}


@dataclass(frozen=True)
class GroupScores(AdditiveMechanism):
    """Discrete Gaussian noise on persons, scores and squared scores of groups.

    Attributes
    ----------
    least
        A group with fewer persons than this, by the noisy number, gets no mean.
    """

    takes_forms: ClassVar[bool] = True
    takes_centre: ClassVar[bool] = True
    compares_groups: ClassVar[bool] = True

    name: str = NAME
    least: int = 100

    def __post_init__(self) -> None:
        if self.least < 1:
            raise BadUsage(f"the least size of a group must be 1 at least, found {self.least}")

    def calibrate(self, public: Public, budget: Budget, source: RandomSource) -> NoiseCalibration:  # noqa: ARG002
        """Find the least noise that keeps the budget."""
        if not (public.centre and public.groups and public.design == "complete"):
            raise BadUsage(
                "means of groups need groups that are stated, public difficulties, and the design "
                "'complete'; call release_means (--means COL --groups A,B --with BUNDLE)"
            )
        places = len(public.groups) * len(list_columns(public))
        scale, spend = calibrate_blocks(
            list_moves(public),
            tuple(RATIOS.values()),
            budget,
            coordinates=len(RATIOS) * places,
            mechanism=self.name,
        )
        laws = {name: NoiseLaw("gaussian", scale * ratio) for name, ratio in RATIOS.items()}
        return NoiseCalibration(laws, spend, settings={"least": self.least})

    def prepare(
        self, answers: Any, public: Public, calibration: NoiseCalibration
    ) -> NoiselessValues:
        """Sum over the persons of every group."""
        counts = self.count(answers, public, calibration)
        check_design_kept(counts, public)
        cells = self.cells(counts, calibration)
        return add_noise(cells, calibration, self, persons=int(counts["persons"]))

    def count(
        self,
        answers: object,
        public: Public,
        calibration: NoiseCalibration,  # noqa: ARG002
    ) -> dict[str, Int64Array]:
        """Return the blocks, group after group and in it form after form. Confidential."""
        cells, table = make_score_cells(public), list_score_rows(public)
        joined, parts = sum_groups(answers, public, PersonCounts(cells))
        persons = np.array([part["cells"].reshape(table.shape[:2]) for part in parts])
        blocks = np.einsum("gfk,fkb->bgf", persons, table).reshape(len(RATIOS), -1)
        return joined | dict(zip(RATIOS, blocks, strict=True))

    def cells(
        self,
        counts: Mapping[str, Int64Array],
        calibration: NoiseCalibration,  # noqa: ARG002
    ) -> dict[str, Int64Array]:
        """Return the blocks that get noise. Confidential."""
        return {name: counts[name] for name in RATIOS}


def make_score_cells(public: Public) -> PersonCells:
    """Return the cells of persons by form and number of right answers."""
    forms = tuple(list_columns(public))
    return PersonCells(forms, public.max_answers, 1, max(map(len, forms)) + 1, is_complete=True)


def list_score_rows(public: Public) -> Int64Array:
    """Return what a person adds: ``[form, cell of right answers, block]``."""
    forms = list_columns(public)
    kinds, most = max(map(len, forms)) + 1, int(FARTHEST * GRID)
    table = np.zeros((len(forms), kinds, len(RATIOS)), dtype=np.int64)
    for rows, form in zip(table, forms, strict=True):
        items = len(form)
        for right in range(items + 1):
            y = min(max(GRID * (2 * right - items) // items, -most), most)
            rows[right * kinds // (items + 1)] = GRID, y, y**2 // GRID
    return table


def list_moves(public: Public) -> list[tuple[int, ...]]:
    """Return the squared lengths by block of the farthest differences between neighbours."""
    table = list_score_rows(public)
    single = (table**2).max(axis=(0, 1))
    if public.neighbours is Neighbours.ADD_REMOVE:
        return [tuple(map(int, single))]
    moves = [tuple(map(int, 2 * single))]
    for rows in table:
        taken = rows[rows[:, 0] > 0]
        apart = ((taken[:, None] - taken) ** 2).reshape(-1, len(RATIOS))
        # Those that no other exceeds in every block: longest in `score` first.
        apart = apart[np.lexsort((-apart[:, 2], -apart[:, 1]))]
        beyond = np.append(-1, np.maximum.accumulate(apart[:, 2])[:-1]) < apart[:, 2]
        beyond &= apart[:, 1] > 2 * single[1]
        moves += [tuple(map(int, move)) for move in apart[beyond]]
    return moves
