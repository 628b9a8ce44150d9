"""Winsteps: control files, and the fixed-width data that they describe.

In: a control file (``NI=``, ``ITEM1=``, ``CODES=``, item names up to ``END NAMES``), with its data
below or in the file that ``DATA=`` names. Out: a wide table: a column of persons and one column per
item. Codes that ``CODES=`` does not list are missing, as in Winsteps, and with ``KEY1=`` the others
are right (1) or wrong (0).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from discreet.errors import BadResponses, Remedy
from discreet.tables.paths import read_text
from discreet.tables.remedies import Detected

_SETTING = re.compile(r"^\s*&?\s*([A-Za-z]\w*)\s*=\s*(.*?)\s*(?:;.*)?$")
_ENDS = ("END NAMES", "END LABELS")
_UNKNOWN = ("IREFER", "IVALUE", "IVALUEA", "NEWSCORE", "RESCORE", "FORMAT", "DELIMITER")
"""Settings that give codes another meaning; read only where they change nothing."""


class WinstepsSource:
    """A control file with its data; see :class:`discreet.tables.opener.Source`.

    Attributes
    ----------
    key
        The right answers that ``KEY1=`` names, one sign per item; empty where codes are scores.
    """

    def __init__(self, path: Path, progress: Callable[[int], None] | None = None) -> None:
        self.path, self.name, self._progress = path, str(path), progress
        head, _, body = _split_control(path)
        self._settings = settings = dict(_read_settings(head))
        self._refuse_unknown()
        n_items = self._number("NI")
        labels, rows = _split_names(body, n_items)
        if "DATA" in settings:
            self.path = path.parent / settings["DATA"].strip("\"'")
            rows = [line for line in read_text(self.path).splitlines() if line.strip()]
        self._rows = rows
        items = [labels[n] if n < len(labels) else f"I{n + 1}" for n in range(n_items)]
        repeated = {name for name in items if items.count(name) > 1}
        unique = [f"{n + 1} {name}" if name in repeated else name for n, name in enumerate(items)]
        self.names = ["person", *unique]
        self.key = settings.get("KEY1", "").strip("\"'")

    def _refuse_unknown(self) -> None:
        settings = self._settings
        for name in _UNKNOWN:
            value = settings.get(name, "")
            if name == "IREFER" and len(set(value)) <= 1 and "IVALUE" + value[:1] not in settings:
                continue
            if name in settings:
                raise BadResponses(
                    f"{self.path}: {name}= recodes answers or lays out the file in a way that is "
                    "not read here. Write the recoded answers with Winsteps (Output Files, RFILE=) "
                    "and read that file."
                )

    def _number(self, name: str, default: int | None = None) -> int:
        text = self._settings.get(name, "" if default is None else str(default))
        if not text.isdigit() or not int(text):
            raise BadResponses(
                f"{self.path}: {name}= must be a whole number from 1; found {text!r}. A control "
                "file needs NI= (number of items) and ITEM1= (column of the first answer)."
            )
        return int(text)

    def _read_key(self, width: int) -> list[str]:
        """Return the right answer to every item; empty where codes are scores."""
        key = [sign.strip() for sign in _cut(self.key, width)]
        if self.key and len(key) != len(self.names) - 1:
            raise BadResponses(
                f"{self.path}: KEY1= has {len(key)} right answers for {len(self.names) - 1} items. "
                "Give one for each item, XWIDE= characters wide."
            )
        return key

    def detect(self, columns: Sequence[int], *, has_ids: bool) -> tuple[Detected, ...]:
        """Return whether the control file says which answers are right."""
        del columns, has_ids
        remedy = Remedy("give the release a table of scored answers")
        sentence = f"{self.name}: KEY1= says which answers are right."
        return (Detected("key", sentence, remedy),) if self.key else ()

    def batches(self, columns: Sequence[int]) -> Iterator[list[Any]]:
        """Yield columns as text."""
        width, first = self._number("XWIDE", 1), self._number("ITEM1") - 1
        codes = {code.strip() for code in _cut(self._settings.get("CODES", '"01"'), width)}
        key = self._read_key(width)
        start = self._number("NAME1", 1) - 1
        end = start + self._number("NAMLEN", 30 if start > first else first - start or 30)
        n_items, table = len(self.names) - 1, []
        for line in self._rows:
            cells = [line[first + n * width :][:width].strip() for n in range(n_items)]
            answers = [
                None if cell not in codes else str(int(cell == key[n])) if key else cell
                for n, cell in enumerate(cells)
            ]
            table.append([line[start:end].strip() or None, *answers])
        if self._progress is not None:
            self._progress(self.path.stat().st_size)
        yield [pa.array([row[number] for row in table], pa.string()) for number in columns]

    def place(self, row: int) -> str:
        """Return the file and the line of data."""
        return f"{self.path}, row {row + 1} of the data"


def _split_control(path: Path) -> tuple[str, str, str]:
    head, end, body = read_text(path).partition("&END")
    if not end:
        raise BadResponses(f"{path} is a Winsteps control file without &END. Write it again.")
    return head, end, body.partition("\n")[2]


def _read_settings(head: str) -> Iterator[tuple[str, str]]:
    for line in head.splitlines():
        match = _SETTING.match(line)
        if match and not line.lstrip().startswith(";"):
            yield match[1].upper(), match[2].strip().strip("\"'")


def _split_names(body: str, n_items: int) -> tuple[list[str], list[str]]:
    """Return the names of items and the lines of data behind them."""
    lines = body.splitlines()
    ends = [number for number, line in enumerate(lines) if line.strip().upper() in _ENDS]
    last = ends[0] if ends else min(n_items, len(lines))
    labels = [line.partition(";")[0].strip() for line in lines[:last]]
    return labels, [line for line in lines[last + bool(ends) :] if line.strip()]


def _cut(text: str, width: int) -> list[str]:
    plain = text.strip("\"'")
    return [plain[start : start + width] for start in range(0, len(plain), width)]
