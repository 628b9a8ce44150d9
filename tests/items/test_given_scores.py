"""Answers drawn given the answered items and the total score."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.items import cutoffs
from discreet.items.cutoffs import ScoreDraws

UNEVEN = np.array(
    [[0.3, np.nan, np.nan], [-1.0, 0.8, np.nan], [0.5, -0.2, 1.1], [-0.7, np.nan, np.nan]]
)
"""Thresholds of items with 1, 2, 3 and 1 steps, some in the wrong order."""


def draw_cells(seed, persons=30, items=9, steps=3):
    """Return thresholds and answers of items with up to so many steps, some of them missing."""
    rng = np.random.default_rng(seed)
    thresholds = rng.normal(size=(items, steps))
    most = rng.integers(1, steps + 1, items)
    thresholds[np.arange(steps) >= most[:, None]] = np.nan
    cells = rng.integers(0, most + 1, (persons, items)).astype(np.int8)
    cells[rng.random(cells.shape) < 0.3] = -1
    return thresholds, cells


def list_law(thresholds, answered, score):
    """Return the probability of every way to get a score, from the model's definition."""
    steps = [int((~np.isnan(row)).sum()) if item else 0 for row, item in
             zip(thresholds, answered, strict=True)]  # fmt: skip
    ways = [way for way in product(*(range(most + 1) for most in steps)) if sum(way) == score]
    weight = np.array(
        [
            np.exp(-sum(row[:x].sum() for row, x in zip(thresholds, way, strict=True)))
            for way in ways
        ]
    )
    return dict(zip(ways, weight / weight.sum(), strict=True))


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_drawn_persons_keep_their_scores_and_their_missing_answers(seed):
    thresholds, cells = draw_cells(seed)
    drawn = next(ScoreDraws.of(thresholds, cells).draw(1, np.random.default_rng(seed))).T
    assert (drawn.sum(axis=1) == np.maximum(cells, 0).sum(axis=1)).all()
    assert not drawn[cells < 0].any()
    assert (drawn <= (~np.isnan(thresholds)).sum(axis=1)).all()


def test_drawn_answers_follow_the_law_given_the_score():
    """Two patterns of answered items with uneven steps, three points each."""
    cells = np.array([[1, 1, 1, 0], [1, -1, 1, 1]], dtype=np.int8)
    draws = ScoreDraws.of(UNEVEN, np.repeat(cells, 20_000, axis=0))
    drawn = next(draws.draw(1, np.random.default_rng(2))).T
    for pattern, row in enumerate(cells):
        rows = drawn[pattern * 20_000 : (pattern + 1) * 20_000]
        for way, chance in list_law(UNEVEN, row >= 0, 3).items():
            share = (rows == way).all(axis=1).mean()
            assert abs(share - chance) < 4.5 * np.sqrt(chance * (1 - chance) / 20_000)


def test_tables_in_parts_give_the_same_law(monkeypatch):
    thresholds, cells = draw_cells(5, persons=40)
    whole = ScoreDraws.of(thresholds, cells)
    monkeypatch.setattr(cutoffs, "TABLE_CELLS", 300)
    monkeypatch.setattr(cutoffs, "DRAW_CELLS", 1000)
    assert len(list(whole._parts())) > 5
    sets = list(whole.draw(7, np.random.default_rng(1)))
    assert len(sets) == 7
    for drawn in sets:
        assert (drawn.T.sum(axis=1) == whole.score).all()


def test_a_thousand_items_neither_overflow_nor_miss_the_score():
    cells = np.zeros((3, 1000), dtype=np.int8)
    cells[0, :5], cells[1, :500], cells[2, :990] = 1, 1, 1
    draws = ScoreDraws.of(np.linspace(-30, 30, 1000)[:, None], cells)
    drawn = next(draws.draw(1, np.random.default_rng(1)))
    assert drawn.sum(axis=0).tolist() == [5, 500, 990]
