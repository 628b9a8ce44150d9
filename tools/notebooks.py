"""Run the notebooks of the documentation, and keep what they print out of the repository.

::

    python -m tools.notebooks run      every notebook from first cell to last, in a new folder
    python -m tools.notebooks strip    take outputs and counters out of the files, before a commit

In: ``docs/notebooks/*.ipynb``. A cell that fails, or that writes to standard error (a warning), is
an error. Needs what the dependency group ``dev`` installs.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

__all__ = ["FOLDER", "code_of", "find_notebooks", "main", "read", "run", "strip"]

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
LIMIT = 600
"""Seconds that one cell may take: far more than any does."""


def find_notebooks() -> list[Path]:
    """Return the notebooks, by name."""
    return sorted(FOLDER.glob("*.ipynb"))


def read(path: Path) -> NotebookNode:
    """Read a notebook and check it against the format."""
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    return book


def code_of(book: NotebookNode) -> list[str]:
    """Return the code cells."""
    return [cell.source for cell in book.cells if cell.cell_type == "code"]


def run(path: Path, place: Path) -> NotebookNode:
    """Run a notebook in a folder and return it with its outputs."""
    book = read(path)
    NotebookClient(book, timeout=LIMIT, resources={"metadata": {"path": str(place)}}).execute()
    for said in complaints(book):
        raise RuntimeError(f"{path.name} wrote to standard error: {said}")
    return book


def complaints(book: NotebookNode) -> list[str]:
    """Return what the cells wrote to standard error."""
    outputs = [one for cell in book.cells for one in cell.get("outputs", ())]
    return [one.text for one in outputs if one.get("name") == "stderr"]


def strip(book: NotebookNode) -> NotebookNode:
    """Take out what a run leaves behind: outputs, counters, the kernel's version."""
    for cell in book.cells:
        cell.metadata = NotebookNode()
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    book.metadata.language_info = NotebookNode(name="python")
    return book


def main(words: list[str]) -> int:
    """Run or strip every notebook."""
    if words not in (["run"], ["strip"]):
        print(__doc__, file=sys.stderr)
        return 2
    for path in find_notebooks():
        if words == ["strip"]:
            nbformat.write(strip(read(path)), path)
            continue
        with TemporaryDirectory() as place:
            run(path, Path(place))
        print(f"{path.name} runs")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
