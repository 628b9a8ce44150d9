"""Rank intervals of items, groups that cannot be distinguished, and any two items compared.

In: an estimate, confidential or released, or scores of persons. Out: for every item the first and
the last rank that it may have, groups of items of which none is surely above another, and the
difference between two items with its interval and the probability of their order. Each may be shown
to whom the estimate may be shown; none needs answers.

The ranges hold together: with probability ``level`` every item has a rank within its own
(:mod:`discreet.results.ranking`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discreet.choices import PlainDict
from discreet.errors import BadUsage
from discreet.results.calibrated import RANK_WORDS, CalibrationOrScores
from discreet.results.differences import (
    Bars,
    Differences,
    as_ranked,
    count_sure,
    find_differences,
    name_without_error,
)
from discreet.results.estimate import Estimate, check_level, two_sided_quantile
from discreet.results.ranking import Ranking
from discreet.tabular import Columns, Tabular, list_field_columns
from discreet.text import count_of, name_some
from discreet.types import FloatArray, Int64Array
from discreet.words import ENGLISH, Language, mark_of


@dataclass(frozen=True, eq=False)
class RankRanges(Tabular):
    """Rank intervals of items, the hardest (or easiest) first.

    Attributes
    ----------
    items
        Those with a number, in the order of their estimates.
    difficulty
        The estimates.
    first, last
        The ranks that an item may have, from 1; with probability ``level`` all of them hold.
    groups
        Runs of neighbours, in the order of the estimates, of which none is surely harder than
        another; as long as possible, so that they may overlap. An item that is surely apart
        from both its neighbours is a group of its own.
    excluded
        Items without a number; nothing is said about them.
    level, easiest
        The confidence and the direction.
    bar
        How many standard errors a difference needs to be sure.
    quantile
        Half-width of intervals of all differences at once, in standard errors.
    without_error
        Items whose standard error is not known, so that any rank is possible.
    noun
        What is ranked: ``"item"``, ``"person"``, ``"object"`` or ``"model"``. ``items`` holds their
        names, ``difficulty`` their numbers.

    Examples
    --------
    >>> import discreet
    >>> from discreet.datasets import lsat
    >>> ranges = discreet.rank_ranges(discreet.fit(lsat()))
    >>> ranges["Item3"].first, ranges["Item3"].last
    (1, 1)
    """

    items: tuple[str, ...]
    difficulty: FloatArray
    first: Int64Array
    last: Int64Array
    groups: tuple[tuple[str, ...], ...]
    excluded: tuple[str, ...]
    level: float
    easiest: bool
    bar: float
    quantile: float
    without_error: tuple[str, ...] = ()
    noun: str = "item"

    def __repr__(self) -> str:
        return f"<RankRanges: {self.describe()[0]}>"

    def describe(self) -> list[str]:
        """Return the sentences that a summary begins with."""
        items, missing = count_of(len(self.items), self.noun), len(self.without_error)
        if missing and missing == len(self.items):
            return [f"{items}, none with a standard error, so that every rank is possible"]
        end = RANK_WORDS[self.noun][1 + self.easiest]
        groups = count_of(len(self.groups), "group")
        facts = f"{items}, {groups} that cannot be told apart within"
        lines = [f"{facts}, {end} first, {self.level:.0%} for all ranks together"]
        if missing:
            lines.append(
                f"{count_of(missing, self.noun)} without a standard error may have any rank"
            )
        return lines

    def narrow(self, ranking: Ranking) -> Ranking:
        """Return a ranking that says of the top what these ranks say, for a table of both."""
        count = len(ranking.top)
        surely, possibly = (
            tuple(self.items[i] for i in np.flatnonzero(ranks <= count))
            for ranks in (self.last, self.first)
        )
        return replace(ranking, surely_in=surely, possibly_in=possibly, bar=self.bar)

    @property
    def sure(self) -> tuple[str, ...]:
        """Items at the head whose ranks are sure: the hardest, the second hardest, and so on."""
        is_sure = (self.first == self.last) & (self.first == np.arange(1, len(self.items) + 1))
        return self.items[: int(np.argmin([*is_sure, False]))]

    def to_dict(self) -> Columns:
        """One list per column: item, difficulty (person, ability), first, last."""
        columns = list_field_columns(self, "first", "last")
        number = RANK_WORDS[self.noun][0]
        return {self.noun: list(self.items), number: self.difficulty.tolist(), **columns}


def rank_ranges(
    estimate: CalibrationOrScores,
    *,
    level: float = 0.95,
    easiest: bool = False,
    rng: np.random.Generator | None = None,
) -> RankRanges:
    """Return rank intervals of all items, and groups that cannot be distinguished.

    Parameters
    ----------
    estimate
        As for :func:`discreet.rank`, with the same care where there is no covariance.
    level
        Probability that all ranges hold together.
    easiest
        Count ranks from the easiest item instead of from the hardest (of persons, from the least
        able).
    rng
        Source of the draws; by default always the same one.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.api.calibrating import fit
    >>> answers = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 0, 0]] * 40)
    >>> found = rank_ranges(fit(answers))
    >>> [*zip(found.items, found.first.tolist(), found.last.tolist())]
    [('1', 1, 2), ('2', 1, 2), ('0', 3, 3)]
    >>> found.groups
    (('1', '2'), ('0',))
    """
    level, (ranked, noun) = check_level(level), as_ranked(estimate, "a ranking")
    differences = find_differences(ranked, easiest=easiest)
    bars = Bars(differences, level, rng)
    above, below, beaten = count_sure(differences, bars.order)
    names = tuple(ranked.items[i] for i in differences.order)
    return RankRanges(
        items=names,
        difficulty=ranked.difficulty[differences.order],
        first=above + 1,
        last=len(names) - below,
        groups=tuple(names[run] for run in _find_runs(beaten)),
        excluded=tuple(np.array(ranked.items, dtype=object)[~ranked.estimated]),
        level=level,
        easiest=easiest,
        bar=bars.order,
        quantile=bars.interval,
        without_error=name_without_error(ranked),
        noun=noun,
    )


def _find_runs(beaten: Int64Array) -> list[slice]:
    """Return the longest runs without an item that is surely above another of the run.

    ``beaten`` is, for each item, the first one that is surely below it.
    """
    ends = np.minimum.accumulate(beaten[::-1])[::-1]
    longest = np.diff(ends, prepend=0) > 0
    return [slice(start, int(ends[start])) for start in np.flatnonzero(longest).tolist()]


@dataclass(frozen=True)
class ItemComparison(Tabular):
    """Comparison of two items of one estimate: difference, interval, probability of the order.

    Attributes
    ----------
    first, second
        Their names.
    difference, se
        First less second, in logits, and its standard error.
    lower, upper
        Interval of the difference.
    probability
        That the first is the harder one (of persons the abler, of objects the stronger), as far
        as this estimate tells: the normal (or Student's) probability of a difference above zero.
    level
        Probability of the interval.
    simultaneous
        Whether it holds for all pairs of items at once, as it must where the two were chosen
        by looking at the numbers.

    Examples
    --------
    >>> import discreet
    >>> from discreet.datasets import lsat
    >>> pair = discreet.compare_items(discreet.fit(lsat()), "Item3", "Item1")
    >>> round(pair.difference, 2), pair.lower > 0
    (2.49, True)
    """

    first: str
    second: str
    difference: float
    se: float
    lower: float
    upper: float
    probability: float
    level: float
    simultaneous: bool

    def to_dict(self) -> PlainDict:
        """Return the fields as plain values."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def compare_items(
    estimate: CalibrationOrScores,
    first: str,
    second: str,
    *,
    level: float = 0.95,
    simultaneous: bool = False,
) -> ItemComparison:
    """Compare two items: the difference, its interval, and the probability of the order.

    Parameters
    ----------
    estimate
        As for :func:`discreet.rank`.
    first, second
        Names of items, or of persons where the first argument holds scores.
    level
        Probability of the interval.
    simultaneous
        Whether the interval shall hold for all pairs at once: right where these two were chosen
        because of their numbers.

    Examples
    --------
    >>> import discreet
    >>> found = compare_items(discreet.fit(discreet.datasets.lsat()), "Item3", "Item2")
    >>> round(found.difference, 2), found.lower > 0, found.probability > 0.999
    (0.76, True, True)
    """
    level, (ranked, noun) = check_level(level), as_ranked(estimate, "a comparison of items")
    differences = find_differences(ranked)
    first_position, second_position = (
        _find_place(ranked, differences, name, noun) for name in (first, second)
    )
    if first_position == second_position:
        raise BadUsage(f"{first} is compared with itself; name two {noun}s")
    difference = float(differences.value[first_position] - differences.value[second_position])
    se = float(differences.errors(slice(first_position, first_position + 1))[0, second_position])
    bar = (
        Bars(differences, level).interval
        if simultaneous
        else two_sided_quantile(1 - level, differences.degrees)
    )
    half = bar * se
    return ItemComparison(
        first=str(first),
        second=str(second),
        difference=difference,
        se=se,
        lower=difference - half,
        upper=difference + half,
        probability=find_probability(difference, se, differences.degrees),
        level=level,
        simultaneous=simultaneous,
    )


def _find_place(estimate: Estimate, differences: Differences, name: str, noun: str) -> int:
    if name not in estimate.items:
        raise BadUsage(
            f"there is no {noun} {name!r} among the {len(estimate.items):,} here: "
            f"{name_some(estimate.items)}"
        )
    positions = np.flatnonzero(differences.order == estimate.items.index(name))
    if not len(positions):
        raise BadUsage(f"{name!r} has no number here, so it cannot be compared")
    return int(positions[0])


def find_probability(difference: float, se: float, degrees: int | None = None) -> float:
    """Return the probability that a true difference is above zero; a half where nothing is known.

    Examples
    --------
    >>> find_probability(0.0, 0.1), round(find_probability(0.1645, 0.1), 3)
    (0.5, 0.95)
    """
    if not np.isfinite(se):
        return 0.5
    if se == 0:
        return 0.5 if difference == 0 else float(difference > 0)
    if degrees is not None:
        from scipy.special import stdtr

        return float(stdtr(degrees, difference / se))
    from statistics import NormalDist

    return NormalDist().cdf(difference / se)


LEVEL = 0.95
#: Items up to which a page holds the standard error of every difference: half a megabyte.
PAIRED_ITEMS = 500
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
    neighbours: Columns
    pairs: PlainDict | None


def find_standing(estimate: Estimate) -> ItemOrder:
    """Say where the items of an estimate stand."""
    ranges = rank_ranges(estimate, level=LEVEL)
    differences, count = find_differences(estimate), max(len(ranges.items) - 1, 0)
    apart = differences.value[:-1] - differences.value[1:]
    variance = differences.variance[:-1] + differences.variance[1:]
    if differences.covariance is not None:
        variance = variance - 2 * differences.covariance.diagonal(1)
    error = np.sqrt(np.maximum(variance, 0.0))
    half = two_sided_quantile(1 - LEVEL, differences.degrees) * error
    chance = [
        find_probability(one, se, differences.degrees)
        for one, se in zip(apart.tolist(), error.tolist(), strict=True)
    ]
    neighbours = {
        "above": list(ranges.items[:count]),
        "below": list(ranges.items[1:]),
        "difference": apart.tolist(),
        "lower": (apart - half).tolist(),
        "upper": (apart + half).tolist(),
        "probability": chance,
        "told_apart": (apart > ranges.bar * error).tolist(),
    }
    return ItemOrder(ranges, neighbours, _gather_pairs(estimate, ranges))


def _gather_pairs(estimate: Estimate, ranges: RankRanges) -> PlainDict | None:
    differences, items = find_differences(estimate), len(ranges.items)
    if not np.isfinite(differences.variance).all() or items < 2 or estimate.degrees is not None:
        return None
    if differences.covariance is None:
        errors = {"variances": _shorten(differences.variance)}
    elif items <= PAIRED_ITEMS:
        errors = {"errors": _shorten(differences.errors()[np.triu_indices(items, 1)])}
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


def say_extremes(ranges: RankRanges, tell: Language = ENGLISH) -> str:
    """Name the hardest and the easiest item, as far as that is sure."""
    ends = (ranges.first == 1, ranges.last == len(ranges.items))
    sentences = []
    for sure, unsure, mask in zip(SURE, UNSURE, ends, strict=True):
        names = [ranges.items[i] for i in np.flatnonzero(mask)]
        if len(names) == 1:
            sentences.append(tell.of(sure, name=names[0]))
        else:
            count, some = tell.number(len(names)), name_some(names, tell=tell)
            sentences.append(tell.of(unsure, count=count, names=some))
    return " ".join(sentences)


def show_ranks(ranges: RankRanges, dash: str = "\N{EN DASH}") -> dict[str, str]:
    """Return the ranks that each item may have, such as "3" or "2-7"."""
    pairs = zip(ranges.first.tolist(), ranges.last.tolist(), strict=True)
    texts = [f"{first}" if first == last else f"{first}{dash}{last}" for first, last in pairs]
    return dict(zip(ranges.items, texts, strict=True))


def list_groups(ranges: RankRanges, tell: Language = ENGLISH) -> dict[str, list[str]]:
    """Return groups of items that cannot be told apart, as columns, from the first place on."""
    rank_of = {name: number for number, name in enumerate(ranges.items, start=1)}
    groups = [group for group in ranges.groups if len(group) > 1][:SHOWN_GROUPS]
    return {
        "places": [f"{rank_of[group[0]]}\N{EN DASH}{rank_of[group[-1]]}" for group in groups],
        "items": [name_some(group, 12, tell) for group in groups],
    }
