"""Items split by group: what is fitted, what is compared again, how it is told."""

import numpy as np
import pytest

import discreet
from commandline import discreet as run
from discreet import analysis
from discreet.errors import BadUsage
from refusals import refused
from stepped import chances

MOVED = [2, 5, 8]


def draw(seed, shift=1.2, persons=400, items=13):
    """Return answers; items 2, 5 and 8 are harder for the second group."""
    rng = np.random.default_rng(seed)
    labels, moved = np.repeat(["de", "fr"], persons), np.zeros(items)
    moved[MOVED] = shift
    harder = np.linspace(-1.5, 1.5, items) + moved * (labels == "fr")[:, None]
    away = rng.normal(size=(2 * persons, 1)) - harder
    return (rng.random(away.shape) < 1 / (1 + np.exp(-away))).astype(float), labels


def write(path, rows, labels):
    names = ",".join(["language", *(f"Q{i}" for i in range(rows.shape[1]))])
    lines = [
        ",".join([label, *(f"{x:.0f}" for x in row)])
        for label, row in zip(labels, rows, strict=True)
    ]
    path.write_text("\n".join([names, *lines]) + "\n")
    return path


def test_a_split_item_is_two_columns_each_empty_for_the_other_group(tmp_path):
    rows, labels = draw(1)
    by_hand = np.insert(rows, 3, rows[:, 2], axis=1)
    by_hand[labels == "fr", 2], by_hand[labels == "de", 3] = np.nan, np.nan
    expected = discreet.fit(by_hand)
    file = write(tmp_path / "answers.csv", rows, labels)
    for fitted in (
        discreet.fit(file, split={"Q2": "language"}),
        discreet.fit(discreet.read_responses(file, group="language"), split={"Q2": "language"}),
    ):
        assert fitted.items[2:4] == ("Q2:de", "Q2:fr")
        assert fitted.difficulty == pytest.approx(expected.difficulty, abs=1e-9)
        assert fitted.se == pytest.approx(expected.se, abs=1e-9)
    stated = discreet.fit(rows, split={"2": labels})
    assert stated.difficulty == pytest.approx(expected.difficulty, abs=1e-9)


def test_split_answers_keep_steps_gaps_and_persons_and_are_checked_and_scored():
    rng = np.random.default_rng(2)
    own = np.array([-0.7, 0.1, 0.9])
    share = chances(rng.normal(size=300), own).cumsum(axis=1)
    codes = np.stack([(rng.random((300, 1)) > share).sum(axis=1) for _ in range(5)], axis=1) + 1.0
    codes[::7, 3] = np.nan
    labels = np.array(["a", "b", ""])[np.arange(300) % 3]
    answers = discreet.Responses.from_array(codes, persons=[f"p{i}" for i in range(300)])
    split = analysis.split_items(answers, {"3": labels})
    assert split.items == ("0", "1", "2", "3:a", "3:b", "4")
    assert split.steps == (3,) * 6
    assert split.persons.tolist() == answers.persons.tolist()
    cells, whole = split.to_array(), answers.to_array()
    for label, column in (("a", 3), ("b", 4)):
        mine = labels == label
        np.testing.assert_array_equal(cells[mine, column], whole[mine, 3])
        assert (cells[~mine, column] == -1).all()
    estimate = discreet.fit(split)
    assert estimate.ladder.labels[3] == (1, 2, 3, 4)
    assert np.isfinite(discreet.score(split, estimate).ability).all()
    assert {test.name for test in analysis.check_model(split, estimate).tests} >= {"item fit"}


def test_resolving_splits_what_differs_and_the_others_no_longer_do():
    rows, labels = draw(3)
    everything = [str(i) for i in range(13)]
    resolved = analysis.resolve_dif(rows, labels, reference="de", anchors=everything)
    assert sorted(resolved.split, key=int) == ["2", "5", "8"]
    sound = ~np.isin(np.arange(13), MOVED)
    assert resolved.found.difference[sound].mean() < -0.2  # artificial, relative to all items
    assert abs(resolved.left.difference[sound].mean()) < 1e-9  # they are the anchors now
    assert resolved.left.difference[~sound] == pytest.approx(1.2, abs=0.45)
    assert not resolved.left.confirmed[sound].any()
    fitted = resolved.estimate
    number = dict(zip(fitted.items, fitted.difficulty, strict=True))
    apart = [number[f"{item}:fr"] - number[f"{item}:de"] for item in MOVED]
    assert apart == pytest.approx(resolved.left.difference[MOVED].tolist(), abs=0.05)
    table = resolved.to_dict()
    assert [item for item, one in zip(table["item"], table["split"], strict=True) if one] == [
        str(item) for item in MOVED
    ]


@pytest.mark.parametrize("test", ["wald", "mantel-haenszel", "likelihood-ratio"])
def test_a_quarter_of_the_items_stays_and_nothing_is_split_without_a_difference(test):
    rows, labels = draw(4, shift=0.0, persons=150, items=9)
    resolved = analysis.resolve_dif(rows, labels, test=test)
    assert resolved.split == ()
    assert resolved.estimate.items == resolved.found.item
    assert resolved.describe()[-1] == "nothing split"
    rng = np.random.default_rng(5)
    labels, moved = np.repeat(["a", "b"], 300), np.tile([2.0, -2.0], 4)
    away = rng.normal(size=(600, 1)) - moved * (labels == "b")[:, None]
    all_differ = (rng.random((600, 8)) < 1 / (1 + np.exp(-away))).astype(float)
    assert len(analysis.resolve_dif(all_differ, labels, test=test).split) == 4


def test_the_command_resolves_and_writes_what_it_found(tmp_path):
    rows, labels = draw(3)
    file = write(tmp_path / "answers.csv", rows, labels)
    words = ["dif", file, "--group", "language", "--resolve", "--out", tmp_path / "out"]
    printed = run(*words).out
    assert "Resolved: split by group: Q5, Q2, Q8; no other item differs." in printed
    assert "Compared again; anchors: 10 of 13 items; without Q2, Q5, Q8." in printed
    assert "Q8:fr" in printed
    document = run(*words, "--json", "--force").document["resolved"]
    assert document["split"] == ["Q5", "Q2", "Q8"]
    assert (tmp_path / "out" / "dif_resolved.confidential.csv").exists()
    assert run("dif", file, "--group", "language", "--resolve", "--by-step").code == 2


def test_wrong_splits_are_refused(tmp_path):
    rows, labels = draw(6, persons=20)
    with refused(BadUsage, "no_item_split_items", unknown="x"):
        discreet.fit(rows, split={"x": labels})
    with refused(BadUsage, "split_belongs_answers_facets"):
        discreet.fit(tmp_path / "ratings.csv", facets=["rater"], split={"x": "a"})
