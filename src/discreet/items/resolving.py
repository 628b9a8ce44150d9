"""Items that differ between groups, resolved: an item of its own for every group.

In: answers and groups of persons. Out: answers in which some items are split by group; a
:class:`ResolvedDif`, which says what is left of all differences once the items that differ are
split. Confidential.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.answers.pack import store_codes
from discreet.answers.responses import Responses
from discreet.answers.select import refuse_routing
from discreet.choices import Adjustment, DifTest, Method, Model, PlainDict, PlainMapping
from discreet.errors import BadUsage
from discreet.items.dif import FEWEST_ANCHORS, Difference, DifTable, find_dif
from discreet.items.groups import split_groups
from discreet.models.calibrate import calibrate
from discreet.results.estimate import Estimate
from discreet.tabular import Columns, Tabular
from discreet.text import name_some
from discreet.types import Int8Array


def split_items(responses: Responses, split: PlainMapping) -> Responses:
    """Give some items a column of their own for every group. Confidential.

    Parameters
    ----------
    responses
        Answers, an array ``[person, item]`` or a path.
    split
        By item, the name of a group column, one label for each person, or a mapping from person to
        label. Item Q4 becomes "Q4:de", "Q4:fr"; persons without a label have no answer there.

    Returns
    -------
    Responses
        To be calibrated, checked and scored as any others.

    Examples
    --------
    >>> import discreet
    >>> answers = discreet.datasets.lsat()
    >>> split_items(answers, {"Item2": ["a", "b"] * 500}).items[:3]
    ('Item1', 'Item2:a', 'Item2:b')
    """
    unknown = sorted({*split} - {*responses.items})
    if unknown:
        raise BadUsage(f"there is no item {unknown[0]!r} to split; items go by name")
    refuse_routing(responses.routing, "splitting an item")
    cells = responses.to_array()
    columns: list[Int8Array] = []
    names: list[str] = []
    steps: list[int] = []
    for place, item in enumerate(responses.items):
        column = cells[:, place]
        if item not in split:
            parts = {item: column}
        else:
            groups = split_groups(responses, split[item])
            parts = {
                f"{item}:{label}": np.where(groups.number == number, column, -1)
                for number, label in enumerate(groups.labels)
            }
        names += parts
        columns += parts.values()
        steps += [responses.steps[place]] * len(parts)
    return Responses(
        names,
        responses.persons if responses.has_ids else None,
        store_codes(np.stack(columns, axis=1), steps),
        groups=responses.groups,
        reading=responses.reading,
        detected=responses.detected,
        sample=responses.sample,
    )


def name_split(differences: Sequence[Difference]) -> dict[str, str]:
    """Return which items to split, each by the column in which it differs most."""
    return {item: column for item, column, *_ in reversed(differences)}


@dataclass(frozen=True, eq=False)
class ResolvedDif(Tabular):
    """Differences between groups before and after the items that differ were split. Confidential.

    An item that differs makes others seem to differ the other way. Where it has a difficulty of its
    own in every group, and the scale is held by the items that are not split, that ends.

    Attributes
    ----------
    found
        The differences before.
    split
        Items that were split, in that order.
    left
        The differences of all items relative to those that were not split.
    estimate
        The calibration of the answers with split items.

    Examples
    --------
    >>> import discreet
    >>> from discreet import analysis
    >>> resolved = analysis.resolve_dif(discreet.datasets.lsat(), ["a", "b"] * 500)
    >>> resolved.split, resolved.estimate.items == resolved.found.item
    ((), True)
    """

    found: DifTable
    split: tuple[str, ...]
    left: DifTable
    estimate: Estimate

    def to_dict(self) -> Columns:
        """One row for each item and focal group; ``before`` and ``difference`` in logits."""
        about = self.left.to_dict()
        before = {"before": self.found.difference.tolist()}
        names = ("difference", "se", "p_value", "p_adjusted", "confirmed", "status")
        return {
            **{name: about[name] for name in ("item", "focal", "reference")},
            "split": [item in self.split for item in self.left.item],
            **before,
            **{name: about[name] for name in names},
        }

    def describe(self) -> list[str]:
        """Return what was split, and what is left."""
        rows = zip(self.left.item, self.left.confirmed.tolist(), strict=True)
        others = sorted({item for item, sure in rows if sure and item not in self.split})
        left = f"{name_some(others)} still differ" if others else "no other item differs"
        what = f"split by group: {', '.join(self.split)}; {left}" if self.split else "nothing split"
        return [*super().describe(), what]


def resolve_dif(
    responses: Responses,
    groups: object,
    *,
    test: DifTest = "wald",
    anchors: Sequence[str] | None = None,
    reference: str | None = None,
    adjustment: Adjustment = "benjamini-hochberg",
    level: float = 0.05,
    method: Method = "auto",
    model: Model = "auto",
    keep_categories: bool = False,
) -> ResolvedDif:
    """Split the items that differ between groups, calibrate again, and compare all items again.

    The item with the largest confirmed difference is split. All items are then compared relative to
    those that are not split, and the next one is split, until no further difference is confirmed.
    One at a time, because an item that differs makes others seem to differ the other way. Four
    items and a quarter of them always stay. Confidential.

    Parameters
    ----------
    responses, groups, test, anchors, reference, adjustment, level, method, model, keep_categories
        As for :func:`discreet.find_dif`.

    References
    ----------
    Andrich, D. and Hagquist, C. (2012). Real and artificial differential item functioning. Journal
    of Educational and Behavioral Statistics 37(3), 387-416.

    Examples
    --------
    >>> import discreet
    >>> resolved = resolve_dif(discreet.datasets.lsat(), ["a", "b"] * 500)
    >>> bool(resolved.left.confirmed.any())
    False
    """
    options: PlainDict = {"test": test, "reference": reference, "adjustment": adjustment}
    options |= {"level": level, "method": method, "model": model}
    options["keep_categories"] = keep_categories
    left = found = find_dif(responses, groups, anchors=anchors, **options)
    items = responses.items
    most = len(items) - max(FEWEST_ANCHORS, -(-len(items) // 4))
    split: list[str] = []
    while len(split) < most and (largest := _find_largest(left, split)):
        split.append(largest)
        holding = [item for item in anchors or items if item not in split]
        holding = holding if len(holding) > 1 else [item for item in items if item not in split]
        left = find_dif(responses, groups, anchors=holding, **options)
    answers = split_items(responses, dict.fromkeys(split, groups)) if split else responses
    estimate = calibrate(answers, method=method, model=model, keep_categories=keep_categories)
    return ResolvedDif(found, tuple(split), left, estimate)


def _find_largest(table: DifTable, split: Sequence[str]) -> str:
    """Return the other item with the largest confirmed difference; "" without one."""
    rows = [row for row in np.flatnonzero(table.confirmed) if table.item[row] not in split]
    return table.item[max(rows, key=lambda row: abs(table.difference[row]))] if rows else ""
