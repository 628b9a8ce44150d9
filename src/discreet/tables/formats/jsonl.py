"""JSON: lines of answers, and logs of evaluations of language models.

In: a file with one JSON object per line, whose first record shows what it is: long records, wide
records, or those of py-irt, ``{"subject_id": ..., "responses": {item: answer}}``. Or a log of
Inspect (``.eval`` or ``.json``) or a file of samples of the Language Model Evaluation Harness
(``samples_*.jsonl``). Out: a long table, a batch of rows at a time. Of logs it has the columns
``model``, ``question`` and ``task``, ``epoch`` (Inspect) or ``filter`` (Harness), and one for every
scorer or metric; the one that is taken by default is called ``score``. An ``.eval`` file is a zip
of JSON whose summaries hold the scores; the harness names the folder after the model and the file
after the task.
"""

from __future__ import annotations

import json
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from discreet.choices import PlainDict, PlainMapping
from discreet.coding.reading import Reading
from discreet.coding.remedies import Detected, make_remedy
from discreet.coding.values import spell
from discreet.errors import BadResponses, Remedy
from discreet.names import are_numbers, name_id, restore_ids, spell_path
from discreet.tables.columns import LongPlan, find_role_names, list_column_names, plan_columns
from discreet.tables.findings import DeclaredSource
from discreet.tables.paths import explain_read_errors, limit_lines, open_bytes, settle_path

Record = PlainDict
Progress = Callable[[int], None] | None
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

    def __init__(self, path: Path, reading: Reading, progress: Progress = None) -> None:
        self.path = path
        self.name = str(path)
        self._reading, self._progress = reading, progress
        first = next((record for _, record in read_records(path, None)), {})
        self._shape = _Shape(path, first, reading)
        person, item, answer = self._shape.keys
        self.names = [person or "person", item or "item", answer or "", *reading.facts]
        last = 3 + len(reading.group)
        order = tuple(range(last, len(self.names)))
        self.plan = LongPlan(0, 1, 2, tuple(range(3, last)), order)

    @property
    def has_several_answers(self) -> bool:
        """Whether a record holds all answers of a person, rather than one."""
        return self._shape.keys[1] is None

    def check_alone(self, files: int) -> None:
        """Refuse records without ids beside other files: their row numbers would collide."""
        if files > 1 and self._shape.keys[0] is None:
            raise BadResponses(
                f"{self.path}: its records name no person, and there are {files} files, so that "
                "the first record of each would pass for one person. Give every record a person "
                "id, or put all records into one file."
            )

    def batches(self, columns: Sequence[int]) -> Iterator[list[pa.Array]]:
        """Yield columns as text, ids that are numbers as such."""
        for batch in self._read(self._progress):
            cells = list(zip(*batch.rows, strict=True))[1:]
            yield [
                pa.array(restore_ids(list(cells[number])), type=pa.int64())
                if are_numbers(cells[number])
                else pa.array(cells[number], type=pa.string())
                for number in columns
            ]

    def place(self, row: int) -> str:
        """Return file and line of a row; the file is read again up to there."""
        before = 0
        for batch in self._read(None):
            if row < before + len(batch.rows):
                return f"{self.path}, line {batch.rows[row - before][0]}"
            before += len(batch.rows)
        return f"{self.path}, row {row + 1}"

    def _read(self, progress: Progress) -> Iterator[_Batch]:
        """Yield the same batch object again and again, with other rows."""
        batch = _Batch(self.path, self._shape, self._reading)
        for line, record in read_records(self.path, progress):
            batch.take(line, record)
            if len(batch.rows) >= _ROWS:
                yield batch
                batch.rows = []
        if batch.rows:
            yield batch


def read_records(path: Path, progress: Progress) -> Iterator[tuple[int, Record]]:
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
        self.keys = self._plan(names)

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

    def _plan(self, names: list[str]) -> tuple[str | None, str | None, str | None]:
        # The names of nested items are inside; a stand-in lets the person be found as usual.
        inside = replace(self._reading, layout="wide", response=None)
        reading = inside if self.nested else self._reading
        plan = plan_columns(
            [*names, "\0item"][: len(names) + self.nested], reading, str(self._path)
        )
        if isinstance(plan, LongPlan):
            return names[plan.person], names[plan.item], names[plan.response]
        if self.nested and plan.person is None:
            raise BadResponses(
                f"{self._path}: the first record has 'responses' but no person; its keys are "
                f"{', '.join(map(repr, self._first))}. Name the person's key with person=NAME "
                "(--person NAME)."
            )
        return None if plan.person is None else names[plan.person], None, None


class _Batch:
    """Answers of some records, as texts, until they are handed over.

    A record without an answer becomes a row with a missing one, so that its person counts. The
    row needs an item: the first of the file.
    """

    def __init__(self, path: Path, shape: _Shape, reading: Reading) -> None:
        self._path, self._shape, self._reading = path, shape, reading
        self._records = 0
        self.rows: list[tuple[Any, ...]] = []
        """Line, person, item, answer, groups and what gives an order."""

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
            pairs = [(self._id(line, record, item_key), record[answer_key])]
        else:
            pairs = self._find_answers(line, record)
        self._shape.check(line, record)
        for item, value in pairs or self._stand_in:
            self.rows.append((line, person, item, _text(value), *groups))

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

    @cached_property
    def _stand_in(self) -> list[tuple[str | None, Any]]:
        """The first item of the file, without an answer."""
        listed = (self._find_answers(*one)[:1] for one in read_records(self._path, None))
        return [(item, None) for pairs in islice(filter(None, listed), 1) for item, _ in pairs]

    def _find_answers(self, line: int, record: Record) -> list[tuple[str | None, Any]]:
        answers, apart = record, {self._shape.keys[0], *self._reading.ignore, *self._reading.facts}
        if self._shape.nested:
            answers, apart = record.get("responses"), set()  # type: ignore[assignment]
            if not isinstance(answers, dict):
                raise BadResponses(
                    f"{self._path}, line {line}: 'responses' must be an object from items to "
                    f"answers, as in the first record; found {_kind(answers)}."
                )
        return [
            (item, answer)
            for item, answer in answers.items()
            if item not in apart and not self._reading.ignores(item)
        ]


def _text(value: object) -> str | None:
    """Return a JSON value as the text that a CSV file would have."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (list, dict)):
        return _kind(value)
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _whole(number: str) -> str:
    """Return an id spelt with a point or an exponent: 7.0 is 7."""
    text = spell(number)
    return name_id(int(text)) if text.removeprefix("-").isdecimal() else text


# -- logs of evaluations ---------------------------------------------------------------------

LOGS = ("inspect", "harness")
#: Metrics of the harness that are taken, the first one there is; others must be named.
_DEFAULTS = ("acc", "exact_match")
#: Inspect's words for correct, incorrect, no answer and partly correct, and their worth.
_LETTERS = {"C": "1", "I": "0", "N": "0", "P": "0.5"}
_NOT_METRICS = frozenset({
    "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics",
    "doc_hash", "prompt_hash", "target_hash",
})  # fmt: skip
_STAMPED = re.compile(r"samples_(?P<task>.+?)(_\d{4}-\d\d-\d\dT[\d.:-]+)?\.jsonl(\.gz)?")
#: A zip entry packed by Zstandard, which Python's own reader knows from 3.14 on only.
_ZSTD = 93


class Sample(NamedTuple):
    """One answer of one model."""

    location: str
    model: str
    question: str
    about: Mapping[str, str | None]
    scores: PlainMapping


class EvaluationSource(DeclaredSource):
    """A log of an evaluation; see :class:`discreet.tables.opener.Source`.

    Parameters
    ----------
    path
        The log.
    kind
        ``"inspect"`` or ``"harness"``.
    reading
        What the user said; a score that is named keeps its name.
    progress
        Called with the bytes read so far.
    """

    def __init__(self, path: Path, kind: str, reading: Reading, progress: Progress = None) -> None:
        self.path, self.name = path, str(path)
        self._read = _read_inspect if kind == "inspect" else _read_harness
        self._progress = progress
        first = next(self._read(path, None), None)
        self.is_empty = first is None
        self.is_left_out = first is not None and first.about["task"] in reading.ignore
        self._about = [] if first is None else list(first.about)
        self._scores = [] if first is None else list(first.scores)
        task = "" if first is None else str(first.about["task"])
        chosen = _choose_score(self._scores, task, reading.response)
        is_named = chosen is not None or reading.response in self._scores
        if first is not None and not is_named and not self.is_left_out:
            raise _refuse_scores(path, task, self._scores, reading.response)
        self._filter = reading.filter if reading.filter in self.list_filters() else None
        self._has_models = reading.person in (None, "model")
        # Models whose logs have no samples that count: persons without answers.
        silent = _load_inspect(path)[0] if first is None else first.model
        is_silent = self._has_models and (self.is_empty or self.is_left_out)
        self.silent = [silent] if is_silent else []
        score_names = ["score" if name == chosen else name for name in self._scores]
        self.names = ["model", "question", *self._about, *score_names]

    def detect(self, columns: Sequence[int], *, has_ids: bool) -> tuple[Detected, ...]:
        """Return whether samples of several persons decided which score and filter count.

        The log is one model's: where the model is the person, nobody else's samples are in it.
        """
        if self._has_models:
            return super().detect(columns, has_ids=has_ids)
        sentence = f"{self.name}: its first sample decides which score counts."
        remedy = Remedy("let every model be a person, or give the release a table of scores")
        return (Detected("person", sentence, remedy),)

    def list_filters(self) -> list[str]:
        """Return the filters of a log of the harness, in order."""
        if "filter" not in self._about:
            return []
        return list(dict.fromkeys(str(s.about["filter"]) for s in self._read(self.path, None)))

    def batches(self, columns: Sequence[int]) -> Iterator[list[pa.Array]]:
        """Yield columns as text."""
        rows = map(self._list_cells, self._keep(self._progress))
        while part := list(islice(rows, _ROWS)):
            yield [pa.array([row[number] for row in part], type=pa.string()) for number in columns]

    def _keep(self, progress: Progress) -> Iterator[Sample]:
        """Yield the samples of the filter that counts; none of a task that is left out."""
        samples = iter(()) if self.is_left_out else self._read(self.path, progress)
        return (one for one in samples if self._filter in (None, one.about.get("filter")))

    def _list_cells(self, sample: Sample) -> list[str | None]:
        about = [sample.about.get(name) for name in self._about]
        scores = [_spell_score(sample.scores.get(name)) for name in self._scores]
        return [sample.model, sample.question, *about, *scores]

    def place(self, row: int) -> str:
        """Return the file and what it calls the sample."""
        sample = next(islice(self._keep(None), row, None), None)
        return f"{self.path}, {f'row {row + 1}' if sample is None else sample.location}"


def name_score(reading: Reading, names: Sequence[str]) -> Reading:
    """Return a reading of the column ``score``, where one score for each task was named.

    Tasks that are left out are no columns.
    """
    reading = replace(reading, ignore=tuple(name for name in reading.ignore if name in names))
    is_by_task = reading.response is not None and ":" in reading.response
    is_column = reading.response in names
    return replace(reading, response=None) if is_by_task and not is_column else reading


def _choose_score(names: Sequence[str], task: str, stated: str | None) -> str | None:
    """Return the score that is taken and called so; None where it keeps its name.

    ``stated`` names a score, or one for each task: "gsm8k:exact_match,arc:acc".
    """
    if stated is not None and stated in names:
        return None
    pairs = dict(part.rpartition(":")[::2] for part in (stated or "").split(",") if ":" in part)
    if stated is not None and not pairs:
        return None
    if task in pairs:
        return pairs[task] if pairs[task] in names else None
    if len(names) == 1:
        return names[0]
    return next((name for name in _DEFAULTS if name in names), None)


def _refuse_scores(path: Path, task: str, names: Sequence[str], stated: str | None) -> BadResponses:
    listed = ", ".join(f"'{name}'" for name in names) or "none"
    asked = f", and '{stated}' is none of them" if stated else ""
    example = names[0] if names else "acc"
    return BadResponses(
        f"{path} has these scores of the task '{task}': {listed}{asked}. Say which one counts with "
        f"response='{example}' (--response {example}), for single tasks with "
        f"response={{'{task}': '{example}'}} (--response {task}:{example})."
    ).offering(*(make_remedy(f"'{name}' counts:", {"response": name}) for name in names))


def _spell_score(value: object) -> str | None:
    if isinstance(value, str):
        return _LETTERS.get(value, value)
    return json.dumps(value) if isinstance(value, list | dict) else _text(value)


# -- Language Model Evaluation Harness ------------------------------------------------------


def _read_harness(path: Path, progress: Progress) -> Iterator[Sample]:
    stamp = _STAMPED.fullmatch(path.name)
    task = spell_path(path.stem) if stamp is None else stamp["task"]
    model = spell_path(settle_path(path).parent.name)
    for line, record in read_records(path, progress):
        if "doc_id" not in record:
            raise BadResponses(
                f"{path}, line {line}: the sample has no 'doc_id', so nothing says which question "
                "it answers. Remove the line, or write the log again."
            )
        names = record.get("metrics") or [name for name in record if name not in _NOT_METRICS]
        scores = {name: record.get(name) for name in names}
        about = {"task": task, "filter": record.get("filter")}
        yield Sample(f"line {line}", model, f"{task}/{record['doc_id']}", about, scores)


# -- Inspect --------------------------------------------------------------------------------


def _load_inspect(path: Path) -> tuple[str, list[Sample]]:
    """Return the model of a log, and its samples."""
    try:
        with explain_read_errors(path):
            if zipfile.is_zipfile(path):
                header, samples = _read_zip(path)
            else:
                with open_bytes(path) as stream:
                    log = json.load(stream)
                header, samples = log["eval"], log.get("samples") or []
        model, task = str(header["model"]), str(header["task"])
        return model, [_make_sample(model, task, sample) for sample in samples]
    except (KeyError, TypeError, AttributeError, ValueError, zipfile.BadZipFile) as error:
        raise BadResponses(
            f"{path} is a damaged log of Inspect, or of a version that is not known here "
            f"({type(error).__name__}: {error}). Convert it with `inspect log convert --to json`, "
            "or write the answers as a table."
        ) from None


def _read_inspect(path: Path, progress: Progress) -> Iterator[Sample]:
    _, parsed = _load_inspect(path)
    names = list(dict.fromkeys(name for entry in parsed for name in entry.scores))
    if progress is not None:
        progress(path.stat().st_size)
    for entry in parsed:
        # The first sample must name every score: its own may be missing.
        yield entry._replace(scores={name: entry.scores.get(name) for name in names})


def _make_sample(model: str, task: str, sample: PlainDict) -> Sample:
    name, epoch = str(sample["id"]), str(sample.get("epoch", 1))
    scores: PlainDict = {}
    for scorer, score in (sample.get("scores") or {}).items():
        value = score["value"]
        parts = value if isinstance(value, dict) else {None: value}
        for part, part_score in parts.items():
            scores[scorer if part is None else f"{scorer}/{part}"] = part_score
    about = {"task": task, "epoch": epoch}
    return Sample(f"sample '{name}' of epoch {epoch}", model, f"{task}/{name}", about, scores)


def _read_zip(path: Path) -> tuple[PlainDict, list[PlainDict]]:
    with zipfile.ZipFile(path) as file:
        names = set(file.namelist())

        def load(name: str) -> Any:
            return json.loads(_unpack(path, file, file.getinfo(name)))

        heads = [name for name in ("header.json", "_journal/start.json") if name in names]
        header = load(heads[0] if heads else "start.json")
        if "summaries.json" in names:
            return header["eval"], load("summaries.json")
        # An evaluation that did not end has no summaries of everything.
        parts = [name for name in file.namelist() if re.fullmatch(r"samples/.*\.json", name)]
        return header["eval"], [load(name) for name in parts]


def _unpack(path: Path, file: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    if entry.compress_type != _ZSTD:
        return file.read(entry)
    with path.open("rb") as stream:
        stream.seek(entry.header_offset)
        # Two lengths at the end of the local header: of the name and of what follows it.
        lengths = struct.unpack("<26xHH", stream.read(30))
        stream.seek(sum(lengths), 1)
        packed = stream.read(entry.compress_size)
    try:
        plain = pa.CompressedInputStream(pa.BufferReader(packed), "zstd").read()
    except OSError as error:
        raise zipfile.BadZipFile(str(error)) from None
    if zlib.crc32(plain) != entry.CRC:
        raise zipfile.BadZipFile(f"the checksum of {entry.filename} does not match")
    return bytes(plain)
