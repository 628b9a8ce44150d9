"""Counts on the edges of a random graph: a privacy curve that is an average over graphs.

In: how many pairs one set of answers can touch, the edge probability, sigma. Out: delta,
epsilon, sigma, or the spend. The graph is drawn for this release alone, after the answers and
without them; so a person's answers meet an average graph, not the one that suits them worst.
Statement and proof: docs/privacy-accounting.md, section 10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from discreet.errors import BadBudget
from discreet.privacy.accounting import Budget
from discreet.privacy.accounting.gaussian import (
    GaussianBound,
    bisect_down,
    float_down,
    float_up,
    gaussian_delta,
    sqrt_up,
)
from discreet.privacy.accounting.gaussian_noise import (
    UNIT_KERNEL_VARIANCE,
    WEIGHT_ERROR,
    binomial_tail,
    binomial_weights,
    binomial_window,
    counts_bound,
    search_scale,
)
from discreet.privacy.accounting.spend import Spend, check_promise

# The number of touched edges outside a window of this share of delta is given up as lost.
WINDOW_SHARE = 1e-6
# At most this many values of the curve are averaged; between them the larger neighbour counts.
MOST_POINTS = 2000
# For composition: a graph may touch more edges than the bound says with this share of delta.
MISSED_SHARE = Fraction(1, 10**4)


@dataclass(frozen=True)
class GraphSensitivity:
    """Sensitivity of the counts on a random graph; public parameters only.

    Attributes
    ----------
    touched
        How many pairs of items one set of answers can touch on the complete graph.
    step
        How many counts change for each touched pair at most: 1 when a person is added or removed,
        2 when answers are replaced (one direction goes down, the other up).
    edge_probability
        Of every pair, independently.
    accepted
        A lower bound on the probability that a drawn graph is kept; others are drawn again.
    """

    touched: int
    step: int
    edge_probability: Fraction
    accepted: float = 1.0

    def __post_init__(self) -> None:
        if self.touched < 1 or self.step not in (1, 2):
            raise BadBudget(
                f"one person must touch at least one pair, in steps of 1 or 2, found "
                f"{self.touched} pairs in steps of {self.step}."
            )
        if not (0 < self.edge_probability <= 1 and 0 < self.accepted <= 1):
            raise BadBudget(
                f"edges must have a probability in (0, 1], and so must accepting a graph; found "
                f"{float(self.edge_probability)} and {self.accepted}."
            )

    @property
    def most(self) -> int:
        """Counts that move if every touched pair is an edge."""
        return self.step * self.touched


class _Curve:
    """A convex function of the number of changed counts that bounds delta at one epsilon.

    Up to ``bend`` it is the Gaussian curve in v = mu^2, which is convex there; from there on the
    straight line with the largest slope that the curve has anywhere.
    """

    def __init__(self, sensitivity: GraphSensitivity, sigma: Fraction, epsilon: float) -> None:
        slack = counts_bound(sensitivity.most, sigma)
        self.factor = math.exp(float_up(slack.exponent)) * (1 + 1e-12)
        self.epsilon = float_down(Fraction(epsilon) - slack.eta)
        square = sigma * sigma
        self.per_count = 1 / square
        self.base = UNIT_KERNEL_VARIANCE / (square * (square - UNIT_KERNEL_VARIANCE))
        shifted = max(self.epsilon, 0.0)
        self.bend = 2 * shifted**2 / (math.sqrt(1 + shifted**2) + 1) * (1 - 1e-9)
        if self.bend > 0:
            root = math.sqrt(self.bend)
            reach = shifted / root - root / 2
            # The slope is largest at the bend, so a billionth beside it changes nothing visible.
            self.slope = math.exp(-reach * reach / 2) / (math.sqrt(8 * math.pi) * root) * (1 + 1e-6)
            self.at_bend = gaussian_delta(root, self.epsilon)

    def at(self, changed: int) -> float:
        """Return the value where that many counts move."""
        square = changed * self.per_count + self.base
        if square <= self.bend:
            return self.factor * gaussian_delta(sqrt_up(square), self.epsilon)
        return self.factor * (self.at_bend + self.slope * (float_up(square) - self.bend))


def graph_delta(
    sensitivity: GraphSensitivity, sigma: Fraction, epsilon: float, *, lost: float
) -> float:
    """Return an upper bound on delta at `epsilon`, averaged over the graph.

    Parameters
    ----------
    sensitivity : GraphSensitivity
        Of the counts on a random graph.
    sigma : Fraction
        Of the discrete Gaussian noise on every count; fixed before the graph is drawn.
    epsilon : float
        Where to evaluate the curve.
    lost : float
        Probability that may be given up for a bounded computation; it is part of the result.

    Examples
    --------
    Half of the pairs of a person with 100 answers: as much noise as for 2700 counts instead of
    the 5000 that all pairs would need.

    >>> sensitivity = GraphSensitivity(2500, 2, Fraction(1, 2))
    >>> 0.9e-4 < graph_delta(sensitivity, Fraction(160), 1.0, lost=1e-10) < 1e-4
    True
    """
    curve = _Curve(sensitivity, sigma, epsilon)
    if curve.bend <= 0:
        return 1.0
    chance = float(sensitivity.edge_probability)
    if chance >= 1:
        return min(1.0, curve.at(sensitivity.most) / sensitivity.accepted)
    low, high = binomial_window(sensitivity.touched, chance, lost)
    weights = binomial_weights(sensitivity.touched, chance / (1 - chance), low, high)
    # The curve grows with the number of edges: the last of each block stands for the block.
    width = -(-len(weights) // MOST_POINTS)
    blocks = np.add.reduceat(weights, np.arange(0, len(weights), width))
    tops = np.minimum(np.arange(low, high + 1, width) + width - 1, high)
    values = np.array([curve.at(sensitivity.step * int(top)) for top in tops])
    inside = float(blocks @ values) * (1 + WEIGHT_ERROR)
    return min(
        1.0, (inside + lost * curve.at(sensitivity.most)) / sensitivity.accepted * (1 + 1e-12)
    )


@lru_cache(maxsize=256)
def calibrate_graph(sensitivity: GraphSensitivity, epsilon: float, delta: float) -> Fraction:
    """Return the smallest sigma on the grid that keeps (epsilon, delta) on average over graphs.

    Examples
    --------
    >>> float(calibrate_graph(GraphSensitivity(2500, 2, Fraction(1, 2)), 1.0, 1e-4))
    159.375
    """

    def keeps(sigma: Fraction) -> bool:
        return graph_delta(sensitivity, sigma, epsilon, lost=WINDOW_SHARE * delta) <= delta

    return search_scale(keeps, f"epsilon {epsilon:g} with delta {delta:g}")


def graph_epsilon(sensitivity: GraphSensitivity, sigma: Fraction, delta: float) -> float:
    """Return an upper bound on epsilon at `delta`, averaged over the graph, to 1e-6."""

    def keeps(epsilon: float) -> bool:
        return graph_delta(sensitivity, sigma, epsilon, lost=WINDOW_SHARE * delta) <= delta

    low, high = 0.0, 1.0
    while not keeps(high):
        low, high = high, 2 * high
    return bisect_down(keeps, low, high, 1e-6)


def graph_bound(sensitivity: GraphSensitivity, sigma: Fraction, missed: Fraction) -> GaussianBound:
    """Return the Gaussian curve that dominates the release, for composition.

    A graph touches more than ``changed`` counts with probability at most `missed`, whoever the
    person is (Chernoff); given any other graph the release is that of at most ``changed`` counts.
    The number of touched counts may be odd also where ``step`` is 2: more than 2 b is 2 b + 1.
    """
    chance, allowed = float(sensitivity.edge_probability), float_down(missed) * sensitivity.accepted
    low, high = 1, sensitivity.touched  # all pairs are never exceeded
    while low < high:
        middle = (low + high) // 2
        fits = binomial_tail(sensitivity.touched, chance, middle + 1 / sensitivity.step) <= allowed
        low, high = (low, middle) if fits else (middle + 1, high)
    extra = missed if high < sensitivity.touched else Fraction(0)
    return replace(counts_bound(sensitivity.step * high, sigma), extra_delta=extra)


def graph_spend(
    sensitivity: GraphSensitivity, sigma: Fraction, budget: Budget, *, mechanism: str, rho: Fraction
) -> Spend:
    """Return the spend of a release, or refuse a sigma that breaks the budget's promise.

    Nothing in it but `rho` depends on the graph that was drawn: a ledger that accepted or refused
    by the graph would undo the average. `rho` is what holds given the graph.
    """
    delta = budget.require_delta(mechanism)
    check_promise(
        graph_delta(sensitivity, sigma, budget.epsilon, lost=WINDOW_SHARE * delta),
        budget,
        f"sigma {float(sigma):g} on the edges of a random graph",
    )
    bound = graph_bound(sensitivity, sigma, Fraction(delta) * MISSED_SHARE)
    return Spend.of(budget, mechanism, bound, rho, is_average=True)
