"""What every reader hands over: the parts of a table of answers, before they are checked."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.responses.store import BitPlanes, SparseRows

__all__ = ["Parts"]


class Parts(NamedTuple):
    """Items, persons (Arrow strings, or None for numbers in order), answers, groups."""

    items: tuple[str, ...]
    persons: Any
    store: BitPlanes | SparseRows
    groups: dict[str, npt.NDArray[np.object_]]
