"""Groups of persons: by a column, by labels, or by score.

In: answers and a way to split them. Out: one part of the answers for each group, and a warning
about persons without a label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.answers.pack import pack_rows
from discreet.answers.planes import AnswerStore, SparseRows
from discreet.answers.responses import Responses
from discreet.errors import BadUsage
from discreet.results.warnings import Kind, Notice
from discreet.types import BoolArray, FloatArray, Texts

SCORE_SPLITS = ("mean score", "median score")
LOW_HIGH = ("low score", "high score")
MISSING = ("", "nan", "None", "NaN", "<NA>", "NaT")
"""How missing labels look as text."""


@dataclass(frozen=True, eq=False)
class Split:
    """Answers in groups, labels sorted (low scores first).

    Attributes
    ----------
    labels, parts
        Names of the groups and their answers.
    unlabelled
        Persons who belong to no group.
    warnings
        A sentence about them.
    """

    labels: tuple[str, ...]
    parts: tuple[Responses, ...]
    unlabelled: int
    warnings: tuple[Notice, ...]


def split_persons(responses: Responses, groups: Any) -> Split:
    """Split answers into groups of persons.

    Parameters
    ----------
    responses
        The answers.
    groups
        The name of a group column of the answers; ``"mean score"`` or ``"median score"`` (low:
        at most that; high: above); or one label for each person, where None, NaN and "" mean
        unknown.

    Raises
    ------
    BadUsage
        If there is no such column, the number of labels is wrong, or there is one group only.
    """
    labels = _label_persons(responses, groups)
    known = np.array([label not in MISSING for label in labels], dtype=bool)
    found = {str(label) for label in labels[known]}
    by_score = isinstance(groups, str) and groups not in responses.groups
    names = tuple(label for label in LOW_HIGH if label in found) if by_score else ()
    names = names or tuple(sorted(found))
    missing = int((~known).sum())
    if len(names) < 2:
        raise BadUsage(
            f"comparing groups needs two groups or more, found {len(names)} "
            f"({', '.join(names) or 'no labels at all'}; {missing} of {len(labels)} persons "
            "have no label)"
        )
    said = f"{missing} persons without a group label were left out"
    warnings = (Notice(Kind.NO_LABEL, said),) if missing else ()
    parts = tuple(take_persons(responses, labels == name) for name in names)
    return Split(names, parts, missing, warnings)


def _label_persons(responses: Responses, groups: Any) -> Texts:
    if isinstance(groups, str):
        if groups in responses.groups:
            return np.array([str(label) for label in responses.groups[groups]], dtype=object)
        if groups in SCORE_SPLITS:
            return _label_by_score(responses, groups)
        have = ", ".join(responses.groups) or "none"
        raise BadUsage(
            f"the answers have no group column {groups!r} (they have: {have}); name one when "
            f"reading them, or split by one of: {', '.join(SCORE_SPLITS)}"
        )
    labels = np.array(["" if label is None else str(label) for label in groups], dtype=object)
    if len(labels) != responses.n_persons:
        raise BadUsage(
            f"groups need one label for each of the {responses.n_persons} persons, found "
            f"{len(labels)}"
        )
    return labels


def _label_by_score(responses: Responses, split: str) -> Texts:
    """Low and high scorers; by ability where not everybody answered everything."""
    answered, right = responses.store.person_totals()
    value = right.astype(np.float64)
    if not (answered == responses.n_items).all():
        from discreet.analysis.persons import score
        from discreet.models.calibrate import fit

        value = score(responses, fit(responses, standard_errors=False)).ability
    known = ~np.isnan(value)
    middle = np.mean(value[known]) if split == SCORE_SPLITS[0] else np.median(value[known])
    labels = np.array(LOW_HIGH, dtype=object)[(value > middle).astype(np.intp)]
    labels[~known] = ""
    return labels


def take_persons(responses: Responses, chosen: BoolArray) -> Responses:
    """Return the answers of some of the persons."""
    persons = responses.persons[chosen]
    return Responses(responses.items, persons, _take_rows(responses.store, chosen))


def _take_rows(store: AnswerStore, chosen: BoolArray) -> AnswerStore:
    if isinstance(store, SparseRows):
        lengths = np.diff(store.indptr)
        keep = np.repeat(chosen, lengths)
        indptr = np.concatenate([[0], np.cumsum(lengths[chosen])]).astype(np.int64)
        return SparseRows(indptr, store.item[keep], store.right[keep], store.n_items)
    return pack_rows(store.rows(0, store.n_persons)[chosen])


# Many tests at once: adjusted p-values.
#
# In: p-values, NaN where there was no test. Out: adjusted p-values in the same places.

ADJUSTMENTS = ("benjamini-hochberg", "holm", "none")


def adjust(p_value: npt.ArrayLike, method: str) -> FloatArray:
    """Adjust p-values for their number.

    Parameters
    ----------
    p_value
        NaN where there was no test; such places do not count.
    method
        ``"benjamini-hochberg"`` bounds the expected share of false alarms among the alarms,
        ``"holm"`` the probability of any false alarm, ``"none"`` changes nothing.

    Examples
    --------
    >>> adjust([0.01, 0.04, 0.03], "holm").round(3).tolist()
    [0.03, 0.06, 0.06]
    >>> adjust([0.01, 0.04, 0.03], "benjamini-hochberg").round(3).tolist()
    [0.03, 0.04, 0.04]
    """
    if method not in ADJUSTMENTS:
        raise BadUsage(f"adjustment must be one of {', '.join(ADJUSTMENTS)}; found {method!r}")
    p = np.array(p_value, dtype=np.float64)
    tested = np.flatnonzero(~np.isnan(p))
    if method == "none" or not len(tested):
        return p
    order = tested[np.argsort(p[tested], kind="stable")]
    n = len(order)
    rank = np.arange(1, n + 1)
    if method == "holm":
        p[order] = np.minimum(np.maximum.accumulate(p[order] * (n - rank + 1)), 1.0)
    else:
        scaled = p[order] * n / rank
        p[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return p
