"""Severities of very many raters: time, memory and accuracy of a facets fit.

``python -m bench.raters`` fits 1.44 million ratings by 10,800 raters; ``--persons 720000 --raters
108000`` ten times as many. ``--items 5000 --raters 1 --marks 1 --answered 8`` has no severities:
many items with steps, few of them answered by each person. ``--repeat 100`` repeats a small study
and prints error, coverage and slopes; ``--effect 1`` gives persons strengths at single items. Each
person is rated by ``marks`` raters on all items.
"""

from __future__ import annotations

import argparse
import json
import resource
import time

import numpy as np

import discreet
from discreet.simulation import simulate_ratings


def measure(study: argparse.Namespace, seed: int) -> dict[str, float]:
    """Fit one simulated study; return its time, memory and accuracy."""
    sizes = {name: getattr(study, name) for name in ("steps", "marks", "answered")}
    drawn = simulate_ratings(
        study.persons,
        study.items,
        study.raters,
        rng=np.random.default_rng(seed),
        effect_sd=study.effect,
        **sizes,
    )
    ratings, thresholds, severity = drawn.ratings, drawn.thresholds, drawn.severity
    within = None if study.within == "none" else study.within
    wall, processor = time.perf_counter(), time.process_time()
    estimate = discreet.fit(ratings, within=within)
    facts = {
        "seconds": time.perf_counter() - wall,
        "processor_seconds": time.process_time() - processor,
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "ratings": ratings.n_ratings,
    }
    truth = thresholds - thresholds.mean(axis=1, keepdims=True)
    spacing = estimate.thresholds - estimate.thresholds.mean(axis=1, keepdims=True)
    usable = np.isfinite(spacing) & (estimate.thresholds.shape == truth.shape)
    facts["spacing_slope"] = (spacing * truth)[usable].sum() / (truth**2)[usable].sum()
    facts["threshold_rmse"] = float(np.sqrt(np.nanmean((estimate.thresholds - thresholds) ** 2)))
    facts["threshold_se"] = float(np.sqrt(np.nanmean(estimate.threshold_se**2)))
    if estimate.facets:
        facet = estimate.facets["rater"]
        error, interval = facet.measure - severity, facet.interval()
        inside = (interval[:, 0] < severity) & (severity < interval[:, 1])
        facts["rmse"] = float(np.sqrt(np.nanmean(error**2)))
        facts["coverage"] = float(inside[np.isfinite(error)].mean())
        facts["slope"] = float(np.nansum(facet.measure * severity) / (severity @ severity))
    return facts


def read_arguments() -> argparse.Namespace:
    """Return the size of the study."""
    parser = argparse.ArgumentParser(description=__doc__)
    sizes = {"persons": 72_000, "items": 5, "steps": 4, "raters": 10_800, "marks": 4}
    for name, size in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--answered", type=int, default=None, help="items per person (all)")
    parser.add_argument("--effect", type=float, default=0.0, help="SD of strengths at items")
    parser.add_argument("--within", default="auto", choices=["auto", "item", "none"])
    parser.add_argument("--repeat", type=int, default=1)
    return parser.parse_args()


def main() -> None:
    """Print the averages over repetitions (of errors the root mean square)."""
    study = read_arguments()
    runs = [measure(study, seed) for seed in range(study.repeat)]
    summary = {}
    for name in runs[0]:
        values = np.array([run[name] for run in runs])
        is_error = name in ("rmse", "threshold_rmse", "threshold_se")
        summary[name] = float(np.sqrt((values**2).mean()) if is_error else values.mean())
    print(json.dumps(vars(study) | {name: round(value, 4) for name, value in summary.items()}))


if __name__ == "__main__":
    main()
