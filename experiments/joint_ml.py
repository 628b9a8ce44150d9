"""Joint maximum likelihood for complete data, for comparison only.

The textbook method that estimates every person along with the items. It is not consistent when
the number of items stays fixed, which is why it is here and not in the library.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import expit

FloatArray = npt.NDArray[np.float64]


def joint_ml(
    answers: npt.NDArray[np.int8], *, tol: float = 1e-10, rounds: int = 5000
) -> FloatArray:
    """Difficulties, mean zero, that maximise the likelihood over items and persons together.

    Persons with all or no items right have no finite ability and drop out, as usual. Persons
    with the same score share an ability, so the equations are over scores.
    """
    m = answers.shape[1]
    score = answers.sum(axis=1)
    kept = (score > 0) & (score < m)
    persons = np.bincount(score[kept], minlength=m)[1:m]
    right = answers[kept].sum(axis=0)
    wanted = np.arange(1, m)
    difficulty, ability = np.zeros(m), np.zeros(m - 1)
    for _ in range(rounds):
        for _ in range(20):  # Newton's method for every score; it converges in a few steps
            p = expit(ability[:, None] - difficulty)
            ability += (wanted - p.sum(axis=1)) / (p * (1 - p)).sum(axis=1)
        p = expit(ability[:, None] - difficulty)
        step = (persons @ p - right) / (persons @ (p * (1 - p)))
        difficulty += step
        difficulty -= difficulty.mean()
        if np.abs(step).max() < tol:
            return difficulty
    raise SystemExit(f"joint maximum likelihood did not settle within {rounds} rounds")
