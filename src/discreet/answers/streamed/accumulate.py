"""Add counts of batches up while new items still appear.

In: batches of whole persons. Out: :class:`~discreet.counts.PairCounts`. Items only ever join
at the end of the list, so the matrix grows and nothing moves.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import pickle
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from discreet.atomic import make_folder
from discreet.counts.matrix import add_into, add_matrices, grow_matrix, is_sparse, settle_matrix
from discreet.counts.memory import Weighting, count_matrix
from discreet.counts.table import PairCounts, name_weighting
from discreet.errors import BadUsage
from discreet.store.planes import BitPlanes, SparseRows
from discreet.tables.dataset import Dataset
from discreet.tables.roles import Reading


class Accumulator:
    """Counts so far."""

    def __init__(self, start: PairCounts | None = None) -> None:
        empty = np.zeros(0, dtype=np.int64)
        self._pairs = _Pairs(np.zeros((0, 0), dtype=np.int64))
        if start is not None:
            self._pairs = _Pairs(start.right_wrong.copy())
        self._answers = empty if start is None else start.answers.copy()
        self._right = empty if start is None else start.right.copy()
        self._items: tuple[str, ...] = () if start is None else start.items
        self._weighting = "none" if start is None else start.weighting
        self.persons = 0 if start is None else start.persons

    def add(
        self, items: tuple[str, ...], store: BitPlanes | SparseRows, weighting: Weighting | None
    ) -> None:
        """Count one batch."""
        answers, right = store.item_totals()
        self._grow(items)
        self._pairs.add(count_matrix(store, weighting))
        self._answers += answers
        self._right += right
        self._weighting = name_weighting(weighting)
        self.persons += store.n_persons

    def _grow(self, items: tuple[str, ...]) -> None:
        more = len(items) - len(self._items)
        if more:
            self._pairs.grow(len(items))
            self._answers = np.pad(self._answers, (0, more))
            self._right = np.pad(self._right, (0, more))
        self._items = items

    def counts(self, items: Sequence[str] | None = None) -> PairCounts:
        """Return the counts so far, also for listed items that nobody answered."""
        self._grow(self._items if items is None else tuple(items))
        total = self._pairs.total()
        return PairCounts(
            items=self._items,
            # Only an array is added to in place.
            right_wrong=total if is_sparse(total) else total.copy(),
            answers=self._answers.copy(),
            right=self._right.copy(),
            persons=self.persons,
            weighting=self._weighting,
        )


class _Pairs:
    """A sum of matrices: one array or, with many items, a few sparse ones.

    Adding a small sparse matrix to a large one costs as much as going through the large one.
    So partial sums are kept, each at most half as large as the one before, like the digits of
    a binary number: every pair is then moved a few times in all, and all of them together are
    at most twice as large as the largest.
    """

    def __init__(self, start: Any) -> None:
        self._parts: list[Any] = [start]

    def grow(self, items: int) -> None:
        """Make room for new items."""
        self._parts = [grow_matrix(part, items) for part in self._parts]

    def add(self, matrix: Any) -> None:
        """Add the counts of a batch."""
        if not is_sparse(self._parts[0]):
            add_into(self._parts[0], matrix)
            return
        self._parts.append(matrix)
        while len(self._parts) > 1 and _is_light(self._parts[-2], self._parts[-1]):
            self._carry()

    def total(self) -> Any:
        """Return the sum of everything so far."""
        while len(self._parts) > 1:
            self._carry()
        return self._parts[0]

    def _carry(self) -> None:
        last = self._parts.pop()
        self._parts[-1] = settle_matrix(add_matrices(self._parts[-1], last))
        if not is_sparse(self._parts[-1]):
            # So many pairs by now that everything goes into one array.
            total, *others = reversed(self._parts)
            for part in others:
                add_into(total, part)
            self._parts = [total]


def _is_light(before: Any, after: Any) -> bool:
    return is_sparse(after) is False or before.nnz <= 2 * after.nnz


# Keep partial counts on disk, so that a run that was killed can go on.
#
# A checkpoint is a folder with one file of counts that also says which rows or buckets are in
# them. The file is replaced in one step: whatever happens, what is in the counts and what is said
# to be in them agree, so nobody is counted twice. A fingerprint of the source, of the options and
# of the weighting guards against going on with other data. Confidential, like all counts.

INTERVAL = 5.0
"""Seconds between two checkpoints: a crash costs no more work than that."""

SLOW_SAVE, SHARE = 0.5, 10.0
"""A save that takes longer than this many seconds (very many items) happens less often, so that
saving takes at most a tenth of the time."""

STATE_VERSION = 1


@dataclass(frozen=True)
class State:
    """What the counts of a checkpoint hold.

    Attributes
    ----------
    phase
        "ordered": the rows before ``row``. "buckets": the buckets in ``done``.
    row, finished, last
        First row that is not in the counts; rows of finished parts; the last person counted.
    bits, sizes, done, as_text
        How many buckets there are (a power of two), their rows, which of them are counted; the
        kind of ids.
    rows
        Rows counted so far.
    """

    phase: str
    row: int = 0
    finished: tuple[int, ...] = ()
    last: int | str | None = None
    bits: int = 0
    sizes: tuple[int, ...] = ()
    done: tuple[int, ...] = ()
    as_text: bool = False
    rows: int = 0


def fingerprint_run(
    dataset: Dataset, reading: Reading, weighting: Weighting | None, items: object
) -> str:
    """Return a digest of everything that decides about the counts."""
    try:
        weights = pickle.dumps(weighting)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise BadUsage(
            "a weighting must be picklable when a checkpoint is kept, so that going on with "
            f"another one is noticed; found {weighting!r} ({error})"
        ) from None
    facts = [[shard.identity for shard in dataset.shards], asdict(reading), items, STATE_VERSION]
    return hashlib.sha256(json.dumps(facts).encode() + weights).hexdigest()


class Checkpoint:
    """A folder with partial counts and, where rows had to be distributed, the rows.

    Parameters
    ----------
    folder
        Made if it is not there; None keeps nothing.
    fingerprint
        Of this run; a checkpoint with another one is refused.
    """

    def __init__(self, folder: str | PathLike[str] | None, fingerprint: str) -> None:
        self.folder = None if folder is None else Path(folder)
        self._fingerprint = fingerprint
        self._saved, self._pause = time.monotonic(), INTERVAL
        if self.folder is not None:
            make_folder(self.folder)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes out: two runs would overwrite each other's counts."""
        if self.folder is None:
            yield
            return
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise BadUsage(
                f"the checkpoint in '{self.folder}' is in use by another process, and two would "
                "overwrite each other's counts. Wait until it ends, or name another folder."
            ) from None
        finally:
            os.close(handle)

    @property
    def _file(self) -> Path:
        return (self.folder or Path()) / "counts.npz"

    def load(self) -> tuple[PairCounts, State] | None:
        """Return counts and state of an earlier run; None if there was none."""
        if self.folder is None:
            return None
        if not self._file.exists():
            self._begin()
            return None
        counts = PairCounts.load(self._file)
        note = counts.note
        if note.get("fingerprint") != self._fingerprint:
            raise BadUsage(
                f"the checkpoint in '{self.folder}' belongs to other data or other options (a file "
                "may have changed since). Going on would mix the two. Delete the folder to start "
                "anew, or name another one."
            )
        lists = {key: tuple(note["state"][key]) for key in ("finished", "sizes", "done")}
        return counts, State(**{**note["state"], **lists})

    def _begin(self) -> None:
        """Clear away rows that were being distributed when an earlier run was killed."""
        shutil.rmtree(self.bucket_folder, ignore_errors=True)

    @property
    def bucket_folder(self) -> Path:
        """Where distributed rows are kept."""
        return (self.folder or Path()) / "rows"

    def is_due(self) -> bool:
        """Say whether it is time to save."""
        return self.folder is not None and time.monotonic() - self._saved >= self._pause

    def save(self, counts: PairCounts, state: State) -> None:
        """Write counts and state in one step."""
        if self.folder is None:
            return
        note = {"fingerprint": self._fingerprint, "state": asdict(state)}
        began = time.monotonic()
        counts.save(self._file, note=note)
        self._saved = time.monotonic()
        took = self._saved - began
        self._pause = INTERVAL if took <= SLOW_SAVE else SHARE * took

    def remove(self) -> None:
        """Delete the checkpoint of a run that is done; other files in the folder stay."""
        if self.folder is None:
            return
        shutil.rmtree(self.bucket_folder, ignore_errors=True)
        self._file.unlink(missing_ok=True)
        if not any(self.folder.iterdir()):
            self.folder.rmdir()
