"""Attack our own mechanisms: a lower bound on epsilon, and the faults that would have shown.

In: a mechanism, a budget, and the public parameters of a release. Out: what an optimal test
between two neighbouring data sets achieved, and what it could have. It runs on synthetic data only,
through the same wall as every release.

The promise says how often the best test must mix the two data sets up: no less than two normal
distributions mu apart (Dong, Roth and Su 2022), and no less than the noise that was declared
allows. A test that is wrong more rarely, beyond chance, proves that there is less noise.
A test that is not tells only of faults that it would have seen; so those are stated. The number of
mistakes in both data sets together is a sum of independent coins. Its lower tail is at most that of
the binomial distribution with their mean rate (Hoeffding 1956), so the promise's rate gives a test
that holds whatever the fault is.

Where noise is added to exact numbers, arithmetic comes first: how far two persons move the numbers,
in units of the declared noise, against what the accountant was told. That finds faults of any size.

Attacks are neighbouring data sets that stretch a mechanism as far as it goes. One person more or
less is hard to see at a small epsilon, so a whole group of like persons is changed: whoever
promises mu for one person promises g mu for g of them (Dong, Roth and Su 2022, theorem 2.14), and
noise that is too small by a factor shows best where both data sets are mixed up in about one run of
fifteen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from itertools import chain, combinations, islice
from math import inf

import numpy as np

from discreet.answers.comparisons import Comparisons
from discreet.answers.pack import store_codes
from discreet.answers.protocol import Contributions
from discreet.answers.responses import Responses
from discreet.choices import Design
from discreet.errors import BadUsage
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.attack_statistics import (
    ALLOWED_RUNS,
    MATTERS,
    Attack,
    Separation,
    Statistic,
    choose_runs,
    find_detectable,
    prove_factor,
)
from discreet.privacy.mechanisms import check_steps_taken
from discreet.privacy.mechanisms.base import CompleteMechanism
from discreet.privacy.noise import ExactNoise, Noise
from discreet.privacy.protocol import PUBLIC, Public
from discreet.privacy.wall import Release, release_statistics
from discreet.secure import RandomSource
from discreet.types import FloatArray, Int64Array
from discreet.words import mark

#: Items answered right and items answered wrong, which is the highest and the lowest category; or
#: winners and losers of comparisons. Third, where there are groups, the place of the person's.
Contribution = tuple[Sequence[int], ...]

NOTHING: Contribution = ((), ())

#: In standard deviations. A factor on the noise then has the smallest relative error.
WANTED_SEPARATION = 3.0

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
    groups
        How many groups are compared; a person may change the group.
    """

    items: int = 20
    max_answers: int | None = None
    steps: int = 1
    forms: tuple[tuple[str, ...], ...] = ()
    design: Design = "unknown"
    groups: int = 0

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
class Domain:
    """What one person contributes, how it is gathered, how far it can be changed.

    ``stretch`` begins with the change that leaves the same items answered, or objects compared.
    """

    gather: Callable[[list[Contribution], Public], Contributions]
    stretch: Callable[[int, Public], Iterator[tuple[Contribution, Contribution]]]
    largest_size: Callable[[Public], int]


def gather_answers(people: list[Contribution], public: Public) -> Responses:
    """One row a person."""
    rows = np.full((len(people), len(public.items)), -1, dtype=np.int8)
    highest = np.array(public.steps, dtype=np.int8)
    for row, (right, wrong, *_) in zip(rows, people, strict=True):
        row[list(right)], row[list(wrong)] = highest[list(right)], 0
    store = store_codes(rows, public.steps)
    if not public.groups:
        return Responses.from_store(store, public.items)
    labels = [public.groups[group[0][0] if group else 0] for _, _, *group in people]
    return Responses(public.items, None, store, {public.group_column: labels})


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


#: By the kind of data.
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
    if stage.replaces and stage.public.groups:
        crude["another group"] = (ends[0], (*ends[0], (1,)))
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
        if mechanism.compares_groups:
            groups = max(2, size.groups)
            size = replace(size, groups=groups, design="complete", max_answers=None)
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
            centre=(0,) * len(size.names) if mechanism.compares_groups else (),
            group_column="group" if size.groups else "",
            groups=tuple(f"group {number}" for number in range(size.groups)),
        )
        check_steps_taken(mechanism, self.public)
        if (size.forms or size.design != "unknown") and not mechanism.takes_forms:
            raise BadUsage(
                f"the mechanism {mechanism.name} takes no notice of forms and of the design, so "
                "its audit does not either; leave them out, and give the longest form as the cap "
                "(max_answers=, --max-answers)"
            )
        self.calibration = mechanism.calibrate(self.public, budget, source)

    def stretch(self, size: int) -> Iterator[tuple[Contribution, Contribution]]:
        """Two contributions of that size; under add-remove the second one is none."""
        pairs = self.domain.stretch(size, self.public)
        for first, second in pairs if self.mechanism.hides_pattern else islice(pairs, 1):
            if not self.all_answer or any(map(len, second)):
                yield (first, second) if self.replaces else (first, NOTHING)
                if self.replaces and self.public.groups:
                    yield first, (*second, (1,))

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

    def gather(self, people: list[Contribution]) -> Contributions:
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


# --- the audit ------------------------------------------------------------------------------------

#: A number without noise is seen in far fewer runs than noise that is too small.
CRUDE_RUNS = 200


class Verdict(StrEnum):
    """What an audit says about a promise."""

    REFUTED = mark("refuted")
    CONSISTENT = mark("consistent")
    INCONCLUSIVE = mark("inconclusive")


@dataclass(frozen=True)
class AuditReport:
    """What the attacks could prove, and what they could have proved.

    Attributes
    ----------
    mechanism, claimed_epsilon, delta, items, max_answers, forms, design
        The claim; ``forms`` is how many there are.
    lower_bound
        The epsilon of a release with as little noise as an attack proved with 99.9% confidence.
    detectable_factor
        The smallest factor by which noise could be too small and still be found out with
        probability ``power``; infinite if none.
    detectable_epsilon
        The epsilon that the release would then have.
    runs
        Releases made per data set and attack.
    attack
        The attack behind the lower bound.
    """

    mechanism: str
    claimed_epsilon: float
    delta: float
    items: int
    max_answers: int
    lower_bound: float
    detectable_factor: float
    detectable_epsilon: float
    power: float
    runs: int
    attack: str
    forms: int = 0
    design: str = "unknown"

    @property
    def verdict(self) -> Verdict:
        """Refuted; or consistent with the promise, if a fault that matters would have shown."""
        if self.lower_bound > self.claimed_epsilon:
            return Verdict.REFUTED
        is_sharp = self.detectable_factor <= MATTERS
        return Verdict.CONSISTENT if is_sharp else Verdict.INCONCLUSIVE

    @property
    def meaning(self) -> str:
        """The verdict in one sentence."""
        return {
            Verdict.REFUTED: "The promise does not hold: do not release with this mechanism.",
            Verdict.CONSISTENT: f"Noise too small by {MATTERS} or more would probably have shown.",
            Verdict.INCONCLUSIVE: f"A fault that matters (noise too small by {MATTERS}) may have "
            "gone unseen: more runs see more.",
        }[self.verdict]

    @property
    def passed(self) -> bool:
        """Whether the promise withstood an attack that would have shown a fault that matters."""
        return self.verdict is Verdict.CONSISTENT


def audit_mechanism(
    mechanism: CompleteMechanism,
    budget: Budget,
    *,
    size: Size | None = None,
    runs: int | None = None,
    power: float = 0.9,
    noise: Noise | None = None,
    release: Callable[..., Release] = release_statistics,
    progress: Callable[[int, int], None] | None = None,
) -> AuditReport:
    """Run every attack on a mechanism and report the strongest.

    Parameters
    ----------
    mechanism
        The mechanism under attack.
    budget
        What it claims.
    size
        The public parameters of the release that is meant: items, cap, steps, forms, design.
    runs
        Releases per data set and attack, at most a million; by default as many as show noise that
        is too small by 1.1 with probability ``power``, up to 20,000.
    release
        The wall; tests pass a faulty one, which the audit must catch.
    progress
        Called with (done, all) attacks.
    """
    size = size or Size()
    _check_effort(runs, power)
    noise = PooledNoise(noise or ExactNoise())
    attacks = make_attacks(mechanism, budget, size, noise.source)
    chance = MISTAKES / len(attacks)
    runs = runs or choose_runs(attacks[0], power, chance)
    # How far two persons move the exact numbers, against the declared noise: no release is needed.
    strongest, excess = (0.0, "none"), attacks[0].statistic.excess
    if excess > 1 + ROUNDING:
        strongest = attacks[0].statistic.epsilon(excess), "the declared noise, by arithmetic"
    for done, attack in enumerate(attacks):
        bound = _strike(attack, mechanism, runs, noise, release, chance)
        strongest = max(strongest, (bound, attack.name))
        if progress:
            progress(done + 1, len(attacks))
    factor = find_detectable(attacks[0], runs, power, chance)
    return AuditReport(
        mechanism=mechanism.name,
        claimed_epsilon=budget.epsilon,
        delta=attacks[0].calibration.spend.delta,
        items=len(size.names),
        max_answers=attacks[0].public.max_answers,
        lower_bound=strongest[0],
        detectable_factor=factor,
        detectable_epsilon=inf if factor == inf else attacks[0].statistic.epsilon(factor),
        power=power,
        runs=runs,
        attack=strongest[1],
        forms=len(size.forms),
        design=size.design,
    )


#: Of the floating-point arithmetic with which declared noise is compared.
ROUNDING = 1e-9


def _check_effort(runs: int | None, power: float) -> None:
    """Refuse an audit that can show nothing, or that would hardly end."""
    if (runs is not None and runs < 2) or not 0 < power < 1:
        raise BadUsage(
            f"an audit needs at least 2 runs and a power between 0 and 1, found {runs} and {power}"
        )
    if runs is not None and runs > ALLOWED_RUNS:
        raise BadUsage(
            f"an audit makes at most {ALLOWED_RUNS:,} releases of each data set, found {runs:,}, "
            "which would not end in useful time; ask for fewer, or leave the number out to have it "
            "chosen for the power"
        )


class PooledNoise:
    """The same sampler, asked for many draws at a time: an audit makes thousands of releases."""

    POOL = 1 << 16

    def __init__(self, noise: Noise) -> None:
        self.noise, self.name, self.source = noise, noise.name, noise.source
        self.is_private = noise.is_private
        self._pools: dict[tuple[str, Fraction], Int64Array] = {}

    def gaussian(self, sigma: Fraction, size: int) -> Int64Array:
        """Hand out discrete Gaussians."""
        return self._take("gaussian", sigma, size)

    def laplace(self, scale: Fraction, size: int) -> Int64Array:
        """Hand out discrete Laplace draws."""
        return self._take("laplace", scale, size)

    def _take(self, family: str, scale: Fraction, size: int) -> Int64Array:
        pool = self._pools.get((family, scale), np.zeros(0, dtype=np.int64))
        if pool.size < size:
            draw = self.noise.gaussian if family == "gaussian" else self.noise.laplace
            pool = draw(scale, max(self.POOL, size))
        self._pools[family, scale] = pool[size:]
        return pool[:size]


def _strike(
    attack: Attack,
    mechanism: CompleteMechanism,
    runs: int,
    noise: Noise,
    release: Callable[..., Release],
    chance: float,
) -> float:
    """Return the epsilon that one attack proves."""
    statistic = attack.statistic
    guarantee = attack.calibration.spend.guarantee(ledger=None, is_private=noise.is_private)
    if attack.is_crude:
        runs = min(runs, CRUDE_RUNS)
    measure = statistic.arrange if attack.is_crude else statistic.score

    def repeat(data: Contributions) -> FloatArray:
        measured = []
        for _ in range(runs):
            calibration = statistic.redraw(noise.source)
            released = release(
                data,
                mechanism=mechanism,
                public=attack.public,
                calibration=calibration,
                guarantee=guarantee,
                noise=noise,
            )
            measured.append(measure(released.values, calibration))
        return np.array(measured, dtype=np.float64)

    inside, outside = repeat(attack.data), repeat(attack.neighbour)
    if attack.is_crude:
        if (inside != np.rint(inside)).any() or (outside != np.rint(outside)).any():
            return inf  # the low bits of a float betray the exact count (Mironov 2012)
        mistakes, runs = count_telltale_mistakes(inside, outside)
    else:
        mistakes = int((inside < 0).sum() + (outside >= 0).sum())
    return statistic.epsilon(prove_factor(attack, mistakes, runs, chance))


def count_telltale_mistakes(inside: FloatArray, outside: FloatArray) -> tuple[int, int]:
    """Learn from half of the runs which numbers vary on one side only; judge that by the others.

    Returns the mistakes, and the runs of each side that were judged.
    """
    half = len(inside) // 2
    for still, moving in ((outside, inside), (inside, outside)):
        value = still[0]
        fixed = (still[:half] == value).all(axis=0) & (moving[:half] != value).any(axis=0)
        if fixed.any():
            differs = [(side[half:, fixed] != value[fixed]).any(axis=1) for side in (still, moving)]
            return int(differs[0].sum() + (~differs[1]).sum()), len(inside) - half
    return len(inside), len(inside)  # no better than a coin


#: How often an honest mechanism may be refuted: in one of a thousand audits.
MISTAKES = 0.001
