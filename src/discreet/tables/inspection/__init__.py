"""Inspect a table: propose how to read it, with findings and questions.

In: a file, folder or frame, and what the user states. Out: an :class:`Inspection`: a complete
reading that is proposed, everything that is unclear with possible answers, and the first rows with
the roles of columns and rows. Only a bounded number of rows is looked at.
"""

from __future__ import annotations

import shlex
import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from os import PathLike, fspath
from typing import Unpack

from discreet.choices import PlainDict, PlainMapping
from discreet.coding.keys import Key
from discreet.coding.reading import SHEET, Reading, ReadingWords, check_words
from discreet.coding.remedies import (
    Detected,
    TableFinding,
    make_remedy,
    refuse_questions,
    spell_command,
)
from discreet.coding.steps import write_merge
from discreet.errors import (
    AssumedReading,
    BadResponses,
    BadUsage,
    DiscreetError,
    Remedy,
    escape_controls,
)
from discreet.tables.columns import LongPlan, WidePlan, plan_columns
from discreet.tables.dataset import is_query, names_database
from discreet.tables.findings import Decision, Findings, merge_options
from discreet.tables.formats.jsonl import LOGS, name_score
from discreet.tables.inspection.answers import ask_marks, judge_answers
from discreet.tables.inspection.columns import ColumnRoles, list_roles
from discreet.tables.inspection.layout import (
    ask_long,
    ask_repeats,
    ask_strings,
    ask_turned,
    find_graded,
)
from discreet.tables.inspection.rows import CellGrid, OddRows, Row, Table, find_names, open_grids
from discreet.tables.lists import find_key, state_reading
from discreet.tables.opener import name_stated
from discreet.tables.options import READING_FIELDS
from discreet.tables.paths import find_files, name_delimiter, names_server, read_head, sniff
from discreet.tables.sources import FrameSource, has_head
from discreet.tables.vocabulary import Column, name_columns, name_words, plain
from discreet.text import name_some

#: Columns of answers that make a table a wide one.
_ENOUGH = 3
#: Rows of a preview.
SHOWN = 12
#: Fields by which another table is read, of which nothing was found out.
_OTHER_TABLE = {"sheet", "layout", "header"}
_ABOUT_FILE = ("sheet", "delimiter", "skip_rows", "header_rows")


@dataclass(frozen=True)
class TablePreview:
    """The first rows of a table, with the role of each column and row.

    Attributes
    ----------
    names, roles
        Of columns: "person", "item", "group", "left out"; of long tables also "answer".
    rows, row_roles, numbers
        Cells as text; "person", "key" or "left out" of each row; its number below the names.
    above
        The rows above the names.
    """

    names: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    row_roles: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    above: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Inspection:
    """Result of an inspection: the proposed reading of a table, findings and questions.

    Attributes
    ----------
    source
        What was looked at, as messages call it.
    proposal
        What was stated, and what is proposed, of the largest block of items. Reading with it
        raises the questions to which nothing is proposed.
    raters
        The column of raters, or by rater the columns of each criterion, where there may be some.
    blocks
        Further blocks of like columns with other values, each as a reading of its own: one scale
        is calibrated at a time.
    decisions
        The proposed value of every field, how sure it is, and why.
    findings
        What is unclear or looks wrong, and notes on what was left out.
    preview
        The first rows.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"Name": ["Ann", "Bob", "Eve"], "Q1": [1, 0, 1], "Q2": [0, 0, 1]})
    >>> inspection = inspect_table(table)
    >>> inspection.is_sure, inspection.proposal.person
    (True, 'Name')
    """

    source: str
    proposal: Reading
    decisions: tuple[Decision, ...] = ()
    findings: tuple[TableFinding, ...] = ()
    preview: TablePreview = field(default_factory=TablePreview)
    stated: PlainMapping = field(default_factory=dict)
    blocks: tuple[Reading, ...] = ()
    raters: str | Mapping[str, Mapping[str, str]] = ""

    @property
    def questions(self) -> tuple[TableFinding, ...]:
        """The findings that the user has to answer."""
        return tuple(finding for finding in self.findings if finding.is_open)

    @property
    def is_sure(self) -> bool:
        """Whether the proposal can be taken without asking."""
        return not self.questions

    @property
    def notes(self) -> tuple[str, ...]:
        """What is assumed, one sentence each."""
        return tuple(finding.question for finding in self.findings if not finding.is_open)

    @property
    def options(self) -> PlainDict:
        """The proposal as keywords."""
        return simplify(self.proposal.stated)

    @property
    def command(self) -> str:
        """The command line that takes the proposal; what only the user knows stands as KEY.

        Empty for a data frame, and where nothing is proposed or the table must be changed first.
        """
        asked = [one.asks for one in self.questions if not one.proposed]
        if not all(asked) or self.source == FrameSource.name:
            return ""  # nothing is proposed that could be copied
        unknown = {name: READING_FIELDS[name].metavar for name in asked}
        words = ["discreet", "fit", shlex.quote(self.source), *spell_command(self.options)]
        words += [f"--{name.replace('_', '-')} {value}" for name, value in unknown.items()]
        return " ".join(words)

    def answer(self, finding: TableFinding, number: int = 0, reply: object = None) -> PlainDict:
        """Return the keywords of a reading with an answer to a question, and all that is certain.

        What is proposed for other questions is not taken; of another sheet or layout only what is
        known of the file.

        Parameters
        ----------
        finding
            The question.
        number
            Which of its answers.
        reply
            The value of the field that the answer asks for.
        """
        remedy = finding.answers[number]
        change = dict(remedy.options) | ({remedy.asks: reply} if remedy.asks else {})
        known = simplify(self.take_sure().stated)
        if change.keys() & _OTHER_TABLE:
            kept = () if "sheet" in change else _ABOUT_FILE
            known = {name: known[name] for name in kept if name in known}
        return merge_options(known, change)

    def take_sure(self) -> Reading:
        """Return the reading with all that is stated or certain, without a lowest category."""
        sure = [one for one in self.decisions if one.is_sure and one.field != "lowest"]
        options: PlainDict = simplify(self.stated)
        for one in sure:
            options = merge_options(options, {one.field: one.value})
        assumed = tuple(
            one for one in self.proposal.assumed if one.option in {d.field for d in sure}
        )
        return replace(Reading(**options), assumed=assumed)

    def refuse(self) -> BadResponses:
        """Return an error with all questions and the one command that answers them."""
        return refuse_questions(self.source, self.questions, self.command)

    def to_dict(self) -> PlainDict:
        """Return proposal, findings and command for JSON."""
        findings = [asdict(finding) for finding in self.findings]
        for finding in findings:
            finding["open"] = finding.pop("is_open")
        decisions = [vars(decision) for decision in self.decisions]
        return {"proposal": self.options, "decisions": decisions, "findings": findings,
                "command": self.command}  # fmt: skip


def simplify(stated: PlainMapping) -> PlainDict:
    """Return fields of a reading as a person would type them.

    Examples
    --------
    >>> simplify(Reading(missing=[9, "n/a"], key="BA").stated)
    {'missing': [9, 'n/a'], 'key': 'BA'}
    """
    options: PlainDict = {
        name: list(value) if isinstance(value, tuple) else value for name, value in stated.items()
    }
    codes = options.get("missing")
    if isinstance(codes, Mapping) and codes.keys() == {"*"}:
        options["missing"] = [int(c) if c.lstrip("-").isdigit() else c for c in codes["*"]]
    if "merge" in options:
        options["merge"] = write_merge(options["merge"])
    if "categories" in options:
        options["categories"] = [list(texts) for texts in options["categories"]]
    key = options.get("key")
    if isinstance(key, Key):
        letters = ["|".join(words).upper() for words in key.in_order]
        sign = "" if all(len(word) == 1 for word in letters) else ","
        options["key"] = sign.join(letters) if letters else dict(key.by_item)
    return options


def inspect_table(source: object, **words: Unpack[ReadingWords]) -> Inspection:
    """Look at a table, and propose how to read it.

    Parameters
    ----------
    source
        A file, a folder, a pattern or a data frame.
    words
        What is known already: fields of :class:`discreet.Reading`.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"Name": ["Ann", "Bob", "Eve"], "Q1": [1, 0, 1], "Q2": [0, 0, 1]})
    >>> inspect_table(table).proposal.stated
    {'person': 'Name'}
    """
    check_words(words)
    return look_at(source, words)


def look_at(source: object, words: PlainMapping) -> Inspection:
    """Return what :func:`inspect_table` does; the words were checked."""
    reading = state_reading(words)
    stated = {**{name: words[name] for name in words if name != "reading"}, **reading.stated}
    name = fspath(source) if isinstance(source, str | PathLike) else FrameSource.name
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grids = open_grids(source, reading)
        findings = Findings(stated)
        grid = _choose_grid(grids, findings)
        preview = _inspect_grid(grid, reading, findings)
        if isinstance(reading.sheet, str):
            if not {"item", "answer", "not clear"} & {*preview.roles}:
                question = f"The sheet '{reading.sheet}' holds no answers. Which sheet does?"
                findings.propose(TableFinding("sheet", question, marked=None))
            _offer_other_sheets(source, reading, findings)
        blocks = tuple(_propose_block(grid, reading, findings, block) for block in findings.blocks)
    proposal = _propose(reading, findings)
    decisions, questions = tuple(findings.decisions), tuple(findings.questions)
    about = (proposal, decisions, questions, preview, stated, blocks)
    return Inspection(str(name), *about, findings.raters)


def _propose(reading: Reading, findings: Findings) -> Reading:
    """Return what is stated and what is proposed as one reading, with the questions left open."""
    options = merge_options(simplify(reading.stated), findings.options)
    unclear = tuple(one for one in findings.questions if one.is_open and not one.proposed)
    return Reading(**options, assumed=_list_assumed(findings.decisions), unclear=unclear)


def _propose_block(
    grid: CellGrid, reading: Reading, findings: Findings, block: Sequence[str]
) -> Reading:
    """Return the proposal for another block: the items and the other blocks are left out."""
    others = [label for one in findings.blocks if one is not block for label in one]
    aside = merge_options(findings.stated, {"ignore": [*findings.items, *others]})
    alone = Findings(aside)
    _inspect_grid(grid, replace(reading, ignore=aside["ignore"]), alone)
    return _propose(replace(reading, ignore=aside["ignore"]), alone)


def _list_assumed(decisions: Sequence[Decision]) -> tuple[Detected, ...]:
    """Return what was decided here by more than the names of columns."""
    return tuple(
        Detected(one.field, one.reason, make_remedy("state it with", {one.field: one.value}))
        for one in decisions
        if not one.is_public
    )


def decide_reading(source: object, words: PlainMapping, items: Collection[str] = ()) -> Reading:
    """Return how to read a source: as stated, and as an inspection of it is sure of.

    Where the ``items`` are known, as those of a calibration are, other columns that would be asked
    about are left out, and a warning names them.

    Servers, clusters, JSON lines and arrays are read as stated. What was assumed is said in a
    warning and kept in ``assumed``, so that no release takes it. A whole ``reading`` is taken as it
    is.

    Raises
    ------
    BadResponses
        With all questions, where something is not clear.
    """
    reading = state_reading(words)
    if "reading" in words or not is_inspected(source):
        return reading.refuse_unclear(source)
    inspection = look_at(source, words)
    if strangers := _list_strangers(inspection, items):
        inspection = look_at(source, merge_options(dict(words), {"ignore": strangers}))
        sentence = (
            f"{inspection.source}: {name_some(strangers)} left out, because the calibration has no "
            "such items."
        )
        warnings.warn(sentence, AssumedReading, stacklevel=4)
    fields = [finding.field for finding in inspection.questions]
    if fields and not (len(fields) == 1 and fields[0] in _REFUSED_BY_READER):
        raise inspection.refuse()
    if inspection.notes and not fields:
        warnings.warn(
            f"{inspection.source}: {' '.join(inspection.notes)} To state it: "
            f"{' '.join(spell_command(inspection.options))}",
            AssumedReading,
            stacklevel=4,
        )
    return inspection.take_sure()


def _list_strangers(inspection: Inspection, items: Collection[str]) -> list[str]:
    """Return the columns asked about that are none of the known items, most of which are there."""
    names = inspection.preview.names
    if 2 * sum(name in items for name in names) <= len(items) or not items:
        return []
    asked = [label for one in inspection.questions for label in one.cells]
    return [name for name in dict.fromkeys(asked) if name in names and name not in items]


def refer_to_proposal(refusal: BadResponses, source: object, words: PlainMapping) -> BadResponses:
    """Return a refusal with a note on what an inspection of the file finds, and how to take it."""
    with suppress(DiscreetError):
        if "reading" in words or not is_inspected(source):
            return refusal
        inspection = inspect_table(source, **words)
        sentences = [finding.question for finding in inspection.findings]
        if inspection.options != simplify(inspection.stated) and sentences:
            refusal.add_note(
                escape_controls(
                    f"discreet.inspect_table(...) finds: {' '.join(sentences[:4])} To take what it "
                    "proposes: read_responses(path, reading=discreet.inspect_table(path).proposal)."
                )
            )
    return refusal


#: Questions about values: asked alone, the reader's own refusal points at the first such cell.
_REFUSED_BY_READER = ("missing", "model")


def is_inspected(source: object) -> bool:
    """Say whether a source is looked at before it is read: not servers, clusters and JSON lines."""
    if not isinstance(source, str | PathLike):
        return has_head(source)
    if names_server(source):
        return False
    if is_query(source) or names_database(source):
        return True
    return sniff(first := find_files(source)[0], read_head(first)) != "jsonl"


def _choose_grid(grids: list[CellGrid], findings: Findings) -> CellGrid:
    """Return the table to look at; sheets with the same columns are joined."""
    if not grids:
        raise BadResponses("There is no sheet with data. Check the workbook.")
    if len(grids) == 1:
        delimiter = grids[0].options.get("delimiter")
        if delimiter is not None:
            why = f"Fields are separated by {name_delimiter(delimiter)}."
            findings.decide("delimiter", delimiter, why)
        return grids[0]
    in_order = _set_aside(grids, findings)
    grids = sorted(in_order, key=lambda grid: -sum(map(len, grid.rows)))
    largest = grids[0]
    sheets = [grid.options["sheet"] for grid in in_order]
    tables = [find_names(grid, Findings(findings.stated)) for grid in in_order]
    if len(grids) == 1:
        findings.note("sheet", sheets[0], f"The sheet '{sheets[0]}' holds the answers.", sheets)
    elif len({_name_columns(table) for table in tables}) > 1:
        _ask_sheet("Which sheet holds the answers?", [g.options["sheet"] for g in grids], findings)
    elif "sheet" not in findings.stated and _name_same_persons(tables):
        question = (
            f"The {len(sheets)} sheets name the same persons, as tests at different times do. "
            "Which one is read?"
        )
        _ask_sheet(question, sheets, findings)
        return in_order[0]
    else:
        if "sheet" not in findings.stated:
            reason = f"The {len(sheets)} sheets have the same columns and are read as one table."
            undo = [make_remedy(f"sheet '{one}' alone:", {"sheet": one}) for one in sheets[:5]]
            findings.note("sheet", sheets, reason, sheets, undo)
        find_names(in_order[0], findings)  # says how many rows are above the names
        joined = [row for table in tables for row in table.rows]
        return CellGrid(largest.name, joined, tables[0].names, {}, False, kind="workbook")
    return largest


def _ask_sheet(question: str, sheets: Sequence[str], findings: Findings) -> None:
    answers = [make_remedy(f"'{sheet}' alone:", {"sheet": sheet}) for sheet in sheets[:6]]
    findings.ask("sheet", question, answers, sheets[:6])


def _offer_other_sheets(source: object, reading: Reading, findings: Findings) -> None:
    """Add to questions that nothing but typing answers that another sheet may be meant."""
    if not any(one.is_open for one in findings.questions):
        return
    names = [grid.options.get("sheet") for grid in open_grids(source, replace(reading, sheet=None))]
    others = [name for name in names if name != reading.sheet][:6]
    sheets = tuple(make_remedy(f"the sheet '{name}' is meant:", {"sheet": name}) for name in others)
    findings.questions = [
        one if any(answer.options for answer in one.answers) or not one.is_open
        else replace(one, answers=one.answers + sheets)
        for one in findings.questions
    ]  # fmt: skip


def _set_aside(grids: list[CellGrid], findings: Findings) -> list[CellGrid]:
    """Return the sheets that may hold answers, without a key and what differs from most of them."""
    if "sheet" in findings.stated:
        return grids
    tables = [(grid, find_names(grid, Findings({}))) for grid in grids]
    for grid, table in tables:
        name, rows = grid.options["sheet"], [row for row in table.rows if any(row)]
        if plain(name) in name_words("keys") and "key" not in findings.stated:
            with suppress(BadUsage):
                findings.key = find_key(table.names, rows, f"The sheet '{name}'").by_item
                tables.remove((grid, table))
                break
    names, times = Counter(_name_columns(table) for _, table in tables).most_common(1)[0]
    alike = [grid for grid, table in tables if _name_columns(table) == names]
    others = [grid for grid, _ in tables if grid not in alike]
    is_summary = times > 1 and all(len(grid.rows) < len(alike[0].rows) for grid in others)
    return alike if is_summary else [grid for grid, _ in tables]


def _name_columns(table: Table) -> tuple[str, ...]:
    return tuple(sorted(filter(None, table.names)))


def _name_same_persons(tables: list[Table]) -> bool:
    """Say whether ids or names differ in every row of a sheet, and are the same in each sheet.

    First names alone, beside surnames, and running numbers do not tell persons apart.
    """
    words = [plain(name) for name in tables[0].names]
    names = [number for number, word in enumerate(words) if word in name_words("ids", "names")]
    others = [[number] for number, word in enumerate(words) if word not in name_words("numbers")]
    for numbers in [names] if names else others:
        columns = [
            [tuple(row[n] for n in numbers if n < len(row)) for row in table.rows if any(row)]
            for table in tables
        ]
        columns = [[cells for cells in keys if any(cells)] for keys in columns]
        shared = set(columns[0]).intersection(*columns[1:])
        is_unique = all(len(set(cells)) == len(cells) > 2 for cells in columns)
        if is_unique and 2 * len(shared) > len(columns[0]):
            return True
    return False


def _inspect_grid(grid: CellGrid, reading: Reading, findings: Findings) -> TablePreview:
    table = find_names(grid, findings)
    is_log = grid.kind in ("jsonl", *LOGS)
    if not table.rows and not is_log:
        return _show(table)
    if grid.kind == "text" and ask_strings(grid, findings):
        return _show(table)
    if not is_log and (turned := ask_turned(table, findings)) is not None:
        return _inspect_wide(grid, turned, findings)
    if findings.options.get("layout") == "long":
        reading = replace(reading, layout="long", header=False)
    reading = name_score(reading, table.names) if is_log else reading
    plan: LongPlan | WidePlan | None = None
    doubt: BadResponses | None = None
    try:
        groups = [name for name in reading.group if name != SHEET]  # of joined sheets
        named = name_stated(table.names, reading)
        plan = plan_columns(named, replace(reading, group=groups, sheet=None), grid.name)
    except (BadResponses, BadUsage) as error:
        if is_log:
            findings.ask("response", str(error), error.remedies)
            return _show(table)
        if isinstance(error, BadUsage):
            raise
        doubt = error
    if not isinstance(plan, LongPlan):
        plan = ask_long(table, reading, findings)
        if findings.questions and plan is None and findings.questions[-1].field == "layout":
            return _show(table)
    if isinstance(plan, LongPlan):
        return _inspect_long(grid, table, reading, findings, plan)
    is_stated = findings.stated.get("layout") == "long"
    if doubt is not None and (is_stated or "long or a wide table" in str(doubt)):
        columns = name_columns(table.names, table.rows)
        items = ColumnRoles(columns, Findings(findings.stated), len(table.rows)).find()
        if len(items) < _ENOUGH:
            findings.ask("layout", str(doubt), doubt.remedies)
            return _show(table)
        reason = f"{len(items):,} columns hold answers: one column per item."
        findings.decide("layout", "wide", reason)
    return _inspect_wide(grid, table, findings)


def _inspect_wide(grid: CellGrid, table: Table, findings: Findings) -> TablePreview:
    trial = Findings(findings.stated)
    items = ColumnRoles(name_columns(table.names, table.rows), trial, len(table.rows)).find()
    odd = OddRows(table, items, findings)
    stated = {n: v for n, v in findings.stated.items() if n in ("drop_rows", "key_row")}
    if stated:
        odd.take(Reading(**stated).rows_aside)
    else:
        odd.find(may_number=grid.is_whole)
    rows = [row for number, row in enumerate(table.rows) if number not in odd.aside]
    columns = name_columns(table.names, rows)
    found = ColumnRoles(columns, findings, len(rows), grid.labels)
    items = found.find()
    _take_key(items, findings)
    options = {**findings.stated, **findings.options}
    key_row = options.get("key_row")
    right = [
        row for n, row in enumerate(table.rows) if key_row is not None and key_row in (n + 1, *row)
    ]
    if not (right and ask_marks([(item, right[0][item.number]) for item in items], findings)):
        judge_answers(items, findings, grid.labels)
    options |= findings.options
    findings.items, findings.blocks = [c.label for c in items], [b.labels for b in found.blocks]
    roles = list_roles(columns, findings, findings.items)
    return _show(table, roles, odd.aside, options.get("key_row"), grid.labels)


def _take_key(items: Sequence[Column], findings: Findings) -> None:
    """Propose the key that a sheet of its own holds, in the order of the items."""
    if items and all(item.name in findings.key for item in items):
        answers = Key(in_order=tuple(tuple(findings.key[item.name]) for item in items))
        key = simplify({"key": answers})["key"]
        findings.note("key", key, "A sheet of its own holds the right answers.", ["the items"])


def _inspect_long(
    grid: CellGrid, table: Table, reading: Reading, findings: Findings, plan: LongPlan
) -> TablePreview:
    names = table.names
    if grid.kind in LOGS:
        table = find_graded(table, plan, findings) or table
    cells = [
        (row[plan.person], row[plan.item], row[plan.response])
        for row in table.rows
        if len(row) == len(names) and row[plan.response] is not None
    ]
    named = [names[plan.person] or "the index", names[plan.item]]
    ask_repeats(cells, table, findings, reading, named)
    by_item: dict[str, list[str | None]] = {}
    for _, item, answer in cells:
        by_item.setdefault(str(item), []).append(answer)
    items = [Column(n, item, answers) for n, (item, answers) in enumerate(by_item.items())]
    judge_answers([item for item in items if item.kind != "blank"], findings, grid.labels)
    role_of = {plan.person: "person", plan.item: "item", plan.response: "answer"}
    role_of |= dict.fromkeys(plan.groups, "group")
    return _show(table, [role_of.get(number, "left out") for number in range(len(names))])


def _show(
    table: Table,
    roles: Sequence[str] | None = None,
    aside: Collection[int] = (),
    key_row: object = None,
    labels: Mapping[str, Mapping[str, str]] | None = None,
) -> TablePreview:
    """Return the first rows and those that are no persons, values with their labels."""
    names, rows = table.names, table.rows
    shown = [*range(min(SHOWN, len(rows))), *sorted(n for n in aside if n >= SHOWN)]
    is_key = [key_row is not None and (key_row == n + 1 or key_row in rows[n]) for n in shown]
    row_roles = [
        "person" if n not in aside else "key" if key else "left out"
        for n, key in zip(shown, is_key, strict=True)
    ]
    by_column = [(labels or {}).get(name, {}) for name in names]
    cells = [
        tuple(
            f"{cell} = {words[cell]}" if cell in words else cell
            for cell, words in zip(row, by_column, strict=True)
        )
        for row in _cut_cells([rows[n] for n in shown], len(names))
    ]
    return TablePreview(
        tuple(names),
        tuple(roles or ["not clear"] * len(names)),
        tuple(cells),
        tuple(row_roles),
        tuple(number + 1 for number in shown),
        tuple(_cut_cells(table.above, len(names))),
    )


def _cut_cells(rows: Sequence[Row], width: int) -> list[tuple[str, ...]]:
    """Return rows of so many short texts."""
    padded = [[*row, *[None] * (width - len(row))][:width] for row in rows]
    return [tuple((cell or "")[:60] for cell in row) for row in padded]


__all__ = ["Decision", "Inspection", "Remedy", "TableFinding", "TablePreview", "inspect_table"]
