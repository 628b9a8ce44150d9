"""Exact integer noise; the only source of noise.

In: a rational scale, a number of draws, a source of random bits. Out: int64 draws with exactly the
named distribution. It never sees the answers, and no float lies between a random bit and a draw.
"""

from __future__ import annotations

from discreet.privacy.noise.backends import ExactNoise, Noise, OpenDPNoise
from discreet.privacy.noise.coins import flip_coins
from discreet.privacy.noise.samplers import LARGEST_SCALE, discrete_gaussian, discrete_laplace

__all__ = [
    "LARGEST_SCALE",
    "ExactNoise",
    "Noise",
    "OpenDPNoise",
    "discrete_gaussian",
    "discrete_laplace",
    "flip_coins",
]
