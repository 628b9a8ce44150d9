"""Arrays by what they hold, and words that are chosen from: one name for each, known once."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
Int8Array = npt.NDArray[np.int8]
Texts = npt.NDArray[np.object_]
UInt64Array = npt.NDArray[np.uint64]
Vector = npt.NDArray[Any]

Method = Literal["auto", "conditional", "refined", "spectral", "marginal"]
"""Names of estimators of difficulties."""
