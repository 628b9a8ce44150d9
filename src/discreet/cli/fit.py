"""``discreet fit``: difficulties without privacy. ``discreet result report``: a page to read.

The page is made from answers, from a calibration that ``fit`` wrote, or from a release.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from discreet.atomic import PRIVACY_FILE, staged, write_text
from discreet.cli.answers import (
    AnswersFile,
    Limits,
    ReadingOptions,
    WeightOptions,
    name_answers,
    open_answers,
    read_answers,
)
from discreet.cli.calibrations import (
    CALIBRATION_FILE,
    CALIBRATION_FILES,
    REPORT_FILE,
    ScaleText,
    calibration_document,
    check_method,
    diagnose_answers,
    needs_persons,
    print_calibration,
    read_anchors,
    read_wanted,
    settle_scale,
    title_of,
    write_calibration,
)
from discreet.cli.options import AsJson, Force, Method, OutFolder, Title, argument, flag, option
from discreet.cli.output import (
    check_writable,
    conclude,
    list_rows,
    note,
    note_choice,
    print_columns,
    print_json,
    say,
    working,
)
from discreet.cli.raters import RaterOptions, RatingPlaces, fit_ratings
from discreet.errors import BadUsage

if TYPE_CHECKING:
    from discreet.report.diagnosis import Diagnosis
    from discreet.report.summary import Diagnostics
    from discreet.results.estimate import Estimate
    from discreet.scales.reported import Scale, ScaleTarget


PUBLIC_FILE = "report.html"
PAPER_FILES = {"word": "tables.confidential.docx", "markdown": "tables.confidential.md"}
SHEETS_FILE = "item_sheets.confidential.html"

Regularisation = Annotated[
    float,
    option(
        "A",
        "Add A persons to both directions of every compared pair. Pulls items together.",
        min=0.0,
    ),
]


def fit(
    file: AnswersFile,
    *,
    method: Method = "auto",
    regularisation: Regularisation = 0.0,
    anchors: Annotated[
        Path | None,
        option(
            "FILE",
            "Hold these difficulties: a CSV with item and difficulty, a calibration or a bank.",
        ),
    ] = None,
    scale: ScaleText = None,
    title: Title = None,
    out: OutFolder = None,
    force: Force = False,
    as_json: AsJson = False,
    raters: RaterOptions,
    weights: WeightOptions,
    reading: ReadingOptions,
) -> None:
    """Estimate item difficulties from answers. The results are confidential."""
    target = read_wanted(scale)
    if raters.facets:
        if anchors is not None or scale is not None or regularisation != 0 or weights.stated:
            raise BadUsage(
                "--anchors, --scale, --regularisation and --weight are not for ratings with "
                "--rater or --facet; leave them out."
            )
        name = title or f"Ratings: {name_answers(file)}"
        places = RatingPlaces(out, name, force, as_json)
        fit_ratings(file, raters, reading, method=method, places=places)
        return
    check_writable(out, CALIBRATION_FILES, force=force)
    if title is not None and out is None:
        raise BadUsage("--title is the headline of the report, which --out writes; add --out DIR.")
    check_method(method)
    # Diagnostics, anchors and abilities need all answers in memory; difficulties alone do not.
    has_design = bool(weights.stated)
    alone = out is None and anchors is None and not (has_design or needs_persons(target))
    if has_design:
        reading = replace(reading, group=[*(reading.group or []), *weights.columns])
    limits = Limits() if alone else Limits(engine="memory")
    with open_answers(file, reading, limits, "Estimating difficulties") as answers:
        from discreet.counts import PairCounts
        from discreet.models.calibrate import fit as calibrate

        responses: Any = answers
        estimate = calibrate(
            responses,
            method=check_method(method),
            model=reading.model,
            regularisation=regularisation,
            anchors=None if anchors is None else read_anchors(anchors),
            weight=weights.weight,
            strata=weights.strata,
            cluster=weights.cluster,
            replicates=weights.replicates,
            replication=weights.replication,
        )
        turned = settle_scale(target, responses, estimate)
    written = []
    if out is not None:
        with working("Writing the report"):
            title = title or title_of(name_answers(file))
            # Fit and abilities beside the difficulties would be those of the sample.
            lacks_persons = isinstance(responses, PairCounts) or has_design
            full_responses = None if lacks_persons else responses
            written = write_calibration(out, estimate, full_responses, title=title, scale=turned)
    if as_json:
        held = {} if anchors is None else {"anchors": list_rows(estimate.anchors_to_dict())}
        print_json(calibration_document(estimate, turned) | held)
    else:
        _print(estimate, turned)
    conclude(estimate.warnings, written, choice=estimate.choice)


def _print(estimate: Estimate, scale: Scale | None) -> None:
    model = f", {estimate.model}" if estimate.has_steps else ""
    say(f"{len(estimate.items):,} items, {estimate.persons:,} persons, {estimate.method}{model}")
    if scale is not None:
        say(f"Scale: {scale}")
    say()
    print_calibration(estimate, scale)
    if estimate.displacement is not None:
        say()
        say("Anchors: how far each would move if it were free")
        say()
        print_columns(
            estimate.anchors_to_dict(), ("item", "anchor", "displacement", "se", "reason")
        )


def report(
    source: Annotated[
        str,
        argument(
            "DIR_OR_FILE",
            "A release, a folder of `fit --out`, or answers (which are calibrated first).",
        ),
    ],
    *,
    method: Method = "auto",
    out: Annotated[
        Path | None,
        option(
            "DIR",
            "Where the page goes: by default the given folder, for answers the current one.",
        ),
    ] = None,
    tables: Annotated[
        Literal["word", "markdown"] | None,
        flag("Also write tables and methods for a paper, in APA form."),
    ] = None,
    item_sheets: Annotated[
        bool, flag("Also write a page with a sheet per item, for item writers.", "--item-sheets")
    ] = False,
    scale: ScaleText = None,
    title: Title = None,
    force: Force = False,
    reading: ReadingOptions,
) -> None:
    """Write the HTML report: public for a release, confidential for a calibration."""
    target = read_wanted(scale)
    check_method(method)
    path = Path(source)
    if path.is_dir() and (path / PRIVACY_FILE).exists():
        if scale is not None:
            raise BadUsage(
                "--scale belongs to a calibration or to answers; the page of a release shows what "
                "was released, in logits. Leave it out."
            )
        if title is not None:
            raise BadUsage(
                "--title belongs to a calibration or to answers; the page of a release has a "
                "headline that says what it is. Leave it out."
            )
        if tables is not None or item_sheets:
            raise BadUsage(
                "--tables and --item-sheets belong to a calibration or to answers; a release "
                "comes with tables of its own. Leave them out."
            )
        _report_release(path, out, force=force)
    elif path.name == CALIBRATION_FILE or (path / CALIBRATION_FILE).is_file():
        folder = out or (path.parent if path.is_file() else path)
        _check_extras(folder, tables, item_sheets=item_sheets, force=force)
        test = _report_calibration(path, out, title, target, force=force)
        _write_extras(test, folder, tables, item_sheets=item_sheets)
    else:
        title = title or title_of(Path(source).name)
        _check_extras(out or Path(), tables, item_sheets=item_sheets, force=force)
        test = _report_answers(source, method, out or Path(), reading, title, target, force=force)
        _write_extras(test, out or Path(), tables, item_sheets=item_sheets)


def _check_extras(folder: Path, tables: str | None, *, item_sheets: bool, force: bool) -> None:
    names = ([PAPER_FILES[tables]] if tables else []) + [SHEETS_FILE] * item_sheets
    check_writable(folder, names, force=force)


def _write_extras(test: Diagnosis, folder: Path, tables: str | None, *, item_sheets: bool) -> None:
    """Write tables for a paper and sheets of items, as far as they are wanted."""
    from discreet.report.page import write_item_sheets
    from discreet.report.paper import write_markdown_tables, write_word_tables

    if tables == "word":
        with staged(folder, [PAPER_FILES[tables]]) as stage:
            write_word_tables(stage / PAPER_FILES[tables], test)
    elif tables == "markdown":
        write_text(folder / PAPER_FILES[tables], write_markdown_tables(test))
    if item_sheets:
        write_text(folder / SHEETS_FILE, write_item_sheets(test))
    for name in ([PAPER_FILES[tables]] if tables else []) + [SHEETS_FILE] * item_sheets:
        say(f"Wrote {folder / name} (confidential)")


def _report_release(bundle: Path, out: Path | None, *, force: bool) -> None:
    from discreet.publishing.bundle import hash_content, seal_record
    from discreet.publishing.verification import read_published
    from discreet.report.public import write_public_page

    _check_place(bundle, out, PUBLIC_FILE, force=force)
    published = read_published(bundle)
    record = published.record
    texts = {PUBLIC_FILE: write_public_page(published.estimate, record)}
    if out is None and "files" in record:  # a later version may write another page
        files = {**record["files"], PUBLIC_FILE: hash_content(texts[PUBLIC_FILE])}
        texts[PRIVACY_FILE] = seal_record(record, files)
    path = (out or bundle) / PUBLIC_FILE
    with staged(path.parent, [*texts], private=False) as stage:
        for name, text in texts.items():
            (stage / name).write_text(text, encoding="utf-8", newline="")
    private = record["guarantee"]["is_private"]
    say(f"Wrote {path} ({'may be published' if private else 'not private: noise for tests only'})")


def _report_calibration(
    path: Path,
    out: Path | None,
    title: str | None,
    target: Scale | ScaleTarget | None,
    *,
    force: bool,
) -> Diagnosis:
    from discreet.report.formats import explaining_damage, read_document
    from discreet.tables.paths import settle_path

    file = path if path.is_file() else path / CALIBRATION_FILE
    _check_place(file.parent, out, REPORT_FILE, force=force)
    document = read_document(file)
    with explaining_damage(file):
        estimate, diagnostics = document.read_estimate(), document.read_diagnostics()
    # An older file does not say what it is about; then its folder does.
    title = title or document.title or title_of(settle_path(file).parent.name)
    heading = {"title": title, "about": document.about}
    if diagnostics is None:
        note("The calibration was written without the answers: no abilities and no fit.")
    scale = document.scale if target is None else _settle(target, diagnostics)
    return _finish(estimate, diagnostics, out or file.parent, heading, scale)


def _settle(target: Scale | ScaleTarget, diagnostics: Diagnostics | None) -> Scale:
    from discreet.scales.reported import Scale

    if isinstance(target, Scale):
        return target
    if diagnostics is None:
        raise BadUsage(
            "--scale with a mean and an SD needs abilities, and this calibration was written "
            "without answers; give two points, such as 0=500,1=600."
        )
    return target.fit(diagnostics.ability_mean, diagnostics.ability_sd)


def _report_answers(
    source: str,
    method: str,
    out: Path,
    reading: ReadingOptions,
    title: str,
    target: Scale | ScaleTarget | None,
    *,
    force: bool,
) -> Diagnosis:
    check_writable(out, [REPORT_FILE], force=force)
    responses = read_answers(source, reading)
    from discreet.models.calibrate import fit

    with working("Estimating difficulties"):
        estimate = fit(responses, method=check_method(method), model=reading.model)
        diagnostics = diagnose_answers(responses, estimate)
        scale = settle_scale(target, responses, estimate)
    note_choice(estimate.choice)
    return _finish(estimate, diagnostics, out, {"title": title}, scale)


def _finish(
    estimate: Estimate,
    diagnostics: Diagnostics | None,
    out: Path,
    heading: dict[str, str],
    scale: Scale | None,
) -> Diagnosis:
    from discreet.report.diagnosis import diagnose_test
    from discreet.report.page import judge, write_diagnosis

    path = out / REPORT_FILE
    test = diagnose_test(estimate, diagnostics)
    write_text(path, write_diagnosis(test, **heading, scale=scale))
    findings = test.findings
    say(f"{judge(findings)}{':' if findings else '.'}")
    for finding in findings:
        say(f"- {finding.title}")
        for consequence in finding.consequences:
            say(f"  - may follow from it: {consequence.title}")
    say(f"Wrote {path} (confidential)")
    return test


def _check_place(default_folder: Path, out: Path | None, name: str, *, force: bool) -> None:
    """Refuse to overwrite, except a report of ours beside the result that it is about."""
    from discreet.html import GENERATOR

    path = default_folder / name
    if out is None and path.is_file():
        head = path.read_text(encoding="utf-8", errors="replace")[:2000]
        force = force or GENERATOR in head
    check_writable(out or default_folder, [name], force=force)
