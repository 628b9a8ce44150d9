"""Everything that answers say about a calibration: computed once, for tables, checks and reports.

In: answers and their estimate. Out: a :class:`Study`, the results of all analyses side by side,
which a calibration folder keeps as they are, so that its report can be made again without the
answers; and the tables of single persons and pairs, which it does not keep. Very many answers are
looked at through an even sample of the persons. What takes too long, or is impossible with these
answers, is left out with a sentence that says so. Confidential: it is about the persons behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar, cast

import numpy as np

from discreet.answers.responses import Responses
from discreet.choices import Model, PlainDict
from discreet.errors import (
    BadUsage,
    DisconnectedItems,
    NotConverged,
    WarningKind,
    saying_it_otherwise,
)
from discreet.items.abilities import AbilitySummary, summarise_abilities
from discreet.items.curves import BinnedAnswers, bin_measured
from discreet.items.cutoffs import (
    FitCutoffs,
    ItemLimits,
    SmallChances,
    foretell_seconds,
    simulate_cutoffs,
)
from discreet.items.dependence import Dependence, find_dependence
from discreet.items.dif import FEWEST_ANCHORS, DifTable, find_dif, list_differing
from discreet.items.dimensionality import Alpha, Dimensionality, find_dimensions, measure_alpha
from discreet.items.distractors import Distractors, analyse_distractors
from discreet.items.fit import CategoryFit, ItemFit, Reliability, measure_fit
from discreet.items.group_curves import GroupCurves, trace_groups
from discreet.items.group_differences import WaldTest, run_wald
from discreet.items.groups import SCORE_SPLITS
from discreet.items.likelihood_ratios import (
    AndersenTest,
    StepModelTest,
    compare_step_models,
    run_andersen,
)
from discreet.items.martin_loef import MartinLoefTest, run_martin_loef
from discreet.items.mislabelled import Mislabelled, find_mislabelled
from discreet.items.residuals import ITEM_LIMIT, ResidualCorrelations, correlate_residuals
from discreet.items.resolving import name_split, split_items
from discreet.items.tables import (
    flag_persons,
    tabulate_misfits,
    tabulate_pairs,
    tabulate_persons,
    tabulate_unexpected,
)
from discreet.models.calibrate import calibrate
from discreet.models.categories import RATING_SCALE, leave_unused, match_categories
from discreet.models.methods import METHODS
from discreet.persons.measures import HalvesTest
from discreet.persons.scoring import score
from discreet.results.estimate import Estimate, Status
from discreet.schema import Count
from discreet.tabular import AnalysisTable, Columns, Tabular, brief_repr

#: Cells (persons times items) that are looked at; above, an even sample of the persons is. That
#: takes some seconds, and more persons would hardly change the two digits shown.
CELL_LIMIT = 4_000_000

#: Persons times items squared up to which residual correlations are worth their wait.
PAIR_LIMIT = 40_000_000_000

#: Foretold seconds of one conditional fit up to which groups of persons are tested.
TEST_SECONDS = 10.0

#: Groups of one column that are compared: a column of schools or of ages says nothing here.
MOST_GROUPS = 12

RIGHT_WRONG_ONLY = (
    "left out with steps: the search for mislabelled items, which compares slopes of right "
    "answers (items that run against the others show by their correlation)"
)

GIVEN_PATHS = (
    "the test was routed: tests are given the path; left out are the search for mislabelled items, "
    "and whether easier and harder items agree on abilities"
)

FIXED_LIMITS = "limits of fit statistics were not simulated, and rules of thumb serve instead"

NOT_SPLIT = "persons with low and high scores were not compared"

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Study(Tabular):
    """The results of all analyses of a calibration, without those of single persons. Confidential.

    Attributes
    ----------
    abilities
        Who the persons are, by weighted likelihood, which has an ability for every score.
    halves
        Whether easier and harder items agree on the abilities; ``None`` where there are few.
    fit
        Of every item of the estimate, at maximum likelihood abilities as other programs have them.
    reliability, item_reliability, alpha
        Of persons, of items, and of raw scores.
    observed
        Answers to the items with a difficulty, of groups of persons of like ability.
    categories
        ``None`` without steps.
    limits
        Where the fit of items lies when the model holds; ``None`` where that was not simulated.
    small_chances
        How many persons have unexpected answers; ``None`` likewise.
    dependence
        Pairs of items; ``None`` where there are too many.
    dimensionality, andersen, wald, martin_loef
        ``None`` where it was not computed. Andersen and Wald compare low with high scores.
    step_models
        Partial credit against rating scale; ``None`` where it was not, or without steps.
    mislabelled
        Which items abler persons get wrong; ``None`` with steps.
    distractors
        What was chosen, by all persons; ``None`` without a key.
    differences
        Differential functioning for every group column that could be compared; ``None`` without
        groups.
    group_curves
        By column, whether curves of items are steeper in one group than in another.
    resolved
        The same with the items that differ between groups split by group; ``None`` without any.
    misfits, unexpected
        The least expected persons, and the least expected answers.
    sampled
        How many persons were looked at; ``None`` for all.
    is_weighted
        Whether persons have sampling weights: fit, tests and abilities are those of the population.
    notes
        What could not be computed, and why.

    Examples
    --------
    >>> import discreet
    >>> from discreet import analysis
    >>> study = analysis.check_model(discreet.datasets.lsat()).study
    >>> study.andersen.degrees, study.abilities.unexpected
    (4, 0)
    """

    abilities: AbilitySummary
    halves: HalvesTest | None
    fit: ItemFit
    reliability: Reliability
    item_reliability: Reliability
    alpha: Alpha
    observed: BinnedAnswers
    categories: CategoryFit | None = None
    limits: ItemLimits | None = None
    small_chances: SmallChances | None = None
    dependence: Dependence | None = None
    dimensionality: Dimensionality | None = None
    mislabelled: Mislabelled | None = None
    distractors: Distractors | None = None
    andersen: AndersenTest | None = None
    wald: WaldTest | None = None
    martin_loef: MartinLoefTest | None = None
    step_models: StepModelTest | None = None
    differences: Mapping[str, DifTable] | None = None
    group_curves: Mapping[str, GroupCurves] = field(default_factory=dict, repr=False)
    resolved: ResolvedStudy | None = field(default=None, repr=False)
    misfits: AnalysisTable | None = field(default=None, repr=False)
    unexpected: AnalysisTable | None = field(default=None, repr=False)
    sampled: Count | None = None
    is_weighted: bool = False
    notes: tuple[str, ...] = ()

    def to_dict(self) -> Columns:
        """Return the fit of every item; the other results have tables of their own."""
        return self.fit.to_dict()

    def find_contradiction(self) -> str:
        """Return which item is named that the study is not about; empty if there is none."""
        unknown = {*self._name_items()} - {*self.fit.items}
        return f"it names {min(unknown)!r}, which is none of its items" if unknown else ""

    def _name_items(self) -> Iterator[str]:
        yield from self.observed.items
        for part in (self.dimensionality, self.mislabelled):
            yield from () if part is None else part.items
        for table in (self.categories, self.distractors, *(self.differences or {}).values()):
            yield from () if table is None else table.item
        for pair in () if self.dependence is None else self.dependence.pairs:
            yield from pair[:2]


@dataclass(frozen=True, eq=False)
class ResolvedStudy:
    """What is left of misfit where the items that differ between groups are split by group.

    ``items`` were split, before ``estimate`` was made and ``study`` of it.
    """

    items: tuple[str, ...]
    estimate: Estimate
    study: Study

    __repr__ = brief_repr


def diagnose(responses: Responses, estimate: Estimate) -> Study:
    """Run all analyses of a calibration.

    Raises
    ------
    BadUsage
        If no person has both right and wrong answers to items with a difficulty.
    """
    return study_answers(responses, estimate)[0]


def study_answers(
    responses: Responses, estimate: Estimate, progress: Callable[[int, int], None] | None = None
) -> tuple[Study, tuple[AnalysisTable, ...]]:
    """Run all analyses; return the study, and the tables of persons and of pairs."""
    if responses.sample is not None:
        responses = responses.select_persons(responses.sample.in_domain)
    sample, has_steps = _sample(responses), estimate.has_steps
    tests = _ModelTests(sample, estimate, progress)
    scores, fit = score(sample, estimate), measure_fit(sample, estimate)
    residuals, cutoffs = _correlate(sample, estimate), tests.cutoffs
    flagged, sampled = flag_persons(fit.persons, cutoffs), sample is not responses
    chance = None if cutoffs is None else cutoffs.person_p
    persons = tabulate_persons(
        scores, fit.persons, flagged, chance, has_steps=has_steps, sampled=sampled
    )
    study = Study(
        abilities=summarise_abilities(sample, estimate, scores, flagged),
        halves=scores.halves,
        fit=fit.items.align(estimate.items),
        reliability=fit.person_reliability,
        item_reliability=fit.item_reliability,
        alpha=measure_alpha(sample),
        observed=bin_measured(match_categories(tests.known, estimate), scores),
        categories=fit.categories,
        limits=None if cutoffs is None else cutoffs.align(estimate.items),
        small_chances=None if cutoffs is None else cutoffs.persons,
        dependence=None
        if residuals is None
        else find_dependence(residuals, cutoffs, estimate.items),
        dimensionality=tests.dimensionality,
        mislabelled=None
        if has_steps or sample.routing is not None
        else find_mislabelled(sample, estimate),
        distractors=None if responses.choices is None else analyse_distractors(responses, estimate),
        andersen=tests.andersen,
        wald=tests.wald,
        martin_loef=tests.martin_loef,
        step_models=tests.step_models,
        differences=tests.differences,
        group_curves=tests.group_curves,
        resolved=tests.resolve(),
        misfits=tabulate_misfits(persons, has_steps=has_steps),
        unexpected=tabulate_unexpected(fit.unexpected),
        sampled=sample.n_persons if sampled else None,
        is_weighted=sample.sample is not None,
        notes=tuple(tests.notes),
    )
    return study, (persons, *([] if residuals is None else [tabulate_pairs(residuals, cutoffs)]))


def _sample(responses: Responses) -> Responses:
    """Return all answers, or those of evenly spaced persons where there are very many."""
    cells = responses.n_persons * responses.n_items
    if cells <= CELL_LIMIT:
        return responses
    return responses.select_persons(slice(None, None, -(-cells // CELL_LIMIT)))


def _correlate(responses: Responses, estimate: Estimate) -> ResidualCorrelations | None:
    m = int(estimate.estimated.sum())
    if m > ITEM_LIMIT or responses.n_persons * m**2 > PAIR_LIMIT:
        return None
    return correlate_residuals(responses, estimate)


class _ModelTests:
    """Tests of the model that answers may not allow, or that may take too long.

    ``known`` are the answers to items with a difficulty; ``notes`` say what was left out, and why.
    """

    def __init__(
        self, sample: Responses, estimate: Estimate, progress: Callable[[int, int], None] | None
    ) -> None:
        self.sample, self.estimate = sample, estimate
        self.known = sample.select([estimate.items[i] for i in np.flatnonzero(estimate.estimated)])
        self.keep = any(Status.UNUSED in status for status in estimate.ladder.status)
        self.notes = [RIGHT_WRONG_ONLY] if estimate.has_steps else []
        self.group_curves: dict[str, GroupCurves] = {}
        self.notes += [] if sample.routing is None else [GIVEN_PATHS]
        self.differences = self._compare_groups()
        self.dimensionality = self._attempt(
            "dimensionality was not checked", partial(find_dimensions, sample, estimate)
        )
        self.notes += map(str, self.dimensionality.warnings if self.dimensionality else ())
        self.andersen: AndersenTest | None = None
        self.wald: WaldTest | None = None
        self.cutoffs: FitCutoffs | None = None
        self.martin_loef: MartinLoefTest | None = None
        self.step_models: StepModelTest | None = None
        if self._is_quick():
            self._compare_scores()
            simulate = partial(simulate_cutoffs, sample, estimate, progress=progress)
            self.cutoffs = self._attempt(FIXED_LIMITS, simulate)
            self.martin_loef = self._compare_halves()
            self.step_models = self._compare_models()

    def _attempt(self, failure: str, run: Callable[[], Result]) -> Result | None:
        """Return a result, or note why the answers do not allow it."""
        try:
            with saying_it_otherwise():  # its warnings are in the notes
                return run()
        except (BadUsage, DisconnectedItems, NotConverged) as error:
            self.notes.append(f"{failure}: {error}")
            return None

    def _compare_groups(self) -> dict[str, DifTable] | None:
        """Compare groups by every column that can be compared; None without one.

        Columns of the sampling design are no groups.
        """
        tables = {}
        design = frozenset() if self.sample.sample is None else self.sample.sample.columns
        columns = [name for name in self.sample.groups if name not in design]
        for column in columns:
            failure = f"groups by {column} were not compared"
            number = len({str(label) for label in self.sample.groups[column]})
            if number > MOST_GROUPS:
                self.notes.append(f"{failure}: {number} groups are too many")
                continue
            compare = partial(find_dif, self.sample, column, keep_categories=self.keep)
            table = self._attempt(failure, compare)
            if table is not None:
                tables[column] = table
                trace = partial(trace_groups, self.sample, self.estimate, column)
                curves = self._attempt(f"curves of groups by {column} were not compared", trace)
                self.group_curves |= {} if curves is None else {column: curves}
                self.notes += [f"groups by {column}: {warning}" for warning in table.warnings]
        return tables if columns else None

    def resolve(self) -> ResolvedStudy | None:
        """Calibrate and study again with the items that differ between groups split by group."""
        items = self.known.n_items
        most = items - max(FEWEST_ANCHORS, -(-items // 4))
        split = name_split(list_differing(self.differences or {})[: max(most, 0)])

        def study_split() -> ResolvedStudy:
            answers = split_items(self.known, split)
            plain = Responses(answers.items, None, answers.store, sample=answers.sample)
            about: PlainDict = {"model": self.estimate.model, "keep_categories": self.keep}
            method = self.estimate.method
            about["method"] = method if method in METHODS else "auto"
            estimate = calibrate(plain, **about)
            return ResolvedStudy(tuple(split), estimate, diagnose(plain, estimate))

        failure = "the tests were not repeated with items split by group"
        return self._attempt(failure, study_split) if split else None

    def _is_quick(self) -> bool:
        """Say whether conditional fits of these answers are worth their wait."""
        if foretell_seconds(self.known) <= TEST_SECONDS:
            return True
        self.notes += [
            f"{task}: with so many items and patterns that would take too long"
            for task in (NOT_SPLIT, FIXED_LIMITS)
        ]
        return False

    def _compare_scores(self) -> None:
        """Compare persons with low and high scores, split at the mean; failing that, the median.

        Andersen's test is of all items together, Wald tests are of each of the same items.
        """
        model = cast("Model", self.estimate.model)
        chosen = self.known if model == RATING_SCALE else leave_unused(self.known, self.keep)
        for split in SCORE_SPLITS:
            failure = f"{NOT_SPLIT} at the {split}"
            about: PlainDict = {"groups": split, "model": model, "keep_categories": self.keep}
            self.andersen = self._attempt(failure, partial(run_andersen, chosen, **about))
            if self.andersen is not None:
                self.notes += map(str, self.andersen.warnings)
                compare = partial(run_wald, chosen, items=self.andersen.items, **about)
                self.wald = self._attempt(f"{failure} item by item", compare)
                return

    def _compare_models(self) -> StepModelTest | None:
        """Compare partial credit with a rating scale, where items have the same steps."""
        if not self.estimate.has_steps or len(set(self.sample.steps)) > 1:
            return None
        failure = "partial credit and rating scale were not compared"
        test = self._attempt(failure, partial(compare_step_models, self.sample))
        self.notes += map(str, test.warnings if test else ())
        return test

    def _compare_halves(self) -> MartinLoefTest | None:
        """Compare the easier with the harder half, where the law of the test can be trusted."""
        failure = "the easier and the harder half of the items were not compared"
        model = cast("Model", self.estimate.model)
        test = self._attempt(failure, partial(run_martin_loef, self.known, model=model))
        if test is None:
            return None
        rough = any(warning.kind is WarningKind.ROUGH for warning in test.warnings)
        self.notes += [f"{failure if rough else 'Martin-Löf'}: {one}" for one in test.warnings]
        return None if rough else test
