"""The vault: the noisy values of one release, safe on disk before anything else sees them.

In: a ledger's path and a reservation. Out: a private file beside the ledger that one process at a
time holds. Room for the values is taken before the ledger is charged. The values end with their
hash, so that half of them are as good as none.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from discreet.atomic import hold_lock, make_folder, sync_folder
from discreet.errors import LedgerError
from discreet.place import fill_with_zeros

MAGIC = b"discreet values\n"
SIZE_BYTES, HASH_BYTES = 8, 32
HEAD = len(MAGIC) + SIZE_BYTES + HASH_BYTES


@dataclass(frozen=True)
class Vault:
    """An open vault, held by this process alone."""

    path: Path
    handle: int

    def make_room(self, size: int) -> None:
        """Take room on the disk for so many bytes of values."""
        os.lseek(self.handle, 0, os.SEEK_SET)
        fill_with_zeros(self.handle, HEAD + size)
        sync_folder(self.path.parent)

    def keep(self, parts: Sequence[bytes]) -> None:
        """Write the values; when this returns, they survive a power cut."""
        mark = hashlib.blake2b(digest_size=HASH_BYTES)
        for part in parts:
            mark.update(part)
        size = sum(len(part) for part in parts)
        os.lseek(self.handle, 0, os.SEEK_SET)
        with os.fdopen(os.dup(self.handle), "wb") as file:
            file.write(MAGIC + size.to_bytes(SIZE_BYTES, "little") + mark.digest())
            for part in parts:
                file.write(part)
        os.fsync(self.handle)

    def read(self) -> bytes | None:
        """Return the values, or None where none were kept whole."""
        return _read(self.path)


def find_vault(ledger: Path, reservation: str) -> Path:
    """Return where the values of a release wait for their bundle."""
    return ledger.with_name(f"{ledger.name}.recovery") / reservation


def has_values(path: Path) -> bool:
    """Say whether a vault holds values."""
    return path.exists() and _read(path) is not None


def remove_vault(path: Path) -> None:
    """Remove a vault whose values have arrived, and the folder with the last one."""
    path.unlink(missing_ok=True)
    try:
        path.parent.rmdir()
    except OSError:
        return  # others wait there


@contextmanager
def open_vault(ledger: Path, reservation: str) -> Iterator[Vault]:
    """Hold the vault of a reservation while the block runs."""
    path = find_vault(ledger, reservation)
    busy = LedgerError(
        f"{ledger}: another process is just finishing this release. Wait for it, and look at "
        f"'discreet ledger show {ledger}'."
    )
    with ExitStack() as stack:
        handle = None
        while handle is None:
            make_folder(path.parent)
            # Another release that arrives may remove the folder between our two steps.
            with suppress(FileNotFoundError):
                handle = stack.enter_context(hold_lock(path, busy))
        try:
            yield Vault(path, handle)
        finally:
            if not os.fstat(handle).st_size:
                remove_vault(path)


def _read(path: Path) -> bytes | None:
    content = path.read_bytes()
    start = len(MAGIC) + SIZE_BYTES
    size = int.from_bytes(content[len(MAGIC) : start], "little")
    values = content[HEAD : HEAD + size]
    mark = hashlib.blake2b(values, digest_size=HASH_BYTES).digest()
    is_whole = content.startswith(MAGIC) and len(values) == size and content[start:HEAD] == mark
    return values if is_whole else None
