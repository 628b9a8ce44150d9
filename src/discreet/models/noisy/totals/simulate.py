"""What would be released if a state were the truth.

In: a state of the fit, public numbers, a random generator. Out: forms with drawn values. Persons
are simulated and measured as the real ones were; of a large form only some thousands are, and their
scatter is scaled to the number of all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from discreet.models.noisy.totals import FormTotals
from discreet.models.noisy.totals.equations import ExpectedMoments, Numbers
from discreet.models.noisy.totals.iterate import (
    Linearised,
    TotalsProblem,
    TotalsState,
    linearise,
)
from discreet.models.noisy.totals.model import NODES
from discreet.models.noisy.totals.takers import expected_standing
from discreet.types import BoolArray, FloatArray, IndexArray, Int8Array

Measure = Callable[[Int8Array, int], FormTotals]
"""Codes ``[person, own item]`` of persons in a form (-1: no answer), and its number, to their
exact statistics; noise arrays may be zero."""

MOST_PERSONS = 2000
"""Persons simulated of one form, at most."""


def redraw_forms(
    problem: TotalsProblem, truth: TotalsState, measure: Measure, rng: np.random.Generator
) -> tuple[FormTotals, ...]:
    """Draw released values of every form as if the state were the truth."""
    around = linearise(problem, truth)
    return tuple(
        _redraw(problem, number, around, measure, rng) for number in range(len(problem.forms))
    )


def _redraw(
    problem: TotalsProblem,
    number: int,
    around: Linearised,
    measure: Measure,
    rng: np.random.Generator,
) -> FormTotals:
    expected, moment = around.expected[number], around.moments[number].mean
    form, numbers = problem.forms[number], problem.numbers[number]
    persons = max(round(numbers.persons), 1)
    n_simulated = min(persons, MOST_PERSONS)
    codes = simulate_form_answers(form, numbers, expected, n_simulated, rng)
    exact = measure(codes, number)
    if n_simulated < persons:
        steps = problem.ladders.steps[form.columns]
        standing = expected_standing(expected, numbers, steps)[0]
        exact = _scale_up(exact, expected, moment, standing, persons / n_simulated)
    return _add_noise(form, exact, numbers.persons, rng)


def simulate_form_answers(
    form: FormTotals,
    numbers: Numbers,
    expected: ExpectedMoments,
    persons: int,
    rng: np.random.Generator,
) -> Int8Array:
    """Simulate answers ``[person, own item]``, -1 where there is none."""
    node = rng.choice(len(NODES), persons, p=expected.overall / expected.overall.sum())
    passed = np.cumsum(expected.chance, axis=1)[:, :-1].transpose(1, 2, 0)
    coin = rng.random((persons, len(form.columns)))
    codes = np.zeros(coin.shape, dtype=np.int8)
    for below in passed:
        codes += coin > below[node]
    if not form.complete:
        codes[~_draw_takers(numbers, expected, node, rng)] = -1
    return codes


def _draw_takers(
    numbers: Numbers, expected: ExpectedMoments, node: IndexArray, rng: np.random.Generator
) -> BoolArray:
    """Draw who takes what: about as many items each, as often as the items were taken."""
    odds = np.log(np.maximum(expected.takers[:, None] * expected.weight, 1e-300)).T[node]
    key = odds + rng.gumbel(size=odds.shape)
    floor = int(numbers.answers)
    answers = floor + (rng.random(len(node)) < numbers.answers - floor)
    rank = np.argsort(np.argsort(-key, axis=1), axis=1)
    return np.asarray(rank < answers[:, None])


def _scale_up(
    exact: FormTotals,
    expected: ExpectedMoments,
    moment: FloatArray,
    standing: FloatArray,
    factor: float,
) -> FormTotals:
    """Multiply what is expected by the factor, and the scatter around it by its root."""
    share = expected.chance * expected.weight[:, None, :]
    takers = expected.takers / factor
    category = takers[:, None] * share.sum(axis=2)

    def scale(value: FloatArray, mean: FloatArray) -> FloatArray:
        return np.asarray(factor * mean + np.sqrt(factor) * (value - mean))

    return replace(
        exact,
        category=scale(exact.category, category),
        moment=scale(exact.moment, exact.contributing * moment),
        contributing=factor * exact.contributing,
        takers=None if exact.takers is None else scale(exact.takers, takers * standing),
    )


def _add_noise(
    form: FormTotals, exact: FormTotals, persons: float, rng: np.random.Generator
) -> FormTotals:
    """Add noise as the release did it, normal instead of discrete."""
    values, vectors = np.linalg.eigh(form.category_noise)
    normal = np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(values.shape)
    moment = np.sqrt(form.moment_noise) * rng.standard_normal(len(form.moment))
    alone = rng.standard_normal(2) * np.sqrt([form.contributing_noise, form.persons_noise])
    takers = exact.takers
    if takers is not None:
        takers = takers + np.sqrt(form.takers_noise) * rng.standard_normal(len(takers))
    return replace(
        form,
        category=exact.category + np.einsum("iab,ib->ia", vectors, normal),
        moment=exact.moment + moment,
        contributing=exact.contributing + alone[0],
        takers=takers,
        persons=persons + alone[1],
    )
