"""Persons in bins: bars of abilities, and the observed points beside an expected curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from discreet.answers.responses import Responses
from discreet.errors import BadUsage
from discreet.types import FloatArray, Int64Array

if TYPE_CHECKING:
    from discreet.analysis.persons import PersonScores

Curve: TypeAlias = tuple[tuple[float, float, int], ...]
"""Points of an observed curve: mean ability of a group, its share right, its answers."""

BIN = 0.25
"""Width in logits of a bar of abilities: about half a standard error of an ability."""
GROUPS = 8
"""Groups of persons: enough to see a shape, few enough that each has answers to each item."""
CHUNK_CELLS = 1 << 22
"""Answers looked at together (one byte each)."""


@dataclass(frozen=True, eq=False)
class BinnedAnswers:
    """Answers of groups of persons.

    Attributes
    ----------
    items
        Names of the columns.
    ability
        Mean ability of those who answered, ``[group, item]``; NaN where nobody did.
    answers, right
        How many, ``[group, item]``.
    """

    items: tuple[str, ...]
    ability: FloatArray
    answers: Int64Array
    right: Int64Array


def bin_answers(responses: Responses, ability: FloatArray, groups: int = GROUPS) -> BinnedAnswers:
    """Count answers in equally large groups of persons, from the least to the most able.

    Parameters
    ----------
    responses
        The answers.
    ability
        One number per person; persons with NaN are left out.
    groups
        How many groups.
    """
    if ability.shape != (responses.n_persons,):
        raise BadUsage(
            f"binning needs one ability for each of the {responses.n_persons} persons, found "
            f"shape {ability.shape}; score the same answers that are drawn"
        )
    group = _group_persons(ability, groups)
    m = responses.n_items
    answers, right = np.zeros((2, groups, m), dtype=np.int64)
    total = np.zeros((groups, m))
    step = max(1, CHUNK_CELLS // max(m, 1))
    for start in range(0, responses.n_persons, step):
        cells = responses.store.rows(start, min(start + step, responses.n_persons))
        here = slice(start, start + len(cells))
        for one in range(groups):
            mine = cells[group[here] == one]
            given = mine >= 0
            answers[one] += given.sum(axis=0)
            right[one] += (mine == 1).sum(axis=0)
            total[one] += ability[here][group[here] == one] @ given
    with np.errstate(invalid="ignore", divide="ignore"):
        return BinnedAnswers(responses.items, total / answers, answers, right)


def _group_persons(ability: FloatArray, groups: int) -> Int64Array:
    """Return each person's group, -1 without an ability; equal abilities stay together."""
    known = np.isfinite(ability)
    group = np.full(len(ability), -1, dtype=np.int64)
    if not known.any():
        return group
    cuts = np.quantile(ability[known], np.arange(1, groups) / groups)
    group[known] = np.searchsorted(cuts, ability[known], side="left")
    return group


def bin_abilities(ability: FloatArray) -> tuple[FloatArray, Int64Array]:
    """Return where bins of :data:`BIN` logits start and how many persons are in each."""
    place = np.floor(ability / BIN).astype(np.int64)
    counts = np.bincount(place - place.min())
    return (place.min() + np.arange(len(counts))) * BIN, counts


def observe_curves(
    responses: Responses, scores: PersonScores, groups: int = GROUPS
) -> dict[str, Curve]:
    """Return the observed curve of every item, from persons with right and wrong answers."""
    # All right or all wrong: by construction such points lie at 0% or 100%.
    binned = bin_answers(responses, np.where(scores.extreme, np.nan, scores.ability), groups)
    columns = zip(binned.ability.T, binned.answers.T, binned.right.T, strict=True)
    return {
        name: tuple((float(a), float(r / n), int(n)) for a, n, r in zip(*one, strict=True) if n)
        for name, one in zip(binned.items, columns, strict=True)
    }
