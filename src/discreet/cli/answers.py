"""Reading answers the way the options say: into memory, or where they are if they are large."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.cli.options import Limits, Reading
from discreet.cli.output import ReadingBar, counting_rows, working
from discreet.errors import BadUsage, DiscreetError, hide_passwords, looks_like_address

if TYPE_CHECKING:
    from discreet.answers.protocol import Answers
    from discreet.answers.responses import Responses
    from discreet.tables.resources import Resources
    from discreet.tables.roles import Reading as ReadingPlan


GIGABYTE = 1e9

DISK = ("disk", "duckdb")
"""Both names of the engine for data of any size."""

SMALL = 1 << 25
"""Bytes of a file that is simply read, without asking how many answers it may hold."""


def plan_reading(reading: Reading) -> ReadingPlan:
    """Return the options as the readers want them."""
    from discreet.tables.roles import make_reading

    return make_reading(
        reading.layout, reading.person, reading.item, reading.response,
        tuple(reading.ignore or ()), tuple(reading.group or ()),
        reading.repeats, reading.one_means, reading.at_least, _split_codes(reading.missing),
    )  # fmt: skip


def _split_codes(text: str) -> tuple[str, ...]:
    return tuple(code for code in text.split(",") if code.strip())


def is_large(source: str, reading: Reading) -> bool:
    """Say whether answers are in a database or too many for memory."""
    if _is_small_file(source):
        return False
    from discreet.tables.dataset import is_too_large

    return is_too_large(source, plan_reading(reading))


def _is_small_file(source: str) -> bool:
    # Asked first, because the engine for large data takes a while to load.
    from discreet.tables.paths import unpacked_size

    try:
        if unpacked_size(Path(source)) >= SMALL:
            return False
        with Path(source).open("rb") as file:
            return file.read(12)[8:] != b"DUCK"
    except (OSError, DiscreetError):
        return False


def check_engine(limits: Limits) -> None:
    """Refuse an engine that the command line does not have."""
    if limits.engine not in ("auto", "memory", *DISK):
        raise BadUsage(f"there is no engine {limits.engine!r} here; choose auto, memory or disk")


def goes_out_of_core(source: str, limits: Limits, reading: Reading) -> bool:
    """Say whether answers are to stay where they are."""
    if limits.engine != "auto":
        return limits.engine in DISK
    return is_large(source, reading)


def make_resources(limits: Limits) -> Resources:
    """Return the limits as the engine wants them."""
    from discreet.tables.resources import Resources

    if not isfinite(limits.memory * GIGABYTE):
        raise BadUsage(f"--memory must be a number of gigabytes, found {limits.memory}")
    return Resources(memory=int(limits.memory * GIGABYTE), spill=limits.spill)


@contextmanager
def open_answers(
    source: str, reading: Reading, limits: Limits, *, label: str, quiet: bool
) -> Iterator[Answers]:
    """Give answers, large ones where they are, and show progress while they are used."""
    if not goes_out_of_core(source, limits, reading):
        answers = read_answers(source, reading, quiet=quiet)
        with working(label, quiet=quiet):
            yield answers
        return
    from discreet.answers.streamed.answers import open_stream

    plan, resources = plan_reading(reading), make_resources(limits)
    with (
        counting_rows(label, quiet=quiet) as progress,
        open_stream(source, reading=plan, resources=resources, progress=progress) as streamed,
    ):
        yield streamed


def name_answers(source: str) -> str:
    """Return what titles and messages call the answers: never with a password."""
    from discreet.tables.dataset import describe_source, is_query
    from discreet.tables.paths import names_server

    if names_server(source) or is_query(source):
        return hide_passwords(describe_source(source))
    return "answers" if looks_like_address(source) else Path(source).name


def read_answers(source: str, reading: Reading, *, quiet: bool) -> Responses:
    """Return the answers in a file, folder or pattern, in a database, or of a query."""
    if not _is_small_file(source) and _is_database(source):
        from discreet.answers.streamed.materialise import load_responses

        with working(f"Reading {name_answers(source)}", quiet=quiet):
            return load_responses(source, reading=plan_reading(reading))
    from discreet.answers.reading import read_planned
    from discreet.tables.paths import find_files

    total = sum(path.stat().st_size for path in find_files(source))
    with ReadingBar(f"Reading {Path(source).name}", total, quiet=quiet) as progress:
        return read_planned(source, plan_reading(reading), progress)


def _is_database(source: str) -> bool:
    from discreet.tables.dataset import is_query, names_database

    return is_query(source) or names_database(source)
