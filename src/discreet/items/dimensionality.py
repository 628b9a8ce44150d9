"""Whether the items measure one thing: what residuals have in common, against chance.

In: answers and a calibration. Out: the largest eigenvalues of the correlations of standardised
residuals, each beside what it is when the model holds; the loadings of the first contrast; how
abilities on its two ends agree. Confidential.

Chance is simulated from the fitted model: every person answers the same items again and gets the
same score (:mod:`discreet.items.given_scores`), so the simulated persons have exactly the
abilities, the missing answers and the errors of the real ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Unpack

import numpy as np

from discreet.errors import BadUsage
from discreet.items.fit import compare_spread
from discreet.items.given_scores import ScoreDraws
from discreet.items.residuals import Prepared, prepare
from discreet.persons.scoring import score
from discreet.results.estimate import FitWarning, WarningKind
from discreet.results.thresholds import score_moments
from discreet.schema import Along, AtLeast, Count, Finite, Logit, Proportion
from discreet.tables.reading import ReadingWords
from discreet.tabular import Tabular, brief_repr
from discreet.types import BoolArray, FloatArray, Int8Array

COMPONENTS = 5
"""Eigenvalues that are looked at."""
SIMULATIONS, FEWEST = 99, 39
"""Simulated sets of answers; p-values are multiples of 1 / (sets + 1)."""
CELL_LIMIT = 250_000
"""Cells (persons times items) of one set; above, an even sample of the persons is looked at."""
WORK_LIMIT = 10_000_000
"""Cells of all sets together, some seconds; above, there are fewer sets."""
NO_SPREAD = 1e-9
"""Sum of squares below which a column of residuals is all the same."""


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
        them tells nobody apart.
    persons, simulations
        How many were looked at; sampled is whether there were more persons.
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

    __repr__ = brief_repr

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

    def to_dict(self) -> dict[str, list[Any]]:
        """One row per component: component, eigenvalue, expected, limit, p_value, share."""
        total = max(len(self.items), 1)
        return {
            "component": list(range(1, len(self.eigenvalue) + 1)),
            "eigenvalue": list(self.eigenvalue),
            "expected": list(self.expected),
            "limit": list(self.limit),
            "p_value": list(self.p_value),
            "share": [value / total for value in self.eigenvalue],
        }

    @property
    def contrast(self) -> Contrast:
        """The items of the first component as a table of its own."""
        return Contrast(self.items, self.difficulty, self.loading)


@dataclass(frozen=True)
class Contrast(Tabular):
    """Loadings of the first component, the largest first."""

    items: tuple[str, ...]
    difficulty: tuple[float, ...]
    loading: tuple[float, ...]

    __repr__ = brief_repr

    def to_dict(self) -> dict[str, list[Any]]:
        """One row per item: item, difficulty, loading, end."""
        return {
            "item": list(self.items),
            "difficulty": list(self.difficulty),
            "loading": list(self.loading),
            "end": ["positive" if value > 0 else "negative" for value in self.loading],
        }


def find_dimensions(
    responses: Any,
    calibration: Any,
    *,
    simulations: int | None = None,
    rng: np.random.Generator | None = None,
    **reading: Unpack[ReadingWords],
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
    prepared = prepare(responses, calibration, "ml", reading)
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
    weight: FloatArray
    """One over the standard deviation of an answer; zero where there is none."""
    draws: ScoreDraws
    """The same persons, to be drawn again."""

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
    code, draws = np.maximum(cells, 0), ScoreDraws.of(b, cells)
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
    if not all(ends):
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
