"""Check documents from outside against the types that their values are declared with.

In: an annotation (most often a dataclass) and the plain values of a JSON document. Out: a value of
that type, or :class:`SchemaError`, which names the field, its value and what belongs there. Ranges,
lengths and names are part of the annotation::

    persons: Annotated[int, Within(0, 10**9)]
    difficulty: Annotated[tuple[float, ...], Along("items")]

A rule that names a field refers to one that is declared above it, or to one that the caller gives.
Any object with a method ``complain`` is a rule. A class may also have a method
``find_contradiction``; what it returns refuses the document. Texts,
lists and objects never become anything but the declared types: no code of a file runs.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import (  # fmt: skip
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from discreet.choices import PlainDict, PlainMapping

if TYPE_CHECKING:
    from discreet.types import Vector

Value = TypeVar("Value")

#: Whole numbers of a document fit into 64 bits.
LARGEST_INT = (1 << 63) - 1
#: Larger numbers overflow in the next step of a computation; none of ours comes near.
HUGE = 1e300
#: No item is so hard; squares and sums of larger numbers lose all digits or overflow.
LARGEST_LOGIT = 1e6
#: Characters of a wrong value that a message repeats.
SHOWN = 60


class SchemaError(ValueError):
    """A document does not have the declared form."""


@dataclass(frozen=True)
class Within:
    """A number lies in a range, both ends included. NaN does not."""

    low: float
    high: float

    def complain(self, value: float, _: Scope) -> str:
        """Return what is wrong with a value; empty if nothing is."""
        if self.low <= value <= self.high:
            return ""
        if self.high < HUGE:
            return f"which is not from {self.low:g} to {self.high:g}"
        if self.low > -HUGE:
            return "which is not above 0" if self.low > 0 else f"which is not {self.low:g} or more"
        return "which is not finite"


@dataclass(frozen=True)
class Along:
    """A list or an array has as many entries as another field, and each entry as an inner one.

    An empty name leaves that length open; ``may_be_empty`` also accepts no entries at all.
    """

    field: str
    inner: str = ""
    may_be_empty: bool = False

    def complain(self, value: Collection[Sized] | None, scope: Scope) -> str:
        """Return what is wrong with a value; empty if nothing is."""
        if value is None or (self.may_be_empty and len(value) == 0):
            return ""
        for depth, name in enumerate((self.field, self.inner)):
            size = scope.size(name) if name else None
            if size is not None and not _has_size(value, depth, size):
                return f"which does not have {size:,} entries, one for each of {name}"
        return ""


@dataclass(frozen=True)
class Among:
    """A text is one of the entries of another field."""

    field: str

    def complain(self, value: object, scope: Scope) -> str:
        """Return what is wrong with a value; empty if nothing is."""
        names = scope.names(self.field)
        is_known = names is None or value in names
        return "" if is_known else f"which is none of the {self.field}"


@dataclass(frozen=True)
class AtLeast:
    """There are so many entries or more."""

    entries: int

    def complain(self, value: Sized, _: Scope) -> str:
        """Return what is wrong with a value; empty if nothing is."""
        return "" if len(value) >= self.entries else f"which has fewer than {self.entries}"


@dataclass(frozen=True)
class Distinct:
    """No entry occurs twice."""

    def complain(self, value: Collection[Hashable], _: Scope) -> str:
        """Return what is wrong with a value; empty if nothing is."""
        return "" if len(set(value)) == len(value) else "in which an entry occurs twice"


@dataclass(frozen=True)
class EqualLengths:
    """The columns of a table are equally long."""

    def complain(self, value: Mapping[str, Sized], _: Scope) -> str:
        """Return what is wrong with a value; empty if nothing is."""
        is_table = len({len(column) for column in value.values()}) <= 1
        return "" if is_table else "whose columns are not equally long"


Count = Annotated[int, Within(0, 1 << 53)]
Finite = Annotated[float, Within(-HUGE, HUGE)]
Logit = Annotated[float, Within(-LARGEST_LOGIT, LARGEST_LOGIT)]
NonNegative = Annotated[float, Within(0, HUGE)]
Proportion = Annotated[float, Within(0, 1)]
Positive = Annotated[float, Within(5e-324, HUGE)]


class Scope:
    """Fields that rules refer to: those of the document so far, and those of the caller."""

    def __init__(self, values: PlainMapping, outer: Scope | None = None) -> None:
        self.values, self._outer = dict(values), outer
        self._names: dict[str, frozenset[Hashable]] = {}

    def find(self, name: str) -> Any:
        """Return a field by its name; None where there is none."""
        if name in self.values or self._outer is None:
            return self.values.get(name)
        return self._outer.find(name)

    def size(self, name: str) -> int | None:
        """Return how many entries a field has; a number is its own size."""
        value = self.find(name)
        return value if value is None or isinstance(value, int) else len(value)

    def names(self, name: str) -> frozenset[Hashable] | None:
        """Return the entries of a field."""
        if name not in self.values and self._outer is not None:
            return self._outer.names(name)
        if name not in self._names and self.values.get(name) is not None:
            self._names[name] = frozenset(self.values[name])
        return self._names.get(name)


@overload
def read_as(kind: type[Value], plain: object, name: str, **context: object) -> Value: ...
@overload
def read_as(kind: object, plain: object, name: str, **context: object) -> Any: ...
def read_as(kind: object, plain: object, name: str, **context: object) -> object:
    """Return a value of a declared type, made of plain values.

    Parameters
    ----------
    kind
        A dataclass, or an annotation.
    plain
        Numbers, texts, truth values, None, and lists and mappings of them; or values that have
        the declared type already.
    name
        What messages call the document.
    context
        Fields outside the document that its rules refer to.

    Raises
    ------
    SchemaError
        If the document has another form.

    Examples
    --------
    >>> read_as(tuple[Annotated[int, Within(0, 9)], ...], [1, 2], "scores")
    (1, 2)
    >>> read_as(tuple[Annotated[int, Within(0, 9)], ...], [1, "2"], "scores")
    Traceback (most recent call last):
        ...
    discreet.schema.SchemaError: scores[1] is '2', not a whole number
    """
    return _read(kind, plain, name, Scope(context))


def read_fields(
    kinds: PlainMapping,
    plain: object,
    name: str,
    *,
    optional: Sequence[str] = (),
    **context: object,
) -> PlainDict:
    """Return the fields of an object that are declared one by one; all of them and no other."""
    return _read_fields(kinds, plain, name, Scope(context), optional)


def _read_fields(
    kinds: PlainMapping, plain: object, location: str, outer: Scope, optional: Sequence[str]
) -> PlainDict:
    if not isinstance(plain, Mapping):
        raise _refuse(location, plain, "an object")
    for name in plain:
        if name not in kinds:
            raise SchemaError(
                f"{location} has a field {show_value(name)}, which does not belong there"
            )
    scope = Scope({}, outer)
    for name, kind in kinds.items():
        if name in plain:
            scope.values[name] = _read(kind, plain[name], f"{location}.{name}", scope)
        elif name not in optional:
            raise SchemaError(f"{location} lacks the field {name!r}")
    return scope.values


# --- one type after the other -----------------------------------------------------------------


def _read(declared: object, plain: object, location: str, scope: Scope) -> object:
    kind = _unwrap_alias(declared)
    origin = get_origin(kind)
    if origin is Annotated:
        base, *rules = get_args(kind)
        value = _read(base, plain, location, scope)
        for rule in rules:
            if hasattr(rule, "complain") and (complaint := rule.complain(value, scope)):
                raise SchemaError(f"{location} is {show_value(plain)}, {complaint}")
        return value
    if origin in (Union, types.UnionType):
        return _read_union(get_args(kind), plain, location, scope)
    if origin is Literal:
        words = get_args(kind)
        if not any(plain == word and type(plain) is type(word) for word in words):
            raise _refuse(location, plain, f"one of {', '.join(map(repr, words))}")
        return plain
    if kind in _PLAIN:
        return _PLAIN[kind](plain, location)
    if origin is None and isinstance(kind, type):
        return _read_class(kind, plain, location, scope)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _read_mapping(kind, plain, location, scope)
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return _read_sequence(origin, get_args(kind), plain, location, scope)
    if isinstance(origin, type) and origin.__name__ == "ndarray":
        return _read_array(kind, plain, location)
    # A defect of the declaration, never of the document.
    raise NotImplementedError(f"{location} is declared as {declared}, which documents cannot hold")


def _unwrap_alias(kind: object) -> Any:
    """Return what an alias of a type (``type Matrix[T] = ...``) stands for."""
    alias: Any = get_origin(kind) or kind
    if not hasattr(alias, "__value__"):
        return kind
    bound = dict(zip(alias.__type_params__, get_args(kind), strict=True))
    meant = alias.__value__
    return _unwrap_alias(
        meant[tuple(bound[one] for one in meant.__parameters__)] if bound else meant
    )


def _read_union(kinds: Sequence[object], plain: object, location: str, scope: Scope) -> object:
    if plain is None and types.NoneType in kinds:
        return None
    others = [kind for kind in kinds if kind is not types.NoneType]
    if len(others) == 1:
        return _read(others[0], plain, location, scope)
    for kind in others:
        with suppress(SchemaError):
            return _read(kind, plain, location, scope)
    raise SchemaError(f"{location} is {show_value(plain)}, which does not belong there")


def _read_mapping(kind: object, plain: object, location: str, scope: Scope) -> dict[object, object]:
    if not isinstance(plain, Mapping):
        raise _refuse(location, plain, "an object")
    of_names, of_values = get_args(kind)
    return {
        _read(of_names, name, f"a name in {location}", scope): _read(
            of_values, value, f"{location}[{show_value(name)}]", scope
        )
        for name, value in plain.items()
    }


def _read_sequence(
    origin: type, kinds: Sequence[object], plain: object, location: str, scope: Scope
) -> list[object] | tuple[object, ...]:
    if not isinstance(plain, list | tuple):
        raise _refuse(location, plain, "a list")
    make = list if origin is list else tuple[object, ...]
    of_entries = kinds
    if origin is not tuple or kinds[-1] is Ellipsis:
        if kinds[0] is Any:
            return make(plain)
        of_entries = [kinds[0]] * len(plain)
    elif len(plain) != len(kinds):
        raise _refuse(location, plain, f"a list of {len(kinds)} entries")
    pairs = enumerate(zip(of_entries, plain, strict=True))
    return make(_read(kind, entry, f"{location}[{i}]", scope) for i, (kind, entry) in pairs)


def _read_array(kind: object, plain: object, location: str) -> Vector:
    """Return an array of the declared kind of numbers; null is NaN."""
    import numpy as np

    dtype = np.dtype(get_args(get_args(kind)[1])[0])
    if isinstance(plain, np.ndarray):
        if plain.dtype != dtype:
            raise SchemaError(f"{location} holds numbers of the type {plain.dtype}, not {dtype}")
        return plain
    if not isinstance(plain, list | tuple):
        raise _refuse(location, plain, f"a list of numbers of the type {dtype}")
    read = _read_float if dtype.kind == "f" else _read_int
    try:
        return np.array(_map_leaves(read, plain, location), dtype=dtype)
    except ValueError as error:
        is_ours = isinstance(error, SchemaError)
        raise error if is_ours else SchemaError(f"{location} has rows of unequal length") from None


def _map_leaves(read: Callable[[object, str], float], plain: object, location: str) -> object:
    if isinstance(plain, list | tuple):
        return [_map_leaves(read, entry, f"{location}[{i}]") for i, entry in enumerate(plain)]
    return read(plain, location)


def _read_class(kind: type, plain: object, location: str, scope: Scope) -> object:
    if isinstance(plain, kind):
        return plain
    if issubclass(kind, Enum):
        try:
            return kind(plain)
        except ValueError:
            words = ", ".join(str(member.value) for member in kind)
            raise _refuse(location, plain, f"one of {words}") from None
    if not is_dataclass(kind):
        raise _refuse(location, plain, kind.__name__)
    hints, optional = list_dataclass_fields(kind)
    return make_checked(kind, _read_fields(hints, plain, location, scope, optional), location)


def make_checked(kind: Callable[..., Value], values: PlainMapping, location: str) -> Value:
    """Return an object of a dataclass, or refuse fields that contradict each other."""
    try:
        instance = kind(**values)
        complaint = instance.find_contradiction() if hasattr(instance, "find_contradiction") else ""
    except (TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise SchemaError(f"{location} contradicts itself: {error}") from error
    if complaint:
        raise SchemaError(f"{location} contradicts itself: {complaint}")
    return instance


@cache
def list_dataclass_fields(kind: type) -> tuple[PlainDict, tuple[str, ...]]:
    """Return the fields of a dataclass with their annotations, and which may be left out."""
    hints = get_type_hints(kind, include_extras=True)
    settable = {field.name: field for field in fields(kind) if field.init}
    optional = tuple(
        name
        for name, field in settable.items()
        if (field.default, field.default_factory) != (MISSING, MISSING)
    )
    # What is None by default may be null in a document, also where __post_init__ fills it in.
    nullable = {name: hints[name] | None for name in settable if settable[name].default is None}
    return {name: hints[name] for name in settable} | nullable, optional


# --- plain values -----------------------------------------------------------------------------


def _expect(kind: type, words: str) -> Callable[[object, str], object]:
    """Return what reads values of one class, which messages call by these words."""

    def read(plain: object, location: str) -> object:
        if not isinstance(plain, kind):
            raise _refuse(location, plain, words)
        return plain

    return read


def _read_int(plain: object, location: str) -> int:
    if not isinstance(plain, int) or isinstance(plain, bool):
        raise _refuse(location, plain, "a whole number")
    if abs(plain) > LARGEST_INT:
        raise _refuse(location, plain, "a whole number of 64 bits")
    return plain


def _read_float(plain: object, location: str) -> float:
    """Return a number; null stands for NaN, for which JSON has no number."""
    if plain is None:
        return math.nan
    if not isinstance(plain, int | float) or isinstance(plain, bool):
        raise _refuse(location, plain, "a number")
    return float(_read_int(plain, location)) if isinstance(plain, int) else plain


def _read_str(plain: object, location: str) -> str:
    if not isinstance(plain, str):
        raise _refuse(location, plain, "a text")
    try:
        plain.encode()
    except UnicodeEncodeError:
        raise _refuse(location, plain, "a text in Unicode") from None
    return plain


_PLAIN: dict[object, Callable[[object, str], object]] = {
    bool: _expect(bool, "true or false"),
    int: _read_int,
    float: _read_float,
    str: _read_str,
    types.NoneType: _expect(types.NoneType, "null"),
    Any: lambda plain, _: plain,
    object: lambda plain, _: plain,
}


def _has_size(value: Collection[Any], depth: int, size: int) -> bool:
    shape = getattr(value, "shape", None)
    if shape is not None:
        return len(shape) > depth and shape[depth] == size
    if depth:
        return all(_has_size(one, depth - 1, size) for one in value)
    return len(value) == size


def _refuse(location: str, plain: object, expected: str) -> SchemaError:
    return SchemaError(f"{location} is {show_value(plain)}, not {expected}")


def show_value(plain: object) -> str:
    """Return a value as JSON would show it, cut where it is long."""
    if isinstance(plain, int) and abs(plain) > LARGEST_INT:
        return f"a number of {int(math.log10(abs(plain))) + 1:,} digits"
    if plain is None or isinstance(plain, bool):
        return {None: "null", True: "true", False: "false"}[plain]
    if isinstance(plain, Mapping | list | tuple):
        kind = "an object" if isinstance(plain, Mapping) else "a list"
        return f"{kind} of {len(plain):,} entries"
    text = repr(plain)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
