"""The command line as a whole: its commands, its global options, its handler of errors."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from copy import copy
from functools import cache
from importlib.util import find_spec
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import typer
from typer.main import get_command

from discreet.cli import (
    analysis,
    answers,
    approvals,
    fit,
    leaderboard,
    ledger,
    linking,
    release,
    simulate,
)
from discreet.cli.options import PanelGroup, add_family, register, spread
from discreet.cli.output import (
    BY_SIGNAL,
    INTERRUPTED,
    USAGE,
    guard,
    heeding_signals,
    note,
    say,
    speaking,
)
from discreet.errors import MissingExtra, looks_like_address, write_line
from discreet.hints import find_choice

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


NEEDED = ("starlette", "uvicorn", "python_multipart")


def studio(
    file: Path | None = None, *, port: int = 0, browser: bool = True, keep: Path | None = None
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


ANALYSE, PUBLISH, MORE = "Analyse", "Publish with a privacy guarantee", "More"

#: Commands whose help explains mechanisms, and for which kinds of data.
EXPLAINED = {
    **dict.fromkeys((simulate.plan, release.release, approvals.propose), "answers"),
    **dict.fromkeys((release.release_ranking, approvals.propose_ranking), "comparisons"),
    simulate.audit: "answers groups comparisons",
}

app.callback()(spread(describe, is_root=True))
for panel, commands in {
    ANALYSE: (
        *(simulate.demo, fit.fit, fit.check, linking.top, analysis.score, analysis.dif),
        *(leaderboard.leaderboard, linking.link, linking.drift, simulate.simulate),
    ),
    PUBLISH: (simulate.plan, release.release, release.verify, simulate.audit),
}.items():
    for command in commands:
        register(app, command, panel=panel, mechanisms=EXPLAINED.get(command, ""))

FAMILIES = {
    "ledger": (PUBLISH, "Keep account of the privacy budget."),
    "steward": (PUBLISH, "Propose, approve, translate, correct and withdraw releases."),
    "table": (MORE, "Count tables of answers, and check their keys."),
    "result": (MORE, "Read saved calibrations and releases."),
    "bank": (MORE, "Keep difficulties from many calibrations on one scale."),
    "compare": (MORE, "Rank objects from pairwise comparisons."),
}
families = {
    name: add_family(app, name, about, panel=panel) for name, (panel, about) in FAMILIES.items()
}
register(app, studio, panel=MORE)

#: Commands in families.
GROUPED: dict[str, Callable[..., None]] = {
    "ledger create": ledger.create_ledger,
    "ledger population": ledger.declare_population,
    "ledger approver": approvals.change_approver,
    "ledger show": ledger.show_ledger,
    "ledger report": ledger.report_spending,
    "ledger resume": ledger.resume,
    "ledger check": ledger.check_ledger,
    "steward propose": approvals.propose,
    "steward approve": approvals.approve,
    "steward key": approvals.make_key,
    "steward translate": release.translate,
    "steward correct": approvals.correct,
    "steward withdraw": approvals.withdraw,
    "table counts": answers.counts,
    "table merge": answers.merge,
    "table mislabelled": analysis.mislabelled,
    "table testlets": analysis.compare_testlets,
    "result report": fit.report,
    "result compare": linking.compare_items,
    "bank create": linking.create_bank,
    "bank add": linking.add_to_bank,
    "bank show": linking.show_bank,
    "compare rank": linking.rank_objects,
    "compare propose": approvals.propose_ranking,
    "compare release": release.release_ranking,
}

for path, command in GROUPED.items():
    family, name = path.split()
    explained = EXPLAINED.get(command, "")
    register(families[family], command, name, mechanisms=explained)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    code = 0
    # Refuse to run without standard output: results would be lost after the work is done.
    if sys.stderr is None:  # print would send what belongs there to standard output
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (for as long as the program runs)
    if sys.stdout is None:
        message = "Error: standard output is closed, so that no result could be shown. Open it, "
        print(f"{message}or send it to a file or to /dev/null.", file=sys.stderr)
        return USAGE
    # An item called "größe" on an ASCII terminal is worth an escape sequence, not a failure.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    with speaking(), heeding_signals() as came:
        try:
            with guard():
                code = _parse_and_call(arguments)
        except typer.Exit as end:
            code = int(end.exit_code)
    return BY_SIGNAL + came[0] if came and code == INTERRUPTED else code


@cache
def _build(typed: str) -> Callable[..., Any]:
    """Return the parser; of the command alone that was typed, where its name comes first."""
    # All of them take a tenth of a second.
    alone = copy(app)
    alone.registered_commands = [one for one in app.registered_commands if one.name == typed]
    alone.registered_groups = [
        one for one in app.registered_groups if (one.typer_instance or app).info.name == typed
    ]
    return get_command(alone if alone.registered_commands or alone.registered_groups else app)


def _name_choice(error: Any) -> str:
    """Return the message of the parser, with the choice that is meant where one is near."""
    message = str(error.message)
    match = re.search("'(.+?)' is not one of (.+)", message)
    meant = find_choice(match[1], re.findall("'(.+?)'", match[2])) if match else ""
    return f"{message} Did you mean {meant!r}?" if meant else message


def _parse_and_call(arguments: Sequence[str] | None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    try:
        parse = _build(words[0] if words else "")
        code = parse(args=arguments, prog_name="discreet", standalone_mode=False)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception as error:
        if not hasattr(error, "show"):
            raise
        # The parser's errors repeat what was typed; help, shown without a command, does not.
        if type(error).__name__ != "NoArgsIsHelpError":
            message = _name_choice(error)
            for typed in words:
                for text in (typed, typed.partition("=")[2]):
                    if looks_like_address(text):
                        message = message.replace(repr(text)[1:-1], "***").replace(text, "***")
            error.message = write_line(message)  # type: ignore[attr-defined]
        error.show()
        return int(error.exit_code)  # type: ignore[attr-defined]
    return int(code or 0)
