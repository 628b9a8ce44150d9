"""Reported scales: logits as numbers that readers of a test know, such as mean 500 and SD 100.

In: two points of a scale, or the mean and the standard deviation that the persons shall have. Out:
a :class:`Scale`, which turns abilities, difficulties and their standard errors. The model stays in
logits; only what is shown is turned. A scale that was chosen from persons is confidential.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, log10
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.checking import as_numbers, checked
from discreet.errors import BadUsage
from discreet.saving import Kept
from discreet.tabular import Columns
from discreet.types import FloatArray

#: Columns of tables that are places on the scale.
PLACES = ("difficulty", "ability", "lower", "upper")
#: Columns of plausible values, which are places too.
DRAWN = re.compile(r"pv\d+")
#: Columns that are distances: a scale stretches them and does not move them.
DISTANCES = ("se", "difference")
#: Before the names of turned columns; the logits stay beside them.
PREFIX = "scaled_"


@checked
@dataclass(frozen=True)
class Scale(Kept):
    """A reported scale: ``intercept + slope * logits``.

    Examples
    --------
    >>> scale = Scale.from_points({0: 500, 1: 600})
    >>> scale.apply([-1.0, 0.5]).tolist(), float(scale.apply_error(0.25))
    ([400.0, 550.0], 25.0)
    """

    #: Whether abilities must be known before the scale is.
    needs_persons: ClassVar[bool] = False

    slope: float
    intercept: float

    def __post_init__(self) -> None:
        if not (isfinite(self.slope) and isfinite(self.intercept) and self.slope > 0):
            raise BadUsage(
                f"a scale needs a finite intercept and a slope above 0, found {self.intercept:g} "
                f"and {self.slope:g}; otherwise abler persons would not have higher numbers"
            )

    @classmethod
    @checked
    def from_points(cls, points: Mapping[float, float]) -> Scale:
        """Return the scale through two points, from logits to reported numbers."""
        if len(points) != 2:
            raise BadUsage(
                f"a scale goes through two points with different logits, found {len(points)}; "
                "say for example {0: 500, 1: 600}"
            )
        (x0, y0), (x1, y1) = sorted(points.items())
        slope = (y1 - y0) / (x1 - x0)
        return cls(float(slope), float(y0 - slope * x0))

    @classmethod
    @checked
    def from_persons(cls, ability: npt.ArrayLike, *, mean: float, sd: float) -> Scale:
        """Return the scale on which these abilities have a mean and a standard deviation.

        Parameters
        ----------
        ability
            In logits; NaN where a person has none. Their standard deviation is that of a
            sample, with one less than the number of persons below.
        mean, sd
            Wanted on the reported scale.
        """
        logits = as_numbers("ability", ability)
        measured = logits[np.isfinite(logits)]
        spread = float(measured.std(ddof=1)) if len(measured) > 1 else 0.0
        if spread == 0:
            raise BadUsage(
                f"no scale can give these persons the SD {sd:g}: it needs two different abilities "
                f"or more, found {len(measured)} persons with an ability and no spread; give two "
                "points instead, such as 0=500,1=600"
            )
        return ScaleTarget(mean, sd).fit(float(measured.mean()), spread)

    def settle(self, ability: npt.ArrayLike) -> Scale:  # noqa: ARG002 - as of Wanted
        """Return the scale itself: it depends on no persons."""
        return self

    @property
    def digits(self) -> int:
        """Decimals that say as much as three do in logits."""
        return max(0, round(3 - log10(self.slope)))

    def apply(self, logits: npt.ArrayLike) -> FloatArray:
        """Return abilities or difficulties on this scale; NaN stays NaN."""
        return self.intercept + self.slope * np.asarray(logits, dtype=np.float64)

    def apply_error(self, se: npt.ArrayLike) -> FloatArray:
        """Return standard errors, or other distances, on this scale."""
        return self.slope * np.asarray(se, dtype=np.float64)

    def add_to(self, columns: Mapping[str, list[Any]]) -> Columns:
        """Return a table with the turned columns beside those in logits, where it has such."""
        turned: dict[str, FloatArray] = {}
        for name, values in columns.items():
            if name in PLACES or DRAWN.fullmatch(name):
                turned[PREFIX + name] = self.apply(values)
            elif name in DISTANCES:
                turned[PREFIX + name] = self.apply_error(values)
        return {**columns, **{name: values.tolist() for name, values in turned.items()}}

    def __str__(self) -> str:
        sign = "-" if self.intercept < 0 else "+"
        return f"{self.slope:.6g} x logits {sign} {abs(self.intercept):.6g}"


@dataclass(frozen=True)
class ScaleTarget:
    """A scale still to be found: the mean and standard deviation that the persons shall have."""

    needs_persons: ClassVar[bool] = True

    mean: float
    sd: float

    def settle(self, ability: npt.ArrayLike) -> Scale:
        """Return the scale for these persons."""
        return Scale.from_persons(ability, mean=self.mean, sd=self.sd)

    def fit(self, mean: float, sd: float) -> Scale:
        """Return the scale for persons of whom only mean and SD in logits are known."""
        slope = self.sd / sd
        return Scale(slope, self.mean - slope * mean)


def parse_scale(text: str) -> Scale | ScaleTarget:
    """Read a scale as it is typed: ``500,100`` (mean and SD) or ``0=500,1=600`` (two points).

    Examples
    --------
    >>> parse_scale("500,100")
    ScaleTarget(mean=500.0, sd=100.0)
    >>> print(parse_scale("-1=400,1=600"))
    100 x logits + 500
    """
    parts = text.split(",")
    try:
        if len(parts) == 2 and all("=" in part for part in parts):
            pairs = [part.split("=") for part in parts]
            return Scale.from_points({float(logits): float(to) for logits, to in pairs})
        mean, sd = map(float, parts)
    except ValueError as error:
        raise BadUsage(
            f"--scale {text}: a scale is a mean and a standard deviation, such as 500,100, or two "
            "points, logits and what they become, such as 0=500,1=600."
        ) from error
    if not (isfinite(mean) and isfinite(sd) and sd > 0):
        raise BadUsage(f"--scale {text}: the mean must be finite and the SD above 0.")
    return ScaleTarget(mean, sd)
