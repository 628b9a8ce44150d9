"""The maximum of a marginal likelihood: difficulties, and abilities that are normal or empirical.

In: grouped answers, difficulties to start from and the structure that they obey. Out: difficulties,
their covariance and the ability distribution. A normal distribution is on a grid that moves with
its standard deviation; an empirical one has free weights on a fixed grid.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from discreet.errors import NotConverged
from discreet.models.conditional import Patterns
from discreet.models.laplacian import centre_covariance
from discreet.models.marginal import (
    MarginalFit,
    Mixture,
    Sums,
    evaluate_mixture,
    information_about_difficulty,
    score_difficulty,
    score_spread,
)
from discreet.models.structure import Structure
from discreet.results.estimate import Solution
from discreet.types import FloatArray, Int64Array

#: Half-width of the normal grid in standard deviations: 1e-10 of the mass lies outside.
REACH = 6.5
#: Logits, far below any standard error.
STEP_TOL = 1e-7
#: Newton steps; about 10 are taken.
STEPS = 200
#: A step that is not this much shorter than the last asks for new second derivatives.
REFRESH = 0.2
#: Below this the answers hardly tell persons apart and the estimate is at its boundary.
SMALL_SD = 0.02
NODES_EMPIRICAL = 61
#: EM rounds for the weights between two steps for the difficulties.
WEIGHT_ROUNDS = 30
EMPIRICAL_ROUNDS = 300
#: Logits.
EMPIRICAL_TOL = 1e-6
FLAT_STEP = 1e-4
#: A step of ``FLAT_STEP`` logits is accepted as the last one where a round gains less than this.
#: Log-likelihood of all answers; a standard error away from the maximum it is lower by 1/2.
GAIN = 1e-3
#: Information relative to its median in a direction that the answers hardly determine.
FLAT = 1e-3


def maximise_marginal(
    patterns: Patterns,
    right: Int64Array,
    *,
    start: FloatArray,
    ability: str = "normal",
    structure: Structure | None = None,
) -> MarginalFit:
    """Maximise the marginal likelihood of grouped answers.

    Parameters
    ----------
    patterns
        The persons' answered items and scores; every item has right and wrong answers.
    right
        Right answers per item.
    start
        Difficulties to start from.
    ability
        ``"normal"`` or ``"empirical"``.
    structure
        How difficulties follow from parameters, where these are not free; the start must obey it.
    """
    structure = structure or Structure(np.arange(len(start)))
    level = 0.0 if structure.held is None else float(np.nanmean(structure.held))
    item_of = np.unique(structure.item, return_inverse=True)[1]
    grid = normal_grid(1.0, 1)
    begin = Mixture(patterns, right, start - level, 1.0, *grid, item_of)
    normal, sums, steps = climb_normal(begin, find_ways(structure))
    if ability == "normal":
        return _finish_normal(normal, sums, steps, structure)
    return fit_empirical(normal, structure)


def find_ways(structure: Structure) -> FloatArray | None:
    """Return how difficulties less the mean ability, and the spread (last), move with what is free.

    A column for every parameter, beside anchors one for the mean ability, which lowers all of them,
    and one for the spread. None where all move freely.
    """
    if structure.is_identity:
        return None
    design, m = structure.design, len(structure.item)
    if structure.is_anchored:
        design = np.hstack([design, -np.ones((m, 1))])
    ways = np.zeros((m + 1, design.shape[1] + 1))
    ways[:m, :-1], ways[m, -1] = design, 1.0
    return ways


# --- normal abilities -------------------------------------------------------------------------


def normal_grid(sd: float, most_answers: float) -> tuple[FloatArray, FloatArray]:
    """Equally spaced nodes in standard deviations, and log weights.

    The trapezoid rule errs by about exp(-2 (pi s / h)^2) for a bell of width s and spacing h
    (here below 1e-8); the narrowest bell is the posterior of a person with all answers.
    """
    spacing = 1.0 / np.sqrt(1.0 + 1.5 * sd**2 * most_answers / 4)
    half = max(10, int(np.ceil(REACH / spacing)))
    nodes = np.linspace(-REACH, REACH, 2 * half + 1)
    log_weights = -0.5 * nodes**2
    return nodes, log_weights - np.log(np.exp(log_weights).sum())


def climb_normal(
    mixture: Mixture, ways: FloatArray | None = None, information: FloatArray | None = None
) -> tuple[Mixture, Sums, int]:
    """Newton's method on difficulties and standard deviation, with few second derivatives.

    Parameters
    ----------
    mixture
        Where to start.
    ways
        Directions, one per column, in which difficulties and standard deviation may move
        together; without them all move freely.
    information
        Second derivatives near the start, where they are known.
    """
    longest = mixture.most
    last = np.inf
    factor = None if information is None else _invert_along(information, ways)
    mixture = replace_grid(mixture, longest)
    sums = evaluate_mixture(mixture)
    for step in range(1, STEPS + 1):
        if factor is None:
            factor = _invert_along(normal_information(mixture, sums, ways), ways)
        move = factor @ np.append(sums.gradient, sums.gradient_sd)
        mixture, sums, length = _advance(mixture, sums, move, longest)
        if length < STEP_TOL:
            return mixture, sums, step
        factor = None if length > REFRESH * last else factor
        last = length
    raise NotConverged(
        f"marginal likelihood did not converge: the last of {STEPS} steps still changed a "
        f"parameter by {last:.1e} logits. Look for items with very few answers, or use the method "
        "'refined'"
    )


def _invert_along(matrix: FloatArray, ways: FloatArray | None) -> FloatArray:
    if ways is None:
        return np.asarray(np.linalg.inv(matrix))
    return np.asarray(ways @ np.linalg.solve(ways.T @ matrix @ ways, ways.T))


def replace_grid(mixture: Mixture, longest: int) -> Mixture:
    """Refine or coarsen the grid for the present standard deviation."""
    nodes, log_weights = normal_grid(mixture.sd, longest)
    if len(nodes) == len(mixture.nodes):
        return mixture
    return replace(mixture, nodes=nodes, log_weights=log_weights)


def _advance(
    mixture: Mixture, sums: Sums, move: FloatArray, longest: int
) -> tuple[Mixture, Sums, float]:
    """Take the step, halved until the likelihood does not fall; bounded to 2 logits."""
    move = move * min(1.0, 2.0 / max(float(np.abs(move).max()), 1e-300))
    for _ in range(40):
        # The likelihood is an even function of the standard deviation.
        sd = abs(mixture.sd + float(move[-1]))
        moved = replace(mixture, difficulty=mixture.difficulty + move[:-1], sd=sd)
        moved_sums = evaluate_mixture(moved)
        if moved_sums.log_likelihood >= sums.log_likelihood - 1e-11 * abs(sums.log_likelihood):
            finer = replace_grid(moved, longest)
            return (
                finer,
                moved_sums if finer is moved else evaluate_mixture(finer),
                float(np.abs(move).max()),
            )
        move = move / 2
    raise NotConverged(
        "marginal likelihood did not converge: no step increases it, although the gradient is not "
        "zero. Use the method 'refined'"
    )


def normal_information(mixture: Mixture, sums: Sums, ways: FloatArray | None = None) -> FloatArray:
    """Second derivatives by difficulties and standard deviation (Louis 1982).

    Where they are not positive definite, far from the maximum, as much of the information of
    the complete data (abilities known) is added as it takes: between Newton and EM. Only the
    directions in ``ways`` matter, where they are given.
    """
    matrix = information_about_difficulty(mixture, sums)
    for share in (0.0, 0.03, 0.1, 0.3, 1.0):
        mixed = matrix + share * sums.complete
        try:
            np.linalg.cholesky(mixed if ways is None else ways.T @ mixed @ ways)
        except np.linalg.LinAlgError:
            continue
        return np.asarray(mixed)
    return sums.complete


def _finish_normal(mixture: Mixture, sums: Sums, steps: int, structure: Structure) -> MarginalFit:
    ways = find_ways(structure)
    information = normal_information(mixture, sums, ways)
    level = _find_level(mixture, structure)
    notes = [f"abilities are normal with mean {-level:.4f} and SD {mixture.sd:.4f}"]
    if mixture.sd < SMALL_SD:
        words = "the answers do not tell persons apart: the ability spread is near zero"
        notes.insert(0, words)
    gradient = sums.gradient if ways is None else ways[:-1].T @ sums.gradient
    residual = float(np.abs(gradient).max())
    solver = "marginal likelihood, Newton steps"
    solver += ", anchors held" if structure.is_anchored else ""

    def release(released: Structure) -> tuple[FloatArray, FloatArray]:
        start = _obey(mixture, level, released)
        moved, _, _ = climb_normal(start, find_ways(released), information)
        difficulty = _hold(moved.difficulty - _find_level(moved, released), released)
        return difficulty, _find_covariance(information, mixture.sd, released)

    def influence(reached: FloatArray) -> FloatArray:
        scores = score_difficulty(mixture, sums, reached), score_spread(mixture, sums)
        turn = _map_scores(information, mixture.sd, structure)
        return np.column_stack(scores) @ turn.T

    return MarginalFit(
        difficulty=_hold(mixture.difficulty - level, structure),
        covariance=_find_covariance(information, mixture.sd, structure),
        nodes=mixture.abilities - level,
        weights=np.exp(mixture.log_weights),
        mean=-level,
        sd=mixture.sd,
        log_likelihood=sums.log_likelihood,
        solution=Solution(solver, steps, residual, tuple(notes)),
        release=release,
        influence=influence,
    )


def _obey(mixture: Mixture, level: float, structure: Structure) -> Mixture:
    """Return a start whose difficulties obey a structure, as near as possible."""
    nearest = structure.spread(structure.fit(mixture.difficulty - level))
    return replace(mixture, difficulty=nearest + level)


def _find_level(mixture: Mixture, structure: Structure) -> float:
    """Return minus the mean ability: what the difficulties less it have to be lowered by."""
    if structure.held is None:
        return mixture.level
    return float(np.nanmean(mixture.difficulty - structure.held))


def _hold(difficulty: FloatArray, structure: Structure) -> FloatArray:
    """Return difficulties with the held ones exactly where they are held."""
    return np.where(structure.is_free, difficulty, structure.offset)


def _find_covariance(matrix: FloatArray, sd: float, structure: Structure) -> FloatArray:
    """Return the covariance of the difficulties from the information, the spread's being last."""
    m, ways = len(structure.item), find_ways(structure)
    if sd < SMALL_SD:  # at the boundary, where persons do not differ, the spread does not vary
        matrix, ways = matrix[:m, :m], None if ways is None else ways[:m, :-1]
    if ways is None or not structure.is_anchored:
        return centre_covariance(np.asarray(_invert_along(matrix, ways)[:m, :m], dtype=np.float64))
    parameters = structure.design.shape[1]
    inverse = np.asarray(np.linalg.inv(ways.T @ matrix @ ways), dtype=np.float64)
    return structure.expand(inverse[:parameters, :parameters])


def _map_scores(matrix: FloatArray, sd: float, structure: Structure) -> FloatArray:
    """Return what turns scores, the spread's being last, into moves of the difficulties."""
    m, ways = len(structure.item), find_ways(structure)
    ways = np.eye(m + 1) if ways is None else ways
    if sd < SMALL_SD:
        ways = ways[:, :-1]
    parameter = np.linalg.solve(ways.T @ matrix @ ways, ways.T)
    if structure.is_anchored:
        return np.asarray(structure.design @ parameter[: structure.design.shape[1]])
    moves = ways[:m] @ parameter
    return np.asarray(moves - moves.mean(axis=0))


# --- empirical abilities ----------------------------------------------------------------------


def fit_empirical(normal: Mixture, structure: Structure) -> MarginalFit:
    """Alternate EM rounds for the weights with Newton steps for the difficulties."""
    basis = None if structure.is_identity else structure.design
    reach = 5.0 * max(normal.sd, 0.5)
    nodes = np.linspace(-reach, reach, NODES_EMPIRICAL)
    width = -0.5 * (nodes / max(normal.sd, 0.1)) ** 2
    log_weights = width - np.log(np.exp(width).sum())
    mixture = replace(normal, sd=1.0, nodes=nodes, log_weights=log_weights)
    m, factor, before = len(normal.difficulty), None, -1e300
    for round_ in range(1, EMPIRICAL_ROUNDS + 1):
        mixture, sums = _reweigh(mixture)
        gain, before = sums.log_likelihood - before, sums.log_likelihood
        if factor is None:
            matrix = information_about_difficulty(mixture, sums)[:m, :m]
            lift = 0.0 if structure.is_anchored else matrix.diagonal().mean() / m
            factor = _invert_along(matrix + lift, basis)
        if structure.is_anchored:
            move = factor @ sums.gradient
        else:
            move = factor @ (sums.gradient - sums.gradient.mean())
            move -= move.mean()
        mixture = replace(mixture, difficulty=mixture.difficulty + move)
        length = float(np.abs(move).max())
        if length < EMPIRICAL_TOL or (gain < GAIN and length < FLAT_STEP):
            return _finish_empirical(mixture, round_, length, structure)
    raise NotConverged(
        f"marginal likelihood with empirical abilities: the likelihood still grows after "
        f"{EMPIRICAL_ROUNDS} rounds; use ability='normal'"
    )


def _reweigh(mixture: Mixture) -> tuple[Mixture, Sums]:
    sums = evaluate_mixture(mixture)
    likelihood = sums.likelihood
    persons = mixture.patterns.persons
    weights = np.exp(mixture.log_weights)
    for _ in range(WEIGHT_ROUNDS):
        ratio = persons / (likelihood @ weights)
        weights = weights * (likelihood.T @ ratio) / persons.sum()
        # Rounding in the scale of each person's likelihood.
        weights /= weights.sum()
    mixture = replace(mixture, log_weights=np.log(np.maximum(weights, 1e-300)))
    return mixture, evaluate_mixture(mixture)


def _finish_empirical(
    mixture: Mixture, rounds: int, length: float, structure: Structure
) -> MarginalFit:
    sums = evaluate_mixture(mixture)
    weights, level = np.exp(mixture.log_weights), _find_level(mixture, structure)
    nodes = mixture.nodes - level
    mean = float(weights @ nodes)
    sd = float(np.sqrt(weights @ (nodes - mean) ** 2))

    def release(released: Structure) -> tuple[FloatArray, FloatArray]:
        start = _obey(replace(mixture, sd=max(sd, 0.1)), level, released)
        moved = fit_empirical(start, released)
        return moved.difficulty, moved.covariance

    note = f"abilities have {len(nodes)} free weights, mean {mean:.4f} and SD {sd:.4f}"
    return MarginalFit(
        difficulty=_hold(mixture.difficulty - level, structure),
        covariance=_empirical_covariance(mixture, sums, structure),
        nodes=nodes,
        weights=weights,
        mean=mean,
        sd=sd,
        log_likelihood=sums.log_likelihood,
        solution=Solution("marginal likelihood, EM and Newton steps", rounds, length, (note,)),
        release=release,
    )


def _empirical_covariance(mixture: Mixture, sums: Sums, structure: Structure) -> FloatArray:
    """Inverse information about difficulties with mean zero, the weights being unknown too."""
    m = len(mixture.difficulty)
    about = information_about_difficulty(mixture, sums)[:m, :m]
    persons = mixture.patterns.persons
    deviation = sums.posterior - np.exp(mixture.log_weights)
    between = (deviation * persons[:, None]).T @ deviation
    # A weight on its way to zero is held by the slope that drives it there.
    between += np.diag(np.maximum(-(persons @ deviation), 0.0))
    cross = sums.cross_weights(mixture)
    values, vectors = np.linalg.eigh(between)
    keep = values > 1e-9 * values.max(initial=0.0)
    turned = cross @ (vectors[:, keep] / np.sqrt(values[keep]))
    matrix = about - turned @ turned.T
    values, vectors = _split_information(matrix, structure)
    # Directions that free weights leave undetermined get a large variance, not an infinite one.
    return np.asarray((vectors / np.maximum(values, FLAT * np.median(values))) @ vectors.T)


def _split_information(matrix: FloatArray, structure: Structure) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues and vectors of all directions in which difficulties are determined."""
    if structure.is_anchored:
        ways = np.linalg.qr(structure.design)[0]
    elif structure.is_identity:
        values, vectors = np.linalg.eigh(centre_covariance(matrix))
        order = np.argsort(np.abs(vectors.sum(axis=0)))[: len(matrix) - 1]
        return values[order], vectors[:, order]
    else:
        # A basis holds the common shift: without it one direction less is left.
        centred = structure.design - structure.design.mean(axis=0)
        ways = np.linalg.svd(centred, full_matrices=False)[0][:, :-1]
        matrix = centre_covariance(matrix)
    values, vectors = np.linalg.eigh(ways.T @ matrix @ ways)
    return values, ways @ vectors
