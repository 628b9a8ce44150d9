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
    DensePairs,
    Mechanism,
    NoiseLaw,
    Public,
    RandomizedResponse,
    SparsePairs,
)
from discreet.responses import Responses
from discreet.secure import RandomSource

__all__ = ["Attack", "exact_cells", "make_attacks"]

Int64Array = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Rows = list[list[float]]

ANY = [1.0, 0.0, np.nan]


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

    One attack takes the two sets of answers that are farthest apart in the mechanism's own
    numbers. One sets answers against none, so that a zero without noise shows. One has more
    answers than the cap and shows a cap that is not enforced.
    """
    few = _prepare(mechanism, budget, source, items=4, cap=4)
    many = _prepare(mechanism, budget, source, items=6, cap=2)
    if isinstance(mechanism, SparsePairs) and mechanism.noise_for == "a random graph":
        mechanism = DensePairs()  # answers are chosen before the graph: every pair may be an edge
    over = _farthest(mechanism, [1.0, 0.0], *many)
    if budget.neighbours is Neighbours.ADD_REMOVE:
        return [
            _set_beside("the farthest answers", [_farthest(mechanism, ANY, *few)[0]], [], *few),
            _set_beside("more answers than the cap", [over[0]], [], *many),
        ]
    attacks = [_set_beside("more answers than the cap", [over[0]], [over[1]], *many)]
    if isinstance(mechanism, RandomizedResponse):
        ends = _farthest(mechanism, [1.0, 0.0], *few)  # it protects answers, not who gave them
    else:
        ends = _farthest(mechanism, ANY, *few)
        attacks.append(_set_beside("answers against none", [ends[0]], [[np.nan] * 4], *few))
    return [_set_beside("the farthest answers", [ends[0]], [ends[1]], *few), *attacks]


def _prepare(
    mechanism: AnyMechanism, budget: Budget, source: RandomSource, *, items: int, cap: int
) -> tuple[Public, Calibration]:
    persons = 2 if budget.neighbours is Neighbours.REPLACE_ONE else None
    names = tuple(f"item {i}" for i in range(items))
    public = Public(names, cap, budget.neighbours, persons)
    return public, mechanism.calibrate(public, budget, source)


def _set_beside(
    name: str, rows: Rows, others: Rows, public: Public, calibration: Calibration
) -> Attack:
    """Two data sets with one person in common, and the other one changed or gone."""
    common = [1.0, 0.0, *[np.nan] * (len(public.items) - 2)]
    data, neighbour = (
        Responses.from_array(np.array([common, *side]), items=public.items)
        for side in (rows, others)
    )
    return Attack(name, data, neighbour, public, calibration)


def _farthest(
    mechanism: AnyMechanism, answers: list[float], public: Public, calibration: Calibration
) -> tuple[list[float], list[float]]:
    """Try every two sets of answers; under add-remove, every one against none."""
    items = len(public.items)
    if isinstance(mechanism, RandomizedResponse):
        return [1.0, 0.0] * (items // 2), [0.0, 1.0] * (items // 2)
    rows = [list(row) for row in product(answers, repeat=items)]
    places = np.array([_place(row, mechanism, public, calibration) for row in rows])
    others = places if public.persons else np.zeros((1, places.shape[1]))
    # What noise has to cover: Euclidean length for Gaussian noise, L1 length for Laplace noise.
    power = 2 if any(law.family == "gaussian" for law in calibration.laws.values()) else 1
    apart = (np.abs(places[:, None] - others[None]) ** power).sum(axis=2)
    first, second = np.unravel_index(np.argmax(apart), apart.shape)
    return rows[int(first)], rows[int(second)]


def _place(
    row: list[float], mechanism: Mechanism, public: Public, calibration: Calibration
) -> FloatArray:
    """Return the exact numbers of one person, in units of their noise."""
    alone = Responses.from_array(np.array([row]), items=public.items)
    counts = count_pairs(alone, weighting=mechanism.weighting(public, calibration))
    cells = mechanism.cells(counts, calibration)
    return np.concatenate(
        [np.ravel(cells[name]) / float(calibration.laws[name].scale) for name in sorted(cells)]
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
