"""Measure the structure of the library: size, names, imports.

::

    python -m tools.structure              the figures, beside their limits
    python -m tools.structure --list classes|functions|cycles|vague|folders
    python -m tools.structure walk fit answers.csv --out results
    python -m tools.structure walk --script release_from_spark.py

In: the source files, and the rings of ARCHITECTURE.md. Out: a table of figures. Of a walk, a
command as typed after ``discreet``, or a script: every call from one module into another, at its
first occurrence, how many of them switch package, and between how many pairs of packages, on
standard error. A package is a folder right below ``discreet``; modules that lie flat in it are
foundations and do not count. What runs in other processes is not seen.

`tests/whole/test_structure.py` compares them with `tests/data/structure-limits.csv` and fails when
one gets worse.
"""

from __future__ import annotations

import ast
import csv
import re
import runpy
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

__all__ = [
    "ROOT",
    "Limit",
    "Package",
    "Walk",
    "follow",
    "main",
    "read_limits",
    "read_package",
    "read_rings",
]

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "discreet"
TESTS = ROOT / "tests"
LIMITS = TESTS / "data" / "structure-limits.csv"
HOME = f"{SOURCE}/"

LARGEST_FOLDER = 20

# Words that say nothing about what a variable holds.
VAGUE_WORDS = """
again asked away both drawn far few found given how kept known looked made many most named near one
other own place rest said seen several shown there told wanted what where who whole
"""
VAGUE = frozenset(VAGUE_WORDS.split())

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Module:
    """One source file: its dotted name below the library, its text and its syntax tree."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def folder(self) -> str | None:
        """The package right below the library; None for modules that lie flat in it."""
        first, _, rest = self.name.partition(".")
        is_package = self.path.name == "__init__.py" and first != "__init__"
        return first if rest or is_package else None

    def count_code_lines(self) -> int:
        """Count lines that are neither blank, comment nor docstring."""
        skipped = {line for node in find_docstrings(self.tree) for line in span(node)}
        lines = enumerate(self.text.splitlines(), start=1)
        return sum(1 for n, line in lines if line.strip()[:1] not in ("", "#") and n not in skipped)

    def count_names(self, *names: str) -> int:
        """Count how often names are used, as `Any` or `cast`."""
        uses = (node for node in ast.walk(self.tree) if isinstance(node, ast.Name))
        return sum(node.id in names and isinstance(node.ctx, ast.Load) for node in uses)

    def list_public(self, kinds: tuple[type, ...]) -> set[str]:
        """List public definitions of the given kinds at the top of the module."""
        return {
            node.name
            for node in self.tree.body
            if isinstance(node, DEFINITIONS) and isinstance(node, kinds) and node.name[0] != "_"
        }

    def list_bindings(self) -> Iterator[str]:
        """Yield the name of every variable and parameter, except short-lived loop targets."""
        skipped = {id(node) for node in find_short_lived(self.tree)}
        for node in ast.walk(self.tree):
            if id(node) in skipped:
                continue
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
            elif isinstance(node, ast.arg):
                yield node.arg


def find_docstrings(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the docstrings of a module, its classes and functions."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, *DEFINITIONS)) and ast.get_docstring(node) is not None:
            yield node.body[0]


def span(node: ast.stmt) -> range:
    """Return the line numbers of a statement."""
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def find_short_lived(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield bindings that need no name: of comprehensions, `self`, `other` of `__eq__`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.comprehension):
            yield from ast.walk(node.target)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            is_special = node.name.startswith("__")
            for argument in [*node.args.posonlyargs, *node.args.args]:
                if argument.arg in ("self", "cls") or (is_special and argument.arg == "other"):
                    yield argument


@dataclass(frozen=True)
class Package:
    """All modules of the library."""

    modules: dict[str, Module]

    @property
    def figures(self) -> dict[str, float]:
        """The figures that have limits."""
        bindings = Counter(
            name for module in self.modules.values() for name in module.list_bindings()
        )
        vague = sum(count for name, count in bindings.items() if name in VAGUE)
        lines = self.count_lines()
        modules = self.modules.values()
        any_uses = sum(module.count_names("Any") for module in modules)
        return {
            **lines,
            "Any, per 1,000 code lines": round(1000 * any_uses / lines["code lines"], 1),
            "casts": sum(module.count_names("cast") for module in modules),
            "ignored types": sum(module.text.count("# type: ignore") for module in modules),
            "second headers in files": sum(module.text.count("\n# In: ") for module in modules),
            "match= in tests": sum(
                path.read_text(encoding="utf-8").count("match=") for path in TESTS.rglob("*.py")
            ),
            "class names used twice": len(self.find_twice((ast.ClassDef,))),
            "public function names used twice": len(self.find_twice_functions()),
            "packages in import cycles": sum(map(len, self.find_cycles())),
            "folders with more than 20 modules": len(self.find_large_folders()),
            "vague local names, percent": round(100 * vague / max(bindings.total(), 1), 1),
        }

    def count_lines(self) -> dict[str, int]:
        """Count code lines: of all, of each ring, of each package and of the modules at the top."""
        lines: Counter[str] = Counter()
        rings = {name: ring for ring, names in read_rings().items() for name in names}
        for module in self.modules.values():
            count = module.count_code_lines()
            ring = rings.get(module.name.partition(".")[0], "front")
            for part in ("", f" of the {ring}", f" in {module.folder or 'modules at the top'}"):
                lines[f"code lines{part}"] += count
        return dict(lines)

    def find_twice(
        self, kinds: tuple[type, ...], skip: tuple[str, ...] = ()
    ) -> dict[str, list[str]]:
        """Return public names that several modules define, and where."""
        homes = defaultdict(list)
        for module in self.modules.values():
            if not module.name.startswith(skip or ("\0",)):
                for name in module.list_public(kinds):
                    homes[name].append(module.name)
        return {name: sorted(found) for name, found in sorted(homes.items()) if len(found) > 1}

    def find_twice_functions(self) -> dict[str, list[str]]:
        """Return functions with one name; a command or page may be named like what it calls."""
        return self.find_twice((ast.FunctionDef, ast.AsyncFunctionDef), ("cli.", "studio."))

    def find_large_folders(self) -> dict[str, list[str]]:
        """Return folders with more than 20 modules beside their `__init__`."""
        sizes = Counter(module.path.parent for module in self.modules.values())
        return {
            folder.name: [str(size - 1)]
            for folder, size in sizes.items()
            if size - 1 > LARGEST_FOLDER
        }

    def find_vague(self) -> dict[str, list[str]]:
        """Return vague names with the modules that use them most."""
        uses: dict[str, Counter[str]] = defaultdict(Counter)
        for module in self.modules.values():
            for name in module.list_bindings():
                if name in VAGUE:
                    uses[name][module.name] += 1
        return {
            name: [f"{count} {module}" for module, count in counts.most_common(8)]
            for name, counts in sorted(uses.items(), key=lambda pair: -pair[1].total())
        }

    def find_cycles(self) -> list[tuple[str, ...]]:
        """Return sets of packages that import each other, directly or through others."""
        reach: dict[str, set[str]] = defaultdict(set)
        for importer, imported in self.list_package_imports():
            reach[importer].add(imported)
        for middle in list(reach):
            for start in list(reach):
                if middle in reach[start]:
                    reach[start] |= reach[middle]
        rings = {
            tuple(sorted(end for end in reach[start] if start in reach.get(end, ())))
            for start in list(reach)
            if start in reach[start]
        }
        return sorted(rings)

    def list_package_imports(self) -> set[tuple[str, str]]:
        """List which package imports which at run time; flat modules are not packages."""
        pairs = set()
        for module in self.modules.values():
            for name in list_imports(module.tree):
                target = self.resolve(name)
                if target and module.folder and target.folder and target.folder != module.folder:
                    pairs.add((module.folder, target.folder))
        return pairs

    def resolve(self, name: str) -> Module | None:
        """Return the module that a dotted name lies in."""
        while name and name not in self.modules:
            name = name.rpartition(".")[0]
        return self.modules.get(name)


def list_imports(tree: ast.AST) -> Iterator[str]:
    """Yield the library's own names that are imported at run time, without the library's name."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        names: Iterable[str] = ()
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (
            name.removeprefix("discreet.") for name in names if name.startswith("discreet.")
        )
        yield from list_imports(node)


def read_package(source: Path = SOURCE) -> Package:
    """Read every source file of the library."""
    modules = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "__init__"
        text = path.read_text(encoding="utf-8")
        modules[name] = Module(name, path, text, ast.parse(text))
    return Package(modules)


def read_rings() -> dict[str, list[str]]:
    """Return the first columns of the tables of ARCHITECTURE.md, by ring: the order of imports."""
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = page.split("## Rings, in import order")[1].split("\n## ")[0]
    parts = dict(part.split("\n", 1) for part in section.split("\n### ")[1:])
    row = re.compile(r"^\| `([\w./]+)` \|", re.M)
    return {
        ring: [name.rstrip("/").replace("/", ".") for name in row.findall(rows)]
        for ring, rows in parts.items()
    }


@dataclass(frozen=True)
class Limit:
    """A limit as it was set first, as it is now, and the decision that raised it, if one did."""

    set: float
    limit: float
    decision: str


def read_limits(path: Path = LIMITS) -> dict[str, Limit]:
    """Read the limit of every figure."""
    with path.open(encoding="utf-8", newline="") as file:
        return {
            row["figure"]: Limit(float(row["set"]), float(row["limit"]), row["decision"])
            for row in csv.DictReader(file)
        }


# -- the way of a command ---------------------------------------------------------------------


@dataclass
class Walk:
    """Calls between modules, in the order of their first occurrence."""

    calls: dict[tuple[str, str], None] = field(default_factory=dict)

    @property
    def modules(self) -> list[str]:
        """Every module on the way, in order."""
        return list(dict.fromkeys(module for call in self.calls for module in call))

    @property
    def switches(self) -> list[tuple[str, str]]:
        """The calls that leave a package for another one."""
        return [(a, b) for a, b in self.calls if is_switch(a, b)]

    @property
    def pairs(self) -> set[tuple[str | None, str | None]]:
        """The pairs of packages between which the command switches."""
        return {(package(a), package(b)) for a, b in self.switches}

    def describe(self) -> str:
        """Return the way as text: an arrow for every switch, indented within a package."""
        lines = [f"{'->' if is_switch(a, b) else '  '} {a} calls {b}" for a, b in self.calls]
        total = (
            f"{len(self.modules)} modules, {len(self.switches)} package switches between "
            f"{len(self.pairs)} pairs of packages"
        )
        return "\n".join([*lines, total])


def package(module: str) -> str | None:
    """Return the folder right below the library; None for a module that lies flat in it."""
    first = module.split(".", 1)[0]
    return first if (SOURCE / first).is_dir() else None


def is_switch(caller: str, called: str) -> bool:
    """Tell whether a call leaves one package for another."""
    ends = package(caller), package(called)
    return None not in ends and ends[0] != ends[1]


def follow(task: Callable[[], object]) -> Walk:
    """Run a task and return its way through the library."""
    walk = Walk()

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and (here := name_module(frame)) is not None:
            caller = find_caller(frame)
            if caller not in (None, here):
                walk.calls.setdefault((str(caller), here))

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        task()
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return walk


def name_module(frame: FrameType) -> str | None:
    """Return the library's module that a frame runs in; importing a module does not count."""
    file = frame.f_code.co_filename
    if not file.startswith(HOME) or frame.f_code.co_name == "<module>":
        return None
    return file[len(HOME) : -len(".py")].replace("/", ".").removesuffix(".__init__")


def find_caller(frame: FrameType) -> str | None:
    """Return the library's module that a call came from, through other libraries if need be."""
    before = frame.f_back
    while before is not None:
        if before.f_code.co_name == "<module>" and before.f_code.co_filename.startswith(HOME):
            return None
        if (found := name_module(before)) is not None:
            return found
        before = before.f_back
    return None


def show_walk(arguments: Sequence[str]) -> None:
    """Follow a command or a script."""
    if list(arguments[:1]) == ["--script"]:
        sys.argv = list(arguments[1:])
        walk = follow(lambda: runpy.run_path(arguments[1], run_name="__main__"))
    else:
        from discreet.cli import main as run_command

        walk = follow(lambda: run_command(list(arguments)))
    print(walk.describe(), file=sys.stderr)


def main(arguments: list[str]) -> None:
    """Print the figures, what stands behind one of them, or the way of a command."""
    if arguments[:1] == ["walk"]:
        show_walk(arguments[1:])
        return
    package = read_package()
    if arguments[:1] == ["--list"]:
        lists = {
            "classes": lambda: package.find_twice((ast.ClassDef,)),
            "functions": package.find_twice_functions,
            "cycles": lambda: {ring[0]: list(ring) for ring in package.find_cycles()},
            "vague": package.find_vague,
            "folders": package.find_large_folders,
        }
        for name, homes in lists[arguments[1]]().items():
            print(name, ", ".join(homes), sep=": ")
        return
    limits = read_limits()
    for figure, value in package.figures.items():
        limit = f"{limits[figure].limit:g}" if figure in limits else "none"
        print(f"{figure:40} {value:10g}   limit {limit}")


if __name__ == "__main__":
    main(sys.argv[1:])
