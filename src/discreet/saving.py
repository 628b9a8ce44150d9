"""Results in files: written whole, readable by their owner only, and read back as they were.

In: a result, a frozen value that may hold arrays, other values and warnings. Out: one JSON document
that names its format and version, and says that it is confidential. Reading makes results (loaded
subclasses of :class:`Kept`, or public names of the library), the classes that their annotations
name, and nothing else. It runs nothing that a file says: no pickle.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast, get_args, get_type_hints

from discreet.atomic import write_text
from discreet.checking import checked
from discreet.choices import PlainDict
from discreet.errors import BadResponses, BadUsage
from discreet.names import NumberName, name_id
from discreet.schema import SchemaError, make_checked, read_as

if TYPE_CHECKING:  # results load NumPy; the command line, which shows help, does not
    import numpy as np

    from discreet.types import Vector

#: What a result is saved as, and what ``fit --out`` writes.
FORMAT, CALIBRATION_FORMAT = "discreet-result", "discreet-calibration"
VERSIONS = {FORMAT: 1, CALIBRATION_FORMAT: 1}

CONFIDENTIAL = (
    "confidential: computed from persons' answers without privacy protection; do not publish"
)
RELEASED = "released with privacy: may be shown to everyone"
PUBLIC = "public: made of public parameters only"

#: What JSON has no numbers for.
_NUMBERS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class Kept:
    """A result that can be saved and loaded."""

    #: Whether persons' answers are behind it.
    from_answers = True

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # A dataclass keeps what its class has; its own could not compare arrays, nor NaN.
        cls.__eq__ = Kept.__eq__  # type: ignore[method-assign]

    def __eq__(self, other: object) -> bool:
        """Say whether a result of the same kind would be saved as the same values."""
        if type(other) is not type(self):
            return NotImplemented
        return self is other or write_value(self) == write_value(other)

    __hash__ = None  # type: ignore[assignment]  # equal by content, and content is large

    @checked
    def save(self, path: str | PathLike[str]) -> None:
        """Write the result to one file of JSON that only its owner may read.

        It appears whole or not at all and replaces what is there. Unless the result was released
        with privacy, the file is confidential, and says so. Numbers come back to the last digit.
        """
        from discreet import __version__

        guarantee = getattr(self, "guarantee", None)
        access = CONFIDENTIAL if self.from_answers else PUBLIC
        document = {
            "format": FORMAT,
            "version": VERSIONS[FORMAT],
            "access": RELEASED if guarantee is not None and guarantee.is_private else access,
            "discreet": __version__,
            "result": write_value(self),
        }
        write_text(Path(path), json.dumps(document, allow_nan=False, ensure_ascii=False) + "\n")

    @classmethod
    @checked
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a result that :meth:`save` wrote; it is equal to what was saved."""
        stored = read_saved(path)
        name = next(iter(stored), "") if isinstance(stored, dict) else ""
        if name.isidentifier() and name != cls.__name__:
            raise BadUsage(
                f"{path} holds a result of the kind {name}, not {cls.__name__}; use {name}.load"
            )
        return cast(Self, make_result(path, stored))


def read_json(path: str | PathLike[str], *formats: str) -> PlainDict:
    """Return a JSON document of one of these formats; refuse another one, or another version."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise BadUsage(f"{path} cannot be read: {error.strerror}. Check the path.") from error
    except (ValueError, RecursionError) as error:
        raise BadResponses(f"{path} is damaged: it is not JSON ({error})") from error
    if not isinstance(document, dict) or document.get("format") not in formats:
        found = document.get("format") if isinstance(document, dict) else None
        raise BadUsage(
            f"{path} holds no {' and no '.join(formats)}: its format is {found!r}. Give a file "
            "that save() or `discreet fit --out` wrote"
        )
    if document.get("version") != VERSIONS[document["format"]]:
        raise BadUsage(
            f"{path} has version {document.get('version')}; this version of discreet reads "
            f"{VERSIONS[document['format']]}. Read it with the version that wrote it "
            f"({document.get('discreet')})"
        )
    return document


def read_saved(path: str | PathLike[str]) -> object:
    """Return what stands for the result in a file; of a calibration its estimate."""
    document = read_json(path, FORMAT, CALIBRATION_FORMAT)
    return document.get("result" if is_result(document) else "estimate")


def make_result(path: str | PathLike[str], stored: object) -> object:
    """Return the result that a file holds; its kind must be loaded, as must be those of its parts.

    :func:`discreet.load` loads them.
    """
    try:
        return read_value(stored)
    except SchemaError as error:
        raise BadResponses(f"{path} is damaged ({error}); save the result again") from error


def read_value(stored: object) -> Any:
    """Return the value that :func:`write_value` wrote."""
    try:
        return _read(stored)
    except SchemaError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise SchemaError(f"{type(error).__name__}: {error}") from error


@cache
def find_saved_kind(name: str) -> type:
    """Return the class that a file calls by its name, or refuse it."""
    kinds = list_kinds(Kept)
    if name not in kinds:
        raise SchemaError(f"files hold no values of the kind {name}")
    return kinds[name]


def list_kinds(result: type) -> dict[str, type]:
    """Return loaded kinds of results, and the classes that are parts of them, by name."""
    kinds = {kind.__name__: kind for kind in _list_parts(result)}
    subclasses: list[type] = result.__subclasses__()
    for subclass in subclasses:
        kinds |= list_kinds(subclass)
    return kinds


@cache
def _list_parts(kind: type) -> frozenset[type]:
    """Return a class of this library with those that its annotations name, and theirs."""
    parts: set[type] = set()
    waiting = {kind}
    while waiting:
        part = waiting.pop()
        if part not in parts and part.__module__.startswith("discreet."):
            parts.add(part)
            waiting |= _list_classes(get_type_hints(part).values())
    return frozenset(parts)


def _list_classes(annotations: Iterable[object]) -> set[type]:
    """Return the classes in annotations, also those inside of lists, mappings and unions."""
    listed = list(annotations)
    plain = {one for one in listed if isinstance(one, type) and not get_args(one)}
    return plain.union(*(_list_classes(get_args(one)) for one in listed))


def is_result(document: object) -> bool:
    """Say whether a JSON document is a saved result."""
    return isinstance(document, dict) and document.get("format") == FORMAT


# --- values to JSON and back ------------------------------------------------------------------
#
# Texts, whole numbers, finite numbers, truth values and None stand for themselves, a JSON list for
# a tuple, and an object with one name, the kind, for everything else.


def write_value(value: object) -> object:
    """Return what stands for a value in JSON."""
    import numpy as np

    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if isinstance(value, NumberName):
        return {"id": int(value)}
    if type(value).__module__.startswith("discreet."):
        return {type(value).__name__: _write_parts(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple):
        return [write_value(one) for one in value]
    if isinstance(value, list):
        return {"list": [write_value(one) for one in value]}
    if isinstance(value, Mapping):
        return {"map": [[write_value(key), write_value(one)] for key, one in value.items()]}
    if isinstance(value, np.ndarray):
        return {"array": [value.dtype.name, list(value.shape), _write_cells(value)]}
    if isinstance(value, np.random.Generator):
        return {"random": write_value(value.bit_generator.state)}
    raise BadUsage(
        f"a result that holds a value of the kind {type(value).__name__} cannot be saved; files "
        "hold results of this library, numbers, texts and lists of them"
    )


def _write_parts(value: Any) -> object:
    """Return what a value of this library is made of."""
    if isinstance(value, Enum):
        return value.value
    if hasattr(value, "stated"):  # a reading is what is stated of it
        return {name: write_value(part) for name, part in value.stated.items()}
    if is_dataclass(value):
        derived = getattr(value, "derived_parts", ())
        return {
            part.name: None if part.name in derived else write_value(getattr(value, part.name))
            for part in fields(value)
            if part.init
        }
    return [write_value(one) for one in value.__getnewargs__()]


def _write_cells(array: Vector) -> list[object]:
    import numpy as np

    cells = array.ravel()
    if array.dtype.kind == "f" and not np.isfinite(cells).all():
        return [one if math.isfinite(one) else str(one) for one in cells.tolist()]
    if array.dtype.kind in "biuf":
        return list(cells.tolist())
    # Words with a fixed meaning are equal to their texts, and there may be one for every person.
    return [
        str(one) if isinstance(one, str) and not isinstance(one, NumberName) else write_value(one)
        for one in cells.tolist()
    ]


def _read(stored: object) -> Any:
    if isinstance(stored, list):
        return tuple(_read(one) for one in stored)
    if not isinstance(stored, dict):
        return stored
    ((name, parts),) = stored.items()
    return _READERS[name](parts) if name in _READERS else _make(name, parts)


def _make(name: str, parts: object) -> object:
    kind = find_saved_kind(name)
    if isinstance(parts, dict):
        values = {key: _read(one) for key, one in parts.items()}
        make = make_checked if hasattr(kind, "stated") else read_as
        return make(kind, values, name)
    return kind(*(_read(parts) if isinstance(parts, list) else [parts]))


def _read_array(parts: tuple[str, list[int], list[Any]]) -> Vector:
    import numpy as np

    name, shape, cells = parts
    kind = np.dtype(name)
    if kind.kind == "f":
        cells = [_NUMBERS[cell] if isinstance(cell, str) else cell for cell in cells]
    elif kind.kind == "O":
        cells = [_read(cell) for cell in cells]
    elif kind.kind not in "biu":
        raise TypeError(f"an array of {name}")
    array = np.empty(len(cells), dtype=kind)
    array[:] = cells
    return array.reshape(shape)


def _read_random(state: object) -> np.random.Generator:
    import numpy as np

    generator = np.random.Generator(np.random.PCG64())
    generator.bit_generator.state = _read(state)
    return generator


_READERS: dict[str, Callable[[Any], object]] = {
    "float": lambda text: _NUMBERS[text],
    "id": name_id,
    "list": lambda parts: [_read(one) for one in parts],
    "map": lambda pairs: {_read(key): _read(one) for key, one in pairs},
    "array": _read_array,
    "random": _read_random,
}
