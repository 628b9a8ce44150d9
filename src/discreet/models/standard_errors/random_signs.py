"""Standard errors of many items, without a covariance of all of them.

In: answers and the estimator's linear system. Out: standard errors and a note on how sure they
are; with steps also those of the items' locations and, of fewer items, the locations' covariance.
Confidential side: it reads every person. Few persons are solved for one by one. Many are mixed
with random signs first: the mean square of ``pinv(L) sum_l sign_l s_l`` over draws is its
diagonal. Where ``pinv(L)`` is close to its diagonal part, whose share is known exactly, most of
the chance in a draw is known too and taken off (a control variate), so that few draws are enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from discreet.answers.protocol import Job
from discreet.counts.matrix import Locations
from discreet.counts.planes import AnswerStore
from discreet.errors import FitWarning, NotConverged, WarningKind
from discreet.models.laplacian import (
    Laplacian,
    factorise,
    factorise_roughly,
    invert_parameters,
    solve,
)
from discreet.models.standard_errors import (
    ScorePlan,
    Uncertainty,
    model_links,
    score_chunks,
    score_persons,
    weigh_scores,
)
from discreet.models.standard_errors.columns import ColumnSolver
from discreet.types import FloatArray

Solver = Callable[[FloatArray], FloatArray]

#: Persons up to which large problems are solved exactly, one column a person.
EXACT_PERSONS = 5000
#: Items up to which a dense matrix may be factorised: 1.6 GB in single precision.
FACTOR_ITEMS = 20_000
#: Draws of signs, at most and at least. Without the control variate a standard error from N
#: draws has a relative error of 1/sqrt(2 N): 2.2% and 12.5%.
DRAWS, FEWEST_DRAWS = 1000, 32
#: Cells of all mixed columns: 160 MB. With 200,000 items that is 100 draws.
DRAW_CELLS = 20_000_000
#: Relative error of a standard error at which drawing stops.
ENOUGH = 0.02
#: Conjugate gradients beat a factorisation (m^3 / 3) while 30 rounds a column (2 m^2 each) are
#: fewer, that is with fewer than one column in about 200 items.
ITERATIVE_SHARE = 200
#: Columns on which a factorisation in single precision is checked.
PROBES = 16
#: Relative residual that it may leave: far below the sampling error of a standard error.
ROUGH_TOL = 1e-4
#: Cells of the right-hand sides that are solved for together: 16 MB.
COLUMN_CELLS = 2_000_000
#: Signs that are drawn together: 32 MB.
SIGN_CELLS = 4_000_000
#: A product of two cells takes so many times as long in a sparse matrix product as in a dense.
SPARSE_GAIN = 32


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """The equations behind an estimate: how far it moves with the scores of persons.

    Attributes
    ----------
    laplacian
        Of the estimator.
    basis
        ``[node, parameter]`` where the thresholds are combinations of parameters; else None.
    """

    laplacian: Laplacian
    basis: FloatArray | None = None

    @property
    def size(self) -> int:
        """How many items (with steps, nodes) there are."""
        return len(self.laplacian.diagonal)

    @cached_property
    def _within(self) -> FloatArray | None:
        """The inverse between the parameters of the basis, where there is one."""
        return None if self.basis is None else invert_parameters(self.laplacian, self.basis)

    @cached_property
    def spread(self) -> FloatArray:
        """Variance of every node, approximately; sums of two stand in for those of differences."""
        if self.basis is not None and self._within is not None:
            return np.asarray((self.basis @ self._within * self.basis).sum(axis=1))
        # In a well linked graph pinv(L) is close to its diagonal part; the factor makes the
        # leverages add up to m - 1, as the exact ones do.
        return (self.size - 1) / self.size / self.laplacian.diagonal

    @cached_property
    def scale(self) -> FloatArray:
        """The diagonal part of the inverse; zero for a node that no answer informs."""
        diagonal = self.laplacian.diagonal
        return np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0)

    def choose_solver(self, probe: FloatArray, columns: int) -> Solver:
        """Return the cheapest way to solve for so many right-hand sides; ``probe`` has some."""
        basis, within = self.basis, self._within
        if basis is None or within is None:
            return _choose_solver(self.laplacian, probe, columns)
        return lambda block: np.asarray(basis @ (within @ (basis.T @ block)))


@dataclass(frozen=True, eq=False)
class ManyPlan:
    """What is needed for standard errors of many items.

    Attributes
    ----------
    scores
        What is needed to score persons.
    system
        The estimator's equations.
    locations
        With steps, how nodes make items; else None.
    together
        Whether the covariance of the locations is wanted.
    """

    scores: ScorePlan
    system: LinearSystem
    locations: Locations | None = None
    together: bool = False

    def choose_job(self, n_persons: int) -> ManyItems:
        """Return what is summed over so many persons."""
        m = self.system.size
        few_persons = self.scores.links is None and n_persons <= (
            EXACT_PERSONS if m <= FACTOR_ITEMS else m // ITERATIVE_SHARE
        )
        return GatherScores(self) if few_persons else MixScores(self)


@dataclass(frozen=True, eq=False)
class ScoreRows(Job[Any]):
    """The scores of all persons, ``[person, item]``."""

    plan: ScorePlan

    def block(self, store: AnswerStore) -> Any:
        """Return the scores of some persons."""
        return score_persons(store.nodes, self.plan, weigh_scores(store, self.plan))

    def add(self, first: Any, second: Any) -> Any:
        """Put the persons of both below each other."""
        from scipy.sparse import vstack

        return vstack([first, second], format="csr")


class ManyItems(Job[Any]):
    """What is summed over persons, and how standard errors come out of it."""

    travels = False
    needs = "standard errors of so many items need the scores of all persons at once"

    def __init__(self, plan: ManyPlan) -> None:
        self.plan = plan

    def finish(self, total: object) -> Uncertainty:
        """Return standard errors and how they were found; NaN where no solver vouches for them."""
        try:
            return self._finish(total)
        except NotConverged as error:
            sentence = f"no standard errors: {error}"
            missing = np.full(self.plan.system.size, np.nan)
            notice = FitWarning(WarningKind.NO_STANDARD_ERRORS, sentence)
            return Uncertainty(missing, None, (notice,))

    def _finish(self, total: object) -> Uncertainty:
        raise NotImplementedError


class GatherScores(ManyItems):
    """Few persons: all their scores, ``[person, item]``, solved for one by one."""

    def block(self, store: AnswerStore) -> Any:
        """Return the scores of some persons."""
        return ScoreRows(self.plan.scores).block(store)

    def add(self, first: Any, second: Any) -> Any:
        """Put the persons of both below each other."""
        return ScoreRows(self.plan.scores).add(first, second)

    def _finish(self, total: Any) -> Uncertainty:
        persons, m = total.shape
        solve_columns = self.plan.system.choose_solver(total[:PROBES].toarray().T, persons)
        sums = _SquaredMoves(self.plan)
        for start in range(0, persons, _block_size(m)):
            sums.add(solve_columns(total[start : start + _block_size(m)].toarray().T))
        return sums.finish()


class _SquaredMoves:
    """Sums of squares of what each person moves; of locations, also products of two."""

    def __init__(self, plan: ManyPlan) -> None:
        self._plan = plan
        items = 0 if plan.locations is None else len(plan.locations.whole)
        self._node = np.zeros(plan.system.size)
        self._location = np.zeros((items, items) if plan.together else items)

    def add(self, moves: FloatArray) -> None:
        """Add the moves of some persons, ``[node, person]``."""
        locations = self._plan.locations
        if locations is None:
            self._node += (moves**2).sum(axis=1)
            return
        self._node += (locations.centre(moves) ** 2).sum(axis=1)
        moved = locations.find(moves)
        self._location += moved @ moved.T if self._plan.together else (moved**2).sum(axis=1)

    def finish(self) -> Uncertainty:
        """Return the standard errors."""
        se, note = np.sqrt(self._node), "standard errors only"
        if self._plan.locations is None:
            return Uncertainty(se, None, (note,))
        covariance = self._location if self._plan.together else None
        variance = self._location.diagonal() if self._plan.together else self._location
        return Uncertainty(se, None, (note,), locations=Uncertainty(np.sqrt(variance), covariance))


class MixScores(ManyItems):
    """Many persons: scores times random signs, ``[item, draw]``, and squares of scores.

    Beside them, of locations either products of two (where their covariance is wanted) or
    squares of the part that is known without solving.
    """

    def __init__(self, plan: ManyPlan) -> None:
        super().__init__(plan)
        self._draws = max(FEWEST_DRAWS, min(DRAWS, DRAW_CELLS // plan.system.size))
        self._rng = np.random.default_rng(0)  # goes on from block to block

    @cached_property
    def _paths(self) -> FloatArray:
        """How far each location moves with the score of each node, ``[node, item]``."""
        columns = cast(Locations, self.plan.locations).as_columns()
        try:
            return self.plan.system.choose_solver(columns[:, :PROBES], columns.shape[1])(columns)
        except NotConverged:  # said at the end, when the other standard errors are known
            return np.full(columns.shape, np.nan)

    def block(self, store: AnswerStore) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Sum over some persons."""
        scores = self.plan.scores
        return self._sum(score_chunks(store.nodes, scores, weigh_scores(store, scores)))

    def _sum(self, chunks: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        m = self.plan.system.size
        mixed, squares = np.zeros((m, self._draws)), np.zeros(m)
        of_locations = self._sum_locations(np.zeros((0, m)))
        for chunk in chunks:
            # Add the scores of a chunk times random signs to the columns.
            step = max(1, SIGN_CELLS // self._draws)
            for start in range(0, chunk.shape[0], step):
                some = chunk[start : start + step]
                signs = self._rng.integers(0, 2, (some.shape[0], self._draws), dtype=np.int8)
                mixed += some.T @ (2.0 * signs - 1.0)
            squares += _sum_squares(chunk)
            of_locations += self._sum_locations(chunk)
        return mixed, squares, of_locations

    def add(self, first: Any, second: Any) -> Any:
        """Add both sums."""
        return tuple(ours + theirs for ours, theirs in zip(first, second, strict=True))

    def _sum_locations(self, chunk: Any) -> FloatArray:
        locations = self.plan.locations
        if locations is None:
            return np.zeros(0)
        if self.plan.together:
            # Sum the products of moves of two locations over persons, ``[item, item]``.
            items = self._paths.shape[1]
            if not isinstance(chunk, np.ndarray):
                pairs = int((np.diff(chunk.indptr).astype(np.int64) ** 2).sum())
                if SPARSE_GAIN * pairs < chunk.shape[0] * items**2:
                    return _turn_products(chunk.T @ chunk, self._paths)
            total, size = np.zeros((items, items)), max(1, COLUMN_CELLS // items)
            for start in range(0, chunk.shape[0], size):
                moved = chunk[start : start + size] @ self._paths
                total += moved.T @ moved
            return total
        weight = self.plan.system.scale * np.isin(locations.item, locations.whole)
        # The sparse matrix of weighted means over steps, ``[node, whole item]``.
        from scipy.sparse import csr_array

        node = np.flatnonzero(weight)
        item = locations.item[node]
        value = weight[node] / np.array(locations.steps)[item]
        column = np.searchsorted(locations.whole, item)
        shape = len(weight), len(locations.whole)
        return _sum_squares(chunk @ csr_array((value, (node, column)), shape=shape))

    def _finish(self, total: Any) -> Uncertainty:
        links = self.plan.scores.links
        if links is not None:
            total = self.add(total, self._sum([model_links(self.plan.scores, links)]))
        columns, squares, of_locations = total
        if not np.isfinite(of_locations).all():
            raise NotConverged("the equations for the covariance of the locations were not solved")
        plan, scale = self.plan, self.plan.system.scale[:, None]
        solve_columns = plan.system.choose_solver(columns[:, :PROBES], self._draws)
        moments = [_Moments(squares * scale[:, 0] ** 2)]
        if plan.locations is not None and not plan.together:
            moments.append(_Moments(of_locations))
        size = _block_size(len(columns))
        for start in range(0, self._draws, size):
            block = columns[:, start : start + size]
            self._add_draws(moments, solve_columns(block), scale * block)
            error = max(moment.error() for moment in moments)
            if moments[0].count >= FEWEST_DRAWS and error <= ENOUGH:
                break
        draws_note = f"from {moments[0].count} multiplier draws (relative error {error:.1%})"
        se, *location_se = (np.sqrt(moment.variance()) for moment in moments)
        note = f"standard errors only, {draws_note}"
        if plan.locations is None:
            return Uncertainty(se, None, (note,))
        covariance = of_locations if plan.together else None
        location_se = [np.sqrt(of_locations.diagonal())] if plan.together else location_se
        return Uncertainty(se, None, (note,), locations=Uncertainty(location_se[0], covariance))

    def _add_draws(self, moments: list[_Moments], moves: FloatArray, part: FloatArray) -> None:
        """Add squares of some draws of nodes and, where these come from draws, of locations."""
        locations = self.plan.locations
        if locations is None:
            moments[0].add(moves**2, part**2)
            return
        moments[0].add(locations.centre(moves) ** 2, part**2)
        for moment in moments[1:]:
            moment.add(locations.find(moves) ** 2, locations.average(part) ** 2)


def _sum_squares(chunk: Any) -> FloatArray:
    """Sum the squares of every column."""
    if isinstance(chunk, np.ndarray):
        return np.asarray(np.einsum("ij,ij->j", chunk, chunk))
    return np.asarray(chunk.multiply(chunk).sum(axis=0)).ravel()


def _turn_products(products: Any, paths: FloatArray) -> FloatArray:
    """Return ``paths' products paths`` for a sparse matrix, some of its rows at a time."""
    total, size = np.zeros((paths.shape[1],) * 2), max(1, COLUMN_CELLS // len(paths))
    rows = products.tocsr()
    for start in range(0, len(paths), size):
        span = slice(start, start + size)
        total += paths[span].T @ (rows[span].toarray() @ paths)
    return total


class _Moments:
    """Running means of squared draws, and of their diagonal parts, whose mean is known."""

    def __init__(self, expected_part: FloatArray) -> None:
        self._known = expected_part
        self._sums = np.zeros((5, len(expected_part)))
        self.count = 0

    def add(self, draws: FloatArray, part: FloatArray) -> None:
        """Add squares of some draws, one a column, and squares of their diagonal parts."""
        products = (draws, part, draws**2, part**2, draws * part)
        for total, values in zip(self._sums, products, strict=True):
            total += values.sum(axis=1)
        self.count += draws.shape[1]

    def variance(self) -> FloatArray:
        """Mean squares, corrected by how far the diagonal parts are off."""
        draw_mean, part = self._sums[:2] / self.count
        off = np.divide(part, self._known, out=np.ones_like(part), where=self._known > 0)
        # A power keeps it positive; to first order it subtracts slope * (off - 1).
        return np.asarray(draw_mean * np.maximum(off, 1e-3) ** -self._fit()[0])

    def error(self) -> float:
        """Relative error of a typical standard error."""
        return float(np.sqrt(self._fit()[1] / self.count) / 2)

    def _fit(self) -> tuple[float, float]:
        """Slope of draws on their diagonal parts over all items, and the variance left."""
        draw, part, draw2, part2, product = self._sums / self.count
        used = (draw > 0) & (part > 0)
        if not used.any():
            return 0.0, 0.0
        draw_variance = float((draw2[used] / draw[used] ** 2).mean()) - 1.0
        covariance = float((product[used] / (draw[used] * part[used])).mean()) - 1.0
        part_variance = float((part2[used] / part[used] ** 2).mean()) - 1.0
        slope = min(max(covariance / max(part_variance, 1e-12), 0.0), 1.0)
        return slope, max(draw_variance - 2 * slope * covariance + slope**2 * part_variance, 0.0)


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
