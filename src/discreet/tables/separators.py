"""Separators of a text file, whether its first row holds names, and the order of its rows.

In: the first lines. Out: a delimiter, or an error that names the one to say.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.errors import BadResponses
from discreet.tables.remedies import make_remedy
from discreet.tables.values import BAD, ValueScoring, score_value, show
from discreet.types import FloatArray, Int64Array

if TYPE_CHECKING:
    from discreet.tables.opener import RowPlaces

DELIMITERS = {",": "a comma", "\t": "a tab", ";": "a semicolon", "|": "a pipe", " ": "a space"}
"""Recognised by themselves, the likeliest first."""

_SAMPLE = 6
"""Lines looked at."""
_DECIMAL_COMMA = re.compile(r"(?<=[0-9]),(?=[0-9])")
_RARE = re.compile(r"[:~^#&*!/\\]")
_LETTER = re.compile(r"[A-Za-z]")
_NUMBER = re.compile(r"[0-9]+(\.0)?")
_SEP_LINE = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
"""With this first line Excel is told what parts the fields."""


def name_delimiter(delimiter: str) -> str:
    """Return a delimiter in words."""
    return DELIMITERS.get(delimiter, repr(delimiter))


def declared_delimiter(text: str, path: Path) -> str:
    """Return the delimiter that the rows do not decide on: by the name, a first line, or a comma.

    Files called .tsv have tabs; a first line such as ``sep=;`` names the delimiter.
    """
    if path.name.lower().removesuffix(".gz").endswith((".tsv", ".tab")):
        return "\t"
    match = _SEP_LINE.fullmatch(_first_line(text))
    return match[1] if match else ","


def _first_line(text: str) -> str:
    """Return the first line that is not blank."""
    match = re.search(r"\S[^\r\n]*", text)
    return "" if match is None else match[0].strip()


def find_delimiter(text: str, path: Path) -> str:
    """Return the delimiter that the first lines of a file agree on."""
    declared = declared_delimiter(text, path)
    if declared != "," or _SEP_LINE.fullmatch(_first_line(text)):
        return declared
    lines = [line for line in islice(_whole_lines(text), _SAMPLE) if line.strip()]
    bare = _without_quotes(lines[0])
    if any(sign in bare for sign in "\t;|"):
        bare = _DECIMAL_COMMA.sub("", bare)
    candidates = [sign for sign in (",", "\t", ";", "|") if sign in bare]
    if candidates:
        return max(candidates, key=lambda sign: (_agree(lines, sign), bare.count(sign)))
    return _look_closer(lines, path)


def _look_closer(lines: Sequence[str], path: Path) -> str:
    """Return a space where it parts the fields; refuse other signs until they are named."""
    bare = [_without_quotes(line.strip()) for line in lines]
    if " " in lines[0].strip() and len(lines) > 1:
        fields = csv.reader([line.strip() for line in lines], delimiter=" ")
        if _agree(lines, " ") and all(field for record in fields for field in record):
            return " "
        if len({len(line.split()) for line in bare}) == 1:
            raise BadResponses(
                f"{path}: fields seem to be parted by several blanks at a time. Put one delimiter "
                "between them: a comma, semicolon, tab, pipe or a single space."
            )
    rare = sorted({sign for sign in _RARE.findall(bare[0]) if _agree(lines, sign)})
    if rare and len(lines) > 1:
        raise BadResponses(
            f"{path} has one column, '{bare[0]}', because it has no comma, semicolon, tab, pipe or "
            f"space. If {rare[0]!r} parts its fields, say delimiter={rare[0]!r} "
            f"(--delimiter '{rare[0]}')."
        ).offering(make_remedy(f"{rare[0]} parts the fields:", {"delimiter": rare[0]}))
    return ","


def _whole_lines(text: str) -> list[str]:
    """Return lines of the head; the last one may be cut off and is left out of several."""
    lines = list(islice(io.StringIO(text, newline=""), _SAMPLE + 1))
    return lines[:-1] if len(lines) > 2 and not lines[-1].endswith(("\n", "\r")) else lines


def _without_quotes(line: str) -> str:
    return "".join(line.split('"')[::2])


def _agree(lines: Sequence[str], delimiter: str) -> bool:
    """Say whether lines have as many fields as the first, or each one more (R's row names)."""
    try:
        records = list(csv.reader([line.rstrip("\r\n") for line in lines], delimiter=delimiter))
    except csv.Error:
        return False
    counts = {len(record) for record in records[1:]}
    return len(records[0]) > 1 and counts in (set(), {len(records[0])}, {len(records[0]) + 1})


def has_row_names(names: Sequence[str], records: Sequence[Sequence[str]]) -> bool:
    """Say whether rows begin with a name that the header lacks, as R's ``write.table`` does it."""
    firsts = {record[0] for record in records if record}
    return (
        bool(records)
        and all(len(record) == len(names) + 1 and record[-1].strip() for record in records)
        and len(firsts) == len(records)
    )


def is_sep_line(record: Sequence[str]) -> bool:
    """Say whether a record is the line that tells Excel about the delimiter."""
    return record[0].strip().lower() == "sep=" or bool(_SEP_LINE.fullmatch(record[0].strip()))


def refuse_answers_as_names(names: Sequence[str], layout: str | None, location: str) -> None:
    """Refuse a first row that holds answers: one person or answer would be lost as names."""
    if not (is_wide_row(names) or (layout != "wide" and is_long_row(names))):
        return
    listed = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
    raise BadResponses(
        f"{location}: the first row ({listed}) looks like answers, not like column names, and "
        "would be lost. If the file has no row of names, say header=False (--no-header): its "
        "columns are then called 1, 2, 3, ...; for a long table add layout='long' (--layout long), "
        "for a column of persons person='1' (--person 1)."
    ).offering(make_remedy("the file has no row of names:", {"header": False}))


def is_wide_row(names: Sequence[str]) -> bool:
    """Say whether names are 0 and 1, or letters, and repeat: names of items differ."""
    parts = [names, names[1:]] if len(names) > 2 else [names]
    if any(_is_answers(part) and _repeats(part) for part in parts):
        return True
    scored = all(score_value(name, ValueScoring()) != BAD for name in names[1:])
    return scored and len(names) > 2 and bool(_NUMBER.fullmatch(names[0]))


def _is_answers(names: Sequence[str]) -> bool:
    scored = all(score_value(name, ValueScoring()) != BAD for name in names)
    return scored or all(not name or _LETTER.fullmatch(name) for name in names)


def _repeats(names: Sequence[str]) -> bool:
    filled = [name for name in names if name]
    return len(set(filled)) < len(filled)


def is_long_row(names: Sequence[str]) -> bool:
    """Say whether three names are a person, an item and a 0 or 1."""
    return len(names) == 3 and names[2] in ("0", "1") and not _NUMBER.fullmatch(names[1])


_STAMP = pa.timestamp("us")
_ZONED = pa.timestamp("us", "UTC")


class OrderKeys:
    """The keys of a column as it comes in: all of them numbers, or all of them dates."""

    def __init__(self) -> None:
        self._kind = ""
        self._keys: list[FloatArray] = []

    def add(self, column: Any, name: str, rows: RowPlaces) -> None:
        """Take a batch; stop at the first row that has no place in the order."""
        self._keys.append(self.read(column, name, rows))

    def read(self, column: Any, name: str, rows: RowPlaces) -> FloatArray:
        """Return the keys of a batch."""
        values = _undress(column)
        kind, keys = _find_keys(values)
        bad = np.isnan(keys[:, 0])
        if not kind or bad.any():
            row = int(np.argmax(bad)) if kind else _find_odd(values)
            raise _refuse(rows.place(rows.n_rows + row), name, values[row].as_py())
        if self._kind not in ("", kind):
            raise BadResponses(
                f"{rows.place(rows.n_rows)}, column '{name}': found {kind} after {self._kind}, so "
                "it is not clear which answer is the last. Write the column in one way."
            )
        self._kind = kind
        return keys

    def finish(self) -> FloatArray | None:
        """Return the keys of all rows; None where no column was read."""
        return np.concatenate(self._keys) if self._keys else None


def sort_keys(keys: Int64Array, when: FloatArray | None) -> Int64Array:
    """Return the entries by key, and of equal keys by time, those of one time as they came."""
    if when is None or not when.shape[1]:
        return np.argsort(keys, kind="stable")
    return np.lexsort((when[:, 1], when[:, 0], keys))


def no_order(entries: int) -> FloatArray:
    """Return the keys of entries that have none but their place."""
    return np.zeros((entries, 0))


def _undress(column: Any) -> Any:
    """Return a column without its dictionary, in text without blanks around it."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if _is_text(column.type):
        return pc.utf8_trim_whitespace(column.cast(pa.large_string()))
    return column


def _is_text(kind: Any) -> bool:
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(test(kind) for test in tests)


def _find_keys(values: Any) -> tuple[str, FloatArray]:
    """Return what the values are, and their keys; no word where they have no order."""
    kind = values.type
    if pa.types.is_integer(kind):
        return "numbers", _split_whole(values)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "numbers", _widen(values)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        stamps = values.cast(pa.timestamp("us", getattr(kind, "tz", None)), safe=False)
        return "dates", _widen(stamps.cast(pa.int64()))
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        return "times", _widen(values.cast(pa.int64()))
    return _parse(values) if _is_text(kind) else ("", np.full((len(values), 2), np.nan))


def _parse(words: Any) -> tuple[str, FloatArray]:
    for kind in (pa.int64(), pa.float64(), _STAMP, _ZONED):
        try:
            kind_name, keys = _find_keys(words.cast(kind))
        except pa.ArrowInvalid:
            continue
        if kind == pa.float64():
            _split_texts(words, keys)
        return kind_name, keys
    return "", np.full((len(words), 2), np.nan)


def _widen(values: Any) -> FloatArray:
    doubles = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.stack([doubles, np.zeros(len(doubles))], axis=1)


def _split_whole(values: Any) -> FloatArray:
    """Return whole numbers as the nearest double and the rest, which no two of them share."""
    keys = _widen(values)
    if np.nanmax(np.abs(keys[:, 0]), initial=0.0) > 2.0**53:
        exact = values.fill_null(0).to_pylist()
        floats = np.nan_to_num(keys[:, 0]).tolist()
        keys[:, 1] = [number - int(double) for number, double in zip(exact, floats, strict=True)]
    return keys


def _split_texts(words: Any, keys: FloatArray) -> None:
    """Keep whole numbers beyond 2^53 exact beside others: one decimal changes no other order."""
    large = np.isfinite(keys[:, 0]) & (np.abs(keys[:, 0]) > 2.0**53)
    for row in np.flatnonzero(large).tolist():
        text = words[row].as_py()
        if text.lstrip("+-").isdigit():
            keys[row, 1] = int(text) - int(keys[row, 0])


def _find_odd(values: Any) -> int:
    """Return the first row that is neither a number nor a date."""
    kinds: Sequence[str] = [_find_keys(values.slice(row, 1))[0] for row in range(len(values))]
    return next((row for row, kind in enumerate(kinds) if not kind or kind != kinds[0]), 0)


def _refuse(location: str, name: str, value: object) -> BadResponses:
    spelling = "nothing" if value is None else show(value)
    return BadResponses(
        f"{location}, column '{name}': found {spelling}, which has no place in an order. order_by= "
        "(--order-by) needs numbers in every row, or dates and times as 2024-05-31 or "
        "2024-05-31T09:30:00."
    )
