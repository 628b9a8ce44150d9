"""Conditional maximum likelihood for items with steps: partial credit and rating scale.

In: the items that persons answered, their total scores and how many reached each step. Out:
thresholds, their covariance and the log-likelihood. Given the items that a person answered and the
total score, the answers do not depend on the ability (Andersen 1977, Masters 1982):

    log P = -sum_i sum_{k <= x_i} d_ik - log gamma_score,

with gamma the coefficients of prod_i sum_x t^x exp(-sum_{k <= x} d_ik). Right and wrong is the case
of one step, and takes the same path. In the rating scale model d_ik = b_i + t_k. Confidential.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from discreet.errors import BadUsage, DisconnectedItems
from discreet.models.conditional.maximise import Maximum, Structure, Surface, Undetermined, maximise
from discreet.models.conditional.patterns import Patterns
from discreet.models.conditional.rasch import check_conditional_size
from discreet.results.estimate import Solution
from discreet.text import name_some
from discreet.types import BoolArray, FloatArray, Int64Array


class StepModel(StrEnum):
    """How thresholds of different items are related."""

    PARTIAL_CREDIT = "partial-credit"
    RATING_SCALE = "rating-scale"


@dataclass(frozen=True, eq=False)
class StepPatterns:
    """All that conditional likelihood needs of answers with steps.

    Attributes
    ----------
    patterns
        Sets of answered items, and how many persons have which total score on them.
    steps
        Per item, its highest category.
    reached
        ``[item, step]``: persons in the category k or a higher one, k = 1, 2, ...; zero beyond
        an item's steps.
    items
        What messages call the items; by default by their numbers.
    """

    patterns: Patterns
    steps: Int64Array
    reached: Int64Array
    items: tuple[str, ...] = ()

    def name(self, item: int) -> str:
        """Return what messages call an item."""
        return f"item '{self.items[item]}'" if self.items else f"item {item + 1}"

    @property
    def used(self) -> BoolArray:
        """Which steps there are, ``[item, step]``."""
        return np.asarray(np.arange(1, self.reached.shape[1] + 1) <= self.steps[:, None])

    @property
    def observed(self) -> Int64Array:
        """Reached steps of all persons but those with the highest score on all they answered."""
        patterns = self.patterns
        perfect = patterns.score == patterns.highest(self.steps)[patterns.pattern]
        return np.asarray((self.reached - patterns.item_sums(perfect)[:, None]) * self.used)

    @property
    def categories(self) -> Int64Array:
        """Persons in each category, ``[item, category]``; zero beyond an item's steps."""
        answers = self.patterns.item_sums(np.ones(len(self.patterns.score), dtype=bool))
        above = np.column_stack([answers, self.reached, np.zeros_like(answers)])
        return np.asarray(above[:, :-1] - above[:, 1:])


@dataclass(frozen=True, eq=False)
class StepFit:
    """A maximum of the conditional likelihood of items with steps.

    Attributes
    ----------
    model
        Partial credit or rating scale.
    threshold
        ``[item, step]``, NaN beyond an item's steps; the mean of the items' locations is zero.
    covariance
        ``[node, node]`` of the thresholds, item after item, step after step.
    free
        How many parameters were estimated.
    log_likelihood
        Persons with the lowest or the highest score add zero.
    solution
        How it was found.
    """

    model: StepModel
    threshold: FloatArray
    covariance: FloatArray
    free: int
    log_likelihood: float
    solution: Solution

    @property
    def used(self) -> BoolArray:
        """Which steps there are, ``[item, step]``."""
        return ~np.isnan(self.threshold)

    @property
    def se(self) -> FloatArray:
        """Standard errors of the thresholds, ``[item, step]``."""
        return self._spread(np.sqrt(self.covariance.diagonal()))

    @property
    def location(self) -> FloatArray:
        """Mean of each item's thresholds."""
        return np.asarray(np.nanmean(self.threshold, axis=1))

    @property
    def location_covariance(self) -> FloatArray:
        """Covariance of the locations, ``[item, item]``."""
        weight = self._location_weights()
        return np.asarray(weight @ self.covariance @ weight.T)

    def _spread(self, node: FloatArray) -> FloatArray:
        out = np.full(self.threshold.shape, np.nan)
        out[self.used] = node
        return out

    def _location_weights(self) -> FloatArray:
        item = np.nonzero(self.used)[0]
        inside = np.arange(len(self.used))[:, None] == item
        return np.asarray(inside / self.used.sum(axis=1)[:, None])


def maximise_steps(
    answers: StepPatterns,
    model: StepModel | str = StepModel.PARTIAL_CREDIT,
    *,
    start: FloatArray | None = None,
) -> StepFit:
    """Estimate thresholds by conditional maximum likelihood.

    Parameters
    ----------
    answers
        Answered items, total scores and reached steps.
    model
        ``"partial-credit"``: every threshold is free. ``"rating-scale"``: thresholds are an item's
        location plus a distance that is the same for all items.
    start
        Thresholds ``[item, step]`` to start from; by default from the categories' frequencies.

    Raises
    ------
    DisconnectedItems
        If the answers do not determine the thresholds: an unused category, or items that hang
        together by too few persons.
    BadUsage
        If items of a rating scale differ in their steps, or if there are too many steps.
    """
    model = StepModel(model)
    structure = _build_structure(answers, model)
    nodes = start if start is not None else _frequencies(answers)
    surface = Surface(answers.patterns, answers.observed, structure)
    try:
        maximum = maximise(surface, structure.fit(nodes))
    except Undetermined as error:
        raise DisconnectedItems(_explain_open(answers, error.direction)) from None
    return _assemble(model, structure, maximum)


def _build_structure(answers: StepPatterns, model: StepModel) -> Structure:
    used = answers.used
    check_conditional_size(answers.patterns, used.shape[1])
    if model is StepModel.RATING_SCALE:
        _check_rating_scale(answers)
        return Structure(used, rating_basis(*used.shape))
    _check_categories(answers)
    return Structure(used)


def rating_basis(m: int, steps: int) -> FloatArray:
    """Locations, then distances of all steps but the last, which follows as they sum to zero."""
    distance = np.concatenate([np.eye(steps - 1), -np.ones((1, steps - 1))])
    return np.hstack([np.repeat(np.eye(m), steps, axis=0), np.tile(distance, (m, 1))])


def _check_categories(answers: StepPatterns) -> None:
    inside = np.column_stack([answers.steps > 0, answers.used])
    empty = np.argwhere(inside & (answers.categories == 0))
    if len(empty) or (answers.steps == 0).any():
        alone = np.flatnonzero(answers.steps == 0).tolist()
        labels = [f"{answers.name(i)} category {k}" for i, k in empty]
        labels += [f"{answers.name(i)} (one category only)" for i in alone]
        raise DisconnectedItems(
            f"nobody is in {name_some(labels)}: the steps around an unused category are not "
            "determined; drop or merge it for this item, or use the rating scale model"
        )


def _check_rating_scale(answers: StepPatterns) -> None:
    most_steps = int(answers.steps.max(initial=0))
    if (answers.steps != most_steps).any():
        short = [answers.name(i) for i in np.flatnonzero(answers.steps != most_steps).tolist()]
        raise BadUsage(
            f"a rating scale has the same categories for all items; {len(short)} of "
            f"{len(answers.steps)} items have fewer than {most_steps} steps ({name_some(short)}); "
            "use the partial credit model, or say that these items have more categories than were "
            "used"
        )
    total = answers.categories.sum(axis=0)
    if (total == 0).any():
        raise DisconnectedItems(
            f"nobody is in category {int(np.argmin(total))} of any item, so that the steps around "
            "it are not determined; merge it with a neighbour"
        )


def _frequencies(answers: StepPatterns) -> FloatArray:
    """Logarithms of quotients of neighbouring categories, half an answer added to each."""
    count = answers.categories + 0.5
    return np.asarray(np.log(count[:, :-1] / count[:, 1:]))


def _explain_open(answers: StepPatterns, direction: FloatArray) -> str:
    """Name the thresholds on the smaller side of an open direction."""
    middle = (np.nanmin(direction) + np.nanmax(direction)) / 2
    sides = [np.argwhere(direction < middle), np.argwhere(direction > middle)]
    moved = min(sides, key=len)
    thresholds = name_some([f"{answers.name(i)} step {k + 1}" for i, k in moved])
    return (
        f"the answers do not determine the thresholds of {thresholds} relative to the others: the "
        "likelihood does not fall, however far they are moved. Leave these items out, merge their "
        "categories, or collect more answers"
    )


def _assemble(model: StepModel, structure: Structure, maximum: Maximum) -> StepFit:
    threshold = structure.spread(maximum.parameter)
    return StepFit(
        model=model,
        threshold=np.where(structure.used, threshold, np.nan),
        covariance=structure.covariance(maximum.information),
        free=len(maximum.parameter) - 1,
        log_likelihood=maximum.log_likelihood,
        solution=maximum.solution,
    )
