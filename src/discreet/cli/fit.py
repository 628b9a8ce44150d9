"""``discreet fit``, ``check`` and ``result report``: difficulties, tests of the model, a page.

``fit`` estimates without privacy, with ``--rater`` severities of raters too. ``check`` says what
the inspection of a table proposes and asks; then it tests the model, and says what to do. The page
is made from answers, from a calibration that ``fit`` wrote, or from a release.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import typer

import discreet
from discreet.atomic import (
    CALIBRATION_FILE,
    CALIBRATION_FILES,
    ESTIMATE_FILE,
    PRIVACY_FILE,
    REPORT_FILE,
    STUDY_FILE,
    staged,
    write_text,
)
from discreet.choices import PlainDict
from discreet.cli.answers import (
    Limits,
    RaterOptions,
    ReadingOptions,
    RoutingOptions,
    WeightOptions,
    inspect_answers,
    list_rating_words,
    list_stated,
    name_answers,
    open_answers,
    read_answers,
)
from discreet.cli.calibrations import (
    check_method,
    print_calibration,
    read_anchors,
    read_wanted,
    settle_scale,
    title_of,
    write_calibration,
)
from discreet.cli.options import ResultOptions
from discreet.cli.output import (
    check_writable,
    conclude,
    confidential,
    list_rows,
    note,
    note_choice,
    print_columns,
    print_json,
    say,
    working,
)
from discreet.errors import AssumedReading, BadResponses, BadUsage
from discreet.tabular import Columns

if TYPE_CHECKING:
    from discreet.answers.ratings import Ratings
    from discreet.items.study import Study
    from discreet.report.diagnosis import Diagnosis, ModelCheck
    from discreet.report.model_findings import Finding
    from discreet.report.raters import RatingReport
    from discreet.results.estimate import Estimate
    from discreet.scales.reported import Scale, ScaleTarget
    from discreet.tables.inspection import Inspection


PUBLIC_FILE = "report.html"
PAPER_FILES = {"word": "tables.confidential.docx", "markdown": "tables.confidential.md"}
SHEETS_FILE = "item_sheets.confidential.html"


def fit(
    file: str,
    *,
    method: str = "auto",
    regularisation: float = 0.0,
    anchors: Path | None = None,
    keep_categories: bool = False,
    scale: str | None = None,
    title: str | None = None,
    output: ResultOptions,
    raters: RaterOptions,
    routes: RoutingOptions,
    weights: WeightOptions,
    reading: ReadingOptions,
) -> None:
    """Estimate item difficulties from answers. The results are confidential."""
    target, design = read_wanted(scale), routes.read()
    if raters.facets:
        if design is not None:
            raise BadUsage("--routing is not for ratings with --rater or --facet; leave it out.")
        if regularisation != 0 or weights.stated:
            raise BadUsage(
                "--regularisation and --weight are not for ratings with --rater or --facet: "
                "severities come from ratings of the same person, so that weights of persons do "
                "not move them. Leave them out."
            )
        title = title or f"Ratings: {name_answers(file)}"
        fit_ratings(file, raters, reading, method, title, output, anchors, target)
        return
    output.check(*CALIBRATION_FILES)
    if title is not None and output.out is None:
        raise BadUsage("--title is the headline of the report, which --out writes; add --out DIR.")
    check_method(method)
    # Studies, anchors and abilities need all answers in memory; difficulties alone do not.
    has_design = bool(weights.stated)
    needs_answers = has_design or keep_categories or bool(target and target.needs_persons)
    needs_answers |= design is not None
    alone = output.out is None and anchors is None and not needs_answers
    if has_design:
        reading = replace(reading, group=[*(reading.group or []), *weights.columns])
    limits = Limits() if alone else Limits(engine="memory")
    held = None if anchors is None else read_anchors(anchors)
    words = {}
    if has_sums := reading.repeats == "sum":
        words = {name: value for name, value in list_stated(reading).items() if name != "model"}
        if target is not None and target.needs_persons:
            raise BadUsage(
                "--scale with a mean and an SD needs abilities, which counts of samples do not "
                "give; name two points, such as 0=500,1=600."
            )
    opened = partial(open_answers, file, reading, limits, "Estimating difficulties", like=held)
    with nullcontext(file) if has_sums else opened() as answers:
        from discreet.counts import PairCounts
        from discreet.readers.opening import load_answers
        from discreet.report.formats import list_calibration

        responses: Any = answers if design is None else load_answers(answers).route(design)
        estimate = discreet.fit(
            responses,
            method=check_method(method),
            model=reading.model,
            regularisation=regularisation,
            anchors=held,
            keep_categories=keep_categories,
            **vars(weights),
            **words,
        )
        turned = settle_scale(target, responses, estimate)
    written = []
    if output.out is not None:
        with working("Writing the report"):
            title = title or title_of(name_answers(file))
            has_persons = not (has_sums or isinstance(responses, PairCounts))
            full_responses = responses if has_persons else None
            if has_design and has_persons:
                full_responses = responses.weigh(**weights.stated)
            written = write_calibration(
                output.out, estimate, full_responses, title=title, scale=turned
            )
    if output.as_json:
        more = {} if anchors is None else {"anchors": list_rows(estimate.anchors_to_dict())}
        print_json(list_calibration(estimate, turned) | more)
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
    _print_anchors(estimate)


def _print_anchors(estimate: Estimate) -> None:
    if estimate.displacement is not None:
        say()
        say("Anchors: how far each would move if it were free")
        say()
        print_columns(
            estimate.anchors_to_dict(), ("item", "anchor", "displacement", "se", "reason")
        )


def fit_ratings(
    file: str,
    options: RaterOptions,
    reading: ReadingOptions,
    method: str,
    title: str,
    output: ResultOptions,
    anchors: Path | None = None,
    scale: Scale | ScaleTarget | None = None,
) -> None:
    """Fit ratings, print severities, write tables and the report."""
    output.check(*CALIBRATION_FILES)
    from discreet.items.raters import study_ratings
    from discreet.report.formats import list_calibration
    from discreet.report.raters import RatingReport

    held = None if anchors is None else read_anchors(anchors)
    with working("Estimating severities"):
        ratings, estimate = _estimate_severities(file, options, reading, method, held)
    written: list[Path] = []
    if output.out is not None:
        with working("Writing the report"):
            study = study_ratings(ratings, estimate)
            pairs = [(name, "item") for name in options.facets if len(ratings.items) > 1]
            if options.drift_over:
                pairs += [(name, options.drift_over) for name in options.facets]
            tables = tuple(study.find_bias(*pair) for pair in pairs)
            settled = None if scale is None else scale.settle(study.persons.measure)
            written = _write_study(output.out, RatingReport(study, tables, title, settled))
    rows = {name: list_rows(facet.to_dict()) for name, facet in estimate.facets.items()}
    document = list_calibration(estimate) | {"facets": rows}
    output.show(document, lambda: _print_severities(ratings, estimate))
    conclude(estimate.warnings, written, choice=estimate.choice)


def _estimate_severities(
    file: str, options: RaterOptions, reading: ReadingOptions, method: str, anchors: object = None
) -> tuple[Ratings, Estimate]:

    columns = [*options.facets, *([options.drift_over] if options.drift_over else [])]
    ratings = discreet.read_ratings(file, facets=columns, **list_rating_words(reading))
    estimate = discreet.fit(
        ratings,
        facets=options.facets,
        structure=options.structure,
        within=None if options.within == "none" else options.within,
        method=check_method(method),
        model=reading.model,
        anchors=anchors,
    )
    return ratings, estimate


def _check_ratings(
    file: str,
    raters: RaterOptions,
    reading: ReadingOptions,
    method: str,
    anchors: Any,
    *,
    as_json: bool,
) -> None:
    """Say what is wrong with ratings."""
    from discreet.items.raters import study_ratings
    from discreet.report.page import judge
    from discreet.report.raters import find_rater_problems

    with working("Testing the model"):
        ratings, estimate = _estimate_severities(file, raters, reading, method, anchors)
        findings = find_rater_problems(study_ratings(ratings, estimate))
    rows = [
        {"verdict": one.severity.word, "title": one.title, "found": one.found, "advice": one.advice}
        for one in findings
    ]
    if as_json:
        print_json({"summary": ratings.describe(), "findings": rows})
    else:
        say(ratings.describe())
        for facet in estimate.facets.values():
            say("; ".join(facet.describe()))
        say()
        say(f"{judge(findings)}{':' if findings else '.'}")
        for row in rows:
            say(f"- {row['title']}. {row['found']} {row['advice']}")
    conclude(estimate.warnings, choice=estimate.choice)


def _print_severities(ratings: Ratings, estimate: Estimate) -> None:
    say(f"{ratings!r}"[1:-1])
    for name, facet in estimate.facets.items():
        say()
        cells = facet.to_dict()
        cells = {**cells, "severity": [f"{value:.3f}" for value in cells["measure"]]}
        print_columns(cells, (name, "severity", "se", "lower", "upper", "ratings", "status"))
    say()
    print_columns(estimate.to_dict(), ("item", "difficulty", "se", "lower", "upper", "status"))
    if estimate.item_effect is not None:
        say(f"Do persons differ by item? {estimate.item_effect}")


def _write_study(folder: Path, report: RatingReport) -> list[Path]:
    from discreet.report.formats import write_csv
    from discreet.report.raters import turn_measures

    study, tables, scale = report.study, report.tables, report.scale
    estimate = study.estimate
    columns = {"items": study.facets["item"].to_dict(), "persons": study.persons.to_dict()}
    columns = {name: turn_measures(cells, scale) for name, cells in columns.items()}
    columns |= {"categories": study.categories.to_dict(), "unexpected": study.unexpected.to_dict()}
    columns["thresholds"] = estimate.thresholds_to_dict()
    for name, facet in estimate.facets.items():
        joined = turn_measures(study.facets[name].to_dict(), scale)
        joined = {**joined, "status": list(map(str, facet.status))}
        columns[f"facet_{name.replace(':', '_')}"] = joined
    columns |= {f"bias_{table.names[0]}_{table.names[1]}": table.to_dict() for table in tables}
    files = [f"{name}.confidential.csv" for name in columns]
    written = [*files, ESTIMATE_FILE, STUDY_FILE, REPORT_FILE]
    with staged(folder, written) as stage:
        for file, cells in zip(files, columns.values(), strict=True):
            write_csv(stage / file, confidential(cells))
        estimate.save(stage / ESTIMATE_FILE)
        report.save(stage / STUDY_FILE)
        (stage / REPORT_FILE).write_text(report.write_page(), encoding="utf-8", newline="\n")
    return [folder / file for file in written]


def check(
    file: str,
    *,
    calibration: Path | None = None,
    method: str = "auto",
    as_json: bool = False,
    raters: RaterOptions,
    reading: ReadingOptions,
) -> None:
    """Show how a table is read, and test whether the model holds. Confidential."""
    check_method(method)
    anchors = None if calibration is None else read_anchors(calibration)
    if raters.facets:
        _check_ratings(file, raters, reading, method, anchors, as_json=as_json)
        return
    inspection = inspect_answers(file, reading, anchors)
    if not as_json:
        _print_inspection(inspection)
    if not inspection.is_sure:
        if as_json:
            print_json(inspection.to_dict())
        raise typer.Exit(BadResponses.exit_code)
    model_check = _run_check(file, method, reading, anchors)
    change = None
    if reading.merge and anchors is None:
        from discreet.report.diagnosis import compare_fit

        before = _run_check(file, method, replace(reading, merge=None))
        change = compare_fit(before, model_check).to_dict()
    if as_json:
        merged = {} if change is None else {"merged": list_rows(change)}
        held = (
            {}
            if anchors is None
            else {"anchors": list_rows(model_check.estimate.anchors_to_dict())}
        )
        print_json(inspection.to_dict() | _describe_check(model_check) | merged | held)
    else:
        _print_check(model_check, change)
    for text in model_check.study.notes:
        note(f"Note: {text}")
    conclude(model_check.estimate.warnings, choice=model_check.estimate.choice)


def _print_inspection(inspection: Inspection) -> None:
    """Print what is proposed and asked; nothing of a table that is plain."""
    decisions = [decision for decision in inspection.decisions if not decision.is_public]
    if not decisions and inspection.is_sure:
        return
    say("How the table is read")
    for reason in dict.fromkeys(decision.reason for decision in decisions if decision.is_sure):
        say(f"- {reason}")
    for number, finding in enumerate(inspection.questions, start=1):
        say(f"Question {number}: {finding.question}")
        for remedy in finding.answers:
            say(f"  - {remedy.words}")
    if inspection.command:
        say(f"To state all of it: {inspection.command}")
    say()


def _run_check(
    file: str, method: str, reading: ReadingOptions, anchors: object = None
) -> ModelCheck:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=AssumedReading)  # it was printed above
        responses = read_answers(file, reading, anchors)
    from discreet.report.diagnosis import check_model

    with working("Testing the model"):
        estimate = discreet.fit(
            responses, method=check_method(method), model=reading.model, anchors=anchors
        )
        return check_model(responses, estimate)


def _describe_check(model_check: ModelCheck) -> PlainDict:
    return {
        "persons": model_check.estimate.persons,
        "items": len(model_check.estimate.items),
        "method": model_check.estimate.method,
        "choice": model_check.estimate.choice,
        "tests": list_rows(model_check.to_dict()),
        "notes": [*model_check.doubts, *model_check.study.notes],
    }


def _print_check(model_check: ModelCheck, change: Columns | None) -> None:
    estimate = model_check.estimate
    for doubt in model_check.doubts:
        say(doubt)
        say()
    say(f"{len(estimate.items):,} items, {estimate.persons:,} persons, {estimate.method}")
    say()
    if change is not None:
        say("Before and after merging categories")
        say()
        cells = {name: [*map(_write_number, change[name])] for name in ("before", "after")}
        print_columns({"what": change["name"], **cells}, ("what", *cells))
        say()
    print_columns(model_check.to_dict(), ("name", "statistic", "degrees", "p_value", "verdict"))
    for test in model_check.tests:
        say()
        say(f"{test.name[:1].upper()}{test.name[1:]}: {test.verdict}. {test.asks}")
        say(f"  {test.found}")
        if test.advice:
            say(f"  What to do: {test.advice}")
    _print_anchors(estimate)


def _write_number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}" if isinstance(value, float) else f"{value:,}"


def report(
    source: str,
    *,
    method: str = "auto",
    out: Path | None = None,
    tables: Literal["word", "markdown"] | None = None,
    item_sheets: bool = False,
    scale: str | None = None,
    title: str | None = None,
    force: bool = False,
    reading: ReadingOptions,
) -> None:
    """Write the HTML report: public for a release, confidential for a calibration."""
    target = read_wanted(scale)
    check_method(method)
    path = Path(source)
    if path.is_dir() and (path / PRIVACY_FILE).exists():
        for is_typed, refusal in (
            (scale, "--scale belongs to a calibration or to answers; the page of a release shows "
             "what was released, in logits. Leave it out."),
            (title, "--title belongs to a calibration or to answers; the page of a release has a "
             "headline that says what it is. Leave it out."),
            (tables or item_sheets, "--tables and --item-sheets belong to a calibration or to "
             "answers; a release comes with tables of its own. Leave them out."),
        ):  # fmt: skip
            if is_typed:
                raise BadUsage(refusal)
        _report_release(path, out, force=force)
        return
    if (path / STUDY_FILE).is_file():
        if item_sheets:
            raise BadUsage("--item-sheets are for answers; ratings have none. Leave it out.")
        _report_ratings(path, out or path, tables, title, target, force=force)
        return
    calibration = path if path.name == CALIBRATION_FILE else path / CALIBRATION_FILE
    is_kept = calibration == path or calibration.is_file()
    folder = out or (calibration.parent if is_kept else Path())
    extras = ([PAPER_FILES[tables]] if tables else []) + [SHEETS_FILE] * item_sheets
    check_writable(folder, extras, force=force)
    if is_kept:
        _check_place(calibration.parent, out, REPORT_FILE, force=force)
        test, heading = _read_test(calibration, title, target)
    else:
        check_writable(folder, [REPORT_FILE], force=force)
        test, turned = _test_answers(source, method, reading, target)
        heading = {"title": title or title_of(path.name), "scale": turned}
    _write_report(folder / REPORT_FILE, test, heading)
    for name in extras:
        _write_extra(folder / name, test)
        say(f"Wrote {folder / name} (confidential)")


def _report_ratings(
    kept: Path,
    folder: Path,
    tables: str | None,
    title: str | None,
    scale: Scale | ScaleTarget | None,
    *,
    force: bool,
) -> None:
    """Write the report of a folder of ratings again, and tables for a paper."""
    from discreet.report.paper import write_markdown, write_word
    from discreet.report.raters import (
        RatingReport,
        find_rater_problems,
        list_rater_tables,
        write_rater_methods,
    )

    check_writable(folder, [PAPER_FILES[tables]] if tables else [], force=force)
    _check_place(kept, None if folder == kept else folder, REPORT_FILE, force=force)
    report = RatingReport.load(kept / STUDY_FILE)
    turned = report.scale if scale is None else scale.settle(report.study.persons.measure)
    report = replace(report, title=title or report.title, scale=turned)
    write_text(folder / REPORT_FILE, report.write_page())
    _say_findings(find_rater_problems(report.study, report.tables))
    say(f"Wrote {folder / REPORT_FILE} (confidential)")
    if tables:
        texts = write_rater_methods(report.study), list_rater_tables(report.study)
        if tables == "word":
            with staged(folder, [PAPER_FILES[tables]]) as stage:
                write_word(stage / PAPER_FILES[tables], *texts)
        else:
            write_text(folder / PAPER_FILES[tables], write_markdown(*texts))
        say(f"Wrote {folder / PAPER_FILES[tables]} (confidential)")


def _write_extra(path: Path, test: Diagnosis) -> None:
    """Write tables for a paper, or the sheets of the items."""
    from discreet.report.page import write_item_sheets
    from discreet.report.paper import write_markdown_tables, write_word_tables

    if path.name == PAPER_FILES["word"]:
        with staged(path.parent, [path.name]) as stage:
            write_word_tables(stage / path.name, test)
    else:
        is_sheets = path.name == SHEETS_FILE
        write_text(path, (write_item_sheets if is_sheets else write_markdown_tables)(test))


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


def _read_test(
    file: Path, title: str | None, target: Scale | ScaleTarget | None
) -> tuple[Diagnosis, PlainDict]:
    """Return the test of a calibration that was kept, and the heading of its report."""
    from discreet.report.calibration import read_document
    from discreet.report.diagnosis import diagnose_test

    kept = read_document(file)
    if kept.study is None:
        note("The calibration was written without the answers: no abilities and no fit.")
    scale = kept.scale if target is None else _settle(target, kept.study)
    heading = {"title": title or kept.title, "about": kept.about, "scale": scale}
    return diagnose_test(kept.estimate, kept.study), heading


def _settle(target: Scale | ScaleTarget, study: Study | None) -> Scale:
    if not target.needs_persons:
        return target.settle(())
    if study is None:
        raise BadUsage(
            "--scale with a mean and an SD needs abilities, and this calibration was written "
            "without answers; give two points, such as 0=500,1=600."
        )
    return cast("ScaleTarget", target).fit(study.abilities.mean, study.abilities.sd)


def _test_answers(
    source: str, method: str, reading: ReadingOptions, target: Scale | ScaleTarget | None
) -> tuple[Diagnosis, Scale | None]:
    """Calibrate answers; return their test, and the scale that was asked for."""
    responses = read_answers(source, reading)
    from discreet.items.study import diagnose
    from discreet.report.diagnosis import diagnose_test

    study: Study | None = None
    with working("Estimating difficulties"):
        estimate = discreet.fit(responses, method=check_method(method), model=reading.model)
        try:
            study = diagnose(responses, estimate)
        except BadUsage as error:
            note(f"Warning: the report is without abilities and fit: {error}")
        scale = settle_scale(target, responses, estimate)
    note_choice(estimate.choice)
    return diagnose_test(estimate, study), scale


def _write_report(path: Path, test: Diagnosis, heading: PlainDict) -> None:
    from discreet.report.page import write_diagnosis

    write_text(path, write_diagnosis(test, **heading))
    _say_findings(test.findings)
    say(f"Wrote {path} (confidential)")


def _say_findings(findings: Sequence[Finding]) -> None:
    from discreet.report.page import judge

    say(f"{judge(findings)}{':' if findings else '.'}")
    for finding in findings:
        say(f"- {finding.title}")
        for consequence in finding.consequences:
            say(f"  - may follow from it: {consequence.title}")


def _check_place(default_folder: Path, out: Path | None, name: str, *, force: bool) -> None:
    """Refuse to overwrite, except a report of ours beside the result that it is about."""
    from discreet.html import GENERATOR

    path = default_folder / name
    if out is None and path.is_file():
        head = path.read_text(encoding="utf-8", errors="replace")[:2000]
        force = force or GENERATOR in head
    check_writable(out or default_folder, [name], force=force)
