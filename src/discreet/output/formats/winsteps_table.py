"""The tables of Winsteps: a heading, then one line per item or person.

In: text as Winsteps writes it (columns, commas or tabs; HLINES=Y or N). Out: one dictionary per
line, by the column labels below; and the way back. Sources: the manual's pages "IFILE= item
output file" and "PFILE= person output file" (winsteps.com/winman/ifile.htm, pfile.htm), which
name the fields and their order; labels differ between versions, hence the other names.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from math import isnan
from os import PathLike
from pathlib import Path

from discreet.errors import BadResponses
from discreet.tables.paths import read_text

Row = dict[str, str]

OTHER_NAMES = {
    "ST": "STATUS",
    "STTS": "STATUS",
    "MODLSE": "ERROR",
    "REALSE": "ERROR",
    "SE": "ERROR",
    "S.E.": "ERROR",
    "INMSQ": "IN.MSQ",
    "IN.MS": "IN.MSQ",
    "INZSTD": "IN.ZSTD",
    "IN.ZST": "IN.ZSTD",
    "INZST": "IN.ZSTD",
    "OUTMSQ": "OUT.MSQ",
    "OUT.MS": "OUT.MSQ",
    "OUTZST": "OUT.ZSTD",
    "OUTZSTD": "OUT.ZSTD",
    "OUT.ZST": "OUT.ZSTD",
    "DISPLACE": "DISPL",
    "PTME": "PTMA",
    "PTMEA": "PTMA",
    "PTBS": "PTBSE",
}
"""Labels that mean the same in other versions of Winsteps."""

STANDARD = (
    *("ENTRY", "MEASURE", "STATUS", "COUNT", "SCORE", "ERROR", "IN.MSQ", "IN.ZSTD"),
    *("OUT.MSQ", "OUT.ZSTD", "DISPL", "PTMA", "WEIGHT", "OBSMA", "EXPMA", "NAME"),
)
"""The standard field selection in its order, for files without a heading."""

FIT_LABELS = ("IN.MSQ", "IN.ZSTD", "OUT.MSQ", "OUT.ZSTD", "DISPL", "PTMA", "WEIGHT")
"""Columns that may be added to the ones that are always written."""

WIDTHS = {"ENTRY": 6, "MEASURE": 8, "STATUS": 3, "COUNT": 8, "SCORE": 9}
"""As in the manual, the others 7; a column with longer numbers is as wide as it needs."""
WRITTEN_AS = {"STATUS": "ST", "ERROR": "MODLSE"}
COMMENT = ";"


def read_table(path: str | PathLike[str]) -> list[Row]:
    """Read the lines of an item or person file; lines that are commented out count too.

    Winsteps puts a semicolon before items and persons without an ordinary measure (extreme,
    deleted, no responses), so that it skips them when the file comes back as anchors.
    """
    place = Path(path)
    lines = [line for line in read_text(place).splitlines() if line.strip(" ;\t")]
    labels: Sequence[str] = STANDARD
    separator = _separator(lines)
    rows = []
    for number, line in enumerate(lines, start=1):
        fields = _split(line, separator, len(labels))
        if fields and _is_entry(fields[0]):
            rows.append(_row(place, number, fields, labels))
        elif fields and fields[0].upper() == "ENTRY":
            labels = _labels(_split(line, separator, None))
        elif rows and (not line.startswith(COMMENT) or fields[0][:1].isdigit()):
            raise BadResponses(
                f"{place}, line {number} (blank lines not counted) does not begin with an entry "
                f"number: '{line.strip()[:40]}'; do two columns run into each other?"
            )
    if not rows:
        raise BadResponses(
            f"{place}: no line begins with an entry number, so this is no IFILE= or PFILE= of "
            "Winsteps; write one with its Output Files menu"
        )
    return rows


def _separator(lines: list[str]) -> str | None:
    heads = [line for line in lines if line.strip(' ;"\t').upper().startswith("ENTRY")] or lines
    first = heads[0] if heads else ""
    return "\t" if "\t" in first else "," if "," in first else None


def _split(line: str, separator: str | None, fields: int | None) -> list[str]:
    text = line.lstrip(" ").removeprefix(COMMENT)
    if separator is not None:
        return [field.strip() for field in next(csv.reader([text], delimiter=separator))]
    # The name comes last and may hold blanks.
    return [field.strip() for field in text.split(None, -1 if fields is None else fields - 1)]


def _is_entry(field: str) -> bool:
    return field.lstrip("-").isdigit()


def _labels(fields: list[str]) -> list[str]:
    upper = [field.strip('"').upper() for field in fields]
    return [OTHER_NAMES.get(name, name) for name in upper]


def _row(place: Path, number: int, fields: list[str], labels: Sequence[str]) -> Row:
    if len(fields) < len(labels) - 1:
        raise BadResponses(
            f"{place}, line {number} (blank lines not counted) has {len(fields)} fields, and the "
            f"heading has {len(labels)}: {' '.join(labels)}"
        )
    return dict(zip(labels, [*fields, ""], strict=False))


def format_table(
    title: str,
    columns: Mapping[str, Sequence[float | int | str]],
    *,
    decimals: int,
    separator: str | None,
) -> str:
    """Write the columns in the given order; ``separator`` None writes columns by position."""
    labels = [WRITTEN_AS.get(name, name) for name in columns]
    rows = list(zip(*columns.values(), strict=True))
    texts = [
        [_cell(name, value, decimals) for name, value in zip(columns, row, strict=True)]
        for row in rows
    ]
    if separator is not None:
        out = io.StringIO()
        writer = csv.writer(out, delimiter=separator, lineterminator="\n")
        writer.writerow(labels)
        writer.writerows(texts)
        return out.getvalue()
    status = list(columns).index("STATUS")
    lines = _align(list(columns), [labels, *texts])
    marks = [COMMENT, *(" " if int(text[status]) > 0 else COMMENT for text in texts)]
    marked = [mark + line[1:] for mark, line in zip(marks, lines, strict=True)]
    return "\n".join([f"{COMMENT} {title}", *marked]) + "\n"


def _align(names: list[str], rows: list[list[str]]) -> list[str]:
    """Pad every field, with at least one blank before it; the name comes last as it is."""
    longest = [max(map(len, column)) + 1 for column in zip(*rows, strict=True)]
    widths = [max(WIDTHS.get(name, 7), length) for name, length in zip(names, longest, strict=True)]
    return [
        "".join(field.rjust(width) for field, width in zip(row[:-1], widths, strict=False))
        + f" {row[-1]}"
        for row in rows
    ]


def _cell(name: str, value: float | int | str, decimals: int) -> str:
    if isinstance(value, str):
        # A line break inside a name would make two lines of it.
        return " ".join(value.split()) if name == "NAME" else value
    if name in ("ENTRY", "STATUS"):
        return str(int(value))
    if isnan(value):
        return "."
    return f"{value:.{1 if name in ('COUNT', 'SCORE') else decimals}f}"
