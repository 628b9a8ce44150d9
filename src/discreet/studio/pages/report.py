"""Report: the calibration live, items and persons by a click, and files to take away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, nan
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from discreet.answers.responses import Responses
from discreet.atomic import CALIBRATION_FILE, REPORT_FILE, TABLE_FILES, WORKBOOK_FILE
from discreet.html import HtmlColumn
from discreet.items.curves import BIN, observed_curve
from discreet.items.distractors import option_map
from discreet.report.diagnosis import Diagnosis
from discreet.report.drawings import draw_categories, draw_curve, draw_options, draw_wright
from discreet.report.model_findings import Finding, Severity, say_reliability, words_for
from discreet.report.page import SCORE_COLUMNS, SHOWN, list_html_columns, map_persons, show_options
from discreet.report.pictures import summarise_items
from discreet.report.sheet import Sheet
from discreet.results.chances import score_moments
from discreet.results.thresholds import THRESHOLD_COLUMNS
from discreet.studio.calibration import CalibrationSummary
from discreet.studio.forms import read_index
from discreet.studio.frame import Secrecy, run_of, send_bytes, show, show_job, work_of
from discreet.studio.inspecting import ANSWERS, LABELS
from discreet.studio.jobs import JobState, load_kept
from discreet.studio.language import not_found, say_plainly, tell
from discreet.studio.pages.calibrate import describe, write_run
from discreet.studio.session import CalibrationRun
from discreet.tabular import AnalysisTable
from discreet.text import minus
from discreet.words import mark

KINDS = {".html": "text/html", ".csv": "text/csv", ".xlsx": "application/vnd.ms-excel"}
KINDS |= {".json": "application/json"}

PAIR_COLUMNS = ("item", "other", "q3", "excess", "persons")
#: Rows of a table about one item: pairs come in order, the most remarkable first.
MOST_ROWS = 12

#: Titles and flags that the tables of the report bring along.
TERMS = (
    *(mark("person"), mark("score"), mark("answered"), mark("answers"), mark("percent")),
    *(mark("ability"), mark("SE"), mark("scaled"), mark("scaled SE"), mark("95% from"), mark("to")),
    *(mark("difficulty"), mark("location"), mark("infit"), mark("infit t"), mark("outfit")),
    *(mark("outfit t"), mark("corr."), mark("expected"), mark("status"), mark("flag")),
    *(mark("infit (ML)"), mark("outfit (ML)"), mark("at estimated abilities; below 1 is expected")),
    *(
        mark("given the total score; 1 is expected"),
        mark("lowest when the model holds (simulated)"),
    ),
    *(mark("highest when the model holds (simulated)"), mark("infit from"), mark("outfit from")),
    *(mark("unexpected answers"), mark("too predictable"), mark("standard error")),
    *(mark("standardised; beyond 2 hardly chance"), mark("logits; harder is larger")),
    *(mark("of the answer with ability"), mark("% right"), mark("mean score"), mark("remarks")),
    *(mark("what the correlation is by the model"), mark("items with a remark")),
    *(mark("items without a number"), mark("items with a number")),
)


def show_report(request: Request) -> Response:
    """Show progress, then the report of a calibration."""
    work, run = work_of(request), run_of(request)
    asked = {"asked": describe(work, run)}
    if run.job.state is not JobState.DONE:
        values = {**show_job(run.job), **asked}
        return show("running.html", values, Secrecy.CONFIDENTIAL, work, run)
    summary: CalibrationSummary = run.job.outcome.value
    start, findings = f"/report/{work.name}/{run.name}", summary.test.findings
    values = {
        **summary.values,
        "title": tell(run.job.title, file=work.title),
        "layout": "studio/frame.html",
        "start": start,
        **asked,
        "warnings": run.job.outcome.warnings,
        "files": name_files(summary),
        "judgement": judge_test(summary),
        "verdict": "What to know and what to do" if findings else "Nothing wrong was found",
        "findings": [plain_finding(finding) for finding in findings],
        "checked": say_plainly(summary.values["checked"]),
        "columns": translate_heads(summary.values["columns"]),
        "kinds": {tag: tell.term(words) for tag, words in summary.values["kinds"].items()},
        "wide_wright": summary.test.study
        and draw_wright(map_persons(summary.estimate, summary.test.study), wide=True),
        "narrow_wright": summary.values["wright"],
        "links": [f"{start}/items/{number}" for number in range(len(summary.estimate.items))],
        "same": write_run(work, run),
    }
    return show("report.html", values, Secrecy.CONFIDENTIAL, work, run)


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
    reliability = nan if test.study is None else test.study.reliability.reliability
    worst = min((finding.severity for finding in test.findings), default=None)
    words, mood = _say_scale(test), "good"
    if worst is Severity.ALARM:
        title = test.findings[0].title
        words = tell("Not ready to use: {reason}.", reason=f"{title[:1].lower()}{title[1:]}")
        mood = "bad"
    elif worst is Severity.SERIOUS:
        mood = "look"
        words += " " + tell.count(
            len(test.findings),
            "{number} thing to repair or to know.",
            "{number} things to repair or to know.",
        )
    elif worst is not None:
        words += " " + tell.count(
            len(test.findings), "{number} thing to look at.", "{number} things to look at."
        )
    else:
        words += " " + tell("Nothing wrong was found.")
    if isfinite(reliability) and worst is not Severity.ALARM:
        words += " " + tell.term(next(use for limit, use in USES.items() if reliability >= limit))
        mood = "look" if reliability < GOOD_FOR_GROUPS else mood
    numbers = {
        tell("persons"): tell.number(test.estimate.persons or 0),
        tell("items"): tell.number(len(test.estimate.items)),
        tell("reliability"): say_reliability(reliability).partition(" ")[0],
    }
    return Judgement(words, mood, numbers, _say_extremes(test))


def plain_finding(finding: Finding) -> Finding:
    """Return a finding in the words of a page, with what follows from it."""
    return replace(
        finding,
        found=say_plainly(finding.found),
        advice=say_plainly(finding.advice),
        consequences=tuple(map(plain_finding, finding.consequences)),
    )


def _say_scale(test: Diagnosis) -> str:
    tests = test.tables["tests"].columns if "tests" in test.tables else {"name": [], "verdict": []}
    verdicts = dict(zip(tests["name"], tests["verdict"], strict=True))
    holds = verdicts.get("dimensionality") == "holds"
    return tell("Works as one scale.") if holds else tell("Calibrated.")


GOOD_FOR_GROUPS = 0.7
#: What a reliability allows, from which value on.
USES = {
    0.9: mark("Single persons can be compared."),
    0.8: mark("Good for groups, with care for single persons."),
    GOOD_FOR_GROUPS: mark("Good for groups, too coarse for single persons."),
    -9.0: mark("Too coarse to tell persons apart."),
}


def _say_extremes(test: Diagnosis) -> str:
    """Name the extreme items, in words that fit a test or a questionnaire."""
    found = summarise_items(test.estimate)
    extremes = {"low": found.easiest, "high": found.hardest}
    if test.estimate.has_steps and len(set(test.estimate.steps)) == 1:
        return tell("Answered highest: {low}. Answered lowest: {high}.", **extremes)
    return tell("Hardest: {high}. Easiest: {low}.", **extremes)


def name_files(summary: CalibrationSummary) -> dict[str, str]:
    """Return what each file to take away is, by its name."""
    titles = {
        REPORT_FILE: tell("The report as a page"),
        WORKBOOK_FILE: tell("Everything as a workbook"),
        CALIBRATION_FILE: tell("The calibration, to score persons with"),
    }
    titles |= {TABLE_FILES[name]: table.title for name, table in summary.tables.items()}
    return {name: title for name, title in titles.items() if name in summary.files}


def done_run(request: Request) -> tuple[CalibrationRun, CalibrationSummary]:
    """Return a calibration that is done, with what it came to."""
    run = run_of(request)
    if run.job.state is not JobState.DONE:
        raise not_found("This calibration is not done.")
    return run, run.job.outcome.value


def show_item(request: Request) -> Response:
    """Show one item: its curve, its options, its fit, and how groups differ."""
    work, (run, summary) = work_of(request), done_run(request)
    items, start = summary.estimate.items, f"/report/{work.name}/{run.name}"
    number = read_index(request.path_params["number"], len(items))
    if number is None:
        raise not_found("There is no such item.")
    values = {
        "title": items[number],
        "start": start,
        "neighbours": _list_neighbours(items, number, f"{start}/items"),
        "facts": _list_facts(summary, number),
        "remarks": summary.test.remarks[number],
        "figures": list(_draw(summary, number)),
        "tables": list(_list_tables(summary, items[number])),
        "same": write_run(work, run),
    }
    return show("item.html", values, Secrecy.CONFIDENTIAL, work, run)


def _list_neighbours(names: Sequence[str], number: int, start: str) -> list[dict[str, str]]:
    """Return the entries of a list before and after one, each with its name and its address."""
    return [
        {"name": names[n], "address": f"{start}/{n}", "rel": rel}
        for rel, n in (("prev", number - 1), ("next", number + 1))
        if 0 <= n < len(names)
    ]


ITEM_FACTS = (
    *("difficulty", "se", "lower", "upper", "scaled_difficulty", "scaled_se", "answers"),
    *("infit", "outfit", "point_measure", "point_measure_expected", "status"),
)


def _list_facts(summary: CalibrationSummary, number: int) -> dict[str, str]:
    """Return the row of the item in the table of items, as pairs of a title and what it shows."""
    columns = list_html_columns(summary.tables["items"], ITEM_FACTS, summary.scale)
    called = {"difficulty": words_for(summary.estimate).number}
    titles = [tell.term(called.get(column.title, column.title)) for column in columns]
    return {title: column.show(number) for title, column in zip(titles, columns, strict=True)}


def _draw(summary: CalibrationSummary, number: int) -> Iterator[tuple[str, str, Sheet]]:
    """Yield the pictures of an item, each with its title and its caption."""
    test, name = summary.test, summary.estimate.items[number]
    if test.study is None or not test.estimate.estimated[number]:
        return
    curve = observed_curve(summary.estimate, test.study.observed, number)
    words = tell(
        "The line is what the model expects, points are groups of persons of similar ability."
    )
    yield tell("Expected and observed"), words, draw_curve(curve)
    if curve.shares:
        words = tell("How likely each category is against ability.")
        yield tell("Categories"), words, draw_categories(curve)
    chosen = test.study.distractors
    if chosen is not None and name in chosen.item:
        words = tell(
            "Share of each option against ability; ✓ is right, a dashed line attracts abler "
            "persons."
        )
        yield tell("What was chosen"), words, draw_options(option_map(chosen, name))


def _list_tables(summary: CalibrationSummary, item: str) -> Iterator[tuple[str, str, Any]]:
    """Yield the rows of other tables that are about the item."""
    chosen = summary.test.study and summary.test.study.distractors
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
        if table is None:
            continue
        named = [table.columns[name] for name in ("item", "other") if name in table.columns]
        rows = [row for row, names in enumerate(zip(*named, strict=True)) if item in names]
        if rows := rows[:MOST_ROWS]:
            shown = {name: [cells[row] for row in rows] for name, cells in table.columns.items()}
            html_columns = list_html_columns(replace(table, columns=shown), columns, summary.scale)
            yield table.title, table.about, html_columns


def send_file(request: Request) -> Response:
    """Send one of the files of a calibration."""
    run, summary = done_run(request)
    name = request.path_params["name"]
    if name not in summary.files:
        raise not_found("There is no such file.")
    kind = KINDS[f".{name.rpartition('.')[2]}"]
    return send_bytes((run.job.folder / name).read_bytes(), name, kind)


# -- persons ---------------------------------------------------------------------------------


#: Persons on the page; the file has all of them.
MOST_PERSONS = 1000

#: Persons from which on their abilities are drawn.
FEWEST_BARS = 5
#: Standard deviations from which on an answer has a remark.
SURPRISING = 2.0
PERSON_COLUMNS = (*SHOWN["misfits"], "flag")
#: What the filter of the table calls a flag.
FLAGS = {"unexpected answers": "odd", "too predictable": "flat"}
#: What the Python of a page about persons shows.
SCORES = "print(discreet.score(answers, calibration).summary())"


def show_persons(request: Request) -> Response:
    """Show what is known about persons."""
    work, (run, summary) = work_of(request), done_run(request)
    scores = summary.tables.get("raw_scores")
    values = {
        "start": f"/report/{work.name}/{run.name}",
        "files": name_files(summary),
        "scale": summary.scale,
        **_show_table(summary, find_names(run), f"/persons/{work.name}/{run.name}"),
        "scores": scores and (scores, list_html_columns(scores, SCORE_COLUMNS, summary.scale)),
        "same": write_run(work, run, SCORES),
    }
    return show("persons.html", values, Secrecy.CONFIDENTIAL, work, run)


def find_names(run: CalibrationRun) -> list[str]:
    """Return the names of persons, where the file has them beside what tells persons apart."""
    path = run.answers / LABELS
    names: list[str] = load_kept(path) if path.exists() else []
    return names


def _show_table(summary: CalibrationSummary, names: list[str], start: str) -> Mapping[str, Any]:
    table = summary.persons
    if table is None:
        return {"table": None}
    flags = table.columns["flag"]
    counts = {tell.term(flag): tell.number(flags.count(flag)) for flag in FLAGS}
    first_rows = table.take(MOST_PERSONS)
    columns = list_html_columns(first_rows, PERSON_COLUMNS, summary.scale)
    if percent := _list_percent(summary, first_rows):
        place = [column.title for column in columns].index("answered")
        columns.insert(place + 1, HtmlColumn("percent", percent, 0))
    flag = replace(columns[-1], values=[tell.term(word) for word in columns[-1].values])
    columns = translate_heads([*columns[:-1], flag])
    if len(names) == table.rows:
        columns.insert(1, HtmlColumn(tell("name"), names[:MOST_PERSONS]))
    has_pages = summary.test.study is not None and "persons" in summary.tables
    return {
        "table": table,
        "facts": {tell("persons"): tell.number(table.rows), **counts},
        "columns": columns,
        "links": [f"{start}/{n}" for n in range(first_rows.rows)] if has_pages else None,
        "tags": [FLAGS.get(word, "fine") for word in first_rows.columns["flag"]],
        "kinds": {tag: tell.term(flag) for flag, tag in FLAGS.items() if flag in flags},
        "histograms": [draw_histogram(table.columns["ability"], width) for width in (720, 360)],
    }


def translate_heads(columns: Sequence[HtmlColumn]) -> list[HtmlColumn]:
    """Return columns under the titles of the reader's language."""
    titles = [(tell.term(one.title), tell.term(one.meaning)) for one in columns]
    return [
        replace(one, title=title, meaning=meaning)
        for one, (title, meaning) in zip(columns, titles, strict=True)
    ]


def _list_percent(summary: CalibrationSummary, table: AnalysisTable) -> list[float]:
    """Return the percentage of the points that each person could have; of equal items only."""
    steps = set(summary.estimate.steps)
    if len(steps) != 1:
        return []
    (top,) = steps
    pairs = zip(table.columns["score"], table.columns["answered"], strict=True)
    return [100.0 * score / (top * answered) if answered else nan for score, answered in pairs]


def draw_histogram(abilities: Sequence[float], width: int) -> Sheet | None:
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
        description=tell(
            "How many persons have which ability, from {low} to {high} logits; the table has the "
            "numbers",
            low=minus(f"{finite.min():.1f}"),
            high=minus(f"{finite.max():.1f}"),
        ),
        width=width,
        height=240,
        top=24,
    )
    sheet.x_axis(tell("ability in logits"), grid=False)
    sheet.y_axis(tell("persons"))
    for left, right, count in zip(edges.tolist(), edges.tolist()[1:], counts, strict=False):
        if count:
            persons = tell.count(count, "{number} person", "{number} persons")
            sheet.box("box", (left, right), (0, count), minus(f"{persons}: {left:g} … {right:g}"))
    return sheet


def show_person(request: Request) -> Response:
    """Show the answers of one person beside what was expected."""
    work, (run, summary) = work_of(request), done_run(request)
    table, names = summary.tables.get("persons"), find_names(run)
    number = read_index(request.path_params["number"], table.rows if table else 0)
    if number is None or table is None:
        raise not_found("There is no such person.")
    start = f"/persons/{work.name}/{run.name}"
    row = {name: cells[number : number + 1] for name, cells in table.columns.items()}
    columns = list_html_columns(replace(table, columns=row), PERSON_COLUMNS[1:], summary.scale)
    if len(names) != table.rows:
        names = [*map(str, table.columns["person"])]
    shown = {tell.term(one.title): tell.term(one.show(0)) for one in columns if one.show(0)}
    values = {
        "title": names[number],
        "start": start,
        "neighbours": _list_neighbours(names, number, start),
        "has_steps": summary.estimate.has_steps,
        "facts": shown,
        "columns": _expect_answers(summary, run, number, table.columns["ability"][number]),
        "same": write_run(work, run, SCORES),
    }
    return show("person.html", values, Secrecy.CONFIDENTIAL, work, run)


def _expect_answers(
    summary: CalibrationSummary, run: CalibrationRun, number: int, ability: float
) -> list[HtmlColumn]:
    """Return the items from the hardest to the easiest with answer, expectation and remark."""
    responses: Responses = load_kept(run.answers / ANSWERS)
    estimate, (row,) = summary.estimate, responses.rows(number, number + 1)
    answer_of = dict(zip(responses.items, row.tolist(), strict=True))
    moments = score_moments([ability], estimate.thresholds)
    expected, spread = moments.mean[0], np.sqrt(moments.variance[0])
    order = [i for i in np.argsort(-estimate.difficulty) if estimate.estimated[i]]
    names = [estimate.items[i] for i in order]
    answers = [answer_of[name] for name in names]
    surprise = [
        (answer - expected[i]) / spread[i] if answer >= 0 and spread[i] > 0 else 0.0
        for i, answer in zip(order, answers, strict=True)
    ]
    shown = [tell("missing") if value < 0 else str(value) for value in answers]
    return [
        HtmlColumn(tell("item"), names),
        HtmlColumn(tell.term(words_for(estimate).number), estimate.difficulty[order].tolist(), 2),
        HtmlColumn(tell("answer"), shown),
        HtmlColumn(tell("expected"), expected[order].tolist(), 2),
        HtmlColumn(tell("remark"), [_say_surprise(value) for value in surprise]),
    ]


def _say_surprise(value: float) -> str:
    if abs(value) < SURPRISING:
        return ""
    return tell("better than expected") if value > 0 else tell("worse than expected")


ROUTES = (
    Route("/report/{work}/{run}", show_report),
    Route("/report/{work}/{run}/items/{number}", show_item),
    Route("/report/{work}/{run}/files/{name}", send_file),
    Route("/persons/{work}/{run}", show_persons),
    Route("/persons/{work}/{run}/{number}", show_person),
)
