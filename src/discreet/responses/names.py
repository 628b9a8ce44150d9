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

from discreet.errors import BadResponses, BadUsage

__all__ = ["check_codes", "check_groups", "check_items", "check_persons", "make_ids"]

Texts = npt.NDArray[np.object_]


def check_items(items: Sequence[object], n_items: int) -> tuple[str, ...]:
    """Return item names as text: as many as there are columns, all different."""
    if isinstance(items, str):
        raise BadUsage(f"items must be a list of names; found the single text {items!r}.")
    names = tuple(str(item) for item in items)
    if len(names) != n_items:
        raise BadUsage(
            f"{len(names)} item names were given for {n_items} columns of answers. "
            "Give one name per column."
        )
    _refuse_twice("Item", names)
    return names


def _refuse_twice(what: str, names: Sequence[str]) -> None:
    if len(set(names)) == len(names):
        return
    name = next(name for name, times in Counter(names).items() if times > 1)
    places = [str(place) for place, other in enumerate(names) if other == name][:2]
    raise BadResponses(
        f"{what} '{name}' occurs twice, at positions {' and '.join(places)} (counted from 0). "
        "Names must differ, or answers could not be told apart. Rename or remove one."
    )


def check_persons(persons: Any, n_persons: int) -> Any:
    """Return person ids as Arrow strings: one per row, all different."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(persons, pa.ChunkedArray):
        persons = persons.combine_chunks()
    if not isinstance(persons, pa.Array):
        persons = pa.array([str(person) for person in persons], type=pa.string())
    if len(persons) != n_persons:
        raise BadUsage(
            f"{len(persons)} person ids were given for {n_persons} rows of answers. "
            "Give one id per row."
        )
    if pc.count_distinct(persons).as_py() != n_persons:
        _refuse_twice("Person", persons.to_pylist())
    return persons


def make_ids(persons: Any, n_persons: int) -> Texts:
    """Return ids as a NumPy array of Python strings, "0", "1", ... by default."""
    ids = np.empty(n_persons, dtype=object)
    ids[:] = list(map(str, range(n_persons))) if persons is None else persons.to_pylist()
    ids.setflags(write=False)
    return ids


def check_groups(groups: Mapping[str, Any], n_persons: int) -> Mapping[str, Texts]:
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


def check_codes(codes: npt.ArrayLike, size: int, what: str) -> npt.NDArray[np.int64]:
    """Return the numbers of persons or items, each from 0 to ``size - 1``."""
    numbers = np.asarray(codes)
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise BadResponses(
            f"The {what} numbers must be one vector of whole numbers; found an array of type "
            f"{numbers.dtype} and shape {numbers.shape}."
        )
    wrong = np.flatnonzero((numbers < 0) | (numbers >= size))
    if wrong.size:
        raise BadResponses(
            f"Entry {wrong[0]} belongs to {what} number {numbers[wrong[0]]}, but there are only "
            f"{size} (0 to {size - 1})."
        )
    return numbers.astype(np.int64, copy=False)
