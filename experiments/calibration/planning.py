"""Predicted against simulated error of planned releases, setting by setting.

Run with ``python experiments/calibration/planning.py [--minutes 10] [--cache results/planning.csv]
[--fit]``.

Simulates (through the real wall and the real estimator, without standard errors) until the
minutes are over, adds each run to the cache, and prints for every setting the simulated and the
predicted root mean square error.
A second call goes on where the first stopped. ``--fit`` prints the constants of
``discreet.planning.forecast`` that fit the cache best. ``--booklets`` simulates studies in booklets
instead, 8 minutes, without a cache.
"""

import argparse
import csv
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

from discreet.api.calibrating import fit
from discreet.planning.forecast import (
    THIN_ITEMS,
    predict_rmse,
    predict_rmse_without_privacy,
    predict_square,
    predict_square_without_noise,
)
from discreet.planning.study import Setting, check_setting, draw_study, released_error, summarise

# persons, items, answers per person
DESIGNS = [
    (200, 5, 5),
    (1000, 5, 5),
    (500, 10, 10),
    (300, 25, 25),
    (2000, 20, 8),
    (1000, 50, 50),
    (1000, 50, 20),
    (5000, 100, 30),
    (3000, 100, 100),
    (5000, 10, 4),
    (10_000, 30, 30),
    (2000, 200, 60),
    (20_000, 200, 20),
    (100_000, 10, 10),
    (100_000, 50, 15),
    (20_000, 500, 50),
    (100_000, 500, 20),
]
EPSILONS = (0.05, 0.2, 0.5, 1.0, 3.0, 10.0)
MAIN = ("margins", "pairs")
OTHERS = ("laplace-margins", "sparse-pairs", "laplace-pairs", "randomized-response")
OTHER_DESIGNS = {(500, 10, 10), (1000, 50, 20), (10_000, 30, 30), (2000, 20, 8)}
OTHER_EPSILONS = (0.2, 1.0, 3.0, 10.0)
ERRORS_WANTED = 900
"""Squared errors per setting: the simulated value is then good to about 2.5%."""
MOST_RUNS = 120


def settings_of(design):
    names = MAIN + OTHERS if design in OTHER_DESIGNS else MAIN
    persons, items, answers = design
    return [
        Setting(persons, items, answers, epsilon, mechanism=name)
        for name in names
        for epsilon in (EPSILONS if name in MAIN else OTHER_EPSILONS)
    ]


def runs_wanted(items):
    return int(np.clip(np.ceil(ERRORS_WANTED / (items - 1)), 2, MOST_RUNS))


def load(cache):
    found = defaultdict(list)
    if cache.exists():
        with cache.open() as file:
            for row in csv.DictReader(file):
                design = tuple(int(row[name]) for name in ("persons", "items", "answers"))
                key = (*design, row["mechanism"], float(row["epsilon"]))
                found[key].append(float(row["square"]))
    return found


def simulate_more(cache, minutes):
    """Add runs, designs with the least time so far first, until the time is over."""
    rng = np.random.default_rng()
    end = time.monotonic() + 60 * minutes
    cache.parent.mkdir(parents=True, exist_ok=True)
    fresh = not cache.exists()
    spent = defaultdict(float)
    with cache.open("a") as file:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(["persons", "items", "answers", "mechanism", "epsilon", "square"])
        while time.monotonic() < end:
            done = load(cache)
            open_designs = [design for design in DESIGNS if share_done(done, design) < 1]
            if not open_designs:
                return
            least = min(open_designs, key=lambda design: (spent[design], design))
            start = time.monotonic()
            writer.writerows(one_study(least, rng))
            file.flush()
            spent[least] += time.monotonic() - start


def share_done(done, design):
    setting = settings_of(design)[0]
    key = (*design, setting.mechanism, setting.epsilon)
    return len(done.get(key, ())) / runs_wanted(design[1])


def one_study(design, rng):
    study = None
    for setting in settings_of(design):
        if study is None:
            study = draw_study(setting, rng)
            refined = estimate_error(study)
            yield (*design, "none", 0.0, refined)
        square = released_error(study, setting, int(rng.integers(2**62)))
        yield (*design, setting.mechanism, setting.epsilon, square)


def estimate_error(study):
    estimate = fit(study.responses, method="refined", standard_errors=False)
    known = np.isfinite(estimate.difficulty)
    truth = study.difficulty[known] - study.difficulty[known].mean()
    found = estimate.difficulty[known] - estimate.difficulty[known].mean()
    return float(np.mean((found - truth) ** 2))


def compare(cache):
    """Return (mechanism, design, epsilon, runs, simulated, raw, predicted) for every setting."""
    rows = []
    for (*design, name, epsilon), squares in load(cache).items():
        if name == "none":
            setting = Setting(*design, epsilon=1.0)
            raw = predict_square_without_noise(setting) ** 0.5
            predicted = predict_rmse_without_privacy(setting)
        else:
            setting = Setting(*design, epsilon=epsilon, mechanism=name)
            raw, predicted = predict_square(setting) ** 0.5, predict_rmse(setting)
        simulated = summarise(squares).rmse
        rows.append((name, tuple(design), epsilon, len(squares), simulated, raw, predicted))
    return sorted(rows)


def print_table(rows):
    for name, design, epsilon, runs, simulated, _, predicted in rows:
        persons, items, answers = design
        print(
            f"{name:20} {persons:7} x {items:3}, {answers:3} answers, epsilon {epsilon:5}: "
            f"simulated {simulated:.4f} ({runs:3} runs) predicted {predicted:.4f} "
            f"ratio {predicted / simulated:.3f}"
        )
    for name in ("none", *MAIN, *OTHERS):
        ratios = np.array([row[6] / row[4] for row in rows if row[0] == name and row[3] > 1])
        if len(ratios):
            limit = 0.1 if name in MAIN else 0.15
            good = int((abs(ratios - 1) <= limit).sum())
            print(
                f"{name:20} {good} of {len(ratios)} settings within {limit:.0%}; ratio "
                f"{ratios.min():.2f} to {ratios.max():.2f}, mean absolute "
                f"{np.mean(abs(ratios - 1)):.1%}"
            )


def print_constants(rows):
    """Least squares for the factor in ``analysis.planning.predict``, one family at a time."""
    for family in MAIN:
        features, wanted, weights = [], [], []
        for name, (_, items, _), _, runs, simulated, raw, _ in rows:
            if name != family:
                continue
            lost = min(raw / ((items - 1) / items) ** 0.5, 1.0)
            thinned = 1 - min(1.0, THIN_ITEMS / items)
            features.append([1, lost, lost**2, lost**3, thinned * (1 - lost)])
            wanted.append(np.log(simulated / raw))
            # Scatter of the simulation, and 3% that no smooth factor can follow.
            weights.append((1 / (2 * runs * (items - 1)) + 0.03**2) ** -0.5)
        scale = np.array(weights)
        found = np.linalg.lstsq(np.array(features) * scale[:, None], wanted * scale, rcond=None)[0]
        print(family, tuple(found.round(3).tolist()))


# mechanism, persons, items, answers per person, epsilon
BOOKLETS = [
    ("margins", 5000, 60, 20, 1.0),
    ("margins", 10_000, 120, 30, 0.5),
    ("margins", 4000, 60, 12, 2.0),
    ("margins", 8000, 80, 20, 2.0),
    ("margins", 3000, 40, 16, 0.5),
    ("margins", 2000, 30, 20, 3.0),
    ("margins", 20_000, 120, 24, 1.0),
    ("pairs", 10_000, 120, 30, 0.5),
    ("pairs", 8000, 80, 20, 1.0),
    ("pairs", 2000, 40, 20, 1.0),
    ("pairs", 20_000, 120, 24, 1.0),
]
FRESH_BOOKLETS = [
    ("margins", 6000, 48, 16, 1.0),
    ("margins", 3000, 36, 18, 2.0),
    ("margins", 12_000, 90, 30, 1.0),
    ("margins", 1500, 24, 12, 1.0),
    ("margins", 6000, 70, 20, 4.0),
    ("pairs", 6000, 48, 16, 1.0),
    ("pairs", 3000, 36, 18, 2.0),
    ("pairs", 12_000, 90, 30, 0.5),
]
"""Nothing was fitted to these."""


def print_booklets():
    """Print predicted and simulated errors of studies in booklets."""
    rng = np.random.default_rng(11)
    for name, *design, epsilon in BOOKLETS + FRESH_BOOKLETS:
        setting = Setting(*design, epsilon, mechanism=name, design="booklets")
        found = check_setting(setting, runs=max(12, 1500 // design[1]), rng=rng)
        predicted = predict_rmse(setting)
        print(
            f"{name:8} {design} epsilon {epsilon:g}: simulated {found.rmse:.3f} "
            f"(+- {found.uncertainty:.3f}), predicted {predicted:.3f}, "
            f"{100 * (predicted / found.rmse - 1):+.0f}%",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--cache", type=Path, default=Path("results/planning.csv"))
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--booklets", action="store_true", help="these and nothing else")
    options = parser.parse_args()
    if options.booklets:
        print_booklets()
        return
    simulate_more(options.cache, options.minutes)
    rows = compare(options.cache)
    print_table(rows)
    if options.fit:
        print_constants(rows)


if __name__ == "__main__":
    main()
