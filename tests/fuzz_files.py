"""Files for command lines that nobody would write: good ones, damaged ones, edited ones.

``make_files`` writes every kind of file that a command reads or writes. ``damage`` cuts, flips and
empties copies. ``edit`` changes one place of a copy and keeps the format: a value of another type,
a list of another length, a number out of range.
"""

import contextlib
import gzip
import io
import json
import os
import random
import re
import shutil
import sqlite3
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat

import discreet as library
from commandline import discreet
from discreet.publishing.bundle import hash_content, hash_record
from spreadsheet_files import write_ods, write_xlsx

LONG = "person,item,response,sex\n" + "".join(
    f"p{p},q{i},{(p * i + p + i // 2) % 3 % 2},{'fm'[p % 2]}\n" for p in range(30) for i in range(4)
)
WIDE = "person,q0,q1,q2,sex\n" + "".join(
    f"p{p},{p % 2},{p // 2 % 2},{p % 3 % 2},m\n" for p in range(9)
)
STEPS = "person,q0,q1,q2,q3\n" + "".join(
    f"p{p},{p % 3},{p // 3 % 3},{p * p % 7 % 3},{p // 2 % 2}\n" for p in range(40)
)
LETTERS = "id,q0,q1,q2,q3\n" + "".join(
    f"a{p},{'ABCD'[p % 4]},{'AB'[p // 2 % 2]},{'ABC'[p * p % 7 % 3]},{'AC'[p % 3 % 2]}\n"
    for p in range(40)
)
VOTES = "judge,winner,loser\n" + "".join(
    f"j{n},{'aeo'[n % 3]},{'aeo'[(n + 1 + n // 5 % 2) % 3]}\n" for n in range(30)
)
ABOUT = """title = "Reading in grade 4"
version = "1.2"
language = "en"
contact = "statistics@agency.example"
"""
POLICY = """max_epsilon = 1.0
max_delta = 1e-6
neighbours = ["replace-one"]
min_persons = 3
"""
KNOWN = ["fitted", "stepped", "keyed", "bundle", "bank.csv", "estimate.json"]
"""Calibrations."""
ARTEFACTS = [
    *KNOWN, "ranking.json", "plan.json", "request.json", "signed.json", "votes.json", "audit.json",
    "counts.npz", "folds.npz", "ledger.db", "signed.db", "about.toml", "policy.toml",
    "votes-bundle", "ada.key", "ada.key.pub", "key.csv", "anchors.csv", "wide.xlsx", "wide.ods",
]  # fmt: skip
"""What is edited: files of our own formats, folders with them, and workbooks."""

COMMANDS = [
    "fit long.csv --out fitted --group sex",
    "fit steps.csv --out stepped",
    "fit letters.csv --key key.csv --out keyed --ignore id",
    "ledger create ledger.db --epsilon 50",
    "steward key ada.key",
    "ledger create signed.db --epsilon 50 --approvals 1",
    "ledger approver signed.db Ada --public-key ada.key.pub",
    "ledger population signed.db north",
    "table counts long.csv --out counts.npz --ignore sex",
    "table counts long.csv --out folds.npz --ignore sex --folds 8",
    "bank create bank.csv fitted --scale s",
    "release long.csv --items items.txt --max-answers 4 --epsilon 1 --ledger ledger.db --out bundle"
    " --ignore sex --about about.toml",
    "compare release votes.csv --items objects.txt --max-comparisons 2 --epsilon 1"
    " --ledger ledger.db --out votes-bundle",
    "steward propose --items items.txt --epsilon 0.5 --persons 30 --ledger signed.db"
    " --about about.toml"
    " --population north --ignore sex --out request.json",
    "steward propose --items items.txt --epsilon 0.5 --persons 30 --ledger signed.db"
    " --about about.toml"
    " --population north --ignore sex --out signed.json",
    "steward approve signed.json --signing-key ada.key",
    "compare propose --items objects.txt --epsilon 0.5 --judges 30 --max-comparisons 2"
    " --ledger signed.db --about about.toml --out votes.json",
]
"""How files of our own formats come about."""


def make_files(folder: Path) -> list[str]:
    """Write good files of every kind and damaged copies; return their names."""
    _write_tables(folder)
    for line in COMMANDS:
        ended = discreet(*line.split())
        assert ended.code == 0, f"{line}\n{ended.err}"
    audited = discreet(
        *[
            "audit",
            "--mechanism",
            "margins",
            "--epsilon",
            "1",
            "--items",
            "4",
            "--runs",
            "100",
            "--json",
        ]
    )
    (folder / "audit.json").write_text(audited.out)
    estimate = library.fit("long.csv", ignore="sex")
    estimate.save("estimate.json")
    library.rank(estimate, top=2).save("ranking.json")
    library.plan(persons=1000, items=10, epsilon=1.0).save("plan.json")
    good = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_size]
    odd = _make_odd(folder)
    return [str(one.relative_to(folder)) for one in [*good, *damage(good, folder), *odd]]


def _write_tables(folder: Path) -> None:
    texts = {
        "long.csv": LONG, "wide.csv": WIDE, "steps.csv": STEPS, "letters.csv": LETTERS,
        "votes.csv": VOTES, "about.toml": ABOUT, "policy.toml": POLICY,
        "key.csv": "item,answer\nq0,A\nq1,B\nq2,C\nq3,A\n", "items.txt": "q0\nq1\nq2\nq3\n",
        "items.csv": "item,steps\nq0,2\nq1,2\nq2,2\nq3,1\n", "objects.txt": "a\ne\no\n",
        "anchors.csv": "item,difficulty\nq0,0.5\n", "forms.csv": "form,item\nA,q0\nA,q1\nB,q2\n",
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text)
    wide = [line.split(",") for line in WIDE.split()]
    write_xlsx(folder / "wide.xlsx", {"s": wide})
    write_ods(folder / "wide.ods", {"s": wide})
    frame = pd.DataFrame(wide[1:], columns=wide[0])
    numbers = frame.astype(dict.fromkeys(wide[0][1:4], float))
    pyreadstat.write_sav(numbers, folder / "wide.sav")
    pyreadstat.write_dta(numbers, folder / "wide.dta")
    names = LONG.split()[0].split(",")
    rows = [dict(zip(names, row.split(","), strict=True)) for row in LONG.split()[1:]]
    (folder / "long.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), folder / "long.parquet")
    (folder / "long.csv.gz").write_bytes(gzip.compress(LONG.encode()))


def _make_odd(folder: Path) -> list[Path]:
    """Write files with odd names, and names without a file."""
    latin = [folder / os.fsdecode(name) for name in (b"bad\xff.csv", b"l\xff.db", b"caf\xe9")]
    shutil.copy(folder / "long.csv", latin[0])
    shutil.copy(folder / "ledger.db", latin[1])
    shutil.copytree(folder / "fitted", latin[2])
    loop, dangling = folder / "loop", folder / "dangling.csv"
    loop.symlink_to(loop)
    dangling.symlink_to(folder / "nowhere")
    empty = folder / "empty"
    empty.mkdir()
    line = folder / "two\nlines.csv"
    try:
        shutil.copy(folder / "long.csv", line)
    except OSError:  # Windows refuses the name
        return [*latin, loop, dangling, empty]
    return [*latin, loop, dangling, line, empty]


def damage(files: list[Path], folder: Path) -> list[Path]:
    """Return cut, flipped, prefixed and emptied copies."""
    place = folder / "damaged"
    place.mkdir()
    rng = random.Random(1)
    copies = []
    for number, file in enumerate(files):
        content = file.read_bytes()
        middle = len(content) // 2
        flipped = bytearray(content)
        for _ in range(5):
            flipped[rng.randrange(len(flipped))] ^= 0xFF
        other = content.replace(b"1", b"9" * 5000, 1), content.replace(b":", b":[", 1)
        for how, bad in enumerate(
            (b"", content[:middle], bytes(flipped), b"\xff\xfe" + content, *other)
        ):
            copy = place / f"{number}-{how}-{file.name}"
            copy.write_bytes(bad)
            copies.append(copy)
    return copies


# --- one place of a file changed, its format kept -------------------------------------------------


def edit(name: str, target: str, rng: random.Random) -> str:
    """Copy a file or a folder to ``target`` and change one place; return the copy's name."""
    source, copy = Path(name), Path(f"{target}{Path(name).suffix}")
    if source.is_dir():
        shutil.copytree(source, copy)
        files = [one for one in sorted(copy.iterdir()) if one.suffix in EDITORS]
        main = [one for one in files if one.suffix == ".json"]
        chosen = rng.choice(main if rng.random() < 0.8 else files)
    else:
        shutil.copy(source, copy)
        chosen = copy
    EDITORS.get(chosen.suffix, edit_text)(chosen, rng)
    if (copy / "privacy.json").is_file() and rng.random() < 0.8:
        seal_again(copy)
    return str(copy)


def seal_again(bundle: Path) -> None:
    """Give an edited bundle the checksums of its files, as somebody who means harm would."""
    path = bundle / "privacy.json"
    try:
        record = json.loads(path.read_text())
    except ValueError:  # it holds a number of 5,000 digits
        return
    if isinstance(record, dict) and isinstance(record.get("files"), dict):
        known = [name for name in record["files"] if (bundle / name).is_file()]
        files = {name: hash_content((bundle / name).read_bytes()) for name in known}
        sealed = {**record, "files": {**record["files"], **files}}
        sealed["record_sha256"] = hash_record(sealed)
        path.write_text(json.dumps(sealed))


ODD = [
    None, True, False, 0, 1, -1, 2, 7, 10**9, 10**30, -(10**30), 10**5000, 0.5, -0.5, 1e-308,
    1e308, float("nan"), float("inf"), "", "x", "1/0", "1e400", "\udcff", "a\nb", "\x1b[1A", [], {},
    [None], ["x"], [1, 2], [[1.0]], {"x": 1}, {"float": "nan"}, [[], [1]],
]  # fmt: skip


def edit_value(value, rng: random.Random):
    """Return JSON with one place changed; every field is as likely as every other one."""
    places: dict[tuple, list[tuple]] = {}
    for place in _list_places(value):
        field = tuple("*" if isinstance(step, int) else step for step in place)
        places.setdefault(field, []).append(place)
    chosen = rng.choice(places[rng.choice(sorted(places))])
    return _change(value, chosen, rng)


def _list_places(value, above: tuple = ()):
    yield above
    if isinstance(value, dict | list):
        for step, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _list_places(one, (*above, step))


def _change(value, place, rng):
    if not place:
        return rng.choice(ODD) if rng.random() < 0.8 else _resize(value, rng)
    copy = dict(value) if isinstance(value, dict) else list(value)
    if len(place) == 1 and rng.random() < 0.1:
        del copy[place[0]]
    elif len(place) == 1 and rng.random() < 0.1:
        copy[place[0]] = rng.choice([*copy.values()] if isinstance(copy, dict) else copy)
    else:
        copy[place[0]] = _change(copy[place[0]], place[1:], rng)
    return copy


def _resize(value, rng):
    if isinstance(value, list):
        return value[:-1] if rng.random() < 0.5 else [*value, *value[-1:]]
    if isinstance(value, dict):
        return {**value, "more": 1}
    if isinstance(value, str):
        return value * 2
    return [value] if value is None or isinstance(value, bool) else -value


def edit_json(path: Path, rng: random.Random) -> None:
    edited = edit_value(json.loads(path.read_text()), rng)
    path.write_text(_write_json(edited))


def _write_json(value) -> str:
    # A number of 5,000 digits cannot be written by Python's own limits.
    long = [one for one in ODD if isinstance(one, int) and abs(one) > 10**40]
    marked = _swap(value, {one: f"<{number}>" for number, one in enumerate(long)})
    text = json.dumps(marked)
    return re.sub(r'"<\d+>"', "9" * 5000, text)


def _swap(value, marks):
    if isinstance(value, dict):
        return {key: _swap(one, marks) for key, one in value.items()}
    if isinstance(value, list):
        return [_swap(one, marks) for one in value]
    return marks.get(value, value) if isinstance(value, int) else value


def edit_npz(path: Path, rng: random.Random) -> None:
    with np.load(path, allow_pickle=False) as file:
        parts = {name: file[name] for name in file.files}
    name = rng.choice(sorted(parts) + [one for one in parts if parts[one].dtype.kind == "U"] * 3)
    array = parts[name]
    if array.dtype.kind == "U" and array.ndim == 0 and rng.random() < 0.9:
        parts[name] = np.array(_write_json(edit_value(json.loads(array.item()), rng)))
    else:
        changes = (
            lambda: array.astype(float) if array.dtype.kind in "iu" else array,
            lambda: array[..., :-1] if array.ndim else np.array([array]),
            lambda: np.zeros((), dtype=np.int64),
            lambda: array.astype(str),
            lambda: array[None],
            lambda: -array if array.dtype.kind in "if" else array,
            lambda: np.array([]),
        )
        parts[name] = rng.choice(changes)()
    if rng.random() < 0.1:
        del parts[name]
    np.savez_compressed(path, **parts)


def edit_ledger(path: Path, rng: random.Random) -> None:
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        tables = [
            row[0] for row in file.execute("select name from sqlite_master where type='table'")
        ]
        table = rng.choice(sorted(tables))
        columns = [row[1] for row in file.execute(f"pragma table_info({table})")]
        column, value = (
            rng.choice(columns),
            rng.choice([*ODD[:9], *ODD[12:16], "", "x", "{}", b"x"]),
        )
        value = None if isinstance(value, int) and abs(value) > 2**62 else value
        change = rng.choice(
            ["update {0} set {1} = ?", "delete from {0} where ? is not 0", "drop table {0}"]
        )
        with contextlib.suppress(sqlite3.Error):
            file.execute(change.format(table, column), (value,) if "?" in change else ())


def edit_text(path: Path, rng: random.Random) -> None:
    """Replace one word of a table or of a list of settings."""
    words = re.split(r"(\W+)", path.read_bytes().decode("utf-8", "surrogateescape"))
    odd = [
        "",
        "x",
        "-1",
        "1e308",
        "1e-320",
        "9" * 30,
        "9" * 5000,
        "nan",
        "inf",
        '"',
        "\n",
        "[",
        ",,",
    ]
    words[rng.randrange(len(words))] = rng.choice(odd)
    path.write_bytes("".join(words).encode("utf-8", "surrogateescape"))


def edit_workbook(path: Path, rng: random.Random) -> None:
    """Change one word of one part of a packed workbook, or put a cell far away."""
    with zipfile.ZipFile(path) as packed:
        parts = {one: packed.read(one) for one in packed.namelist()}
    sheet = next(one for one in parts if "sheet1.xml" in one or one == "content.xml")
    name = rng.choice([sheet] * 4 + sorted(parts))
    text = parts[name].decode("utf-8")
    if name == sheet and rng.random() < 0.3:
        far = rng.choice(["XFD1048576", "ABA1000000", "C1048576", "XFD2", "A99999999", "ZZZZZZ1"])
        cell = f'<row r="1048576"><c r="{far}"><v>1</v></c></row></sheetData>'
        many = rng.choice(["1048576", "999999999", "99999999999999999999", "-1"])
        row = f'<table:table-row table:number-rows-repeated="{many}"><table:table-cell '
        row += f'table:number-columns-repeated="{many}" office:value-type="float" '
        row += 'office:value="1"/></table:table-row></table:table>'
        text = text.replace("</sheetData>", cell).replace("</table:table>", row)
    else:
        words = re.split(r"(\W+)", text)
        words[rng.randrange(len(words))] = rng.choice(["", "x", "-1", "9" * 30, "<", '"', "0"])
        text = "".join(words)
    parts[name] = text.encode("utf-8")
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as packed:
        for one, content in parts.items():
            packed.writestr(one, content)
    path.write_bytes(whole.getvalue())


EDITORS = {
    ".json": edit_json, ".npz": edit_npz, ".db": edit_ledger, ".csv": edit_text,
    ".toml": edit_text, ".key": edit_text, ".pub": edit_text, ".xlsx": edit_workbook,
    ".ods": edit_workbook,
}  # fmt: skip
"""How a file is edited, by its ending."""
