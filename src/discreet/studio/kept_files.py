"""Files beyond one run of the studio: ledgers, paid releases, recent files, bundled examples.

In: a folder of the user's choice, by default ``~/discreet``. Out: where the files of ledgers and
the folders of releases are in it. It is made with the first of them, for its owner alone; nothing
made from answers without privacy protection is ever put there.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from hashlib import file_digest, sha256
from importlib.resources import files
from json import JSONDecodeError, dumps, loads
from pathlib import Path
from typing import Any, NamedTuple

from discreet.atomic import PRIVACY_FILE, PRIVATE_FOLDER, hold_lock, make_folder, write_text
from discreet.choices import PlainDict, PlainMapping
from discreet.datasets import lsat
from discreet.errors import BadUsage
from discreet.privacy.ledger.request import Request
from discreet.privacy.ledger.values import check_reservation
from discreet.studio.forms import plain_name
from discreet.studio.language import refuse
from discreet.words import mark

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
            raise refuse(
                "{name} cannot be the name of a file. Use letters, digits, blanks, points, "
                "hyphens and brackets, up to 100 of them.",
                name=repr(name),
            )
        make_folder(self.ledgers)
        return self.ledgers / f"{name}{ENDING}"

    def list_requests(self) -> dict[str, Path]:
        """Return the requests for releases that lie here, by their names."""
        return {path.stem: path for path in sorted((self.place / "requests").glob("[!.]*.json"))}

    def keep_request(self, request: Request) -> str:
        """Keep a request with every signature that is known of it; return its name."""
        folder, name = self.place / "requests", str(request.body["nonce"])[:12]
        make_folder(folder)
        path = folder / f"{name}.json"
        if path.exists() and (earlier := Request.load(path)).body == request.body:
            signatures = {one.public_key: one for one in (*earlier.signatures, *request.signatures)}
            request = replace(request, signatures=tuple(signatures.values()))
        request.save(path)
        return name

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
        records = self.releases.glob(f"*/{PRIVACY_FILE}")
        latest_first = sorted(records, key=lambda path: path.stat().st_mtime, reverse=True)
        return {path.parent.name: path.parent for path in latest_first}

    def place_release(self, title: str, reservation: str) -> Path:
        """Return where the release with this reservation goes: always the same place."""
        words = "-".join(re.findall(r"[a-z0-9]+", title.lower()))[:40].strip("-")
        return self.releases / f"{words or 'release'}-{check_reservation(reservation)[:8]}"

    def put_release_away(self, name: str) -> None:
        """Take a release off the list; its files are moved, and nothing is removed."""
        folder = self.list_releases().get(name)
        if folder is not None:
            make_folder(self.put_away)
            folder.rename(self.put_away / name)


VARIABLE = "DISCREET_STUDIO_RECENT"
#: Paths that are kept.
MOST = 12


def find_place(name: str = "studio.json") -> Path | None:
    """Return where a list of paths is kept; ``None`` where it shall not be."""
    if os.environ.get(VARIABLE, "") == "0":
        return None
    state = os.environ.get("XDG_STATE_HOME") or str(Path("~/.local/state").expanduser())
    return Path(state) / "discreet" / name


@dataclass(frozen=True)
class Recent:
    """The list of files that were worked on, the latest first, with settings and never answers.

    An entry has the ``path`` of a file, or the ``name`` of one that a browser sent with a
    ``digest`` of its content; how it is read (``options``), the settings of its calibrations
    (``runs``), and whether it was looked at.
    """

    place: Path | None = field(default_factory=find_place)

    def entries(self) -> list[PlainDict]:
        """Return what is kept; a damaged list is an empty one."""
        with suppress(OSError, JSONDecodeError, UnicodeDecodeError):
            listed = loads(self.place.read_text("utf-8")) if self.place else []
            if isinstance(listed, list):
                entries = [{"path": entry} if isinstance(entry, str) else entry for entry in listed]
                return [one for one in entries if isinstance(one, dict) and key_of(one)][:MOST]
        return []

    def paths(self) -> list[str]:
        """Return the paths."""
        return [entry["path"] for entry in self.entries() if "path" in entry]

    def recall(self, key: str) -> PlainDict:
        """Return what is kept of a file by its path or digest; nothing of a new one."""
        return next((entry for entry in self.entries() if key_of(entry) == key), {})

    def add(self, path: Path | str, *, digest: str = "", **kept: Any) -> None:
        """Put a file in front, with what is kept of it; one with a digest has a name, no path."""
        named = {"name": str(path), "digest": digest} if digest else {"path": str(path)}
        key = key_of(named)
        others = [earlier for earlier in self.entries() if key_of(earlier) != key]
        self._write([{**self.recall(key), **named, **kept}, *others][:MOST])

    def forget(self, key: str = "") -> None:
        """Take out one file, or without a key all of them, and the list itself."""
        left = [entry for entry in self.entries() if key and key_of(entry) != key]
        if left:
            self._write(left)
        elif self.place:
            self.place.unlink(missing_ok=True)

    def _write(self, entries: list[PlainDict]) -> None:
        # A home that cannot be written is no reason to stop: the list is a convenience.
        if self.place:
            with suppress(OSError):
                write_text(self.place, dumps(entries, ensure_ascii=False, indent=1) + "\n")


def key_of(entry: PlainMapping) -> str:
    """Return by what an entry is found: where a file is, or what it holds."""
    key = entry.get("path") or entry.get("digest")
    return key if isinstance(key, str) else ""


def digest_file(path: Path) -> str:
    """Return a digest of a file's content, or of the files of a folder in order."""
    if path.is_dir():
        joined = " ".join(digest_file(one) for one in sorted(path.iterdir()))
        return sha256(joined.encode()).hexdigest()
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


class Example(NamedTuple):
    """Answers to try things with: a name, what they are, their table, and how it is read."""

    name: str
    about: str
    write: Callable[[], str]
    options: PlainMapping


def _write_lsat() -> str:
    answers = lsat()
    rows = answers.store.rows(0, answers.n_persons).tolist()
    return "\n".join([",".join(answers.items), *(",".join(map(str, row)) for row in rows), ""])


_LSAT = mark(
    "A test: right and wrong answers. Section 6 of the Law School Admission Test: 1,000 persons, "
    "5 items."
)
_WELLBEING = mark(
    "A questionnaire: answers from never to always. Twelve questions on well-being, 600 persons, "
    "five categories. Simulated."
)
_TABLE = files("discreet") / "data" / "wellbeing.csv"
#: By the names of their files.
EXAMPLES = {
    "lsat.csv": Example("lsat.csv", _LSAT, _write_lsat, {}),
    "wellbeing.csv": Example("wellbeing.csv", _WELLBEING, _TABLE.read_text, {"group": ["age"]}),
}


EXAMPLES_FOLDER = "examples"


def write_example(example: Example, folder: Path) -> Path:
    """Write an example into the private folder, once; return where it is."""
    examples = folder / EXAMPLES_FOLDER
    examples.mkdir(mode=0o700, exist_ok=True)
    path = examples / example.name
    if not path.exists():
        path.write_text(example.write(), "utf-8")
    return path


# -- the private folder of one run ------------------------------------------------------------

PREFIX = "discreet-studio-"

_BUSY = BadUsage("this folder belongs to a studio that is still running")


@contextmanager
def private_folder() -> Iterator[Path]:
    """Give a new private folder, and remove it with all that is in it."""
    remove_left_behind()
    # The lock lies beside the folder, and is held before there is a folder that others could find.
    handle, lock = tempfile.mkstemp(prefix=f".{PREFIX}", suffix=".lock")
    os.close(handle)
    folder = Path(lock).with_name(Path(lock).stem[1:])
    with hold_lock(Path(lock), _BUSY, remove=True):
        folder.mkdir(PRIVATE_FOLDER)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def remove_left_behind() -> list[Path]:
    """Remove the folders of studios that ended without doing so; return which."""
    temporary_root = Path(tempfile.gettempdir())
    folders = list(temporary_root.glob(f"{PREFIX}*"))
    return [folder for folder in folders if _is_ours(folder) and _remove(folder)]


def _is_ours(folder: Path) -> bool:
    is_owner = not hasattr(os, "getuid") or folder.lstat().st_uid == os.getuid()
    return folder.is_dir() and not folder.is_symlink() and is_owner


def _remove(folder: Path) -> bool:
    try:
        with hold_lock(folder.with_name(f".{folder.name}.lock"), _BUSY, remove=True):
            shutil.rmtree(folder, ignore_errors=True)
    except (BadUsage, OSError):
        return False
    return True
