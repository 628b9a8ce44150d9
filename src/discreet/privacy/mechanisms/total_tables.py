"""What one person adds to the totals, as integer tables made from public parameters alone.

In: a form's items, the cap and the typical number of answers. Out: the tables with which
:mod:`discreet.answers.category_totals` sums. Every entry is rounded from an exact fraction, so
that the tables are the same wherever they are made. Proof: docs/privacy.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import floor, isqrt, lcm
from typing import Any

import numpy as np

from discreet.answers.category_totals import (
    MOMENTS,
    PRODUCTS,
    CategoryTotals,
    FormTable,
    round_factors,
)
from discreet.privacy.accounting import Neighbours
from discreet.privacy.protocol import Public
from discreet.types import FloatArray, Int64Array

GRID = 2**20
"""Grid steps of one answer."""

MOMENT_GRID = 2**16
"""Grid steps of a moment of one person; rounding a contribution costs 1/50,000 of its length."""

SCALE_PARTS = 256
MOMENT_SCALES = (Fraction(1), Fraction(7, 10), Fraction(1, 2))
"""How much the spread, the lean and the bunching of abilities weigh against each other."""

WIDEST = (Fraction(2), Fraction(5, 4), Fraction(3, 2))
"""Half the range from which on a moment weighs less: few answers make T3 and T4 long (T4 reaches
11.7 at four answers), and T2, which says most about abilities, would pay for it."""

CONTRIBUTING_SCALE = {
    Neighbours.REPLACE_ONE: Fraction(1),
    Neighbours.ADD_REMOVE: Fraction(7, 10),
}
"""How much the number of those in the moments weighs; under replace-one it costs nothing, because
the persons that are farthest apart have the same number of answers."""


@dataclass(frozen=True)
class FormShape:
    """The public numbers of one form.

    Attributes
    ----------
    columns
        Its items, as places on the item list.
    cap
        Most answers of one person to it.
    typical
        Up to so many answers everybody has the weight 1.
    least
        Fewest answers with which a person enters the moments.
    scales
        Of the moments, in 1/256.
    contributing
        Of the number of those who enter, in 1/256; 0 where it is public.
    """

    columns: tuple[int, ...]
    cap: int
    typical: Fraction
    least: int
    scales: tuple[int, ...] = ()
    contributing: int = 0

    @cached_property
    def weight(self) -> Int64Array:
        """Weight by the number of answers: min(1, sqrt(typical / answers)), rounded down."""
        longer = [isqrt(floor(self.typical * GRID**2 / q)) for q in range(1, self.cap + 1)]
        return np.array([GRID, *(min(GRID, one) for one in longer)], dtype=np.int64)

    def part(self, answered: int) -> Fraction:
        """Return how much of such a person enters the moments, at most about 1."""
        if answered < self.least:
            return Fraction(0)
        weighted, largest = (
            int(self.weight[answered]) * answered,
            int(self.weight[self.cap]) * self.cap,
        )
        return Fraction(weighted, largest)

    def corners(self) -> FloatArray:
        """Return moments and part of everybody whose answers are all at the ends, times the scales.

        Nobody else's are farther apart: moments are affine in every single answer.
        """
        blocks = [np.zeros((1, len(self.scales) + 1))]
        for answered in range(self.least, self.cap + 1):
            moments = corner_moments(answered)[: len(self.scales)]
            rows = np.vstack([moments, np.ones(answered + 1)]).T
            blocks.append(rows * float(self.part(answered)))
        scales = np.array([*self.scales, self.contributing]) / SCALE_PARTS
        return np.asarray(np.vstack(blocks) * scales)

    def table(self, *, has_takers: bool, is_complete: bool) -> FormTable:
        """Return the integer tables; one more entry than the cap, for whoever exceeds it."""
        factors = np.zeros((self.cap + 2, len(self.scales), len(PRODUCTS)), dtype=np.int64)
        for answered in range(self.least, self.cap + 1):
            factors[answered] = self.round_factors(answered)
        parts = [self.part(q) * self.contributing * MOMENT_GRID for q in range(self.cap + 1)]
        contributing = np.array([*(round(part / SCALE_PARTS) for part in parts), 0], dtype=np.int64)
        return FormTable(
            np.array(self.columns),
            np.append(self.weight, 0),
            factors,
            contributing if self.contributing else None,
            has_takers,
            is_complete,
        )

    def round_factors(self, answered: int) -> Int64Array:
        """Return the integer factors of somebody with so many answers."""
        unit = self.part(answered) * MOMENT_GRID / SCALE_PARTS
        return round_factors(answered, [unit * scale for scale in self.scales])


def corner_moments(answered: int) -> FloatArray:
    """Return T2, T3, T4 of somebody with so many answers, of which 0, 1, ... all are at the top.

    Examples
    --------
    >>> corner_moments(2).round(6).tolist()
    [[1.0, -3.0, 1.0]]
    """
    q = float(answered)
    d = 2 * np.arange(answered + 1) - q
    h2 = (d * d - q) / (q * (q - 1))
    moments = [2 * h2 - 1]
    if answered >= 3:
        h3 = (d**3 - 3 * d * q + 2 * d) / (q * (q - 1) * (q - 2))
        moments.append(4 * h3 - 3 * d / q)
    if answered >= 4:
        h4 = d**4 - 6 * d * d * q + 3 * q * q + 8 * d * d - 6 * q
        moments.append(8 * h4 / (q * (q - 1) * (q - 2) * (q - 3)) - 8 * h2 + 1)
    return np.array(moments)


def shape_forms(public: Public, typical: Fraction) -> list[FormShape]:
    """Return the shape of every form; one with all items where there are no forms."""
    column_of = {item: column for column, item in enumerate(public.items)}
    forms = public.forms or (public.items,)
    return [_shape_form(tuple(column_of[i] for i in form), public, typical) for form in forms]


def _shape_form(columns: tuple[int, ...], public: Public, typical: Fraction) -> FormShape:
    cap = min(public.max_answers, len(columns))
    least = min(cap, min(max(cap // 2, MOMENTS + 1), 2 * MOMENTS))
    bare = FormShape(columns, cap, min(typical, Fraction(cap)), least)
    is_complete = public.design == "complete"
    contributing = Fraction(0) if is_complete else CONTRIBUTING_SCALE[public.neighbours]
    scales = _choose_scales(bare, min(MOMENTS, least - 1))
    return FormShape(columns, cap, bare.typical, least, scales, int(contributing * SCALE_PARTS))


def _choose_scales(bare: FormShape, moments: int) -> tuple[int, ...]:
    unit = FormShape(
        bare.columns, bare.cap, bare.typical, bare.least, (SCALE_PARTS,) * moments
    ).corners()[:, :moments]
    half = (unit.max(axis=0) - unit.min(axis=0)) / 2
    weighed = zip(MOMENT_SCALES, WIDEST, half, strict=False)
    return tuple(int(SCALE_PARTS * scale * min(1.0, wide / own)) for scale, wide, own in weighed)


@lru_cache(maxsize=64)
def make_job(
    steps: tuple[int, ...], shapes: tuple[FormShape, ...], *, has_takers: bool, is_complete: bool
) -> CategoryTotals:
    """Return what is summed over persons; remembered, because audits and bootstraps sum often."""
    tables = [one.table(has_takers=has_takers, is_complete=is_complete) for one in shapes]
    return CategoryTotals(steps, tables)


def pack_shapes(shapes: Sequence[FormShape]) -> list[dict[str, Any]]:
    """Return shapes as plain values, for the settings of a release; the items are public."""
    return [
        {
            "cap": one.cap,
            "typical": str(one.typical),
            "least": one.least,
            "scales": list(one.scales),
            "contributing": one.contributing,
        }
        for one in shapes
    ]


def unpack_shapes(public: Public, packed: Sequence[Mapping[str, Any]]) -> list[FormShape]:
    """Return the shapes of a release from its settings."""
    column_of = {item: column for column, item in enumerate(public.items)}
    forms = public.forms or (public.items,)
    return [
        FormShape(
            tuple(column_of[item] for item in form),
            one["cap"],
            Fraction(one["typical"]),
            one["least"],
            tuple(one["scales"]),
            one["contributing"],
        )
        for form, one in zip(forms, packed, strict=True)
    ]


def common_categories(steps: Sequence[int]) -> int:
    """Return a number that every item's number of categories divides."""
    return lcm(*(step + 1 for step in steps))
