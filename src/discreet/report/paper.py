"""Tables and texts for a paper, in APA form, as Markdown or Word; and a sheet per item.

In: a diagnosis. Out: tables of items, thresholds, tests and groups with numbers, titles and notes;
a methods paragraph; one page of HTML per item for those who write items. Confidential.

APA form: lines above and below the heading and below the table only, a number and a title above, a
note below; no zero before the point of what cannot exceed 1 (p-values, correlations).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import Any

from discreet.errors import BadUsage, MissingExtra
from discreet.html import write_page
from discreet.items.curves import observed_curve
from discreet.report.curve_figures import draw_categories, draw_curve
from discreet.report.findings.diagnosis import Diagnosis
from discreet.report.findings.items import say_limits
from discreet.report.findings.steps import words_for
from discreet.report.methods import write_methods
from discreet.report.page import list_html_columns, show_options
from discreet.report.summary import Diagnostics
from discreet.results.estimate import Estimate
from discreet.text import markdown_text, minus

WARNING = "Confidential: computed from answers of persons without privacy protection."
STAR = r"\*"
NAMES = {"Item", "Group"}
"""Heads of columns that hold names from the data."""
LETTERS = {"df", "p", "b", "SE", "n", "r", "M"}
"""Heads of columns that are symbols, which APA sets in italics."""


@dataclass(frozen=True)
class PaperTable:
    """One table: its title, heads, cells as text, and the note below."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str


def list_paper_tables(test: Diagnosis) -> list[PaperTable]:
    """Return the tables of a paper, those that there are."""
    tables = [_tabulate_items(test)]
    if "thresholds" in test.tables:
        tables.append(_tabulate_thresholds(test.estimate))
    if test.statistics is not None:
        tables.append(_tabulate_tests(test))
    if "groups" in test.tables:
        tables.append(_tabulate_groups(test))
    return tables


def _tabulate_items(test: Diagnosis) -> PaperTable:
    estimate, diagnostics = test.estimate, test.statistics
    columns = test.tables["items"].columns
    cells: dict[str, list[str]] = {"Item": [str(item) for item in columns["item"]]}
    if "answers" in columns:
        total = columns["score"] if "score" in columns else columns["right"]
        answers = columns["answers"]
        mean = [score / n if n else None for score, n in zip(total, answers, strict=True)]
        cells["n"] = [str(n) for n in answers]
        cells["M"] = [_number(value) for value in mean]
    cells["b"] = [_number(value) for value in columns["difficulty"]]
    cells["SE"] = [_number(value) for value in columns["se"]]
    ends = zip(columns["lower"], columns["upper"], strict=True)
    cells["95% CI"] = [_interval(low, high) for low, high in ends]
    note = f"b = {words_for(estimate).number} in logits; M = mean score."
    if diagnostics is not None:
        for name in ("infit", "outfit"):
            cells[name.capitalize()] = _mark_fit(diagnostics, name)
        cells["r"] = [_number(value, bounded=True) for value in diagnostics.point_measure]
        note += (
            " Infit and outfit are mean squares, r is the correlation of answer and ability. "
            f"* beyond its limit. {say_limits(diagnostics)}"
        )
    return _assemble("Items: Difficulty and Fit", cells, note)


def _mark_fit(diagnostics: Diagnostics, name: str) -> list[str]:
    """Return mean squares with a star where they are beyond their limits."""
    marked = []
    for index, value in enumerate(getattr(diagnostics, name)):
        low, high = diagnostics.find_limits(name, index)
        star = "*" if value is not None and not low <= value <= high else ""
        marked.append(f"{_number(value)}{star}")
    return marked


def _tabulate_thresholds(estimate: Estimate) -> PaperTable:
    steps = estimate.thresholds.shape[1]
    cells = {"Item": [str(item) for item in estimate.items]}
    for step in range(steps):
        pairs = zip(estimate.thresholds[:, step], estimate.threshold_se[:, step], strict=True)
        cells[f"Step {step + 1}"] = [
            f"{_number(value)} ({_number(se)})" if isfinite(value) else "" for value, se in pairs
        ]
    return _assemble("Thresholds of the Items", cells, "Logits, with standard errors in brackets.")


def _tabulate_tests(test: Diagnosis) -> PaperTable:
    columns = test.tables["tests"].columns
    rows = [i for i, verdict in enumerate(columns["verdict"]) if verdict != "not tested"]
    cells = {
        "Test": [columns["name"][i][:1].upper() + columns["name"][i][1:] for i in rows],
        "Statistic": [_number(columns["statistic"][i]) for i in rows],
        "df": ["" if columns["degrees"][i] is None else str(columns["degrees"][i]) for i in rows],
        "p": [_chance(columns["p_value"][i]) for i in rows],
    }
    note = (
        "Andersen, Martin-Löf and steps: chi-squared. Dimensionality: first eigenvalue of the "
        "residuals. Dependence: largest Q3 above the mean. Fit: largest mean square of an item, "
        "share of persons with unexpected answers."
    )
    return _assemble("Tests of the Model", cells, note)


def _tabulate_groups(test: Diagnosis) -> PaperTable:
    columns = test.tables["groups"].columns
    cells = {
        "Item": [str(item) for item in columns["item"]],
        "Group": [
            f"{focal} vs. {reference}"
            for focal, reference in zip(columns["focal"], columns["reference"], strict=True)
        ],
        "Difference": [_number(value) for value in columns["difference"]],
        "SE": [_number(value) for value in columns["se"]],
        "p": [_chance(value) for value in columns["p_value"]],
        "ETS": [str(value) for value in columns["ets"]],
    }
    note = (
        "Difference in logits; positive: harder for the first group than its ability explains. ETS "
        "classes: A negligible, B moderate, C large. p-values are not adjusted for their number."
    )
    return _assemble("Differential Item Functioning", cells, note)


def _assemble(title: str, cells: dict[str, list[str]], note: str) -> PaperTable:
    return PaperTable(title, tuple(cells), tuple(zip(*cells.values(), strict=True)), note)


def _number(value: float | None, *, bounded: bool = False) -> str:
    """Write a number with two digits; one that cannot exceed 1 without its zero."""
    if value is None or not isfinite(value):
        return "–"
    text = f"{value:.2f}"
    return minus(text.replace("0.", ".", 1) if bounded and abs(value) < 1 else text)


def _interval(low: float | None, high: float | None) -> str:
    if low is None or high is None or not isfinite(low + high):
        return "–"
    return f"[{_number(low)}, {_number(high)}]"


def _chance(value: float | None) -> str:
    if value is None or not isfinite(value):
        return "–"
    return "< .001" if value < 0.001 else f"{value:.3f}".replace("0.", ".", 1)


def write_markdown_tables(test: Diagnosis, about: str = "") -> str:
    """Return methods paragraph and tables as Markdown."""
    lines = [f"> {WARNING}", "", "## Methods", "", markdown_text(write_methods(test, about)), ""]
    for number, table in enumerate(list_paper_tables(test), 1):
        heads = [f"*{head}*" if head in LETTERS else head for head in table.heads]
        lines += [f"**Table {number}**", "", f"*{table.title}*", "", _line(heads)]
        lines.append(_line(["---", *["---:"] * (len(heads) - 1)]))
        lines += [_line(_guard_names(table.heads, row)) for row in table.rows]
        lines += ["", f"*Note.* {table.note.replace('*', STAR)}", ""]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _guard_names(heads: Sequence[str], row: Sequence[str]) -> list[str]:
    """Return cells of which names from the data neither end a cell nor begin a mark."""
    return [
        markdown_text(cell).replace("|", "&#124;")
        if head in NAMES
        else cell.replace("<", "&lt;").replace("*", STAR)
        for head, cell in zip(heads, row, strict=True)
    ]


def write_word_tables(path: Path, test: Diagnosis, about: str = "") -> None:
    """Write methods paragraph and tables as a Word document.

    Raises
    ------
    MissingExtra
        Without the extra ``files``.
    """
    if find_spec("docx") is None:
        raise MissingExtra("writing a Word document", "files")
    from docx import Document
    from docx.shared import Pt

    document = Document()
    document.styles["Normal"].font.name = "Times New Roman"
    document.styles["Normal"].font.size = Pt(11)
    document.core_properties.comments = WARNING
    document.add_paragraph().add_run(WARNING).bold = True
    document.add_heading("Methods", level=2)
    document.add_paragraph(write_methods(test, about))
    for number, table in enumerate(list_paper_tables(test), 1):
        document.add_paragraph().add_run(f"Table {number}").bold = True
        document.add_paragraph().add_run(table.title).italic = True
        _add_word_table(document, table)
        note = document.add_paragraph()
        note.add_run("Note. ").italic = True
        note.add_run(table.note)
    document.save(str(path))


def _add_word_table(document: Any, table: PaperTable) -> None:
    """Add a table with lines above and below the heads, and at the end."""
    from docx.enum.text import WD_ALIGN_PARAGRAPH

    grid = document.add_table(rows=1 + len(table.rows), cols=len(table.heads))
    for number, cells in enumerate((table.heads, *table.rows)):
        row = grid.rows[number]
        for column, text in enumerate(cells):
            paragraph = row.cells[column].paragraphs[0]
            paragraph.paragraph_format.space_after = 0
            paragraph.add_run(text).italic = number == 0 and text in LETTERS
            if column:
                paragraph.alignment = WD_ALIGN_PARAGRAPH.RIGHT
    _repeat_heads(grid.rows[0])
    for cell in grid.rows[0].cells:
        _draw_lines(cell, "top", "bottom")
    for cell in grid.rows[-1].cells:
        _draw_lines(cell, "bottom")


def _repeat_heads(row: Any) -> None:
    """Show the heads again on every page."""
    from docx.oxml import OxmlElement

    row._tr.get_or_add_trPr().append(OxmlElement("w:tblHeader"))


def _draw_lines(cell: Any, *sides: str) -> None:
    """Draw lines at some sides of a cell."""
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn

    borders = OxmlElement("w:tcBorders")
    for side in sides:
        line = OxmlElement(f"w:{side}")
        for name, value in (("val", "single"), ("sz", "6"), ("color", "000000")):
            line.set(qn(f"w:{name}"), value)
        borders.append(line)
    cell._tc.get_or_add_tcPr().append(borders)


def write_item_sheets(test: Diagnosis, *, title: str = "Items") -> str:
    """Return a page with a sheet for each item, for those who write items.

    Raises
    ------
    BadUsage
        Without the answers behind the calibration, of which a sheet would say nothing.
    """
    if test.statistics is None:
        raise BadUsage(
            "sheets of items need the answers, and this calibration was written without them"
        )
    return write_page(
        "items.html",
        {"title": title, "sheets": list(_list_sheets(test, test.statistics))},
        styles=["style.css", "confidential.css", *(["steps.css"] if test.thresholds else [])],
    )


def _list_sheets(test: Diagnosis, diagnostics: Diagnostics) -> Iterator[dict[str, Any]]:
    estimate, options = test.estimate, diagnostics.distractors
    for index, item in enumerate(estimate.items):
        curve = None
        if item in diagnostics.curves:
            curve = observed_curve(estimate, diagnostics, index)
        names = () if options is None else options.item
        chosen = [row for row, name in enumerate(names) if name == item]
        yield {
            "item": item,
            "facts": _list_facts(test, index),
            "remarks": test.remarks[index],
            "curve": curve and draw_curve(curve),
            "categories": curve and curve.shares and draw_categories(curve),
            "options": show_options(options, chosen) if options is not None and chosen else [],
            "groups": _select_rows(test, "groups", item),
            "partners": [
                f"{other if first == item else first} ({excess:.2f})"
                for first, other, excess, _ in diagnostics.dependent or ()
                if item in (first, other)
            ],
        }


def _list_facts(test: Diagnosis, index: int) -> dict[str, str]:
    """Return the numbers of an item that its writer can use."""
    columns, table = test.tables["items"].columns, _tabulate_items(test)
    cells = dict(zip(table.heads, table.rows[index], strict=True))
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


def _select_rows(test: Diagnosis, name: str, item: str) -> list[Any]:
    """Return the columns of a table for one item; empty where it has no rows."""
    table = test.tables.get(name)
    if table is None:
        return []
    rows = [i for i, cell in enumerate(table.columns["item"]) if cell == item]
    columns = {head: [cells[i] for i in rows] for head, cells in table.columns.items()}
    names = ("group", "focal", "reference", "difference", "se", "ets")
    return list_html_columns(replace(table, columns=columns), names) if rows else []
