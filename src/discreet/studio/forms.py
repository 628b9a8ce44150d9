"""Forms: what a browser sends, as fields with their meaning and at most one file.

In: a request. Out: keywords for the library, and a file under a name that can do no harm. A field
that is left blank is not stated. What the browser calls a file is shown and never believed: it
becomes a plain name in a folder of its own.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import tomllib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import create_form_parser
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from discreet.atomic import is_refused_by_windows
from discreet.choices import PlainDict, PlainMapping
from discreet.errors import BadUsage, DiscreetError, Remedy
from discreet.html import TEMPLATES
from discreet.studio.language import refuse, tell
from discreet.tables.paths import settle_path


@dataclass(frozen=True)
class Field:
    """One field of a form.

    Attributes
    ----------
    name
        The keyword that it sets.
    label, help
        What stands beside it, and what it means: sentences of the catalogue.
    choices
        Values and their words; empty for a field to type in.
    read
        From what was typed to the value.
    write
        From the value to what stands in the field.
    lines
        How many lines can be typed.
    """

    name: str
    label: str
    help: str
    choices: Mapping[str, str] = field(default_factory=dict)
    read: Callable[[str], Any] = str
    write: Callable[[Any], str] = str
    lines: int = 1

    def refuse(self, words: str) -> BadUsage:
        """Return the refusal of what was typed, which is shown at the field."""
        return refuse_fields({self.name: f"{tell.term(self.label)}: {words}"})


def refuse_fields(problems: Mapping[str, str]) -> BadUsage:
    """Return the refusal of what was typed into some fields, by their names."""
    refusal = BadUsage(" ".join(map(end_sentence, problems.values())))
    return refusal.offering(*(Remedy("", {}, name, words) for name, words in problems.items()))


class Problem(str):
    """What a page says of a refusal; ``fields`` has what is said at each field, by its name."""

    fields: Mapping[str, str] = {}

    @classmethod
    def of(cls, error: DiscreetError) -> Problem:
        """Return a refusal as a page says it."""
        problem = cls(error)
        problem.fields = {one.asks: one.change for one in error.remedies if not one.words}
        return problem


class FieldKind(NamedTuple):
    """How a field is read and written, and choices beside those of its texts."""

    read: Callable[[str], Any] = str
    write: Callable[[Any], str] = str
    choices: Mapping[str, str] = {}


@cache
def _read_texts() -> PlainDict:
    return tomllib.loads((TEMPLATES / "studio" / "fields.toml").read_text("utf-8"))


def load_fields(form: str, **kinds: FieldKind) -> tuple[Field, ...]:
    """Return the fields of a form with their texts; ``kinds`` are those that are no texts."""
    fields = []
    for name, text in _read_texts()[form].items():
        kind = kinds.get(name, FieldKind())
        choices = {**text.get("choices", {}), **kind.choices}
        help_text, lines = text.get("help", ""), text.get("lines", 1)
        fields.append(Field(name, text["label"], help_text, choices, kind.read, kind.write, lines))
    return tuple(fields)


def read_fields(fields: Sequence[Field], sent: PlainMapping) -> PlainDict:
    """Return the keywords that a form says; those of blank fields are absent."""
    keywords, problems = {}, {}
    for form_field in fields:
        text = str(sent.get(form_field.name, "")).strip()
        if not text:
            continue
        if form_field.choices and text not in form_field.choices:
            raise form_field.refuse(tell("{text} is not one of its choices.", text=repr(text)))
        try:
            keywords[form_field.name] = form_field.read(text)
        except BadUsage as error:
            problems[form_field.name] = f"{tell.term(form_field.label)}: {error}"
    if problems:
        raise refuse_fields(problems)
    return keywords


def check_needed(
    fields: Sequence[Field], needed: Sequence[str], entries: PlainMapping, words: str
) -> None:
    """Refuse a form that lacks what it needs."""
    missing = [one for one in fields if one.name in needed and one.name not in entries]
    if missing:
        raise refuse_fields({one.name: f"{tell.term(one.label)}: {words}" for one in missing})


def write_fields(fields: Sequence[Field], options: PlainMapping) -> dict[str, str]:
    """Return the values in the fields of a form."""
    return {one.name: one.write(options[one.name]) if one.name in options else "" for one in fields}


def read_list(text: str) -> list[str]:
    """Return names or codes that are parted by commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def write_list(values: object) -> str:
    """Return names or codes parted by commas."""
    return ",".join(map(str, values)) if isinstance(values, list | tuple) else str(values)


def read_number(text: str) -> float:
    """Return a number; a decimal comma is one too."""
    try:
        return float(text.replace(",", "."))
    except ValueError:
        words = tell("{text} is no number. Type one, such as 3 or 2.5.", text=repr(text))
        raise BadUsage(words) from None


def find_path(text: str) -> Path:
    """Return the path that somebody types, also in the quotes that file managers add."""
    plain = text.strip().strip("'\"")
    if not Path(plain).is_absolute() and not plain.startswith("~"):
        raise refuse(
            "{text} does not say where the file is. Type its whole path, from / on.",
            text=repr(text),
        )
    return settle_path(plain)


#: A number of persons as offices write it: 10000, 10,000, 10.000 or 10 000.
_WHOLE = re.compile(r"\d{1,15}|\d{1,3}([.,' \u00a0\u2019\u202f]\d{3}){1,4}", re.ASCII)


def read_whole(text: str) -> int:
    """Return a whole number, however its thousands are parted.

    Examples
    --------
    >>> [read_whole(text) for text in ("250", "10,000", "1.250.000")]
    [250, 10000, 1250000]
    """
    if not _WHOLE.fullmatch(text):
        raise refuse("{text} is no whole number. Type one, such as 25 or 10,000.", text=repr(text))
    return int(re.sub(r"\D", "", text))


def read_index(text: str, length: int) -> int | None:
    """Return the place in a list that an address or a form names; None where there is none.

    Examples
    --------
    >>> read_index("2", 3), read_index("3", 3), read_index("9" * 5000, 3), read_index("²", 3)
    (2, None, None, None)
    """
    number = int(text) if re.fullmatch(r"\d{1,9}", text, re.ASCII) else length
    return number if number < length else None


WHOLE = FieldKind(read_whole)
NUMBER = FieldKind(read_number, lambda value: f"{value:g}")
LIST = FieldKind(read_list, write_list)


def end_sentence(words: str) -> str:
    """Return words that another sentence may follow."""
    return words if words.endswith((".", "!", "?")) else f"{words}."


def taking_form(
    handle: Callable[[Request, dict[str, str]], Response], show_again: Callable[..., Response]
) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that is given what a form holds, and may wait without holding up others.

    Where it refuses, ``show_again`` shows the page of the form with the reason and what was typed.
    """

    def answer(request: Request, sent: dict[str, str]) -> Response:
        try:
            return handle(request, sent)
        except DiscreetError as error:
            return show_again(request, Problem.of(error), sent)

    async def receive(request: Request) -> Response:
        form = await request.form(max_fields=MOST_FIELDS)
        return await run_in_threadpool(answer, request, {k: str(v) for k, v in form.items()})

    return receive


#: A field for the use of each column, and some more.
MOST_FIELDS = 100_000
_ODD = re.compile(r"[^\w .()+-]")
_LONGEST = 100
#: Files that are read together, at most.
MOST_FILES = 40
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
    stated_length = request.headers.get("content-length", "")
    if stated_length.isdigit() and read_index(stated_length, byte_limit + 1) is None:
        raise too_large(byte_limit)
    upload_folder = Path(tempfile.mkdtemp(dir=folder, prefix="upload-"))
    try:
        return await _receive(request, upload_folder, byte_limit)
    except BaseException:
        shutil.rmtree(upload_folder, ignore_errors=True)
        raise


async def _receive(request: Request, upload_folder: Path, byte_limit: int) -> Upload:
    taken = Upload()
    files: list[Any] = []

    def take_field(form_field: Any) -> None:
        taken.fields[(form_field.field_name or b"").decode()] = (form_field.value or b"").decode()

    def take_file(file: Any) -> None:
        # A form without a file sends one without a name.
        if file.file_name and len(files) < MOST_FILES:
            files.append(file)
            return
        file.close()
        if file.actual_file_name:
            Path(file.actual_file_name.decode()).unlink(missing_ok=True)

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
    if len(files) == 1:
        taken.file = _settle(files[0], upload_folder)
    elif files:  # several tables with the same columns are one
        taken.file = upload_folder / "files"
        taken.file.mkdir(mode=0o700)
        for number, file in enumerate(files, start=1):
            _settle(file, taken.file, f"{number:02} ")
    parser.close()
    return taken


@contextmanager
def explaining_damage() -> Iterator[None]:
    """Say in words that what was sent is no form."""
    try:
        yield
    except (FormParserError, UnicodeDecodeError, ValueError) as error:
        if isinstance(error, BadUsage):
            raise
        raise refuse("What the browser sent could not be read. Try again.") from None


def _settle(sent: Any, folder: Path, prefix: str = "") -> Path:
    """Give the file that was sent its plain name; a prefix keeps equal names apart."""
    if sent.in_memory:
        sent.flush_to_disk()
    sent.close()
    path = folder / plain_name(sent.file_name.decode("utf-8", "replace"))
    if prefix and path.exists():
        path = path.with_name(prefix + path.name)
    Path(sent.actual_file_name.decode()).replace(path)
    path.chmod(0o600)
    return path


def too_large(byte_limit: int) -> BadUsage:
    """Return the refusal of a large file, with the other way in."""
    return BadUsage(
        tell.count(
            byte_limit // 1_000_000,
            "The file is larger than {number} megabyte, which is more than a browser should send. "
            "Give its path below instead: then it is read where it is.",
            "The file is larger than {number} megabytes, which is more than a browser should "
            "send. Give its path below instead: then it is read where it is.",
        )
    )
