"""What a file holds: an inspection, the answers as they would be read, and changes by a form.

In: a file and what is stated about its reading; or a look at it and what a browser sent. Out: a
:class:`Look` for the page, and beside it the answers for whoever calibrates them; or what is stated
from then on. Looking runs in a worker.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from discreet.answers.responses import Responses
from discreet.choices import PlainDict, PlainMapping
from discreet.coding.remedies import TableFinding
from discreet.errors import BadResponses, BadUsage, DiscreetError
from discreet.readers.answers import read_planned
from discreet.readers.crossed import find_raters
from discreet.report.plain import AnsweredItem, count_answers
from discreet.studio.forms import (
    LIST,
    NUMBER,
    FieldKind,
    load_fields,
    read_fields,
    read_index,
    write_fields,
)
from discreet.studio.jobs import TaskProgress, keep
from discreet.studio.language import refuse, tell
from discreet.studio.rating import RATERS, read_rated
from discreet.tables.cells import letter_column
from discreet.tables.findings import RATED, merge_options
from discreet.tables.inspection import Inspection, inspect_table, simplify
from discreet.tables.paths import find_files
from discreet.tables.vocabulary import name_words, plain
from discreet.words import mark

#: Groups of a column that are shown.
MOST_LABELS = 30
#: The files beside the result that hold the answers, and the names of persons.
ANSWERS, LABELS = "answers", "labels"

ITEM, REVERSED, PERSON = mark("item"), mark("item, reversed"), mark("person")
ANSWER, GROUP, LEFT_OUT = mark("answer"), mark("group"), mark("left out")
RATER = mark("rater")
#: What it is while nobody knows.
NOT_CLEAR = mark("not clear")
#: What a column may be, of wide and of long tables.
ROLES = {
    False: (ITEM, REVERSED, PERSON, GROUP, LEFT_OUT),
    True: (PERSON, ITEM, ANSWER, RATER, GROUP, LEFT_OUT),
}
#: What a row may be.
ROWS = (PERSON, mark("key"), LEFT_OUT, mark("names"))
ABOVE = mark("above the names")
_NAMED = {PERSON: "person", ITEM: "item", ANSWER: "response", RATER: RATERS}
#: What stays stated where another row holds the names.
_FORM = ("sheet", "delimiter", "layout")
_STEPS = ("model", "steps", "lowest", "reverse", "categories", "merge")
#: What makes answers right and wrong; it goes without what is said about steps.
_RIGHT = ("key", "at_least", "one_means")


def read_key(text: str) -> str:
    r"""Return a key as a reading takes it; a row of a spreadsheet may be pasted.

    Examples
    --------
    >>> read_key("B\tA\td"), read_key("b a d c"), read_key("B, A|C")
    ('BAD', 'BADC', 'B,A|C')
    """
    parts = [part for part in re.split(r"[\s,;]+", text.upper()) if part]
    return ("" if all(len(part) == 1 for part in parts) else ",").join(parts)


def read_texts(text: str) -> list[list[str]]:
    """Return texts from the lowest to the highest, of which each line is one scale."""
    lines = [re.split(r"\s*[<,]\s*", line.strip()) for line in text.splitlines() if line.strip()]
    return [[word for word in line if word] for line in lines]


def write_texts(lists: Any) -> str:
    """Return lists of texts, one on a line."""
    return "\n".join(" < ".join(texts) for texts in lists)


#: What can be stated about a table beyond its columns and rows.
FIELDS = load_fields(
    "reading",
    key=FieldKind(read_key, lambda key: key if isinstance(key, str) else ""),
    missing=LIST,
    at_least=NUMBER,
    categories=FieldKind(read_texts, write_texts),
    sheet=LIST,
    header=FieldKind(lambda text: text != "no", lambda value: "" if value else "no"),
)


# -- looking at a file -----------------------------------------------------------------------


@dataclass(frozen=True)
class AnswersSummary:
    """What was read; ``steps`` is the highest score of an item, ``groups`` who is where.

    ``raters`` says how many raters there are, 0 where the scores are no ratings.
    """

    persons: int
    items: tuple[AnsweredItem, ...]
    steps: int
    keyed: bool
    groups: Mapping[str, Mapping[str, int]]
    raters: int = 0

    @property
    def missing(self) -> int:
        """How many cells hold no answer."""
        return self.persons * len(self.items) - sum(item.answers for item in self.items)


@dataclass(frozen=True)
class Look:
    """What a file holds.

    Attributes
    ----------
    options
        What was stated about its reading.
    inspection
        Of the table; None where there is no table.
    findings
        Of the inspection, and why the answers could not be read.
    summary
        The answers as they were read; with open findings, by the proposed answers to them.
    """

    options: PlainMapping = field(default_factory=dict)
    inspection: Inspection | None = None
    findings: tuple[TableFinding, ...] = ()
    summary: AnswersSummary | None = None

    @property
    def is_ready(self) -> bool:
        """Whether the answers can be calibrated."""
        return self.summary is not None and not any(finding.is_open for finding in self.findings)

    @property
    def shown(self) -> PlainDict:
        """What the page shows as stated: the whole proposal."""
        found = self.options if self.inspection is None else self.inspection.options
        return {**found, **self.rated}

    @property
    def rated(self) -> PlainDict:
        """What is stated about raters, which no inspection knows."""
        return {RATERS: self.options[RATERS]} if RATERS in self.options else {}

    @property
    def certain(self) -> PlainDict:
        """What was stated, and what nobody needs to be asked about."""
        found = self.inspection
        return {} if found is None else {**simplify(found.take_sure().stated), **self.rated}

    @property
    def blocks(self) -> list[list[str]]:
        """The columns of each further block, which can be read instead."""
        if self.inspection is None:
            return []
        names = [label for label, role in self.columns if role != PERSON]
        asides = [simplify(one.stated) for one in self.inspection.blocks]
        taken = [{*one.get("ignore", ()), *one.get("group", ())} for one in asides]
        return [[name for name in names if name not in aside] for aside in taken]

    @property
    def is_long(self) -> bool:
        """Whether each row is one answer."""
        return self.inspection is not None and ANSWER in self.inspection.preview.roles

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Label and role of each column; a column without a name goes by its letter."""
        if self.inspection is None:
            return []
        preview = self.inspection.preview
        turned, raters = self.shown.get("reverse", ()), self.options.get(RATERS, ())
        rater = raters[0] if isinstance(raters, list) else raters
        labels = [name or f"column {letter_column(n)}" for n, name in enumerate(preview.names)]
        return [
            (
                label,
                REVERSED if role == ITEM and label in turned else RATER if label == rater else role,
            )
            for label, role in zip(labels, preview.roles, strict=True)
        ]

    @property
    def items(self) -> list[str]:
        """The columns that are items."""
        return [label for label, role in self.columns if role in (ITEM, REVERSED)]


def look(progress: TaskProgress, source: Path, name: str, options: PlainMapping) -> Look:
    """Inspect a file, and read it as far as that is possible."""
    progress.begin(mark("Looking at the first rows"))
    view = Look(options)
    if words := NO_TABLES.get(source.suffix.lower()):
        return replace(view, findings=(TableFinding("", tell(words, file=name)),))
    try:
        inspection = _inspect(source, options)
        findings = _offer_raters(inspection, options)
        view = replace(view, inspection=inspection, findings=findings)
        if not all(one.proposed for one in findings if one.is_open):
            return view
        progress.begin(mark("Reading the answers"))
        if RATERS in options:
            return _look_at_ratings(progress, view, source)
        reading = inspection.take_sure() if inspection.is_sure else inspection.proposal
        responses = read_planned(source, reading, counting(progress, source))
    except (BadResponses, BadUsage) as error:
        return replace(view, findings=(*view.findings, _explain(error, source, name)))
    keep(progress.folder / ANSWERS, responses)
    if label := _find_label(view):
        labelled = read_planned(source, replace(reading, group=(label,)))
        keep(progress.folder / LABELS, [*map(str, labelled.groups[label])])
    progress.begin(mark("Counting what is missing and what is right"))
    return replace(view, summary=_summarise(responses))


def _inspect(source: Path, options: PlainMapping) -> Inspection:
    """Inspect a file; whoever states a column of raters has said what it is."""
    stated = {name: value for name, value in options.items() if name != RATERS}
    raters = options.get(RATERS)
    if isinstance(raters, list):
        stated = merge_options(stated, {"group": raters[:1]})
    return inspect_table(source, **stated)


def _offer_raters(inspection: Inspection, options: PlainMapping) -> tuple[TableFinding, ...]:
    """Return what was found, with what reads ratings; repeated answers of persons are ratings."""
    if RATERS in options:
        return tuple(one for one in inspection.findings if one.field != "repeats")
    raters, every = find_raters(inspection), list[str]()
    if isinstance(raters, Mapping):
        every = [column for named in raters.values() for column in named.values()]
    change = {RATERS: raters, **({"keep": every} if every else {})}
    return tuple(
        replace(
            finding,
            answers=tuple(
                replace(one, options=change) if one.change == RATED else one
                for one in finding.answers
            ),
        )
        for finding in inspection.findings
    )


def _look_at_ratings(progress: TaskProgress, view: Look, source: Path) -> Look:
    """Return a look with what was read as ratings."""
    ratings, items = read_rated(source, cast("Inspection", view.inspection), view.options[RATERS])
    keep(progress.folder / ANSWERS, ratings)
    (levels,) = ratings.facets.values()
    steps = int(ratings.score.max())
    summary = AnswersSummary(ratings.n_persons, items, steps, False, {}, len(levels))
    return replace(view, summary=summary)


def counting(progress: TaskProgress, source: Path) -> Any:
    """Return what a reader of a file tells how far it is."""
    total = sum(path.stat().st_size for path in find_files(source))
    return lambda done: progress.count(min(done, total), total)


PICTURE = mark(
    "{file} is a picture and cannot be read as a table. Save the answers as a spreadsheet."
)
DOCUMENT = mark(
    "{file} is a text document and cannot be read as a table. Save the answers as a spreadsheet."
)
#: What is said of files that hold no table, by their endings.
NO_TABLES = dict.fromkeys((".jpg", ".jpeg", ".png", ".gif", ".heic", ".tif", ".bmp"), PICTURE)
NO_TABLES |= dict.fromkeys((".doc", ".docx", ".odt", ".rtf", ".pages", ".pdf"), DOCUMENT)


def _explain(error: DiscreetError, source: Path, name: str) -> TableFinding:
    """Return a refusal as a question; the path of a copy is called as the user calls the file."""
    message = str(error).replace(f"{source}/", "").replace(str(source), name)
    for remedy in error.remedies:
        message = message.replace(f"{remedy.words[0].upper()}{remedy.words[1:]}.", "").strip()
    return TableFinding("", message, error.remedies)


def _find_label(view: Look) -> str | None:
    """Return the column that names persons beside the one that tells them apart."""
    roles = dict(view.columns)
    if view.is_long or plain(str(view.shown.get("person", ""))) in name_words("names"):
        return None
    aside = [label for label, role in roles.items() if role == LEFT_OUT]
    labels = [label for label in aside if plain(label) in name_words("names")]
    return labels[0] if labels else None


def _summarise(responses: Responses) -> AnswersSummary:
    items = count_answers(responses)
    groups = {
        name: dict(Counter(map(str, labels)).most_common(MOST_LABELS))
        for name, labels in responses.groups.items()
    }
    is_keyed = responses.choices is not None
    return AnswersSummary(responses.n_persons, items, max(responses.steps), is_keyed, groups)


# -- changing what is stated -----------------------------------------------------------------


def state_reading(
    view: Look, sent: Mapping[str, str], touched: Collection[str] | None = None
) -> PlainDict:
    """Return what a form states: the reading that its page showed, with all that was changed.

    Where ``touched`` names what was changed and not sent yet, marked answers are no consent: only
    those that were touched are taken, beside what is certain.
    """
    options = dict(view.shown if touched is None else view.certain)
    header = _find_header(view, sent)
    if header is not None:
        return {name: options[name] for name in _FORM if name in options} | {"skip_rows": header}
    for number, finding in enumerate(view.findings):
        name = f"answer:{number}"
        if touched is None or name in touched:
            options = _take_answer(options, finding, sent.get(name, ""))
    if options.get("sheet") != view.shown.get("sheet"):
        return {"sheet": options["sheet"]}
    options = _take_fields(options, view, sent)
    for number, (label, role) in enumerate(view.columns):
        marked = sent.get(f"role:{number}", role)
        if marked != role and marked in ROLES[view.is_long]:
            options = _give_role(options, label, marked, is_long=view.is_long)
    return _tidy(_take_rows(options, view, sent))


def _find_header(view: Look, sent: Mapping[str, str]) -> int | None:
    """Return how many rows are above the row that is marked to hold the names."""
    above = len(view.inspection.preview.above) if view.inspection else 0
    marked = " ".join(name for name, role in sent.items() if role == "names")
    if row := re.search(r"(?:^| )(\w+):(\d{1,6})(?: |$)", marked):
        return int(row[2]) if row[1] == "above" else above + int(row[2])
    return None


def _take_answer(options: PlainDict, finding: TableFinding, choice: str) -> PlainDict:
    chosen = read_index(choice, len(finding.answers))
    if chosen is None:
        if choice:
            raise refuse("This answer belongs to an earlier look at the file.")
        return options
    if finding.is_open and finding.field and chosen != finding.marked:
        options = _take_back(options, finding.proposed)
    roles = {"keep": ITEM, "ignore": LEFT_OUT, "group": GROUP}
    for name, value in finding.answers[chosen].options.items():
        if name in roles:
            for label in [value] if isinstance(value, str) else value:
                options = _give_role(options, label, roles[name])
        else:
            options = merge_options(options, {name: value})
    return options


def _take_back(options: PlainMapping, change: PlainMapping) -> PlainDict:
    """Return the options without what an answer had set."""
    changed = dict(options)
    for name, value in change.items():
        if isinstance(changed.get(name), list):
            changed[name] = [entry for entry in changed[name] if entry not in value]
        elif changed.get(name) == value:
            del changed[name]
    return {name: value for name, value in changed.items() if value != []}


def _take_fields(options: PlainDict, view: Look, sent: Mapping[str, str]) -> PlainDict:
    """Return the options with the fields that were changed."""
    before = write_fields(FIELDS, view.shown)
    changed = [
        part
        for part in FIELDS
        if part.name in sent and sent[part.name].split() != before[part.name].split()
    ]
    values = read_fields(changed, sent)
    chosen = {name.removeprefix("key:"): v for name, v in sent.items() if name.startswith("key:")}
    if chosen and "key" not in values:
        values["key"] = {label: chosen[label] for label in view.items if label in chosen}
    dropped = {part.name for part in changed}
    if values.keys() & set(_RIGHT):  # then an order of texts was proposed, and is not meant
        dropped |= set(_STEPS)
        values.pop("categories", None)
    elif "categories" in values:
        dropped |= set(_RIGHT)
    return {name: value for name, value in options.items() if name not in dropped} | values


def _give_role(options: PlainMapping, label: str, role: str, *, is_long: bool = False) -> PlainDict:
    """Take a column out of every list, and put it where it belongs."""
    changed = dict(options)
    for name in ("ignore", "group", "keep", "reverse"):
        changed[name] = [column for column in changed.get(name, ()) if column != label]
    for name in _NAMED.values():
        if changed.get(name) == label:
            del changed[name]
    if role == PERSON or (is_long and role in _NAMED):
        changed[_NAMED[role]] = label
    else:
        name = {GROUP: "group", LEFT_OUT: "ignore"}.get(role, "keep")
        changed[name] = [*changed[name], label]
    if role == REVERSED:
        changed["reverse"] = [*changed["reverse"], label]
    for name in ("ignore", "group", "keep"):
        if not changed[name]:
            del changed[name]
    if not changed["reverse"] and label not in options.get("reverse", ()):
        del changed["reverse"]
    return changed


def _take_rows(options: PlainDict, view: Look, sent: Mapping[str, str]) -> PlainDict:
    """Return the options with the rows that were marked: all of them are stated then."""
    preview = None if view.inspection is None else view.inspection.preview
    rows = zip(preview.numbers, preview.row_roles, preview.rows, strict=True) if preview else ()
    dropped: list[Any] = list(options.get("drop_rows", ()))
    for number, role, cells in rows:
        marked = sent.get(f"row:{number}", role)
        if marked == role or marked not in ROWS:
            continue
        if role == "key":
            options = {name: value for name, value in options.items() if name != "key_row"}
        dropped = [row for row in dropped if not _names_row(row, number, cells)]
        if marked == "key":
            options = {k: v for k, v in options.items() if k != "key"} | {"key_row": number}
        elif marked == "left out":
            dropped.append(number)
        options = {**options, "drop_rows": dropped}
    return options


def _names_row(row: int | str, number: int, cells: tuple[str, ...]) -> bool:
    """Say whether an entry of ``drop_rows`` stands for a row."""
    words = {cell.casefold() for cell in cells if cell}
    return row == number or str(row).casefold() in words or (row == "blank" and not words)


def _tidy(options: PlainMapping) -> PlainDict:
    """Leave out what says nothing. An empty list says that there are no such rows or items."""
    meaningful = ("drop_rows", "reverse")
    empty: tuple[Any, ...] = ([], {}, "", None)
    return {
        name: value for name, value in options.items() if name in meaningful or value not in empty
    }
