"""Marginal likelihood with a slope for every item and normal abilities in every group.

In: answers of several groups of persons (periods, say) to some of the same items. Out: intercepts
and slopes of the items, mean and standard deviation of the abilities of every group, and for one
item how its intercept differs between the groups, with a score test. Confidential.

A right answer has the logit ``slope * ability - intercept``. With steps every step has its own
intercept and the item one slope (generalised partial credit). The abilities of the first group
have mean 0 and standard deviation 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from discreet.errors import NotConverged
from discreet.models.marginal import find_chances
from discreet.models.marginal.maximise import normal_grid
from discreet.types import BoolArray, FloatArray, IndexArray, Int8Array, Int64Array

#: Numbers per work array: 16 MB.
CHUNK_CELLS = 1 << 21
#: Precision of weak normal priors for slopes (about 1) and log standard deviations (about 0).
#: They keep numbers finite where a handful of persons answered.
PRIOR = 1.0
#: Steps of the climb; about 7 are taken.
STEPS = 200
#: Squared distance from the maximum in standard errors, per parameter, at which steps stop to sum
#: outer products again.
NEAR = 0.1
#: The same for all parameters together, at which steps end.
TOLERANCE = 1e-4
#: Persons who are enough to find where to start.
THIN = 10_000
#: Logits that one step may move a parameter.
LONGEST = 2.0
#: Right or wrong answers, whichever are rarer, from which on chi-squared describes a test.
LEAST = 5.0
#: Steps to the locations of an item in every group; where all answers of a group are right, there
#: is no end to them.
FREE_STEPS = 3


@dataclass(frozen=True, eq=False)
class GroupAnswers:
    """Answers of several groups of persons to the same items.

    Attributes
    ----------
    codes
        For each group ``[person, item]``: scores from 0, -1 where missing.
    steps
        Per item, its highest score.
    """

    codes: tuple[Int8Array, ...]
    steps: Int64Array

    @cached_property
    def item_of(self) -> IndexArray:
        """The item of every step."""
        return np.repeat(np.arange(len(self.steps)), self.steps)

    @cached_property
    def step_of(self) -> Int64Array:
        """The number of every step in its item, from 1."""
        first = np.cumsum(self.steps) - self.steps
        return np.asarray(np.arange(len(self.item_of)) - first[self.item_of] + 1)

    @cached_property
    def answered(self) -> Int64Array:
        """Persons who answered, ``[group, item]``."""
        return np.array([(codes >= 0).sum(axis=0) for codes in self.codes])

    @cached_property
    def compared(self) -> BoolArray:
        """Whether enough of a group answered an item to test its shift, ``[group, item]``.

        ``LEAST`` of the rarer answers must be expected, if all groups were alike.
        """
        scores = [np.maximum(codes, 0).sum(axis=0, dtype=np.int64) for codes in self.codes]
        mean = np.sum(scores, axis=0) / np.maximum(self.answered.sum(axis=0), 1)
        return np.asarray(self.answered * np.minimum(mean, self.steps - mean) >= LEAST)

    @cached_property
    def persons(self) -> int:
        """Persons of all groups with an answer."""
        return sum(int((codes >= 0).any(axis=1).sum()) for codes in self.codes)

    def steps_of(self, items: IndexArray) -> IndexArray:
        """Return the positions of the steps of some items, item after item."""
        return np.concatenate([np.flatnonzero(self.item_of == item) for item in items])

    def take(self, items: IndexArray) -> GroupAnswers:
        """Return the answers to some of the items."""
        return GroupAnswers(tuple(codes[:, items] for codes in self.codes), self.steps[items])

    def thin(self, every: int) -> GroupAnswers:
        """Return the answers of every so manyth person of each group."""
        return GroupAnswers(tuple(codes[::every] for codes in self.codes), self.steps)


@dataclass(frozen=True, eq=False)
class GroupModel:
    """Parameters: intercepts ``[group, step]``, slopes ``[item]``, abilities ``[group]``."""

    intercept: FloatArray
    slope: FloatArray
    mean: FloatArray
    log_sd: FloatArray

    def move(self, step: FloatArray) -> GroupModel:
        """Add to the parameters, in the order of :func:`_number_parameters`."""
        nodes, items, others = self.intercept.shape[1], len(self.slope), len(self.mean) - 1
        parts = np.split(step, np.cumsum([nodes, items, others]))
        mean, log_sd = (np.concatenate([[0.0], part]) for part in parts[2:])
        moved = self.intercept + parts[0], self.slope + parts[1]
        return GroupModel(*moved, self.mean + mean, self.log_sd + log_sd)

    def take(self, items: IndexArray, steps: IndexArray) -> GroupModel:
        """Return the parameters of some of the items, whose steps are these."""
        return GroupModel(self.intercept[:, steps], self.slope[items], self.mean, self.log_sd)

    def put(self, items: IndexArray, steps: IndexArray, model: GroupModel) -> GroupModel:
        """Replace those of some of the items, and of all groups."""
        intercept, slope = self.intercept.copy(), self.slope.copy()
        intercept[:, steps], slope[items] = model.intercept, model.slope
        return GroupModel(intercept, slope, model.mean, model.log_sd)


@dataclass(frozen=True, eq=False)
class GroupFit:
    """A model and the scores of the persons: derivatives of their log-likelihoods.

    Attributes
    ----------
    value
        Log-likelihood of all answers, and of the parameters under the weak priors.
    gradient
        Sum of the scores of every group, ``[group, parameter]``.
    products
        Sum of their outer products, ``[group, parameter, parameter]``, or none. The parameters of a
        group are the intercepts of the steps, slopes, its mean and its log standard deviation.
    """

    answers: GroupAnswers
    model: GroupModel
    value: float
    gradient: FloatArray
    products: FloatArray | None

    @cached_property
    def place(self) -> IndexArray:
        """Where the parameters of every group stand among all, ``[group, parameter]``."""
        return _number_parameters(
            len(self.model.mean), self.model.intercept.shape[1], len(self.model.slope)
        )

    @cached_property
    def slopes(self) -> slice:
        """Where the slopes stand among all parameters."""
        nodes = self.model.intercept.shape[1]
        return slice(nodes, nodes + len(self.model.slope))

    @cached_property
    def total(self) -> FloatArray:
        """The gradient by all parameters, priors included."""
        total = np.zeros(int(self.place.max()) + 1)
        np.add.at(total, self.place, self.gradient)
        total[self.slopes] -= PRIOR * (self.model.slope - 1)
        total[len(total) - len(self.model.log_sd) : -1] -= PRIOR * self.model.log_sd[1:]
        return total[:-1]

    @cached_property
    def inverse(self) -> FloatArray:
        """Covariance of all parameters: the inverse of the summed outer products."""
        size = int(self.place.max()) + 1
        matrix = np.zeros((size, size))
        for position, products in zip(self.place, self.summed, strict=True):
            matrix[np.ix_(position, position)] += products
        prior = np.zeros(size)
        prior[self.slopes] = prior[size - len(self.model.log_sd) : -1] = PRIOR
        return np.asarray(np.linalg.inv((matrix + np.diag(prior))[:-1, :-1]))

    @property
    def summed(self) -> FloatArray:
        """The outer products."""
        if self.products is None:
            raise ValueError("this fit was evaluated without outer products")
        return self.products


def _number_parameters(groups: int, nodes: int, items: int) -> IndexArray:
    """Return numbers for intercepts, slopes, means and log standard deviations of all groups.

    Those of the first group are fixed and share the last number.
    """
    shared, others = nodes + items, groups - 1
    numbers = np.empty((groups, shared + 2), dtype=np.intp)
    numbers[:, :shared] = np.arange(shared)
    numbers[0, shared:] = shared + 2 * others
    numbers[1:, shared] = shared + np.arange(others)
    numbers[1:, shared + 1] = shared + others + np.arange(others)
    return numbers


def evaluate_groups(
    answers: GroupAnswers, model: GroupModel, *, with_products: bool = True
) -> GroupFit:
    """Sum up the persons' log-likelihoods, their derivatives and, if asked, outer products."""
    groups, nodes = model.intercept.shape
    size = nodes + len(model.slope) + 2
    gradient = np.zeros((groups, size))
    products = np.zeros((groups, size, size)) if with_products else None
    value = -0.5 * PRIOR * float(((model.slope - 1) ** 2).sum() + (model.log_sd**2).sum())
    for group, codes in enumerate(answers.codes):
        grid = _place_grid(answers, model, group)
        information = np.zeros(nodes)
        for start in range(0, len(codes), grid.chunk):
            part = _score_persons(answers, grid, codes[start : start + grid.chunk])
            value += part.log_likelihood
            gradient[group] += part.scores.sum(axis=0)
            if products is not None:
                products[group] += part.scores.T @ part.scores
                # The observed information about the intercept of every step.
                square = part.posterior @ (grid.chance**2).T
                information += np.asarray(
                    (part.has * (part.chance - 2 * square + part.chance**2)).sum(axis=0)
                )
        if products is not None:
            _set_information(products[group], information)
    return GroupFit(answers, model, value, gradient, products)


def _set_information(products: FloatArray, information: FloatArray) -> None:
    """Replace the squares of the intercepts' scores by the observed information (Louis 1982).

    Squares of rare answers vary much. Where there were more than expected, all products of the
    step are scaled down. Where there were fewer, the square alone grows: answers that did not
    happen go with no other score.
    """
    nodes = len(information)
    square = products.diagonal()[:nodes].copy()
    scale = np.ones(len(products))
    scale[:nodes] = np.sqrt(np.clip(information / np.maximum(square, 1e-300), 0.0, 1.0))
    products *= scale * scale[:, None]
    products[np.arange(nodes), np.arange(nodes)] += np.maximum(information - square, 0.0)


@dataclass(frozen=True, eq=False)
class _Grid:
    """Abilities of a group, and what they imply for every item or step, ``[item, node]``."""

    nodes: FloatArray
    log_weights: FloatArray
    mean: float
    sd: float
    intercept: FloatArray
    slope: FloatArray
    chance: FloatArray
    load: FloatArray
    expected: FloatArray

    @property
    def ability(self) -> FloatArray:
        """The nodes on the scale of the abilities."""
        return self.mean + self.sd * self.nodes

    @property
    def chunk(self) -> int:
        """Persons whose scores are computed together."""
        return max(1, CHUNK_CELLS // (2 * len(self.intercept) + len(self.nodes)))


def _place_grid(answers: GroupAnswers, model: GroupModel, group: int) -> _Grid:
    """Choose nodes for a group as :func:`normal_grid` does, and compute all chances there."""
    item_of, sd = answers.item_of, float(np.exp(model.log_sd[group]))
    information = (answers.steps * model.slope) ** 2 @ (answers.answered[group] > 0)
    nodes, log_weights = normal_grid(sd, float(information))
    mean, intercept = float(model.mean[group]), model.intercept[group]
    ability = model.slope[:, None] * (mean + sd * nodes)
    chance, load = find_chances(ability, intercept, item_of)
    first = np.cumsum(answers.steps) - answers.steps
    expected = np.add.reduceat(chance, first, axis=0)
    settings = nodes, log_weights, mean, sd, intercept, model.slope
    return _Grid(*settings, chance, load[first], expected)


@dataclass(frozen=True, eq=False)
class _Scored:
    """The log-likelihood of some persons and their scores, ``[person, parameter]``."""

    log_likelihood: float
    scores: FloatArray
    posterior: FloatArray
    has: FloatArray
    chance: FloatArray


def _score_persons(answers: GroupAnswers, grid: _Grid, codes: Int8Array) -> _Scored:
    """Return the derivatives of persons' log-likelihoods, by the posterior of their abilities."""
    item_of, ability = answers.item_of, grid.ability
    nodes = len(item_of)
    has, score = (codes >= 0).astype(np.float64), np.maximum(codes, 0).astype(np.float64)
    has_step, reached = has, score
    if nodes > len(grid.slope):
        has_step = has[:, item_of]
        reached = (codes[:, item_of] >= answers.step_of).astype(np.float64)
    log_like = np.outer(score @ grid.slope, ability) - has @ grid.load + grid.log_weights
    top = log_like.max(axis=1, keepdims=True)
    posterior = np.exp(log_like - top)
    total = posterior.sum(axis=1, keepdims=True)
    posterior /= total
    chance = posterior @ grid.chance.T
    scores = np.empty((len(codes), nodes + len(grid.slope) + 2))
    scores[:, :nodes] = has_step * chance - reached
    scores[:, nodes:-2] = score * (posterior @ ability)[:, None]
    scores[:, nodes:-2] -= has * (posterior @ (grid.expected * ability).T)
    scores[:, -2] = posterior @ grid.nodes / grid.sd
    scores[:, -1] = posterior @ grid.nodes**2 - 1
    value = float((np.log(total) + top).sum() - reached.sum(axis=0) @ grid.intercept)
    return _Scored(value, scores, posterior, has_step, chance)


def fit_groups(answers: GroupAnswers, start: GroupModel | None = None) -> GroupFit:
    """Maximise the likelihood; of every item at least two categories occur.

    Steps are those of Berndt, Hall, Hall and Hausman: outer products of scores stand for second
    derivatives. Near the maximum they are corrected as BFGS does, so that with few persons too a
    few steps are enough.
    """
    point = evaluate_groups(answers, _start(answers) if start is None else start)
    inverse = point.inverse
    for _ in range(STEPS):
        step = inverse @ point.total
        distance = float(point.total @ step)
        if distance < TOLERANCE:
            return evaluate_groups(answers, point.model) if point.products is None else point
        with_products = distance > NEAR * len(step)
        step, moved = _advance(point, step, point.model.move, with_products=with_products)
        if with_products:
            inverse = moved.inverse
        else:
            inverse = _correct(inverse, step, point.total - moved.total)
        point = moved
    raise NotConverged(
        f"marginal likelihood with slopes: not at its maximum after {STEPS} steps. Look for items "
        "or periods with very few answers and leave them out, or compare calibrations"
    )


def _advance(
    point: GroupFit,
    step: FloatArray,
    move: Callable[[FloatArray], GroupModel],
    *,
    with_products: bool,
) -> tuple[FloatArray, GroupFit]:
    """Take the step, halved until the likelihood does not fall."""
    step = step * min(1.0, LONGEST / max(float(np.abs(step).max()), 1e-300))
    for _ in range(40):
        moved = evaluate_groups(point.answers, move(step), with_products=with_products)
        if moved.value >= point.value - 1e-11 * abs(point.value):
            return step, moved
        step = step / 2
    raise NotConverged(
        "marginal likelihood with slopes: no step increases it. Compare calibrations instead"
    )


def _correct(inverse: FloatArray, step: FloatArray, change: FloatArray) -> FloatArray:
    """Return the inverse second derivatives after a step that changed the gradient (BFGS)."""
    along = float(change @ step)
    if along <= 0:
        return inverse
    turned = inverse @ change / along
    cross = np.outer(turned, step)
    inner = (1 + float(change @ turned)) / along
    return np.asarray(inverse + inner * np.outer(step, step) - cross - cross.T)


def _start(answers: GroupAnswers) -> GroupModel:
    """Start at logits of neighbouring categories and slopes of 1; of many persons, fit some."""
    every = answers.persons // THIN
    if every > 1:
        return fit_groups(answers.thin(every)).model
    item, step, groups = answers.item_of, answers.step_of, len(answers.codes)
    below, here = (
        np.array([(codes[:, item] == step - less).sum(axis=0) for codes in answers.codes])
        for less in (1, 0)
    )
    group_intercept = np.log((below + 0.5) / (here + 0.5))
    intercept = np.log((below.sum(axis=0) + 0.5) / (here.sum(axis=0) + 0.5))
    weight = np.minimum(below, here) + 1e-9
    mean = (weight * (intercept - group_intercept)).sum(axis=1) / weight.sum(axis=1)
    rows = np.repeat((intercept - mean[0])[None], groups, axis=0)
    return GroupModel(rows, np.ones(len(answers.steps)), mean - mean[0], np.zeros(groups))


# --- one item between groups ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ItemShift:
    """The location of one item in every group, and whether it is the same in all.

    Attributes
    ----------
    location, covariance
        ``[group]`` and ``[group, group]``: the mean intercept of its steps less slope times the
        ability at which the items of the origin have mean zero; NaN where too few answered.
    statistic, degrees
        The score test of equal locations, and the degrees of freedom of its chi-squared law.
    step
        From the parameters to those with a location for every group: a step for all parameters,
        and then one for the item's intercepts in every group.
    """

    location: FloatArray
    covariance: FloatArray
    statistic: float
    degrees: int
    step: FloatArray


def find_origin(fit: GroupFit, items: BoolArray) -> float:
    """Return the ability at which these items have logits with mean zero."""
    location = np.bincount(fit.answers.item_of, fit.model.intercept[0]) / fit.answers.steps
    return float(location[items].sum() / fit.model.slope[items].sum())


def shift_item(fit: GroupFit, item: int, origin: BoolArray) -> ItemShift:
    """Test whether an item has the same location in all groups, and find it in each.

    What intercepts, slopes, means and standard deviations explain is projected out of the
    persons' scores by the location in every group: an efficient score test, whose variance comes
    from the outer products of the scores.

    Parameters
    ----------
    fit
        A maximum of the likelihood with equal locations in all groups.
    item
        Its position.
    origin
        The items whose locations have mean zero.
    """
    present = np.flatnonzero(fit.answers.compared[:, item])
    # The efficient scores of an item's shifts, their inverse spread, and cross products.
    # The cross products are those with the scores by all parameters. The last group has no shift:
    # an equal shift in all groups is the item's own intercept.
    nodes, free = np.flatnonzero(fit.answers.item_of == item), present[:-1]
    products = fit.summed[free][:, :, nodes].sum(axis=2)
    cross = np.zeros((int(fit.place.max()) + 1, len(free)))
    np.add.at(cross, (fit.place[free], np.arange(len(free))[:, None]), products)
    cross = cross[:-1]
    explained = fit.inverse @ cross
    spread = np.diag(products[:, nodes].sum(axis=1)) - cross.T @ explained
    score = fit.gradient[free][:, nodes].sum(axis=1) - explained.T @ fit.total
    variance = np.asarray(np.linalg.pinv(spread, hermitian=True), float)
    shift = variance @ score
    step = fit.inverse @ (fit.total - cross @ shift)
    group_shift = np.zeros(len(fit.place))
    group_shift[present[:-1]] = shift
    along = _derive_location(fit, item, origin)
    turned = np.eye(len(present), len(shift)) - along @ fit.inverse @ cross
    # Scores that parameters were fitted to vary too little: as many persons less count.
    share = 1 - len(fit.total) / fit.answers.persons
    covariance = np.full((len(group_shift), len(group_shift)), np.nan)
    covariance[np.ix_(present, present)] = (
        turned @ variance @ turned.T + along @ fit.inverse @ along
    ) / share
    return ItemShift(
        location=_start_location(fit, item, origin) + along @ step + group_shift,
        covariance=covariance,
        statistic=share * float(score @ shift),
        degrees=len(shift),
        step=np.append(step, group_shift),
    )


def free_item(fit: GroupFit, item: int, origin: BoolArray) -> ItemShift:
    """Do as :func:`shift_item`, with exact locations of an item that may have drifted far."""
    tested = shift = shift_item(fit, item, origin)
    nodes = fit.answers.item_of == item

    def move(step: FloatArray) -> GroupModel:
        common, group_shift = np.split(step, [len(fit.total)])
        moved = fit.model.move(common)
        intercept = moved.intercept + group_shift[:, None] * nodes
        return replace(moved, intercept=intercept)

    for _ in range(FREE_STEPS):
        _, fit = _advance(fit, shift.step, move, with_products=True)
        shift = shift_item(fit, item, origin)
    location = _start_location(fit, item, origin)
    return replace(tested, location=location, covariance=shift.covariance)


def _start_location(fit: GroupFit, item: int, origin: BoolArray) -> FloatArray:
    """Return the location of an item in the groups that are compared, NaN in the others."""
    intercept = fit.model.intercept[:, fit.answers.item_of == item].mean(axis=1)
    location = intercept - fit.model.slope[item] * find_origin(fit, origin)
    return np.where(fit.answers.compared[:, item], location, np.nan)


def _derive_location(fit: GroupFit, item: int, origin: BoolArray) -> FloatArray:
    """Return the derivative of an item's location by all parameters."""
    ability, slope = find_origin(fit, origin), fit.model.slope
    share = -slope[item] * origin / slope[origin].sum()
    share[item] += 1.0
    along = np.zeros(len(fit.total))
    along[: fit.slopes.start] = (share / fit.answers.steps)[fit.answers.item_of]
    along[fit.slopes] = -ability * share
    return along
