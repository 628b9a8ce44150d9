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


def test_a_column_that_is_not_there_and_options_that_mean_nothing_are_refused(marks):
    assert run("fit", marks, "--rater", "judge").code == 2
    refused = run("fit", marks, "--rater", "marker", "--scale", "500,100")
    assert refused.code == 2
    assert "--scale" in refused.err
