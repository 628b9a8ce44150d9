"""Read a bundle back, and believe nothing that was not checked.

In: a folder. Out: the estimate and the record of a release, or one line that says what is wrong
with it. Checksums find damage; they are no signature, since whoever changes a file on purpose
can change its checksum too.
"""

from __future__ import annotations

import csv
import hashlib
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any, get_args

import numpy as np

from discreet.answers.steps import MOST_STEPS
from discreet.atomic import PRIVACY_FILE, RELEASE_FILES
from discreet.errors import BadResponses, BadUsage
from discreet.markup import spreadsheet_cell
from discreet.models.released import (
    SIMULATED,
    count_raised,
    estimate_release,
    warn_floored,
)
from discreet.names import read_names
from discreet.privacy.accounting import Guarantee, Neighbours
from discreet.privacy.wall import Release
from discreet.publishing.bundle import (
    PUBLISHED,
    SCHEMA_VERSION,
    THRESHOLD_FILE,
    Published,
    PublishedRanking,
    hash_record,
)
from discreet.publishing.identity import AUDIT, NAMES
from discreet.publishing.noisy import NOISY_FILE, read_noisy
from discreet.results.estimate import Estimate, Solution, Status
from discreet.results.kinds import KINDS, Kind, find_kind
from discreet.results.thresholds import THRESHOLD_COLUMNS, Thresholds
from discreet.types import MODELS, Design, Estimator


def verify(folder: str | PathLike[str]) -> None:
    """Check that a bundle is whole: every file as it was written, every value possible.

    Raises
    ------
    BadResponses
        If a file is missing or was changed, or the record cannot be what a release wrote.
    BadUsage
        If the folder is no bundle at all.

    Examples
    --------
    >>> import tempfile
    >>> import discreet
    >>> answers = discreet.datasets.lsat()
    >>> items = ["Item1", "Item2", "Item3", "Item4", "Item5"]
    >>> released = discreet.release(answers, discreet.Budget(epsilon=1.0), items=items)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     released.save(folder + "/release")
    ...     discreet.verify(folder + "/release")
    """
    if "files" not in check_bundle(folder):
        warnings.warn(f"{folder}: {NO_CHECKSUMS}", stacklevel=2)


NO_CHECKSUMS = (
    "a bundle of schema version 1, which has no checksums: it can be read, but whether a file was "
    "changed cannot be told"
)


def check_bundle(folder: str | PathLike[str]) -> dict[str, Any]:
    """Return the record of a bundle that is whole, whatever it is about."""
    return _read(Path(folder))[1]


def read_published(folder: str | PathLike[str]) -> Published:
    """Read a bundle back, whatever it is about."""
    estimate, record, noisy = _read(Path(folder))
    guarantee = Guarantee.from_dict(record["guarantee"])
    return PUBLISHED[record.get("kind", "answers")](estimate, guarantee, record, noisy)


def read_release(folder: str | PathLike[str]) -> Published:
    """Read a bundle back: the estimate and its guarantee, as published."""
    found = read_published(folder)
    if isinstance(found, PublishedRanking):
        raise BadUsage(
            f"{folder} is a release of comparisons, not of answers; read it with "
            "discreet.read_released_ranking."
        )
    return found


def read_released_ranking(folder: str | PathLike[str]) -> PublishedRanking:
    """Read back what :meth:`PublishedRanking.save` wrote."""
    found = read_published(folder)
    if isinstance(found, PublishedRanking):
        return found
    raise BadUsage(
        f"{folder} is a release of answers, not of comparisons; read it with discreet.read_release."
    )


def refit(
    released: Published | str | PathLike[str], *, estimator: Estimator | None = None
) -> Estimate:
    """Estimate again from the noisy values of a release: the same numbers, before rounding.

    This is post-processing: it needs no data and costs nothing.

    Parameters
    ----------
    released
        A release, or the folder of its bundle.
    estimator
        ``"noise-aware"`` or, for counts of pairs, ``"spectral"``; by default that of the release.

    Examples
    --------
    >>> import tempfile
    >>> import discreet
    >>> answers = discreet.datasets.lsat()
    >>> items = ["Item1", "Item2", "Item3", "Item4", "Item5"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     released = discreet.release(
    ...         answers, discreet.Budget(epsilon=1.0), items=items, out=folder + "/release"
    ...     )
    ...     again = discreet.refit(folder + "/release")
    >>> bool((again.difficulty == released.estimate.difficulty).all())
    True
    """
    found = released if isinstance(released, Published) else read_published(released)
    if found.noisy is None:
        name = "this release" if isinstance(released, Published) else released
        raise BadUsage(
            f"{name} holds no noisy values ({NOISY_FILE}), so nothing can be fitted to them: "
            f"{WITHOUT_VALUES}"
        )
    return estimate_release(found.noisy, estimator=estimator or found.record["estimator"])


WITHOUT_VALUES = (
    "it was written by an earlier version, or by a mechanism whose values show who answered which "
    "items."
)


def _read(place: Path) -> tuple[Estimate, dict[str, Any], Release | None]:
    record = _read_record(place)
    with _damage(place):
        _check_files(place, record)
        _check_values(PRIVACY_FILE, record, _fields(find_kind(record)))
        if record["schema_version"] > 1:
            _check_values(PRIVACY_FILE, {**LEFT_OUT, **record}, ABOUT)
        if record["schema_version"] > 1 and find_kind(record) is KINDS["answers"]:
            _check_values(PRIVACY_FILE, record, STEPS)
        if record["estimator"] == "spectral":
            _check_values(PRIVACY_FILE, record, FLOOR)
        promised = record["guarantee"]
        if record["schema_version"] == 1:
            promised = {"tail": None, **promised}
        _check_values("its guarantee", promised, GUARANTEE)
        estimate = _read_table(place, record)
        if NOISY_FILE not in record.get("files", ()):
            return estimate, record, None
        content = (place / NOISY_FILE).read_bytes()
        noisy, estimate = read_noisy(content, record, estimate)
        if record["estimator"] == "spectral" and record["floor"] != count_raised(noisy):
            raise _Damage(f"{PRIVACY_FILE} has a floor that does not fit {NOISY_FILE}")
        return estimate, record, noisy


def _read_record(place: Path) -> dict[str, Any]:
    path = place / PRIVACY_FILE
    if not path.is_file():
        others = sorted(name for name in RELEASE_FILES if (place / name).is_file())
        problem = f"{place} is not a whole release bundle: {PRIVACY_FILE} is missing"
        raise BadResponses(f"{problem}. {FETCH}") if others else BadUsage(f"{problem}.")
    with _damage(place):
        record = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(record, dict):
            raise _Damage(f"{PRIVACY_FILE} holds no record")
        if record.get("kind", "answers") not in [*KINDS]:
            raise _Damage(f"{PRIVACY_FILE} has the kind {record['kind']!r}, which no release has")
    version = record.get("schema_version")
    if version not in (1, SCHEMA_VERSION):
        raise BadUsage(
            f"{path} has schema version {version!r}; this version of discreet reads 1 and "
            f"{SCHEMA_VERSION}."
        )
    return record


FETCH = "Fetch the bundle again from where it was published."


class _Damage(ValueError):
    """What is wrong, in words for the one line that the user reads."""


@contextmanager
def _damage(place: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        what = f"{Path(error.filename).name} is missing"
    except _Damage as error:
        what = str(error)
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        what = f"{error}"
    else:
        return
    raise BadResponses(f"{place} is not a whole release bundle: {what}. {FETCH}")


def _check_files(place: Path, record: Mapping[str, Any]) -> None:
    if record["schema_version"] == 1:
        return
    files = record.get("files")
    if not isinstance(files, dict) or find_kind(record).table not in files:
        raise _Damage(f"{PRIVACY_FILE} does not say what its files hash to")
    if record.get("record_sha256") != hash_record(record):
        raise _Damage(f"{PRIVACY_FILE} was changed")
    for name, expected in files.items():
        if Path(name).name != name:
            raise _Damage(f"{PRIVACY_FILE} names a file elsewhere, {name!r}")
        if hashlib.sha256((place / name).read_bytes()).hexdigest() != expected:
            raise _Damage(f"{name} was changed")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_names(value: Any) -> bool:
    if not (isinstance(value, list) and all(map(_is_text, value))):
        return False
    return len(value) >= 2 and len(set(value)) == len(value)


Checks = Mapping[str, Callable[[Any], bool]]

GUARANTEE: Checks = {
    "epsilon": lambda value: _is_number(value) and value > 0,
    "delta": lambda value: _is_number(value) and 0 <= value < 1,
    "rho": lambda value: value is None or (_is_number(value) and value >= 0),
    "tail": lambda value: value is None or (_is_number(value) and 0 <= value <= 1),
    "neighbours": lambda value: value in [str(one) for one in Neighbours],
    "mechanism": _is_text,
    "unit": _is_text,
    "ledger": lambda value: value is None or _is_text(value),
    "is_private": lambda value: isinstance(value, bool),
    "conditions": lambda value: isinstance(value, list) and all(map(_is_text, value)),
}


def _fields(kind: Kind) -> Checks:
    return {
        "mechanism": _is_text,
        "choice": _is_text,
        "estimator": lambda value: value in get_args(Estimator),
        "guarantee": lambda value: isinstance(value, dict),
        "noise": lambda value: isinstance(value, dict),
        "settings": lambda value: isinstance(value, dict),
        "items": _is_names,
        kind.cap: _is_count,
        kind.persons: lambda value: value is None or _is_count(value),
        "software": _is_text,
    }


ACCOUNT = ("population", "epsilon", "delta", "limit", "releases")

ABOUT: Checks = {
    "identity": lambda value: isinstance(value, dict) and _is_identity(value),
    "account": lambda value: value is None or _has_keys(value, ACCOUNT),
    "audit": lambda value: value is None or _has_keys(value, AUDIT),
    "approval": lambda value: value is None or _is_approval(value),
    "source_sha256": _is_text,
}
"""What a record says about its release, besides the promise."""
FLOOR: Checks = {"floor": lambda value: _has_keys(value, ("raised", "counts")) and _is_floor(value)}
"""What the record of a spectral estimate says besides."""
LEFT_OUT: Mapping[str, Any] = {"identity": {}, "audit": None, "approval": None}
"""What a record says nothing of where there is nothing to say."""


def _is_floor(value: dict[str, Any]) -> bool:
    return all(map(_is_count, value.values())) and value["raised"] <= value["counts"]


def _is_identity(value: dict[str, Any]) -> bool:
    return value.keys() <= set(NAMES) and all(map(_is_text, value.values()))


def _is_approval(value: Any) -> bool:
    return (
        _has_keys(value, ("request", "sha256", "approvers"))
        and isinstance(value["approvers"], list)
        and all(_has_keys(one, ("name", "key")) for one in value["approvers"])
    )


def _has_keys(value: Any, names: Sequence[str]) -> bool:
    return isinstance(value, dict) and value.keys() == set(names)


STEPS: Checks = {
    "steps": lambda value: isinstance(value, list) and all(map(_is_step, value)),
    "lowest": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "model": lambda value: value in MODELS,
    "forms": lambda value: isinstance(value, list) and all(map(_is_names, value)),
    "design": lambda value: value in get_args(Design),
}
"""What a record says about items besides their names, since there are items with steps."""


def _is_step(value: Any) -> bool:
    return _is_count(value) and 1 <= value <= MOST_STEPS


def _check_values(where: str, values: Mapping[str, Any], checks: Checks) -> None:
    for name, fits in checks.items():
        if name not in values:
            raise _Damage(f"{where} lacks {name!r}")
        if not fits(values[name]):
            raise _Damage(f"{where} has the {name} {values[name]!r}, which no release has")


def _read_table(place: Path, record: Mapping[str, Any]) -> Estimate:
    kind = find_kind(record)
    columns = _read_columns(place / kind.table, kind.columns)
    items = record["items"]
    # As it is written now, or as it was before formulas were kept from spreadsheets.
    if [*columns.get("item", ())] not in ([spreadsheet_cell(one) for one in items], items):
        raise _Damage(f"{kind.table} does not have one row for each item of {PRIVACY_FILE}")
    steps = tuple(record.get("steps", (1,) * len(items)))
    if len(steps) != len(items):
        raise _Damage(f"{PRIVACY_FILE} does not say how many steps each item has")
    return Estimate(
        items=read_names(items),
        difficulty=_numbers(columns[kind.number]),
        se=_numbers(columns["se"]),
        status=tuple(Status(word) for word in columns["status"]),
        method=record["estimator"],
        solution=Solution(solver="read from a release bundle", iterations=0, residual=0.0),
        persons=record[kind.persons],
        guarantee=Guarantee.from_dict(record["guarantee"]),
        steps=steps,
        model=record.get("model", "rasch"),
        ladder=None if max(steps) == 1 else _read_thresholds(place, items, steps),
        warnings=warn_floored(**record["floor"]) if "floor" in record else (),
        se_method=SIMULATED if "floor" in record else "",
    )


def _read_columns(path: Path, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = [*csv.reader(file, strict=True)] or [[]]
    if header != [*names] or any(len(row) != len(header) for row in rows):
        raise _Damage(f"{path.name} is no table with the columns {', '.join(names)}")
    return dict(zip(header, zip(*rows, strict=True), strict=False))


def _read_thresholds(place: Path, items: Sequence[str], steps: Sequence[int]) -> Thresholds:
    """Return the thresholds of a bundle, which has one row for each step of each item."""
    columns = _read_columns(place / THRESHOLD_FILE, THRESHOLD_COLUMNS)
    wanted = [
        (spreadsheet_cell(item), str(step))
        for item, most in zip(items, steps, strict=True)
        for step in range(1, most + 1)
    ]
    if [*zip(columns.get("item", ()), columns.get("step", ()), strict=True)] != wanted:
        raise _Damage(f"{THRESHOLD_FILE} does not have one row for each step of {PRIVACY_FILE}")
    inside = np.arange(max(steps)) < np.array(steps)[:, None]
    value, se = np.full((2, *inside.shape), np.nan)
    value[inside], se[inside] = _numbers(columns["threshold"]), _numbers(columns["se"])
    words = iter(Status(word) for word in columns["status"])
    status = tuple(tuple(str(next(words)) for _ in range(most)) for most in steps)
    return Thresholds(value, se, status)


def _numbers(cells: tuple[str, ...]) -> np.ndarray[Any, np.dtype[np.float64]]:
    values = np.array([float(cell) if cell else np.nan for cell in cells])
    if np.isinf(values).any():
        raise _Damage("the table holds an infinite number")
    return values
