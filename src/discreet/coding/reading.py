"""How a table becomes answers: the one value that Python, commands and the studio make.

In: what a user states. Out: a checked :class:`Reading`. What each field is for stands in
:mod:`discreet.coding.remedies`, from which commands make their options. A test compares the
keywords (:class:`ReadingWords`), the options and the fields of the studio with these fields.
Nothing here looks at a table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TypedDict, cast, get_args

from discreet.choices import (
    Blank,
    Invalid,
    Model,
    OneMeans,
    PlainDict,
    PlainMapping,
    Repeats,
    TableLayout,
)
from discreet.coding.keys import Key, KeyFile, KeyLike, make_key
from discreet.coding.remedies import Detected, TableFinding, refuse_questions
from discreet.coding.steps import AskedSteps, CategoryScale, make_asked, write_merge
from discreet.coding.values import (
    BAD,
    EVERYWHERE,
    MISSING,
    Codes,
    ValueScoring,
    make_scoring,
    split_missing,
)
from discreet.errors import BadUsage, Remedy, name_source
from discreet.hints import suggest
from discreet.text import name_some

REPEATS: tuple[str, ...] = get_args(Repeats)


@dataclass(frozen=True)
class Form:
    """How a file itself is read, whatever it holds.

    Attributes
    ----------
    sheet
        Of a workbook; None takes the only one with data, several are joined.
    delimiter
        Field separator of a text file; None detects it.
    header
        Whether the first row holds names.
    skip_rows
        Rows above that one which are left out.
    header_rows
        Rows that hold names, which are joined.
    """

    sheet: str | Sequence[str] | None = None
    delimiter: str | None = None
    header: bool = True
    skip_rows: int = 0
    header_rows: int = 1

    def __post_init__(self) -> None:
        if self.delimiter is not None:
            object.__setattr__(self, "delimiter", _check_delimiter(self.delimiter))
        sheets = _names(self.sheet)
        object.__setattr__(self, "sheet", sheets[0] if len(sheets) == 1 else sheets or None)


@dataclass(frozen=True)
class Reading:
    """How a table becomes answers. Its fields are the keywords of :func:`discreet.read_responses`.

    Attributes
    ----------
    layout
        "long" (one row per answer), "wide" (one row per person, one column per item), or
        "transposed" (one row per item, which the first column or ``item`` names, one column per
        person). By default the column names decide; where they leave a doubt, an error says so.
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
        false), or whole numbers with at most eleven categories and no gap: steps of a rating scale,
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
        The sheet of a workbook; by default the only one that holds data. Several sheets with the
        same columns are read as one table, and the group ``sheet`` says which one a row is from.
    delimiter
        Field separator of a text file; by default it is detected.
    header
        False for files whose first row holds no names: columns are then called "1", "2", ...
    skip_rows
        Rows above the row of names that are left out: titles, dates.
    header_rows
        Rows that hold names: with 2, "Task 1" above "a)" is "Task 1 a)", and a blank upper cell
        goes on with the name at its left.
    drop_rows
        Rows of a wide table that are no persons: the text of one of their cells (``"Total"``),
        their number below the names counted from 1, ``"blank"`` for rows without any entry, or
        ``"short"`` for rows of a text file with fewer fields than names: notes.
    key_row
        The row that holds the right answers, by the text of one of its cells or its number. It
        becomes the key and is no person.
    keep
        Columns of a wide table that are items, whatever :func:`discreet.inspect_table` takes them
        for.
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
    categories
        Texts that are categories, from the lowest to the highest: ``["never", "sometimes",
        "always"]``. Of several such lists each item has the one that holds its answers.
    blank
        "missing", or "wrong" for tables in which only right answers are ticked.
    invalid
        What to do with a value that is no answer: "error", or "missing" to read it as missing.
    filter
        Logs of the Language Model Evaluation Harness: the filter whose answer counts.
    merge
        Categories that count as one, by item: ``{"Q1": "2+3"}``, with "*" for all items.
    assumed
        Not a keyword: what an inspection of the table decided, which no release takes.
    unclear
        Not a keyword: questions of an inspection to which nothing is proposed.
    scale
        Not a keyword: the categories of every item, once they are known.
    looking
        Not a keyword: whether values are looked at before anything is decided about them.
    listed
        Not a keyword: the public item list of a release; everything else in the table is ignored.
    carried
        Not a keyword: whether a calibration was read so, whose items need not all be here.
    sums
        Not a keyword: whether every repeated answer is kept, as an item of its own.

    Examples
    --------
    >>> Reading(missing=[9, 99], ignore="age").stated
    {'ignore': ('age',), 'missing': {'*': ('9', '99')}}
    """

    layout: TableLayout | None = None
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
    sheet: str | Sequence[str] | None = None
    delimiter: str | None = None
    header: bool = True
    skip_rows: int = 0
    header_rows: int = 1
    drop_rows: int | str | Sequence[int | str] = ()
    key_row: int | str | None = None
    keep: str | Sequence[str] = ()
    order_by: str | None = None
    model: Model | None = None
    steps: int | Mapping[str, int] | None = None
    lowest: int | None = None
    reverse: str | Sequence[str] = ()
    categories: Sequence[str] | Sequence[Sequence[str]] = ()
    blank: Blank = "missing"
    invalid: Invalid = "error"
    filter: str | None = None
    merge: PlainMapping | None = None

    assumed: tuple[Detected, ...] = field(default=(), compare=False, repr=False)
    unclear: tuple[TableFinding, ...] = field(default=(), compare=False, repr=False)
    scale: CategoryScale | None = None
    looking: bool = False
    listed: frozenset[str] = frozenset()
    carried: bool = False
    sums: bool = False

    def __post_init__(self) -> None:
        check_choice("layout", self.layout, (None, *get_args(TableLayout)))
        if self.repeats == "sum":
            raise BadUsage(
                "repeats='sum' (--repeats sum) counts the right ones of several samples of an "
                "item, and only fit and leaderboard take such counts: other statistics, and "
                "releases, hold for one answer of a person to an item. Call one of these, or keep "
                "one answer with repeats='first' or repeats='last'."
            )
        check_choice("repeats", self.repeats, REPEATS)
        check_choice("one_means", self.one_means, ("right", "wrong"))
        check_choice("header", self.header, (True, False))
        check_choice("invalid", self.invalid, get_args(Invalid))
        check_choice("blank", self.blank, get_args(Blank))
        check_choice("header_rows", self.header_rows, (1, 2))
        if not isinstance(self.skip_rows, int) or self.skip_rows < 0:
            raise BadUsage(
                f"skip_rows= (--skip-rows) must be a whole number from 0; found {self.skip_rows!r}."
            )
        self._settle_names()
        self._settle_values()
        self._check_together()

    def _settle_names(self) -> None:
        """Write lists of names as tuples, and words for separators as signs."""
        self._set(ignore=_names(self.ignore), group=_names(self.group), keep=_names(self.keep))
        rows = (self.drop_rows,) if isinstance(self.drop_rows, int | str) else self.drop_rows
        self._set(drop_rows=tuple(map(_name_row, rows)))
        self._set(key_row=None if self.key_row is None else _name_row(self.key_row))
        self._set(delimiter=self.form.delimiter)
        if isinstance(self.response, Mapping):
            self._set(response=",".join(f"{task}:{name}" for task, name in self.response.items()))
        self._set(sheet=self.form.sheet)
        # Where several sheets are joined, the sheet of every row is a group.
        if isinstance(self.sheet, tuple) and SHEET not in (*self.ignore, *self.group):
            self._set(group=(*self.group, SHEET))

    def _settle_values(self) -> None:
        """Check what values mean, and write it in one way."""
        asked = make_asked(
            self.model, self.steps, self.lowest, self.reverse, self.merge, self.categories,
            carried=self.carried,
        )  # fmt: skip
        self._set(**vars(asked))
        everywhere, by_column = split_missing(
            self.missing, self.at_least, any_code=bool(asked.lowest)
        )
        self._set(missing={"*": everywhere, **by_column} if everywhere else by_column)
        self._set(at_least=make_scoring(self.at_least, ()).at_least, key=make_key(self.key))

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _check_together(self) -> None:
        """Refuse fields that contradict each other."""
        if self.asked.is_said and (self.at_least is not None or self.one_means == "wrong"):
            raise BadUsage(
                "at_least= (--at-least) and one_means= (--one-means) make answers right and wrong, "
                "and model=, steps=, lowest=, reverse=, categories= and merge= are about answers "
                "with steps. Leave out one or the other."
            )
        is_turned = self.layout == "transposed"
        is_joined = self.header_rows > 1 or self.blank == "wrong"
        if self.listed and (
            self.rows_aside or self.keep or self.categories or is_turned or is_joined
        ):
            raise BadUsage(
                "a release reads every row, and its item list says what is an item and which steps "
                "it has. Leave out drop_rows=, key_row=, keep=, categories=, header_rows=, blank= "
                "and layout='transposed'."
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
    def stated(self) -> PlainDict:
        """The fields that differ from their defaults, by name."""
        plain = Reading()
        values = {name: getattr(self, name) for name in READING_DEFAULTS}
        return {name: value for name, value in values.items() if value != getattr(plain, name)}

    @cached_property
    def about_values(self) -> Reading:
        """What is stated about values, and what was found of them: where scales begin and end."""
        stated = {name: value for name, value in self.stated.items() if name in VALUE_FIELDS}
        if self.scale is None:
            return Reading(**{n: v for n, v in stated.items() if n in SCORING_FIELDS})
        if not self.scale.is_binary:
            stated.setdefault("model", "partial-credit")
        if not self.categories:
            codes_by_item = self.scale.codes.items()
            stated["steps"] = {item: len(codes) - 1 for item, codes in codes_by_item}
            stated["lowest"] = self.scale.lowest
        return Reading(**stated)

    @property
    def form(self) -> Form:
        """How the file itself is read."""
        return Form(self.sheet, self.delimiter, self.header, self.skip_rows, self.header_rows)

    @property
    def rows_aside(self) -> tuple[int | str, ...]:
        """The rows that are no persons."""
        key_row = () if self.key_row is None else (self.key_row,)
        return (*cast("tuple[int | str, ...]", self.drop_rows), *key_row)

    @cached_property
    def asked(self) -> AskedSteps:
        """What is stated about categories."""
        return AskedSteps(**{one.name: getattr(self, one.name) for one in fields(AskedSteps)})

    @property
    def codes(self) -> dict[str, tuple[str, ...]]:
        """The codes for missing answers, by item; "*" for all items."""
        return cast("dict[str, tuple[str, ...]]", self.missing)

    @property
    def _key(self) -> Key | KeyFile:
        return cast("Key | KeyFile", self.key)

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

    def refuse_unclear(self, source: object) -> Reading:
        """Return this reading; refuse one of which an inspection left questions open."""
        if self.unclear:
            raise refuse_questions(name_source(source), self.unclear)
        return self

    # -- how values become answers ----------------------------------------------------------

    @property
    def scoring(self) -> ValueScoring:
        """How values become answers, where nothing is said about their item."""
        return ValueScoring(
            self.at_least, self.codes.get("*", ()), otherwise=self._otherwise, blank=self._blank
        )

    @property
    def _blank(self) -> int:
        """The code of a blank cell."""
        return 0 if self.blank == "wrong" else MISSING

    @property
    def _otherwise(self) -> int:
        """The code of a value that is no answer."""
        return MISSING if self.invalid == "missing" else BAD

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
    def detected(self) -> tuple[Detected, ...]:
        """What was detected in the answers and would change their categories."""
        scale = () if self.scale is None else self.scale.detected
        return (*self.assumed, *((_DROPPED,) if self.rows_aside else ()), *scale)

    def ignores(self, item: str) -> bool:
        """Say whether answers to an item are ignored, because it is not on the public list."""
        return bool(self.listed) and item not in self.listed

    def steps_of(self, items: Sequence[str]) -> tuple[int, ...]:
        """Return the highest category of each item: 1 for right and wrong."""
        return (1,) * len(items) if self.scale is None else self.scale.steps_of(items)

    def scoring_of(self, item: str) -> ValueScoring:
        """Return how the answers to one item are scored."""
        missing = (*self.codes.get("*", ()), *self.codes.get(item, ()))
        right = self.right.get(item)
        if right is None:
            codes = None if self.scale is None else self.scale.codes.get(item)
            return ValueScoring(
                self.at_least, missing, codes=codes, otherwise=self._otherwise, blank=self._blank
            )
        return ValueScoring(None, missing, frozenset(right), blank=self._blank)


#: Fields about values, which mean the same in every table of a questionnaire; then those of steps.
SCORING_FIELDS = ("missing", "at_least", "one_means", "key", "blank")
VALUE_FIELDS = (*SCORING_FIELDS, "lowest", "reverse", "merge", "categories", "steps", "model")

#: The column that says from which sheet of a workbook a row is.
SHEET = "sheet"


_DROPPED = Detected(
    "drop_rows",
    "Rows were left out, or taken as the key, by what they hold or by their number.",
    Remedy("delete these rows in the file"),
)


def _name_row(row: int | str) -> int | str:
    """Return the number of a row, or the text of one of its cells."""
    word = str(row).strip()
    return int(word) if word.isdigit() else word


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Refuse a word that an option does not know."""
    if value not in choices:
        allowed = " or ".join(repr(choice) for choice in choices)
        raise BadUsage(f"{name} must be {allowed}; found {value!r}.")


def _names(value: str | Sequence[str] | None) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


#: Words for delimiters, which shells and people find hard to type.
_DELIMITERS = {
    "tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " ",
    "blank": " ",
}  # fmt: skip


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

    model: Model
    steps: int | Mapping[str, int] | None
    lowest: int | None
    reverse: str | Sequence[str]
    merge: PlainMapping | None


class ListedWords(TypedDict, total=False):
    """The keywords of a release, which is told the steps of its items elsewhere."""

    layout: TableLayout | None
    person: str | None
    item: str | None
    response: str | Mapping[str, str] | None
    ignore: str | Sequence[str]
    group: str | Sequence[str] | None
    repeats: Repeats
    one_means: OneMeans
    at_least: float | None
    missing: Codes
    key: KeyLike
    sheet: str | Sequence[str] | None
    delimiter: str | None
    header: bool
    skip_rows: int
    order_by: str | None
    reverse: str | Sequence[str]
    invalid: Invalid
    filter: str | None


class FitWords(ListedWords, total=False):
    """The keywords of :func:`discreet.read_responses` but for the model, which a fit has itself.

    ``reading`` gives all of them in one value.
    """

    steps: int | Mapping[str, int] | None
    lowest: int | None
    merge: PlainMapping | None
    header_rows: int
    drop_rows: int | str | Sequence[int | str]
    key_row: int | str | None
    blank: Blank
    keep: str | Sequence[str]
    categories: Sequence[str] | Sequence[Sequence[str]]
    reading: Reading


class ReadingWords(FitWords, total=False):
    """Keywords of :func:`discreet.read_responses`, which every function of answers takes.

    Examples
    --------
    >>> words: ReadingWords = {"person": "student", "at_least": 3}
    >>> Reading(**words).person
    'student'
    """

    model: Model


#: What every field is if nobody states it.
READING_DEFAULTS: PlainMapping = {
    entry.name: entry.default
    for entry in fields(Reading)
    if entry.name in ReadingWords.__annotations__
}


#: Columns of a sampling design; see :class:`discreet.answers.survey.DesignWords`.
DESIGN_WORDS = frozenset({"weight", "strata", "cluster", "replicates", "replication"})


def check_words(words: PlainMapping) -> None:
    """Refuse a keyword that no reader knows, and name one that is spelt alike."""
    known = ReadingWords.__annotations__
    unknown = sorted(words.keys() - known.keys())
    if unknown:
        name = re.sub("_(col|column|var|name|field|key)s?$", "", unknown[0].lower())
        hint = suggest(name, known)
        if DESIGN_WORDS.intersection(unknown):
            hint = "Weights are keywords of fit, or of answers: answers.weigh(weight=...)"
        keywords = "=, ".join(unknown)
        raise BadUsage(f"there is no keyword {keywords}= for reading answers. {hint}")


def join_words(words: PlainMapping) -> Reading:
    """Return the reading that keywords state; those beside ``reading`` replace its fields.

    Examples
    --------
    >>> join_words({"reading": Reading(person="Name"), "missing": 9}).stated
    {'person': 'Name', 'missing': {'*': ('9',)}}
    """
    options = dict(words)
    whole = options.pop("reading", None)
    if whole is None:
        return Reading(**options)
    assumed = tuple(one for one in whole.assumed if one.option not in options)
    unclear = tuple(one for one in whole.unclear if not one.is_settled(options))
    return Reading(**{**whole.stated, **options}, assumed=assumed, unclear=unclear)


def label_scores(reading: Reading, name: str, top: int) -> list[str]:
    """Return what the file has for each score of an item: texts, codes, turned items by theirs.

    Examples
    --------
    >>> label_scores(Reading(reverse="Q1", lowest=1, steps=3, merge={"Q1": "2+3"}), "Q1", 2)
    ['5', '4', '2+3', '1']
    """
    asked, low = reading.asked, reading.lowest or 0
    top = max(top, asked.steps.get(name, asked.steps.get(EVERYWHERE, 0)))
    sets = [*asked.merge.get(EVERYWHERE, ()), *asked.merge.get(name, ())]
    first = {value: own[0] for own in sets for value in own}
    codes: dict[int, list[str]] = {}
    for value in range(low, low + top + 1 + sum(len(own) - 1 for own in sets)):
        codes.setdefault(first.get(value, value), []).append(str(value))
    lists = asked.categories
    fitting = lists if len(lists) == 1 else [one for one in lists if len(one) == top + 1]
    labels = [*fitting[0]] if len(fitting) == 1 else ["+".join(own) for own in codes.values()]
    return labels[::-1] if name in asked.reverse else labels


def describe_reading(reading: Reading) -> list[str]:
    """Say in sentences how values became answers.

    Examples
    --------
    >>> describe_reading(Reading(missing=9, reverse="Q2", merge={"Q1": "2+3"}))[1:]
    ['Q2 was turned round.', 'Categories of Q1 (2+3) were merged.']
    """
    low, turned = reading.lowest or 0, reading.asked.reverse
    codes = list(dict.fromkeys(code for own in reading.codes.values() for code in own))
    was = "was" if len(turned) == 1 else "were"
    by_item = write_merge(reading.merge).items()
    merged = [f"{'all items' if item == EVERYWHERE else item} ({s})" for item, s in by_item]
    orders = " or ".join(" < ".join(texts) for texts in reading.asked.categories)
    said = {
        f"Missing answers were coded {', '.join(codes)}.": codes,
        f"The lowest category, {low}, was taken off every answer.": low,
        f"Texts were read in this order: {orders}.": orders,
        f"{name_some(turned)} {was} turned round.": turned,
        f"Categories of {'; '.join(merged)} were merged.": merged,
        f"Answers from {reading.at_least} on counted as right.": reading.at_least is not None,
        "A 1 counted as wrong.": reading.one_means == "wrong",
        "Blank cells counted as wrong.": reading.blank == "wrong",
        "Answers were scored with a key.": bool(reading.right),
    }
    return [sentence for sentence, holds in said.items() if holds]


#: A reading that states nothing.
PLAIN = Reading()
