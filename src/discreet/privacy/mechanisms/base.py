"""What a mechanism consists of, and what those that add noise to counts have in common.

In: public parameters, a budget, counts. Out: noise, what it spends, and for the audit a statistic.
Released values are fitted in :mod:`discreet.models.noisy.released`. A new mechanism subclasses
:class:`AdditiveMechanism` and gets one line in the registry (CONTRIBUTING.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.counts.matrix import RELEASING, planning
from discreet.counts.pairs import Weighting
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.protocol import NoiseCalibration, NoiselessValues, Public
from discreet.privacy.wall import add_noise
from discreet.secure import RandomSource
from discreet.types import Int64Array

if TYPE_CHECKING:  # statistics of attacks take long to load, and only audits need them
    from discreet.privacy.attack_statistics import NeighbourCells, Statistic


class CompleteMechanism(ABC):
    """A mechanism with all that the library asks of it."""

    #: The data it releases: ``"answers"`` or ``"comparisons"``.
    kind: ClassVar[str] = "answers"
    #: Between which data sets it can promise anything.
    relations: ClassVar[frozenset[Neighbours]] = frozenset(Neighbours)
    #: Whether the promise also covers which items a person answered.
    hides_pattern: ClassVar[bool] = True
    #: Whether items may have more than one step.
    takes_steps: ClassVar[bool] = False
    #: Whether what is released depends on forms and on the stated design.
    takes_forms: ClassVar[bool] = False
    #: Whether answers may be looked at around difficulties that are public already.
    takes_centre: ClassVar[bool] = False
    #: Whether it releases nothing but numbers of groups, around public difficulties.
    compares_groups: ClassVar[bool] = False
    #: How far a group can be told apart grows with this power of its size: with the root where
    #: everybody's answers get noise of their own.
    growth: ClassVar[float] = 1.0

    name: str

    @abstractmethod
    def calibrate(self, public: Public, budget: Budget, source: RandomSource) -> NoiseCalibration:
        """Find the least noise that keeps the budget; public parameters only."""

    def check_answers(self, answers: Any, persons: int | None) -> None:  # noqa: B027
        """Refuse answers that this mechanism cannot release; before the charge. None, mostly."""

    @abstractmethod
    def prepare(
        self, answers: Any, public: Public, calibration: NoiseCalibration
    ) -> NoiselessValues:
        """Count what is needed, and let it wait for its noise."""

    @abstractmethod
    def attack_cells(
        self, person: object, public: Public, calibration: NoiseCalibration
    ) -> Mapping[str, npt.NDArray[Any]]:
        """Return the exact numbers of one made-up person, which the audit tells apart."""

    @abstractmethod
    def statistic(
        self, public: Public, calibration: NoiseCalibration, cells: NeighbourCells, group: int
    ) -> Statistic:
        """Return what best tells apart two groups of like persons."""


class AdditiveMechanism(CompleteMechanism):
    """A mechanism that adds noise to counts: it says which, and how persons are weighted."""

    def weighting(self, public: Public, calibration: NoiseCalibration) -> Weighting | None:  # noqa: ARG002
        """Return the integer weight of a person with (answered, right); None for one each."""
        return None

    def count(self, answers: Any, public: Public, calibration: NoiseCalibration) -> Any:
        """Return what the cells are made of: pairs, by default. Confidential."""
        with planning(RELEASING):
            return answers.count(self.weighting(public, calibration))

    @abstractmethod
    def cells(self, counts: Any, calibration: NoiseCalibration) -> dict[str, Int64Array]:
        """Return every number that gets noise, zero or not, by name. Confidential."""

    def prepare(
        self, answers: Any, public: Public, calibration: NoiseCalibration
    ) -> NoiselessValues:
        """Count the cells; the wall's noise comes later."""
        counts = self.count(answers, public, calibration)
        cells = self.cells(counts, calibration)
        return add_noise(cells, calibration, self, persons=counts.persons)

    def attack_cells(
        self, person: object, public: Public, calibration: NoiseCalibration
    ) -> Mapping[str, npt.NDArray[Any]]:
        """Return one made-up person's exact cells."""
        return self.cells(self.count(person, public, calibration), calibration)

    def statistic(
        self,
        public: Public,  # noqa: ARG002
        calibration: NoiseCalibration,
        cells: NeighbourCells,
        group: int,
    ) -> Statistic:
        """Return the log likelihood ratio of the noise around the two exact answers."""
        from discreet.privacy.attack_statistics import additive_statistic

        return additive_statistic(calibration, cells, group)


def sum_margins(counts: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return row sums less column sums, and the upper triangle of the counts of both orders."""
    disagreements = counts + counts.T
    return counts.sum(axis=1) - counts.sum(axis=0), disagreements[
        np.triu_indices(len(disagreements), 1)
    ]
