"""From a release to difficulties.

In: a :class:`~discreet.privacy.wall.Release`. Out: an :class:`~discreet.Estimate` whose
standard errors include the privacy noise. ``FITS`` holds the fit of each mechanism's values; counts
of pairs may also take the paper's spectral estimate. Everything here is post-processing of noisy
values and public parameters; no answer and no exact count is in reach.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import exp, sqrt
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from discreet.answers.residual_sums import CENTRE_BITS
from discreet.choices import Estimator, PlainMapping
from discreet.errors import BadUsage
from discreet.models.noisy import NoiseFit
from discreet.models.noisy.comparisons import fit_net_wins, fit_win_pairs
from discreet.models.noisy.margins import MarginsNoise, fit_margins
from discreet.models.noisy.pairs import PairMatrix, fit_noisy_pairs
from discreet.models.noisy.residuals import ResidualsFit, fit_released_rounds, fit_without_prior
from discreet.models.noisy.spectral import (
    SIMULATED,
    SpectralFit,
    fit_spectral,
    has_room,
    simulate_covariance,
    warn_floored,
)
from discreet.models.noisy.totals import Measurer, read_released_forms
from discreet.models.noisy.totals.fit import TotalsFit, fit_totals
from discreet.privacy.mechanisms.response import COUNTED, find_flip_probability
from discreet.privacy.mechanisms.totals import unpack_shapes
from discreet.privacy.protocol import NOISE_AWARE, NoiseLaw
from discreet.privacy.wall import Release
from discreet.results.estimate import Estimate, Solution, Status
from discreet.threads import one_blas_thread
from discreet.types import FloatArray


def estimate_release(
    release: Release, *, standard_errors: bool = True, estimator: Estimator = NOISE_AWARE
) -> Estimate:
    """Estimate difficulties, and with steps thresholds, from noisy values alone.

    Every listed item gets a number: whether anybody answered it is confidential. Where the noise
    drowns an item, the number is near zero and its interval wide.

    Parameters
    ----------
    release
        What came through the wall.
    standard_errors
        Whether to compute them. Without, ``se`` is NaN and there is no covariance; the
        difficulties are the same bit for bit.
    estimator
        ``"noise-aware"``, the mechanism's own fit, or ``"spectral"``, the paper's Algorithm 2, for
        counts of pairs.
    """
    check_estimator(release.mechanism, estimator)
    fit: NoiseFit | TotalsFit | ResidualsFit | SpectralFit
    # Eigenvalues of a thousand items: 0.25 s on one thread, 3 s on two that wait for each other.
    with one_blas_thread():
        if estimator == "spectral":
            fit = _fit_spectral(release, standard_errors)
        else:
            fit = FITS[release.mechanism](release, standard_errors)
    public = release.public
    estimate = Estimate(
        items=public.items,
        difficulty=np.array(fit.difficulty),
        se=np.array(fit.se),
        status=(Status.ESTIMATED,) * len(public.items),
        method=estimator,
        solution=_describe_solution(fit),
        covariance=None if fit.covariance is None else np.array(fit.covariance),
        warnings=() if not isinstance(fit, SpectralFit) else warn_floored(fit.raised, fit.counts),
        se_method=SIMULATED if estimator == "spectral" else "",
        persons=public.persons,
        guarantee=release.guarantee,
        steps=public.steps,
        model=public.model if public.has_steps else "rasch",
    )
    if isinstance(fit, TotalsFit):
        return replace(estimate, ladder=fit.ladder(Status.ESTIMATED))
    return estimate


#: Variance that noise is credited with at least: far below that of sampling, and the equations
#: stay solvable at an epsilon in the hundreds, where next to no noise is drawn.
LEAST_VARIANCE = 1e-6


def fit_released_margins(release: Release, standard_errors: bool) -> NoiseFit:
    """Fit difficulties to noisy totals and disagreements, both on an integer grid."""
    grid, laws = release.settings["grid"], release.laws
    noise = MarginsNoise(
        sigma_total=sqrt(laws["total"].variance) / grid,
        sigma_disagreement=sqrt(laws["disagreement"].variance) / grid,
        longest=release.settings["longest"],
        persons=release.public.persons,
        max_answers=release.public.max_answers,
    )
    upper = release.values["disagreement"]
    return fit_margins(
        release.values["total"] / grid,
        fill_symmetric(upper, len(release.public.items)) / grid,
        noise=noise,
        design=_offered_together(release),
        standard_errors=standard_errors,
    )


def _offered_together(release: Release) -> FloatArray | None:
    """In how many booklets two items stand together, where the design is public."""
    booklets = release.settings["booklets"]
    if not booklets:
        return None
    column_of = {item: index for index, item in enumerate(release.public.items)}
    member = np.zeros((len(booklets), len(column_of)))
    for row, booklet in enumerate(booklets):
        member[row, [column_of[item] for item in booklet]] = 1.0
    return member.T @ member


def fit_flipped_answers(release: Release, standard_errors: bool) -> NoiseFit:
    """Undo the flips on average, then fit as if totals and disagreements had additive noise.

    An answer z that was flipped with probability f gives the unbiased ``(z - f) / (1 - 2f)``,
    with variance ``v = f (1 - f) / (1 - 2f)^2``, independently over answers. With weight 1/q a
    person's total r x_i - k then has noise variance v in every direction that sums to zero, and
    a disagreement ``x_i + x_j - 2 x_i x_j`` has 2 v + 4 v^2.
    """
    flip = find_flip_probability(release.settings)
    keep, lie = (1 - flip) / (1 - 2 * flip), -flip / (1 - 2 * flip)
    right_right, right_wrong, wrong_wrong = (
        release.values[name].astype(np.float64) for name in COUNTED
    )
    same = right_right + wrong_wrong
    counts = keep**2 * right_wrong + lie**2 * right_wrong.T + keep * lie * same
    np.fill_diagonal(counts, 0.0)
    together = right_right + right_wrong + right_wrong.T + wrong_wrong
    np.fill_diagonal(together, 0.0)
    # Persons who answered q items are in q (q - 1) ordered pairs; those without in none.
    answers = 1 + together.sum() / max(float(np.trace(same)), 1.0)
    balance = counts - counts.T
    return fit_margins(
        balance.sum(axis=1) / answers,
        (counts + counts.T) / answers,
        noise=_flip_noise(release, together, answers),
        standard_errors=standard_errors,
    )


def _flip_noise(release: Release, together: FloatArray, answers: float) -> MarginsNoise:
    """Return the noise that flips add to totals and disagreements."""
    variance = max(find_answer_variance(release.settings), LEAST_VARIANCE)
    disagreeing = 2 * variance + 4 * variance**2
    takers = together.sum(axis=1).mean() / max(answers - 1, 1e-9)
    pairs = max(len(together) * (len(together) - 1), 1)
    disagreement = sqrt(max(disagreeing * together.sum() / pairs, LEAST_VARIANCE)) / answers
    return MarginsNoise(
        sigma_total=sqrt(max(variance * takers, LEAST_VARIANCE)),
        sigma_disagreement=disagreement,
        longest=sqrt(answers) / 2,
        persons=release.public.persons,
        max_answers=release.public.max_answers,
    )


def find_answer_variance(settings: PlainMapping) -> float:
    """Return the variance of an answer whose flips were undone on average."""
    flip = find_flip_probability(settings)
    return flip * (1 - flip) / (1 - 2 * flip) ** 2


def read_pair_matrix(release: Release) -> PairMatrix:
    """Return the released counts of ordered pairs: of all, or on a public graph.

    On a graph, first one direction of each edge was released, then the other.
    """
    m, values = len(release.public.items), release.values["right_wrong"]
    if "edges" not in release.settings:
        return PairMatrix(fill_matrix(values, m), ~np.eye(m, dtype=bool))
    first, second = np.asarray(release.settings["edges"], dtype=np.int64).T
    forth, back = np.split(values.astype(np.float64), 2)
    noisy = np.zeros((m, m))
    noisy[first, second], noisy[second, first] = forth, back
    counted = np.zeros((m, m), dtype=bool)
    counted[first, second] = counted[second, first] = True
    return PairMatrix(noisy, counted)


def fit_released_pairs(release: Release, standard_errors: bool) -> NoiseFit:
    """Fit difficulties to noisy pair counts, of all pairs or of those that were counted."""
    pairs = read_pair_matrix(release)
    return fit_noisy_pairs(
        pairs.noisy,
        variance=max(release.laws["right_wrong"].variance, LEAST_VARIANCE),
        mask=pairs.counted,
        answers=release.public.max_answers,
        persons=release.public.persons,
        standard_errors=standard_errors,
    )


def fit_released_wins(release: Release, standard_errors: bool) -> NoiseFit:
    """Fit strengths to the noisy wins of every ordered pair."""
    persons = release.public.persons
    return fit_win_pairs(
        fill_matrix(release.values["wins"], len(release.public.items)),
        variance=release.laws["wins"].variance,
        ceiling=None if persons is None else float(persons * release.public.max_answers),
        standard_errors=standard_errors,
    )


def fit_released_net_wins(release: Release, standard_errors: bool) -> NoiseFit:
    """Fit strengths to noisy net wins and comparisons, both on an integer grid."""
    grid, cap = release.settings["grid"], release.public.max_answers
    # A judge's reach is at least twice the comparisons made, so weight times comparisons is
    # at most this.
    largest_weight = min(cap, sqrt(release.settings["limit"] * cap / 2))
    persons = release.public.persons
    return fit_net_wins(
        release.values["net_wins"] / grid,
        fill_symmetric(release.values["compared"], len(release.public.items)) / grid,
        sigma_net_wins=sqrt(release.laws["net_wins"].variance) / grid,
        sigma_compared=sqrt(release.laws["compared"].variance) / grid,
        ceiling=None if persons is None else persons * largest_weight,
        standard_errors=standard_errors,
    )


def fit_released_totals(release: Release, standard_errors: bool) -> TotalsFit:
    """Fit thresholds to noisy totals of categories and moments of scores."""
    shapes = unpack_shapes(release.public, release.settings["forms"])
    return fit_totals(
        read_released_forms(release.public, shapes, release.values, release.laws),
        release.public.steps,
        model=release.public.model,
        standard_errors=standard_errors,
        measure=Measurer(release.public, shapes, "takers" in release.laws),
    )


def fit_released_residuals(release: Release, standard_errors: bool) -> ResidualsFit:
    """Fit difficulties to noisy sums of residuals around public centres."""
    return fit_released_rounds(
        release.values,
        release.laws,
        release.public,
        release.settings,
        standard_errors=standard_errors,
    )


def show_centre(release: Release, standard_errors: bool) -> ResidualsFit:  # noqa: ARG001
    """Return the public difficulties around which groups were looked at, which are no estimates."""
    return ResidualsFit(np.array(release.public.centre) / 2**CENTRE_BITS, None, 0)


def remove_prior(release: Release, estimate: Estimate) -> Estimate:
    """Return difficulties that no prior draws to a centre, where the mechanism has such a fit.

    A release around an earlier one is drawn to it, which would hide how far items moved.
    """
    if release.mechanism != "residuals":
        return estimate
    values = release.values, release.laws, release.public, release.settings
    start = estimate.difficulty
    difficulty, covariance = fit_without_prior(*values, group=None, start=start)
    se = np.sqrt(np.diag(covariance))
    return replace(estimate, difficulty=difficulty, se=se, covariance=covariance)


#: The noise-aware fit of each mechanism's released values, by the mechanism's name.
FITS: dict[str, Callable[[Release, bool], NoiseFit | TotalsFit | ResidualsFit]] = {
    "margins": fit_released_margins,
    "laplace-margins": fit_released_margins,
    "pairs": fit_released_pairs,
    "sparse-pairs": fit_released_pairs,
    "laplace-pairs": fit_released_pairs,
    "randomized-response": fit_flipped_answers,
    "totals": fit_released_totals,
    "residuals": fit_released_residuals,
    "group-means": show_centre,
    "net-wins": fit_released_net_wins,
    "win-pairs": fit_released_wins,
}


def fill_matrix(values: npt.NDArray[Any], items: int) -> FloatArray:
    """Put the values of all ordered pairs, row by row, into a matrix with a zero diagonal."""
    matrix = np.zeros((items, items))
    matrix[~np.eye(items, dtype=bool)] = values
    return matrix


def fill_symmetric(upper: npt.NDArray[Any], items: int) -> FloatArray:
    """Return the symmetric matrix with a zero diagonal from its upper triangle, row by row."""
    matrix = np.zeros((items, items))
    matrix[np.triu_indices(items, 1)] = upper
    return np.asarray(matrix + matrix.T)


def _fit_spectral(release: Release, standard_errors: bool) -> SpectralFit:
    """Solve the noisy chain, and simulate its errors where the floor leaves room for that."""
    pairs = read_pair_matrix(release)
    fit = fit_spectral(pairs)
    if not (standard_errors and has_room(fit.raised, fit.counts)):
        return fit
    covariance = simulate_covariance(
        pairs,
        fit_released_pairs(release, standard_errors=True),
        draw_noise=partial(_simulate_noise, release.laws["right_wrong"]),
        persons=release.public.persons,
        answers=release.public.max_answers,
    )
    return replace(fit, covariance=covariance)


def _simulate_noise(law: NoiseLaw, size: int, rng: np.random.Generator) -> FloatArray:
    """Draw noise for a simulated release; nothing private depends on it."""
    scale = float(law.scale)
    if law.family == "gaussian":
        return np.rint(scale * rng.standard_normal(size))
    leaving = 1 - exp(-1 / scale)
    return rng.geometric(leaving, size).astype(np.float64) - rng.geometric(leaving, size)


def count_raised(release: Release) -> dict[str, int]:
    """Return how many released counts the floor of the spectral estimate raises, and of how many.

    Both are read off released values.
    """
    pairs = read_pair_matrix(release)
    return {"raised": pairs.raised, "counts": int(pairs.counted.sum())}


def _describe_solution(fit: NoiseFit | TotalsFit | ResidualsFit | SpectralFit) -> Solution:
    if isinstance(fit, SpectralFit):
        return fit.solution
    return Solution("empirical-Bayes least squares", fit.rounds, 0.0)


def check_estimator(mechanism: str, estimator: str = NOISE_AWARE) -> None:
    """Refuse a mechanism whose values nothing here can turn into difficulties, or not so."""
    if mechanism not in FITS:
        raise BadUsage(
            f"no estimator is known for the mechanism {mechanism!r}, so its release could not be "
            f"turned into difficulties. Nothing was charged; use one of: {', '.join(FITS)}."
        )
    if estimator not in get_args(Estimator):
        choices = " or ".join(repr(name) for name in get_args(Estimator))
        raise BadUsage(f"estimator must be {choices}, found {estimator!r}. Nothing was charged.")
    pair_mechanisms = [name for name, fit in FITS.items() if fit is fit_released_pairs]
    if estimator == "spectral" and mechanism not in pair_mechanisms:
        raise BadUsage(
            "the estimator 'spectral' needs noisy counts of pairs of items, and the mechanism "
            f"{mechanism} does not release them. Nothing was charged. Use the estimator "
            f"'noise-aware', or one of the mechanisms {', '.join(pair_mechanisms)}."
        )
