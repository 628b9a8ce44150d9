"""Repeated and graded answers: how much of what was tried on each item was right.

In: answers in which every further sample of an item is an item of its own, or scores. Out:
:class:`SampleCounts`: a cell is a binomial count, c right of n samples, or the sum of n scores
in [0, 1]. Confidential, and never released: sensitivities hold for one answer to an item.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.answers.responses import Responses
from discreet.errors import BadResponses
from discreet.types import FloatArray, IndexArray, Int32Array, Int64Array, Vector

#: Stands between the name of an item and the number of the sample.
SAMPLE = "\x1f"


@dataclass(frozen=True, eq=False)
class SampleCounts:
    """Sums of answers, by units (questions of a leaderboard) and objects (its models).

    Attributes
    ----------
    units, items
        Names of the units, and of the objects.
    success, tried
        ``[unit, object]``: the sum of the answers, and how many there are.
    cluster
        The cluster of every unit, from 0.
    """

    units: tuple[str, ...]
    items: tuple[str, ...]
    success: FloatArray
    tried: Int64Array
    cluster: IndexArray

    @property
    def failure(self) -> FloatArray:
        """What is missing to all answers right."""
        return np.asarray(self.tried - self.success)


def number_samples(
    person: Vector, item: Vector, items: tuple[str, ...]
) -> tuple[Int32Array, tuple[str, ...]]:
    """Return items of which nobody has two answers: the second, third, ... sample is one.

    Examples
    --------
    >>> number_samples(np.array([0, 0, 1]), np.array([0, 0, 0]), ("q",))[0].tolist()
    [0, 1, 0]
    """
    key = person.astype(np.int64) * len(items) + item
    order = np.argsort(key, kind="stable")
    ordered, place = key[order], np.arange(len(key))
    is_first = np.append(True, ordered[1:] != ordered[:-1])[: len(key)]
    sample = np.zeros(len(key), dtype=np.int64)
    sample[order] = place - np.maximum.accumulate(np.where(is_first, place, 0))
    pair = sample * len(items) + item  # the first samples keep the numbers of their items
    further, code = np.unique(pair[sample > 0], return_inverse=True)
    numbers = item.astype(np.int32)
    numbers[sample > 0] = len(items) + code
    pairs = zip(*np.divmod(further, max(len(items), 1)), strict=True)
    return numbers, (*items, *(f"{items[own]}{SAMPLE}{number + 1}" for number, own in pairs))


def sum_samples(responses: Responses) -> SampleCounts:
    """Add up the right answers of persons, who are the objects, over the samples of each item."""
    if max(responses.steps, default=1) > 1:
        raise BadResponses(
            "found answers with steps, and a leaderboard needs right and wrong answers: a step is "
            "no share of right ones. Say from which value on an answer is right (at_least=, "
            "--at-least), or give scores from 0 to 1 (graded=True, --graded)"
        )
    names = [name.partition(SAMPLE)[0] for name in responses.items]
    place = {name: number for number, name in enumerate(dict.fromkeys(names))}
    column, cells = [place[name] for name in names], responses.to_array().T
    success, tried = np.zeros((2, len(place), cells.shape[1]), dtype=np.int64)
    np.add.at(success, column, cells == 1)
    np.add.at(tried, column, cells >= 0)
    about = tuple(place), tuple(responses.persons)
    return SampleCounts(*about, success.astype(np.float64), tried, np.arange(len(place)))
