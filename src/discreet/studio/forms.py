"""Forms: what a field is called, what it means in the words of an office, and how it is read.

In: what a browser sent. Out: keywords for the library. A field that is left blank is not said.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from discreet.errors import BadUsage
from discreet.tables.paths import settle_path


@dataclass(frozen=True)
class Field:
    """One field of a form.

    Attributes
    ----------
    name
        The keyword that it sets.
    label, help
        What stands beside it, and what it means.
    choices
        Values and their words; empty for a field to type in.
    read
        From what was typed to the value.
    write
        From the value to what stands in the field.
    """

    name: str
    label: str
    help: str
    choices: Mapping[str, str] = field(default_factory=dict)
    read: Callable[[str], Any] = str
    write: Callable[[Any], str] = str


def read_fields(fields: Sequence[Field], sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords that a form says; those of blank fields are absent."""
    keywords = {}
    for form_field in fields:
        text = str(sent.get(form_field.name, "")).strip()
        if not text:
            continue
        if form_field.choices and text not in form_field.choices:
            raise BadUsage(f"{form_field.label}: {text!r} is not one of its choices.")
        try:
            keywords[form_field.name] = form_field.read(text)
        except BadUsage as error:
            raise BadUsage(f"{form_field.label}: {error}") from None
    return keywords


def write_fields(fields: Sequence[Field], options: Mapping[str, Any]) -> dict[str, str]:
    """Return what stands in the fields of a form."""
    return {one.name: one.write(options[one.name]) if one.name in options else "" for one in fields}


def read_list(text: str) -> list[str]:
    """Return names or codes that are parted by commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def write_list(values: Any) -> str:
    """Return names or codes parted by commas."""
    return ",".join(map(str, values)) if isinstance(values, list | tuple) else str(values)


def read_number(text: str) -> float:
    """Return a number; a decimal comma is one too."""
    try:
        return float(text.replace(",", "."))
    except ValueError:
        raise BadUsage(f"{text!r} is no number. Type one, such as 3 or 2.5.") from None


def find_path(text: str) -> Path:
    """Return the path that somebody types, also in the quotes that file managers add."""
    plain = text.strip().strip("'\"")
    if not Path(plain).is_absolute() and not plain.startswith("~"):
        raise BadUsage(f"{text!r} does not say where the file is. Type its whole path, from / on.")
    return settle_path(plain)


_WHOLE = re.compile(r"\d{1,15}|\d{1,3}([.,' \u00a0\u2019\u202f]\d{3}){1,4}", re.ASCII)
"""A number of persons as offices write it: 10000, 10,000, 10.000 or 10 000."""


def read_whole(text: str) -> int:
    """Return a whole number, however its thousands are parted.

    Examples
    --------
    >>> [read_whole(text) for text in ("250", "10,000", "1.250.000")]
    [250, 10000, 1250000]
    """
    if not _WHOLE.fullmatch(text):
        raise BadUsage(f"{text!r} is no whole number. Type one, such as 25 or 10,000.")
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


def write_number(value: float) -> str:
    """Return a number as somebody types it."""
    return f"{value:g}"


def end_sentence(words: str) -> str:
    """Return words that another sentence may follow."""
    return words if words.endswith((".", "!", "?")) else f"{words}."


def taking_form(
    handle: Callable[[Request, dict[str, str]], Response],
) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that is given what a form holds, and may wait without holding up others."""

    async def receive(request: Request) -> Response:
        form = await request.form()
        return await run_in_threadpool(handle, request, {k: str(v) for k, v in form.items()})

    return receive
