"""Parts of answers, several sets of persons together, and answers as a table again.

In: a store, or answers in memory. Out: some items, some persons, at most so many answers of each;
all persons of several sets. Nothing is changed in place. The cap draws from the secure source only,
because it is a step of a private release.
"""

from __future__ import annotations

import itertools
import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from discreet.answers.pack import store_long, store_steps
from discreet.answers.survey import refuse_weights
from discreet.choices import Layout, PlainMapping
from discreet.coding.reading import PLAIN
from discreet.coding.remedies import join_detected
from discreet.counts import planes
from discreet.counts.matrix import nodes_of
from discreet.counts.planes import AnswerStore, BitPlanes, Nodes, SparseRows, StepStore
from discreet.errors import BadResponses, BadUsage
from discreet.jit import worth_compiling
from discreet.names import restore_ids
from discreet.tabular import make_frame
from discreet.text import name_some
from discreet.types import BoolArray, IndexArray, Int64Array, Texts, UInt64Array

if TYPE_CHECKING:
    import pandas as pd

    from discreet.answers.responses import Responses
    from discreet.answers.routed import RoutedPersons
    from discreet.secure import RandomSource

#: Cells looked at together in capping: 16 megabytes of random keys.
_CELLS = 1 << 22

#: Seconds that NumPy needs to draw and sort one key.
PLAIN_KEY = 2e-7

#: Caps the listed persons by their keys and returns those whose keys do not decide.
Cap = Callable[[Int64Array, npt.NDArray[np.uint32]], Int64Array]

#: Gives uniform keys for all answers of the listed persons, one person after the other.
Draw = Callable[[Int64Array], npt.NDArray[np.uint32]]

ABSENT = -1


def number_items(chosen: Sequence[str], items: Sequence[str]) -> Int64Array:
    """Return the number that each chosen item has in a list; -1 where it is not in it."""
    column_of = {name: column for column, name in enumerate(items)}
    return np.array([column_of.get(name, ABSENT) for name in chosen], dtype=np.int64)


def select_columns(store: AnswerStore, columns: Int64Array) -> AnswerStore:
    """Return the store with these columns in this order; column -1 is one nobody answered."""
    if isinstance(store, StepStore):
        nodes, steps = nodes_of(columns, store.steps)
        return planes.step_store(cast(Any, select_columns(store.nodes, nodes)), steps)
    if isinstance(store, BitPlanes):
        right, wrong = store.right[:, columns, :], store.wrong[:, columns, :]
        right[:, columns == ABSENT, :] = wrong[:, columns == ABSENT, :] = 0
        return BitPlanes(right, wrong, store.n_persons)
    return _select_rows(cast(SparseRows, store), columns)


def _select_rows(store: SparseRows, columns: Int64Array) -> SparseRows:
    new_column = np.full(store.n_items, ABSENT, dtype=np.int64)
    present = columns != ABSENT
    new_column[columns[present]] = np.flatnonzero(present)
    item = new_column[store.item]
    entry = np.flatnonzero(item != ABSENT)
    person = store.person[entry]
    item = item[entry]
    if (np.diff(new_column[new_column != ABSENT]) < 0).any():
        order = np.argsort(person * max(len(columns), 1) + item, kind="stable")
        item, entry = item[order], entry[order]
    indptr = planes.row_starts(person, store.n_persons)
    return SparseRows(
        indptr, planes.narrow_items(item, len(columns)), store.right[entry], len(columns)
    )


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
    if isinstance(store, StepStore):
        return store.keep(cast(Any, cap_answers(store.answered(), max_answers, source)))
    if isinstance(store, BitPlanes):
        return _cap_planes(store, max_answers, source)
    return _cap_rows(cast(SparseRows, store), max_answers, source)


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


def keep_entries(starts: Int64Array, limit: int, draw: Draw) -> BoolArray:
    """Say which entries stay; person ``l`` owns ``starts[l]`` to ``starts[l + 1]``.

    ``draw`` is asked again for persons whose keys do not decide, and must then give new ones.
    """
    keep = np.ones(int(starts[-1]), dtype=np.bool_)
    compiled = worth_compiling(PLAIN_KEY * len(keep))

    def cap(persons: Int64Array, keys: npt.NDArray[np.uint32]) -> Int64Array:
        if not compiled:
            return _cap_plain(starts, persons, keys, limit, keep)
        from discreet.counts.cap_kernels import cap_entries

        return np.asarray(cap_entries(starts, persons, planes.read_only(keys), limit, keep))

    _cap_until_decided(draw, np.diff(starts), limit, cap)
    return keep


def _cap_plain(
    starts: Int64Array,
    persons: Int64Array,
    keys: npt.NDArray[np.uint32],
    max_answers: int,
    keep: BoolArray,
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
    return store.keep(keep)


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
    from discreet.counts.cap_kernels import cap_bits
    from discreet.counts.kernels import turn_back, turn_plane
    from discreet.counts.pack_kernels import count_persons

    items, words = answered.shape
    numbers = np.empty(64 * words, dtype=np.int64)
    count_persons(answered, numbers)
    rows = np.empty((64 * words, -(-items // 64)), dtype=np.uint64)
    turn_plane(answered, rows, 0)

    def cap(persons: Int64Array, keys: npt.NDArray[np.uint32]) -> Int64Array:
        return np.asarray(cap_bits(rows, persons, planes.read_only(keys), limit))

    _cap_until_decided(_draw_from(source, numbers), numbers, limit, cap)
    turn_back(rows, np.arange(64 * words, dtype=np.int32), items, answered[None])
    return answered


def _cap_words_plain(answered: UInt64Array, limit: int, source: RandomSource) -> UInt64Array:
    """Do the same with NumPy alone."""
    bits = np.unpackbits(answered.view(np.uint8), axis=1, bitorder="little")
    person, item = np.nonzero(bits.T)
    starts = planes.row_starts(person, bits.shape[1])
    gone = ~keep_entries(starts, limit, _draw_from(source, np.diff(starts)))
    bits[item[gone], person[gone]] = 0
    return np.packbits(bits, axis=1, bitorder="little").view(np.uint64)


def flip_answers(store: BitPlanes | SparseRows) -> BitPlanes | SparseRows:
    """Exchange right and wrong."""
    if isinstance(store, BitPlanes):
        return BitPlanes(store.wrong, store.right, store.n_persons)
    return SparseRows(store.indptr, store.item, ~store.right, store.n_items)


def select_person_rows(responses: Responses, rows: object) -> Responses:
    """Return some of the persons with all that is known of them."""
    from discreet.answers.responses import Responses

    at, chosen, sample = find_persons(rows, responses.persons), responses.choices, responses.sample
    groups = {name: texts[at] for name, texts in responses.groups.items()}
    choices = None if chosen is None else replace(chosen, chosen=chosen.chosen[at])
    design = None if sample is None else sample.take(at)
    routing = None if responses.routing is None else responses.routing.take(at)
    about = (groups, choices, responses.reading, responses.detected, design, routing)
    store = take_store(responses.store, at)
    return Responses(responses.items, responses.persons[at], store, *about)


def refuse_routing(routing: RoutedPersons | None, feature: str) -> None:
    """Refuse what does not condition on paths."""
    if routing is not None:
        raise BadUsage(
            f"{feature} is refused for routed answers: it does not know which answers led to which "
            "items, so that difficulties would be biased"
        )


def join_responses(parts: Sequence[Responses]) -> Responses:
    """Return all persons behind each other, over all items."""
    from discreet.answers.choices import join_choices
    from discreet.answers.responses import Responses
    from discreet.coding.agreement import check_alike, join_readings

    if not isinstance(parts, Sequence) or not all(hasattr(part, "store") for part in parts):
        raise BadUsage(
            "answers are put together from a list of Responses; read tables with read_responses or "
            "Responses.from_dataframe first"
        )
    if not parts:
        raise BadResponses("Nothing to put together: give at least one set of answers.")
    reason = "units of two samples may have the same names. Read all persons from one table"
    for part in parts:
        refuse_weights(part.sample, "putting answers together", reason)
        refuse_routing(part.routing, "putting answers together")
    # All items in the order in which they first occur, with their highest categories.
    steps: dict[str, int] = {}
    for part in parts:
        for item, n_steps in zip(part.items, part.steps, strict=True):
            steps[item] = max(n_steps, steps.get(item, 1))
    for part in parts:
        check_alike(parts[0].reading, part.reading, part.items)
    lowest = {part.lowest for part in parts}
    if len(lowest) > 1:
        raise BadResponses(
            f"some of these answers were read with {min(lowest)} as the lowest category and others "
            f"with {max(lowest)}, so that the same category does not mean the same. Say lowest= "
            "where they are read"
        )
    # Persons of parts that do not have a column of groups have "" there.
    columns = {name: None for part in parts for name in part.groups}
    blank = [np.full(part.n_persons, "", dtype=object) for part in parts]
    groups = {
        name: np.concatenate([part.groups.get(name, blank[i]) for i, part in enumerate(parts)])
        for name in columns
    }
    choices = join_choices([(part.choices, part.n_persons) for part in parts])
    detected = join_detected(part.detected for part in parts)
    reading = join_readings([part.reading for part in parts])
    about = (groups, choices, reading or PLAIN, detected)
    return Responses(tuple(steps), join_persons(parts), join_stores(parts, steps), *about)


def tabulate_answers(responses: Responses, layout: Layout) -> pd.DataFrame:
    """Return a pandas DataFrame, or Arrow where pandas is absent."""
    import pyarrow as pa

    columns = {
        # Ids that were numbers are numbers again.
        name: pa.array(restore_ids(column.tolist()) if column.dtype == object else column)
        for name, column in list_table_columns(responses, layout).items()
    }
    return make_frame(pa.table(columns))


def find_persons(rows: object, persons: Texts) -> IndexArray:
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
    if choice.dtype == bool:
        raise BadUsage(f"{len(choice)} truth values were given for {n} persons")
    if choice.dtype.kind in "iu":
        outside = choice[(choice < 0) | (choice >= n)]
        if len(outside):
            raise BadUsage(
                f"there is no person at position {outside[0]}: positions go from 0 to {n - 1}"
            )
    else:
        row_of, ids = {person: row for row, person in enumerate(persons)}, list(map(str, choice))
        unknown = [person_id for person_id in ids if person_id not in row_of]
        if unknown:
            raise BadUsage(f"there are no answers of {name_some(unknown)}; ids are texts")
        choice = np.array([row_of[person_id] for person_id in ids])
    positions = choice.astype(np.intp)
    if len(np.unique(positions)) < len(positions):
        raise BadUsage("a person was chosen twice; ids must differ, so choose everybody once")
    return positions


def take_store(store: AnswerStore, positions: IndexArray) -> AnswerStore:
    """Return the answers of these persons, in this order."""
    if isinstance(store, StepStore):
        return StepStore(cast(Nodes, take_store(store.nodes, positions)), store.steps)
    ordered = np.sort(positions)
    rows = cast(SparseRows, store.take(ordered)).take(np.searchsorted(ordered, positions))
    return store_long(
        rows.person, rows.item.astype(np.int64), rows.right, rows.n_persons, rows.n_items
    )


def join_persons(parts: Sequence[Responses]) -> list[str] | None:
    """Return all ids; None where nobody has one. A person in two parts is an error."""
    if all(part.person_ids is None for part in parts):
        return None
    ids = [str(person) for part in parts for person in part.persons]
    if len(set(ids)) == len(ids):
        return ids
    repeated = list((Counter(ids) - Counter(set(ids))).elements())
    raise BadResponses(
        f"{len(repeated)} of the persons occur in more than one part: {name_some(repeated)}. "
        "Joined like this they would count as different persons. Read the tables together "
        "instead, with repeats= for items that were answered twice"
    )


def join_stores(parts: Sequence[Responses], steps: Mapping[str, int]) -> AnswerStore:
    """Return the persons of all parts as one store, over all items.

    An item may have more steps in one part than in another.
    """
    column = {name: number for number, name in enumerate(steps)}
    entries, before = [], 0
    for part in parts:
        columns = np.array([column[name] for name in part.items])
        size = max(64, planes.CHUNK_CELLS // max(part.n_items, 1))
        for start in range(0, part.n_persons, size):
            cells = part.rows(start, start + size)
            person, item = np.nonzero(cells >= 0)
            entries.append((before + start + person, columns[item], cells[person, item]))
        before += part.n_persons
    person, item, code = (np.concatenate(arrays) for arrays in zip(*entries, strict=True))
    return store_steps(person, item, code, before, tuple(steps.values()))


def list_table_columns(responses: Responses, layout: Layout) -> PlainMapping:
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
    sizes = [(p.items, p.n_persons, p.n_answers, p.groups.keys()) for p in (left, right)]
    if sizes[0] != sizes[1] or not np.array_equal(left.persons, right.persons):
        return False
    if not all(np.array_equal(texts, right.groups[name]) for name, texts in left.groups.items()):
        return False
    step = max(64, planes.CHUNK_CELLS // left.n_items)
    starts = range(0, left.n_persons, step)
    return all(np.array_equal(left.rows(s, s + step), right.rows(s, s + step)) for s in starts)
