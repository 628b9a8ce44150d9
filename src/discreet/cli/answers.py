"""Reading a file of answers the way the options say, with a progress bar for large ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from discreet.cli.options import Reading
from discreet.cli.output import ReadingBar

if TYPE_CHECKING:
    from discreet.responses import Responses

__all__ = ["read_answers"]


def read_answers(file: str, reading: Reading, *, quiet: bool) -> Responses:
    """Return the answers in ``file``."""
    from discreet.responses import read_responses
    from discreet.responses.opening import find_files

    total = sum(path.stat().st_size for path in find_files(file))
    with ReadingBar(f"Reading {Path(file).name}", total, quiet=quiet) as progress:
        return read_responses(
            file,
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
