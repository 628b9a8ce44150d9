"""Report of ratings: how severe raters are, and what persons get when that is allowed for."""

from __future__ import annotations

import numpy as np

from discreet.atomic import REPORT_FILE
from discreet.choices import PlainDict
from discreet.html import HtmlColumn
from discreet.report.raters import SURE_P, list_rater_values
from discreet.studio.language import tell
from discreet.studio.pages.calibrate import write_rated
from discreet.studio.rating import TABLES, RatingSummary
from discreet.studio.session import CalibrationRun, Work

#: Rows that are shown; the files have all of them.
MOST_ROWS = 1000


def list_rated_values(
    work: Work, run: CalibrationRun, summary: RatingSummary, title: str
) -> PlainDict:
    """Return what the report of ratings shows."""
    values = list_rater_values(summary.study, summary.tables, title=title)
    start = f"/report/{work.name}/{run.name}"
    words, mood = _judge(summary)
    raters, persons = _raters(summary), summary.study.persons
    return values | {
        "layout": "studio/frame.html",
        "start": start,
        "words": words,
        "mood": mood,
        "numbers": _count(summary),
        "raters": raters,
        "people": [
            HtmlColumn(tell("name"), persons.persons.tolist()[:MOST_ROWS]),
            HtmlColumn(tell("ratings"), persons.ratings.tolist()[:MOST_ROWS]),
            HtmlColumn(tell("mean"), persons.observed.tolist()[:MOST_ROWS], 2),
            HtmlColumn(tell("adjusted mean"), persons.fair.tolist()[:MOST_ROWS], 2),
        ],
        "files": {
            REPORT_FILE: tell("The report as a page"),
            TABLES["raters"]: tell("Raters"),
            TABLES["persons"]: tell("Persons"),
        },
        "same": write_rated(work, run),
    }


def _count(summary: RatingSummary) -> dict[str, str]:
    (facet,) = summary.estimate.facets.values()
    sizes = {
        tell("persons"): len(summary.study.persons.persons),
        tell("raters"): len(facet.levels),
        tell("items"): len(summary.estimate.items),
        tell("ratings"): int(facet.ratings.sum()),
    }
    return {name: tell.number(size) for name, size in sizes.items()}


def _raters(summary: RatingSummary) -> list[HtmlColumn]:
    """Return the table of raters, the most severe first."""
    (name,) = summary.estimate.facets
    fit, facet = summary.study.facets[name], summary.estimate.facets[name]
    order = np.argsort(-np.nan_to_num(facet.measure), kind="stable")
    return [
        HtmlColumn(tell("rater"), [fit.levels[row] for row in order]),
        HtmlColumn(tell("ratings"), [int(fit.ratings[row]) for row in order]),
        HtmlColumn(tell("mean given"), fit.observed[order].tolist(), 2),
        HtmlColumn(tell("mean for equal work"), fit.fair[order].tolist(), 2),
        HtmlColumn(tell("severity, logits"), facet.measure[order].tolist(), 2),
        HtmlColumn(tell("standard error"), facet.se[order].tolist(), 2),
    ]


def _judge(summary: RatingSummary) -> tuple[str, str]:
    """Return the verdict, and the mood of its colour: whether raters differ by more than chance."""
    (name,) = summary.estimate.facets
    fit = summary.study.facets[name]
    known = np.flatnonzero(np.isfinite(fit.fair))
    if len(known) < 2:
        return tell("The raters cannot be compared: too few persons were rated by several."), "bad"
    severe, mild = (known[pick(fit.fair[known])] for pick in (np.argmin, np.argmax))
    said = {
        "severe": fit.levels[severe],
        "low": tell.decimal(fit.fair[severe], 1),
        "mild": fit.levels[mild],
        "high": tell.decimal(fit.fair[mild], 1),
    }
    words = tell(
        "For equal work, {severe} gives {low} points on average and {mild} gives {high}.", **said
    )
    if not (fit.far_p <= SURE_P).any():
        return f"{tell('The raters agree in how severe they are.')} {words}", "good"
    return f"{words} {tell('The adjusted means below allow for that.')}", "look"
