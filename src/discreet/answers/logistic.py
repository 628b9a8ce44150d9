"""The logistic curve: the chance of a right answer, from ability minus difficulty."""

from __future__ import annotations

import numpy as np

from discreet.types import FloatArray


def logistic(x: FloatArray) -> FloatArray:
    """Return 1 / (1 + exp(-x)), accurate in both tails.

    scipy.special has it too, and takes 0.2 s to import.

    Examples
    --------
    >>> logistic(np.array([-800.0, 0.0, 800.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    tail = np.exp(-np.abs(x))
    return np.asarray(np.where(x > 0, 1.0, tail) / (1.0 + tail))
