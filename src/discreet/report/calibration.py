"""The calibration that ``fit --out`` keeps: its tables, its document and its report.

In: an estimate and, where they are at hand, the answers behind it. Out: a folder with every table,
a workbook, the report, and a document from which the report can be made again and persons scored.
The document is read as a :class:`KeptCalibration`, whose annotations it must fit. Confidential.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

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
from discreet.choices import PlainDict, PlainMapping
from discreet.errors import BadResponses, BadUsage, MissingExtra
from discreet.items.study import Study, study_answers
from discreet.report.diagnosis import Diagnosis, diagnose_test
from discreet.report.formats import can_write_workbooks, list_calibration, write_csv, write_workbook
from discreet.report.page import write_diagnosis
from discreet.results.estimate import Estimate
from discreet.saving import CALIBRATION_FORMAT, VERSIONS, read_json, read_value, write_value
from discreet.scales.reported import Scale
from discreet.schema import SchemaError, read_as
from discreet.tabular import AnalysisTable
from discreet.text import json_text

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
    estimate: Estimate,
    responses: Responses | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> CalibrationAnalysis:
    """Return all analyses of a calibration; without its answers, none of persons and fit."""
    study: Study | None = None
    tables: tuple[AnalysisTable, ...] = ()
    notes: list[str] = []
    if responses is not None:
        try:
            study, tables = study_answers(responses, estimate, progress)
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
) -> PlainDict:
    """Return the document that a report can be made from again, and persons scored with.

    It holds the whole estimate; rows of the items stand there for other programs.
    """
    return {
        "format": CALIBRATION_FORMAT,
        "version": VERSIONS[CALIBRATION_FORMAT],
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
class KeptCalibration:
    """What a file of ``fit --out`` holds; without the answers it has no study."""

    estimate: Estimate
    study: Study | None
    scale: Scale | None
    title: str
    about: str

    def find_contradiction(self) -> str:
        """Return what does not belong together; empty if everything does."""
        is_theirs = self.study is None or self.study.fit.items == self.estimate.items
        return "" if is_theirs else "the study is not one of the items"


def read_document(path: Path) -> KeptCalibration:
    """Return a calibration as it stands in its file; refuse another file or version."""
    document = read_json(path, CALIBRATION_FORMAT)
    try:
        values = {name: document.get(name) for name in ("scale", "title", "about")}
        values |= {name: read_value(document.get(name)) for name in ("estimate", "study")}
        kept: KeptCalibration = read_as(KeptCalibration, values, "the calibration")
        _check_rows(document, kept.estimate)
    except SchemaError as error:
        raise BadResponses(
            f"{path} is damaged: {error}. Write it again with `discreet fit --out`."
        ) from error
    return kept


def _check_rows(document: PlainMapping, estimate: Estimate) -> None:
    """Refuse a document whose plain rows, for other programs, differ from its estimate."""
    rows = json.loads(json_text(list_calibration(estimate)))
    told = dict(_list_leaves({name: document.get(name) for name in rows}))
    known = dict(_list_leaves(rows))
    for place in [*known, *told]:
        if place not in told or place not in known or told[place] != known[place]:
            raise SchemaError(f"its estimate says otherwise than {place}")


def _list_leaves(value: object, place: str = "") -> Iterator[tuple[str, object]]:
    """Yield the plain values of a document, each with its place."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _list_leaves(part, f"{place}.{name}".lstrip("."))
    elif isinstance(value, list):
        yield f"{place}, its length", len(value)
        for number, part in enumerate(value):
            yield from _list_leaves(part, f"{place}[{number}]")
    else:
        yield place, value
