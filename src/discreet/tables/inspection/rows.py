"""Which rows of a table are no persons: titles, names, the key, totals, blank rows.

In: rows as they stand in a file. Out: where the names are, and decisions about other rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from statistics import median
from typing import NamedTuple

from discreet.errors import Remedy
from discreet.tables.inspection.columns import Column, bound_number
from discreet.tables.inspection.findings import Findings
from discreet.tables.inspection.grid import CellGrid, Row
from discreet.tables.inspection.vocabulary import KEYS, NO_ANSWER, SUMMARIES, plain
from discreet.tables.remedies import make_remedy
from discreet.tables.separators import has_row_names, is_long_row, is_wide_row
from discreet.tables.values import MISSING_WORDS, spell

_LABELS = KEYS | SUMMARIES
_HEAD = 20
"""Rows in which the names are looked for."""
_TWICE = 2
"""Rows that may have the same label: a class or a group is no key and no total."""


class Table(NamedTuple):
    """Names, the rows below them, and those above."""

    names: list[str]
    rows: list[Row]
    above: Sequence[Row] = ()


def find_names(grid: CellGrid, findings: Findings) -> Table:
    """Return the names of the columns and the rows below; propose rows above them to skip."""
    if grid.names is not None:
        return Table(grid.names, grid.rows)
    header = findings.stated.get("skip_rows", _find_header(grid.rows))
    rows = grid.rows
    first = [(cell or "").strip() for cell in rows[header]] if header < len(rows) else []
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
    below = [row for row in rows[header + 1 :] if row or len(first) > 1]
    while first and not first[-1] and all(len(row) < len(first) or not row[-1] for row in below):
        first, below = first[:-1], [row[: len(first) - 1] for row in below]
    if has_row_names(first, [[cell or "" for cell in row] for row in below[:5]]):
        first = ["", *first]
    return Table(first, below, rows[:header])


def _find_header(rows: Sequence[Row]) -> int:
    """Return the first row with about as many entries as the rows below it have."""
    filled = [sum(cell is not None for cell in row) for row in rows]
    typical = median([count for count in filled[: 4 * _HEAD] if count] or [0])
    for number in range(min(_HEAD, len(rows))):
        if filled[number] >= max(1, 0.6 * typical) and (filled[number] > 1 or typical <= 1):
            return number
    return 0


# -- rows below the names --------------------------------------------------------------------


class OddRows:
    """Finds rows of a wide table that are no persons."""

    def __init__(self, table: Table, items: Sequence[Column], findings: Findings) -> None:
        self._table, self._items, self._findings = table, items, findings
        self._numbers = {column.number for column in items}
        self.aside: set[int] = set()

    def find(self, *, may_number: bool) -> set[int]:
        """Return the rows that are no persons, and propose to drop them.

        ``may_number`` says whether rows may be named by their number.
        """
        self._find_blank()
        for number, row in enumerate(self._table.rows):
            if number not in self.aside:
                self._judge(number, row, may_number)
        return self.aside

    def take(self, names: Collection[int | str]) -> None:
        """Put the rows aside that are stated."""
        labels = {name.casefold() for name in names if isinstance(name, str)}
        for number, row in enumerate(self._table.rows):
            cells = {spell(cell).casefold() for cell in row if cell is not None}
            is_blank = not cells and "blank" in labels
            if is_blank or number + 1 in names or cells & (labels - {"blank"}):
                self.aside.add(number)

    def _find_blank(self) -> None:
        blank = [n for n, row in enumerate(self._table.rows) if not any(row)]
        if any(len(row) > 1 for row in self._table.rows) and blank:
            self.aside.update(blank)
            if any(self._table.rows[n] for n in blank):
                reason = f"{len(blank):,} rows are blank."
                self._findings.note("drop_rows", ["blank"], reason, _name_rows(blank))

    def _judge(self, number: int, row: Row, may_number: bool) -> None:
        label = self._find_label(row)
        name: int | str | None = label or (number + 1 if may_number else None)
        if name is None:
            return
        is_key = label is not None and plain(label) in KEYS and "key" not in self._findings.stated
        if is_key and not self._is_scored():
            self.aside.add(number)
            where = f"The row '{label}' holds the right answers."
            self._findings.note("key_row", label, where, _name_rows([number]))
        elif label is not None:
            self._drop(number, name, f"The row '{label}' is no person.")
        elif self._is_column_sum(number, row):
            self._drop(number, name, f"Row {number + 1} below the names holds sums.")
        elif self._is_foreign(number, row):
            self._drop(number, name, f"Row {number + 1} below the names holds no answers.")

    def _drop(self, number: int, name: int | str, reason: str) -> None:
        self.aside.add(number)
        self._findings.note("drop_rows", [name], reason, _name_rows([number]))

    def _find_label(self, row: Row) -> str | None:
        """Return what says that a row is a key or totals, beside the answers."""
        for number, cell in enumerate(row):
            if number in self._numbers or cell is None or plain(cell) not in _LABELS:
                continue
            times = sum(other[number : number + 1] == [cell] for other in self._table.rows)
            if bound_number(cell) is None and times <= _TWICE:
                return cell
        return None

    def _is_scored(self) -> bool:
        """Say whether items hold points, so that a key would make no sense."""
        return all(column.kind == "steps" and min(column.core) == 0 for column in self._items)

    def _cells(self, row: Row) -> list[tuple[Column, str]]:
        pairs = [(c, row[c.number] if c.number < len(row) else None) for c in self._items]
        gone = MISSING_WORDS | NO_ANSWER
        return [(c, cell) for c, cell in pairs if cell is not None and cell.lower() not in gone]

    def _is_foreign(self, number: int, row: Row) -> bool:
        """Say whether most cells of a row are like no other cell of their column."""
        cells = self._cells(row)
        if 2 * len(cells) < len(self._items) or len(self._table.rows) < 5:
            return False
        strange = sum(_is_strange(column, cell) for column, cell in cells)
        near_an_end = number < 3 or number >= len(self._table.rows) - 5
        return near_an_end and strange > 0.6 * len(cells) and len(cells) > 1

    def _is_column_sum(self, number: int, row: Row) -> bool:
        cells = [(c, v) for c, cell in self._cells(row) if (v := bound_number(cell)) is not None]
        if len(cells) < 3 or number < len(self._table.rows) - 5:
            return False
        hits = 0
        for column, value in cells:
            above = [bound_number(cell) for cell in column.cells[:number] if cell is not None]
            hits += sum(float(v) for v in above if v is not None and v > 0) == float(value)
        return hits >= 0.9 * len(cells)


def _is_strange(column: Column, cell: str) -> bool:
    word = spell(cell)
    number = bound_number(word)
    if column.kind == "steps":
        return number is None or (number not in column.core and column.words[word] <= 1)
    if column.kind == "letters":
        return len(word) > 5 or number is not None
    return column.words[word] <= 1


def _name_rows(numbers: Collection[int]) -> list[str]:
    listed = [f"row {number + 1} below the names" for number in sorted(numbers)]
    return listed[:5] + [f"and {len(listed) - 5:,} more"] * (len(listed) > 5)


def ask_to_number_rows(column: Column, findings: Findings) -> None:
    """Say of a column of names that some occur twice, so that rows are numbered."""
    twice = [name for name, times in Counter(column.cells).items() if times > 1 and name]
    listed = ", ".join(f"'{name}'" for name in twice[:3])
    undo: list[Remedy] = [
        make_remedy("the rows are of one person:", {"person": column.name, "repeats": "first"})
    ]
    reason = f"{listed} occur more than once in '{column.name}', so every row is another person."
    findings.note("ignore", [column.name], reason, [column.name], undo)
