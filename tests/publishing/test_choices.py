"""How the parameters of a release came about: who chose the mechanism, and whether somebody looked.

No file of a bundle may say that parameters were set without looking where the data was looked at.
"""

import json

import numpy as np
import pytest

import discreet as library
from commandline import LSAT_ITEMS, discreet
from discreet.errors import BadUsage
from discreet.privacy.ledger.policy import Approver
from discreet.privacy.ledger.request import Request, write_key
from discreet.simulation import simulate, simulate_comparisons
from discreet.words import LANGUAGES
from refusals import refused

UNSEEN = {
    "en": ("without looking", "in advance", "before looking"),
    "de": ("ohne Blick", "im Voraus"),
    "es": ("sin mirar", "de antemano"),
}
"""What a bundle says of parameters that were set without looking."""
SEEN = {"en": "were looked at before", "de": "angesehen, bevor", "es": "se miraron antes"}
BUDGETS = "chosen in advance, and however they were chosen"
"""Of the budgets of several releases; it says what follows if they were."""


@pytest.fixture
def board(tmp_path):
    pytest.importorskip("cryptography", reason="the extra approvals is not installed")
    ledger = library.Ledger.create(tmp_path / "board.db", 5.0, 1e-5, approvals=1)
    ledger.change_approvers(Approver("ada", write_key(tmp_path / "ada.key")))
    return tmp_path


def release_proposed(board, **more):
    told = {"items": LSAT_ITEMS, "ledger": board / "board.db", **more}
    request = library.propose(library.Budget(0.5), **told)
    signed = library.approve(request, board / "ada.key")
    return library.release_request(library.datasets.lsat(), signed, ledger=board / "board.db")


# --- who chose the mechanism ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "chosen_by", "words"),
    [
        ({}, "auto", "auto: pairs, because"),
        ({"mechanism": "pairs"}, "steward", "pairs: named by the steward"),
        ({"max_answers": 3}, "auto", "auto: margins, because"),
    ],
)
def test_a_request_keeps_who_chose_the_mechanism(board, given, chosen_by, words):
    directly = library.release(
        library.datasets.lsat(), library.Budget(0.5), items=LSAT_ITEMS, **given
    )
    proposed = release_proposed(board, **given)
    for made in (directly, proposed):
        assert made.record["chosen_by"] == chosen_by
        assert made.record["choice"].startswith(words)
    assert proposed.record["choice"] == directly.record["choice"]
    resumed = library.resume_release(board / "board.db", 1)
    assert resumed.record["choice"] == directly.record["choice"]
    assert resumed.record["chosen_by"] == chosen_by


def test_the_choice_of_a_ranking_is_kept_too(board):
    votes = simulate_comparisons(200, 5, 4, rng=np.random.default_rng(1)).comparisons
    told = {"items": votes.items, "kind": "comparisons", "max_answers": 4}
    request = library.propose(library.Budget(0.5), ledger=board / "board.db", **told)
    signed = library.approve(request, board / "ada.key")
    made = library.release_request(votes, signed, ledger=board / "board.db")
    assert made.record["chosen_by"] == "auto"
    assert made.record["choice"].startswith("auto: ")


def test_why_auto_chose_is_found_anew_and_never_read_from_the_request(board, monkeypatch):
    """A later version may choose otherwise; what was approved is released, and says so."""
    from discreet.privacy import mechanisms

    request = library.propose(
        library.Budget(0.5), items=LSAT_ITEMS, ledger=board / "board.db", max_answers=3
    )
    signed = library.approve(request, board / "ada.key")
    other = mechanisms.find_mechanism("laplace-pairs")
    monkeypatch.setattr(mechanisms, "_pick_mechanism", lambda _: (other, "times change"))
    made = library.release_request(
        library.datasets.lsat(), signed, ledger=board / "board.db", out=board / "out"
    )
    assert made.record["mechanism"] == "margins"
    assert made.record["choice"] == "auto: margins, chosen by an earlier version"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"chosen_by": "fate"}, "chosen_by is 'fate'"),
        ({"estimator": "guess"}, "estimator is 'guess'"),
        ({"looked": "no"}, "looked is 'no'"),
        ({"format": "discreet request 2"}, "format is 'discreet request 2', this version reads"),
    ],
)
def test_a_request_says_who_chose_or_is_none(board, change, words):
    body = library.propose(library.Budget(0.5), items=LSAT_ITEMS, ledger=board / "board.db").body
    with pytest.raises(BadUsage, match=words):
        Request({**body, **change})


def test_an_approved_request_is_released_with_no_other_choice(board):
    """What is charged says what was signed: also who chose, and whether somebody looked."""
    from dataclasses import replace

    from discreet.errors import NotAllowed
    from discreet.publishing.delivery import DataSource, DeliveryTerms, release_spec
    from discreet.publishing.spec import ReleaseSpec

    request = library.propose(
        library.Budget(0.5), items=LSAT_ITEMS, ledger=board / "board.db", looked=True
    )
    signed = library.approve(request, board / "ada.key")
    terms, spec = (
        DeliveryTerms(board / "board.db", request=signed),
        ReleaseSpec.from_dict(signed.body),
    )
    unseen = replace(spec, identity=replace(spec.identity, looked=False))
    with refused(NotAllowed, "request_another_release_another", others="looked"):
        release_spec(DataSource(library.datasets.lsat()), unseen, terms)
    named = replace(spec, public=replace(spec.public, chosen_by="steward"))
    with refused(NotAllowed, "request_another_release_another", others="chosen_by"):
        release_spec(DataSource(library.datasets.lsat()), named, terms)
    assert library.Ledger.open(board / "board.db").releases() == ()


# --- whether somebody looked ------------------------------------------------------------------


def release_of(kind, **more):
    if kind == "comparisons":
        votes = simulate_comparisons(200, 5, 4, rng=np.random.default_rng(1)).comparisons
        told = {"items": votes.items, "max_comparisons": 4, "judges": 250}
        return library.release_comparisons(votes, library.Budget(1.0), **told, **more)
    steps = 2 if kind == "steps" else 1
    made = simulate(200, 5, steps=steps, rng=np.random.default_rng(1)).responses
    items = dict.fromkeys(made.items, steps) if steps > 1 else list(made.items)
    told = {"items": items, "design": "random", "persons": 250}
    return library.release(made, library.Budget(1.0), **told, **more)


@pytest.mark.parametrize("language", sorted(LANGUAGES))
@pytest.mark.parametrize("kind", ["answers", "steps", "comparisons"])
def test_no_file_says_that_nobody_looked_where_somebody_did(tmp_path, kind, language):
    about = {"language": language}
    for looked in (False, True):
        made = release_of(kind, about=about, looked=looked, out=tmp_path / str(looked))
        assert made.record["looked"] is looked
    for path in sorted((tmp_path / "True").iterdir()):
        if path.suffix == ".npz":
            continue
        text = " ".join(path.read_text().split()).replace(BUDGETS, "")
        for words in [one for said in UNSEEN.values() for one in said]:
            assert words not in text, f"{path.name}: {words}"
    told = (tmp_path / "True" / "statement.md").read_text()
    assert SEEN[language] in told
    assert SEEN[language] in (tmp_path / "True" / "report.html").read_text()
    before = (tmp_path / "False" / "statement.md").read_text()
    assert SEEN[language] not in before
    assert UNSEEN[language][0] in before
    library.verify(tmp_path / "True")


def test_the_command_line_says_that_somebody_looked(board, tmp_path):
    rows = library.datasets.lsat().store.rows(0, 1000).tolist()
    lines = [",".join(LSAT_ITEMS), *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "answers.csv").write_text("\n".join(lines))
    (tmp_path / "items.txt").write_text("\n".join(LSAT_ITEMS))
    library.Ledger.create(tmp_path / "spent.db", 2.0)
    told = ["--items", tmp_path / "items.txt", "--epsilon", 0.5]
    paid = ["--ledger", tmp_path / "spent.db", "--out", tmp_path / "out", "--looked"]
    ended = discreet("release", tmp_path / "answers.csv", *told, *paid)
    assert ended.code == 0, ended.err
    assert json.loads((tmp_path / "out" / "privacy.json").read_text())["looked"] is True
    # In a request it is signed, and beside one it cannot be said.
    paid = ["--ledger", board / "board.db", "--out", tmp_path / "request.json", "--looked"]
    assert discreet("steward", "propose", *told, *paid).code == 0
    library.approve(tmp_path / "request.json", board / "ada.key")
    typed = ["release", tmp_path / "answers.csv", "--request", tmp_path / "request.json"]
    refused = discreet(*typed, "--out", tmp_path / "approved", "--looked")
    assert (refused.code, "--looked" in refused.err) == (2, True)
    assert discreet(*typed, "--out", tmp_path / "approved").code == 0
    assert json.loads((tmp_path / "approved" / "privacy.json").read_text())["looked"] is True
