"""The mechanisms: what is counted, how far one person moves it, how much noise it gets.

Adding one is one file and one line in ``MECHANISMS``.
"""

from __future__ import annotations

from collections.abc import Callable

from discreet.errors import BadUsage
from discreet.privacy.mechanisms.margins import Margins
from discreet.privacy.mechanisms.pairs import DensePairs
from discreet.privacy.mechanisms.response import RandomizedResponse
from discreet.privacy.mechanisms.sparse import SparsePairs
from discreet.privacy.protocol import Calibration, Mechanism, NoiseLaw, Public

__all__ = [
    "AUTO",
    "MECHANISMS",
    "Calibration",
    "DensePairs",
    "Margins",
    "Mechanism",
    "NoiseLaw",
    "Public",
    "RandomizedResponse",
    "SparsePairs",
    "check_mechanism",
    "find_mechanism",
    "pick_mechanism",
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


AUTO = "auto"

AUTO_PAIRS = 60
"""Up to this many items, all of which a person may answer, ``pairs`` is 0 to 8% more accurate
than ``margins`` on complete data; from 100 items on it is 3 to 5% less accurate, and with missing
answers far less (docs/decisions/0005-margins.md)."""


def check_mechanism(name: str) -> None:
    """Refuse a name that no mechanism has."""
    if name != AUTO and name not in MECHANISMS:
        known = ", ".join([AUTO, *MECHANISMS])
        raise BadUsage(f"there is no mechanism called {name!r}; choose one of: {known}")


def find_mechanism(name: str) -> AnyMechanism:
    """Return the mechanism of that name with its default settings."""
    check_mechanism(name)
    if name == AUTO:
        raise BadUsage("'auto' needs public parameters; call pick_mechanism with them")
    return MECHANISMS[name]()


def pick_mechanism(public: Public) -> tuple[AnyMechanism, str]:
    """Choose the more accurate mechanism from public parameters alone, and say why."""
    items = len(public.items)
    if public.max_answers >= items and items <= AUTO_PAIRS:
        why = f"a person may answer all of the {items} items, which are at most {AUTO_PAIRS}"
        return DensePairs(), f"auto: pairs, because {why}"
    if items > AUTO_PAIRS:
        return Margins(), f"auto: margins, because there are more than {AUTO_PAIRS} items"
    why = f"a person may answer only {public.max_answers} of {items} items"
    return Margins(), f"auto: margins, because {why}"
