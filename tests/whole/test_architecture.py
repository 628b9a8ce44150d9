"""The shape of the package: one-way imports, one wall, two sources of randomness that never mix."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.structure import read_rings

import discreet

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "src" / "discreet"

PAGE = PACKAGE.parents[1] / "ARCHITECTURE.md"


def read_permissions() -> dict[str, set[str]]:
    """Return the rings that each ring may import."""
    rows = re.findall(r"^\| (\w+) \| [^|]+ \| ([\w, ]+) \|$", PAGE.read_text(), re.M)
    return {ring: set(allowed.split(", ")) for ring, allowed in rows if ring in RINGS}


RINGS = read_rings()
# A module imports only from above it. One name stands for a module or a whole folder.
ORDER = [name for names in RINGS.values() for name in names]
RING = {name: ring for ring, names in RINGS.items() for name in names}
MODULES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
# The ways up: from answers to whoever reads frames, from estimates to pictures, and inside the
# front from what loads a result of any kind to all that know one.
UPCALLS = {
    ("answers/responses.py", "from_dataframe", "readers.answers"),
    ("results/estimate.py", "plot", "figures"),
    ("api/loading.py", "_read_result", "analysis"),
}


def dotted(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def position(name: str) -> tuple[int, int] | None:
    """Return the row of a package, and inside it that of the module or folder where it has one."""
    top, inner = name.split(".")[0], ".".join(name.split(".")[:2])
    if top not in ORDER:
        return None
    return ORDER.index(top), ORDER.index(inner) if inner in ORDER else 0


def test_the_page_lists_every_folder_and_module_at_the_top_once():
    top = {path.parts[0].removesuffix(".py") for path in MODULES} - {"__init__"}
    assert sorted(name for name in ORDER if "." not in name) == sorted(top)
    inside = {dotted(Path(*path.parts[:2])) for path in MODULES if path.parts[0] == "privacy"}
    inside = {name.removesuffix(".__init__") for name in inside} - {"privacy"}
    assert {name for name in ORDER if name.startswith("privacy.")} == inside
    assert len(set(ORDER)) == len(ORDER)


@pytest.fixture(scope="module")
def trees():
    """Every module, parsed once."""
    return {path: ast.parse((PACKAGE / path).read_text()) for path in MODULES}


def runs(node: ast.AST, function: str = "") -> Iterator[tuple[ast.AST, str]]:
    """Yield what is below a node, with the function around it; not what only types need."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        inside = child.name if isinstance(child, ast.FunctionDef) else function
        yield child, inside
        yield from runs(child, inside)


def imported(tree: ast.Module) -> list[tuple[int, str, str]]:
    """Return line, function and name of what a file uses of the package at run time.

    Imports of modules by their names count, and names after a bare ``import discreet``.
    """
    found: list[tuple[int, str, str]] = []
    for node, function in runs(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names = [value.value for value in node.args if isinstance(value, ast.Constant)]
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "discreet":
            names = [ast.unparse(node)]
        found += [(node.lineno, function, name) for name in names]
    return [(line, function, name[9:]) for line, function, name in found if name[:9] == "discreet."]


def find_home(name: str) -> str:
    """Return the module of a public name, or the name itself where that is a module's."""
    return discreet._HOME.get(name, name)


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_a_module_imports_only_from_above_it_and_from_rings_open_to_it(path, trees):
    if str(path) == "__init__.py":
        # Public names are loaded on first use.
        assert not [name for _, function, name in imported(trees[path]) if not function]
        return
    here = position(dotted(path))
    assert here is not None, f"{path} has no row in ARCHITECTURE.md; add it there"
    permitted = read_permissions()[RING[dotted(path).split(".")[0]]]
    for line, function, name in imported(trees[path]):
        home = find_home(name)
        if (str(path), function, home) in UPCALLS or (there := position(home)) is None:
            continue
        ring = RING[home.split(".")[0]]
        assert ring in permitted, f"{path}:{line} imports {home} of the {ring}"
        assert there <= here, f"{path}:{line} imports {home}, which stands below it"


def test_every_upcall_is_one_and_every_ring_is_described(trees):
    made = {
        (str(path), function, find_home(name))
        for path in MODULES
        for _, function, name in imported(trees[path])
    }
    assert made >= UPCALLS
    assert read_permissions().keys() == RINGS.keys() - {"inside `privacy/`"}


def test_the_papers_path_can_be_read_in_a_day():
    path = PAGE.read_text().split("## The paper's path")[1].split("\n## ")[0]
    files = re.findall(r"^\| \d+ \| `([\w/]+\.py)` \|", path, re.M)
    assert files[0] == "models/paper.py"
    assert all(RING[name.split("/")[0]] == "core" for name in files)
    assert sum(len((PACKAGE / name).read_text().splitlines()) for name in files) <= 5_000


def test_imports_are_absolute(trees):
    for path, tree in trees.items():
        relative = [n.lineno for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.level]
        assert not relative, f"{path}: relative import in lines {relative}"


def test_only_the_wall_makes_a_release(trees):
    makers = [
        str(path)
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and "Release" in (getattr(node.func, "id", ""), getattr(node.func, "attr", ""))
    ]
    assert makers, "a release is made somewhere"
    assert set(makers) <= {"privacy/wall.py"}


def test_operating_system_randomness_has_one_door():
    doors = [
        str(path)
        for path in MODULES
        if "urandom" in (code := (PACKAGE / path).read_text()) or "import secrets" in code
    ]
    # The ledger's random id and key are names and a seal, not noise.
    assert set(doors) <= {"secure.py", "privacy/ledger/file.py"}


def test_privacy_code_never_uses_the_statistical_generator():
    # The audit and its statistics are allowed to; noise, mechanisms and wall are not.
    for path in MODULES:
        if path.parts[0] == "privacy" and path.parts[1] not in ("audit.py", "attack_statistics.py"):
            assert "np.random" not in (PACKAGE / path).read_text(), path


def test_no_global_random_state_anywhere():
    for path in MODULES:
        text = (PACKAGE / path).read_text()
        for call in ("seed(", "rand(", "randn(", "randint(", "normal(", "choice("):
            assert f"np.random.{call}" not in text, f"{path}: np.random.{call}"


def test_markup_stands_in_templates_that_escape_and_nowhere_else(trees):
    tag = re.compile(r"</?(p|b|dl|div|figure|h[1-6]|li|ul|svg|t[dhr]|table|span|script|style)\b")
    for path in MODULES:
        nodes = list(ast.walk(trees[path]))
        # A notebook's frame of one line around a table or a sentence is not worth a template.
        framed = {
            inner
            for node in nodes
            if isinstance(node, ast.FunctionDef) and node.name == "_repr_html_"
            for inner in ast.walk(node)
        }
        words = [n for n in nodes if isinstance(n, ast.Constant) and n not in framed]
        found = [n.lineno for n in words if isinstance(n.value, str) and tag.search(n.value)]
        assert not found, f"{path}: markup in lines {found}; put it into a template"
    for template in (PACKAGE / "templates").rglob("*.html"):
        text = template.read_text()
        assert "safe" not in re.findall(r"\|\s*(\w+)", text), f"{template.name} shows unescaped"
        assert "autoescape" not in text


# Folders of tests without a folder of the package: all of it, the figures, known answers.
BESIDE = {"whole", "experiments", "data"}


def test_tests_lie_as_the_package_does():
    folders = {path.name for path in TESTS.iterdir() if path.is_dir() and path.name[0] not in "._"}
    assert not {name for name in folders - BESIDE if not (PACKAGE / name).is_dir()}
    single = {path.stem.removeprefix("test_") for path in TESTS.glob("test_*.py")}
    assert not {name for name in single if not (PACKAGE / f"{name}.py").is_file()}


def test_a_test_file_that_is_named_anywhere_exists():
    root = TESTS.parent
    texts = [*root.glob("*.md"), *root.glob("docs/**/*.md"), *PACKAGE.rglob("*.py")]
    named = {name for text in texts for name in re.findall(r"tests/[\w/]+\.py", text.read_text())}
    assert "tests/privacy/test_sensitivity.py" in named
    assert not {name for name in named if not (root / name).is_file()}


def test_no_two_test_files_have_one_name():
    names = [path.name for path in TESTS.rglob("test_*.py")]
    assert len(names) == len(set(names))
