"""Marginal maximum likelihood: abilities are drawn from a distribution and integrated out.

In: answers. Out: difficulties with standard errors, and the ability distribution. Right where
the next item depends on the answers so far (adaptive and routed tests), because such a design
cancels from the likelihood of all answers; wrong where items were chosen by something else that
is known about the person (targeting), and where the distribution is not the assumed one. Pair
counts and conditional likelihood are the other way round. Confidential.

The ability distribution is normal, on a grid that moves with its standard deviation, or
empirical: free weights on a fixed grid. On complete answers the latter reproduces conditional
likelihood (de Leeuw and Verhelst 1986).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from discreet.answers.protocol import Answers
from discreet.counts import PairCounts
from discreet.counts.nodes import item_of_nodes
from discreet.errors import BadUsage, DisconnectedItems, NotConverged
from discreet.models.conditional.patterns import GroupPatterns, Patterns
from discreet.models.conditional.steps import rating_basis
from discreet.models.connection import build_chain, classify
from discreet.models.mixture import (
    MarginalFit,
    Mixture,
    Sums,
    centre_covariance,
    evaluate_mixture,
    information_about_difficulty,
)
from discreet.models.refined import solve_refined
from discreet.models.steps import StepPlan, plan_steps
from discreet.results.estimate import Estimate, FitWarning, Solution, Status, WarningKind
from discreet.text import name_some
from discreet.types import FloatArray, IndexArray, Int64Array

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
NODES_EMPIRICAL = 61
WEIGHT_ROUNDS = 30
"""EM rounds for the weights between two steps for the difficulties."""
EMPIRICAL_ROUNDS = 300
EMPIRICAL_TOL = 1e-6
"""Logits."""
FLAT_STEP = 1e-4
GAIN = 1e-3
"""A step of ``FLAT_STEP`` logits is accepted as the last one where a round gains less than this.
Log-likelihood of all answers; a standard error away from the maximum it is lower by 1/2."""
FLAT = 1e-3
"""Information relative to its median in a direction that the answers hardly determine."""


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
    if ability not in DISTRIBUTIONS:
        raise BadUsage(f"ability must be one of {', '.join(DISTRIBUTIONS)}; found {ability!r}")
    counts = responses.count()
    columns = np.flatnonzero((counts.right > 0) & (counts.right < counts.answers))
    job = GroupPatterns(columns)
    patterns = job.collect(responses.reduce(job))
    check_patterns(patterns, counts)
    try:
        marginal_fit = maximise_marginal(
            patterns, counts.right[columns], ability=ability, start=start_marginal(counts, columns)
        )
    except NotConverged:
        build_chain(counts)  # says so where the answers link nothing: then that is why
        raise
    status, warnings = explain_marginal(counts, columns, marginal_fit)
    difficulty, se = (np.full(len(counts.items), np.nan) for _ in range(2))
    difficulty[columns], se[columns] = (
        marginal_fit.difficulty,
        np.sqrt(marginal_fit.covariance.diagonal()),
    )
    return Estimate(
        items=counts.items,
        difficulty=difficulty,
        se=se,
        status=status,
        method="marginal",
        solution=marginal_fit.solution,
        covariance=marginal_fit.covariance,
        answers=counts.answers,
        right=counts.right,
        persons=counts.persons,
        warnings=warnings,
    )


def maximise_marginal(
    patterns: Patterns,
    right: Int64Array,
    *,
    start: FloatArray,
    ability: str = "normal",
    item_of: IndexArray | None = None,
    basis: FloatArray | None = None,
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
    item_of
        With steps, which count as items here: the item of each.
    basis
        ``[difficulty, parameter]``, where difficulties are combinations of these columns; the
        start must be one.
    """
    ways = None if basis is None else _add_sd(basis)
    begin = replace(begin_normal(patterns, right, start), item_of=item_of)
    normal, sums, steps = climb_normal(begin, ways)
    if ability == "normal":
        return _finish_normal(normal, sums, steps, ways)
    return fit_empirical(normal, basis)


def _add_sd(basis: FloatArray) -> FloatArray:
    """Let the standard deviation move freely beside the difficulties."""
    ways = np.zeros((len(basis) + 1, basis.shape[1] + 1))
    ways[:-1, :-1], ways[-1, -1] = basis, 1.0
    return ways


def start_marginal(counts: PairCounts, columns: npt.NDArray[np.intp]) -> FloatArray:
    """Start at the refined estimate where there is one, else at the logit of wrong answers."""
    answers, right = counts.answers[columns], counts.right[columns]
    start = np.log((answers - right) / right)
    _, linked, _ = classify(counts)
    positions = np.searchsorted(columns, linked)
    if len(linked) > 1:
        refined, _ = solve_refined(build_chain(counts).rates)
        start[positions] = refined + start[positions].mean()
    return np.asarray(start)


# --- normal abilities -------------------------------------------------------------------------


def normal_grid(sd: float, most_answers: float) -> tuple[FloatArray, FloatArray]:
    """Equally spaced nodes in standard deviations, and log weights.

    The trapezoid rule errs by about exp(-2 (pi s / h)^2) for a bell of width s and spacing h
    (here below 1e-8); the narrowest bell is the posterior of a person with all answers.
    """
    spacing = 1.0 / np.sqrt(1.0 + 1.5 * sd**2 * most_answers / 4)
    half = max(10, int(np.ceil(REACH / spacing)))
    nodes = np.linspace(-REACH, REACH, 2 * half + 1)
    log_weights = -0.5 * nodes**2
    return nodes, log_weights - np.log(np.exp(log_weights).sum())


def begin_normal(patterns: Patterns, right: Int64Array, start: FloatArray) -> Mixture:
    """Difficulties less the mean ability, and a standard deviation of one."""
    return Mixture(patterns, right, start, 1.0, *normal_grid(1.0, 1))


def climb_normal(
    mixture: Mixture, ways: FloatArray | None = None, information: FloatArray | None = None
) -> tuple[Mixture, Sums, int]:
    """Newton's method on difficulties and standard deviation, with few second derivatives.

    Parameters
    ----------
    mixture
        Where to start.
    ways
        Directions, one per column, in which difficulties and standard deviation may move
        together; without them all move freely.
    information
        Second derivatives near the start, where they are known.
    """
    longest = mixture.most
    last = np.inf
    factor = None if information is None else _invert_along(information, ways)
    mixture = replace_grid(mixture, longest)
    sums = evaluate_mixture(mixture)
    for step in range(1, STEPS + 1):
        if factor is None:
            factor = _invert_along(normal_information(mixture, sums, ways), ways)
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


def _invert_along(matrix: FloatArray, ways: FloatArray | None) -> FloatArray:
    if ways is None:
        return np.asarray(np.linalg.inv(matrix))
    return np.asarray(ways @ np.linalg.solve(ways.T @ matrix @ ways, ways.T))


def replace_grid(mixture: Mixture, longest: int) -> Mixture:
    """Refine or coarsen the grid for the present standard deviation."""
    nodes, log_weights = normal_grid(mixture.sd, longest)
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
        moved_sums = evaluate_mixture(moved)
        if moved_sums.log_likelihood >= sums.log_likelihood - 1e-11 * abs(sums.log_likelihood):
            finer = replace_grid(moved, longest)
            return (
                finer,
                moved_sums if finer is moved else evaluate_mixture(finer),
                float(np.abs(move).max()),
            )
        move = move / 2
    raise NotConverged(
        "marginal likelihood: no step increases it although the gradient is not zero; "
        "use the method 'refined'"
    )


def normal_information(mixture: Mixture, sums: Sums, ways: FloatArray | None = None) -> FloatArray:
    """Second derivatives by difficulties and standard deviation (Louis 1982).

    Where they are not positive definite, far from the maximum, as much of the information of
    the complete data (abilities known) is added as it takes: between Newton and EM. Only the
    directions in ``ways`` matter, where they are given.
    """
    matrix = information_about_difficulty(mixture, sums)
    for share in (0.0, 0.03, 0.1, 0.3, 1.0):
        mixed = matrix + share * sums.complete
        try:
            np.linalg.cholesky(mixed if ways is None else ways.T @ mixed @ ways)
        except np.linalg.LinAlgError:
            continue
        return np.asarray(mixed)
    return sums.complete


def _finish_normal(
    mixture: Mixture, sums: Sums, steps: int, ways: FloatArray | None = None
) -> MarginalFit:
    m = len(mixture.difficulty)
    matrix = normal_information(mixture, sums, ways)
    notes = []
    if mixture.sd < SMALL_SD:
        notes.append("the answers do not tell persons apart: the ability spread is near zero")
        matrix, ways = matrix[:m, :m], None if ways is None else ways[:m, :-1]
    full = np.asarray(_invert_along(matrix, ways)[:m, :m], dtype=np.float64)
    level = mixture.level
    notes.append(f"abilities are normal with mean {-level:.4f} and SD {mixture.sd:.4f}")
    gradient = sums.gradient if ways is None else ways[:m].T @ sums.gradient
    residual = float(np.abs(gradient).max())
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


# --- empirical abilities ----------------------------------------------------------------------


def fit_empirical(normal: Mixture, basis: FloatArray | None = None) -> MarginalFit:
    """Alternate EM rounds for the weights with Newton steps for the difficulties.

    These are combinations of a basis' columns, where one is given.
    """
    reach = 5.0 * max(normal.sd, 0.5)
    nodes = np.linspace(-reach, reach, NODES_EMPIRICAL)
    width = -0.5 * (nodes / max(normal.sd, 0.1)) ** 2
    log_weights = width - np.log(np.exp(width).sum())
    mixture = replace(normal, sd=1.0, nodes=nodes, log_weights=log_weights)
    m, factor, before = len(normal.difficulty), None, -1e300
    for round_ in range(1, EMPIRICAL_ROUNDS + 1):
        mixture, sums = _reweigh(mixture)
        gain, before = sums.log_likelihood - before, sums.log_likelihood
        if factor is None:
            matrix = information_about_difficulty(mixture, sums)[:m, :m]
            factor = _invert_along(matrix + matrix.diagonal().mean() / m, basis)
        move = factor @ (sums.gradient - sums.gradient.mean())
        move -= move.mean()
        mixture = replace(mixture, difficulty=mixture.difficulty + move)
        length = float(np.abs(move).max())
        if length < EMPIRICAL_TOL or (gain < GAIN and length < FLAT_STEP):
            return _finish_empirical(mixture, round_, length, basis)
    raise NotConverged(
        f"marginal likelihood with empirical abilities: the likelihood still grows after "
        f"{EMPIRICAL_ROUNDS} rounds; use ability='normal'"
    )


def _reweigh(mixture: Mixture) -> tuple[Mixture, Sums]:
    sums = evaluate_mixture(mixture)
    likelihood = sums.likelihood
    persons = mixture.patterns.persons
    weights = np.exp(mixture.log_weights)
    for _ in range(WEIGHT_ROUNDS):
        ratio = persons / (likelihood @ weights)
        weights = weights * (likelihood.T @ ratio) / persons.sum()
        # Rounding in the scale of each person's likelihood.
        weights /= weights.sum()
    mixture = replace(mixture, log_weights=np.log(np.maximum(weights, 1e-300)))
    return mixture, evaluate_mixture(mixture)


def _finish_empirical(
    mixture: Mixture, rounds: int, length: float, basis: FloatArray | None
) -> MarginalFit:
    sums = evaluate_mixture(mixture)
    weights, level = np.exp(mixture.log_weights), mixture.level
    nodes = mixture.nodes - level
    mean = float(weights @ nodes)
    sd = float(np.sqrt(weights @ (nodes - mean) ** 2))
    note = f"abilities have {len(nodes)} free weights, mean {mean:.4f} and SD {sd:.4f}"
    return MarginalFit(
        difficulty=mixture.difficulty - level,
        covariance=_empirical_covariance(mixture, sums, basis),
        nodes=nodes,
        weights=weights,
        mean=mean,
        sd=sd,
        log_likelihood=sums.log_likelihood,
        solution=Solution("marginal likelihood, EM and Newton steps", rounds, length, (note,)),
    )


def _empirical_covariance(
    mixture: Mixture, sums: Sums, basis: FloatArray | None = None
) -> FloatArray:
    """Inverse information about difficulties with mean zero, the weights being unknown too."""
    m = len(mixture.difficulty)
    about = information_about_difficulty(mixture, sums)[:m, :m]
    persons = mixture.patterns.persons
    deviation = sums.posterior - np.exp(mixture.log_weights)
    between = (deviation * persons[:, None]).T @ deviation
    # A weight on its way to zero is held by the slope that drives it there.
    between += np.diag(np.maximum(-(persons @ deviation), 0.0))
    cross = sums.cross_weights(mixture)
    values, vectors = np.linalg.eigh(between)
    keep = values > 1e-9 * values.max(initial=0.0)
    turned = cross @ (vectors[:, keep] / np.sqrt(values[keep]))
    matrix = about - turned @ turned.T
    values, vectors = _split_information(centre_covariance(matrix), basis)
    # Directions that free weights leave undetermined get a large variance, not an infinite one.
    return np.asarray((vectors / np.maximum(values, FLAT * np.median(values))) @ vectors.T)


def _split_information(
    matrix: FloatArray, basis: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues and vectors of all directions but the common shift."""
    if basis is None:
        values, vectors = np.linalg.eigh(matrix)
        order = np.argsort(np.abs(vectors.sum(axis=0)))[: len(matrix) - 1]
        return values[order], vectors[:, order]
    # A basis holds the common shift: without it one direction less is left.
    ways = np.linalg.svd(basis - basis.mean(axis=0), full_matrices=False)[0][:, :-1]
    values, vectors = np.linalg.eigh(ways.T @ matrix @ ways)
    return values, ways @ vectors


# --- what to say ------------------------------------------------------------------------------


def check_patterns(patterns: Patterns, counts: PairCounts) -> None:
    """Refuse what has too many items, or too few to tell abilities apart."""
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


def explain_marginal(
    counts: PairCounts, columns: npt.NDArray[np.intp], marginal_fit: MarginalFit
) -> tuple[tuple[Status, ...], tuple[FitWarning, ...]]:
    """Statuses and warnings: items that pairs do not link are linked by assumption only."""
    status, linked, warnings = classify(counts)
    apart = [counts.items[i] for i in columns if status[i] == Status.NOT_CONNECTED]
    fit_warnings = [
        warning
        for warning in warnings
        if warning.kind not in (WarningKind.NOT_LINKED, WarningKind.SEVERAL_SETS)
    ]
    if apart:
        sentence = (
            f"the answers themselves do not link {len(apart)} of {len(columns)} items to the other "
            f"{len(linked)}: {name_some(apart)}; marginal likelihood compares them only by "
            "assuming that all persons come from one ability distribution"
        )
        fit_warnings.append(FitWarning(WarningKind.LINKED_BY_ASSUMPTION, sentence, apart))
    fit_warnings += warn_flat(marginal_fit.sd)
    chosen = list(status)
    for i in columns:
        chosen[i] = Status.ESTIMATED
    return tuple(chosen), tuple(fit_warnings)


def warn_flat(sd: float) -> tuple[FitWarning, ...]:
    """Say so where persons hardly differ."""
    if sd >= SMALL_SD:
        return ()
    sentence = (
        "the answers do not tell persons apart: the estimated spread of abilities is near "
        "zero, so that these are logits of the share of wrong answers"
    )
    return (FitWarning(WarningKind.FLAT_ABILITIES, sentence),)


def fit_marginal_steps(responses: Answers, model_name: str, *, ability: str = "normal") -> Estimate:
    """Estimate thresholds by marginal maximum likelihood.

    Parameters
    ----------
    responses
        The answers.
    model_name
        A model, or "auto".
    ability
        ``"normal"`` or ``"empirical"``: what is assumed about the abilities.

    Raises
    ------
    DisconnectedItems
        If fewer than two items have answers in two categories, or nobody answered two of them.
    """
    if ability not in DISTRIBUTIONS:
        raise BadUsage(f"ability must be one of {', '.join(DISTRIBUTIONS)}; found {ability!r}")
    counts, plan = plan_steps(responses.count(), model_name)
    items = np.flatnonzero((plan.categories > 0).sum(axis=1) > 1)
    steps = np.array(plan.steps, dtype=np.int64)
    node_columns = np.flatnonzero(np.isin(item_of_nodes(plan.steps), items))
    job = GroupPatterns(items)
    patterns = job.collect(responses.reduce(plan.wrap(job)))
    check_patterns(patterns, counts)
    nodes = counts.as_nodes()
    basis = None if plan.basis is None else rating_basis(len(items), int(steps.max()))
    marginal_fit = maximise_marginal(
        expand_patterns(patterns, steps[items]),
        _count_reached(plan)[node_columns],
        start=_start(nodes, node_columns, basis),
        ability=ability,
        item_of=item_of_nodes(steps[items].tolist()),
        basis=basis,
    )
    status, warnings = explain_marginal(nodes, node_columns, marginal_fit)
    value, se = (np.full(len(nodes.items), np.nan) for _ in range(2))
    value[node_columns], se[node_columns] = (
        marginal_fit.difficulty,
        np.sqrt(marginal_fit.covariance.diagonal()),
    )
    by_node = Estimate(
        items=nodes.items,
        difficulty=value,
        se=se,
        status=status,
        method="marginal",
        solution=marginal_fit.solution,
        covariance=marginal_fit.covariance,
        persons=plan.persons,
        warnings=warnings,
    )
    return plan.fold(by_node)


def _count_reached(plan: StepPlan) -> Int64Array:
    """Return how many persons reached each step, or a higher one, node by node."""
    reached = np.cumsum(plan.categories[:, ::-1], axis=1)[:, ::-1][:, 1:]
    inside = np.arange(reached.shape[1]) < np.array(plan.steps)[:, None]
    return np.asarray(reached[inside])


def _start(nodes: PairCounts, columns: IndexArray, basis: FloatArray | None) -> FloatArray:
    """Start where pairs say; a rating scale, at the logits of neighbouring categories."""
    if basis is None:
        return start_marginal(nodes, columns)
    # Half an answer more: a rating scale may have items with a category that nobody is in.
    answers, right = nodes.answers[columns] + 1.0, nodes.right[columns] + 0.5
    start = np.log((answers - right) / right)
    return np.asarray(basis @ np.linalg.lstsq(basis, start)[0])


def expand_patterns(patterns: Patterns, steps: Int64Array) -> Patterns:
    """Return patterns of steps instead of items; scores stay."""
    length = steps[patterns.item]
    ends = np.cumsum(length)
    first = (np.cumsum(steps) - steps)[patterns.item]
    inside = np.arange(int(length.sum())) - np.repeat(ends - length, length)
    return replace(
        patterns,
        indptr=np.concatenate([[0], ends])[patterns.indptr],
        item=np.repeat(first, length) + inside,
        n_items=int(steps.sum()),
    )
