"""Short labels for items whose names are long: what tells them apart.

In: names of items. Out: as many labels, each once; the full names are shown beside or on hover.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

#: Names of up to so many signs are shown as they are.
SHORT = 20
#: Signs of a label that was cut.
CUT = 28
_BRACKET = re.compile(r"\[([^\[\]]+)\]\s*$")
_CODE = re.compile(r"^([A-Za-z]{0,8}\d[\w.]{0,10}?)\s*[.:)]\s+\S|^(\w{1,12}(?:\[\w+\])?)[.:]\s+\S")


def shorten(names: Sequence[str]) -> list[str]:
    """Return a short label for each name.

    Examples
    --------
    >>> shorten(["How often do you [walk to school]", "How often do you [eat breakfast]"])
    ['walk to school', 'eat breakfast']
    >>> shorten(["Q1. I would like to go there again", "Q2. I would never go there again"])
    ['Q1', 'Q2']
    >>> shorten(["Points of all tasks: Fractions (2)", "Points of all tasks: Ratios (2)"])
    ['Fractions', 'Ratios']
    >>> shorten(["Q1", "Q2"])
    ['Q1', 'Q2']
    """
    if max(map(len, names), default=0) <= SHORT:
        return [*names]
    found = [_BRACKET.search(name) for name in names]
    if (brackets := [match[1].strip() for match in found if match]) and _tell_apart(
        brackets, names
    ):
        return [_cut(one) for one in brackets]
    codes = [match[1] or match[2] for match in map(_CODE.match, names) if match]
    if _tell_apart(codes, names):
        return codes
    ahead = len(re.sub(r"[\w'’-]+$", "", _share(names)))
    tails = [name[ahead:] for name in names]
    behind = len(re.sub(r"^[\w'’-]+", "", _share([one[::-1] for one in tails])[::-1]))
    labels = [_cut(one[: len(one) - behind].strip(" .:-–_/")) for one in tails]
    return labels if _tell_apart(labels, names) else [*names]


def _share(texts: Sequence[str]) -> str:
    """Return with which signs all texts begin."""
    alike = takewhile(lambda signs: len({*signs}) == 1, zip(*texts, strict=False))
    return "".join(signs[0] for signs in alike)


def _tell_apart(labels: Sequence[str], names: Sequence[str]) -> bool:
    return len({*labels}) == len(names) == len(labels) and all(labels)


def _cut(label: str) -> str:
    return label if len(label) <= CUT else f"{label[: CUT - 1].rstrip()}…"
