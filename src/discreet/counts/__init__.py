"""Pair counts: how often one item was answered right where another was answered wrong.

In: numbers from an engine or a file. Out: :class:`PairCounts`, an immutable value that adds up over
batches of whole persons, in memory and in files. Confidential: a count is about the persons behind
it, so it never crosses the wall without noise.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from os import PathLike
from pathlib import Path

import numpy as np

from discreet.checking import checked
from discreet.choices import PlainDict, PlainMapping
from discreet.counts import matrix as form
from discreet.counts.folds import (
    UNWEIGHTED,
    FoldCounts,
    count_common,
    explain_folds,
    join_sketches,
    name_weighting,
)
from discreet.counts.matrix import ComparisonCounts, PairMatrix, Recoding, is_sparse, prefers_sparse
from discreet.errors import BadResponses, BadUsage
from discreet.names import name_id, restore_ids, settle_names
from discreet.saving import write_value
from discreet.tabular import brief_repr
from discreet.types import Int64Array, UInt64Array

__all__ = [
    "ComparisonCounts", "FoldCounts", "PairCounts", "holds_counts", "is_sparse", "merge_counts",
    "name_weighting", "prefers_sparse",
]  # fmt: skip

#: What is said where counts share persons.
COUNTED_TWICE = (
    "some persons are in more than one of the counts that are added (`repeated` says about how "
    "many). Where these are other answers of the same persons, all that is lost is the pairs "
    "between; where they are the same answers, they count twice"
)


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Counts of pairs of items: how many persons had one right and the other wrong.

    Attributes
    ----------
    items
        Item names, in the order of rows and columns.
    right_wrong
        ``right_wrong[i, j]``: persons (or the sum of their integer weights) with item ``i``
        right and item ``j`` wrong. The diagonal is zero. An array ``int64[m, m]``; with more
        than 2000 items of which few pairs were compared, a ``scipy.sparse.csr_array`` of int64
        (:func:`discreet.counts.prefers_sparse` is the rule; it is the same for every engine).
    answers, right
        Per item, how many persons answered it and how many had it right; never weighted.
    persons
        How many persons were counted.
    steps
        Per item, its highest category. Rows and columns are then nodes, the steps of items, item
        after item: ``right_wrong[a, b]`` counts persons who are exactly at step a of one item
        and exactly below step b of another. One step each, for right and wrong, by default.
    weighting
        How persons were weighted: "none", or the name of a weighting.
    note
        Facts about a file of counts that are not counts, such as how far a checkpoint came.
    folds
        The same pairs for each fold of persons, weighted as the method "refined" weights them,
        or None: what standard errors are found from.
    sketch
        Hashes of some ids, by which counts with the same persons are recognised; None where
        persons have no ids or nobody asked.
    repeated
        About how many persons were in more than one of the counts that were added.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.api.counting import count_pairs
    >>> from discreet.answers.responses import Responses
    >>> monday = count_pairs(Responses.from_array(np.array([[1, 0], [1, 1]])))
    >>> tuesday = count_pairs(Responses.from_array(np.array([[1, 0]])))
    >>> (monday + tuesday).right_wrong[0, 1], (monday + tuesday).persons
    (np.int64(2), 3)
    """

    items: tuple[str, ...]
    right_wrong: PairMatrix
    answers: Int64Array
    right: Int64Array
    persons: int
    weighting: str = UNWEIGHTED
    note: PlainMapping = field(default_factory=dict, repr=False)
    folds: FoldCounts | None = field(default=None, repr=False)
    sketch: UInt64Array | None = field(default=None, repr=False)
    repeated: int = 0
    steps: tuple[int, ...] = ()

    __repr__ = brief_repr

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", settle_names(self.items))
        object.__setattr__(self, "steps", self.steps or (1,) * len(self.items))
        m = sum(self.steps)
        if self.right_wrong.shape != (m, m) or self.answers.shape != (m,):
            raise BadUsage(
                f"pair counts for {m} {'items' if self.is_binary else 'steps of items'} must be a "
                f"{m} x {m} matrix, found shape {self.right_wrong.shape}"
            )
        object.__setattr__(self, "right_wrong", form.settle_matrix(self.right_wrong))
        for array in (_values(self.right_wrong), self.answers, self.right):
            array.setflags(write=False)

    def __eq__(self, other: object) -> bool:
        """Say whether the same persons, items and pairs were counted."""
        if not isinstance(other, PairCounts):
            return NotImplemented
        names = [part.name for part in fields(self) if part.name != "right_wrong"]
        mine, theirs = (
            [write_value(getattr(one, name)) for name in names] for one in (self, other)
        )
        return mine == theirs and form.is_same_matrix(self.right_wrong, other.right_wrong)

    __hash__ = None  # type: ignore[assignment]  # equal by content, and content is large

    @property
    def is_binary(self) -> bool:
        """Whether every item has one step, for right and wrong."""
        return all(step == 1 for step in self.steps)

    def as_nodes(self) -> PairCounts:
        """Return the same counts with every step as an item of its own."""
        names = form.name_nodes(self.items, self.steps)
        return self if self.is_binary else replace(self, items=names, steps=())

    @property
    def categories(self) -> Int64Array:
        """Persons in each category, ``[item, category]``; zero beyond an item's steps."""
        first = np.cumsum(self.steps) - self.steps
        item, steps = form.item_of_nodes(self.steps), np.array(self.steps)
        totals = np.zeros((len(steps), int(steps.max(initial=1)) + 1), dtype=np.int64)
        totals[item, np.arange(len(item)) - first[item] + 1] = self.right
        totals[:, 0] = (self.answers - self.right)[first]
        return totals

    def recode(self, recoding: Recoding) -> PairCounts:
        """Return the counts without categories that nobody used."""
        if not recoding.changes:
            return self
        right, wrong, steps = recoding.right, recoding.wrong, recoding.new_steps
        reached = self.right[right]
        return replace(
            self,
            right_wrong=form.clear_within(self.right_wrong[right][:, wrong], steps),
            right=reached,
            answers=reached + (self.answers - self.right)[wrong],
            folds=self.folds and self.folds.recode(recoding),
            steps=steps,
        )

    @property
    def is_sparse(self) -> bool:
        """Whether ``right_wrong`` is a sparse array."""
        return is_sparse(self.right_wrong)

    def __add__(self, other: PairCounts) -> PairCounts:
        if not isinstance(other, PairCounts):
            return NotImplemented
        if self.items != other.items:
            items = tuple(dict.fromkeys((*self.items, *other.items)))
            return self.select(items) + other.select(items)
        form.check_same_steps(self.items, self.steps, other.steps)
        right_wrong = form.add_matrices(self.right_wrong, other.right_wrong)
        if (_values(right_wrong) < 0).any():
            raise BadResponses(
                "the sum of these counts does not fit into 64-bit integers; weights this large "
                "cannot be added exactly. Use smaller weights."
            )
        return replace(
            self,
            right_wrong=right_wrong,
            answers=self.answers + other.answers,
            right=self.right + other.right,
            persons=self.persons + other.persons,
            weighting=_same_weighting(self.weighting, other.weighting),
            note={},
            **_add_persons(self, other),
        )

    def __radd__(self, other: object) -> PairCounts:
        # sum() begins with 0.
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def check_room(self) -> None:
        """Refuse counts for whose use, such as a fit, there is not enough memory."""
        if len(self.answers) > form.SPARSE_ITEMS:
            values = _values(self.right_wrong)
            form.check_room(self.steps, int(np.count_nonzero(values)), values.nbytes)

    def dense(self, purpose: str) -> Int64Array:
        """Return ``right_wrong`` as an array, for what cannot do without one.

        Raises
        ------
        BadUsage
            If that would take more than 3.2 GB (20,000 items); ``purpose`` says what needs it.
        """
        if not self.is_sparse:
            return np.asarray(self.right_wrong)
        m = self.right_wrong.shape[0]
        if m > form.LARGE_ITEMS:
            raise BadUsage(
                f"{purpose} needs a number for each of the {m:,} x {m:,} pairs of items, "
                f"{8 * m * m / 1e9:,.0f} GB in memory, found sparse counts with "
                f"{self.right_wrong.nnz:,} pairs; the limit is {form.LARGE_ITEMS:,} items. "
                "Take fewer items."
            )
        return np.asarray(self.right_wrong.toarray())

    def divide(self, weight: int) -> PairCounts:
        """Return the counts of persons who all had this weight, each counted once."""
        if weight == 1:
            return self
        right_wrong = self.right_wrong.copy()
        _values(right_wrong)[...] //= weight
        return replace(self, right_wrong=right_wrong, weighting=UNWEIGHTED)

    def select(self, items: Iterable[str]) -> PairCounts:
        """Return the counts in another order of items; new ones nobody answered.

        Leaving out an item that somebody answered is refused, because the counts would no
        longer be about whole persons.
        """
        names = tuple(items)
        if names == self.items:
            return self
        position = {name: number for number, name in enumerate(self.items)}
        listed = set(names)
        if len(listed) < len(names):
            raise BadUsage("an item stands twice in the list of items; names must differ")
        answered = set(form.item_of_nodes(self.steps)[self.answers > 0].tolist())
        lost = [name for name in self.items if name not in listed and position[name] in answered]
        if lost:
            raise BadUsage(
                f"{len(lost)} items that persons answered are not in the list, for example "
                f"{lost[0]!r}. Add them, or count again without their answers."
            )
        columns = np.array([position.get(name, -1) for name in names], dtype=np.int64)
        old, steps = form.nodes_of(columns, self.steps)
        answers, right = (np.append(values, 0)[old] for values in (self.answers, self.right))
        return replace(
            self,
            items=names,
            right_wrong=form.move_cells(self.right_wrong, old),
            answers=answers,
            right=right,
            note={},
            folds=_select_folds(self.folds, old, steps),
            steps=steps,
        )

    def save(self, path: str | PathLike[str], *, note: PlainMapping | None = None) -> None:
        """Write the counts to one file. The file is confidential, and says so.

        It appears whole or not at all, replaces what is there, and only its owner may read it.
        """
        header = {
            "items": restore_ids(list(self.items)),
            "persons": self.persons,
            "weighting": self.weighting,
            "note": dict(self.note if note is None else note),
            "repeated": self.repeated,
            **({} if self.is_binary else {"steps": self.steps}),
        }
        arrays: PlainDict = {"answers": self.answers, "right": self.right}
        if self.sketch is not None:
            arrays["sketch"] = self.sketch
        if self.folds is not None:
            header["folds"] = {"asked": self.folds.asked, "weighting": self.folds.weighting}
            arrays |= {f"fold_{name}": getattr(self.folds, name) for name in FOLD_PARTS}
        from discreet.counts.archive import write_archive

        write_archive(Path(path), header, self.right_wrong, arrays)

    @classmethod
    @checked
    def load(cls, path: str | PathLike[str]) -> PairCounts:
        """Read counts that :meth:`save` wrote, and check that they can be counts."""
        from discreet.counts.archive import read_archive

        header, arrays = read_archive(Path(path))
        kept_parts = ("persons", "weighting", "note", "repeated", "steps")
        about: PlainDict = {name: getattr(header, name) for name in kept_parts}
        folds = None
        if header.folds is not None:
            parts = {name: arrays.pop(f"fold_{name}").astype(np.int64) for name in FOLD_PARTS}
            folds = FoldCounts(header.folds.asked, weighting=header.folds.weighting, **parts)
        counts = cls(items=tuple(map(name_id, header.items)), folds=folds, **about | arrays)
        _check_plausible(counts, str(path))
        return counts


def merge_counts(parts: Iterable[PairCounts]) -> PairCounts:
    """Add counts of different persons; items may come in another order or be missing.

    Does what ``sum(parts)`` does, faster where parts have different items. The result has every
    item of every part, in order of first appearance. Where both know their persons (counts with
    folds, and files of ``discreet table counts``) persons in common are noticed and said. Counts
    with different folds, or that were weighted in different ways, are refused.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.api.counting import count_pairs
    >>> from discreet.answers.responses import Responses
    >>> first = count_pairs(Responses.from_array(np.array([[1, 0]]), items=["a", "b"]))
    >>> second = count_pairs(Responses.from_array(np.array([[1, 0]]), items=["b", "c"]))
    >>> merge_counts([first, second]).items
    ('a', 'b', 'c')
    """
    listed = list(parts)
    if not listed:
        raise BadUsage("there are no counts to merge; give at least one file")
    items = tuple(dict.fromkeys(name for part in listed for name in part.items))
    total = listed[0].select(items)
    for part in listed[1:]:
        total = total + part.select(items)
    return total


def holds_counts(path: object) -> bool:
    """Say whether something is the path of a file of pair counts."""
    if not isinstance(path, str | PathLike):
        return False
    from discreet.counts.archive import is_archive

    return is_archive(Path(path))


def _add_persons(ours: PairCounts, theirs: PairCounts) -> PlainDict:
    """Add what two counts keep of their persons; a part that one of them lacks is lost."""
    folds = ours.folds and theirs.folds and ours.folds + theirs.folds
    sketch, common = None, 0
    if ours.sketch is not None and theirs.sketch is not None:
        sketch = join_sketches([ours.sketch, theirs.sketch])
        distinct = (ours.persons - ours.repeated, theirs.persons - theirs.repeated)
        common = count_common(ours.sketch, theirs.sketch, *distinct)
    if common:
        warnings.warn(COUNTED_TWICE, stacklevel=4)
    repeated = ours.repeated + theirs.repeated + common
    return {"folds": folds, "sketch": sketch, "repeated": repeated}


def _select_folds(
    folds: FoldCounts | None, old: Int64Array, steps: tuple[int, ...]
) -> FoldCounts | None:
    if folds is None:
        return None
    selected = folds.select(old)
    number = 0 if selected is None else selected.number
    if number != folds.number:
        warnings.warn(explain_folds(folds.asked, number, steps), stacklevel=4)
    return selected


FOLD_PARTS = ("right_wrong", "answers", "persons")


def _same_weighting(ours: str, theirs: str) -> str:
    if ours != theirs:
        raise BadResponses(
            f"these counts were weighted differently ({ours} and {theirs}), so their sum would "
            "count some persons more than others. Count both with the same weighting."
        )
    return ours


def _values(matrix: PairMatrix) -> Int64Array:
    """Return the stored numbers of a matrix of counts."""
    return np.asarray(matrix.data if is_sparse(matrix) else matrix)


def _check_plausible(counts: PairCounts, path: str) -> None:
    """Refuse arrays that no answers can have given."""
    arrays = (_values(counts.right_wrong), counts.answers, counts.right)
    folds, m = counts.folds, len(counts.right)
    if (
        any(array.dtype != np.int64 or (array < 0).any() for array in arrays)
        or counts.right.shape != counts.answers.shape
        or len(set(counts.items)) < len(counts.items)
        or counts.right_wrong.diagonal().any()
        or (counts.right > counts.answers).any()
        or (counts.answers > counts.persons).any()
        or (folds is not None and not folds.is_plausible(m, counts.persons))
    ):
        raise BadUsage(
            f"{path} holds numbers that cannot be pair counts (negative, not whole, on the "
            "diagonal, or more answers than persons): it was damaged or changed. Count again."
        )
