"""Refuse, before any work is done, what could not be written afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from discreet.errors import BadUsage

__all__ = ["check_new_folder", "check_writable"]


def check_writable(folder: Path, names: Sequence[str], *, force: bool) -> None:
    """Refuse, before any work is done, what could not be written afterwards."""
    taken = [name for name in names if (folder / name).exists()]
    if taken and not force:
        raise BadUsage(
            f"{folder / taken[0]} exists already and would be overwritten. "
            "Choose another --out, or add --force to replace it."
        )
    _try_to_write(folder)


def check_new_folder(folder: Path, *, force: bool) -> None:
    """Refuse a folder that exists, or that cannot be made, before anything is spent.

    Even with ``force`` only an empty folder or an earlier release is replaced: what else lies
    in a folder is not ours to delete.
    """
    if folder.exists() and not force:
        raise BadUsage(
            f"{folder} exists already. Choose another --out, or add --force to replace it."
        )
    if folder.exists() and not _is_replaceable(folder):
        raise BadUsage(
            f"{folder} is not an earlier release, so --force does not replace it. "
            "Choose another --out."
        )
    _try_to_write(folder.parent)


def _is_replaceable(folder: Path) -> bool:
    here, place = Path.cwd(), folder.resolve()
    if not place.is_dir() or place == here or place in here.parents:
        return False
    return (place / "privacy.json").exists() or not any(place.iterdir())


def _try_to_write(folder: Path) -> None:
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    try:
        with tempfile.TemporaryDirectory(dir=there, prefix=".discreet-"):
            return
    except OSError as error:
        raise BadUsage(
            f"nothing can be written into {folder}: {error.strerror or error}. "
            "Choose another --out, or make the folder writable."
        ) from error
