"""Tables of every kind of source in which the rows of one id may hold anything.

In: a kind of source, a table, and whoever's rows are replaced. Out: the source, opened as a release
opens it, and a failure where anything but this one person's answers has changed.
"""

from __future__ import annotations

import csv
import io
import json
import math
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from discreet import Budget
from discreet.answers.comparisons import Comparisons
from discreet.answers.protocol import Job
from discreet.answers.responses import Responses
from discreet.errors import DiscreetError
from discreet.privacy.mechanisms.comparisons import WinPairs
from discreet.privacy.mechanisms.pairs import DensePairs
from discreet.publishing.delivery import OPENERS, DataSource, DeliveryTerms, release_spec
from discreet.publishing.spec import make_spec
from discreet.readers.streamed import StreamedAnswers
from spreadsheet_files import write_ods, write_xlsx

BUDGET = Budget(1.0, 1e-6)
Cells = tuple[Any, ...]

TEXTS = (
    *("", " ", "0", "1", "2", "3", "4", "9", "99", "A", "b", "B", "x", "ä", "true", "FALSE"),
    *("NA", ".", "null", "nan", "inf", "1.0", "0.50", ".5", "5e-1", "0,5", "1,0", "+1", "01"),
    *("-1", "-0", "2.5", "1e5", "1e400", "-1e900000", str(2**53 + 1), str(2**63), str(2**64)),
    *("1" * 60, "1.0000000000000000001", "1700000000000000001.5", "2024-05-01", "12:30"),
    *("2024-05-01T10:00:00", "2024-05-01T10:00:00+02:00", "\u2028", "1\u2028", "a\u2028b"),
    *("\x0b", "a\x0bb", "\x0c1", "\x85", "1\u2029", "\x1c1", "\r", "a\rb", "\x00", "1\x00"),
    *("\ufeff", "\ufeff1", "\u200b1", '"', '""', '"x', 'x"', '"1"', "'1'", ",", ";", "\t", "|"),
    *("a,b", "a;b", "sep=;", "sep=,", "END NAMES", "END LABELS", "&END", "NI=2", ";", "#N/A"),
    *("=1+1", "id", "item", "q1", "q2", "response", "KEY", "Total", "left", "tie", "ash", "elm"),
)
"""What a cell of text may hold."""
CONTROL = "\nNI=2\nITEM1=5\nNAME1=1\nNAMLEN=3\nCODES=01\n&END\nq1\nq2\nEND NAMES\na   10\n"
LINES = ("a\nb", "\n", "1\n", 'a"\n"b', "\r\n", "x\r\ny", CONTROL, '\n{"doc_id": 1}\n', "\n# x\n")
"""Texts that go on in the next line."""
NUMBERS = (
    *(0, 1, 2, 3, 4, 5, 9, -1, 10, 99, 1.0, 0.0, 2.5, 0.5, -1.0, -0.0, 1e16, 1e300),
    *(0.1 + 0.2, 1 - 1e-16, 2**24 + 1, 2**31, 2**53 - 1, 2**53, 2**53 + 1, 2**62),
)
OBJECTS = (
    *(True, False, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**30, math.nan, math.inf, 1 + 0j),
    *map(Decimal, ("0", "1", "1.0", "1.5", "0.50", "1E+2", "NaN", "Infinity", "1E+900000")),
    *(Fraction(1, 2), date(1970, 1, 2), date(2024, 5, 1), datetime(2024, 5, 1, 10), time(12, 30)),
    *(datetime(2024, 5, 1, 10, tzinfo=timezone(timedelta(hours=2))), timedelta(days=1)),
    *(b"1", b"\xff", [1], (1,), {"q1": 1}, set(), np.int64(1), np.float32(0.1), np.float32(1)),
    *(np.bool_(True), np.str_("1"), np.datetime64("2024-05-01"), np.datetime64("NaT")),
    *(np.timedelta64(1, "D"), pd.Timestamp(0), pd.NaT, pd.NA, pd.Timedelta(days=1), "\ud800"),
)
"""What a cell may hold where columns declare no type."""
ANYTHING = ((None,), TEXTS, LINES, NUMBERS, OBJECTS)


# -- tables --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """A table, how a release reads it, and what it must read.

    Attributes
    ----------
    names, types
        The columns; ``"text"``, ``"whole"`` or ``"number"``, where a kind of source has types.
    rows, expected
        By id, the rows, and the answers to the listed items.
    items, lowest, words
        What the release is told.
    has_ids
        Whether the first column holds ids; otherwise every row is a person.
    persons
        The number of persons, where it is stated.
    data
        ``"answers"`` or ``"comparisons"``.
    groups
        The column of groups and their names; everybody's is expected behind the answers.
    """

    names: Cells
    types: Cells
    rows: Mapping[str, list[Cells]]
    expected: Mapping[str, Any]
    items: Mapping[str, int] = field(default_factory=lambda: {"q1": 1, "q2": 1})
    lowest: int = 0
    words: Mapping[str, Any] = field(default_factory=dict)
    has_ids: bool = True
    persons: int | None = None
    data: str = "answers"
    groups: Mapping[str, Cells] = field(default_factory=dict)

    @property
    def told(self):
        """What the release is told of the items."""
        items = [*self.items] if self.data == "comparisons" else self.items
        told = {"items": items, "kind": self.data, "lowest": self.lowest, "persons": self.persons}
        told |= {"max_answers": 1} if "unit" in self.words else {}
        return told | ({"groups": self.groups} if self.groups else {})

    @property
    def public(self):
        """What is public about the release."""
        return make_spec(BUDGET, **self.told).public

    def unnamed(self):
        """Return the table without a row of names: columns are called by their numbers."""
        number = {name: str(index) for index, name in enumerate(self.names, 1)}
        words = {name: _rename(value, number) for name, value in self.words.items()}
        roles = ("judge", "winner", "loser") if self.data == "comparisons" else ("person",)
        if "layout" in words:
            roles = ("person", "item", "response")
        elif self.data == "comparisons":
            roles = self.names if "unit" in words else ("judge", *self.names[1:])
        else:
            roles = ("person",) if self.has_ids else ()
        words |= dict(zip(roles, number.values(), strict=False)) | {"header": False}
        items = self.items
        if set(items) <= set(number):
            items = {number[name]: steps for name, steps in items.items()}
        groups = {number[name]: named for name, named in self.groups.items()}
        return replace(self, words=words, items=items, groups=groups)


def _rename(value, names):
    """Return a keyword of a reader with other names of columns."""
    if isinstance(value, Mapping):
        return {names[name]: one for name, one in value.items()}
    return names.get(value, value) if isinstance(value, str) else value


def by_person(*answers):
    return dict(zip("abcd", answers, strict=True))


FORGIVING = {"invalid": "missing", "repeats": "first"}
RIGHT = by_person((1, 0), (0, 1), (1, 1), (0, 0))
WIDE = Table(
    ("id", "q1", "q2", "note"),
    ("text", "number", "number", "text"),
    {who: [(who, *own, "x")] for who, own in RIGHT.items()},
    RIGHT,
    words=FORGIVING,
)
STRICT = replace(WIDE, words={})
ROWS = Table(
    ("q1", "q2", "q3"),
    ("number", "number", "text"),
    {who: [(*own, "x")] for who, own in RIGHT.items()},
    RIGHT,
    words={"invalid": "missing"},
    has_ids=False,
)
STEPS = Table(
    ("id", "q1", "q2"),
    ("text", "number", "number"),
    by_person([("a", 1, 4)], [("b", 2, 3)], [("c", 4, 2)], [("d", 9, 1)]),
    by_person((3, 3), (2, 2), (0, 1), (-1, 0)),
    items={"q1": 3, "q2": 3},
    lowest=1,
    words={**FORGIVING, "reverse": "q1", "missing": [9], "repeats": "last"},
)
LOW = replace(
    STEPS,
    rows={who: [(who, *own)] for who, own in RIGHT.items()},
    expected={who: (3 - first, second) for who, (first, second) in RIGHT.items()},
    lowest=0,
    words={**FORGIVING, "reverse": "q1"},
)
SPARSE = replace(
    ROWS,
    rows=by_person([(None, 1, "x")], [(1, 0, "x")], [(None, 1, "x")], [(None, 0, "x")]),
    expected=by_person((-1, 1), (1, 0), (-1, 1), (-1, 0)),
)
MATRIX = replace(
    STEPS,
    names=("0", "1"),
    types=("number", "number"),
    rows={who: [row[0][1:]] for who, row in STEPS.rows.items()},
    items={"0": 3, "1": 3},
    words={"reverse": ["0"], "missing": [9]},
    has_ids=False,
)
BINARY = replace(
    MATRIX,
    rows={who: [own] for who, own in RIGHT.items()},
    expected=RIGHT,
    items={"0": 1, "1": 1},
    lowest=0,
    words={},
)
LOW_MATRIX = replace(
    MATRIX,
    rows={who: [own] for who, own in RIGHT.items()},
    expected=LOW.expected,
    lowest=0,
    words={"reverse": ["0"]},
)
MATRICES = (MATRIX, LOW_MATRIX, BINARY)
SCORES = replace(
    WIDE,
    rows={who: [(who, *(2 + one for one in own), "x")] for who, own in RIGHT.items()},
    words={**FORGIVING, "at_least": 2.5},
)
LONG = Table(
    ("person", "item", "response"),
    ("whole", "whole", "number"),
    {
        who: [(number, item, own[item - 1]) for item in (1, 2)]
        for number, (who, own) in enumerate(RIGHT.items(), 7)
    },
    RIGHT,
    items={"1": 1, "2": 1},
    words={**FORGIVING, "layout": "long"},
)
KEYED = replace(
    WIDE,
    types=("text", "text", "number", "text"),
    rows={
        who: [(who, "B" if first else "A", 2 if second else 1, "x")]
        for who, (first, second) in RIGHT.items()
    },
    words={"repeats": "first", "key": {"q1": "b", "q2": ["2", "2.5"]}},
)
TIMED = replace(
    LONG,
    names=("person", "item", "response", "when"),
    types=("whole", "whole", "number", "whole"),
    rows={
        who: [
            *((*row, 1700000002) for row in rows),
            *((*row[:2], 1 - row[2], 1700000001) for row in rows),
        ]
        for who, rows in LONG.rows.items()
    },
    words={**FORGIVING, "layout": "long", "repeats": "last", "order_by": "when"},
)
WON = by_person([("ash", "elm")], [("elm", "ash"), ("oak", "ash")], [("oak", "elm")], [])
COMPARED = Table(
    ("judge", "winner", "loser"),
    ("text", "text", "text"),
    {who: [(who, *pair) for pair in pairs] or [(who, "fir", "ash")] for who, pairs in WON.items()},
    WON,
    items={"ash": 1, "elm": 1, "oak": 1},
    words={"repeats": "first"},
    data="comparisons",
)
CHOSEN = replace(
    COMPARED,
    names=("judge", "left", "right", "outcome"),
    types=("text", "text", "text", "text"),
    rows={
        who: [(*row, "left") if who < "c" else (row[0], row[2], row[1], "b") for row in rows]
        for who, rows in COMPARED.rows.items()
    },
    words={"repeats": "first", "ties": "drop"},
)  # fmt: skip
VOTED = replace(
    COMPARED,
    names=("winner", "loser"),
    types=("text", "text"),
    rows=by_person([("ash", "elm")], [("elm", "ash")], [("oak", "elm")], [("ash", "oak")]),
    expected=by_person([("ash", "elm")], [("elm", "ash")], [("oak", "elm")], [("ash", "oak")]),
    words={"unit": "vote"},
    has_ids=False,
)


def group(table, kind, *names):
    """Return a table with the groups of its persons in a further column."""
    own = dict(zip("abcd", names, strict=True))
    return replace(
        table,
        names=(*table.names, "class"),
        types=(*table.types, kind),
        rows={who: [(*row, own[who]) for row in rows] for who, rows in table.rows.items()},
        expected={who: (*row, str(own[who])) for who, row in table.expected.items()},
        groups={"class": (str(names[0]), str(names[1]))},
    )


GROUPED = (
    group(WIDE, "whole", 1, 2, 1, 2),
    group(ROWS, "number", 1, 2, 1, 2),
    group(LONG, "text", "1", "x", "1", "x"),
)
ANSWERED = (WIDE, STRICT, STEPS, LOW, SCORES, LONG, KEYED, TIMED, ROWS, SPARSE)
JUDGED = (COMPARED, CHOSEN, VOTED)
#: Right and wrong answers for places whose rows have no order.
COUNTED = tuple(
    replace(one, words={k: v for k, v in one.words.items() if k != "repeats" or one is TIMED})
    for one in (WIDE, SCORES, LONG, KEYED, TIMED, ROWS, SPARSE)
)
TABLES = (*ANSWERED, *JUDGED, *GROUPED)


# -- kinds of sources ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """A kind of source.

    Attributes
    ----------
    write
        Makes a source in a folder of a table and its rows, in order.
    tables
        The tables that it can hold.
    cells
        What a cell of each type may hold, in groups that are as likely as each other.
    styles
        How the numbers of the other persons may be given.
    is_raw
        Whether cells are written as they are, quotation marks included.
    trials
        How many tables a long run makes.
    """

    write: Callable[[Path, Table, list[Cells]], Any]
    tables: tuple[Table, ...] = TABLES
    cells: Mapping[str, tuple[Cells, ...]] = field(default_factory=dict)
    styles: tuple[Callable[[Any], Any], ...] = (lambda cell: cell,)
    engine: str = "auto"
    is_raw: bool = False
    trials: int = 2000


def untyped(*cells):
    """Return what cells of any type hold, where columns declare none."""
    return dict.fromkeys(("text", "whole", "number"), cells)


def spell(cell):
    """Return a cell as text."""
    return "" if cell is None else str(cell)


def quote(text, delimiter):
    """Return a text as a program writes it that quotes what needs it."""
    line = io.StringIO()
    csv.writer(line, delimiter=delimiter, lineterminator="").writerow([text, "x"])
    return line.getvalue()[:-2]


def write_text(ending=".csv", delimiter=",", *, names=True, quoted=True):
    def write(folder, table, lines):
        path = folder / f"answers{ending}"
        head = [table.names] if names else []
        rows = [[spell(cell) for cell in line] for line in (*head, *lines)]
        if quoted:
            rows = [[quote(cell, delimiter) for cell in row] for row in rows]
        text = "".join(f"{delimiter.join(row)}\n" for row in rows)
        path.write_bytes(text.encode())
        return path

    return write


def write_sheet(write_book, ending, *, names=True):
    def write(folder, table, lines):
        head = [table.names] if names else []
        rows = [[clean_cell(cell) for cell in line] for line in (*head, *lines)]
        return write_book(folder / f"answers{ending}", {"one": rows})

    return write


def clean_cell(cell):
    """Return a cell as a sheet can hold it: XML has no control characters."""
    if isinstance(cell, str):
        kept = "".join(sign for sign in cell if sign >= " " or sign in "\t\n")
        return kept or None
    return cell


def write_labelled(ending, writer):
    def write(folder, table, lines):
        import pyreadstat

        path = folder / f"answers{ending}"
        columns = {
            name: [spell(row[n]) if kind == "text" else as_float(row[n]) for row in lines]
            for n, (name, kind) in enumerate(zip(table.names, table.types, strict=True))
        }
        getattr(pyreadstat, writer)(pd.DataFrame(columns), path)
        return path

    return write


def as_float(cell):
    return None if cell is None else float(cell)


ARROW = {"text": pa.string(), "whole": pa.int64(), "number": pa.float64()}


def make_arrow(_, table, lines):
    arrays = []
    for number, kind in enumerate(table.types):
        cells = [line[number] for line in lines]
        cells = list(map(as_float, cells)) if kind == "number" else cells
        arrays.append(pa.array(cells, ARROW[kind]))
    return pa.table(arrays, names=[*table.names])


def write_parquet(folder, table, lines):
    path = folder / "answers.parquet"
    pq.write_table(make_arrow(folder, table, lines), path)
    return path


def make_decimals(_, table, lines):
    """Make an Arrow table whose numbers are decimals."""
    kinds = {"text": pa.string(), "whole": pa.decimal128(38, 4), "number": pa.decimal128(38, 4)}
    arrays = []
    for number, kind in enumerate(table.types):
        cells = [line[number] for line in lines]
        if kind != "text":
            cells = [None if one is None else Decimal(str(one)) for one in cells]
        arrays.append(pa.array(cells, kinds[kind]))
    return pa.table(arrays, names=[*table.names])


PANDAS = {"text": "string", "whole": "Int64", "number": "float64"}


def make_pandas(_, table, lines):
    frame = make_objects(_, table, lines)
    return frame.astype(dict(zip(table.names, map(PANDAS.get, table.types), strict=True)))


def make_objects(_, table, lines):
    return pd.DataFrame(lines, columns=[*table.names], dtype=object)


def make_inferred(_, table, lines):
    return pd.DataFrame.from_records(lines, columns=[*table.names])


def make_categories(_, table, lines):
    frame = make_objects(_, table, lines)
    for name in frame:
        with suppress(TypeError):  # what cannot be a category stays an object
            frame[name] = frame[name].astype("category")
    return frame


def make_indexed(_, table, lines):
    frame = make_objects(_, table, lines)
    return frame.set_index(frame.columns[0])


def make_polars(_, table, lines):
    return pl.DataFrame(make_arrow(_, table, lines))


def make_polars_objects(_, table, lines):
    columns = zip(table.names, zip(*lines, strict=True), strict=True)
    return pl.DataFrame([pl.Series(name, cells, dtype=pl.Object) for name, cells in columns])


def make_records(_, table, lines):
    return [
        {name: cell for name, cell in zip(table.names, line, strict=True) if cell != "-"}
        for line in lines
    ]


def make_columns(_, table, lines):
    return dict(zip(table.names, map(list, zip(*lines, strict=True)), strict=True))


def make_lists(_, table, lines):
    return [list(line) for line in lines]


def make_object_array(_, table, lines):
    array = np.empty((len(lines), len(table.names)), dtype=object)
    for place in np.ndindex(array.shape):
        array[place] = lines[place[0]][place[1]]
    return array


def make_text_array(_, table, lines):
    return np.array([[spell(cell) for cell in line] for line in lines])


def make_masked(folder, table, lines):
    array = make_object_array(folder, table, lines)
    return np.ma.MaskedArray(array, [[cell is None for cell in line] for line in lines])


def write_json(folder, table, lines):
    path = folder / "answers.jsonl"
    records = [dict(zip(table.names, line, strict=True)) for line in lines]
    path.write_text("".join(f"{json.dumps(one)}\n" for one in records), encoding="utf-8")
    return path


def write_json_list(folder, table, lines):
    path = folder / "answers.json"
    path.write_text(json.dumps(make_records(folder, table, lines)), encoding="utf-8")
    return path


def write_feather(folder, table, lines):
    path = folder / "answers.feather"
    with pa.ipc.new_file(str(path), (arrow := make_arrow(folder, table, lines)).schema) as file:
        file.write(arrow)
    return path


def write_sqlite(folder, table, lines):
    path = folder / "answers.sqlite"
    path.unlink(missing_ok=True)
    columns = ", ".join(f'"{name}"' for name in table.names)
    with closing(sqlite3.connect(path)) as file:
        file.execute(f"CREATE TABLE answers ({columns})")
        places = ", ".join("?" for _ in table.names)
        file.executemany(f"INSERT INTO answers VALUES ({places})", lines)  # noqa: S608 (no text)
        file.commit()
    return path


def write_nested(folder, table, lines):
    """Write records as py-irt has them."""
    path = folder / "nested.jsonl"
    answers = [table.names[1:-1], [line[1:-1] for line in lines]]
    records = [
        {"subject_id": line[0], "responses": dict(zip(answers[0], own, strict=True))}
        for line, own in zip(lines, answers[1], strict=True)
    ]
    path.write_text("".join(f"{json.dumps(one)}\n" for one in records), encoding="utf-8")
    return path


def write_logs(kind):
    def write(folder, table, lines):
        """Write a log for each model; one that failed has no samples."""
        home = folder / kind
        for path in sorted(home.glob("**/*")):
            if path.is_file():
                path.unlink()
        for model in table.rows:
            samples = [line for line in lines if line[0] == model and line[1] is not None]
            path = home / model / f"samples_arc_{kind}.jsonl"
            if kind == "inspect":
                path = home / f"{model}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            text = (inspect_log if kind == "inspect" else harness_log)(model, samples)
            path.write_text(text, encoding="utf-8")
        return home

    return write


def inspect_log(model, samples):
    shown = [
        {"id": name, "epoch": 1, "scores": {"match": {"value": value}}}
        for _, name, value in samples
    ]
    header = {"task": "arc", "model": model}
    return json.dumps({"version": 2, "status": "success", "eval": header, "samples": shown})


def harness_log(_, samples):
    return "".join(
        json.dumps({"doc_id": name, "filtered_resps": [], "metrics": ["acc"], "acc": value}) + "\n"
        for _, name, value in samples
    )


def write_control(*, apart):
    def write(folder, table, lines):
        """Write a control file of Winsteps with labels of 6 signs and answers of one."""
        cells = [(spell(line[0])[:6], *(spell(cell)[:1] for cell in line[1:])) for line in lines]
        data = "".join(f"{label:<6}{first:<1}{second:<1}\n" for label, first, second in cells)
        head = "NI=2\nITEM1=7\nNAME1=1\nNAMLEN=6\nCODES=01\n&END\nq1\nq2\nEND NAMES\n"
        path = folder / "test.con"
        if apart:
            (folder / "test.dat").write_bytes(data.encode())
            head, data = f"DATA=test.dat\n{head}", ""
        path.write_bytes((head + data).encode())
        return path

    return write


def make_relation(folder, table, lines):
    answers = make_arrow(folder, table, lines)  # DuckDB finds it by its name
    assert answers.num_rows
    return duckdb.from_arrow(answers)


def make_query(folder, table, lines):
    path = write_parquet(folder, table, lines)
    return f"SELECT * FROM read_parquet('{path}')"  # noqa: S608 (a file of the test)


FINITE = tuple(number for number in NUMBERS if isinstance(number, float) or abs(number) < 2**53)
WHOLE = tuple(number for number in NUMBERS if isinstance(number, int))
NONE = (None,)
TYPED = {
    "text": (NONE, TEXTS, LINES),
    "whole": (NONE, (*WHOLE, 2**63 - 1)),
    "number": (NONE, (*FINITE, math.nan, math.inf, -math.inf)),
}
DECIMAL = {**TYPED, "whole": (NONE, FINITE[:9]), "number": (NONE, FINITE[:14])}
JSON = (NONE, TEXTS, LINES, NUMBERS, (True, False, 2**63, 2**64, 10**30, [1], {"q1": 1}, []))
#: Without what pandas takes for one value: a category 1 is True, or 1 + 0j, if that came first.
PARTED = (
    *ANYTHING[:-1],
    tuple(one for one in OBJECTS if not isinstance(one, bool | complex | np.bool_)),
)
NO_NUL = tuple(text for text in TEXTS if "\x00" not in text)
IN_SHEETS = (NONE, NO_NUL, LINES, FINITE, (True, False, date(1970, 1, 2), datetime(2024, 5, 1, 10)))
LABELLED = {"text": (NO_NUL,), "whole": (NONE, FINITE), "number": (NONE, FINITE)}
STYLES = (lambda cell: cell, *(
    lambda cell, make=make: make(cell) if isinstance(cell, int) else cell
    for make in (float, Decimal, str, np.int64)
))  # fmt: skip
WITH_IDS = tuple(table for table in TABLES if table.has_ids)
STATED = (*WITH_IDS, replace(ROWS, persons=4), replace(SPARSE, persons=4))
SHORT = tuple(text for text in TEXTS if text.strip() and "\n" not in text)

LOGGED = replace(
    LONG,
    rows={who: [(who, item, own[item - 1]) for item in (1, 2)] for who, own in RIGHT.items()},
    items={"arc/1": 1, "arc/2": 1},
    words=FORGIVING,
)
HARNESSED = replace(LOGGED, items={"arc_harness/1": 1, "arc_harness/2": 1})
CONTROLLED = replace(
    WIDE, names=("id", "q1", "q2"), types=("text",) * 3, words={},
    rows={who: [(f"p {who}", *own)] for who, own in RIGHT.items()},
)  # fmt: skip
NESTED = replace(WIDE, names=("subject_id", "q1", "q2", "note"), words={"invalid": "missing"})

KINDS = {
    "csv": Kind(write_text(quoted=False), cells=untyped(TEXTS), is_raw=True),
    "csv, quoted": Kind(write_text(), cells=untyped(TEXTS, LINES)),
    "csv without names": Kind(
        write_text(names=False, quoted=False),
        tuple(one.unnamed() for one in TABLES),
        untyped(TEXTS),
        is_raw=True,
    ),
    "csv on disk": Kind(write_text(), ANSWERED, untyped(TEXTS, LINES), engine="disk", trials=500),
    "tsv": Kind(write_text(".tsv", "\t", quoted=False), cells=untyped(TEXTS), is_raw=True),
    "workbook": Kind(write_sheet(write_xlsx, ".xlsx"), STATED, untyped(*IN_SHEETS)),
    "workbook without names": Kind(
        write_sheet(write_xlsx, ".xlsx", names=False),
        tuple(one.unnamed() for one in STATED),
        untyped(*IN_SHEETS),
    ),
    "open document": Kind(write_sheet(write_ods, ".ods"), STATED, untyped(*IN_SHEETS)),
    "spss": Kind(write_labelled(".sav", "write_sav"), cells=LABELLED),
    "stata": Kind(write_labelled(".dta", "write_dta"), cells=LABELLED),
    "parquet": Kind(write_parquet, cells=TYPED),
    "parquet on disk": Kind(write_parquet, ANSWERED, TYPED, engine="disk", trials=500),
    "arrow": Kind(make_arrow, cells=TYPED),
    "arrow decimals": Kind(make_decimals, cells=DECIMAL),
    "pandas typed": Kind(make_pandas, cells=TYPED),
    "pandas inferred": Kind(make_inferred, cells=untyped(*ANYTHING), styles=STYLES),
    "pandas objects": Kind(make_objects, cells=untyped(*ANYTHING), styles=STYLES),
    "pandas categories": Kind(make_categories, cells=untyped(*PARTED), styles=STYLES),
    "pandas index": Kind(make_indexed, WITH_IDS, untyped(*ANYTHING), STYLES),
    "polars": Kind(make_polars, cells=TYPED),
    "polars objects": Kind(make_polars_objects, cells=untyped(*ANYTHING), styles=STYLES),
    "records": Kind(make_records, cells=untyped(*ANYTHING, ("-",)), styles=STYLES),
    "columns": Kind(make_columns, cells=untyped(*ANYTHING), styles=STYLES),
    "lists": Kind(make_lists, MATRICES, untyped(*ANYTHING), STYLES),
    "object array": Kind(make_object_array, MATRICES, untyped(*ANYTHING), STYLES),
    "text array": Kind(make_text_array, MATRICES, untyped(TEXTS), STYLES),
    "masked array": Kind(make_masked, MATRICES, untyped(*ANYTHING), STYLES),
    "json lines": Kind(write_json, ANSWERED, untyped(*JSON)),
    "json lines, nested": Kind(write_nested, (NESTED,), untyped(*JSON)),
    "json list": Kind(write_json_list, cells=untyped(*JSON)),
    "feather": Kind(write_feather, cells=TYPED, trials=500),
    "sqlite": Kind(write_sqlite, cells=untyped(NONE, TEXTS, LINES, FINITE), trials=500),
    "log of inspect": Kind(write_logs("inspect"), (LOGGED,), untyped(*JSON)),
    "log of the harness": Kind(write_logs("harness"), (HARNESSED,), untyped(*JSON)),
    "winsteps": Kind(write_control(apart=False), (CONTROLLED,), untyped(SHORT)),
    "winsteps, data apart": Kind(write_control(apart=True), (CONTROLLED,), untyped(SHORT)),
    "duckdb relation": Kind(make_relation, cells=TYPED),
    "duckdb query": Kind(make_query, ANSWERED, TYPED, trials=300),
}  # fmt: skip


# -- replacing one person's rows -----------------------------------------------------------------


def draw_rows(dice: random.Random, kind: Kind, table: Table, who: str) -> list[Cells]:
    """Return rows of one id that hold anything."""
    mine = table.rows[who]
    rows = []
    for _ in range(dice.choice((1, 1, 2, len(mine))) if table.has_ids else 1):
        row = [dice.choice(dice.choice(kind.cells[one])) for one in table.types]
        own, share = dice.choice(mine), dice.choice((0, 0.5, 0.8))
        row = [old if dice.random() < share else new for old, new in zip(own, row, strict=True)]
        rows.append([mine[0][0], *row[1:]] if table.has_ids else row)
    if table.has_ids and dice.random() < 0.1:
        rows += map(list, mine)
    if kind.is_raw and len(rows) > 1 and dice.random() < 0.5:
        place = dice.randrange(1, len(table.names))
        rows[0] = list(mine[0])
        rows[-1] = list(mine[-1])
        rows[0][place], rows[-1][place] = '"x', 'y"'
    return list(map(tuple, rows))


def place_rows(dice, table, who, rows, style):
    """Return all lines, the replaced ones where they were, or anywhere where they have ids."""
    others = {one: [tuple(map(style, row)) for row in own] for one, own in table.rows.items()}
    if not table.has_ids or dice.random() < 0.5:
        return [line for one in others for line in (rows if one == who else others[one])]
    lines = [line for one in others if one != who for line in others[one]]
    for row in rows:
        lines.insert(dice.choice((0, len(lines), dice.randrange(len(lines)))), row)
    return lines


class ListRows(Job):
    """The answers of everybody, as tuples."""

    def block(self, store):
        return list(map(tuple, store.rows(0, store.n_persons).tolist()))

    def add(self, left, right):
        return left + right


def list_answers(data, columns=()) -> tuple[Counter, Mapping[str, Any]]:
    """Return how often each row of answers occurs, and the rows by id where ids are known.

    Behind the answers stand the groups in these columns.
    """
    if isinstance(data, Comparisons):
        names = np.array(data.items, dtype=object)
        by_id: dict[str, list] = {judge: [] for judge in data.judges}
        for judge, won, lost in zip(data.judge, names[data.winner], names[data.loser], strict=True):
            by_id[data.judges[judge]].append((won, lost))
        by_id = {judge: tuple(sorted(own)) for judge, own in by_id.items()}
        return Counter(by_id.values()), by_id
    if isinstance(data, Responses):
        groups = [data.groups[name].tolist() for name in columns]
        rows = list(zip(*data.to_array().T.tolist(), *groups, strict=True))
        return Counter(rows), dict(zip(data.persons.tolist(), rows, strict=True))
    if isinstance(data, StreamedAnswers):
        rows = [tuple(row) for batch in data.batches() for row in batch.to_array().tolist()]
        return Counter(rows), {}
    return Counter(data.reduce(ListRows())), {}


def read(source: Any, table: Table, engine: str = "auto"):
    """Return what a release knows of a source: answers, by id, number of persons, items, steps."""
    opener = OPENERS[table.data]
    with opener(DataSource(source, engine), dict(table.words), table.public) as data:
        known = list_answers(data, table.groups)
        return *known, data.n_persons, data.items, data.steps, data.lowest


def expect(table: Table, who: str) -> tuple[Counter, Mapping[str, Any]]:
    """Return the answers of everybody else."""
    own = {one: rows for one, rows in table.expected.items() if one != who}
    if table.data == "comparisons":
        own = {one: tuple(sorted(pairs)) for one, pairs in own.items()}
    by_id = {}
    if table.has_ids:
        by_id = {str(table.rows[one][0][0]): rows for one, rows in own.items()}
    return Counter(own.values()), by_id


def check(found, table: Table, who: str) -> None:
    """Fail where more than one person's answers have changed."""
    rows, by_id, persons, items, steps, lowest = found
    others, others_by_id = expect(table, who)
    assert (items, lowest) == (tuple(table.items), 0 if table.data != "answers" else table.lowest)
    assert steps == tuple(table.items.values())
    assert table.persons is not None or persons == len(table.rows), "the number of persons changed"
    rows.subtract(others)
    assert min(rows.values()) >= 0, "the answers of others changed"
    assert sum(rows.values()) in ((0, 1) if table.persons else (1,))
    for one, own in others_by_id.items() if by_id else ():
        assert by_id.get(one) == own, f"the answers of {one} changed"


def replace_rows(kind: Kind, seed: str, number: int) -> Iterator[tuple[Table, str, list[Cells]]]:
    """Yield tables with one person's rows replaced, always the same ones."""
    dice = random.Random(seed)
    for _ in range(number):
        table, style = dice.choice(kind.tables), dice.choice(kind.styles)
        who = dice.choice([*table.rows])
        yield table, who, place_rows(dice, table, who, draw_rows(dice, kind, table, who), style)


def list_lines(table: Table, style: Any = None) -> list[Cells]:
    """Return the rows of everybody."""
    lines = [line for own in table.rows.values() for line in own]
    return lines if style is None else [tuple(map(style, line)) for line in lines]


def check_whole(kind: Kind, folder: Path) -> None:
    """Read every table as it is."""
    for table in kind.tables:
        for style in kind.styles:
            source = kind.write(folder, table, list_lines(table, style))
            whole = read(source, table, kind.engine)
            for who in table.rows:
                check((Counter(whole[0]), *whole[1:]), table, who)


class CannotHold(Exception):
    """The program that writes a table has no place for a cell."""


def write(kind: Kind, folder: Path, table: Table, lines: list[Cells]) -> Any:
    """Make a source of these rows."""
    try:
        return kind.write(folder, table, lines)
    except Exception as error:
        raise CannotHold(str(error)) from error


def compare(kind: Kind, seed: str, number: int, folder: Path, read_one: Any = None) -> Counter:
    """Replace one person's rows so many times; return how many tables were compared."""
    ended: Counter = Counter()
    for table, who, lines in replace_rows(kind, seed, number):
        try:
            source = write(kind, folder, table, lines)
            (read_one or read_and_check)(source, table, who, kind.engine)
        except CannotHold:
            ended["not written"] += 1
            continue
        except DiscreetError:
            ended["refused"] += 1
            continue
        except Exception as error:
            raise AssertionError(f"{seed}, {who} replaced: {error!r}: {lines}") from error
        ended["compared"] += 1
    return ended


def read_and_check(source: Any, table: Table, who: str, engine: str) -> None:
    """Read a source, and fail where more than one person's answers have changed."""
    check(read(source, table, engine), table, who)


# -- what is published ---------------------------------------------------------------------------


class HeldValues:
    """A mechanism whose values are always the same: whatever else differs came from the data."""

    def prepare(self, answers, public, calibration):
        made = super().prepare(answers, public, calibration)
        held = {
            name: np.arange(np.prod(shape)).reshape(shape) for name, shape in made.shapes.items()
        }
        return replace(made, draw=lambda noise: held)


class HeldPairs(HeldValues, DensePairs):
    """Pairs of answers."""


class HeldWins(HeldValues, WinPairs):
    """Wins in comparisons."""


def publish(source: Any, table: Table, engine: str, out: Path) -> dict[str, bytes]:
    """Release a source; return the files of the bundle."""
    about = {"title": "A test", "version": "1", "date": "2026-01-05"}
    held = HeldWins() if table.data == "comparisons" else HeldPairs()
    spec = make_spec(BUDGET, **table.told, mechanism=held, about=about, reading=table.words)
    release_spec(DataSource(source, engine), spec, DeliveryTerms(None, out=out))
    return {one.name: one.read_bytes() for one in sorted(out.iterdir())}


# -- where only counts come back -----------------------------------------------------------------


def count_and_check(source: Any, table: Table, who: str, engine: str) -> None:
    """Count a source; no set of answers of the one person may be unable to explain the counts."""
    with OPENERS[table.data](DataSource(source, engine), dict(table.words), table.public) as data:
        counts, persons = data.count(), data.n_persons
    others = [list(own) for one, own in table.expected.items() if one != who]
    assert persons == len(table.rows), "the number of persons changed"
    assert any(
        np.array_equal(whole.right_wrong, counts.right_wrong)
        and np.array_equal(whole.answers, counts.answers)
        for whole in (
            Responses.from_array(np.array([*others, own])).count()
            for own in product((-1, 0, 1), repeat=len(table.items))
        )
    ), "the answers of others changed"
