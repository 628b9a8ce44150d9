"""Cut-offs of fit statistics, from answers simulated under the fitted model.

In: answers and their calibration. Out: for every item the range in which conditional infit and
outfit (:mod:`discreet.items.given_totals`) lie when the model holds, for every pair of items the
largest Q3, for every person the chance of answers so unexpected, and the largest share of persons
with a small chance. Confidential.

Each replication draws the answers of all persons again, given the items that they answered and
their total scores. The thresholds are then estimated again by one Newton step: the totals are
fixed, so that the information is that of the real answers. Estimates of few persons lie too far
apart, and those of drawn answers even farther. So answers are drawn from thresholds that are nearer
by that bias. For Q3 each person gets a new ability for the same score. Without this the ranges
would be far too wide.

There are three families: infit and outfit of items on both sides as logarithms, Q3 upwards, and the
share of persons. In the first two each statistic is standardised by mean and standard deviation of
the replications, and the largest of those that would matter stands for its family: mean squares a
tenth from their centre, Q3 a tenth above the mean. An outfit that one answer makes large counts
without it. The families split one level evenly: what is as rare in its family as what 5% of all
sets have in any of the three is beyond chance. So where the model holds, 5% of the reports tell
anything, and nothing of the level is lost to what would not be told.

Given items and total score the chance of a person's answers falls with the sum of the thresholds
that they reach. How far that sum is from its mean given the total, in standard deviations, is
ranked among the values of the same person in all replications, ties by halves (mid-p); mean and
standard deviation are those at the thresholds of the replication, whose errors would else move all
persons together. Answers are discrete: of short tests no answers at all may be as rare as 2%, or 4%
may be. So what is tested is the share of persons with a mid-p up to 1%, 2% and 5%, against the
same shares in each replication; the one that stands out most counts. Persons with one possible sum
do not count. Few very careless persons show at 1%, many at 2%; at 10% little would show, as
careless persons flatten the thresholds, so that the others look too predictable.

Given the answered items and the total score the answers do not depend on the ability, so that
nothing about the persons has to be assumed. With sampling weights the persons are the same, and the
statistics are weighted in the replications too. An item after the other is drawn. With ``e_ix =
exp(-d_i1 - ... - d_ix)`` and ``g_r(i)`` the coefficient of ``t^r`` in the product of ``sum_x e_jx
t^x`` over the answered items j from i on,

    P(X_i = x | r points are left for i and later items) = e_ix g_(r-x)(i + 1) / g_r(i).

That is exact, also for items with steps. The coefficients are kept as logarithms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from discreet.answers.responses import Responses
from discreet.errors import BadUsage
from discreet.items.given_totals import (
    ITEM_SUMS,
    GroupedAnswers,
    ThinnedAnswers,
    divide_sums,
    judge_outfit,
    leave_one_out,
)
from discreet.items.residuals import Prepared, prepare
from discreet.models.categories import RATING_SCALE
from discreet.models.conditional import Patterns, group_patterns
from discreet.models.conditional.batches import conditional_work
from discreet.models.conditional.maximise import evaluate_patterns
from discreet.models.conditional.routed import RoutedPatterns
from discreet.models.structure import rating_basis
from discreet.results.calibrated import Calibration, find_source
from discreet.results.chances import score_moments
from discreet.results.estimate import Status
from discreet.results.limits import DEPENDENT_NEGLIGIBLE, FIT_NEGLIGIBLE
from discreet.schema import Count
from discreet.tabular import Columns, Tabular, brief_repr, find_rows
from discreet.types import BoolArray, FloatArray, IndexArray, Int8Array, Int64Array

#: Share of reports with an alarm where the model holds.
LEVEL = 0.05
#: Replications: of small data, of larger ones, and of the largest.
MANY, FEW, FEWEST = 999, 199, 99
#: Answers drawn in all replications together up to which there are so many: 2, 4 and 8 seconds.
MANY_CELLS, FEW_CELLS, MOST_CELLS = 50_000_000, 100_000_000, 200_000_000
#: Replications times persons times items squared, and times pairs, up to which Q3 is simulated:
#: some seconds, and 100 MB.
PAIR_WORK, PAIR_VALUES = 30_000_000_000, 25_000_000
#: Persons who answered both items below whom a residual correlation is not looked at.
FEW_TOGETHER = 50
#: Chances of a person's answers that are small.
SMALL = (0.01, 0.02, 0.05)
#: Spread of shares that do not vary.
TINY = 1e-9
#: Sums of thresholds that differ by less are the same.
SAME_SUM = 1e-6
#: Sets of answers that tell the bias of the thresholds, and cells up to which it is looked for.
BIAS_SETS, BIAS_CELLS = 40, 100_000
#: Logits by which an ability moves at most in a replication.
LONGEST_STEP = 1.0


@dataclass(frozen=True)
class SmallChances:
    """How many persons have answers with a small chance, where that stands out most.

    Attributes
    ----------
    chance
        What is called small.
    share, expected, limit
        Share of persons with a chance up to that; its mean and the largest one when the model
        holds.
    """

    chance: float
    share: float
    expected: float
    limit: float

    @property
    def is_beyond(self) -> bool:
        """Whether there are more such persons than chance allows."""
        return self.share > self.limit


@dataclass(frozen=True, eq=False)
class FitCutoffs(Tabular):
    """Where fit statistics lie when the model holds, all of them together. Confidential.

    Attributes
    ----------
    items
        Items with a difficulty.
    infit, outfit
        ``[item, 2]``: lower and upper limit, no nearer to the centre than a tenth, which does not
        matter.
    q3
        ``[item, item]``: upper limit, a tenth above the mean at least; NaN where few persons
        answered both, or all of it where there are too many items.
    person_p
        Per person, the chance of answers at least as unexpected (mid-p); NaN for
        extreme totals, and where the total leaves one possibility.
    persons
        Share of persons with a small chance.
    limit
        Standard deviations from the mean of the replications at which the limits of items lie.
    split
        Share of the replications in which items, pairs and persons are beyond their limits.
    replications, level
        How many sets were drawn, and the share of sound reports with anything beyond a limit.

    Examples
    --------
    >>> import discreet
    >>> from discreet import analysis
    >>> answers = discreet.datasets.lsat()
    >>> estimate = discreet.fit(answers)
    >>> cutoffs = analysis.simulate_cutoffs(answers, estimate, replications=19)
    >>> cutoffs.outfit.shape
    (5, 2)
    """

    items: tuple[str, ...]
    infit: FloatArray
    outfit: FloatArray
    q3: FloatArray
    person_p: FloatArray
    persons: SmallChances
    limit: float
    split: Mapping[str, float]
    replications: int
    level: float = LEVEL

    @property
    def unexpected(self) -> BoolArray:
        """Persons with a small chance, where these are more than they should be."""
        with np.errstate(invalid="ignore"):
            return np.asarray((self.person_p <= self.persons.chance) & self.persons.is_beyond)

    def align(self, items: Sequence[str]) -> ItemLimits:
        """Return the limits of the fit of these items, in their order."""
        rows = find_rows(self.items, items)
        nothing = np.full((1, 2), np.nan)
        infit, outfit = (np.concatenate([one, nothing])[rows] for one in (self.infit, self.outfit))
        return ItemLimits(infit, outfit, self.replications)

    def to_dict(self) -> Columns:
        """One row per item: infit_low, infit_high, outfit_low, outfit_high."""
        return {"item": list(self.items), **list_bands(self)}


@dataclass(frozen=True, eq=False)
class ItemLimits:
    """Where infit and outfit of items lie when the model holds, ``[item, 2]``; NaN where unknown.

    ``replications`` is how many sets of answers were simulated for it.
    """

    infit: FloatArray
    outfit: FloatArray
    replications: Count

    __repr__ = brief_repr


def list_bands(limits: FitCutoffs | ItemLimits) -> dict[str, list[float]]:
    """Return lower and upper limits of infit and outfit as columns."""
    return {
        f"{name}_{end}": band[:, side].tolist()
        for name, band in (("infit", limits.infit), ("outfit", limits.outfit))
        for side, end in enumerate(("low", "high"))
    }


def simulate_cutoffs(
    responses: Responses,
    calibration: Calibration,
    *,
    replications: int | None = None,
    rng: np.random.Generator | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> FitCutoffs:
    """Find where fit statistics lie when the model holds, by simulation. Confidential.

    Parameters
    ----------
    responses, calibration, reading
        As for :func:`discreet.score`. The thresholds of an estimate count as found from these
        answers, but for anchored items; those of anything else count as known.
    replications
        Sets of answers that are drawn; by default 999, and 199 or 99 for large data.
    rng
        Source of the draws; by default always the same one.
    progress
        Called with the sets that are done and those that are to be done.

    Raises
    ------
    BadUsage
        If the answers are too many to be drawn again so often.

    References
    ----------
    Christensen, K. B. and Kreiner, S. (2013). Item fit statistics. In K. B. Christensen, S. Kreiner
    and M. Mesbah (eds.), Rasch models in health. Wiley. Westfall, P. H. and Young, S. S. (1993).
    Resampling-based multiple testing. Wiley.

    Examples
    --------
    >>> import discreet
    >>> answers = discreet.datasets.lsat()
    >>> cutoffs = simulate_cutoffs(answers, discreet.fit(answers, method="conditional"))
    >>> cutoffs.infit[0].round(1).tolist()
    [0.9, 1.1]
    """
    prepared = prepare(responses, calibration, "ml")
    sets = _choose_number(prepared) if replications is None else replications
    if sets < 19:
        raise BadUsage(f"cut-offs need 19 replications or more, found {sets}; 199 are usual")
    simulation = _Simulation.of(prepared, sets)
    source = np.random.default_rng(0) if rng is None else rng
    draws, refit = _Refit.of(simulation, calibration).centre(simulation.draws, source)
    observed = simulation.measure(simulation.code, simulation.thresholds, simulation.ability)
    replicates = np.empty((sets, len(observed)), dtype=np.float32)
    for row, code in enumerate(draws.draw(sets, source)):
        thresholds = refit.thresholds(code)
        replicates[row] = simulation.measure(code, thresholds, simulation.update(thresholds))
        if progress is not None:
            progress(row + 1, sets)
    return _conclude(prepared, simulation, observed, replicates)


def foretell_seconds(responses: Responses) -> float:
    """Return how long a conditional fit of these answers will take."""
    patterns = group_patterns(responses.store, np.arange(responses.n_items))
    return conditional_work(patterns, max(responses.steps))


def _choose_number(prepared: Prepared) -> int:
    """Return how many sets can be drawn in a few seconds."""
    cells = int(prepared.used.sum()) * prepared.thresholds.size
    for number, limit in ((MANY, MANY_CELLS), (FEW, FEW_CELLS), (FEWEST, MOST_CELLS)):
        if number * cells <= limit:
            return number
    raise BadUsage(
        f"cut-offs are simulated for up to {MOST_CELLS // FEWEST:,} answers, found {cells:,}; "
        "state replications= to wait for them"
    )


@dataclass(frozen=True, eq=False)
class _Simulation:
    """Persons with an ability, and what is measured of their answers; arrays ``[item, person]``.

    Persons with the same answered items and the same score, who have the same ability, are a group:
    ``group`` is that of each person, and ``first`` is one person of each.
    """

    patterns: Patterns
    answers: GroupedAnswers
    thresholds: FloatArray
    draws: ScoreDraws
    code: Int8Array
    answered: FloatArray
    ability: FloatArray
    group: IndexArray
    first: IndexArray
    pairs: tuple[IndexArray, IndexArray]
    weight: FloatArray

    @classmethod
    def of(cls, prepared: Prepared, sets: int) -> _Simulation:
        used = np.flatnonzero(prepared.used)
        store = prepared.responses.store.pick(used)
        rows = store.rows(0, len(used))
        cells = np.ascontiguousarray(rows.T)
        patterns = prepared.group(used)
        code = np.maximum(cells, 0)
        first = np.unique(patterns.entry, return_index=True)[1]
        ability = prepared.scores.ability[used][first]
        return cls(
            patterns=patterns,
            answers=ThinnedAnswers.thin(patterns, ability),
            thresholds=prepared.thresholds,
            draws=plan_draws(prepared.thresholds, rows, patterns),
            code=code,
            answered=(cells >= 0).astype(np.float64),
            ability=ability,
            group=patterns.entry,
            first=first,
            pairs=_choose_pairs(cells, sets),
            weight=np.ones(len(used)) if prepared.sample is None else prepared.sample.weight[used],
        )

    def update(self, thresholds: FloatArray) -> FloatArray:
        """Return the abilities of the groups at other thresholds, by one Newton step."""
        mean, variance = _score_moments(self.ability, thresholds)
        mean, variance = (table * self.answered[:, self.first] for table in (mean, variance))
        step = (self.answers.score - mean.sum(axis=0)) / variance.sum(axis=0)
        return np.asarray(self.ability + np.clip(step, -LONGEST_STEP, LONGEST_STEP))

    def measure(self, code: Int8Array, thresholds: FloatArray, ability: FloatArray) -> FloatArray:
        """Return all statistics: log infit and outfit of items, Q3, how unexpected persons are."""
        moments = self.answers.condition(thresholds, ability)
        rows, weight = np.ascontiguousarray(code.T), self.weight
        items = np.zeros((ITEM_SUMS, len(thresholds)))
        persons = self.answers.add_squares(rows, moments, weight, items)
        infit, outfit = divide_sums(items)
        with np.errstate(divide="ignore"):
            squares = np.log(np.append(infit, judge_outfit(outfit, leave_one_out(items))))
        step = np.nan_to_num(thresholds.T)
        reached = sum(one @ (code > k) for k, one in enumerate(step))
        mean, variance = self.answers.weigh_loads(thresholds, ability)[:, self.group]
        varies = (persons[-1] > 0) & (variance > SAME_SUM**2)
        surprise = np.where(varies, (reached - mean) / np.sqrt(np.fmax(variance, TINY)), np.nan)
        return np.concatenate([squares, self._correlate(code, thresholds, ability), surprise])

    def _correlate(
        self, code: Int8Array, thresholds: FloatArray, ability: FloatArray
    ) -> FloatArray:
        """Return Q3 of the pairs that are looked at."""
        if not len(self.pairs[0]):
            return np.zeros(0)
        residual = code - _score_moments(ability, thresholds)[0][:, self.group]
        residual *= self.answered
        product = (residual * self.weight) @ residual.T
        answered = (self.answered * self.weight).T
        together = self.answered @ answered
        together[together == 0] = 1.0
        total, squares = residual @ answered, residual**2 @ answered
        spread = squares - total**2 / together
        covariance = product - total * total.T / together
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((covariance / np.sqrt(spread * spread.T))[self.pairs])


def _choose_pairs(cells: Int8Array, sets: int) -> tuple[IndexArray, IndexArray]:
    """Return the pairs that enough persons answered; none where there are too many items."""
    items, persons = cells.shape
    too_many = sets * items * (items - 1) // 2 > PAIR_VALUES
    if too_many or sets * persons * items**2 > PAIR_WORK:
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    answered = (cells >= 0).astype(np.float32)
    first, second = np.nonzero(np.triu(answered @ answered.T >= FEW_TOGETHER, 1))
    return first, second


def _score_moments(ability: FloatArray, thresholds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of the scores, ``[item, group]``."""
    moments = score_moments(ability, thresholds)
    return np.ascontiguousarray(moments.mean.T), moments.variance.T


@dataclass(frozen=True, eq=False)
class _Refit:
    """Thresholds of a replication: one Newton step of conditional likelihood from the fitted ones.

    ``solve`` turns expected less drawn persons at or above each step, ``[item * step]``, into moves
    of the thresholds; zero for those that are not estimated.
    """

    fitted: FloatArray
    expected: FloatArray
    solve: FloatArray
    weight: FloatArray
    patterns: Patterns

    @classmethod
    def of(cls, simulation: _Simulation, calibration: Calibration) -> _Refit:
        fitted, patterns = simulation.thresholds, simulation.patterns
        patterns = patterns if patterns.is_routed else patterns.weigh(simulation.weight)
        sums = evaluate_patterns(patterns, _close_up(fitted))[1]
        basis = _free_basis(calibration, fitted)
        inverse = np.linalg.pinv(basis.T @ sums.information() @ basis, rcond=1e-10, hermitian=True)
        solve = basis @ inverse @ basis.T
        return cls(fitted, sums.expected, solve, simulation.weight, patterns)

    def centre(self, draws: ScoreDraws, rng: np.random.Generator) -> tuple[ScoreDraws, _Refit]:
        """Return draws whose estimates lie around the fitted thresholds, and how to refit them.

        Estimates from few persons lie too far apart. By how much is the mean of a second Newton
        step, which hardly varies, so that few sets tell it. Answers are drawn that much nearer.
        With many answers there is no bias to speak of.
        """
        if self.weight.size * self.fitted.size > BIAS_CELLS:
            return draws, self
        bias, plan = np.zeros_like(self.fitted), None
        for code in draws.draw(BIAS_SETS, rng):
            moved = _close_up(self.thresholds(code))
            plan, sums = evaluate_patterns(self.patterns, moved, plan, information=False)
            bias += self._move(sums.expected, code) / BIAS_SETS
        nearer = self.fitted - bias
        expected = evaluate_patterns(self.patterns, _close_up(nearer), information=False)[
            1
        ].expected
        return replace(draws, thresholds=nearer), replace(self, expected=expected)

    def thresholds(self, code: Int8Array) -> FloatArray:
        """Return the thresholds that these answers would give."""
        return np.asarray(self.fitted + self._move(self.expected, code))

    def _move(self, expected: FloatArray, code: Int8Array) -> FloatArray:
        """Return a Newton step, from expected persons at or above each step."""
        steps = range(self.fitted.shape[1])
        reached = np.stack([(code > step) @ self.weight for step in steps], axis=1)
        return np.asarray(self.solve @ (expected - reached).ravel()).reshape(reached.shape)


def _close_up(thresholds: FloatArray) -> FloatArray:
    """Return thresholds that are infinite beyond an item's steps."""
    return np.where(np.isnan(thresholds), np.inf, thresholds)


def _free_basis(calibration: Calibration, fitted: FloatArray) -> FloatArray:
    """Return how thresholds follow from what was estimated, ``[item * step, parameter]``."""
    source = find_source(calibration)
    status = getattr(source, "status", None)
    if status is None or getattr(source, "guarantee", None) is not None:
        return np.zeros((fitted.size, 0))
    statuses = [one for one in status if one in (Status.ESTIMATED, Status.ANCHORED)]
    if source.model == RATING_SCALE and Status.ANCHORED not in statuses:
        return rating_basis(*fitted.shape)
    free = np.isfinite(fitted) & np.array([one == Status.ESTIMATED for one in statuses])[:, None]
    return np.asarray(np.eye(fitted.size)[:, free.ravel()])


def _conclude(
    prepared: Prepared, simulation: _Simulation, observed: FloatArray, replicates: Float32Array
) -> FitCutoffs:
    """Standardise all statistics, and split the level over the families.

    The real answers count as one more set, the last: where the model holds nothing then tells them
    from the others, however few these are.
    """
    every = np.concatenate([replicates, observed[None].astype(np.float32)])
    items, pairs = len(simulation.thresholds), len(simulation.pairs[0])
    judged, reached = every[:, : 2 * items + pairs], every[:, 2 * items + pairs :]
    mean, sd = judged.mean(axis=0, dtype=np.float64), judged.std(axis=0, dtype=np.float64)
    z = (judged - mean) / np.where(sd > 0, sd, np.inf)
    shares = PersonShares.of(reached)
    of_items, of_pairs = slice(2 * items), slice(2 * items, None)
    centre, usual = np.exp(mean[of_items]), np.nanmean(mean[of_pairs]) if pairs else 0.0
    far = np.abs(np.exp(judged[:, of_items]) - centre) > FIT_NEGLIGIBLE
    high = judged[:, of_pairs] - _find_usual(judged[:, of_pairs], usual) > DEPENDENT_NEGLIGIBLE
    families = {
        "items": take_largest(np.where(far, np.abs(z[:, of_items]), -np.inf)),
        "pairs": take_largest(np.where(high, z[:, of_pairs], -np.inf)),
        "persons": shares.z.max(axis=0),
    }
    limits = split_level(families)
    reach = np.exp(max(limits["items"], 0.0) * sd[of_items])
    low = np.fmin(centre / reach, centre - FIT_NEGLIGIBLE)
    bands = np.stack([low, np.fmax(centre * reach, centre + FIT_NEGLIGIBLE)], axis=1)
    q3 = np.full((items, items), np.nan)
    chance = mean[of_pairs] + max(limits["pairs"], 0.0) * sd[of_pairs]
    q3[simulation.pairs] = np.fmax(chance, usual + DEPENDENT_NEGLIGIBLE)
    person_p = np.full(len(prepared.used), np.nan)
    person_p[prepared.used] = shares.list_chances()
    return FitCutoffs(
        items=prepared.scores.items,
        infit=bands[:items],
        outfit=bands[items:],
        q3=np.fmax(q3, q3.T),
        person_p=person_p,
        persons=shares.conclude(limits["persons"]),
        limit=limits["items"],
        split={
            name: float((largest[:-1] > limits[name]).mean()) for name, largest in families.items()
        },
        replications=len(replicates),
    )


def _find_usual(q3: FloatArray, usual: float) -> FloatArray:
    """Return above what a pair has to be by a tenth: the mean of its set, or of all sets."""
    return np.fmax(np.nanmean(q3, axis=1, keepdims=True), usual) if q3.shape[1] else q3


@dataclass(frozen=True, eq=False)
class PersonShares:
    """Shares of persons with a small chance in every set, ``[chance, set]``; the real one is last.

    ``varies`` says which persons have more than one possible sum; ``chance`` is theirs, by set.
    """

    varies: BoolArray
    chance: Float32Array
    share: FloatArray

    @classmethod
    def of(cls, reached: Float32Array) -> PersonShares:
        """Rank the sums ``[set, person]``."""
        varies = np.asarray(np.ptp(reached, axis=0) > SAME_SUM)
        chance = _rank_persons(reached[:, varies])
        counts = np.stack([(chance <= small).sum(axis=1) for small in SMALL])
        return cls(varies, chance, counts / max(int(varies.sum()), 1))

    @property
    def z(self) -> FloatArray:
        """Shares in standard deviations from their mean over the sets."""
        mean, sd = self.share.mean(axis=1), np.maximum(self.share.std(axis=1), TINY)
        return np.asarray((self.share - mean[:, None]) / sd[:, None])

    def conclude(self, limit: float) -> SmallChances:
        """Return the share that stands out most, with its limit."""
        worst = int(self.z[:, -1].argmax())
        share = self.share[worst]
        mean, sd = float(share.mean()), max(float(share.std()), TINY)
        return SmallChances(SMALL[worst], float(share[-1]), mean, mean + limit * sd)

    def list_chances(self) -> FloatArray:
        """Return the chance of every person's real answers; NaN where they cannot vary."""
        listed = np.full(len(self.varies), np.nan)
        listed[self.varies] = self.chance[-1]
        return listed


def take_largest(z: FloatArray) -> FloatArray:
    """Return the largest value of every set; minus infinity of none."""
    return np.asarray(np.nanmax(z, axis=1, initial=-np.inf))


def _rank_persons(reached: Float32Array) -> Float32Array:
    """Return the mid-p of every sum among those of the same person, ``[set, person]``."""
    chance = reached.copy()
    for column in chance.T:
        ordered = np.sort(column)
        least, most = (np.searchsorted(ordered, column, side) for side in ("left", "right"))
        column[:] = 1 - (least + most) / (2 * len(column))
    return chance


def split_level(families: Mapping[str, FloatArray]) -> dict[str, float]:
    """Return the limit of each family: equally rare in all, and together of the level."""
    ordered = {name: np.sort(largest) for name, largest in families.items()}
    sets = len(next(iter(ordered.values())))
    # How many sets have as much or more.
    rank = np.min(
        [sets - np.searchsorted(ordered[name], one) for name, one in families.items()], axis=0
    )
    allowed = int(LEVEL * sets)
    most = int(np.sort(rank)[allowed]) - 1
    return {name: float(values[sets - 1 - most]) for name, values in ordered.items()}


Float32Array = npt.NDArray[np.float32]

#: Entries of the tables of chances that are kept at a time: 16 MB.
TABLE_CELLS = 1 << 22
#: Answers that are drawn at a time: 8 MB.
DRAW_CELLS = 1 << 23


@dataclass(frozen=True, eq=False)
class ScoreDraws:
    """Persons whose answers are drawn again.

    Attributes
    ----------
    thresholds
        ``[item, step]``, NaN beyond an item's steps.
    answered
        ``[pattern, item]``: which items the persons of a pattern answered.
    pattern, score
        Per person.
    """

    thresholds: FloatArray
    answered: BoolArray
    pattern: IndexArray
    score: Int64Array

    @classmethod
    def of(cls, thresholds: FloatArray, cells: Int8Array) -> ScoreDraws:
        """Take who answered what, and the scores, from answers ``[person, item]``, -1 missing."""
        packed = np.packbits(cells >= 0, axis=1)
        _, first, pattern = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        score = np.maximum(cells, 0).sum(axis=1, dtype=np.int64)
        return cls(thresholds, cells[first] >= 0, pattern.reshape(-1), score)

    def draw(self, sets: int, rng: np.random.Generator) -> Iterator[Int8Array]:
        """Yield sets of answers, ``[item, person]``; zero where an answer is missing."""
        persons, items = len(self.score), len(self.thresholds)
        size = max(1, DRAW_CELLS // max(persons * items, 1))
        parts = list(self._parts())
        for start in range(0, sets, size):
            number = min(size, sets - start)
            block = np.empty((items, number, persons), dtype=np.int8)
            score = self.draw_scores(number, rng)
            for chosen in parts:
                self._draw_part(block, chosen, score[:, chosen], rng)
            yield from (block[:, row] for row in range(number))

    def draw_scores(self, sets: int, rng: np.random.Generator) -> Int64Array:  # noqa: ARG002
        """Return the scores of all persons in so many sets, ``[set, person]``: always the same."""
        return np.broadcast_to(self.score, (sets, len(self.score)))

    def _parts(self) -> Iterator[IndexArray | slice]:
        """Yield persons whose tables of chances fit into memory together."""
        width = len(self.thresholds) * (int(self.score.max(initial=0)) + 1)
        size = max(1, TABLE_CELLS // width)
        if len(self.answered) <= size:
            yield slice(None)
            return
        for start in range(0, len(self.answered), size):
            yield np.flatnonzero((self.pattern >= start) & (self.pattern < start + size))

    def _draw_part(
        self,
        block: Int8Array,
        chosen: IndexArray | slice,
        score: Int64Array,
        rng: np.random.Generator,
    ) -> None:
        """Fill in the answers of some persons with these scores, in all sets of the block."""
        patterns, row = np.unique(self.pattern[chosen], return_inverse=True)
        chance = self._chances(self.answered[patterns], int(score.max(initial=0)))
        width = chance[0].shape[-1]
        # Position in a pattern's table, which moves down by every point that is drawn.
        position = row.reshape(-1) * width + score
        for item, reach in enumerate(chance):
            uniform = rng.random(position.shape, dtype=np.float32)
            code = (uniform < reach[0].ravel()[position]).astype(np.int8)
            for step in reach[1:]:
                code += uniform < step.ravel()[position]
            block[item][:, chosen] = code
            position -= code

    def _chances(self, answered: BoolArray, highest: int) -> list[Float32Array]:
        """Return for every item ``[step, pattern, points left]`` the chance to reach the step."""
        later = np.full((len(answered), highest + 1), -np.inf)
        later[:, 0] = 0.0
        tables = []
        for thresholds, has_item in zip(self.thresholds[::-1], answered.T[::-1], strict=True):
            steps = thresholds[~np.isnan(thresholds)]
            terms = [later]
            for category, weight in enumerate(-np.cumsum(steps), 1):
                term = np.full_like(later, -np.inf)
                term[has_item, category:] = later[has_item, : highest + 1 - category] + weight
                terms.append(term)
            total = np.logaddexp.reduce(terms)
            with np.errstate(invalid="ignore"):
                share = np.exp(np.stack(terms[1:]) - total)
            share[np.isnan(share)] = 0.0
            reach = np.cumsum(share[::-1], axis=0)[::-1]
            tables.append(reach.astype(np.float32))
            later = total
        return tables[::-1]


@dataclass(frozen=True, eq=False)
class RoutedDraws(ScoreDraws):
    """Persons of a routed test, drawn again given path and total: module scores, then answers.

    The fields are those of persons in single modules, a person's modules side by side.
    """

    patterns: RoutedPatterns

    @classmethod
    def of_routes(cls, thresholds: FloatArray, patterns: RoutedPatterns) -> RoutedDraws:
        """Take persons from the patterns of a routed test."""
        start = np.flatnonzero(np.diff(patterns.group, prepend=-1))
        piece = patterns.pattern[patterns.combination[start]][patterns.entry].ravel()
        answered = patterns.answered_by(np.arange(len(patterns.lengths)))
        highest = patterns.highest(np.isfinite(thresholds).sum(axis=1))
        return cls(thresholds, answered, piece, highest[piece], patterns)

    def draw_scores(self, sets: int, rng: np.random.Generator) -> Int64Array:
        """Draw the module scores of all persons, ``[set, person and module]``."""
        known = self.patterns
        below = np.cumsum(known.find_chances(self.thresholds)[0])
        place = known.entry + rng.random((sets, len(known.entry)))
        ends = np.searchsorted(known.group, [known.entry, known.entry + 1])
        chosen = np.clip(np.searchsorted(below, place), ends[0], ends[1] - 1)
        return known.score[known.combination[chosen]].reshape(sets, -1)

    def draw(self, sets: int, rng: np.random.Generator) -> Iterator[Int8Array]:
        """Yield sets of answers, ``[item, person]``; zero where an answer is missing."""
        for code in super().draw(sets, rng):
            by_module = code.reshape(len(code), len(self.patterns.entry), -1)
            yield by_module.sum(axis=2, dtype=np.int8)


def plan_draws(thresholds: FloatArray, cells: Int8Array, patterns: Patterns) -> ScoreDraws:
    """Return persons to be drawn again, from their answers ``[person, item]`` and patterns."""
    if isinstance(patterns, RoutedPatterns):
        return RoutedDraws.of_routes(thresholds, patterns)
    return ScoreDraws.of(thresholds, cells)
