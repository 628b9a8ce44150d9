"""The confidential report of a calibration: what is wrong with the test, and every item.

In: an estimate and, where the answers were at hand, its study. Out: one HTML file that works
offline, with the methods section of a paper written from what was done. It says at the top that
it must not be passed on. And a page with a sheet for each item, for those who write items.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite
from typing import NamedTuple

import numpy as np

from discreet import __version__
from discreet.choices import PlainDict, PlainMapping
from discreet.errors import BadUsage
from discreet.html import HtmlColumn, write_page
from discreet.items.curves import observed_curve, threshold_rows, worst_curves
from discreet.items.dif import list_differing
from discreet.items.dimensionality import Dimensionality
from discreet.items.distractors import Distractors, option_map, option_maps
from discreet.items.residuals import trace_information
from discreet.items.study import Study
from discreet.report import drawings, pictures
from discreet.report.diagnosis import UNTESTED, Diagnosis
from discreet.report.findings import list_uneven
from discreet.report.model_findings import (
    DESCRIPTION,
    Finding,
    Severity,
    check_enough_persons,
    say_reliability,
    words_for,
)
from discreet.report.paper import PaperTable, tabulate_paper_items, write_methods
from discreet.report.sheet import Sheet
from discreet.results.estimate import Estimate
from discreet.results.thresholds import THRESHOLD_COLUMNS
from discreet.scales.reported import Scale
from discreet.tabular import AnalysisTable, Columns
from discreet.text import count_of, isolate, minus


class ColumnText(NamedTuple):
    """How a column is shown: its title, its digits, and what it means."""

    title: str
    digits: int = 2
    meaning: str = ""


#: Columns whose name alone does not say it, or whose digits are not two.
COLUMN_WORDS = {
    "difficulty": ColumnText("difficulty", 2, "logits; harder is larger"),
    "se": ColumnText("SE", 2, "standard error"),
    "lower": ColumnText("95% from"),
    "upper": ColumnText("to"),
    "conditional_infit": ColumnText("infit", 2, "given the total score; 1 is expected"),
    "conditional_outfit": ColumnText("outfit", 2, "given the total score; 1 is expected"),
    "infit": ColumnText("infit (ML)", 2, "at estimated abilities; below 1 is expected"),
    "infit_t": ColumnText("infit t", 1, "standardised; beyond 2 hardly chance"),
    "outfit": ColumnText("outfit (ML)", 2, "at estimated abilities; below 1 is expected"),
    "outfit_t": ColumnText("outfit t", 1, "standardised; beyond 2 hardly chance"),
    "infit_low": ColumnText("infit from", 2, "lowest when the model holds (simulated)"),
    "infit_high": ColumnText("to", 2, "highest when the model holds (simulated)"),
    "outfit_low": ColumnText("outfit from", 2, "lowest when the model holds (simulated)"),
    "outfit_high": ColumnText("to", 2, "highest when the model holds (simulated)"),
    "outfit_without_one": ColumnText("without one", 2, "outfit without the most unexpected answer"),
    "point_measure": ColumnText("corr.", 2, "of the answer with ability"),
    "point_measure_expected": ColumnText("expected", 2, "what the correlation is by the model"),
    "discrimination": ColumnText("discr.", 2, "slope as a multiple of the model's; 1 is expected"),
    "p_value": ColumnText("p", 4),
    "p_adjusted": ColumnText("adjusted p", 4, "for the number of comparisons"),
    "ets": ColumnText("ETS", 2, "A negligible, B moderate, C large"),
    "focal": ColumnText("for group"),
    "reference": ColumnText("compared with"),
    "group": ColumnText("by"),
    "q3": ColumnText("Q3", 2, "correlation of the residuals"),
    "excess": ColumnText("above the mean", 2, "correlation of the residuals, less the mean one"),
    "other": ColumnText("other item"),
    "degrees": ColumnText("df"),
    "error_degrees": ColumnText("df of error"),
    "scaled_difficulty": ColumnText("scaled"),
    "scaled_ability": ColumnText("scaled"),
    "scaled_se": ColumnText("scaled SE"),
    "displacement": ColumnText("displacement", 2, "of an anchor, if it were free; logits"),
    "displacement_se": ColumnText("SE", 2, "standard error of the displacement"),
    "threshold": ColumnText("threshold", 2, "logits"),
    "share": ColumnText("share", 3, "of the answers to the item"),
    "answers_without_extremes": ColumnText(
        "without extremes", 2, "answers of persons with neither the lowest nor the highest score"
    ),
    "mean_ability": ColumnText("mean ability", 2, "of the persons in the category"),
    "expected_ability": ColumnText("expected", 2, "what the mean ability is by the model"),
    "name": ColumnText("test"),
    "found": ColumnText("what was found"),
    "chance": ColumnText("chance", 3, "of answers at least as unexpected, given items and score"),
}


#: Dependent pairs shown.
PAIRS = 12
#: Statistics of fit that have a picture.
MEAN_SQUARES = ("infit", "outfit")
#: Item curves shown, and pictures of options: those of the items that fit worst.
CURVES = 12
#: Options shown in the table; of more only the flagged ones.
OPTIONS = 400
#: Rows of a table beside that of the items; the files of ``fit --out`` have all of them.
MOST_ROWS = 300

#: Columns of the tables that a report shows, by the name of the table.
SHOWN: dict[str, tuple[str, ...]] = {
    "categories": (
        *("item", "category", "answers", "share", "answers_without_extremes"),
        *("mean_ability", "expected_ability", "infit", "outfit"),
    ),
    "tests": ("name", "statistic", "degrees", "p_value", "verdict", "found"),
    "groups": (
        *("item", "group", "focal", "reference", "difference", "se"),
        *("p_value", "p_adjusted", "ets", "status"),
    ),
    "group_curves": (
        *("item", "group", "statistic", "degrees", "error_degrees", "p_value", "p_adjusted"),
    ),
    "misfits": (
        *("person", "ability", "se", "scaled_ability", "scaled_se", "score", "answered"),
        *("chance", "conditional_infit", "conditional_outfit"),
    ),
    "unexpected": ("person", "item", "observed", "expected", "z"),
}
#: What a person's status is called where answers have steps.
EXTREME_SCORES = {"all_wrong": "lowest score", "all_right": "highest score"}
SCORE_COLUMNS = ("score", "ability", "se", "scaled_ability", "scaled_se", "status")


def write_diagnosis(
    test: Diagnosis, *, title: str = "Calibration", about: str = "", scale: Scale | None = None
) -> str:
    """Return the confidential report of a test.

    Parameters
    ----------
    test
        From :func:`discreet.report.diagnosis.diagnose_test`.
    title
        The headline.
    about
        How the scale came about, if it is not that of these answers: whole sentences.
    scale
        On which difficulties are shown too.
    """
    steps = ["steps.css"] if test.estimate.has_steps else []
    return write_page(
        "steward.html",
        list_report_values(test, title=title, about=about, scale=scale),
        styles=["style.css", "confidential.css", *steps],
    )


def list_report_values(
    test: Diagnosis, *, title: str = "Calibration", about: str = "", scale: Scale | None = None
) -> PlainDict:
    """Return everything that the template of the report shows, words, tables and pictures."""
    estimate, study = test.estimate, test.study
    options = None if study is None else study.distractors
    dimensions = None if study is None else study.dimensionality
    rows = threshold_rows(estimate) if estimate.has_steps else None
    has_disorder = rows is not None and any(map(any, rows.disordered))
    return {
        "title": title,
        "summary": _summarise(test),
        "about": about,
        "verdict": judge(test.findings),
        "findings": test.findings,
        "too_few": "".join(
            f"{finding.title}. {finding.found}" for finding in check_enough_persons(estimate, study)
        ),
        "checked": _say_checked(test),
        "boxes": _facts(estimate, study) | ({} if scale is None else {"scaled": minus(str(scale))}),
        "remark": _remark(study),
        "items": len(estimate.items),
        "simulated": study is not None and study.limits is not None,
        "steps": estimate.has_steps,
        "disordered": has_disorder,
        "words": words_for(estimate),
        "threshold_map": rows and drawings.draw_thresholds(rows),
        **_draw_items(estimate),
        **_draw_study(test),
        **_item_table(test, scale),
        "thresholds": _show(
            test, "thresholds", [*THRESHOLD_COLUMNS, *["order"] * has_disorder], scale
        ),
        **{name: _show(test, name, columns, scale) for name, columns in SHOWN.items()},
        "scores": _show(test, "raw_scores", SCORE_COLUMNS, scale),
        "pairs": _pair_columns(study),
        "options": [] if options is None else _option_columns(options),
        "keyed": 0 if options is None else len(set(options.item)),
        "dimensions": _dimension_columns(dimensions),
        "ends": _end_columns(dimensions),
        "methods": write_methods(test, about),
        "computed": _computed(estimate),
        "notes": _notes(estimate, study),
    }


def _summarise(test: Diagnosis) -> str:
    estimate, summary = test.estimate, pictures.summarise_items(test.estimate)
    persons = "" if estimate.persons is None else f" answered by {estimate.persons:,} persons"
    left_out = not estimate.estimated.all()
    number = words_for(estimate).number
    numbered = f"; {int(estimate.estimated.sum()):,} of them have a {number}" if left_out else ""
    text = (
        f"{count_of(len(estimate.items))}{persons}{numbered}. Hardest: {isolate(summary.hardest)}, "
        f"easiest: {isolate(summary.easiest)}, {summary.spread:.1f} logits apart."
    )
    if summary.typical_se is not None:
        text += f" A {number} is typically known to ±{1.96 * summary.typical_se:.2f} logits."
    is_weighted = test.study is not None and test.study.is_weighted
    return text + " Persons count by their sampling weights." * is_weighted


def judge(findings: Sequence[Finding]) -> str:
    """Return the headline over the findings; a problem is only what is serious."""
    if not findings:
        return "Nothing wrong was found"
    first = findings[0]
    if first.severity is Severity.NOTE and first.title.startswith(DESCRIPTION):
        return "What these answers say"
    words = {Severity.ALARM: "alarm", Severity.SERIOUS: "serious", Severity.LOOK: "to look at"}
    counts = {level: sum(finding.severity is level for finding in findings) for level in words}
    told = {level: f"{counts[level]} {word}" for level, word in words.items() if counts[level]}
    problems = f"{count_of(sum(counts.values()), 'problem')} ({', '.join(told.values())})"
    if first.severity is Severity.ALARM:
        return f"Stop: {first.title[:1].lower()}{first.title[1:]}. {problems}"
    if first.severity is Severity.SERIOUS:
        return f"What is wrong with this test: {problems}"
    return f"Nothing serious was found{'; ' * bool(told)}{told.get(Severity.LOOK, '')}"


def _say_checked(test: Diagnosis) -> str:
    """Say which checks found nothing, and which could not be made."""
    study = test.study
    parts = [f"Checked, nothing found: {', '.join(test.fine)}."] if test.fine else []
    if study is None:
        parts.append(
            "Not checked, because the answers were not at hand: fit, reliability, targeting, "
            "dependent items, design."
        )
        return " ".join(parts)
    columns = test.tables["tests"].columns
    tests = zip(columns["name"], columns["verdict"], strict=True)
    untested = [name for name, verdict in tests if verdict == UNTESTED]
    if untested:
        parts.append(f"Not tested (the notes say why): {', '.join(untested)}.")
    if study.dependence is None:
        parts.append("Not checked, because there are too many items and persons: dependent items.")
    if study.differences is None:
        parts.append("Not checked, because no groups were named (--group COL): groups.")
    return " ".join(parts)


def _facts(estimate: Estimate, study: Study | None) -> dict[str, str]:
    facts = {"items": f"{len(estimate.items):,}"}
    if estimate.has_steps:
        facts = {"model": estimate.model.replace("-", " "), **facts}
    if estimate.persons is not None:
        facts["persons"] = f"{estimate.persons:,}"
    if estimate.answers is not None:
        facts["answers"] = f"{int(estimate.answers.sum()):,}"
    if study is not None:
        facts["answers per person (median)"] = f"{study.abilities.answered:g}"
        facts["mean ability"] = minus(f"{study.abilities.mean:.2f}")
        facts["SD of abilities"] = f"{study.abilities.sd:.2f}"
        for label, value in zip(
            ("person reliability", "item reliability", words_for(estimate).alpha),
            _list_reliabilities(study),
            strict=True,
        ):
            if isfinite(value):
                facts[label] = say_reliability(value).partition(" ")[0]
    return facts


def _list_reliabilities(study: Study) -> tuple[float, float, float]:
    return study.reliability.reliability, study.item_reliability.reliability, study.alpha.alpha


def _remark(study: Study | None) -> str:
    """Say below the boxes what a reliability of 0 stands for."""
    if study is None:
        return ""
    if not any(value < 0 for value in _list_reliabilities(study)):
        return ""
    return "A reliability of 0 means that errors exceed the differences: the formula gives less."


def _draw_items(estimate: Estimate) -> PlainDict:
    """Draw what needs no answers."""
    information = trace_information(estimate)
    most_error = pictures.error_ceiling(information)
    return {
        "difficulties": drawings.draw_difficulties(pictures.difficulty_rows(estimate)),
        "information": drawings.draw_information(information, most_error),
    }


def _draw_study(test: Diagnosis) -> PlainDict:
    """Draw persons, fit, dimensions, chosen options and groups; nothing without answers."""
    estimate, study = test.estimate, test.study
    if study is None:
        names = ("wright", "infit", "outfit", "contrast", "choices", "curves", "shapes")
        return {**dict.fromkeys(names), "differences": [], "category_curves": []}
    curves = worst_curves(estimate, study, CURVES)
    number = words_for(estimate).number
    groups = test.tables["groups"].columns if "groups" in test.tables else None
    return {
        "wright": drawings.draw_wright(map_persons(estimate, study)),
        **{name: drawings.draw_fit(_map_fit(estimate, study, name)) for name in MEAN_SQUARES},
        "contrast": study.dimensionality
        and drawings.draw_contrast(pictures.contrast_map(study.dimensionality, number)),
        "choices": study.distractors
        and [
            (one.item, drawings.draw_options(one)) for one in option_maps(study.distractors, CURVES)
        ],
        "differences": [
            (
                f"{one.focal} compared with {one.reference} ({one.column})",
                drawings.draw_differences(one),
            )
            for one in ([] if groups is None else pictures.difference_rows(groups))
        ],
        "shapes": list(_draw_group_curves(estimate, study)),
        "curves": [(curve.item, drawings.draw_curve(curve)) for curve in curves],
        "category_curves": [
            (curve.item, drawings.draw_categories(curve)) for curve in curves if curve.shares
        ],
    }


def _draw_group_curves(estimate: Estimate, study: Study) -> Iterator[tuple[str, Sheet]]:
    """Draw the items that differ between groups, uniformly or with ability."""
    rows = [row[:2] for row in list_differing(study.differences or {})]
    rows += [row[:2] for row in list_uneven(study)]
    for item, column in list(dict.fromkeys(rows))[:CURVES]:
        groups = study.group_curves.get(column)
        if groups is not None and item in groups.item:
            curve = observed_curve(estimate, study.observed, estimate.items.index(item))
            place = groups.item.index(item)
            yield f"{item}, {column}", drawings.draw_group_curve(curve, groups, place)


def map_persons(estimate: Estimate, study: Study) -> pictures.WrightMap:
    """Put persons and items on one scale."""
    who = study.abilities
    return pictures.wright_map(
        estimate, who.starts, who.counts, persons=who.measured + who.extreme, mean=who.mean
    )


def _map_fit(estimate: Estimate, study: Study, name: str) -> pictures.FitMap:
    limits = None if study.limits is None else getattr(study.limits, name).T
    return pictures.fit_map(estimate, getattr(study.fit, f"conditional_{name}"), name, limits)


def _show(
    test: Diagnosis, name: str, columns: Sequence[str], scale: Scale | None
) -> tuple[AnalysisTable, list[HtmlColumn]] | None:
    """Return a table for the page, and those of its columns that are shown."""
    table = test.tables.get(name)
    if table is None or not table.rows:
        return None
    if name == "tests":
        table = _point_to_findings(table)
    cut = table.take(MOST_ROWS).turn(scale)
    if test.estimate.has_steps and "status" in cut.columns:
        status = [EXTREME_SCORES.get(word, word) for word in cut.columns["status"]]
        cut = replace(cut, columns={**cut.columns, "status": status})
    filled = [name for name in columns if {*cut.columns.get(name, ())} != {""}]
    return table, list_html_columns(cut, filled, scale)


def _point_to_findings(table: AnalysisTable) -> AnalysisTable:
    """Return the tests with the words of those that are findings left to these."""
    words = {severity.word for severity in Severity}
    rows = zip(table.columns["verdict"], table.columns["found"], strict=True)
    told = ["see the findings above" if verdict in words else found for verdict, found in rows]
    return replace(table, columns={**table.columns, "found": told})


def list_html_columns(
    table: AnalysisTable, names: Sequence[str], scale: Scale | None = None
) -> list[HtmlColumn]:
    """Return columns of a table under the titles and with the digits that readers know."""
    digits = 2 if scale is None else max(0, scale.digits - 1)
    html_columns = []
    for name in names:
        if name in table.columns:
            words = COLUMN_WORDS.get(name, ColumnText(name))
            scaled = name.startswith("scaled_")
            values = [cell.replace("_", " ") if name == "status" else cell
                      for cell in table.columns[name]]  # fmt: skip
            html_columns.append(
                HtmlColumn(words.title, values, digits if scaled else words.digits, words.meaning)
            )
    return html_columns


ITEM_COLUMNS = (
    *("item", "difficulty", "se", "lower", "upper", "scaled_difficulty", "scaled_se"),
    *("displacement", "displacement_se"),
)
FIT_SHOWN = ("conditional_infit", "conditional_outfit", "point_measure", "point_measure_expected")


def _item_table(test: Diagnosis, scale: Scale | None) -> PlainDict:
    table, remarks = test.tables["items"].turn(scale), test.remarks
    known = test.estimate.estimated
    columns = table.columns
    html_columns = list_html_columns(table, ITEM_COLUMNS, scale)
    html_columns[1] = replace(html_columns[1], title=words_for(test.estimate).number)
    if "answers" in columns:
        html_columns.append(HtmlColumn("answers", columns["answers"]))
        html_columns.append(_average_answers(columns))
    html_columns += list_html_columns(table, FIT_SHOWN)
    if len(set(columns["status"])) > 1:
        html_columns += list_html_columns(table, ["status"])
    html_columns += list_html_columns(table, ["remarks"])
    tags = [
        " ".join(["remark"] * bool(one) + ["number" if known[i] else "none"])
        for i, one in enumerate(remarks)
    ]
    kinds = {"remark": "items with a remark"}
    if not known.all():
        kinds |= {"none": "items without a number", "number": "items with a number"}
    return {"columns": html_columns, "kinds": kinds, "tags": tags}


def _average_answers(columns: PlainMapping) -> HtmlColumn:
    """Show which share of the answers was right; with steps the mean score."""
    has_steps = "score" in columns
    times, total = (1, columns["score"]) if has_steps else (100, columns["right"])
    means = [times * r / a if a else None for r, a in zip(total, columns["answers"], strict=True)]
    return HtmlColumn("mean score", means, 2) if has_steps else HtmlColumn("% right", means, 1)


#: A column, its title and, where need be, its digits and what it means.
Shown = tuple[str, str] | tuple[str, str, int] | tuple[str, str, int, str]


def _make_columns(columns: Columns, *shown: Shown) -> list[HtmlColumn]:
    """Return columns by name, each with a title and, where it has them, digits and a meaning."""
    return [HtmlColumn(title, columns[name], *more) for name, title, *more in shown]


def _pair_columns(study: Study | None) -> list[HtmlColumn]:
    if study is None or study.dependence is None or not study.dependence.pairs:
        return []
    names = ("item", "other item", "residual correlation above the mean", "persons")
    columns = zip(names, zip(*study.dependence.pairs[:PAIRS], strict=True), strict=True)
    return [HtmlColumn(name, cells, 2) for name, cells in columns]


def _option_columns(options: Distractors) -> list[HtmlColumn]:
    """Show every option; of very many only those that are flagged."""
    is_long = len(options.item) > OPTIONS
    return show_options(options, options.flagged if is_long else range(len(options.item)))


def show_options(options: Distractors, rows: Sequence[int]) -> list[HtmlColumn]:
    """Return the columns for some of the options."""
    columns = options.to_dict()
    columns = {name: [values[row] for row in rows] for name, values in columns.items()}
    columns["share"] = [100 * share for share in columns["share"]]
    columns["right"] = ["right" if right else "" for right in columns["right"]]
    return _make_columns(
        columns,
        ("item", "item"),
        ("option", "option"),
        ("right", "key"),
        ("chosen", "chosen"),
        ("share", "%", 1, "of those who answered"),
        ("ability", "mean ability", 2, "of those who chose it, in logits"),
        ("point_biserial", "corr.", 2, "of choosing it with ability"),
        ("flag", "remark"),
    )


def _dimension_columns(dimensions: Dimensionality | None) -> list[HtmlColumn]:
    if dimensions is None:
        return []
    return _make_columns(
        dimensions.to_dict(),
        ("component", "component"),
        ("eigenvalue", "worth in items", 2, "eigenvalue"),
        ("expected", "by chance", 2, "mean over simulated answers"),
        ("limit", "95% point", 2, "of simulated answers"),
        ("p_value", "p", 2),
    )


def _end_columns(dimensions: Dimensionality | None) -> list[HtmlColumn]:
    """Show both ends of the first contrast; what lies between says little."""
    if dimensions is None:
        return []
    columns = dimensions.contrast.to_dict()
    if len(dimensions.items) > 2 * PAIRS:
        columns = {name: [*some[:PAIRS], *some[-PAIRS:]] for name, some in columns.items()}
    return _make_columns(columns, *((name, name, 2) for name in ("item", "loading", "difficulty")))


def _computed(estimate: Estimate) -> dict[str, str]:
    done = estimate.solution
    return {
        "program": f"discreet {__version__}",
        **({"model": estimate.model} if estimate.has_steps else {}),
        "method": estimate.method,
        "solver": done.solver,
        # Numbers that were only read, or moved, took no solver.
        **(
            {"iterations": f"{done.iterations:,}", "residual": f"{done.residual:.2g}"}
            if done.iterations
            else {}
        ),
        "Python, numpy": f"{platform.python_version()}, {np.__version__}",
    }


def _notes(estimate: Estimate, study: Study | None) -> list[str]:
    notes = [estimate.choice] if estimate.choice else []
    notes += [*map(str, estimate.warnings), *estimate.solution.notes]
    if study is not None:
        if (number := study.sampled) is not None:
            notes.append(f"abilities, fit and curves are those of {number:,} evenly chosen persons")
        notes += study.notes
    return notes


def write_item_sheets(test: Diagnosis, *, title: str = "Items") -> str:
    """Return a page with a sheet for each item, for those who write items.

    Raises
    ------
    BadUsage
        Without the answers behind the calibration, of which a sheet would say nothing.
    """
    if test.study is None:
        raise BadUsage(
            "item sheets need the answers, and this calibration was written without them. Give the "
            "answers instead"
        )
    numbers, items = tabulate_paper_items(test), range(len(test.estimate.items))
    return write_page(
        "items.html",
        {"title": title, "sheets": [describe_item(test, numbers, index) for index in items]},
        styles=["style.css", "confidential.css", *["steps.css"] * test.estimate.has_steps],
    )


def describe_item(test: Diagnosis, numbers: PaperTable, index: int) -> PlainDict:
    """Return what a sheet shows of an item: numbers, remarks, pictures, and what it goes with."""
    estimate, study = test.estimate, test.study
    item, curve, chosen, partners = estimate.items[index], None, None, list[str]()
    if study is not None:
        pairs = () if study.dependence is None else study.dependence.pairs
        partners = [
            f"{other if first == item else first} ({excess:.2f})"
            for first, other, excess, _ in pairs
            if item in (first, other)
        ]
        if item in study.observed.items:
            curve = observed_curve(estimate, study.observed, index)
        if study.distractors is not None and item in study.distractors.item:
            chosen = study.distractors
    rows = [row for row, name in enumerate(chosen.item) if name == item] if chosen else []
    return {
        "item": item,
        "facts": _list_facts(test, numbers, index),
        "remarks": test.remarks[index],
        "curve": curve and drawings.draw_curve(curve),
        "categories": curve and curve.shares and drawings.draw_categories(curve),
        "chosen": chosen and curve and drawings.draw_options(option_map(chosen, item)),
        "options": show_options(chosen, rows) if chosen else [],
        "groups": _select_rows(test, "groups", item),
        "partners": partners,
    }


def _list_facts(test: Diagnosis, numbers: PaperTable, index: int) -> dict[str, str]:
    """Return the numbers of an item that its writer can use."""
    columns = test.tables["items"].columns
    cells = dict(zip(numbers.heads, numbers.rows[index], strict=True))
    answers = columns["answers"][index] if "answers" in columns else 0
    total = columns["score" if "score" in columns else "right"][index] if answers else 0
    share = {"mean score": f"{total / answers:.2f}"} if "score" in columns and answers else {}
    if answers and not share:
        share = {"answered right": f"{total / answers:.0%}"}
    return {
        "answers": f"{answers:,}",
        **share,
        words_for(test.estimate).number: cells["b"],
        **{name.lower(): cells[name] for name in ("Infit", "Outfit") if name in cells},
        **({"correlation with ability": cells["r"]} if "r" in cells else {}),
    }


def _select_rows(test: Diagnosis, name: str, item: str) -> list[HtmlColumn]:
    """Return the columns of a table for one item; empty where it has no rows."""
    table = test.tables.get(name)
    if table is None:
        return []
    rows = [i for i, cell in enumerate(table.columns["item"]) if cell == item]
    columns = {head: [cells[i] for i in rows] for head, cells in table.columns.items()}
    names = ("group", "focal", "reference", "difference", "se", "ets")
    return list_html_columns(replace(table, columns=columns), names) if rows else []
