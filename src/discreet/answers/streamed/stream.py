"""Whole persons from a source of any size, as :class:`~discreet.Responses`.

The common ground of everything that looks at persons rather than at counts: caps before a
release, standard errors, person scores. Every person is in exactly one batch. Unlike counting,
which can start anew, a batch that was handed out cannot be called back: so the ids alone are
read first, to see whether they are in order (:mod:`discreet.answers.streamed.snapshot`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from typing import Any, cast

import numpy as np
import pyarrow as pa

from discreet.answers.responses import Responses
from discreet.answers.streamed.accumulate import Accumulator
from discreet.answers.streamed.batches import Batch
from discreet.answers.streamed.counting import Job
from discreet.answers.streamed.snapshot import Snapshot, explain_encoding
from discreet.counts.memory import Weighting
from discreet.counts.table import PairCounts
from discreet.tables.ids import check_items
from discreet.tables.resources import Resources
from discreet.tables.roles import Reading


def stream_responses(
    source: str | PathLike[str],
    *,
    items: Sequence[str] | None = None,
    reading: Reading | None = None,
    resources: Resources | None = None,
) -> Iterator[Responses]:
    """Yield batches of whole persons; every person is in exactly one of them.

    Parameters
    ----------
    source, reading, resources
        As in :func:`discreet.answers.streamed.counting.count_source`.
    items
        The items of every batch, in this order; an item that is not on the list is refused.
        By default a batch has the items seen so far: a beginning of the final list.

    Examples
    --------
    >>> query = ("SELECT * FROM (VALUES ('ann', 'q1', 1), ('bob', 'q1', 0), ('ann', 'q2', 0)) "
    ...          "AS answers(person, item, response)")
    >>> [sorted(batch.persons) for batch in stream_responses(query, items=["q1", "q2"])]
    [['ann', 'bob']]
    """
    listed = None if items is None else check_items(items, len(items))
    job = Job(source, listed, reading or Reading(), resources or Resources())
    with Snapshot(job) as snapshot, explain_encoding():
        for batch in snapshot.batches():
            yield _name(batch, listed)


def count_stream(
    batches: Iterable[Responses],
    *,
    items: Sequence[str] | None = None,
    weighting: Weighting | None = None,
) -> PairCounts:
    """Add up the counts of batches of whole persons, each with the items of the one before."""
    tally = Accumulator()
    for batch in batches:
        tally.add(batch.items, cast(Any, batch.store), weighting)
    return tally.counts(items)


def _name(batch: Batch, items: tuple[str, ...] | None) -> Responses:
    answers = Responses(batch.items, _as_texts(batch.persons), batch.store)
    return answers if items is None or batch.items == items else answers.select(items)


def _as_texts(ids: Any) -> Any:
    if ids is None or isinstance(ids, pa.Array):
        return ids
    if ids.dtype == np.int64:
        return pa.array(ids).cast(pa.string())
    return pa.array(ids, pa.string())
