"""Fit a facets model to ratings.

In: ratings, wherever they are, and the structure of the model. Out: an
:class:`~discreet.Estimate` whose ``facets`` hold the levels of every facet. Confidential.

Severities and the spacing of steps come from pairs of ratings of the same person on the same item
where the design has them: a person who is better at some items than at others (a person x item
effect) leaves such pairs alone, while pairs across items shrink severities (Wilson & Hoskens 2001
and Patz et al. 2002 describe the effect). Item locations always come from all pairs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.answers.ratings import Ratings, RatingSource
from discreet.choices import PlainMapping, Within
from discreet.errors import (
    LOG,
    BadUsage,
    DisconnectedItems,
    FitWarning,
    WarningKind,
    warn_of_dropped,
)
from discreet.models.facets.displacement import add_facet_displacements
from discreet.models.facets.draws import draw_model_variances, redraw_ratings
from discreet.models.facets.existence import drop_runaways, link_design
from discreet.models.facets.given_totals import maximise_given_totals
from discreet.models.facets.solve import RunningAway, maximise_pairs
from discreet.models.facets.standard_errors import (
    Centring,
    Stage,
    compare_stages,
    draw_variances,
    find_covariance,
)
from discreet.models.facets.structure import (
    WITHIN_ITEM,
    FacetDesign,
    PairedBatches,
    describe_structure,
    hold_anchors,
    plan_design,
)
from discreet.results.estimate import Estimate, Solution, Status
from discreet.results.facets import DifferenceTest, FacetLevels, ItemEffectTest, LevelStatus
from discreet.results.thresholds import Thresholds, pad_steps
from discreet.text import count_of, name_some
from discreet.types import BoolArray, FloatArray, IndexArray, Int64Array

#: A level with fewer persons has a model-based standard error.
FEW_PERSONS = 5


@dataclass(frozen=True)
class FacetRequest:
    """What the caller asked for; see :func:`discreet.fit`."""

    facets: tuple[str, ...] = ()
    structure: str | None = None
    features: PlainMapping | None = None
    model: str = "auto"
    method: str = "auto"
    within: Within = "auto"
    standard_errors: bool = True
    refits: int = 0
    anchors: Any = None


@dataclass(frozen=True, eq=False)
class FacetNumbers:
    """Thresholds of all columns and what is known about their errors.

    ``variance`` and ``covariance`` are of the columns, then of the item locations;
    ``is_model_based`` says which columns have errors that count as known.
    """

    thresholds: FloatArray
    variance: FloatArray
    covariance: FloatArray | None
    solution: Solution
    se_method: str
    is_model_based: BoolArray
    item_effect: ItemEffectTest | None = None


def fit_facets(ratings: RatingSource, request: FacetRequest) -> Estimate:
    """Fit a facets model; see :func:`discreet.fit` for what can be asked."""
    _check_request(request)
    names, features = tuple(request.facets or ratings.facets), request.features
    feature_names = [name for name in features or () if name != "item"]
    description = describe_structure(
        request.structure, names, model=request.model, features=feature_names
    )
    design = plan_design(ratings.batches(), description, features)
    if request.anchors is not None:
        design = hold_anchors(design, request.anchors, ratings.lowest)
        if design.is_held.all():
            raise BadUsage(
                "the anchors hold every item and level, so nothing is left to estimate; measure "
                "persons by score(ratings, calibration)"
            )
    design, within, choice = _link(design, ratings, request)
    LOG.info("fitting %s by pairs within %s", description, within or "persons")
    design, estimate = _solve(design, ratings, within, request)
    warnings = (*_warn_categories(design), *_warn_levels(estimate))
    if request.anchors is not None:
        estimate = add_facet_displacements(
            design, estimate, ratings, lambda free: _release(free, ratings, within, request)
        )
        warnings = (*warnings, *estimate.warnings)
    warn_of_dropped(warnings)
    return replace(estimate, choice=choice, warnings=warnings)


def _solve(
    design: FacetDesign, ratings: RatingSource, within: str | None, request: FacetRequest
) -> tuple[FacetDesign, Estimate]:
    """Estimate; the design is without what turned out to have no bound."""
    if request.method == "conditional":
        numbers = _solve_conditional(design, ratings)
        return design, replace(_assemble(design, ratings, numbers), method="conditional")
    design, numbers = _solve_bounded(design, ratings, within, request)
    return design, _assemble(design, ratings, numbers)


def _release(
    design: FacetDesign, ratings: RatingSource, within: str | None, request: FacetRequest
) -> Estimate:
    """Estimate with one anchor free."""
    linked = _check_linked(link_design(design, ratings.batches(), within))
    return _solve(linked, ratings, within, request)[1]


def _check_request(request: FacetRequest) -> None:
    if request.method not in ("auto", "refined", "conditional"):
        raise BadUsage(
            f"the method {request.method!r} has no facets; use 'refined' (pairs of ratings, any "
            "size) or 'conditional' (exact, small data)"
        )
    if request.within not in ("auto", "item", None):
        raise BadUsage(
            f"within must be 'auto', 'item' or None, found {request.within!r}; 'item' compares "
            "ratings of the same person on the same item"
        )
    if request.refits and request.anchors is not None:
        raise BadUsage("refits= moves all measures, and anchors= holds some; leave one out")


def _link(
    design: FacetDesign, ratings: RatingSource, request: FacetRequest
) -> tuple[FacetDesign, str | None, str]:
    """Decide which pairs serve, and leave out what they do not determine."""
    batches, within = ratings.batches(), request.within
    linked = _check_linked(link_design(design, batches, None))
    is_single = within == "auto" and len(design.items) == 1
    if request.method == "conditional" or within is None or is_single:
        return linked, None, ""
    if within == "auto" and not _are_compared_within(linked, batches):
        return linked, None, _ALL_PAIRS if design.terms else ""
    inside = link_design(design, batches, WITHIN_ITEM)
    if within == "item":
        return _check_linked(inside), WITHIN_ITEM, ""
    if (inside.keeps == linked.keeps).all():
        return linked, WITHIN_ITEM, _SAME_ITEM
    return linked, None, _ALL_PAIRS


_SAME_ITEM = (
    "Severities and the spacing of steps come from ratings of the same person on the same item, "
    "item locations from all ratings of a person."
)
_ALL_PAIRS = (
    "Everything comes from all pairs of a person's ratings: pairs on the same item would not "
    "link all levels. Severities are too close together where persons are better at some items "
    "than at others."
)


def _are_compared_within(design: FacetDesign, batches: Iterable[Ratings]) -> bool:
    """Say whether every step and level has a rating beside another of the same person and item."""
    seen = np.zeros(design.n_columns + 1, bool)  # the last one for ratings without such a step
    for pairs in PairedBatches(design, batches, WITHIN_ITEM):
        has_other = np.diff(pairs.groups.start)[pairs.groups.of_rating] > 1
        for column in pairs.stack_columns().T:
            seen[column[has_other]] = True
    return bool(seen[:-1][design.keeps].all())


def _check_linked(design: FacetDesign) -> FacetDesign:
    empty = [term.name for term in design.terms if not term.keeps.any()]
    if empty or not design.keeps_node.any():
        subject = f"the facet '{empty[0]}'" if empty else "the items"
        raise DisconnectedItems(
            f"the ratings do not link two levels of {subject}: no person has ratings of two of "
            "them that differ both ways, so no number can be determined. Add persons who were "
            "rated by several raters."
        )
    return design


# --- estimation -----------------------------------------------------------------------------


def _solve_bounded(
    design: FacetDesign, ratings: RatingSource, within: str | None, request: FacetRequest
) -> tuple[FacetDesign, FacetNumbers]:
    """Estimate from pairs; leave out levels that run away where nothing checked it before."""
    while True:
        try:
            return design, _solve_pairs(design, ratings, within, request)
        except RunningAway as stopped:
            smaller = drop_runaways(design, stopped.thresholds)
            if smaller.keeps.sum() == design.keeps.sum():
                raise
            design = _check_linked(smaller)


def _solve_pairs(
    design: FacetDesign, ratings: RatingSource, within: str | None, request: FacetRequest
) -> FacetNumbers:
    """Estimate from pairs: in one stage, or severities and spacing before locations."""
    stages = _run_stages(design, ratings, within)
    read = Centring(design)
    last = stages[-1].solution
    thresholds = read.columns(last.thresholds)
    steps = sum(stage.solution.steps for stage in stages)
    solution = Solution("newton", steps, max(stage.solution.gradient for stage in stages))
    if request.refits:
        thresholds = thresholds - _measure_bias(design, ratings, within, thresholds, request.refits)
    size = design.n_columns + len(design.items)
    if not request.standard_errors:
        unknown = np.full(size, np.nan), None, solution, ""
        return FacetNumbers(thresholds, *unknown, np.zeros(design.n_columns, bool))
    covariance = find_covariance(stages, read, ratings.n_persons)
    if covariance is not None:
        variance, se_method = covariance.diagonal(), "Robust standard errors from persons."
    else:
        variance = draw_variances(stages, read, np.random.default_rng(0))
        se_method = "Robust standard errors from random signs of persons."
    variance = np.array(variance)
    is_few = design.keeps & (count_levels(design, ratings)[1] < FEW_PERSONS)
    is_few[: design.n_nodes] = False
    if is_few.any() and isinstance(ratings, Ratings):
        drawn = draw_model_variances(stages[0], design, ratings, within, is_few)
        variance[: design.n_columns][is_few] = drawn[is_few]
        se_method += (
            f" Levels with fewer than {FEW_PERSONS} persons: from scores drawn by the model."
        )
    effect = None
    if covariance is not None and within == WITHIN_ITEM:
        effect = _test_item_effect(stages[0], design, ratings)
    return FacetNumbers(thresholds, variance, covariance, solution, se_method, is_few, effect)


def _test_item_effect(
    inside: Stage, design: FacetDesign, ratings: RatingSource
) -> ItemEffectTest | None:
    """Compare severities from same-item pairs with those from all pairs, where these exist."""
    linked = link_design(design, ratings.batches(), None)
    free = design.keeps & ~design.is_held
    if (linked.keeps != design.keeps).any() or not free[design.n_nodes :].any():
        return None
    (everything,) = _run_stages(design, ratings, None)
    columns = design.n_nodes + np.flatnonzero(free[design.n_nodes :])
    return compare_stages(inside, everything, columns, ratings.n_persons)


def _run_stages(design: FacetDesign, ratings: RatingSource, within: str | None) -> list[Stage]:
    if within is None:
        everything = PairedBatches(design, ratings.batches(), None)
        structure = design.whole_structure()
        return [Stage(everything, structure, maximise_pairs(everything, structure))]
    inside = PairedBatches(design, ratings.batches(), WITHIN_ITEM)
    spacing = design.spacing_structure()
    first = maximise_pairs(inside, spacing)
    locations = design.location_structure(first.thresholds)
    everything = PairedBatches(design, ratings.batches(), None)
    second = maximise_pairs(everything, locations)
    return [Stage(inside, spacing, first), Stage(everything, locations, second)]


def _measure_bias(
    design: FacetDesign,
    ratings: RatingSource,
    within: str | None,
    thresholds: FloatArray,
    refits: int,
) -> FloatArray:
    """Return how far refits to scores drawn from the fit miss it, on average.

    With very many raters of few ratings each, thresholds are a little too far apart.
    """
    if not isinstance(ratings, Ratings):
        raise BadUsage("refits= needs all ratings in memory; leave it out for data on disk")
    rng = np.random.default_rng(1)
    read = Centring(design)
    total = np.zeros_like(thresholds)
    for _ in range(refits):
        drawn = redraw_ratings(design, ratings, thresholds, rng)
        linked = link_design(design, drawn.batches(), within)
        refitted = read.columns(_run_stages(linked, drawn, within)[-1].solution.thresholds)
        # How far a refit is off: of each step, and of levels in proportion to their measure.
        # A single level's difference is mostly noise; the slope over all levels is not.
        bias = np.zeros_like(thresholds)
        nodes = np.flatnonzero(linked.keeps_node)
        bias[nodes] = refitted[nodes] - thresholds[nodes]
        for term, columns in linked.list_terms():
            rows = columns.start + np.flatnonzero(term.keeps)
            measure = thresholds[rows] - thresholds[rows].mean()
            slope = measure @ refitted[rows] / max(float(measure @ measure), 1e-12)
            bias[rows] = (slope - 1) * thresholds[rows]
        total += bias
    return np.asarray(total / refits)


def _solve_conditional(design: FacetDesign, ratings: RatingSource) -> FacetNumbers:
    if not isinstance(ratings, Ratings):
        raise BadUsage(
            "method='conditional' needs all ratings in memory; leave out method= for data on disk"
        )
    structure, solution = design.whole_structure(), maximise_given_totals(design, ratings)
    gauges = structure.gauges.toarray()
    inverse = solution.equations.solve(np.eye(structure.basis.shape[1]))
    null = inverse @ gauges.T  # along what the constraints hold at zero
    inverse = inverse - null @ np.linalg.pinv(gauges @ null) @ null.T
    read = Centring(design)
    covariance = np.asarray(read(read(structure.basis @ inverse @ structure.basis.T).T))
    return FacetNumbers(
        read.columns(solution.thresholds),
        covariance.diagonal(),
        covariance,
        Solution("newton", solution.steps, solution.gradient),
        "Standard errors from the information of the conditional likelihood.",
        np.ones(design.n_columns, bool),
    )


# --- results --------------------------------------------------------------------------------


def _assemble(design: FacetDesign, ratings: RatingSource, numbers: FacetNumbers) -> Estimate:
    n_nodes, n_items = design.n_nodes, len(design.items)
    nodes = np.where(design.keeps_node, numbers.thresholds[:n_nodes], np.nan)
    node_se = np.where(design.keeps_node, np.sqrt(numbers.variance[:n_nodes]), np.nan)
    cuts = design.first_node[1:-1]
    value, se = (pad_steps(np.split(part, cuts)) for part in (nodes, node_se))
    counts = ratings.count_categories()
    node_status = [
        Status.ANCHORED if held else Status.ESTIMATED if keep else Status.NOT_CONNECTED
        for held, keep in zip(design.is_held, design.keeps_node, strict=False)
    ]
    status = [tuple(part) for part in np.split(np.array(node_status, object), cuts)]
    location = np.array([row[: len(own)].mean() for row, own in zip(value, status, strict=True)])
    location_se = np.sqrt(numbers.variance[design.n_columns :])
    location_se[np.isnan(location)] = np.nan
    covariance = step_covariance = None
    if numbers.covariance is not None:
        rows, steps = design.n_columns + np.flatnonzero(np.isfinite(location)), design.keeps_node
        covariance = numbers.covariance[np.ix_(rows, rows)]
        step_covariance = numbers.covariance[:n_nodes, :n_nodes][np.ix_(steps, steps)]
    model = "rating-scale" if design.description.has_steps else "partial-credit"
    kept_counts = np.zeros((n_items, max(design.steps) + 1), np.int64)
    for row, own, categories in zip(kept_counts, counts, design.kept, strict=True):
        row[: len(categories)] = own[list(categories)]
    texts = tuple(tuple(map(str, part)) for part in status)
    ladder = Thresholds(value, se, texts, step_covariance, kept_counts, design.kept, ratings.lowest)
    statuses = [part[0] if len(set(part)) == 1 else Status.NOT_CONNECTED for part in status]
    return Estimate(
        items=design.items,
        difficulty=location,
        se=location_se,
        status=tuple(statuses),
        method="refined",
        solution=numbers.solution,
        covariance=covariance,
        answers=counts.sum(axis=1),
        right=counts @ np.arange(counts.shape[1]),
        persons=ratings.n_persons,
        steps=design.steps,
        model="rasch" if max(design.steps) == 1 else model,
        se_method=numbers.se_method,
        ladder=ladder,
        facets=_list_facets(design, ratings, numbers),
        reading=ratings.reading,
        item_effect=numbers.item_effect,
    )


def _list_facets(
    design: FacetDesign, ratings: RatingSource, numbers: FacetNumbers
) -> dict[str, FacetLevels]:
    tables = {}
    n_ratings, n_persons = count_levels(design, ratings)
    for term, columns in design.list_terms():
        persons = n_persons[columns]
        # A sum of squares over few persons is too small: n / (n - 1) and Student's t.
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(persons > 1, persons / (persons - 1), np.nan)
        exact = numbers.is_model_based[columns]
        se = np.sqrt(numbers.variance[columns] * np.where(exact, 1.0, factor))
        keeps = term.keeps
        free = columns.start + np.flatnonzero(keeps & ~design.is_held[columns])
        tables[term.name] = FacetLevels(
            name=term.name,
            levels=term.levels,
            measure=np.where(keeps, numbers.thresholds[columns], np.nan),
            se=np.where(keeps, se, np.nan),
            status=tuple(
                LevelStatus.ANCHORED if one else was
                for one, was in zip(design.is_held[columns], term.status, strict=True)
            ),
            subset=term.subset,
            ratings=n_ratings[columns],
            persons=persons,
            degrees=np.where(exact, 0, np.maximum(persons - 1, 0)),
            equal=_test_equality(numbers, free, ratings.n_persons),
        )
    return tables


def _test_equality(
    numbers: FacetNumbers, columns: IndexArray, n_persons: int
) -> DifferenceTest | None:
    """Test whether levels are equal; the exact likelihood's covariance counts as known."""
    if numbers.covariance is None or not len(columns):
        return None
    is_known = bool(numbers.is_model_based.all())
    covariance = numbers.covariance[np.ix_(columns, columns)]
    return DifferenceTest.of(numbers.thresholds[columns], covariance, 0 if is_known else n_persons)


def count_levels(design: FacetDesign, ratings: RatingSource) -> tuple[Int64Array, Int64Array]:
    """Count the ratings of every column, and the persons behind them."""
    n_ratings, n_persons = np.zeros((2, design.n_columns), np.int64)
    for batch in ratings.batches():
        levels = design.find_levels(batch)
        for column in levels.T:
            n_ratings += np.bincount(column, minlength=design.n_columns)
            cells = np.unique(column.astype(np.int64) * batch.n_persons + batch.person)
            n_persons += np.bincount(cells // batch.n_persons, minlength=design.n_columns)
    return n_ratings, n_persons


def _warn_categories(design: FacetDesign) -> list[FitWarning]:
    shifted = [
        item
        for item, kept in zip(design.items, design.kept, strict=True)
        if kept != tuple(range(len(kept)))
    ]
    if not shifted:
        return []
    sentence = (
        f"{count_of(len(shifted))} with a category that nobody was given, which was left out: the "
        f"categories above it count one less ({name_some(shifted)})"
    )
    return [FitWarning(WarningKind.UNUSED_CATEGORY, sentence, shifted)]


def _warn_levels(estimate: Estimate) -> list[FitWarning]:
    warnings = []
    for name, facet in estimate.facets.items():
        for status, reason in _REASONS.items():
            concerned = [
                level
                for level, own in zip(facet.levels, facet.status, strict=True)
                if own is status
            ]
            if concerned:
                sentence = (
                    f"no measure for {count_of(len(concerned), 'level')} of '{name}' {reason}: "
                    f"{name_some(concerned)}"
                )
                warnings.append(FitWarning(WarningKind.LEFT_OUT, sentence, concerned))
    return warnings


_REASONS = {
    LevelStatus.ALWAYS_LOWEST: "who gave the lowest score in every comparison with others",
    LevelStatus.ALWAYS_HIGHEST: "who gave the highest score in every comparison with others",
    LevelStatus.NOT_CONNECTED: "that no person links to the largest subset",
    LevelStatus.UNBOUNDED: "whose estimate has no bound, together with other levels or steps",
}
