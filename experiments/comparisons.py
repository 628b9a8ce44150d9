"""Ranking from comparisons: error of the strengths against epsilon, with a guarantee per judge.

The paper closes with it: "private ranking from pairwise comparisons" with the same mechanism.
Judges each compare 30 random pairs of 50 objects. Noise on every pair's wins is the paper's
Algorithm 2; noise on net wins and on how often pairs were compared is the library's. Beside them
stands the perturbed likelihood of Cai, Chakraborty and Wang (2025, arXiv 2507.09388), with the
settings of their public code (github.com/abhinavc3/DP-Ranking): ridge 2 L / epsilon and Laplace
noise of scale 8 L / epsilon on each coordinate, for L comparisons of a judge. It promises epsilon
with delta 0, the others epsilon with delta 0.0001. The third panel is theirs: 16 objects, 5
comparisons, 1,000 judges, a quarter of the objects equally strong and the others weaker.

    python -m experiments.comparisons [--quick] [--trials N] [--workers W]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from discreet.answers.comparisons import Comparisons
from discreet.api.comparing import rank_comparisons
from discreet.models.noisy.released import estimate_release
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.mechanisms.comparisons import NetWins, WinPairs
from discreet.privacy.noise import ExactNoise
from discreet.privacy.protocol import ComparedPublic, NoiseCalibration
from discreet.privacy.wall import release_statistics
from discreet.secure import SeededSource
from discreet.simulation import simulate_comparisons
from experiments.curves import CURVES, DELTA, Draws, FloatArray, Setting
from experiments.panels import Panel, describe_trials, run_panels, summarise
from experiments.published import Pairs
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

NAME = "comparisons"
ITEMS, MADE = 50, 30
JUDGES = (500, 5000)
NEWTON_STEPS = 50

LOOKS: dict[str, dict[str, Any]] = {
    "win-pairs": {"color": COLOURS[0], "marker": "o", "label": "noise on every pair (win-pairs)"},
    "net-wins": {
        "color": COLOURS[1],
        "marker": "s",
        "linewidth": 2.4,
        "label": "noise on net wins and on numbers of comparisons (net-wins)",
    },
    "perturbed likelihood": {
        "color": COLOURS[2],
        "marker": "^",
        "label": "perturbed likelihood (Cai, Chakraborty and Wang; delta 0)",
    },
    "ranking": {"color": "0.45", "ls": "-.", "label": "Bradley-Terry without privacy"},
    "all zero": {"color": "black", "ls": ":", "label": "answering zero for every object"},
}


@dataclass(frozen=True, eq=False)
class Votes:
    """One set of comparisons, and the strengths behind it."""

    comparisons: Comparisons
    reference: FloatArray
    made: int


@dataclass(frozen=True)
class Voting:
    """Draws a set of comparisons; strengths are N(0, 1)."""

    judges: int
    items: int = ITEMS
    made: int = MADE

    def __call__(self, rng: np.random.Generator) -> Votes:
        drawn = simulate_comparisons(self.judges, self.items, self.made, rng=rng)
        return Votes(drawn.comparisons, drawn.strength, self.made)


@dataclass(frozen=True)
class TopQuarter:
    """The simulation of Cai and others: a quarter of the objects at 0, others at log U(.2, .7)."""

    judges: int = 1000
    items: int = 16
    made: int = 5

    def __call__(self, rng: np.random.Generator) -> Votes:
        weaker = np.log(rng.uniform(0.2, 0.7, self.items - self.items // 4))
        strength = np.concatenate([np.zeros(self.items // 4), weaker])
        drawn = simulate_comparisons(self.judges, self.items, self.made, strength=strength, rng=rng)
        return Votes(drawn.comparisons, drawn.strength, self.made)


@cache
def calibrate(
    mechanism: NetWins | WinPairs, public: ComparedPublic, epsilon: float
) -> NoiseCalibration:
    return mechanism.calibrate(public, Budget(epsilon, DELTA), SeededSource(0))


def released(mechanism: NetWins | WinPairs) -> Any:
    """Return the curve of one mechanism: what ``release_comparisons`` does, less the intervals."""

    def curve(votes: Votes, _setting: Setting, epsilon: float, draws: Draws) -> FloatArray:
        data = votes.comparisons
        public = ComparedPublic(data.items, votes.made, Neighbours.REPLACE_ONE, data.n_judges)
        calibration = calibrate(mechanism, public, epsilon)
        noisy = release_statistics(
            data,
            mechanism=mechanism,
            public=public,
            calibration=calibration,
            guarantee=calibration.spend.guarantee(is_private=False),
            noise=ExactNoise(draws.source),
        )
        return np.array(estimate_release(noisy, standard_errors=False).difficulty)

    return curve


def without_privacy(votes: Votes, _setting: Setting, _epsilon: float, _draws: Draws) -> FloatArray:
    # A hundredth of a comparison in both directions gives an object that always won a number.
    return rank_comparisons(votes.comparisons.count(), regularisation=0.01).strength


def perturbed(votes: Votes, _setting: Setting, epsilon: float, draws: Draws) -> FloatArray:
    """Strengths by the perturbed likelihood of Cai and others, individual privacy."""
    noise = draws.rng.laplace(scale=8 * votes.made / epsilon, size=len(votes.reference))
    wins = np.asarray(votes.comparisons.count().wins, dtype=np.float64)
    return maximise_perturbed(wins, ridge=2 * votes.made / epsilon, noise=noise)


def maximise_perturbed(wins: FloatArray, *, ridge: float, noise: FloatArray) -> FloatArray:
    """Maximise the Bradley-Terry likelihood less a ridge and a random linear term, mean zero."""
    m = len(wins)
    both, strength = wins + wins.T, np.zeros(m)
    for _ in range(NEWTON_STEPS):
        chance = 1 / (1 + np.exp(strength - strength[:, None]))
        slope = (wins - both * chance).sum(axis=1) - ridge * strength - noise
        weight = both * chance * (1 - chance)
        # The mean of the strengths is fixed; a weight on it keeps the system regular.
        curvature = np.diag(weight.sum(axis=1)) - weight + ridge * np.eye(m) + 1.0
        step = np.linalg.solve(curvature, slope - slope.mean())
        strength = strength + step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
        if np.abs(step).max() < 1e-10:
            break
    return np.asarray(strength - strength.mean())


CURVES["net-wins"] = released(NetWins())
CURVES["win-pairs"] = released(WinPairs())
CURVES["perturbed likelihood"] = perturbed  # type: ignore[assignment]
CURVES["ranking"] = without_privacy  # type: ignore[assignment]


def make_panels() -> list[Panel]:
    """One panel for each number of judges, and that of Cai and others."""
    unused = Setting(Pairs.UNORDERED, edge_factor=1.1)
    size = f"{ITEMS} objects, {MADE} comparisons"
    panels = [
        Panel(f"judges={n}", f"{n:,} judges, {size}", Voting(n), unused, tuple(LOOKS))  # type: ignore[arg-type]
        for n in JUDGES
    ]
    title = "1,000 judges, 16 objects, 5 comparisons"
    panels.append(Panel("top quarter", title, TopQuarter(), unused, tuple(LOOKS)))  # type: ignore[arg-type]
    return panels


def run(panels: Sequence[Panel], options: Options) -> list[dict[str, Any]]:
    """Run, print, and return a row for each panel, epsilon and curve: root mean square errors."""
    rows = summarise(run_panels(NAME, panels, options), panels)
    objects = {panel.name: panel.make.items for panel in panels}  # type: ignore[attr-defined]
    for row in rows:
        row["error"] /= np.sqrt(objects[row["panel"]])
        row["standard_error"] /= np.sqrt(objects[row["panel"]])
    headings = {name: name for name in ("panel", "epsilon", "curve", "error", "trials")}
    print_table(f"{NAME}: error of a strength, in logits", rows, headings)
    return rows


def draw(panels: Sequence[Panel], rows: Sequence[dict[str, Any]]) -> Figure:
    """Draw one set of axes for each panel."""
    figure = Figure(figsize=(5.6 * len(panels), 5.2), layout="constrained")
    grid = figure.subplots(1, len(panels), sharey=True, squeeze=False).ravel()
    for axes, panel in zip(grid, panels, strict=True):
        here = [row for row in rows if row["panel"] == panel.name]
        for curve, look in LOOKS.items():
            line = sorted((r for r in here if r["curve"] == curve), key=lambda r: r["epsilon"])
            x = np.array([row["epsilon"] for row in line])
            y = np.array([row["error"] for row in line])
            axes.plot(x, y, **{"linewidth": 1.5, "markersize": 4.5, **look})
            if "marker" in look:  # a band of two standard errors around what was released
                band = 2 * np.array([row["standard_error"] for row in line])
                axes.fill_between(x, y - band, y + band, color=look["color"], alpha=0.12, lw=0)
        axes.set_xscale("log")
        axes.set_yscale("log")
        plain_ticks(axes.yaxis, (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0))
        ticks = {row["epsilon"] for row in here}
        plain_ticks(axes.xaxis, [e for e in (0.01, 0.1, 1.0, 2.0, 5.0) if e in ticks])
        style(
            axes, f"{panel.title} ({describe_trials(here)})",
            "epsilon for each judge (smaller = more private)",
            "root mean square error of a strength (logits)",
        )  # fmt: skip
    handles, labels = grid[0].get_legend_handles_labels()
    figure.suptitle("Private ranking from comparisons", x=0.01, ha="left", fontsize=13)
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=9, frameon=False)
    return figure


def main() -> None:
    options = read_options(__doc__ or "", trials=100, quick_trials=2)
    panels = make_panels()
    rows = run(panels, options)
    write_csv(options.out / f"{NAME}.csv", rows)
    save_figure(draw(panels, rows), options.out / f"{NAME}.png")


if __name__ == "__main__":
    main()
