"""Pair counts: how often one item was answered right where another was answered wrong.

In: numbers from an engine. Out: an immutable value that adds up over batches of whole
persons. Confidential: a count is about the persons behind it, so it never crosses the wall
without noise.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
import numpy.typing as npt

from discreet.errors import BadResponses, BadUsage

__all__ = ["PairCounts"]

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
    """

    items: tuple[str, ...]
    right_wrong: Int64Array
    answers: Int64Array
    right: Int64Array
    persons: int

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
            raise BadResponses(
                "these counts are about different items (or the same items in another order), "
                "so adding them would mix items up; count both with the same item list"
            )
        return PairCounts(
            items=self.items,
            right_wrong=self.right_wrong + other.right_wrong,
            answers=self.answers + other.answers,
            right=self.right + other.right,
            persons=self.persons + other.persons,
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the counts to one file. The file is confidential, and says so."""
        header = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "confidential": "exact counts about persons; do not publish",
            "items": self.items,
            "persons": self.persons,
        }
        with Path(path).open("wb") as file:
            np.savez_compressed(
                file,
                header=np.array(json.dumps(header)),
                right_wrong=self.right_wrong,
                answers=self.answers,
                right=self.right,
            )

    @classmethod
    def load(cls, path: str | PathLike[str]) -> PairCounts:
        """Read counts that :meth:`save` wrote."""
        try:
            with np.load(Path(path), allow_pickle=False) as file:
                header = json.loads(str(file["header"]))
                arrays = {name: file[name] for name in ("right_wrong", "answers", "right")}
        except (OSError, ValueError, KeyError) as error:
            raise BadUsage(f"{path} cannot be read as a file of pair counts: {error}") from error
        if header.get("format") != FORMAT or header.get("version") != FORMAT_VERSION:
            raise BadUsage(
                f"{path} is not a file of pair counts in version {FORMAT_VERSION}; "
                "write it again with this version of discreet"
            )
        return cls(items=tuple(header["items"]), persons=int(header["persons"]), **arrays)
