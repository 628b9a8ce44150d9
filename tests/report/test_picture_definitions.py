"""What stands where in a picture, each number against its definition."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from discreet.report import pictures
from discreet.report.page import _average_answers
from discreet.report.pictures import (
    ItemRows,
    contrast_map,
    difference_rows,
    difficulty_rows,
    error_ceiling,
    find_ladder_start,
    fit_map,
    keep_largest,
    ladder_rows,
    pair_map,
    summarise_items,
    thin_rows,
    wright_map,
)
from discreet.results.estimate import Estimate, Solution, Status
from discreet.results.thresholds import Thresholds


def make_estimate(difficulty, se=0.2, **more):
    m = len(difficulty)
    known = np.isfinite(difficulty)
    return Estimate(
        items=tuple(f"q{i}" for i in range(m)),
        difficulty=np.array(difficulty, dtype=float),
        se=np.where(known, se, np.nan),
        status=tuple(Status.ESTIMATED if one else Status.NO_ANSWERS for one in known),
        method="conditional",
        solution=Solution("made for a test", 0, 0.0),
        **more,
    )


def test_a_summary_has_the_ends_their_distance_and_the_median_error():
    estimate = make_estimate([0.3, -1.2, np.nan, 1.7, 0.1], np.array([0.1, 0.4, 9.0, 0.2, 0.35]))
    found = summarise_items(estimate)
    assert (found.hardest, found.easiest) == ("q3", "q1")
    assert (found.spread, found.typical_se) == pytest.approx((2.9, 0.275))
    assert summarise_items(make_estimate([0.0, 1.0], np.nan)).typical_se is None


def test_difficulties_stand_hardest_first_with_their_own_intervals():
    rows = difficulty_rows(
        make_estimate([0.3, -1.2, np.nan, 0.3], np.array([0.1, 0.4, 9.0, np.nan])), 0.9
    )
    assert rows.items == ("q0", "q3", "q1")
    half = stats.norm.isf(0.05) * np.array([0.1, 0.0, 0.4])
    assert rows.lower == pytest.approx(rows.value - half)
    assert rows.upper == pytest.approx(rows.value + half)


def make_rows(count):
    value = np.linspace(2, -1, count)
    return ItemRows(tuple(f"q{i}" for i in range(count)), value, value - 1, value + 1)


@pytest.mark.parametrize("count", [60, 61, 150])
def test_a_picture_holds_sixty_rows(count):
    rows = make_rows(count)
    thin, largest = thin_rows(rows), keep_largest(rows)
    assert len(thin.items) == len(largest.items) == 60
    assert (thin.items[0], thin.items[-1]) == ("q0", f"q{count - 1}")
    chosen = sorted(np.argsort(-np.abs(rows.value), kind="stable")[:60])
    assert largest.items == tuple(f"q{i}" for i in chosen)


@pytest.mark.parametrize(("top", "above"), [(3, 0), (50, 0), (51, 1), (70, 20)])
def test_a_ladder_holds_the_cut_below_the_top(top, above):
    estimate = make_estimate(np.linspace(3, -3, 90))
    names = estimate.items
    ranking = SimpleNamespace(
        top=names[:top], surely_in=names[: top - 1], possibly_in=names[top : top + 2],
        easiest=False,
    )  # fmt: skip
    assert find_ladder_start(ranking) == above
    rows = ladder_rows(ranking, estimate)
    # Two items that are possibly in, and five below.
    assert rows.items == names[above : top + 2 + 5]
    kinds = ["surely in"] * (top - 1 - above) + ["in, not surely"]
    assert list(rows.kind) == kinds + ["outside, possibly in"] * 2 + ["out"] * 5
    easiest = SimpleNamespace(top=names[-1:], surely_in=(), possibly_in=(), easiest=True)
    assert ladder_rows(easiest, estimate).items == tuple(names[::-1][:6])


def test_differences_have_the_intervals_of_their_errors_group_by_group():
    columns = {
        "group": ["sex"] * 4, "focal": ["f", "f", "f", "d"], "reference": ["m"] * 4,
        "item": ["a", "b", "c", "a"], "difference": [0.2, None, 0.9, -0.4],
        "se": [0.1, None, 0.2, 0.3], "ets": ["A", "", "C", "B"], "step": [1, 2, 1, 1],
    }  # fmt: skip
    first, second = difference_rows(columns)
    assert (first.focal, first.reference, second.focal) == ("f", "m", "d")
    assert first.rows.items == ("c step 1", "a step 1")
    assert first.rows.lower == pytest.approx([0.9 - 1.96 * 0.2, 0.2 - 1.96 * 0.1])
    assert first.rows.upper == pytest.approx([0.9 + 1.96 * 0.2, 0.2 + 1.96 * 0.1])
    assert first.rows.kind == ("C", "A")


def test_persons_and_items_stand_in_bins_of_a_quarter_of_a_logit():
    estimate = make_estimate([0.26, 0.49, -0.01, 0.74, 0.3, np.nan])
    found = wright_map(estimate, [-1.25, -1.0, 1.0, 1.25], [0, 3, 2, 0], persons=5, mean=0.2)
    assert found.items == ("q3", "q1", "q4", "q0", "q2")
    assert found.centre.tolist() == [0.625, 0.375, 0.375, 0.375, -0.125]
    assert found.level.tolist() == [1, 1, 2, 3, 1]
    assert found.reach == (-1.0, 2.0)  # the last bin with persons goes on to 1.25
    assert (found.n_items, found.count, found.number) == (5, "5 items", "difficulty")


def test_items_with_steps_stand_once_for_each_threshold():
    value = np.array([[-0.4, 0.9], [0.3, np.nan]])
    status = ((Status.ESTIMATED,) * 2, (Status.ESTIMATED,))
    ladder = Thresholds(value, np.full((2, 2), 0.1), status)
    estimate = make_estimate([0.25, 0.3], ladder=ladder, steps=(2, 1), model="partial-credit")
    found = wright_map(estimate, [0.0], [4], persons=4, mean=0.1)
    assert found.names == ("q0.2", "q1.1", "q0.1")
    assert found.difficulty.tolist() == [0.9, 0.3, -0.4]
    assert (found.n_items, found.count, found.number) == (2, "3 thresholds", "threshold")


@pytest.mark.parametrize(
    ("value", "limits", "is_outside"),
    [
        (1.3, None, False), (1.301, None, True), (0.7, None, False), (0.699, None, True),
        (1.2, (0.8, 1.2), False), (1.201, (0.8, 1.2), True), (0.799, (0.8, 1.2), True),
    ],
)  # fmt: skip
def test_fit_lies_outside_beyond_its_limits(value, limits, is_outside):
    estimate = make_estimate([0.0, 1.0, np.nan, -1.0], np.array([0.1, 0.4, 9.0, np.nan]))
    wide = (0.5, 2.0)
    ends = None if limits is None else [[w, end, w, w] for w, end in zip(wide, limits, strict=True)]
    found = fit_map(estimate, [1.0, value, None, 1.0], "infit", ends)
    assert found.outside.tolist() == [False, is_outside, False]
    assert found.worst.tolist() == [1] * is_outside
    assert found.unsure == pytest.approx([0.25, 1.0, 0.625])  # no error counts as the median


def test_the_worst_fit_is_the_furthest_from_one_as_a_ratio():
    found = fit_map(make_estimate(np.linspace(-1, 1, 4)), [1.5, 0.5, 1.0, 1.9], "outfit")
    assert found.worst.tolist() == [1, 3, 0]


@pytest.mark.parametrize("items", [5, 20])
def test_items_at_both_ends_of_a_contrast_are_named_in_turn(items):
    names = tuple(f"q{i}" for i in range(items))
    dimensions = SimpleNamespace(
        items=names, difficulty=(0.0,) * items, loading=tuple(np.linspace(1, -1, items)),
        eigenvalue=(2.5, 1.0), expected=(1.4, 1.2),
    )  # fmt: skip
    found = contrast_map(dimensions)
    expected = []
    for turn in range((min(items, 16) + 1) // 2):
        expected += [turn, items - 1 - turn]
    assert found.ends.tolist() == expected[: min(items, 16)]
    assert (found.eigenvalue, found.expected) == (2.5, 1.4)


def test_errors_are_shown_up_to_four_times_the_smallest():
    for largest, expected in ((1.9, 1.9), (2.1, 2.0)):
        curve = SimpleNamespace(se=np.array([0.5, 0.7, largest]))
        assert error_ceiling(curve) == pytest.approx(expected)


def test_pairs_count_persons_in_both_directions_and_those_never_compared():
    right_wrong = np.array([[0, 3, 0], [2, 0, 0], [0, 1, 0]])
    counts = SimpleNamespace(items=("a", "b", "c"), dense=lambda use: right_wrong)
    found = pair_map(counts)
    assert found.persons[0, 1] == found.persons[1, 0] == 5
    assert np.isnan(found.persons[0, 2])
    assert (found.never, found.pairs) == (1, 3)


def test_rows_without_a_kind_have_none_after_a_choice():
    rows = make_rows(3).take(np.array([2, 0]))
    assert (rows.items, rows.kind) == (("q2", "q0"), ())
    assert pictures.PICTURE_ITEMS == 60


def test_answers_are_averaged_as_percent_right_or_as_a_mean_score():
    right = _average_answers({"right": [3, 0, 0], "answers": [4, 5, 0]})
    assert (right.title, list(right.values)) == ("% right", [75.0, 0.0, None])
    score = _average_answers({"score": [6, 1], "answers": [4, 5]})
    assert (score.title, list(score.values)) == ("mean score", [1.5, 0.2])
