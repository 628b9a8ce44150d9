"""The worked example of CONTRIBUTING.md: two entries make an estimator."""

import re
from pathlib import Path
from runpy import run_path

import numpy as np
import pytest

import discreet
from commandline import discreet as run_discreet
from discreet.models import methods

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"


@pytest.fixture(autouse=True)
def unweighted(tmp_path, monkeypatch):
    example = CONTRIBUTING.read_text().partition("### A new estimator")[2]
    (tmp_path / "entries.py").write_text(re.findall(r"```text\n(.*?)```", example, re.S)[0])
    tables = {"PAIR_METHODS": {}, "METHOD_WORDS": {}}
    run_path(str(tmp_path / "entries.py"), {**vars(methods), **tables})
    for name, entries in tables.items():
        for key, entry in entries.items():
            monkeypatch.setitem(getattr(methods, name), key, entry)
    monkeypatch.setitem(methods.METHODS, "unweighted", tables["PAIR_METHODS"]["unweighted"])


def leave_out(share):
    rng = np.random.default_rng(3)
    codes = discreet.datasets.lsat().to_array().astype(float)
    codes[rng.random(codes.shape) < share] = np.nan
    return codes


def test_the_new_estimator_is_the_refined_one_where_everybody_answered_everything():
    ours = discreet.fit(leave_out(0), method="unweighted")
    refined = discreet.fit(leave_out(0), method="refined")
    assert ours.method == "unweighted"
    np.testing.assert_allclose(ours.difficulty, refined.difficulty, atol=1e-9)
    np.testing.assert_allclose(ours.se, refined.se, rtol=1e-9)


def test_the_new_estimator_weighs_persons_alike_where_answers_are_missing():
    ours = discreet.fit(leave_out(0.4), method="unweighted")
    refined = discreet.fit(leave_out(0.4), method="refined")
    apart = np.abs(ours.difficulty - refined.difficulty)
    assert 1e-6 < apart.max() < ours.se.max()
    assert np.isfinite(ours.se).all()


def test_the_command_line_knows_the_new_estimator(tmp_path):
    path = tmp_path / "answers.csv"
    np.savetxt(path, leave_out(0), fmt="%d", delimiter=",", header="a,b,c,d,e", comments="")
    ended = run_discreet("fit", path, "--method", "unweighted", "--out", tmp_path / "results")
    assert ended.code == 0
    assert "Zwinderman" in (tmp_path / "results" / "report.confidential.html").read_text()
