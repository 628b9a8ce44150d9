"""Where an experiment leaves its numbers: a CSV, a picture and a table on the terminal."""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's colours, which people with colour-blindness tell apart."""

MARKERS = ("o", "s", "^", "D", "v", "P")


@dataclass(frozen=True)
class Options:
    """What every experiment lets the user choose."""

    trials: int
    quick: bool
    seed: int
    out: Path
    workers: int = 1
    ratings: Path | None = None
    only: str = ""
    panels: str = ""


def read_options(title: str, *, trials: int, quick_trials: int) -> Options:
    """Read ``--trials``, ``--quick``, ``--seed``, ``--out``, ``--workers`` and ``--ratings``."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--trials", type=int, help=f"default {trials}, quick {quick_trials}")
    parser.add_argument("--quick", action="store_true", help="smaller grid and fewer trials")
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1,
        help="processes for the privacy figures; default one for each core",
    )  # fmt: skip
    parser.add_argument(
        "--ratings", type=Path, help="MovieLens file for the films figure (see the README)"
    )
    parser.add_argument(
        "--only", default="", metavar="START",
        help="run only the curves whose name starts like this, for example 'published'",
    )  # fmt: skip
    parser.add_argument(
        "--panels", default="", metavar="START",
        help="run only the panels whose name starts like this, for example 'm=25'",
    )  # fmt: skip
    given = parser.parse_args()
    chosen = given.trials if given.trials is not None else (quick_trials if given.quick else trials)
    if chosen < 1:
        parser.error(f"--trials must be at least 1, found {chosen}")
    if given.workers < 1:
        parser.error(f"--workers must be at least 1, found {given.workers}")
    return Options(
        chosen, given.quick, given.seed, given.out, given.workers, given.ratings, given.only,
        given.panels,
    )  # fmt: skip


def write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write one line for each row, with the keys of the first as header."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows({key: _short(value) for key, value in row.items()} for row in rows)
    print(f"wrote {path}")


def save_figure(figure: Figure, path: Path) -> None:
    """Write the picture beside its CSV."""
    figure.savefig(path, dpi=160)
    print(f"wrote {path}")


def print_table(title: str, rows: Sequence[dict[str, Any]], columns: dict[str, str]) -> None:
    """Print some columns for reading, under the headings that ``columns`` gives them."""
    table = Table(title=title, title_justify="left")
    for heading in columns.values():
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*(_short(row[name]) for name in columns))
    console = Console()
    # A file or a pipe has no width: do not cut the table to that of an imagined terminal.
    (console if console.is_terminal else Console(width=200)).print(table)


def fit_slope(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Least squares of log y on log x: the slope and its intercept."""
    slope, intercept = np.polyfit(np.log(x), np.log(y), 1)
    return float(slope), float(intercept)


def style(axes: Any, title: str, xlabel: str, ylabel: str) -> None:
    """Title, axis labels and a light grid."""
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def plain_ticks(axis: Any, values: Sequence[float]) -> None:
    """Put plain numbers at these places of a logarithmic axis, and nothing between them."""
    axis.set_ticks(list(values), [f"{value:g}" for value in values])
    axis.set_ticks([], minor=True)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
