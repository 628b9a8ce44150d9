"""Item by item between groups: Wald tests and differential item functioning.

In: answers and groups of persons. Out: for every item how much harder it is for one group than
for another, with an error, a test and a class. Of items with steps that is said of the location,
or on request of every step. Confidential.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from discreet.answers.opening import name_model
from discreet.errors import BadUsage, DisconnectedItems
from discreet.items.group_differences import Contrasts, contrast, list_compared_points, purify
from discreet.items.groups import Split, adjust, load_grouped, split_groups
from discreet.models.calibrate import fit
from discreet.results.dropped import saying_it_otherwise
from discreet.results.estimate import Estimate, FitWarning, WarningKind
from discreet.tables.reading import FitWords
from discreet.tabular import Tabular, brief_repr, list_field_columns
from discreet.types import Adjustment, BoolArray, FloatArray, Method, Model

DELTA = 2.35
"""Units of the ETS delta scale in a logit (Holland and Thayer 1988)."""
NEGLIGIBLE, LARGE = 1.0 / DELTA, 1.5 / DELTA
"""Limits of the ETS classes A | B | C in logits: 0.43 and 0.64 (Zwick 2012)."""
ONE_SIDED = 1.6448536269514722
"""95% point of the normal distribution: class C must be significantly above ``NEGLIGIBLE``."""
FEW_PERSONS = 30
"""A group of fewer is warned about: the standard error of a difficulty is then 0.4 or more."""
TOLD = (
    *("focal", "difference", "se", "z", "p_value", "p_adjusted"),
    *("flagged", "confirmed", "ets", "anchor", "status"),
)
"""Columns of the table, after item and reference group."""


@dataclass(frozen=True, eq=False)
class WaldTest(Tabular):
    """A z-test for every item between two groups, both centred at zero. Confidential.

    ``z`` is positive where the item is harder for ``groups[1]``. Items without a number in one
    of the groups have NaN and a ``status`` that names the group and the reason. ``method`` is the
    estimator of the difficulties; ``choice`` says why, where that was left open. By step, there is
    a row for each of an item's steps, whose numbers are in ``step``.
    """

    groups: tuple[str, str]
    persons: tuple[int, int]
    items: tuple[str, ...]
    difficulty: FloatArray
    z: FloatArray
    p_value: FloatArray
    status: tuple[str, ...]
    warnings: tuple[FitWarning, ...] = ()
    method: str = ""
    choice: str = ""
    step: tuple[int, ...] = ()

    __repr__ = brief_repr

    def to_dict(self) -> dict[str, list[Any]]:
        """One list per column."""
        difficulties = dict(zip(self.groups, self.difficulty.tolist(), strict=True))
        columns = list_field_columns(self, "z", "p_value", "status")
        return {"item": list(self.items), **_step_column(self.step), **difficulties, **columns}


@dataclass(frozen=True, eq=False)
class DifTable(Tabular):
    """How differently items function between groups of equal ability. Confidential.

    One row for each item and focal group; by step, one for each of its steps.

    Attributes
    ----------
    item, focal, reference
        What is compared.
    difference, se
        In logits; positive: harder for the focal group than its ability explains.
    z, p_value, p_adjusted
        The test, and the p-value adjusted for the number of rows.
    flagged, confirmed
        Whether ``p_value`` is below the level (worth a look; a sound item is flagged as often
        as the level says), and whether ``p_adjusted`` is (holds for all rows together).
    ets
        ``"A"`` negligible, ``"B"`` moderate, ``"C"`` large; "" without a number.
    anchor
        Whether the item helped to put the groups on one scale.
    status
        ``compared``, or why not.
    method, choice
        The estimator of the difficulties, and why it was taken where that was left open.
    step
        The number of the step, where steps are compared; else empty.
    """

    item: tuple[str, ...]
    focal: tuple[str, ...]
    reference: str
    difference: FloatArray
    se: FloatArray
    z: FloatArray
    p_value: FloatArray
    p_adjusted: FloatArray
    flagged: BoolArray
    confirmed: BoolArray
    ets: tuple[str, ...]
    anchor: BoolArray
    status: tuple[str, ...]
    adjustment: str
    level: float
    persons: dict[str, int]
    warnings: tuple[FitWarning, ...] = ()
    method: str = ""
    choice: str = ""
    step: tuple[int, ...] = ()

    __repr__ = brief_repr

    def to_dict(self) -> dict[str, list[Any]]:
        """One list per column."""
        about: dict[str, list[Any]] = {"item": list(self.item), **_step_column(self.step)}
        return {
            **about,
            "reference": [self.reference] * len(self.item),
            **list_field_columns(self, *TOLD),
        }


def _step_column(step: tuple[int, ...]) -> dict[str, list[int]]:
    return {"step": list(step)} if step else {}


def run_wald(
    responses: Any,
    groups: Any = "mean score",
    *,
    items: Sequence[str] | None = None,
    method: Method = "auto",
    model: Model = "auto",
    by_step: bool = False,
    **reading: Unpack[FitWords],
) -> WaldTest:
    """Test every item for equal difficulty in two groups. Confidential.

    Parameters
    ----------
    responses, groups, reading
        As for :func:`discreet.items.groups.run_andersen`, with exactly two groups.
    items
        The items to calibrate and compare; all by default. Persons are split by their scores on
        all items either way.
    method, model
        The estimator of the difficulties, as in :func:`discreet.fit`; the same for all groups.
    by_step
        Whether to test every step of the items instead of their locations.
    """
    source = load_grouped(responses, groups, name_model(responses, model, reading))
    split = split_groups(source, groups)
    if items is not None:
        split, source = split.select(items), source.select(items)
    if len(split.labels) != 2:
        raise BadUsage(
            f"Wald tests compare two groups, found {len(split.labels)} "
            f"({', '.join(split.labels)}); find_dif compares several"
        )
    estimates = _fit_groups(split, method, model)
    places, points = list_compared_points(estimates, split, by_step)
    everything = np.ones(len(places.item), dtype=bool)
    contrasts, status = contrast(points[0], points[1], everything)
    first = estimates[0]
    return WaldTest(
        groups=(split.labels[0], split.labels[1]),
        persons=(split.parts[0].n_persons, split.parts[1].n_persons),
        items=tuple(source.items[i] for i in places.item),
        difficulty=np.stack([group_points.value for group_points in points]),
        z=contrasts.z,
        p_value=contrasts.p_value,
        status=status,
        warnings=(*split.warnings, *_doubt_small(split)),
        method=first.method,
        choice=first.choice,
        step=places.step,
    )


def find_dif(
    responses: Any,
    groups: Any,
    *,
    reference: str | None = None,
    adjustment: Adjustment = "benjamini-hochberg",
    level: float = 0.05,
    method: Method = "auto",
    model: Model = "auto",
    by_step: bool = False,
    **reading: Unpack[FitWords],
) -> DifTable:
    """Find items that are harder for one group than its ability explains. Confidential.

    The groups are calibrated apart and put on one scale by the items that do not differ
    (anchors): at first the half nearest to the median difference, then those without a
    significant difference, until nothing changes. Of items with steps the locations are compared,
    or every step. An item of which some group lacks a category is not compared under partial
    credit: its steps are not the same there.

    Parameters
    ----------
    responses
        Answers, an array ``[person, item]`` or a path.
    groups
        The name of a group column, or one label for each person.
    reference
        The group that the others are compared with; by default the largest.
    adjustment
        ``"benjamini-hochberg"``, ``"holm"`` or ``"none"``.
    level
        A row is flagged where its p-value, confirmed where its adjusted p-value is below.
    method, model
        The estimator of the difficulties, as in :func:`discreet.fit`; the same for all groups.
    by_step
        Whether to compare every step of the items instead of their locations: an item may be as
        hard as a whole while one of its steps is not.

    Raises
    ------
    BadUsage
        With one group, with labels that do not fit the persons, an unknown reference.
    DisconnectedItems
        If a group's answers determine no difficulties.
    """
    if not 0 < level < 1:
        raise BadUsage(f"level must lie between 0 and 1, found {level}; use 0.05 for 5%")
    adjust([], adjustment)
    source = load_grouped(responses, groups, name_model(responses, model, reading))
    split = split_groups(source, groups)
    base = _find_reference(split, reference)
    estimates = _fit_groups(split, method, model)
    places, points = list_compared_points(estimates, split, by_step)
    focal = [group_points for g, group_points in enumerate(points) if g != base]
    rows = [purify(points[base], group_points, level) for group_points in focal]
    labels = [group_points.label for group_points in focal]
    items = tuple(source.items[i] for i in places.item)
    table = _tabulate(items, labels, split, base, rows, adjustment, level)
    return replace(
        table,
        method=estimates[base].method,
        choice=estimates[base].choice,
        step=places.step * len(rows),
    )


def _find_reference(split: Split, reference: str | None) -> int:
    if reference is None:
        return int(np.argmax([part.n_persons for part in split.parts]))
    if reference not in split.labels:
        raise BadUsage(
            f"there is no group {reference!r}; choose the reference among {', '.join(split.labels)}"
        )
    return split.labels.index(reference)


def _doubt_small(split: Split) -> tuple[FitWarning, ...]:
    """Warn about groups whose difficulties are known too poorly to be compared."""
    sizes = [(label, part.n_persons) for label, part in zip(split.labels, split.parts, strict=True)]
    small = [f"{label} ({persons})" for label, persons in sizes if persons < FEW_PERSONS]
    if not small:
        return ()
    sentence = (
        f"fewer than {FEW_PERSONS} persons in {', '.join(small)}: differences between such groups "
        "are mostly chance, and large ones are missed; join groups, or collect more answers"
    )
    return (FitWarning(WarningKind.SMALL_GROUP, sentence),)


def _fit_groups(split: Split, method: Method, model: Model) -> list[Estimate]:
    """Calibrate the groups apart, all by one method."""
    estimates = _fit_each(split, method, model)
    others = [estimate for estimate in estimates if estimate.method != estimates[0].method]
    if not others:
        return estimates
    # Left alone, each group found its own method: take the one that serves them all.
    (choice,) = {estimate.choice for estimate in estimates if estimate.method == "refined"}
    return [replace(estimate, choice=choice) for estimate in _fit_each(split, "refined", model)]


def _fit_each(split: Split, method: Method, model: Model) -> list[Estimate]:
    estimates = []
    for label, part in zip(split.labels, split.parts, strict=True):
        try:
            with saying_it_otherwise():
                estimates.append(fit(part, method=method, model=model))
        except DisconnectedItems as error:
            raise DisconnectedItems(
                f"the group {label!r} ({part.n_persons} persons) cannot be calibrated on its "
                f"own: {error}. A group needs some {FEW_PERSONS} persons: join small groups, or "
                "leave their labels blank"
            ) from error
    return estimates


def _classify(contrasts: Contrasts) -> list[str]:
    """ETS classes: C is large and surely not negligible, A negligible or not significant."""
    size, se = np.abs(contrasts.difference), contrasts.se
    with np.errstate(invalid="ignore"):
        large = (size >= LARGE) & (size - NEGLIGIBLE > ONE_SIDED * se)
        small = (size < NEGLIGIBLE) | (contrasts.p_value >= 0.05)
    letters = np.where(large, "C", np.where(small, "A", "B"))
    letters[np.isnan(size)] = ""
    return [str(letter) for letter in letters]


def _tabulate(
    items: tuple[str, ...],
    focal: list[str],
    split: Split,
    base: int,
    rows: list[tuple[Contrasts, tuple[str, ...]]],
    adjustment: Adjustment,
    level: float,
) -> DifTable:
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(contrasts, name) for contrasts, _ in rows])
        for name in ("difference", "se", "z", "p_value", "anchor")
    }
    p_adjusted = adjust(columns["p_value"], adjustment)
    sizes = {label: part.n_persons for label, part in zip(split.labels, split.parts, strict=True)}
    return DifTable(
        item=items * len(rows),
        focal=tuple(label for label in focal for _ in items),
        reference=split.labels[base],
        **columns,
        p_adjusted=p_adjusted,
        flagged=columns["p_value"] < level,
        confirmed=p_adjusted < level,
        ets=tuple(letter for contrasts, _ in rows for letter in _classify(contrasts)),
        status=tuple(status for _, statuses in rows for status in statuses),
        adjustment=adjustment,
        level=level,
        persons=sizes,
        warnings=(*split.warnings, *_doubt_small(split)),
    )
