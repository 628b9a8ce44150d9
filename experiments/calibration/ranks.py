"""Do statements about order hold, and how much do they say? Ranks and differences of releases.

Run ``python -m experiments.calibration.ranks [--reps 200] [--only margins] [--abilities skewed]
[--seed 1]`` with one BLAS thread. Difficulties (with steps, thresholds) and abilities are drawn
anew in every replication, answered, released with seeded noise and estimated; or, as "fit",
estimated without privacy. Abilities are normal; "skewed" ones are exponential, with the same mean
and spread. Shares come with their Monte Carlo standard error. Columns:

- root mean square of the errors of all differences, in standard errors: 1 where these are right;
  below 1 they are cautious, and statements hold more often than they say;
- slope of the estimates on the truth, over all items: below 1 they lie too close together;
- share of differences within their own 95% intervals, one by one;
- share of replications in which all differences lie within their simultaneous intervals; in which
  every true rank lies within its range; in which "surely" and "possibly in the top K" (K a sixth
  of the items) are right;
- as means, how many standard errors a difference needs: by Bonferroni's inequality over all pairs,
  for intervals, for ranks, for the top K;
- how many ranks an item may have, and how many items are possibly in the top K, by Bonferroni's
  inequality over all pairs and now.
"""

from __future__ import annotations

import argparse

import numpy as np

import discreet
from discreet.privacy.noise import ExactNoise
from discreet.results.differences import Bars, count_sure, find_differences, sort_out
from discreet.secure import SeededSource

LEVEL = 0.95
SETTINGS = {
    "fit": [(2000, 20, 20, 1.0), (5000, 60, 20, 1.0)],
    "margins": [(2000, 20, 20, 1.0), (5000, 60, 60, 1.0), (5000, 60, 20, 1.0), (5000, 60, 60, 0.3)],
    "pairs": [(2000, 20, 20, 1.0), (5000, 60, 60, 1.0), (5000, 60, 20, 1.0)],
    "totals": [(2000, 12, 12, 1.0), (2000, 12, 6, 1.0), (5000, 30, 30, 2.0)],
}
"""Persons, items, answers each, epsilon."""
STEPS = 4
ABILITIES = {"normal": None, "skewed": lambda rng, persons: rng.exponential(size=persons) - 1.0}


def release_study(mechanism, setting, abilities, rng):
    """Return a released estimate and the truth behind it."""
    persons, items, answers, epsilon = setting
    steps = STEPS if mechanism == "totals" else 1
    draw = ABILITIES[abilities]
    able = None if draw is None else draw(rng, persons)
    drawn = discreet.simulate(
        persons, items, answered=answers / items, rng=rng, steps=steps, ability=able
    )
    names = drawn.responses.items
    if mechanism == "fit":
        return discreet.fit(drawn.responses), drawn.difficulty - drawn.difficulty.mean()
    how = {"design": "complete" if answers == items else "random"} if steps > 1 else {}
    released = discreet.release(
        drawn.responses,
        discreet.Budget(epsilon, 1e-6),
        items=dict.fromkeys(names, steps) if steps > 1 else names,
        max_answers=answers,
        mechanism=mechanism,
        noise=ExactNoise(SeededSource(int(rng.integers(2**62)))),
        **how,
    )
    return released.estimate, drawn.difficulty - drawn.difficulty.mean()


def judge(estimate, truth):
    """Say whether each kind of statement holds, and how much it says."""
    known = find_differences(estimate)
    own, bars = truth[known.order], Bars(known, LEVEL)
    m, top = len(own), max(1, len(own) // 6)
    wide = known.exceeded((1 - LEVEL) / (m * (m - 1)))
    apart = (known.value[:, None] - known.value) - (own[:, None] - own)
    ranks = np.argsort(np.argsort(-own)) + 1
    above, below, _ = count_sure(known, bars.order)
    surely, possibly = sort_out(known, bars.top(top), top)
    before_above, before_below, _ = count_sure(known, wide)
    off = ~np.eye(m, dtype=bool)
    sizes = np.abs(apart[off] / known.errors()[off])
    return [
        float(np.mean(sizes**2)),
        float(known.value @ own / (own @ own)),
        float(np.mean(sizes <= known.exceeded((1 - LEVEL) / 2))),
        bool((np.abs(apart) <= bars.interval * known.errors()).all()),
        bool(((above < ranks) & (ranks <= m - below)).all()),
        bool((ranks[surely] <= top).all() and possibly[ranks <= top].all()),
        *(wide, bars.interval, bars.order, bars.top(top)),
        *((m - before_above - before_below).mean(), (m - above - below).mean()),
        *(sort_out(known, wide, top)[1].sum(), possibly.sum()),
    ]


COLUMNS = (
    *("error", "slope", "each", "differences", "ranks", "top"),
    *("Bonferroni", "intervals", "order", "top K"),
    *("ranks before", "ranks now", "possible before", "possible now"),
)
SHARES = slice(1, 6)


def show(rows):
    """Return means, and of slope and shares how far chance may have moved them."""
    means, spread = np.mean(rows, axis=0), np.std(rows, axis=0) / np.sqrt(len(rows))
    means[0] = np.sqrt(means[0])
    told = [f"{value:.3f}" for value in means]
    told[SHARES] = [f"{value:.3f}±{far:.3f}" for value, far in zip(means, spread, strict=True)][
        SHARES
    ]
    return " ".join(told)


def main() -> None:
    """Simulate and print one line for each setting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reps", type=int, default=200)
    parser.add_argument("--only", choices=SETTINGS)
    parser.add_argument("--abilities", choices=ABILITIES, default="normal")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    print("mechanism, persons, items, answers, epsilon | " + ", ".join(COLUMNS))
    for mechanism, settings in SETTINGS.items():
        for setting in settings:
            if asked.only not in (None, mechanism):
                continue
            rng = np.random.default_rng(asked.seed)
            rows = [
                judge(*release_study(mechanism, setting, asked.abilities, rng))
                for _ in range(asked.reps)
            ]
            print(f"{mechanism} {' '.join(map(str, setting))} | {show(rows)}", flush=True)


if __name__ == "__main__":
    main()
