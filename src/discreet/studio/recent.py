"""Recent work of this machine: the paths of files that were opened, and nothing else.

In: a path. Out: a small private file in the folder where programs of this user keep their state
(``XDG_STATE_HOME``, usually ``~/.local/state``): ``discreet/studio.json``, and ``ledgers.json`` for
ledgers elsewhere than in the studio's own folder. Files that browsers sent have no path and are not
in it. ``DISCREET_STUDIO_RECENT=0`` keeps nothing.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from json import JSONDecodeError, dumps, loads
from pathlib import Path

from discreet.atomic import write_text

VARIABLE = "DISCREET_STUDIO_RECENT"
MOST = 12
"""Paths that are kept."""


def find_place(name: str = "studio.json") -> Path | None:
    """Return where a list of paths is kept; ``None`` where it shall not be."""
    if os.environ.get(VARIABLE, "") == "0":
        return None
    state = os.environ.get("XDG_STATE_HOME") or str(Path("~/.local/state").expanduser())
    return Path(state) / "discreet" / name


@dataclass(frozen=True)
class Recent:
    """The list of paths, the latest first."""

    place: Path | None = field(default_factory=find_place)

    def paths(self) -> list[str]:
        """Return the paths; a damaged list is an empty one."""
        with suppress(OSError, JSONDecodeError, UnicodeDecodeError):
            found = loads(self.place.read_text("utf-8")) if self.place else []
            if isinstance(found, list):
                return [one for one in found if isinstance(one, str)][:MOST]
        return []

    def add(self, path: Path) -> None:
        """Put a path in front."""
        said = str(path)
        self._write([said, *(one for one in self.paths() if one != said)][:MOST])

    def forget(self, path: str = "") -> None:
        """Take out one path, or without one all of them, and the list itself."""
        left = [one for one in self.paths() if path and one != path]
        if left:
            self._write(left)
        elif self.place:
            self.place.unlink(missing_ok=True)

    def _write(self, paths: list[str]) -> None:
        # A home that cannot be written is no reason to stop: the list is a convenience.
        if self.place:
            with suppress(OSError):
                write_text(self.place, dumps(paths, ensure_ascii=False, indent=1) + "\n")
