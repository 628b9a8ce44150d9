"""Who draws the noise: this library's exact sampler, or OpenDP's.

In: a scale and a number of draws. Out: int64 noise, and whether it may be called private.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.metadata import version
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BadUsage, MissingExtra
from discreet.privacy.noise.samplers import check_scale, discrete_gaussian, discrete_laplace
from discreet.secure import RandomSource, SystemSource

_CHUNK = 100_000  # OpenDP takes and gives Python lists, some 8 MB at a time


class Noise(Protocol):
    """What a mechanism asks of a noise back end."""

    @property
    def name(self) -> str:
        """What the release's papers call it."""
        ...

    @property
    def is_private(self) -> bool:
        """Whether the randomness behind it is secret."""
        ...

    @property
    def source(self) -> RandomSource:
        """Where coins and contribution caps of the same release come from."""
        ...

    def gaussian(self, sigma: Fraction, size: int) -> NDArray[np.int64]:
        """Draw discrete Gaussians."""
        ...

    def laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        """Draw discrete Laplace variables."""
        ...


@dataclass(frozen=True)
class ExactNoise:
    """The samplers of this library, by default on the operating system's randomness.

    Examples
    --------
    >>> noise = ExactNoise()
    >>> noise.is_private, noise.gaussian(Fraction(10), 3).shape
    (True, (3,))
    """

    source: RandomSource = field(default_factory=SystemSource)
    name: str = field(default="discreet", init=False)

    @property
    def is_private(self) -> bool:
        """Whether the randomness behind it is secret."""
        return self.source.is_private

    def gaussian(self, sigma: Fraction, size: int) -> NDArray[np.int64]:
        """Draw discrete Gaussians; see `discrete_gaussian`."""
        return discrete_gaussian(sigma, size, self.source)

    def laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        """Draw discrete Laplace variables; see `discrete_laplace`."""
        return discrete_laplace(scale, size, self.source)


class OpenDPNoise:
    """OpenDP's exact samplers (0.14.2 or later), some tens of times slower.

    OpenDP takes its scale as a double. A rational that is no double is rounded up to the next
    one, so there is never less noise than accounted for (at most 2^-52 more).
    """

    name = "opendp"
    is_private = True

    def __init__(self) -> None:
        self.source: RandomSource = SystemSource()
        try:
            import opendp.prelude
        except ImportError as missing:
            raise MissingExtra("The OpenDP noise back end", "opendp") from missing
        _refuse_biased(version("opendp"))
        self._dp: Any = opendp.prelude

    def gaussian(self, sigma: Fraction, size: int) -> NDArray[np.int64]:
        """Draw discrete Gaussians with OpenDP."""
        scale = _double_above(check_scale(sigma, "sigma"))
        space = self._vectors(), self._dp.l2_distance(T=float)
        self._dp.enable_features("contrib")
        return _in_chunks(self._dp.m.make_gaussian(*space, scale=scale), size)

    def laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        """Draw discrete Laplace variables with OpenDP."""
        double = _double_above(check_scale(scale, "scale"))
        space = self._vectors(), self._dp.l1_distance(T="i64")
        self._dp.enable_features("contrib")
        return _in_chunks(self._dp.m.make_laplace(*space, scale=double), size)

    def _vectors(self) -> Any:
        return self._dp.vector_domain(self._dp.atom_domain(T="i64"))


def _refuse_biased(installed: str) -> None:
    """OpenDP before 0.14.2 had a biased sampler."""
    found = tuple(int(part) for part in installed.split(".")[:3] if part.isdigit())
    if found < (0, 14, 2):
        raise BadUsage(
            f"OpenDP {installed} is installed; versions before 0.14.2 draw biased noise, so the "
            "guarantee would not hold. Upgrade with: pip install -U 'discreet[opendp]'"
        )


def _double_above(scale: Fraction) -> float:
    near = float(scale)
    return near if Fraction(near) >= scale else math.nextafter(near, math.inf)


def _in_chunks(measurement: Callable[[list[int]], list[int]], size: int) -> NDArray[np.int64]:
    out = np.empty(size, dtype=np.int64)
    for start in range(0, size, _CHUNK):
        piece = out[start : start + _CHUNK]
        piece[:] = measurement([0] * piece.size)
    return out
