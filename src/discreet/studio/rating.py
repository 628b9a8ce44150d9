"""Ratings: scores that several raters gave, read, and calibrated with the severity of each rater.

In: a table whose rows are single ratings, or one with columns for every rater. Out: ratings and
what stands in them; a :class:`RatingSummary` with what is shown of a calibration, and its files.
Runs in a worker.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from discreet.answers.ratings import Ratings
from discreet.api.calibrating import fit
from discreet.atomic import REPORT_FILE
from discreet.choices import PlainMapping
from discreet.items.raters import BiasTable, RatingStudy, study_ratings
from discreet.readers.crossed import Raters, read_crossed
from discreet.readers.ratings import USEFUL_WORDS, read_ratings
from discreet.report.formats import write_csv
from discreet.report.plain import AnswerBar, AnsweredItem, count_answers
from discreet.report.raters import write_rater_page
from discreet.results.estimate import Estimate
from discreet.studio.jobs import TaskProgress, load_kept
from discreet.tables.inspection import Inspection
from discreet.words import mark

#: What is stated of a reading whose scores are ratings (:data:`Raters`).
RATERS = "raters"
#: Files to take away, by the tables that they hold.
TABLES = {"raters": "raters.confidential.csv", "persons": "persons.confidential.csv"}


def read_rated(
    source: Path, inspection: Inspection, raters: Raters
) -> tuple[Ratings, tuple[AnsweredItem, ...]]:
    """Return ratings, and how often each score was given."""
    if isinstance(raters, str):
        words = {k: v for k, v in inspection.options.items() if k in USEFUL_WORDS and k != "model"}
        ratings = read_ratings(source, facets=[raters], **words)
        return ratings, _count_scores(ratings)
    answers, ratings = read_crossed(source, inspection, raters)
    return ratings, count_answers(answers)


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
