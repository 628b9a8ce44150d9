"""Ratings as answers to items that only one rater marks: whatever takes answers then takes them.

In: ratings, and an estimate that knows items and levels of facets. Out: answers with an item for
every combination that occurs, such as "style:Ann", and a calibration with the thresholds of these:
the sums of what is known. Confidential.
"""

from __future__ import annotations

import numpy as np

from discreet.answers.pack import store_codes
from discreet.answers.ratings import Ratings
from discreet.answers.responses import Responses
from discreet.errors import BadUsage, OutOfReach
from discreet.results.estimate import Estimate, Solution, Status
from discreet.results.thresholds import Thresholds
from discreet.types import Int32Array, Int64Array

#: Persons times combinations that fit into memory.
MOST_CELLS = 2_000_000_000


def cross_ratings(ratings: Ratings, estimate: Estimate) -> tuple[Responses, Estimate]:
    """Return answers to combinations of items and levels, and the calibration of those known."""
    names = list(dict.fromkeys(name for term in estimate.facets for name in term.split(":")))
    labels = [ratings.items, *(ratings.facets[name] for name in names)]
    sizes = [len(own) for own in labels]
    codes = [ratings.item, *(ratings.codes[name] for name in names)]
    key = np.ravel_multi_index([code.astype(np.int64) for code in codes], sizes)
    pairs = np.stack([key, _count_repeats(ratings.person, key)])
    cells, column = np.unique(pairs, axis=1, return_inverse=True)
    if ratings.n_persons * cells.shape[1] > MOST_CELLS:
        raise OutOfReach(
            f"{ratings.n_persons:,} persons and {cells.shape[1]:,} combinations of items and "
            "raters do not fit into memory; score parts of the persons, one after the other"
        )
    places = np.unravel_index(cells[0], sizes)
    words = [[own[code] for code in place] for own, place in zip(labels, places, strict=True)]
    repeats = [f":{number + 1}" if number else "" for number in cells[1].tolist()]
    items = [":".join(row) + more for *row, more in zip(*words, repeats, strict=True)]
    shift = ratings.lowest - estimate.ladder.lowest
    if shift < 0:
        raise BadUsage(
            f"the ratings begin at {ratings.lowest}, those of the calibration at "
            f"{estimate.ladder.lowest}; correct the scores"
        )
    answers = np.full((ratings.n_persons, len(items)), -1, np.int8)
    answers[ratings.person, column.reshape(-1)] = ratings.score + shift
    steps = np.maximum(answers.max(axis=0), 1).tolist()
    crossed = Responses(items, ratings.persons, store_codes(answers, steps))
    return crossed, _sum_known(estimate, items, dict(zip(("item", *names), words, strict=True)))


def _count_repeats(person: Int32Array, key: Int64Array) -> Int64Array:
    """Return how many earlier ratings of the person have the same combination."""
    order = np.lexsort((key, person))
    changes = (np.diff(key[order], prepend=-1) != 0) | (np.diff(person[order], prepend=-1) != 0)
    first = np.maximum.accumulate(np.where(changes, np.arange(len(key)), 0))
    repeats = np.empty(len(key), np.int64)
    repeats[order] = np.arange(len(key)) - first
    return repeats


def _sum_known(estimate: Estimate, items: list[str], words: dict[str, list[str]]) -> Estimate:
    """Return the calibration of the combinations whose parts are all known."""
    row_of = {name: row for row, name in enumerate(estimate.items)}
    rows = np.array([row_of.get(name, -1) for name in words["item"]])
    value, severity = estimate.thresholds[rows].copy(), np.zeros(len(rows))
    is_known = (rows >= 0) & estimate.estimated[rows]
    for term, facet in estimate.facets.items():
        level_of = {level: row for row, level in enumerate(facet.levels)}
        levels = map(":".join, zip(*(words[name] for name in term.split(":")), strict=True))
        at = np.array([level_of.get(level, -1) for level in levels])
        is_known &= (at >= 0) & np.isfinite(facet.measure[at])
        value += facet.measure[at, None]
        severity += facet.se[at] ** 2
    use, ladder = np.flatnonzero(is_known), estimate.ladder
    value, se = value[use], np.sqrt(estimate.threshold_se[rows] ** 2 + severity[:, None])[use]
    kept = tuple(ladder.kept[rows[one]] for one in use)
    status = tuple((Status.ESTIMATED,) * (len(own) - 1) for own in kept)
    difficulty = np.nanmean(value, axis=1) if len(use) else np.zeros(0)
    return Estimate(
        items=tuple(items[one] for one in use),
        difficulty=difficulty,
        se=np.sqrt(estimate.se[rows] ** 2 + severity)[use],
        status=(Status.ESTIMATED,) * len(use),
        method=estimate.method,
        solution=Solution("items and levels added up", 0, 0.0),
        steps=tuple(len(own) - 1 for own in kept),
        model=estimate.model if estimate.model == "rasch" else "partial-credit",
        ladder=Thresholds(value, se, status, None, None, kept),
    )
