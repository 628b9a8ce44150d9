"""Open a publisher's file: plain, gzipped, zipped or in its folder.

In: a path. Out: text. Nothing is downloaded and nothing is written.
"""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from discreet.errors import BadResponses, BadUsage

__all__ = ["column_numbers", "read_text"]


def read_text(path: str | PathLike[str], members: Sequence[str] = ()) -> str:
    """Return the text of a file.

    Parameters
    ----------
    path
        The file, its gzipped copy, or a folder or zip archive that holds one of ``members``.
    members
        File names to look for in a folder or archive, the first that is there.
    """
    place = Path(path)
    if not place.exists():
        raise BadUsage(f"there is no file {place}; give the path of your copy of the data")
    if place.is_dir():
        return _member_of_folder(place, members)
    if zipfile.is_zipfile(place):
        return _member_of_archive(place, members)
    raw = place.read_bytes()
    return _decode(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)


def column_numbers(
    header: Sequence[str], wanted: Sequence[str], path: str | PathLike[str]
) -> list[int]:
    """Return where the wanted columns stand."""
    names = [name.strip().strip('"') for name in header]
    missing = [name for name in wanted if name not in names]
    if missing:
        raise BadResponses(
            f"{path}: there is no column {missing[0]!r} among {', '.join(names[:8]) or 'none'}; "
            "is this the publisher's file as it came?"
        )
    return [names.index(name) for name in wanted]


def _member_of_folder(folder: Path, members: Sequence[str]) -> str:
    for name in members:
        if (folder / name).is_file():
            return read_text(folder / name)
    raise _nothing_inside(folder, members)


def _member_of_archive(archive: Path, members: Sequence[str]) -> str:
    with zipfile.ZipFile(archive) as opened:
        for name in members:
            for inside in opened.namelist():
                if inside.split("/")[-1] == name:
                    return _decode(opened.read(inside))
    raise _nothing_inside(archive, members)


def _nothing_inside(place: Path, members: Sequence[str]) -> BadUsage:
    wanted = " or ".join(members) or "a single data file"
    return BadUsage(f"{place} does not hold {wanted}; give the path of the data file itself")


def _decode(raw: bytes) -> str:
    # Old files are Latin-1; what is read here is ASCII in either.
    return raw.decode("utf-8-sig", errors="replace")
