"""From the rows of a DataFrame to stored answers of whole persons.

In: a DataFrame and what the user said about its columns. Out: the columns that hold answers, the
item list (one aggregation), and the rows with all of a person in one task; in a task, persons with
their answers, all at once, or some at a time where every row is a whole person. Only the DataFrame
interface with SQL expressions is used, which classic sessions and Spark Connect share. Column
rules, values, ids and mistakes are those of the readers of files, in the same words, but rows of a
DataFrame have no numbers, so person and item say where.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.coding.ids import sort_keys, spell_ids
from discreet.coding.reading import Reading
from discreet.coding.steps import MOST_CATEGORIES
from discreet.coding.values import MISSING_WORDS
from discreet.counts.planes import AnswerStore
from discreet.errors import BadResponses, BadUsage, MissingExtra, OutOfReach
from discreet.readers.batches import Gathered, gather_blocks, store_rows
from discreet.readers.rows import ItemNames, LongRows, WideRows, open_rows
from discreet.tables.cells import read_integers
from discreet.tables.columns import LongPlan, WidePlan, name_items, plan_columns
from discreet.tables.findings import DeclaredSource
from discreet.tables.ids import find_numbers, plain_column, read_ids
from discreet.tables.inspection.answers import Tallied
from discreet.tables.inspection.refusals import settle_scale
from discreet.tables.lists import settle_key
from discreet.tables.opener import RowPlaces
from discreet.types import Int64Array

NAME = "The Spark data frame"

#: Items up to which tasks keep a dense matrix of counts (3.2 GB there).
MOST_ITEMS = 20_000
#: Answers of a task, about: 20 MB of codes, and a second or two of work.
TASK_CELLS = 2_000_000
#: Answers from which on compiled loops are worth their loading time at once.
MANY_CELLS = 5_000_000

#: Answers of a wide frame that are looked at to see whether they may be steps.
HEAD_CELLS = 100_000
#: How Spark writes right and wrong answers.
_PLAIN = ("0", "1", "0.0", "1.0", "true", "false")
_WHOLE_TYPES = frozenset({"tinyint", "smallint", "int", "bigint"})
_FLOAT_TYPES = frozenset({"float", "double"})

#: Everything that may be taken off an id. Characters too many here do no harm: persons whose
#: ids differ only by them go to the same task, where they are told apart.
BLANKS = "".join(chr(n) for n in range(sys.maxunicode + 1) if chr(n).isspace()) + "\u180e\ufeff"


@dataclass(frozen=True)
class RowLayout:
    """What a task must know about the rows that it gets.

    Attributes
    ----------
    names, plan
        Names of the columns, and which of them is what.
    items
        The item list of the whole frame.
    reading
        How answers are scored.
    as_text
        Whether person ids are kept as text: all but whole numbers.
    whole_rows
        Whether every row is a whole person, so that rows may stay where they are.
    many
        Whether there are so many answers that compiled loops are loaded at once.
    """

    names: tuple[str, ...]
    plan: LongPlan | WidePlan
    items: tuple[str, ...]
    reading: Reading
    as_text: bool
    whole_rows: bool
    many: bool


@dataclass(frozen=True)
class FrameRows:
    """The rows of a frame.

    Attributes
    ----------
    frame
        Columns ``c0``, ``c1``, ... and, where ids may be spelt in several ways, ``key``.
    key
        The column by which persons are dealt; empty without ids.
    layout
        What the columns are.
    cells
        Number of answers, those that are missing included.
    n_parts
        Of whole rows: the tasks that read them, as far as is known.
    """

    frame: Any
    key: str
    layout: RowLayout
    cells: int
    n_parts: int

    @property
    def has_ids(self) -> bool:
        """Whether there is a column of person ids."""
        return self.layout.plan.person is not None

    @property
    def _columns(self) -> list[str]:
        return [f"c{number}" for number in range(len(self.layout.names))]

    def deal(self, *, by_content: bool) -> tuple[Any, int]:
        """Return the rows with whole persons in each task, and the number of tasks.

        Rows that are whole persons stay in the tasks that read them, however many these are.
        ``by_content`` brings rows without ids that hold the same into one task, and adds the
        hash of what they hold as a last column.
        """
        if self.layout.whole_rows and not by_content:
            return self.frame.select(*self._columns), self.n_parts
        # A task sends a matrix, which should not be larger than the answers behind it.
        size = max(TASK_CELLS, len(self.layout.items) ** 2 // 2)
        tasks = max(1, -(-self.cells // size))
        if by_content:
            content = f"xxhash64({', '.join(self._columns)}) AS key"
            return self.frame.selectExpr(*self._columns, content).repartition(tasks, "key"), tasks
        return self.frame.repartition(tasks, self.key).select(*self._columns), tasks

    def sample(self, persons: int, n_persons: int) -> Any:
        """Return the rows of about so many persons, in one task; always the same persons."""
        some = self.frame
        if n_persons > persons:
            share = n_persons // persons
            # A hash with another seed than the shuffle's; rows without ids are drawn one by one.
            chosen = f"pmod(xxhash64({self.key}, 1), {share}) = 0"
            some = some.filter(chosen if self.has_ids else f"rand(1) * {share} < 1")
        return some.select(*self._columns).repartition(1)


def plan_frame(frame: Any, reading: Reading) -> FrameRows:
    """Find the columns and the items of a frame; one job over the item or id column."""
    names = [name.strip() for name in frame.columns]
    if not names:
        raise BadResponses(f"{NAME} has no columns, so there are no answers in it.")
    plan = plan_columns(names, reading, NAME)
    reading = settle_key(reading, name_items(names, plan), NAME)
    # Columns by number: names may come twice, hold dots, or differ in case only.
    numbered = frame.toDF(*(f"n{number}" for number in range(len(names))))
    if isinstance(plan, LongPlan):
        return _plan_long(numbered, names, plan, reading)
    return _plan_wide(numbered, names, plan, reading)


def _plan_long(frame: Any, names: Sequence[str], plan: LongPlan, reading: Reading) -> FrameRows:
    columns = (plan.person, plan.item, plan.response, *plan.order)
    rows, key = _pick(frame, columns, plan.person)
    grouped = rows.selectExpr("c1", f"{_is_other('c2', reading)} AS other").groupBy("c1")
    counted = grouped.agg({"*": "count", "other": "max"}).limit(MOST_ITEMS + 1)
    item_table = counted.selectExpr("c1", "`count(1)` AS count", "`max(other)` AS other").toArrow()
    n_rows = int(pc.sum(item_table.column("count")).as_py() or 0)
    _refuse_empty(n_rows)
    if pc.max(item_table.column("other")).as_py():
        reading = _find_steps(rows.selectExpr("c1 AS item", "c2 AS value"), reading)
    column = plain_column(item_table.column("c1"))
    ids = read_ids(column, names[plan.item], "item", _Anywhere())
    items = sort_naturally(
        list(dict.fromkeys(spell_ids(find_numbers(ids.dictionary, column.type))))
    )
    _refuse_many(len(items))
    is_text = dict(rows.dtypes)["c0"] not in _WHOLE_TYPES
    about = LongPlan(0, 1, 2, (), tuple(range(3, len(columns)))), items, reading, is_text
    layout = RowLayout(tuple(names[i] for i in columns), *about, False, n_rows > MANY_CELLS)
    return FrameRows(rows, key, layout, n_rows, 0)


def _plan_wide(frame: Any, names: Sequence[str], plan: WidePlan, reading: Reading) -> FrameRows:
    person = () if plan.person is None else (plan.person,)
    columns = (*person, *plan.items)
    _refuse_many(len(plan.items))
    rows, key = _pick(frame, columns, plan.person)
    cells = [names[i] for i in plan.items]
    # A look at the first rows: only the column of ids is gone through below.
    head = _unpivot(rows.limit(max(1, HEAD_CELLS // len(cells))), cells, len(person))
    ((has_other,),) = head.selectExpr(f"max({_is_other('value', reading)})").collect()
    if has_other:
        reading = _find_steps(_unpivot(rows, cells, len(person)), reading)
    # Equal keys of different ids would only cost a shuffle.
    distinct = f"count(DISTINCT {key})" if person else "count(1)"
    keyed = rows.selectExpr("spark_partition_id() AS part", *([key] if person else []))
    ((n_rows, persons, last),) = keyed.selectExpr("count(1)", distinct, "max(part)").collect()
    _refuse_empty(n_rows)
    if plan.order and n_rows != persons:
        raise OutOfReach(
            f"{NAME} is wide and persons come back in it, and which of their rows comes last is "
            "known of whole rows only. Write it as a long one: a row for each answer."
        )
    local = WidePlan(0 if person else None, tuple(range(len(person), len(columns))), ())
    about, n_cells = (local, tuple(cells), reading, True), n_rows * len(cells)
    is_many, is_whole = n_cells > MANY_CELLS, n_rows == persons
    layout = RowLayout(tuple(names[i] for i in columns), *about, is_whole, is_many)
    return FrameRows(rows, key, layout, n_cells, last + 1)


def _is_other(column: str, reading: Reading) -> str:
    """Return 1 in SQL where an answer is neither right, wrong nor missing and may be a step.

    Where steps are named that is every row, and where there can be none no row.
    """
    if reading.asked.is_said or reading.right or not reading.may_have_steps:
        return str(int(reading.asked.is_said and reading.may_have_steps))
    plain = ", ".join(f"'{word}'" for word in sorted({*MISSING_WORDS, *_PLAIN}))
    return f"IF(lower(trim(coalesce(CAST({column} AS STRING), ''))) IN ({plain}), 0, 1)"


def _find_steps(values: Any, reading: Reading) -> Reading:
    """Look which values the items have: a job over all answers.

    ``values`` has the columns item and value.
    """
    table = values.groupBy("item", "value").count().limit(MOST_ITEMS * MOST_CATEGORIES).toArrow()

    def look(_: Any, looking: Reading) -> Any:
        tally = Tallied(looking)
        items = read_ids(plain_column(table.column("item")), "item", "item", _Anywhere())
        tally.add_counted(items, table.column("value"), table.column("count"))
        return tally.by_item

    return settle_scale(reading, look, has_rows=False) or reading


def _unpivot(rows: Any, items: Sequence[str], first: int) -> Any:
    """Return the answers of a wide frame as rows of item and value."""
    pairs = [
        f"decode(unhex('{name.encode().hex()}'), 'UTF-8'), CAST(c{first + index} AS STRING)"
        for index, name in enumerate(items)
    ]
    return rows.selectExpr(f"stack({len(items)}, {', '.join(pairs)}) AS (item, value)")


def _pick(frame: Any, columns: Sequence[int], person: int | None) -> tuple[Any, str]:
    """Return these columns as ``c0``, ``c1``, ..., and the one by which persons are dealt.

    Tasks compare ids exactly as the readers do: blanks around a text do not count, and -0.0 is
    0. All that is needed here is that rows of one person never part.
    """
    chosen = [f"n{number} AS c{index}" for index, number in enumerate(columns)]
    if person is None:
        return frame.selectExpr(*chosen), ""
    name = f"n{person}"
    kind = dict(frame.dtypes)[name]
    if kind in _FLOAT_TYPES:
        same = f"IF({name} = 0, 0D, CAST({name} AS DOUBLE))"
    elif kind.startswith(("string", "varchar", "char", "binary")):
        blanks = f"decode(unhex('{BLANKS.encode().hex()}'), 'UTF-8')"
        same = f"xxhash64(btrim(CAST({name} AS STRING), {blanks}))"
    else:
        # One spelling only: no further column needs to be shuffled.
        return frame.selectExpr(*chosen), f"c{list(columns).index(person)}"
    return frame.selectExpr(*chosen, f"{same} AS key"), "key"


class _Anywhere(RowPlaces):
    """Rows of a Spark frame have no numbers."""

    def place(self, row: int) -> str:
        del row
        return NAME


def sort_naturally(names: Sequence[str]) -> tuple[str, ...]:
    """Sort names with the numbers in them by size: "q2" before "q10".

    Examples
    --------
    >>> sort_naturally(["q10", "q2", "a", "2", "10"])
    ('2', '10', 'a', 'q2', 'q10')
    """

    def rank(piece: str) -> tuple[int, int, str]:
        """Rank digits by size, however many there are, and before other text."""
        digits = piece.lstrip("0")
        return (0, len(digits), digits) if piece[0] in "0123456789" else (1, 0, piece)

    def key(name: str) -> tuple[list[tuple[int, int, str]], str]:
        return [rank(piece) for piece in re.split(r"([0-9]+)", name) if piece], name

    return tuple(sorted(names, key=key))


def _refuse_empty(rows: int) -> None:
    if not rows:
        raise BadResponses(f"{NAME} has columns but no rows, so there are no answers in it.")


def _refuse_many(items: int) -> None:
    if items > MOST_ITEMS:
        raise BadUsage(
            f"{NAME} has more than {MOST_ITEMS:,} items. Every task would keep a matrix of all "
            "pairs of them. If the item column is right, count parts of the items, or write the "
            "rows to Parquet and use engine='duckdb', which keeps such counts sparse"
        )


#: Cells read together: Spark's own batches of 10,000 rows would cost more in calls than in work.
GATHER_CELLS = 1 << 20


@dataclass(frozen=True)
class Persons:
    """Whole persons: their answers, and their ids (numbers, texts, or None for rows).

    ``marks`` are hashes of what rows without ids hold, if rows were dealt by them.
    """

    store: AnswerStore
    ids: Any
    marks: Int64Array | None = None

    def names(self) -> list[bytes] | None:
        """Return the ids as bytes, as text has them."""
        if self.ids is None:
            return None
        return [str(name).encode() for name in self.ids.to_pylist()]


def read_task_persons(batches: Iterator[Any], layout: RowLayout) -> Iterator[Persons]:
    """Read the rows of one task; a task without rows has no persons."""
    tables = _gather(batches, max(1, GATHER_CELLS // len(layout.names)))
    if (first := next(tables, None)) is None:
        return
    source = _Rows(chain([first], tables), layout)
    about = layout.plan, layout.reading, ItemNames(layout.items, closed=True)
    rows = open_rows(lambda: [(source, layout.plan)], *about, as_text=layout.as_text)
    if isinstance(rows, WideRows) and layout.whole_rows:
        for slab in rows.slabs():
            ids = slab.encode_persons()[1] if slab.persons else None
            span = slice(slab.start, slab.start + slab.store.n_persons)
            marks = np.concatenate(source.marks)[span] if source.marks else None
            yield Persons(slab.store, ids, marks)
    else:
        yield _gather_persons(rows, layout)


def _gather_persons(rows: LongRows | WideRows, layout: RowLayout) -> Persons:
    """Return all persons of a task, whose rows may lie anywhere in it."""
    table = gather_blocks(rows, rows.blocks())

    def place(row: int) -> str:
        return f"a row of {NAME[0].lower()}{NAME[1:]} with answer {table.value[row]}"

    if layout.plan.order:
        _refuse_ties(table, layout)
    try:
        store = store_rows(table, layout.items, rows.reading, place)
    except BadResponses as again:
        raise _without_order(again) from None
    return Persons(store, None if layout.plan.person is None else table.ids)


def _gather(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    """Put small batches together."""
    held: list[Any] = []
    for batch in batches:
        held.append(batch)
        if sum(table.num_rows for table in held) >= rows:
            yield pa.Table.from_batches(held)
            held = []
    if sum(table.num_rows for table in held):
        yield pa.Table.from_batches(held)


class _Rows(DeclaredSource):
    """The rows of a task; see :class:`discreet.tables.opener.Source`."""

    name = NAME

    def __init__(self, tables: Iterator[Any], layout: RowLayout) -> None:
        self.names = layout.names
        self._tables, self._plan = tables, layout.plan
        self._table: Any = None
        #: Hashes of what the rows hold, where they were dealt by them.
        self.marks: list[Int64Array] = []
        self._start = self._stop = 0

    def batches(self, columns: Sequence[int]) -> Iterator[list[Any]]:
        """Yield columns, and remember the rows until the next."""
        for table in self._tables:
            self._start, self._stop = self._stop, self._stop + table.num_rows
            self._table = table
            if table.num_columns > len(self.names):
                self.marks.append(read_integers(plain_column(table.column(len(self.names)))))
            yield [plain_column(table.column(number)) for number in columns]

    def place(self, row: int) -> str:
        """Say whose row this is, if it is among the last that were read."""
        at = row - self._start
        if self._table is None or not 0 <= at < self._table.num_rows or self._plan.person is None:
            return NAME
        person = self._table.column(self._plan.person)[at].as_py()
        if isinstance(self._plan, WidePlan):
            return f"{NAME}, the row of person {person!r}"
        item = self._table.column(self._plan.item)[at].as_py()
        return f"{NAME}, the row of person {person!r} and item {item!r}"


def _refuse_ties(table: Gathered, layout: RowLayout) -> None:
    """Refuse different answers of one time: rows come in any order, so none would be the last."""
    person, item, value, when, ids, _ = table
    rows = np.flatnonzero(value >= 0)
    keys = person[rows].astype(np.int64) * len(layout.items) + item[rows]
    row = rows[sort_keys(keys, when[rows])]
    keyed = np.column_stack([person, item, when])[row]
    tied = np.flatnonzero((keyed[1:] == keyed[:-1]).all(axis=1) & (np.diff(value[row]) != 0))
    if tied.size:
        first = row[tied[0]]
        raise BadResponses(
            f"{NAME}: person '{ids[person[first]]}' answered item '{layout.items[item[first]]}' "
            f"differently at one and the same time (column '{layout.names[-1]}'), so that no "
            "answer is the last. Name a column that tells them apart, or remove one of them."
        )


def _without_order(error: BadResponses) -> BadResponses:
    """Give other advice on a repeated answer: here no row is the first or the last."""
    message, _, _ = str(error).partition(" Remove one")
    return BadResponses(
        f"{message} Remove one of them, for example with dropDuplicates, or keep the last with "
        "repeats='last' and order_by= a column of times or numbers."
    )


def is_spark_frame(source: object) -> bool:
    """Say whether something is a Spark DataFrame, without importing Spark."""
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql.")
        for kind in type(source).__mro__
    )


def find_frame(source: Any) -> Any:
    """Return a DataFrame, classic or of Spark Connect, as it is, and that of a table by its name.

    PySpark is imported only to look up a table: whoever has a DataFrame has PySpark already.
    """
    if is_spark_frame(source):
        return source
    if isinstance(source, str):
        return _active_session().table(source)
    if type(source).__module__.startswith("pyspark.pandas"):
        raise BadUsage(
            "engine='spark' takes a Spark DataFrame, found a pandas-on-Spark one; "
            "pass frame.to_spark()"
        )
    raise BadUsage(
        "engine='spark' takes a Spark DataFrame or the name of a table such as "
        f"'catalog.schema.table', found {type(source).__name__}; for files, read them with "
        "spark.read first, or leave the engine to 'auto'"
    )


def _active_session() -> Any:
    """Return the session of this thread: classic, or of Spark Connect."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtra("engine='spark'", "spark") from None
    session = SparkSession.getActiveSession()
    # A session of Spark Connect: whoever has one has loaded its module. Importing it here would
    # end the process where the packages that it needs are missing and Python runs neither a file
    # nor a prompt: PySpark then calls ``sys.exit``.
    connect = sys.modules.get("pyspark.sql.connect.session")
    if session is None and connect is not None:
        session = connect.SparkSession.getActiveSession()
    if session is None:
        raise BadUsage(
            "engine='spark' was asked for a table by its name, but there is no active Spark "
            "session to look it up in; start one, or pass spark.table(name)"
        )
    return session
