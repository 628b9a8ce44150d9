"""The ``discreet`` command: parse, call, print; no mathematics.

In: what the user typed. Out: results on standard output, everything else on standard error,
and an exit code (see :mod:`discreet.cli.output`). Nothing heavy is imported before a command
needs it, so that ``discreet --help`` answers at once.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code.

    Parameters
    ----------
    arguments
        What follows ``discreet`` on the command line; ``None`` takes it from ``sys.argv``.

    Examples
    --------
    >>> from discreet.cli import main
    >>> main(["--version"])
    discreet 0.2.0
    0
    """
    # Ctrl-C while the modules below are still loading must not end in a traceback either.
    try:
        from discreet.cli.app import run
    except KeyboardInterrupt:
        return 130
    return run(arguments)
