"""One process at a time: a lock that ends with its process, however that ends.

In: the path of a file. Out: the open file, held by nobody else. The operating system gives the
lock back when the process dies, so a kill leaves no lock behind, only the file.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from discreet.errors import DiscreetError

__all__ = ["hold_lock"]


@contextmanager
def hold_lock(path: Path, busy: DiscreetError) -> Iterator[int]:
    """Give the descriptor of a private file that this process alone holds, made if need be.

    ``busy`` is raised where another process holds it. Whoever holds the lock may remove the file.
    """
    handle = _open_locked(path, busy)
    try:
        yield handle
    finally:
        os.close(handle)


def _open_locked(path: Path, busy: DiscreetError) -> int:
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Its last holder may have removed the file between our two steps: then hold a new one.
            if os.fstat(handle).st_nlink:
                return handle
        except BlockingIOError:
            os.close(handle)
            raise busy from None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
