"""From an exception to what the user reads and the exit code the shell gets.

::

    0    done                     5    the answers do not determine what was asked
    1    anything else            129  the terminal was closed (SIGHUP)
    2    wrong usage, no file     130  interrupted
    3    bad data                 143  ended from outside (SIGTERM)
    4    the privacy budget would be exceeded

A user's mistake never shows a traceback. Set ``DISCREET_DEBUG=1`` to see one.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from discreet.errors import DiscreetError, write_line

USAGE = 2
INTERRUPTED = 130
#: A program that a signal ended has this code plus the signal's number, as in a shell.
BY_SIGNAL = 128

# Paths that the user can put right by typing another one.
_WRONG_PATH = {
    errno.ENOENT: "no such file or folder",
    errno.EISDIR: "it is a folder, a file was expected",
    errno.ENOTDIR: "part of the path is a file, a folder was expected",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EROFS: "the file system is read-only",
    errno.EEXIST: "it exists already",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ELOOP: "too many symbolic links",
}


@contextmanager
def heeding_signals() -> Iterator[list[int]]:
    """Let SIGTERM and SIGHUP unwind the program as Ctrl-C does; yield those that came.

    What whoever started the program decided about a signal (``nohup``) stays.
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    signals = (signal.SIGTERM, getattr(signal, "SIGHUP", None))  # Windows has no SIGHUP
    heeded = [kind for kind in signals if kind is not None and _is_default(kind)]

    def end(number: int, _frame: object) -> None:
        came.append(number)
        # Often both come, one after the other; the second must not interrupt the cleaning up.
        if len(came) == 1:
            raise KeyboardInterrupt

    for heeded_signal in heeded:
        signal.signal(heeded_signal, end)
    try:
        yield came
    finally:
        for heeded_signal in heeded:
            signal.signal(heeded_signal, signal.SIG_DFL)


def _is_default(number: int) -> bool:
    return signal.getsignal(number) is signal.SIG_DFL


@contextmanager
def guard() -> Iterator[None]:
    """Turn whatever a command raises into a message on standard error and an exit code."""
    try:
        yield
        # A full disk or a closed pipe behind standard output shows up here, not at exit.
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, less) has seen enough: that is its right, not an error.
        drop_output()
        raise typer.Exit(0) from None
    except KeyboardInterrupt as error:
        _say("Interrupted. No output file was left half-written.", *_list_notes(error))
        raise typer.Exit(INTERRUPTED) from None
    except (DiscreetError, OSError, MemoryError) as error:
        code, message = describe(error)
        _report(f"Error: {message}", error)
        raise typer.Exit(code) from None
    except Exception as error:
        if _is_parser_error(error):
            raise
        _report(_unexpected(error), error)
        raise typer.Exit(1) from None


def _list_notes(error: BaseException) -> list[str]:
    """Return what was added to an error on its way: above all, what was spent."""
    return [*getattr(error, "__notes__", ())]


def describe(error: DiscreetError | OSError | MemoryError) -> tuple[int, str]:
    """Return the exit code and the sentence for an error that users can meet."""
    if isinstance(error, DiscreetError):
        return error.exit_code, str(error)
    if isinstance(error, MemoryError):
        return 1, (
            "the computer ran out of memory. Close other programs, use a machine with more "
            "memory, or give fewer answers at a time."
        )
    file = error.filename if error.filename is not None else "standard output or a file"
    if error.errno in _WRONG_PATH:
        return USAGE, f"{file}: {_WRONG_PATH[error.errno]}. Check the path and try again."
    if error.errno == errno.ENOSPC:
        drop_output()
        # Where the result cannot be shown, the work is done: doing it again may cost again.
        is_undone = error.filename is not None and not hasattr(error, "__notes__")
        advice = " and run the command again" if is_undone else ""
        return 1, f"{file}: the disk is full. Nothing was left half-written; make room{advice}."
    drop_output()
    return 1, f"{file}: {error.strerror or error}"


def drop_output() -> None:
    """Send what is still buffered nowhere, so that the interpreter does not fail on exit."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError, AttributeError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _is_parser_error(error: Exception) -> bool:
    # The parser's own exceptions (Exit, usage errors) live in modules that differ between
    # versions of typer; all of them carry an exit code, and typer prints them itself.
    return hasattr(error, "exit_code")


def _unexpected(error: Exception) -> str:
    return (
        f"Error: something went wrong inside discreet ({type(error).__name__}: {error}). "
        "This is a fault of the program, not yours. Run the command again with "
        "DISCREET_DEBUG=1 in front of it to see where, and report that (without data)."
    )


def _report(message: str, error: BaseException) -> None:
    if os.environ.get("DISCREET_DEBUG", "") not in ("", "0"):
        _say(*traceback.format_exc().split("\n"))
    _say(message, *_list_notes(error))


def _say(*lines: str) -> None:
    try:
        for line in lines:
            print(write_line(line), file=sys.stderr, flush=True)
    except OSError:
        # Standard error is gone too; the exit code is all that is left to say.
        return
