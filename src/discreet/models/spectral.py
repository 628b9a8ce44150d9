"""The spectral estimator: the stationary vector of a chain, accurate in every entry.

The paper's Algorithm 1: the chain moves from i to j with probability ``Y[i, j] / d``, and its
stationary vector is proportional to exp(b). The number d makes the rows of M sum to at most one and
cancels in ``pi / d`` (step 3), so the solver works on the counts themselves.

In: rates between items, dense or CSR. Out: the log of the stationary vector, by the cheapest way
whose answer can be vouched for, or an error with a name:

- elimination without subtractions (Grassmann, Taksar and Heyman 1985): only additions,
  multiplications and divisions of non-negative numbers, so that no cancellation can spoil an entry
  however badly the chain is linked. On a dense matrix, or in a narrow band where items are
  compared with near ones only (grades, chapters, a growing bank);
- the jump chain from two starts: fast where the chain mixes, and honest where it does not;
- corrections with the help of groups of items, from two starts.

There is no power iteration on M: it can stop far from the answer in silence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.counts.matrix import PairMatrix
from discreet.errors import DisconnectedItems, NotConverged
from discreet.models.connectivity import is_strongly_connected
from discreet.models.laplacian import Hierarchy, Laplacian, build_laplacian, symmetrise_flow
from discreet.models.standard_errors import Contribution, Factors
from discreet.models.structure import Structure
from discreet.results.estimate import Solution
from discreet.types import FloatArray

#: Items up to which sparse rates that mix slowly become dense at once (32 MB).
SMALL_SPARSE = 2000
#: Largest dense matrix that elimination may build from sparse rates (3.2 GB).
DENSE_LIMIT = 20_000
#: Rounds that cost about as much as elimination at 1000 items.
DENSE_ROUNDS = 100
#: Sparse rounds cost little, so they are tried for longer; what is slower is solved otherwise.
SPARSE_ROUNDS = 500
#: Largest difference in logits between two starts that were corrected: far below any standard
#: error, and above the rounding that badly linked items leave in the balance equations.
CORRECTED_AGREEMENT = 1e-7
#: Largest difference in logits between the two starts of the jump chain.
AGREEMENT = 1e-11
#: Rounds between two comparisons of the starts.
CHECK_EVERY = 4
#: How far, in logits, the second start goes up and down from the uniform one.
START_SPREAD = 3.0
#: Enough to make a random vector nearly constant inside each well linked group.
SMOOTHING_ROUNDS = 8
#: Up to here elimination is faster than anything that must be checked.
PLAIN_LIMIT = 500
#: States eliminated together; the trailing update is then one matrix product.
PANEL = 64
#: Cells of a band that may be built: 1 GB.
BAND_CELLS = 125_000_000
#: Multiplications, items times the square of the width, that may be made: about two minutes.
BAND_STEPS = 2e11
CORRECTIONS = 30
#: Relative residual of one correction; the next one corrects the rest.
INNER_TOL = 1e-6
#: Vectors that GMRES keeps, and how often it starts again within a correction.
RESTART, RESTARTS = 40, 5
SMALL_STEP = 1e-12
#: A step below this (logits) that no longer shrinks is rounding.
ROUNDING_STEP = 1e-7
#: A correction may be too long while the answer is rough; no weight may become negative.
SMALLEST_FACTOR = 0.1
#: After a correction as large as this the flow is another one, and so are the groups.
REBUILD_STEP = 0.2


def solve_stationary(rates: PairMatrix) -> tuple[FloatArray, Solution]:
    """Find the stationary vector of the chain with the given off-diagonal rates.

    Parameters
    ----------
    rates
        ``rates[i, j] >= 0``, proportional to the probability of a move from i to j; the
        diagonal is ignored. A dense array or a scipy sparse CSR array.

    Returns
    -------
    tuple
        The logarithm of the stationary vector, mean zero, and a :class:`Solution`.

    Raises
    ------
    DisconnectedItems
        If the chain is not strongly connected: it has no single stationary vector.
    NotConverged
        If no method here can vouch for its answer.

    Examples
    --------
    >>> import numpy as np
    >>> log_weights, solution = solve_stationary(np.array([[0.0, 1.0], [3.0, 0.0]]))
    >>> float(np.round(log_weights[0] - log_weights[1], 12)) == round(float(np.log(3)), 12)
    True
    """
    if rates.shape[0] < 2 or not is_strongly_connected(rates):
        raise DisconnectedItems(
            f"the chain over {rates.shape[0]} items is not strongly connected, so it has no "
            "single stationary vector; restrict it to one connected set (build_chain does)"
        )
    dense = isinstance(rates, np.ndarray)
    if dense and rates.shape[0] <= PLAIN_LIMIT:
        return solve_by_elimination(rates)
    log_weights, solution = iterate_jump_chain(
        rates, rounds=DENSE_ROUNDS if dense else SPARSE_ROUNDS
    )
    if solution.residual <= AGREEMENT:
        return log_weights, solution
    return solve_by_elimination(rates) if dense else _solve_slow(rates, log_weights)


def _solve_slow(rates: PairMatrix, rough: FloatArray) -> tuple[FloatArray, Solution]:
    """Solve sparse rates that mix slowly."""
    m = rates.shape[0]
    if m <= SMALL_SPARSE:
        return solve_by_elimination(rates.toarray())
    moves = without_diagonal(rates)
    exact = solve_in_band(moves)
    if exact is not None:
        return exact
    log_weights, solution = correct_from_two_starts(moves, rough)
    if solution.residual <= CORRECTED_AGREEMENT:
        return log_weights, solution
    if m <= DENSE_LIMIT:
        return solve_by_elimination(rates.toarray())
    raise NotConverged(
        f"after {solution.iterations} rounds over {m} items two starts still differ by "
        f"{solution.residual:.1e} logits, the links have no narrow order, and the matrix is too "
        f"large for elimination (limit {DENSE_LIMIT} items); use method='refined', or drop items "
        "with very few answers"
    )


def iterate_jump_chain(rates: PairMatrix, *, rounds: int) -> tuple[FloatArray, Solution]:
    """Iterate ``pi_j <- sum_i pi_i rates_ij / R_j`` from two starts until they agree.

    ``R_j`` is the sum of row j. The residual of the solution is the largest difference in
    logits between the two starts: the error that is still in at least one of them. A small
    change from round to round would prove nothing; agreement from different starts does.
    """
    moves = without_diagonal(rates)
    leaving = np.asarray(moves.sum(axis=1)).ravel()
    second = np.exp(START_SPREAD * draw_slow_direction(moves, leaving))
    pair = np.column_stack([np.ones(len(leaving)), second])
    scale = 1.0 / leaving[:, None]
    gap, done = np.inf, 0
    for done in range(1, rounds + 1):
        pair = (moves.T @ pair) * scale
        pair /= pair.mean(axis=0)
        if done % CHECK_EVERY == 0:
            before, gap = gap, _disagreement(pair)
            if gap <= AGREEMENT or _is_hopeless(before, gap, rounds - done):
                break
    with np.errstate(divide="ignore", invalid="ignore"):
        log_weights = np.log(pair[:, 0])
        log_weights -= log_weights.mean()
    return log_weights, Solution("jump chain from two starts", done, gap)


def draw_slow_direction(moves: PairMatrix, leaving: FloatArray) -> FloatArray:
    """Return a vector between -1 and 1 that tells badly linked groups of items apart.

    Averaging a random vector over each item's successors leaves the directions in which the
    chain mixes slowly. A second start along them has another share of the mass in every such
    group than the uniform start; an unstructured random start has nearly the same share.
    """
    vector = np.random.default_rng(len(leaving)).standard_normal(len(leaving))
    for _ in range(SMOOTHING_ROUNDS):
        vector = (moves @ vector) / leaving
        vector -= (vector.max() + vector.min()) / 2
        vector /= max(float(vector.max()), np.finfo(float).tiny)
    return vector


def _is_hopeless(before: float, gap: float, rounds_left: int) -> bool:
    """Whether the gap, shrinking as it did last, would still be too large at the end.

    A factor of two in the rate is granted, because the first rounds can be slower.
    """
    if not (np.isfinite(before) and gap > 0):
        return False
    if gap >= before:
        return True
    checks = np.log(gap / AGREEMENT) / np.log(before / gap)
    return bool(checks * CHECK_EVERY > 2 * rounds_left + 20)


def _disagreement(pair: FloatArray) -> float:
    """Largest difference in logits between two positive vectors, each up to a factor."""
    if not (np.isfinite(pair).all() and pair.min() > 0):
        return float("inf")
    ratio = np.log(pair[:, 0] / pair[:, 1])
    return float(ratio.max() - ratio.min())


def without_diagonal(rates: PairMatrix) -> PairMatrix:
    """Return rates as float64 with nothing on the diagonal, without a copy where that is so."""
    if isinstance(rates, np.ndarray):
        out = np.array(rates, dtype=np.float64)
        np.fill_diagonal(out, 0.0)
        return out
    if not rates.diagonal().any():
        return rates.astype(np.float64, copy=False)
    out = rates.astype(np.float64)
    out.setdiag(0.0)
    out.eliminate_zeros()
    return out


def solve_by_elimination(rates: FloatArray) -> tuple[FloatArray, Solution]:
    """Eliminate one state after the other (GTH), in panels above a few hundred states."""
    work = np.array(rates, dtype=np.float64, order="C")
    np.fill_diagonal(work, 0.0)
    # A common scale keeps products of counts inside the range of doubles.
    work /= work.max()
    if work.shape[0] <= PLAIN_LIMIT:
        name = "elimination (GTH)"
        _eliminate_plain(work)
    else:
        name = f"elimination (GTH) in panels of {PANEL}"
        # Eliminate as :func:`_eliminate_plain` does, with the trailing updates as matrix products.
        # Inside a panel each row and column receives the updates of the states eliminated before it
        # only when its turn comes, as a product of non-negative numbers; no subtraction anywhere.
        top = work.shape[0]
        while top > PLAIN_LIMIT // 2:
            low = top - PANEL
            for k in range(top - 1, low - 1, -1):
                work[k, :k] += work[k, k + 1 : top] @ work[k + 1 : top, :k]
                work[:k, k] += work[:k, k + 1 : top] @ work[k + 1 : top, k]
                with np.errstate(divide="ignore", invalid="ignore"):
                    work[:k, k] /= work[k, :k].sum()
            work[:low, :low] += work[:low, low:top] @ work[low:top, :low]
            # The diagonal collects returns to the same state, which elimination never reads.
            top = low
        _eliminate_plain(work[:top, :top])
    log_weights = _substitute(work)
    if not np.isfinite(log_weights).all():
        raise NotConverged(
            f"the stationary vector over {len(work)} items leaves the range of doubles: the "
            "links between some items are weaker than 1e-300 of others; remove those items"
        )
    return log_weights - log_weights.mean(), Solution(name, len(work), 0.0)


def _eliminate_plain(work: FloatArray, lowest: int = 1) -> None:
    """Eliminate the states from the last down to the lowest, in place.

    Afterwards ``work[:k, k]`` holds the expected visits to k between visits to lower states.
    """
    for k in range(work.shape[0] - 1, lowest - 1, -1):
        leaving = work[k, :k].sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            work[:k, k] /= leaving
        work[:k, :k] += work[:k, k, None] * work[k, :k]


def _substitute(work: FloatArray) -> FloatArray:
    """Log of the stationary vector from the eliminated matrix, first state first."""
    m = work.shape[0]
    weights = np.ones(m)
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(1, m):
            weights[k] = weights[:k] @ work[:k, k]
    extreme = not (np.isfinite(weights).all() and weights.min() > np.finfo(float).tiny)
    return _substitute_logs(work) if extreme else np.log(weights)


def _substitute_logs(work: FloatArray, first: FloatArray | None = None) -> FloatArray:
    """Do the same in logarithms, for weights further apart than doubles can hold.

    ``first`` are the log weights of the states that were not eliminated.
    """
    m, first = work.shape[0], np.zeros(1) if first is None else first
    log_weights = np.zeros(m)
    log_weights[: len(first)] = first
    with np.errstate(divide="ignore", invalid="ignore"):
        for k in range(len(first), m):
            terms = log_weights[:k] + np.log(work[:k, k])
            peak = terms.max()
            log_weights[k] = peak + np.log(np.exp(terms - peak).sum())
    return log_weights


def solve_in_band(rates: PairMatrix) -> tuple[FloatArray, Solution] | None:
    """Eliminate item by item in an order that keeps linked items near each other.

    None where no order of the items makes the band narrow. Everything that the elimination fills
    in stays inside the band.
    """
    # Places of items (Cuthill and McKee), and how far apart linked items are there.
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    from discreet.models.kernels import eliminate_band, substitute_band

    pattern = type(rates)(
        (np.ones(rates.nnz, dtype=np.int8), rates.indices, rates.indptr), shape=rates.shape
    )
    order = reverse_cuthill_mckee((pattern + pattern.T).tocsr(), symmetric_mode=True)
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    distance = np.abs(np.repeat(position, np.diff(rates.indptr)) - position[rates.indices])
    width = int(distance.max(initial=1))
    m = rates.shape[0]
    if m * (2 * width + 1) > BAND_CELLS or m * float(width) ** 2 > BAND_STEPS:
        return None
    row = position[np.repeat(np.arange(m), np.diff(rates.indptr))]
    column = position[rates.indices]
    band = np.zeros((m, 2 * width + 1))
    off = row != column
    # A common scale keeps products of counts inside the range of doubles.
    band[row[off], (column - row + width)[off]] = rates.data[off] / rates.data.max()
    eliminate_band(band, width)
    ordered = np.zeros(m)
    substitute_band(band, width, ordered)
    if not np.isfinite(ordered).all():
        return None
    log_weights = ordered[position]
    name = f"elimination (GTH) in a band of {width} items"
    return log_weights - log_weights.mean(), Solution(name, m, 0.0)


def correct_from_two_starts(rates: PairMatrix, rough: FloatArray) -> tuple[FloatArray, Solution]:
    """Correct a rough answer, and once more from elsewhere; the residual is their difference.

    With x the answer so far, the flow ``x_i rates_ij`` is nearly symmetric (the model says that
    it is, up to chance), so that the Laplacian of its symmetric part, solved roughly by a
    :class:`~discreet.models.laplacian.Hierarchy`, is a good preconditioner for the balance
    equations, however slowly the chain itself mixes.
    """
    leaving = np.asarray(rates.sum(axis=1)).ravel()
    start = rough if np.isfinite(rough).all() else np.zeros(len(rough))
    first, done = _correct(rates, leaving, start)
    # The second start differs along the directions in which a solver could go wrong unseen.
    offset = START_SPREAD * draw_slow_direction(rates, leaving)
    second, more = _correct(rates, leaving, first + offset)
    gap = first - second
    name = "corrections with groups of items, from two starts"
    return first, Solution(name, done + more, float(gap.max() - gap.min()))


def _correct(rates: PairMatrix, leaving: FloatArray, start: FloatArray) -> tuple[FloatArray, int]:
    log_weights, size, inner = start - start.mean(), np.inf, 0
    hierarchy: Hierarchy | None = None
    for _ in range(CORRECTIONS):
        weights = np.exp(log_weights - log_weights.max())
        if hierarchy is None or size > REBUILD_STEP:
            hierarchy = Hierarchy(symmetrise_flow(rates, weights))
        step, rounds = _solve_balance(rates, leaving * weights, weights, hierarchy)
        before, size = size, float(np.abs(step).max())
        inner += rounds
        if not np.isfinite(size):
            break
        log_weights = log_weights + np.log(np.maximum(1.0 + step, SMALLEST_FACTOR))
        log_weights -= log_weights.mean()
        if size <= SMALL_STEP or (size <= ROUNDING_STEP and size > before / 2):
            break
    return log_weights, inner


def _solve_balance(
    rates: PairMatrix, outflow: FloatArray, weights: FloatArray, hierarchy: Hierarchy
) -> tuple[FloatArray, int]:
    """Return relative corrections of the weights that make inflow and outflow equal."""
    from scipy.sparse.linalg import LinearOperator, gmres

    m, rounds = len(weights), 0

    def apply(vector: FloatArray) -> FloatArray:
        nonlocal rounds
        rounds += 1
        return np.asarray(outflow * vector - rates.T @ (weights * vector))

    left = rates.T @ weights - outflow
    balance = LinearOperator((m, m), matvec=apply, dtype=np.float64)
    groups = LinearOperator((m, m), matvec=hierarchy.apply, dtype=np.float64)
    options = {"rtol": INNER_TOL, "restart": RESTART, "maxiter": RESTARTS}
    step, _ = gmres(balance, left - left.mean(), M=groups, **options)
    return step - np.average(step, weights=outflow), rounds


@dataclass(frozen=True)
class SpectralScoring:
    """What a pair (first right, second wrong) adds to the balance equations of the chain.

    The stationary vector makes the flow ``exp(b_i) Y[i, j]`` out of each item equal the flow
    into it. ``top`` is subtracted from difficulties to keep exp in the range of doubles.
    """

    top: float
    is_complementary = False

    def residual(self, right: FloatArray, wrong: FloatArray) -> FloatArray:
        """Flow from the item that was right to the item that was wrong."""
        return np.broadcast_to(
            np.exp(right - self.top), np.broadcast_shapes(right.shape, wrong.shape)
        )

    def curvature(self, right: FloatArray, wrong: FloatArray) -> FloatArray:
        """Half the flow: the pair's share of the symmetrised Laplacian."""
        return self.residual(right, wrong) / 2

    def factor(
        self,
        contribution: Contribution,
        difficulty: FloatArray,
        tolerance: float,  # noqa: ARG002
    ) -> Factors:
        """Return one column and a row of ones: the second item does not matter."""
        column = np.array(contribution(difficulty[:, None], difficulty[:1]))
        return column, np.ones((1, len(difficulty)))


def balance(rates: PairMatrix, difficulty: FloatArray) -> Laplacian:
    """Laplacian of the symmetrised flow: the derivative of the balance equations."""
    weight = np.exp(difficulty - difficulty.max())
    if isinstance(rates, np.ndarray):
        flow = rates * weight[:, None]
        flow = (flow + flow.T) / 2
        np.fill_diagonal(flow, 0.0)
    else:
        flow = symmetrise_flow(rates, weight)
    return build_laplacian(flow)


def project_within(rates: PairMatrix, structure: Structure) -> tuple[FloatArray, Solution]:
    """Solve the chain, held nodes as boundary values; a rating scale is the nearest point to that.

    The flow measures what is nearest.
    """
    if structure.held is None:
        difficulty, solution = solve_stationary(rates)
    else:
        dense = rates if isinstance(rates, np.ndarray) else rates.toarray()
        # Find log weights that balance inflow and outflow of every state that is not held.
        held = structure.held
        is_free = np.isnan(held)
        order = np.argsort(is_free, kind="stable")  # held states first: they are never eliminated
        n_held = int((~is_free).sum())
        work = np.array(dense, dtype=np.float64)[np.ix_(order, order)]
        np.fill_diagonal(work, 0.0)
        work /= max(float(work.max(initial=0.0)), np.finfo(float).tiny)
        _eliminate_plain(work, n_held)
        difficulty = np.empty(len(held))
        difficulty[order] = _substitute_logs(work, held[order[:n_held]])
        if not np.isfinite(difficulty).all():
            raise NotConverged(
                f"the chain with {n_held} held of {len(held)} states has no finite solution: some "
                "steps are not linked to the anchors in both directions; use method='refined'"
            )
        solution = Solution("elimination (GTH), anchors held", len(held) - n_held, 0.0)
    if structure.basis is None:
        return difficulty, solution
    weighed = balance(rates, difficulty).apply(structure.design)
    target = weighed.T @ (difficulty - structure.offset)
    parameter = np.linalg.lstsq(weighed.T @ structure.design, target, rcond=1e-12)[0]
    return structure.spread(np.asarray(parameter, dtype=np.float64)), solution
