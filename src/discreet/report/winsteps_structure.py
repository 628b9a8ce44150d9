"""Winsteps structure files (SFILE= and SAFILE=): the steps of items, in and out.

In: an estimate with thresholds, or a file and the estimate of its item file. Out: the file, or the
estimate with its thresholds. A line is an item's entry number, a category and the Rasch-Andrich
threshold of the step into it, counted from the item's measure (ISGROUPS=0, partial credit); where
all items share one scale (no ISGROUPS=) the entry number is left out. No step leads into the lowest
category, whose line has a 0.
"""

from __future__ import annotations

from dataclasses import replace
from math import isfinite
from os import PathLike
from pathlib import Path

import numpy as np

from discreet.atomic import write_text
from discreet.errors import BadResponses, BadUsage
from discreet.results.estimate import Estimate
from discreet.results.thresholds import Thresholds, ladder_of
from discreet.tables.paths import read_text

COMMENT = ";"


def write_structure_file(
    path: str | PathLike[str], estimate: Estimate, *, decimals: int = 4
) -> None:
    """Write the steps of an estimate as an SFILE=, which Winsteps takes as SAFILE= too.

    Parameters
    ----------
    path
        Where it goes; entry numbers are those of :func:`~discreet.report.winsteps.write_item_file`.
    estimate
        Items without a difficulty are left out.
    decimals
        As UDECIM=.
    """
    if not 0 <= decimals <= 12:
        raise BadUsage(f"decimals must lie between 0 and 12, found {decimals}")
    ladder = ladder_of(estimate)
    shared = estimate.model == "rating-scale"
    rows = np.flatnonzero(estimate.estimated)[: 1 if shared else None]
    lines = [f"{COMMENT} STRUCTURE MEASURES  written by discreet"]
    for item in rows.tolist():
        offsets = ladder.value[item] - estimate.difficulty[item]
        steps = [0.0, *offsets[~np.isnan(offsets)].tolist()]
        entry = "" if shared else f"{item + 1:6d}"
        lines += [
            f"{entry}{category:4d} {value:{decimals + 6}.{decimals}f}"
            for category, value in zip(ladder.kept[item], steps, strict=True)
        ]
    write_text(Path(path), "\n".join(lines) + "\n")


def read_structure_file(
    path: str | PathLike[str], estimate: Estimate, *, user_scale: float = 1.0
) -> Estimate:
    """Return an estimate with the steps of an SFILE=.

    Parameters
    ----------
    path
        The file, with or without entry numbers.
    estimate
        What :func:`~discreet.report.winsteps.read_item_file` made of the item file of that run.
        Items that the structure file does not have are right and wrong.
    user_scale
        USCALE= of the run.

    Returns
    -------
    Estimate
        Standard errors of thresholds are NaN: the file does not have them.
    """
    if not (isfinite(user_scale) and user_scale != 0):
        raise BadUsage(f"user_scale must be a number other than 0, found {user_scale}")
    listed, shared = _read_lines(Path(path), len(estimate.items))
    item_categories, rows = [], []
    for entry in range(1, len(estimate.items) + 1):
        lines = listed.get(0 if shared else entry, [])
        categories, offsets = _split_lowest(lines)
        item_categories.append(categories)
        rows.append([value / user_scale for value in offsets])
    return _add_steps(estimate, item_categories, rows, shared)


def _read_lines(path: Path, items: int) -> tuple[dict[int, list[tuple[int, float]]], bool]:
    """Return categories and values by entry number, 0 where the file has none."""
    by_entry: dict[int, list[tuple[int, float]]] = {}
    widths = set()
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        fields = line.partition(COMMENT)[0].replace(",", " ").split()
        if not fields or fields == ["*"]:
            continue
        try:
            *entry, category, value = fields
            entry_number = int(entry[0]) if entry else 0
            by_entry.setdefault(entry_number, []).append((int(category), float(value)))
        except (ValueError, IndexError) as error:
            raise BadResponses(
                f"{path}, line {number}: '{line.strip()[:40]}' is not a line of a structure file "
                "(SFILE=), which has an entry number, a category and a threshold, or the last two"
            ) from error
        widths.add(len(fields))
        if len(fields) > 3 or entry_number > items:
            raise BadResponses(
                f"{path}, line {number}: there are {items} items, and a line has an entry number, "
                f"a category and a threshold; found '{line.strip()[:40]}'"
            )
    if len(widths) != 1:
        listed_widths = " and ".join(map(str, sorted(widths))) or "no lines"
        raise BadResponses(
            f"{path}: all lines of a structure file have two fields (one scale for all items) or "
            f"three (ISGROUPS=), found {listed_widths}"
        )
    return by_entry, widths == {2}


def _split_lowest(lines: list[tuple[int, float]]) -> tuple[tuple[int, ...], list[float]]:
    """Return the categories, and the thresholds of the steps between them."""
    if not lines:
        return (0, 1), [0.0]
    listed = sorted(lines)
    categories, values = [category for category, _ in listed], [value for _, value in listed]
    if categories[0] == 0 or values[0] == 0:
        return tuple(categories), values[1:]
    return (categories[0] - 1, *categories), values


def _add_steps(
    estimate: Estimate, categories: list[tuple[int, ...]], rows: list[list[float]], shared: bool
) -> Estimate:
    steps = tuple(map(len, rows))
    value = np.full((len(rows), max(steps)), np.nan)
    for item, taus in enumerate(rows):
        # Thresholds are counted from the item's measure, which is their mean.
        value[item, : len(taus)] = estimate.difficulty[item] + np.array(taus) - np.mean(taus)
    status = tuple((one,) * count for one, count in zip(estimate.status, steps, strict=True))
    ladder = Thresholds(value, np.full_like(value, np.nan), status, kept=tuple(categories))
    model = "rating-scale" if shared else "partial-credit"
    return replace(estimate, steps=steps, model=model, ladder=ladder)
