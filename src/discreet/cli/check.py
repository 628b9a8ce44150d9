"""``discreet check``: how a table is read, and whether the model holds.

First what the inspection proposes and asks, with the command line that takes the proposal; then,
where the table can be read, tests of the model, what they mean, and what to do.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from discreet.cli.answers import AnswersFile, ReadingOptions, inspect_answers, read_answers
from discreet.cli.calibrations import check_method
from discreet.cli.options import AsJson, Method
from discreet.cli.output import conclude, list_rows, note, print_columns, print_json, say, working
from discreet.errors import AssumedReading, BadResponses

if TYPE_CHECKING:
    from discreet.report.tests import ModelCheck, ModelTest
    from discreet.tables.inspection import Inspection


def check(
    file: AnswersFile,
    *,
    method: Method = "auto",
    as_json: AsJson = False,
    reading: ReadingOptions,
) -> None:
    """Say how a table is read, and test whether the model holds. Confidential."""
    check_method(method)
    inspection = inspect_answers(file, reading)
    looked_at = {} if inspection is None else inspection.to_dict()
    if inspection is not None and not as_json:
        _print_inspection(inspection)
    if inspection is not None and not inspection.is_sure:
        if as_json:
            print_json(looked_at)
        raise typer.Exit(BadResponses.exit_code)
    model_check = _check(file, method, reading)
    change = _compare(file, method, reading, model_check) if reading.merge else None
    if as_json:
        merged = {} if change is None else {"merged": list_rows(change)}
        print_json(looked_at | _describe(model_check) | merged)
    else:
        _print(model_check, change)
    for text in model_check.diagnostics.notes:
        note(f"Note: {text}")
    conclude(model_check.estimate.warnings, choice=model_check.estimate.choice)


def _print_inspection(inspection: Inspection) -> None:
    """Print what is proposed and asked; nothing of a table that is plain."""
    shown = [one for one in inspection.decisions if not one.is_public]
    if not shown and inspection.is_sure:
        return
    say("How the table is read")
    for reason in dict.fromkeys(one.reason for one in shown if one.is_sure):
        say(f"- {reason}")
    for number, finding in enumerate(inspection.questions, start=1):
        say(f"Question {number}: {finding.question}")
        for remedy in finding.answers:
            say(f"  - {remedy.words}")
    say(f"To state all of it: {inspection.command}")
    say()


def _check(file: str, method: str, reading: ReadingOptions) -> ModelCheck:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=AssumedReading)  # it was printed above
        responses = read_answers(file, reading)
    from discreet.models.calibrate import fit
    from discreet.report.tests import check_model

    with working("Testing the model"):
        estimate = fit(responses, method=check_method(method), model=reading.model)
        return check_model(responses, estimate)


def _compare(
    file: str, method: str, reading: ReadingOptions, model_check: ModelCheck
) -> dict[str, list[Any]]:
    """Return the fit before categories were merged beside that afterwards."""
    from discreet.report.tests import compare_fit

    return compare_fit(_check(file, method, replace(reading, merge=None)), model_check).to_dict()


def _describe(model_check: ModelCheck) -> dict[str, Any]:
    return {
        "persons": model_check.estimate.persons,
        "items": len(model_check.estimate.items),
        "method": model_check.estimate.method,
        "choice": model_check.estimate.choice,
        "tests": list_rows(model_check.to_dict()),
        "notes": [*model_check.doubts, *model_check.diagnostics.notes],
    }


def _print(model_check: ModelCheck, change: dict[str, list[Any]] | None) -> None:
    estimate = model_check.estimate
    for doubt in model_check.doubts:
        say(doubt)
        say()
    say(f"{len(estimate.items):,} items, {estimate.persons:,} persons, {estimate.method}")
    say()
    if change is not None:
        say("Before and after merging categories")
        say()
        cells = {name: [*map(_write, change[name])] for name in ("before", "after")}
        print_columns({"what": change["name"], **cells}, ("what", *cells))
        say()
    print_columns(model_check.to_dict(), ("name", "statistic", "degrees", "p_value", "verdict"))
    for test in model_check.tests:
        _explain(test)


def _write(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}" if isinstance(value, float) else f"{value:,}"


def _explain(test: ModelTest) -> None:
    say()
    say(f"{test.name[:1].upper()}{test.name[1:]}: {test.verdict}. {test.asks}")
    say(f"  {test.found}")
    if test.advice:
        say(f"  What to do: {test.advice}")
