"""Read a database, a server or a query into memory, for what needs all answers at once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from os import PathLike
from typing import cast

from discreet.engines.outofcore.blocks import plan_parts
from discreet.engines.outofcore.origins import Part, open_origin
from discreet.engines.outofcore.settings import Resources
from discreet.errors import BadResponses
from discreet.responses import Responses
from discreet.responses.columns import LongPlan, Reading, WidePlan
from discreet.responses.long import LongTable
from discreet.responses.wide import WideTable

__all__ = ["load_responses"]


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
        As in :func:`discreet.engines.outofcore.count_source`.

    Examples
    --------
    >>> load_responses("SELECT 'ann' AS person, 'q1' AS item, true AS response")
    <Responses: 1 persons, 1 items, 1 answers (100% filled)>
    """
    plan = reading or Reading()
    with closing(open_origin(source, {}, resources or Resources(), plan)) as origin:
        return _load(origin.parts, plan)


def _load(parts: Sequence[Part], plan: Reading) -> Responses:
    plans = plan_parts(parts, plan)
    long, wide = LongTable(plan), WideTable(plan)
    for part, columns in zip(parts, cast(list[LongPlan | WidePlan], plans), strict=True):
        before = long.n_rows + wide.n_rows
        if isinstance(columns, LongPlan):
            long.add_source(part.open(), columns)
        else:
            wide.add_source(part.open(), columns)
        if long.n_rows + wide.n_rows == before:
            raise BadResponses(
                f"{part.name} has column names but no rows below them, so there are no answers to "
                "read. Check that it was written completely."
            )
    return Responses(*(long if long.n_rows else wide).finish())
