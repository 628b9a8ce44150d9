"""Names that people guess: errors about a name that is not there say which one is.

In: a name, and the names that there are. Out: a sentence with the call that does what was meant.
``data/guesses.toml`` holds words of other programs for what is called otherwise here; what is only
spelt otherwise is found by its spelling.
"""

from __future__ import annotations

import re
import sys
import tomllib
from abc import ABCMeta
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import cache, wraps
from importlib.resources import files
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from discreet.errors import BadUsage

Called = TypeVar("Called", bound=Callable[..., Any])


@cache
def list_guesses(section: str) -> list[tuple[str, str]]:
    """Return the guessed words of a section of ``data/guesses.toml``, each with what is meant."""
    text = files("discreet").joinpath("data", "guesses.toml").read_text(encoding="utf-8")
    calls = tomllib.loads(text)[section]
    return [(word, call) for call, words in calls.items() for word in words.split()]


def check_choice_name(subject: str, name: str, choices: Iterable[str]) -> None:
    """Refuse a name that is none of the choices, and say which one may be meant.

    Examples
    --------
    >>> check_choice_name("model", "PCM", ("rasch", "partial-credit"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    discreet.errors.BadUsage: there is no model called 'PCM'; did you mean 'partial-credit'? ...
    """
    listed = list(choices)
    if name in listed:
        return
    word = str(name).lower().replace("_", "-")
    candidates = [
        dict(list_guesses("choices")).get(word, word),
        *get_close_matches(word, listed, 1),
    ]
    meant = next((each for each in candidates if each in listed), "")
    ask = f"did you mean {meant!r}? Choose" if meant else "choose"
    raise BadUsage(f"there is no {subject} called {name!r}; {ask} one of: {', '.join(listed)}")


def suggest(name: str, names: Iterable[str] = (), guesses: Mapping[str, str] | None = None) -> str:
    """Return the sentence that helps somebody who guessed a name; empty where nothing is near.

    ``names`` are those that there are, ``guesses`` those of other programs (default: of functions).

    Examples
    --------
    >>> suggest("difficulties", ["difficulty", "se"], {"difficulties": "difficulty"})
    'Use difficulty.'
    """
    public = [each for each in names if not each.startswith("_")]
    words = re.sub("([a-z])([A-Z])", r"\1_\2", name).lower().strip("_").split("_")
    guesses = dict(list_guesses("calls")) if guesses is None else guesses
    calls = {guess.lower().replace("_", ""): call for guess, call in guesses.items()}
    near = get_close_matches(name, public, 3, 0.6)
    # Of yen_q3 and separation_index one word at an end counts where nothing is spelt alike.
    parts = [words] if near else [words, words[1:], words[:-1]]
    call = next(filter(None, (calls.get("".join(part)) for part in parts)), "")
    if call:
        return f"Use {call.format(name=name)}."
    inside = [each for each in public if len(name) > 2 and name in each and each not in near]
    near += inside[:3]
    return f"Did you mean {' or '.join(near)}?" if near else ""


class UnknownName(AttributeError):
    """An attribute that is not there; the message, made when it is shown, has the one meant."""

    def __init__(self, owner: str, name: str, obj: object) -> None:
        super().__init__(f"{owner} has no attribute {name!r}.", name=name, obj=obj)

    def __str__(self) -> str:
        message, name = super().__str__(), self.name or ""
        if name.startswith("_"):
            return message
        kind = self.obj if isinstance(self.obj, type | ModuleType) else type(self.obj)
        public = list_public(self.obj)
        guesses = dict(list_guesses("calls"))
        if kind is self.obj and kind.__name__ in guesses:
            guesses["load"] = guesses[kind.__name__]
        # The name that a call begins with must be there, in the object or in a part of it.
        existing = find_in_parts(self.obj) | {each.rstrip("_"): each for each in public}
        for word, call in list_guesses("attributes"):
            begin = re.split("[(, .]", call)[0]
            if begin in existing:
                guesses[word] = existing[begin] + call.removeprefix(begin)
        if name in existing:
            guesses[name] = existing[name]
        return f"{message} {suggest(name, public, guesses) or list_names(public)}"


def list_public(obj: object) -> list[str]:
    """Return the public names of an object: its own, then those of its type."""
    if isinstance(obj, ModuleType):
        defined = [each for each, value in vars(obj).items()
               if getattr(value, "__module__", "") == obj.__name__]  # fmt: skip
        names = getattr(obj, "__all__", defined)
    else:
        kind = obj if isinstance(obj, type) else type(obj)
        names = [*getattr(obj, "__dict__", ()), *dir(kind)]
    return [each for each in dict.fromkeys(names) if not each.startswith("_")]


def find_in_parts(obj: object) -> dict[str, str]:
    """Return the names of the parts of a result, such as its estimate, with the part before."""
    parts = getattr(obj, "__dict__", {}) if isinstance(obj, Guessable) else {}
    held = {name: part for name, part in parts.items() if isinstance(part, Guessable)}
    return {each: f"{name}.{each}" for name, part in held.items() for each in list_public(part)}


def list_names(names: Iterable[str]) -> str:
    """Return the sentence for a guess that nothing comes near."""
    return f"It has {', '.join(names)}."


class GuessableModule(ModuleType):
    """A module whose unknown names, and which itself when called, name the call that was meant."""

    def __getattr__(self, name: str) -> Any:
        raise UnknownName(f"module {self.__name__!r}", name, self)

    def __call__(self, *_arguments: Any, **_keywords: Any) -> Any:
        name = self.__name__.rpartition(".")[2]
        raise TypeError(f"{self.__name__} is a module. {suggest(name)}")


def answer_guesses(module: str) -> None:
    """Make a loaded module answer guesses."""
    sys.modules[module].__class__ = GuessableModule


class GuessableType(ABCMeta):
    """The type of a class that answers unknown attributes of its own."""

    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> Any:
            raise UnknownName(f"type object {cls.__name__!r}", name, cls)


class Guessable(metaclass=GuessableType):
    """A class whose unknown attributes are answered by the name that was meant."""

    if not TYPE_CHECKING:  # a type checker finds misspelt names itself

        def __getattr__(self, name: str) -> Any:
            if isinstance(refusing := getattr(type(self), name, None), property):
                return refusing.fget(self)  # raises again what it raised before we were asked
            raise UnknownName(f"{type(self).__name__!r} object", name, self)


def explain_call(function: Called, made: str = "") -> Called:
    """Return a function that, called with wrong arguments, shows how it is called.

    ``made`` is the class that the function makes ready, where it is one's ``__init__``.
    """

    @wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        try:
            return function(*arguments, **keywords)
        except TypeError as error:
            inside = error.__traceback__ and error.__traceback__.tb_next
            # A function that hands its keywords on is refused by the next one.
            if inside and (inside.tb_next or "unexpected keyword" not in str(error)):
                raise
            from inspect import signature

            shown = [
                "..."
                if each.kind is each.VAR_KEYWORD
                else each.name + ("" if each.default is each.empty else f"={each.default!r}")
                for each in signature(function).parameters.values()
            ]
            parameters = ", ".join(shown[1:] if made else shown)
            usage = f"Call it as discreet.{made or function.__name__}({parameters})"
            call = dict(list_guesses("calls")).get(made)
            raise TypeError(f"{error}. {f'Use {call}' if call else usage}") from None

    return call  # type: ignore[return-value]


def explain_class(kind: type, name: str) -> None:
    """Make a class show how it is made, by itself or by a method of the class."""
    ways = {key: way for key, way in vars(kind).items() if isinstance(way, classmethod)}
    for key, way in ways.items():
        setattr(kind, key, classmethod(explain_call(way.__func__, f"{name}.{key}")))
    kind.__init__ = explain_call(kind.__init__, name)  # type: ignore[misc]


answer_guesses("discreet.errors")
