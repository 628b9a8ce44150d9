"""Ratings: scores that raters gave persons on items, and other facets of each score.

In: a long table with the columns person, item, score and one column per facet (rater, task,
time, ...), or codes. Out: :class:`Ratings`, sorted by person and item, in memory; or
:class:`StoredRatings`, the same in batches of whole persons on disk.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from discreet.answers.judges import find_role
from discreet.errors import BadResponses, BadUsage
from discreet.tables.columns import check_column, list_column_names, plain_name
from discreet.tables.ids import IdCodes, read_ids, spell_ids
from discreet.tables.opener import RowPlaces, Source, read_tables
from discreet.tables.reading import Reading, join_words
from discreet.tables.values import MISSING_WORDS, plain_dictionary, read_integers, show, spell
from discreet.text import count_of
from discreet.types import Int32Array, Int64Array, Texts

#: More categories are hardly a rating; a column of ids or of seconds looks like this.
MOST_STEPS = 100

#: Keywords of reading that mean something for ratings.
USEFUL_WORDS = (
    "layout", "person", "item", "response", "missing", "lowest", "model",
    "sheet", "delimiter", "header",
)  # fmt: skip

#: Ratings of a batch on disk: about 100 MB.
BATCH_RATINGS = 1 << 23

_ALIASES = {
    "person": {"person", "id", "subject", "user", "student", "essay", "examinee"},
    "item": {"item", "question", "problem", "criterion", "trait"},
    "response": {"response", "resp", "score", "rating", "answer", "correct"},
}


@dataclass(frozen=True, eq=False, repr=False)
class Ratings:
    """Ratings in memory, sorted by person, then item.

    Attributes
    ----------
    items
        Item names.
    facets
        By name of the facet, the names of its levels.
    person, item, score
        Of each rating: the number of its person and item, and the score from 0.
    codes
        By name of the facet, the number of each rating's level.
    lowest
        What the data call the lowest score; it was taken off.
    ids
        Person ids as Arrow texts or numbers.

    Examples
    --------
    >>> ratings = Ratings.from_codes([0, 0, 1], [0, 1, 0], [2, 1, 0], facets={"rater": [0, 0, 1]})
    >>> ratings.n_persons, ratings.n_ratings, ratings.facets
    (2, 3, {'rater': ('0', '1')})
    """

    items: tuple[str, ...]
    facets: Mapping[str, tuple[str, ...]]
    person: Int32Array
    item: Int32Array
    score: Int32Array
    codes: Mapping[str, Int32Array]
    lowest: int = 0
    ids: Any = None

    @classmethod
    def from_codes(
        cls,
        person: Any,
        item: Any,
        score: Any,
        *,
        facets: Mapping[str, Any],
        items: Sequence[str] | None = None,
        levels: Mapping[str, Sequence[str]] | None = None,
        lowest: int = 0,
        ids: Any = None,
    ) -> Self:
        """Make ratings of numbers: persons, items, scores from 0, and the levels of facets.

        Examples
        --------
        >>> Ratings.from_codes([0, 0], [0, 0], [1, 2], facets={"rater": [0, 1]})
        <Ratings: 2 ratings of 1 person on 1 item; rater: 2 levels>
        """
        person, item = np.asarray(person), np.asarray(item)
        n_items = int(item.max(initial=-1)) + 1 if items is None else len(items)
        order = np.argsort(person.astype(np.int64) * n_items + item, kind="stable")
        is_sorted = bool((order[1:] > order[:-1]).all())

        def arrange(values: Any) -> Int32Array:
            numbers = np.asarray(values, np.int32)
            return numbers if is_sorted else numbers[order]

        codes = {name: arrange(values) for name, values in facets.items()}
        names = levels or {}
        labels = {
            name: tuple(names.get(name) or map(str, range(int(values.max(initial=-1)) + 1)))
            for name, values in codes.items()
        }
        chosen = tuple(items if items is not None else map(str, range(n_items)))
        return cls(
            chosen, labels, arrange(person), arrange(item), arrange(score), codes, lowest, ids
        )

    @property
    def n_persons(self) -> int:
        """How many persons were rated."""
        return int(self.person[-1]) + 1 if len(self.person) else 0

    @property
    def n_ratings(self) -> int:
        """How many ratings there are."""
        return len(self.score)

    @classmethod
    def from_rows(
        cls, rows: Int32Array, lowest: int, levels: Mapping[str, Any], **about: Any
    ) -> Self:
        """Make ratings of rows of codes: person, item, score as the data have it, facets."""
        person, item, score, *codes = rows.T
        facets = dict(zip(levels, codes, strict=True))
        return cls.from_codes(
            person, item, score - lowest, facets=facets, levels=levels, lowest=lowest, **about
        )

    @cached_property
    def persons(self) -> Texts:
        """Person ids."""
        ids = np.empty(self.n_persons, dtype=object)
        ids[:] = list(map(str, range(self.n_persons))) if self.ids is None else spell_ids(self.ids)
        return ids

    def batches(self) -> Sequence[Ratings]:
        """Return the ratings as one batch of whole persons."""
        return (self,)

    def count_categories(self) -> Int64Array:
        """Count the ratings in each category, ``[item, category]``."""
        widest = MOST_STEPS + 1
        counts = np.bincount(self.item * widest + self.score, minlength=len(self.items) * widest)
        return counts.reshape(len(self.items), widest)

    def select(self, chosen: Any) -> Ratings:
        """Return some ratings; persons keep their numbers."""
        codes = {name: values[chosen] for name, values in self.codes.items()}
        rows = {name: getattr(self, name)[chosen] for name in ("person", "item", "score")}
        return replace(self, codes=codes, **rows)

    def describe(self) -> str:
        """Say how many ratings, persons, items and levels there are."""
        facets = [f"{name}: {count_of(len(lev), 'level')}" for name, lev in self.facets.items()]
        return (
            f"{count_of(self.n_ratings, 'rating')} of {count_of(self.n_persons, 'person')} on "
            f"{count_of(len(self.items))}; {'; '.join(facets)}"
        )

    def __repr__(self) -> str:
        return f"<Ratings: {self.describe()}>"


@dataclass(frozen=True, eq=False)
class StoredRatings:
    """Ratings on disk, in batches of whole persons; memory holds one batch at a time.

    Use it in a ``with`` statement: at its end the files are gone.
    """

    items: tuple[str, ...]
    facets: Mapping[str, tuple[str, ...]]
    n_persons: int
    n_ratings: int
    lowest: int
    folder: Path
    first_persons: Int64Array
    ids: Any = None

    def batches(self) -> StoredRatings:
        """Return the batches, which can be gone through again and again."""
        return self

    def __iter__(self) -> Iterator[Ratings]:
        for number, first in enumerate(self.first_persons[:-1].tolist()):
            numbers = np.fromfile(_name_batch(self.folder, number), np.int32)
            rows = numbers.reshape(-1, 3 + len(self.facets))
            rows[:, 0] -= first
            yield Ratings.from_rows(rows, self.lowest, self.facets, items=self.items)

    def count_categories(self) -> Int64Array:
        """Count the ratings in each category, ``[item, category]``."""
        return np.asarray(sum(batch.count_categories() for batch in self))


RatingSource = Ratings | StoredRatings


def _name_batch(folder: Path, number: int) -> Path:
    return folder / f"batch-{number}"


@contextmanager
def open_ratings(
    data: Any, facets: Sequence[str], words: Mapping[str, Any], engine: str = "auto"
) -> Iterator[RatingSource]:
    """Give ratings, read from a table if need be, in memory or (engine "disk") on disk."""
    if isinstance(data, Ratings | StoredRatings):
        absent = [name for name in facets if name not in data.facets]
        if absent:
            raise BadUsage(
                f"the ratings have no facet '{absent[0]}'; they have: {', '.join(data.facets)}."
            )
        yield data
    elif engine not in ("disk", "duckdb"):
        yield read_ratings(data, facets=facets, **words)
    else:
        with tempfile.TemporaryDirectory(prefix="discreet-") as folder:
            reading = plan_ratings(words)
            spill = _SpilledRows(Path(folder), 3 + len(facets))
            store = partial(_store, tuple(facets), reading, spill)
            yield read_tables(data, store, form=reading.form)


def plan_ratings(words: Mapping[str, Any]) -> Reading:
    """Check the keywords for reading a table of ratings."""
    reading = join_words(words)
    useless = sorted(set(reading.stated).difference(USEFUL_WORDS))
    if useless or reading.layout == "wide":
        raise BadUsage(
            f"{(useless or ['layout'])[0]}= has no meaning for ratings, whose tables are long. "
            f"They are read with {', '.join(f'{word}=' for word in USEFUL_WORDS)}."
        )
    return reading


def read_ratings(source: Any, *, facets: Sequence[str], **words: Any) -> Ratings:
    r"""Read ratings from a long table: a file of any format, or a data frame.

    Parameters
    ----------
    source
        A file, a folder, a pattern or a data frame with one row per rating.
    facets
        Columns of raters, tasks, times and the like.
    words
        ``person=``, ``item=``, ``response=`` name columns that are called otherwise; a table
        without a column of items has one item. ``missing=`` lists codes that stand for no rating,
        ``lowest=`` says what the lowest score is (by default the smallest whole number that
        occurs, at least 0). ``sheet=``, ``delimiter=``, ``header=`` are those of
        :func:`discreet.read_responses`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "essays.csv")
    ...     _ = file.write_text("essay,rater,score\ne1,ann,2\ne1,bob,1\n")
    ...     read_ratings(file, facets=["rater"])
    <Ratings: 2 ratings of 1 person on 1 item; rater: 2 levels>
    """
    reading = plan_ratings(words)
    collect = partial(_collect, tuple(facets), reading)
    return read_tables(source, collect, form=reading.form)


def _collect(facets: tuple[str, ...], reading: Reading, sources: Iterator[Source]) -> Ratings:
    table = _RatingTable(facets, reading)
    rows, lowest = np.concatenate(list(table.read_all(sources))), table.find_lowest()
    return Ratings.from_rows(rows, lowest, table.levels, items=table.items, ids=table.person_ids)


def _store(
    facets: tuple[str, ...], reading: Reading, spill: _SpilledRows, sources: Iterator[Source]
) -> StoredRatings:
    table = _RatingTable(facets, reading)
    spill.clear()
    for block in table.read_all(sources):
        spill.add(block)
    first_persons = spill.split()
    sizes = (int(first_persons[-1]), spill.n_rows, table.find_lowest())
    location = (spill.folder, first_persons, table.person_ids)
    return StoredRatings(table.items, table.levels, *sizes, *location)


class _SpilledRows:
    """Rows of codes in a file, and later in one file for each batch of persons."""

    def __init__(self, folder: Path, width: int) -> None:
        self.folder, self._width, self._file = folder, width, folder / "rows"
        self.clear()

    def clear(self) -> None:
        self.n_rows = 0
        self._counts = np.zeros(0, np.int64)
        self._file.unlink(missing_ok=True)

    def add(self, rows: Int32Array) -> None:
        counts = np.bincount(rows[:, 0], minlength=len(self._counts))
        counts[: len(self._counts)] += self._counts
        self._counts, self.n_rows = counts, self.n_rows + len(rows)
        with self._file.open("ab") as file:
            np.ascontiguousarray(rows).tofile(file)

    def split(self) -> Int64Array:
        """Write the rows of each batch to its own file; return the batches' first persons."""
        ends = np.cumsum(self._counts)
        aims = np.arange(0, ends[-1], BATCH_RATINGS)
        starts = np.unique(np.searchsorted(ends, aims, side="right"))
        rows = np.memmap(self._file, np.int32, "r").reshape(-1, self._width)
        for low in range(0, len(rows), BATCH_RATINGS):
            block = np.asarray(rows[low : low + BATCH_RATINGS])
            batch = np.searchsorted(starts, block[:, 0], side="right") - 1
            for number in np.unique(batch).tolist():
                with _name_batch(self.folder, number).open("ab") as file:
                    block[batch == number].tofile(file)
        return np.append(starts, len(self._counts))


class _RatingTable:
    """Turns the rows of tables into codes."""

    def __init__(self, facets: tuple[str, ...], reading: Reading) -> None:
        self._facets, self._reading = facets, reading
        self._rows = RowPlaces()
        self._ids = {name: IdCodes() for name in ("person", "item", *facets)}
        self._has_items = True
        self._range: list[int] = []

    @property
    def items(self) -> tuple[str, ...]:
        """Item names; one where the table has no column of items."""
        return tuple(spell_ids(self._ids["item"].ids())) if self._has_items else ("score",)

    @property
    def levels(self) -> dict[str, tuple[str, ...]]:
        """By facet, the names of its levels."""
        return {name: tuple(spell_ids(self._ids[name].ids())) for name in self._facets}

    @property
    def person_ids(self) -> Any:
        """Ids of persons, as Arrow texts or numbers."""
        return self._ids["person"].ids()

    def read_all(self, sources: Iterator[Source]) -> Iterator[Int32Array]:
        """Yield rows of codes: person, item, score, facets."""
        for source in sources:
            columns = _find_columns(source.names, self._facets, self._reading, source.name)
            self._has_items = "item" in columns
            self._rows.begin(source)
            for batch in source.batches(list(columns.values())):
                names = {role: source.names[number] for role, number in columns.items()}
                rows = self._read_batch(dict(zip(columns, batch, strict=True)), names)
                if len(rows):
                    yield rows
        if not self._range:
            raise BadResponses(
                "The table has column names but no rows, so there are no ratings in it."
            )

    def _read_batch(self, cells: Mapping[str, Any], names: Mapping[str, str]) -> Int32Array:
        score = self._read_scores(cells["response"], names["response"])
        parts = []
        for role in ("person", "item", *self._facets):
            part = np.zeros(len(score), np.int32)
            if role in cells:
                ids = read_ids(cells[role], names[role], role, self._rows)
                self._ids[role].add(ids, cells[role].type)
                part = self._ids[role].take_codes()
            parts.append(part)
        self._rows.n_rows += len(score)
        rows = np.column_stack([parts[0], parts[1], score, *parts[2:]])
        return np.asarray(rows[score >= 0], dtype=np.int32)

    def _read_scores(self, column: Any, name: str) -> Int32Array:
        """Return the scores, -1 where there is none."""
        cells = plain_dictionary(column)
        words = cells.dictionary.to_pylist()
        table = np.full(len(words) + 1, -1, np.int32)
        missing = {*MISSING_WORDS, *self._reading.codes.get("*", ())}
        for number, word in enumerate(words):
            text = spell(word).lower()
            if text in missing:
                continue
            if not (text.isascii() and text.isdecimal() and int(text) <= 10 * MOST_STEPS):
                row = self._rows.n_rows + cells.indices.to_pylist().index(number)
                raise BadResponses(
                    f"{self._rows.place(row)}, column '{name}': found {show(word)}, which is no "
                    "score: scores are whole numbers from 0. Name codes for a missing rating with "
                    "missing= (--missing), or write the scores as whole numbers."
                )
            table[number] = int(text)
        index = read_integers(cells.indices.cast(pa.int64()).fill_null(len(words)))
        score: Int32Array = table[index]
        rated = score[score >= 0]
        if len(rated):
            self._range += [int(rated.min()), int(rated.max())]
        return score

    def find_lowest(self) -> int:
        """Return what the data call the lowest score."""
        low, high = min(self._range), max(self._range)
        lowest = low if self._reading.lowest is None else self._reading.lowest
        if lowest > low or high - lowest > MOST_STEPS:
            raise BadResponses(
                f"the scores go from {low} to {high}; with {lowest} as the lowest one there would "
                f"be scores below it or more than {MOST_STEPS} steps. Check that the column holds "
                "scores, and name codes for missing ones with missing= (--missing)."
            )
        return lowest


def _find_columns(
    names: Sequence[str], facets: Sequence[str], reading: Reading, location: str
) -> dict[str, int]:
    """Return the numbers of the columns by role; items may be absent."""
    found: dict[str, int] = {}
    plain_names = dict(enumerate(map(plain_name, names)))
    for facet in facets:
        check_column(names, "facets", facet, location)
        found[facet] = list(names).index(facet)
    for role, aliases in _ALIASES.items():
        free = {
            number: plain for number, plain in plain_names.items() if number not in found.values()
        }
        exact = [number for number, name in free.items() if name == role]
        candidates = exact or [number for number, name in free.items() if name in aliases]
        column = find_role(names, role, getattr(reading, role), candidates, location)
        if column is not None:
            found[role] = column
        elif role != "item":
            raise BadResponses(
                f"{location}: no column holds the {role}; the columns are "
                f"{list_column_names(names)}. Name it with {role}=NAME (--{role} NAME)."
            )
    return found
