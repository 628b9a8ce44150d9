"""How a table becomes answers: the one declaration that Python, commands and the studio share.

In: what a user states. Out: a checked :class:`Reading`. Each field declares its name, type, default
and help text, and where its value comes from if nobody states it. Options of commands are made from
these fields; keywords (:class:`ReadingWords`) and fields of the studio are compared with them by a
test. Nothing here looks at a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, cast, get_args

from discreet.errors import BadUsage
from discreet.types import Int8Array, Layout, Model, OneMeans, Repeats

if TYPE_CHECKING:
    from discreet.tables.key import Key, KeyLike
    from discreet.tables.remedies import Detected
    from discreet.tables.scales import AskedSteps, CategoryScale
    from discreet.tables.values import Codes, ValueScoring

REPEATS: tuple[str, ...] = get_args(Repeats)
Origin = Literal["fixed", "names", "data"]


class Declared(NamedTuple):
    """What is said about one field of a reading.

    Attributes
    ----------
    unstated
        Where its value comes from if nobody states it. ``"fixed"``: the default, for every table.
        ``"names"``: the names of the columns, which are public. ``"data"``: values or labels of
        the file; if they ask for something else than the default, a release needs the field stated.
    metavar
        What the command line calls its value; empty for a choice or a switch.
    about
        The help text of the command line.
    release
        Whether a release takes it.
    """

    unstated: Origin
    metavar: str
    about: str
    release: bool = True


# fmt: off
READING_FIELDS: Mapping[str, Declared] = {
    "layout": Declared("names", "", "long: one answer per row. wide: one column per item. Default: "
                       "detected from the column names."),
    "person": Declared("names", "COL", "Column with the person ids."),
    "item": Declared("names", "COL", "Long tables: column with the item ids."),
    "response": Declared("names", "COL", "Long tables: column with the answers."),
    "ignore": Declared("fixed", "COL", "Wide tables: a column that is not an item (may be "
                       "repeated)."),
    "group": Declared("fixed", "COL", "A column that groups persons (may be repeated)."),
    "repeats": Declared("fixed", "", "If a person answered an item, or a judge compared a pair, "
                        "more than once: stop, or which one counts."),
    "one_means": Declared("fixed", "", "What a 1 stands for."),
    "at_least": Declared("fixed", "SCORE", "Scores of at least SCORE are right, others wrong."),
    "missing": Declared("data", "CODES", "Codes for a missing answer, such as 9,99; of one column: "
                        "Q1:9."),
    "key": Declared("data", "KEY", "The right answers: a table with item and answer, or letters: "
                    "ABDC."),
    "sheet": Declared("fixed", "NAME", "Workbooks: the sheet. Default: the only one with data."),
    "delimiter": Declared("data", "SIGN", "Text files: field separator, also tab or space. "
                          "Default: detected."),
    "header": Declared("data", "", "The first row holds no names: columns are called 1, 2, ..."),
    "order_by": Declared("fixed", "COL", "With --repeats: the column that says which answer is "
                         "first or last."),
    "model": Declared("fixed", "", "rasch: right and wrong. partial-credit, rating-scale: answers "
                      "with steps. Default: detected from the answers.", release=False),
    "steps": Declared("data", "N", "Steps of all items, where more than occur: 4; of one item: "
                      "Q1:4.", release=False),
    "lowest": Declared("data", "N", "The lowest category. Default: 0, or 1 where no 0 occurs.",
                       release=False),
    "reverse": Declared("fixed", "ITEMS", "Items whose scale runs the other way round: Q2,Q5."),
    "merge": Declared("fixed", "ITEM:A+B", "Categories that count as one, of one item or of all, "
                      "*:2+3 (may be repeated).", release=False),
}
# fmt: on
"""The fields that a user states, in order, with what is said about each."""


@dataclass(frozen=True)
class Form:
    """How a file itself is read, whatever it holds.

    Attributes
    ----------
    sheet
        Of a workbook; None takes the only one with data.
    delimiter
        Field separator of a text file; None detects it.
    header
        Whether the first row holds names.
    """

    sheet: str | None = None
    delimiter: str | None = None
    header: bool = True

    def __post_init__(self) -> None:
        if self.delimiter is not None:
            object.__setattr__(self, "delimiter", _check_delimiter(self.delimiter))


@dataclass(frozen=True)
class Reading:
    """How a table becomes answers. Its fields are the keywords of :func:`discreet.read_responses`.

    Attributes
    ----------
    layout
        "long" (one row per answer) or "wide" (one row per person, one column per item).
        By default the column names decide; where they leave a doubt, an error says so.
    person, item, response
        Column names of a long table; ``person`` also of a wide one.
    ignore
        Columns to leave out.
    group
        Columns that describe persons; they become ``groups`` and are not items.
    repeats
        What to do when a person answered an item more than once: "error", "first" or "last", in
        the order of the rows or of ``order_by``.
    one_means
        "right", or "wrong" for files where 1 marks a mistake.
    at_least
        Numbers from here on become 1, smaller ones 0. Without it answers are 0 and 1 (true and
        false), or whole numbers with at most ten categories and no gap: steps of a rating scale,
        or points.
    missing
        Codes that stand for a missing answer, such as 9 or ``[9, 99]``; compared as text, so
        that 9, 9.0 and "9" are one. By column: ``{"Q1": 9, "Q2": [98, 99]}``, with "*" for all
        the others.
    key
        Which answers are right, where the table holds what was chosen:
        ``{"Q1": "B", "Q2": ["A", "C"]}``, the path of a table with the columns item and answer,
        or letters in the order of the columns, ``"BADC"``. Items that the key does not name must
        be scored already.
    sheet
        The sheet of a workbook; by default the only one that holds data.
    delimiter
        Field separator of a text file; by default it is detected.
    header
        False for files whose first row holds no names: columns are then called "1", "2", ...
    order_by
        The column of numbers or dates by which a repeated answer is the first or the last;
        answers of one time are in the order of their rows.
    model
        ``"rasch"`` reads right and wrong answers only. Naming ``"partial-credit"`` or
        ``"rating-scale"`` says that steps are meant, also where they look like a slip: in one
        item only of a right/wrong test, or a category with less than 0.1% of an item's answers.
    steps
        How many steps items have, where more than occur: 4 for all, or by item ``{"Q1": 4}``,
        with "*" for all the others.
    lowest
        The number of the lowest category. By default 0, or 1 where no 0 occurs; it is taken off
        all answers.
    reverse
        Items whose scale runs the other way round.
    merge
        Categories that count as one, by item: ``{"Q1": "2+3"}``, with "*" for all items.
    scale
        Not a keyword: the categories of every item, once they are known.
    looking
        Not a keyword: whether values are looked at before anything is decided about them.
    listed
        Not a keyword: the public item list of a release; everything else in the table is ignored.

    Examples
    --------
    >>> Reading(missing=[9, 99], ignore="age").stated
    {'ignore': ('age',), 'missing': {'*': ('9', '99')}}
    """

    layout: Layout | None = None
    person: str | None = None
    item: str | None = None
    response: str | None = None
    ignore: str | Sequence[str] = ()
    group: str | Sequence[str] = ()
    repeats: Repeats = "error"
    one_means: OneMeans = "right"
    at_least: float | None = None
    missing: Codes = ()
    key: KeyLike = None
    sheet: str | None = None
    delimiter: str | None = None
    header: bool = True
    order_by: str | None = None
    model: Model | None = None
    steps: int | Mapping[str, int] | None = None
    lowest: int | None = None
    reverse: str | Sequence[str] = ()
    merge: Mapping[str, Any] | None = None
    scale: CategoryScale | None = None
    looking: bool = False
    listed: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self._check_choices()
        self._settle_names()
        self._settle_values()
        self._check_together()

    def _check_choices(self) -> None:
        check_choice("layout", self.layout, (None, "long", "wide"))
        check_choice("repeats", self.repeats, REPEATS)
        check_choice("one_means", self.one_means, ("right", "wrong"))

    def _settle_names(self) -> None:
        """Write lists of names as tuples, and words for separators as signs."""
        self._set(ignore=_names(self.ignore), group=_names(self.group))
        self._set(delimiter=self.form.delimiter)

    def _settle_values(self) -> None:
        """Check what values mean, and write it in one way."""
        from discreet.tables.key import make_key
        from discreet.tables.scales import make_asked
        from discreet.tables.values import make_scoring, split_missing

        asked = make_asked(self.model, self.steps, self.lowest, self.reverse, self.merge)
        self._set(**vars(asked))
        everywhere, by_column = split_missing(
            self.missing, self.at_least, any_code=bool(asked.lowest)
        )
        self._set(missing={"*": everywhere, **by_column} if everywhere else by_column)
        self._set(at_least=make_scoring(self.at_least, ()).at_least, key=make_key(self.key))

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _check_together(self) -> None:
        """Refuse fields that contradict each other."""
        if self.asked.is_said and (self.at_least is not None or self.one_means == "wrong"):
            raise BadUsage(
                "at_least= (--at-least) and one_means= (--one-means) make answers right and wrong, "
                "and model=, steps=, lowest=, reverse= and merge= are about answers with steps. "
                "Leave out one or the other."
            )
        if self.layout == "wide" and (self.item is not None or self.response is not None):
            raise BadUsage(
                "item= and response= name columns of a long table, but layout='wide' was given. "
                "Leave out one or the other."
            )
        if self.order_by is not None and self.repeats == "error":
            raise BadUsage(
                f"order_by='{self.order_by}' (--order-by) says which of repeated answers is the "
                "first and which the last; say repeats='last' or repeats='first' (--repeats) too."
            )
        if self._key.given and self.one_means == "wrong":
            raise BadUsage(
                "key= (--key) says which answers are right, one_means='wrong' (--one-means wrong) "
                "that a 1 is a mistake. Leave out one or the other."
            )

    # -- what is stated ---------------------------------------------------------------------

    @property
    def stated(self) -> dict[str, Any]:
        """The fields that differ from their defaults, by name."""
        plain = Reading()
        values = {name: getattr(self, name) for name in READING_DEFAULTS}
        return {name: value for name, value in values.items() if value != getattr(plain, name)}

    @property
    def form(self) -> Form:
        """How the file itself is read."""
        return Form(self.sheet, self.delimiter, self.header)

    @cached_property
    def asked(self) -> AskedSteps:
        """What is stated about categories."""
        from discreet.tables.scales import AskedSteps

        step_options: Any = (self.model, self.steps, self.lowest, self.reverse, self.merge)
        return AskedSteps(*step_options)

    @property
    def codes(self) -> dict[str, tuple[str, ...]]:
        """The codes for missing answers, by item; "*" for all items."""
        return cast("dict[str, tuple[str, ...]]", self.missing)

    @property
    def _key(self) -> Key:
        return cast("Key", self.key)

    @property
    def right(self) -> Mapping[str, tuple[str, ...]]:
        """The right answers by item."""
        return self._key.by_item

    @property
    def right_in_order(self) -> tuple[tuple[str, ...], ...]:
        """The right answers in the order of the columns."""
        return self._key.in_order

    @property
    def facts(self) -> tuple[str, ...]:
        """Columns beside persons and answers: groups, and the one that gives an order."""
        return (*self.group, *self.ordering)

    @property
    def ordering(self) -> tuple[str, ...]:
        """The column that repeated answers are in order of, if one is named."""
        return () if self.order_by is None else (self.order_by,)

    # -- how values become answers ----------------------------------------------------------

    @property
    def scoring(self) -> ValueScoring:
        """How values become answers, where nothing is said about their item."""
        from discreet.tables.values import ValueScoring

        return ValueScoring(self.at_least, self.codes.get("*", ()))

    @property
    def by_item(self) -> bool:
        """Whether items are scored each in its own way."""
        return bool(self.codes.keys() - {"*"} or self.right or self.scale)

    @property
    def may_have_steps(self) -> bool:
        """Whether values other than right and wrong may be categories."""
        settled = self.scale is not None or self.at_least is not None
        return not (settled or self.asked.is_binary or self.one_means == "wrong")

    @property
    def lowest_category(self) -> int:
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
        from discreet.tables.values import ValueScoring

        missing = (*self.codes.get("*", ()), *self.codes.get(item, ()))
        right = self.right.get(item)
        if right is None:
            codes = None if self.scale is None else self.scale.codes.get(item)
            return ValueScoring(self.at_least, missing, codes=codes)
        return ValueScoring(None, missing, frozenset(right))

    def score_long(self, column: Any, items: Any) -> Int8Array:
        """Return the codes of the answers of a long table; ``items`` is a dictionary beside."""
        from discreet.tables.values import drop_ignored, score_array, score_by_item

        codes = (
            score_by_item(column, items, self.scoring_of)
            if self.by_item
            else score_array(column, self.scoring)
        )
        return drop_ignored(codes, items, self.ignores) if self.listed else codes


READING_DEFAULTS: Mapping[str, Any] = {
    entry.name: entry.default for entry in fields(Reading) if entry.name in READING_FIELDS
}
"""What every field is if nobody states it."""


def check_choice(name: str, value: str | None, choices: Sequence[str | None]) -> None:
    """Refuse a word that an option does not know."""
    if value not in choices:
        allowed = " or ".join(repr(choice) for choice in choices)
        raise BadUsage(f"{name} must be {allowed}; found {value!r}.")


def _names(value: str | Sequence[str] | None) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


_DELIMITERS = {
    "tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " ",
    "blank": " ",
}  # fmt: skip
"""Words for delimiters, which shells and people find hard to type."""


def _check_delimiter(text: str) -> str:
    delimiter = _DELIMITERS.get(text.strip().lower(), text)
    if len(delimiter) != 1 or delimiter in '"\r\n' or delimiter.isalnum():
        raise BadUsage(
            f"delimiter must be one sign that parts fields, such as ';' or ',' or '|', or the "
            f"word tab or space; found {delimiter!r}."
        )
    return delimiter


class StepWords(TypedDict, total=False):
    """The keywords about answers with steps."""

    model: Model | None
    steps: int | Mapping[str, int] | None
    lowest: int | None
    reverse: str | Sequence[str]
    merge: Mapping[str, Any] | None


class ListedWords(TypedDict, total=False):
    """The keywords of a release, which is told the steps of its items elsewhere."""

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
    """The keywords of :func:`discreet.read_responses` but for the model, which a fit has itself.

    ``reading`` gives all of them in one value.
    """

    steps: int | Mapping[str, int] | None
    lowest: int | None
    merge: Mapping[str, Any] | None
    reading: Reading


class ReadingWords(FitWords, total=False):
    """The keywords of :func:`discreet.read_responses`, which whatever takes answers has too."""

    model: Model | None


def check_words(words: Mapping[str, Any]) -> None:
    """Refuse a keyword that no reader knows, and name one that is spelt alike."""
    for word in words.keys() - ReadingWords.__annotations__.keys():
        alike = get_close_matches(word, ReadingWords.__annotations__, 1)
        hint = f"did you mean {alike[0]}=?" if alike else "see discreet.read_responses"
        raise BadUsage(f"there is no keyword {word}= for reading answers; {hint}")


def join_words(words: Mapping[str, Any]) -> Reading:
    """Return the reading that keywords state; those beside ``reading`` replace its fields.

    Examples
    --------
    >>> join_words({"reading": Reading(person="Name"), "missing": 9}).stated
    {'person': 'Name', 'missing': {'*': ('9',)}}
    """
    options = dict(words)
    whole = options.pop("reading", None)
    if whole is not None and not isinstance(whole, Reading):
        raise BadUsage(f"reading= must be a discreet.Reading; found {type(whole).__name__}.")
    return Reading(**({} if whole is None else whole.stated) | options)
