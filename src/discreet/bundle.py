"""The bundle: a folder with everything about a release that may be published.

In: an estimate and the public record of its release. Out: five files, written to a temporary
folder beside the target and moved into place whole; and the same read back.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

import discreet
from discreet.errors import BadUsage, DiscreetError
from discreet.estimate import Estimate, Solution, Status
from discreet.formats.registry import write_registry_entry
from discreet.privacy.accounting import Guarantee
from discreet.privacy.wall import Release
from discreet.report.public import write_public_page
from discreet.report.statement import write_statement

__all__ = ["describe_release", "read_bundle", "table_text", "write_bundle", "write_folder"]

SCHEMA_VERSION = 1
DECIMALS = 6
COLUMNS = ("item", "difficulty", "se", "lower", "upper", "status")


def describe_release(release: Release, estimate: Estimate, choice: str) -> dict[str, Any]:
    """Collect the public facts of a release; all of it goes into ``privacy.json``."""
    noise = {
        name: {"family": law.family, "scale": str(law.scale), "cells": release.values[name].size}
        for name, law in release.laws.items()
    }
    return {
        "schema_version": SCHEMA_VERSION,
        "mechanism": release.mechanism,
        "choice": choice,
        "estimator": estimate.method,
        "guarantee": release.guarantee.to_dict(),
        "noise": noise,
        "settings": {name: _plain(value) for name, value in release.settings.items()},
        "items": list(release.public.items),
        "max_answers": release.public.max_answers,
        "persons": release.public.persons,
        "software": f"discreet {discreet.__version__}",
    }


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Fraction) else value


def write_bundle(
    folder: str | PathLike[str],
    estimate: Estimate,
    record: Mapping[str, Any],
    *,
    force: bool = False,
) -> None:
    """Write the five files; the folder appears whole or not at all."""
    estimate = _as_written(estimate)
    texts = {
        "difficulties.csv": table_text(estimate.to_dict(), COLUMNS),
        "privacy.json": json.dumps(record, indent=2, ensure_ascii=False) + "\n",
        "statement.md": write_statement(record),
        "registry.yaml": write_registry_entry(record),
        "report.html": write_public_page(estimate, record),
    }
    write_folder(folder, texts, force=force)


def write_folder(
    folder: str | PathLike[str], texts: Mapping[str, str], *, force: bool = False
) -> None:
    """Write a folder of text files, one of them ``privacy.json``, whole or not at all."""
    target = Path(folder)
    if target.exists() and not force:
        raise BadUsage(f"{target} exists already; choose another folder, or force to replace it")
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        for name, text in texts.items():
            (fresh / name).write_text(text, encoding="utf-8", newline="\n")
        fresh.chmod(0o755)
        _move_into_place(fresh, target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _move_into_place(fresh: Path, target: Path) -> None:
    if not target.exists():
        fresh.rename(target)
        return
    if not (target.is_dir() and (target / "privacy.json").exists()) and _has_content(target):
        raise BadUsage(
            f"{target} holds something that is not a release bundle; it is not replaced. "
            "Choose another folder"
        )
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}-old-", dir=target.parent))
    os.replace(target, old)  # noqa: PTH105 (replaces an empty folder in one step)
    fresh.rename(target)
    shutil.rmtree(old)


def _has_content(target: Path) -> bool:
    return not target.is_dir() or any(target.iterdir())


def _as_written(estimate: Estimate) -> Estimate:
    """Round to what the table holds, so that everything in the bundle shows the same numbers."""
    return replace(
        estimate,
        difficulty=np.array([float(f"{value:.{DECIMALS}f}") for value in estimate.difficulty]),
        se=np.array([float(f"{value:.{DECIMALS}f}") for value in estimate.se]),
        covariance=None,
    )


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
    return str(value)


def read_bundle(folder: str | PathLike[str]) -> tuple[Estimate, dict[str, Any]]:
    """Read the estimate and the record of a bundle."""
    place = Path(folder)
    try:
        record = json.loads((place / "privacy.json").read_text(encoding="utf-8"))
        with (place / "difficulties.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except FileNotFoundError as error:
        raise BadUsage(f"{place} is not a release bundle: {error.filename} is missing") from error
    except (OSError, ValueError) as error:
        raise DiscreetError(f"{place} cannot be read as a release bundle: {error}") from error
    if not isinstance(record, dict) or record.get("schema_version") != SCHEMA_VERSION:
        raise BadUsage(
            f"{place}/privacy.json is not in schema version {SCHEMA_VERSION}, which this version "
            "of discreet reads"
        )
    return _estimate(rows, record), record


def _estimate(rows: list[dict[str, str]], record: dict[str, Any]) -> Estimate:
    def numbers(name: str) -> Any:
        return np.array([float(row[name]) if row[name] else np.nan for row in rows])

    return Estimate(
        items=tuple(row["item"] for row in rows),
        difficulty=numbers("difficulty"),
        se=numbers("se"),
        status=tuple(Status(row["status"]) for row in rows),
        method=record["estimator"],
        solution=Solution(solver="read from a release bundle", iterations=0, residual=0.0),
        persons=record["persons"],
        guarantee=Guarantee.from_dict(record["guarantee"]),
    )
