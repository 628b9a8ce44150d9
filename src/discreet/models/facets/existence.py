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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.optimize import linprog
from scipy.sparse.csgraph import connected_components

from discreet.answers.ratings import Ratings
from discreet.models.facets.pairs import FARTHEST, LinearStructure, RatingPairs
from discreet.models.facets.structure import WITHIN_ITEM, FacetDesign, FacetTerm, PairedBatches
from discreet.results.facets import LevelStatus
from discreet.types import BoolArray, FloatArray, Int64Array

#: Pairs up to which the linear programme is set up: about a second.
MOST_PAIRS = 3_000_000
MOST_PARAMETERS = 1_500
#: Moves that differ by less are the same: the linear programme is solved to 1e-7.
SAME_MOVE = 1e-5
#: Rows that the linear programme begins with, and gets in addition where they do not suffice.
ROWS_AT_ONCE = 5_000
#: Links from and to every step or level that are looked at first.
FIRST_LINKS = 32


@dataclass(frozen=True, eq=False)
class LevelLinks:
    """What the comparisons say about the levels of one facet."""

    keeps: BoolArray
    subset: Int64Array
    status: tuple[LevelStatus, ...]


def link_design(
    design: FacetDesign, batches: Iterable[Ratings], within: str | None
) -> tuple[FacetDesign, tuple[LevelLinks, ...]]:
    """Return the design without what has no finite estimate, and the links of every facet.

    Leaving out one level may take away the comparisons of another, so this goes on until
    nothing changes.
    """
    links = tuple(map(_keep_links, design.terms))
    is_linked = _is_linked(design, batches, within)
    while True:
        smaller = design
        if not is_linked:
            keeps_node, after = _link_graphs(design, batches, within)
            links = tuple(map(_remember, links, after))
            smaller = drop_levels(design, keeps_node, after)
        if _count_kept(smaller) == _count_kept(design):
            smaller = _drop_unbounded(smaller, batches, within)
            links = tuple(map(_mark_unbounded, links, smaller.terms))
        if _count_kept(smaller) == _count_kept(design):
            return smaller, links
        design, is_linked = smaller, False


def drop_levels(
    design: FacetDesign, keeps_node: BoolArray, links: Sequence[LevelLinks]
) -> FacetDesign:
    """Return the design without the steps and levels that have no number."""
    terms = [
        replace(term, keeps=link.keeps, subset=link.subset)
        for term, link in zip(design.terms, links, strict=True)
    ]
    return replace(design, keeps_node=keeps_node, terms=tuple(terms))


def _link_graphs(
    design: FacetDesign, batches: Iterable[Ratings], within: str | None
) -> tuple[BoolArray, list[LevelLinks]]:
    """Return which steps and levels are strongly linked by comparisons."""
    graphs = _find_graphs(design, batches, within)
    links = [
        _classify(graph, term.keeps, is_crossed=term.is_crossed)
        for graph, term in zip(graphs[1:], design.terms, strict=True)
    ]
    return _keep_nodes(design, graphs[0], within), links


def _is_linked(design: FacetDesign, batches: Iterable[Ratings], within: str | None) -> bool:
    """Say whether the first few links of each level link everything, which is quick to see."""
    if any(term.is_crossed or not term.keeps.all() for term in design.terms):
        return False
    graphs = _find_graphs(design, batches, within, FIRST_LINKS)
    linked = _keep_nodes(design, graphs[0], within).all()
    counts = [connected_components(graph, connection="strong")[0] for graph in graphs[1:]]
    return bool(linked and max(counts, default=1) == 1)


def _keep_links(term: FacetTerm) -> LevelLinks:
    """Return that every level has a number."""
    return LevelLinks(term.keeps, term.subset, (LevelStatus.ESTIMATED,) * len(term.levels))


def _count_kept(design: FacetDesign) -> int:
    return int(design.keeps_node.sum()) + sum(int(term.keeps.sum()) for term in design.terms)


def _find_graphs(
    design: FacetDesign, batches: Iterable[Ratings], within: str | None, most: int | None = None
) -> list[sparse.csr_array]:
    """Return who beats whom: among the steps, then among the levels of each facet."""
    sizes = [design.n_nodes, *(len(term.levels) for term in design.terms)]
    graphs: list[sparse.csr_array] = [sparse.csr_array((size, size)) for size in sizes]
    for pairs in PairedBatches(design, batches, within):
        codes = [(pairs.passed, pairs.failed)]
        for term, first in enumerate(design.first_column[:-1]):
            level = pairs.levels[:, term] - np.int32(first)
            codes.append(
                (np.where(pairs.passed >= 0, level, -1), np.where(pairs.failed >= 0, level, -1))
            )
        for number, (code, size) in enumerate(zip(codes, sizes, strict=True)):
            parts = [values.astype(np.int32) for values in code]
            graphs[number] = graphs[number] + pairs.find_links(parts, size, most)
    return graphs


def _keep_nodes(design: FacetDesign, graph: sparse.csr_array, within: str | None) -> BoolArray:
    """Return the steps with a finite estimate: the largest strong component, or one per item."""
    if not design.description.has_item_steps or design.n_nodes == len(design.items) == 1:
        return design.keeps_node.copy()
    labels = connected_components(graph, connection="strong")[1]
    if within is None:
        kept = labels[design.keeps_node]
        largest = np.bincount(kept).argmax() if len(kept) else -1
        return np.asarray(design.keeps_node & (labels == largest))
    firsts = labels[design.first_node[design.node_item]]
    return np.asarray(design.keeps_node & (labels == firsts))


def _classify(graph: sparse.csr_array, keeps: BoolArray, *, is_crossed: bool) -> LevelLinks:
    """Keep the largest strongly linked set of levels; of crossed facets one in every subset."""
    size = graph.shape[0]
    if size == 1:
        return LevelLinks(keeps, np.ones(1, np.int64), (LevelStatus.ESTIMATED,))
    weak = connected_components(graph, connection="weak")[1]
    strong = connected_components(graph, connection="strong")[1]
    n_linked = np.bincount(strong)
    wins = np.diff(graph.indptr)
    losses = np.bincount(graph.indices, minlength=size)
    best_of = {}
    for subset in range(weak.max() + 1):
        members = strong[weak == subset]
        best_of[subset] = members[n_linked[members].argmax()]
    sizes = [n_linked[best_of[subset]] for subset in range(weak.max() + 1)]
    order = np.argsort([-count for count in sizes], kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(1, len(order) + 1)
    linked = np.array([strong[i] == best_of[weak[i]] for i in range(size)])
    linked &= n_linked[strong] > 1
    kept = keeps & linked & (is_crossed | (rank[weak] == 1))
    status = [
        LevelStatus.ESTIMATED if kept[i]
        else LevelStatus.ALWAYS_LOWEST if not wins[i] and losses[i]
        else LevelStatus.ALWAYS_HIGHEST if wins[i] and not losses[i]
        else LevelStatus.NOT_CONNECTED
        for i in range(size)
    ]  # fmt: skip
    return LevelLinks(kept, rank[weak], tuple(status))


def _remember(before: LevelLinks, after: LevelLinks) -> LevelLinks:
    """Return the later links with the reasons of levels that were left out earlier."""
    status = [
        new if was is LevelStatus.ESTIMATED else was
        for was, new in zip(before.status, after.status, strict=True)
    ]
    is_first = all(status is LevelStatus.ESTIMATED for status in before.status)
    return LevelLinks(after.keeps, after.subset if is_first else before.subset, tuple(status))


def _mark_unbounded(link: LevelLinks, term: FacetTerm) -> LevelLinks:
    status = [
        LevelStatus.UNBOUNDED if was is LevelStatus.ESTIMATED and not keep else was
        for was, keep in zip(link.status, term.keeps, strict=True)
    ]
    return LevelLinks(term.keeps, link.subset, tuple(status))


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
            keeps_node[rows] = _keep_largest(nodes[rows])
    terms = []
    for term, low in zip(design.terms, design.first_column, strict=False):
        kept, rows = term.keeps.copy(), np.flatnonzero(term.keeps)
        part = moves[int(low) + rows]
        kept[rows] = np.abs(part) < SAME_MOVE if term.is_crossed else _keep_largest(part)
        terms.append(replace(term, keeps=kept))
    return replace(design, keeps_node=keeps_node, terms=tuple(terms))


def drop_runaways(
    design: FacetDesign, links: Sequence[LevelLinks], thresholds: FloatArray
) -> tuple[FacetDesign, tuple[LevelLinks, ...]]:
    """Leave out steps and levels that a solver carried far away from the median of their kind."""
    cuts = [0, *design.first_column.tolist()]
    near = []
    for low, high in pairwise(cuts):
        part = thresholds[low:high]
        near.append(np.abs(part - np.median(part)) < FARTHEST / 2)
    parts = zip(design.terms, near[1:], strict=True)
    terms = tuple(replace(term, keeps=term.keeps & close) for term, close in parts)
    smaller = replace(design, keeps_node=design.keeps_node & near[0], terms=terms)
    if _count_kept(smaller) == _count_kept(design):
        return design, tuple(links)
    return smaller, tuple(map(_mark_unbounded, links, terms))


def _keep_largest(moves: FloatArray) -> BoolArray:
    """Return which levels move as most do; none where no two move together."""
    codes = np.unique(np.round(moves / SAME_MOVE), return_inverse=True)[1]
    counts = np.bincount(codes)
    return np.asarray((codes == counts.argmax()) & (counts.max() > 1 or len(moves) == 1))
