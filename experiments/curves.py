"""Every curve of the privacy figures: one estimate from one data set at one epsilon.

The published curves come from `published` and are not private. Between them and the library's there
is one curve for each change. The library's go through its wall with a repeatable noise source,
which marks them as not private too; everything else (calibration, sensitivity, noise law, estimate)
is what a real release does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from math import log2

import numpy as np
import numpy.typing as npt

from discreet.answers.responses import Responses
from discreet.api.calibrating import fit
from discreet.models.noisy.pairs import PairMatrix
from discreet.models.noisy.released import estimate_release, read_pair_matrix
from discreet.models.noisy.spectral import fit_spectral
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.mechanisms.margins import Margins
from discreet.privacy.mechanisms.pairs import DensePairs, SparsePairs
from discreet.privacy.mechanisms.response import RandomizedResponse
from discreet.privacy.noise import ExactNoise
from discreet.privacy.protocol import NoiseCalibration, Public
from discreet.privacy.wall import Release, release_statistics
from discreet.secure import SeededSource
from experiments import published

FloatArray = npt.NDArray[np.float64]
AnyMechanism = DensePairs | SparsePairs | Margins | RandomizedResponse

DELTA = 1e-4
"""Of every figure in the paper."""


@dataclass(frozen=True, eq=False)
class Scene:
    """One data set and what an estimate is compared with.

    Attributes
    ----------
    answers
        Persons by items; -1 where an answer is missing.
    reference
        The truth where it is known, on real data the non-private spectral estimate.
    refined
        On real data the non-private refined estimate, where distances to it are asked for too.
    """

    answers: npt.NDArray[np.int8]
    reference: FloatArray
    refined: FloatArray | None = None

    @cached_property
    def responses(self) -> Responses:
        return Responses.from_array(self.answers)

    @cached_property
    def counts(self) -> FloatArray:
        return published.count(self.answers)


@dataclass(frozen=True)
class Setting:
    """What a published curve leaves to its figure.

    Attributes
    ----------
    pairs
        How many pairs the Gaussian calibration counts.
    edge_factor
        The sparse graph has edge probability ``edge_factor * log2(m) / m``.
    """

    pairs: published.Pairs
    edge_factor: float

    def edge_probability(self, m: int) -> float:
        return min(1.0, self.edge_factor * log2(m) / m)


@dataclass(frozen=True, eq=False)
class Draws:
    """The randomness of one estimate, repeatable."""

    rng: np.random.Generator
    source: SeededSource


Curve = Callable[[Scene, Setting, float, Draws], FloatArray]


# --- as published: NOT private ----------------------------------------------------------------


def published_gauss(scene: Scene, setting: Setting, epsilon: float, draws: Draws) -> FloatArray:
    graph = published.every_pair(len(scene.reference))
    return published.gauss(
        scene.counts, epsilon, DELTA, pairs=setting.pairs, graph=graph, source=draws.source
    )


def published_sparse(scene: Scene, setting: Setting, epsilon: float, draws: Draws) -> FloatArray:
    m = len(scene.reference)
    graph = published.draw_graph(m, setting.edge_probability(m), draws.rng)
    return published.gauss(
        scene.counts, epsilon, DELTA, pairs=setting.pairs, graph=graph, source=draws.source
    )


def published_laplace(
    scene: Scene,
    setting: Setting,  # noqa: ARG001
    epsilon: float,
    draws: Draws,
) -> FloatArray:
    # The authors' scripts divide by m (m - 1) pairs here, also where the Gaussian ones take half.
    pairs = published.Pairs.ORDERED
    return published.laplace(scene.counts, epsilon, pairs=pairs, source=draws.source)


def published_response(
    scene: Scene,
    setting: Setting,  # noqa: ARG001
    epsilon: float,
    draws: Draws,
) -> FloatArray:
    return published.randomized_response(scene.answers, epsilon, DELTA, draws.rng)


def without_privacy(
    scene: Scene,
    setting: Setting,  # noqa: ARG001
    epsilon: float,  # noqa: ARG001
    draws: Draws,  # noqa: ARG001
) -> FloatArray:
    return published.spectral(scene.counts)


def refined_estimate(
    scene: Scene,
    setting: Setting,  # noqa: ARG001
    epsilon: float,  # noqa: ARG001
    draws: Draws,  # noqa: ARG001
) -> FloatArray:
    """Estimate as the library does without privacy: its releases tend to that as epsilon grows.

    Where the Rasch model does not hold it differs from the spectral one, and that difference is
    a floor under the library's curves in figures that measure the distance to the spectral one.
    """
    estimate = fit(
        scene.responses, method="refined", standard_errors=False,
        regularisation=published.REGULARISATION,
    )  # fmt: skip
    return np.array(estimate.difficulty)


def all_zero(
    scene: Scene,
    setting: Setting,  # noqa: ARG001
    epsilon: float,  # noqa: ARG001
    draws: Draws,  # noqa: ARG001
) -> FloatArray:
    return np.zeros_like(scene.reference)


# --- the library, at the true (epsilon, delta) --------------------------------------------------


def released(mechanism: AnyMechanism) -> Curve:
    """Return the curve of one of the library's mechanisms."""

    def curve(
        scene: Scene,
        setting: Setting,  # noqa: ARG001
        epsilon: float,
        draws: Draws,
    ) -> FloatArray:
        return release(scene.responses, mechanism, epsilon, draws.source)

    return curve


def released_sparse(scene: Scene, setting: Setting, epsilon: float, draws: Draws) -> FloatArray:
    """`sparse-pairs` with the edge probability of the published curve beside it."""
    mechanism = SparsePairs(setting.edge_probability(len(scene.reference)))
    return release(scene.responses, mechanism, epsilon, draws.source)


def release(
    responses: Responses, mechanism: AnyMechanism, epsilon: float, source: SeededSource
) -> FloatArray:
    """Difficulties from one release: what ``discreet.release`` does, less the standard errors."""
    noisy = release_values(responses, mechanism, epsilon, source)
    return np.array(estimate_release(noisy, standard_errors=False).difficulty)


def release_values(
    responses: Responses, mechanism: AnyMechanism, epsilon: float, source: SeededSource
) -> Release:
    """Noisy values of one release."""
    calibration = _calibrate(mechanism, responses.items, responses.n_persons, epsilon, source)
    return release_statistics(
        responses,
        mechanism=mechanism,
        public=_public(responses.items, responses.n_persons),
        calibration=calibration,
        guarantee=calibration.spend.guarantee(ledger=None, is_private=False),
        noise=ExactNoise(source),
    )


def _public(items: tuple[str, ...], persons: int) -> Public:
    return Public(items, len(items), Neighbours.REPLACE_ONE, persons)


def _calibrate(
    mechanism: AnyMechanism,
    items: tuple[str, ...],
    persons: int,
    epsilon: float,
    source: SeededSource,
) -> NoiseCalibration:
    if isinstance(mechanism, SparsePairs):  # draws a graph: anew for every release
        return mechanism.calibrate(_public(items, persons), Budget(epsilon, DELTA), source)
    return _calibrate_once(mechanism, items, persons, epsilon)


@cache
def _calibrate_once(
    mechanism: AnyMechanism, items: tuple[str, ...], persons: int, epsilon: float
) -> NoiseCalibration:
    return mechanism.calibrate(_public(items, persons), Budget(epsilon, DELTA), SeededSource(0))


# --- between the two: one change at a time ------------------------------------------------------


def leak_closed(scene: Scene, setting: Setting, epsilon: float, draws: Draws) -> FloatArray:
    """Noise on every count; sigma, floor, lambda and power iteration as published."""
    pairs = len(scene.reference) * (len(scene.reference) - 1) * setting.pairs.value
    sigma = published.gauss_sigma(epsilon, DELTA, pairs)
    return published.gauss_everywhere(scene.counts, sigma, draws.source)


def exact_sensitivity(
    scene: Scene,
    setting: Setting,  # noqa: ARG001
    epsilon: float,
    draws: Draws,
) -> FloatArray:
    """As before, with sigma for what one person moves at most; the printed conversion."""
    sigma = published.gauss_sigma(epsilon, DELTA, count_moved(len(scene.reference)))
    return published.gauss_everywhere(scene.counts, sigma, draws.source)


def exact_delta(
    scene: Scene,
    setting: Setting,  # noqa: ARG001
    epsilon: float,
    draws: Draws,
) -> FloatArray:
    """As before, with the least sigma that keeps (epsilon, delta)."""
    return published.estimate_floored(_noisy_pairs(scene, DensePairs(), epsilon, draws).noisy)


def exact_chain(
    scene: Scene,
    setting: Setting,  # noqa: ARG001
    epsilon: float,
    draws: Draws,
) -> FloatArray:
    """Return the library's private spectral estimate: elimination, lambda = 0, floor kept."""
    return fit_spectral(_noisy_pairs(scene, DensePairs(), epsilon, draws)).difficulty


def exact_sparse_chain(scene: Scene, setting: Setting, epsilon: float, draws: Draws) -> FloatArray:
    """As before, on a random graph: the paper's sparse variant with its leak closed."""
    mechanism = SparsePairs(setting.edge_probability(len(scene.reference)))
    return fit_spectral(_noisy_pairs(scene, mechanism, epsilon, draws)).difficulty


def _noisy_pairs(
    scene: Scene, mechanism: DensePairs | SparsePairs, epsilon: float, draws: Draws
) -> PairMatrix:
    return read_pair_matrix(release_values(scene.responses, mechanism, epsilon, draws.source))


def count_moved(m: int) -> int:
    """How many pair counts one person moves by one at most, replace-one."""
    return 2 * (m * m // 4)


CURVES: dict[str, Curve] = {
    "published Gauss": published_gauss,
    "published sparse": published_sparse,
    "published Laplace": published_laplace,
    "published response": published_response,
    "margins": released(Margins()),
    "pairs": released(DensePairs()),
    "sparse-pairs": released_sparse,
    "laplace-pairs": released(DensePairs("laplace-pairs", "laplace")),
    "randomized-response": released(RandomizedResponse("trusted")),
    "non-private": without_privacy,
    "refined": refined_estimate,
    "all zero": all_zero,
    "leak closed": leak_closed,
    "exact sensitivity": exact_sensitivity,
    "exact delta": exact_delta,
    "exact chain": exact_chain,
    "exact sparse chain": exact_sparse_chain,
}
"""Every curve by the name that the CSV files give it."""

SPARSE_CURVES = ("published sparse", "sparse-pairs")

BETWEEN = ("leak closed", "exact sensitivity", "exact delta", "exact chain", "exact sparse chain")
"""From the published mechanism to the library's, one change at a time."""

ANSWER_CURVES = tuple(name for name in CURVES if name not in BETWEEN)
"""Those of the figures of answers; other figures add curves of their own."""

SHARED_NOISE = {
    "exact delta": "pairs",
    "exact chain": "pairs",
    "exact sparse chain": "sparse-pairs",
}
"""Curves that take the same noisy values as another one."""
