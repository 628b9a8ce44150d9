"""Repeated and graded answers: how much of what was tried on each item was right.

In: answers in which every further sample of an item is an item of its own, or cells with scores.
Out: :class:`SampleCounts`: a cell is a binomial count, c right of n samples, or the sum of n scores
in [0, 1]. Confidential, and never released: sensitivities hold for one answer to an item.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from discreet.answers.responses import Responses
from discreet.choices import PlainMapping
from discreet.coding.reading import PLAIN, Reading
from discreet.errors import BadResponses, BadUsage
from discreet.text import count_of, name_some
from discreet.types import FloatArray, IndexArray, Int32Array, Int64Array, Vector

#: Stands between the name of an item and the number of the sample.
SAMPLE = "\x1f"


@dataclass(frozen=True, eq=False)
class SampleCounts:
    """Sums of answers, by units (persons, or questions of a leaderboard) and items (its models).

    Attributes
    ----------
    units, items
        Names of the units, and of the items.
    success, tried
        ``[unit, item]``: the sum of the answers, and how many there are.
    cluster
        The cluster of every unit, from 0.
    reading
        How values became answers.
    nouns
        What a unit and an item are called.
    """

    units: tuple[str, ...]
    items: tuple[str, ...]
    success: FloatArray
    tried: Int64Array
    cluster: IndexArray
    reading: Reading = PLAIN
    nouns: tuple[str, str] = ("person", "item")

    @property
    def failure(self) -> FloatArray:
        """What is missing to all answers right."""
        return np.asarray(self.tried - self.success)

    @property
    def is_whole(self) -> bool:
        """Whether answers are right or wrong, rather than scores between."""
        return bool((self.success == np.round(self.success)).all())

    def turn(self, nouns: tuple[str, str]) -> SampleCounts:
        """Exchange units and items; every unit is then a cluster of its own."""
        about = self.items, self.units, self.success.T, self.tried.T
        return SampleCounts(*about, np.arange(len(self.items)), self.reading, nouns)

    def select(self, items: IndexArray) -> SampleCounts:
        """Return the counts of some items."""
        names = tuple(self.items[i] for i in items)
        return replace(
            self, items=names, success=self.success[:, items], tried=self.tried[:, items]
        )

    def group(self, cluster: PlainMapping) -> SampleCounts:
        """Put units into clusters."""
        noun = self.nouns[0]
        known = {str(name): str(label) for name, label in cluster.items()}
        missing = [name for name in self.units if name not in known]
        if missing:
            raise BadUsage(
                f"{count_of(len(missing), noun)} of {len(self.units):,} belong to no cluster: "
                f"{name_some(missing)}. Answers of one cluster depend on each other, so every "
                f"{noun} needs one; give a {noun} on its own a cluster of its own"
            )
        labels = np.unique([known[name] for name in self.units], return_inverse=True)[1]
        return replace(self, cluster=np.asarray(labels.reshape(-1), dtype=np.intp))


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
    """Add up the right answers of persons over the samples of each item."""
    if max(responses.steps, default=1) > 1:
        raise BadResponses(
            "found answers with steps, and counts are of right and wrong answers: a step is no "
            "share of right ones. Say from which value on an answer is right (at_least=, "
            "--at-least); a leaderboard also takes scores from 0 to 1 (graded=True, --graded)"
        )
    names = [name.partition(SAMPLE)[0] for name in responses.items]
    place = {name: number for number, name in enumerate(dict.fromkeys(names))}
    column, cells = [place[name] for name in names], responses.to_array().T
    success, tried = np.zeros((2, len(place), cells.shape[1]), dtype=np.int64)
    np.add.at(success, column, cells == 1)
    np.add.at(tried, column, cells >= 0)
    units = tuple(responses.persons)
    about = units, tuple(place), success.T.astype(np.float64), tried.T
    return SampleCounts(*about, np.arange(len(units)), responses.reading)


def sum_graded(cells: Iterable[tuple[object, object, float]]) -> SampleCounts:
    """Add up scores, each with its person and item; NaN is missing.

    Examples
    --------
    >>> counts = sum_graded([("a", "q", 0.5), ("b", "q", 1.0), ("a", "q", 0.25)])
    >>> counts.success.tolist(), counts.tried.tolist()
    ([[0.75], [1.0]], [[2], [1]])
    """
    persons, names = dict[str, int](), dict[str, int]()
    row, column, scores = [], [], []
    for person, item, number in cells:
        row.append(persons.setdefault(str(person), len(persons)))
        column.append(names.setdefault(str(item), len(names)))
        scores.append(number)
    score = np.array(scores, dtype=np.float64)
    if not ((score >= 0) & (score <= 1) | np.isnan(score)).all():
        raise BadResponses(
            f"found scores from {np.nanmin(score):g} to {np.nanmax(score):g}; graded scores are "
            "shares of right, from 0 to 1. Divide them by the highest that there can be"
        )
    success, tried = np.zeros((2, len(persons), len(names)))
    np.add.at(success, (row, column), np.nan_to_num(score))
    np.add.at(tried, (row, column), ~np.isnan(score))
    about = tuple(persons), tuple(names), success, tried.astype(np.int64)
    return SampleCounts(*about, np.arange(len(persons)))
