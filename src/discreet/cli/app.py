"""The command line as a whole: its commands, its global options, its last line of defence."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import typer
from typer.main import get_command

from discreet.cli.analysis import compare_testlets, dif, mislabelled, score
from discreet.cli.answers import counts, merge
from discreet.cli.approvals import approve, change_approver, correct, make_key, propose, withdraw
from discreet.cli.check import check
from discreet.cli.compare import propose as propose_ranking
from discreet.cli.compare import rank
from discreet.cli.compare import release as release_ranking
from discreet.cli.failures import BY_SIGNAL, INTERRUPTED, USAGE, guard, heeding_signals
from discreet.cli.fit import fit, report
from discreet.cli.ledger import (
    check_ledger,
    create_ledger,
    declare_population,
    report_spending,
    resume,
    show_ledger,
)
from discreet.cli.linking import add_to_bank, create_bank, drift, link, show_bank
from discreet.cli.options import PanelGroup, add_family, register, spread
from discreet.cli.output import speaking
from discreet.cli.plan import audit, plan
from discreet.cli.ranks import compare_items, top
from discreet.cli.release import RARE_OPTIONS, release, translate, verify
from discreet.cli.simulate import demo, simulate
from discreet.cli.studio import studio
from discreet.errors import looks_like_address, write_line

SETTINGS = {"help_option_names": ["--help", "-h"], "max_content_width": 100}

# Plain help instead of typer's boxes: those load a Markdown and a syntax-highlighting library
# first and double the time to the first word (0.22 s against 0.10 s).
app = typer.Typer(
    name="discreet",
    cls=PanelGroup,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=SETTINGS,
)


def describe() -> None:
    """Rasch item difficulties with uncertainty, and their release under differential privacy.

    Results go to standard output, progress and warnings to standard error. Exit codes: 0 done,
    2 wrong usage, 3 bad data, 4 budget exceeded, 5 not identifiable, 130 interrupted, 1 other.
    """


ANALYSE, PUBLISH, MORE = "Analyse", "Publish with a privacy guarantee", "More"

app.callback()(spread(describe, is_root=True))
for command in (demo, fit, check, top, score, dif, link, drift, simulate):
    register(app, command, panel=ANALYSE)
register(app, plan, panel=PUBLISH, mechanisms="answers")
register(app, release, panel=PUBLISH, mechanisms="answers", rarely=RARE_OPTIONS)
register(app, verify, panel=PUBLISH)
register(app, audit, panel=PUBLISH, mechanisms="answers comparisons")
ledger = add_family(app, "ledger", "Keep account of the privacy budget.", panel=PUBLISH)
register(ledger, create_ledger, "create")
register(ledger, declare_population, "population")
register(ledger, change_approver, "approver")
register(ledger, show_ledger, "show")
register(ledger, report_spending, "report")
register(ledger, resume)
register(ledger, check_ledger, "check")
steward = add_family(
    app, "steward", "Propose, approve, translate, correct and withdraw releases.", panel=PUBLISH
)
register(app, studio, panel=MORE)
table = add_family(app, "table", "Count tables of answers, and check their keys.", panel=MORE)
result = add_family(app, "result", "Read saved calibrations and releases.", panel=MORE)
bank = add_family(app, "bank", "Keep difficulties from many calibrations on one scale.", panel=MORE)
register(bank, create_bank, "create")
register(bank, add_to_bank, "add")
register(bank, show_bank, "show")
compare = add_family(app, "compare", "Rank objects from pairwise comparisons.", panel=MORE)
register(compare, rank)
register(compare, propose_ranking, "propose", mechanisms="comparisons")
register(compare, release_ranking, mechanisms="comparisons")

GROUPED: tuple[tuple[typer.Typer, str, str, Callable[..., None]], ...] = (
    (steward, "propose", "propose", propose),
    (steward, "approve", "approve", approve),
    (steward, "key", "key", make_key),
    (steward, "translate", "translate", translate),
    (steward, "correct", "correct", correct),
    (steward, "withdraw", "withdraw", withdraw),
    (table, "counts", "counts", counts),
    (table, "merge", "merge", merge),
    (table, "mislabelled", "mislabelled", mislabelled),
    (table, "testlets", "testlets", compare_testlets),
    (result, "report", "report", report),
    (result, "compare", "compare-items", compare_items),
)
"""Commands in families, and their spelling at the top level before, which still works."""

for family, name, former, command in GROUPED:
    explained = "answers" if command is propose else ""
    hides = RARE_OPTIONS[:5] if command is propose else ()
    register(family, command, name, mechanisms=explained, rarely=hides)
    register(app, command, former, mechanisms=explained, rarely=hides, hidden=True)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    code = 0
    if not _has_streams():
        return USAGE
    _survive_odd_names()
    with speaking(), heeding_signals() as came:
        try:
            with guard():
                code = _parse_and_call(arguments)
        except typer.Exit as end:
            code = int(end.exit_code)
    return BY_SIGNAL + came[0] if came and code == INTERRUPTED else code


def _has_streams() -> bool:
    """Refuse to run without standard output: results would be lost after the work is done."""
    if sys.stderr is None:  # print would send what belongs there to standard output
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (for as long as the program runs)
    if sys.stdout is None:
        message = "Error: standard output is closed, so that no result could be shown. Open it, "
        print(f"{message}or send it to a file or to /dev/null.", file=sys.stderr)
    return sys.stdout is not None


@cache
def _build() -> Callable[..., Any]:
    # A tenth of a second, which one process need not pay twice.
    return get_command(app)


def _parse_and_call(arguments: Sequence[str] | None) -> int:
    try:
        code = _build()(args=arguments, prog_name="discreet", standalone_mode=False)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception as error:
        if not hasattr(error, "show"):
            raise
        # The parser's errors repeat what was typed; help, shown without a command, does not.
        if type(error).__name__ != "NoArgsIsHelpError":
            error.message = _hide_addresses(error.message, arguments)  # type: ignore[attr-defined]
        error.show()
        return int(error.exit_code)  # type: ignore[attr-defined]
    return int(code or 0)


def _hide_addresses(message: str, arguments: Sequence[str] | None) -> str:
    for typed in sys.argv[1:] if arguments is None else arguments:
        for text in (typed, typed.partition("=")[2]):
            if looks_like_address(text):
                message = message.replace(repr(text)[1:-1], "***").replace(text, "***")
    return write_line(message)


def _survive_odd_names() -> None:
    # An item called "größe" on an ASCII terminal is worth an escape sequence, not a failure.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
