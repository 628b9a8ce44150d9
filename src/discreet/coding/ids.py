"""Check the names that stand beside the answers: items, persons, groups, codes.

In: what a caller gave. Out: the same in the one form that is kept, or an error that says which
name is wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from discreet.choices import PlainMapping
from discreet.errors import BadResponses, BadUsage
from discreet.names import NumberName, are_numbers, name_id, settle_names
from discreet.types import FloatArray, Int64Array, Texts


def spell_ids(ids: Any) -> list[str]:
    """Return Arrow ids as names; numbers remember what they were."""
    if not pa.types.is_integer(ids.type):
        return list(ids.to_pylist())
    return list(map(NumberName, ids.to_pylist()))


def check_items(items: Sequence[object], n_items: int) -> tuple[str, ...]:
    """Return item names as text: as many as there are columns, all different."""
    if isinstance(items, str):
        raise BadUsage(f"items must be a list of names; found the single text {items!r}.")
    names = settle_names(name_id(item) for item in items)
    if len(names) != n_items:
        raise BadUsage(
            f"{len(names)} item names were given for {n_items} columns of answers. "
            "Give one name per column."
        )
    _refuse_twice("Item", names)
    return names


def _refuse_twice(role: str, names: Sequence[str]) -> None:
    if len(set(names)) == len(names):
        return
    name = next(name for name, times in Counter(names).items() if times > 1)
    places = [str(index) for index, candidate in enumerate(names) if candidate == name][:2]
    raise BadResponses(
        f"{role} '{name}' occurs twice, at positions {' and '.join(places)} (counted from 0). "
        "Names must differ. Rename or remove one."
    )


def check_person_ids(persons: Any, n_persons: int) -> Any:
    """Return person ids as Arrow strings or, of numbers, as such: one per row, all different."""
    if isinstance(persons, pa.ChunkedArray):
        persons = persons.combine_chunks()
    if not isinstance(persons, pa.Array):
        names = [name_id(person) for person in persons]
        kind = pa.int64() if are_numbers(names) else pa.string()
        persons = pa.array(map(int, names) if kind == pa.int64() else names, type=kind)
    if len(persons) != n_persons:
        raise BadUsage(
            f"{len(persons)} person ids were given for {n_persons} rows of answers. "
            "Give one id per row."
        )
    if pc.count_distinct(persons).as_py() != n_persons:
        _refuse_twice("Person", persons.to_pylist())
    return persons


def number_persons(n_persons: int) -> pa.Array:
    """Return ids from 1."""
    numbers = np.arange(1, n_persons + 1, dtype=np.int64)
    # From its buffer: other ways ask whether it is from pandas, which takes half a second.
    return pa.Array.from_buffers(pa.int64(), n_persons, [None, pa.py_buffer(numbers)])


def make_ids(persons: object, n_persons: int) -> Texts:
    """Return ids as a NumPy array of Python strings, "0", "1", ... by default."""
    ids = np.empty(n_persons, dtype=object)
    ids[:] = list(map(str, range(n_persons))) if persons is None else spell_ids(persons)
    ids.setflags(write=False)
    return ids


def check_groups(groups: PlainMapping, n_persons: int) -> Mapping[str, Texts]:
    """Return group columns as read-only arrays of text, one entry per person."""
    checked: dict[str, Texts] = {}
    for name, values in groups.items():
        texts = np.empty(len(values), dtype=object)
        texts[:] = ["" if value is None else str(value) for value in values]
        if len(texts) != n_persons:
            raise BadUsage(
                f"Group '{name}' has {len(texts)} entries for {n_persons} persons. "
                "Give one entry per person."
            )
        texts.setflags(write=False)
        checked[str(name)] = texts
    return MappingProxyType(checked)


def check_codes(codes: npt.ArrayLike, size: int, role: str) -> npt.NDArray[np.int64]:
    """Return the numbers of persons or items, each from 0 to ``size - 1``."""
    numbers = np.asarray(codes)
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise BadResponses(
            f"The {role} numbers must be one vector of whole numbers; found an array of type "
            f"{numbers.dtype} and shape {numbers.shape}."
        )
    wrong = np.flatnonzero((numbers < 0) | (numbers >= size))
    if wrong.size:
        raise BadResponses(
            f"Entry {wrong[0]} belongs to {role} number {numbers[wrong[0]]}, but there are only "
            f"{size} (0 to {size - 1})."
        )
    return numbers.astype(np.int64, copy=False)


def sort_keys(keys: Int64Array, when: FloatArray | None) -> Int64Array:
    """Return the entries by key, and of equal keys by time, those of one time as they came."""
    if when is None or not when.shape[1]:
        return np.argsort(keys, kind="stable")
    return np.lexsort((when[:, 1], when[:, 0], keys))


def no_order(entries: int) -> FloatArray:
    """Return the keys of entries that have none but their place."""
    return np.zeros((entries, 0))
