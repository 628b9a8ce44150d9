"""Whole files or none, private by default; and one process at a time.

In: where files belong. Out: a stage to write them on, from which they move into place together;
folders that only their owner can open; a lock; a place for a release. What is confidential is
readable by its owner alone from the first byte, whatever the umask, in a folder that exists too,
and when it replaces a file that others could read. The operating system gives a lock back when its
process dies, so a kill leaves no lock behind, only the file. A place for a release is proved by
writing there, with room on its disk for what is to come: whatever makes it unusable is refused
before anything is spent.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from discreet.errors import BadUsage, DiscreetError


@contextmanager
def hold_lock(path: Path, busy: DiscreetError) -> Iterator[int]:
    """Give the descriptor of a private file that this process alone holds, made if need be.

    ``busy`` is raised where another process holds it. Whoever holds the lock may remove the file.
    """
    with _closing(_open_locked(path, busy)) as handle:
        yield handle


@contextmanager
def _closing(handle: int) -> Iterator[int]:
    """Close a descriptor when the block ends, however it ends."""
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
    new_folders = make_folder(folder, private=private)
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
        _remove_empty(new_folders)


def write_text(path: Path, text: str, *, private: bool = True) -> None:
    """Write a file of text as it is, line ends included."""
    with staged(path.parent, [path.name], private=private) as stage:
        (stage / path.name).write_text(text, encoding="utf-8", newline="")


@contextmanager
def appearing(path: Path) -> Iterator[Path]:
    """Yield a private file beside a place; when the block ends well, it appears there.

    It appears whole or not at all, and never in the place of another: `FileExistsError`.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".discreet-", suffix=".part")
    except OSError as error:
        error.filename = str(path)
        raise
    os.close(handle)
    part = Path(name)
    try:
        with naming(path):
            yield part
            _finish(part, PRIVATE)
            _move_new(part, path)
    finally:
        part.unlink(missing_ok=True)
    sync_folder(path.parent)


def _move_new(part: Path, path: Path) -> None:
    """Give a file its name, unless another has it."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:  # a disk without links: take the name first
        create_private(path)
        part.replace(path)


def make_folder(folder: Path, *, private: bool = True) -> list[Path]:
    """Make a folder and those above it; return what was made. One that exists stays as it is."""
    mode = PRIVATE_FOLDER if private else PUBLIC_FOLDER
    new_folders = []
    for level in reversed([folder, *folder.parents]):
        if level.is_dir():
            continue
        try:
            level.mkdir(mode)
        except FileExistsError:
            if not level.is_dir():
                raise
        else:
            level.chmod(mode)
            new_folders.append(level)
    return new_folders


def make_temporary(parent: Path, prefix: str) -> Path:
    """Make a new folder that only its owner can open; the caller removes it."""
    make_folder(parent)
    folder = Path(tempfile.mkdtemp(dir=parent, prefix=prefix))
    folder.chmod(PRIVATE_FOLDER)
    return folder


def create_private(path: Path) -> None:
    """Make an empty file of the owner's; whatever writes into it later keeps its mode."""
    with _closing(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE)) as handle:
        os.fchmod(handle, PRIVATE)


def _finish(path: Path, mode: int) -> None:
    with _closing(os.open(path, os.O_RDONLY)) as handle:
        os.fsync(handle)
        os.fchmod(handle, mode)


def sync_folder(folder: Path) -> None:
    """Make names in a folder as lasting as the files behind them."""
    with _closing(os.open(folder, os.O_RDONLY)) as handle:
        os.fsync(handle)


PRIVACY_FILE = "privacy.json"
RELEASE_FILES = {
    PRIVACY_FILE,
    "difficulties.csv",
    "strengths.csv",
    "thresholds.csv",
    "statement.md",
    "statement.en.md",
    "registry.yaml",
    "report.html",
    "noisy.npz",
}
"""Every file that a release has had: what ``force`` may replace."""

BLOCK = 1 << 20


@dataclass
class StagedFolder:
    """A folder to come. Its files are written beside it, and it appears in one step."""

    target: Path
    stage: Path
    old: Path
    is_filled: bool = False

    def make_room(self, size: int) -> None:
        """Set so many more bytes aside."""
        with (self.stage / "room").open("ab") as file:
            fill_with_zeros(file.fileno(), size)

    def fill(self, files: Mapping[str, str | bytes]) -> None:
        """Write the files and move them into place, an earlier release out of the way."""
        (self.stage / "room").unlink()
        for name, content in files.items():
            _write_public(self.stage / name, as_bytes(content))
        self.stage.chmod(PUBLIC_FOLDER)
        sync_folder(self.stage)
        if self.target.exists():
            self.target.rename(self.old)
        self.stage.rename(self.target)
        self.is_filled = True
        sync_folder(self.target.parent)
        shutil.rmtree(self.old, ignore_errors=True)


@contextmanager
def hold_place(
    folder: str | PathLike[str], *, force: bool = False, room: int = 0
) -> Iterator[StagedFolder]:
    """Hold a place while the block runs; a block that does not fill it leaves no trace.

    Parameters
    ----------
    folder
        Where the folder shall appear.
    force
        Whether an earlier release there may be replaced. Even then only an empty folder, or one
        that holds a release and nothing else: the rest is not ours to delete.
    room
        Bytes to set aside on its disk.
    """
    target = Path(os.path.abspath(folder))  # noqa: PTH100 (links are refused, not followed)
    mark = hashlib.blake2b(os.fsencode(target.name), digest_size=8).hexdigest()
    lock, stage, old = (
        target.parent / f".discreet-{mark}.{end}" for end in ("lock", "part", "old")
    )
    staged_folder = StagedFolder(target, stage, old)
    with _telling_filled(staged_folder), ExitStack() as stack:
        with _explaining(target):
            stack.callback(_remove_empty, make_folder(target.parent, private=False))
            stack.enter_context(hold_lock(lock, _busy(target)))
            stack.callback(lock.unlink, missing_ok=True)
            _restore(staged_folder)
            _check_target(target, force=force)
            stack.callback(shutil.rmtree, stage, ignore_errors=True)
            _prove(staged_folder, room)
        yield staged_folder


@contextmanager
def _telling_filled(staged_folder: StagedFolder) -> Iterator[None]:
    """Say of a failure that came after the folder had appeared that the folder is complete."""
    try:
        yield
    except BaseException as error:
        if staged_folder.is_filled:
            error.add_note(
                f"This came after the bundle was written: {staged_folder.target} is complete."
            )
        raise


def check_place(folder: str | PathLike[str], *, force: bool = False) -> None:
    """Refuse a place that cannot be held, before any work is done."""
    with hold_place(folder, force=force):
        return


def _restore(staged_folder: StagedFolder) -> None:
    """Put an earlier release back that a killed process had moved out of the way."""
    shutil.rmtree(staged_folder.stage, ignore_errors=True)
    if staged_folder.old.exists() and not staged_folder.target.exists():
        staged_folder.old.rename(staged_folder.target)
    shutil.rmtree(staged_folder.old, ignore_errors=True)


def _prove(staged_folder: StagedFolder, room: int) -> None:
    staged_folder.stage.mkdir(0o700)
    trial = staged_folder.stage / staged_folder.target.name
    trial.mkdir()  # the name may be too long for this disk
    trial.rmdir()
    staged_folder.make_room(room)


def _check_target(target: Path, *, force: bool) -> None:
    if target.is_symlink():
        raise BadUsage(
            f"{target} is a symbolic link to {target.readlink()}, and a release is a folder of its "
            "own. Name the folder itself, or choose another."
        )
    if not target.exists():
        return
    if not force:
        raise BadUsage(
            f"{target} exists already. Choose another folder, or add --force (in Python "
            "force=True) to replace an earlier release."
        )
    if not target.is_dir() or target in (Path.cwd(), *Path.cwd().parents):
        raise BadUsage(
            f"{target} is {'where you are' if target.is_dir() else 'a file'}, not an earlier "
            "release, so it is not replaced. Choose another folder."
        )
    _check_content(target)


def _check_content(target: Path) -> None:
    with os.scandir(target) as entries:
        is_ours = {
            entry.name: entry.name in RELEASE_FILES and entry.is_file(follow_symlinks=False)
            for entry in entries
        }
    foreign = sorted(name for name in is_ours if not is_ours[name])
    if foreign or (is_ours and PRIVACY_FILE not in is_ours):
        content = f"{foreign[0]!r}, which is" if foreign else f"no {PRIVACY_FILE}, so it is"
        raise BadUsage(
            f"{target} holds {content} not part of a release bundle; the folder is not replaced. "
            "Move that away, or choose another folder."
        )


def fill_with_zeros(handle: int, size: int) -> None:
    """Take room on the disk for so many bytes, and make sure of it."""
    written = 0
    while written < size:
        written += os.write(handle, bytes(min(BLOCK, size - written)))
    os.fsync(handle)


def as_bytes(content: str | bytes) -> bytes:
    """Return what a file with this content holds; texts are UTF-8."""
    return content.encode() if isinstance(content, str) else content


def _write_public(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    path.chmod(PUBLIC)


def _remove_empty(folders: Sequence[Path]) -> None:
    for folder in reversed(folders):
        with suppress(OSError):  # it holds what was written
            folder.rmdir()


def _busy(target: Path) -> BadUsage:
    return BadUsage(
        f"{target}: another process is writing a release here. Wait for it, or choose another "
        "folder."
    )


@contextmanager
def _explaining(target: Path) -> Iterator[None]:
    """Say what is wrong with a path; a full disk speaks for itself."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        reason = error.strerror or str(error)
        if isinstance(error, FileExistsError | NotADirectoryError):
            reason = f"{error.filename} is a file or a dangling link, not a folder"
        raise BadUsage(
            f"nothing can be written to {target}: {reason}. Choose another folder, or make this "
            "one writable."
        ) from error
