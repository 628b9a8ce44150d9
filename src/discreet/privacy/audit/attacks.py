"""Attacks: neighbouring data sets that stretch a mechanism as far as it goes.

In: a mechanism and a budget. Out: pairs of made-up data sets with the calibration of their
release. Nothing here sees real answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from discreet.engines import count_pairs
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.mechanisms import (
    AnyMechanism,
    Calibration,
    Mechanism,
    NoiseLaw,
    Public,
    RandomizedResponse,
)
from discreet.responses import Responses
from discreet.secure import RandomSource

__all__ = ["Attack", "exact_cells", "make_attacks"]

Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Attack:
    """Two neighbouring data sets, and how they are released."""

    name: str
    data: Responses
    neighbour: Responses
    public: Public
    calibration: Calibration


def make_attacks(mechanism: AnyMechanism, budget: Budget, source: RandomSource) -> list[Attack]:
    """Build neighbouring data sets that stretch a mechanism: one person, empty surroundings.

    The other persons leave most counts at zero, so a zero that gets no noise shows. One attack
    takes the answers that move the mechanism's own numbers farthest. The other has more answers
    than the cap and shows a cap that is not enforced.
    """
    persons = 2 if budget.neighbours is Neighbours.REPLACE_ONE else None

    def attack(name: str, rows: list[list[int]], cap: int) -> Attack:
        items = tuple(f"item {i}" for i in range(len(rows[0])))
        public = Public(items, cap, budget.neighbours, persons)
        calibration = mechanism.calibrate(public, budget, source)
        tried = [_neighbours(name, row, public, calibration) for row in rows]
        return max(tried, key=lambda one: _distance(one, mechanism))

    patterns = [[1, *rest] for rest in product([0, 1], repeat=3) if not all(rest)]
    return [
        attack("the farthest answers", patterns, 4),
        attack("more answers than the cap", [[1, 1, 1, 0, 0, 0]], 2),
    ]


def _neighbours(name: str, person: list[int], public: Public, calibration: Calibration) -> Attack:
    """One person beside another: reversed, or left out."""
    other_person = [1.0, 0.0, *[np.nan] * (len(person) - 2)]
    changed = [[1 - answer for answer in person]] if public.persons else []
    data, neighbour = (
        Responses.from_array(np.array([other_person, *rows], dtype=float), items=public.items)
        for rows in ([person], changed)
    )
    return Attack(name, data, neighbour, public, calibration)


def _distance(attack: Attack, mechanism: AnyMechanism) -> float:
    """Say how far apart the exact numbers of the two data sets are, in units of their noise."""
    if isinstance(mechanism, RandomizedResponse):
        return 0.0
    return sum(
        float(np.sum(np.abs(one - other) ** (2 if law.family == "gaussian" else 1)))
        / float(law.scale) ** (2 if law.family == "gaussian" else 1)
        for law, one, other in exact_cells(attack, mechanism)
    )


def exact_cells(
    attack: Attack, mechanism: Mechanism
) -> list[tuple[NoiseLaw, Int64Array, Int64Array]]:
    """Every array of cells by name: its noise law, and its exact values on both sides."""
    calibration = attack.calibration
    weighting = mechanism.weighting(attack.public, calibration)
    first, second = (
        mechanism.cells(count_pairs(side, weighting=weighting), calibration)
        for side in (attack.data, attack.neighbour)
    )
    return [
        (calibration.laws[name], np.ravel(first[name]), np.ravel(second[name]))
        for name in sorted(first)
    ]
