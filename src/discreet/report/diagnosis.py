"""The diagnosis of a test: all that its report shows, computed once, as one value.

In: an estimate and, where the answers were at hand, diagnostics. Out: a :class:`Diagnosis`, which
a page turns into words, tables and pictures without asking anything else. Confidential.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from discreet.items.curves import ItemCurve, ThresholdRows, threshold_rows, worst_curves
from discreet.items.distractors import OptionMap, option_maps
from discreet.items.residuals import InformationCurve, trace_information
from discreet.items.summary import Diagnostics
from discreet.items.tables import (
    list_dimension_tables,
    tabulate_items,
    tabulate_raw_scores,
    tabulate_thresholds,
)
from discreet.report import pictures
from discreet.report.findings import find_problems, fit_remarks
from discreet.report.model_findings import Finding, list_disordered, weak_items, words_for
from discreet.report.tests import tabulate_tests
from discreet.results.estimate import Estimate, Status
from discreet.results.limits import ROUGH_SE
from discreet.tabular import AnalysisTable
from discreet.types import BoolArray

#: What the table says of items without a number.
WORDS = {
    Status.NOT_CONNECTED: "not linked",
    Status.ALWAYS_RIGHT: "always right",
    Status.ALWAYS_WRONG: "always wrong",
    Status.NO_ANSWERS: "no answers",
}

#: Item curves shown: those of the items that fit worst.
CURVES = 12


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What is wrong with a test, what is known of every item, and the figures.

    Attributes
    ----------
    estimate, statistics
        The calibration, and what the answers say beyond it; ``None`` without answers.
    known, summary
        Which items have a difficulty, and four facts about them.
    tables
        Every table that can be made without the answers, by name.
    findings, fine
        What is wrong, the most serious first; and the checks that found nothing.
    remarks
        For each item what is remarkable, in few words.
    dependent_pairs
        How many pairs of items depend on each other so much that it matters.
    information, most_error
        Precision along the scale, and up to which standard error it is worth showing.
    difficulties
        The items in order, where there are no persons to show beside them.
    thresholds
        Those of all items with steps; ``None`` of right and wrong answers.
    wright, infit, outfit, curves, contrast, options, differences
        Figures about persons, fit, dimensions, chosen options and groups; ``None`` without
        answers, and options without a key.
    """

    estimate: Estimate
    statistics: Diagnostics | None
    known: BoolArray
    tables: dict[str, AnalysisTable]
    summary: pictures.ItemSummary
    findings: list[Finding]
    fine: list[str]
    remarks: list[list[str]]
    dependent_pairs: int
    information: InformationCurve
    most_error: float
    difficulties: pictures.ItemRows | None = None
    thresholds: ThresholdRows | None = None
    wright: pictures.WrightMap | None = None
    infit: pictures.FitMap | None = None
    outfit: pictures.FitMap | None = None
    curves: list[ItemCurve] | None = None
    contrast: pictures.ContrastMap | None = None
    options: list[OptionMap] | None = None
    differences: list[pictures.GroupRows] | None = None


def diagnose_test(estimate: Estimate, statistics: Diagnostics | None = None) -> Diagnosis:
    """Run all checks and compute all figures of a report."""
    findings, fine = find_problems(estimate, statistics)
    information = trace_information(estimate)
    remarks = remarks_on_items(estimate, statistics)
    return Diagnosis(
        estimate=estimate,
        statistics=statistics,
        known=estimate.estimated,
        tables={table.name: table for table in _list_tables(estimate, statistics, remarks)},
        summary=pictures.summarise_items(estimate),
        findings=findings,
        fine=fine,
        remarks=remarks,
        dependent_pairs=0 if statistics is None else sum(statistics.dependencies) // 2,
        information=information,
        most_error=pictures.error_ceiling(information),
        **_figures(estimate, statistics),
    )


def _list_tables(
    estimate: Estimate, statistics: Diagnostics | None, remarks: list[list[str]]
) -> Iterator[AnalysisTable]:
    yield tabulate_items(estimate, statistics, remarks)
    optional = tabulate_thresholds(estimate), tabulate_raw_scores(estimate)
    yield from (table for table in optional if table is not None)
    if statistics is not None:
        yield tabulate_tests(estimate, statistics)
        yield from statistics.tables
        yield from list_dimension_tables(statistics)


def _figures(estimate: Estimate, statistics: Diagnostics | None) -> dict[str, Any]:
    thresholds = threshold_rows(estimate) if estimate.has_steps else None
    if statistics is None:
        return {"difficulties": pictures.difficulty_rows(estimate), "thresholds": thresholds}
    return {
        "thresholds": thresholds,
        "wright": pictures.wright_map(
            estimate,
            statistics.ability_starts,
            statistics.ability_counts,
            persons=statistics.measured + statistics.extreme,
            mean=statistics.ability_mean,
        ),
        **{name: _map_fit(estimate, statistics, name) for name in ("infit", "outfit")},
        "curves": worst_curves(estimate, statistics, CURVES),
        "contrast": statistics.dimensionality
        and pictures.contrast_map(statistics.dimensionality, words_for(estimate).number),
        "options": statistics.distractors and option_maps(statistics.distractors, CURVES),
        "differences": [
            rows
            for table in statistics.tables
            if table.name == "groups"
            for rows in pictures.difference_rows(table.columns)
        ],
    }


def _map_fit(estimate: Estimate, statistics: Diagnostics, name: str) -> pictures.FitMap:
    value, *limits = (getattr(statistics, f"{name}{end}") for end in ("", "_low", "_high"))
    return pictures.fit_map(estimate, value, name, tuple(limits) if limits[0] else None)


def remarks_on_items(estimate: Estimate, diagnostics: Diagnostics | None) -> list[list[str]]:
    """Say what is remarkable about each item, in few words; empty lists where nothing is."""
    remarks: list[list[str]] = [[] for _ in estimate.items]
    for index, status in enumerate(estimate.status):
        if status in WORDS:
            extreme = status in (Status.ALWAYS_RIGHT, Status.ALWAYS_WRONG)
            is_constant = extreme and estimate.has_steps
            remarks[index].append("always the same" if is_constant else WORDS[status])
        elif estimate.se[index] > ROUGH_SE:
            remarks[index].append("few answers")
    for index in {item for item, *_ in list_disordered(estimate)}:
        remarks[index].append("disordered")
    if diagnostics is not None:
        for name, *_ in diagnostics.mislabelled:
            remarks[estimate.items.index(name)].append("mislabelled?")
        for index in range(len(estimate.items)):
            remarks[index] += fit_remarks(diagnostics, index)
        for index, value in weak_items(estimate, diagnostics).items():
            remarks[index].append("wrong direction?" if value < 0 else "hardly discriminates")
        for row in diagnostics.differing or ():
            remarks[estimate.items.index(row[0])].append(f"differs by {row[1]}")
        for index in (k for k, pairs in enumerate(diagnostics.dependencies) if pairs):
            remarks[index].append("dependent")
    return [list(dict.fromkeys(words)) for words in remarks]
