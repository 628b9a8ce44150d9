"""Privacy accounting: budgets, guarantees, calibration, composition.

Public parameters in, noise scales and promises out; nothing here ever sees an answer or a count.
Every rounding goes to the side that promises less. Proofs: docs/privacy-accounting.md. The names of
the modules below can be imported from here too; each is loaded when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_MODULES = ("budget", "spend", "belief", "gaussian", "moves", "unit_moves", "local", "random_graph")


def __getattr__(name: str) -> Any:
    for module in _MODULES:
        found = import_module(f"discreet.privacy.accounting.{module}")
        if not name.startswith("_") and hasattr(found, name):
            return getattr(found, name)
    raise AttributeError(f"module 'discreet.privacy.accounting' has no attribute {name!r}")
