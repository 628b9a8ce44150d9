"""The rules of the inspection: what is recognised, and the file of the corpus that needs it.

In: functions from facts about columns, rows or answers to a claim. Out: the same functions, which
claim nothing once their name is taken out of :data:`RULES`. The tests take each out in turn, and
its file must be read differently then.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

#: The rules in force by name, each with the file below tests/data/tables that needs it.
RULES: dict[str, str] = {}


def rule(needs: str, otherwise: Any = None) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Make a function a rule; without it, ``otherwise`` is claimed."""

    def enter(find: Callable[_P, _R]) -> Callable[_P, _R]:
        RULES[find.__name__] = needs

        @wraps(find)
        def claim(*facts: _P.args, **more: _P.kwargs) -> _R:
            return find(*facts, **more) if find.__name__ in RULES else otherwise

        return claim

    return enter
