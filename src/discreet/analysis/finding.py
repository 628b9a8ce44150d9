"""From which number on the report says something, and where that number comes from.

A threshold is a rule of thumb that tells a reader where to look first, never a verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

FIT_LOW, FIT_HIGH = 0.7, 1.3
"""Mean squares of ordinary tests (Wright and Linacre 1994, Reasonable mean-square fit values)."""

FIT_BAD = 1.5
"""From here on an item does not help to measure; from 2 on it harms (the same source)."""

RELIABILITY_GOOD, RELIABILITY_LOW = 0.8, 0.5
"""Below 0.8 (separation 2) two levels of ability are hardly told apart, below 0.5 (separation
1) noise is larger than the differences between persons (Fisher 1992, Linacre)."""

OFF_TARGET = 1.0
"""Logits between mean ability and mean difficulty: there 73% or 27% right are expected."""

ROUGH_SE = 0.5
"""Logits: the 95% interval is then two logits wide, about what 30 persons give."""

DEPENDENT = 0.2
"""Residual correlation above the mean one (Christensen, Makransky and Horton 2017)."""

EXTREME_SHARE = 0.1
"""Share of persons with everything right or wrong, of whom little more than that is known."""

MATCHED = 0.25
"""Correlation of ability and the mean difficulty of the items a person got. Items given out at
random show about 0; sampling alone exceeds this with probability 1e-3 from 175 persons on."""

WEAK_CORRELATION = 0.1
"""Below, the item hardly tells abler from less able persons; below 0 its key may be wrong."""

SURE_T = 2.0
"""Standardised fit below which a mean square far from 1 may be chance: few persons."""

ENOUGH_ANSWERS = 30
"""Answers below which a correlation with ability is mostly chance (standard error 0.18)."""

# A finding: one thing that is wrong with a test, in plain words, and what to do about it.

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
