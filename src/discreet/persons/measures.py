"""Solve for abilities, with the item difficulties held fixed.

In: which items were answered, scores and difficulties. Out: one ability and standard error for
each person. Confidential: an ability is about one person and is never part of a release.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from discreet.answers.pack import store_codes
from discreet.errors import BadResponses, BadUsage, NotConverged
from discreet.models.conditional import Patterns, group_patterns
from discreet.results.chances import as_thresholds, count_item_steps, log_totals, score_moments
from discreet.results.limits import ANDERSEN_LEVEL, ERRORS_LARGE
from discreet.types import FloatArray, Int8Array, Int64Array, Vector

#: Cells worked on at a time: 8 MB of float64.
PIECE_CELLS = 1 << 20

#: Far above need: halving a bracket of 100 logits takes 47 steps to the tolerance.
STEPS = 200

#: After 8 halvings the bracket is a fraction of a logit and Newton's method takes about 4 steps;
#: where it has not settled by step 50, halving finishes.
NEWTON_STEPS = range(8, 50)

#: Logits; many orders below any standard error.
TOLERANCE = 1e-12

#: Persons and items below which nothing is said about standard errors of abilities.
FEWEST_COMPARED, FEWEST_HALVED = 30, 8


@dataclass(frozen=True, eq=False)
class Abilities:
    """One ability for each person, in logits on the scale of the difficulties.

    Attributes
    ----------
    ability, se
        NaN for a person who answered no item with a difficulty.
    """

    ability: FloatArray
    se: FloatArray

    def __post_init__(self) -> None:
        self.ability.setflags(write=False)
        self.se.setflags(write=False)


def abilities(answers: npt.ArrayLike, difficulty: npt.ArrayLike) -> Abilities:
    """Estimate abilities by Warm's weighted likelihood.

    The estimate solves ``right - sum P + J / (2 I) = 0`` over the items that the person
    answered, with information ``I = sum P (1 - P)`` and ``J = sum P (1 - P)(1 - 2 P)`` (Warm
    1989, eq. 9, for the Rasch model). It is finite for perfect and zero scores and its bias is
    of smaller order than that of maximum likelihood. With steps the sums are of the means, the
    variances and the third central moments of the scores.

    Parameters
    ----------
    answers
        ``[person, item]``: 1 right, 0 wrong, NaN or -1 missing; with steps the category, from 0.
    difficulty
        ``[item]``, or thresholds ``[item, step]``, NaN beyond an item's steps; items without a
        number (not estimated) are left out.

    References
    ----------
    Warm, T. A. (1989). Weighted likelihood estimation of ability in item response theory.
    Psychometrika 54(3), 427-450.

    Examples
    --------
    >>> abilities([[1, 1], [0, 0]], [0.0, 0.0]).ability.round(4).tolist()
    [1.6094, -1.6094]
    """
    b = as_thresholds(difficulty)
    matrix = np.asarray(answers)
    if matrix.ndim != 2 or b.shape[:1] != matrix.shape[1:]:
        raise BadUsage(
            f"answers must be a table [person, item] with one difficulty for each item, found "
            f"shapes {matrix.shape} and {np.shape(difficulty)}"
        )
    use = np.isfinite(b[:, 0])
    steps = count_item_steps(b[use])
    store = store_codes(_read_codes(matrix[:, use], steps), steps.tolist())
    patterns = group_patterns(store, np.arange(len(steps)))
    ability, se = solve_entries(patterns, b[use], "warm", None)
    return Abilities(ability[patterns.entry], se[patterns.entry])


def _read_codes(matrix: Vector, steps: Int64Array) -> Int64Array:
    """Return the categories of a table, -1 where an answer is missing."""
    answered = np.isin(matrix, np.arange(int(steps.max(initial=1)) + 1)) & (matrix <= steps)
    missing = (matrix == -1) | (matrix != matrix)
    if not (answered | missing).all():
        person, item = np.argwhere(~(answered | missing))[0]
        highest = int(steps[item])
        allowed = "1 (right), 0 (wrong)" if highest == 1 else f"its categories, 0 to {highest},"
        raise BadResponses(
            f"the answer of person {person} to item {item} is {matrix[person, item]}; abilities "
            f"need {allowed} or missing (NaN)"
        )
    return np.where(answered, matrix, -1).astype(np.int64)


def solve_likelihood(
    b: FloatArray, score: npt.NDArray[np.int64], *, correction: float
) -> tuple[FloatArray, FloatArray]:
    """Abilities and standard errors for rows of answered items.

    Parameters
    ----------
    b
        ``[row, answer, step]``: thresholds of the items that were answered.
    score
        Right answers of each row; with steps the total score.
    correction
        1 for Warm's weighted likelihood; 0 for maximum likelihood, where no score may be the
        lowest or the highest.
    """
    theta = _solve(score, b, correction)
    information = _equation(theta, score, b, correction)[1]
    return theta, 1 / np.sqrt(information)


def _solve(right: npt.NDArray[np.int64], b: FloatArray, correction: float) -> FloatArray:
    """Halve a bracket that always holds a root, with Newton's method in the middle part.

    Far below every difficulty the equation is near ``right + 1/2 > 0``, far above near
    ``right - answered - 1/2 < 0``. A test with a gap of many logits between its items can have
    several roots. Halving first makes the choice depend on nothing but items and score, and a
    higher score never gets a lower root.
    """
    reach = np.log(2.0 * b.shape[1]) + 5.0
    low = np.fmin.reduce(b, axis=(1, 2)) - reach
    high = np.fmax.reduce(b, axis=(1, 2)) + reach
    theta: FloatArray = (low + high) / 2
    done = np.zeros(len(theta), dtype=bool)
    for step in range(STEPS):
        value, _, slope = _equation(theta, right, b, correction)
        low, high = np.where(value > 0, theta, low), np.where(value < 0, theta, high)
        moved = theta - value / np.where(slope < 0, slope, -1.0)
        newton = (slope < 0) & (moved > low) & (moved < high) & (step in NEWTON_STEPS)
        moved = np.where(newton, moved, (low + high) / 2)
        moved = np.where(done | (value == 0), theta, moved)
        done |= np.abs(moved - theta) < TOLERANCE
        theta = moved
        if done.all():
            return theta
    raise NotConverged(f"abilities did not settle within {STEPS} steps; please report this")


def _equation(
    theta: FloatArray, right: npt.NDArray[np.int64], b: FloatArray, correction: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Left side of Warm's equation, the information, and the slope of the left side."""
    item = score_moments(theta, b)
    information = item.variance.sum(axis=1)
    skew = item.third.sum(axis=1) / information
    curve = (item.fourth - 3 * item.variance**2).sum(axis=1) / information
    slope = -information + correction * (curve - skew**2) / 2
    return right - item.mean.sum(axis=1) + correction * skew / 2, information, slope


@dataclass(frozen=True)
class HalvesTest:
    """Whether the easier and the harder half of the items agree on every person's ability.

    Attributes
    ----------
    z, p_value
        Whether the difference between a person's two abilities changes with the ability, which
        it does not when the model holds. Positive where the harder half spreads persons less, as
        guessing makes it do.
    times
        How large the differences are, as a multiple of what the standard errors allow: 1 when the
        model holds, above where standard errors are too small.
    """

    z: float
    p_value: float
    times: float

    @property
    def is_found(self) -> bool:
        """Whether the halves disagree beyond chance."""
        return self.p_value < ANDERSEN_LEVEL

    @property
    def is_large(self) -> bool:
        """Whether they disagree so much that standard errors are clearly too small."""
        return self.times >= ERRORS_LARGE

    @property
    def title(self) -> str:
        """What a disagreement means, in short."""
        if self.is_large:
            return "The standard errors of abilities are too small"
        return "The scale of abilities is distorted"

    def explain(self) -> tuple[str, str]:
        """Return what was found, and what to do about it."""
        finding = (
            "Abilities on the easier and on the harder half of the items differ "
            f"{self.times:.2f} times as much as their standard errors allow, and the difference "
            f"depends on the ability (z {self.z:.1f}). Guessing and unequal slopes of the items do "
            "this."
        )
        if self.is_large:
            return finding, "Do not rely on small differences between persons."
        return finding, (
            "Compare persons on this scale as usual; the standard errors serve for that. A logit "
            "is not the same for low and for high abilities."
        )


def compare_halves(
    code: Int8Array, thresholds: FloatArray, ability: FloatArray, se: FloatArray
) -> HalvesTest | None:
    """Test whether standard errors of abilities cover how easier and harder items disagree.

    A person's score on the easier half, given the score on all items, has mean and variance by
    the model; ``u`` is the score less that mean, ``v`` the variance. With information ``I = I_1 +
    I_2`` of the two halves ``v = I_1 I_2 / I``, and ``u / v`` is the difference of the abilities
    on both halves. The test is that of a slope of these differences on ability, and ``times`` the
    root of the mean of ``u^2 / v``.

    Parameters
    ----------
    code
        ``[person, item]``, -1 where an answer is missing; nobody with an extreme score.
    thresholds, ability
        Of the items, and of these persons.
    se
        Standard errors of the items' locations, which count as known exactly where NaN. The
        answers that the items were calibrated with may be others.

    Returns
    -------
    HalvesTest or None
        None with fewer than 8 items, or 30 persons who answered items of both halves.
    """
    if len(thresholds) < FEWEST_HALVED:
        return None
    location = np.nanmean(thresholds, axis=1)
    easier = location <= np.median(location)
    item = score_moments(ability, thresholds)
    residual = np.where(code >= 0, code - item.mean, 0.0)
    variance = np.where(code >= 0, item.variance, 0.0)
    halves = [(residual[:, half].sum(axis=1), variance[:, half].sum(axis=1))
              for half in (easier, ~easier)]  # fmt: skip
    (first, first_information), (second, second_information) = halves
    usable = (first_information > 0) & (second_information > 0)
    if usable.sum() < FEWEST_COMPARED:
        return None
    share = np.where(
        usable,
        second_information / np.where(usable, first_information + second_information, 1.0),
        0.0,
    )
    u, v = share * first - (1 - share) * second, share * first_information
    deviation = np.where(usable, ability - np.average(ability, weights=v), 0.0)
    # How far the slope moves with the location of each item.
    moved = np.where(easier, deviation * share @ variance, -deviation * (1 - share) @ variance)
    spread = float(v @ deviation**2 + moved**2 @ np.nan_to_num(se) ** 2)
    if spread <= 0:
        return None
    z = float(u @ deviation) / spread**0.5
    times = float(np.sqrt(np.mean(u[usable] ** 2 / v[usable])))
    return HalvesTest(z, 2 * NormalDist().cdf(-abs(z)), times)


#: In standard deviations of the prior; posteriors down to a tenth of its width are resolved.
GRID = np.linspace(-6.5, 6.5, 131)
#: Sets of items worked on at a time: about 10 MB for each array.
CHUNK_PATTERNS = 10_000
ROUNDS = 1000
TOL = 1e-7
SMALLEST_SD = 1e-3


@dataclass(frozen=True)
class NormalPrior:
    """Abilities before any answer: normal with this mean and standard deviation."""

    mean: float
    sd: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.mean) and np.isfinite(self.sd) and self.sd > 0):
            raise BadUsage(
                f"a prior needs a finite mean and a positive SD, found {self.mean} and {self.sd}"
            )


def posterior_moments(
    patterns: Patterns, b: FloatArray, prior: NormalPrior
) -> tuple[FloatArray, FloatArray]:
    """Posterior mean and standard deviation of each entry of the patterns.

    ``b`` are difficulties, or thresholds ``[item, step]``.
    """
    nodes = prior.mean + prior.sd * GRID
    totals = log_totals(nodes, as_thresholds(b))
    mean, sd = (np.zeros(len(patterns.pattern)) for _ in range(2))
    for start in range(0, len(patterns.indptr) - 1, CHUNK_PATTERNS):
        stop = min(start + CHUNK_PATTERNS, len(patterns.indptr) - 1)
        part = slice(*np.searchsorted(patterns.pattern, [start, stop]))
        load = sum_pattern_rows(patterns, start, stop, totals)[patterns.pattern[part] - start]
        log_post = patterns.score[part, None] * nodes - load - GRID**2 / 2
        post = np.exp(log_post - log_post.max(axis=1, keepdims=True, initial=-np.inf))
        post /= post.sum(axis=1, keepdims=True)
        mean[part] = post @ nodes
        sd[part] = np.sqrt((post * (nodes - mean[part, None]) ** 2).sum(axis=1))
    return mean, sd


def sum_pattern_rows(patterns: Patterns, start: int, stop: int, table: FloatArray) -> FloatArray:
    """Add up the rows of a table over the items of each pattern."""
    from scipy.sparse import csr_array

    indptr = patterns.indptr[start : stop + 1]
    item = patterns.item[indptr[0] : indptr[-1]]
    shape = (stop - start, patterns.n_items)
    return np.asarray(csr_array((np.ones(len(item)), item, indptr - indptr[0]), shape) @ table)


def estimate_prior(patterns: Patterns, b: FloatArray) -> NormalPrior:
    """Maximum likelihood mean and standard deviation, by EM with the difficulties fixed."""
    answered = patterns.lengths[patterns.pattern] > 0
    persons = patterns.persons * answered
    prior = NormalPrior(0.0, 1.0)
    for _ in range(ROUNDS):
        mean, sd = posterior_moments(patterns, b, prior)
        centre = float(persons @ mean / persons.sum())
        width = float(persons @ (sd**2 + (mean - centre) ** 2) / persons.sum())
        new = NormalPrior(centre, max(float(np.sqrt(width)), SMALLEST_SD))
        change = max(abs(new.mean - prior.mean), abs(new.sd - prior.sd))
        prior = new
        if change < TOL:
            break
    return prior


def find_highest(patterns: Patterns, b: FloatArray) -> Int64Array:
    """Return the highest score that each entry could have."""
    return patterns.highest(count_item_steps(b))[patterns.pattern]


def solve_entries(
    patterns: Patterns, b: FloatArray, method: str, prior: NormalPrior | None
) -> tuple[FloatArray, FloatArray]:
    """Ability and standard error of every entry of the patterns; NaN where there is none."""
    length = patterns.lengths[patterns.pattern]
    ability, se = (np.full(len(length), np.nan) for _ in range(2))
    if prior is not None:
        some = length > 0
        mean, sd = posterior_moments(patterns, b, prior)
        ability[some], se[some] = mean[some], sd[some]
        return ability, se
    score = patterns.score
    within = (score > 0) & (score < find_highest(patterns, b))
    solvable = length > 0 if method == "warm" else within
    for size in np.unique(length[solvable]):
        same = np.flatnonzero(solvable & (length == size))
        step = max(1, PIECE_CELLS // (int(size) * b.shape[1]))
        for start in range(0, len(same), step):
            part = same[start : start + step]
            first = patterns.indptr[patterns.pattern[part]]
            items = patterns.item[first[:, None] + np.arange(size)]
            ability[part], se[part] = solve_likelihood(
                b[items], patterns.score[part], correction=float(method == "warm")
            )
    return ability, se
