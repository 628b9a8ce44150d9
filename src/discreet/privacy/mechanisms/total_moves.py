"""How far one person moves the totals: the squared length of every block, in grid steps.

In: the public shapes of the forms, the steps, the relation. Out: one integer per released block,
an upper bound for every two neighbouring data sets. With w the weight of somebody with q answers
and S the largest ``w^2 q``:

    replace-one   category 2 S, takers 4 S (in half units), persons 1, of several forms 2
    add-remove    contrast w^2 times the q largest (N / (M + 1))^2 M (M + 1), answered S,
                  takers S, persons 1

Moments are affine in every single answer, so the persons that are farthest apart have every answer
at an end of its scale; they are searched over (answers, answers at the top). Rounding, which the
tables bound, is added to the distance. The blocks are summed as if one and the same person moved
all of them farthest. Proof: docs/privacy.md.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil, sqrt

import numpy as np

from discreet.answers.category_totals import bound_rounding
from discreet.privacy.accounting import Neighbours
from discreet.privacy.mechanisms.total_tables import (
    GRID,
    MOMENT_GRID,
    FormShape,
    common_categories,
)
from discreet.types import FloatArray, IndexArray

FEW_POINTS = 2000
"""Up to so many kinds of persons are compared each with each."""

COARSEST, FINEST = 0.1, 1e-4
"""Widths of the boxes in which more of them are put together first."""

FLOAT_ERROR = 1e-9
"""Granted to the search, whose rounding stays below 1e-12 of a moment's length."""


def totals_l2_sensitivity(
    shapes: Sequence[FormShape],
    steps: Sequence[int],
    neighbours: Neighbours,
    released: Collection[str] = ("takers", "persons"),
) -> dict[str, int]:
    """Return the squared length that one person moves each block by, at most.

    ``released`` names the blocks that are not always there.
    """
    longest = max(_longest_weight(shape) for shape in shapes)
    if neighbours is Neighbours.REPLACE_ONE:
        squares = {"category": 2 * longest, "moment": _round_up(farthest_pair(shapes), shapes, 2)}
        more = {"takers": 4 * longest, "persons": min(len(shapes), 2) * GRID**2}
    else:
        contrast = max(_longest_contrast(shape, steps) for shape in shapes)
        squares = {"contrast": contrast, "answered": longest}
        squares["moment"] = _round_up(max(farthest_single(shape) for shape in shapes), shapes, 1)
        more = {"takers": longest, "persons": GRID**2}
    return squares | {name: length for name, length in more.items() if name in released}


def _longest_weight(shape: FormShape) -> int:
    return max(int(w) ** 2 * q for q, w in enumerate(shape.weight.tolist()))


def _longest_contrast(shape: FormShape, steps: Sequence[int]) -> int:
    """Of somebody who answered the items whose categories are most."""
    multiple = common_categories(steps)
    squares = [(multiple // (steps[i] + 1)) ** 2 * steps[i] * (steps[i] + 1) for i in shape.columns]
    total: list[int] = np.cumsum([0, *sorted(squares, reverse=True)]).tolist()
    return max(int(w) ** 2 * total[q] for q, w in enumerate(shape.weight.tolist()))


def _round_up(distance: float, shapes: Sequence[FormShape], persons: int) -> int:
    """Return the square of a distance of moments with the rounding of so many, in steps."""
    off = persons * max(rounding(shape) for shape in shapes)
    return ceil(((distance * MOMENT_GRID) * (1 + FLOAT_ERROR) + off) ** 2 * (1 + FLOAT_ERROR))


@lru_cache(maxsize=64)
def rounding(shape: FormShape) -> float:
    """Return how far a person's rounded moments are from exact ones, at most, in grid steps."""
    entries = range(shape.least, shape.cap + 1)
    bounds = [bound_rounding(shape.round_factors(answered)) for answered in entries]
    errors = [max(column) for column in zip(*bounds, strict=True)]
    errors += [Fraction(1, 2)] if shape.contributing else []
    return sqrt(sum(float(one) ** 2 for one in errors)) * (1 + FLOAT_ERROR)


def farthest_single(shape: FormShape) -> float:
    """Return the longest moments of one person."""
    return sqrt(float((shape.corners() ** 2).sum(axis=1).max()))


def farthest_pair(shapes: Sequence[FormShape]) -> float:
    """Return how far the moments of two persons are apart at most; they may be of two forms."""
    within = max(_farthest_within(shape) for shape in shapes)
    longest = sorted((farthest_single(shape) for shape in shapes), reverse=True)[:2]
    across = sqrt(sum(one * one for one in longest)) if len(longest) > 1 else 0.0
    return max(within, across)


@lru_cache(maxsize=64)
def _farthest_within(shape: FormShape) -> float:
    """Remembered: a plan asks at many values of epsilon."""
    return find_diameter(shape.corners())


def find_diameter(points: FloatArray) -> float:
    """Return the largest distance of two points, or slightly more where there are very many.

    Points are put together in boxes; boxes that are too close to all others to hold an end of
    the diameter are left out, and the rest is looked at in smaller boxes.
    """
    width, reached, distances = COARSEST, _reach(points), np.full(1, np.inf)
    length = np.sqrt((points**2).sum(axis=1))
    points = points[length + length.max() >= reached]
    while len(points) > FEW_POINTS and width > FINEST:
        box, chosen = _put_in_boxes(points, width)
        distances = _farthest(points[chosen]) + 2 * width * sqrt(points.shape[1])
        points = points[(distances >= reached)[box]]
        width /= 4
    return float(_farthest(points).max() if len(points) <= 4 * FEW_POINTS else distances.max())


def _put_in_boxes(points: FloatArray, width: float) -> tuple[IndexArray, IndexArray]:
    """Return the box of every point, and one of the points in every box."""
    cell = np.floor((points - points.min(axis=0)) / width).astype(np.int64)
    number = np.ravel_multi_index(tuple(cell.T), tuple(cell.max(axis=0) + 1))
    _, chosen, box = np.unique(number, return_index=True, return_inverse=True)
    return box, chosen


def _reach(points: FloatArray) -> float:
    """Return a distance that two points have: from one to the farthest, and on from there."""
    longest, start = 0.0, points[0]
    for _ in range(6):
        apart = ((points - start) ** 2).sum(axis=1)
        start = points[int(apart.argmax())]
        longest = max(longest, float(apart.max()))
    return sqrt(longest) * (1 - FLOAT_ERROR)


def _farthest(points: FloatArray) -> FloatArray:
    """Return each point's distance to the farthest other one."""
    square = (points**2).sum(axis=1)
    squares = [
        (square[i : i + 256, None] + square - 2 * points[i : i + 256] @ points.T).max(axis=1)
        for i in range(0, len(points), 256)
    ]
    return np.asarray(np.sqrt(np.maximum(np.concatenate(squares), 0)))
