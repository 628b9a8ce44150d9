"""How a solver found its answer, for everything that solves."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Solution"]


@dataclass(frozen=True)
class Solution:
    """How the numbers were found: the solver, its accuracy, what it took."""

    solver: str
    iterations: int
    residual: float
    notes: tuple[str, ...] = ()
