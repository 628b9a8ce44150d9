"""The theory figures run from the root of the repository and leave what they promise."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from experiments.published_steps import fit_levels
from experiments.steps import draw_answers, estimate

ROOT = Path(__file__).parents[1]


def run(name: str, out: Path) -> list[dict[str, str]]:
    command = [sys.executable, "-m", f"experiments.{name}", "--quick", "--trials", "1"]
    subprocess.run(
        [*command, "--out", str(out)], cwd=ROOT, check=True, capture_output=True, timeout=600
    )
    assert (out / f"{name}.png").stat().st_size > 10_000
    with (out / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def test_joint_ml_gives_twice_the_pairwise_answer_for_two_items(tmp_path):
    # An identity, in every sample: the one ability left is the mean of the two difficulties.
    rows = [row for row in run("theory_fixed_items", tmp_path) if row["items"] == "2"]
    assert rows
    for row in rows:
        assert float(row["joint_scale"]) == pytest.approx(
            2 * float(row["spectral_scale"]), rel=2e-3
        )


def test_the_entrywise_figure_has_a_slope_near_minus_one_half(tmp_path):
    slopes = [float(row["slope_of_line"]) for row in run("theory_entrywise", tmp_path)]
    assert -0.65 < sum(slopes) / len(slopes) < -0.35


def test_the_transition_figure_rises_from_failure_to_success(tmp_path):
    rows = run("theory_topk", tmp_path)
    success = {}
    for row in rows:
        success.setdefault(round(float(row["effort"])), []).append(float(row["success"]))
    rates = [sum(success[effort]) / len(success[effort]) for effort in sorted(success)]
    assert rates[0] < 0.4
    assert rates[-1] > 0.7


def test_the_published_method_for_steps_is_consistent_and_no_better_than_one_chain():
    rng = np.random.default_rng(3)
    answers, truth = draw_answers(20_000, 8, 3, 1.0, rng)
    found = estimate(answers, 3)
    error = {name: np.sqrt(np.mean((value - truth) ** 2)) for name, value in found.items()}
    assert error["published"] < 0.08
    assert error["refined"] < error["published"]
    # From expected counts, where there is no noise to share, both give the truth back.
    chance = np.exp(np.cumsum(np.linspace(-2, 2, 9)[:, None, None] - truth, axis=2))
    chance = np.concatenate([np.ones((9, 8, 1)), chance], axis=2)
    chance /= chance.sum(axis=2, keepdims=True)
    at, below = (part.reshape(9, -1) for part in (chance[:, :, 1:], chance[:, :, :-1]))
    item = np.repeat(np.arange(8), 3)
    counts = 1e12 * (at.T @ below) * (item[:, None] != item)
    assert np.abs(fit_levels(counts, 3) - truth).max() < 1e-9


def test_the_figure_of_steps_compares_all_methods(tmp_path):
    rows = run("steps", tmp_path)
    assert {row["persons"] for row in rows} == {"500", "1000", "2000"}
    for row in rows:
        assert 0.9 < float(row["refined_over_conditional"]) < 1.3


def test_every_figure_is_in_the_readme_and_in_the_list():
    scripts = {path.stem for path in (ROOT / "experiments").glob("theory_*.py")} | {"steps"}
    readme = (ROOT / "experiments" / "README.md").read_text()
    listed = (ROOT / "experiments" / "__main__.py").read_text()
    for script in scripts:
        assert f"python -m experiments.{script}" in readme
        assert f'"{script}"' in listed


def test_net_wins_are_released_more_precisely_than_every_pair(tmp_path):
    rows = run("comparisons", tmp_path)
    error = {(row["panel"], row["epsilon"], row["curve"]): float(row["error"]) for row in rows}
    for panel in ("judges=500", "judges=5000"):
        for epsilon in ("1", "2"):
            at = {curve: error[panel, epsilon, curve] for curve in ("net-wins", "win-pairs")}
            assert at["net-wins"] < 0.8 * at["win-pairs"]
            assert error[panel, epsilon, "ranking"] < at["net-wins"]
            assert at["win-pairs"] < error[panel, epsilon, "all zero"]
    # At a very small epsilon a release says next to nothing, and no nonsense either.
    assert error["judges=500", "0.01", "net-wins"] < 1.1 * error["judges=500", "0.01", "all zero"]
