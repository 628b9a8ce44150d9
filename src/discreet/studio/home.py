"""What stays when the studio ends: ledgers, and releases that were paid for.

In: a folder of the user's choice, by default ``~/discreet``. Out: where the files of ledgers and
the folders of releases are in it. It is made with the first of them, for its owner alone; nothing
made from answers without privacy protection is ever put there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from discreet.atomic import make_folder
from discreet.errors import BadUsage
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
