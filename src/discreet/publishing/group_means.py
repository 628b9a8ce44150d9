"""Private means of groups: how able stated groups are, around difficulties that are public.

In: what was released of each group. Out: a :class:`PrivateMeans`. Abilities are taken as normal
within each group. Everything here is computed from released values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.answers.logistic import logistic
from discreet.answers.residual_sums import CENTRE_BITS
from discreet.errors import BadUsage
from discreet.privacy.accounting import Guarantee
from discreet.privacy.mechanisms.group_means import GRID, NAME, RATIOS, list_score_rows
from discreet.privacy.mechanisms.totals import list_columns
from discreet.privacy.wall import Release
from discreet.tabular import Columns, Tabular
from discreet.types import FloatArray, Int64Array

#: Steps of the fit at most, and when it is settled.
STEPS, SETTLED, LONGEST_STEP = 60, 1e-9, 0.7

#: Standard deviation of the logarithm of a group's spread, around 1: weak, and needed where noise
#: leaves no trace of it.
SPREAD_PRIOR = 0.5

#: Abilities at which scores are looked at.
NODES = np.linspace(-12, 12, 241)


@dataclass(frozen=True, eq=False)
class PrivateMeans(Tabular):
    """Mean abilities of groups, under differential privacy.

    Attributes
    ----------
    groups
        As they were stated.
    mean, se
        In the logits of the public difficulties. The standard error has sampling and noise in it,
        not errors of the difficulties. NaN for groups that are too small.
    spread
        Standard deviation of abilities.
    persons
        How many are in each group, with noise.
    least
        Groups with fewer persons than this, by the noisy number, have no mean.
    guarantee
        What is promised to each person.

    Examples
    --------
    >>> from discreet import PrivateMeans
    >>> [*PrivateMeans.__dataclass_fields__][:4]
    ['groups', 'mean', 'se', 'spread']
    """

    groups: tuple[str, ...]
    mean: FloatArray
    se: FloatArray
    spread: FloatArray
    persons: FloatArray
    least: int
    guarantee: Guarantee

    def to_dict(self) -> Columns:
        """Return a row for each group, with 95% intervals."""
        reach = 1.96 * self.se
        columns = {
            "mean": self.mean,
            "se": self.se,
            "lower": self.mean - reach,
            "upper": self.mean + reach,
            "spread": self.spread,
        }
        numbers = {name: one.tolist() for name, one in columns.items()}
        return {"group": [*self.groups], **numbers, "persons": [*map(round, self.persons)]}


def measure_groups(noisy: Release) -> PrivateMeans:
    """Return the mean abilities of the groups of a release from its noisy values."""
    public = noisy.public
    if noisy.mechanism != NAME:
        raise BadUsage("this release has no means of groups; make one with release_means (--means)")
    difficulty = np.array(public.centre) / 2**CENTRE_BITS
    forms = [
        tabulate_moments(difficulty[list(columns)], rows)
        for columns, rows in zip(list_columns(public), list_score_rows(public), strict=True)
    ]
    shape = len(public.groups), len(forms)
    sums = np.array([noisy.values[name].reshape(shape) for name in RATIOS]) / GRID
    noise = np.array([noisy.laws[name].variance for name in RATIOS]) / GRID**2
    least, persons = noisy.settings["least"], sums[0].sum(axis=1)
    fits = [
        _fit_group(sums[:, group].T, noise, forms) if persons[group] >= least else [np.nan] * 3
        for group in range(len(public.groups))
    ]
    mean, se, spread = np.array(fits, dtype=np.float64).T
    return PrivateMeans(public.groups, mean, se, spread, persons, least, noisy.guarantee)


def _fit_group(
    sums: FloatArray, noise: FloatArray, forms: list[FloatArray]
) -> tuple[float, float, float]:
    """Return mean, its standard error and spread from sums ``[form, block]``, by weighted squares.

    The number of persons is noisy too: what it leaves open is in the weights.
    """
    place = np.zeros(2)  # the mean, and the logarithm of the spread
    prior = np.diag([0.0, SPREAD_PRIOR**-2])
    for _ in range(STEPS):
        precision, pull = prior.copy(), -prior @ place
        for (persons, *observed), form in zip(sums, forms, strict=True):
            expected, covariance = describe_moments(place, form)
            steps = np.eye(2) * 1e-4
            slope = (
                np.transpose(
                    [
                        describe_moments(place + step, form)[0]
                        - describe_moments(place - step, form)[0]
                        for step in steps
                    ]
                )
                / 2e-4
                * max(persons, 1.0)
            )
            spread = max(persons, 1.0) * covariance + np.diag(noise[1:])
            spread += noise[0] * np.outer(expected, expected)
            gain = np.linalg.solve(spread, slope).T
            precision += gain @ slope
            pull += gain @ (np.array(observed) - persons * expected)
        step = np.linalg.solve(precision, pull)
        longest = float(np.abs(step).max())
        place += step * min(1.0, LONGEST_STEP / max(longest, 1e-300))
        if longest < SETTLED:
            break
    se = float(np.sqrt(np.linalg.inv(precision)[0, 0]))
    return float(place[0]), se, float(np.exp(place[1]))


def tabulate_moments(difficulty: FloatArray, rows: Int64Array) -> FloatArray:
    """Return the means of y, y^2, y y, y y^2, y^2 y^2 of persons of each ability, ``[node, 5]``.

    They are those of the very rows that a person with so many right answers adds.
    """
    law = np.ones((len(NODES), 1))
    for right in logistic(NODES[:, None] - difficulty).T[..., None]:
        law = np.pad(law * (1 - right), ((0, 0), (0, 1))) + np.pad(law * right, ((0, 0), (1, 0)))
    y = rows[rows[:, 0] > 0, 1:] / GRID
    return np.asarray(law @ np.hstack([y, y[:, [0, 0, 1]] * y[:, [0, 1, 1]]]))


def describe_moments(place: FloatArray, table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the means of y and y^2 in a group, and their covariance."""
    weight = np.exp(-(((NODES - place[0]) / np.exp(place[1])) ** 2) / 2)
    means = weight @ table / weight.sum()
    products = means[[2, 3, 3, 4]].reshape(2, 2)
    return means[:2], products - np.outer(means[:2], means[:2])
