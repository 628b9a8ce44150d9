"""Andersen's likelihood ratio test of equal difficulties in every group.

In: answers and a split of the persons. Out: one test for all items. Confidential.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.analysis.groups import Split, split_persons
from discreet.analysis.persons import accept_responses
from discreet.answers.responses import Responses
from discreet.errors import DisconnectedItems
from discreet.markup import brief_repr
from discreet.models.conditional import find_maximum
from discreet.models.connection import name_some
from discreet.results.warnings import Kind, Notice
from discreet.types import FloatArray


@dataclass(frozen=True, eq=False)
class AndersenTest:
    """Conditional likelihood of the groups apart against all together. Confidential.

    Attributes
    ----------
    statistic, degrees, p_value
        Chi-squared with ``(groups - 1) (items - 1)`` degrees of freedom when the model holds.
    groups, persons
        Labels and sizes of the groups.
    items, difficulty
        Items compared, and their difficulties ``[group, item]``, mean zero in each group.
    excluded
        Items that could not be compared: without a right or a wrong answer, or not linked to
        the others, in at least one group.
    log_likelihood, log_likelihoods
        Of all persons together and of each group.
    """

    statistic: float
    degrees: int
    p_value: float
    groups: tuple[str, ...]
    persons: tuple[int, ...]
    items: tuple[str, ...]
    difficulty: FloatArray
    excluded: tuple[str, ...]
    log_likelihood: float
    log_likelihoods: tuple[float, ...]
    warnings: tuple[Notice, ...] = ()

    __repr__ = brief_repr

    def to_dict(self) -> dict[str, list[Any]]:
        """One list per column: item, and its difficulty in each group."""
        columns: dict[str, list[Any]] = {"item": list(self.items)}
        for label, values in zip(self.groups, self.difficulty, strict=True):
            columns[label] = values.tolist()
        return columns


def run_andersen(responses: Any, groups: Any = "mean score") -> AndersenTest:
    """Test whether the items have the same difficulties in all groups. Confidential.

    Parameters
    ----------
    responses
        Answers, an array ``[person, item]`` or a path.
    groups
        ``"mean score"`` or ``"median score"``, the name of a group column, or one label for
        each person.

    Raises
    ------
    DisconnectedItems
        If fewer than two items can be compared in all groups.

    References
    ----------
    Andersen, E. B. (1973). A goodness of fit test for the Rasch model. Psychometrika 38(1),
    123-140.

    Examples
    --------
    >>> import discreet
    >>> test = run_andersen(discreet.datasets.lsat())
    >>> round(test.statistic, 4), test.degrees
    (0.1681, 4)
    """
    source = accept_responses(responses)
    split = split_persons(source, groups)
    items = _comparable_items(split, source.items)
    whole = _join(source, split, items)
    _, _, together = find_maximum(whole)
    apart = [find_maximum(part.select(items))[2] for part in split.parts]
    statistic = 2 * (sum(fit.log_likelihood for fit in apart) - together.log_likelihood)
    degrees = (len(apart) - 1) * (len(items) - 1)
    excluded = tuple(name for name in source.items if name not in set(items))
    return AndersenTest(
        statistic=statistic,
        degrees=degrees,
        p_value=_chi_squared_tail(statistic, degrees),
        groups=split.labels,
        persons=tuple(part.n_persons for part in split.parts),
        items=items,
        difficulty=np.stack([fit.difficulty for fit in apart]),
        excluded=excluded,
        log_likelihood=together.log_likelihood,
        log_likelihoods=tuple(fit.log_likelihood for fit in apart),
        warnings=(*split.warnings, *_exclusion_warning(excluded)),
    )


def _comparable_items(split: Split, items: tuple[str, ...]) -> tuple[str, ...]:
    """Items linked in every group; dropping one can unlink another, so repeat."""
    while True:
        kept = set(items)
        for label, part in zip(split.labels, split.parts, strict=True):
            kept &= _linked_items(part.select(items), label)
        if len(kept) == len(items):
            return items
        items = tuple(name for name in items if name in kept)
        if len(items) < 2:
            raise DisconnectedItems(
                f"only {len(items)} items have right and wrong answers and are linked to each "
                f"other in all groups ({', '.join(split.labels)}); use larger or fewer groups"
            )


def _linked_items(part: Responses, label: str) -> set[str]:
    from discreet.answers.opening import count_pairs
    from discreet.models.connection import classify

    counts = count_pairs(part)
    _, linked, _ = classify(counts)
    if len(linked) < 2:
        raise DisconnectedItems(
            f"in the group {label!r} ({part.n_persons} persons) no two items are linked by the "
            "answers, so that it has no difficulties to compare; use larger or fewer groups"
        )
    return {counts.items[i] for i in linked}


def _join(source: Responses, split: Split, items: tuple[str, ...]) -> Responses:
    """All persons with a label, on the compared items."""
    chosen = source.select(items)
    if not split.unlabelled:
        return chosen
    from discreet.analysis.groups import take_persons

    labelled = {person for part in split.parts for person in part.persons}
    return take_persons(chosen, np.array([person in labelled for person in source.persons]))


def _exclusion_warning(excluded: tuple[str, ...]) -> tuple[Notice, ...]:
    if not excluded:
        return ()
    sentence = (
        f"{len(excluded)} items were not compared, because in at least one group they have no "
        f"right or no wrong answer or are not linked to the others: {name_some(list(excluded))}"
    )
    return (Notice(Kind.NOT_COMPARED, sentence, excluded),)


def _chi_squared_tail(statistic: float, degrees: int) -> float:
    from scipy.special import chdtrc

    return float(chdtrc(degrees, max(statistic, 0.0)))
