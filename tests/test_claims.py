"""The paper's claims hold on a quick run of its figures, as published."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from experiments import claims, education, synthetic
from experiments.claims import Errors
from experiments.edge_probability import FACTORS
from experiments.edge_probability import make_panel as edge_panel
from experiments.panels import run_panels, summarise
from experiments.results import Options

PUBLISHED = ("published Gauss", "published sparse", "published Laplace", "published response")
QUICK = (0.01, 0.1, 1.0, 2.0, 5.0)


def run(panels, tmp_path, trials, *, epsilons=QUICK, curves=(*PUBLISHED, "all zero")):
    short = [
        replace(panel, epsilons=epsilons, curves=tuple(c for c in panel.curves if c in curves))
        for panel in panels
    ]
    options = Options(trials, quick=True, seed=7, out=tmp_path)
    return Errors(summarise(run_panels("test", short, options), short))


def panels(*items):
    return [synthetic.make_panel(m, n) for m, n in synthetic.SHAPES if m in items]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    # The error of one trial scatters more with few items.
    few = run(panels(25), tmp_path_factory.mktemp("few"), trials=16)
    many = run(panels(200), tmp_path_factory.mktemp("many"), trials=2)
    return few.joined(many)


@pytest.mark.parametrize("check", claims.SYNTHETIC, ids=lambda check: check.__name__)
def test_a_claim_about_simulated_answers_holds(check, simulated):
    claim = check(simulated)
    assert claim.holds, claim


@pytest.mark.parametrize(
    ("name", "panel"),
    [("lsat", "lsat"), ("three_grades", "three_grades"), ("uci_student", "uci_student")],
)
def test_randomized_response_wins_only_at_tiny_epsilon_on_education_data(name, panel, tmp_path):
    errors = run([education.make_panel(name, name)], tmp_path, trials=40, epsilons=(0.01, 1.0))
    claim = claims.response_wins_only_at_one_hundredth(errors, panel)
    assert claim.holds, claim


def test_a_sparser_graph_pays_only_for_large_epsilon(tmp_path):
    ends = [edge_panel(label, FACTORS[label]) for label in ("1.1 log2(m)/m", "1")]
    errors = run(ends, tmp_path, trials=4, epsilons=(0.1, 5.0))
    claim = claims.dense_graph_for_small_epsilon(errors)
    assert claim.holds, claim


def test_margins_beats_every_published_curve_on_simulated_answers(tmp_path):
    panel = synthetic.make_panel(25, 1000)
    errors = run([panel], tmp_path, trials=4, epsilons=(0.1, 1.0),
                 curves=(*PUBLISHED, "margins", "all zero"))  # fmt: skip
    for name, epsilon in errors.cells:
        best = min(errors(name, epsilon, curve) for curve in (*PUBLISHED, "all zero"))
        assert errors(name, epsilon, "margins") < best


def test_a_claim_that_does_not_hold_is_said_not_to_hold():
    rows = [
        {"panel": "m=25, n=200", "epsilon": 1.0, "curve": curve, "error": error}
        for curve, error in zip(PUBLISHED, (5.0, 4.0, 4.5, 4.0), strict=True)
    ]
    claim = claims.gauss_beats_baselines(Errors(rows))
    assert not claim.holds
    assert "1.25" in claim.measured


def test_lost_points_compare_the_trials_that_both_curves_have():
    def row(trial, curve, error):
        return {"panel": "p", "epsilon": "1", "trial": trial, "curve": curve, "error": error}

    shared = [row(t, c, e) for t in "01" for c, e in (("margins", "2"), ("published Gauss", "1"))]
    other = [row("2", "published Gauss", "9"), row("2", "margins", "")]
    (point,) = claims.lost_points("figure", shared + other)
    assert (point["curve"], point["error"], point["its error"], point["trials"]) == (
        "margins", 2.0, 1.0, 2,
    )  # fmt: skip
    better = [row(t, "published Gauss", "3") for t in "01"]
    assert claims.lost_points("figure", [*shared[::2], *better]) == []


# Read by eye off the printed figures, good to about 5% of an axis: Gauss, sparse Gauss and Laplace
# at epsilon 1, 2 and 5. The panel m = 25, n = 1000 is left out: its printed error without privacy
# is .7, where the printed algorithm gives .39. Flat curves are left out too.
PRINTED = {
    "m=25, n=200": {
        "published Gauss": (3.1, 2.1, 1.3),
        "published sparse": (4.1, 2.7, 1.7),
        "published Laplace": (5.0, 4.7, 4.0),
    },
    "m=200, n=200": {
        "published Gauss": (13.3, 12.4, 10.1),
        "published sparse": (15.2, 11.8, 7.3),
    },
    "m=200, n=1000": {
        "published Gauss": (10.2, 7.2, 3.6),
        "published sparse": (7.6, 4.8, 2.6),
    },
}


@pytest.mark.slow
def test_published_curves_lie_within_a_fifth_of_the_printed_ones(tmp_path):
    errors = run(panels(25, 200), tmp_path, trials=30)
    for panel, curves in PRINTED.items():
        for curve, printed in curves.items():
            found = [errors(panel, epsilon, curve) for epsilon in (1.0, 2.0, 5.0)]
            assert np.abs(np.array(found) / printed - 1).max() < 0.2, (panel, curve, found)


@pytest.mark.slow
def test_all_claims_hold_on_thirty_trials_of_the_whole_grid(tmp_path):
    errors = run(
        panels(25, 200), tmp_path, trials=30, epsilons=(0.01, 0.05, 0.1, 0.2, 1.0, 2.0, 5.0)
    )
    for check in claims.SYNTHETIC:
        claim = check(errors)
        assert claim.holds, claim
