"""The paper's two algorithms as printed: dense, plain and slow, to be read beside the paper.

In: a matrix ``X[person, item]`` of 1, 0 and NaN, for the private algorithm also the noise and the
comparison graph that were drawn. Out: the difficulties, with mean zero. Nothing in the library
calls this module. Tests require that the engine gives the same numbers: for Algorithm 1 the method
"spectral" of :func:`discreet.fit`, for Algorithm 2 the estimator "spectral" of a release.

The noise is an argument, because Algorithm 2 draws it for the ordered pairs of the graph once: how
large it must be, and why it must reach counts of zero too, is the subject of
:mod:`discreet.privacy`.
"""

from __future__ import annotations

import numpy as np

from discreet.types import BoolArray, FloatArray

#: Rounds after which the printed iteration gives up.
ROUNDS = 200_000
#: Largest change of a probability at which the iteration counts as converged.
TOLERANCE = 1e-15


def count_differential_measurements(X: FloatArray) -> FloatArray:
    """Equation 2: ``Y[i, j]`` is the number of persons with 1 on i and 0 on j."""
    right, wrong = (X == 1).astype(float), (X == 0).astype(float)
    Y: FloatArray = right.T @ wrong
    np.fill_diagonal(Y, 0)
    return Y


def bound_row_sums(X: FloatArray) -> float:
    """Return d below Equation 3: the largest sum over k of ``B[i, k]``, persons with both items."""
    answered = (~np.isnan(X)).astype(float)
    B = answered.T @ answered
    np.fill_diagonal(B, 0)
    return float(B.sum(axis=1).max())


def build_markov_chain(Y: FloatArray, d: float) -> FloatArray:
    """Equation 3: ``M[i, j] = Y[i, j] / d``, and the rest of each row on the diagonal."""
    M = Y / d
    np.fill_diagonal(M, 0)
    np.fill_diagonal(M, 1 - M.sum(axis=1))
    return M


def iterate(M: FloatArray, rounds: int = ROUNDS, tolerance: float = TOLERANCE) -> FloatArray:
    """Step 2: power iteration from the uniform distribution to the stationary one.

    Where the chain mixes slowly the iteration stops far from the answer, and nothing shows it. The
    library eliminates instead (:func:`discreet.models.spectral.solve_stationary`).
    """
    pi = np.full(len(M), 1 / len(M))
    for _ in range(rounds):
        previous, pi = pi, pi @ M
        pi = pi / np.abs(pi).sum()
        if np.abs(pi - previous).max() <= tolerance:
            break
    return pi


def normalise(pi: FloatArray, d: float) -> FloatArray:
    """Step 3: the log of the normalised ``pi / d``, less its mean."""
    z = (pi / d) / np.abs(pi / d).sum()
    return np.asarray(np.log(z) - np.log(z).mean())


def estimate(X: FloatArray, rounds: int = ROUNDS, tolerance: float = TOLERANCE) -> FloatArray:
    """Algorithm 1, the spectral algorithm.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, np.nan]])
    >>> estimate(X).round(2)
    array([-0.44, -0.04,  0.48])
    """
    d = bound_row_sums(X)
    M = build_markov_chain(count_differential_measurements(X), d)
    return normalise(iterate(M, rounds, tolerance), d)


def estimate_privately(Y: FloatArray, noise: FloatArray, graph: BoolArray) -> FloatArray:
    """Algorithm 2, the private spectral estimator, on exact counts and noise that was drawn.

    ``graph[i, j]`` says whether the pair is compared; all pairs are where p0 is 1. Noise reaches
    every count of the graph. Counts below one are raised to one, so that every transition of the
    graph has a positive probability (the footnote of section 4.3), and d exceeds every row sum.
    """
    compared = graph & ~np.eye(len(Y), dtype=bool)
    private = np.where(compared, np.maximum(Y + noise, 1), 0)
    d = float(private.sum(axis=1).max()) + 1
    return normalise(iterate(build_markov_chain(private, d)), d)
