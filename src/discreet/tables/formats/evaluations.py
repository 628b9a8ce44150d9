"""Logs of evaluations of language models as long tables: model, question, and every score.

In: a log of Inspect (``.eval`` or ``.json``) or a file of samples of the Language Model Evaluation
Harness (``samples_*.jsonl``). Out: the columns ``model``, ``question`` and ``task``, ``epoch``
(Inspect) or ``filter`` (Harness), and one column for every scorer or metric. The one that is taken
by default is called ``score``. What the programs themselves say of these files: an ``.eval`` file
is a zip of JSON whose summaries hold the scores; the harness names the folder after the model and
the file after the task.
"""

from __future__ import annotations

import json
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from discreet.errors import BadResponses
from discreet.names import spell_path
from discreet.tables.formats.jsonl import read_records
from discreet.tables.paths import explain_read_errors, open_bytes, settle_path
from discreet.tables.reading import Reading
from discreet.tables.remedies import DeclaredSource, make_remedy

KINDS = ("inspect", "harness")
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
_ROWS = 1 << 16


class Sample(NamedTuple):
    """One answer of one model."""

    location: str
    model: str
    question: str
    about: Mapping[str, str | None]
    scores: Mapping[str, Any]


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

    def __init__(
        self, path: Path, kind: str, reading: Reading, progress: Callable[[int], None] | None = None
    ) -> None:
        self.path, self.name = path, str(path)
        self._read = _read_inspect if kind == "inspect" else _read_harness
        self._progress = progress
        first = next(self._read(path, None), None)
        self.is_empty = first is None
        self._about = [] if first is None else list(first.about)
        self._scores = [] if first is None else list(first.scores)
        task = "" if first is None else str(first.about["task"])
        chosen = _choose_score(self._scores, task, reading.response)
        if first is not None and chosen is None and reading.response not in self._scores:
            raise _refuse_scores(path, task, self._scores, reading.response)
        self._filter = reading.filter if reading.filter in self.list_filters() else None
        score_names = ["score" if name == chosen else name for name in self._scores]
        self.names = ["model", "question", *self._about, *score_names]

    def list_filters(self) -> list[str]:
        """Return the filters of a log of the harness, in order."""
        if "filter" not in self._about:
            return []
        return list(dict.fromkeys(str(s.about["filter"]) for s in self._read(self.path, None)))

    def batches(self, columns: Sequence[int]) -> Iterator[list[Any]]:
        """Yield columns as text."""
        rows: list[list[str | None]] = []
        for sample in self._read(self.path, self._progress):
            if self._filter is not None and sample.about["filter"] != self._filter:
                continue
            about = [sample.about.get(name) for name in self._about]
            scores = [_text(sample.scores.get(name)) for name in self._scores]
            rows.append([sample.model, sample.question, *about, *scores])
            if len(rows) == _ROWS:
                yield _turn(rows, columns)
                rows = []
        if rows:
            yield _turn(rows, columns)

    def place(self, row: int) -> str:
        """Return the file and what it calls the sample."""
        kept = (
            sample
            for sample in self._read(self.path, None)
            if self._filter in (None, sample.about.get("filter"))
        )
        for number, sample in enumerate(kept):
            if number == row:
                return f"{self.path}, {sample.location}"
        return f"{self.path}, row {row + 1}"


def name_score(reading: Reading, names: Sequence[str]) -> Reading:
    """Return a reading of the column ``score``, where one score for each task was named."""
    is_by_task = reading.response is not None and ":" in reading.response
    is_column = reading.response in names
    return replace(reading, response=None) if is_by_task and not is_column else reading


def _turn(rows: list[list[str | None]], columns: Sequence[int]) -> list[Any]:
    return [pa.array([row[number] for row in rows], type=pa.string()) for number in columns]


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


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return _LETTERS.get(value, value) if value is not None else None
    return json.dumps(value) if isinstance(value, bool | list | dict) else str(value)


# -- Language Model Evaluation Harness ------------------------------------------------------


def _read_harness(path: Path, progress: Callable[[int], None] | None) -> Iterator[Sample]:
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


def _read_inspect(path: Path, progress: Callable[[int], None] | None) -> Iterator[Sample]:
    try:
        with explain_read_errors(path):
            header, samples = _read_zip(path) if zipfile.is_zipfile(path) else _read_json(path)
        model, task = str(header["model"]), str(header["task"])
        parsed = [_make_sample(model, task, sample) for sample in samples]
    except (KeyError, TypeError, AttributeError, ValueError, zipfile.BadZipFile) as error:
        raise BadResponses(
            f"{path} is a damaged log of Inspect, or of a version that is not known here "
            f"({type(error).__name__}: {error}). Convert it with `inspect log convert --to json`, "
            "or write the answers as a table."
        ) from None
    names = list(dict.fromkeys(name for entry in parsed for name in entry.scores))
    if progress is not None:
        progress(path.stat().st_size)
    for entry in parsed:
        # The first sample must name every score: its own may be missing.
        yield entry._replace(scores={name: entry.scores.get(name) for name in names})


def _make_sample(model: str, task: str, sample: dict[str, Any]) -> Sample:
    name, epoch = str(sample["id"]), str(sample.get("epoch", 1))
    scores: dict[str, Any] = {}
    for scorer, score in (sample.get("scores") or {}).items():
        value = score["value"]
        parts = value if isinstance(value, dict) else {None: value}
        for part, part_score in parts.items():
            scores[scorer if part is None else f"{scorer}/{part}"] = part_score
    about = {"task": task, "epoch": epoch}
    return Sample(f"sample '{name}' of epoch {epoch}", model, f"{task}/{name}", about, scores)


def _read_json(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    with open_bytes(path) as stream:
        log = json.load(stream)
    return log["eval"], log.get("samples") or []


def _read_zip(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
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
