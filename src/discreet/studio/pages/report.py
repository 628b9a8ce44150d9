"""Report: what the answers say, the calibration, items by a click, and files to take away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, nan

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from discreet.atomic import CALIBRATION_FILE, REPORT_FILE, TABLE_FILES, WORKBOOK_FILE
from discreet.choices import PlainDict
from discreet.html import HtmlColumn, write_page
from discreet.report.diagnosis import Diagnosis
from discreet.report.drawings import draw_wright
from discreet.report.model_findings import Finding, Severity, check_enough_persons, say_reliability
from discreet.report.page import describe_item, map_persons
from discreet.report.paper import tabulate_paper_items
from discreet.report.pictures import summarise_items
from discreet.report.plain import AnsweredItem
from discreet.studio.calibration import CalibrationSummary
from discreet.studio.forms import read_index
from discreet.studio.frame import Secrecy, run_of, send_bytes, show, show_job, speak_page, work_of
from discreet.studio.jobs import JobState
from discreet.studio.labels import SmallBar, draw_bars, shorten, tell_bars
from discreet.studio.language import not_found, say_plainly, tell
from discreet.studio.messages import say_message
from discreet.studio.pages.calibrate import describe, write_run
from discreet.studio.pages.ratings import list_rated_values
from discreet.studio.rating import RatingSummary
from discreet.studio.session import CalibrationRun, Work
from discreet.words import mark

KINDS = {".html": "text/html", ".csv": "text/csv", ".xlsx": "application/vnd.ms-excel"}
KINDS |= {".json": "application/json"}

#: Persons on the page; the file has all of them.
MOST_PERSONS = 1000


def show_report(request: Request) -> Response:
    """Show progress, then the report of a calibration."""
    work, run = work_of(request), run_of(request)
    if run.job.state is not JobState.DONE:
        values = {**show_job(run.job), "asked": describe(work, run)}
        return show("running.html", values, Secrecy.CONFIDENTIAL, work, run)
    summary: CalibrationSummary | RatingSummary = run.job.outcome.value
    if isinstance(summary, RatingSummary):
        rated = list_rated_values(work, run, summary, tell(run.job.title, file=work.title))
        return show("ratings.html", rated, Secrecy.CONFIDENTIAL, work, run)
    start = f"/report/{work.name}/{run.name}"
    values = _list_values(work, run, summary) | {
        "layout": "studio/frame.html",
        "start": start,
        "files": name_files(summary),
        "warnings": run.job.outcome.warnings,
        "links": [f"{start}/items/{number}" for number in range(len(summary.estimate.items))],
        "same": write_run(work, run),
    }
    return show("report.html", values, Secrecy.CONFIDENTIAL, work, run)


def _list_values(work: Work, run: CalibrationRun, summary: CalibrationSummary) -> PlainDict:
    """Return what the report shows, as a page and as a file."""
    findings, study = list_findings(summary), summary.test.study
    wright = study and map_persons(summary.estimate, study)
    if wright:
        wright = replace(wright, items=tuple(map(label_items(summary).__getitem__, wright.items)))
    return {
        **summary.values,
        "title": tell(run.job.title, file=work.title),
        "start": "",
        "warnings": (),
        "judgement": judge_test(summary),
        "verdict": tell("What to know and what to do"),
        "findings": [plain_finding(finding) for finding in findings],
        "checked": say_plainly(summary.values["checked"]),
        "columns": translate_heads(summary.values["columns"]),
        "kinds": {tag: tell.term(words) for tag, words in summary.values["kinds"].items()},
        "wide_wright": wright and draw_wright(wright, wide=True),
        "narrow_wright": wright and draw_wright(wright),
        "links": None,
        "is_test": is_test(summary),
        "questions": list_questions(summary),
        "most_questions": MOST_QUESTIONS,
        "people": list_people(summary),
        "rest": len(summary.people.names) - MOST_PERSONS,
    }


def write_report(work: Work, run: CalibrationRun, summary: CalibrationSummary) -> bytes:
    """Return the page of a report as a file that needs no studio."""
    steps = ["steps.css"] if summary.estimate.has_steps else []
    styles = ["style.css", "confidential.css", *steps, "studio/studio.css"]
    values = {**_list_values(work, run, summary), "tell": tell, "layout": "page.html"}
    return speak_page(write_page("studio/report.html", values, styles=styles)).encode()


@dataclass(frozen=True)
class QuestionCard:
    """A question of the report: its answers, and what they come to."""

    item: AnsweredItem
    number: int
    label: str
    bars: tuple[SmallBar, ...]
    told: str


#: Questions that are shown before the others are folded.
MOST_QUESTIONS = 60


def is_test(summary: CalibrationSummary) -> bool:
    """Say whether the answers are those of a test, and not of a questionnaire."""
    has_halves = any("." in bar.label for item in summary.items for bar in item.bars[1:2])
    return not summary.estimate.has_steps or len(set(summary.estimate.steps)) > 1 or has_halves


def label_items(summary: CalibrationSummary) -> dict[str, str]:
    """Return the short label of each item, by its name."""
    names = [item.name for item in summary.items]
    return dict(zip(names, shorten(names), strict=True))


def list_questions(summary: CalibrationSummary) -> list[QuestionCard]:
    """Return the questions, those of a test from the hardest to the easiest."""
    labels = label_items(summary)
    cards = [
        QuestionCard(item, number, labels[item.name], draw_bars(item), tell_bars(item))
        for number, item in enumerate(summary.items)
    ]
    return sorted(cards, key=lambda card: card.item.share) if is_test(summary) else cards


def list_people(summary: CalibrationSummary, most: int = MOST_PERSONS) -> list[HtmlColumn]:
    """Return the table of persons: their names, groups and points."""
    people = summary.people
    columns = [HtmlColumn(tell("name"), people.names)]
    columns += [HtmlColumn(name, labels) for name, labels in people.groups.items()]
    columns.append(HtmlColumn(tell("points"), people.points, people.digits))
    if is_test(summary):
        columns.append(HtmlColumn(tell("of"), people.possible, people.digits))
        columns.append(HtmlColumn(tell("per cent"), people.percent, 0))
    return [replace(column, values=column.values[:most]) for column in columns]


@dataclass(frozen=True)
class Judgement:
    """What comes first on a report: a sentence, three numbers, and which items are the extremes."""

    words: str
    mood: str
    numbers: Mapping[str, str]
    extremes: str


def is_class(summary: CalibrationSummary) -> bool:
    """Say whether there are too few persons to test a model, as in one class."""
    return any(True for _ in check_enough_persons(summary.estimate, summary.test.study))


def list_findings(summary: CalibrationSummary) -> list[Finding]:
    """Return what the page says was found; that a class is small is part of its verdict."""
    titles = {one.title for one in check_enough_persons(summary.estimate, summary.test.study)}
    return [finding for finding in summary.test.findings if finding.title not in titles]


def judge_test(summary: CalibrationSummary) -> Judgement:
    """Return the verdict on a test: one sentence, and one colour."""
    test, findings = summary.test, list_findings(summary)
    reliability = nan if test.study is None else test.study.reliability.reliability
    words, mood = _say_verdict(summary, findings, reliability)
    numbers = {
        tell("persons"): tell.number(test.estimate.persons or 0),
        tell("items"): tell.number(len(test.estimate.items)),
    }
    if not is_class(summary):
        numbers[tell("reliability")] = say_reliability(reliability).partition(" ")[0]
        numbers[tell("to look at")] = tell.number(len(findings))
    return Judgement(words, mood, numbers, _say_extremes(summary))


def _say_verdict(
    summary: CalibrationSummary, findings: Sequence[Finding], reliability: float
) -> tuple[str, str]:
    """Return the verdict, and the mood of its colour."""
    if is_class(summary):
        persons = summary.estimate.persons or 0
        words = tell(
            "One group of {count}: enough to see which questions were hard, too few to test a "
            "model.",
            count=tell.count(persons, "{number} person", "{number} persons"),
        )
        return words, "plain"
    worst = min((finding.severity for finding in findings), default=None)
    if worst is not None and worst < Severity.LOOK:
        title = findings[0].title
        if tell.language == "en":
            title = f"{title[:1].lower()}{title[1:]}"
        reason = say_message(tell.language, title)
        if worst is Severity.ALARM:
            return tell("Not ready to use: {reason}.", reason=reason), "bad"
        return tell("Repair or know first: {reason}.", reason=reason), "look"
    if not isfinite(reliability):
        return tell("Calibrated."), "good"
    verdicts = ONE_SCALE if _is_one_scale(summary.test) else USES
    words = tell.term(next(use for limit, use in verdicts.items() if reliability >= limit))
    return words, "look" if reliability < GOOD_FOR_GROUPS else "good"


def plain_finding(finding: Finding) -> Finding:
    """Return a finding in the words of a page, with what follows from it."""
    return replace(
        finding,
        found=say_plainly(finding.found),
        advice=say_plainly(finding.advice),
        consequences=tuple(map(plain_finding, finding.consequences)),
    )


def _is_one_scale(test: Diagnosis) -> bool:
    tests = test.tables["tests"].columns if "tests" in test.tables else {"name": [], "verdict": []}
    verdicts = dict(zip(tests["name"], tests["verdict"], strict=True))
    return verdicts.get("dimensionality") == "holds"


GOOD_FOR_GROUPS = 0.7
#: What a reliability allows, from which value on.
USES = {
    0.9: mark("Single persons can be compared."),
    0.8: mark("Good for groups, with care for single persons."),
    GOOD_FOR_GROUPS: mark("Good for groups, too coarse for single persons."),
    -9.0: mark("Too coarse to tell persons apart."),
}
#: The same of items that were found to measure one thing.
ONE_SCALE = {
    0.9: mark("Works as one scale, and single persons can be compared."),
    0.8: mark("Works as one scale: good for groups, with care for single persons."),
    GOOD_FOR_GROUPS: mark("Works as one scale: good for groups, too coarse for single persons."),
    -9.0: mark("Works as one scale, but is too coarse to tell persons apart."),
}


def _say_extremes(summary: CalibrationSummary) -> str:
    """Name the extreme items, in words that fit a test or a questionnaire."""
    found, labels = summarise_items(summary.estimate), label_items(summary)
    ends = {"low": found.easiest, "high": found.hardest}
    extremes = {end: labels.get(name, name) for end, name in ends.items()}
    if not is_test(summary):
        return tell("Answered highest: {low}. Answered lowest: {high}.", **extremes)
    return tell("Hardest: {high}. Easiest: {low}.", **extremes)


def translate_heads(columns: Sequence[HtmlColumn]) -> list[HtmlColumn]:
    """Return columns under the titles of the reader's language."""
    titles = [(tell.term(one.title), tell.term(one.meaning)) for one in columns]
    return [
        replace(one, title=title, meaning=meaning)
        for one, (title, meaning) in zip(columns, titles, strict=True)
    ]


def name_files(summary: CalibrationSummary) -> dict[str, str]:
    """Return what each file to take away is, by its name."""
    titles = {
        REPORT_FILE: tell("The report as a page"),
        WORKBOOK_FILE: tell("Everything as a workbook"),
        CALIBRATION_FILE: tell("The calibration, to score persons with"),
    }
    titles |= {
        TABLE_FILES[name]: say_message(tell.language, table.title)
        for name, table in summary.tables.items()
    }
    return {name: title for name, title in titles.items() if name in summary.files}


def done_run(request: Request) -> tuple[CalibrationRun, CalibrationSummary]:
    """Return a calibration that is done, with what it came to."""
    run = run_of(request)
    summary = run.job.outcome.value if run.is_done else None
    if not isinstance(summary, CalibrationSummary):
        raise not_found("This calibration is not done.")
    return run, summary


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
        "is_test": is_test(summary),
        "card": next(card for card in list_questions(summary) if card.number == number),
        "neighbours": list_neighbours(items, number, f"{start}/items"),
        "sheet": describe_item(summary.test, tabulate_paper_items(summary.test), number),
        "same": write_run(work, run),
    }
    return show("item.html", values, Secrecy.CONFIDENTIAL, work, run)


def list_neighbours(names: Sequence[str], number: int, start: str) -> list[dict[str, str]]:
    """Return the entries of a list before and after one, each with its name and its address."""
    return [
        {"name": names[n], "address": f"{start}/{n}", "rel": rel}
        for rel, n in (("prev", number - 1), ("next", number + 1))
        if 0 <= n < len(names)
    ]


def send_file(request: Request) -> Response:
    """Send one of the files of a calibration."""
    run = run_of(request)
    summary = run.job.outcome.value if run.is_done else None
    name = request.path_params["name"]
    if summary is None or name not in summary.files:
        raise not_found("There is no such file.")
    kind = KINDS[f".{name.rpartition('.')[2]}"]
    if name == REPORT_FILE and isinstance(summary, CalibrationSummary):
        return send_bytes(write_report(work_of(request), run, summary), name, kind)
    return send_bytes((run.job.folder / name).read_bytes(), name, kind)


ROUTES = (
    Route("/report/{work}/{run}", show_report),
    Route("/report/{work}/{run}/items/{number}", show_item),
    Route("/report/{work}/{run}/files/{name}", send_file),
)
