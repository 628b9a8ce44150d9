"""Run the tests that are marked ``everywhere`` on a second Python, with the pins for its version.

::

    python -m tools.second_python

In: the Pythons of this machine, on the path or under pyenv. Out: which Python and NumPy ran, or
"second Python: none". The second Python is the newest supported one that is not the Python that
runs this; what it needs is installed into an environment of its own, ``.venv-3.x``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["find_python", "list_supported", "main", "name_pins"]

ROOT = Path(__file__).parents[1]
GROUP = "everywhere"
"""Name of the mark of the tests, and of the dependency group that they need."""
ASK = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"
TELL = """
import importlib.metadata as m, platform
print("second Python:", platform.python_version() + ",", ", ".join(
    f"{name} {m.version(name)}" for name in ("numpy", "scipy", "pandas", "polars")))
"""


def list_supported() -> list[str]:
    """Return the versions of Python that the package says it ran on, the newest first."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    minor = map(int, re.findall(r'"Programming Language :: Python :: 3\.(\d+)"', text))
    return [f"3.{number}" for number in sorted(minor, reverse=True)]


def name_pins(version: str) -> str:
    """Return the file of pins for a version of Python; the oldest one has pins of its own."""
    return "constraints.txt" if version == list_supported()[-1] else "constraints-newest.txt"


def _list_candidates(version: str) -> Iterator[Path]:
    """Yield programs that may be this version of Python: on the path, then under pyenv."""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        yield Path(folder) / f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"), reverse=True)


def _is_python(program: Path, version: str) -> bool:
    """Say whether a program runs as this version and can make environments.

    One of pyenv's may be there and do nothing but say that its version is not selected.
    """
    if shutil.which(program) is None:
        return False
    try:
        ended = subprocess.run(  # noqa: S603 (a Python of this machine)
            [program, "-c", ASK], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ended.returncode == 0 and ended.stdout.strip() == version


def find_python(version: str) -> Path | None:
    """Return a program that runs as this version of Python; None if there is none."""
    return next((one for one in _list_candidates(version) if _is_python(one, version)), None)


def _prepare(program: Path, version: str) -> Path:
    """Return the Python of an environment with the library and what the marked tests need."""
    folder, pins = ROOT / f".venv-{version}", ROOT / name_pins(version)
    python, ready = folder / "bin" / "python", folder / ".ready"
    changed = max((ROOT / "pyproject.toml").stat().st_mtime, pins.stat().st_mtime)
    if not ready.exists() or ready.stat().st_mtime < changed:
        pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
        for command in (
            [program, "-m", "venv", "--clear", folder],
            [*pip, "pip>=25.1"],  # dependency groups
            [*pip, "-c", pins, "-e", ROOT, "--group", f"{ROOT}/pyproject.toml:{GROUP}"],
        ):
            subprocess.run(command, check=True)  # noqa: S603 (arguments of this module alone)
        ready.touch()
    return python


def _list_tests() -> list[Path]:
    """Return the files with marked tests, so that those of other extras are not imported."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [one for one in files if f"pytest.mark.{GROUP}" in one.read_text(encoding="utf-8")]


def main() -> int:
    """Run the marked tests on the second Python, and return how that ended."""
    own = "{}.{}".format(*sys.version_info)
    found = ((find_python(version), version) for version in list_supported() if version != own)
    program, version = next((pair for pair in found if pair[0]), (None, ""))
    if program is None:
        print("second Python: none", flush=True)
        return 0
    python = _prepare(program, version)
    subprocess.run([python, "-c", TELL], check=True)  # noqa: S603
    tests = [python, "-m", "pytest", "-p", "no:cacheprovider", "-m", GROUP, *_list_tests()]
    return subprocess.run(tests, cwd=ROOT, check=False).returncode  # noqa: S603


if __name__ == "__main__":
    sys.exit(main())
