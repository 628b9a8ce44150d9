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
from typing import Any

from discreet.choices import PlainMapping
from discreet.coding.remedies import Detected, capitalise, join_remedies, make_remedy
from discreet.coding.values import EVERYWHERE, as_number, spell
from discreet.errors import LOG, BadResponses, BadUsage, Remedy
from discreet.hints import check_choice_name
from discreet.text import name_some

#: Categories of an item, such as pain from 0 to 10. A release takes one less.
MOST_CATEGORIES = 11
#: Share of an item's answers below which a category may be a slip of the pen.
RARE = 0.001

#: Distance from a scale from which on a value stands apart, as codes for missing answers do.
GAP = 2
#: Numbers beyond this are no categories, and some are too long to be written down.
LARGEST = 10**9

#: By item, how often each value occurs, as :func:`discreet.coding.values.spell` writes it.
Tally = Mapping[str, Mapping[str, int]]


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
    categories
        Lists of texts, each from the lowest category to the highest.
    carried
        Whether a calibration says so: its items need not all be here, nor all their categories.
    """

    model: str | None = None
    steps: Mapping[str, int] = field(default_factory=dict)
    lowest: int | None = None
    reverse: tuple[str, ...] = ()
    merge: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    categories: tuple[tuple[str, ...], ...] = ()
    carried: bool = False

    @property
    def is_binary(self) -> bool:
        """Whether only right and wrong are to be read."""
        return self.model == "rasch"

    @property
    def is_said(self) -> bool:
        """Whether steps are to be read whatever the first values look like."""
        has_options = self.steps or self.lowest is not None or self.reverse or self.merge
        return bool(has_options or self.categories) or self.model not in (None, "auto", "rasch")


@dataclass(frozen=True)
class CategoryScale:
    """From values to categories.

    Attributes
    ----------
    codes
        By item, the category of every value, which is written as
        :func:`discreet.coding.values.spell` does.
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
    for item, n_steps in steps.items():
        order = range(n_steps, -1, -1) if item in turned else range(n_steps + 1)
        codes[item] = {str(lowest + position): code for position, code in enumerate(order)}
    return CategoryScale(codes, dict(steps), lowest)


def make_asked(
    model: str | None = None,
    steps: object = None,
    lowest: object = None,
    reverse: str | Sequence[str] = (),
    merge: object = None,
    categories: object = (),
    *,
    carried: bool = False,
) -> AskedSteps:
    """Check what was said about categories.

    Examples
    --------
    >>> make_asked(steps=4, merge={"Q1": "2+3"}).merge
    {'Q1': ((2, 3),)}
    """
    from discreet.choices import MODELS

    if model is not None:
        check_choice_name("model", model, ("auto", *MODELS))
    by_item = steps if isinstance(steps, Mapping) else {} if steps is None else {EVERYWHERE: steps}
    options = AskedSteps(
        None if model == "auto" else model,
        {str(item): _check_whole("steps", number, 1) for item, number in by_item.items()},
        None if lowest is None else _check_whole("lowest", lowest, -1000),
        (reverse,) if isinstance(reverse, str) else tuple(str(name) for name in reverse),
        _check_merge(merge),
        _check_categories(categories),
        carried,
    )
    if options.is_binary and (options.steps or options.reverse or options.merge or options.lowest):
        raise BadUsage(
            "model='rasch' (--model rasch) is for right and wrong answers; steps=, lowest=, "
            "reverse= and merge= are about steps. Leave out one or the other."
        )
    return options


def _check_whole(name: str, value: object, least: int) -> int:
    number = as_number(value)
    is_integer = number is not None and -LARGEST <= number <= LARGEST and number == int(number)
    if number is None or not is_integer or number < least:
        raise BadUsage(f"{name}= (--{name}) must be a whole number from {least}; found {value!r}")
    if name == "steps" and number >= MOST_CATEGORIES:
        raise BadUsage(
            f"steps= (--steps) may be at most {MOST_CATEGORIES - 1}, found {value!r}: more than "
            f"{MOST_CATEGORIES} categories say next to nothing each. Merge some"
        )
    return int(number)


def _check_merge(merge: object) -> dict[str, tuple[tuple[int, ...], ...]]:
    if merge is None:
        return {}
    if not isinstance(merge, Mapping):
        raise BadUsage(
            f"merge= must say for which item, as in {{'Q1': '2+3'}} (--merge Q1:2+3); found "
            f"{merge!r}"
        )
    by_item: dict[str, tuple[tuple[int, ...], ...]] = {}
    for item, sets in merge.items():
        is_one = not isinstance(sets, str) and (not sets or isinstance(sets[0], int))
        groups = [sets] if is_one else sets.split(",") if isinstance(sets, str) else sets
        by_item[str(item)] = tuple(map(_split_merge, groups))
    return by_item


def write_merge(merge: object) -> dict[str, str]:
    """Return what is merged, in any form, as people write it.

    Examples
    --------
    >>> write_merge({"Q1": ((1, 2), (4, 5))})
    {'Q1': '1+2,4+5'}
    """
    return {
        item: ",".join("+".join(map(str, group)) for group in groups)
        for item, groups in _check_merge(merge).items()
    }


def _check_categories(categories: Any) -> tuple[tuple[str, ...], ...]:
    """Return lists of texts in lower case: one of texts, or several."""
    lists = [categories] if categories and isinstance(categories[0], str) else categories
    checked = tuple(tuple(spell(text).lower() for text in texts) for texts in lists)
    for texts in checked:
        if not 2 <= len(set(texts)) == len(texts) <= MOST_CATEGORIES:
            raise BadUsage(
                f"categories= (--categories) must name 2 to {MOST_CATEGORIES} different texts, "
                f"from the lowest to the highest; found {', '.join(map(repr, texts))}."
            )
    return checked


def _split_merge(group: Any) -> tuple[int, ...]:
    parts = group.split("+") if isinstance(group, str) else list(group)
    values = tuple(sorted({_check_whole("merge", part, -1000) for part in parts}))
    if len(values) < 2:
        raise BadUsage(f"merge= (--merge) joins two categories or more, as in 2+3; found {group!r}")
    return values


# -- from what occurs to a scale -------------------------------------------------------------


def find_scale(tally: Tally, options: AskedSteps, fewest: int = 3) -> CategoryScale | None:
    """Return the scale of these values; None where they are no steps.

    Numbers beside at least ``fewest`` categories are refused as codes for missing answers.

    Raises
    ------
    BadResponses
        If the values could be steps but for something that is more likely a mistake: a category
        that hardly occurs, or that one item of a right/wrong test has.
    """
    if options.categories:
        return _scale_texts(tally, options)
    numbers = {item: _read_numbers(counts) for item, counts in tally.items()}
    if any(counts is None for counts in numbers.values()):
        return None
    tallies = {item: counts for item, counts in numbers.items() if counts}
    if not tallies:
        return None
    _refuse_apart(tallies, options, fewest)
    lowest = _find_lowest(tallies, options)
    used = {value for counts in tallies.values() for value in counts}
    highest = max(used)
    if lowest is None or highest - lowest >= MOST_CATEGORIES:
        return None
    if not (options.steps or used.issuperset(range(lowest + 1, highest))):
        return None  # a gap
    if lowest and highest - lowest < 2 and not options.is_said:
        return None  # 1 and 2: which of them is right, nobody knows
    _check_named(tallies, options)
    if options.model is None:
        _refuse_stray(tallies, lowest)
    scale = _build(tallies, options, lowest, highest)
    if options.lowest is None and lowest:
        LOG.info("answers from %d to %d are read as steps from 0", lowest, highest)
    return scale


def _scale_texts(tally: Tally, options: AskedSteps) -> CategoryScale:
    """Return the scale of answers that are texts: of each item the list that holds most of them."""
    if options.merge or options.lowest is not None or options.steps:
        raise BadUsage(
            "categories= (--categories) names the categories of texts; merge=, lowest= and steps= "
            "are about numbers. Leave out one or the other."
        )
    codes = {}
    for item, word_counts in tally.items():
        shares = [sum(word_counts.get(word, 0) for word in texts) for texts in options.categories]
        texts = options.categories[shares.index(max(shares))]
        order = texts[::-1] if item in options.reverse else texts
        codes[item] = {word: code for code, word in enumerate(order)}
    _check_named(codes, options)
    steps = {item: len(words) - 1 for item, words in codes.items()}
    sentence = "Which list of categories an item has was taken from its answers."
    choice = Detected("categories", sentence, Remedy("write the categories as numbers"))
    return CategoryScale(codes, steps, detected=(choice,) * (len(options.categories) > 1))


class BadScale(BadResponses):
    """Values that a scale cannot have.

    Attributes
    ----------
    reason
        What is wrong with them, without what to do.
    field
        The field of a reading that would settle it.
    cells
        The values, by item.
    """

    def __init__(
        self, reason: str, field: str, cells: Mapping[str, Iterable[int]], *remedies: Remedy
    ) -> None:
        self.reason, self.field = f"{capitalise(reason)}.", field
        self.cells = {item: frozenset(values) for item, values in cells.items() if values}
        super().__init__(f"{self.reason} {join_remedies(remedies)}".strip())
        self.offering(*remedies)


class UnlistedValue(BadResponses):
    """A value that is none of the categories of its item, which were told.

    Attributes
    ----------
    item, value
        The item, and the value as it is compared.
    codes
        The categories of the item.
    tally
        What else occurs.
    """

    def __init__(self, item: str, value: str, codes: Collection[str], tally: Tally) -> None:
        self.item, self.value, self.codes, self.tally = item, value, codes, tally
        self.reason = (
            f"item {item!r} has the answer {value}, which is none of its categories: "
            f"{', '.join(codes)}."
        )
        super().__init__(f"{self.reason} Correct it.")


def find_shared_run(by_item: Collection[Collection[Any]]) -> frozenset[Any]:
    """Return the values next to each other that more than half of the items share.

    Examples
    --------
    >>> sorted(find_shared_run([[0, 1, 2, 9], [0, 1, 2, 9], [0, 1, 2, 3]]))
    [0, 1, 2]
    """
    times = Counter(value for values in by_item for value in set(values))
    items = sum(1 for values in by_item if values)
    shared = {value for value, count in times.items() if 2 * count > items}
    return frozenset(value for value in shared if {value - 1, value + 1} & shared)


def _refuse_apart(
    item_counts: Mapping[str, Mapping[int, int]], options: AskedSteps, fewest: int
) -> None:
    """Refuse a scale with numbers that stand apart from it, as codes for missing answers do."""
    used = sorted({value for value_counts in item_counts.values() for value in value_counts})
    inside = [value for value in used if value >= min(options.lowest or 0, 0)]
    gaps = (n for n in range(1, len(inside)) if inside[n] - inside[n - 1] >= GAP)
    scale = inside[: next(gaps, len(inside))]
    reach = used[0] + max(options.steps.values(), default=-1)
    apart = [value for value in used if value not in scale and not 0 <= value <= reach]
    if not apart or not scale or scale[0] > 1 or not fewest <= len(scale) <= MOST_CATEGORIES:
        return
    if any(value_counts.keys().isdisjoint(scale) for value_counts in item_counts.values()):
        return  # a column of other numbers is no item, and its numbers are no codes
    codes = ",".join(map(str, apart))
    cells = {item: value_counts.keys() & set(apart) for item, value_counts in item_counts.items()}
    reason = f"answers go from {scale[0]} to {scale[-1]}, and {codes} is far outside"
    beginning = make_remedy(f"if the scale begins at {used[0]}, say", {"lowest": used[0]})
    is_run = apart == [*range(apart[0], scale[0])]
    if is_run and len(apart) > 1 and find_shared_run(item_counts.values()) >= set(apart):
        raise BadScale(f"{reason}, although most items have it", "lowest", cells, beginning)
    affected = name_some([item for item, values in cells.items() if values])
    total = sum(sum(value_counts.values()) for value_counts in item_counts.values())
    times = sum(item_counts[item][value] for item, values in cells.items() for value in values)
    correcting = Remedy(
        "otherwise correct it, or say from which score on answers count as right with at_least= "
        "(--at-least)",
        asks="at_least",
        change="otherwise correct it, or say from which score on answers count as right",
    )
    raise BadScale(
        f"{reason}: it is {times:,} of {total:,} answers, in {affected}",
        "missing",
        cells,
        make_remedy("if it stands for a missing answer, say", {"missing": apart}),
        *([beginning] if is_run else []),
        correcting,
    )


def find_without_words(tally: Tally, step_options: AskedSteps) -> CategoryScale | None:
    """Return the scale of the values that are whole numbers; None where they are no scale.

    A reader that goes by it stops at the first value that is the trouble, not at a step.
    """
    numbers = {
        item: {word: times for word, times in word_counts.items() if _read_numbers({word: times})}
        for item, word_counts in tally.items()
    }
    if numbers == tally:
        return None
    meant = replace(step_options, model=step_options.model or "partial-credit")
    with warnings.catch_warnings(), suppress(BadScale):
        warnings.simplefilter("ignore")  # the answers are refused in any case
        scale = find_scale(numbers, meant)
        return None if scale is None or scale.is_binary else scale
    return None


def _read_numbers(words: Mapping[str, int]) -> dict[int, int] | None:
    """Return how often every number occurs; None where something is no whole number."""
    counts: dict[int, int] = {}
    for word, times in words.items():
        number = as_number({"true": "1", "false": "0"}.get(word, word))
        if number is None or not -LARGEST <= number <= LARGEST or number != int(number):
            return None
        counts[int(number)] = counts.get(int(number), 0) + times
    return counts


def _find_lowest(tallies: Mapping[str, Mapping[int, int]], options: AskedSteps) -> int | None:
    smallest = min(min(tally) for tally in tallies.values())
    if options.lowest is not None:
        if smallest < options.lowest:
            low = options.lowest
            cells = {item: {v for v in tally if v < low} for item, tally in tallies.items()}
            items = name_some([item for item, values in cells.items() if values])
            reason = (
                f"the answer {smallest} is below the lowest category, which was said to be {low} "
                f"(lowest=, --lowest); it occurs in {items}"
            )
            raise BadScale(reason, "lowest", cells)
        return options.lowest
    return smallest if smallest in (0, 1) else None


def _refuse_stray(item_counts: Mapping[str, Mapping[int, int]], lowest: int) -> None:
    """Refuse what would turn a right/wrong test into partial credit by one slip of the pen."""
    above = [item for item, value_counts in item_counts.items() if max(value_counts) > 1]
    if lowest == 0 and len(above) == 1 and len(item_counts) > 1:
        item = above[0]
        highest = max(item_counts[item])
        reason = f"item '{item}' has the answer {highest}, and all other items are right or wrong"
        remedies = [*_name_slip(highest), Remedy("otherwise correct it")]
        raise BadScale(f"{reason} (0 or 1)", "model", {item: {highest}}, *remedies)
    shared = find_shared_run(item_counts.values())
    for item, value_counts in item_counts.items():
        total = sum(value_counts.values())
        for value, times in sorted(value_counts.items()):
            if times < RARE * total:
                raise _explain_rare(item, value, f"{times:,} of {total:,} times", value in shared)


def _explain_rare(item: str, value: int, share: str, is_shared: bool) -> BadScale:
    """Return the refusal of a category that hardly anybody has; one of most items is no code."""
    reason = f"the answer {value} to item '{item}' occurs {share}, less than {RARE:.1%}, which may "
    merge = {"merge": {item: f"{value}+{value - 1 or value + 1}"}}
    joining = make_remedy("to join it with its neighbour, say", merge)
    remedies = [*_name_slip(value)[is_shared:], joining, Remedy("otherwise correct it")]
    return BadScale(f"{reason}be a slip", "model", {item: {value}}, *remedies)


def _name_slip(value: int) -> list[Remedy]:
    """Return what a category that nobody expects may be: no answer, or a step."""
    return [
        make_remedy(f"if {value} stands for a missing answer, say", {"missing": [value]}),
        make_remedy("if it is meant, name the model:", {"model": "partial-credit"}),
    ]


def _check_named(tallies: PlainMapping, options: AskedSteps) -> None:
    for option, names in (
        ("reverse", options.reverse), ("merge", options.merge), ("steps", options.steps)
    ):  # fmt: skip
        unknown = [name for name in names if name != EVERYWHERE and name not in tallies]
        if unknown and not options.carried:
            raise BadUsage(
                f"{option}= (--{option}) names {name_some(unknown)}, but the items with steps are "
                f"{name_some(list(tallies))}. Write items as the table does."
            )


def _build(
    tallies: Mapping[str, Mapping[int, int]], options: AskedSteps, lowest: int, highest: int
) -> CategoryScale:
    codes, steps = {}, {}
    for item, tally in tallies.items():
        top = _find_most(item, tally, options, lowest, highest)
        values = list(range(lowest, top + 1))
        if item in options.reverse:
            values.reverse()
        joined = _join(
            values, [*options.merge.get(EVERYWHERE, ()), *options.merge.get(item, ())], item
        )
        codes[item] = {str(value): code for value, code in joined.items()}
        steps[item] = max(joined.values())
    return CategoryScale(codes, steps, lowest, _list_detected(options, lowest, highest))


def _list_detected(options: AskedSteps, lowest: int, highest: int) -> tuple[Detected, ...]:
    """Return what the values decided about the categories of other answers.

    The highest value of an item that is not reversed decides about no other answer.
    """
    detected = []
    if options.lowest is None and lowest:
        sentence = f"The lowest category, {lowest}, is the smallest answer that occurs."
        before = "where the answers are read, state what the questionnaire has, such as"
        detected.append(Detected("lowest", sentence, make_remedy(before, {"lowest": lowest})))
    turned = [item for item in options.reverse if not {item, EVERYWHERE} & options.steps.keys()]
    if turned:
        sentence = f"{name_some(turned)}: reversed at {highest}, the highest answer that occurs."
        remedy = Remedy(
            "where the answers are read, state how many steps the questionnaire has with steps= "
            "(--steps); or give the release the table itself with reverse= (--reverse)"
        )
        detected.append(Detected("steps", sentence, remedy))
    return tuple(detected)


def _find_most(
    item: str, value_counts: Mapping[int, int], step_options: AskedSteps, lowest: int, highest: int
) -> int:
    """Return the highest value that an item may have."""
    n_steps = step_options.steps.get(item, step_options.steps.get(EVERYWHERE))
    if n_steps is not None:
        if max(value_counts) > lowest + n_steps:
            reason = (
                f"item '{item}' has the answer {max(value_counts)}, but "
                f"{'the calibration knows' if step_options.carried else 'was said to have'} "
                f"{n_steps} steps (steps=, --steps), from {lowest} to {lowest + n_steps}"
            )
            more = "calibrate anew with these answers" if step_options.carried else "say more steps"
            advice = Remedy(f"{more}, or name codes for missing answers with missing= (--missing)")
            cells = {item: {value for value in value_counts if value > lowest + n_steps}}
            raise BadScale(reason, "steps", cells, advice)
        return lowest + n_steps
    # An item that is turned around, or on a common scale, ends where the scale ends.
    shared = item in step_options.reverse or step_options.model == "rating-scale"
    return highest if shared else max(max(value_counts), lowest + 1)


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
