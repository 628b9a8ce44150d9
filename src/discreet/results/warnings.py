"""What a result warns about: a kind for programs, a sentence for people, the items concerned.

A warning is a string, so that it prints, joins and goes into JSON as its sentence. Code that must
know what was said asks for the kind, never for words of the sentence.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Self


class Kind(StrEnum):
    """What a warning is about."""

    LEFT_OUT = "left_out"  # items whose answers give no number
    NOT_LINKED = "not_linked"  # items that the answers do not link to the others
    SEVERAL_SETS = "several_sets"  # equally large sets of items that nothing links
    LINKED_BY_ASSUMPTION = "linked_by_assumption"
    FLAT_ABILITIES = "flat_abilities"
    REGULARISED = "regularised"
    NO_STANDARD_ERRORS = "no_standard_errors"
    ROUTED = "routed"  # earlier answers seem to have chosen later items
    NO_LABEL = "no_label"  # persons outside every group
    NOT_COMPARED = "not_compared"  # items that a comparison of groups had to leave out
    IGNORED = "ignored"  # items that a calibration does not know
    DRIFTED = "drifted"  # common items that two calibrations disagree about
    DISPLACED = "displaced"  # anchors that the answers disagree with
    WEAK_LINK = "weak_link"
    WEAK_PLAN = "weak_plan"


class Notice(str):
    """A warning of a result.

    Attributes
    ----------
    kind
        What it is about.
    items
        The items concerned, all of them; the sentence names a few.

    Examples
    --------
    >>> notice = Notice(Kind.LEFT_OUT, "no difficulty for 1 item that nobody answered: q9", ["q9"])
    >>> print(notice.kind, notice.items)
    left_out ('q9',)
    """

    kind: Kind
    items: tuple[str, ...]

    def __new__(cls, kind: Kind, sentence: str, items: Iterable[str] = ()) -> Self:
        self = super().__new__(cls, sentence)
        self.kind, self.items = kind, tuple(items)
        return self

    def __getnewargs__(self) -> tuple[Kind, str, tuple[str, ...]]:  # type: ignore[override]
        return self.kind, str(self), self.items
