"""What the noise-aware fit hands back.

In: numbers from the solver. Out: one frozen value. It holds nothing confidential as long as the
fit was given released values only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["FloatArray", "NoiseFit"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NoiseFit:
    """Difficulties in logits with mean zero, and how sure they are.

    Attributes
    ----------
    difficulty
        One per item, harder is larger.
    covariance
        Of the difficulties; includes sampling, privacy noise, shrinkage and the uncertainty of
        the disagreements. ``None`` where standard errors were not asked for.
    prior_spread
        Standard deviation of the difficulties that the fit settled on.
    disagreement
        The denoised disagreements, symmetric with a zero diagonal.
    ability_mean, ability_spread
        The normal ability distribution that fits the disagreements best. A rough by-product.
    freedom
        How many degrees of freedom of the noisy disagreements were taken at face value.
    inflation
        Mean ratio of the bootstrap variance to the variance of the last linear step; NaN
        without standard errors.
    rounds
        Outer iterations done.
    """

    difficulty: FloatArray
    covariance: FloatArray | None
    prior_spread: float
    disagreement: FloatArray
    ability_mean: float
    ability_spread: float
    freedom: float
    inflation: float
    rounds: int

    @property
    def se(self) -> FloatArray:
        """Standard error of each difficulty; NaN where they were not asked for."""
        if self.covariance is None:
            return np.full(len(self.difficulty), np.nan)
        return np.sqrt(np.diag(self.covariance))
