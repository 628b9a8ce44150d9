"""The paper's claims about its experiments, each checked against numbers of our own runs.

    python -m experiments.claims [FOLDER]

In: the CSV files of the figures, from ``experiments/measured`` unless a folder is named. Out: what
the paper says and where, what was measured, and whether that agrees. If the folder holds the single
trials of a full run too: every point where a library mechanism is worse than a published curve.

How a sentence is read:

* It is in our words, no stronger and no weaker than the paper's, and is checked on every panel that
  it speaks of. One panel that disagrees makes it a "no".
* A sentence that names an epsilon or a regime is checked there. One about a figure that names none
  is checked in the regime that the captions speak of, from epsilon 1 on. Where it says "generally",
  most points of the grid are enough.
* Words of degree have one number each, below, for all sentences alike. The paper gives none.

Not in the list: recommendations ("should be preferred", "performs decently well"), what follows
from formulas alone, and what is said of other papers.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.results import fit_slope, print_table

FloatArray = npt.NDArray[np.float64]
Cell = tuple[str, float]
Keep = Callable[[str, float], bool]

MEASURED = Path(__file__).with_name("measured")
GAUSS, SPARSE = "published Gauss", "published sparse"
LAPLACE, RESPONSE = "published Laplace", "published response"
BASELINES = (LAPLACE, RESPONSE)
PUBLISHED = (GAUSS, SPARSE, *BASELINES)
LIBRARY = ("margins", "pairs", "sparse-pairs")
TIMES = "time_complexity"
FIGURES = ("synthetic", "lsat", "three_grades", "uci", "films")

HIGH, MODERATE, VERY_LARGE = 0.01, 1.0, 5.0
"""Epsilons: "very high privacy"; where "low-to-moderate privacy" starts; "a very large epsilon"."""

INACCURATE = 0.98
""""Very inaccurate": the error is at least this share of that of answering zero."""

REASONABLE = 0.5
""""Reasonably accurate", "good": at most this share of the error of answering zero."""

ACCURATE = 2.0
""""Accurate": at most so many times the error without privacy."""

CLEAR, SAME = 0.9, 1.1
""""Significant", "substantial": at least 10% less error. "Almost identical": at most 10% more."""

FAST = 0.5
""""Very fast beside" something: at most this share of its time."""

FEW_ITEMS, MANY_ITEMS, FEW_PERSONS = 25, 100, 610
""""Small m" of films; "large m"; "small n": the paper says 500, and its films have 610 persons."""


class Errors:
    """Mean errors by panel, epsilon and curve."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self.values = {
            (row["panel"], float(row["epsilon"]), row["curve"]): float(row["error"]) for row in rows
        }

    def __call__(self, panel: str, epsilon: float, curve: str) -> float:
        return self.values[panel, epsilon, curve]

    @property
    def cells(self) -> list[Cell]:
        """Every panel and epsilon."""
        return sorted({key[:2] for key in self.values})

    def select(self, keep: Keep) -> list[Cell]:
        """Return the cells that are kept."""
        return [cell for cell in self.cells if keep(*cell)]

    def joined(self, other: Errors) -> Errors:
        """Return the errors of both."""
        both = Errors([])
        both.values = self.values | other.values
        return both


@dataclass(frozen=True)
class Measured:
    """What the figures gave: mean errors, and processor times."""

    errors: Errors
    times: Sequence[Mapping[str, str]] = ()


@dataclass(frozen=True)
class Found:
    """What was measured for a claim, and whether they agree."""

    measured: str
    holds: bool


@dataclass(frozen=True)
class Claim:
    """What the paper says, where, which figures show it, and how it is checked."""

    place: str
    text: str
    figures: tuple[str, ...]
    check: Callable[[Measured], Found]


# --- panels by their names ------------------------------------------------------------------------


def is_simulated(panel: str) -> bool:
    return ", n=" in panel and not is_ten(panel)


def is_ten(panel: str) -> bool:
    return panel.startswith("m=10, n=")


def is_film(panel: str) -> bool:
    return panel.startswith("m=") and ", n=" not in panel


def is_education(panel: str) -> bool:
    return panel in ("lsat", "three_grades", "uci_student")


def is_figure(panel: str) -> bool:
    """Say whether the panel is one of Figures 1 to 3."""
    return is_simulated(panel) or is_film(panel) or is_education(panel)


def count_items(panel: str) -> int:
    """Return the number of items in a panel's name; few on education data, which has none."""
    return int(panel.removeprefix("m=").split(",")[0]) if panel.startswith("m=") else 5


def has_many_items(panel: str) -> bool:
    return count_items(panel) >= MANY_ITEMS


def has_few_persons(panel: str) -> bool:
    return is_film(panel) or (is_simulated(panel) and int(panel.split("n=")[1]) <= FEW_PERSONS)


def from_one(is_of: Callable[[str], bool]) -> Keep:
    """Keep the panels of a kind, in the regime that the captions speak of."""
    return lambda panel, epsilon: is_of(panel) and epsilon >= MODERATE


def at(epsilon: float, is_of: Callable[[str], bool]) -> Keep:
    """Keep the panels of a kind at one epsilon."""
    return lambda panel, found: is_of(panel) and found == epsilon


def name_cells(cells: Iterable[Cell]) -> str:
    """Name panels, each with the range of its epsilons."""
    epsilons: dict[str, list[float]] = {}
    for panel, epsilon in cells:
        name = f"{count_items(panel)} films" if is_film(panel) else panel
        epsilons.setdefault(name, []).append(epsilon)
    return "; ".join(
        f"{panel} at {min(found):g}" + (f" to {max(found):g}" if len(found) > 1 else "")
        for panel, found in epsilons.items()
    )


# --- checks of errors -----------------------------------------------------------------------------


def compare(words: str, ratios: Mapping[Cell, float], agrees: Callable[[float], bool]) -> Found:
    """Check that every ratio agrees; say where they lie and which do not."""
    lost = [cell for cell, ratio in ratios.items() if not agrees(ratio)]
    ends = dict.fromkeys(f"{end:.3g}" for end in (min(ratios.values()), max(ratios.values())))
    where = f"; not {name_cells(lost)}" if lost else ""
    return Found(f"{words}: {' to '.join(ends)}{where}", not lost)


def all_below(curve: str, others: Sequence[str], keep: Keep, *, limit: float = 1.0,
              words: str) -> Callable[[Measured], Found]:  # fmt: skip
    """Check that a curve's error is below a share of that of every other curve."""

    def check(measured: Measured) -> Found:
        errors = measured.errors
        ratios = {
            cell: errors(*cell, curve) / min(errors(*cell, name) for name in others)
            for cell in errors.select(keep)
        }
        return compare(words, ratios, lambda ratio: ratio < limit)

    return check


def all_above(curves: Sequence[str], other: str, keep: Keep, *, limit: float,
              words: str) -> Callable[[Measured], Found]:  # fmt: skip
    """Check that every curve's error is above so many times that of another one."""

    def check(measured: Measured) -> Found:
        errors = measured.errors
        ratios = {
            cell: min(errors(*cell, name) for name in curves) / errors(*cell, other)
            for cell in errors.select(keep)
        }
        return compare(words, ratios, lambda ratio: ratio > limit)

    return check


def gain_from_persons(curves: Sequence[str], agrees: Callable[[float], bool],
                      words: str) -> Callable[[Measured], Found]:  # fmt: skip
    """Check the least error with 1000 persons over that with 200, on simulated answers."""

    def check(measured: Measured) -> Found:
        errors = measured.errors
        ratios = {
            (panel, epsilon): min(
                errors(panel, epsilon, name) / errors(panel.replace("1000", "200"), epsilon, name)
                for name in curves
            )
            for panel, epsilon in errors.select(from_one(lambda panel: panel.endswith(", n=1000")))
            if is_simulated(panel)
        }
        return compare(words, ratios, agrees)

    return check


def enough_persons_make_it_accurate(measured: Measured) -> Found:
    """Follow the error over that without privacy up to the most persons, at epsilon 1."""
    errors = measured.errors
    panels = [p for p, _ in errors.select(at(MODERATE, lambda panel: panel.startswith("n=")))]
    panels.sort(key=lambda panel: int(panel[2:]))
    ratios = {
        panel: errors(panel, MODERATE, GAUSS) / errors(panel, MODERATE, "non-private")
        for panel in panels
    }
    shown = ", ".join(f"{ratios[panel]:.1f} with {panel}" for panel in (panels[0], panels[-1]))
    return Found(
        f"largest error of 25 items over that without privacy: {shown}",
        ratios[panels[-1]] <= ACCURATE,
    )


def sparse_is_good(measured: Measured) -> Found:
    """Better than dense, and reasonably accurate."""
    keep = from_one(lambda panel: has_many_items(panel) and has_few_persons(panel))
    dense = all_below(SPARSE, [GAUSS], keep, words="sparse over dense")(measured)
    zero = all_below(SPARSE, ["all zero"], keep, limit=REASONABLE, words="over answering zero")
    good = zero(measured)
    return Found(f"{dense.measured}. {good.measured}", dense.holds and good.holds)


def sparse_fails_at_one_hundredth(measured: Measured) -> Found:
    """Compare the sparse variant with the worst of the other methods."""
    errors = measured.errors
    ratios = {
        cell: errors(*cell, SPARSE)
        / max(errors(*cell, name) for name in PUBLISHED if name != SPARSE)
        for cell in errors.select(at(HIGH, is_simulated))
    }
    return compare("sparse over the worst of the others", ratios, lambda ratio: ratio > 1 / CLEAR)


def differences_grow(measured: Measured) -> Found:
    """Compare largest over smallest error of the methods with that at the smallest epsilon."""
    errors = measured.errors

    def spread(cell: Cell, curves: Sequence[str]) -> float:
        found = [errors(*cell, name) for name in curves]
        return max(found) / min(found)

    def growth(curves: Sequence[str]) -> dict[Cell, float]:
        return {
            cell: spread(cell, curves) / spread((cell[0], HIGH), curves)
            for cell in errors.select(from_one(is_simulated))
        }

    words = "largest over smallest error, over the same at 0.01"
    found = compare(words, growth(PUBLISHED), lambda ratio: ratio > 1)
    dense = growth([name for name in PUBLISHED if name != SPARSE])
    return Found(f"{found.measured} (without sparse {min(dense.values()):.2f})", found.holds)


def epsilon_helps_gauss(measured: Measured) -> Found:
    errors = measured.errors
    last = max(epsilon for _, epsilon in errors.select(from_one(is_simulated)))
    ratios = {
        cell: errors(*cell, GAUSS) / errors(cell[0], MODERATE, GAUSS)
        for cell in errors.select(at(last, is_simulated))
    }
    return compare(f"error at {last:g} over that at 1", ratios, lambda ratio: ratio < CLEAR)


def items_cost_accuracy(measured: Measured) -> Found:
    """Compare 200 with 25 items, in the error of the figure."""
    errors = measured.errors
    ratios = {
        (panel, epsilon): min(
            errors(panel, epsilon, name) / errors(panel.replace("200,", "25,"), epsilon, name)
            for name in PUBLISHED
        )
        for panel, epsilon in errors.select(from_one(lambda panel: panel.startswith("m=200, n=")))
    }
    words = "least ratio of errors, 200 over 25 items (2.83 is the same error of an item)"
    return compare(words, ratios, lambda ratio: ratio > 1)


def both_beat_response(keep: Keep) -> Callable[[Measured], Found]:
    """Check that the worse of Gauss and Laplace is below randomized response."""

    def check(measured: Measured) -> Found:
        errors = measured.errors
        ratios = {
            cell: max(errors(*cell, GAUSS), errors(*cell, LAPLACE)) / errors(*cell, RESPONSE)
            for cell in errors.select(keep)
        }
        words = "the worse of Gauss and Laplace over randomized response"
        return compare(words, ratios, lambda ratio: ratio < 1)

    return check


def gauss_generally_beats_baselines(measured: Measured) -> Found:
    """At most points of the grid, and at all from epsilon 1 on."""
    errors = measured.errors
    cells = errors.select(lambda panel, _: is_film(panel))
    lost = [c for c in cells if errors(*c, GAUSS) >= min(errors(*c, name) for name in BASELINES)]
    where = f"; not {name_cells(lost)}" if lost else ""
    return Found(
        f"best at {len(cells) - len(lost)} of {len(cells)} points{where}",
        len(lost) < len(cells) / 2 and all(epsilon < MODERATE for _, epsilon in lost),
    )


def no_significant_gain(measured: Measured) -> Found:
    keep = from_one(lambda panel: is_film(panel) and count_items(panel) <= FEW_ITEMS)
    return all_above([SPARSE], GAUSS, keep, limit=CLEAR, words="sparse over dense")(measured)


# --- checks of the supplement ---------------------------------------------------------------------


def read_graphs(errors: Errors, epsilon: float) -> list[float]:
    """Errors of the sparse mechanism from the sparsest graph to the densest."""
    order = ("p0 = 1.1 log2(m)/m", "p0 = 3 log2(m)/m", "p0 = 0.5", "p0 = 1")
    found = {panel for panel, _ in errors.cells}
    return [errors(panel, epsilon, SPARSE) for panel in order if panel in found]


def is_graph(panel: str) -> bool:
    return panel.startswith("p0 = ")


def dense_graphs_win_at_small_epsilon(measured: Measured) -> Found:
    epsilons = sorted({e for _, e in measured.errors.select(lambda p, e: is_graph(p) and e <= 0.1)})
    steps = np.array([np.diff(read_graphs(measured.errors, epsilon)) for epsilon in epsilons])
    falls = int((steps < 0).sum())
    return Found(
        f"error falls in {falls} of {steps.size} steps to a larger p0, epsilon up to 0.1",
        falls > steps.size / 2,
    )


def sparse_graphs_win_at_large_epsilon(measured: Measured) -> Found:
    """Compare the better of two sparse graphs, and the sparsest alone, with all pairs."""
    errors = measured.errors
    epsilons = {e for _, e in errors.select(lambda p, e: is_graph(p) and e >= VERY_LARGE)}
    graphs = {epsilon: read_graphs(errors, epsilon) for epsilon in sorted(epsilons)}
    better = {("p0", e): min(found[:-1][:2]) / found[-1] for e, found in graphs.items()}
    sparsest = max(found[0] / found[-1] for found in graphs.values())
    words = "better of two sparse graphs over dense, epsilon 5 and more"
    found = compare(words, better, lambda ratio: ratio < 1)
    return Found(f"{found.measured} (the sparsest alone: up to {sparsest:.2f})", found.holds)


def privacy_takes_little_time(measured: Measured) -> Found:
    """Compare the time of noise and of flips with that of the non-private estimate."""
    shares = {
        name: [float(row[name]) / float(row["spectral"]) for row in measured.times]
        for name in ("gauss", "response")
    }
    gauss, response = shares["gauss"], shares["response"]
    return Found(
        f"time over that of the non-private estimate: Gauss {min(gauss):.2f} to {max(gauss):.2f}, "
        f"response {min(response):.2f} to {max(response):.2f}",
        max(*gauss, *response) < FAST,
    )


def time_is_quadratic_in_items(measured: Measured) -> Found:
    def slope(axis: str, name: str) -> float:
        part = [row for row in measured.times if row["axis"] == axis]
        x, y = ([float(row[column]) for row in part] for column in (axis, name))
        return fit_slope(x, y)[0]

    gauss = slope("items", "gauss"), slope("persons", "gauss")
    response = slope("items", "response"), slope("persons", "response")
    return Found(
        f"slopes in m and n: Gauss {gauss[0]:.2f}, {gauss[1]:.2f}; "
        f"response {response[0]:.2f}, {response[1]:.2f}",
        abs(gauss[0] - 2) < 0.4
        and abs(gauss[1]) < 0.3
        and all(abs(found - 1) < 0.3 for found in response),
    )


def gauss_is_faster_with_many_persons(measured: Measured) -> Found:
    part = [row for row in measured.times if row["axis"] == "persons"]
    ratios = [float(row["gauss"]) / float(row["response"]) for row in part]
    return Found(
        f"Gauss over response, 200 items: {ratios[0]:.2g} with {part[0]['persons']} persons, "
        f"{ratios[-1]:.2g} with {part[-1]['persons']}",
        max(ratios) < 1,
    )


# --- the list -------------------------------------------------------------------------------------

OVER_BASELINE = "Gauss over the better baseline"
OVER_ZERO = "error over that of answering zero"

CLAIMS = (
    Claim("Abstract",
          "in the low-to-moderate privacy regime the private spectral algorithm is significantly "
          "more accurate than the baselines", FIGURES,
          all_below(GAUSS, BASELINES, from_one(is_figure), limit=CLEAR, words=OVER_BASELINE)),
    Claim("Sections 1 and 7", "it outperforms the other approaches, especially there", FIGURES,
          all_below(GAUSS, BASELINES, from_one(is_figure), words=OVER_BASELINE)),
    Claim("Section 1",
          "with about 10 answers each, randomized response leaves no algorithm an accurate "
          "estimate", ("ten_items",),
          all_above([RESPONSE, "randomized-response"], "non-private", at(MODERATE, is_ten),
                    limit=ACCURATE, words="the better of the paper's and the debiased estimate "
                    "over no privacy, epsilon 1")),
    Claim("Section 4.2", "with many counts Gauss is more accurate than Laplace",
          ("synthetic", "films"),
          all_below(GAUSS, [LAPLACE], lambda panel, _: is_simulated(panel) or is_film(panel),
                    words="Gauss over Laplace, all epsilons")),
    Claim("Section 4.3", "with far more persons than items the private estimate is accurate",
          ("private_entrywise",), enough_persons_make_it_accurate),
    Claim("Section 4.3", "with many items and few persons noise can dominate the dense variant",
          ("synthetic",),
          all_above([GAUSS], "all zero", at(MODERATE, lambda panel: is_simulated(panel)
                    and has_many_items(panel) and has_few_persons(panel)), limit=REASONABLE,
                    words=f"{OVER_ZERO}, epsilon 1")),
    Claim("Sections 4.3 and 5.2",
          "with many items and few persons the sparse variant gives good accuracy at "
          "low-to-moderate privacy, and is the one to use", ("synthetic", "films"),
          sparse_is_good),
    Claim("Section 5.1",
          "with enough persons for the items, Gauss is almost identical to no privacy",
          ("synthetic",),
          all_below(GAUSS, ["non-private"], from_one(lambda panel: panel == "m=25, n=1000"),
                    limit=SAME, words="Gauss over no privacy")),
    Claim("Section 5.1", "at epsilon 0.01 all methods are very inaccurate", ("synthetic",),
          all_above(PUBLISHED, "all zero", at(HIGH, is_simulated), limit=INACCURATE,
                    words=f"least {OVER_ZERO}")),
    Claim("Section 5.1", "at epsilon 0.01 sparse is significantly worse than all others",
          ("synthetic",), sparse_fails_at_one_hundredth),
    Claim("Section 5.1",
          "the methods differ more in the low-to-moderate regime than at epsilon 0.01",
          ("synthetic",), differences_grow),
    Claim("Section 5.1", "Gauss improves significantly as epsilon grows", ("synthetic",),
          epsilon_helps_gauss),
    Claim("Section 5.1",
          "Laplace and randomized response need a very large n or a very large epsilon for a "
          "reasonably accurate estimate", ("synthetic",),
          all_above(BASELINES, "all zero", lambda panel, epsilon: is_simulated(panel)
                    and MODERATE <= epsilon < VERY_LARGE, limit=REASONABLE,
                    words=f"least {OVER_ZERO}, epsilon 1 to 2")),
    Claim("Figure 1 (a)", "with the same persons more items cost all methods accuracy",
          ("synthetic",), items_cost_accuracy),
    Claim("Figure 1", "Gauss outperforms the baselines at low-to-moderate privacy",
          ("synthetic",), all_below(GAUSS, BASELINES, from_one(is_simulated), words=OVER_BASELINE)),
    Claim("Figure 1", "from 200 to 1000 persons Gauss improves substantially",
          ("synthetic",),
          gain_from_persons([GAUSS], lambda ratio: ratio < CLEAR,
                            "error with 1000 over that with 200")),
    Claim("Figure 1 (b)", "from 200 to 1000 persons Laplace and randomized response gain little",
          ("synthetic",),
          gain_from_persons(BASELINES, lambda ratio: ratio > CLEAR,
                            "the same of the one that gains more")),
    Claim("Section 5.2, education", "at epsilon 0.01 all methods are very inaccurate",
          ("lsat", "three_grades", "uci"),
          all_above((GAUSS, *BASELINES), "all zero", at(HIGH, is_education), limit=INACCURATE,
                    words=f"least {OVER_ZERO}")),
    Claim("Section 5.2, education", "at epsilon 0.01 randomized response is the most accurate",
          ("lsat", "three_grades", "uci"),
          all_below(RESPONSE, (GAUSS, LAPLACE), at(HIGH, is_education),
                    words="response over the better of the others")),
    Claim("Section 5.2, education", "at epsilon 1 Gauss and Laplace outperform randomized response",
          ("lsat", "three_grades", "uci"), both_beat_response(at(MODERATE, is_education))),
    Claim("Figure 2", "Gauss and Laplace outperform randomized response at low-to-moderate privacy",
          ("lsat", "three_grades", "uci"), both_beat_response(from_one(is_education))),
    Claim("Section 5.2, education",
          "randomized response needs a very large epsilon for a reasonably accurate estimate",
          ("lsat", "three_grades", "uci"),
          all_above([RESPONSE], "all zero", lambda panel, epsilon: is_education(panel)
                    and epsilon < VERY_LARGE, limit=REASONABLE,
                    words=f"{OVER_ZERO} up to epsilon 2")),
    Claim("Section 5.2, films", "Gauss is superior to the other approaches", ("films",),
          all_below(GAUSS, BASELINES, from_one(is_film), words=OVER_BASELINE)),
    Claim("Figure 3", "Gauss generally outperforms the baselines, especially from epsilon 1 on",
          ("films",), gauss_generally_beats_baselines),
    Claim("Section 5.2, films", "sparse is more accurate than dense", ("films",),
          all_below(SPARSE, [GAUSS], from_one(is_film), words="sparse over dense")),
    Claim("Section 5.2, films; Figure 3 (b)",
          "with many items sparse is significantly better than dense", ("films",),
          all_below(SPARSE, [GAUSS], from_one(lambda panel: is_film(panel)
                    and has_many_items(panel)), limit=CLEAR, words="sparse over dense")),
    Claim("Figure 3 (a)", "with few items sparse does not improve significantly on dense",
          ("films",), no_significant_gain),
    Claim("Section 7", "Gauss gives accurate estimates", ("synthetic",),
          all_below(GAUSS, ["non-private"], from_one(is_simulated), limit=ACCURATE,
                    words="Gauss over no privacy")),
    Claim("Supplement, time", "Gauss takes O(m^2), randomized response O(n m)", (TIMES,),
          time_is_quadratic_in_items),
    Claim("Supplement, time", "both are very fast beside the non-private algorithm", (TIMES,),
          privacy_takes_little_time),
    Claim("Supplement, time", "with far more persons than items Gauss is the faster one", (TIMES,),
          gauss_is_faster_with_many_persons),
    Claim("Supplement, figure on p0", "at small epsilon a larger p0 is generally better",
          ("edge_probability",), dense_graphs_win_at_small_epsilon),
    Claim("Supplement, figure on p0", "at large epsilon a sparse graph is more accurate",
          ("edge_probability",), sparse_graphs_win_at_large_epsilon),
)  # fmt: skip


# --- where the library is worse -------------------------------------------------------------------


def lost_points(figure: str, trials: Sequence[Mapping[str, str]]) -> list[dict[str, Any]]:
    """Every place where a library mechanism is worse than the best published curve.

    Compared on the trials that both have, which share their data. A mean difference within two
    of its standard errors is not listed.
    """
    errors: dict[tuple[str, float], dict[str, dict[str, float]]] = {}
    for row in trials:
        if row["error"]:
            cell = errors.setdefault((row["panel"], float(row["epsilon"])), {})
            cell.setdefault(row["curve"], {})[row["trial"]] = float(row["error"])
    out = []
    for (panel, epsilon), curves in sorted(errors.items()):
        for curve in LIBRARY:
            best, ours, theirs = _best_rival(curves, curve)
            difference = ours - theirs
            if len(ours) > 1 and difference.mean() > 2 * difference.std(ddof=1) / len(ours) ** 0.5:
                out.append({
                    "figure": figure, "panel": panel, "epsilon": f"{epsilon:g}", "curve": curve,
                    "error": float(ours.mean()), "published": best,
                    "its error": float(theirs.mean()), "trials": len(ours),
                })  # fmt: skip
    return out


def _best_rival(
    curves: Mapping[str, Mapping[str, float]], curve: str
) -> tuple[str, FloatArray, FloatArray]:
    """Find the published curve with the least error on the trials of a curve of ours."""
    found: list[tuple[float, str, FloatArray, FloatArray]] = []
    for name in curves:
        shared = sorted(set(curves[name]) & set(curves.get(curve, {})))
        if name.startswith("published") and shared:
            ours, theirs = (np.array([curves[c][t] for t in shared]) for c in (curve, name))
            found.append((float(theirs.mean()), name, ours, theirs))
    if not found:
        return "", np.zeros(0), np.zeros(0)
    return min(found, key=lambda rival: rival[0])[1:]


def read(folder: Path, figure: str) -> list[dict[str, str]]:
    path = folder / f"{figure}.csv"
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_measured(folder: Path) -> tuple[Measured, set[str]]:
    """Return all numbers of a folder, and the figures that they are from."""
    names = {name for claim in CLAIMS for name in claim.figures}
    found = {name: rows for name in sorted(names) if (rows := read(folder, name))}
    rows = [
        # A sweep has a column of persons in place of panels.
        {"panel": f"n={row.get('persons')}", **row}
        for name, part in found.items()
        for row in part
        if name != TIMES
    ]
    return Measured(Errors(rows), found.get(TIMES, ())), set(found)


def check_claims(folder: Path) -> list[tuple[Claim, Found]]:
    """Check every claim whose figures have all been drawn."""
    measured, drawn = read_measured(folder)
    return [(claim, claim.check(measured)) for claim in CLAIMS if drawn.issuperset(claim.figures)]


def tabulate(found: Sequence[tuple[Claim, Found]]) -> list[dict[str, str]]:
    """One line for each claim."""
    return [
        {
            "place": claim.place,
            "claim": claim.text,
            "measured": result.measured,
            "holds": "yes" if result.holds else "no",
        }
        for claim, result in found
    ]


def main() -> int:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else MEASURED
    found = check_claims(folder)
    if not found:
        print(f"no figure has been drawn into {folder}; run: python -m experiments --quick")
        return 1
    lines = tabulate(found)
    held = sum(result.holds for _, result in found)
    title = f"The paper's claims about its experiments: {held} of {len(found)} hold"
    print_table(title, lines, {name: name for name in lines[0]})
    lost = [
        point
        for figure in FIGURES
        for point in lost_points(figure, read(folder, f"{figure}_trials"))
    ]
    if lost:
        print_table("Where the library is worse", lost, {name: name for name in lost[0]})
    return 0


if __name__ == "__main__":
    sys.exit(main())
