"""How many threads the heavy loops may use.

In: a number from the caller, the environment or the machine. Out: results of tasks in order.
The compiled loops and NumPy's own release the interpreter lock, so plain threads are enough.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from threading import Thread
from typing import Any, TypeVar

from discreet.errors import BadUsage

Task = TypeVar("Task")


Result = TypeVar("Result")


VARIABLE = "DISCREET_THREADS"


#: Threads take about 0.3 ms to start, so that less work than this is not divided.
SPLIT_SECONDS = 4e-3


#: More than any machine has, and few enough to start.
MOST_THREADS = 4096


_chosen: ContextVar[int | None] = ContextVar("discreet_threads", default=None)


def set_threads(count: int | None) -> None:
    """Choose the number of threads for this context; None goes back to the default."""
    if count is not None and not 1 <= count <= MOST_THREADS:
        raise BadUsage(f"the number of threads must be from 1 to {MOST_THREADS}, found {count}")
    _chosen.set(count)


def thread_count() -> int:
    """Return the chosen number, or ``DISCREET_THREADS``, or one per usable core.

    One where threads cannot start, as in a browser.
    """
    if not can_start_threads():
        return 1
    chosen = _chosen.get()
    if chosen is not None:
        return chosen
    text = os.environ.get(VARIABLE, "")
    if not text:
        # Only Linux says which cores this process may use.
        affinity = getattr(os, "sched_getaffinity", None)
        return (os.cpu_count() or 1) if affinity is None else len(affinity(0))
    if not (text.isascii() and text.isdecimal() and 1 <= float(text) <= MOST_THREADS):
        raise BadUsage(
            f"the environment variable {VARIABLE} must be a whole number from 1 to {MOST_THREADS}, "
            f"found {text!r}; correct or unset it"
        )
    return int(text)


@cache
def can_start_threads() -> bool:
    """Say whether this system lets a program start a thread; tried once."""
    thread = Thread(target=int)
    try:
        thread.start()
    except RuntimeError:
        return False
    thread.join()
    return True


def map_tasks(
    function: Callable[[Task], Result], tasks: Iterable[Task], seconds: float = math.inf
) -> Iterable[Result]:
    """Apply a function to every task, several at a time, and keep their order.

    As with ``map``, a task may wait until its result is taken: take them all. ``seconds`` is what
    one thread would need, where it is known: below :data:`SPLIT_SECONDS` one thread does it.
    """
    listed = list(tasks)
    threads = min(thread_count(), len(listed)) if seconds > SPLIT_SECONDS else 1
    if threads <= 1:
        return map(function, listed)
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, listed))


#: OpenBLAS itself uses one thread up to about 2^18 multiplications: 64 items.
FEWEST_ITEMS = 40


#: Up to here a factorisation takes about a millisecond on one core.
SMALL_ITEMS = 500


def threads_for(items: int) -> AbstractContextManager[Any]:
    """Return a block in which matrices over this many items use a sensible number of threads."""
    return one_blas_thread() if FEWEST_ITEMS < items <= SMALL_ITEMS else nullcontext()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let matrix products run in the calling thread only, while the block runs.

    The limit holds for the whole process. Where threadpoolctl is not installed nothing changes but
    the time.
    """
    libraries = _find_blas("scipy.linalg" in sys.modules)
    threaded = [(blas, number) for blas in libraries if (number := blas.get_num_threads()) > 1]
    for blas, _ in threaded:
        blas.set_num_threads(1)
    try:
        yield
    finally:
        for blas, number in threaded:
            blas.set_num_threads(number)


@cache
def _find_blas(with_scipy: bool) -> list[Any]:  # noqa: ARG001 - scipy brings its own BLAS
    """Find the loaded BLAS libraries once, and once more when scipy has loaded another."""
    try:
        from threadpoolctl import ThreadpoolController
    except ModuleNotFoundError:
        return []
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)
