"""Files of pair counts: one NumPy archive, confidential, whole or not at all.

In: a header and arrays, or a path. Out: the same. Version 2 may hold sparse counts and says how
persons were weighted; files of version 1 are read too.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.atomic import staged
from discreet.counts.matrix import is_sparse
from discreet.errors import BadUsage

__all__ = ["read_archive", "write_archive"]

FORMAT = "discreet-pair-counts"
FORMAT_VERSION = 2
READABLE = (1, 2)
SPARSE_PARTS = ("indptr", "indices", "data")
QUICK = 1
"""Compression level: higher ones took several times as long for a tenth less on counts."""

Arrays = dict[str, npt.NDArray[Any]]


def write_archive(
    path: Path, header: Mapping[str, Any], right_wrong: Any, arrays: Mapping[str, Any]
) -> None:
    """Write a file that only its owner may read; it replaces what is there in one step."""
    parts = {"header": np.array(json.dumps({**_SIGNS, **header})), **arrays}
    if is_sparse(right_wrong):
        parts |= {name: _narrow(getattr(right_wrong, name)) for name in SPARSE_PARTS}
    else:
        parts["right_wrong"] = right_wrong
    with staged(path.parent, [path.name]) as stage:
        _write_parts(stage / path.name, parts)


_SIGNS = {
    "format": FORMAT,
    "version": FORMAT_VERSION,
    "confidential": "exact counts about persons; do not publish",
}


def _write_parts(file: Path, parts: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write what ``numpy.savez_compressed`` writes, array by array and quickly."""
    options: dict[str, Any] = {"compression": zipfile.ZIP_DEFLATED, "compresslevel": QUICK}
    with zipfile.ZipFile(file, "w", **options) as archive:
        for name, array in parts.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def _narrow(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return whole numbers in the smallest type that holds them; most counts are small."""
    if array.min(initial=0) < 0 or array.dtype.kind not in "iu":
        return array
    return array.astype(np.min_scalar_type(int(array.max(initial=0))))


def read_archive(path: Path) -> tuple[dict[str, Any], Arrays]:
    """Return the header and the arrays of a file; the caller checks what they say."""
    if not path.exists():
        raise BadUsage(f"There is no file '{path}'. Check the path and the folder you are in.")
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            header = json.loads(str(file["header"]))
            arrays = {name: file[name] for name in file.files if name != "header"}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise BadUsage(f"{path} cannot be read as a file of pair counts: {error}") from error
    if header.get("format") != FORMAT or header.get("version") not in READABLE:
        raise BadUsage(
            f"{path} is not a file of pair counts in version {READABLE[0]} to {READABLE[-1]}; "
            "write it again with this version of discreet"
        )
    return header, _join_parts(path, header, arrays)


def _join_parts(path: Path, header: Mapping[str, Any], arrays: Arrays) -> Arrays:
    """Put the parts of sparse counts together again."""
    matrix_parts = ("right_wrong",) if "right_wrong" in arrays else SPARSE_PARTS
    if set(arrays) != {"answers", "right", *matrix_parts}:
        found = ", ".join(sorted(arrays)) or "nothing"
        raise BadUsage(f"{path} cannot be read as a file of pair counts: it holds {found}")
    if "right_wrong" in arrays:
        return arrays
    from scipy.sparse import csr_array

    items = len(header["items"])
    try:
        data = arrays["data"].astype(np.int64, casting="same_kind")
        matrix = csr_array((data, arrays["indices"], arrays["indptr"]), shape=(items, items))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise BadUsage(f"{path} cannot be read as a file of pair counts: {error}") from error
    return {"right_wrong": matrix, "answers": arrays["answers"], "right": arrays["right"]}
