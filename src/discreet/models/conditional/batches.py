"""Put persons together for the law of answers given the score, and say beforehand what it costs.

In: patterns of answers. Out: batches for :mod:`discreet.models.conditional.moments`, and seconds.
Persons who answered most items are looked at side by side over all items, so that their second
moments are one matrix product; those at about the same ability share its tables. Persons who
answered few of many items are looked at over their own items only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from discreet.models.conditional import Patterns
from discreet.models.conditional.moments import (
    SHARED,
    SMALL_VARIANCE,
    AbilityBatch,
    BatchPlan,
    expect_rows,
    tilt_categories,
)
from discreet.types import BoolArray, FloatArray, IndexArray, Int64Array

#: Complex numbers per work array, [row, angle, node]: 4 MB.
BATCH_CELLS = 1 << 18


#: At least a person for so many nodes in a batch, as its matrix product has to be added up.
BATCH_NODES = 64


#: Angles with a weight, for sizes of batches.
USUAL_ANGLES = 16


#: Enough to halve any bracket to a small part of a logit.
HALVINGS = 60


#: Standard deviations by which the expected score may miss the score it is meant for.
CLOSE = 0.1


#: Width, in standard deviations, of the neighbouring scores of one pattern in a block.
STACKED = 2.0


#: Pairs of nodes, summed over the blocks of a pattern, that are worth a batch of their own.
OWN_PAIRS = 200_000


#: Ratio of the standard deviations of scores within one class.
ALIKE = 1.2


#: Persons for whom shared tables, which need logarithms, are cheaper than products of each.
WORTH_SHARING = 16


#: Of a whole fit, per combination of answered items and score.
ENTRY_SECONDS = 1e-5


#: Per person and angle, for each node and each pair of nodes: one matrix product.
WIDE_CELL, WIDE_PAIR = 6e-8, 2.4e-10


#: The same with tables of one's own, and with small products added at their places.
NARROW_CELL, NARROW_PAIR = 6e-7, 3e-9


#: How much more items with several steps take: wider scores need more angles, a start from
#: frequencies needs more second derivatives.
STEP_FACTOR = 3.0


#: Per cube of the nodes: factorisations and the covariance matrix.
SOLVE_SECONDS = 3e-10


@dataclass(frozen=True, eq=False)
class Entries:
    """Informative combinations of answered items and score, with a tilt for each."""

    pattern: Int64Array
    score: FloatArray
    persons: FloatArray
    tilt: FloatArray
    deviation: FloatArray

    def __getitem__(self, chosen: IndexArray | BoolArray) -> Entries:
        return Entries(
            self.pattern[chosen],
            self.score[chosen],
            self.persons[chosen],
            self.tilt[chosen],
            self.deviation[chosen],
        )


def plan_batches(patterns: Patterns, threshold: FloatArray) -> BatchPlan:
    """Put persons together, and find an ability for each batch.

    Parameters
    ----------
    patterns
        The persons' answered items and scores.
    threshold
        ``[item, step]``, infinite beyond an item's steps.
    """
    _, entries = _find_entries(patterns, threshold)
    wide = _is_wide(patterns, threshold.shape[1])[entries.pattern]
    batches = [*_wide_batches(patterns, entries[wide], threshold.shape[1])]
    batches += _narrow_batches(patterns, entries[~wide], threshold.shape[1])
    return BatchPlan(tuple(batches), threshold, float(entries.deviation.max(initial=0.0)))


def expect_entries(patterns: Patterns, threshold: FloatArray) -> FloatArray:
    """Return how many answers at or above a step each entry has, ``[entry, item, step]``.

    Steps that an item does not have are infinite or NaN.
    """
    threshold = np.where(np.isnan(threshold), np.inf, threshold)
    chosen, entries = _find_entries(patterns, threshold)
    answered = patterns.answered_by(patterns.pattern)[:, :, None]
    is_highest = (patterns.score > 0) & ~np.isin(np.arange(len(patterns.score)), chosen)
    out = np.asarray(answered * is_highest[:, None, None] * np.isfinite(threshold), np.float64)
    column = np.arange(patterns.n_items)[None, :]
    for part in _chunks(np.arange(len(chosen)), threshold.size):
        some, rows = entries[part], answered[chosen[part], None, :, 0]
        about = rows, some.score[:, None], some.persons[:, None], some.tilt
        out[chosen[part]] = expect_rows(AbilityBatch(column, *about), threshold)[:, 0]
    return out


def _find_entries(patterns: Patterns, threshold: FloatArray) -> tuple[IndexArray, Entries]:
    """Find the entries with a score between the lowest and the highest, and their tilts."""
    highest = patterns.highest(np.isfinite(threshold).sum(axis=1))
    chosen = np.flatnonzero(
        np.asarray((patterns.score > 0) & (patterns.score < highest[patterns.pattern]))
    )
    pattern = patterns.pattern[chosen]
    score = patterns.score[chosen].astype(np.float64)
    tilt, deviation = np.zeros(len(chosen)), np.ones(len(chosen))
    lengths = patterns.lengths[pattern]
    for length in np.unique(lengths):
        for part in _chunks(np.flatnonzero(lengths == length), int(length) * threshold.shape[1]):
            items = patterns.items_of(pattern[part], int(length))
            tilt[part], deviation[part] = find_tilt(threshold[items], score[part])
    persons = patterns.persons[chosen].astype(np.float64)
    return chosen, Entries(pattern, score, persons, tilt, deviation)


def conditional_work(patterns: Patterns, steps: int = 1) -> float:
    """Foretell the seconds that conditional likelihood takes on one core, from patterns alone.

    Parameters
    ----------
    patterns
        The persons' answered items and scores.
    steps
        Most steps of an item.
    """
    entries = patterns.pattern[(patterns.score > 0) & (patterns.lengths[patterns.pattern] > 1)]
    each = ENTRY_SECONDS + np.minimum(*_route_seconds(patterns, steps))
    each *= 1.0 if steps == 1 else STEP_FACTOR
    solving = SOLVE_SECONDS * (patterns.n_items * steps) ** 3
    return float(each[entries].sum() + solving)


def _route_seconds(patterns: Patterns, steps: int) -> tuple[FloatArray, FloatArray]:
    """Seconds of a fit for one score of each pattern, over all items and over its own items."""
    all_nodes, own_nodes = float(patterns.n_items * steps), patterns.lengths * float(steps)
    angles = np.minimum(own_nodes / 2 + 1, USUAL_ANGLES)
    # About three classes of abilities for each standard deviation of the score share tables.
    shared = len(patterns.score) > 3 * WORTH_SHARING * np.sqrt(all_nodes)
    cell = WIDE_CELL if shared else NARROW_CELL
    wide = angles * (cell * all_nodes + WIDE_PAIR * all_nodes**2)
    narrow = angles * (NARROW_CELL * own_nodes + NARROW_PAIR * own_nodes**2)
    if patterns.repeats:  # blocks of one pattern know an item once
        narrow = np.full_like(narrow, np.inf)
    # Scores of one pattern that stand in one block, at a usual deviation.
    entries = np.bincount(patterns.pattern, minlength=len(own_nodes))
    together = np.clip(0.4 * STACKED * np.sqrt(own_nodes), 1, np.maximum(entries, 1))
    return wide, narrow / together


def _is_wide(patterns: Patterns, steps: int) -> BoolArray:
    wide, narrow = _route_seconds(patterns, steps)
    return np.asarray(wide < narrow)


def _chunks(positions: IndexArray, nodes: int) -> Iterator[IndexArray]:
    size = max(1, BATCH_CELLS // (USUAL_ANGLES * nodes), nodes // BATCH_NODES)
    for start in range(0, len(positions), size):
        yield positions[start : start + size]


def find_tilt(threshold: FloatArray, score: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ability at which the expected score is about ``score``, and its standard deviation there.

    Parameters
    ----------
    threshold
        ``[row, item, step]``; infinite beyond an item's steps.
    score
        ``[row]``, between the lowest and the highest.

    It only has to be in the right region: Newton's method inside a bracket, halved where Newton
    leaves it.
    """
    usable = np.isfinite(threshold)
    nodes = usable.sum(axis=(1, 2))
    reach = np.log(nodes) + 2.0
    low = np.where(usable, threshold, np.inf).min(axis=(1, 2)) - reach
    high = np.where(usable, threshold, -np.inf).max(axis=(1, 2)) + reach
    centre = np.where(usable, threshold, 0.0).sum(axis=(1, 2)) / nodes
    tilt = np.clip(centre + np.log(score / (nodes - score)), low, high)
    weight = 2.0 * np.arange(threshold.shape[2]) + 1
    for _ in range(HALVINGS):
        above = tilt_categories(threshold, tilt).above
        mean = above.sum(axis=2)
        variance = np.maximum(((above * weight).sum(axis=2) - mean**2).sum(axis=1), SMALL_VARIANCE)
        excess = mean.sum(axis=1) - score
        if (np.abs(excess) < CLOSE * np.sqrt(variance)).all():
            break
        low, high = np.where(excess > 0, low, tilt), np.where(excess > 0, tilt, high)
        moved = tilt - excess / variance
        tilt = np.where((moved > low) & (moved < high), moved, (low + high) / 2)
    return tilt, np.sqrt(variance)


def _wide_batches(patterns: Patterns, entries: Entries, steps: int) -> Iterator[AbilityBatch]:
    """Persons over all items: in classes that share a tilt, or each at an own one."""
    nodes, column = patterns.n_items * steps, np.arange(patterns.n_items)[None, :]
    kind = np.floor(np.log(entries.deviation) / np.log(ALIKE))
    tilt_class = np.floor(entries.tilt * ALIKE**kind / SHARED)
    _, group, size = np.unique(
        np.stack([kind, tilt_class]), axis=1, return_inverse=True, return_counts=True
    )
    order = np.argsort(group.reshape(-1), kind="stable")
    alone = []
    for start, stop in zip(np.cumsum(size) - size, np.cumsum(size), strict=True):
        if stop - start < WORTH_SHARING:
            alone.append(order[start:stop])
            continue
        for part in _chunks(order[start:stop], nodes):
            some, answered = entries[part], patterns.answered_by(entries.pattern[part])
            tilt = np.array([some.tilt.mean()])
            yield AbilityBatch(column, answered[None], some.score[None], some.persons[None], tilt)
    for part in _chunks(np.concatenate([*alone, np.zeros(0, np.intp)]), nodes):
        some, answered = entries[part], patterns.answered_by(entries.pattern[part])[:, None]
        yield AbilityBatch(column, answered, some.score[:, None], some.persons[:, None], some.tilt)


def _narrow_batches(patterns: Patterns, entries: Entries, steps: int) -> Iterator[AbilityBatch]:
    """Persons over their own items: neighbouring scores of a pattern in one block."""
    # Give numbers to blocks of neighbouring scores of one pattern, no wider than STACKED.
    fresh = np.diff(entries.pattern, prepend=-1) != 0
    step = np.diff(entries.score, prepend=0.0) / entries.deviation
    distance = np.cumsum(np.where(fresh, 0.0, step))
    distance -= np.maximum.accumulate(np.where(fresh, distance, 0.0))
    number = np.floor(distance / STACKED)
    block = np.asarray(np.cumsum(fresh | (np.diff(number, prepend=0.0) != 0)) - 1)
    first = np.flatnonzero(np.diff(block, prepend=-1))
    pattern, blocks = np.unique(entries.pattern[first], return_counts=True)
    is_large = blocks * (patterns.lengths[pattern] * steps) ** 2 > OWN_PAIRS
    is_large &= blocks > 1
    in_large = np.repeat(is_large, blocks)
    for large_pattern in pattern[is_large]:
        items = patterns.items_of(np.array([large_pattern]), int(patterns.lengths[large_pattern]))
        for part in _chunks(
            np.flatnonzero(entries.pattern[first] == large_pattern), items.size * steps
        ):
            yield _fill_blocks(entries, block, part, items)
    lengths = np.where(in_large, 0, patterns.lengths[entries.pattern[first]])
    for length in np.unique(lengths[~in_large]):
        block_rows = np.flatnonzero(lengths == length)
        # Blocks that need about as many angles stand together.
        block_rows = block_rows[np.argsort(entries.deviation[first[block_rows]], kind="stable")]
        for part in _chunks(block_rows, int(length) * steps):
            items = patterns.items_of(entries.pattern[first[part]], int(length))
            yield _fill_blocks(entries, block, part, items)


def _fill_blocks(
    entries: Entries, block: IndexArray, chosen: IndexArray, items: IndexArray
) -> AbilityBatch:
    """Put the entries of some blocks in rows; short blocks are filled up with nobody."""
    start, stop = np.searchsorted(block, chosen), np.searchsorted(block, chosen, side="right")
    row = start[:, None] + np.arange(int((stop - start).max()))
    inside = row < stop[:, None]
    row = np.minimum(row, stop[:, None] - 1)
    tilt = (entries.tilt[row] * inside).sum(axis=1) / inside.sum(axis=1)
    return AbilityBatch(items, None, entries.score[row], entries.persons[row] * inside, tilt)
