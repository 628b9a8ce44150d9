"""Publishing: the ledger first, then noise, then a bundle that holds nothing confidential."""

import json
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import discreet
from commandline import discreet as commandline
from discreet import datasets
from discreet.answers.responses import Responses
from discreet.errors import BadBudget, BadResponses, BadUsage, BudgetExceeded, LedgerError
from discreet.privacy.mechanisms import mechanisms_for
from discreet.privacy.mechanisms.response import RandomizedResponse
from discreet.privacy.noise import ExactNoise
from discreet.publishing.bundle import bundle_files
from discreet.report.statement import write_statement
from discreet.secure import SeededSource
from refusals import disk_full, refused

MECHANISMS = mechanisms_for("answers")

FILES = {
    *("difficulties.csv", "privacy.json", "statement.md", "registry.yaml", "report.html"),
    "noisy.npz",
}
ITEMS = ["Item1", "Item2", "Item3", "Item4", "Item5"]
PURE = {"laplace-pairs", "laplace-margins", "randomized-response"}


@pytest.fixture
def answers():
    return datasets.lsat()


def seeded(seed=3):
    return ExactNoise(SeededSource(seed))


def publish(answers, name="pairs", *, epsilon=1.0, **settings):
    budget = discreet.Budget(epsilon, 0.0 if name in PURE else 1e-6)
    settings = {"items": answers.items, "mechanism": name, "noise": seeded(), **settings}
    return discreet.release(answers, budget, **settings)


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_every_mechanism_publishes_numbers_with_honest_intervals(answers, name):
    made = publish(answers, name)
    estimate = made.estimate
    assert estimate.items == answers.items
    assert np.isfinite(estimate.difficulty).all()
    assert (estimate.se > 0).all()
    assert estimate.difficulty.mean() == pytest.approx(0, abs=1e-9)
    assert made.guarantee.mechanism == name
    assert estimate.persons == 1000


def test_the_release_keeps_the_order_of_the_item_list(answers):
    backwards = tuple(reversed(answers.items))
    assert publish(answers, items=backwards).estimate.items == backwards


def test_a_bundle_has_its_five_files_and_reads_back(answers, tmp_path):
    made = publish(answers)
    made.save(tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES
    again = discreet.read_release(tmp_path / "out")
    assert again.estimate.items == made.estimate.items
    np.testing.assert_allclose(again.estimate.difficulty, made.estimate.difficulty, atol=1e-6)
    np.testing.assert_allclose(again.estimate.se, made.estimate.se, atol=1e-6)
    assert again.guarantee == made.guarantee
    record = json.loads((tmp_path / "out" / "privacy.json").read_text())
    assert record["schema_version"] == 1
    assert "/" in record["noise"]["right_wrong"]["scale"] or record["noise"]["right_wrong"]["scale"]


def test_an_existing_folder_is_refused_and_replaced_only_by_force(answers, tmp_path):
    made = publish(answers)
    made.save(tmp_path / "out")
    (tmp_path / "out" / "statement.md").write_text("stays unless forced")
    with refused(BadUsage, "exists_already_choose_another"):
        made.save(tmp_path / "out")
    assert (tmp_path / "out" / "statement.md").read_text() == "stays unless forced"
    made.save(tmp_path / "out", force=True)
    discreet.verify(tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES


def test_force_never_replaces_what_is_not_a_bundle(answers, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    with refused(BadUsage, "holds_not_part_release"):
        publish(answers).save(tmp_path / "thesis", force=True)
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "years of work"
    assert [path.name for path in tmp_path.iterdir()] == ["thesis"]


def test_a_full_disk_leaves_nothing_behind(answers, tmp_path, monkeypatch):
    made = publish(answers)
    real = Path.open

    def fails(self, *arguments, **settings):
        if self.name == "registry.yaml":
            raise OSError(28, "No space left on device")
        return real(self, *arguments, **settings)

    monkeypatch.setattr(Path, "open", fails)
    with disk_full():
        made.save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def read_anything(path):
    """The text of a file, or everything in an archive of arrays as text."""
    if path.suffix != ".npz":
        return path.read_text()
    with np.load(path) as arrays:
        return "\n".join(str(arrays[name].tolist()) for name in arrays)


def test_the_bundle_holds_no_exact_count_no_person_and_no_seed(tmp_path):
    """Counts are made recognisable (six digits), then searched for in every file."""
    rng = np.random.default_rng(4)
    X = np.repeat(rng.integers(0, 2, (40, 5)), rng.integers(20_000, 30_000, 40), axis=0)
    persons = [f"pupil-{i:07d}" for i in range(len(X))]
    items = ["red", "blue", "green", "pink", "grey"]
    answers = Responses.from_array(X.astype(np.int8), items=items, persons=persons)
    counts = discreet.count_pairs(answers)
    budget = discreet.Budget(1.0, 1e-7, "add-remove")
    noise = seeded(20_261_115)
    made = discreet.release(answers, budget, items=items, mechanism="pairs", noise=noise)
    made.save(tmp_path / "out")
    secrets = {str(int(n)) for n in [*counts.right_wrong.ravel(), *counts.right, *counts.answers]}
    secrets |= {str(counts.persons), "20261115", "seed="}
    secrets -= {"0"}
    for path in (tmp_path / "out").iterdir():
        text = read_anything(path)
        numbers = set(re.findall(r"(?<![\d.])\d{5,}(?![\d.])", text))
        assert not secrets & numbers, path.name
        assert "pupil-" not in text
        assert str(tmp_path) not in text


def test_the_search_for_secrets_would_find_one(tmp_path):
    text = "a count of 500123 pupils"
    assert set(re.findall(r"(?<![\d.])\d{5,}(?![\d.])", text)) == {"500123"}


def test_a_release_is_charged_before_noise_is_drawn(answers, tmp_path):
    ledger = discreet.Ledger.create(tmp_path / "spent.db", 1.0, 1e-6)

    class Broken(ExactNoise):
        def gaussian(self, sigma, size):
            assert len(ledger.releases()) == 1  # charged already
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        publish(answers, ledger=ledger, noise=Broken())
    assert ledger.releases()[0].completed_at is None
    with refused(BudgetExceeded, "release_asks_epsilon_delta"):
        publish(answers, ledger=ledger)


def test_a_refused_release_draws_no_noise(answers, tmp_path):
    ledger = discreet.Ledger.create(tmp_path / "spent.db", 0.5, 1e-6)

    class Untouchable(ExactNoise):
        def gaussian(self, sigma, size):
            raise AssertionError("noise was drawn for a refused release")

    with pytest.raises(BudgetExceeded):
        publish(answers, ledger=ledger, noise=Untouchable())
    assert ledger.releases() == ()


def test_a_mistake_in_the_data_charges_nothing(answers, tmp_path):
    ledger = discreet.Ledger.create(tmp_path / "spent.db", 1.0, 1e-6)
    with refused(BadResponses, "none_listed_items_data"):
        publish(answers, items=["Aufgabe 1", "Aufgabe 2"], ledger=ledger)
    holes = answers.to_array().astype(float)
    holes[0, 0] = np.nan
    incomplete = Responses.from_array(holes, items=answers.items)
    with refused(BadResponses, "amplification_shuffling_holds_when"):
        publish(incomplete, RandomizedResponse(shuffler="trusted"), ledger=ledger)
    assert ledger.releases() == ()


def test_a_first_release_at_exactly_the_limit_is_accepted(answers, tmp_path):
    path = tmp_path / "spent.db"
    discreet.Ledger.create(path, 1.0, 1e-6)
    made = publish(answers, ledger=path)
    assert made.guarantee.ledger == discreet.Ledger.open(path).id
    assert discreet.Ledger.open(path).releases()[0].completed_at is not None


def test_the_fingerprint_does_not_depend_on_the_order_of_persons_or_items(answers, tmp_path):
    path = tmp_path / "spent.db"
    discreet.Ledger.create(path, 10.0, 1e-5)
    shuffled = Responses.from_array(
        answers.to_array()[::-1, ::-1], items=tuple(reversed(answers.items))
    )
    for data in (answers, shuffled):
        discreet.release(
            data,
            discreet.Budget(0.5, 1e-6),
            items=answers.items,
            mechanism="pairs",
            ledger=path,
            noise=seeded(),
        )
    first, second = discreet.Ledger.open(path).releases()
    assert first.fingerprint == second.fingerprint


@given(cells=arrays(np.int8, (6, 3), elements=st.integers(-1, 1)), data=st.data())
def test_the_fingerprint_is_that_of_the_answered_cells(cells, data):
    def digest(cells, items=("a", "b", "c")):
        known = np.where(cells < 0, np.nan, cells)
        return Responses.from_array(known, items=items).digest(b"k")

    empty = np.full((6, 1), -1)
    assert digest(np.hstack([empty, cells]), ("new", "a", "b", "c")) == digest(cells)
    assert digest(np.vstack([cells, np.full((2, 3), -1)])) == digest(cells)
    person, item = data.draw(st.integers(0, 5)), data.draw(st.integers(0, 2))
    other = cells.copy()
    other[person, item] = data.draw(
        st.sampled_from(sorted({-1, 0, 1} - {int(cells[person, item])}))
    )
    assert digest(other) != digest(cells)
    renamed = digest(cells, ("a", "b", "d"))
    assert (renamed == digest(cells)) == (cells[:, 2] < 0).all()


def test_the_same_answers_cannot_be_declared_another_population(answers, tmp_path):
    path = tmp_path / "spent.db"
    ledger = discreet.Ledger.create(path, 10.0, 1e-5)
    ledger.declare("spring")
    ledger.declare("autumn", disjoint=["spring"])
    publish(answers, ledger=path, population="spring")
    with refused(LedgerError, "these_very_answers_already"):
        publish(answers, ledger=path, population="autumn")


# randomized response throws a coin for every cell, so the same seed does not give the same noise
@pytest.mark.parametrize("name", sorted(set(MECHANISMS) - {"randomized-response"}))
def test_a_public_number_of_persons_hides_who_has_no_rows(answers, name):
    whole = answers.to_array()
    without = Responses.from_array(whole[1:], items=ITEMS)
    made = publish(without, name, persons=1000)
    assert made.record["persons"] == made.estimate.persons == 1000
    assert publish(without, name).record["persons"] == 999
    # a person without rows contributes what a person without answers does
    empty = np.vstack([np.full((1, 5), np.nan), whole[1:]])
    same = publish(Responses.from_array(empty, items=ITEMS), name, persons=1000)
    for cells in made.noisy.values:
        assert np.array_equal(made.noisy.values[cells], same.noisy.values[cells])
    assert np.allclose(made.estimate.difficulty, same.estimate.difficulty)


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_a_generous_number_of_persons_hardly_moves_the_estimate(answers, name):
    exact, generous = (publish(answers, name, epsilon=4, persons=n) for n in (1000, 1500))
    assert abs(exact.estimate.difficulty - generous.estimate.difficulty).max() < 0.1
    assert (generous.estimate.se > 0.9 * exact.estimate.se).all()


def test_more_persons_than_the_public_number_are_refused_before_the_charge(answers, tmp_path):
    ledger = discreet.Ledger.create(tmp_path / "spent.db", 1.0)
    with refused(BadResponses, "data_people_more_than", n_persons="1,000", persons="999"):
        publish(answers, persons=999, ledger=ledger)
    assert ledger.releases() == ()


def test_persons_may_be_a_list_of_ids(answers):
    some = Responses.from_array(answers.to_array()[:3], items=ITEMS)
    made = publish(some, persons=["0", 1, "2", "somebody without rows"])
    assert made.record["persons"] == 4
    with refused(BadResponses, "data_not_list_example", n_others="1", word="persons", others="2"):
        publish(some, persons=["0", "1", "3", "4"])
    with refused(BadUsage, "list_names_more_than", twice="0"):
        publish(some, persons=["0", "0", "1", "2"])


@pytest.mark.parametrize("wrong", ["1000", 1000.5])
def test_a_number_of_persons_that_is_none_is_refused(answers, wrong):
    with refused(
        BadUsage,
        "must_found_nothing_read",
        place="persons=",
        wanted="a whole number or a list or None",
    ):
        publish(answers, persons=wrong)


def test_under_add_remove_no_number_of_persons_is_public(answers):
    budget = discreet.Budget(1.0, neighbours="add-remove")
    with refused(BadUsage, "named_replace_one_under"):
        discreet.release(answers, budget, items=ITEMS, persons=1000)


def test_a_shuffler_amplifies_by_rows_that_are_there(answers):
    with refused(BadResponses, "amplification_shuffling_holds_when"):
        publish(answers, RandomizedResponse(shuffler="trusted"), persons=100_000)


def test_the_statement_says_whether_taking_part_is_protected(answers):
    budget = discreet.Budget(1.0, 1e-6)
    counted, fixed = (
        write_statement(discreet.release(answers, budget, items=ITEMS, persons=n).record)
        for n in (None, 1200)
    )
    assert "whether somebody is in the data at all is not protected" in counted
    assert "replaced by others, or by none (the number of persons is public and was" in fixed
    promise, _, points = fixed.partition("## The points")
    assert "not protected" not in promise
    assert "the number of persons (fixed in advance)" in points


@pytest.mark.parametrize("shuffler", ["none", "trusted"])
def test_randomized_response_says_what_it_does_not_protect_and_against_whom(answers, shuffler):
    mechanism = RandomizedResponse(shuffler=shuffler)
    budget = discreet.Budget(1.0, 1e-6 if shuffler == "trusted" else 0.0)
    made = discreet.release(answers, budget, items=ITEMS, mechanism=mechanism)
    texts = bundle_files(made.estimate, made.record, made.noisy)
    assert "the pattern of answered items of each person" in texts["registry.yaml"]
    # Answers are randomised by whoever holds them, as the statement says too.
    assert "model_name: 'Central'" in texts["registry.yaml"]
    for text in (made.guarantee.summary, texts["statement.md"]):
        assert "Which items were answered is not protected" in text
        assert ("trusted shuffler" in text) == (shuffler == "trusted")


def test_other_mechanisms_protect_the_pattern_of_answered_items(answers):
    made = discreet.release(answers, discreet.Budget(1.0), items=ITEMS)
    registry = bundle_files(made.estimate, made.record, made.noisy)["registry.yaml"]
    assert "pattern" not in registry
    assert "model_name: 'Central'" in registry
    assert made.guarantee.summary.endswith("protects one person's whole set of answers")


def test_without_a_ledger_the_guarantee_says_so(answers):
    made = publish(answers)
    assert "No ledger" in made.guarantee.ledger_note


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf")])
def test_an_epsilon_that_means_nothing_is_refused(epsilon):
    with refused(BadBudget, "must_finite_number_above", name="epsilon"):
        discreet.Budget(epsilon, 1e-6)


def test_gaussian_noise_needs_a_delta(answers):
    with refused(BadBudget, "delta_no_pure_guarantee"):
        discreet.release(answers, discreet.Budget(1.0, 0.0), items=answers.items, mechanism="pairs")


def test_one_person_can_be_released():
    one = Responses.from_array(np.array([[1.0, 0.0, 1.0]]), items=("a", "b", "c"))
    made = discreet.release(
        one, discreet.Budget(1.0, 1e-6), items=one.items, mechanism="pairs", noise=seeded()
    )
    assert np.isfinite(made.estimate.difficulty).all()
    assert (made.estimate.se > 0.2).all()


def test_items_outside_the_list_are_ignored(answers):
    made = publish(answers, items=answers.items[:3])
    assert made.estimate.items == answers.items[:3]
    assert made.record["persons"] == answers.n_persons
    only = publish(answers.select(answers.items[:3]), items=answers.items[:3])
    assert np.array_equal(made.estimate.difficulty, only.estimate.difficulty)


def test_a_listed_item_that_the_data_spells_otherwise_is_refused(answers):
    """It would be ignored without a word, and the release would be noise for this item."""
    items = [answers.items[0].upper(), *answers.items[1:]]
    with refused(BadResponses, "list_names_item_table"):
        publish(answers, items=items)


def test_unknown_mechanisms_are_refused(answers):
    with refused(BadUsage, "no_called_choose_one", noun="mechanism", name="magic"):
        publish(answers, "magic")
    with refused(
        BadUsage,
        "must_found_nothing_read",
        place="items=",
        wanted="a list or a mapping from names to values or a path",
    ):
        publish(answers, items="Item1")


def test_weak_parameters_are_warned_about(answers):
    with pytest.warns(UserWarning, match="near-certain"):
        publish(answers, epsilon=8.0)
    with pytest.warns(UserWarning, match="outright"):
        discreet.release(
            answers,
            discreet.Budget(1.0, 0.01),
            items=answers.items,
            mechanism="pairs",
            noise=seeded(),
        )


def test_sober_parameters_are_not_warned_about(answers):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        publish(answers)


def test_the_statement_says_what_matters(answers, tmp_path):
    publish(answers).save(tmp_path / "out")
    text = (tmp_path / "out" / "statement.md").read_text()
    for needed in ("epsilon | 1", "delta | 1e-06", "replace-one", "NOT PRIVATE", "without looking"):
        assert needed in text
    assert "GDPR" not in text
    assert "FERPA" not in text


def test_nothing_in_a_bundle_with_noise_for_tests_claims_privacy(answers, tmp_path):
    publish(answers).save(tmp_path / "bundle")
    page = (tmp_path / "bundle" / "report.html").read_text(encoding="utf-8")
    for text in (page, (tmp_path / "bundle" / "statement.md").read_text(encoding="utf-8")):
        assert "differential privacy" not in text
        assert "It promises nothing to anybody" in text
    assert "<h1>Item difficulties, not private" in page
    registry = (tmp_path / "bundle" / "registry.yaml").read_text(encoding="utf-8")
    assert "\nstatus: 'NOT PRIVATE: not to be registered'\n" in registry
    ended = commandline("result", "report", tmp_path / "bundle")
    assert ended.code == 0
    assert "(not private: noise for tests only)" in ended.out


def test_reading_what_is_not_a_bundle_is_explained(tmp_path):
    with refused(BadUsage, "no_release_bundle_missing"):
        discreet.read_release(tmp_path)
    (tmp_path / "privacy.json").write_text('{"schema_version": 99}')
    (tmp_path / "difficulties.csv").write_text("item\n")
    with refused(BadUsage, "schema_version_version_discreet"):
        discreet.read_release(tmp_path)


def test_item_names_cannot_inject_html(tmp_path):
    items = ("<script>alert(1)</script>", 'quote"and,comma', "plain")
    data = Responses.from_array(np.array([[1, 0, 1], [0, 1, 0]]), items=items)
    made = discreet.release(
        data, discreet.Budget(1.0, 1e-6), items=items, mechanism="pairs", noise=seeded()
    )
    made.save(tmp_path / "out")
    assert "<script>alert" not in (tmp_path / "out" / "report.html").read_text()
    assert discreet.read_release(tmp_path / "out").estimate.items == items


KILLED = """
import os, signal, sys, threading, time
import discreet
answers = discreet.datasets.lsat()
threading.Timer(float(sys.argv[2]), lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
for turn in range(10_000):
    made = discreet.release(answers, discreet.Budget(0.01, 1e-9), items=answers.items,
                            mechanism="pairs", ledger=sys.argv[1] + "/spent.db")
    made.save(sys.argv[1] + f"/release-{turn}")
"""


def test_a_killed_process_leaves_whole_bundles_and_every_one_is_charged(tmp_path):
    discreet.Ledger.create(tmp_path / "spent.db", 50.0, 1e-5)
    for delay in ("0.15", "0.4"):
        folder = tmp_path / delay
        folder.mkdir()
        (tmp_path / "spent.db").rename(folder / "spent.db")
        subprocess.run([sys.executable, "-c", KILLED, str(folder), delay], check=False)
        charged = len(discreet.Ledger.open(folder / "spent.db").releases())
        bundles = [p for p in folder.glob("release-*") if p.is_dir()]
        assert all({f.name for f in bundle.iterdir()} == FILES for bundle in bundles)
        assert len(bundles) <= charged
        (folder / "spent.db").rename(tmp_path / "spent.db")


def test_an_empty_bundle_target_may_be_filled(answers, tmp_path):
    made = publish(answers)
    (tmp_path / "out").mkdir()
    with refused(BadUsage, "exists_already_choose_another"):
        made.save(tmp_path / "out")
    made.save(tmp_path / "out", force=True)
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES


@pytest.mark.parametrize(
    ("items", "cap", "wanted"),
    [(5, None, "pairs"), (60, None, "pairs"), (61, None, "margins"), (20, 10, "margins")],
)
def test_auto_chooses_from_public_parameters_and_says_so(items, cap, wanted):
    names = tuple(f"i{n}" for n in range(items))
    rng = np.random.default_rng(0)
    data = Responses.from_array(rng.integers(0, 2, (50, items)), items=names)
    made = discreet.release(
        data, discreet.Budget(1.0, 1e-6), items=names, max_answers=cap, noise=seeded()
    )
    assert made.guarantee.mechanism == wanted
    assert made.record["choice"].startswith(f"auto: {wanted}, because")


def test_auto_never_looks_at_the_answers():
    names = tuple("abcd")
    choices = set()
    for cells in (np.ones((9, 4)), np.full((9, 4), np.nan), np.zeros((9, 4))):
        data = Responses.from_array(cells, items=names)
        budget = discreet.Budget(1.0, 1e-6)
        made = discreet.release(data, budget, items=names, noise=seeded())
        choices.add(made.record["choice"])
    assert len(choices) == 1


def test_public_booklets_sharpen_the_release_of_margins():
    from discreet.privacy.mechanisms.margins import Margins

    names = [f"i{n:02d}" for n in range(40)]
    booklets = tuple(tuple(names[(10 * b + k) % 40] for k in range(20)) for b in range(4))
    errors = {False: 0.0, True: 0.0}
    for seed in range(4):
        rng = np.random.default_rng(seed)
        difficulty = rng.normal(0, 1, 40)
        X = (rng.logistic(rng.normal(0, 1, 2000)[:, None], 1, (2000, 40)) > difficulty).astype(
            float
        )
        given = np.array([[n in booklets[p % 4] for n in names] for p in range(2000)])
        X[~given] = np.nan
        data = Responses.from_array(X, items=names)
        for known in errors:
            mechanism = Margins(booklets=booklets if known else ())
            made = discreet.release(
                data,
                discreet.Budget(1.0, 1e-4),
                items=names,
                max_answers=20,
                mechanism=mechanism,
                noise=seeded(seed),
            )
            miss = made.estimate.difficulty - (difficulty - difficulty.mean())
            errors[known] += float(miss @ miss)
            assert made.record["settings"]["booklets"] == [list(b) for b in mechanism.booklets]
    assert errors[True] < errors[False]


def test_a_booklet_with_an_unknown_item_is_refused(answers):
    from discreet.privacy.mechanisms.margins import Margins

    with refused(BadUsage, "booklets_name_not_item"):
        publish(answers, Margins(booklets=(("Item1", "Item9"),)))


@pytest.mark.filterwarnings("ignore:epsilon")
@pytest.mark.parametrize("name", sorted(MECHANISMS))
@pytest.mark.parametrize("epsilon", [500, 2000])
def test_next_to_no_noise_is_no_trouble(answers, name, epsilon):
    """The equations behind two of the fits had no solution without noise."""
    found = publish(answers, name, epsilon=epsilon, noise=seeded()).estimate
    np.testing.assert_allclose(found.difficulty, discreet.fit(answers).difficulty, atol=0.3)
