"""Sensitivity of the totals: brute force over all neighbours, and planted faults."""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.answers import category_totals
from discreet.answers.category_totals import PRODUCTS, CategoryTotals
from discreet.answers.pack import store_codes
from discreet.errors import BadUsage
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.mechanisms import totals
from discreet.privacy.mechanisms.totals import (
    GRID,
    Summed,
    Totals,
    find_diameter,
    shape_forms,
    totals_l2_sensitivity,
    unpack_shapes,
)
from discreet.privacy.protocol import Public
from discreet.secure import SeededSource
from refusals import refused

BOTH = list(Neighbours)
REPLACE, ADD = BOTH

DESIGNS = {
    "two right or wrong": {"steps": (1, 1)},
    "three": {"steps": (1, 2, 1)},
    "mixed steps": {"steps": (1, 2, 3, 1)},
    "a cap": {"steps": (1, 2, 1, 2), "cap": 3},
    "weights": {"steps": (2, 1, 1, 1, 1), "answers": 2.0},
    "weights and a cap": {"steps": (1, 1, 2, 1, 1), "cap": 4, "answers": 2.5},
    "one typical answer": {"steps": (1, 1, 1, 1), "answers": 1.0},
    "six right or wrong": {"steps": (1,) * 6, "answers": 4.0},
    "a number fixed in advance": {"steps": (1, 2, 1), "fixed": True},
    "random": {"steps": (2, 1, 3, 1), "design": "random"},
    "complete": {"steps": (2, 2, 2, 1), "design": "complete"},
    "forms": {"steps": (1, 2, 1, 1, 1), "forms": ("abc", "cde")},
    "forms of two lengths": {"steps": (1, 1, 1, 1, 1), "forms": ("ab", "bcde"), "answers": 2.0},
    "complete forms": {"steps": (2, 1, 1, 2), "forms": ("abc", "bcd"), "design": "complete"},
}  # fmt: skip


def make_public(neighbours, steps, cap=None, forms=(), design="unknown", answers=None, fixed=False):
    """Return public parameters and the mechanism."""
    items = tuple("abcdefgh"[: len(steps)])
    persons = 100 if neighbours is REPLACE else None
    public = Public(
        items, cap or len(items), neighbours, persons, steps=steps, forms=tuple(map(tuple, forms)),
        design=design, is_fixed=fixed and neighbours is REPLACE,
    )  # fmt: skip
    return public, Totals(answers=answers)


def everybody(public, *, capped=True):
    """Every person that can exist: categories, -1 where there is no answer."""
    rows = np.array(list(product(*(range(-1, step + 1) for step in public.steps))), dtype=np.int8)
    if capped:
        rows = rows[(rows >= 0).sum(axis=1) <= public.max_answers]
    forms = [np.isin(public.items, form) for form in public.forms]
    fits = [((rows >= 0) <= form).all(axis=1) for form in forms]
    if public.design == "complete":
        sizes = [form.sum() for form in forms] or [len(public.items)]
        whole = [(rows >= 0).sum(axis=1) == size for size in sizes]
        fits = [one & two for one, two in zip(fits, whole, strict=True)] if forms else whole
    return rows[np.any(fits, axis=0)] if fits else rows


def contributions(rows, public, mechanism, calibration, job=None):
    """What each person adds to every block, from the code that a release runs."""
    job = job or mechanism.job(public, calibration)
    found = []
    for row in rows:
        sums = job.read(job.block(store_codes(row[None], public.steps)))
        found.append(mechanism.cells(Summed(job, sums), calibration))
    return {name: np.array([one[name] for one in found]) for name in found[0]}


def farthest(cells, neighbours):
    """The largest squared length of every block, over all neighbours."""
    return {name: int(squares(rows, neighbours).max()) for name, rows in cells.items()}


def squares(rows, neighbours):
    if neighbours is ADD:
        return (rows.astype(object) ** 2).sum(axis=1)
    real = rows.astype(np.float64)  # squares of these integers, below 2^53 each, are exact enough
    norm = (real**2).sum(axis=1)
    return np.maximum(norm[:, None] + norm - 2 * real @ real.T, 0)


def largest_mu(cells, laws, neighbours):
    """The largest squared distance in standard deviations of the noise, over all neighbours."""
    return sum(
        squares(rows, neighbours) / float(laws[n].scale) ** 2 for n, rows in cells.items()
    ).max()


@cache
def prepare(name, neighbours):
    public, mechanism = make_public(neighbours, **DESIGNS[name])
    calibration = mechanism.calibrate(public, Budget(1.0, 1e-6, neighbours), SeededSource(0))
    shapes = unpack_shapes(public, calibration.settings["forms"])
    bound = totals_l2_sensitivity(shapes, public.steps, neighbours, calibration.laws)
    return public, mechanism, calibration, bound


@cache
def honest(name, neighbours):
    """What everybody adds, without any fault."""
    public, mechanism, calibration, _ = prepare(name, neighbours)
    return contributions(everybody(public), public, mechanism, calibration)


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("name", DESIGNS)
def test_no_two_neighbours_are_farther_apart_than_the_noise_is_made_for(name, neighbours):
    _, _, calibration, bound = prepare(name, neighbours)
    cells = honest(name, neighbours)
    assert set(cells) == set(bound) == set(calibration.laws)
    for block, found in farthest(cells, neighbours).items():
        assert found <= bound[block] * (1 + 1e-12), block
    claim = float(calibration.spend.bound.mu_squared)
    assert largest_mu(cells, calibration.laws, neighbours) <= claim * (1 + 1e-12)


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("name", [name for name in DESIGNS if "complete" not in name])
def test_every_single_bound_is_attained_up_to_rounding(name, neighbours):
    bound = prepare(name, neighbours)[-1]
    found = farthest(honest(name, neighbours), neighbours)
    for block in bound:
        slack = 1e-3 if block == "moment" else 1e-9
        assert found[block] >= bound[block] * (1 - slack), block


@pytest.mark.parametrize("neighbours", BOTH)
def test_categories_and_takers_are_moved_farthest_by_the_same_person(neighbours):
    _, _, calibration, bound = prepare("mixed steps", neighbours)
    cells = honest("mixed steps", neighbours)
    near = {name: cells[name] for name in cells if name not in ("moment", "persons")}
    together = sum(bound[name] / float(calibration.laws[name].scale) ** 2 for name in near)
    assert largest_mu(near, calibration.laws, neighbours) == pytest.approx(together, rel=1e-9)


@settings(max_examples=10, deadline=None)
@given(st.data())
def test_mixed_designs_keep_the_bound(data):
    steps = tuple(data.draw(st.lists(st.integers(1, 3), min_size=2, max_size=4)))
    cap = data.draw(st.integers(2, len(steps)))
    answers = data.draw(st.none() | st.floats(1, 4))
    neighbours = data.draw(st.sampled_from(BOTH))
    public, mechanism = make_public(neighbours, steps, cap, answers=answers)
    calibration = mechanism.calibrate(public, Budget(1.0, 1e-6, neighbours), SeededSource(0))
    cells = contributions(everybody(public), public, mechanism, calibration)
    claim = float(calibration.spend.bound.mu_squared)
    assert largest_mu(cells, calibration.laws, neighbours) <= claim * (1 + 1e-12)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 5), st.sampled_from(["mixed steps", "forms"]))
def test_a_data_set_adds_up_to_its_persons_and_neighbours_differ_by_one_of_them(seed, n, name):
    rng = np.random.default_rng(seed)
    public, mechanism, calibration, _ = prepare(name, REPLACE)
    kinds = everybody(public)
    rows = kinds[rng.integers(0, len(kinds), n)]
    job = mechanism.job(public, calibration)
    sums = job.read(job.block(store_codes(rows, public.steps)))
    whole = mechanism.cells(Summed(job, sums), calibration)
    alone = contributions(rows, public, mechanism, calibration)
    for block in whole:
        assert np.array_equal(whole[block], alone[block].sum(axis=0))


@pytest.mark.parametrize("cap", [8, 12, 20, 40, 90])
def test_the_bound_of_moments_holds_for_long_tests_of_random_persons(cap):
    """Far too many persons to try: extreme ones, near ones and random ones, in integers."""
    rng = np.random.default_rng(cap)
    steps = tuple(int(s) for s in rng.integers(1, 5, cap))
    items = tuple(map(str, range(cap)))
    public = Public(items, cap, REPLACE, 100, steps=steps)
    mechanism = Totals(answers=cap / 2)
    calibration = mechanism.calibrate(public, Budget(1.0, 1e-6), SeededSource(0))
    rows = []
    for answered in sorted({2, 4, 6, cap // 2, cap - 1, cap}):
        for top in range(0, answered + 1, max(1, answered // 12)):
            row = np.full(cap, -1)
            chosen = rng.permutation(cap)[:answered]
            row[chosen] = np.where(np.arange(answered) < top, np.array(steps)[chosen], 0)
            middle = np.where(rng.random(cap) < 0.1, (row > 0) * (row - 1), row)
            rows += [row, np.where(row < 0, row, middle)]
    cells = contributions(np.array(rows, np.int8), public, mechanism, calibration)
    shapes = unpack_shapes(public, calibration.settings["forms"])
    bound = totals_l2_sensitivity(shapes, steps, REPLACE)
    found = farthest(cells, REPLACE)
    assert 0.9 * bound["moment"] < found["moment"] <= bound["moment"]
    assert largest_mu(cells, calibration.laws, REPLACE) <= float(calibration.spend.bound.mu_squared)


@pytest.mark.parametrize("points", [300, 5000, 40_000])
def test_boxes_find_the_diameter_of_many_points(points):
    rng = np.random.default_rng(points)
    cloud = rng.normal(size=(points, 3)) * [1, 0.7, 0.2]
    exact = max(
        float(np.sqrt(((cloud - one) ** 2).sum(axis=1).max()))
        for one in cloud[np.argsort(-(cloud**2).sum(axis=1))[:2000]]
    )
    assert exact <= find_diameter(cloud) * (1 + 1e-12)
    assert find_diameter(cloud) == pytest.approx(exact, rel=1e-3)


@pytest.mark.parametrize(("cap", "at_most"), [(4, 8), (6, 6.1), (10, 5.8), (20, 5.8), (50, 5.3)])
def test_short_tests_do_not_make_moments_long(cap, at_most):
    public = Public(tuple(map(str, range(cap))), cap, REPLACE, 100)
    shapes = shape_forms(public, Fraction(cap))
    bound = totals_l2_sensitivity(shapes, public.steps, REPLACE)
    assert bound["moment"] / totals.MOMENT_GRID**2 < at_most


# --- planted faults -----------------------------------------------------------------------------


def exceeds(name, neighbours, change=None, laws=None, *, capped=True):
    """Say whether some neighbours are farther apart than promised, after a fault was planted."""
    public, mechanism, calibration, _ = prepare(name, neighbours)
    job = mechanism.job(public, calibration)
    if change is not None:
        job = CategoryTotals(public.steps, [change(form) for form in job.forms])
    if change is None and capped:
        cells = honest(name, neighbours)
    else:
        rows = everybody(public, capped=capped)
        cells = contributions(rows, public, mechanism, calibration, job)
    claim = float(calibration.spend.bound.mu_squared)
    found = largest_mu(cells, (laws or (lambda same: same))(calibration.laws), neighbours)
    return bool(found > claim * (1 + 1e-9))


@pytest.mark.parametrize("neighbours", BOTH)
def test_a_weight_that_is_not_applied_is_caught(neighbours):
    def unweighted(form):
        return replace(form, weight=np.where(form.weight > 0, GRID, 0))

    assert not exceeds("weights", neighbours)
    assert exceeds("weights", neighbours, unweighted)


@pytest.mark.parametrize("neighbours", BOTH)
def test_a_cap_that_is_not_enforced_changes_nothing_and_would_be_caught_if_tables_went_on(
    neighbours,
):
    def endless(form):
        return replace(form, weight=np.append(form.weight[:-1], form.weight[-2]))

    assert not exceeds("a cap", neighbours, capped=False)
    assert exceeds("a cap", neighbours, endless, capped=False)


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("block", ["takers", "moment"])
def test_noise_of_takers_or_moments_without_their_factor_is_caught(block, neighbours):
    def louder(laws):
        return {**laws, block: replace(laws[block], scale=laws[block].scale / 4)}

    assert exceeds("mixed steps", neighbours, laws=louder)


def test_constants_left_out_under_add_remove_are_caught():
    def bare(form):
        factors = form.factors.copy()
        factors[:, :, PRODUCTS.index("1")] = 0
        return replace(form, factors=factors)

    public, mechanism, calibration, bound = prepare("random", ADD)
    job = mechanism.job(public, calibration)
    faulty = CategoryTotals(public.steps, [bare(form) for form in job.forms])
    cells = contributions(everybody(public), public, mechanism, calibration, faulty)
    assert farthest(cells, ADD)["moment"] > bound["moment"]


@pytest.mark.parametrize("neighbours", BOTH)
def test_rounding_that_is_not_counted_is_caught(neighbours, monkeypatch):
    monkeypatch.setattr(totals, "MOMENT_GRID", 3)
    public, mechanism = make_public(neighbours, (3, 3, 3), design="random")
    cells = contributions(*_with_noise(public, mechanism))
    shapes = shape_forms(public, Fraction(3))
    counted = totals_l2_sensitivity(shapes, public.steps, neighbours)["moment"]
    monkeypatch.setattr(totals, "rounding", lambda shape: 0.0)
    forgotten = totals_l2_sensitivity(shapes, public.steps, neighbours)["moment"]
    found = farthest(cells, neighbours)["moment"]
    assert forgotten < found <= counted


def _with_noise(public, mechanism):
    budget = Budget(1.0, 1e-6, public.neighbours)
    calibration = mechanism.calibrate(public, budget, SeededSource(0))
    return everybody(public), public, mechanism, calibration


def test_moments_from_floats_of_a_batch_are_caught(monkeypatch):
    """What a person adds must not depend on who else is in the batch."""
    public, mechanism, calibration, _ = prepare("mixed steps", REPLACE)
    rows = everybody(public)[5:400:7]
    job = mechanism.job(public, calibration)

    def is_sum_of_persons():
        whole = job.block(store_codes(rows, public.steps))
        parts = [job.block(store_codes(row[None], public.steps)) for row in rows]
        return np.array_equal(whole, sum(parts))

    def centred(factors, answered, products):
        total = np.einsum("nrj,jn->rn", factors[answered], products) / 2.0**36
        return np.rint(total - total.mean() + np.round(total.mean())).astype(np.int64)

    assert is_sum_of_persons()
    monkeypatch.setattr(category_totals, "find_moments", centred)
    assert not is_sum_of_persons()


def test_a_person_who_changes_the_form_moves_two_numbers_of_persons():
    bound = prepare("forms", REPLACE)[-1]
    assert farthest(honest("forms", REPLACE), REPLACE)["persons"] == bound["persons"] == 2 * GRID**2


# --- the arithmetic -----------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=4, max_size=12))
def test_a_persons_moments_are_exact_up_to_the_rounding_that_is_counted(answers):
    answers = [(steps, min(category, steps)) for steps, category in answers]
    z = [Fraction(2 * category, steps) - 1 for steps, category in answers]
    h = [sum(np.prod(c) for c in _subsets(z, r)) / Fraction(len(_subsets(z, r))) for r in range(5)]
    exact = [2 * h[2] - 1, 4 * h[3] - 3 * h[1], 8 * h[4] - 8 * h[2] + 1]
    scales = [Fraction(2**16), Fraction(2**15), Fraction(2**14)]
    kinds = sorted(set(answers))
    counts = np.array([[answers.count(kind)] for kind in kinds])
    products = category_totals.multiply_means(counts, category_totals.power_table(kinds))
    factors = category_totals.round_factors(len(answers), scales)
    found = category_totals.find_moments(factors[None], np.zeros(1, int), products)[:, 0].tolist()
    bounds = category_totals.bound_rounding(factors)
    for one, own, scale, most in zip(found, exact, scales, bounds, strict=True):
        assert abs(one - own * scale) <= most


def _subsets(values, size):
    return list(combinations(values, size))


def test_factors_that_could_overflow_are_refused():
    with pytest.raises(OverflowError):
        category_totals.bound_rounding(np.full((1, len(PRODUCTS)), 2**30))


@pytest.mark.parametrize("steps", [1, 9])
def test_very_long_records_do_not_overflow(steps):
    answered = 5000
    shape = totals.FormShape(tuple(range(answered)), answered, Fraction(answered), 6, (256,) * 3)
    factors = shape.round_factors(answered)
    assert max(category_totals.bound_rounding(factors)) < 1
    kinds = [(steps, k) for k in range(steps + 1)]
    for top in (0, answered // 2, answered):
        counts = np.zeros((len(kinds), 1), dtype=np.int64)
        counts[0], counts[-1] = answered - top, top
        products = category_totals.multiply_means(counts, category_totals.power_table(kinds))
        found = category_totals.find_moments(factors[None], np.zeros(1, int), products)[:, 0]
        expected = totals.corner_moments(answered)[:, top] * totals.MOMENT_GRID
        assert found == pytest.approx(expected, abs=1)


def test_settings_that_make_no_sense_are_refused():
    with refused(BadUsage, "answers_typical_number_answers_per_person"):
        Totals(answers=0.5)
    with refused(BadUsage, "share_part_squared_budget"):
        Totals(share=1.0)
