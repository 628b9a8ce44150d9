"""From a release to difficulties.

In: a :class:`~discreet.privacy.wall.Release`. Out: an :class:`~discreet.Estimate` whose
standard errors include the privacy noise. The fit is the mechanism's own, found in the registry.
Everything here is post-processing of noisy values and public parameters; no answer and no exact
count is in reach.
"""

from __future__ import annotations

import numpy as np

from discreet.errors import BadUsage
from discreet.jit import one_blas_thread
from discreet.models.noisefit.totals import TotalsFit
from discreet.privacy.mechanisms import MECHANISMS, find_mechanism
from discreet.privacy.wall import Release
from discreet.results.estimate import Estimate, Solution, Status


def estimate_release(release: Release, *, standard_errors: bool = True) -> Estimate:
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
    """
    # Eigenvalues of a thousand items: 0.25 s on one thread, 3 s on two that wait for each other.
    with one_blas_thread():
        fit = find_mechanism(release.mechanism).fit(release, standard_errors)
    public, ladder = release.public, None
    if isinstance(fit, TotalsFit) and public.has_steps:
        ladder = fit.ladder(Status.ESTIMATED)
    return Estimate(
        items=public.items,
        difficulty=np.array(fit.difficulty),
        se=np.array(fit.se),
        status=(Status.ESTIMATED,) * len(public.items),
        method="noise-aware",
        solution=Solution("empirical-Bayes least squares", fit.rounds, 0.0),
        covariance=None if fit.covariance is None else np.array(fit.covariance),
        persons=public.persons,
        guarantee=release.guarantee,
        steps=public.steps,
        model=public.model if public.has_steps else "rasch",
        ladder=ladder,
    )


def check_estimator(mechanism: str) -> None:
    """Refuse a mechanism whose values nothing here can turn into difficulties."""
    if mechanism not in MECHANISMS:
        raise BadUsage(
            f"no estimator is known for the mechanism {mechanism!r}, so its release could not be "
            f"turned into difficulties. Nothing was charged; use one of: {', '.join(MECHANISMS)}."
        )
    find_mechanism(mechanism)
