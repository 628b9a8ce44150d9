"""Options and commands: each option is described once, and every command is made here.

A command takes plain options and groups of them (a dataclass, such as
:class:`discreet.cli.answers.ReadingOptions`) as parameters. :func:`register` spreads the fields
of a group into options for the parser and puts them together again before the command runs. The
options that work everywhere are added to every command.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from textwrap import fill
from typing import Annotated, Any, Literal, get_type_hints

import typer

from discreet import __version__
from discreet.cli.failures import guard
from discreet.cli.output import be_quiet
from discreet.errors import refuse_address
from discreet.privacy.mechanisms import MECHANISMS, mechanisms_for

# Set before the libraries load: each reads its own variable, once.
THREAD_VARIABLES = (
    "DISCREET_THREADS",
    "NUMBA_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def option(metavar: str, about: str, *names: str, **limits: Any) -> Any:
    """Return an option with a value; ``names`` where it is not called like its parameter."""
    return typer.Option(*names, metavar=metavar, help=about, **limits)


def flag(about: str, *names: str) -> Any:
    """Return an option whose values speak for themselves: a switch, or one of a few words."""
    return typer.Option(*names, help=about)


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

Layout = Literal["long", "wide"]
Invalid = Literal["error", "missing"]
OneMeans = Literal["right", "wrong"]
Repeats = Literal["error", "first", "last"]
Model = Literal["auto", "rasch", "partial-credit", "rating-scale"]
Relation = Literal["replace-one", "add-remove"]
Design = Literal["complete", "random", "unknown"]
Estimator = Literal["noise-aware", "spectral"]
Language = Literal["en", "de", "es"]

AsJson = Annotated[bool, flag("Print one JSON document and nothing else.", "--json")]
Force = Annotated[bool, flag("Replace what exists.", "--force")]
OutFolder = Annotated[Path | None, option("DIR", "Also write the results into DIR.", "--out")]
Title = Annotated[str | None, option("TEXT", "Headline of the report.")]
Method = Annotated[
    str,
    option("NAME", "auto (the default), conditional, refined, spectral (the paper's) or marginal."),
]
EPSILON = option("E", "One person changes any probability e^E times at most.", "--epsilon")
Epsilon = Annotated[float, EPSILON]
Delta = Annotated[float, option("D", "And by D more; from 0 to below 1.", "--delta")]
Neighbouring = Annotated[Relation, flag("Between which data sets.")]


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
        typer.Option(
            "--quiet",
            "-q",
            help="No progress, notes or warnings; errors are still shown.",
            callback=_heed_quiet,
        ),
    ] = False
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=4096,
            help="Use at most N threads (default: every core).",
            callback=_limit_threads,
        ),
    ] = None
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", is_eager=True, callback=_print_version
        ),
    ] = False


def register(
    app: typer.Typer, function: Callable[..., None], name: str = "", *, mechanisms: str = ""
) -> None:
    """Make a function a command; ``mechanisms`` are the kinds that its help shall explain."""
    epilog = _explain_mechanisms(mechanisms.split()) if mechanisms else None
    app.command(name or function.__name__, epilog=epilog)(spread(function))


def add_family(app: typer.Typer, name: str, about: str) -> typer.Typer:
    """Return a new family of commands of ``app``."""

    def describe() -> None:
        """Do nothing: the commands of the family do."""

    describe.__doc__ = about
    family = typer.Typer(name=name, no_args_is_help=True, rich_markup_mode=None)
    family.callback()(spread(describe))
    app.add_typer(family)
    return family


def spread(function: Callable[..., None]) -> Callable[..., None]:
    """Return ``function`` with the fields of its dataclass parameters as plain parameters.

    An option that stands in two groups is asked for once and given to both.
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

    # The one place with **values: the parser calls with whatever the signature below lists.
    def run(**values: Any) -> None:
        # Paths only: answers may come from a server, and their readers know which ones.
        paths = [one for value in values.values() for one in _paths(value)]
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


def _paths(value: Any) -> list[Path]:
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, Path)]


def _keyword(name: str, hint: Any, default: Any) -> inspect.Parameter:
    if default is MISSING:  # a field's way to say so
        default = inspect.Parameter.empty
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=hint)


def _options_of(group: type) -> dict[str, inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return {one.name: _keyword(one.name, hints[one.name], one.default) for one in fields(group)}
