"""Long tables with columns of odd types, and what counting them ends in."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa

from discreet.api.counting import count_pairs
from discreet.errors import DiscreetError

PERSONS, ITEMS = [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4], [*"abc"] * 4
RIGHT = [1, 0, 1, 0, 1, 1, 1, 1, 0, 0, 0, 1]
DAY = datetime(2024, 5, 1, tzinfo=UTC)


def place(cells, number, cell):
    return [*cells[:number], cell, *cells[number + 1 :]]


FLOATS, TIMES = [*map(float, RIGHT)], [DAY + timedelta(seconds=n) for n in PERSONS]
COLUMNS = {
    "ids that are whole floats": ("person", [*map(float, PERSONS)], None),
    "ids that are floats": ("person", [n + 0.5 for n in PERSONS], None),
    "ids that were rounded": ("person", [2.0**53 + 2 * n for n in PERSONS], None),
    "short ids that were rounded": ("person", [2.0**24 + 2 * n for n in PERSONS], pa.float32()),
    "ids with decimals": ("person", [*map(Decimal, PERSONS)], pa.decimal128(10, 2)),
    "long decimal ids": ("person", [Decimal(10**18 + n) for n in PERSONS], pa.decimal128(20, 0)),
    "times as ids": ("person", TIMES, pa.timestamp("us")),
    "times of a zone as ids": ("person", TIMES, pa.timestamp("us", "UTC")),
    "dates as ids": ("person", [date(2024, 1, n) for n in PERSONS], None),
    "ids with blanks that do not break": ("person", [f"\xa0{n}\xa0" for n in PERSONS], None),
    "ids with control characters": ("person", [f"{n}\x1f" for n in PERSONS], None),
    "no id": ("person", place(PERSONS, 4, None), None),
    "a blank id": ("person", place([*map(str, PERSONS)], 4, ""), None),
    "an id below zero that is zero": ("person", place([n - 1.0 for n in PERSONS], 1, -0.0), None),
    "an id that is no number": ("person", place([*map(float, PERSONS)], 1, np.nan), None),
    "ids of bytes": ("person", [str(n).encode() for n in PERSONS], None),
    "ids of 64 bits": ("person", [2**63 + n for n in PERSONS], pa.uint64()),
    "items that are floats": ("item", [float("abc".index(one)) for one in ITEMS], None),
    "items that are numbers": ("item", ["abc".index(one) for one in ITEMS], None),
    "no item": ("item", place(ITEMS, 5, None), None),
    "items that are categories": ("item", ITEMS, pa.dictionary(pa.int8(), pa.string())),
    "truth values": ("response", [*map(bool, RIGHT)], None),
    "answers that are floats": ("response", FLOATS, None),
    "answers with decimals": ("response", [*map(Decimal, RIGHT)], pa.decimal128(20, 2)),
    "answers that are texts": ("response", [*map(str, RIGHT)], None),
    "words for truth values": ("response", [["false", "TRUE"][one] for one in RIGHT], None),
    "no answer": ("response", place(RIGHT, 2, None), None),
    "an answer that is no number": ("response", place(FLOATS, 2, np.nan), None),
    "an answer without end": ("response", place(FLOATS, 2, np.inf), None),
    "dates as answers": ("response", [date(2024, 1, 1 + one) for one in RIGHT], None),
    "an answer below zero": ("response", place(RIGHT, 2, -1), None),
    "answers with steps": ("response", [7 * n % 4 for n in range(12)], None),
    "a code apart": ("response", place(RIGHT, 2, 9), None),
}  # fmt: skip
"""By name: the column that is odd, its cells, their type. The other columns are plain."""


def make_odd(name):
    column, cells, kind = COLUMNS[name]
    table = {"person": PERSONS, "item": ITEMS, "response": RIGHT}
    return pa.table({**table, column: pa.array(cells, kind)})


def end(source, engine="auto"):
    """Return the counts, or class and code of the error."""
    try:
        counts = count_pairs(source, engine=engine)
    except DiscreetError as error:
        return type(error), error.code
    items = sorted(counts.items)
    again = counts.select(items)
    return counts.persons, items, again.right_wrong.tolist(), again.answers.tolist()
