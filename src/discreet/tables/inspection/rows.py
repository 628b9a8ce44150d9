"""The first rows of a table as they stand there, and which of them are no persons.

In: a file, folder or frame, and what the user states about it. Out: a :class:`CellGrid` for each
table that could be meant (the sheets of a workbook, or one), where its names are, and decisions
about titles, the key, totals and blank rows.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from itertools import islice, zip_longest
from os import PathLike
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from discreet.choices import PlainMapping
from discreet.coding.reading import Reading
from discreet.coding.remedies import make_remedy
from discreet.coding.values import MISSING_WORDS, spell, write_cell
from discreet.errors import BadResponses
from discreet.tables.cells import label_columns
from discreet.tables.columns import (
    LongPlan,
    has_row_names,
    is_long_row,
    is_wide_row,
    join_names,
    plan_columns,
)
from discreet.tables.dataset import is_query, names_database, open_dataset
from discreet.tables.findings import Findings
from discreet.tables.formats.jsonl import LOGS
from discreet.tables.inspection.rules import rule
from discreet.tables.opener import BLANK, SHORT, Source, open_table_file
from discreet.tables.paths import (
    declared_delimiter,
    decode,
    find_delimiter,
    find_encoding,
    find_files,
    find_partitions,
    is_sep_line,
    read_head,
    sniff,
)
from discreet.tables.resources import Resources
from discreet.tables.sources import FrameSource, as_arrow, take_head
from discreet.tables.vocabulary import (
    ENOUGH_ROWS,
    NO_ANSWER,
    Column,
    bound_number,
    is_label,
    name_words,
    plain,
)
from discreet.text import count_of, name_some
from discreet.types import BoolArray

#: Rows and cells that are looked at; of very wide tables a few rows.
MOST_ROWS, MOST_CELLS, LEAST_ROWS = 3_000, 300_000, 40
#: Logs of evaluations that are looked at.
_MOST_LOGS = 20
#: Rows that may have the same label: a class or a group is no key and no total.
_FEW = 2
#: Rows that a row of sums or means must have above it, to be told from a person.
FEWEST_SUMMED = 5
_SHOWN = 5
Row = list[str | None]


def limit_rows(width: int) -> int:
    """Return how many rows of so many columns are looked at."""
    return min(MOST_ROWS, max(LEAST_ROWS, MOST_CELLS // max(width, 1)))


@dataclass(frozen=True)
class CellGrid:
    """Rows of one table, as text.

    Attributes
    ----------
    name
        What messages call the table.
    rows
        The first rows; with ``names`` those below the names.
    names
        Names of the columns, where the format declares them.
    options
        What of a reading makes this the table: sheet, delimiter.
    is_whole
        Whether these are all rows.
    labels
        By column, the labels that the file gives to values.
    kind
        What the file holds; see :func:`discreet.tables.paths.sniff`.
    """

    name: str
    rows: list[Row]
    names: list[str] | None = None
    options: PlainMapping = field(default_factory=dict)
    is_whole: bool = True
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    kind: str = "text"


def open_grids(source: object, reading: Reading) -> list[CellGrid]:
    """Return the tables of a source; of several files the first."""
    if not isinstance(source, str | PathLike):
        return [_grid_of(FrameSource(as_arrow(take_head(source, MOST_ROWS + 1))), "frame")]
    if is_query(source) or names_database(source):
        with closing(open_dataset(source, {}, Resources(), reading)) as dataset:
            return [_grid_of(dataset.shards[0].open(), "query")]
    files = find_files(source)
    file, head = files[0], read_head(files[0])
    kind = sniff(file, head)
    if kind == "text" and not find_partitions(file):
        grid = _read_text(file, head, reading)
        return [grid if len(files) == 1 else replace(grid, is_whole=False)]
    if kind == "workbook":
        grids = list(_read_sheets(file, reading))
        return grids or [_grid_of(open_table_file(file, reading=reading), kind)]
    if kind in LOGS:
        return [_read_logs(files, kind, reading)]
    return [_grid_of(open_table_file(file, reading=reading), kind)]


def _read_logs(files: Sequence[Path], kind: str, reading: Reading) -> CellGrid:
    """Return the logs of the first model, all tasks in one table."""
    folder = [file for file in files if file.parent == files[0].parent][:_MOST_LOGS]
    grids = [_grid_of(open_table_file(file, reading=reading), kind) for file in folder]
    filled = [grid for grid in grids if grid.rows] or grids
    names = list(dict.fromkeys(name for grid in filled for name in grid.names or ()))
    rows = [
        [dict(zip(grid.names or (), row, strict=True)).get(name) for name in names]
        for grid in filled
        for row in grid.rows
    ]
    return CellGrid(filled[0].name, rows, names, {}, False, kind=kind)


def _grid_of(source: Source, kind: str) -> CellGrid:
    """Return the first rows of a source whose format names the columns."""
    rows: list[Row] = []
    is_whole, most = False, limit_rows(len(source.names))
    batches = source.batches(range(len(source.names)))
    for batch in batches:
        room = most + 1 - len(rows)
        cells = [[_text(cell) for cell in part.slice(0, room).to_pylist()] for part in batch]
        rows += [list(row) for row in zip(*cells, strict=True)]
        if len(rows) > most:
            break
    else:
        is_whole = True
    labels = getattr(source, "value_labels", {})
    return CellGrid(source.name, rows[:most], list(source.names), {}, is_whole, labels, kind)


def _text(cell: object) -> str | None:
    text = write_cell(cell)
    return None if text is None or not text.strip() else text.strip()


# -- text files ------------------------------------------------------------------------------


def _read_text(path: Path, head: bytes, reading: Reading) -> CellGrid:
    text = decode(path, head, find_encoding(path, head))
    is_whole = len(head) >= path.stat().st_size
    delimiter = reading.delimiter or find_delimiter(text, path)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        records = list(islice(lines, LEAST_ROWS))
        most = limit_rows(max(map(len, records), default=1))
        records += islice(lines, max(0, most + 1 - len(records)))
    except csv.Error as error:
        raise BadResponses(f"{path} cannot be read as a table: {error}.") from None
    if not is_whole and len(records) <= most:
        records = records[:-1]  # the last one may be cut off
    rows = [
        [cell.strip() or None for cell in record] for record in records if not is_sep_line(record)
    ]
    options = {} if delimiter == declared_delimiter(text, path) else {"delimiter": delimiter}
    return CellGrid(str(path), rows[:most], None, options, is_whole and len(rows) <= most)


# -- workbooks -------------------------------------------------------------------------------


def _read_sheets(path: Path, reading: Reading) -> Iterator[CellGrid]:
    from discreet.tables.formats.workbook import list_sheets

    stated = (reading.sheet,) if isinstance(reading.sheet, str) else reading.sheet
    for name, rows in list_sheets(path, stated):
        texts = [[_text(cell) for cell in row] for row in rows[:MOST_ROWS]]
        where = f"{path}, sheet '{name}'"
        yield CellGrid(where, texts, None, {"sheet": name}, len(rows) <= MOST_ROWS, kind="workbook")


# -- names and odd rows ------------------------------------------------------------------------

#: Rows in which the names are looked for.
_HEAD = 20
#: Signs up to which a name is the part of a task.
_SHORTEST = 3


class Table(NamedTuple):
    """Names, the rows below them, and those above."""

    names: list[str]
    rows: list[Row]
    above: Sequence[Row] = ()


def find_names(grid: CellGrid, findings: Findings) -> Table:
    """Return the names of the columns and the rows below; propose rows above them to skip."""
    if grid.names is not None:
        return Table(grid.names, grid.rows)
    rows, stated = grid.rows, findings.stated
    header = stated.get("skip_rows", _find_header(rows))
    is_joined = stated.get("header_rows", 1) > 1
    if not stated.keys() & {"skip_rows", "header_rows"}:
        upper = [n for n in (header - 1, header) if n >= 0 and _are_parts(rows[n:])]
        is_joined = bool(upper)
        header = upper[0] if upper else header + _has_two_headers(rows, header)
        if is_joined:
            reason = f"Names are in the rows {header + 1} and {header + 2}, and are read together."
            findings.note("header_rows", 2, reason, [f"row {header + 2}"])
    first = [(cell or "").strip() for cell in rows[header]] if header < len(rows) else []
    if is_joined:
        first = join_names(first, rows[header + 1])
    names = [name for name in first if name]
    if "header" not in findings.stated and (is_wide_row(names) or is_long_row(names)):
        change = {"header": False, "layout": "long"} if is_long_row(names) else {"header": False}
        findings.ask(
            "header",
            f"The first row ({', '.join(names[:6])}) looks like answers. Has the file no row of "
            "names?",
            [make_remedy("it has none, columns are numbered:", change)],
            ["row 1"],
        )
    if not findings.stated.get("header", findings.options.get("header", True)):
        width = max(map(len, rows))
        return Table([str(number) for number in range(1, width + 1)], rows[header:])
    titles = [cell for row in rows[:header] for cell in row if cell]
    if header and "skip_rows" not in findings.stated:
        quoted = ", ".join(f"'{title}'" for title in titles[:4])
        where = f"Names are in row {header + 1}; above them stands {quoted or 'nothing'}."
        findings.note("skip_rows", header, where, [f"rows 1 to {header}"])
    below = [row for row in rows[header + 1 + is_joined :] if row or len(first) > 1]
    if grid.kind == "workbook":
        used = [n for n, cells in enumerate(zip(first, *below, strict=True)) if any(cells)]
        left, right = (used[0], used[-1] + 1) if used else (0, 0)
        first, below = first[left:right], [row[left:right] for row in below]
    if has_row_names(first, [[cell or "" for cell in row] for row in below[:5]]):
        first = ["", *first]
    return Table(_tell_names_apart(first, findings), below, rows[:header])


def _tell_names_apart(names: list[str], findings: Findings) -> list[str]:
    """Return names that differ, and ask about those that occur again."""
    different = [
        label if name else "" for name, label in zip(names, label_columns(names), strict=True)
    ]
    again = [label for name, label in zip(names, different, strict=True) if name != label]
    stated = [*findings.stated.get("keep", ()), *findings.stated.get("ignore", ())]
    if not {*again} <= {*stated}:
        findings.ask(
            "keep",
            f"{len(again):,} columns have the name of a column before them: {name_some(again)}. "
            "Are they items of their own?",
            [
                make_remedy("they are, told apart by their columns:", {"keep": again}),
                make_remedy("leave them out:", {"ignore": again}),
            ],
            again[:5],
        )
    return different


def _find_header(rows: Sequence[Row]) -> int:
    """Return the first row with about as many entries as the rows below it have."""
    filled = [sum(cell is not None for cell in row) for row in rows]
    typical = median([count for count in filled[: 4 * _HEAD] if count] or [0])
    for number in range(min(_HEAD, len(rows))):
        if filled[number] >= max(1, 0.6 * typical) and (filled[number] > 1 or typical <= 1):
            return number
    return 0


@rule("more/SurveyMonkey export.csv", otherwise=False)
def _has_two_headers(rows: Sequence[Row], header: int) -> bool:
    """Say whether names go on in the next row, as in surveys with a block of statements."""
    if header + 2 >= len(rows) or len(rows[header]) != len(rows[header + 1]):
        return False
    upper, lower = rows[header], rows[header + 1]
    below = [number for number, name in enumerate(upper) if name is None and lower[number]]
    texts = [lower[number] for number in below]
    repeated = {cell for row in rows[header + 2 :] for cell in row if cell in texts}
    is_new = len(set(texts)) == len(texts) > 1 and not repeated
    return is_new and all(bound_number(text or "") is None for text in texts)


@rule("exports/Klassenarbeit 8d.csv", otherwise=False)
def _are_parts(rows: Sequence[Row]) -> bool:
    """Say whether the second row names parts of tasks, such as a), below the tasks in the first."""
    if len(rows) < 3:
        return False
    upper, lower = rows[:2]
    names = {number: cell for number, cell in enumerate(lower) if cell}
    is_short = len({*names.values()}) < len(names) or all(
        len(name) <= _SHORTEST for name in names.values()
    )
    beside = [above for above, below in zip_longest(upper, lower) if above and not below]
    is_above = sum(map(bool, upper)) > len(beside) > 0
    again = (row[n] == name for row in rows[2:] for n, name in names.items() if n < len(row))
    is_text = all(bound_number(name) is None for name in names.values())
    return is_short and is_above and ((is_text and not any(again)) or _are_counted(upper, lower))


@rule("fresh/Year 5 sections.xlsx", otherwise=False)
def _are_counted(upper: Row, lower: Row) -> bool:
    """Say whether tasks are numbered from 1 on below each section, named above its first."""
    counted = [(above, below) for above, below in zip(upper, lower, strict=False) if below]
    firsts = [number for number, (above, _) in enumerate(counted) if above]
    ends = [*firsts[1:], len(counted)]
    runs = [
        below
        for start, end in zip(firsts, ends, strict=True)
        for below in range(1, end - start + 1)
    ]
    return len(firsts) > 1 and [below for _, below in counted] == [*map(str, runs)]


# -- rows below the names --------------------------------------------------------------------


class OddRows:
    """Finds rows of a wide table that are no persons."""

    def __init__(self, table: Table, items: Sequence[Column], findings: Findings) -> None:
        self._table, self._items, self._findings = table, items, findings
        numbers = {column.number for column in items}
        beside = [n for n in range(len(table.names)) if n not in numbers]
        sheets = {**findings.stated, **findings.options}.get("sheet")
        self._labels = find_labels(
            ([row[n] if n < len(row) else None for row in table.rows] for n in beside),
            _FEW * len(sheets) if isinstance(sheets, list | tuple) else _FEW,
        )
        self.aside: set[int] = set()
        self._beside = beside

    def find(self, *, may_number: bool) -> set[int]:
        """Return the rows that are no persons, and propose to drop them.

        ``may_number`` says whether rows may be named by their number.
        """
        self._find_blank()
        self._find_notes()
        for number, row in enumerate(self._table.rows):
            if number not in self.aside:
                self._judge(number, row, may_number)
        return self.aside

    def take(self, names: Collection[int | str]) -> None:
        """Put the rows aside that are stated."""
        labels = {name.casefold() for name in names if isinstance(name, str)}
        for number, row in enumerate(self._table.rows):
            cells = {spell(cell).casefold() for cell in row if cell is not None}
            is_blank = not cells and BLANK in labels
            is_short = SHORT in labels and self._is_short(row)
            if is_blank or is_short or number + 1 in names or cells & (labels - {BLANK, SHORT}):
                self.aside.add(number)

    @rule("Klassenarbeit 7a.xlsx")
    def _find_blank(self) -> None:
        blank = [n for n, row in enumerate(self._table.rows) if not any(row)]
        if any(len(row) > 1 for row in self._table.rows) and blank:
            self.aside.update(blank)
            if any(self._table.rows[n] for n in blank):
                reason = f"{count_of(len(blank), 'blank row')} left out."
                self._findings.note("drop_rows", ["blank"], reason, _name_rows(blank))

    @rule("more/reading screening.csv")
    def _find_notes(self) -> None:
        """Put rows aside that have one entry and then end, as notes below a table do."""
        short = [n for n, row in enumerate(self._table.rows) if any(row) and self._is_short(row)]
        notes = [row[0] for n in short if len(row := self._table.rows[n]) == 1]
        if notes and len(notes) == len(short) < len(self._table.rows) / 2:
            self.aside.update(short)
            listed = ", ".join(f"'{note}'" for note in notes[:3])
            reason = f"{count_of(len(notes), 'row')} with a note left out: {listed}."
            self._findings.note("drop_rows", [SHORT], reason, _name_rows(short))

    def _is_short(self, row: Row) -> bool:
        return len(row) < len(self._table.names)

    def _judge(self, number: int, row: Row, may_number: bool) -> None:
        label = self._labels.get(number)
        name: int | str | None = label or (number + 1 if may_number else None)
        if name is None:
            return
        if label is not None and self._holds_key(label, row):
            self.aside.add(number)
            where = f"The row '{label}' holds the right answers."
            self._findings.note("key_row", label, where, _name_rows([number]))
        elif label is not None:
            self._drop(number, name, f"The row '{label}' is no person.")
        elif self._is_below(number):
            self._drop(number, name, f"Row {number + 1} below the names holds a note.")
        elif self._may_be_key(row):
            self._ask_key_row(number)
        elif self._is_summary(number, row):
            self._drop(number, name, f"Row {number + 1} below the names holds sums or means.")
        elif self._is_foreign(number, row):
            self._drop(number, name, f"Row {number + 1} below the names holds no answers.")

    @rule("class test with key row.csv", otherwise=False)
    def _holds_key(self, label: str, row: Row) -> bool:
        """Say whether a row with the label of a key holds options, and not points."""
        is_key = plain(label) in name_words("keys") and "key" not in self._findings.stated
        is_scored = all(c.kind == "steps" and min(c.core) == 0 for c in self._items)
        return is_key and not is_scored and not self._is_strange(row)

    @rule("more/spelling.xlsx", otherwise=False)
    def _is_below(self, number: int) -> bool:
        """Say whether a row is a note below the table, behind a blank row."""
        return number >= self._end

    @cached_property
    def _end(self) -> int:
        rows = self._table.rows
        last = max((n for n, row in enumerate(rows) if sum(map(bool, row)) > 1), default=0)
        is_apart = last + 1 < len(rows) and not any(rows[last + 1])
        return last + 1 if is_apart else len(rows)

    @rule("more/mcq.csv", otherwise=False)
    def _may_be_key(self, row: Row) -> bool:
        """Say whether a row names nobody, and holds one option for every item."""
        entries = [row[n] for n in self._beside if n < len(row)]
        is_full = len(self._cells(row)) == len(self._items) > 2
        is_known = self._findings.stated.keys() & {"key", "key_row"}
        is_letters = all(column.kind == "letters" for column in self._items)
        return bool(self._beside) and not any(entries) and is_full and is_letters and not is_known

    def _ask_key_row(self, number: int) -> None:
        self.aside.add(number)
        self._findings.ask(
            "key_row",
            f"Row {number + 1} below the names has no name, and an answer to every item. Does it "
            "hold the right answers?",
            [
                make_remedy("it does:", {"key_row": number + 1}),
                make_remedy("leave it out:", {"drop_rows": [number + 1]}),
            ],
            _name_rows([number]),
        )

    def _drop(self, number: int, name: int | str, reason: str) -> None:
        self.aside.add(number)
        self._findings.note("drop_rows", [name], reason, _name_rows([number]))

    def _cells(self, row: Row) -> list[tuple[Column, str]]:
        pairs = [(c, row[c.number] if c.number < len(row) else None) for c in self._items]
        gone = MISSING_WORDS | NO_ANSWER
        return [(c, cell) for c, cell in pairs if cell is not None and cell.lower() not in gone]

    @rule("qualtrics.csv", otherwise=False)
    def _is_foreign(self, number: int, row: Row) -> bool:
        """Say whether most cells of a row are like no other cell of their column."""
        cells = self._cells(row)
        if 2 * len(cells) < len(self._items) or len(self._table.rows) < ENOUGH_ROWS:
            return False
        near_an_end = number < 3 or number >= len(self._table.rows) - 5
        return near_an_end and self._is_strange(row) and len(cells) > 1

    def _is_strange(self, row: Row) -> bool:
        cells = self._cells(row)
        return sum(_is_strange(column, cell) for column, cell in cells) > 0.6 * len(cells)

    @rule("exports/Gruppe B.csv", otherwise=False)
    def _is_summary(self, number: int, row: Row) -> bool:
        """Say whether a row at the end holds sums or means of what stands above it."""
        cells = [(c, v) for c, cell in self._cells(row) if (v := bound_number(cell)) is not None]
        if len(cells) < 3 or number < max(FEWEST_SUMMED, len(self._table.rows) - 5):
            return False
        is_new = any(c.words[spell(row[c.number] or "")] == 1 for c, _ in cells)
        return is_new and sum(_sums_up(c, value, number) for c, value in cells) >= 0.9 * len(cells)


def _sums_up(column: Column, value: Decimal, number: int) -> bool:
    """Say whether a value is the sum or the mean of the cells above it, as it would be rounded."""
    cells = [cell for cell in list(column.cells)[:number] if cell is not None]
    above = [float(n) for cell in cells if (n := bound_number(spell(cell))) is not None]
    if not above or value % 1 == 0:
        return sum(n for n in above if n > 0) == value
    half = 0.505 * 10.0 ** int(value.as_tuple().exponent)
    means = [sum(above) / count for count in (len(above), number)]
    return any(abs(mean - float(value)) <= half for mean in means)


def _is_strange(column: Column, cell: str) -> bool:
    word = spell(cell)
    number = bound_number(word)
    if column.kind == "steps":
        return number is None or (number not in column.core and column.words[word] <= 1)
    if column.kind == "points":
        return number is None
    if column.kind == "letters":
        return len(word) > 5 or number is not None
    return column.words[word] <= 1


def _name_rows(numbers: Collection[int]) -> list[str]:
    listed = [f"row {number + 1} below the names" for number in sorted(numbers)]
    return listed[:5] + [f"and {len(listed) - 5:,} more"] * (len(listed) > 5)


# -- rows that are read as persons ------------------------------------------------------------


def find_labels(columns: Iterable[Sequence[str | None]], most: int = _FEW) -> dict[int, str]:
    """Return, by row, what says beside the answers that it is a key or totals.

    A label stands in at most so many rows.
    """
    labels: dict[int, str] = {}
    for column in columns:
        for row, word in enumerate(column):
            if word is not None and is_label(word) and column.count(word) <= most:
                labels.setdefault(row, word)
    return dict(sorted(labels.items()))


def tell_odd_rows(
    reading: Reading, is_empty: BoolArray | None, sources: Iterator[Source]
) -> list[str]:
    """Tell of blank rows, and of rows with the label of a key or of totals.

    Parameters
    ----------
    reading
        How the tables were read.
    is_empty
        By row of all tables, whether it has no answer; None where rows have ids.
    sources
        The tables.
    """
    blank: list[str] = []
    labelled: list[str] = []
    for source in sources:
        plan, texts = plan_columns(source.names, reading, source.name), list[tuple[Any, ...]]()
        if isinstance(plan, LongPlan):
            return []
        for batch in source.batches(range(len(source.names))):
            columns = [
                [None if cell is None else spell(cell) or None for cell in part.to_pylist()]
                for part in batch
            ]
            texts += zip(*columns, strict=True)
        items = {*plan.items, *plan.order}
        turned = enumerate(zip(*texts, strict=True))
        beside = (list(column) for number, column in turned if number not in items)
        labelled += [f"{source.place(row)} ('{word}')" for row, word in find_labels(beside).items()]
        if is_empty is not None and is_empty.any():
            blank += [source.place(n) for n, row in enumerate(texts) if not any(row)]
    return [*_tell(blank, _BLANK_ROWS), *_tell(labelled, _LABELLED_ROWS)]


_BLANK_ROWS = "Rows without any entry count", "Delete them if nobody belongs to them."
_LABELLED_ROWS = (
    "Rows that look like a key or like totals count",
    "Delete them if they are no persons; a key goes into key= (--key).",
)


def _tell(places: Sequence[str], words: tuple[str, str]) -> list[str]:
    if not places:
        return []
    more = len(places) - _SHOWN
    listed = "; ".join(places[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
    return [f"{words[0]} as persons, {len(places)} of them: {listed}. {words[1]}"]
