"""The distribution of a score of independent answers."""

from __future__ import annotations

import numpy as np

from discreet.types import FloatArray


def score_distribution(right: FloatArray, wrong: FloatArray) -> FloatArray:
    """Distribution of the score of independent answers, ``[pattern, score]``.

    Parameters
    ----------
    right, wrong
        Probabilities ``[pattern, item]`` with ``right + wrong = 1``, given separately because
        one minus a small number loses digits.
    """
    c, k = right.shape
    total = np.zeros((c, k + 1))
    total[:, 0] = 1.0
    for j in range(k):
        moved = total[:, : j + 1] * right[:, j : j + 1]
        total[:, : j + 1] *= wrong[:, j : j + 1]
        total[:, 1 : j + 2] += moved
    return total
