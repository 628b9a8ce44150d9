"""What each column of a table is: item, person, group, answer, or something to leave out.

In: the names of the columns and their cells. Out: decisions and questions about columns, and the
items of a wide table; a few rows that are no persons (a key, totals) do not disturb it. And about
the layout, where names do not say it: a row for each answer, items in rows, strings of answers, and
second answers of a person, which are attempts, ratings, or items of other parts of a test.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from discreet.coding.reading import Reading
from discreet.coding.remedies import make_remedy
from discreet.coding.steps import MOST_CATEGORIES, find_shared_run
from discreet.errors import Remedy
from discreet.tables.columns import LongPlan, expand_names, find_role_names, plan_columns
from discreet.tables.dataset import turn_rows
from discreet.tables.findings import Findings
from discreet.tables.inspection.rows import CellGrid, Table
from discreet.tables.vocabulary import (
    ENOUGH_ROWS,
    SHARE,
    Column,
    bound_number,
    find_sums,
    is_no_answer,
    name_columns,
    name_words,
    order_texts,
    plain,
)
from discreet.text import count_of, name_some

#: Names that survey programs give to remarks beside an answer.
_REMARK = re.compile(r".*(\[([Oo]ther|[Cc]omment|[Ff]eedback)\]|_TEXT)")
#: Names that REDCap gives to the state of a form.
_STATE = re.compile(r"redcap_\w+|\w+_complete")
#: Different values up to which a column may part persons into groups.
FEW = 12
#: Cells of blank columns that a finding points at.
SHOWN_BLANK = 20


class ColumnRoles:
    """Finds the role of every column, and says why."""

    def __init__(
        self,
        columns: Sequence[Column],
        findings: Findings,
        rows: int,
        labels: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self._findings, self._rows, self._labels = findings, rows, labels or {}
        stated = findings.stated
        self._kept = {*stated.get("keep", ())}
        groups = expand_names(stated.get("group") or (), [column.label for column in columns])
        taken = {*stated.get("ignore", ()), *groups, stated.get("person")}
        taken |= {stated.get("order_by")}
        numbered = Counter(c.word for c in columns if c.name[-1:].isdigit())
        self._series = {word for word, times in numbered.items() if times > 2} - name_words(
            "totals"
        )
        self._free = [column for column in columns if column.label not in taken]
        self.items: list[Column] = []
        self._answered, self._sums = set[int](), set[int]()

    def find(self) -> list[Column]:
        """Return the items."""
        self.items = self._find_items() or self._find_scores()
        numbers = {column.number for column in self.items}
        self._answered = self._find_answered(numbers)
        others = [column for column in self._free if column.number not in numbers]
        self._leave_out_blank([c for c in others if c.kind == "blank" and not c.name])
        others = [c for c in others if c.name or c.kind != "blank"]
        numeric = [c for c in others if c.kind in ("steps", "points", "number")]
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
        answered = ("steps", "points", "letters", "texts")
        candidates = [c for c in self._free if c.kind in answered and self._is_plain(c)]
        kinds = Counter[str](column.kind.replace("points", "steps") for column in candidates)
        best = max(("steps", "letters", "texts"), key=lambda kind: kinds[kind])
        family = [column for column in candidates if column.kind.replace("points", "steps") == best]
        points = [column for column in candidates if column.is_points]
        if len(points) > 2:  # beside what was answered
            family = points
        elif best != "steps":  # F of true and false is a letter, and A+C of options a text
            shared = {word for column in family for word in column.words}
            family = [c for c in candidates if c.kind == best or c.words.keys() <= shared]
        items = self._drop_strangers(choose_alike(family, family) if family else [])
        items = self._drop_labelled(items)
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

    def _drop_labelled(self, items: list[Column]) -> list[Column]:
        """Return items without those whose values have labels of their own, where most share some.

        Female and male are no answers beside "no credit" and "full credit".
        """
        by_item = {c.number: {*self._labels.get(c.name, {}).values()} for c in items}
        times = Counter(label for labels in by_item.values() for label in labels)
        if not times or 2 * max(times.values()) <= len(items):
            return items

        def is_like_others(labels: Collection[str]) -> bool:
            return any(times[label] > 1 and not is_no_answer(label) for label in labels)

        return [c for c in items if not by_item[c.number] or is_like_others(by_item[c.number])]

    def _find_scores(self) -> list[Column]:
        """Return columns of numbers with too many values for categories, and ask about them."""
        scores = [c for c in self._free if c.kind == "number" and self._is_plain(c) and c.core]
        scores = [c for c in scores if not (c.is_unique and self._may_number(c))]
        if len(scores) < 3 or self._rows < ENOUGH_ROWS:
            return []
        high, labels = max(max(column.core) for column in scores), [c.label for c in scores]
        question = (
            f"{name_some(labels)} hold numbers up to {high}, more than the {MOST_CATEGORIES} "
            "categories that an item can have. From which number on is an answer right?"
        )
        change = (
            "cut them into a few categories in the file; or say from which number on an answer is "
            "right"
        )
        advice = Remedy(f"{change} with at_least= (--at-least)", asks="at_least", change=change)
        self._findings.ask("at_least", question, [advice], labels[:5])
        return scores

    def _is_unanswered(self, column: Column, items: Sequence[Column]) -> bool:
        """Say whether a blank column is an item by its name, or by its place among the items."""
        is_inside = bool(items) and items[0].number < column.number < items[-1].number
        n_blank = sum(c.kind == "blank" for c in self._free)
        if 2 * n_blank > len(items) > 2 and column.word not in self._series:
            return False  # as many columns of remarks as questions
        is_like = len(column.word) < 3 or column.word in {item.word for item in items}
        return (
            column.kind == "blank"
            and self._is_plain(column)
            and (not items or is_inside or is_like)
        )

    def _is_plain(self, column: Column) -> bool:
        other_roles = name_words("groups", "ages", "about", "totals", "ids", "names", "numbers")
        is_note = _REMARK.fullmatch(column.name) or _STATE.fullmatch(column.name)
        return bool(column.name) and not is_note and column.word not in other_roles - self._series

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
        elif column.is_called("about") or _STATE.fullmatch(column.name):
            reason = f"'{column.name}' is about the survey, not an answer."
        elif column.is_called("ages"):
            reason = f"'{column.name}' is an age."
        elif (
            column.name.strip() in ("%", "Σ", "∑", "Ø")
            or {word, plain(column.name.split("/")[0])} & name_words("totals")
        ) and (column.kind in ("steps", "points", "number") or column.is_points):
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
        ranked = sorted(unique, key=_rank_person)
        named = [column for column in ranked if _rank_person(column)[0] < _UNNAMED]
        if not named:  # the reader refuses blank cells of the column that it takes by its name
            named = [c for c in columns if self._is_declared(c) and not c.has_repeats and c.words]
        if named:
            return self._name_person(named[0], f"'{named[0].name}' tells the persons apart.")
        ids = [c for c in columns if c.is_called("ids") and c.has_repeats]
        is_timed = any(c.kind == "date" or c.is_called("attempts") for c in self._free)
        if len(ids) == 1 and is_timed and "repeats" not in self._findings.stated:
            return self._ask_attempts(ids[0])
        if ranked and (len(self._findings.stated) or self._rows >= 8 or ranked[0].number == 0):
            first = ranked[0]
            if first.kind == "many" or (first.kind == "number" and self._may_number(first)):
                reason = f"'{first.label}' has another value in every row."
                return self._name_person(first, reason)
        return None

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
        n_values = len(column.words)
        if column.is_called("names", "ids", "numbers"):
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
        elif column.is_called("groups") and not self._looks_like_item(column):
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

    def _ask_attempts(self, column: Column) -> Column:
        """Ask which attempt of a person counts, where rows have one id and different times."""
        question = f"{_tell_repeats(column)}, as in several attempts. Which attempt counts?"
        every = make_remedy("every row is a person:", {"ignore": [column.label], "person": None})
        self._findings.ask("person", question, [*_join_rows(column), every], [column.label])
        return column

    def _number_rows(self, column: Column) -> None:
        """Take every row for a person; two may share a name, but hardly an id."""
        label, reason, same = column.label, _tell_repeats(column), _join_rows(column)
        is_joined = isinstance(self._findings.options.get("sheet"), list)
        if is_joined or column.is_called("names", "numbers"):
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
        change = "it names raters: fit a table of single ratings"
        rating = [Remedy(f"{change} with --rater {label}", change=change)]
        self._findings.ask(
            "group",
            f"What is the column '{label}' ({values})? Its values differ from those of the items."
            if not self._looks_like_item(column)
            else f"Is '{label}' ({values}) a group of persons or an item?",
            [
                make_remedy("it groups the persons:", {"group": [label]}),
                make_remedy("leave it out:", {"ignore": [label]}),
                make_remedy("it is an item:", {"keep": [label]}),
                *(rating if column.is_called("raters") else []),
            ],
            [label],
        )


def _tell_repeats(column: Column) -> str:
    twice = [n for n, times in Counter(column.cells).items() if n and times > 1]
    listed = ", ".join(f"'{name}'" for name in twice[:3]) + ", ..." * (len(twice) > 3)
    verb = "occurs" if len(twice) == 1 else "occur"
    return f"{listed} {verb} more than once in '{column.label}'"


def _join_rows(column: Column) -> list[Remedy]:
    """Return how rows with one id become one person."""
    return [
        make_remedy(f"they are one person, whose {which} answers count:",
                    {"person": column.label, "repeats": which})
        for which in ("first", "last")
    ]  # fmt: skip


_UNNAMED = 4


def _rank_person(column: Column) -> tuple[int, int]:
    """Return how likely a column is the one that tells persons apart, smallest first."""
    kinds = ("ids", "names" if column.kind == "many" else "ids", "names", "numbers")
    ranks = [rank for rank, kind in enumerate(kinds) if column.is_called(kind)]
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


def list_roles(
    columns: Sequence[Column], options: Mapping[str, Any], items: Collection[str]
) -> list[str]:
    """Return the role of every column, for a preview."""
    role_of = dict.fromkeys(options.get("group") or (), "group") | dict.fromkeys(items, "item")
    unnamed = columns[0].label if columns and not columns[0].name else None
    for label in (options.get("person"), unnamed):
        role_of.setdefault(label, "person")
    return [role_of.get(column.label, "left out") for column in columns]


# -- layout ------------------------------------------------------------------------------------

#: Days and times that can be put in order.
_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?)?")
#: Kinds of names that columns of persons have in a long table.
_PERSONS = ("ids", "names", "models")
#: A table with more columns is a wide one.
MOST_LONG_COLUMNS = 30
#: Persons of a table with items in rows.
_FEWEST_TURNED = 5
#: Strings of answers: columns of the table, signs of a string, different signs.
_MOST_BESIDE, _SHORTEST, _MOST_SIGNS = 3, 5, 6


def ask_strings(grid: CellGrid, findings: Findings) -> bool:
    """Say what to do with rows of an id and a string of answers; say whether they are such."""
    cells = [row[-1] or "" for row in grid.rows if row and len(row) <= _MOST_BESIDE]
    signs, widths = {*"".join(cells)}, {len(cell) for cell in cells}
    is_like = len(widths) == 1 and min(widths) >= _SHORTEST and len(signs) <= _MOST_SIGNS
    if not is_like or len(cells) < max(3, len(grid.rows)) or not "".join(signs).isalnum():
        return False
    codes, width = "".join(sorted(signs)), min(widths)
    findings.ask(
        "layout",
        f"Every row ends with a string of {width} signs ({codes}). Is each of them an answer?",
        [
            Remedy(
                "put a comma between them, with a row of names above; or write a control file of "
                f"Winsteps with the lines NI = {width}, NAME1 = 1, ITEM1 = column of the first "
                f"answer, CODES = {codes}, DATA = name of this file, &END, and read that"
            )
        ],
    )
    return True


def ask_turned(table: Table, findings: Findings) -> Table | None:
    """Return a table with items in rows the other way round; ask where nobody said so."""
    stated, names = findings.stated, table.names
    if stated.get("layout") == "transposed":
        item, ignored = stated.get("item", names[0]), {*stated.get("ignore", ())}
    elif stated.keys() & {"layout", "person", "item"}:
        return None
    else:
        column, beside = _find_turned(name_columns(names, table.rows))
        if column is None:
            return None
        item, ignored = column.name, {*beside}
        change: dict[str, Any] = {"layout": "transposed", "item": item}
        findings.ask(
            "layout",
            f"Rows seem to be items, named by '{column.label}', and columns persons. Is that so?",
            [
                make_remedy("it is:", change | ({"ignore": beside} if beside else {})),
                make_remedy("no, every row is a person:", {"layout": "wide", "item": None}),
            ],
            [column.label],
        )
    return Table(*turn_rows(names, table.rows, names.index(item), ignored))


def _find_turned(columns: Sequence[Column]) -> tuple[Column | None, list[str]]:
    """Return the column that names the items of a table with items in rows, and others beside it.

    The column is called item, or its cells are; or the other columns are called after persons.
    None where a column names persons.
    """
    unique = [c for c in columns if c.is_unique and c.name]
    items = [c for c in unique if c.is_called("items")]
    items += [c for c in unique if {*map(plain, c.words)} <= name_words("items") | {"q"}]
    series = Counter(c.word for c in columns if c.name[-1:].isdigit())
    persons = sum(times for word, times in series.items() if word in name_words("ids", "names"))
    if persons >= max(_FEWEST_TURNED, 0.7 * len(columns)):
        items += [c for c in unique if c.number < 3 and c.kind == "many"]
    if not items or any(c.is_called("ids", "names") and c not in items for c in unique):
        return None, []
    others = [c for c in columns if c is not items[0]]
    kinds = ("steps", "letters", "texts", "points", "number")
    beside = [c.label for c in others if c.is_called("numbers", "totals") or c.kind not in kinds]
    is_table = len(others) - len(beside) >= max(_FEWEST_TURNED, 0.7 * len(others))
    return (items[0], beside) if is_table else (None, [])


#: Every row is a person after all.
_DENIED = make_remedy("no, a person:", {"layout": "wide", "item": None, "response": None})


def ask_long(table: Table, reading: Reading, findings: Findings) -> LongPlan | None:
    """Ask whether rows are single answers, where values look so and names do not say it."""
    is_stated = findings.stated.keys() & {"layout", "person"}
    if is_stated or len(table.names) > MOST_LONG_COLUMNS:
        return None
    roles = _find_long_roles(name_columns(table.names, table.rows), len(table.rows))
    if not roles:
        return None
    person, item, response = roles.values()
    findings.ask(
        "layout",
        f"Is every row one answer: of '{person}' to '{item}', in the column '{response}'?",
        [make_remedy("it is:", roles), _DENIED],
        [person, item, response],
    )
    plan = plan_columns(table.names, replace(reading, **roles), table.names[0])
    return plan if isinstance(plan, LongPlan) else None


def _find_long_roles(columns: Sequence[Column], rows: int) -> dict[str, Any]:
    """Return person, item and answer columns of a long table by its values; none if it is wide.

    The name of the person or of the item column must say what it is. Nearly every row must be
    another pair of them; attempts, raters and parts of a test tell more rows apart.
    """
    kinds = ("steps", "letters", "texts")
    scores = [c for c in columns if c.kind in kinds and 1 < len(c.words) <= FEW]
    answers = sorted((c for c in scores if c.is_called("answer_names")), key=lambda c: len(c.words))
    beside = [c for c in columns if c.is_called("attempts", "raters", "parts")]
    names = [c for c in columns if 2 < len(c.words) <= rows / 3 and c not in answers]
    names = [c for c in names if not c.is_called("attempts", "raters")]
    persons = [c for c in names if not c.is_called("items")]
    items = [c for c in names if not c.is_called(*_PERSONS)]
    pairs = [(p, i) for p, i in product(persons, items) if p is not i]
    pairs = [(p, i) for p, i in pairs if p.is_called(*_PERSONS) or i.is_called("items")]
    pairs.sort(key=lambda pair: -pair[0].is_called(*_PERSONS) - pair[1].is_called("items"))
    for person, item in pairs if answers else ():
        others = [c.cells for c in beside if c not in (person, item)]
        cells = set(zip(person.cells, item.cells, *others, strict=True))
        every = len(person.words) * len(item.words)
        if len(cells) > 0.95 * rows > 0.2 * every:
            return {"person": person.name, "item": item.name, "response": answers[0].name}
    return {}


def ask_repeats(
    cells: list[tuple[Any, ...]], table: Table, findings: Findings, reading: Reading
) -> None:
    """Ask what to do with persons who answered an item more than once."""
    pairs = [(person, item) for person, item, _ in cells]
    repeated = len(pairs) - len(set(pairs))
    if reading.repeats != "error" or reading.filter is not None or not repeated:
        return
    if "filter" in table.names:
        column = table.names.index("filter")
        often = {pair for pair, times in Counter(pairs).items() if times > 1}
        rows = zip(table.rows, pairs, strict=False)
        filters = list(dict.fromkeys(row[column] for row, pair in rows if pair in often))
        if len(filters) > 1:
            answers = [make_remedy(f"'{one}':", {"filter": one}) for one in filters]
            question = "The log has several filters of one answer. Which counts?"
            findings.ask("filter", question, answers, ["filter"])
            return
    if parts := _find_parts(cells, table):
        question = f"'{parts[0]}' and '{parts[1]}' name an item together. Which column names it?"
        change = f"add a column of both, such as {parts[0]}/{parts[1]}, and name it"
        naming = Remedy(f"{change} with item=", asks="item", change=change)
        findings.ask("item", question, [naming], parts)
        return
    order = {} if reading.order_by else _find_order(table)
    raters = [name for name in table.names if plain(name) in name_words("raters")]
    advice = f" To take raters into account, fit with --rater {raters[0]}." if raters else ""
    findings.ask(
        "repeats",
        f"{repeated:,} answers are a person's second or later answer to an item. Which one counts?"
        f"{advice}",
        [make_remedy(f"the {which}:", {"repeats": which, **order}) for which in ("first", "last")],
    )


def _find_parts(cells: list[tuple[Any, ...]], table: Table) -> list[str]:
    """Return two columns that name items together: a task, and the number of its example."""
    columns = [c for c in name_columns(table.names, table.rows) if len(c.cells) == len(cells)]
    items = [item for _, item, _ in cells]
    inner = [c.name for c in columns if c.cells == items]
    for outer in (c for c in columns if c.is_called("parts") and c.name not in inner):
        rows = {(part, *cell[:2]) for part, cell in zip(outer.cells, cells, strict=True)}
        if inner and len(rows) == len(cells):
            return [outer.name, inner[0]]
    return []


def _find_order(table: Table) -> dict[str, str]:
    """Return the column that says which attempt is the first: its number, or its time."""
    columns = [c for c in name_columns(table.names, table.rows) if None not in c.cells]
    numbers = [c for c in columns if c.is_called("attempts") and c.kind in ("steps", "number")]
    times = [c for c in columns if all(_TIME.fullmatch(cell or "") for cell in c.cells)]
    best = [*numbers, *times]
    return {"order_by": best[0].name} if best else {}
