"""Rankings with confidence: which items are in the top K, and how sure that is.

In: an estimate, confidential or released. Out: a :class:`Ranking`, which may be shown to whom the
estimate may be shown. No answers are needed.

All differences between two items are bounded at once: with probability ``level`` every true
difference lies within ``quantile`` standard errors of the estimated one. An item is surely in
the top K when it is surely harder than all but K - 1 of the others; it is possibly in when
fewer than K items are surely harder. Both statements then hold together, for all items.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from discreet.errors import BadUsage
from discreet.markup import brief_repr
from discreet.results.estimate import Estimate, check_level, draw_errors, two_sided_quantile
from discreet.types import FloatArray

Errors = Callable[[slice], FloatArray]
"""Standard errors of the differences between some items and all, a row an item."""

BLOCK_CELLS = 4_000_000
"""Differences looked at together: 32 MB."""
EXACT_ITEMS = 100
"""Items up to which the quantile comes from draws; above, from Bonferroni's inequality, which
for so many comparisons is only a few percent wider and takes no time."""


@dataclass(frozen=True)
class Ranking:
    """The top K items by estimate, and what is sure about them.

    Attributes
    ----------
    top
        The K hardest (or easiest) items by estimate, the most extreme first. Equal estimates
        keep the order of the input.
    surely_in, possibly_in
        Items that are in the true top K with simultaneous confidence; and a set that contains
        the true top K with the same confidence. In the order of the estimates.
    gap
        Estimated difference, in logits, between the last item in and the first item out; NaN
        where one of the two does not exist.
    gap_interval
        Interval of the difference between those two items, simultaneous over all pairs.
    tied
        Items left out of ``top`` whose estimate equals that of the last item in.
    excluded
        Items without a number; nothing is said about them.
    level, easiest, quantile
        The confidence, the direction, and the half-width of the intervals in standard errors.
    """

    top: tuple[str, ...]
    surely_in: tuple[str, ...]
    possibly_in: tuple[str, ...]
    gap: float
    gap_interval: tuple[float, float]
    tied: tuple[str, ...]
    excluded: tuple[str, ...]
    level: float
    easiest: bool
    quantile: float

    __repr__ = brief_repr


def rank(
    estimate: Estimate,
    top: int,
    *,
    easiest: bool = False,
    level: float = 0.95,
    rng: np.random.Generator | None = None,
) -> Ranking:
    """Find the hardest items and say how sure that is.

    Parameters
    ----------
    estimate
        From :func:`discreet.fit` or a release. Without its covariance the errors of two items
        are taken as independent. Without standard errors nothing is sure.
    top
        How many items, from 0 to the number of items with a difficulty.
    easiest
        Rank from the easiest instead of from the hardest.
    level
        Probability that all statements hold together.
    rng
        Source of the draws for the simultaneous quantile; by default always the same one.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.models.calibrate import fit
    >>> answers = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1], [1, 0, 1], [0, 0, 1]] * 40)
    >>> rank(fit(answers), top=1).top
    ('1',)
    """
    level = check_level(level)
    where = np.flatnonzero(estimate.estimated)
    top = _check_top(top, len(where))
    value = estimate.difficulty[where] * (-1.0 if easiest else 1.0)
    order = np.argsort(-value, kind="stable")
    errors = partial(_difference_errors, estimate, where)
    quantile = _quantile(estimate, errors, level, rng)
    surely, possibly = _sure_sets(value, errors, quantile, top)
    names = [estimate.items[i] for i in where]
    gap, half = _gap(value, order, errors, top)
    half *= quantile
    return Ranking(
        top=tuple(names[i] for i in order[:top]),
        surely_in=tuple(names[i] for i in order if surely[i]),
        possibly_in=tuple(names[i] for i in order if possibly[i]),
        gap=gap,
        gap_interval=(gap - half, gap + half),
        tied=tuple(names[i] for i in order[top:] if top and value[i] == value[order[top - 1]]),
        excluded=tuple(np.array(estimate.items, dtype=object)[~estimate.estimated]),
        level=level,
        easiest=easiest,
        quantile=quantile,
    )


def _check_top(top: int, available: int) -> int:
    try:
        top = operator.index(top)
    except TypeError as error:
        raise BadUsage(f"top must be a whole number, found {top!r}") from error
    if not 0 <= top <= available:
        raise BadUsage(
            f"top must lie between 0 and {available}, the number of items with a difficulty, "
            f"found {top}"
        )
    return top


def _difference_errors(estimate: Estimate, where: npt.NDArray[np.intp], rows: slice) -> FloatArray:
    """Return the standard error of the differences between some items and all.

    Infinite where it is unknown.
    """
    m = len(where)
    if estimate.covariance is not None:
        own = estimate.covariance.diagonal()
        variance = own[rows, None] + own[None, :] - 2 * estimate.covariance[rows]
    else:
        # Difficulties with mean zero are slightly negatively correlated: m / (m - 1).
        own = estimate.se[where] ** 2
        variance = (own[rows, None] + own[None, :]) * (m / max(m - 1, 1))
    error = np.sqrt(np.maximum(variance, 0.0))
    return np.where(np.isnan(error), np.inf, error)


def _quantile(
    estimate: Estimate, errors: Errors, level: float, rng: np.random.Generator | None
) -> float:
    """Return the quantile of the largest standardised error of a difference."""
    m = int(estimate.estimated.sum())
    pairs = m * (m - 1) / 2
    if estimate.covariance is None or not 2 <= m <= EXACT_ITEMS:
        return two_sided_quantile((1 - level) / max(pairs, 1))
    first, second = np.triu_indices(m, 1)
    error = errors(slice(None))[first, second]
    scale = 1.0 / np.maximum(error, np.finfo(float).tiny)
    draws = draw_errors(estimate.covariance, rng)
    largest = [
        np.abs((block[:, first] - block[:, second]) * scale).max(axis=1)
        for block in np.array_split(draws, max(1, len(draws) // _block_size(m)))
    ]
    return float(np.quantile(np.concatenate(largest), level))


def _block_size(m: int) -> int:
    """Draws compared together: about 8 MB of pairs."""
    return max(1, 2 * 10**6 // (m * m))


def _sure_sets(
    value: FloatArray, errors: Errors, quantile: float, top: int
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which items are surely, and which possibly, among the ``top`` largest values."""
    m = len(value)
    below, above = np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64)
    # Some items at a time: with many of them a matrix between all would fill the memory.
    size = max(1, BLOCK_CELLS // max(m, 1))
    for start in range(0, m, size):
        rows = slice(start, start + size)
        surely_above = value[rows, None] - value[None, :] > quantile * errors(rows)
        here = np.arange(len(surely_above))
        surely_above[here, start + here] = False
        below[rows] = surely_above.sum(axis=1)
        above += surely_above.sum(axis=0)
    return (below >= m - top) & (top > 0), above < top


def _gap(
    value: FloatArray, order: npt.NDArray[np.intp], errors: Errors, top: int
) -> tuple[float, float]:
    """Return the gap at ``top`` and its standard error."""
    if not 0 < top < len(value):
        return float("nan"), float("nan")
    last, following = int(order[top - 1]), int(order[top])
    error = errors(slice(last, last + 1))[0, following]
    return float(value[last] - value[following]), float(error)
