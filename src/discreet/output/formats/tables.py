"""Any result with columns as a CSV or Parquet file.

In: an estimate, abilities, a link, a bank: anything with ``to_dict``. Out: the file, which only
its owner may read. A CSV has empty cells where there is no number and no formulas, a Parquet file
has nulls.
"""

from __future__ import annotations

import csv
from math import isnan
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from discreet.atomic import staged
from discreet.errors import BadUsage
from discreet.markup import spreadsheet_cell


class Tabular(Protocol):
    """A result that has columns of equal length."""

    def to_dict(self) -> dict[str, list[Any]]: ...


def write_table(path: str | PathLike[str], result: Tabular) -> None:
    """Write the columns of a result; the ending ``.csv`` or ``.parquet`` says how."""
    place = Path(path)
    if place.suffix not in (".csv", ".parquet"):
        raise BadUsage(f"{place}: the ending says how to write it; use .csv or .parquet")
    columns = {
        name: [None if _is_nan(value) else value for value in values]
        for name, values in result.to_dict().items()
    }
    with staged(place.parent, [place.name]) as stage:
        if place.suffix == ".csv":
            write_csv(stage / place.name, columns)
            return
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table(columns), stage / place.name)


def write_csv(place: Path, columns: dict[str, list[Any]]) -> None:
    """Write columns, usually on a stage; what is NaN or None becomes an empty cell."""
    with place.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for row in zip(*columns.values(), strict=True):
            writer.writerow(
                "" if value is None or _is_nan(value) else spreadsheet_cell(value) for value in row
            )


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and isnan(value)
