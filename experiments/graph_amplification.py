"""Privacy from the random graph: how much noise `sparse-pairs` needs, and how much it would need.

The paper suspects that drawing the compared pairs at random amplifies privacy. It does: answers
are given before the graph is drawn, so delta is an average over graphs and the noise has to cover
an average graph, not the worst answers for the drawn one (docs/privacy-accounting.md, section 10).
Shown is the noise on each count for both, and the least that any guarantee given the graph needs:
the answers of a person who cuts as many edges as a search could find.

    python -m experiments.graph_amplification [--quick] [--trials N]
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.accounting.additive_noise import calibrate_counts, counts_delta
from discreet.privacy.mechanisms.pairs import SparsePairs
from discreet.privacy.protocol import Public
from discreet.secure import SeededSource
from experiments.results import (
    COLOURS,
    Options,
    plain_ticks,
    print_table,
    read_options,
    save_figure,
    style,
    write_csv,
)

NAME = "graph_amplification"
EPSILON, DELTA = 1.0, 1e-4
ITEMS = (12, 25, 50, 100, 200, 400, 1000)
CAPS = (5, 10, 20, 40, 80, 200)
PROBABILITIES = (0.075, 0.1, 0.2, 0.4, 0.7, 1.0)
SEARCHES = 10

LINES = {
    "sigma_bound": ("if answers could follow the choice of pairs: what can be proved", "--", "s"),
    "sigma_cut": ("if answers could follow the choice of pairs: no less than this", ":", "^"),
    "sigma_average": ("answers are given before the choice (used by sparse-pairs)", "-", "o"),
}
"""Columns of noise, with their names in the legend, line styles and markers."""


@dataclass(frozen=True)
class Case:
    """One point: items, answers per person, edge probability."""

    study: str
    items: int
    answers: int
    probability: float


def make_cases(quick: bool) -> list[Case]:
    """One study for each panel."""
    sizes = ITEMS[1:5] if quick else ITEMS
    paper = {m: min(1.0, 1.1 * log2(m) / m) for m in (*sizes, 200)}
    return [
        *(Case("items", m, m, paper[m]) for m in sizes),
        *(Case("edge probability", 100, 100, p) for p in PROBABILITIES),
        *(Case("cap", 200, q, paper[200]) for q in CAPS),
    ]


def measure(case: Case, options: Options) -> dict[str, Any]:
    """Noise for one case, averaged over some drawn graphs where it depends on them."""
    public = Public(tuple(map(str, range(case.items))), case.answers, Neighbours.REPLACE_ONE, 1000)
    budget = Budget(EPSILON, DELTA)
    bounds, cuts, edges = [], [], []
    for trial in range(options.trials):
        source = SeededSource(options.seed + trial)
        given = SparsePairs(case.probability, noise_for="the drawn graph")
        made = given.calibrate(public, budget, source)
        bounds.append(float(made.laws["right_wrong"].scale))
        graph = np.asarray(made.settings["edges"])
        edges.append(len(graph))
        cut = search_cut(graph, case, np.random.default_rng(options.seed + trial))
        cuts.append(float(calibrate_counts(2 * cut, budget)[0]))
    average = SparsePairs(case.probability).calibrate(public, budget, SeededSource(options.seed))
    sigma = average.laws["right_wrong"].scale
    return {
        "study": case.study,
        "items": case.items,
        "answers": case.answers,
        "edge_probability": case.probability,
        "edges": float(np.mean(edges)),
        "sigma_bound": float(np.mean(bounds)),
        "sigma_cut": float(np.mean(cuts)),
        "sigma_average": float(sigma),
        "ratio": float(sigma) / float(np.mean(bounds)),
        # What is left of the promise for a person whose answers were chosen for the last graph.
        "delta_if_graph_known": counts_delta(2 * cut, sigma, EPSILON),
        "graphs": options.trials,
    }


def search_cut(edges: npt.NDArray[np.int64], case: Case, rng: np.random.Generator) -> int:
    """Return the most edges that some set of answers was found to cut: a lower bound."""
    linked = np.zeros((case.items, case.items))
    linked[edges[:, 0], edges[:, 1]] = linked[edges[:, 1], edges[:, 0]] = 1
    best = 0
    for _ in range(SEARCHES):
        answered = np.zeros(case.items, dtype=bool)
        answered[_dense_items(linked, case.answers, rng)] = True
        side = np.where(answered, rng.choice([-1.0, 1.0], case.items), 0.0)
        uncut = linked @ side
        while (gain := side * uncut).max() > 0:  # so many more edges a changed answer would cut
            change = int(np.argmax(gain))
            side[change] *= -1
            uncut += 2 * side[change] * linked[change]
        best = max(best, int(((side @ -linked @ side) + (answered @ linked @ answered)) / 4))
    return max(best, 1)


def _dense_items(
    linked: npt.NDArray[np.float64], answers: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Items that have many edges among them: each in turn the one with most to those before."""
    chosen = [int(rng.integers(len(linked)))]
    links = rng.random(len(linked)) / 2
    while len(chosen) < answers:
        links += linked[chosen[-1]]
        links[chosen[-1]] = -np.inf
        chosen.append(int(np.argmax(links)))
    return np.array(chosen)


def draw(rows: list[dict[str, Any]]) -> Figure:
    """Draw one panel for each study."""
    figure = Figure(figsize=(14, 5.2), layout="constrained")
    panels = (
        ("items", "items", "Everyone answers everything, p0 = 1.1 log2(m)/m", "items, m"),
        ("edge probability", "edge_probability", "100 items, all answered",
         "share of pairs that are compared, p0"),
        ("cap", "answers", "200 items, p0 = 0.042, at most q answers each",
         "answers per person, q"),
    )  # fmt: skip
    grid = figure.subplots(1, 3)
    for axes, (study, column, title, label) in zip(grid, panels, strict=True):
        here = [row for row in rows if row["study"] == study]
        x = [row[column] for row in here]
        for colour, (name, (words, dashes, marker)) in zip(COLOURS, LINES.items(), strict=False):
            axes.loglog(
                x, [row[name] for row in here], dashes, marker=marker, color=colour, label=words,
                markersize=5, linewidth=2.2 if name == "sigma_average" else 1.5,
            )  # fmt: skip
        style(axes, title, label, "noise on each count (standard deviation)")
        plain_ticks(axes.xaxis, x if len(x) < 7 else x[::2])
        plain_ticks(axes.yaxis, _ticks(here))
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    figure.suptitle(
        "Comparing randomly chosen pairs of items takes less noise for the same promise  "
        f"(epsilon {EPSILON:g}, delta {DELTA:g})",
        x=0.01, ha="left", fontsize=13,
    )  # fmt: skip
    return figure


def _ticks(rows: list[dict[str, Any]]) -> list[float]:
    values = [row[name] for row in rows for name in LINES]
    steps = [base * 10**power for power in range(4) for base in (1, 2, 3, 5, 7)]
    return [step for step in steps if min(values) / 1.3 < step < max(values) * 1.3]


def main() -> None:
    options = read_options(__doc__ or "", trials=20, quick_trials=3)
    rows = [measure(case, options) for case in make_cases(options.quick)]
    headings = {
        "study": "study", "items": "items", "answers": "answers", "edge_probability": "p0",
        "sigma_bound": "given the graph", "sigma_cut": "at least", "sigma_average": "on average",
        "ratio": "average / given", "delta_if_graph_known": "delta if known",
    }  # fmt: skip
    print_table("Noise on each count, epsilon 1", rows, headings)
    write_csv(options.out / f"{NAME}.csv", rows)
    save_figure(draw(rows), options.out / f"{NAME}.png")


if __name__ == "__main__":
    main()
