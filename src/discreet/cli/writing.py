"""Refuse, before any work is done, what could not be written afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from discreet.errors import BadUsage


def check_writable(folder: Path, names: Sequence[str], *, force: bool) -> None:
    """Refuse, before any work is done, what could not be written afterwards."""
    taken = [name for name in names if (folder / name).exists()]
    if taken and not force:
        raise BadUsage(
            f"{folder / taken[0]} exists already and would be overwritten. "
            "Choose another --out, or add --force to replace it."
        )
    _try_to_write(folder)


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
