"""The layers of the denoised disagreements that need no model: surface, eigenvectors, sums.

In: what is left of the noisy disagreements, and their noise. Out: what stands out of the noise.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dpotrf

from discreet.models.noisefit.solve import laplacian
from discreet.types import FloatArray

SMOOTH_TERMS = 8

KEEP = 5.0
"""A surface coefficient is kept from sqrt(5) standard errors on (non-negative garrote)."""


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
    kept = np.zeros((terms, terms))
    for _ in range(8):  # the diagonal is not observed: impute it from the surface
        raw = basis.T @ filled @ basis
        weight = np.maximum(0.0, 1 - KEEP * variance / np.maximum(raw**2, 1e-300))
        kept = raw * weight
        np.fill_diagonal(filled, np.einsum("it,ts,is->i", basis, kept, basis))
    return kept, float((kept != 0).sum()) / 2


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
    filled, kept, count = residual.copy(), np.zeros_like(residual), 0
    for _ in range(4):
        # Finite matrices overshoot the edge by a little.
        values, vectors = _eigenvectors_beyond(filled, 1.02 * edge)
        count = len(values)
        if not count:
            return np.zeros_like(residual), 0.0
        shrunk = np.sign(values) * np.sqrt(values**2 - edge**2)
        kept = (vectors * shrunk) @ vectors.T
        np.fill_diagonal(filled, np.diag(kept))
    np.fill_diagonal(kept, 0.0)
    return kept, 0.7 * m * count


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
        found = eigh(matrix, subset_by_value=sorted((sign * limit, sign * np.inf)))
        values.append(found[0])
        vectors.append(found[1])
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
    tanh = np.tanh((difficulty[None, :] - difficulty[:, None]) / 2)
    missing = (residual * tanh).sum(axis=1)
    basis = _basis(difficulty, min(SMOOTH_TERMS, m // 5))[:, 1:]
    noise = sigma**2 * laplacian(tanh**2 * (1 - trust) ** 2)
    score = basis.T @ missing
    spread = np.einsum("it,ij,jt->t", basis, noise, basis)
    smooth = basis @ (score * np.maximum(0.0, 1 - KEEP * spread / np.maximum(score**2, 1e-300)))
    rest = missing - basis @ score
    expected = max(float(np.trace(noise) - spread.sum()), 1e-300)
    excess = max(0.0, float(rest @ rest) - expected) / m
    # Two standard errors of a mean square of m normal values.
    expected *= 1 + 2 * np.sqrt(2 / m)
    weight = max(0.0, 1 - expected / max(float(rest @ rest), 1e-300))
    wanted = smooth + weight * rest
    # The ridge leaves the constant direction, which has no meaning, at zero.
    square = laplacian(tanh**2)
    size = max(float(np.trace(square)) / m, 1e-300)
    x = np.linalg.solve(square + 1e-6 * size * np.eye(m), wanted - wanted.mean())
    return (x[:, None] - x) * tanh, weight, (1 - weight) * excess
