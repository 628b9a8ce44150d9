"""Whole persons from a source of any size, as :class:`~discreet.responses.Responses`.

The common ground of everything that looks at persons rather than at counts: caps before a
release, standard errors, person scores. Every person is in exactly one batch. Unlike counting,
which can start anew, a batch that was handed out cannot be called back: so the ids alone are
read first, to see whether they are in order.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa

from discreet.counts import PairCounts
from discreet.engines.memory import Weighting
from discreet.engines.outofcore.background import run_ahead
from discreet.engines.outofcore.batches import Batch, Rows, bucket_batches, ordered_batches
from discreet.engines.outofcore.blocks import LongRows, NotNumbers, plan_parts
from discreet.engines.outofcore.buckets import Buckets, choose_bits
from discreet.engines.outofcore.counting import Job
from discreet.engines.outofcore.ordered import OutOfOrder, check_order
from discreet.engines.outofcore.origins import Origin
from discreet.engines.outofcore.settings import Resources
from discreet.engines.outofcore.tally import Tally
from discreet.engines.outofcore.wide import WideRows
from discreet.errors import BadResponses
from discreet.responses import Responses
from discreet.responses.columns import LongPlan, Reading, WidePlan
from discreet.responses.delimited import NotUtf8
from discreet.responses.names import check_items
from discreet.responses.opening import warn_encoding

__all__ = ["count_stream", "stream_responses"]


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
        As in :func:`discreet.engines.outofcore.count_source`.
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
    origin = job.open()
    try:
        for batch in _open_batches(job, origin):
            yield _name(batch, listed)
    except NotUtf8 as found:
        raise BadResponses(
            f"{found.path} begins as UTF-8 text but is not UTF-8 further down, where names can no "
            "longer be read. Save it as UTF-8."
        ) from None


def count_stream(
    batches: Iterable[Responses],
    *,
    items: Sequence[str] | None = None,
    weighting: Weighting | None = None,
) -> PairCounts:
    """Add up the counts of batches of whole persons, each with the items of the one before."""
    tally = Tally()
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


def _open_batches(job: Job, origin: Origin) -> Iterator[Batch]:
    plans = plan_parts(origin.parts, job.reading)
    if isinstance(plans[0], WidePlan):
        wide = WideRows(origin.parts, plans, job.reading, job.item_names())
        if not wide.persons_come_back(job.resources):
            yield from wide.batches()
            return
        cells = origin.rows * max(len(plan.items) for plan in plans)
        # A wide table has turned right and wrong around already where that was asked for.
        reading = replace(job.reading, one_means="right")
        yield from _distribute(job, wide, wide.blocks(), reading, cells, as_text=True)
        return
    in_order, as_text = _look_at_ids(job, origin, plans)
    rows = _long_rows(job, origin, plans, as_text=as_text)
    if in_order and origin.steady:
        yield from ordered_batches(rows, job.reading)
    else:
        yield from _distribute(job, rows, rows.blocks(), job.reading, origin.rows, as_text=as_text)


def _long_rows(job: Job, origin: Origin, plans: Any, *, as_text: bool) -> LongRows:
    return job.long_rows(origin, plans, job.item_names(), as_text=as_text)


def _look_at_ids(job: Job, origin: Origin, plans: list[LongPlan]) -> tuple[bool, bool]:
    """Return whether ids ascend, and whether they must be kept as text."""
    as_text = False
    while True:
        try:
            check = _check_ids(job, origin, plans, as_text=as_text)
        except NotNumbers:
            as_text = True
        except NotUtf8 as found:
            job.encodings[found.path] = warn_encoding(found.path)
        else:
            return check, as_text


def _check_ids(job: Job, origin: Origin, plans: list[LongPlan], *, as_text: bool) -> bool:
    persons = _long_rows(job, origin, plans, as_text=as_text).persons()
    try:
        check_order(persons)
    except OutOfOrder:
        # The rest is looked at too: one id that is no number decides about all of them.
        for _ in persons:
            pass
        return False
    return True


def _distribute(
    job: Job, rows: Rows, blocks: Any, reading: Reading, cells: int, *, as_text: bool
) -> Iterator[Batch]:
    job.resources.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="discreet-rows-", dir=job.resources.folder) as folder:
        buckets = Buckets(Path(folder), choose_bits(cells, job.resources.memory), as_text=as_text)
        with closing(run_ahead(blocks)) as ahead:
            buckets.fill(ahead, lambda _: None)
        for batch in bucket_batches(buckets, rows, reading, range(1 << buckets.bits)):
            yield batch
            buckets.remove(batch.bucket)
