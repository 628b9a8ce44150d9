"""Calibrations: shown and written, all of it confidential, and read again.

What is read may be what ``fit``, ``release`` or ``bank`` wrote, or an item file of Winsteps. Here
are also the reported numbers that ``--scale`` puts beside logits.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import discreet
from discreet.atomic import CALIBRATION_FILE, ESTIMATE_FILE, PRIVACY_FILE
from discreet.choices import PlainDict
from discreet.cli.output import note, print_columns
from discreet.errors import BadUsage
from discreet.hints import check_choice_name
from discreet.names import spell_path
from discreet.tabular import Columns

if TYPE_CHECKING:
    from discreet.answers.responses import Responses
    from discreet.choices import Method
    from discreet.results.estimate import Estimate
    from discreet.scales.reported import Scale, ScaleTarget


def read_wanted(text: str | None) -> Scale | ScaleTarget | None:
    """Return the scale that was typed, or refuse it before anything else is done."""
    if text is None:
        return None
    from discreet.scales.reported import parse_scale

    return parse_scale(text)


def settle_scale(
    target: Scale | ScaleTarget | None, responses: Any, calibration: Any
) -> Scale | None:
    """Return the scale; abilities are estimated where it depends on the persons."""
    if target is None:
        return None
    if not target.needs_persons:
        return target.settle(())

    return target.settle(discreet.score(responses, calibration).ability)


def stored_scale(calibration: Path) -> Scale | None:
    """Return the scale of a calibration of ``fit --out --scale``; other ones have none."""
    from discreet.report.calibration import read_document

    file = calibration / CALIBRATION_FILE if calibration.is_dir() else calibration
    if file.suffix != ".json" or not file.is_file() or is_saved_result(file):
        return None
    return read_document(file).scale


def add_scaled(columns: Columns, scale: Scale | None) -> Columns:
    """Return a table with its columns on the scale too, where there is one."""
    return {**columns} if scale is None else scale.add_to(columns)


def name_scale(scale: Scale | None) -> PlainDict:
    """Return what JSON documents say of the scale: nothing where there is none."""
    return {} if scale is None else {"scale": vars(scale)}


def print_calibration(estimate: Estimate, scale: Scale | None = None) -> None:
    """Print the item table."""
    logits = ("item", "difficulty", "se", "lower", "upper")
    names: tuple[str, ...] = (
        *logits,
        "scaled_difficulty",
        "scaled_se",
        "answers",
        "right",
        "status",
    )
    digits = 3 if scale is None else scale.digits
    columns = add_scaled(estimate.to_dict(), scale)
    if estimate.has_steps:
        columns, names = _show_steps(estimate, columns, names)
    print_columns(columns, names, digits)


def _show_steps(
    estimate: Estimate, columns: Columns, names: tuple[str, ...]
) -> tuple[Columns, tuple[str, ...]]:
    """Call columns as they are called with steps, and add one for each threshold."""
    called = {"difficulty": "location", "right": "score"}
    renamed_columns = {called.get(name, name): values for name, values in columns.items()}
    if estimate.sums is not None:
        renamed_columns["score"] = estimate.sums
    steps = {
        f"threshold_{k}": thresholds.tolist()
        for k, thresholds in enumerate(estimate.thresholds.T, start=1)
    }
    position = names.index("answers")
    renamed = tuple(called.get(name, name) for name in names)
    return renamed_columns | steps, (*renamed[:position], *steps, *renamed[position:])


def check_method(name: str) -> Method:
    """Return a known method; refuse another before a large file is read for nothing."""
    from discreet.models.methods import AUTO, METHODS

    check_choice_name("method", name, (AUTO, *METHODS))
    return cast("Method", name)


def write_calibration(
    folder: Path, estimate: Estimate, responses: Responses | None = None, **heading: Any
) -> list[Path]:
    """Write all tables, the calibration and its report; return where they are.

    The headings are those of :meth:`discreet.report.calibration.CalibrationAnalysis.write`.
    """
    from discreet.report.calibration import analyse_calibration

    analysis = analyse_calibration(estimate, responses)
    files = analysis.write(folder, **heading)
    for text in analysis.notes:
        note(text)
    return files


def title_of(name: str) -> str:
    """Return the headline of a report about answers that go by this name."""
    return f"Calibration of {spell_path(name)}" if name else "Calibration"


def read_calibration(path: Path) -> Any:
    """Return the estimate, the release or the bank at ``path``."""
    if path.is_dir():
        return _read_folder(path)
    from discreet.api.banks import is_bank, read_bank

    if is_bank(path):
        return read_bank(path)
    start = _first_line(path)
    if start.startswith("{"):
        return _read_estimate(path)
    if start.lstrip('; "').upper().startswith(("ENTRY", "ITEM")) and "difficulty" not in start:
        from discreet.readers.winsteps import read_item_file

        return read_item_file(path)
    raise BadUsage(
        f"{path} is no calibration: give {CALIBRATION_FILE} (written by `discreet fit --out`), a "
        "folder with it, a release, an item bank, or an item file (IFILE=) of Winsteps."
    )


def find_calibration(path: Path) -> Any:
    """Return the calibration, the bank or the release, of whatever kind, at a path; or None."""
    if (path / PRIVACY_FILE).is_file() and not (path / CALIBRATION_FILE).exists():
        from discreet.publishing.verification import read_published

        return read_published(path)
    is_known = (path / CALIBRATION_FILE).exists() or (path.is_file() and _is_calibration(path))
    return read_calibration(path) if is_known else None


def _is_calibration(path: Path) -> bool:
    from discreet.api.banks import is_bank

    if path.name == CALIBRATION_FILE or is_bank(path):
        return True
    return path.suffix == ".json" and is_saved_result(path)


def is_saved_result(path: Path) -> bool:
    """Say whether a JSON file was written by the `save` of a result."""
    from discreet.saving import FORMAT

    return f'"{FORMAT}"' in _first_line(path)[:100]


def is_item_file(path: Path) -> bool:
    """Say whether a file begins as an item file of Winsteps does."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.readline(4096).decode("latin-1").lstrip('; "').upper()
    return start.startswith(("ENTRY", "ITEM")) and "MEASURE" in start


def name_calibration(path: Path) -> str:
    """Return a short name: the folder that holds a calibration, or the file without its ending."""
    from discreet.tables.paths import settle_path

    resolved_path = settle_path(path)
    if resolved_path.name == CALIBRATION_FILE:
        resolved_path = resolved_path.parent
    return spell_path(resolved_path.name.split(".")[0] or resolved_path.name)


def read_anchors(path: Path) -> Any:
    """Return anchors: a calibration, or the path of a table with item and difficulty."""
    from discreet.api.banks import is_bank
    from discreet.tables.paths import read_head, sniff

    if path.is_dir() or is_bank(path):
        return read_calibration(path)
    start = _first_line(path)
    is_table = "difficulty" in start and not start.startswith("{")
    is_table = is_table or path.name.lower().removesuffix(".gz").endswith(".csv")
    is_table = is_table or sniff(path, read_head(path)) not in ("text", "jsonl")
    return path if is_table else read_calibration(path)


def _first_line(path: Path) -> str:
    from discreet.tables.paths import explain_read_errors, open_text

    with explain_read_errors(path), open_text(path, "utf-8") as file:
        return str(file.readline(4096).strip())


def _read_folder(folder: Path) -> Any:
    for name in (CALIBRATION_FILE, ESTIMATE_FILE):
        if (folder / name).exists():
            return _read_estimate(folder / name)
    if (folder / PRIVACY_FILE).exists():
        return discreet.read_release(folder)
    raise BadUsage(
        f"{folder} holds neither a calibration ({CALIBRATION_FILE}) nor a release "
        f"({PRIVACY_FILE}); make one with `discreet fit FILE --out DIR` or `discreet release`."
    )


def _read_estimate(path: Path) -> Estimate:
    from discreet.results.estimate import Estimate, Solution

    if is_saved_result(path):
        return Estimate.load(path)
    from discreet.report.calibration import read_document

    estimate = read_document(path).estimate
    solution = Solution("read from a calibration file", 0, 0.0)
    return replace(estimate, solution=solution, warnings=())
