"""Keep a part of the answers: some items, a sample of persons, or at most so many answers of each.

In: a store. Out: a new store of the same form; nothing is changed in place. The cap draws from
the secure source only, because it is a step of a private release.
"""

from __future__ import annotations

import hashlib
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from discreet.answers.steps import StepStore, step_store
from discreet.counts.nodes import nodes_of
from discreet.counts.planes import AnswerStore, BitPlanes, SparseRows, narrow_items
from discreet.errors import BadUsage
from discreet.jit import worth_compiling
from discreet.secure import RandomSource
from discreet.types import BoolArray, Int64Array, UInt64Array

_CELLS = 1 << 22
"""Cells looked at together in capping: 16 megabytes of random keys."""

PLAIN_KEY = 2e-7
"""Seconds that NumPy needs to draw and sort one key."""

Cap = Callable[[Int64Array, npt.NDArray[np.uint32]], Int64Array]
"""Caps the listed persons by their keys and returns those whose keys do not decide."""

Draw = Callable[[Int64Array], npt.NDArray[np.uint32]]
"""Gives uniform keys for all answers of the listed persons, one person after the other."""

ABSENT = -1


def select_columns(store: AnswerStore, columns: npt.NDArray[np.int64]) -> AnswerStore:
    """Return the store with these columns in this order; column -1 is one nobody answered."""
    if isinstance(store, BitPlanes):
        return _select_planes(store, columns)
    if isinstance(store, SparseRows):
        return _select_rows(store, columns)
    if isinstance(store, StepStore):
        nodes, steps = nodes_of(columns, store.steps)
        return step_store(cast(Any, select_columns(store.nodes, nodes)), steps)
    raise TypeError(f"Unknown answer store {type(store).__name__}.")


def _select_planes(store: BitPlanes, columns: npt.NDArray[np.int64]) -> BitPlanes:
    right, wrong = store.right[:, columns, :], store.wrong[:, columns, :]
    right[:, columns == ABSENT, :] = 0
    wrong[:, columns == ABSENT, :] = 0
    return BitPlanes(right, wrong, store.n_persons)


def _select_rows(store: SparseRows, columns: npt.NDArray[np.int64]) -> SparseRows:
    new_column = np.full(store.n_items, ABSENT, dtype=np.int64)
    present = columns != ABSENT
    new_column[columns[present]] = np.flatnonzero(present)
    item = new_column[store.item]
    entry = np.flatnonzero(item != ABSENT)
    person = _person_of_answers(store)[entry]
    item = item[entry]
    if (np.diff(new_column[new_column != ABSENT]) < 0).any():
        order = np.argsort(person * max(len(columns), 1) + item, kind="stable")
        item, entry = item[order], entry[order]
    indptr = _row_starts(person, store.n_persons)
    return SparseRows(indptr, narrow_items(item, len(columns)), store.right[entry], len(columns))


def check_cap(max_answers: object, name: str = "max_answers") -> int:
    """Return the most answers that a person may keep; refuse what is no such number."""
    try:
        limit = operator.index(max_answers)  # type: ignore[arg-type]
    except TypeError:
        limit = 0
    if limit < 1:
        raise BadUsage(f"{name} must be a whole number of at least 1; found {max_answers!r}.")
    return limit


def cap_answers(store: AnswerStore, max_answers: int, source: RandomSource) -> AnswerStore:
    """Keep a uniformly random ``max_answers`` of the answers of each person with more."""
    if isinstance(store, BitPlanes):
        return _cap_planes(store, max_answers, source)
    if isinstance(store, SparseRows):
        return _cap_rows(store, max_answers, source)
    if isinstance(store, StepStore):
        return store.keep(cast(Any, cap_answers(store.answered(), max_answers, source)))
    raise TypeError(f"Unknown answer store {type(store).__name__}.")


def draw_keys(source: RandomSource, count: int) -> npt.NDArray[np.uint32]:
    """Return independent uniform 32-bit keys."""
    return source.words((count + 1) // 2).view(np.uint32)[:count]


def _draw_from(source: RandomSource, answered: Int64Array) -> Draw:
    return lambda persons: draw_keys(source, int(answered[persons].sum()))


def _cap_until_decided(draw: Draw, answered: Int64Array, limit: int, cap: Cap) -> None:
    """Draw a key for every answer of every person with too many; the smallest keys stay.

    Where the last key to stay equals the first to go, the keys do not decide, and all keys of
    that person are drawn again. Whether they decide does not change when a person's keys are
    exchanged among the answers, hence given it every set of ``limit`` answers is equally likely,
    and persons are independent. Keys of 32 bits are therefore as exact as longer ones.
    """
    persons = np.flatnonzero(answered > limit)
    while persons.size:
        persons = cap(persons, draw(persons))


def keep_entries(starts: Int64Array, limit: int, draw: Draw) -> npt.NDArray[np.bool_]:
    """Say which entries stay; person ``l`` owns ``starts[l]`` to ``starts[l + 1]``.

    ``draw`` is asked again for persons whose keys do not decide, and must then give new ones.
    """
    keep = np.ones(int(starts[-1]), dtype=np.bool_)
    compiled = worth_compiling(PLAIN_KEY * len(keep))

    def cap(persons: Int64Array, keys: npt.NDArray[np.uint32]) -> Int64Array:
        if not compiled:
            return _cap_plain(starts, persons, keys, limit, keep)
        from discreet.counts.row_kernels import cap_entries

        return np.asarray(cap_entries(starts, persons, _read_only(keys), limit, keep))

    _cap_until_decided(draw, np.diff(starts), limit, cap)
    return keep


def _cap_plain(
    starts: Int64Array,
    persons: Int64Array,
    keys: npt.NDArray[np.uint32],
    max_answers: int,
    keep: npt.NDArray[np.bool_],
) -> Int64Array:
    """Clear ``keep`` for the entries that go; return the undecided persons. NumPy alone."""
    answered = (starts[1:] - starts[:-1])[persons]
    ends = np.cumsum(answered)
    group = np.repeat(np.arange(len(persons)), answered)
    order = np.lexsort((keys, group))
    last = ends - answered + max_answers - 1
    limit, following = keys[order[last]], keys[order[last + 1]]
    undecided = limit == following
    entry = np.arange(len(keys)) + np.repeat(starts[persons] - (ends - answered), answered)
    decided = ~undecided[group]
    keep[entry[decided]] = (keys <= limit[group])[decided]
    left: Int64Array = persons[undecided]
    return left


def _cap_rows(store: SparseRows, max_answers: int, source: RandomSource) -> SparseRows:
    keep = np.ones(store.n_answers, dtype=np.bool_)
    starts = store.indptr
    # Whole persons, about _CELLS answers at a time, so that the keys stay small.
    edges = np.searchsorted(starts, np.arange(0, store.n_answers + _CELLS, _CELLS))
    edges = np.unique(np.minimum(edges, store.n_persons))
    for first, last in itertools.pairwise(edges.tolist()):
        local_starts = starts[first : last + 1] - starts[first]
        draw = _draw_from(source, np.diff(local_starts))
        keep[starts[first] : starts[last]] = keep_entries(local_starts, max_answers, draw)
    n_kept = np.concatenate([[0], np.cumsum(keep, dtype=np.int64)])
    return SparseRows(n_kept[starts], store.item[keep], store.right[keep], store.n_items)


def _cap_planes(store: BitPlanes, max_answers: int, source: RandomSource) -> BitPlanes:
    right, wrong = store.right.copy(), store.wrong.copy()
    # Whole vectors of 8 words, so that about _CELLS answers are looked at together.
    step = max(8, _CELLS // max(store.n_items, 1) // 512 * 8)
    compiled = worth_compiling(PLAIN_KEY * store.n_persons * store.n_items)
    cap = _cap_words if compiled else _cap_words_plain
    for block in range(right.shape[0]):
        for first in range(0, right.shape[2], step):
            words = slice(first, first + step)
            stays = cap(right[block, :, words] | wrong[block, :, words], max_answers, source)
            right[block, :, words] &= stays
            wrong[block, :, words] &= stays
    return BitPlanes(right, wrong, store.n_persons)


def _cap_words(answered: UInt64Array, limit: int, source: RandomSource) -> UInt64Array:
    """Clear bits of ``answered[item, word]`` until nobody has more than ``limit``."""
    from discreet.counts.pack_kernels import count_persons
    from discreet.counts.row_kernels import cap_bits, turn_back, turn_plane

    items, words = answered.shape
    numbers = np.empty(64 * words, dtype=np.int64)
    count_persons(answered, numbers)
    rows = np.empty((64 * words, -(-items // 64)), dtype=np.uint64)
    turn_plane(answered, rows, 0)

    def cap(persons: Int64Array, keys: npt.NDArray[np.uint32]) -> Int64Array:
        return np.asarray(cap_bits(rows, persons, _read_only(keys), limit))

    _cap_until_decided(_draw_from(source, numbers), numbers, limit, cap)
    turn_back(rows, np.arange(64 * words, dtype=np.int32), items, answered[None])
    return answered


def _cap_words_plain(answered: UInt64Array, limit: int, source: RandomSource) -> UInt64Array:
    """Do the same with NumPy alone."""
    bits = np.unpackbits(answered.view(np.uint8), axis=1, bitorder="little")
    person, item = np.nonzero(bits.T)
    starts = _row_starts(person, bits.shape[1])
    gone = ~keep_entries(starts, limit, _draw_from(source, np.diff(starts)))
    bits[item[gone], person[gone]] = 0
    return np.packbits(bits, axis=1, bitorder="little").view(np.uint64)


def _read_only(keys: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Return keys in the one form that the loops are compiled for."""
    view = keys.view()
    view.setflags(write=False)
    return view


def flip_answers(store: BitPlanes | SparseRows) -> BitPlanes | SparseRows:
    """Exchange right and wrong."""
    if isinstance(store, BitPlanes):
        return BitPlanes(store.wrong, store.right, store.n_persons)
    return SparseRows(store.indptr, store.item, ~store.right, store.n_items)


def _person_of_answers(store: SparseRows) -> npt.NDArray[np.int64]:
    return np.repeat(np.arange(store.n_persons), np.diff(store.indptr))


def _row_starts(person: npt.NDArray[np.int64], n_persons: int) -> npt.NDArray[np.int64]:
    starts = np.zeros(n_persons + 1, dtype=np.int64)
    np.cumsum(np.bincount(person, minlength=n_persons), out=starts[1:])
    return starts


# Keyed digests of persons' answers, as sums that add up over batches.
#
# In: a key and answers. Out: the sum of the persons' keyed hashes, and how many were added. The
# sum is the same in any order of the persons and over any batches of them, so every place that
# holds a part of the persons computes its part. Without the key nobody can test a guess of the
# answers against it. The ledger seals the whole sum into a fingerprint.
#
# Two rules. By ``cells`` a person is the names of the answered items with the answers, and a person
# without answers adds nothing: columns and rows that hold no answer change nothing. By ``rows``,
# the rule of ledgers of schema 1, a person is the answers as ``int8`` (1, 0, -1 for missing) in the
# order of the items' names; it is there to recognise what such a ledger was charged for.

CELLS = "cells"
ROWS = "rows"

SUM_BYTES = 64

BLOCK = 1 << 20
"""Cells looked at together: at most about 30 MB."""


def digest_rows(key: bytes, rows: Iterable[Any]) -> tuple[int, int]:
    """Return the sum modulo 2^512 of the keyed hashes of rows, and the number of rows.

    Parameters
    ----------
    key
        At most 64 bytes.
    rows
        One per person: bytes, or a contiguous array of the person's answers.

    Examples
    --------
    >>> whole, count = digest_rows(b"k", [b"a", b"b", b"a"])
    >>> parts = [digest_rows(b"k", [b"a"]), digest_rows(b"k", [b"b", b"a"])]
    >>> add_digests(parts) == (whole, count)
    True
    """
    total = count = 0
    for row in rows:
        digest = hashlib.blake2b(row, key=key, digest_size=SUM_BYTES, person=b"row").digest()
        total += int.from_bytes(digest, "little")
        count += 1
    return total % (1 << (8 * SUM_BYTES)), count


ID_BYTES = 16


def digest_ids(key: bytes, batches: Iterable[Iterable[object] | None]) -> bytes:
    """Return keyed digests of persons' ids, sorted, each once, one behind the other.

    A batch is None where persons have no ids; that is refused.

    Examples
    --------
    >>> digest_ids(b"k", [["ann"], ["bob"]]) == digest_ids(b"k", [["bob", "ann", "bob"]])
    True
    """
    digests = bytearray()
    for batch in batches:
        if batch is None:
            raise BadUsage(
                "this ledger remembers persons by their ids, and these have none: a number in a "
                "file is another person in the next one. Name the column of ids (--person COL, in "
                "Python person=; of an array, persons=), or charge a ledger that was made without "
                "--remember-persons."
            )
        for name in map(str, batch):
            digest = hashlib.blake2b(name.encode(), key=key, digest_size=ID_BYTES, person=b"id")
            digests += digest.digest()
    return np.unique(np.frombuffer(bytes(digests), dtype=f"S{ID_BYTES}")).tobytes()


def digest_store(
    key: bytes, items: Sequence[str], store: AnswerStore, rule: str = CELLS
) -> tuple[int, int]:
    """Return the digest of every person in a store, whose items are in the order of names."""
    step = max(1, BLOCK // max(store.n_items, 1))
    blocks = (store.rows(start, start + step) for start in range(0, store.n_persons, step))
    if rule == ROWS:
        return add_digests(digest_rows(key, block) for block in blocks)
    codes = _cell_codes(key, items, max(store.steps, default=1))
    return add_digests(digest_rows(key, _answered_cells(block, codes)) for block in blocks)


def _cell_codes(key: bytes, items: Sequence[str], highest: int) -> npt.NDArray[np.uint64]:
    """Return ``[item, answer]``: eight keyed bytes that stand for an item's name with an answer."""
    codes = [
        hashlib.blake2b(f"{answer}{name}".encode(), key=key, digest_size=8, person=b"cell").digest()
        for name in items
        for answer in range(highest + 1)
    ]
    return np.frombuffer(b"".join(codes), dtype=np.uint64).reshape(-1, highest + 1)


def _answered_cells(
    block: npt.NDArray[np.int8], codes: npt.NDArray[np.uint64]
) -> Iterator[npt.NDArray[np.uint64]]:
    """Yield the codes of each person's answered cells; nothing for a person without any."""
    person, item = np.nonzero(block >= 0)
    cells = codes[item, block[person, item]]
    starts = np.flatnonzero(np.diff(person, prepend=-1))
    for low, high in pairwise([*starts.tolist(), len(cells)]):
        yield cells[low:high]


def add_digests(parts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Return the digest of all rows from those of disjoint parts of them."""
    total = count = 0
    for part_total, part_count in parts:
        total += part_total
        count += part_count
    return total % (1 << (8 * SUM_BYTES)), count


Store = TypeVar("Store", bound=AnswerStore)

_START, _FACTOR = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_MIX = np.uint64(0x9E3779B97F4A7C15)


def thin_persons(store: Store, ids: Any, first: int, stands: Int64Array) -> Store:
    """Return the persons who are drawn.

    Parameters
    ----------
    store
        Answers of some persons.
    ids
        Their ids: numbers, texts, or None where they are numbered from ``first`` on.
    stands
        How many persons each of them stands for, if drawn; see :func:`stand_for`.
    """
    person_ids = np.arange(first, first + store.n_persons) if ids is None else ids
    chosen = np.flatnonzero(draw_persons(hash_texts(person_ids), stands))
    return cast(Store, store.pick(chosen))


def stand_for(store: AnswerStore, every: Int64Array) -> Int64Array:
    """Return how many persons everybody stands for, if drawn: the least of the answered items.

    Of persons without answers the most of all items. With steps ``every`` is about nodes, so that
    of a category that few are in everybody is drawn.
    """
    weights = np.full(store.n_persons, every.max(initial=1), dtype=np.int64)
    nodes = store.nodes
    if isinstance(nodes, BitPlanes):
        # Common items first: what a rarer one says is written over it.
        for number in np.unique(every)[-2::-1]:
            weights[_answered_any(nodes, every == number)] = number
        return weights
    some = np.diff(nodes.indptr) > 0
    if some.any():
        weights[some] = np.minimum.reduceat(every[nodes.item], nodes.indptr[:-1][some])
    return weights


def draw_persons(hashes: UInt64Array, stands: Int64Array) -> BoolArray:
    """Say who is drawn: one of as many as a person would stand for, by the hash's upper half.

    Examples
    --------
    >>> hashes = hash_texts(np.arange(30_000))
    >>> int(draw_persons(hashes, np.full(30_000, 10)).sum())
    2911
    """
    upper = hashes >> np.uint64(32)
    return np.asarray(upper * stands.astype(np.uint64) < np.uint64(1 << 32))


def hash_texts(ids: Any) -> UInt64Array:
    """Return a number of 64 bits for each id's text, the same on every machine.

    Examples
    --------
    >>> [hex(one) for one in hash_texts(np.array(["ann", "7"], dtype=object)).tolist()]
    ['0x49f3d787c1a15f7', '0xd9464becc83af5b2']
    >>> bool(hash_texts(np.array([7]))[0] == hash_texts(np.array(["7"], dtype=object))[0])
    True
    """
    starts, octets = _spell(ids)
    # Long texts first, so that those that go on are always the first ones.
    lengths = np.diff(starts)
    order = np.argsort(-lengths, kind="stable")
    at, going_on = (
        starts[:-1][order],
        np.searchsorted(-lengths[order], -np.arange(lengths.max(initial=0))),
    )
    state = np.full(len(order), _START)
    for offset, number in enumerate(going_on):
        some = state[:number]
        some ^= octets[at[:number] + offset]
        some *= _FACTOR
    # The last byte reached the lower digits only.
    state ^= state >> np.uint64(32)
    state *= _MIX
    state ^= state >> np.uint64(29)
    hashes = np.empty_like(state)
    hashes[order] = state
    return hashes


def _spell(ids: Any) -> tuple[Int64Array, npt.NDArray[np.uint8]]:
    """Return where each id's text starts, and the bytes of all texts."""
    import pyarrow as pa

    if isinstance(ids, np.ndarray):
        is_integer = ids.dtype.kind in "iu"
        ids = pa.array(ids) if is_integer else pa.array([str(value) for value in ids], pa.string())
    texts = ids.cast(pa.large_string())
    _, places, content = texts.buffers()
    starts = np.frombuffer(places, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    empty = np.zeros(0, dtype=np.uint8)
    return starts, empty if content is None else np.frombuffer(content, dtype=np.uint8)


def _answered_any(planes: BitPlanes, items: BoolArray) -> BoolArray:
    """Say who answered one of these items."""
    words = np.zeros((planes.right.shape[0], planes.right.shape[2]), dtype=np.uint64)
    for item in np.flatnonzero(items):
        words |= planes.right[:, item]
        words |= planes.wrong[:, item]
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")
    return bits.reshape(-1)[: planes.n_persons].astype(bool)
