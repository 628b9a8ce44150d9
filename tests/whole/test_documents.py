"""Every document keeps its word: code runs, commands run, links lead somewhere."""

import ast
import doctest
import os
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from tools import pictures
from tools.documents import COMMANDS_NOTE, PAGES, group_names, measure_prose

from commandline import PAGES_WITH_OUTPUT
from discreet.secure import SeededSource, SystemSource

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md")]
    if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
)
BLOCK = re.compile(
    r"(?P<skip><!-- not run: [^>]+ -->\n+)?^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.M | re.S
)
THEORY = sorted((ROOT / "experiments").glob("theory_*.py"))
RELEASES = {"release", "release_comparisons"}
LINK = re.compile(r"\[[^\]]*\]\((?!https?:|mailto:|#)(?P<target>[^)#\s]+)")


def blocks(path, language):
    return [
        match["code"]
        for match in BLOCK.finditer(path.read_text())
        if match["language"] == language and not match["skip"]
    ]


def with_blocks():
    return [p for p in DOCUMENTS if blocks(p, "python") or commands(p)]


def commands(path):
    """The ``$ discreet ...`` lines of console blocks, with continuation lines joined.

    A page whose outputs are compared (test_cli_docs.py) has had its commands run there.
    """
    if path.name in PAGES_WITH_OUTPUT:
        return []
    found = []
    for block in blocks(path, "console"):
        joined = block.replace("\\\n", " ")
        found += [line[2:] for line in joined.splitlines() if line.startswith("$ discreet")]
    return found


IN_ORDER = ("survey.md",)
"""Pages whose code makes the files that their commands read."""


def list_in_order(path):
    """Code and commands of a page as they stand in it; what is said of its files is no error."""
    yield "from discreet.errors import DiscreetWarning"
    yield "warnings.simplefilter('ignore', DiscreetWarning)"
    for match in BLOCK.finditer(path.read_text()):
        if match["language"] == "python":
            yield match["code"]
        elif match["language"] == "console":
            joined = match["code"].replace("\\\n", " ")
            lines = [line[2:] for line in joined.splitlines() if line.startswith("$ discreet")]
            yield from map(typed, lines)


PROGRAMS = Path(sys.executable).parent
"""Where the command that a page calls is."""
PERMITTED = """
import warnings; from discreet.errors import ItemsLeftOut as left_out
warnings.simplefilter("error"); warnings.simplefilter("ignore", left_out)
"""
"""Real data leave items without a number; other warnings are errors in a document."""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run Python in an empty folder, in a namespace of its own; what it prints is captured.

    Noise is the same in every run: what a page shows may not fail by chance.
    """
    words = SeededSource(1).words
    monkeypatch.setattr(SystemSource, "words", lambda _, n, /: words(n))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("PATH", f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}")

    def execute(name, lines):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile("\n".join(lines), name, "exec"), {"__name__": "__main__"})  # noqa: S102

    return execute


def typed(command):
    """Python that runs a command as a user types it."""
    first, *arguments = shlex.split(command)
    assert first == "discreet"
    assert not {"|", ">", "<", "&&", ";"} & set(arguments), "a shell is needed for this"
    return f"from discreet.cli import main; assert main({arguments!r}) == 0, {command!r}"


@pytest.mark.parametrize("path", with_blocks(), ids=lambda p: str(p.relative_to(ROOT)))
def test_code_and_commands_in_a_document_run(path, run):
    lines = [*map(typed, commands(path)), PERMITTED, *blocks(path, "python")]
    if path.name in IN_ORDER:
        lines = [PERMITTED, *list_in_order(path)]
    run(path.name, lines)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_in_a_document_lead_somewhere(path):
    for match in LINK.finditer(path.read_text()):
        target = (path.parent / match["target"]).resolve()
        assert target.exists(), f"{path}: broken link to {match['target']}"


def test_no_document_or_message_installs_from_an_index():
    """The package is on no index: its extras are installed from a clone."""
    paths = [*DOCUMENTS, *(ROOT / "src").rglob("*.py")]
    by_name = re.compile(r"pip install\s[^`\n]*\bdiscreet\[")
    assert [str(path) for path in paths if by_name.search(path.read_text())] == []


@pytest.mark.parametrize("script", THEORY, ids=lambda path: path.stem)
def test_the_theory_page_shows_every_figure_and_its_command(script):
    page = (ROOT / "docs" / "theory.md").read_text()
    picture = f"images/{script.stem.replace('_', '-')}.png"
    assert f"]({picture})\n\n`python -m experiments.{script.stem} --quick`" in page
    assert (ROOT / "docs" / picture).stat().st_size > 10_000


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_what_its_tool_writes(name):
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert page == PAGES[name](), "write it anew: python -m tools.documents write"


def test_every_public_name_has_a_task():
    assert "More" not in group_names()


def test_every_public_name_command_and_option_is_documented_once():
    names = re.findall(r"^\| `(discreet\.\w+)` \|", (ROOT / "docs" / "api.md").read_text(), re.M)
    assert sorted(names) == sorted(
        {f"discreet.{name}" for names in group_names().values() for name in names}
    )
    sections = (ROOT / "docs" / "cli.md").read_text().partition(COMMANDS_NOTE)[2].split("\n## ")[1:]
    commands = [section.partition("\n")[0] for section in sections]
    assert len(commands) == len(set(commands)) > 30
    for section in sections:
        options = re.findall(r"^\| (`-[^|]*?`) \|", section, re.M)
        assert len(options) == len(set(options)), section


def test_documents_and_their_sentences_are_short():
    figures = measure_prose()
    assert figures["words in documents"] <= 45_000, "say it once, and shorter"
    assert figures["words of a mean sentence"] <= 18, "python -m tools.documents says where"
    assert figures["long sentences, percent"] <= 5, "python -m tools.documents --long PAGE"


def examples():
    """Python that teaches: blocks of documents, examples in docstrings, scripts, the demo."""
    for path in DOCUMENTS:
        for block in blocks(path, "python"):
            yield str(path.relative_to(ROOT)), block
    for path in sorted((ROOT / "src").rglob("*.py")):
        for example in doctest_codes(path):
            yield str(path.relative_to(ROOT)), example
    scripts = [*(ROOT / "bench").glob("*.py"), *(ROOT / "experiments").rglob("*.py")]
    for path in [*scripts, *(ROOT / "src" / "discreet" / "cli").glob("*.py")]:
        yield str(path.relative_to(ROOT)), path.read_text()


def doctest_codes(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            found = doctest.DocTestParser().get_examples(ast.get_docstring(node) or "")
            yield "".join(example.source for example in found)


def item_lists_of_releases(tree):
    """The ``items=`` of every call of a release, and what a name there was given."""
    given = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in RELEASES:
            for keyword in node.keywords:
                if keyword.arg == "items":
                    value = keyword.value
                    yield given.get(value.id, value) if isinstance(value, ast.Name) else value


def taken_from_data(value):
    return {"items", "columns", "unique"} & {
        node.attr for node in ast.walk(value) if isinstance(node, ast.Attribute)
    }


def test_no_example_releases_with_the_item_list_of_the_data():
    seen = 0
    for place, code in examples():
        for value in item_lists_of_releases(ast.parse(code)):
            seen += 1
            assert not taken_from_data(value), f"{place}: items={ast.unparse(value)}"
    assert seen >= 6


def test_a_name_does_not_hide_the_item_list_of_the_data():
    (value,) = item_lists_of_releases(ast.parse("x = a.items\nd.release(a, b, items=x)"))
    assert taken_from_data(value)


def test_the_readme_shows_the_output_that_its_example_prints(run, capsys):
    readme = ROOT / "README.md"
    (code,) = blocks(readme, "python")
    (shown,) = blocks(readme, "text")
    run(readme.name, [code])
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize("name", pictures.DRAWN)
def test_a_drawn_picture_shows_the_numbers_of_today(name):
    drawn = pictures.numbers_of(pictures.IMAGES / f"{name}.png")
    assert drawn == pictures.list_numbers(name), "draw it anew: make pictures"


def test_no_picture_of_an_experiment_is_older_than_what_it_shows():
    drawn = {path.stem for path in pictures.IMAGES.glob("*.png")}
    made = {f"results-{name}" for name in pictures.RESULTS} | {
        f"theory-{n}" for n in pictures.THEORY
    }
    assert {name for name in drawn if name.startswith(("results-", "theory-"))} == made
    assert pictures.list_old() == {}


def test_a_picture_that_is_older_than_its_table_is_named_with_its_command(monkeypatch, tmp_path):
    tables = (ROOT / "experiments" / "tables.md").read_text("utf-8")
    (tmp_path / "experiments").mkdir()
    changed = tables.replace("| published Gauss | 4.01 |", "| published Gauss | 4.02 |")
    assert changed != tables
    (tmp_path / "experiments" / "tables.md").write_text(changed, "utf-8")
    for script in (ROOT / "experiments").glob("theory_*.py"):
        (tmp_path / "experiments" / script.name).write_bytes(script.read_bytes())
    monkeypatch.setattr(pictures, "ROOT", tmp_path)
    command = "python -m experiments lsat; python -m tools.pictures results-lsat"
    assert pictures.list_old() == {"results-lsat": command}


def test_every_picture_is_shown_and_there_are_many():
    pages = [*DOCUMENTS, *(ROOT / "docs" / "notebooks").glob("*")]
    shown = {
        name for page in pages for name in re.findall(r"images/([\w-]+\.png)", page.read_text())
    }
    assert {path.name for path in (ROOT / "docs" / "images").iterdir()} <= shown
    assert measure_prose()["pictures in documents"] >= 25


BAD_WORDS = re.compile(r"(?<![\w.])/(work|root|farm)/|index[-]url|files[.]pythonhosted")


def texts_of(root):
    """Files of the project: those git knows, or without git all that are not hidden."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=False
    ).stdout.split("\0")
    if not any(listed):
        walked = [path.relative_to(root) for path in root.rglob("*")]
        listed = [str(path) for path in walked if not any(p.startswith(".") for p in path.parts)]
    kinds = {".md", ".py", ".toml", ".txt", ".cff", ""}
    paths = [root / name for name in listed if Path(name).suffix in kinds]
    return [path for path in paths if path.is_file()]


def bad_lines(paths):
    return [
        f"{path}:{number}"
        for path in paths
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if BAD_WORDS.search(line)
    ]


def test_no_file_names_a_machine_path_or_a_download_address():
    paths = texts_of(ROOT)
    assert {ROOT / "README.md", Path(__file__)} <= set(paths)
    assert not bad_lines(paths)


def test_a_machine_path_is_found_outside_git_too(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    page.write_text("fine\nsee /" + "work/notes\n")
    assert bad_lines(texts_of(tmp_path)) == [f"{page}:2"]


MISTAKES = """
import discreet

discreet.fit("answers.csv", method="conditonal")
discreet.fit("answers.csv", persons="who")
number: int = discreet.fit("answers.csv")
discreet.read_responses("answers.csv", repeats="latest")
"""


def test_the_page_for_python_programs_passes_a_strict_type_checker_that_finds_mistakes(tmp_path):
    (tmp_path / "page.py").write_text("\n".join(blocks(ROOT / "docs" / "python.md", "python")))
    (tmp_path / "mistakes.py").write_text(MISTAKES)
    # With the project's own strict settings, so that what `make check` found out is used again.
    done = subprocess.run(
        [sys.executable, "-m", "mypy", tmp_path / "page.py", tmp_path / "mistakes.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    names = [Path(line.partition(":")[0]).name for line in errors]
    assert names == ["mistakes.py"] * 4, done.stdout


def table_rows(path, heading):
    """Cells of the rows of the first table after some words of a page."""
    _, _, rest = path.read_text().partition(heading)
    (table,) = re.findall(r"^\|.*?(?=\n\n)", rest, re.M | re.S)[:1]
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines()[2:]]


def test_percentages_of_the_concepts_are_those_of_the_measured_tables():
    concepts = " ".join((ROOT / "docs" / "concepts.md").read_text().split())
    rows = table_rows(
        ROOT / "experiments" / "calibration" / "README.md", "## Error of the estimates"
    )
    few = sorted(int(row[-1].rstrip("%")) for row in rows if row[0].endswith(" 10%"))
    assert (
        f"a tenth of the items is answered its error is {few[0]} to {few[-1]}% smaller" in concepts
    )
    rows = table_rows(ROOT / "docs" / "theory.md", "## Which designs these promises hold for")
    stretch = {row[0].split("`")[1]: float(row[1].split(", ")[1]) for row in rows if "`" in row[0]}
    assert stretch["two-stage"] == pytest.approx(1.25, abs=0.02)
    assert "by about a quarter for two-stage routing" in concepts
    assert f"by {stretch['adaptive'] - 1:.0%} for fully adaptive tests" in concepts


def test_stated_speeds_are_those_of_the_measured_table():
    page = ROOT / "bench" / "README.md"
    stated = " ".join(page.read_text().split())
    rows = table_rows(page, "**Against the symmetric product.**")
    times = {row[0]: row[1:] for row in rows}
    many = [cells for name, cells in times.items() if "x 100," not in name]
    gemm = [round(float(cells[0])) for cells in many]
    syrk = [float(cells[1]) for cells in many if cells[1][0].isdigit()]
    assert f"200 items and more {min(gemm)} to {max(gemm)} times as fast" in stated
    assert f"{min(syrk):g} to {max(syrk):g} times as fast as a symmetric one (syrk)" in stated
    (hundred,) = [cells for name, cells in times.items() if "x 100," in name]
    assert f"At 100 items it is {hundred[0]} times" in stated
