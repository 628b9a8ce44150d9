"""Testlets: items that belong together, such as those on one text, as one item each.

In: answers, and which testlet each item belongs to. Out: answers with a sum for each testlet, which
is an item with steps (partial credit); and how much the reliability of single items overstates.
Confidential.

Items of one testlet share more than the ability. As single items they count this share again and
again, so that abilities look surer than they are. The sum counts it once (Wainer and Kiely 1987).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from discreet.answers.opening import load_answers
from discreet.answers.pack import store_codes
from discreet.answers.responses import Responses
from discreet.errors import BadUsage
from discreet.items.fit import measure_fit
from discreet.items.martin_loef import measure_alpha
from discreet.models.calibrate import fit
from discreet.results.estimate import Estimate, FitWarning, WarningKind
from discreet.tables.opener import read_columns
from discreet.tables.reading import ReadingWords
from discreet.tabular import Tabular, brief_repr
from discreet.text import count_of

Testlets = str | Mapping[str, str]
"""The name of a column of a long table, or a mapping from item to testlet."""


@dataclass(frozen=True, eq=False)
class ReliabilityByTestlet(Tabular):
    """Reliability with single items, and with testlets as items. Confidential.

    Attributes
    ----------
    items
        How many single items, and how many items there are with testlets.
    reliability, alpha
        Person separation reliability and Cronbach's alpha: single items, then testlets.
    estimate
        The calibration with testlets.
    warnings
        How many answers were left out because a testlet was answered in part.
    """

    items: tuple[int, int]
    reliability: tuple[float, float]
    alpha: tuple[float, float]
    estimate: Estimate
    warnings: tuple[FitWarning, ...] = ()

    __repr__ = brief_repr

    @property
    def overstated(self) -> float:
        """By how much single items overstate the person separation reliability."""
        return self.reliability[0] - self.reliability[1]

    def to_dict(self) -> dict[str, list[Any]]:
        """Two rows: single items and testlets, with items, reliability and alpha."""
        return {
            "of": ["single items", "testlets"],
            "items": list(self.items),
            "reliability": list(self.reliability),
            "alpha": list(self.alpha),
        }


def combine_testlets(
    responses: Any, testlet: Testlets, **reading: Unpack[ReadingWords]
) -> Responses:
    """Return answers in which every testlet is one item, the sum of its items. Confidential.

    Parameters
    ----------
    responses, reading
        As for :func:`discreet.score`.
    testlet
        The name of a column of a long table that names each item's testlet, such as ``"passage"``;
        or a mapping from item to testlet. Items without a testlet stay as they are.

    Notes
    -----
    Who answered a testlet in part has no sum: another set of items is another item. Such answers
    are missing, and :func:`measure_testlets` says how many.

    References
    ----------
    Wainer, H. and Kiely, G. L. (1987). Item clusters and computerized adaptive testing: a case for
    testlets. Journal of Educational Measurement 24(3), 185-201.

    Examples
    --------
    >>> import discreet
    >>> answers = discreet.datasets.lsat()
    >>> combine_testlets(answers, {"Item1": "text", "Item2": "text"}).items
    ('text', 'Item3', 'Item4', 'Item5')
    """
    mapping = _read_testlets(responses, testlet, reading)
    return _combine(load_answers(responses, reading), mapping)[0]


def measure_testlets(
    responses: Any, testlet: Testlets, **reading: Unpack[ReadingWords]
) -> ReliabilityByTestlet:
    """Say how much the reliability is overstated by items that belong together. Confidential.

    Parameters
    ----------
    responses, testlet, reading
        As for :func:`combine_testlets`.

    Examples
    --------
    >>> import discreet
    >>> found = measure_testlets(discreet.datasets.lsat(), {"Item1": "a", "Item2": "a"})
    >>> found.items
    (5, 4)
    """
    mapping = _read_testlets(responses, testlet, reading)
    single = load_answers(responses, reading)
    combined, lost = _combine(single, mapping)
    estimate = fit(combined)
    calibrated = [(single, fit(single)), (combined, estimate)]
    reliability = [measure_fit(*pair).person_reliability.reliability for pair in calibrated]
    warnings: tuple[FitWarning, ...] = ()
    if lost:
        sentence = (
            f"{count_of(lost, 'answer')} to testlets that a person answered in part were left out"
        )
        warnings = (FitWarning(WarningKind.INCOMPLETE, sentence),)
    return ReliabilityByTestlet(
        items=(single.n_items, combined.n_items),
        reliability=(reliability[0], reliability[1]),
        alpha=(measure_alpha(single).alpha, measure_alpha(combined).alpha),
        estimate=estimate,
        warnings=warnings,
    )


def _read_testlets(responses: Any, testlet: Testlets, words: ReadingWords) -> dict[str, str]:
    """Return the testlet of each item that has one."""
    if isinstance(testlet, Mapping):
        return {str(item): str(label) for item, label in testlet.items()}
    if isinstance(responses, Responses):
        raise BadUsage(
            f"answers that were read do not have the column {testlet!r} any more; give the table "
            "itself, or a mapping from item to testlet"
        )
    item = str(words.get("item") or "item").lower()
    rows = zip(*read_columns(responses, (item, testlet.lower()), "testlets"), strict=True)
    label_of: dict[str, str] = {}
    for name, label in rows:
        if label is not None and label_of.setdefault(str(name), str(label)) != str(label):
            raise BadUsage(
                f"item {str(name)!r} belongs to two testlets, {label_of[str(name)]!r} and "
                f"{str(label)!r}; every item has one"
            )
    return label_of


def _combine(source: Responses, label_of: Mapping[str, str]) -> tuple[Responses, int]:
    """Return answers with sums, and how many answers to parts of testlets that leaves out."""
    unknown = [item for item in label_of if item not in set(source.items)]
    if unknown:
        raise BadUsage(f"the answers have no item {unknown[0]!r}; testlets are of items by name")
    labels = [label_of.get(item, item) for item in source.items]
    alone = [item for item in source.items if item not in label_of and item in label_of.values()]
    if alone:
        raise BadUsage(f"{alone[0]!r} is the name of an item and of a testlet; rename the testlet")
    names = tuple(dict.fromkeys(labels))
    if len(names) < 2:
        raise BadUsage(f"the testlets leave {len(names)} items; two or more are needed")
    cells, lost = source.rows(0, source.n_persons), 0
    codes, steps = [], []
    for name in names:
        columns = [column for column, label in enumerate(labels) if label == name]
        answered = cells[:, columns] >= 0
        complete = answered.all(axis=1)
        lost += int(answered[~complete].sum())
        total = np.maximum(cells[:, columns], 0).sum(axis=1, dtype=np.int64)
        codes.append(np.where(complete, total, -1))
        steps.append(sum(source.steps[column] for column in columns))
    store = store_codes(np.stack(codes, axis=1), steps)
    return Responses(names, source.persons, store, groups=source.groups), lost
