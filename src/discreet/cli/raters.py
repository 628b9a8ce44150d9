"""``discreet fit --rater``: severities of raters, and persons adjusted for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from discreet.atomic import staged
from discreet.cli.answers import ReadingOptions, list_words
from discreet.cli.calibrations import CALIBRATION_FILES, REPORT_FILE, calibration_document
from discreet.cli.options import option
from discreet.cli.output import (
    check_writable,
    conclude,
    confidential,
    list_rows,
    print_columns,
    print_json,
    say,
    working,
)

if TYPE_CHECKING:
    from discreet.items.raters import BiasTable, RatingStudy

ESTIMATE_FILE = "estimate.confidential.json"


@dataclass(frozen=True)
class RaterOptions:
    """Facets of ratings."""

    rater: Annotated[
        str | None, option("COL", "Ratings, one per row: the column with the raters.")
    ] = None
    facet: Annotated[
        list[str] | None,
        option("COL", "Ratings: a further facet, such as a task (may be repeated)."),
    ] = None
    structure: Annotated[
        str | None,
        option("TERMS", 'Ratings: what thresholds are the sum of (default "item:step + rater").'),
    ] = None
    within: Annotated[
        Literal["auto", "item", "none"],
        option("KIND", "Ratings: compare those of the same person and item, or all of a person."),
    ] = "auto"
    drift_over: Annotated[
        str | None, option("COL", "Ratings: test whether severities change over this column.")
    ] = None

    @property
    def facets(self) -> list[str]:
        """All facets, the rater first."""
        return [*([self.rater] if self.rater else []), *(self.facet or [])]


@dataclass(frozen=True)
class RatingPlaces:
    """Where results of ratings go."""

    out: Path | None
    title: str
    force: bool
    as_json: bool


def fit_ratings(
    file: str,
    options: RaterOptions,
    reading: ReadingOptions,
    *,
    method: Any,
    places: RatingPlaces,
) -> None:
    """Fit ratings, print severities, write tables and the report."""
    check_writable(places.out, CALIBRATION_FILES, force=places.force)
    from discreet.answers.ratings import USEFUL_WORDS, read_ratings
    from discreet.items.raters import study_ratings
    from discreet.models.calibrate import fit
    from discreet.tables.reading import READING_DEFAULTS

    words = list_words(reading)
    stated = {
        name: value
        for name, value in words.items()
        if value and (name in USEFUL_WORDS or value != READING_DEFAULTS[name])
    }
    columns = [*options.facets, *([options.drift_over] if options.drift_over else [])]
    with working("Estimating severities"):
        ratings = read_ratings(file, facets=columns, **stated)
        estimate = fit(
            ratings,
            facets=options.facets,
            structure=options.structure,
            within=None if options.within == "none" else options.within,
            method=method,
            model=reading.model,
        )
    written: list[Path] = []
    if places.out is not None:
        with working("Writing the report"):
            study = study_ratings(ratings, estimate)
            tables = _list_bias(study, options)
            written = _write_study(places.out, study, tables, places.title)
    if places.as_json:
        rows = {name: list_rows(facet.to_dict()) for name, facet in estimate.facets.items()}
        print_json(calibration_document(estimate) | {"facets": rows})
    else:
        say(f"{ratings!r}"[1:-1])
        for name, facet in estimate.facets.items():
            say()
            cells = facet.to_dict()
            cells = {**cells, "severity": [f"{value:.3f}" for value in cells["measure"]]}
            shown = (name, "severity", "se", "lower", "upper", "ratings", "status")
            print_columns(cells, shown)
        say()
        print_columns(estimate.to_dict(), ("item", "difficulty", "se", "lower", "upper", "status"))
        if estimate.item_effect is not None:
            say(f"Do persons differ by item? {estimate.item_effect}")
    conclude(estimate.warnings, written, choice=estimate.choice)


def _list_bias(study: RatingStudy, options: RaterOptions) -> list[BiasTable]:
    """Test raters by items, and over time where that was asked for."""
    pairs = [(name, "item") for name in options.facets if len(study.ratings.items) > 1]
    if options.drift_over:
        pairs += [(name, options.drift_over) for name in options.facets]
    return [study.find_bias(*pair) for pair in pairs]


def _write_study(
    folder: Path, study: RatingStudy, tables: Sequence[BiasTable], title: str
) -> list[Path]:
    from discreet.report.formats import write_csv
    from discreet.report.raters import write_rater_page

    estimate = study.estimate
    columns = {"items": study.facets["item"].to_dict(), "persons": study.persons.to_dict()}
    columns["thresholds"] = estimate.thresholds_to_dict()
    for name, facet in estimate.facets.items():
        joined = {**study.facets[name].to_dict(), "status": list(map(str, facet.status))}
        columns[f"facet_{name.replace(':', '_')}"] = joined
    columns |= {f"bias_{table.names[0]}_{table.names[1]}": table.to_dict() for table in tables}
    files = [f"{name}.confidential.csv" for name in columns]
    written = [*files, ESTIMATE_FILE, REPORT_FILE]
    with staged(folder, written) as stage:
        for file, cells in zip(files, columns.values(), strict=True):
            write_csv(stage / file, confidential(cells))
        estimate.save(stage / ESTIMATE_FILE)
        page = write_rater_page(study, tables, title=title)
        (stage / REPORT_FILE).write_text(page, encoding="utf-8", newline="\n")
    return [folder / file for file in written]
