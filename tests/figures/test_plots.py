"""Plots show the numbers of the result, all of them, and nothing else."""

import sys
from itertools import combinations

import numpy as np
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from discreet.analysis import find_dif, measure_fit
from discreet.answers.responses import Responses
from discreet.api.calibrating import fit
from discreet.api.counting import count_pairs
from discreet.api.persons import score
from discreet.api.ranks import rank
from discreet.datasets import lsat
from discreet.errors import BadUsage, MissingExtra
from discreet.figures import (
    curve_plot,
    dif_plot,
    difficulty_plot,
    fit_plot,
    information_plot,
    ladder_plot,
    pair_plot,
    privacy_plot,
    wright_plot,
)
from discreet.figures.items import LONGEST_NAME, new_axes
from discreet.figures.scale import _name_points
from discreet.items.curves import BIN, bin_abilities, bin_answers
from discreet.report.drawings import draw_wright
from discreet.report.pictures import CONTEXT, fit_map, wright_map
from discreet.results.estimate import Estimate, Solution, Status
from discreet.simulation import simulate
from refusals import refused


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


def make_estimate(items):
    """Return an estimate of so many items, the hardest last, the first with a long name."""
    difficulty = np.linspace(-3, 3, items)
    names = ("a name that is longer than the room beside it", *map(str, range(1, items)))
    return Estimate(
        items=names,
        difficulty=difficulty,
        se=np.full(items, 0.3),
        status=(Status.ESTIMATED,) * items,
        method="refined",
        solution=Solution("made up", 0, 0.0),
    )


@pytest.mark.parametrize("items", [60, 200, 1000])
def test_many_items_are_thinned_evenly_by_rank_and_the_picture_says_so(items):
    axes = difficulty_plot(make_estimate(items))
    shown = names(axes)
    assert len(shown) == len(drawn(axes)) == 60
    assert shown[0] == str(items - 1)
    assert len(shown[-1]) == LONGEST_NAME
    assert shown[-1].endswith("…")
    assert (f"60 of {items:,} items" in axes.get_xlabel()) == (items > 60)
    assert axes.figure.get_size_inches()[1] <= 17


@pytest.mark.parametrize("top", [10, 100])
def test_a_long_ladder_shows_the_items_around_the_cut(top):
    many = make_estimate(300)
    axes = ladder_plot(rank(many, top, rng=np.random.default_rng(0)), many)
    ranks = [int(name.split("#")[1].rstrip(")")) for name in names(axes)]
    cut = axes.lines[-1].get_ydata()[0]
    assert len(ranks) <= 60
    assert ranks[int(cut - 0.5)] == top
    assert ranks[int(cut + 0.5)] == top + 1
    assert ("more above" in axes.get_xlabel()) == (top > 60)


def test_of_many_differences_the_largest_are_drawn():
    answers = simulate(200, 90, rng=np.random.default_rng(3)).responses
    table = find_dif(answers, ["a", "b"] * 100)
    axes = dif_plot(table)
    largest = np.sort(np.abs(table.difference))[-60:]
    assert np.allclose(np.sort(np.abs(list(drawn(axes).values()))), largest)
    assert "60 largest differences of 90" in axes.get_xlabel()


@pytest.mark.parametrize("items", [60, 200, 1000])
def test_the_map_of_many_items_draws_them_to_one_measure(items):
    many = make_estimate(items)
    answers = simulate(50, 20, rng=np.random.default_rng(3)).responses
    axes = wright_plot(many, score(answers, fit(answers)))
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    bars = [bar for bar in axes.patches if bar.get_x() > 0]
    assert bool(dots) != bool(bars)  # rows of dots would overlap where there are very many
    widths = [bar.get_width() for bar in bars]
    assert max(widths, default=0) <= 1.35 * axes.get_xlim()[1] / 1.5 + 1e-9
    assert len(set(np.round(widths, 6))) <= 3  # difficulties are even: so are the bars


def test_names_of_outliers_do_not_cover_each_other():
    rng = np.random.default_rng(0)
    many = make_estimate(1000)
    values = rng.normal(1, 0.5, 1000).clip(0.1)
    axes = new_axes()
    chart = fit_map(many, values, "infit")
    points = [(float(chart.value[i]), float(chart.difficulty[i])) for i in chart.worst[:100]]
    axes.plot(*zip(*points, strict=True), "o")
    _name_points(axes, [chart.items[i] for i in chart.worst[:100]], points)
    axes.figure.canvas.draw()
    boxes = [label.get_window_extent().shrunk(0.9, 0.9) for label in axes.texts]
    assert 5 < len(boxes) < 100
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))


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
    assert difficulty_plot(estimate, ax=axes) is axes
    assert ladder_plot(rank(estimate, 2), estimate, ax=axes) is axes


def test_plots_can_be_written(estimate, tmp_path):
    for axes in (difficulty_plot(estimate), ladder_plot(rank(estimate, 5), estimate)):
        axes.figure.savefig(tmp_path / "plot.svg")
        assert (tmp_path / "plot.svg").stat().st_size > 1000


def test_an_estimate_without_numbers_is_refused(estimate):
    from dataclasses import replace

    nothing = replace(estimate, difficulty=np.full(30, np.nan), se=np.full(30, np.nan))
    with refused(BadUsage, "no_item_estimate_number_nothing"):
        difficulty_plot(nothing)


def test_a_missing_matplotlib_is_named(estimate, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with refused(MissingExtra, "needs_optional_dependency_group", extra="report"):
        difficulty_plot(estimate)


# ---- persons, fit, groups, pairs, privacy


@pytest.fixture(scope="module")
def answers():
    return simulate(400, 30, 0.6, rng=np.random.default_rng(0)).responses


@pytest.fixture(scope="module")
def scores(answers, estimate):
    return score(answers, estimate)


def test_the_wright_map_shows_every_person_and_every_item(estimate, scores):
    axes = wright_plot(estimate, scores)
    assert sum(-bar.get_width() for bar in axes.patches) == np.isfinite(scores.ability).sum()
    written = {name for text in axes.texts for name in text.get_text().split()}
    assert written == set(estimate.items)


def test_a_wright_map_of_many_items_has_a_dot_for_each():
    answers = simulate(300, 80, rng=np.random.default_rng(1)).responses
    many = fit(answers)
    axes = wright_plot(many, score(answers, many))
    dots = sum(len(line.get_xdata()) for line in axes.lines if line.get_marker() == "o")
    assert dots == 80


def test_names_too_long_for_the_wright_map_are_cut_and_counted(estimate, scores):
    from dataclasses import replace

    long = replace(estimate, items=tuple(f"a very long item name {i:03d}" for i in range(30)))
    texts = [text.get_text() for text in wright_plot(long, scores).texts]
    assert max(map(len, texts)) < 60
    shown = sum(text.count("a very long") for text in texts)
    assert shown + sum(int(text.rsplit("+", 1)[1]) for text in texts if "+" in text) == 30


def test_observed_points_are_the_shares_in_groups_of_persons(answers, estimate, scores):
    name = estimate.items[3]
    axes = curve_plot(estimate, name, responses=answers, scores=scores, groups=4)
    (points,) = [line for line in axes.lines if line.get_marker() == "o"]
    cells = answers.select([name]).store.rows(0, 400)[:, 0]
    known = ~scores.extreme
    cuts = np.quantile(scores.ability[known], [0.25, 0.5, 0.75])
    group = np.searchsorted(cuts, scores.ability)
    for place in range(4):
        mine = (group == place) & known & (cells >= 0)
        assert points.get_ydata()[place] == pytest.approx(cells[mine].mean())
        assert points.get_xdata()[place] == pytest.approx(scores.ability[mine].mean())


def test_an_expected_curve_passes_one_half_at_the_difficulty(estimate):
    axes = curve_plot(estimate, list(estimate.items[:2]))
    for place, line in enumerate(axes.lines):
        half = np.interp(0.5, line.get_ydata(), line.get_xdata())
        assert half == pytest.approx(estimate.difficulty[place], abs=1e-3)


def test_curves_explain_what_they_cannot_draw(answers, estimate, scores):
    with refused(BadUsage, "no_item_estimate_items", unknown="nonsense"):
        curve_plot(estimate, "nonsense")
    with refused(BadUsage, "one_picture_holds_item", curves="5"):
        curve_plot(estimate, list(estimate.items))
    with refused(BadUsage, "observed_points_need_both"):
        curve_plot(estimate, "0", responses=answers)
    with refused(BadUsage, "binning_needs_one_ability"):
        bin_answers(answers, scores.ability[:-1])


def test_information_and_error_are_those_of_the_items(estimate):
    axes = information_plot(estimate)
    x, y = axes.lines[0].get_data()
    chance = 1 / (1 + np.exp(estimate.difficulty[None, :] - x[:, None]))
    assert np.allclose(y, (chance * (1 - chance)).sum(axis=1))


def test_misfitting_items_are_named_and_drawn_apart(answers, estimate):
    from dataclasses import replace

    fit_statistics = measure_fit(answers, estimate)
    infit = fit_statistics.items.conditional_infit.copy()
    infit[4] = 1.8
    odd = replace(fit_statistics, items=replace(fit_statistics.items, conditional_infit=infit))
    axes = fit_plot(estimate, odd)
    assert [text.get_text() for text in axes.texts] == [estimate.items[4]]
    assert sorted(len(c.get_offsets()) for c in axes.collections) == [1, 29]
    with refused(BadUsage, "statistic_must_infit_outfit"):
        fit_plot(estimate, odd, statistic="chi")


def test_the_dif_plot_sorts_items_and_marks_classes(answers):
    labels = ["a", "b"] * 200
    table = find_dif(answers, labels)
    axes = dif_plot(table)
    order = np.argsort(-table.difference)
    assert names(axes) == [table.item[i] for i in order]
    points = drawn(axes)
    assert [points[row] for row in range(30)] == table.difference[order].tolist()
    with refused(BadUsage, "table_compares_choose_one"):
        dif_plot(table, focal="nobody")


def test_the_heat_map_adds_both_directions_and_counts_what_is_missing():
    answers = np.full((20, 4), np.nan)
    answers[:10, :2] = np.random.default_rng(0).integers(0, 2, (10, 2))
    answers[10:, 2:] = np.random.default_rng(1).integers(0, 2, (10, 2))
    counts = count_pairs(Responses.from_array(answers))
    axes = pair_plot(counts)
    shown = np.ma.filled(axes.images[0].get_array(), 0)
    assert np.array_equal(np.nan_to_num(shown), counts.right_wrong + counts.right_wrong.T)
    assert "4 of 6 pairs never" in axes.get_title(loc="left")


def test_the_privacy_curve_draws_every_mechanism_and_the_floor():
    axes = privacy_plot([0.5, 1, 2], {"a": [3, 2, 1], "b": [2, 1, 0.5]}, without_privacy=0.1)
    assert [line.get_label() for line in axes.lines] == ["a", "b", "without privacy"]
    assert axes.lines[1].get_ydata().tolist() == [2, 1, 0.5]
    with refused(BadUsage, "curve_errors_values_epsilon", n_values="2", n_epsilon="3"):
        privacy_plot([0.5, 1, 2], [1, 2])
    with refused(BadUsage, "epsilon_errors_must_above"):
        privacy_plot([0.0, 1], [1, 2])


def test_every_public_picture_is_listed_and_documented():
    import discreet.figures

    for name in discreet.figures.__all__:
        assert "Returns" in getattr(discreet.figures, name).__doc__


def test_a_page_and_a_plot_show_the_same_wright_map(answers, estimate, scores):
    """Both draw the numbers of one figure, and no others."""
    starts, counts = bin_abilities(scores.ability)
    shown = wright_map(estimate, starts, counts, persons=400, mean=float(scores.ability.mean()))
    sheet = draw_wright(shown)
    bars = [mark.tip.split()[0] for mark in sheet.marks if "person" in mark.tip]
    assert bars == [f"{n:,}" for n in counts if n]
    rows = [mark for mark in sheet.marks if mark.tag == "text" and mark.tip]
    named = [line.split(":")[0] for mark in rows for line in mark.tip.splitlines()]
    assert sorted(named) == sorted(shown.items)
    written = [name for mark in rows for name in mark.words.split(" · ")]
    assert written == named  # so few that every name has room
    texts = [text.get_text() for text in wright_plot(estimate, scores).texts]
    assert sorted(" ".join(texts).split()) == sorted(named)
    widths = [-bar.get_width() for bar in wright_plot(estimate, scores).patches]
    assert widths == counts.tolist()


def test_items_of_one_bin_are_stacked_from_one_upwards(estimate, scores):
    shown = wright_map(estimate, [0.0], [1], persons=1, mean=0.0)
    for centre in np.unique(shown.centre):
        mine = shown.centre == centre
        assert shown.level[mine].tolist() == list(range(1, mine.sum() + 1))
        assert np.all(np.abs(shown.difficulty[mine] - centre) <= BIN / 2)


def test_a_notebook_shows_every_picture_once(tmp_path):
    cells = [
        "import discreet\nfrom discreet import figures\nanswers = discreet.datasets.lsat()\n"
        "estimate = discreet.fit(answers)",
        "estimate.plot()",
        "estimate.plot();",
        "axes = figures.wright_plot(estimate, discreet.score(answers, estimate))",
        "import matplotlib.pyplot as plt\nestimate.plot()\nplt.show()",
        "picture, ax = plt.subplots()\nestimate.plot(ax=ax);",
        "plt.get_fignums()",
    ]
    book = new_notebook(cells=[new_code_cell(cell) for cell in cells])
    NotebookClient(book, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [
        sum("image/png" in output.get("data", {}) for output in cell.outputs) for cell in book.cells
    ]
    assert shown == [0, 1, 1, 1, 1, 1, 0]
    assert book.cells[-1].outputs[0]["data"]["text/plain"] == "[]"


def test_outside_a_notebook_pyplot_keeps_no_picture(estimate):
    from matplotlib import pyplot as plt

    before = plt.get_fignums()
    estimate.plot()
    assert plt.get_fignums() == before
