"""Standard errors from folds: what the estimate would be without one fold of persons.

In: counts of persons in folds, the chain and the estimate of all. Out: standard errors and a
covariance that ask for no answers. Persons are independent and a person is always in the same
fold, so folds are independent; how far the estimate moves when one of them is left out says how
sure it is.

Leaving out a fold changes the counts a little, so one Newton step with the Laplacian of the
persons who are left finds where the estimate goes (bench/folds.py compares it with fitting
anew). With ``p`` the fold's share of the persons, the move has variance ``p / (1 - p)`` times that
of the estimate, also where folds are of different sizes; so the covariance is the sum of
``(1 - p) move move'`` over folds.
"""

from __future__ import annotations

import numpy as np

from discreet.counts.folds import FEWEST_FOLDS, FoldCounts
from discreet.jit import threads_for
from discreet.markup import count_of, name_some
from discreet.models.connection import Chain, find_reached
from discreet.models.laplacian import Laplacian, build_laplacian, invert_within, solve
from discreet.models.methods import Method
from discreet.models.uncertainty import COVARIANCE_LIMIT, NO_COVARIANCE, Uncertainty
from discreet.results.estimate import Kind, Notice
from discreet.types import BoolArray, FloatArray


def leave_folds_out(
    folds: FoldCounts,
    chain: Chain,
    method: Method,
    difficulty: FloatArray,
    weight: int = 1,
    basis: FloatArray | None = None,
) -> Uncertainty:
    """Estimate the uncertainty by leaving out one fold at a time.

    ``weight`` is what folds were multiplied by and the rates of the chain were not; ``basis`` is
    the structure that the difficulties obey, if any.
    """
    with threads_for(len(difficulty)):
        moves = _find_moves(folds, chain, method, difficulty, weight, basis)
    share = folds.persons / max(int(folds.persons.sum()), 1)
    scaled = moves * np.sqrt(1 - share)[:, None]
    se = np.sqrt((scaled**2).sum(axis=0))
    thin = _is_thin(folds, chain) | ~np.isfinite(se)
    se[thin] = np.nan
    degrees = int((folds.persons > 0).sum()) - 1
    notes: tuple[str, ...] = (
        f"standard errors by leaving out one of {folds.number} folds of persons at a time "
        f"({degrees} degrees of freedom)",
    )
    if thin.any():
        notes += (_explain_thin([chain.items[place] for place in chain.kept[thin]]),)
    covariance = None
    if len(difficulty) > COVARIANCE_LIMIT:
        notes += (f"{NO_COVARIANCE}standard errors only",)
    elif not thin.any():
        covariance = scaled.T @ scaled
    how = f"{notes[0][0].upper()}{notes[0][1:]}."
    return Uncertainty(se, covariance, notes, degrees, how)


def _find_moves(
    folds: FoldCounts,
    chain: Chain,
    method: Method,
    difficulty: FloatArray,
    weight: int,
    basis: FloatArray | None,
) -> FloatArray:
    """Return how far the difficulties move without each fold, ``[fold, item]``."""
    surprise = method.scoring(difficulty).residual(difficulty[:, None], difficulty[None, :])
    # Folds are kept of so few items only that a matrix between all of them is small.
    rates = chain.rates if isinstance(chain.rates, np.ndarray) else chain.rates.toarray()
    moves = np.zeros((folds.number, len(difficulty)))
    for fold in np.flatnonzero(folds.persons):
        counts = folds.right_wrong[fold][np.ix_(chain.kept, chain.kept)] / weight
        flow = counts * surprise
        score = flow.sum(axis=1) - flow.sum(axis=0)
        laplacian = method.laplacian(rates - counts, difficulty)
        if basis is None:
            moves[fold] = _move(laplacian, score)
        else:
            moves[fold] = invert_within(laplacian, basis) @ score
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
    answered = (folds.answers[:, chain.kept] > 0).sum(axis=0)
    return np.asarray(answered < FEWEST_FOLDS)


def _explain_thin(names: list[str]) -> Notice:
    sentence = (
        f"no standard error for {count_of(len(names))} answered by persons of too few folds "
        f"(fewer than {FEWEST_FOLDS}, or linked to the others by one alone): {name_some(names)}"
    )
    return Notice(Kind.NO_STANDARD_ERRORS, sentence, names)
