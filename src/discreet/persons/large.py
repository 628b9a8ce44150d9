"""Abilities and residuals of very many persons, in compiled loops and in little memory.

In: right and wrong answers, difficulties. Out: the numbers of :mod:`discreet.persons.measures`
and the sums of :mod:`discreet.items.fit`, to rounding. With many patterns of missing
answers next to nobody shares items and score with somebody else, so that nothing is gained by
grouping persons; with answers to all items it is, and abilities are solved for elsewhere. Whether
this way is taken depends on the answers alone, so that the same answers always give the same
numbers. Confidential.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import numpy as np

from discreet.counts.planes import AnswerStore, BitPlanes, SparseRows
from discreet.errors import NotConverged
from discreet.jit import compiled_loop, load_kernels
from discreet.persons.measures import NEWTON_STEPS, STEPS, TOLERANCE
from discreet.threads import map_tasks, thread_count
from discreet.types import BoolArray, FloatArray, Int64Array

#: Answers from which on this is faster than tables, the loading of compiled loops included.
MANY_ANSWERS = 1_000_000
#: Cells of bit planes turned into rows together: at most 200 MB.
SLAB_CELLS = 1 << 26
TASK_PERSONS = 4096
ITEM_SUMS, PERSON_SUMS = 15, 6


def is_many(store: AnswerStore, thresholds: FloatArray) -> bool:
    """Say whether there are so many right and wrong answers that compiled loops are better."""
    binary = isinstance(store, BitPlanes | SparseRows) and thresholds.shape[1] == 1
    return binary and store.n_answers >= MANY_ANSWERS


def is_varied(store: AnswerStore) -> bool:
    """Say whether answers are missing, so that persons differ in what they answered."""
    return store.n_answers < store.n_persons * store.n_items


def solve_many(
    store: AnswerStore, b: FloatArray, score: Int64Array, *, correction: float
) -> tuple[FloatArray, FloatArray]:
    """Return abilities and standard errors of all persons; NaN where there is none.

    Parameters
    ----------
    store
        Right and wrong answers.
    b
        A difficulty for each item of the store.
    score
        Right answers of each person.
    correction
        1 for Warm's weighted likelihood, 0 for maximum likelihood.
    """
    ability, se = np.full((2, store.n_persons), np.nan)
    plan = np.array([STEPS, NEWTON_STEPS.start, NEWTON_STEPS.stop, TOLERANCE])
    for start, rows in _list_slabs(store):
        span = slice(start, start + rows.n_persons)
        inputs = (rows.indptr, rows.item, b, score[span], correction, plan, ability[span], se[span])
        solve = partial(_run, solve_rows, inputs)
        if not all(map_tasks(solve, _split(rows.n_persons, TASK_PERSONS))):
            raise NotConverged(f"abilities did not settle within {STEPS} steps; please report this")
    return ability, se


def sum_many(
    store: AnswerStore, b: FloatArray, ability: FloatArray, used: BoolArray, centre: float
) -> tuple[FloatArray, FloatArray]:
    """Return sums of residuals, ``[15, item]`` and ``[6, person]``, of the persons who are used."""
    by_item = np.zeros((store.n_items, ITEM_SUMS))
    by_person = np.zeros((PERSON_SUMS, store.n_persons))
    for start, rows in _list_slabs(store):
        span = slice(start, start + rows.n_persons)
        parts = _split(rows.n_persons, -(-rows.n_persons // thread_count()))
        # One sum per thread, added in order: the same machine always gives the same bits.
        sums = np.zeros((len(parts), *by_item.shape))
        person_sums = np.zeros((PERSON_SUMS, rows.n_persons))
        inputs = (rows.indptr, rows.item, rows.right, b, ability[span], used[span], centre)
        tasks = [
            partial(_run, sum_residuals, (*inputs, item_sums, person_sums), part)
            for item_sums, part in zip(sums, parts, strict=True)
        ]
        list(map_tasks(lambda task: task(), tasks))
        by_item += sums.sum(axis=0)
        by_person[:, span] = person_sums
    return by_item.T, by_person


def _run(loop: Callable[..., Any], inputs: tuple[object, ...], part: range) -> Any:
    return loop(part.start, part.stop, *inputs)


def _split(persons: int, size: int) -> list[range]:
    return [range(start, min(start + size, persons)) for start in range(0, persons, size or 1)]


def _list_slabs(store: AnswerStore) -> Iterator[tuple[int, SparseRows]]:
    """Yield the answers as rows, some persons at a time, and the number of the first of them."""
    from discreet.counts.pairs import list_rows

    load_kernels()
    if isinstance(store, SparseRows):
        yield 0, store
        return
    planes = cast(BitPlanes, store)
    size = max(1, SLAB_CELLS // max(planes.n_items * planes.block_persons, 1))
    for block in range(0, planes.right.shape[0], size):
        start = block * planes.block_persons
        some = slice(block, block + size)
        persons = min(planes.n_persons - start, size * planes.block_persons)
        yield start, list_rows(BitPlanes(planes.right[some], planes.wrong[some], persons))


# mypy: disable-error-code="no-untyped-def, no-untyped-call"


@compiled_loop
def solve_rows(first, stop, indptr, item, b, score, correction, plan, ability, se):
    """Solve for the abilities of the persons ``first`` to ``stop``; the rest stay as they are.

    ``plan`` holds the steps in all, the first and the last of Newton's method, and the tolerance.
    Returns whether all of them settled.
    """
    odds = np.exp(b)
    for person in range(first, stop):
        begin, end = indptr[person], indptr[person + 1]
        answered, right = end - begin, score[person]
        if answered == 0 or (correction == 0.0 and (right == 0 or right == answered)):
            continue
        low, high = b[item[begin]], b[item[begin]]
        for cell in range(begin, end):
            low, high = min(low, b[item[cell]]), max(high, b[item[cell]])
        reach = np.log(2.0 * answered) + 5.0
        low, high = low - reach, high + reach
        theta = (low + high) / 2
        step, settled = 0, False
        while not settled:
            if step >= plan[0]:
                return False
            expected, information, skew, curve = _add_up_chances(
                np.exp(theta), begin, end, item, odds, correction
            )
            value = right - expected + correction * skew / 2
            slope = -information + correction * (curve - skew * skew) / 2
            if value > 0:
                low = theta
            if value < 0:
                high = theta
            moved = theta - value / (slope if slope < 0 else -1.0)
            if not (slope < 0 and low < moved < high and plan[1] <= step < plan[2]):
                moved = (low + high) / 2
            if value == 0:
                moved = theta
            settled = abs(moved - theta) < plan[3]
            theta = moved
            step += 1
        ability[person] = theta
        _, information, _, _ = _add_up_chances(np.exp(theta), begin, end, item, odds, 0.0)
        se[person] = 1 / np.sqrt(information)
    return True


@compiled_loop
def _add_up_chances(person_odds, begin, end, item, odds, correction):
    """Return sums of chances and variances, and Warm's two quotients where they are asked for."""
    expected, information, skew, curve = 0.0, 0.0, 0.0, 0.0
    if correction == 0.0:
        for cell in range(begin, end):
            chance = person_odds / (person_odds + odds[item[cell]])
            expected += chance
            information += chance * (1 - chance)
        return expected, information, skew, curve
    for cell in range(begin, end):
        chance = person_odds / (person_odds + odds[item[cell]])
        variance = chance * (1 - chance)
        expected += chance
        information += variance
        skew += variance * (1 - 2 * chance)
        curve += variance * (1 - 6 * variance)
    return expected, information, skew / information, curve / information


@compiled_loop
def sum_residuals(first, stop, indptr, item, right, b, ability, used, centre, by_item, by_person):
    """Add up residuals of the persons ``first`` to ``stop`` who are used.

    ``by_item[item, 15]`` and ``by_person[6, person]`` get the sums in the order of ``_Sums``, the
    former also those of ``_Moments`` of :mod:`discreet.items.fit`.
    """
    odds = np.exp(b)
    for person in range(first, stop):
        if not used[person]:
            continue
        person_odds, from_centre = np.exp(ability[person]), ability[person] - centre
        for cell in range(indptr[person], indptr[person + 1]):
            column = item[cell]
            total_odds = person_odds + odds[column]
            chance = person_odds / total_odds
            variance = chance * (odds[column] / total_odds)
            is_right = 1.0 if right[cell] else 0.0
            residual = is_right - chance
            square = residual * residual
            advantage = ability[person] - b[column]
            parts = (1.0, square, square / variance, variance, (1 - 3 * variance) / variance,
                     variance * (1 - 4 * variance))  # fmt: skip
            sums = by_item[column]
            for index in range(6):
                sums[index] += parts[index]
                by_person[index, person] += parts[index]
            sums[6] += from_centre
            sums[7] += from_centre * from_centre
            sums[8] += is_right
            sums[9] += from_centre * is_right
            sums[10] += chance
            sums[11] += chance * chance
            sums[12] += from_centre * chance
            sums[13] += residual * advantage
            sums[14] += variance * advantage * advantage
