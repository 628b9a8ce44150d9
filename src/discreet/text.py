"""Text: counted nouns, percentages, Markdown, JSON, and cells that no spreadsheet runs.

In: names from data and numbers. Out: strings in which nothing from the data is taken for markup, a
formula or a control character.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from discreet.choices import PlainMapping
from discreet.errors import escape_controls, escape_json
from discreet.words import ENGLISH, Language

#: Rows of a table in a notebook or a text: more would bury what comes next.
PREVIEW_ROWS = 12

# Signs that begin something in some dialect of Markdown, in HTML, formulas or site generators. An
# underscore inside a word begins nothing.
_MARKS = re.compile(r"[\\`*\[\]{}<>&|$~]|(?<![^\W_])_|_(?![^\W_])")
# Signs that begin a heading, a list or a line across the page, where a paragraph begins with them.
_FIRST = re.compile(r"(\d+(?=[.)](?:\s|$)))?(#|[-+](?![\d.])|(?<=\d)[.)])")
_NAMED = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}


def markdown_text(text: str) -> str:
    """Return text that Markdown shows as it is, in one line: no HTML, links, images or headings.

    Special characters are written as entities, which no dialect takes for marks of its own.

    Examples
    --------
    >>> print(markdown_text("1 < 2, q_1 ![x](http://host/x.png)"))
    1 &lt; 2, q_1 !&#91;x&#93;(http://host/x.png)
    """
    line = _MARKS.sub(lambda match: _as_entity(match[0]), escape_controls(text).strip())
    first = _FIRST.match(line)
    if first is None:
        return line
    return (first[1] or "") + _as_entity(first[2]) + line[first.end() :]


def _as_entity(sign: str) -> str:
    return _NAMED.get(sign, f"&#{ord(sign)};")


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; heads may be empty."""
    lines = [[markdown_text(cell) for cell in row] for row in (heads, *rows)]
    first, *others = ("".join(f"| {cell} " if cell else "| " for cell in line) for line in lines)
    return "\n".join(f"{line}|" for line in (first, "|---" * len(heads), *others))


def minus(number: str) -> str:
    """Return a number with a proper minus sign."""
    return number.replace("-", "\N{MINUS SIGN}")


def show_probability(share: float, tell: Language = ENGLISH) -> str:
    """Return a probability as a percentage that never claims to be certain.

    Examples
    --------
    >>> [show_probability(share) for share in (0.5, 0.93321, 0.99957, 0.0)]
    ['50.0%', '93.3%', 'over 99.9%', 'under 0.1%']
    """
    if share > 0.999:
        return tell("over 99.9%")
    if share < 0.001:
        return tell("under 0.1%")
    return tell("{percent}%", percent=f"{100 * share:.1f}")


def show_predicted_share(share: float) -> str:
    """Return a predicted share in whole percent, which never says "all" or "none".

    Examples
    --------
    >>> [show_predicted_share(share) for share in (0.5, 0.9949, 0.9951, 1.0, 0.001)]
    ['50%', '99%', 'over 99%', 'over 99%', 'under 1%']
    """
    if share > 0.995:
        return "over 99%"
    return "under 1%" if share < 0.005 else f"{100 * share:.0f}%"


def isolate(name: str) -> str:
    """Keep letters that run from right to left from turning round what stands beside them."""
    name = escape_controls(name)
    if any(unicodedata.bidirectional(sign) in ("R", "AL", "AN") for sign in name):
        return f"\N{FIRST STRONG ISOLATE}{name}\N{POP DIRECTIONAL ISOLATE}"
    return name


def name_some(names: Sequence[str], limit: int = 5, tell: Language = ENGLISH) -> str:
    """Join the first few names, and say how many more there are."""
    some, more = ", ".join(map(isolate, names[:limit])), len(names) - limit
    if more <= 0:
        return some
    return tell.count(more, "{names} and {number} more", "{names} and {number} more", names=some)


def count_of(count: int, noun: str = "item") -> str:
    """Return "1 item", "2 items"."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


# What a spreadsheet takes for a formula: also behind blanks, and in the wide letters of Asian
# keyboards. Apostrophes in front are part of it, so that taking one off gives back what was there.
_FORMULA = re.compile(r"'*(?:\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n])")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def spreadsheet_cell(value: Any) -> Any:
    """Return a cell that no spreadsheet runs: an apostrophe goes before what looks like a formula.

    Examples
    --------
    >>> [spreadsheet_cell(name) for name in ("=1+1", "-5", "Item1")]
    ["'=1+1", '-5', 'Item1']
    """
    if not isinstance(value, str) or not _FORMULA.match(value) or _NUMBER.fullmatch(value):
        return value
    return f"'{value}"


def read_cell(text: str) -> str:
    """Return what :func:`spreadsheet_cell` was given."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def json_text(document: PlainMapping, *, ascii_only: bool = False) -> str:
    """Return a JSON document with one line for each key and for each entry of a list.

    The entries themselves stay on one line: easy to read, and several times faster than the
    indentation of the standard library, which is pure Python.
    """

    def dump(value: object) -> str:
        try:
            text = json.dumps(value, ensure_ascii=ascii_only, allow_nan=False)
        except ValueError:
            text = json.dumps(without_nan(value), ensure_ascii=ascii_only, allow_nan=False)
        return escape_json(text)

    def lines(value: object) -> str:
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return "[\n    " + ",\n    ".join(map(dump, value)) + "\n  ]"
        return dump(value)

    body = ",\n".join(f"  {dump(key)}: {lines(value)}" for key, value in document.items())
    return f"{{\n{body}\n}}"


def without_nan(value: object) -> object:
    """Return a copy in which numbers that are not finite are ``None``."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): without_nan(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(one) for one in value]
    return value


def show_probability_bound(share: float, tell: Language = ENGLISH) -> str:
    """Return a probability that bounds another, as a percentage."""
    if share > 0.999:
        return tell("more than 99.9%")
    # Nobody is to read 100%: that would be no bound.
    percent = f"{100 * share:.0f}" if share < 0.99 else f"{math.ceil(1000 * share) / 10:.1f}"
    return tell("at most about {percent}%", percent=percent)


def show_chance(chance: float) -> str:
    """Return two digits of a small probability, rounded up.

    Examples
    --------
    >>> show_chance(0.0000512)
    '5.2e-05'
    """
    scale = 10.0 ** (math.floor(math.log10(chance)) - 1)
    return f"{min(1.0, math.ceil(chance / scale - 1e-9) * scale):.2g}"


def show_apart(*numbers: float) -> list[str]:
    """Write numbers with two digits, or so many more that different ones look different.

    Examples
    --------
    >>> show_apart(1.38, 1.33), show_apart(1.2841, 1.2803), show_apart(12.5, 12.5)
    (['1.38', '1.33'], ['1.284', '1.280'], ['12.50', '12.50'])
    """
    for digits in (2, 3, 4):
        shown = [f"{number:.{digits}f}" for number in numbers]
        if len(set(shown)) == len(set(numbers)):
            break
    return shown
