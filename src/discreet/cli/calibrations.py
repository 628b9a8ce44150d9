"""Calibrations: shown and written, all of it confidential, and read again.

What is read may be what ``fit``, ``release`` or ``bank`` wrote, or an item file of Winsteps. The
document of a calibration is made here: what ``fit --json`` prints and ``fit --out`` keeps; and the
reported numbers that ``--scale`` puts beside logits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from discreet.atomic import PRIVACY_FILE, staged
from discreet.cli.options import option
from discreet.cli.output import confidential, json_text, list_rows, note, print_columns
from discreet.errors import BadUsage
from discreet.hints import check_choice_name
from discreet.names import spell_path

if TYPE_CHECKING:
    from discreet.answers.responses import Responses
    from discreet.report.diagnosis import Diagnosis
    from discreet.report.evidence import Evidence
    from discreet.report.summary import Diagnostics
    from discreet.report.tables import AnalysisTable
    from discreet.results.estimate import Estimate
    from discreet.scales.reported import Scale, ScaleTarget
    from discreet.types import FloatArray, Method

ScaleText = Annotated[
    str | None,
    option(
        "SCALE",
        "Also on a scale: mean and SD of the persons (500,100), or two points (0=500,1=600).",
        "--scale",
    ),
]


def read_wanted(text: str | None) -> Scale | ScaleTarget | None:
    """Return the scale that was typed, or refuse it before anything else is done."""
    if text is None:
        return None
    from discreet.scales.reported import parse_scale

    return parse_scale(text)


def needs_persons(target: Scale | ScaleTarget | None) -> bool:
    """Say whether abilities must be known before the scale is."""
    if target is None:
        return False
    from discreet.scales.reported import ScaleTarget  # loads SciPy

    return isinstance(target, ScaleTarget)


def settle_scale(
    target: Scale | ScaleTarget | None, responses: Any, calibration: Any
) -> Scale | None:
    """Return the scale; abilities are estimated where it depends on the persons."""
    if target is None:
        return None
    if not needs_persons(target):
        return target.settle(())
    from discreet.persons.scoring import score

    return target.settle(score(responses, calibration).ability)


def stored_scale(calibration: Path) -> Scale | None:
    """Return the scale of a calibration of ``fit --out --scale``; other ones have none."""
    from discreet.report.formats import read_document

    file = calibration / CALIBRATION_FILE if calibration.is_dir() else calibration
    if file.suffix != ".json" or not file.is_file() or is_saved_result(file):
        return None
    return read_document(file).scale


def add_scaled(columns: Mapping[str, list[Any]], scale: Scale | None) -> dict[str, list[Any]]:
    """Return a table with its columns on the scale too, where there is one."""
    return {**columns} if scale is None else scale.add_to(columns)


def name_scale(scale: Scale | None) -> dict[str, Any]:
    """Return what JSON documents say of the scale: nothing where there is none."""
    return {} if scale is None else {"scale": vars(scale)}


#: Items, or thresholds, up to which the covariance is kept: below 200 kB.
COVARIANCE_ITEMS = 100

CONFIDENTIAL = (
    "confidential: computed from persons' answers without privacy protection; "
    "do not publish, use `discreet release` for that"
)


def calibration_document(estimate: Estimate, scale: Scale | None = None) -> dict[str, Any]:
    """Return what ``discreet fit --json`` prints."""
    columns = add_scaled(estimate.to_dict(), scale)
    scaled = ("scaled_difficulty", "scaled_se")
    names = ("item", "difficulty", "se", *scaled, "status", "answers", "right")
    rows = list_rows({name: columns[name] for name in names if name in columns})
    if estimate.has_steps:
        rows = [
            {**row, **thresholds}
            for row, thresholds in zip(rows, list_thresholds(estimate), strict=True)
        ]
    field_names = ("persons", "method", "choice", "model", "se_method")
    about = {name: getattr(estimate, name) for name in field_names}
    return {**about, **name_scale(scale), "items": rows}


def list_thresholds(estimate: Estimate) -> list[dict[str, Any]]:
    """Return the thresholds of every item and their standard errors."""
    rows = zip(estimate.steps, estimate.thresholds, estimate.threshold_se, strict=True)
    return [
        {"thresholds": value[:most].tolist(), "threshold_se": se[:most].tolist()}
        for most, value, se in rows
    ]


def write_document(
    path: Path,
    estimate: Estimate,
    diagnostics: Diagnostics | None,
    heading: dict[str, str],
    scale: Scale | None,
) -> None:
    """Write the file that a report can be made from again, and persons scored with."""
    from discreet import __version__
    from discreet.report.formats import FORMAT, VERSION

    steps = {} if not estimate.has_steps else {
        "threshold_covariance": _keep_covariance(estimate.threshold_covariance)
    }  # fmt: skip
    document = {
        "format": FORMAT,
        "version": VERSION,
        "access": CONFIDENTIAL,
        "discreet": __version__,
        **heading,
        **calibration_document(estimate),
        **name_scale(scale),
        "degrees": estimate.degrees,
        "reading": {},
        "items": _list_items(estimate),
        "covariance": _keep_covariance(estimate.covariance),
        **steps,
        "solution": vars(estimate.solution),
        "warnings": estimate.warnings,
        "warning_kinds": [one.kind for one in estimate.warnings],
        "diagnostics": None if diagnostics is None else diagnostics.to_dict(),
    }
    path.write_text(json_text(document) + "\n", encoding="utf-8")


def _keep_covariance(covariance: FloatArray | None) -> list[list[float]] | None:
    small = covariance is not None and len(covariance) <= COVARIANCE_ITEMS
    return covariance.tolist() if small else None  # type: ignore[union-attr]


def _list_items(estimate: Estimate) -> list[dict[str, Any]]:
    """Return the rows of the items, each with a threshold for every step."""
    parts = (
        calibration_document(estimate)["items"],
        [{"steps": steps} for steps in estimate.steps],
        list_thresholds(estimate),
        _list_ladder(estimate),
    )
    return [{**row, **steps, **own, **more} for row, steps, own, more in zip(*parts, strict=True)]


def _list_ladder(estimate: Estimate) -> list[dict[str, Any]]:
    """Return what else is known of every item with steps: statuses, categories, who is in them."""
    ladder = estimate.ladder
    if not estimate.has_steps:
        return [{}] * len(estimate.items)
    lowest: dict[str, Any] = {"lowest": ladder.lowest} if ladder.lowest else {}
    rows = [{"threshold_status": own, "categories": kept, **lowest}
            for own, kept in zip(ladder.status, ladder.kept, strict=True)]  # fmt: skip
    if ladder.categories is None:
        return rows
    counts = zip(rows, ladder.categories.tolist(), strict=True)
    return [{**row, "category_answers": own[: len(row["categories"])]} for row, own in counts]


# The word is part of the names: a file that leaves its folder still says what it is.
CALIBRATION_FILE = "calibration.confidential.json"
REPORT_FILE = "report.confidential.html"
WORKBOOK_FILE = "analysis.confidential.xlsx"
#: Files of the tables of an analysis, by their names.
TABLE_FILES = {
    name: f"{name}.confidential.csv"
    for name in (
        *("items", "thresholds", "categories", "persons", "persons_sample", "raw_scores"),
        *("tests", "andersen", "wald", "pairs"),
        *("dimensions", "contrast", "groups", "options", "reliability", "labels"),
    )
}
#: All that may be written; which of the tables there are depends on the answers.
CALIBRATION_FILES = (*TABLE_FILES.values(), WORKBOOK_FILE, CALIBRATION_FILE, REPORT_FILE)


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
    estimate: Estimate, columns: dict[str, list[Any]], names: tuple[str, ...]
) -> tuple[dict[str, list[Any]], tuple[str, ...]]:
    """Call columns as they are called with steps, and add one for each threshold."""
    called = {"difficulty": "location", "right": "score"}
    renamed_columns = {called.get(name, name): values for name, values in columns.items()}
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
    folder: Path,
    estimate: Estimate,
    responses: Responses | None = None,
    *,
    title: str = "Calibration",
    about: str = "",
    scale: Scale | None = None,
) -> list[Path]:
    """Write all tables, the calibration and its report; return where they are.

    Parameters
    ----------
    folder
        Where they go.
    estimate
        The calibration.
    responses
        The answers behind it; without them the report says nothing about persons and fit.
    title, about
        The headline of the report, and how its scale came about where that must be said.
    scale
        On which numbers are reported too.
    """
    from discreet.report.diagnosis import diagnose_test
    from discreet.report.formats import write_csv
    from discreet.report.page import write_diagnosis

    evidence = None if responses is None else gather_answers(responses, estimate)
    _note_sample(evidence, estimate)
    test = diagnose_test(estimate, _summarise(evidence))
    tables = [table.turn(scale) for table in _list_tables(test, evidence)]
    files = [TABLE_FILES[table.name] for table in tables]
    workbook = [WORKBOOK_FILE] if _can_write_workbook() else []
    written = [*files, *workbook, CALIBRATION_FILE, REPORT_FILE]
    with staged(folder, written) as stage:
        for table, file in zip(tables, files, strict=True):
            write_csv(stage / file, confidential(table.to_dict()))
        for file in workbook:
            _write_workbook(stage / file, tables)
        heading = {"title": title, "about": about}
        write_document(stage / CALIBRATION_FILE, estimate, test.statistics, heading, scale)
        page = write_diagnosis(test, **heading, scale=scale)
        (stage / REPORT_FILE).write_text(page, encoding="utf-8", newline="\n")
    # A table of an earlier calibration beside the new ones would pass for one of them.
    for stale in {*CALIBRATION_FILES} - {*written}:
        (folder / stale).unlink(missing_ok=True)
    return [folder / file for file in written]


def title_of(name: str) -> str:
    """Return the headline of a report about answers that go by this name."""
    return f"Calibration of {spell_path(name)}" if name else "Calibration"


def _list_tables(test: Diagnosis, evidence: Evidence | None) -> list[AnalysisTable]:
    """Return the tables that get a file, in their order."""
    from discreet.report.tables import list_evidence_tables

    tables = {**test.tables}
    if evidence is not None:
        tables |= {table.name: table for table in list_evidence_tables(evidence)}
    return [tables[name] for name in TABLE_FILES if name in tables and tables[name].rows]


def _note_sample(evidence: Evidence | None, estimate: Estimate) -> None:
    if evidence is None or evidence.sampled is None:
        return
    note(
        f"Note: {TABLE_FILES['persons_sample']} and the report's abilities and fit are those of "
        f"{evidence.sampled:,} evenly chosen of {estimate.persons:,} persons; `discreet score` "
        "writes the abilities of all."
    )


def _can_write_workbook() -> bool:
    from discreet.errors import MissingExtra
    from discreet.report.formats import can_write_workbooks

    if can_write_workbooks():
        return True
    note(f"Note: {MissingExtra(f'{WORKBOOK_FILE}, all tables in one workbook,', 'files')}.")
    return False


def _write_workbook(path: Path, tables: list[AnalysisTable]) -> None:
    from discreet.report.formats import write_workbook

    write_workbook(path, tables, warning=CONFIDENTIAL[:1].upper() + CONFIDENTIAL[1:])


def gather_answers(responses: Responses, estimate: Estimate) -> Evidence | None:
    """Return all analyses of a calibration, or ``None`` where the answers allow none."""
    from discreet.report.evidence import gather_evidence

    try:
        return gather_evidence(responses, estimate)
    except BadUsage as error:
        note(f"Warning: the report is without abilities and fit: {error}")
        return None


def _summarise(evidence: Evidence | None) -> Diagnostics | None:
    from discreet.report.summary import summarise_evidence

    return None if evidence is None else summarise_evidence(evidence)


def diagnose_answers(responses: Responses, estimate: Estimate) -> Diagnostics | None:
    """Return the diagnostics of a calibration, or ``None`` where the answers allow none."""
    return _summarise(gather_answers(responses, estimate))


def read_calibration(path: Path) -> Any:
    """Return the estimate, the release or the bank at ``path``."""
    if path.is_dir():
        return _read_folder(path)
    from discreet.scales.bank import is_bank, read_bank

    if is_bank(path):
        return read_bank(path)
    start = _first_line(path)
    if start.startswith("{"):
        return _read_estimate(path)
    if start.lstrip('; "').upper().startswith(("ENTRY", "ITEM")) and "difficulty" not in start:
        from discreet.report.winsteps import read_item_file

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
    if path.is_dir():
        is_known = (path / CALIBRATION_FILE).exists()
    else:
        is_known = path.is_file() and _is_calibration(path)
    return read_calibration(path) if is_known else None


def _is_calibration(path: Path) -> bool:
    from discreet.scales.bank import is_bank

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
    from discreet.scales.bank import is_bank
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
    if (folder / CALIBRATION_FILE).exists():
        return _read_estimate(folder / CALIBRATION_FILE)
    if (folder / PRIVACY_FILE).exists():
        from discreet.publishing.verification import read_release

        return read_release(folder)
    raise BadUsage(
        f"{folder} holds neither a calibration ({CALIBRATION_FILE}) nor a release "
        f"({PRIVACY_FILE}); make one with `discreet fit FILE --out DIR` or `discreet release`."
    )


def _read_estimate(path: Path) -> Estimate:
    from discreet.results.estimate import Estimate, Solution

    if is_saved_result(path):
        return Estimate.load(path)
    from discreet.report.formats import explaining_damage, read_document

    document = read_document(path)
    with explaining_damage(path):
        estimate = document.read_estimate()
    solution = Solution("read from a calibration file", 0, 0.0)
    return replace(estimate, solution=solution, warnings=())
