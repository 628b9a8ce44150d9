"""Arguments of public functions, checked against their declared types before anything runs.

In: a function or a class with annotations. Out: the same one, which refuses an argument of another
kind: ``force="no"``, which Python would take for true, ``level="0.9"``, ``items=[None, "1"]``.
Three kinds leave no doubt and become what is declared: whole numbers written as 2.0, numbers for
the names that they are written as, and seeds for random generators. What an annotation leaves open
(``Any``, arrays, protocols) the function checks itself. Annotations are read at the first call.
Inside, numpy treats overflow and underflow as it does by default, whatever the program set.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, wraps
from inspect import Parameter, signature, unwrap
from numbers import Integral, Number
from os import PathLike, fspath
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    SupportsIndex,
    TypeVar,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

from discreet.errors import BadUsage, hide_passwords
from discreet.names import name_id

if TYPE_CHECKING:
    from discreet.types import FloatArray

Called = TypeVar("Called", bound=Callable[..., Any])
#: Returns an argument as it is declared, or raises :class:`_Wrong`; None takes anything.
Rule = Callable[[Any], Any] | None

#: Characters of a wrong value that a message repeats.
SHOWN = 60
#: What numpy calls its truth values, which are not Python's.
_NUMPYS = ("numpy.bool", "numpy.bool_")
#: What a message repeats; of other values it says the type.
_SHOWN = (str, bytes, Number, types.NoneType, list, tuple, dict)
_ROWS = (list, tuple)
_LISTS = (list, tuple, Sequence, Collection, Iterable)


class _Wrong(Exception):
    """A value is not what is wanted; ``place`` is where it stands in the argument."""

    def __init__(self, value: object, wanted: str, place: str = "") -> None:
        self.value, self.wanted, self.place = value, wanted, place


def checked(called: Called) -> Called:
    """Return a function, or a class, that refuses arguments of another kind than it declares.

    Examples
    --------
    >>> @checked
    ... def write(folder: str, *, force: bool = False) -> bool:
    ...     return force
    >>> write("results", force="no")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    discreet.errors.BadUsage: force= of write() must be True or False (Python takes a text ...
    """
    if isinstance(called, type):
        called.__init__ = checked(called.__init__)  # type: ignore[misc]
        return called
    if hasattr(called, "is_checked"):
        return called

    @wraps(called)
    def call(*arguments: Any, **keywords: Any) -> Any:
        import numpy as np  # here, because the command line loads this module and not always numpy

        names, rules = _list_rules(called)
        pairs = zip(names, arguments, strict=False)
        given = [
            _check(called, name, value, rule) if (rule := rules.get(name)) else value
            for name, value in pairs
        ]
        for name, value in keywords.items():
            if rule := rules.get(name):
                keywords[name] = _check(called, name, value, rule)
        with np.errstate(divide="warn", over="warn", invalid="warn", under="ignore"):
            return called(*given, *arguments[len(given) :], **keywords)

    call.is_checked = True  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


def check_exports(names: dict[str, Any], exported: Iterable[str]) -> None:
    """Put checked functions in the place of the functions that a module exports."""
    for name in exported:
        if isinstance(names[name], types.FunctionType):
            names[name] = checked(names[name])


def _check(called: Callable[..., Any], name: str, value: Any, rule: Callable[[Any], Any]) -> Any:
    try:
        return rule(value)
    except _Wrong as wrong:
        kind, shown = type(wrong.value).__name__, hide_passwords(repr(wrong.value))
        shown = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."
        found = f"{shown} ({kind})" if isinstance(wrong.value, _SHOWN) else kind
        where = f"{name}{wrong.place or '='} of {called.__qualname__.removesuffix('.__init__')}()"
        raise BadUsage(
            f"{where} must be {wrong.wanted}; found {found}. "
            "Nothing was read, computed or written; correct this argument."
        ) from None


def as_numbers(name: str, values: Any) -> FloatArray:
    """Return numbers of any form as an array, or refuse what are none."""
    import numpy as np

    try:
        return np.asarray(values if values is not None else "", dtype=np.float64)
    except (TypeError, ValueError):
        raise BadUsage(f"{name} must be a number or a list of numbers; found {values!r}") from None


@cache
def _list_rules(called: Callable[..., Any]) -> tuple[tuple[str, ...], dict[str, Rule]]:
    """Return the names of arguments by position, and the rule of each argument."""
    names: list[str] = []
    rules: dict[str, Rule] = {}
    scope = vars(sys.modules[unwrap(called).__module__])
    for name, parameter in signature(called).parameters.items():
        kind = _read_annotation(parameter.annotation, scope)
        if parameter.kind is Parameter.VAR_KEYWORD:
            words = get_args(kind) if get_origin(kind) is Unpack else ()
            for each in words:
                rules |= {word: _find_rule(one) for word, one in get_type_hints(each).items()}
        elif parameter.kind is not Parameter.VAR_POSITIONAL:
            rules[name] = _find_rule(kind if parameter.default is not None else kind | None)
        if parameter.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
            names.append(name)
    return tuple(names), rules


def _read_annotation(annotation: Any, scope: dict[str, Any]) -> Any:
    """Return the type that an annotation of ours names; anything where only type checkers know."""
    if not isinstance(annotation, str):
        return object if annotation is Parameter.empty else annotation
    try:
        return eval(annotation, scope)  # noqa: S307
    except NameError:
        return object


def _find_rule(kind: Any) -> Rule:
    """Return what takes values of a type, as far as it can be told."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind in _PLAIN:
        return _PLAIN[kind]
    if origin is Annotated:
        return _find_rule(inner[0])
    if origin in (Union, types.UnionType):
        return _any_of(inner)
    if origin is Literal:
        return _one_of(inner)
    if origin in (Mapping, dict):
        return _mapping_of(*map(_find_rule, inner))
    if origin is tuple and inner[-1] is not Ellipsis:
        return _row_of([_find_rule(one) for one in inner])
    if origin in _LISTS:
        return _list_of(_find_rule(inner[0]))
    if origin is PathLike:
        return _instance_of(PathLike, "a path")
    is_protocol = getattr(kind, "_is_protocol", False)
    is_open = is_protocol and not getattr(kind, "_is_runtime_protocol", False)
    if origin is not None or not isinstance(kind, type) or is_open:
        return None
    return _generator_of(kind) if kind.__module__.startswith("numpy.random") else _instance_of(kind)


def _any_of(kinds: tuple[Any, ...]) -> Rule:
    """Return the rule of a union; texts come last, because numbers may stand for names."""
    others = tuple(kind for kind in kinds if get_origin(kind) is not PathLike)
    if str in kinds and others != kinds:
        kinds = tuple(PathLike if kind is str else kind for kind in others)
    is_optional = types.NoneType in kinds
    rules = [_find_rule(kind) for kind in sorted(kinds, key=_try_last)]
    if None in rules:
        return None

    def take(value: Any) -> Any:
        if value is None and is_optional:
            return None  # at once: it is what most arguments are
        refusals = []
        for rule in filter(None, rules):
            try:
                return rule(value)
            except _Wrong as wrong:
                refusals.append(wrong)
        # Of the kind that was given, one entry may be wrong: that is what to say.
        inside = [refusal for refusal in refusals if refusal.place]
        wanted = dict.fromkeys(refusal.wanted for refusal in refusals)
        raise inside[0] if inside else _Wrong(value, " or ".join(wanted))

    return take


def _try_last(kind: Any) -> int:
    return (str, types.NoneType).index(kind) + 1 if kind in (str, types.NoneType) else 0


def _one_of(words: tuple[Any, ...]) -> Rule:
    """Return the rule of a choice; of a text the function knows what other programs mean by it."""

    def take(value: Any) -> Any:
        if isinstance(value, str):
            return value
        raise _Wrong(value, f"one of {', '.join(map(repr, words))}")

    return take


def _mapping_of(key: Rule, entry: Rule) -> Rule:
    def take(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise _Wrong(value, "a mapping from names to values")
        return {
            _enter(key, name, f"[{name!r}]"): _enter(entry, one, f"[{name!r}]")
            for name, one in value.items()
        }

    return take


def _list_of(entry: Rule) -> Rule:
    def take(value: Any) -> Any:
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            raise _Wrong(value, "a list")
        if entry is None or (
            entry is _take_text and isinstance(value, _ROWS) and _are_plain(value)
        ):
            return value
        taken = [_enter(entry, one, f"[{place}]") for place, one in enumerate(value)]
        return tuple(taken) if isinstance(value, tuple) else taken

    return take


def _are_plain(values: Sequence[Any]) -> bool:
    """Say whether all entries are texts that need no look at their characters: most lists are."""
    return all(type(one) is str and one.isascii() for one in values)


def _row_of(entries: list[Rule]) -> Rule:
    def take(value: Any) -> Any:
        if not isinstance(value, _ROWS) or len(value) != len(entries):
            raise _Wrong(value, f"a list of {len(entries)} entries")
        pairs = zip(entries, value, strict=True)
        return tuple(_enter(rule, one, f"[{place}]") for place, (rule, one) in enumerate(pairs))

    return take


def _enter(rule: Rule, value: Any, place: str) -> Any:
    """Return an entry as it is declared, or say at which place another one stands."""
    try:
        return value if rule is None else rule(value)
    except _Wrong as wrong:
        raise _Wrong(wrong.value, wrong.wanted, place + wrong.place) from None


def _instance_of(kind: type, called: str = "") -> Rule:
    def take(value: Any) -> Any:
        if isinstance(value, kind):
            return value
        raise _Wrong(value, called or f"of the type {kind.__name__}")

    return take


def _generator_of(kind: type) -> Rule:
    def take(value: Any) -> Any:
        if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0:
            import numpy as np

            return np.random.default_rng(int(value))
        if isinstance(value, kind):
            return value
        raise _Wrong(value, "a numpy.random.Generator or a seed, a whole number from 0")

    return take


def _take_truth(value: Any) -> bool:
    if isinstance(value, bool) or f"{type(value).__module__}.{type(value).__name__}" in _NUMPYS:
        return bool(value)
    raise _Wrong(value, "True or False (Python takes a text or a number for true)")


def _take_whole(value: Any) -> Any:
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise _Wrong(value, "a whole number")


def _take_number(value: Any) -> Any:
    if isinstance(value, Number) and hasattr(value, "__float__") and not isinstance(value, bool):
        return value
    raise _Wrong(value, "a number")


def _take_text(value: Any) -> str:
    if isinstance(value, Integral) and not isinstance(value, bool):
        return name_id(value)
    if not isinstance(value, str):
        raise _Wrong(value, "a text")
    if not value.isascii() and any("\ud800" <= sign <= "\udfff" for sign in value):
        raise _Wrong(value, "a text of whole characters (this one is damaged)")
    return value


def _take_path(value: Any) -> Any:
    if not isinstance(value, str | PathLike) or "\0" in str(fspath(value)):
        raise _Wrong(value, "a path (without the character NUL)")
    return value


def _take_none(value: Any) -> None:
    if value is not None:
        raise _Wrong(value, "None")


_PLAIN: dict[Any, Rule] = {
    bool: _take_truth,
    int: _take_whole,
    SupportsIndex: _take_whole,
    float: _take_number,
    str: _take_text,
    PathLike: _take_path,
    types.NoneType: _take_none,
    object: None,
    Any: None,
}
