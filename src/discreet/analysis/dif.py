"""Item by item between groups: Wald tests and differential item functioning.

In: answers and groups of persons. Out: for every item how much harder it is for one group than
for another, with an error, a test and a class. Confidential.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from discreet.analysis.groups import Split, adjust, load_grouped, split_persons
from discreet.errors import BadUsage, DisconnectedItems
from discreet.markup import Tabular, brief_repr, list_columns
from discreet.models.calibrate import fit
from discreet.results.dropped import saying_it_otherwise
from discreet.results.estimate import Estimate, Kind, Notice, Status
from discreet.tables.roles import ReadingWords
from discreet.types import Adjustment, BoolArray, FloatArray, Method

DELTA = 2.35
"""Units of the ETS delta scale in a logit (Holland and Thayer 1988)."""
NEGLIGIBLE, LARGE = 1.0 / DELTA, 1.5 / DELTA
"""Limits of the ETS classes A | B | C in logits: 0.43 and 0.64 (Zwick 2012)."""
ONE_SIDED = 1.6448536269514722
"""95% point of the normal distribution: class C must be significantly above ``NEGLIGIBLE``."""
FEW_PERSONS = 30
"""A group of fewer is warned about: the standard error of a difficulty is then 0.4 or more."""
ROUNDS = 10
"""Rounds of choosing anchors; two or three are usual."""
TOLD = (
    *("focal", "difference", "se", "z", "p_value", "p_adjusted"),
    *("flagged", "confirmed", "ets", "anchor", "status"),
)
"""Columns of the table, after item and reference group."""


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Difficulty in the focal group minus difficulty in the reference group, by item."""

    difference: FloatArray
    se: FloatArray
    anchor: BoolArray

    @property
    def z(self) -> FloatArray:
        return np.asarray(self.difference / self.se)

    @property
    def p_value(self) -> FloatArray:
        from scipy.special import ndtr

        return np.asarray(2 * ndtr(-np.abs(self.z)))


@dataclass(frozen=True, eq=False)
class WaldTest(Tabular):
    """A z-test for every item between two groups, both centred at zero. Confidential.

    ``z`` is positive where the item is harder for ``groups[1]``. Items without a number in one
    of the groups have NaN and a ``status`` that names the group and the reason. ``method`` is the
    estimator of the difficulties; ``choice`` says why, where that was left open.
    """

    groups: tuple[str, str]
    persons: tuple[int, int]
    items: tuple[str, ...]
    difficulty: FloatArray
    z: FloatArray
    p_value: FloatArray
    status: tuple[str, ...]
    warnings: tuple[Notice, ...] = ()
    method: str = ""
    choice: str = ""

    __repr__ = brief_repr

    def to_dict(self) -> dict[str, list[Any]]:
        """One list per column."""
        difficulties = dict(zip(self.groups, self.difficulty.tolist(), strict=True))
        columns = list_columns(self, "z", "p_value", "status")
        return {"item": list(self.items), **difficulties, **columns}


@dataclass(frozen=True, eq=False)
class DifTable(Tabular):
    """How differently items function between groups of equal ability. Confidential.

    One row for each item and focal group.

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
    warnings: tuple[Notice, ...] = ()
    method: str = ""
    choice: str = ""

    __repr__ = brief_repr

    def to_dict(self) -> dict[str, list[Any]]:
        """One list per column."""
        compared = [self.reference] * len(self.item)
        return {"item": list(self.item), "reference": compared, **list_columns(self, *TOLD)}


def run_wald(
    responses: Any,
    groups: Any = "mean score",
    *,
    method: Method = "auto",
    **reading: Unpack[ReadingWords],
) -> WaldTest:
    """Test every item for equal difficulty in two groups. Confidential.

    Parameters
    ----------
    responses, groups, reading
        As for :func:`discreet.analysis.groups.run_andersen`, with exactly two groups.
    method
        The estimator of the difficulties, as in :func:`discreet.fit`; the same for all groups.
    """
    source = load_grouped(responses, groups, reading)
    split = split_persons(source, groups)
    if len(split.labels) != 2:
        raise BadUsage(
            f"Wald tests compare two groups, found {len(split.labels)} "
            f"({', '.join(split.labels)}); find_dif compares several"
        )
    first, second = _fit_groups(split, method)
    everything = np.ones(len(source.items), dtype=bool)
    contrasts, status = _contrast(first, second, split.labels[0], split.labels[1], everything)
    return WaldTest(
        groups=(split.labels[0], split.labels[1]),
        persons=(split.parts[0].n_persons, split.parts[1].n_persons),
        items=source.items,
        difficulty=np.stack([first.difficulty, second.difficulty]),
        z=contrasts.z,
        p_value=contrasts.p_value,
        status=status,
        warnings=(*split.warnings, *_doubt_small(split)),
        method=first.method,
        choice=first.choice,
    )


def find_dif(
    responses: Any,
    groups: Any,
    *,
    reference: str | None = None,
    adjustment: Adjustment = "benjamini-hochberg",
    level: float = 0.05,
    method: Method = "auto",
    **reading: Unpack[ReadingWords],
) -> DifTable:
    """Find items that are harder for one group than its ability explains. Confidential.

    The groups are calibrated apart and put on one scale by the items that do not differ
    (anchors): at first the half nearest to the median difference, then those without a
    significant difference, until nothing changes.

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
    method
        The estimator of the difficulties, as in :func:`discreet.fit`; the same for all groups.

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
    source = load_grouped(responses, groups, reading)
    split = split_persons(source, groups)
    base = _find_reference(split, reference)
    estimates = _fit_groups(split, method)
    rows = [
        _purify(estimates[base], estimates[g], split.labels[base], split.labels[g], level)
        for g in range(len(split.labels))
        if g != base
    ]
    focal = [label for g, label in enumerate(split.labels) if g != base]
    table = _tabulate(source.items, focal, split, base, rows, adjustment, level)
    return replace(table, method=estimates[base].method, choice=estimates[base].choice)


def _find_reference(split: Split, reference: str | None) -> int:
    if reference is None:
        return int(np.argmax([part.n_persons for part in split.parts]))
    if reference not in split.labels:
        raise BadUsage(
            f"there is no group {reference!r}; choose the reference among {', '.join(split.labels)}"
        )
    return split.labels.index(reference)


def _doubt_small(split: Split) -> tuple[Notice, ...]:
    """Warn about groups whose difficulties are known too poorly to be compared."""
    sizes = [(label, part.n_persons) for label, part in zip(split.labels, split.parts, strict=True)]
    small = [f"{label} ({persons})" for label, persons in sizes if persons < FEW_PERSONS]
    if not small:
        return ()
    sentence = (
        f"fewer than {FEW_PERSONS} persons in {', '.join(small)}: differences between such groups "
        "are mostly chance, and large ones are missed; join groups, or collect more answers"
    )
    return (Notice(Kind.SMALL_GROUP, sentence),)


def _fit_groups(split: Split, method: Method) -> list[Estimate]:
    """Calibrate the groups apart, all by one method."""
    estimates = _fit_each(split, method)
    others = [one for one in estimates if one.method != estimates[0].method]
    if not others:
        return estimates
    # Left alone, each group found its own method: take the one that serves them all.
    (choice,) = {one.choice for one in estimates if one.method == "refined"}
    return [replace(one, choice=choice) for one in _fit_each(split, "refined")]


def _fit_each(split: Split, method: Method) -> list[Estimate]:
    estimates = []
    for label, part in zip(split.labels, split.parts, strict=True):
        try:
            with saying_it_otherwise():
                estimates.append(fit(part, method=method))
        except DisconnectedItems as error:
            raise DisconnectedItems(
                f"the group {label!r} ({part.n_persons} persons) cannot be calibrated on its "
                f"own: {error}. A group needs some {FEW_PERSONS} persons: join small groups, or "
                "leave their labels blank"
            ) from error
    return estimates


def _contrast(
    first: Estimate, second: Estimate, first_label: str, second_label: str, anchor: BoolArray
) -> tuple[Contrasts, tuple[str, ...]]:
    """Second minus first, each group centred on the anchors that both have."""
    common = first.estimated & second.estimated
    if common.sum() < 2:
        raise DisconnectedItems(
            f"the groups {first_label!r} and {second_label!r} have {int(common.sum())} items "
            "with a difficulty in common; a comparison needs two or more"
        )
    anchors = anchor & common
    anchors = anchors if anchors.sum() >= 2 else common
    difference = np.zeros(len(common))
    variance = np.zeros(len(common))
    for estimate, sign in ((second, 1.0), (first, -1.0)):
        b = np.where(common, estimate.difficulty, 0.0)
        difference += sign * (b - b[anchors].mean())
        variance += _centred_variance(estimate, anchors)
    difference[~common] = np.nan
    with np.errstate(invalid="ignore"):
        se = np.where(common, np.sqrt(variance), np.nan)
    status = _statuses(first, second, first_label, second_label)
    return Contrasts(difference, se, anchors), status


def _centred_variance(estimate: Estimate, anchors: BoolArray) -> FloatArray:
    """Variances of the difficulties less the mean of the anchors."""
    if estimate.covariance is None:
        raise BadUsage(
            f"the method {estimate.method!r} gave no covariance for {len(estimate.items)} items, "
            "which a comparison of groups needs; use fewer items"
        )
    m = len(estimate.items)
    full = np.zeros((m, m))
    known = np.flatnonzero(estimate.estimated)
    full[np.ix_(known, known)] = estimate.covariance
    with_mean = full[:, anchors].mean(axis=1)
    of_mean = full[np.ix_(anchors, anchors)].mean()
    return np.asarray(full.diagonal() - 2 * with_mean + of_mean)


def _statuses(
    first: Estimate, second: Estimate, first_label: str, second_label: str
) -> tuple[str, ...]:
    """Say ``compared``, or in which group an item has no number and why."""
    out = []
    for one, two in zip(first.status, second.status, strict=True):
        reasons = [
            f"{status} in {label}"
            for status, label in ((one, first_label), (two, second_label))
            if status not in (Status.ESTIMATED, Status.ANCHORED)
        ]
        out.append(", ".join(reasons) or "compared")
    return tuple(out)


def _purify(
    base: Estimate, other: Estimate, base_label: str, label: str, level: float
) -> tuple[Contrasts, tuple[str, ...]]:
    """Repeat the comparison with the items that showed no difference as anchors.

    The first anchors are the half of the items nearest to the median difference, which up to
    half of the items can differ without moving far.
    """
    common = base.estimated & other.estimated
    raw = np.where(common, other.difficulty - base.difficulty, np.nan)
    away = np.abs(raw - np.nanmedian(raw)) if common.any() else raw
    anchor = common & (away <= np.nanmedian(away)) if common.any() else common
    smallest = max(2, int(common.sum()) // 4)
    for _ in range(ROUNDS):
        contrasts, status = _contrast(base, other, base_label, label, anchor)
        new = common & ~(contrasts.p_value < level)
        if (new == anchor).all() or new.sum() < smallest:
            break
        anchor = new
    return contrasts, status


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
