"""The supplement's figure on p0: how sparse the graph of compared pairs should be.

The paper compares edge probabilities for its sparse Gaussian mechanism. Beside it: the library's
`sparse-pairs` on the same graphs, whose fit does not clip. The supplement does not say how many
items and persons were behind its figure; here 100 and 500.

    python -m experiments.edge_probability [--quick] [--trials N] [--workers W]
"""

from __future__ import annotations

from math import log2
from typing import Any

from matplotlib.figure import Figure

from experiments.curves import Setting
from experiments.panels import Panel, describe_trials, run_panels, summarise
from experiments.pictures import LABELS
from experiments.published import Pairs
from experiments.results import (
    COLOURS,
    MARKERS,
    plain_ticks,
    print_table,
    read_options,
    save_figure,
    style,
    write_csv,
)
from experiments.synthetic import Simulated

NAME = "edge_probability"
ITEMS, PERSONS = 100, 500
FACTORS = {"1.1 log2(m)/m": 1.1, "3 log2(m)/m": 3.0, "0.5": 0.5 * ITEMS / log2(ITEMS),
           "1": ITEMS / log2(ITEMS)}  # fmt: skip
CURVES = ("published sparse", "sparse-pairs", "all zero")


def make_panel(label: str, factor: float) -> Panel:
    setting = Setting(Pairs.UNORDERED, edge_factor=factor)
    name = f"p0 = {label}"
    return Panel(name, name, Simulated(ITEMS, PERSONS), setting, CURVES)


def draw(rows: list[dict[str, Any]], panels: list[Panel]) -> Figure:
    figure = Figure(figsize=(11, 4.8), layout="constrained")
    zero = max(row["error"] for row in rows if row["curve"] == "all zero")
    for axes, curve in zip(figure.subplots(1, 2), CURVES[:2], strict=True):
        for colour, marker, panel in zip(COLOURS, MARKERS, panels, strict=False):
            line = [r for r in rows if (r["panel"], r["curve"]) == (panel.name, curve)]
            axes.plot(
                [row["epsilon"] for row in line], [row["error"] for row in line], marker,
                color=colour, ls="--" if curve.startswith("published") else "-", label=panel.title,
                markersize=5,
            )  # fmt: skip
        axes.axhline(zero, color="black", ls=":", label="answering zero for every item")
        axes.set_xscale("log")
        plain_ticks(axes.xaxis, (0.01, 0.1, 1.0, 5.0))
        axes.set_ylim(0, 2.2 * zero)
        title = LABELS[curve].replace("*", " (not private)")
        style(axes, title, "epsilon (smaller = more private)", "‖estimate - b‖ (logits)")
        axes.legend(fontsize=8.5, frameon=False)
    title = f"How many pairs should be compared? {ITEMS} items, {PERSONS} persons"
    figure.suptitle(f"{title}  ({describe_trials(rows)})", x=0.01, ha="left", fontsize=13)
    return figure


def main() -> None:
    options = read_options(__doc__ or "", trials=100, quick_trials=4)
    panels = [make_panel(label, factor) for label, factor in FACTORS.items()]
    rows = summarise(run_panels(NAME, panels, options), panels)
    headings = {"panel": "graph", "curve": "curve", "epsilon": "epsilon", "error": "error"}
    print_table("Edge probability", [r for r in rows if r["curve"] != "all zero"], headings)
    write_csv(options.out / f"{NAME}.csv", rows)
    save_figure(draw(rows, panels), options.out / f"{NAME}.png")


if __name__ == "__main__":
    main()
