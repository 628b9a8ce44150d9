"""Each of the paper's claims has the verdict that the numbers give it, and the pages show it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from experiments.claims import Errors
from experiments.edge_probability import FACTORS
from experiments.edge_probability import make_panel as edge_panel
from experiments.panels import EPSILONS, REFERENCES, run_panels, summarise
from experiments.results import Options

from experiments import authors, claims, education, published, synthetic

QUICK = (0.01, 0.1, 1.0, 2.0, 5.0)
ROOT = Path(__file__).parents[2]
MEASURED, DRAWN = claims.read_measured(claims.MEASURED)
CHECKED = claims.check_claims(claims.MEASURED)


def run(panels, tmp_path, trials, *, epsilons=QUICK, curves=(*claims.PUBLISHED, *REFERENCES)):
    short = [
        replace(panel, epsilons=epsilons, curves=tuple(c for c in panel.curves if c in curves))
        for panel in panels
    ]
    options = Options(trials, quick=True, seed=7, out=tmp_path)
    return Errors(summarise(run_panels("test", short, options), short))


def panels(*items):
    return [synthetic.make_panel(m, n) for m, n in synthetic.SHAPES if m in items]


def claims_of(*figures):
    """Claims that these figures decide, each with its name for the report."""
    chosen = [claim for claim in claims.CLAIMS if set(claim.figures) <= set(figures)]
    return [pytest.param(claim, id=f"{claim.place}: {claim.text[:40]}") for claim in chosen]


def find(text):
    (claim,) = [claim for claim in claims.CLAIMS if text in claim.text]
    return claim


# --- the list -------------------------------------------------------------------------------------


def test_every_claim_is_checked_on_the_numbers_that_come_with_the_repository():
    assert {name for claim in claims.CLAIMS for name in claim.figures} == DRAWN
    assert len(CHECKED) == len(claims.CLAIMS)


def test_the_documents_show_every_claim_with_its_verdict():
    tables = (ROOT / "experiments" / "tables.md").read_text(encoding="utf-8")
    for row in claims.tabulate(CHECKED):
        assert "| " + " | ".join(row.values()) + " |" in tables
    held = sum(found.holds for _, found in CHECKED)
    sentence = f"{held} of {len(CHECKED)} claims"
    for page in ("docs/results.md", "docs/paper.md", "experiments/README.md"):
        assert sentence in (ROOT / page).read_text(encoding="utf-8"), page
    assert f"{held} of {len(CHECKED)} hold here" in (ROOT / "README.md").read_text("utf-8")
    results = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    section = results.split("## The paper's claims")[1].split("\n## ")[0]
    assert section.count("\n- **") == len(CHECKED) - held


def test_every_claim_says_where_the_paper_makes_it():
    places = ("Abstract", "Section", "Figure", "Supplement")
    assert all(claim.place.startswith(places) for claim in claims.CLAIMS)


def test_the_same_numbers_get_the_same_verdict_under_any_name_of_the_panel():
    names = ("lsat", "three_grades", "uci_student")
    claim = find("at epsilon 1 Gauss and Laplace outperform")
    lost = {
        (panel, curve): MEASURED.errors("uci_student", 1.0, curve)
        for panel in names
        for curve in claims.PUBLISHED
        if curve != claims.SPARSE
    }
    for panel in names:
        rows = [
            {"panel": panel, "epsilon": 1.0, "curve": curve, "error": error}
            for (name, curve), error in lost.items()
            if name == panel
        ]
        found = claim.check(claims.Measured(Errors(rows)))
        assert not found.holds
        assert f"not {panel} at 1" in found.measured


def change(factor):
    """Return the measured numbers, each times a factor that depends on where it stands."""
    rows = [
        {"panel": panel, "epsilon": e, "curve": name, "error": error * factor(panel, e, name)}
        for (panel, e, name), error in MEASURED.errors.values.items()
    ]
    columns = ("gauss", "response", "spectral")
    times = [
        {**row, **{name: float(row[name]) * factor("", 0.0, name) for name in columns}}
        for row in MEASURED.times
    ]
    return claims.Measured(Errors(rows), times)


def stretch(curve, factor, chosen):
    """Return the measured numbers with a part of one curve times a factor."""
    return change(lambda panel, e, name: factor if name == curve and chosen(panel, e) else 1.0)


def is_end(panel, _):
    """The larger of what panels are compared by."""
    return panel.endswith(("n=1000", "n=64000")) or panel.startswith("m=200, n=")


RNG = np.random.default_rng(11)
WORLDS = [change(lambda *_: np.exp(2 * RNG.normal())) for _ in range(20)] + [
    stretch(curve, factor, chosen)
    for curve in (*claims.PUBLISHED, "spectral")
    for factor in (0.02, 50.0)
    for chosen in (lambda *_: True, lambda _, e: e >= 5, is_end)
]


@pytest.mark.parametrize(
    "claim", [claim for claim, _ in CHECKED], ids=lambda claim: claim.text[:50]
)
def test_a_verdict_turns_with_the_numbers(claim):
    """Every claim is true of some numbers and false of others."""
    assert {claim.check(world).holds for world in WORLDS} == {True, False}


# --- the numbers, run anew ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    # The error of one trial scatters more with few items.
    few = run(panels(25), tmp_path_factory.mktemp("few"), trials=16)
    many = run(panels(200), tmp_path_factory.mktemp("many"), trials=2)
    return claims.Measured(few.joined(many))


@pytest.mark.parametrize("claim", claims_of("synthetic"))
def test_a_few_trials_of_simulated_answers_give_the_same_verdict(claim, simulated):
    assert claim.check(simulated).holds == claim.check(MEASURED).holds


@pytest.fixture(scope="module")
def education_errors(tmp_path_factory):
    drawn = run(
        education.make_panels(), tmp_path_factory.mktemp("school"), trials=40, epsilons=QUICK
    )
    return claims.Measured(drawn)


@pytest.mark.parametrize("claim", claims_of("lsat", "three_grades", "uci"))
def test_some_trials_of_education_data_give_the_same_verdict(claim, education_errors):
    assert claim.check(education_errors).holds == claim.check(MEASURED).holds


def test_a_sparser_graph_pays_only_for_large_epsilon(tmp_path):
    ends = [edge_panel(label, FACTORS[label]) for label in FACTORS]
    measured = claims.Measured(run(ends, tmp_path, trials=4, epsilons=(0.1, 5.0)))
    for text in ("at small epsilon a larger p0", "at large epsilon a sparse graph"):
        assert find(text).check(measured).holds


def test_margins_beats_every_published_curve_on_simulated_answers(tmp_path):
    panel = synthetic.make_panel(25, 1000)
    errors = run([panel], tmp_path, trials=4, epsilons=(0.1, 1.0),
                 curves=(*claims.PUBLISHED, "margins", "all zero"))  # fmt: skip
    for name, epsilon in errors.cells:
        best = min(errors(name, epsilon, curve) for curve in (*claims.PUBLISHED, "all zero"))
        assert errors(name, epsilon, "margins") < best


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


def compare_with_authors(names, tmp_path, trials, epsilons):
    """How many standard errors our copies are from what the authors' scripts gave."""
    options = Options(trials, quick=False, seed=7, out=tmp_path)
    found = [panel for panel in authors.make_panels() if panel.name in names]
    assert len(found) == len(names)
    found = [replace(panel, epsilons=epsilons) for panel in found]
    lines = authors.compare(summarise(run_panels("authors", found, options), found))
    assert len(lines) == sum(len(panel.curves) * len(epsilons) for panel in found)
    return np.array([line["apart"] for line in lines])


def check_apart(apart):
    # Independent standard normal values if both run the same algorithm.
    assert np.abs(apart).max() < 4.5
    assert np.sqrt(np.mean(apart**2)) < 1.7


def test_our_copies_of_the_published_curves_agree_with_the_authors_scripts(tmp_path):
    names = ("lsat", "three_grades", "uci_student")
    check_apart(compare_with_authors(names, tmp_path, 30, (0.1, 1.0, 5.0)))


def test_a_copy_with_another_number_of_pairs_would_be_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(
        education, "SETTING", replace(education.SETTING, pairs=published.Pairs.UNORDERED)
    )
    apart = compare_with_authors(("lsat", "uci_student"), tmp_path, 30, (0.1, 1.0, 5.0))
    with pytest.raises(AssertionError):
        check_apart(apart)


@pytest.mark.slow
def test_our_copies_agree_with_the_authors_scripts_on_simulated_answers(tmp_path):
    names = ("m=25, n=200", "m=25, n=1000")
    check_apart(compare_with_authors(names, tmp_path, 40, (0.1, 1.0, 2.0, 5.0)))


def test_every_reference_number_says_which_command_gave_it():
    rows = authors.read_reference()
    assert len(rows) > 100
    for row in rows.values():
        assert row["script"] in ("synthetic_privacy_experiments.py", "real_privacy_experiments.py")
        assert row["arguments"].startswith("--")
        assert int(row["trials"]) >= 10
        assert float(row["centred_error"]) <= float(row["error"])
    readme = (Path(__file__).parents[2] / "experiments" / "README.md").read_text(encoding="utf-8")
    assert "a0374706be7cc4164f1543088c3e024d5c56f878" in readme
    assert "by eye" not in readme


@pytest.mark.slow
def test_thirty_trials_of_the_whole_grid_give_the_same_verdicts(tmp_path):
    errors = run(panels(25, 200), tmp_path, trials=30, epsilons=EPSILONS)
    for param in claims_of("synthetic"):
        (claim,) = param.values
        assert claim.check(claims.Measured(errors)).holds == claim.check(MEASURED).holds, claim
