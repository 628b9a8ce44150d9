"""Take in long tables: one row per person, item and answer.

In: batches of three columns (and group columns), from as many sources as there are. Out: the
parts of one table. Only codes and values are kept, 9 bytes a row; names are looked up again
only for a message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import BadResponses
from discreet.store.pack import store_long
from discreet.store.pack_numpy import Repeated
from discreet.store.planes import BitPlanes, SparseRows
from discreet.store.select import flip_answers
from discreet.tables.ids import BadIds, IdCodes, encode_ids
from discreet.tables.roles import LongPlan, Reading
from discreet.tables.source import RawTable, RowPlaces, Source
from discreet.tables.values import BAD, explain_bad_answer, score_array, show

Codes = npt.NDArray[np.int32]


class LongTable:
    """Long rows as they come in; :meth:`finish` makes the parts of them."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._rows = RowPlaces()
        self._persons, self._items = IdCodes(), IdCodes()
        self._groups = {name: IdCodes() for name in reading.group}
        self._values: list[npt.NDArray[np.int8]] = []

    @property
    def n_rows(self) -> int:
        """Rows taken in so far."""
        return self._rows.n_rows

    def add_source(self, source: Source, plan: LongPlan) -> None:
        """Take in all rows of a source."""
        self.begin(source)
        columns = (plan.person, plan.item, plan.response, *plan.groups)
        names = [source.names[number] for number in columns]
        for batch in source.batches(columns):
            self.add(batch, names)

    def begin(self, source: Source) -> None:
        """Say where the next rows come from."""
        self._rows.begin(source)

    def add(self, batch: Sequence[Any], names: Sequence[str]) -> None:
        """Take in a batch: person, item and answer column, then group columns."""
        persons = read_ids(batch[0], names[0], "person", self._rows)
        items = read_ids(batch[1], names[1], "item", self._rows)
        values = score_array(batch[2], self._reading.scoring)
        self._refuse_bad(values, batch[2], names[2])
        self._persons.add(persons)
        self._items.add(items)
        for (name, codes), column in zip(self._groups.items(), batch[3:], strict=True):
            codes.add(read_ids(column, name, "group", self._rows))
        self._values.append(values)
        self._rows.n_rows += len(values)

    def _refuse_bad(self, values: npt.NDArray[np.int8], column: Any, name: str) -> None:
        if not (values == BAD).any():
            return
        row = int(np.flatnonzero(values == BAD)[0])
        where = self._rows.place(self._rows.n_rows + row)
        scoring = self._reading.scoring
        value = column[row].as_py()
        raise BadResponses(explain_bad_answer(where, name, value, scoring, wide=False))

    def finish(self) -> RawTable:
        """Return the parts of the table."""
        names, items = self._persons.names(), tuple(self._items.names().to_pylist())
        person, item = self._persons.take_codes(), self._items.take_codes()
        empty = np.zeros(0, dtype=np.int8)
        values = np.concatenate([empty, *self._values])
        self._values = []
        groups = {
            name: assign_groups(name, person, codes, names, self._rows.place)
            for name, codes in self._groups.items()
        }
        rows = None
        if (values < 0).any():
            rows = np.flatnonzero(values >= 0)
            person, item, values = person[rows], item[rows], values[rows]

        def place(index: int) -> str:
            return self._rows.place(index if rows is None else int(rows[index]))

        store = store_answers(person, item, values == 1, names, items, self._reading, place)
        return RawTable(items, names, store, groups)


def read_ids(column: Any, name: str, what: str, rows: RowPlaces) -> Any:
    """Return a column of ids as texts; stop at the first row without one (but for groups)."""
    try:
        ids = encode_ids(column)
    except BadIds as bad:
        raise BadResponses(
            f"{rows.place(rows.n_rows + bad.row)}, column '{name}': found {show(bad.value)}, which "
            f"cannot be the {what} id: ids are text (UTF-8) or numbers. Write the column as text."
        ) from None
    if ids.indices.null_count == 0 or what == "group":
        return ids
    row = int(np.flatnonzero(ids.indices.is_null().to_numpy(zero_copy_only=False))[0])
    raise BadResponses(
        f"{rows.place(rows.n_rows + row)}, column '{name}': the {what} id is missing. Without it "
        f"the row belongs to no {what}. Fill it in, or remove the row."
    )


def store_answers(
    person: Codes,
    item: Codes,
    right: npt.NDArray[np.bool_],
    persons: Any,
    items: Sequence[str],
    reading: Reading,
    place: Any,
) -> BitPlanes | SparseRows:
    """Store answers; a person's second answer to an item is settled as the user said.

    Parameters
    ----------
    person, item, right
        One entry per answer.
    persons, items
        The names behind the codes.
    reading
        Gives ``repeats`` and ``one_means``.
    place
        From the number of an entry to the words for its row.
    """
    try:
        store = store_long(person, item, right, len(persons), len(items))
    except Repeated as again:
        if reading.repeats == "error":
            first, second = again.first_index, again.second_index
            raise BadResponses(
                f"Person '{persons[int(person[first])]}' answered item "
                f"'{items[int(item[first])]}' more than once: {place(first)} and {place(second)}. "
                "Only one answer can count. Remove one, or keep the first or the last of them "
                "with repeats='first' or repeats='last' (--repeats first, --repeats last)."
            ) from None
        kept = keep_one(person.astype(np.int64) * len(items) + item, reading.repeats)
        store = store_long(person[kept], item[kept], right[kept], len(persons), len(items))
    return store if reading.one_means == "right" else flip_answers(store)


def keep_one(keys: npt.NDArray[np.int64], which: str) -> npt.NDArray[np.int64]:
    """Return the entries to keep, in order: the first or last of each key."""
    order = np.argsort(keys, kind="stable")
    differs = np.diff(keys[order]) != 0
    edge = np.ones(min(1, len(keys)), dtype=np.bool_)
    chosen = np.concatenate([edge, differs] if which == "first" else [differs, edge])
    return np.sort(order[chosen])


def assign_groups(
    name: str, person: npt.NDArray[Any], codes: IdCodes, persons: Any, place: Any
) -> npt.NDArray[np.object_]:
    """Return each person's value of a group column; two different ones are refused."""
    words, value = codes.names().to_pylist(), codes.take_codes()
    known = np.full(len(persons), -1, dtype=np.int64)
    said = np.flatnonzero(value >= 0)
    known[person[said][::-1]] = value[said][::-1]  # backwards, so that the first row stays
    other = said[known[person[said]] != value[said]]
    if other.size:
        row = int(other[0])
        raise BadResponses(
            f"{place(row)}, column '{name}': person '{persons[int(person[row])]}' belongs to "
            f"group '{words[value[row]]}' here but to '{words[known[person[row]]]}' before. "
            "A person can be in one group only. Correct the column."
        )
    groups = np.empty(len(persons), dtype=object)
    groups[:] = [words[code] if code >= 0 else "" for code in known.tolist()]
    return groups
