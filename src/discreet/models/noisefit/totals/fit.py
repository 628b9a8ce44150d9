"""The fit of thresholds to noisy totals.

In: released values of one or more forms. Out: a :class:`TotalsFit`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from discreet.errors import BadUsage
from discreet.models.noisefit.totals import FormTotals, StepModel, TotalsFit
from discreet.types import Int8Array

Measure = Callable[[Int8Array, int], FormTotals]
"""Codes ``[person, own item]`` of persons in a form (-1: no answer), and its number, to their
exact statistics; noise arrays may be zero."""


def fit_totals(
    forms: Sequence[FormTotals],  # noqa: ARG001
    steps: Sequence[int],  # noqa: ARG001
    *,
    model: StepModel = "partial-credit",  # noqa: ARG001
    standard_errors: bool = True,  # noqa: ARG001
    measure: Measure | None = None,  # noqa: ARG001
) -> TotalsFit:
    """Fit thresholds."""
    raise BadUsage("thresholds cannot be fitted to noisy totals yet")
