"""How many threads the heavy loops may use.

In: a number from the caller, the environment or the machine. Out: results of tasks in order.
The compiled loops and NumPy's own release the interpreter lock, so plain threads are enough.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import TypeVar

from discreet.errors import BadUsage

__all__ = ["run_tasks", "set_threads", "thread_count"]

Task = TypeVar("Task")
Result = TypeVar("Result")

VARIABLE = "DISCREET_THREADS"
MOST_THREADS = 4096
"""More than any machine has, and few enough to start."""
_chosen: ContextVar[int | None] = ContextVar("discreet_threads", default=None)


def set_threads(count: int | None) -> None:
    """Choose the number of threads for this context; None goes back to the default."""
    if count is not None and not 1 <= count <= MOST_THREADS:
        raise BadUsage(f"the number of threads must be from 1 to {MOST_THREADS}, found {count}")
    _chosen.set(count)


def thread_count() -> int:
    """Return the chosen number, or ``DISCREET_THREADS``, or one per usable core."""
    chosen = _chosen.get()
    if chosen is not None:
        return chosen
    text = os.environ.get(VARIABLE, "")
    if not text:
        return _usable_cores()
    if not (text.isascii() and text.isdecimal() and 1 <= float(text) <= MOST_THREADS):
        raise BadUsage(
            f"the environment variable {VARIABLE} must be a whole number from 1 to {MOST_THREADS}, "
            f"found {text!r}; correct or unset it"
        )
    return int(text)


def _usable_cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # only Linux says which cores this process may use
        return os.cpu_count() or 1


def run_tasks(function: Callable[[Task], Result], tasks: Iterable[Task]) -> list[Result]:
    """Apply a function to every task, several at a time, and keep their order."""
    listed = list(tasks)
    threads = min(thread_count(), len(listed))
    if threads <= 1:
        return [function(task) for task in listed]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, listed))
