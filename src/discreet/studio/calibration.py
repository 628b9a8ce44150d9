"""A calibration with all that is shown of it, and the files that can be taken away.

In: answers that were read, and what to do with them. Out: a :class:`CalibrationSummary`; beside
it, in the folder of its job, tables, workbook and report as ``discreet fit --out`` writes them.
Runs in a worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from discreet.answers.responses import Responses
from discreet.api.calibrating import fit
from discreet.choices import PlainMapping
from discreet.persons.scoring import score
from discreet.report.calibration import CalibrationAnalysis, analyse_calibration
from discreet.report.diagnosis import Diagnosis
from discreet.report.page import list_report_values
from discreet.report.plain import AnsweredItem, PersonPoints, add_points, count_answers
from discreet.results.estimate import Estimate
from discreet.scales.reported import Scale, parse_scale
from discreet.studio.inspecting import LABELS
from discreet.studio.jobs import TaskProgress, load_kept
from discreet.tabular import AnalysisTable, Columns
from discreet.words import mark


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
    items, people
        What the answers say before any model: of each item, and of each person.
    """

    test: Diagnosis
    tables: Mapping[str, AnalysisTable]
    scale: Scale | None
    values: PlainMapping
    files: tuple[str, ...]
    items: tuple[AnsweredItem, ...]
    people: PersonPoints

    @property
    def estimate(self) -> Estimate:
        """The numbers themselves."""
        return self.test.estimate

    @property
    def persons(self) -> AnalysisTable | None:
        """The table of persons, or of a sample of very many."""
        return self.tables.get("persons") or self.tables.get("persons_sample")


def calibrate(
    progress: TaskProgress, answers: Path, title: str, settings: PlainMapping
) -> CalibrationSummary:
    """Calibrate answers, test the model, and write what can be taken away."""
    keywords = dict(settings)
    target = parse_scale(keywords.pop("scale")) if "scale" in keywords else None
    progress.begin(mark("Opening the answers"))
    responses: Responses = load_kept(answers)
    names = load_kept(answers.with_name(LABELS)) if answers.with_name(LABELS).exists() else ()
    progress.begin(mark("Estimating the items"))
    estimate = fit(responses, **keywords)
    scale = None if target is None else target.settle(score(responses, estimate).ability)
    progress.begin(mark("Measuring persons, testing fit, groups and dimensions"))
    people = add_points(responses, names)
    analysis = name_persons(analyse_calibration(estimate, responses, progress.count), people)
    progress.begin(mark("Drawing the report, writing tables and workbook"))
    tables = {table.name: table.turn(scale) for table in analysis.tables}
    values = list_report_values(analysis.test, title=title, scale=scale)
    written = analysis.write(progress.folder, title=title, scale=scale)
    files = tuple(path.name for path in written)
    items = count_answers(responses)
    return CalibrationSummary(analysis.test, tables, scale, values, files, items, people)


def name_persons(analysis: CalibrationAnalysis, people: PersonPoints) -> CalibrationAnalysis:
    """Return an analysis whose table of persons has their names, groups and per cent too."""
    more: Columns = {"name": [*people.names], "percent": people.percent}
    more |= {group: [*labels] for group, labels in people.groups.items()}
    tables = tuple(
        replace(one, columns={"person": one.columns["person"], **more, **one.columns})
        if one.name == "persons"
        else one
        for one in analysis.tables
    )
    return replace(analysis, tables=tables)
