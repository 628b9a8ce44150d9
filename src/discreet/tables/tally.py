"""How often every value of every item occurs: a look at all answers before they are read.

In: tables, and how to read them. Out: a tally, from which :mod:`discreet.tables.scales` sees which
values are steps. Only columns of items and answers are read; no person is looked at.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.errors import BadResponses
from discreet.tables.advice import BadAnswer
from discreet.tables.ids import encode_ids
from discreet.tables.opener import Source, plan_source
from discreet.tables.roles import LongPlan, Reading
from discreet.tables.scales import find_scale
from discreet.tables.values import MISSING_WORDS, plain_dictionary, read_integers, spell
from discreet.types import Int64Array

SMALL_ITEMS, SMALL_VALUES = 1 << 14, 16
"""Items and answers that are numbers below these are counted in a table, without making words."""
TABLE = 1 << 16
"""Pairs of items and values that are counted in a table, however few rows there are."""
MOST_VALUES = 50
"""Different values of an item from which on it is no scale, and nobody counts them."""


class Tallied:
    """Values of items as they come in."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._small = np.zeros(0, dtype=np.int64)
        self.by_item: dict[str, dict[str, int]] = {}

    def take(self, sources: Iterator[Source]) -> dict[str, dict[str, int]]:
        """Go through all tables."""
        for source in sources:
            plan = plan_source(source, self._reading)
            if isinstance(plan, LongPlan):
                for items, answers in source.batches((plan.item, plan.response)):
                    self.add_long(items, answers)
            else:
                for batch in source.batches(plan.items):
                    for number, column in zip(plan.items, batch, strict=True):
                        self.add(source.names[number], column)
        for place in np.flatnonzero(self._small).tolist():
            item, value = divmod(place, SMALL_VALUES)
            self._count(str(item), value, int(self._small[place]))
        return self.by_item

    def add_long(self, items: Any, answers: Any) -> None:
        """Add the answers of a long table."""
        if self._add_numbers(items, answers):
            return
        names, words = encode_ids(items), plain_dictionary(answers)
        known = words.dictionary.to_pylist()
        item = read_integers(names.indices.fill_null(len(names.dictionary)))
        answer = read_integers(words.indices.cast("int64").fill_null(len(known)))
        width = len(known) + 1
        listed = names.dictionary.to_pylist()
        pairs, times = _count_codes(item.astype(np.int64) * width + answer, width * len(listed))
        for pair, count in zip(pairs.tolist(), times.tolist(), strict=True):
            if pair // width < len(listed) and pair % width < len(known):
                self._count(listed[pair // width], known[pair % width], count)

    def _add_numbers(self, items: Any, answers: Any) -> bool:
        """Add answers that are small numbers to items that are numbers; say whether they are."""
        if not (_is_whole(items) and _is_whole(answers)):
            return False
        item, value = read_integers(items), read_integers(answers)
        if item.min(initial=0) < 0 or item.max(initial=0) >= SMALL_ITEMS:
            return False
        if value.min(initial=0) < 0 or value.max(initial=0) >= SMALL_VALUES:
            return False
        place = item.astype(np.int64) * SMALL_VALUES
        place += value.astype(np.int64, copy=False)
        times = np.bincount(place, minlength=len(self._small))
        times[: len(self._small)] += self._small
        self._small = times
        return True

    def add_counted(self, items: Any, answers: Any, times: Any) -> None:
        """Add values that were counted elsewhere; ``items`` is a dictionary of names."""
        named = items.dictionary.take(items.indices).to_pylist()
        counted = zip(named, answers.to_pylist(), times.to_pylist(), strict=True)
        for item, value, count in counted:
            self._count(str(item), value, count)

    def add(self, item: str, column: Any) -> None:
        """Add the answers to one item."""
        words = plain_dictionary(column)
        known = words.dictionary.to_pylist()
        answer = read_integers(words.indices.cast("int64").fill_null(len(known)))
        times = np.bincount(answer, minlength=len(known) + 1)
        for word, count in zip(known, times.tolist(), strict=False):
            self._count(item, word, count)

    def _count(self, item: str, value: Any, times: int) -> None:
        scoring = self._reading.scoring_of(item)
        own = self.by_item.setdefault(item, {})
        word = spell(value).lower()
        no_answer = value is None or word in MISSING_WORDS or word in scoring.missing
        if no_answer or not times or scoring.right is not None or len(own) > MOST_VALUES:
            return
        own[word] = own.get(word, 0) + times


def _is_whole(column: Any) -> bool:
    return bool(pa.types.is_integer(column.type)) and not column.null_count


def _count_codes(codes: Int64Array, size: int) -> tuple[Int64Array, Int64Array]:
    """Return the different codes, ascending, and how often each occurs."""
    if size > max(len(codes), TABLE):
        return np.unique(codes, return_counts=True)
    times = np.bincount(codes, minlength=size)
    found = np.flatnonzero(times)
    return found, times[found]


def settle_after(refusal: BadAnswer, reading: Reading, read: Any) -> Reading:
    """Return the reading with the scale of answers of which one was refused, or refuse it still."""
    try:
        settled = settle_scale(reading, read)
    except BadResponses as reason:
        words = f"{refusal.place}{str(reason)[0].upper()}{str(reason)[1:]}"
        both = BadAnswer(words).offering(*reason.remedies)
        both.found = refusal.found
        raise both from None
    if settled is None:
        raise refusal
    return settled


def settle_scale(reading: Reading, read: Any) -> Reading | None:
    """Return the reading with the scale of the answers; None where they are no steps.

    Parameters
    ----------
    reading
        What the user said.
    read
        Called with a function of tables and a reading; goes through the tables with both.
    """
    looking = replace(reading, looking=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to say is said when answers are read
        tally = read(Tallied(looking).take, looking)
    scale = find_scale(tally, reading.asked)
    return None if scale is None else replace(reading, scale=scale)
