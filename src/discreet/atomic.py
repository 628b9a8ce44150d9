"""Atomic file writes, private by default, and locks between processes.

In: where files belong. Out: a stage to write them on, from which they move into place together;
folders that only their owner can open; a lock; a place for a release. What is confidential is
readable by its owner alone from the first byte, whatever the umask, in a folder that exists too,
and when it replaces a file that others could read. The operating system gives a lock back when its
process dies, so a kill leaves no lock behind, only the file. A place for a release is proved by
writing there, with room on its disk for what is to come: whatever makes it unusable is refused
before anything is spent.

Windows has no modes of single files: there the folder that holds a file decides who may read it. It
neither removes nor replaces a file that is open, and some names are refused or mean a device.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path, PurePath, PureWindowsPath

from discreet.errors import BadUsage, DiscreetError

try:
    import fcntl
except ImportError:  # Windows
    import msvcrt

    fcntl = None  # type: ignore[assignment]

#: Windows forbids others to read what is locked: a byte that no file here has.
LOCKED_BYTE = 1 << 30


@contextmanager
def hold_lock(path: Path, busy: DiscreetError, *, remove: bool = False) -> Iterator[None]:
    """Hold a private file of its own for this process alone, made if need be.

    ``busy`` is raised where another process holds it. ``remove`` takes the file away at the end.
    """
    handle = _open_locked(path, busy)
    try:
        yield
    finally:
        if remove and fcntl is not None:  # while it is held, so that nobody holds what is gone
            path.unlink(missing_ok=True)
        _release(handle)
        if remove and fcntl is None:
            with suppress(OSError):  # Windows keeps the name for whoever opened it meanwhile
                path.unlink()


def _lock(handle: int) -> None:
    """Lock an open file, or raise an `OSError` at once where another process has locked it."""
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]


def _release(handle: int) -> None:
    """Give a lock back and close its file; Windows may give it back later if it is only closed."""
    try:
        if fcntl is None:
            os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    finally:
        os.close(handle)


def _open_locked(path: Path, busy: DiscreetError) -> int:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    while True:
        with ExitStack() as stack:
            handle = os.open(path, flags, PRIVATE)
            stack.callback(os.close, handle)
            try:
                _lock(handle)
            except OSError as error:
                is_held = error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK)
                raise (busy if is_held else error) from None
            # Its last holder may have removed the file between our two steps: then hold a new one.
            if os.fstat(handle).st_nlink:
                stack.pop_all()
                return handle


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
    for name in names:
        refuse_name(folder / name)
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
                replace_file(stage / name, folder / name)
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
    refuse_name(path)
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
            try:
                os.link(part, path)
            except FileExistsError:
                raise
            except OSError:  # a disk without links: take the name first
                create_private(path)
                part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    sync_folder(path.parent)


def make_folder(folder: Path, *, private: bool = True) -> list[Path]:
    """Make a folder and those above it; return what was made. One that exists stays as it is."""
    mode = PRIVATE_FOLDER if private else PUBLIC_FOLDER
    new_folders = []
    for level in reversed([folder, *folder.parents]):
        if not level.is_dir():
            try:
                level.mkdir(mode)
                level.chmod(mode)
                new_folders.append(level)
            except FileExistsError:
                if not level.is_dir():
                    raise
    return new_folders


def make_temporary(parent: Path, prefix: str) -> Path:
    """Make a new folder that only its owner can open; the caller removes it."""
    make_folder(parent)
    folder = Path(tempfile.mkdtemp(dir=parent, prefix=prefix))
    folder.chmod(PRIVATE_FOLDER)
    return folder


def create_private(path: Path) -> None:
    """Make an empty file of the owner's; whatever writes into it later keeps its mode."""
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE)
    with os.fdopen(handle, "wb"):
        _set_mode(handle, PRIVATE)


def _set_mode(handle: int, mode: int) -> None:
    if hasattr(os, "fchmod"):
        os.fchmod(handle, mode)


def _finish(path: Path, mode: int) -> None:
    with path.open("r+b") as file:  # Windows syncs what it may write
        sync_file(file.fileno())
        _set_mode(file.fileno(), mode)


def sync_file(handle: int) -> None:
    """Make what was written to an open file lasting; macOS must be asked twice."""
    os.fsync(handle)
    if fcntl is not None and hasattr(fcntl, "F_FULLFSYNC"):
        with suppress(OSError):  # a disk that cannot
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to disk, where a folder can be opened."""
    if fcntl is not None:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


#: How long to wait, again and again, for a program that has a file open: scanners soon let go.
WAITING_SECONDS = (0.01, 0.05, 0.2, 0.5, 1.0)


def replace_file(part: Path, target: Path) -> None:
    """Move a file to a name, also over another file; a program that keeps that open is named."""
    waits: tuple[float, ...] = WAITING_SECONDS if fcntl is None else ()
    for seconds in waits:
        with suppress(PermissionError):
            part.replace(target)
            return
        time.sleep(seconds)
    try:
        part.replace(target)
    except PermissionError as error:
        if fcntl is not None or target.is_dir():
            raise
        raise BadUsage(
            f"{target} cannot be replaced: another program has it open (a spreadsheet, perhaps), "
            "or it may not be written. Close it there and try again."
        ) from error


_REFUSED = re.compile(
    r"""[<>:"|?*\x00-\x1f]|[. ]$|^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³]) *(\.|$)""",
    re.IGNORECASE,
)


def is_refused_by_windows(name: str) -> bool:
    """Say whether Windows refuses a file's name, or takes it for a device or a stream of another.

    Examples
    --------
    >>> [is_refused_by_windows(name) for name in ("CON", "nul.csv", "a:b", "end.", "console.csv")]
    [True, True, True, True, False]
    """
    return bool(_REFUSED.search(name))


def refuse_name(path: PurePath) -> None:
    """Refuse a path of Windows whose file or folders cannot be called so."""
    if isinstance(path, PureWindowsPath):
        # "a:b" is a file of the drive a, wherever the program happens to be on it.
        parts = path.relative_to(path.anchor).parts if path.root or not path.drive else (str(path),)
        for name in parts:
            if name not in (".", "..") and is_refused_by_windows(name):
                raise BadUsage(
                    f"{name!r} (in {path}) is no name for a file on Windows: it is reserved, or "
                    'has one of the signs < > : " | ? * or a dot or space at its end. Choose '
                    "another name."
                )


# The word is part of the names: a file that leaves its folder still says what it is.
CALIBRATION_FILE = "calibration.confidential.json"
#: The same of ratings.
ESTIMATE_FILE = "estimate.confidential.json"
STUDY_FILE = "study.confidential.json"
REPORT_FILE = "report.confidential.html"
WORKBOOK_FILE = "analysis.confidential.xlsx"
#: Files of the tables of an analysis, by their names.
TABLE_FILES = {
    name: f"{name}.confidential.csv"
    for name in (
        *("items", "thresholds", "categories", "persons", "persons_sample", "raw_scores"),
        *("tests", "andersen", "wald", "pairs", "unexpected"),
        *("dimensions", "contrast", "groups", "group_curves", "options", "reliability", "labels"),
    )
}
#: All that a calibration may write; which of the tables there are depends on the answers.
CALIBRATION_FILES = (*TABLE_FILES.values(), WORKBOOK_FILE, CALIBRATION_FILE, REPORT_FILE)
PRIVACY_FILE = "privacy.json"
#: Every file that a release has had: what ``force`` may replace.
RELEASE_FILES = {
    PRIVACY_FILE, "difficulties.csv", "strengths.csv", "thresholds.csv", "dif.csv", "means.csv",
    "statement.md", "statement.en.md", "registry.yaml", "report.html", "noisy.npz",
}  # fmt: skip

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
        with naming(self.target), (self.stage / "room").open("ab") as file:
            fill_with_zeros(file.fileno(), size)

    def fill(self, files: Mapping[str, str | bytes]) -> None:
        """Write the files and move them into place, an earlier release out of the way."""
        (self.stage / "room").unlink()
        for name, content in files.items():
            with naming(self.target), (self.stage / name).open("wb") as file:
                file.write(as_bytes(content))
                file.flush()
                sync_file(file.fileno())
            (self.stage / name).chmod(PUBLIC)
        self.stage.chmod(PUBLIC_FOLDER)
        sync_folder(self.stage)
        if self.target.exists():
            replace_file(self.target, self.old)
        replace_file(self.stage, self.target)
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
    refuse_name(target)
    mark = hashlib.blake2b(os.fsencode(target.name), digest_size=8).hexdigest()
    lock, stage, old = (
        target.parent / f".discreet-{mark}.{end}" for end in ("lock", "part", "old")
    )
    staged_folder = StagedFolder(target, stage, old)
    busy = BadUsage(
        f"{target}: another process is writing a release here. Wait for it, or choose another "
        "folder."
    )
    try:
        with ExitStack() as stack:
            with _explaining(target):
                stack.callback(_remove_empty, make_folder(target.parent, private=False))
                stack.enter_context(hold_lock(lock, busy, remove=True))
                _restore(staged_folder)
                _check_target(target, force=force)
                stack.callback(shutil.rmtree, stage, ignore_errors=True)
                stage.mkdir(PRIVATE_FOLDER)
                (stage / target.name).mkdir()  # the name may be too long for this disk
                (stage / target.name).rmdir()
                staged_folder.make_room(room)
            yield staged_folder
    except BaseException as error:
        if staged_folder.is_filled:
            error.add_note(f"This came after the bundle was written: {target} is complete.")
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
    entries = sorted(target.iterdir())
    names = [entry.name for entry in entries]
    is_ours = [e.name in RELEASE_FILES and e.is_file() and not e.is_symlink() for e in entries]
    foreign = [name for name, ours in zip(names, is_ours, strict=True) if not ours]
    if foreign or (names and PRIVACY_FILE not in names):
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
    sync_file(handle)


def as_bytes(content: str | bytes) -> bytes:
    """Return what a file with this content holds; texts are UTF-8."""
    return content.encode() if isinstance(content, str) else content


def _remove_empty(folders: Sequence[Path]) -> None:
    for folder in reversed(folders):
        with suppress(OSError):  # it holds what was written
            folder.rmdir()


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
