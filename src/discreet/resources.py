"""Memory: how much is free, and how some is held before what cannot be repeated begins."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path

from discreet.errors import OutOfReach
from discreet.threads import thread_count

GIBIBYTE = 1 << 30
#: More than there is in the world.
MOST_MEMORY = 1 << 60


def available_memory() -> int:
    """Return the bytes of memory that this process can still use without swapping.

    Limits of the process (``ulimit -v``) and of its container count.
    """
    return max(0, min(_free_memory(), _left_of_process(), _left_of_container()))


def _free_memory() -> int:
    with suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        kilobytes = next(line.split()[1] for line in lines if line.startswith("MemAvailable:"))
        return 1024 * int(kilobytes)
    return machine_memory()


def machine_memory() -> int:
    """Return the bytes of memory that the machine has; 8 GiB where nothing tells."""
    if hasattr(os, "sysconf"):
        with suppress(ValueError, OSError):
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(AttributeError, OSError):
        kilobytes = ctypes.c_ulonglong()
        windows = ctypes.windll.kernel32  # type: ignore[attr-defined,unused-ignore]
        if windows.GetPhysicallyInstalledSystemMemory(ctypes.byref(kilobytes)):
            return 1024 * kilobytes.value
    return 8 * GIBIBYTE


def _left_of_process() -> int:
    with suppress(ImportError, OSError, ValueError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        if limit != resource.RLIM_INFINITY:
            return limit - pages * resource.getpagesize()
    return MOST_MEMORY


#: Where Linux says what a container may use and does use, in both versions of control groups.
CONTAINERS = (
    (Path("/sys/fs/cgroup"), "memory.max", "memory.current"),
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.usage_in_bytes"),
)


def _left_of_container() -> int:
    for folder, limit_file, used in CONTAINERS:
        try:
            limit, current = (int((folder / name).read_text()) for name in (limit_file, used))
            lines = (folder / "memory.stat").read_text().splitlines()
        except (OSError, ValueError):  # "max" where there is no limit
            continue
        cached = [int(line.split()[1]) for line in lines if line.startswith("inactive_file ")]
        return limit - current + sum(cached)
    return MOST_MEMORY


#: Address space of a buffer for each thread, in NumPy's linear algebra and in SciPy's.
BUFFER_BYTES = 32 << 20
#: What a process with a limit of its own (``ulimit -v``) keeps for whatever is loaded on the way.
SPARE_BYTES = 128 << 20
#: A matrix that is large enough for all threads.
BLAS_ITEMS = 512


def secure_memory(needed: int) -> None:
    """Refuse a release that would not fit into memory, before it is paid for."""
    if _left_of_process() < MOST_MEMORY:
        needed += SPARE_BYTES
    if needed > (free := available_memory()):
        raise OutOfReach(
            f"a release needs about {needed / 1e6:,.0f} MB of memory here, and only "
            f"{free / 1e6:,.0f} MB are left: it could stop after it was paid for. Nothing was "
            "charged. Raise the limit (ulimit -v, the memory of the batch job), or use fewer "
            "threads (--threads 1)."
        )


def take_buffers() -> None:
    """Let linear algebra take its buffers while there is room for them.

    OpenBLAS asks for ever for a buffer that it does not get, and the process cannot even be ended.
    """
    import numpy as np
    from scipy.linalg import cho_factor

    secure_memory(2 * BUFFER_BYTES * thread_count())
    square = np.eye(BLAS_ITEMS)
    cho_factor(square @ square)
