"""The diagnosis of a test: whether the model holds, and all that its report shows, computed once.

In: answers and an estimate, or its study. Out: a :class:`ModelCheck` with a row for each test
of the model: a number, a verdict and advice; and a :class:`Diagnosis`, which a page turns into
words, tables and pictures. Numbers come from the study and verdicts from the findings. A verdict
tells where to look; no model holds exactly. A :class:`FitChange` holds two checks of the same
answers side by side, before and after a change such as merged categories. Confidential.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from math import isfinite
from os import PathLike
from pathlib import Path

from discreet.answers.responses import Responses
from discreet.atomic import staged, write_text
from discreet.choices import PlainDict
from discreet.errors import BadUsage
from discreet.items.dif import list_differing
from discreet.items.study import Study, diagnose
from discreet.items.tables import (
    list_study_tables,
    make_shown_table,
    tabulate_items,
    tabulate_raw_scores,
    tabulate_thresholds,
)
from discreet.models.calibrate import calibrate
from discreet.report import model_findings as model
from discreet.report.findings import (
    ANSWER_CHECKS,
    find_problems,
    remarks_on_items,
    say_limits,
    say_pair_limit,
    say_split,
    tell_few,
)
from discreet.results.calibrated import Calibration, as_estimate
from discreet.results.estimate import Estimate
from discreet.results.limits import ANDERSEN_LEVEL
from discreet.tabular import AnalysisTable, Columns, Tabular

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

    def to_dict(self) -> PlainDict:
        """One row."""
        return dict(vars(self))


@dataclass(frozen=True, eq=False)
class ModelCheck(Tabular):
    """All tests of a model, with the estimate that they are about. Confidential.

    Attributes
    ----------
    estimate, study
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
    study: Study
    tests: tuple[ModelTest, ...]

    def to_dict(self) -> Columns:
        """One row per test."""
        return {
            field.name: [getattr(test, field.name) for test in self.tests]
            for field in fields(ModelTest)
        }

    @property
    def doubts(self) -> tuple[str, ...]:
        """What to know before any verdict: that there are too few persons."""
        findings = model.check_enough_persons(self.estimate, self.study)
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

        target, test = Path(path), diagnose_test(self.estimate, self.study)
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

        write_text(Path(path), write_item_sheets(diagnose_test(self.estimate, self.study)))


def check_model(
    responses: Responses, estimate: Calibration | None = None, *, anchors: Calibration | None = None
) -> ModelCheck:
    """Test whether the model holds for these answers. Confidential.

    Parameters
    ----------
    responses
        As for :func:`discreet.score`. Group columns are compared too.
    estimate
        Their calibration; without one they are calibrated first.
    anchors
        A calibration of other answers: these are read as those were, and its difficulties are held
        fixed, as by ``fit(responses, anchors=...)``. ``estimate.displacement`` of the result says
        how far each would move.
    reading
        The keywords of :func:`discreet.read_responses`.

    Raises
    ------
    BadUsage
        If no person has both right and wrong answers to items with a difficulty, or if
        ``estimate`` is of other items.

    Examples
    --------
    >>> import discreet
    >>> found = check_model(discreet.datasets.lsat())
    >>> [(test.name, test.verdict) for test in found.tests][:2]
    [('Andersen', 'holds'), ('Martin-Löf', 'holds')]
    """
    if estimate is None:
        calibration = calibrate(responses, anchors=anchors)
    else:
        calibration = as_estimate(estimate, "a check of the model")
        if {*calibration.items} != {*responses.items} or anchors is not None:
            raise BadUsage(
                "estimate= is the calibration of these answers, and this one is of other items or "
                "comes with anchors=. Give a calibration of other answers as anchors= alone: its "
                "difficulties are then held fixed"
            )
    study = diagnose(responses, calibration)
    return ModelCheck(calibration, study, list_tests(calibration, study))


def list_tests(estimate: Estimate, study: Study) -> tuple[ModelTest, ...]:
    """Return every test of the model that was made, and those that could not be.

    Items that run against the others come first: they spoil every other test.
    """
    made = (
        (_test_resolved if name in RESOLVED else _make_test)(name, estimate, study)
        for name in NUMBERS
    )
    tests = [test for test in made if test is not None]
    if tests[0].name == DIRECTION and model.has_many_reversed(estimate, study):
        first = "First see the direction of the items, then test again."
        tests[1:] = [
            test
            if test.verdict in (HOLDS, UNTESTED)
            else replace(test, advice=f"{first} {test.advice}")
            for test in tests[1:]
        ]
    too_few = [*model.check_enough_persons(estimate, study)]
    return tuple(_doubt(test, too_few[0]) if too_few else test for test in tests)


def _test_resolved(name: str, estimate: Estimate, study: Study) -> ModelTest | None:
    """Make a test where the items that differ between groups are split, if there are any."""
    split = study.resolved
    test = None if split is None else _make_test(name, split.estimate, split.study)
    if test is None or test.verdict == UNTESTED:
        return _make_test(name, estimate, study)
    return replace(test, found=say_split(study) + test.found)


def _doubt(test: ModelTest, finding: model.Finding) -> ModelTest:
    """Take back what a test says where persons are too few for any."""
    if test.verdict == UNTESTED:
        return test
    return replace(test, verdict=TOO_FEW, advice=finding.advice)


#: Statistic, degrees of freedom and p-value of a test, and facts of what it says.
Numbers = tuple[tuple[float | None, int | None, float | None], PlainDict]
DIRECTION = "direction"


def _make_test(name: str, estimate: Estimate, study: Study) -> ModelTest | None:
    """Put a test together: its verdict is that of the worst finding, if there is one."""
    text, numbers = model.TEXTS["tests"][name], NUMBERS[name](estimate, study)
    if numbers is None:
        untested = text.get("untested")
        nothing = (None, None, None, UNTESTED)
        return None if untested is None else ModelTest(name, text["asks"], *nothing, untested, "")
    found = [one for check in text["checks"] for one in ANSWER_CHECKS[check](estimate, study)]
    if name == DIRECTION and not found:
        return None
    ranked, (values, facts) = sorted(found, key=lambda one: one.severity), numbers
    if not ranked:
        fine = text["fine"].format(**facts)
        return ModelTest(name, text["asks"], *values, facts.get("verdict", HOLDS), fine, "")
    summary, advice = (
        " ".join(getattr(finding, part) for finding in ranked) for part in ("found", "advice")
    )
    verdict = ranked[0].severity.word
    return ModelTest(name, text["asks"], *values, verdict, summary, advice)


def _list_numbers(test: model.ChiSquared | None, **facts: str) -> Numbers | None:
    if test is None:
        return None
    about = {"left_out": model.say_left_out(test), "test": model.say_test(test)}
    return (test.statistic, test.degrees, test.p_value), {**vars(test), **about, **facts}


def _direction(_: Estimate, study: Study) -> Numbers:
    correlations = [value for value in study.fit.point_measure.tolist() if isfinite(value)]
    return (min(correlations, default=None), None, None), {}


def _andersen(_: Estimate, study: Study) -> Numbers | None:
    test = study.andersen
    return None if test is None else _list_numbers(test, halves=model.say_halves(test))


def _martin_loef(_: Estimate, study: Study) -> Numbers | None:
    return _list_numbers(study.martin_loef)


def _step_models(_: Estimate, study: Study) -> Numbers | None:
    test = study.step_models
    if test is None or test.p_value >= ANDERSEN_LEVEL:
        words = "A rating scale describes the answers as well as partial credit does"
        return _list_numbers(test, words=words)
    words = "Items differ in the distances between their steps, as partial credit has it"
    return _list_numbers(test, words=words, verdict=NEEDS_STEPS)


def _dimensionality(_: Estimate, study: Study) -> Numbers | None:
    found = study.dimensionality
    if found is None:
        return None
    values = found.eigenvalue[0], None, found.p_value[0]
    return values, {"component": model.say_component(found)}


def _dependence(_: Estimate, study: Study) -> Numbers | None:
    if study.dependence is None:
        return None
    pairs = study.dependence.pairs
    return (pairs[0][2] if pairs else None, None, None), {"limit": say_pair_limit(study)}


def _item_fit(estimate: Estimate, study: Study) -> Numbers:
    fits = {
        name: [value for value in getattr(study.fit, f"conditional_{name}") if isfinite(value)]
        for name in ("infit", "outfit")
    }
    ranges = [
        f"{name} from {min(values):.2f} to {max(values):.2f}"
        for name, values in fits.items()
        if values
    ]
    facts = {"limits": say_limits(study), "few": tell_few(estimate, study)}
    largest = max(max(values, default=1.0) for values in fits.values())
    return (largest, None, None), {"ranges": ", ".join(ranges), **facts}


def _person_fit(_: Estimate, study: Study) -> Numbers:
    small = study.small_chances
    measured = max(study.abilities.measured, 1)
    share = study.abilities.unexpected / measured if small is None else small.share
    return (share, None, None), {"persons": model.say_persons(study)}


def _ability_errors(_: Estimate, study: Study) -> Numbers | None:
    halves = study.halves
    return None if halves is None else ((halves.z, None, halves.p_value), {"times": halves.times})


def _groups(_: Estimate, study: Study) -> Numbers | None:
    if study.differences is None:
        return None
    return (float(len({row[0] for row in list_differing(study.differences)})), None, None), {}


#: The tests in their order; what they ask and say stands in ``findings.toml``.
NUMBERS: dict[str, Callable[[Estimate, Study], Numbers | None]] = {
    DIRECTION: _direction,
    "Andersen": _andersen,
    "Martin-Löf": _martin_loef,
    "steps": _step_models,
    "dimensionality": _dimensionality,
    "dependence": _dependence,
    "item fit": _item_fit,
    "person fit": _person_fit,
    "ability errors": _ability_errors,
    "groups": _groups,
}
#: Tests that are made again where items that differ between groups are split.
RESOLVED = ("dimensionality", "dependence", "item fit", "person fit")


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

    def to_dict(self) -> Columns:
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
    old, new = (dict(_list_changing(check, changed)) for check in (before, after))
    return FitChange(tuple(old), tuple(old.values()), tuple(new.values()))


def _list_changing(check: ModelCheck, items: list[int]) -> Iterator[tuple[str, float | None]]:
    """Yield the fit of these items and of the whole test, by name."""
    estimate, study = check.estimate, check.study
    numbers = {
        f"{name} of {estimate.items[index]}": float(
            getattr(study.fit, f"conditional_{name}")[index]
        )
        for index in items
        for name in ("infit", "outfit")
    }
    numbers |= {
        "person reliability": study.reliability.reliability,
        "Cronbach's alpha": study.alpha.alpha,
    }
    yield from ((name, value if isfinite(value) else None) for name, value in numbers.items())
    yield "thresholds in the wrong order", len(model.list_disordered(estimate))
    yield "categories with few answers", len(model.list_rare(estimate))
    yield "categories with persons no abler", len(model.list_falls(study))


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What is wrong with a test, and what is known of every item.

    Attributes
    ----------
    estimate, study
        The calibration, and what the answers say beyond it; ``None`` without answers.
    tables
        Every table that can be made without the answers, by name.
    findings, fine
        What is wrong, the most serious first; and the checks that found nothing.
    remarks
        For each item what is remarkable, in few words.
    """

    estimate: Estimate
    study: Study | None
    tables: dict[str, AnalysisTable]
    findings: list[model.Finding]
    fine: list[str]
    remarks: list[list[str]]


def diagnose_test(estimate: Estimate, study: Study | None = None) -> Diagnosis:
    """Run all checks and make all tables of a report."""
    findings, fine = find_problems(estimate, study)
    remarks = remarks_on_items(estimate, study)
    tables = {table.name: table for table in _list_tables(estimate, study, remarks)}
    return Diagnosis(estimate, study, tables, findings, fine, remarks)


def _list_tables(
    estimate: Estimate, study: Study | None, remarks: list[list[str]]
) -> Iterator[AnalysisTable]:
    yield tabulate_items(estimate, study, remarks)
    optional = tabulate_thresholds(estimate), tabulate_raw_scores(estimate)
    yield from (table for table in optional if table is not None)
    if study is not None:
        check = ModelCheck(estimate, study, list_tests(estimate, study))
        yield make_shown_table("tests", check.to_dict())
        yield from list_study_tables(estimate, study)
