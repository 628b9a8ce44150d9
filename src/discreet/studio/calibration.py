"""A calibration with all that is shown of it, and the files that can be taken away.

In: answers that were read, and what to do with them. Out: a :class:`CalibrationSummary`; beside
it, in the folder of its job, tables, workbook and report as ``discreet fit --out`` writes them.
Runs in a worker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.answers.responses import Responses
from discreet.atomic import staged
from discreet.errors import BadUsage
from discreet.items.evidence import Evidence, gather_evidence
from discreet.items.summary import summarise_evidence
from discreet.items.tables import list_evidence_tables
from discreet.models.calibrate import fit
from discreet.persons.scoring import score
from discreet.report.diagnosis import Diagnosis, diagnose_test
from discreet.report.formats import can_write_workbooks, write_csv, write_workbook
from discreet.report.page import list_report_values, write_diagnosis
from discreet.results.estimate import Estimate
from discreet.scales.reported import Scale, parse_scale
from discreet.studio.jobs import TaskProgress, load_kept
from discreet.tabular import AnalysisTable
from discreet.words import mark

# The word is part of the names: a file that leaves the studio still says what it is.
REPORT, WORKBOOK = "report.confidential.html", "analysis.confidential.xlsx"
WARNING = "Confidential: made from persons' answers without privacy protection"


@dataclass(frozen=True)
class CalibrationSummary:
    """What a calibration came to.

    Attributes
    ----------
    test
        Findings, figures and the tables that need no answers.
    tables
        All tables, by name, on the reported scale too.
    scale
        The reported scale, if one was asked for.
    values
        What the report shows.
    files
        What can be taken away.
    """

    test: Diagnosis
    tables: Mapping[str, AnalysisTable]
    scale: Scale | None
    values: Mapping[str, Any]
    files: tuple[str, ...]

    @property
    def estimate(self) -> Estimate:
        """The numbers themselves."""
        return self.test.estimate

    @property
    def persons(self) -> AnalysisTable | None:
        """The table of persons, or of a sample of very many."""
        return self.tables.get("persons") or self.tables.get("persons_sample")


def calibrate(
    progress: TaskProgress, answers: Path, title: str, settings: Mapping[str, Any]
) -> CalibrationSummary:
    """Calibrate answers, test the model, and write what can be taken away."""
    keywords = dict(settings)
    target = parse_scale(keywords.pop("scale")) if "scale" in keywords else None
    progress.begin(mark("Opening the answers"))
    responses: Responses = load_kept(answers)
    progress.begin(mark("Estimating the items"))
    estimate = fit(responses, **keywords)
    progress.begin(mark("Measuring persons, testing fit, groups and dimensions"))
    evidence = _gather(responses, estimate)
    scale = None if target is None else target.settle(_abilities(responses, estimate, evidence))
    progress.begin(mark("Looking for problems and drawing the report"))
    test = diagnose_test(estimate, None if evidence is None else summarise_evidence(evidence))
    tables = {table.name: table.turn(scale) for table in _list_tables(test, evidence)}
    values = list_report_values(test, title=title, scale=scale)
    progress.begin(mark("Writing tables, workbook and report"))
    report = write_diagnosis(test, title=title, scale=scale)
    files = tuple(_write_files(progress.folder, tables, report))
    return CalibrationSummary(test, tables, scale, values, files)


def _gather(responses: Responses, estimate: Estimate) -> Evidence | None:
    """Return all analyses; ``None`` where the answers allow none, which the report then says."""
    try:
        return gather_evidence(responses, estimate)
    except BadUsage:
        return None


def _abilities(responses: Responses, estimate: Estimate, evidence: Evidence | None) -> Any:
    if evidence is None or evidence.sampled is not None:
        return score(responses, estimate).ability
    return evidence.scores.ability


def _list_tables(test: Diagnosis, evidence: Evidence | None) -> Iterator[AnalysisTable]:
    tables = dict(test.tables)
    if evidence is not None:
        tables |= {table.name: table for table in list_evidence_tables(evidence)}
    yield from (table for table in tables.values() if table.rows)


def _write_files(folder: Path, tables: Mapping[str, AnalysisTable], report: str) -> list[str]:
    """Write what can be taken away, for its owner alone; return the names."""
    files = {f"{name}.confidential.csv": table for name, table in tables.items()}
    workbook = [WORKBOOK] if can_write_workbooks() else []
    names = [REPORT, *workbook, *files]
    with staged(folder, names) as stage:
        (stage / REPORT).write_text(report, "utf-8")
        for name in workbook:
            write_workbook(stage / name, list(tables.values()), warning=WARNING)
        for name, table in files.items():
            confidential = ["confidential"] * table.rows
            write_csv(stage / name, {**table.to_dict(), "access": confidential})
    return names
