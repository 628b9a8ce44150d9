"""The same elsewhere: what a page did, as a command line and in Python.

In: the file and the keywords that a page used. Out: text to copy. Both are made from the keywords
that were used, so they cannot say anything else.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.tables.remedies import spell_command

KEY_FILE = "key.csv"


@dataclass(frozen=True)
class Same:
    """What does the same: in Python, and on the command line."""

    python: str
    command: str
    needs_key: bool = False


def write_same(
    verb: str,
    file: str,
    options: Mapping[str, Any],
    items: Sequence[str],
    *,
    more: Mapping[str, Any] | None = None,
    then: str = "",
) -> Same:
    """Return a command with its Python.

    Parameters
    ----------
    verb
        The command.
    file
        The answers, as the user calls them.
    options
        How they are read.
    items
        The item columns in order, by which a key becomes a row of letters.
    more
        Further options of the command.
    then
        Lines of Python that follow after reading.
    """
    typed = _spell_key(options, items)
    words = [*spell_command({**typed, **(more or {})})]
    command = " ".join(["discreet", *verb.split(), shlex.quote(file), *words])
    needs_key = typed.get("key") == KEY_FILE and options.get("key") != KEY_FILE
    return Same(write_reading(file, options) + then, command, needs_key)


def write_reading(file: str, options: Mapping[str, Any]) -> str:
    """Return the lines of Python that read the answers."""
    return f"import discreet\n\nanswers = {write_call(file, options)}\n"


def write_call(file: str, options: Mapping[str, Any]) -> str:
    """Return the call in Python that reads a file."""
    keywords = [f"    {name}={value!r},\n" for name, value in options.items()]
    inside = f"\n    {file!r},\n{''.join(keywords)}" if keywords else repr(file)
    return f"discreet.read_responses({inside})"


def _spell_key(options: Mapping[str, Any], items: Sequence[str]) -> dict[str, Any]:
    """Return the options with a key as the command line takes it: letters in order, or a table."""
    key = options.get("key")
    if not isinstance(key, Mapping):
        return dict(options)
    letters = [str(one) for one in key.values()]
    in_order = list(key) == list(items) and all(len(one) == 1 for one in letters)
    return {**options, "key": "".join(letters) if in_order else KEY_FILE}
