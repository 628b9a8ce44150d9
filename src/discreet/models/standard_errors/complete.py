"""Standard errors from counts alone, for complete answers.

In: pair counts in which everybody answered every item, and the estimate from them. Out:
model-based standard errors. The sandwich needs the answers of each person; with complete
answers the counts still give the mean and the variance of the raw scores exactly, hence a
normal ability distribution, and the model says what the scores of such persons would be.
"""

from __future__ import annotations

import numpy as np

from discreet.answers.logistic import logistic
from discreet.counts import PairCounts
from discreet.models.laplacian import Laplacian, invert
from discreet.models.standard_errors import PairContribution, Uncertainty
from discreet.types import FloatArray

#: Simulated persons: the standard errors have a relative error of about 0.5%.
SIMULATED = 20_000


CHUNK = 2000


NODES = 41


def simulate_uncertainty(
    counts: PairCounts, laplacian: Laplacian, difficulty: FloatArray, scoring: PairContribution
) -> Uncertainty:
    """Estimate the sandwich with persons simulated from the fitted model."""
    centre, spread = match_abilities(counts, difficulty)
    rng = np.random.default_rng(0)
    surprise = np.ascontiguousarray(scoring.residual(difficulty[:, None], difficulty[None, :]))
    products = np.zeros((len(difficulty), len(difficulty)))
    for _ in range(SIMULATED // CHUNK):
        ability = centre + spread * rng.standard_normal((CHUNK, 1))
        chance = logistic(ability - difficulty)
        right = (rng.random(chance.shape) < chance).astype(float)
        wrong = 1.0 - right
        scores = right * (wrong @ surprise.T) - wrong * (right @ surprise)
        products += scores.T @ scores
    inverse = invert(laplacian)
    covariance = inverse @ products @ inverse * (counts.persons / SIMULATED)
    note = "standard errors are model-based (from counts of complete answers)"
    se_method = f"{note[0].upper()}{note[1:]}."
    return Uncertainty(np.sqrt(covariance.diagonal()), covariance, (note,), se_method=se_method)


def match_abilities(counts: PairCounts, difficulty: FloatArray) -> tuple[float, float]:
    """Mean and standard deviation of normal abilities that give the observed raw scores.

    With everybody answering all m items, the sum of all pair counts is the sum over persons
    of r (m - r), so the mean and the variance of the raw scores r are known exactly.
    """
    n, m = counts.persons, len(counts.items)
    mean = counts.right.sum() / n
    variance = m * mean - counts.right_wrong.sum() / n - mean**2
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    weights = weights / weights.sum()
    centre, spread = 0.0, 1.0
    for _ in range(100):
        chance = logistic(centre + spread * nodes[:, None] - difficulty)
        score, noise = chance.sum(axis=1), (chance * (1 - chance)).sum(axis=1)
        middle, slope = weights @ score, weights @ noise
        between = weights @ score**2 - middle**2
        target = max(variance - weights @ noise, 1e-6 * m)
        # The score moves with ability by its slope: two damped fixed-point updates.
        shift = np.clip((mean - middle) / slope, -1.0, 1.0)
        factor = np.clip(np.sqrt(target / max(between, 1e-12)), 0.5, 2.0)
        centre, spread = centre + float(shift), float(np.clip(spread * factor, 1e-3, 10.0))
        if abs(shift) < 1e-8 and abs(factor - 1) < 1e-8:
            break
    return centre, spread
