"""The paper's Algorithm 1, step by step as printed: plain, slow, and easy to compare by eye.

It lives in the tests as the reference for ``discreet.models.methods``. Its power iteration
stops at a tolerance; where the chain mixes slowly it is not close to the answer.
"""

from __future__ import annotations

import numpy as np


def count_measurements(X):
    """Y_ij: persons with 1 on i and 0 on j, over answered items only (NaN is missing)."""
    n, m = X.shape
    Y = np.zeros((m, m))
    for person in range(n):
        for i in range(m):
            for j in range(m):
                if i != j and X[person, i] == 1 and X[person, j] == 0:
                    Y[i, j] += 1
    return Y


def build_markov_chain(X):
    """M_ij = Y_ij / d off the diagonal; d as the paper suggests, the largest sum of B_ik."""
    Y = count_measurements(X)
    given = ~np.isnan(X)
    B = given.T.astype(float) @ given
    np.fill_diagonal(B, 0.0)
    d = B.sum(axis=1).max()
    M = Y / d
    np.fill_diagonal(M, 1.0 - M.sum(axis=1))
    return M, d


def estimate_as_printed(X, *, rounds=200_000, tol=1e-15):
    """Steps 1 to 3 of Algorithm 1. Returns the parameters and whether the iteration settled."""
    M, d = build_markov_chain(X)
    m = len(M)
    pi = np.full(m, 1.0 / m)
    settled = False
    for _ in range(rounds):
        following = pi @ M
        following /= np.abs(following).sum()
        settled = bool(np.abs(following - pi).max() <= tol)
        pi = following
        if settled:
            break
    z = (pi / d) / np.abs(pi / d).sum()
    log_z = np.log(z)
    return log_z - log_z.mean(), settled


def estimate_from_noisy(noisy, compared, *, rounds=200_000, tol=1e-15):
    """Algorithm 2 on counts that all got noise: the floor, the chain, then steps 2 and 3.

    ``noisy[i][j]`` is the count of the ordered pair (i, j), ``compared[i][j]`` whether it is an
    edge of the graph.
    """
    m = len(noisy)
    M = np.zeros((m, m))
    for i in range(m):
        for j in range(m):
            if i != j and compared[i][j]:
                M[i, j] = max(1, noisy[i][j])
    d = max(M[i].sum() for i in range(m)) + 1
    for i in range(m):
        M[i] /= d
        M[i, i] = 1.0 - M[i].sum()
    pi = np.full(m, 1.0 / m)
    for _ in range(rounds):
        following = pi @ M
        following /= np.abs(following).sum()
        if np.abs(following - pi).max() <= tol:
            break
        pi = following
    log_z = np.log((pi / d) / np.abs(pi / d).sum())
    return log_z - log_z.mean()
