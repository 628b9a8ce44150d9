"""Run the command line as a user types it: in this process (fast) or as a program (real)."""

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

from discreet.cli import main

PAGES_WITH_OUTPUT = ("cli.md", "stewards.md")
"""Pages of docs/ whose every command is run and its output compared with what they show."""
LSAT_ITEMS = [f"Item{number}" for number in range(1, 6)]


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out, parse_constant=refuse_constant)


def refuse_constant(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


def discreet(*arguments: object) -> Ended:
    """Run in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return Ended(code, out.getvalue(), err.getvalue())


def environment(**changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "DISCREET_DEBUG"}
    return {**kept, **changes}


def program(*arguments: object, cwd: object = None, **changes: str) -> Ended:
    """Run as a program of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "discreet", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment(**changes),
        timeout=60,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)
