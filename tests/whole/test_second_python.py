"""A second Python is found where one runs, and its failures are failures of the whole run."""

import re
import sys
from pathlib import Path

import pytest
from tools import second_python
from tools.second_python import find_python, list_supported, main, name_pins

pytestmark = pytest.mark.posix
ROOT = Path(__file__).parents[2]


def write_program(path, script):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with nothing on its path; pyenv's folder is empty."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    return tmp_path


def test_a_python_under_pyenv_is_found_behind_a_name_that_does_not_run(machine):
    write_program(machine / "bin" / "python3.13", "echo 'not selected' >&2; exit 127")
    python = write_program(machine / "pyenv/versions/3.13.0/bin/python3.13", "echo 3.13")
    assert find_python("3.13") == python
    assert find_python("3.12") is None


def test_a_python_of_another_version_than_its_name_says_is_not_taken(machine):
    write_program(machine / "bin" / "python3.13", "echo 3.9")
    assert find_python("3.13") is None


def test_a_machine_with_one_python_says_that_there_is_no_second(machine, capsys):
    assert main() == 0
    assert capsys.readouterr().out == "second Python: none\n"


@pytest.mark.parametrize(("check", "code"), [("True", 0), ("False", 1)])
def test_a_failure_on_the_second_python_fails_the_run(tmp_path, monkeypatch, capfd, check, code):
    written = tmp_path / "test_it.py"
    written.write_text(
        f"import pytest\n@pytest.mark.everywhere\ndef test_it():\n    assert {check}"
    )
    own = "{}.{}".format(*sys.version_info)
    monkeypatch.setattr(second_python, "list_supported", lambda: ["3.99", own, "3.1"])
    monkeypatch.setattr(
        second_python, "find_python", lambda version: sys.executable if version == "3.1" else None
    )
    monkeypatch.setattr(second_python, "_prepare", lambda program, version: program)
    monkeypatch.setattr(second_python, "_list_tests", lambda: [written])
    assert main() == code
    assert re.search(rf"second Python: {re.escape(own)}\.\d+, numpy \d", capfd.readouterr().out)


def test_each_version_has_pins_and_the_oldest_has_its_own():
    newest, *_, oldest = list_supported()
    assert (name_pins(oldest), name_pins(newest)) == ("constraints.txt", "constraints-newest.txt")
    for pins in ("constraints.txt", "constraints-newest.txt"):
        lines = (ROOT / pins).read_text().splitlines()
        assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []


def test_the_files_with_marked_tests_are_among_those_that_run():
    names = {path.name for path in second_python._list_tests()}
    assert {"test_public_api.py", "test_saving.py", "test_golden.py", "test_cli.py"} <= names
