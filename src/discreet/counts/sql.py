"""The pair-count query, for warehouses where nothing can run but SQL.

In: the names of a long table and its columns. Out: one query in standard SQL, and from its
result :class:`~discreet.counts.PairCounts` with the integers of every other engine. The query
also counts what the other engines refuse (repeated answers, values that are no answers, missing
ids), and :func:`read_counts` refuses it then. It is a self-join, far slower than the kernels.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.counts import PairCounts, name_weighting
from discreet.counts.folds import (
    SKETCH_SIZE,
    FoldCounts,
    PersonWeight,
    Tally,
    afford_folds,
    explain_folds,
    join_sketches,
)
from discreet.counts.matrix import prefers_sparse
from discreet.errors import BadResponses, BadUsage
from discreet.names import name_id
from discreet.tables.ids import check_items
from discreet.tables.opener import read_columns


@dataclass(frozen=True)
class Dialect:
    """How a warehouse quotes names and calls text and 64-bit numbers.

    ``escapes`` lists what a quoted name must not hold as it is, and what stands for it; ``hash``
    is MD5 in hexadecimal digits, ``position`` the place of a text in another.
    """

    quote: str
    escapes: tuple[tuple[str, str], ...]
    text: str
    integer: str = "BIGINT"
    hash: str = "MD5({})"
    position: str = "POSITION({} IN {})"


_STANDARD = (('"', '""'),)

#: Name of each dialect; adding one is one line.
DIALECTS: dict[str, Dialect] = {
    "duckdb": Dialect('"', _STANDARD, "VARCHAR"),
    "postgresql": Dialect('"', _STANDARD, "VARCHAR"),
    "snowflake": Dialect('"', _STANDARD, "VARCHAR"),
    "spark": Dialect("`", (("`", "``"),), "STRING"),
    # BigQuery reads escape sequences in quoted names, as in string literals.
    "bigquery": Dialect(
        "`",
        (("\\", "\\\\"), ("`", "\\`")),
        "STRING",
        "INT64",
        "TO_HEX(MD5({}))",
        "STRPOS({1}, {0})",
    ),
}

_COLUMNS = ("kind", "first_item", "second_item", "number")
_KINDS = ("pair", "answers", "right", "persons", "repeated", "bad", "without_id")
#: Of these, three are followed by a blank and the number of the fold.
_FOLD_KINDS = ("folds", "weighted", "fold_answers", "fold_persons", "sketch")

# The names of the parts begin with discreet_, so that no table in the warehouse has the same.
# Every name in braces is quoted by the dialect or one of its own words; nothing else is put in.
_QUERY = """\
WITH discreet_rows AS (
  SELECT {person} AS person, {item_value} AS item,
    CASE WHEN {is_right} THEN 1 WHEN {is_wrong} THEN 0 WHEN {response} IS NULL THEN -1 ELSE -2 END
      AS answer
  FROM {table}
),
discreet_given AS (
  SELECT person, item, MAX(answer) AS answer, COUNT(*) AS times
  FROM discreet_rows WHERE answer >= 0 GROUP BY person, item
),{persons}
discreet_found AS (
  SELECT 'pair' AS kind, a.item AS first_item, b.item AS second_item, COUNT(*) AS number
  FROM discreet_given a JOIN discreet_given b ON a.person = b.person
  WHERE a.answer = 1 AND b.answer = 0 GROUP BY a.item, b.item
  UNION ALL
  SELECT 'answers', item, item, SUM(CASE WHEN answer >= 0 THEN 1 ELSE 0 END)
  FROM discreet_rows GROUP BY item
  UNION ALL
  SELECT 'right', item, item, COUNT(*) FROM discreet_given WHERE answer = 1 GROUP BY item
  UNION ALL
  SELECT 'repeated', item, item, COUNT(*) FROM discreet_given WHERE times > 1 GROUP BY item
  UNION ALL
  SELECT 'bad', item, item, COUNT(*) FROM discreet_rows WHERE answer = -2 GROUP BY item
  UNION ALL
  SELECT 'persons', NULL, NULL, COUNT(DISTINCT person) FROM discreet_rows
  UNION ALL
  SELECT 'without_id', NULL, NULL, COUNT(*)
  FROM discreet_rows WHERE person IS NULL OR item IS NULL{found}
)
SELECT kind, CAST(first_item AS {text}) AS first_item, CAST(second_item AS {text}) AS second_item,
  CAST(number AS {integer}) AS number
FROM discreet_found"""


_PERSONS = """
discreet_answered AS (
  SELECT person, {hash} AS hash, COUNT(CASE WHEN answer >= 0 THEN 1 END) AS answered
  FROM discreet_rows GROUP BY person
),
discreet_persons AS (
  SELECT person, hash, CAST(MOD({digits}, {folds}) AS {text}) AS fold,
    CASE WHEN answered > 0
      THEN GREATEST(1, CAST(FLOOR(({twice}.0 + answered) / (2 * answered)) AS {integer})) ELSE 0 END
      AS weight
  FROM discreet_answered
),"""

_FOUND = """
  UNION ALL
  SELECT 'weighted ' || p.fold, a.item, b.item, SUM(p.weight)
  FROM discreet_given a JOIN discreet_given b ON a.person = b.person
    JOIN discreet_persons p ON a.person = p.person
  WHERE a.answer = 1 AND b.answer = 0 GROUP BY p.fold, a.item, b.item
  UNION ALL
  SELECT 'fold_answers ' || p.fold, a.item, a.item, COUNT(*)
  FROM discreet_given a JOIN discreet_persons p ON a.person = p.person GROUP BY p.fold, a.item
  UNION ALL
  SELECT 'fold_persons ' || fold, NULL, NULL, COUNT(*) FROM discreet_persons GROUP BY fold
  UNION ALL
  SELECT 'sketch', half, NULL, 0
  FROM (SELECT DISTINCT SUBSTR(hash, 17, 16) AS half FROM discreet_persons
    ORDER BY half LIMIT {sketch}) discreet_sketch
  UNION ALL
  SELECT 'folds', NULL, NULL, {folds}"""


def _write_folds(folds: int, words: Dialect) -> dict[str, str]:
    """Return the parts of the query that count persons in folds, as :mod:`~.folds` deals them."""
    signs = "'0123456789abcdef'"
    index = [words.position.format(f"SUBSTR(hash, {k}, 1)", signs) for k in (1, 2, 3, 4)]
    digits = " + ".join(f"{16 ** (3 - k)} * ({digit} - 1)" for k, digit in enumerate(index))
    hashed, twice = words.hash.format(f"CAST(person AS {words.text})"), 2 * PersonWeight().scale
    parts = {"hash": hashed, "digits": digits, "folds": folds, "twice": twice}
    persons = _PERSONS.format(**parts, text=words.text, integer=words.integer)
    return {"persons": persons, "found": _FOUND.format(folds=folds, sketch=SKETCH_SIZE)}


def write_query(
    table: str | Sequence[str],
    *,
    person: str = "person",
    item: str = "item",
    response: str = "response",
    dialect: str = "duckdb",
    truth_values: bool = False,
    folds: int | None = None,
) -> str:
    """Write the query that counts pairs in a long table.

    Parameters
    ----------
    table
        Name of the table, as stored; with dots between schema and table, or as a sequence of
        names that may hold dots themselves.
    person, item, response
        Column names, as stored. (Snowflake stores unquoted names in upper case.)
    dialect
        One of ``DIALECTS``.
    truth_values
        Whether the response column holds TRUE and FALSE instead of 1 and 0.
    folds
        Also count persons in so many folds, and sketch their ids, as
        :func:`discreet.count_pairs` does. Ids must be text without blanks around it, or whole
        numbers, so that the warehouse spells them as the other engines do.

    Examples
    --------
    >>> query = write_query("logs.answers", dialect="bigquery")
    >>> "FROM `logs`.`answers`" in query
    True
    """
    if dialect not in DIALECTS:
        dialects = ", ".join(DIALECTS)
        raise BadUsage(f"there is no dialect called {dialect!r}; choose one of: {dialects}")
    words = DIALECTS[dialect]
    parts = table.split(".") if isinstance(table, str) else list(table)
    answer, item_name = _quote(response, words), _quote(item, words)
    n_folds = Tally(folds or 0).folds
    more = _write_folds(n_folds, words) if n_folds else {"persons": "", "found": ""}
    return _QUERY.format(
        **more,
        # Sketches are text, and share a column with the items.
        item_value=f"CAST({item_name} AS {words.text})" if n_folds else item_name,
        table=".".join(_quote(part, words) for part in parts),
        person=_quote(person, words),
        response=answer,
        is_right=answer if truth_values else f"{answer} = 1",
        is_wrong=f"NOT {answer}" if truth_values else f"{answer} = 0",
        text=words.text,
        integer=words.integer,
    )


def _quote(name: str, dialect: Dialect) -> str:
    """Return a name that can mean nothing but a name."""
    if not name or re.search(r"[\x00-\x1f\x7f]", name):
        raise BadUsage(
            f"{name!r} cannot be the name of a table or column: it is empty or holds control "
            "characters"
        )
    for character, instead in dialect.escapes:
        name = name.replace(character, instead)
    return f"{dialect.quote}{name}{dialect.quote}"


def read_counts(source: Any, *, items: Sequence[str] | None = None) -> PairCounts:
    """Read the result of the query back.

    Parameters
    ----------
    source
        The path of a CSV or Parquet file, an Arrow table, a data frame, or the rows as a
        database driver returns them: (kind, first item, second item, number).
    items
        The order of items; by default sorted by name. Items that nobody answered are fine,
        leaving out one that somebody answered is not.

    Raises
    ------
    BadResponses
        If the table held repeated answers, values other than 0 and 1, or rows without ids.
    """
    kind, first, second, number = _read_columns(source)
    fold = np.array([int(words.partition(" ")[2] or -1) for words in kind], dtype=np.int64)
    kind = np.array([words.partition(" ")[0] for words in kind], dtype=object)
    unknown = set(kind) - {*_KINDS, *_FOLD_KINDS}
    if unknown or "persons" not in set(kind):
        raise BadUsage(
            f"this is not a whole result of the pair-count query: found the kinds "
            f"{sorted(set(kind))}, wanted {list(_KINDS)}. Save all rows of the query."
        )
    _refuse_what_engines_refuse(kind, first, number)
    names = tuple(sorted({name_id(name) for name in first[kind == "answers"]}))
    position = {name: code for code, name in enumerate(names)}
    pairs = kind == "pair"
    row, column = ([position[str(name)] for name in which[pairs]] for which in (first, second))
    right_wrong: Any = np.zeros((len(names), len(names)), dtype=np.int64)
    if prefers_sparse(len(names), len(row)):
        from scipy.sparse import csr_array

        right_wrong = csr_array((number[pairs], (row, column)), shape=right_wrong.shape)
    else:
        right_wrong[row, column] = number[pairs]
    answers, right = np.zeros((2, len(names)), dtype=np.int64)
    for array, which in ((answers, "answers"), (right, "right")):
        chosen = kind == which
        array[[position[str(name)] for name in first[chosen]]] = number[chosen]
    persons = int(number[kind == "persons"][0])
    counts = PairCounts(names, right_wrong, answers, right, persons)
    if "folds" in kind:
        counts = replace(counts, **_read_folds(kind, fold, first, second, number, position))
    return counts if items is None else counts.select(check_items(items, len(items)))


def _read_folds(
    kind: Any, fold: Any, first: Any, second: Any, number: Any, index: dict[str, int]
) -> dict[str, Any]:
    """Return the folds and the sketch; warn where the folds do not fit into memory."""
    planned, m = int(number[kind == "folds"][0]), len(index)
    words = first[kind == "sketch"]
    sketch = join_sketches([np.array([int(word, 16) for word in words], dtype=np.uint64)])
    count = afford_folds(planned, m)
    if count < planned:
        warnings.warn(explain_folds(planned, count, (1,) * m), stacklevel=4)
    if not count:
        return {"sketch": sketch}
    right_wrong = np.zeros((count, m, m), dtype=np.int64)
    answers, persons = np.zeros((count, m), dtype=np.int64), np.zeros(count, dtype=np.int64)
    for array, which in ((right_wrong, "weighted"), (answers, "fold_answers")):
        chosen = kind == which
        names = [first[chosen], second[chosen]][: array.ndim - 1]
        at = [[index[str(name)] for name in column] for column in names]
        np.add.at(array, (fold[chosen] % count, *at), number[chosen])
    chosen = kind == "fold_persons"
    np.add.at(persons, fold[chosen] % count, number[chosen])
    numbers = (right_wrong, answers, persons, name_weighting(PersonWeight()))
    return {"sketch": sketch, "folds": FoldCounts(planned, *numbers)}


def _refuse_what_engines_refuse(kind: Any, first: Any, number: Any) -> None:
    reasons = {
        "repeated": "persons answered item {item} more than once; only one answer can count. "
        "Keep one of them in a view, and count that",
        "bad": "answers to item {item} are neither 0 nor 1; the model knows only right and wrong. "
        "Score or remove them in a view, and count that",
        "without_id": "rows have no person or no item, so their answers belong to nobody. Fill "
        "the ids in, or remove the rows",
    }
    for which, reason in reasons.items():
        rows = np.flatnonzero((kind == which) & (number > 0))
        if rows.size:
            item = repr(first[rows[0]])
            raise BadResponses(f"{number[rows[0]]:,} {reason.format(item=item)}.")


def _read_columns(source: Any) -> tuple[Any, Any, Any, Any]:
    """Return kind, items and number as arrays; items are text or None."""
    if isinstance(source, (list, tuple)):
        columns = [[*column] for column in zip(*source, strict=True)] or [[], [], [], []]
    else:
        columns = read_columns(source, _COLUMNS, "results of the pair-count query")
    texts = [np.array(column, dtype=object) for column in columns[:3]]
    number = np.array([int(value) for value in columns[3]], dtype=np.int64)
    return texts[0], texts[1], texts[2], number
