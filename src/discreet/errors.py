"""Everything that can go wrong, each with the exit code the command line gives it.

::

    DiscreetError                  1
    ├── BadUsage                   2   a wrong argument, a file that is not there
    │   ├── MissingExtra           2   an optional dependency is not installed
    │   └── BadBudget              2   an epsilon, delta or cap that means nothing
    ├── BadResponses               3   the answers cannot be used as they are
    ├── BudgetExceeded             4   the ledger has less left than was asked for
    ├── LedgerError                1   the ledger itself cannot be used
    ├── DisconnectedItems          5   the answers do not determine what was asked
    └── NotConverged               1   a solver stopped without an answer it can vouch for

Every message says what was found, where, why it matters and what to do.
"""

from __future__ import annotations

__all__ = [
    "BadBudget",
    "BadResponses",
    "BadUsage",
    "BudgetExceeded",
    "DisconnectedItems",
    "DiscreetError",
    "LedgerError",
    "MissingExtra",
    "NotConverged",
]


class DiscreetError(Exception):
    """Root of every error that this library raises on purpose."""

    exit_code = 1


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
