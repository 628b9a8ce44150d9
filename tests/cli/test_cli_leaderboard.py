"""``discreet leaderboard`` as a user types it."""

import csv
import json

import numpy as np
import pytest

from commandline import discreet


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng, rows = np.random.default_rng(1), ["model,question,passage,correct"]
    for question in range(90):
        for number, model in enumerate(("=ash", "elm", "oak")):
            right = rng.random(3) < (0.3, 0.6, 0.9)[number]
            rows += [f"{model},q{question},p{question // 3},{int(one)}" for one in right]
    (tmp_path / "log.csv").write_text("\n".join(rows))
    return tmp_path


def test_samples_and_clusters_are_counted_and_written(here):
    words = ("leaderboard", "log.csv", "--repeats", "sum", "--cluster", "passage")
    shown = discreet(*words, "--pass-at", "1,3", "--out", "board", "--json")
    assert shown.code == 0, shown.err
    document = json.loads(shown.out)
    assert (document["questions"], document["clusters"], document["samples"]) == (90, 30, 3)
    assert [row["model"] for row in document["models"]] == ["oak", "elm", "=ash"]
    assert [row["rank_low"] for row in document["models"]] == [1, 2, 3]
    assert [row["tier"] for row in document["models"]] == [1, 2, 3]
    assert len(document["comparisons"]) == 3
    assert all(row["pass@3"] > row["pass@1"] for row in document["models"])
    with (here / "board" / "leaderboard.confidential.csv").open() as file:
        rows = [*csv.DictReader(file)]
    assert [row["model"] for row in rows] == ["oak", "elm", "'=ash"]
    assert {row["access"] for row in rows} == {"confidential"}
    assert "oak" in (here / "board" / "leaderboard.confidential.html").read_text()
    assert "| oak |" in (here / "board" / "leaderboard.confidential.md").read_text()
    assert discreet(*words, "--out", "board").code == 2
    plain = discreet(*words)
    assert plain.code == 0
    assert plain.out.index("oak") < plain.out.index("elm") < plain.out.index("=ash")


def test_repeated_answers_are_asked_about_and_other_commands_do_not_sum_them(here):
    asked = discreet("leaderboard", "log.csv")
    assert asked.code == 3
    assert "--repeats sum" in asked.err
    assert discreet("check", "log.csv", "--repeats", "sum").code == 2
    assert discreet("leaderboard", "log.csv", "--repeats", "sum", "--pass-at", "x").code == 2
