"""An agency from decision to correction, as typed, and what it cost every single person."""

import csv
import json
from math import exp
from pathlib import Path
from statistics import NormalDist

import pytest

from commandline import WORKFLOW, discreet, type_page

pytest.importorskip("cryptography", reason="the extra approvals is not installed")

PAGE = Path(__file__).parents[2] / "docs" / WORKFLOW
RELEASES = {
    "reading-north": "north.csv",
    "reading-south": "south.csv",
    "reading-1": "nation.csv",
    "reading-2": "corrected.csv",
}
"""Every bundle of the page, in the order of the ledger, and the file that it came from."""
PLACES = {"north": "north.csv", "south": "south.csv", "nation": "nation.csv"}
DELTA = 1e-6
ROUNDING = 1.0001
"""The ledger rounds up, and counts that noise on whole numbers is not quite Gaussian."""


def gaussian_delta(epsilon, mu):
    """Balle and Wang (2018), theorem 8."""
    cdf = NormalDist().cdf
    return cdf(mu / 2 - epsilon / mu) - exp(epsilon) * cdf(-mu / 2 - epsilon / mu)


def true_spend(releases):
    """What releases with Gaussian noise allow together about somebody who is in all of them."""
    mu = sum(2 * one["guarantee"]["rho"] for one in releases) ** 0.5
    low, high = 0.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(middle, mu) > DELTA else (low, middle)
    return high


def list_pupils(name):
    with Path(name).open() as file:
        return {row["pupil"] for row in csv.DictReader(file)}


def spend_on_everybody(bundles):
    """Give every pupil the releases that they are really in, and add up."""
    inside = {name: list_pupils(RELEASES[name]) for name in bundles}
    totals = {}
    for pupil in set().union(*inside.values()):
        mine = tuple(name for name in bundles if pupil in inside[name])
        totals.setdefault(mine, set()).add(pupil)
    return {
        pupil: true_spend([bundles[name] for name in mine])
        for mine, pupils in totals.items()
        for pupil in pupils
    }


def test_an_agency_decides_proposes_approves_releases_corrects_and_accounts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    type_page(PAGE)

    found = sorted(path.parent.name for path in tmp_path.glob("*/privacy.json"))
    assert found == sorted(RELEASES)
    for name in found:
        assert discreet("verify", name).code == 0
    bundles = {name: json.loads(Path(name, "privacy.json").read_text()) for name in RELEASES}

    # The ledger knows declarations only; everybody is counted here.
    spent = spend_on_everybody(bundles)
    assert len(spent) == 3000
    ledger = discreet("ledger", "show", "spent.db", "--json").document
    told = {row["population"]: row["spent"] for row in ledger["populations"]}
    worst = {place: max(spent[one] for one in list_pupils(PLACES[place])) for place in PLACES}
    for place, most in {**worst, "everyone": max(spent.values())}.items():
        assert most <= told.pop(place) <= most * ROUNDING, place
    assert not told
    largest = ledger["largest"]["epsilon"]
    assert max(spent.values()) <= largest <= max(spent.values()) * ROUNDING
    elsewhere = list_pupils("nation.csv") - list_pupils("north.csv") - list_pupils("south.csv")
    assert len(elsewhere) == 600
    assert max(spent[one] for one in elsewhere) < worst["south"] < worst["north"] < 2

    # Every bundle says what was spent on its population when it was made, and who approved it.
    names = list(RELEASES)
    for number, name in enumerate(names, 1):
        until = spend_on_everybody({one: bundles[one] for one in names[:number]})
        account, approval = bundles[name]["account"], bundles[name]["approval"]
        most = max(until[one] for one in list_pupils(PLACES[account["population"]]))
        assert most <= account["epsilon"] <= most * ROUNDING
        assert [one["name"] for one in approval["approvers"]] == ["Ada", "Bob"]
        assert "approved by Ada, Bob</p>" in Path(name, "report.html").read_text()
        assert [one["name"] for one in ledger["releases"][number - 1]["approved_by"]] == [
            "Ada",
            "Bob",
        ]

    # The correction is where it belongs, and shows: R5 was the second hardest and is the easiest.
    ranks = [discreet("top", name, "-k", 2).out for name in ("reading-1", "reading-2")]
    assert "R5" in ranks[0]
    assert "R5" not in ranks[1]
    notice = Path("correction.html").read_text()
    assert "Corrected: Reading in grade 4, version 1" in notice
    assert "The key of R5 was the wrong way round." in notice
    assert "stays spent" in notice
    for region in ("north", "south"):
        withdrawn = Path(f"withdrawn-{region}.html").read_text()
        assert f"Withdrawn: Reading in grade 4, {region}, version 1" in withdrawn

    report = Path("spending.html").read_text()
    for row in ledger["populations"]:
        assert f"{row['spent']:.4f}" in report
    assert f"{largest:.4g}" in report
