"""Find and open files: which ones, packed or not, in which encoding, with which field separator.

In: a path, folder or pattern. Out: paths, byte streams, and errors that say what is wrong with
a file before anything tries to read answers from it.
"""

from __future__ import annotations

import codecs
import csv
import errno
import glob
import gzip
import io
import os
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice, product
from pathlib import Path
from typing import IO, Any, AnyStr

from discreet.coding.remedies import make_remedy
from discreet.errors import BadResponses, BadUsage, DiscreetWarning, refuse_address

_SUFFIXES = (".csv", ".tsv", ".parquet", ".pq", ".feather", ".arrow", ".jsonl", ".ndjson")
_LOGS = (".eval", ".json")
_WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
_PROGRAMS = {
    ".sav": "spss", ".zsav": "spss", ".dta": "stata", ".xpt": "xport", ".sas7bdat": "sas7bdat",
}  # fmt: skip
#: First bytes of files of statistical programs.
_STARTS = {
    b"$FL2": "spss",
    b"$FL3": "spss",
    b"<stata_dta>": "stata",
    b"HEADER RECORD*******LIB": "xport",
    b"\0" * 12 + b"\xc2\xea\x81\x60": "sas7bdat",
    b"ARROW1\0\0": "arrow",
    b"\xff\xff\xff\xff": "arrow",
    b"SQLite format 3\0": "sqlite",
}
#: First bytes of what is read nowhere here, by what it is.
_FOREIGN = {
    b"\xfd7zXZ\0": "an xz file", b"7z\xbc\xaf": "a 7z archive", b"Rar!\x1a": "a RAR archive",
    b"\x80\x04": "a pickle of Python", b"\x80\x05": "a pickle of Python", b"%PDF-": "a PDF",
    b"\x93NUMPY": "an array of NumPy", b"RDX": "a workspace of R", b"X\n\0\0": "an object of R",
    b"\x89PNG": "a picture", b"\xff\xd8\xff": "a picture", b"FEA1": "a feather file, version 1",
}  # fmt: skip
#: First byte of Stata's files before version 13.
_OLD_STATA = frozenset(range(0x66, 0x74))
_ZIP, _OLE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
_RECORDS = re.compile(rb"\s*\[\s*\{")
_INSPECT = re.compile(rb'\s*\{\s*"version":\s*\d+,\s*"status":\s*"')
#: The first line of logs of evaluations of language models.
_HARNESS = re.compile(rb'\s*\{(?=[^\n]*"filtered_resps":)[^\n]*"doc_id":')
#: A control file of Winsteps, which no table is by what stands in one of its cells.
_CONTROL = re.compile(
    rb"(?ims)\A(?=\s*(?:[;&]|[A-Z]\w*\s*=)).*?^\s*&?\s*(?:NI|ITEM1)\s*=.*^\s*&END"
)
#: Bytes looked at to find names and encoding: 4 MB hold the names of 100,000 columns.
_HEAD = 1 << 22
#: 64 MB: a row of several million columns.
LONGEST_LINE = 1 << 26
#: How files are packed, by their first bytes, and how their names end then.
_PACKED = {b"\x1f\x8b": "gzip", b"BZh91AY&SY": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
_PACKED_ENDS = (".gz", ".bz2", ".zst")
#: How much answers shrink under gzip, roughly.
_GZIP_FACTOR = 6
#: What stands in the folder of a table that has versions, whose it is, and how it is read.
_VERSIONED = {
    "_delta_log": ("delta", "DeltaTable('{0}').to_pyarrow_table(), delta_scan('{0}') in SQL, or "),
    "metadata/*.metadata.json": ("iceberg", "PyIceberg, iceberg_scan('{0}') in SQL, or "),
    ".hoodie": ("hudi", ""),
}
#: With one slash: that is what becomes of two in a ``pathlib.Path``.
_SERVER = re.compile(r"\s*postgres(ql)?:/", re.IGNORECASE)


def names_server(source: object) -> bool:
    """Say whether a source is the address of a PostgreSQL server, even a misspelt one."""
    return isinstance(source, str | os.PathLike) and bool(_SERVER.match(str(source)))


def find_files(path: str | os.PathLike[str]) -> list[Path]:
    """Return the files that a path, a folder or a pattern such as ``logs/*.csv`` stands for."""
    try:
        text = os.fspath(path)
    except TypeError:
        raise BadUsage(
            f"A path is needed (text or os.PathLike); found {type(path).__name__}. Use "
            "Responses.from_array or Responses.from_dataframe for data in memory."
        ) from None
    if names_server(text):
        # The address is not repeated here: it may hold a password.
        raise BadUsage(
            "A file is needed here, found the address of a PostgreSQL server. count_pairs, fit and "
            "release read from servers (engine='duckdb' or 'auto'), and so do `discreet table "
            "counts` and `discreet fit`."
        )
    refuse_address(text)
    location = Path(text)
    with explain_read_errors(location):
        if location.is_dir():
            refuse_versioned(location)
            return _files_of_folder(location)
        if location.exists() and not location.is_file():
            raise BadUsage(
                f"'{location}' is not a regular file. Files are looked at more than once, which a "
                "pipe or device does not allow; write the data to a file first."
            )
        if location.exists():
            return [location]
    if not glob.has_magic(text):
        raise BadUsage(f"There is no file '{text}'. Check the path and the folder you are in.")
    matches = sorted(Path(name) for name in glob.iglob(text, recursive=True))  # noqa: PTH207 (text may be absolute)
    files = [file for file in matches if file.is_file()]
    if not files:
        raise BadUsage(f"No file matches '{text}'. Check the pattern and the folder you are in.")
    return files


def refuse_versioned(path: Path) -> None:
    """Refuse the folder, or a file in it, of a table that keeps rows which were removed."""
    above = (path, *path.absolute().parents)
    for folder, (mark, (kind, call)) in product(above, _VERSIONED.items()):
        if next(folder.glob(mark), None) is not None:
            raise BadUsage(
                f"'{folder}' is a table of {kind.title()}. Its folder keeps rows that were "
                "replaced or deleted, and they would be read again. Read the table with "
                f"{call.format(folder)}spark.read.format('{kind}').load('{folder}')."
            )


def settle_path(path: str | os.PathLike[str]) -> Path:
    """Return a whole path: ``~`` is somebody's home, and links are followed.

    A loop of links is left as it is: whoever opens it says so.
    """
    try:
        return Path(os.path.realpath(Path(path).expanduser()))
    except (OSError, RuntimeError, ValueError) as error:
        raise BadUsage(f"{os.fspath(path)!r} is no path ({error}). Check it.") from None


def _files_of_folder(folder: Path) -> list[Path]:
    visible = sorted(
        file for file in folder.iterdir() if file.is_file() and not file.name.startswith((".", "_"))
    )
    # Beside plain tables a workbook is more likely somebody's notes than answers.
    others = (*_WORKBOOKS, *_PROGRAMS)
    parts = sorted(file for file in folder.glob("*=*/**/*") if file.is_file())
    for listed, suffixes in product((visible, parts), (_SUFFIXES, others, _LOGS)):
        files = [file for file in listed if _plain_name(file).endswith(suffixes)]
        if files:
            return files
    logs = sorted({*folder.glob("**/samples_*.jsonl"), *folder.glob("**/*.eval")})
    if logs:
        return logs
    raise BadUsage(
        f"The folder '{folder}' holds no file of answers. Looked for names that end in "
        f"{', '.join((*_SUFFIXES, *others, *_LOGS))}, each also with {', '.join(_PACKED_ENDS)}."
    )


def find_partitions(path: Path) -> dict[str, str | None]:
    """Return what the folders of a file say of its rows, as in ``year=2024/term=1/part.csv``."""
    parts = [folder.partition("=") for folder in path.parts[:-1] if "=" in folder]
    return {key: None if value == _NO_PARTITION else value for key, _, value in parts if key}


#: How Hive writes that a value is missing.
_NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"


def _plain_name(path: Path) -> str:
    name = path.name.lower()
    return name[: -len(path.suffix)] if path.suffix.lower() in _PACKED_ENDS else name


@contextmanager
def explain_read_errors(path: Path) -> Iterator[None]:
    """Turn what goes wrong while bytes are read into errors that say what to do."""
    try:
        yield
    except PermissionError:
        raise BadUsage(f"'{path}' cannot be read: permission denied. Check its rights.") from None
    except gzip.BadGzipFile as error:
        if "Not a gzipped" not in str(error):
            raise BadResponses(_damaged(path)) from None
        raise BadResponses(
            f"{path} is named like a gzip file but is not one. Rename it without .gz, or pack it."
        ) from None
    except (EOFError, zlib.error):
        raise BadResponses(_damaged(path)) from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise BadUsage(f"There is no file '{path}': the name is too long for one.") from None
        if "compressed stream" not in str(error) and "zlib" not in str(error):
            raise
        raise BadResponses(_damaged(path)) from None


def _damaged(path: Path) -> str:
    return (
        f"{path} is a damaged or cut-off packed file: the compressed data ends early or does not "
        "match its checksum, so answers would be lost. Copy or download the file again."
    )


def find_packing(path: Path) -> str | None:
    """Say how a file is packed: by its first bytes; one whose name promises gzip must be."""
    with explain_read_errors(path), path.open("rb") as file:
        head = file.read(10)
    found = (kind for start, kind in _PACKED.items() if head.startswith(start))
    return next(found, "gzip" if path.suffix.lower() == ".gz" else None)


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading, unpacked."""
    packing = find_packing(path)
    if packing in (None, "gzip"):
        return path.open("rb") if packing is None else gzip.open(path)  # type: ignore[return-value]
    import pyarrow as pa

    return io.BufferedReader(pa.CompressedInputStream(pa.OSFile(os.fsencode(path)), packing))


def limit_lines(path: Path, stream: IO[AnyStr]) -> Iterator[AnyStr]:
    """Yield lines; refuse one that would fill the memory, as gzip can make of a few kilobytes."""
    while line := stream.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise BadResponses(
                f"{path} has a line of more than {LONGEST_LINE >> 20} MB, which no table of "
                "answers needs. Check that the file is what its name says, and its line ends."
            )
        yield line


def unpacked_size(path: Path) -> int:
    """Estimate the bytes of a file, unpacked: gzip notes them at the end, modulo 4 GB."""
    size, packing = path.stat().st_size, find_packing(path)
    if packing != "gzip":
        return size * (1 if packing is None else _GZIP_FACTOR)
    with path.open("rb") as file:
        file.seek(max(size - 4, 0))
        return max(int.from_bytes(file.read(4), "little"), _GZIP_FACTOR * size)


def peek(path: Path) -> bytes:
    """Return the first bytes of a file, unpacked."""
    with explain_read_errors(path), open_bytes(path) as stream:
        return stream.read(_HEAD)


def read_head(path: Path) -> bytes:
    """Return the first bytes of a file of answers, unpacked; an empty one is refused."""
    head = peek(path)
    if not head.strip(b"\xef\xbb\xbf \t\r\n"):
        raise BadResponses(
            f"{path} is empty. A file of answers has a first row of column names and then one row "
            "per person, or per person and item."
        )
    return head


def sniff(path: Path, head: bytes) -> str:
    """Return what a file holds: "parquet", "jsonl", "text", "workbook", ..., or whose file it is.

    The first bytes decide; a name that promises something else is refused, and so is what can be
    none of these.
    """
    if head.startswith(b"PAR1"):
        return "parquet"
    name = _plain_name(path)
    for start, kind in _STARTS.items():
        if head.startswith(start):
            return kind
    if name.endswith(".dta") and head[0] in _OLD_STATA:
        return "stata"
    is_zip = head.startswith(_ZIP)
    is_log = name.endswith(".eval") or head[30:49] == b"_journal/start.json"
    if _INSPECT.match(head) or (is_zip and is_log):
        return "inspect"
    inside = (b"xl/", b"[Content_Types].xml", b"opendocument.spreadsheet")
    is_book = name.endswith(_WORKBOOKS) or any(word in head for word in inside)
    if head.startswith(_OLE) or (is_zip and is_book):
        return "workbook"
    _refuse_other(path, name, head)
    if _HARNESS.match(head):
        return "harness"
    if _RECORDS.match(head.removeprefix(b"\xef\xbb\xbf")):
        return "records"
    if name.endswith((".jsonl", ".ndjson")) or head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return "jsonl"
    return "winsteps" if _CONTROL.match(head[:20_000]) else "text"


def _refuse_other(path: Path, name: str, head: bytes) -> None:
    """Refuse a file that is not what its name says, and zip files of something else."""
    if name.endswith((".parquet", ".pq")):
        raise BadResponses(
            f"{path} is named like a Parquet file but is not one (it does not begin with PAR1). "
            "It may be cut off, or another format; name it after what it is."
        )
    if head.startswith(_ZIP):
        raise BadResponses(
            f"{path} is a zip file, which is not looked into. Unpack it and give the file inside."
        )
    orc = "an ORC file" if name.endswith(".orc") else None
    other = next((what for start, what in _FOREIGN.items() if head.startswith(start)), orc)
    if other is not None:
        raise BadResponses(
            f"{path} is {other}, which is not read here. Save the table as CSV or Parquet."
        )
    kind = next((description for end, description in _PROGRAMS.items() if name.endswith(end)), None)
    if name.endswith(_WORKBOOKS) or kind is not None:
        description = (
            "a workbook" if kind is None else "a file of a statistical program (SPSS, Stata, SAS)"
        )
        raise BadResponses(
            f"{path} is named like {description} but is not one. It is damaged, or in another "
            "format: give it the ending of that format."
        )


def read_text(path: Path) -> str:
    """Return a whole small file as text: unpacked and decoded as every other table is."""
    return read_encoded(path)[0]


def read_encoded(path: Path) -> tuple[str, str]:
    """Return a whole small file as text, and its encoding."""
    with explain_read_errors(path), open_bytes(path) as stream:
        data = stream.read()
    encoding = find_encoding(path, data, is_complete=True)
    return decode(path, data, encoding, is_complete=True), encoding


def find_encoding(path: Path, head: bytes, *, is_complete: bool = False) -> str:
    """Return the encoding of a text file; one that is not UTF-8 is read as Windows-1252.

    ``is_complete`` says that nothing follows: otherwise the last character may be cut off.
    """
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head, is_complete)
    except UnicodeDecodeError:
        return warn_encoding(path)
    return "utf-8"


def warn_encoding(path: Path) -> str:
    """Say that a file is not UTF-8, and how it is read instead."""
    warnings.warn(
        f"{path} is not UTF-8; it is read as Windows-1252 (Latin-1). If names look wrong, save "
        "the file as UTF-8.",
        DiscreetWarning,
        stacklevel=2,
    )
    return "cp1252"


def decode(path: Path, data: bytes, encoding: str, *, is_complete: bool = False) -> str:
    """Return bytes as text, without a byte-order mark; see `find_encoding` for ``is_complete``."""
    codec = "utf-8-sig" if encoding == "utf-8" else encoding
    try:
        return codecs.getincrementaldecoder(codec)().decode(data, is_complete)
    except UnicodeDecodeError:
        raise BadResponses(bad_encoding(path)) from None


def bad_encoding(path: Path) -> str:
    """Return the message for text in no encoding that is known here."""
    return (
        f"{path} is neither UTF-8 nor Windows-1252 (Latin-1) text, so its names cannot be read. "
        "Save it as UTF-8."
    )


def open_text(path: Path, encoding: str) -> Any:
    """Open a file as text, line ends untouched, for the second look that messages need."""
    codec = "utf-8-sig" if encoding == "utf-8" else encoding
    return io.TextIOWrapper(open_bytes(path), encoding=codec, errors="replace", newline="")


# -- field separators --------------------------------------------------------------------------

#: Recognised by themselves, the likeliest first.
DELIMITERS = {",": "a comma", "\t": "a tab", ";": "a semicolon", "|": "a pipe", " ": "a space"}

#: Lines on whose number of fields a delimiter is agreed, and lines looked at for rare ones.
_LINES, _SAMPLE = 60, 6
_RARE = re.compile(r"[:~^#&*!/\\]")
#: With this first line Excel is told what parts the fields.
_SEP_LINE = re.compile(r'"?sep=(.)"?', re.IGNORECASE)


def name_delimiter(delimiter: str) -> str:
    """Return a delimiter in words."""
    return DELIMITERS.get(delimiter, repr(delimiter))


def declared_delimiter(text: str, path: Path) -> str:
    """Return the delimiter that the rows do not decide on: by the name, a first line, or a comma.

    Files called .tsv have tabs; a first line such as ``sep=;`` names the delimiter.
    """
    if _plain_name(path).endswith((".tsv", ".tab")):
        return "\t"
    match = _SEP_LINE.fullmatch(_first_line(text))
    return match[1] if match else ","


def _first_line(text: str) -> str:
    """Return the first line that is not blank."""
    match = re.search(r"\S[^\r\n]*", text)
    return "" if match is None else match[0].strip()


def find_delimiter(text: str, path: Path) -> str:
    """Return the delimiter that the first lines of a file agree on."""
    declared = declared_delimiter(text, path)
    if declared != "," or _SEP_LINE.fullmatch(_first_line(text)):
        return declared
    lines = list(islice(io.StringIO(text, newline=""), _LINES + 1))
    if len(lines) > 2 and not lines[-1].endswith(("\n", "\r")):
        lines.pop()  # it may be cut off
    lines = [line for line in lines if line.strip()]
    best: tuple[float, int, str] = (0.0, 0, "")
    for sign in (",", "\t", ";", "|"):
        with suppress(csv.Error):
            widths = Counter(len(record) for record in csv.reader(lines, delimiter=sign))
            width, times = max(widths.items(), key=lambda pair: pair[::-1])
            share = times / widths.total()
            if width > 1 and share >= 0.5 and (share, width) > best[:2]:
                best = share, width, sign
    return best[2] or _look_closer(lines[:_SAMPLE], path)


def _look_closer(lines: Sequence[str], path: Path) -> str:
    """Return a space where it parts the fields; refuse other signs until they are named."""
    bare = ["".join(line.strip().split('"')[::2]) for line in lines]
    if " " in lines[0].strip() and len(lines) > 1:
        fields = csv.reader([line.strip() for line in lines], delimiter=" ")
        if _agree(lines, " ") and all(field for record in fields for field in record):
            return " "
        if len({len(line.split()) for line in bare}) == 1:
            raise BadResponses(
                f"{path}: fields seem to be separated by several spaces. Put one field separator "
                "between them: a comma, semicolon, tab, pipe or a single space."
            )
    rare = sorted({sign for sign in _RARE.findall(bare[0]) if _agree(lines, sign)})
    if rare and len(lines) > 1:
        raise BadResponses(
            f"{path} has one column, '{bare[0]}', because it has no comma, semicolon, tab, pipe or "
            f"space. If {rare[0]!r} parts its fields, say delimiter={rare[0]!r} "
            f"(--delimiter '{rare[0]}')."
        ).offering(make_remedy(f"{rare[0]} parts the fields:", {"delimiter": rare[0]}))
    return ","


def _agree(lines: Sequence[str], delimiter: str) -> bool:
    """Say whether lines have as many fields as the first, or each one more (R's row names)."""
    try:
        records = list(csv.reader([line.rstrip("\r\n") for line in lines], delimiter=delimiter))
    except csv.Error:
        return False
    counts = {len(record) for record in records[1:]}
    return len(records[0]) > 1 and counts in (set(), {len(records[0])}, {len(records[0]) + 1})


def is_sep_line(record: Sequence[str]) -> bool:
    """Say whether a record is the line that tells Excel about the delimiter, and nothing else."""
    cells = [cell.strip().lower() for cell in record]
    return cells == ["sep=", ""] or (len(cells) == 1 and bool(_SEP_LINE.fullmatch(cells[0])))
