"""How many questions an adaptive session saves against a random order.

Run ``python -m experiments.calibration.adaptive [--persons 300] [--models 60]``. A bank of 2,000
questions with difficulties N(0, 1.5), models with abilities N(0, 1.5); both ways ask until the
standard error of the ability is at most 0.3 logits. Coverage is the share of abilities within 1.96
standard errors of the last estimate: stopping when the error looks small must not make it wrong.

With ``--models`` the bank is calibrated from that many models, as it is and shrunk
(``discreet.adaptive.shrink``): a session finds questions whose error brought them near the ability.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

import discreet
from discreet.adaptive import shrink, start

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


def ask(session, truth, rng, order=None, known=None):
    """Run a session; with an order its items are asked instead of the informative ones.

    ``known`` are the true difficulties, where those of the session are estimates.
    """
    known = known or session.calibration
    while session.item is not None:
        name = session.item if order is None else order[len(session.items)]
        chance = 1 / (1 + np.exp(known[name] - truth))
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


def compare_banks(models, persons=300, seed=0):
    """Return, for the bank as calibrated and for the shrunk one, slope of the error and coverage.

    The slope is that of error on ability: above 0 abilities come out too far from the middle.
    """
    rng = np.random.default_rng(seed)
    sim = discreet.simulate(
        models, ITEMS, ability=rng.normal(scale=SPREAD, size=models),
        difficulty=rng.normal(scale=SPREAD, size=ITEMS), rng=rng,
    )  # fmt: skip
    estimate = discreet.fit(sim.responses, method="refined")
    named = dict(zip(sim.responses.items, sim.difficulty, strict=True))
    middle = np.mean([named[item] for item in estimate.items])
    known = {item: named[item] - middle for item in estimate.items}
    truths = rng.normal(scale=SPREAD, size=persons)
    found = {}
    for name, bank in (("as calibrated", estimate), ("shrunk", shrink(estimate))):
        ended = [ask(start(bank, target_se=TARGET), truth, rng, known=known) for truth in truths]
        error = np.array([session.ability for session in ended]) - truths
        covered = np.abs(error) < 1.96 * np.array([session.se for session in ended])
        found[name] = (np.polyfit(truths, error, 1)[0], covered.mean())
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--persons", type=int, default=300)
    parser.add_argument("--models", type=int)
    asked = parser.parse_args()
    if asked.models is None:
        print(compare(asked.persons))
    else:
        for name, (slope, coverage) in compare_banks(asked.models, asked.persons).items():
            print(f"{name}: errors grow by {slope:+.3f} for each logit of ability; "
                  f"coverage {coverage:.3f}")  # fmt: skip
