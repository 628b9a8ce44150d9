"""Statistics that tell two neighbouring data sets apart, and how well they do.

In: a mechanism, its calibration, and the exact cells of one person on both sides. Out: the log
likelihood ratio of a release, and its known distribution. How well two data sets can be told
apart is put as a separation s: both are mixed up with the rate Phi(-s / 2), as two normal
distributions s standard deviations apart are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import ceil, exp, sqrt
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from discreet.privacy.accounting.gaussian import gaussian_epsilon
from discreet.privacy.accounting.random_graph import graph_epsilon
from discreet.privacy.mechanisms import AnyMechanism
from discreet.privacy.mechanisms.sparse import SparsePairs, graph_moves
from discreet.privacy.protocol import Calibration, NoiseLaw, Public
from discreet.secure import RandomSource, SeededSource
from discreet.types import FloatArray

Moves = Mapping[str, tuple[npt.NDArray[Any], npt.NDArray[Any]]]
Separation = Callable[[float], float]
Values = Mapping[str, npt.NDArray[Any]]

MATTERS = 1.1
"""Noise that is too small by this factor makes epsilon a tenth larger than promised.

The smallest mistakes that are made with sensitivities are as large: a cap of ten that lets an
eleventh answer pass (1.1), replace-one noise from an add-remove bound (1.41).
"""

FACTORS = np.array([0, 0.7, 0.9, 1, 1.1, 1.2, 1.5, 2.5, 5])
TABLE_RUNS = 40_000
"""Many times the runs of an audit, so that its own chance is what counts."""

DRAWN_AT_ONCE = 2_000_000

GRAPHS = 1000
SMALLEST_SIGMA = 2
"""The accountant knows no curve of counts below; the epsilon at 2 is then a smaller bound."""


@dataclass(frozen=True)
class Statistic:
    """What tells two data sets apart.

    Attributes
    ----------
    reach
        How far one person moves the cells, in standard deviations of their noise.
    score
        Of a release; at least 0 says "the first data set".
    separation
        Of the two data sets, if the noise is too small by a factor.
    permitted
        What the promise permits of it.
    ceiling
        What the promise permits of any two neighbours, also where a cap picks answers at random.
    epsilon
        What the release promises, if its noise is too small by a factor.
    arrange
        A release's numbers in a fixed order.
    redraw
        The calibration of another release: the same, or with a fresh graph.
    """

    reach: float
    score: Callable[[Values, Calibration], float]
    separation: Separation
    permitted: Separation
    ceiling: Separation
    epsilon: Callable[[float], float]
    arrange: Callable[[Values, Calibration], FloatArray]
    redraw: Callable[[RandomSource], Calibration]


def join_values(values: Values, calibration: Calibration) -> FloatArray:  # noqa: ARG001
    """Join all released numbers into a vector, in a fixed order."""
    return np.concatenate([np.ravel(values[name]) for name in sorted(values)]).astype(float)


def additive_statistic(
    mechanism: AnyMechanism,  # noqa: ARG001
    public: Public,  # noqa: ARG001
    calibration: Calibration,
    moves: Moves,
    group: int,
) -> Statistic:
    """Return the log likelihood ratio of additive noise around the two exact answers."""
    laws, spend = calibration.laws, calibration.spend
    parts = {name: (group * one, group * other) for name, (one, other) in moves.items()}
    steps = [(one - other) / float(laws[name].scale) for name, (one, other) in moves.items()]
    reach = sqrt(sum(float(step @ step) for step in steps))

    def score(values: Values, calibration: Calibration) -> float:  # noqa: ARG001
        return sum(
            float(
                (_log_density(laws[k], values[k] - a) - _log_density(laws[k], values[k] - b)).sum()
            )
            for k, (a, b) in parts.items()
        )

    if spend.is_pure:
        separation = permitted = ceiling = _laplace_separation(laws, parts)
        epsilon = _pure_epsilon(calibration)
    else:
        claim = sqrt(float(spend.bound.mu_squared))
        kinds = (reach, min(reach, claim), claim)
        separation, permitted, ceiling = (_in_proportion(group * mu) for mu in kinds)
        epsilon = _gaussian_epsilon(calibration, claim)
    return Statistic(
        reach,
        score,
        separation,
        permitted,
        ceiling,
        epsilon,
        arrange=join_values,
        redraw=lambda _: calibration,
    )


def _in_proportion(separation: float) -> Separation:
    return lambda factor: factor * separation


def _log_density(law: NoiseLaw, noise: FloatArray) -> FloatArray:
    """Return the log of the noise's probability, up to a constant."""
    scale = float(law.scale)
    if law.family == "gaussian":
        return -(noise**2) / (2 * scale**2)
    return -np.abs(noise) / scale


def _pure_epsilon(calibration: Calibration) -> Callable[[float], float]:
    # Of shuffled answers it is a lower bound: amplification fades as answers are flipped less.
    return lambda factor: factor * calibration.spend.epsilon


def _gaussian_epsilon(calibration: Calibration, claim: float) -> Callable[[float], float]:
    """In proportion to the Gaussian curve, so that the factor 1 is the claim itself."""
    spend = calibration.spend

    def epsilon(factor: float) -> float:
        changed, own = (gaussian_epsilon(mu, spend.delta) for mu in (factor * claim, claim))
        return spend.epsilon * changed / own

    return epsilon


def _laplace_separation(laws: Mapping[str, NoiseLaw], parts: Moves) -> Separation:
    """Draw the log likelihood ratio with noise of other scales, and tabulate its mistakes."""
    shift = np.concatenate([np.ravel(np.abs(one - other)) for one, other in parts.values()])
    sizes = [(float(laws[name].scale), one.size) for name, (one, _) in parts.items()]
    scale = np.concatenate([np.full(size, t) for t, size in sizes])
    shift, scale = shift[shift > 0].astype(np.float32), scale[shift > 0].astype(np.float32)

    @cache
    def table() -> FloatArray:
        rng = np.random.default_rng(0)
        chunk = int(np.clip(DRAWN_AT_ONCE // len(shift), 1, TABLE_RUNS))
        rates = [
            [_mistakes(factor, shift, scale, *drawn) for factor in FACTORS[1:]]
            for _ in range(ceil(TABLE_RUNS / chunk))
            for drawn in [rng.standard_exponential((2, chunk, len(shift)), dtype=np.float32)]
        ]
        rate = np.maximum(np.mean(rates, axis=0), 0.5 / TABLE_RUNS)
        return np.maximum.accumulate(np.concatenate([[0.0], -2 * ndtri(np.minimum(rate, 0.5))]))

    def separation(factor: float) -> float:
        beyond = max(1.0, factor / float(FACTORS[-1]))
        return beyond * float(np.interp(factor, FACTORS, table()))

    return separation


def _mistakes(
    factor: float, shift: Any, scale: Any, up: npt.NDArray[Any], down: npt.NDArray[Any]
) -> float:
    """How often discrete Laplace noise misleads; the whole part of an exponential is geometric."""
    noise = np.floor(up * (scale / factor)) - np.floor(down * (scale / factor))
    score = ((np.abs(noise + shift) - np.abs(noise)) / scale).sum(axis=1)
    return float((score < 0).mean() + (score <= 0).mean()) / 2


def flip_statistic(
    mechanism: AnyMechanism,  # noqa: ARG001
    public: Public,
    calibration: Calibration,
    moves: Moves,
    group: int,
) -> Statistic:
    """Return how many flipped answers agree with the first data set more than with the second."""
    one, other = moves["right"]
    direction, middle = one - other, group * (one + other) / 2
    answers = int(np.abs(direction).sum())
    share = float(calibration.settings["answer_epsilon"])

    def score(values: Values, calibration: Calibration) -> float:  # noqa: ARG001
        return float((np.diag(values["right_right"]) - middle) @ direction)

    def separate(factor: float, answers: int) -> float:
        number, truth = group * answers, 1 / (1 + exp(-factor * share))
        below = binom.cdf([np.ceil(number / 2) - 1, number // 2], number, truth)
        return float(-2 * ndtri(max(below.mean(), 1e-300)))

    truth = 1 / (1 + exp(-share))
    return Statistic(
        reach=sqrt(answers) * (2 * truth - 1) / sqrt(truth * (1 - truth)),
        score=score,
        separation=lambda factor: separate(factor, answers),
        permitted=lambda factor: separate(factor, min(answers, public.max_answers)),
        ceiling=lambda factor: separate(factor, min(answers, public.max_answers)),
        epsilon=_pure_epsilon(calibration),
        arrange=join_values,
        redraw=lambda _: calibration,
    )


def graph_statistic(
    mechanism: AnyMechanism,
    public: Public,
    calibration: Calibration,
    moves: Moves,
    group: int,
) -> Statistic:
    """Return the log likelihood ratio on the edges of a graph, which every run may draw anew.

    An attack that knew the graph would refute a promise that was never made, so the moves are
    on all pairs. Whatever the test, the rate of its mistakes is at least the mean over graphs of
    Phi(-sqrt(K) / (2 sigma)), where K counts move on a graph.
    """
    mechanism = cast(SparsePairs, mechanism)
    law, spend = calibration.laws["right_wrong"], calibration.spend
    one, other = moves["right_wrong"]
    middle, direction = group * (one + other) / 2, one - other
    items, averages = len(public.items), mechanism.noise_for == "a random graph"
    sigma = float(law.scale)

    def count_moved(calibration: Calibration) -> float:
        return float(np.abs(direction)[_edge_cells(calibration, items)].sum())

    def redraw(source: RandomSource) -> Calibration:
        """Draw a graph on which something moves: the rate is known given any graph."""
        if not averages:
            return calibration
        drawn = mechanism.redraw(public, calibration, source)
        while not count_moved(drawn):
            drawn = mechanism.redraw(public, calibration, source)
        return drawn

    def score(values: Values, calibration: Calibration) -> float:
        released = _on_all_pairs(values["right_wrong"], calibration, items)
        return float(np.nansum((released - middle) * direction))

    @cache
    def lengths() -> FloatArray:
        source, graphs = SeededSource(0), [calibration]
        if averages:
            graphs = [mechanism.redraw(public, calibration, source) for _ in range(GRAPHS)]
        return np.sqrt([count_moved(one) for one in graphs])

    def separation(factor: float) -> float:
        moving = lengths()[lengths() > 0] * (group / sigma)
        return float(-2 * ndtri(np.mean(ndtr(-factor * moving / 2))))

    def ceiling(factor: float) -> float:
        # The rate is convex in the length, so its mean is at least the rate at the mean length.
        claim = float(np.mean(lengths())) / sigma if averages else sqrt(spend.bound.mu_squared)
        return factor * group * claim

    def arrange(values: Values, calibration: Calibration) -> FloatArray:
        tables = [_on_all_pairs(values[name], calibration, items) for name in sorted(values)]
        return np.nan_to_num(np.concatenate(tables))

    share = calibration.settings["edge_probability"]
    moved = share * float(np.abs(direction).sum()) if averages else count_moved(calibration)
    return Statistic(
        reach=sqrt(moved) / sigma,
        score=score,
        separation=separation,
        permitted=separation,
        ceiling=ceiling,
        epsilon=_graph_epsilon(public, calibration)
        if averages
        else _gaussian_epsilon(calibration, sqrt(float(spend.bound.mu_squared))),
        arrange=arrange,
        redraw=redraw,
    )


def _edge_cells(calibration: Calibration, items: int) -> npt.NDArray[np.int64]:
    """Where the edges' counts are among all ordered pairs; both directions one after the other."""
    first, second = np.asarray(calibration.settings["edges"]).T
    right, wrong = np.concatenate([first, second]), np.concatenate([second, first])
    # The diagonal is left out: one cell less for every row, and one more after it in each.
    return np.asarray(right * (items - 1) + wrong - (wrong > right))


def _on_all_pairs(values: npt.NDArray[Any], calibration: Calibration, items: int) -> FloatArray:
    """Put released numbers where their pair belongs; NaN where the graph has no edge."""
    table = np.full(items * (items - 1), np.nan)
    table[_edge_cells(calibration, items)] = values
    return table


def _graph_epsilon(public: Public, calibration: Calibration) -> Callable[[float], float]:
    spend, sigma = calibration.spend, calibration.laws["right_wrong"].scale
    moves = graph_moves(public, calibration.settings["edge_probability"])

    def epsilon_at(scale: Fraction) -> float:
        return graph_epsilon(moves, max(scale, Fraction(SMALLEST_SIGMA)), spend.delta)

    def epsilon(factor: float) -> float:
        if factor == 0:
            return 0.0
        changed = epsilon_at((sigma / Fraction(factor)).limit_denominator(10**6))
        return spend.epsilon * changed / epsilon_at(sigma)

    return epsilon
