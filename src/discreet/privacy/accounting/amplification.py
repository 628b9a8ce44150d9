"""Privacy amplification: curves averaged over randomness that does not depend on the answers.

In: the public cap on answers and how many rows are shuffled; or how many pairs one set of answers
can touch, the edge probability and sigma; a budget. Out: delta, epsilon, sigma or the epsilon of
one answer as an exact fraction, rounded to the safe side, and the spend.

Shuffling hides a row of randomized response among its clones, and only where all rows come from one
randomiser, that is, where everyone answers the same public items: Feldman, McMillan and Talwar
(2021), Theorem III.1 (closed form) and III.2 (the pair of distributions that is evaluated here).
A random graph is drawn for one release alone, after the answers and without them; so a person's
answers meet an average graph, not the one that suits them worst. Statements and proofs:
docs/privacy-accounting.md, sections 7, 8 and 10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from discreet.errors import BadBudget
from discreet.privacy.accounting import SMALLEST_DELTA, Budget, Neighbours, check_epsilon
from discreet.privacy.accounting.additive_noise import (
    UNIT_KERNEL_VARIANCE,
    counts_bound,
    pure_mu_squared,
    pure_spend,
    search_scale,
)
from discreet.privacy.accounting.spend import (
    GaussianBound,
    Spend,
    bisect_down,
    check_promise,
    float_down,
    float_up,
    gaussian_delta,
    grid_step,
    sqrt_up,
)

# Relative error granted to the accumulated logarithms of a window of up to a million weights.
WEIGHT_ERROR = 1e-6


def binomial_window(trials: int, chance: float, lost: float) -> tuple[int, int]:
    """Return a range outside which less than `lost` of a binomial's probability lies.

    Bernstein's inequality, solved for the distance from the mean.
    """
    mean, spread = trials * chance, trials * chance * (1 - chance)
    log_lost = math.log(2 / lost)
    half = log_lost / 3 + math.sqrt((log_lost / 3) ** 2 + 2 * spread * log_lost)
    return max(0, math.floor(mean - half)), min(trials, math.ceil(mean + half))


def binomial_weights(trials: int, odds: float, low: int, high: int) -> NDArray[np.float64]:
    """Return upper bounds on Pr[B = b] for low <= b <= high, up to `WEIGHT_ERROR`.

    Ratios of neighbours are exact and the window's own sum is at most the whole sum, so dividing
    by it errs upward only.
    """
    if low == high:
        return np.ones(1)
    counts = np.arange(low, high, dtype=np.float64)
    logs = np.concatenate(
        ([0.0], np.cumsum(np.log((trials - counts) / (counts + 1)) + math.log(odds)))
    )
    weights = np.exp(logs - logs.max())
    bounds: NDArray[np.float64] = weights / weights.sum()
    return bounds


def binomial_tail(trials: int, chance: float, least: float) -> float:
    """Return Chernoff's bound exp(-trials KL(least / trials, chance)) on Pr[B >= least].

    It holds for every variable whose exponential moments are at most the binomial's, which need
    not be an integer; neither need `least`.

    Examples
    --------
    >>> round(binomial_tail(100, 0.5, 75), 8)
    2.08e-06
    """
    share = least / trials
    if share <= chance:
        return 1.0
    if share >= 1:
        return 0.0 if least > trials else math.exp(trials * math.log(chance) * (1 - 1e-12))
    distance = share * math.log(share / chance)
    distance += (1 - share) * (math.log1p(-share) - math.log1p(-chance))
    # Two terms of opposite sign: what rounding can take away stays below 1e-13 of the larger.
    slack = 1e-13 * abs(share * math.log(share / chance))
    return math.exp(min(0.0, -trials * (distance - slack)))


# --- randomized response, and what a shuffler adds to it ------------------------------------------

# The coin's epsilon keeps 24 bits: short numbers for the exact coin, 6e-8 of epsilon given up.
ANSWER_BITS = 24


def calibrate_local(
    max_answers: int,
    budget: Budget,
    *,
    shuffled_persons: int | None = None,
    mechanism: str = "randomized response",
) -> tuple[Fraction, Spend]:
    """Return the epsilon of one answer, and the spend of the whole release.

    Parameters
    ----------
    max_answers : int
        The public cap; never the person's own number of answers.
    budget : Budget
        Replace-one only: the output has one row per person.
    shuffled_persons : int, optional
        How many rows a trusted shuffler mixes. Give it only when everyone answers the same
        public items; a pattern of items that few share hides among those few alone.
    mechanism : str
        Name for the spend.

    Examples
    --------
    >>> share, spend = calibrate_local(10, Budget(1.0, delta=0))
    >>> float(share) <= 0.1, spend.epsilon, spend.delta
    (True, 1.0, 0.0)
    """
    if max_answers < 1:
        raise BadBudget(f"the cap on answers must be at least 1, found {max_answers}.")
    if budget.neighbours is not Neighbours.REPLACE_ONE:
        raise BadBudget(
            "randomized response protects under replace-one only: its output has one row per "
            "person, which shows that somebody was added. Use neighbours='replace-one'."
        )
    row = budget.epsilon
    if shuffled_persons is not None:
        row = largest_local_epsilon(budget.epsilon, shuffled_persons, budget.delta)
    share = Fraction(row) / max_answers
    step = grid_step(share, ANSWER_BITS)
    share = (share // step) * step  # rounded down
    if row == budget.epsilon:
        return share, pure_spend(budget.epsilon, budget.neighbours, mechanism=mechanism)
    # Of an (epsilon, delta) release no more is known (section 6).
    bound = GaussianBound(pure_mu_squared(budget.epsilon), extra_delta=Fraction(budget.delta))
    return share, Spend.of(budget, mechanism, bound, is_average=True)


# No number of rows hides a row that is this exposed.
LARGEST_LOCAL = 500.0
# More rows than this amplify more, but are counted as this many: the window stays below 2e6.
MOST_PERSONS = 10**9
# Relative error granted to scipy's betainc (tests compare with mpmath).
BETAINC_ERROR = 1e-9
# The number of clones outside a window of this probability is given up as lost.
CLONES_LOST = 1e-4


def _check_shuffled(persons: int, delta: float) -> None:
    if persons < 1:
        raise BadBudget(f"the number of persons must be at least 1, found {persons}.")
    if not SMALLEST_DELTA <= delta < 1:
        raise BadBudget(
            f"shuffling amplifies only with a delta between 0 and 1, found {delta!r}. Give a "
            f"delta, or use randomized response without a shuffler."
        )


def _clone_deltas(counts: NDArray[np.float64], local: float, epsilon: float) -> NDArray[np.float64]:
    """Return delta at `epsilon` given the number of clones.

    Given c clones the pair is (A + D, c - A + 1 - D) against the same with 1 - D, A binomial
    (c, 1/2) and D a coin of bias p = e^local/(1 + e^local); its likelihood ratio grows with the
    first number, so the best event is a tail.
    """
    truth = 1 / (1 + math.exp(-local))
    lie = math.exp(-local) * truth
    growth = math.exp(epsilon)
    gain, loss = truth - growth * lie, growth * truth - lie
    first = np.floor((counts + 1) * (loss / (gain + loss))) + 1  # smallest favourable value
    above, beyond = _half_tail(counts, first - 1), _half_tail(counts, first)
    values = gain * above * (1 + BETAINC_ERROR) - loss * beyond * (1 - BETAINC_ERROR)
    result: NDArray[np.float64] = np.clip(values, 0.0, 1.0)
    return result


def _half_tail(counts: NDArray[np.float64], least: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Pr[binomial(counts, 1/2) >= least]."""
    inside = (least > 0) & (least <= counts)
    tail = np.where(least <= 0, 1.0, 0.0)
    tail[inside] = betainc(least[inside], counts[inside] - least[inside] + 1, 0.5)
    result: NDArray[np.float64] = tail
    return result


def shuffled_delta(local: float, persons: int, epsilon: float, *, lost: float) -> float:
    """Return an upper bound on delta at `epsilon` after shuffling.

    Parameters
    ----------
    local : float
        Epsilon of one whole row.
    persons : int
        Rows that are shuffled together.
    epsilon : float
        Where to evaluate the curve.
    lost : float
        Probability that may be given up for a bounded computation; it is part of the result.
    """
    if epsilon >= local:
        return 0.0
    if local > LARGEST_LOCAL:
        return 1.0
    persons = min(persons, MOST_PERSONS)
    low, high = binomial_window(persons - 1, math.exp(-local), lost)
    counts = np.arange(low, high + 1, dtype=np.float64)
    weights = binomial_weights(persons - 1, 1 / math.expm1(local), low, high)
    inside = float(weights @ _clone_deltas(counts, local, epsilon))
    return min(1.0, inside * (1 + WEIGHT_ERROR) + lost)


def largest_local_epsilon(epsilon: float, persons: int, delta: float) -> float:
    """Return the largest epsilon of one row that shuffling brings down to `epsilon`.

    Never less than `epsilon`: without amplification a row may spend all of it.
    """
    _check_shuffled(persons, delta)
    low = check_epsilon(epsilon)
    lost = CLONES_LOST * delta

    def passes(local: float) -> bool:
        return shuffled_delta(local, persons, epsilon, lost=lost) <= delta

    high = low + 1.0
    while passes(high):
        low, high = high, high + 1.0
    while high - low > 1e-6 * low:
        middle = (low + high) / 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low


# --- counts on the edges of a random graph --------------------------------------------------------

# The number of touched edges outside a window of this share of delta is given up as lost.
EDGES_LOST = 1e-6
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
        return graph_delta(sensitivity, sigma, epsilon, lost=EDGES_LOST * delta) <= delta

    return search_scale(keeps, f"epsilon {epsilon:g} with delta {delta:g}")


def graph_epsilon(sensitivity: GraphSensitivity, sigma: Fraction, delta: float) -> float:
    """Return an upper bound on epsilon at `delta`, averaged over the graph, to 1e-6."""

    def keeps(epsilon: float) -> bool:
        return graph_delta(sensitivity, sigma, epsilon, lost=EDGES_LOST * delta) <= delta

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
        graph_delta(sensitivity, sigma, budget.epsilon, lost=EDGES_LOST * delta),
        budget,
        f"sigma {float(sigma):g} on the edges of a random graph",
    )
    bound = graph_bound(sensitivity, sigma, Fraction(delta) * MISSED_SHARE)
    return Spend.of(budget, mechanism, bound, rho, is_average=True)
