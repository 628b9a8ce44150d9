"""What the answers say about a test beyond its difficulties, as a few plain numbers.

In: answers and their estimate. Out: :class:`Diagnostics`, which a calibration folder can hold, so
that its report can be made again without the answers. The statistics come from persons, item fit,
residuals and group differences; sampling, binning and choosing happen here. Confidential: it is
about the persons behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from typing import Annotated, Any

import numpy as np

from discreet.answers.responses import Responses
from discreet.items.curves import (
    CHUNK_CELLS,
    Curve,
    Shares,
    bin_abilities,
    bin_measured,
    trace_curves,
    trace_shares,
)
from discreet.items.cutoffs import FEW_TOGETHER
from discreet.items.dimensionality import Dimensionality, measure_alpha
from discreet.items.distractors import Distractors
from discreet.items.evidence import Evidence, gather_evidence
from discreet.items.fit import compare_spread
from discreet.items.likelihood_ratios import AndersenTest, StepModelTest
from discreet.items.martin_loef import MartinLoefTest
from discreet.items.mislabelled import Suspect
from discreet.items.residuals import ResidualCorrelations
from discreet.items.tables import (
    FIT_COLUMNS,
    flag_persons,
    list_evidence_tables,
    tabulate_categories,
    tabulate_differences,
    tabulate_misfits,
    tabulate_persons,
)
from discreet.models.item_parameters import match_categories
from discreet.persons.scoring import PersonScores, PersonStatus
from discreet.results.estimate import Estimate, two_sided_quantile
from discreet.results.limits import DEPENDENT, DEPENDENT_NEGLIGIBLE
from discreet.schema import (
    Along,
    AtLeast,
    Count,
    Finite,
    ItemName,
    Logit,
    NonNegative,
    Proportion,
    read_as,
)
from discreet.tabular import AnalysisTable
from discreet.types import FloatArray, Int64Array

#: Item, group column, group, reference group, logits harder for the group, ETS class.
Difference = tuple[ItemName, str, str, str, Finite, str]

PerItem = Annotated[tuple[Finite | None, ...], Along("items")]
PerItemOrNone = Annotated[tuple[Finite | None, ...], Along("items", may_be_empty=True)]
#: Statistic, degrees of freedom, p-value.
TestResult = tuple[Finite, Count, Proportion]

#: Pairs with the largest residual correlations that are kept.
DEPENDENT_SHOWN = 50


#: Below, chance alone makes a correlation that would look like a design.
FEW_PERSONS = 175


_NUMBER = Finite | None
#: Columns of the tables that a calibration keeps, and what their cells are.
KEPT_COLUMNS: dict[str, dict[str, Any]] = {
    "categories": {
        **{"item": str, "category": int, "answers": Count},
        **dict.fromkeys(("share", "mean_ability", "expected_ability", "infit", "outfit"), _NUMBER),
    },
    "groups": {
        **dict.fromkeys(("item", "group", "focal", "reference", "ets", "status"), str),
        **dict.fromkeys(("difference", "se", "p_value", "p_adjusted"), _NUMBER),
    },
    "misfits": {
        "person": str,
        **dict.fromkeys(("ability", "se", "infit", "infit_t", "outfit", "outfit_t"), _NUMBER),
        **dict.fromkeys(("score", "answered"), Count),
    },
}


@dataclass(frozen=True)
class Diagnostics:
    """How the persons and the items behaved; per item in the order of the estimate.

    Attributes
    ----------
    ability_starts, ability_counts
        Histogram of abilities with bins of :data:`BIN` logits.
    ability_mean, ability_sd
        Of the persons with an ability.
    measured, extreme, empty
        Persons with some answers right and some wrong; with all right or all wrong; without an
        answer to an item that has a difficulty.
    answered
        Median number of answers of a person.
    reliability, item_reliability
        Share of the variance of abilities (difficulties) that is not error.
    matching
        Correlation over persons of ability and mean difficulty of the items they got; ``None``
        where everybody got the same items or the persons are few.
    infit, infit_t, outfit, outfit_t, point_measure
        Per item, as :func:`measure_fit` gives them; ``None`` without a number.
    outfit_bounded, outfit_bounded_t, outfit_without_one
        Outfit in which no answer counts for more than 9, and outfit without the most unexpected
        answer; empty in older files.
    infit_low, infit_high, outfit_low, outfit_high
        Where infit and outfit of an item lie when the model holds, by simulation: 5% of sound tests
        have anything beyond these limits, those of pairs and persons included. Empty where that
        was not simulated.
    replications
        Sets of answers that were simulated for it; 0 for none.
    dependent
        Pairs of items whose residual correlation lies above the mean one by more than chance
        (5% over all statistics together): item, other, how far above, persons. The largest, and
        those first; ``None`` where it was not computed.
    dependencies
        Per item, in how many such pairs it is that lie above by more than matters. All of
        them count, also those that are not among the largest.
    curves
        Observed curve of every item with a difficulty.
    shares
        Of items with steps, the shares of the categories at the points of their curves.
    sampled
        How many persons were looked at; ``None`` for all.
    differing
        Items that work differently in groups of persons beyond chance and more than negligibly:
        item, group column, group, reference group, logits harder for the group, ETS class.
        ``None`` without groups.
    notes
        What could not be computed, and why.
    dimensionality
        Components of the residuals against chance; ``None`` where it was not computed.
    distractors
        Every option of every item with a key; ``None`` without a key.
    alpha
        Cronbach's alpha (KR-20) of raw scores; ``None`` where nobody answered everything.
    point_measure_expected, discrimination
        Per item as well; empty in older files.
    andersen, martin_loef
        Statistic, degrees of freedom and p-value of Andersen's test by score and of
        Martin-Löf's test of the easier and the harder half; ``None`` where it was not computed.
    andersen_split
        At which score persons were split for Andersen's test; empty in older files.
    left_out
        By the name of a test, the items that it could not compare.
    ability_errors
        Whether easier and harder items agree on the abilities: z, its p-value, and how large the
        differences are as a multiple of what standard errors allow; ``None`` where not computed.
    misfitting
        Persons with unexpected answers.
    tables
        Categories of items with steps, differences between groups and the least expected
        persons, for the report.
    mislabelled
        Items that abler persons get wrong, the surest first: item, discrimination, its error, the
        probability that it is negative.
    step_models
        Statistic, degrees of freedom and p-value of partial credit against rating scale; ``None``
        where it was not computed, or without steps.
    is_weighted
        Whether persons have sampling weights: fit, tests and abilities are those of the population.
    """

    ability_starts: Annotated[tuple[Logit, ...], AtLeast(1)]
    ability_counts: Annotated[tuple[Count, ...], Along("ability_starts")]
    ability_mean: Logit
    ability_sd: NonNegative
    measured: Count
    extreme: Count
    empty: Count
    answered: NonNegative
    reliability: Finite | None
    item_reliability: Finite | None
    matching: Finite | None
    infit: PerItem
    infit_t: PerItem
    outfit: PerItem
    outfit_t: PerItem
    point_measure: PerItem
    dependent: tuple[tuple[ItemName, ItemName, Finite, Count], ...] | None
    curves: Mapping[ItemName, Curve]
    sampled: Count | None = None
    differing: tuple[Difference, ...] | None = None
    notes: tuple[str, ...] = ()
    dependencies: Annotated[tuple[Count, ...], Along("items", may_be_empty=True)] = ()
    dimensionality: Dimensionality | None = None
    distractors: Distractors | None = None
    alpha: Finite | None = None
    point_measure_expected: PerItemOrNone = ()
    discrimination: PerItemOrNone = ()
    andersen: TestResult | None = None
    martin_loef: TestResult | None = None
    misfitting: Count | None = None
    tables: tuple[AnalysisTable, ...] = ()
    mislabelled: tuple[Suspect, ...] = ()
    step_models: TestResult | None = None
    shares: Mapping[ItemName, Shares] = field(default_factory=dict)
    outfit_bounded: PerItemOrNone = ()
    outfit_bounded_t: PerItemOrNone = ()
    outfit_without_one: PerItemOrNone = ()
    andersen_split: str = ""
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ability_errors: tuple[Finite, Finite, Finite] | None = None
    infit_low: PerItemOrNone = ()
    infit_high: PerItemOrNone = ()
    outfit_low: PerItemOrNone = ()
    outfit_high: PerItemOrNone = ()
    replications: Count = 0
    is_weighted: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)

    def find_contradiction(self) -> str:
        """Return what does not belong together in a file; empty if everything does."""
        for item, shares in self.shares.items():
            if len(shares) != len(self.curves.get(item, ())) or len(set(map(len, shares))) > 1:
                return f"the shares of {item!r} do not fit the points of its curve"
        for table in self.tables:
            for column, kind in KEPT_COLUMNS.get(table.name, {}).items():
                read_as(list[kind], table.columns.get(column), column)  # type: ignore[valid-type]
        return ""


def read_diagnostics(plain: Any, items: Sequence[str]) -> Diagnostics:
    """Return the diagnostics of these items from a JSON document, or refuse it."""
    if isinstance(plain, Mapping) and "dependencies" not in plain:
        plain = {**plain, "dependent": None}  # an older file knows the largest pairs only
    diagnostics: Diagnostics = read_as(Diagnostics, plain, "diagnostics", items=items)
    return diagnostics


def diagnose(responses: Responses, estimate: Estimate) -> Diagnostics:
    """Run all analyses and keep what the report shows.

    Raises
    ------
    BadUsage
        If no person has both right and wrong answers to items with a difficulty.
    """
    return summarise_evidence(gather_evidence(responses, estimate))


def study_answers(
    responses: Responses, estimate: Estimate
) -> tuple[Diagnostics, list[AnalysisTable]]:
    """Run all analyses; return what the report shows, and the tables that it does not keep."""
    evidence = gather_evidence(responses, estimate)
    return summarise_evidence(evidence), [*list_evidence_tables(evidence)]


def summarise_evidence(evidence: Evidence) -> Diagnostics:
    """Keep of the evidence what the report shows."""
    scores, fit, estimate = evidence.scores, evidence.fit, evidence.estimate
    measured = np.isfinite(scores.ability)
    ability, sample = scores.ability[measured], evidence.responses.sample
    weight = None if sample is None else sample.weight[measured]
    spread = compare_spread(ability, scores.se[measured], weight)
    starts, counts = bin_abilities(ability)
    columns: dict[str, Any] = {
        name: tuple(align_column(fit.items.items, getattr(fit.items, name), estimate.items))
        for name in FIT_COLUMNS
    }
    dependent, dependencies = _dependent(evidence)
    return Diagnostics(
        ability_starts=tuple(starts.tolist()),
        ability_counts=tuple(counts.tolist()),
        ability_mean=float(np.average(ability, weights=weight)),
        ability_sd=float(np.sqrt(spread.variance)) if len(ability) > 1 else 0.0,
        measured=int((scores.status == PersonStatus.MEASURED).sum()),
        extreme=int(scores.extreme.sum()),
        empty=int((scores.status == PersonStatus.NO_ANSWERS).sum()),
        answered=float(np.median(scores.answered)),
        reliability=_finite(fit.person_reliability.reliability),
        item_reliability=_finite(fit.item_reliability.reliability),
        matching=_matching(evidence.responses, estimate, scores),
        **columns,
        dependent=dependent,
        dependencies=dependencies,
        **_observe(evidence.responses, estimate, scores),
        sampled=evidence.sampled,
        differing=_differing(evidence),
        notes=evidence.notes,
        dimensionality=evidence.dimensionality,
        distractors=evidence.distractors,
        alpha=_finite(measure_alpha(evidence.responses).alpha),
        andersen=_numbers_of(evidence.andersen),
        andersen_split="" if evidence.andersen is None else evidence.andersen.split,
        left_out=_list_left_out(evidence),
        ability_errors=None if scores.halves is None else astuple(scores.halves),
        martin_loef=_numbers_of(evidence.martin_loef),
        misfitting=int(flag_persons(evidence).sum()),
        **_keep_limits(evidence),
        mislabelled=() if evidence.mislabelled is None else evidence.mislabelled.list_suspects(),
        step_models=_numbers_of(evidence.step_models),
        tables=tuple(_kept_tables(evidence)),
        is_weighted=sample is not None,
    )


def _numbers_of(
    test: AndersenTest | MartinLoefTest | StepModelTest | None,
) -> tuple[float, int, float] | None:
    return None if test is None else (test.statistic, test.degrees, test.p_value)


def _list_left_out(evidence: Evidence) -> dict[str, tuple[str, ...]]:
    """Return the items that tests of all items together could not compare."""
    tests = {
        "Andersen": evidence.andersen,
        "Martin-Löf": evidence.martin_loef,
        "steps": evidence.step_models,
    }
    return {name: test.excluded for name, test in tests.items() if test and test.excluded}


def _differing(evidence: Evidence) -> tuple[Difference, ...] | None:
    """Rows that hold for all items together and are of ETS class B or C, the largest first."""
    sample = evidence.responses.sample
    if not {*evidence.responses.groups} - (frozenset() if sample is None else sample.columns):
        return None
    rows: list[Difference] = [
        (table.item[i], column, table.focal[i], table.reference, size, table.ets[i])
        for column, table in evidence.differences.items()
        for i in np.flatnonzero(table.confirmed)
        if table.ets[i] in ("B", "C") and np.isfinite(size := float(table.difference[i]))
    ]
    return tuple(sorted(rows, key=lambda row: -abs(row[4])))


def _kept_tables(evidence: Evidence) -> Iterator[AnalysisTable]:
    """Yield the tables that nothing else in the diagnostics could make again."""
    tables = (
        tabulate_categories(evidence),
        tabulate_differences(evidence.differences),
        tabulate_misfits(tabulate_persons(evidence), has_steps=evidence.estimate.has_steps),
    )
    yield from (table for table in tables if table is not None)


def align_column(
    names: Sequence[str], column: FloatArray, items: Sequence[str]
) -> list[float | None]:
    """Return a column in the order of ``items``; ``None`` where it has no number for one."""
    value_of = dict(zip(names, column.tolist(), strict=True))
    return [value if np.isfinite(value := value_of.get(item, np.nan)) else None for item in items]


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _matching(responses: Responses, estimate: Estimate, scores: PersonScores) -> float | None:
    """Correlate ability with the mean difficulty of the items that a person got."""
    columns = np.flatnonzero(estimate.estimated)
    chosen = responses.select([estimate.items[i] for i in columns])
    b = estimate.difficulty[columns]
    total = np.zeros(chosen.n_persons)
    step = max(1, CHUNK_CELLS // len(b))
    for start in range(0, chosen.n_persons, step):
        rows = chosen.rows(start, start + step)
        total[start : start + len(rows)] = (rows >= 0) @ b
    used = np.isfinite(scores.ability) & (scores.answered > 0)
    mean = total[used] / scores.answered[used]
    # Complete answers leave only rounding errors in the means.
    if used.sum() < FEW_PERSONS or np.ptp(mean) < 1e-6:
        return None
    return _finite(float(np.corrcoef(mean, scores.ability[used])[0, 1]))


def _keep_limits(evidence: Evidence) -> dict[str, Any]:
    """Return the simulated limits of the items' fit, and from how many sets they come."""
    cutoffs = evidence.cutoffs
    if cutoffs is None:
        return {}
    columns = cutoffs.to_dict()
    items = columns.pop("item")
    limits: dict[str, Any] = {
        name: tuple(align_column(items, np.array(column), evidence.estimate.items))
        for name, column in columns.items()
    }
    return {**limits, "replications": cutoffs.replications}


def _dependent(
    evidence: Evidence,
) -> tuple[tuple[tuple[str, str, float, int], ...] | None, tuple[int, ...]]:
    """Return the most dependent pairs, and in how many dependent pairs every item is."""
    table = evidence.pairs
    if table is None:
        return None, ()
    first, second = np.triu_indices(len(table.items), 1)
    excess = table.q3[first, second] - table.mean
    persons = table.together[first, second]
    limit, negligible = _limit_pairs(evidence, table, persons)
    with np.errstate(invalid="ignore"):
        clear = np.flatnonzero((persons >= FEW_TOGETHER) & (excess > limit[first, second]))
    best = clear[np.argsort(-excess[clear], kind="stable")][:DEPENDENT_SHOWN]
    large = clear[excess[clear] > negligible]
    within = np.bincount(np.concatenate([first[large], second[large]]), minlength=len(table.items))
    times = dict(zip(table.items, within.tolist(), strict=True))
    pairs = tuple(
        (table.items[first[p]], table.items[second[p]], float(excess[p]), int(persons[p]))
        for p in best
    )
    return pairs, tuple(times.get(item, 0) for item in evidence.estimate.items)


def _limit_pairs(
    evidence: Evidence, table: ResidualCorrelations, persons: Int64Array
) -> tuple[FloatArray, float]:
    """Return how far above the mean a Q3 lies by chance, per pair, and what does not matter."""
    cutoffs = evidence.cutoffs
    if cutoffs is not None and np.isfinite(cutoffs.q3).any():
        return cutoffs.q3 - table.mean, DEPENDENT_NEGLIGIBLE
    tested = max(int((persons >= FEW_TOGETHER).sum()), 1)
    # A correlation of unrelated residuals has standard error 1 / sqrt(persons).
    chance = two_sided_quantile(0.05 / tested) / np.sqrt(np.maximum(table.together, 1))
    return np.asarray(chance), DEPENDENT


def _observe(responses: Responses, estimate: Estimate, scores: PersonScores) -> dict[str, Any]:
    """Return the observed curves and, with steps, the shares of categories."""
    names = [estimate.items[i] for i in np.flatnonzero(estimate.estimated)]
    binned = bin_measured(match_categories(responses.select(names), estimate), scores)
    curves = {
        name: tuple((round(ability, 3), round(score, 4), n) for ability, score, n in points)
        for name, points in trace_curves(binned).items()
    }
    if not estimate.has_steps:
        return {"curves": curves}
    shares = {
        name: tuple(tuple(round(one, 4) for one in point) for point in points)
        for name, points in trace_shares(binned).items()
    }
    return {"curves": curves, "shares": shares}
