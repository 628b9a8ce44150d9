"""The denoised disagreements: a model, what stands out of the noise, and the raw values.

In: noisy disagreements, their noise, current difficulties. Out: non-negative disagreements and
how much of the noise is left in them.

Four layers, each of which takes only what the noise cannot explain:

1. ``scale * row_i * row_j * G(b_i, b_j)``, with G the probability that a person with a normal
   ability answers the two items differently;
2. a smooth surface over (b_i, b_j), which is what targeted assignment leaves behind;
3. the eigenvectors of the remainder whose eigenvalues stand out of the noise (booklets);
4. each pair's own raw value, weighted by how badly the model fits on the whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dpotrf

from discreet.answers.logistic import logistic
from discreet.models.noisy import laplacian, tanh_differences
from discreet.types import FloatArray

_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(21)
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()

# Ability distributions that are tried. Steps of .4 in the logarithm of the spread and .75 in the
# mean: finer ones changed no error by more than 1%.
ABILITY_MEANS = (-1.5, -0.75, 0.0, 0.75, 1.5)
ABILITY_SPREADS = (0.4, 0.8, 1.2, 1.8, 2.6)

#: Below this many items a surface over (b_i, b_j) has too few pairs behind each coefficient.
SMOOTH_ITEMS = 12

SMOOTH_TERMS = 8

#: A surface coefficient is kept from sqrt(5) standard errors on (non-negative garrote).
KEEP = 5.0

LOW_RANK_ITEMS = 8
#: Below this many items too few pairs are behind each row to tell its effect from noise.
ROW_ITEMS = 8

#: Row effects vary by no more than this share of their mean, however loud the noise is.
ROW_SPREAD = 0.7

#: Relative misfit of the model that is expected before looking: carries few pairs (m = 3).
MISFIT = 0.15


@dataclass(frozen=True, eq=False)
class PairLayout:
    """What is public about the pairs.

    Attributes
    ----------
    design
        Expected weight with which two items are answered together, up to a factor; all ones
        where nothing is known. Zero where a pair was not counted.
    sigma
        Standard deviation of the noise on each disagreement.
    ceiling
        Largest possible sum of the disagreements over pairs, or ``None``.
    weight
        Typical weight of one person: sampling gives a disagreement d the variance weight * d.
    """

    design: FloatArray
    sigma: float
    ceiling: float | None
    weight: float = 0.0

    @cached_property
    def counted(self) -> FloatArray:
        """One where the pair was counted and the items differ, else zero."""
        return (self.design > 0).astype(np.float64)

    @cached_property
    def pairs(self) -> float:
        """How many unordered pairs were counted."""
        return float(self.counted.sum()) / 2

    def shape(self, difficulty: FloatArray, mean: float, spread: float) -> FloatArray:
        """Return the expected disagreements up to a factor, for normal abilities."""
        return disagreement_probability(difficulty, mean, spread) * self.design


@dataclass(frozen=True, eq=False)
class Disagreements:
    """Denoised disagreements and the parts they are made of.

    Attributes
    ----------
    values
        Symmetric, non-negative, zero diagonal.
    trust
        Weight of each pair's own raw value, between 0 and 1.
    freedom
        Degrees of freedom taken from the raw values by the first three layers.
    unexplained
        Variance of ``sum_j D_ij tanh_ij`` that the raw values show beyond their noise and that
        was too weak to be corrected.
    """

    values: FloatArray
    trust: FloatArray
    freedom: float
    ability_mean: float
    ability_spread: float
    row_effect: FloatArray
    surface: FloatArray
    remainder: FloatArray
    unexplained: float = 0.0

    def redraw(self, difficulty: FloatArray, layout: PairLayout) -> FloatArray:
        """Return what these disagreements would be for other difficulties."""
        surface = surface_values(difficulty, self.surface)
        model = self.row_effect[:, None] * self.row_effect
        model *= layout.shape(difficulty, self.ability_mean, self.ability_spread)
        return np.asarray(np.maximum(model + surface + self.remainder, 0.0) * layout.counted)


def disagreement_probability(difficulty: FloatArray, mean: float, spread: float) -> FloatArray:
    """Probability that a person answers two items differently, for normal abilities.

    Examples
    --------
    >>> disagreement_probability(np.zeros(2), 0.0, 1e-9).round(3)
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    one_way = right_wrong_probability(difficulty, mean, spread)
    return np.asarray(one_way + one_way.T)


def right_wrong_probability(difficulty: FloatArray, mean: float, spread: float) -> FloatArray:
    """Probability of ``[i, j]``: item i right and item j wrong, for normal abilities."""
    right = logistic(mean + spread * _NODES - difficulty[:, None])
    probability = (right * _NODE_WEIGHTS) @ (1 - right).T
    np.fill_diagonal(probability, 0.0)
    return np.asarray(probability)


def denoise_disagreements(
    noisy: FloatArray,
    difficulty: FloatArray,
    layout: PairLayout,
    ability_guess: tuple[float, float] | None = None,
) -> Disagreements:
    """Estimate the disagreements from their noisy values, given difficulties.

    Parameters
    ----------
    noisy
        Symmetric with a zero diagonal, and zero where a pair was not counted.
    difficulty
        Current difficulties.
    layout
        What is public about the pairs.
    ability_guess
        An ability mean and spread to search around; by default the whole table is tried.
    """
    m = len(difficulty)
    mean, spread, scale, shape = _fit_ability(noisy, difficulty, layout, ability_guess)
    row, freedom = _fit_rows(noisy, shape, layout.sigma, scale)
    model = row[:, None] * row * shape
    values, freedom = model.copy(), freedom + 3
    surface = np.zeros((0, 0))
    full = layout.pairs == m * (m - 1) / 2
    if full and m >= SMOOTH_ITEMS and np.ptp(difficulty) > 1e-3:
        surface, used_freedom = fit_surface(noisy - values, difficulty, layout.sigma)
        values, freedom = values + surface_values(difficulty, surface), freedom + used_freedom
    smooth = values.copy()
    if full and m >= LOW_RANK_ITEMS:
        low_rank, used_freedom = keep_eigenvectors(noisy - values, layout.sigma)
        values, freedom = values + low_rank, freedom + used_freedom
    values = np.maximum(values, 0.0) * layout.counted
    trust = _trust_raw(noisy - values, model, values, layout)
    unexplained = 0.0
    values = np.maximum(values + trust * (noisy - values), 0.0) * layout.counted
    if full and m >= SMOOTH_ITEMS:
        shift, used_freedom, unexplained = match_totals(
            noisy - values, trust, difficulty, layout.sigma
        )
        values, freedom = np.maximum(values + shift, 0.0), freedom + used_freedom * layout.pairs
    values *= _below_ceiling(values, layout)
    left = (values - smooth) * layout.counted
    return Disagreements(
        values, trust, freedom, mean, spread, row, surface, left, unexplained=unexplained
    )


def _fit_ability(
    noisy: FloatArray,
    difficulty: FloatArray,
    layout: PairLayout,
    ability_guess: tuple[float, float] | None,
) -> tuple[float, float, float, FloatArray]:
    """Choose the ability distribution and the common scale by penalised least squares."""
    variance = layout.sigma**2
    if layout.ceiling is None:
        centre, weight = 0.0, 0.0
    else:
        # The sum over pairs lies between zero and the ceiling; .45 is a typical probability.
        centre = 0.5 * layout.ceiling / (0.45 * float(layout.design.sum()) / 2)
        weight = 1 / (0.8 * centre) ** 2
    best: tuple[float, float, float, float, FloatArray] | None = None
    for mean in ABILITY_MEANS:
        for spread in ABILITY_SPREADS:
            if ability_guess is not None and (
                abs(mean - ability_guess[0]) > 0.8 or abs(np.log(spread / ability_guess[1])) > 0.8
            ):
                continue
            shape = layout.shape(difficulty, mean, spread)
            square, product = float((shape**2).sum()) / 2, float((noisy * shape).sum()) / 2
            scale = (product / variance + centre * weight) / (square / variance + weight)
            loss = (scale**2 * square - 2 * scale * product) / variance
            loss += weight * (scale - centre) ** 2 + mean**2 + (np.log(spread) / 0.5) ** 2
            if best is None or loss < best[0]:
                best = (loss, mean, spread, scale, shape)
    if best is None:  # pragma: no cover - the table always holds a neighbour of its own entries
        return _fit_ability(noisy, difficulty, layout, None)
    _, mean, spread, scale, shape = best
    # A non-positive scale is noise. One standard error of it is the least the data can claim.
    square = float((shape**2).sum()) / 2
    return mean, spread, max(scale, 0.02 * centre, 0.1 * layout.sigma / np.sqrt(square)), shape


def _fit_rows(
    noisy: FloatArray, shape: FloatArray, sigma: float, scale: float
) -> tuple[FloatArray, float]:
    """Row effects, shrunk to a constant by how far they vary beyond the noise."""
    m = len(shape)
    row = np.full(m, np.sqrt(scale))
    freedom = 0.0
    if m < ROW_ITEMS:
        return row, freedom
    for _ in range(5):
        weighted = shape * row
        square = np.maximum((weighted**2).sum(axis=1), 1e-300)
        raw = (noisy * weighted).sum(axis=1) / square
        variance = sigma**2 / square
        centre = max(float((raw / variance).sum() / (1 / variance).sum()), 1e-9 * row.max())
        between = max(0.0, float(np.mean((raw - centre) ** 2) - variance.mean()))
        between = min(between, (ROW_SPREAD * centre) ** 2)
        weight = between / (between + variance)
        # The geometric mean with the last round keeps the alternation from overshooting.
        row = np.sqrt(row * np.maximum(centre + weight * (raw - centre), 0.02 * centre))
        freedom = float(weight.sum())
    return row, freedom


def _below_ceiling(values: FloatArray, layout: PairLayout) -> float:
    """Return the factor that keeps the sum over pairs possible."""
    if layout.ceiling is None:
        return 1.0
    return min(1.0, layout.ceiling / max(float(values.sum()) / 2, 1e-300))


def _trust_raw(
    residual: FloatArray, model: FloatArray, values: FloatArray, layout: PairLayout
) -> FloatArray:
    """Weight of each raw value: misfit variance over misfit plus noise variance.

    The misfit is relative to the model; its square is estimated from all pairs and pulled to
    ``MISFIT`` squared where the noise leaves it open.
    """
    square = model**2 * layout.counted
    total = max(float((square**2).sum()) / 2, 1e-300)
    observed = max(0.0, float(((residual**2 - layout.sigma**2) * square).sum()) / 2 / total)
    observed_weight = total / (2 * layout.sigma**4)
    prior = MISFIT**2
    misfit = (observed * observed_weight + 1 / prior) / (observed_weight + 1 / prior**2)
    # What persons happened to do is part of what the totals are compared with: no model has it.
    real = misfit * square + layout.weight * values
    return np.asarray(real / (real + layout.sigma**2))


def _basis(difficulty: FloatArray, terms: int) -> FloatArray:
    """Orthonormal polynomials in the difficulty, ``float[item, term]``."""
    centred = difficulty - difficulty.mean()
    largest = max(float(np.abs(centred).max()), 1e-9)
    powers = np.polynomial.legendre.legvander(centred / largest, terms - 1)
    return np.asarray(np.linalg.qr(powers)[0])


def fit_surface(
    residual: FloatArray, difficulty: FloatArray, sigma: float
) -> tuple[FloatArray, float]:
    """Coefficients of a smooth surface in the residual, those within the noise left out."""
    terms = min(SMOOTH_TERMS, len(difficulty) // 5)
    basis = _basis(difficulty, terms)
    variance = sigma**2 * (1 + np.eye(terms))
    filled = residual.copy()
    coefficients = np.zeros((terms, terms))
    for _ in range(8):  # the diagonal is not observed: impute it from the surface
        raw = basis.T @ filled @ basis
        weight = np.maximum(0.0, 1 - KEEP * variance / np.maximum(raw**2, 1e-300))
        coefficients = raw * weight
        np.fill_diagonal(filled, np.einsum("it,ts,is->i", basis, coefficients, basis))
    return coefficients, float((coefficients != 0).sum()) / 2


def surface_values(difficulty: FloatArray, surface: FloatArray) -> FloatArray:
    """Evaluate a surface at the given difficulties, with a zero diagonal."""
    if not surface.any():
        return np.zeros((len(difficulty), len(difficulty)))
    basis = _basis(difficulty, len(surface))
    values = basis @ surface @ basis.T
    np.fill_diagonal(values, 0.0)
    return np.asarray(values)


def keep_eigenvectors(residual: FloatArray, sigma: float) -> tuple[FloatArray, float]:
    """Part of the residual whose eigenvalues stand out of the noise.

    The spectrum of a symmetric noise matrix ends at ``2 sigma sqrt(m)``; an eigenvalue w beyond
    that edge is best replaced by ``sign(w) sqrt(w^2 - edge^2)``, whose square error is least.
    """
    m = len(residual)
    edge = 2 * sigma * np.sqrt(m)
    filled, low_rank, count = residual.copy(), np.zeros_like(residual), 0
    for _ in range(4):
        # Finite matrices overshoot the edge by a little.
        values, vectors = _eigenvectors_beyond(filled, 1.02 * edge)
        count = len(values)
        if not count:
            return np.zeros_like(residual), 0.0
        shrunk = np.sign(values) * np.sqrt(values**2 - edge**2)
        low_rank = (vectors * shrunk) @ vectors.T
        np.fill_diagonal(filled, np.diag(low_rank))
    np.fill_diagonal(low_rank, 0.0)
    return low_rank, 0.7 * m * count


def _eigenvectors_beyond(matrix: FloatArray, limit: float) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues beyond a limit on either side, with their eigenvectors.

    Most residuals are noise and have none. That they have none is what a Cholesky factor of
    ``limit - matrix`` shows, at a tenth of the cost of the eigenvectors.
    """
    values, vectors = [np.zeros(0)], [np.zeros((len(matrix), 0))]
    for sign in (1.0, -1.0):
        room = -sign * matrix
        room[np.diag_indices_from(room)] += limit
        if dpotrf(room, lower=1, clean=0, overwrite_a=1)[1] == 0:
            continue
        eigenpairs = eigh(matrix, subset_by_value=sorted((sign * limit, sign * np.inf)))
        values.append(eigenpairs[0])
        vectors.append(eigenpairs[1])
    return np.concatenate(values), np.concatenate(vectors, axis=1)


def match_totals(
    residual: FloatArray, trust: FloatArray, difficulty: FloatArray, sigma: float
) -> tuple[FloatArray, float, float]:
    """Correct the disagreements in the one respect that matters for the difficulties.

    The fit uses the disagreements through ``sum_j D_ij tanh_ij`` alone: m numbers, of which the
    raw values give unbiased estimates with known noise. What these say beyond the noise is kept,
    pattern by pattern for smooth patterns and with one common weight for the rest, and is put
    back as the smallest change of D that has these sums, ``(x_i - x_j) tanh_ij``.

    Returns the change, the share of the noise that comes with it, and the variance that is seen
    but not corrected.
    """
    m = len(difficulty)
    tanh = tanh_differences(difficulty)
    missing = (residual * tanh).sum(axis=1)
    basis = _basis(difficulty, min(SMOOTH_TERMS, m // 5))[:, 1:]
    noise = sigma**2 * laplacian(tanh**2 * (1 - trust) ** 2)
    score = basis.T @ missing
    spread = np.einsum("it,ij,jt->t", basis, noise, basis)
    smooth = basis @ (score * np.maximum(0.0, 1 - KEEP * spread / np.maximum(score**2, 1e-300)))
    remainder = missing - basis @ score
    expected = max(float(np.trace(noise) - spread.sum()), 1e-300)
    excess = max(0.0, float(remainder @ remainder) - expected) / m
    # Two standard errors of a mean square of m normal values.
    expected *= 1 + 2 * np.sqrt(2 / m)
    weight = max(0.0, 1 - expected / max(float(remainder @ remainder), 1e-300))
    correction = smooth + weight * remainder
    # The ridge leaves the constant direction, which has no meaning, at zero.
    square = laplacian(tanh**2)
    size = max(float(np.trace(square)) / m, 1e-300)
    x = np.linalg.solve(square + 1e-6 * size * np.eye(m), correction - correction.mean())
    return (x[:, None] - x) * tanh, weight, (1 - weight) * excess
