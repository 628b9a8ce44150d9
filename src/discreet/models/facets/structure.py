"""The structure of a facets model: which parameters make up the threshold of a rating.

In: ratings and a short description, such as ``"item:step + rater"``. Out: columns (a column is a
step of an item, or a level of a facet) for every rating, and the linear structure
``thresholds = offset + B phi`` that the description says. The rows of B belong to ratings: the
threshold of a rating is the sum of the columns of its item's step and of its facets' levels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sparse

from discreet.answers.ratings import Ratings
from discreet.choices import PlainMapping
from discreet.errors import BadResponses, BadUsage
from discreet.models.anchors import accept_anchors
from discreet.models.facets.pairs import PairGroups, RatingPairs
from discreet.models.facets.solve import LinearStructure
from discreet.models.item_parameters import KnownItems
from discreet.results.estimate import Estimate
from discreet.results.facets import FacetLevels, LevelStatus
from discreet.types import BoolArray, FloatArray, Int32Array, Int64Array

ITEM, STEP = "item", "step"
WITHIN_ITEM = "item"


@dataclass(frozen=True)
class Description:
    """A structure, as it was written.

    Attributes
    ----------
    has_item_steps
        Whether every item has steps of its own (partial credit).
    has_items, has_steps
        Whether items have locations, and whether all items share steps (rating scale).
    features
        Names of item features whose weights make up the items' locations.
    terms
        Facets, each the names that it crosses: ``("rater",)``, ``("rater", "time")``.
    """

    has_item_steps: bool
    has_items: bool
    has_steps: bool
    features: tuple[str, ...]
    terms: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        nodes = ["item:step"] * self.has_item_steps + ["item"] * self.has_items
        parts = [*nodes, *self.features, *["step"] * self.has_steps]
        return " + ".join([*parts, *map(":".join, self.terms)])


def describe_structure(
    text: str | None, facets: Sequence[str], *, model: str = "auto", features: Sequence[str] = ()
) -> Description:
    """Read a description; by default every facet is a term of its own.

    Examples
    --------
    >>> str(describe_structure(None, ["rater"]))
    'item:step + rater'
    >>> describe_structure("item + step + rater + rater:time", ["rater", "time"]).terms
    (('rater',), ('rater', 'time'))
    """
    if text is None:
        items = " + ".join(features) or ITEM
        shared = model == "rating-scale" or bool(features)
        text = " + ".join([f"{items} + step" if shared else "item:step", *facets])
    order = {ITEM: 0, STEP: 2}
    terms_of = [[name.strip() for name in term.split(":")] for term in text.split("+")]
    words = [tuple(sorted(names, key=lambda name: order.get(name, 1))) for names in terms_of]
    names = {ITEM, STEP, *facets, *features}
    for name in (name for word in words for name in word if name not in names):
        raise BadUsage(
            f"structure= names '{name}', which is neither 'item', 'step', a facet nor an item "
            f"feature. The facets are: {', '.join(facets) or 'none'}. Name the column in facets= "
            "(--facet), or correct the structure."
        )
    nodes = {(ITEM, STEP), (ITEM,), (STEP,), *((name,) for name in features)}
    terms = tuple(dict.fromkeys(word for word in words if word not in nodes))
    if any(STEP in word for word in terms):
        raise BadUsage(
            f"structure={text!r} crosses steps with a facet; only 'item:step' has steps of its "
            "own. Raters have one severity each; look at their fit to see who uses the scale "
            "otherwise."
        )
    chosen = tuple(name for name in features if (name,) in words)
    has_item_steps, has_items, has_steps = (
        (ITEM, STEP) in words,
        (ITEM,) in words,
        (STEP,) in words,
    )
    if has_item_steps + has_items + bool(chosen) != 1 or (has_item_steps and has_steps):
        raise BadUsage(
            f"structure={text!r} must say how items differ in one way: 'item:step' (every item has "
            "steps of its own), 'item + step' (items share the distances of steps), or item "
            "features + 'step'."
        )
    return Description(has_item_steps, has_items, has_steps, chosen, terms)


@dataclass(frozen=True, eq=False)
class FacetTerm:
    """The columns of one facet, or of facets that are crossed.

    Attributes
    ----------
    names
        What is crossed.
    levels
        Names of the levels, or of the combinations that occur.
    members
        ``[level, name]``: for crossed facets the number of each one's level.
    lookup
        From the number of a combination to its level; None where that is the level itself.
    status
        Of each level: whether it has a number, or why not.
    subset
        Levels that persons link have the same number.
    """

    names: tuple[str, ...]
    levels: tuple[str, ...]
    members: Int64Array
    lookup: Int64Array | None
    status: tuple[LevelStatus, ...]
    subset: Int64Array

    @cached_property
    def keeps(self) -> BoolArray:
        """Which levels have a number."""
        return np.array([status is LevelStatus.ESTIMATED for status in self.status], bool)

    def leave_out(self, keeps: BoolArray) -> FacetTerm:
        """Return the facet in which levels that are not kept have no bound."""
        status = [
            LevelStatus.UNBOUNDED if was is LevelStatus.ESTIMATED and not keep else was
            for was, keep in zip(self.status, keeps.tolist(), strict=True)
        ]
        return replace(self, status=tuple(status))

    @property
    def name(self) -> str:
        """What results call it."""
        return ":".join(self.names)

    @property
    def is_crossed(self) -> bool:
        """Whether it crosses several facets."""
        return len(self.names) > 1


@dataclass(frozen=True, eq=False)
class FacetDesign:
    """Columns of all parameters that ratings can have.

    Attributes
    ----------
    description
        The structure.
    items
        Item names.
    kept
        Per item, the categories that occur, as the ratings have them: the model numbers them
        through from 0.
    terms
        The facets.
    keeps_node
        Which steps have a number, node by node (item after item, step after step).
    feature_values
        ``[item, feature]``.
    held
        Of all columns, what is known and held; NaN where it is estimated.
    """

    description: Description
    items: tuple[str, ...]
    kept: tuple[tuple[int, ...], ...]
    terms: tuple[FacetTerm, ...]
    keeps_node: BoolArray
    feature_values: FloatArray
    held: FloatArray

    @property
    def steps(self) -> tuple[int, ...]:
        """Steps of each item."""
        return tuple(len(categories) - 1 for categories in self.kept)

    @cached_property
    def first_node(self) -> Int64Array:
        """The first node of each item, and the number of nodes."""
        return np.concatenate([[0], np.cumsum(self.steps)]).astype(np.int64)

    @property
    def n_nodes(self) -> int:
        """Steps of all items."""
        return int(self.first_node[-1])

    @cached_property
    def first_column(self) -> Int64Array:
        """The first column of each term, and the number of columns."""
        sizes = [self.n_nodes, *(len(term.levels) for term in self.terms)]
        return np.cumsum(sizes).astype(np.int64)

    @property
    def n_columns(self) -> int:
        """Steps and levels."""
        return int(self.first_column[-1])

    @cached_property
    def keeps(self) -> BoolArray:
        """Which columns have a number."""
        return np.concatenate([self.keeps_node, *(term.keeps for term in self.terms)])

    @cached_property
    def is_held(self) -> BoolArray:
        """Which columns are held."""
        return np.isfinite(self.held)

    @cached_property
    def _held_nodes(self) -> FloatArray:
        """The held steps, zero for others."""
        return np.nan_to_num(self.held[: self.n_nodes])

    @cached_property
    def _is_free_node(self) -> BoolArray:
        return ~self.is_held[: self.n_nodes]

    @property
    def has_held_items(self) -> bool:
        """Whether items hold the scale, so that their mean is not zero."""
        return not self._is_free_node.all()

    def list_terms(self) -> list[tuple[FacetTerm, slice]]:
        """Return every facet with its columns."""
        bounds = pairwise(self.first_column.tolist())
        return [(term, slice(*ends)) for term, ends in zip(self.terms, bounds, strict=True)]

    @cached_property
    def node_item(self) -> Int64Array:
        """The item of each node."""
        return np.repeat(np.arange(len(self.items)), self.steps)

    @cached_property
    def node_step(self) -> Int64Array:
        """The step of each node, from 0."""
        return np.arange(self.n_nodes) - self.first_node[self.node_item]

    @cached_property
    def _new_score(self) -> Int32Array:
        """The category of the model, ``[item, category of the ratings]``."""
        widest = max(categories[-1] for categories in self.kept) + 1
        table = np.full((len(self.items), widest), -1, np.int32)
        for row, categories in zip(table, self.kept, strict=True):
            row[list(categories)] = np.arange(len(categories))
        return table

    def recode(self, ratings: Ratings) -> Int32Array:
        """Return the scores of ratings as the model numbers them."""
        return self._new_score[ratings.item, ratings.score]

    def find_levels(self, ratings: Ratings) -> Int32Array:
        """Return the columns of the facets of every rating, ``[rating, term]``."""
        out = np.empty((len(ratings.score), len(self.terms)), np.int32)
        for number, (term, columns) in enumerate(self.list_terms()):
            codes = _combine(ratings, term.names)
            out[:, number] = columns.start + (codes if term.lookup is None else term.lookup[codes])
        return out

    def pair(self, ratings: Ratings, within: str | None) -> RatingPairs:
        """Return the pairs of ratings: of the same person, or of the same person and item."""
        score = self.recode(ratings)
        levels = self.find_levels(ratings)
        counts = self.keeps[levels].all(axis=1)
        node = (self.first_node[ratings.item] + score).astype(np.int32)
        most = np.asarray(self.steps)[ratings.item]
        keeps = np.append(self.keeps_node, False)
        passed = np.where(counts & (score > 0) & keeps[node - 1], node - 1, -1).astype(np.int32)
        failed = np.where(counts & (score < most) & keeps[node], node, -1).astype(np.int32)
        groups = self.group(ratings, within)
        return RatingPairs(passed, failed, levels, groups, ratings.person, self.n_columns)

    def group(self, ratings: Ratings, within: str | None) -> PairGroups:
        """Return the groups of ratings that are compared."""
        changes = np.diff(ratings.person, prepend=-1) != 0
        if within == WITHIN_ITEM:
            changes |= np.diff(ratings.item, prepend=-1) != 0
        return PairGroups.between(changes)

    # --- the linear structure ---------------------------------------------------------------

    def whole_structure(self) -> LinearStructure:
        """Return the structure in which everything is free that is not held."""
        nodes = self._held_nodes
        if self.description.has_steps and self.has_held_items:
            mean = np.bincount(self.node_item, nodes) / self.steps
            free = self._is_free_node
            nodes = np.where(free, self._hold_steps(nodes - mean[self.node_item]), nodes)
        return self._join(self._node_basis(), self._node_gauges(), nodes)

    def spacing_structure(self) -> LinearStructure:
        """Return what pairs of the same item determine: steps within items, and facets."""
        # Of held items pairs of the same item see the distances, not the location.
        mean = np.bincount(self.node_item, self._held_nodes) / self.steps
        held = np.where(self._is_free_node, 0.0, self._held_nodes - mean[self.node_item])
        if self.description.has_item_steps:
            nodes = self._node_basis()
            free = self.keeps_node & self._is_free_node
            return self._join(nodes, _indicate(self.node_item[free]).T, held)
        nodes = self._step_basis()
        ones = np.ones((min(1, nodes.shape[1]), nodes.shape[1]))
        return self._join(nodes, sparse.csr_array(ones), self._hold_steps(held))

    def _hold_steps(self, distance: FloatArray) -> FloatArray:
        """Return the distances that held items give all items; zero where none is held."""
        held = ~self._is_free_node
        if not held.any():
            return distance
        count = np.bincount(self.node_step, held)
        steps = np.bincount(self.node_step, distance * held) / np.maximum(count, 1)
        return np.asarray(steps[self.node_step])

    def location_structure(self, spacing: FloatArray) -> LinearStructure:
        """Return the structure of item locations, with everything else held at ``spacing``."""
        nodes = self._location_basis()
        empty = sparse.csr_array((self.n_columns - self.n_nodes, nodes.shape[1]))
        basis = sparse.vstack([nodes, empty]).tocsr()
        is_known = bool(self.description.features) or self.has_held_items
        gauges = sparse.csr_array(np.ones((0 if is_known else 1, nodes.shape[1])))
        offset = spacing.copy()
        offset[: self.n_nodes][~self._is_free_node] = self._held_nodes[~self._is_free_node]
        return LinearStructure(basis, offset, gauges, nodes.shape[1], self.n_nodes)

    def _location_basis(self) -> Any:
        items = sparse.csr_array(_indicate(self.node_item, len(self.items)))
        if self.description.features:
            return (items @ sparse.csr_array(self.feature_values)).tocsr()
        linked = np.unique(self.node_item[self.keeps_node & self._is_free_node])
        return items[:, linked]

    def _step_basis(self) -> Any:
        seen = np.unique(self.node_step[self.keeps_node])
        if not self.description.has_steps or self.has_held_items:
            return sparse.csr_array((self.n_nodes, 0))
        return _indicate(self.node_step, int(self.node_step.max()) + 1)[:, seen]

    def _node_basis(self) -> Any:
        if self.description.has_item_steps:
            free = self.keeps_node & self._is_free_node
            return sparse.csr_array(sparse.eye_array(self.n_nodes))[:, free]
        return sparse.hstack([self._location_basis(), self._step_basis()]).tocsr()

    def _node_gauges(self) -> Any:
        if self.has_held_items:
            return sparse.csr_array((0, self._node_basis().shape[1]))
        if self.description.has_item_steps:
            item = self.node_item[self.keeps_node]
            return sparse.csr_array((1.0 / np.bincount(item)[item])[None, :])
        n_locations, n_steps = self._location_basis().shape[1], self._step_basis().shape[1]
        rows = np.zeros((2, n_locations + n_steps))
        rows[0, :n_locations] = not self.description.features
        rows[1, n_locations:] = 1.0
        return sparse.csr_array(rows[(rows != 0).any(axis=1)])

    def _join(self, nodes: Any, gauges: Any, held_nodes: FloatArray) -> LinearStructure:
        parts, constraints, offset = [nodes], [gauges], np.nan_to_num(self.held)
        offset[: self.n_nodes] = held_nodes
        for term, columns in self.list_terms():
            size, is_held = len(term.levels), self.is_held[columns]
            free = term.keeps & ~is_held
            parts.append(sparse.csr_array(sparse.eye_array(size))[:, free])
            # Constraints: levels of a subset, or crossed with a main effect, sum to zero.
            mains = {main.names[0] for main in self.terms if not main.is_crossed} | {ITEM}
            rows = [term.subset]
            if term.is_crossed:
                rows += [term.members[:, n] for n, name in enumerate(term.names) if name in mains]
            # Levels that are held take the place of the sums that they are in.
            rows = sparse.vstack([_indicate(codes).T for codes in rows]).tocsr()
            is_sum = (rows @ is_held == 0) & (rows @ free > 0)
            constraints.append(rows[is_sum][:, free])
        basis, rows = sparse.block_diag(parts).tocsr(), sparse.block_diag(constraints).tocsr()
        return LinearStructure(basis, offset, rows, nodes.shape[1], self.n_nodes)


def _indicate(codes: Int64Array, size: int | None = None) -> Any:
    """Return a matrix of zeros and ones, ``[entry, code]``."""
    if size is None:
        codes = np.unique(codes, return_inverse=True)[1]
        size = int(codes.max(initial=-1)) + 1
    shape = (len(codes), size)
    return sparse.csr_array((np.ones(len(codes)), (np.arange(len(codes)), codes)), shape=shape)


def _combine(ratings: Ratings, names: Sequence[str]) -> Int64Array:
    """Return the number of each rating's combination."""
    total = np.zeros(len(ratings.score), np.int64)
    for name in names:
        codes = ratings.item if name == ITEM else ratings.codes[name]
        total = total * len(ratings.items if name == ITEM else ratings.facets[name]) + codes
    return total


def plan_design(
    batches: Iterable[Ratings], description: Description, features: PlainMapping | None = None
) -> FacetDesign:
    """Find the categories, levels and combinations that occur."""
    counts: Any = None
    cells = [np.zeros(0, np.int64) for _ in description.terms]
    for ratings in batches:
        part = ratings.count_categories()
        counts = part if counts is None else counts + part
        for number, names in enumerate(description.terms):
            if len(names) > 1:
                cells[number] = np.union1d(cells[number], _combine(ratings, names))
    if counts is None:
        raise BadResponses("The table has no ratings.")
    if description.has_steps:  # a category that occurs with any item is one of all
        counts = np.tile(counts.sum(axis=0), (len(counts), 1))
    kept = tuple(tuple(np.flatnonzero(row).tolist()) for row in counts)
    terms = [
        _make_term(names, ratings, cell)
        for names, cell in zip(description.terms, cells, strict=True)
    ]
    values = _take_features(features or {}, description.features, ratings.items)
    keeps = np.ones(sum(len(categories) - 1 for categories in kept), bool)
    held = np.full(len(keeps) + sum(len(term.levels) for term in terms), np.nan)
    return FacetDesign(description, ratings.items, kept, tuple(terms), keeps, values, held)


def hold_anchors(design: FacetDesign, anchors: Any, lowest: int) -> FacetDesign:
    """Return the design with the steps of items and the levels of facets that are known.

    ``anchors`` is an earlier estimate of ratings; or a mapping from a facet's name to its levels
    and their measures, and from items to their thresholds.
    """
    if isinstance(anchors, Mapping):
        facets = {name: own for name, own in anchors.items() if isinstance(own, Mapping)}
        items: Any = {name: own for name, own in anchors.items() if name not in facets}
        items |= facets.pop(ITEM, {})
    else:
        facets = {
            term.name: _list_known(anchors.facets[term.name], term.levels)
            for term in design.terms
            if term.name in anchors.facets
        }
        items = anchors if set(anchors.items) & set(design.items) else {}
    names = [term.name for term in design.terms]
    for name in facets:
        if name not in names:
            raise BadUsage(
                f"the anchors have the facet '{name}'; the facets that can be held are: "
                f"{', '.join(names) or 'none'}"
            )
    if items:
        design = _hold_items(design, accept_anchors(items, design.items), lowest)
    held = design.held.copy()
    for term, columns in design.list_terms():
        if own := facets.get(term.name):
            known = accept_anchors(own, term.levels)
            rows = [columns.start + term.levels.index(level) for level in known.items]
            held[rows] = known.thresholds[:, 0]
    if not np.isfinite(held).any():
        accept_anchors({}, design.items)
    return replace(design, held=held)


def _hold_items(design: FacetDesign, known: KnownItems, lowest: int) -> FacetDesign:
    """Hold all steps of items; the categories are those of the anchors."""
    if design.description.features:
        raise BadUsage("items with features have no thresholds to hold; anchor raters only")
    shift, kept = known.lowest - lowest, list(design.kept)
    for name, categories in zip(known.items, known.kept, strict=True):
        item = design.items.index(name)
        wanted = tuple(category + shift for category in categories)
        if not set(kept[item]) <= set(wanted):
            found, ours = (
                ", ".join(str(category + lowest) for category in some)
                for some in (kept[item], wanted)
            )
            raise BadUsage(
                f"item '{name}' has the scores {found}, and its anchor is for {ours}. Give a "
                "threshold for every step, or read the ratings as those of the calibration were "
                "(lowest=)"
            )
        kept[item] = wanted
    nodes = {
        name: row[: len(own) - 1]
        for name, row, own in zip(known.items, known.thresholds, known.kept, strict=True)
    }
    free = [np.full(len(own) - 1, np.nan) for own in kept]
    parts = [nodes.get(name, own) for name, own in zip(design.items, free, strict=True)]
    held = np.concatenate([*parts, design.held[design.n_nodes :]])
    keeps = np.ones(sum(map(len, parts)), bool)
    return replace(design, kept=tuple(kept), held=held, keeps_node=keeps)


def recall_design(ratings: Ratings, estimate: Estimate) -> tuple[FacetDesign, FloatArray]:
    """Return the design that an estimate has for its ratings, and the thresholds of all columns."""
    nodes = "item + step" if estimate.model == "rating-scale" else "item:step"
    text = " + ".join([nodes, *estimate.facets])
    design = plan_design((ratings,), describe_structure(text, tuple(ratings.facets)))
    terms, values, status = [], [], []
    for term in design.terms:
        facet = estimate.facets[term.name]
        row_of = {level: row for row, level in enumerate(facet.levels)}
        rows = [row_of[level] for level in term.levels]
        own = np.array(facet.status, object)[rows]
        known = np.where(own == LevelStatus.ANCHORED, LevelStatus.ESTIMATED, own)
        terms.append(replace(term, status=tuple(known), subset=facet.subset[rows]))
        values.append(facet.measure[rows])
        status.append(own == LevelStatus.ANCHORED)
    ladder = estimate.ladder
    steps = [row[: len(own) - 1] for row, own in zip(ladder.value, ladder.kept, strict=True)]
    held_steps = [one == LevelStatus.ANCHORED for own in ladder.status for one in own]
    value = np.concatenate([*steps, *values])
    keeps = np.isfinite(np.concatenate(steps))
    is_held = np.concatenate([np.array(held_steps, bool), *status])
    held = np.where(is_held, value, np.nan)
    design = replace(design, kept=ladder.kept, terms=tuple(terms), keeps_node=keeps, held=held)
    return design, np.nan_to_num(value)


def _list_known(facet: FacetLevels, levels: Sequence[str]) -> dict[str, float]:
    """Return the measures of those levels that have one."""
    rows = zip(facet.levels, facet.measure.tolist(), strict=True)
    return {level: value for level, value in rows if level in levels and np.isfinite(value)}


def _make_term(names: tuple[str, ...], ratings: Ratings, cells: Int64Array) -> FacetTerm:
    labels = [ratings.items if name == ITEM else ratings.facets[name] for name in names]
    if len(names) == 1:
        levels, lookup, members = labels[0], None, np.arange(len(labels[0]))[:, None]
    else:
        sizes = [len(part) for part in labels]
        members = np.column_stack(np.unravel_index(cells, sizes))
        lookup = np.full(int(np.prod(sizes)), -1, np.int64)
        lookup[cells] = np.arange(len(cells))
        rows = ([labels[n][code] for n, code in enumerate(row)] for row in members.tolist())
        levels = tuple(map(":".join, rows))
    status = (LevelStatus.ESTIMATED,) * len(levels)
    return FacetTerm(names, levels, members, lookup, status, np.ones(len(levels), np.int64))


def _take_features(
    features: PlainMapping, names: Sequence[str], items: Sequence[str]
) -> FloatArray:
    """Return the features ``[item, feature]``, centred, so that the mean item is at zero."""
    if not names:
        return np.zeros((len(items), 0))
    known = [str(item) for item in features[ITEM]]
    missing = [item for item in items if item not in known]
    if missing:
        raise BadUsage(
            f"features= has no row for the item '{missing[0]}'. Give every item its features."
        )
    rows = [known.index(item) for item in items]
    values = np.column_stack([np.asarray(features[name], float)[rows] for name in names])
    return np.asarray(values - values.mean(axis=0))


class PairedBatches:
    """Pairs of batches of ratings, made batch by batch; of a single batch in memory once."""

    def __init__(self, design: FacetDesign, batches: Iterable[Ratings], within: str | None) -> None:
        self._design, self._batches, self._within = design, batches, within
        is_kept = isinstance(batches, tuple)
        self._only = [design.pair(part, within) for part in batches] if is_kept else None

    def __iter__(self) -> Iterator[RatingPairs]:
        if self._only is not None:
            return iter(self._only)
        return (self._design.pair(ratings, self._within) for ratings in self._batches)
