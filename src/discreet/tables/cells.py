"""Cells of workbooks and of statistical programs, as columns that the readers know.

In: Python values as a library hands them over: text, numbers, truth values, dates, None. Out: Arrow
columns: numbers where every cell is one, otherwise text that reads as the program shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time
from typing import Any

import pyarrow as pa

_EXACT = float(1 << 53)
"""Up to here every whole number has its own float64, so that 7.0 can safely become "7"."""


def make_column(cells: Sequence[Any]) -> Any:
    """Return cells as an Arrow column.

    Examples
    --------
    >>> make_column([1.0, None, 0.0]).to_pylist(), make_column(["a", 7.0, True]).to_pylist()
    ([1.0, None, 0.0], ['a', '7', 'true'])
    """
    try:
        return pa.array(cells, type=pa.float64())
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([write_cell(cell) for cell in cells], type=pa.string())


def write_cell(cell: Any) -> str | None:
    """Return one cell as text, as a CSV file would have it; None stays None.

    Examples
    --------
    >>> [write_cell(cell) for cell in (7.0, 0.5, False, date(2024, 5, 1), "x", None)]
    ['7', '0.5', 'false', '2024-05-01', 'x', None]
    """
    if cell is None or isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float):
        if cell.is_integer() and abs(cell) < _EXACT:
            return str(int(cell))
        # As a column of numbers would be spelt: one text beside it changes no other cell.
        return str(pa.array([cell]).cast(pa.string())[0].as_py())
    if isinstance(cell, (datetime, date, time)):
        return cell.isoformat()
    return str(cell)


def clean_cell(cell: Any) -> Any:
    """Return a cell, with None for one that holds nothing or only blanks."""
    return None if isinstance(cell, str) and not cell.strip() else cell


def letter_column(number: int) -> str:
    """Return what spreadsheets call a column, numbered from 0.

    Examples
    --------
    >>> letter_column(0), letter_column(25), letter_column(26), letter_column(702)
    ('A', 'Z', 'AA', 'AAA')
    """
    letters, number = "", number + 1
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters
