"""A thousand command lines that nobody would write: never a fault of the program.

Commands and options are taken from the program itself, so that a new one is in here at once.
Files are good, damaged or something else; values are of the wrong kind, size or sign.
"""

import gzip
import json
import random
import shutil
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest
from typer.main import get_command

from commandline import discreet
from discreet.cli.app import app
from spreadsheet_files import write_xlsx

LINES = 1000
PARTS = 10
CODES = {0, 2, 3, 4, 5}
"""Code 1 is for failures of solvers and disks; where it comes, a sentence of ours comes with it."""

LONG = "person,item,response,sex\n" + "".join(
    f"p{p},q{i},{(p * i + p + i // 2) % 3 % 2},{'fm'[p % 2]}\n" for p in range(30) for i in range(4)
)
WIDE = "person,q0,q1,q2,sex\n" + "".join(
    f"p{p},{p % 2},{p // 2 % 2},{p % 3 % 2},m\n" for p in range(9)
)
VOTES = "judge,winner,loser\nann,ash,elm\nbob,elm,ash\ncas,ash,oak\nann,oak,elm\n"
NUMBERS = [
    "-1", "0", "1", "2", "3", "0.5", "1e-6", "9" * 20, "-1e308", "1e308", "1e-400", "nan", "inf",
    "-inf", "", "x", "0x10", "\uff11", "1_0", "+2",
]  # fmt: skip
WORDS = [
    "", " ", "person", "item", "response", "q1", "sex", "nope", "9,99", ",", "margins", "pairs",
    "marginal", "conditional", "spectral", "memory", "duckdb", "long", "wide", "first", "uniform",
    "add-remove", "\udcff", "a" * 300, "--", "*", "[", "wle", "bh", "\U0001f600",
]  # fmt: skip
ANSWERS = [
    "long.csv", "long.jsonl", "long.parquet", "long.csv.gz", "wide.csv", "wide.xlsx", "wide.sav",
    "letters.csv",
]  # fmt: skip
OWN_FILES = {
    "bank": ["bank.csv", "new.csv"],
    "compare": ["votes.csv"],
    "ledger": ["ledger.db"],
    "merge": ["counts.npz"],
    "report": [*ANSWERS, "fitted", "bundle"],
}
KNOWN = ["fitted", "bundle", "bank.csv"]
COUNTS, SHARES = ["3", "4"], ["0.5", "0.1"]
GOOD = {
    "calibration": KNOWN, "base": KNOWN, "new": KNOWN, "known": KNOWN, "with_": KNOWN,
    "anchors": ["anchors.csv", *KNOWN], "items": ["items.txt"], "ledger": ["ledger.db"],
    ("simulate", "items"): ["3", "20"], ("plan", "items"): ["5", "20"],
    "persons": COUNTS, "max_answers": COUNTS, "max_comparisons": COUNTS, "k": COUNTS,
    "answers": COUNTS, "top": COUNTS, "epsilon": SHARES, "answered": SHARES, "level": SHARES,
    "regularisation": SHARES, "target_rmse": SHARES, "memory": ["0.1"], "scale": ["s"],
    "key": ["key.csv", "ABCA"], "sheet": ["s"], "delimiter": [",", ";", "tab"],
    "missing": ["9", "q1:9"], "group": ["sex"], "ignore": ["sex"], "engine": ["memory", "duckdb"],
    "mechanism": ["margins", "pairs", "auto", "sparse-pairs", "laplace-margins"],
    "method": ["auto", "refined", "spectral", "marginal", "conditional", "wle"],
}  # fmt: skip
FILES = {"calibration", "base", "new", "known", "with_", "anchors", "items", "ledger"}
NUMERIC = {
    "persons", "max_answers", "max_comparisons", "k", "answers", "top", "epsilon", "delta", "level",
    "answered", "regularisation", "target_rmse", "at_least", "memory", "seed", "threads", "flag_at",
}  # fmt: skip
SLOW = {"demo", "audit", "report", "plan"}
"""They take a second or so: fewer lines of them."""


def walk(command, path=()):
    if hasattr(command, "commands"):
        for name, child in command.commands.items():
            yield from walk(child, (*path, name))
    else:
        yield path, command


COMMANDS = dict(walk(get_command(app)))


def make_files(folder: Path) -> list[str]:
    """Write good files of every kind and damage copies of them."""
    (folder / "long.csv").write_text(LONG)
    (folder / "wide.csv").write_text(WIDE)
    (folder / "votes.csv").write_text(VOTES)
    (folder / "letters.csv").write_text("id,q0,q1,q2,q3\na,A,B,C,D\nb,B,B,A,A\nc,A,C,C,A\n")
    (folder / "key.csv").write_text("item,answer\nq0,A\nq1,B\nq2,C\nq3,A\n")
    wide = [line.split(",") for line in WIDE.split()]
    write_xlsx(folder / "wide.xlsx", {"s": wide})
    frame = pd.DataFrame(wide[1:], columns=wide[0])
    pyreadstat.write_sav(frame.astype(dict.fromkeys(wide[0][1:4], float)), folder / "wide.sav")
    (folder / "items.txt").write_text("q0\nq1\nq2\nq3\n")
    (folder / "objects.txt").write_text("ash\nelm\noak\n")
    (folder / "anchors.csv").write_text("item,difficulty\nq0,0.5\n")
    rows = [
        dict(zip(LONG.split()[0].split(","), row.split(","), strict=True))
        for row in LONG.split()[1:]
    ]
    (folder / "long.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), folder / "long.parquet")
    (folder / "long.csv.gz").write_bytes(gzip.compress(LONG.encode()))
    made = [
        ("fit", "long.csv", "--out", "fitted", "--ignore", "sex"),
        ("ledger", "create", "ledger.db", "--epsilon", "50"),
        ("counts", "long.csv", "--out", "counts.npz"),
        ("bank", "create", "bank.csv", "fitted", "--scale", "s"),
        ("release", "long.csv", "--items", "items.txt", "--max-answers", "4", "--epsilon", "1",
         "--ledger", "ledger.db", "--out", "bundle"),
    ]  # fmt: skip
    for words in made:
        assert discreet(*words).code == 0, discreet(*words).err
    good = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return [str(path.relative_to(folder)) for path in [*good, *damage(good, folder / "damaged")]]


def damage(files: list[Path], folder: Path) -> list[Path]:
    """Return cut, flipped, prefixed and emptied copies."""
    folder.mkdir()
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
            copy = folder / f"{number}-{how}-{file.name}"
            copy.write_bytes(bad)
            copies.append(copy)
    return copies


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return folder, make_files(folder)


@pytest.fixture
def files(prepared, tmp_path, monkeypatch):
    """Return the names of files, fresh ones: --force replaces what it is given."""
    folder, names = prepared
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return names


ENDLESS = {"studio"}
"""Commands that serve until they are stopped; tests/test_studio.py types them."""


class Writer:
    """Writes one command line after the other."""

    def __init__(self, seed: int, files: list[str]) -> None:
        self.rng, self.files = random.Random(seed), files
        self.lines = 0

    def write(self) -> list[str]:
        quick = [path for path in COMMANDS if path[0] not in {*SLOW, *ENDLESS}]
        slow = [path for path in COMMANDS if path[0] in SLOW and path[0] != "demo"]
        path = self.rng.choice(slow if self.rng.random() < 0.02 else quick)
        words = [*path]
        for option in COMMANDS[path].params:
            wanted = (option.required and self.rng.random() < 0.97) or option.name == "runs"
            wanted = wanted or (path[0] == "dif" and option.name == "group")
            if wanted or self.rng.random() < 0.08:
                words += self.fill(option, path)
        self.lines += 1
        return words

    def fill(self, option, path) -> list[str]:
        if option.param_type_name == "argument":
            return [self.value(option, path)] * self.rng.choice([1] * 19 + [2])
        name = self.rng.choice([*option.opts, *option.secondary_opts])
        if option.name in ("version", "help"):
            return []
        return [name] if option.is_flag else [name, self.value(option, path)]

    def value(self, option, path) -> str:
        roll = self.rng.random()
        if option.name == "runs":  # every number of runs is fine, and most take hours
            return self.rng.choice(["100", "100", "0", "x"])
        is_file = option.param_type_name == "argument" or option.name in FILES
        if is_file and roll < 0.35:
            return self.rng.choice(self.files)
        if roll < 0.85 and (good := self.good(option, path)):
            return self.rng.choice(good)
        if roll < 0.97 and option.name in NUMERIC:
            return self.rng.choice(NUMBERS)
        return self.rng.choice(NUMBERS + WORDS + self.files)

    def good(self, option, path) -> list[str]:
        """Return values that may be right."""
        if option.name in ("out", "checkpoint", "spill", "page"):
            ends = ["", ".csv", ".parquet", ".npz", ".html", ".csv.gz"]
            return [f"out-{self.lines}{end}" for end in ends]
        if option.name in ("file", "source", "files"):
            return OWN_FILES.get(path[0], ANSWERS)
        if option.name == "items" and path[0] == "compare":
            return ["objects.txt"]
        return GOOD.get((path[0], option.name)) or GOOD.get(option.name, [])


@pytest.mark.parametrize("seed", range(PARTS))
def test_no_command_line_is_a_fault_of_the_program(files, seed):
    writer = Writer(seed, files)
    for _ in range(LINES // PARTS):
        words = writer.write()
        ended = discreet(*words)
        where = f"{words}\n{ended.err}"
        assert "inside discreet" not in ended.err, where
        assert "Traceback" not in ended.err, where
        assert ended.code in CODES or (ended.code == 1 and "Error: " in ended.err), where
        if "--json" in words and ended.code not in (0, 1):
            assert ended.out == "", where
        for made in Path().glob("out-*"):
            shutil.rmtree(made) if made.is_dir() else made.unlink()
