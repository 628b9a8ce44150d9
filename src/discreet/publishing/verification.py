"""Read a bundle back, and check everything in it.

In: a folder. Out: the estimate and the record of a release, or one line that says what is wrong
with it. Checksums find damage; they are no signature, since whoever changes a file on purpose
can change its checksum too.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Annotated, Literal

import numpy as np

from discreet.atomic import PRIVACY_FILE, RELEASE_FILES
from discreet.choices import Chooser, Design, Estimator, NamedModel, PlainDict, PlainMapping
from discreet.counts.planes import MOST_STEPS
from discreet.errors import BadResponses, BadUsage, DiscreetError
from discreet.models.noisy.released import count_raised, estimate_release
from discreet.models.noisy.spectral import SIMULATED, warn_floored
from discreet.names import read_names
from discreet.privacy.accounting import Guarantee, Neighbours
from discreet.privacy.ledger import AnyLedger, LedgerEntry, as_ledger
from discreet.privacy.ledger.request import READING
from discreet.privacy.ledger.values import describe_values
from discreet.privacy.wall import Release, pack_release
from discreet.publishing.bundle import (
    NOISY_FILE,
    PUBLISHED,
    SCHEMA_VERSION,
    THRESHOLD_FILE,
    Published,
    PublishedRanking,
    hash_record,
    read_noisy,
)
from discreet.publishing.identity import NAMES, AuditFacts
from discreet.results.estimate import Estimate, Solution, Status
from discreet.results.thresholds import THRESHOLD_COLUMNS, Thresholds
from discreet.schema import (
    Among,
    AtLeast,
    Count,
    Distinct,
    NonNegative,
    Positive,
    Proportion,
    SchemaError,
    Within,
    read_as,
    read_fields,
    show_value,
)
from discreet.text import spreadsheet_cell
from discreet.types import FloatArray
from discreet.words import KINDS, find_kind


def verify(folder: str | PathLike[str]) -> tuple[str, ...]:
    """Check that a bundle is complete and unmodified, and that every value is possible.

    Returns
    -------
    tuple of str
        What else is in the folder: it is no part of the release, and was not checked.

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
    ()
    """
    files = {PRIVACY_FILE, *check_bundle(folder)["files"]}
    return tuple(sorted(path.name for path in Path(folder).iterdir() if path.name not in files))


def check_bundle(folder: str | PathLike[str]) -> PlainDict:
    """Return the record of a bundle that is whole, whatever it is about."""
    return _read(Path(folder))[1]


def read_published(folder: str | PathLike[str]) -> Published:
    """Read a bundle back, of answers or of comparisons."""
    estimate, record, noisy = _read(Path(folder))
    guarantee = Guarantee.from_dict(record["guarantee"])
    return PUBLISHED[record["kind"]](estimate, guarantee, record, noisy)


def read_release(folder: str | PathLike[str]) -> Published:
    """Read a bundle back: the estimate and its guarantee, as published.

    Examples
    --------
    >>> import tempfile
    >>> import discreet
    >>> answers, items = discreet.datasets.lsat(), ["Item1", "Item2", "Item3"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     released = discreet.release(answers, epsilon=1.0, items=items, out=folder + "/out")
    ...     again = discreet.read_release(folder + "/out")
    >>> again.guarantee == released.guarantee
    True
    """
    published = read_published(folder)
    if isinstance(published, PublishedRanking):
        raise BadUsage(
            f"{folder} is a release of comparisons, not of answers; read it with "
            "discreet.read_released_ranking."
        )
    return published


def read_released_ranking(folder: str | PathLike[str]) -> PublishedRanking:
    """Read back what :meth:`PublishedRanking.save` wrote.

    Examples
    --------
    >>> import tempfile
    >>> import discreet
    >>> votes = discreet.simulate_comparisons(99, 4, 3, rng=np.random.default_rng(1)).comparisons
    >>> objects = [f"object {number}" for number in range(4)]  # public: not from the votes
    >>> terms = {"items": objects, "max_comparisons": 3}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     discreet.release_comparisons(votes, discreet.Budget(1.0), **terms).save(folder + "/out")
    ...     discreet.read_released_ranking(folder + "/out").strengths.items == tuple(objects)
    True
    """
    published = read_published(folder)
    if isinstance(published, PublishedRanking):
        return published
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
    published = released if isinstance(released, Published) else read_published(released)
    if published.noisy is None:
        name = "this release" if isinstance(released, Published) else released
        raise BadUsage(
            f"{name} holds no noisy values ({NOISY_FILE}), so nothing can be fitted to them: "
            f"{WITHOUT_VALUES}"
        )
    return estimate_release(published.noisy, estimator=estimator or published.record["estimator"])


WITHOUT_VALUES = "its mechanism's values show who answered which items."


@dataclass(frozen=True)
class CheckedBundle:
    """A bundle that does not contradict the ledger, and whether the ledger knows it.

    ``release`` is its number in the ledger; None where it names another ledger or none.
    ``finding`` says which.
    """

    path: Path
    release: int | None
    finding: str


def check_ledger(ledger: AnyLedger, bundles: str | PathLike[str]) -> list[CheckedBundle]:
    """Check that a ledger knows every bundle in a folder that names it.

    Each bundle shows a head: a keyed hash of the ledger's chain of events up to its noisy values.
    A ledger that lacks the head of a published bundle is not the one that made it: an old copy was
    put back, or a copy was used beside it.

    Parameters
    ----------
    ledger
        The ledger.
    bundles
        A folder with published bundles, at any depth.

    Raises
    ------
    BadResponses
        Where a bundle is not whole, the ledger does not know it, or two bundles show different
        values for one charge; all of them are named.

    Examples
    --------
    >>> import tempfile
    >>> import discreet
    >>> answers, items = discreet.datasets.lsat(), ["Item1", "Item2", "Item3"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     book = discreet.Ledger.create(folder + "/spent.db", epsilon=1.0)
    ...     terms = {"items": items, "ledger": book, "out": folder + "/out"}
    ...     released = discreet.release(answers, epsilon=0.5, **terms)
    ...     [bundle.finding for bundle in discreet.check_ledger(book, folder)]
    ['in the ledger']
    """
    book = as_ledger(ledger)
    entries = {entry.number: entry for entry in book.releases()}
    checked, troubles = [], []
    charges: dict[int, list[tuple[Path, PlainMapping]]] = {}
    for path in _find_bundles(Path(bundles)):
        try:
            release = read_published(path)
        except DiscreetError as error:
            troubles.append(str(error))
            continue
        reason, charge = _name_strange(release.record, book.id), release.record["charge"]
        if reason:
            checked.append(CheckedBundle(path, None, reason))
            continue
        charges.setdefault(charge["release"], []).append((path, charge))
        trouble = _compare_charge(release, entries.get(charge["release"]))
        troubles += [f"{path}: {trouble}."] if trouble else []
        checked.append(CheckedBundle(path, charge["release"], "in the ledger"))
    troubles += _find_second_draws(charges)
    if troubles:
        lines = "\n".join(f"- {one}" for one in troubles)
        raise BadResponses(
            f"{book.path} does not account for all bundles in {bundles}:\n{lines}\n{ADVICE}"
        )
    return checked


ADVICE = (
    "Where a head is missing, an old copy of the ledger was put back, or a copy was used beside "
    "it: more was spent than this ledger says. Find the other copy, and release nothing before "
    "both are counted together."
)


def _find_bundles(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise BadUsage(f"{folder} is not a folder; give the one that holds the bundles.")
    bundles = sorted(path.parent for path in folder.rglob(PRIVACY_FILE))
    if not bundles:
        raise BadUsage(f"{folder} holds no bundle ({PRIVACY_FILE}).")
    return bundles


def _name_strange(record: PlainMapping, ledger: str) -> str:
    """Say why a bundle cannot be compared with a ledger; nothing where it can."""
    payer = record["guarantee"]["ledger"]
    if payer == ledger:
        return ""
    return "charged to no ledger" if payer is None else f"charged to another ledger, {payer}"


def _compare_charge(release: Published, entry: LedgerEntry | None) -> str:
    """Say what is wrong with the charge that a bundle shows; nothing where the ledger has it."""
    charge = release.record["charge"]
    if entry is None:
        return f"it is release {charge['release']}, which the ledger does not have"
    if charge["head"] != entry.head:
        return f"its head {charge['head'][:16]} is not in the ledger's history"
    digest = entry.stored["sha256"]
    if release.noisy is not None:
        digest = describe_values(pack_release(release.noisy))["sha256"]
    if charge["values"] != entry.digest or digest != entry.stored["sha256"]:
        return f"its values are not those that the ledger has for release {entry.number}"
    return ""


def _find_second_draws(charges: Mapping[int, list[tuple[Path, PlainMapping]]]) -> list[str]:
    """Name bundles that show different values for one charge."""
    return [
        f"{first} and {path} are both release {number} of this ledger, with different noise."
        for number, ((first, charge), *others) in charges.items()
        for path, other in others
        if other["values"] != charge["values"]
    ]


def _read(folder: Path) -> tuple[Estimate, PlainDict, Release | None]:
    record = _read_record(folder)
    with _damage(folder):
        _check_files(folder, record)
        kind = find_kind(record)
        kinds = FACTS | {kind.cap: Count, kind.persons: Count | None}
        kinds |= {} if kind is KINDS["comparisons"] else STEPS
        kinds |= {"floor": Floor} if record.get("estimator") == "spectral" else {}
        _check_values(PRIVACY_FILE, {**LEFT_OUT, **record}, kinds)
        _check_values("its guarantee", record["guarantee"], GUARANTEE)
        _check_reading(record)
        if (record["guarantee"]["ledger"] is None) != (record["charge"] is None):
            raise ValueError(f"{PRIVACY_FILE} names a ledger without a charge, or the reverse")
        estimate = _read_table(folder, record)
        if NOISY_FILE not in record["files"]:
            return estimate, record, None
        content = (folder / NOISY_FILE).read_bytes()
        noisy, estimate = read_noisy(content, record, estimate)
        if record["estimator"] == "spectral" and record["floor"] != count_raised(noisy):
            raise ValueError(f"{PRIVACY_FILE} has a floor that does not fit {NOISY_FILE}")
        return estimate, record, noisy


def _read_record(folder: Path) -> PlainDict:
    path = folder / PRIVACY_FILE
    if not path.is_file():
        others = sorted(name for name in RELEASE_FILES if (folder / name).is_file())
        if others:
            raise BadResponses(
                f"{folder} is not a whole release bundle: {PRIVACY_FILE} is missing. {FETCH}"
            )
        raise BadUsage(f"{folder} is no release bundle: {PRIVACY_FILE} is missing.")
    with _damage(folder):
        record = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(record, dict):
            raise ValueError(f"{PRIVACY_FILE} holds no record")
    version = record.get("schema_version")
    if version != SCHEMA_VERSION:
        raise BadUsage(
            f"{path} has schema version {version!r}; this version of discreet reads "
            f"{SCHEMA_VERSION}."
        )
    with _damage(folder):
        if record.get("kind") not in [*KINDS]:
            kind = show_value(record.get("kind"))
            raise ValueError(f"{PRIVACY_FILE} has the kind {kind}, which no release has")
    return record


FETCH = "Fetch the bundle again from where it was published."


@contextmanager
def _damage(folder: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        problem = f"{Path(error.filename).name} is missing"
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        problem = str(error)
    else:
        return
    raise BadResponses(f"{folder} is not a whole release bundle: {problem}. {FETCH}")


def _check_files(folder: Path, record: PlainMapping) -> None:
    files = record.get("files")
    if not isinstance(files, dict) or find_kind(record).table not in files:
        raise ValueError(f"{PRIVACY_FILE} does not say what its files hash to")
    if record.get("record_sha256") != hash_record(record):
        raise ValueError(f"{PRIVACY_FILE} was changed")
    for name, expected in files.items():
        if Path(name).name != name:
            raise ValueError(f"{PRIVACY_FILE} names a file elsewhere, {name!r}")
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != expected:
            raise ValueError(f"{name} was changed")


Names = Annotated[tuple[str, ...], AtLeast(2), Distinct()]
#: Fields of a record and their types.
Kinds = PlainDict

GUARANTEE: Kinds = {
    "epsilon": Positive,
    "delta": Annotated[float, Within(0, 1 - 2**-53)],
    "rho": NonNegative | None,
    "tail": Proportion | None,
    "neighbours": Neighbours,
    **dict.fromkeys(("mechanism", "unit", "noise", "ledger_note"), str),
    "ledger": str | None,
    "is_private": bool,
    "conditions": tuple[str, ...],
}


@dataclass(frozen=True)
class Account:
    """What a record says of its ledger: what was spent on one person of a population."""

    population: str
    epsilon: NonNegative
    delta: Proportion
    limit: NonNegative
    releases: Count


@dataclass(frozen=True)
class Approval:
    """What a record says of the request that was approved."""

    request: str
    sha256: str
    approvers: tuple[Mapping[Literal["name", "key"], str], ...]


@dataclass(frozen=True)
class Floor:
    """How many of the released counts the floor of the spectral estimate raised."""

    raised: Count
    counts: Count

    def find_contradiction(self) -> str:
        """Return what does not belong together; empty if everything does."""
        return "more counts were raised than released" if self.raised > self.counts else ""


#: What a record says nothing of where there is nothing to say.
LEFT_OUT: PlainMapping = {"identity": {}, "audit": None, "approval": None}


@dataclass(frozen=True)
class Charge:
    """Where the ledger holds the charge of a release, and the keyed digest of its values."""

    release: Count
    head: str
    values: str


#: What every record says, besides the cap and the number of persons.
FACTS: Kinds = {
    **dict.fromkeys(("mechanism", "choice", "software", "source_sha256"), str),
    **dict.fromkeys(("guarantee", "noise", "settings"), PlainMapping),
    **dict.fromkeys(("looked", "number_fixed"), bool),
    "estimator": Estimator,
    "chosen_by": Chooser,
    "items": Names,
    "identity": Mapping[Annotated[str, Among("parts")], str],
    "account": Account | None,
    "audit": AuditFacts | None,
    "approval": Approval | None,
    "charge": Charge | None,
    "person_is": Literal["id", "row", "vote"],
    "reading": PlainMapping | None,
}

#: What a record says of a reading otherwise than a request does.
TOLD = {"at_least": float, "key": Literal["scored with a key"]}

#: What a record of answers says about items besides their names.
STEPS: Kinds = {
    "steps": tuple[Annotated[int, Within(1, MOST_STEPS)], ...],
    "lowest": int,
    "model": NamedModel,
    "forms": tuple[Names, ...],
    "design": Design,
    "centre": tuple[int, ...],
    "centre_from": str,
    "group_column": str,
    "groups": tuple[str, ...],
}


def _check_values(source: str, values: PlainMapping, kinds: Kinds) -> None:
    for name, kind in kinds.items():
        if name not in values:
            raise ValueError(f"{source} lacks {name!r}")
        try:
            read_as(kind, values[name], name, parts=NAMES)
        except SchemaError as error:
            text = show_value(values[name])
            raise ValueError(
                f"{source} has the {name} {text}, which no release has ({error})"
            ) from None


def _check_reading(record: PlainMapping) -> None:
    """Refuse words that no reader has, and a key, which no bundle shows."""
    kinds = {name: TOLD.get(name, kind) for name, kind in READING[record["kind"]].items()}
    read_fields(kinds, record["reading"] or {}, "its reading", optional=tuple(kinds))


def _read_table(folder: Path, record: PlainMapping) -> Estimate:
    kind = find_kind(record)
    columns = _read_columns(folder / kind.table, kind.columns)
    items = record["items"]
    if [*columns.get("item", ())] != [spreadsheet_cell(item) for item in items]:
        raise ValueError(f"{kind.table} does not have one row for each item of {PRIVACY_FILE}")
    steps = tuple(record.get("steps", (1,) * len(items)))
    if len(steps) != len(items):
        raise ValueError(f"{PRIVACY_FILE} does not say how many steps each item has")
    estimate = Estimate(
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
        warnings=warn_floored(**record["floor"]) if "floor" in record else (),
        se_method=SIMULATED if "floor" in record else "",
    )
    if max(steps) == 1:
        return estimate
    return replace(estimate, ladder=_read_thresholds(folder, items, steps))


def _read_columns(path: Path, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = [*csv.reader(file, strict=True)] or [[]]
    if header != [*names] or any(len(row) != len(header) for row in rows):
        raise ValueError(f"{path.name} is no table with the columns {', '.join(names)}")
    return dict(zip(header, zip(*rows, strict=True), strict=False))


def _read_thresholds(folder: Path, items: Sequence[str], steps: Sequence[int]) -> Thresholds:
    """Return the thresholds of a bundle, which has one row for each step of each item."""
    columns = _read_columns(folder / THRESHOLD_FILE, THRESHOLD_COLUMNS)
    expected = [
        (spreadsheet_cell(item), str(step))
        for item, item_steps in zip(items, steps, strict=True)
        for step in range(1, item_steps + 1)
    ]
    if [*zip(columns.get("item", ()), columns.get("step", ()), strict=True)] != expected:
        raise ValueError(f"{THRESHOLD_FILE} does not have one row for each step of {PRIVACY_FILE}")
    inside = np.arange(max(steps)) < np.array(steps)[:, None]
    value, se = np.full((2, *inside.shape), np.nan)
    value[inside], se[inside] = _numbers(columns["threshold"]), _numbers(columns["se"])
    words = iter(Status(word) for word in columns["status"])
    status = tuple(tuple(str(next(words)) for _ in range(item_steps)) for item_steps in steps)
    return Thresholds(value, se, status)


def _numbers(cells: tuple[str, ...]) -> FloatArray:
    values = np.array([float(cell) if cell else np.nan for cell in cells])
    if np.isinf(values).any():
        raise ValueError("the table holds an infinite number")
    return values
