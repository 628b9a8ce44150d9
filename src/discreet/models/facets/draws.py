"""Scores drawn from a fitted facets model, and standard errors from them.

In: a design, ratings and thresholds. Out: ratings with drawn scores, and variances of levels that
have too few persons for robust ones. Given the total of a person's ratings (or of those on one
item) the law of the scores has no ability in it, so draws are exact.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from discreet.answers.ratings import Ratings
from discreet.models.facets import kernels
from discreet.models.facets.standard_errors import DRAWS, SOLVED, Stage
from discreet.models.facets.structure import FacetDesign
from discreet.types import BoolArray, FloatArray


def redraw_ratings(
    design: FacetDesign,
    ratings: Ratings,
    thresholds: FloatArray,
    rng: np.random.Generator,
    within: str | None = None,
) -> Ratings:
    """Return ratings with scores drawn from the model, given the total of each group."""
    score = design.recode(ratings)
    start = design.group(ratings, within).start
    columns = design.first_node[ratings.item].astype(np.int32), design.find_levels(ratings)
    most = np.asarray(design.steps, np.int32)[ratings.item]
    usable = np.nan_to_num(thresholds)
    kernels.draw_scores(start, columns, most, usable, rng.random(len(score)), score)
    widest = max(map(len, design.kept))
    categories = np.array([[*kept, *[0] * (widest - len(kept))] for kept in design.kept], np.int32)
    return replace(ratings, score=categories[ratings.item, score])


def draw_model_variances(
    stage: Stage, design: FacetDesign, ratings: Ratings, within: str | None, is_few: BoolArray
) -> FloatArray:
    """Return variances of all columns, model-based for those of few persons.

    Persons whom such a level rated have their scores drawn from the model; the others enter with
    random signs, as in robust errors.
    """
    rng = np.random.default_rng(2)
    thresholds = stage.solution.thresholds
    concerned = is_few[design.find_levels(ratings)].any(axis=1)
    is_drawn = np.zeros(ratings.n_persons, bool)
    is_drawn[ratings.person[concerned]] = True
    part = ratings.select(np.flatnonzero(is_drawn[ratings.person]))
    (pairs,) = stage.batches
    signs = 2 * rng.integers(0, 2, (ratings.n_persons, DRAWS), dtype=np.int8) - 1
    signs[is_drawn] = 0
    sums = pairs.sum_persons(pairs.score_ratings(thresholds), np.asarray(signs, np.int8))
    for draw in range(DRAWS):
        drawn = redraw_ratings(design, part, thresholds, rng, within)
        sums[:, draw] += design.pair(drawn, within).score(thresholds)[1]
    basis = stage.structure.basis
    moved = basis @ stage.solution.equations.solve(np.asarray(basis.T @ sums), SOLVED)
    return np.asarray((moved**2).mean(axis=1))
