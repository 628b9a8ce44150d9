"""Mean abilities of groups of persons, with errors of the sampling design.

In: answers, a calibration, and a way to split the persons. Out: a mean for every group with its
error, and a test of all groups together. Confidential.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from discreet.answers.survey import DesignTest, SurveyDesign, apply_rao_scott
from discreet.errors import BadUsage, FitWarning
from discreet.items.groups import load_grouped, split_groups
from discreet.persons.scoring import score
from discreet.results.estimate import two_sided_quantile
from discreet.tables.reading import ReadingWords
from discreet.tabular import Tabular, list_field_columns
from discreet.types import FloatArray, Int64Array

COLUMNS = ("group", "persons", "share", "mean", "se", "lower", "upper", "sd")


@dataclass(frozen=True, eq=False)
class GroupMeans(Tabular):
    """Mean abilities of groups. Confidential.

    Attributes
    ----------
    group, persons
        Labels, and how many persons have an ability.
    share
        Share of the population, by the weights; of the sample without weights.
    mean, se, lower, upper
        In logits, with 95% intervals by Student's distribution.
    sd
        Of the estimated abilities; their errors of measurement are in it.
    covariance, degrees
        Of the means, and its degrees of freedom. Groups of one sample share primary sampling units,
        so that their means are correlated.
    test
        Of equal means of all groups, with Rao and Scott's correction for the design.

    Examples
    --------
    >>> import discreet
    >>> answers = discreet.datasets.lsat()
    >>> means = find_group_means(answers, discreet.fit(answers), ["a", "b"] * 500)
    >>> means.mean.round(2).tolist()
    [1.33, 1.34]
    """

    group: tuple[str, ...]
    persons: Int64Array
    share: FloatArray
    mean: FloatArray
    se: FloatArray
    lower: FloatArray
    upper: FloatArray
    sd: FloatArray
    covariance: FloatArray
    degrees: int
    test: DesignTest
    warnings: tuple[FitWarning, ...] = ()

    def to_dict(self) -> dict[str, list[Any]]:
        """One list per column."""
        return {"group": list(self.group), **list_field_columns(self, *COLUMNS[1:])}

    def compare(self, first: str, second: str) -> tuple[float, float, float]:
        """Return the second mean less the first, its error and its p-value."""
        from scipy.special import stdtr

        for label in (first, second):
            if label not in self.group:
                raise BadUsage(f"there is no group {label!r}; choose among {', '.join(self.group)}")
        sign = np.array([(label == second) * 1.0 - (label == first) for label in self.group])
        difference = float(sign @ self.mean)
        se = float(np.sqrt(sign @ self.covariance @ sign))
        return difference, se, float(2 * stdtr(self.degrees, -abs(difference / se)))


def find_group_means(
    responses: Any, calibration: Any, groups: Any, **reading: Unpack[ReadingWords]
) -> GroupMeans:
    """Estimate the mean ability of every group. Confidential.

    Abilities are weighted likelihood estimates (Warm 1989), nearly unbiased for every person, and
    so are their means. Difficulties are taken as known. With weights the means are those of the
    population (:meth:`discreet.Responses.weigh`), and errors come from the design; without, persons
    are a simple random sample.

    Parameters
    ----------
    responses, calibration, reading
        As for :func:`discreet.score`.
    groups
        The name of a group column, one label for each person, or a mapping from person to label.

    Examples
    --------
    >>> import discreet
    >>> answers = discreet.datasets.lsat()
    >>> means = find_group_means(answers, discreet.fit(answers), ["a", "b"] * 500)
    >>> means.persons.tolist()
    [500, 500]
    """
    source = load_grouped(responses, groups, reading)
    split = split_groups(source, groups)
    ability = score(source, calibration, method="warm").ability
    sample = source.sample or SurveyDesign.simple(source.n_persons)
    number = np.where(np.isfinite(ability), split.number, -1)
    inside = number[:, None] == np.arange(len(split.labels))
    persons = inside.sum(axis=0)
    if (persons < 2).any():
        lacking = split.labels[int(np.argmin(persons))]
        raise BadUsage(
            f"the group {lacking!r} has {persons.min()} persons with an ability; a mean with its "
            "error needs two. Join it with another group, or leave its labels blank"
        )
    weight = inside * sample.weight[:, None]
    total = weight.sum(axis=0)
    known = np.where(np.isfinite(ability), ability, 0.0)
    mean = known @ weight / total
    moves = weight * (known[:, None] - mean) / total
    variance = (moves * (known[:, None] - mean)).sum(axis=0) * persons / (persons - 1)
    deviation = sample.deviate(moves)
    covariance = deviation.T @ deviation
    degrees = max(sample.degrees, 1)
    se = np.sqrt(covariance.diagonal())
    half = two_sided_quantile(0.05, degrees) * se
    spread = variance / persons
    test = apply_rao_scott(
        mean[1:] - mean[0],
        deviation[:, 1:] - deviation[:, [0]],
        np.diag(spread[1:]) + spread[0],
        degrees,
    )
    about = split.labels, persons, total / total.sum(), mean, se, mean - half, mean + half
    return GroupMeans(*about, np.sqrt(variance), covariance, degrees, test, split.warnings)
