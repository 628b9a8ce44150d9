"""The mechanisms: what is counted, how far one person moves it, how much noise it gets.

Adding one is one file and one line in ``MECHANISMS``.
"""

from __future__ import annotations

from collections.abc import Callable

from discreet.errors import BadUsage
from discreet.privacy.mechanisms.margins import Margins
from discreet.privacy.mechanisms.pairs import DensePairs, SparsePairs
from discreet.privacy.mechanisms.protocol import Calibration, Mechanism, NoiseLaw, Public
from discreet.privacy.mechanisms.response import RandomizedResponse

__all__ = [
    "MECHANISMS",
    "Calibration",
    "DensePairs",
    "Margins",
    "Mechanism",
    "NoiseLaw",
    "Public",
    "RandomizedResponse",
    "SparsePairs",
    "find_mechanism",
]

AnyMechanism = Mechanism | RandomizedResponse

MECHANISMS: dict[str, Callable[[], AnyMechanism]] = {
    "margins": Margins,
    "laplace-margins": lambda: Margins("laplace-margins", "laplace"),
    "pairs": DensePairs,
    "sparse-pairs": SparsePairs,
    "laplace-pairs": lambda: DensePairs("laplace-pairs", "laplace"),
    "randomized-response": RandomizedResponse,
}
"""Every mechanism by its name, with its default settings."""


def find_mechanism(name: str) -> AnyMechanism:
    """Return the mechanism of that name with its default settings."""
    if name not in MECHANISMS:
        known = ", ".join(MECHANISMS)
        raise BadUsage(f"there is no mechanism called {name!r}; choose one of: {known}")
    return MECHANISMS[name]()
