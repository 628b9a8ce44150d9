"""Standard errors of estimates from pairs: random signs, folds, sandwich.

Scores: how far each person's answers pull each difficulty from its estimate.

In: answers, difficulties and the estimator's contribution of one pair. Out: one number per
person and item, corrected for leverage. Confidential side: it reads every person.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from discreet.answers.protocol import stand_for
from discreet.counts.planes import AnswerStore, BitPlanes, SparseRows, restrict_rows
from discreet.models.weak_links import WeakLinks, find_linking
from discreet.types import FloatArray, IndexArray, Int64Array, UInt64Array

#: Cells of a chunk of persons: the few arrays of 0.5 MB stay in cache.
CHUNK_CELLS = 64_000
#: At least 512 persons in a chunk, so that with many items the matrix products stay efficient.
CHUNK_WORDS = 8
#: Largest error of thin factors, where scores are in single or in double precision.
SINGLE_TOLERANCE, DOUBLE_TOLERANCE = 1e-9, 1e-15
#: With so many times as many items as columns in a factor, four products with factors take less
#: time than the one that complete answers need.
THIN = 6
#: Takers of an item whose scores are enough: a standard error has then a relative error of about
#: 1 / sqrt(2 ENOUGH) = 0.5%.
ENOUGH = 20_000
#: One of fewer than so many is not drawn: finding them would take as long as scoring all.
LEAST_SAVED = 3
#: Persons from which on the last digits of a score do not matter: products are summed in single
#: precision, twice as fast, if no item's variance is more than LOOSE times what its own comparisons
#: make it.
COARSE = 10_000
LOOSE = 4.0
#: Leverage, on average 1 / takers of an item, that is left out: standard errors become smaller by
#: about this part of themselves at most (5e-5 with 20,000 persons and 50 items).
SMALL_LEVERAGE = 3e-4
#: Leverage up to which it is found in single precision: that changes scores by less than 1e-10.
SINGLE_LEVERAGE = 1e-3
#: A person who is nearly the only link of an item would otherwise get an unbounded factor.
MAX_LEVERAGE = 0.5


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Standard errors of the kept items, their covariance where it is small enough, notes.

    ``degrees`` of freedom of the standard errors; None where they count as known.
    ``se_method`` says in a sentence how they were computed. ``locations`` is the same for the
    locations of items with steps, where the covariance of their nodes is not there to find it
    from. ``products`` are the sums over persons of products of two scores, with few items.
    """

    se: FloatArray
    covariance: FloatArray | None
    notes: tuple[str, ...] = ()
    degrees: int | None = None
    se_method: str = ""
    locations: Uncertainty | None = None
    products: FloatArray | None = None


#: Two matrices whose product is a table of all pairs.
Factors = tuple[FloatArray, FloatArray]
Contribution = Callable[[FloatArray, FloatArray], FloatArray]


class PairContribution(Protocol):
    """An estimator's contribution of one pair: first item right, second wrong."""

    @property
    def is_complementary(self) -> bool:
        """Whether residuals of a pair, one way round and the other, add up to one."""
        ...

    def residual(self, right: FloatArray, wrong: FloatArray) -> FloatArray: ...
    def curvature(self, right: FloatArray, wrong: FloatArray) -> FloatArray: ...

    def factor(
        self, contribution: Contribution, difficulty: FloatArray, tolerance: float
    ) -> Factors | None:
        """Return thin factors of the residuals or curvatures of all pairs, or None."""
        ...


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
    >>> plan_draw(np.array([59_999, 60_000, 300_000, 7]), np.arange(3), np.ones(3)).every.tolist()
    [1, 3, 15, 15]
    >>> plan_draw(np.array([300_000, 300_000]), np.arange(2), np.array([50.0, 50.0])) is None
    True
    """
    enough = np.floor(takers[columns] / (ENOUGH * np.maximum(slack, 1.0))).astype(np.int64)
    enough[enough < LEAST_SAVED] = 1
    every = np.full(len(takers), int(enough.max(initial=1)))
    every[columns] = enough
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
    leverage
        About the largest leverage of a person.
    links
        The persons who hold weak links: not scored, the model speaks for them
        (:func:`model_links`).
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
    leverage: float = 1.0
    links: WeakLinks | None = None

    @property
    def has_leverage(self) -> bool:
        """Whether scores are corrected for leverage."""
        return self.leverage > SMALL_LEVERAGE

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
    if plan.links is not None:
        weights[0, find_linking(store, plan.columns, plan.links.parts)[0]] = 0.0
    return weights


def model_links(plan: ScorePlan, links: WeakLinks) -> Any:
    """Return what stands for the scores of persons who hold weak links: rows, ``[pair, node]``.

    The sum of the rows' products is what the model says of that of the scores. A pair's residual
    has the variance ``curvature * (residual + residual the other way round)``. If all k items a
    person answered are equally difficult, the variance of the sum over the person's pairs is k / 2
    times the sum of variances, since pairs depend on each other; else it is smaller.
    """
    from scipy.sparse import csr_array

    store, b, scoring = links.store, plan.difficulty, plan.scoring
    weight, answered = (
        weigh_scores(store, replace(plan, links=None, draw=None))[0],
        store.person_totals()[0],
    )
    cells = store.nodes.rows(0, store.n_persons)[:, plan.columns]
    rights = csr_array((cells == 1).T * (weight**2 * answered / 2))
    pairs = (rights @ csr_array((cells == 0).astype(np.float64))).tocoo()
    first, second = pairs.coords
    both = scoring.residual(b[first], b[second]) + scoring.residual(b[second], b[first])
    variance = pairs.data * scoring.curvature(b[first], b[second]) * both
    if plan.item_of is not None:
        variance[plan.item_of[first] == plan.item_of[second]] = 0.0
    root, row = np.sqrt(variance), np.tile(np.arange(len(first)), 2)
    values = np.append(root, -root), (row, np.append(first, second))
    return csr_array(values, shape=(len(first), len(b)))


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

    All is held item by item, as the bit planes are. A chunk takes the memory of the one before.
    """
    scorer = _choose_scorer(plan)
    everything = len(plan.columns) == planes.n_items
    rows: slice | IndexArray = slice(None) if everything else plan.columns
    for first in words:
        block, start = divmod(first, planes.right.shape[2])
        span = slice(start, start + words.step)
        person = 64 * first
        persons = min(64 * words.step, planes.n_persons - person)
        if persons <= 0:
            return
        some = weights[:, person : person + persons]
        yield scorer.score(planes.right[block, rows, span], planes.wrong[block, rows, span], some)


def _choose_scorer(plan: ScorePlan) -> _Scorer:
    tolerance = SINGLE_TOLERANCE if plan.is_coarse else DOUBLE_TOLERANCE
    factors = plan.scoring.factor(plan.scoring.residual, plan.difficulty, tolerance)
    is_thin = factors is not None and THIN * factors[0].shape[1] <= len(plan.difficulty)
    if plan.is_complete and plan.scoring.is_complementary and not is_thin:
        return _CompleteScorer(plan, None)
    return _Scorer(plan, factors)


class _Scorer:
    """Scores of a chunk of persons.

    With S the residuals, a right item i gains ``sum_j S[i, j]`` over the wrong items j, and a wrong
    item loses the same over the right ones: two products with a table of all pairs or, where there
    are many items, with two thin factors of it.
    """

    def __init__(self, plan: ScorePlan, factors: Factors | None) -> None:
        self._plan = plan
        self._number = np.float32 if plan.is_coarse else np.float64
        single = plan.is_coarse or plan.leverage <= SINGLE_LEVERAGE
        self._lever_number = np.float32 if single else np.float64
        self._memory: dict[str, FloatArray] = {}
        residual = plan.scoring.residual
        if factors is None:
            table = self._pair_up(residual)
            self._gain, self._loss = self._round(table), self._round(table.T)
            return
        (left, right), within = factors, self._pair_next(residual)
        # The last column is for a row of ones: what an item's own next step would contribute.
        self._gain = self._round(right, np.column_stack([left, -within]))
        self._loss = self._round(left.T, np.column_stack([right.T, -np.roll(within, 1)]))

    def _round(self, *tables: FloatArray, number: Any = None) -> tuple[FloatArray, ...]:
        number = number or self._number
        return tuple(np.ascontiguousarray(table, dtype=number) for table in tables)

    def _pair_up(self, contribution: Contribution) -> FloatArray:
        """Return the table of all pairs; those within an item count nothing."""
        b, item_of = self._plan.difficulty, self._plan.item_of
        table = np.array(contribution(b[:, None], b[None, :]))
        if item_of is not None:
            table *= item_of[:, None] != item_of
        return table

    def _pair_next(self, contribution: Contribution) -> FloatArray:
        """Return the contribution of each node and the next step of its item, 0 without one.

        Who is right at a node is wrong at the next step, so that only these pairs occur.
        """
        b, node, item_of = self._plan.difficulty, self._plan.columns, self._plan.item_of
        within = np.zeros(len(b))
        if item_of is not None and len(b) > 1:
            follows = (np.diff(item_of) == 0) & (np.diff(node) == 1)
            within[:-1][follows] = contribution(b[:-1][follows], b[1:][follows])
        return within

    @cached_property
    def _levered(self) -> tuple[FloatArray, ...]:
        """The table of leverages; or two factors, what nodes add to them, and own pairs."""
        plan, resistance = self._plan, self._plan.resistance
        lone = resistance.ndim == 1
        curvature, factors = plan.scoring.curvature, None
        if lone:
            factors = plan.scoring.factor(curvature, plan.difficulty, DOUBLE_TOLERANCE)
        if factors is None:
            table = self._pair_up(curvature)
            table *= resistance[:, None] + resistance if lone else resistance
            return self._round(table, number=self._lever_number)
        within = self._pair_next(curvature) * (resistance + np.roll(resistance, -1))
        tables = factors[0].T, factors[1], resistance[:, None], within
        return self._round(*tables, number=self._lever_number)

    def score(self, right: UInt64Array, wrong: UInt64Array, weights: FloatArray) -> FloatArray:
        """Return corrected scores, ``[item, person]``."""
        is_right, is_wrong = (
            self._reserve(name, len(right), weights.shape[1]) for name in ("right", "wrong")
        )
        is_right[:], is_wrong[:] = _unpack(right, weights), _unpack(wrong, weights)
        scores = self._multiply("gain", self._gain, is_wrong)
        scores *= is_right
        lost = self._multiply("loss", self._loss, is_right)
        lost *= is_wrong
        scores -= lost
        return self._correct(scores, weights, is_right, is_wrong)

    def _correct(self, scores: FloatArray, weights: FloatArray, *answers: FloatArray) -> FloatArray:
        """Multiply scores by weights, and correct them for leverage."""
        weight, stands = weights
        factor = weight * stands
        if self._plan.has_leverage and (stands == 1).any():
            trace, answered = self._find_trace(*self._round(*answers, number=self._lever_number))
            factor *= _correction(weight * np.where(stands > 1, 0.0, trace), answered)
        if (factor != 1.0).any():
            scores *= factor.astype(self._number)
        return scores

    def _find_trace(self, *answers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the sum of the leverages of everybody's pairs, and how much was answered."""
        is_right, is_wrong = answers
        answered = is_right.sum(axis=0) + is_wrong.sum(axis=0)
        if len(self._levered) == 1:
            return multiply_columns(self._levered[0].T @ is_right, is_wrong), answered
        left, right, resistance, within = self._levered
        of_wrong = multiply_columns(left @ is_right, right @ (resistance * is_wrong))
        of_right = multiply_columns(left @ (resistance * is_right), right @ is_wrong)
        return of_wrong + of_right - within @ is_right, answered

    def _multiply(self, name: str, tables: tuple[FloatArray, ...], value: FloatArray) -> FloatArray:
        """Multiply by a table; or by a factor, with a row of ones, and then by the other."""
        if len(tables) == 2:
            thin = self._reserve(f"thin {name}", len(tables[0]) + 1, value.shape[1])
            np.matmul(tables[0], value, out=thin[:-1])
            thin[-1] = 1.0
            value = thin
        product = self._reserve(name, len(tables[-1]), value.shape[1])
        return np.matmul(tables[-1], value, out=product)

    def _reserve(self, name: str, rows: int, persons: int) -> FloatArray:
        """Return memory that is taken once, for the first and largest chunk."""
        if name not in self._memory:
            self._memory[name] = np.empty((rows, persons), dtype=self._number)
        return self._memory[name][:, :persons]


class _CompleteScorer(_Scorer):
    """The same where everybody answered everything, and residuals of a pair add up to one.

    With h = 1/2 for a right answer and -1/2 for a wrong one, R right answers and c the row sums of
    S, scores are ``h (R - 2 S h) + (c - R) / 2``. One product with h above a row of ones gives
    ``R - 2 S h + 2 c h`` above R / 2; times h, whose square is 1/4, the last term is c / 2.
    """

    def __init__(self, plan: ScorePlan, factors: Factors | None) -> None:
        super().__init__(plan, factors)
        m = len(plan.difficulty)
        residual, count_right = self._gain[0].astype(np.float64), np.append(np.ones(m), m / 2)
        table = np.tile(count_right, (m + 1, 1))
        table[:m, :m] += 2 * (np.diag(residual.sum(axis=1)) - residual)
        table[m] /= 2
        self._gain = self._round(table)

    def score(self, right: UInt64Array, wrong: UInt64Array, weights: FloatArray) -> FloatArray:  # noqa: ARG002 - not right is wrong
        """Return corrected scores, ``[item, person]``."""
        m = len(right)
        value = self._reserve("value", m + 1, weights.shape[1])
        np.subtract(_unpack(right, weights), 0.5, out=value[:m], dtype=self._number)
        value[m] = 1.0
        product = self._multiply("gain", self._gain, value)
        product[:m] *= value[:m]
        product[:m] -= product[m]
        return self._correct(product[:m], weights, value[:m])

    def _find_trace(self, *answers: FloatArray) -> tuple[FloatArray, FloatArray]:
        (half,), (levered,) = answers, self._levered
        trace = levered.sum() / 4 - multiply_columns(levered @ half, half)
        return trace, np.full(len(trace), float(len(half)))


def _unpack(plane: UInt64Array, weights: FloatArray) -> npt.NDArray[np.uint8]:
    """Turn ``uint64[item, word]`` into 0 and 1, ``[item, person]``, of persons with weights."""
    octets = np.ascontiguousarray(plane).view(np.uint8)
    return np.unpackbits(octets, axis=1, count=weights.shape[1], bitorder="little")


def multiply_columns(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the inner product of each column with the same column of another matrix."""
    return np.asarray(np.einsum("ij,ij->j", left, right))


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


def _correction(trace: FloatArray, answered: FloatArray) -> FloatArray:
    """Return one over (1 - leverage), the small-sample correction of a person's score.

    The trace of a person's share of the Laplacian times ``pinv(L)``, spread over the
    ``answered - 1`` directions the person informs, says how much the estimate bends towards
    this person. Dividing by one minus it approximates leaving the person out (a jackknife).
    """
    leverage = trace / np.maximum(answered - 1.0, 1.0)
    return np.asarray(1.0 / (1.0 - np.minimum(leverage, MAX_LEVERAGE)))
