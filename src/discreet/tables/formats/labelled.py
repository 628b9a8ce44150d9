"""Files of statistical programs: SPSS (.sav, .zsav), Stata (.dta), SAS (.xpt, .sas7bdat), Winsteps.

In: a path. Out: a source, read some rows at a time. Codes that the file declares missing are
missing, and how many there were is said. Where the labels of a column name one value right and
one wrong, the labels decide, whatever the codes are. Of Winsteps the control file is read
(``NI=``, ``ITEM1=``, ``CODES=``, item names up to ``END NAMES``), with its data below or in the
file that ``DATA=`` names: codes that ``CODES=`` does not list are missing, and with ``KEY1=`` the
others are right (1) or wrong (0).
"""

from __future__ import annotations

import io
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from discreet.choices import PlainMapping
from discreet.coding.reading import Reading
from discreet.coding.remedies import Detected
from discreet.coding.values import BAD, MISSING, ValueScoring, score_value, spell, write_cell
from discreet.errors import BadResponses, DiscreetWarning, MissingExtra, Remedy
from discreet.tables.cells import clean_cell, make_column
from discreet.tables.findings import detect_encoding, miscount
from discreet.tables.paths import explain_read_errors, find_packing, open_bytes, read_encoded
from discreet.tables.vocabulary import NO_ANSWER, RIGHT, WRONG
from discreet.text import name_some

#: Kinds of files, what messages call them, and what reads them.
PROGRAMS = {
    "spss": ("SPSS", "read_sav"),
    "stata": ("Stata", "read_dta"),
    "xport": ("SAS transport", "read_xport"),
    "sas7bdat": ("SAS", "read_sas7bdat"),
}

#: Cells of a file, by its own word: more than any table of answers has.
MOST_CELLS = 1 << 33
#: Cells read together: some 60 MB as Python numbers.
_CELLS = 1 << 21
_SHOWN = 6


@dataclass(frozen=True)
class Labels:
    """What a file says about the values of one column.

    Attributes
    ----------
    words
        From values to their labels.
    missing
        Says of a value whether the file declares it missing.
    is_plain
        Whether no number is declared missing.
    """

    words: Mapping[Any, str]
    missing: Callable[[Any], bool]
    is_plain: bool

    def find_scores(self) -> dict[Any, int] | None:
        """Return the values that mean right (1) and wrong (0); None where labels do not say.

        Labels of missing answers may stand beside them, but no third kind of answer.
        """
        words = {value: word.strip().lower() for value, word in self.words.items()}
        right = [value for value, word in words.items() if word in RIGHT]
        wrong = [value for value, word in words.items() if word in WRONG]
        others = [
            value
            for value, word in words.items()
            if value not in (*right, *wrong) and word not in NO_ANSWER and not self.missing(value)
        ]
        if len(right) != 1 or len(wrong) != 1 or others:
            return None
        return {right[0]: 1, wrong[0]: 0}


class LabelledSource:
    """A file of a statistical program; see :class:`discreet.tables.source.Source`.

    Parameters
    ----------
    path
        The file, gzipped or not.
    kind
        One of `PROGRAMS`.
    reading
        What the user said: labels of right and wrong are left alone where codes are explained
        otherwise, a column with a key holds what was chosen, by its label if the key names labels,
        and groups are called by their labels. None leaves all codes as they are.
    progress
        Called with the bytes of the file, as far as it is read.
    """

    def __init__(
        self,
        path: Path,
        kind: str,
        reading: Reading | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.path, self.name, self._kind, self._progress = path, str(path), kind, progress
        _, about = self._read(metadataonly=True)
        self._raw = list(about.column_names)
        self.names = [name.strip() for name in self._raw]
        self.n_rows = int(about.number_rows or 0)
        if self.n_rows * len(self.names) > MOST_CELLS:
            raise BadResponses(
                f"{self.path} says that it holds {self.n_rows:,} rows of {len(self.names):,} "
                "columns, which no table of answers needs. The file may be damaged."
            )
        self._ranges, words = about.missing_ranges or {}, about.variable_value_labels or {}
        is_text = {name: about.readstat_variable_types[name] == "string" for name in self._raw}
        self._reading = reading
        # A release reads cells, and what it must state it does not take from the file.
        self._is_believed = reading is None or not reading.listed
        ranges = self._ranges if self._is_believed else {}
        self._labels = {
            name: Labels(
                words.get(name, {}),
                _make_missing(ranges.get(name, ()), is_text[name]),
                name not in ranges,
            )
            for name in self._raw
        }

    @property
    def value_labels(self) -> dict[str, dict[str, str]]:
        """The labels of values, by column."""
        return {
            name.strip(): {spell(write_cell(value)): word for value, word in labels.words.items()}
            for name, labels in self._labels.items()
            if labels.words
        }

    def batches(self, columns: Sequence[int]) -> Iterator[list[pa.Array]]:
        """Yield columns of numbers, or of text; declare at the end what was read as missing."""
        names = [self._raw[number] for number in columns]
        readers = {name: _Column(name, self._labels[name], self._mapping(name)) for name in names}
        step = max(1, _CELLS // max(len(names), 1))
        done, size = 0, self.path.stat().st_size
        while True:
            cells, _ = self._read(usecols=names, row_limit=step, row_offset=done)
            count = len(next(iter(cells.values()), ()))
            if count:
                yield [make_column(readers[name].take(cells[name])) for name in names]
            done += count
            if self._progress is not None:
                self._progress(min(size, size * done // max(self.n_rows, done, 1)))
            if count < step:
                break
        self._tell(list(readers.values()))

    def place(self, row: int) -> str:
        """Return file and row, counted from 1 as the program counts cases."""
        return f"{self.path}, row {row + 1}"

    def _mapping(self, name: str) -> dict[Any, Any]:
        """Return what the values of a column become, those that are not to stay as they are."""
        labels, reading = self._labels[name], self._reading
        if not labels.words or reading is None:
            return {}
        if name.strip() in reading.group:
            return dict(labels.words)
        return self._translate(name, reading) if self._is_believed else {}

    def _translate(self, name: str, reading: Reading) -> dict[Any, Any]:
        """Return what labels say about the answers of a column."""
        labels, right = self._labels[name], reading.scoring_of(name.strip()).right
        if right is not None:
            words = {word.strip().lower() for word in labels.words.values()}
            return {} if words.isdisjoint(right) else dict(labels.words)
        as_coded = reading.at_least is not None or reading.one_means == "wrong"
        return {} if as_coded else labels.find_scores() or {}

    def detect(self, columns: Sequence[int], *, has_ids: bool) -> tuple[Detected, ...]:
        """Return which of these columns are read by what the file says about their values."""
        del has_ids
        reading, names = self._reading or Reading(), [self._raw[number] for number in columns]
        coded = [name for name in names if self._has_unstated_codes(name, reading)]
        scored = [
            name
            for name in names
            if self._reading is not None
            and any(code != word for code, word in self._translate(name, reading).items())
        ]
        detected = []
        if coded:
            sentence = f"{self.path} declares codes of {name_some(coded)} missing."
            remedy = Remedy("state the codes of missing answers with missing= (--missing)")
            detected.append(Detected("missing", sentence, remedy))
        if scored:
            sentence = f"{self.path}: value labels say what is right in {name_some(scored)}."
            remedy = Remedy("state which values are right, by their codes, with key= (--key)")
            detected.append(Detected("key", sentence, remedy))
        return tuple(detected)

    def _has_unstated_codes(self, name: str, reading: Reading) -> bool:
        """Say whether the file declares missing what the reading does not.

        For a release only what would count as an answer: it refuses all other values anyway.
        """
        column = name.strip()
        is_item = not reading.listed or column in reading.listed
        scorings = [reading.scoring_of(item) for item in ([column] if is_item else reading.listed)]
        spans = [(bounds["lo"], bounds["hi"]) for bounds in self._ranges.get(name, ())]
        if self._is_believed:
            stated = scorings[0].missing
            return any(low != high or spell(write_cell(low)) not in stated for low, high in spans)
        return any(_counts_within(*span, scoring) for span in spans for scoring in scorings)

    def _tell(self, columns: Sequence[_Column]) -> None:
        dropped = {
            column.name: sum(column.dropped.values()) for column in columns if column.dropped
        }
        if dropped:
            total = sum(dropped.values())
            codes = sorted(
                {write_cell(code) or "" for column in columns for code in column.dropped}
            )
            warnings.warn(
                f"{self.path}: {total:,} answers are codes that the file declares missing "
                f"({name_some(codes, _SHOWN)}) and are read as missing: "
                f"{name_some([f'{name} {count:,}' for name, count in dropped.items()], _SHOWN)}.",
                DiscreetWarning,
                stacklevel=2,
            )
        labelled = [column for column in columns if column.has_own_scores]
        if labelled:
            meaning = ", ".join(f"{write_cell(value)} ('{labelled[0].labels.words[value]}') is "
                                f"{'right' if score else 'wrong'}"
                                for value, score in labelled[0].mapping.items())  # fmt: skip
            warnings.warn(
                f"{self.path}: answers are read by their value labels, in {labelled[0].name}: "
                f"{meaning}; columns: {name_some([column.name for column in labelled], _SHOWN)}.",
                DiscreetWarning,
                stacklevel=2,
            )

    def _read(self, **options: object) -> tuple[PlainMapping, Any]:
        try:
            import pyreadstat
        except ImportError:
            program = PROGRAMS[self._kind][0]
            raise MissingExtra(f"{self.path} is a file of {program}; reading it", "files") from None
        if self._kind != "xport":
            options["user_missing"] = True
        read = getattr(pyreadstat, PROGRAMS[self._kind][1])
        with explain_read_errors(self.path), _explain_damage(self.path, self._kind):
            file: Any = self.name
            if find_packing(self.path) is not None:
                with open_bytes(self.path) as stream:
                    file = io.BytesIO(stream.read())
            cells_and_labels: tuple[PlainMapping, Any] = read(file, output_format="dict", **options)
            return cells_and_labels


class _Column:
    """One column while it is read: what became missing is counted."""

    def __init__(self, name: str, labels: Labels, mapping: dict[object, object]) -> None:
        self.name, self.labels, self.mapping = name, labels, mapping
        self.dropped: Counter[Any] = Counter()
        self._known: dict[Any, Any] = {None: None}

    @property
    def has_own_scores(self) -> bool:
        """Whether labels of right and wrong say something else than 1 and 0 do."""
        return set(self.mapping.values()) == {0, 1} and any(k != v for k, v in self.mapping.items())

    def take(self, cells: Sequence[object]) -> list[Any]:
        """Return the cells as they are to be read."""
        if not self.mapping and self.labels.is_plain and str not in set(map(type, cells)):
            return list(cells)  # numbers of which nothing is said, as most are
        for value in set(cells) - self._known.keys():
            self._known[value] = self._translate(value)
        for value, count in Counter(cells).items():
            if value is not None and self.labels.missing(value):
                self.dropped[value] += count
        return [self._known[value] for value in cells]

    def _translate(self, value: object) -> Any:
        if self.labels.missing(value):
            return None
        if value in self.mapping:
            return self.mapping[value]
        if set(self.mapping.values()) == {0, 1}:
            # Beside labels of right and wrong a plain 0 or 1 means neither: name it as it is.
            return self.labels.words.get(value, f"{write_cell(value)} (without a label)")
        return clean_cell(value)


def _make_missing(ranges: Sequence[PlainMapping], is_text: bool) -> Callable[[Any], bool]:
    """Return what says whether a value is declared missing.

    SPSS declares ranges; Stata and SAS have marks (.a, .b), letters in a column of numbers.
    """
    spans = [(bounds["lo"], bounds["hi"]) for bounds in ranges]

    def is_missing(value: object) -> bool:
        if isinstance(value, str) != is_text:
            return isinstance(value, str)
        return any(low <= value <= high for low, high in spans)

    return is_missing


def _counts_within(low: Any, high: Any, scoring: ValueScoring) -> bool:
    """Say whether a value of a range would count as an answer."""
    if low == high:
        return score_value(write_cell(low), scoring) not in (MISSING, BAD)
    if scoring.right is not None or scoring.at_least is not None:
        return True  # every number is right or wrong then
    words = ("0", "1") if scoring.codes is None else scoring.codes
    return any(low <= float(word) <= high for word in words if word not in scoring.missing)


@contextmanager
def _explain_damage(path: Path, kind: str) -> Iterator[None]:
    import pyreadstat

    try:
        yield
    except (
        pyreadstat.ReadstatError,
        pyreadstat.PyreadstatError,
        UnicodeError,
        ValueError,
    ) as error:
        raise BadResponses(
            f"{path} is damaged or cut off and cannot be read as a file of {PROGRAMS[kind][0]}: "
            f"{error}. Copy it again, or export it once more."
        ) from None


# -- Winsteps --------------------------------------------------------------------------------

_SETTING = re.compile(r"^\s*&?\s*([A-Za-z]\w*)\s*=\s*(.*?)\s*(?:;.*)?$")
_ENDS = ("END NAMES", "END LABELS")
#: Settings that give codes another meaning; read only where they change nothing.
_UNKNOWN = ("IREFER", "IVALUE", "IVALUEA", "NEWSCORE", "RESCORE", "FORMAT", "DELIMITER")


class WinstepsSource:
    """A control file with its data; see :class:`discreet.tables.opener.Source`.

    Attributes
    ----------
    key
        The right answers that ``KEY1=`` names, one sign per item; empty where codes are scores.
    """

    def __init__(self, path: Path, progress: Callable[[int], None] | None = None) -> None:
        self.path, self.name, self._progress = path, str(path), progress
        text, encoding = read_encoded(path)
        self._detected = detect_encoding(path, encoding)
        head, end, body = text.partition("&END")
        if not end:
            raise BadResponses(f"{path} is a Winsteps control file without &END. Write it again.")
        lines = [line for line in head.splitlines() if not line.lstrip().startswith(";")]
        matches = [match for match in map(_SETTING.match, lines) if match]
        self._settings = settings = {m[1].upper(): m[2].strip().strip("\"'") for m in matches}
        self._refuse_unknown()
        n_items = self._number("NI")
        lines = _split_lines(body.partition("\n")[2])
        labels, rows = _split_names(path, lines, n_items)
        is_marked = len(labels) + len(rows) < len(lines)
        self._doubt = "" if is_marked else "no END NAMES parts its data from the names of items"
        if "DATA" in settings:
            self.path = path.parent / settings["DATA"].strip("\"'")
            text, encoding = read_encoded(self.path)
            self._detected += detect_encoding(self.path, encoding)
            rows, self._doubt = _split_lines(text), ""
        self._rows = [line for line in rows if line.strip()]
        if len(self._rows) < len(rows):
            self._doubt = "it has blank lines"
        items = [labels[n] if n < len(labels) else f"I{n + 1}" for n in range(n_items)]
        repeated = {name for name in items if items.count(name) > 1}
        unique = [f"{n + 1} {name}" if name in repeated else name for n, name in enumerate(items)]
        self.names = ["person", *unique]
        self.key = settings.get("KEY1", "").strip("\"'")

    def _refuse_unknown(self) -> None:
        settings = self._settings
        for name in _UNKNOWN:
            value = settings.get(name, "")
            if name == "IREFER" and len(set(value)) <= 1 and "IVALUE" + value[:1] not in settings:
                continue
            if name in settings:
                raise BadResponses(
                    f"{self.path}: {name}= recodes answers or lays out the file in a way that is "
                    "not read here. Write the recoded answers with Winsteps (Output Files, RFILE=) "
                    "and read that file."
                )

    def _number(self, name: str, default: int | None = None) -> int:
        text = self._settings.get(name, "" if default is None else str(default))
        if not text.isdigit() or not int(text):
            raise BadResponses(
                f"{self.path}: {name}= must be a whole number from 1; found {text!r}. A control "
                "file needs NI= (number of items) and ITEM1= (column of the first answer)."
            )
        return int(text)

    def _read_key(self, width: int) -> list[str]:
        """Return the right answer to every item; empty where codes are scores."""
        key = [sign.strip() for sign in _cut(self.key, width)]
        if self.key and len(key) != len(self.names) - 1:
            raise BadResponses(
                f"{self.path}: KEY1= has {len(key)} right answers for {len(self.names) - 1} items. "
                "Give one for each item, XWIDE= characters wide."
            )
        return key

    def detect(self, columns: Sequence[int], *, has_ids: bool) -> tuple[Detected, ...]:
        """Return whether the file says which answers are right, and its lines how many persons."""
        del columns
        remedy = Remedy("give the release a table of scored answers")
        sentence = f"{self.name}: KEY1= says which answers are right."
        key = [Detected("key", sentence, remedy)] if self.key else []
        doubt = self._doubt or ("" if has_ids else "its lines are read without ids")
        return (*key, *([miscount(self.name, doubt)] if doubt else []), *self._detected)

    def batches(self, columns: Sequence[int]) -> Iterator[list[pa.Array]]:
        """Yield columns as text."""
        width, first = self._number("XWIDE", 1), self._number("ITEM1") - 1
        codes = {code.strip() for code in _cut(self._settings.get("CODES", '"01"'), width)}
        key = self._read_key(width)
        start = self._number("NAME1", 1) - 1
        end = start + self._number("NAMLEN", 30 if start > first else first - start or 30)
        n_items, table = len(self.names) - 1, []
        for line in self._rows:
            cells = [line[first + n * width :][:width].strip() for n in range(n_items)]
            answers = [
                None if cell not in codes else str(int(cell == key[n])) if key else cell
                for n, cell in enumerate(cells)
            ]
            table.append([line[start:end].strip() or None, *answers])
        if self._progress is not None:
            self._progress(self.path.stat().st_size)
        yield [pa.array([row[number] for row in table], pa.string()) for number in columns]

    def place(self, row: int) -> str:
        """Return the file and the line of data."""
        return f"{self.path}, row {row + 1} of the data"


def _split_lines(text: str) -> list[str]:
    """Return the lines of a file: nothing but a line feed ends one."""
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def _split_names(path: Path, lines: list[str], n_items: int) -> tuple[list[str], list[str]]:
    """Return the names of items and the lines of data behind them.

    A line of data that reads like the end of the names is refused: it would move everybody's.
    """
    ends = [number for number, line in enumerate(lines) if line.strip().upper() in _ENDS]
    last = ends[0] if ends else min(n_items, len(lines))
    if last > n_items:
        raise BadResponses(
            f"{path}: {lines[last].strip()} stands behind {last:,} lines, and NI= says that there "
            f"are {n_items:,} items. Correct NI=, or write the control file again."
        )
    labels = [line.partition(";")[0].strip() for line in lines[:last]]
    return labels, lines[last + bool(ends) :]


def _cut(text: str, width: int) -> list[str]:
    plain = text.strip("\"'")
    return [plain[start : start + width] for start in range(0, len(plain), width)]
