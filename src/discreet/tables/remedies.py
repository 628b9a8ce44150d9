"""Remedies: what a refusal proposes, as values; sentences and command lines are made from them.

In: keywords of :func:`discreet.read_responses`. Out: how somebody types them in Python and on the
command line. A message and a program that offers the remedy thus never say two things.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from discreet.errors import Remedy

REPEATED = ("ignore", "group")
"""Options that are given once for every value; others join their values with commas."""


def make_remedy(
    before: str, options: Mapping[str, Any], after: str = "", *, asks: str = ""
) -> Remedy:
    """Return a remedy whose sentence names what it sets.

    Parameters
    ----------
    before, after
        What stands around the keywords.
    options
        The keywords.
    asks
        One more keyword, whose value only the user knows.

    Examples
    --------
    >>> make_remedy("if 9 is missing, say", {"missing": [9]}).words
    'if 9 is missing, say missing=[9] (--missing 9)'
    """
    python, command = spell_python(options), spell_command(options)
    if asks:
        python, command = [*python, f"{asks}=SCORE"], [*command, _flag(asks), "SCORE"]
    words = f"{before} {', '.join(python)} ({' '.join(command)}){after}"
    return Remedy(words, dict(options), asks)


def spell_python(options: Mapping[str, Any]) -> list[str]:
    """Return keywords as they are typed in Python."""
    return [f"{name}={_python_value(name, value)}" for name, value in options.items()]


def _python_value(name: str, value: Any) -> str:
    if isinstance(value, list):
        return f"[{','.join(_python_value(name, one) for one in value)}]"
    # Columns are shown as messages show them.
    return f"'{value}'" if isinstance(value, str) and name != "missing" else repr(value)


def spell_command(options: Mapping[str, Any]) -> list[str]:
    """Return keywords as words of a command line.

    Examples
    --------
    >>> spell_command({"ignore": ["my notes"], "missing": [98, 99], "header": False})
    ['--ignore', "'my notes'", '--missing', '98,99', '--no-header']
    """
    return [word for name, value in options.items() for word in _command_words(name, value)]


def _command_words(name: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [] if value else [f"--no-{name}"]
    if isinstance(value, Mapping):
        return _spell_by_item(name, value)
    several = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    if name in REPEATED:
        return [word for one in several for word in (_flag(name), shlex.quote(str(one)))]
    return [_flag(name), shlex.quote(",".join(_word(one) for one in several))]


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _spell_by_item(name: str, value: Mapping[str, Any]) -> list[str]:
    each = [shlex.quote(f"{item}:{one}") for item, one in value.items()]
    if name == "merge":
        return [word for one in each for word in ("--merge", one)]
    return [_flag(name), ",".join(each)]


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
