"""``discreet studio``: the whole workflow in a browser, on this machine."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from discreet.cli.options import argument, flag, option
from discreet.cli.output import note, say
from discreet.errors import MissingExtra

NEEDED = ("starlette", "uvicorn", "python_multipart")


def studio(
    file: Annotated[
        Path | None, argument("FILE", "Answers to begin with; without it the page asks for them.")
    ] = None,
    *,
    port: Annotated[
        int,
        option("N", "Where to listen on this machine (default: a free port).", min=0, max=65535),
    ] = 0,
    browser: Annotated[
        bool, flag("Print the address and open no browser.", " /--no-browser")
    ] = True,
    keep: Annotated[
        Path | None,
        option("DIR", "Where ledgers and releases are kept (default: discreet in your home)."),
    ] = None,
) -> None:
    """Work in the browser: answers, calibration, release. Nothing leaves this machine."""
    if not all(map(find_spec, NEEDED)):
        raise MissingExtra("discreet studio", "studio")
    from discreet.studio.server import run_studio
    from discreet.tables.paths import find_files

    if file is not None:
        find_files(file)
    run_studio(file, port, _announce, note, browser=browser, keep=keep)


def _announce(address: str) -> None:
    say(address)
    # The reader of the first line may be a program; it must not wait for a full buffer.
    print(end="", flush=True)
    note(
        "The studio runs at this address, for you alone. The address works once; press Enter for a "
        "new one. End the studio with Ctrl-C."
    )
