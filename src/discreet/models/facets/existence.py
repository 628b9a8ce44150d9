"""Which steps and levels the ratings determine, and why others have no number.

In: pairs of ratings. Out: for every step and level whether it has a finite estimate, and the
subset of levels that it belongs to. A level whose ratings are all the lowest, or lose every
comparison, has its estimate at infinity; levels that no person links have no common scale.

Two checks. A graph of comparisons for each facet and for the steps must be strongly connected:
necessary, and quick at any size. Then a linear programme looks for a direction of all parameters
together along which no pair becomes less likely and some pair more likely: without one a finite
maximum exists, with one it does not. Above ``MOST_PAIRS`` pairs or ``MOST_PARAMETERS`` parameters
there is no linear programme, and the solver stops where a level runs away (:class:`RunningAway`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.optimize import linprog
from scipy.sparse.csgraph import connected_components

from discreet.answers.ratings import Ratings
from discreet.models.facets.pairs import RatingPairs
from discreet.models.facets.solve import FARTHEST, LinearStructure
from discreet.models.facets.structure import WITHIN_ITEM, FacetDesign, FacetTerm, PairedBatches
from discreet.results.facets import LevelStatus
from discreet.types import BoolArray, FloatArray

#: Pairs up to which the linear programme is set up: about a second.
MOST_PAIRS = 3_000_000
MOST_PARAMETERS = 1_500
#: Moves that differ by less are the same: the linear programme is solved to 1e-7.
SAME_MOVE = 1e-5
#: Rows that the linear programme begins with, and gets in addition where they do not suffice.
ROWS_AT_ONCE = 5_000
#: Links from and to every step or level that are looked at first, and later.
FIRST_LINKS, EVERY_LINK = 32, 1 << 30


def link_design(design: FacetDesign, batches: Iterable[Ratings], within: str | None) -> FacetDesign:
    """Return the design without what has no finite estimate.

    Leaving out one level may take away the comparisons of another, so this goes on until
    nothing changes.
    """
    while True:
        smaller = drop_unlinked(design, batches, within)
        if smaller.keeps.sum() == design.keeps.sum():
            smaller = _drop_unbounded(smaller, batches, within)
        if smaller.keeps.sum() == design.keeps.sum():
            return smaller
        design = smaller


def drop_unlinked(
    design: FacetDesign, batches: Iterable[Ratings], within: str | None
) -> FacetDesign:
    """Return the design with the steps and levels that comparisons link strongly."""
    # Who beats whom: among the steps, then among the levels of each facet.
    # First a few links of each. What these link strongly is one for the second pass, which takes
    # every link between different ones: the same components as from all links, and few of them.
    sizes = [design.n_nodes, *(len(term.levels) for term in design.terms)]
    graphs: list[sparse.csr_array] = [sparse.csr_array((size, size), dtype=bool) for size in sizes]
    labels = [np.arange(size) for size in sizes]
    for most in (FIRST_LINKS, EVERY_LINK):
        for pairs in PairedBatches(design, batches, within):
            steps = (pairs.passed, pairs.failed)
            codes: list[tuple[Any, ...]] = [steps]
            for term, (_, columns) in enumerate(design.list_terms()):
                level = pairs.levels[:, term] - np.int32(columns.start)
                codes.append(tuple(np.where(step >= 0, level, np.int32(-1)) for step in steps))
            for number, code in enumerate(codes):
                graphs[number] = graphs[number] + pairs.find_links(code, labels[number], most)
        labels = [connected_components(graph, connection="strong")[1] for graph in graphs]
    # What is held has a common scale, whoever was rated.
    held = [
        design.is_held[: design.n_nodes],
        *(design.is_held[at] for _, at in design.list_terms()),
    ]
    graphs = [graph + _link_all(own) for graph, own in zip(graphs, held, strict=True)]
    terms = tuple(map(_classify, design.terms, graphs[1:], held[1:]))
    return replace(design, keeps_node=_keep_nodes(design, graphs[0], within), terms=terms)


def _link_all(chosen: BoolArray) -> Any:
    """Return links from each chosen one to the next, and from the last to the first."""
    rows = np.flatnonzero(chosen)
    cells = rows, np.roll(rows, 1)
    return sparse.csr_array((np.ones(len(rows), bool), cells), shape=(len(chosen), len(chosen)))


def _keep_nodes(design: FacetDesign, graph: sparse.csr_array, within: str | None) -> BoolArray:
    """Return the steps with a finite estimate: the largest strong component, or one per item."""
    if not design.description.has_item_steps or design.n_nodes == len(design.items) == 1:
        return design.keeps_node.copy()
    labels = connected_components(graph, connection="strong")[1]
    if within is None:
        kept = labels[design.keeps_node]
        kept = labels[design.is_held[: design.n_nodes]][:1] if design.has_held_items else kept
        largest = np.bincount(kept).argmax() if len(kept) else -1
        return np.asarray(design.keeps_node & (labels == largest))
    firsts = labels[design.first_node[design.node_item]]
    return np.asarray(design.keeps_node & (labels == firsts))


def _classify(term: FacetTerm, graph: sparse.csr_array, held: BoolArray) -> FacetTerm:
    """Keep the largest strongly linked set of levels; of crossed facets one in every subset.

    Where levels are held, it is the set that is linked to these.
    """
    size = len(term.levels)
    if size == 1:
        return term
    weak, strong = (connected_components(graph, connection=kind)[1] for kind in ("weak", "strong"))
    n_linked = np.bincount(strong)[strong]
    if held.any():
        n_linked = np.where(strong == strong[held][0], size + 1, n_linked)
    # The first level of the largest set in each subset, and the subsets by the size of that set.
    order = np.lexsort((-n_linked, weak))
    best = order[np.unique(weak[order], return_index=True)[1]]
    rank = np.argsort(np.argsort(-n_linked[best], kind="stable"))[weak] + 1
    is_linked = (strong == strong[best][weak]) & (n_linked > 1)
    kept = term.keeps & is_linked & (term.is_crossed | (rank == 1))
    wins, losses = np.diff(graph.indptr), np.bincount(graph.indices, minlength=size)
    status = [
        was if keep or was is not LevelStatus.ESTIMATED
        else LevelStatus.ALWAYS_LOWEST if not won and lost
        else LevelStatus.ALWAYS_HIGHEST if won and not lost
        else LevelStatus.NOT_CONNECTED
        for was, keep, won, lost in zip(term.status, kept, wins, losses, strict=True)
    ]  # fmt: skip
    # A level that was left out before keeps the subset that it had.
    subset = np.where(kept | term.keeps.all(), rank, term.subset)
    return replace(term, status=tuple(status), subset=subset)


# --- the linear programme -------------------------------------------------------------------


def _drop_unbounded(
    design: FacetDesign, batches: Iterable[Ratings], within: str | None
) -> FacetDesign:
    """Return the design without what moves along a direction in which the maximum is infinite."""
    structures = [(within, design.whole_structure())]
    if within == WITHIN_ITEM:
        held = np.zeros(design.n_columns)
        structures = [
            (within, design.spacing_structure()), (None, design.location_structure(held))
        ]  # fmt: skip
    for compared, structure in structures:
        rows = _list_pairs(design, batches, compared, structure)
        direction = None if rows is None else find_recession(rows, structure.gauges)
        if direction is not None:
            return drop_moved(design, structure.basis @ direction, compared)
    return design


def find_recession(rows: Any, gauges: Any) -> FloatArray | None:
    """Return a direction in which no pair becomes less likely and some more likely, or None.

    The linear programme has the objective of all rows and the constraints of some: if its maximum
    is zero, so is that of all constraints. Otherwise rows that its solution violates are added.
    """
    n_rows, size = rows.shape
    if not n_rows or not size:
        return None
    objective = -np.asarray(rows.mean(axis=0)).ravel()
    chosen = np.random.default_rng(0).permutation(n_rows)[:ROWS_AT_ONCE]
    equal = {"A_eq": gauges, "b_eq": np.zeros(gauges.shape[0])} if gauges.shape[0] else {}
    while True:
        below = {"A_ub": -rows[chosen], "b_ub": np.zeros(len(chosen))}
        result = linprog(objective, **below, **equal, bounds=(-1, 1), method="highs")
        moves = rows @ result.x
        if moves.max() < SAME_MOVE:
            return None
        violated = np.setdiff1d(np.argsort(moves)[:ROWS_AT_ONCE], chosen)
        violated = violated[moves[violated] < -SAME_MOVE]
        if not len(violated):
            return np.asarray(result.x)
        chosen = np.concatenate([chosen, violated])


def _list_pairs(
    design: FacetDesign, batches: Iterable[Ratings], within: str | None, structure: LinearStructure
) -> Any:
    """Return the different rows z(failed) - z(passed) of all pairs; None where they are many."""
    if structure.basis.shape[1] > MOST_PARAMETERS:
        return None
    parts, total = [], 0
    for pairs in PairedBatches(design, batches, within):
        total += int((np.diff(pairs.groups.start) ** 2).sum())
        if total > MOST_PAIRS:
            return None
        parts.append(_take_pairs(pairs))
    different = np.concatenate(parts)
    width = different.shape[1] // 2
    signs = np.repeat([-1.0, 1.0], width)
    cells = np.repeat(np.arange(len(different)), 2 * width), different.ravel()
    shape = len(different), design.n_columns
    columns = sparse.csr_array((np.tile(signs, len(different)), cells), shape=shape)
    return (columns @ structure.basis).tocsr()


def _take_pairs(pairs: RatingPairs) -> Any:
    """Return the columns of a's passed step and facets, then of b's failed step and facets."""
    start, group = pairs.groups.start, pairs.groups.of_rating
    sizes = np.diff(start)[group]
    first = np.repeat(np.arange(len(group)), sizes)
    second = np.arange(len(first)) - np.repeat(np.cumsum(sizes) - sizes - start[group], sizes)
    usable = (first != second) & (pairs.passed[first] >= 0) & (pairs.failed[second] >= 0)
    cells, codes = np.unique(pairs.stack_columns(), axis=0, return_inverse=True)
    keys = np.unique(codes[first[usable]] * len(cells) + codes[second[usable]])
    a, b = np.divmod(keys, len(cells))
    levels = cells[:, 2:]
    return np.column_stack([cells[a, 0], levels[a], cells[b, 1], levels[b]])


def drop_moved(design: FacetDesign, moves: FloatArray, within: str | None) -> FacetDesign:
    """Return the design with the largest set of levels, and of steps, that move together."""
    nodes = moves[: design.n_nodes]
    keeps_node = design.keeps_node.copy()
    if not design.description.features:
        blocks = design.node_item if within == WITHIN_ITEM else np.zeros(design.n_nodes, np.int64)
        for block in np.unique(blocks):
            rows = np.flatnonzero(keeps_node & (blocks == block))
            held = design.has_held_items and (within is None or design.is_held[rows].any())
            still = np.abs(nodes[rows]) < SAME_MOVE
            keeps_node[rows] = still if held else _keep_largest(nodes[rows])
    terms = []
    for term, columns in design.list_terms():
        kept, rows = term.keeps.copy(), np.flatnonzero(term.keeps)
        part = moves[columns][rows]
        stays = term.is_crossed or bool(design.is_held[columns].any())
        kept[rows] = np.abs(part) < SAME_MOVE if stays else _keep_largest(part)
        terms.append(term.leave_out(kept))
    return replace(design, keeps_node=keeps_node, terms=tuple(terms))


def drop_runaways(design: FacetDesign, thresholds: FloatArray) -> FacetDesign:
    """Leave out steps and levels that a solver carried far away from the median of their kind."""

    def are_near(columns: slice) -> BoolArray:
        part = thresholds[columns]
        return np.asarray(np.abs(part - np.median(part)) < FARTHEST / 2)

    terms = tuple(term.leave_out(are_near(columns)) for term, columns in design.list_terms())
    keeps_node = design.keeps_node & are_near(slice(design.n_nodes))
    return replace(design, keeps_node=keeps_node, terms=terms)


def _keep_largest(moves: FloatArray) -> BoolArray:
    """Return which levels move as most do; none where no two move together."""
    codes = np.unique(np.round(moves / SAME_MOVE), return_inverse=True)[1]
    counts = np.bincount(codes)
    return np.asarray((codes == counts.argmax()) & (counts.max() > 1 or len(moves) == 1))
