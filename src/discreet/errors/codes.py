"""Codes and facts of errors: which raise statement made an error, and what its sentence names.

In: the functions that made an error, the innermost first, and its message. Out: a stable word for
the raise statement, and the values in the message by the names that they have in the code.

`messages.txt` lists every raise statement with its code, where it stands and its sentence, written
by ``python -m tools.messages`` from the source. A reworded sentence keeps its code.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from string import Formatter

#: What stands before and behind the sentence of a statement that does not write the whole message.
BESIDE = "_"


@dataclass(frozen=True)
class Sentence:
    """What one raise statement says.

    Examples
    --------
    >>> sentence = Sentence("no_such_item", "tests.find", "no item {name!r} among {count}")
    >>> sentence.read("no item 'q9' among 12")
    {'name': 'q9', 'count': '12'}
    """

    code: str
    place: str
    text: str

    @cached_property
    def words(self) -> int:
        """How many characters the message has of its own."""
        return sum(len(constant) for constant, *_ in Formatter().parse(self.text))

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """What messages of this sentence look like."""
        parts: list[str] = []
        for constant, name, _, _ in Formatter().parse(self.text):
            parts.append(re.escape(constant))
            if name is not None:
                parts.append(".*?" if name == BESIDE else f"(?P<{name}>.*?)")
        return re.compile("".join(parts), re.DOTALL)

    def read(self, message: str) -> dict[str, object] | None:
        """Return the facts of a message; None if it says something else."""
        found = self.pattern.fullmatch(message)
        if found is None:
            return None
        quoted = {name for _, name, _, shown in Formatter().parse(self.text) if shown == "r"}
        return {
            name: _unquote(text) if name in quoted else text
            for name, text in found.groupdict().items()
        }


def _unquote(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def read_sentences(document: str) -> list[Sentence]:
    """Return the sentences of a list as `messages.txt` has them: code and place, then the text."""
    lines = document.splitlines()
    heads = (line.split() for line in lines[::2])
    return [
        Sentence(code, place, text.strip())
        for (code, place), text in zip(heads, lines[1::2], strict=True)
    ]


@cache
def list_sentences() -> Mapping[str, list[Sentence]]:
    """Return all sentences by the function that says them, the longest first."""
    document = files("discreet.errors").joinpath("messages.txt").read_text(encoding="utf-8")
    by_place = defaultdict(list)
    for sentence in sorted(read_sentences(document), key=lambda one: -one.words):
        by_place[sentence.place].append(sentence)
    return by_place


def find_code(places: Iterable[str], message: str) -> tuple[str, dict[str, object]] | None:
    """Return code and facts of a message that one of these functions wrote."""
    for place in places:
        for sentence in list_sentences().get(place, ()):
            facts = sentence.read(message)
            if facts is not None:
                return sentence.code, facts
    return None
