"""The bundle: a folder with everything about a release that may be published.

In: an estimate and the public record of its release. Out: :class:`Published`, and the texts of
its files, written whole or not at all. ``privacy.json`` carries the SHA-256 of every other file,
and of itself. What is published of answers and of comparisons differs in words only
(:mod:`discreet.results.kinds`).
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from html import escape
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import discreet
from discreet.atomic import PRIVACY_FILE, as_bytes, hold_place
from discreet.errors import DiscreetError, escape_json
from discreet.hints import Guessable
from discreet.models.noisy.released import count_raised
from discreet.privacy.accounting import Guarantee
from discreet.privacy.ledger import Ledger
from discreet.privacy.protocol import Order, Public
from discreet.privacy.wall import Release
from discreet.publishing.noisy import (
    COVARIANCE_ITEMS,
    NOISY_FILE,
    may_show_values,
    noisy_bytes,
)
from discreet.report.pages import write_public_page
from discreet.report.statement import REFERENCE, write_registry_entry, write_statement
from discreet.results.estimate import Estimate
from discreet.results.kinds import KINDS, find_kind
from discreet.results.ranking import Strengths
from discreet.results.thresholds import THRESHOLD_COLUMNS
from discreet.tabular import brief_repr
from discreet.text import spreadsheet_cell
from discreet.types import FloatArray
from discreet.words import speak, translate_record

if TYPE_CHECKING:
    import pandas as pd

SCHEMA_VERSION = 3
THRESHOLD_FILE = "thresholds.csv"
DECIMALS = 6


@dataclass(frozen=True, eq=False)
class Published(Guessable):
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
    """

    estimate: Estimate
    guarantee: Guarantee
    record: dict[str, Any]
    noisy: Release | None = None
    stored: tuple[Ledger, str] | None = None

    __repr__ = brief_repr

    def __post_init__(self) -> None:
        # Everybody may see this object, so it holds no more than the bundle does.
        if self.noisy is not None and not may_show_values(self.noisy):
            object.__setattr__(self, "noisy", None)
            object.__setattr__(self, "estimate", replace(self.estimate, covariance=None))

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

    def save(
        self, folder: str | PathLike[str], *, force: bool = False, language: str | None = None
    ) -> None:
        """Write the bundle: table, privacy record, statement, registry draft, page, noisy values.

        The folder appears whole or not at all. An existing one is refused; with ``force`` an
        earlier release is replaced, if nothing else is in its folder. ``language`` is that of page
        and statement, ``"en"``, ``"de"`` or ``"es"``; by default what the release says (``about``).
        """
        record = self.record if language is None else translate_record(self.record, language)
        write_bundle(folder, self.estimate, record, self.noisy, force=force)
        if self.stored is not None:
            ledger, reservation = self.stored
            try:
                ledger.complete(reservation)
            except DiscreetError as error:
                error.add_note(f"This came after the bundle was written: {folder} is complete.")
                raise


class PublishedRanking(Published):
    """A private ranking: what may be shown to everyone.

    It has what a private calibration has, promised to each judge; ``estimate`` holds the
    strengths as difficulties, for functions that take an estimate.
    """

    @property
    def strengths(self) -> Strengths:
        """Strengths, standard errors and intervals, the privacy noise included."""
        return Strengths(self.estimate)

    @property
    def result(self) -> Strengths:
        """The strengths."""
        return self.strengths


PUBLISHED = {"answers": Published, "comparisons": PublishedRanking}
"""What a release of each kind hands out."""


def describe_release(release: Release, estimate: Estimate, order: Order) -> dict[str, Any]:
    """Collect the public facts of a release; all of it goes into ``privacy.json``."""
    noise = {
        name: {"family": law.family, "scale": str(law.scale), "cells": release.values[name].size}
        for name, law in release.laws.items()
    }
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": order.public.kind,
        "mechanism": release.mechanism,
        **describe_choices(order),
        "estimator": estimate.method,
        **describe_floor(release, estimate),
        "guarantee": release.guarantee.to_dict(),
        "noise": noise,
        **describe_public(release.public, release.settings),
    }


def describe_choices(order: Order) -> dict[str, Any]:
    """Say who chose the mechanism and why, whether the data was looked at, and how it was read."""
    return {
        "choice": order.choice,
        "chosen_by": order.public.chooser,
        "looked": order.looked,
        "reading": dict(order.reading),
    }


def describe_floor(release: Release, estimate: Estimate) -> dict[str, Any]:
    """Say how many released counts the floor of the spectral estimate raised, and of how many."""
    if estimate.method != "spectral":
        return {}
    return {"floor": count_raised(release)}


def describe_public(public: Public, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Collect the public parameters of a release, which are known before it is made."""
    return {
        "settings": {name: _plain(value) for name, value in settings.items()},
        "items": list(public.items),
        KINDS[public.kind].cap: public.max_answers,
        KINDS[public.kind].persons: public.persons,
        "number_fixed": public.is_fixed,
        **(_describe_items(public) if public.kind == "answers" else {}),
        "software": f"discreet {discreet.__version__}",
        "source_sha256": hash_source(),
    }


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


SOURCES = (".py", ".html", ".css", ".js", ".toml", ".json", ".po", ".pot")
"""Files of the library that are written by hand."""


def _describe_items(public: Public) -> dict[str, Any]:
    """Say what the release was told about its items besides their names."""
    return {
        "steps": list(public.steps),
        "lowest": public.lowest,
        "model": public.model if public.has_steps else "rasch",
        "forms": [list(form) for form in public.forms],
        "design": public.design,
    }


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Fraction) else value


def bundle_files(
    estimate: Estimate, record: Mapping[str, Any], noisy: Release | None
) -> dict[str, str | bytes]:
    """Return the files of a bundle by name; every one of them shows the same numbers."""
    is_shown = noisy is not None and may_show_values(noisy)
    kind, estimate = find_kind(record), _as_written(estimate, is_shown=is_shown)
    columns = estimate.to_dict()
    files: dict[str, str | bytes] = {
        kind.table: table_text({**columns, kind.number: columns["difficulty"]}, kind.columns),
        **_threshold_texts(estimate),
        **_write_statements(record),
        "registry.yaml": write_registry_entry(record),
        "report.html": write_public_page(estimate, record),
    }
    if noisy is not None and is_shown:
        files[NOISY_FILE] = noisy_bytes(noisy, estimate)
    hashes = {name: hash_content(content) for name, content in sorted(files.items())}
    return {**files, PRIVACY_FILE: seal_record(record, hashes)}


def _write_statements(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the statement, and beside one in another language the English one, which counts."""
    texts = {"statement.md": write_statement(record)}
    if speak(record).language != "en":
        texts[REFERENCE] = write_statement(translate_record(record, "en"))
    return texts


def _threshold_texts(estimate: Estimate) -> dict[str, str]:
    """Return the table of thresholds, where items have more than one step."""
    if estimate.ladder is None:
        return {}
    return {THRESHOLD_FILE: table_text(estimate.thresholds_to_dict(), THRESHOLD_COLUMNS)}


def seal_record(record: Mapping[str, Any], files: Mapping[str, str]) -> str:
    """Return the text of ``privacy.json``, with what the other files and itself hash to."""
    sealed = {**record, "files": dict(files)}
    sealed["record_sha256"] = hash_record(sealed)
    return escape_json(json.dumps(sealed, indent=2, ensure_ascii=False)) + "\n"


def hash_record(record: Mapping[str, Any]) -> str:
    """Return the hash of a record, the hash itself left out."""
    facts = {name: value for name, value in record.items() if name != "record_sha256"}
    return hash_content(json.dumps(facts, sort_keys=True))


def hash_content(content: str | bytes) -> str:
    """Return the SHA-256 of a file with this content."""
    return hashlib.sha256(as_bytes(content)).hexdigest()


def write_bundle(
    folder: str | PathLike[str],
    estimate: Estimate,
    record: Mapping[str, Any],
    noisy: Release | None = None,
    *,
    force: bool = False,
) -> None:
    """Write the files; the folder appears whole or not at all."""
    with hold_place(folder, force=force) as staged_folder:
        staged_folder.fill(bundle_files(estimate, record, noisy))


def _as_written(estimate: Estimate, *, is_shown: bool) -> Estimate:
    """Round to what the tables hold, so that everything in the bundle shows the same numbers.

    The covariance is used where it is in the bundle: a page that is made again is the same.
    """
    is_shown &= sum(estimate.steps) <= COVARIANCE_ITEMS
    ladder = estimate.ladder
    if ladder is not None:
        spread = ladder.covariance if is_shown else None
        rounded = _round(ladder.value), _round(ladder.se)
        ladder = replace(ladder, value=rounded[0], se=rounded[1], covariance=spread)
    return replace(
        estimate,
        difficulty=_round(estimate.difficulty),
        se=_round(estimate.se),
        covariance=estimate.covariance if is_shown else None,
        ladder=ladder,
    )


def _round(values: FloatArray) -> FloatArray:
    """Round as a number is written; NaN stays."""
    return np.array([float(f"{value:.{DECIMALS}f}") for value in values.flat]).reshape(values.shape)


def table_text(columns: Mapping[str, list[Any]], names: Sequence[str]) -> str:
    """Return these columns as CSV text, numbers rounded, what is not a number left blank."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for row in zip(*(columns[name] for name in names), strict=True):
        writer.writerow([_cell(value) for value in row])
    return text.getvalue()


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.{DECIMALS}f}" if isfinite(value) else ""
    return str(spreadsheet_cell(value))
