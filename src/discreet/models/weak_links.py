"""Weak links: parts of the items that few persons link to the others.

In: pair counts and, where these leave it open, answers. Out: :class:`WeakLinks`, with a warning. At
the estimate the scores of the persons who hold a link add up to zero along it. One person's is
zero, and a sandwich over persons sees no error at all. So these persons are not scored, and the
model says how uncertain the link is (:func:`discreet.models.standard_errors.model_links`).
Confidential side: it reads persons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.answers.protocol import Answers, Job
from discreet.counts.matrix import PairMatrix
from discreet.counts.pairs import Weighting
from discreet.counts.planes import AnswerStore, BitPlanes, join_sparse, restrict_rows
from discreet.errors import FitWarning, WarningKind
from discreet.models.connectivity import Chain, find_reached
from discreet.models.laplacian import join_strongest, join_weights, sum_weights
from discreet.text import count_of, name_some
from discreet.types import BoolArray, IndexArray

if TYPE_CHECKING:
    from discreet.models.step_plan import StepPlan

#: A link that fewer persons hold is weak.
FEWEST = 10
#: With a larger share of the items hanging in the air, the mean of all is not known either, from
#: which every difficulty is measured.
MANY_LOST = 0.05
#: Compared pairs that are drawn where there are more: parts show in these as well.
PAIRS_PER_ITEM = 100
#: Up to here all pairs are looked at first: most often they show that there is no weak link.
FEW_NODES = 1000


@dataclass(frozen=True, eq=False)
class WeakLinks:
    """Parts of the items that few persons link to the others.

    Attributes
    ----------
    parts
        ``[part, node]`` of all nodes: the smaller side of each link.
    store
        The answers of the persons who hold the links.
    warning
        Names the items.
    """

    parts: BoolArray
    store: AnswerStore
    warning: FitWarning


@dataclass(frozen=True, eq=False)
class CollectLinking(Job[AnswerStore]):
    """Collect the persons who link parts to the other items, the first few of each part."""

    parts: BoolArray
    columns: IndexArray

    def block(self, store: AnswerStore) -> AnswerStore:
        """Return the answers of those among some persons."""
        return store.take(np.unique(find_linking(store, self.columns, self.parts)[0]))

    def add(self, first: AnswerStore, second: AnswerStore) -> AnswerStore:
        """Put the persons of both behind each other."""
        return join_sparse([first, second])  # type: ignore[no-any-return]


def find_linking(
    store: AnswerStore, columns: IndexArray, parts: BoolArray
) -> tuple[IndexArray, IndexArray]:
    """Return persons who answered nodes of a part and others, and the part: the first of each.

    Only ``columns`` count. Persons who are right on all of them, or wrong, link nothing.
    """
    from scipy.sparse import csr_array

    nodes, persons = store.nodes, np.arange(store.n_persons)
    if isinstance(nodes, BitPlanes):
        inside = np.flatnonzero(parts.any(axis=0))
        answered = nodes.right[:, inside] | nodes.wrong[:, inside]
        persons = np.flatnonzero(nodes.count_bits(answered))
        nodes = nodes.take(persons)
    indptr, item, right = restrict_rows(nodes, columns)
    shape, sides = (len(persons), len(columns)), csr_array(parts[:, columns].T.astype(np.int32))
    n_answered, n_right = np.diff(indptr), np.diff(np.append(0, np.cumsum(right))[indptr])
    answers = csr_array((np.ones(len(item), dtype=np.int32), item, indptr), shape=shape)
    inside_part = (answers @ sides).tocoo()
    row, part = inside_part.coords
    is_mixed = (n_right > 0) & (n_right < n_answered)
    links = np.flatnonzero(is_mixed[row] & (inside_part.data < n_answered[row]))
    links = links[np.lexsort((row[links], part[links]))]
    person, part = persons[row[links]], part[links]
    few = np.arange(len(part)) - np.searchsorted(part, part) < FEWEST
    return person[few], part[few]


def find_weak_links(
    answers: Answers, plan: StepPlan, chain: Chain, weighting: Weighting | None = None
) -> WeakLinks | None:
    """Return the parts that fewer than :data:`FEWEST` persons link to the others, if any.

    Parameters
    ----------
    answers
        Gone through only where the counts do not show that there are none.
    plan
        The categories of the items, and anchors, which hang together whatever the answers.
    chain
        Counts between the nodes that have a number.
    weighting
        Of persons in these counts.
    """
    if plan.is_complete:
        return None
    rates, columns = chain.rates, chain.linked
    item = np.unique(plan.item_of[columns], return_inverse=True)[1].reshape(-1)
    if plan.held is not None:
        held = ~np.isnan(plan.held[columns])
        rates = rates + np.outer(held, held) * rates.sum()
    # A person adds at most so much to a pair of nodes, and to all pairs of one item.
    answered = np.arange(2, item.max() + 2)
    weight = np.ones(len(answered)) if weighting is None else weighting(answered, answered)
    ways = 1 if plan.is_binary else 2
    suggested = suggest_parts(rates, item, weight.max(), ways * (weight * answered).max())
    parts = np.zeros((len(suggested), len(plan.item_of)), dtype=np.bool_)
    parts[:, columns] = suggested[:, item]
    if not len(parts):
        return None
    store = answers.reduce(plan.wrap(CollectLinking(parts, columns)))
    person, part = find_linking(store, columns, parts)
    holders = np.bincount(part, minlength=len(parts))
    weak = (holders > 0) & (holders < FEWEST)
    if not weak.any():
        return None
    names = [plan.items[i] for i in np.unique(plan.item_of[parts[weak].any(axis=0)])]
    few = store.take(np.unique(person[weak[part]]))
    return WeakLinks(parts[weak], few, warn_of_links(names, holders[weak].tolist()))


def warn_of_links(
    names: Sequence[str], holders: Sequence[int], noun: str = "item", holder: str = "person"
) -> FitWarning:
    """Warn of items (or objects) that few persons (or judges) link to the others."""
    number = count_of(max(holders), holder)
    number = number if min(holders) == max(holders) else f"{min(holders)} to {number}"
    sentence = (
        f"{count_of(len(names), noun)} linked to the others by {number} only: {name_some(names)}. "
        f"With fewer than {FEWEST} {holder}s, how they compare with the others is little known. "
        "Collect more answers that link them"
    )
    return FitWarning(WarningKind.WEAK_LINK, sentence, names)


def suggest_parts(rates: PairMatrix, item: IndexArray, pair: float, whole: float) -> BoolArray:
    """Return the parts, ``[part, item]``, that few persons may link to the others.

    Items that are linked most strongly are put together, and these groups again. A group is a part
    where fewer counts leave it than :data:`FEWEST` persons could add.

    Parameters
    ----------
    rates
        Counts between nodes.
    item
        The item of every node.
    pair, whole
        How much one person can add to a pair of nodes, and to all pairs of one item.
    """
    n = int(item.max()) + 1
    if isinstance(rates, np.ndarray) and len(item) <= FEW_NODES:
        pairs = (rates + rates.T).astype(np.float64)
        np.fill_diagonal(pairs, np.inf)
        # Between g and n - g items are g (n - g) pairs, n / 2 times the smaller number or more.
        is_spread = pairs.min() * n / 2 >= FEWEST * whole
        if is_spread or find_reached(pairs >= FEWEST * pair, 0).all():
            return np.zeros((0, n), dtype=np.bool_)
    weights, label = _draw_pairs(rates, item, n), np.arange(n, dtype=np.int32)
    parts: dict[bytes, BoolArray] = {}
    while True:
        leaving, size = sum_weights(weights), np.bincount(label)
        for group in np.flatnonzero(leaving < FEWEST * whole * np.minimum(size, n - size)):
            side = label == group
            side ^= (2 * size[group], side[0]) > (n, False)  # the smaller one
            parts[side.tobytes()] = side
        with np.errstate(divide="ignore"):
            count, joined = join_strongest(weights, leaving)
        if count in (1, len(leaving)):
            return np.array([*parts.values()], dtype=np.bool_).reshape(-1, n)
        label, weights = joined[label], join_weights(weights, joined, count)


def _draw_pairs(rates: PairMatrix, item: IndexArray, n: int) -> Any:
    """Return counts between items, of very many pairs those of a sample; the upper triangle."""
    from scipy.sparse import csr_array

    is_dense = isinstance(rates, np.ndarray)
    size, pairs = (rates.size, np.count_nonzero(rates)) if is_dense else (rates.nnz, rates.nnz)
    cells, share = np.arange(size), PAIRS_PER_ITEM * n / pairs
    if share < 1:
        cells = np.random.default_rng(0).integers(size, size=int(share * size))
    if is_dense:
        (row, column), count = np.divmod(cells, len(rates)), rates.reshape(-1)[cells]
    else:
        row, column = np.searchsorted(rates.indptr, cells, side="right") - 1, rates.indices[cells]
        count = rates.data[cells]
    first, second = item[row], item[column]
    kept = (first != second) & (count > 0)
    places = np.minimum(first, second)[kept], np.maximum(first, second)[kept]
    return csr_array((count[kept] * (size / len(cells)), places), shape=(n, n))
