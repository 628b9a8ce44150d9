"""From a release to difficulties.

In: a :class:`~discreet.privacy.wall.Release`. Out: an :class:`~discreet.Estimate` whose
standard errors include the privacy noise. The fit is the mechanism's own, found in the registry, or
for counts of pairs the paper's spectral estimate. Everything here is post-processing of noisy
values and public parameters; no answer and no exact count is in reach.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import exp
from typing import get_args

import numpy as np

from discreet.errors import BadUsage
from discreet.jit import one_blas_thread
from discreet.models.noisy import NoiseFit
from discreet.models.noisy.totals import TotalsFit
from discreet.models.noisy_chain import (
    FLOOR_LIMIT,
    SpectralFit,
    fit_spectral,
    has_room,
    simulate_covariance,
)
from discreet.privacy.mechanisms import MECHANISMS, find_mechanism
from discreet.privacy.mechanisms.pairs import fit_counts
from discreet.privacy.protocol import NOISE_AWARE, NoiseLaw
from discreet.privacy.wall import Release
from discreet.results.estimate import Estimate, FitWarning, Solution, Status, WarningKind
from discreet.types import Estimator, FloatArray

SIMULATED = (
    "Standard errors come from simulated releases: difficulties and persons drawn from the "
    "noise-aware fit, noise added, counts floored, the chain solved again."
)


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
    fit: NoiseFit | TotalsFit | SpectralFit
    # Eigenvalues of a thousand items: 0.25 s on one thread, 3 s on two that wait for each other.
    with one_blas_thread():
        if estimator == "spectral":
            fit = _fit_spectral(release, standard_errors)
        else:
            fit = find_mechanism(release.mechanism).fit(release, standard_errors)
    public, ladder = release.public, None
    if isinstance(fit, TotalsFit) and public.has_steps:
        ladder = fit.ladder(Status.ESTIMATED)
    return Estimate(
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
        ladder=ladder,
    )


def _fit_spectral(release: Release, standard_errors: bool) -> SpectralFit:
    """Solve the noisy chain, and simulate its errors where the floor leaves room for that."""
    mechanism, law = find_mechanism(release.mechanism), release.laws["right_wrong"]
    pairs = mechanism.pair_matrix(release)
    fit = fit_spectral(pairs)
    if not (standard_errors and has_room(fit.raised, fit.counts)):
        return fit
    believed = fit_counts(release, pairs.noisy, pairs.counted, standard_errors=True)
    covariance = simulate_covariance(
        pairs,
        believed,
        draw_noise=partial(_simulate_noise, law),
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


def warn_floored(raised: int, counts: int) -> tuple[FitWarning, ...]:
    """Say that there are no standard errors, where the floor raised too many counts."""
    if has_room(raised, counts):
        return ()
    sentence = (
        f"no standard errors: the spectral estimator raised {raised} of {counts} released counts "
        f"to 1, more than {FLOOR_LIMIT:.0%}, which pulls the difficulties together; the estimator "
        "'noise-aware' has standard errors for the same values"
    )
    return (FitWarning(WarningKind.NO_STANDARD_ERRORS, sentence),)


def count_raised(release: Release) -> dict[str, int]:
    """Return how many released counts the floor of the spectral estimate raises, and of how many.

    Both are read off released values.
    """
    pairs = find_mechanism(release.mechanism).pair_matrix(release)
    return {"raised": pairs.raised, "counts": int(pairs.counted.sum())}


def _describe_solution(fit: NoiseFit | TotalsFit | SpectralFit) -> Solution:
    if isinstance(fit, SpectralFit):
        return fit.solution
    return Solution("empirical-Bayes least squares", fit.rounds, 0.0)


def check_estimator(mechanism: str, estimator: str = NOISE_AWARE) -> None:
    """Refuse a mechanism whose values nothing here can turn into difficulties, or not so."""
    if mechanism not in MECHANISMS:
        raise BadUsage(
            f"no estimator is known for the mechanism {mechanism!r}, so its release could not be "
            f"turned into difficulties. Nothing was charged; use one of: {', '.join(MECHANISMS)}."
        )
    if estimator not in get_args(Estimator):
        choices = " or ".join(repr(name) for name in get_args(Estimator))
        raise BadUsage(f"estimator must be {choices}, found {estimator!r}. Nothing was charged.")
    if estimator == "spectral" and not find_mechanism(mechanism).releases_pairs:
        raise BadUsage(
            "the estimator 'spectral' needs noisy counts of pairs of items, and the mechanism "
            f"{mechanism} does not release them. Nothing was charged. Use the estimator "
            f"'noise-aware', or one of the mechanisms {', '.join(_list_pair_mechanisms())}."
        )


def _list_pair_mechanisms() -> list[str]:
    return [name for name in MECHANISMS if find_mechanism(name).releases_pairs]
