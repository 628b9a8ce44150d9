"""Options and commands: each option is described once, and every command is made here.

A command takes plain options and groups of them (a dataclass, such as
:class:`discreet.cli.answers.ReadingOptions`) as parameters. :func:`register` spreads the fields
of a group into options for the parser and puts them together again before the command runs. The
options that work everywhere are added to every command. Types and defaults stand in signatures;
names, ranges and help texts are in ``options.txt``. Help lists options in panels: those that a
command needs come first, and each group has a panel of its own.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from discreet import __version__
from discreet.choices import PlainDict
from discreet.cli.output import be_quiet, check_writable, guard, show_result, write_tables
from discreet.errors import refuse_address
from discreet.privacy.mechanisms import MECHANISMS, mechanisms_for
from discreet.tables.options import READING_FIELDS
from discreet.tabular import Columns

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter

# Set before the libraries load: each reads its own variable, once.
THREAD_VARIABLES = (
    "DISCREET_THREADS",
    "NUMBA_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


class OptionText(NamedTuple):
    """What ``options.txt`` says of an option: its words, and the help text."""

    words: tuple[str, ...]
    about: str


@cache
def _list_texts() -> dict[tuple[str, str], OptionText]:
    """Return the table of options, by the command or group and the name of the parameter."""
    texts: dict[tuple[str, str], OptionText] = {}
    owners: list[str] = []
    for line in Path(__file__).with_name("options.txt").read_text(encoding="utf-8").splitlines():
        head, bar, about = line.partition(" | ")
        if line.startswith("["):
            owners = line[1:-1].split()
        elif bar and not line.startswith("#"):
            name, *words = head.split()
            texts |= {(owner, name): OptionText(tuple(words), about) for owner in owners}
    return texts


def _find_text(owner: str, name: str) -> OptionText:
    """Return what is said of an option: in its own section, for all commands, or of readings."""
    texts = _list_texts()
    text = texts.get((owner, name)) or texts.get(("*", name))
    if text is None:
        entry = READING_FIELDS[name]
        return OptionText(tuple(entry.metavar.split()), entry.about)
    if "{" not in text.about:
        return text
    known = {kind: name_mechanisms(kind) for kind in ("answers", "comparisons")}
    return text._replace(about=text.about.format(**known))


def _declare(owner: str, name: str, hint: object, default: object, *, is_argument: bool) -> object:
    """Return the type of a parameter with what the parser and the help need to know of it."""
    if hint is typer.Context:
        return hint
    words, about = _find_text(owner, name)
    low, _, high = next((word for word in words if ".." in word), "..").partition("..")
    names = [word for word in words if word.startswith("-")] or [f"--{name.replace('_', '-')}"]
    titles = [word for word in words if word not in (*names, f"{low}..{high}", "rare", "needed")]
    metavar = titles[0] if titles else None
    if is_argument:
        return Annotated[hint, typer.Argument(metavar=metavar, help=about)]
    only_off = default is True
    described = typer.Option(
        *([f" /--no-{name}"] if only_off else names),
        metavar=metavar,
        help=about,
        min=_read_limit(low),
        max=_read_limit(high),
        callback=ACTIONS.get(name),
        is_eager=name == "version",
        hidden="rare" in words,
        rich_help_panel=REQUIRED if "needed" in words else None,
        show_default=not only_off,
    )
    return Annotated[hint, described]


def _read_limit(text: str) -> float | None:
    return (int(text) if text.isdecimal() else float(text)) if text else None


def name_mechanisms(kind: str) -> str:
    """Name the mechanisms for one kind of data; the registry loads none of them."""
    *names, last = mechanisms_for(kind)
    return f"{', '.join(names)} or {last}"


def _explain_mechanisms(kinds: list[str]) -> str:
    lines = [
        fill(one.help, 78, initial_indent=f"  {name:21}", subsequent_indent=" " * 23)
        for name, one in MECHANISMS.items()
        if one.kind in kinds
    ]
    return "\n".join(["\b", "Mechanisms:", *lines])  # \b: the lines are broken as they shall be


Language = Literal["en", "de", "es"]


@dataclass(frozen=True)
class ResultOptions:
    """Where results go besides standard output, and how they are shown there."""

    out: Path | None = None
    force: bool = False
    as_json: bool = False

    def check(self, *names: str) -> None:
        """Refuse, before any work is done, a folder where these files could not be written."""
        check_writable(self.out, names, force=self.force)

    def write(self, tables: Mapping[str, Columns]) -> list[Path]:
        """Write confidential tables where that was asked for, and return their paths."""
        return [] if self.out is None else write_tables(self.out, tables)

    def show(self, document: PlainDict, show: Callable[[], None]) -> None:
        """Print the result: a JSON document, or for readers."""
        show_result(document, show, as_json=self.as_json)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        print(f"discreet {__version__}")
        raise typer.Exit


def _heed_quiet(is_requested: bool) -> None:
    if is_requested:
        be_quiet()


def _limit_threads(threads: int | None) -> None:
    if threads is not None:
        for variable in THREAD_VARIABLES:
            # Once loaded, numba refuses to hear about another number.
            if not (variable == "NUMBA_NUM_THREADS" and "numba" in sys.modules):
                os.environ[variable] = str(threads)
        if "pyarrow" in sys.modules:
            sys.modules["pyarrow"].set_cpu_count(threads)


@dataclass(frozen=True)
class Everywhere:
    """Options that work before the command and after it; what they ask for is done at once."""

    quiet: bool = False
    threads: int | None = None
    version: bool = False


#: What these do.
ACTIONS: dict[str, Callable[..., None]] = {
    "quiet": _heed_quiet,
    "threads": _limit_threads,
    "version": _print_version,
}

REQUIRED, OPTIONS, COMMANDS = "Required", "Options", "Commands"


def _write_panels(
    formatter: HelpFormatter,
    rows: Iterable[tuple[str, tuple[str, str]]],
    titles: Iterable[str] = (),
) -> None:
    """Write rows in a section for each title; the titles given here come first."""
    panels: dict[str, list[tuple[str, str]]] = {title: [] for title in titles}
    for title, row in rows:
        panels.setdefault(title, []).append(row)
    for title, listed in panels.items():
        if listed:
            with formatter.section(title):
                formatter.write_dl(listed)


def _list_options(
    command: TyperCommand | TyperGroup, context: Context
) -> list[tuple[str, tuple[str, str]]]:
    """Return the help of every option that is not hidden, with the title of its panel."""
    rows = []
    for parameter in command.get_params(context):
        if (record := parameter.get_help_record(context)) is not None:
            panel = _find_panel(parameter) or (REQUIRED if parameter.required else OPTIONS)
            panel = "Arguments" if parameter.param_type_name == "argument" else panel
            rows.append((panel, (record[0].removeprefix(" / "), record[1])))
    return rows


def _find_panel(named: object) -> str | None:
    panel = getattr(named, "rich_help_panel", None)
    return panel if isinstance(panel, str) else None  # typer has a placeholder for no panel


class PanelCommand(TyperCommand):
    """A command whose help lists options in panels."""

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the options, the required ones first."""
        _write_panels(formatter, _list_options(self, ctx), ("Arguments", REQUIRED))


class PanelGroup(TyperGroup):
    """A family of commands whose help lists them in panels."""

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the options, then the commands."""
        _write_panels(formatter, _list_options(self, ctx))
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the commands that are not hidden."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        limit = formatter.width - 6 - max(map(len, commands))
        rows = [
            (_find_panel(command) or COMMANDS, (name, command.get_short_help_str(limit)))
            for name, command in commands.items()
            if command is not None and not command.hidden
        ]
        _write_panels(formatter, rows)


EVERYWHERE = tuple(part.name for part in fields(Everywhere))


def register(
    app: typer.Typer,
    function: Callable[..., None],
    name: str = "",
    *,
    mechanisms: str = "",
    panel: str | None = None,
) -> None:
    """Make a function a command.

    Parameters
    ----------
    mechanisms
        The kinds of which its help shall explain the mechanisms.
    panel
        The panel of the family's help that names it.
    """
    epilog = _explain_mechanisms(mechanisms.split()) if mechanisms else None
    command = app.command(
        name or function.__name__, cls=PanelCommand, epilog=epilog, rich_help_panel=panel
    )
    command(spread(function))


def add_family(app: typer.Typer, name: str, about: str, *, panel: str | None = None) -> typer.Typer:
    """Return a new family of commands of ``app``."""

    def describe() -> None:
        """Do nothing: the commands of the family do."""

    describe.__doc__ = about
    family = typer.Typer(name=name, cls=PanelGroup, no_args_is_help=True, rich_markup_mode=None)
    family.callback()(spread(describe))
    app.add_typer(family, rich_help_panel=panel)
    return family


def spread(function: Callable[..., None], *, is_root: bool = False) -> Callable[..., None]:
    """Return ``function`` with the fields of its dataclass parameters as plain parameters.

    An option that stands in two groups is asked for once and given to both. What works everywhere
    is listed by the root's help alone; options that a group calls ``RARE`` work and are not listed.
    """
    hints = get_type_hints(function, include_extras=True)
    parameters: dict[str, inspect.Parameter] = {}
    groups = {}
    for parameter in inspect.signature(function).parameters.values():
        hint = hints[parameter.name]
        if is_dataclass(hint) and isinstance(hint, type):
            groups[parameter.name] = hint
            parameters |= _options_of(hint)
        else:
            is_argument = parameter.kind is not inspect.Parameter.KEYWORD_ONLY
            owner = function.__name__
            parameters[parameter.name] = _keyword(owner, parameter, hint, is_argument=is_argument)
    plain = [name for name in hints if name in parameters]
    parameters |= _options_of(Everywhere)
    for name in () if is_root else EVERYWHERE:
        parameters[name] = _change_option(parameters[name], hidden=True)

    # The one place with **values: the parser calls with whatever the signature below lists.
    def run(**values: Any) -> None:
        # Paths only: answers may come from a server, and their readers know which ones.
        listed = [one if isinstance(one, list) else [one] for one in values.values()]
        paths = [one for some in listed for one in some if isinstance(one, Path)]
        arguments = {name: values[name] for name in plain}
        for name, group in groups.items():
            arguments[name] = group(**{one.name: values[one.name] for one in fields(group)})
        with guard():
            for value in paths:
                refuse_address(value)
            function(**arguments)

    run.__name__ = function.__name__
    run.__doc__ = function.__doc__
    run.__annotations__ = {name: one.annotation for name, one in parameters.items()}
    run.__dict__["__signature__"] = inspect.Signature([*parameters.values()])
    return run


def _keyword(
    owner: str, parameter: inspect.Parameter, hint: object, *, is_argument: bool = False
) -> inspect.Parameter:
    name, default = parameter.name, parameter.default
    declared = _declare(owner, name, hint, default, is_argument=is_argument)
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=declared)


@cache
def _options_of(group: type) -> dict[str, inspect.Parameter]:
    """Return the options of a group, in its panel; those that it calls rare are hidden."""
    hints, options = get_type_hints(group, include_extras=True), {}
    parameters = inspect.signature(group).parameters
    for name, parameter in parameters.items():
        owners = [one for one in group.__mro__ if name in inspect.get_annotations(one)]
        options[name] = _keyword(owners[0].__name__, parameter, hints[name])
    panel, rare_names = getattr(group, "PANEL", None), getattr(group, "RARE", ())
    for name in options if panel else ():
        options[name] = _change_option(options[name], rich_help_panel=panel)
    for name in rare_names:
        options[name] = _change_option(options[name], hidden=True)
    return options


def _change_option(parameter: inspect.Parameter, **changes: object) -> inspect.Parameter:
    """Return a parameter whose option has other settings; a panel that it has stays."""
    hint = parameter.annotation
    changed = copy(hint.__metadata__[0])
    for name, value in changes.items():
        if name != "rich_help_panel" or getattr(changed, name, None) is None:
            setattr(changed, name, value)
    return parameter.replace(annotation=Annotated[hint.__origin__, changed])
