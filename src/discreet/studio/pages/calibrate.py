"""Calibrate: choose how, begin, and compare two calibrations."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from discreet.errors import BadUsage
from discreet.html import HtmlColumn, Sheet
from discreet.scales.reported import parse_scale
from discreet.studio.calibration import CalibrationSummary, calibrate
from discreet.studio.forms import load_fields, read_fields, write_fields, write_list
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
from discreet.studio.pages.data import find_look
from discreet.studio.session import CalibrationRun, StudioSession, Work
from discreet.text import count_of, minus

#: What can be said about a calibration.
FIELDS = load_fields("calibration")


def show_form(
    request: Request, problem: str = "", form_values: Mapping[str, str] | None = None
) -> Response:
    """Show what can be chosen, and what was computed."""
    work = work_of(request)
    view = find_look(work)
    usual = {"model": work.options["model"]} if "model" in work.options else {}
    return show(
        "calibrate.html",
        {
            "problem": problem,
            "view": view if view is not None and view.is_ready else None,
            "fields": FIELDS,
            "said": form_values or write_fields(FIELDS, usual),
            "runs": [
                (run, describe(work, run), run.job.state.value) for run in reversed(work.runs)
            ],
            "done": [(run, describe(work, run)) for run in work.runs if run.is_done],
            "earlier": [(_say_settings(one), one) for one in work.earlier] if view else [],
        },
        title=f"Calibrate {work.title}",
        secrecy=Secrecy.CONFIDENTIAL,
        work=work,
        here="calibrate",
        status=400 if problem else 200,
    )


def describe(work: Work, run: CalibrationRun) -> str:
    """Return a calibration in a few words: its number, its settings, and what else is different."""
    names = dict.fromkeys(name for other in work.runs for name in other.options)
    different = {
        name: run.options.get(name, "not stated")
        for name in names
        if any(other.options.get(name) != run.options.get(name) for other in work.runs)
    }
    read = [f"{READ.get(name, name)} {write_list(value)}" for name, value in different.items()]
    return f"{work.runs.index(run) + 1}: {'; '.join([_say_settings(run.settings), *read])}"


#: What a page calls the fields of a reading.
READ = {part.name: part.label.lower() for part in READING} | {
    "reverse": "reversed", "ignore": "left out", "drop_rows": "rows left out",
    "key_row": "row of the key", "group": "groups", "keep": "items", "lowest": "lowest category",
}  # fmt: skip


def _say_settings(settings: Mapping[str, Any]) -> str:
    """Return the settings of a calibration in words."""
    words = [
        part.choices[settings[part.name]] if part.choices else f"scale {settings[part.name]}"
        for part in FIELDS
        if part.name in settings
    ]
    return ", ".join(word.partition(":")[0] for word in words) or "standard settings"


async def begin(request: Request) -> Response:
    """Begin a calibration; the same one a second time leads to the first."""
    work, form = work_of(request), await request.form()
    sent = {name: str(value) for name, value in form.items()}
    try:
        settings = read_fields(FIELDS, sent)
        if "scale" in settings:
            parse_scale(settings["scale"])
        run = _begin(session_of(request), work, settings)
    except BadUsage as error:
        return show_form(request, str(error), {one.name: sent.get(one.name, "") for one in FIELDS})
    return go(f"/report/{work.name}/{run.name}")


def _begin(session: StudioSession, work: Work, settings: Mapping[str, Any]) -> CalibrationRun:
    view = find_look(work)
    if view is None or not view.is_ready or work.reading is None:
        raise BadUsage("These answers have not been read yet. Look at the data first.")
    folder = work.reading.folder

    def start(now: Work) -> dict[str, Any]:
        if _find_same(now, settings):
            return {}
        title = f"Calibration of {now.title}"
        arguments = {"answers": folder / ANSWERS, "title": title, "settings": dict(settings)}
        job = session.jobs.start(title, calibrate, **arguments)
        run = CalibrationRun(job, dict(settings), dict(now.options), view.shown, folder)
        return {"runs": (*now.runs, run)}

    changed = session.change(work.name, start)
    run = _find_same(changed, settings)
    if run is None:
        raise BadUsage("The file was read otherwise meanwhile. Begin again.")
    session.keep(changed)
    return run


def _find_same(work: Work, settings: Mapping[str, Any]) -> CalibrationRun | None:
    """Return the calibration with these settings that runs or is done."""
    useful = (JobState.RUNNING, JobState.DONE)
    return next(
        (
            run
            for run in work.runs
            if run.settings == settings and run.options == work.options and run.job.state in useful
        ),
        None,
    )


def compare(request: Request) -> Response:
    """Show two calibrations side by side."""
    work = work_of(request)
    names = (request.query_params.get("first", ""), request.query_params.get("second", ""))
    pair = [run for name in names if (run := work.find_run(name)) and run.is_done]
    if len(pair) < 2:
        return show_form(request, "Choose two calibrations that are done.")
    summaries: list[CalibrationSummary] = [run.job.outcome.value for run in pair]
    return show(
        "compare.html",
        {
            "pair": [
                (run, describe(work, run), one) for run, one in zip(pair, summaries, strict=True)
            ],
            "columns": (columns := _set_side_by_side(*summaries)),
            "scatter": draw_scatter(columns),
            "same": _write_same(work, pair),
        },
        title="Two calibrations side by side",
        secrecy=Secrecy.CONFIDENTIAL,
        work=work,
        here="calibrate",
    )


def _set_side_by_side(first: CalibrationSummary, second: CalibrationSummary) -> list[HtmlColumn]:
    """Return the items that both have, with both numbers and how far they lie apart."""
    ours, theirs = (summary.estimate.to_dict() for summary in (first, second))
    positions = {name: i for i, name in enumerate(theirs["item"])}
    common = [(i, positions[name]) for i, name in enumerate(ours["item"]) if name in positions]
    return [
        HtmlColumn("item", [ours["item"][i] for i, _ in common]),
        HtmlColumn("first", [ours["difficulty"][i] for i, _ in common], 3),
        HtmlColumn("se", [ours["se"][i] for i, _ in common], 3),
        HtmlColumn("second", [theirs["difficulty"][j] for _, j in common], 3),
        HtmlColumn("se", [theirs["se"][j] for _, j in common], 3),
        HtmlColumn(
            "second less first",
            [theirs["difficulty"][j] - ours["difficulty"][i] for i, j in common],
            3,
        ),
    ]


def draw_scatter(columns: list[HtmlColumn]) -> Sheet | None:
    """Draw the numbers of one calibration against those of the other."""
    names, first, second = columns[0].values, columns[1].values, columns[3].values
    dots = [dot for dot in zip(names, first, second, strict=True) if all(map(isfinite, dot[1:]))]
    if not dots:
        return None
    numbers = [number for dot in dots for number in dot[1:]]
    ends = min(numbers) - 0.2, max(numbers) + 0.2
    sheet = Sheet(
        ends, ends, f"Two calibrations of {count_of(len(dots))}, one against the other; the table "
        "has the numbers", height=420, top=24,
    )  # fmt: skip
    sheet.x_axis("first, in logits")
    sheet.y_axis("second, in logits")
    sheet.line("axis", ends, ends)
    for name, x, y in dots:
        sheet.dot("ring", x, y, tip=minus(f"{name}: {x:.2f} and {y:.2f}"))
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
        code.append(f"answers = {write_call(work.shown, run.shown)}")
        code.append(f"{name} = {_call(run)}")
    first, second = (write_run(work, run) for run in pair)
    return Same(
        "\n".join([*code, COMPARE]),
        f"{first.command}\n{second.command}",
        first.needs_key or second.needs_key,
    )


def _call(run: CalibrationRun) -> str:
    keywords = {name: value for name, value in run.settings.items() if name != "scale"}
    inside = "".join(f", {name}={value!r}" for name, value in keywords.items())
    return f"discreet.fit(answers{inside})"


def write_run(work: Work, run: CalibrationRun) -> Same:
    """Return what does the same as a calibration."""
    view = find_look(work)
    items = view.items if view else []
    code = f"calibration = {_call(run)}\nprint(calibration.summary())\n"
    more = {**run.settings, "out": f"results-{run.name.removeprefix('job-')}"}
    return write_same("fit", work.shown, run.shown, items, more=more, then=code)


ROUTES = (
    Route("/calibrate/{work}", show_form),
    Route("/calibrate/{work}", begin, methods=["POST"]),
    Route("/compare/{work}", compare),
)
