"""Parts of a test that few persons link: they are found, named and not called precise."""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from experiments.calibration.weak_links import LINKING, draw_answers, draw_votes, fit_folds, measure
from pyarrow import parquet as pq

import discreet
from discreet.answers.comparisons import Comparisons
from discreet.answers.responses import Responses
from discreet.api.comparing import rank_comparisons
from discreet.errors import DisconnectedItems, WarningKind
from discreet.models import calibrate, weak_links
from discreet.models.standard_errors import random_signs, sandwich
from discreet.models.weak_links import FEWEST
from discreet.readers import batches

METHODS = ["refined", "spectral", "conditional", "marginal"]
FORMS = "two forms of 3 items"


def draw_linked(linking, design=FORMS):
    """The first study whose answers link all items."""
    for seed in range(100):
        answers, _ = draw_answers(design, linking, np.random.default_rng(seed))
        if discreet.fit(answers, method="refined", standard_errors=False).estimated.all():
            return answers
    raise AssertionError


def find_warning(result):
    (found,) = (one for one in result.warnings if one.kind is WarningKind.WEAK_LINK)
    return found


@pytest.fixture
def reported(monkeypatch):
    """What each search for weak links found."""
    found, real = [], weak_links.find_weak_links

    def find(*arguments):
        found.append(real(*arguments))
        return found[-1]

    monkeypatch.setattr(calibrate, "find_weak_links", find)
    return found


@pytest.mark.parametrize("method", METHODS)
def test_one_person_who_links_two_forms_is_told_by_every_method(method):
    found = find_warning(discreet.fit(draw_linked(1), method=method))
    assert found.items in (("0", "1", "2"), ("3", "4", "5"))
    assert "3 items linked to the others by 1 person only" in found


@pytest.mark.parametrize("method", ["refined", "spectral"])
@pytest.mark.parametrize("linking", [1, 2, 5])
def test_errors_of_pairs_are_as_large_as_those_of_the_likelihood(method, linking):
    answers = draw_linked(linking)
    exact = discreet.fit(answers, method="conditional").se
    ratio = discreet.fit(answers, method=method).se / exact
    assert 0.75 < ratio.min() < ratio.max() < 1.75


def test_one_judge_who_links_two_groups_is_told_and_gives_large_errors():
    judge, winner, loser = [], [], []
    for number in range(60):
        first = 3 * (number % 2)
        for one, two in combinations(range(first, first + 3), 2):
            better = (one, two) if (number // 2 + one) % 3 else (two, one)
            judge.append(number)
            winner.append(better[0])
            loser.append(better[1])
    judge, winner, loser = [*judge, 60, 60], [*winner, 0, 4], [*loser, 3, 1]
    names = list("abcdef")
    votes = Comparisons.from_codes(judge=judge, winner=winner, loser=loser, items=names)
    for method in ("refined", "spectral"):
        result = rank_comparisons(votes, method=method)
        found = find_warning(result)
        assert found.items == ("d", "e", "f")
        assert "3 objects linked to the others by 1 judge only" in found
        # Two votes, each of an information of at most 1/4, know the shift of the halves to within
        # sqrt(2) or worse, and half of it is in every strength.
        assert result.se.min() > 0.7


def test_every_weak_link_of_a_chain_is_found(reported):
    answers = draw_linked(6, "chain of 3 forms")
    found = find_warning(discreet.fit(answers, method="refined"))
    links = reported[-1]
    sides = {tuple(np.flatnonzero(part)) for part in links.parts}
    assert sides == {(0, 1, 2), (6, 7, 8)}
    assert len(found.items) == 6
    assert links.store.n_persons <= 12


def count_crossing(answers, part):
    """Persons with answers on both sides who are neither right nor wrong everywhere."""
    known = ~np.isnan(answers)
    mixed = (np.nanmax(answers, axis=1) > np.nanmin(answers, axis=1)) & known.any(axis=1)
    return int((mixed & known[:, part].any(axis=1) & known[:, ~part].any(axis=1)).sum())


@pytest.mark.filterwarnings("ignore:All-NaN")
@pytest.mark.parametrize("seed", range(12))
def test_parts_are_held_by_as_many_persons_as_a_count_finds(seed, reported):
    rng = np.random.default_rng(seed)
    persons, items = int(rng.integers(40, 200)), int(rng.integers(4, 12))
    answers = (rng.random((persons, items)) < 0.5).astype(float)
    answers[rng.random((persons, items)) < 0.4] = np.nan
    half = items // 2
    rows = np.arange(persons)
    answers[np.ix_(rows[: persons // 2], range(half))] = np.nan
    answers[np.ix_(rows[persons // 2 :], range(half, items))] = np.nan
    linking = int(rng.integers(1, 2 * FEWEST))
    answers[:linking] = rng.random((linking, items)) < 0.5
    try:
        estimate = discreet.fit(answers, method="refined")
    except DisconnectedItems:
        return
    if not estimate.estimated.all():
        return
    truth = np.arange(items) < half
    crossing = count_crossing(answers, truth)
    links = reported[-1]
    parts = [] if links is None else [*links.parts]
    assert all(0 < count_crossing(answers, part) < FEWEST for part in parts)
    is_found = any((part == truth).all() or (part != truth).all() for part in parts)
    assert is_found == (crossing < FEWEST)


def test_links_through_an_item_without_a_number_do_not_count(reported):
    answers = draw_linked(2)
    easy = np.column_stack([answers, np.ones(len(answers))])  # everybody had it right
    estimate = discreet.fit(easy, method="refined")
    assert estimate.status[-1] == "always_right"
    links = reported[-1]
    assert links.store.n_persons == 2


@pytest.mark.parametrize("linking", [1, 3])
def test_anchors_in_both_parts_are_a_link(linking):
    answers = draw_linked(linking)
    one_side = discreet.fit(answers, method="refined", anchors={"0": 0.0})
    both = discreet.fit(answers, method="refined", anchors={"0": 0.0, "3": 0.0})
    assert find_warning(one_side).items == ("3", "4", "5")
    assert not both.warnings
    assert np.nanmax(both.se) < np.nanmax(one_side.se) / 2


@pytest.mark.parametrize("method", ["refined", "spectral"])
def test_tables_without_weak_links_are_asked_nothing_more(method, monkeypatch):
    monkeypatch.setattr(weak_links.CollectLinking, "block", None)  # a call would fail
    rng = np.random.default_rng(0)
    full = discreet.simulate(500, 20, 0.7, rng=rng).responses
    booklets = np.where(
        (np.arange(1200) % 3)[:, None] != np.arange(12) // 4, rng.random((1200, 12)) < 0.5, np.nan
    )
    for answers in (full, booklets, (rng.random((30, 5)) < 0.5).astype(float)):
        assert not discreet.fit(answers, method=method).warnings


def test_an_item_that_few_answered_is_a_part_of_its_own(reported):
    rng = np.random.default_rng(3)
    answers = (rng.random((400, 6)) < 0.5).astype(float)
    answers[7:, 5] = np.nan
    estimate = discreet.fit(answers, method="refined")
    assert find_warning(estimate).items == ("5",)
    exact = discreet.fit(answers, method="conditional")
    assert 0.8 < estimate.se[5] / exact.se[5] < 1.3
    assert estimate.se[:5] == pytest.approx(exact.se[:5], rel=0.15)


@pytest.mark.parametrize("design", [FORMS, "two forms of 5 items with 2 steps"])
def test_answers_on_disk_have_the_errors_of_memory(design, tmp_path, monkeypatch):
    answers = draw_linked(3, design)
    frame = Responses.from_array(answers)
    path = tmp_path / "answers.parquet"
    cells = frame.to_array()
    person, item = np.nonzero(cells >= 0)
    table = {"person": person, "item": item, "response": cells[person, item]}
    pq.write_table(pa.table(table), path)
    memory = discreet.fit(frame, method="refined")
    monkeypatch.setattr(batches, "TARGET_ROWS", 200)
    disk = discreet.fit(path, engine="disk", method="refined")
    order = [disk.items.index(name) for name in memory.items]
    assert disk.se[order] == pytest.approx(memory.se, rel=1e-6)
    assert find_warning(disk).items == find_warning(memory).items


@pytest.mark.parametrize("exact_persons", [5000, 0])
@pytest.mark.parametrize("design", [FORMS, "two forms of 5 items with 2 steps"])
def test_very_many_items_have_the_same_errors(design, exact_persons, monkeypatch):
    answers = draw_linked(2, design)
    whole = discreet.fit(answers, method="refined")
    monkeypatch.setattr(sandwich, "COVARIANCE_LIMIT", 4)
    monkeypatch.setattr(random_signs, "EXACT_PERSONS", exact_persons)
    monkeypatch.setattr(weak_links, "FEW_NODES", 4)
    many = discreet.fit(answers, method="refined")
    assert many.covariance is None or whole.has_steps
    assert many.se == pytest.approx(whole.se, rel=0.1)
    assert find_warning(many) == find_warning(whole)


def test_a_sample_of_the_pairs_shows_the_parts(monkeypatch, reported):
    answers = draw_linked(1, "two forms of 20 items")
    monkeypatch.setattr(weak_links, "FEW_NODES", 4)
    monkeypatch.setattr(weak_links, "PAIRS_PER_ITEM", 6)
    discreet.fit(answers, method="refined")
    links = reported[-1]
    assert links.parts.sum(axis=1).tolist() == [20]


def test_how_the_errors_were_found_is_said():
    assert "the model says" in discreet.fit(draw_linked(2), method="refined").se_method
    assert "the model says" not in discreet.fit(draw_linked(40), method="refined").se_method


@pytest.mark.parametrize("method", ["refined", "spectral"])
def test_folds_give_no_errors_for_one_and_some_for_five(method):
    assert np.isnan(fit_folds(draw_linked(1), method).se).all()
    assert np.isfinite(fit_folds(draw_linked(5), method).se).all()


@pytest.mark.slow
@pytest.mark.parametrize("linking", LINKING)
@pytest.mark.parametrize("method", ["refined", "spectral", "judges", "folds"])
def test_intervals_hold_the_truth_however_few_link(method, linking):
    draw, estimate = {
        "judges": (draw_votes, rank_comparisons),
        "folds": (lambda *of: draw_answers(FORMS, *of), lambda data: fit_folds(data, "refined")),
    }.get(
        method,
        (lambda *of: draw_answers(FORMS, *of), lambda data: discreet.fit(data, method=method)),
    )
    seen = measure(draw, estimate, linking, 300)
    assert seen["coverage"] >= 0.9 or seen["finite"] == 0
    if linking >= 5:
        assert seen["finite"] >= 0.95
        assert 0.93 <= seen["coverage"] <= 0.995
        assert 0.8 <= seen["ratio"] <= 1.5
