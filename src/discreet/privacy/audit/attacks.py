"""Attacks: neighbouring data sets that stretch a mechanism as far as it goes.

In: a mechanism, a budget, the number of items and the cap. Out: pairs of made-up data sets, the
calibration of their release, and the statistic that tells them apart. No real answers.

One person more or less is hard to see at a small epsilon, so a whole group of like persons is
changed: whoever promises mu for one person promises g mu for g of them (Dong, Roth and Su 2022,
theorem 2.14), and noise that is too small by a factor shows best where both data sets are mixed
up in about one run of fifteen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import Any

import numpy as np

from discreet.answers.judges import Comparisons
from discreet.answers.responses import Responses
from discreet.answers.steps import store_codes
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.audit.statistics import MATTERS, Separation, Statistic
from discreet.privacy.mechanisms import check_steps_taken
from discreet.privacy.mechanisms.base import CompleteMechanism
from discreet.privacy.protocol import PUBLIC, Calibration, Public
from discreet.secure import RandomSource

Contribution = tuple[Sequence[int], Sequence[int]]
"""Items answered right and items answered wrong, which is the highest and the lowest category; or
winners and losers of comparisons."""

NOTHING: Contribution = ((), ())

WANTED_SEPARATION = 3.0
"""In standard deviations. A factor on the noise then has the smallest relative error."""

LARGEST_GROUP = 10_000
SIZES_TRIED = 12


@dataclass(frozen=True)
class Size:
    """How many items there are, and how many answers (or comparisons) of one person count.

    By default half as many as there are items, so that the cap is attacked too. Every item has as
    many steps as are given: 1 for right and wrong.
    """

    items: int = 20
    max_answers: int | None = None
    steps: int = 1

    @property
    def cap(self) -> int:
        """The cap on answers."""
        return max(2, self.items // 2) if self.max_answers is None else self.max_answers


@dataclass(frozen=True)
class Attack:
    """Two neighbouring data sets, how they are released, and what tells them apart.

    Attributes
    ----------
    permitted
        The separation that the promise permits if the noise is too small by a factor.
    is_crude
        Looks for numbers without noise only, which takes few runs.
    """

    name: str
    data: Any
    neighbour: Any
    public: Public
    calibration: Calibration
    statistic: Statistic
    permitted: Separation
    is_crude: bool = False


@dataclass(frozen=True)
class Domain:
    """What one person contributes, how it is gathered, how far it can be changed.

    ``stretch`` begins with the change that leaves the same items answered, or objects compared.
    """

    gather: Callable[[list[Contribution], Public], Any]
    stretch: Callable[[int, int], Iterator[tuple[Contribution, Contribution]]]
    most: Callable[[int], int]


def gather_answers(people: list[Contribution], public: Public) -> Responses:
    """One row a person; the first has no answers, so that there is always somebody."""
    rows = np.full((len(people) + 1, len(public.items)), -1, dtype=np.int8)
    highest = np.array(public.steps, dtype=np.int8)
    for row, (right, wrong) in zip(rows[1:], people, strict=True):
        row[list(right)], row[list(wrong)] = highest[list(right)], 0
    return Responses.from_store(store_codes(rows, public.steps), public.items)


def gather_comparisons(people: list[Contribution], public: Public) -> Comparisons:
    """One judge a contribution, after one who compared nothing."""
    made = [NOTHING, *people]
    starts = np.cumsum([0, *(len(won) for won, _ in made)])
    winner, loser = (np.concatenate([one[side] for one in made]).astype(int) for side in (0, 1))
    return Comparisons(public.items, None, starts, winner, loser)


def stretch_answers(size: int, items: int) -> Iterator[tuple[Contribution, Contribution]]:
    """Half of the answers right, or all; then turned round, half of them, elsewhere, or none."""
    right, wrong = range(0, size, 2), range(1, size, 2)
    yield (right, wrong), (wrong, right)
    yield (right, wrong), NOTHING
    yield (range(size), ()), ((), range(size))
    if size + len(wrong) <= items:
        yield (right, wrong), (range(size, size + len(wrong)), right)
    if 2 * size <= items:
        yield (right, wrong), (range(size, 2 * size, 2), range(size + 1, 2 * size, 2))


def stretch_comparisons(size: int, items: int) -> Iterator[tuple[Contribution, Contribution]]:
    """One object against others, or pairs that share few objects; then other ones, or none."""
    # Pairs of one sum (mod items) have no object in common.
    pairs = sorted(combinations(range(items), 2), key=lambda p: ((p[0] + p[1]) % items, p))
    won, lost = zip(*pairs[:size], strict=True)
    shapes: list[Contribution] = [(won, lost)]
    if 2 * size <= len(pairs):
        others = tuple(zip(*pairs[size : 2 * size], strict=True))
        yield (won, lost), (others[0], others[1])
    if size < items:
        shapes.append(([0] * size, range(1, size + 1)))
    if 2 * size < items:
        yield shapes[-1], (range(size + 1, 2 * size + 1), [0] * size)
    for first, second in shapes:
        yield (first, second), (second, first)
        yield (first, second), NOTHING


DOMAINS: dict[str, Domain] = {
    "answers": Domain(gather_answers, stretch_answers, lambda items: items),
    "comparisons": Domain(
        gather_comparisons, stretch_comparisons, lambda items: items * (items - 1) // 2
    ),
}
"""By the kind of data."""


def make_attacks(
    mechanism: CompleteMechanism, budget: Budget, size: Size, source: RandomSource
) -> list[Attack]:
    """Build neighbouring data sets that stretch a mechanism, at the steward's own size.

    One attack takes the contributions that are farthest apart in the mechanism's own numbers.
    One has more answers than the cap and shows a cap that is not enforced; it is left out where
    nobody could go farther that way. The others, of one person, show numbers without noise.
    """
    stage = _Stage(mechanism, budget, size, source)
    ends = stage.find_farthest()
    single = stage.measure(ends, 1)
    wanted = (WANTED_SEPARATION / single.reach) ** (1 / mechanism.growth)
    group = round(min(max(wanted, 1), LARGEST_GROUP))
    found = stage.measure(ends, group)
    attacks = [stage.build("the farthest answers", ends, found, group, found.permitted)]
    over = next(stage.stretch(stage.domain.most(size.items)))
    beyond = stage.measure(over, group)
    if beyond.reach > MATTERS * single.reach:
        name = "more answers than the cap"
        attacks.append(stage.build(name, over, beyond, group, found.ceiling))
    crude = {"one person's answers": ends}
    if mechanism.hides_pattern:
        crude["answers against none"] = (ends[0], NOTHING)
    for name, pair in crude.items():
        attack = stage.build(name, pair, stage.measure(pair, 1), 1, single.permitted)
        attacks.append(replace(attack, is_crude=True))
    return attacks


class _Stage:
    """Where one mechanism is attacked: its public parameters and its noise."""

    def __init__(
        self, mechanism: CompleteMechanism, budget: Budget, size: Size, source: RandomSource
    ) -> None:
        self.mechanism = mechanism
        self.domain = DOMAINS[mechanism.kind]
        self.replaces = budget.neighbours is Neighbours.REPLACE_ONE
        names = tuple(f"item {i}" for i in range(size.items))
        self.public = PUBLIC[mechanism.kind](
            names,
            size.cap,
            budget.neighbours,
            2 if self.replaces else None,
            steps=(size.steps,) * size.items,
        )
        check_steps_taken(mechanism, self.public)
        self.calibration = mechanism.calibrate(self.public, budget, source)

    def stretch(self, size: int) -> Iterator[tuple[Contribution, Contribution]]:
        """Two contributions of that size; under add-remove the second one is none."""
        pairs = self.domain.stretch(size, len(self.public.items))
        for one, other in pairs if self.mechanism.hides_pattern else islice(pairs, 1):
            yield (one, other) if self.replaces else (one, NOTHING)

    def find_farthest(self) -> tuple[Contribution, Contribution]:
        """Try contributions of several sizes, up to the cap."""
        cap = self.public.max_answers
        sizes = {int(size) for size in np.linspace(min(2, cap), cap, SIZES_TRIED)}
        tried = [pair for size in sorted(sizes) for pair in self.stretch(size)]
        return max(tried, key=lambda pair: self.measure(pair, 1).reach)

    def measure(self, pair: tuple[Contribution, Contribution], group: int) -> Statistic:
        """Return what tells apart a group with the one contribution from one with the other."""
        gathered = [self.domain.gather([one], self.public) for one in pair]
        cells = [
            self.mechanism.attack_cells(one, self.public, self.calibration) for one in gathered
        ]
        moves = {name: (cells[0][name], cells[1][name]) for name in cells[0]}
        return self.mechanism.statistic(self.public, self.calibration, moves, group)

    def build(
        self,
        name: str,
        pair: tuple[Contribution, Contribution],
        statistic: Statistic,
        group: int,
        permitted: Separation,
    ) -> Attack:
        """Make the two data sets: a group of like persons, and what becomes of them."""
        one, other = pair
        return Attack(
            name,
            data=self.domain.gather([one] * group, self.public),
            neighbour=self.domain.gather([other] * group if self.replaces else [], self.public),
            public=replace(self.public, persons=group + 1 if self.replaces else None),
            calibration=self.calibration,
            statistic=statistic,
            permitted=permitted,
        )
