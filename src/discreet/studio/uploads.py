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

from discreet.atomic import hold_lock
from discreet.errors import BadUsage
from discreet.markup import count_of
from discreet.studio.forms import read_index

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
    """
    last = PureWindowsPath(PurePosixPath(name).name).name
    plain = _ODD.sub("_", last).strip(" .-")
    stem, dot, ending = plain.rpartition(".")
    return (f"{stem[:_LONGEST]}{dot}{ending[:10]}" if stem else plain[:_LONGEST]) or "answers"


async def receive_form(request: Request, folder: Path, most: int) -> Upload:
    """Take in a form; a file that is larger than ``most`` bytes is refused and removed."""
    _check_length(request, most)
    place = Path(tempfile.mkdtemp(dir=folder, prefix="upload-"))
    try:
        return await _receive(request, place, most)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise


def _check_length(request: Request, most: int) -> None:
    said = request.headers.get("content-length", "")
    if said.isdigit() and read_index(said, most + 1) is None:
        raise too_large(most)


async def _receive(request: Request, place: Path, most: int) -> Upload:
    taken = Upload()
    files: list[Any] = []

    def take_field(one: Any) -> None:
        taken.fields[(one.field_name or b"").decode()] = (one.value or b"").decode()

    def take_file(one: Any) -> None:
        # A form without a file sends one without a name; whoever sends several means the first.
        if one.file_name and not files:
            files.append(one)
        else:
            _discard(one)

    with explaining_damage():
        parser = create_form_parser(
            {"Content-Type": request.headers.get("content-type", "").encode()},
            take_field,
            take_file,
            config={**_LIMITS, "UPLOAD_DIR": str(place)},
        )
        size = 0
        async for chunk in request.stream():
            size += len(chunk)
            if size > most:
                raise too_large(most)
            parser.write(chunk)
        parser.finalize()
    taken.file = _settle(files[0], place) if files else None
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


def _settle(sent: Any, place: Path) -> Path:
    """Give the file that was sent its plain name."""
    if sent.in_memory:
        sent.flush_to_disk()
    sent.close()
    path = place / plain_name(sent.file_name.decode("utf-8", "replace"))
    Path(sent.actual_file_name.decode()).rename(path)
    path.chmod(0o600)
    return path


def too_large(most: int) -> BadUsage:
    """Return the refusal of a large file, with the other way in."""
    return BadUsage(
        f"The file is larger than {count_of(most // 1_000_000, 'megabyte')}, which is more than a "
        "browser should send. Give its path below instead: then it is read where it is."
    )


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
