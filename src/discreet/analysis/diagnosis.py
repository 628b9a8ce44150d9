"""The diagnosis of a test: all that its report shows, computed once, as one value.

In: an estimate and, where the answers were at hand, diagnostics. Out: a :class:`Diagnosis`, which
a page turns into words, tables and pictures without asking anything else. Confidential.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from discreet.analysis.diagnostics import Diagnostics
from discreet.analysis.distractors import OptionMap, option_maps
from discreet.analysis.figures import (
    ContrastMap,
    FitMap,
    ItemCurve,
    ItemRows,
    ItemSummary,
    WrightMap,
    contrast_map,
    difficulty_rows,
    error_ceiling,
    fit_map,
    summarise_items,
    worst_curves,
    wright_map,
)
from discreet.analysis.findings import find_problems, remarks_on_items
from discreet.analysis.residuals import InformationCurve, trace_information
from discreet.analysis.rules import Finding
from discreet.results.estimate import Estimate
from discreet.types import BoolArray

CURVES = 12
"""Item curves shown: those of the items that fit worst."""


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What is wrong with a test, what is known of every item, and the figures.

    Attributes
    ----------
    estimate, statistics
        The calibration, and what the answers say beyond it; ``None`` without answers.
    known, columns, summary
        Which items have a difficulty, the table of all of them, and four facts about them.
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
    wright, infit, outfit, curves, contrast, options
        Figures about persons, fit, dimensions and chosen options; ``None`` without answers, and
        options without a key.
    """

    estimate: Estimate
    statistics: Diagnostics | None
    known: BoolArray
    columns: dict[str, list[Any]]
    summary: ItemSummary
    findings: list[Finding]
    fine: list[str]
    remarks: list[list[str]]
    dependent_pairs: int
    information: InformationCurve
    most_error: float
    difficulties: ItemRows | None = None
    wright: WrightMap | None = None
    infit: FitMap | None = None
    outfit: FitMap | None = None
    curves: list[ItemCurve] | None = None
    contrast: ContrastMap | None = None
    options: list[OptionMap] | None = None


def diagnose_test(estimate: Estimate, statistics: Diagnostics | None = None) -> Diagnosis:
    """Run all checks and compute all figures of a report."""
    findings, fine = find_problems(estimate, statistics)
    information = trace_information(estimate)
    return Diagnosis(
        estimate=estimate,
        statistics=statistics,
        known=estimate.estimated,
        columns=estimate.to_dict(),
        summary=summarise_items(estimate),
        findings=findings,
        fine=fine,
        remarks=remarks_on_items(estimate, statistics),
        dependent_pairs=0 if statistics is None else statistics.dependent_pairs,
        information=information,
        most_error=error_ceiling(information),
        **_figures(estimate, statistics),
    )


def _figures(estimate: Estimate, statistics: Diagnostics | None) -> dict[str, Any]:
    if statistics is None:
        return {"difficulties": difficulty_rows(estimate)}
    return {
        "wright": wright_map(
            estimate,
            statistics.ability_starts,
            statistics.ability_counts,
            persons=statistics.measured,
            mean=statistics.ability_mean,
        ),
        "infit": fit_map(estimate, statistics.infit, "infit"),
        "outfit": fit_map(estimate, statistics.outfit, "outfit"),
        "curves": worst_curves(estimate, statistics, CURVES),
        "contrast": statistics.dimensionality and contrast_map(statistics.dimensionality),
        "options": statistics.distractors and option_maps(statistics.distractors, CURVES),
    }
