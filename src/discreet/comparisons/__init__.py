"""Ranking from pairwise comparisons, and its release with a guarantee for each judge.

In: who beat whom, by judge. Out: strengths of the objects. The mathematics, the noise, the wall
and the ledger are those of the rest of the library: an object that is hard to beat is an item
that is hard to answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.comparisons.counting import ComparisonCounts
    from discreet.comparisons.ranking import count_comparisons, rank_comparisons
    from discreet.comparisons.reading import read_comparisons
    from discreet.comparisons.releasing import (
        PublishedRanking,
        read_released_ranking,
        release_comparisons,
    )
    from discreet.comparisons.simulating import simulate_comparisons
    from discreet.comparisons.strengths import Strengths
    from discreet.comparisons.table import Comparisons

_HOME = {
    "ComparisonCounts": "counting",
    "Comparisons": "table",
    "PublishedRanking": "releasing",
    "Strengths": "strengths",
    "count_comparisons": "ranking",
    "rank_comparisons": "ranking",
    "read_comparisons": "reading",
    "read_released_ranking": "releasing",
    "release_comparisons": "releasing",
    "simulate_comparisons": "simulating",
}

__all__ = [
    "ComparisonCounts",
    "Comparisons",
    "PublishedRanking",
    "Strengths",
    "count_comparisons",
    "rank_comparisons",
    "read_comparisons",
    "read_released_ranking",
    "release_comparisons",
    "simulate_comparisons",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'discreet.comparisons' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"discreet.comparisons.{_HOME[name]}"), name)
