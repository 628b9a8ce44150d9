"""Report: the calibration live, items and persons by a click, and files to take away."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, nan
from typing import Any

import numpy as np
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from discreet.answers.responses import Responses
from discreet.html import HtmlColumn, Sheet
from discreet.items.curves import BIN, observed_curve
from discreet.items.distractors import option_map
from discreet.report.diagnosis import Diagnosis
from discreet.report.drawings import draw_categories, draw_curve, draw_options, draw_wright
from discreet.report.model_findings import Finding, Severity, say_reliability, words_for
from discreet.report.page import SCORE_COLUMNS, SHOWN, list_html_columns, show_options
from discreet.results.thresholds import THRESHOLD_COLUMNS, score_moments
from discreet.scales.reported import Scale
from discreet.studio.calibration import REPORT, WORKBOOK, CalibrationSummary
from discreet.studio.forms import read_index
from discreet.studio.frame import Same, Secrecy, run_of, send_bytes, show, show_job, work_of
from discreet.studio.inspecting import ANSWERS, LABELS
from discreet.studio.jobs import JobState, load_kept
from discreet.studio.pages.calibrate import describe, write_run
from discreet.studio.session import CalibrationRun
from discreet.tabular import AnalysisTable
from discreet.text import count_of, minus

KINDS = {".html": "text/html", ".csv": "text/csv", ".xlsx": "application/vnd.ms-excel"}

PAIR_COLUMNS = ("item", "other", "q3", "excess", "persons")
#: Rows of a table about one item: pairs come in order, the most remarkable first.
MOST_ROWS = 12


def show_report(request: Request) -> Response:
    """Show progress, then the report of a calibration."""
    work, run = work_of(request), run_of(request)
    frame = {"work": work, "run": run, "here": "report", "secrecy": Secrecy.CONFIDENTIAL}
    if run.job.state is not JobState.DONE:
        values = {**show_job(run.job), "asked": describe(work, run)}
        return show("running.html", values, title=run.job.title, **frame)  # type: ignore[arg-type]
    summary: CalibrationSummary = run.job.outcome.value
    start = f"/report/{work.name}/{run.name}"
    values = {
        **summary.values,
        "layout": "studio/frame.html",
        "start": start,
        "asked": describe(work, run),
        "warnings": run.job.outcome.warnings,
        "files": name_files(summary),
        "parts": PARTS,
        "judgement": judge_test(summary),
        "verdict": "What to know and what to do"
        if summary.test.findings
        else "Nothing wrong was found",
        "findings": [plain_finding(finding) for finding in summary.test.findings],
        "checked": plain_words(summary.values["checked"]),
        "wide_wright": summary.test.wright and draw_wright(summary.test.wright, wide=True),
        "narrow_wright": summary.values["wright"],
        "links": [f"{start}/items/{number}" for number in range(len(summary.estimate.items))],
        "same": write_run(work, run),
    }
    return show("report.html", values, title=run.job.title, **frame)  # type: ignore[arg-type]


TO_DO = "What to know and what to do"
#: Blocks of the report's template that the page folds, with what they are called.
PARTS = {
    "all_items": "All items",
    "pictures": "Pictures",
    "tests": "Tests of the model",
    "thresholds": "Thresholds and categories",
    "chosen": "What was chosen",
    "groups": "Differences between groups",
    "pairs": "Dependent pairs",
    "dimensions": "One thing or several",
    "order": "Answers in order",
    "misfits": "Persons with odd answers",
    "scores": "From score to ability",
    "methods": "Methods, for a paper",
    "computed": "How it was computed",
}


@dataclass(frozen=True)
class Judgement:
    """What comes first on a report: a sentence, three numbers, and which items are the extremes."""

    words: str
    mood: str
    numbers: Mapping[str, str]
    extremes: str


def judge_test(summary: CalibrationSummary) -> Judgement:
    """Return the verdict on a test."""
    test = summary.test
    reliability = None if test.statistics is None else test.statistics.reliability
    worst = min((finding.severity for finding in test.findings), default=None)
    count = len(test.findings)
    if worst is Severity.ALARM:
        words, mood = f"Not ready to use: {_lower(test.findings[0].title)}.", "bad"
    elif worst is Severity.SERIOUS:
        words, mood = f"{_say_scale(test)} {count_of(count, 'thing')} to repair or to know.", "look"
    elif worst is not None:
        words, mood = f"{_say_scale(test)} {count_of(count, 'thing')} to look at.", "good"
    else:
        words, mood = f"{_say_scale(test)} Nothing wrong was found.", "good"
    if reliability is not None and worst is not Severity.ALARM:
        words += f" {_say_use(reliability)}"
        mood = "look" if reliability < min(limit for limit in USES if limit > 0) else mood
    numbers = {
        "persons": f"{test.estimate.persons or 0:,}",
        "items": f"{len(test.estimate.items):,}",
        "reliability": say_reliability(reliability).partition(" ")[0],
    }
    return Judgement(words, mood, numbers, _say_extremes(test))


def plain_words(text: str) -> str:
    """Return sentences without brackets that name options of the command line.

    Examples
    --------
    >>> plain_words("No groups were named (--group COL): groups.")
    'No groups were named: groups.'
    """
    return re.sub(r" ?\([^()]*--[^()]*\)", "", text)


def plain_finding(finding: Finding) -> Finding:
    """Return a finding in the words of a page, with what follows from it."""
    return replace(
        finding,
        found=plain_words(finding.found),
        advice=plain_words(finding.advice),
        consequences=tuple(map(plain_finding, finding.consequences)),
    )


def _lower(words: str) -> str:
    return f"{words[:1].lower()}{words[1:]}"


def _say_scale(test: Diagnosis) -> str:
    columns = (
        test.tables["tests"].columns if "tests" in test.tables else {"name": [], "verdict": []}
    )
    verdicts = dict(zip(columns["name"], columns["verdict"], strict=True))
    return "Works as one scale." if verdicts.get("dimensionality") == "holds" else "Calibrated."


#: What a reliability allows, from which value on.
USES = {
    0.9: "Single persons can be compared.",
    0.8: "Good for groups, with care for single persons.",
    0.7: "Good for groups, too coarse for single persons.",
    -9.0: "Too coarse to tell persons apart.",
}


def _say_use(reliability: float) -> str:
    return next(words for limit, words in USES.items() if reliability >= limit)


def _say_extremes(test: Diagnosis) -> str:
    """Name the extreme items, in words that fit a test or a questionnaire."""
    high, low = test.summary.hardest, test.summary.easiest
    is_survey = test.estimate.ladder is not None and len(set(test.estimate.steps)) == 1
    if is_survey:
        return f"Answered highest: {low}. Answered lowest: {high}."
    return f"Hardest: {high}. Easiest: {low}."


def name_files(summary: CalibrationSummary) -> dict[str, str]:
    """Return what each file to take away is, by its name."""
    titles = {f"{name}.confidential.csv": table.title for name, table in summary.tables.items()}
    titles_of_files = {
        WORKBOOK: "Everything as a workbook",
        REPORT: "The report as a page",
    } | titles
    return {name: titles_of_files.get(name, name) for name in summary.files}


def done_run(request: Request) -> tuple[CalibrationRun, CalibrationSummary]:
    """Return a calibration that is done, with what it came to."""
    run = run_of(request)
    if run.job.state is not JobState.DONE:
        raise HTTPException(404, "This calibration is not done.")
    return run, run.job.outcome.value


def show_item(request: Request) -> Response:
    """Show one item: its curve, its options, its fit, and how groups differ."""
    work, (run, summary) = work_of(request), done_run(request)
    items = summary.estimate.items
    number = read_index(request.path_params["number"], len(items))
    if number is None:
        raise HTTPException(404, "There is no such item.")
    start = f"/report/{work.name}/{run.name}"
    return show(
        "item.html",
        {
            "start": start,
            "before": (items[number - 1], f"{start}/items/{number - 1}") if number else None,
            "after": (items[number + 1], f"{start}/items/{number + 1}")
            if number + 1 < len(items)
            else None,
            "facts": _list_facts(summary, number),
            "remarks": summary.test.remarks[number],
            "figures": list(_draw(summary, number)),
            "tables": list(_list_tables(summary, items[number])),
            "same": write_run(work, run),
        },
        title=items[number],
        secrecy=Secrecy.CONFIDENTIAL,
        work=work,
        run=run,
        here="report",
    )


ITEM_FACTS = (
    *("difficulty", "se", "lower", "upper", "scaled_difficulty", "scaled_se", "answers"),
    *("infit", "outfit", "point_measure", "point_measure_expected", "status"),
)


def _list_facts(summary: CalibrationSummary, number: int) -> dict[str, str]:
    """Return the row of the item in the table of items, as pairs of a title and what it shows."""
    columns = list_html_columns(summary.tables["items"], ITEM_FACTS, summary.scale)
    called = {"difficulty": words_for(summary.estimate).number}
    return {called.get(column.title, column.title): column.show(number) for column in columns}


def _draw(summary: CalibrationSummary, number: int) -> Any:
    test = summary.test
    name = summary.estimate.items[number]
    if test.statistics is None or not test.known[number]:
        return
    curve = observed_curve(summary.estimate, test.statistics, number)
    yield "Expected and observed", "The line is what the model expects, points are groups of " \
        "persons of similar ability.", draw_curve(curve)  # fmt: skip
    if curve.shares:
        yield "Categories", "How likely each category is against ability.", draw_categories(curve)
    chosen = test.statistics.distractors
    if chosen is not None and name in chosen.item:
        yield "What was chosen", "Share of each option against ability; ✓ is right, a dashed " \
            "line attracts abler persons.", draw_options(option_map(chosen, name))  # fmt: skip


def _list_tables(summary: CalibrationSummary, item: str) -> Any:
    """Yield the rows of other tables that are about the item."""
    chosen = summary.test.statistics and summary.test.statistics.distractors
    if chosen and item in chosen.item:
        rows = [row for row, name in enumerate(chosen.item) if name == item]
        options = summary.tables["options"]
        yield options.title, options.about, show_options(chosen, rows)[1:]
    for part, columns in (
        ("thresholds", THRESHOLD_COLUMNS[1:]),
        ("categories", SHOWN["categories"][1:]),
        ("groups", SHOWN["groups"][1:]),
        ("pairs", PAIR_COLUMNS),
    ):
        table = summary.tables.get(part)
        if table is not None and (rows := _find_rows(table, item)[:MOST_ROWS]):
            yield table.title, table.about, _show_rows(table, rows, columns, summary.scale)


def _find_rows(table: AnalysisTable, item: str) -> list[int]:
    name_columns = [table.columns[name] for name in ("item", "other") if name in table.columns]
    return [row for row in range(table.rows) if any(names[row] == item for names in name_columns)]


def _show_rows(
    table: AnalysisTable, rows: Sequence[int], names: Sequence[str], scale: Scale | None
) -> list[HtmlColumn]:
    chosen: Mapping[str, list[Any]] = {
        name: [values[row] for row in rows] for name, values in table.columns.items()
    }
    part = AnalysisTable(table.name, table.title, table.about, chosen)
    return list_html_columns(part, names, scale)


def send_file(request: Request) -> Response:
    """Send one of the files of a calibration."""
    run, summary = done_run(request)
    name = request.path_params["name"]
    if name not in summary.files:
        raise HTTPException(404, "There is no such file.")
    kind = KINDS[f".{name.rpartition('.')[2]}"]
    return send_bytes((run.job.folder / name).read_bytes(), name, kind)


# -- persons -----


#: Persons on the page; the file has all of them.
MOST_PERSONS = 1000

#: Persons from which on their abilities are drawn.
FEWEST_BARS = 5
#: Standard deviations from which on an answer has a remark.
SURPRISING = 2.0
PERSON_COLUMNS = (*SHOWN["misfits"], "flag")
#: What the filter of the table calls a flag.
FLAGS = {"unexpected answers": "odd", "too predictable": "flat"}


def show_persons(request: Request) -> Response:
    """Show what is known about persons."""
    work, (run, summary) = work_of(request), done_run(request)
    start = f"/report/{work.name}/{run.name}"
    return show(
        "persons.html",
        {
            "start": start,
            "files": name_files(summary),
            "scale": summary.scale,
            **_show_table(summary, find_names(run), f"/persons/{work.name}/{run.name}"),
            "scores": _show(summary, "raw_scores", SCORE_COLUMNS),
            "facts": _count(summary),
            "same": _write_same(write_run(work, run)),
        },
        title=f"Persons of {work.title}",
        secrecy=Secrecy.CONFIDENTIAL,
        work=work,
        run=run,
        here="persons",
    )


def find_names(run: CalibrationRun) -> list[str]:
    """Return the names of persons, where the file has them beside what tells persons apart."""
    path = run.answers / LABELS
    names: list[str] = load_kept(path) if path.exists() else []
    return names


def _show_table(summary: CalibrationSummary, names: list[str], start: str) -> Mapping[str, Any]:
    table = summary.persons
    if table is None:
        return {"table": None, "columns": [], "tags": [], "kinds": {}, "histogram": None}
    first_rows = table.take(MOST_PERSONS)
    flags = first_rows.columns["flag"]
    used = {FLAGS[flag]: flag for flag in dict.fromkeys(flags) if flag}
    columns = list_html_columns(first_rows, PERSON_COLUMNS, summary.scale)
    if len(names) == table.rows:
        columns.insert(1, HtmlColumn("name", names[:MOST_PERSONS]))
    if percent := _list_percent(summary, first_rows):
        titles = [column.title for column in columns]
        columns.insert(titles.index("answered") + 1, HtmlColumn("percent", percent, 0))
    return {
        "table": table,
        "columns": columns,
        "links": None
        if summary.test.statistics is None or "persons" not in summary.tables
        else [f"{start}/{number}" for number in range(first_rows.rows)],
        "tags": [FLAGS.get(flag, "fine") for flag in flags],
        "kinds": used,
        "histogram": draw_histogram(table.columns["ability"]),
    }


def _list_percent(summary: CalibrationSummary, table: AnalysisTable) -> list[float]:
    """Return the percentage of the points that each person could have; of equal items only."""
    steps = set(summary.estimate.steps)
    if len(steps) != 1:
        return []
    (top,) = steps
    pairs = zip(table.columns["score"], table.columns["answered"], strict=True)
    return [100.0 * score / (top * answered) if answered else nan for score, answered in pairs]


def draw_histogram(abilities: Sequence[float]) -> Sheet | None:
    """Draw how many persons have which ability."""
    finite = np.array([value for value in abilities if value is not None and isfinite(value)])
    if len(finite) < FEWEST_BARS:
        return None
    low, high = np.floor(finite.min() / BIN) * BIN, np.ceil(finite.max() / BIN + 1e-9) * BIN
    edges = np.linspace(low, high, 1 + max(1, round((high - low) / BIN)))
    counts = np.histogram(finite, edges)[0].tolist()
    sheet = Sheet(
        x=(float(low), float(high)),
        y=(0, 1.05 * max(counts)),
        description=f"Abilities of {count_of(len(finite), 'person')} from {finite.min():.1f} to "
        f"{finite.max():.1f} logits; the table has the numbers",
        width=720,
        height=240,
        top=24,
    )
    sheet.x_axis("ability in logits", grid=False)
    sheet.y_axis("persons")
    for left, right, count in zip(edges.tolist(), edges.tolist()[1:], counts, strict=False):
        if count:
            tip = minus(f"{count_of(count, 'person')} from {left:g} to {right:g}")
            sheet.box("box", (left, right), (0, count), tip)
    return sheet


def show_person(request: Request) -> Response:
    """Show the answers of one person beside what was expected."""
    work, (run, summary) = work_of(request), done_run(request)
    table, names = summary.tables.get("persons"), find_names(run)
    number = read_index(request.path_params["number"], table.rows if table else 0)
    if number is None or table is None:
        raise HTTPException(404, "There is no such person.")
    start = f"/persons/{work.name}/{run.name}"
    row = {name: cells[number : number + 1] for name, cells in table.columns.items()}
    columns = list_html_columns(replace(table, columns=row), PERSON_COLUMNS[1:], summary.scale)
    name = names[number] if len(names) == table.rows else str(table.columns["person"][number])
    return show(
        "person.html",
        {
            "start": start,
            "before": f"{start}/{number - 1}" if number else "",
            "after": f"{start}/{number + 1}" if number + 1 < table.rows else "",
            "facts": {column.title: column.show(0) for column in columns if column.show(0)},
            "columns": _expect_answers(summary, run, number, table.columns["ability"][number]),
            "same": _write_same(write_run(work, run)),
        },
        title=name,
        secrecy=Secrecy.CONFIDENTIAL,
        work=work,
        run=run,
        here="persons",
    )


def _expect_answers(
    summary: CalibrationSummary, run: CalibrationRun, number: int, ability: float
) -> list[HtmlColumn]:
    """Return the items from the hardest to the easiest with answer, expectation and remark."""
    responses: Responses = load_kept(run.answers / ANSWERS)
    estimate, answer_of = (
        summary.estimate,
        dict(zip(responses.items, responses.rows(number, number + 1)[0], strict=True)),
    )
    moments = score_moments([ability], estimate.thresholds)
    expected, spread = moments.mean[0], np.sqrt(moments.variance[0])
    order = [i for i in np.argsort(-estimate.difficulty) if estimate.estimated[i]]
    answers = [answer_of[estimate.items[i]] for i in order]
    surprise = [
        (answer - expected[i]) / spread[i] if answer >= 0 and spread[i] > 0 else 0.0
        for i, answer in zip(order, answers, strict=True)
    ]
    return [
        HtmlColumn("item", [estimate.items[i] for i in order]),
        HtmlColumn(words_for(estimate).number, [float(estimate.difficulty[i]) for i in order], 2),
        HtmlColumn("answer", ["missing" if value < 0 else str(value) for value in answers]),
        HtmlColumn("expected", [float(expected[i]) for i in order], 2),
        HtmlColumn("remark", [_say_surprise(value) for value in surprise]),
    ]


def _say_surprise(value: float) -> str:
    if abs(value) < SURPRISING:
        return ""
    return "better than expected" if value > 0 else "worse than expected"


def _count(summary: CalibrationSummary) -> dict[str, str]:
    """Return how many persons there are, and how many have a flag."""
    table = summary.persons
    if table is None:
        return {}
    flags = table.columns["flag"]
    counts = {word: flags.count(word) for word in FLAGS}
    return {"persons": f"{table.rows:,}", **{word: f"{times:,}" for word, times in counts.items()}}


def _show(
    summary: CalibrationSummary, name: str, names: tuple[str, ...]
) -> tuple[AnalysisTable, Any] | None:
    table = summary.tables.get(name)
    return None if table is None else (table, list_html_columns(table, names, summary.scale))


def _write_same(same: Same) -> Same:
    python = same.python.replace(
        "print(calibration.summary())", "print(discreet.score(answers, calibration).summary())"
    )
    return Same(python, same.command, same.needs_key)


ROUTES = (
    Route("/report/{work}/{run}", show_report),
    Route("/report/{work}/{run}/items/{number}", show_item),
    Route("/report/{work}/{run}/files/{name}", send_file),
    Route("/persons/{work}/{run}", show_persons),
    Route("/persons/{work}/{run}/{number}", show_person),
)
