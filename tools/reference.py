"""Write the pages of the documentation that list names: commands, options, public names.

``python -m tools.reference`` writes the second half of ``docs/cli.md`` from the command line and
``docs/api.md`` from the docstrings of ``discreet.__all__``. A test compares both pages with what
this tool writes.
"""

import copy
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.main import get_command

import discreet
from discreet.cli.app import app
from discreet.cli.options import Everywhere
from discreet.privacy.mechanisms import MECHANISMS

DOCS = Path(__file__).parents[1] / "docs"
NOTE = "<!-- Written by `python -m tools.reference`; do not edit. -->"
READING = "Reading the file"
RARE = "Not listed by `--help`"
EVERYWHERE = {field.replace("_", "-") for field in Everywhere.__dataclass_fields__} | {"help"}

COMMANDS_NOTE = "<!-- All that follows is written by `python -m tools.reference`; do not edit. -->"
NAMES_HEAD = f"""# Public names

{NOTE}

Every public name, by task. `help(discreet.fit)` has the details, and so has the
[reference](site/reference.md) of the site. [In Python](python.md) shows how they work together.
"""
GROUPS = {
    "Read answers": "inspect_table Inspection read_responses Reading ReadingWords Responses "
    "datasets",
    "Calibrate": "fit Estimate FitsByGroup load count_pairs PairCounts Rasch "
    "read_routing RoutingDesign",
    "Check the model": "analysis find_dif DifTable figures",
    "Rank and compare items": "rank Ranking rank_ranges RankRanges compare_items ItemComparison "
    "leaderboard Leaderboard",
    "Measure persons": "score PersonScores Scale item_information next_item adaptive "
    "select_items predict_scores PredictedScores",
    "Link and follow": "link_calibrations Link find_drift Drift create_bank grow_bank read_bank "
    "write_bank Bank",
    "Rate": "read_ratings Ratings",
    "Plan": "plan Plan simulate simulate_comparisons simulate_ratings",
    "Publish with a guarantee": "Budget release Published Guarantee PrivateRasch read_release refit"
    " verify release_dif PrivateDif release_means PrivateMeans",
    "Account and approve": "Ledger check_ledger resume_release propose approve release_request "
    "correction_notice withdrawal_notice",
    "Compare pairwise": "read_comparisons Comparisons count_comparisons rank_comparisons Strengths "
    "release_comparisons PublishedRanking read_released_ranking",
    "Errors": "errors",
}
"""Public names by task; a name that is in no group is listed under the last heading, More."""


def group_names() -> dict[str, list[str]]:
    """Return the public names of the package by task."""
    public = set(discreet.__all__) - {"__version__"} | {"analysis", "figures"}
    grouped = {task: [n for n in names.split() if n in public] for task, names in GROUPS.items()}
    rest = public - {name for names in grouped.values() for name in names}
    return {**grouped, "More": sorted(rest)} if rest else grouped


def describe_name(name: str) -> str:
    """Return the first paragraph of a docstring as Markdown."""
    first = (inspect.getdoc(getattr(discreet, name)) or "").split("\n\n")[0]
    return re.sub(r":\w+:`~?([^`]+)`", r"`\1`", " ".join(first.split())).replace("``", "`")


def write_names() -> str:
    """Return the page of public names."""
    parts = [NAMES_HEAD]
    for task, names in group_names().items():
        rows = [f"| `discreet.{name}` | {describe_name(name)} |" for name in names]
        parts.append("\n".join([f"## {task}", "", "| name | |", "|---|---|", *rows, ""]))
    return "\n".join(parts)


def list_commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield the commands that help lists, each with its full name."""
    for name, command in group.commands.items():
        if command.hidden:
            continue
        if hasattr(command, "commands"):
            yield from list_commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


def describe_option(parameter: Any, context: Any) -> tuple[str, str, str]:
    """Return the panel of an option, its names, and its help with range and default."""
    shown = copy.copy(parameter)
    shown.hidden = False
    names, text = shown.get_help_record(context)
    names = re.sub(r", (?=-)", "`, `", names.removeprefix(" / "))
    kind = getattr(parameter, "rich_help_panel", None)
    is_argument = parameter.param_type_name == "argument"
    panel = kind or ("Arguments" if is_argument else "Options")
    if parameter.hidden and kind != READING:
        panel = RARE
    return panel, f"`{names}`", " ".join(text.split())


def write_table(rows: list[tuple[str, str]]) -> list[str]:
    """Return the lines of a table of options."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return ["| | |", "|---|---|", *[f"| {names} | {text} |" for names, text in cells], ""]


def write_command(name: str, command: Any, reading: dict[str, str]) -> str:
    """Return the section of a command; the options for reading files are collected instead."""
    context = typer.Context(command, info_name=f"discreet {name}")
    panels: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.params:
        if parameter.name.replace("_", "-") in EVERYWHERE:
            continue
        panel, names, text = describe_option(parameter, context)
        if panel == READING:
            reading.setdefault(names, text)
        panels.setdefault(panel, []).append((names, text))
    lines = [f"## discreet {name}", "", " ".join(command.help.split()), ""]
    if command.epilog:
        lines += ["[Mechanisms](#mechanisms): " + list_mechanisms(command.epilog), ""]
    if READING in panels:
        del panels[READING]
        lines += ["The options for [reading answers](#reading-answers) apply.", ""]
    for panel, rows in sorted(panels.items(), key=lambda one: one[0] == RARE):
        lines += [f"**{panel}**", "", *write_table(rows)]
    return "\n".join(lines)


def list_mechanisms(text: str) -> str:
    """Return the names of the mechanisms that a help text describes."""
    return ", ".join(f"`{name}`" for name in MECHANISMS if f"\n  {name} " in text) + "."


def write_commands() -> str:
    """Return the page of commands: the examples as they are, and after them all options."""
    root: Any = get_command(app)
    context = typer.Context(root, info_name="discreet")
    everywhere = [describe_option(p, context)[1:] for p in root.params]
    reading: dict[str, str] = {}
    sections = [write_command(name, one, reading) for name, one in list_commands(root)]
    examples = (DOCS / "cli.md").read_text(encoding="utf-8").partition(COMMANDS_NOTE)[0]
    lines = [f"{examples}{COMMANDS_NOTE}\n", "## Everywhere", "", *write_table(everywhere)]
    lines += ["## Reading answers", "", *write_table(list(reading.items()))]
    rows = [f"| `{name}` | {one.kind} | {one.help} |" for name, one in MECHANISMS.items()]
    lines += ["## Mechanisms", "", "| mechanism | releases | |", "|---|---|---|", *rows, ""]
    return "\n".join([*lines, "", *sections]).rstrip() + "\n"


PAGES = {"cli.md": write_commands, "api.md": write_names}


def main() -> None:
    """Write the pages."""
    for name, write in PAGES.items():
        (DOCS / name).write_text(write(), encoding="utf-8")


if __name__ == "__main__":
    main()
