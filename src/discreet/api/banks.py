"""Banks from files.

In: a file that :func:`discreet.write_bank` wrote. Out: a :class:`~discreet.Bank`, or what is wrong
with the file.
"""

from __future__ import annotations

import csv
import io
import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from discreet.choices import PlainDict
from discreet.coding.reading import Reading
from discreet.errors import BadBudget, BadResponses, BadUsage
from discreet.names import read_names
from discreet.privacy.accounting import Guarantee
from discreet.results.thresholds import CATEGORIES, Thresholds, pad_steps
from discreet.saving import read_value
from discreet.scales.bank import (
    ACTIVE,
    COLUMNS,
    CONFIDENTIAL,
    DRIFTED,
    FORMAT,
    PUBLIC,
    UNIT,
    VERSION,
    WITH_STEPS,
    Bank,
)
from discreet.schema import LARGEST_LOGIT, SchemaError, read_as
from discreet.tables.paths import explain_read_errors, open_bytes, read_text
from discreet.text import read_cell

#: Logits by which the mean of an item's thresholds may differ from its difficulty in a file.
SAME_LOCATION = 1e-6


def is_bank(path: str | PathLike[str]) -> bool:
    """Say whether a file begins as a bank does."""
    with explain_read_errors(Path(path)), open_bytes(Path(path)) as file:
        return FORMAT.encode() in file.readline(4096)


def read_bank(path: str | PathLike[str]) -> Bank:
    """Read a bank, or explain what is wrong with the file.

    Raises
    ------
    BadUsage
        If the file is no bank, or is in another unit or version.
    BadResponses
        If a row cannot be used: no number, a repeated item.

    Examples
    --------
    >>> import tempfile, discreet
    >>> from pathlib import Path
    >>> estimate = discreet.fit(discreet.datasets.lsat())
    >>> bank = discreet.create_bank(estimate, scale="reasoning", source="2024")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     discreet.write_bank(Path(folder) / "bank.csv", bank)
    ...     len(discreet.read_bank(Path(folder) / "bank.csv"))
    5
    """
    bank_path = Path(path)
    first, _, body = read_text(bank_path).partition("\n")
    head = _read_head(bank_path, first)
    reader = csv.DictReader(io.StringIO(body, newline=""))
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise BadResponses(f"{bank_path}: the bank has no column '{missing[0]}'")
    rows = list(reader)
    _check_rows(bank_path, rows)
    return Bank(
        scale=str(head["scale"]),
        items=read_names(read_cell(row["item"]) for row in rows),
        difficulty=np.array([_number(bank_path, row, "difficulty") for row in rows]),
        se=np.array([_number(bank_path, row, "se") if row["se"] else np.nan for row in rows]),
        n=tuple(int(_number(bank_path, row, "n")) if row["n"] else None for row in rows),
        source=tuple(read_cell(row["source"]) for row in rows),
        status=tuple(row["status"] for row in rows),
        guarantee=_read_guarantee(bank_path, head.get("guarantee")),
        ladder=_read_ladder(bank_path, rows) if head["version"] == WITH_STEPS else None,
        reading=_read_reading(bank_path, head.get("reading")),
    )


def _read_reading(path: Path, stored: object) -> Reading | None:
    try:
        reading = read_value(stored)
        return None if reading is None else read_as(Reading, reading, "the reading")
    except SchemaError as error:
        raise BadResponses(f"{path}: the bank's reading is damaged: {error}") from error


def _read_ladder(path: Path, rows: list[dict[str, str]]) -> Thresholds:
    """Read the columns of a bank with steps, or say which item cannot be used."""
    categories, value, error = [], [], []
    for row in rows:
        try:
            codes = tuple(map(int, row[CATEGORIES].split()))
            categories.append(codes)
            value.append([float(row[f"threshold_{step}"]) for step in range(1, len(codes))])
            error_cells = [row[f"threshold_{step}_se"] for step in range(1, len(codes))]
            error.append([float(cell) if cell else np.nan for cell in error_cells])
        except (KeyError, ValueError) as reason:
            raise BadResponses(
                f"{path}, item '{row['item']}': a bank with steps needs the column {CATEGORIES} "
                "('0 1 2'), and threshold_1, threshold_1_se, ... with a number for every step"
            ) from reason
    _check_ladder(path, rows, categories, value)
    status = tuple((row["status"],) * len(steps) for row, steps in zip(rows, value, strict=True))
    return Thresholds(pad_steps(value), pad_steps(error), status, kept=tuple(categories))


def _check_ladder(
    path: Path,
    rows: list[dict[str, str]],
    categories: list[tuple[int, ...]],
    value: list[list[float]],
) -> None:
    for row, codes, steps in zip(rows, categories, value, strict=True):
        rising = codes == tuple(sorted(set(codes))) and len(codes) > 1 and codes[0] >= 0
        mean = sum(steps) / max(len(steps), 1)
        if not rising or not abs(mean - float(row["difficulty"])) < SAME_LOCATION:
            raise BadResponses(
                f"{path}, item '{row['item']}': the categories are '{row[CATEGORIES]}' and the "
                f"mean of the thresholds is {mean:g}; categories must rise, from 0 or above, and "
                f"the mean must be the difficulty, {row['difficulty']}"
            )


def _read_head(path: Path, line: str) -> PlainDict:
    try:
        head = json.loads(line.removeprefix("#"))
    except ValueError:
        head = None
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise BadUsage(
            f"{path} is not an item bank: its first line must be '# ' and a JSON object with "
            f'"format": "{FORMAT}"; make one with `discreet bank create`'
        )
    if head.get("version") not in (VERSION, WITH_STEPS):
        raise BadUsage(
            f"{path} is a bank of version {head.get('version')}; this version of discreet reads "
            f"{VERSION} and {WITH_STEPS}"
        )
    if head.get("unit") != UNIT:
        raise BadUsage(
            f"{path} is in the unit {head.get('unit')!r}, and difficulties here are in "
            f"{UNIT!r}; convert its difficulties and standard errors to logits first"
        )
    if not isinstance(head.get("scale"), str) or head.get("access") not in (CONFIDENTIAL, PUBLIC):
        raise BadUsage(f"{path}: the first line of a bank must name its scale and its access")
    return head


def _read_guarantee(path: Path, values: Any) -> Guarantee | None:
    try:
        return None if values is None else Guarantee.from_dict(dict(values))
    except (BadBudget, TypeError, ValueError) as error:
        raise BadUsage(f"{path}: the guarantee in the first line is none: {error}") from error


def _check_rows(path: Path, rows: list[dict[str, str]]) -> None:
    line_of: dict[str, int] = {}
    for number, row in enumerate(rows, start=3):
        if None in row or None in row.values():
            columns = sum(name is not None for name in row)
            raise BadResponses(f"{path}, line {number}: this bank has {columns} columns")
        if row["item"] in line_of:
            raise BadResponses(
                f"{path}, line {number}: item '{row['item']}' is in the bank already, in line "
                f"{line_of[row['item']]}; an item has one difficulty. Remove one of the lines"
            )
        if row["status"] not in (ACTIVE, DRIFTED):
            raise BadResponses(
                f"{path}, line {number}: the status is '{row['status']}', it must be "
                f"'{ACTIVE}' or '{DRIFTED}'"
            )
        line_of[row["item"]] = number
    if not rows:
        raise BadResponses(f"{path}: the bank has no items")


#: Between which numbers a column of a bank lies.
LIMITS = {"difficulty": (-LARGEST_LOGIT, LARGEST_LOGIT), "se": (0.0, LARGEST_LOGIT), "n": (0, 1e15)}


def _number(path: Path, row: dict[str, str], name: str) -> float:
    try:
        value = float(row[name])
    except ValueError:
        value = float("nan")
    low, high = LIMITS[name]
    if not low <= value <= high:
        raise BadResponses(
            f"{path}, item '{row['item']}': the {name} is '{row[name]}', which is no number "
            f"from {low:g} to {high:g}"
        )
    return value
