"""Every table of an analysis: for files, workbooks, data frames, the terminal and the report.

In: an estimate and its study. Out: :class:`AnalysisTable` values, each with a name, a title, a
sentence (``tables.toml``) and plain columns. Whoever shows a table takes it from here and computes
nothing. Confidential.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.coding.reading import label_scores
from discreet.items.curves import mark_disordered
from discreet.items.cutoffs import list_bands
from discreet.models.item_parameters import known_thresholds
from discreet.persons.scoring import tabulate_scores
from discreet.results.estimate import Estimate
from discreet.results.limits import FIT_HIGH, SURE_T
from discreet.tabular import AnalysisTable, Columns, list_field_columns
from discreet.text import name_some
from discreet.types import BoolArray, FloatArray, Int64Array

if TYPE_CHECKING:
    from discreet.items.cutoffs import FitCutoffs
    from discreet.items.dif import DifTable
    from discreet.items.fit import PersonFit
    from discreet.items.given_totals import UnexpectedAnswers
    from discreet.items.group_curves import GroupCurves
    from discreet.items.residuals import ResidualCorrelations
    from discreet.items.study import Study
    from discreet.persons.scoring import PersonScores

#: What is said of the fit of an item.
FIT_COLUMNS = (
    *("conditional_infit", "conditional_outfit", "infit", "infit_t", "outfit", "outfit_t"),
    *("outfit_without_one", "point_measure", "point_measure_expected", "discrimination"),
)
#: Rows of the table of pairs: those with the largest residual correlations.
MOST_PAIRS = 50_000

#: Items of a test that somebody might answer as a whole.
MOST_SCORED = 1000

#: Unexpected persons that a report shows at least, and at most; the table of persons has them all.
LEAST_MISFITS, MOST_MISFITS = 10, 30

MEASURED = (
    "persons with right and wrong answers",
    "persons with neither the lowest nor the highest score",
)


_TEXTS = tomllib.loads(Path(__file__).with_name("tables.toml").read_text("utf-8"))


def make_shown_table(
    name: str, columns: Columns, *, kind: str = "", **facts: str | float
) -> AnalysisTable:
    """Return a table with its texts, those of its kind where it has some."""
    texts = _TEXTS[name + kind]
    return AnalysisTable(name, texts["title"], texts["about"].format(**facts), columns)


def tabulate_items(
    estimate: Estimate, study: Study | None, remarks: list[list[str]] | None = None
) -> AnalysisTable:
    """Return every item: difficulty, error, fit and remarks."""
    columns = estimate.to_dict()
    if estimate.has_steps:  # the sum of answers is a score
        columns = {"score" if name == "right" else name: one for name, one in columns.items()}
        columns |= {} if estimate.sums is None else {"score": estimate.sums}
    if study is not None:
        columns |= list_field_columns(study.fit, *FIT_COLUMNS)
        columns |= {} if study.limits is None else list_bands(study.limits)
    if remarks is not None:
        columns["remarks"] = [", ".join(texts) for texts in remarks]
    return make_shown_table("items", columns, kind="-steps" * estimate.has_steps)


def tabulate_thresholds(estimate: Estimate) -> AnalysisTable | None:
    """Return every step of every item with its threshold; None of right and wrong answers."""
    if not estimate.has_steps:
        return None
    columns = estimate.thresholds_to_dict()
    falls = {item: mark_disordered(row) for item, row in zip(estimate.items, estimate.thresholds,
                                                             strict=True)}  # fmt: skip
    rows = zip(columns["item"], columns["step"], strict=True)
    columns["order"] = ["wrong order" if falls[item][step - 1] else "" for item, step in rows]
    return make_shown_table("thresholds", columns)


def tabulate_categories(estimate: Estimate, study: Study) -> AnalysisTable | None:
    """Return every category of every item: answers, mean ability, fit; None without steps."""
    if study.categories is None or not estimate.has_steps:
        return None
    columns = study.categories.to_dict()
    if estimate.ladder.categories is not None and study.sampled is not None:
        columns |= _count_categories(estimate, estimate.ladder.categories, columns)
    columns["category"] = _label_categories(estimate, columns)
    names = (
        *("item", "category", "answers", "share", "answers_without_extremes"),
        *("mean_ability", "expected_ability", "infit", "outfit"),
    )
    return make_shown_table("categories", {name: columns[name] for name in names})


def _label_categories(estimate: Estimate, columns: Mapping[str, list[Any]]) -> list[int | str]:
    """Return the categories as the file has them: codes, of turned items theirs, or texts."""
    reading, lowest = estimate.reading, estimate.ladder.lowest
    if reading is None:
        return columns["category"]
    top = {item: own[-1] for item, own in zip(estimate.items, estimate.ladder.kept, strict=True)}
    cells = zip(columns["item"], columns["category"], strict=True)
    labels = [label_scores(reading, item, top[item])[code - lowest] for item, code in cells]
    return [int(label) if label.removeprefix("-").isdecimal() else label for label in labels]


def _count_categories(
    estimate: Estimate, counts: Int64Array, columns: Mapping[str, list[Any]]
) -> Columns:
    """Return answers and shares of all persons, where a sample was looked at."""
    row_of = {item: row for row, item in enumerate(estimate.items)}
    labels = estimate.ladder.labels
    rows = [
        (row_of[item], labels[row_of[item]].index(category))
        for item, category in zip(columns["item"], columns["category"], strict=True)
    ]
    answers = [int(counts[row]) for row in rows]
    total = counts.sum(axis=1)
    return {
        "answers": answers,
        "share": [n / int(total[i]) for n, (i, _) in zip(answers, rows, strict=True)],
    }


def tabulate_raw_scores(estimate: Estimate) -> AnalysisTable | None:
    """Return the ability for every raw score on all items; None where nobody answers so many."""
    if estimate.estimated.sum() > MOST_SCORED:
        return None
    columns = tabulate_scores(estimate).to_dict()
    return make_shown_table("raw_scores", columns, range=_say_range(estimate, columns["score"]))


def _say_range(estimate: Estimate, scores: Sequence[int]) -> str:
    """Say what the sums of answers with steps are made of, and from where to where they go."""
    if not estimate.has_steps:
        return ""
    if known_thresholds(estimate).lowest_sum is None:
        return (
            " Categories that nobody used were closed up: scores count those that are left from 0, "
            "and are not the sums of the data."
        )
    reading = estimate.reading
    turned = " after items were turned round" if reading is not None and reading.reverse else ""
    merged = " and categories merged" if reading is not None and reading.merge else ""
    return (
        f" The score is the sum of the answers as the data code them{turned}{merged}, from "
        f"{scores[0]:,} to {scores[-1]:,}."
    )


def flag_persons(fit: PersonFit, cutoffs: FitCutoffs | None) -> BoolArray:
    """Say whose answers are noisier than the model expects, by more than chance."""
    if cutoffs is not None:
        return cutoffs.unexpected
    with np.errstate(invalid="ignore"):
        inner = (fit.infit > FIT_HIGH) & (fit.infit_t > SURE_T)
        outer = (fit.outfit > FIT_HIGH) & (fit.outfit_t > SURE_T)
    return np.asarray(inner | outer)


def tabulate_persons(
    scores: PersonScores,
    fit: PersonFit,
    unexpected: BoolArray,
    chance: FloatArray | None,
    *,
    has_steps: bool,
    sampled: bool,
) -> AnalysisTable:
    """Return every person, or those of the sample: ability, error, fit and flags."""
    flags = ["unexpected answers" if odd else "" for odd in unexpected.tolist()]
    names = ("conditional_infit", "conditional_outfit", "infit", "infit_t", "outfit", "outfit_t")
    columns = {
        **scores.to_dict(),
        **list_field_columns(fit, *names),
        **({} if chance is None else {"chance": chance.tolist()}),
        "flag": flags,
    }
    name = "persons_sample" if sampled else "persons"
    return make_shown_table(name, columns, measured=MEASURED[has_steps])


def tabulate_misfits(persons: AnalysisTable, *, has_steps: bool) -> AnalysisTable | None:
    """Return the persons with the least expected answers, in any case some."""
    columns = persons.columns
    odd = [-infit for infit in columns["conditional_infit"]]
    rank = list(zip(columns.get("chance", odd), odd, range(len(odd)), strict=True))
    rows = [i for *_, i in sorted(one for one in rank if one[0] == one[0])]
    if not rows:
        return None
    flagged = sum(flag != "" for flag in columns["flag"])
    listed = rows[: min(max(flagged, LEAST_MISFITS), MOST_MISFITS)]
    fit = ("chance", "conditional_infit", "conditional_outfit")
    names = [name for name in ("person", "ability", "se", "score", "answered", *fit)
             if name in columns]  # fmt: skip
    shown = {name: [columns[name][i] for i in listed] for name in names}
    return make_shown_table("misfits", shown, kind="-steps" * has_steps)


def tabulate_unexpected(answers: UnexpectedAnswers) -> AnalysisTable:
    """Return the least expected answers."""
    return make_shown_table("unexpected", answers.to_dict())


def tabulate_differences(differences: Mapping[str, DifTable]) -> AnalysisTable | None:
    """Return every comparison of groups, item by item."""
    if not differences:
        return None
    parts = []
    for group, table in differences.items():
        part = table.to_dict()
        parts.append({"item": part.pop("item"), "group": [group] * len(table.item), **part})
    return make_shown_table("groups", _join_columns(parts))


def tabulate_curves(curves: Mapping[str, GroupCurves]) -> AnalysisTable | None:
    """Return the tests whether what groups differ by depends on ability."""
    parts = [{**one.to_dict(), "group": [name] * len(one.item)} for name, one in curves.items()]
    return make_shown_table("group_curves", _join_columns(parts)) if parts else None


def _join_columns(parts: Sequence[Columns]) -> Columns:
    return {name: [value for part in parts for value in part[name]] for name in parts[0]}


def tabulate_pairs(residuals: ResidualCorrelations, cutoffs: FitCutoffs | None) -> AnalysisTable:
    """Return pairs of items, those with the largest residual correlations first."""
    columns = residuals.to_dict()
    if cutoffs is not None:
        row_of = {item: row for row, item in enumerate(cutoffs.items)}
        pairs = zip(columns["item"], columns["other"], strict=True)
        columns["limit"] = [float(cutoffs.q3[row_of[a], row_of[b]]) for a, b in pairs]
    columns = {name: values[:MOST_PAIRS] for name, values in columns.items()}
    return make_shown_table("pairs", columns, mean=residuals.mean)


def list_study_tables(estimate: Estimate, study: Study) -> Iterator[AnalysisTable]:
    """Yield every table that a study has."""
    yield from filter(
        None,
        (
            tabulate_categories(estimate, study),
            tabulate_differences(study.differences or {}),
            tabulate_curves(study.group_curves),
            study.misfits,
            study.unexpected,
        ),
    )
    components = study.dimensionality
    for name, result in (
        ("labels", study.mislabelled),
        ("options", study.distractors),
        ("dimensions", components),
        ("contrast", components and components.contrast),
    ):
        if result is not None:
            yield make_shown_table(name, result.to_dict())
    yield _tabulate_reliability(study)
    yield from _list_score_tables(study)


def _tabulate_reliability(study: Study) -> AnalysisTable:
    rows = [one.to_dict() for one in (study.reliability, study.item_reliability)]
    numbers = {name: [row[name] for row in rows] for name in rows[0]}
    return make_shown_table("reliability", {"of": ["persons", "items"], **numbers})


def _list_score_tables(study: Study) -> Iterator[AnalysisTable]:
    """Yield the comparisons of persons with low and high scores, of the same items."""
    andersen = study.andersen
    if andersen is None:
        return
    groups = ", ".join(
        f"{n:,} {label}" for label, n in zip(andersen.groups, andersen.persons, strict=True)
    )
    which = f"Persons are split at the {andersen.split} ({groups})."
    if andersen.excluded:
        which += f" Left out of both tests: {name_some(andersen.excluded, len(andersen.excluded))}."
    for name, test in (("andersen", andersen), ("wald", study.wald)):
        if test is not None:
            columns = _add_left_out(test.to_dict(), andersen.excluded)
            yield make_shown_table(name, columns, which=which)


def _add_left_out(columns: Mapping[str, list[object]], items: Sequence[str]) -> Columns:
    """Return columns with a row for each item that was left out, and a status that says so."""
    compared = len(columns["item"])
    status = columns.get("status", ["compared"] * compared)
    more = {"item": list(items), "status": ["left out"] * len(items)}
    nothing = [float("nan")] * len(items)
    every = {**columns, "status": status}
    return {name: [*values, *more.get(name, nothing)] for name, values in every.items()}
