"""Thresholds from noisy totals: how often each category was chosen, and how scores spread.

Released totals of forms as numbers for the fit, and of simulated persons in the same form.

In: a release, or made-up answers. Out: :class:`FormTotals`, in units of one answer, with the
covariance of their noise. Nothing here sees real answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.answers.pack import store_codes
from discreet.choices import PlainMapping
from discreet.privacy.mechanisms.totals import (
    GRID,
    MOMENT_GRID,
    SCALE_PARTS,
    FormShape,
    common_categories,
    make_totals_job,
)
from discreet.privacy.protocol import NoiseLaw, Public
from discreet.types import FloatArray, IndexArray, Int8Array


@dataclass(frozen=True, eq=False)
class FormTotals:
    """Released values of one form, in units of one answer, and the covariance of their noise.

    Attributes
    ----------
    columns
        The items of the form, as places in the list of all items.
    category
        ``[own item, category]``: weighted number of answers; 0 beyond an item's steps. As many
        columns as the item with the most steps (of all forms) has categories.
    category_noise
        ``[own item, category, category]``: covariance of the noise; 0 beyond an item's steps.
    moment
        Sums over persons with enough answers of u times T2, T3, T4 of their scores, with the
        constants of these polynomials; one or two entries where tests are short, none where
        nobody can have two answers.
    moment_noise
        Variances.
    contributing, contributing_noise
        Sum of u over the same persons, and the variance of its noise; 0 where it is public.
    takers, takers_noise
        ``[own item]``: sum over takers of weight times (share of the best score - 1/2), without
        any factor; and the variance of the noise of one. None where it was not released.
    persons, persons_noise
        Number of persons, public or noisy, and the variance of its noise.
    max_answers, typical
        Cap on answers of a person, and number of answers up to which a weight is 1.
    complete
        Whether everybody answered every item of the form, as a public statement.
    least_answers
        Fewest answers with which a person enters the moments.
    """

    columns: IndexArray
    category: FloatArray
    category_noise: FloatArray
    moment: FloatArray
    moment_noise: FloatArray
    contributing: float
    contributing_noise: float
    takers: FloatArray | None
    takers_noise: float
    persons: float
    persons_noise: float
    max_answers: int
    typical: float
    complete: bool
    least_answers: int


def read_released_forms(
    public: Public, shapes: Sequence[FormShape], values: PlainMapping, laws: Mapping[str, NoiseLaw]
) -> list[FormTotals]:
    """Return the released values of every form, with the covariance of their noise."""
    variance = {name: law.variance for name, law in laws.items()}
    if "category" in values:
        counts: Iterator[Any] = iter(_split(values["category"] / GRID, _cells(shapes, public)))
        noise = [variance["category"] / GRID**2 * np.eye(step + 1) for step in public.steps]
    else:
        counts = iter(_join_counts(public, values, shapes))
        # The covariance of an item's counts that were put together.
        contrast = variance["contrast"] / (common_categories(public.steps) * GRID) ** 2
        answered = variance["answered"] / GRID**2
        noise = []
        for width in (step + 1 for step in public.steps):
            same = np.full((width, width), 1 / width)
            noise.append(contrast * (np.eye(width) - same) + answered / width * same)
    moments = _split(values["moment"], [_moments(shape) for shape in shapes])
    takers = _split(values.get("takers"), [len(shape.columns) for shape in shapes])
    persons = values.get("persons")
    forms = []
    for number, shape in enumerate(shapes):
        declared = float(public.persons or 0), 0.0
        noisy = None if persons is None else persons[number] / GRID
        number_of = declared if noisy is None else (float(noisy), variance["persons"] / GRID**2)
        sums = FormSums(next(counts), moments[number], takers[number], number_of)
        form = fill_form(sums, shape, public)
        forms.append(_add_noise(form, shape, public, noise, variance))
    return forms


@dataclass(frozen=True, eq=False)
class FormSums:
    """Numbers of one form: cells in units, moments and takers on their grids, persons."""

    cells: FloatArray
    moment: Any
    takers: Any
    persons: tuple[float, float]


def fill_form(sums: FormSums, shape: FormShape, public: Public) -> FormTotals:
    """Return sums in units of one answer, without any noise but that of the number of persons."""
    steps = [public.steps[column] for column in shape.columns]
    widest = max(public.steps) + 1
    has_category = np.arange(widest) <= np.array(steps)[:, None]
    category = np.zeros(has_category.shape)
    category[has_category] = sums.cells
    units = np.array([*shape.scales, shape.contributing or SCALE_PARTS]) / SCALE_PARTS * MOMENT_GRID
    moments = len(shape.scales)
    contributing = sums.persons
    if shape.contributing:
        contributing = float(sums.moment[moments] / units[moments]), 0.0
    return FormTotals(
        columns=np.array(shape.columns),
        category=category,
        category_noise=np.zeros((len(steps), widest, widest)),
        moment=sums.moment[:moments] / units[:moments],
        moment_noise=np.zeros(moments),
        contributing=contributing[0],
        contributing_noise=contributing[1],
        takers=None if sums.takers is None else sums.takers / (2 * GRID),
        takers_noise=0.0,
        persons=sums.persons[0],
        persons_noise=sums.persons[1],
        max_answers=shape.cap,
        typical=float(shape.typical),
        complete=public.design == "complete",
        least_answers=shape.least,
    )


def _add_noise(
    form: FormTotals,
    shape: FormShape,
    public: Public,
    noise: Sequence[FloatArray],
    variance: dict[str, float],
) -> FormTotals:
    """Return a form with the variances of its noise."""
    covariance = form.category_noise.copy()
    for row, column in enumerate(shape.columns):
        width = public.steps[column] + 1
        covariance[row, :width, :width] = noise[column]
    units = np.array([*shape.scales, shape.contributing or SCALE_PARTS]) / SCALE_PARTS * MOMENT_GRID
    moment_noise = variance["moment"] / units**2
    released = shape.contributing > 0
    return replace(
        form,
        category_noise=covariance,
        moment_noise=moment_noise[:-1],
        contributing_noise=moment_noise[-1] if released else form.contributing_noise,
        takers_noise=variance.get("takers", 0.0) / (2 * GRID) ** 2,
    )


def expect_forms(
    public: Public, shapes: Sequence[FormShape], laws: Mapping[str, NoiseLaw], persons: int
) -> list[FormTotals]:
    """Return forms of which only the noise and the number of persons are known, for plans."""
    items = sum(len(shape.columns) for shape in shapes)
    sizes = dict.fromkeys(("category", "contrast"), sum(_cells(shapes, public)))
    sizes |= dict.fromkeys(("answered", "takers"), items)
    sizes["moment"] = sum(map(_moments, shapes))
    values = {name: np.zeros(sizes.get(name, len(shapes))) for name in laws}
    if "persons" in values:
        values["persons"] += persons * GRID / len(shapes)
    return read_released_forms(public, shapes, values, laws)


def thin_form(form: FormTotals, answers: int, items: int) -> tuple[FormTotals, int]:
    """Return a form with fewer items that have as many takers and as much noise, and its answers.

    Where people answer more of the items than remain, they answer all of these; so fewer persons
    do, and what is known of their moments is as noisy as before.
    """
    before, thin_answers = len(form.columns), min(answers, items)
    share = 1.0 if form.complete else answers * items / (before * thin_answers)
    thin = replace(
        form,
        columns=form.columns[:items],
        category=form.category[:items],
        category_noise=form.category_noise[:items],
        takers=None if form.takers is None else form.takers[:items],
        moment_noise=form.moment_noise * share**2,
        contributing_noise=form.contributing_noise * share**2,
        persons=form.persons * share,
        persons_noise=form.persons_noise * share**2,
        max_answers=min(form.max_answers, items),
        typical=min(form.typical, items),
    )
    return thin, thin_answers


def _cells(shapes: Sequence[FormShape], public: Public) -> list[int]:
    return [sum(public.steps[column] + 1 for column in shape.columns) for shape in shapes]


def _moments(shape: FormShape) -> int:
    return len(shape.scales) + (shape.contributing > 0)


def _split(values: Any, sizes: Sequence[int]) -> list[Any]:
    """Return the parts of the forms; None for each where there are no such values."""
    return [None] * len(sizes) if values is None else np.split(values, np.cumsum(sizes)[:-1])


def _join_counts(
    public: Public, values: PlainMapping, shapes: Sequence[FormShape]
) -> list[FloatArray]:
    """Put differences of categories and numbers of answers together; add-remove."""
    multiple = common_categories(public.steps)
    contrasts = _split(values["contrast"] / (multiple * GRID), _cells(shapes, public))
    answered = _split(values["answered"] / GRID, [len(one.columns) for one in shapes])
    counts = []
    for shape, contrast, number in zip(shapes, contrasts, answered, strict=True):
        widths = np.array([public.steps[column] + 1 for column in shape.columns])
        # Differences sum to zero; what noise puts there says nothing.
        middle = np.add.reduceat(contrast, np.cumsum(widths) - widths) / widths
        counts.append(contrast + np.repeat(number / widths - middle, widths))
    return counts


@dataclass(frozen=True)
class Measurer:
    """Exact statistics of simulated persons, with the very code that sums over real ones."""

    public: Public
    shapes: Sequence[FormShape]
    has_takers: bool

    def __call__(self, codes: Int8Array, form: int) -> FormTotals:
        """Return the statistics of persons in a form: codes ``[person, own item]``."""
        shape = self.shapes[form]
        steps = tuple(self.public.steps[column] for column in shape.columns)
        alone = replace(shape, columns=tuple(range(len(steps))))
        job = make_totals_job(steps, (alone,), has_takers=self.has_takers, is_complete=False)
        sums = job.read(job.block(store_codes(codes, steps)))
        takers = sums["takers"] if self.has_takers else None
        form_sums = FormSums(
            sums["category"] / GRID, sums["moment"], takers, (float(len(codes)), 0.0)
        )
        return fill_form(form_sums, shape, self.public)
