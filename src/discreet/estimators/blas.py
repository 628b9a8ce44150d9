"""How many threads matrix products use where more of them only get in the way.

Threads of OpenBLAS wait for each other by spinning. Around small matrices, or inside threads of
our own, they cost more than they bring: on busy cores the sum over persons took twenty times
as long, and so did a Newton step over a hundred items.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

__all__ = ["SMALL_ITEMS", "one_blas_thread", "threads_for"]

FEWEST_ITEMS = 40
"""OpenBLAS itself uses one thread up to about 2^18 multiplications: 64 items."""
SMALL_ITEMS = 500
"""Up to here a factorisation takes about a millisecond on one core."""


def threads_for(items: int) -> AbstractContextManager[Any]:
    """Return a block in which matrices over this many items use a sensible number of threads."""
    return one_blas_thread() if FEWEST_ITEMS < items <= SMALL_ITEMS else nullcontext()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a block in which matrix products run in the calling thread only.

    The limit holds for the whole process while the block runs. Where threadpoolctl is not
    installed nothing changes but the time.
    """
    controller = _controller("scipy.linalg" in sys.modules)
    return nullcontext() if controller is None else controller.limit(limits=1, user_api="blas")


@cache
def _controller(with_scipy: bool) -> Any:  # noqa: ARG001 - scipy brings its own BLAS
    """Find the loaded BLAS libraries once, and once more when scipy has loaded another."""
    try:
        from threadpoolctl import ThreadpoolController
    except ModuleNotFoundError:
        return None
    return ThreadpoolController()
