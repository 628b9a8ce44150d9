"""The figures run from the root of the repository and leave what they promise."""

import csv
import subprocess
import sys
import zipfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from experiments.comparisons import maximise_perturbed
from experiments.curves import CURVES, DELTA, Draws, Setting
from experiments.curves import SHARED_NOISE as CURVE_NOISE
from experiments.panels import run_panels, summarise
from experiments.published_steps import fit_levels
from experiments.results import Options
from experiments.steps import draw_answers, estimate
from experiments.synthetic import Simulated

from discreet import Responses, fit
from discreet.secure import SeededSource
from experiments import ablation, films, high_privacy, published, random_pairing

ROOT = Path(__file__).parents[2]


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


# --- from Algorithm 2 to a release, one change at a time ------------------------------------------


@pytest.fixture(scope="module")
def ablated(tmp_path_factory):
    options = Options(8, quick=True, seed=3, out=tmp_path_factory.mktemp("ablation"))
    names = ("m=25, n=1000", "lsat", "m=25, n=1000, half missing", "uci_student, half missing")
    panels = [panel for panel in ablation.make_panels(options) if panel.name in names]
    assert len(panels) == len(names)
    rows = summarise(run_panels("ablation", panels, options), panels)
    return ablation.add_epsilons(rows, panels)


def pick(rows, panel, epsilon=1.0, field="error"):
    found = [row for row in rows if row["panel"] == panel and row["epsilon"] == epsilon]
    return {row["curve"]: row[field] for row in found}


def test_every_step_has_its_exact_epsilon_and_what_leaks_has_none(ablated):
    for panel in {row["panel"] for row in ablated}:
        exact = pick(ablated, panel, field="exact_epsilon")
        assert np.isnan(exact["published Gauss"])
        assert exact["exact sensitivity"] == pytest.approx(0.714, abs=0.003)
        assert np.isnan(exact["published sparse"])
        kept = ("exact delta", "exact chain", "pairs", "margins", "exact sparse chain",
                "sparse-pairs")  # fmt: skip
        for curve in kept:
            assert 0.998 < exact[curve] <= 1.00001
    # m (m - 1) pairs on real data are twice what one person moves, m (m - 1) / 2 about as many.
    assert pick(ablated, "lsat", field="exact_epsilon")["leak closed"] == pytest.approx(0.536, 0.01)
    simulated = pick(ablated, "m=25, n=1000", field="exact_epsilon")["leak closed"]
    assert simulated == pytest.approx(0.730, 0.01)


def test_the_fit_brings_most_on_complete_answers_and_margins_where_they_are_missing(ablated):
    for panel in ("m=25, n=1000", "m=25, n=1000, half missing"):
        error = pick(ablated, panel)
        assert error["pairs"] < 0.9 * error["exact chain"]
        assert error["exact chain"] == pytest.approx(error["exact delta"], rel=0.1)
    error = pick(ablated, "m=25, n=1000, half missing")
    assert error["margins"] < 0.8 * error["pairs"]


def test_the_sparse_variant_is_compared_at_the_same_exact_epsilon(ablated):
    for panel in ("m=25, n=1000", "m=25, n=1000, half missing"):
        error = pick(ablated, panel)
        assert error["sparse-pairs"] < 0.9 * error["exact sparse chain"]
        # With few items a sparse graph loses more than it saves.
        assert error["exact chain"] < 0.9 * error["exact sparse chain"]


def test_the_error_of_an_item_is_that_of_all_over_the_root_of_their_number(ablated):
    for row in ablated:
        items = 25 if row["panel"].startswith("m=25") else 5 if "lsat" in row["panel"] else 4
        assert row["per_item"] == pytest.approx(row["error"] / items**0.5, rel=1e-12)


def test_the_distance_to_the_refined_estimate_is_there_on_real_data_only(ablated):
    for row in ablated:
        is_real = not row["panel"].startswith("m=")
        assert np.isfinite(row["to_refined"]) == is_real
    near, far = (pick(ablated, "lsat", 5.0, field) for field in ("to_refined", "error"))
    assert near["pairs"] < 0.2
    assert near["pairs"] != far["pairs"]


def test_three_steps_take_the_same_noisy_values():
    assert {CURVE_NOISE.get(name, name) for name in ("exact delta", "exact chain", "pairs")} == {
        "pairs"
    }
    scene = Simulated(6, 2000)(np.random.default_rng(1))
    setting = Setting(published.Pairs.UNORDERED, edge_factor=1.0)
    found = [
        CURVES[name](scene, setting, 0.3, Draws(np.random.default_rng(4), SeededSource(4)))
        for name in ("exact delta", "exact chain", "pairs")
    ]
    # The noise of all three is the same, so they differ by far less than it moves them.
    other = CURVES["pairs"](scene, setting, 0.3, Draws(np.random.default_rng(5), SeededSource(5)))
    assert np.abs(found[0] - found[1]).max() < 0.25 * np.abs(found[2] - other).max()


def test_two_sparse_steps_take_the_same_graph_and_noise():
    scene = Simulated(8, 300_000)(np.random.default_rng(1))
    setting = Setting(published.Pairs.UNORDERED, edge_factor=1.2)

    def estimate_with(name, seed):
        draws = Draws(np.random.default_rng(seed), SeededSource(seed))
        return CURVES[name](scene, setting, 0.05, draws)

    assert CURVE_NOISE["exact sparse chain"] == "sparse-pairs"
    chain, fitted = (estimate_with(name, 4) for name in ("exact sparse chain", "sparse-pairs"))
    other = estimate_with("sparse-pairs", 5)
    assert np.abs(chain - fitted).max() < 0.5 * np.abs(fitted - other).max()


@pytest.mark.parametrize(("moved", "sigma"), [(4, 2.0), (12, 2.5), (12, 4.0)])
def test_the_exact_epsilon_is_that_of_the_sum_of_the_noise(moved, sigma):
    loss, chance = ablation._loss_distribution(moved, sigma)
    assert chance.sum() == pytest.approx(1, abs=1e-12)
    epsilon = ablation.counts_epsilon(moved, Fraction(sigma))
    delta = float((chance * np.maximum(0, 1 - np.exp(epsilon - loss))).sum())
    assert delta == pytest.approx(DELTA, rel=2e-3)


def test_little_noise_on_few_counts_has_an_exact_epsilon_too():
    above, below = (ablation.counts_epsilon(4, Fraction(value)) for value in ("2.0", "1.99"))
    assert above < below < 1.03 * above
    # One count: the ratio of two discrete Gaussians, summed over the integers.
    steps = np.arange(-60, 61)
    one = np.exp(-(steps**2) / (2 * 1.5**2))
    one /= one.sum()
    epsilon = ablation.counts_epsilon(1, Fraction("1.5"))
    moved = np.exp(-((steps - 1) ** 2) / (2 * 1.5**2)) / np.exp(-(steps**2) / (2 * 1.5**2)).sum()
    assert np.maximum(0, one - np.exp(epsilon) * moved).sum() == pytest.approx(DELTA, rel=2e-3)


def test_a_single_figure_is_drawn_by_its_name(tmp_path):
    command = [sys.executable, "-m", "experiments", "ablation", "--quick", "--trials", "1"]
    command += ["--panels", "lsat", "--workers", "1", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("--- ") == 1
    assert (tmp_path / "ablation.png").stat().st_size > 10_000
    with (tmp_path / "ablation.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["panel"] for row in rows} == {"lsat", "lsat, half missing"}
    assert len(rows) == 2 * 2 * (len(ablation.VARIANTS) + 2)


def test_curves_that_were_not_asked_for_are_left_out_of_the_count_of_persons(tmp_path, capsys):
    command = [
        "high_privacy",
        "--quick",
        "--trials",
        "1",
        "--only",
        "published",
        "--panels",
        "n=10",
    ]
    with pytest.MonkeyPatch.context() as patch:
        options = ["--panels", "n=10", "--workers", "1", "--out", str(tmp_path)]
        patch.setattr(sys, "argv", [*command, *options])
        high_privacy.main()
    rows = [{"epsilon": 0.1, "curve": curve, "persons": n, "error": error}
            for curve, errors in {"all zero": (4, 4, 4), "margins": (4, 2, 1)}.items()
            for n, error in zip((100, 1000, 10_000), errors, strict=True)]  # fmt: skip
    printed = capsys.readouterr().out
    assert "0.01, margins: half the all-zero error at n = nan" in printed
    assert (tmp_path / "high_privacy.png").stat().st_size > 10_000
    assert high_privacy.persons_for(rows, "margins", 0.1, 0.5) == pytest.approx(1000)
    assert high_privacy.persons_for(rows, "margins", 0.1, 0.25**0.5) == pytest.approx(1000)
    assert np.isnan(high_privacy.persons_for(rows, "margins", 0.1, 0.2))
    assert np.isnan(high_privacy.persons_for(rows, "pairs", 0.1, 0.5))


# --- answers from ratings -------------------------------------------------------------------------


def test_no_coefficient_is_negative_and_none_could_be_better():
    rng = np.random.default_rng(5)
    left, table = rng.random((30, 6)), rng.normal(size=(30, 40))
    gram, moments = left.T @ left, left.T @ table
    found = films.solve_nonnegative(gram, moments)
    slope = gram @ found - moments
    assert found.min() == 0
    assert slope.min() > -1e-9
    assert np.abs(slope * found).max() < 1e-9


def test_factors_give_a_non_negative_table_of_low_rank_back():
    rng = np.random.default_rng(6)
    table = 20 * rng.random((60, 3)) @ rng.random((3, 80))
    scores = films.estimate_scores(table, 3, np.random.default_rng(0))
    assert np.linalg.norm(scores - table) < 0.02 * np.linalg.norm(table)


def test_a_film_gets_a_one_where_its_score_is_not_above_the_persons_mean():
    rng = np.random.default_rng(7)
    stars = 20 * (rng.random((60, 40)) @ rng.random((40, 80)))
    answers = films.binarise(stars)
    below = stars <= stars.mean(axis=1, keepdims=True)
    assert np.mean(answers == below) > 0.9
    assert (answers == films.binarise(stars)).all()


def test_ratings_are_read_from_the_archive_and_from_its_file(tmp_path):
    text = "userId,movieId,rating,timestamp\n1,31,2.5,12\n1,1029,3.0,13\n2,31,4.0,8\n"
    (tmp_path / "ratings.csv").write_text(text)
    with zipfile.ZipFile(tmp_path / "ml.zip", "w") as archive:
        archive.writestr("ml-latest-small/movies.csv", "movieId,title\n")
        archive.writestr("ml-latest-small/ratings.csv", text)
    for name in ("ratings.csv", "ml.zip"):
        assert films.read_ratings(tmp_path / name).tolist() == [[3.0, 2.5], [0.0, 4.0]]


# --- what came after ------------------------------------------------------------------------------


def test_random_pairs_use_each_answer_once_and_only_different_ones():
    rng = np.random.default_rng(2)
    answers = rng.integers(-1, 2, size=(200, 7)).astype(np.int8)
    drawn = random_pairing.pair_answers(answers, rng)
    assert (answers[drawn.person, drawn.right] == 1).all()
    assert (answers[drawn.person, drawn.wrong] == 0).all()
    used = np.concatenate([drawn.person * 7 + drawn.right, drawn.person * 7 + drawn.wrong])
    assert len(np.unique(used)) == len(used)
    # One right and one wrong answer of six are paired with each other one time in five.
    lone = np.zeros((20_000, 6), dtype=np.int8)
    lone[:, 0], lone[:, 1:5] = 1, -1
    assert len(random_pairing.pair_answers(lone, rng).person) == 20_000
    lone[:, 1:5] = 1
    share = len(random_pairing.pair_answers(lone, rng).person) / 20_000
    assert share == pytest.approx(1.0, abs=1e-9)  # the wrong one always meets a right one


def test_random_pairing_is_right_and_averaging_makes_it_refined():
    rng = np.random.default_rng(8)
    truth = np.linspace(-1.5, 1.5, 12)
    chance = 1 / (1 + np.exp(truth - rng.normal(size=(6000, 1))))
    answers = (rng.random(chance.shape) < chance).astype(np.int8)
    found = random_pairing.estimate_many(answers, rng, splits=30)
    refined = fit(Responses.from_array(answers), method="refined")
    assert found["RP-MLE"][0] == pytest.approx(truth, abs=4 * found["RP-MLE"][1].max())
    assert found["MRP-MLE"][0] == pytest.approx(refined.difficulty, abs=0.03)
    assert found["MRP-MLE"][1] == pytest.approx(refined.se, rel=0.12)
    assert (found["RP-MLE"][1] > 1.2 * refined.se).all()


def test_the_perturbed_likelihood_is_the_ridge_estimate_where_there_is_no_noise():
    rng = np.random.default_rng(6)
    wins = rng.integers(5, 60, size=(7, 7)).astype(float)
    np.fill_diagonal(wins, 0)
    strength = maximise_perturbed(wins, ridge=3.0, noise=np.zeros(7))
    assert strength.sum() == pytest.approx(0, abs=1e-9)

    def loss(values):
        apart = values[:, None] - values
        return (wins * np.logaddexp(0, -apart)).sum() + 1.5 * values @ values

    for direction in rng.normal(size=(20, 7)):
        step = 1e-3 * (direction - direction.mean())
        assert loss(strength) <= loss(strength + step)
    pushed = maximise_perturbed(wins, ridge=3.0, noise=np.eye(7)[2] * 40)
    assert pushed[2] < strength[2] - 0.05
