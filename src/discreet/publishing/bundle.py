"""The bundle: a folder with everything about a release that may be published.

In: an estimate and the public record of its release. Out: :class:`Published`, and the texts of
its files, written whole or not at all. ``privacy.json`` carries the SHA-256 of every other file,
and of itself. What is published of answers and of comparisons differs in words only
(:mod:`discreet.words`).

``noisy.npz`` holds the values that came through the wall: arrays of noisy integers, the covariance
of the estimate, and as JSON texts the laws of the noise, public parameters and settings of the
mechanism. Its bytes are the same for the same release wherever they are written. All of it is
public by construction: nothing is behind it but noisy values and what was public before.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from html import escape
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np

import discreet
from discreet.atomic import PRIVACY_FILE, as_bytes, hold_place
from discreet.checking import checked
from discreet.choices import PlainDict, PlainMapping
from discreet.errors import BadUsage, DiscreetError, escape_json
from discreet.models.noisy.released import count_raised
from discreet.privacy.accounting import Guarantee
from discreet.privacy.ledger import Ledger
from discreet.privacy.mechanisms import find_mechanism
from discreet.privacy.mechanisms.group_means import NAME as MEANS
from discreet.privacy.protocol import (
    PUBLIC,
    Order,
    pack_laws,
    pack_values,
    unpack_laws,
    unpack_values,
)
from discreet.privacy.wall import Release, reread_release
from discreet.publishing.group_differences import PrivateDif, compare_groups
from discreet.publishing.group_means import PrivateMeans, measure_groups
from discreet.report.public import GroupSection, write_public_page, write_registry_entry
from discreet.report.statement import REFERENCE, write_statement
from discreet.results.estimate import Estimate
from discreet.results.ranking import Strengths
from discreet.results.thresholds import THRESHOLD_COLUMNS
from discreet.tabular import Columns, brief_repr
from discreet.text import show_probability, spreadsheet_cell
from discreet.types import FloatArray, Vector
from discreet.words import find_kind, speak, translate_record

if TYPE_CHECKING:
    import pandas as pd

NOISY_FILE = "noisy.npz"
#: Items, or steps of items, up to which the covariance is published: 32 MB.
COVARIANCE_ITEMS = 2_000
VALUE = "value/"
#: A date for all files in the archive: two archives of one release are equal byte for byte.
EPOCH = (1980, 1, 1, 0, 0, 0)


def may_show_values(release: Release) -> bool:
    """Say whether the values may be published beside what was estimated from them.

    Counts of randomised answers show exactly who answered how many of which items, and that is not
    covered by the promise: they are kept back unless it was declared public, or is known because
    everybody answered everything.
    """
    settings = release.settings
    is_public = settings.get("public_pattern") or settings.get("shuffler") == "trusted"
    return find_mechanism(release.mechanism).hides_pattern or bool(is_public)


def noisy_bytes(release: Release, estimate: Estimate) -> bytes:
    """Return the archive as it is written."""
    texts = {
        "laws": pack_laws(release.laws),
        "public": release.public.to_dict(),
        "settings": pack_values(release.settings),
    }
    arrays: dict[str, Vector] = {
        name: np.array(json.dumps(values).encode()) for name, values in texts.items()
    }
    arrays |= {
        VALUE + name: array.astype("<i8", order="C") for name, array in release.values.items()
    }
    if estimate.covariance is not None:
        arrays["covariance"] = estimate.covariance.astype("<f8", order="C")
    if estimate.has_steps and estimate.ladder.covariance is not None:
        arrays["threshold_covariance"] = estimate.ladder.covariance.astype("<f8", order="C")
    file = io.BytesIO()
    with ZipFile(file, "w", ZIP_STORED) as archive:
        for name in sorted(arrays):
            entry = ZipInfo(f"{name}.npy", EPOCH)
            entry.create_system, entry.external_attr = 3, 0o644 << 16  # Unix, wherever this runs
            archive.writestr(entry, _array_bytes(arrays[name]))
    return file.getvalue()


def _array_bytes(array: Vector) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=(1, 0), allow_pickle=False)
    return file.getvalue()


def read_noisy(
    content: bytes, record: PlainMapping, estimate: Estimate
) -> tuple[Release, Estimate]:
    """Return the release, and its estimate with the covariance.

    Raises ``ValueError`` where the archive is damaged, or does not belong to the record.
    """
    try:
        arrays = {}
        with ZipFile(io.BytesIO(content)) as archive:
            for entry in archive.infolist():
                if entry.compress_type != ZIP_STORED:
                    raise ValueError("it is compressed, and we do not compress it")
                file = io.BytesIO(archive.read(entry))
                array = np.lib.format.read_array(file, allow_pickle=False)
                arrays[entry.filename.removesuffix(".npy")] = array
        covariance, of_steps = arrays.get("covariance"), arrays.get("threshold_covariance")
        _check_covariance(covariance, estimate.se[estimate.estimated])
        ladder = estimate.ladder
        if estimate.has_steps:
            _check_covariance(of_steps, ladder.se[ladder.known])
            ladder = replace(ladder, covariance=of_steps)
        return _restore(arrays, record), replace(estimate, covariance=covariance, ladder=ladder)
    except (BadZipFile, KeyError, TypeError, MemoryError, OverflowError, ValueError) as error:
        raise ValueError(f"{NOISY_FILE} cannot be read ({type(error).__name__}: {error})") from None


def _check_covariance(covariance: FloatArray | None, se: FloatArray) -> None:
    if covariance is None:
        return
    if covariance.dtype != np.float64 or covariance.shape != (len(se), len(se)):
        raise ValueError(f"its covariance is not a matrix of {len(se)} rows and columns")
    spread = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
    if not np.allclose(spread, se, rtol=1e-5, atol=1e-6):
        raise ValueError("its covariance does not fit the standard errors of the table")


def _restore(arrays: PlainMapping, record: PlainMapping) -> Release:
    laws, public, settings = (
        json.loads(arrays[name].item()) for name in ("laws", "public", "settings")
    )
    if public["items"] != record["items"]:
        raise ValueError("it is about other items than the record")
    return reread_release(
        record["mechanism"],
        PUBLIC[record["kind"]].from_dict(
            public,
            mechanism=record["mechanism"],
            estimator=record["estimator"],
            chosen_by=record["chosen_by"],
        ),
        laws=unpack_laws(laws),
        settings=unpack_values(settings),
        values={
            name.removeprefix(VALUE): array.astype(np.int64)
            for name, array in arrays.items()
            if name.startswith(VALUE) and array.dtype == np.dtype("<i8")
        },
        guarantee=Guarantee.from_dict(record["guarantee"]),
    )


SCHEMA_VERSION = 1
THRESHOLD_FILE, DIF_FILE, MEANS_FILE = "thresholds.csv", "dif.csv", "means.csv"
DECIMALS = 6


@dataclass(frozen=True, eq=False)
class Published:
    """A private calibration: what may be shown to everyone.

    Attributes
    ----------
    estimate
        Difficulties, standard errors and intervals, the privacy noise included.
    guarantee
        What is promised to each person.
    record
        The public facts of the release, as ``privacy.json`` holds them.
    noisy
        The noisy values behind the estimate; ``None`` where the bundle does not hold them, because
        they show which items were answered together (``randomized-response``).
    stored
        The ledger that keeps them until the bundle is written, and the name of the charge;
        ``None`` without a ledger, and where the bundle is written.

    Examples
    --------
    >>> answers = discreet.datasets.lsat()
    >>> items = ["Item1", "Item2", "Item3", "Item4", "Item5"]
    >>> released = discreet.release(answers, epsilon=1.0, items=items)
    >>> released.record["mechanism"], released.estimate.items[0], released.noisy.values.keys()
    ('pairs', 'Item1', dict_keys(['right_wrong']))
    """

    estimate: Estimate
    guarantee: Guarantee
    record: PlainDict
    noisy: Release | None = None
    stored: tuple[Ledger, str] | None = None

    __repr__ = brief_repr

    def __post_init__(self) -> None:
        # Everybody may see this object, so it holds no more than the bundle does.
        if self.noisy is not None and not may_show_values(self.noisy):
            object.__setattr__(self, "noisy", None)
            object.__setattr__(self, "estimate", replace(self.estimate, covariance=None))

    def __eq__(self, other: object) -> bool:
        """Say whether the same bundle would be written."""
        if not isinstance(other, Published):
            return NotImplemented
        mine, theirs = (bundle_files(one.estimate, one.record, one.noisy) for one in (self, other))
        return mine == theirs

    __hash__ = None  # type: ignore[assignment]  # equal by content, and content is large

    @property
    def difficulty(self) -> FloatArray:
        """Difficulties, as ``estimate`` has them."""
        return self.estimate.difficulty

    @property
    def se(self) -> FloatArray:
        """Standard errors, the privacy noise included."""
        return self.estimate.se

    def to_dataframe(self) -> pd.DataFrame:
        """Return the table of items as a data frame, as ``estimate.to_dataframe`` does."""
        table: pd.DataFrame = self.result.to_dataframe()
        return table

    def _repr_html_(self) -> str:
        """Show the promise and the first items in a notebook."""
        return f"<div><p>{escape(self.guarantee.summary)}</p>{self.result._repr_html_()}</div>"

    @property
    def result(self) -> Estimate | Strengths:
        """The estimate in the words of what was released."""
        return self.estimate

    @property
    def summary(self) -> str:
        """The mechanism and the promise, in one line."""
        return f"{self.guarantee.mechanism}: {self.guarantee.summary}"

    def compare_groups(self) -> PrivateDif:
        """Compare the groups of a release that was made with them; it costs nothing."""
        return compare_groups(self._need_values(), self.estimate.difficulty)

    def measure_groups(self) -> PrivateMeans:
        """Return the means of groups of a release that was made for them; it costs nothing."""
        return measure_groups(self._need_values())

    def _need_values(self) -> Release:
        if self.noisy is None:
            raise BadUsage("this release holds no noisy values, so nothing is said about groups")
        return self.noisy

    @property
    def about_groups(self) -> PrivateDif | PrivateMeans | None:
        """What the release says about groups, where it was made with them."""
        return None if self.noisy is None else say_of_groups(self.noisy, self.estimate)

    def to_dict(self) -> Columns:
        """Return the numbers of each item, but for its status, which is the same for all."""
        columns = self.result.to_dict()
        return {name: columns[name] for name in find_kind(self.record).columns[:-1]}

    @checked
    def save(
        self, folder: str | PathLike[str], *, force: bool = False, language: str | None = None
    ) -> None:
        """Write the bundle: table, privacy record, statement, registry draft, page, noisy values.

        The folder appears whole or not at all. An existing one is refused; with ``force`` an
        earlier release is replaced, if nothing else is in its folder. ``language`` is that of page
        and statement, ``"en"``, ``"de"`` or ``"es"``; by default what the release says (``about``).
        """
        record = self.record if language is None else translate_record(self.record, language)
        with hold_place(folder, force=force) as staged_folder:
            staged_folder.fill(bundle_files(self.estimate, record, self.noisy))
        if self.stored is not None:
            ledger, reservation = self.stored
            try:
                ledger.remove_values(reservation)
            except DiscreetError as error:
                error.add_note(f"This came after the bundle was written: {folder} is complete.")
                raise


class PublishedRanking(Published):
    """A private ranking: what may be shown to everyone.

    It has what a private calibration has, promised to each judge; ``estimate`` holds the
    strengths as difficulties, for functions that take an estimate.

    Examples
    --------
    >>> votes = discreet.simulate_comparisons(300, 4, 3, rng=np.random.default_rng(1)).comparisons
    >>> objects = [f"object {number}" for number in range(4)]  # public: not from the votes
    >>> released = discreet.release_comparisons(
    ...     votes, discreet.Budget(1.0), items=objects, max_comparisons=3
    ... )
    >>> released.strengths.strength.shape
    (4,)
    """

    noun = "object"

    @property
    def strengths(self) -> Strengths:
        """Strengths, standard errors and intervals, the privacy noise included."""
        return Strengths(self.estimate)

    @property
    def result(self) -> Strengths:
        """The strengths."""
        return self.strengths


#: What a release of each kind hands out.
PUBLISHED = {"answers": Published, "comparisons": PublishedRanking}


def say_of_groups(noisy: Release, estimate: Estimate) -> PrivateDif | PrivateMeans | None:
    """Return the differences between groups, or their means; None where a release has no groups."""
    if not noisy.public.groups:
        return None
    if noisy.mechanism == MEANS:
        return measure_groups(noisy)
    return compare_groups(noisy, estimate.difficulty)


def describe_release(release: Release, estimate: Estimate, order: Order) -> PlainDict:
    """Collect the public facts of a release; all of it goes into ``privacy.json``."""
    noise = {
        name: {"family": law.family, "scale": str(law.scale), "cells": release.values[name].size}
        for name, law in release.laws.items()
    }
    # How many released counts the floor of the spectral estimate raised, and of how many.
    floor = {"floor": count_raised(release)} if estimate.method == "spectral" else {}
    return {
        "schema_version": SCHEMA_VERSION,
        **order.describe(release.guarantee),
        "estimator": estimate.method,
        **floor,
        "noise": noise,
        **describe_software(),
    }


def describe_software() -> dict[str, str]:
    """Say what makes a release."""
    version, source = f"discreet {discreet.__version__}", hash_source()
    return {"software": version, "source_sha256": source}


@cache
def hash_source() -> str:
    """Return what the source of this library hashes to: all of its files, by name."""
    root = Path(discreet.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*"), key=lambda file: file.relative_to(root).as_posix()):
        if path.is_file() and path.suffix in SOURCES:
            content = path.read_bytes().replace(b"\r\n", b"\n")
            name = path.relative_to(root).as_posix()
            digest.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return digest.hexdigest()


#: Files of the library that are written by hand.
SOURCES = (".py", ".html", ".css", ".js", ".toml", ".json", ".yaml", ".md", ".po", ".pot")


def bundle_files(
    estimate: Estimate, record: PlainMapping, noisy: Release | None
) -> dict[str, str | bytes]:
    """Return the files of a bundle by name; every one of them shows the same numbers."""
    is_shown = noisy is not None and may_show_values(noisy)
    # The covariance is used where it is in the bundle: a page that is made again is the same.
    has_covariance = is_shown and sum(estimate.steps) <= COVARIANCE_ITEMS
    kind, estimate = find_kind(record), estimate.rounded(DECIMALS, covariance=has_covariance)
    groups = None if noisy is None else say_of_groups(noisy, estimate)
    columns = estimate.to_dict()
    # The statement, and beside one in another language the English one, which counts.
    texts = {"statement.md": write_statement(record)}
    if speak(record).language != "en":
        texts[REFERENCE] = write_statement(translate_record(record, "en"))
    files: dict[str, str | bytes] = {
        kind.table: table_text({**columns, kind.number: columns["difficulty"]}, kind.columns),
        **_threshold_texts(estimate),
        **texts,
        "registry.yaml": write_registry_entry(record),
        "report.html": write_public_page(estimate, record, show_groups(groups, record)),
    }
    if groups is not None:
        columns = groups.to_dict()
        name = MEANS_FILE if isinstance(groups, PrivateMeans) else DIF_FILE
        files[name] = table_text(columns, list(columns))
    if noisy is not None and is_shown:
        files[NOISY_FILE] = noisy_bytes(noisy, estimate)
    hashes = {name: hash_content(content) for name, content in sorted(files.items())}
    return {**files, PRIVACY_FILE: seal_record(record, hashes)}


def show_groups(
    groups: PrivateDif | PrivateMeans | None, record: PlainMapping
) -> GroupSection | None:
    """Return the part of the public page about groups."""
    if groups is None:
        return None
    tell, columns = speak(record), groups.to_dict()
    if isinstance(groups, PrivateMeans):
        title = tell("How able each group is")
        notes = [
            tell(
                "Means in the logits of the difficulties, which were public before, with 95% "
                "intervals that include sampling and the privacy noise, and not what is unsure "
                "about the difficulties. Abilities are taken as normal within each group. Numbers "
                "of persons have noise."
            ),
            tell("Groups with fewer than {least} persons have no mean.", least=groups.least),
        ]
        heads = {
            "group": tell("group"), "mean": tell("mean"), "se": tell("se"),
            "lower": tell("lower"), "upper": tell("upper"), "spread": tell("spread"),
            "persons": tell("persons, with noise"),
        }  # fmt: skip
        return GroupSection(title, notes, {heads[name]: one for name, one in columns.items()})
    notes = [
        tell(
            "Differences to the group {reference} at equal ability, in logits; positive: harder "
            "for the group. The chance is that of a difference as large anywhere where there is "
            "none. Class A: small, C: large, by the 95% intervals; B: between, or not sure.",
            reference=groups.reference,
        ),
        tell(
            "With 95% confidence no item differs by more than {largest} logits. If no item "
            "differed, differences as large as all of these together would have a chance of "
            "{chance}.",
            largest=f"{groups.largest:.2f}",
            chance=show_probability(groups.p_omnibus),
        ),
    ]
    heads = {
        "item": tell("item"), "group": tell("group"), "difference": tell("difference"),
        "se": tell("se"), "p_adjusted": tell("chance"), "p_item": tell("chance of the item"),
        "ets": tell("class"),
    }  # fmt: skip
    if len(groups.groups) == 1:
        del heads["p_item"]  # the same
    title = tell("Which items are harder for a group")
    return GroupSection(title, notes, {head: columns[name] for name, head in heads.items()})


def _threshold_texts(estimate: Estimate) -> dict[str, str]:
    """Return the table of thresholds, where items have more than one step."""
    if not estimate.has_steps:
        return {}
    return {THRESHOLD_FILE: table_text(estimate.thresholds_to_dict(), THRESHOLD_COLUMNS)}


def seal_record(record: PlainMapping, files: Mapping[str, str]) -> str:
    """Return the text of ``privacy.json``, with what the other files and itself hash to."""
    sealed = {**record, "files": dict(files)}
    sealed["record_sha256"] = hash_record(sealed)
    return escape_json(json.dumps(sealed, indent=2, ensure_ascii=False)) + "\n"


def hash_record(record: PlainMapping) -> str:
    """Return the hash of a record, the hash itself left out."""
    facts = {name: value for name, value in record.items() if name != "record_sha256"}
    return hash_content(json.dumps(facts, sort_keys=True))


def hash_content(content: str | bytes) -> str:
    """Return the SHA-256 of a file with this content."""
    return hashlib.sha256(as_bytes(content)).hexdigest()


def table_text(columns: Mapping[str, Sequence[object]], names: Sequence[str]) -> str:
    """Return these columns as CSV text, numbers rounded, what is not a number left blank."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for row in zip(*(columns[name] for name in names), strict=True):
        writer.writerow([_cell(value) for value in row])
    return text.getvalue()


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.{DECIMALS}f}" if isfinite(value) else ""
    return str(spreadsheet_cell(value))
