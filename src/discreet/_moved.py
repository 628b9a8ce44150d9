"""Modules that have moved: the old names still work, with a deprecation warning.

``import discreet.itemfit`` finds the module's new home here. One table instead of a file of
re-exports for every old name; see docs/decisions/0011-house.md.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, cast

__all__ = ["MOVED", "install"]

MOVED: dict[str, tuple[str, ...]] = {
    "answers.spark.answers": ("answers.spark",),
    "answers.streamed.accumulate": ("answers.streamed.counting",),
    "answers.streamed.materialise": ("answers.streamed",),
    "bundle": ("publishing.bundle",),
    "calibrate": ("models.calibrate",),
    "chain": ("models.connection", "results.estimate"),
    "comparisons": (
        "answers.judges",
        "counts",
        "answers.read_judges",
        "models.compared",
        "publishing.release",
        "publishing.bundle",
        "publishing.verification",
        "results.ranking",
        "simulation",
    ),
    "counts.table": ("counts",),
    "engines": ("answers.opening",),
    "engines.outofcore": (
        "answers.streamed.counting",
        "answers.streamed",
        "answers.streamed.passes",
        "tables.resources",
    ),
    "engines.spark": ("answers.spark",),
    "engines.sql": ("counts.sql",),
    "estimate": ("results.estimate",),
    "formats": ("report.formats", "report.winsteps"),
    "formats.pyirt": ("report.formats",),
    "formats.registry": ("report.statement",),
    "formats.tables": ("report.formats",),
    "formats.warehouse": ("report.formats",),
    "formats.winsteps": ("report.winsteps",),
    "itemfit": ("analysis",),
    "linking": ("scales.linking", "scales.bank", "scales.anchoring"),
    "persons": ("persons.scoring", "persons.measures"),
    "planning": ("planning.plan", "planning.study"),
    "plots": ("figures",),
    "publish": ("publishing.release", "publishing.bundle", "publishing.verification"),
    "rasch": ("sklearn",),
    "report": ("report.pages", "report.page"),
    "report.steward": ("report.page",),
    "responses": ("answers.responses", "answers.reading"),
    "topk": ("results.ranking",),
}
"""Old module and the new ones that hold its names; both below ``discreet``."""


class _Old:
    """Finds and makes the old modules; the names in them are looked up when they are asked for.

    The abstract classes of ``importlib.abc`` would cost every import of the library 25 ms.
    """

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python make the module."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname.removeprefix("discreet.") not in MOVED or not fullname.startswith("discreet."):
            return None
        return ModuleSpec(fullname, cast(Any, self), is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__
        homes = [f"discreet.{name}" for name in MOVED[old.removeprefix("discreet.")]]
        warnings.warn(
            f"{old} has moved to {' and '.join(homes)}; the old name will go in version 0.4",
            DeprecationWarning,
            stacklevel=2,
        )

        def look_up(name: str) -> object:
            for home in homes:
                if hasattr(found := import_module(home), name):
                    return getattr(found, name)
            raise AttributeError(f"module {old!r} has no attribute {name!r}")

        module.__dict__["__getattr__"] = look_up


def install() -> None:
    """Let Python's import system find the old names, after all others."""
    if not any(isinstance(finder, _Old) for finder in sys.meta_path):
        sys.meta_path.append(_Old())
