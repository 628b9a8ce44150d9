"""Run a generator in a thread of its own, a few steps ahead of whoever uses it.

Reading and counting then overlap. Closing the outer generator (an error, Ctrl-C, a caller who
has enough) stops the thread before the next step.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterator
from typing import TypeVar

__all__ = ["run_ahead"]

Step = TypeVar("Step")

STEPS_AHEAD = 3
"""Enough to smooth out a slow step, few enough to bound memory."""

PATIENCE = 0.1
"""Seconds between two looks at whether the other side has stopped."""


def run_ahead(steps: Iterator[Step], ahead: int = STEPS_AHEAD) -> Generator[Step, None, None]:
    """Yield what ``steps`` yields, computed up to ``ahead`` steps early.

    Examples
    --------
    >>> list(run_ahead(iter([1, 2, 3])))
    [1, 2, 3]
    """
    worker = _Worker(steps, ahead)
    worker.start()
    try:
        yield from worker.results()
    finally:
        worker.stop()


class _Worker(threading.Thread):
    def __init__(self, steps: Iterator[Step], ahead: int) -> None:
        super().__init__(daemon=True)
        self._steps = steps
        self._queue: queue.Queue[tuple[str, object]] = queue.Queue(maxsize=ahead)
        self._stopped = threading.Event()

    def run(self) -> None:
        try:
            for step in self._steps:
                if not self._put("step", step):
                    return
            self._put("end", None)
        # Whatever goes wrong is raised again in the thread that waits for results.
        except BaseException as error:
            self._put("error", error)
        finally:
            close = getattr(self._steps, "close", None)
            if close is not None:
                close()

    def _put(self, kind: str, value: object) -> bool:
        while not self._stopped.is_set():
            try:
                self._queue.put((kind, value), timeout=PATIENCE)
            except queue.Full:
                continue
            return True
        return False

    def results(self) -> Iterator[Step]:
        while True:
            kind, value = self._queue.get()
            if kind == "end":
                return
            if kind == "error":
                raise value  # type: ignore[misc]
            yield value  # type: ignore[misc]

    def stop(self) -> None:
        self._stopped.set()
        self.join()
