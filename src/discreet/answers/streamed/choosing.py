"""Which engine ``engine="auto"`` takes: a rule about sizes, cheap to apply.

Queries and databases go to DuckDB. Files are read into memory unless their answers would take
more than half of the memory that is free: 9 bytes a row of a long table, a quarter of a byte
a cell of a wide one and 40 bytes a person for the id.
"""

from __future__ import annotations

from os import PathLike

from discreet.errors import DiscreetError
from discreet.tables.dataset import Shard, is_query, names_database, open_dataset, plan_source
from discreet.tables.paths import find_files, unpacked_size
from discreet.tables.resources import Resources, available_memory
from discreet.tables.roles import LongPlan, Reading

LONG_ROW = 9
WIDE_ROW = 40
WIDE_CELL = 0.25

SURELY_SMALL = 1 << 25
"""Bytes of files that are never looked into: even at a byte a row they make 300 MB."""


def is_too_large(source: str | PathLike[str], reading: Reading | None = None) -> bool:
    """Say whether a source should be counted out of core.

    Sources that cannot be read are left to the reader, which says what is wrong with them.
    """
    if is_query(source) or names_database(source):
        return True
    try:
        files = find_files(source)
        if sum(unpacked_size(file) for file in files) < SURELY_SMALL:
            return False
        shards = open_dataset(source, {}, Resources(), reading).shards
        needed = sum(_bytes_needed(shard, reading or Reading()) for shard in shards)
    except (DiscreetError, OSError):
        return False
    return needed > available_memory() / 2


def _bytes_needed(shard: Shard, reading: Reading) -> float:
    plan = plan_source(shard.open(), reading)
    if isinstance(plan, LongPlan):
        return shard.rows * LONG_ROW
    return shard.rows * (WIDE_ROW + WIDE_CELL * len(plan.items))
