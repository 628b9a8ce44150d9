"""Pair counts: how often one item was answered right where another was answered wrong.

In: numbers from an engine. Out: an immutable value that adds up over batches of whole
persons. Confidential: a count is about the persons behind it, so it never crosses the wall
without noise.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import BadResponses, BadUsage

__all__ = ["PairCounts", "merge_counts"]

Int64Array = npt.NDArray[np.int64]

FORMAT = "discreet-pair-counts"
FORMAT_VERSION = 1


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Everything that the spectral method needs to know about the answers.

    Attributes
    ----------
    items
        Item names, in the order of rows and columns.
    right_wrong
        ``right_wrong[i, j]``: persons (or the sum of their integer weights) with item ``i``
        right and item ``j`` wrong. The diagonal is zero.
    answers, right
        Per item, how many persons answered it and how many had it right; never weighted.
    persons
        How many persons were counted.
    note
        Facts about a file of counts that are not counts, such as how far a checkpoint came.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.engines import count_pairs
    >>> from discreet.responses import Responses
    >>> monday = count_pairs(Responses.from_array(np.array([[1, 0], [1, 1]])))
    >>> tuesday = count_pairs(Responses.from_array(np.array([[1, 0]])))
    >>> (monday + tuesday).right_wrong[0, 1], (monday + tuesday).persons
    (np.int64(2), 3)
    """

    items: tuple[str, ...]
    right_wrong: Int64Array
    answers: Int64Array
    right: Int64Array
    persons: int
    note: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        m = len(self.items)
        if self.right_wrong.shape != (m, m) or self.answers.shape != (m,):
            raise BadUsage(
                f"pair counts for {m} items must be a {m} x {m} matrix, "
                f"found shape {self.right_wrong.shape}"
            )
        for array in (self.right_wrong, self.answers, self.right):
            array.setflags(write=False)

    def __add__(self, other: PairCounts) -> PairCounts:
        if self.items != other.items:
            raise BadResponses(_explain_items(self.items, other.items))
        right_wrong = self.right_wrong + other.right_wrong
        if (right_wrong < 0).any():
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
        )

    def select(self, items: Iterable[str]) -> PairCounts:
        """Return the counts in another order of items; new ones nobody answered.

        Leaving out an item that somebody answered is refused, because the counts would no
        longer be about whole persons.
        """
        names = tuple(items)
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
        right_wrong = np.zeros((len(names), len(names)), dtype=np.int64)
        answers, right = np.zeros((2, len(names)), dtype=np.int64)
        right_wrong[np.ix_(known, known)] = self.right_wrong[np.ix_(old[known], old[known])]
        answers[known], right[known] = self.answers[old[known]], self.right[old[known]]
        return PairCounts(names, right_wrong, answers, right, self.persons)

    def save(self, path: str | PathLike[str], *, note: Mapping[str, Any] | None = None) -> None:
        """Write the counts to one file. The file is confidential, and says so.

        It appears whole or not at all, replaces what is there, and only its owner may read it.
        """
        header = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "confidential": "exact counts about persons; do not publish",
            "items": self.items,
            "persons": self.persons,
            "note": dict(self.note if note is None else note),
        }
        file = io.BytesIO()
        np.savez_compressed(
            file,
            header=np.array(json.dumps(header)),
            right_wrong=self.right_wrong,
            answers=self.answers,
            right=self.right,
        )
        _replace_file(Path(path), file.getbuffer())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> PairCounts:
        """Read counts that :meth:`save` wrote, and check that they can be counts."""
        if not Path(path).exists():
            raise BadUsage(f"There is no file '{path}'. Check the path and the folder you are in.")
        try:
            with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as file:
                header = json.loads(str(file["header"]))
                arrays = {name: file[name] for name in ("right_wrong", "answers", "right")}
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise BadUsage(f"{path} cannot be read as a file of pair counts: {error}") from error
        if header.get("format") != FORMAT or header.get("version") != FORMAT_VERSION:
            raise BadUsage(
                f"{path} is not a file of pair counts in version {FORMAT_VERSION}; "
                "write it again with this version of discreet"
            )
        counts = cls(
            items=tuple(header["items"]),
            persons=int(header["persons"]),
            note=header.get("note", {}),
            **arrays,
        )
        _check_plausible(counts, str(path))
        return counts


def merge_counts(parts: Iterable[PairCounts]) -> PairCounts:
    """Add counts of different persons; items may come in another order or be missing.

    The result has every item of every part, in order of first appearance. That the parts are
    about different persons cannot be seen from counts: the caller answers for it.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.engines import count_pairs
    >>> from discreet.responses import Responses
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


def _explain_items(ours: tuple[str, ...], theirs: tuple[str, ...]) -> str:
    if set(ours) == set(theirs):
        found = "the same items in another order"
    else:
        only = [name for name in ours if name not in set(theirs)]
        other = [name for name in theirs if name not in set(ours)]
        example = f"{only[0]!r} only in the first" if only else f"{other[0]!r} only in the second"
        found = f"different items ({len(ours)} and {len(theirs)}; for example {example})"
    return (
        f"these counts are about {found}, so adding them would mix items up. Bring both to one "
        "item list with select(items), add them with merge_counts (discreet merge), or count "
        "both with the same item list"
    )


def _check_plausible(counts: PairCounts, path: str) -> None:
    """Refuse arrays that no answers can have given."""
    arrays = (counts.right_wrong, counts.answers, counts.right)
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


def _replace_file(path: Path, content: memoryview) -> None:
    """Write a file that only its owner may read, whole or not at all."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
