"""Difficulties from noisy summaries: a fit that knows how much noise it was given.

In: released values, the variances of their noise and public parameters. Out: difficulties with a
covariance. Everything here is post-processing: nothing in this folder may see an answer, an
exact count or a number of persons that is not public.
"""

from __future__ import annotations

from discreet.estimators.noisefit.disagreements import Disagreements, denoise_disagreements
from discreet.estimators.noisefit.margins import MarginsNoise, fit_margins
from discreet.estimators.noisefit.pairs import fit_noisy_pairs
from discreet.estimators.noisefit.result import NoiseFit

__all__ = [
    "Disagreements",
    "MarginsNoise",
    "NoiseFit",
    "denoise_disagreements",
    "fit_margins",
    "fit_noisy_pairs",
]
