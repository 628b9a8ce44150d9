"""Anchors: known difficulties, checked against the items of the answers.

In: a mapping, a list of pairs, a calibration. Out: a mapping from item to a finite difficulty.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from os import PathLike
from typing import Any

from discreet.analysis.bank import Bank
from discreet.analysis.calibrated import check_logits, known_difficulties
from discreet.errors import BadUsage
from discreet.markup import read_cell
from discreet.models.connection import name_some
from discreet.tables.frames import is_frame
from discreet.tables.opener import read_rows


def read_pairs(table: Any) -> list[tuple[str, Any]]:
    """Return the items and difficulties of a table (a file, a data frame); blanks are left out."""
    rows = read_rows(table, ("item", "difficulty"), "anchors")
    # NaN, which differs from itself, is how data frames leave a cell blank.
    known = [(item, value) for item, value in rows if value not in (None, "") and value == value]
    return [(read_cell(item) if isinstance(item, str) else item, value) for item, value in known]


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
    known = set(items)
    if isinstance(anchors, str | PathLike) or is_frame(anchors):
        anchors = read_pairs(anchors)
    if isinstance(anchors, Mapping) or _is_pairs(anchors):
        pairs = list(anchors.items() if isinstance(anchors, Mapping) else anchors)
        values = _collect(pairs)
        unknown = [name for name in values if name not in known]
        if unknown:
            noun = "an anchor is" if len(unknown) == 1 else f"{len(unknown)} anchors are"
            raise BadUsage(
                f"{noun} for items that the answers do not have: {name_some(unknown)}. Items are "
                f"matched by name ({name_some(list(items))}); correct or remove these anchors"
            )
    else:
        # A value that a later calibration disagreed with should not move all the others.
        source = anchors.active() if isinstance(anchors, Bank) else anchors
        names, difficulty = known_difficulties(source)
        listed = zip(names, difficulty.tolist(), strict=True)
        values = {name: value for name, value in listed if name in known}
    if not values:
        raise BadUsage(
            "there is no anchor for any item of the answers, so nothing ties the new difficulties "
            "to the known scale; give at least one, or fit without anchors"
        )
    return values


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
