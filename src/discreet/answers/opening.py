"""What all answers have in common, wherever they are: in memory, on disk, in a cluster.

A release is made from anything that fits this description, by one wall. Whoever implements it
promises that every person is whole and counts once, and that a cap is drawn once.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

import numpy as np

from discreet.counts.memory import Weighting
from discreet.counts.table import PairCounts, name_weighting
from discreet.errors import BadUsage
from discreet.secure import RandomSource
from discreet.store.select import CELLS
from discreet.types import Int64Array

if TYPE_CHECKING:
    from discreet.answers.responses import Responses


class Totals(Protocol):
    """The sizes of answers, as their ``store`` knows them."""

    @property
    def n_persons(self) -> int: ...
    @property
    def n_items(self) -> int: ...
    @property
    def n_answers(self) -> int: ...
    def item_totals(self) -> tuple[Int64Array, Int64Array]:
        """Per item, how many persons answered it and how many of them had it right."""
        ...


class Contributions(Protocol):
    """What whole persons contribute to a release: answers, or comparisons."""

    @property
    def items(self) -> tuple[str, ...]:
        """Names of the items that occur, in column order."""
        ...

    @property
    def n_persons(self) -> int:
        """Number of persons, those without any answer included."""
        ...

    def select(self, items: Sequence[str]) -> Self:
        """Return exactly these items in this order; an unknown name is an unanswered column."""
        ...

    def cap(self, max_answers: int, source: RandomSource, /) -> Self:
        """Return answers of which each person keeps at most so many, a uniformly random part.

        What a person keeps is drawn once: whatever is counted from the result comes from one
        and the same draw.
        """
        ...

    def count(self, weighting: Weighting | None) -> Any:
        """Count what mechanisms put noise on, each person with an integer weight.

        Pairs of answers, right and wrong: :class:`~discreet.PairCounts`; or wins.
        """
        ...

    def sum_digests(self, key: bytes, rule: str = CELLS) -> tuple[int, int]:
        """Return the sum of the persons' keyed digests, and how many were added.

        See :mod:`discreet.store.select` for the rules.
        """
        ...


class Answers(Contributions, Protocol):
    """Answers of whole persons.

    :func:`discreet.count_pairs` counts them with the engine that their attribute ``engine``
    names (memory, if there is none), in one pass.
    """

    @property
    def store(self) -> Totals:
        """Sizes and totals."""
        ...


# Count pairs: one function, several engines that must agree exactly.
#
# In: answers (or where they are). Out: :class:`~discreet.counts.PairCounts`. Adding an engine is
# one file and one line in ``ENGINES``, and one in ``OPENERS`` if its answers stay where they are.

Engine = Callable[[Any, Weighting | None], PairCounts]

ENGINES: dict[str, str] = {
    "memory": "discreet.counts.memory:count_responses",
    "duckdb": "discreet.answers.streamed.answers:count_anything",
    "gpu": "discreet.answers.device:count_on_gpu",
    "spark": "discreet.answers.spark.answers:count_frame",
}
"""Name of each engine and the function behind it, loaded when the engine is first used."""

OPENERS: dict[str, str] = {
    "duckdb": "discreet.answers.streamed.answers:open_answers",
    "gpu": "discreet.answers.device:read_tensor",
    "spark": "discreet.answers.spark.answers:open_frame",
}
"""Engines that leave answers where they are, and how each opens a source for several passes."""

PERSON_OPENERS: dict[str, str] = {
    "duckdb": "discreet.answers.streamed.answers:open_persons",
}
"""Engines of which ``OPENERS`` may give bare counts, and how each opens whole persons instead."""


MAIN_MEMORY = 1
"""DLPack's number for it."""


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
        Answers, a matrix ``[person, item]`` (a tensor on a graphics processor is counted there),
        or where answers are: a file, folder or pattern, a Spark DataFrame, and for engine
        "duckdb" also a DuckDB database (``"file.duckdb::table"``) or a query, for "spark" the
        name of a table.
    engine
        ``"auto"``, or one of ``ENGINES``. The result is the same, to the last integer. Auto
        means "memory", but "spark" for Spark DataFrames, and "duckdb" for queries, databases and
        files whose answers would fill more than half of the free memory.
    weighting
        Integer weight per person as a function of how many items the person answered and
        how many of them right; None counts every person once.

    Returns
    -------
    PairCounts
        With more than 2000 items of which few pairs were compared ``right_wrong`` is a
        ``scipy.sparse.csr_array`` (see :func:`discreet.counts.prefers_sparse`).

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.answers.responses import Responses
    >>> answers = Responses.from_array(np.array([[1, 0], [1, 0], [0, 1]]))
    >>> count_pairs(answers).right_wrong
    array([[0, 2],
           [1, 0]])
    """
    chosen = _choose_engine(source) if engine == "auto" else engine
    if chosen == "memory":
        source = open_source(source, chosen)
    counts = _find_engine(chosen)(source, weighting)
    return replace(counts, weighting=name_weighting(weighting))


def open_source(source: Any, engine: str = "auto") -> Any:
    """Return answers that can be looked at more than once, for ``fit`` and ``release``.

    Parameters
    ----------
    source
        Answers, counts, an array, or where answers are.
    engine
        As for `count_pairs`.

    Returns
    -------
    Responses, PairCounts, or answers that stay where they are
        All answers have ``items``, ``n_persons``, ``store`` and ``engine``, the engine that counts
        them. Counts come back where answers cannot be looked at twice.
    """
    if isinstance(source, PairCounts) or _has_store(source):
        return source
    chosen = _choose_engine(source) if engine == "auto" else engine
    if chosen in OPENERS:
        return _load(OPENERS[chosen])(source)
    from discreet.answers.reading import read_responses
    from discreet.answers.responses import Responses

    if isinstance(source, str | PathLike):
        return read_responses(source)
    if isinstance(source, np.ndarray) or hasattr(source, "__dlpack_device__"):
        return Responses.from_array(np.asarray(source))
    raise BadUsage(
        f"answers, pair counts, an array or a path are needed, found {type(source).__name__}; "
        "build answers with Responses.from_array or Responses.from_dataframe"
    )


@contextmanager
def open_persons(source: Any, engine: str = "auto") -> Iterator[Answers]:
    """Give answers of whole persons, for ``release``, and clean up behind them.

    Parameters
    ----------
    source
        Answers, an array, or where answers are; not counts, of which nobody can say any more
        which answers belong to one person.
    engine
        As for `count_pairs`.
    """
    if isinstance(source, PairCounts):
        raise BadUsage(
            "a release needs the answers themselves, found pair counts: they do not say which "
            "answers are of the same person, so no cap on a person's answers can be drawn. Give "
            "the answers, or where they are"
        )
    if _has_store(source):
        yield source
        return
    chosen = _choose_engine(source) if engine == "auto" else engine
    _find_engine(chosen)
    if chosen not in PERSON_OPENERS:
        yield open_source(source, chosen)
        return
    with _load(PERSON_OPENERS[chosen])(source) as answers:
        yield answers


def _has_store(source: Any) -> bool:
    """Say whether these are answers; a Spark frame has an attribute for every column."""
    return not _is_spark(source) and hasattr(source, "store")


def _is_spark(source: Any) -> bool:
    return type(source).__module__.startswith("pyspark.")


def _choose_engine(source: Any) -> str:
    if _is_spark(source):
        return "spark"
    if hasattr(source, "engine"):
        return str(source.engine)
    if not isinstance(source, str | PathLike):
        return "gpu" if _is_on_device(source) else "memory"
    from discreet.answers.streamed.choosing import is_too_large

    return "duckdb" if is_too_large(source) else "memory"


def _is_on_device(source: Any) -> bool:
    """Say whether a matrix is elsewhere than in main memory, by the DLPack protocol."""
    if isinstance(source, np.ndarray) or not hasattr(source, "__dlpack_device__"):
        return False
    return int(source.__dlpack_device__()[0]) != MAIN_MEMORY


def _find_engine(name: str) -> Engine:
    if name not in ENGINES:
        known = ", ".join(["auto", *ENGINES])
        raise BadUsage(f"there is no engine called {name!r}; choose one of: {known}")
    return cast(Engine, _load(ENGINES[name]))


def _load(place: str) -> Any:
    module, function = place.split(":")
    return getattr(importlib.import_module(module), function)
