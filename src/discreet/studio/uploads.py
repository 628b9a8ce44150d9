"""Files that a browser sends: written to the private folder as they come, never more than allowed.

In: a request. Out: its fields, and at most one file under a name that can do no harm. What the
browser calls the file is shown and never believed: it becomes a plain name in a folder of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import create_form_parser
from starlette.requests import Request

from discreet.atomic import PRIVATE_FOLDER, hold_lock, is_refused_by_windows
from discreet.errors import BadUsage
from discreet.studio.forms import read_index
from discreet.text import count_of

_ODD = re.compile(r"[^\w .()+-]")
_LONGEST = 100
_LIMITS = {
    "MAX_FIELDS": 64,
    "MAX_FIELD_SIZE": 1_000_000,
    "MAX_MEMORY_FILE_SIZE": 0,
    "UPLOAD_DELETE_TMP": False,  # it is renamed; the folder goes as a whole
}


@dataclass
class Upload:
    """The fields of a form, and where its file was put."""

    fields: dict[str, str] = field(default_factory=dict)
    file: Path | None = None


def plain_name(name: str) -> str:
    r"""Return a name for a file that leads nowhere else and means nothing to a shell or a pattern.

    Examples
    --------
    >>> [plain_name(name) for name in ("../../etc/passwd", "C:\\tests\\my answers.xlsx", "..")]
    ['passwd', 'my answers.xlsx', 'answers']
    >>> plain_name("con.csv")
    '_con.csv'
    """
    last = PureWindowsPath(PurePosixPath(name).name).name
    plain = _ODD.sub("_", last).strip(" .-")
    plain = f"_{plain}" if is_refused_by_windows(plain) else plain
    stem, dot, ending = plain.rpartition(".")
    return (f"{stem[:_LONGEST]}{dot}{ending[:10]}" if stem else plain[:_LONGEST]) or "answers"


async def receive_form(request: Request, folder: Path, byte_limit: int) -> Upload:
    """Take in a form; a file that is larger than ``byte_limit`` bytes is refused and removed."""
    _check_length(request, byte_limit)
    upload_folder = Path(tempfile.mkdtemp(dir=folder, prefix="upload-"))
    try:
        return await _receive(request, upload_folder, byte_limit)
    except BaseException:
        shutil.rmtree(upload_folder, ignore_errors=True)
        raise


def _check_length(request: Request, byte_limit: int) -> None:
    stated_length = request.headers.get("content-length", "")
    if stated_length.isdigit() and read_index(stated_length, byte_limit + 1) is None:
        raise too_large(byte_limit)


async def _receive(request: Request, upload_folder: Path, byte_limit: int) -> Upload:
    taken = Upload()
    files: list[Any] = []

    def take_field(form_field: Any) -> None:
        taken.fields[(form_field.field_name or b"").decode()] = (form_field.value or b"").decode()

    def take_file(file: Any) -> None:
        # A form without a file sends one without a name; whoever sends several means the first.
        if file.file_name and not files:
            files.append(file)
        else:
            _discard(file)

    with explaining_damage():
        parser = create_form_parser(
            {"Content-Type": request.headers.get("content-type", "").encode()},
            take_field,
            take_file,
            config={**_LIMITS, "UPLOAD_DIR": str(upload_folder)},
        )
        size = 0
        async for chunk in request.stream():
            size += len(chunk)
            if size > byte_limit:
                raise too_large(byte_limit)
            parser.write(chunk)
        parser.finalize()
    taken.file = _settle(files[0], upload_folder) if files else None
    parser.close()
    return taken


def _discard(sent: Any) -> None:
    """Close and remove a file that nobody needs."""
    sent.close()
    if sent.actual_file_name:
        Path(sent.actual_file_name.decode()).unlink(missing_ok=True)


@contextmanager
def explaining_damage() -> Iterator[None]:
    """Say in words that what was sent is no form."""
    try:
        yield
    except (FormParserError, UnicodeDecodeError, ValueError) as error:
        if isinstance(error, BadUsage):
            raise
        raise BadUsage("What the browser sent could not be read. Try again.") from None


def _settle(sent: Any, folder: Path) -> Path:
    """Give the file that was sent its plain name."""
    if sent.in_memory:
        sent.flush_to_disk()
    sent.close()
    path = folder / plain_name(sent.file_name.decode("utf-8", "replace"))
    Path(sent.actual_file_name.decode()).replace(path)
    path.chmod(0o600)
    return path


def too_large(byte_limit: int) -> BadUsage:
    """Return the refusal of a large file, with the other way in."""
    return BadUsage(
        f"The file is larger than {count_of(byte_limit // 1_000_000, 'megabyte')}, which is more "
        "than a browser should send. Give its path below instead: then it is read where it is."
    )


PREFIX = "discreet-studio-"

_BUSY = BadUsage("this folder belongs to a studio that is still running")


@contextmanager
def private_folder() -> Iterator[Path]:
    """Give a new private folder, and remove it with all that is in it."""
    remove_left_behind()
    # The lock lies beside the folder, and is held before there is a folder that others could find.
    handle, lock = tempfile.mkstemp(prefix=f".{PREFIX}", suffix=".lock")
    os.close(handle)
    folder = Path(lock).with_name(Path(lock).stem[1:])
    with hold_lock(Path(lock), _BUSY, remove=True):
        folder.mkdir(PRIVATE_FOLDER)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def remove_left_behind() -> list[Path]:
    """Remove the folders of studios that ended without doing so; return which."""
    temporary_root = Path(tempfile.gettempdir())
    folders = list(temporary_root.glob(f"{PREFIX}*"))
    return [folder for folder in folders if _is_ours(folder) and _remove(folder)]


def _is_ours(folder: Path) -> bool:
    status = folder.lstat()
    is_owner = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    return folder.is_dir() and not folder.is_symlink() and is_owner


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.lock")


def _remove(folder: Path) -> bool:
    try:
        with hold_lock(_lock_of(folder), _BUSY, remove=True):
            shutil.rmtree(folder, ignore_errors=True)
    except (BadUsage, OSError):
        return False
    return True
