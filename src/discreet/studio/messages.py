"""Sentences of the library that the studio shows in other languages, as patterns.

In: a finished English sentence, as a question about a table, a finding or a picture has it. Out:
the same in another language: values between the words stay, and get a decimal comma. A sentence
that is not listed here stays English. ``tests/studio/test_studio_messages.py`` compares the list
with the sentences of the library.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache

from discreet.html import TEMPLATES
from discreet.words import Language, load_words

MESSAGES: tuple[str, ...] = tuple(
    tomllib.loads((TEMPLATES / "studio" / "messages.toml").read_text("utf-8"))["sentences"]
)

#: A value: it ends no sentence that another one follows.
_VALUE = r"(?:(?![.?!]\s+[A-Z]).)+?"
_SENTENCES = re.compile(r"(?<=[.?!])\s+(?=[A-Z0-9'“])")
_DECIMAL = re.compile(r"(?<![\w.])([-−]?\d+)\.(\d+)(?![\w.])")


@cache
def _list_patterns() -> Mapping[str, re.Pattern[str]]:
    """Return a pattern for every message, those without values at their beginning first."""
    patterns = {}
    for message in sorted(MESSAGES, key=lambda one: (one.count("{") > 0, one[0] == "{", -len(one))):
        parts = re.split(r"(\{\w+\})", message)
        written = [f"(?P<{p[1:-1]}>{_VALUE})" if p.startswith("{") else re.escape(p) for p in parts]
        patterns[message] = re.compile("".join(written), re.DOTALL)
    return patterns


@lru_cache(maxsize=1 << 16)
def say_message(code: str, text: str) -> str:
    """Return a finished sentence of the library, or several, in a language; English stays.

    Examples
    --------
    >>> say_message("de", "Person reliability is 0.59 with 12 answers per person (median).")
    'Die Reliabilität der Personen ist 0,59 bei 12 Antworten je Person (Median).'
    """
    if code == "en":
        return text
    whole = _say(load_words(code), text)
    if whole is not None:
        return whole
    sentences = _SENTENCES.split(text)
    if len(sentences) == 1:
        return text
    return " ".join(say_message(code, one) for one in sentences)


def _say(language: Language, text: str) -> str | None:
    for message, pattern in _list_patterns().items():
        if match := pattern.fullmatch(text):
            values = {name: _say_value(language, one) for name, one in match.groupdict().items()}
            return language(message, **values)
    return None


def _say_value(language: Language, text: str) -> str:
    spoken = [_say(language, one) if " " in one else None for one in text.split(", ")]
    if len(spoken) > 1 and all(spoken):  # a list is said entry by entry
        return ", ".join(map(str, spoken))
    said = _say(language, text) if " " in text else None
    if said is None and ", " in text:
        return ", ".join(_say_value(language, one) for one in text.split(", "))
    return _DECIMAL.sub(r"\1,\2", text) if said is None else said
