"""Standard errors of estimates from pairs: random signs, folds, sandwich.

Scores: how far each person's answers pull each difficulty from its estimate.

In: answers, difficulties and the estimator's contribution of one pair. Out: one number per
person and item, corrected for leverage. Confidential side: it reads every person.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from discreet.answers.protocol import stand_for
from discreet.counts.planes import AnswerStore, BitPlanes, SparseRows
from discreet.types import FloatArray, IndexArray, Int64Array, UInt64Array

#: Cells of a chunk of persons: the few arrays of 1.6 MB stay in cache.
CHUNK_CELLS = 200_000
#: At least 512 persons in a chunk, so that with many items the matrix products stay efficient.
CHUNK_WORDS = 8
#: Items up to which a table of all pairs is kept (32 MB).
TABLE_ITEMS = 2000
#: With more items the table is made anew for every chunk, in slices of so many rows.
TABLE_ROWS = 256
#: Takers of an item whose scores are enough: a standard error has then a relative error of about
#: 1 / sqrt(2 ENOUGH) = 0.5%.
ENOUGH = 20_000
#: Persons from which on the last digits of a score do not matter: products are summed in single
#: precision, twice as fast, if no item's variance is more than LOOSE times what its own comparisons
#: make it.
COARSE = 10_000
LOOSE = 4.0
#: Leverage, on average 1 / takers of an item, that is left out: standard errors become smaller by
#: about this part of themselves at most (5e-5 with 20,000 persons and 50 items).
SMALL_LEVERAGE = 3e-4
#: A person who is nearly the only link of an item would otherwise get an unbounded factor.
MAX_LEVERAGE = 0.5


class PairContribution(Protocol):
    """An estimator's contribution of one pair: first item right, second wrong."""

    @property
    def is_complementary(self) -> bool:
        """Whether residuals of a pair, one way round and the other, add up to one."""
        ...

    def residual(self, right: FloatArray, wrong: FloatArray) -> FloatArray: ...
    def curvature(self, right: FloatArray, wrong: FloatArray) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class PersonSample:
    """Who is scored of very many persons.

    Attributes
    ----------
    takers
        Per item of all items, how many persons answered it.
    every
        Of how many of them one is scored; see :mod:`discreet.answers.select`. Those who stand
        for others are so many that nobody's leverage matters.
    """

    takers: Int64Array
    every: Int64Array

    def count_seen(self, store: AnswerStore) -> FloatArray:
        """Return how many takers of each item, with steps of each node, they stand for."""
        nodes = store.nodes
        stands, represented = stand_for(store, self.every), np.zeros(nodes.n_items)
        for number in np.unique(stands):
            represented += number * nodes.pick(np.flatnonzero(stands == number)).item_totals()[0]
        return represented

    def find_scale(self, represented: FloatArray, columns: IndexArray) -> FloatArray:
        """Return what scores on kept items are multiplied by, for as many takers as there are.

        Scaling an item's scores keeps a covariance one, and leaves alone what is not sampled.
        """
        return np.asarray(np.sqrt(self.takers[columns] / np.maximum(represented, 1.0)))


def plan_draw(takers: Int64Array, columns: IndexArray, slack: FloatArray) -> PersonSample | None:
    """Decide who is scored; None for everybody.

    Parameters
    ----------
    takers
        Per item of all items, how many persons answered it.
    columns
        Items with a difficulty; others ask for nobody.
    slack
        How many times as large the variance of a kept item is as the item's own comparisons
        alone would make it: about 1 where items are well linked. Where a few persons hold two
        sets of items together it is large, and as few of the takers matter.

    Examples
    --------
    >>> plan_draw(np.array([39_999, 40_000, 300_000, 7]), np.arange(3), np.ones(3)).every.tolist()
    [1, 2, 15, 15]
    >>> plan_draw(np.array([300_000, 300_000]), np.arange(2), np.array([50.0, 50.0])) is None
    True
    """
    enough = np.floor(takers[columns] / (ENOUGH * np.maximum(slack, 1.0))).astype(np.int64)
    every = np.full(len(takers), max(int(enough.max(initial=1)), 1))
    every[columns] = np.maximum(enough, 1)
    return PersonSample(takers, every) if (every > 1).any() else None


def bound_leverage(takers: Int64Array, slack: FloatArray, items: int | None) -> float:
    """Return about the largest leverage that a person may have.

    ``takers`` and ``slack`` are those of the kept items or nodes. Where everybody answered all
    ``items`` of them, leverage is spread over as many answers; None where answers are missing.
    """
    share = slack / np.maximum(takers, 1)
    if items is None:
        return float(share.max(initial=0.0))
    return float(share @ takers / max(int(takers.sum()), 1) + share.max(initial=0.0) / items)


@dataclass(frozen=True, eq=False)
class ScorePlan:
    """What is needed to score persons.

    Attributes
    ----------
    difficulty, columns
        Difficulties of the kept items and their positions among all items.
    scoring
        The estimator's pair contributions.
    resistance
        Variance of each difference under ``pinv(L)``: a matrix, or one number per item whose
        pairwise sums stand in for it.
    weighting
        The rule that gives each person's weight from (answered, right), as used in the counts;
        None for one each.
    draw
        Who is scored, where there are very many persons; None for all of them.
    item_of
        The item of each kept node, where items have steps: pairs within an item say nothing.
    is_complete
        Whether everybody answered every item, and the items have one step.
    is_coarse
        Whether single precision is enough.
    has_leverage
        Whether scores are corrected for leverage.
    """

    difficulty: FloatArray
    columns: IndexArray
    scoring: PairContribution
    resistance: FloatArray
    weighting: Callable[[Int64Array, Int64Array], Int64Array] | None = None
    draw: PersonSample | None = None
    item_of: IndexArray | None = None
    is_complete: bool = False
    is_coarse: bool = False
    has_leverage: bool = True

    @property
    def every(self) -> Int64Array | None:
        """Per item of all items, of how many of its takers one is scored; None where all are."""
        return None if self.draw is None else self.draw.every


def weigh_scores(store: AnswerStore, plan: ScorePlan) -> FloatArray:
    """Return ``[2, person]``: the weights, and the roots of how many persons each stands for.

    Products of two scores then count as those of all these persons.
    """
    weights = np.ones((2, store.n_persons))
    if plan.weighting is not None:
        weights[0] = plan.weighting(*store.person_totals())
    if plan.every is not None:
        np.sqrt(stand_for(store, plan.every), out=weights[1])
    return weights


def score_persons(store: AnswerStore, plan: ScorePlan, weights: FloatArray) -> Any:
    """Return the corrected scores of all persons, ``[person, kept item]``, as a CSR array."""
    from scipy.sparse import csr_array, vstack

    chunks = [csr_array(chunk) for chunk in score_chunks(store, plan, weights)]
    return vstack(chunks, format="csr") if chunks else csr_array((0, len(plan.columns)))


def score_chunks(store: AnswerStore, plan: ScorePlan, weights: FloatArray) -> Any:
    """Yield the corrected scores of some persons at a time, ``[person, kept item]``.

    Scores of bit planes are arrays. Those of sparse rows take little memory, so they come at once
    as a CSR array.
    """
    if isinstance(store, SparseRows):
        yield score_rows(store, plan, weights)
        return
    planes = cast(BitPlanes, store)
    words = range(0, planes.right.shape[0] * planes.right.shape[2], chunk_words(planes, plan))
    for chunk in score_planes(planes, plan, words, weights):
        yield chunk.T


def chunk_words(planes: BitPlanes, plan: ScorePlan) -> int:
    """Words of 64 persons to score together: a divisor of the words in a block, if several."""
    limit = max(CHUNK_WORDS, CHUNK_CELLS // (64 * len(plan.columns)))
    blocks, _, words = planes.right.shape
    if blocks == 1:
        return int(min(limit, words))
    return next(size for size in range(min(limit, words), 0, -1) if words % size == 0)


def score_planes(
    planes: BitPlanes, plan: ScorePlan, words: range, weights: FloatArray
) -> Iterator[FloatArray]:
    """Yield ``[kept item, person]`` for each chunk of persons that starts at one of ``words``.

    All is held item by item, as the bit planes are. With S the residuals, a right item i gains
    ``sum_j S[i, j]`` over the wrong items j, and a wrong item loses the same over the right
    ones: two matrix products. A third gives the leverage.
    """
    tables = _Tables(plan)
    everything = len(plan.columns) == planes.n_items
    is_simple = plan.is_complete and plan.scoring.is_complementary and len(tables.spans) == 1
    rows: slice | IndexArray = slice(None) if everything else plan.columns
    for first in words:
        block, start = divmod(first, planes.right.shape[2])
        span = slice(start, start + words.step)
        person = 64 * first
        persons = min(64 * words.step, planes.n_persons - person)
        if persons <= 0:
            return
        right = _unpack(planes.right[block, rows, span], persons, tables.number)
        some = weights[:, person : person + persons]
        if is_simple:
            yield _score_complete(right, tables, some)
            continue
        wrong = _unpack(planes.wrong[block, rows, span], persons, tables.number)
        yield _score_chunk(right, wrong, tables, some)


class _Tables:
    """Residuals and leverages of pairs, for all items at once or (many items) some rows."""

    def __init__(self, plan: ScorePlan) -> None:
        self._plan = plan
        m = len(plan.difficulty)
        size = m if m <= TABLE_ITEMS else TABLE_ROWS
        self.number = np.float32 if plan.is_coarse else np.float64
        self.has_leverage = plan.has_leverage
        self.spans = [slice(start, start + size) for start in range(0, m, size)]
        self._all: dict[str, FloatArray] = {}

    def gained(self, span: slice) -> FloatArray:
        """Return what these items gain, if right, from wrong ones."""
        return self._find("gained", span)

    def lost(self, span: slice) -> FloatArray:
        """Return what these items lose, if wrong, to right ones."""
        # Of all pairs it is what the others gain.
        return self._find("gained", span).T if len(self.spans) == 1 else self._make("lost", span)

    def levered(self, span: slice) -> FloatArray:
        """Return the leverage of right ones, if these items are wrong."""
        return self._find("levered", span)

    def _find(self, kind: str, span: slice) -> FloatArray:
        if len(self.spans) > 1:
            return self._make(kind, span)
        if kind not in self._all:
            self._all[kind] = self._make(kind, span)
        return self._all[kind]

    def _make(self, kind: str, span: slice) -> FloatArray:
        scoring, b = self._plan.scoring, self._plan.difficulty
        row, column = b[span, None], b[None, :]
        if kind != "levered":
            pair = (row, column) if kind == "gained" else (column, row)
            table = np.array(scoring.residual(*pair))
        else:
            table, resistance = scoring.curvature(column, row), self._plan.resistance
            lone = resistance.ndim == 1
            table *= resistance[span, None] + resistance if lone else resistance[span]
        if self._plan.item_of is not None:
            table *= self._plan.item_of[span, None] != self._plan.item_of
        return table.astype(self.number, copy=False)


def _score_chunk(
    right: FloatArray, wrong: FloatArray, tables: _Tables, weights: FloatArray
) -> FloatArray:
    weight, stands = weights
    levered = tables.has_leverage and bool((stands == 1).any())
    scores, trace = np.empty_like(right), np.zeros(right.shape[1])
    for span in tables.spans:
        part = np.matmul(tables.gained(span), wrong, out=scores[span])
        part *= right[span]
        lost = tables.lost(span) @ right
        lost *= wrong[span]
        part -= lost
        if levered:
            pulled = tables.levered(span) @ right
            pulled *= wrong[span]
            trace += pulled.sum(axis=0)
    right += wrong
    trace[stands > 1] = 0.0
    factor = weight * stands * _correction(weight * trace, right.sum(axis=0))
    scores *= factor.astype(tables.number)
    return scores


def _score_complete(right: FloatArray, tables: _Tables, weights: FloatArray) -> FloatArray:
    """Score persons who answered everything, where residuals of both directions add up to one.

    With S the residuals, r who is right, R how many are and c the row sums of S, a right item gains
    ``c - S r`` and a wrong one loses ``R - S r``: one product instead of two.
    """
    weight, stands = weights
    gained = tables.gained(slice(None))
    total = right.sum(axis=0)
    expected = gained @ right
    scores = expected - total
    expected += scores
    expected -= gained.sum(axis=1)[:, None]
    expected *= right
    scores -= expected
    factor = weight * stands
    if tables.has_leverage and (stands == 1).any():
        levered = tables.levered(slice(None))
        pulled = np.subtract(levered.sum(axis=1)[:, None], levered @ right, out=expected)
        pulled *= right
        trace = np.where(stands > 1, 0.0, pulled.sum(axis=0))
        factor *= _correction(weight * trace, np.full(len(trace), float(len(right))))
    if (factor != 1.0).any():
        scores *= factor.astype(tables.number)
    return np.asarray(scores)


def _unpack(plane: UInt64Array, persons: int, number: type[np.floating[Any]]) -> FloatArray:
    """Turn ``uint64[item, word]`` into 0 and 1, ``[item, person]``."""
    octets = np.ascontiguousarray(plane).view(np.uint8)
    bits = np.unpackbits(octets, axis=1, count=persons, bitorder="little")
    return bits.astype(number)


def score_rows(store: SparseRows, plan: ScorePlan, weights: FloatArray) -> Any:
    """Score persons held as sparse rows, all persons with as many answers together."""
    from scipy.sparse import csr_array

    indptr, item, right = restrict_rows(store, plan.columns)
    values = np.zeros(len(item))
    answered = np.diff(indptr)
    for length in np.unique(answered[answered > 1]):
        same = np.flatnonzero(answered == length)
        size = max(1, CHUNK_CELLS // int(length) ** 2)
        for start in range(0, len(same), size):
            persons = same[start : start + size]
            cell = indptr[persons, None] + np.arange(length)
            values[cell] = _score_group(item[cell], right[cell], weights[:, persons], plan)
    return csr_array((values, item, indptr), shape=(len(answered), len(plan.columns)))


def _score_group(
    item: IndexArray, right: npt.NDArray[np.bool_], weights: FloatArray, plan: ScorePlan
) -> FloatArray:
    """Scores of persons with the same number of answers, ``[person, answer]``."""
    b = plan.difficulty[item]
    first, second = b[:, :, None], b[:, None, :]
    discordant = right[:, :, None] & ~right[:, None, :]
    if plan.item_of is not None:
        owner = plan.item_of[item]
        discordant &= owner[:, :, None] != owner[:, None, :]
    surprise = np.where(discordant, plan.scoring.residual(first, second), 0.0)
    scores = surprise.sum(axis=2) - surprise.sum(axis=1)
    if plan.resistance.ndim == 1:
        item_resistance = plan.resistance[item]
        resistance = item_resistance[:, :, None] + item_resistance[:, None, :]
    else:
        resistance = plan.resistance[item[:, :, None], item[:, None, :]]
    pull = np.where(discordant, plan.scoring.curvature(first, second) * resistance, 0.0)
    weight, stands = weights
    answered = np.full(len(item), float(item.shape[1]))
    is_free = (stands > 1) | (not plan.has_leverage)
    trace = np.where(is_free, 0.0, pull.sum(axis=(1, 2)))
    correction = _correction(weight * trace, answered)
    return np.asarray(scores * (weight * stands * correction)[:, None])


def restrict_rows(
    store: SparseRows, columns: IndexArray
) -> tuple[Int64Array, IndexArray, npt.NDArray[np.bool_]]:
    """Rows with the kept items only, renumbered."""
    position = np.full(store.n_items, -1, dtype=np.intp)
    position[columns] = np.arange(len(columns))
    item = position[store.item]
    inside = item >= 0
    running = np.concatenate([[0], np.cumsum(inside)])
    indptr = running[store.indptr].astype(np.int64)
    return indptr, item[inside], store.right[inside]


def _correction(trace: FloatArray, answered: FloatArray) -> FloatArray:
    """Return one over (1 - leverage), the small-sample correction of a person's score.

    The trace of a person's share of the Laplacian times ``pinv(L)``, spread over the
    ``answered - 1`` directions the person informs, says how much the estimate bends towards
    this person. Dividing by one minus it approximates leaving the person out (a jackknife).
    """
    leverage = trace / np.maximum(answered - 1.0, 1.0)
    return np.asarray(1.0 / (1.0 - np.minimum(leverage, MAX_LEVERAGE)))
