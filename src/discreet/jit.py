"""Compile a loop, and keep the result on disk where there is a folder for it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def compiled_loop(function: Callable[..., Any]) -> Any:
    """Compile a function that releases the interpreter lock.

    Numba refuses to cache where neither the package nor the user's cache folder can be
    written (a read-only container, say). Then each process compiles for itself: some seconds
    once, instead of no result, and a warning that says what to set. Where there is no numba (in
    a browser), the loop runs as it is written, slowly.
    """
    if not has_numba():
        return function
    from numba import njit

    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:
        if not _State.warned:
            _State.warned = True
            warnings.warn(NO_CACHE, stacklevel=3)
        return njit(nogil=True)(function)


NO_CACHE = (
    "loops are compiled anew in every process, which takes some seconds, because there is no "
    "folder to keep them in: neither the package's own nor the user's cache folder can be written. "
    "Set the environment variable NUMBA_CACHE_DIR to a folder that can"
)


@cache
def has_numba() -> bool:
    """Say whether numba is installed, without loading it."""
    return find_spec("numba") is not None


@cache
def can_keep_loops() -> bool:
    """Say whether there is a folder for compiled loops, without loading numba.

    Numba tries ``NUMBA_CACHE_DIR``, the folder of the source and the user's own cache.
    """
    numba_cache = os.environ.get("NUMBA_CACHE_DIR")
    home = os.environ.get("LOCALAPPDATA") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folders = [Path(__file__).parent, Path(home).expanduser()]
    folders += [Path(numba_cache)] if numba_cache else []
    for folder in folders:  # which can be written, or made where it is missing
        nearest = next((path for path in (folder, *folder.parents) if path.exists()), folder)
        if nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK):
            return True
    return False


# When to wait for the compiled loops.
#
# Loading numba and its loops takes about half a second (some seconds the very first time, when
# nothing is in the disk cache, and every time where there is no folder for one), so small jobs run
# on NumPy alone. The rule is the one for renting or buying skis: use NumPy until this process has
# spent about as long in it as loading costs, then load. Nobody waits more than twice as long as
# the best choice in hindsight.

#: Price of loading numba and loops that an earlier process has left on disk.
LOADING_SECONDS = 0.4
#: Price where they are not there yet; later processes gain from it too.
KEEPING_SECONDS = 1.0
#: Price where loops cannot be kept, and each process compiles those that it needs.
COMPILING_SECONDS = 6.0

#: Below this a compiled call is not faster, even when loaded.
CALL_SECONDS = 5e-6


class _State:
    loaded = False
    spent = 0.0
    warned = False


def worth_compiling(plain_seconds: float) -> bool:
    """Say whether a job that NumPy does in ``plain_seconds`` should use compiled loops."""
    if not has_numba():
        return False
    if _State.loaded:
        return plain_seconds > CALL_SECONDS
    _State.spent += plain_seconds
    _State.loaded = _State.spent > loading_price()
    return _State.loaded


def loading_price() -> float:
    """Return the seconds of plain work after which loops are loaded, or compiled."""
    if not can_keep_loops():
        return COMPILING_SECONDS
    return LOADING_SECONDS if has_kept_loops() else KEEPING_SECONDS


@cache
def has_kept_loops() -> bool:
    """Say whether an earlier process has left compiled loops beside the package."""
    beside = Path(__file__).parent / "counts" / "__pycache__"
    folder = os.environ.get("NUMBA_CACHE_DIR")
    return any((Path(folder).rglob if folder else beside.glob)("pack_kernels.*.nbi"))


def load_kernels() -> None:
    """Use compiled loops from now on, for example in a service that will count often."""
    _State.loaded = True


# How many threads matrix products use where more of them only get in the way.
#
# Threads of OpenBLAS wait for each other by spinning. Around small matrices, or inside threads of
# our own, they cost more than they bring: on busy cores the sum over persons took twenty times
# as long, and so did a Newton step over a hundred items.
