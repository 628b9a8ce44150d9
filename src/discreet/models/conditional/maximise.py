"""The maximum of a conditional likelihood: few second derivatives, exact gradients.

In: patterns of answers, how many persons are at or above each step, thresholds to start from and
the linear structure that they obey. Out: the thresholds of the maximum, the information about them
and the log-likelihood. The second derivatives of the start, corrected by what the steps show, serve
as long as each step is a small part of the one before; they are renewed where it is not, and once
at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import NotConverged
from discreet.models.conditional import Patterns
from discreet.models.conditional.batches import plan_batches
from discreet.models.conditional.moments import BatchPlan, ConditionalSums, evaluate_conditional
from discreet.models.structure import Structure
from discreet.results.estimate import Solution
from discreet.threads import threads_for
from discreet.types import FloatArray, Int64Array

#: Logits; a step with second derivatives of its own point squares the error.
NEWTON_TOL = 1e-6
#: Other steps are repeated until they are this small; then comes one of the kind above.
STEP_TOL = 1e-9
#: From the refined estimate 4 to 8 steps are taken; 100 means that something is wrong.
STEPS = 100
#: Part of the step before above which the second derivatives are renewed.
SLOW = 0.3
#: A step of so many logits that gains no more likelihood than this: the maximum is at infinity.
#: At a maximum every set of items is crossed by at least one answer, so steps like this gain 1e-3.
LONG, NO_GAIN = 0.1, 1e-7
#: Part of a parameter's information, all others given, below which nothing is known of it.
SINGULAR = 1e-12
#: Up to here NumPy inverts within some milliseconds; scipy.linalg takes 0.2 s to import.
SMALL_NODES = 200


class Undetermined(NotConverged):
    """The likelihood has no single maximum: it does not fall along a direction.

    Attributes
    ----------
    direction
        ``[item, step]``: how the thresholds move along it, at most by one; NaN beyond an item's
        steps.
    """

    def __init__(self, direction: FloatArray) -> None:
        super().__init__(
            "conditional likelihood: the answers do not determine all parameters; some items hang "
            "together by too few persons: leave them out, or use the method 'refined'"
        )
        self.direction = direction


@dataclass(frozen=True, eq=False)
class ConditionalFit:
    """A maximum of the conditional likelihood.

    Attributes
    ----------
    structure
        How thresholds follow from parameters.
    node
        Thresholds of all nodes, item after item; the mean of the items' locations is zero, unless
        some are held.
    information
        Minus the second derivatives of the log-likelihood by all nodes.
    log_likelihood
        Persons with the lowest or the highest score add zero.
    solution
        How it was found.
    """

    structure: Structure
    node: FloatArray
    information: FloatArray
    log_likelihood: float
    solution: Solution

    @cached_property
    def covariance(self) -> FloatArray:
        """Of the thresholds, ``[node, node]``."""
        return self.structure.covariance(self.structure.project_matrix(self.information))

    @property
    def free(self) -> int:
        """How many parameters were estimated."""
        shift = 0 if self.structure.is_anchored else 1
        return len(self.structure.fit(self.node)) - shift

    @property
    def threshold(self) -> FloatArray:
        """``[item, step]``, NaN beyond an item's steps."""
        return self._spread(self.node)

    @property
    def se(self) -> FloatArray:
        """Standard errors of the thresholds, ``[item, step]``."""
        return self._spread(np.sqrt(self.covariance.diagonal()))

    @property
    def location(self) -> FloatArray:
        """Mean of each item's thresholds."""
        return np.asarray(np.nanmean(self.threshold, axis=1))

    def _spread(self, node: FloatArray) -> FloatArray:
        out = np.full(self.structure.used.shape, np.nan)
        out[self.structure.used] = node
        return out


@dataclass(frozen=True, eq=False)
class _Point:
    parameter: FloatArray
    plan: BatchPlan
    sums: ConditionalSums
    value: float


@dataclass(frozen=True, eq=False)
class Surface:
    """The conditional log-likelihood of some persons.

    Attributes
    ----------
    patterns
        The persons' answered items and scores.
    observed
        ``[item, step]``: persons at or above the step, those with the highest score left out.
    structure
        How thresholds follow from parameters.
    """

    patterns: Patterns
    observed: Int64Array
    structure: Structure

    def look(
        self, parameter: FloatArray, plan: BatchPlan | None = None, *, information: bool = False
    ) -> _Point:
        """Evaluate the likelihood and its derivatives."""
        threshold = self.spread(parameter)
        plan, sums = evaluate_patterns(self.patterns, threshold, plan, information=information)
        used = self.structure.used
        value = float(-(self.observed[used] @ threshold[used]) - sums.log_norm)
        return _Point(parameter, plan, sums, value)

    def look_closely(self, point: _Point) -> _Point:
        """Return the same point with second derivatives."""
        if point.sums.covariance is not None:
            return point
        return self.look(point.parameter, point.plan, information=True)

    def spread(self, parameter: FloatArray) -> FloatArray:
        """Thresholds ``[item, step]``, infinite where there is no step."""
        out = np.full(self.structure.used.shape, np.inf)
        out[self.structure.used] = self.structure.spread(parameter)
        return out

    def score(self, point: _Point) -> FloatArray:
        """How the log-likelihood grows with every node."""
        return np.asarray((point.sums.expected - self.observed)[self.structure.used])

    def gradient(self, point: _Point) -> FloatArray:
        """How the log-likelihood grows with the parameters."""
        return self.structure.project(self.score(point))

    def node_information(self, point: _Point) -> FloatArray:
        """Minus the second derivatives by all nodes."""
        matrix, inside = point.sums.information(), self.structure.used.ravel()
        return matrix if inside.all() else matrix[np.ix_(inside, inside)]

    def information(self, point: _Point) -> FloatArray:
        """Minus the second derivatives by the parameters."""
        return self.structure.project_matrix(self.node_information(point))

    def trace(self, direction: FloatArray) -> FloatArray:
        """Show a direction of the parameters as moves of thresholds, at most by one."""
        moves = np.full(self.structure.used.shape, np.nan)
        moves[self.structure.used] = self.structure.move(self.structure.centred(direction))
        return np.asarray(moves / np.nanmax(np.abs(moves)))


def evaluate_patterns(
    patterns: Patterns,
    threshold: FloatArray,
    plan: BatchPlan | None = None,
    *,
    information: bool = True,
) -> tuple[BatchPlan, ConditionalSums]:
    """Sum the normalising part and its derivatives, by a plan if it still serves."""
    if patterns.is_routed:
        from discreet.models.conditional.routed import RoutedPatterns  # loads SciPy

        if isinstance(patterns, RoutedPatterns):
            return patterns.evaluate(threshold, information=information)
    if plan is None or not plan.serves(threshold):
        plan = plan_batches(patterns, threshold)
    return plan, evaluate_conditional(plan, threshold, information=information)


def maximise(surface: Surface, start: FloatArray) -> ConditionalFit:
    """Climb to the maximum of the likelihood.

    Parameters
    ----------
    surface
        The likelihood; its maximum must exist.
    start
        Parameters to start from.
    """
    with threads_for(len(start)):
        return _maximise(surface, start)


def _maximise(surface: Surface, start: FloatArray) -> ConditionalFit:
    point = surface.look(surface.structure.centred(start), information=True)
    if not len(start):  # every item is held
        return _conclude(surface, point, point, 0)
    solver, before = _Solver(surface, point), np.inf
    for step in range(1, STEPS + 1):
        move = solver.solve(surface.gradient(point))
        length, old = float(np.abs(move).max()), point
        if length > LONG and surface.gradient(point) @ move < NO_GAIN:
            raise Undetermined(surface.trace(move))
        point = _climb(surface, old, move)
        if solver.fresh and length < NEWTON_TOL:
            curvature_point = old if length < STEP_TOL else surface.look_closely(point)
            return _conclude(surface, point, curvature_point, step)
        if point.plan.cheap or length < STEP_TOL or length > SLOW * before:
            point = surface.look_closely(point)
            solver = _Solver(surface, point)
        else:
            fall = surface.gradient(old) - surface.gradient(point)
            solver.learn(point.parameter - old.parameter, fall)
        before = length
    raise NotConverged(
        f"conditional likelihood: the last of {STEPS} steps still moved a parameter by "
        f"{length:.1e} logits; look for items that hang together by very few persons, or use "
        "the method 'refined'"
    )


class _Solver:
    """Steps from gradients: the second derivatives of one point, and what steps have shown since.

    What is remembered are pairs of a step and how far the gradient fell along it (BFGS).
    """

    def __init__(self, surface: Surface, point: _Point) -> None:
        self._structure = surface.structure
        matrix = surface.structure.lift(surface.information(point))
        try:
            self._invert = _inverter(matrix)
        except np.linalg.LinAlgError:
            raise Undetermined(surface.trace(np.linalg.eigh(matrix)[1][:, 0])) from None
        self._seen: list[tuple[FloatArray, FloatArray]] = []

    def solve(self, gradient: FloatArray) -> FloatArray:
        """Return the step to the maximum of the local parabola."""
        remainder, shares = gradient, []
        for step, fall in reversed(self._seen):
            shares.append((step @ remainder) / (step @ fall))
            remainder = remainder - shares[-1] * fall
        move = self._invert(remainder)
        for (step, fall), share in zip(self._seen, reversed(shares), strict=True):
            move = move + step * (share - (fall @ move) / (step @ fall))
        return self._structure.centred(move)

    @property
    def fresh(self) -> bool:
        """The second derivatives are those of the point itself."""
        return not self._seen

    def learn(self, step: FloatArray, fall: FloatArray) -> None:
        """Remember a step and how far the gradient fell."""
        if step @ fall > 0:
            self._seen.append((step, fall))


def _inverter(matrix: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return what solves with a matrix, if it is safely positive definite."""
    diagonal = matrix.diagonal().copy()
    if len(matrix) <= SMALL_NODES:
        _check_pivots(np.linalg.cholesky(matrix).diagonal(), diagonal)
        inverse = np.linalg.inv(matrix)
        return lambda vector: inverse @ vector
    from scipy.linalg import cho_factor, cho_solve

    factor = cho_factor(matrix, check_finite=False)
    _check_pivots(factor[0].diagonal(), diagonal)
    return lambda vector: np.asarray(cho_solve(factor, vector, check_finite=False))


def _check_pivots(pivots: npt.NDArray[np.floating[Any]], diagonal: FloatArray) -> None:
    if (pivots**2 < SINGULAR * diagonal).any():
        raise np.linalg.LinAlgError("singular to working precision")


def _climb(surface: Surface, point: _Point, move: FloatArray) -> _Point:
    """Take the step, halved until the likelihood does not fall (it is concave)."""
    slack = 1e-12 * abs(point.value)
    for _ in range(STEPS):
        new = surface.look(point.parameter + move, point.plan, information=point.plan.cheap)
        if new.value >= point.value - slack:
            return new
        move = move / 2
    raise NotConverged(
        "conditional likelihood: no step increases it, although the gradient is not zero; "
        "use the method 'refined'"
    )


def _conclude(
    surface: Surface, point: _Point, curvature_point: _Point, steps: int
) -> ConditionalFit:
    """Put the result together; second derivatives are those of a point that is near enough."""
    residual = float(np.abs(surface.gradient(point)).max(initial=0.0))
    name = "conditional likelihood, Newton steps"
    if surface.structure.is_anchored:
        name = "Newton on the conditional likelihood, anchors held"
    information = surface.node_information(curvature_point)
    solution = Solution(name, steps, residual)
    node = surface.structure.spread(point.parameter)
    return ConditionalFit(surface.structure, node, information, point.value, solution)
