"""What a mechanism consists of, and what those that add noise to counts have in common.

In: public parameters, a budget, counts. Out: noise, what it spends, and, after the wall, the fit
of the released values; for the planner a forecast, for the audit a statistic. A new mechanism
subclasses :class:`AdditiveMechanism` and gets one line in the registry (CONTRIBUTING.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np
import numpy.typing as npt

from discreet.answers.pairs import Weighting
from discreet.counts.matrix import RELEASING, planning
from discreet.errors import BadUsage
from discreet.models.noisy import NoiseFit
from discreet.models.noisy.pairs import PairMatrix
from discreet.models.noisy.totals import TotalsFit
from discreet.models.noisy.totals.fit import TotalsForecast
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.protocol import NoiseCalibration, NoiselessValues, Public
from discreet.privacy.wall import Release, add_noise
from discreet.secure import RandomSource
from discreet.types import FloatArray, Int64Array

if TYPE_CHECKING:  # statistics of attacks take long to load, and only audits need them
    from discreet.privacy.audit.statistics import Moves, Statistic

LEAST_VARIANCE = 1e-6
"""Variance that noise is credited with at least: far below that of sampling, and the equations
stay solvable at an epsilon in the hundreds, where next to no noise is drawn."""


class Assumed(Protocol):
    """What has to be assumed about people and items, in logits."""

    @property
    def difficulty_spread(self) -> float: ...
    @property
    def ability_spread(self) -> float: ...
    @property
    def ability_mean(self) -> float: ...


class PlannedStudy(Protocol):
    """A study that has not happened yet: everybody answers so many of the items."""

    @property
    def persons(self) -> int: ...
    @property
    def items(self) -> int: ...
    @property
    def answers(self) -> int: ...
    @property
    def neighbours(self) -> Neighbours: ...
    @property
    def public(self) -> Public:
        """What everybody may know before a release of it."""
        ...

    @property
    def assumptions(self) -> Assumed: ...

    def calibrate(self) -> NoiseCalibration:
        """Return exactly the noise that a release of this study would get."""

    def resize(self, *, items: int, answers: int) -> PlannedStudy:
        """Return the same study with other numbers of items and answers."""


@dataclass(frozen=True, eq=False)
class Forecast:
    """What a release adds to the numbers that difficulties are fitted to, in person weights.

    Attributes
    ----------
    total, disagreement
        Standard deviations of the noise on an item's total (or a pair's difference) and on a
        pair's disagreements.
    weights
        Weight of a person with k answers right, k from 0.
    fitted
        What the fit is made from: ``"totals"`` of items, or ``"pairs"`` of them.
    density
        Share of the pairs that are counted; below 1 they are a random graph.
    """

    total: float
    disagreement: float
    weights: FloatArray
    fitted: Literal["totals", "pairs"]
    density: float = 1.0


class CompleteMechanism(ABC):
    """A mechanism with all that the library asks of it."""

    kind: ClassVar[str] = "answers"
    """The data it releases: ``"answers"`` or ``"comparisons"``."""
    relations: ClassVar[frozenset[Neighbours]] = frozenset(Neighbours)
    """Between which data sets it can promise anything."""
    hides_pattern: ClassVar[bool] = True
    """Whether the promise also covers which items a person answered."""
    takes_steps: ClassVar[bool] = False
    """Whether items may have more than one step."""
    takes_forms: ClassVar[bool] = False
    """Whether what is released depends on forms and on the stated design."""
    releases_pairs: ClassVar[bool] = False
    """Whether it releases counts of pairs of items, which the spectral estimate needs."""
    growth: ClassVar[float] = 1.0
    """How far a group can be told apart grows with this power of its size: with the root where
    everybody's answers get noise of their own."""

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
    def fit(self, release: Release, standard_errors: bool) -> NoiseFit | TotalsFit:
        """Fit numbers to released values; they and public parameters are all there is."""

    def pair_matrix(self, release: Release) -> PairMatrix:  # noqa: ARG002
        """Return the released counts of ordered pairs, where that is what was released."""
        raise BadUsage(f"the mechanism {self.name} does not release counts of pairs of items")

    def expect_calibration(self, study: PlannedStudy) -> NoiseCalibration:
        """Return the noise to plan with."""
        return study.calibrate()

    def forecast(
        self,
        study: PlannedStudy,  # noqa: ARG002
        calibration: NoiseCalibration,  # noqa: ARG002
    ) -> Forecast | TotalsForecast:
        """Say what a release adds to the numbers of a study that has not happened yet.

        Or the errors themselves, where the mechanism's fit can tell them.
        """
        raise BadUsage(f"plans know nothing about the mechanism {self.name}; it has no forecast")

    @abstractmethod
    def attack_cells(
        self, person: Any, public: Public, calibration: NoiseCalibration
    ) -> Mapping[str, npt.NDArray[Any]]:
        """Return the exact numbers of one made-up person, which the audit tells apart."""

    @abstractmethod
    def statistic(
        self, public: Public, calibration: NoiseCalibration, moves: Moves, group: int
    ) -> Statistic:
        """Return what best tells apart two groups of like persons."""


def has_forecast(mechanism: CompleteMechanism) -> bool:
    """Say whether plans know something about a mechanism."""
    return type(mechanism).forecast is not CompleteMechanism.forecast


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
        self, person: Any, public: Public, calibration: NoiseCalibration
    ) -> Mapping[str, npt.NDArray[Any]]:
        """Return one made-up person's exact cells."""
        return self.cells(self.count(person, public, calibration), calibration)

    def statistic(
        self,
        public: Public,  # noqa: ARG002
        calibration: NoiseCalibration,
        moves: Moves,
        group: int,
    ) -> Statistic:
        """Return the log likelihood ratio of the noise around the two exact answers."""
        from discreet.privacy.audit.statistics import additive_statistic

        return additive_statistic(calibration, moves, group)


def fill_matrix(values: npt.NDArray[Any], items: int) -> FloatArray:
    """Put the values of all ordered pairs, row by row, into a matrix with a zero diagonal."""
    matrix = np.zeros((items, items))
    matrix[~np.eye(items, dtype=bool)] = values
    return matrix


def fill_symmetric(upper: npt.NDArray[Any], items: int) -> FloatArray:
    """Return the symmetric matrix with a zero diagonal from its upper triangle, row by row."""
    matrix = np.zeros((items, items))
    matrix[np.triu_indices(items, 1)] = upper
    return np.asarray(matrix + matrix.T)


def sum_margins(counts: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return row sums less column sums, and the upper triangle of the counts of both orders."""
    disagreements = counts + counts.T
    return counts.sum(axis=1) - counts.sum(axis=0), disagreements[
        np.triu_indices(len(disagreements), 1)
    ]
