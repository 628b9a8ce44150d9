"""From the paper's Algorithm 2 to the library's release, one change at a time.

On every panel of Figures 1 to 3, with all answers and with half of them missing at random:

(a) as published: counts of zero get no noise, so no epsilon exists;
(b) the leak closed: noise on every count; sigma as in the authors' scripts, floor at 1, lambda = 1,
    power iteration;
(c1) sigma for what one person moves at most, 2 floor(m^2 / 4) counts; the printed conversion;
(c2) the least sigma that keeps (epsilon, delta) exactly;
(c3) elimination and lambda = 0, the floor is kept: the library's estimator ``spectral``;
(d) the noise-aware fit of the same noisy values: the library's `pairs`;
(e) `margins`.

And the same for the sparse graph of pairs:

(as) as published;
(cs) the leak closed and (epsilon, delta) kept exactly: `sparse-pairs` with the estimator
    ``spectral``;
(ds) the noise-aware fit of the same noisy values: the library's `sparse-pairs`.

Beside every point stands the epsilon that its noise has at delta = 0.0001, exactly; pictures are
drawn against it. Nobody's number of answers is capped, as in the paper. On real data the error
is the distance to the non-private spectral estimate; the distance to the refined one is in the
CSV, both with lambda = 1.

    python -m experiments ablation [--quick] [--trials N] [--workers W]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from discreet.privacy.accounting import Budget
from discreet.privacy.accounting.additive_noise import SMALLEST_SIGMA, counts_delta
from discreet.privacy.accounting.amplification import graph_epsilon
from discreet.privacy.mechanisms.margins import Margins
from discreet.privacy.mechanisms.pairs import DensePairs, SparsePairs, graph_sensitivity
from discreet.privacy.protocol import Public
from discreet.secure import SeededSource
from experiments import education, films, published, synthetic
from experiments.curves import DELTA, Scene, Setting, count_moved, refined_estimate
from experiments.panels import REFERENCES, Maker, Panel, describe_trials, run_panels, summarise
from experiments.pictures import LABELS, STYLES
from experiments.results import (
    Options,
    plain_ticks,
    print_table,
    read_options,
    save_figure,
    style,
    write_csv,
)

NAME = "ablation"
VARIANTS = {
    "a": "published Gauss",
    "b": "leak closed",
    "c1": "exact sensitivity",
    "c2": "exact delta",
    "c3": "exact chain",
    "d": "pairs",
    "e": "margins",
    "as": "published sparse",
    "cs": "exact sparse chain",
    "ds": "sparse-pairs",
}
"""Curves by the letters of the table."""

LINES = {letter: VARIANTS[letter] for letter in ("a", "b", "c3", "d", "e", "cs", "ds")}
"""Those of the picture."""

EPSILONS = (0.1, 0.2, 0.4, 1.0, 2.0, 5.0)
QUICK_EPSILONS = (1.0, 5.0)
HALF = ", half missing"
MANY_ITEMS, FEW_TRIALS = 100, 12
"""From so many items on single trials scatter by a few percent, and take long."""
DRAWN = ("m=25, n=1000", "m=200, n=1000", "lsat", "films, m=25", "films, m=200",
         f"m=25, n=1000{HALF}")  # fmt: skip
"""Panels of the picture; the CSV has all."""


@dataclass(frozen=True)
class Taken:
    """The data of another figure, of which each answer is kept with some probability.

    On real data the references are the non-private estimates of the answers that are left.
    """

    make: Maker
    is_real: bool
    answered: float = 1.0

    def __call__(self, rng: np.random.Generator) -> Scene:
        scene = self.make(rng)
        kept = rng.random(scene.answers.shape) < self.answered
        left = Scene(np.where(kept, scene.answers, -1).astype(np.int8), scene.reference)
        if not self.is_real:
            return left
        left = replace(left, reference=published.spectral(left.counts))
        return replace(left, refined=refined_estimate(left, UNUSED, 0.0, None))


UNUSED = Setting(published.Pairs.ORDERED, edge_factor=1.0)


def make_panels(options: Options) -> list[Panel]:
    """Return every panel of the three figures, each with all answers and with half of them."""
    taken = [(synthetic.make_panel(m, n), False) for m, n in synthetic.SHAPES]
    taken += [(panel, True) for panel in education.make_panels()]
    ratings = options.ratings or films.BESIDE
    if ratings.exists():
        taken += [(films.make_panel(m, ratings, "films, "), True) for m in films.ITEMS]
    else:
        print("no film ratings: their panels are skipped. Pass a copy with --ratings PATH.")
    epsilons = QUICK_EPSILONS if options.quick else EPSILONS
    curves = (*VARIANTS.values(), *REFERENCES)
    return [
        replace(panel, name=panel.name + word, title=panel.title + word,
                make=Taken(panel.make, is_real, answered), curves=curves, epsilons=epsilons,
                most_trials=FEW_TRIALS if getattr(panel.make, "items", 0) >= MANY_ITEMS else None)
        for word, answered in (("", 1.0), (HALF, 0.5))
        for panel, is_real in taken
    ]  # fmt: skip


# --- the epsilon that noise really has ------------------------------------------------------------


def find_epsilon(curve: str, m: int, setting: Setting, epsilon: float) -> float:
    """Return the exact epsilon of a curve's noise at delta; NaN where none exists."""
    if curve == "leak closed":
        sigma = published.gauss_sigma(epsilon, DELTA, m * (m - 1) * setting.pairs.value)
        return counts_epsilon(count_moved(m), sigma)
    if curve == "exact sensitivity":
        moved = count_moved(m)
        return counts_epsilon(moved, published.gauss_sigma(epsilon, DELTA, moved))
    if curve in ("exact delta", "exact chain", "pairs"):
        laws = DensePairs().calibrate(_public(m), Budget(epsilon, DELTA), SeededSource(0)).laws
        return counts_epsilon(count_moved(m), laws["right_wrong"].scale)
    if curve in ("exact sparse chain", "sparse-pairs"):
        mechanism = SparsePairs(setting.edge_probability(m))
        public, budget = _public(m), Budget(epsilon, DELTA)
        sigma = mechanism.calibrate(public, budget, SeededSource(0)).laws["right_wrong"].scale
        average = graph_sensitivity(public, setting.edge_probability(m))
        return graph_epsilon(average, sigma, DELTA)
    if curve == "margins":
        spend = Margins().calibrate(_public(m), Budget(epsilon, DELTA), SeededSource(0)).spend
        return _least_epsilon(spend.bound.delta)
    return math.nan


def _public(m: int) -> Public:
    items = tuple(map(str, range(m)))
    return Public(items, m, Budget(1.0, DELTA).neighbours, persons=1000)


@cache
def counts_epsilon(moved: int, sigma: Fraction) -> float:
    """Return the least epsilon at delta when so many counts move by one each."""
    if sigma >= SMALLEST_SIGMA:
        return _least_epsilon(lambda epsilon: counts_delta(moved, sigma, epsilon))
    loss, chance = _loss_distribution(moved, float(sigma))
    return _least_epsilon(
        lambda epsilon: float((chance * -np.expm1(np.minimum(epsilon - loss, 0.0))).sum())
    )


def _loss_distribution(moved: int, sigma: float) -> tuple[Any, Any]:
    """Privacy loss of few counts with little noise: their sum's distribution, convolved."""
    reach = math.ceil(12 * sigma) + 2
    steps = np.arange(-reach, reach + 1)
    one = np.exp(-(steps**2) / (2 * sigma**2))
    one /= one.sum()
    chance = np.ones(1)
    for _ in range(moved):
        chance = np.convolve(chance, one)
    total = np.arange(len(chance)) - moved * reach
    return (2 * total + moved) / (2 * sigma**2), chance


def _least_epsilon(delta_at: Callable[[float], float]) -> float:
    low, high = 0.0, 1.0
    while delta_at(high) > DELTA:
        low, high = high, 2 * high
    while high - low > 1e-5 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if delta_at(middle) <= DELTA else (middle, high)
    return high


# --- tables and pictures --------------------------------------------------------------------------


def add_epsilons(rows: Sequence[dict[str, Any]], panels: Sequence[Panel]) -> list[dict[str, Any]]:
    """Put the exact epsilon and the root mean square error of an item beside every point."""
    panel = {one.name: one for one in panels}
    lines = []
    for row in rows:
        m = _count_items(panel[row["panel"]])
        exact = find_epsilon(row["curve"], m, panel[row["panel"]].setting, row["epsilon"])
        shares = {"per_item": row["error"] / math.sqrt(m), "exact_epsilon": exact}
        lines.append({"to_refined": math.nan, **row, **shares})
    return lines


@cache
def _count_items(panel: Panel) -> int:
    return len(panel.make(np.random.default_rng(0)).reference)


def tabulate(rows: Sequence[dict[str, Any]], epsilon: float, field: str) -> list[dict[str, str]]:
    """One line for each panel, one column for each variant, at one nominal epsilon."""
    lines = []
    for panel in dict.fromkeys(row["panel"] for row in rows):
        found = {r["curve"]: r for r in rows if r["panel"] == panel and r["epsilon"] == epsilon}
        line = {"panel": panel}
        for letter, curve in VARIANTS.items():
            line[letter] = _cell(found.get(curve), field)
        line |= {name: _cell(found.get(name), field) for name in REFERENCES}
        lines.append(line)
    return lines


def _cell(row: dict[str, Any] | None, field: str) -> str:
    return "" if row is None or math.isnan(row[field]) else f"{row[field]:.3g}"


def draw(panels: Sequence[Panel], rows: Sequence[dict[str, Any]]) -> Figure:
    """Draw error against the exact epsilon; the published curve has none and is dashed."""
    shown = [panel for panel in panels if panel.name in DRAWN] or list(panels)
    across = min(3, len(shown))
    down = -(-len(shown) // across)
    figure = Figure(figsize=(4.2 * across, 3.3 * down + 0.9), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False).ravel()
    for axes, panel in zip(grid, shown, strict=False):
        here = [row for row in rows if row["panel"] == panel.name]
        _draw_panel(axes, panel, here)
    for axes in grid[len(shown) :]:
        axes.set_visible(False)
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    title = f"From Algorithm 2 to a private release, step by step  ({describe_trials(rows)})"
    figure.suptitle(title, x=0.01, ha="left", fontsize=12)
    return figure


def _draw_panel(axes: Any, panel: Panel, rows: Sequence[dict[str, Any]]) -> None:
    zero = max(row["error"] for row in rows if row["curve"] == "all zero")
    letters = {curve: letter for letter, curve in LINES.items()}
    for curve in (*LINES.values(), "all zero"):
        line = sorted((r for r in rows if r["curve"] == curve), key=lambda r: r["epsilon"])
        x = [r["epsilon"] if math.isnan(r["exact_epsilon"]) else r["exact_epsilon"] for r in line]
        look = {"linewidth": 1.4, "markersize": 4, **STYLES[curve]}
        label = LABELS[curve].replace("*", ": no epsilon exists")
        label = f"({letters[curve]}) {label}" if curve in letters else label
        axes.plot(x, [row["error"] for row in line], label=label, **look)
    axes.set_xscale("log")
    axes.set_yscale("log")
    steps = [base * 10.0**power for power in (-2, -1, 0, 1) for base in (1, 2, 5)]
    least = min(row["error"] for row in rows if row["curve"] in LINES.values())
    plain_ticks(axes.xaxis, (0.1, 0.3, 1.0, 3.0))
    plain_ticks(axes.yaxis, [step for step in steps if least / 1.3 < step < 1.6 * zero])
    axes.set_ylim(least / 1.3, 1.6 * zero)
    style(axes, panel.title, "exact epsilon at delta 0.0001", "‖estimate - reference‖ (logits)")


def main() -> None:
    options = read_options(__doc__ or "", trials=40, quick_trials=2)
    panels = make_panels(options)
    rows = add_epsilons(summarise(run_panels(NAME, panels, options), panels), panels)
    headings = {name: name for name in ("panel", *VARIANTS, *REFERENCES)}
    for field, what in (("error", "error"), ("exact_epsilon", "exact epsilon"),
                        ("per_item", "root mean square error of an item"),
                        ("to_refined", "distance to the refined estimate")):  # fmt: skip
        table = tabulate(rows, 1.0, field)
        table = [line for line in table if any(line[letter] for letter in VARIANTS)]
        if table:
            print_table(f"Ablation at nominal epsilon 1: {what}", table, headings)
    write_csv(options.out / f"{NAME}.csv", rows)
    done = {row["panel"] for row in rows}
    figure = draw([panel for panel in panels if panel.name in done], rows)
    save_figure(figure, options.out / f"{NAME}.png")


if __name__ == "__main__":
    main()
