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
from discreet.errors import BadResponses, BadUsage
from discreet.models.facets.pairs import PairGroups, RatingPairs
from discreet.models.facets.solve import LinearStructure
from discreet.results.facets import LevelStatus
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
    """

    description: Description
    items: tuple[str, ...]
    kept: tuple[tuple[int, ...], ...]
    terms: tuple[FacetTerm, ...]
    keeps_node: BoolArray
    feature_values: FloatArray

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
        """Return the structure in which everything is free."""
        return self._join(self._node_basis(), self._node_gauges())

    def spacing_structure(self) -> LinearStructure:
        """Return what pairs of the same item determine: steps within items, and facets."""
        if self.description.has_item_steps:
            nodes = self._node_basis()
            return self._join(nodes, _indicate(self.node_item[self.keeps_node]).T)
        nodes = self._step_basis()
        return self._join(nodes, sparse.csr_array(np.ones((1, nodes.shape[1]))))

    def location_structure(self, spacing: FloatArray) -> LinearStructure:
        """Return the structure of item locations, with everything else held at ``spacing``."""
        nodes = self._location_basis()
        empty = sparse.csr_array((self.n_columns - self.n_nodes, nodes.shape[1]))
        basis = sparse.vstack([nodes, empty]).tocsr()
        constant = np.ones((0 if self.description.features else 1, nodes.shape[1]))
        gauges = sparse.csr_array(constant)
        return LinearStructure(basis, spacing, gauges, nodes.shape[1], self.n_nodes)

    def _location_basis(self) -> Any:
        items = sparse.csr_array(_indicate(self.node_item, len(self.items)))
        if self.description.features:
            return (items @ sparse.csr_array(self.feature_values)).tocsr()
        linked = np.unique(self.node_item[self.keeps_node])
        return items[:, linked]

    def _step_basis(self) -> Any:
        seen = np.unique(self.node_step[self.keeps_node])
        if not self.description.has_steps:
            return sparse.csr_array((self.n_nodes, 0))
        return _indicate(self.node_step, int(self.node_step.max()) + 1)[:, seen]

    def _node_basis(self) -> Any:
        if self.description.has_item_steps:
            return sparse.csr_array(sparse.eye_array(self.n_nodes))[:, self.keeps_node]
        return sparse.hstack([self._location_basis(), self._step_basis()]).tocsr()

    def _node_gauges(self) -> Any:
        if self.description.has_item_steps:
            item = self.node_item[self.keeps_node]
            return sparse.csr_array((1.0 / np.bincount(item)[item])[None, :])
        n_locations, n_steps = self._location_basis().shape[1], self._step_basis().shape[1]
        rows = np.zeros((2, n_locations + n_steps))
        rows[0, :n_locations] = not self.description.features
        rows[1, n_locations:] = 1.0
        return sparse.csr_array(rows[(rows != 0).any(axis=1)])

    def _join(self, nodes: Any, gauges: Any) -> LinearStructure:
        parts, constraints = [nodes], [gauges]
        for term in self.terms:
            size = len(term.levels)
            parts.append(sparse.csr_array(sparse.eye_array(size))[:, term.keeps])
            # Constraints: levels of a subset, or crossed with a main effect, sum to zero.
            mains = {main.names[0] for main in self.terms if not main.is_crossed} | {ITEM}
            rows = [term.subset]
            if term.is_crossed:
                rows += [term.members[:, n] for n, name in enumerate(term.names) if name in mains]
            rows = sparse.vstack([_indicate(codes).T for codes in rows]).tocsr()[:, term.keeps]
            constraints.append(rows[np.diff(rows.indptr) > 0])
        basis, rows = sparse.block_diag(parts).tocsr(), sparse.block_diag(constraints).tocsr()
        zeros = np.zeros(self.n_columns)
        return LinearStructure(basis, zeros, rows, nodes.shape[1], self.n_nodes)


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
    batches: Iterable[Ratings], description: Description, features: Mapping[str, Any] | None = None
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
    return FacetDesign(description, ratings.items, kept, tuple(terms), keeps, values)


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
    features: Mapping[str, Any], names: Sequence[str], items: Sequence[str]
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
