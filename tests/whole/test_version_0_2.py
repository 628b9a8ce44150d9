"""Files that version 0.2.0 wrote: they open, verify, resume, refit, score and merge."""

import json
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import discreet as library
from commandline import discreet
from discreet.atomic import CALIBRATION_FILE
from discreet.errors import BadUsage, LedgerError, NotAllowed
from discreet.persons.scoring import PersonScores
from discreet.privacy.ledger import Ledger
from discreet.privacy.ledger import file as ledger_file
from discreet.privacy.ledger.file import seal
from discreet.privacy.ledger.policy import Approver
from discreet.privacy.ledger.request import write_key
from discreet.saving import read_result

DATA = Path(__file__).parents[1] / "data" / "version-0.2"
EXPECTED = json.loads((DATA / "expected.json").read_text())
ITEMS = ["a", "b", "c", "d"]
BUNDLES = sorted(EXPECTED["bundles"])
COMPARISONS = ("net-wins", "win-pairs")
WITHOUT_VALUES = ("randomized-response",)


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with the files, its ledgers made from their text; requests name them from here."""
    folder = shutil.copytree(DATA, tmp_path / "desk")
    for text in folder.glob("*.sql"):
        connection = sqlite3.connect(text.with_suffix(".db"))
        connection.executescript(text.read_text(encoding="utf-8"))
        connection.close()
    monkeypatch.chdir(folder)
    return folder


def numbers(stored):
    return np.array([np.nan if one is None else one for one in stored])


def same_values(released, stored):
    values = {name: array.ravel().tolist() for name, array in released.noisy.values.items()}
    assert values == stored


# --- ledgers of schema 3 ----------------------------------------------------------------------


def test_ledgers_open_with_everything_that_was_spent_and_declared(desk):
    unfinished = Ledger.open("unfinished.db")
    assert unfinished.spent() == tuple(EXPECTED["spent"]["unfinished.db"])
    assert [one.number for one in unfinished.releases()] == [*range(1, 9)]
    regions = Ledger.open("populations.db")
    for name, spent in EXPECTED["spent"]["populations.db"].items():
        assert regions.spent(name) == tuple(spent)
    assert regions.populations().parts_of("nation") == ["north", "south"]
    assert regions.policy.max_epsilon == 0.5
    assert regions.remembers_persons
    board = Ledger.open("board.db")
    assert [one.name for one in board.board().approvers] == ["ada", "bob"]
    assert board.approvals == 2
    for ledger in ("unfinished.db", "populations.db", "board.db", "open-board.db"):
        assert discreet("ledger", "show", ledger).code == 0
        assert discreet("ledger", "report", ledger).code == 0


@pytest.mark.parametrize("number", [3, 4, 5, 8])
def test_stored_values_are_delivered_as_they_were_drawn(desk, number):
    stored = EXPECTED["values"]["unfinished.db"][str(number)]
    spent = Ledger.open("unfinished.db").spent()
    released = library.resume_release("unfinished.db", number, out="out")
    same_values(released, stored)
    library.verify("out")
    assert Ledger.open("unfinished.db").spent() == spent
    shown = discreet("ledger", "show", "unfinished.db").out
    assert f"Release {number} has no bundle yet" not in shown


def test_a_stored_release_is_resumed_on_the_command_line(desk):
    ended = discreet("ledger", "resume", "unfinished.db", 3, "--out", "out")
    assert ended.code == 0, ended.err
    same_values(library.read_release("out"), EXPECTED["values"]["unfinished.db"]["3"])


@pytest.mark.parametrize(("number", "file"), [(2, "answers.csv"), (7, "votes.csv")])
def test_a_charged_release_is_made_from_the_same_answers(desk, number, file):
    with pytest.raises(BadUsage, match="needs the answers again"):
        library.resume_release("unfinished.db", number)
    spent = Ledger.open("unfinished.db").spent()
    made = discreet("ledger", "resume", "unfinished.db", number, "--out", "out", "--answers", file)
    assert made.code == 0, made.err
    library.verify("out")
    assert Ledger.open("unfinished.db").spent() == spent


def test_a_finished_release_and_one_whose_values_are_lost_are_never_drawn_again(desk):
    with pytest.raises(BadUsage, match="has arrived"):
        library.resume_release("unfinished.db", 1, "answers.csv")
    with pytest.raises(LedgerError, match=r"[Nn]oise is drawn once"):
        library.resume_release("unfinished.db", 6, "answers.csv")


def test_recovery_files_are_read_once_when_the_ledger_is_migrated(desk):
    states = [one.state for one in Ledger.open("unfinished.db").releases()]
    assert states == [
        *("completed", "charged", "stored", "stored"),
        *("completed", "void", "charged", "stored"),
    ]
    for name in ("unfinished", "populations", "board"):
        Ledger.open(f"{name}.db")
        assert not Path(f"{name}.db.recovery").exists()
    released = library.resume_release("unfinished.db", 3, out="out")
    same_values(released, EXPECTED["values"]["unfinished.db"]["3"])
    library.check_ledger("unfinished.db", "out")


@pytest.mark.parametrize("inside", [True, False])
def test_a_migration_that_fails_leaves_ledger_and_recovery_files_as_they_are(
    desk, monkeypatch, inside
):
    monkeypatch.setattr(ledger_file, "INSIDE_BYTES", 10**6 if inside else 10)
    before = {path: path.read_bytes() for path in desk.glob("unfinished.db.recovery/*")}
    ledger = Path("unfinished.db").read_bytes()

    def die(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("discreet.privacy.ledger.file.write_inside", die)
        with pytest.raises(KeyboardInterrupt):
            Ledger.open("unfinished.db")
    assert Path("unfinished.db").read_bytes() == ledger
    assert {path: path.read_bytes() for path in desk.glob("unfinished.db.recovery/*")} == before
    released = library.resume_release("unfinished.db", 3, out="out")
    same_values(released, EXPECTED["values"]["unfinished.db"]["3"])


def test_a_reservation_that_is_a_path_reads_no_recovery_file_outside(desk):
    """Version 0.2.0 took any name for a reservation."""
    connection = sqlite3.connect("unfinished.db")
    with connection:
        (key, settings) = connection.execute("SELECT key, settings FROM ledger").fetchone()
        tag = seal(key, settings)
        rows = connection.execute("SELECT number, body FROM releases ORDER BY number").fetchall()
        for number, body in rows:
            values = json.loads(body)
            if number == 3:
                Path(f"unfinished.db.recovery/{values['reservation']}").rename("outside")
                values["reservation"] = "../outside"
            body = json.dumps(values, sort_keys=True)
            tag = seal(key, tag + body)
            changed = (values["reservation"], body, tag, number)
            connection.execute(
                "UPDATE releases SET reservation = ?, body = ?, tag = ? WHERE number = ?", changed
            )
        connection.execute("UPDATE ledger SET head = ?", (tag,))
    connection.close()
    assert Ledger.open("unfinished.db").releases()[2].state == "void"
    assert Path("outside").exists()


def test_a_ledger_with_a_policy_and_remembered_persons_goes_on(desk):
    library.resume_release("populations.db", 1, out="out")
    library.verify("out")
    budget = library.Budget(0.3, 1e-6)
    told = {"items": ITEMS, "ledger": "populations.db", "persons": 60}
    with pytest.raises(NotAllowed):
        library.release("answers.csv", library.Budget(0.9, 1e-6), population="north", **told)
    with pytest.raises(LedgerError, match="disjoint"):
        library.release("answers.csv", budget, population="south", **told)
    library.release("answers.csv", budget, population="north", out="again", **told)
    assert len(Ledger.open("populations.db").releases()) == 2


# --- requests ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_file", "file"),
    [
        ("request-signed.json", "answers.csv"),
        ("request-steps.json", "survey.csv"),
        ("request-votes.json", "votes.csv"),
    ],
)
def test_a_signed_request_is_released_once(desk, request_file, file):
    pytest.importorskip("cryptography", reason="the extra approvals is not installed")
    release = ["compare", "release"] if file == "votes.csv" else ["release"]
    ended = discreet(*release, file, "--request", request_file, "--out", "out")
    assert ended.code == 0, ended.err
    library.verify("out")
    record = json.loads(Path("out/privacy.json").read_text())
    assert [one["name"] for one in record["approval"]["approvers"]] == ["ada", "bob"]
    assert record["chosen_by"] == "unknown"  # nobody wrote it down
    assert record["choice"].endswith(": named in the request")
    with pytest.raises(NotAllowed, match="carried out already"):
        library.release_request(file, request_file)


def test_a_request_that_was_charged_is_resumed_and_not_charged_again(desk):
    with pytest.raises(NotAllowed, match="carried out already"):
        library.release_request("answers.csv", "request-used.json")
    library.resume_release("board.db", 1, "answers.csv", out="out")
    library.verify("out")
    record = json.loads(Path("out/privacy.json").read_text())
    assert [one["name"] for one in record["approval"]["approvers"]] == ["ada", "bob"]
    assert record["choice"] == "pairs: named in the request"


def test_a_proposed_request_is_shown_signed_and_released(desk):
    pytest.importorskip("cryptography", reason="the extra approvals is not installed")
    shown = discreet("approve", "request-proposed.json")
    assert shown.code == 0
    assert "epsilon      0.5" in shown.out
    assert "title: Reading" in shown.out
    Ledger.open("open-board.db").change_approvers(Approver("eve", write_key("eve.key")))
    signed = discreet("approve", "request-open.json", "--signing-key", "eve.key")
    assert signed.code == 0, signed.err
    library.release_request("answers.csv", "request-open.json", out="out")
    library.verify("out")


# --- bundles ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BUNDLES)
def test_a_bundle_is_whole_read_and_fitted_again(desk, name):
    path, expected = desk / "bundles" / name, EXPECTED["bundles"][name]
    library.verify(path)
    assert discreet("verify", path).code == 0
    read = library.read_released_ranking if name in COMPARISONS else library.read_release
    released = read(path)
    np.testing.assert_allclose(
        released.estimate.difficulty, numbers(expected["difficulty"]), atol=1e-6
    )
    np.testing.assert_allclose(released.estimate.se, numbers(expected["se"]), atol=1e-6)
    np.testing.assert_allclose(
        released.estimate.thresholds.ravel(), numbers(expected["thresholds"]), atol=1e-6
    )
    if name in WITHOUT_VALUES:
        with pytest.raises(BadUsage, match="holds no noisy values"):
            library.refit(path)
    else:
        again = library.refit(path)
        np.testing.assert_allclose(again.difficulty, numbers(expected["refit"]), atol=1e-6)


@pytest.mark.parametrize("name", BUNDLES)
def test_a_bundle_is_ranked_translated_withdrawn_and_used(desk, name):
    path = desk / "bundles" / name
    assert discreet("top", path, "-k", 2).code == 0
    items = json.loads((path / "privacy.json").read_text())["items"]
    assert discreet("compare-items", path, *items[:2]).code == 0
    assert discreet("withdraw", path, "--because", "A test.", "--out", "notice.md").code == 0
    ended = discreet("translate", path, "--language", "en", "--out", "translated")
    assert ended.code == 0, ended.err
    library.verify("translated")
    if name not in COMPARISONS:
        data = "survey.csv" if name in ("steps", "rating-scale") else "answers.csv"
        assert discreet("score", data, "--with", path).code == 0


def test_a_correction_names_an_earlier_release(desk):
    told = {"items": {"u": 2, "v": 2, "w": 3}, "about": {"version": "3", "supersedes": "2"}}
    told["about"]["reason"] = "Another key was wrong."
    library.release("survey.csv", library.Budget(1.0), out="later", **told)
    ended = discreet("correct", "bundles/steps", "--by", "later", "--out", "notice.md")
    assert ended.code == 0, ended.err


# --- calibrations, results, counts ------------------------------------------------------------


@pytest.mark.parametrize("name", ["answers", "survey"])
@pytest.mark.parametrize("folder", ["calibrations", "results"])
def test_a_calibration_of_either_format_is_reported_and_scores(desk, name, folder):
    file = f"estimate-{name}.json" if folder == "results" else f"{name}/{CALIBRATION_FILE}"
    path, expected = desk / folder / file, EXPECTED["calibrations"][name]
    ended = discreet("score", f"{name}.csv", "--with", path, "--json")
    assert ended.code == 0, ended.err
    found = [row["ability"] for row in ended.document["persons"]]
    np.testing.assert_allclose(numbers(found), numbers(expected["ability"]), atol=1e-6)
    if folder == "calibrations":
        assert discreet("report", path, "--force").code == 0
    else:
        estimate = library.Estimate.load(path)
        np.testing.assert_array_equal(estimate.difficulty, numbers(expected["difficulty"]))
        np.testing.assert_array_equal(estimate.thresholds.ravel(), numbers(expected["thresholds"]))


@pytest.mark.parametrize("name", sorted(EXPECTED["results"]))
def test_a_saved_result_is_loaded_and_saved_again(desk, name):
    found = read_result(f"results/{name}.json")
    assert found is not None
    found.save("again.json")
    assert type(read_result("again.json")) is type(found)


def test_saved_scores_hold_what_they_held(desk):
    found = PersonScores.load("results/scores-answers.json")
    np.testing.assert_allclose(
        found.ability, numbers(EXPECTED["calibrations"]["answers"]["ability"]), atol=1e-12
    )


def test_a_bank_is_read_and_grows(desk):
    bank = library.read_bank("bank.csv")
    assert sorted(bank.items) == ITEMS
    ended = discreet("bank", "add", "bank.csv", "calibrations/answers",
                     "--source", "later")  # fmt: skip
    assert ended.code == 0, ended.err


@pytest.mark.parametrize("name", sorted(EXPECTED["counts"]))
def test_counts_are_loaded_and_fitted(desk, name):
    counts, expected = library.PairCounts.load(f"counts/{name}.npz"), EXPECTED["counts"][name]
    assert counts.persons == expected["persons"]
    for part in ("right_wrong", "answers", "right"):
        assert getattr(counts, part).tolist() == expected[part]
    library.fit(counts)


def test_counts_with_folds_are_added_and_keep_their_standard_errors(desk):
    parts = [library.PairCounts.load(f"counts/folds-{number}.npz") for number in (0, 1)]
    estimate = library.fit(sum(parts))
    np.testing.assert_allclose(estimate.difficulty, numbers(EXPECTED["fit_of_folds"]), atol=1e-6)
    np.testing.assert_allclose(estimate.se, numbers(EXPECTED["se_of_folds"]), atol=1e-6)
    ended = discreet("merge", "counts/folds-0.npz", "counts/folds-1.npz", "--out", "sum.npz")
    assert ended.code == 0, ended.err
