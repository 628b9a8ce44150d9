"""Small things that stand for an item: a short label where its name is long, bars of its answers.

In: names of items. Out: as many labels, each once; the full names are shown beside or on hover.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from discreet.report.plain import AnsweredItem
from discreet.studio.language import tell

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


#: How high the picture of an item's answers is; it is 100 wide.
BAR_HEIGHT = 32


class SmallBar(NamedTuple):
    """A bar of the picture of an item's answers: where it stands, and what it is."""

    left: str
    top: str
    width: str
    height: str
    kind: str


def draw_bars(item: AnsweredItem) -> tuple[SmallBar, ...]:
    """Return a bar for each answer to an item; the right one and the strongest wrong one differ."""
    most, width = max([1, *(bar.times for bar in item.bars)]), 100 / max(1, len(item.bars))
    heights = [BAR_HEIGHT * bar.times / most for bar in item.bars]
    kinds = {True: "right", False: "other"}
    return tuple(
        SmallBar(
            f"{n * width + width * 0.1:.4g}",
            f"{BAR_HEIGHT - height:.4g}",
            f"{width * 0.8:.4g}",
            f"{height:.4g}",
            "strong" if bar.label == item.strongest else kinds[bar.is_right],
        )
        for n, (bar, height) in enumerate(zip(item.bars, heights, strict=True))
    )


def tell_bars(item: AnsweredItem) -> str:
    """Return the same in words."""
    return "; ".join(f"{bar.label}: {tell.number(bar.times)}" for bar in item.bars)
