"""Make the pictures of the documents anew: ``make pictures``, or ``python -m tools.pictures NAME``.

In: the bundled data, and the commands of the pages themselves. Out: ``docs/images/*.png``. Drawn
pictures carry the numbers that they show. Pages are photographed by Chromium; pictures of the
studio are made by `tools.shots`.

Theory is simulated anew on small grids. Measured results take up to 41 minutes each, so
``python -m tools.pictures results-lsat`` takes the picture that ``python -m experiments lsat`` left
in ``results/`` (`SCRIPTS` names the other scripts). These pictures carry a digest of what they
show: their table in ``experiments/tables.md``, or their script. ``python -m tools.pictures --old``
names every picture that is older than what it shows, with the command that makes it; a test does
the same.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo

import discreet
from discreet import analysis, figures
from discreet.cli import main as run_command
from discreet.datasets import WELLBEING_ANSWERS, WELLBEING_TEXTS
from discreet.privacy.noise import ExactNoise
from discreet.secure import SeededSource, SystemSource

__all__ = ["DRAWN", "SHOTS", "draw", "list_numbers", "list_old", "numbers_of"]

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
IMAGES = DOCS / "images"
BLOCK = re.compile(r"^```(?P<language>python|console)\n(?P<code>.*?)^```$", re.M | re.S)
CHROMIUM = "chromium"
SWITCHES = "--headless --no-sandbox --disable-gpu --hide-scrollbars --disable-background-networking"


Numbers = dict[str, list[float]]
Drawing = tuple[Figure, Numbers]

BLUE, VERMILLION, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "0.35"
TABLES = ROOT / "experiments" / "tables.md"
PANELS = {"figure-1-few": (25, 1000), "figure-1-many": (200, 1000)}
"""Items and persons of the panels of Figure 1 that the first page shows."""
CURVES = {
    "all zero": ("answering zero for every item", "black", ":"),
    "published sparse": ("the paper, sparse graph", GREEN, "--^"),
    "published Gauss": ("the paper, all pairs", BLUE, "--o"),
    "margins": ("discreet", VERMILLION, "-s"),
    "non-private": ("without privacy", GREY, "-."),
}


def new_axes(height: float) -> Any:
    """Return axes for a picture of 4 inches, which a page shows 400 pixels wide."""
    with mpl.rc_context({"font.size": 9}):
        return Figure(figsize=(4.0, height), layout="constrained").subplots()


def finish(axes: Any, title: str, x_label: str) -> Figure:
    """Write title and legend, and return the figure."""
    figure: Figure = axes.figure
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    axes.set_title(title, loc="left", fontsize="large")
    axes.set_xlabel(x_label)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def draw_wellbeing() -> Drawing:
    """Draw persons and thresholds of the bundled questionnaire on one scale."""
    answers = discreet.datasets.wellbeing()
    estimate = discreet.fit(answers)
    scores = discreet.score(answers, estimate)
    with mpl.rc_context({"font.size": 9}):
        axes = figures.wright_plot(estimate, scores, ax=new_axes(4.8))
    left, right = axes.get_xlim()
    axes.set_xlim(left, 1.5 * right)  # room for names
    axes.set_ylim(np.min(estimate.thresholds) - 0.4, scores.ability.max() + 0.4)
    title = f"{answers.n_persons} persons, {answers.n_items} items"
    axes.set_title(title, loc="left", fontsize="large")
    return axes.figure, list_difficulties(estimate)


def draw_private() -> Drawing:
    """Draw its difficulties twice, exact and released at epsilon 1, with 95% intervals."""
    answers = discreet.datasets.wellbeing()
    exact = discreet.fit(answers)
    released = discreet.release(
        answers,
        epsilon=1.0,
        delta=1e-6,
        items=dict.fromkeys(WELLBEING_TEXTS, len(WELLBEING_ANSWERS) - 1),
        design="random",
        looked=True,
        noise=ExactNoise(SeededSource(1)),
    ).estimate
    axes, order = new_axes(4.8), np.argsort(exact.difficulty)
    row, look = np.arange(len(order)), {"ms": 4.5, "lw": 1.4}
    for estimate, label, colour, sign, up in (
        (exact, "exact, confidential", BLUE, "o", 0.17),
        (released, "private, epsilon 1", VERMILLION, "s", -0.17),
    ):
        value, reach = estimate.difficulty[order], 1.96 * estimate.se[order]
        axes.errorbar(value, row + up, xerr=reach, fmt=sign, color=colour, label=label, **look)
    axes.set_yticks(row, [exact.items[i] for i in order])
    private = {f"{item}, released": row for item, row in list_difficulties(released).items()}
    figure = finish(axes, "Exact and private", "difficulty in logits, 95% intervals")
    return figure, list_difficulties(exact) | private


def list_difficulties(estimate: discreet.Estimate) -> Numbers:
    """Return difficulty and standard error of every item."""
    rows = zip(estimate.items, estimate.difficulty, estimate.se, strict=True)
    return {item: [round(float(b), 3), round(float(se), 3)] for item, b, se in rows}


def read_curves(items: int, persons: int) -> Numbers:
    """Return the curves of a panel: epsilons, then the typical error of one item at each."""
    text = TABLES.read_text(encoding="utf-8").partition("## Simulated answers\n")[2]
    rows = re.findall(r"^\| (.+) \|$", text.partition("\n## ")[0], re.M)
    cells = [row.split(" | ") for row in rows]
    curves = {"epsilon": [float(cell) for cell in cells[0][2:]]}
    for panel, curve, *errors in cells:
        if panel == f"simulated, m={items}, n={persons}" and curve in CURVES:
            curves[curve] = [round(float(error) / items**0.5, 3) for error in errors]
    return curves


def draw_figure_one(name: str) -> Drawing:
    """Draw one panel of the paper's Figure 1 with the curves that matter."""
    items, persons = PANELS[name]
    curves, axes = read_curves(items, persons), new_axes(3.6)
    epsilon = curves["epsilon"]
    for curve, (label, colour, style) in CURVES.items():
        axes.plot(epsilon, curves[curve], style, color=colour, label=label, ms=4.5)
    axes.set_xscale("log")
    axes.set_xticks(epsilon, [f"{one:g}" for one in epsilon])
    axes.minorticks_off()
    axes.set_ylim(0, 1.3)
    axes.set_ylabel("typical error of an item, logits")
    title = f"{items} items, {persons:,} persons"
    return finish(axes, title, "epsilon (smaller is more private)"), curves


# -- pictures of the pages ---------------------------------------------------------------------


def whole(axes: Any) -> Figure:
    """Return the figure of axes."""
    figure: Figure = axes.figure
    return figure


def draw_wright() -> Drawing:
    """Draw persons and items of the LSAT on one scale."""
    answers = discreet.datasets.lsat()
    estimate = discreet.fit(answers)
    return whole(
        figures.wright_plot(estimate, discreet.score(answers, estimate))
    ), list_difficulties(estimate)


def draw_curves() -> Drawing:
    """Draw the curves of two items beside the observed shares."""
    answers = discreet.datasets.lsat()
    estimate = discreet.fit(answers)
    scores = discreet.score(answers, estimate)
    axes = figures.curve_plot(estimate, ["Item1", "Item3"], responses=answers, scores=scores)
    return whole(axes), list_difficulties(estimate)


def draw_dif() -> Drawing:
    """Draw differences between two groups of persons, as the page on analysis makes them."""
    answers = discreet.datasets.lsat()
    groups = np.random.default_rng(0).choice(["a", "b", "c"], size=answers.n_persons)
    table = discreet.find_dif(answers, groups)
    shown: Numbers = {item: [] for item in answers.items}
    for item, difference in zip(table.item, table.difference, strict=True):
        shown[str(item)].append(round(float(difference), 3))
    return whole(figures.dif_plot(table, focal="a")), shown


def draw_fit() -> Drawing:
    """Draw infit and outfit of simulated items."""
    sim = discreet.simulate(persons=500, items=20, answered=0.7, rng=np.random.default_rng(1))
    estimate = discreet.fit(sim.responses)
    axes = figures.fit_plot(estimate, analysis.measure_fit(sim.responses, estimate))
    return whole(axes), list_difficulties(estimate)


def draw_items() -> Drawing:
    """Draw two pictures side by side, as the page for Python programs does."""
    cells = discreet.simulate(300, 6, rng=np.random.default_rng(1)).responses.to_array()
    answers = discreet.Responses.from_array(cells, items=[f"q{number}" for number in range(6)])
    estimate = discreet.fit(answers)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    figures.difficulty_plot(estimate, ax=left)
    figures.wright_plot(estimate, discreet.score(answers, estimate), ax=right)
    return figure, list_difficulties(estimate)


def draw_categories() -> Drawing:
    """Draw the category curves of an item of the bundled questionnaire."""
    answers = discreet.datasets.wellbeing()
    estimate = discreet.fit(answers)
    scores = discreet.score(answers, estimate)
    axes = figures.category_plot(estimate, "cheerful", responses=answers, scores=scores)
    return whole(axes), {"cheerful": [round(float(d), 3) for d in estimate.thresholds[0]]}


def draw_thresholds() -> Drawing:
    """Draw all thresholds of the bundled questionnaire."""
    estimate = discreet.fit(discreet.datasets.wellbeing())
    return whole(figures.threshold_plot(estimate)), list_difficulties(estimate)


def draw_residuals() -> Drawing:
    """Draw the errors of three mechanisms, and the paper's, in every cell that was measured."""
    with (ROOT / "experiments" / "calibration" / "residuals.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = [f"{row['cell']}, ε {float(row['epsilon']):g}" for row in rows]
    place = np.arange(len(rows))[::-1]
    figure, axes = plt.subplots(figsize=(8, 6.5), layout="constrained")
    shown: Numbers = {name: [] for name in names}
    markers = {
        "margins": "o", "totals": "s", "residuals": "D", "paper_dense": "x", "paper_sparse": "+"
    }  # fmt: skip
    for mechanism, marker in markers.items():
        error = [float(row[mechanism]) for row in rows]
        axes.plot(error, place, marker, label=mechanism.replace("paper_", "the paper's, "))
        for name, one in zip(names, error, strict=True):
            shown[name].append(one)
    axes.set_yticks(place, names)
    axes.set_xscale("log")
    axes.set_xticks(
        [0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1],
        labels=[".07", ".1", ".15", ".2", ".3", ".5", ".7", "1"],
    )
    axes.minorticks_off()
    axes.grid(visible=True, axis="both", alpha=0.3)
    axes.set_xlabel("root mean square error of a difficulty, logits")
    figure.legend(loc="outside upper center", ncols=5)
    return figure, shown


def draw_leaderboard() -> Drawing:
    """Draw the ranks that the models of the page may have."""
    page = (DOCS / "llm-evaluation.md").read_text(encoding="utf-8")
    code = next(block["code"] for block in BLOCK.finditer(page) if block["language"] == "python")
    made: dict[str, Any] = {}
    with redirect_stdout(io.StringIO()):
        exec(code, made)  # noqa: S102 (a page of this repository)
    board = made["board"]
    place = np.arange(len(board.models))[::-1]
    figure, axes = plt.subplots(figsize=(8, 6), layout="constrained")
    colour = [f"C{tier % 10}" for tier in board.tier.tolist()]
    axes.hlines(place, board.rank_low, board.rank_high, colour, linewidth=4, alpha=0.5)
    axes.scatter(len(place) - place, place, c=colour, zorder=3)
    axes.set_yticks(place, [f"model {name}" for name in board.models])
    axes.set_xlabel("ranks that the model may have, all together 95%; points: order of measures")
    ranges = zip(board.rank_low.tolist(), board.rank_high.tolist(), strict=True)
    return figure, dict(zip(board.models, map(list, ranges), strict=True))


DRAWN: dict[str, Callable[[], Drawing]] = {
    "residuals": draw_residuals,
    "leaderboard": draw_leaderboard,
    "wellbeing": draw_wellbeing,
    "wellbeing-private": draw_private,
    **{name: partial(draw_figure_one, name) for name in PANELS},
    "wright": draw_wright,
    "curves": draw_curves,
    "dif": draw_dif,
    "fit": draw_fit,
    "items": draw_items,
    "categories": draw_categories,
    "thresholds": draw_thresholds,
}
"""Pictures that the library draws."""

SHOTS: dict[str, tuple[str, str, int, int]] = {
    "report": ("quickstart.md", "results/report.confidential.html", 1000, 820),
    "readers-page": ("quickstart.md", "published/report.html", 900, 820),
    "raters": ("raters.md", "results/report.confidential.html", 700, 1190),
    "steward-page": ("steward-workflow.md", "reading-1/report.html", 900, 660),
    "steward-correction": ("steward-workflow.md", "correction.html", 900, 620),
    "steward-spending": ("steward-workflow.md", "spending.html", 900, 680),
}
"""Pages: the document whose commands make it, its file, and how much of it is shown, in pixels."""

RESULTS = {
    "synthetic": "Simulated answers",
    "lsat": "LSAT",
    "films": "Film ratings",
    "ablation": "From Algorithm 2 to a release: error at nominal epsilon 1",
    "edge-probability": "Edge probability",
    "private-entrywise": "Largest error of any item",
    "high-privacy": "Epsilon 0.01",
    "graph-amplification": "Graph amplification",
    "steps": "Items with steps",
    "totals": "Private thresholds: error of totals and its alternatives",
    "random-pairing": "Random pairing",
    "comparisons": "Ranking from comparisons",
}
"""Measured results, and the table of ``experiments/tables.md`` that each of them shows."""
SCRIPTS = {
    "results-totals": (
        "python -m experiments.calibration.totals_alternatives normal draw",
        "totals_alternatives",
    )
}
"""Pictures that no script of ``experiments`` draws: the command, and the file that it writes."""
THEORY = ("entrywise", "topk", "fixed-items")
WIDTH, COLOURS = 1100, 64
"""What a picture of an experiment is reduced to."""


def draw(path: Path, name: str) -> None:
    """Draw a picture with its numbers in it."""
    figure, numbers = DRAWN[name]()
    # On the first page two pictures stand side by side, or on a phone one below the other.
    dpi = 200 if figure.get_figwidth() < 5 else 110
    figure.savefig(path, dpi=dpi, metadata={"Description": json.dumps(numbers)})
    plt.close(figure)


def list_numbers(name: str) -> Numbers:
    """Return the numbers that a picture should show now."""
    figure, numbers = DRAWN[name]()
    plt.close(figure)
    return numbers


def numbers_of(path: Path) -> Numbers:
    """Return the numbers that a picture carries."""
    with Image.open(path) as picture:
        numbers: Numbers = json.loads(picture.info["Description"])
    return numbers


def follow(page: str) -> None:
    """Do in this folder what a document says: its commands, and the Python before them."""
    text = (DOCS / page).read_text(encoding="utf-8")
    code = [block["code"] for block in BLOCK.finditer(text) if block["language"] == "python"]
    if page == "raters.md":
        exec(code[0], {})  # noqa: S102 (a page of this repository)
    for block in BLOCK.finditer(text):
        if block["language"] == "console":
            run(block["code"].replace("\\\n", " ").splitlines()[0].removeprefix("$ "))


def run(command: str) -> None:
    """Run a command of a document in this process, or by the shell; refusals are part of pages."""
    first, *arguments = shlex.split(command)
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        if first == "discreet":
            run_command(arguments)
        else:
            subprocess.run(command, shell=True, check=True)  # noqa: S602 (a page of this repository)


def shoot(page: Path, width: int, height: int, picture: Path) -> None:
    """Photograph the top of a page in few colours."""
    with tempfile.TemporaryDirectory() as profile:
        shot = Path(profile) / "shot.png"
        switches = [f"--user-data-dir={profile}/user", f"--window-size={width},{height}"]
        words = [CHROMIUM, *SWITCHES.split(), *switches, f"--screenshot={shot}", page.as_uri()]
        subprocess.run(words, check=True, capture_output=True)  # noqa: S603 (our own words)
        with Image.open(shot) as image:
            few = image.convert("RGB").convert("P", palette=Image.Palette.ADAPTIVE, colors=64)
            few.save(picture, optimize=True)


def fix_noise() -> None:
    """Draw the same noise every time, so that a picture changes only with what it shows."""
    words = SeededSource(1).words
    setattr(SystemSource, "words", lambda _, count, /: words(count))  # noqa: B010 (a method)


def shoot_pages(names: set[str]) -> None:
    """Follow the documents whose pages are wanted, and photograph these."""
    for document in dict.fromkeys(SHOTS[name][0] for name in SHOTS if name in names):
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            fix_noise()
            follow(document)
            for name, (page, file, width, height) in SHOTS.items():
                if page == document and name in names:
                    shoot(Path(file).resolve(), width, height, IMAGES / f"{name}.png")
                    print(name)


def name_experiment(name: str) -> str:
    """Return the name under which a script saves a picture of a result or of the theory."""
    plain = name.removeprefix("results-").replace("-", "_")
    return SCRIPTS[name][1] if name in SCRIPTS else plain


def digest_shown(name: str) -> str:
    """Return a digest of what a picture of an experiment shows: its table, or its script."""
    if name.startswith("theory"):
        shown = (ROOT / "experiments" / f"{name_experiment(name)}.py").read_text("utf-8")
    else:
        tables = (ROOT / "experiments" / "tables.md").read_text("utf-8")
        heading = f"## {RESULTS[name.removeprefix('results-')]}\n"
        shown = tables.partition(heading)[2].partition("\n## ")[0]
        if not shown:
            raise ValueError(f"experiments/tables.md has no section {heading.strip()!r}")
    return hashlib.sha256(shown.encode()).hexdigest()[:16]


def list_old() -> dict[str, str]:
    """Return the pictures of experiments that are older than what they show, and their commands."""
    names = [*(f"results-{name}" for name in RESULTS), *(f"theory-{name}" for name in THEORY)]
    old = {}
    for name in names:
        with Image.open(IMAGES / f"{name}.png") as picture:
            if picture.info.get("Shown") != digest_shown(name):
                script = SCRIPTS.get(name, (f"python -m experiments {name_experiment(name)}",))[0]
                measure = "" if name.startswith("theory") else f"{script}; "
                old[name] = f"{measure}python -m tools.pictures {name}"
    return old


def take_result(name: str, folder: Path) -> None:
    """Take the picture that an experiment drew, with a digest of what it shows."""
    with Image.open(folder / f"{name_experiment(name)}.png") as picture:
        height = round(picture.height * WIDTH / picture.width)
        small = picture.convert("RGB").resize((WIDTH, height), Image.Resampling.LANCZOS)
    few = small.convert("P", palette=Image.Palette.ADAPTIVE, colors=COLOURS)
    stamp(few, name)


def stamp(picture: Image.Image, name: str) -> None:
    """Write a picture with a digest of what it shows."""
    shown = PngInfo()
    shown.add_text("Shown", digest_shown(name))
    picture.save(IMAGES / f"{name}.png", optimize=True, pnginfo=shown)
    print(name)


def simulate_theory(names: set[str]) -> None:
    """Run the scripts of the theory on small grids, and take their pictures."""
    for name in sorted(names):
        with tempfile.TemporaryDirectory() as folder:
            module = f"experiments.{name_experiment(name)}"
            words = [sys.executable, "-m", module, "--quick", "--out", folder]
            subprocess.run(words, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)  # noqa: S603
            take_result(name, Path(folder))


def main() -> None:
    """Make all pictures, or those that are named; or name those that are old."""
    mpl.use("agg")
    theory = {f"theory-{name}" for name in THEORY}
    names = {word for word in sys.argv[1:] if word != "--old"} or {*DRAWN, *SHOTS, *theory}
    if "--old" not in sys.argv:
        for name in DRAWN:
            if name in names:
                draw(IMAGES / f"{name}.png", name)
                print(name)
        shoot_pages(names)
        simulate_theory(names & theory)
        for name in sorted(one for one in names if one.startswith("results-")):
            take_result(name, ROOT / "results")
    for name, command in list_old().items():
        print(f"{name} is older than what it shows. To make it: {command}")


if __name__ == "__main__":
    main()
