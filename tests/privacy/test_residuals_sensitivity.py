"""Sensitivity of the residuals: brute force over all neighbours and centres, planted faults."""

from dataclasses import replace
from functools import cache
from itertools import combinations_with_replacement as combined
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.answers import residual_sums
from discreet.answers.pack import pack_rows, store_codes
from discreet.answers.residual_sums import Centre, contribute
from discreet.answers.responses import Responses
from discreet.errors import BadResponses, DiscreetError
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.mechanisms import residuals
from discreet.privacy.mechanisms.residuals import Residuals, make_job, residuals_l2_sensitivity
from discreet.privacy.noise import ExactNoise
from discreet.privacy.protocol import Public
from discreet.privacy.wall import release_statistics
from discreet.secure import SeededSource
from refusals import refused

BOTH = list(Neighbours)
REPLACE, ADD = BOTH

DESIGNS = {
    "two": {"items": 2},
    "three": {"items": 3},
    "four with a cap": {"items": 4, "cap": 3},
    "five": {"items": 5},
    "six": {"items": 6},
    "six with a cap": {"items": 6, "cap": 4},
    "few typical answers": {"items": 6, "answers": 2.0},
    "hardly clipped": {"items": 5, "clip": 3.0},
    "random": {"items": 5, "design": "random"},
    "complete": {"items": 6, "design": "complete"},
    "forms": {"items": 5, "forms": ("abc", "cde")},
    "complete forms": {"items": 5, "forms": ("abc", "bcde"), "design": "complete"},
    "a public centre": {"items": 5, "centre": (900, -300, 20480, 0, -2000)},
}
#: Logits that centres are made of.
GRID = (-20.0, -1.5, 0.0, 0.25, 3.0, 20.0)


def make_public(neighbours, items, cap=None, forms=(), design="unknown", centre=(), **settings):
    names = tuple("abcdef"[:items])
    public = Public(
        names, cap or items, neighbours, 100 if neighbours is REPLACE else None,
        forms=tuple(map(tuple, forms)), design=design, centre=centre,
    )  # fmt: skip
    return public, Residuals(**settings)


@cache
def prepare(name, neighbours):
    public, mechanism = make_public(neighbours, **DESIGNS[name])
    return public, mechanism, mechanism.calibrate(public, Budget(1.0, 1e-6, neighbours), None)


def everybody(public):
    """Everyone who can exist: 1, 0, and -1 where there is no answer."""
    rows = np.array(list(product((-1, 0, 1), repeat=len(public.items))), dtype=np.int8)
    rows = rows[(rows >= 0).sum(axis=1) <= public.max_answers]
    forms = np.array([np.isin(public.items, form) for form in public.forms or (public.items,)])
    inside = ((rows >= 0)[:, None] <= forms).all(axis=2)
    if public.design == "complete":
        inside &= (rows >= 0).sum(axis=1)[:, None] == forms.sum(axis=1)
    return rows[inside.any(axis=1)]


def centres(public, many=12):
    """Every centre on a coarse grid for two or three items, and some of them for more."""
    m = len(public.items)
    if public.centre:
        return [np.array(public.centre)]
    grid = np.rint(np.array(GRID) * 1024).astype(np.int64)
    if m <= 3:
        return [np.array(one) for one in product(grid, repeat=m)]
    rng = np.random.default_rng(3)
    return [np.zeros(m, np.int64), *(rng.choice(grid, m) for _ in range(many))]


def contributions(rows, public, calibration, centre):
    """What each person adds to the blocks of a round, from the job that a release folds."""
    job = make_job(public, calibration.settings, centre)
    found = []
    for row in rows:
        sums = job.read(job.block(store_codes(row[None], public.steps)))
        found.append(Residuals().cells(sums, calibration))
    return {name: np.array([one[name] for one in found]) for name in found[0]}


def residuals_around(rows, public, calibration, centre):
    """What each person adds in the second round, by the function that the job calls."""
    table = make_job(public, calibration.settings, centre).centre
    taken = pack_rows(rows).take(np.arange(len(rows)))
    full = np.zeros(rows.shape, dtype=np.int64)
    full[rows >= 0] = residual_sums.contribute(taken, table).gap
    return full


def squares(rows, neighbours):
    """Squared lengths of all differences of two persons, or of all persons; exact."""
    real = rows.astype(np.float64)  # below 2^53
    norm = (real**2).sum(axis=1)
    if neighbours is ADD:
        return norm
    return np.maximum(norm[:, None] + norm - 2 * real @ real.T, 0)


@cache
def distances(name, neighbours):
    """By block the squared distances of all neighbours; of the residuals, for every centre."""
    public, _, calibration = prepare(name, neighbours)
    rows = everybody(public)
    flat = np.zeros(len(public.items), dtype=np.int64)
    first = contributions(rows, public, calibration, flat)
    apart = {block: squares(one, neighbours) for block, one in first.items()}
    apart["residual"] = [
        squares(residuals_around(rows, public, calibration, one), neighbours)
        for one in centres(public)
    ]
    return apart


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("name", DESIGNS)
def test_no_two_neighbours_are_farther_apart_than_the_noise_is_made_for(name, neighbours):
    public, _, calibration = prepare(name, neighbours)
    bound, apart = residuals_l2_sensitivity(public), distances(name, neighbours)
    assert set(bound) == set(calibration.laws)
    one_round = sum(
        apart[block] / float(calibration.laws[block].scale) ** 2
        for block in bound
        if block != "residual"
    )
    claim = float(calibration.spend.bound.mu_squared)
    for block in set(bound) - {"residual"}:
        assert apart[block].max() <= bound[block] * (1 + 1e-12), block
    for second in apart["residual"]:
        assert second.max() <= bound["residual"] * (1 + 1e-12)
        both = one_round + second / float(calibration.laws["residual"].scale) ** 2
        assert both.max() <= claim * (1 + 1e-12)


@pytest.mark.parametrize("items", [2, 3, 4, 5, 6])
def test_nobody_is_longer_than_allowed_at_any_centre_of_the_grid(items):
    """All answers, and all centres on the grid: from five items on in every combination."""
    public, _ = make_public(REPLACE, items)
    rows = everybody(public)
    taken = pack_rows(rows).take(np.arange(len(rows)))
    whole = np.rint(np.array(GRID) * 1024).astype(np.int64)
    every = product(whole, repeat=items) if items < 5 else combined(whole, items)
    longest = 0
    for centre in every:
        table = Centre.around(np.array(centre), float(items), 0.8)
        gap = residual_sums.contribute(taken, table).gap
        square = residual_sums.sum_persons(taken, gap * gap)
        assert square.max() <= table.longest**2
        longest = max(longest, square.max())
    assert longest > 0.999 * Centre.longest**2


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("name", ["six", "random", "forms", "complete"])
def test_every_bound_is_nearly_attained(name, neighbours):
    bound, apart = (
        residuals_l2_sensitivity(prepare(name, neighbours)[0]),
        distances(name, neighbours),
    )
    if "answered" in bound and name != "forms":  # the items of two forms are not all apart
        assert apart["answered"].max() >= bound["answered"] * (1 - 1e-9)
    assert apart["cells"].max() == bound["cells"]
    assert max(one.max() for one in apart["residual"]) >= 0.97 * bound["residual"]


@pytest.mark.parametrize("name", ["six", "forms", "few typical answers"])
def test_what_a_person_adds_does_not_depend_on_the_others(name):
    public, _, calibration = prepare(name, REPLACE)
    rows, rng = everybody(public), np.random.default_rng(5)
    for centre in centres(public, many=4):
        job = make_job(public, calibration.settings, centre)
        alone = np.array([job.block(store_codes(row[None], public.steps)) for row in rows])
        for persons in (rng.permutation(len(rows)), np.arange(1, len(rows)), [3], [7, 7, 7]):
            some = job.block(store_codes(rows[persons], public.steps))
            assert (some == alone[persons].sum(axis=0)).all()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_chunks_stores_and_the_way_of_searching_change_no_bit(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 200)), int(rng.integers(2, 90))
    codes = (rng.random((n, m)) < rng.random(m)).astype(np.int8)
    if seed % 2:
        codes[rng.random((n, m)) < 0.6] = -1
    table = Centre.around(rng.integers(-5000, 5000, m), 12.0, 0.8)
    planes = pack_rows(codes)
    whole = contribute(planes.take(np.arange(n)), table)
    each = [contribute(planes.take(np.array([person])), table) for person in range(n)]
    assert (whole.gap == np.concatenate([one.gap for one in each])).all()
    assert (whole.share == np.concatenate([one.share for one in each])).all()
    # Of persons who all have the same items the sums are made once: the others are searched.
    beside = np.vstack([codes, np.where(np.arange(m) == 0, 1, -1)]).astype(np.int8)
    mixed = contribute(pack_rows(beside).take(np.arange(n + 1)), table)
    assert (mixed.gap[: len(whole.gap)] == whole.gap).all()


def test_no_contribution_is_longer_than_allowed_where_squares_are_large():
    rng = np.random.default_rng(2)
    codes = (rng.random((300, 500)) < 0.5).astype(np.int8)
    for typical in (2.0, 500.0):
        table = Centre.around(rng.integers(-20480, 20480, 500), typical, 0.5)
        gap = contribute(pack_rows(codes).take(np.arange(300)), table).gap.reshape(300, 500)
        squared = (gap.astype(object) ** 2).sum(axis=1)
        assert 0.99 * table.longest**2 < squared.max() <= table.longest**2


# --- groups ---------------------------------------------------------------------------------------


def grouped_cells(public, mechanism, calibration, centre):
    """What everybody adds in every group, and in none; and all blocks of both rounds."""
    rows, found = everybody(public), []
    for group in (*public.groups, "elsewhere"):
        for row in rows:
            store = store_codes(row[None], public.steps)
            person = Responses(public.items, ["p"], store, {"g": [group]})
            sums = mechanism.count(person, public, calibration, centre)
            found.append(mechanism.cells(sums, calibration))
    return {name: np.array([one[name] for one in found]) for name in found[0]}


@pytest.mark.parametrize("neighbours", BOTH)
def test_the_noise_covers_persons_who_change_their_group(neighbours):
    public, mechanism = make_public(neighbours, 3)
    public = replace(public, group_column="g", groups=("a", "b", "c"))
    calibration = mechanism.calibrate(public, Budget(1.0, 1e-6, neighbours), None)
    claim = float(calibration.spend.bound.mu_squared)
    bound = residuals_l2_sensitivity(public)
    for centre in centres(public)[::43]:
        cells = grouped_cells(public, mechanism, calibration, centre)
        assert len(cells["residual"][0]) == 9
        total = 0.0
        for name, rows in cells.items():
            apart = squares(rows, neighbours)
            assert apart.max() <= bound[name] * (1 + 1e-12), name
            total = total + apart / float(calibration.laws[name].scale) ** 2
        assert np.max(total) <= claim * (1 + 1e-12)
    assert not cells["residual"][-len(everybody(public)) :].any()  # in no group: nothing


# --- planted faults -------------------------------------------------------------------------------


def fails(name="six", neighbours=REPLACE):
    """Say whether the brute force finds the promise broken."""
    prepare.cache_clear()
    distances.cache_clear()
    try:
        test_no_two_neighbours_are_farther_apart_than_the_noise_is_made_for(name, neighbours)
    except AssertionError:
        return True
    finally:
        prepare.cache_clear()
        distances.cache_clear()
    return False


def test_the_brute_force_finds_no_fault_where_there_is_none():
    assert not fails()


def test_contributions_that_are_not_shortened_are_found(monkeypatch):
    honest = residual_sums.contribute

    def long(rows, centre):
        wider = Centre(centre.expected, centre.factor, longest=4 * centre.longest)
        return honest(rows, wider)

    monkeypatch.setattr(residual_sums, "contribute", long)
    assert fails()


def test_a_length_that_is_checked_before_rounding_up_is_found(monkeypatch):
    honest = residual_sums.contribute

    def rounded_up(rows, centre):
        added = honest(rows, centre)
        return residual_sums.Contribution(added.gap + np.sign(added.gap) * 2000, added.share)

    monkeypatch.setattr(residual_sums, "contribute", rounded_up)
    assert fails()


def test_somebody_in_two_cells_is_found(monkeypatch):
    honest = residual_sums.ResidualSums._add_up

    def twice(self, rows):
        sums = honest(self, rows)
        sums[3 : 3 + self.cells.size] *= 2
        return sums

    monkeypatch.setattr(residual_sums.ResidualSums, "_add_up", twice)
    assert fails()


def test_noise_of_the_other_relation_is_found(monkeypatch):
    honest = residuals.residuals_l2_sensitivity

    def halved(public):
        return {name: square // 2 for name, square in honest(public).items()}

    monkeypatch.setattr(residuals, "residuals_l2_sensitivity", halved)
    assert fails()


def test_a_second_round_that_is_not_paid_for_is_found(monkeypatch):
    honest = residuals.calibrate_blocks

    def forgets(sensitivities, ratios, *rest, **more):
        first = [(*one[:-1], 0) for one in sensitivities]
        return honest(first, ratios, *rest, **more)

    monkeypatch.setattr(residuals, "calibrate_blocks", forgets)
    assert fails()


# --- two rounds, one release ----------------------------------------------------------------------


def make_release(codes, public, noise=None, mechanism=None):
    mechanism = mechanism or Residuals()
    calibration = mechanism.calibrate(public, Budget(1.0, 1e-6, public.neighbours), None)
    return release_statistics(
        Responses.from_store(store_codes(codes, public.steps), public.items),
        mechanism=mechanism,
        public=public,
        calibration=calibration,
        guarantee=calibration.spend.guarantee(is_private=False),
        noise=noise or ExactNoise(SeededSource(4)),
    )


def draw_codes(n=400, m=6, seed=1):
    rng = np.random.default_rng(seed)
    chance = 1 / (1 + np.exp(np.linspace(-2, 2, m) - rng.standard_normal((n, 1))))
    return (rng.random((n, m)) < chance).astype(np.int8)


def test_the_second_round_sees_noisy_values_alone(monkeypatch):
    seen = {}
    honest = residuals.find_centre

    def look(values, calibration, public):
        seen.update(values)
        return honest(values, calibration, public)

    monkeypatch.setattr(residuals, "find_centre", look)
    public, _ = make_public(REPLACE, 6)
    codes = draw_codes()
    released = make_release(codes, Public(public.items, 6, REPLACE, len(codes)))
    assert set(seen) == {"rough", "cells", "answered"}
    for name, values in seen.items():
        assert (values == released.values[name]).all()
    assert (seen["cells"] % residuals.GRID).any()  # an exact number is a multiple of it


def test_the_noise_is_fixed_before_anything_is_drawn():
    """Its scale must not follow the first round: it is that of the calibration, in every run."""
    public = Public(tuple("abcdef"), 6, REPLACE, 400)
    runs = [make_release(draw_codes(seed=k), public, ExactNoise(SeededSource(k))) for k in (1, 2)]
    assert dict(runs[0].laws) == dict(runs[1].laws)
    assert (runs[0].values["centre"] != runs[1].values["centre"]).any()


def test_a_round_that_sees_other_persons_is_refused():
    class Changing(Residuals):
        def _sum(self, answers, public, calibration, centre, blocks):
            few = Responses.from_store(answers.store.pick(np.arange(10)), answers.items)
            some = answers if "rough" in blocks else few
            return super()._sum(some, public, calibration, centre, blocks)

    codes = draw_codes()
    with refused(DiscreetError, "release_prepared_persons_counted"):
        make_release(codes, Public(tuple("abcdef"), 6, REPLACE, 400), mechanism=Changing())


def test_a_design_that_does_not_hold_is_refused():
    codes = draw_codes()
    codes[0, 0] = -1
    public = Public(tuple("abcdef"), 6, REPLACE, len(codes), design="complete")
    with refused(BadResponses, "design_complete_says_everybody_answered"):
        make_release(codes, public)
