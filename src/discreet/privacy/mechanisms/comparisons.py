"""Noise on comparisons: on every pair's wins, or on net wins and on how often pairs were compared.

In: public parameters and a budget. Out: integer weights of judges, noise laws, what they spend.

A judge with at most c comparisons, no two of the same pair, adds one to c of the m (m - 1) win
counts. Adding or removing a judge changes c counts by one, replacing one changes at most 2 c;
turning one comparison round already changes two. For net wins the weight of a judge depends on
which objects were compared and never on who won, so that it costs no bias. Proofs: docs/privacy.md;
``tests/privacy/test_comparisons_release.py`` finds the bounds by brute force.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf, isqrt, sqrt
from typing import Any, ClassVar

import numpy as np

from discreet.errors import BadUsage
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.accounting.additive_noise import (
    calibrate_blocks,
    calibrate_counts,
    round_ratio,
)
from discreet.privacy.mechanisms.base import AdditiveMechanism, sum_margins
from discreet.privacy.mechanisms.pairs import count_sensitivity
from discreet.privacy.protocol import NoiseCalibration, NoiseLaw, Public
from discreet.secure import RandomSource
from discreet.types import Int64Array

#: Grid steps per comparison. Weights are rounded down to it; contributions never are.
GRID = 2**20

#: Part of the budget (of mu squared) for how often pairs were compared.
#:
#: Of .15, .3 and .5 it was the best or within 5% of it in nine settings (10 to 50 objects, epsilon
#: .5 to 3); .5 cost up to 14%.
SHARE = 0.3


@dataclass(frozen=True)
class JudgeWeights:
    """Integer weight of a judge, so that net wins are never longer than the limit.

    Attributes
    ----------
    grid
        Weight of a judge whose comparisons are not shortened.
    limit
        Largest squared reach (see :func:`discreet.answers.comparisons.measure_reach`) that
        counts in full.

    Examples
    --------
    >>> JudgeWeights(grid=1000, limit=8)(np.array([3, 4, 0]), np.array([8, 32, 0]))
    array([1000,  500,    0])
    """

    grid: int
    limit: int

    def __call__(self, comparisons: Int64Array, reach: Int64Array) -> Int64Array:
        """Return the weights: zero without a comparison, the grid up to the limit, then less."""
        values, index = np.unique(reach, return_inverse=True)
        # Exact: the square of the weight times the reach never exceeds grid^2 * limit.
        table = [
            self.grid if value <= self.limit else isqrt(self.grid**2 * self.limit // value)
            for value in values.tolist()
        ]
        weights = np.array(table, dtype=np.int64)[index]
        return np.asarray(np.where(comparisons > 0, weights, 0))


@dataclass(frozen=True)
class WinPairs(AdditiveMechanism):
    """Discrete Gaussian noise on the wins of every ordered pair (the paper's Algorithm 2)."""

    kind: ClassVar[str] = "comparisons"

    name: str = "win-pairs"

    def calibrate(self, public: Public, budget: Budget, source: RandomSource) -> NoiseCalibration:  # noqa: ARG002
        """Find the least noise that keeps the budget."""
        sensitivity = count_sensitivity(public.max_answers, public.neighbours)
        scale, spend = calibrate_counts(sensitivity, budget, mechanism=self.name)
        return NoiseCalibration({"wins": NoiseLaw("gaussian", scale)}, spend)

    def cells(self, counts: Any, calibration: NoiseCalibration) -> dict[str, Int64Array]:  # noqa: ARG002
        """Return the wins of every ordered pair, exact. Confidential."""
        off_diagonal = ~np.eye(len(counts.items), dtype=bool)
        return {"wins": counts.wins[off_diagonal]}


@dataclass(frozen=True)
class NetWins(AdditiveMechanism):
    """Noise on net wins (m numbers) and on how often two objects were compared.

    Net wins are all that the Bradley-Terry likelihood needs beside the design, and they take
    noise once an object instead of once a pair.

    Attributes
    ----------
    comparisons
        Typical number of comparisons per judge, known in advance; by default the cap.
    share
        See ``SHARE``.
    """

    kind: ClassVar[str] = "comparisons"

    comparisons: float | None = None
    share: float = SHARE
    name: str = "net-wins"

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise BadUsage(f"share must lie between 0 and 1, found {self.share}")
        if self.comparisons is not None and not 1 <= self.comparisons < inf:
            raise BadUsage(
                f"comparisons, the typical number per judge, must be at least 1, found "
                f"{self.comparisons}"
            )

    def calibrate(self, public: Public, budget: Budget, source: RandomSource) -> NoiseCalibration:  # noqa: ARG002
        """Find the least noise that keeps the budget."""
        comparisons = min(self.comparisons or public.max_answers, public.max_answers)
        limit = min(typical_reach(comparisons, len(public.items)), _longest_reach(public))
        weights = JudgeWeights(GRID, limit)
        sensitivities = net_wins_l2_sensitivity(weights, public)
        # 1 / sigma^2 of both blocks, in the ratio in which they share mu squared.
        root = sqrt((1 - self.share) / self.share * sensitivities[1] / sensitivities[0])
        ratio = round_ratio(root)
        cells = len(public.items) * (len(public.items) + 1) // 2
        scale, spend = calibrate_blocks(
            [sensitivities], (Fraction(1), ratio), budget, coordinates=cells, mechanism=self.name
        )
        laws = {
            "net_wins": NoiseLaw("gaussian", scale),
            "compared": NoiseLaw("gaussian", scale * ratio),
        }
        return NoiseCalibration(laws, spend, settings={"grid": GRID, "limit": limit})

    def weighting(self, public: Public, calibration: NoiseCalibration) -> JudgeWeights:  # noqa: ARG002
        """Return the integer weights that the noise was calibrated for."""
        return JudgeWeights(calibration.settings["grid"], calibration.settings["limit"])

    def cells(self, counts: Any, calibration: NoiseCalibration) -> dict[str, Int64Array]:  # noqa: ARG002
        """Return net wins and the upper triangle of the comparisons, exact. Confidential."""
        net_wins, compared = sum_margins(counts.wins)
        return {"net_wins": net_wins, "compared": compared}


def typical_reach(comparisons: float, items: int) -> int:
    """Squared reach of a judge who compares so many random pairs; never below a single one's.

    Every object is then in 2 c / m comparisons on average, with a variance of about as many; the
    sum of squares over m objects is 2 c + 4 c^2 / m.
    """
    spread = 2 * comparisons + 4 * comparisons**2 / items
    return max(2, ceil(min(spread, comparisons * items)))


def _longest_reach(public: Public) -> int:
    """Largest squared reach under the cap: one object against c others, or against all."""
    cap, items = public.max_answers, len(public.items)
    return cap * min(cap + 1, items)


def net_wins_l2_sensitivity(weights: JudgeWeights, public: Public) -> tuple[int, int]:
    """Bound the squared L2 sensitivities of net wins and of comparisons."""
    # Each compared object has a degree of at least one, so a judge's reach is at least 2 c by
    # either of its bounds, and weight^2 c is at most grid^2 limit / 2.
    totals = weights.grid**2 * weights.limit
    compared = min(weights.grid**2 * public.max_answers, totals // 2)
    if public.neighbours is Neighbours.REPLACE_ONE:
        # Net wins may be turned round: twice the length. Comparisons are never negative, so
        # those of two judges are at right angles at most: the squares add.
        return 4 * totals, 2 * compared
    return totals, compared


def pick_comparison_mechanism(public: Public) -> tuple[WinPairs | NetWins, str]:
    """Choose the mechanism with less noise in net wins, from public parameters alone."""
    items, cap = len(public.items), public.max_answers
    limit = min(typical_reach(cap, items), _longest_reach(public))
    # Summed over an object's 2 (m - 1) counts, noise on pairs has the squared length (m - 1) c
    # where noise on net wins has limit / (1 - share), in the same units.
    if (items - 1) * cap * (1 - SHARE) <= limit:
        why = f"a judge may compare {cap} pairs of only {items} objects"
        return WinPairs(), f"auto: win-pairs, because {why}"
    why = f"a judge compares at most {cap} of {items * (items - 1) // 2} pairs"
    return NetWins(), f"auto: net-wins, because {why}"
