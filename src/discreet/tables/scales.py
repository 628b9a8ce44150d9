"""Answers with steps: which whole numbers are categories of which item.

In: how often every value of every item occurs, and what the user stated. Out: a
:class:`CategoryScale`, from values as they are written to categories from 0, or None where the
values are no steps. It is made once for all data, before answers are read into their final form: a
category that somebody used in the last row is a category of the first. A release never looks at
values; it is told.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Self

from discreet.errors import BadResponses, BadUsage, Remedy
from discreet.markup import name_some
from discreet.tables.remedies import Detected, make_remedy
from discreet.tables.values import EVERYWHERE, as_number

MOST_CATEGORIES = 10
RARE = 0.001
"""Share of an item's answers below which a category may be a slip of the pen."""

LARGEST = 10**9
"""Numbers beyond this are no categories, and some are too long to be written down."""

Tally = Mapping[str, Mapping[str, int]]
"""By item, how often each value occurs, as :func:`discreet.tables.values.spell` writes it."""


@dataclass(frozen=True)
class AskedSteps:
    """What the user said about categories.

    Attributes
    ----------
    model
        ``"rasch"``: only right and wrong are read. Another model: steps are read, and a category
        that nobody would expect is taken for one. None: what the values look like decides.
    steps
        By item, how many steps it has; "*" for all the others. Empty: as many as occur.
    lowest
        The value of the lowest category; None takes 0, or 1 where no 0 occurs.
    reverse
        Items whose categories are counted from the other end.
    merge
        By item, sets of values that are one category; "*" for all items.
    """

    model: str | None = None
    steps: Mapping[str, int] = field(default_factory=dict)
    lowest: int | None = None
    reverse: tuple[str, ...] = ()
    merge: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)

    @property
    def is_binary(self) -> bool:
        """Whether only right and wrong are to be read."""
        return self.model == "rasch"

    @property
    def is_said(self) -> bool:
        """Whether steps are to be read whatever the first values look like."""
        named = self.steps or self.lowest is not None or self.reverse or self.merge
        return bool(named) or self.model not in (None, "auto", "rasch")


@dataclass(frozen=True)
class CategoryScale:
    """From values to categories.

    Attributes
    ----------
    codes
        By item, the category of every value, which is written as
        :func:`discreet.tables.values.spell` does.
    steps
        By item, its highest category.
    lowest
        The lowest value of the scale, whichever category that is.
    detected
        What was detected in the answers and would change their categories.
    """

    codes: Mapping[str, Mapping[str, int]]
    steps: Mapping[str, int]
    lowest: int = 0
    detected: tuple[Detected, ...] = ()

    @property
    def is_binary(self) -> bool:
        """Whether all is right and wrong after all."""
        return all(step == 1 for step in self.steps.values())

    def steps_of(self, items: Iterable[str]) -> tuple[int, ...]:
        """Return the steps of these items, 1 of those it does not know."""
        return tuple(self.steps.get(str(item), 1) for item in items)


def list_scale(
    steps: Mapping[str, int], lowest: int = 0, reverse: Iterable[str] = ()
) -> CategoryScale:
    """Return the scale of items whose steps are known; nothing is looked up in the answers.

    Examples
    --------
    >>> list_scale({"Q1": 2}, lowest=1).codes
    {'Q1': {'1': 0, '2': 1, '3': 2}}
    """
    turned = set(reverse)
    codes = {}
    for item, most in steps.items():
        order = range(most, -1, -1) if item in turned else range(most + 1)
        codes[item] = {str(lowest + place): code for place, code in enumerate(order)}
    return CategoryScale(codes, dict(steps), lowest)


def make_asked(
    model: str | None = None,
    steps: Any = None,
    lowest: Any = None,
    reverse: str | Sequence[str] = (),
    merge: Any = None,
) -> AskedSteps:
    """Check what was said about categories.

    Examples
    --------
    >>> make_asked(steps=4, reverse="Q2", merge={"Q1": "2+3"})
    AskedSteps(model=None, steps={'*': 4}, lowest=None, reverse=('Q2',), merge={'Q1': ((2, 3),)})
    """
    from discreet.types import MODELS

    known = ("auto", *MODELS)
    if model not in (None, *known):
        raise BadUsage(f"there is no model called {model!r}; choose one of: {', '.join(known)}")
    asked = AskedSteps(
        None if model == "auto" else model,
        _check_steps(steps),
        None if lowest is None else _check_whole("lowest", lowest, -1000),
        (reverse,) if isinstance(reverse, str) else tuple(str(one) for one in reverse),
        _check_merge(merge),
    )
    if asked.is_binary and (asked.steps or asked.reverse or asked.merge or asked.lowest):
        raise BadUsage(
            "model='rasch' (--model rasch) is for right and wrong answers; steps=, lowest=, "
            "reverse= and merge= are about steps. Leave out one or the other."
        )
    return asked


def _check_steps(given: Any) -> dict[str, int]:
    by_item = given if isinstance(given, Mapping) else {} if given is None else {EVERYWHERE: given}
    return {str(item): _check_whole("steps", one, 1) for item, one in by_item.items()}


def _check_whole(name: str, given: Any, least: int) -> int:
    number = as_number(given)
    whole = number is not None and -LARGEST <= number <= LARGEST and number == int(number)
    if number is None or not whole or number < least:
        raise BadUsage(f"{name}= (--{name}) must be a whole number from {least}; found {given!r}")
    if name == "steps" and number >= MOST_CATEGORIES:
        raise BadUsage(
            f"steps= (--steps) may be at most {MOST_CATEGORIES - 1}, found {given!r}: more than "
            f"{MOST_CATEGORIES} categories say next to nothing each. Merge some"
        )
    return int(number)


def _check_merge(given: Any) -> dict[str, tuple[tuple[int, ...], ...]]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise BadUsage(
            f"merge= must say for which item, as in {{'Q1': '2+3'}} (--merge Q1:2+3); found "
            f"{given!r}"
        )
    return {str(item): tuple(map(_split_merge, _several(sets))) for item, sets in given.items()}


def _several(sets: Any) -> Sequence[Any]:
    if isinstance(sets, str):
        return sets.split(",")
    return sets if sets and not isinstance(sets[0], int) else [sets]


def _split_merge(one: Any) -> tuple[int, ...]:
    parts = one.split("+") if isinstance(one, str) else list(one)
    values = tuple(sorted({_check_whole("merge", part, -1000) for part in parts}))
    if len(values) < 2:
        raise BadUsage(f"merge= (--merge) joins two categories or more, as in 2+3; found {one!r}")
    return values


# -- from what occurs to a scale -------------------------------------------------------------


def find_scale(tally: Tally, asked: AskedSteps) -> CategoryScale | None:
    """Return the scale of these values; None where they are no steps.

    Raises
    ------
    BadResponses
        If the values could be steps but for something that is more likely a mistake: a category
        that hardly occurs, or that one item of a right/wrong test has.
    """
    numbers = {item: _read_numbers(own) for item, own in tally.items()}
    if any(own is None for own in numbers.values()):
        return None
    found: dict[str, dict[int, int]] = {item: own for item, own in numbers.items() if own}
    if not found:
        return None
    _refuse_apart(found, asked)
    lowest = _find_lowest(found, asked)
    highest = max(max(own) for own in found.values())
    if lowest is None or highest - lowest >= MOST_CATEGORIES or _has_gap(found, lowest, highest):
        return None
    if lowest and highest - lowest < 2 and not asked.is_said:
        return None  # 1 and 2: which of them is right, nobody knows
    _check_named(found, asked)
    if asked.model is None:
        _refuse_stray(found, lowest)
    scale = _build(found, asked, lowest, highest)
    if asked.lowest is None and lowest:
        warnings.warn(
            f"Answers from {lowest} to {highest} are read as steps from 0 to {highest - lowest}: "
            f"{lowest} is taken off every one of them.",
            UserWarning,
            stacklevel=3,
        )
    return scale


class BadScale(BadResponses):
    """Values that a scale cannot have; ``cells`` holds them, by item."""

    cells: Mapping[str, frozenset[int]] = {}

    def about(self, cells: Mapping[str, Iterable[int]]) -> Self:
        """Return this error with the values that it is about."""
        self.cells = {item: frozenset(values) for item, values in cells.items()}
        return self


def find_shared_run(by_item: Collection[Collection[Any]]) -> frozenset[Any]:
    """Return the values next to each other that more than half of the items share.

    Examples
    --------
    >>> sorted(find_shared_run([[0, 1, 2, 9], [0, 1, 2, 9], [0, 1, 2, 3]]))
    [0, 1, 2]
    """
    times = Counter(value for own in by_item for value in set(own))
    items = sum(1 for own in by_item if own)
    shared = {value for value, count in times.items() if 2 * count > items}
    return frozenset(value for value in shared if {value - 1, value + 1} & shared)


def _refuse_apart(found: Mapping[str, Mapping[int, int]], asked: AskedSteps) -> None:
    """Refuse a scale with numbers that stand apart from it, as codes for missing answers do."""
    used = sorted({value for own in found.values() for value in own})
    apart = [value for value in used if value < min(asked.lowest or 0, 0)]
    inside = [value for value in used if value not in apart]
    while len(inside) > 1 and inside[-1] - inside[-2] > 1:
        apart.append(inside.pop())
    whole = inside and inside[0] in (0, 1) and 2 <= len(inside) - 1 < MOST_CATEGORIES
    if not apart or not whole or inside[-1] - inside[0] != len(inside) - 1:
        return
    codes = ",".join(map(str, apart))
    cells = {item: own.keys() & set(apart) for item, own in found.items()}
    where = [item for item, values in cells.items() if values]
    reason = f"answers go from {inside[0]} to {inside[-1]}, and {codes} stands apart"
    if not find_shared_run(found.values()).isdisjoint(apart):
        refusal = BadScale(
            f"{reason}, although most items have it. If the scale begins at {min(used)}, say "
            f"lowest={min(used)} (--lowest {min(used)})."
        )
        remedy = make_remedy(f"the scale begins at {min(used)}:", {"lowest": min(used)})
        raise refusal.about(cells).offering(remedy)
    refusal = BadScale(
        f"{reason}: it is {_tell_share(found, apart)}, in {name_some(where)}. If it stands for a "
        f"missing answer, say missing=[{codes}] (--missing {codes}); otherwise correct it, or say "
        "from which score on answers count as right with at_least= (--at-least)."
    )
    remedy = make_remedy(f"{codes} stands for a missing answer:", {"missing": apart})
    raise refusal.about(cells).offering(remedy)


def _tell_share(found: Mapping[str, Mapping[int, int]], values: Iterable[int]) -> str:
    chosen, total = set(values), sum(sum(own.values()) for own in found.values())
    times = sum(count for own in found.values() for one, count in own.items() if one in chosen)
    return f"{times:,} of {total:,} answers"


def find_without_words(tally: Tally, asked: AskedSteps) -> CategoryScale | None:
    """Return the scale of the values that are whole numbers; None where they are no scale.

    A reader that goes by it stops at the first value that is the trouble, not at a step.
    """
    numbers = {
        item: {word: times for word, times in own.items() if _read_numbers({word: times})}
        for item, own in tally.items()
    }
    if numbers == tally:
        return None
    meant = replace(asked, model=asked.model or "partial-credit")
    with warnings.catch_warnings(), suppress(BadScale):
        warnings.simplefilter("ignore")  # the answers are refused in any case
        scale = find_scale(numbers, meant)
        return None if scale is None or scale.is_binary else scale
    return None


def _read_numbers(words: Mapping[str, int]) -> dict[int, int] | None:
    """Return how often every number occurs; None where something is no whole number."""
    found: dict[int, int] = {}
    for word, times in words.items():
        number = as_number({"true": "1", "false": "0"}.get(word, word))
        if number is None or not -LARGEST <= number <= LARGEST or number != int(number):
            return None
        found[int(number)] = found.get(int(number), 0) + times
    return found


def _find_lowest(found: Mapping[str, Mapping[int, int]], asked: AskedSteps) -> int | None:
    smallest = min(min(own) for own in found.values())
    if asked.lowest is not None:
        if smallest < asked.lowest:
            low = asked.lowest
            cells = {item: {one for one in own if one < low} for item, own in found.items()}
            items = [item for item, values in cells.items() if values]
            raise BadScale(
                f"the answer {smallest} is below the lowest category, which was said to be "
                f"{asked.lowest} (lowest=, --lowest); it occurs in {name_some(items)}"
            ).about(cells)
        return asked.lowest
    return smallest if smallest in (0, 1) else None


def _has_gap(found: Mapping[str, Mapping[int, int]], lowest: int, highest: int) -> bool:
    used = {value for own in found.values() for value in own}
    return any(value not in used for value in range(lowest + 1, highest))


def _refuse_stray(found: Mapping[str, Mapping[int, int]], lowest: int) -> None:
    """Refuse what would turn a right/wrong test into partial credit by one slip of the pen."""
    named = "If it is meant, name the model: model='partial-credit' (--model partial-credit)"
    above = [item for item, own in found.items() if max(own) > 1]
    if lowest == 0 and len(above) == 1 and len(found) > 1:
        item = above[0]
        most = max(found[item])
        refusal = BadScale(
            f"item '{item}' has the answer {most}, and all other items are right or wrong (0 or "
            f"1). {named}; if {most} stands for a missing answer, say missing=[{most}] (--missing "
            f"{most}); otherwise correct it."
        )
        raise refusal.about({item: {most}}).offering(_name_missing(most), _name_step(most))
    shared = find_shared_run(found.values())
    for item, own in found.items():
        total = sum(own.values())
        for value, times in sorted(own.items()):
            if times < RARE * total:
                raise _explain_rare(item, value, f"{times:,} of {total:,} times", value in shared)


def _explain_rare(item: str, value: int, share: str, is_shared: bool) -> BadScale:
    """Return the refusal of a category that hardly anybody has; one of most items is no code."""
    missing = "" if is_shared else f"if {value} stands for a missing answer, say missing=[{value}] "
    missing += "" if is_shared else f"(--missing {value}); "
    pair = f"{value}+{value - 1 or value + 1}"
    joining = make_remedy(f"join {value} with its neighbour:", {"merge": {item: pair}})
    remedies = [_name_step(value), joining]
    refusal = BadScale(
        f"the answer {value} to item '{item}' occurs {share}, less than {RARE:.1%}, which may be a "
        "slip. If it is meant, name the model: model='partial-credit' (--model partial-credit); "
        f"{missing}to join it with its neighbour, say merge={{'{item}': '{pair}'}} (--merge); "
        "otherwise correct it."
    )
    return refusal.about({item: {value}}).offering(
        *remedies if is_shared else [_name_missing(value), *remedies]
    )


def _name_missing(value: int) -> Remedy:
    return make_remedy(f"{value} stands for a missing answer:", {"missing": [value]})


def _name_step(value: int) -> Remedy:
    return make_remedy(f"{value} is meant as a step:", {"model": "partial-credit"})


def _check_named(found: Mapping[str, Any], asked: AskedSteps) -> None:
    for option, names in (
        ("reverse", asked.reverse), ("merge", asked.merge), ("steps", asked.steps)
    ):  # fmt: skip
        unknown = [name for name in names if name != EVERYWHERE and name not in found]
        if unknown:
            raise BadUsage(
                f"{option}= (--{option}) names {name_some(unknown)}, but the items with steps are "
                f"{name_some(list(found))}. Write items as the table does."
            )


def _build(
    found: Mapping[str, Mapping[int, int]], asked: AskedSteps, lowest: int, highest: int
) -> CategoryScale:
    codes, steps = {}, {}
    for item, own in found.items():
        most = _find_most(item, own, asked, lowest, highest)
        values = list(range(lowest, most + 1))
        if item in asked.reverse:
            values.reverse()
        joined = _join(values, [*asked.merge.get(EVERYWHERE, ()), *asked.merge.get(item, ())], item)
        codes[item] = {str(value): code for value, code in joined.items()}
        steps[item] = max(joined.values())
    return CategoryScale(codes, steps, lowest, _list_detected(asked, lowest, highest))


def _list_detected(asked: AskedSteps, lowest: int, highest: int) -> tuple[Detected, ...]:
    """Return what the values decided about the categories of other answers.

    The highest value of an item that is not reversed decides about no other answer.
    """
    detected = []
    if asked.lowest is None and lowest:
        sentence = f"The lowest category, {lowest}, is the smallest answer that occurs."
        before = "where the answers are read, state what the questionnaire has, such as"
        detected.append(Detected("lowest", sentence, make_remedy(before, {"lowest": lowest})))
    turned = [item for item in asked.reverse if not {item, EVERYWHERE} & asked.steps.keys()]
    if turned:
        sentence = f"{name_some(turned)}: reversed at {highest}, the highest answer that occurs."
        remedy = Remedy(
            "where the answers are read, state how many steps the questionnaire has with steps= "
            "(--steps); or give the release the table itself with reverse= (--reverse)"
        )
        detected.append(Detected("steps", sentence, remedy))
    return tuple(detected)


def _find_most(
    item: str, own: Mapping[int, int], asked: AskedSteps, lowest: int, highest: int
) -> int:
    """Return the highest value that an item may have."""
    said = asked.steps.get(item, asked.steps.get(EVERYWHERE))
    if said is not None:
        if max(own) > lowest + said:
            raise BadScale(
                f"item '{item}' has the answer {max(own)}, but was said to have {said} steps "
                f"(steps=, --steps), from {lowest} to {lowest + said}. Say more steps, or name "
                "codes for missing answers with missing= (--missing)"
            ).about({item: {one for one in own if one > lowest + said}})
        return lowest + said
    # An item that is turned around, or on a common scale, ends where the scale ends.
    shared = item in asked.reverse or asked.model == "rating-scale"
    return highest if shared else max(max(own), lowest + 1)


def _join(values: Sequence[int], sets: Sequence[Sequence[int]], item: str) -> dict[int, int]:
    """Return the values' numbers from 0 in their order; values of one set have one number."""
    leader = {value: value for value in values}
    for together in sets:
        inside = [value for value in values if value in together]
        if inside and [*values][values.index(inside[0]) :][: len(inside)] != inside:
            raise BadUsage(
                f"merge= (--merge) joins {'+'.join(map(str, together))} of item '{item}', which "
                "are not next to each other"
            )
        for value in inside:
            leader[value] = leader[inside[0]]
    order = list(dict.fromkeys(leader[value] for value in values))
    if len(order) < 2:
        raise BadUsage(f"merge= (--merge) leaves one category of item '{item}'; two are needed")
    return {value: order.index(leader[value]) for value in values}
