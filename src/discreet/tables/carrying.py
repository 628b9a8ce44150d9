"""Readings that travel with numbers: new answers are read as those of a calibration were.

In: what a calibration keeps of how its answers were read, and what is stated about new ones. Out:
keywords for reading a new table, or a refusal where the two contradict each other. Answers that
were read already are compared and never recoded.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from discreet.errors import AssumedReading, BadUsage
from discreet.tables.lists import Key
from discreet.tables.reading import VALUE_FIELDS, Reading, join_words
from discreet.tables.scales import write_merge
from discreet.tables.values import EVERYWHERE

#: What must be alike in answers that were read. The number of the lowest category, and what counts
#: as right, is a matter of each file.
CODED = ("reverse", "merge", "categories", "steps")


def find_reading(calibration: Any) -> Reading | None:
    """Return how the answers of a calibration were read; None where that is not known."""
    return getattr(getattr(calibration, "estimate", calibration), "reading", None)


def carry_reading(
    known: Reading | None, words: Mapping[str, Any], fields: Collection[str] = VALUE_FIELDS
) -> dict[str, Any]:
    """Return keywords for a new table: those stated, and what a calibration says about values.

    Raises
    ------
    BadUsage
        If what is stated contradicts the calibration.

    Examples
    --------
    >>> with warnings.catch_warnings(action="ignore"):
    ...     carry_reading(Reading(missing=9), {"person": "id", "missing": 8})
    {'person': 'id', 'missing': {'*': ('9', '8')}, 'carried': True}
    """
    rules = {} if known is None else {n: v for n, v in known.stated.items() if n in fields}
    if known is None or not rules:
        return dict(words)
    typed = join_words(words)
    stated = {name for name in fields if name in words or name in typed.stated}
    _refuse_contradiction(known, typed, stated & {*rules, "reverse", "merge"})
    if "missing" in rules:
        columns = known.codes | typed.codes
        rules["missing"] = {
            name: (*known.codes.get(name, ()), *typed.codes.get(name, ())) for name in columns
        }
    untold = {name: value for name, value in rules.items() if name not in stated and value != 0}
    _tell({name: value for name, value in untold.items() if name not in ("steps", "model")})
    turned = {"reverse": ()} if known.asked.steps else {}
    model = {"model": typed.model} if typed.model else {}
    return {**words, **turned, **rules, **model, "carried": True}


def _refuse_contradiction(known: Reading, typed: Reading, names: Collection[str]) -> None:
    """Refuse what is stated otherwise than a calibration has it; further codes are none of it."""
    items = [*known.asked.steps, *known.right] or [EVERYWHERE]
    compared = sorted({*names} - {"missing", "model"})
    if found := find_difference(known, typed, compared, items):
        name, item, ours, theirs = found
        where = "all items" if item == EVERYWHERE else f"item {item!r}"
        raise BadUsage(
            f"{name}= (--{name.replace('_', '-')}) states {theirs} for {where}, and the answers of "
            f"the calibration were read with {ours}. One number would then mean two answers, and "
            "abilities would be wrong. Leave it out: answers are read as those of the calibration "
            "were"
        )


def _tell(untold: Mapping[str, Any]) -> None:
    """Say in one line what nobody stated."""
    if untold:
        rules = "; ".join(_show(*pair) for pair in untold.items())
        sentence = f"The answers are read as those of the calibration were: {rules}."
        warnings.warn(f"{sentence} Stating it ends this message.", AssumedReading, stacklevel=2)


def _show(name: str, value: Any) -> str:
    """Return a keyword with its value; of a key only that there is one."""
    value = write_merge(value) if name == "merge" else value
    if isinstance(value, Mapping) and value.keys() == {EVERYWHERE}:
        value = value[EVERYWHERE]
    shown = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return "a key" if name == "key" else f"{name}={shown}"


def check_alike(known: Reading | None, other: Reading | None, items: Iterable[str]) -> None:
    """Refuse two sets of answers, or numbers from them, whose values were read differently."""
    if known is None or other is None:
        return
    shared = [name for name in items if name in known.asked.steps and name in other.asked.steps]
    turned = [name for name in shared if name in known.reverse]
    found = find_difference(known, other, CODED[:-1], shared)
    found = found or find_difference(known, other, CODED[-1:], turned)
    if found:
        name, item, ours, theirs = found
        raise BadUsage(
            f"the answers to item {item!r} were read with {name}={ours} for one of the two and "
            f"with {name}={theirs} for the other, so that one number means two answers. Read both "
            "alike; a file or a data frame that is given unread is read as the calibration was. If "
            "the answers are in the categories of the calibration, give its table "
            "(estimate.thresholds_to_dataframe()) instead of it"
        )


def find_difference(
    known: Reading, other: Reading, names: Sequence[str], items: Iterable[str]
) -> tuple[str, str, Any, Any] | None:
    """Return the first field and item in which two readings differ, with both values."""
    for item in items:
        for name in names:
            ours, theirs = (_find_rule(reading, name, item) for reading in (known, other))
            if ours != theirs:
                return name, item, ours, theirs
    return None


def _find_rule(reading: Reading, name: str, item: str) -> Any:
    """Return what a reading says about the values of an item."""
    asked = reading.asked
    if name == "reverse":
        return item in asked.reverse
    if name == "merge":
        return [*asked.merge.get(EVERYWHERE, ()), *asked.merge.get(item, ())]
    if name == "steps":
        return asked.steps.get(item, asked.steps.get(EVERYWHERE))
    return reading.right.get(item) if name == "key" else getattr(reading, name)


def join_readings(readings: Sequence[Reading | None]) -> Reading | None:
    """Return what readings say together; where they differ for all items, nothing is said."""
    listed = [reading for reading in readings if reading is not None]
    if not listed or len(listed) < len(readings):
        return None
    first = listed[0].stated
    joined = {
        name: value
        for name, value in first.items()
        if all(one.stated.get(name) == value for one in listed)
    }
    asked = [one.asked for one in listed]
    steps = {name: most for one in asked[::-1] for name, most in one.steps.items()}
    merge = {name: sets for one in asked[::-1] for name, sets in one.merge.items()}
    key = {name: words for one in listed[::-1] for name, words in one.right.items()}
    turned = dict.fromkeys(name for one in asked for name in one.reverse)
    by_item = {"steps": steps, "merge": merge, "reverse": (*turned,), "key": Key(key)}
    return Reading(**{**joined, **{n: v for n, v in by_item.items() if v not in ({}, (), Key())}})
