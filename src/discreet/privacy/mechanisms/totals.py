"""`totals`: how often each category was chosen, and how persons' scores spread.

In: public parameters and a budget. Out: integer weights of persons, the noise of every block, what
that spends. Released of every form: weighted numbers of answers in each
category, three moments of scores (:mod:`discreet.answers.category_totals`), and where it is not
known that items were given out regardless of ability, how well an item's takers did.

Sensitivity: one integer per released block, an upper bound of the squared L2 sensitivity in grid
steps for every two neighbouring data sets. The tables with which persons are summed are rounded
from exact fractions, so that they are the same wherever they are made. With w the weight of
somebody with q answers and S the largest ``w^2 q``:

    replace-one   category 2 S, takers 4 S (in half units), persons 1, of several forms 2
    add-remove    contrast w^2 times the q largest (N / (M + 1))^2 M (M + 1), answered S,
                  takers S, persons 1

Moments are affine in every single answer, so the persons that are farthest apart have every answer
at an end of its scale; they are searched over (answers, answers at the top). Rounding, which the
tables bound, is added to the distance. The blocks are summed as if one and the same person changed
all of them most. Proof: docs/privacy.md; brute force: tests/privacy/test_totals_sensitivity.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from math import ceil, floor, inf, isqrt, lcm, sqrt
from typing import Any, ClassVar

import numpy as np

from discreet.answers.category_totals import (
    MOMENTS,
    PRODUCTS,
    CategoryTotals,
    FormTable,
    bound_rounding,
    round_factors,
)
from discreet.choices import PlainDict, PlainMapping
from discreet.errors import BadResponses, BadUsage
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.accounting.additive_noise import calibrate_blocks, round_ratio
from discreet.privacy.mechanisms.base import AdditiveMechanism
from discreet.privacy.protocol import NoiseCalibration, NoiseLaw, NoiselessValues, Public
from discreet.privacy.wall import add_noise
from discreet.secure import RandomSource
from discreet.types import FloatArray, IndexArray, Int64Array

#: Grid steps of one answer.
GRID = 2**20

#: Grid steps of a moment of one person; rounding a contribution costs 1/50,000 of its length.
MOMENT_GRID = 2**16

SCALE_PARTS = 256
#: How much the spread, the skewness and the kurtosis of abilities weigh against each other.
MOMENT_SCALES = (Fraction(1), Fraction(7, 10), Fraction(1, 2))

#: Half the range from which on a moment weighs less: few answers make T3 and T4 long (T4 reaches
#: 11.7 at four answers), and T2, which says most about abilities, would pay for it.
WIDEST = (Fraction(2), Fraction(5, 4), Fraction(3, 2))

#: How much the number of those in the moments weighs; under replace-one it costs nothing, because
#: the persons that are farthest apart have the same number of answers.
CONTRIBUTING_SCALE = {Neighbours.REPLACE_ONE: Fraction(1), Neighbours.ADD_REMOVE: Fraction(7, 10)}


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
        weighted, largest = (int(self.weight[number]) * number for number in (answered, self.cap))
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
    return [_shape_form(columns, public, typical) for columns in list_columns(public)]


def list_columns(public: Public) -> list[tuple[int, ...]]:
    """Return the items of every form, as places on the item list."""
    column_of = {item: column for column, item in enumerate(public.items)}
    return [tuple(column_of[item] for item in form) for form in public.forms or (public.items,)]


def _shape_form(columns: tuple[int, ...], public: Public, typical: Fraction) -> FormShape:
    cap = min(public.max_answers, len(columns))
    least = min(cap, min(max(cap // 2, MOMENTS + 1), 2 * MOMENTS))
    bare = FormShape(columns, cap, min(typical, Fraction(cap)), least)
    is_complete = public.design == "complete"
    contributing = Fraction(0) if is_complete else CONTRIBUTING_SCALE[public.neighbours]
    scales = _choose_scales(bare, min(MOMENTS, least - 1))
    return replace(bare, scales=scales, contributing=int(contributing * SCALE_PARTS))


def _choose_scales(bare: FormShape, moments: int) -> tuple[int, ...]:
    unit = replace(bare, scales=(SCALE_PARTS,) * moments).corners()[:, :moments]
    half = (unit.max(axis=0) - unit.min(axis=0)) / 2
    weighed = zip(MOMENT_SCALES, WIDEST, half, strict=False)
    return tuple(int(SCALE_PARTS * scale * min(1.0, wide / own)) for scale, wide, own in weighed)


@lru_cache(maxsize=64)
def make_totals_job(
    steps: tuple[int, ...], shapes: tuple[FormShape, ...], *, has_takers: bool, is_complete: bool
) -> CategoryTotals:
    """Return what is summed over persons; remembered, because audits and bootstraps sum often."""
    tables = [one.table(has_takers=has_takers, is_complete=is_complete) for one in shapes]
    return CategoryTotals(steps, tables)


def pack_shapes(shapes: Sequence[FormShape]) -> list[PlainDict]:
    """Return shapes as plain values, for the settings of a release; the items are public."""
    names = ("cap", "typical", "least", "scales", "contributing")
    rows = [{name: getattr(shape, name) for name in names} for shape in shapes]
    return [{**row, "typical": str(row["typical"]), "scales": list(row["scales"])} for row in rows]


def unpack_shapes(public: Public, packed: Sequence[PlainMapping]) -> list[FormShape]:
    """Return the shapes of a release from its settings."""
    return [
        FormShape(
            columns, **{**one, "typical": Fraction(one["typical"]), "scales": tuple(one["scales"])}
        )
        for columns, one in zip(list_columns(public), packed, strict=True)
    ]


def common_categories(steps: Sequence[int]) -> int:
    """Return a number that every item's number of categories divides."""
    return lcm(*(step + 1 for step in steps))


# --- sensitivity ---------------------------------------------------------------------------------


#: Up to so many kinds of persons are compared each with each.
FEW_POINTS = 2000

#: Widths of the boxes in which more of them are put together first.
COARSEST, FINEST = 0.1, 1e-4

#: Granted to the search, whose rounding stays below 1e-12 of a moment's length.
FLOAT_ERROR = 1e-9


def totals_l2_sensitivity(
    shapes: Sequence[FormShape],
    steps: Sequence[int],
    neighbours: Neighbours,
    released: Collection[str] = ("takers", "persons"),
) -> dict[str, int]:
    """Return the squared L2 sensitivity of each block.

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


# --- the mechanism --------------------------------------------------------------------------------

#: Of the squared budget, for the moments. From .06 to .2 the error of thresholds changes by less
#: than 8%.
SHARE = 0.1

#: Of the squared budget, for numbers of persons that are not public.
PERSONS_SHARE = 0.03

#: Noise of how takers did, in half units, against that of an answer: twice as much in units.
TAKERS_NOISE = 4

#: Under add-remove: noise in the direction "answered at all", against that between categories.
COUNT_NOISE = 2


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
        check_design(public)
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
        ratios = {"category": 1.0, "contrast": 1.0, "answered": count}
        ratios["takers"] = TAKERS_NOISE / unit
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
        return make_totals_job(
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
        check_design_kept(counts.sums, public)
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


def check_design(public: Public) -> None:
    """Refuse a cap that takes answers away where everybody is said to answer everything."""
    longest = max(map(len, public.forms), default=len(public.items))
    if public.design == "complete" and public.max_answers < longest:
        raise BadUsage(
            "design='complete' says that everybody answers every item of a form, and the cap of "
            f"{public.max_answers} takes answers from those with {longest} items; leave "
            "max_answers out, or say design='random' or 'unknown' (--item-selection)"
        )


def check_design_kept(sums: Mapping[str, Int64Array], public: Public) -> None:
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
