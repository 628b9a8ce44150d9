"""Solve one sparse Laplacian for many right-hand sides, within a few digits.

In: a Laplacian with sparse weights, columns with mean zero. Out: columns. No matrix between all
items is built: all columns go through conjugate gradients together, so that the weights are read
from memory once a round, with groups of items where the links are bad.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from discreet.answers.planes import AnswerStore
from discreet.answers.protocol import Job
from discreet.errors import NotConverged
from discreet.models.laplacian import Hierarchy, Laplacian, factorise, factorise_roughly, solve
from discreet.models.score_plan import ScorePlan, score_persons, weigh_scores
from discreet.results.estimate import Kind, Notice
from discreet.types import FloatArray

COLUMN_TOL = 1e-4
"""Energy of an error relative to that of its solution, as the approximate inverse measures it:
far below the sampling error of a standard error."""
FEW_ROUNDS = 40
"""Rounds with diagonal scaling that well linked items need at most."""
MANY_ROUNDS = 1000
TINY = float(np.finfo(np.float64).tiny)


class ColumnSolver:
    """Conjugate gradients over columns; groups of items are made when they are first needed."""

    def __init__(self, laplacian: Laplacian) -> None:
        self._laplacian = laplacian
        self._groups: Hierarchy | None = None

    def solve(self, columns: FloatArray) -> FloatArray:
        """Solve ``L x = column`` with mean zero for every column."""
        if self._groups is None:
            scale = 1.0 / self._laplacian.diagonal[:, None]
            found = self._iterate(columns, lambda rest: scale * rest, FEW_ROUNDS)
            if found is not None:
                return found
            self._groups = Hierarchy(self._laplacian.weights)
        found = self._iterate(columns, self._groups.apply, MANY_ROUNDS)
        if found is None:
            raise NotConverged(
                f"conjugate gradients over {len(columns)} items stopped after {MANY_ROUNDS} "
                "rounds; some items hang on the others by very few answers: remove them"
            )
        return found

    def _iterate(
        self, columns: FloatArray, approximate: Callable[[FloatArray], FloatArray], rounds: int
    ) -> FloatArray | None:
        rest = columns - columns.mean(axis=0)
        found = np.zeros_like(rest)
        move = approximate(rest)
        energy = _inner(rest, move)
        enough = COLUMN_TOL**2 * energy
        for _ in range(rounds):
            flow = self._laplacian.apply(move)
            length = energy / np.maximum(_inner(move, flow), TINY)
            found += length * move
            rest -= length * flow
            scaled = approximate(rest)
            before, energy = energy, _inner(rest, scaled)
            if (energy <= enough).all():
                return np.asarray(found - found.mean(axis=0))
            move = scaled + energy / np.maximum(before, TINY) * move
        return None


def _inner(one: FloatArray, other: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->j", one, other))


# Standard errors of many items, without a covariance.
#
# In: answers and the Laplacian. Out: standard errors and a note on how sure they are. Confidential
# side: it reads every person. Few persons are solved for one by one. Many are mixed with random
# signs first: the mean square of ``pinv(L) sum_l sign_l s_l`` over draws is its diagonal.
# Where ``pinv(L)`` is close to its diagonal part, whose share is known exactly, most of the chance
# in a draw is known too and taken off (a control variate), so that few draws are enough.

Solver = Callable[[FloatArray], FloatArray]

EXACT_PERSONS = 5000
"""Persons up to which large problems are solved exactly, one column a person."""
FACTOR_ITEMS = 20_000
"""Items up to which a dense matrix may be factorised: 1.6 GB in single precision."""
DRAWS, FEWEST_DRAWS = 1000, 32
"""Draws of signs, at most and at least. Without the control variate a standard error from N
draws has a relative error of 1/sqrt(2 N): 2.2% and 12.5%."""
DRAW_CELLS = 20_000_000
"""Cells of all mixed columns: 160 MB. With 200,000 items that is 100 draws."""
ENOUGH = 0.02
"""Relative error of a standard error at which drawing stops."""
ITERATIVE_SHARE = 200
"""Conjugate gradients beat a factorisation (m^3 / 3) while 30 rounds a column (2 m^2 each) are
fewer, that is with fewer than one column in about 200 items."""
PROBES = 16
"""Columns on which a factorisation in single precision is checked."""
ROUGH_TOL = 1e-4
"""Relative residual that it may leave: far below the sampling error of a standard error."""
COLUMN_CELLS = 2_000_000
"""Cells of the right-hand sides that are solved for together: 16 MB."""
SIGN_CELLS = 4_000_000
"""Signs that are drawn together: 32 MB."""


def plan_many(plan: ScorePlan, n_persons: int) -> ManyItems:
    """Return the job behind standard errors of many items, for so many persons."""
    m = len(plan.kept)
    few = n_persons <= (EXACT_PERSONS if m <= FACTOR_ITEMS else m // ITERATIVE_SHARE)
    return GatherScores(plan) if few else MixScores(plan)


class ManyItems(Job[Any]):
    """What is summed over persons, and how standard errors come out of it."""

    travels = False
    needs = "standard errors of so many items need the scores of all persons at once"

    def __init__(self, plan: ScorePlan) -> None:
        self.plan = plan

    def finish(self, found: Any, laplacian: Laplacian) -> tuple[FloatArray, str]:
        """Return standard errors and how they were found; NaN where no solver vouches for them."""
        try:
            return self._finish(found, laplacian)
        except NotConverged as error:
            sentence = f"no standard errors: {error}"
            return np.full(len(self.plan.kept), np.nan), Notice(Kind.NO_STANDARD_ERRORS, sentence)

    def _finish(self, found: Any, laplacian: Laplacian) -> tuple[FloatArray, str]:
        raise NotImplementedError

    def _score(self, store: AnswerStore) -> Any:
        return score_persons(store.nodes, self.plan, weigh_scores(store, self.plan))


class GatherScores(ManyItems):
    """Few persons: all their scores, ``[person, item]``, solved for one by one."""

    def block(self, store: AnswerStore) -> Any:
        """Return the scores of some persons."""
        return self._score(store)

    def add(self, one: Any, other: Any) -> Any:
        """Put the persons of both below each other."""
        from scipy.sparse import vstack

        return vstack([one, other], format="csr")

    def _finish(self, found: Any, laplacian: Laplacian) -> tuple[FloatArray, str]:
        variance = np.zeros(found.shape[1])
        size = _block_size(found.shape[1])
        find = _choose_solver(laplacian, found[:PROBES].toarray().T, found.shape[0])
        for start in range(0, found.shape[0], size):
            variance += (find(found[start : start + size].toarray().T) ** 2).sum(axis=1)
        return np.sqrt(variance), "standard errors only"


class MixScores(ManyItems):
    """Many persons: scores times random signs, ``[item, draw]``, and squares of scores."""

    def __init__(self, plan: ScorePlan) -> None:
        super().__init__(plan)
        self._draws = max(FEWEST_DRAWS, min(DRAWS, DRAW_CELLS // len(plan.kept)))
        self._rng = np.random.default_rng(0)  # goes on from block to block

    def block(self, store: AnswerStore) -> tuple[FloatArray, FloatArray]:
        """Sum over some persons."""
        scores = self._score(store)
        columns = np.zeros((scores.shape[1], self._draws))
        step = max(1, SIGN_CELLS // self._draws)
        for start in range(0, scores.shape[0], step):
            some = scores[start : start + step]
            signs = self._rng.integers(0, 2, (some.shape[0], self._draws), dtype=np.int8)
            columns += some.T @ (2.0 * signs - 1.0)
        return columns, np.asarray(scores.multiply(scores).sum(axis=0)).ravel()

    def add(self, one: Any, other: Any) -> tuple[FloatArray, FloatArray]:
        """Add both sums."""
        return one[0] + other[0], one[1] + other[1]

    def _finish(self, found: Any, laplacian: Laplacian) -> tuple[FloatArray, str]:
        columns, squares = found
        find = _choose_solver(laplacian, columns[:, :PROBES], self._draws)
        scale = 1.0 / laplacian.diagonal[:, None]
        moments = _Moments(squares * scale[:, 0] ** 2)
        size = _block_size(len(columns))
        for start in range(0, self._draws, size):
            block = columns[:, start : start + size]
            moments.add(find(block) ** 2, (scale * block) ** 2)
            if moments.count >= FEWEST_DRAWS and moments.error() <= ENOUGH:
                break
        how = f"from {moments.count} multiplier draws (relative error {moments.error():.1%})"
        return np.sqrt(moments.variance()), f"standard errors only, {how}"


class _Moments:
    """Running means of squared draws, and of their diagonal parts, whose mean is known."""

    def __init__(self, known: FloatArray) -> None:
        self._known = known
        self._sums = np.zeros((5, len(known)))
        self.count = 0

    def add(self, drawn: FloatArray, part: FloatArray) -> None:
        """Add squares of some draws, one a column, and squares of their diagonal parts."""
        products = (drawn, part, drawn**2, part**2, drawn * part)
        for total, values in zip(self._sums, products, strict=True):
            total += values.sum(axis=1)
        self.count += drawn.shape[1]

    def variance(self) -> FloatArray:
        """Mean squares, corrected by how far the diagonal parts are off."""
        drawn, part = self._sums[:2] / self.count
        off = np.divide(part, self._known, out=np.ones_like(part), where=self._known > 0)
        # A power keeps it positive; to first order it subtracts slope * (off - 1).
        return np.asarray(drawn * np.maximum(off, 1e-3) ** -self._fit()[0])

    def error(self) -> float:
        """Relative error of a typical standard error."""
        return float(np.sqrt(self._fit()[1] / self.count) / 2)

    def _fit(self) -> tuple[float, float]:
        """Slope of draws on their diagonal parts over all items, and the variance left."""
        drawn, part, drawn2, part2, product = self._sums / self.count
        used = (drawn > 0) & (part > 0)
        if not used.any():
            return 0.0, 0.0
        spread = float((drawn2[used] / drawn[used] ** 2).mean()) - 1.0
        across = float((product[used] / (drawn[used] * part[used])).mean()) - 1.0
        along = float((part2[used] / part[used] ** 2).mean()) - 1.0
        slope = min(max(across / max(along, 1e-12), 0.0), 1.0)
        return slope, max(spread - 2 * slope * across + slope**2 * along, 0.0)


def _block_size(items: int) -> int:
    return max(PROBES, COLUMN_CELLS // items)


def _choose_solver(laplacian: Laplacian, probe: FloatArray, columns: int) -> Solver:
    """Return the cheapest way to solve for so many right-hand sides; ``probe`` has some."""
    items, sparse = len(laplacian.diagonal), not isinstance(laplacian.weights, np.ndarray)
    if sparse and (items > FACTOR_ITEMS or columns * ITERATIVE_SHARE < items):
        return ColumnSolver(laplacian).solve
    if columns * ITERATIVE_SHARE < items:
        return lambda block: np.column_stack([solve(laplacian, column) for column in block.T])
    try:
        rough = factorise_roughly(laplacian)
    except NotConverged:
        return factorise(laplacian)
    scale = 1.0 / np.sqrt(laplacian.diagonal)[:, None]
    left = laplacian.apply(rough(probe)) - probe
    if np.linalg.norm(scale * left) <= ROUGH_TOL * np.linalg.norm(scale * probe):
        return rough
    del rough
    return factorise(laplacian)
