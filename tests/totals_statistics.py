"""Statistics behind the fit of totals, in floats and by definition; for tests of the fit alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

from discreet.models.noisy.totals import FormTotals
from discreet.models.noisy.totals.moments import category_node_probabilities

BASIS = np.array([[0, 2, 0, 0], [-3, 0, 4, 0], [0, -8, 0, 8.0]])
CONSTANTS = np.array([-1.0, 0.0, 1.0])


def mean_products(values, order):
    """Mean over all sets of r columns of the product of their values, r = 1 .. order."""
    columns = range(values.shape[1])
    return np.stack(
        [
            np.mean([values[:, list(one)].prod(axis=1) for one in combinations(columns, r)], axis=0)
            for r in range(1, order + 1)
        ],
        axis=1,
    )


def blank_form(columns, widest, moments, **public):
    """Return a form without any values."""
    m = len(columns)
    usual = {
        "persons": 1.0,
        "max_answers": m,
        "typical": float(m),
        "complete": True,
        "least_answers": moments + 1,
    }
    return FormTotals(
        columns=np.asarray(columns, dtype=np.intp),
        category=np.zeros((m, widest + 1)),
        category_noise=np.zeros((m, widest + 1, widest + 1)),
        moment=np.zeros(moments),
        moment_noise=np.zeros(moments),
        contributing=1.0,
        contributing_noise=0.0,
        takers=None,
        takers_noise=0.0,
        persons_noise=0.0,
        **{**usual, **public},
    )


def expect_statistics(thresholds, ability, weight, columns, persons, moments=3, share=1.0):
    """Expected statistics of a form whose items are answered by a random share of persons."""
    is_open = ~np.isnan(thresholds)
    own = np.asarray(columns)
    chance = category_node_probabilities(np.nan_to_num(thresholds)[own], is_open[own], ability)
    steps = is_open[own].sum(axis=1)
    score = np.tensordot(chance, np.arange(chance.shape[1]), axes=(1, 0))
    products = mean_products((2 * score / steps[:, None] - 1).T, moments + 1)
    moment = weight @ products @ BASIS[:moments, : moments + 1].T + CONSTANTS[:moments]
    form = blank_form(own, thresholds.shape[1], moments, persons=persons, complete=share == 1)
    return replace(
        form,
        category=share * persons * (chance @ weight),
        moment=moment * persons * share,
        contributing=persons * share,
    )


def measure_codes(codes, steps, form):
    """Statistics of persons, exactly as they are defined; -1: no answer."""
    seen = codes >= 0
    answers = seen.sum(axis=1)
    weight = np.minimum(1.0, np.sqrt(form.typical / np.maximum(answers, 1)))
    most = form.max_answers * min(1.0, np.sqrt(form.typical / form.max_answers))
    steps = np.asarray(steps)[form.columns]
    size = len(form.moment)
    order = size + 1
    value = np.where(seen, 2 * codes / steps - 1, 0.0)
    sums = [np.ones(len(codes))] + [np.zeros(len(codes)) for _ in range(order)]
    for column in value.T:
        for r in range(order, 0, -1):
            sums[r] = sums[r] + column * sums[r - 1]
    enough = answers >= form.least_answers
    ways = np.ones(len(codes))
    means = []
    for r in range(1, order + 1):
        ways = ways * (answers - r + 1) / r
        means.append(np.where(enough, sums[r] / np.where(enough, ways, 1.0), 0.0))
    unit = np.where(enough, weight * answers / most, 0.0)
    moment = np.stack(means, axis=1) @ BASIS[:size, :order].T + CONSTANTS[:size]
    best = np.maximum((seen * steps).sum(axis=1), 1)
    standing = weight * (np.where(seen, codes, 0).sum(axis=1) / best - 0.5)
    category = [weight @ (codes == k) for k in range(form.category.shape[1])]
    return replace(
        form,
        category=np.stack(category, axis=1).astype(float),
        moment=unit @ moment,
        contributing=float(unit.sum()),
        takers=None if form.takers is None else standing @ seen,
        persons=float(len(codes)),
    )


def add_noise(form, steps, deviation, rng):
    """Add normal noise with the given standard deviation to everything that is not public."""
    own = np.asarray(steps)[form.columns]
    there = np.arange(form.category.shape[1]) <= own[:, None]
    size = form.category.shape
    return replace(
        form,
        category=form.category + there * rng.normal(0, deviation, size),
        category_noise=there[:, :, None] * np.eye(size[1]) * deviation**2,
        moment=form.moment + rng.normal(0, deviation, len(form.moment)),
        moment_noise=np.full(len(form.moment), deviation**2),
        takers=None if form.takers is None else form.takers + rng.normal(0, deviation, size[0]),
        takers_noise=deviation**2,
    )


def draw_codes(thresholds, ability, rng):
    """Simulate complete answers."""
    chance = category_node_probabilities(np.nan_to_num(thresholds), ~np.isnan(thresholds), ability)
    passed = np.cumsum(chance, axis=1)[:, :-1].transpose(2, 0, 1)
    return (rng.random((*passed.shape[:2], 1)) > passed).sum(axis=2).astype(np.int8)
