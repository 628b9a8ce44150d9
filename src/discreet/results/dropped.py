"""Python's warnings for items that were left out of a result, or have no standard error.

In: the warnings of a result. Out: :class:`~discreet.errors.ItemsLeftOut` and
:class:`~discreet.errors.NoStandardErrors`, said of the place in the caller's program. Never of a
release: what its public list names is in it, whatever the answers are.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from discreet.errors import ItemsLeftOut, NoStandardErrors

if TYPE_CHECKING:  # the command line, which shows help, loads no NumPy
    from discreet.results.estimate import FitWarning, WarningKind


_untold = ContextVar("untold", default=False)


def warn_of_dropped(notices: Iterable[FitWarning]) -> None:
    """Warn of items that were left out."""
    from discreet.results.estimate import DROPPED

    _warn(notices, DROPPED, ItemsLeftOut)


def warn_of_missing_errors(notices: Iterable[FitWarning]) -> None:
    """Warn of standard errors that answers should have given."""
    from discreet.results.estimate import WarningKind

    _warn(notices, (WarningKind.NO_STANDARD_ERRORS,), NoStandardErrors)


def _warn(
    notices: Iterable[FitWarning], kinds: Collection[WarningKind], category: type[UserWarning]
) -> None:
    for notice in () if _untold.get() else notices:
        if notice.kind in kinds:
            warnings.warn(str(notice), category, stacklevel=_find_caller())


def _find_caller() -> int:
    """Return how many calls above :func:`_warn` the first program of others is."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("discreet."):
        level, frame = level + 1, frame.f_back
    return level


@contextmanager
def saying_it_otherwise() -> Iterator[None]:
    """Warn of nothing inside: whoever calls tells the items itself, in a table or in print."""
    before = _untold.set(True)
    try:
        yield
    finally:
        _untold.reset(before)
