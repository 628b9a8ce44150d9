"""Plausible values: draws of what abilities may be, given answers and what else is known.

In: grouped answers, difficulties, and columns that describe persons. Out: a latent regression
(abilities are normal, their mean depends on the columns), its posterior means, and draws from
each person's posterior. Statistics of groups that are computed from draws are right where
posterior means, which are drawn towards the centre, understate every difference and variance
(Mislevy 1991). Difficulties are taken as known. Confidential.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.answers.survey import SurveyDesign
from discreet.choices import PlainMapping
from discreet.errors import BadUsage, NotConverged
from discreet.models.conditional import Patterns
from discreet.persons.measures import ROUNDS, TOL, estimate_prior, sum_pattern_rows
from discreet.results.chances import count_item_steps, log_totals
from discreet.tabular import Columns, Tabular, brief_repr
from discreet.types import BoolArray, FloatArray, IndexArray, Int64Array, Texts

#: Half-width of the grid in standard deviations of all abilities.
REACH = 6.5
#: Nodes within the narrowest posterior's standard deviation; draws between nodes are even, which
#: adds 1 / 192 of that variance.
FINE = 4.0
#: Fewest and most nodes.
NODES = (131, 2001)
#: Numbers worked on at a time: 16 MB.
CHUNK_CELLS = 1 << 21
#: Values up to which a column is a set of groups; numbers beyond enter as numbers.
MOST_LEVELS = 30
#: How missing values of a column look as text; together they are a group of their own.
UNKNOWN = ("", "nan", "None", "NaN", "<NA>", "NaT")


@dataclass(frozen=True, eq=False)
class LatentRegression(Tabular):
    """Abilities are normal around a mean that depends on what is known of a person.

    Attributes
    ----------
    terms, coefficient, se
        The intercept is the mean of the first group of every column; the others are differences
        from it, in logits. Standard errors take the difficulties as known; with weights they are
        those of the sampling design.
    sd, sd_se
        Standard deviation of abilities around that mean.
    explained
        Share of the variance of abilities that the columns explain.
    """

    terms: tuple[str, ...]
    coefficient: FloatArray
    se: FloatArray
    sd: float
    sd_se: float
    explained: float

    __repr__ = brief_repr

    def to_dict(self) -> Columns:
        """One row per term, and the standard deviation in the last one: term, coefficient, se."""
        return {
            "term": [*self.terms, "SD of the rest"],
            "coefficient": [*self.coefficient.tolist(), self.sd],
            "se": [*self.se.tolist(), self.sd_se],
        }


@dataclass(frozen=True, eq=False)
class AbilityPosterior:
    """What answers and columns say about every person; ``draws`` is ``[person, draw]``."""

    mean: FloatArray
    sd: FloatArray
    draws: FloatArray
    regression: LatentRegression


def take_columns(
    groups: PlainMapping, regress: str | Sequence[str] | Mapping[str, Sequence[object]]
) -> Mapping[str, Sequence[object]]:
    """Return the columns of a regression: those given, or those of the answers by name."""
    if isinstance(regress, Mapping):
        return regress
    names = [regress] if isinstance(regress, str) else list(regress)
    for name in names:
        if name not in groups:
            raise BadUsage(
                f"the answers have no group column {name!r} to regress on (they have: "
                f"{', '.join(groups) or 'none'}); name it as a group when reading them"
            )
    return {name: list(groups[name]) for name in names}


def code_columns(
    columns: Mapping[str, Sequence[object]], n_persons: int
) -> tuple[tuple[str, ...], FloatArray]:
    """Turn columns into terms of a regression: groups into zeros and ones, numbers as they are.

    Raises
    ------
    BadUsage
        If a column has another length, one value only, or too many that are no numbers; if
        columns say the same thing.
    """
    terms, parts = ["intercept"], [np.ones(n_persons)]
    for name, values in columns.items():
        labels = np.array(["" if cell is None else str(cell) for cell in values], dtype=object)
        if len(labels) != n_persons:
            raise BadUsage(
                f"the column {name!r} needs one value for each of the {n_persons} persons, found "
                f"{len(labels)}"
            )
        for term, part in _code_column(name, labels):
            terms.append(term)
            parts.append(part)
    design = np.column_stack(parts)
    if np.linalg.matrix_rank(design) < len(terms):
        raise BadUsage(
            f"the columns {', '.join(columns)} say the same thing at least in part, so their "
            "effects cannot be separated; leave one of them out"
        )
    return tuple(terms), design


def _code_column(name: str, labels: Texts) -> Iterator[tuple[str, FloatArray]]:
    labelled = np.array([label not in UNKNOWN for label in labels], dtype=bool)
    levels = sorted(set(labels[labelled]), key=_by_number)
    if len(levels) + (not labelled.all()) < 2:
        raise BadUsage(
            f"the column {name!r} has the one value {''.join(levels) or 'unknown'!r} for "
            "everybody, so nothing can depend on it; leave it out"
        )
    if len(levels) <= MOST_LEVELS:
        for level in levels[1:]:
            yield f"{name} = {level}", (labels == level).astype(np.float64)
    else:
        yield name, _read_numbers(name, labels, labelled)
    if not labelled.all() and levels:
        yield f"{name} unknown", (~labelled).astype(np.float64)


def _by_number(label: str) -> tuple[float, str]:
    try:
        return float(label), label
    except ValueError:
        return float("inf"), label


def _read_numbers(name: str, labels: Texts, labelled: BoolArray) -> FloatArray:
    """Return the column as numbers; unknown ones get the mean, and a term of their own."""
    values = np.zeros(len(labels))
    try:
        values[labelled] = [float(label) for label in labels[labelled]]
    except ValueError as error:
        raise BadUsage(
            f"the column {name!r} has {len(set(labels[labelled]))} different values that are not "
            f"all numbers; a regression takes up to {MOST_LEVELS} groups, or numbers"
        ) from error
    values[~labelled] = values[labelled].mean()
    return values


@dataclass(frozen=True, eq=False)
class _Grid:
    """Kinds of persons: equal answers and equal columns; and the grid of abilities.

    Attributes
    ----------
    nodes, spacing
        Abilities, equally far apart.
    log_likelihood
        Of the answers, ``[entry of the patterns, node]``.
    entry, design, persons
        Per kind: its answers, its terms, how many persons with answers it has, or their weights.
    kind
        The kind of every person.
    """

    nodes: FloatArray
    spacing: float
    log_likelihood: FloatArray
    entry: Int64Array
    design: FloatArray
    persons: Int64Array | FloatArray
    kind: IndexArray

    def chunks(self) -> Iterator[slice]:
        """Yield kinds to be worked on at a time."""
        size = max(1, CHUNK_CELLS // len(self.nodes))
        for start in range(0, len(self.entry), size):
            yield slice(start, start + size)

    def posterior(self, part: slice, beta: FloatArray, sd: float) -> FloatArray:
        """Return the posterior of some kinds, ``[kind, node]``."""
        deviation = self.nodes - (self.design[part] @ beta)[:, None]
        log_post = self.log_likelihood[self.entry[part]] - deviation**2 / (2 * sd**2)
        post = np.exp(log_post - log_post.max(axis=1, keepdims=True))
        return np.asarray(post / post.sum(axis=1, keepdims=True))


def _lay_grid(
    patterns: Patterns, b: FloatArray, design: FloatArray, weight: FloatArray | None
) -> tuple[_Grid, float]:
    """Return kinds and grid, and the spread of all abilities to start from."""
    prior = estimate_prior(patterns if weight is None else patterns.weigh(weight), b)
    # The variance of a score from 0 to M is at most M^2 / 4.
    squared_steps = int(patterns.highest(count_item_steps(b) ** 2).max(initial=1))
    narrow = 1 / np.sqrt(1 / prior.sd**2 + squared_steps / 4)
    count = int(np.clip(2 * REACH * prior.sd * FINE / narrow, *NODES)) // 2 * 2 + 1
    nodes = prior.mean + prior.sd * np.linspace(-REACH, REACH, count)
    load = sum_pattern_rows(patterns, 0, len(patterns.indptr) - 1, log_totals(nodes, b))
    rows, row = np.unique(design, axis=0, return_inverse=True)
    code, kind = np.unique(patterns.entry * len(rows) + row.reshape(-1), return_inverse=True)
    entry = code // len(rows)
    answered = patterns.lengths[patterns.pattern[entry]] > 0
    grid = _Grid(
        nodes=nodes,
        spacing=float(nodes[1] - nodes[0]),
        log_likelihood=patterns.score[:, None] * nodes - load[patterns.pattern],
        entry=entry,
        design=rows[code % len(rows)],
        persons=np.bincount(kind.reshape(-1), weight, minlength=len(code)) * answered,
        kind=kind.reshape(-1),
    )
    return grid, prior.sd


def fit_posterior(
    patterns: Patterns,
    b: FloatArray,
    terms: tuple[str, ...],
    design: FloatArray,
    *,
    draws: int,
    rng: np.random.Generator,
    sample: SurveyDesign | None = None,
) -> AbilityPosterior:
    """Fit the latent regression, and draw from every person's posterior.

    Each draw has its own coefficients and standard deviation, from their normal approximation
    around the maximum, so that draws also differ by how little the regression is known.

    Parameters
    ----------
    patterns, b
        Grouped answers, and the thresholds ``[item, step]``.
    terms, design
        From :func:`code_columns`.
    draws
        How many values for each person.
    rng
        Source of the draws.
    sample
        Weights and sampling design of the persons, by which the regression is that of the
        population, and its errors those of the design.
    """
    _check_rank(patterns, design, terms)
    grid, sd = _lay_grid(patterns, b, design, None if sample is None else sample.weight)
    beta, sd = _climb(grid, sd)
    mean, spread = _moments(grid, beta, sd)
    covariance = _covariance(grid, beta, sd)
    if sample is not None:
        score = np.column_stack([grid.design * (mean / sd**2)[:, None], spread / sd**2 - 1])
        moves = (score @ covariance)[grid.kind] * sample.weight[:, None]
        moves[patterns.lengths[patterns.pattern[patterns.entry]] == 0] = 0.0
        covariance = sample.linearise(moves)
    values = [
        _draw(grid, *_vary(beta, sd, covariance, grid.spacing, rng), rng) for _ in range(draws)
    ]
    fitted = grid.design @ beta
    answered = patterns.lengths[patterns.pattern[patterns.entry]] > 0
    plausible = np.column_stack([np.empty((len(answered), 0)), *values])
    plausible[~answered] = np.nan
    return AbilityPosterior(
        mean=np.where(answered, (fitted + mean)[grid.kind], np.nan),
        sd=np.where(answered, np.sqrt(spread - mean**2)[grid.kind], np.nan),
        draws=plausible,
        regression=_describe(terms, beta, sd, covariance, _find_spread(fitted, grid.persons)),
    )


def _describe(
    terms: tuple[str, ...], beta: FloatArray, sd: float, covariance: FloatArray, between: float
) -> LatentRegression:
    error = np.sqrt(covariance.diagonal())
    explained = between / (between + sd**2)
    return LatentRegression(terms, beta, error[:-1], sd, sd * float(error[-1]), explained)


def _find_spread(value: FloatArray, weight: Int64Array | FloatArray) -> float:
    """Return the variance of values, each of which counts as often as its weight says."""
    return float(np.average((value - np.average(value, weights=weight)) ** 2, weights=weight))


def _check_rank(patterns: Patterns, design: FloatArray, terms: tuple[str, ...]) -> None:
    answered = patterns.lengths[patterns.pattern[patterns.entry]] > 0
    if answered.sum() <= len(terms):
        raise BadUsage(
            f"a regression with {len(terms)} terms needs more persons with answers than that, "
            f"found {int(answered.sum())}"
        )
    occurs = np.abs(design[answered]).sum(axis=0) > 0
    empty = [term for term, some in zip(terms, occurs.tolist(), strict=True) if not some]
    if empty or np.linalg.matrix_rank(design[answered]) < len(terms):
        raise BadUsage(
            f"among persons with answers the terms {', '.join(empty or terms)} cannot be "
            "estimated: nobody has them, or they say the same thing; leave a column out"
        )


def _moments(grid: _Grid, beta: FloatArray, sd: float, orders: int = 2) -> FloatArray:
    """Return the first moments of the posteriors around the regression, ``[power, kind]``."""
    moments = np.empty((orders, len(grid.entry)))
    for part in grid.chunks():
        post = grid.posterior(part, beta, sd)
        deviation = grid.nodes - (grid.design[part] @ beta)[:, None]
        power = post
        for order in range(orders):
            power = power * deviation
            moments[order, part] = power.sum(axis=1)
    return moments


def _climb(grid: _Grid, sd: float) -> tuple[FloatArray, float]:
    """Maximise the likelihood of coefficients and standard deviation by EM."""
    weighted = grid.design * grid.persons[:, None]
    product = weighted.T @ grid.design
    total = grid.persons.sum()
    beta = np.zeros(grid.design.shape[1])
    beta[0] = float(grid.nodes.mean())
    for _ in range(ROUNDS):
        first, second = _moments(grid, beta, sd)
        step = np.linalg.solve(product, weighted.T @ first)
        # Around the new mean: E (theta - x (beta + step))^2.
        shift = grid.design @ step
        width = grid.persons @ (second - 2 * shift * first + shift**2) / total
        new = max(float(np.sqrt(width)), grid.spacing)
        change = max(float(np.abs(step).max()), abs(new - sd))
        beta, sd = beta + step, new
        if change < TOL:
            return beta, sd
    raise NotConverged(
        f"the latent regression still moved by {change:.1e} logits after {ROUNDS} rounds; leave "
        "out columns with groups of very few persons"
    )


def _covariance(grid: _Grid, beta: FloatArray, sd: float) -> FloatArray:
    """Invert the observed information about coefficients and log standard deviation (Louis)."""
    first, second, third, fourth = _moments(grid, beta, sd, 4)
    x, w, v = grid.design, grid.persons, sd**2
    by_mean = w * (1 / v - (second - first**2) / v**2)
    cross = x.T @ (w * (2 * first / v - (third - first * second) / v**2))
    by_sd = float(w @ (2 * second / v - (fourth - second**2) / v**2))
    information = np.block(
        [[(x * by_mean[:, None]).T @ x, cross[:, None]], [cross[None, :], np.array([[by_sd]])]]
    )
    values, vectors = np.linalg.eigh(information)
    # A direction without information is a standard deviation of zero: it is not drawn.
    inverse = np.where(values > 1e-9 * values.max(), 1 / np.maximum(values, 1e-300), 0.0)
    return np.asarray((vectors * inverse) @ vectors.T)


def _vary(
    beta: FloatArray, sd: float, covariance: FloatArray, least: float, rng: np.random.Generator
) -> tuple[FloatArray, float]:
    """Draw coefficients and a standard deviation."""
    move = rng.multivariate_normal(np.zeros(len(covariance)), covariance, method="eigh")
    return beta + move[:-1], max(sd * float(np.exp(move[-1])), least)


def _draw(grid: _Grid, beta: FloatArray, sd: float, rng: np.random.Generator) -> FloatArray:
    """Draw one ability for every person: a node by its posterior, and a place around it."""
    values = np.empty(len(grid.kind))
    order = np.argsort(grid.kind, kind="stable")
    sorted_kind = grid.kind[order]
    for part in grid.chunks():
        below = np.cumsum(grid.posterior(part, beta, sd), axis=1)
        span = slice(*np.searchsorted(sorted_kind, [part.start, part.stop]))
        size = max(1, CHUNK_CELLS // len(grid.nodes))
        for start in range(span.start, span.stop, size):
            persons = order[start : min(start + size, span.stop)]
            chance = rng.random((len(persons), 1))
            node = (below[grid.kind[persons] - part.start] < chance).sum(axis=1)
            nearest = np.minimum(node, len(grid.nodes) - 1)
            values[persons] = grid.nodes[nearest] + grid.spacing * (rng.random(len(persons)) - 0.5)
    return values
