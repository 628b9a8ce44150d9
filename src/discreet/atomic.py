"""One process at a time: a lock that ends with its process, however that ends.

In: the path of a file. Out: the open file, held by nobody else. The operating system gives the
lock back when the process dies, so a kill leaves no lock behind, only the file.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from discreet.errors import DiscreetError


@contextmanager
def hold_lock(path: Path, busy: DiscreetError) -> Iterator[int]:
    """Give the descriptor of a private file that this process alone holds, made if need be.

    ``busy`` is raised where another process holds it. Whoever holds the lock may remove the file.
    """
    handle = _open_locked(path, busy)
    try:
        yield handle
    finally:
        os.close(handle)


def _open_locked(path: Path, busy: DiscreetError) -> int:
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Its last holder may have removed the file between our two steps: then hold a new one.
            if os.fstat(handle).st_nlink:
                return handle
        except BlockingIOError:
            os.close(handle)
            raise busy from None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


# Whole files or none, private by default.
#
# In: where files belong. Out: a stage to write them on, from which they move into place together;
# folders that only their owner can open. What is confidential is readable by its owner alone from
# the first byte, whatever the umask, in a folder that exists too, and when it replaces a file that
# others could read.

PRIVATE, PUBLIC = 0o600, 0o644
PRIVATE_FOLDER, PUBLIC_FOLDER = 0o700, 0o755


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name what was written in errors that do not: a full disk is noticed between two bytes."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


@contextmanager
def staged(folder: Path, names: Sequence[str], *, private: bool = True) -> Iterator[Path]:
    """Yield a folder with these files, still empty; when the block ends well, they move.

    Parameters
    ----------
    folder
        Where the files belong; made if it does not exist.
    names
        The files that the block writes, into the folder that is yielded.
    private
        Whether only their owner may read the files.
    """
    made = make_folder(folder, private=private)
    stage = Path(tempfile.mkdtemp(dir=folder, prefix=".discreet-"))
    try:
        with naming(folder / names[0] if len(names) == 1 else folder):
            stage.chmod(PRIVATE_FOLDER)
            for name in names:
                create_private(stage / name)
            yield stage
            for name in names:
                _finish(stage / name, PRIVATE if private else PUBLIC)
                (stage / name).replace(folder / name)
            sync_folder(folder)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
        for one in reversed(made):
            with suppress(OSError):  # not empty: it holds what was written
                one.rmdir()


def write_text(path: Path, text: str, *, private: bool = True) -> None:
    """Write a file of text as it is, line ends included."""
    with staged(path.parent, [path.name], private=private) as stage:
        (stage / path.name).write_text(text, encoding="utf-8", newline="")


def make_folder(folder: Path, *, private: bool = True) -> list[Path]:
    """Make a folder and those above it; return what was made. One that exists stays as it is."""
    mode = PRIVATE_FOLDER if private else PUBLIC_FOLDER
    made = []
    for one in reversed([folder, *folder.parents]):
        if one.is_dir():
            continue
        try:
            one.mkdir(mode)
        except FileExistsError:
            if not one.is_dir():
                raise
        else:
            one.chmod(mode)
            made.append(one)
    return made


def make_temporary(place: Path, prefix: str) -> Path:
    """Make a new folder that only its owner can open; the caller removes it."""
    make_folder(place)
    folder = Path(tempfile.mkdtemp(dir=place, prefix=prefix))
    folder.chmod(PRIVATE_FOLDER)
    return folder


def create_private(path: Path) -> None:
    """Make an empty file of the owner's; whatever writes into it later keeps its mode."""
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE)
    try:
        os.fchmod(handle, PRIVATE)
    finally:
        os.close(handle)


def _finish(path: Path, mode: int) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
        os.fchmod(handle, mode)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Make names in a folder as lasting as the files behind them."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
