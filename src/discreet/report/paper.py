"""Tables and texts for a paper, in APA form, as Markdown or Word.

In: a diagnosis. Out: tables of items, thresholds, tests and groups with numbers, titles and notes;
a methods paragraph in the past tense, with the references that it names. Confidential.

APA form: lines above and below the heading and below the table only, a number and a title above, a
note below; no zero before the point of what cannot exceed 1 (p-values, correlations).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from io import BytesIO
from math import isfinite
from pathlib import Path
from typing import Any

from discreet import __version__
from discreet.coding.reading import describe_reading
from discreet.errors import MissingExtra
from discreet.items.study import Study
from discreet.models.methods import METHOD_WORDS, OTHER_WORDS
from discreet.report.diagnosis import Diagnosis
from discreet.report.findings import find_limits, say_limits
from discreet.report.model_findings import say_reliability, words_for
from discreet.results.estimate import Estimate, Status
from discreet.results.limits import DEPENDENT, DEPENDENT_NEGLIGIBLE
from discreet.text import count_of, markdown_text, minus, name_some

WARNING = "Confidential: computed from answers of persons without privacy protection."
STAR = r"\*"
#: Heads of columns that hold names from the data.
NAMES = {"Item", "Group", "Level"}
#: Heads of columns that are symbols, which APA sets in italics.
LETTERS = {"df", "p", "b", "SE", "n", "r", "M"}


@dataclass(frozen=True)
class PaperTable:
    """One table: its title, heads, cells as text, and the note below."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str


def list_paper_tables(test: Diagnosis) -> list[PaperTable]:
    """Return the tables of a paper, those that there are."""
    tables = [tabulate_paper_items(test)]
    if "thresholds" in test.tables:
        tables.append(_tabulate_thresholds(test.estimate))
    if test.study is not None:
        tables.append(_tabulate_tests(test))
    if "groups" in test.tables:
        tables.append(_tabulate_groups(test))
    return tables


def tabulate_paper_items(test: Diagnosis) -> PaperTable:
    """Return the table of the items: difficulty and fit."""
    estimate, study = test.estimate, test.study
    columns = test.tables["items"].columns
    cells: dict[str, list[str]] = {"Item": [str(item) for item in columns["item"]]}
    if "answers" in columns:
        total = columns["score"] if "score" in columns else columns["right"]
        answers = columns["answers"]
        mean = [score / n if n else None for score, n in zip(total, answers, strict=True)]
        cells["n"] = [str(n) for n in answers]
        cells["M"] = [write_number(value) for value in mean]
    cells["b"] = [write_number(value) for value in columns["difficulty"]]
    cells["SE"] = [write_number(value) for value in columns["se"]]
    ends = zip(columns["lower"], columns["upper"], strict=True)
    cells["95% CI"] = [write_interval(low, high) for low, high in ends]
    note = f"b = {words_for(estimate).number} in logits; M = mean score."
    if study is not None and study.is_weighted:
        note += " n and M are those of the sample; all else is weighted."
    if study is not None:
        for name in ("infit", "outfit"):
            cells[name.capitalize()] = _mark_fit(study, name)
        cells["r"] = [write_number(value, bounded=True) for value in study.fit.point_measure]
        note += (
            " Infit and outfit are mean squares given the total score, r is the correlation of "
            f"answer and ability. * beyond its limit. {say_limits(study)}"
        )
    return assemble_table("Items: Difficulty and Fit", cells, note)


def _mark_fit(study: Study, name: str) -> list[str]:
    """Return mean squares with a star where they are beyond their limits."""
    marked = []
    for index, value in enumerate(getattr(study.fit, f"conditional_{name}").tolist()):
        low, high = find_limits(study, name, index)
        star = "*" if value < low or value > high else ""
        marked.append(f"{write_number(value)}{star}")
    return marked


def _tabulate_thresholds(estimate: Estimate) -> PaperTable:
    steps = estimate.thresholds.shape[1]
    cells = {"Item": [str(item) for item in estimate.items]}
    for step in range(steps):
        pairs = zip(estimate.thresholds[:, step], estimate.threshold_se[:, step], strict=True)
        cells[f"Step {step + 1}"] = [
            f"{write_number(value)} ({write_number(se)})" if isfinite(value) else ""
            for value, se in pairs
        ]
    return assemble_table(
        "Thresholds of the Items", cells, "Logits, with standard errors in brackets."
    )


def _tabulate_tests(test: Diagnosis) -> PaperTable:
    columns = test.tables["tests"].columns
    rows = [i for i, verdict in enumerate(columns["verdict"]) if verdict != "not tested"]
    cells = {
        "Test": [columns["name"][i][:1].upper() + columns["name"][i][1:] for i in rows],
        "Statistic": [write_number(columns["statistic"][i]) for i in rows],
        "df": ["" if columns["degrees"][i] is None else str(columns["degrees"][i]) for i in rows],
        "p": [_chance(columns["p_value"][i]) for i in rows],
    }
    is_weighted = test.study is not None and test.study.is_weighted
    design = ", corrected for the sampling design" * is_weighted
    note = (
        f"Andersen, Martin-Löf and steps: chi-squared{design}. Dimensionality: first eigenvalue "
        "of the residuals. Dependence: largest Q3 above the mean. Fit: largest mean square of an "
        "item, share of persons with unexpected answers. Groups: items that differ."
    )
    return assemble_table("Tests of the Model", cells, note)


def _tabulate_groups(test: Diagnosis) -> PaperTable:
    columns = test.tables["groups"].columns
    cells = {
        "Item": [str(item) for item in columns["item"]],
        "Group": [
            f"{focal} vs. {reference}"
            for focal, reference in zip(columns["focal"], columns["reference"], strict=True)
        ],
        "Difference": [write_number(value) for value in columns["difference"]],
        "SE": [write_number(value) for value in columns["se"]],
        "p": [_chance(value) for value in columns["p_value"]],
        "ETS": [str(value) for value in columns["ets"]],
    }
    note = (
        "Difference in logits; positive: harder for the first group than its ability explains. ETS "
        "classes: A negligible, B moderate, C large. p-values are not adjusted for their number."
    )
    return assemble_table("Differential Item Functioning", cells, note)


def assemble_table(title: str, cells: dict[str, list[str]], note: str) -> PaperTable:
    """Make a table of columns."""
    return PaperTable(title, tuple(cells), tuple(zip(*cells.values(), strict=True)), note)


def write_number(value: float | None, *, bounded: bool = False) -> str:
    """Write a number with two digits; one that cannot exceed 1 without its zero."""
    if value is None or not isfinite(value):
        return "–"
    text = f"{value:.2f}".replace("-0.00", "0.00")
    return minus(text.replace("0.", ".", 1) if bounded and abs(value) < 1 else text)


def write_interval(low: float | None, high: float | None) -> str:
    """Write an interval with two digits."""
    if low is None or high is None or not isfinite(low + high):
        return "–"
    return f"[{write_number(low)}, {write_number(high)}]"


def _chance(value: float | None) -> str:
    if value is None or not isfinite(value):
        return "–"
    return "< .001" if value < 0.001 else f"{value:.3f}".replace("0.", ".", 1)


def write_markdown_tables(test: Diagnosis, about: str = "") -> str:
    """Return methods paragraph and tables as Markdown."""
    return write_markdown(write_methods(test, about), list_paper_tables(test))


def write_markdown(methods: str, tables: Sequence[PaperTable]) -> str:
    """Return a methods paragraph and some tables as Markdown."""
    lines = [f"> {WARNING}", "", "## Methods", "", markdown_text(methods), ""]
    for number, table in enumerate(tables, 1):
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
    """Write methods paragraph and tables as a Word document."""
    write_word(path, write_methods(test, about), list_paper_tables(test))


def write_word(path: Path, methods: str, tables: Sequence[PaperTable]) -> None:
    """Write a methods paragraph and some tables as a Word document.

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
    document.add_paragraph(methods)
    for number, table in enumerate(tables, 1):
        document.add_paragraph().add_run(f"Table {number}").bold = True
        document.add_paragraph().add_run(table.title).italic = True
        for heading in document.paragraphs[-2:]:
            heading.paragraph_format.keep_with_next = True
        _add_word_table(document, table)
        note = document.add_paragraph()
        note.add_run("Note. ").italic = True
        note.add_run(table.note)
    content = BytesIO()  # a full disk would leave that package's archive open
    document.save(content)
    path.write_bytes(content.getvalue())


#: Heads of columns that are read as text, at the left.
TEXTS = NAMES | {"Test"}
#: Rows of a table up to which it stays on one page; inches of a page, a letter, beside a column.
ONE_PAGE, PAGE, LETTER, BESIDE = 25, 6.0, 0.075, 0.2


def _add_word_table(document: Any, table: PaperTable) -> None:
    """Add a table with lines above and below the heads, and at the end.

    Columns are as wide as their longest cell. A short table stays on one page; of a long one, the
    last row stays with the note, and the heads are repeated.
    """
    from docx.enum.text import WD_ALIGN_PARAGRAPH
    from docx.oxml import OxmlElement
    from docx.shared import Inches

    lines = (table.heads, *table.rows)
    grid = document.add_table(rows=len(lines), cols=len(table.heads))
    grid.autofit = False
    longest = [max(map(len, column)) for column in zip(*lines, strict=True)]
    inches = [BESIDE + LETTER * letters for letters in longest]
    widths = [Inches(width * min(1.0, PAGE / sum(inches))) for width in inches]
    for column, width in zip(grid.columns, widths, strict=True):
        column.width = width
    for number, cells in enumerate(lines):
        row = grid.rows[number]
        row._tr.get_or_add_trPr().append(OxmlElement("w:cantSplit"))
        for column, text in enumerate(cells):
            row.cells[column].width = widths[column]
            paragraph = row.cells[column].paragraphs[0]
            paragraph.paragraph_format.space_after = 0
            is_kept = len(lines) <= ONE_PAGE or number in (0, len(lines) - 1)
            paragraph.paragraph_format.keep_with_next = is_kept
            paragraph.add_run(text).italic = number == 0 and text in LETTERS
            if table.heads[column] not in TEXTS:
                paragraph.alignment = WD_ALIGN_PARAGRAPH.RIGHT
    grid.rows[0]._tr.get_or_add_trPr().append(OxmlElement("w:tblHeader"))
    for cell in grid.rows[0].cells:
        _draw_lines(cell, "top", "bottom")
    for cell in grid.rows[-1].cells:
        _draw_lines(cell, "bottom")


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


#: Items that a test left out which the text names.
MOST_NAMED = 20

MEAN_ZERO = ", and the items' locations (means of their thresholds) have mean zero"


def write_methods(test: Diagnosis, about: str = "") -> str:
    """Return one paragraph in the past tense, with the references it names."""
    estimate = test.estimate
    words = METHOD_WORDS.get(estimate.method, OTHER_WORDS)
    left_out = int((~estimate.estimated).sum())
    is_weighted = test.study is not None and test.study.is_weighted
    sentences = [
        _describe_data(estimate),
        *([] if estimate.reading is None else describe_reading(estimate.reading)),
        f"{words_for(estimate).model} were estimated by "
        f"{words.how.format(name=estimate.method)}, with discreet {__version__}; they are in "
        f"logits{'' if about else _describe_scale(estimate)}.",
        about,
        "Persons counted by their sampling weights." * is_weighted,
        estimate.se_method or f"{words.errors}.",
        _describe_left_out(estimate) if left_out else "",
    ]
    if test.study is not None:
        sentences.append(_describe_persons(estimate, test.study))
        sentences += _describe_checks(estimate, test.study)
        sentences += _describe_groups(test)
    return " ".join(sentence for sentence in sentences if sentence)


#: Why an item has no difficulty, as a paper would say.
REASONS = {
    Status.NOT_CONNECTED: "not linked to the others",
    Status.ALWAYS_RIGHT: "always in the highest category",
    Status.ALWAYS_WRONG: "always in the lowest category",
    Status.NO_ANSWERS: "without answers",
}


def _describe_left_out(estimate: Estimate) -> str:
    """Name the items without a difficulty, by the reason."""
    parts = []
    for status, reason in REASONS.items():
        names = [
            item for item, one in zip(estimate.items, estimate.status, strict=True) if one == status
        ]
        if names:
            parts.append(f"{name_some(names, MOST_NAMED)} ({reason})")
    count = int((~estimate.estimated).sum())
    listed = f": {'; '.join(parts)}" if parts else ""
    return f"{count} of the {len(estimate.items)} items had no estimable difficulty{listed}."


def _describe_persons(estimate: Estimate, study: Study) -> str:
    """Say how many persons took no part in fit and tests, and why."""
    who = study.abilities
    total = who.measured + who.extreme + who.empty
    parts = [
        (who.extreme, f"had {words_for(estimate).extremes}"),
        (who.empty, "answered no item with a difficulty"),
    ]
    exclusions = [f"{number:,} who {why}" for number, why in parts if number]
    sampled = (
        f" Fit and tests are those of {study.sampled:,} evenly chosen persons."
        if study.sampled is not None
        else ""
    )
    if not exclusions:
        return sampled.strip()
    return f"Of {total:,} persons, fit was assessed without {' and '.join(exclusions)}.{sampled}"


def say_chance(p_value: float) -> str:
    """Write a p-value as papers do."""
    return f"p {'= ' * (p_value >= 0.001)}{_chance(p_value)}"


def _describe_scale(estimate: Estimate) -> str:
    anchors = sum(status == Status.ANCHORED for status in estimate.status)
    if anchors:
        return f" and on the scale of {anchors} anchored items"
    return MEAN_ZERO if estimate.has_steps else " and have mean zero"


def _describe_data(estimate: Estimate) -> str:
    if estimate.answers is None or estimate.persons is None:
        return f"The analysis covers {len(estimate.items)} items."
    answers = int(estimate.answers.sum())
    share = answers / max(estimate.persons * len(estimate.items), 1)
    coverage = "all cells" if share == 1 else f"{100 * share:.1f}% of all cells; others are missing"
    return (
        f"The analysis covers {answers:,} answers of {estimate.persons:,} persons to "
        f"{len(estimate.items):,} items ({coverage})."
    )


#: What the tests of the model are, without and with sampling weights.
TEST_NAMES = {
    False: (
        "Andersen's (1973) likelihood ratio test",
        "Martin-Löf's (1973) test",
        "Partial credit against rating scale",
    ),
    True: (
        "In place of Andersen's (1973) test, a test of equal thresholds that is corrected for the "
        "sampling design (Rao & Scott, 1984)",
        "In place of Martin-Löf's (1973) test, a test of the spread and slope of the parts' scores "
        "given the total, corrected for the design,",
        "A test of equal distances of the steps (rating scale), corrected for the design,",
    ),
}


def _describe_tests(estimate: Estimate, study: Study) -> list[str]:
    """Say what the tests of all items gave, those that were made."""
    andersen, martin_loef, step_models = TEST_NAMES[study.is_weighted]
    split = "" if study.andersen is None else study.andersen.split
    lacked = "a category" if estimate.has_steps else "a right or a wrong answer"
    tests = (
        (
            study.andersen,
            f"{andersen}, with persons split at the {split},",
            f", which lacked {lacked} in one of the groups",
        ),
        (
            study.martin_loef,
            f"{martin_loef} of the easier against the harder half of the items, of persons who "
            "answered all of them,",
            "",
        ),
        (study.step_models, step_models, ""),
    )
    return [
        f"{name} gave chi-squared({test.degrees}) = {test.statistic:.2f}, "
        f"{say_chance(test.p_value)}"
        f"{f', without {name_some(test.excluded, MOST_NAMED)}{why}' if test.excluded else ''}."
        for test, name, why in tests
        if test is not None
    ]


def _describe_groups(test: Diagnosis) -> list[str]:
    """Say how groups were compared, and what was left out of it."""
    if test.study is None or "groups" not in test.tables:
        return []
    columns = test.tables["groups"].columns
    design = ", with errors of the sampling design" if test.study.is_weighted else ""
    sentences = []
    for group in dict.fromkeys(columns["group"]):
        rows = zip(columns["group"], columns["item"], columns["status"], strict=True)
        lacking = {item: why for name, item, why in rows if name == group and why != "compared"}
        listed = "; ".join(f"{item} ({why})" for item, why in list(lacking.items())[:MOST_NAMED])
        without = f", without {listed}" if listed else ""
        sentences.append(
            f"Items were compared between groups by {group} by Wald tests of separate calibrations"
            f"{design}, on anchors chosen by purification{without}."
        )
        own = [note for note in test.study.notes if note.startswith(f"groups by {group}")]
        sentences += [f"{note[:1].upper()}{note[1:]}." for note in own]
    return sentences


def _describe_checks(estimate: Estimate, study: Study) -> list[str]:
    is_weighted, has_steps = study.is_weighted, estimate.has_steps
    mean, sd = minus(f"{study.abilities.mean:.2f}"), f"{study.abilities.sd:.2f}"
    held = "thresholds" if has_steps else "difficulties"
    extremes = words_for(estimate).extremes if has_steps else "everything right or wrong"
    sentences = [
        f"Abilities were estimated by weighted likelihood (Warm, 1989) with the {held} held fixed "
        f"({'weighted ' * is_weighted}mean {mean}, SD {sd}).",
        "Fit was assessed by conditional infit and outfit mean squares, given the total scores "
        f"(Müller, 2020), without persons who had {extremes}"
        f"{'; sums over persons were weighted' * is_weighted}.",
    ]
    sentences += _describe_tests(estimate, study)
    if isfinite(reliability := study.reliability.reliability):
        sentences.append(f"Person separation reliability was {say_reliability(reliability)}.")
    if isfinite(alpha := study.alpha.alpha):
        sentences.append(
            f"Cronbach's alpha{'' if has_steps else ' (KR-20)'} of raw scores was "
            f"{say_reliability(alpha)}."
        )
    if (dimensions := study.dimensionality) is not None:
        sentences.append(
            f"The first component of the standardised residuals had an eigenvalue of "
            f"{dimensions.eigenvalue[0]:.2f}; the 95% point of {dimensions.simulations} sets of "
            f"answers simulated from the fitted model, given the scores, was "
            f"{dimensions.limit[0]:.2f} (parallel analysis; Horn, 1965)."
        )
    if study.limits is not None:
        sentences.append(
            f"Limits of infit, outfit, Q3 and person fit came from {study.limits.replications:,} "
            "sets of answers simulated from the fitted model, given answered items and total "
            "scores (parametric bootstrap), with one error rate of 5% for all of them together, "
            "split evenly between items, pairs and persons."
        )
    if study.dependence is not None:
        least = DEPENDENT if study.limits is None else DEPENDENT_NEGLIGIBLE
        sentences.append(
            f"Residual correlations (Q3; Yen, 1984) exceeded their mean by more than {least:g} "
            f"and more than chance for {count_of(study.dependence.count, 'pair')} of "
            "items."
        )
    return sentences
