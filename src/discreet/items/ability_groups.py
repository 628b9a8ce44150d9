"""Persons in groups of similar ability, and what each group answered.

In: answers and abilities. Out: counts per group, item and category, observed curves, and bars of
abilities, for pictures and the diagnostics behind them. Confidential.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from discreet.answers.responses import Responses
from discreet.errors import BadUsage
from discreet.persons.scoring import PersonScores
from discreet.schema import Count, Logit, NonNegative, Proportion
from discreet.types import FloatArray, Int64Array

Curve: TypeAlias = tuple[tuple[Logit, NonNegative, Count], ...]
"""Points of an observed curve: mean ability of a group, its mean score, its answers. The mean
score on a right/wrong item is the share right."""
Shares: TypeAlias = tuple[tuple[Proportion, ...], ...]
"""Per point of an observed curve, the share of every category."""

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
    chosen
        How many are in each category, ``[group, item, category]``.
    """

    items: tuple[str, ...]
    ability: FloatArray
    chosen: Int64Array

    @property
    def answers(self) -> Int64Array:
        """How many answered, ``[group, item]``."""
        return np.asarray(self.chosen.sum(axis=2))

    @property
    def score(self) -> Int64Array:
        """Sum of their scores, ``[group, item]``; of right/wrong items, how many were right."""
        return np.asarray(self.chosen @ np.arange(self.chosen.shape[2]))


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
    m, categories = responses.n_items, max(responses.steps, default=1) + 1
    chosen = np.zeros((groups, m, categories), dtype=np.int64)
    total = np.zeros((groups, m))
    step = max(1, CHUNK_CELLS // max(m, 1))
    for start in range(0, responses.n_persons, step):
        cells = responses.rows(start, start + step)
        here = slice(start, start + len(cells))
        for one in range(groups):
            mine = cells[group[here] == one]
            for category in range(categories):
                chosen[one, :, category] += (mine == category).sum(axis=0)
            total[one] += ability[here][group[here] == one] @ (mine >= 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return BinnedAnswers(responses.items, total / chosen.sum(axis=2), chosen)


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


def bin_measured(responses: Responses, scores: PersonScores, groups: int = GROUPS) -> BinnedAnswers:
    """Count answers in groups of persons who have neither the lowest nor the highest score."""
    # All right or all wrong: by construction such points lie at 0% or 100%.
    return bin_answers(responses, np.where(scores.extreme, np.nan, scores.ability), groups)


def trace_curves(binned: BinnedAnswers) -> dict[str, Curve]:
    """Return the observed curve of every item."""
    columns = zip(binned.ability.T, binned.answers.T, binned.score.T, strict=True)
    return {
        name: tuple((float(a), float(r / n), int(n)) for a, n, r in zip(*one, strict=True) if n)
        for name, one in zip(binned.items, columns, strict=True)
    }


def trace_shares(binned: BinnedAnswers) -> dict[str, Shares]:
    """Return the shares of the categories at every point of every item's curve."""
    return {
        name: tuple(tuple((own / own.sum()).tolist()) for own in binned.chosen[:, i] if own.any())
        for i, name in enumerate(binned.items)
    }
