"""Options and commands: each option is described once, and every command is made here.

A command takes plain options and groups of them (a dataclass, such as
:class:`discreet.cli.answers.ReadingOptions`) as parameters. :func:`register` spreads the fields
of a group into options for the parser and puts them together again before the command runs. The
options that work everywhere are added to every command. Help lists options in panels: those that
a command needs come first, and each group has a panel of its own.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from textwrap import fill
from typing import Annotated, Any, Literal, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from discreet import __version__
from discreet.choices import PlainDict, Relation
from discreet.cli.output import be_quiet, check_writable, guard, show_result, write_tables
from discreet.errors import refuse_address
from discreet.privacy.mechanisms import MECHANISMS, mechanisms_for
from discreet.tabular import Columns

# Set before the libraries load: each reads its own variable, once.
THREAD_VARIABLES = (
    "DISCREET_THREADS",
    "NUMBA_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def option(metavar: str | None, about: str, *names: str, **limits: Any) -> Any:
    """Return an option with a value; ``names`` where it is not called like its parameter."""
    return typer.Option(*names, metavar=metavar, help=about, **limits)


def rare(metavar: str, about: str, *names: str) -> Any:
    """Return an option that works and that the help does not list: ``--spec`` says the same."""
    return typer.Option(*names, metavar=metavar, help=about, hidden=True)


def needed(metavar: str, about: str, *names: str) -> Any:
    """Return an option that a command asks for unless a file says the same."""
    return typer.Option(*names, metavar=metavar, help=about, rich_help_panel=REQUIRED)


def flag(about: str, *names: str) -> Any:
    """Return an option whose values speak for themselves: a switch, or one of a few words."""
    only_off = any(name.startswith(" /") for name in names)
    return typer.Option(*names, help=about, show_default=not only_off)


def argument(metavar: str, about: str) -> Any:
    """Return what is given without a name."""
    return typer.Argument(metavar=metavar, help=about)


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


MECHANISM_NAMES = name_mechanisms("answers") + "."

Language = Literal["en", "de", "es"]

AsJson = Annotated[bool, flag("Print one JSON document and nothing else.", "--json")]
Force = Annotated[bool, flag("Replace existing files.", "--force")]
Title = Annotated[str | None, option("TEXT", "Headline of the report.")]
Method = Annotated[
    str, option("NAME", "auto, conditional, refined, spectral (the paper's) or marginal.")
]
KeepCategories = Annotated[
    bool, flag("Keep unused categories between used ones (Winsteps: STKEEP).", "--keep-categories")
]
EPSILON_HELP = "Privacy loss: one person changes any probability by at most a factor e^E."
EPSILON = option("E", EPSILON_HELP, "--epsilon")
Epsilon = Annotated[float, EPSILON]
Delta = Annotated[float, option("D", "Additive slack on that bound, 0 <= D < 1.", "--delta")]
Neighbouring = Annotated[Relation, flag("Neighbouring relation.")]


@dataclass(frozen=True)
class ResultOptions:
    """Where results go besides standard output, and how they are shown there."""

    out: Annotated[Path | None, option("DIR", "Also write the results into DIR.")] = None
    force: Force = False
    as_json: AsJson = False

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

    quiet: Annotated[
        bool,
        option(None, "No progress, notes or warnings; errors are still shown.", "--quiet", "-q",
               callback=_heed_quiet),
    ] = False  # fmt: skip
    threads: Annotated[
        int | None,
        option("N", "Use at most N threads (default: every core).", min=1, max=4096,
               callback=_limit_threads),
    ] = None  # fmt: skip
    version: Annotated[
        bool,
        option(None, "Print the version and exit.", "--version", is_eager=True,
               callback=_print_version),
    ] = False  # fmt: skip


REQUIRED, OPTIONS, COMMANDS = "Required", "Options", "Commands"


def _write_panels(
    formatter: Any, rows: Iterable[tuple[str, tuple[str, str]]], titles: Iterable[str] = ()
) -> None:
    """Write rows in a section for each title; the titles given here come first."""
    panels: dict[str, list[tuple[str, str]]] = {title: [] for title in titles}
    for title, row in rows:
        panels.setdefault(title, []).append(row)
    for title, listed in panels.items():
        if listed:
            with formatter.section(title):
                formatter.write_dl(listed)


def _list_options(command: Any, context: Any) -> list[tuple[str, tuple[str, str]]]:
    """Return the help of every option that is not hidden, with the title of its panel."""
    rows = []
    for parameter in command.get_params(context):
        if (record := parameter.get_help_record(context)) is not None:
            panel = _find_panel(parameter) or (REQUIRED if parameter.required else OPTIONS)
            panel = "Arguments" if parameter.param_type_name == "argument" else panel
            rows.append((panel, (record[0].removeprefix(" / "), record[1])))
    return rows


def _find_panel(named: Any) -> str | None:
    panel = getattr(named, "rich_help_panel", None)
    return panel if isinstance(panel, str) else None  # typer has a placeholder for no panel


class PanelCommand(TyperCommand):
    """A command whose help lists options in panels."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, the required ones first."""
        _write_panels(formatter, _list_options(self, ctx), ("Arguments", REQUIRED))


class PanelGroup(TyperGroup):
    """A family of commands whose help lists them in panels."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, then the commands."""
        _write_panels(formatter, _list_options(self, ctx))
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
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
            parameters[parameter.name] = _keyword(parameter.name, hint, parameter.default)
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


def _keyword(name: str, hint: Any, default: Any) -> inspect.Parameter:
    if default is MISSING:  # a field's way to say so
        default = inspect.Parameter.empty
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=hint)


@cache
def _options_of(group: type) -> dict[str, inspect.Parameter]:
    """Return the options of a group, in its panel; those that it calls rare are hidden."""
    hints = get_type_hints(group, include_extras=True)
    options = {one.name: _keyword(one.name, hints[one.name], one.default) for one in fields(group)}
    panel, rare_names = getattr(group, "PANEL", None), getattr(group, "RARE", ())
    for name in options if panel else ():
        options[name] = _change_option(options[name], rich_help_panel=panel)
    for name in rare_names:
        options[name] = _change_option(options[name], hidden=True)
    return options


def _change_option(parameter: inspect.Parameter, **changes: Any) -> inspect.Parameter:
    """Return a parameter whose option has other settings; a panel that it has stays."""
    hint = parameter.annotation
    changed = copy(hint.__metadata__[0])
    for name, value in changes.items():
        if name != "rich_help_panel" or getattr(changed, name, None) is None:
            setattr(changed, name, value)
    return parameter.replace(annotation=Annotated[hint.__origin__, changed])
