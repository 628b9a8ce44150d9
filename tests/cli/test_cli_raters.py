"""``discreet fit --rater``: severities on the command line, and the report."""

import csv
import json

import numpy as np
import pytest

import discreet
from commandline import discreet as run


@pytest.fixture
def marks(tmp_path):
    """A table of essays that four raters marked in two months."""
    drawn = discreet.simulate_ratings(120, 3, 4, rng=np.random.default_rng(0)).ratings
    path = tmp_path / "marks.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["essay", "criterion", "marker", "month", "score"])
        for row in range(drawn.n_ratings):
            level = drawn.codes["rater"][row]
            person = int(drawn.person[row])
            cells = f"e{person}", drawn.items[drawn.item[row]], drawn.facets["rater"][level]
            writer.writerow([*cells, person % 2, int(drawn.score[row])])
    return path


def test_json_has_the_severities(marks):
    done = run("fit", marks, "--rater", "marker", "--json")
    document = json.loads(done.out)
    expected = discreet.fit(marks, facets=["marker"]).facets["marker"]
    rows = document["facets"]["marker"]
    assert [row["marker"] for row in rows] == list(expected.levels)
    np.testing.assert_allclose([row["measure"] for row in rows], expected.measure)
    assert document["items"][0]["thresholds"]


def test_out_writes_tables_estimate_and_report(marks, tmp_path):
    folder = tmp_path / "results"
    done = run("fit", marks, "--rater", "marker", "--drift-over", "month", "--out", folder)
    assert done.code == 0, done.err
    names = {path.name for path in folder.iterdir()}
    assert names >= {
        "facet_marker.confidential.csv",
        "persons.confidential.csv",
        "bias_marker_item.confidential.csv",
        "bias_marker_month.confidential.csv",
        "estimate.confidential.json",
        "report.confidential.html",
    }
    with (folder / "facet_marker.confidential.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4
    assert {"fair", "infit", "agreement", "access"} <= rows[0].keys()
    loaded = discreet.Estimate.load(folder / "estimate.confidential.json")
    assert [row["marker"] for row in rows] == list(loaded.facets["marker"].levels)


@pytest.fixture
def results(marks, tmp_path):
    done = run(
        "fit", marks, "--rater", "marker", "--out", tmp_path / "results", "--scale", "500,100"
    )
    assert done.code == 0, done.err
    return tmp_path / "results"


def test_the_report_of_a_folder_is_made_again_with_tables_for_a_paper(results):
    page = (results / "report.confidential.html").read_text()
    (results / "report.confidential.html").unlink()
    done = run("result", "report", results, "--tables", "markdown")
    assert done.code == 0, done.err
    assert (results / "report.confidential.html").read_text() == page
    tables = (results / "tables.confidential.md").read_text()
    assert "many-facet Rasch model" in tables
    assert "Facet: marker: Measures and Fit" in tables
    assert run("result", "report", results, "--title", "Two", "--tables", "word").code == 0
    assert "<h1>Two</h1>" in (results / "report.confidential.html").read_text()
    assert (results / "tables.confidential.docx").stat().st_size > 10_000
    assert run("result", "report", results, "--item-sheets").code == 2


def test_scales_turn_measures_of_persons_and_stretch_severities(results):
    tables = {}
    for name in ("persons", "facet_marker"):
        with (results / f"{name}.confidential.csv").open() as file:
            rows = list(csv.DictReader(file))
        columns = ("measure", "se", "scaled_measure", "scaled_se")
        tables[name] = np.array([[row[name] for name in columns] for row in rows], float).T
    persons, raters = tables.values()
    slope = 100 / persons[0].std(ddof=1)
    np.testing.assert_allclose(persons[2], 500 + slope * (persons[0] - persons[0].mean()))
    np.testing.assert_allclose(raters[2:], slope * raters[:2], rtol=1e-6)


def test_new_ratings_are_scored_with_known_severities(results, marks):
    done = run("score", marks, "--with", results, "--json")
    found = {row["person"]: row["ability"] for row in json.loads(done.out)["persons"]}
    with (results / "persons.confidential.csv").open() as file:
        known = {row["person"]: float(row["measure"]) for row in csv.DictReader(file)}
    assert found.keys() == known.keys()
    assert [found[name] for name in known] == pytest.approx([*known.values()], abs=1e-4)
    assert run("score", marks, "--with", results, "--means", "month").code == 2
    assert run("score", marks, "--with", results, "--out", results.parent / "scores").code == 0


def test_check_says_what_is_wrong_with_ratings(marks):
    done = run("check", marks, "--rater", "marker", "--json")
    document = json.loads(done.out)
    assert document["summary"].startswith("720 ratings")
    assert [*document] == ["summary", "findings"]
    plain = run("check", marks, "--rater", "marker")
    assert plain.code == 0
    assert "separation" in plain.out
    assert all(row["title"] in plain.out for row in document["findings"])


def test_earlier_results_anchor_later_ones_and_are_linked(results, marks, tmp_path):
    held = run("fit", marks, "--rater", "marker", "--anchors", results)
    assert held.code == 2  # nothing is left to estimate
    items = tmp_path / "steps.csv"
    items.write_text("item,step,threshold\nI2,1,-1\nI2,2,0\nI2,3,1\n")
    done = run("fit", marks, "--rater", "marker", "--anchors", items, "--json")
    rows = {row["item"]: row for row in json.loads(done.out)["items"]}
    assert rows["I2"]["thresholds"] == [-1.0, 0.0, 1.0]
    assert rows["I2"]["status"] == "anchored"
    for words in ((), ("--by", "marker")):
        link = json.loads(run("link", results, results, *words, "--json").out)
        assert link["shift"] == pytest.approx(0, abs=1e-12)
    assert len(link["markers"]) == 4
    assert run("link", results, results, "--by", "month").code == 2


def test_a_column_that_is_not_there_and_options_that_mean_nothing_are_refused(marks):
    assert run("fit", marks, "--rater", "judge").code == 2
    refused = run("fit", marks, "--rater", "marker", "--weight", "month")
    assert refused.code == 2
    assert "--weight" in refused.err
