"""What a change of the answers did to the fit: two checks of a model side by side.

In: the same answers twice, read before and after a change such as merged categories, both checked.
Out: a :class:`FitChange`, one row per number. Likelihoods are not among them: those of different
answers do not compare. Confidential.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from discreet.errors import BadUsage
from discreet.report.findings.steps import list_disordered, list_falls, list_rare
from discreet.report.tests import ModelCheck
from discreet.tabular import Tabular, brief_repr

Row = tuple[str, float | None, float | None]
"""What a number is, and its values before and after."""


@dataclass(frozen=True)
class FitChange(Tabular):
    """Numbers before and after a change. Confidential.

    Attributes
    ----------
    name
        What the number is.
    before, after
        ``None`` where there is no such number.
    """

    name: tuple[str, ...]
    before: tuple[int | float | None, ...]
    after: tuple[int | float | None, ...]

    __repr__ = brief_repr

    def to_dict(self) -> dict[str, list[Any]]:
        """One list per column."""
        return {name: list(getattr(self, name)) for name in ("name", "before", "after")}


def compare_fit(before: ModelCheck, after: ModelCheck) -> FitChange:
    """Return how a change of the answers changed the fit. Confidential.

    Parameters
    ----------
    before, after
        From :func:`discreet.analysis.check_model`, on the same items. Fit is shown of the items
        whose categories differ.

    Raises
    ------
    BadUsage
        If the two are about different items, or no item's categories differ.
    """
    if before.estimate.items != after.estimate.items:
        raise BadUsage("a change of fit can be told only of the same items in the same order")
    steps = zip(before.estimate.steps, after.estimate.steps, strict=True)
    changed = [index for index, (first, second) in enumerate(steps) if first != second]
    if not changed:
        raise BadUsage(
            "no item has other categories than before, so there is nothing to compare; merge "
            "categories with merge= (--merge ITEM:2+3)"
        )
    rows = [*_compare_items(before, after, changed), *_compare_tests(before, after)]
    return FitChange(*(tuple(column) for column in zip(*rows, strict=True)))


def _compare_items(before: ModelCheck, after: ModelCheck, changed: list[int]) -> Iterator[Row]:
    for index in changed:
        item, old, new = before.estimate.items[index], before.diagnostics, after.diagnostics
        yield f"infit of {item}", old.infit[index], new.infit[index]
        yield f"outfit of {item}", old.outfit[index], new.outfit[index]


def _compare_tests(before: ModelCheck, after: ModelCheck) -> Iterator[Row]:
    old, new = before.diagnostics, after.diagnostics
    yield "person reliability", old.reliability, new.reliability
    yield "Cronbach's alpha", old.alpha, new.alpha
    counts = zip(_count_faults(before), _count_faults(after), strict=True)
    yield from ((name, first, second) for (name, first), (_, second) in counts)


def _count_faults(check: ModelCheck) -> Iterator[tuple[str, int]]:
    table = check.diagnostics.find_table("categories")
    yield "thresholds in the wrong order", len(list_disordered(check.estimate))
    yield "categories with few answers", len(list_rare(check.estimate))
    falls = [] if table is None else list_falls(table.columns)
    yield "categories with persons no abler", len(falls)
