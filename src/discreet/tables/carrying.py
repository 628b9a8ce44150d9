"""Readings that travel with numbers: new answers are read as those of a calibration were.

In: what a calibration keeps of how its answers were read, and what is stated about new ones. Out:
keywords for reading a new table, or a refusal where the two contradict each other. Answers that
were read already are compared and never recoded.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping

from discreet.choices import PlainDict, PlainMapping
from discreet.coding.agreement import find_difference
from discreet.coding.reading import VALUE_FIELDS, Reading
from discreet.coding.steps import write_merge
from discreet.coding.values import EVERYWHERE
from discreet.errors import AssumedReading, BadUsage
from discreet.tables.lists import state_reading


def carry_reading(
    known: Reading | None, words: PlainMapping, fields: Collection[str] = VALUE_FIELDS
) -> PlainDict:
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
    typed = state_reading(words)
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


def _tell(untold: PlainMapping) -> None:
    """Say in one line what nobody stated."""
    if untold:
        rules = "; ".join(_show(*pair) for pair in untold.items())
        sentence = f"The answers are read as those of the calibration were: {rules}."
        warnings.warn(f"{sentence} Stating it ends this message.", AssumedReading, stacklevel=2)


def _show(name: str, value: object) -> str:
    """Return a keyword with its value; of a key only that there is one."""
    value = write_merge(value) if name == "merge" else value
    if isinstance(value, Mapping) and value.keys() == {EVERYWHERE}:
        value = value[EVERYWHERE]
    shown = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return "a key" if name == "key" else f"{name}={shown}"
