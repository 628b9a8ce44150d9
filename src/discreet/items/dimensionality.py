"""Dimensionality: what residuals have in common, compared with chance.

In: answers and a calibration. Out: the largest eigenvalues of the correlations of standardised
residuals, each beside what it is when the model holds; the loadings of the first contrast; how
abilities on its two ends agree. Confidential.

Chance is simulated from the fitted model: every person answers the same items again and gets the
same score (:class:`~discreet.items.cutoffs.ScoreDraws`), so the simulated persons have exactly the
abilities, the missing answers and the errors of the real ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from discreet.answers.pack import store_codes
from discreet.answers.responses import Responses
from discreet.answers.select import refuse_routing
from discreet.errors import BadUsage, FitWarning, WarningKind
from discreet.items.cutoffs import ScoreDraws, plan_draws
from discreet.items.fit import compare_spread, measure_fit
from discreet.items.residuals import Prepared, prepare
from discreet.models.calibrate import calibrate
from discreet.models.categories import weigh_categories
from discreet.persons.scoring import score
from discreet.results.calibrated import Calibration
from discreet.results.chances import score_moments
from discreet.results.estimate import Estimate
from discreet.schema import Along, AtLeast, Count, Finite, Logit, Proportion
from discreet.tabular import Columns, Tabular, list_field_columns
from discreet.text import count_of
from discreet.types import BoolArray, FloatArray, Int8Array

#: Eigenvalues that are looked at.
COMPONENTS = 5
#: Simulated sets of answers; p-values are multiples of 1 / (sets + 1).
SIMULATIONS, FEWEST = 99, 39
#: Cells (persons times items) of one set; above, an even sample of the persons is looked at.
CELL_LIMIT = 250_000
#: Cells of all sets together, some seconds; above, there are fewer sets.
WORK_LIMIT = 10_000_000
#: Sum of squares below which a column of residuals is all the same.
NO_SPREAD = 1e-9


@dataclass(frozen=True)
class Dimensionality(Tabular):
    """Components of the residuals against chance, and the first contrast. Confidential.

    Attributes
    ----------
    eigenvalue
        The largest eigenvalues of the correlations of standardised residuals, in items: their
        sum over all components is the number of items. Missing answers count as residuals of
        zero, in the simulated sets too.
    expected, limit, p_value
        Mean and 95% point of each eigenvalue when the model holds, and the share of sets, the
        real one included, in which it is at least as large.
    items, difficulty, loading
        The items, the largest loading first: correlations with the first component.
    correlation
        Of the abilities on the items with positive and with negative loadings, corrected for the
        errors of both (disattenuated) and kept between -1 and 1: the correction can go beyond.
        The ends are chosen to differ, so that it is below 1 on sound tests too. None where one of
        them tells nobody apart, and of a routed test.
    persons, simulations
        How many were looked at; sampled is whether there were more persons.

    Examples
    --------
    >>> import discreet
    >>> from discreet import analysis
    >>> answers = discreet.datasets.lsat()
    >>> estimate = discreet.fit(answers)
    >>> round(analysis.find_dimensions(answers, estimate).eigenvalue[0], 2)
    1.4
    """

    eigenvalue: Annotated[tuple[Finite, ...], AtLeast(1)]
    expected: Annotated[tuple[Finite, ...], Along("eigenvalue")]
    limit: Annotated[tuple[Finite, ...], Along("eigenvalue")]
    p_value: Annotated[tuple[Proportion, ...], Along("eigenvalue")]
    items: tuple[str, ...]
    difficulty: Annotated[tuple[Logit, ...], Along("items")]
    loading: Annotated[tuple[Finite, ...], Along("items")]
    correlation: Finite | None
    persons: Count
    simulations: Count
    sampled: bool = False

    @property
    def excess(self) -> float:
        """How many items the first component is worth beyond chance."""
        return self.eigenvalue[0] - self.expected[0]

    @property
    def beyond_chance(self) -> int:
        """How many of the components, from the first on, exceed their 95% points."""
        above = [value > limit for value, limit in zip(self.eigenvalue, self.limit, strict=True)]
        return [*above, False].index(False)

    @property
    def warnings(self) -> tuple[FitWarning, ...]:
        """Whether these are all persons."""
        if not self.sampled:
            return ()
        sentence = f"dimensionality is that of {self.persons:,} evenly chosen persons"
        return (FitWarning(WarningKind.SAMPLED, sentence),)

    def to_dict(self) -> Columns:
        """One row per component: component, eigenvalue, expected, limit, p_value, share."""
        total = max(len(self.items), 1)
        return {
            "component": list(range(1, len(self.eigenvalue) + 1)),
            **list_field_columns(self, "eigenvalue", "expected", "limit", "p_value"),
            "share": [value / total for value in self.eigenvalue],
        }

    @property
    def contrast(self) -> Contrast:
        """The items of the first component as a table of its own."""
        return Contrast(self.items, self.difficulty, self.loading)


@dataclass(frozen=True)
class Contrast(Tabular):
    """Loadings of the first component, the largest first.

    Examples
    --------
    >>> import discreet
    >>> from discreet import analysis
    >>> answers = discreet.datasets.lsat()
    >>> estimate = discreet.fit(answers)
    >>> analysis.find_dimensions(answers, estimate).contrast.items[0]
    'Item3'
    """

    items: tuple[str, ...]
    difficulty: tuple[float, ...]
    loading: tuple[float, ...]

    def to_dict(self) -> Columns:
        """One row per item: item, difficulty, loading, end."""
        return {
            "item": list(self.items),
            **list_field_columns(self, "difficulty", "loading"),
            "end": ["positive" if value > 0 else "negative" for value in self.loading],
        }


def find_dimensions(
    responses: Responses,
    calibration: Calibration,
    *,
    simulations: int | None = None,
    rng: np.random.Generator | None = None,
) -> Dimensionality:
    """Compare what residuals have in common with what chance makes of it. Confidential.

    Persons with everything right or wrong are left out: their residuals are zero.

    Parameters
    ----------
    responses, calibration, reading
        As for :func:`discreet.score`.
    simulations
        How many sets of answers are simulated; by default 99, and down to 39 for large data.
    rng
        Source of the simulated answers; by default always the same one.

    Raises
    ------
    BadUsage
        With fewer than 3 items or 3 persons to look at.

    References
    ----------
    Horn, J. L. (1965). A rationale and test for the number of factors in factor analysis.
    Psychometrika 30(2), 179-185.

    Examples
    --------
    >>> import discreet
    >>> answers = discreet.datasets.lsat()
    >>> found = find_dimensions(answers, discreet.fit(answers, method="conditional"))
    >>> found.beyond_chance
    0
    """
    if simulations is not None and simulations < 1:
        raise BadUsage(f"simulations must be 1 or more, found {simulations}; 99 are usual")
    prepared = prepare(responses, calibration, "ml")
    prepared.refuse_weights("a test of dimensionality")
    design = _lay_out(prepared)
    sets = _choose_number(design.answered.size) if simulations is None else simulations
    source = np.random.default_rng(0) if rng is None else rng
    values, loading = _split_components(design.standardise(design.code))
    replicates = design.draws.draw(sets, source)
    null = np.stack(
        [_eigenvalues(design.standardise(code.T))[: len(values)] for code in replicates]
    )
    order = np.argsort(-loading, kind="stable")
    return Dimensionality(
        eigenvalue=tuple(values.tolist()),
        expected=tuple(null.mean(axis=0).tolist()),
        limit=tuple(np.quantile(null, 0.95, axis=0, method="higher").tolist()),
        p_value=tuple(((1 + (null >= values).sum(axis=0)) / (1 + sets)).tolist()),
        items=tuple(design.items[i] for i in order),
        difficulty=tuple(design.difficulty[order].tolist()),
        loading=tuple(loading[order].tolist()),
        correlation=_correlate_ends(prepared, design.items, loading),
        persons=len(design.code),
        simulations=sets,
        sampled=len(design.code) < int(prepared.used.sum()),
    )


@dataclass(frozen=True, eq=False)
class _Design:
    """Persons with right and wrong answers: what they answered (0 if missing), and chances."""

    items: tuple[str, ...]
    difficulty: FloatArray
    answered: BoolArray
    code: Int8Array
    expected: FloatArray
    #: One over the standard deviation of an answer; zero where there is none.
    weight: FloatArray
    #: The same persons, to be drawn again.
    draws: ScoreDraws

    def standardise(self, code: Any) -> FloatArray:
        """Return residuals with mean zero and variance one per item; missing ones are zero."""
        residual = (code - self.expected) * self.weight
        residual -= self.answered * (residual.sum(axis=0) / self.answered.sum(axis=0))
        square = (residual**2).sum(axis=0)
        return np.asarray(residual / np.sqrt(np.maximum(square, NO_SPREAD) / len(code)))


def _lay_out(prepared: Prepared) -> _Design:
    """Take the persons that are looked at, and the items that some of them answered."""
    used = np.flatnonzero(prepared.used)
    m = len(prepared.item_parameters.items)
    limit = max(3, CELL_LIMIT // m)
    if len(used) > limit:
        used = used[np.linspace(0, len(used) - 1, limit).round().astype(np.intp)]
    cells = prepared.responses.store.take(used).rows(0, len(used))
    columns = np.flatnonzero((cells >= 0).any(axis=0))
    if len(columns) < 3 or len(used) < 3:
        raise BadUsage(
            f"dimensionality needs 3 items and 3 persons with right and wrong answers or more, "
            f"found {len(columns)} and {len(used)}"
        )
    cells, b = cells[:, columns], prepared.thresholds[columns]
    ability = prepared.scores.ability[used]
    moments = score_moments(ability, b)
    spread, answered = np.sqrt(moments.variance), cells >= 0
    items = tuple(prepared.scores.items[i] for i in columns)
    expected = np.where(answered, moments.mean, 0.0)
    weight = np.divide(1.0, spread, out=np.zeros_like(spread), where=answered)
    code, draws = np.maximum(cells, 0), plan_draws(b, cells, prepared.group(used, columns))
    return _Design(items, prepared.difficulty[columns], answered, code, expected, weight, draws)


def _choose_number(cells: int) -> int:
    return int(np.clip(WORK_LIMIT // cells, FEWEST, SIMULATIONS))


def _small_product(residual: FloatArray) -> FloatArray:
    """Products of items or of persons, whichever are fewer: both have the same eigenvalues."""
    n, m = residual.shape
    product = residual.T @ residual if m <= n else residual @ residual.T
    return np.asarray(product / n)


def _eigenvalues(residual: FloatArray) -> FloatArray:
    """Return the largest eigenvalues of the correlations, the largest first."""
    from scipy.linalg import eigh

    product = _small_product(residual)
    last = len(product) - 1
    largest = (max(0, last - COMPONENTS + 1), last)
    return np.asarray(eigh(product, eigvals_only=True, subset_by_index=largest)[::-1])


def _split_components(residual: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the largest eigenvalues, and the loadings of the items on the first component."""
    n, m = residual.shape
    values, vectors = np.linalg.eigh(_small_product(residual))
    first = vectors[:, -1]
    loading = residual.T @ first / np.sqrt(n) if m > n else first * np.sqrt(values[-1])
    # The end with the larger loading is called positive: the sign itself means nothing.
    sign = 1.0 if loading[np.abs(loading).argmax()] > 0 else -1.0
    return values[::-1][:COMPONENTS], loading * sign


def _correlate_ends(
    prepared: Prepared, items: tuple[str, ...], loading: FloatArray
) -> float | None:
    """Correlate abilities on both ends of the contrast, and take out what errors take away."""
    ends = [
        {item: one for item, one in zip(items, chosen, strict=True) if one}
        for chosen in (loading > 0, loading <= 0)
    ]
    if not all(ends) or prepared.responses.routing is not None:
        return None
    b = {
        item: steps[~np.isnan(steps)]
        for item, steps in zip(prepared.item_parameters.items, prepared.thresholds, strict=True)
    }
    first, second = (
        score(prepared.responses.select(list(end)), {item: b[item] for item in end}, method="warm")
        for end in ends
    )
    measured = np.isfinite(first.ability) & np.isfinite(second.ability) & prepared.used
    if measured.sum() < 3:
        return None
    parts = [compare_spread(one.ability[measured], one.se[measured]) for one in (first, second)]
    shared = parts[0].reliability * parts[1].reliability
    if min(part.reliability for part in parts) <= 0:
        return None
    plain = float(np.corrcoef(first.ability[measured], second.ability[measured])[0, 1])
    return float(np.clip(plain / float(np.sqrt(shared)), -1.0, 1.0))


#: The name of a column of a long table, or a mapping from item to testlet.
Testlets = str | Mapping[str, str]


@dataclass(frozen=True, eq=False)
class ReliabilityByTestlet(Tabular):
    """Reliability with single items, and with testlets as items. Confidential.

    Attributes
    ----------
    items
        How many single items, and how many items there are with testlets.
    reliability, alpha
        Person separation reliability and Cronbach's alpha: single items, then testlets.
    estimate
        The calibration with testlets.
    warnings
        How many answers were left out because a testlet was answered in part.

    Examples
    --------
    >>> import discreet
    >>> from discreet import analysis
    >>> testlets = analysis.measure_testlets(discreet.datasets.lsat(), {"Item1": "a", "Item2": "a"})
    >>> round(testlets.overstated, 2)
    0.01
    """

    items: tuple[int, int]
    reliability: tuple[float, float]
    alpha: tuple[float, float]
    estimate: Estimate
    warnings: tuple[FitWarning, ...] = ()

    @property
    def overstated(self) -> float:
        """By how much single items overstate the person separation reliability."""
        return self.reliability[0] - self.reliability[1]

    def to_dict(self) -> Columns:
        """Two rows: single items and testlets, with items, reliability and alpha."""
        columns = list_field_columns(self, "items", "reliability", "alpha")
        return {"of": ["single items", "testlets"], **columns}


def combine_testlets(responses: Responses, testlet: Testlets) -> Responses:
    """Return answers in which every testlet is one item, the sum of its items. Confidential.

    Parameters
    ----------
    responses, reading
        As for :func:`discreet.score`.
    testlet
        The name of a column of a long table that names each item's testlet, such as ``"passage"``;
        or a mapping from item to testlet. Items without a testlet stay as they are.

    Notes
    -----
    Who answered a testlet in part has no sum: another set of items is another item. Such answers
    are missing, and :func:`measure_testlets` says how many.

    References
    ----------
    Wainer, H. and Kiely, G. L. (1987). Item clusters and computerized adaptive testing: a case for
    testlets. Journal of Educational Measurement 24(3), 185-201.

    Examples
    --------
    >>> import discreet
    >>> answers = discreet.datasets.lsat()
    >>> combine_testlets(answers, {"Item1": "text", "Item2": "text"}).items
    ('text', 'Item3', 'Item4', 'Item5')
    """
    return _combine(responses, name_testlets(testlet))[0]


def measure_testlets(responses: Responses, testlet: Testlets) -> ReliabilityByTestlet:
    """Say how much the reliability is overstated by items that belong together. Confidential.

    Parameters
    ----------
    responses, testlet, reading
        As for :func:`combine_testlets`.

    Examples
    --------
    >>> import discreet
    >>> found = measure_testlets(discreet.datasets.lsat(), {"Item1": "a", "Item2": "a"})
    >>> found.items
    (5, 4)
    """
    combined, lost = _combine(responses, name_testlets(testlet))
    estimate = calibrate(combined)
    calibrated = [(responses, calibrate(responses)), (combined, estimate)]
    reliability = [measure_fit(*pair).person_reliability.reliability for pair in calibrated]
    warnings: tuple[FitWarning, ...] = ()
    if lost:
        sentence = (
            f"{count_of(lost, 'answer')} to testlets that a person answered in part were left out"
        )
        warnings = (FitWarning(WarningKind.INCOMPLETE, sentence),)
    return ReliabilityByTestlet(
        items=(responses.n_items, combined.n_items),
        reliability=(reliability[0], reliability[1]),
        alpha=(measure_alpha(responses).alpha, measure_alpha(combined).alpha),
        estimate=estimate,
        warnings=warnings,
    )


def name_testlets(testlet: Testlets) -> dict[str, str]:
    """Return the testlet of each item that has one; answers hold no column that says it."""
    if isinstance(testlet, Mapping):
        return {str(item): str(label) for item, label in testlet.items()}
    raise BadUsage(
        f"answers that were read do not have the column {testlet!r} any more; give the table "
        "itself, or a mapping from item to testlet"
    )


def _combine(source: Responses, label_of: Mapping[str, str]) -> tuple[Responses, int]:
    """Return answers with sums, and how many answers to parts of testlets that leaves out."""
    unknown = [item for item in label_of if item not in set(source.items)]
    if unknown:
        raise BadUsage(f"the answers have no item {unknown[0]!r}; testlets are of items by name")
    labels = [label_of.get(item, item) for item in source.items]
    alone = [item for item in source.items if item not in label_of and item in label_of.values()]
    if alone:
        raise BadUsage(f"{alone[0]!r} is the name of an item and of a testlet; rename the testlet")
    names = tuple(dict.fromkeys(labels))
    if len(names) < 2:
        raise BadUsage(f"the testlets leave {len(names)} items; two or more are needed")
    refuse_routing(source.routing, "putting items together")
    cells, lost = source.rows(0, source.n_persons), 0
    codes, steps = [], []
    for name in names:
        columns = [column for column, label in enumerate(labels) if label == name]
        answered = cells[:, columns] >= 0
        complete = answered.all(axis=1)
        lost += int(answered[~complete].sum())
        total = np.maximum(cells[:, columns], 0).sum(axis=1, dtype=np.int64)
        codes.append(np.where(complete, total, -1))
        steps.append(sum(source.steps[column] for column in columns))
    store = store_codes(np.stack(codes, axis=1), steps)
    return Responses(names, source.persons, store, groups=source.groups, sample=source.sample), lost


@dataclass(frozen=True)
class Alpha(Tabular):
    """Cronbach's alpha of raw scores; for right and wrong answers it is KR-20. Confidential.

    ``alpha = k / (k - 1) (1 - sum of the items' variances / variance of the score)``, from persons
    who answered all ``k`` items. NaN where there are fewer than two of either, or no spread.

    Examples
    --------
    >>> import discreet
    >>> from discreet import analysis
    >>> analysis.measure_alpha(discreet.datasets.lsat()).persons
    1000
    """

    alpha: float
    persons: int
    items: int

    def to_dict(self) -> dict[str, float]:
        """Alpha, and of how many persons and items it is."""
        return {"alpha": self.alpha, "persons": self.persons, "items": self.items}


def measure_alpha(responses: Responses) -> Alpha:
    """Return Cronbach's alpha of the raw score, KR-20 of right and wrong answers. Confidential.

    Examples
    --------
    >>> import discreet
    >>> round(measure_alpha(discreet.datasets.lsat()).alpha, 3)
    0.295
    """
    answered, score = responses.store.person_totals()
    weight = (answered == responses.n_items) * (
        responses.sample.weight if responses.sample else 1.0
    )
    n, k = int(np.count_nonzero(weight)), responses.n_items
    if n < 2 or k < 2 or np.ptp(score[weight > 0]) == 0:
        return Alpha(float("nan"), n, k)
    share = weigh_categories(responses.store, weight) / weight.sum()
    category = np.arange(share.shape[1])
    inside = float((share @ category**2 - (share @ category) ** 2).sum())
    spread = np.average((score - np.average(score, weights=weight)) ** 2, weights=weight)
    return Alpha(k / (k - 1) * (1 - inside / float(spread)), n, k)
