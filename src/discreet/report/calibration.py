"""The calibration that ``fit --out`` keeps: its tables, its document and its report.

In: an estimate and, where they are at hand, the answers behind it. Out: a folder with every table,
a workbook, the report, and a document from which the report can be made again and persons scored.
The document is read as a :class:`CalibrationDocument`, which gives the estimate, its study and the
scale. The classes are the schema: a file that does not fit them is refused. Confidential.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from discreet import __version__
from discreet.answers.responses import Responses
from discreet.atomic import (
    CALIBRATION_FILE,
    CALIBRATION_FILES,
    REPORT_FILE,
    TABLE_FILES,
    WORKBOOK_FILE,
    staged,
)
from discreet.errors import BadResponses, BadUsage, MissingExtra
from discreet.items.study import Study, study_answers
from discreet.report.diagnosis import Diagnosis, diagnose_test
from discreet.report.formats import can_write_workbooks, list_calibration, write_csv, write_workbook
from discreet.report.page import write_diagnosis
from discreet.results.estimate import Estimate, Status
from discreet.saving import CALIBRATION_FORMAT, CALIBRATION_VERSION, read_value, write_value
from discreet.scales.reported import Scale
from discreet.schema import Along, AtLeast, Count, Logit, NonNegative, SchemaError, read_as
from discreet.tabular import AnalysisTable
from discreet.text import json_text
from discreet.types import MODELS, FloatArray, NamedModel

#: Items, or thresholds, up to which the covariance is kept: below 200 kB.
COVARIANCE_ITEMS = 100

CONFIDENTIAL = (
    "confidential: computed from persons' answers without privacy protection; "
    "do not publish, use `discreet release` for that"
)


@dataclass(frozen=True)
class CalibrationAnalysis:
    """A calibration with what its answers say.

    Attributes
    ----------
    test
        Findings and figures.
    tables
        Those that get a file, in their order.
    notes
        What to know of them.
    """

    test: Diagnosis
    tables: tuple[AnalysisTable, ...]
    notes: tuple[str, ...] = ()

    def write(
        self,
        folder: Path,
        *,
        title: str = "Calibration",
        about: str = "",
        scale: Scale | None = None,
    ) -> list[Path]:
        """Write all tables, the calibration and its report; return where they are.

        Parameters
        ----------
        folder
            Where they go.
        title, about
            The headline of the report, and how its scale came about where that must be said.
        scale
            On which numbers are reported too.
        """
        tables = [table.turn(scale) for table in self.tables]
        files = [TABLE_FILES[table.name] for table in tables]
        workbook = [WORKBOOK_FILE] * can_write_workbooks()
        written = [*files, *workbook, CALIBRATION_FILE, REPORT_FILE]
        heading = {"title": title, "about": about}
        with staged(folder, written) as stage:
            for table, file in zip(tables, files, strict=True):
                write_csv(stage / file, {**table.columns, "access": ["confidential"] * table.rows})
            for file in workbook:
                warning = CONFIDENTIAL[:1].upper() + CONFIDENTIAL[1:]
                write_workbook(stage / file, tables, warning=warning)
            document = describe_calibration(self.test, heading, scale)
            (stage / CALIBRATION_FILE).write_text(json_text(document) + "\n", encoding="utf-8")
            page = write_diagnosis(self.test, **heading, scale=scale)
            (stage / REPORT_FILE).write_text(page, encoding="utf-8", newline="\n")
        # A table of an earlier calibration beside the new ones would pass for one of them.
        for stale in {*CALIBRATION_FILES} - {*written}:
            (folder / stale).unlink(missing_ok=True)
        return [folder / file for file in written]


def analyse_calibration(
    estimate: Estimate, responses: Responses | None = None
) -> CalibrationAnalysis:
    """Return all analyses of a calibration; without its answers, none of persons and fit."""
    study: Study | None = None
    tables: tuple[AnalysisTable, ...] = ()
    notes: list[str] = []
    if responses is not None:
        try:
            study, tables = study_answers(responses, estimate)
        except BadUsage as error:
            notes.append(f"Warning: the report is without abilities and fit: {error}")
    if study is not None and study.sampled is not None:
        notes.append(
            f"Note: {TABLE_FILES['persons_sample']} and the report's abilities and fit are those "
            f"of {study.sampled:,} evenly chosen of {estimate.persons:,} persons; `discreet "
            "score` writes the abilities of all."
        )
    if not can_write_workbooks():
        missing = MissingExtra(f"{WORKBOOK_FILE}, all tables in one workbook,", "files")
        notes.append(f"Note: {missing}.")
    test = diagnose_test(estimate, study)
    named = test.tables | {table.name: table for table in tables}
    listed = tuple(named[name] for name in TABLE_FILES if name in named and named[name].rows)
    return CalibrationAnalysis(test, listed, tuple(notes))


def describe_calibration(
    test: Diagnosis, heading: dict[str, str], scale: Scale | None
) -> dict[str, Any]:
    """Return the document that a report can be made from again, and persons scored with.

    It holds the whole estimate; rows of the items stand there for other programs.
    """
    return {
        "format": CALIBRATION_FORMAT,
        "version": CALIBRATION_VERSION,
        "access": CONFIDENTIAL,
        "discreet": __version__,
        **heading,
        **list_calibration(test.estimate),
        **({} if scale is None else {"scale": vars(scale)}),
        "estimate": write_value(_drop_large_covariance(test.estimate)),
        "study": write_value(test.study),
    }


def _drop_large_covariance(estimate: Estimate) -> Estimate:
    if sum(estimate.steps) <= COVARIANCE_ITEMS:
        return estimate
    few_items = len(estimate.items) <= COVARIANCE_ITEMS
    ladder = replace(estimate.ladder, covariance=None)
    return replace(estimate, covariance=estimate.covariance if few_items else None, ladder=ladder)


@dataclass(frozen=True)
class ItemRow:
    """One item of a calibration document."""

    item: str
    difficulty: Logit | None
    se: NonNegative | None
    status: Status
    answers: Count | None = None
    right: Count | None = None
    thresholds: tuple[Logit | None, ...] = ()
    threshold_se: Annotated[tuple[NonNegative | None, ...], Along("thresholds")] = ()


@dataclass(frozen=True)
class CalibrationDocument:
    """What a file of ``fit --out`` holds."""

    format: str
    version: int
    persons: Count | None
    method: str
    items: Annotated[tuple[ItemRow, ...], AtLeast(1)]
    estimate: object
    study: object = None
    access: str = ""
    discreet: str = ""
    title: str | None = None
    about: str = ""
    choice: str = ""
    model: NamedModel = "rasch"
    se_method: str = ""
    scale: Scale | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The items in their order."""
        return tuple(row.item for row in self.items)

    def read_estimate(self) -> Estimate:
        """Return the estimate; refuse rows of items that say something else."""
        estimate = read_value(self.estimate)
        if not isinstance(estimate, Estimate) or estimate.items != self.names:
            raise SchemaError("the estimate is not one of the items")
        for name in ("difficulty", "se"):
            rows = _list_numbers(getattr(row, name) for row in self.items)
            if not np.array_equal(rows, getattr(estimate, name), equal_nan=True):
                raise SchemaError(f"the items and the estimate differ in {name}")
        return estimate

    def read_study(self) -> Study | None:
        """Return what the answers say beyond the difficulties; None without answers."""
        study = read_value(self.study)
        if study is not None and (not isinstance(study, Study) or study.fit.items != self.names):
            raise SchemaError("the study is not one of the items")
        return study


def _list_numbers(values: Iterable[float | None]) -> FloatArray:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def read_document(path: Path) -> CalibrationDocument:
    """Return a calibration as it stands in its file; refuse another file or version."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadResponses(f"{path} is damaged: it is not JSON ({error}).") from error
    if not isinstance(plain, dict) or plain.get("format") != CALIBRATION_FORMAT:
        raise BadUsage(
            f"{path} is not a calibration that `discreet fit --out` wrote: its format is unknown."
        )
    if plain.get("version") != CALIBRATION_VERSION:
        raise BadUsage(
            f"{path} has version {plain.get('version')}; this version of discreet reads "
            f"{CALIBRATION_VERSION}."
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
