"""The layout of the Item Response Warehouse: one answer per row, columns id, item, resp.

In: answers, or a file in that layout. Out: the file, or answers. The standard (datapages.github.
io/irw/standard.html) has further optional columns such as ``rt`` and ``date``; they are not
read. Confidential.
"""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from discreet.answers.reading import read_responses
from discreet.answers.responses import Responses
from discreet.atomic import staged
from discreet.errors import BadUsage
from discreet.tables.values import Codes

CHUNK_CELLS = 1 << 22
"""Cells turned into rows at a time: some tens of megabytes."""


def read_warehouse(
    path: str | PathLike[str],
    *,
    at_least: float | None = None,
    missing: Codes = (),
    repeats: str = "error",
) -> Responses:
    """Read a table of the Item Response Warehouse (CSV or Parquet).

    Parameters
    ----------
    path
        The file.
    at_least
        Many tables have ratings; from here on they count as 1.
    missing
        Codes that stand for a missing answer.
    repeats
        What to do with a second answer of one id to one item.
    """
    return read_responses(
        path,
        layout="long",
        person="id",
        item="item",
        response="resp",
        at_least=at_least,
        missing=missing,
        repeats=repeats,
    )


def write_warehouse(path: str | PathLike[str], responses: Responses) -> None:
    """Write answers as ``id, item, resp``; the ending ``.csv`` or ``.parquet`` says how."""
    place = Path(path)
    writers = {".parquet": _write_parquet, ".csv": _write_csv}
    if place.suffix not in writers:
        raise BadUsage(f"{place}: the ending says how to write it; use .csv or .parquet")
    with staged(place.parent, [place.name]) as stage:
        writers[place.suffix](stage / place.name, responses)


def _schema() -> Any:
    import pyarrow as pa

    return pa.schema([("id", pa.string()), ("item", pa.string()), ("resp", pa.int8())])


def _batches(responses: Responses) -> Iterator[Any]:
    import pyarrow as pa

    persons, items = pa.array([str(one) for one in responses.persons]), pa.array(responses.items)
    step = max(CHUNK_CELLS // max(responses.n_items, 1), 1)
    for start in range(0, responses.n_persons, step):
        rows = responses.rows(start, min(start + step, responses.n_persons))
        person, item = np.nonzero(rows >= 0)
        columns = [
            persons.take(pa.array(person + start)),
            items.take(pa.array(item)),
            pa.array(rows[person, item]),
        ]
        yield pa.record_batch(columns, schema=_schema())


def _write_parquet(place: Path, responses: Responses) -> None:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(place, _schema(), compression="zstd") as writer:
        for batch in _batches(responses):
            writer.write_batch(batch)


def _write_csv(place: Path, responses: Responses) -> None:
    from pyarrow import csv

    options = csv.WriteOptions(quoting_style="needed")
    with csv.CSVWriter(str(place), _schema(), write_options=options) as writer:
        for batch in _batches(responses):
            writer.write_batch(batch)
