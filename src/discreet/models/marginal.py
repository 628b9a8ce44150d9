"""Marginal maximum likelihood: abilities are drawn from a distribution and integrated out.

In: answers. Out: difficulties with standard errors, and the ability distribution. Right where
the next item depends on the answers so far (adaptive and routed tests), because such a design
cancels from the likelihood of all answers; wrong where items were chosen by something else that
is known about the person (targeting), and where the distribution is not the assumed one. Pair
counts and conditional likelihood are the other way round. Confidential.

The ability distribution is normal, on a grid that moves with its standard deviation, or
empirical: free weights on a fixed grid (de Leeuw and Verhelst 1986).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from discreet.answers.protocol import Answers
from discreet.counts.table import PairCounts
from discreet.errors import BadUsage, DisconnectedItems, NotConverged
from discreet.models.connection import build_chain, classify, name_some
from discreet.models.empirical import fit_empirical
from discreet.models.mixture import (
    MarginalFit,
    Mixture,
    Sums,
    centre_covariance,
    evaluate,
    information_about_difficulty,
)
from discreet.models.patterns import GroupPatterns, Patterns
from discreet.models.refined import solve_refined
from discreet.results.estimate import Estimate, Kind, Notice, Solution, Status
from discreet.types import FloatArray, Int64Array

DISTRIBUTIONS = ("normal", "empirical")
REACH = 6.5
"""Half-width of the normal grid in standard deviations: 1e-10 of the mass lies outside."""
STEP_TOL = 1e-7
"""Logits, far below any standard error."""
STEPS = 200
"""Newton steps; about 10 are taken."""
REFRESH = 0.2
"""A step that is not this much shorter than the last asks for new second derivatives."""
ITEM_LIMIT = 5000
"""The information matrix is dense, and is built once for every node of the grid."""
SMALL_SD = 0.02
"""Below this the answers hardly tell persons apart and the estimate is at its boundary."""


def fit_marginal(responses: Answers, *, ability: str = "normal") -> Estimate:
    """Estimate difficulties by marginal maximum likelihood.

    Parameters
    ----------
    responses
        The answers.
    ability
        ``"normal"`` or ``"empirical"``: what is assumed about the abilities.

    Raises
    ------
    DisconnectedItems
        If fewer than two items have right and wrong answers, or nobody answered two of them.
    """
    counts = responses.count()
    kept = np.flatnonzero((counts.right > 0) & (counts.right < counts.answers))
    job = GroupPatterns(kept)
    patterns = job.collect(responses.reduce(job))
    _check(patterns, counts, ability)
    try:
        found = maximise_marginal(
            patterns, counts.right[kept], ability=ability, start=_start(counts, kept)
        )
    except NotConverged:
        build_chain(counts)  # says so where the answers link nothing: then that is why
        raise
    status, warnings = _explain(counts, kept, found)
    difficulty, se = (np.full(len(counts.items), np.nan) for _ in range(2))
    difficulty[kept], se[kept] = found.difficulty, np.sqrt(found.covariance.diagonal())
    return Estimate(
        items=counts.items,
        difficulty=difficulty,
        se=se,
        status=status,
        method="marginal",
        solution=found.solution,
        covariance=found.covariance,
        answers=counts.answers,
        right=counts.right,
        persons=counts.persons,
        warnings=warnings,
    )


def maximise_marginal(
    patterns: Patterns, right: Int64Array, *, start: FloatArray, ability: str = "normal"
) -> MarginalFit:
    """Maximise the marginal likelihood of grouped answers.

    Parameters
    ----------
    patterns
        The persons' answered items and scores; every item has right and wrong answers.
    right
        Right answers per item.
    start
        Difficulties to start from.
    ability
        ``"normal"`` or ``"empirical"``.
    """
    mixture = Mixture(patterns, right, start, 1.0, *_normal_grid(1.0, 1))
    normal, sums, steps = _climb_normal(mixture)
    if ability == "normal":
        return _finish_normal(normal, sums, steps)
    return fit_empirical(normal)


def _start(counts: PairCounts, kept: npt.NDArray[np.intp]) -> FloatArray:
    """Start at the refined estimate where there is one, else at the logit of wrong answers."""
    answers, right = counts.answers[kept], counts.right[kept]
    start = np.log((answers - right) / right)
    _, linked, _ = classify(counts)
    place = np.searchsorted(kept, linked)
    if len(linked) > 1:
        found, _ = solve_refined(build_chain(counts).rates)
        start[place] = found + start[place].mean()
    return np.asarray(start)


# --- normal abilities -------------------------------------------------------------------------


def _normal_grid(sd: float, longest: int) -> tuple[FloatArray, FloatArray]:
    """Equally spaced nodes in standard deviations, and log weights.

    The trapezoid rule errs by about exp(-2 (pi s / h)^2) for a bell of width s and spacing h
    (here below 1e-8); the narrowest bell is the posterior of a person with all answers.
    """
    spacing = 1.0 / np.sqrt(1.0 + 1.5 * sd**2 * longest / 4)
    half = max(10, int(np.ceil(REACH / spacing)))
    nodes = np.linspace(-REACH, REACH, 2 * half + 1)
    log_weights = -0.5 * nodes**2
    return nodes, log_weights - np.log(np.exp(log_weights).sum())


def _climb_normal(mixture: Mixture) -> tuple[Mixture, Sums, int]:
    """Newton's method on difficulties and standard deviation, with few second derivatives."""
    longest = int(mixture.patterns.lengths.max(initial=1))
    last, factor = np.inf, None
    mixture = replace_grid(mixture, longest)
    sums = evaluate(mixture)
    for step in range(1, STEPS + 1):
        if factor is None:
            factor = np.linalg.inv(_normal_information(mixture, sums))
        move = factor @ np.append(sums.gradient, sums.gradient_sd)
        mixture, sums, length = _advance(mixture, sums, move, longest)
        if length < STEP_TOL:
            return mixture, sums, step
        factor = None if length > REFRESH * last else factor
        last = length
    raise NotConverged(
        f"marginal likelihood: the last of {STEPS} steps still moved a number by {last:.1e} "
        "logits; look for items with very few answers, or use the method 'refined'"
    )


def replace_grid(mixture: Mixture, longest: int) -> Mixture:
    """Refine or coarsen the grid for the present standard deviation."""
    nodes, log_weights = _normal_grid(mixture.sd, longest)
    if len(nodes) == len(mixture.nodes):
        return mixture
    return replace(mixture, nodes=nodes, log_weights=log_weights)


def _advance(
    mixture: Mixture, sums: Sums, move: FloatArray, longest: int
) -> tuple[Mixture, Sums, float]:
    """Take the step, halved until the likelihood does not fall; bounded to 2 logits."""
    move = move * min(1.0, 2.0 / max(float(np.abs(move).max()), 1e-300))
    for _ in range(40):
        # The likelihood is an even function of the standard deviation.
        sd = abs(mixture.sd + float(move[-1]))
        moved = replace(mixture, difficulty=mixture.difficulty + move[:-1], sd=sd)
        found = evaluate(moved)
        if found.log_likelihood >= sums.log_likelihood - 1e-11 * abs(sums.log_likelihood):
            finer = replace_grid(moved, longest)
            return finer, found if finer is moved else evaluate(finer), float(np.abs(move).max())
        move = move / 2
    raise NotConverged(
        "marginal likelihood: no step increases it although the gradient is not zero; "
        "use the method 'refined'"
    )


def _normal_information(mixture: Mixture, sums: Sums) -> FloatArray:
    """Second derivatives by difficulties and standard deviation (Louis 1982).

    Where they are not positive definite, far from the maximum, as much of the information of
    the complete data (abilities known) is added as it takes: between Newton and EM.
    """
    matrix = information_about_difficulty(mixture, sums)
    for share in (0.0, 0.03, 0.1, 0.3, 1.0):
        mixed = matrix + share * sums.complete
        try:
            np.linalg.cholesky(mixed)
        except np.linalg.LinAlgError:
            continue
        return np.asarray(mixed)
    return sums.complete


def _finish_normal(mixture: Mixture, sums: Sums, steps: int) -> MarginalFit:
    m = len(mixture.difficulty)
    matrix = _normal_information(mixture, sums)
    notes = []
    if mixture.sd < SMALL_SD:
        notes.append("the answers do not tell persons apart: the ability spread is near zero")
        matrix = matrix[:m, :m]
    full = np.asarray(np.linalg.inv(matrix)[:m, :m], dtype=np.float64)
    level = float(mixture.difficulty.mean())
    notes.append(f"abilities are normal with mean {-level:.4f} and SD {mixture.sd:.4f}")
    residual = float(np.abs(sums.gradient).max())
    return MarginalFit(
        difficulty=mixture.difficulty - level,
        covariance=centre_covariance(full),
        nodes=mixture.abilities - level,
        weights=np.exp(mixture.log_weights),
        mean=-level,
        sd=mixture.sd,
        log_likelihood=sums.log_likelihood,
        solution=Solution("marginal likelihood, Newton steps", steps, residual, tuple(notes)),
    )


# --- what to say ------------------------------------------------------------------------------


def _check(patterns: Patterns, counts: PairCounts, ability: str) -> None:
    if ability not in DISTRIBUTIONS:
        raise BadUsage(f"ability must be one of {', '.join(DISTRIBUTIONS)}; found {ability!r}")
    if patterns.n_items > ITEM_LIMIT:
        raise BadUsage(
            f"marginal likelihood holds dense matrices of items x items and stops at "
            f"{ITEM_LIMIT} items, found {patterns.n_items}; the method 'refined' has no limit"
        )
    if patterns.n_items < 2 or patterns.lengths.max(initial=0) < 2:
        raise DisconnectedItems(
            f"{patterns.n_items} of the {len(counts.items)} items have right and wrong answers, "
            f"and one person answered at most {int(patterns.lengths.max(initial=0))} of them; "
            "how far abilities differ shows only where persons answer two such items or more"
        )


def _explain(
    counts: PairCounts, kept: npt.NDArray[np.intp], found: MarginalFit
) -> tuple[tuple[Status, ...], tuple[Notice, ...]]:
    """Statuses and warnings: items that pairs do not link are linked by assumption only."""
    status, linked, warnings = classify(counts)
    apart = [counts.items[i] for i in kept if status[i] == Status.NOT_CONNECTED]
    said = [one for one in warnings if one.kind not in (Kind.NOT_LINKED, Kind.SEVERAL_SETS)]
    if apart:
        sentence = (
            f"the answers themselves do not link {len(apart)} of {len(kept)} items to the other "
            f"{len(linked)}: {name_some(apart)}; marginal likelihood compares them only by "
            "assuming that all persons come from one ability distribution"
        )
        said.append(Notice(Kind.LINKED_BY_ASSUMPTION, sentence, apart))
    if found.sd < SMALL_SD:
        sentence = (
            "the answers do not tell persons apart: the estimated spread of abilities is near "
            "zero, so that these are logits of the share of wrong answers"
        )
        said.append(Notice(Kind.FLAT_ABILITIES, sentence))
    chosen = list(status)
    for i in kept:
        chosen[i] = Status.ESTIMATED
    return tuple(chosen), tuple(said)
