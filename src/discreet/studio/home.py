"""What stays when the studio ends: ledgers, and releases that were paid for.

In: a folder of the user's choice, by default ``~/discreet``. Out: where the files of ledgers and
the folders of releases are in it. It is made with the first of them, for its owner alone; nothing
made from answers without privacy protection is ever put there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from discreet.atomic import PRIVACY_FILE, make_folder
from discreet.errors import BadUsage
from discreet.privacy.ledger.values import check_reservation
from discreet.studio.uploads import plain_name

ENDING = ".db"
DEFAULT = "~/discreet"


@dataclass(frozen=True)
class Home:
    """The folder that stays."""

    place: Path = field(default_factory=lambda: Path(DEFAULT).expanduser())

    @property
    def ledgers(self) -> Path:
        """Where ledgers are."""
        return self.place / "ledgers"

    def list_ledgers(self) -> list[Path]:
        """Return the ledgers that lie here, by name."""
        return sorted(self.ledgers.glob(f"[!.]*{ENDING}"))

    def place_ledger(self, name: str) -> Path:
        """Return where a new ledger of this name goes, in a folder that is there."""
        if not name or name != plain_name(name):
            raise BadUsage(
                f"{name!r} cannot be the name of a file. Use letters, digits, blanks, points, "
                "hyphens and brackets, up to 100 of them."
            )
        make_folder(self.ledgers)
        return self.ledgers / f"{name}{ENDING}"

    @property
    def releases(self) -> Path:
        """Where releases are."""
        return self.place / "releases"

    @property
    def put_away(self) -> Path:
        """Where releases are that were taken off the list."""
        return self.releases / "put away"

    def list_releases(self) -> dict[str, Path]:
        """Return the folders of releases that lie here, the latest first."""
        found = sorted(self.releases.glob(f"*/{PRIVACY_FILE}"), key=_written_at, reverse=True)
        return {path.parent.name: path.parent for path in found}

    def place_release(self, title: str, reservation: str) -> Path:
        """Return where the release with this reservation goes: always the same place."""
        words = "-".join(re.findall(r"[a-z0-9]+", title.lower()))[:40].strip("-")
        return self.releases / f"{words or 'release'}-{check_reservation(reservation)[:8]}"

    def put_release_away(self, name: str) -> None:
        """Take a release off the list; its files are moved, and nothing is removed."""
        found = self.list_releases().get(name)
        if found is not None:
            make_folder(self.put_away)
            found.rename(self.put_away / name)


def _written_at(path: Path) -> float:
    return path.stat().st_mtime
