"""Cap each person's answers by a keyed function: random to everyone, the same every time.

In: answers of whole persons, their ids and a secret key. Out: the answers that stay, for each
person a uniformly random part.

Why executors must not simply draw random numbers: Spark runs a task again when its executor
dies, when a shuffle block is lost, or when it seems slow, possibly after some of its output was
used. One person's answers may then be counted under one cap by one stage and under another cap
by the next, so that more answers than the cap have an influence on one release. The noise is
calibrated to the cap, so the promise of privacy would be void. Hence one key is drawn from the
operating system on the driver, and what a person keeps is a function of the key, the person and
the person's answers: no attempt, no order of rows and no other person changes it. Without the
key it cannot be told from random, as with every secure generator. The key travels to the
executors with the task, and is forgotten with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from discreet.engines.sparse import list_rows
from discreet.responses.compiling import worth_compiling
from discreet.responses.store import BitPlanes, Int64Array, SparseRows
from discreet.responses.subsets import keep_entries, number_items
from discreet.secure import RandomSource

__all__ = ["Cap", "cap_store", "draw_cap", "name_rows"]

KEY_BYTES = 32
PLAIN_CELL = 1e-8
"""Seconds that NumPy needs to list one cell of bit planes."""


@dataclass(frozen=True)
class Cap:
    """The most answers that a person keeps, and the secret that says which."""

    most: int
    key: bytes = field(repr=False)


def draw_cap(most: int, source: RandomSource) -> Cap:
    """Draw the key of a cap: once, on the driver."""
    return Cap(most, source.words(KEY_BYTES // 8).tobytes())


def cap_store(store: BitPlanes | SparseRows, persons: Sequence[bytes], cap: Cap) -> SparseRows:
    """Keep a uniformly random ``cap.most`` of the answers of each person with more.

    Parameters
    ----------
    store
        Answers, items in an order that is the same in every task.
    persons
        The id of every person, all different.
    cap
        How many, and the key.
    """
    rows = _as_rows(store)
    starts = rows.indptr
    answered = np.diff(starts)
    tries = np.zeros(len(answered), dtype=np.int64)

    def draw(listed: Int64Array) -> npt.NDArray[np.uint32]:
        drawn = [
            _expand(cap.key, int(tries[person]), persons[person], 4 * int(answered[person]))
            for person in listed.tolist()
        ]
        tries[listed] += 1
        return np.frombuffer(b"".join(drawn), dtype="<u4")

    keep = keep_entries(starts, cap.most, draw)
    kept = np.concatenate([[0], np.cumsum(keep, dtype=np.int64)])
    return SparseRows(kept[starts], rows.item[keep], rows.right[keep], rows.n_items)


def _expand(key: bytes, attempt: int, person: bytes, size: int) -> bytes:
    """Return as many bytes as wanted from a keyed function of the person.

    SHAKE-256 of a secret prefix of fixed length is a pseudorandom function with output of any
    length: a sponge, unlike older hashes, lets nobody go on from its output. One call serves
    all answers of a person. The attempt is counted up where 32 bits do not decide between two
    answers (see :func:`discreet.responses.subsets.keep_entries`).
    """
    text = b"discreet cap" + key + attempt.to_bytes(4, "little") + person
    return hashlib.shake_256(text).digest(size)


def name_rows(
    store: BitPlanes | SparseRows, marks: Int64Array | None, seen: dict[bytes, int]
) -> list[bytes]:
    """Give rows without ids names that any attempt finds again: what they hold, and a number.

    Positions of rows change when a task runs again, contents do not. The k-th row with the same
    content is named (content, k). Rows with the same content are in one task, so which of them
    is the k-th does not matter: they are equal. Another person in the place of one, one more or
    one less changes one name in the set of all names, so that everybody else's cap stays as it
    was.

    Parameters
    ----------
    store
        The answers.
    marks
        Hashes by which rows were dealt to tasks. Rows that hold the same answers in different
        spellings may be in one task or in two, depending on the number of tasks and so on the
        number of persons; with the mark in the name that makes no difference.
    seen
        How many rows of each content had a name before; counted up.
    """
    names = []
    step = max(1, (1 << 22) // max(store.n_items, 1))
    prefix = np.zeros(store.n_persons, dtype=np.int64) if marks is None else marks
    for start in range(0, store.n_persons, step):
        rows = store.rows(start, start + step)
        for row, mark in zip(rows, prefix[start : start + step].tolist(), strict=True):
            content = mark.to_bytes(8, "little", signed=True) + row.tobytes()
            number = seen.get(content, 0)
            seen[content] = number + 1
            names.append(number.to_bytes(8, "little") + content)
    return names


def _as_rows(store: BitPlanes | SparseRows) -> SparseRows:
    if isinstance(store, SparseRows):
        return store
    if worth_compiling(PLAIN_CELL * store.n_persons * store.n_items):
        return list_rows(store)
    cells = store.rows(0, store.n_persons)
    person, item = np.nonzero(cells >= 0)
    starts = np.zeros(store.n_persons + 1, dtype=np.int64)
    np.cumsum(np.bincount(person, minlength=store.n_persons), out=starts[1:])
    columns = number_items(item, store.n_items)
    return SparseRows(starts, columns, cells[person, item] == 1, store.n_items)
