"""What names, words and cells of a table usually stand for.

In: a column name, a label, an answer, or the cells of a column. Out: what it is taken for. The
words stand in ``words.toml``: English, German, Spanish and some French ones.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, cached_property, lru_cache
from math import gcd
from pathlib import Path
from typing import Literal

import numpy as np

from discreet.coding.steps import MOST_CATEGORIES
from discreet.coding.values import MISSING_WORDS, as_number, spell
from discreet.tables.cells import letter_column

_SIGNS = re.compile(r"[\W\d_]+")
_WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
#: What is written where somebody gave no answer; those that may be meant between no and yes.
NO_ANSWER, DONT_KNOW = (
    frozenset(" ".join(_WORDS["answers"][kind].split()).split(" | "))
    for kind in ("no_answer", "dont_know")
)
_GONE = MISSING_WORDS | NO_ANSWER


@cache
def name_words(*kinds: str) -> frozenset[str]:
    """Return the words of these kinds of names, which ``words.toml`` lists."""
    return frozenset(word for kind in kinds for word in _WORDS["names"][kind].split())


def plain(text: object) -> str:
    """Return the letters of a text in lower case.

    Examples
    --------
    >>> plain("Matrikel-Nr. 2")
    'matrikelnr'
    """
    return _SIGNS.sub("", str(text).casefold())


def is_label(word: object) -> bool:
    """Say whether a word names a key or totals rather than a person."""
    return plain(word) in name_words("keys", "summaries")


def is_no_answer(word: str) -> bool:
    """Say whether a text stands for no answer, with or without its number, or in two ways.

    Examples
    --------
    >>> is_no_answer("9 - No answer"), is_no_answer("N/A - not reached"), is_no_answer("3 - Agree")
    (True, True, False)
    """
    text = re.sub(r"^\d+ *[-=:.)] *", "", word.lower())
    parts = {*re.split(r" +[-–/] +| *[(),;] *", text)} - {""}
    return text in NO_ANSWER or (bool(parts) and parts <= NO_ANSWER)


def _rank(scale: str) -> dict[str, int]:
    """Return ranks of texts: a sign between the lower and the higher, synonyms between bars."""
    ranks = enumerate(" ".join(scale.split()).split(" < "))
    return {word.strip(): rank for rank, words in ranks for word in words.split("|")}


#: Ordered answers: ranks by text, one mapping for each kind of question.
SCALES: tuple[Mapping[str, int], ...] = tuple(
    map(_rank, _WORDS["answers"]["scales"].strip().split("\n\n"))
)
#: Labels of right and of wrong answers.
RIGHT, WRONG = (
    frozenset(word for ranks in SCALES[:2] for word, rank in ranks.items() if rank == end(ranks))
    for end in (lambda ranks: max(ranks.values()), lambda _: 0)
)
_CODED = re.compile(r"([A-Za-z]+)0*(\d{1,2})")
_NUMBERED = re.compile(
    r"[(\[]?\s*(-?\d{1,2})\s*[()\[\].:=–-](?!\s*\d)|.*[(\[]\s*(-?\d{1,2})\s*[)\]]$|(\d{1,2})$"
)


#: Points of how many, as quiz programs write them: 1.00 / 2.
POINTS = re.compile(r"(\d+(?:[.,]\d+)?) ?/ ?(\d+(?:[.,]\d+)?)")


def order_texts(texts: Collection[str]) -> list[str] | None:
    """Return texts from the lowest to the highest; None where their order is not known.

    Texts that begin or end with their number ("5 = always", "always (5)") and points ("1 / 2")
    are in its order.

    Examples
    --------
    >>> order_texts({"Agree", "Strongly agree", "Disagree"})
    ['Disagree', 'Agree', 'Strongly agree']
    >>> order_texts({"3 - often", "2", "1 - rarely"}), order_texts({"1.00 / 2", "0.50 / 2"})
    (['1 - rarely', '2', '3 - often'], ['0.50 / 2', '1.00 / 2'])
    """
    points = [match for text in texts if (match := POINTS.fullmatch(text))]
    if len(points) == len(texts) > 1 and len({match[2] for match in points}) == 1:
        return sorted(texts, key=lambda text: float(text.split("/")[0].replace(",", ".")))
    shares = {text: text.rstrip(" %") for text in texts if _PERCENT.fullmatch(text)}
    if len(shares) == len(texts) > 1:
        return sorted(texts, key=lambda text: float(shares[text].replace(",", ".")))
    matches = [_NUMBERED.match(text) for text in texts]
    numbers = [int(match[1] or match[2] or match[3]) for match in matches if match is not None]
    if len(set(numbers)) == len(texts) > 1:
        return [text for _, text in sorted(zip(numbers, texts, strict=True))]
    lower = {text: " ".join(text.casefold().strip(" .!").split()) for text in texts}
    for ranks in SCALES:
        places = {text: ranks[word] for text, word in lower.items() if word in ranks}
        if len(places) == len(texts) and len(set(places.values())) == len(texts) > 1:
            return sorted(texts, key=lambda text: places[text])
    return None


def order_codes(texts: Collection[str]) -> list[str] | None:
    """Return codes of letters and a number in the order of the number; None of other texts.

    Examples
    --------
    >>> order_codes({"A2", "A10", "A1"}), order_codes({"A1", "B2"})
    (['A1', 'A2', 'A10'], None)
    """
    matches = {text: _CODED.fullmatch(text) for text in texts}
    parts = [(match[1], int(match[2])) for match in matches.values() if match is not None]
    is_run = len({letters for letters, _ in parts}) == 1 and len(set(parts)) == len(texts) > 1
    return sorted(texts, key=lambda text: (len(text), text)) if is_run else None


# -- cells of a column -------------------------------------------------------------------------

Kind = Literal["blank", "steps", "points", "number", "letters", "texts", "date", "many"]

_DATE = re.compile(
    r"\d{4}[-/]\d\d?[-/]\d\d?([ T].*)?|\d\d?[./-]\d\d?[./-](\d{4}|\d\d)([ ,].*)?|\d\d?:\d\d(:\d\d)?"
    r"|\d\d? \w+ \d{4}.*|\d+ (mins?|hours?|secs?|Minuten|Stunden)\b.*|\w+ \d\d?, \d{4}.*"
)
LETTERS = re.compile(r"[A-Ha-h]([,;/+& ]*[A-Ha-h])*")
_CODE = re.compile(r"-[0-9]+|[79]{1,4}|8{1,4}|9[0-9]|7[0-9]|99[0-9]|999[0-9]")
_PERCENT = re.compile(r"-?[\d.,]+ ?%")
#: Points have at most two decimals.
_LEAST_POINTS = Decimal("0.01")
#: Different percentages up to which they are points of a question.
_MOST_SHARES = 5
#: Share of a column's cells that must be of one kind.
SHARE = 0.8
#: Numbers from here on are no answers and no codes; the reader refuses such a cell.
LARGEST = Decimal(10**15)
#: Rows from which on values say that a column is no item.
ENOUGH_ROWS = 8


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


def find_unit(points: Collection[Decimal]) -> Decimal:
    """Return the step of points: 0.5 of half points, 5 of 0, 5 and 15; 1 where there is none.

    Examples
    --------
    >>> [float(find_unit([*map(Decimal, points)])) for points in ((0, 1.5), (0, 5, 15), (0, 3, 4))]
    [0.5, 5.0, 1.0]
    >>> find_unit([Decimal(0), Decimal("0.83"), Decimal("1.66")])
    Decimal('0.83')
    """
    doubled = [2 * n for n in points]
    if not doubled or min(doubled) < 0 or max(doubled) > 2000:
        return Decimal(1)
    if any(n % 1 for n in doubled):
        least = min(n for n in points if n > 0)
        is_odd = least < _LEAST_POINTS or any(n % least or n % _LEAST_POINTS for n in points)
        return Decimal(1) if is_odd else least
    common = gcd(*map(int, doubled)) or 2
    return Decimal(1 if common % 2 else common) / 2


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
        base = word.removesuffix("id")
        is_id = word.endswith(("erid", "entid", "onid", "recordid")) or base in name_words("items")
        return base if is_id else word

    def is_called(self, *kinds: str) -> bool:
        """Say whether its name is a word of these kinds; see :func:`name_words`."""
        return self.word in name_words(*kinds)

    @cached_property
    def spelt(self) -> Counter[str]:
        """How often each value occurs."""
        words: Counter[str] = Counter()
        for cell, times in Counter(self.cells).items():
            if cell is not None:
                words[spell(cell)] += times
        return words

    @cached_property
    def words(self) -> Counter[str]:
        """How often each value occurs, but for missing ones."""
        return Counter({w: times for w, times in self.spelt.items() if w.lower() not in _GONE})

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
        if self.percentages >= SHARE and len(self.words) <= _MOST_SHARES:
            return "texts"
        if (
            self._share(lambda word: bound_number(word) is not None or bool(_PERCENT.match(word)))
            > SHARE
        ):
            return self._kind_of_numbers()
        if self._share(lambda word: len(word) == 1 and bool(LETTERS.fullmatch(word))) >= SHARE:
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
        core, is_whole = self.core, all(n == int(n) for n in numbers[:50])
        if bool(numbers) and (is_whole or self._is_nearly_whole()):
            if core and max(core) - min(core) < MOST_CATEGORIES and max(core) < 20:
                return "steps"
            points = [Decimal(n) for n in core] if 0 in core else []
        else:
            points = [n for n in numbers if n % 1 or n in core]
        unit = find_unit(points)
        return "points" if unit != 1 and max(points) / unit < MOST_CATEGORIES else "number"

    def _is_nearly_whole(self) -> bool:
        """Say whether hardly a row, such as means, holds decimals."""
        broken = sum(
            n for w, n in self.words.items() if (v := bound_number(w)) is not None and v % 1
        )
        total = sum(self.words.values())
        return broken <= max(1, total // 12) < total


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


def name_columns(names: Sequence[str], rows: Sequence[Sequence[str | None]]) -> list[Column]:
    """Return the columns of rows."""
    return [
        Column(number, name, [row[number] if number < len(row) else None for row in rows])
        for number, name in enumerate(names)
    ]
