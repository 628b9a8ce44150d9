"""The private folder of one run: uploads and results, removed at its end.

In: nothing. Out: a folder that only its owner can open, held by a lock. The lock ends with the
process, however it ends; so the next start recognises what a crash left behind, and removes it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.atomic import hold_lock
from discreet.errors import BadUsage

PREFIX = "discreet-studio-"
LOCK = "lock"

_BUSY = BadUsage("this folder belongs to a studio that is still running")


@contextmanager
def private_folder() -> Iterator[Path]:
    """Give a new private folder, and remove it with all that is in it."""
    remove_left_behind()
    made = Path(tempfile.mkdtemp(prefix=f".{PREFIX}"))
    # It gets the name by which others look for it only once it is locked.
    folder = made.with_name(made.name[1:])
    with hold_lock(made / LOCK, _BUSY):
        made.rename(folder)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def remove_left_behind() -> list[Path]:
    """Remove the folders of studios that ended without doing so; return which."""
    place = Path(tempfile.gettempdir())
    return [folder for folder in place.glob(f"{PREFIX}*") if _is_ours(folder) and _remove(folder)]


def _is_ours(folder: Path) -> bool:
    found = folder.lstat()
    return folder.is_dir() and not folder.is_symlink() and found.st_uid == os.getuid()


def _remove(folder: Path) -> bool:
    try:
        with hold_lock(folder / LOCK, _BUSY):
            shutil.rmtree(folder, ignore_errors=True)
    except (BadUsage, OSError):
        return False
    return True
