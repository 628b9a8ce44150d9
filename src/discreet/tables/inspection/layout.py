"""The layout, where names do not say it.

In: the rows of a table. Out: questions about a row for each answer, items in rows, strings of
answers, and second answers of a person, which are attempts, ratings, or items of other parts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import chain, product
from typing import Any

from discreet.choices import PlainDict
from discreet.coding.reading import Reading
from discreet.coding.remedies import TableFinding, make_remedy
from discreet.coding.values import ANSWERS
from discreet.errors import Remedy
from discreet.tables.columns import LongPlan, plan_columns
from discreet.tables.dataset import turn_rows
from discreet.tables.findings import RATED, Findings
from discreet.tables.ids import is_rounded
from discreet.tables.inspection.columns import FEW
from discreet.tables.inspection.rows import CellGrid, Table
from discreet.tables.inspection.rules import rule
from discreet.tables.vocabulary import (
    RIGHT,
    WRONG,
    Column,
    bound_number,
    name_columns,
    name_words,
    plain,
)

#: Days and times that can be put in order.
_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?)?")
#: Kinds of names that columns of persons have in a long table.
_PERSONS = ("ids", "names", "models")
#: A table with more columns is a wide one.
MOST_LONG_COLUMNS = 30
#: Persons of a table with items in rows.
_FEWEST_TURNED = 5
#: Strings of answers: columns of the table, signs of a string, different signs.
_MOST_BESIDE, _SHORTEST, _MOST_SIGNS = 3, 5, 6


@rule("exports/omr_0301.dat", otherwise=False)
def ask_strings(grid: CellGrid, findings: Findings) -> bool:
    """Say what to do with rows of an id and a string of answers; say whether they are such."""
    cells = [row[-1] or "" for row in grid.rows if row and len(row) <= _MOST_BESIDE]
    signs, widths = {*"".join(cells)}, {len(cell) for cell in cells}
    is_like = len(widths) == 1 and min(widths) >= _SHORTEST and len(signs) <= _MOST_SIGNS
    if not is_like or len(cells) < max(3, len(grid.rows)) or not "".join(signs).isalnum():
        return False
    codes, width = "".join(sorted(signs)), min(widths)
    findings.ask(
        "layout",
        f"Every row ends with a string of {width} signs ({codes}). Is each of them an answer?",
        [
            Remedy(
                "put a comma between them, with a row of names above; or write a control file of "
                f"Winsteps with the lines NI = {width}, NAME1 = 1, ITEM1 = column of the first "
                f"answer, CODES = {codes}, DATA = name of this file, &END, and read that"
            )
        ],
    )
    return True


def ask_turned(table: Table, findings: Findings) -> Table | None:
    """Return a table with items in rows the other way round; ask where nobody said so."""
    stated, names = findings.stated, table.names
    if stated.get("layout") == "transposed":
        item, ignored = stated.get("item", names[0]), {*stated.get("ignore", ())}
    elif stated.keys() & {"layout", "person", "item"}:
        return None
    else:
        column, beside = _find_turned(name_columns(names, table.rows))
        if column is None:
            return None
        item, ignored = column.name, {*beside}
        change: PlainDict = {"layout": "transposed", "item": item}
        findings.ask(
            "layout",
            f"Rows seem to be items, named by '{column.label}', and columns persons. Is that so?",
            [
                make_remedy("it is:", change | ({"ignore": beside} if beside else {})),
                make_remedy("no, every row is a person:", {"layout": "wide", "item": None}),
            ],
            [column.label],
        )
    return Table(*turn_rows(names, table.rows, names.index(item), ignored))


@rule("more/staff, items in rows.xlsx", otherwise=(None, []))
def _find_turned(columns: Sequence[Column]) -> tuple[Column | None, list[str]]:
    """Return the column that names the items of a table with items in rows, and others beside it.

    The column is called item, or its cells are; or the other columns are called after persons.
    None where a column names persons.
    """
    unique = [c for c in columns if c.is_unique and c.name]
    items = [c for c in unique if c.is_called("items")]
    items += [c for c in unique if {*map(plain, c.words)} <= name_words("items") | {"q"}]
    series = Counter(c.word for c in columns if c.name[-1:].isdigit())
    persons = sum(times for word, times in series.items() if word in name_words("ids", "names"))
    if persons >= max(_FEWEST_TURNED, 0.7 * len(columns)):
        items += [c for c in unique if c.number < 3 and c.kind == "many"]
    if not items or any(c.is_called("ids", "names") and c not in items for c in unique):
        return None, []
    others = [c for c in columns if c is not items[0]]
    kinds = ("steps", "letters", "texts", "points", "number")
    beside = [c.label for c in others if c.is_called("numbers", "totals") or c.kind not in kinds]
    is_table = len(others) - len(beside) >= max(_FEWEST_TURNED, 0.7 * len(others))
    return (items[0], beside) if is_table else (None, [])


#: What the leaderboard can do with several samples of a model.
COUNTED = "every sample of a model counts"
#: Every row is a person after all.
_DENIED = make_remedy("no, a person:", {"layout": "wide"})


def ask_long(table: Table, reading: Reading, findings: Findings) -> LongPlan | None:
    """Ask whether rows are single answers, where values look so and names do not say it."""
    layout = findings.stated.get("layout")
    is_denied = layout == "wide" and not findings.stated.keys() & {"person", "ignore", "keep"}
    is_stated = layout == "long" or "person" in findings.stated
    if is_stated or (layout and not is_denied) or len(table.names) > MOST_LONG_COLUMNS:
        return None
    roles = _find_long_roles(name_columns(table.names, table.rows), len(table.rows))
    if not roles:
        return None
    person, item, response = roles.values()
    question = f"Is every row one answer: of '{person}' to '{item}', in the column '{response}'?"
    accept = make_remedy("it is:", {"layout": "long", **roles})
    answers = (accept,) if is_denied else (accept, _DENIED)
    cells, marked = (person, item, response), None if is_denied else 0
    findings.propose(TableFinding("layout", question, answers, cells, marked=marked))
    if is_denied:
        return None
    plan = plan_columns(table.names, replace(reading, layout="long", **roles), table.names[0])
    return plan if isinstance(plan, LongPlan) else None


@rule("more/ratings_long.csv", otherwise={})
def _find_long_roles(columns: Sequence[Column], rows: int) -> PlainDict:
    """Return person, item and answer columns of a long table by its values; none if it is wide.

    The name of the person or of the item column must say what it is. Nearly every row must be
    another pair of them; attempts, raters and parts of a test tell more rows apart.
    """
    kinds = ("steps", "letters", "texts")
    scores = [c for c in columns if c.kind in kinds and 1 < len(c.words) <= FEW]
    answers = [c for c in scores if c.is_called("answer_names") or _are_scores(c)]
    answers.sort(key=lambda c: (not _are_scores(c), len(c.words)))
    beside = [c for c in columns if c.is_called("attempts", "raters", "parts")]
    names = [c for c in columns if 2 < len(c.words) <= rows / 3 and c not in answers]
    names = [c for c in names if not c.is_called("attempts", "raters")]
    persons = [c for c in names if not c.is_called("items")]
    items = [c for c in names if not c.is_called(*_PERSONS)]
    pairs = [(p, i) for p, i in product(persons, items) if p is not i]
    pairs = [(p, i) for p, i in pairs if p.is_called(*_PERSONS) or i.is_called("items")]
    pairs.sort(key=lambda pair: -pair[0].is_called(*_PERSONS) - pair[1].is_called("items"))
    for person, item in pairs if answers else ():
        others = [c.cells for c in beside if c not in (person, item)]
        cells = set(zip(person.cells, item.cells, *others, strict=True))
        every = len(person.words) * len(item.words)
        varied = [
            c for c in answers if len({*zip(item.cells, c.cells, strict=True)}) > len(item.words)
        ]
        if varied and len(cells) > 0.95 * rows > 0.2 * every:
            return {"person": person.name, "item": item.name, "response": varied[0].name}
    return {}


@rule("fresh/Geography kahoot raw.xlsx", otherwise=False)
def _are_scores(column: Column) -> bool:
    """Say whether a column says of every answer that it is right or wrong."""
    return {word.casefold() for word in column.words} <= RIGHT | WRONG | {"0", "1", *ANSWERS}


@rule("exports/lm eval output")
def find_graded(table: Table, plan: LongPlan, findings: Findings) -> Table | None:
    """Return logs of evaluations without the tasks whose scores are neither right nor wrong.

    None where there are no such tasks, or no others.
    """
    if "at_least" in findings.stated or "task" not in table.names:
        return None
    task, spans = table.names.index("task"), dict[str, list[Decimal]]()
    for row in table.rows:
        number = bound_number(row[plan.response] or "")
        spans.setdefault(str(row[task]), []).extend([] if number is None else [number])
    graded = [name for name, numbers in spans.items() if any(n % 1 for n in numbers)]
    if not graded or len(graded) == len(spans):
        return None
    listed = ", ".join(f"'{one}' ({min(spans[one]):g} to {max(spans[one]):g})" for one in graded)
    reason = f"Scores of {listed} are neither right nor wrong: left out."
    findings.note("ignore", graded, reason, graded)
    return table._replace(rows=[row for row in table.rows if row[task] not in graded])


def ask_repeats(
    cells: list[tuple[Any, ...]],
    table: Table,
    findings: Findings,
    reading: Reading,
    named: Sequence[str],
) -> None:
    """Ask what to do with persons who answered an item more than once; the columns are named."""
    pairs = [(person, item) for person, item, _ in cells]
    repeated = len(pairs) - len(set(pairs))
    if reading.repeats != "error" or reading.filter is not None or not repeated:
        return
    if any(map(is_rounded, chain.from_iterable(pairs))):
        return  # several persons in one id: the reader refuses it
    if "filter" in table.names:
        column = table.names.index("filter")
        often = {pair for pair, times in Counter(pairs).items() if times > 1}
        rows = zip(table.rows, pairs, strict=False)
        filters = list(dict.fromkeys(row[column] for row, pair in rows if pair in often))
        if len(filters) > 1:
            answers = [make_remedy(f"'{one}':", {"filter": one}) for one in filters]
            question = "The log has several filters of one answer. Which counts?"
            findings.ask("filter", question, answers, ["filter"])
            return
    if parts := _find_parts(cells, table):
        question = f"'{parts[0]}' and '{parts[1]}' name an item together. Which column names it?"
        change = f"add a column of both, such as {parts[0]}/{parts[1]}, and name it"
        naming = Remedy(f"{change} with item=", asks="item", change=change)
        findings.ask("repeats", question, [naming], parts, None)
        return
    order = {} if reading.order_by else _find_order(table)
    raters = [name for name in table.names if plain(name) in name_words("raters")][:1]
    findings.raters = "".join(raters)
    samples = [COUNTED] if plain(named[0]) == "model" else []
    findings.ask(
        "repeats",
        f"'{named[0]}' is taken for the person and '{named[1]}' for the item: {repeated:,} of "
        f"{len(pairs):,} answers are then a person's second or later answer to an item, and would "
        "be dropped. Which one counts?",
        [
            *(Remedy(f"{RATED}: fit with --rater {name}", change=RATED) for name in raters),
            *(make_remedy(f"the {one}:", {"repeats": one, **order}) for one in ("first", "last")),
            *(Remedy(f"{one}: discreet leaderboard --repeats sum", change=one) for one in samples),
        ],
        marked=None if raters else 0,
    )


@rule("exports/lm runs.csv", otherwise=[])
def _find_parts(cells: list[tuple[object, ...]], table: Table) -> list[str]:
    """Return two columns that name items together: a task, and the number of its example."""
    columns = [c for c in name_columns(table.names, table.rows) if len(c.cells) == len(cells)]
    items = [item for _, item, _ in cells]
    inner = [c.name for c in columns if c.cells == items]
    for outer in (c for c in columns if c.is_called("parts") and c.name not in inner):
        rows = {(part, *cell[:2]) for part, cell in zip(outer.cells, cells, strict=True)}
        if inner and len(rows) == len(cells):
            return [outer.name, inner[0]]
    return []


@rule("more/tutor_log.csv", otherwise={})
def _find_order(table: Table) -> dict[str, str]:
    """Return the column that says which attempt is the first: its number, or its time."""
    columns = [c for c in name_columns(table.names, table.rows) if None not in c.cells]
    numbers = [c for c in columns if c.is_called("attempts") and c.kind in ("steps", "number")]
    times = [c for c in columns if all(_TIME.fullmatch(cell or "") for cell in c.cells)]
    best = [*numbers, *times]
    return {"order_by": best[0].name} if best else {}
