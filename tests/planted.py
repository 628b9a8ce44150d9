"""Faults planted in the statistics, to see which of them a test notices.

::

    python -m tests.planted draw                  draws tests/data/planted-faults.csv anew
    python -m tests.planted run --column after    tries every fault in a copy of the repository

In: the sources of `PLACES`. A fault changes one sign: ``+`` for ``-``, ``*`` for ``/``, ``<`` for
``<=``, ``==`` for ``!=``, a whole number by one, another one by a factor of two. All signs of all
places are equally likely. What no result can depend on is left out: docstrings, types, errors, what
stands inside of texts, single indices, axes and the like.

Out: `FAULTS` faults and `RESERVE` more, in the order in which they were drawn. One that changes
nothing is equivalent: its row says why, and the next of the reserve takes its place. ``run`` plants
each, runs the tests near it and writes "caught" or "survived" into the column it is told; "slow" if
they took longer than `LIMIT`, "gone" if the line stands there no more. Tests that fail without a
fault catch nothing: they end the run.
"""

from __future__ import annotations

import argparse
import ast
import csv
import io
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "discreet"
LIST = Path(__file__).parent / "data" / "planted-faults.csv"
SEED = 20250607
FAULTS, RESERVE = 60, 40
#: Seconds that the tests near a fault may take.
LIMIT = 1500
PLACES = (
    *("items", "persons", "scales", "report", "answers/survey.py"),
    *("models/facets", "models/noisy"),
)
COLUMNS = ("number", "file", "line", "old", "new", "before", "after", "why")

SWAPS = {
    "+": "-", "-": "+", "*": "/", "/": "*", "//": "/", "**": "*",
    "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=",
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
}  # fmt: skip
#: Arguments that say how to compute, print or keep, and nothing about a number.
SILENT = frozenset(["axis", "indent", "keepdims", "maxsize", "minlength", "ndmin", "stacklevel"])

#: The tests near a file, the nearest first; the first beginning of a path that fits counts.
WHOLE = (
    "tests/whole/test_asymmetric.py",
    "tests/whole/test_formulas.py",
    "tests/whole/test_golden.py",
)
NEAR = {
    "items/": (
        *("tests/items/test_item_definitions.py", "tests/items/test_limits_of_summaries.py"),
        "tests/items",
    ),
    "persons/": ("tests/persons/test_person_definitions.py", "tests/persons"),
    "scales/": ("tests/scales/test_placing.py", "tests/scales"),
    "report/": (
        *("tests/report/test_limits_of_findings.py", "tests/report/test_picture_definitions.py"),
        *("tests/report", "tests/figures"),
    ),
    "answers/survey.py": ("tests/models/test_weights.py",),
    "models/facets/": (
        *("tests/models/test_facet_definitions.py", "tests/models/test_facets.py"),
        "tests/items/test_raters.py",
    ),
    "models/noisy/totals/": (
        *("tests/models/test_totals_fit.py", "tests/publishing/test_step_release.py"),
        "tests/privacy/test_totals.py",
    ),
    "models/noisy/": (
        *("tests/models/test_noisefit.py", "tests/publishing/test_spectral_release.py"),
        *("tests/publishing/test_noisy.py", "tests/privacy/test_comparisons_release.py"),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """One sign of one line, and what stands there instead."""

    file: str
    line: int
    old: str
    new: str


# -- drawing -----------------------------------------------------------------------------------


def draw_faults() -> list[Fault]:
    """Draw faults and reserve from all signs of all places."""
    faults = [fault for path in list_sources() for fault in list_faults(path)]
    return random.Random(SEED).sample(faults, FAULTS + RESERVE)


def list_sources() -> list[Path]:
    """List the files of the places, in a fixed order."""
    paths = [SOURCE / place for place in PLACES]
    files = [file for path in paths for file in ([path] if path.suffix else path.rglob("*.py"))]
    return sorted(files)


def list_faults(path: Path) -> Iterator[Fault]:
    """Yield one fault for every sign of a file that can matter."""
    text = path.read_text()
    lines = text.splitlines()
    rng = random.Random(f"{SEED} {path.relative_to(SOURCE)}")
    for (line, start, end), new in sorted(set(find_signs(text, rng))):
        old = lines[line - 1]
        changed = f"{old[:start]}{new}{old[end:]}"
        yield Fault(str(path.relative_to(SOURCE)), line, old.strip(), changed.strip())


def find_signs(text: str, rng: random.Random) -> Iterator[tuple[tuple[int, int, int], str]]:
    """Yield where each sign stands (line, start, end) and what to put there."""
    operators = [
        (*token.start, token.end[1], token.string)
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.OP and token.string in SWAPS
    ]
    # The syntax tree counts bytes, tokens count letters.
    lines = [line.encode() for line in text.splitlines()]

    def find_place(line: int, byte: int) -> tuple[int, int]:
        return line, len(lines[line - 1][:byte].decode())

    for node in walk_what_matters(ast.parse(text)):
        if isinstance(node, ast.Constant):
            line, start = find_place(node.lineno, node.col_offset)
            _, end = find_place(line, node.end_col_offset)
            yield (line, start, end), change_number(node.value, rng)
        for first, second in find_operands(node):
            before = find_place(first.end_lineno, first.end_col_offset)
            after = find_place(second.lineno, second.col_offset)
            for line, start, end, sign in operators:
                if before <= (line, start) and (line, end) <= after:
                    yield (line, start, end), SWAPS[sign]


def change_number(value: float, rng: random.Random) -> str:
    """Return another number."""
    if isinstance(value, int):
        return repr(value + rng.choice([-1, 1]))
    return repr(value * rng.choice([0.5, 2.0]) if value else 1.0)


def find_operands(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what stands before and after each operator of a node."""
    if isinstance(node, ast.BinOp):
        yield node.left, node.right
    elif isinstance(node, ast.Compare):
        yield from pairwise([node.left, *node.comparators])
    elif isinstance(node, ast.AugAssign):
        yield node.target, node.value


def walk_what_matters(node: ast.AST) -> Iterator[ast.AST]:
    """Yield operations and numbers, but for those that no result depends on."""
    for child in list_parts(node):
        yield from walk_what_matters(child)
    is_number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
    if is_number or isinstance(node, ast.Compare):
        yield node
    elif isinstance(node, ast.BinOp):
        if not (is_text(node.left) or is_text(node.right)):
            yield node
    elif isinstance(node, ast.AugAssign) and not is_text(node.value):
        yield node


def list_parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the children of a node without types, texts, indices and axes."""
    if isinstance(node, ast.Raise | ast.JoinedStr):
        return
    if isinstance(node, ast.keyword) and node.arg in SILENT:
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        parts = value if isinstance(value, list) else [value]
        yield from (
            part
            for part in parts
            if isinstance(part, ast.AST) and not (name == "slice" and is_index(part))
        )


def is_index(node: ast.AST) -> bool:
    """Tell whether a subscript is one number: another one would not even run."""
    number = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(number, ast.Constant)


def is_text(node: ast.AST) -> bool:
    """Tell whether an operand is a text or a list: ``+`` then joins and ``%`` fills in."""
    if isinstance(node, ast.BinOp):
        return is_text(node.left) or is_text(node.right)
    if isinstance(node, ast.IfExp):
        return is_text(node.body) or is_text(node.orelse)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str | bytes)
    return isinstance(node, ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp)


# -- planting ----------------------------------------------------------------------------------


def plant(folder: Path, row: dict[str, str]) -> str | None:
    """Write the fault into a copy and return what stood there; None where it stands no more.

    The line is found by its words: other lines may have moved it.
    """
    path = folder / "src" / "discreet" / row["file"]
    text = path.read_text() if path.exists() else ""
    lines = text.splitlines(keepends=True)
    found = [number for number, line in enumerate(lines) if line.strip() == row["old"]]
    if not found:
        return None
    nearest = min(found, key=lambda number: abs(number + 1 - int(row["line"])))
    lines[nearest] = lines[nearest].replace(row["old"], row["new"])
    write_anew(path, "".join(lines), int(row["number"]))
    return text


def write_anew(path: Path, text: str, number: int) -> None:
    """Write a source whose time is its own, so that no compiled file of another is taken for it."""
    later = path.stat().st_mtime + 10 + number
    path.write_text(text)
    os.utime(path, (later, later))


def list_tests(file: str) -> list[str]:
    """List the tests near a file: those of all formulas, its package's, its own examples."""
    near = next(tests for beginning, tests in NEAR.items() if file.startswith(beginning))
    return [*WHOLE, f"src/discreet/{file}", *near]


def try_fault(folder: Path, row: dict[str, str]) -> str:
    """Plant one fault, run the tests near it, and take it out again."""
    whole = plant(folder, row)
    if whole is None:
        return "gone"
    path = folder / "src" / "discreet" / row["file"]
    loops = Path(tempfile.mkdtemp(dir=folder.parent)) if "compiled_loop" in whole else None
    try:
        return run_tests(folder, list_tests(row["file"]), loops)
    finally:
        write_anew(path, whole, int(row["number"]) + 1000)
        if loops:
            shutil.rmtree(loops)


def check_sound(folder: Path, file: str) -> None:
    """Stop where the tests near a file fail without a fault."""
    ended = run_tests(folder, list_tests(file))
    if ended != "survived":
        sys.exit(f"the tests near {file} do not pass as they are ({ended}): repair them first")


def run_tests(folder: Path, tests: list[str], loops: Path | None = None) -> str:
    """Run tests of a copy until the first that fails."""
    program = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "--doctest-modules"]
    paths = os.pathsep.join(map(str, (folder / "src", folder)))
    variables = {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"}
    variables |= {"NUMBA_CACHE_DIR": str(loops)} if loops else {}
    try:
        ended = subprocess.run(
            [*program, *tests], cwd=folder, env=variables, capture_output=True, timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        return "slow"
    if ended.returncode > 1:
        sys.exit(ended.stdout.decode()[-3000:] + ended.stderr.decode()[-3000:])
    return "caught" if ended.returncode else "survived"


def copy_tree(folder: Path) -> Path:
    """Copy what git knows of, as it stands now; tests of data beside the repository skip there."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, check=True, text=True
    )
    for name in listed.stdout.splitlines():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copy2(ROOT / name, folder / name)
    return folder


# -- the list ----------------------------------------------------------------------------------


def read_list() -> list[dict[str, str]]:
    """Read the list."""
    with LIST.open(newline="") as file:
        return list(csv.DictReader(file))


def write_list(rows: list[dict[str, str]]) -> None:
    """Write the list."""
    with LIST.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(rows)


def choose(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the first faults that are not equivalent."""
    return [row for row in rows if not row["why"].startswith("equivalent")][:FAULTS]


def run(column: str, only: list[str]) -> None:
    """Try the faults that have no result in a column yet, or only those of some numbers."""
    rows = read_list()
    with tempfile.TemporaryDirectory() as folder:
        copy, sound = copy_tree(Path(folder) / "copy"), set()
        for row in choose(rows):
            if row["number"] in only if only else not row[column]:
                if row["file"] not in sound and (copy / "src" / "discreet" / row["file"]).exists():
                    check_sound(copy, row["file"])
                    sound.add(row["file"])
                row[column] = try_fault(copy, row)
                print(row["number"], row["file"], row["line"], row[column], flush=True)
                if not only:
                    write_list(rows)


def main() -> None:
    """Draw the list, or try what is on it."""
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description=__doc__)
    parser.add_argument("task", choices=["draw", "run"])
    parser.add_argument("--column", choices=["before", "after"], default="after")
    parser.add_argument("--only", nargs="*", default=[], help="numbers of faults; writes nothing")
    given = parser.parse_args()
    if given.task == "draw":
        faults = enumerate(draw_faults(), start=1)
        write_list([{"number": str(number), **vars(fault)} for number, fault in faults])
    else:
        run(given.column, given.only)


if __name__ == "__main__":
    main()
