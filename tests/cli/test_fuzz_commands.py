"""Command lines that nobody would write: never a fault of the program, never an abort.

The grammar is the program itself: commands, options and their types are taken from it, so that a
new one is in here at once. Files are good, damaged, edited or something else; values are of the
wrong kind, size or sign. Every line is drawn from a seed; ``tests/fuzz_files.py`` makes the files.
"""

import inspect
import random
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, get_args, get_origin

import pytest
from typer.main import get_command

from commandline import discreet
from discreet.cli.app import app
from fuzz_files import ARTEFACTS, KNOWN, edit, make_files

FAST, SLOW_LINES = 200, 1000
PARTS = 10
CODES = {0, 2, 3, 4, 5}
"""Code 1 is for failures of solvers and disks; where it comes, a sentence of ours comes with it."""
LONGEST = 6000
"""Characters of a message: whoever types 5,000 digits knows them already."""

NUMBERS = [
    "-1", "0", "1", "2", "3", "5", "0.5", "1e-6", "9" * 20, "9" * 5000, "-1e308", "1e308", "1e-400",
    "1e-308", "1e-320", "nan", "inf", "-inf", "", "x", "0x10", "\uff11", "1_0", "+2",
]  # fmt: skip
WORDS = [
    "", " ", "person", "item", "response", "q1", "sex", "nope", "9,99", ",", "margins", "pairs",
    "marginal", "conditional", "spectral", "memory", "duckdb", "long", "wide", "first", "uniform",
    "add-remove", "\udcff", "a" * 300, "--", "*", "[", "wle", "bh", "\U0001f600", "a\nb", "\x1b[1A",
]  # fmt: skip
ANSWERS = [
    "long.csv", "long.jsonl", "long.parquet", "long.csv.gz", "wide.csv", "wide.xlsx", "wide.ods",
    "wide.sav", "wide.dta", "letters.csv", "steps.csv",
]  # fmt: skip
BUNDLES = ["bundle", "votes-bundle"]
LEDGERS = ["ledger.db", "signed.db"]
REQUESTS = ["request.json", "signed.json"]
COUNTS, SHARES = ["3", "4", "30"], ["0.5", "0.1"]
GOOD = {
    "calibration": KNOWN, "base": KNOWN, "new": KNOWN, "anchors": ["anchors.csv", *KNOWN],
    "items": ["items.txt", "items.csv"], "ledger": LEDGERS, "request": REQUESTS,
    "bundle": BUNDLES, "by": BUNDLES, "audit": ["audit.json"], "about": ["about.toml"],
    "policy": ["policy.toml"], "forms": ["forms.csv"], "signing_key": ["ada.key"],
    "public_key": ["ada.key.pub"], "name": ["Ada", "north"], "population": ["north"],
    "release": ["1", "2"], "first": ["q0", "a"], "second": ["q1", "e"],
    "persons": COUNTS, "judges": COUNTS, "max_answers": COUNTS, "max_comparisons": COUNTS,
    "k": COUNTS, "answers": COUNTS, "top": COUNTS, "epsilon": SHARES, "answered": SHARES,
    "level": SHARES, "regularisation": SHARES, "target_rmse": SHARES, "memory": ["0.1"],
    "scale": ["s", "500,100"], "key": ["key.csv", "ABCA"], "sheet": ["s"],
    "delimiter": [",", ";", "tab"], "missing": ["9", "q1:9"], "group": ["sex"], "ignore": ["sex"],
    "engine": ["memory", "duckdb"], "plausible": ["2"], "folds": ["8"], "simulate": ["2"],
    "mechanism": ["margins", "pairs", "auto", "sparse-pairs", "laplace-margins", "totals"],
    "method": ["auto", "refined", "spectral", "marginal", "conditional", "wle"],
    "spread": ["0.5", "3", "5"],
    ("simulate", "items"): ["3", "20"], ("plan", "items"): ["5", "20"], ("audit", "items"): ["4"],
    ("compare", "items"): ["objects.txt"], ("compare", "file"): ["votes.csv"],
    ("compare", "request"): ["votes.json"], ("bank", "file"): ["bank.csv", "new.csv"],
    ("ledger", "file"): LEDGERS, ("ledger", "answers"): ANSWERS, ("steward", "file"): ["ada.key"],
    ("table", "files"): ["counts.npz", "folds.npz"], ("drift", "files"): KNOWN,
    ("result", "source"): [*ANSWERS, *KNOWN], ("link", "answers_a"): ANSWERS,
    ("plan", "difficulty_spread"): ["0.5", "3", "5"], ("plan", "ability_spread"): ["0.5", "3", "5"],
}  # fmt: skip
"""Values that may be right, by parameter or by command and parameter."""
RIGHT = [
    *[f"{one} {file}" for one in ("fit", "check", "top -k 2", "table counts --out OUT.npz")
      for file in ("long.csv --ignore sex", "wide.xlsx --ignore sex", "wide.ods --ignore sex")],
    *[f"result report {one} --force" for one in ("fitted", "stepped", "keyed", "bundle")] * 2,
    *[f"score long.csv --ignore sex --with {one}" for one in ("fitted", "bundle", "estimate.json")],
    *[f"result compare {one} q0 q1" for one in KNOWN],
    *[f"top {one} -k 2" for one in KNOWN],
    *[f"drift {one} fitted" for one in KNOWN],
    *[f"link {one} fitted" for one in KNOWN],
    *[f"fit long.csv --ignore sex --anchors {one}" for one in ("fitted", "bank.csv")],
    "fit long.csv --ignore sex --anchors anchors.csv", *[f"verify {one}" for one in BUNDLES],
    *[f"steward translate {one} --language de --out OUT" for one in BUNDLES],
    *[f"steward correct {one} --by bundle --because wrong --out OUT.md" for one in BUNDLES],
    *[f"steward withdraw {one} --because wrong --out OUT.md" for one in BUNDLES],
    *[f"steward approve {one}" for one in REQUESTS],
    "steward approve request.json --signing-key ada.key",
    *[f"release long.csv --request {one} --out OUT" for one in ("signed.json", "request.json")],
    "release long.csv --items items.txt --epsilon 0.1 --ledger ledger.db --audit audit.json"
    " --out OUT --about about.toml --mechanism margins --ignore sex --max-answers 4",
    "release steps.csv --items items.csv --epsilon 0.1 --ledger ledger.db --out OUT --persons 40",
    "steward propose --items items.txt --epsilon 0.1 --persons 30 --ledger signed.db --out OUT.json"
    " --about about.toml --audit audit.json --mechanism margins",
    *[f"table merge {one} counts.npz --out OUT.npz" for one in ("counts.npz", "folds.npz")],
    *[f"{one} {file}" for one in ("fit", "top -k 2") for file in ("counts.npz", "folds.npz")],
    *[f"ledger {one} {file}" for one in ("show", "report") for file in LEDGERS],
    "ledger create OUT.db --epsilon 1 --policy policy.toml", "ledger population ledger.db south",
    "ledger approver signed.db Bob --public-key ada.key.pub --propose OUT.json",
    "ledger approver signed.db --request request.json", "ledger resume ledger.db 1 --out OUT",
    "steward key ada.key --show", "bank show bank.csv", "bank add bank.csv fitted",
    "bank create OUT.csv estimate.json --scale s", "compare rank votes.csv",
    "compare release votes.csv --request votes.json --out OUT",
    "dif long.csv --group sex", "table mislabelled wide.xlsx --ignore sex",
    "fit letters.csv --key key.csv --ignore id --out OUT", "result report ranking.json",
    "result report plan.json",
    "simulate --persons 20 --items 5 --answered 0.5 --steps 2 --seed 1 --out OUT.csv",
    "plan --persons 500 --items 5 --epsilon 1 --ability-spread 2 --difficulty-spread 2 --top 2",
    *[f"plan --persons 500 --items 5 --epsilon {one} --compare" for one in ("1", "1e-9", "1e-320")],
    "plan --persons 500 --items 5 --target-rmse 0.5 --steps 2 --answers 4 --ability-mean 1",
    "audit --mechanism pairs --epsilon 1 --items 4 --runs 100 --power 0.8",
]  # fmt: skip
"""Lines that are right until something is changed."""
MADE = ("out", "checkpoint", "spill", "page", "propose")
"""Parameters that name what is written."""
SLOW = {"audit", "plan"}
"""They take a second or so: fewer lines of them."""
LEFT_OUT = {"studio", "demo"}
"""One serves until it is stopped (tests/studio/test_studio.py types it), one takes no file."""
ENDLESS = {
    ("audit", "runs"): ["100", "0", "x"],
    ("plan", "simulate"): ["2", "0", "x"],
    ("plan", "page"): ["fitted", "items.txt/page.html"],
}
"""Any number is right here, and most take hours."""


def walk(command, typed, path=()):
    """Yield every command with its parser, and with the signature that it was made from."""
    called = {
        (one.name or one.callback.__name__): one.callback for one in typed.registered_commands
    }
    families = {one.typer_instance.info.name: one.typer_instance for one in typed.registered_groups}
    for name, child in command.commands.items():
        if name in families:
            yield from walk(child, families[name], (*path, name))
        else:
            yield (*path, name), child, inspect.signature(called[name]).parameters


COMMANDS = {path: (parser, hints) for path, parser, hints in walk(get_command(app), app)}


def kind_of(hint):
    """Return what a parameter takes: a type, or the words of a choice."""
    while get_origin(hint) not in (None, Literal):
        hint = get_args(hint)[0]
    return list(get_args(hint)) if get_origin(hint) is Literal else hint


class Writer:
    """Writes one command line after the other: a right one that is changed, or a wild one."""

    def __init__(self, seed: int, files: list[str]) -> None:
        self.rng, self.files = random.Random(seed), files
        self.lines = 0

    def write(self) -> list[str]:
        self.lines += 1
        wild = self.rng.random() < 0.3
        slow = self.rng.random() < 0.05
        if wild:
            paths = [one for one in COMMANDS if one[0] not in LEFT_OUT and (one[0] in SLOW) == slow]
            return self.write_wild(self.rng.choice(paths))
        lines = [one.split() for one in RIGHT if (one.split()[0] in SLOW) == slow]
        return self.change(self.rng.choice(lines))

    def change(self, words: list[str]) -> list[str]:
        """Return a line with a file edited, a word replaced or options added."""
        path = tuple(words[: 2 if (words[0], words[1]) in COMMANDS else 1])
        made = [word.replace("OUT", f"out-{self.lines}") for word in words]
        own = [place for place, word in enumerate(words) if word in ARTEFACTS]
        roll = self.rng.random()
        if own and roll < 0.6:
            place = self.rng.choice(own)
            made[place] = edit(words[place], f"edited-{self.lines}", self.rng)
        elif roll < 0.8:
            place = self.rng.randrange(len(path), len(words))
            made[place] = self.rng.choice(NUMBERS + WORDS + self.files)
        else:
            parser, hints = COMMANDS[path]
            options = [one for one in parser.params if one.param_type_name == "option"]
            for option in self.rng.choices(options, k=2):
                made += self.fill(option, path, hints)
        return made

    def write_option(self, path, option) -> list[str]:
        """Return a right line, where there is one, with one more option."""
        self.lines += 1
        lines = [one for one in RIGHT if tuple(one.split()[: len(path)]) == path]
        right = self.rng.choice(lines).replace("OUT", f"out-{self.lines}").split() if lines else []
        return [*(right or self.write_wild(path)), *self.fill(option, path, COMMANDS[path][1])]

    def write_wild(self, path) -> list[str]:
        """Return a line of options that have nothing to do with each other."""
        parser, hints = COMMANDS[path]
        words = [*path]
        for option in parser.params:
            wanted = option.required and self.rng.random() < 0.97
            if wanted or option.name == "runs" or self.rng.random() < 0.08:
                words += self.fill(option, path, hints)
        return words

    def fill(self, option, path, hints) -> list[str]:
        if option.name in ("version", "help"):
            return []
        if option.param_type_name == "argument":
            times = self.rng.choice([1] * 19 + [2] if option.nargs == 1 else [1, 2, 2, 3])
            return [self.value(option, path, hints) for _ in range(times)]
        name = self.rng.choice([*option.opts, *option.secondary_opts])
        return [name] if option.is_flag else [name, self.value(option, path, hints)]

    def value(self, option, path, hints) -> str:
        if (path[0], option.name) in ENDLESS:
            return self.rng.choice(ENDLESS[path[0], option.name])
        kind = kind_of(hints[option.name].annotation)
        good, roll = self.good(option, path), self.rng.random()
        if isinstance(kind, list):
            return self.rng.choice(kind if roll < 0.9 else WORDS)
        if good and roll < 0.5:
            return self.rng.choice(good)
        if kind in (int, float) and roll < 0.97:
            return self.rng.choice(NUMBERS)
        if (kind is Path or option.param_type_name == "argument") and roll < 0.97:
            return self.rng.choice(self.files)
        return self.rng.choice(NUMBERS + WORDS + self.files)

    def good(self, option, path) -> list[str]:
        """Return values that may be right."""
        if (own := GOOD.get((path[0], option.name))) is not None:
            return own
        if option.name in MADE:
            ends = ["", ".csv", ".parquet", ".npz", ".html", ".csv.gz", ".json"]
            return [f"out-{self.lines}{end}" for end in ends]
        if option.name in ("file", "source", "files"):
            return ANSWERS
        return GOOD.get(option.name, [])


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
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True, symlinks=True)
    monkeypatch.chdir(tmp_path)
    return names


def find_fault(words, ended) -> str:
    """Return what is wrong with how a command line ended; nothing if nothing is."""
    if "inside discreet" in ended.err or "Traceback" in ended.err:
        return "fault"
    if ended.code not in CODES and not (
        ended.code == 1 and ("Error: " in ended.err or "audit" in words)
    ):
        return f"code {ended.code}"
    if "--json" in words and ended.code not in (0, 1) and ended.out:
        return "output beside an error"
    return "long message" if len(ended.err) > LONGEST else ""


def type_lines(lines: Iterable[list[str]]) -> list[tuple[str, list[str], str]]:
    """Type command lines; return those that ended badly."""
    bad = []
    for words in lines:
        ended = discreet(*words)
        if fault := find_fault(words, ended):
            bad.append((fault, words, ended.err))
        for made in [*Path().glob("out-*"), *Path().glob("edited-*")]:
            shutil.rmtree(made) if made.is_dir() else made.unlink()
    return bad


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_an_option_without_its_value_is_named(path):
    options = [one for one in COMMANDS[path][0].params if one.param_type_name == "option"]
    for option in (one for one in options if not one.is_flag and one.name != "help"):
        for name in [*option.opts, *option.secondary_opts]:
            ended = discreet(*path, name)
            assert (ended.code, ended.out) == (2, ""), (path, name)
            assert ended.err == f"Error: Option '{name}' requires an argument.\n"


@pytest.mark.parametrize("seed", range(2))
def test_no_command_line_is_a_fault_of_the_program(files, seed):
    writer = Writer(seed, files)
    assert not type_lines(writer.write() for _ in range(FAST // 2))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 100 + PARTS))
def test_no_command_line_of_a_thousand_is_a_fault_of_the_program(files, seed):
    writer = Writer(seed, files)
    assert not type_lines(writer.write() for _ in range(SLOW_LINES // PARTS))


@pytest.mark.slow
@pytest.mark.parametrize("path", [one for one in COMMANDS if one[0] not in LEFT_OUT], ids=" ".join)
def test_no_option_of_a_command_is_a_fault_of_the_program(files, path):
    writer = Writer(len(" ".join(path)), files)
    options = COMMANDS[path][0].params
    assert not type_lines(writer.write_option(path, one) for one in options)
