"""Find out beforehand whether the tasks of a session will run the Python that they need.

In: a DataFrame. Out: nothing, or an error that names what to set. Without PYSPARK_PYTHON a session
starts whatever ``python3`` is, and if that is another version, or lacks this package, every job
ends in a page of Java. Only a session on this machine can be asked; a cluster has its own Pythons.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from discreet.errors import BadUsage

_ASK = "import sys, pyarrow, discreet; print(*sys.version_info[:2], sep='.')"
_SECONDS = 60


def check_workers(frame: Any) -> None:
    """Refuse a local session whose tasks would run a Python without this package."""
    context = getattr(getattr(frame, "sparkSession", None), "_sc", None)
    if context is None or not str(getattr(context, "master", "")).startswith("local"):
        return
    command = str(getattr(context, "pythonExec", "")) or "python3"
    wrong = _find_fault(command, sys.executable)
    if wrong:
        raise BadUsage(
            f"this Spark session would run its tasks with {command!r}, which {wrong}. Set the "
            f"environment variable PYSPARK_PYTHON to {sys.executable!r} before the session starts, "
            "as in os.environ['PYSPARK_PYTHON'] = sys.executable."
        )


@functools.cache
def _find_fault(command: str, own: str) -> str:
    """Say what is wrong with the Python behind a command; nothing where it serves."""
    found = shutil.which(command)
    if found is None:
        return "is not there"
    # Not resolved: an environment's Python is a link to one without its packages.
    if Path(found).absolute() == Path(own).absolute():
        return ""
    try:
        said = subprocess.run(  # noqa: S603 (the command that the session itself will start)
            [found, "-c", _ASK], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return "does not start"
    wanted = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if said.returncode:
        return "cannot import discreet and pyarrow"
    version = said.stdout.strip()
    return "" if version == wanted else f"is Python {version}, not {wanted}"
