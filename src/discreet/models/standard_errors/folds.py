"""Standard errors from folds: what the estimate would be without one fold of persons.

In: counts of persons in folds, the chain and the estimate of all. Out: standard errors and a
covariance that ask for no answers. Persons are independent and a person is always in the same
fold, so folds are independent; how far the estimate moves when one of them is left out says how
sure it is.

Leaving out a fold changes the counts a little, so one Newton step with the Laplacian of the
persons who are left finds where the estimate goes (experiments/calibration/folds.py compares it
with fitting anew). With ``p`` the fold's share of the persons, the move has variance ``p / (1 -
p)`` times that of the estimate, also where folds are of different sizes; so the covariance is the
sum of ``(1 - p) move move'`` over folds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from discreet.counts.folds import FEWEST_FOLDS, FoldCounts
from discreet.counts.matrix import Locations
from discreet.errors import FitWarning, WarningKind
from discreet.models.connectivity import Chain, find_reached
from discreet.models.laplacian import Laplacian, build_laplacian, solve
from discreet.models.methods import Method
from discreet.models.standard_errors import Uncertainty
from discreet.models.standard_errors.sandwich import (
    COVARIANCE_LIMIT,
    NO_COVARIANCE,
    NO_STEP_COVARIANCE,
)
from discreet.models.step_plan import StepPlan
from discreet.models.structure import Structure
from discreet.models.weak_links import MANY_LOST
from discreet.text import count_of, name_some
from discreet.threads import threads_for
from discreet.types import BoolArray, FloatArray


def leave_folds_out(
    folds: FoldCounts,
    chain: Chain,
    method: Method,
    difficulty: FloatArray,
    plan: StepPlan,
    *,
    weight: int = 1,
) -> Uncertainty:
    """Estimate the uncertainty by leaving out one fold at a time.

    ``weight`` is what folds were multiplied by and the rates of the chain were not; ``plan`` says
    which items have steps, and the structure that the thresholds obey, if any.
    """
    with threads_for(len(difficulty)):
        structure = plan.build_structure(chain.linked)
        moves = _find_moves(folds, chain, method, difficulty, weight, structure)
    share = folds.persons / max(int(folds.persons.sum()), 1)
    scaled = moves * np.sqrt(1 - share)[:, None]
    lost = ~np.isfinite(scaled).all(axis=0)
    thin = _is_thin(folds, chain) | lost | (lost.mean() > MANY_LOST)
    degrees = int((folds.persons > 0).sum()) - 1
    note = (
        f"standard errors by leaving out one of {folds.number} folds of persons at a time "
        f"({degrees} degrees of freedom)"
    )
    locations = plan.locate(chain.linked)
    # The items without a standard error; with steps, those that lack one of a step.
    thin_names = [plan.items[place] for place in np.unique(plan.item_of[chain.linked[thin]])]
    notes = (note, *([_explain_thin(thin_names)] if thin_names else []))
    errors = _sum_moves(scaled, thin) if locations is None else _sum_steps(scaled, thin, locations)
    if len(difficulty) > COVARIANCE_LIMIT:
        apart = errors.locations is None or errors.locations.covariance is None
        missing = NO_COVARIANCE if apart else NO_STEP_COVARIANCE
        notes += (f"{missing}standard errors only",)
    se_method = f"{note[0].upper()}{note[1:]}."
    return replace(errors, notes=notes, degrees=degrees, se_method=se_method)


def _sum_moves(moves: FloatArray, thin: BoolArray) -> Uncertainty:
    """Return standard errors of moves ``[fold, item]``, and the covariance where it is complete."""
    se = np.sqrt((moves**2).sum(axis=0))
    se[thin] = np.nan
    complete = len(se) <= COVARIANCE_LIMIT and not thin.any()
    return Uncertainty(se, moves.T @ moves if complete else None)


def _sum_steps(moves: FloatArray, thin: BoolArray, locations: Locations) -> Uncertainty:
    """Return standard errors of thresholds and of locations from moves ``[fold, node]``."""
    # A step that only one fold links does not move the mean of the others.
    moves = np.where(np.isfinite(moves).all(axis=0), moves, 0.0).T
    nodes = _sum_moves(locations.centre(moves).T, thin)
    thin_items = locations.average(thin.astype(np.float64)) > 0
    return replace(nodes, locations=_sum_moves(locations.find(moves).T, thin_items))


def _find_moves(
    folds: FoldCounts,
    chain: Chain,
    method: Method,
    difficulty: FloatArray,
    weight: int,
    structure: Structure,
) -> FloatArray:
    """Return how far the difficulties move without each fold, ``[fold, item]``."""
    surprise = method.scoring(difficulty).residual(difficulty[:, None], difficulty[None, :])
    # Folds are kept of so few items only that a matrix between all of them is small.
    rates = chain.rates if isinstance(chain.rates, np.ndarray) else chain.rates.toarray()
    moves = np.zeros((folds.number, len(difficulty)))
    for fold in np.flatnonzero(folds.persons):
        counts = folds.right_wrong[fold][np.ix_(chain.linked, chain.linked)] / weight
        flow = counts * surprise
        score = flow.sum(axis=1) - flow.sum(axis=0)
        laplacian = method.laplacian(rates - counts, difficulty)
        if structure.is_identity:
            moves[fold] = _move(laplacian, score)
        else:
            moves[fold] = structure.invert(laplacian) @ score
    return moves


def _move(laplacian: Laplacian, score: FloatArray) -> FloatArray:
    """Return the Newton step; NaN for items that nobody else links to the others."""
    linked = find_reached(laplacian.weights, int(np.argmax(laplacian.diagonal)))
    step = np.full(len(score), np.nan)
    if linked.all():
        return solve(laplacian, score)
    part = build_laplacian(laplacian.weights[np.ix_(linked, linked)])
    step[linked] = solve(part, score[linked] - score[linked].mean())
    return step


def _is_thin(folds: FoldCounts, chain: Chain) -> BoolArray:
    """Say which of the linked items were answered in too few folds."""
    answered = (folds.answers[:, chain.linked] > 0).sum(axis=0)
    return np.asarray(answered < FEWEST_FOLDS)


def _explain_thin(names: list[str]) -> FitWarning:
    sentence = (
        f"no standard error for {count_of(len(names))} answered (or, with steps, in some category) "
        f"by persons of too few folds (fewer than {FEWEST_FOLDS}, or linked to the others by one "
        f"alone): {name_some(names)}. Fit the answers themselves, or count more persons"
    )
    return FitWarning(WarningKind.NO_STANDARD_ERRORS, sentence, names)
