"""Answers with steps, drawn from the partial credit or the rating scale model."""

import numpy as np

import discreet
from discreet.answers.pack import store_codes


def chances(ability, thresholds):
    """Return the probability of every category, ``[person, category]``."""
    odds = np.cumsum(ability[:, None] - np.asarray(thresholds), axis=1)
    odds = np.concatenate([np.zeros((len(ability), 1)), odds], axis=1)
    share = np.exp(odds - odds.max(axis=1, keepdims=True))
    return share / share.sum(axis=1, keepdims=True)


def draw_thresholds(rng, steps, *, common=False):
    """Return thresholds ``[item, step]``, NaN beyond an item's steps, of mean location zero."""
    ladder = np.full((len(steps), max(steps)), np.nan)
    distance = np.linspace(-0.8, 0.8, max(steps))
    for item, most in enumerate(steps):
        own = distance if common else np.sort(rng.normal(0, 0.7, most))
        ladder[item, :most] = rng.normal() + own
    return ladder - np.nanmean(ladder, axis=1).mean()


def draw_answers(rng, persons, thresholds, *, missing=0.0, spread=1.2):
    """Return categories ``[person, item]``, -1 where missing."""
    ability = rng.normal(0, spread, persons)
    codes = np.empty((persons, len(thresholds)), dtype=np.int8)
    for item, own in enumerate(thresholds):
        share = chances(ability, own[~np.isnan(own)])
        codes[:, item] = (rng.random((persons, 1)) > share.cumsum(axis=1)).sum(axis=1)
    codes[rng.random(codes.shape) < missing] = -1
    return codes


def draw_codes(seed, persons, steps, *, missing=0.0):
    """Return categories of persons who answer items with these steps."""
    rng = np.random.default_rng(seed)
    return draw_answers(rng, persons, draw_thresholds(rng, steps), missing=missing)


def hold(seed, persons, steps, *, missing=0.0, common=False):
    """Return answers and the thresholds behind them."""
    rng = np.random.default_rng(seed)
    thresholds = draw_thresholds(rng, steps, common=common)
    codes = draw_answers(rng, persons, thresholds, missing=missing)
    return discreet.Responses.from_store(store_codes(codes, steps)), thresholds
