"""What a small job does not wait for."""

import subprocess
import sys

import pytest

from commandline import environment

HEAVY = ["numba", "pandas", "sklearn", "duckdb", "polars", "matplotlib", "scipy", "jinja2"]

FIT = """
import sys
from discreet.cli import main
try:
    main()
except SystemExit as ended:
    if ended.code:
        raise
print(*sys.modules, file=sys.stderr)
"""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """Modules loaded by ``discreet fit`` on a thousand persons and five items."""
    from discreet.datasets import lsat

    path = tmp_path_factory.mktemp("startup") / "lsat.csv"
    rows = lsat().store.rows(0, 1000)
    lines = ["i1,i2,i3,i4,i5", *(",".join(map(str, row)) for row in rows.tolist())]
    path.write_text("\n".join(lines) + "\n")
    ended = subprocess.run(
        [sys.executable, "-c", FIT, "fit", str(path), "--quiet"],
        capture_output=True,
        text=True,
        env=environment(),
        check=True,
    )
    assert "i5" in ended.stdout
    return set(ended.stderr.split())


@pytest.mark.parametrize("package", HEAVY)
def test_fitting_a_small_file_does_not_load(package, loaded):
    assert package not in loaded


def test_the_list_of_loaded_modules_is_real(loaded):
    assert {"numpy", "discreet.models.calibrate"} <= loaded
