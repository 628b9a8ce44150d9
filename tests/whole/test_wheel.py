"""The package as users get it: a wheel, built, unpacked and run."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

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
    assert "cheerful" in done.stdout


def test_what_an_index_shows_is_whole(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, ROOT],
        check=True,
        capture_output=True,
    )
    checked = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *tmp_path.iterdir()],
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout
    assert checked.stdout.count("PASSED") == 2


def read_project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_the_licence_is_an_expression_and_extras_are_for_users():
    project = read_project()["project"]
    assert project["license"] == "Apache-2.0"
    assert not [line for line in project["classifiers"] if line.startswith("License")]
    assert not {"dev", "site"} & project["optional-dependencies"].keys()
    assert {"dev", "site"} <= read_project()["dependency-groups"].keys()


def test_the_conda_recipe_asks_for_what_the_package_asks_for():
    text = (ROOT / "packaging/conda/meta.yaml").read_text("utf-8")
    plain = re.sub(r"\{%.*%\}\n", "", text)
    recipe = yaml.safe_load(re.sub(r"\{\{.*?\}\}", "x", plain))
    needs = {line.partition(";")[0].strip() for line in read_project()["project"]["dependencies"]}
    named = {
        line.replace(" ", "").removeprefix("python-") for line in recipe["requirements"]["run"]
    }
    assert named - {"python>=x"} == needs
    assert f'version = "{read_project()["project"]["version"]}"' in text


def test_workflows_test_every_version_and_run_what_ci_runs():
    folder = ROOT / ".github/workflows"
    jobs = yaml.safe_load((folder / "test.yml").read_text("utf-8"))["jobs"]
    classifiers = read_project()["project"]["classifiers"]
    versions = re.findall(r"Python :: (3\.\d+)$", "\n".join(classifiers), re.M)
    assert all(job["strategy"]["matrix"]["python"] == versions for job in jobs.values())
    installing = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert all("-c ${{" in line for line in installing if " -e . " in line)
    assert {"run": ".ci/run"} in jobs["linux"]["steps"]
    assert jobs["elsewhere"]["strategy"]["matrix"]["system"] == ["macos-latest", "windows-latest"]
    newest = yaml.safe_load((folder / "newest.yml").read_text("utf-8"))
    assert set(newest[True]) == {"schedule", "workflow_dispatch"}  # YAML reads "on" as true
    publish = yaml.safe_load((folder / "publish.yml").read_text("utf-8"))["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["whl", "tar.gz"])
def test_an_empty_environment_gets_all_that_the_demonstration_needs(tmp_path, kind):
    built = [sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, ROOT]
    subprocess.run(built, check=True, capture_output=True)
    (archive,) = tmp_path.glob(f"*.{kind}")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "empty"], check=True)
    programs = tmp_path / "empty" / ("Scripts" if os.name == "nt" else "bin")
    subprocess.run([programs / "python", "-m", "pip", "install", "-q", archive], check=True)
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [programs / "discreet", "demo", "--out", "out"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=outside,
    )
    assert done.returncode == 0, done.stderr
    assert "cheerful" in done.stdout


@pytest.mark.slow
def test_pipx_installs_the_command_from_a_clone(tmp_path):
    pytest.importorskip("pipx")
    folders = {"PIPX_HOME": str(tmp_path / "home"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    subprocess.run(
        [sys.executable, "-m", "pipx", "install", ROOT], check=True, env={**os.environ, **folders}
    )
    version = subprocess.run(
        [tmp_path / "bin" / "discreet", "--version"], capture_output=True, text=True
    )
    assert read_project()["project"]["version"] in version.stdout
