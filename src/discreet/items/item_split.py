"""Conditional likelihood ratio tests of single items between groups, by item split.

In: answers, and the group of each person. Out: for every item the test of equal thresholds in all
groups, and its location in each. An item is split where each group has a column of its own for it,
empty for the others; all other items are the same for everybody, and hold the scale. Confidential.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.answers.pack import store_codes
from discreet.answers.responses import Responses
from discreet.errors import DisconnectedItems, NotConverged
from discreet.models.conditional.estimator import ConditionalFit, find_maximum
from discreet.types import BoolArray, FloatArray, IndexArray


@dataclass(frozen=True, eq=False)
class ItemSplit:
    """One item with thresholds of its own in every group.

    ``location`` has one number per group, ``covariance`` is theirs, and ``statistic`` is
    chi-squared with so many ``degrees`` where the groups' thresholds are equal.
    """

    location: FloatArray
    covariance: FloatArray
    statistic: float
    degrees: int


def split_item(
    responses: Responses, group: IndexArray, item: int, *, free: BoolArray, model: str
) -> ItemSplit | str:
    """Test one item for equal thresholds in all groups; return why not where it is impossible.

    Parameters
    ----------
    responses, group
        Answers, and the number of each person's group.
    item
        Its position.
    free
        Which other items are split too, on both sides of the test: those that are no anchors.
    model
        As for :func:`discreet.fit`.

    References
    ----------
    Andersen, E. B. (1973). A goodness of fit test for the Rasch model. Psychometrika 38(1),
    123-140. Thissen, D., Steinberg, L. and Wainer, H. (1993). Detection of differential item
    functioning using the parameters of item response models. In P. W. Holland and H. Wainer (eds.),
    Differential item functioning. Erlbaum.
    """
    groups = int(group.max()) + 1
    others = free.copy()
    others[item] = False
    lacking = _find_lacking(responses, group, item)
    if lacking:
        return lacking
    try:
        apart = _maximise_split(responses, group, [*np.flatnonzero(others), item], model)
        together = _maximise_split(responses, group, list(np.flatnonzero(others)), model)
    except (DisconnectedItems, NotConverged) as error:
        return f"not determined: {error}"
    last = slice(len(apart.location) - groups, None)
    return ItemSplit(
        location=apart.location[last],
        covariance=_location_covariance(apart)[last, last],
        statistic=2 * (apart.log_likelihood - together.log_likelihood),
        degrees=apart.free - together.free,
    )


def _find_lacking(responses: Responses, group: IndexArray, item: int) -> str:
    """Say which category of an item some group does not use."""
    cells = responses.rows(0, responses.n_persons)[:, item]
    for label in range(int(group.max()) + 1):
        used = set(cells[(group == label) & (cells >= 0)].tolist())
        missing = sorted(set(range(responses.steps[item] + 1)) - used)
        if missing:
            return f"no answers in category {' or '.join(map(str, missing))} in one group"
    return ""


def _maximise_split(
    responses: Responses, group: IndexArray, items: list[int], model: str
) -> ConditionalFit:
    """Fit with some items split; the columns of each stand together, the last item's last."""
    cells = responses.rows(0, responses.n_persons)
    common = [column for column in range(responses.n_items) if column not in set(items)]
    parts, steps = [cells[:, common]], [responses.steps[column] for column in common]
    groups = int(group.max()) + 1
    for item in items:
        column = np.where(group[:, None] == np.arange(groups), cells[:, [item]], -1)
        parts.append(column)
        steps += [responses.steps[item]] * groups
    codes = np.concatenate(parts, axis=1)
    maximum = find_maximum(Responses.from_store(store_codes(codes, steps)), model)
    if len(maximum.location) < len(steps):
        raise DisconnectedItems("the answers of the groups do not link all items")
    return maximum


def _location_covariance(maximum: ConditionalFit) -> FloatArray:
    """Return the covariance of the means of the items' thresholds."""
    used = np.isfinite(maximum.threshold)
    mine = np.arange(len(used))[:, None] == np.nonzero(used)[0]
    weight = mine / used.sum(axis=1, keepdims=True)
    return np.asarray(weight @ maximum.covariance @ weight.T)
