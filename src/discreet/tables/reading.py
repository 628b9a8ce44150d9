"""How a table is to be read, and which column is what: long or wide, person, item, answer.

In: the column names of a table and what the user said. Out: a plan with column numbers, or an
error that names the columns found and the option that settles the doubt. Values are not looked
at here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict, get_args

from discreet.errors import BadResponses, BadUsage
from discreet.tables.key import KeyLike, make_key
from discreet.tables.remedies import Detected, make_remedy
from discreet.tables.scales import AskedSteps, CategoryScale, make_asked
from discreet.tables.values import (
    Codes,
    ValueScoring,
    drop_ignored,
    make_scoring,
    score_array,
    score_by_item,
    split_missing,
)
from discreet.types import Int8Array, Layout, Model, OneMeans, Repeats

_PERSON = frozenset({"person", "id", "subject", "user", "student"})
_ITEM = frozenset({"item", "question", "problem"})
_RESPONSE = frozenset({"response", "resp", "correct", "score", "answer"})
_SUBSTITUTES = {_PERSON: frozenset({"model"}), _ITEM: frozenset({"prompt"})}
"""What else the columns may be called where no column has a name of these: a table of language
models often has the text of a prompt beside the id of its question."""
_ID_SUFFIX = re.compile(r"(?<=.)[ _.-]?id$")
_MARKS = re.compile(r"[\s_.-]")

_LONG_ORDER = ("person", "item", "response")
"""The columns of a long table that has no row of names."""

REPEATS: tuple[str, ...] = get_args(Repeats)
_SHOWN = 12
"""Column names listed in a message; a wide table may have thousands."""


@dataclass(frozen=True)
class Form:
    """What the user said about the file itself, whatever it holds.

    Attributes
    ----------
    sheet
        Of a workbook; None takes the only one with data.
    delimiter
        Of a text file; None finds it out.
    header
        Whether the first row holds names.
    """

    sheet: str | None = None
    delimiter: str | None = None
    header: bool = True


@dataclass(frozen=True)
class Reading:
    """How the user wants a table to be read; see :func:`discreet.read_responses`."""

    layout: str | None = None
    person: str | None = None
    item: str | None = None
    response: str | None = None
    ignore: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    repeats: str = "error"
    one_means: str = "right"
    at_least: float | None = None
    missing: tuple[str, ...] = ()
    missing_in: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    key: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    key_in_order: tuple[tuple[str, ...], ...] = ()
    form: Form = field(default_factory=Form)
    order_by: str | None = None
    asked: AskedSteps = field(default_factory=AskedSteps)
    scale: CategoryScale | None = None
    looking: bool = False
    """Whether values are looked at before anything is decided about them."""
    listed: frozenset[str] = frozenset()
    """The public item list of a release: everything else in the table is ignored."""

    @property
    def facts(self) -> tuple[str, ...]:
        """Columns beside persons and answers: groups, and the one that gives an order."""
        return (*self.group, *self.ordering)

    @property
    def ordering(self) -> tuple[str, ...]:
        """The column that repeated answers are in order of, if one is named."""
        return () if self.order_by is None else (self.order_by,)

    @property
    def scoring(self) -> ValueScoring:
        """How values become answers, where nothing is said about their item."""
        return ValueScoring(self.at_least, self.missing)

    @property
    def codes(self) -> dict[str, tuple[str, ...]]:
        """The codes for missing answers, by item; "*" for all items."""
        everywhere = {"*": self.missing} if self.missing else {}
        return {**everywhere, **self.missing_in}

    @property
    def by_item(self) -> bool:
        """Whether items are scored each in its own way."""
        return bool(self.missing_in or self.key or self.scale)

    @property
    def may_have_steps(self) -> bool:
        """Whether values other than right and wrong may be categories."""
        settled = self.scale is not None or self.at_least is not None
        return not (settled or self.asked.is_binary or self.one_means == "wrong")

    @property
    def lowest(self) -> int:
        """The value that category 0 has in the data."""
        return 0 if self.scale is None else self.scale.lowest

    @property
    def detected(self) -> tuple[Detected, ...]:
        """What was detected in the answers and would change their categories."""
        return () if self.scale is None else self.scale.detected

    def ignores(self, item: str) -> bool:
        """Say whether answers to an item are ignored, because it is not on the public list."""
        return bool(self.listed) and item not in self.listed

    def steps_of(self, items: Sequence[str]) -> tuple[int, ...]:
        """Return the highest category of each item: 1 for right and wrong."""
        return (1,) * len(items) if self.scale is None else self.scale.steps_of(items)

    def scoring_of(self, item: str) -> ValueScoring:
        """Return how the answers to one item are scored."""
        missing = (*self.missing, *self.missing_in.get(item, ()))
        right = self.key.get(item)
        if right is None:
            codes = None if self.scale is None else self.scale.codes.get(item)
            return ValueScoring(self.at_least, missing, codes=codes)
        return ValueScoring(None, missing, frozenset(right))

    def score_long(self, column: Any, items: Any) -> Int8Array:
        """Return the codes of the answers of a long table; ``items`` is a dictionary beside."""
        codes = (
            score_by_item(column, items, self.scoring_of)
            if self.by_item
            else score_array(column, self.scoring)
        )
        return drop_ignored(codes, items, self.ignores) if self.listed else codes


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


def make_reading(
    layout: str | None = None,
    person: str | None = None,
    item: str | None = None,
    response: str | None = None,
    ignore: str | Sequence[str] = (),
    group: str | Sequence[str] | None = None,
    repeats: str = "error",
    one_means: str = "right",
    at_least: float | None = None,
    missing: Codes = (),
    key: KeyLike = None,
    sheet: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
    order_by: str | None = None,
    model: str | None = None,
    steps: Any = None,
    lowest: int | None = None,
    reverse: str | Sequence[str] = (),
    merge: Any = None,
) -> Reading:
    """Check the keywords that readers share."""
    step_options = make_asked(model, steps, lowest, reverse, merge)
    if step_options.is_said and (at_least is not None or one_means == "wrong"):
        raise BadUsage(
            "at_least= (--at-least) and one_means= (--one-means) make answers right and wrong, and "
            "model=, steps=, lowest=, reverse= and merge= are about answers with steps. Leave out "
            "one or the other."
        )
    check_choice("layout", layout, (None, "long", "wide"))
    check_choice("repeats", repeats, REPEATS)
    check_choice("one_means", one_means, ("right", "wrong"))
    if layout == "wide" and (item is not None or response is not None):
        raise BadUsage(
            "item= and response= name columns of a long table, but layout='wide' was given. "
            "Leave out one or the other."
        )
    if order_by is not None and repeats == "error":
        raise BadUsage(
            f"order_by='{order_by}' (--order-by) says which of repeated answers is the first and "
            "which the last; say repeats='last' or repeats='first' (--repeats) too."
        )
    everywhere, by_column = split_missing(missing, at_least, any_code=bool(step_options.lowest))
    scoring = make_scoring(at_least, ())
    right = make_key(key)
    if right.given and one_means == "wrong":
        raise BadUsage(
            "key= (--key) says which answers are right, one_means='wrong' (--one-means wrong) that "
            "a 1 is a mistake. Leave out one or the other."
        )
    return Reading(
        layout, person, item, response, _names(ignore), _names(group), repeats, one_means,
        scoring.at_least, everywhere, by_column, right.by_item, right.in_order,
        make_form(sheet, delimiter, header), order_by, step_options,
    )  # fmt: skip


def check_choice(name: str, value: str | None, choices: Sequence[str | None]) -> None:
    """Refuse a word that an option does not know."""
    if value not in choices:
        allowed = " or ".join(repr(choice) for choice in choices)
        raise BadUsage(f"{name} must be {allowed}; found {value!r}.")


def _names(value: str | Sequence[str] | None) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


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
    """Return the one column that was found for a role, if any; two are too many."""
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
        taken = {*reading.ignore, *reading.facts}
        self.free = [number for number, name in enumerate(names) if name not in taken]

    def listed(self) -> str:
        return list_column_names(self.names)

    def check_named(self) -> None:
        """Refuse options that name a column which is not there."""
        rules = self.reading
        options = [("person", rules.person), ("item", rules.item), ("response", rules.response)]
        options += [("ignore", name) for name in rules.ignore]
        options += [("group", name) for name in rules.group]
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
        if numbers or words not in _SUBSTITUTES:
            return numbers
        return self.like(_SUBSTITUTES[words])

    def one(self, option: str, name: str | None, words: frozenset[str], meaning: str) -> int:
        """Return the one column with this role."""
        if name is not None:
            return self.names.index(name)
        if not self.reading.form.header and len(self.names) == len(_LONG_ORDER):
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
        return tuple(self.names.index(name) for name in self.reading.group)

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
        return plan

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
                f"{list_column_names(sorted(self.reading.listed))}. Write items as the table does."
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


_DELIMITERS = {
    "tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " ",
    "blank": " ",
}  # fmt: skip
"""Words for delimiters, which shells and people find hard to type."""


def make_form(sheet: str | None, delimiter: str | None, header: bool) -> Form:
    """Check what was said about a file itself."""
    if delimiter is not None:
        delimiter = _DELIMITERS.get(delimiter.strip().lower(), delimiter)
        if len(delimiter) != 1 or delimiter in '"\r\n' or delimiter.isalnum():
            raise BadUsage(
                f"delimiter must be one sign that parts fields, such as ';' or ',' or '|', or the "
                f"word tab or space; found {delimiter!r}."
            )
    return Form(sheet, delimiter, header)


class StepWords(TypedDict, total=False):
    """The keywords about answers with steps."""

    model: Model | None
    steps: int | Mapping[str, int] | None
    lowest: int | None
    reverse: str | Sequence[str]
    merge: Mapping[str, Any] | None


class ListedWords(TypedDict, total=False):
    """The keywords of answers whose steps are told elsewhere."""

    layout: Layout | None
    person: str | None
    item: str | None
    response: str | None
    ignore: str | Sequence[str]
    group: str | Sequence[str] | None
    repeats: Repeats
    one_means: OneMeans
    at_least: float | None
    missing: Codes
    key: KeyLike
    sheet: str | None
    delimiter: str | None
    header: bool
    order_by: str | None
    reverse: str | Sequence[str]


class FitWords(ListedWords, total=False):
    """The keywords of :func:`discreet.read_responses` but for the model, which a fit has itself."""

    steps: int | Mapping[str, int] | None
    lowest: int | None
    merge: Mapping[str, Any] | None


class ReadingWords(FitWords, total=False):
    """The keywords of :func:`discreet.read_responses`, which whatever takes answers has too."""

    model: Model
