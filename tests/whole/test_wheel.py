"""The package as users get it: a wheel, built, unpacked and run."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Build the wheel without a network and unpack it into a folder of its own."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT],
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def run(site, *arguments):
    return subprocess.run(
        [sys.executable, "-S", "-c", START, str(site), *arguments],
        capture_output=True,
        text=True,
        cwd=site.parent,
    )


# -S leaves out the editable install of the working tree; its dependencies are added by hand.
START = f"""
import sys
sys.path.insert(0, sys.argv.pop(1))
sys.path += {[p for p in sys.path if "site-packages" in p]!r}
import discreet
assert discreet.__file__.startswith(sys.path[0]), discreet.__file__
from discreet.cli import main
sys.argv[0] = "discreet"
main()
"""


def test_the_wheel_carries_the_typing_marker_and_the_bundled_data(installed):
    assert (installed / "discreet" / "py.typed").exists()
    assert list((installed / "discreet" / "data").glob("*.csv"))


def test_the_command_line_runs_from_the_wheel(installed):
    done = run(installed, "demo", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert "Item3" in done.stdout
