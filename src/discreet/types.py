"""Names of array types by what they hold."""

from __future__ import annotations

from typing import Any

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
