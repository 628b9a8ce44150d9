"""`residuals`: how items did around difficulties that are public already, in two rounds.

In: public parameters and a budget. Out: the noise of every block, what that spends, and the
centre of the second round, from noisy values of the first. Both rounds sum the same thing
(:mod:`discreet.answers.residual_sums`): the first around items of one difficulty (``rough``), the
second around what the first said (``residual``). Beside the first stand the numbers of persons by
form, answers and share right (``cells``) and, unless everybody answers everything, of each item's
takers (``answered``). With a public centre there is one round.

Sensitivity, squared, of each block: a person's residuals are at most C = 2^20 steps long, checked
after rounding, and nobody is in two cells. With q the cap and m the number of items

    replace-one   rough, residual (2 C)^2   cells 2   answered min(2 q, m)
    add-remove    rough, residual C^2       cells 1   answered q

The bound of ``residual`` holds for every centre, so the noise is fixed before the first round is
drawn. Proof: docs/privacy.md, docs/privacy-accounting.md; brute force:
tests/privacy/test_residuals_sensitivity.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.answers.pack import store_codes
from discreet.answers.residual_sums import (
    CENTRE_BITS,
    Centre,
    PersonCells,
    PersonCounts,
    ResidualSums,
)
from discreet.answers.responses import Responses
from discreet.choices import PlainMapping
from discreet.errors import BadUsage, OutOfReach
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.accounting.additive_noise import calibrate_blocks, round_ratio
from discreet.privacy.mechanisms.base import AdditiveMechanism
from discreet.privacy.mechanisms.totals import check_design, check_design_kept, list_columns
from discreet.privacy.protocol import (
    NoiseCalibration,
    NoiseLaw,
    NoiselessValues,
    Public,
    check_pair_matrix_size,
)
from discreet.privacy.wall import add_noise, add_round
from discreet.secure import RandomSource
from discreet.types import FloatArray, Int64Array

if TYPE_CHECKING:
    from discreet.privacy.attack_statistics import NeighbourCells, Statistic, Values

#: Steps of a person in a cell, and of an answer to an item.
GRID = 2**10

#: The block that is summed around the centre.
LAST = "residual"

#: Of the squared budget; the second round has the rest. They are constants: what a round spends
#: must not depend on what an earlier one released.
SHARES = {"rough": 0.15, "cells": 0.03, "answered": 0.03}

#: Where groups are compared the first round has all of them, and the second each alone.
GROUP_SHARES = {**SHARES, "rough": 0.06}

#: Longest contribution, as a share of a typical one.
CLIP = 0.8

#: Into how many kinds persons are divided, by their number of answers and by their share right.
COUNTS, SHARES_RIGHT = 5, 8

#: Centres from the first round stay within so many logits.
WIDEST_CENTRE = 4.0


@dataclass(frozen=True)
class Residuals(AdditiveMechanism):
    """Discrete Gaussian noise on residuals around a public centre, found in a first round or given.

    Attributes
    ----------
    answers
        Typical number of answers per person, known in advance; by default the cap.
    clip
        Longest contribution of a person, as a share of a typical one.
    """

    takes_forms: ClassVar[bool] = True
    takes_centre: ClassVar[bool] = True

    name: str = "residuals"
    answers: float | None = None
    clip: float = CLIP

    def __post_init__(self) -> None:
        if not 0 < self.clip < inf:
            raise BadUsage(f"clip must be positive, found {self.clip}")
        if self.answers is not None and not 2 <= self.answers < inf:
            raise BadUsage(
                f"answers, the typical number of answers per person, must be at least 2, "
                f"found {self.answers}"
            )

    def calibrate(self, public: Public, budget: Budget, source: RandomSource) -> NoiseCalibration:  # noqa: ARG002
        """Find the least noise that keeps the budget."""
        check_design(public)
        check_pair_matrix_size(public, self.name)
        squares = residuals_l2_sensitivity(public)
        given = GROUP_SHARES if public.groups else SHARES
        shares = {name: given.get(name, 0.0) for name in squares}
        shares["residual"] = 1 - sum(shares.values())
        ratios = {name: round_ratio(sqrt(squares[name] / shares[name])) for name in squares}
        n_groups = max(len(public.groups), 1)
        sizes = {"cells": n_groups * make_cells(public).size, LAST: n_groups * len(public.items)}
        scale, spend = calibrate_blocks(
            [tuple(squares.values())],
            tuple(ratios.values()),
            budget,
            coordinates=sum(sizes.get(name, len(public.items)) for name in squares),
            mechanism=self.name,
        )
        laws = {name: NoiseLaw("gaussian", scale * ratio) for name, ratio in ratios.items()}
        typical = min(self.answers or public.max_answers, public.max_answers)
        return NoiseCalibration(laws, spend, settings={"typical": typical, "clip": self.clip})

    def prepare(
        self, answers: Any, public: Public, calibration: NoiseCalibration
    ) -> NoiselessValues:
        """Sum the first round; the second is summed when the first has its noise."""
        blocks = list(calibration.laws)
        if not public.centre:
            blocks.remove(LAST)
        first = self._sum(answers, public, calibration, start_centre(public), blocks)
        if public.centre:
            return first

        def follow(values: Mapping[str, Int64Array]) -> NoiselessValues:
            centre = find_centre(values, calibration, public)
            second = self._sum(answers, public, calibration, centre, [LAST])
            return replace(second, draw=lambda noise: {**second.draw(noise), "centre": centre})

        items = len(public.items)
        shapes = {LAST: (max(len(public.groups), 1) * items,), "centre": (items,)}
        return add_round(first, shapes, follow)

    def _sum(
        self,
        answers: object,
        public: Public,
        calibration: NoiseCalibration,
        centre: Int64Array,
        blocks: Sequence[str],
    ) -> NoiselessValues:
        """Sum one round around a centre."""
        sums = self.count(answers, public, calibration, centre)
        check_design_kept(sums, public)
        laws = {name: calibration.laws[name] for name in blocks}
        round_calibration = replace(calibration, laws=laws)
        cells = self.cells(sums, round_calibration)
        return add_noise(cells, round_calibration, self, persons=int(sums["persons"]))

    def count(
        self,
        answers: Any,
        public: Public,
        calibration: NoiseCalibration,
        centre: Int64Array | None = None,
    ) -> dict[str, Int64Array]:
        """Sum over persons around a centre, by default that of the first round. Confidential."""
        job = make_job(
            public, calibration.settings, start_centre(public) if centre is None else centre
        )
        if not public.groups:
            return job.read(answers.reduce(job))
        joined, parts = sum_groups(answers, public, job)
        joined["cells"] = np.concatenate([part["cells"] for part in parts])
        joined["of_groups"] = np.concatenate([part["residual"] for part in parts])
        return joined

    def cells(
        self, counts: Mapping[str, Int64Array], calibration: NoiseCalibration
    ) -> dict[str, Int64Array]:
        """Return the numbers of one round that get noise. Confidential."""
        numbers = {"rough": counts["residual"], LAST: counts.get("of_groups", counts["residual"])}
        numbers |= {name: counts[name] * GRID for name in ("cells", "answered")}
        return {name: numbers[name] for name in calibration.laws}

    def attack_cells(
        self, person: Any, public: Public, calibration: NoiseCalibration
    ) -> Mapping[str, npt.NDArray[Any]]:
        """Return what a made-up person adds around the first centre, answers and group."""
        cells = super().attack_cells(person, public, calibration)
        labels = {"labels": np.asarray(list(person.groups.values()))}
        return {**cells, "people": person.to_array(), **labels}

    def statistic(
        self, public: Public, calibration: NoiseCalibration, cells: NeighbourCells, group: int
    ) -> Statistic:
        """Return the log likelihood ratio of both rounds, the second around its own centre."""
        from discreet.privacy.attack_statistics import additive_statistic

        parts = {name: pair for name, pair in cells.items() if name not in ("people", "labels")}
        people = [
            Responses(
                public.items,
                None,
                store_codes(np.nan_to_num(one, nan=-1).astype(np.int8), public.steps),
                {public.group_column: labels[0]} if public.groups else {},
            )
            for one, labels in zip(cells["people"], cells["labels"], strict=True)
        ]

        def score(values: Values, calibration: NoiseCalibration) -> float:
            centre = values.get("centre", start_centre(public))
            last = replace(calibration, laws={LAST: calibration.laws[LAST]})
            first, second = (
                self.cells(self.count(one, public, calibration, centre), last)[LAST]
                for one in people
            )
            moved = additive_statistic(calibration, {**parts, LAST: (first, second)}, group)
            return moved.score(values, calibration)

        # How far the second round can be told apart depends on its centre.
        statistic = additive_statistic(calibration, parts, group)
        return replace(statistic, score=score, permitted=statistic.ceiling)


def select_groups(answers: Any, public: Public) -> list[Any]:
    """Return the answers of the persons of each group; whoever is in none of them is left out."""
    column, known = public.group_column, getattr(answers, "groups", None)
    if known is None:
        raise OutOfReach(
            "groups are compared of answers in memory, and these stay where they are; read them "
            "with engine='memory'"
        )
    if column not in known:
        raise BadUsage(
            f"the answers have no group column {column!r}; name it when they are read (group=)"
        )
    labels = np.asarray(known[column]).astype(str)
    return [answers.select_persons(labels == group) for group in public.groups]


def sum_groups(
    answers: Any, public: Public, job: PersonCounts
) -> tuple[dict[str, Int64Array], list[dict[str, Int64Array]]]:
    """Return the sums over all groups, with how many persons there are at all; those of each."""
    parts = [job.read(one.reduce(job)) for one in select_groups(answers, public)]
    joined = {name: np.sum([part[name] for part in parts], axis=0) for name in parts[0]}
    return {**joined, "persons": np.array(answers.n_persons)}, parts


def residuals_l2_sensitivity(public: Public) -> dict[str, int]:
    """Return the squared L2 sensitivity of each block, in its steps."""
    replaces = public.neighbours is Neighbours.REPLACE_ONE
    cap, items = public.max_answers, len(public.items)
    longest = Centre.longest**2 * (4 if replaces else 1)
    squares = {"rough": longest, "cells": GRID**2 * (2 if replaces else 1)}
    squares["answered"] = GRID**2 * (min(2 * cap, items) if replaces else cap)
    squares["residual"] = longest
    absent = {"rough"} if public.centre else set()
    absent |= {"answered"} if public.design == "complete" else set()
    return {name: square for name, square in squares.items() if name not in absent}


def make_cells(public: Public) -> PersonCells:
    """Return the cells of which everybody with answers is in one."""
    forms, cap = tuple(list_columns(public)), public.max_answers
    is_complete = public.design == "complete"
    counts = 1 if is_complete else min(COUNTS, cap)
    return PersonCells(forms, cap, counts, min(SHARES_RIGHT, cap + 1), is_complete)


def make_job(public: Public, settings: PlainMapping, centre: Int64Array) -> ResidualSums:
    """Return what is summed over persons around a centre."""
    return ResidualSums(
        make_cells(public), Centre.around(centre, settings["typical"], settings["clip"])
    )


def start_centre(public: Public) -> Int64Array:
    """Return the centre of the first round: the public one, or items of one difficulty."""
    return np.array(public.centre or [0] * len(public.items), dtype=np.int64)


# --- what the first round says --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Crowd:
    """Who answered what, as far as noisy numbers tell.

    Attributes
    ----------
    persons
        How many have answers.
    forms, counts
        Shares of persons with each form, and of each kind by answers.
    shares
        ``[form, kind]``: how many persons of each kind by share right.
    takers
        How many answered each item.
    """

    persons: float
    forms: FloatArray
    counts: FloatArray
    shares: FloatArray
    takers: FloatArray


def describe_crowd(
    values: Mapping[str, Int64Array],
    laws: Mapping[str, NoiseLaw],
    public: Public,
    group: int | None = None,
) -> Crowd:
    """Read noisy numbers of persons and takers, of one group or of all who are in one.

    What noise may have made is levelled.
    """
    cells, variance = make_cells(public), laws["cells"].variance / GRID**2
    of_groups = values["cells"].reshape(-1, *cells.shape) / GRID
    if group is None:
        variance *= len(of_groups)
    persons = of_groups.sum(axis=0) if group is None else of_groups[group]
    number = float(persons.sum())
    if public.persons is not None and not public.groups:
        # Fewer have answers where noise alone does not say so.
        number = min(public.persons, number + sqrt(cells.size * variance))
    number = max(number, 2.0)
    n_forms, n_counts, n_shares = cells.shape
    forms = level(persons.sum(axis=(1, 2)), n_counts * n_shares * variance)
    counts = persons.sum(axis=(0, 2))
    counts = counts * (counts >= min(counts.max(), 2 * sqrt(n_forms * n_shares * variance)))
    forms, counts = (part / part.sum() for part in (forms, counts))
    inside = np.zeros((n_forms, len(public.items)))
    for row, columns in zip(inside, cells.forms, strict=True):
        row[list(columns)] = 1 / len(columns)
    takers = number * (forms @ inside) * float(np.mean(cells.ranges, axis=0) @ counts)
    if cells.is_complete:
        takers = number * (forms @ (inside > 0))
    if "answered" in values:
        seen = values["answered"] / GRID
        seen *= persons.sum() / max(of_groups.sum(), 1.0) if public.groups else 1.0
        takers *= max(float(seen.sum()), 1.0) / takers.sum()
        off = laws["answered"].variance / GRID**2 * float(np.mean(1 / takers**2))
        takers = takers * level(seen / takers, off)
    return Crowd(number, forms, counts, persons.sum(axis=1), np.minimum(takers, number))


def level(values: FloatArray, variance: float) -> FloatArray:
    """Pull values to their mean, as far as noise of this variance explains how they differ."""
    mean = max(float(values.mean()), 1e-9)
    spread = float(np.mean((values - mean) ** 2))
    trust = max(0.0, 1 - variance / spread) if spread > 0 else 0.0
    return np.maximum(mean + trust * (values - mean), 0.02 * mean)


#: An item's share right moves by so much where nobody is shortened, and the logit of a share
#: among persons of different abilities by so much less than that of one person.
SHORTENED, FLATTENED = 0.9, 1.2


def find_centre(
    values: Mapping[str, Int64Array], calibration: NoiseCalibration, public: Public
) -> Int64Array:
    """Return rough difficulties from noisy values of the first round, in 1 / 2^10 logits.

    Any function of released values will do; this one is close where abilities are about normal.
    """
    crowd = describe_crowd(values, calibration.laws, public)
    flat = np.zeros(len(public.items), dtype=np.int64)
    unit = make_job(public, calibration.settings, flat).centre.unit
    reach = SHORTENED * unit * np.maximum(crowd.takers, 1.0)
    off = values["rough"] / reach
    variance = calibration.laws["rough"].variance / reach**2
    spread = max(float(np.mean(off**2 - variance)), 0.0)
    shares = np.maximum(crowd.shares.sum(axis=0), 0.0)
    middle = (np.arange(len(shares)) + 0.5) / len(shares)
    mean = float(np.clip(shares @ middle / max(shares.sum(), 1e-9), 0.1, 0.9))
    chance = np.clip(mean + off * spread / (spread + variance + 1e-12), 0.02, 0.98)
    difficulty = -FLATTENED * np.log(chance / (1 - chance))
    difficulty = np.clip(difficulty - difficulty.mean(), -WIDEST_CENTRE, WIDEST_CENTRE)
    return np.asarray(np.rint(difficulty * 2**CENTRE_BITS).astype(np.int64))
