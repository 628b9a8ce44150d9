"""What to say of a value that is no answer: what was found, where, why, and what to do first.

In: the value, its column and what else stands there. Out: one message. The first advice is the one
that gives the right analysis where the guess is right, and none of them can turn a code for a
missing answer into a right one: no threshold is ever made of the value found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.errors import BadResponses, Remedy
from discreet.tables.reading import Reading
from discreet.tables.remedies import make_remedy
from discreet.tables.scales import find_shared_run
from discreet.tables.values import (
    ANSWERS,
    BAD,
    MISSING_WORDS,
    WHOLE,
    ValueScoring,
    as_number,
    plain_dictionary,
    read_integers,
    show,
    spell,
)
from discreet.types import Int8Array

_ACCEPTED = (
    "Answers must be 0, 1, true or false, steps (whole numbers from 0 or 1 with at most ten "
    "categories and no gap), or missing (blank, NA, NaN, '.' or null)."
)
_CODE = 12
"""Characters that a code for a missing answer may have, to be suggested as one."""
_WORDS = 200
"""Different values of a column that are looked at."""
_OPTIONS = 8
"""Different words up to which a column may hold chosen options."""
_MANY = 8
"""Rows from which on all values being different says that a column names persons."""
_LETTER = re.compile(r"[A-Za-z]")
LARGEST_CODE = 10**9
"""Numbers of this size are neither scores nor codes for missing answers, and are not repeated."""
GAP = 2
"""Distance from a scale from which on a value stands apart, as codes for missing answers do."""
OFTEN = 0.05
"""Share of all answers above which a letter is an option and no code for a missing answer."""
_CODES = re.compile(r"-[0-9]+|7+|8+|9+")
"""How codes for missing answers are usually spelt."""
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3},[0-9]{3}")
"""Either thousands or three decimals, which differ a little too much to guess."""
_NOT_LETTERS = re.compile(r"[^a-zäöüß]")

_PERSONS = frozenset(
    ["nr", "no", "num", "number", "nummer", "lfd", "lfdnr", "laufnr", "laufnummer", "index", "row",
     "case", "fall", "name", "nachname", "vorname", "surname", "lastname", "firstname", "fullname",
     "email", "mail", "matrikel", "matrikelnummer", "matrikelnr", "matnr", "code", "kennung",
     "pupil", "learner", "candidate", "respondent", "participant", "examinee", "teilnehmer",
     "schüler", "schueler", "proband", "vp", "vpn", "vpnr", "kandidat", "login", "username",
     "uuid", "pid", "sid", "uid", "token", "initials"]
)  # fmt: skip
_GROUPS = frozenset(
    ["sex", "gender", "geschlecht", "group", "gruppe", "class", "klasse", "grade", "jahrgang",
     "school", "schule", "country", "land", "language", "sprache", "form", "booklet", "version",
     "age", "alter", "course", "kurs", "region", "teacher", "site"]
)  # fmt: skip


class BadAnswer(BadResponses):
    """A value that is neither right, wrong nor missing; it may be a step."""

    found: Found | None = None


@dataclass(frozen=True)
class Found:
    """A value that is no answer, and where it was found.

    Attributes
    ----------
    where
        File and row, as a person would look for them.
    column
        The column's name.
    value
        What stood there.
    wide
        Whether the column was taken for an item, so that it may not be one.
    words
        Different values of the column, as far as they were looked at.
    by_item
        By item, how often each value occurs in the rows looked at; empty where nobody counted.
    n_rows
        Rows looked at.
    has_person
        Whether another column names the persons.
    forgotten
        The item, where a key names others but not this one.
    is_listed
        Whether a public list says which categories the item has.
    """

    where: str
    column: str
    value: Any
    wide: bool
    words: tuple[str, ...] = ()
    by_item: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    n_rows: int = 0
    has_person: bool = False
    forgotten: str | None = None
    is_listed: bool = False

    @property
    def everywhere(self) -> dict[str, int]:
        """How often each value occurs, whatever the item."""
        total: dict[str, int] = {}
        for item_words in self.by_item.values():
            for word, times in item_words.items():
                total[word] = total.get(word, 0) + times
        return total

    @property
    def share(self) -> str:
        """How often the value occurs, in words; empty where nobody counted."""
        times, total = self.everywhere.get(spell(self.value), 0), sum(self.everywhere.values())
        return f" ({times:,} of {total:,} answers looked at)" if times else ""


def list_words(column: Any) -> tuple[str, ...]:
    """Return the different values of an Arrow column as text, not more than a few hundred."""
    values = plain_dictionary(column).dictionary.slice(0, _WORDS).to_pylist()
    return tuple(dict.fromkeys(spell(value) for value in values if value is not None))


def _count_words(column: Any) -> dict[str, int]:
    """Return how often each value of an Arrow column occurs, missing ones left out."""
    coded = plain_dictionary(column)
    times = np.bincount(read_integers(coded.indices.drop_null()), minlength=len(coded.dictionary))
    total: dict[str, int] = {}
    for value, count in zip(coded.dictionary.to_pylist(), times.tolist(), strict=False):
        word = spell(value)
        if value is not None and count and word.lower() not in MISSING_WORDS:
            total[word] = total.get(word, 0) + count
    return total


def _count_by_item(column: Any, items: Any) -> dict[str, dict[str, int]]:
    """Return how often each value occurs, by the item of a long table."""
    codes = read_integers(items.indices)
    names = enumerate(items.dictionary.to_pylist()[:_WORDS])
    return {name: _count_words(column.filter(pa.array(codes == code))) for code, name in names}


def refuse_long(
    values: Int8Array, column: Any, items: Any, name: str, reading: Reading,
    locate: Callable[[int], str],
) -> BadAnswer:  # fmt: skip
    """Return the refusal of the first answer of a long table that is none.

    Parameters
    ----------
    values
        The codes of the answers.
    column, items, name
        What stood there, to which items (a dictionary), and the column's name.
    reading
        What the user said.
    locate
        Says where a row is.
    """
    row = int(np.flatnonzero(values == BAD)[0])
    item = items[row].as_py()
    bad_cell = Found(
        locate(row), name, column[row].as_py(), wide=False, words=list_words(column),
        by_item=_count_by_item(column, items), n_rows=len(column), has_person=True,
        forgotten=item if reading.right else None, is_listed=bool(reading.listed),
    )  # fmt: skip
    return refuse_answer(bad_cell, reading.scoring_of(item))


def refuse_wide(
    location: str, items: Sequence[str], columns: Sequence[Any], position: tuple[int, Any],
    reading: Reading, *, has_person: bool,
) -> BadAnswer:  # fmt: skip
    """Return the refusal of a value in a wide table.

    Parameters
    ----------
    location
        File and row.
    items, columns
        All columns of answers.
    position
        Number of the column among them, and the value.
    reading
        What the user said.
    has_person
        Whether another column names the persons.
    """
    number, value = position
    column, item = columns[number], items[number]
    bad_cell = Found(
        location, item, value, wide=True, words=list_words(column),
        by_item={name: _count_words(cells) for name, cells in zip(items, columns, strict=True)},
        n_rows=len(column), has_person=has_person, forgotten=item if reading.right else None,
        is_listed=bool(reading.listed),
    )  # fmt: skip
    return refuse_answer(bad_cell, reading.scoring_of(item))


def refuse_answer(cell: Found, scoring: ValueScoring) -> BadAnswer:
    """Return the refusal of a value that is no answer, with what to do."""
    remedies = _list_remedies(cell, scoring)
    refusal = BadAnswer(_explain(cell, scoring, remedies)).offering(*remedies)
    refusal.found = cell
    return refusal


def _list_remedies(cell: Found, scoring: ValueScoring) -> list[Remedy]:
    if scoring.codes is not None:
        return list_scale_remedies(cell, scoring.codes)
    if scoring.at_least is not None:
        return [_correct(cell), *_leave_out(cell)]
    return _advise(cell)


def tell_cell(cell: Found) -> str:
    """Say what stands in a cell, and where that is."""
    return (
        f"{cell.where}, column '{cell.column}': found {show(cell.value)} where an answer should be."
    )


def _explain(cell: Found, scoring: ValueScoring, remedies: Sequence[Remedy]) -> str:
    start = tell_cell(cell)
    if scoring.codes is not None:
        categories = ", ".join(scoring.codes)
        return f"{start} The categories of this item are {categories}. {_join(remedies)}"
    if scoring.at_least is not None:
        return (
            f"{start} With at_least={scoring.at_least:g} every answer must be a number or missing "
            f"(blank, NA, NaN, '.' or null). {_join(remedies)}"
        )
    return f"{start} {_ACCEPTED} {_join(remedies)}"


def list_scale_remedies(cell: Found, codes: Iterable[str]) -> list[Remedy]:
    """Return what to do about a value outside the categories of an item."""
    scale = sorted(int(word) for word in codes)
    if not cell.is_listed:
        return [_correct(cell), *_leave_out(cell)]
    lowest = _find_lowest(cell, scale)
    if lowest is not None:
        before = f"if the scale of the questionnaire begins at {lowest}, state"
        return [make_remedy(before, {"lowest": lowest}), Remedy("otherwise correct the cell")]
    number = as_number(cell.value)
    if number is not None and scale[0] - GAP < number < scale[-1] + GAP:
        return [
            Remedy("correct the cell; or the steps on the item list, if the item has more of them")
        ]
    return [_correct(cell)]


def _find_lowest(cell: Found, scale: Sequence[int]) -> int | None:
    """Return where a scale of as many steps must begin to hold the values that occur.

    Values that stand apart are left aside. None where the scale begins there already, or where
    the values need more steps.
    """
    least = min(0, scale[0])
    used = [step for step in _find_numbers(cell.words) if step >= least]
    while len(used) > 1 and used[-1] - used[-2] >= GAP:
        used.pop()
    if as_number(cell.value) not in used:
        return None
    first = max(used) - (scale[-1] - scale[0])
    last = min(step for step in (*used, *_find_numbers(cell.everywhere)) if step >= least)
    fitting = [step for step in (1, 0, int(first)) if first <= step <= last and step != scale[0]]
    return fitting[0] if fitting else None


def _join(remedies: Iterable[Remedy]) -> str:
    return " ".join(f"{remedy.words[0].upper()}{remedy.words[1:]}." for remedy in remedies)


def _advise(cell: Found) -> list[Remedy]:
    """Return what to do, the likeliest first."""
    if cell.forgotten is not None:
        return [_complete_key(cell.forgotten), *_leave_out(cell), _correct(cell)]
    if cell.is_listed and as_number(cell.value) is not None:
        return [*list_scale_remedies(cell, ("0", "1")), _name_steps(), *_name_scores(cell)]
    if cell.wide and _names_persons(cell):
        person_remedies = [_name_person(cell)] if not cell.has_person else []
        return [*person_remedies, *_leave_out(cell), _correct(cell)]
    if cell.wide and _plain(cell.column) in _GROUPS:
        return [_name_group(cell), *_leave_out(cell), _correct(cell)]
    if _are_options(cell):
        return [_give_key(), _correct(cell), *_leave_out(cell)]
    if as_number(cell.value) is not None and not _is_lone_code(cell):
        return [_name_scale(cell), _correct(cell), *_leave_out(cell)]
    return [_correct(cell), *_name_scores(cell), *_leave_out(cell)]


# -- what it may be --------------------------------------------------------------------------


def _plain(name: str) -> str:
    return _NOT_LETTERS.sub("", name.lower().removesuffix("_id"))


def _answers_aside(cell: Found) -> list[str]:
    """Return the words of a column that are neither answers nor blank."""
    answer_words = {"0", "1", *ANSWERS, *MISSING_WORDS}
    return [word for word in cell.words or (spell(cell.value),) if word.lower() not in answer_words]


def _names_persons(cell: Found) -> bool:
    if _plain(cell.column) in _PERSONS:
        return True
    has_enough_rows = cell.n_rows >= _MANY
    return has_enough_rows and len(cell.words) >= min(cell.n_rows, _WORDS)


def _are_options(cell: Found) -> bool:
    """Say whether a column holds what was chosen: mostly letters, or a few words."""
    words = _answers_aside(cell)
    every = cell.everywhere
    lettered = sum(times for word, times in every.items() if _LETTER.fullmatch(word))
    if isinstance(cell.value, str) and 2 * lettered > sum(every.values()) > 0:
        return True
    if not isinstance(cell.value, str) or as_number(cell.value) is not None:
        return False
    letters = all(_LETTER.fullmatch(word) for word in words)
    has_few_words = 1 < len(words) <= _OPTIONS and len(words) == len(cell.words)
    return letters or has_few_words


def _is_lone_code(cell: Found) -> bool:
    """Say whether one number beside 0 and 1 looks like a code for a missing answer."""
    words = _answers_aside(cell)
    return len(words) == 1 and bool(_CODES.fullmatch(words[0]))


# -- what to do ------------------------------------------------------------------------------


def _correct(cell: Found) -> Remedy:
    blank = "" if as_number(cell.value) is not None else ", or leave it blank"
    if _THOUSANDS.fullmatch(spell(cell.value)):
        return Remedy(
            f"write {show(cell.value)} with a point or without a comma: it could be thousands"
        )
    code = _missing_code(cell.value) if _may_be_missing(cell) else None
    if code is None:
        return Remedy(f"correct the cell{blank}")
    return make_remedy(
        f"if {spell(cell.value)} stands for a missing answer{cell.share}, say so with",
        {"missing": [code]},
        f"; otherwise correct the cell{blank}",
    )


def _may_be_missing(cell: Found) -> bool:
    """Say whether a value can stand for a missing answer.

    Not a value inside the run of values that most items share, nor a letter that many cells hold.
    """
    word, every = spell(cell.value), cell.everywhere
    if _LETTER.fullmatch(word):
        return every.get(word, 0) <= OFTEN * sum(every.values())
    return as_number(cell.value) not in find_shared_run(
        [_find_numbers(item_words) for item_words in cell.by_item.values()]
    )


def _missing_code(value: object) -> int | str | None:
    """Return a value that can be a code for a missing answer, as a number where it is one."""
    word = spell(value)
    is_whole = WHOLE.fullmatch(f"{word}.0") is not None
    is_text = isinstance(value, str) and as_number(word) is None and word.lower() not in ANSWERS
    if not (is_whole or is_text) or len(word) > _CODE or "," in word or ":" in word:
        return None
    return int(word) if is_whole and str(int(word)) == word else word


def _leave_out(cell: Found) -> list[Remedy]:
    if not cell.wide:
        return []
    before = f"if '{cell.column}' is not an item, leave it out with"
    return [make_remedy(before, {"ignore": [cell.column]})]


def _name_person(cell: Found) -> Remedy:
    before = f"if '{cell.column}' tells the persons apart, say"
    return make_remedy(before, {"person": cell.column})


def _name_group(cell: Found) -> Remedy:
    return make_remedy(f"if '{cell.column}' groups the persons, say", {"group": cell.column})


def _give_key() -> Remedy:
    return Remedy(
        "if these are the options that persons chose, say which are right with key= (--key "
        "key.csv, a table with the columns item and answer, or --key ABDC, one letter per item in "
        "the order of the columns)",
        asks="key",
    )


def _complete_key(item: str) -> Remedy:
    words = f"the key has no right answer for item '{item}': add it to the key"
    return Remedy(words, asks="key")


def _name_steps() -> Remedy:
    return Remedy(
        "if items have steps, name them with the item list: a table with the columns item and "
        "steps, in Python items={'Q1': 4}"
    )


def _name_scores(cell: Found) -> list[Remedy]:
    if as_number(cell.value) is None:
        return []
    before = "if answers are scores, say from which score on they count as right with"
    return [make_remedy(before, {}, asks="at_least")]


def _name_scale(cell: Found) -> Remedy:
    """Name scores and rating scales; numbers that stand apart must be named missing with them."""
    numbers = _find_numbers(cell.everywhere or cell.words)
    apart = _find_apart(numbers)
    within = [number for number in numbers if number not in apart]
    span = f"{within[0]:g} to {within[-1]:g}" if len(within) > 1 else "these numbers"
    codes = [_whole(number) for number in apart]
    because = (
        f"; {','.join(map(str, codes))} stands apart and would count as right otherwise"
        if apart
        else "; codes for missing answers must be named too, or they count as right"
    )
    return make_remedy(
        f"if {span} are steps of a rating scale or points, say from which score on they count as "
        "right with",
        {"missing": codes} if apart else {},
        because,
        asks="at_least",
    )


def _find_numbers(words: Iterable[str]) -> list[Any]:
    """Return the numbers among words, in order."""
    spelt = {number for word in words if (number := as_number(word)) is not None}
    return sorted(value for value in spelt if -LARGEST_CODE < value < LARGEST_CODE)


def _whole(number: float) -> float:
    return int(number) if number == int(number) else number


def _find_apart(numbers: Sequence[Any]) -> list[Any]:
    """Return negative numbers, and those that look like codes behind a gap."""
    apart = [number for number in numbers if number < 0]
    scale = [number for number in numbers if number >= 0]
    while len(scale) > 1 and scale[-1] - scale[-2] >= GAP and _CODES.fullmatch(f"{scale[-1]:g}"):
        apart.append(scale.pop())
    return apart
