"""Pairs of items that depend on each other: residuals that share more than chance makes them share.

In: residual correlations, and where they lie when the model holds. Out: :class:`Dependence`, the
largest pairs, and how many there are. Confidential.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.items.cutoffs import FEW_TOGETHER, FitCutoffs
from discreet.items.residuals import ResidualCorrelations
from discreet.results.estimate import two_sided_quantile
from discreet.results.limits import DEPENDENT, DEPENDENT_NEGLIGIBLE
from discreet.schema import Count, Finite
from discreet.types import FloatArray, Int64Array

#: Pairs with the largest residual correlations that are kept.
MOST_KEPT = 50


@dataclass(frozen=True)
class Dependence:
    """Which pairs of items depend on each other. Confidential.

    Attributes
    ----------
    pairs
        Pairs whose residual correlation lies above the mean one by more than chance (5% over all
        statistics together): item, other, how far above, persons. The largest, and those first.
    within
        Per item, in how many such pairs it is that lie above by more than matters. All of them
        count, also those that are not among the largest.
    """

    pairs: tuple[tuple[str, str, Finite, Count], ...]
    within: tuple[Count, ...]

    @property
    def count(self) -> int:
        """How many pairs depend on each other by more than matters."""
        return sum(self.within) // 2


def find_dependence(
    residuals: ResidualCorrelations, cutoffs: FitCutoffs | None, items: Sequence[str]
) -> Dependence:
    """Return the dependent pairs, and in how many of them each of these items is."""
    first, second = np.triu_indices(len(residuals.items), 1)
    excess = residuals.q3[first, second] - residuals.mean
    persons = residuals.together[first, second]
    limit, negligible = _limit_pairs(residuals, cutoffs, persons)
    with np.errstate(invalid="ignore"):
        clear = np.flatnonzero((persons >= FEW_TOGETHER) & (excess > limit[first, second]))
    best = clear[np.argsort(-excess[clear], kind="stable")][:MOST_KEPT]
    large = clear[excess[clear] > negligible]
    both = np.concatenate([first[large], second[large]])
    times = np.bincount(both, minlength=len(residuals.items)).tolist()
    times_of = dict(zip(residuals.items, times, strict=True))
    pairs = tuple(
        (residuals.items[first[p]], residuals.items[second[p]], float(excess[p]), int(persons[p]))
        for p in best
    )
    return Dependence(pairs, tuple(times_of.get(item, 0) for item in items))


def _limit_pairs(
    residuals: ResidualCorrelations, cutoffs: FitCutoffs | None, persons: Int64Array
) -> tuple[FloatArray, float]:
    """Return how far above the mean a Q3 lies by chance, per pair, and what does not matter."""
    if cutoffs is not None and np.isfinite(cutoffs.q3).any():
        return cutoffs.q3 - residuals.mean, DEPENDENT_NEGLIGIBLE
    tested = max(int((persons >= FEW_TOGETHER).sum()), 1)
    # A correlation of unrelated residuals has standard error 1 / sqrt(persons).
    chance = two_sided_quantile(0.05 / tested) / np.sqrt(np.maximum(residuals.together, 1))
    return np.asarray(chance), DEPENDENT
