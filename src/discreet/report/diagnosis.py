"""The diagnosis of a test: whether the model holds, and all that its report shows, computed once.

In: answers and an estimate, or its diagnostics. Out: a :class:`ModelCheck` with a row for each test
of the model: a number, a verdict and advice; and a :class:`Diagnosis`, which a page turns into
words, tables and pictures without asking anything else. Numbers come from the diagnostics and
verdicts from the findings. A verdict tells where to look; no model holds exactly. A
:class:`FitChange` holds two checks of the same answers side by side, before and after a change such
as merged categories. Confidential.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any

from discreet.answers.responses import Responses
from discreet.atomic import staged, write_text
from discreet.errors import BadUsage
from discreet.items.curves import ItemCurve, ThresholdRows, threshold_rows, worst_curves
from discreet.items.distractors import OptionMap, option_maps
from discreet.items.residuals import InformationCurve, trace_information
from discreet.items.summary import Diagnostics, diagnose
from discreet.items.tables import (
    list_dimension_tables,
    tabulate_items,
    tabulate_raw_scores,
    tabulate_thresholds,
)
from discreet.models.calibrate import calibrate
from discreet.report import model_findings as model
from discreet.report import pictures
from discreet.report.findings import (
    ITEM_CHECKS,
    TEST_CHECKS,
    find_problems,
    remarks_on_items,
    say_limits,
    say_pair_limit,
    tell_few,
)
from discreet.results.calibrated import Calibration, as_estimate
from discreet.results.estimate import Estimate
from discreet.results.limits import ANDERSEN_LEVEL
from discreet.tabular import AnalysisTable, Tabular
from discreet.text import count_of
from discreet.types import BoolArray

HOLDS, UNTESTED, TOO_FEW = "holds", "not tested", "too few persons"
#: Verdicts where there is no finding; the others are words of its severity.
NEEDS_STEPS = "partial credit needed"


@dataclass(frozen=True)
class ModelTest(Tabular):
    """One test of the model.

    Attributes
    ----------
    name, asks
        What is tested, and the question behind it.
    statistic, degrees, p_value
        The number, what it is compared with, and how likely one as large is by chance; ``None``
        where the test has no such thing.
    verdict
        ``holds``, ``worth a look``, ``serious``, ``alarm``, or ``not tested``. Below 30 persons
        ``too few persons`` instead of ``holds``. Of the steps ``partial credit needed`` where that
        was fitted and a rating scale would not do.
    found, advice
        What the number means, and what to do.

    Examples
    --------
    >>> import discreet
    >>> from discreet import analysis
    >>> analysis.check_model(discreet.datasets.lsat()).tests[0].verdict
    'holds'
    """

    name: str
    asks: str
    statistic: float | None
    degrees: int | None
    p_value: float | None
    verdict: str
    found: str
    advice: str

    def to_dict(self) -> dict[str, Any]:
        """One row."""
        return dict(vars(self))


@dataclass(frozen=True, eq=False)
class ModelCheck(Tabular):
    """All tests of a model, with the estimate that they are about. Confidential.

    Attributes
    ----------
    estimate, diagnostics
        The calibration, and what the answers say beyond it.
    tests
        One :class:`ModelTest` for each question.

    Examples
    --------
    >>> import discreet
    >>> from discreet import analysis
    >>> check = analysis.check_model(discreet.datasets.lsat())
    >>> check["Andersen"].verdict
    'holds'
    """

    estimate: Estimate
    diagnostics: Diagnostics
    tests: tuple[ModelTest, ...]

    def to_dict(self) -> dict[str, list[Any]]:
        """One row per test."""
        return {
            field.name: [getattr(test, field.name) for test in self.tests]
            for field in fields(ModelTest)
        }

    @property
    def doubts(self) -> tuple[str, ...]:
        """What to know before any verdict: that there are too few persons."""
        findings = model.check_enough_persons(self.estimate, self.diagnostics)
        return tuple(f"{finding.title}. {finding.found} {finding.advice}" for finding in findings)

    def describe(self) -> list[str]:
        """Return the doubts first, then what this is."""
        return [*self.doubts, *super().describe()]

    def write_tables(self, path: str | PathLike[str]) -> None:
        """Write tables and methods for a paper, in APA form, as Word (.docx) or Markdown (.md).

        Raises
        ------
        BadUsage
            If the name ends otherwise.
        MissingExtra
            If Word is wanted without the extra ``files``.
        """
        from discreet.report.paper import write_markdown_tables, write_word_tables

        target, test = Path(path), diagnose_test(self.estimate, self.diagnostics)
        if target.suffix == ".docx":
            with staged(target.parent, [target.name]) as stage:
                write_word_tables(stage / target.name, test)
        elif target.suffix == ".md":
            write_text(target, write_markdown_tables(test))
        else:
            raise BadUsage(f"tables are written as .docx or .md, found {target.name!r}")

    def write_item_sheets(self, path: str | PathLike[str]) -> None:
        """Write an HTML page with a sheet for each item, which prints one item a page."""
        from discreet.report.page import write_item_sheets

        write_text(Path(path), write_item_sheets(diagnose_test(self.estimate, self.diagnostics)))


def check_model(responses: Responses, estimate: Calibration | None = None) -> ModelCheck:
    """Test whether the model holds for these answers. Confidential.

    Parameters
    ----------
    responses
        As for :func:`discreet.score`. Group columns are compared too.
    estimate
        Their calibration; without one they are calibrated first.
    reading
        The keywords of :func:`discreet.read_responses`.

    Raises
    ------
    BadUsage
        If no person has both right and wrong answers to items with a difficulty.

    Examples
    --------
    >>> import discreet
    >>> found = check_model(discreet.datasets.lsat())
    >>> [(test.name, test.verdict) for test in found.tests][:2]
    [('Andersen', 'holds'), ('Martin-Löf', 'holds')]
    """
    calibration = (
        calibrate(responses) if estimate is None else as_estimate(estimate, "a check of the model")
    )
    diagnostics = diagnose(responses, calibration)
    return ModelCheck(calibration, diagnostics, list_tests(calibration, diagnostics))


def list_tests(estimate: Estimate, diagnostics: Diagnostics) -> tuple[ModelTest, ...]:
    """Return every test of the model that was made, and those that could not be.

    Items that run against the others come first: they spoil every other test.
    """
    checks = (
        *(_direction, _andersen, _martin_loef, _step_models, _dimensionality, _dependence),
        *(_item_fit, _person_fit, _ability_errors, _groups),
    )
    tests = [test for check in checks if (test := check(estimate, diagnostics)) is not None]
    if tests[0].name == DIRECTION and model.has_many_reversed(estimate, diagnostics):
        first = "First see the direction of the items, then test again."
        tests[1:] = [
            test
            if test.verdict in (HOLDS, UNTESTED)
            else replace(test, advice=f"{first} {test.advice}")
            for test in tests[1:]
        ]
    too_few = [*model.check_enough_persons(estimate, diagnostics)]
    return tuple(_doubt(test, too_few[0]) if too_few else test for test in tests)


def _doubt(test: ModelTest, finding: model.Finding) -> ModelTest:
    """Take back that the model holds where persons are too few to say so."""
    if test.verdict not in (HOLDS, NEEDS_STEPS):
        return test
    return replace(test, verdict=TOO_FEW, advice=finding.advice)


def _direction(estimate: Estimate, diagnostics: Diagnostics) -> ModelTest | None:
    """Tell items that run against the others; where there are none, this is no test."""
    findings = [
        *model.check_reversed(estimate, diagnostics),
        *model.tell_suspects(diagnostics.mislabelled),
    ]
    if not findings:
        return None
    correlations = [value for value in diagnostics.point_measure if value is not None]
    asks = "Do all items point the same way?"
    return _tell(DIRECTION, asks, (min(correlations, default=None), None, None), "", findings)


Numbers = tuple[float | None, int | None, float | None]

DIRECTION = "direction"
BLIND = (
    "It sees an ability that only hard items ask for, or only easy ones. It does not see two "
    "skills that easy and hard items ask for alike: dimensionality does, and this test with parts "
    "that you name (run_martin_loef)."
)


def _tell(
    name: str, asks: str, numbers: Numbers | None, fine: str, findings: Iterable[model.Finding]
) -> ModelTest:
    """Put a test together: its verdict is that of the worst finding, if there is one."""
    if numbers is None:
        return ModelTest(name, asks, None, None, None, UNTESTED, fine, "")
    ranked = sorted(findings, key=lambda finding: finding.severity)
    if not ranked:
        return ModelTest(name, asks, *numbers, HOLDS, fine, "")
    summary, advice = (
        " ".join(getattr(finding, part) for finding in ranked) for part in ("found", "advice")
    )
    return ModelTest(name, asks, *numbers, ranked[0].severity.word, summary, advice)


def _andersen(_: Estimate, diagnostics: Diagnostics) -> ModelTest:
    numbers = diagnostics.andersen
    fine = "Persons with low and with high scores could not be compared; the notes say why."
    if numbers is not None:
        fine = (
            f"Calibrating them apart explains no more than chance (chi-squared {numbers[0]:.2f}, "
            f"{numbers[1]} degrees of freedom).{model.say_split(diagnostics)}"
        )
    asks = (
        "Are the items equally hard, relative to each other, for persons with low and high scores?"
    )
    return _tell("Andersen", asks, numbers, fine, TEST_CHECKS["equal difficulties"](diagnostics))


def _step_models(estimate: Estimate, diagnostics: Diagnostics) -> ModelTest | None:
    numbers = diagnostics.step_models
    if numbers is None:
        return None
    result = f"{model.say_test(*numbers)}.{model.say_left_out(diagnostics, 'steps')}"
    asks = "Do all items have the same distances between their steps, as in a rating scale?"
    if numbers[2] >= ANDERSEN_LEVEL:
        fine = f"A rating scale describes the answers as well as partial credit does: {result}"
        return _tell("steps", asks, numbers, fine, ())
    fine = f"Items differ in the distances between their steps, as partial credit has it: {result}"
    test = _tell("steps", asks, numbers, fine, model.check_distances(estimate, diagnostics))
    return replace(test, verdict=NEEDS_STEPS) if test.verdict == HOLDS else test


def _martin_loef(_: Estimate, diagnostics: Diagnostics) -> ModelTest:
    numbers = diagnostics.martin_loef
    fine = "The easier and the harder half could not be compared; the notes say why."
    if numbers is not None:
        fine = (
            f"Two abilities explain no more than chance (chi-squared {numbers[0]:.2f}, "
            f"{numbers[1]} degrees of freedom)."
            f"{model.say_left_out(diagnostics, 'Martin-Löf')} {BLIND}"
        )
    asks = "Do the easier and the harder half of the items measure the same?"
    return _tell("Martin-Löf", asks, numbers, fine, TEST_CHECKS["easier and harder"](diagnostics))


def _dimensionality(_: Estimate, diagnostics: Diagnostics) -> ModelTest:
    dimensions = diagnostics.dimensionality
    fine, numbers = "The notes say why.", None
    if dimensions is not None:
        numbers = (dimensions.eigenvalue[0], None, dimensions.p_value[0])
        fine = model.say_component(dimensions)
    findings = TEST_CHECKS["dimensionality"](diagnostics)
    return _tell("dimensionality", "Do the items measure one thing?", numbers, fine, findings)


def _dependence(_: Estimate, diagnostics: Diagnostics) -> ModelTest:
    pairs = diagnostics.dependent
    numbers = None if pairs is None else (pairs[0][2] if pairs else None, None, None)
    fine = (
        "Too many items and persons for all pairs."
        if pairs is None
        else f"No pair of items depends on each other. {say_pair_limit(diagnostics)}"
    )
    findings = TEST_CHECKS["dependent items"](diagnostics)
    asks = "Do pairs of items share more than the ability?"
    return _tell("dependence", asks, numbers, fine, findings)


def _item_fit(estimate: Estimate, diagnostics: Diagnostics) -> ModelTest:
    fits = {
        name: [fit_value for fit_value in getattr(diagnostics, name) if fit_value is not None]
        for name in ("infit", "outfit")
    }
    ranges = [
        f"{name} from {min(values):.2f} to {max(values):.2f}"
        for name, values in fits.items()
        if values
    ]
    numbers = (max(max(values, default=1.0) for values in fits.values()), None, None)
    fine = (
        f"Mean squares: {', '.join(ranges)}. {say_limits(diagnostics)}"
        f"{tell_few(estimate, diagnostics)}"
    )
    asks = "Are answers to each item as predictable as the model says?"
    findings = ITEM_CHECKS["item fit"](estimate, diagnostics)
    return _tell("item fit", asks, numbers, fine, findings)


def _person_fit(_: Estimate, diagnostics: Diagnostics) -> ModelTest | None:
    if diagnostics.misfitting is None:  # an older calibration
        return None
    share = diagnostics.misfitting / max(diagnostics.measured, 1)
    fine = (
        f"{count_of(diagnostics.misfitting, 'person')} of {diagnostics.measured:,} ({share:.1%}) "
        "with unexpected answers, no more than by chance."
    )
    asks = "Do persons answer as their ability says?"
    findings = TEST_CHECKS["unexpected persons"](diagnostics)
    return _tell("person fit", asks, (share, None, None), fine, findings)


def _ability_errors(_: Estimate, diagnostics: Diagnostics) -> ModelTest | None:
    if diagnostics.ability_errors is None:
        return None
    z, p_value, times = diagnostics.ability_errors
    fine = (
        "Abilities on the easier and on the harder half of the items differ as their standard "
        f"errors say ({times:.2f} times as much; 1 is expected)."
    )
    asks = "Do the standard errors of abilities say how sure these are?"
    findings = TEST_CHECKS["errors of abilities"](diagnostics)
    return _tell("ability errors", asks, (z, None, p_value), fine, findings)


def _groups(_: Estimate, diagnostics: Diagnostics) -> ModelTest | None:
    if diagnostics.differing is None:
        return None
    numbers = (float(len({row[0] for row in diagnostics.differing})), None, None)
    asks = "Are the items equally hard for groups of persons of equal ability?"
    fine = "No item differs by more than chance and more than negligibly."
    return _tell("groups", asks, numbers, fine, TEST_CHECKS["groups"](diagnostics))


@dataclass(frozen=True)
class FitChange(Tabular):
    """Numbers before and after a change. Confidential.

    Attributes
    ----------
    name
        What the number is.
    before, after
        ``None`` where there is no such number.

    Examples
    --------
    >>> from discreet import analysis
    >>> analysis.FitChange(("infit of Q1",), (1.2,), (1.0,))["infit of Q1"].after
    1.0
    """

    name: tuple[str, ...]
    before: tuple[int | float | None, ...]
    after: tuple[int | float | None, ...]

    def to_dict(self) -> dict[str, list[Any]]:
        """One list per column."""
        return {name: list(getattr(self, name)) for name in ("name", "before", "after")}


def compare_fit(before: ModelCheck, after: ModelCheck) -> FitChange:
    """Return how a change of the answers changed the fit. Confidential.

    Parameters
    ----------
    before, after
        From :func:`discreet.analysis.check_model`, on the same items. Fit is shown of the items
        whose categories differ.

    Raises
    ------
    BadUsage
        If the two are about different items, or no item's categories differ.

    Examples
    --------
    >>> import numpy as np, discreet
    >>> from discreet import analysis
    >>> simulation = discreet.simulate(200, 4, steps=3, rng=np.random.default_rng(0))
    >>> codes = simulation.responses.to_array().astype(float)
    >>> before = analysis.check_model(codes)
    >>> after = analysis.check_model(codes, merge={"0": [[2, 3]]})
    >>> compare_fit(before, after).name[:3]
    ('infit of 0', 'outfit of 0', 'person reliability')
    """
    if before.estimate.items != after.estimate.items:
        raise BadUsage("a change of fit can be told only of the same items in the same order")
    steps = zip(before.estimate.steps, after.estimate.steps, strict=True)
    changed = [index for index, (first, second) in enumerate(steps) if first != second]
    if not changed:
        raise BadUsage(
            "no item has other categories than before, so there is nothing to compare; merge "
            "categories with merge= (--merge ITEM:2+3)"
        )
    old, new = (dict(_list_numbers(check, changed)) for check in (before, after))
    return FitChange(tuple(old), tuple(old.values()), tuple(new.values()))


def _list_numbers(check: ModelCheck, items: list[int]) -> Iterator[tuple[str, float | None]]:
    """Yield the fit of these items and of the whole test, by name."""
    diagnostics = check.diagnostics
    for index in items:
        yield f"infit of {check.estimate.items[index]}", diagnostics.infit[index]
        yield f"outfit of {check.estimate.items[index]}", diagnostics.outfit[index]
    yield "person reliability", diagnostics.reliability
    yield "Cronbach's alpha", diagnostics.alpha
    yield from _count_faults(check)


def _count_faults(check: ModelCheck) -> Iterator[tuple[str, int]]:
    table = model.find_kept(check.diagnostics, "categories")
    yield "thresholds in the wrong order", len(model.list_disordered(check.estimate))
    yield "categories with few answers", len(model.list_rare(check.estimate))
    falls = [] if table is None else model.list_falls(table.columns)
    yield "categories with persons no abler", len(falls)


#: Item curves shown: those of the items that fit worst.
CURVES = 12


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What is wrong with a test, what is known of every item, and the figures.

    Attributes
    ----------
    estimate, statistics
        The calibration, and what the answers say beyond it; ``None`` without answers.
    known, summary
        Which items have a difficulty, and four facts about them.
    tables
        Every table that can be made without the answers, by name.
    findings, fine
        What is wrong, the most serious first; and the checks that found nothing.
    remarks
        For each item what is remarkable, in few words.
    dependent_pairs
        How many pairs of items depend on each other so much that it matters.
    information, most_error
        Precision along the scale, and up to which standard error it is worth showing.
    difficulties
        The items in order, where there are no persons to show beside them.
    thresholds
        Those of all items with steps; ``None`` of right and wrong answers.
    wright, infit, outfit, curves, contrast, options, differences
        Figures about persons, fit, dimensions, chosen options and groups; ``None`` without
        answers, and options without a key.
    """

    estimate: Estimate
    statistics: Diagnostics | None
    known: BoolArray
    tables: dict[str, AnalysisTable]
    summary: pictures.ItemSummary
    findings: list[model.Finding]
    fine: list[str]
    remarks: list[list[str]]
    dependent_pairs: int
    information: InformationCurve
    most_error: float
    difficulties: pictures.ItemRows | None = None
    thresholds: ThresholdRows | None = None
    wright: pictures.WrightMap | None = None
    infit: pictures.FitMap | None = None
    outfit: pictures.FitMap | None = None
    curves: list[ItemCurve] | None = None
    contrast: pictures.ContrastMap | None = None
    options: list[OptionMap] | None = None
    differences: list[pictures.GroupRows] | None = None


def diagnose_test(estimate: Estimate, statistics: Diagnostics | None = None) -> Diagnosis:
    """Run all checks and compute all figures of a report."""
    findings, fine = find_problems(estimate, statistics)
    information = trace_information(estimate)
    remarks = remarks_on_items(estimate, statistics)
    return Diagnosis(
        estimate=estimate,
        statistics=statistics,
        known=estimate.estimated,
        tables={table.name: table for table in _list_tables(estimate, statistics, remarks)},
        summary=pictures.summarise_items(estimate),
        findings=findings,
        fine=fine,
        remarks=remarks,
        dependent_pairs=0 if statistics is None else sum(statistics.dependencies) // 2,
        information=information,
        most_error=pictures.error_ceiling(information),
        **_figures(estimate, statistics),
    )


def _list_tables(
    estimate: Estimate, statistics: Diagnostics | None, remarks: list[list[str]]
) -> Iterator[AnalysisTable]:
    yield tabulate_items(estimate, statistics, remarks)
    optional = tabulate_thresholds(estimate), tabulate_raw_scores(estimate)
    yield from (table for table in optional if table is not None)
    if statistics is not None:
        check = ModelCheck(estimate, statistics, list_tests(estimate, statistics))
        yield AnalysisTable(
            "tests",
            "Tests of the model",
            "What each number means, and what to do. No model holds exactly: with many persons "
            "small deviations show.",
            check.to_dict(),
        )
        yield from statistics.tables
        yield from list_dimension_tables(statistics)


def _figures(estimate: Estimate, statistics: Diagnostics | None) -> dict[str, Any]:
    thresholds = threshold_rows(estimate) if estimate.has_steps else None
    if statistics is None:
        return {"difficulties": pictures.difficulty_rows(estimate), "thresholds": thresholds}
    return {
        "thresholds": thresholds,
        "wright": pictures.wright_map(
            estimate,
            statistics.ability_starts,
            statistics.ability_counts,
            persons=statistics.measured + statistics.extreme,
            mean=statistics.ability_mean,
        ),
        **{name: _map_fit(estimate, statistics, name) for name in ("infit", "outfit")},
        "curves": worst_curves(estimate, statistics, CURVES),
        "contrast": statistics.dimensionality
        and pictures.contrast_map(statistics.dimensionality, model.words_for(estimate).number),
        "options": statistics.distractors and option_maps(statistics.distractors, CURVES),
        "differences": [
            rows
            for table in statistics.tables
            if table.name == "groups"
            for rows in pictures.difference_rows(table.columns)
        ],
    }


def _map_fit(estimate: Estimate, statistics: Diagnostics, name: str) -> pictures.FitMap:
    value, *limits = (getattr(statistics, f"{name}{end}") for end in ("", "_low", "_high"))
    return pictures.fit_map(estimate, value, name, tuple(limits) if limits[0] else None)
