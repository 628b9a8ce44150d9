"""What is handed on as source is complete: whoever unpacks it can run the tests."""

import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEFT_OUT = {".ci", ".git", ".gitignore"}


def test_the_source_archive_holds_every_file_of_the_project(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", tmp_path, ROOT],
        check=True,
        capture_output=True,
    )
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        held = {name.partition("/")[2] for name in packed.getnames()}
    for folder in ("src", "tests", "docs", "bench", "experiments", "tools"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert str(path.relative_to(ROOT)) in held
    top = {path.name for path in ROOT.iterdir() if path.is_file()} - LEFT_OUT
    needed = {"Makefile", "constraints.txt", "constraints-newest.txt", "README.md"}
    assert needed | {"pyproject.toml"} <= top & held
