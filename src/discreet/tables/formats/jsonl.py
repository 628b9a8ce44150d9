"""Read JSON lines: long records, wide records, and the records of py-irt.

In: a file with one JSON object per line. Out: the rows of a long table, a batch at a time. The
first record shows which of the three it is: py-irt has
``{"subject_id": ..., "responses": {item: answer}}``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from discreet.errors import BadResponses
from discreet.names import are_numbers, name_id, restore_ids
from discreet.tables.columns import LongPlan, find_role_names, list_column_names, plan_columns
from discreet.tables.paths import explain_read_errors, limit_lines, open_bytes
from discreet.tables.reading import Reading
from discreet.tables.remedies import DeclaredSource
from discreet.tables.values import BAD, MISSING_WORDS, score_value

Record = dict[str, Any]
#: Answers handed over together.
_ROWS = 1 << 17


class JsonLinesSource(DeclaredSource):
    """A file of JSON lines as a long table; see :class:`discreet.tables.opener.Source`.

    Parameters
    ----------
    path
        The file, gzipped or not.
    reading
        What the user said; unlike columns, keys are looked up while records are read.
    progress
        Called with the bytes read so far.

    Attributes
    ----------
    plan
        The columns of the table, which are always the same whatever the records look like.
    """

    def __init__(
        self, path: Path, reading: Reading, progress: Callable[[int], None] | None = None
    ) -> None:
        self.path = path
        self.name = str(path)
        self._reading, self._progress = reading, progress
        first = next((record for _, record in read_records(path, None)), {})
        self._shape = _Shape(path, first, reading)
        person, item, answer = self._shape.keys
        self.names = [person or "person", item or "item", answer or "responses", *reading.facts]
        last = 3 + len(reading.group)
        order = tuple(range(last, len(self.names)))
        self.plan = LongPlan(0, 1, 2, tuple(range(3, last)), order)

    @property
    def has_several_answers(self) -> bool:
        """Whether a record holds all answers of a person, rather than one."""
        return self._shape.keys[1] is None

    def check_alone(self, files: int) -> None:
        """Refuse records without ids next to other files: their numbers would meet."""
        if files > 1 and self._shape.keys[0] is None:
            raise BadResponses(
                f"{self.path}: its records name no person, and there are {files} files, so that "
                "the first record of each would pass for one person. Give every record a person "
                "id, or put all records into one file."
            )

    def batches(self, columns: Sequence[int]) -> Iterator[list[Any]]:
        """Yield columns as text, ids that are numbers as such."""
        for batch in self._read(self._progress):
            arrays = [_make_column(cells) for cells in batch.columns()]
            yield [arrays[number] for number in columns]

    def place(self, row: int) -> str:
        """Return file and line of a row; the file is read again up to there."""
        before = 0
        for batch in self._read(None):
            if row < before + len(batch.lines):
                return f"{self.path}, line {batch.lines[row - before]}"
            before += len(batch.lines)
        return f"{self.path}, row {row + 1}"

    def _read(self, progress: Callable[[int], None] | None) -> Iterator[_Batch]:
        """Yield the same batch object again and again, with other rows."""
        batch = _Batch(self.path, self._shape, self._reading)
        for line, record in read_records(self.path, progress):
            batch.take(line, record)
            if len(batch.lines) >= _ROWS:
                yield batch
                batch.clear()
        if batch.lines:
            yield batch


def _make_column(cells: list[str | None]) -> Any:
    """Return texts, but numbers where every cell is the id of one."""
    if are_numbers(cells):
        return pa.array(restore_ids(cells), type=pa.int64())
    return pa.array(cells, type=pa.string())


def read_records(
    path: Path, progress: Callable[[int], None] | None
) -> Iterator[tuple[int, Record]]:
    """Yield the number of every line that is not blank, and its record."""
    done = 0
    with explain_read_errors(path), open_bytes(path) as stream:
        for line, text in enumerate(limit_lines(path, stream), start=1):
            done += len(text)
            if line % 8192 == 0 and progress is not None:
                progress(min(done, path.stat().st_size))
            text = text.removeprefix(b"\xef\xbb\xbf").strip()
            if text:
                yield line, _parse(path, line, text)


def _parse(path: Path, line: int, text: bytes) -> Record:
    try:
        record = json.loads(text, parse_float=_Spelled)
        if b"\\u" in text:
            json.dumps(record, ensure_ascii=False).encode()  # half a character cannot be
    except UnicodeError:
        raise BadResponses(
            f"{path}, line {line}: not UTF-8, as JSON must be, or half a character (\\ud800 to "
            "\\udfff without its other half). Correct the line or write the file again."
        ) from None
    except json.JSONDecodeError as error:
        raise BadResponses(
            f"{path}, line {line}: not valid JSON ({error.msg} at character {error.pos + 1}). "
            "Each line must be one JSON object; correct the line or write the file again."
        ) from None
    except (ValueError, RecursionError):
        raise BadResponses(
            f"{path}, line {line}: a number of thousands of digits, or brackets nested hundreds "
            "deep, which no answer needs. Correct the line or write the file again."
        ) from None
    if not isinstance(record, dict):
        raise BadResponses(
            f"{path}, line {line}: found {_kind(record)} where an object should be. Each line "
            'must be one JSON object, such as {"person": "p1", "item": "i1", "response": 1}.'
        )
    return record


class _Spelled(str):
    """A number with a point or an exponent as the file spells it: floats would round it."""

    __slots__ = ()
    __repr__ = str.__str__


def _kind(value: object) -> str:
    kinds = {list: "a list", dict: "an object", str: "text", bool: "a truth value"}
    kinds[type(None)] = "null"
    return kinds.get(type(value), "a number")


class _Shape:
    """Which of the three kinds the records are, and their keys: person, item, answer.

    Wide and py-irt records have no key for the item and none for the answer. The first record
    decides, and all others must decide alike.
    """

    def __init__(self, path: Path, first: Record, reading: Reading) -> None:
        self._path, self._first = path, first
        # Which items are ignored says nothing about the other keys.
        self._reading = replace(reading, listed=frozenset())
        self.nested = self._is_nested(first)
        self._has_role: dict[str, bool] = {}
        self._decided = self._find_roles(self._sign(first))
        self._known: set[tuple[str, ...]] = set()
        names = [name for name in first if not (self.nested and name == "responses")]
        self.keys = (
            self._plan_nested(names, first, self._reading, str(path))
            if self.nested
            else self._plan_flat(names, self._reading, str(path))
        )

    def _is_nested(self, record: Record) -> bool:
        return isinstance(record.get("responses"), dict) and self._reading.item is None

    def _sign(self, record: Record) -> tuple[str, ...]:
        """Return the keys of a record that could be those of person, item or answer."""
        has_role = self._has_role
        for name in record:
            if name not in has_role:
                has_role[name] = not name or any(self._find_roles([name]).values())
        return tuple(sorted(name for name in record if has_role[name]))

    def _find_roles(self, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
        roles = find_role_names(names, self._reading)
        is_wide = self.nested or self._reading.layout == "wide"
        return {"person": roles.get("person", ())} if is_wide else roles

    def check(self, line: int, record: Record) -> None:
        """Refuse a record that would be read in another way if it were the first."""
        sign, alike = self._sign(record), self._is_nested(record) == self.nested
        if alike and sign in self._known:
            return
        if not alike or "" in sign or self._find_roles(sign) != self._decided:
            raise BadResponses(
                f"{self._path}, line {line}: by its keys this record would be read in another way "
                f"than the first one. Its keys are {list_column_names(list(record))}, those of the "
                f"first {list_column_names(list(self._first))}. Correct the line, or state "
                "person=, item= and response= (--person, --item, --response)."
            )
        self._known.add(sign)

    @staticmethod
    def _plan_nested(
        names: list[str], first: Record, reading: Reading, location: str
    ) -> tuple[str | None, str | None, str | None]:
        # The names of the items are inside; a stand-in lets the person be found as usual.
        inside = replace(reading, layout="wide", response=None)
        plan = plan_columns([*names, "\0item"], inside, location)
        person = getattr(plan, "person", None)
        if person is None:
            raise BadResponses(
                f"{location}: the first record has 'responses' but no person; its keys are "
                f"{', '.join(repr(name) for name in first)}. Name the person's key with "
                "person=NAME (--person NAME)."
            )
        return names[person], None, None

    @staticmethod
    def _plan_flat(
        names: list[str], reading: Reading, location: str
    ) -> tuple[str | None, str | None, str | None]:
        plan = plan_columns(names, reading, location)
        if isinstance(plan, LongPlan):
            return names[plan.person], names[plan.item], names[plan.response]
        return None if plan.person is None else names[plan.person], None, None


class _Batch:
    """Answers of some records, as texts, until they are handed over.

    A record without an answer becomes a row with a missing one, so that its person counts. The
    row needs an item: the first of the file, for which it waits if need be.
    """

    def __init__(self, path: Path, shape: _Shape, reading: Reading) -> None:
        self._path, self._shape, self._reading = path, shape, reading
        self._known: dict[tuple[str, str | None], int] = {}
        self._records = 0
        self._first_item: str | None = None
        self._waiting: list[tuple[int, str | None, list[str | None]]] = []
        self.clear()

    def clear(self) -> None:
        """Forget the rows so far."""
        self.lines: list[int] = []
        self._persons: list[str | None] = []
        self._items: list[str | None] = []
        self._answers: list[str | None] = []
        self._groups: list[list[str | None]] = [[] for _ in self._reading.facts]

    def columns(self) -> list[list[str | None]]:
        """Return persons, items, answers, groups and what gives an order."""
        return [self._persons, self._items, self._answers, *self._groups]

    def take(self, line: int, record: Record) -> None:
        """Add the answers of one record."""
        person_key, item_key, answer_key = self._shape.keys
        person = str(self._records) if person_key is None else self._id(line, record, person_key)
        self._records += 1
        groups = [self._id(line, record, name) for name in self._reading.facts]
        if item_key is not None and answer_key is not None:
            for key in (item_key, answer_key):
                if key not in record:
                    raise BadResponses(
                        f"{self._path}, line {line}: the record has no '{key}', which the first "
                        "record has. Add it (null where there is no answer) or remove the line."
                    )
            pairs = [(self._id(line, record, item_key), answer_key, record[answer_key])]
        else:
            pairs = [(key, key, value) for key, value in self._find_answers(line, record)]
        self._shape.check(line, record)
        if not pairs:
            self._take_silent(line, person, groups)
        for item, key, value in pairs:
            self._check(line, item, key, value)
            self._append(line, person, item, _text(value), groups)

    def _id(self, line: int, record: Record, key: str) -> str | None:
        value = record.get(key)
        if isinstance(value, (list, dict)):
            raise BadResponses(
                f"{self._path}, line {line}: found {_kind(value)} as '{key}' where text or a "
                "number should be. Give every record one plain id, or correct the line."
            )
        if isinstance(value, _Spelled):
            return _whole(value)
        return name_id(value) if isinstance(value, int) else _text(value)

    def _take_silent(self, line: int, person: str | None, groups: list[str | None]) -> None:
        if person is None or person.strip().lower() in MISSING_WORDS:
            raise BadResponses(
                f"{self._path}, line {line}: the person id is missing. Fill it in, or remove the "
                "line."
            )
        if self._first_item is None:
            self._waiting.append((line, person, groups))
        else:
            self._append(line, person, self._first_item, None, groups)

    def _find_answers(self, line: int, record: Record) -> list[tuple[str, Any]]:
        if self._shape.nested:
            answers = record.get("responses")
            if not isinstance(answers, dict):
                raise BadResponses(
                    f"{self._path}, line {line}: 'responses' must be an object from items to "
                    f"answers, as in the first record; found {_kind(answers)}."
                )
            return [answer for answer in answers.items() if not self._reading.ignores(answer[0])]
        apart = {self._shape.keys[0], *self._reading.ignore, *self._reading.facts}
        ignores = self._reading.ignores
        return [
            (name, value)
            for name, value in record.items()
            if name not in apart and not ignores(name)
        ]

    def _check(self, line: int, item: str | None, key: str, value: Any) -> None:
        text = _text(value)
        item_and_word = (item or "" if self._reading.by_item else "", text)
        if text is None or item_and_word in self._known or self._reading.looking:
            return
        if self._reading.ignores(item or ""):
            return
        scoring = self._reading.scoring_of(item or "")
        self._known[item_and_word] = score_value(text, scoring)
        if self._known[item_and_word] == BAD:
            from discreet.tables.inspection.columns import Column
            from discreet.tables.inspection.refusals import RefusedCell, refuse_answer

            words = Column(0, key, [word for _, word in self._known])
            bad_cell = RefusedCell(
                f"{self._path}, line {line}", key, value, key, (words,),
                is_wide=self._shape.keys[1] is None, has_person=self._shape.keys[0] is not None,
                is_forgotten=bool(item and self._reading.right), is_counted=False,
            )  # fmt: skip
            raise refuse_answer(bad_cell, scoring)

    def _append(
        self, line: int, person: str | None, item: str | None, answer: str | None,
        groups: list[str | None],
    ) -> None:  # fmt: skip
        if self._first_item is None and item is not None:
            self._first_item = item
            for waiting in self._waiting:
                self._append(waiting[0], waiting[1], item, None, waiting[2])
        self.lines.append(line)
        self._persons.append(person)
        self._items.append(item)
        self._answers.append(answer)
        for column, value in zip(self._groups, groups, strict=True):
            column.append(value)


def _text(value: object) -> str | None:
    """Return a JSON value as the text that a CSV file would have."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (list, dict)):
        return _kind(value)
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _whole(number: str) -> str:
    """Return an id spelt with a point or an exponent: 7.0 is 7."""
    value = float(number)
    return name_id(int(value)) if value.is_integer() else str(value)
