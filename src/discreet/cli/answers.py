"""Reading answers the way the options say: into memory, or where they are if they are large."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.cli.options import Reading
from discreet.cli.output import ReadingBar, working

if TYPE_CHECKING:
    from discreet.responses import Responses
    from discreet.responses.columns import Reading as ReadingPlan

__all__ = ["is_large", "name_answers", "open_answers", "plan_reading", "read_answers"]

SMALL = 1 << 25
"""Bytes of a file that is simply read, without asking how many answers it may hold."""


def plan_reading(reading: Reading) -> ReadingPlan:
    """Return the options as the readers want them."""
    from discreet.responses.columns import make_reading

    return make_reading(
        reading.layout, reading.person, reading.item, reading.response,
        tuple(reading.ignore or ()), tuple(reading.group or ()),
        reading.repeats, reading.one_means, reading.at_least,
    )  # fmt: skip


def is_large(source: str, reading: Reading) -> bool:
    """Say whether answers are in a database or too many for memory."""
    if _is_small_file(source):
        return False
    from discreet.engines.outofcore.choosing import is_too_large

    return is_too_large(source, plan_reading(reading))


def _is_small_file(source: str) -> bool:
    # Asked first, because the engine for large data takes a while to load.
    try:
        if Path(source).stat().st_size >= SMALL:
            return False
        with Path(source).open("rb") as file:
            return file.read(12)[8:] != b"DUCK"
    except OSError:
        return False


def open_answers(source: str, reading: Reading, *, quiet: bool) -> Any:
    """Return answers or counts for ``fit``, which leaves large answers where they are."""
    if not is_large(source, reading):
        return read_answers(source, reading, quiet=quiet)
    from discreet.engines.outofcore import open_answers as leave_answers

    with working(f"Reading {name_answers(source)}", quiet=quiet):
        return leave_answers(source, reading=plan_reading(reading))


def name_answers(source: str) -> str:
    """Return what titles and messages call the answers: never with a password."""
    from discreet.responses.opening import names_server

    if not names_server(source):
        return Path(source).name
    from discreet.engines.outofcore.origins import describe_source

    return describe_source(source)


def read_answers(source: str, reading: Reading, *, quiet: bool) -> Responses:
    """Return the answers in a file, folder or pattern, in a database, or of a query."""
    if not _is_small_file(source) and _is_database(source):
        from discreet.engines.outofcore import load_responses

        with working(f"Reading {name_answers(source)}", quiet=quiet):
            return load_responses(source, reading=plan_reading(reading))
    from discreet.responses import read_responses
    from discreet.responses.opening import find_files

    total = sum(path.stat().st_size for path in find_files(source))
    with ReadingBar(f"Reading {Path(source).name}", total, quiet=quiet) as progress:
        return read_responses(
            source,
            layout=reading.layout,
            person=reading.person,
            item=reading.item,
            response=reading.response,
            ignore=tuple(reading.ignore or ()),
            group=tuple(reading.group or ()),
            repeats=reading.repeats,
            one_means=reading.one_means,
            at_least=reading.at_least,
            progress=progress,
        )


def _is_database(source: str) -> bool:
    from discreet.engines.outofcore.origins import is_query, names_database

    return is_query(source) or names_database(source)
