"""Everything that can go wrong, each with the exit code the command line gives it.

::

    DiscreetError                  1
    ├── BadUsage                   2   a wrong argument, a file that is not there
    │   ├── MissingExtra           2   an optional dependency is not installed
    │   ├── BadBudget              2   an epsilon, delta or cap that means nothing
    │   ├── NotAllowed             2   the ledger's policy or approvals do not allow the release
    │   └── OutOfReach             2   a computation that cannot be done where the answers are
    ├── BadResponses               3   the answers cannot be used as they are
    ├── BudgetExceeded             4   the ledger has less left than was asked for
    ├── LedgerError                1   the ledger itself cannot be used
    ├── DisconnectedItems          5   the answers do not determine what was asked
    └── NotConverged               1   a solver stopped without an answer it can vouch for

    UserWarning
    └── ItemsLeftOut                   items without a number, or that took no part

Every message says what was found, where, why it matters and what to do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

# A user and a password before a host, and the words that name a password in other addresses. Too
# much is hidden rather than too little: a password may hold any sign.
_BEFORE_HOST = re.compile(r"(/[^\s/@:'\"]*):[^\n]*@")
_NAMED = re.compile(
    r"(?i)((?:password|passwd|passphrase|pwd|secret|token)\s*=\s*)"
    r"('[^'\n]*'|\"[^\"\n]*\"|\{[^}\n]*\}|[^\s;&'\"]+)"
)
_ADDRESS = re.compile(
    r"\s*[a-z][\w+.-]*:[/\\]|\s*jdbc:|.*:.*@|.*\b(password|passwd|passphrase|pwd|secret|token)\s*=",
    re.IGNORECASE | re.DOTALL,
)


def hide_passwords(text: str) -> str:
    """Return a message without the passwords of the addresses in it.

    Examples
    --------
    >>> hide_passwords("no file 'mysql://ann:secret@host/db', host=h password=secret")
    "no file 'mysql://ann:***@host/db', host=h password=***"
    """
    return _NAMED.sub(r"\1***", _BEFORE_HOST.sub(r"\1:***@", text))


LONGEST_WORD, LONGEST_MESSAGE = 300, 4000
"""Characters beyond which a message repeats a value, or itself, only in part."""


def shorten_message(text: str) -> str:
    """Return a message in which nothing is endless: numbers of 5,000 digits, ids of megabytes.

    Examples
    --------
    >>> shorten_message(f"found {'9' * 5000}.")[-130:-95]
    '... (4,741 characters left out) ...'
    """
    whole = _LONG_WORD.sub(lambda word: _cut(word[0], LONGEST_WORD), text)
    return _cut(whole, LONGEST_MESSAGE)


_LONG_WORD = re.compile(rf"\S{{{LONGEST_WORD + 1},}}")


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    start, end = most * 2 // 3 - 40, most // 3
    return f"{text[:start]}... ({len(text) - start - end:,} characters left out) ...{text[-end:]}"


def tidy_message(text: str) -> str:
    """Return a message as people may read it: without passwords, and not endless."""
    return shorten_message(hide_passwords(text))


def looks_like_address(source: object) -> bool:
    """Say whether a path that leads nowhere may be an address, which must not be repeated."""
    if not isinstance(source, str | os.PathLike):
        return False
    text = os.fspath(source)
    return isinstance(text, str) and bool(_ADDRESS.match(text)) and not os.path.lexists(text)


@dataclass(frozen=True)
class Remedy:
    """What may put an error right.

    Attributes
    ----------
    words
        What to do, as it stands in the message.
    options
        Keywords of the function that refused, and their values; empty where something else is to
        be done.
    asks
        A keyword whose value only the user knows.
    """

    words: str
    options: Mapping[str, Any] = field(default_factory=dict)
    asks: str = ""


class DiscreetError(Exception):
    """Root of every error that this library raises on purpose."""

    exit_code = 1
    remedies: tuple[Remedy, ...] = ()

    def __init__(self, *words: object) -> None:
        # Here every message passes; no address in one may show its password.
        super().__init__(*(tidy_message(one) if isinstance(one, str) else one for one in words))

    def offering(self, *remedies: Remedy) -> Self:
        """Return this error with what may put it right, the likeliest first."""
        self.remedies = remedies
        return self


class BadUsage(DiscreetError, ValueError):
    """An argument, option or path is wrong; the data was not looked at."""

    exit_code = 2


class MissingExtra(BadUsage):
    """A feature needs an optional dependency that is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs the optional dependency group '{extra}', which is not installed. "
            f"Install it with: pip install 'discreet[{extra}]'"
        )


class BadBudget(BadUsage):
    """A privacy parameter is outside the range where the guarantee means something."""


class NotAllowed(BadUsage):
    """The ledger's policy, or the approvals that it asks for, do not allow the release."""


class OutOfReach(BadUsage):
    """The answers are where what was asked of them cannot be computed."""


class BadResponses(DiscreetError, ValueError):
    """The answers contain something that cannot be read as right, wrong or missing."""

    exit_code = 3


class BudgetExceeded(DiscreetError):
    """A release would spend more than the ledger's limit allows."""

    exit_code = 4


class LedgerError(DiscreetError):
    """The ledger file is missing, damaged, locked or belongs to other data."""


class DisconnectedItems(DiscreetError):
    """The answers do not link the items, so no difficulty can be determined."""

    exit_code = 5


class NotConverged(DiscreetError):
    """A solver stopped without an answer whose accuracy it can vouch for."""


class ItemsLeftOut(UserWarning):
    """Items have no number, or took no part; the warnings of the result say which and why.

    It is shown once for each place in a program, and turned off or into an error as any warning:
    ``warnings.simplefilter("error", discreet.errors.ItemsLeftOut)``.
    """


def refuse_address(path: object) -> None:
    """Refuse an address where a file is needed, without repeating it."""
    if looks_like_address(path):
        raise BadUsage(
            "There is no such file, and what was given looks like the address of a server (it is "
            "not repeated here, because it may hold a password). Answers are read from files and, "
            "by count_pairs, fit and release, from PostgreSQL as "
            "'postgresql://user@host:5432/database::table'; nothing else is read from or written "
            "to a server."
        )
