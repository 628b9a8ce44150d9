"""The fit for the `residuals` mechanism: one or two rounds of sums around public centres.

In: released values, their noise, public parameters. Out: a :class:`ResidualsFit`. What the sums are
expected to be has no closed form, because contributions are shortened. So persons are made up (a
public seed), answer as the difficulties say, and are summed by the very code that summed the real
ones; of what they add, the part whose mean is known is left out of the mean. Numbers of persons by
form, answers and share right, all noisy, say whom to make up. Difficulties then move by weighted
least squares, both rounds together with the covariance that they have as sums over the same
persons, under the prior whose spread is learnt (docs/residuals.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtri

from discreet.answers.logistic import logistic
from discreet.answers.residual_sums import CENTRE_BITS, LENGTH_BITS, Centre, contribute
from discreet.choices import PlainMapping
from discreet.counts.planes import SparseRows, narrow_items
from discreet.models.laplacian import centre_covariance
from discreet.models.noisy import LinearView, solve_posterior
from discreet.models.noisy.fit import PUBLIC_SEED
from discreet.privacy.mechanisms.residuals import (
    GRID,
    LAST,
    Crowd,
    describe_crowd,
    make_cells,
    make_job,
)
from discreet.privacy.protocol import NoiseLaw, Public
from discreet.types import BoolArray, FloatArray, IndexArray, Int64Array

#: Persons who are made up, at least and at most; their answers, and cells of persons by items.
FEWEST_PERSONS, MOST_PERSONS = 4_000, 60_000
MOST_ANSWERS, MOST_CELLS = 1_000_000, 6_000_000
#: The first steps are taken with one of so many of them.
FIRST_SHARE = 4
#: Of these so many stand in matrices of items by items.
MATRIX_PERSONS = 1_200
#: Standard deviation of the abilities that are made up; their weights make them what they are.
DRAWN_SPREAD = 1.5
#: Standard deviations of the tilts of a standard normal density: mean, spread, skewness, kurtosis.
TILTS = np.array([1.0, 0.5, 0.25, 0.1])
#: Standard deviation of what the abilities of those with one form differ.
SHIFT = 0.7
#: Abilities beyond this tilt no further.
TILTED = 3.5
ROUNDS, SETTLED, LONGEST_STEP = 5, 0.05, 1.5
#: Factor of the variances: the step is linear and the prior normal, and neither is quite so.
INFLATION = 1.1
#: Noise is credited with at least this share of the sampling variance.
LEAST_NOISE = 0.01


@dataclass(frozen=True, eq=False)
class ResidualsFit:
    """Difficulties in logits with mean zero, and how sure they are.

    Attributes
    ----------
    difficulty
        One per item, harder is larger.
    covariance
        Of the difficulties: sampling, noise and shrinkage; ``None`` where it was not asked for.
    rounds
        Steps done.
    """

    difficulty: FloatArray
    covariance: FloatArray | None
    rounds: int

    @property
    def se(self) -> FloatArray:
        """Standard error of each difficulty; NaN where they were not asked for."""
        if self.covariance is None:
            return np.full(len(self.difficulty), np.nan)
        return np.sqrt(np.diag(self.covariance))


@dataclass(frozen=True, eq=False)
class Observed:
    """Released sums of one round in steps, the variance of their noise, and their centre."""

    sums: FloatArray
    variance: float
    centre: Centre


@dataclass(frozen=True, eq=False)
class MadeUp:
    """Made-up persons: who answers what, at which ability, and the luck of every answer.

    Attributes
    ----------
    indptr, item
        Answered items, person after person.
    form, ability, luck
        Of every person, and of every answer.
    crowd
        Whom they stand for.
    kinds
        Kinds of shares of right answers.
    """

    indptr: Int64Array
    item: IndexArray
    form: IndexArray
    ability: FloatArray
    luck: FloatArray
    crowd: Crowd
    kinds: int

    @cached_property
    def person(self) -> IndexArray:
        """The person of every answer."""
        return np.repeat(np.arange(len(self.ability)), np.diff(self.indptr))

    @cached_property
    def tilts(self) -> FloatArray:
        """``[tilt, person]``: what changes the density of abilities."""
        z = np.clip(self.ability, -TILTED, TILTED)
        return np.stack([z, (z**2 - 1) / 2, (z**3 - 3 * z) / 6, (z**4 - 6 * z**2 + 3) / 24])

    def weigh(self, tilt: FloatArray, shift: FloatArray) -> FloatArray:
        """Return the weight of every person, the sum 1, where abilities are tilted so.

        ``shift`` is how much abler those with each form are.
        """
        log = tilt @ self.tilts + shift[self.form] * self.tilts[0]
        weight = np.exp(log - log.max() - self.ability**2 / 2 * (1 - DRAWN_SPREAD**-2))
        held = np.bincount(self.form, weight, len(shift))
        return np.asarray(weight * (self.crowd.forms / np.maximum(held, 1e-300))[self.form])

    def sum_up(self, values: FloatArray) -> FloatArray:
        """Return the sums of values of answers, by person; everybody has answers."""
        return np.asarray(np.add.reduceat(values, self.indptr[:-1]))

    def take(self, persons: int) -> MadeUp:
        """Return the first so many."""
        end = self.indptr[persons]
        return replace(
            self,
            indptr=self.indptr[: persons + 1],
            item=self.item[:end],
            form=self.form[:persons],
            ability=self.ability[:persons],
            luck=self.luck[:end],
        )

    def answer(self, difficulty: FloatArray) -> Answered:
        """Let everybody answer."""
        chance = logistic(self.ability[self.person] - difficulty[self.item])
        right = self.luck < chance
        items = narrow_items(self.item, len(difficulty)).copy()
        rows = SparseRows(self.indptr.copy(), items, right, len(difficulty))
        total = self.sum_up(right.astype(np.float64))
        kind = (total * self.kinds // (np.diff(self.indptr) + 1)).astype(np.int64)
        return Answered(self, rows, chance, kind)


@dataclass(frozen=True, eq=False)
class Answered:
    """Answers of made-up persons, their probabilities, and the kind of everybody's share right."""

    people: MadeUp
    rows: SparseRows
    chance: FloatArray
    kind: IndexArray

    @property
    def variance(self) -> FloatArray:
        """Of every answer."""
        return self.chance * (1 - self.chance)

    def tilt(self, start: FloatArray, noise: float) -> Tilt:
        """Return the tilts that explain the numbers of persons by share right."""
        people, crowd = self.people, self.people.crowd
        inside = (self.kind == np.arange(people.kinds)[:, None]).astype(np.float64)
        value, shift = start, np.zeros(len(crowd.forms))
        shares = crowd.shares.sum(axis=0)
        for _ in range(3):
            weight = people.weigh(value, shift)
            share, mean = inside @ weight, people.tilts @ weight
            slope = crowd.persons * ((inside * weight) @ people.tilts.T - np.outer(share, mean))
            gain = slope.T / (noise + crowd.persons * share + 1)
            covariance = np.linalg.inv(gain @ slope + np.diag(TILTS**-2))
            step = gain @ (shares - crowd.persons * share) - value / TILTS**2
            value = value + np.clip(covariance @ step, -1, 1)
        if len(shift) > 1:
            for _ in range(3):
                shift = self._shift_forms(value, shift, inside, noise / len(shift))
        return Tilt(value, covariance, people.weigh(value, shift))

    def _shift_forms(
        self, value: FloatArray, shift: FloatArray, inside: FloatArray, noise: float
    ) -> FloatArray:
        """Move the ability of those with each form towards what their shares right say."""
        people, crowd, moved = self.people, self.people.crowd, shift.copy()
        weight, z = people.weigh(value, shift), people.tilts[0]
        for form, part in enumerate(crowd.forms):
            mine = np.where(people.form == form, weight, 0.0) / max(part, 1e-12)
            share, persons = inside @ mine, part * crowd.persons
            slope = persons * (inside @ (mine * z) - share * (mine @ z))
            gain = slope / (noise + persons * share + 1)
            step = gain @ (crowd.shares[form] - persons * share) - shift[form] / SHIFT**2
            moved[form] += np.clip(step / (gain @ slope + SHIFT**-2), -1, 1)
        return moved

    def expect(self, centre: Centre, tilt: Tilt) -> ExpectedRound:
        """Return what is expected of the sums of one round, per person.

        The part ``w (x - p - v sum(x - p) / sum(v)) d`` has mean zero whatever the ability, so
        only the rest is averaged.
        """
        people, variance = self.people, self.variance
        added = contribute(self.rows, centre)
        unit = centre.unit[people.item]
        length = np.sqrt(np.maximum(people.sum_up(unit**2 * variance), 1.0))
        usual = np.minimum(1.0, centre.longest / length)
        luck = self.rows.right - self.chance
        ratio = people.sum_up(luck) / np.maximum(people.sum_up(variance), 1e-9)
        known = usual[people.person] * unit * (luck - variance * ratio[people.person])
        rest = (added.gap - known) * tilt.weight[people.person]
        moved = people.tilts - (people.tilts @ tilt.weight)[:, None]
        shape = len(people.ability), self.rows.n_items
        by_item = csr_array((rest, people.item, people.indptr), shape).T
        sums = (by_item @ np.vstack([np.ones(shape[0]), moved]).T).T
        error = np.asarray(np.bincount(people.item, rest**2, shape[1]), dtype=np.float64)
        return ExpectedRound(sums[0], error, sums[1:], added.share / 2**LENGTH_BITS)


@dataclass(frozen=True, eq=False)
class Tilt:
    """How abilities differ from standard normal ones, how sure that is, and everybody's weight."""

    value: FloatArray
    covariance: FloatArray
    weight: FloatArray


@dataclass(frozen=True, eq=False)
class ExpectedRound:
    """Sums of one round per person.

    Attributes
    ----------
    mean, error
        What is expected, and its variance because persons were drawn.
    moved
        ``[tilt, item]``: how the expectation moves with the tilts.
    share
        Of every person: what is left of the contribution.
    """

    mean: FloatArray
    error: FloatArray
    moved: FloatArray
    share: FloatArray


def make_up(crowd: Crowd, public: Public) -> MadeUp:
    """Draw persons as a crowd is described."""
    rng = np.random.default_rng(PUBLIC_SEED)
    cells, takers = make_cells(public), crowd.takers
    lengths = [len(form) for form in cells.forms]
    typical = max(float(takers.sum()) / crowd.persons, 1.0)
    limit = min(MOST_PERSONS, MOST_CELLS // len(public.items), int(MOST_ANSWERS / typical))
    persons = max(500, min(max(round(crowd.persons), FEWEST_PERSONS), limit))
    form = rng.choice(len(lengths), persons, p=crowd.forms)
    kind = rng.choice(cells.counts, persons, p=crowd.counts)
    most = np.array(lengths)[form]
    if cells.is_complete:
        answers = most
    else:
        fewest, upto = cells.ranges
        answers = np.minimum(rng.integers(fewest[kind], upto[kind] + 1), most)
    seen = np.zeros((persons, len(public.items)), dtype=bool)
    for number, columns in enumerate(cells.forms):
        mine = np.flatnonzero(form == number)
        seen[np.ix_(mine, np.array(columns))] = _give_out(takers[list(columns)], answers[mine], rng)
    item = np.nonzero(seen)[1]
    ability = DRAWN_SPREAD * ndtri((rng.permutation(persons) + 0.5) / persons)
    indptr = np.concatenate([[0], np.cumsum(answers)])
    luck = rng.random(len(item))
    return MadeUp(indptr, item, form, np.asarray(ability), luck, crowd, cells.shares)


def _give_out(takers: FloatArray, answers: IndexArray, rng: np.random.Generator) -> BoolArray:
    """Give everybody so many items, as often as they were taken."""
    if (answers == len(takers)).all():
        return np.ones((len(answers), len(takers)), dtype=bool)
    chance = np.clip(takers / takers.sum() * answers.mean(), 1e-6, 0.999)
    # The first of exponential times at these rates.
    time = rng.standard_exponential((len(answers), len(takers)), dtype=np.float32)
    time /= -np.log1p(-chance).astype(np.float32)
    last = np.take_along_axis(np.sort(time, axis=1), answers[:, None] - 1, axis=1)
    return np.asarray(time <= last)


@dataclass(frozen=True, eq=False)
class Expected:
    """Expected sums of all rounds, how they fall with difficulties, and their covariance.

    The covariance is that of sampling, of the draw of persons and of the abilities.
    """

    sums: FloatArray
    slope: FloatArray
    covariance: FloatArray


def expect_rounds(answered: Answered, rounds: Sequence[Observed], tilt: Tilt) -> Expected:
    """Return what all rounds together are expected to be."""
    people, items = answered.people, answered.rows.n_items
    drawn = np.bincount(people.item, tilt.weight[people.person], items)
    scale = people.crowd.takers / np.maximum(drawn, 1e-9)
    parts = [answered.expect(one.centre, tilt) for one in rounds]
    matrices = Matrices.of(answered, tilt.weight)
    units = [one.centre.unit for one in rounds]
    slope = [
        (scale * unit)[:, None] * matrices.cross(one.share)
        for unit, one in zip(units, parts, strict=True)
    ]
    rooted = list(zip((np.sqrt(scale) * unit for unit in units), parts, strict=True))
    sampling = [[np.empty(0)] * len(parts) for _ in parts]
    for row, column in combinations_with_replacement(range(len(parts)), 2):
        (unit, one), (beside, other) = rooted[row], rooted[column]
        block = np.outer(unit, beside) * matrices.cross(one.share * other.share)
        sampling[row][column], sampling[column][row] = block, block.T
    moved = np.hstack([one.moved * scale for one in parts])
    error = np.diag(np.concatenate([one.error * scale**2 for one in parts]))
    return Expected(
        np.concatenate([scale * one.mean for one in parts]),
        np.vstack(slope),
        np.block(sampling) + error + moved.T @ tilt.covariance @ moved,
    )


@dataclass(frozen=True, eq=False)
class Matrices:
    """Variances of the answers of some made-up persons, ``[person, item]``, and their weights."""

    variance: FloatArray
    weight: FloatArray

    @classmethod
    def of(cls, answered: Answered, weight: FloatArray) -> Matrices:
        """Take the first persons."""
        people = answered.people
        few = min(len(weight), MATRIX_PERSONS)
        end = people.indptr[few]
        variance = np.zeros((few, answered.rows.n_items))
        variance[people.person[:end], people.item[:end]] = answered.variance[:end]
        return cls(variance, weight[:few] / weight[:few].sum())

    def cross(self, share: FloatArray) -> FloatArray:
        """Return the mean of share (diag(v) - v v' / sum(v))."""
        weight = self.weight * share[: len(self.weight)]
        total = np.maximum(self.variance.sum(axis=1), 1e-9)
        product = (self.variance * (weight / total)[:, None]).T @ self.variance
        return np.asarray(np.diag(weight @ self.variance) - product)


def fit_residuals(
    rounds: Sequence[Observed],
    crowd: Crowd,
    public: Public,
    *,
    cell_noise: float,
    start: FloatArray,
    prior: FloatArray,
    standard_errors: bool = True,
) -> ResidualsFit:
    """Fit difficulties to released rounds.

    Parameters
    ----------
    rounds
        Released sums.
    crowd
        Who answered what.
    public
        Public parameters.
    cell_noise
        Variance of the noise in a number of persons with a kind of share right.
    start, prior
        Difficulties to begin with, and around which they are thought to lie.
    standard_errors
        Whether to return the covariance.
    """
    everybody = make_up(crowd, public)
    people = everybody.take(len(everybody.ability) // FIRST_SHARE)
    observed = np.concatenate([one.sums for one in rounds])
    difficulty, tilts, done = start - start.mean(), np.zeros(len(TILTS)), 0
    while True:
        done += 1
        answered = people.answer(difficulty)
        tilt = answered.tilt(tilts, cell_noise)
        expected, tilts = expect_rounds(answered, rounds, tilt), tilt.value
        spread = np.repeat([one.variance for one in rounds], len(difficulty))
        least = LEAST_NOISE * np.diag(expected.covariance)
        variance = expected.covariance + np.diag(np.maximum(spread, least))
        gain = np.linalg.solve(variance, expected.slope).T
        off = observed - expected.sums + expected.slope @ (prior - difficulty)
        precision = gain @ expected.slope
        view = LinearView((precision + precision.T) / 2, -gain @ off)
        posterior = solve_posterior(view)
        step = posterior.mean + prior - prior.mean() - difficulty
        longest = float(np.abs(step).max())
        difficulty = difficulty + step * min(1.0, LONGEST_STEP / max(longest, 1e-300))
        if people is not everybody and (done >= ROUNDS or longest < SETTLED):
            people = everybody
        elif people is everybody:
            covariance = INFLATION * posterior.covariance if standard_errors else None
            return ResidualsFit(difficulty, covariance, done)


def read_rounds(
    values: Mapping[str, Int64Array],
    laws: Mapping[str, NoiseLaw],
    public: Public,
    settings: PlainMapping,
    group: int | None = None,
) -> list[Observed]:
    """Return the released rounds with their centres; of one group the second alone."""
    flat = np.zeros(len(public.items), dtype=np.int64)
    centres = {"rough": flat, LAST: values.get("centre", np.array(public.centre or flat))}
    rounds = {}
    for name, centre in centres.items():
        if name in laws:
            parts = values[name].reshape(-1, len(flat)).astype(np.float64)
            table = make_job(public, settings, centre).centre
            rounds[name] = Observed(parts.sum(axis=0), len(parts) * laws[name].variance, table)
    if group is None:
        return list(rounds.values())
    return [replace(rounds[LAST], sums=parts[group], variance=laws[LAST].variance)]


def cell_noise(laws: Mapping[str, NoiseLaw], public: Public, n_groups: int) -> float:
    """Return the variance of the noise in a number of persons with a kind of share right."""
    n_forms, n_counts, _ = make_cells(public).shape
    return laws["cells"].variance / GRID**2 * n_forms * n_counts * n_groups


def fit_released_rounds(
    values: Mapping[str, Int64Array],
    laws: Mapping[str, NoiseLaw],
    public: Public,
    settings: PlainMapping,
    *,
    standard_errors: bool = True,
) -> ResidualsFit:
    """Fit difficulties to the released values of a `residuals` release."""
    centre = np.array(public.centre or values["centre"]) / 2**CENTRE_BITS
    return fit_residuals(
        read_rounds(values, laws, public, settings),
        describe_crowd(values, laws, public),
        public,
        cell_noise=cell_noise(laws, public, max(len(public.groups), 1)),
        start=centre,
        prior=centre if public.centre else np.zeros(len(centre)),
        standard_errors=standard_errors,
    )


#: Steps from the difficulties of all to those of a group. Where the mean variance of a group's
#: difficulties is beyond the limit, noise would carry further steps away, so that one stands.
GROUP_STEPS, FIRM_VARIANCE = 3, 0.03

#: Where noise leaves nobody in a group, nothing is known: errors are then beyond all differences.
NO_PRECISION = 1e-9

#: What linear steps leave out grows with the variance: the share of it for each unit of variance
#: (measured; experiments/calibration/private_dif.py).
SECOND_ORDER = 7.0


def fit_without_prior(
    values: Mapping[str, Int64Array],
    laws: Mapping[str, NoiseLaw],
    public: Public,
    settings: PlainMapping,
    *,
    group: int | None,
    start: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return difficulties of one group or of all, mean zero, without any prior; their covariance.

    They begin where the sums are expanded; errors of that do not stay.
    """
    rounds = read_rounds(values, laws, public, settings, group)
    people = make_up(describe_crowd(values, laws, public, group), public)
    of_cells = cell_noise(laws, public, 1 if group is not None else max(len(public.groups), 1))
    observed = np.concatenate([one.sums for one in rounds])
    noise = np.diag(np.repeat([one.variance for one in rounds], len(start)))
    tilts, difficulty = np.zeros(len(TILTS)), start
    for _ in range(GROUP_STEPS):
        answered = people.answer(difficulty)
        tilt = answered.tilt(tilts, of_cells)
        expected, tilts = expect_rounds(answered, rounds, tilt), tilt.value
        gain = np.linalg.solve(expected.covariance + noise, expected.slope).T
        precision = gain @ expected.slope
        held = precision + np.trace(precision) / len(start) ** 2  # the mean is held at zero
        held += NO_PRECISION * np.eye(len(start))
        covariance = centre_covariance(np.linalg.inv(held))
        step = -np.linalg.solve(held, gain @ (observed - expected.sums))
        step -= step.mean()
        variance = float(np.mean(np.diag(covariance)))
        if difficulty is start and variance > FIRM_VARIANCE:
            difficulty = start + step
            break
        difficulty = difficulty + np.clip(step, -LONGEST_STEP, LONGEST_STEP)
    return difficulty, covariance * (1 + SECOND_ORDER * variance)
