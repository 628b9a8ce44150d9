"""Which steps and levels the ratings determine, and why others have no number.

In: pairs of ratings. Out: for every step and level whether it has a finite estimate, and the subset
of levels that it belongs to. A level whose ratings are all the lowest, or lose every comparison,
has its estimate at infinity; levels that no person links have no common scale.

The check is a strongly connected graph of comparisons, for each facet and for the steps. It is
necessary for every facet; mixed directions over several facets are left to the solver, which stops
where a parameter runs away.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.csgraph import connected_components

from discreet.answers.ratings import Ratings
from discreet.models.facets.structure import FacetDesign, FacetTerm, PairedBatches, drop_levels
from discreet.results.facets import LevelStatus
from discreet.types import BoolArray, Int64Array

NEIGHBOURS = 2
"""How far apart ratings are that are looked at first."""


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
    if _is_linked(design, batches, within):
        return design, tuple(_link_all(term) for term in design.terms)
    first: tuple[LevelLinks, ...] | None = None
    while True:
        graphs = _find_graphs(design, batches, within)
        keeps_node = _keep_nodes(design, graphs[0], within)
        links = tuple(
            _classify(graph, term.keeps, is_crossed=term.is_crossed)
            for graph, term in zip(graphs[1:], design.terms, strict=True)
        )
        first = links if first is None else tuple(map(_remember, first, links))
        smaller = drop_levels(design, keeps_node, links)
        if _count_kept(smaller) == _count_kept(design):
            return smaller, first
        design = smaller


def _is_linked(design: FacetDesign, batches: Iterable[Ratings], within: str | None) -> bool:
    """Say whether neighbouring ratings link everything already, which is quick to see."""
    if any(term.is_crossed or not term.keeps.all() for term in design.terms):
        return False
    graphs = _find_graphs(design, batches, within, NEIGHBOURS)
    linked = _keep_nodes(design, graphs[0], within).all()
    counts = [connected_components(graph, connection="strong")[0] for graph in graphs[1:]]
    return bool(linked and max(counts, default=1) == 1)


def _link_all(term: FacetTerm) -> LevelLinks:
    size = len(term.levels)
    return LevelLinks(term.keeps, np.ones(size, np.int64), (LevelStatus.ESTIMATED,) * size)


def _count_kept(design: FacetDesign) -> int:
    return int(design.keeps_node.sum()) + sum(int(term.keeps.sum()) for term in design.terms)


def _find_graphs(
    design: FacetDesign, batches: Iterable[Ratings], within: str | None, reach: int | None = None
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
            graphs[number] = graphs[number] + pairs.find_links(parts, size, reach)
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
    return LevelLinks(after.keeps, before.subset, tuple(status))
