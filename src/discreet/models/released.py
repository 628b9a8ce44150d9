"""From a release to difficulties.

In: a :class:`~discreet.privacy.wall.Release`. Out: an :class:`~discreet.Estimate` whose
standard errors include the privacy noise. The fit is the mechanism's own, found in the registry.
Everything here is post-processing of noisy values and public parameters; no answer and no exact
count is in reach.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from discreet.errors import BadUsage
from discreet.jit import one_blas_thread
from discreet.models.noisefit.totals import TotalsFit
from discreet.privacy.mechanisms import MECHANISMS, find_mechanism
from discreet.privacy.wall import Release
from discreet.results.estimate import Estimate, Solution, Status


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
        fit: Any = find_mechanism(release.mechanism).fit(release, standard_errors)
    estimate = Estimate(
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
    return _add_steps(estimate, fit, release) if release.public.has_steps else estimate


def _add_steps(estimate: Estimate, fit: TotalsFit, release: Release) -> Estimate:
    """Return the locations of items together with the thresholds whose means they are."""
    steps, model = release.public.steps, release.public.model
    return replace(estimate, steps=steps, model=model, ladder=fit.ladder(Status.ESTIMATED))


def check_estimator(mechanism: str) -> None:
    """Refuse a mechanism whose values nothing here can turn into difficulties."""
    if mechanism not in MECHANISMS:
        raise BadUsage(
            f"no estimator is known for the mechanism {mechanism!r}, so its release could not be "
            f"turned into difficulties. Nothing was charged; use one of: {', '.join(MECHANISMS)}."
        )
    find_mechanism(mechanism)
