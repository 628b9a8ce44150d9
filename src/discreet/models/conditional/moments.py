"""The law of the answers given their total score: first and second moments, by the trapezoid rule.

In: groups of persons by answered items and score, and thresholds. Out: the conditional
log-likelihood's normalising part, its gradient and its second derivatives.

At any ability t the answers to different items are independent, with category probabilities p_ix,
and given the score their law does not depend on t. The probability of the score r is an integral
over the unit circle,

    P(S = r) = mean over angles a of  prod_i z_i(a) exp(-i r a),    z_i(a) = sum_x p_ix exp(i x a),

and moments given the score are the same means with factors of z exchanged. The mean over K equally
spaced angles is exact but for the scores r - K, r + K, r + 2 K, ...: exact where none of these can
occur, and else off by their probability. With t where the expected score is about r the integrand
falls like exp(-variance a^2 / 2), so that a dozen angles give 13 digits for any number of items.

Steps k = 1, ..., S of an item are its nodes, with c_ik = [x_i >= k]; right and wrong is S = 1. All
deviations of P(c_ik) from its value at t carry the factor P(c_ik = 0) P(c_ik = 1) explicitly, so
that covariances of very easy and very hard items keep their digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import BadUsage
from discreet.threads import map_tasks, one_blas_thread, thread_count
from discreet.types import FloatArray, IndexArray, Vector

ComplexArray = npt.NDArray[np.complex128]

#: Minus the logarithm of what is neglected, relative to the probability of the score: 1e-13.
LOG_TOL = 30.0
#: Variances of scores below this are not told apart.
SMALL_VARIANCE = 1e-12
#: Largest shift of the ability that bounds a tail, in logits.
MOST_BEND = 20.0
#: With no more scores to either side all of them are told apart, without a bound.
FEW_SCORES = 30
#: Weight of an angle that is left out.
NEGLIGIBLE = 1e-16
#: Pairs of nodes, summed over blocks, whose products take about a millisecond.
CHEAP_PAIRS = 1_000_000
#: Width, in standard deviations of the score, of the classes of abilities that share tables.
SHARED = 1.0
#: Up to here every thread has second derivatives of its own: 32 MB each.
SHARED_NODES = 2000


@dataclass(frozen=True, eq=False)
class AbilityBatch:
    """Blocks of persons who are looked at from one ability.

    Attributes
    ----------
    column
        ``[block, column]``: positions of items; a single row if they are the same for all blocks.
    answered
        ``[block, row, column]``: who answered what, or how many answers there are to it; None if
        every column was answered once.
    score, persons
        ``[block, row]``: persons with this score on the items they answered; none in rows that
        only fill up a block.
    tilt
        ``[block]``: an ability at which the expected scores are about the scores.
    """

    column: IndexArray
    answered: Vector | None
    score: FloatArray
    persons: FloatArray
    tilt: FloatArray

    @property
    def products(self) -> int:
        """How many sets of deviations enter the second moments."""
        return len(self.tilt) if self.answered is None else self.score.size

    def total(self, values: FloatArray) -> FloatArray:
        """Sum ``[block, column]`` over the answered columns: ``[block, row]``."""
        if self.answered is None:
            return np.asarray(values.sum(axis=1)[:, None])
        return np.asarray(np.matmul(self.answered, values[:, :, None])[:, :, 0])


@dataclass(eq=False)
class ConditionalSums:
    """Running sums over persons.

    Attributes
    ----------
    log_norm
        Sum of the logarithms of the generating polynomial's coefficients at the scores.
    expected
        ``[item, step]``: expected number of persons at or above the step.
    covariance
        ``[node, node]`` of nodes of different items, node = item * steps + step - 1; None if
        not asked for.
    products
        ``[item, step, step]``: products of the probabilities of an item's own nodes.
    """

    log_norm: float
    expected: FloatArray
    covariance: FloatArray | None
    products: FloatArray

    @classmethod
    def zeros(cls, m: int, steps: int = 1, *, information: bool = True) -> ConditionalSums:
        covariance = np.zeros((m * steps, m * steps)) if information else None
        return cls(0.0, np.zeros((m, steps)), covariance, np.zeros((m, steps, steps)))

    def add(self, sums: ConditionalSums) -> None:
        """Add the sums over other persons."""
        self.log_norm += sums.log_norm
        self.expected += sums.expected
        self.products += sums.products
        if self.covariance is not None and sums.covariance is not None:
            self.covariance += sums.covariance

    def information(self) -> FloatArray:
        """Second derivatives of the normalising part; rows sum to zero.

        A shift of all thresholds changes nothing, so the diagonal follows from the rest.
        """
        if self.covariance is None:
            raise BadUsage("the second derivatives were not asked for")
        matrix, (m, steps) = self.covariance.copy(), self.expected.shape
        node, level = np.arange(m * steps).reshape(m, steps), np.arange(steps)
        joint = self.expected[:, np.maximum(level[:, None], level)]
        matrix[node[:, :, None], node[:, None, :]] = joint - self.products
        np.fill_diagonal(matrix, 0.0)
        np.fill_diagonal(matrix, -matrix.sum(axis=1))
        return matrix


@dataclass(frozen=True, eq=False)
class Tilted:
    """Category probabilities at the tilts, ``[block, column, ...]``.

    ``chance[..., x]`` of the category x; ``above[..., k - 1]`` of x >= k and ``below`` of x < k;
    ``log_zero`` of the category 0.
    """

    chance: FloatArray
    above: FloatArray
    below: FloatArray
    log_zero: FloatArray


@dataclass(frozen=True, eq=False)
class BatchPlan:
    """Batches of persons, and the thresholds at which their tilts are right."""

    batches: tuple[AbilityBatch, ...]
    threshold: FloatArray
    deviation: float

    @cached_property
    def cheap(self) -> bool:
        """Second derivatives cost hardly more than gradients."""
        pairs = sum(batch.products * batch.column.shape[1] ** 2 for batch in self.batches)
        return bool(pairs * self.threshold.shape[1] ** 2 < CHEAP_PAIRS)

    def serves(self, threshold: FloatArray) -> bool:
        """Say whether the tilts are good enough elsewhere: no score moved by its deviation."""
        usable = np.isfinite(threshold)
        moved = threshold[usable] - self.threshold[usable]
        return bool(np.ptp(moved) * self.deviation < 2 * SHARED)


def evaluate_conditional(
    plan: BatchPlan, threshold: FloatArray, *, information: bool = True
) -> ConditionalSums:
    """Sum the normalising part and its derivatives over all persons."""
    worth = not plan.cheap and threshold.size <= SHARED_NODES
    threads = thread_count() if worth else 1
    parts = [plan.batches[i::threads] for i in range(threads) if plan.batches[i::threads]]

    def add(batches: tuple[AbilityBatch, ...]) -> ConditionalSums:
        sums = ConditionalSums.zeros(*threshold.shape, information=information)
        for batch in batches:
            add_batch(sums, batch, threshold)
        return sums

    if len(parts) <= 1:
        return add(plan.batches)
    with one_blas_thread():
        first, *others = map_tasks(add, parts)
    for thread_sums in others:
        first.add(thread_sums)
    return first


def add_batch(sums: ConditionalSums, batch: AbilityBatch, threshold: FloatArray) -> None:
    """Add persons to the sums.

    Parameters
    ----------
    sums
        Changed in place.
    batch
        Persons with scores between the lowest and the highest, exclusive.
    threshold
        ``[item, step]``; infinite beyond an item's steps.
    """
    tilted, log_mass, (wave, turn, inverse), moved = _find_law(batch, threshold)
    shift = batch.score * batch.tilt[:, None] + batch.total(tilted.log_zero)
    sums.log_norm += float((batch.persons * (log_mass - shift)).sum())
    _add_expected(sums, batch, tilted, moved)
    if sums.covariance is not None:
        _add_covariance(sums.covariance, batch, (wave, _deviations(tilted, turn, inverse), moved))
        if sums.products.shape[1] > 1:
            _add_products(sums.products, batch, tilted.above[:, None] + moved)


def expect_rows(batch: AbilityBatch, threshold: FloatArray) -> FloatArray:
    """Return how many answers at or above a step each row has, ``[block, row, column, step]``."""
    tilted, _, _, moved = _find_law(batch, threshold)
    above = tilted.above[:, None]
    return np.asarray(
        moved + (above if batch.answered is None else batch.answered[..., None] * above)
    )


def _find_law(
    batch: AbilityBatch, threshold: FloatArray
) -> tuple[Tilted, FloatArray, tuple[ComplexArray, ComplexArray, ComplexArray], FloatArray]:
    """Return the law given the scores: at the tilts, the scores' log-probabilities there, waves.

    Waves are weights of angles, turns of categories and one over the items' factors; last comes how
    far given the score the nodes' probabilities are from those at the tilt.
    """
    columns = threshold[batch.column]
    tilted = tilt_categories(columns, batch.tilt)
    points, angle, weight = _choose_angles(batch, columns, tilted)
    # ``exp(i x a) - 1`` for x = 1, ..., steps, ``[block, angle, step]``; near zero exact.
    steps = threshold.shape[1]
    power = angle[:, :, None] * np.arange(1, steps + 1)
    turn = np.asarray(-2 * np.sin(power / 2) ** 2 + 1j * np.sin(power))
    factor = 1.0 + _weighted(turn, tilted.chance[:, None, :, 1:])
    # Exactly zero at isolated angles only; then the next double serves as well.
    factor[factor == 0] = np.finfo(np.float64).tiny
    wave = weight[:, None, :] * _characteristic(batch, factor, angle)
    mass = wave.real.sum(axis=2)
    wave /= mass[:, :, None]
    used = np.abs(wave).max(axis=(0, 1)) > NEGLIGIBLE
    used[0] = False  # at the angle zero nothing deviates
    wave, turn, inverse = wave[:, :, used], turn[:, used], 1.0 / factor[:, used]
    moved = _shift_chances(batch, tilted, (wave, turn, inverse))
    return tilted, np.log(mass / points[:, None]), (wave, turn, inverse), moved


def tilt_categories(threshold: FloatArray, tilt: FloatArray) -> Tilted:
    """Find the probabilities of categories at an ability for each block.

    Parameters
    ----------
    threshold
        ``[block, column, step]``, or one block for all; infinite beyond an item's steps.
    tilt
        ``[block]``.
    """
    steps = threshold.shape[2]
    # Categories stand in front: loops over a short last axis are slow.
    log_odds = np.zeros((steps + 1, len(tilt), threshold.shape[1]))
    for k in range(steps):
        np.subtract(log_odds[k] + tilt[:, None], threshold[:, :, k], out=log_odds[k + 1])
    top = log_odds.max(axis=0)
    chance = np.exp(log_odds - top)
    norm = chance.sum(axis=0)
    chance /= norm
    above = np.cumsum(chance[:0:-1], axis=0)[::-1]
    below = np.cumsum(chance[:-1], axis=0)
    log_zero = -(top + np.log(norm))
    chance, above, below = (table.transpose(1, 2, 0) for table in (chance, above, below))
    return Tilted(chance, above, below, log_zero)


def _choose_angles(
    batch: AbilityBatch, threshold: FloatArray, tilted: Tilted
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """How many angles on the circle, ``[block]``; those with a weight, ``[block, angle]``."""
    mean, variance = _measure_scores(batch, tilted.above)
    off = np.minimum((mean - batch.score) ** 2 / variance, 80.0)
    digits = LOG_TOL + np.log1p(3 * np.sqrt(variance)) + off / 2
    tail = _bound_tails(batch, threshold, (tilted, variance, digits))
    # Odd, so that the angle pi, where a factor may vanish, is none of them.
    points = (np.floor(tail.max(axis=1)) + 1).astype(np.int64) | 1
    reach = (points - 1) // 2
    if threshold.shape[2] == 1:
        # For right and wrong |z|^2 = 1 - 2 p q (1 - cos a), so the product is below
        # exp(-variance (1 - cos a)).
        sine = np.sqrt(np.minimum((digits / (2 * variance)).max(axis=1), 1.0))
        reach = np.minimum(reach, np.floor(np.arcsin(sine) * points / np.pi))
    number = np.arange(int(reach.max()) + 1)
    angle = 2 * np.pi * number / points[:, None]
    # The sum is real: angles below the axis mirror those above it.
    weight = np.where(number == 0, 1.0, 2.0) * (number <= reach[:, None])
    return points.astype(np.float64), angle, weight


def _measure_scores(batch: AbilityBatch, above: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the scores at the tilts, ``[block, row]``."""
    mean = above.sum(axis=2)
    weight = 2.0 * np.arange(above.shape[2]) + 1
    spread = (above * weight).sum(axis=2) - mean**2
    return batch.total(mean), np.maximum(batch.total(spread), SMALL_VARIANCE)


def _bound_tails(
    batch: AbilityBatch, threshold: FloatArray, parts: tuple[Tilted, FloatArray, FloatArray]
) -> FloatArray:
    """Distance from the score beyond which scores have probability below exp(-digits).

    Chernoff: P(S >= r + x) <= E exp(s S - s (r + x)) for every s > 0; the moment generating
    function is a quotient of the probabilities of zero at two abilities. For a bell the best s is
    that of its standard deviation.
    """
    tilted, variance, digits = parts
    highest = batch.total((tilted.chance[:, :, 1:] > 0).sum(axis=2).astype(np.float64))
    limits = np.stack([highest - batch.score, batch.score])
    if limits.max() > FEW_SCORES:
        best = np.minimum(np.sqrt(2 * digits / variance).min(axis=1), MOST_BEND)
        base = batch.total(tilted.log_zero)
        for limit, s in zip(limits, (best, -best), strict=True):
            log_zero = tilt_categories(threshold, batch.tilt + s).log_zero
            growth = base - batch.total(log_zero) - s[:, None] * batch.score
            np.minimum(limit, (growth + digits) / best[:, None], out=limit)
    return np.asarray(limits.max(axis=0))


def _weighted(turn: ComplexArray, chance: FloatArray) -> ComplexArray:
    """Sum of turns times probabilities over categories: ``[block, angle, column]``."""
    total = turn[:, :, None, 0] * chance[..., 0]
    for x in range(1, turn.shape[2]):
        total += turn[:, :, None, x] * chance[..., x]
    return np.asarray(total)


def _characteristic(batch: AbilityBatch, factor: ComplexArray, angle: FloatArray) -> ComplexArray:
    """Product of the answered items' factors, turned back by the score: ``[block, row, angle]``."""
    back = np.exp(-1j * batch.score[:, :, None] * angle[:, None, :])
    if batch.answered is None:
        return np.asarray(back * factor.prod(axis=2)[:, None])
    is_marked = batch.answered.dtype == bool
    if batch.score.shape[1] == 1 and is_marked:  # logarithms are dear, and would serve this row
        return np.asarray(back * np.where(batch.answered, factor, 1.0).prod(axis=2)[:, None])
    answered = batch.answered.astype(np.float64)
    size = np.matmul(answered, np.log(np.abs(factor)).transpose(0, 2, 1))
    phase = np.matmul(answered, np.angle(factor).transpose(0, 2, 1))
    return np.asarray(back * np.exp(size + 1j * phase))


def _shift_chances(
    batch: AbilityBatch, tilted: Tilted, parts: tuple[ComplexArray, ComplexArray, ComplexArray]
) -> FloatArray:
    """How far the nodes' probabilities given the score are from those at the tilt.

    ``[block, row, column, step]``, zero where not answered.
    """
    wave, turn, inverse = parts
    real, imaginary = np.ascontiguousarray(inverse.real), np.ascontiguousarray(inverse.imag)
    change = []
    for x in range(turn.shape[2]):
        turned = wave * turn[:, None, :, x]
        share = np.matmul(turned.real, real) - np.matmul(turned.imag, imaginary)
        change.append(share * tilted.chance[:, None, :, x + 1])
    out = np.empty((*change[0].shape, len(change)))
    for k in range(len(change)):
        out[..., k] = sum(change[k:]) * tilted.below[:, None, :, k]
        if k:
            out[..., k] -= sum(change[:k]) * tilted.above[:, None, :, k]
    if batch.answered is not None:
        out *= batch.answered[..., None]
    return out


def _add_expected(
    sums: ConditionalSums, batch: AbilityBatch, tilted: Tilted, moved: FloatArray
) -> None:
    weight = np.broadcast_to(batch.persons[:, :, None], moved.shape[:3])
    if batch.answered is not None:
        weight = weight * batch.answered
    expected = tilted.above * weight.sum(axis=1)[..., None]
    expected += (moved * batch.persons[:, :, None, None]).sum(axis=1)
    _scatter_rows(sums.expected, batch.column, expected)


def _deviations(tilted: Tilted, turn: ComplexArray, inverse: ComplexArray) -> ComplexArray:
    """Find what each angle adds to the nodes' probabilities, ``[block, angle, column, step]``."""
    chance, steps = tilted.chance[:, None], turn.shape[2]
    out = np.empty((*inverse.shape, steps), dtype=np.complex128)
    for k in range(steps):
        upper = _weighted(turn[:, :, k:], chance[..., k + 1 :])
        upper *= tilted.below[:, None, :, k]
        if k:
            lower = _weighted(turn[:, :, :k], chance[..., 1 : k + 1])
            upper -= lower * tilted.above[:, None, :, k]
        np.multiply(upper, inverse, out=out[..., k])
    return out


def _scatter_rows(total: FloatArray, column: IndexArray, values: FloatArray) -> None:
    if len(column) == 1:
        total[column[0]] += values.sum(axis=0)
        return
    for k in range(total.shape[1]):
        total[:, k] += np.bincount(
            column.ravel(), weights=values[:, :, k].ravel(), minlength=len(total)
        )


def _add_covariance(
    total: FloatArray, batch: AbilityBatch, parts: tuple[ComplexArray, ComplexArray, FloatArray]
) -> None:
    """Add the covariances of nodes of different items."""
    wave, deviation, moved = parts
    blocks, steps = len(moved), moved.shape[3]
    deviation = deviation.reshape(blocks, 1, deviation.shape[1], -1)
    wave = wave * batch.persons[:, :, None]
    if batch.answered is None:
        # Rows of a block differ in their score only, and their deviations are the same.
        wave = wave.sum(axis=1, keepdims=True)
    waves = np.sqrt(wave)[..., None] * deviation
    if batch.answered is not None:
        waves *= np.repeat(batch.answered, steps, axis=2)[:, :, None]
    waves = waves.reshape(blocks, -1, waves.shape[3])
    moved = (moved * np.sqrt(batch.persons)[:, :, None, None]).reshape(*moved.shape[:2], -1)
    node = (batch.column[:, :, None] * steps + np.arange(steps)).reshape(len(batch.column), -1)
    if len(node) == 1:
        _add_product(total, node[0], (waves, moved))
    else:
        _scatter_products(total, node, (waves, moved))


def _add_product(
    total: FloatArray, node: IndexArray, parts: tuple[ComplexArray, FloatArray]
) -> None:
    """Add one matrix product over all blocks, which have the same columns."""
    waves, moved = parts
    cells: Any = slice(None) if len(node) == len(total) else np.ix_(node, node)
    for part, sign in ((waves.real, 1.0), (waves.imag, -1.0), (moved, -1.0)):
        rows = np.ascontiguousarray(part).reshape(-1, len(node))
        total[cells] += sign * (rows.T @ rows)


def _scatter_products(
    total: FloatArray, node: IndexArray, parts: tuple[ComplexArray, FloatArray]
) -> None:
    """Add a matrix product for each block, at the places of its own columns."""
    waves, moved = parts
    left = np.concatenate([waves.real, waves.imag, moved], axis=1)
    right = np.concatenate([waves.real, -waves.imag, -moved], axis=1)
    product = np.matmul(left.transpose(0, 2, 1), right)
    code = node[:, :, None] * len(total) + node[:, None, :]
    np.add.at(total.reshape(-1), code.ravel(), product.ravel())


def _add_products(total: FloatArray, batch: AbilityBatch, chance: FloatArray) -> None:
    weight = np.broadcast_to(batch.persons[:, :, None], chance.shape[:3])
    if batch.answered is not None:
        weight = weight * batch.answered
    products = np.einsum("brc,brck,brcl->bckl", weight, chance, chance)
    for k in range(total.shape[1]):
        _scatter_rows(total[:, k], batch.column, products[:, :, k])
