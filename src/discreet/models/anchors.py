"""Anchors: items whose thresholds are known and held, and how far the answers would move them.

In: a mapping, a calibration, a release or a bank; then a fit beside the anchors. Out: what
is known of the items that the answers have, checked; and the displacement of every anchor, which is
what it would be if only this one were free, minus its value. Confidential.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np

from discreet.choices import PlainDict
from discreet.errors import BadUsage, FitWarning, WarningKind
from discreet.models.connectivity import Chain, find_tied
from discreet.models.item_parameters import KnownItems, check_logits, known_thresholds
from discreet.models.step_plan import StepPlan
from discreet.models.structure import Structure
from discreet.results.calibrated import find_source
from discreet.results.estimate import Estimate, Status
from discreet.text import name_some
from discreet.types import FloatArray, Int64Array

#: Logits beyond which a displacement is worth a warning, as Winsteps users know it.
LARGE_DISPLACEMENT = 0.5
#: And standard errors; 99.3% of sound anchors stay below.
LARGE_Z = 2.7
#: Logits; the error that is left is a small part of the last step.
STEP_TOL = 1e-9
CHORD_ROUNDS = 40


def accept_anchors(anchors: Any, items: tuple[str, ...]) -> KnownItems:
    """Return the anchors, or explain why they cannot be used. All thresholds of an item are held.

    Parameters
    ----------
    anchors
        A mapping from item to difficulty (with steps, to a list of thresholds), or an iterable of
        such pairs; or a calibration (an estimate, a release, a bank), of which only the items in
        ``items`` are used, and of a bank only those that did not drift.
    items
        The items of the answers.

    Raises
    ------
    BadUsage
        If an anchor is not finite, is for an item that the answers do not have, contradicts
        another anchor of the same item, or if there is none.
    """
    has_numbers = hasattr(find_source(anchors), "difficulty")
    if isinstance(anchors, Mapping) or (isinstance(anchors, Iterable) and not has_numbers):
        values = _collect(list(anchors.items() if isinstance(anchors, Mapping) else anchors))
        _refuse_unknown(values, items)
        _refuse_none(values)
        return known_thresholds(values)
    # A value that a later calibration disagreed with should not move all the others.
    source = anchors.active() if hasattr(anchors, "active") else anchors
    known = known_thresholds(source).select(set(items))
    _refuse_none(known.items)
    return known


def _refuse_unknown(values: Iterable[str], items: tuple[str, ...]) -> None:
    answered_items = set(items)
    unknown = [name for name in values if name not in answered_items]
    if unknown:
        noun = "an anchor is" if len(unknown) == 1 else f"{len(unknown)} anchors are"
        raise BadUsage(
            f"{noun} for items that the answers do not have: {name_some(unknown)}. Items are "
            f"matched by name ({name_some(list(items))}); correct or remove these anchors"
        )


def _refuse_none(values: Any) -> None:
    if not len(values):
        raise BadUsage(
            "there is no anchor for any item of the answers, so nothing ties the new difficulties "
            "to the known scale; give at least one, or fit without anchors"
        )


def _collect(pairs: list[Any]) -> PlainDict:
    values: PlainDict = {}
    for pair in pairs:
        try:
            name, value = str(pair[0]), pair[1] if np.ndim(pair[1]) else float(pair[1])
        except (TypeError, ValueError, IndexError, KeyError) as error:
            raise BadUsage(
                f"an anchor is an item and its difficulty in logits, found {pair!r}"
            ) from error
        if not np.ndim(value):
            earlier = values.get(name, value)
            if not isfinite(value):
                raise BadUsage(
                    f"the anchor of item '{name}' is {value}; an anchor must be a finite number of "
                    "logits. Leave the item out of the anchors to have it estimated"
                )
            check_logits(name, value)
            if earlier != value:
                raise BadUsage(
                    f"the anchors contradict each other: item '{name}' has the difficulties "
                    f"{earlier:g} and {value:g}; keep one of them"
                )
        values[name] = value
    return values


# -- displacements -----------------------------------------------------------------------------

#: Frees one anchored item of a plan: how far its location moves, and the standard error.
Release = Callable[[int], tuple[float, float]]


def add_displacements(
    estimate: Estimate, plan: StepPlan, release: Release, why_not: Callable[[int], str]
) -> Estimate:
    """Return the estimate with the displacement of every anchor, and warnings about them.

    ``why_not`` says why an anchor with answers in all categories has none; empty if it has.
    """
    moved, se = np.full((2, len(plan.items)), np.nan)
    reason = [""] * len(plan.items)
    for item in plan.anchored.tolist():
        reason[item] = _explain_categories(plan.categories[item, : plan.steps[item] + 1])
        if not reason[item] and len(plan.anchored) == 1:
            reason[item] = "it is the only anchor"
        reason[item] = reason[item] or why_not(item)
        if not reason[item]:
            moved[item], se[item] = release(item)
    notices = *_tell_left_out(estimate), *tell_displaced(plan.items, moved, se)
    return replace(
        estimate,
        displacement=moved,
        displacement_se=se,
        displacement_reason=tuple(reason),
        warnings=(*estimate.warnings, *notices),
    )


def explain_untied(plan: StepPlan, chain: Chain) -> Callable[[int], str]:
    """Return what says why the answers do not link an anchor, if it were free, to the others."""
    links = plan.find_links(chain.rates, chain.linked)
    item_of = plan.item_of[chain.linked]

    def explain(item: int) -> str:
        others = np.isin(item_of, np.setdiff1d(plan.anchored, item))
        if find_tied(links, others)[item_of == item].all():
            return ""
        return "without it nothing links it to the other anchors"

    return explain


@dataclass(frozen=True, eq=False)
class Released:
    """One anchored item set free, the others held.

    Attributes
    ----------
    structure
        With the item free.
    item
        What the structure calls the item.
    node
        Thresholds of the fit in which it was held.
    information
        Of that fit, by all nodes.
    gradient
        Of the objective, by the parameters of the structure.
    solve
        Finds the thresholds from the start, for an anchor that is far off.
    products
        Sums of products of the persons' scores about their mean, by all nodes; None where the
        information says how far scores vary.
    """

    structure: Structure
    item: int
    node: FloatArray
    information: FloatArray
    gradient: Callable[[FloatArray], FloatArray]
    solve: Callable[[], FloatArray]
    products: FloatArray | None = None

    def displace(self) -> tuple[float, float]:
        """Return how far the item's location moves, and its standard error.

        The first step is the score over the information, free parameters included; further ones
        use the same information, and cost a product of matrices each.
        """
        places = self.structure.item == self.item
        matrix = self.structure.project_matrix(self.information)
        inverse = np.asarray(np.linalg.inv(matrix), dtype=np.float64)
        moved = float((self._settle(inverse) - self.node)[places].mean())
        mean = self.structure.project(places / places.sum())
        along = inverse @ mean
        if self.products is None:
            return moved, float(np.sqrt(mean @ along))
        node = self.structure.move(along)
        return moved, float(np.sqrt(max(float(node @ self.products @ node), 0.0)))

    def _settle(self, inverse: FloatArray) -> FloatArray:
        parameter, last = self.structure.fit(self.node), np.inf
        for _ in range(CHORD_ROUNDS):
            step = inverse @ self.gradient(parameter)
            size = float(np.abs(step).max())
            if not size < last / 2:
                break
            parameter, last = parameter + step, size
            if size <= STEP_TOL:
                return self.structure.spread(parameter)
        return self.solve()


def _explain_categories(categories: Int64Array) -> str:
    """Say why answers in these categories do not determine the steps between them."""
    if not categories.any():
        return "nobody answered it"
    if categories.all():
        return ""
    if len(categories) > 2:
        return "nobody is in some of its categories"
    return "everybody had it " + ("right" if categories[1] else "wrong")


def _tell_left_out(estimate: Estimate) -> list[FitWarning]:
    left = {
        name: f"{name} ({code})"
        for name, code in zip(estimate.items, estimate.status, strict=True)
        if code not in (Status.ESTIMATED, Status.ANCHORED)
    }
    if not left:
        return []
    noun = "item" if len(left) == 1 else "items"
    sentence = (
        f"no difficulty for {len(left)} {noun} that the answers do not link to the anchors: "
        f"{name_some(list(left.values()))}"
    )
    return [FitWarning(WarningKind.NOT_LINKED, sentence, left)]


def tell_displaced(items: tuple[str, ...], moved: FloatArray, se: FloatArray) -> list[FitWarning]:
    """Warn of anchors that moved far."""
    with np.errstate(invalid="ignore"):
        large = (np.abs(moved) > LARGE_DISPLACEMENT) & (np.abs(moved) > LARGE_Z * se)
    displaced = np.flatnonzero(large)
    names = [f"{items[i]} ({moved[i]:+.2f})" for i in displaced]
    if not names:
        return []
    verb = "an anchor no longer fits" if len(names) == 1 else f"{len(names)} anchors no longer fit"
    sentence = (
        f"{verb} these answers (displacement in logits): {name_some(names)}. Consider estimating "
        "them instead: a wrong anchor moves every other item"
    )
    return [FitWarning(WarningKind.DISPLACED, sentence, [items[i] for i in displaced])]
