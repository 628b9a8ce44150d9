"""Copy the rows of a source once: to disk for several passes, or into memory for good.

A query may give other rows the second time. What needs several passes (the number of persons,
the ledger's fingerprint and the counts of one release must be those of the same rows) reads
the copy instead. Only the columns that hold answers are copied, into a folder that only its
owner can open. What needs all answers at once reads a database, a server or a query into memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from discreet.answers.intake import WideTable, pack_table
from discreet.answers.responses import Responses
from discreet.answers.streamed.blocks import list_columns, plan_shards
from discreet.atomic import create_private
from discreet.errors import BadResponses
from discreet.tables.dataset import Dataset, Shard, no_rows, open_dataset
from discreet.tables.opener import LongTable
from discreet.tables.resources import Resources
from discreet.tables.roles import LongPlan, Reading, WidePlan


def copy_dataset(dataset: Dataset, plans: Sequence[LongPlan | WidePlan], folder: Path) -> Dataset:
    """Copy all shards into a folder; the result reads the copies, under the shards' names."""
    shards = [
        _copy_shard(shard, list_columns(plan), folder / f"shard-{number:04}.arrow")
        for number, (shard, plan) in enumerate(zip(dataset.shards, plans, strict=True))
    ]
    return Dataset(tuple(shards), steady=True, lasting=False)


def _copy_shard(shard: Shard, columns: list[int], path: Path) -> Shard:
    source = shard.open()
    rows, writer = 0, None
    names = [str(number) for number in columns]  # a query's own names may be there twice
    try:
        for batch in source.batches(columns):
            table = pa.record_batch(batch, names=names)
            if writer is None:
                options = pa.ipc.IpcWriteOptions(compression="lz4")
                create_private(path)
                writer = pa.ipc.new_file(str(path), table.schema, options=options)
            writer.write_batch(table)
            rows += table.num_rows
    finally:
        if writer is not None:
            writer.close()
    copy = _Copy(source.name, tuple(source.names), tuple(columns), path, rows)
    return Shard(shard.name, lambda: copy, rows, (*shard.identity, str(path)))


@dataclass(frozen=True)
class _Copy:
    """Copied rows of a source; see :class:`discreet.tables.opener.Source`."""

    name: str
    names: tuple[str, ...]
    columns: tuple[int, ...]
    path: Path
    rows: int

    def batches(self, columns: Sequence[int]) -> Iterator[list[Any]]:
        """Yield columns in the types that the query gave them."""
        if not self.rows:
            return
        places = [self.columns.index(number) for number in columns]
        # Arrow wants them in ascending order and hands them out in that order.
        wanted = sorted(set(places))
        options = pa.ipc.IpcReadOptions(included_fields=wanted)
        try:
            with pa.ipc.open_file(str(self.path), options=options) as file:
                for number in range(file.num_record_batches):
                    batch = file.get_batch(number)
                    yield [batch.column(wanted.index(place)) for place in places]
        except (pa.ArrowException, OSError) as error:
            raise BadResponses(
                f"the copy of {self.name} in {self.path} can no longer be read ({error}). Start "
                "anew, with a folder for temporary files that nobody cleans up."
            ) from None

    def place(self, row: int) -> str:
        """Return the row, counted from 1."""
        return f"{self.name}, row {row + 1} of its result"


def load_responses(
    source: str | PathLike[str],
    *,
    reading: Reading | None = None,
    resources: Resources | None = None,
) -> Responses:
    """Return the answers of any source that :func:`count_source` takes.

    Parameters
    ----------
    source, reading, resources
        As in :func:`discreet.answers.streamed.counting.count_source`.

    Examples
    --------
    >>> load_responses("SELECT 'ann' AS person, 'q1' AS item, true AS response")
    <Responses: 1 persons, 1 items, 1 answers (100% filled)>
    """
    plan = reading or Reading()
    with closing(open_dataset(source, {}, resources or Resources(), plan)) as dataset:
        return _load(dataset.shards, plan)


def _load(shards: Sequence[Shard], plan: Reading) -> Responses:
    plans = plan_shards(shards, plan)
    long, wide = LongTable(plan), WideTable(plan)
    for shard, columns in zip(shards, cast(list[LongPlan | WidePlan], plans), strict=True):
        before = long.n_rows + wide.n_rows
        if isinstance(columns, LongPlan):
            long.add_source(shard.open(), columns)
        else:
            wide.add_source(shard.open(), columns)
        if long.n_rows + wide.n_rows == before:
            raise no_rows(shard)
    return Responses(*pack_table(long if long.n_rows else wide, plan))
