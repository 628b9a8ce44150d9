"""The paper's claims, each as a number measured from our own runs.

    python -m experiments.claims [RESULTS]

Reads the CSV files that the figures left in ``results/`` and says of every claim what was
measured and whether it holds. It also lists every point where a library mechanism is worse than a
published curve.
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

BASELINES = ("published Laplace", "published response")
LIBRARY = ("margins", "pairs", "sparse-pairs")
EDUCATION = ("lsat", "three_grades", "uci")
MODERATE = 1.0
"""The paper's "low-to-moderate privacy regime" starts at this epsilon."""

NOT_BETTER = 0.98
"""A ratio above this counts as "no better than": unbiased noise around the all-zero answer."""


@dataclass(frozen=True)
class Claim:
    """What the paper says, what was measured, and whether that agrees."""

    text: str
    measured: str
    holds: bool


class Errors:
    """Mean errors by panel, epsilon and curve."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._error = {
            (row["panel"], float(row["epsilon"]), row["curve"]): float(row["error"]) for row in rows
        }

    def __call__(self, panel: str, epsilon: float, curve: str) -> float:
        return self._error[panel, epsilon, curve]

    @property
    def cells(self) -> list[tuple[str, float]]:
        """Every panel and epsilon."""
        return sorted({key[:2] for key in self._error})

    def joined(self, other: Errors) -> Errors:
        """Return the errors of both."""
        both = Errors([])
        both._error = self._error | other._error
        return both

    def has(self, panel: str, epsilon: float, curve: str) -> bool:
        return (panel, epsilon, curve) in self._error


def gauss_beats_baselines(errors: Errors) -> Claim:
    """For epsilon >= 1, in every panel."""
    ratios = [
        errors(panel, epsilon, "published Gauss")
        / min(errors(panel, epsilon, name) for name in BASELINES)
        for panel, epsilon in errors.cells
        if epsilon >= MODERATE
    ]
    return Claim(
        "Gauss beats Laplace and randomized response for epsilon >= 1",
        f"error over that of the better baseline: at most {max(ratios):.2f}",
        max(ratios) < 1,
    )


def persons_help_gauss(errors: Errors, items: Sequence[int] = (25, 200)) -> Claim:
    """From 200 to 1000 persons at epsilon 1: a large gain for Gauss, little for the others."""

    def gain(m: int, curve: str) -> float:
        few, many = (errors(f"m={m}, n={n}", MODERATE, curve) for n in (200, 1000))
        return many / few

    gauss = {m: gain(m, "published Gauss") for m in items}
    others = {m: min(gain(m, name) for name in BASELINES) for m in items}
    measured = "; ".join(f"m={m}: Gauss x {gauss[m]:.2f}, others x {others[m]:.2f}" for m in items)
    return Claim(
        "five times the persons help Gauss and hardly help the baselines (epsilon 1)",
        measured,
        all(gauss[m] < 0.8 and gauss[m] < 0.8 * others[m] for m in items),
    )


def sparse_ratios(errors: Errors, keep: Callable[[str, float], bool]) -> list[float]:
    """Error of the published sparse mechanism over that of the dense one."""
    return [
        errors(*cell, "published sparse") / errors(*cell, "published Gauss")
        for cell in errors.cells
        if keep(*cell)
    ]


def sparse_is_worse_with_much_noise(errors: Errors) -> Claim:
    ratios = sparse_ratios(errors, lambda _, epsilon: epsilon <= 0.2)
    return Claim(
        "the sparse mechanism is worse than the dense one for epsilon <= 0.2",
        f"sparse over dense: at least {min(ratios):.2f}",
        min(ratios) > 1,
    )


def sparse_wins_with_many_items(errors: Errors) -> Claim:
    ratios = sparse_ratios(errors, lambda panel, e: panel.startswith("m=200") and e >= 2)
    return Claim(
        "the sparse mechanism is better for m = 200, epsilon >= 2",
        f"sparse over dense: at most {max(ratios):.2f}",
        max(ratios) < 1,
    )


def nothing_works_at_one_hundredth(errors: Errors) -> Claim:
    published = ("published Gauss", "published sparse", *BASELINES)
    ratios = [
        errors(panel, epsilon, name) / errors(panel, epsilon, "all zero")
        for panel, epsilon in errors.cells
        if epsilon == 0.01
        for name in published
        if errors.has(panel, epsilon, name)
    ]
    return Claim(
        "at epsilon 0.01 nothing published is better than answering zero",
        f"error over the all-zero error: {min(ratios):.3f} to {max(ratios):.1f}",
        min(ratios) > NOT_BETTER,
    )


def response_wins_only_at_one_hundredth(errors: Errors, panel: str) -> Claim:
    """Randomized response against the better of Gauss and Laplace."""

    def ratio(epsilon: float) -> float:
        others = (errors(panel, epsilon, f"published {name}") for name in ("Gauss", "Laplace"))
        return errors(panel, epsilon, "published response") / min(others)

    tiny, one = ratio(0.01), ratio(MODERATE)
    about_even = panel.startswith("uci")
    result = "is about even" if about_even else "loses"
    return Claim(
        f"{panel}: randomized response wins at 0.01 and {result} at 1",
        f"its error over the better of the others: {tiny:.2f} and {one:.2f}",
        tiny < 1 and (0.75 < one < 1.33 if about_even else one > 1),
    )  # fmt: skip


def dense_graph_for_small_epsilon(errors: Errors) -> Claim:
    """Compare the sparsest graph of the p0 study with all pairs."""
    sparsest, densest = "p0 = 1.1 log2(m)/m", "p0 = 1"
    small, large = (
        errors(sparsest, epsilon, "published sparse") / errors(densest, epsilon, "published sparse")
        for epsilon in (0.1, 5.0)
    )
    return Claim(
        "a larger p0 is better for small epsilon, a smaller p0 for large epsilon",
        f"sparsest over densest: {small:.2f} at 0.1, {large:.2f} at 5",
        small > 1 > large,
    )


def time_is_quadratic_in_items(rows: Sequence[Mapping[str, str]]) -> Claim:
    def slope(axis: str, name: str) -> float:
        part = [row for row in rows if row["axis"] == axis]
        x, y = ([float(row[column]) for row in part] for column in (axis, name))
        return fit_slope(x, y)[0]

    gauss = slope("items", "gauss"), slope("persons", "gauss")
    response = slope("items", "response"), slope("persons", "response")
    return Claim(
        "Gauss takes O(m^2), randomized response O(n m)",
        f"slopes in m and n: Gauss {gauss[0]:.2f}, {gauss[1]:.2f}; "
        f"response {response[0]:.2f}, {response[1]:.2f}",
        abs(gauss[0] - 2) < 0.4
        and abs(gauss[1]) < 0.3
        and all(abs(found - 1) < 0.3 for found in response),
    )


SYNTHETIC = (
    gauss_beats_baselines,
    persons_help_gauss,
    sparse_is_worse_with_much_noise,
    sparse_wins_with_many_items,
    nothing_works_at_one_hundredth,
)
FILMS = (gauss_beats_baselines, sparse_wins_with_many_items, nothing_works_at_one_hundredth)


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


def check_claims(folder: Path) -> list[Claim]:
    """Check every claim whose figure has been drawn."""
    claims = []
    for figure, checks in (("synthetic", SYNTHETIC), ("films", FILMS)):
        if rows := read(folder, figure):
            errors = Errors(rows)
            found = [check(errors) for check in checks]
            claims += [Claim(f"{figure}: {c.text}", c.measured, c.holds) for c in found]
    for figure in EDUCATION:
        if rows := read(folder, figure):
            claims.append(response_wins_only_at_one_hundredth(Errors(rows), rows[0]["panel"]))
    if rows := read(folder, "edge_probability"):
        claims.append(dense_graph_for_small_epsilon(Errors(rows)))
    if rows := read(folder, "time_complexity"):
        claims.append(time_is_quadratic_in_items(rows))
    return claims


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
    claims = check_claims(folder)
    if not claims:
        print(f"no figure has been drawn into {folder}; run: python -m experiments --quick")
        return 1
    lines = [
        {"claim": claim.text, "measured": claim.measured, "holds": "yes" if claim.holds else "NO"}
        for claim in claims
    ]
    print_table("The paper's claims", lines, {name: name for name in lines[0]})
    lost = [
        point
        for figure in ("synthetic", *EDUCATION, "films")
        for point in lost_points(figure, read(folder, f"{figure}_trials"))
    ]
    if lost:
        print_table("Where the library is worse", lost, {name: name for name in lost[0]})
    return 0 if all(claim.holds for claim in claims) else 1


if __name__ == "__main__":
    sys.exit(main())
