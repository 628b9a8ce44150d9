"""``discreet verify``: whether a bundle is as it was written."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options import Shared, command
from discreet.cli.output import say

Bundle = Annotated[Path, typer.Argument(metavar="DIR", help="What `release` wrote.")]


def verify(bundle: Bundle, *, shared: Shared) -> None:
    """Say whether a release is whole: nothing missing, nothing changed."""
    del shared
    from discreet.publishing.verification import NO_CHECKSUMS, check_bundle

    files = check_bundle(bundle).get("files")
    if files is None:
        say(f"{bundle}: {NO_CHECKSUMS}.")
    else:
        say(f"{bundle} is whole: {len(files) + 1} files are as they were written.")


def add_to(app: typer.Typer) -> None:
    """Make ``verify`` a command of ``app``."""
    command(app, "verify")(verify)
