"""Options that several commands share, each described once.

A command names a group (``shared: Shared``, ``reading: Reading``) as one parameter;
:func:`command` spreads the group's fields into options for the parser and puts them together
again before the command runs.
"""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from textwrap import fill
from typing import Annotated, Any, get_type_hints

import typer

from discreet import __version__
from discreet.cli.failures import guard
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


def name_mechanisms(kind: str) -> str:
    """Name the mechanisms for one kind of data; the registry loads none of them."""
    *names, last = mechanisms_for(kind)
    return f"{', '.join(names)} or {last}"


def explain_mechanisms(*kinds: str) -> str:
    """Say what each mechanism does, for the end of a command's help."""
    entries = {name: one for name, one in MECHANISMS.items() if one.kind in kinds}
    lines = [
        fill(one.help, 78, initial_indent=f"  {name:21}", subsequent_indent=" " * 23)
        for name, one in entries.items()
    ]
    return "\n".join(["\b", "Mechanisms:", *lines])  # \b: the lines are broken as they shall be


MECHANISM_NAMES = name_mechanisms("answers") + "."


class Layout(StrEnum):
    """How a table holds the answers."""

    LONG = "long"
    WIDE = "wide"


class Repeats(StrEnum):
    """What to do with a second answer of one person to one item."""

    ERROR = "error"
    FIRST = "first"
    LAST = "last"


class OneMeans(StrEnum):
    """Which answer a 1 stands for."""

    RIGHT = "right"
    WRONG = "wrong"


class Relation(StrEnum):
    """Between which data sets a guarantee holds."""

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"


Neighbouring = Annotated[Relation, typer.Option(help="Between which data sets.")]


def _print_version(asked: bool) -> None:
    if asked:
        print(f"discreet {__version__}")
        raise typer.Exit


def _merge_quiet(context: typer.Context, asked: bool) -> bool:
    # `meta` is one dictionary for the whole command line: what was said before the command
    # counts as if it had been said after it.
    quiet = asked or bool(context.meta.get("discreet.quiet", False))
    context.meta["discreet.quiet"] = quiet
    if quiet:
        warnings.simplefilter("ignore")  # until the command line ends: see app.run
    return quiet


def _limit_threads(asked: int | None) -> int | None:
    if asked is not None:
        for variable in THREAD_VARIABLES:
            # Once loaded, numba refuses to hear about another number.
            if not (variable == "NUMBA_NUM_THREADS" and "numba" in sys.modules):
                os.environ[variable] = str(asked)
        if "pyarrow" in sys.modules:
            sys.modules["pyarrow"].set_cpu_count(asked)
    return asked


@dataclass(frozen=True)
class Shared:
    """Options that work everywhere, before the command and after it."""

    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            "-q",
            help="No progress, notes or warnings; errors are still shown.",
            callback=_merge_quiet,
        ),
    ] = False
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads",
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
            "--version",
            help="Print the version and exit.",
            is_eager=True,
            callback=_print_version,
        ),
    ] = False


@dataclass(frozen=True)
class Reading:
    """How to read a file of answers."""

    layout: Annotated[
        Layout | None,
        typer.Option(help="long: one answer per row. wide: one column per item. Default: guess."),
    ] = None
    person: Annotated[
        str | None, typer.Option(metavar="COL", help="The column with the person ids.")
    ] = None
    item: Annotated[
        str | None, typer.Option(metavar="COL", help="Long tables: the column with the item ids.")
    ] = None
    response: Annotated[
        str | None, typer.Option(metavar="COL", help="Long tables: the column with the answers.")
    ] = None
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="COL", help="Wide tables: not an item (may be repeated)."),
    ] = None
    group: Annotated[
        list[str] | None,
        typer.Option(metavar="COL", help="A column that groups persons (may be repeated)."),
    ] = None
    repeats: Annotated[
        Repeats,
        typer.Option(help="When a person answered an item more than once: stop, or which counts."),
    ] = Repeats.ERROR
    one_means: Annotated[OneMeans, typer.Option(help="What a 1 stands for.")] = OneMeans.RIGHT
    at_least: Annotated[
        float | None,
        typer.Option(metavar="SCORE", help="Scores of at least SCORE are right, others wrong."),
    ] = None
    missing: Annotated[
        str, typer.Option(metavar="CODES", help="Codes for a missing answer, such as 9,99.")
    ] = ""


@dataclass(frozen=True)
class Limits:
    """Where answers are counted, and what that may use."""

    engine: Annotated[
        str, typer.Option(metavar="NAME", help="auto (the default), memory or disk (any size).")
    ] = "auto"
    memory: Annotated[
        float,
        typer.Option(metavar="GB", help="Out of core: memory for answers, in GB (default 1)."),
    ] = 1.0
    spill: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Out of core: where to put what does not fit."),
    ] = None


AnswersFile = Annotated[
    str,
    typer.Argument(
        metavar="FILE", help="The answers: CSV, TSV, Parquet or JSONL, also .gz; long or wide."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Epsilon = Annotated[
    float,
    typer.Option(
        "--epsilon", metavar="E", help="One person changes any probability e^E times at most."
    ),
]
Delta = Annotated[
    float,
    typer.Option("--delta", metavar="D", help="And by D more; from 0 to below 1."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace what exists.")]
Seed = Annotated[int | None, typer.Option(metavar="S", min=0, help="Makes the result repeatable.")]
OutFolder = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Also write the results into DIR.")
]


def command(
    app: typer.Typer, name: str, *, epilog: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a command; dataclass parameters become groups of options."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        app.command(name, epilog=epilog)(spread(function))
        return function

    return register


def add_family(app: typer.Typer, name: str, about: str, *commands: Callable[..., None]) -> None:
    """Make a family of commands of ``app``, each named after its function."""

    def describe(shared: Shared) -> None:
        del shared

    describe.__doc__ = about
    family = typer.Typer(name=name, no_args_is_help=True, rich_markup_mode=None)
    family.callback()(spread(describe))
    for one in commands:
        command(family, one.__name__)(one)
    app.add_typer(family)


def spread(function: Callable[..., None]) -> Callable[..., None]:
    """Return ``function`` with the fields of its dataclass parameters as plain parameters."""
    hints = get_type_hints(function, include_extras=True)
    parameters, groups = [], {}
    for parameter in inspect.signature(function).parameters.values():
        hint = hints[parameter.name]
        if is_dataclass(hint) and isinstance(hint, type):
            groups[parameter.name] = hint
            parameters += _options_of(hint)
        else:
            parameters.append(
                parameter.replace(annotation=hint, kind=inspect.Parameter.KEYWORD_ONLY)
            )

    # The one place with **values: the parser calls with whatever the signature below lists.
    def run(**values: Any) -> None:
        # Paths only: answers may come from a server, and their readers know which ones.
        given = [one for value in values.values() for one in _paths(value)]
        for name, group in groups.items():
            values[name] = group(**{one.name: values.pop(one.name) for one in fields(group)})
        with guard():
            for value in given:
                refuse_address(value)
            function(**values)

    run.__name__ = function.__name__
    run.__doc__ = function.__doc__
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__dict__["__signature__"] = inspect.Signature(parameters)
    return run


def _paths(value: Any) -> list[Path]:
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, Path)]


def _options_of(group: type) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=one.default,
            annotation=hints[one.name],
        )
        for one in fields(group)
    ]
