"""Read JSON lines: long records, wide records, and the records of py-irt.

In: a file with one JSON object per line. Out: rows for a long table. The first record shows
which of the three it is: py-irt has ``{"subject_id": ..., "responses": {item: answer}}``.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from discreet.errors import BadResponses
from discreet.responses.columns import LongPlan, Reading, plan_columns
from discreet.responses.ids import encode_ids
from discreet.responses.long import LongTable
from discreet.responses.opening import explain_read_errors, open_bytes
from discreet.responses.values import BAD, MISSING_WORDS, explain_bad_answer, score_value

__all__ = ["add_json_lines"]

Record = dict[str, Any]
_ROWS = 1 << 17
"""Answers handed over together."""


def add_json_lines(
    path: Path, table: LongTable, reading: Reading, progress: Callable[[int], None] | None
) -> None:
    """Take all records of a file into a long table."""
    source = _JsonSource(path)
    table.begin(source)
    batch: _Batch | None = None
    for line, record in _records(path, progress):
        if batch is None:
            batch = _Batch(path, record, reading, source)
        batch.take(line, record)
        if len(batch.answers) >= _ROWS:
            batch.hand_over(table)
    if batch is not None:
        batch.hand_over(table)


class _JsonSource:
    """Remembers the line of each answer; everything else is read as it comes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path)
        self.names: list[str] = []
        self.lines = array("i")

    def batches(self, columns: Sequence[int]) -> Iterator[list[Any]]:
        raise NotImplementedError("JSON lines are handed over by add_json_lines.")

    def place(self, row: int) -> str:
        return f"{self.path}, line {self.lines[row]}"


def _records(path: Path, progress: Callable[[int], None] | None) -> Iterator[tuple[int, Record]]:
    done = 0
    with explain_read_errors(path), open_bytes(path) as stream:
        for line, text in enumerate(stream, start=1):
            done += len(text)
            if line % 8192 == 0 and progress is not None:
                progress(min(done, path.stat().st_size))
            text = text.removeprefix(b"\xef\xbb\xbf").strip()
            if text:
                yield line, _parse(path, line, text)


def _parse(path: Path, line: int, text: bytes) -> Record:
    try:
        record = json.loads(text)
    except UnicodeDecodeError:
        raise BadResponses(f"{path}, line {line}: not UTF-8, as JSON must be.") from None
    except json.JSONDecodeError as error:
        raise BadResponses(
            f"{path}, line {line}: not valid JSON ({error.msg} at character {error.pos + 1}). "
            "Each line must be one JSON object; correct the line or write the file again."
        ) from None
    if not isinstance(record, dict):
        raise BadResponses(
            f"{path}, line {line}: found {_kind(record)} where an object should be. Each line "
            'must be one JSON object, such as {"person": "p1", "item": "i1", "response": 1}.'
        )
    return record


def _kind(value: object) -> str:
    kinds = {list: "a list", str: "text", bool: "a truth value", type(None): "null"}
    return kinds.get(type(value), "a number")


class _Batch:
    """Answers of some records, as texts, until they are handed over."""

    def __init__(self, path: Path, first: Record, reading: Reading, source: _JsonSource) -> None:
        self._path, self._reading, self._source = path, reading, source
        self._nested = isinstance(first.get("responses"), dict) and reading.item is None
        self._keys = self._plan(first)
        self._known: dict[str, int] = {}
        self._records = 0
        self._clear()

    def _clear(self) -> None:
        self.persons: list[str | None] = []
        self.items: list[str | None] = []
        self.answers: list[str | None] = []
        self.groups: list[list[str | None]] = [[] for _ in self._reading.group]
        self._silent: list[str] = []

    def _plan(self, first: Record) -> tuple[str | None, str | None, str | None]:
        """Return the keys of person, item and answer; wide records have no item key."""
        names = [name for name in first if not (self._nested and name == "responses")]
        where = str(self._path)
        if self._nested:
            # The names of the items are inside; a stand-in lets the person be found as usual.
            reading = replace(self._reading, layout="wide", response=None)
            plan = plan_columns([*names, "\0item"], reading, where)
            person = getattr(plan, "person", None)
            if person is None:
                raise BadResponses(
                    f"{where}: the first record has 'responses' but no person; its keys are "
                    f"{', '.join(repr(name) for name in first)}. Name the person's key with "
                    "person=NAME (--person NAME)."
                )
            return names[person], None, None
        plan = plan_columns(names, self._reading, where)
        if isinstance(plan, LongPlan):
            return names[plan.person], names[plan.item], names[plan.response]
        return None if plan.person is None else names[plan.person], None, None

    def take(self, line: int, record: Record) -> None:
        """Add the answers of one record."""
        person_key, item_key, answer_key = self._keys
        person = str(self._records) if person_key is None else _text(record.get(person_key))
        self._records += 1
        if item_key is not None and answer_key is not None:
            for key in (item_key, answer_key):
                if key not in record:
                    raise BadResponses(
                        f"{self._path}, line {line}: the record has no '{key}', which the first "
                        "record has. Add it (null where there is no answer) or remove the line."
                    )
            pairs = [(_text(record[item_key]), answer_key, record[answer_key])]
        else:
            pairs = [(key, key, value) for key, value in self._answers(line, record)]
        if not pairs:
            self._note_silent(line, person)
        for item, key, value in pairs:
            self._add(line, person, item, key, value)
        for column, name in zip(self.groups, self._reading.group, strict=True):
            column.extend([_text(record.get(name))] * len(pairs))

    def _note_silent(self, line: int, person: str | None) -> None:
        if person is None or person.strip().lower() in MISSING_WORDS:
            raise BadResponses(
                f"{self._path}, line {line}: the person id is missing. Fill it in, or remove the "
                "line."
            )
        self._silent.append(person)

    def _answers(self, line: int, record: Record) -> list[tuple[str, Any]]:
        if self._nested:
            answers = record.get("responses")
            if not isinstance(answers, dict):
                raise BadResponses(
                    f"{self._path}, line {line}: 'responses' must be an object from items to "
                    f"answers, as in the first record; found {_kind(answers)}."
                )
            return list(answers.items())
        apart = {self._keys[0], *self._reading.ignore, *self._reading.group}
        return [(name, value) for name, value in record.items() if name not in apart]

    def _add(self, line: int, person: str | None, item: str | None, key: str, value: Any) -> None:
        text = _text(value)
        if text is not None and text not in self._known:
            self._known[text] = score_value(text, self._reading.at_least)
            if self._known[text] == BAD:
                where = f"{self._path}, line {line}"
                wide = self._keys[1] is None
                raise BadResponses(
                    explain_bad_answer(where, key, value, self._reading.at_least, wide=wide)
                )
        self.persons.append(person)
        self.items.append(item)
        self.answers.append(text)
        self._source.lines.append(line)

    def hand_over(self, table: LongTable) -> None:
        """Give the answers so far to the table."""
        person, item, answer = self._keys
        columns = [self.persons, self.items, self.answers, *self.groups]
        names = [person or "person", item or "item", answer or "responses", *self._reading.group]
        table.add([pa.array(column, type=pa.string()) for column in columns], names)
        if self._silent:
            ids = encode_ids(pa.array(self._silent, type=pa.string()))
            table.add_persons_without_answers(ids)
        self._clear()


def _text(value: object) -> str | None:
    """Return a JSON value as the text that a CSV file would have; 7.0 is 7."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if not isinstance(value, (bool, list, dict)) else json.dumps(value)
