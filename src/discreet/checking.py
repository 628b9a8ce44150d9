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
from typing import (  # fmt: skip
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    SupportsIndex,
    SupportsInt,
    TypeVar,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

from discreet.choices import PlainDict, PlainMapping
from discreet.errors import BadUsage, hide_passwords
from discreet.names import name_id

if TYPE_CHECKING:
    import numpy as np

    from discreet.types import FloatArray

Called = TypeVar("Called", bound=Callable[..., Any])
#: Returns an argument as it is declared, or raises :class:`_Wrong`.
Take = Callable[[Any], object]
#: None takes anything.
Rule = Take | None

#: Characters of a wrong value that a message repeats.
SHOWN = 60
#: What a message repeats; of other values it says the type.
_SHOWN = (str, bytes, Number, types.NoneType, list, tuple, dict)
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
    def call(*arguments: object, **keywords: object) -> object:
        import numpy as np  # here, because the command line loads this module and not always numpy

        names, _ = _list_rules(called)
        place = f"of {called.__qualname__.removesuffix('.__init__')}()"
        given = check_arguments(called, dict(zip(names, arguments, strict=False)), place).values()
        keywords = check_arguments(called, keywords, place)
        with np.errstate(divide="warn", over="warn", invalid="warn", under="ignore"):
            return called(*given, *arguments[len(given) :], **keywords)

    call.is_checked = True  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


def check_arguments(called: Callable[..., Any], words: PlainMapping, place: str) -> PlainDict:
    """Return keywords of a function as it declares them, or refuse one of another kind.

    ``place`` is where a message says that the keyword stands.
    """
    rules = _list_rules(called)[1]
    return {
        name: _check(name, place, value, rule) if (rule := rules.get(name)) else value
        for name, value in words.items()
    }


def check_exports(names: PlainDict, exported: Iterable[str]) -> None:
    """Put checked functions in the place of the functions that a module exports."""
    for name in exported:
        if isinstance(names[name], types.FunctionType):
            names[name] = checked(names[name])


def _check(name: str, place: str, value: object, rule: Take) -> object:
    try:
        return rule(value)
    except _Wrong as wrong:
        kind, shown = type(wrong.value).__name__, hide_passwords(repr(wrong.value))
        shown = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."
        found = f"{shown} ({kind})" if isinstance(wrong.value, _SHOWN) else kind
        raise BadUsage(
            f"{name}{wrong.place or '='} {place} must be {wrong.wanted}; found {found}. "
            "Nothing was read, computed or written; correct this argument."
        ) from None


def as_numbers(name: str, values: object) -> FloatArray:
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


def _read_annotation(annotation: object, scope: PlainDict) -> Any:
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
    if origin is Literal:  # of a text the function knows what other programs mean by it
        return _one(f"one of {', '.join(map(repr, inner))}", lambda value: isinstance(value, str))
    if origin in (Mapping, dict):
        return _mapping_of(*map(_find_rule, inner))
    if origin is tuple and inner[-1] is not Ellipsis:
        return _row_of([_find_rule(one) for one in inner])
    if origin in _LISTS:
        return _list_of(_find_rule(inner[0]))
    if origin is PathLike:
        return _one("a path", lambda value: isinstance(value, PathLike))
    is_open = getattr(kind, "_is_protocol", False) and not getattr(kind, "_is_runtime_protocol", 0)
    if origin is not None or not isinstance(kind, type) or is_open:
        return None
    if kind.__module__.startswith("numpy.random"):
        return _one(
            "a numpy.random.Generator or a seed, a whole number from 0",
            lambda value: isinstance(value, kind) or (_is_integer(value) and value >= 0),
            lambda value: value if isinstance(value, kind) else _make_generator(value),
        )
    return _one(f"of the type {kind.__name__}", lambda value: isinstance(value, kind))


def _one(wanted: str, fits: Callable[[Any], bool], make: Take = lambda value: value) -> Take:
    """Return the rule of a single value."""

    def take(value: object) -> object:
        if not fits(value):
            raise _Wrong(value, wanted)
        return make(value)

    return take


def _any_of(kinds: Sequence[object]) -> Rule:
    """Return the rule of a union; texts come last, because numbers may stand for names."""
    others = tuple(kind for kind in kinds if get_origin(kind) is not PathLike)
    if str in kinds and others != kinds:
        kinds = tuple(PathLike if kind is str else kind for kind in others)
    is_optional = types.NoneType in kinds
    last = (str, types.NoneType)
    rules = [_find_rule(kind) for kind in sorted(kinds, key=lambda kind: kind in last)]
    if None in rules:
        return None

    def take(value: object) -> object:
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
        kinds = dict.fromkeys(refusal.wanted for refusal in refusals)
        raise inside[0] if inside else _Wrong(value, " or ".join(kinds))

    return take


def _mapping_of(key: Rule, entry: Rule) -> Rule:
    def take(value: object) -> object:
        if not isinstance(value, Mapping):
            raise _Wrong(value, "a mapping from names to values")
        return {
            _enter(key, name, f"[{name!r}]"): _enter(entry, one, f"[{name!r}]")
            for name, one in value.items()
        }

    return take


def _list_of(entry: Rule) -> Rule:
    def take(value: object) -> object:
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            raise _Wrong(value, "a list")
        if entry is None:
            return value
        taken = [_enter(entry, one, f"[{n}]") for n, one in enumerate(value)]
        return tuple(taken) if isinstance(value, tuple) else taken

    return take


def _row_of(entries: list[Rule]) -> Rule:
    def take(value: object) -> object:
        if not isinstance(value, list | tuple) or len(value) != len(entries):
            raise _Wrong(value, f"a list of {len(entries)} entries")
        pairs = enumerate(zip(entries, value, strict=True))
        return tuple(_enter(rule, one, f"[{n}]") for n, (rule, one) in pairs)

    return take


def _enter(rule: Rule, value: object, location: str) -> object:
    """Return an entry as it is declared, or say at which place another one stands."""
    try:
        return value if rule is None else rule(value)
    except _Wrong as wrong:
        raise _Wrong(wrong.value, wrong.wanted, location + wrong.place) from None


def _is_integer(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return _is_integer(value) or (isinstance(value, float) and value.is_integer())


def _is_truth(value: object) -> bool:
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")  # numpy's own


def _is_number(value: object) -> bool:
    return isinstance(value, Number) and hasattr(value, "__float__") and not isinstance(value, bool)


def _is_text(value: object) -> bool:
    if not isinstance(value, str):
        return _is_integer(value)
    return value.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in value)


def _is_path(value: object) -> bool:
    return isinstance(value, str | PathLike) and "\0" not in str(fspath(value))


def _make_generator(seed: SupportsInt) -> np.random.Generator:
    import numpy as np

    return np.random.default_rng(int(seed))


_WHOLE = _one("a whole number", _is_whole, int)
_PLAIN: dict[object, Rule] = {
    bool: _one("True or False (Python takes a text or a number for true)", _is_truth, bool),
    int: _WHOLE,
    SupportsIndex: _WHOLE,
    float: _one("a number", _is_number),
    str: _one("a text of whole characters", _is_text,
              lambda value: value if isinstance(value, str) else name_id(value)),
    PathLike: _one("a path (without the character NUL)", _is_path),
    types.NoneType: _one("None", lambda value: value is None),
    object: None,
    Any: None,
}  # fmt: skip
