"""A finding: one thing that is wrong with a test, in plain words, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

__all__ = ["Finding", "Severity", "count_of", "name_some"]

NAMED = 6
"""Items that a finding names; the table has them all."""


class Severity(IntEnum):
    """How much a finding matters."""

    SERIOUS = 0
    LOOK = 1


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: what was found and what to do."""

    severity: Severity
    title: str
    found: str
    advice: str


def name_some(names: Sequence[str]) -> str:
    """Join the first names, and say how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def count_of(count: int, noun: str = "item") -> str:
    """Return "1 item", "2 items"."""
    return f"{count:,} {noun}{'s' * (count != 1)}"
