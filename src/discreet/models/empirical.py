"""Marginal likelihood with a free ability distribution: weights on a fixed grid.

In: the solution with normal abilities, to start from. Out: difficulties and weights. On complete
answers this reproduces conditional likelihood (de Leeuw and Verhelst 1986).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from discreet.errors import NotConverged
from discreet.models.mixture import (
    MarginalFit,
    Mixture,
    Sums,
    centre_covariance,
    evaluate,
    information_about_difficulty,
)
from discreet.results.estimate import Solution
from discreet.types import FloatArray

NODES_EMPIRICAL = 61
WEIGHT_ROUNDS = 30
"""EM rounds for the weights between two steps for the difficulties."""
EMPIRICAL_ROUNDS = 300
EMPIRICAL_TOL = 1e-6
"""Logits."""
FLAT_STEP = 1e-4
GAIN = 1e-3
"""A step of ``FLAT_STEP`` logits is accepted as the last one where a round gains less than this.
Log-likelihood of all answers; a standard error away from the maximum it is lower by 1/2."""
FLAT = 1e-3
"""Information relative to its median in a direction that the answers hardly determine."""


def fit_empirical(normal: Mixture) -> MarginalFit:
    """Alternate EM rounds for the weights with Newton steps for the difficulties."""
    reach = 5.0 * max(normal.sd, 0.5)
    mixture = replace(
        normal,
        sd=1.0,
        nodes=np.linspace(-reach, reach, NODES_EMPIRICAL),
        log_weights=np.full(NODES_EMPIRICAL, -np.log(NODES_EMPIRICAL)),
    )
    width = -0.5 * (mixture.nodes / max(normal.sd, 0.1)) ** 2
    mixture = replace(mixture, log_weights=width - np.log(np.exp(width).sum()))
    m, factor, before = len(normal.difficulty), None, -1e300
    for round_ in range(1, EMPIRICAL_ROUNDS + 1):
        mixture, sums = _reweigh(mixture)
        gain, before = sums.log_likelihood - before, sums.log_likelihood
        if factor is None:
            matrix = information_about_difficulty(mixture, sums)[:m, :m]
            factor = np.linalg.inv(matrix + matrix.diagonal().mean() / m)
        move = factor @ (sums.gradient - sums.gradient.mean())
        move -= move.mean()
        mixture = replace(mixture, difficulty=mixture.difficulty + move)
        length = float(np.abs(move).max())
        if length < EMPIRICAL_TOL or (gain < GAIN and length < FLAT_STEP):
            return _finish_empirical(mixture, round_, length)
    raise NotConverged(
        f"marginal likelihood with empirical abilities: the likelihood still grows after "
        f"{EMPIRICAL_ROUNDS} rounds; use ability='normal'"
    )


def _reweigh(mixture: Mixture) -> tuple[Mixture, Sums]:
    sums = evaluate(mixture)
    likelihood = sums.likelihood
    persons = mixture.patterns.persons
    weights = np.exp(mixture.log_weights)
    for _ in range(WEIGHT_ROUNDS):
        ratio = persons / (likelihood @ weights)
        weights = weights * (likelihood.T @ ratio) / persons.sum()
        # Rounding in the scale of each person's likelihood.
        weights /= weights.sum()
    mixture = replace(mixture, log_weights=np.log(np.maximum(weights, 1e-300)))
    return mixture, evaluate(mixture)


def _finish_empirical(mixture: Mixture, rounds: int, length: float) -> MarginalFit:
    sums = evaluate(mixture)
    weights = np.exp(mixture.log_weights)
    level = float(mixture.difficulty.mean())
    nodes = mixture.nodes - level
    mean = float(weights @ nodes)
    sd = float(np.sqrt(weights @ (nodes - mean) ** 2))
    note = f"abilities have {len(nodes)} free weights, mean {mean:.4f} and SD {sd:.4f}"
    return MarginalFit(
        difficulty=mixture.difficulty - level,
        covariance=_empirical_covariance(mixture, sums),
        nodes=nodes,
        weights=weights,
        mean=mean,
        sd=sd,
        log_likelihood=sums.log_likelihood,
        solution=Solution("marginal likelihood, EM and Newton steps", rounds, length, (note,)),
    )


def _empirical_covariance(mixture: Mixture, sums: Sums) -> FloatArray:
    """Inverse information about difficulties with mean zero, the weights being unknown too."""
    m = len(mixture.difficulty)
    about = information_about_difficulty(mixture, sums)[:m, :m]
    persons = mixture.patterns.persons
    away = sums.posterior - np.exp(mixture.log_weights)
    between = (away * persons[:, None]).T @ away
    cross = sums.cross_weights(mixture)
    values, vectors = np.linalg.eigh(between)
    keep = values > 1e-9 * values.max(initial=0.0)
    turned = cross @ (vectors[:, keep] / np.sqrt(values[keep]))
    matrix = about - turned @ turned.T
    values, vectors = np.linalg.eigh(centre_covariance(matrix))
    # The smallest is the common shift; directions that free weights leave undetermined get a
    # large variance, not an infinite one.
    order = np.argsort(np.abs(vectors.sum(axis=0)))[: m - 1]
    values, vectors = values[order], vectors[:, order]
    values = np.maximum(values, FLAT * float(np.median(values)))
    return np.asarray((vectors / values) @ vectors.T)
