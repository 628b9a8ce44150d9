"""Where items stand among each other, for pages: ranks, groups, neighbours, any two compared.

In: an estimate, released or not. Out: a value that pages only write down. Like the estimate it is
made of, it may be shown to whom that may be shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.markup import name_some
from discreet.results.differences import find_differences
from discreet.results.estimate import Estimate, two_sided_quantile
from discreet.results.kinds import ReleaseKind
from discreet.results.rank_ranges import RankRanges, find_probability, rank_ranges
from discreet.types import FloatArray
from discreet.words import ENGLISH, Language, mark_of

LEVEL = 0.95
PAIRED_ITEMS = 500
"""Items up to which a page holds the standard error of every difference: half a megabyte."""
SHOWN_GROUPS = 40


@dataclass(frozen=True, eq=False)
class ItemOrder:
    """What can be said about the order of items.

    Attributes
    ----------
    ranges
        Which ranks they may have, and which cannot be told apart.
    neighbours
        Columns with a row for each item but the last, in the order of the estimates, and the
        one after it: their difference, its interval, the probability of their order, and
        whether they can be told apart among all items.
    pairs
        What a script needs to compare any two; None where that would be too much.
    """

    ranges: RankRanges
    neighbours: dict[str, list[Any]]
    pairs: dict[str, Any] | None


def find_standing(estimate: Estimate) -> ItemOrder:
    """Say where the items of an estimate stand."""
    ranges = rank_ranges(estimate, level=LEVEL)
    return ItemOrder(ranges, _compare_neighbours(estimate, ranges), _gather_pairs(estimate, ranges))


def _compare_neighbours(estimate: Estimate, ranges: RankRanges) -> dict[str, list[Any]]:
    known, count = find_differences(estimate), max(len(ranges.items) - 1, 0)
    apart = known.value[:-1] - known.value[1:]
    variance = known.variance[:-1] + known.variance[1:]
    if known.covariance is not None:
        variance = variance - 2 * known.covariance.diagonal(1)
    error = np.sqrt(np.maximum(variance, 0.0))
    half = two_sided_quantile(1 - LEVEL, known.degrees) * error
    chance = [
        find_probability(one, se, known.degrees)
        for one, se in zip(apart.tolist(), error.tolist(), strict=True)
    ]
    return {
        "above": list(ranges.items[:count]),
        "below": list(ranges.items[1:]),
        "difference": apart.tolist(),
        "lower": (apart - half).tolist(),
        "upper": (apart + half).tolist(),
        "probability": chance,
        "told_apart": (apart > ranges.bar * error).tolist(),
    }


def _gather_pairs(estimate: Estimate, ranges: RankRanges) -> dict[str, Any] | None:
    known, items = find_differences(estimate), len(ranges.items)
    if not np.isfinite(known.variance).all() or items < 2 or estimate.degrees is not None:
        return None
    if known.covariance is None:
        errors = {"variances": _shorten(known.variance)}
    elif items <= PAIRED_ITEMS:
        errors = {"errors": _shorten(known.errors()[np.triu_indices(items, 1)])}
    else:
        return None
    return {
        "items": list(ranges.items),
        "values": _shorten(ranges.difficulty),
        **errors,
        "alone": round(two_sided_quantile(1 - LEVEL), 5),
        "together": round(ranges.quantile, 5),
        "bar": round(ranges.bar, 5),
    }


def _shorten(values: FloatArray) -> list[float]:
    """Return numbers with as many digits as a page shows, and two more."""
    return [float(f"{value:.5g}") for value in values.tolist()]


SURE = mark_of("{Most}: {name}."), mark_of("{Least}: {name}.")
UNSURE = (
    mark_of("Which {item} is {most} is not sure: {count} may be it ({names})."),
    mark_of("Which {item} is {least} is not sure: {count} may be it ({names})."),
)


def say_extremes(ranges: RankRanges, kind: ReleaseKind, tell: Language = ENGLISH) -> str:
    """Name the hardest and the easiest item, as far as that is sure."""
    ends = (ranges.first == 1, ranges.last == len(ranges.items))
    said = []
    for sure, unsure, mask in zip(SURE, UNSURE, ends, strict=True):
        names = [ranges.items[i] for i in np.flatnonzero(mask)]
        if len(names) == 1:
            said.append(tell.of(kind, sure, name=names[0]))
        else:
            count, some = tell.number(len(names)), name_some(names, tell=tell)
            said.append(tell.of(kind, unsure, count=count, names=some))
    return " ".join(said)


def show_ranks(ranges: RankRanges, dash: str = "\N{EN DASH}") -> dict[str, str]:
    """Return the ranks that each item may have, such as "3" or "2-7"."""
    pairs = zip(ranges.first.tolist(), ranges.last.tolist(), strict=True)
    texts = [f"{first}" if first == last else f"{first}{dash}{last}" for first, last in pairs]
    return dict(zip(ranges.items, texts, strict=True))


def list_groups(ranges: RankRanges, tell: Language = ENGLISH) -> dict[str, list[str]]:
    """Return groups of items that cannot be told apart, as columns, from the first place on."""
    place = {name: number for number, name in enumerate(ranges.items, start=1)}
    several = [group for group in ranges.groups if len(group) > 1][:SHOWN_GROUPS]
    return {
        "places": [f"{place[group[0]]}\N{EN DASH}{place[group[-1]]}" for group in several],
        "items": [name_some(group, 12, tell) for group in several],
    }
