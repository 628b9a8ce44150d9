"""The attack on noise that is calibrated to an average graph: a fresh graph in every run.

In: an attack whose two data sets were chosen before any graph was drawn. Out: the epsilon that
it proves. An attack that knew the graph would refute a promise that was never made.

Whatever the test, the chances of its two mistakes add up to at least the mean over graphs of
2 Phi(-sqrt(K) / (2 sigma)), where K counts move on a graph. So mistakes that are rarer than that
prove a smaller sigma, and a smaller sigma proves a larger epsilon.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import inf, sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from discreet.engines import count_pairs
from discreet.privacy.accounting import graph_epsilon
from discreet.privacy.audit.attacks import Attack
from discreet.privacy.audit.discrimination import (
    Score,
    cap_is_idle,
    find_telltale,
    highest_rate,
    linear_score,
)
from discreet.privacy.mechanisms import AnyMechanism, Calibration, SparsePairs
from discreet.privacy.mechanisms.pairs import count_moves
from discreet.privacy.mechanisms.sparse import graph_moves
from discreet.privacy.noise import Noise
from discreet.privacy.wall import Release
from discreet.responses import Responses

__all__ = ["averages_graphs", "prove_on_random_graphs"]

FloatArray = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]

SMALLEST_SIGMA = 2.0
"""The accountant knows no curve below; the epsilon at 2 is then a bound that is too small."""


def averages_graphs(mechanism: AnyMechanism) -> bool:
    """Say whether the promise is about a random graph, not about the drawn one."""
    return isinstance(mechanism, SparsePairs) and mechanism.noise_for == "a random graph"


def prove_on_random_graphs(
    attack: Attack,
    mechanism: SparsePairs,
    runs: int,
    noise: Noise,
    release: Callable[..., Release],
    mistakes: float,
) -> float:
    """Return the epsilon that the best test on one attack proves."""
    count_moved = _count_moved(attack)

    def repeat(data: Responses) -> tuple[FloatArray, Int64Array]:
        made, moved = [], []
        for _ in range(runs):
            calibration = mechanism.redraw(attack.public, attack.calibration, noise.source)
            one = release(
                data,
                mechanism=mechanism,
                public=attack.public,
                calibration=calibration,
                guarantee=calibration.spend.guarantee(ledger=None, is_private=noise.is_private),
                noise=noise,
            )
            made.append(_on_all_pairs(one, calibration, len(attack.public.items)))
            moved.append(count_moved(calibration))
        return np.array(made), np.array(moved)

    (inside, moved), (outside, moved_outside) = repeat(attack.data), repeat(attack.neighbour)
    filled, filled_outside = np.nan_to_num(inside), np.nan_to_num(outside)
    if (filled != np.rint(filled)).any() or (filled_outside != np.rint(filled_outside)).any():
        return inf  # the low bits of a float betray the exact count (Mironov 2012)
    half = runs // 2
    score, is_learnt = _choose_score(attack, filled[:half], filled_outside[:half])
    found, found_outside = score(inside), score(outside)
    threshold = _choose_threshold(found[:half], found_outside[:half]) if is_learnt else 0.0
    judged = slice(half if is_learnt else 0, runs)
    misses = int(np.sum(found[judged] < threshold))
    alarms = int(np.sum(found_outside[judged] >= threshold))
    met = np.concatenate([moved[judged], moved_outside[judged]])
    sigma = _largest_sigma(misses, alarms, met, mistakes)
    if sigma == inf:
        return 0.0
    moves = graph_moves(attack.public, attack.calibration.settings["edge_probability"])
    proved = Fraction(max(sigma, SMALLEST_SIGMA)).limit_denominator(10**6)
    return graph_epsilon(moves, proved, attack.calibration.spend.delta)


def _on_all_pairs(release: Release, calibration: Calibration, items: int) -> FloatArray:
    """Put released numbers where their pair belongs; NaN where the graph has no edge."""
    first, second = np.asarray(calibration.settings["edges"]).T
    tables = []
    for name in sorted(release.values):
        table = np.full((items, items), np.nan)
        table[first, second], table[second, first] = np.split(release.values[name], 2)
        tables.append(table.ravel())
    return np.concatenate(tables)


def _count_moved(attack: Attack) -> Callable[[Calibration], int]:
    """How many counts on the edges differ; with an active cap, how many may."""
    public = attack.public
    if not cap_is_idle(attack):
        most = count_moves(public.max_answers**2 // 4, public.neighbours)
        return lambda calibration: min(most, 2 * len(calibration.settings["edges"]))
    apart = np.abs(_table(attack.data) - _table(attack.neighbour))
    both = apart + apart.T

    def on_edges(calibration: Calibration) -> int:
        first, second = np.asarray(calibration.settings["edges"]).T
        return int(both[first, second].sum())

    return on_edges


def _table(data: Responses) -> Int64Array:
    return np.asarray(count_pairs(data).right_wrong)


def _choose_score(attack: Attack, inside: FloatArray, outside: FloatArray) -> tuple[Score, bool]:
    """Return the best statistic, and whether it was learnt from the runs."""
    found = find_telltale(inside, outside)
    if found is not None:
        return lambda values: found(np.nan_to_num(values)), True
    if not cap_is_idle(attack):
        score = linear_score(inside, outside)
        return lambda values: score(np.nan_to_num(values)), True
    one, other = (_table(side).ravel() for side in (attack.data, attack.neighbour))
    # Up to a factor the log likelihood ratio, on the edges that the run had.
    return lambda values: np.nansum((values - (one + other) / 2) * (one - other), axis=1), False


def _choose_threshold(inside: FloatArray, outside: FloatArray) -> float:
    """Pick the cut with the fewest mistakes."""
    cuts = np.unique(np.concatenate([inside, outside]))
    misses = np.searchsorted(np.sort(inside), cuts)
    alarms = len(outside) - np.searchsorted(np.sort(outside), cuts)
    return float(cuts[int(np.argmin(misses + alarms))])


def _largest_sigma(misses: int, alarms: int, moved: Int64Array, mistakes: float) -> float:
    """Return the largest sigma at which so few mistakes are possible; infinite if any is."""
    runs = len(moved) // 2
    seen = highest_rate(misses, runs, mistakes / 2) + highest_rate(alarms, runs, mistakes / 2)

    def fewest(sigma: float) -> float:
        return float(np.mean(2 * ndtr(-np.sqrt(moved) / (2 * sigma))))

    low, high = 1e-3, 1e3 * sqrt(max(int(moved.max()), 1))
    if fewest(high) <= seen:
        return inf
    while high - low > 1e-6 * high:
        middle = sqrt(low * high)
        low, high = (middle, high) if fewest(middle) <= seen else (low, middle)
    return high
