"""Let the package see what it would see on Windows, as far as Linux can pretend.

Put this folder on PYTHONPATH: every process of a test then starts with it. Modules and names that
Windows does not have are hidden from the package alone, ``msvcrt`` is there, and the file system
behaves alike for everybody: what is open or mapped can neither be removed nor replaced nor moved,
a name that is taken refuses another file, folders cannot be opened, nothing is synced that was
opened for reading, some names are refused, and text that names no encoding is Windows-1252.
"""

import builtins
import errno
import fcntl
import io
import os
import re
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from types import ModuleType

HIDDEN = {
    "os": {
        "O_NOFOLLOW", "O_CLOEXEC", "O_DIRECTORY", "fchmod", "fork", "geteuid", "getpgid", "getuid",
        "killpg", "posix_fallocate", "sched_getaffinity", "setsid", "statvfs", "sysconf", "uname",
    },
    "signal": {"SIGALRM", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGTTIN", "SIGUSR1"},
}  # fmt: skip
ABSENT = {"fcntl", "grp", "pwd", "resource", "termios", "tty"}
REFUSED = re.compile(
    r"""[<>:"|?*\x00-\x1f]|[. ]$|^(con|prn|aux|nul|(com|lpt)[0-9])(\.|$)""", re.IGNORECASE
)


def is_package(module_name):
    return module_name.split(".")[0] == "discreet"


class HidingModule(ModuleType):
    def __getattribute__(self, name):
        hidden = HIDDEN[super().__getattribute__("__name__")]
        if name in hidden and is_package(sys._getframe(1).f_globals.get("__name__", "")):
            raise AttributeError(f"module has no attribute {name!r} on Windows")
        return super().__getattribute__(name)


class Locking(ModuleType):
    """The lock of ``msvcrt``: one that other descriptors of the same process meet too."""

    LK_NBLCK, LK_UNLCK = 2, 0

    @staticmethod
    def locking(handle, mode, size):
        assert os.lseek(handle, 0, os.SEEK_CUR) > 0, "a byte that others want to read"
        assert size == 1
        try:
            take = fcntl.LOCK_EX | fcntl.LOCK_NB
            fcntl.flock(handle, fcntl.LOCK_UN if mode == Locking.LK_UNLCK else take)
        except BlockingIOError:
            raise PermissionError(errno.EACCES, "Permission denied") from None


MSVCRT = Locking("msvcrt")
real_import = builtins.__import__


def import_as_on_windows(name, globals=None, locals=None, fromlist=(), level=0):  # noqa: A002
    if level == 0 and is_package((globals or {}).get("__name__", "")):
        if name in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r} on Windows", name=name)
        if name == "msvcrt":
            return MSVCRT
    return real_import(name, globals, locals, fromlist, level)


def used_paths():
    """Files that this process has open or mapped."""
    paths = set()
    for link in Path("/proc/self/fd").iterdir():
        try:
            paths.add(str(link.readlink()))
        except OSError:
            continue
    lines = Path("/proc/self/maps").read_text("utf-8").splitlines()
    mapped = [line.split(maxsplit=5) for line in lines]
    return paths | {fields[5].strip() for fields in mapped if len(fields) > 5}


def refuse_in_use(path):
    whole = os.path.realpath(os.fsdecode(path))
    if any(used == whole or used.startswith(f"{whole}/") for used in used_paths()):
        raise PermissionError(errno.EACCES, "The process cannot access the file", os.fsdecode(path))


def refuse_odd(path):
    if isinstance(path, (str, bytes, os.PathLike)):
        name = Path(os.fsdecode(path)).name
        if name not in (".", "..") and REFUSED.search(name):
            raise OSError(errno.EINVAL, "The filename is incorrect", os.fsdecode(path))


def guard(function, *checks):
    def guarded(path, *arguments, **keywords):
        for check in checks:
            check(path)
        return function(path, *arguments, **keywords)

    return guarded


def guard_move(function, *, replaces):
    def move(source, target, **keywords):
        refuse_odd(target)
        if os.path.lexists(target):
            if not replaces:
                raise FileExistsError(errno.EEXIST, "Cannot create a file", os.fsdecode(target))
            if Path(os.fsdecode(target)).is_dir():
                raise PermissionError(errno.EACCES, "Access is denied", os.fsdecode(target))
            refuse_in_use(target)
        refuse_in_use(source)
        return function(source, target, **keywords)

    return move


def refuse_folder(path):
    if not isinstance(path, int) and Path(os.fsdecode(path)).is_dir():
        raise PermissionError(errno.EACCES, "Permission denied", os.fsdecode(path))


def refuse_reading(handle):
    if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, "Bad file descriptor")


def open_as_on_windows(real_open):
    def open_file(path, mode="r", buffering=-1, encoding=None, *arguments, **keywords):
        refuse_odd(path)
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if encoding is None and "b" not in mode and is_package(caller):
            encoding = "cp1252"
        return real_open(path, mode, buffering, encoding, *arguments, **keywords)

    return open_file


def pretend_windows():
    """Change the running interpreter; nothing changes it back."""
    os.__class__ = signal.__class__ = HidingModule
    builtins.__import__ = import_as_on_windows
    shutil._use_fd_functions = False
    tempfile.TemporaryFile = tempfile.NamedTemporaryFile  # what is open keeps its name
    os.unlink = os.remove = guard(os.unlink, refuse_in_use)
    os.rename = guard_move(os.rename, replaces=False)
    os.replace = guard_move(os.replace, replaces=True)
    os.open = guard(os.open, refuse_folder, refuse_odd)
    os.mkdir = guard(os.mkdir, refuse_odd)
    os.fsync = guard(os.fsync, refuse_reading)
    io.open = builtins.open = open_as_on_windows(io.open)


pretend_windows()
