"""What each column of a table is: item, person, group, or something to leave out.

In: the names of the columns and their cells. Out: the items, which are the largest block of like
columns, and a decision or a question about every other column; a few rows that are no persons (a
key, totals) do not disturb it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from discreet.coding.keys import Key
from discreet.coding.reading import Reading
from discreet.coding.remedies import make_remedy
from discreet.coding.steps import MOST_CATEGORIES, find_shared_run
from discreet.errors import Remedy
from discreet.tables.columns import expand_names, find_role_names
from discreet.tables.findings import RATED, Findings
from discreet.tables.inspection.blocks import (
    SERIES,
    Block,
    find_blocks,
    find_copies,
    find_parts,
    name_stem,
)
from discreet.tables.inspection.rules import rule
from discreet.tables.vocabulary import (
    ENOUGH_ROWS,
    SHARE,
    Column,
    bound_number,
    find_sums,
    is_no_answer,
    name_words,
    order_texts,
    plain,
)
from discreet.text import count_of, name_some

#: Names that survey programs give to remarks beside an answer.
_REMARK = re.compile(r".*(\[([Oo]ther|[Cc]omment|[Ff]eedback)\]|_TEXT)")
#: Names that REDCap gives to the state of a form.
_STATE = re.compile(r"redcap_(?!event_name)\w+|\w+_complete")
#: Different values up to which a column may part persons into groups.
FEW = 12
#: Cells of blank columns that a finding points at.
SHOWN_BLANK = 20
_NUMERIC = ("steps", "points", "number")


class ColumnRoles:
    """Finds the role of every column, and says why.

    ``items`` is what was found; ``blocks`` are further columns of like names with other values.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        findings: Findings,
        rows: int,
        labels: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self._findings, self.rows, self._labels = findings, rows, labels or {}
        self.stated = stated = findings.stated
        key, by_item = stated.get("key"), [stated.get(name) for name in ("steps", "merge")]
        known = [name for told in by_item if isinstance(told, Mapping) for name in told]
        known += [*key.by_item] if isinstance(key, Key) else []
        self._kept = {*stated.get("keep", ()), *stated.get("reverse", ()), *known}
        groups = expand_names(stated.get("group") or (), [column.label for column in columns])
        taken = {*stated.get("ignore", ()), *groups, stated.get("person")}
        taken |= {stated.get("order_by")}
        self._free = [column for column in columns if column.label not in taken]
        self._groups = [column for column in columns if column.label in groups]
        ids = [column for column in columns if column.label == stated.get("person")]
        self._person = ids[0] if ids and "repeats" in stated else None
        numbered = Counter(name_stem(c.name) for c in self._free if "#" in name_stem(c.name))
        self._series = {stem for stem, times in numbered.items() if times >= SERIES}
        self.items: list[Column] = []
        self.blocks: list[Block] = []
        self.answered, self.sums = set[int](), set[int]()

    def find(self) -> list[Column]:
        """Return the items."""
        self.items = self._find_items() or self._find_scores()
        numbers = {column.number for column in self.items}
        self.answered = self._find_answered(numbers)
        others = [column for column in self._free if column.number not in numbers]
        self._leave_out_blank([c for c in others if c.kind == "blank" and not c.name])
        others = [c for c in others if c.name or c.kind != "blank"]
        self.sums = find_sums([c for c in others if c.kind in _NUMERIC], self.items, self.rows)
        others = [column for column in others if not self._apply(column, PLAIN)]
        person = None if "person" in self.stated else self._choose_person(others)
        self._ask_varying()
        self._ask_blocks([column for column in others if column is not person])
        self._ask_parts()
        return self.items

    @rule("more/Grammar quiz(1-26).xlsx", otherwise=set())
    def _find_answered(self, items: set[int]) -> set[int]:
        """Return the columns at the left of items, where these score what stands there."""
        left = [c for c in self._free if c.number + 1 in items and c.number not in items]
        texts = [c for c in left if c.kind in ("texts", "letters", "many") and self.is_plain(c)]
        is_pair = 2 < len(left) == len(items) < 2 * len(texts)
        return {column.number for column in left} if is_pair else set()

    # -- items -----------------------------------------------------------------------------

    def _find_items(self) -> list[Column]:
        """Return the largest block of columns that hold answers, and what is kept as items."""
        family = self._drop_labelled(self._find_family())
        copies = self._ask_copies(family)
        blocks = find_blocks([column for column in family if column not in copies])
        items = [*blocks[0].columns, *copies] if blocks else []
        self.blocks = [block for block in blocks[1:] if len(block.columns) >= SERIES]
        sums = find_sums(items, items, self.rows)
        kept = [
            column
            for column in self._free
            if column.label in self._kept or self._is_unanswered(column, items)
        ]  # an item that nobody answered keeps its column
        chosen = {column.number: column for column in [*items, *kept] if column.number not in sums}
        return [chosen[number] for number in sorted(chosen)]

    def _find_family(self) -> list[Column]:
        """Return the columns with the commonest kind of answers."""
        answered = ("steps", "points", "letters", "texts")
        candidates = [c for c in self._free if c.kind in answered and self.is_plain(c)]
        kinds = Counter[str](column.kind.replace("points", "steps") for column in candidates)
        best = max(("steps", "letters", "texts"), key=lambda kind: kinds[kind])
        family = [column for column in candidates if column.kind.replace("points", "steps") == best]
        points = [column for column in candidates if column.is_points]
        if len(points) > 2:  # beside what was answered
            family = points
        elif best != "steps":  # F of true and false is a letter, and A+C of options a text
            shared = {word for column in family for word in column.words}
            family = [c for c in candidates if c.kind == best or c.words.keys() <= shared]
        return choose_alike(family, family) if family else []

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

    @rule("exports/Calificaciones Tema 4.csv", otherwise=[])
    def _find_scores(self) -> list[Column]:
        """Return columns of numbers with too many values for categories, and ask about them."""
        scores = [c for c in self._free if c.kind == "number" and self.is_plain(c) and c.core]
        scores = [c for c in scores if not (c.is_unique and self._may_number(c))]
        if len(scores) < SERIES or self.rows < ENOUGH_ROWS:
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

    @rule("exports/rdata_panel_2026.csv", otherwise=False)
    def _is_unanswered(self, column: Column, items: Sequence[Column]) -> bool:
        """Say whether a blank column is an item by its name, or by its place among the items."""
        if column.kind != "blank":
            return False
        is_inside = bool(items) and items[0].number < column.number < items[-1].number
        n_blank = sum(c.kind == "blank" for c in self._free)
        stem = name_stem(column.name)
        if 2 * n_blank > len(items) > 2 and stem not in self._series:
            return False  # as many columns of remarks as questions
        is_like = len(column.word) < 3 or stem in {name_stem(item.name) for item in items}
        is_item = not items or is_inside or is_like
        return self.is_plain(column) and is_item

    def is_plain(self, column: Column) -> bool:
        """Say whether a column has a name, and none of another role."""
        other_roles = name_words("groups", "ages", "about", "totals", "ids", "names", "numbers")
        is_note = _REMARK.fullmatch(column.name) or _STATE.fullmatch(column.name)
        is_role = column.word in other_roles and not (
            name_stem(column.name) in self._series and column.word not in name_words("totals")
        )
        return bool(column.name) and not is_note and not is_role

    # -- what is asked whatever the names say ---------------------------------------------------

    def _ask_copies(self, family: Sequence[Column]) -> list[Column]:
        """Ask about columns with the same answers; return those that nobody has decided about."""
        pairs = [
            pair
            for pair in (find_copies(family) if self.rows >= ENOUGH_ROWS else [])
            if not self._kept.issuperset(column.label for column in pair)
        ]
        if not pairs:
            return []
        first, second = ([column.label for column in side] for side in zip(*pairs, strict=True))
        listed = "; ".join(f"'{a.label}' and '{b.label}'" for a, b in pairs[:5])
        question = (
            f"{listed}: they hold the same answers, as they are or turned round. Which count?"
        )
        answers = [
            make_remedy(f"leave out {name_some(first)}:", {"ignore": first}),
            make_remedy(f"leave out {name_some(second)}:", {"ignore": second}),
            make_remedy("all are items of their own:", {"keep": [*first, *second]}),
        ]
        self._findings.ask("ignore", question, answers, [*first, *second], None)
        return [column for pair in pairs for column in pair]

    def _ask_parts(self) -> None:
        """Ask about items whose names come again for every rater or time."""
        items = [column for column in self.items if column.label not in self._kept]
        parts = find_parts(items) if len(items) == len(self.items) else None
        if parts is None:
            return
        labels = {part: [c.label for c in columns] for part, columns in parts.by_part.items()}
        every = [label for listed in labels.values() for label in listed]
        whole = Remedy(
            f"{RATED}: fit the table with facets=['rater'] (--rater rater)", change=RATED
        )
        answers = [make_remedy("every column is an item:", {"keep": every}), whole]
        if parts.stems == ("",):
            question = f"{name_some(every)} are called after raters. Did raters give these scores?"
        else:
            question = (
                f"{name_some(parts.stems)} come again for each of {name_some([*labels])}. Are "
                "these raters, times, or items of their own?"
            )
            answers[:0] = [
                make_remedy(
                    f"raters or times, and those of '{part}' are read:",
                    {"ignore": [label for label in every if label not in listed]},
                )
                for part, listed in labels.items()
            ]
        self._findings.raters = {
            part: dict(zip([stem or "score" for stem in parts.stems], listed, strict=True))
            for part, listed in labels.items()
        }
        self._findings.ask("ignore", question, answers, every, None)

    def _ask_blocks(self, others: Sequence[Column]) -> None:
        """Ask once about every block of like columns, and decide or ask about the others."""
        left = {column.number for column in others}
        for block in self.blocks:
            like = [column for column in block.columns if column.number in left]
            if like:
                left -= {column.number for column in like}
                self._ask_role(like)
        for column in others:
            if column.number in left and not self._apply(column, ROLES):
                self._ask_role([column])

    # -- other columns -----------------------------------------------------------------------

    def _apply(self, column: Column, kinds: Sequence[ColumnFinder]) -> bool:
        """Decide what a column is by the first rule that knows it; say whether one does."""
        for find in kinds:
            if (claim := find(column, self)) is not None:
                self._take(column, claim)
                return True
        return False

    def _take(self, column: Column, claim: Claim) -> None:
        label = column.label
        if claim.role == "item":
            self.items = sorted([*self.items, column], key=lambda item: item.number)
        elif claim.role == "rows":
            self._number_rows(column)
        elif claim.role == "group":
            undo = make_remedy("leave it out instead:", {"ignore": [label]})
            self._findings.note("group", [label], claim.reason, [label], [undo])
        else:
            undo = make_remedy(f"'{label}' is an item after all:", {"keep": [label]})
            self._findings.note("ignore", [label], claim.reason, [label], [undo])

    def _leave_out_blank(self, columns: Sequence[Column]) -> None:
        """Leave out columns without a name and without an entry; one note for all of them."""
        if columns:
            labels = [column.label for column in columns]
            reason = f"{count_of(len(labels), 'column')} without a name and without an entry."
            self._findings.note("ignore", labels, reason, labels[:SHOWN_BLANK])

    def _choose_person(self, columns: Sequence[Column]) -> Column | None:
        """Return the column that tells persons apart, the best of those that could."""
        if columns and not columns[0].name and not columns[0].number + columns[0].has_repeats:
            return columns[0]  # the reader takes an index for the persons
        declared = [column for column in columns if self._is_declared(column)]
        if declared and "repeats" in self.stated:
            return self._name_person(declared[0], f"'{declared[0].name}' tells the persons apart.")
        unique = [column for column in columns if column.is_unique and column.kind != "blank"]
        ranked = sorted(unique, key=_rank_person)
        named = [column for column in ranked if _rank_person(column)[0] < _UNNAMED]
        if not named:  # the reader refuses blank cells of the column that it takes by its name
            named = [column for column in declared if not column.has_repeats and column.words]
        if named:
            return self._name_person(named[0], f"'{named[0].name}' tells the persons apart.")
        ids = [c for c in columns if c.is_called("ids") and c.has_repeats]
        is_timed = any(c.kind == "date" or c.is_called("attempts") for c in self._free)
        if len(ids) == 1 and is_timed and "repeats" not in self.stated:
            return self._ask_attempts(ids[0])
        may_be = len(self.stated) or self.rows >= ENOUGH_ROWS or (ranked and not ranked[0].number)
        if ranked and may_be and len(self._free) > 1:
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

    @property
    def has_person(self) -> bool:
        """Whether a column tells the persons apart."""
        return "person" in {**self.stated, **self._findings.options}

    def _ask_attempts(self, column: Column) -> Column:
        """Ask which attempt of a person counts, where rows have one id and different times."""
        question = f"{_tell_repeats(column)}, as in several attempts. Which attempt counts?"
        every = make_remedy("every row is a person:", {"ignore": [column.label], "person": None})
        answers = [*_join_rows(column), every]
        self._findings.ask("person", question, answers, [column.label], None)
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
            self._findings.ask("person", question, answers, [label], None)

    def looks_like_item(self, column: Column) -> bool:
        """Say whether a column holds such values as the items do."""
        if not self.items or column.kind != self.items[0].kind:
            return False
        return bool(choose_alike([column], [*self.items, column]))

    @rule("fresh/ILIAS Test Statistik I.csv", otherwise=False)
    def may_be_item(self, column: Column) -> bool:
        """Say whether a column stands among the items with values of theirs, whatever its name."""
        numbers = [item.number for item in self.items]
        is_inside = bool(numbers) and numbers[0] < column.number < numbers[-1]
        known = {value for item in self.items for value in item.core}
        return is_inside and column.kind == "steps" and column.core <= known

    def _varies(self, column: Column) -> bool:
        """Say whether a column differs within a person, whose rows are joined."""
        if self._person is None:
            return False
        cells = {*zip(self._person.cells, column.cells, strict=True)}
        return len(cells) > len({*self._person.cells})

    def _ask_varying(self) -> None:
        """Ask again about groups to which a person does not belong all the time."""
        labels = [column.label for column in self._groups if self._varies(column)]
        if labels:
            question = f"{name_some(labels)} differ within a person, who can be in one group only."
            answer = make_remedy("leave them out:", {"ignore": labels})
            self._findings.ask("ignore", question, [answer], labels, None)

    def _ask_role(self, columns: Sequence[Column]) -> None:
        """Ask what like columns are; nothing is proposed."""
        block, labels = Block(tuple(columns)), [column.label for column in columns]
        beside = f" The items are {Block(tuple(self.items)).tell()}." if self.items else ""
        group = make_remedy("it groups the persons:", {"group": labels})
        is_rated = columns[0].is_called("raters")
        rating = Remedy(
            f"{RATED}: fit a table of single ratings with --rater {labels[0]}", change=RATED
        )
        if is_rated:
            self._findings.raters = labels[0]
        self._findings.ask(
            "group",
            f"What is {block.tell()}?{beside}",
            [
                *([] if any(map(self._varies, columns)) or len(columns) >= SERIES else [group]),
                make_remedy("leave it out:", {"ignore": labels}),
                make_remedy("it belongs to the items:", {"keep": labels}),
                *([rating] if is_rated else []),
            ],
            labels,
            None,
        )


# -- rules ---------------------------------------------------------------------------------------


class Claim(NamedTuple):
    """What a column is: "left out", "group", "item", or "rows" for the number of a person."""

    reason: str
    role: str = "left out"


#: From a column and what is known of its table to a claim; None where the rule says nothing.
ColumnFinder = Callable[[Column, ColumnRoles], Claim | None]


@rule("exports/rdata_panel_2026.csv")
def _find_about(column: Column, roles: ColumnRoles) -> Claim | None:
    del roles
    is_named = column.is_called("about") or bool(_STATE.fullmatch(column.name))
    is_about = is_named and column.kind != "blank"
    return Claim(f"'{column.name}' is about the survey, not an answer.") if is_about else None


@rule("test with gender.csv")
def _find_age(column: Column, roles: ColumnRoles) -> Claim | None:
    del roles
    is_age = column.is_called("ages") and column.kind != "blank"
    return Claim(f"'{column.name}' is an age.") if is_age else None


@rule("Klausur Punkte.csv")
def _find_total(column: Column, roles: ColumnRoles) -> Claim | None:
    if roles.may_be_item(column):
        return None
    words = {column.word, plain(column.name.split("/")[0])}
    is_named = bool(words & name_words("totals")) or column.name.strip() in ("%", "Σ", "∑", "Ø")
    is_total = is_named and (column.kind in _NUMERIC or column.is_points)
    return Claim(f"'{column.name}' holds totals or marks.") if is_total else None


@rule("more/weekly quiz.csv")
def _find_percent(column: Column, roles: ColumnRoles) -> Claim | None:
    del roles
    is_share = column.percentages >= SHARE
    return Claim(f"'{column.name}' holds percentages.") if is_share else None


@rule("more/two parts.csv")
def _find_sum(column: Column, roles: ColumnRoles) -> Claim | None:
    is_sum = column.number in roles.sums
    return Claim(f"'{column.name}' is the sum of items.") if is_sum else None


def _find_scored(column: Column, roles: ColumnRoles) -> Claim | None:
    reason = f"'{column.name}' holds the answer that the next column scores."
    return Claim(reason) if column.number in roles.answered else None


@rule("more/wave2.csv")
def _find_date(column: Column, roles: ColumnRoles) -> Claim | None:
    del roles
    return Claim(f"'{column.name}' holds dates or times.") if column.kind == "date" else None


@rule("more/household.csv")
def _find_id(column: Column, roles: ColumnRoles) -> Claim | None:
    if not column.is_called("names", "ids", "numbers"):
        return None
    is_number = column.has_repeats and not roles.has_person
    return Claim(f"'{column.label}' names or numbers persons.", "rows" if is_number else "left out")


@rule("more/Evaluación 3B.txt")
def _find_many(column: Column, roles: ColumnRoles) -> Claim | None:
    del roles
    if column.kind == "many" or (column.kind == "number" and len(column.words) > FEW):
        what = "numbers" if column.kind == "number" else "texts"
        return Claim(f"'{column.label}' has many different {what}.")
    return None


@rule("more/OMR export.xlsx")
def _find_nothing(column: Column, roles: ColumnRoles) -> Claim | None:
    del roles
    what = "the same value in every row" if column.words else "no entry"
    return Claim(f"'{column.label}' has {what}.") if len(column.words) <= 1 else None


@rule("gradebook.csv")
def _find_group(column: Column, roles: ColumnRoles) -> Claim | None:
    is_group = column.is_called("groups") and not roles.looks_like_item(column)
    return Claim(f"'{column.label}' groups the persons.", "group") if is_group else None


@rule("exports/remedial group.csv")
def _find_few_rows(column: Column, roles: ColumnRoles) -> Claim | None:
    """Take a column for an item where there are too few rows to say more, or a key knows it."""
    is_known = roles.rows < ENOUGH_ROWS or "key" in roles.stated
    is_known &= len(column.words) > 1 or bool(column.core) or roles.rows == len(column.words) == 1
    return Claim("", "item") if is_known and roles.is_plain(column) else None


#: Columns that are surely left out, whatever else is in the table; then all the others. The first
#: rule that claims a column decides.
PLAIN = (_find_about, _find_age, _find_total, _find_percent, _find_sum, _find_scored, _find_date)
ROLES = (_find_id, _find_group, _find_few_rows, _find_many, _find_nothing)


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
    words = {plain(word) for word in column.name.split()}
    if not ranks and column.kind == "many" and len(words) <= 4 and words & name_words("names"):
        ranks = [kinds.index("names")]  # such as "first and last name"
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


def list_roles(columns: Sequence[Column], findings: Findings, items: Collection[str]) -> list[str]:
    """Return the role of every column, for a preview."""
    options = {**findings.stated, **findings.options}
    role_of = dict.fromkeys(options.get("group") or (), "group") | dict.fromkeys(items, "item")
    open_ones = [one for one in findings.questions if one.is_open and one.marked is None]
    role_of |= {cell: "not clear" for one in open_ones for cell in one.cells}
    unnamed = columns[0].label if columns and not columns[0].name else None
    for label in (options.get("person"), unnamed):
        role_of.setdefault(label, "person")
    return [role_of.get(column.label, "left out") for column in columns]
