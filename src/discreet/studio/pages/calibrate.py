"""Calibrate: choose how, begin, and compare two calibrations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from discreet.choices import PlainDict, PlainMapping
from discreet.html import HtmlColumn
from discreet.readers.ratings import USEFUL_WORDS
from discreet.report.sheet import Sheet
from discreet.scales.reported import parse_scale
from discreet.studio.calibration import CalibrationSummary, calibrate
from discreet.studio.forms import load_fields, read_fields, taking_form, write_fields, write_list
from discreet.studio.frame import (
    Same,
    Secrecy,
    go,
    session_of,
    show,
    work_of,
    write_call,
    write_same,
)
from discreet.studio.inspecting import ANSWERS
from discreet.studio.inspecting import FIELDS as READING
from discreet.studio.jobs import JobState
from discreet.studio.language import refuse, tell
from discreet.studio.pages.data import find_look, say_kind, say_sizes
from discreet.studio.rating import RATERS, calibrate_ratings
from discreet.studio.session import CalibrationRun, StudioSession, Work
from discreet.text import minus
from discreet.words import mark

#: What can be said about a calibration.
FIELDS = load_fields("calibration")


def show_form(
    request: Request, problem: str = "", form_values: Mapping[str, str] | None = None
) -> Response:
    """Show what can be chosen, and what was computed."""
    work = work_of(request)
    view = find_look(work)
    summary = view.summary if view and view.is_ready else None
    usual = {"model": work.options["model"]} if "model" in work.options else {}
    values = {
        "problem": problem,
        "view": summary and view,
        "sizes": summary and f"{say_sizes(summary)} ({say_kind(summary)})",
        "fields": () if summary and summary.raters else FIELDS,
        "said": {**write_fields(FIELDS, usual), **(form_values or {})},
        "runs": [(run, describe(work, run)) for run in work.runs],
        "earlier": [(_say_settings(one), one) for one in work.earlier] if view else [],
    }
    return show("calibrate.html", values, Secrecy.CONFIDENTIAL, work)


def describe(work: Work, run: CalibrationRun) -> str:
    """Return a calibration in a few words: its number, its settings, and what else is different."""
    names = dict.fromkeys(name for other in work.runs for name in other.options)
    words = [_say_settings(run.settings)]
    for name in names:
        if any(other.options.get(name) != run.options.get(name) for other in work.runs):
            value = run.options.get(name)
            stated = tell("not stated") if value is None else write_list(value)
            words.append(f"{tell.term(READ.get(name, name))}: {stated}")
    return f"{work.runs.index(run) + 1}: {'; '.join(words)}"


#: What a page calls the fields of a reading.
READ = {part.name: part.label for part in READING} | {
    "reverse": mark("reversed"),
    "ignore": mark("left out"),
    "drop_rows": mark("rows left out"),
    "key_row": mark("row of the key"),
    "group": mark("groups"),
    "keep": mark("items"),
    "lowest": mark("lowest category"),
}


def _say_settings(settings: PlainMapping) -> str:
    """Return the settings of a calibration in words."""
    words = [
        tell.term(part.choices[settings[part.name]])
        if part.choices
        else tell("scale {numbers}", numbers=settings[part.name])
        for part in FIELDS
        if part.name in settings
    ]
    return ", ".join(words) or tell("standard settings")


def begin(request: Request, sent: dict[str, str]) -> Response:
    """Begin a calibration; the same one a second time leads to the first."""
    work = work_of(request)
    settings = read_fields(FIELDS, sent)
    if "scale" in settings:
        parse_scale(settings["scale"])
    run = _begin(session_of(request), work, settings)
    return go(f"/report/{work.name}/{run.name}")


def _begin(session: StudioSession, work: Work, settings: PlainMapping) -> CalibrationRun:
    view = find_look(work)
    if view is None or not view.is_ready or work.reading is None:
        raise refuse("These answers have not been read yet. Look at the data first.")
    folder = work.reading.folder

    def start(now: Work) -> PlainDict:
        if _find_same(now, settings):
            return {}
        title, chosen = f"Calibration of {now.title}", dict(settings)
        arguments = {"answers": folder / ANSWERS, "title": title, "settings": chosen}
        task = calibrate_ratings if view.summary and view.summary.raters else calibrate
        job = session.jobs.start(mark("Calibration of {file}"), task, **arguments)
        run = CalibrationRun(job, chosen, dict(now.options), view.shown, folder)
        return {"runs": (*now.runs, run), "jobs": (*now.jobs, job)}

    changed = session.change(work.name, start)
    run = _find_same(changed, settings)
    if run is None:
        raise refuse("The file was read otherwise meanwhile. Begin again.")
    session.keep(changed)
    return run


def _find_same(work: Work, settings: PlainMapping) -> CalibrationRun | None:
    """Return the calibration with these settings that runs or is done."""
    useful = (JobState.RUNNING, JobState.DONE)
    asked = (settings, work.options)
    same = (run for run in work.runs if (run.settings, run.options) == asked)
    return next((run for run in same if run.job.state in useful), None)


def compare(request: Request) -> Response:
    """Show two calibrations side by side."""
    work = work_of(request)
    names = (request.query_params.get("first", ""), request.query_params.get("second", ""))
    pair = [run for name in names if (run := work.find_run(name)) and run.is_done]
    if len(pair) < 2:
        return show_form(request, tell("Choose two calibrations that are done."))
    summaries: list[CalibrationSummary] = [run.job.outcome.value for run in pair]
    columns = _set_side_by_side(*summaries)
    values = {
        "pair": [(run, describe(work, run), one) for run, one in zip(pair, summaries, strict=True)],
        "columns": columns,
        "scatter": draw_scatter(columns),
        "same": _write_same(work, pair),
    }
    return show("compare.html", values, Secrecy.CONFIDENTIAL, work)


def _set_side_by_side(first: CalibrationSummary, second: CalibrationSummary) -> list[HtmlColumn]:
    """Return the items that both have, with both numbers and how far they lie apart."""
    ours, theirs = (summary.estimate.to_dict() for summary in (first, second))
    positions = {name: i for i, name in enumerate(theirs["item"])}
    rows = [
        (name, ours["difficulty"][i], ours["se"][i], theirs["difficulty"][j], theirs["se"][j])
        for i, name in enumerate(ours["item"])
        if (j := positions.get(name)) is not None
    ]
    names, one, one_error, other, other_error = zip(*rows, strict=True) if rows else ((),) * 5
    return [
        HtmlColumn(tell("item"), names),
        HtmlColumn(tell("first"), one),
        HtmlColumn(tell("se"), one_error),
        HtmlColumn(tell("second"), other),
        HtmlColumn(tell("se"), other_error),
        HtmlColumn(tell("second less first"), [b - a for a, b in zip(one, other, strict=True)]),
    ]


def draw_scatter(columns: list[HtmlColumn]) -> Sheet | None:
    """Draw the numbers of one calibration against those of the other."""
    names, first, second = columns[0].values, columns[1].values, columns[3].values
    dots = [dot for dot in zip(names, first, second, strict=True) if all(map(isfinite, dot[1:]))]
    if not dots:
        return None
    numbers = [number for dot in dots for number in dot[1:]]
    ends = min(numbers) - 0.2, max(numbers) + 0.2
    words = tell("Two calibrations, one against the other; the table has the numbers")
    sheet = Sheet(ends, ends, words, height=420, top=24)
    sheet.x_axis(tell("first, in logits"))
    sheet.y_axis(tell("second, in logits"))
    sheet.line("axis", ends, ends)
    for name, x, y in dots:
        sheet.dot("ring", x, y, tip=minus(f"{name}: {x:.2f}; {y:.2f}"))
    return sheet


#: Prints the last column of the page, item by item.
COMPARE = """
differences = dict(zip(second.items, second.difficulty))
for item, difficulty in zip(first.items, first.difficulty):
    if item in differences:
        print(item, f"{differences[item] - difficulty:.3f}", sep="\\t")
"""


def _write_same(work: Work, pair: list[CalibrationRun]) -> Same:
    """Return what gives the numbers of the page: each calibration reads the file in its own way."""
    code = ["import discreet\n"]
    for name, run in zip(("first", "second"), pair, strict=True):
        read = write_call("discreet.read_responses", repr(work.shown), **run.shown)
        code += [f"answers = {read}", f"{name} = {_call(run)}"]
    first, second = (write_run(work, run) for run in pair)
    command = f"{first.command}\n{second.command}"
    return Same("\n".join([*code, COMPARE]), command, first.needs_key or second.needs_key)


def _call(run: CalibrationRun) -> str:
    keywords = {name: value for name, value in run.settings.items() if name != "scale"}
    return write_call("discreet.fit", "answers", **keywords)


def write_run(work: Work, run: CalibrationRun, show: str = "print(calibration.summary())") -> Same:
    """Return what does the same as a calibration, and shows this of it."""
    view = find_look(work)
    code = f"calibration = {_call(run)}\n{show}\n"
    more = {**run.settings, "out": f"results-{run.name.removeprefix('job-')}"}
    return write_same(
        "fit", work.shown, run.shown, view.items if view else [], more=more, then=code
    )


def write_rated(work: Work, run: CalibrationRun) -> Same | None:
    """Return what calibrates a table of single ratings; other tables are turned by hand."""
    raters = run.shown.get(RATERS)
    if not isinstance(raters, str) or run.shown.get("layout") != "long":
        return None
    words = {name: value for name, value in run.shown.items() if name in USEFUL_WORDS}
    read = write_call("discreet.read_ratings", repr(work.shown), facets=[raters], **words)
    code = f"import discreet\n\nratings = {read}\nprint(discreet.fit(ratings).facets)\n"
    return replace(write_same("fit", work.shown, words, [], more={"rater": raters}), python=code)


ROUTES = (
    Route("/calibrate/{work}", show_form),
    Route("/calibrate/{work}", taking_form(begin, show_form), methods=["POST"]),
    Route("/compare/{work}", compare),
)
