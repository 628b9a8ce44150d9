"""Find rows of a wide table that are hardly persons: blank rows, a key, totals.

In: the tables once more, and which rows have no answer. Out: sentences that name the rows. Such
rows stand in tables that people make by hand, so that only small ones are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from discreet.tables.columns import LongPlan
from discreet.tables.opener import Source, plan_source
from discreet.tables.reading import Reading
from discreet.tables.values import plain_dictionary, read_integers, spell
from discreet.types import BoolArray

MOST_ROWS = 20_000
"""Rows up to which a table may be made by hand."""
_FEW = 2
"""Rows that may have the same label: a class or a group is no key and no total."""
_SHOWN = 5
_NOT_LETTERS = re.compile(r"[\W\d_]")

LABELS = frozenset(
    ["key", "answerkey", "answers", "correct", "correctanswer", "correctanswers", "solution",
     "solutions", "lösung", "lösungen", "loesung", "musterlösung", "schlüssel", "lösungsschlüssel",
     "clave", "solución", "soluciones", "corrigé", "corrige", "total", "totals", "sum", "sums",
     "summe", "summen", "gesamt", "insgesamt", "mean", "means", "average", "averages", "mittelwert",
     "mittel", "durchschnitt", "suma", "media", "promedio", "moyenne", "somme", "percent",
     "prozent", "percentcorrect", "anzahlrichtig", "richtig"]
)  # fmt: skip
"""What people write beside a key, or beside sums and means, without blanks and signs."""


def is_label(word: object) -> bool:
    """Say whether a word names a key or totals rather than a person."""
    return word is not None and _NOT_LETTERS.sub("", str(word).casefold()) in LABELS


def find_odd_rows(
    reading: Reading, is_empty: BoolArray | None, sources: Iterator[Source]
) -> list[str]:
    """Tell of blank rows, and of rows with the label of a key or of totals.

    Parameters
    ----------
    reading
        How the tables were read.
    is_empty
        By row of all tables, whether it has no answer; None where rows have ids.
    sources
        The tables.
    """
    blank: list[str] = []
    labelled: list[str] = []
    for source in sources:
        plan = plan_source(source, reading)
        if isinstance(plan, LongPlan):
            return []
        items = {*plan.items, *plan.order}
        beside = [number for number in range(len(source.names)) if number not in items]
        labels = [_read_words(source, number) for number in beside]
        labelled += [f"{source.place(row)} ('{word}')" for row, word in _find_labelled(labels)]
        if is_empty is not None and is_empty.any():
            cells = [*labels, *(_read_words(source, number) for number in plan.items)]
            rows = np.array([[word is None for word in column] for column in cells]).all(axis=0)
            blank += [source.place(row) for row in np.flatnonzero(rows).tolist()]
    return _tell(blank, labelled)


def _read_words(source: Source, number: int) -> list[str | None]:
    """Return a column as text, None where a cell is blank."""
    return list(chain.from_iterable(_list_words(part) for (part,) in source.batches([number])))


def _list_words(column: Any) -> list[str | None]:
    coded = plain_dictionary(column)
    words = [None if word is None else spell(word) or None for word in coded.dictionary.to_pylist()]
    codes = read_integers(coded.indices.cast("int64").fill_null(len(words)))
    words.append(None)
    return [words[code] for code in codes.tolist()]


def _find_labelled(labels: Sequence[Sequence[str | None]]) -> list[tuple[int, str]]:
    """Return the rows that a key or totals stand in, with their labels."""
    hits = {
        row: word
        for column in labels
        for row, word in enumerate(column)
        if word is not None and is_label(word) and column.count(word) <= _FEW
    }
    return sorted(hits.items())


def _tell(blank: Sequence[str], labelled: Sequence[str]) -> list[str]:
    sentences = []
    if blank:
        sentences.append(
            f"Rows without any entry count as persons, {len(blank)} of them: {_list(blank)}. "
            "Delete them if nobody belongs to them."
        )
    if labelled:
        sentences.append(
            f"Rows that look like a key or like totals count as persons, {len(labelled)} of them: "
            f"{_list(labelled)}. Delete them if they are no persons; a key goes into key= (--key)."
        )
    return sentences


def _list(places: Sequence[str]) -> str:
    more = len(places) - _SHOWN
    return "; ".join(places[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
