"""Compile a loop, and keep the result on disk where there is a folder for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

__all__ = ["compiled_loop"]


def compiled_loop(function: Callable[..., Any]) -> Any:
    """Compile a function that releases the interpreter lock.

    Numba refuses to cache where neither the package nor the user's cache folder can be
    written (a read-only container, say). Then each process compiles for itself: some seconds
    once, instead of no result. Setting NUMBA_CACHE_DIR avoids that.
    """
    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:
        return njit(nogil=True)(function)
