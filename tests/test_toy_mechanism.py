"""The worked example of CONTRIBUTING.md: one file and one entry make a mechanism."""

import json
import re
import sys
from ast import literal_eval
from pathlib import Path

import numpy as np
import pytest

import discreet as library
from commandline import discreet
from discreet.privacy import mechanisms
from discreet.privacy.audit import Size, Verdict, audit_mechanism
from discreet.privacy.mechanisms import MECHANISMS, Entry, find_mechanism
from discreet.privacy.noise import ExactNoise
from discreet.secure import SeededSource

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"


@pytest.fixture(autouse=True)
def toy(tmp_path, monkeypatch):
    module, entry = re.findall(r"```(?:python|text)\n(.*?)```", PAGE.read_text(), re.S)
    (tmp_path / "toy.py").write_text(module)
    monkeypatch.setattr(mechanisms, "__path__", [*mechanisms.__path__, str(tmp_path)])
    for name, values in literal_eval("{" + entry.replace("Entry(", "(") + "}").items():
        monkeypatch.setitem(MECHANISMS, name, Entry(*values))
    yield
    sys.modules.pop("discreet.privacy.mechanisms.toy", None)


def test_it_is_released_with_a_ledger_and_resumed(tmp_path):
    answers = library.datasets.lsat()
    ledger = library.Ledger.create(tmp_path / "spent.db", epsilon=2.0, delta=1e-5)
    made = library.release(
        answers,
        library.Budget(1.0),
        items=[f"Item{number}" for number in range(1, 6)],
        mechanism="toy",
        ledger=ledger,
    )
    assert made.guarantee.mechanism == "toy"
    assert np.isfinite(made.estimate.se).all()
    again = library.resume_release(ledger, 1, out=tmp_path / "bundle")
    assert np.array_equal(again.estimate.difficulty, made.estimate.difficulty)


def test_it_is_planned_beside_the_others_and_costs_more_than_pairs():
    ended = discreet(
        "plan", "--persons", 500, "--items", 8, "--epsilon", 1, "--mechanism", "toy",
        "--compare", "--json",
    )  # fmt: skip
    document = json.loads(ended.out)
    assert document["mechanism"] == "toy"
    assert document["mechanisms"]["toy"] == document["rmse"] > document["mechanisms"]["pairs"]


def test_it_is_attacked_and_keeps_its_promise_with_room_to_spare():
    options = {"size": Size(8, 4), "runs": 100, "noise": ExactNoise(SeededSource(1))}
    report = audit_mechanism(find_mechanism("toy"), library.Budget(1.0), **options)
    assert report.verdict is not Verdict.REFUTED
    assert 0 < report.lower_bound < 0.9
    assert discreet("audit", "--mechanism", "toy", "--epsilon", 1, "--runs", 100).code == 0
