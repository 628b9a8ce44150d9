"""Every document keeps its word: code runs, commands run, links lead somewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted(
    path
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md")]
    if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
)
BLOCK = re.compile(
    r"(?P<skip><!-- not run: [^>]+ -->\n+)?^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.M | re.S
)
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
    """The ``$ discreet ...`` lines of console blocks, with continuation lines joined."""
    found = []
    for block in blocks(path, "console"):
        joined = block.replace("\\\n", " ")
        found += [line[2:] for line in joined.splitlines() if line.startswith("$ discreet")]
    return found


@pytest.mark.parametrize("path", with_blocks(), ids=lambda p: str(p.relative_to(ROOT)))
def test_code_and_commands_in_a_document_run(path, tmp_path):
    environment = {**os.environ, "NO_COLOR": "1"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    for command in commands(path):
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    code = "\n".join(blocks(path, "python"))
    if code:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{path}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_in_a_document_lead_somewhere(path):
    for match in LINK.finditer(path.read_text()):
        target = (path.parent / match["target"]).resolve()
        assert target.exists(), f"{path}: broken link to {match['target']}"


def test_the_api_page_lists_every_public_name():
    import discreet

    page = (ROOT / "docs" / "api.md").read_text()
    missing = [n for n in discreet.__all__ if n != "__version__" and f"discreet.{n}`" not in page]
    assert not missing


def test_the_readme_shows_the_output_that_its_example_prints(tmp_path):
    readme = ROOT / "README.md"
    (code,) = blocks(readme, "python")
    (shown,) = blocks(readme, "text")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout == shown, done.stderr


def test_no_file_names_a_machine_path_or_a_download_address():
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split("\n")
    bad = re.compile(r"(?<![\w.])/(work|root|farm)/|index-url|files\.pythonhosted")
    for name in filter(None, listed):
        path = ROOT / name
        if path.suffix in {".md", ".py", ".toml", ".txt", ".cff", ""} and path.is_file():
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                assert "bad = re.compile" in line or not bad.search(line), f"{name}:{number}"
