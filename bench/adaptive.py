"""How many questions an adaptive session saves against a random order.

Run ``python -m bench.adaptive [--persons 300]``. A bank of 2,000 questions with difficulties
N(0, 1.5), models with abilities N(0, 1.5); both ways ask until the standard error of the ability
is at most 0.3 logits. Coverage is the share of abilities within 1.96 standard errors of the last
estimate: stopping when the error looks small must not make it wrong.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from discreet.adaptive import start

ITEMS, SPREAD, TARGET = 2000, 1.5, 0.3


@dataclass(frozen=True)
class Comparison:
    """Mean number of questions, root mean square error and coverage, of both ways."""

    adaptive_items: float
    random_items: float
    adaptive_error: float
    random_error: float
    adaptive_coverage: float
    random_coverage: float

    def __str__(self):
        saved = 1 - self.adaptive_items / self.random_items
        return (
            f"questions until the standard error is {TARGET}: {self.adaptive_items:.1f} adaptive, "
            f"{self.random_items:.1f} in random order ({saved:.0%} saved)\n"
            f"root mean square error: {self.adaptive_error:.3f} and {self.random_error:.3f}; "
            f"coverage: {self.adaptive_coverage:.3f} and {self.random_coverage:.3f}"
        )


def ask(session, truth, rng, order=None):
    """Run a session; with an order its items are asked instead of the informative ones."""
    while session.item is not None:
        name = session.item if order is None else order[len(session.items)]
        chance = 1 / (1 + np.exp(session.calibration[name] - truth))
        session = session.answer(rng.random() < chance, name)
    return session


def compare(persons=300, seed=0):
    rng = np.random.default_rng(seed)
    bank = {f"q{k}": b for k, b in enumerate(rng.normal(scale=SPREAD, size=ITEMS))}
    rows = []
    for truth in rng.normal(scale=SPREAD, size=persons):
        order = rng.permutation(list(bank)).tolist()
        begin = start(bank, target_se=TARGET)
        for session in (ask(begin, truth, rng), ask(begin, truth, rng, order)):
            error = session.ability - truth
            rows.append((len(session.items), error**2, abs(error) < 1.96 * session.se))
    table = np.array(rows).reshape(persons, 2, 3).mean(axis=0)
    return Comparison(*table[:, 0], *np.sqrt(table[:, 1]), *table[:, 2])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--persons", type=int, default=300)
    print(compare(parser.parse_args().persons))
