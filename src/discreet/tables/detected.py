"""Reading parameters that were detected in the data rather than stated.

Readers look at the data where nobody states how to read it. A release must not: one person's rows
could change what is detected, and with it how everybody's answers are read (docs/privacy.md,
"Reading"). So answers carry a :class:`Detected` for each parameter that was detected, and a release
refuses them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from discreet.errors import BadResponses, Remedy
from discreet.tables.remedies import make_remedy

Origin = Literal["fixed", "names", "data"]

UNSTATED: Mapping[str, Origin] = {
    "layout": "names",
    "person": "names",
    "item": "names",
    "response": "names",
    "ignore": "fixed",
    "group": "fixed",
    "repeats": "fixed",
    "one_means": "fixed",
    "at_least": "fixed",
    "missing": "data",
    "key": "data",
    "sheet": "fixed",
    "delimiter": "data",
    "header": "data",
    "order_by": "fixed",
    "model": "fixed",
    "steps": "data",
    "lowest": "data",
    "reverse": "fixed",
    "merge": "fixed",
}
"""Where each keyword of :func:`discreet.read_responses` comes from if it is not stated.

``"fixed"``: a default, the same for every table. ``"names"``: the names of the columns, which are
public. ``"data"``: values or labels of the file; where they ask for something else than the
default, a release needs the keyword. A workbook's ``sheet`` is the only one with data, and several
are refused. Values decide on the ``model`` of answers, which changes no answer.
"""


@dataclass(frozen=True)
class Detected:
    """One parameter that was detected in the data.

    Attributes
    ----------
    option
        The keyword that states it, or what it is called where no keyword does.
    sentence
        What was detected, and where.
    remedy
        What to state or do instead.
    """

    option: str
    sentence: str
    remedy: Remedy


class DeclaredSource:
    """A source whose format declares names and types of its columns, so nothing is detected."""

    def detect(self, columns: Sequence[int], *, has_ids: bool) -> tuple[Detected, ...]:
        """Return what was detected in the data to read these columns of answers."""
        del columns, has_ids
        return ()


def state_option(option: str, sentence: str, options: Mapping[str, Any]) -> Detected:
    """Return a parameter that these keywords state."""
    return Detected(option, sentence, make_remedy("state it with", options))


def join_detected(parts: Iterable[Sequence[Detected]]) -> tuple[Detected, ...]:
    """Return what was detected in any of several tables, each once."""
    joined: list[Detected] = []
    for one in (one for part in parts for one in part):
        if one not in joined:
            joined.append(one)
    return tuple(joined)


def refuse_detected(detected: Sequence[Detected]) -> None:
    """Refuse to release answers whose reading was detected in the data."""
    if detected:
        told = " ".join(f"{one.sentence} {_capital(one.remedy.words)}." for one in detected)
        raise BadResponses(
            "A release reads answers by stated rules, and here the data decided how they were "
            "read. One person's rows could change that, and with it everybody's answers. "
            f"{told}"
        ).offering(*(one.remedy for one in detected))


def _capital(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}"
