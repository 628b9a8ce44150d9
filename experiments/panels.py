"""Panels of error against epsilon: run trials (resuming), summarise, print, draw.

A panel is a data set (drawn anew in every trial where it is random) and the curves to show.
Every finished trial is appended to ``<figure>_trials.csv`` at once, keyed by panel, settings,
seed, trial, epsilon and curve; a run that was interrupted, or asked for more, goes on from there.
Delete that file to start again, for example after a change of the library.
"""

from __future__ import annotations

import csv
import hashlib
import os
from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from time import monotonic
from typing import Any, Protocol
from zlib import crc32

import numpy as np
import numpy.typing as npt

from discreet.secure import SeededSource
from experiments.curves import (
    ANSWER_CURVES,
    CURVES,
    SHARED_NOISE,
    SPARSE_CURVES,
    Draws,
    Scene,
    Setting,
)
from experiments.results import Options, print_table, save_figure, write_csv

EPSILONS = (0.01, 0.05, 0.075, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 5.0, 7.5)
"""The paper's grid."""

QUICK_EPSILONS = (0.01, 0.1, 1.0, 2.0, 5.0)

KEY = ("panel", "settings", "seed", "trial", "epsilon", "curve")
FIELDS = (*KEY, "to_refined", "error")
Key = tuple[str, ...]
FloatArray = npt.NDArray[np.float64]

REFERENCES = ("non-private", "all zero")
"""Cost nothing, and every picture needs them."""


class Maker(Protocol):
    """Makes the data set of one trial; its repr names its settings."""

    def __call__(self, rng: np.random.Generator) -> Scene: ...


@dataclass(frozen=True)
class Panel:
    """One set of axes.

    Attributes
    ----------
    name
        For the CSV.
    title
        For the picture.
    make
        The data.
    setting
        What the published curves leave to the figure.
    curves
        Names in `CURVES`.
    epsilons
        Where the panel does not use the paper's grid.
    norm
        The length of the vector of errors: 2, or infinity for the largest error of any item.
    most_trials
        At most so many trials: with many items single trials scatter little.
    """

    name: str
    title: str
    make: Maker
    setting: Setting
    curves: tuple[str, ...]
    epsilons: tuple[float, ...] | None = None
    norm: float = 2
    most_trials: int | None = None

    def count_trials(self, asked: int) -> int:
        """Return how many of the trials that are asked for are run."""
        return asked if self.most_trials is None else min(asked, self.most_trials)

    @property
    def digest(self) -> str:
        """Short fingerprint of everything that the errors depend on, except the code."""
        text = repr((self.name, self.make, self.setting))
        if self.norm != 2:
            text += f"norm {self.norm}"
        return hashlib.sha256(text.encode()).hexdigest()[:10]


@dataclass(frozen=True)
class Block:
    """One trial of one panel: the epsilons and curves that are still missing."""

    panel: Panel
    seed: int
    trial: int
    cells: tuple[tuple[float, str], ...]


def choose_curves(*, sparse: bool = True, without: Sequence[str] = ()) -> tuple[str, ...]:
    """Names of all curves but those of the ablation, the sparse ones, or some others."""
    left_out = {*without, *(() if sparse else SPARSE_CURVES)}
    return tuple(name for name in ANSWER_CURVES if name not in left_out)


def run_block(block: Block) -> list[dict[str, Any]]:
    """Errors of every curve: one row each."""
    panel = block.panel
    scene = panel.make(np.random.default_rng(_entropy(block, "data")))
    rows = []
    for epsilon, name in block.cells:
        entropy = _entropy(block, SHARED_NOISE.get(name, name), f"{epsilon:g}")
        draws = Draws(np.random.default_rng(entropy), SeededSource(entropy))
        estimate = CURVES[name](scene, panel.setting, epsilon, draws)
        error = _distance(estimate, scene.reference, panel.norm)
        # A scene of comparisons has no refined estimate.
        to_refined = _distance(estimate, getattr(scene, "refined", None), panel.norm)
        key = (panel.name, panel.digest, block.seed, block.trial, f"{epsilon:g}", name)
        rows.append(dict(zip(FIELDS, (*key, to_refined, error), strict=True)))
    return rows


def _distance(estimate: FloatArray, reference: FloatArray | None, norm: float) -> str:
    """Return the distance as the store has it; nothing where there is no reference."""
    return "" if reference is None else f"{np.linalg.norm(estimate - reference, ord=norm):.6g}"


def _entropy(block: Block, *names: str) -> int:
    """Seed of one draw, the same whatever else is run."""
    words = [
        block.seed,
        block.trial,
        *(crc32(name.encode()) for name in (block.panel.name, *names)),
    ]
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0])


def run_panels(figure: str, panels: Sequence[Panel], options: Options) -> list[dict[str, Any]]:
    """Run what is missing, append it, and return all rows that were asked for."""
    store = options.out / f"{figure}_trials.csv"
    _check_store(store)
    epsilons = QUICK_EPSILONS if options.quick else EPSILONS
    done = {_key(row) for row in _read(store)}
    _execute(figure, list(_missing(panels, epsilons, options, done)), store, options.workers)
    found = {_key(row): row for row in _read(store)}
    asked = {
        key
        for panel in panels
        for trial in range(panel.count_trials(options.trials))
        for key in _keys(panel, epsilons, options.seed, trial)
    }
    return [row for key, row in found.items() if key in asked]


def _missing(
    panels: Sequence[Panel], epsilons: Sequence[float], options: Options, done: Container[Key]
) -> Iterator[Block]:
    """Blocks that are not in the store, trial by trial, so that all panels grow together."""
    for trial in range(options.trials):
        for panel in panels:
            is_over = trial >= panel.count_trials(options.trials)
            if is_over or not panel.name.startswith(options.panels):
                continue
            keys = _keys(panel, epsilons, options.seed, trial)
            left = [key for key in keys if key not in done and _is_asked(key[-1], options.only)]
            if left:
                cells = tuple((float(key[-2]), key[-1]) for key in left)
                yield Block(panel, options.seed, trial, cells)


def _is_asked(curve: str, start: str) -> bool:
    return curve.startswith(start) or curve in REFERENCES


def _keys(panel: Panel, epsilons: Sequence[float], seed: int, trial: int) -> list[Key]:
    return [
        (panel.name, panel.digest, str(seed), str(trial), f"{epsilon:g}", curve)
        for epsilon in panel.epsilons or epsilons
        for curve in panel.curves
    ]


def _key(row: dict[str, str]) -> Key:
    return tuple(row[name] for name in KEY)


def _read(store: Path) -> list[dict[str, str]]:
    if not store.exists():
        return []
    with store.open(newline="", encoding="utf-8") as file:
        # A run that was killed may have left half a line; it counts as not done.
        return [row for row in csv.DictReader(file) if row["error"]]


def _check_store(store: Path) -> None:
    """Refuse to go on from a file with other columns."""
    if store.exists():
        with store.open(newline="", encoding="utf-8") as file:
            header = next(csv.reader(file), [])
        if tuple(header) != FIELDS:
            raise SystemExit(f"{store} has other columns than this version writes; delete it.")


def _execute(figure: str, blocks: Sequence[Block], store: Path, workers: int) -> None:
    store.parent.mkdir(parents=True, exist_ok=True)
    started, shown = monotonic(), -np.inf
    for number, rows in enumerate(_results(blocks, workers), 1):
        _append(store, rows)
        now = monotonic()
        if now - shown > 10 or number == len(blocks):
            left = (now - started) / number * (len(blocks) - number) / 60
            print(f"{figure}: {number}/{len(blocks)} blocks, {left:.1f} min left", flush=True)
            shown = now


def _results(blocks: Sequence[Block], workers: int) -> Iterator[list[dict[str, Any]]]:
    if workers == 1 or len(blocks) < 2:
        yield from map(run_block, blocks)
        return
    # One thread of linear algebra a process; spawned ones read this when they start.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = "1"
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(run_block, block) for block in blocks]):
            yield future.result()


def _append(store: Path, rows: Sequence[dict[str, Any]]) -> None:
    fresh = not store.exists()
    torn = not fresh and not store.read_bytes().endswith(b"\n")
    with store.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=FIELDS)
        if fresh:
            writer.writeheader()
        if torn:  # half a line of a run that was killed
            file.write("\n")
        writer.writerows(rows)


def summarise(rows: Sequence[dict[str, Any]], panels: Sequence[Panel]) -> list[dict[str, Any]]:
    """Mean error of each curve at each epsilon, with its standard error and number of trials."""
    groups: dict[tuple[str, float, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["panel"], float(row["epsilon"]), row["curve"]].append(row)
    return [
        _line(panel.name, epsilon, curve, groups[panel.name, epsilon, curve])
        for panel in panels
        for epsilon in sorted({key[1] for key in groups if key[0] == panel.name})
        for curve in panel.curves
        if (panel.name, epsilon, curve) in groups
    ]


def _line(panel: str, epsilon: float, curve: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    errors = np.array([float(row["error"]) for row in rows])
    spread = float(errors.std(ddof=1) / np.sqrt(len(errors))) if len(errors) > 1 else float("nan")
    line = {
        "panel": panel,
        "epsilon": epsilon,
        "curve": curve,
        "error": float(errors.mean()),
        "standard_error": spread,
        "trials": len(errors),
    }
    to_refined = [float(row["to_refined"]) for row in rows if row.get("to_refined")]
    return {**line, "to_refined": float(np.mean(to_refined))} if to_refined else line


def draw_figure(figure: str, title: str, panels: Sequence[Panel], options: Options) -> None:
    """Run, print one table a panel, write the CSV and the picture."""
    from experiments.pictures import draw_panels

    summary = summarise(run_panels(figure, panels, options), panels)
    done = {row["panel"] for row in summary}
    panels = [panel for panel in panels if panel.name in done]
    for panel in panels:
        _print(panel, [row for row in summary if row["panel"] == panel.name])
    write_csv(options.out / f"{figure}.csv", summary)
    save_figure(draw_panels(title, panels, summary), options.out / f"{figure}.png")


def _print(panel: Panel, rows: Sequence[dict[str, Any]]) -> None:
    """One line for each curve: the names are long and the epsilons short."""
    epsilons = sorted({row["epsilon"] for row in rows})
    lines = []
    for curve in panel.curves:
        line = {row["epsilon"]: row for row in rows if row["curve"] == curve}
        if line:
            cells = {f"{e:g}": f"{line[e]['error']:.2f}" if e in line else "" for e in epsilons}
            trials = min(row["trials"] for row in line.values())
            lines.append({"curve": curve, **cells, "trials": trials})
    headings = {name: name for name in ("curve", *(f"{e:g}" for e in epsilons), "trials")}
    print_table(f"{panel.title}: error at each epsilon", lines, headings)


def describe_trials(rows: Sequence[dict[str, Any]]) -> str:
    """Say how many trials are behind a panel."""
    numbers = [row["trials"] for row in rows]
    if min(numbers) == max(numbers):
        return f"{max(numbers)} trials"
    return f"{min(numbers)} to {max(numbers)} trials"
