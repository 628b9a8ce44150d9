"""Levels of a facet (raters, tasks, times) on the scale of the items.

In: numbers of a facets model. Out: a frozen value for each facet, which an
:class:`~discreet.Estimate` carries by the facet's name.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Self

import numpy as np

from discreet.errors import BadUsage, escape_controls
from discreet.schema import Along, Distinct
from discreet.tabular import Columns, Tabular, list_field_columns
from discreet.text import count_of
from discreet.types import BoolArray, FloatArray, Int64Array


def find_reliability(value: FloatArray, se: FloatArray) -> float:
    """Return the share of the variance of values that is not error; NaN without errors."""
    has_error = np.isfinite(se)
    if has_error.sum() < 2:
        return float("nan")
    spread = float(np.var(value[has_error], ddof=1))
    return 1 - float(np.mean(se[has_error] ** 2)) / spread if spread > 0 else float("nan")


class LevelStatus(StrEnum):
    """Why a level of a facet has a number, or has none."""

    ESTIMATED = "estimated"
    ANCHORED = "anchored"
    ALWAYS_LOWEST = "always_lowest"
    ALWAYS_HIGHEST = "always_highest"
    NOT_CONNECTED = "not_connected"
    UNBOUNDED = "unbounded"


#: What says how far levels differ.
_SPREAD = ("reliability", "separation", "strata")
#: With fewer persons for each difference no test of differences is made.
PERSONS_PER_DEGREE = 5


@dataclass(frozen=True)
class DifferenceTest:
    """Whether several differences are all zero (Wald's test, with the covariance from persons).

    Attributes
    ----------
    statistic
        As an F value.
    degrees
        Of the F distribution: the differences that are free, and those of persons. The second is 0
        where the covariance counts as known.
    p
        Probability of such differences where all are zero.
    """

    statistic: float
    degrees: tuple[int, int]
    p: float

    @classmethod
    def of(
        cls, difference: FloatArray, covariance: FloatArray, n_persons: int, **more: float
    ) -> Self | None:
        """Test differences; None with too few persons. Of no persons the covariance is known."""
        from scipy.special import chdtrc, fdtrc

        values, vectors = np.linalg.eigh(covariance)
        free = values > 1e-8 * max(values.max(initial=0.0), 1e-300)
        rank = int(free.sum())
        if not rank or 0 < n_persons < PERSONS_PER_DEGREE * rank:
            return None
        wald = float(((difference @ vectors[:, free]) ** 2 / values[free]).sum())
        if not n_persons:
            return cls(wald / rank, (rank, 0), float(chdtrc(rank, wald)), **more)
        degrees = rank, n_persons - rank
        statistic = wald / rank * degrees[1] / (n_persons - 1)
        return cls(statistic, degrees, float(fdtrc(*degrees, statistic)), **more)

    def __str__(self) -> str:
        free, persons = self.degrees
        p = "p < .001" if self.p < 0.001 else f"p = {self.p:.3f}".replace("0.", ".")
        if not persons:
            return f"chi-squared({free:,}) = {self.statistic * free:.2f}, {p}"
        return f"F({free:,}, {persons:,}) = {self.statistic:.2f}, {p}"


@dataclass(frozen=True)
class ItemEffectTest(DifferenceTest):
    """Whether persons differ by item: severities from same-item pairs against those from all pairs.

    A person who is better at some items than at others does not move the first, and draws the
    second together.

    Attributes
    ----------
    slope
        Severities from all pairs as a share of those from same-item pairs.
    """

    slope: float


@dataclass(frozen=True, eq=False)
class FacetLevels(Tabular):
    """Severities of raters, or measures of another facet, in logits with mean zero.

    A rater with a severity of 1 gives scores as if every step were 1 logit harder.

    Attributes
    ----------
    name
        The facet.
    levels
        Its levels.
    measure, se
        NaN where there is no number; ``status`` says why.
    status
        One :class:`LevelStatus` per level. ``always_lowest``: every comparison with another level
        was lost, as by a rater who gives zeros only; ``always_highest`` the other way round;
        ``not_connected``: no person links the level to the largest subset; ``unbounded``: together
        with other levels or steps it fits the better, the farther it is out.
    subset
        Levels of one subset are linked by persons they have in common; 1 is the largest subset.
    ratings, persons
        How many ratings each level has, and of how many persons.
    degrees
        Degrees of freedom of the standard errors: intervals have Student's quantiles. 0 where
        the error is model-based and counts as known.
    equal
        Test whether all levels have the same measure; None where it was not made.
    displacement, displacement_se
        Of each anchored level, how far it would move if only it were free; NaN of others. None
        where nothing was anchored.
    """

    name: str
    levels: Annotated[tuple[str, ...], Distinct()]
    measure: Annotated[FloatArray, Along("levels")]
    se: Annotated[FloatArray, Along("levels")]
    status: Annotated[tuple[LevelStatus, ...], Along("levels")]
    subset: Annotated[Int64Array, Along("levels")]
    ratings: Annotated[Int64Array, Along("levels")]
    persons: Annotated[Int64Array, Along("levels")]
    degrees: Annotated[Int64Array, Along("levels")]
    equal: DifferenceTest | None = None
    displacement: Annotated[FloatArray | None, Along("levels")] = None
    displacement_se: Annotated[FloatArray | None, Along("levels")] = None

    def __post_init__(self) -> None:
        numbers = self.measure, self.se, self.subset, self.ratings, self.persons, self.degrees
        for array in numbers:
            array.setflags(write=False)

    def interval(self, level: float = 0.95) -> FloatArray:
        """Lower and upper end of each level's interval, ``float[level, 2]``."""
        from scipy.special import stdtrit

        if not 0 < level < 1:
            raise BadUsage(f"level must lie between 0 and 1, found {level}; use 0.95 for 95%")
        degrees = np.where(self.degrees > 0, self.degrees, 1e9)
        half = stdtrit(degrees, (1 + level) / 2) * self.se
        return np.column_stack([self.measure - half, self.measure + half])

    def to_dict(self) -> Columns:
        """One list per column: level, measure, se, lower, upper, status, subset, ratings, persons.

        The first column is called as the facet is; of anchored levels there are the displacement
        and its error too.
        """
        lower, upper = self.interval().T.tolist()
        moves = ("displacement", "displacement_se") if self.displacement is not None else ()
        return {
            self.name: list(self.levels),
            **list_field_columns(self, "measure", "se"),
            "lower": lower,
            "upper": upper,
            "status": list(map(str, self.status)),
            **list_field_columns(self, "subset", "ratings", "persons", *moves),
        }

    def describe_spread(self) -> str:
        """Say how far the levels differ: reliability, separation, strata, the test of equality."""
        parts = [f"{name} {max(getattr(self, name), 0.0):.2f}" for name in _SPREAD]
        known = [part for part in parts if not part.endswith("nan")]
        return ", ".join([*known, *([] if self.equal is None else [f"all equal: {self.equal}"])])

    def describe(self) -> list[str]:
        """Return the sentences that a summary begins with."""
        measured = np.isfinite(self.measure)
        lines = [f"{self.name}: {count_of(len(self.levels), 'level')}"]
        if measured.sum() > 1:
            spread = float(np.std(self.measure[measured], ddof=1))
            lines.append(f"standard deviation {spread:.3f} logits, {self.describe_spread()}")
        without = int((~measured).sum())
        return [*lines, *([f"{count_of(without, 'level')} without a number"] if without else [])]

    @property
    def reliability(self) -> float:
        """Share of the variance of the measures that is not error; NaN without errors."""
        return find_reliability(self.measure, self.se)

    @property
    def separation(self) -> float:
        """True standard deviation of the measures, in units of their mean error; zero at least."""
        share = self.reliability
        return float(np.sqrt(max(share, 0.0) / (1 - share))) if share < 1 else float("nan")

    @property
    def strata(self) -> float:
        """How many groups of levels can be told apart: ``(4 separation + 1) / 3``."""
        return (4 * self.separation + 1) / 3

    def differ(self, level: float = 0.05) -> BoolArray:
        """Say which levels differ from the mean, each by itself at ``level``."""
        lower, upper = self.interval(1 - level).T
        with np.errstate(invalid="ignore"):
            return np.asarray((lower > 0) | (upper < 0))

    def __repr__(self) -> str:
        return f"<FacetLevels: {escape_controls(self.name)}, {count_of(len(self.levels), 'level')}>"
