"""The language of a page: as chosen on a page, or as the browser prefers.

In: a request. Out: ``tell``, which says sentences of the catalogue in that language. A choice is
part of an address, and remembered in a cookie. Sentences of the library are said in it too where
:mod:`discreet.studio.messages` lists them.
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from typing import Any, cast

from markupsafe import Markup, escape
from starlette.exceptions import HTTPException
from starlette.requests import Request

from discreet.errors import BadUsage
from discreet.words import ENGLISH, LANGUAGES, Language, load_words

#: The name of the cookie with the choice, and of the part of an address that makes it.
COOKIE, CHOICE = "discreet-language", "lang"
_WISH = re.compile(r"(?:^|,)\s*([a-z]{2,3})\b[\w-]*(?:\s*;\s*q\s*=\s*(\d(?:\.\d+)?))?")


_spoken: ContextVar[Language] = ContextVar("spoken", default=ENGLISH)


class Speaker:
    """A :class:`discreet.words.Language`: that of the request which is being answered."""

    def __call__(self, sentence: str, /, **values: object) -> str:
        """Return a sentence with these values in it; links among them stay links."""
        text = self.term(sentence)
        has_html = any(isinstance(value, Markup) for value in values.values())
        said: str = (escape(text) if has_html else text).format(**values)
        return said

    def __getattr__(self, name: str) -> Any:
        return getattr(_spoken.get(), name)


tell = cast("Language", Speaker())


def refuse(sentence: str, /, **values: object) -> BadUsage:
    """Return the refusal of what was typed or sent."""
    return BadUsage(tell(sentence, **values))


def not_found(sentence: str, /, **values: object) -> HTTPException:
    """Return the refusal of an address that leads nowhere."""
    return HTTPException(404, tell(sentence, **values))


#: What a sentence of the library adds for whoever types commands or Python.
_SYNTAX = re.compile(
    r" with \w+=\S*|, in Python \w+=\{.*?\}|,? (?:say|give|or) \w+=\S*[^\s.;,]| ?\([^()]*--[^()]*\)"
)


def say_plainly(text: str) -> str:
    """Return sentences without keywords of Python and without options of the command line.

    Examples
    --------
    >>> say_plainly("No groups were named (--group COL): groups.")
    'No groups were named: groups.'
    >>> say_plainly("If 9 is missing, say so with missing=[9] (--missing 9); otherwise correct it.")
    'If 9 is missing, say so; otherwise correct it.'
    """
    return _SYNTAX.sub("", text)


def prefer_language(header: str) -> str:
    """Return the language that a browser prefers among those that there are.

    Examples
    --------
    >>> [prefer_language(wish) for wish in ("de-AT,de;q=0.9,en;q=0.8", "fr, es;q=0.5", "")]
    ['de', 'es', 'en']
    """
    wishes = [(float(weight or 1), code) for code, weight in _WISH.findall(header.lower())]
    known = [wish for wish in wishes if wish[1] in LANGUAGES and wish[0] > 0]
    return max(known, key=lambda wish: wish[0], default=(1.0, "en"))[1]


def begin_visit(request: Request) -> str:
    """Find the language of a request, and speak it until it is answered; return a new choice."""
    chosen = request.query_params.get(CHOICE, "")
    wishes = (chosen, request.cookies.get(COOKIE, ""))
    usual = prefer_language(request.headers.get("accept-language", ""))
    code = next((wish for wish in wishes if wish in LANGUAGES), usual)
    speak_language(code)
    return chosen if chosen == code else ""


def speak_language(code: str) -> None:
    """Speak a language from here on: in this request, or in a process that answers none."""
    _spoken.set(load_words(code))
