"""How far anchored items, raters and other levels would move if they were free, one at a time.

In: the design and estimate of an anchored fit, and a way to fit a design. Out: the estimate with
the displacement of every anchor that the ratings tie to others, its error, and warnings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from discreet.answers.ratings import Ratings, RatingSource
from discreet.errors import DisconnectedItems, NotConverged
from discreet.models.anchors import tell_displaced
from discreet.models.facets.structure import FacetDesign
from discreet.results.estimate import Estimate
from discreet.types import BoolArray, FloatArray, Int64Array

#: Anchors times ratings up to which every anchor is set free in turn: some seconds.
MOST_WORK = 10_000_000


def add_facet_displacements(
    design: FacetDesign,
    estimate: Estimate,
    ratings: RatingSource,
    fit: Callable[[FacetDesign], Estimate],
) -> Estimate:
    """Return the estimate with the displacement of every anchor, and warnings about them.

    An anchor has none where it is the only one of the items or of its facet, or nothing else links
    it to the others; nor has any where there are too many anchors and ratings.
    """
    places = [("", slice(0, design.n_nodes), design.items, np.asarray(design.node_item))]
    for term, columns in design.list_terms():
        places.append((term.name, columns, term.levels, np.arange(len(term.levels))))
    n_anchors = int(design.is_held.sum())
    is_small = isinstance(ratings, Ratings) and n_anchors * ratings.n_ratings <= MOST_WORK
    if not is_small or not np.isfinite(estimate.se).any():
        return estimate
    facets, warnings = dict(estimate.facets), list(estimate.warnings)
    for name, columns, labels, owner in places:
        is_held = design.is_held[columns]
        if not is_held.any():
            continue
        moved, se = np.full((2, len(labels)), np.nan)
        held = np.unique(owner[is_held])
        for number in held.tolist() if len(held) > 1 else []:
            free = _free(design, columns, owner == number)
            moved[number], se[number] = _measure(estimate, free, name, number, fit)
        warnings += tell_displaced(labels, moved, se)
        if name:
            facets[name] = replace(facets[name], displacement=moved, displacement_se=se)
        else:
            reason = _explain(labels, held, moved)
            estimate = replace(
                estimate, displacement=moved, displacement_se=se, displacement_reason=reason
            )
    return replace(estimate, facets=facets, warnings=tuple(warnings))


def _free(design: FacetDesign, columns: slice, chosen: BoolArray) -> FacetDesign:
    """Return the design in which some columns of a part are not held."""
    held = design.held.copy()
    held[columns] = np.where(chosen, np.nan, held[columns])
    return replace(design, held=held)


def _measure(
    estimate: Estimate,
    free: FacetDesign,
    name: str,
    number: int,
    fit: Callable[[FacetDesign], Estimate],
) -> tuple[float, float]:
    """Return how far one anchor moves, and the standard error; NaN where it has no number."""
    try:
        released = fit(free)
    except (DisconnectedItems, NotConverged):
        return float("nan"), float("nan")

    def read(one: Estimate) -> tuple[FloatArray, FloatArray]:
        return (one.facets[name].measure, one.facets[name].se) if name else (one.difficulty, one.se)

    (before, _), (after, se) = read(estimate), read(released)
    return float(after[number] - before[number]), float(se[number])


def _explain(labels: tuple[str, ...], held: Int64Array, moved: FloatArray) -> tuple[str, ...]:
    alone = "it is the only anchor" if len(held) == 1 else (
        "the ratings do not link it, if it were free, to the other anchors"
    )  # fmt: skip
    return tuple(
        alone if number in held and np.isnan(moved[number]) else "" for number in range(len(labels))
    )
