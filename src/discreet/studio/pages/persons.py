"""Persons of a calibration: their points, a page to print for each, and their abilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from discreet.answers.responses import Responses
from discreet.choices import PlainMapping
from discreet.html import HtmlColumn
from discreet.report.model_findings import words_for
from discreet.report.page import SCORE_COLUMNS, SHOWN, list_html_columns
from discreet.report.plain import list_chosen
from discreet.results.chances import score_moments
from discreet.studio.calibration import CalibrationSummary
from discreet.studio.forms import read_index
from discreet.studio.frame import Secrecy, show, work_of
from discreet.studio.inspecting import ANSWERS
from discreet.studio.jobs import load_kept
from discreet.studio.language import not_found, tell
from discreet.studio.pages.calibrate import write_run
from discreet.studio.pages.report import (
    MOST_PERSONS,
    done_run,
    is_test,
    list_neighbours,
    list_people,
    name_files,
    translate_heads,
)
from discreet.studio.session import CalibrationRun

#: Standard deviations from which on an answer has a remark.
SURPRISING = 2.0
PERSON_COLUMNS = (*SHOWN["misfits"], "flag")
#: What the filter of the table calls a flag.
FLAGS = {"unexpected answers": "odd"}
#: What the Python of a page about persons shows.
SCORES = "print(discreet.score(answers, calibration).summary())"
#: Pages of persons that are printed in one go.
MOST_SHEETS = 200


def show_persons(request: Request) -> Response:
    """Show the points of persons, and for specialists their abilities."""
    work, (run, summary) = work_of(request), done_run(request)
    scores, start = summary.tables.get("raw_scores"), f"/persons/{work.name}/{run.name}"
    people = list_people(summary)
    values = {
        "start": f"/report/{work.name}/{run.name}",
        "files": name_files(summary),
        "scale": summary.scale,
        "people": people,
        "count": len(summary.people.names),
        "sheets": f"{start}/print" if len(summary.people.names) <= MOST_SHEETS else "",
        "links": [f"{start}/{n}" for n in range(len(people[0].values))],
        **_show_table(summary),
        "scores": scores and (scores, list_html_columns(scores, SCORE_COLUMNS, summary.scale)),
        "same": write_run(work, run, SCORES),
    }
    return show("persons.html", values, Secrecy.CONFIDENTIAL, work, run)


def _show_table(summary: CalibrationSummary) -> PlainMapping:
    """Return what is shown of abilities."""
    table = summary.persons
    if table is None:
        return {"table": None}
    flags = table.columns["flag"]
    columns = list_html_columns(table.take(MOST_PERSONS), PERSON_COLUMNS, summary.scale)
    if summary.test.study is not None and summary.test.study.sampled is None:
        columns[0] = HtmlColumn("person", summary.people.names[:MOST_PERSONS])
    flag = replace(columns[-1], values=[tell.term(word) for word in columns[-1].values])
    return {
        "table": table,
        "columns": translate_heads([*columns[:-1], flag]),
        "tags": [FLAGS.get(word, "fine") for word in flags[:MOST_PERSONS]],
        "kinds": {tag: tell.term(flag) for flag, tag in FLAGS.items() if flag in flags},
    }


# -- one person ------------------------------------------------------------------------------


@dataclass(frozen=True)
class PersonSheet:
    """The page of one person: who it is, the points, and every answer."""

    name: str
    facts: Mapping[str, str]
    columns: Sequence[HtmlColumn]


def make_sheet(summary: CalibrationSummary, responses: Responses, number: int) -> PersonSheet:
    """Return what is printed about a person: answers as they were given, in order."""
    answers, digits = list_chosen(responses, number), summary.people.digits
    facts = {column.title: column.show(number) for column in list_people(summary, number + 1)[1:]}
    columns = [
        HtmlColumn(tell("question"), [one.item for one in answers]),
        HtmlColumn(tell("answer"), [one.chosen or tell("missing") for one in answers]),
    ]
    if any(one.right for one in answers):
        columns.append(HtmlColumn(tell("right answer"), [one.right for one in answers]))
    if is_test(summary):
        columns.append(HtmlColumn(tell("points"), [one.points for one in answers], digits))
    if max(responses.steps) > 1 and is_test(summary):
        columns.append(HtmlColumn(tell("of"), [one.possible for one in answers], digits))
    return PersonSheet(summary.people.names[number], facts, columns)


def show_person(request: Request) -> Response:
    """Show the answers of one person, and for specialists what was expected."""
    work, (run, summary) = work_of(request), done_run(request)
    number = read_index(request.path_params["number"], len(summary.people.names))
    if number is None:
        raise not_found("There is no such person.")
    start, responses = f"/persons/{work.name}/{run.name}", load_answers(run)
    values = {
        "sheet": make_sheet(summary, responses, number),
        "start": start,
        "neighbours": list_neighbours(summary.people.names, number, start),
        "has_steps": summary.estimate.has_steps,
        "facts": {},
        "columns": [],
        "same": write_run(work, run, SCORES),
    }
    if (table := summary.tables.get("persons")) is not None:
        row = {name: cells[number : number + 1] for name, cells in table.columns.items()}
        columns = list_html_columns(replace(table, columns=row), PERSON_COLUMNS[1:], summary.scale)
        shown = {tell.term(one.title): tell.term(one.show(0)) for one in columns if one.show(0)}
        ability = table.columns["ability"][number]
        values |= {"facts": shown, "columns": _expect(summary, responses, number, ability)}
    return show("person.html", values, Secrecy.CONFIDENTIAL, work, run)


def show_sheets(request: Request) -> Response:
    """Show the pages of all persons, to be printed in one go."""
    work, (run, summary) = work_of(request), done_run(request)
    responses = load_answers(run)
    numbers = range(min(MOST_SHEETS, len(summary.people.names)))
    values = {
        "start": f"/persons/{work.name}/{run.name}",
        "sheets": [make_sheet(summary, responses, number) for number in numbers],
    }
    return show("sheets.html", values, Secrecy.CONFIDENTIAL, work, run)


def load_answers(run: CalibrationRun) -> Responses:
    """Return the answers behind a calibration."""
    responses: Responses = load_kept(run.answers / ANSWERS)
    return responses


def _expect(
    summary: CalibrationSummary, responses: Responses, number: int, ability: float
) -> list[HtmlColumn]:
    """Return the items from the hardest to the easiest with answer, expectation and remark."""
    estimate, (row,) = summary.estimate, responses.rows(number, number + 1)
    answer_of = dict(zip(responses.items, row.tolist(), strict=True))
    moments = score_moments([ability], estimate.thresholds)
    expected, spread = moments.mean[0], np.sqrt(moments.variance[0])
    order = [i for i in np.argsort(-estimate.difficulty) if estimate.estimated[i]]
    answers = [answer_of[estimate.items[i]] for i in order]
    surprise = [
        (answer - expected[i]) / spread[i] if answer >= 0 and spread[i] > 0 else 0.0
        for i, answer in zip(order, answers, strict=True)
    ]
    shown = [tell("missing") if value < 0 else str(value) for value in answers]
    return [
        HtmlColumn(tell("item"), [estimate.items[i] for i in order]),
        HtmlColumn(tell.term(words_for(estimate).number), estimate.difficulty[order].tolist(), 2),
        HtmlColumn(tell("score"), shown),
        HtmlColumn(tell("expected"), expected[order].tolist(), 2),
        HtmlColumn(tell("remark"), [_say_surprise(value) for value in surprise]),
    ]


def _say_surprise(value: float) -> str:
    if abs(value) < SURPRISING:
        return ""
    return tell("better than expected") if value > 0 else tell("worse than expected")


ROUTES = (
    Route("/persons/{work}/{run}", show_persons),
    Route("/persons/{work}/{run}/print", show_sheets),
    Route("/persons/{work}/{run}/{number}", show_person),
)
