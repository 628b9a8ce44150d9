"""Look for routing: did a person's earlier answers choose the later items.

In: answers and thresholds. Out: a verdict with its numbers. Pair counts and conditional
likelihood are biased on routed tests (adaptive tests, stages, stopping rules); marginal
likelihood is biased where items were targeted at abilities known beforehand. The order of the
answers is not needed.

Two facts hold for any design in which the items were chosen by something other than the answers,
however sharply they were targeted at the ability:

1. Given the items, the score is a mixture of sums of independent answers, so that its variance
   is at least the mean of the answers' variances, ``sum p (1 - p)``. An adaptive test spoils that:
   which items came says how the score must have been, and little variance is left.
2. On items that everybody answered, the score of any group chosen by its other items has the
   distribution ``gamma_score E(w^score)`` for some mixture of abilities (Cressie and Holland
   1983). A rule that sends on by the score cuts that distribution off.

Violations are evidence of routing; their absence is no proof that there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from discreet.answers.protocol import Answers, Job
from discreet.counts.matrix import Recoding
from discreet.counts.planes import AnswerStore, SparseRows, StepStore, restrict_rows
from discreet.errors import FitWarning, WarningKind
from discreet.models.categories import Recoded
from discreet.results.chances import as_thresholds, category_chances
from discreet.types import FloatArray, IndexArray

#: Persons that are looked at: enough to see what matters, and a few hundredths of a second
#: however many persons there are.
SAMPLE = 2000
FEWEST_PERSONS = 200
#: Of one person; with fewer there is nothing to route by.
FEWEST_ANSWERS = 4
#: Standard errors below 1 that the dispersion must be; a chance of 1e-3 even where it is 1.
ERRORS = 3.0
#: Share of persons who answered an item that counts as answered by everybody.
CORE_SHARE = 0.995
FEWEST_CORE = 3
CORE_LEVEL = 1e-5
GRID = np.linspace(-8.0, 8.0, 65)
ROUNDS, ROUNDS_AT_ONCE = 2000, 50
#: A p-value only rises from round to round; from here on no further rounds are made.
INNOCENT = 0.05
NEWTON_STEPS = 12
#: Logits.
SMALL_STEP = 1e-6


@dataclass(frozen=True)
class Routing:
    """What was found.

    Attributes
    ----------
    dispersion, dispersion_se
        Variance of the score given the items over the least that it can be without routing;
        NaN where it could not be measured.
    core_p_value
        Of the test on items that everybody answered; NaN where there are none.
    """

    dispersion: float
    dispersion_se: float
    core_p_value: float

    @property
    def looks_routed(self) -> bool:
        low = self.dispersion + ERRORS * self.dispersion_se < 1
        return bool(low or self.core_p_value < CORE_LEVEL)

    @property
    def warnings(self) -> tuple[FitWarning, ...]:
        """A sentence for the user, or nothing."""
        if not self.looks_routed:
            return ()
        if self.dispersion + ERRORS * self.dispersion_se < 1:
            evidence = (
                f"given the items that a person got, scores vary only {self.dispersion:.2f} "
                "times as much as they must when answers do not choose items"
            )
        else:
            evidence = (
                "on the items that everybody answered, scores of persons with easier and harder "
                f"other items are cut off (p = {self.core_p_value:.0e})"
            )
        sentence = (
            f"these answers look routed (adaptive test, stages or stopping rule): {evidence}. "
            "Difficulties are then spread too far by this method. Where scores on modules chose "
            "the next one, state the rules (routing=, --routing); else use the method 'marginal'"
        )
        return (FitWarning(WarningKind.ROUTED, sentence),)


UNKNOWN = Routing(np.nan, np.nan, np.nan)


@dataclass(frozen=True, eq=False)
class LookForRouting(Job[Routing]):
    """Look for signs that earlier answers chose later items, in a sample of persons.

    Attributes
    ----------
    columns, thresholds
        Columns with a difficulty, and their thresholds ``[item, step]`` (of one step the
        difficulties), by a method that is right when items were not routed.
    """

    columns: IndexArray
    thresholds: FloatArray
    sample = SAMPLE

    def block(self, store: AnswerStore) -> Routing:
        """Look at these persons."""
        rows = _list_answers(store, self.columns)
        if (np.diff(rows.indptr) >= FEWEST_ANSWERS).sum() < FEWEST_PERSONS:
            return UNKNOWN
        thresholds = as_thresholds(self.thresholds)
        ratio, se = _measure_dispersion(rows, thresholds)
        return Routing(ratio, se, _test_core(rows, thresholds))


def look_for_routing(
    answers: Answers,
    columns: IndexArray,
    thresholds: FloatArray,
    *,
    recoding: Recoding | None = None,
) -> Routing:
    """Look for signs that earlier answers chose later items; see :class:`LookForRouting`.

    ``recoding`` brings answers to the categories of the thresholds, where these are others.
    """
    if not may_be_routed(answers.n_answers, answers.n_persons * len(answers.items)):
        return UNKNOWN
    job = LookForRouting(columns, thresholds)
    routing: Routing = answers.reduce(job if recoding is None else Recoded(job, recoding))
    return routing


def may_be_routed(answers: int, cells: int) -> bool:
    """Say whether enough answers are missing for items to have been chosen."""
    return answers < CORE_SHARE * cells


@dataclass(frozen=True, eq=False)
class _Rows:
    """Answers of some persons on kept items, person after person."""

    indptr: npt.NDArray[np.int64]
    item: IndexArray
    score: npt.NDArray[Any]

    def sums(self, values: npt.NDArray[Any]) -> FloatArray:
        """Add values of answers for each person."""
        running = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
        return np.asarray(running[self.indptr[1:]] - running[self.indptr[:-1]])


def _list_answers(store: AnswerStore, columns: IndexArray) -> _Rows:
    """Return the answers to kept items, person after person."""
    if not isinstance(store, StepStore):
        everybody = cast(SparseRows, store.take(np.arange(store.n_persons)))
        return _Rows(*restrict_rows(everybody, columns))
    codes = store.rows(0, store.n_persons)[:, columns]
    row, item = np.nonzero(codes >= 0)
    lengths = np.bincount(row, minlength=len(codes))
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return _Rows(indptr, item, codes[row, item].astype(np.int64))


def _measure_dispersion(rows: _Rows, thresholds: FloatArray) -> tuple[float, float]:
    """Residual variance of the score given features of the items, over the answers' variances."""
    answered = np.diff(rows.indptr)
    b = np.nanmean(thresholds, axis=1)[rows.item]
    score = rows.sums(rows.score)
    variance = _score_variance(rows, thresholds, answered, score)
    use = (answered >= FEWEST_ANSWERS) & (variance > 0)
    features = _describe_items(rows, b, answered)[use]
    weight = 1 / np.sqrt(variance[use])
    design = features * weight[:, None]
    coefficients, _, rank, _ = np.linalg.lstsq(design, score[use] * weight, rcond=None)
    squares = (score[use] * weight - design @ coefficients) ** 2
    freedom = max(len(squares) - int(rank), 1)
    return float(squares.sum() / freedom), float(squares.std() / np.sqrt(freedom))


def _score_variance(
    rows: _Rows, thresholds: FloatArray, answered: npt.NDArray[np.int64], score: FloatArray
) -> FloatArray:
    """Sum of the answers' variances at an ability that half a point each way keeps finite."""
    highest = rows.sums((~np.isnan(thresholds)).sum(axis=1)[rows.item])
    target = (score + 0.5) * highest / (highest + 1.0)
    # Category k is as likely as exp(k ability - cost), if it exists.
    cost = np.nan_to_num(np.cumsum(thresholds, axis=1), nan=np.inf).T[:, rows.item]
    middle = rows.sums(np.nanmean(thresholds, axis=1)[rows.item]) / np.maximum(answered, 1)
    theta = middle + np.log((target + 1e-9) / (highest - target + 1e-9))
    spread = np.ones(len(answered))
    for _ in range(NEWTON_STEPS):
        mean, variance = _find_moments(np.repeat(theta, answered), cost)
        spread = np.maximum(rows.sums(variance), 1e-3)
        move = np.clip((target - rows.sums(mean)) / spread, -1.0, 1.0)
        theta += move
        if np.abs(move).max(initial=0.0) < SMALL_STEP:
            break
    return np.where(answered > 0, spread, 0.0)


def _find_moments(ability: FloatArray, cost: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of every answer; the cost is ``[category from 1, answer]``."""
    if len(cost) == 1:  # three times as fast
        chance = expit(ability - cost[0])
        return chance, chance * (1 - chance)
    category = np.arange(len(cost) + 1.0)
    weight = category[:, None] * ability
    weight[1:] -= cost
    shares = np.exp(weight - weight.max(axis=0))
    shares /= shares.sum(axis=0)
    mean = category @ shares
    return mean, category**2 @ shares - mean**2


def _describe_items(rows: _Rows, b: FloatArray, answered: npt.NDArray[np.int64]) -> FloatArray:
    """Features of the set of items of each person: number, and where their difficulties lie."""
    safe = np.maximum(answered, 1)
    mean = rows.sums(b) / safe
    width = np.sqrt(np.maximum(rows.sums(b**2) / safe - mean**2, 0.0))
    some = answered > 0
    low, high = np.zeros(len(answered)), np.zeros(len(answered))
    starts = rows.indptr[:-1][some]
    low[some], high[some] = np.minimum.reduceat(b, starts), np.maximum.reduceat(b, starts)
    bends = mean**2, mean**3, low * mean, high * mean
    return np.column_stack([np.ones(len(answered)), answered, mean, width, low, high, *bends])


def _test_core(rows: _Rows, thresholds: FloatArray) -> float:
    """Test the scores on items that everybody answered, by how hard the other items are."""
    n, difficulty = len(rows.indptr) - 1, np.nanmean(thresholds, axis=1)
    total = np.bincount(rows.item, minlength=len(difficulty))
    core = total >= CORE_SHARE * n
    if core.sum() < FEWEST_CORE:
        return float("nan")
    inside = core[rows.item]
    full = rows.sums(inside) == core.sum()
    others = rows.sums(~inside)
    score = rows.sums(inside * rows.score).astype(np.int64)
    highest = int((~np.isnan(thresholds[core])).sum())
    harder = rows.sums(np.where(inside, 0.0, difficulty[rows.item])) / np.maximum(others, 1)
    # Three groups: no other items, easier and harder ones than the median.
    middle = float(np.median(harder[others > 0])) if (others > 0).any() else 0.0
    group = np.where(others == 0, 0, np.where(harder > middle, 2, 1))
    p_values = [
        _test_mixture(np.bincount(score[chosen], minlength=highest + 1), thresholds[core])
        for g in range(3)
        if (chosen := full & (group == g)).sum() >= FEWEST_PERSONS // 2
    ]
    return min(1.0, min(p_values) * len(p_values)) if p_values else float("nan")


def _test_mixture(counts: npt.NDArray[np.int64], thresholds: FloatArray) -> float:
    """Likelihood ratio of the best mixture of abilities against free score frequencies."""
    from scipy.special import chdtrc

    theta = GRID + np.nanmean(thresholds, axis=1).mean()
    # Distribution of the score of independent answers, ``[ability, score]``.
    # ``chance`` is that of every category, ``[ability, item, category]``.
    chance = category_chances(theta, thresholds)
    n_abilities, n_items, n_categories = chance.shape
    total = np.zeros((n_abilities, n_items * (n_categories - 1) + 1))
    total[:, 0] = 1.0
    for item in range(n_items):
        width = item * (n_categories - 1) + 1
        before, total[:, :width] = total[:, :width].copy(), 0.0
        for category in range(n_categories):
            total[:, category : category + width] += before * chance[:, item, category, None]
    table = total[:, : len(counts)]
    # Far ends, where everybody has everything wrong or right.
    ends = np.zeros((2, len(counts)))
    ends[0, 0] = ends[1, -1] = 1.0
    table = np.concatenate([table, ends])
    share = counts / counts.sum()
    weights = np.full(len(table), 1 / len(table))
    # The likelihood sees observed scores only; of the others just the number matters.
    observed = counts > 0
    table, share = np.ascontiguousarray(table[:, observed]), share[observed]
    for _ in range(ROUNDS // ROUNDS_AT_ONCE):
        for _ in range(ROUNDS_AT_ONCE):
            weights = weights * (table @ (share / (weights @ table)))
        statistic = 2 * float((counts[observed] * np.log(share / (weights @ table))).sum())
        # At most as many free frequencies as scores less one: conservative.
        p_value = float(chdtrc(len(counts) - 1, max(statistic, 0.0)))
        if p_value >= INNOCENT:
            break
    return p_value
