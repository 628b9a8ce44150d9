"""Attacks: neighbouring data sets that stretch a mechanism as far as it goes.

In: a mechanism, a budget, and the public parameters of the release that is planned: items, cap,
steps, forms and design. Out: pairs of made-up data sets, the calibration of their release, and the
statistic that tells them apart. No real answers.

One person more or less is hard to see at a small epsilon, so a whole group of like persons is
changed: whoever promises mu for one person promises g mu for g of them (Dong, Roth and Su 2022,
theorem 2.14), and noise that is too small by a factor shows best where both data sets are mixed
up in about one run of fifteen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, islice
from typing import Any

import numpy as np

from discreet.answers.judges import Comparisons
from discreet.answers.pack import store_codes
from discreet.answers.responses import Responses
from discreet.errors import BadUsage
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.attack_statistics import MATTERS, Separation, Statistic
from discreet.privacy.mechanisms import check_steps_taken
from discreet.privacy.mechanisms.base import CompleteMechanism
from discreet.privacy.protocol import PUBLIC, NoiseCalibration, Public
from discreet.secure import RandomSource
from discreet.types import Design

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
    """The public parameters of the release that is attacked.

    Attributes
    ----------
    items
        How many there are; with forms, as many as the forms name.
    max_answers
        How many answers (or comparisons) of one person count. By default half of the items, or of
        the longest form, so that the cap is attacked too; all of them in a complete design.
    steps
        Of every item: 1 for right and wrong.
    forms
        Sets of items, of which every person answers one.
    design
        ``"complete"``, ``"random"`` or ``"unknown"``, as for :func:`discreet.release`.
    """

    items: int = 20
    max_answers: int | None = None
    steps: int = 1
    forms: tuple[tuple[str, ...], ...] = ()
    design: Design = "unknown"

    @property
    def names(self) -> tuple[str, ...]:
        """The items."""
        if self.forms:
            return tuple(dict.fromkeys(chain.from_iterable(self.forms)))
        return tuple(f"item {number}" for number in range(self.items))

    @property
    def cap(self) -> int:
        """The cap on answers."""
        if self.max_answers is not None:
            return self.max_answers
        longest = max(map(len, self.forms), default=self.items)
        return longest if self.design == "complete" else max(2, longest // 2)


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
    calibration: NoiseCalibration
    statistic: Statistic
    permitted: Separation
    is_crude: bool = False


@dataclass(frozen=True)
class Domain:
    """What one person contributes, how it is gathered, how far it can be changed.

    ``stretch`` begins with the change that leaves the same items answered, or objects compared.
    """

    gather: Callable[[list[Contribution], Public], Any]
    stretch: Callable[[int, Public], Iterator[tuple[Contribution, Contribution]]]
    largest_size: Callable[[Public], int]


def gather_answers(people: list[Contribution], public: Public) -> Responses:
    """One row a person."""
    rows = np.full((len(people), len(public.items)), -1, dtype=np.int8)
    highest = np.array(public.steps, dtype=np.int8)
    for row, (right, wrong) in zip(rows, people, strict=True):
        row[list(right)], row[list(wrong)] = highest[list(right)], 0
    return Responses.from_store(store_codes(rows, public.steps), public.items)


def gather_comparisons(people: list[Contribution], public: Public) -> Comparisons:
    """One judge a contribution."""
    starts = np.cumsum([0, *(len(won) for won, _ in people)])
    winner, loser = (np.concatenate([one[side] for one in people]).astype(int) for side in (0, 1))
    return Comparisons(public.items, None, starts, winner, loser)


def stretch_answers(size: int, public: Public) -> Iterator[tuple[Contribution, Contribution]]:
    """Change answers within a form, then from one form to another."""
    forms = _pick_forms(public)
    is_complete = public.design == "complete"
    sizes = [len(form) if is_complete else min(size, len(form)) for form in forms]
    for form, form_size in zip(forms, sizes, strict=True):
        for start, end in _stretch_form(form_size, len(form)):
            yield _place(start, form), _place(end, form)
    for (form, form_size), (second, others) in combinations(zip(forms, sizes, strict=True), 2):
        for every in (1, 2, 4, size + 1):
            yield _place(_answer(form_size, every), form), _place(_answer(others, every), second)


def _pick_forms(public: Public) -> list[list[int]]:
    """Return the columns of the two longest and the two shortest forms; of all items without."""
    column_of = {item: column for column, item in enumerate(public.items)}
    forms = sorted(public.forms or (public.items,), key=len, reverse=True)
    return [[column_of[item] for item in form] for form in dict.fromkeys([*forms[:2], *forms[-2:]])]


def _answer(size: int, every: int) -> Contribution:
    """Return answers to so many items, of which one in ``every`` is right."""
    right = range(every - 1, size, every)
    return right, [item for item in range(size) if item not in right]


def _place(answers: Contribution, form: Sequence[int]) -> Contribution:
    """Return answers to the first items as answers to the first of a form."""
    right, wrong = ([form[item] for item in side] for side in answers)
    return right, wrong


def _stretch_form(size: int, items: int) -> Iterator[tuple[Contribution, Contribution]]:
    """Half of the answers right, or all; then turned round, half of them, elsewhere, or none."""
    right, wrong = range(0, size, 2), range(1, size, 2)
    yield (right, wrong), (wrong, right)
    yield (right, wrong), NOTHING
    yield (range(size), ()), ((), range(size))
    if size + len(wrong) <= items:
        yield (right, wrong), (range(size, size + len(wrong)), right)
    if 2 * size <= items:
        yield (right, wrong), (range(size, 2 * size, 2), range(size + 1, 2 * size, 2))


def stretch_comparisons(size: int, public: Public) -> Iterator[tuple[Contribution, Contribution]]:
    """One object against others, or pairs that share few objects; then other ones, or none."""
    items = len(public.items)
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
    "answers": Domain(
        gather_answers,
        stretch_answers,
        lambda public: max(map(len, public.forms), default=len(public.items)),
    ),
    "comparisons": Domain(
        gather_comparisons,
        stretch_comparisons,
        lambda public: len(public.items) * (len(public.items) - 1) // 2,
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
    needed_persons = (WANTED_SEPARATION / single.reach) ** (1 / mechanism.growth)
    group = round(min(max(needed_persons, 1), LARGEST_GROUP))
    statistic = stage.measure(ends, group)
    attacks = [stage.build("the farthest answers", ends, statistic, group, statistic.permitted)]
    over = next(stage.stretch(stage.domain.largest_size(stage.public)))
    beyond = stage.measure(over, group)
    if beyond.reach > MATTERS * single.reach:
        name = "more answers than the cap"
        attacks.append(stage.build(name, over, beyond, group, statistic.ceiling))
    crude = {"one person's answers": ends}
    if mechanism.hides_pattern and not stage.all_answer:
        crude["answers against none"] = (ends[0], NOTHING)
    if stage.replaces and size.forms:
        crude["another form"] = stage.change_form()
    for name, pair in crude.items():
        attack = stage.build(name, pair, stage.measure(pair, 1), 1, single.permitted)
        attacks.append(replace(attack, is_crude=True))
    return attacks


def _check_forms_taken(mechanism: CompleteMechanism, size: Size) -> None:
    if (size.forms or size.design != "unknown") and not mechanism.takes_forms:
        raise BadUsage(
            f"the mechanism {mechanism.name} takes no notice of forms and of the design, so its "
            "audit does not either; leave them out, and give the longest form as the cap "
            "(max_answers=, --max-answers)"
        )


class _Stage:
    """Where one mechanism is attacked: its public parameters and its noise."""

    def __init__(
        self, mechanism: CompleteMechanism, budget: Budget, size: Size, source: RandomSource
    ) -> None:
        self.mechanism = mechanism
        self.domain = DOMAINS[mechanism.kind]
        self.replaces = budget.neighbours is Neighbours.REPLACE_ONE
        self.all_answer = self.replaces and size.design == "complete"
        # Somebody who answers nothing is always there, so that no data set is empty.
        self.others = [] if self.all_answer else [NOTHING]
        self.public = PUBLIC[mechanism.kind](
            size.names,
            size.cap,
            budget.neighbours,
            1 + len(self.others) if self.replaces else None,
            steps=(size.steps,) * len(size.names),
            forms=size.forms,
            design=size.design,
        )
        check_steps_taken(mechanism, self.public)
        _check_forms_taken(mechanism, size)
        self.calibration = mechanism.calibrate(self.public, budget, source)

    def stretch(self, size: int) -> Iterator[tuple[Contribution, Contribution]]:
        """Two contributions of that size; under add-remove the second one is none."""
        pairs = self.domain.stretch(size, self.public)
        for first, second in pairs if self.mechanism.hides_pattern else islice(pairs, 1):
            if not self.all_answer or any(map(len, second)):
                yield (first, second) if self.replaces else (first, NOTHING)

    def change_form(self) -> tuple[Contribution, Contribution]:
        """Return two contributions to different forms, with half of the answers right."""
        first, *others = _pick_forms(self.public)
        sizes = [min(self.public.max_answers, len(form)) for form in (first, *others)]
        return (
            _place(_answer(sizes[0], 2), first),
            _place(_answer(sizes[-1], 2), others[-1] if others else first),
        )

    def find_farthest(self) -> tuple[Contribution, Contribution]:
        """Try contributions of several sizes, up to the cap."""
        cap = self.public.max_answers
        sizes = {int(size) for size in np.linspace(min(2, cap), cap, SIZES_TRIED)}
        tried = [pair for size in sorted(sizes) for pair in self.stretch(size)]
        return max(tried, key=lambda pair: self.measure(pair, 1).reach)

    def gather(self, people: list[Contribution]) -> Any:
        """Return a data set of these and of those who are always there."""
        return self.domain.gather([*self.others, *people], self.public)

    def measure(self, pair: tuple[Contribution, Contribution], group: int) -> Statistic:
        """Return what tells apart a group with the one contribution from one with the other."""
        gathered = [self.gather([one]) for one in pair]
        cells = [
            self.mechanism.attack_cells(one, self.public, self.calibration) for one in gathered
        ]
        neighbours = {name: (cells[0][name], cells[1][name]) for name in cells[0]}
        return self.mechanism.statistic(self.public, self.calibration, neighbours, group)

    def build(
        self,
        name: str,
        pair: tuple[Contribution, Contribution],
        statistic: Statistic,
        group: int,
        permitted: Separation,
    ) -> Attack:
        """Make the two data sets: a group of like persons, and what becomes of them."""
        first, second = pair
        persons = group + len(self.others)
        return Attack(
            name,
            data=self.gather([first] * group),
            neighbour=self.gather([second] * group if self.replaces else []),
            public=replace(self.public, persons=persons if self.replaces else None),
            calibration=self.calibration,
            statistic=statistic,
            permitted=permitted,
        )
