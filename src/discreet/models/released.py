"""From a release to difficulties: the table from mechanism to estimator.

In: a :class:`~discreet.privacy.wall.Release`. Out: an :class:`~discreet.Estimate` whose
standard errors include the privacy noise. Everything here is post-processing of noisy values and
public parameters; no answer and no exact count is in reach.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, sqrt

import numpy as np
import numpy.typing as npt

from discreet.errors import BadUsage
from discreet.jit import one_blas_thread
from discreet.models.noisefit.margins import MarginsNoise, fit_margins
from discreet.models.noisefit.pairs import fit_net_wins, fit_noisy_pairs, fit_win_pairs
from discreet.models.noisefit.solve import NoiseFit
from discreet.privacy.mechanisms.margins import disagreement_matrix
from discreet.privacy.wall import Release
from discreet.results.estimate import Estimate, Solution, Status
from discreet.types import FloatArray

LEAST_VARIANCE = 1e-6
"""Variance that noise is credited with at least: far below that of sampling, and the equations
stay solvable at an epsilon in the hundreds, where next to no noise is drawn."""


def estimate_release(release: Release, *, standard_errors: bool = True) -> Estimate:
    """Estimate difficulties from noisy values alone.

    Every listed item gets a number: whether anybody answered it is confidential. Where the noise
    drowns an item, the number is near zero and its interval wide.

    Parameters
    ----------
    release
        What came through the wall.
    standard_errors
        Whether to compute them. Without, ``se`` is NaN and there is no covariance; the
        difficulties are the same bit for bit.
    """
    # Eigenvalues of a thousand items: 0.25 s on one thread, 3 s on two that wait for each other.
    with one_blas_thread():
        fit = (ESTIMATORS | COMPARISON_ESTIMATORS)[release.mechanism](release, standard_errors)
    return Estimate(
        items=release.public.items,
        difficulty=np.array(fit.difficulty),
        se=np.array(fit.se),
        status=(Status.ESTIMATED,) * len(release.public.items),
        method="noise-aware",
        solution=Solution("empirical-Bayes least squares", fit.rounds, 0.0),
        covariance=None if fit.covariance is None else np.array(fit.covariance),
        persons=release.public.persons,
        guarantee=release.guarantee,
    )


def check_estimator(mechanism: str) -> None:
    """Refuse a mechanism whose values nothing here can turn into difficulties."""
    known = ESTIMATORS | COMPARISON_ESTIMATORS
    if mechanism not in known:
        raise BadUsage(
            f"no estimator is known for the mechanism {mechanism!r}, so its release could not be "
            f"turned into difficulties. Nothing was charged; use one of: {', '.join(known)}."
        )


def _fit_margins(release: Release, standard_errors: bool) -> NoiseFit:
    """Noise on totals and disagreements of weighted answers, both on an integer grid."""
    grid = release.settings["grid"]
    noise = MarginsNoise(
        sigma_total=sqrt(release.laws["total"].variance) / grid,
        sigma_disagreement=sqrt(release.laws["disagreement"].variance) / grid,
        longest=release.settings["longest"],
        persons=release.public.persons,
        max_answers=release.public.max_answers,
    )
    disagreement = disagreement_matrix(release.values["disagreement"], len(release.public.items))
    return fit_margins(
        release.values["total"] / grid,
        disagreement / grid,
        noise=noise,
        design=_offered_together(release),
        standard_errors=standard_errors,
    )


def _offered_together(release: Release) -> FloatArray | None:
    """In how many booklets two items stand together, where the design is public."""
    booklets = release.settings["booklets"]
    if not booklets:
        return None
    place = {item: index for index, item in enumerate(release.public.items)}
    member = np.zeros((len(booklets), len(place)))
    for row, booklet in enumerate(booklets):
        member[row, [place[item] for item in booklet]] = 1.0
    return member.T @ member


def _fit_pairs(release: Release, standard_errors: bool) -> NoiseFit:
    """Noise on every ordered pair."""
    m = len(release.public.items)
    noisy = np.zeros((m, m))
    noisy[~np.eye(m, dtype=bool)] = release.values["right_wrong"]
    return _fit_counts(release, noisy, None, standard_errors)


def _fit_sparse_pairs(release: Release, standard_errors: bool) -> NoiseFit:
    """Noise on the pairs of a public graph: first one direction of each edge, then the other."""
    m = len(release.public.items)
    first, second = np.asarray(release.settings["edges"], dtype=np.int64).T
    forth, back = np.split(release.values["right_wrong"].astype(np.float64), 2)
    noisy = np.zeros((m, m))
    noisy[first, second], noisy[second, first] = forth, back
    mask = np.zeros((m, m), dtype=bool)
    mask[first, second] = mask[second, first] = True
    return _fit_counts(release, noisy, mask, standard_errors)


def _fit_counts(
    release: Release,
    noisy: FloatArray,
    mask: npt.NDArray[np.bool_] | None,
    standard_errors: bool,
) -> NoiseFit:
    return fit_noisy_pairs(
        noisy,
        variance=max(release.laws["right_wrong"].variance, LEAST_VARIANCE),
        mask=mask,
        answers=release.public.max_answers,
        persons=release.public.persons,
        standard_errors=standard_errors,
    )


def _fit_randomized_response(release: Release, standard_errors: bool) -> NoiseFit:
    """Undo the flips on average, then fit as if totals and disagreements had additive noise.

    An answer z that was flipped with probability f gives the unbiased ``(z - f) / (1 - 2f)``,
    with variance ``v = f (1 - f) / (1 - 2f)^2``, independently over answers. With weight 1/q a
    person's total r x_i - k then has noise variance v in every direction that sums to zero, and
    a disagreement ``x_i + x_j - 2 x_i x_j`` has 2 v + 4 v^2.
    """
    flip = 1 / (1 + exp(float(release.settings["answer_epsilon"])))
    keep, lie = (1 - flip) / (1 - 2 * flip), -flip / (1 - 2 * flip)
    both, one, none = (
        release.values[name].astype(np.float64)
        for name in ("right_right", "right_wrong", "wrong_wrong")
    )
    given = float(np.trace(both + none))
    counts = keep**2 * one + lie**2 * one.T + keep * lie * (both + none)
    np.fill_diagonal(counts, 0.0)
    together = both + one + one.T + none
    np.fill_diagonal(together, 0.0)
    # Persons who answered q items are in q (q - 1) ordered pairs; those without answers in none.
    answers = 1 + together.sum() / max(given, 1.0)
    variance = max(flip * (1 - flip) / (1 - 2 * flip) ** 2, LEAST_VARIANCE)
    disagreeing = 2 * variance + 4 * variance**2
    takers = together.sum(axis=1).mean() / max(answers - 1, 1e-9)
    pairs = max(len(counts) * (len(counts) - 1), 1)
    noise = MarginsNoise(
        sigma_total=sqrt(max(variance * takers, LEAST_VARIANCE)),
        sigma_disagreement=sqrt(max(disagreeing * together.sum() / pairs, LEAST_VARIANCE))
        / answers,
        longest=sqrt(answers) / 2,
        persons=release.public.persons,
        max_answers=release.public.max_answers,
    )
    balance = counts - counts.T
    return fit_margins(
        balance.sum(axis=1) / answers,
        (counts + counts.T) / answers,
        noise=noise,
        standard_errors=standard_errors,
    )


def _fit_net_wins(release: Release, standard_errors: bool) -> NoiseFit:
    """Noise on net wins and on how often pairs were compared, both on an integer grid."""
    grid, cap = release.settings["grid"], release.public.max_answers
    # A judge's reach is at least twice the comparisons made, so weight times comparisons is at
    # most this.
    most = min(cap, sqrt(release.settings["limit"] * cap / 2))
    persons = release.public.persons
    return fit_net_wins(
        release.values["net_wins"] / grid,
        disagreement_matrix(release.values["compared"], len(release.public.items)) / grid,
        sigma_net_wins=sqrt(release.laws["net_wins"].variance) / grid,
        sigma_compared=sqrt(release.laws["compared"].variance) / grid,
        ceiling=None if persons is None else persons * most,
        standard_errors=standard_errors,
    )


def _fit_win_pairs(release: Release, standard_errors: bool) -> NoiseFit:
    """Noise on the wins of every ordered pair."""
    m, persons = len(release.public.items), release.public.persons
    noisy = np.zeros((m, m))
    noisy[~np.eye(m, dtype=bool)] = release.values["wins"]
    return fit_win_pairs(
        noisy,
        variance=release.laws["wins"].variance,
        ceiling=None if persons is None else float(persons * release.public.max_answers),
        standard_errors=standard_errors,
    )


ESTIMATORS: dict[str, Callable[[Release, bool], NoiseFit]] = {
    "margins": _fit_margins,
    "laplace-margins": _fit_margins,
    "pairs": _fit_pairs,
    "sparse-pairs": _fit_sparse_pairs,
    "laplace-pairs": _fit_pairs,
    "randomized-response": _fit_randomized_response,
}
"""Which estimator fits a mechanism's release, with or without standard errors."""

COMPARISON_ESTIMATORS: dict[str, Callable[[Release, bool], NoiseFit]] = {
    "net-wins": _fit_net_wins,
    "win-pairs": _fit_win_pairs,
}
"""The same for comparisons of judges."""
