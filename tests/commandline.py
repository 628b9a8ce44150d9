"""Run the command line as a user types it: in this process (fast) or as a program (real)."""

import io
import json
import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

from discreet.cli import main

WORKFLOW = "steward-workflow.md"
"""The page that test_steward_workflow.py types, and whose ledger it checks person by person."""
PAGES_WITH_OUTPUT = ("cli.md", "quickstart.md", "stewards.md", WORKFLOW)
"""Pages of docs/ whose every command is run and its output compared with what they show."""
BLOCK = re.compile(
    r"(?P<varies><!-- output varies -->\n)?(?P<refused><!-- refused -->\n)?"
    r"(?:<!-- not run[^\n]*\n)?```console\n(?P<code>.*?)```",
    re.S,
)
VARYING = re.compile(r"(?:[0-9a-f]{16,}|\d{4}-\d\d-\d\d(?:T[\d:+]+)?|-?\d[\d,.]*| )+")
"""Keys, dates, numbers, and the width that they take."""
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
        timeout=600,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def examples(page):
    for block in BLOCK.finditer(page.read_text()):
        joined = block["code"].replace("\\\n", " ")
        command, _, shown = joined.removeprefix("$ ").partition("\n")
        yield command, shown, block


def assert_alike(printed, shown):
    """Every line is there, but for what varies; a line of dots stands for any lines."""
    wanted, found = (VARYING.sub(" ", text).splitlines() for text in (shown, printed))
    pattern = "".join(r"(?:.*\n)*?" if one == "..." else re.escape(one) + r"\n" for one in wanted)
    assert re.fullmatch(pattern, "".join(f"{one}\n" for one in found)), f"{shown}\n{printed}"


def type_page(page):
    """Type the commands of a page one after the other, and compare what they print."""
    found = list(examples(page))
    assert len(found) >= 5
    for command, shown, block in found:
        first, *arguments = shlex.split(command)
        if first != "discreet":
            subprocess.run(command, shell=True, check=True)
            continue
        ended = discreet(*arguments)
        assert bool(ended.code) == bool(block["refused"]), f"{command}\n{ended.err}"
        printed = ended.err if block["refused"] else ended.out
        if block["varies"]:
            assert_alike(printed, shown or "...")
        else:
            assert printed == shown, command
