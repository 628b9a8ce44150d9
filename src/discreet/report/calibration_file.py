"""Read the calibration that ``fit --out`` keeps.

In: a file. Out: a :class:`CalibrationDocument`, which gives the estimate, its diagnostics and the
scale. The classes here are the schema: a file that does not fit them is refused. Confidential.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from discreet.counts.planes import MOST_STEPS
from discreet.errors import BadResponses, BadUsage
from discreet.report.summary import Diagnostics, read_diagnostics
from discreet.results.estimate import Estimate, FitWarning, Solution, Status, WarningKind
from discreet.results.thresholds import pad_steps
from discreet.scales.reported import Scale
from discreet.schema import (
    Along,
    AtLeast,
    Count,
    Logit,
    NonNegative,
    SchemaError,
    Within,
    read_as,
)
from discreet.types import MODELS, FloatArray, Int64Array, NamedModel

FORMAT, VERSION = "discreet-calibration", 3
READ_VERSIONS = (1, 2, 3)
"""Version 1 has no model, choice of the method, steps, thresholds and covariance, version 2 no
``reading``: how the answers were stated to be read."""


@dataclass(frozen=True)
class ItemRow:
    """One item of a calibration document; version 1 has no steps and thresholds."""

    item: str
    difficulty: Logit | None
    se: NonNegative | None
    status: Status
    answers: Count | None = None
    right: Count | None = None
    steps: Annotated[int, Within(1, MOST_STEPS)] = 1
    thresholds: Annotated[tuple[Logit | None, ...], Along("steps", may_be_empty=True)] = ()
    threshold_se: Annotated[tuple[NonNegative | None, ...], Along("thresholds")] = ()
    threshold_status: Annotated[tuple[Status, ...], Along("thresholds", may_be_empty=True)] = ()
    categories: tuple[Count, ...] = ()
    category_answers: Annotated[tuple[Count, ...] | None, Along("categories")] = None
    lowest: int = 0


@dataclass(frozen=True)
class CalibrationDocument:
    """What a file of ``fit --out`` holds."""

    format: str
    version: int
    persons: Count | None
    method: str
    items: Annotated[tuple[ItemRow, ...], AtLeast(1)]
    solution: Solution
    warnings: tuple[str, ...]
    warning_kinds: Annotated[tuple[WarningKind, ...] | None, Along("warnings")] = None
    diagnostics: object = None
    reading: Mapping[str, object] = field(default_factory=dict)
    access: str = ""
    discreet: str = ""
    title: str | None = None
    about: str = ""
    choice: str = ""
    model: NamedModel = "rasch"
    se_method: str = ""
    scale: Scale | None = None
    degrees: Annotated[int, Within(1, 1 << 30)] | None = None
    covariance: FloatArray | None = None
    threshold_covariance: FloatArray | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The items in their order."""
        return tuple(row.item for row in self.items)

    def read_estimate(self) -> Estimate:
        """Return the estimate, or refuse numbers that do not belong together."""
        rows = self.items
        # An older file does not say of which kind its warnings are.
        kinds = self.warning_kinds or (WarningKind.UNKNOWN,) * len(self.warnings)
        values = {
            "items": self.names,
            "difficulty": _list_numbers(row.difficulty for row in rows),
            "se": _list_numbers(row.se for row in rows),
            "status": tuple(row.status for row in rows),
            "answers": _list_counts(row.answers for row in rows),
            "right": _list_counts(row.right for row in rows),
            "steps": tuple(row.steps for row in rows),
            "ladder": None if self.model == "rasch" else self._read_ladder(),
            "warnings": tuple(map(FitWarning, kinds, self.warnings)),
            **{name: getattr(self, name) for name in COPIED},
        }
        estimate: Estimate = read_as(Estimate, values, "the calibration")
        return estimate

    def _read_ladder(self) -> dict[str, Any]:
        """Return the thresholds of items with steps."""
        rows = self.items
        counted = all(row.category_answers is not None for row in rows)
        counts = [row.category_answers or () for row in rows]
        return {
            "value": pad_steps([_list_numbers(row.thresholds) for row in rows]),
            "se": pad_steps([_list_numbers(row.threshold_se) for row in rows]),
            "status": tuple(row.threshold_status for row in rows),
            "covariance": self.threshold_covariance,
            "categories": _pad_counts(counts) if counted else None,
            "kept": tuple(row.categories for row in rows),
            "lowest": rows[0].lowest,
        }

    def read_diagnostics(self) -> Diagnostics | None:
        """Return what the answers say beyond the difficulties; None without answers."""
        return None if self.diagnostics is None else read_diagnostics(self.diagnostics, self.names)


COPIED = ("method", "choice", "model", "covariance", "solution", "persons", "degrees", "se_method")
"""What an estimate and its document call by the same name."""


def _list_numbers(values: Iterable[float | None]) -> FloatArray:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _list_counts(values: Iterable[int | None]) -> Int64Array | None:
    listed = list(values)
    return None if None in listed else np.array(listed, dtype=np.int64)


def _pad_counts(rows: Sequence[Sequence[int]]) -> Int64Array:
    """Return the answers in the categories of every item, 0 beyond its last one."""
    return np.nan_to_num(pad_steps(rows), nan=0.0).astype(np.int64)


def read_document(path: Path) -> CalibrationDocument:
    """Return a calibration as it stands in its file; refuse another file or version."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadResponses(f"{path} is damaged: it is not JSON ({error}).") from error
    if not isinstance(plain, dict) or plain.get("format") != FORMAT:
        raise BadUsage(f"{path} is no calibration of `discreet fit --out`: its format is not ours.")
    if plain.get("version") not in READ_VERSIONS:
        raise BadUsage(
            f"{path} has version {plain.get('version')}; this version of discreet reads "
            f"{READ_VERSIONS[0]} to {READ_VERSIONS[-1]}."
        )
    if plain.get("model", "rasch") not in MODELS:
        raise BadUsage(
            f"{path} is a calibration of the model {plain['model']}, but this version of "
            f"discreet reads those of {', '.join(MODELS)}; use the version that wrote it."
        )
    with explaining_damage(path):
        document: CalibrationDocument = read_as(CalibrationDocument, plain, "the calibration")
        return document


@contextmanager
def explaining_damage(path: Path) -> Iterator[None]:
    """Say that a calibration is damaged where something in it has not the declared form."""
    try:
        yield
    except SchemaError as error:
        raise BadResponses(
            f"{path} is damaged: {error}. Write it again with `discreet fit --out`."
        ) from error
