"""Items that work differently in groups of persons, for the report.

In: answers with group columns. Out: the rows worth a reader's attention. Confidential.
"""

from __future__ import annotations

import numpy as np

from discreet.errors import BadUsage, DisconnectedItems, NotConverged
from discreet.itemfit import find_dif
from discreet.responses import Responses

__all__ = ["Difference", "find_differences"]

Difference = tuple[str, str, str, str, float, str]
"""Item, group column, group, reference group, logits harder for the group, ETS class."""

MOST_GROUPS = 12
"""Groups of one column that are compared: a column of schools or of ages says nothing here."""


def find_differences(
    responses: Responses,
) -> tuple[tuple[Difference, ...] | None, tuple[str, ...]]:
    """Compare groups by every group column: what differs, and what could not be compared.

    Returns
    -------
    tuple
        Rows that hold for all items together and are of ETS class B or C, the largest first
        (``None`` without a group column); and sentences about columns that were left out.
    """
    if not responses.groups:
        return None, ()
    found: list[Difference] = []
    notes: list[str] = []
    for column, labels in responses.groups.items():
        number = len({str(label) for label in labels})
        if number > MOST_GROUPS:
            notes.append(f"groups by {column} were not compared: {number} groups are too many")
            continue
        try:
            found += _compare(responses, column)
        except (BadUsage, DisconnectedItems, NotConverged) as error:
            notes.append(f"groups by {column} were not compared: {error}")
    return tuple(sorted(found, key=lambda row: -abs(row[4]))), tuple(notes)


def _compare(responses: Responses, column: str) -> list[Difference]:
    table = find_dif(responses, column)
    rows = np.flatnonzero(table.confirmed)
    return [
        (table.item[i], column, table.focal[i], table.reference, size, table.ets[i])
        for i in rows
        if table.ets[i] in ("B", "C") and np.isfinite(size := float(table.difference[i]))
    ]
