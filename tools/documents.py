"""Keep the documents: measure them, write the pages that list names, run the notebooks.

::

    python -m tools.documents                 words, length of sentences and pictures of every page
    python -m tools.documents --long PAGE     its long sentences
    python -m tools.documents write           the second half of docs/cli.md, and docs/api.md
    python -m tools.documents run             every notebook from first cell to last
    python -m tools.documents strip           take outputs out of the notebooks, before a commit

In: the pages of ``docs``, the command line, and the docstrings of ``discreet.__all__``. Words are
those that a reader sees: all of a page but comments. For the length of sentences code, tables and
headings do not count, and proofs are exempt. What is generated does not count at all. A cell of a
notebook that fails, or that writes to standard error (a warning), is an error.
"""

from __future__ import annotations

import copy
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import typer
from typer.main import get_command

import discreet
from discreet.cli.app import app
from discreet.cli.options import Everywhere
from discreet.privacy.mechanisms import MECHANISMS

if TYPE_CHECKING:
    from nbformat import NotebookNode

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
LONG = 30
PROOFS = ("privacy-accounting.md",)
"""Pages of proofs."""
GENERATED = ("api.md",)
"""Pages that are written as a whole here; of ``cli.md`` it writes what follows a note."""
REST = re.compile(r"<!-- All that follows is written by .*", re.S)
EXEMPT = re.compile(r"<!-- proof -->.*?<!-- end of proof -->", re.S)
BLOCK = re.compile(r"^(```|~~~).*?^\1$", re.M | re.S)
MATH = re.compile(r"^ {4,}\S.*$|\$\$.*?\$\$", re.M | re.S)
COMMENT = re.compile(r"<!--.*?-->", re.S)
NOT_PROSE = re.compile(r"^(\||#|!\[|:::|\s*[-=]{3,}).*$", re.M)
PICTURE = re.compile(r"!\[.*?\]\((\S+?)\)")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
END = re.compile(r"(?<=[.!?:;])[\"'”)*_`]*\s+(?=[\"'“(*_`A-Z0-9])|\n\s*\n|\n\s*(?:[-*]|\d+\.)\s+")
WORD = re.compile(r"[A-Za-zÀ-ž0-9][\w.'’\-]*")


def list_pages() -> list[Path]:
    """Return the pages of the documentation that somebody wrote."""
    pages = [page for page in DOCS.rglob("*.md") if "decisions" not in page.parts]
    return sorted(page for page in pages if page.name not in GENERATED)


def read_page(page: Path) -> str:
    """Return what somebody wrote of a page."""
    return REST.sub("", page.read_text(encoding="utf-8"))


def count_words(page: Path) -> int:
    """Return the number of words of a page, without comments."""
    return len(WORD.findall(COMMENT.sub("", read_page(page))))


def split_sentences(page: Path) -> list[str]:
    """Return the sentences of a page that the limits are about; none of a page of proofs."""
    if page.name in PROOFS:
        return []
    text = EXEMPT.sub("", read_page(page))
    for pattern in (COMMENT, BLOCK, MATH, NOT_PROSE):
        text = pattern.sub("\n\n", text)
    sentences = END.split(LINK.sub(r"\1", text))
    return [" ".join(s.split()) for s in sentences if s and len(WORD.findall(s)) > 2]


def measure_prose() -> dict[str, float]:
    """Return the figures of all pages together."""
    pages = list_pages()
    lengths = [len(WORD.findall(s)) for page in pages for s in split_sentences(page)]
    pictures = {name for page in pages for name in PICTURE.findall(page.read_text())}
    return {
        "words in documents": sum(map(count_words, pages)),
        "words of a mean sentence": round(sum(lengths) / len(lengths), 1),
        "long sentences, percent": round(
            100 * sum(length > LONG for length in lengths) / len(lengths), 1
        ),
        "pictures in documents": len(pictures),
    }


def show_prose(words: list[str]) -> None:
    """Print the figures, or the long sentences of one page."""
    if words[:1] == ["--long"]:
        for sentence in split_sentences(Path(words[1])):
            if len(WORD.findall(sentence)) > LONG:
                print(f"{len(WORD.findall(sentence)):4d}  {sentence}")
        return
    for page in list_pages():
        lengths = [len(WORD.findall(s)) for s in split_sentences(page)]
        mean = sum(lengths) / max(len(lengths), 1)
        share = 100 * sum(n > LONG for n in lengths) / max(len(lengths), 1)
        print(f"{page.relative_to(DOCS)!s:32}{count_words(page):8,}{mean:8.1f}{share:6.1f}%")
    for name, figure in measure_prose().items():
        print(f"{name:32}{figure:8,}")


# -- pages that list names -----------------------------------------------------------------------

NOTE = "<!-- Written by `python -m tools.documents`; do not edit. -->"
READING = "Reading the file"
RARE = "Not listed by `--help`"
EVERYWHERE = {field.replace("_", "-") for field in Everywhere.__dataclass_fields__} | {"help"}

COMMANDS_NOTE = "<!-- All that follows is written by `python -m tools.documents`; do not edit. -->"
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


PAGES: dict[str, Callable[[], str]] = {"cli.md": write_commands, "api.md": write_names}


def write_pages() -> None:
    """Write the pages that list names."""
    for name, write in PAGES.items():
        (DOCS / name).write_text(write(), encoding="utf-8")


# -- notebooks -----------------------------------------------------------------------------------

FOLDER = DOCS / "notebooks"
LIMIT = 600
"""Seconds that one cell may take: far more than any does."""


def find_notebooks() -> list[Path]:
    """Return the notebooks, by name."""
    return sorted(FOLDER.glob("*.ipynb"))


def read(path: Path) -> NotebookNode:
    """Read a notebook and check it against the format."""
    import nbformat

    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    return book


def code_of(book: NotebookNode) -> list[str]:
    """Return the code cells."""
    return [cell.source for cell in book.cells if cell.cell_type == "code"]


def run(path: Path, place: Path) -> NotebookNode:
    """Run a notebook in a folder and return it with its outputs."""
    from nbclient import NotebookClient

    book = read(path)
    NotebookClient(book, timeout=LIMIT, resources={"metadata": {"path": str(place)}}).execute()
    for said in complaints(book):
        raise RuntimeError(f"{path.name} wrote to standard error: {said}")
    return book


def complaints(book: NotebookNode) -> list[str]:
    """Return what the cells wrote to standard error."""
    outputs = [one for cell in book.cells for one in cell.get("outputs", ())]
    return [one.text for one in outputs if one.get("name") == "stderr"]


def strip(book: NotebookNode) -> NotebookNode:
    """Take out what a run leaves behind: outputs, counters, the kernel's version."""
    from nbformat import NotebookNode

    for cell in book.cells:
        cell.metadata = NotebookNode()
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    book.metadata.language_info = NotebookNode(name="python")
    return book


def strip_notebooks() -> None:
    """Take outputs out of every notebook."""
    import nbformat

    for path in find_notebooks():
        nbformat.write(strip(read(path)), path)


def run_notebooks() -> None:
    """Run every notebook in a new folder."""
    for path in find_notebooks():
        with TemporaryDirectory() as place:
            run(path, Path(place))
        print(f"{path.name} runs")


TASKS = {"write": write_pages, "run": run_notebooks, "strip": strip_notebooks}


def main(words: list[str]) -> int:
    """Do what is asked."""
    if not words or words[0] == "--long":
        show_prose(words)
        return 0
    if len(words) > 1 or words[0] not in TASKS:
        print(__doc__, file=sys.stderr)
        return 2
    TASKS[words[0]]()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
