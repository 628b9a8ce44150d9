"""The refined estimate: pairwise conditional likelihood, solved by safeguarded Newton steps.

In: pair counts in which each person has weight one over the number of items answered (or
plain counts). Out: difficulties and how they were found. Given that exactly one of two items
was answered right, it is the first with probability ``1 / (1 + exp(b_first - b_second))``,
whatever the ability; the product of these probabilities over pairs and persons is maximised.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from discreet.answers.logistic import logistic
from discreet.counts.matrix import PairMatrix
from discreet.errors import NotConverged
from discreet.models.laplacian import Laplacian, LaplacianSolver, build_laplacian, upper_triangle
from discreet.models.spectral import draw_slow_direction
from discreet.models.standard_errors import Contribution, Factors
from discreet.models.structure import Structure
from discreet.results.estimate import Solution
from discreet.threads import threads_for
from discreet.types import FloatArray

#: Rounds of the jump chain for the start; Newton needs a direction, not digits.
START_ROUNDS = 8
#: Stop after a step this small (logits): Newton squares it, so the error left is below 1e-15.
STEP_TOL = 1e-9
#: A step below this that no longer shrinks is rounding, which bad links magnify.
ROUNDING_STEP = 1e-7
NEWTON_ROUNDS = 100
#: Largest difference in logits between two starts: far below any standard error.
AGREEMENT = 1e-6
#: Largest range of difficulties, in logits, whose exponentials all are normal doubles.
EXP_RANGE = 600.0
#: Pairs evaluated together: the arrays of 1.6 MB stay in cache.
PIECE_PAIRS = 200_000
#: Range of a step, in logits, below which it is taken in full. See :func:`_damping`.
FULL_STEP = 1.0


@dataclass(frozen=True)
class RefinedScoring:
    """What a pair (first right, second wrong) adds to the score and to the curvature."""

    is_complementary = True

    def residual(self, right: FloatArray, wrong: FloatArray) -> FloatArray:
        """One minus the probability that the pair went this way round."""
        right_odds, wrong_odds = _odds(right, wrong)
        return np.asarray(right_odds / (right_odds + wrong_odds))

    def curvature(self, right: FloatArray, wrong: FloatArray) -> FloatArray:
        """Second derivative of the pair's log-likelihood, with the sign turned."""
        right_odds, wrong_odds = _odds(right, wrong)
        denominator = right_odds + wrong_odds
        denominator *= denominator
        return np.asarray(np.divide(right_odds * wrong_odds, denominator, out=denominator))

    def factor(
        self, contribution: Contribution, difficulty: FloatArray, tolerance: float
    ) -> Factors | None:
        """Interpolate between difficulties; None where that takes more than a third of the items.

        Chebyshev polynomials of the first difficulty times their coefficients, which are functions
        of the second. The logistic function is analytic within pi of the real line, so that errors
        fall with the sum of the axes of an ellipse around all difficulties (Trefethen 2013, ch. 8).
        """
        middle, half = (difficulty.max() + difficulty.min()) / 2, max(np.ptp(difficulty) / 2, 0.5)
        height = np.pi / half
        size = int(1 - np.log(tolerance) / np.log(height + np.sqrt(height**2 + 1)))
        if 3 * size > len(difficulty):
            return None
        degree, angle = np.arange(size), np.pi * (np.arange(size) + 0.5) / size
        values = contribution(middle + half * np.cos(angle)[:, None], difficulty[None, :])
        coefficient = np.cos(degree[:, None] * angle) @ values * (2 / size)
        coefficient[0] /= 2
        position = np.arccos(np.clip((difficulty - middle) / half, -1.0, 1.0))
        return np.cos(position[:, None] * degree), coefficient


def solve_refined(rates: PairMatrix) -> tuple[FloatArray, Solution]:
    """Maximise the pairwise conditional likelihood.

    Parameters
    ----------
    rates
        Strongly connected counts ``rates[i, j]`` of "i right, j wrong"; dense or CSR.

    Returns
    -------
    tuple
        Difficulties with mean zero, and a :class:`~discreet.results.estimate.Solution` whose
        residual is the size of the last Newton step in logits (dense counts, solved exactly)
        or the largest difference between two starts (sparse counts, solved iteratively).

    Raises
    ------
    NotConverged
        If the Newton steps do not become small, or two starts end apart.
    """
    with threads_for(rates.shape[0]):
        return _maximise(rates)


def _maximise(rates: PairMatrix) -> tuple[FloatArray, Solution]:
    if isinstance(rates, np.ndarray):
        difficulty, done, size = _climb(_DensePairs(rates), _start(rates), LaplacianSolver())
        return difficulty, Solution("Newton on the pairwise likelihood", done, size)
    pairs, solver = _SparsePairs(rates), LaplacianSolver()
    difficulty, done, _ = _climb(pairs, _start(rates), solver)
    # Conjugate gradients can stop early in directions that few answers determine. A second
    # start that is off in these directions would then not come back.
    leaving = np.asarray(rates.sum(axis=1)).ravel()
    second, more, _ = _climb(pairs, difficulty + draw_slow_direction(rates, leaving), solver)
    gap = float(np.abs(difficulty - second).max())
    if gap > AGREEMENT:
        raise _refuse_stop(len(difficulty), f"two starts {gap:.1e} logits apart")
    return difficulty, Solution("Newton on the pairwise likelihood, two starts", done + more, gap)


def solve_within(rates: PairMatrix, structure: Structure) -> tuple[FloatArray, Solution]:
    """Maximise the same likelihood among the thresholds of a structure.

    Parameters
    ----------
    rates
        Counts between all nodes; some may lead nowhere, as the structure links them too.
    structure
        How thresholds follow from parameters.
    """
    rates = rates if isinstance(rates, np.ndarray) else rates.toarray()
    pairs = _DensePairs(rates)
    solver = "Newton on the pairwise likelihood, anchors held"
    if not structure.is_anchored:
        solver = "Newton within the structure"
    held = structure.held
    start = _start(rates) if held is None else np.full(len(held), np.nanmean(held))
    parameter, size = structure.fit(start), np.inf
    if not len(parameter):
        return structure.spread(parameter), Solution(solver, 0, 0.0)
    for done in range(1, NEWTON_ROUNDS + 1):
        residual, laplacian = pairs.evaluate(structure.spread(parameter))
        step = _solve_step(structure, laplacian, residual)
        node = structure.move(step)
        node -= 0.0 if structure.is_anchored else node.mean()
        before, size = size, float(np.abs(node).max())
        parameter = parameter - _damping(node) * step
        if size <= STEP_TOL or (size <= ROUNDING_STEP and size > before / 2):
            difficulty = structure.spread(parameter)
            difficulty -= 0.0 if structure.is_anchored else difficulty.mean()
            return difficulty, Solution(solver, done, size)
        if not np.isfinite(size):
            break
    raise _refuse_stop(len(structure.item), f"steps of {size:.1e} logits")


def _solve_step(structure: Structure, laplacian: Laplacian, residual: FloatArray) -> FloatArray:
    second = structure.project_matrix(laplacian.to_dense())
    score = structure.project(residual)
    if structure.is_anchored:
        try:
            return np.asarray(np.linalg.solve(second, score))
        except np.linalg.LinAlgError as error:
            raise _refuse_stop(len(structure.item), str(error)) from error
    try:
        # The common shift is open, and has no part in the score.
        lifted = structure.lift(second)
        np.linalg.cholesky(lifted)
        return np.asarray(np.linalg.solve(lifted, score))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(second, score, rcond=1e-12)[0])


def _climb(
    pairs: _DensePairs | _SparsePairs, start: FloatArray, solver: LaplacianSolver
) -> tuple[FloatArray, int, float]:
    """Make Newton steps until they are small; return how many, and the size of the last."""
    difficulty, size = start.copy(), np.inf
    for done in range(1, NEWTON_ROUNDS + 1):
        residual, laplacian = pairs.evaluate(difficulty)
        step = solver.solve(laplacian, residual)
        before, size = size, float(np.abs(step).max())
        difficulty -= _damping(step) * step
        if size <= STEP_TOL or (size <= ROUNDING_STEP and size > before / 2):
            return difficulty - difficulty.mean(), done, size
        if not np.isfinite(size):
            break
    raise _refuse_stop(len(start), f"steps of {size:.1e} logits")


def _refuse_stop(items: int, outcome: str) -> NotConverged:
    return NotConverged(
        f"Newton's method on the pairwise likelihood of {items} items stopped with {outcome}; some "
        "items are linked by far too few answers: remove them, add regularisation, or use "
        "method='spectral'"
    )


def curvature(rates: PairMatrix, difficulty: FloatArray) -> Laplacian:
    """Return minus the second derivative of the log-likelihood, a graph Laplacian."""
    pairs = _DensePairs(rates) if isinstance(rates, np.ndarray) else _SparsePairs(rates)
    return pairs.evaluate(difficulty)[1]


def _start(rates: PairMatrix) -> FloatArray:
    """Return a rough spectral estimate: a few rounds of the jump chain, from one start.

    All zero where that leaves the range of doubles; Newton arrives from anywhere.
    """
    leaving = np.asarray(rates.sum(axis=1)).ravel()
    incoming = rates.T if isinstance(rates, np.ndarray) else rates.T.tocsr()
    weight = np.ones(len(leaving))
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(START_ROUNDS):
            weight = (incoming @ weight) / leaving
        start = np.log(weight)
        start -= start.mean()
    return start if np.isfinite(start).all() else np.zeros(len(start))


def _damping(step: FloatArray) -> float:
    """Share of a Newton step that surely increases the likelihood.

    Along the step the third derivative is at most r times the second, with r the range of
    the step (every term is a logistic loss of a difference of two difficulties). For such
    functions log(1 + r) / r of the step increases the likelihood from any point, and so does
    the full step for r below 1.79 (Sun and Tran-Dinh 2019, generalised self-concordance).
    """
    spread = float(step.max() - step.min())
    return 1.0 if spread <= FULL_STEP else float(np.log1p(spread) / spread)


def _odds(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return exponentials whose ratio is the odds of two difficulties: one an item, not a pair.

    Where these leave the range of doubles there is one for every pair after all.
    """
    low, high = min(first.min(), second.min()), max(first.max(), second.max())
    if high - low > EXP_RANGE:
        apart = first - second
        return np.exp(np.minimum(apart, 0.0)), np.exp(np.minimum(-apart, 0.0))
    middle = (low + high) / 2
    return np.exp(first - middle), np.exp(second - middle)


def _beats(difficulty: FloatArray) -> FloatArray:
    """Return ``chance[i, j]`` that item i is the one that is right, given that one is."""
    if np.ptp(difficulty) > EXP_RANGE:
        return logistic(difficulty[None, :] - difficulty[:, None])
    # One exponential an item instead of one a pair.
    odds = np.exp(difficulty - difficulty.mean())
    total = odds[:, None] + odds[None, :]
    return np.asarray(np.divide(odds[None, :], total, out=total))


class _DensePairs:
    """Score and curvature from a dense matrix of counts."""

    def __init__(self, rates: FloatArray) -> None:
        self._both = rates + rates.T
        np.fill_diagonal(self._both, 0.0)
        self._right = rates.sum(axis=1) - rates.diagonal()

    def evaluate(self, difficulty: FloatArray) -> tuple[FloatArray, Laplacian]:
        chance = _beats(difficulty)
        expected = self._both * chance
        residual = self._right - expected.sum(axis=1)
        # chance transposed is one minus chance, without cancellation at large differences.
        expected *= chance.T
        return residual, build_laplacian(expected)


class _SparsePairs:
    """Score and curvature from a CSR matrix of counts; each pair is visited once."""

    def __init__(self, rates: PairMatrix) -> None:
        self._both = upper_triangle(rates)
        self._right = np.asarray(rates.sum(axis=1)).ravel() - rates.diagonal()

    def evaluate(self, difficulty: FloatArray) -> tuple[FloatArray, Laplacian]:
        pairs, m = self._both, len(difficulty)
        pointer, column = pairs.indptr, pairs.indices
        weight, expected = np.empty(len(column)), np.zeros(m)
        # Some rows at a time, so that the temporary arrays stay in cache.
        pieces = np.searchsorted(pointer, np.arange(0, len(column), PIECE_PAIRS))
        for low, high in pairwise(np.unique([*pieces, m])):
            span = slice(pointer[low], pointer[high])
            partner, counts = column[span], pairs.data[span]
            log_odds = difficulty[partner]
            log_odds -= np.repeat(difficulty[low:high], np.diff(pointer[low : high + 1]))
            # With t = exp(-|x|): chance(|x|) = 1 / (1 + t) and chance (1 - chance) =
            # t / (1 + t)^2, one exponential a pair and no cancellation at large |x|.
            tail = np.exp(-np.abs(log_odds))
            larger = 1.0 / (1.0 + tail)
            smaller = tail * larger
            np.multiply(counts * larger, smaller, out=weight[span])
            first = counts * np.where(log_odds > 0, larger, smaller)
            running = np.concatenate([[0.0], np.cumsum(first)])
            expected[low:high] += np.diff(running[pointer[low : high + 1] - pointer[low]])
            expected += np.bincount(partner, weights=counts - first, minlength=m)
        weights = type(pairs)((weight, column, pointer), shape=pairs.shape)
        return self._right - expected, build_laplacian(weights)
