"""Results as tables: the base class of every result, their columns, and short reprs.

In: a result, or columns of values. Out: an Arrow table, a data frame, lines of text, one line for a
terminal. Numbers that do not exist are shown as a dash, never as "nan".
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from math import isfinite
from reprlib import Repr
from typing import TYPE_CHECKING, Annotated, Any

from discreet.choices import PlainDict, PlainMapping
from discreet.errors import escape_controls
from discreet.names import restore_ids
from discreet.saving import Kept
from discreet.schema import AtLeast, EqualLengths, read_as
from discreet.text import PREVIEW_ROWS, count_of

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from discreet.scales.reported import Scale
    from discreet.types import Vector


class _Brief(Repr):
    """Short lists whole, long ones by their beginning, arrays by their kind and shape."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxstring, self.maxother = 2, 60, 60

    def repr_mappingproxy(self, mapping: dict[object, object], level: int) -> str:
        return self.repr_dict(mapping, level)

    def repr_ndarray(self, array: Vector, _level: int) -> str:
        return f"{array.dtype}{list(array.shape)}"


_BRIEF = _Brief()


def brief_repr(result: Any) -> str:
    """Say what a result holds in one line, whatever its size; the ``__repr__`` of all of them."""
    names = [field.name for field in fields(result) if field.repr]
    held = (f"{name}={_BRIEF.repr(getattr(result, name))}" for name in names)
    return " ".join(f"{type(result).__name__}({', '.join(held)})".split())


def list_field_columns(result: object, *names: str) -> Columns:
    """Return fields of a result, arrays or tuples, as one plain list per column."""
    values_by_name = {name: getattr(result, name) for name in names}
    return {
        name: values.tolist() if hasattr(values, "tolist") else list(values)
        for name, values in values_by_name.items()
    }


def find_rows(names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Return where each wanted name stands; -1, behind the last, where it does not."""
    row_of = {name: row for row, name in enumerate(names)}
    return [row_of.get(name, -1) for name in wanted]


def make_table(columns: PlainMapping) -> pa.Table:
    """Return columns as an Arrow table; ids that were numbers are numbers again."""
    import pyarrow as pa

    return pa.table({name: restore_ids(cells) for name, cells in columns.items()})


def make_frame(table: pa.Table) -> pd.DataFrame:
    """Return an Arrow table as a pandas DataFrame, or as it is where pandas is absent."""
    try:
        return table.to_pandas()
    except ModuleNotFoundError:
        return table


#: A table as columns by name; cells are texts, numbers, truth values or None.
Columns = dict[str, list[Any]]


class Tabular(Kept):
    """A result with columns of equal length that other programs can take; it can be saved.

    It is a table: ``len`` counts its rows, a loop goes over them, ``result["Q1"]`` is the row of
    an item (or whatever the first column holds), ``result["se"]`` a column. Polars, DuckDB and
    PyArrow take it as it is.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # A dataclass keeps the repr that its class has; the one it would make shows all numbers.
        if cls.__repr__ is object.__repr__:
            cls.__repr__ = brief_repr  # type: ignore[method-assign]

    def to_dict(self) -> PlainDict:
        """Return the table as plain columns; a single number is a column of one row."""
        raise NotImplementedError

    def to_arrow(self) -> pa.Table:
        """Return the table as a :class:`pyarrow.Table`; ids that were numbers are numbers again."""
        return make_table(_list_cells(self.to_dict()))

    def to_dataframe(self) -> pd.DataFrame:
        """Return the table as a pandas DataFrame, or as Arrow where pandas is absent."""
        return make_frame(self.to_arrow())

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Return the table as a polars DataFrame."""
        import polars as pl

        return pl.DataFrame(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand the table to any program that takes Arrow."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return _count_rows(self.to_dict())

    def __bool__(self) -> bool:
        return True  # a result without rows is a result

    def __iter__(self) -> Iterator[Any]:
        """Go over the rows, as named tuples."""
        columns = _list_cells(self.to_dict())
        row = namedtuple("Row", columns, rename=True)  # type: ignore[misc]
        return map(row._make, zip(*columns.values(), strict=True))

    def __contains__(self, key: object) -> bool:
        return key in next(iter(_list_cells(self.to_dict()).values()), [])

    def __getitem__(self, key: object) -> Any:
        columns = _list_cells(self.to_dict())
        names = next(iter(columns.values()), [])
        text = str(key)  # names that were numbers are asked for by number too
        rows = [row for row, name in zip(self, names, strict=True) if name in (key, text)]
        if rows:
            return rows[0] if len(rows) == 1 else rows
        if text in columns:
            import numpy as np

            return np.array(columns[text])
        matches = get_close_matches(text, [*map(str, names), *columns], 3, 0.5)
        matches = matches or [*map(str, names[:3]), "..."]
        title = next(iter(columns), "row")
        more = "" if isinstance(key, str) else ". Several rows, or one by number: to_pandas()"
        raise KeyError(
            f"there is no {title} {key!r} here, and no such column; there is {', '.join(matches)}"
            + more
        )

    def _repr_html_(self) -> str:
        """Show the first rows in a notebook."""
        from discreet.html import HtmlColumn, preview_table

        columns = _list_cells(self.to_dict())
        shown = [HtmlColumn(name, cells) for name, cells in columns.items()]
        caption = "; ".join(self.describe()[:1])
        return f"<div>{preview_table(shown, caption=caption)}</div>"

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


#: What a cell of a table holds.
Cell = str | bool | int | float | None


@dataclass(frozen=True)
class AnalysisTable(Tabular):
    """One table of an analysis.

    Attributes
    ----------
    name
        A word, which files and sheets are called by.
    title, about
        For readers: a heading, and one sentence on what the rows are.
    columns
        Lists of equal length. Difficulties and abilities are in logits.
    """

    name: str
    title: str
    about: str
    columns: Annotated[Mapping[str, list[Any]], AtLeast(1), EqualLengths()]

    def find_contradiction(self) -> str:
        """Refuse cells that no table has."""
        read_as(Mapping[str, list[Cell]], self.columns, "its table")
        return ""

    def to_dict(self) -> Columns:
        """One list per column."""
        return dict(self.columns)

    def take(self, rows: int) -> AnalysisTable:
        """Return the first rows."""
        return replace(self, columns={name: cells[:rows] for name, cells in self.columns.items()})

    def turn(self, scale: Scale | None) -> AnalysisTable:
        """Return the table with its numbers on a reported scale too."""
        return self if scale is None else replace(self, columns=scale.add_to(self.columns))

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(next(iter(self.columns.values())))


def _list_cells(columns: PlainMapping) -> Columns:
    """Return columns; single values make one row, in which a list is the cell of its sentences."""
    if all(isinstance(values, list) for values in columns.values()):
        return dict(columns)
    return {
        name: ["; ".join(map(str, one))] if isinstance(one, list) and len(one) != 1
        else one if isinstance(one, list) else [one]
        for name, one in columns.items()
    }  # fmt: skip


def _count_rows(columns: PlainMapping) -> int:
    return max((len(one) if isinstance(one, list) else 1 for one in columns.values()), default=0)


def text_table(columns: Mapping[str, Sequence[object]]) -> list[str]:
    """Return the lines of a table of plain text: its titles and its first rows."""
    texts = []
    for title, values in columns.items():
        cells = [escape_controls(title), *(_text_cell(value) for value in values[:PREVIEW_ROWS])]
        width = max(map(len, cells))
        words = any(isinstance(value, str) for value in values)
        texts.append([cell.ljust(width) if words else cell.rjust(width) for cell in cells])
    return ["  ".join(row).rstrip() for row in zip(*texts, strict=True)]


def _text_cell(value: object) -> str:
    if value is None or (isinstance(value, float) and not isfinite(value)):
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else escape_controls(str(value))
