"""The published algorithms are as published, flaws included, and stay outside the library."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from experiments.results import Options

import discreet
from discreet.privacy.mechanisms.margins import Margins
from discreet.privacy.mechanisms.pairs import DensePairs
from discreet.privacy.noise import ExactNoise
from discreet.secure import SeededSource
from experiments import curves, leak, panels, published, synthetic

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def answers():
    return synthetic.Simulated(8, 300)(np.random.default_rng(3)).answers


def test_the_library_does_not_know_the_published_algorithms():
    for path in (ROOT / "src").rglob("*.py"):
        assert not re.search(r"(from|import) experiments", path.read_text(encoding="utf-8")), path


def test_the_module_says_first_that_it_is_not_private():
    assert "NOT PRIVATE" in published.__doc__.splitlines()[0]


def test_the_calibration_is_the_printed_one():
    # sigma for epsilon 1, delta 1e-4 and one pair, as in the design's table of accountants.
    assert 1 / published.split_epsilon(1.0, 1e-4, 1) == pytest.approx(4.292, abs=1e-3)
    assert published.split_epsilon(2.0, 1e-4, 9) == pytest.approx(
        2 / 3 * published.split_epsilon(1.0, 1e-4, 1)
    )


def test_without_noise_the_estimate_is_the_library_s_regularised_spectral_one(answers):
    ours = discreet.fit(answers, method="spectral", regularisation=1.0, standard_errors=False)
    theirs = published.spectral(published.count(answers))
    assert theirs == pytest.approx(ours.difficulty, abs=2e-3)


def test_zero_counts_get_no_noise_which_is_why_it_is_not_private():
    counts = np.array([[0.0, 0.0, 9.0], [4.0, 0.0, 7.0], [0.0, 5.0, 0.0]])
    noise = np.full((3, 3), -100)
    noisy = published.perturb(counts, noise, published.every_pair(3))
    assert ((noisy == 0) == (counts == 0)).all()
    assert noisy[counts > 0].tolist() == [1.0] * 4


def test_shuffling_never_lowers_epsilon_in_the_curve_though_the_printed_search_may():
    assert published.shuffled_epsilon(5.0, 1e-4, 200) < 5.0  # flaw 6
    assert published.shuffled_epsilon(0.1, 1e-4, 1000) > 0.1
    assert published.shuffled_epsilon(2.0, 1e-4, 100) == 2.0  # too few persons to amplify


def test_flipped_answers_are_not_debiased_so_difficulties_shrink(answers):
    plain = published.spectral(published.count(answers))
    flipped = published.randomized_response(answers, 8.0, 1e-4, np.random.default_rng(0))
    assert 0.2 < flipped @ plain / (plain @ plain) < 0.8


@pytest.mark.parametrize("pairs", published.Pairs)
def test_more_epsilon_means_less_error(pairs, answers):
    counts = published.count(answers)
    exact = published.spectral(counts)
    graph = published.every_pair(8)
    far, near = (
        np.mean([
            np.linalg.norm(published.gauss(counts, epsilon, 1e-4, pairs=pairs, graph=graph,
                                           source=SeededSource(seed)) - exact)
            for seed in range(5)
        ])
        for epsilon in (0.1, 10.0)
    )  # fmt: skip
    assert near < 0.2 * far


# --- the library's curves -----------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", [Margins(), DensePairs()], ids=lambda m: m.name)
def test_a_library_curve_is_what_discreet_release_gives(mechanism, answers):
    responses = discreet.Responses.from_array(answers)
    whole = discreet.release(
        responses, discreet.Budget(1.0, curves.DELTA), items=responses.items,
        mechanism=mechanism, noise=ExactNoise(SeededSource(5)),
    )  # fmt: skip
    curve = curves.release(responses, mechanism, 1.0, SeededSource(5))
    assert (curve == whole.estimate.difficulty).all()


def test_every_curve_has_a_label_and_a_style():
    from experiments.pictures import LABELS, STYLES

    drawn = {*curves.ANSWER_CURVES, *curves.BETWEEN}
    assert drawn == set(LABELS) == set(STYLES)
    assert drawn <= set(curves.CURVES)


# --- resuming -----------------------------------------------------------------------------------


class Tiny:
    """Counts how often it makes data."""

    made = 0

    def __call__(self, rng):
        Tiny.made += 1
        return synthetic.Simulated(4, 50)(rng)

    def __repr__(self):
        return "Tiny()"


def run(out, trials, only=""):
    names = ("published Gauss", "published Laplace", "all zero")
    panel = panels.Panel("tiny", "tiny", Tiny(), synthetic.SETTING, names, (0.5, 1.0))
    Tiny.made = 0
    rows = panels.run_panels("tiny", [panel], Options(trials, False, 1, out, only=only))
    return panels.summarise(rows, [panel])


def test_a_run_resumes_where_it_stopped_and_gives_the_same_numbers(tmp_path):
    run(tmp_path / "a", 2)
    assert Tiny.made == 2
    resumed = run(tmp_path / "a", 5)
    assert Tiny.made == 3
    assert resumed == run(tmp_path / "b", 5)
    assert {row["trials"] for row in resumed} == {5}


def test_half_a_line_left_by_a_killed_run_is_done_again(tmp_path):
    whole = run(tmp_path, 2)
    store = tmp_path / "tiny_trials.csv"
    text = store.read_text()
    store.write_text(text[: text.rindex(",")])
    assert run(tmp_path, 2) == whole
    assert Tiny.made == 1


def test_some_curves_can_run_first_and_the_rest_later(tmp_path):
    first = run(tmp_path / "a", 3, only="published Gauss")
    assert {row["curve"] for row in first} == {"published Gauss", "all zero"}
    assert run(tmp_path / "a", 3) == run(tmp_path / "b", 3)


@pytest.mark.slow
def test_two_processes_give_the_numbers_of_one(tmp_path):
    panel = replace(synthetic.make_panel(25, 200), epsilons=(1.0,))
    one, two = (
        panels.summarise(
            panels.run_panels(
                "both", [panel], Options(2, True, 1, tmp_path / str(workers), workers,
                                         only="published")
            ),
            [panel],
        )
        for workers in (1, 2)
    )  # fmt: skip
    assert one == two


def test_every_figure_is_in_the_list_and_in_the_readme():
    from experiments.__main__ import FIGURES

    readme = (ROOT / "experiments" / "README.md").read_text(encoding="utf-8")
    for path in (ROOT / "experiments").glob("*.py"):
        if "def main() -> None:" in path.read_text(encoding="utf-8"):
            assert path.stem in FIGURES
            assert f"python -m experiments.{path.stem}" in readme
    assert all((ROOT / "experiments" / f"{name}.py").exists() for name in FIGURES)


def test_one_person_decides_whether_a_printed_count_is_zero():
    without, with_person = leak.measure()
    assert (without["as printed"], with_person["as printed"]) == (leak.RUNS, 0)
    # With noise on every count both tables give zero about as often: 208 times expected.
    assert 0 < with_person["noise on every count"] < 300
    assert 0 < without["noise on every count"] < 300


def test_the_page_on_the_paper_shows_what_the_leak_prints(capsys):
    leak.print_leak()
    printed = "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())
    page = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    assert f"$ python -m experiments.leak\n{printed}\n```" in page
