"""Notebooks are stories that run: valid, without outputs, and told by the documentation."""

import ast
import sys

import nbformat
import pytest
from tools import documents as notebooks

BOOKS = notebooks.find_notebooks()
ALLOWED = {"discreet", "numpy", "matplotlib"}
by_name = pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)


def test_there_is_a_notebook_for_streaming_and_one_for_language_models():
    assert [path.stem for path in BOOKS] == ["language-models", "streaming"]


@by_name
def test_a_notebook_is_valid_and_kept_as_strip_writes_it(path, tmp_path):
    copy = tmp_path / path.name
    nbformat.write(notebooks.strip(notebooks.read(path)), copy)
    message = f"run `python -m tools.documents strip`: {path.name} is not as it leaves it"
    assert copy.read_text() == path.read_text(), message


@by_name
def test_the_code_of_a_notebook_is_plain_python_that_needs_nothing_else(path):
    tree = ast.parse("\n".join(notebooks.code_of(notebooks.read(path))))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
    names = {alias.name for node in imports for alias in node.names}
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} - sys.stdlib_module_names <= ALLOWED


@by_name
def test_a_page_of_the_documentation_leads_to_a_notebook(path):
    pages = [page.read_text() for page in path.parents[1].glob("*.md")]
    assert any(f"(notebooks/{path.name})" in text for text in pages)


def test_outputs_counters_and_versions_are_stripped():
    book = nbformat.v4.new_notebook()
    cell = nbformat.v4.new_code_cell("1", execution_count=3)
    cell.outputs = [nbformat.v4.new_output("stream", name="stderr", text="oh")]
    cell.metadata["collapsed"] = True
    book.cells = [cell]
    book.metadata.language_info = {"name": "python", "version": "3.0"}
    assert notebooks.complaints(book) == ["oh"]
    stripped = notebooks.strip(book)
    assert notebooks.complaints(stripped) == []
    assert stripped.cells[0].execution_count is None
    assert stripped.cells[0].metadata == {}
    assert "version" not in stripped.metadata.language_info


def test_only_run_and_strip_are_understood(capsys):
    assert notebooks.main(["fly"]) == 2
    assert "strip" in capsys.readouterr().err


@pytest.mark.slow
@by_name
def test_a_notebook_runs_from_top_to_bottom_without_a_warning(path, tmp_path):
    book = notebooks.run(path, tmp_path)
    pictures = [
        output
        for cell in book.cells
        for output in cell.get("outputs", ())
        if "image/png" in output.get("data", {})
    ]
    assert len(pictures) >= 3
