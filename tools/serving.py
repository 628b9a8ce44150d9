"""The studio as a user starts it, for tests, screenshots and measurements."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["PATIENCE", "run_studio"]

PATIENCE = 300
"""Seconds after which what does not come is taken for a failure, on a busy machine too."""


@contextmanager
def run_studio(place: Path, environment: dict[str, str]) -> Iterator[str]:
    """Start the studio as a user does; give its first address, and end it."""
    (place / "tmp").mkdir()
    kept = {"TMPDIR": str(place / "tmp"), "XDG_STATE_HOME": str(place / "state")}
    running = subprocess.Popen(  # noqa: S603
        [*(sys.executable, "-m", "discreet", "studio", "--no-browser"), "--keep", place / "kept"],
        env={**environment, **kept},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        # Whoever runs it in the background has told their processes to ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        yield running.stdout.readline().strip()
    finally:
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=PATIENCE)
