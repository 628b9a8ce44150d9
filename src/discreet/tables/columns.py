"""Which column is what: long or wide, person, item, answer.

In: the column names of a table and its :class:`~discreet.coding.reading.Reading`. Out: a plan with
column numbers, or an error that names the columns and the option that decides. Of the values only
a first row is looked at that may hold answers instead of names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import zip_longest

from discreet.coding.reading import Reading
from discreet.coding.remedies import make_remedy
from discreet.coding.values import BAD, ValueScoring, score_value
from discreet.errors import BadResponses, BadUsage

_PERSON = frozenset({"person", "id", "subject", "user", "student"})
_ITEM = frozenset({"item", "question", "problem"})
_RESPONSE = frozenset({"response", "resp", "correct", "score", "answer", "outcome", "graded"})
_RESPONSE |= {"is_correct", "is_right"}
_RATER = frozenset({"rater", "raters", "rated_by", "grader", "judge"})
#: Why a release of ratings is refused.
RATED = (
    "with raters of unequal severity its totals would estimate a mixture over raters, not the "
    "thresholds of items; and raters are persons too, whom it would not protect. Release "
    "right/wrong answers, or scores without raters"
)
#: What else the columns may be called where no column has a name of these: a table of language
#: models often has the text of a prompt beside the id of its question.
_SAMPLE = frozenset({"example", "sample", "doc"})
_SUBSTITUTES = {_PERSON: frozenset({"model"}), _ITEM: _SAMPLE, _SAMPLE: frozenset({"prompt"})}
#: Beside columns of models and of questions these name what a question is about, or the question.
_TOPICS = frozenset({"subject", "id"})
_ID_SUFFIX = re.compile(r"(?<=.)[ _.-]?id$")
_MARKS = re.compile(r"[\s_.-]")
_LETTER = re.compile(r"[A-Za-z]")
_NUMBER = re.compile(r"[0-9]+(\.0)?")

#: The columns of a long table that has no row of names.
_LONG_ORDER = ("person", "item", "response")

#: Column names listed in a message; a wide table may have thousands.
_SHOWN = 12


@dataclass(frozen=True)
class LongPlan:
    """Column numbers of a long table; ``groups`` are those of the group columns.

    ``order`` holds the column that repeated answers are in order of, if there is one.
    """

    person: int
    item: int
    response: int
    groups: tuple[int, ...]
    order: tuple[int, ...] = ()


@dataclass(frozen=True)
class WidePlan:
    """Column numbers of a wide table; no person column means numbered rows."""

    person: int | None
    items: tuple[int, ...]
    groups: tuple[int, ...]
    order: tuple[int, ...] = ()


def plan_columns(names: Sequence[str], reading: Reading, location: str) -> LongPlan | WidePlan:
    """Decide the layout and find the columns.

    Parameters
    ----------
    names
        Column names in order; the first may be blank (a data frame's index).
    reading
        What the user said.
    location
        The file or frame, for messages.

    Examples
    --------
    >>> plan_columns(["Student_ID", "question", "correct"], Reading(), "answers.csv")
    LongPlan(person=0, item=1, response=2, groups=(), order=())
    >>> plan_columns(["id", "q1", "q2"], Reading(), "answers.csv")
    WidePlan(person=0, items=(1, 2), groups=(), order=())
    """
    columns = _Columns(names, reading, location)
    columns.check_named()
    if columns.layout() == "long":
        return columns.plan_long()
    return columns.plan_wide()


def name_items(names: Sequence[str], plan: LongPlan | WidePlan) -> list[str] | None:
    """Return the names of the item columns; None of a long table, which has none."""
    return None if isinstance(plan, LongPlan) else [names[number] for number in plan.items]


def expand_names(patterns: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that names or patterns stand for, each once.

    Examples
    --------
    >>> expand_names(["class", "rep*"], ["id", "rep1", "rep2", "class"])
    ('class', 'rep1', 'rep2')
    """
    matches = [
        [name for name in names if fnmatchcase(name, pattern)] if "*" in pattern else []
        for pattern in patterns
    ]
    pairs = zip(patterns, matches, strict=True)
    return tuple(dict.fromkeys(name for pattern, columns in pairs for name in columns or [pattern]))


def find_role_names(names: Sequence[str], reading: Reading) -> dict[str, tuple[str, ...]]:
    """Return, by role, the columns that could have it by their names, where none is stated."""
    columns = _Columns(names, reading, "")
    roles = {"person": _PERSON, "item": _ITEM, "response": _RESPONSE}
    by_role = {
        role: tuple(columns.names[number] for number in columns.like(words))
        for role, words in roles.items()
        if getattr(reading, role) is None
    }
    return {role: listed for role, listed in by_role.items() if listed}


def plain_name(name: str) -> str:
    """Return a name as the aliases spell it: lower case, without an "_id" at its end."""
    word = name.strip().lower()
    return _ID_SUFFIX.sub("", word)


def refuse_misspelt(listed: frozenset[str], names: Sequence[str], location: str) -> None:
    """Refuse a listed item that is absent under its name and there in another spelling.

    Its answers would be ignored without a word. Case, blanks, hyphens and dots may differ.
    """
    others = {_MARKS.sub("", name.casefold()): name for name in names if name not in listed}
    for item in sorted(listed.difference(names)) if others else ():
        spelling = others.get(_MARKS.sub("", item.casefold()))
        if spelling is not None:
            raise BadResponses(
                f"{location}: the list names the item '{item}', and the table has '{spelling}' "
                "instead, which would be ignored. Write the item as the table does."
            )


def list_column_names(names: Sequence[str]) -> str:
    """Return the names of columns for a message, the first ones of many."""
    listed = ", ".join(f"'{name}'" for name in names[:_SHOWN])
    more = len(names) - _SHOWN
    return f"{listed} and {more:,} more" if more > 0 else listed


def check_column(names: Sequence[str], option: str, name: str | None, location: str) -> None:
    """Refuse an option that names a column which is not there once."""
    if name is not None and list(names).count(name) != 1:
        how_often = "has no column" if name not in names else "has several columns"
        flag = option.replace("_", "-")
        raise BadUsage(
            f"{location} {how_often} '{name}', which {option}= (--{flag}) asks for. "
            f"Its columns are {list_column_names(names)}."
        )


def choose_column(
    names: Sequence[str], numbers: Sequence[int], option: str, meaning: str, location: str
) -> int | None:
    """Return the only column that was found for a role, or None; refuse several."""
    if len(numbers) > 1:
        listed = " and ".join(f"'{names[number]}'" for number in numbers)
        raise BadResponses(
            f"{location}: {listed} could each be the {meaning} column. Say which one is meant with "
            f"{option}=NAME (--{option} NAME)."
        ).offering(
            *(
                make_remedy(f"'{names[column]}' is meant:", {option: names[column]})
                for column in numbers
            )
        )
    return numbers[0] if numbers else None


class _Columns:
    """The columns of one table, looked at with the user's words in mind."""

    def __init__(self, names: Sequence[str], reading: Reading, location: str) -> None:
        self.names = list(names)
        self.reading = reading
        self.where = location
        self.groups = expand_names(reading.group, names)
        taken = {*reading.ignore, *self.groups, *reading.ordering}
        self.free = [number for number, name in enumerate(names) if name not in taken]

    def listed(self) -> str:
        return list_column_names(self.names)

    def check_named(self) -> None:
        """Refuse options that name a column which is not there."""
        if self.reading.layout == "transposed":
            raise BadUsage(
                f"{self.where}: a table with items in rows is read as a whole and in memory only. "
                "Write one with a row for each person."
            )
        rules = self.reading
        options = [("person", rules.person), ("item", rules.item), ("response", rules.response)]
        options += [("ignore", name) for name in rules.ignore]
        options += [("group", name) for name in self.groups]
        options += [("order_by", name) for name in rules.ordering]
        for option, name in options:
            check_column(self.names, option, name, self.where)

    def layout(self) -> str:
        reading = self.reading
        if reading.layout is not None:
            return reading.layout
        if reading.item is not None or reading.response is not None:
            return "long"
        items, responses = self.like(_ITEM), self.like(_RESPONSE)
        if not items and not responses:
            return "wide"
        if items and responses:
            return "long"
        if any(self.names[number] in reading.listed for number in self.free):
            return "wide"
        present, lacking = ("item", "answer") if items else ("answer", "item")
        option = "response" if items else "item"
        column = self.names[(items or responses)[0]]
        raise BadResponses(
            f"{self.where}: cannot tell whether this is a long or a wide table. Column '{column}' "
            f"looks like the {present} column of a long table, but no column looks like its "
            f"{lacking} column; the columns are {self.listed()}. If it is long, name the {lacking} "
            f"column with {option}=NAME (--{option} NAME); if it has one column per item, say "
            f"layout='wide' (--layout wide)."
        ).offering(make_remedy("one column per item:", {"layout": "wide"}))

    def like(self, words: frozenset[str]) -> list[int]:
        numbers = [number for number in self.free if plain_name(self.names[number]) in words]
        named = {plain_name(self.names[number]) for number in numbers}
        if words == _PERSON and named <= _TOPICS and self.like(_ITEM):
            return self.like(_SUBSTITUTES[words]) or numbers
        if numbers or words not in _SUBSTITUTES:
            return numbers
        return self.like(_SUBSTITUTES[words])

    def one(self, option: str, name: str | None, words: frozenset[str], meaning: str) -> int:
        """Return the one column with this role."""
        if name is not None:
            return self.names.index(name)
        if not self.reading.header and len(self.names) == len(_LONG_ORDER):
            return _LONG_ORDER.index(option)
        number = choose_column(self.names, self.like(words), option, meaning, self.where)
        if number is not None:
            return number
        raise BadResponses(
            f"{self.where}: no {meaning} column found; the columns are {self.listed()}. A long "
            f"table needs a person, an item and an answer column. Name this one with "
            f"{option}=NAME (--{option} NAME), or say layout='wide' (--layout wide) if there is "
            "one column per item."
        )

    def group_columns(self) -> tuple[int, ...]:
        return tuple(self.names.index(name) for name in self.groups)

    def order_column(self) -> tuple[int, ...]:
        return tuple(self.names.index(name) for name in self.reading.ordering)

    def plan_long(self) -> LongPlan:
        reading = self.reading
        plan = LongPlan(
            self.one("person", reading.person, _PERSON, "person"),
            self.one("item", reading.item, _ITEM, "item"),
            self.one("response", reading.response, _RESPONSE, "answer"),
            self.group_columns(),
            self.order_column(),
        )
        if len({plan.person, plan.item, plan.response}) < 3:
            raise BadUsage(
                f"{self.where}: person, item and response must be three different columns; "
                f"found '{self.names[plan.person]}', '{self.names[plan.item]}' and "
                f"'{self.names[plan.response]}'."
            )
        if reading.listed:
            self.refuse_raters(plan)
        return plan

    def refuse_raters(self, plan: LongPlan) -> None:
        """Refuse a release of a table with a column of raters."""
        raters = {*self.like(_RATER)} - {plan.person, plan.item, plan.response}
        if raters:
            raise BadUsage(
                f"{self.where}: column '{self.names[min(raters)]}' names raters, and a release of "
                f"ratings is refused: {RATED}. If the column is something else, leave it out with "
                "ignore= (--ignore)"
            )

    def plan_wide(self) -> WidePlan:
        person, reading = self.wide_person(), self.reading
        items = tuple(
            number
            for number in self.free
            if number != person and not reading.ignores(self.names[number])
        )
        if reading.listed:
            self.check_spelling(items)
        if not items:
            raise BadResponses(
                f"{self.where} has no item columns; the columns are {self.listed()}. A wide table "
                "needs one column of answers per item."
            )
        self.check_item_names(items)
        return WidePlan(person, items, self.group_columns(), self.order_column())

    def wide_person(self) -> int | None:
        if self.reading.person is not None:
            return self.names.index(self.reading.person)
        if self.like(_PERSON):
            return self.one("person", None, _PERSON, "person")
        # Spreadsheets made from data frames have their row labels in a first, unnamed column.
        unnamed = bool(self.free) and self.free[0] == 0 and not self.names[0]
        return 0 if unnamed and len(self.names) > 1 else None

    def check_spelling(self, items: tuple[int, ...]) -> None:
        """Refuse a table without listed items, and one that spells a listed item otherwise."""
        if not items:
            raise BadResponses(
                f"{self.where} has none of the listed items as a column; its columns are "
                f"{self.listed()}, the list names "
                f"{list_column_names(sorted(self.reading.listed))}. Write items as the table does, "
                f"and delete what stands above the row of names."
            )
        refuse_misspelt(self.reading.listed, self.names, self.where)

    def check_item_names(self, items: tuple[int, ...]) -> None:
        number_of: dict[str, int] = {}
        for number in items:
            name = self.names[number]
            if not name:
                raise BadResponses(
                    f"{self.where}: column {number + 1} has no name, so its item would have none. "
                    "Name the column in the first row, or remove it."
                )
            if name in number_of:
                raise BadResponses(
                    f"{self.where}: columns {number_of[name] + 1} and {number + 1} are both called "
                    f"'{name}'. Items must have different names; rename or remove one."
                )
            number_of[name] = number


# -- first rows that hold no names -------------------------------------------------------------


def join_names(upper: Sequence[str | None], lower: Sequence[str | None]) -> list[str]:
    """Return the names of two rows as one; a blank upper one goes on with that at its left.

    Examples
    --------
    >>> join_names(["Name", "Task 1", None, "Sum"], [None, "a)", "b)", ""])
    ['Name', 'Task 1 a)', 'Task 1 b)', 'Sum']
    """
    names, before = [], ""
    for above, below in zip_longest(upper, lower):
        first, second = (above or "").strip(), (below or "").strip()
        before = first or before
        names.append(f"{before} {second}".strip() if second else first)
    return names


def has_row_names(names: Sequence[str], records: Sequence[Sequence[str]]) -> bool:
    """Say whether rows begin with a name that the header lacks, as R's ``write.table`` does it."""
    firsts = {record[0] for record in records if record}
    return (
        bool(records)
        and all(len(record) == len(names) + 1 and record[-1].strip() for record in records)
        and len(firsts) == len(records)
    )


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
