"""Answers given the total: mean squares whose expectation is 1 at any length of a test.

In: answers in groups (of a person, or of persons with the same answered items and total) with
their thresholds. Out: mean and variance of each answer given the group's total, and sums of squared
residuals of items and persons. Confidential.

Given what a person answered and the total score, the answers do not depend on the ability. With
``p_ix`` the chance of category x at any ability t, and ``P`` and ``S`` the laws of the scores on
the answers before and after answer i,

    P(X_i = x | total r) = p_ix sum_s P_i(s) S_i(r - x - s) / P(total r).

All terms are positive, so that no digits are lost; t only keeps the numbers within range. With E
and V the mean and variance of that law the conditional infit is ``sum (x - E)^2 / sum V`` and the
conditional outfit the mean of ``(x - E)^2 / V``, over answers with V > 0: extreme totals and lone
answers say nothing. At abilities that were estimated from the same answers mean squares are about
``1 - 1 / L`` instead, with L answers a person.

References
----------
Müller, M. (2020). Item fit statistics for Rasch analysis: can we trust them? Journal of Statistical
Distributions and Applications 7, 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.sparse import csr_array

from discreet.items.residuals import Prepared
from discreet.jit import compiled_loop
from discreet.models.conditional import Patterns
from discreet.models.conditional.routed import RoutedPatterns
from discreet.results.limits import FIT_NEGLIGIBLE
from discreet.tabular import Columns, Tabular, list_field_columns
from discreet.types import BoolArray, FloatArray, IndexArray, Int8Array, Int64Array

#: Variances given the total below this are those of answers that the total determines.
DETERMINED = 1e-10
#: Cells of persons and items that are looked at together: 32 MB of moments.
CHUNK_CELLS = 1 << 20
#: Chances of a score that change no digit of the moments, where the total is likelier than that.
NEGLIGIBLE, LIKELY = 1e-30, 1e-5
#: Logits between groups whose moments are computed, and how many of them are enough for a spline.
CLOSE, FEWEST_KNOWN = 0.1, 12
#: Most unexpected answers that are listed.
LISTED = 20
#: Rows of sums: squared residuals, variances, standardised squares, answers; of items also the
#: largest standardised square, and its weight.
SUMS, ITEM_SUMS = 4, 6


def condition_on_totals(
    start: IndexArray, threshold: FloatArray, ability: FloatArray, score: Int64Array
) -> FloatArray:
    """Return mean and variance of every answer given the total of its group, ``[2, answer]``.

    Parameters
    ----------
    start
        Group g holds the answers from ``start[g]`` to ``start[g + 1]``.
    threshold
        ``[answer, step]``, NaN beyond an answer's steps.
    ability, score
        Per group: an ability at which the total is likely, and the total.
    """
    out = np.zeros((2, len(threshold)))
    longest = int(np.diff(start).max(initial=0))
    width = int(score.max(initial=0)) + 1
    later = np.zeros((longest + 1, width))
    ends = np.zeros((longest + 1, 2), dtype=np.intp)
    chance = np.zeros((longest, threshold.shape[1] + 1))
    _condition(start, threshold, ability, score, (later, ends, chance), out)
    return out


@compiled_loop
def _condition(start: Any, threshold: Any, ability: Any, score: Any, work: Any, out: Any) -> None:
    later, ends, chance = work
    categories = chance.shape[1]
    earlier, now = np.zeros(later.shape[1]), np.zeros(later.shape[1])
    law = np.zeros(categories)
    for g in range(len(start) - 1):
        first, total = start[g], score[g]
        length = start[g + 1] - first
        for i in range(length):
            _weigh_categories(threshold[first + i], ability[g], chance[i])
        _look_ahead(chance, length, total, NEGLIGIBLE, later, ends)
        if length and not later[0, 0] > LIKELY:
            _look_ahead(chance, length, total, 0.0, later, ends)
        least = NEGLIGIBLE if later[0, 0] > LIKELY else 0.0
        earlier[0], low, high = 1.0, 0, 0
        for i in range(length):
            for x in range(categories):
                law[x] = 0.0
                if chance[i, x] > 0:
                    a = max(low, ends[i + 1, 0] - x)
                    b = min(high, ends[i + 1, 1] - x) + 1
                    if a < b:
                        both = np.dot(earlier[a:b], later[i + 1, a + x : b + x])
                        law[x] = chance[i, x] * both
            _keep_moments(law, out[:, first + i])
            most = min(high + categories - 1, total)
            now[low : most + 1] = 0.0
            for x in range(categories):
                last = max(min(high, most - x) + 1, low)
                _add_shifted(earlier[low:last], chance[i, x], now[low + x : last + x])
            earlier, now = now, earlier
            low, high = _trim(earlier, low, most, least)


@compiled_loop
def _look_ahead(chance: Any, length: int, total: int, least: float, out: Any, ends: Any) -> None:
    """Write the chance to reach the total from j points before each answer, ``[answer, j]``.

    ``ends`` are the first and the last j that are written: those with a chance of at least so much.
    """
    categories = chance.shape[1]
    out[length, total] = 1.0
    ends[length, 0], ends[length, 1] = total, total
    for i in range(length - 1, -1, -1):
        low, high = ends[i + 1, 0], ends[i + 1, 1]
        lowest = max(low - categories + 1, 0)
        out[i, lowest : high + 1] = 0.0
        for x in range(categories):
            least_j = max(low - x, 0)
            _add_shifted(out[i + 1, least_j + x : high + 1], chance[i, x], out[i, least_j:])
        ends[i, 0], ends[i, 1] = _trim(out[i], lowest, high, least)
    if ends[0, 0] > 0:
        out[0, 0] = 0.0


@compiled_loop
def _add_shifted(law: Any, weight: float, out: Any) -> None:
    for s in range(len(law)):
        out[s] += weight * law[s]


@compiled_loop
def _trim(law: Any, low: int, high: int, least: float) -> Any:
    """Return the ends of a law without what is less likely than that."""
    while low < high and law[low] < least:
        low += 1
    while high > low and law[high] < least:
        high -= 1
    return low, high


@compiled_loop
def _weigh_categories(threshold: Any, ability: float, chance: Any) -> None:
    """Write the chances of categories at an ability."""
    chance[:] = 0.0
    logit, top, count = 0.0, 0.0, 1
    for step in threshold:
        if not np.isfinite(step):
            break
        logit += ability - step
        chance[count] = logit
        top = max(top, logit)
        count += 1
    norm = 0.0
    for x in range(count):
        chance[x] = np.exp(chance[x] - top)
        norm += chance[x]
    for x in range(count):
        chance[x] /= norm


@compiled_loop
def _keep_moments(law: Any, out: Any) -> None:
    """Write mean and variance of a law that is not normed."""
    norm, mean, variance = 0.0, 0.0, 0.0
    for x in range(len(law)):
        norm += law[x]
        mean += x * law[x]
    mean /= norm
    for x in range(len(law)):
        variance += law[x] * (x - mean) ** 2
    out[0], out[1] = mean, variance / norm


def weigh_loads(
    start: IndexArray, threshold: FloatArray, ability: FloatArray, score: Int64Array
) -> FloatArray:
    """Return mean and variance of the sum of reached thresholds given the total, ``[2, group]``.

    Parameters are those of :func:`condition_on_totals`.
    """
    out = np.zeros((2, len(score)))
    law = np.zeros((2, 3, int(score.max(initial=0)) + 1))
    _weigh_loads(start, threshold, ability, score, law, out)
    return out


@compiled_loop
def _weigh_loads(start: Any, threshold: Any, ability: Any, score: Any, law: Any, out: Any) -> None:
    for g in range(len(score)):
        own, total = threshold[start[g] : start[g + 1]], score[g]
        sums = _carry_loads(own, ability[g], total, NEGLIGIBLE, law)
        if not sums[0] > LIKELY:
            sums = _carry_loads(own, ability[g], total, 0.0, law)
        out[0, g] = sums[1] / sums[0]
        out[1, g] = max(sums[2] / sums[0] - out[0, g] ** 2, 0.0)


@compiled_loop
def _carry_loads(threshold: Any, ability: float, total: int, least: float, law: Any) -> Any:
    """Return chance, sum and sum of squares of the loads at a total, carried over all answers."""
    chance = np.zeros(threshold.shape[1] + 1)
    now, new, low, high = law[0], law[1], 0, 0
    now[:, 0] = 0.0
    now[0, 0] = 1.0
    for i in range(len(threshold)):
        _weigh_categories(threshold[i], ability, chance)
        most = min(high + len(chance) - 1, total)
        new[:, low : most + 1] = 0.0
        load = 0.0
        for x in range(len(chance)):
            if x > 0:
                load += threshold[i, x - 1]
            if not np.isfinite(load):
                break
            for s in range(low, min(high, most - x) + 1):
                share, mean = chance[x] * now[0, s], chance[x] * now[1, s]
                new[0, s + x] += share
                new[1, s + x] += mean + load * share
                new[2, s + x] += chance[x] * now[2, s] + load * (2 * mean + load * share)
        now, new = new, now
        low, high = _trim(now[0], low, most, least)
    return now[:, total] if high == total else np.zeros(3)


@dataclass(frozen=True, eq=False)
class GroupedAnswers:
    """Persons with the same answered items and total, side by side.

    Attributes
    ----------
    start, item
        Group g answered ``item[start[g]:start[g + 1]]``.
    score
        Its total.
    group
        Of each person.
    """

    start: IndexArray
    item: IndexArray
    score: Int64Array
    group: IndexArray

    @classmethod
    def of(cls, patterns: Patterns) -> GroupedAnswers:
        """Take the groups from patterns."""
        if isinstance(patterns, RoutedPatterns):
            return RoutedAnswers.of_routes(patterns)
        return cls(*patterns.spread_items(patterns.pattern), patterns.score, patterns.entry)

    def condition(self, thresholds: FloatArray, ability: FloatArray) -> FloatArray:
        """Return mean and variance of the groups' answers at thresholds ``[item, step]``."""
        return condition_on_totals(self.start, thresholds[self.item], ability, self.score)

    def weigh_loads(self, thresholds: FloatArray, ability: FloatArray) -> FloatArray:
        """Return mean and variance of the sum of the thresholds that a group reaches."""
        return weigh_loads(self.start, thresholds[self.item], ability, self.score)

    def add_squares(
        self, code: Int8Array, moments: FloatArray, weight: FloatArray | None, by_item: FloatArray
    ) -> FloatArray:
        """Return sums of persons ``[sum, person]``; add weighted ones to those of items."""
        by_person = np.zeros((SUMS, len(code)))
        own = np.ones(len(code)) if weight is None else weight
        _add_squares((self.start, self.item, self.group), code, moments, own, (by_item, by_person))
        return by_person


@dataclass(frozen=True, eq=False)
class ThinnedAnswers(GroupedAnswers):
    """Groups of which many lie between others of the same items and of nearly the same ability.

    Moments are computed of the ``known`` groups, and interpolated over the totals for the rest of a
    ``run`` of groups with the same items. That serves simulated answers; published ones are exact.
    """

    known: BoolArray
    runs: tuple[slice, ...]

    @classmethod
    def thin(cls, patterns: Patterns, ability: FloatArray) -> GroupedAnswers:
        """Choose groups about evenly by ability; all of them where persons are given by paths."""
        answers, pattern = GroupedAnswers.of(patterns), patterns.pattern
        if patterns.is_routed:
            return answers
        first = np.diff(pattern, prepend=-1) != 0
        step = np.diff(np.floor(ability / CLOSE), prepend=np.nan) != 0
        known = first | step | np.roll(first, -1)
        starts = np.append(np.flatnonzero(first), len(pattern))
        counts = np.add.reduceat(known, starts[:-1]), np.diff(starts)
        thinned = (counts[0] >= FEWEST_KNOWN) & (counts[0] < counts[1])
        known |= ~np.repeat(thinned, counts[1])
        runs = tuple(slice(starts[k], starts[k + 1]) for k in np.flatnonzero(thinned))
        return cls(answers.start, answers.item, answers.score, answers.group, known, runs)

    def condition(self, thresholds: FloatArray, ability: FloatArray) -> FloatArray:
        """Return mean and variance of the groups' answers at thresholds ``[item, step]``."""
        length = np.diff(self.start)
        chosen, start = np.repeat(self.known, length), np.cumsum(length[self.known])
        steps, score = thresholds[self.item[chosen]], self.score[self.known]
        moments = np.empty((2, len(self.item)))
        moments[:, chosen] = condition_on_totals(
            np.append(0, start), steps, ability[self.known], score
        )
        for run in self.runs:
            part = slice(self.start[run.start], self.start[run.stop])
            table = moments[:, part].reshape(2, run.stop - run.start, -1)
            self._interpolate(table, run)
        return moments

    def weigh_loads(self, thresholds: FloatArray, ability: FloatArray) -> FloatArray:
        """Return mean and variance of the sum of the thresholds that a group reaches."""
        length = np.diff(self.start)
        chosen, start = np.repeat(self.known, length), np.cumsum(length[self.known])
        steps, score = thresholds[self.item[chosen]], self.score[self.known]
        moments = np.empty((2, len(self.score)))
        moments[:, self.known] = weigh_loads(np.append(0, start), steps, ability[self.known], score)
        for run in self.runs:
            self._interpolate(moments[:, run], run)
        return moments

    def _interpolate(self, table: FloatArray, run: slice) -> None:
        """Fill in what is not known of a run, ``[moment, group, ...]``, from what is."""
        known, score = self.known[run], self.score[run]
        table[:, ~known] = CubicSpline(score[known], table[:, known], axis=1)(score[~known])


@dataclass(frozen=True, eq=False)
class RoutedAnswers(GroupedAnswers):
    """Persons with the same path, answered items and total, side by side.

    Mean and variance of an answer are those given a module's score, mixed over the scores that the
    path allows.
    """

    patterns: RoutedPatterns

    @classmethod
    def of_routes(cls, patterns: RoutedPatterns) -> RoutedAnswers:
        """Take the groups from patterns of a routed test."""
        start = np.flatnonzero(np.diff(patterns.group, prepend=-1))
        pieces = patterns.pattern[patterns.combination[start]]
        start, item = patterns.spread_items(pieces.ravel())
        start = start[:: pieces.shape[1]]
        return cls(start, item, patterns.total, patterns.entry, patterns)

    def condition(self, thresholds: FloatArray, ability: FloatArray) -> FloatArray:  # noqa: ARG002
        """Return mean and variance of the groups' answers at thresholds ``[item, step]``."""
        known, shape = self.patterns, (len(self.patterns.score), len(thresholds))
        start, item = known.spread_items(known.pattern)
        highest = known.highest(np.isfinite(thresholds).sum(axis=1))[known.pattern]
        tilt = np.log((known.score + 0.5) / (highest - known.score + 0.5))
        mean, variance = condition_on_totals(start, thresholds[item], tilt, known.score)
        law = known.spread_chances(known.find_chances(thresholds)[0])
        first, second = (
            (law @ csr_array((moment, item, start), shape=shape)).toarray()
            for moment in (mean, variance + mean**2)
        )
        at = np.repeat(np.arange(len(self.score)), np.diff(self.start)), self.item
        return np.stack([first[at], second[at] - first[at] ** 2])

    def weigh_loads(self, thresholds: FloatArray, ability: FloatArray) -> FloatArray:  # noqa: ARG002
        """Return mean and variance of the sum of the thresholds that a group reaches."""
        known = self.patterns
        start, item = known.spread_items(known.pattern)
        nothing = np.zeros(len(known.score))
        mean, variance = weigh_loads(start, thresholds[item], nothing, known.score)
        mean, variance = known.marks @ mean, known.marks @ variance
        starts = np.flatnonzero(np.diff(known.group, prepend=-1))
        chance = known.find_chances(thresholds)[0]
        first, second = (
            np.add.reduceat(chance * moment, starts) for moment in (mean, variance + mean**2)
        )
        return np.stack([first, second - first**2])


@compiled_loop
def _add_squares(groups: Any, code: Any, moments: Any, weight: Any, out: Any) -> None:
    start, items, group = groups
    by_item, by_person = out
    for person in range(len(code)):
        for place in range(start[group[person]], start[group[person] + 1]):
            variance, item = moments[1, place], items[place]
            if variance <= DETERMINED:
                continue
            square = (code[person, item] - moments[0, place]) ** 2
            values = (square, variance, square / variance, 1.0)
            for k in range(SUMS):
                by_item[k, item] += weight[person] * values[k]
                by_person[k, person] += values[k]
            if values[2] > by_item[SUMS, item]:
                by_item[SUMS, item], by_item[SUMS + 1, item] = values[2], weight[person]


def divide_sums(sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return infit and outfit from sums; NaN without an answer that says something."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return sums[0] / sums[1], sums[2] / sums[3]


def judge_outfit(outfit: FloatArray, without_one: FloatArray) -> FloatArray:
    """Return outfits, without the most unexpected answer where that alone makes them large."""
    is_alone = outfit - without_one > FIT_NEGLIGIBLE
    return np.where(is_alone, np.fmax(without_one, np.fmin(outfit, 1.0)), outfit)


def leave_one_out(sums: FloatArray) -> FloatArray:
    """Return the outfit of items without the most unexpected answer."""
    largest, weight = sums[SUMS:]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((sums[2] - weight * largest) / (sums[3] - weight))


@dataclass(frozen=True, eq=False)
class UnexpectedAnswers(Tabular):
    """The answers that the other answers of the same person foretell least. Confidential.

    Attributes
    ----------
    person, item
        Whose answer to what.
    observed, expected
        The score, and what it is on average given the person's items and total score.
    z
        The difference in standard deviations.

    Examples
    --------
    >>> import discreet
    >>> from discreet import analysis
    >>> answers = discreet.datasets.lsat()
    >>> fit = analysis.measure_fit(answers, discreet.fit(answers))
    >>> len(fit.unexpected.z)
    20
    """

    person: tuple[str, ...]
    item: tuple[str, ...]
    observed: Int64Array
    expected: FloatArray
    z: FloatArray

    def to_dict(self) -> Columns:
        """One list per column, the most unexpected answer first."""
        numbers = list_field_columns(self, "observed", "expected", "z")
        return {"person": list(self.person), "item": list(self.item), **numbers}


@dataclass(frozen=True, eq=False)
class GivenTotals:
    """Sums of squares of items, weighted, and of persons; and the most unexpected answers."""

    by_item: FloatArray
    by_person: FloatArray
    unexpected: UnexpectedAnswers


def square_given_totals(prepared: Prepared) -> GivenTotals:
    """Hold all answers against their laws given the totals; persons not used have sums of zero."""
    thresholds, used = prepared.thresholds, np.flatnonzero(prepared.used)
    by_item = np.zeros((ITEM_SUMS, len(thresholds)))
    by_person = np.zeros((SUMS, prepared.responses.n_persons))
    rows = np.zeros((0, 5))
    size = max(1, CHUNK_CELLS // len(thresholds))
    for first in range(0, len(used), size):
        persons = used[first : first + size]
        store = prepared.responses.store.pick(persons)
        answers = GroupedAnswers.of(prepared.group(persons))
        ability = np.zeros(len(answers.score))
        ability[answers.group] = prepared.scores.ability[persons]
        moments = answers.condition(thresholds, ability)
        code, weight = store.rows(0, len(persons)), prepared.weigh(persons)
        by_person[:, persons] = answers.add_squares(code, moments, weight, by_item)
        found = _list_unexpected(answers, code, moments)
        found[:, 0] = persons[found[:, 0].astype(np.intp)]
        rows = np.concatenate([rows, found])
        rows = rows[np.argsort(-np.abs(rows[:, -1]), kind="stable")[:LISTED]]
    return GivenTotals(by_item, by_person, _name_answers(prepared, rows))


def _list_unexpected(answers: GroupedAnswers, code: Int8Array, moments: FloatArray) -> FloatArray:
    """Return person, item, code, expected code and z of the most unexpected answers, a row each."""
    length = np.diff(answers.start)[answers.group]
    first = answers.start[answers.group] - (np.cumsum(length) - length)
    person = np.repeat(np.arange(len(code)), length)
    place = np.arange(len(person)) + np.repeat(first, length)
    (mean, variance), item = moments[:, place], answers.item[place]
    x = code[person, item]
    z = (x - mean) / np.sqrt(np.where(variance > DETERMINED, variance, np.inf))
    most = _find_largest(np.abs(z))
    return np.column_stack([one[most] for one in (person, item, x, mean, z)])


def _find_largest(size: FloatArray) -> Int64Array:
    """Return the places of the largest values, the largest first, of equal ones the first."""
    if len(size) <= LISTED:
        return np.argsort(-size, kind="stable")
    near = np.flatnonzero(size >= np.partition(size, -LISTED)[-LISTED])
    return near[np.argsort(-size[near], kind="stable")[:LISTED]]


def _name_answers(prepared: Prepared, rows: FloatArray) -> UnexpectedAnswers:
    """Return the answers as the data call them; expected scores lie between the categories."""
    known, (person, item, code) = prepared.item_parameters, rows[:, :3].T.astype(np.intp)
    kept = [np.array(known.kept[i]) + known.lowest for i in item]
    expected = [
        np.interp(mean, np.arange(len(codes)), codes)
        for mean, codes in zip(rows[:, 3], kept, strict=True)
    ]
    return UnexpectedAnswers(
        person=tuple(prepared.scores.persons[p] for p in person),
        item=tuple(known.items[i] for i in item),
        observed=np.array([codes[x] for codes, x in zip(kept, code, strict=True)], np.int64),
        expected=np.array(expected),
        z=rows[:, 4],
    )
