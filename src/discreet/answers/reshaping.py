"""Some of the persons, several sets of persons together, and answers as a table again.

In: answers in memory. Out: stores and columns for :class:`~discreet.Responses`, which names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from discreet.answers.choices import join_choices
from discreet.answers.pack import pack_rows, store_long
from discreet.answers.select import select_columns
from discreet.answers.steps import Nodes, StepStore, store_long_codes
from discreet.counts.planes import AnswerStore, SparseRows, join_rows
from discreet.errors import BadResponses, BadUsage
from discreet.names import restore_ids
from discreet.tables.remedies import join_detected
from discreet.tables.survey import refuse_weights
from discreet.tabular import make_frame
from discreet.text import name_some
from discreet.types import IndexArray, Layout, Texts

if TYPE_CHECKING:
    import pandas as pd

    from discreet.answers.responses import Responses

ABSENT = -1
CHUNK_CELLS = 1 << 24
"""Cells unfolded or compared together: 16 MB."""


def select_person_rows(responses: Responses, rows: Any) -> Responses:
    """Return some of the persons with all that is known of them."""
    positions = find_rows(rows, responses.persons)
    chosen = responses.choices
    return type(responses)(
        responses.items,
        responses.persons[positions],
        take_store(responses.store, positions),
        {name: texts[positions] for name, texts in responses.groups.items()},
        None if chosen is None else replace(chosen, chosen=chosen.chosen[positions]),
        responses.lowest,
        responses.detected,
        None if responses.sample is None else responses.sample.take(positions),
    )


def join_responses(parts: Sequence[Responses]) -> Responses:
    """Return all persons behind each other, over all items."""
    if not isinstance(parts, Sequence) or not all(hasattr(part, "store") for part in parts):
        raise BadUsage(
            "answers are put together from a list of Responses; read tables with read_responses or "
            "Responses.from_dataframe first"
        )
    if not parts:
        raise BadResponses("Nothing to put together: give at least one set of answers.")
    for part in parts:
        refuse_weights(
            part.sample,
            "putting answers together",
            "units of two samples may have the same names. Read all persons from one table",
        )
    steps, lowest = join_items(parts), {part.lowest for part in parts}
    if len(lowest) > 1:
        raise BadResponses(
            f"some of these answers were read with {min(lowest)} as the lowest category and others "
            f"with {max(lowest)}, so that the same category does not mean the same. Say lowest= "
            "where they are read"
        )
    return type(parts[0])(
        tuple(steps),
        join_persons(parts),
        join_stores(parts, steps),
        join_groups(parts),
        join_choices([(part.choices, part.n_persons) for part in parts]),
        min(lowest),
        join_detected(part.detected for part in parts),
    )


def tabulate_answers(responses: Responses, layout: Layout) -> pd.DataFrame:
    """Return a pandas DataFrame, or Arrow where pandas is absent."""
    import pyarrow as pa

    columns = list_table_columns(responses, layout).items()
    return make_frame(pa.table({name: pa.array(_restore(values)) for name, values in columns}))


def _restore(column: Any) -> Any:
    """Return a column, ids that were numbers as numbers again."""
    return restore_ids(column.tolist()) if column.dtype == object else column


def find_rows(rows: Any, persons: Texts) -> IndexArray:
    """Return the positions of persons: a slice, truth values, positions or ids, each once."""
    n = len(persons)
    if isinstance(rows, slice):
        return np.arange(n)[rows]
    choice = np.asarray(rows)
    if choice.ndim != 1:
        raise BadUsage(
            "persons are chosen by a list: of positions, of ids, or of one truth value for each "
            f"person; found {type(rows).__name__}"
        )
    if choice.dtype == bool and len(choice) == n:
        return np.flatnonzero(choice)
    positions = _find_positions(choice, persons) if len(choice) else np.zeros(0, dtype=np.intp)
    if len(np.unique(positions)) < len(positions):
        raise BadUsage("a person was chosen twice; ids must differ, so choose everybody once")
    return positions


def _find_positions(choice: Any, persons: Texts) -> IndexArray:
    if choice.dtype.kind in "iu":
        outside = choice[(choice < 0) | (choice >= len(persons))]
        if len(outside):
            raise BadUsage(
                f"there is no person at position {outside[0]}: positions go from 0 to "
                f"{len(persons) - 1}"
            )
        return np.asarray(choice, dtype=np.intp)
    if choice.dtype == bool:
        raise BadUsage(f"{len(choice)} truth values were given for {len(persons)} persons")
    row_of = {person: row for row, person in enumerate(persons)}
    unknown = [str(person_id) for person_id in choice if str(person_id) not in row_of]
    if unknown:
        raise BadUsage(f"there is no answer of {name_some(unknown)} here; ids are texts")
    return np.array([row_of[str(person_id)] for person_id in choice], dtype=np.intp)


def take_store(store: AnswerStore, positions: IndexArray) -> AnswerStore:
    """Return the answers of these persons, in this order."""
    if isinstance(store, StepStore):
        return StepStore(cast(Nodes, take_store(store.nodes, positions)), store.steps)
    ordered = np.sort(positions)
    rows = join_rows([part.take(inside) for part, inside in _split(store, ordered)])
    return _pack(rows.take(np.searchsorted(ordered, positions)))


def _split(store: AnswerStore, ordered: IndexArray) -> Iterator[tuple[SparseRows, IndexArray]]:
    """Yield sparse rows of blocks of persons, and who of each is wanted; at least one block."""
    if isinstance(store, SparseRows):
        yield store, ordered
        return
    size = max(64, CHUNK_CELLS // max(store.n_items, 1))
    for start in range(0, max(store.n_persons, 1), size):
        inside = ordered[slice(*np.searchsorted(ordered, [start, start + size]))] - start
        cells = pack_rows(store.rows(start, start + size)[inside])
        yield cells.take(np.arange(len(inside))), np.arange(len(inside))


def _pack(rows: SparseRows) -> AnswerStore:
    """Return the form that takes less memory."""
    person = np.repeat(np.arange(rows.n_persons), np.diff(rows.indptr))
    return store_long(person, rows.item.astype(np.int64), rows.right, rows.n_persons, rows.n_items)


def join_items(parts: Sequence[Responses]) -> dict[str, int]:
    """Return all items in the order in which they first occur, with their highest categories."""
    steps: dict[str, int] = {}
    for part in parts:
        for item, n_steps in zip(part.items, part.steps, strict=True):
            steps[item] = max(n_steps, steps.get(item, n_steps))
    return steps


def join_persons(parts: Sequence[Responses]) -> list[str] | None:
    """Return all ids; None where nobody has one. A person in two parts is an error."""
    if all(part.person_ids is None for part in parts):
        return None
    ids = [str(person) for part in parts for person in part.persons]
    if len(set(ids)) == len(ids):
        return ids
    known_ids: set[str] = set()
    repeated = [name for name in ids if name in known_ids or known_ids.add(name)]  # type: ignore[func-returns-value]
    raise BadResponses(
        f"{len(repeated)} of the persons occur in more than one part: {name_some(repeated)}. Put "
        "behind each other they would count as different persons; read the tables together "
        "instead, with repeats= for items that were answered twice"
    )


def join_stores(parts: Sequence[Responses], steps: Mapping[str, int]) -> AnswerStore:
    """Return the persons of all parts behind each other, over all items."""
    if any(step > 1 for step in steps.values()):
        return _join_codes(parts, steps)
    rows = []
    for part in parts:
        column_of = {name: column for column, name in enumerate(part.items)}
        columns = np.array([column_of.get(name, ABSENT) for name in steps], dtype=np.int64)
        everybody = np.arange(part.n_persons)
        store = select_columns(part.store, columns)
        rows += [some.take(inside) for some, inside in _split(store, everybody)]
    return _pack(join_rows(rows))


def _join_codes(parts: Sequence[Responses], steps: Mapping[str, int]) -> AnswerStore:
    """Do the same with steps, of which an item may have more in one part than in another."""
    column = {name: number for number, name in enumerate(steps)}
    entries, before = [], 0
    for part in parts:
        columns = np.array([column[name] for name in part.items])
        size = max(64, CHUNK_CELLS // max(part.n_items, 1))
        for start in range(0, part.n_persons, size):
            cells = part.rows(start, start + size)
            person, item = np.nonzero(cells >= 0)
            entries.append((before + start + person, columns[item], cells[person, item]))
        before += part.n_persons
    person, item, code = (np.concatenate(arrays) for arrays in zip(*entries, strict=True))
    return store_long_codes(person, item, code, before, tuple(steps.values()))


def join_groups(parts: Sequence[Responses]) -> dict[str, Texts]:
    """Return all columns of groups, "" for persons of parts that do not have one."""
    names = {name: None for part in parts for name in part.groups}
    return {
        name: np.concatenate(
            [part.groups.get(name, np.full(part.n_persons, "", dtype=object)) for part in parts]
        )
        for name in names
    }


def list_table_columns(responses: Responses, layout: Layout) -> Mapping[str, Any]:
    """Return the columns of a long or a wide table."""
    if layout not in ("long", "wide"):
        raise BadUsage(f"layout must be 'long' or 'wide', found {layout!r}")
    cells = responses.to_array()
    about = {"person": responses.persons, **responses.groups}
    if layout == "long":
        person, item = np.nonzero(cells >= 0)
        names = np.array(responses.items, dtype=object)
        person_columns = {name: values[person] for name, values in about.items()}
        return {**person_columns, "item": names[item], "response": cells[person, item]}
    taken = [name for name in about if name in responses.items]
    if taken:
        raise BadUsage(
            f"a wide table would have two columns '{taken[0]}', for an item and for persons; use "
            "layout='long'"
        )
    columns = zip(responses.items, cells.T, strict=True)
    return {**about, **{item: np.ma.masked_less(codes, 0) for item, codes in columns}}


def hold_the_same(left: Responses, right: Responses) -> bool:
    """Say whether two hold the same answers of the same persons to the same items."""
    sizes = [(part.items, part.n_persons, part.n_answers) for part in (left, right)]
    if sizes[0] != sizes[1] or not np.array_equal(left.persons, right.persons):
        return False
    if left.groups.keys() != right.groups.keys():
        return False
    if not all(np.array_equal(texts, right.groups[name]) for name, texts in left.groups.items()):
        return False
    step = max(64, CHUNK_CELLS // left.n_items)
    starts = range(0, left.n_persons, step)
    return all(np.array_equal(left.rows(s, s + step), right.rows(s, s + step)) for s in starts)
