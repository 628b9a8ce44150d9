"""Ratings: scores that several raters gave, read, and calibrated with the severity of each rater.

In: a table whose rows are single ratings, or one with columns for every rater. Out: ratings and
what stands in them; a :class:`RatingSummary` with what is shown of a calibration, and its files.
Runs in a worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.answers.ratings import Ratings
from discreet.answers.responses import Responses
from discreet.api.calibrating import fit
from discreet.atomic import REPORT_FILE
from discreet.choices import PlainMapping
from discreet.items.raters import BiasTable, RatingStudy, study_ratings
from discreet.readers.answers import read_planned
from discreet.readers.ratings import USEFUL_WORDS, read_ratings
from discreet.report.formats import write_csv
from discreet.report.plain import AnswerBar, AnsweredItem, count_answers
from discreet.report.raters import write_rater_page
from discreet.results.estimate import Estimate
from discreet.studio.jobs import TaskProgress, load_kept
from discreet.tables.inspection import Inspection, simplify
from discreet.words import mark

#: The facet of raters whose column has no name of its own.
RATER = "rater"
#: What is stated of a reading whose scores are ratings (:data:`Raters`).
RATERS = "raters"
#: Files to take away, by the tables that they hold.
TABLES = {"raters": "raters.confidential.csv", "persons": "persons.confidential.csv"}


#: Who gave which scores: the column of raters in a table of single ratings; that column and the one
#: of persons, in a table with a row for both; by rater, the columns of each criterion.
Raters = str | list[str] | Mapping[str, Mapping[str, str]]


def read_rated(
    source: Path, inspection: Inspection, raters: Raters
) -> tuple[Ratings, tuple[AnsweredItem, ...]]:
    """Return ratings, and how often each score was given."""
    if isinstance(raters, str):
        words = {k: v for k, v in inspection.options.items() if k in USEFUL_WORDS and k != "model"}
        ratings = read_ratings(source, facets=[raters], **words)
        return ratings, _count_scores(ratings)
    reading = inspection.take_sure() if inspection.is_sure else inspection.proposal
    if isinstance(raters, list):
        apart = [one for one in simplify(reading.stated).get("ignore", ()) if one not in raters]
        reading = replace(reading, person=None, ignore=apart, group=raters)
        answers = read_planned(source, reading)
        return _join_rows(answers, *raters), count_answers(answers)
    answers = read_planned(source, reading)
    return _join_columns(answers, raters), count_answers(answers)


def find_raters(inspection: Inspection) -> Raters:
    """Return who gave the scores, if they are ratings."""
    raters = inspection.raters
    if not isinstance(raters, str) or "answer" in inspection.preview.roles:
        return raters
    offered = (answer.options for one in inspection.findings for answer in one.answers)
    persons = [options["person"] for options in offered if "person" in options]
    return [raters, str(inspection.options.get("person", *persons[:1]))] if raters else ""


def _join_columns(answers: Responses, raters: Mapping[str, Mapping[str, str]]) -> Ratings:
    """Return the ratings of a table with a column for every criterion of every rater."""
    items = [*dict.fromkeys(item for named in raters.values() for item in named)]
    number_of = {column: number for number, column in enumerate(answers.items)}
    place = [[number_of[named[item]] for item in items] for named in raters.values()]
    scores = answers.rows(0, answers.n_persons)[:, np.array(place)]
    person, rater, item = np.nonzero(scores >= 0)
    codes = (person, item, scores[scores >= 0], rater)
    return _make(answers, codes, answers.persons, items, (RATER, [*raters]))


def _join_rows(answers: Responses, raters: str, person: str) -> Ratings:
    """Return the ratings of a table with a row for every person and rater."""
    scores = answers.rows(0, answers.n_persons)
    row, item = np.nonzero(scores >= 0)
    persons, person_of = np.unique(answers.groups[person], return_inverse=True)
    levels, rater_of = np.unique(answers.groups[raters], return_inverse=True)
    codes = (person_of[row], item, scores[scores >= 0], rater_of[row])
    return _make(answers, codes, persons, answers.items, (raters, levels))


def _make(
    answers: Responses, codes: Any, persons: Any, items: Any, facet: tuple[str, Any]
) -> Ratings:
    """Return ratings by codes of person, item, score and rater; without persons nobody rated."""
    person, item, score, rater = codes
    rated, person = np.unique(person, return_inverse=True)
    name, levels = facet
    return Ratings.from_codes(
        person,
        item,
        score,
        facets={name: rater},
        items=items,
        levels={name: [*map(str, levels)]},
        lowest=int(answers.reading.stated.get("lowest") or 0),
        ids=pa.array([str(persons[number]) for number in rated]),
    )


def _count_scores(ratings: Ratings) -> tuple[AnsweredItem, ...]:
    """Count the ratings of each item by their scores."""
    counts, top = ratings.count_categories(), int(ratings.score.max())
    return tuple(
        AnsweredItem(
            name,
            int(times.sum()),
            float(times @ np.arange(len(times)) / max(1, times.sum())),
            tuple(AnswerBar(str(ratings.lowest + n), int(times[n])) for n in range(top + 1)),
            max(top, 1),
        )
        for name, times in zip(ratings.items, counts, strict=True)
    )


@dataclass(frozen=True)
class RatingSummary:
    """What a calibration of ratings came to: evidence, tables of bias, files to take away."""

    study: RatingStudy
    tables: tuple[BiasTable, ...]
    files: tuple[str, ...]

    @property
    def estimate(self) -> Estimate:
        """The numbers themselves."""
        return self.study.estimate


def calibrate_ratings(
    progress: TaskProgress, answers: Path, title: str, settings: PlainMapping
) -> RatingSummary:
    """Estimate items, steps and severities, and write what can be taken away."""
    del settings  # ratings have none
    progress.begin(mark("Opening the answers"))
    ratings: Ratings = load_kept(answers)
    (facet,) = ratings.facets
    progress.begin(mark("Estimating the severities of raters"))
    study = study_ratings(ratings, fit(ratings, facets=[facet]))
    tables = (study.find_bias(facet, "item"),) if len(ratings.items) > 1 else ()
    progress.begin(mark("Drawing the report, writing tables and workbook"))
    page = write_rater_page(study, tables, title=title)
    (progress.folder / REPORT_FILE).write_text(page, "utf-8")
    for name, table in (("raters", study.facets[facet]), ("persons", study.persons)):
        columns = table.to_dict()
        access = ["confidential"] * len(next(iter(columns.values())))
        write_csv(progress.folder / TABLES[name], {**columns, "access": access})
    return RatingSummary(study, tables, (REPORT_FILE, *TABLES.values()))
