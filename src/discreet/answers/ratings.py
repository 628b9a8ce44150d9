"""Ratings: scores that raters gave persons on items, and other facets of each score.

In: codes, which :mod:`discreet.readers.ratings` takes from tables. Out: :class:`Ratings`, sorted by
person and item, in memory; or :class:`StoredRatings`, the same in batches of whole persons on disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from discreet.choices import PlainMapping
from discreet.coding.ids import spell_ids
from discreet.coding.reading import Reading
from discreet.text import count_of
from discreet.types import Int32Array, Int64Array, Texts

#: More categories are hardly a rating; a column of ids or of seconds looks like this.
MOST_STEPS = 100


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
    reading
        Which codes stood for no rating, and the lowest score; None where they were not read.

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
    reading: Reading | None = None

    @classmethod
    def from_codes(
        cls,
        person: Any,
        item: Any,
        score: Any,
        *,
        facets: PlainMapping,
        items: Sequence[str] | None = None,
        levels: Mapping[str, Sequence[str]] | None = None,
        lowest: int = 0,
        ids: Any = None,
        reading: Reading | None = None,
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

        def arrange(values: object) -> Int32Array:
            numbers = np.asarray(values, np.int32)
            return numbers if is_sorted else numbers[order]

        codes = {name: arrange(values) for name, values in facets.items()}
        names = levels or {}
        labels = {
            name: tuple(names.get(name) or map(str, range(int(values.max(initial=-1)) + 1)))
            for name, values in codes.items()
        }
        chosen = tuple(items if items is not None else map(str, range(n_items)))
        sorted_columns = arrange(person), arrange(item), arrange(score)
        return cls(chosen, labels, *sorted_columns, codes, lowest, ids, reading)

    @property
    def n_persons(self) -> int:
        """How many persons were rated."""
        return int(self.person[-1]) + 1 if len(self.person) else 0

    @property
    def n_ratings(self) -> int:
        """How many ratings there are."""
        return len(self.score)

    @classmethod
    def from_rows(cls, rows: Int32Array, lowest: int, levels: PlainMapping, **about: Any) -> Self:
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
    reading: Reading | None = None

    def batches(self) -> StoredRatings:
        """Return the batches, which can be gone through again and again."""
        return self

    def __iter__(self) -> Iterator[Ratings]:
        for number, first in enumerate(self.first_persons[:-1].tolist()):
            numbers = np.fromfile(name_batch(self.folder, number), np.int32)
            rows = numbers.reshape(-1, 3 + len(self.facets))
            rows[:, 0] -= first
            yield Ratings.from_rows(rows, self.lowest, self.facets, items=self.items)

    def count_categories(self) -> Int64Array:
        """Count the ratings in each category, ``[item, category]``."""
        return np.asarray(sum(batch.count_categories() for batch in self))


RatingSource = Ratings | StoredRatings


def name_batch(folder: Path, number: int) -> Path:
    """Return the file of a batch of ratings."""
    return folder / f"batch-{number}"
