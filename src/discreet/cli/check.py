"""``discreet check``: does the model hold? Tests, what they mean, and what to do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from discreet.cli.answers import AnswersFile, ReadingOptions, read_answers
from discreet.cli.calibrations import check_method
from discreet.cli.options import AsJson, Method
from discreet.cli.output import conclude, list_rows, note, print_columns, print_json, say, working

if TYPE_CHECKING:
    from discreet.report.tests import ModelCheck, ModelTest


def check(
    file: AnswersFile,
    *,
    method: Method = "auto",
    as_json: AsJson = False,
    reading: ReadingOptions,
) -> None:
    """Test whether the model holds for these answers. Confidential."""
    check_method(method)
    found = _check(file, method, reading)
    change = _compare(file, method, reading, found) if reading.merge else None
    if as_json:
        print_json(_describe(found) | ({} if change is None else {"merged": list_rows(change)}))
    else:
        _print(found, change)
    for text in found.diagnostics.notes:
        note(f"Note: {text}")
    conclude(found.estimate.warnings, choice=found.estimate.choice)


def _check(file: str, method: str, reading: ReadingOptions) -> ModelCheck:
    responses = read_answers(file, reading)
    from discreet.models.calibrate import fit
    from discreet.report.tests import check_model

    with working("Testing the model"):
        estimate = fit(responses, method=check_method(method), model=reading.model)
        return check_model(responses, estimate)


def _compare(
    file: str, method: str, reading: ReadingOptions, found: ModelCheck
) -> dict[str, list[Any]]:
    """Return the fit before categories were merged beside that afterwards."""
    from discreet.report.before_after import compare_fit

    return compare_fit(_check(file, method, replace(reading, merge=None)), found).to_dict()


def _describe(found: ModelCheck) -> dict[str, Any]:
    return {
        "persons": found.estimate.persons,
        "items": len(found.estimate.items),
        "method": found.estimate.method,
        "choice": found.estimate.choice,
        "tests": list_rows(found.to_dict()),
        "notes": [*found.doubts, *found.diagnostics.notes],
    }


def _print(found: ModelCheck, change: dict[str, list[Any]] | None) -> None:
    estimate = found.estimate
    for doubt in found.doubts:
        say(doubt)
        say()
    say(f"{len(estimate.items):,} items, {estimate.persons:,} persons, {estimate.method}")
    say()
    if change is not None:
        say("Before and after merging categories")
        say()
        shown = {name: [*map(_write, change[name])] for name in ("before", "after")}
        print_columns({"what": change["name"], **shown}, ("what", *shown))
        say()
    print_columns(found.to_dict(), ("name", "statistic", "degrees", "p_value", "verdict"))
    for test in found.tests:
        _explain(test)


def _write(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}" if isinstance(value, float) else f"{value:,}"


def _explain(test: ModelTest) -> None:
    say()
    say(f"{test.name[:1].upper()}{test.name[1:]}: {test.verdict}. {test.asks}")
    say(f"  {test.found}")
    if test.advice:
        say(f"  What to do: {test.advice}")
