"""Count pairs: one function, several engines that must agree exactly.

In: answers (or a path to them). Out: :class:`~discreet.counts.PairCounts`. Adding an engine
is one file and one line in ``ENGINES``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

from discreet.counts import PairCounts
from discreet.engines.memory import Weighting
from discreet.errors import BadUsage

if TYPE_CHECKING:
    from discreet.responses import Responses

__all__ = ["ENGINES", "count_pairs"]

Engine = Callable[[Any, Weighting | None], PairCounts]

ENGINES: dict[str, str] = {
    "memory": "discreet.engines.memory:count_responses",
    "duckdb": "discreet.engines.outofcore:count_anything",
}
"""Name of each engine and the function behind it, loaded when the engine is first used."""


def count_pairs(
    source: Responses | str | PathLike[str],
    *,
    engine: str = "auto",
    weighting: Weighting | None = None,
) -> PairCounts:
    """Count, for every pair of items, the persons with one right and the other wrong.

    Parameters
    ----------
    source
        Answers, or where they are: a file, folder or pattern, and for engine "duckdb" also a
        DuckDB database (``"file.duckdb::table"``) or a query.
    engine
        ``"auto"``, or one of ``ENGINES``. The result is the same, to the last integer. Auto
        means "memory", but "duckdb" for queries, databases and files whose answers would fill
        more than half of the free memory.
    weighting
        Integer weight per person as a function of how many items the person answered and
        how many of them right; None counts every person once.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.responses import Responses
    >>> answers = Responses.from_array(np.array([[1, 0], [1, 0], [0, 1]]))
    >>> count_pairs(answers).right_wrong
    array([[0, 2],
           [1, 0]])
    """
    chosen = _choose_engine(source) if engine == "auto" else engine
    return _find_engine(chosen)(source, weighting)


def _choose_engine(source: Any) -> str:
    if not isinstance(source, str | PathLike):
        return "duckdb" if getattr(source, "is_streamed", False) else "memory"
    from discreet.engines.outofcore.choosing import is_too_large

    return "duckdb" if is_too_large(source) else "memory"


def _find_engine(name: str) -> Engine:
    if name not in ENGINES:
        known = ", ".join(["auto", *ENGINES])
        raise BadUsage(f"there is no engine called {name!r}; choose one of: {known}")
    module, function = ENGINES[name].split(":")
    return cast(Engine, getattr(importlib.import_module(module), function))
