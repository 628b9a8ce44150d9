"""Lists that a steward writes: the items of a release with their steps, and the forms of a test.

In: a small file. Out: names and numbers, checked line by line. They are public, and so is every
message here.
"""

from __future__ import annotations

import re
from pathlib import Path

from discreet.errors import BadUsage
from discreet.tables.opener import read_columns, read_rows
from discreet.tables.paths import peek, read_text, sniff
from discreet.tables.reading import Form
from discreet.tables.values import as_number, write_cell

_WITH_STEPS = re.compile(r"\W*(items?\W+steps?|steps?\W+items?)\W*", re.IGNORECASE)


def read_items(path: Path) -> list[str] | dict[str, int]:
    """Return the items of a file with one item per line, or by item the steps of a table.

    A first line that says ``item,steps`` makes it a table.
    """
    if not _WITH_STEPS.fullmatch(_read_head(path)):
        return read_list(path)
    steps: dict[str, int] = {}
    columns = read_columns(path, ("item", "steps"), "lists of items with steps")
    for number, (item, step) in enumerate(zip(*columns, strict=True), start=2):
        name, n_steps = (write_cell(item) or "").strip(), as_number(step)
        if not name:
            raise BadUsage(f"{path}, line {number}: there is no item.")
        if name in steps:
            raise BadUsage(f"{path}, line {number}: item '{name}' is on the list already.")
        if n_steps is None or n_steps != int(n_steps):
            raise BadUsage(
                f"{path}, line {number}: item '{name}' has the steps {step!r}; it must be a whole "
                "number, the highest category less the lowest, which is 1 for right and wrong."
            )
        steps[name] = int(n_steps)
    if not steps:
        raise BadUsage(f"{path} names no item below its first line.")
    return steps


def read_form_list(path: Path) -> dict[str, list[str]]:
    """Return the items of each form, from a table with the columns form and item."""
    forms: dict[str, list[str]] = {}
    columns = read_columns(path, ("form", "item"), "lists of forms")
    for number, (form, item) in enumerate(zip(*columns, strict=True), start=2):
        name, inside = ((write_cell(cell) or "").strip() for cell in (form, item))
        if not name or not inside:
            raise BadUsage(f"{path}, line {number}: a form or an item has no name.")
        forms.setdefault(name, []).append(inside)
    return forms


def _list_lines(path: Path) -> list[str]:
    """Return the lines of a text file, or the first cells of another table, header or not."""
    if sniff(path, peek(path)) != "workbook":
        return read_text(path).splitlines()
    _, rows = read_rows(path, Form(header=False))
    return [row[0] or "" for row in rows]


def _read_head(path: Path) -> str:
    """Return the first row as a line."""
    if sniff(path, peek(path)) != "workbook":
        return next(iter(read_text(path).splitlines()), "")
    names, _ = read_rows(path)
    return ",".join(names)


def read_list(path: Path) -> list[str]:
    """Return the names in a file with one item per line; empty lines do not count.

    Of a workbook the first column is read.
    """
    first_seen: dict[str, int] = {}
    for number, line in enumerate(_list_lines(path), start=1):
        name = line.strip()
        if name in first_seen:
            raise BadUsage(
                f"{path}, line {number}: item '{name}' is on the list already, in line "
                f"{first_seen[name]}; each item has one line."
            )
        if name:
            first_seen[name] = number
    if not first_seen:
        raise BadUsage(f"{path} names no item; it must have one item per line.")
    return list(first_seen)
