"""Calibrations in every form, and one clear line for what is none; other plain mistakes too."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet
from discreet import analysis
from discreet.errors import BadUsage
from discreet.privacy.noise import ExactNoise
from discreet.secure import SeededSource
from refusals import refused

CELLS = discreet.simulate(200, 5, rng=np.random.default_rng(1)).responses.to_array()
ESTIMATE = discreet.fit(CELLS)
ITEMS = [str(number) for number in range(5)]
BUDGET = discreet.Budget(epsilon=1.0)

# Every public function that takes a calibration, and a number or two of what it finds.
TAKING = {
    "rank": lambda c: discreet.rank(c, top=2).gap,
    "rank_ranges": lambda c: discreet.rank_ranges(c).difficulty,
    "compare_items": lambda c: discreet.compare_items(c, "0", "1").difference,
    "score": lambda c: discreet.score(CELLS, c).ability,
    "measure_fit": lambda c: analysis.measure_fit(CELLS, c).items.infit,
    "check_model": lambda c: [one.p_value for one in analysis.check_model(CELLS, c).tests[:1]],
    "find_mislabelled": lambda c: analysis.find_mislabelled(CELLS, c).discrimination,
    "correlate_residuals": lambda c: analysis.correlate_residuals(CELLS, c).q3,
    "trace_information": lambda c: analysis.trace_information(c).information,
    "link_calibrations": lambda c: discreet.link_calibrations(ESTIMATE, c).shift,
    "find_drift": lambda c: discreet.find_drift([c, ESTIMATE]).change,
    "create_bank": lambda c: discreet.create_bank(c, scale="s", source="x").se,
    "item_information": lambda c: discreet.item_information(c, 0.3),
    "next_item": lambda c: int(discreet.next_item(c, 0.0)),
    "fit with anchors": lambda c: discreet.fit(CELLS, anchors=c).difficulty,
}


@pytest.mark.parametrize("name", TAKING)
def test_the_table_of_an_estimate_is_a_calibration_everywhere(name):
    wanted = TAKING[name](ESTIMATE)
    for frame in (ESTIMATE.to_dataframe(), pl.from_arrow(ESTIMATE.to_arrow()), ESTIMATE.to_arrow()):
        # Without the covariance of the items a ranking is a little less sure; the gap is the same.
        np.testing.assert_allclose(TAKING[name](frame), wanted, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", sorted(TAKING.keys() - {"link_calibrations", "find_drift"}))
def test_a_release_and_a_bank_are_calibrations_too(name):
    for known in (
        discreet.release(
            CELLS, discreet.Budget(epsilon=5.0), items=ITEMS, noise=ExactNoise(SeededSource(1))
        ),
        discreet.create_bank(ESTIMATE, scale="s", source="x"),
    ):
        TAKING[name](known)


NONE = [None, 7, CELLS, discreet.count_pairs(CELLS), pa.table({"q1": [1, 0]}), pl.Series([0.1])]
CALIBRATED_FIRST = {
    "check_model": type(None),
    "find_drift": discreet.PairCounts,
    "fit with anchors": type(None),
}
"""What makes a function calibrate by itself, or without anchors."""


@pytest.mark.parametrize("name", TAKING)
def test_what_is_no_calibration_is_refused_in_one_line(name):
    for wrong in NONE:
        if isinstance(wrong, CALIBRATED_FIRST.get(name, ())):
            continue
        with pytest.raises(BadUsage) as caught:
            TAKING[name](wrong)
        assert "\n" not in str(caught.value)


def test_a_series_by_item_is_a_calibration():
    series = pd.Series(ESTIMATE.difficulty, index=[int(item) for item in ESTIMATE.items])
    for name in ("score", "trace_information", "item_information", "fit with anchors"):
        np.testing.assert_allclose(TAKING[name](series), TAKING[name](ESTIMATE), rtol=1e-12)


def test_a_frame_with_blanks_leaves_items_out_and_one_with_words_is_refused():
    frame = pd.DataFrame({"Item": ["a", "b", "c"], "difficulty": [0.5, None, -0.5]})
    ranking = discreet.rank(frame, top=1)
    assert ranking.top == ("a",)
    assert ranking.excluded == ("b",)
    with refused(BadUsage, "column_calibration_holds_something", column="difficulty"):
        discreet.rank(pd.DataFrame({"item": ["a", "b"], "difficulty": ["x", "y"]}), top=1)


@pytest.mark.parametrize(
    ("act", "code", "facts"),
    [
        (
            lambda: discreet.rank(CELLS, top=1),
            "needs_calibration_result_fit",
            {"purpose": "a ranking"},
        ),
        (
            lambda: discreet.count_pairs(CELLS, weighting="person"),
            "weighting_must_refined_none",
            {"weighting": "person"},
        ),
        (
            lambda: discreet.count_pairs(CELLS, weighting=3),
            "weighting_must_refined_none",
            {"name": "int"},
        ),
        (
            lambda: discreet.count_pairs(CELLS, folds="32"),
            "must_found_nothing_read",
            {"place": "folds=", "wanted": "a whole number or None", "found": "'32' (str)"},
        ),
        (
            lambda: discreet.fit(pd.DataFrame(CELLS), persons="who"),
            "no_keyword_reading_answers",
            {"hint": "Did you mean person?"},
        ),
        (
            lambda: discreet.Responses.from_dataframe(pd.DataFrame(CELLS), colour=1),
            "no_keyword_reading_answers",
            {},
        ),
        (
            lambda: discreet.release(CELLS, BUDGET, items=None),
            "must_found_nothing_read",
            {
                "place": "items=",
                "wanted": "a list or a mapping from names to values or a path",
                "found": "None (NoneType)",
            },
        ),
        (
            lambda: discreet.release(CELLS, 1.0, items=ITEMS),
            "must_found_nothing_read",
            {"wanted": "of the type Budget or None", "found": "1.0 (float)"},
        ),
        (lambda: analysis.find_dif(CELLS, 3), "groups_name_column_one", {"groups": 3}),
        (
            lambda: discreet.Responses.concat([pd.DataFrame(CELLS)] * 2),
            "answers_put_together_list",
            {},
        ),
        (
            lambda: discreet.Responses.concat(discreet.Responses.from_array(CELLS)),
            "answers_put_together_list",
            {},
        ),
        (
            lambda: discreet.Estimate.load("no such file.json"),
            "cannot_read_check_path_read_json",
            {"strerror": "No such file or directory"},
        ),
    ],
)
def test_a_plain_mistake_is_answered_in_one_line(act, code, facts):
    with refused(BadUsage, code, **facts) as caught:
        act()
    assert "\n" not in str(caught.value)
