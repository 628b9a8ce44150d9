"""Plots show the numbers of the result, all of them, and nothing else."""

import sys

import numpy as np
import pytest

from discreet.calibrate import fit
from discreet.datasets import lsat
from discreet.errors import BadUsage, MissingExtra
from discreet.plots import difficulty_plot, ladder_plot
from discreet.plots.items import CONTEXT
from discreet.plots.style import NAMED
from discreet.simulation import simulate
from discreet.topk import rank


@pytest.fixture(scope="module")
def estimate():
    return fit(simulate(400, 30, 0.6, rng=np.random.default_rng(0)).responses)


def drawn(axes):
    """Every marker, as {row: difficulty}."""
    points = {}
    for line in axes.lines:
        if line.get_marker() not in ("", "None", None):
            points |= dict(zip(map(int, line.get_ydata()), line.get_xdata(), strict=True))
    return points


def names(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


def test_difficulties_are_drawn_from_hardest_to_easiest_with_their_names():
    result = fit(lsat())
    axes = difficulty_plot(result)
    order = np.argsort(-result.difficulty)
    assert names(axes) == [result.items[i] for i in order]
    points = drawn(axes)
    assert [points[row] for row in range(5)] == result.difficulty[order].tolist()


def test_every_interval_is_the_one_of_the_estimate():
    result = fit(lsat())
    axes = difficulty_plot(result, level=0.8)
    segments = np.array(axes.collections[0].get_segments())[:, :, 0]
    order = np.argsort(-result.difficulty)
    assert np.array_equal(segments, result.interval(0.8)[order])
    assert "80%" in axes.get_title(loc="left")


def test_items_without_a_number_are_counted_not_dropped_silently():
    answers = lsat().store.rows(0, 1000).astype(float)
    answers[:, 2] = 1
    axes = difficulty_plot(fit(answers))
    assert len(names(axes)) == 4
    assert "1 without a number" in axes.get_xlabel()


def test_many_items_get_ranks_instead_of_names():
    many = fit(simulate(400, NAMED + 5, rng=np.random.default_rng(1)).responses)
    axes = difficulty_plot(many)
    assert axes.get_ylabel() == "rank"
    assert len(drawn(axes)) == NAMED + 5


def test_the_ladder_puts_every_item_in_the_group_the_ranking_says(estimate):
    ranking = rank(estimate, 6, rng=np.random.default_rng(0))
    axes = ladder_plot(ranking, estimate)
    shown = {line.get_label(): len(line.get_ydata()) for line in axes.lines}
    assert shown.get("surely in", 0) == len(ranking.surely_in)
    assert shown.get("in, not surely", 0) == 6 - len(ranking.surely_in)
    assert shown["outside, possibly in"] == len(set(ranking.possibly_in) - set(ranking.top))
    assert shown["out"] <= CONTEXT
    assert [name.split()[0] for name in names(axes)[:6]] == list(ranking.top)


def test_the_ladder_says_how_many_items_it_leaves_out(estimate):
    axes = ladder_plot(rank(estimate, 1, rng=np.random.default_rng(0)), estimate)
    assert f"{30 - len(names(axes))} more below" in axes.get_xlabel()


@pytest.mark.parametrize("top", [0, 3, 30])
@pytest.mark.parametrize("easiest", [False, True])
def test_the_ladder_starts_with_the_top_in_both_directions(estimate, top, easiest):
    ranking = rank(estimate, top, easiest=easiest, rng=np.random.default_rng(0))
    axes = ladder_plot(ranking, estimate)
    assert [name.split()[0] for name in names(axes)[:top]] == list(ranking.top)
    assert axes.lines[-1].get_ydata()[0] == top - 0.5
    assert ("easiest" if easiest else "hardest") in axes.get_title(loc="left")


def test_a_given_axes_is_used(estimate):
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    assert difficulty_plot(estimate, axes=axes) is axes
    assert ladder_plot(rank(estimate, 2), estimate, axes=axes) is axes


def test_plots_can_be_written(estimate, tmp_path):
    for axes in (difficulty_plot(estimate), ladder_plot(rank(estimate, 5), estimate)):
        axes.figure.savefig(tmp_path / "plot.svg")
        assert (tmp_path / "plot.svg").stat().st_size > 1000


def test_an_estimate_without_numbers_is_refused(estimate):
    from dataclasses import replace

    nothing = replace(estimate, difficulty=np.full(30, np.nan), se=np.full(30, np.nan))
    with pytest.raises(BadUsage, match="nothing to draw"):
        difficulty_plot(nothing)


def test_a_missing_matplotlib_is_named(estimate, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r"discreet\[report\]"):
        difficulty_plot(estimate)
