"""The result of a calibration: difficulties, how sure they are, and why some are missing.

In: numbers from an estimator. Out: a frozen value with its tables and intervals. It holds no
answers; whether it may be published depends on ``guarantee``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from discreet.chain import Status
from discreet.errors import BadUsage
from discreet.stationary import Solution

if TYPE_CHECKING:
    from discreet.privacy.accounting import Guarantee

__all__ = ["Estimate", "Solution", "Status"]

FloatArray = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Estimate:
    """Item difficulties in logits, mean zero over the estimated items, harder is larger.

    Attributes
    ----------
    items
        Item names in the order of the input.
    difficulty, se
        NaN where there is no number; ``status`` says why.
    status
        One :class:`Status` per item.
    method
        ``"refined"``, ``"spectral"``, or the estimator of a release.
    covariance
        Of the estimated items only, in their order; ``None`` where it was not computed.
    answers, right
        Per item; ``None`` in a release.
    persons
        How many persons; ``None`` where that is not public.
    guarantee
        The privacy guarantee, or ``None`` for a confidential estimate.
    solution
        How it was computed.
    """

    items: tuple[str, ...]
    difficulty: FloatArray
    se: FloatArray
    status: tuple[Status, ...]
    method: str
    solution: Solution
    covariance: FloatArray | None = None
    answers: Int64Array | None = None
    right: Int64Array | None = None
    persons: int | None = None
    guarantee: Guarantee | None = None
    warnings: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        for array in (self.difficulty, self.se, self.covariance, self.answers, self.right):
            if array is not None:
                array.setflags(write=False)

    @property
    def estimated(self) -> npt.NDArray[np.bool_]:
        """Which items have a difficulty."""
        return ~np.isnan(self.difficulty)

    def interval(self, level: float = 0.95) -> FloatArray:
        """Lower and upper end of each item's own interval, ``float[item, 2]``."""
        half = ndtri(0.5 + check_level(level) / 2) * self.se
        return np.column_stack([self.difficulty - half, self.difficulty + half])

    def to_dict(self) -> dict[str, list[Any]]:
        """One list per column: item, difficulty, se, lower, upper, status, answers, right."""
        interval = self.interval()
        columns: dict[str, list[Any]] = {
            "item": list(self.items),
            "difficulty": self.difficulty.tolist(),
            "se": self.se.tolist(),
            "lower": interval[:, 0].tolist(),
            "upper": interval[:, 1].tolist(),
            "status": [str(status) for status in self.status],
        }
        if self.answers is not None and self.right is not None:
            columns["answers"] = self.answers.tolist()
            columns["right"] = self.right.tolist()
        return columns

    def to_arrow(self) -> Any:
        """Return the item table as a :class:`pyarrow.Table`."""
        import pyarrow as pa

        return pa.table(self.to_dict())

    def to_dataframe(self) -> Any:
        """Return the item table as a pandas DataFrame, or as Arrow where pandas is absent."""
        table = self.to_arrow()
        try:
            return table.to_pandas()
        except ModuleNotFoundError:
            return table


def check_level(level: float) -> float:
    """Return a confidence level between 0 and 1, or explain."""
    if not 0 < level < 1:
        raise BadUsage(f"level must lie between 0 and 1, found {level}; use 0.95 for 95%")
    return float(level)
