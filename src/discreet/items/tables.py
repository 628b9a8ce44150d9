"""Every table of an analysis: for files, workbooks, data frames, the terminal and the report.

In: an estimate, its diagnostics and the evidence behind them. Out: :class:`AnalysisTable` values,
each with a name, a title, a sentence and plain columns. Whoever shows a table takes it from here
and computes nothing. The titles and digits of columns are here too.
Confidential.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.items.curves import mark_disordered
from discreet.persons.scoring import tabulate_scores
from discreet.results.estimate import Estimate
from discreet.results.limits import FIT_HIGH, FIT_LOW, SURE_T
from discreet.tabular import AnalysisTable
from discreet.text import name_some
from discreet.types import BoolArray, Int64Array

if TYPE_CHECKING:
    from discreet.items.dif import DifTable
    from discreet.items.evidence import Evidence
    from discreet.items.summary import Diagnostics

#: What is said of the fit of an item.
FIT_COLUMNS = (
    *("infit", "infit_t", "outfit", "outfit_t", "outfit_bounded", "outfit_bounded_t"),
    *("outfit_without_one", "point_measure", "point_measure_expected", "discrimination"),
)
#: Where it lies when the model holds.
LIMIT_COLUMNS = ("infit_low", "infit_high", "outfit_low", "outfit_high")

#: Rows of the table of pairs: those with the largest residual correlations.
MOST_PAIRS = 50_000

#: Items of a test that somebody might answer as a whole.
MOST_SCORED = 1000

#: Misfitting persons that a report shows; the table of persons has them all.
MOST_MISFITS = 30

#: What the tables of items and of persons with unexpected answers are about, and whose fit it is:
#: of right and wrong answers, and of steps.
ABOUT_ITEMS = (
    "Difficulties in logits, harder is larger; infit and outfit are 1 and the discrimination is 1 "
    "where the model holds.",
    "The difficulty is the item's location in logits, the mean of its thresholds, harder is "
    "larger; the score is the sum of the answers; infit and outfit are 1 and the discrimination is "
    "1 where the model holds.",
)
ABOUT_MISFITS = (
    "Wrong where they should be right, or right where they should be wrong: look for guessing, "
    "carelessness, copied or lost answers.",
    "Low where they should be high, or high where they should be low: look for carelessness, "
    "answers all in one column, copied or lost answers.",
)
MEASURED = (
    "persons with right and wrong answers",
    "persons with neither the lowest nor the highest score",
)


def tabulate_items(
    estimate: Estimate, diagnostics: Diagnostics | None, remarks: list[list[str]] | None = None
) -> AnalysisTable:
    """Return every item: difficulty, error, fit and remarks."""
    columns = estimate.to_dict()
    if estimate.has_steps:  # the sum of answers is a score
        columns = {"score" if name == "right" else name: one for name, one in columns.items()}
    if diagnostics is not None:
        # An older calibration does not have all of them.
        names = (*FIT_COLUMNS, *LIMIT_COLUMNS)
        fit_columns = {name: [*getattr(diagnostics, name)] for name in names}
        columns |= {name: values for name, values in fit_columns.items() if values}
    if remarks is not None:
        columns["remarks"] = [", ".join(texts) for texts in remarks]
    return AnalysisTable("items", "All items", ABOUT_ITEMS[estimate.has_steps], columns)


def tabulate_thresholds(estimate: Estimate) -> AnalysisTable | None:
    """Return every step of every item with its threshold; None of right and wrong answers."""
    if not estimate.has_steps:
        return None
    columns = estimate.thresholds_to_dict()
    falls = {item: mark_disordered(row) for item, row in zip(estimate.items, estimate.thresholds,
                                                             strict=True)}  # fmt: skip
    rows = zip(columns["item"], columns["step"], strict=True)
    columns["order"] = ["wrong order" if falls[item][step - 1] else "" for item, step in rows]
    return AnalysisTable(
        "thresholds",
        "Thresholds",
        "In logits: where the categories on both sides of a step are equally likely. Two "
        "neighbours in the wrong order have a category between them that is nowhere the most "
        "likely one.",
        columns,
    )


def tabulate_categories(evidence: Evidence) -> AnalysisTable | None:
    """Return every category of every item: answers, mean ability, fit; None without steps."""
    categories, estimate = evidence.fit.categories, evidence.estimate
    if categories is None or not estimate.has_steps:
        return None
    columns = categories.to_dict()
    if estimate.ladder.categories is not None and evidence.sampled is not None:
        columns |= _count_categories(estimate, estimate.ladder.categories, columns)
    names = (
        *("item", "category", "answers", "share", "answers_without_extremes"),
        *("mean_ability", "expected_ability", "infit", "outfit"),
    )
    return AnalysisTable(
        "categories",
        "Categories",
        "All answers in each category, and the mean ability of the persons in it, which should "
        "rise from category to category. Abilities and fit are those of persons with neither the "
        "lowest nor the highest score; their answers are counted apart.",
        {name: columns[name] for name in names},
    )


def _count_categories(
    estimate: Estimate, counts: Int64Array, columns: Mapping[str, list[Any]]
) -> dict[str, list[Any]]:
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
    return AnalysisTable(
        "raw_scores",
        "From raw score to ability",
        "For somebody who answered every item that has a difficulty; weighted likelihood (Warm).",
        columns,
    )


def flag_persons(evidence: Evidence) -> BoolArray:
    """Say whose answers are noisier than the model expects, by more than chance."""
    if evidence.cutoffs is not None:
        return evidence.cutoffs.unexpected
    fit = evidence.fit.persons
    with np.errstate(invalid="ignore"):
        inner = (fit.infit > FIT_HIGH) & (fit.infit_t > SURE_T)
        outer = (fit.outfit > FIT_HIGH) & (fit.outfit_t > SURE_T)
    return np.asarray(inner | outer)


def tabulate_persons(evidence: Evidence) -> AnalysisTable:
    """Return every person, or those of the sample: ability, error, fit and flags."""
    fit = evidence.fit.persons
    misfit = flag_persons(evidence).tolist()
    with np.errstate(invalid="ignore"):
        steady = ((fit.outfit < FIT_LOW) & (fit.infit_t < -SURE_T)).tolist()
    flags = [
        "unexpected answers" if odd else "too predictable" if flat else ""
        for odd, flat in zip(misfit, steady, strict=True)
    ]
    names = ("infit", "infit_t", "outfit", "outfit_t")
    numbers = {name: getattr(fit, name).tolist() for name in names}
    all_of_them = evidence.sampled is None
    some = "" if all_of_them else " Evenly chosen ones of very many; `discreet score` has them all."
    return AnalysisTable(
        "persons" if all_of_them else "persons_sample",
        "Persons" if all_of_them else "Persons, a sample",
        "Abilities by weighted likelihood, which has a number for every score; fit at the maximum "
        f"likelihood ability, for {MEASURED[evidence.estimate.has_steps]}.{some}",
        {**evidence.scores.to_dict(), **numbers, "flag": flags},
    )


def tabulate_misfits(persons: AnalysisTable, *, has_steps: bool) -> AnalysisTable | None:
    """Return the persons with unexpected answers, the least expected first."""
    columns = persons.columns
    rows = [i for i, flag in enumerate(columns["flag"]) if flag == "unexpected answers"]
    if not rows:
        return None
    worst = sorted(rows, key=lambda i: -max(columns["infit_t"][i], columns["outfit_t"][i]))
    fit = ("infit", "infit_t", "outfit", "outfit_t")
    names = ("person", "ability", "se", "score", "answered", *fit)
    listed = worst[:MOST_MISFITS]
    note = f" The {len(listed)} worst of {len(rows):,}." if len(rows) > len(listed) else ""
    return AnalysisTable(
        "misfits",
        "Persons with unexpected answers",
        f"{ABOUT_MISFITS[has_steps]}{note}",
        {name: [columns[name][i] for i in listed] for name in names},
    )


def tabulate_differences(differences: Mapping[str, DifTable]) -> AnalysisTable | None:
    """Return every comparison of groups, item by item."""
    if not differences:
        return None
    parts = []
    for group, table in differences.items():
        part = table.to_dict()
        parts.append({"item": part.pop("item"), "group": [group] * len(table.item), **part})
    return AnalysisTable(
        "groups",
        "Differences between groups of persons",
        "How much harder an item is for a group than its ability explains, in logits "
        "(differential item functioning).",
        {name: [value for part in parts for value in part[name]] for name in parts[0]},
    )


def tabulate_pairs(evidence: Evidence) -> AnalysisTable | None:
    """Return pairs of items, those with the largest residual correlations first."""
    if evidence.pairs is None:
        return None
    columns = evidence.pairs.to_dict()
    if (cutoffs := evidence.cutoffs) is not None:
        row_of = {item: row for row, item in enumerate(cutoffs.items)}
        pairs = zip(columns["item"], columns["other"], strict=True)
        columns["limit"] = [float(cutoffs.q3[row_of[a], row_of[b]]) for a, b in pairs]
    return AnalysisTable(
        "pairs",
        "Residual correlations of pairs of items",
        f"Q3 (Yen 1984), and how far it lies above the mean {evidence.pairs.mean:.3f}; the limit "
        "is the largest Q3 when the model holds, all statistics of a report taken together.",
        {name: values[:MOST_PAIRS] for name, values in columns.items()},
    )


def list_evidence_tables(evidence: Evidence) -> Iterator[AnalysisTable]:
    """Yield the tables that need the evidence itself, beyond what diagnostics keep of it."""
    yield tabulate_persons(evidence)
    if evidence.mislabelled is not None:
        yield AnalysisTable(
            "labels",
            "Items that may be mislabelled",
            "The probability that an item is answered right less often where persons are abler; "
            "the most suspicious first.",
            evidence.mislabelled.to_dict(),
        )
    yield AnalysisTable(
        "reliability",
        "Reliability of persons and of items",
        "Share of the variance that is not error, and how many errors wide the spread is.",
        evidence.fit.to_dict(),
    )
    yield from _list_score_tables(evidence)
    if evidence.distractors is not None:
        yield AnalysisTable(
            "options",
            "What was chosen",
            "Every option: its share, the mean ability of those who chose it, and a flag where a "
            "wrong one attracts abler persons.",
            evidence.distractors.to_dict(),
        )
    pairs = tabulate_pairs(evidence)
    if pairs is not None:
        yield pairs


def _list_score_tables(evidence: Evidence) -> Iterator[AnalysisTable]:
    """Yield the comparisons of persons with low and high scores, of the same items."""
    andersen = evidence.andersen
    if andersen is None:
        return
    groups = ", ".join(
        f"{n:,} {label}" for label, n in zip(andersen.groups, andersen.persons, strict=True)
    )
    which = f"Persons are split at the {andersen.split} ({groups})."
    if andersen.excluded:
        which += f" Left out of both tests: {name_some(andersen.excluded, len(andersen.excluded))}."
    yield AnalysisTable(
        "andersen",
        "Difficulties of persons with low and high scores",
        "Behind Andersen's test: each group calibrated on its own, mean zero over the compared "
        f"items in each. {which}",
        _add_left_out(andersen.to_dict(), andersen.excluded),
    )
    if evidence.wald is not None:
        yield AnalysisTable(
            "wald",
            "Wald tests, item by item",
            "Whether an item has the same difficulty for persons with low and with high scores. "
            f"{which}",
            _add_left_out(evidence.wald.to_dict(), andersen.excluded),
        )


def _add_left_out(columns: Mapping[str, list[Any]], items: Sequence[str]) -> dict[str, list[Any]]:
    """Return columns with a row for each item that was left out, and a status that says so."""
    compared = len(columns["item"])
    status = columns.get("status", ["compared"] * compared)
    more = {"item": list(items), "status": ["left out"] * len(items)}
    nothing = [float("nan")] * len(items)
    every = {**columns, "status": status}
    return {name: [*values, *more.get(name, nothing)] for name, values in every.items()}


def list_dimension_tables(diagnostics: Diagnostics) -> Iterator[AnalysisTable]:
    """Yield the components of the residuals, and the loadings of the first."""
    dimensions = diagnostics.dimensionality
    if dimensions is None:
        return
    yield AnalysisTable(
        "dimensions",
        "Components of the residuals",
        "Eigenvalues, in items, beside those of answers simulated from the model.",
        dimensions.to_dict(),
    )
    yield AnalysisTable(
        "contrast",
        "Loadings on the first component",
        "The two ends may measure different things.",
        dimensions.contrast.to_dict(),
    )
