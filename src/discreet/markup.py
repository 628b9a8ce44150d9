"""How results show themselves: as a line in a terminal, as an HTML table in notebooks and reports.

In: a result, or columns of values. Out: a string. In HTML every name is escaped; numbers that do
not exist are shown as a dash, never as "nan".
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, fields
from hashlib import sha256
from html import escape
from math import isfinite
from reprlib import Repr
from typing import Any

# What a spreadsheet takes for a formula: also behind blanks, and in the wide letters of Asian
# keyboards. Apostrophes in front are part of it, so that taking one off gives back what was there.
_FORMULA = re.compile(r"'*(?:\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n])")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)

PREVIEW_ROWS = 12
"""Rows of a table in a notebook: more would bury the next cell."""


class _Brief(Repr):
    """Short lists whole, long ones by their beginning, arrays by their kind and shape."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxstring, self.maxother = 2, 60, 60

    def repr_mappingproxy(self, mapping: Any, level: int) -> str:
        return self.repr_dict(mapping, level)

    def repr_ndarray(self, array: Any, _level: int) -> str:
        return f"{array.dtype}{list(array.shape)}"


_BRIEF = _Brief()


def brief_repr(result: Any) -> str:
    """Say what a result holds in one line, whatever its size; the ``__repr__`` of all of them."""
    held = (f"{field.name}={_BRIEF.repr(getattr(result, field.name))}" for field in fields(result))
    return " ".join(f"{type(result).__name__}({', '.join(held)})".split())


@dataclass(frozen=True)
class HtmlColumn:
    """One column: its title, its values, how many digits, and what it means (a tooltip)."""

    title: str
    values: Sequence[Any]
    digits: int = 3
    meaning: str = ""


def html_table(
    columns: Sequence[HtmlColumn],
    *,
    caption: str,
    sortable: bool = False,
    tags: Sequence[str] | None = None,
) -> str:
    """Return a table whose first column names the rows.

    Parameters
    ----------
    columns
        The first one holds the row headings.
    caption
        Read aloud before the table.
    sortable
        Whether the headings are buttons for the script of the reports.
    tags
        Words for each row, by which that script can filter.
    """
    heads = "".join(_heading(column, sortable=sortable) for column in columns)
    rows = [_row(columns, place, tags) for place in range(len(columns[0].values))]
    kind = ' id="items" class="sortable"' if sortable else ""
    return (
        f"<table{kind}><caption>{escape(caption)}</caption>\n<thead><tr>{heads}</tr></thead>\n"
        f"<tbody>\n{chr(10).join(rows)}\n</tbody></table>"
    )


def preview_table(columns: Sequence[HtmlColumn], *, caption: str) -> str:
    """Return the first rows of a table, and how many more there are, for a notebook."""
    total = len(columns[0].values)
    first = [HtmlColumn(c.title, c.values[:PREVIEW_ROWS], c.digits) for c in columns]
    more = f"<p>… and {total - PREVIEW_ROWS:,} more</p>" if total > PREVIEW_ROWS else ""
    return html_table(first, caption=caption) + more


def content_policy(style: str, script: str) -> str:
    """Return the policy of a page that holds this style and this script and runs no other.

    Names and numbers come from data: should one ever be written unescaped, it still cannot run.
    """

    def name(text: str) -> str:
        return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"

    rules = f"style-src {name(style)}; script-src {name(script)}"
    return f"default-src 'none'; {rules}; base-uri 'none'; form-action 'none'"


def spreadsheet_cell(value: Any) -> Any:
    """Return a cell that no spreadsheet runs: an apostrophe goes before what looks like a formula.

    Examples
    --------
    >>> [spreadsheet_cell(name) for name in ("=1+1", "-5", "Item1")]
    ["'=1+1", '-5', 'Item1']
    """
    if not isinstance(value, str) or not _FORMULA.match(value) or _NUMBER.fullmatch(value):
        return value
    return f"'{value}"


def read_cell(text: str) -> str:
    """Return what :func:`spreadsheet_cell` was given."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def html_cell(value: Any, digits: int = 3) -> str:
    """Return one cell; its sorting value is exact, what is shown is rounded."""
    if value is None or (isinstance(value, float) and not isfinite(value)):
        return '<td data-value="">–</td>'
    if isinstance(value, float):
        # Adding zero turns a rounded "-0.00" into "0.00".
        shown = f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "\N{MINUS SIGN}")
        return f'<td data-value="{value:.6g}">{shown}</td>'
    if isinstance(value, int):
        return f'<td data-value="{value}">{value:,}</td>'
    return f'<td class="words">{escape(str(value))}</td>'


def _heading(column: HtmlColumn, *, sortable: bool) -> str:
    meaning = f' title="{escape(column.meaning)}"' if column.meaning else ""
    title = escape(column.title)
    shown = f'<button type="button"{meaning}>{title}</button>' if sortable else title
    words = ' class="words"' if any(isinstance(value, str) for value in column.values) else ""
    return f'<th scope="col"{words}>{shown}</th>'


def _row(columns: Sequence[HtmlColumn], place: int, tags: Sequence[str] | None) -> str:
    mark = "" if tags is None else f' data-tags="{escape(tags[place])}"'
    cells = "".join(html_cell(column.values[place], column.digits) for column in columns[1:])
    return f'<tr{mark}><th scope="row">{escape(str(columns[0].values[place]))}</th>{cells}</tr>'


def minus(number: str) -> str:
    """Return a number with a proper minus sign."""
    return number.replace("-", "\N{MINUS SIGN}")
