"""What counts keep of persons, so that days can be added: folds of them, and a sketch of their ids.

In: ids of persons, counts of some of them. Out: :class:`FoldCounts`, one matrix of pair counts for
each fold, of which a fit finds its own standard errors by leaving one fold out at a time; and a
sketch, by which counts that share persons are recognised. Both use a fixed hash of the id's text,
MD5, because every database has it: a person is in the same fold in every engine and on every day.
It hides nobody: whoever guesses an id can find it in a sketch. Confidential, like all counts.

Batches of whole persons are added up by :class:`FoldSums`. Items only ever join at the end of the
list; folds that no longer fit into memory are put together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, is_dataclass, replace
from hashlib import md5
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.choices import PlainDict
from discreet.counts.matrix import Recoding, item_of_nodes
from discreet.counts.pairs import count_store
from discreet.counts.planes import AnswerStore
from discreet.errors import BadResponses, BadUsage
from discreet.types import IndexArray, Int64Array, UInt64Array

if TYPE_CHECKING:
    from discreet.counts import PairCounts

UNWEIGHTED = "none"

#: Memory for the matrices of all folds: 32 folds of 2,048 items, 8 folds of 4,096.
FOLD_BYTES = 1 << 30
#: With fewer, standard errors from folds would say next to nothing.
FEWEST_FOLDS = 8
MOST_FOLDS = 1024
#: Ids in a sketch: persons in common are noticed from about half a percent of all on.
SKETCH_SIZE = 1024


@dataclass(frozen=True)
class PersonWeight:
    """Integer weight of a person: ``scale`` over the number of items answered, rounded.

    With equal difficulties this weight makes the pairwise score equal to the score of
    conditional maximum likelihood, so that long and short answer records count as they
    should. The grid of 27,720 (the least common multiple of 1 to 12) is exact for short
    records; the rounding for longer ones is below 2% up to 1000 answers, and any fixed
    weight gives a consistent estimate, so it only costs a tiny part of the efficiency.
    """

    scale: int = 27_720

    def __call__(self, answered: Int64Array, right: Int64Array) -> Int64Array:  # noqa: ARG002
        """Return one weight per person; the number of right answers is not used."""
        safe = np.maximum(answered, 1)
        weight: Int64Array = np.maximum((2 * self.scale + safe) // (2 * safe), 1)
        return weight


@dataclass(frozen=True)
class Tally:
    """What to keep of persons beside their pairs: a sketch of their ids and, if wanted, folds.

    Attributes
    ----------
    folds
        How many folds; 0 for the sketch alone.
    weighting
        Integer weight of a person in the folds: by default the one of the method "refined".
    """

    folds: int = 0
    weighting: Callable[[Int64Array, Int64Array], Int64Array] | None = PersonWeight()

    def __post_init__(self) -> None:
        if self.folds and not FEWEST_FOLDS <= self.folds <= MOST_FOLDS:
            raise BadUsage(
                f"the number of folds must be from {FEWEST_FOLDS} to {MOST_FOLDS} (or 0 for none), "
                f"found {self.folds!r}; with few folds standard errors say next to nothing. Use 32"
            )


def name_weighting(weighting: object | None) -> str:
    """Return a name for a weighting that is the same in every process.

    Functions are known by their names only, objects also by what they hold.
    """
    if weighting is None:
        return UNWEIGHTED
    if is_dataclass(weighting):
        return repr(weighting)
    definition = weighting if hasattr(weighting, "__qualname__") else type(weighting)
    held = "" if definition is weighting else f"({getattr(weighting, '__dict__', {})!r})"
    return f"{definition.__module__}.{definition.__qualname__}{held}"


def afford_folds(requested: int, items: int) -> int:
    """Return how many folds fit into memory: all, a half, a quarter and so on, or none.

    Examples
    --------
    >>> [afford_folds(32, items) for items in (200, 2000, 2500, 4000, 5000)]
    [32, 32, 16, 8, 0]
    """
    number = requested
    while 8 * number * items**2 > FOLD_BYTES:
        if number % 2 or number // 2 < FEWEST_FOLDS:
            return 0
        number //= 2
    return number


def explain_folds(requested: int, number: int, steps: Sequence[int]) -> str:
    """Say what became of folds that do not fit into memory; ``steps`` are those of the items."""
    nodes = sum(steps)
    subject = f"{nodes:,} {'items' if nodes == len(steps) else 'steps of items'}"
    size = f"{requested} folds of {subject} would take {8 * requested * nodes**2 / 1e9:,.1f} GB"
    if number:
        return f"{size}: {number} folds were kept, and standard errors are less sure"
    return f"{size}: no folds were kept, so that these counts alone give no standard errors"


@dataclass(frozen=True, eq=False)
class FoldCounts:
    """Pair counts of persons in folds.

    Attributes
    ----------
    asked
        How many folds were asked for; persons are dealt by it.
    right_wrong
        ``int64[fold, item, item]``, weighted. There are ``asked`` folds or, where these did not
        fit into memory, a half, a quarter and so on: fold f then holds f, f + number and so on.
    answers
        ``int64[fold, item]``: how many persons of a fold answered an item; not weighted.
    persons
        ``int64[fold]``: how many persons are in it.
    weighting
        The name of the weighting.
    """

    asked: int
    right_wrong: Int64Array
    answers: Int64Array
    persons: Int64Array
    weighting: str

    def __post_init__(self) -> None:
        for array in self.arrays:
            array.setflags(write=False)

    @property
    def number(self) -> int:
        """How many folds there are."""
        return len(self.persons)

    def recode(self, recoding: Recoding) -> FoldCounts:
        """Return the folds without categories that nobody used; an answer counts once a step."""
        right, wrong, steps = recoding.right, recoding.wrong, recoding.new_steps
        item = item_of_nodes(steps)
        moved = np.where(item[:, None] == item, 0, self.right_wrong[:, right][:, :, wrong])
        # Whether a step was answered is only asked of many folds; its neighbours tell as well.
        answers = np.maximum(self.answers[:, right], self.answers[:, wrong])
        return replace(self, right_wrong=moved, answers=answers)

    def __add__(self, other: FoldCounts) -> FoldCounts:
        if self.asked != other.asked or self.weighting != other.weighting:
            raise BadResponses(
                f"these counts have different folds ({self.asked}, weighted by {self.weighting}, "
                f"and {other.asked}, by {other.weighting}), so that a person would be in one fold "
                "here and in another there. Count both with the same number of folds and weighting"
            )
        number = min(self.number, other.number)
        ours, theirs = (counts.join(number).arrays for counts in (self, other))
        pairs, answers, persons = (a + b for a, b in zip(ours, theirs, strict=True))
        return FoldCounts(self.asked, pairs, answers, persons, self.weighting)

    @property
    def arrays(self) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Pairs, answers and persons of every fold."""
        return self.right_wrong, self.answers, self.persons

    def join(self, number: int) -> FoldCounts:
        """Put folds together, so that ``number`` are left: a part of those that there are."""
        if number == self.number:
            return self
        parts = (a.reshape(self.number // number, number, *a.shape[1:]) for a in self.arrays)
        pairs, answers, persons = (part.sum(axis=0) for part in parts)
        return FoldCounts(self.asked, pairs, answers, persons, self.weighting)

    def select(self, old: IndexArray) -> FoldCounts | None:
        """Return the counts of other items; ``old[k]`` is where item k was, or -1 for a new one.

        None where the folds of so many items do not fit into memory.
        """
        m, old_items = len(old), np.flatnonzero(old >= 0)
        number = afford_folds(self.asked, m)
        if not number:
            return None
        ours = self.join(min(number, self.number))
        right_wrong = np.zeros((ours.number, m, m), dtype=np.int64)
        positions = old[old_items]
        for fold, matrix in enumerate(ours.right_wrong):
            right_wrong[fold][np.ix_(old_items, old_items)] = matrix[np.ix_(positions, positions)]
        answers = np.zeros((ours.number, m), dtype=np.int64)
        answers[:, old_items] = ours.answers[:, positions]
        return replace(ours, right_wrong=right_wrong, answers=answers)

    def is_plausible(self, items: int, persons: int) -> bool:
        """Say whether answers can have given these numbers."""
        shapes = ((self.number, items, items), (self.number, items), (self.number,))
        return (
            self.number > 0
            and self.asked % self.number == 0
            and all(a.dtype == np.int64 and a.min(initial=0) >= 0 for a in self.arrays)
            and tuple(a.shape for a in self.arrays) == shapes
            and int(self.persons.sum()) == persons
        )


# -- hashes of ids -----------------------------------------------------------------------------


def hash_persons(ids: Any) -> UInt64Array:
    """Return ``[person, 2]``: the halves of the MD5 of each id's text, the first deals persons.

    Examples
    --------
    >>> [hex(half) for half in hash_persons(np.array(["ann"], dtype=object))[0].tolist()]
    ['0x7e0d7f8a5d96c24f', '0xfcc840f31bce72b2']
    """
    texts = map(str, ids.to_pylist() if hasattr(ids, "to_pylist") else ids.tolist())
    digests = b"".join([md5(text.encode(), usedforsecurity=False).digest() for text in texts])
    return np.frombuffer(digests, dtype=">u8").astype(np.uint64).reshape(-1, 2)


def deal_persons(hashes: UInt64Array, folds: int) -> IndexArray:
    """Return everybody's fold: the first four digits of the hash, modulo the number of folds."""
    return ((hashes[:, 0] >> np.uint64(48)) % np.uint64(folds)).astype(np.intp)


def sketch_persons(hashes: UInt64Array) -> UInt64Array:
    """Return the smallest second halves of the hashes: a sample of ids that is always the same."""
    return join_sketches([hashes[:, 1]])


def join_sketches(parts: Iterable[UInt64Array]) -> UInt64Array:
    """Return the sketch of the persons of all parts."""
    return np.unique(np.concatenate([np.zeros(0, np.uint64), *parts]))[:SKETCH_SIZE]


def count_common(ours: UInt64Array, theirs: UInt64Array, persons: int, others: int) -> int:
    """Return about how many persons are in both of two counts, from their sketches.

    The smallest hashes of the union are a random sample of it, so the share of them that is in
    both sketches estimates the share of persons that is in both.
    """
    union = join_sketches([ours, theirs])
    common = np.isin(union, ours, assume_unique=True) & np.isin(union, theirs, assume_unique=True)
    share = common.mean() if len(union) else 0.0
    return round(float(share * (persons + others) / (1 + share)))


class FoldSums:
    """What is kept of the persons so far.

    Parameters
    ----------
    tally
        What is to be kept.
    start
        Counts to go on from.
    """

    def __init__(self, tally: Tally, start: PairCounts | None = None) -> None:
        self._tally = tally
        self.sketch: UInt64Array | None = np.zeros(0, np.uint64)
        self.folds: FoldCounts | None = None
        if start is not None:
            self.sketch, self.folds = start.sketch, start.folds
        elif tally.folds:
            number, name = tally.folds, name_weighting(tally.weighting)
            pairs, answers, persons = (np.zeros((number, *[0] * k), np.int64) for k in (2, 1, 0))
            self.folds = FoldCounts(number, pairs, answers, persons, name)

    def add(self, store: AnswerStore, ids: Any, before: int) -> None:
        """Add some persons: ``ids`` are theirs, or None where only their numbers are known."""
        hashes = hash_persons(np.arange(before, before + store.n_persons) if ids is None else ids)
        if ids is None or self.sketch is None:
            # A number is no id: tomorrow's first person is another one.
            self.sketch = None
        else:
            self.sketch = join_sketches([self.sketch, sketch_persons(hashes)])
        self._grow(store.nodes.n_items)
        if self.folds is not None:
            self.folds = self.folds + count_folds(store, hashes, self._tally, self.folds.number)

    def _grow(self, items: int) -> None:
        if self.folds is not None and items > (n_items := self.folds.answers.shape[1]):
            old = np.arange(items)
            old[n_items:] = -1
            self.folds = self.folds.select(old)

    def finish(self, items: int) -> PlainDict:
        """Return what was kept, for the counts of so many items."""
        self._grow(items)
        return {"folds": self.folds, "sketch": self.sketch}


def count_folds(store: AnswerStore, hashes: UInt64Array, tally: Tally, number: int) -> FoldCounts:
    """Count the pairs of every fold, of which there are ``number``."""
    m = store.nodes.n_items
    right_wrong = np.zeros((number, m, m), dtype=np.int64)
    answers, persons = np.zeros((number, m), dtype=np.int64), np.zeros(number, dtype=np.int64)
    fold_of = deal_persons(hashes, tally.folds) % number
    for fold in np.unique(fold_of).tolist():
        part = store.pick(np.flatnonzero(fold_of == fold))
        right_wrong[fold] += count_store(part, tally.weighting)
        answers[fold] += part.nodes.item_totals()[0]
        persons[fold] += part.n_persons
    return FoldCounts(tally.folds, right_wrong, answers, persons, name_weighting(tally.weighting))
