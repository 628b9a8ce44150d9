"""The shape of the package: one-way imports, one wall, two sources of randomness that never mix."""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "src" / "discreet"

PAGE = PACKAGE.parents[1] / "ARCHITECTURE.md"


def read_order() -> list[str]:
    """Return the first column of the page's tables of packages: the order of imports."""
    tables = PAGE.read_text().split("## Packages, in import order")[1].split("\n## ")[0]
    names = re.findall(r"^\| `([\w./]+)` \|", tables, re.M)
    return [name.rstrip("/").replace("/", ".") for name in names]


# A module imports only from above it. One name stands for a module or a whole folder.
ORDER = read_order()
MODULES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))


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


def typing_only(tree: ast.Module) -> set[ast.AST]:
    guarded: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            guarded.update(ast.walk(node))
    return guarded


@pytest.fixture(scope="module")
def trees():
    """Every module, parsed once."""
    return {path: ast.parse((PACKAGE / path).read_text()) for path in MODULES}


def imported(tree: ast.Module) -> list[tuple[int, str]]:
    """Names of the package's own modules that a file imports at run time."""
    guarded = typing_only(tree)
    found = []
    for node in ast.walk(tree):
        if node in guarded:
            continue
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return [(line, name[9:]) for line, name in found if name.startswith("discreet.")]


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_a_module_imports_only_from_above_it(path, trees):
    if str(path) == "__init__.py":
        assert not imported(trees[path])  # public names are loaded on first use
        return
    here = position(dotted(path))
    assert here is not None, f"{path} has no row in ARCHITECTURE.md; add it there"
    for line, name in imported(trees[path]):
        there = position(name)
        if there is not None:
            assert there <= here, f"{path}:{line} imports {name}, which stands below it"


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


def test_modules_stay_small():
    for path in MODULES:
        lines = len((PACKAGE / path).read_text().splitlines())
        assert lines <= 600, f"{path} has {lines} lines; make it a folder of small modules"


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
