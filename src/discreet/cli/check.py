"""``discreet check``: does the model hold? Tests, what they mean, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.cli.answers import AnswersFile, Reading, read_answers
from discreet.cli.calibrations import check_method
from discreet.cli.options import AsJson, Method
from discreet.cli.output import conclude, list_rows, note, print_columns, print_json, say, working

if TYPE_CHECKING:
    from discreet.analysis.check import ModelCheck, ModelTest


def check(
    file: AnswersFile,
    *,
    method: Method = "auto",
    as_json: AsJson = False,
    reading: Reading,
) -> None:
    """Test whether the model holds for these answers. Confidential."""
    check_method(method)
    responses = read_answers(file, reading)
    from discreet.analysis.check import check_model
    from discreet.models.calibrate import fit

    with working("Testing the model"):
        found = check_model(
            responses, fit(responses, method=check_method(method), model=reading.model)
        )
    if as_json:
        print_json(_describe(found))
    else:
        _print(found)
    for text in found.diagnostics.notes:
        note(f"Note: {text}")
    conclude(found.estimate.warnings, choice=found.estimate.choice)


def _describe(found: ModelCheck) -> dict[str, Any]:
    return {
        "persons": found.estimate.persons,
        "items": len(found.estimate.items),
        "method": found.estimate.method,
        "choice": found.estimate.choice,
        "tests": list_rows(found.to_dict()),
        "notes": list(found.diagnostics.notes),
    }


def _print(found: ModelCheck) -> None:
    estimate = found.estimate
    say(f"{len(estimate.items):,} items, {estimate.persons:,} persons, {estimate.method}")
    say()
    print_columns(found.to_dict(), ("name", "statistic", "degrees", "p_value", "verdict"))
    for test in found.tests:
        _explain(test)


def _explain(test: ModelTest) -> None:
    say()
    say(f"{test.name[:1].upper()}{test.name[1:]}: {test.verdict}. {test.asks}")
    say(f"  {test.found}")
    if test.advice:
        say(f"  What to do: {test.advice}")
