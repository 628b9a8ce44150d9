"""Read whatever the library wrote.

In: a file or a folder. Out: a result of any kind, counts, a bank, a ledger, a release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import TypeVar, overload

import discreet
from discreet.api.banks import read_bank
from discreet.atomic import CALIBRATION_FILE, ESTIMATE_FILE
from discreet.counts import PairCounts
from discreet.errors import BadUsage
from discreet.privacy.ledger import Ledger
from discreet.publishing.verification import read_published
from discreet.saving import make_result, read_saved

Kind = TypeVar("Kind")


@overload
def load(path: str | PathLike[str]) -> object: ...
@overload
def load(path: str | PathLike[str], kind: type[Kind]) -> Kind: ...
def load(path: str | PathLike[str], kind: type[object] = object) -> object:
    """Read any result that the library wrote.

    A result of any kind that was saved, pair counts, a bank, a ledger, or the folder of a release
    or of ``discreet fit --out``.

    Parameters
    ----------
    path
        The file or the folder.
    kind
        The class that is expected, such as :class:`discreet.Estimate`; another one is refused.

    Examples
    --------
    >>> import tempfile, discreet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     discreet.fit(discreet.datasets.lsat()).save(f"{folder}/lsat.json")
    ...     load(f"{folder}/lsat.json")
    <Estimate: 5 items, 1,000 persons, conditional, confidential>
    """
    result = _read_folder(Path(path)) if Path(path).is_dir() else _read_file(Path(path))
    if not isinstance(result, kind):
        raise BadUsage(
            f"{path} holds a result of the kind {type(result).__name__}, not {kind.__name__}"
        )
    return result


def _read_folder(folder: Path) -> object:
    for name in (CALIBRATION_FILE, ESTIMATE_FILE):
        if (folder / name).is_file():
            return _read_result(folder / name)
    return read_published(folder)


def _read_result(path: Path) -> object:
    """Return a saved result, of whatever kind it is."""
    stored = read_saved(path)
    for name in _name_kinds(stored):
        for module in (discreet, discreet.analysis, discreet.adaptive):
            if name in module.__all__:
                getattr(module, name)  # loads the module that holds it
    return make_result(path, stored)


def _name_kinds(stored: object) -> Iterator[str]:
    """Yield the names in a document, the kinds of its parts among them."""
    if isinstance(stored, dict):
        yield from stored
        stored = [part for name, part in stored.items() if name != "array"]
    for part in stored if isinstance(stored, list) else ():
        yield from _name_kinds(part)


#: How a file begins, and who reads it.
_READERS: dict[bytes, Callable[[Path], object]] = {
    b"{": _read_result,
    b"PK": PairCounts.load,
    b"SQLite format 3": Ledger.open,
    b"# {": read_bank,
}


def _read_file(path: Path) -> object:
    try:
        with path.open("rb") as file:
            start = file.read(16).lstrip()
    except OSError as error:
        raise BadUsage(f"{path} cannot be read: {error.strerror}. Check the path.") from error
    for mark, read in _READERS.items():
        if start.startswith(mark):
            return read(path)
    raise BadUsage(
        f"{path} is no file that discreet wrote. Answers are read with "
        "discreet.read_responses(path), or discreet.fit(path) at once."
    )
