"""How results show themselves: a line in a terminal, a table in a notebook, a page, a cell.

In: a result, or columns of values. Out: a string. HTML comes from the templates beside this
module, which escape everything, and Markdown from the functions here, which do too; numbers that do
not exist are shown as a dash, never as "nan".
"""

from __future__ import annotations

import re
import unicodedata
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from hashlib import sha256
from html import escape
from math import isfinite
from pathlib import Path
from reprlib import Repr
from typing import TYPE_CHECKING, Any

from discreet import __version__
from discreet.errors import escape_controls
from discreet.keeping import Kept
from discreet.names import restore_ids
from discreet.words import ENGLISH, Language

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from jinja2 import Environment

TEMPLATES = Path(__file__).with_name("templates")
"""Pages, their parts, styles and scripts."""
GENERATOR = '<meta name="generator" content="discreet'
"""By this a report of ours is recognised: it may be replaced by a newer one."""

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


def list_field_columns(result: Any, *names: str) -> dict[str, list[Any]]:
    """Return fields of a result, arrays or tuples, as one plain list per column."""
    values_by_name = {name: getattr(result, name) for name in names}
    return {
        name: values.tolist() if hasattr(values, "tolist") else list(values)
        for name, values in values_by_name.items()
    }


def make_table(columns: Mapping[str, Any]) -> pa.Table:
    """Return columns as an Arrow table; ids that were numbers are numbers again."""
    import pyarrow as pa

    return pa.table({name: restore_ids(cells) for name, cells in columns.items()})


def make_frame(table: pa.Table) -> pd.DataFrame:
    """Return an Arrow table as a pandas DataFrame, or as it is where pandas is absent."""
    try:
        return table.to_pandas()
    except ModuleNotFoundError:
        return table


class Tabular(Kept):
    """A result with columns of equal length that other programs can take; it can be saved."""

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain columns; a single number is a column of one row."""
        raise NotImplementedError

    def to_arrow(self) -> pa.Table:
        """Return the table as a :class:`pyarrow.Table`; ids that were numbers are numbers again."""
        return make_table(_list_cells(self.to_dict()))

    def to_dataframe(self) -> pd.DataFrame:
        """Return the table as a pandas DataFrame, or as Arrow where pandas is absent."""
        return make_frame(self.to_arrow())

    def describe(self) -> list[str]:
        """Return the sentences that a summary begins with: what this is."""
        return [f"{type(self).__name__}, {count_of(_count_rows(self.to_dict()), 'row')}"]

    def summary(self) -> str:
        """Return a text: what this is, the first rows, and the warnings."""
        columns = _list_cells(self.to_dict())
        more = _count_rows(columns) - PREVIEW_ROWS
        warnings = [f"Warning: {escape_controls(text)}" for text in getattr(self, "warnings", ())]
        lines = [*map(escape_controls, self.describe()), "", *text_table(columns)]
        lines += [f"... and {count_of(more, 'more row')}"] * (more > 0)
        return "\n".join([*lines, *([""] if warnings else []), *warnings])


def _list_cells(columns: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return columns; single values make one row, in which a list is the cell of its sentences."""
    if all(isinstance(values, list) for values in columns.values()):
        return dict(columns)
    return {name: _one_cell(values) for name, values in columns.items()}


def _one_cell(value: Any) -> list[Any]:
    if not isinstance(value, list) or len(value) == 1:
        return value if isinstance(value, list) else [value]
    return ["; ".join(map(str, value))]


def _count_rows(columns: Mapping[str, Any]) -> int:
    return max((len(one) if isinstance(one, list) else 1 for one in columns.values()), default=0)


def text_table(columns: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return the lines of a table of plain text: its titles and its first rows."""
    texts = []
    for title, values in columns.items():
        cells = [escape_controls(title), *(_text_cell(value) for value in values[:PREVIEW_ROWS])]
        width = max(map(len, cells))
        words = any(isinstance(value, str) for value in values)
        texts.append([cell.ljust(width) if words else cell.rjust(width) for cell in cells])
    return ["  ".join(row).rstrip() for row in zip(*texts, strict=True)]


def _text_cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and not isfinite(value)):
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else escape_controls(str(value))


# Signs that begin something in some dialect of Markdown, in HTML, formulas or site generators. An
# underscore inside a word begins nothing.
_MARKS = re.compile(r"[\\`*\[\]{}<>&|$~]|(?<![^\W_])_|_(?![^\W_])")
# Signs that begin a heading, a list or a line across the page, where a paragraph begins with them.
_FIRST = re.compile(r"(\d+(?=[.)](?:\s|$)))?(#|[-+](?![\d.])|(?<=\d)[.)])")
_NAMED = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}


def markdown_text(text: str) -> str:
    """Return text that Markdown shows as it is, in one line: no HTML, links, images or headings.

    Special characters are written as entities, which no dialect takes for marks of its own.

    Examples
    --------
    >>> print(markdown_text("1 < 2, q_1 ![x](http://host/x.png)"))
    1 &lt; 2, q_1 !&#91;x&#93;(http://host/x.png)
    """
    line = _MARKS.sub(lambda match: _as_entity(match[0]), escape_controls(text).strip())
    first = _FIRST.match(line)
    if first is None:
        return line
    return (first[1] or "") + _as_entity(first[2]) + line[first.end() :]


def _as_entity(sign: str) -> str:
    return _NAMED.get(sign, f"&#{ord(sign)};")


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; heads may be empty."""
    lines = [[markdown_text(cell) for cell in row] for row in (heads, *rows)]
    first, *others = ("".join(f"| {cell} " if cell else "| " for cell in line) for line in lines)
    return "\n".join(f"{line}|" for line in (first, "|---" * len(heads), *others))


@dataclass(frozen=True)
class HtmlColumn:
    """One column: its title, its values, how many digits, and what it means (a tooltip)."""

    title: str
    values: Sequence[Any]
    digits: int = 3
    meaning: str = ""

    @property
    def has_words(self) -> bool:
        """Whether it is set to the left, as words are."""
        return any(isinstance(value, str) for value in self.values)

    def show(self, row: int) -> str:
        """Return what one of its cells shows."""
        return _show(self.values[row], self.digits)[1]


@cache
def _templates() -> Environment:
    """Everything that HTML is made from; loaded when the first table or page is asked for."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {"cells": _cells, "tell": ENGLISH}
    environment.filters["fill"] = fill
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    return environment


def _parts() -> Any:
    """Return the macros that pages and notebooks share."""
    return _templates().get_template("parts.html").module


def preview_table(columns: Sequence[HtmlColumn], *, caption: str) -> str:
    """Return the first rows of a table, and how many more there are, for a notebook."""
    first = [HtmlColumn(c.title, c.values[:PREVIEW_ROWS], c.digits) for c in columns]
    return str(_parts().preview(first, caption, len(columns[0].values) - PREVIEW_ROWS))


def fill(pattern: str, rows: Iterable[tuple[str, ...]]) -> str:
    """Write a pattern of a template, %s for values, once for every row; values are escaped.

    A template would escape each value by itself, and that takes longer than all the rest of a
    long page.
    """
    from markupsafe import Markup

    text = str(pattern)
    return Markup("".join(text % tuple(map(escape, row)) for row in rows))  # noqa: S704 - escaped


def _cells(
    columns: Sequence[HtmlColumn],
    tags: Sequence[str] | None = None,
    links: Sequence[str] | None = None,
) -> Iterator[tuple[str, ...]]:
    """Return each row's tags, its link, its heading, and what its cells sort by and show."""
    heads, *others = columns
    parts: list[Sequence[str]] = [[str(head) for head in heads.values]]
    for column in others:
        cells = [_show(value, column.digits) for value in column.values]
        if not column.has_words:
            parts.append([sorts for sorts, _ in cells])
        parts.append([words for _, words in cells])
    row_marks = [marks for marks in (tags, links) if marks is not None]
    return zip(*row_marks, *parts, strict=True)


def _show(value: Any, digits: int) -> tuple[str, str]:
    """Return what a cell sorts by, if it holds a number, and what it shows."""
    if value is None or (isinstance(value, float) and not isfinite(value)):
        return "", "–"
    if isinstance(value, float):
        # Adding zero turns a rounded "-0.00" into "0.00".
        return f"{value:.6g}", minus(f"{round(value, digits) + 0.0:.{digits}f}")
    if isinstance(value, int):
        return str(value), f"{value:,}"
    return "", str(value)


def minus(number: str) -> str:
    """Return a number with a proper minus sign."""
    return number.replace("-", "\N{MINUS SIGN}")


def show_probability(share: float, tell: Language = ENGLISH) -> str:
    """Return a probability as a percentage that never claims to be certain.

    Examples
    --------
    >>> [show_probability(share) for share in (0.5, 0.93321, 0.99957, 0.0)]
    ['50.0%', '93.3%', 'over 99.9%', 'under 0.1%']
    """
    if share > 0.999:
        return tell("over 99.9%")
    if share < 0.001:
        return tell("under 0.1%")
    return tell("{percent}%", percent=f"{100 * share:.1f}")


def show_predicted_share(share: float) -> str:
    """Return a predicted share in whole percent, which never says "all" or "none".

    Examples
    --------
    >>> [show_predicted_share(share) for share in (0.5, 0.9949, 0.9951, 1.0, 0.001)]
    ['50%', '99%', 'over 99%', 'over 99%', 'under 1%']
    """
    if share > 0.995:
        return "over 99%"
    return "under 1%" if share < 0.005 else f"{100 * share:.0f}%"


def isolate(name: str) -> str:
    """Keep letters that run from right to left from turning round what stands beside them."""
    name = escape_controls(name)
    if any(unicodedata.bidirectional(sign) in ("R", "AL", "AN") for sign in name):
        return f"\N{FIRST STRONG ISOLATE}{name}\N{POP DIRECTIONAL ISOLATE}"
    return name


def name_some(names: Sequence[str], limit: int = 5, tell: Language = ENGLISH) -> str:
    """Join the first few names, and say how many more there are."""
    some, more = ", ".join(map(isolate, names[:limit])), len(names) - limit
    if more <= 0:
        return some
    return tell.count(more, "{names} and {number} more", "{names} and {number} more", names=some)


def count_of(count: int, noun: str = "item") -> str:
    """Return "1 item", "2 items"."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def write_page(
    template: str,
    values: Mapping[str, Any],
    *,
    styles: Sequence[str] = ("style.css",),
    scripts: Sequence[str] = ("table.js",),
    images: bool = False,
) -> str:
    """Return a whole page that needs no network: its content policy forbids one.

    Parameters
    ----------
    template
        Extends ``page.html``. Every value is escaped where it is shown.
    values
        What it shows: text, numbers, columns, pictures; ``tell``, where it is not in English.
    styles, scripts
        Files beside the template; the page runs these and no others.
    images
        Whether it shows images, which stand in the page themselves.
    """
    from markupsafe import Markup

    look, run = (
        "".join((TEMPLATES / name).read_text("utf-8") for name in names)
        for names in (styles, scripts)
    )
    parts = {"style": look, "script": run, "policy": content_policy(look, run, images=images)}
    ours = {name: Markup(text) for name, text in parts.items()}  # noqa: S704 - no data in them
    return render(template, {**values, **ours})


def render(template: str, values: Mapping[str, Any]) -> str:
    """Return a template filled in; every value is escaped where it is shown."""
    return _templates().get_template(template).render({**values, "version": __version__})


def content_policy(style: str, script: str, *, images: bool = False) -> str:
    """Return the policy of a page that holds this style and this script and runs no other.

    Names and numbers come from data: should one ever be written unescaped, it still cannot run.
    """

    def name(text: str) -> str:
        return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"

    rules = f"style-src {name(style)}; script-src {name(script)}" + "; img-src data:" * images
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
