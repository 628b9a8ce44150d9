"""Blocks: columns of like names that hold the same values.

In: the columns that may be items. Out: blocks, the largest first, in words as people name them; and
what needs a question whatever the names say: columns that are copies of each other, and names that
come again for every rater or time.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log
from typing import Any

import numpy as np

from discreet.coding.values import spell
from discreet.tables.inspection.rules import rule
from discreet.tables.vocabulary import Column, bound_number, name_words, plain
from discreet.text import name_some

#: Like columns from which on they are a series, and not alike by chance.
SERIES = 3
#: Probability below which columns do not agree by chance, as a logarithm.
_CHANCE = log(1e-6)
#: Correlations of one criterion between raters must be so much above those of different ones.
_CLOSER = 0.2
#: Raters or times beside each other, at most.
_MOST_PARTS = 10
_POINTS_OF = re.compile(r"\s*/\s*[\d.,]+\s*$")
_LAST_LETTER = re.compile(r"(?<![^\W\d_])[^\W\d_](?=\W*$)")
_BETWEEN = re.compile(r"[\s_:.\-–()\[\]]+")
#: Words for raters and times at the end of a name, with the number or letter of one of them.
_PARTS = "|".join(sorted(name_words("raters", "times") - {"t"}, key=len, reverse=True))
_MARKED = re.compile(rf"(?<![^\W\d_])(?:{_PARTS})[\s_.\-]*(?:\d+|[a-z])?[)\]]*$", re.IGNORECASE)
_JOINED = re.compile(rf"(?<=[a-zß-ÿ])(?:{_PARTS.title()})[\s_.\-]*(?:\d+|[A-Z])?$")
#: The number or letter of a part.
_NUMBERED = re.compile(r"(?:[\s_.\-]*\d+|[\s_.\-]+[^\W\d_]|(?<=[a-zß-ÿ])[A-Z])$")


def name_stem(name: str) -> str:
    """Return a name with a sign for its numbers, and for a letter behind them that counts.

    Examples
    --------
    >>> name_stem("Q3_10"), name_stem("Aufgabe 1 b)"), name_stem("P. 2 /1,00"), name_stem("age")
    ('Q#_#', 'Aufgabe # @)', 'P. #', 'age')
    """
    numbered = re.sub(r"\d+", "#", _POINTS_OF.sub("", name.strip()))
    sign = re.search(r"[#_]", numbered)
    cut = sign.end() if sign else len(numbered)
    return numbered[:cut] + _LAST_LETTER.sub("@", numbered[cut:])


@dataclass(frozen=True)
class Block:
    """Columns of like names."""

    columns: tuple[Column, ...]

    @property
    def stem(self) -> str:
        """What the names have in common."""
        return name_stem(self.columns[0].name)

    @property
    def labels(self) -> list[str]:
        """What a reading calls the columns."""
        return [column.label for column in self.columns]

    @property
    def values(self) -> frozenset[str]:
        """The values of all columns; of numbers without codes for missing answers."""
        numbers = {str(value) for column in self.columns for value in column.core}
        words = {word.casefold() for column in self.columns for word in column.words}
        return frozenset(numbers or words)

    def tell(self) -> str:
        """Name the block and its values."""
        first, last = self.labels[0], self.labels[-1]
        named = f"'{first}' to '{last}'" if len(self.columns) > SERIES else name_some(self.labels)
        return f"{named} ({tell_values(self.columns)})"

    def is_like(self, other: Block) -> bool:
        """Say whether the columns may belong to one scale: by their values, or as tasks of it."""
        if self.values == other.values:
            return True
        if self.columns[0].kind in ("texts", "letters"):
            return len(self.values & other.values) * 2 >= min(len(self.values), len(other.values))
        is_scored = "0" in self.values & other.values or not self.columns[0].core
        return is_scored and plain(self.stem) == plain(other.stem)


def tell_values(columns: Sequence[Column]) -> str:
    """Name the values of columns: 1 to 7, or a few texts."""
    numbers = sorted({value for column in columns for value in column.core})
    if numbers:
        return f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else f"{numbers[0]} only"
    words = list(dict.fromkeys(word for column in columns for word in column.words))
    return ", ".join(f"'{word}'" for word in words[:4]) + ", ..." * (len(words) > 4)


def find_blocks(items: Sequence[Column]) -> list[Block]:
    """Return the blocks of columns that may be items, the largest first.

    Where most names have no series, all of them are one block: names alone do not part them.
    """
    by_stem: dict[str, list[Column]] = {}
    for column in items:
        by_stem.setdefault(name_stem(column.name), []).append(column)
    series = [Block(tuple(columns)) for columns in by_stem.values() if len(columns) >= SERIES]
    if 2 * sum(len(block.columns) for block in series) <= len(items):
        return _part_texts(items) or ([Block(tuple(items))] if items else [])
    series.sort(key=lambda block: -len(block.columns))
    main, blocks = [series[0]], list[Block]()
    for block in series[1:]:
        (main if block.is_like(series[0]) else blocks).append(block)
    numbers = {column.number for block in main for column in block.columns}
    rest = [column for column in items if len(by_stem[name_stem(column.name)]) < SERIES]
    inside = [column for column in rest if _is_inside(column, main[0], numbers)]
    first = sorted((*inside, *(c for one in main for c in one.columns)), key=lambda c: c.number)
    alone = [Block((column,)) for column in rest if column not in inside]
    return [Block(tuple(first)), *blocks, *alone]


@rule("fresh/GAD7_DATA_LABELS_2026-02-28_1140.csv")
def _part_texts(items: Sequence[Column]) -> list[Block] | None:
    """Return the columns as one block; texts that share no value with others as another."""
    groups: list[tuple[set[str], list[Column]]] = []
    for column in items:
        words = {word.casefold() for word in column.words} if column.kind == "texts" else {""}
        alike = [group for group in groups if group[0] & words]
        joined = words.union(*(group[0] for group in alike))
        together = [*(c for group in alike for c in group[1]), column]
        groups = [group for group in groups if group not in alike] + [(joined, together)]
    groups.sort(key=lambda group: -len(group[1]))
    return [Block(tuple(sorted(columns, key=lambda c: c.number))) for _, columns in groups]


@rule("kct.con", otherwise=False)
def _is_inside(column: Column, main: Block, numbers: set[int]) -> bool:
    """Say whether a column without a series belongs to one: by its place, or by its name."""
    one = Block((column,))
    is_known = one.values <= main.values or not one.values
    is_named = plain(one.stem) == plain(main.stem)
    if min(numbers) < column.number < max(numbers):
        return is_known and (is_named or len(column.words) != 1)  # no consent, no attention check
    return is_named and (one.values == main.values or (is_known and not plain(main.stem)))


# -- what needs a question --------------------------------------------------------------------


@rule("exports/wohlbefinden_w3.sav", otherwise=[])
def find_copies(items: Sequence[Column]) -> list[tuple[Column, Column]]:
    """Return columns that hold the same answers, as they are or turned round."""
    by_cells: dict[bytes, Column] = {}
    pairs = []
    for column in items:
        numbers = _number(column)
        if numbers is None or _judge_chance(numbers) > _CHANCE:
            continue
        turned = np.nanmax(numbers) + np.nanmin(numbers) - numbers
        keys = [np.nan_to_num(cells, nan=-1e9).tobytes() for cells in (numbers, turned)]
        first = next((by_cells[key] for key in keys if key in by_cells), None)
        if first is None:
            by_cells[keys[0]] = column
        else:
            pairs.append((first, column))
    return pairs


def _number(column: Column) -> np.ndarray | None:
    """Return the cells as numbers, texts in the order in which they come; None if they are few."""
    words = list(column.words)
    found = [bound_number(word) for word in words]
    numbers = [float(n) if n is not None else None for n in found]
    if len(words) < 2 or None in numbers:
        return None
    value_of = dict(zip(words, numbers, strict=True))
    value_of_cell = {cell: value_of.get(spell(cell or ""), np.nan) for cell in {*column.cells}}
    return np.array([value_of_cell[cell] for cell in column.cells])


def _judge_chance(numbers: np.ndarray) -> float:
    """Return the logarithm of the probability that another such column is the same."""
    _, times = np.unique(numbers[np.isfinite(numbers)], return_counts=True)
    shares = times / times.sum()
    return float(times.sum() * np.log((shares**2).sum()))


@dataclass(frozen=True)
class Parts:
    """Columns of every criterion by every rater, or of every item at every time."""

    by_part: dict[str, list[Column]]
    stems: tuple[str, ...]


@rule("exports/fractions pre post.csv")
def find_parts(items: Sequence[Column]) -> Parts | None:
    """Return names that come again for every rater or time; None where there are none.

    A word for raters or times says so, or answers that are closer for one name than for others.
    """
    cuts = {column.number: _cut(column.name) for column in items}
    for at_front in (False, True):
        grid = _lay_out(items, cuts, at_front=at_front)
        is_complete = len({frozenset(columns) for columns in grid.values()}) == 1
        stems = tuple(next(iter(grid.values()), ()))
        if len(grid) < 2 or not is_complete or len(stems) * len(grid) != len(items):
            continue
        is_rated = _names_parts(grid, "raters")
        if not is_rated and (len(stems) == 1 or len(grid) > _MOST_PARTS):
            continue
        if _names_parts(grid) or _are_closer(grid, stems):
            return Parts({part: list(columns.values()) for part, columns in grid.items()}, stems)
    return None


def _names_parts(parts: Collection[str], *kinds: str) -> bool:
    """Say whether all names are words for raters, or for times, with their numbers or letters."""
    words = {plain(_NUMBERED.sub("", part)) for part in parts}
    return any(words <= name_words(kind) for kind in kinds or ("times", "raters", "rounds"))


def _cut(name: str) -> tuple[str, str] | None:
    """Return a name in front of its last word, with the number or letter of a part, and that word.

    Examples
    --------
    >>> _cut("Content_RaterA"), _cut("q1pre"), _cut("Rater 2"), _cut("item 4 (post)"), _cut("age")
    (('Content', 'RaterA'), ('q1', 'pre'), ('', 'Rater 2'), ('item 4', 'post'), None)
    """
    marked = _MARKED.search(name) or _JOINED.search(name)
    if marked is not None:
        return name[: marked.start()].strip(" _:.-–(["), marked[0].strip(" _:.-–([)]")
    words = [word for word in _BETWEEN.split(name) if word]
    if len(words) < 2:
        return None
    is_number = words[-1].isdigit() and len(words) > 2
    behind = " ".join(words[-2:]) if is_number else words[-1]
    return name[: name.rindex(words[-2 if is_number else -1])].strip(" _:.-–(["), behind


def _lay_out(
    items: Sequence[Column], cuts: dict[int, tuple[str, str] | None], *, at_front: bool
) -> dict[str, dict[str, Column]]:
    """Return columns by part and by stem; the part stands in front of the stem, or behind it."""
    grid: dict[str, dict[str, Column]] = {}
    for column in items:
        if (cut := cuts[column.number]) is not None:
            stem, part = cut[::-1] if at_front else cut
            grid.setdefault(part, {})[stem] = column
    return grid


@rule("exports/writing rubric.csv", otherwise=False)
def _are_closer(grid: dict[str, dict[str, Column]], stems: Sequence[str]) -> bool:
    """Say whether columns of one stem go together more closely than columns of different stems."""
    cells = {(part, stem): _number(grid[part][stem]) for part in grid for stem in stems}
    if any(numbers is None or len(numbers) < 10 for numbers in cells.values()):
        return False
    table = np.ma.masked_invalid(np.array([cells[key] for key in cells], dtype=float))
    if (table.std(axis=1) == 0).any():
        return False
    correlate: Any = np.ma.corrcoef  # of persons who have both
    correlation, keys = correlate(table).filled(0), list(cells)
    within, between = list[float](), list[float]()
    for (i, one), (j, other) in combinations(enumerate(keys), 2):
        if one[0] != other[0]:
            (within if one[1] == other[1] else between).append(float(correlation[i, j]))
    return float(np.mean(within) - np.mean(between)) > _CLOSER
