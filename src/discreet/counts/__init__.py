"""Pair counts: how often one item was answered right where another was answered wrong.

In: numbers from an engine or a file. Out: :class:`PairCounts`, an immutable value that adds up over
batches of whole persons, in memory and in files. Confidential: a count is about the persons behind
it, so it never crosses the wall without noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from discreet.counts import matrix as form
from discreet.counts.matrix import (
    PairMatrix,
    add_matrices,
    is_sparse,
    move_cells,
    prefers_sparse,
    read_archive,
    settle_matrix,
    write_archive,
)
from discreet.errors import BadResponses, BadUsage
from discreet.markup import brief_repr
from discreet.types import Int64Array

__all__ = [
    "ComparisonCounts",
    "PairCounts",
    "is_sparse",
    "merge_counts",
    "name_weighting",
    "prefers_sparse",
]

UNWEIGHTED = "none"
UNKNOWN = "unknown"


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Everything that the spectral method needs to know about the answers.

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
    weighting
        How persons were weighted: "none", the name of a weighting, or "unknown" (files written
        before this was recorded).
    note
        Facts about a file of counts that are not counts, such as how far a checkpoint came.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.answers.opening import count_pairs
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
    note: Mapping[str, Any] = field(default_factory=dict, repr=False)

    __repr__ = brief_repr

    def __post_init__(self) -> None:
        m = len(self.items)
        if self.right_wrong.shape != (m, m) or self.answers.shape != (m,):
            raise BadUsage(
                f"pair counts for {m} items must be a {m} x {m} matrix, "
                f"found shape {self.right_wrong.shape}"
            )
        object.__setattr__(self, "right_wrong", settle_matrix(self.right_wrong))
        for array in (_values(self.right_wrong), self.answers, self.right):
            array.setflags(write=False)

    @property
    def is_sparse(self) -> bool:
        """Whether ``right_wrong`` is a sparse array."""
        return is_sparse(self.right_wrong)

    def __add__(self, other: PairCounts) -> PairCounts:
        if self.items != other.items:
            raise BadResponses(_explain_items(self.items, other.items))
        right_wrong = add_matrices(self.right_wrong, other.right_wrong)
        if (_values(right_wrong) < 0).any():
            raise BadResponses(
                "the sum of these counts does not fit into 64-bit integers; weights this large "
                "cannot be added exactly. Use smaller weights."
            )
        return PairCounts(
            items=self.items,
            right_wrong=right_wrong,
            answers=self.answers + other.answers,
            right=self.right + other.right,
            persons=self.persons + other.persons,
            weighting=_same_weighting(self.weighting, other.weighting),
        )

    def dense(self, purpose: str) -> Int64Array:
        """Return ``right_wrong`` as an array, for what cannot do without one.

        Raises
        ------
        BadUsage
            If that would take more than 3.2 GB (20,000 items); ``purpose`` says what needs it.
        """
        if not self.is_sparse:
            return np.asarray(self.right_wrong)
        m = len(self.items)
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
        place = {name: number for number, name in enumerate(self.items)}
        listed = set(names)
        if len(listed) < len(names):
            raise BadUsage("an item stands twice in the list of items; names must differ")
        lost = [name for name in self.items if name not in listed and self.answers[place[name]]]
        if lost:
            raise BadUsage(
                f"{len(lost)} items that persons answered are not in the list, for example "
                f"{lost[0]!r}. Add them, or count again without their answers."
            )
        old = np.array([place.get(name, -1) for name in names], dtype=np.int64)
        known = old >= 0
        answers, right = np.zeros((2, len(names)), dtype=np.int64)
        answers[known], right[known] = self.answers[old[known]], self.right[old[known]]
        moved = move_cells(self.right_wrong, old)
        return PairCounts(names, moved, answers, right, self.persons, self.weighting)

    def save(self, path: str | PathLike[str], *, note: Mapping[str, Any] | None = None) -> None:
        """Write the counts to one file. The file is confidential, and says so.

        It appears whole or not at all, replaces what is there, and only its owner may read it.
        """
        header = {
            "items": self.items,
            "persons": self.persons,
            "weighting": self.weighting,
            "note": dict(self.note if note is None else note),
        }
        totals = {"answers": self.answers, "right": self.right}
        write_archive(Path(path), header, self.right_wrong, totals)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> PairCounts:
        """Read counts that :meth:`save` wrote, and check that they can be counts."""
        header, arrays = read_archive(Path(path))
        counts = cls(
            items=tuple(header["items"]),
            persons=int(header["persons"]),
            weighting=str(header.get("weighting", UNKNOWN)),
            note=header.get("note", {}),
            **arrays,
        )
        _check_plausible(counts, str(path))
        return counts


def merge_counts(parts: Iterable[PairCounts]) -> PairCounts:
    """Add counts of different persons; items may come in another order or be missing.

    The result has every item of every part, in order of first appearance. That the parts are
    about different persons cannot be seen from counts: the caller answers for it. Counts that
    were weighted in different ways are refused.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.answers.opening import count_pairs
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


def name_weighting(weighting: object | None) -> str:
    """Return a name for a weighting that is the same in every process.

    Functions are known by their names only, objects also by what they hold.
    """
    if weighting is None:
        return UNWEIGHTED
    if is_dataclass(weighting):
        return repr(weighting)
    named = weighting if hasattr(weighting, "__qualname__") else type(weighting)
    held = "" if named is weighting else f"({getattr(weighting, '__dict__', {})!r})"
    return f"{named.__module__}.{named.__qualname__}{held}"


def _same_weighting(ours: str, theirs: str) -> str:
    if UNKNOWN in (ours, theirs):
        return UNKNOWN
    if ours != theirs:
        raise BadResponses(
            f"these counts were weighted differently ({ours} and {theirs}), so their sum would "
            "count some persons more than others. Count both with the same weighting."
        )
    return ours


def _values(matrix: PairMatrix) -> Int64Array:
    """Return the stored numbers of a matrix of counts."""
    return np.asarray(matrix.data if is_sparse(matrix) else matrix)


def _explain_items(ours: tuple[str, ...], theirs: tuple[str, ...]) -> str:
    if set(ours) == set(theirs):
        found = "the same items in another order"
    else:
        mine, yours = set(ours), set(theirs)
        only = [name for name in ours if name not in yours]
        other = [name for name in theirs if name not in mine]
        example = f"{only[0]!r} only in the first" if only else f"{other[0]!r} only in the second"
        found = f"different items ({len(ours)} and {len(theirs)}; for example {example})"
    return (
        f"these counts are about {found}, so adding them would mix items up. Bring both to one "
        "item list with select(items), add them with merge_counts (discreet merge), or count "
        "both with the same item list"
    )


def _check_plausible(counts: PairCounts, path: str) -> None:
    """Refuse arrays that no answers can have given."""
    arrays = (_values(counts.right_wrong), counts.answers, counts.right)
    wrong_type = any(array.dtype != np.int64 for array in arrays)
    if (
        wrong_type
        or counts.right.shape != counts.answers.shape
        or len(set(counts.items)) < len(counts.items)
        or any((array < 0).any() for array in arrays)
        or counts.right_wrong.diagonal().any()
        or (counts.right > counts.answers).any()
        or (counts.answers > counts.persons).any()
    ):
        raise BadUsage(
            f"{path} holds numbers that cannot be pair counts (negative, not whole, on the "
            "diagonal, or more answers than persons): it was damaged or changed. Count again."
        )


@dataclass(frozen=True, eq=False)
class ComparisonCounts:
    """How often one object was preferred to another: all that both estimators need to know.

    An object that is hard to beat is like an item that is hard to answer: where i loses to j, i is
    the item that is right and j the one that is wrong. So ``right_wrong[i, j]`` is "i lost to j",
    and the difficulty that the estimators find is the strength. A type of its own, and not
    :class:`discreet.PairCounts`: there the pairs of one person belong together through the
    person's ability, and standard errors are made for that.

    Attributes
    ----------
    items
        Names of the objects, in the order of rows and columns.
    wins
        ``wins[i, j]``: comparisons (or the sum of their judges' integer weights) in which i beat
        j. The diagonal is zero.
    compared, won
        Per object, in how many comparisons it was and how many it won; never weighted.
    judges
        How many judges were counted.
    """

    items: tuple[str, ...]
    wins: Int64Array
    compared: Int64Array
    won: Int64Array
    judges: int

    __repr__ = brief_repr

    def __post_init__(self) -> None:
        m = len(self.items)
        if self.wins.shape != (m, m) or self.compared.shape != (m,) or self.won.shape != (m,):
            raise BadUsage(
                f"wins among {m} objects must be a {m} x {m} matrix, found {self.wins.shape}"
            )
        for array in (self.wins, self.compared, self.won):
            array.setflags(write=False)

    def __add__(self, other: ComparisonCounts) -> ComparisonCounts:
        if self.items != other.items:
            raise BadResponses(
                "these counts are about different objects, or the same in another order; bring "
                "both to one list with Comparisons.select before counting"
            )
        return ComparisonCounts(
            self.items,
            self.wins + other.wins,
            self.compared + other.compared,
            self.won + other.won,
            self.judges + other.judges,
        )

    # The names under which the chain, the estimators and the mechanisms look for the same.

    @property
    def right_wrong(self) -> Int64Array:
        """Losses: ``right_wrong[i, j]`` is how often i lost to j."""
        return self.wins.T

    @property
    def answers(self) -> Int64Array:
        """How often each object was compared."""
        return self.compared

    @property
    def right(self) -> Int64Array:
        """How often each object lost."""
        return self.compared - self.won

    @property
    def persons(self) -> int:
        """How many judges."""
        return self.judges
