"""The report on raters: findings, the vertical ruler, tables, one page.

In: a :class:`~discreet.items.raters.RatingStudy`. Out: findings in words, and a confidential page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet import __version__
from discreet.choices import PlainDict
from discreet.html import HtmlColumn, write_page
from discreet.items.curves import BIN
from discreet.items.raters import BiasTable, LevelFit, RatingStudy
from discreet.items.raters.laws import ITEM
from discreet.report.model_findings import Finding, Severity
from discreet.report.page import judge
from discreet.report.paper import PaperTable, assemble_table, write_interval, write_number
from discreet.report.sheet import Sheet, shorten_label, text_width
from discreet.results.estimate import Estimate
from discreet.results.facets import FacetLevels, LevelStatus, find_reliability
from discreet.saving import Kept
from discreet.scales.reported import Scale
from discreet.tabular import Columns
from discreet.text import count_of, minus, name_some

#: Logits from which a rater who differs from the mean for sure is worth a word.
SEVERE = 0.5
SURE_P = 0.05
#: Agreement beyond what the model expects that is worth a word, with ``EQUAL_Z``.
TOO_EQUAL = 0.05
EQUAL_Z = 4.0
MOST_ROWS = 500
MOST_NAMES = 5

_TITLES = {
    "measure": "severity", "se": "SE", "ratings": "ratings", "observed": "observed mean",
    "fair": "fair mean", "infit": "infit", "outfit": "outfit", "agreement": "agreement",
    "expected": "expected", "agreement_z": "z", "status": "status", "bias": "bias (logits)",
    "adjusted": "corrected p", "p": "p", "answers": "ratings", "answers_without_extremes": "used",
    "mean_ability": "mean level", "expected_ability": "expected level",
    "conditional_infit": "infit", "conditional_outfit": "outfit", "far_p": "p of the mean",
    "scaled_measure": "on the scale", "scaled_se": "its SE", "displacement": "displacement",
    "displacement_se": "its SE",
}  # fmt: skip


def find_rater_problems(study: RatingStudy, tables: Sequence[BiasTable] = ()) -> list[Finding]:
    """Return what is wrong with the ratings, the gravest first."""
    findings = [*_find_item_effect(study.estimate)]
    for name, facet in study.estimate.facets.items():
        fit = study.facets[name]
        findings += [*_find_unknown(facet), *_find_severe(facet, fit, study)]
        findings += _find_equal(facet, fit)
    findings += [*_find_misfits(study), *_find_persons(study)]
    findings += [finding for table in tables for finding in _find_bias(table)]
    return sorted(findings, key=lambda finding: finding.severity)


def _find_item_effect(estimate: Estimate) -> Iterator[Finding]:
    test = estimate.item_effect
    if test is not None and test.p < SURE_P:
        yield Finding(
            Severity.LOOK,
            "Persons differ by item: some are better at certain items than their level says",
            "Severities from ratings of the same item differ from those of all ratings by more "
            f"than chance ({test}). All ratings together would give {test.slope:.2f} times the "
            "severities.",
            "Severities and steps come from ratings of the same item and are not affected. Item "
            "locations are too close together, and persons' standard errors too small.",
        )


def _find_unknown(facet: FacetLevels) -> Iterator[Finding]:
    """Yield a finding for each reason why levels have no number."""
    by_status: dict[LevelStatus, list[str]] = {}
    for level, status in zip(facet.levels, facet.status, strict=True):
        by_status.setdefault(status, []).append(level)
    if apart := by_status.get(LevelStatus.NOT_CONNECTED):
        main = [level for level, n in zip(facet.levels, facet.subset, strict=True) if n == 1]
        yield _warn_of(
            f"{facet.name} {name_some(apart)} and {name_some(main)} never meet",
            f"No person was rated by levels of both sets, so {count_of(len(apart), 'level')} have "
            "no severity: the sets cannot be compared.",
            "Let some persons be rated by both sets, and fit again.",
        )
    for status, word in (
        (LevelStatus.ALWAYS_LOWEST, "lowest"),
        (LevelStatus.ALWAYS_HIGHEST, "highest"),
    ):
        if levels := by_status.get(status):
            yield _warn_of(
                f"{facet.name} {name_some(levels)} gave the {word} score in every comparison",
                "Their severity has no finite estimate, and their ratings were left out.",
                "Ask whether they used the scale; have their persons rated again.",
            )
    if levels := by_status.get(LevelStatus.UNBOUNDED):
        yield _warn_of(
            f"{facet.name} {name_some(levels)}: the ratings do not bound the severity",
            "The model fits the better, the farther they and some items or other levels move "
            "apart. They have no number, and their ratings were left out.",
            "Let them rate more persons together with others, on several items, and fit again.",
        )


def _warn_of(title: str, found: str, advice: str) -> Finding:
    return Finding(Severity.SERIOUS, _capital(title), found, advice)


def _find_severe(facet: FacetLevels, fit: LevelFit, study: RatingStudy) -> Iterator[Finding]:
    with np.errstate(invalid="ignore"):
        rows = np.flatnonzero((fit.far_p <= SURE_P) & (np.abs(facet.measure) >= SEVERE))
    if not len(rows):
        return
    rows = rows[np.argsort(-np.abs(facet.measure[rows]))]
    # The mean score of the mean person with the mean rater.
    usual = float(np.nanmean(study.facets["item"].fair))
    sentences = [_tell_severity(facet, row, usual - float(fit.fair[row])) for row in rows.tolist()]
    more = len(sentences) - MOST_NAMES
    evidence = "; ".join(sentences[:MOST_NAMES]) + (f"; and {more} more" if more > 0 else "") + "."
    yield Finding(
        Severity.LOOK,
        _capital(sentences[0]),
        f"{_capital(evidence)} {_say_share(facet)}",
        "Report measures or fair averages, which are adjusted, instead of raw scores; train raters "
        "who differ most.",
    )


def _say_share(facet: FacetLevels) -> str:
    """Say how many levels differ, each by itself: more than chance, where a single one is not."""
    known = int(np.isfinite(facet.se).sum())
    apart = int(facet.differ(SURE_P).sum())
    return (
        f"Each by itself, {apart} of {count_of(known, 'level')} ({apart / max(known, 1):.0%}) "
        f"{'differs' if apart == 1 else 'differ'} from the mean; of equal ones {SURE_P:.0%} would."
    )


def _tell_severity(facet: FacetLevels, row: int, lost: float) -> str:
    word = "severe" if facet.measure[row] > 0 else "lenient"
    gain = "lost" if lost > 0 else "gained"
    return (
        f"{facet.name} {facet.levels[row]} is {abs(facet.measure[row]):.1f} logits {word}: what "
        f"they rate {gain} {abs(lost):.1f} points"
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _find_misfits(study: RatingStudy) -> Iterator[Finding]:
    for is_noisy, title, evidence in (
        (True, "erratic", "follow the other ratings of the same persons less than they should"),
        (False, "too predictable", "vary less than they should, as where a rater avoids ends"),
    ):
        found = [one for one in study.misfits if (one.infit > 1) is is_noisy]
        for facet in dict.fromkeys(one.facet for one in found):
            own = [one for one in found if one.facet == facet]
            pairs = [one for one in own if len(one.levels) > 1]
            levels = [level for one in own for level in one.levels]
            values = ", ".join(f"{one.infit:.2f}" for one in own[:MOST_NAMES])
            yield Finding(
                Severity.LOOK,
                _capital(f"{facet} {name_some(levels)}: ratings are {title}"),
                f"Their ratings {evidence} (infit {values}; 1 is expected)."
                + " Of so few, it cannot be told which one it is." * bool(pairs),
                "Look at their most unexpected ratings; ask how they understood the scale.",
            )


def _find_persons(study: RatingStudy) -> Iterator[Finding]:
    found = study.unexpected_persons
    if found is not None and found.is_beyond:
        yield Finding(
            Severity.LOOK,
            "Persons with unexpected ratings",
            f"The ratings of {found.share:.1%} of the persons have a chance of at most "
            f"{found.chance:.0%}; {found.expected:.1%} are expected, up to {found.limit:.1%}.",
            "Look at the most unexpected ratings below: slips, or other persons' work.",
        )


def _find_equal(facet: FacetLevels, fit: LevelFit) -> Iterator[Finding]:
    with np.errstate(invalid="ignore"):
        equal = (fit.agreement_z > EQUAL_Z) & (fit.agreement > fit.expected + TOO_EQUAL)
    rows = np.flatnonzero(equal).tolist()
    if rows:
        levels, row = [fit.levels[row] for row in rows], rows[0]
        yield Finding(
            Severity.LOOK,
            _capital(f"{facet.name} {name_some(levels)}: too much agreement with others"),
            f"{fit.levels[row]} gave the same score as another in {fit.agreement[row]:.0%} of the "
            f"comparisons; independent raters would in {fit.expected[row]:.0%}.",
            "Ask whether they talked to each other or saw each other's scores. If so, standard "
            "errors are too small.",
        )


def _find_bias(table: BiasTable) -> Iterator[Finding]:
    flagged = table.flagged()
    cases = [
        f"{a} on {b}: {minus(f'{bias:+.1f}')} logits"
        for a, b, bias in zip(flagged.first, flagged.second, flagged.bias, strict=True)
    ]
    if cases:
        yield Finding(
            Severity.LOOK,
            f"{count_of(len(cases), 'combination')} of {table.names[0]} and {table.names[1]} "
            "differ from the sum of both",
            f"After correction for {count_of(len(table.bias), 'test')}: "
            f"{'; '.join(cases[:MOST_NAMES])}.",
            "Positive is harsher than elsewhere. Look at these ratings before you adjust anything.",
        )


# --- for a paper ---------------------------------------------------------------------------------


def list_rater_tables(study: RatingStudy) -> list[PaperTable]:
    """Return a table of every facet and one of the items."""
    tables = []
    for name, fit in study.facets.items():
        shown = {
            "Level": [str(level) for level in fit.levels],
            "n": [str(count) for count in fit.ratings],
            **{
                head: [write_number(value) for value in getattr(fit, column)]
                for head, column in _PAPER_COLUMNS.items()
            },
        }
        if name in study.estimate.facets:
            ends = study.estimate.facets[name].interval()
            shown["95% CI"] = [write_interval(low, high) for low, high in ends.tolist()]
        note = (
            "b = measure in logits, M = mean score, fair M = mean score of the mean person. Infit "
            f"and outfit are mean squares given the total score. {_say_spread(study, name)}"
        )
        title = "Items" if name == ITEM else f"Facet: {name}"
        tables.append(assemble_table(f"{title}: Measures and Fit", shown, note))
    return tables


_PAPER_COLUMNS = {
    "M": "observed", "fair M": "fair", "b": "measure", "SE": "se",
    "Infit": "conditional_infit", "Outfit": "conditional_outfit",
}  # fmt: skip


def write_rater_methods(study: RatingStudy) -> str:
    """Return one paragraph in the past tense, with the references it names."""
    estimate = study.estimate
    kind = "rating scale" if estimate.model == "rating-scale" else "partial credit"
    how = "exact" if estimate.method == "conditional" else "pairwise"
    named = [level for one in study.misfits for level in one.levels]
    found = f"{name_some(named)} did not fit." if named else "None was beyond the limits."
    limits = (
        f"with limits from {study.sets} sets of ratings drawn from the model, which name an "
        "erratic level in 3%, a predictable one in 1% and unexpected persons in 1% of sound sets; "
        "the ratings of the worst were taken out before the others were judged"
        if study.sets
        else "by infit beyond 0.7 and 1.3, as the ratings are too many to be drawn again"
    )
    return (
        f"The analysis covers {study.about}. Measures of the many-facet Rasch model (Linacre, "
        f"1989; {kind}) were estimated by {how} conditional likelihood, with discreet "
        f"{__version__}. {estimate.choice} {estimate.se_method} Persons were measured by weighted "
        "likelihood (Warm, 1989), with severities and thresholds held. Fit is given each person's "
        "total score (Müller, 2020). Levels were judged by how far the other ratings foretell "
        f"theirs, {limits}. {found}"
    )


# --- the page -------------------------------------------------------------------------------


def write_rater_page(
    study: RatingStudy,
    tables: Sequence[BiasTable] = (),
    *,
    title: str = "Ratings",
    scale: Scale | None = None,
) -> str:
    """Return the confidential page on raters, items and persons."""
    values = list_rater_values(study, tables, title=title, scale=scale)
    return write_page("raters.html", values, styles=["style.css", "confidential.css"])


def list_rater_values(
    study: RatingStudy, tables: Sequence[BiasTable], *, title: str, scale: Scale | None = None
) -> PlainDict:
    """Return what the page shows."""
    estimate = study.estimate
    findings = find_rater_problems(study, tables)
    facets = [
        (
            name,
            _say_spread(study, name),
            _list_columns(turn_measures(_join_status(study, name), scale), name),
        )
        for name in (*estimate.facets, "item")
    ]
    return {
        "title": title,
        "summary": study.about + ".",
        "choice": " ".join(filter(None, (estimate.choice, estimate.se_method))),
        "verdict": judge(findings),
        "findings": findings,
        "ruler": draw_ruler(study),
        "facets": facets,
        "categories": _list_columns(_drop_blank(study.categories.to_dict()), "item"),
        "unexpected": _list_columns(_name_score(study.unexpected.to_dict()), "person"),
        "biases": [
            (" and ".join(table.names), _list_columns(table.flagged().to_dict(), table.names[0]))
            for table in tables
            if len(table.flagged().bias)
        ],
        "persons": _list_columns(turn_measures(study.persons.to_dict(), scale), "person"),
        "fit": _say_person_fit(study),
        "limits": study.limits,
        "sets": study.sets,
        "rows": MOST_ROWS,
        "notes": [str(warning) for warning in estimate.warnings],
    }


def turn_measures(columns: Columns, scale: Scale | None) -> Columns:
    """Add measures on a scale: places of persons and items, distances of severities."""
    if scale is None:
        return columns
    is_place = "person" in columns or ITEM in columns
    measure = (scale.apply if is_place else scale.apply_error)(columns["measure"])
    turned = {"scaled_measure": measure, "scaled_se": scale.apply_error(columns["se"])}
    return {**columns, **{name: values.tolist() for name, values in turned.items()}}


@dataclass(frozen=True, eq=False)
class RatingReport(Kept):
    """What the page on raters is made of, so that it can be made again."""

    study: RatingStudy
    tables: tuple[BiasTable, ...]
    title: str
    scale: Scale | None = None

    def write_page(self) -> str:
        """Return the page."""
        return write_rater_page(self.study, self.tables, title=self.title, scale=self.scale)


def _say_spread(study: RatingStudy, name: str) -> str:
    """Say how well the levels of a facet are told apart, as other programs of facets do."""
    if name in study.estimate.facets:
        return _capital("; ".join(study.estimate.facets[name].describe()[1:])) + "."
    reliability = find_reliability(study.estimate.difficulty, study.estimate.se)
    return f"Reliability {reliability:.2f}." if len(study.estimate.items) > 1 else ""


def _say_person_fit(study: RatingStudy) -> str:
    """Say how well persons are told apart, and how many have unexpected ratings."""
    persons, found = study.persons, study.unexpected_persons
    reliability = find_reliability(persons.measure, persons.se)
    told = "" if found is None else (
        f" {found.share:.1%} have ratings with a chance of at most {found.chance:.0%}; up to "
        f"{found.limit:.1%} are expected. p is that chance."
    )  # fmt: skip
    return f"Reliability {reliability:.2f}.{told}"


def _name_score(columns: Columns) -> Columns:
    """Call a single score what it is."""
    return {"score" if name == "observed" else name: cells for name, cells in columns.items()}


def _drop_blank(columns: Columns) -> Columns:
    """Leave out columns that are NaN in all rows."""
    return {name: cells for name, cells in columns.items() if any(cell == cell for cell in cells)}


def _join_status(study: RatingStudy, name: str) -> dict[str, list[Any]]:
    """Return the columns of a facet, with the status beside the measure; items have none here."""
    columns = study.facets[name].to_dict()
    del columns["infit"], columns["outfit"]  # at estimated abilities, for other programs
    if name not in study.estimate.facets:
        of_raters = ("far_p", "agreement", "expected", "agreement_z")
        return {key: cells for key, cells in columns.items() if key not in of_raters}
    status = [str(status).replace("_", " ") for status in study.estimate.facets[name].status]
    first = {key: columns[key] for key in (name, "measure", "se")}
    rows = study.estimate.facets[name].to_dict()
    moves: dict[str, list[Any]] = {
        key: rows[key] for key in ("displacement", "displacement_se") if key in rows
    }
    return {**first, "status": status, **moves, **columns}


def _list_columns(columns: dict[str, list[object]], name: str) -> list[HtmlColumn]:
    """Return the first rows of a table, hardest and most severe as they come."""
    titles = {**_TITLES, "measure": "measure" if name in ("item", "person") else "severity"}
    return [
        HtmlColumn(
            titles.get(key, key), cells[:MOST_ROWS], 3 if key in ("p", "far_p", "adjusted") else 2
        )
        for key, cells in columns.items()
    ]


RULER_ROW = 18.0
#: The bars of persons: at least so wide. They get what the columns of names leave of a page.
PERSONS, AXIS = 120.0, 40.0
#: Widths of the ruler (``style.css`` has them too), and of a column of names at least.
SMALL, MIDDLE, WIDE, NARROW = 560.0, 720.0, 960.0, 150.0
#: Between columns, and names that one row can hold at most.
GAP, MOST_JOINED = 16.0, 30


def draw_ruler(study: RatingStudy) -> Sheet:
    """Draw persons, items, steps and levels of facets on one upright scale."""
    columns = _list_ruler(study)
    ability = study.persons.measure[np.isfinite(study.persons.measure)]
    values = np.concatenate([ability, *(list(values) for _, _, values in columns)])
    values = values[np.isfinite(values)]
    low, high = np.floor(values.min()), np.ceil(values.max())
    room = max(NARROW, (WIDE - PERSONS - AXIS) / len(columns))
    rows = [_list_rows(names, np.asarray(places), room) for _, names, places in columns]
    widths = [
        GAP + max(text_width(words) for words in (title, *(row[1] for row in part)))
        for (title, _, _), part in zip(columns, rows, strict=True)
    ]
    needed = PERSONS + AXIS + sum(widths)
    width = next((size for size in (SMALL, MIDDLE, WIDE) if needed <= size), needed)
    sheet = Sheet(
        x=(0, width), y=(low, high), description=_describe_ruler(study), width=width,
        height=52 + round((high - low) / BIN) * RULER_ROW, left=0, right=0, top=26, bottom=26,
    )  # fmt: skip
    left = width - sum(widths)
    _draw_persons(sheet, ability, left - AXIS)
    for (title, _, _), part, wide in zip(columns, rows, widths, strict=True):
        sheet.text(title, left, 12, kind="quiet")
        for centre, words, tip in part:
            sheet.text(words, left, sheet.up(centre) + 4, tip=tip)
        left += wide
    return sheet


def _list_ruler(study: RatingStudy) -> list[tuple[str, Sequence[str], Any]]:
    estimate = study.estimate
    columns: list[tuple[str, Sequence[str], Any]] = [("items", estimate.items, estimate.difficulty)]
    if max(estimate.steps) > 1:
        steps = estimate.thresholds_to_dict()
        names = [f"{item}.{step}" for item, step in zip(steps["item"], steps["step"], strict=True)]
        columns.append(("steps", names, steps["threshold"]))
    facets = estimate.facets.items()
    return [*columns, *((name, facet.levels, facet.measure) for name, facet in facets)]


def _list_rows(names: Sequence[str], places: Any, room: float) -> list[tuple[float, str, str]]:
    """Return the rows of a column: place, names joined (with how many), all of them as a tip."""
    rows = []
    numbers = np.floor(places / BIN)
    for number in np.unique(numbers[np.isfinite(numbers)]).tolist():
        mine = np.flatnonzero(numbers == number).tolist()
        tip = "\n".join(f"{names[i]}: {minus(f'{places[i]:.2f}')}" for i in mine)
        more = f" ({len(mine)})" if len(mine) > 1 else ""
        joined = " · ".join(names[i] for i in mine[:MOST_JOINED])
        words = shorten_label(joined, room - GAP - text_width(more)) + more
        rows.append(((number + 0.5) * BIN, words, tip))
    return rows


def _describe_ruler(study: RatingStudy) -> str:
    facets = ", ".join(
        f"{name} from {np.nanmin(facet.measure):.2f} to {np.nanmax(facet.measure):.2f}"
        for name, facet in study.estimate.facets.items()
    )
    return (
        f"Vertical ruler in logits: mean person {study.mean_ability:.2f}; items from "
        f"{np.nanmin(study.estimate.difficulty):.2f} to {np.nanmax(study.estimate.difficulty):.2f};"
        f" {facets}. The tables have the numbers."
    )


def _draw_persons(sheet: Sheet, ability: Any, end: float) -> None:
    """Draw bars of persons that end at ``end``, and the scale beside them."""
    low, high = sheet.y
    counts, edges = np.histogram(ability, np.arange(low, high + BIN / 2, BIN))
    unit = (end - 6) / max(int(counts.max(initial=0)), 1)
    sheet.text(count_of(len(ability), "person"), end, 12, anchor="end", kind="quiet")
    for start, count in zip(edges.tolist(), counts.tolist(), strict=False):
        if count:
            tip = minus(f"{count_of(count, 'person')} from {start:g} to {start + BIN:g}")
            sheet.box("box", (end - unit * count, end), (start, start + BIN), tip)
    for tick in range(int(low), int(high) + 1):
        sheet.line("grid", (0, sheet.x[1]), (tick, tick))
        sheet.text(minus(str(tick)), end + AXIS - 16, sheet.up(tick) + 4, anchor="end")
    sheet.text("logits: abler, harder, more severe upwards", 0, sheet.height - 6, kind="quiet")
