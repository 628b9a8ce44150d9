"""What is being done, for services: the logger "discreet" of the standard library.

One line at the level INFO before and after reading, counting, fitting, scoring and releasing. Lines
hold where answers come from (never a query or an address, which may hold data or a password) and
how many persons, items and answers there were; those of a release hold public values only, the same
whatever the answers are. Nothing is written unless the program asks for it, with
``logging.basicConfig(level="INFO")`` for instance.
"""

from __future__ import annotations

import logging
import os
import re
from typing import Any, TypeVar

from discreet.errors import escape_controls, looks_like_address

LOG = logging.getLogger("discreet")
LOG.addHandler(logging.NullHandler())

Held = TypeVar("Held")

#: Without a colon, but for the letter of a drive.
_PATH = re.compile(r"([A-Za-z]:)?[^\s:]+")


def name_source(source: Any) -> str:
    """Say what answers come from: the name of a file, else only the kind.

    Examples
    --------
    >>> name_source("logs/may.csv"), name_source("SELECT * FROM t WHERE person = 'ann'")
    ('logs/may.csv', 'a database or query')
    """
    if not isinstance(source, str | os.PathLike):
        return f"{type(source).__module__.partition('.')[0]} {type(source).__name__}"
    text = os.fspath(source)
    is_path = os.path.lexists(text) or (_PATH.fullmatch(text) and not looks_like_address(text))
    return escape_controls(str(text)) if is_path else "a database or query"


def log_answers(answers: Held) -> Held:
    """Say how many answers were read, and return them."""
    sized: Any = answers
    sizes = sized.n_persons, sized.n_items, sized.n_answers
    LOG.info("read %d persons, %d items, %d answers", *sizes)
    return answers
