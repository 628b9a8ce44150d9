"""One person's rows change that person's answers and nothing else, or nothing is released.

Every keyword of the reader has a case here, in wide and in long tables. One person's rows are
replaced by rows of every kind, and each table is read as a release reads it: either it is refused,
or everybody else's answers, the number of persons, the items, their steps and every published
field are the same. Faults are planted to show that each of them is found.
"""

import csv
import io
import json
import pickle
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import product

import pandas as pd
import polars as pl
import pytest

import discreet
from discreet import Budget, Responses, read_responses, release
from discreet.coding import remedies
from discreet.coding import steps as scales
from discreet.errors import BadResponses, BadUsage
from discreet.privacy.protocol import settle_persons
from discreet.publishing.delivery import DataSource, open_listed
from discreet.publishing.spec import make_spec
from discreet.readers.streamed import open_stream
from discreet.tables import ids, sources
from discreet.tables.formats import jsonl, labelled, workbook
from discreet.tables.options import READING_FIELDS
from refusals import refused
from source_kinds import HeldPairs
from spreadsheet_files import write_xlsx

PERSON = "b"
OTHERS = "acd"
STEPS = {"q1": 3, "q2": 3}
BUDGET = Budget(1.0, 1e-6)

FEW = ("", "0", "1", "3", "4", "9", "x", "B", "2.5", '"1,0"', '"', "1700000000000000001.5")
MORE = (
    *("2", "5", "-1", "NA", ".", "A", "true", "1.0", "1e0", "01", "12345678901234567890", "ä"),
    *("2024-05-01", "sep=;", '"0;1"', "\t", "id", "item", "q1", "KEY", " 1 ", "-0", "0,1"),
)
"""What one person's cells may hold, as a text file writes it."""


# -- tables ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A table, how it is read, and what is listed.

    Attributes
    ----------
    names
        The header; none where the first row is a person's.
    rows
        By person, the rows.
    words
        Keywords of the reader.
    items, lowest
        What the release lists.
    before
        Whether answers are read before the release is asked for.
    refused
        Whether the release must refuse whatever the rows are.
    cells
        What the replaced cells may hold.
    every
        Of the cells, each place holds every second one, or third.
    numbered
        Whether every row is another person.
    ending, delimiter
        How the file is written.
    above
        Rows above the names.
    """

    names: tuple[str, ...]
    rows: dict[str, list[tuple[str, ...]]]
    words: dict = field(default_factory=dict)
    items: dict = field(default_factory=lambda: {"q1": 1, "q2": 1})
    lowest: int = 0
    before: bool = False
    refused: bool = False
    cells: tuple[str, ...] = FEW
    every: int = 1
    numbered: bool = False
    ending: str = ".csv"
    delimiter: str = ","
    above: tuple[tuple[str, ...], ...] = ()

    def write(self, folder, rows):
        """Write the table with these rows, by person."""
        lines = [*self.above, *([self.names] if self.names else [])]
        lines += [row for person in self.rows for row in rows[person]]
        path = folder / f"answers{self.ending}"
        if self.ending == ".xlsx":
            return write_xlsx(path, {"answers": [list(map(guess, line)) for line in lines]})
        join = self.quote if self.before else self.delimiter.join
        path.write_text("\n".join(map(join, lines)) + "\n", encoding="utf-8")
        return path

    def quote(self, line):
        """Write a row as a program does that quotes what needs it."""
        text = io.StringIO()
        csv.writer(text, delimiter=self.delimiter, lineterminator="").writerow(line)
        return text.getvalue()

    def replacements(self):
        """Yield rows that may stand in place of one person's rows."""
        mine = self.rows[PERSON]
        where = [
            (row, column)
            for row, cells in enumerate(mine)
            for column in range(len(cells))
            if cells[column] != PERSON
        ]
        for (place, (row, column)), (turn, cell) in product(
            enumerate(where), enumerate(self.cells)
        ):
            if (place + turn) % self.every:
                continue
            changed = [list(cells) for cells in mine]
            changed[row][column] = cell
            yield [tuple(cells) for cells in changed]
        for cell in self.cells:
            blank = [[PERSON if one == PERSON else cell for one in cells] for cells in mine]
            yield [tuple(cells) for cells in blank]
        if not self.numbered:
            yield mine + mine
            yield mine[:1]
            yield mine + [(*cells[:-1], "2") for cells in mine]


def guess(cell):
    """Return a cell of a workbook: a number where it looks like one."""
    try:
        return float(cell) if cell.strip() == cell else cell
    except ValueError:
        return cell or None


def wide(**more):
    rows = {
        "a": [("a", "1", "0", "7a")],
        "b": [("b", "0", "0", "7a")],
        "c": [("c", "0", "1", "7b")],
        "d": [("d", "1", "1", "7b")],
    }
    return replace(Case(("id", "q1", "q2", "class"), rows), **more)


def stepped(low=0, **more):
    rows = {
        person: [(person, str(first + low), str(second + low))]
        for person, first, second in (("a", 0, 2), ("b", 1, 0), ("c", 2, 1), ("d", 0, 1))
    }
    return wide(names=("id", "q1", "q2"), rows=rows, items=STEPS, lowest=low, **more)


def unfold(case, names=("id", "item", "response"), extra=()):
    """Return a wide case as a long one, with further columns that are the same in every row."""
    long = {
        person: [
            (person, item, cells[0][column], *(one for _, one in extra))
            for column, item in enumerate(case.names)
            if column and item != "class"
        ]
        + [(person, "other", "1", *(one for _, one in extra))]
        for person, cells in case.rows.items()
    }
    return replace(case, names=(*names, *(name for name, _ in extra)), rows=long)


def repeated(case, names):
    """Return a table in which everybody answers twice, with times that need every digit."""
    times = ("1700000000000000002", "1700000000000000001")
    rows = {}
    for number, (person, own) in enumerate(case.rows.items()):
        again = [tuple({"0": "1", "1": "0"}.get(one, one) for one in cells) for cells in own]
        rows[person] = [(*cells, times[number % 2]) for cells in own]
        rows[person] += [(*cells, times[1 - number % 2]) for cells in again]
    return replace(case, names=names, rows=rows)


LETTERS = wide(
    rows={
        person: [(person, first, second, "7a")]
        for person, first, second in (
            ("a", "A", "B"),
            ("b", "B", "B"),
            ("c", "A", "C"),
            ("d", "D", "b"),
        )
    }
)
SCORES = stepped().rows
NOT_LONG = "names a column of long tables"

WIDE_CASES = {
    "layout": [wide(words={"layout": "wide"}), wide()],
    "person": [
        wide(names=("name", "q1", "q2", "class"), words={"person": "name"}),
        wide(),  # recognised by its name
        wide(names=("", "q1", "q2", "class")),  # a first column without a name
        wide(names=("name", "q1", "q2", "class"), numbered=True),  # every row is a person
    ],
    "item": NOT_LONG,
    "response": NOT_LONG,
    "ignore": [wide(words={"ignore": ["class"]})],
    "group": [wide(words={"group": "class"})],
    "repeats": [wide(words={"repeats": one}) for one in ("error", "first", "last")],
    "one_means": [wide(words={"one_means": "wrong"})],
    "at_least": [wide(names=("id", "q1", "q2"), rows=SCORES, words={"at_least": 2})],
    "missing": [wide(words={"missing": [9, "x"]}), stepped(words={"missing": {"q1": 9, "*": "A"}})],
    "key": [
        replace(LETTERS, words={"key": {"q1": "A", "q2": ["B", "C"]}}),
        replace(LETTERS, words={"key": "AB"}),
    ],
    "sheet": [
        wide(ending=".xlsx", words={"sheet": "answers"}),
        wide(ending=".xlsx"),
        stepped(ending=".xlsx"),
    ],
    "delimiter": [
        wide(delimiter=";", words={"delimiter": ";"}),
        wide(delimiter=";", refused=True),
        wide(delimiter="\t", refused=True),
        wide(delimiter="\t", ending=".tsv"),
    ],
    "header": [
        wide(names=(), words={"header": False}, items={"2": 1, "3": 1}, numbered=True),
        wide(names=(), words={"header": False, "person": "1"}, items={"2": 1, "3": 1}),
    ],
    "order_by": [
        repeated(
            replace(wide(), rows={p: [r[0][:3]] for p, r in wide().rows.items()}),
            ("id", "q1", "q2", "when"),
        )
    ],
    "model": [stepped(before=True, words={"model": "rating-scale", "lowest": 0})],
    "steps": [stepped(), stepped(before=True, words={"steps": 3})],
    "lowest": [
        stepped(1),
        stepped(1, before=True, words={"lowest": 1}),
        stepped(1, before=True, refused=True),
        stepped(before=True),
    ],
    "reverse": [
        stepped(words={"reverse": "q1"}),
        stepped(1, words={"reverse": ["q1", "q2"]}),
        stepped(before=True, words={"reverse": "q1", "steps": 3}),
        stepped(before=True, words={"reverse": "q1", "steps": {"q1": 3}}),
        stepped(before=True, words={"reverse": "q1"}, refused=True),
        stepped(before=True, words={"reverse": ["q1", "q2"], "steps": {"q1": 3}}, refused=True),
    ],
    "merge": [
        stepped(before=True, words={"merge": {"q1": "1+2"}}),
        stepped(before=True, words={"merge": {"*": "2+3"}, "reverse": "q1"}, refused=True),
    ],
}
TEXTS = {"categories": ["0", "1"]}
WIDE_CASES |= {
    "skip_rows": [wide(above=(("Test", "of", "class", "7"),), words={"skip_rows": 1})],
    "drop_rows": [
        wide(words={"drop_rows": "Total"}, refused=True),
        wide(before=True, words={"drop_rows": "Total", "ignore": "class"}, refused=True),
    ],
    "key_row": [
        replace(LETTERS, words={"key_row": 1}, refused=True),
        replace(LETTERS, words={"key_row": 1, "ignore": "class"}, before=True, refused=True),
    ],
    "keep": [
        wide(words={"keep": "q1"}, refused=True),
        wide(before=True, words={"keep": "q1", "ignore": "class"}),
    ],
    "categories": [
        wide(words=TEXTS, refused=True),
        wide(before=True, words=TEXTS | {"ignore": "class"}),
    ],
    "invalid": [wide(words={"invalid": "missing"}), stepped(words={"invalid": "missing"})],
    "filter": [wide(words={"filter": "none"})],
    "blank": [
        wide(words={"blank": "wrong"}, refused=True),
        wide(before=True, words={"blank": "wrong", "ignore": "class"}),
    ],
    "header_rows": [
        wide(words={"header_rows": 2}, refused=True),
        wide(
            above=(("", "Task 1", "", "class"),),
            names=("id", "a)", "b)", ""),
            items={"Task 1 a)": 1, "Task 1 b)": 1},
            words={"header_rows": 2, "person": "id", "ignore": "class"},
            before=True,
        ),
    ],
}
WIDE_CASES["order_by"] = [
    replace(one, words={"repeats": which, "order_by": "when"})
    for one in WIDE_CASES["order_by"]
    for which in ("first", "last")
]

NAMED = ("who", "what", "how")
LONG_CASES = {
    "layout": [unfold(wide(words={"layout": "long"})), unfold(wide())],
    "person": [unfold(wide(words={"person": "who"}), ("who", "item", "response")), unfold(wide())],
    "item": [unfold(wide(words={"item": "what"}), ("id", "what", "response"))],
    "response": [
        unfold(wide(words={"person": "who", "item": "what", "response": "how"}), NAMED),
        unfold(wide(), ("id", "question", "score")),
    ],
    "ignore": [unfold(wide(words={"ignore": "note"}), extra=[("note", "x")])],
    "group": [unfold(wide(words={"group": "class"}), extra=[("class", "7a")])],
    "repeats": [unfold(wide(words={"repeats": one})) for one in ("error", "first", "last")],
    "one_means": [unfold(wide(words={"one_means": "wrong"}))],
    "at_least": [unfold(wide(names=("id", "q1", "q2"), rows=SCORES, words={"at_least": 2}))],
    "missing": [
        unfold(wide(words={"missing": [9, "x"]})),
        unfold(stepped(words={"missing": {"q1": 9}})),
    ],
    "key": [unfold(replace(LETTERS, words={"key": {"q1": "A", "q2": ["B", "C"], "other": "1"}}))],
    "sheet": [
        unfold(wide(ending=".xlsx")),
        unfold(wide(ending=".xlsx", words={"sheet": "answers"})),
    ],
    "delimiter": [
        unfold(wide(delimiter="|", words={"delimiter": "|"})),
        unfold(wide(delimiter="|", refused=True)),
    ],
    "header": [unfold(wide(words={"header": False, "layout": "long"}), ())],
    "order_by": [
        replace(
            repeated(unfold(wide()), ("id", "item", "response", "when")),
            words={"repeats": which, "order_by": "when"},
        )
        for which in ("first", "last")
    ],
    "model": [unfold(stepped(before=True, words={"model": "partial-credit", "lowest": 0}))],
    "steps": [unfold(stepped()), unfold(stepped(before=True, words={"steps": 3}))],
    "lowest": [
        unfold(stepped(1)),
        unfold(stepped(1, before=True, words={"lowest": 1})),
        unfold(stepped(1, before=True, refused=True)),
        unfold(stepped(before=True)),
    ],
    "reverse": [
        unfold(stepped(words={"reverse": "q1"})),
        unfold(stepped(before=True, words={"reverse": "q1", "steps": 3})),
        unfold(stepped(before=True, words={"reverse": "q1"}, refused=True)),
    ],
    "merge": [unfold(stepped(before=True, words={"merge": {"q1": "1+2"}}))],
}
LONG_CASES |= {
    "skip_rows": [unfold(wide(above=(("Test", "of", "7"),), words={"skip_rows": 1}))],
    "drop_rows": [unfold(wide(before=True, words={"drop_rows": "Total"}, refused=True))],
    "key_row": [unfold(replace(LETTERS, words={"key_row": 1}, refused=True))],
    "keep": [unfold(wide(words={"keep": "q1"}, refused=True))],
    "categories": [unfold(wide(before=True, words=TEXTS))],
    "invalid": [
        unfold(wide(words={"invalid": "missing"})),
        unfold(stepped(words={"invalid": "missing"})),
    ],
    "filter": [unfold(wide(words={"filter": "none"}))],
    "blank": [unfold(wide(before=True, words={"blank": "wrong"}))],
    "header_rows": [unfold(wide(words={"header_rows": 2}, refused=True))],
}
CASES = {"wide": WIDE_CASES, "long": LONG_CASES}


def test_every_keyword_of_the_reader_has_a_case_and_an_origin():
    assert set(WIDE_CASES) == set(LONG_CASES) == set(READING_FIELDS)


# -- reading as a release does -----------------------------------------------------------------


@dataclass(frozen=True)
class Read:
    """What a release knows of a table, before the cap: by id, the listed answers."""

    items: tuple[str, ...]
    steps: tuple[int, ...]
    persons: int
    answers: dict


def tell(items, **more):
    return make_spec(BUDGET, items=items, **more).public


def read_case(case, path, engine="auto"):
    told = tell(case.items, lowest=case.lowest)
    source, words = path, case.words
    if case.before:
        source, words = read_responses(path, **case.words), {}
    with open_listed(DataSource(source, engine), words, told) as answers:
        return describe(answers)


def describe(answers):
    """Return answers by id; rows without ids in the order of the table."""
    rows = answers.to_array().tolist()
    assert len(rows) == answers.n_persons
    by_id = dict(zip(answers.persons.tolist(), map(tuple, rows), strict=True))
    return Read(answers.items, answers.steps, answers.n_persons, by_id)


def compare(first, second, case):
    """Fail where another person, the number of persons, or what is listed has changed."""
    assert second.persons == first.persons
    assert second.items == first.items
    assert [*case.items] == [*second.items]
    if not case.before:
        assert second.steps == first.steps
    mine = PERSON if PERSON in first.answers else [*case.rows].index(PERSON)
    for person, own in first.answers.items():
        if person != str(mine):
            assert second.answers[person] == own, f"the answers of {person} changed"


def try_case(case, folder):
    """Read the table and every table in which one person's rows are others."""
    if case.ending == ".xlsx":
        case = replace(case, cells=case.cells[:7])  # a workbook takes long to write
    ended = Counter()
    first = refuse_or_read(case, folder, case.rows)
    for rows in case.replacements():
        second = refuse_or_read(case, folder, {**case.rows, PERSON: rows})
        ended["refused" if second is None else "read"] += 1
        if first is not None and second is not None:
            compare(first, second, case)
    if case.refused:
        assert (first, ended["read"]) == (None, 0), "a reading that was detected is released"
    else:
        assert first is not None
        assert ended["read"] >= 5
    return ended


def refuse_or_read(case, folder, rows):
    try:
        return read_case(case, case.write(folder, rows))
    except (BadResponses, BadUsage):
        return None


KINDS = [
    (option, layout)
    for layout, by_option in CASES.items()
    for option, cases in sorted(by_option.items())
    if cases != NOT_LONG
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("option", "layout"), KINDS)
def test_one_persons_rows_change_nobody_elses_answers(option, layout, tmp_path):
    for case in CASES[layout][option]:
        try_case(replace(case, every=2), tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("option", "layout"), KINDS)
def test_no_cell_of_one_person_changes_anybody_elses_answers(option, layout, tmp_path):
    for case in CASES[layout][option]:
        try_case(replace(case, cells=FEW + MORE), tmp_path)


#: Keywords that say how a file is read, which a frame was before.
OF_FILES = {"sheet", "delimiter", "header", "skip_rows"}


def make_text_frame(case, rows):
    return pd.DataFrame(list_cells(case, rows), columns=[*case.names], dtype=object)


def make_mixed_frame(case, rows):
    """Make a frame whose columns hold numbers and texts."""
    return make_text_frame(case, rows).map(guess)


def make_polars_frame(case, rows):
    return pl.DataFrame(list_cells(case, rows), schema=[*case.names], orient="row")


def list_cells(case, rows):
    return [row for person in case.rows for row in rows[person]]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", CASES)
@pytest.mark.parametrize("make", [make_text_frame, make_mixed_frame, make_polars_frame])
def test_rows_of_a_frame_change_nobody_elses_answers(make, layout, monkeypatch, tmp_path):
    """Other columns, a person column, repeated ids, values that are no answers."""
    monkeypatch.setattr(Case, "write", lambda case, _, rows: make(case, rows))
    monkeypatch.setattr(
        f"{__name__}.read_responses",
        lambda frame, **words: Responses.from_dataframe(frame, **words),
    )
    varied = ("person", "missing", "invalid", "repeats", "order_by")
    for option, cases in CASES[layout].items():
        if cases == NOT_LONG or option in OF_FILES:
            continue
        for case in cases if option in varied else cases[:1]:
            if case.names[0]:  # polars gives a column without a name one
                try_case(replace(case, cells=FEW[:8], every=2), tmp_path)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", CASES)
def test_answers_on_disk_are_read_alike(layout, tmp_path):
    """The same tables with the engine for data of any size."""
    for option, cases in CASES[layout].items():
        for case in [] if cases == NOT_LONG else cases[:1]:
            if case.before or case.refused or (layout, option) == ("wide", "order_by"):
                continue  # whole rows in the order of a column are read in memory only
            path = case.write(tmp_path, case.rows)
            expected = read_case(case, path)
            told = tell(case.items, lowest=case.lowest)
            with open_listed(DataSource(path, "disk"), case.words, told) as streamed:
                assert streamed.detected == ()
                (batch,) = streamed.batches(with_ids=True)
                assert (streamed.items, streamed.steps) == (expected.items, expected.steps)
                found = dict(zip(batch.persons, map(tuple, batch.to_array().tolist()), strict=True))
            assert sorted(found.values()) == sorted(expected.answers.values())


# -- tables that are no text files ---------------------------------------------------------------


def read_listed(source, items=("q1", "q2"), lowest=0, **words):
    with open_listed(DataSource(source, "auto"), words, tell(items, lowest=lowest)) as answers:
        return describe(answers)


def try_tables(make, variants, *, changed, **words):
    """Read tables that differ in one person's rows; nobody else's answers may change."""
    tables = [try_read(make(variant), **words) for variant in variants]
    assert tables[0] is not None
    kept = [table for table in tables if table is not None]
    for table in kept:
        assert (table.items, table.steps) == (tables[0].items, tables[0].steps)
        assert table.persons == tables[0].persons
        others = [
            {k: v for k, v in one.answers.items() if k != changed} for one in (tables[0], table)
        ]
        assert others[0] == others[1]
    return len(kept)


def try_read(source, **words):
    try:
        return read_listed(source, **words)
    except (BadResponses, BadUsage):
        return None


RECORDS = [
    {"id": "b", "q1": 1, "q2": 0},
    {"id": "b", "q1": 1},
    {"id": "b"},
    {"id": "b", "other": 5},
    {"id": "b", "q1": None, "q2": "x"},
    {"id": "b", "q1": "1", "q2": 0.0, "extra": [1]},
    {"user": "b", "q1": 1, "q2": 0},
    {"id": "b", "user": "u", "q1": 1},
    {"id": "b", "item": "q1", "response": 1},
    {"id": "b", "responses": {"q1": 1}},
    {"": "b", "q1": 1},
    {"q1": 1, "q2": 0},
]
OTHER_RECORDS = [
    {"id": "a", "user": "u1", "q1": 0, "q2": 1, "model": "m"},
    {"id": "c", "user": "u1", "q1": 1, "q2": 1, "model": "m"},
]
LONG_RECORDS = [
    {"id": "b", "item": "q1", "response": 1},
    {"id": "b", "item": "q3", "response": "x"},
    {"id": "b", "item": 1.0, "response": 1},
    {"id": "b", "item": "q1", "score": 1},
    {"id": "b", "item": "q1", "response": 1, "score": 0},
    {"user": "b", "item": "q1", "response": 1},
    {"id": "b", "user": "x", "item": "q1", "response": 1},
    {"id": "b", "question": "q1", "response": 1},
    {"id": "b", "q1": 1},
    {"id": "b", "responses": {"q1": 1}},
]


@pytest.mark.parametrize("first", [True, False])
def test_records_of_one_person_do_not_decide_how_others_are_read(first, tmp_path):
    """Keys of the first record, or of any other, name the columns of no other record."""

    def place(record, others):
        return [record, *others] if first else [*others, record]

    def write(records):
        path = tmp_path / "answers.jsonl"
        path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
        return path

    plain = [{k: v for k, v in one.items() if k != "user"} for one in OTHER_RECORDS]
    both = OTHER_RECORDS
    long = [{"id": p, "item": f"q{i}", "response": int(p == "a")} for p in "ac" for i in (1, 2)]
    for others, mine in ((plain, RECORDS), (long, LONG_RECORDS)):
        tables = [place(one, others) for one in mine]
        assert try_tables(list, tables, changed="b") >= 2
        assert try_tables(write, tables, changed="b") >= 2
    stated = [place(one, both) for one in RECORDS]
    assert try_tables(write, stated, changed="b", person="id", layout="wide") >= 2
    nested = [{"subject_id": p, "responses": {"q1": 1, "q2": int(p == "a")}} for p in "ac"]
    mine = [{"subject_id": "b", "responses": one} for one in ({"q1": 1}, {}, {"q9": 5}, 3, None)]
    tables = [place(one, nested) for one in [*mine, *RECORDS, *LONG_RECORDS]]
    assert try_tables(write, tables, changed="b") >= 3


@pytest.mark.parametrize("cell", ["x", 2.0, 2, "2", 2.5])
def test_a_cell_of_another_type_does_not_change_how_others_are_spelt(cell):
    """A column of objects: 1.0 is the item 1 and 7.0 the person 7, also beside a text."""
    rows = [("a", 1.0, 1), ("a", 2.0, 0), ("b", 1.0, 1), ("b", cell, 0), (7.0, 1.0, 0), (7, 2.0, 1)]
    table = pd.DataFrame(rows, columns=["id", "item", "response"], dtype=object)
    for source in (table, table.to_dict("records")):
        read = read_listed(source, ["1", "2"])
        assert (read.persons, read.answers["a"], read.answers["7"]) == (3, (1, 0), (0, 1))


def test_lists_with_nothing_in_a_cell_are_read_by_the_listed_scale():
    """None makes an array of objects of a list of numbers; its categories stay what they are."""
    listed = {"0": 3, "1": 3}
    for mine in ([1, 0], [None, 1], [0, None], ["1", 0], [2.0, None], [True, 1]):
        read = read_listed([[0, 1], mine, [1, 1]], listed, reverse=["0"])
        assert (read.answers["0"], read.answers["2"]) == ((3, 1), (2, 1))
    for mine in ([1, "x"], [9, None]):
        with pytest.raises(BadResponses):
            read_listed([[0, 1], mine, [1, 1]], listed, reverse=["0"])


# -- what is detected, and refused ----------------------------------------------------------------


def check_refused(source, advice, items=("q1", "q2"), lowest=0, **words):
    """Check that a release refuses a reading that was detected, and names what to state."""
    with refused(BadResponses, "release_reads_answers_stated") as caught:
        read_listed(source, items, lowest, **words)
    assert advice in caught.value.facts["advice"]


def test_a_delimiter_that_the_rows_decide_on_is_not_released(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("id;q1;q2\na;1;0\nb;0;1\n")
    check_refused(path, "delimiter=';' (--delimiter ';')")
    check_refused(read_responses(path), "delimiter=';'")
    assert read_listed(path, delimiter=";").persons == 2
    assert read_listed(read_responses(path, delimiter=";")).persons == 2
    path.write_text("sep=;\nid;q1;q2\na;1;0\nb;0;1\n")
    assert read_listed(path).persons == 2


@pytest.mark.filterwarnings("ignore:.*is not UTF-8")
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_file_that_is_not_utf8_is_not_released(tmp_path, engine):
    """One person's letter decides on the encoding, and with it on everybody's items."""
    path = tmp_path / "answers.csv"
    rows = "id,item,response\na,Größe,1\na,q2,0\nb,q2,1\n" + "b,q2,\n" * 500_000
    table = f"{rows}b,X,1\n".encode()  # behind what is looked at first
    told = tell(["Größe", "q2"])
    path.write_bytes(table)
    with open_listed(DataSource(path, engine), {}, told) as answers:
        assert answers.n_persons == 2
    path.write_bytes(table.replace(b"X", b"\xe9"))
    with (
        refused(BadResponses, "release_reads_answers_stated"),
        open_listed(DataSource(path, engine), {}, told),
    ):
        pass
    assert [one.option for one in read_responses(path).detected] == ["encoding"]


CONTROL = """NI=3\nITEM1={first}\nNAME1={name}\nCODES=01\n&END
Größe\nzwei\ndrei\n{end}{data}"""
MARKED = "END NAMES\n"


def write_control(folder, rows, *, end=MARKED, names_first=False, apart=False):
    """Write a Winsteps control file, and return it."""
    form = "{0:<6}{1}" if names_first else "{1} {0}"
    cells = [form.format(*row) for row in rows]
    where = {"first": 7, "name": 1} if names_first else {"first": 1, "name": 5}
    data = "\n".join(cells) + "\n"
    path = folder / "test.con"
    text = CONTROL.format(**where, end=end, data="" if apart else data)
    if apart:
        text = f"DATA=test.dat\n{text}"
        (folder / "test.dat").write_bytes(data.replace("%", "\udce9").encode(**SURROGATES))
    path.write_bytes(text.replace("%", "\udce9").encode(**SURROGATES))
    return path


SURROGATES = {"encoding": "utf-8", "errors": "surrogateescape"}
#: Names and answers of one person; % stands for a letter that is not UTF-8.
CONTROL_ROWS = [
    *(("bob", "011"), ("bob", "1 0"), ("bob", "x9A"), ("bob", ""), ("b%b", "011"), ("büb", "011")),
    *(("END", "NAMES"), ("NAMES", "END"), ("&END", "011"), ("NI=2", "011"), (";", "011")),
]


@pytest.mark.filterwarnings("ignore:.*is not UTF-8")
@pytest.mark.parametrize("names_first", [True, False])
@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("end", [MARKED, ""])
def test_a_line_of_a_control_file_changes_nobody_elses_answers(tmp_path, end, apart, names_first):
    """One letter would decide on the encoding, one line on where the data begin."""
    shape = {"end": end, "apart": apart, "names_first": names_first}

    def read(row):
        rows = [("jörg", "101"), row, ("cleo", "110")]
        try:
            return read_listed(write_control(tmp_path, rows, **shape), ["Größe", "zwei", "drei"])
        except (BadResponses, BadUsage):
            return None

    tables = [read(row) for row in CONTROL_ROWS]
    if not (end or apart):  # the first person's line could read like the end of the names
        assert tables == [None] * len(tables)
        return
    assert sum(one is not None for one in tables) >= 5
    assert tables[4] is None, "an encoding that was detected is released"
    for table in tables:
        if table is not None:
            others = {name: table.answers[name] for name in ("jörg", "cleo")}
            assert others == {"jörg": (1, 0, 1), "cleo": (1, 1, 0)}
            assert table.persons == 3


def write_log(folder, metrics, model="lab__base"):
    """Write a log of the harness whose first question shows these metrics."""
    path = folder / model / "samples_arc.jsonl"
    path.parent.mkdir(exist_ok=True)
    samples = [
        {"doc_id": doc, "target": "", "filtered_resps": [], "acc": doc % 2, "acc_norm": 1}
        | {"metrics": metrics if doc == 0 else ["acc", "acc_norm"]}
        for doc in range(4)
    ]
    path.write_text("".join(f"{json.dumps(sample)}\n" for sample in samples))
    return path


def test_a_question_of_a_log_does_not_decide_which_score_counts(tmp_path):
    """The first sample names the scores: of one model, which may be the person and no other."""
    questions = [f"arc/{doc}" for doc in range(4)]
    for metrics in (["acc", "acc_norm"], ["acc_norm"]):
        path = write_log(tmp_path, metrics)
        assert read_listed(path, questions).persons == 1
        turned = {"person": "question", "item": "model"}
        check_refused(path, "Let every model be a person", ["lab__base", "lab__tiny"], **turned)


def test_titles_above_the_names_are_not_released(tmp_path):
    rows = [["Class 7a", None, None], ["id", "q1", "q2"], ["a", 1, 0], ["b", 0, 1]]
    path = write_xlsx(tmp_path / "answers.xlsx", {"7a": rows})
    with pytest.warns(UserWarning, match="looks like a title"):
        check_refused(path, "Delete the rows above the names")
    with pytest.warns(UserWarning, match="looks like a title"):
        assert [one.option for one in read_responses(path).detected] == ["header"]


@pytest.mark.parametrize("last", [["", ""], [1, 1]])
def test_rows_of_a_sheet_without_ids_are_not_released_unless_their_number_is_stated(tmp_path, last):
    """Whether the last person left everything out would decide on the number of persons."""
    path = write_xlsx(tmp_path / "answers.xlsx", {"7a": [["q1", "q2"], [1, 0], [0, 1], last]})
    check_refused(path, "persons= (--persons)")
    assert [one.option for one in read_responses(path).detected] == ["persons"]
    check_refused(read_responses(path), "(person=, --person)")
    for source in (path, read_responses(path)):
        stated = tell(["q1", "q2"], persons=3)
        with open_listed(DataSource(source), {}, stated) as answers:
            assert settle_persons(answers, stated).persons == 3
    named = [["id", "q1", "q2"], ["a", 1, 0], ["b", None, 1], ["", "", ""]]
    path = write_xlsx(tmp_path / "named.xlsx", {"7a": named})
    assert read_listed(path).persons == 2


def test_what_a_file_of_a_statistical_program_declares_is_not_released(tmp_path):
    """Codes of missing answers and labels of right ones are stated, or refused."""
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = pd.DataFrame({"id": ["a", "b", "c"], "q1": [1.0, 2.0, 9.0], "q2": [2.0, 1.0, 0.0]})
    listed = {"q1": 2, "q2": 2}

    def write(name, **about):
        pyreadstat.write_sav(frame, tmp_path / name, **about)
        return tmp_path / name

    nines = write("nines.sav", missing_ranges={"q1": [9], "q2": [9]})
    with pytest.warns(UserWarning, match="declares missing"):
        answers = read_responses(nines)
    check_refused(answers, "missing= (--missing)", listed)
    with pytest.raises(BadResponses) as caught:
        read_listed(nines, listed)  # a release reads the cell, and asks
    assert {"missing": [9]} in [one.options for one in caught.value.remedies]
    expected = {"a": (1, 2), "b": (2, 1), "c": (-1, 0)}
    assert read_listed(nines, listed, missing=[9]).answers == expected
    with pytest.warns(UserWarning, match="declares missing"):
        stated = read_responses(nines, missing=[9])
    assert read_listed(stated, listed).answers == expected
    zeros = write("zeros.sav", missing_ranges={"q2": [{"lo": 0, "hi": 0.5}], "q1": [9]})
    check_refused(zeros, "missing= (--missing)", listed, missing=[9])  # 0 would count as a step
    labels = {1.0: "wrong", 2.0: "right"}
    frame = pd.DataFrame({"id": ["a", "b"], "q1": [1.0, 2.0], "q2": [2.0, 1.0]})
    path = write("labels.sav", variable_value_labels={"q1": labels, "q2": labels})
    check_refused(path, "key= (--key)")
    check_refused(path, "key= (--key)", key={"q1": "right", "q2": "right"})
    key = {"q1": 2, "q2": 2}
    assert read_listed(path, key=key).answers == {"a": (0, 1), "b": (1, 0)}


@pytest.mark.filterwarnings("ignore:Answers from 1")
def test_answers_keep_what_was_detected_whatever_becomes_of_them(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("id;q1;q2;q3\na;1;3;2\nb;2;1;3\nc;3;2;1\n")
    answers = read_responses(path, reverse="q1")
    options = ["delimiter", "lowest", "steps"]
    assert [one.option for one in answers.detected] == options
    stated = read_responses(path, delimiter=";", lowest=1, steps=2, reverse="q1")
    assert stated.detected == ()
    others = stated.select_persons(["c"])
    kept = {
        "selected": answers.select(["q2", "q3"]),
        "sliced": answers.select_persons(slice(0, 2)),
        "capped": answers.cap(1, discreet.secure.SystemSource()),
        "pickled": pickle.loads(pickle.dumps(answers)),  # noqa: S301
        "joined": Responses.concat([others, answers.select_persons(["a", "b"])]),
        "a frame": Responses.from_dataframe(
            pd.DataFrame({"q1": [1, 2, 3], "q2": [3, 1, 2]}), reverse="q1"
        ),
        "an array": Responses.from_array([[1, 3], [2, 1], [3, 2]], reverse=["0"]),
    }
    for how, one in kept.items():
        expected = options if how not in ("a frame", "an array") else options[1:]
        assert [found.option for found in one.detected] == expected, how
        items = dict.fromkeys(one.items, 2)
        check_refused(one, "steps= (--steps)", items, 1)
    with closing(open_stream(path, reading=discreet.coding.reading.Reading(reverse="q1"))) as one:
        assert [found.option for found in one.select(["q1"]).detected] == options
    joined = Responses.concat([others, stated.select_persons(["a", "b"])])
    assert joined.detected == ()


# -- what is published ---------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", CASES)
def test_every_published_field_is_the_same(layout, tmp_path):
    """Bundles of tables that differ in one person's rows, byte by byte."""
    about = {"title": "A test", "version": "1", "date": "2026-01-05"}
    compared = 0
    for option, cases in CASES[layout].items():
        for number, case in enumerate([] if cases == NOT_LONG else cases[:1]):
            if case.before or case.refused or max(case.items.values()) > 1 or case.lowest:
                continue
            bundles = []
            for own in [case.rows[PERSON], *list(case.replacements())[1::29]]:
                path = case.write(tmp_path, {**case.rows, PERSON: own})
                out = tmp_path / f"{layout}-{option}-{number}-{len(bundles)}"
                asked = {
                    "items": [*case.items],
                    "mechanism": HeldPairs(),
                    "about": about,
                    "out": out,
                }
                try:
                    release(path, BUDGET, **asked, **case.words)
                except (BadResponses, BadUsage):
                    continue
                bundles.append({one.name: one.read_bytes() for one in sorted(out.iterdir())})
            assert all(one == bundles[0] for one in bundles)
            compared += len(bundles) - 1
    assert compared >= 10


# -- columns and rows outside the list -------------------------------------------------------------


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_what_is_not_listed_is_ignored_and_its_persons_count(tmp_path, engine):
    wide_path, long_path = tmp_path / "wide.csv", tmp_path / "long.csv"
    wide_path.write_text('pupil,score,q1,q2,q9,note\np1,3,1,0,7,late\np2,x,0,,,\np3,,,,A,"a, b"\n')
    long_path.write_text(
        "id,item,response,when\np1,q1,1,x\np1,q2,0,x\np2,q1,0,x\np2,essay,long text,x\n"
        "p3,q9,A,x\np3,q9,B,x\np1,essay,5,x\n"
    )
    told = tell(["q2", "q1", "never"])
    expected = [[-1, -1, -1], [-1, 0, -1], [0, 1, -1]]
    for path in (wide_path, long_path):
        with open_listed(DataSource(path, engine), {}, told) as answers:
            assert (answers.items, answers.n_persons) == (("q2", "q1", "never"), 3)
            stores = [answers] if engine == "memory" else list(answers.batches())
            rows = [row for one in stores for row in one.to_array().tolist()]
            assert sorted(rows) == expected


def test_a_wide_table_with_a_total_is_no_long_one(tmp_path):
    """A column called score beside listed items leaves no doubt."""
    path = tmp_path / "answers.csv"
    path.write_text("id,q1,q2,score\na,1,0,1\nb,1,1,2\n")
    with refused(BadResponses, "cannot_tell_whether_long"):
        read_responses(path)
    assert read_listed(path).answers == {"a": (1, 0), "b": (1, 1)}


@pytest.mark.parametrize(
    ("table", "code", "facts"),
    [
        ("id,Q1,q2\na,1,0\n", "list_names_item_table", {"item": "q1", "spelling": "Q1"}),
        ("id,x,y\na,1,0\n", "none_listed_items_column", {}),
        (
            "id,item,response\na,Q1,1\na,q2,1\n",
            "list_names_item_table",
            {"item": "q1", "spelling": "Q1"},
        ),
        ("id,item,response\na,x,1\n", "none_listed_items_data", {}),
    ],
)
def test_a_list_that_does_not_fit_the_table_is_refused(tmp_path, table, code, facts):
    path = tmp_path / "answers.csv"
    path.write_text(table)
    with refused(BadResponses, code, **facts):
        read_listed(path)


# -- planted faults ------------------------------------------------------------------------------


def nothing(*_args, **_words):
    return ()


def take_first_columns(records, make=sources._records_to_arrow):
    return make([{name: record.get(name) for name in records[0]} for record in records])


def check_hole(folder):
    for case in WIDE_CASES["reverse"][-2:]:
        try_case(replace(case, every=2), folder)


def check_lowest(folder):
    try_case(WIDE_CASES["lowest"][2], folder)


def check_option(option, layout="wide"):
    def check(folder):
        for case in CASES[layout][option][:2]:
            try_case(replace(case, every=2), folder)

    return check


FAULTS = {
    "a reversal that is not marked": (scales, "_list_detected", nothing, check_hole),
    "a lowest category that is not marked": (scales, "_list_detected", nothing, check_lowest),
    "a delimiter that is not marked": (
        *(sources.DelimitedSource, "detect", nothing),
        check_option("delimiter"),
    ),
    "a release that refuses nothing": (remedies, "refuse_detected", nothing, None),
    "an encoding that is not marked": (
        *(sources.DelimitedSource, "detect", nothing),
        lambda folder: test_a_file_that_is_not_utf8_is_not_released(folder, "memory"),
    ),
    "an encoding of a control file that is not marked": (
        *(labelled.WinstepsSource, "detect", nothing),
        lambda folder: test_a_line_of_a_control_file_changes_nobody_elses_answers(
            folder, MARKED, apart=True, names_first=True
        ),
    ),
    "a score of a log that is not marked": (
        *(jsonl.EvaluationSource, "detect", nothing),
        test_a_question_of_a_log_does_not_decide_which_score_counts,
    ),
    "titles that are not marked": (
        *(workbook.WorkbookSource, "detect", nothing),
        test_titles_above_the_names_are_not_released,
    ),
    "blank rows that are not marked": (
        *(workbook.WorkbookSource, "detect", nothing),
        lambda folder: (
            test_rows_of_a_sheet_without_ids_are_not_released_unless_their_number_is_stated(
                folder, ["", ""]
            )
        ),
    ),
    "codes and labels of a file that are not marked": (
        *(labelled.LabelledSource, "detect", nothing),
        test_what_a_file_of_a_statistical_program_declares_is_not_released,
    ),
    "keys of the first record": (
        *(jsonl._Shape, "check", nothing),
        lambda folder: test_records_of_one_person_do_not_decide_how_others_are_read(True, folder),
    ),
    "columns of the first record": (
        *(sources, "_records_to_arrow", take_first_columns),
        lambda folder: test_records_of_one_person_do_not_decide_how_others_are_read(True, folder),
    ),
    "times that are rounded": (ids, "_split_texts", nothing, check_option("order_by", "long")),
    "a quotation mark that is not closed": (
        *(sources.DelimitedSource, "_check_lines", nothing),
        check_option("layout"),
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault, tmp_path, monkeypatch):
    place, name, replacement, check = FAULTS[fault]
    if check is None:
        monkeypatch.setattr("discreet.publishing.delivery.refuse_detected", nothing)
        monkeypatch.setattr("discreet.tables.opener.refuse_detected", nothing)
        check = check_hole
    else:
        monkeypatch.setattr(place, name, replacement)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check(tmp_path)
