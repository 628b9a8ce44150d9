"""`totals`: how often each category was chosen, and how persons' scores spread.

In: public parameters and a budget. Out: integer weights of persons, the noise of every block, what
that spends. Released of every form: weighted numbers of answers in each
category, three moments of scores (:mod:`discreet.answers.category_totals`), and where it is not
known that items were given out regardless of ability, how well an item's takers did. Statistics,
sensitivity and proof: docs/privacy.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, sqrt
from typing import Any, ClassVar

import numpy as np

from discreet.answers.category_totals import CategoryTotals
from discreet.errors import BadResponses, BadUsage
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.accounting.gaussian_noise import calibrate_blocks, round_ratio
from discreet.privacy.mechanisms.base import AdditiveMechanism
from discreet.privacy.mechanisms.totals_sensitivity import (
    GRID,
    FormShape,
    common_categories,
    make_job,
    pack_shapes,
    shape_forms,
    totals_l2_sensitivity,
    unpack_shapes,
)
from discreet.privacy.protocol import NoiseCalibration, NoiseLaw, NoiselessValues, Public
from discreet.privacy.wall import add_noise
from discreet.secure import RandomSource
from discreet.types import Int64Array

SHARE = 0.1
"""Of the squared budget, for the moments. From .06 to .2 the error of thresholds changes by less
than 8%."""

PERSONS_SHARE = 0.03
"""Of the squared budget, for numbers of persons that are not public."""

TAKERS_NOISE = 4
"""Noise of how takers did, in half units, against that of an answer: twice as much in units."""

COUNT_NOISE = 2
"""Under add-remove: noise in the direction "answered at all", against that between categories."""


@dataclass(frozen=True, eq=False)
class Summed:
    """Exact sums by name, and the job that made them. Confidential."""

    job: CategoryTotals
    sums: Mapping[str, Int64Array]

    @property
    def persons(self) -> int:
        """How many persons were looked at."""
        return int(self.sums["persons"])


@dataclass(frozen=True)
class Totals(AdditiveMechanism):
    """Discrete Gaussian noise on totals of categories and on moments of scores.

    Attributes
    ----------
    answers
        Typical number of answers per person, known in advance; by default the cap. Who answers
        more has a smaller weight, so that a cap far above it costs little.
    share
        Of the squared budget, for the moments.
    """

    takes_steps: ClassVar[bool] = True
    takes_forms: ClassVar[bool] = True

    name: str = "totals"
    answers: float | None = None
    share: float = SHARE

    def __post_init__(self) -> None:
        if not 0 < self.share < 1 - PERSONS_SHARE:
            raise BadUsage(
                f"share, the part of the squared budget that the moments get, must be above 0 and "
                f"below {1 - PERSONS_SHARE}, found {self.share}"
            )
        if self.answers is not None and not 1 <= self.answers < inf:
            raise BadUsage(
                f"answers, the typical number of answers per person, must be at least 1, "
                f"found {self.answers}"
            )

    def calibrate(self, public: Public, budget: Budget, source: RandomSource) -> NoiseCalibration:  # noqa: ARG002
        """Find the least noise that keeps the budget."""
        _check_design(public)
        typical = Fraction(self.answers or public.max_answers).limit_denominator(1000)
        shapes = shape_forms(public, typical)
        sensitivity = totals_l2_sensitivity(
            shapes, public.steps, public.neighbours, _name_blocks(public)
        )
        ratios = self._share_out(sensitivity, public)
        scale, spend = calibrate_blocks(
            [tuple(sensitivity.values())],
            tuple(ratios.values()),
            budget,
            coordinates=_count_cells(shapes, public),
            mechanism=self.name,
        )
        laws = {name: NoiseLaw("gaussian", scale * ratio) for name, ratio in ratios.items()}
        return NoiseCalibration(laws, spend, settings={"grid": GRID, "forms": pack_shapes(shapes)})

    def _share_out(self, sensitivity: dict[str, int], public: Public) -> dict[str, Fraction]:
        """Return the noise of every block against that of the first."""
        unit = 1 if "category" in sensitivity else common_categories(public.steps)
        count = COUNT_NOISE * sqrt(max(public.steps) + 1) / unit
        ratios = {
            "category": 1.0,
            "contrast": 1.0,
            "answered": count,
            "takers": TAKERS_NOISE / unit,
        }
        ratios = {name: ratio for name, ratio in ratios.items() if name in sensitivity}
        shares = {"moment": self.share, "persons": PERSONS_SHARE}
        shares = {name: share for name, share in shares.items() if name in sensitivity}
        total = sum(sensitivity[name] / ratio**2 for name, ratio in ratios.items()) / (
            1 - sum(shares.values())
        )
        roots = {name: sqrt(sensitivity[name] / (share * total)) for name, share in shares.items()}
        return {name: round_ratio({**ratios, **roots}[name]) for name in sensitivity}

    def job(self, public: Public, calibration: NoiseCalibration) -> CategoryTotals:
        """Return what is summed over persons."""
        return make_job(
            public.steps,
            tuple(unpack_shapes(public, calibration.settings["forms"])),
            has_takers="takers" in calibration.laws,
            is_complete=public.design == "complete",
        )

    def count(self, answers: Any, public: Public, calibration: NoiseCalibration) -> Summed:
        """Sum over persons, in one pass. Confidential."""
        job = self.job(public, calibration)
        return Summed(job, job.read(answers.reduce(job)))

    def prepare(
        self, answers: Any, public: Public, calibration: NoiseCalibration
    ) -> NoiselessValues:
        """Sum, and refuse persons who do not fit the design; the wall's noise comes later."""
        counts = self.count(answers, public, calibration)
        _check_forms(counts.sums, public)
        cells = self.cells(counts, calibration)
        return add_noise(cells, calibration, self, persons=counts.persons)

    def cells(self, counts: Summed, calibration: NoiseCalibration) -> dict[str, Int64Array]:
        """Return every number that gets noise. Confidential."""
        numbers = {**counts.sums, "persons": counts.sums["members"] * GRID}
        if "contrast" in calibration.laws:
            category = counts.sums["category"]
            numbers["contrast"], numbers["answered"] = _split_counts(counts.job, category)
        return {name: numbers[name] for name in calibration.laws}


def _name_blocks(public: Public) -> list[str]:
    """Say which blocks are released that are not always there.

    The number of persons with answers is public where it is that of the data, which names them all.
    """
    blocks = ["takers"] if public.design == "unknown" else []
    fixed = public.is_fixed and public.design != "complete"
    is_known = public.neighbours is Neighbours.REPLACE_ONE and len(public.forms) < 2 and not fixed
    return blocks if is_known else [*blocks, "persons"]


def _check_design(public: Public) -> None:
    """Refuse a cap that takes answers away where everybody is said to answer everything."""
    longest = max(map(len, public.forms), default=len(public.items))
    if public.design == "complete" and public.max_answers < longest:
        raise BadUsage(
            "design='complete' says that everybody answers every item of a form, and the cap of "
            f"{public.max_answers} takes answers from those with {longest} items; leave "
            "max_answers out, or say design='random' or 'unknown' (--item-selection)"
        )


def _check_forms(sums: Mapping[str, Int64Array], public: Public) -> None:
    """Refuse persons whose answers, after the cap, do not fit the design; for the steward's eyes.

    The cap is drawn before, so somebody with more answers than it may fit by chance, or not.
    """
    misfits = int(sums["misfits"])
    capped = f"after the cap of {public.max_answers}"
    if misfits and public.design == "complete":
        items = "every item of a form" if public.forms else "every listed item"
        raise BadResponses(
            f"design='complete' says that everybody answered {items}, and {misfits:,} people "
            f"have answers to others or fewer, {capped}. Say design='random' or 'unknown' "
            "(--item-selection), or take them out of the data first"
        )
    if misfits:
        raise BadResponses(
            f"{misfits:,} people have answers to items that are not all in one form, {capped}. The "
            "forms are named in advance and everybody has one of them: correct the forms, or leave "
            "them out"
        )
    if public.design == "complete" and public.persons is not None:
        silent = public.persons - int(sums["persons"]) + int(sums["silent"])
        if silent:
            raise BadResponses(
                f"design='complete' says that all {public.persons:,} people answered, and "
                f"{silent:,} have no answers. Say design='random' or 'unknown' (--item-selection)"
            )


def _count_cells(shapes: Sequence[FormShape], public: Public) -> int:
    """Return how many numbers are released, at most."""
    items = [column for shape in shapes for column in shape.columns]
    categories = sum(public.steps[column] + 1 for column in items)
    return categories + 2 * len(items) + 5 * len(shapes)


def _split_counts(job: CategoryTotals, category: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return how categories differ, and how often items were answered, instead of both together.

    Differences are multiplied with a number that every item's number of categories divides, so
    that they are whole.
    """
    steps = np.array([job.cells.steps[i] for form in job.forms for i in form.columns])
    first = np.cumsum(steps + 1) - (steps + 1)
    answered = np.add.reduceat(category, first)
    multiple = common_categories(job.cells.steps)
    mean = np.repeat(multiple // (steps + 1) * answered, steps + 1)
    return multiple * category - mean, answered
