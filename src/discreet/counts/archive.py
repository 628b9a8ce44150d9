"""Files of pair counts: one NumPy archive, confidential, whole or not at all.

In: a header and arrays, or a path. Out: the same.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from discreet.atomic import staged
from discreet.choices import PlainDict, PlainMapping
from discreet.counts.matrix import is_sparse
from discreet.errors import BadUsage
from discreet.schema import Along, Count, Distinct, SchemaError, Within, read_as
from discreet.types import Vector

FORMAT, FORMAT_VERSION = "discreet-pair-counts", 1

SPARSE_PARTS = ("indptr", "indices", "data")


FOLD_ARRAYS = ("fold_right_wrong", "fold_answers", "fold_persons")


#: Of the arrays that are more than a list.
DIMENSIONS = {"right_wrong": 2, "fold_right_wrong": 3, "fold_answers": 2}


#: Compression level: higher ones took several times as long for a tenth less on counts.
QUICK = 1


Arrays = dict[str, Vector]


def write_archive(
    path: Path, header: PlainMapping, right_wrong: object, arrays: PlainMapping
) -> None:
    """Write a file that only its owner may read; it replaces what is there in one step."""
    parts = {"header": np.array(json.dumps({**_SIGNS, **header})), **arrays}
    if is_sparse(right_wrong):
        parts |= {name: _narrow(getattr(right_wrong, name)) for name in SPARSE_PARTS}
    else:
        parts["right_wrong"] = right_wrong
    parts |= {name: _narrow(parts[name]) for name in FOLD_ARRAYS if name in parts}
    with staged(path.parent, [path.name]) as stage:
        _write_parts(stage / path.name, parts)


_SIGNS = {
    "format": FORMAT,
    "version": FORMAT_VERSION,
    "confidential": "exact counts about persons; do not publish",
}


def _write_parts(file: Path, parts: Mapping[str, Vector]) -> None:
    """Write what ``numpy.savez_compressed`` writes, array by array and quickly."""
    options: PlainDict = {"compression": zipfile.ZIP_DEFLATED, "compresslevel": QUICK}
    with zipfile.ZipFile(file, "w", **options) as archive:
        for name, array in parts.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def _narrow(array: Vector) -> Vector:
    """Return whole numbers in the smallest type that holds them; most counts are small."""
    if array.min(initial=0) < 0 or array.dtype.kind not in "iu":
        return array
    return array.astype(np.min_scalar_type(int(array.max(initial=0))))


def is_archive(path: Path) -> bool:
    """Say whether a file is one of pair counts, whatever its name."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open("header.npy") as member:
            return FORMAT in str(np.lib.format.read_array(member, allow_pickle=False))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
        return False


@dataclass(frozen=True)
class FoldsHeader:
    """What a file says of its folds of persons."""

    asked: Annotated[int, Within(1, 1 << 20)]
    weighting: str


@dataclass(frozen=True)
class CountsHeader:
    """What a file of counts says beside its arrays."""

    format: str
    version: int
    items: Annotated[tuple[str | int, ...], Distinct()]
    persons: Count
    confidential: str
    weighting: str
    note: PlainMapping
    repeated: Count
    steps: Annotated[
        tuple[Annotated[int, Within(1, 99)], ...], Along("items", may_be_empty=True)
    ] = ()
    folds: FoldsHeader | None = None

    @property
    def nodes(self) -> int:
        """Rows of the matrix: steps of items."""
        return sum(self.steps) or len(self.items)


def read_archive(path: Path) -> tuple[CountsHeader, Arrays]:
    """Return the header and the arrays of a file, each of its declared type."""
    if not path.exists():
        raise BadUsage(f"There is no file '{path}'. Check the path and the folder you are in.")
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            header = json.loads(str(file["header"]))
            arrays = {name: file[name] for name in file.files if name != "header"}
    except _UNREADABLE as error:
        raise BadUsage(f"{path} cannot be read as a file of pair counts: {error}") from error
    is_ours = isinstance(header, dict) and header.get("format") == FORMAT
    if not is_ours or header.get("version") != FORMAT_VERSION:
        raise BadUsage(
            f"{path} is not a file of pair counts in version {FORMAT_VERSION}; write it again with "
            "this version of discreet"
        )
    try:
        checked = read_as(CountsHeader, header, "the header")
        return checked, _join_parts(checked, arrays)
    except (SchemaError, TypeError, ValueError) as error:
        raise BadUsage(f"{path} cannot be read as a file of pair counts: {error}") from error


_UNREADABLE = (
    *(OSError, ValueError, KeyError, TypeError, EOFError, RecursionError),
    *(zipfile.BadZipFile, zlib.error),
)


def _join_parts(header: CountsHeader, arrays: Arrays) -> Arrays:
    """Check the arrays, and put the parts of sparse counts together again."""
    matrix_parts = ("right_wrong",) if "right_wrong" in arrays else SPARSE_PARTS
    folds = FOLD_ARRAYS if header.folds else ()
    if set(arrays) - {"sketch"} != {"answers", "right", *matrix_parts, *folds}:
        names = ", ".join(sorted(arrays)) or "nothing"
        raise SchemaError(f"it holds {names}")
    for name, array in arrays.items():
        if array.dtype.kind not in "iu" or array.ndim != DIMENSIONS.get(name, 1):
            raise SchemaError(f"{name} is no array of whole numbers of the right shape")
    if "sketch" in arrays:
        arrays["sketch"] = arrays["sketch"].astype(np.uint64)
    if "right_wrong" in arrays:
        return arrays
    from scipy.sparse import csr_array

    data = arrays["data"].astype(np.int64, casting="same_kind")
    shape = (header.nodes, header.nodes)
    matrix = csr_array((data, arrays["indices"], arrays["indptr"]), shape=shape)
    matrix.check_format(full_check=True)
    others = {name: array for name, array in arrays.items() if name not in SPARSE_PARTS}
    return {"right_wrong": matrix, **others}
