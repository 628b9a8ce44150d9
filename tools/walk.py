"""Show the way of a command through the library: which modules it calls, in which order.

::

    python -m tools.walk fit answers.csv --out results
    python -m tools.walk --script release_from_spark.py

In: a command as typed after ``discreet``, or a script. Out, on standard error: every call from one
module into another, at its first occurrence, how many of them switch package, and between how
many pairs of packages. A package is a folder right below ``discreet``; modules that lie flat in it
are foundations and do not count. What runs in other processes is not seen.
"""

from __future__ import annotations

import runpy
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import discreet

__all__ = ["Walk", "follow", "main"]

ROOT = str(Path(discreet.__file__).parent) + "/"


@dataclass
class Walk:
    """Calls between modules, in the order of their first occurrence."""

    calls: dict[tuple[str, str], None] = field(default_factory=dict)

    @property
    def modules(self) -> list[str]:
        """Every module on the way, in order."""
        return list(dict.fromkeys(module for call in self.calls for module in call))

    @property
    def switches(self) -> list[tuple[str, str]]:
        """The calls that leave a package for another one."""
        return [(a, b) for a, b in self.calls if is_switch(a, b)]

    @property
    def pairs(self) -> set[tuple[str | None, str | None]]:
        """The pairs of packages between which the command switches."""
        return {(package(a), package(b)) for a, b in self.switches}

    def describe(self) -> str:
        """Return the way as text: an arrow for every switch, indented within a package."""
        lines = [f"{'->' if is_switch(a, b) else '  '} {a} calls {b}" for a, b in self.calls]
        total = (
            f"{len(self.modules)} modules, {len(self.switches)} package switches between "
            f"{len(self.pairs)} pairs of packages"
        )
        return "\n".join([*lines, total])


def package(module: str) -> str | None:
    """Return the folder right below the library; None for a module that lies flat in it."""
    first = module.split(".", 1)[0]
    return first if (Path(ROOT) / first).is_dir() else None


def is_switch(caller: str, called: str) -> bool:
    """Tell whether a call leaves one package for another."""
    ends = package(caller), package(called)
    return None not in ends and ends[0] != ends[1]


def follow(task: Callable[[], object]) -> Walk:
    """Run a task and return its way through the library."""
    walk = Walk()

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and (here := name_module(frame)) is not None:
            caller = find_caller(frame)
            if caller not in (None, here):
                walk.calls.setdefault((str(caller), here))

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        task()
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return walk


def name_module(frame: FrameType) -> str | None:
    """Return the library's module that a frame runs in; importing a module does not count."""
    file = frame.f_code.co_filename
    if not file.startswith(ROOT) or frame.f_code.co_name == "<module>":
        return None
    return file[len(ROOT) : -len(".py")].replace("/", ".").removesuffix(".__init__")


def find_caller(frame: FrameType) -> str | None:
    """Return the library's module that a call came from, through other libraries if need be."""
    before = frame.f_back
    while before is not None:
        if before.f_code.co_name == "<module>" and before.f_code.co_filename.startswith(ROOT):
            return None
        if (found := name_module(before)) is not None:
            return found
        before = before.f_back
    return None


def main(arguments: Sequence[str]) -> None:
    """Follow a command or a script."""
    if list(arguments[:1]) == ["--script"]:
        sys.argv = list(arguments[1:])
        walk = follow(lambda: runpy.run_path(arguments[1], run_name="__main__"))
    else:
        from discreet.cli import main as run_command

        walk = follow(lambda: run_command(list(arguments)))
    print(walk.describe(), file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
