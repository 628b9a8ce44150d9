"""The answers of many persons to many items: the one type that all else starts from.

In: checked parts. Out: :class:`Responses`, which never changes. It holds answers and names and
computes nothing about difficulty.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy.typing as npt

from discreet.answers.protocol import Answers, Job, digest_store, fold_blocks
from discreet.answers.select import (
    ABSENT,
    cap_answers,
    check_cap,
    number_items,
    refuse_routing,
    select_columns,
)
from discreet.answers.survey import DesignWords, SurveyDesign, make_sample
from discreet.checking import checked
from discreet.choices import Layout
from discreet.coding.ids import (
    check_groups,
    check_items,
    check_person_ids,
    make_ids,
    number_persons,
)
from discreet.coding.reading import PLAIN, Reading, ReadingWords, StepWords
from discreet.coding.remedies import Detected
from discreet.coding.values import Codes
from discreet.counts.planes import AnswerStore
from discreet.names import name_id
from discreet.types import Int8Array, Texts

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from discreet.answers.choices import Choices
    from discreet.answers.routed import RoutedPersons, RoutingDesign
    from discreet.counts import PairCounts
    from discreet.counts.folds import Tally
    from discreet.counts.pairs import Weighting
    from discreet.secure import RandomSource


class Responses(Answers):
    """Persons x items, each answer right (1), wrong (0) or missing. It cannot be changed.

    With steps (rating scales, points) an answer is a whole number from 0 to the item's steps. Made
    by :func:`discreet.read_responses`, :meth:`from_array` or :meth:`from_dataframe`.

    Parameters
    ----------
    items
        One name per item, all different, in column order.
    persons
        One id per person, all different; None numbers them "0", "1", ...
    store
        The answers, as bit planes or sparse rows (see :mod:`discreet.counts.planes`).
    groups
        Further facts, one text per person ("" where unknown), by column name.
    choices
        What was chosen, where a key turned it into right and wrong.
    reading
        How values became answers: what was stated, and where scales were found to begin and end.
    detected
        What the data decided about how they were read.
    sample
        Weights and sampling design of the persons; see :meth:`weigh`. None where everybody counts
        alike.
    routing
        The paths of persons through a multistage test; see :meth:`route`. None where the answers
        chose no items.

    Attributes
    ----------
    n_persons, n_items, n_answers
        How many persons, those without any answer included; items, those that nobody answered
        included; and answers that were given.
    steps
        Per item, its highest category: 1 for right and wrong.

    Examples
    --------
    >>> import numpy as np
    >>> answers = Responses.from_array(np.array([[1, 0], [1, np.nan]]), items=["easy", "hard"])
    >>> answers
    <Responses: 2 persons, 2 items, 3 answers (75% filled)>
    >>> answers.select(["hard"]).to_array().tolist()
    [[0], [-1]]
    """

    in_memory = True
    __slots__ = (
        *("items", "store", "groups", "choices", "reading", "detected", "sample", "routing"),
        *("n_persons", "n_items", "n_answers", "steps", "_persons", "_persons_made"),
    )

    items: tuple[str, ...]
    store: AnswerStore
    groups: Mapping[str, Texts]
    choices: Choices | None
    reading: Reading
    detected: tuple[Detected, ...]
    sample: SurveyDesign | None
    routing: RoutedPersons | None
    n_persons: int
    n_items: int
    n_answers: int
    steps: tuple[int, ...]
    _persons: Any  # Arrow strings or numbers: a fifth of the memory of Python strings
    _persons_made: Texts | None

    def __init__(
        self,
        items: Sequence[str],
        persons: object,
        store: AnswerStore,
        groups: Mapping[str, npt.ArrayLike] | None = None,
        choices: Choices | None = None,
        reading: Reading = PLAIN,
        detected: Sequence[Detected] = (),
        sample: SurveyDesign | None = None,
        routing: RoutedPersons | None = None,
    ) -> None:
        n_persons = store.n_persons
        names, facts = check_items(items, store.n_items), check_groups(groups or {}, n_persons)
        ids = None if persons is None else check_person_ids(persons, n_persons)
        values = (
            *(names, store, facts, choices, reading, tuple(detected), sample, routing),
            *(n_persons, store.n_items, store.n_answers, store.steps, ids, None),
        )
        for slot, value in zip(self.__slots__, values, strict=True):
            object.__setattr__(self, slot, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Responses cannot be changed; build a new one instead of '{name}'.")

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __reduce__(self) -> tuple[Any, ...]:
        about = (dict(self.groups), self.choices, self.reading, self.detected)
        persons = (self.items, self._persons, self.store)
        return Responses, (*persons, *about, self.sample, self.routing)

    def _derive(self, **changes: Any) -> Responses:
        """Return other answers of the same persons."""
        parts = ("items", "store", "groups", "choices", "reading", "detected", "sample", "routing")
        kept_parts = {name: getattr(self, name) for name in parts if name not in changes}
        return Responses(**{"persons": self._persons, **kept_parts, **changes})

    def number_rows(self) -> Responses:
        """Return the same answers; persons without ids are rows, as people count them from 1."""
        return self if self.has_ids else self._derive(persons=number_persons(self.n_persons))

    # -- made from ---------------------------------------------------------------------------

    @classmethod
    @checked
    def from_array(
        cls,
        X: object,
        items: Sequence[object] | None = None,
        persons: Sequence[object] | None = None,
        *,
        missing: Codes = (),
        **steps: Unpack[StepWords],
    ) -> Responses:
        """Take a matrix with a row per person and a column per item.

        Parameters
        ----------
        X
            0, 1 (or booleans), or steps from 0 or 1; NaN, None, a masked entry, or -1 in an array
            of signed numbers for missing. In a **scipy sparse matrix** the entries it holds are
            the answers: an explicit 0 is a wrong answer, an entry that is not held is missing.
        items
            Names of the columns; by default "0", "1", ...
        persons
            Ids of the rows; by default "0", "1", ...
        missing
            Further codes for a missing answer, such as 9 or ``[9, 99]``; by item:
            ``{"Q1": 9, "Q2": [98, 99]}``.
        steps
            ``model=``, ``steps=``, ``lowest=``, ``reverse=``, ``merge=``; see `read_responses`.
        """
        from discreet.answers.matrices import store_array

        names = None if items is None else tuple(map(name_id, items))
        rules = Reading(missing=missing, **steps)
        store, scale = store_array(X, names, rules.codes, rules.asked)
        return cls.from_store(store, names, persons, replace(rules, scale=scale))

    @classmethod
    def from_store(
        cls,
        store: AnswerStore,
        items: Sequence[object] | None = None,
        persons: Sequence[object] | None = None,
        reading: Reading = PLAIN,
    ) -> Responses:
        """Name the answers of a store; items and persons default to "0", "1", ..."""
        names = map(str, range(store.n_items)) if items is None else map(name_id, items)
        about = reading.about_values
        return cls(tuple(names), persons, store, reading=about, detected=reading.detected)

    @classmethod
    @checked
    def from_dataframe(cls, frame: object, **reading: Unpack[ReadingWords]) -> Responses:
        """Take a long or wide data frame: pandas, polars, pyarrow, duckdb and others.

        The keywords are those of :func:`discreet.read_responses`. Null and NaN are missing,
        truth values, numbers and text are read as in a file. A pandas index with names or
        with other labels than 0, 1, ... counts as columns; a pandas Series with an index of
        persons and items, and a list of dictionaries, one a row, are frames too.

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = pa.table({"student": ["a", "a", "b"], "item": ["x", "y", "x"],
        ...                   "correct": [True, False, None]})
        >>> Responses.from_dataframe(table)
        <Responses: 2 persons, 2 items, 2 answers (50% filled)>
        """
        # The one way from the core to those who read tables, who make what this returns.
        door = import_module("discreet.readers.answers")
        answers: Responses = door.read_frame_words(frame, reading)
        return answers

    # -- what it holds -----------------------------------------------------------------------

    @property
    def persons(self) -> Texts:
        """Ids of the persons as text, in row order (made when first asked for)."""
        if self._persons_made is None:
            object.__setattr__(self, "_persons_made", make_ids(self._persons, self.n_persons))
        return cast(Texts, self._persons_made)

    @property
    def has_ids(self) -> bool:
        """Whether persons have ids; otherwise rows are numbered."""
        return self._persons is not None

    @property
    def person_ids(self) -> pa.Array | None:
        """Ids as Arrow strings; None where persons have none and are numbered."""
        return None if self._persons is None else self._persons.cast("string")

    def weigh(self, **design: Unpack[DesignWords]) -> Responses:
        """Return the same answers with weights and a sampling design, from columns of groups.

        Parameters
        ----------
        design
            ``weight=``, ``strata=``, ``cluster=``, ``replicates=`` and ``replication=``; see
            :func:`discreet.fit`.

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = pa.table({"id": [1, 2], "q1": [1, 0], "q2": [0, 1], "w": [1.5, 0.0]})
        >>> answers = Responses.from_dataframe(table, group="w").weigh(weight="w")
        >>> answers.sample.weight.tolist()
        [0.75, 0.0]
        """
        refuse_routing(self.routing, "weighing")
        return self._derive(sample=make_sample(self.groups, self.persons, **design))

    def route(self, design: RoutingDesign) -> Responses:
        """Return the same answers with the path of every person through a multistage test.

        They are calibrated and tested given path and total score. A missing answer that decided a
        path is refused, or becomes a wrong one, as the design says.

        Parameters
        ----------
        design
            Modules and routing rules, which the answers must fit.
        """
        from discreet.answers.routed import route_answers

        store, routing = route_answers(self, design)
        return self._derive(store=store, routing=routing)

    @property
    def nbytes(self) -> int:
        """Bytes held for answers and person ids (group columns not counted)."""
        return self.store.nbytes + (0 if self._persons is None else int(self._persons.nbytes))

    # -- parts of it -------------------------------------------------------------------------

    @checked
    def select(self, items: Sequence[object]) -> Responses:
        """Return exactly these items in this order; an unknown name is an unanswered column."""
        chosen = check_items(items, len(items))
        columns = number_items(chosen, self.items)
        pairs = zip(columns.tolist(), chosen, strict=True)
        names = tuple(name if column == ABSENT else self.items[column] for column, name in pairs)
        if self.routing is not None:
            self.routing.check_items(names)
        store = select_columns(self.store, columns)
        choices = None if self.choices is None else self.choices.select(names)
        return self._derive(items=names, store=store, choices=choices)

    def __getitem__(self, items: str | Sequence[object]) -> Responses:
        """Return one item or several, which must be there."""
        chosen = [items] if isinstance(items, str) else list(items)
        if absent := [name for name in chosen if name_id(name) not in self.items]:
            near = get_close_matches(str(absent[0]), self.items, 3) or self.items[:3]
            raise KeyError(f"there is no item {absent[0]!r} here; there is {', '.join(near)}")
        return self.select(chosen)

    __iter__ = None  # of persons or of items? Neither is meant for sure

    def __len__(self) -> int:
        return self.n_persons

    def select_persons(self, rows: object) -> Responses:
        """Return some of the persons, in this order.

        Parameters
        ----------
        rows
            A slice, one truth value for each person, or a list of positions or of ids.

        Examples
        --------
        >>> import numpy as np
        >>> answers = Responses.from_array(np.eye(3), persons=["ann", "bob", "cid"])
        >>> answers.select_persons(["cid", "ann"]).to_array().tolist()
        [[0, 0, 1], [1, 0, 0]]
        """
        from discreet.answers.select import select_person_rows

        return select_person_rows(self, rows)

    @staticmethod
    def concat(parts: Sequence[Responses]) -> Responses:
        """Join different persons; an item that a part lacks is unanswered there.

        Items are matched by name and come in the order in which they first occur. A person may
        occur once: what was answered on several days is read together. Numbered persons are
        numbered anew.
        """
        from discreet.answers.select import join_responses

        return join_responses(parts)

    def cap(self, max_answers: int, source: RandomSource) -> Responses:
        """Keep a uniformly random ``max_answers`` of the answers of each person with more.

        Parameters
        ----------
        max_answers
            The most answers one person may contribute, at least 1.
        source
            :class:`discreet.secure.SystemSource` for anything that is released.
        """
        limit = check_cap(max_answers)
        if limit >= self.n_items:
            return self
        refuse_routing(self.routing, "leaving out answers")
        return self._derive(store=cap_answers(self.store, limit, source), choices=None)

    # -- what it is asked --------------------------------------------------------------------

    def count(self, weighting: Weighting | None = None, tally: Tally | None = None) -> PairCounts:
        """Count, for every pair of items, the persons with one right and the other wrong."""
        from discreet.counts import PairCounts, name_weighting
        from discreet.counts.folds import FoldSums
        from discreet.counts.pairs import count_matrix

        pairs, about = count_matrix(self.store, weighting), {}
        if tally is not None:
            sums = FoldSums(tally)
            sums.add(self.store, self.person_ids, 0)
            about = sums.finish(sum(self.steps))
        totals = (*self.store.nodes.item_totals(), self.n_persons, name_weighting(weighting))
        return PairCounts(self.items, pairs, *totals, steps=self.steps, **about)

    def reduce_all(self, jobs: Sequence[Job[Any]]) -> list[Any]:
        """Fold jobs over all persons, who are one block."""
        return fold_blocks([(self.store, self._persons)], self.n_persons, jobs)

    def digest(self, key: bytes) -> tuple[int, int]:
        """Return the sum of the persons' keyed digests and their number, for the ledger.

        See :mod:`discreet.answers.select`. The items are taken in the order of their names,
        so the order of columns does not matter, nor does that of persons.
        """
        ordered = self.select(sorted(self.items))
        return digest_store(key, ordered.items, ordered.store)

    def rows(self, start: int, stop: int) -> Int8Array:
        """Return persons ``start`` to ``stop`` as a matrix of 1, 0 and -1 (missing); categories."""
        return self.store.rows(start, stop)

    def to_array(self) -> Int8Array:
        """Return all answers as a matrix ``[person, item]`` of 1, 0 and -1 (missing).

        With steps, of categories from 0.
        """
        return self.store.rows(0, self.n_persons)

    @checked
    def to_dataframe(self, layout: Layout = "long") -> pd.DataFrame:
        """Return the answers as a pandas DataFrame, or as Arrow where pandas is absent.

        Parameters
        ----------
        layout
            ``"long"``: person, groups, item and response, a row for each answer. ``"wide"``: a
            row for each person and a column for each item, missing where there is no answer.
        """
        from discreet.answers.select import tabulate_answers

        return tabulate_answers(self, layout)

    # -- how it looks ------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Responses):
            return NotImplemented
        from discreet.answers.select import hold_the_same

        return hold_the_same(self, other)

    __hash__ = None  # type: ignore[assignment]  # equal by content, and content is large

    def _summary(self) -> str:
        filled = 100 * self.n_answers / max(self.n_persons * self.n_items, 1)
        return (
            f"{self.n_persons:,} persons, {self.n_items:,} items, {self.n_answers:,} answers "
            f"({filled:.3g}% filled)"
        )

    def __repr__(self) -> str:
        return f"<Responses: {self._summary()}>"

    def _repr_html_(self) -> str:
        listed = ", ".join(html.escape(name) for name in self.items[:8])
        more = ", ..." if self.n_items > 8 else ""
        return f"<p><b>Responses</b>: {self._summary()}<br>items: {listed}{more}</p>"
