"""Calibrate: choose how, begin, and compare two calibrations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from discreet.errors import BadUsage
from discreet.html import HtmlColumn
from discreet.scales.reported import parse_scale
from discreet.studio.calibration import CalibrationSummary, calibrate
from discreet.studio.forms import Field, read_fields, write_fields
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
from discreet.studio.jobs import JobState
from discreet.studio.look import ANSWERS
from discreet.studio.pages.data import find_look
from discreet.studio.session import CalibrationRun, StudioSession, Work

METHODS = {
    "": "choose for me",
    "conditional": "conditional likelihood (CML): what other programs report",
    "marginal": "marginal likelihood (MML): for adaptive and routed tests",
    "refined": "refined pairs: about as precise, for any size",
    "spectral": "spectral: from pairs alone, the fastest",
}

FIELDS = (
    Field(
        "method",
        "Method",
        "How difficulties are computed. All of them estimate the same numbers; if in doubt, leave "
        "the choice to the program, and the report says what it chose and why.",
        METHODS,
    ),
    Field(
        "model",
        "Model",
        "Partial credit lets every item have its own distances between the categories; a rating "
        "scale gives all items the same ones. Right and wrong answers need no choice.",
        {
            "": "as the answers are",
            "partial-credit": "partial credit",
            "rating-scale": "rating scale",
        },
    ),
    Field(
        "scale",
        "Reported scale",
        "The numbers that your readers know: the mean and the spread that your persons shall have, "
        "such as 500,100. Blank: logits alone.",
    ),
)
"""What can be said about a calibration."""


def show_form(
    request: Request, problem: str = "", form_values: Mapping[str, str] | None = None
) -> Response:
    """Show what can be chosen, and what was computed."""
    work = work_of(request)
    look = find_look(work)
    ready = look is not None and look.summary is not None
    usual = {"model": work.options["model"]} if "model" in work.options else {}
    return show(
        "calibrate.html",
        {
            "problem": problem,
            "ready": ready,
            "found": look,
            "fields": FIELDS,
            "said": form_values or write_fields(FIELDS, usual),
            "runs": [(run, describe(run), run.job.state.value) for run in reversed(work.runs)],
            "done": [(run, describe(run)) for run in work.runs if run.job.state is JobState.DONE],
        },
        title=f"Calibrate {work.title}",
        secrecy=Secrecy.CONFIDENTIAL,
        work=work,
        here="calibrate",
        status=400 if problem else 200,
    )


def describe(run: CalibrationRun) -> str:
    """Return a calibration in a few words: what was asked of it."""
    choices = [*run.settings.values()] or ["as the program chose"]
    return f"{run.name.replace('job-', 'No. ')}: {', '.join(choices)}"


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
    look = find_look(work)
    if look is None or look.summary is None or work.reading is None:
        raise BadUsage("These answers have not been read yet. Look at the data first.")
    answers = work.reading.folder / ANSWERS

    def start(now: Work) -> dict[str, Any]:
        if _find_same(now, settings):
            return {}
        title = f"Calibration of {now.title}"
        arguments = {"answers": answers, "title": title, "settings": dict(settings)}
        job = session.jobs.start(title, calibrate, **arguments)
        return {"runs": (*now.runs, CalibrationRun(job, dict(settings), dict(now.options)))}

    changed = session.change(work.name, start)
    run = _find_same(changed, settings)
    if run is None:
        raise BadUsage("The file was read otherwise meanwhile. Begin again.")
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
    pair = [
        run for name in names if (run := work.find_run(name)) and run.job.state is JobState.DONE
    ]
    if len(pair) < 2:
        return show_form(request, "Choose two calibrations that are done.")
    summaries: list[CalibrationSummary] = [run.job.outcome.value for run in pair]
    return show(
        "compare.html",
        {
            "pair": list(zip(pair, map(describe, pair), summaries, strict=True)),
            "columns": _set_side_by_side(*summaries),
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


COMPARE = """
differences = dict(zip(second.items, second.difficulty))
for item, difficulty in zip(first.items, first.difficulty):
    if item in differences:
        print(item, f"{differences[item] - difficulty:.3f}", sep="\\t")
"""
"""Prints the last column of the page, item by item."""


def _write_same(work: Work, pair: list[CalibrationRun]) -> Same:
    """Return what gives the numbers of the page: each calibration reads the file in its own way."""
    code = ["import discreet\n"]
    for name, run in zip(("first", "second"), pair, strict=True):
        code.append(f"answers = {write_call(work.shown, run.options)}")
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
    look = find_look(work)
    items = [column.name for column in look.columns if column.role == "item"] if look else []
    code = f"calibration = {_call(run)}\nprint(calibration.summary())\n"
    more = {**run.settings, "out": f"results-{run.name.removeprefix('job-')}"}
    return write_same("fit", work.shown, run.options, items, more=more, then=code)


ROUTES = (
    Route("/calibrate/{work}", show_form),
    Route("/calibrate/{work}", begin, methods=["POST"]),
    Route("/compare/{work}", compare),
)
