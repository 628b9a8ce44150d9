"""Ratings from tables.

In: a long table with the columns person, item, score and one column per facet (rater, task,
time, ...). Out: :class:`~discreet.Ratings` in memory, or in batches of whole persons on disk.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa

from discreet.answers.ratings import MOST_STEPS, Ratings, RatingSource, StoredRatings, name_batch
from discreet.choices import PlainMapping
from discreet.coding.ids import spell_ids
from discreet.coding.reading import Reading, join_words
from discreet.coding.values import MISSING_WORDS, show, spell
from discreet.errors import BadResponses, BadUsage, OutOfReach
from discreet.readers.comparisons import find_role
from discreet.results.estimate import Estimate
from discreet.tables.carrying import carry_reading
from discreet.tables.cells import plain_dictionary, read_integers
from discreet.tables.columns import check_column, list_column_names, plain_name
from discreet.tables.ids import IdCodes, read_ids
from discreet.tables.opener import RowPlaces, Source, read_tables
from discreet.types import Int32Array, Int64Array

#: Ratings of a batch on disk: about 100 MB.
BATCH_RATINGS = 1 << 23

#: Keywords of reading that mean something for ratings.
USEFUL_WORDS = (
    "layout", "person", "item", "response", "missing", "lowest", "model",
    "sheet", "delimiter", "header",
)  # fmt: skip


PERSON_NAMES = {"person", "id", "subject", "user", "student", "essay", "examinee"}
_ALIASES = {
    "person": PERSON_NAMES,
    "item": {"item", "question", "problem", "criterion", "trait"},
    "response": {"response", "resp", "score", "rating", "answer", "correct"},
}


#: Of a reading, what new ratings are read by.
CARRIED = frozenset({"missing", "lowest"})


def read_rated(source: object, estimate: Estimate, words: PlainMapping) -> Ratings:
    """Return new ratings for an estimate of ratings: read as its own were."""
    names = dict.fromkeys(name for term in estimate.facets for name in term.split(":"))
    if isinstance(source, StoredRatings):
        raise OutOfReach("this looks at single persons and needs their ratings in memory")
    if not isinstance(source, Ratings):
        carried = carry_reading(estimate.reading, words, CARRIED)
        own = {name: value for name, value in carried.items() if name not in ("carried", "reverse")}
        return read_ratings(source, facets=[*names], **own)
    with open_ratings(source, [*names], {}) as ratings:
        return cast(Ratings, ratings)


@contextmanager
def open_ratings(
    data: object, facets: Sequence[str], words: PlainMapping, engine: str = "auto"
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


def plan_ratings(words: PlainMapping) -> Reading:
    """Check the keywords for reading a table of ratings."""
    reading = join_words(words)
    useless = sorted(set(reading.stated).difference(USEFUL_WORDS))
    if useless or reading.layout == "wide":
        raise BadUsage(
            f"{(useless or ['layout'])[0]}= has no meaning for ratings, whose tables are long. "
            f"They are read with {', '.join(f'{word}=' for word in USEFUL_WORDS)}."
        )
    return reading


def read_ratings(source: object, *, facets: Sequence[str], **words: object) -> Ratings:
    r"""Read ratings from a long table: a file of any format, or a data frame.

    Parameters
    ----------
    source
        A file, a folder, a pattern or a data frame with one row per rating. With one facet also
        with a column for every rater, or a row for every person and rater.
    facets
        Columns of raters, tasks, times and the like; a name for the raters where each has columns.
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
    try:
        reading = plan_ratings(words)
        collect = partial(_collect, tuple(facets), reading)
        return read_tables(source, collect, form=reading.form)
    except (BadResponses, BadUsage):
        from discreet.readers.crossed import find_crossed  # loads the inspection

        ratings = find_crossed(source, facets, words)
        if ratings is None:
            raise
        return ratings


def _collect(facets: tuple[str, ...], reading: Reading, sources: Iterator[Source]) -> Ratings:
    table = _RatingTable(facets, reading)
    rows, lowest = np.concatenate(list(table.read_all(sources))), table.find_lowest()
    about = {"items": table.items, "ids": table.person_ids, "reading": table.settle_reading()}
    return Ratings.from_rows(rows, lowest, table.levels, **about)


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
    stored = StoredRatings(table.items, table.levels, *sizes, *location)
    return replace(stored, reading=table.settle_reading())


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
                with name_batch(self.folder, number).open("ab") as file:
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

    def _read_batch(self, cells: PlainMapping, names: Mapping[str, str]) -> Int32Array:
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

    def _read_scores(self, column: pa.Array, name: str) -> Int32Array:
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

    def settle_reading(self) -> Reading:
        """Return how scores are read, as new ratings are to be."""
        missing = {name: self._reading.stated[name] for name in CARRIED & {*self._reading.stated}}
        return Reading(**(missing | {"lowest": self.find_lowest()}))

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
