"""Elementary symmetric functions, their logarithms and derivatives, without subtractions.

In: patterns of answered items with the number of persons at each score, and difficulties. Out:
the conditional log-likelihood's normalising part, its gradient and its second derivatives.

With probabilities ``p = expit(t - b)`` at any ability t, the generating polynomial
``prod (q_i + p_i x)`` has the distribution of the score as coefficients, and its ratios are
those of the elementary symmetric functions, whatever t is. Every quantity below is a sum of
products of such probabilities:

- leaving an item out: the product over all others, built up factor by factor;
- leaving two items out: only the sum over scores, weighted by persons / probability, is
  needed. The weights are carried back through the items (the transposed recursion), so that
  all pairs cost as much as one product per item: k^3 operations for k items, not k^4.

Nothing is subtracted, so every number is accurate to rounding (the difference algorithm, and
leaving items out by division, are not; Fischer 1974, Verhelst et al. 1984). Where the scores
of one pattern are so far apart that a probability leaves the range of doubles, they are
computed in separate bands, each at its own t.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit

from discreet.jit import worth_compiling
from discreet.types import FloatArray, IndexArray

TINY = 1e-150
"""Smallest probability of a score that is used. What underflows in a sum of products with
weights up to 1 / TINY is below 1e-150 of it."""
CHUNK_CELLS = 1 << 20
"""Numbers per work array, [pattern, item, score]: 8 MB."""
PLAIN_SECONDS = 4e-9
"""Per pattern and cube of its items, in NumPy."""
HALVINGS = 60
"""Enough to halve any bracket to a small part of a logit."""
CLOSE = 0.05
"""Answers by which the expected score may differ from the score it is meant for."""


@dataclass(eq=False)
class ConditionalSums:
    """Running sums over patterns: log-likelihood part, expected right answers, information."""

    log_norm: float
    expected: FloatArray
    information: FloatArray | None

    @classmethod
    def zeros(cls, m: int, *, information: bool = True) -> ConditionalSums:
        return cls(0.0, np.zeros(m), np.zeros((m, m)) if information else None)


def score_distribution(right: FloatArray, wrong: FloatArray) -> FloatArray:
    """Distribution of the score of independent answers, ``[pattern, score]``.

    Parameters
    ----------
    right, wrong
        Probabilities ``[pattern, item]`` with ``right + wrong = 1``, given separately because
        one minus a small number loses digits.
    """
    c, k = right.shape
    total = np.zeros((c, k + 1))
    total[:, 0] = 1.0
    for j in range(k):
        moved = total[:, : j + 1] * right[:, j : j + 1]
        total[:, : j + 1] *= wrong[:, j : j + 1]
        total[:, 1 : j + 2] += moved
    return total


def log_symmetric(difficulty: npt.ArrayLike) -> FloatArray:
    """Logarithms of the elementary symmetric functions of ``exp(-difficulty)``, order 0 to m.

    Examples
    --------
    >>> import numpy as np
    >>> np.exp(log_symmetric([0.0, 0.0, 0.0])).round(6).tolist()
    [1.0, 3.0, 3.0, 1.0]
    """
    b = np.asarray(difficulty, dtype=np.float64)[None, :]
    k = b.shape[1]
    score = np.arange(1, k)
    inside = np.repeat(b, max(k - 1, 0), axis=0)
    tilt = find_tilt(inside, score.astype(np.float64))[:, None]
    mass = score_distribution(expit(tilt - inside), expit(inside - tilt))
    middle = np.log(mass[np.arange(k - 1), score]) - score * tilt[:, 0]
    middle -= log_expit(inside - tilt).sum(axis=1)
    ends = ([0.0], [-b.sum()]) if k else ([0.0], [])
    return np.concatenate([ends[0], middle, ends[1]])


def find_tilt(b: FloatArray, score: FloatArray) -> FloatArray:
    """Ability at which the expected score is about ``score``, for each row of difficulties.

    It only has to be in the right region; Newton's method inside a bracket, halved where
    Newton leaves it.
    """
    reach = np.log(b.shape[1]) + 2.0
    low, high = b.min(axis=1, initial=np.inf) - reach, b.max(axis=1, initial=-np.inf) + reach
    tilt = (low + high) / 2
    for _ in range(HALVINGS):
        chance = expit(tilt[:, None] - b)
        excess = chance.sum(axis=1) - score
        if (np.abs(excess) < CLOSE).all():
            break
        low, high = np.where(excess > 0, low, tilt), np.where(excess > 0, tilt, high)
        moved = tilt - excess / np.maximum((chance * (1 - chance)).sum(axis=1), 1e-9)
        tilt = np.where((moved > low) & (moved < high), moved, (low + high) / 2)
    return np.asarray(tilt)


def add_patterns(
    sums: ConditionalSums, items: IndexArray, counts: FloatArray, difficulty: FloatArray
) -> None:
    """Add patterns of equal length to the sums.

    Parameters
    ----------
    sums
        Changed in place.
    items
        ``[pattern, answer]``: positions of the answered items.
    counts
        ``[pattern, score]``: persons; zero at the scores 0 and k, which carry no information.
    difficulty
        Of all items.
    """
    k = items.shape[1]
    size = max(1, CHUNK_CELLS // (k * (k + 1)))
    waiting = [
        (items[start : start + size], counts[start : start + size])
        for start in range(0, len(items), size)
    ]
    while waiting:
        items, counts = waiting.pop()
        b = difficulty[items]
        persons = counts.sum(axis=1)
        mean = (counts @ np.arange(k + 1)) / persons
        tilt = find_tilt(b, mean)[:, None]
        right, wrong = expit(tilt - b), expit(b - tilt)
        mass = score_distribution(right, wrong)
        far = ((mass < TINY) & (counts > 0)).any(axis=1)
        if far.any():
            # A band with a single score is centred on it, so this ends.
            low = np.arange(k + 1) <= mean[far, None]
            waiting += [(items[far], counts[far] * low), (items[far], counts[far] * ~low)]
        near = ~far
        if near.any():
            shift = tilt * np.arange(k + 1) + log_expit(b - tilt).sum(axis=1, keepdims=True)
            _add_near(
                sums,
                items[near],
                counts[near],
                (right[near], wrong[near], mass[near], shift[near]),
            )


def _add_near(
    sums: ConditionalSums,
    items: IndexArray,
    counts: FloatArray,
    parts: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
) -> None:
    right, wrong, mass, shift = parts
    used, k = counts > 0, items.shape[1]
    sums.log_norm += float((counts[used] * (np.log(mass[used]) - shift[used])).sum())
    if sums.information is not None and worth_compiling(PLAIN_SECONDS * items.size * k * k):
        from discreet.models.kernels import add_near

        add_near(items, right, wrong, mass, counts, sums.expected, sums.information)
        return
    weight = np.divide(counts, mass, out=np.zeros_like(counts), where=used)
    others, pairs = _leave_out(right, wrong, weight, pairs=sums.information is not None)
    # Probability that an item is right, given the score: [pattern, item, score].
    share = others * right[:, :, None]
    m = len(sums.expected)
    expected = np.matmul(share, weight[:, 1:, None])[:, :, 0]
    sums.expected += np.bincount(items.ravel(), weights=expected.ravel(), minlength=m)
    if sums.information is None or pairs is None:
        return
    share /= np.where(used, mass, 1.0)[:, None, 1:]
    product = np.matmul(share * counts[:, None, 1:], share.transpose(0, 2, 1))
    # Given the score, answers are negatively correlated: what is left is non-negative.
    link = product - pairs
    code = items[:, :, None] * m + items[:, None, :]
    flat = np.bincount(code.ravel(), weights=link.ravel(), minlength=m * m)
    sums.information -= flat.reshape(m, m)


def _leave_out(
    right: FloatArray, wrong: FloatArray, weight: FloatArray, *, pairs: bool
) -> tuple[FloatArray, FloatArray | None]:
    """Leave one item out (all coefficients), and two (summed with weights over scores).

    Returns ``others[pattern, item, t]``: probability of score t on the other items, and
    ``both[pattern, i, j]``: sum over scores r of weight_r times the probability that i and j
    are right and the score is r; zero diagonal.
    """
    c, k = right.shape
    back = _carry_back(right, wrong, weight) if pairs else None
    both = np.zeros((c, k, k)) if pairs else None
    others = np.zeros((c, k, k))
    before = np.zeros((c, k + 1))
    before[:, 0] = 1.0
    for j in range(k):
        p, q = right[:, j, None], wrong[:, j, None]
        if j and back is not None and both is not None:
            # Products over the items before j but i, met by the weights of what follows j.
            meet = np.matmul(others[:, :j, :j], back[:, j + 1, 2 : j + 2, None])[:, :, 0]
            both[:, :j, j] = meet * right[:, :j] * p
        moved = others[:, :j, :j] * p[:, :, None]
        others[:, :j, :j] *= q[:, :, None]
        others[:, :j, 1 : j + 1] += moved
        others[:, j, : j + 1] = before[:, : j + 1]
        moved = before[:, : j + 1] * p
        before[:, : j + 1] *= q
        before[:, 1 : j + 2] += moved
    return others, None if both is None else both + both.transpose(0, 2, 1)


def _carry_back(right: FloatArray, wrong: FloatArray, weight: FloatArray) -> FloatArray:
    """``back[:, j, t]``: expected weight of the final score, having score t before item j."""
    c, k = right.shape
    back = np.zeros((c, k + 1, k + 2))
    back[:, k, : k + 1] = weight
    for j in range(k - 1, -1, -1):
        later: Any = back[:, j + 1]
        back[:, j] = wrong[:, j, None] * later
        back[:, j, :-1] += right[:, j, None] * later[:, 1:]
    return back
