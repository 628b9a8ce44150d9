"""``discreet compare`` as a user types it."""

import json
import shlex

import pytest

from commandline import discreet

VOTES = (
    "judge,winner,loser\nann,ash,elm\nann,ash,oak\nbob,ash,elm\nbob,oak,ash\ncat,elm,ash\n"
    "cat,elm,oak\ndan,ash,elm\ndan,oak,elm\n"
)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "votes.csv").write_text(VOTES)
    (tmp_path / "objects.txt").write_text("ash\nelm\noak\n")
    assert discreet("ledger", "create", "judges.db", "--epsilon", "2").code == 0
    return tmp_path


RELEASE = shlex.split(
    "compare release votes.csv --items objects.txt --max-comparisons 2 --epsilon 1 "
    "--ledger judges.db --out ranking"
)


def test_rank_prints_strengths_and_json(here):
    shown = discreet("compare", "rank", "votes.csv")
    assert shown.code == 0
    assert "Top 1: ash" in shown.out
    document = json.loads(discreet("compare", "rank", "votes.csv", "-k", "2", "--json").out)
    assert document["judges"] == 4
    assert len(document["top"]) == 2
    assert {row["item"]: row["won"] for row in document["items"]} == {"ash": 4, "elm": 2, "oak": 2}


def test_rank_says_why_an_object_has_no_strength(here):
    with (here / "votes.csv").open("a") as file:
        file.write("eve,fir,ash\n")
    shown = discreet("compare", "rank", "votes.csv", "-k", "9")
    assert "always_won" in shown.out
    assert "never lost: fir" in shown.err


def test_release_charges_the_ledger_and_writes_the_folder(here):
    released = discreet(*RELEASE, "--json")
    assert released.code == 0, released.err
    document = json.loads(released.out)
    assert document["mechanism"] == "win-pairs"
    assert [row["item"] for row in document["items"]] == ["ash", "elm", "oak"]
    assert (here / "ranking" / "strengths.csv").exists()
    assert discreet(*RELEASE).code == 2  # the folder exists
    shown = discreet(*RELEASE, "--force", "--mechanism", "net-wins", "--judges", "40")
    assert json.loads((here / "ranking" / "privacy.json").read_text())["judges"] == 40
    assert "protects one judge's whole set of comparisons" in shown.out
    spent = json.loads(discreet("ledger", "show", "judges.db", "--json").out)
    assert len(spent["releases"]) == 2
    assert discreet(*RELEASE, "--force", "--epsilon", "3").code == 4


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("--mechanism", "margins"), 2),
        (("--judge", "nobody"), 2),
        (("--max-comparisons", "0"), 2),
        (("--judges", "3"), 3),
        (("--items", "absent.txt"), 2),
    ],
)
def test_mistakes_have_exit_codes_and_cost_nothing(here, change, code):
    assert discreet(*RELEASE, *change).code == code
    assert not json.loads(discreet("ledger", "show", "judges.db", "--json").out)["releases"]


def test_bad_data_ends_with_three_and_no_link_with_five(here):
    (here / "votes.csv").write_text("judge,left,right,outcome\nann,ash,elm,tie\n")
    assert discreet("compare", "rank", "votes.csv").code == 3
    (here / "votes.csv").write_text("judge,winner,loser\nann,ash,elm\n")
    assert discreet("compare", "rank", "votes.csv").code == 5
