"""Anchors: items whose difficulties, or thresholds, are known before the answers are looked at.

In: a mapping, a table, a calibration, a release or a bank. Out: what is known of the items that the
answers have, checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from os import PathLike
from typing import Any

import numpy as np

from discreet.errors import BadUsage
from discreet.models.item_parameters import (
    KnownItems,
    check_logits,
    known_difficulties,
    known_thresholds,
)
from discreet.results.calibrated import is_series, read_calibration, read_ladders
from discreet.scales.bank import Bank
from discreet.tables.opener import read_columns
from discreet.tables.sources import is_data_frame
from discreet.text import name_some, read_cell


def _read_pairs(table: Any) -> list[tuple[str, Any]]:
    """Return the items and difficulties of a table (a file, a data frame); blanks are left out."""
    columns = read_columns(table, ("item", "difficulty"), "anchors", numbers=("difficulty",))
    rows = zip(*columns, strict=True)
    # NaN, which differs from itself, is how data frames leave a cell blank.
    filled = [(item, value) for item, value in rows if value not in (None, "") and value == value]
    return [(read_cell(item) if isinstance(item, str) else item, value) for item, value in filled]


def accept_anchors(anchors: Any, items: tuple[str, ...]) -> dict[str, float]:
    """Return the anchors by item name, or explain why they cannot be used.

    Parameters
    ----------
    anchors
        A mapping from item to difficulty, an iterable of such pairs, a table with the columns
        item and difficulty (a file, a data frame), or a calibration (an estimate, a release, a
        bank), of which only the items in ``items`` are used, and of a bank only those that did
        not drift.
    items
        The items of the answers.

    Raises
    ------
    BadUsage
        If an anchor is not finite, is for an item that the answers do not have, contradicts
        another anchor of the same item, or if there is none.
    """
    answered_items = set(items)
    if is_series(anchors):
        anchors = read_calibration(anchors)
    elif isinstance(anchors, str | PathLike) or is_data_frame(anchors):
        anchors = _read_pairs(anchors)
    if isinstance(anchors, Mapping) or _is_pairs(anchors):
        pairs = list(anchors.items() if isinstance(anchors, Mapping) else anchors)
        values = _collect(pairs)
        _refuse_unknown(values, items)
    else:
        # A value that a later calibration disagreed with should not move all the others.
        source = anchors.active() if isinstance(anchors, Bank) else anchors
        names, difficulty = known_difficulties(source)
        listed = zip(names, difficulty.tolist(), strict=True)
        values = {name: value for name, value in listed if name in answered_items}
    _refuse_none(values)
    return values


def _refuse_unknown(values: Iterable[str], items: tuple[str, ...]) -> None:
    answered_items = set(items)
    unknown = [name for name in values if name not in answered_items]
    if unknown:
        noun = "an anchor is" if len(unknown) == 1 else f"{len(unknown)} anchors are"
        raise BadUsage(
            f"{noun} for items that the answers do not have: {name_some(unknown)}. Items are "
            f"matched by name ({name_some(list(items))}); correct or remove these anchors"
        )


def _refuse_none(values: Any) -> None:
    if not len(values):
        raise BadUsage(
            "there is no anchor for any item of the answers, so nothing ties the new difficulties "
            "to the known scale; give at least one, or fit without anchors"
        )


def has_step_anchors(anchors: Any) -> bool:
    """Say whether some anchor has several thresholds."""
    if isinstance(anchors, Mapping):
        return any(np.ndim(value) for value in anchors.values())
    return getattr(getattr(anchors, "estimate", anchors), "ladder", None) is not None


def accept_ladders(anchors: Any, items: tuple[str, ...]) -> KnownItems:
    """Return the anchors of answers with steps: all thresholds of an item are held.

    Parameters
    ----------
    anchors
        A mapping from item to a list of thresholds (to a number, where an item has one step), a
        table with the columns item, step and threshold, or a calibration, release or bank.
    items
        The items of the answers.
    """
    if isinstance(anchors, str | PathLike) or is_data_frame(anchors):
        anchors = _read_steps(anchors)
    if isinstance(anchors, Mapping) or _is_pairs(anchors):
        listed = dict(anchors)
        _refuse_unknown(map(str, listed), items)
        _refuse_none(listed)
        return known_thresholds(listed)
    source = anchors.active() if isinstance(anchors, Bank) else anchors
    item_parameters = known_thresholds(source).select(set(items))
    _refuse_none(item_parameters.items)
    return item_parameters


def _read_steps(table: Any) -> dict[str, list[float]]:
    """Return the thresholds of a table with a row for every step, steps in any order."""
    read = read_ladders(table, "anchors")
    thresholds = {name: [own[0] for own in steps] for name, steps in read.items()}
    blank = [name for name, own in thresholds.items() if not np.isfinite(own).all()]
    if blank:
        raise BadUsage(
            f"the anchors of item '{blank[0]}' lack a threshold; all thresholds of an anchored "
            "item are held. Leave the item out to have it estimated"
        )
    return thresholds


def _is_pairs(anchors: Any) -> bool:
    return isinstance(anchors, Iterable) and not hasattr(anchors, "difficulty")


def _collect(pairs: list[Any]) -> dict[str, float]:
    values: dict[str, float] = {}
    for pair in pairs:
        try:
            name, value = str(pair[0]), float(pair[1])
        except (TypeError, ValueError, IndexError, KeyError) as error:
            raise BadUsage(
                f"an anchor is an item and its difficulty in logits, found {pair!r}"
            ) from error
        if not isfinite(value):
            raise BadUsage(
                f"the anchor of item '{name}' is {value}; an anchor must be a finite number of "
                "logits. Leave the item out of the anchors to have it estimated"
            )
        check_logits(name, value)
        if values.get(name, value) != value:
            raise BadUsage(
                f"the anchors contradict each other: item '{name}' has the difficulties "
                f"{values[name]:g} and {value:g}; keep one of them"
            )
        values[name] = value
    return values
