"""What each column of a wide table is: item, person, group, or something to leave out.

In: the names of the columns and their cells. Out: decisions and questions about columns, and the
items. A few rows that are no persons (a key, totals) do not disturb it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import product
from typing import Any, Literal

import numpy as np

from discreet.errors import Remedy
from discreet.tables.columns import expand_names, find_role_names
from discreet.tables.reading import Reading
from discreet.tables.remedies import Findings, make_remedy
from discreet.tables.scales import MOST_CATEGORIES, find_shared_run
from discreet.tables.values import MISSING_WORDS, as_number, letter_column, spell
from discreet.tables.vocabulary import (
    ABOUT,
    AGES,
    ANSWER_NAMES,
    ATTEMPTS,
    GROUPS,
    IDS,
    ITEMS,
    MODELS,
    NAMES,
    NO_ANSWER,
    NUMBERS,
    POINTS,
    TOTALS,
    order_texts,
    plain,
)
from discreet.text import count_of

Kind = Literal["blank", "steps", "halves", "number", "letters", "texts", "date", "many"]

_DATE = re.compile(
    r"\d{4}-\d\d?-\d\d?([ T].*)?|\d\d?[./-]\d\d?[./-](\d{4}|\d\d)([ ,].*)?|\d\d?:\d\d(:\d\d)?"
    r"|\d\d? \w+ \d{4}.*|\d+ (mins?|hours?|secs?|Minuten|Stunden)\b.*|\w+ \d\d?, \d{4}.*"
)
_LETTERS = re.compile(r"[A-Ha-h]([,;/+& ]*[A-Ha-h])*")
_CODE = re.compile(r"-[0-9]+|[79]{1,4}|8{1,4}|9[0-9]|7[0-9]|99[0-9]|999[0-9]")
_PERCENT = re.compile(r"-?[\d.,]+ ?%")
#: Names that survey programs give to remarks beside an answer.
_REMARK = re.compile(r".*(\[([Oo]ther|[Cc]omment|[Ff]eedback)\]|_TEXT)")
_GONE = MISSING_WORDS | NO_ANSWER
#: Different values up to which a column may part persons into groups.
FEW = 12
#: Rows from which on values say that a column is no item.
ENOUGH_ROWS = 8
#: Share of a column's cells that must be of one kind.
SHARE = 0.8
#: Cells of blank columns that a finding points at.
SHOWN_BLANK = 20
#: Numbers from here on are no answers and no codes; the reader refuses such a cell.
LARGEST = Decimal(10**15)


#: Rows and cells that are looked at; of very wide tables a few rows.
MOST_ROWS, MOST_CELLS, LEAST_ROWS = 3_000, 300_000, 40


def limit_rows(width: int) -> int:
    """Return how many rows of so many columns are looked at."""
    return min(MOST_ROWS, max(LEAST_ROWS, MOST_CELLS // max(width, 1)))


def bound_number(word: str) -> Decimal | None:
    """Return the number that a word spells, at most ``LARGEST`` away from zero; None of others.

    Numbers of thousands of digits cannot be written or divided.

    Examples
    --------
    >>> bound_number("2"), bound_number("-1e900000") == -LARGEST, bound_number("two")
    (Decimal('2'), True, None)
    """
    number = as_number(word)
    return None if number is None else max(-LARGEST, min(LARGEST, Decimal(number)))


def is_code(number: float | Decimal) -> bool:
    """Say whether a number looks like a code for a missing answer."""
    is_whole = -LARGEST < number < LARGEST and number == int(number)
    return is_whole and _CODE.fullmatch(str(int(number))) is not None


def drop_codes_above(numbers: Sequence[int]) -> list[int]:
    """Return whole numbers in order without negative ones, and without codes behind a gap.

    Examples
    --------
    >>> drop_codes_above([-1, 0, 1, 2, 98, 99])
    [0, 1, 2]
    """
    scale = [number for number in numbers if number >= 0]
    for cut in range(1, len(scale)):
        if scale[cut] - scale[cut - 1] > 1 and all(map(is_code, scale[cut:])):
            return scale[:cut]
    return scale


@dataclass(frozen=True)
class Column:
    """One column: its number, its name, and its cells, or how often each of them occurs."""

    number: int
    name: str
    cells: Collection[str | None]

    @property
    def label(self) -> str:
        """What a reading calls it; a column without a name goes by its letter."""
        return self.name or f"column {letter_column(self.number)}"

    @property
    def word(self) -> str:
        """Its name in plain letters."""
        word = plain(self.name)
        return word.removesuffix("id") if word.endswith(("erid", "entid", "onid")) else word

    @cached_property
    def words(self) -> Counter[str]:
        """How often each value occurs, but for missing ones."""
        words: Counter[str] = Counter()
        for cell, times in Counter(self.cells).items():
            if cell is not None and cell.lower() not in _GONE:
                words[spell(cell)] += times
        return words

    @property
    def is_unique(self) -> bool:
        """Whether no two cells are the same, but for a few at the end that are blank."""
        n_filled = sum(cell is not None for cell in self.cells)
        return n_filled >= max(3, 0.9 * len(self.cells) - 3) and not self.has_repeats

    @property
    def has_repeats(self) -> bool:
        """Whether a value occurs twice; blank cells are none."""
        filled = [cell for cell in self.cells if cell is not None]
        return len(set(filled)) < len(filled)

    @cached_property
    def core(self) -> frozenset[int]:
        """The whole numbers of a column of numbers, without codes for missing answers."""
        numbers = sorted({int(n) for w in self.words if (n := bound_number(w)) is not None})
        return frozenset(drop_codes_above(numbers))

    @cached_property
    def kind(self) -> Kind:
        """What most of its cells are."""
        total = sum(self.words.values())
        if not total:
            return "blank"
        if self._share(lambda word: _DATE.fullmatch(word) is not None) >= SHARE:
            return "date"
        if (
            self._share(lambda word: bound_number(word) is not None or bool(_PERCENT.match(word)))
            > 0.9
        ):
            return self._kind_of_numbers()
        if self._share(lambda word: len(word) == 1 and bool(_LETTERS.fullmatch(word))) >= SHARE:
            return "letters"
        is_small = len(self.words) <= MOST_CATEGORIES or 4 * len(self.words) < total <= 400
        return "texts" if is_small and 2 * len(self.words) <= total + 2 else "many"

    @property
    def percentages(self) -> float:
        """The share of cells with a percent sign."""
        return self._share(lambda word: bool(_PERCENT.match(word))) if self.words else 0.0

    @cached_property
    def is_points(self) -> bool:
        """Whether its cells are points of how many, such as 1.00 / 2."""
        return bool(self.words) and self._share(lambda w: bool(POINTS.fullmatch(w))) >= SHARE

    def _share(self, test: Callable[[str], bool]) -> float:
        hits = sum(n for word, n in self.words.items() if test(word))
        return float(hits / sum(self.words.values()))

    def _kind_of_numbers(self) -> Kind:
        numbers = [n for word in self.words if (n := bound_number(word)) is not None]
        if not numbers or (any(n != int(n) for n in numbers[:50]) and not self._is_nearly_whole()):
            points = [n for n in numbers if n % 1 or n in self.core]
            is_points = bool(points) and min(points) >= 0 and all(2 * n % 1 == 0 for n in points)
            return "halves" if is_points and max(points) < MOST_CATEGORIES / 2 else "number"
        core = self.core
        is_scale = bool(core) and max(core) - min(core) < MOST_CATEGORIES and max(core) < 20
        return "steps" if is_scale else "number"

    def _is_nearly_whole(self) -> bool:
        """Say whether hardly a row, such as means, holds decimals."""
        broken = sum(
            n for w, n in self.words.items() if (v := bound_number(w)) is not None and v % 1
        )
        total = sum(self.words.values())
        return broken <= max(1, total // 12) < total


class ColumnRoles:
    """Finds the role of every column, and says why."""

    def __init__(self, columns: Sequence[Column], findings: Findings, rows: int) -> None:
        self._findings, self._rows = findings, rows
        stated = findings.stated
        self._kept = {*stated.get("keep", ())}
        groups = expand_names(stated.get("group") or (), [column.label for column in columns])
        taken = {*stated.get("ignore", ()), *groups, stated.get("person")}
        taken |= {stated.get("order_by")}
        numbered = Counter(c.word for c in columns if c.name[-1:].isdigit())
        self._series = {word for word, times in numbered.items() if times > 2} - TOTALS
        self._free = [column for column in columns if column.label not in taken]
        self.items: list[Column] = []
        self._answered, self._sums = set[int](), set[int]()

    def find(self) -> list[Column]:
        """Return the items."""
        self.items = self._find_items()
        numbers = {column.number for column in self.items}
        self._answered = self._find_answered(numbers)
        others = [column for column in self._free if column.number not in numbers]
        self._leave_out_blank([c for c in others if c.kind == "blank" and not c.name])
        others = [c for c in others if c.name or c.kind != "blank"]
        numeric = [c for c in others if c.kind in ("steps", "halves", "number")]
        self._sums = find_sums(numeric, self.items, self._rows)
        others = [column for column in others if not self._leave_out_plain(column)]
        person = None if "person" in self._findings.stated else self._choose_person(others)
        for column in others:
            if column is not person:
                self._place(column)
        return self.items

    def _find_answered(self, items: set[int]) -> set[int]:
        """Return the columns at the left of items, where these score what stands there."""
        left = [c for c in self._free if c.number + 1 in items and c.number not in items]
        texts = [c for c in left if c.kind in ("texts", "letters", "many") and self._is_plain(c)]
        is_pair = 2 < len(left) == len(items) < 2 * len(texts)
        return {column.number for column in left} if is_pair else set()

    # -- items -----------------------------------------------------------------------------

    def _find_items(self) -> list[Column]:
        candidates = [column for column in self._free if self._may_be_item(column)]
        kinds = Counter[str](column.kind.replace("halves", "steps") for column in candidates)
        best = max(("steps", "letters", "texts"), key=lambda kind: kinds[kind])
        family = [column for column in candidates if column.kind.replace("halves", "steps") == best]
        points = [column for column in candidates if column.is_points]
        if len(points) > 2:  # beside what was answered
            family = points
        elif best != "steps":  # F of true and false is a letter, and A+C of options a text
            shared = {word for column in family for word in column.words}
            family = [c for c in candidates if c.kind == best or c.words.keys() <= shared]
        items = self._drop_strangers(choose_alike(family, family) if family else [])
        sums = find_sums(items, items, self._rows)
        kept = [
            column
            for column in self._free
            if column.label in self._kept or self._is_unanswered(column, items)
        ]  # an item that nobody answered keeps its column
        chosen = {column.number: column for column in [*items, *kept] if column.number not in sums}
        return [chosen[number] for number in sorted(chosen)]

    def _drop_strangers(self, items: list[Column]) -> list[Column]:
        """Return items without columns before or behind a numbered series that most belong to."""
        series = [column.number for column in items if column.word in self._series]
        if len(series) < max(4, 0.7 * len(items)):
            return items
        names = Counter(column.word for column in items)
        return [
            column
            for column in items
            if names[column.word] > 1
            or len(column.word) < 3
            or min(series) < column.number < max(series)
        ]

    def _is_unanswered(self, column: Column, items: Sequence[Column]) -> bool:
        """Say whether a blank column is an item by its name, or by its place among the items."""
        is_inside = bool(items) and items[0].number < column.number < items[-1].number
        is_like = len(column.word) < 3 or column.word in {item.word for item in items}
        return (
            column.kind == "blank"
            and self._is_plain(column)
            and (not items or is_inside or is_like)
        )

    def _may_be_item(self, column: Column) -> bool:
        may_be = column.kind in ("steps", "halves", "letters", "texts")
        return may_be and self._is_plain(column)

    def _is_plain(self, column: Column) -> bool:
        known = GROUPS | AGES | ABOUT | TOTALS | IDS | NAMES | NUMBERS
        is_known = column.word in known - self._series or bool(_REMARK.fullmatch(column.name))
        return bool(column.name) and not is_known

    # -- other columns -----------------------------------------------------------------------

    def _leave_out_blank(self, columns: Sequence[Column]) -> None:
        """Leave out columns without a name and without an entry; one note for all of them."""
        if columns:
            labels = [column.label for column in columns]
            reason = f"{count_of(len(labels), 'column')} without a name and without an entry."
            self._findings.note("ignore", labels, reason, labels[:SHOWN_BLANK])

    def _leave_out_plain(self, column: Column) -> bool:
        """Leave out what is surely no item and no person; say whether it was."""
        word, reason = column.word, ""
        if _REMARK.fullmatch(column.name):
            reason = f"'{column.name}' holds remarks."
        elif column.kind == "blank":
            return False
        elif word in ABOUT:
            reason = f"'{column.name}' is about the survey, not an answer."
        elif word in AGES:
            reason = f"'{column.name}' is an age."
        elif (
            column.name.strip() in ("%", "Σ", "∑", "Ø")
            or {word, plain(column.name.split("/")[0])} & TOTALS
        ) and (column.kind in ("steps", "halves", "number") or column.is_points):
            reason = f"'{column.name}' holds totals or marks."
        elif column.percentages >= SHARE:
            reason = f"'{column.name}' holds percentages."
        elif column.number in self._sums:
            reason = f"'{column.name}' is the sum of items."
        elif column.number in self._answered:
            reason = f"'{column.name}' holds the answer that the next column scores."
        elif column.kind == "date":
            reason = f"'{column.name}' holds dates or times."
        elif column.kind == "steps" and len(column.words) == 1:
            reason = f"'{column.name}' has the same value in every row."
        if not reason:
            return False
        self._leave_out(column, reason)
        return True

    def _leave_out(self, column: Column, reason: str) -> None:
        undo = make_remedy(f"'{column.label}' is an item after all:", {"keep": [column.label]})
        self._findings.note("ignore", [column.label], reason, [column.label], [undo])

    def _choose_person(self, columns: Sequence[Column]) -> Column | None:
        """Return the column that tells persons apart, the best of those that could."""
        unique = [column for column in columns if column.is_unique and column.kind != "blank"]
        turned = [column for column in unique[:1] if column.word in ITEMS]
        if turned and len(unique) == 1:
            return self._ask_turned(turned[0])
        ranked = sorted(unique, key=_rank_person)
        named = [column for column in ranked if _rank_person(column)[0] < _UNNAMED]
        if not named:  # the reader refuses blank cells of the column that it takes by its name
            named = [c for c in columns if self._is_declared(c) and not c.has_repeats and c.words]
        if named:
            return self._name_person(named[0], f"'{named[0].name}' tells the persons apart.")
        if ranked and (len(self._findings.stated) or self._rows >= 8 or ranked[0].number == 0):
            first = ranked[0]
            if first.kind == "many" or (first.kind == "number" and self._may_number(first)):
                reason = f"'{first.label}' has another value in every row."
                return self._name_person(first, reason)
        return None

    def _ask_turned(self, column: Column) -> Column:
        self._findings.ask(
            "person",
            f"Rows are named by '{column.name}'. Is every row an item, and every column a person?",
            [
                make_remedy("no, every row is a person:", {"person": column.name}),
                Remedy("yes: turn the table round, with a row for each person, and read it again"),
            ],
            [column.name],
        )
        return column

    def _may_number(self, column: Column) -> bool:
        """Say whether numbers look like those of persons: at the left, of one length or a run."""
        numbers = [n for word in column.words if (n := bound_number(word)) is not None]
        if any(n % 1 for n in numbers) or any(item.number < column.number for item in self.items):
            return False
        is_run = max(numbers) - min(numbers) < 3 * len(numbers)
        return is_run or len({len(word) for word in column.words}) == 1

    def _name_person(self, column: Column, reason: str) -> Column:
        if column.name:
            if self._is_declared(column):
                self._findings.decide("person", column.name, reason, is_public=True)
            else:
                self._findings.note("person", column.name, reason, [column.name])
        return column

    def _is_declared(self, column: Column) -> bool:
        """Say whether the reader takes a column for the persons by its name."""
        by_name = find_role_names([one.name for one in self._free], Reading()).get("person", ())
        return bool(by_name == (column.name,))

    def _place(self, column: Column) -> None:
        """Leave a column out, make it a group, or ask."""
        word, n_values = column.word, len(column.words)
        if word in NAMES or word in IDS or word in NUMBERS:
            if column.has_repeats and "person" not in {
                **self._findings.stated,
                **self._findings.options,
            }:
                self._number_rows(column)
            else:
                self._leave_out(column, f"'{column.label}' names or numbers persons.")
        elif column.kind == "many" or (column.kind == "number" and n_values > FEW):
            what = "numbers" if column.kind == "number" else "texts"
            self._leave_out(column, f"'{column.label}' has many different {what}.")
        elif n_values <= 1:
            what = "the same value in every row" if n_values else "no entry"
            self._leave_out(column, f"'{column.label}' has {what}.")
        elif word in GROUPS and not self._looks_like_item(column):
            reason = f"'{column.label}' groups the persons."
            undo = make_remedy("leave it out instead:", {"ignore": [column.label]})
            self._findings.note("group", [column.label], reason, [column.label], [undo])
        elif self._is_plain(column) and (
            self._rows < ENOUGH_ROWS or "key" in self._findings.stated
        ):
            self.items.append(column)  # too few rows to say more, or a key that knows the items
            self.items.sort(key=lambda item: item.number)
        else:
            self._ask_role(column)

    def _number_rows(self, column: Column) -> None:
        """Take every row for a person; two may share a name, but hardly an id."""
        label, twice = (
            column.label,
            [n for n, times in Counter(column.cells).items() if n and times > 1],
        )
        listed = ", ".join(f"'{name}'" for name in twice[:3]) + ", ..." * (len(twice) > 3)
        reason = f"{listed} {'occurs' if len(twice) == 1 else 'occur'} more than once in '{label}'"
        same = [
            make_remedy(f"they are one person, whose {which} answers count:",
                        {"person": label, "repeats": which})
            for which in ("first", "last")
        ]  # fmt: skip
        is_joined = isinstance(self._findings.options.get("sheet"), list)
        if is_joined or column.word in NAMES | NUMBERS:
            reason += "; every row is another person."
            self._findings.note("ignore", [label], reason, [label], same)
        else:
            answers = [make_remedy("every row is another person:", {"ignore": [label]}), *same]
            question = f"{reason}. Are these rows of one person?"
            self._findings.ask("person", question, answers, [label])

    def _looks_like_item(self, column: Column) -> bool:
        if not self.items or column.kind != self.items[0].kind:
            return False
        return bool(choose_alike([column], [*self.items, column]))

    def _ask_role(self, column: Column) -> None:
        values = ", ".join(f"'{word}'" for word in list(column.words)[:4])
        label = column.label
        self._findings.ask(
            "group",
            f"What is the column '{label}' ({values})? Its values differ from those of the items."
            if not self._looks_like_item(column)
            else f"Is '{label}' ({values}) a group of persons or an item?",
            [
                make_remedy("it groups the persons:", {"group": [label]}),
                make_remedy("leave it out:", {"ignore": [label]}),
                make_remedy("it is an item:", {"keep": [label]}),
            ],
            [label],
        )


_UNNAMED = 4


def _rank_person(column: Column) -> tuple[int, int]:
    """Return how likely a column is the one that tells persons apart, smallest first."""
    kinds = (IDS, NAMES if column.kind == "many" else (), NAMES, NUMBERS)
    ranks = [rank for rank, words in enumerate(kinds) if column.word in words]
    return min(ranks, default=_UNNAMED), column.number


def choose_alike(columns: Sequence[Column], family: Sequence[Column]) -> list[Column]:
    """Return the columns that share their values with others of a family.

    Not a column of texts that has few of the values, and no name of the items' series.
    """
    shared = find_shared_run([column.core for column in family])
    sets = Counter(_fold(column) for column in family if column.kind == "texts")
    names = Counter(column.word for column in family)
    is_series, most = max(names.values()) > 2, max(len(column.words) for column in family)

    def belongs(column: Column) -> bool:
        if column.kind == "letters":
            return True
        if column.kind != "texts":
            is_near = bool(column.core & shared) and max(column.core) <= max(shared) + 4
            return not shared or is_near
        if names[column.word] < 2 and is_series and 2 * len(column.words) <= most:
            return False
        words = _fold(column)
        others = [other for other, times in sets.items() if times > (other == words)]
        is_alike = any(2 * len(words & other) >= len(words) for other in others)
        return is_alike or order_texts(column.words) is not None

    return [column for column in columns if belongs(column)]


def _fold(column: Column) -> frozenset[str]:
    return frozenset(word.casefold() for word in column.words)


def find_sums(columns: Sequence[Column], items: Sequence[Column], rows: int) -> set[int]:
    """Return the numbers of columns that are the sum of all items, or of neighbours among them.

    Of all in nearly every row; of three or more items next to each other in every row.
    """
    numbers = {c.number: np.array([_value(cell) for cell in c.cells]) for c in [*items, *columns]}
    if not items or any(len(values) != rows for values in numbers.values()):
        return set()
    total, inside = sum(numbers[c.number] for c in items), {c.number for c in items}
    highest = {n: float(values.max(initial=0)) for n, values in numbers.items()}
    typical = sorted(highest[n] for n in inside)[len(inside) // 2]
    small = [numbers[c.number] for c in items if highest[c.number] <= typical]
    before = np.cumsum([np.zeros(rows), *small], axis=0)
    places = {cumulated.tobytes(): n for n, cumulated in enumerate(before)}

    def is_total(number: int) -> bool:
        filled = numbers[number] != 0
        hits = (numbers[number] * (1 + (number in inside)) == total)[filled].sum()
        return len(inside | {number}) > 3 and filled.sum() >= 5 and hits >= 0.9 * filled.sum()

    def is_part(number: int) -> bool:
        if highest[number] <= typical or rows < ENOUGH_ROWS:
            return False
        ends = enumerate((start + numbers[number]).tobytes() for start in before)
        return any(places.get(end, 0) - n >= 3 for n, end in ends)

    return {c.number for c in columns if is_total(c.number) or is_part(c.number)}


@lru_cache(maxsize=4096)
def _value(cell: str | None) -> float:
    number = None if cell is None else bound_number(cell)
    return 0.0 if number is None else float(number)


def find_long_roles(columns: Sequence[Column], rows: int) -> dict[str, Any]:
    """Return person, item and answer columns of a long table by its values; none if it is wide."""
    few = [
        c for c in columns if c.kind in ("steps", "letters", "texts") and 1 < len(c.words) <= FEW
    ]
    answers = [c for c in few if c.word in ANSWER_NAMES]
    names = [c for c in columns if 2 < len(c.words) <= rows / 3 and c not in answers]
    persons = [c for c in names if c.word in IDS | NAMES | MODELS]
    attempts = [c.cells for c in columns if c.word in ATTEMPTS]
    for person, item in product(persons, names) if len(answers) == 1 else ():
        pairs = set(zip(person.cells, item.cells, *attempts, strict=True))
        every = len(person.words) * len(item.words)
        if person is not item and len(pairs) > 0.95 * rows > 0.2 * every:
            return {"person": person.name, "item": item.name, "response": answers[0].name}
    return {}


def name_columns(names: Sequence[str], rows: Sequence[Sequence[str | None]]) -> list[Column]:
    """Return the columns of rows."""
    return [
        Column(number, name, [row[number] if number < len(row) else None for row in rows])
        for number, name in enumerate(names)
    ]


def list_roles(
    columns: Sequence[Column], options: Mapping[str, Any], items: Collection[str]
) -> list[str]:
    """Return the role of every column, for a preview."""
    role_of = dict.fromkeys(options.get("group") or (), "group") | dict.fromkeys(items, "item")
    unnamed = columns[0].label if columns and not columns[0].name else None
    for label in (options.get("person"), unnamed):
        role_of.setdefault(label, "person")
    return [role_of.get(column.label, "left out") for column in columns]
