"""What `totals` releases: the statistics themselves, alike in every place, and what is refused."""

import pickle
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.answers import category_totals as person_chunks
from discreet.answers.category_totals import PlaneChunk, RowChunk, cut_chunks
from discreet.answers.pack import store_codes
from discreet.coding.reading import Reading
from discreet.counts.planes import StepStore
from discreet.errors import BadResponses, BadUsage
from discreet.models.noisy.totals import Measurer, read_released_forms
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.mechanisms.totals import GRID, Totals, unpack_shapes
from discreet.privacy.noise import ExactNoise
from discreet.privacy.protocol import Public
from discreet.privacy.wall import release_statistics
from discreet.readers import batches
from discreet.readers.opening import open_answers
from discreet.secure import SeededSource
from refusals import refused
from stepped import draw_codes
from stepped import hold as hold_known

BOTH = list(Neighbours)
REPLACE, ADD = BOTH
STEPS = (4, 3, 2, 1, 2, 1, 4)
ITEMS = tuple("abcdefg")


def make_public(neighbours=REPLACE, persons=300, *, steps=STEPS, **more):
    known = persons if neighbours is REPLACE else None
    items = ITEMS[: len(steps)]
    return Public(items, more.pop("cap", len(items)), neighbours, known, steps=steps, **more)


def calibrate(public, mechanism=None, epsilon=1.0):
    mechanism = mechanism or Totals()
    budget = Budget(epsilon, 1e-6, public.neighbours)
    return mechanism, mechanism.calibrate(public, budget, SeededSource(0))


def hold(codes, steps=STEPS):
    return discreet.Responses.from_store(store_codes(codes, steps), ITEMS[: len(steps)])


def release(answers, public, mechanism=None, epsilon=1.0, seed=1):
    mechanism, calibration = calibrate(public, mechanism, epsilon)
    return release_statistics(
        answers,
        mechanism=mechanism,
        public=public,
        calibration=calibration,
        guarantee=calibration.spend.guarantee(is_private=False),
        noise=ExactNoise(SeededSource(seed)),
    )


def read_made(made, shapes):
    return read_released_forms(made.public, shapes, made.values, made.laws)


# --- the statistics -----------------------------------------------------------------------------


def reference(codes, shape, steps):
    """What docs/privacy.md says, in floating point: cells, moments, contributing, takers."""
    cells = [np.zeros(step + 1) for step in steps]
    takers, moments, contributing = np.zeros(len(steps)), np.zeros(3), 0.0
    for row in codes:
        own = [i for i in range(len(steps)) if row[i] >= 0]
        if not own:
            continue
        weight = min(1.0, np.sqrt(float(shape.typical) / len(own)))
        standing = sum(row[i] for i in own) / sum(steps[i] for i in own) - 0.5
        for i in own:
            cells[i][row[i]] += weight
            takers[i] += weight * standing
        if len(own) >= shape.least:
            most = min(1.0, np.sqrt(float(shape.typical) / shape.cap)) * shape.cap
            part = weight * len(own) / most
            z = [2 * row[i] / steps[i] - 1 for i in own]
            h = [np.mean([np.prod(some) for some in combinations(z, r)]) for r in range(5)]
            moments += part * np.array([2 * h[2] - 1, 4 * h[3] - 3 * h[1], 8 * h[4] - 8 * h[2] + 1])
            contributing += part
    return np.concatenate(cells), moments, contributing, takers


@pytest.mark.parametrize("typical", [None, 3.0])
def test_statistics_are_those_of_the_design(typical):
    codes = draw_codes(2, 60, STEPS, missing=0.3)
    public = make_public(persons=60)
    calibration = calibrate(public, Totals(answers=typical))[1]
    shape = unpack_shapes(public, calibration.settings["forms"])[0]
    found = Measurer(public, [shape], has_takers=True)(codes, 0)
    cells, moments, contributing, takers = reference(codes, shape, STEPS)
    there = np.arange(5) <= np.array(STEPS)[:, None]
    assert found.category[there] == pytest.approx(cells, abs=1e-4)
    assert not found.category[~there].any()
    assert found.moment == pytest.approx(moments, abs=0.01)
    assert found.contributing == pytest.approx(contributing, abs=0.01)
    assert found.takers == pytest.approx(takers, abs=1e-4)
    assert found.persons == 60
    assert calibration.settings["grid"] == GRID


def sums_of(answers, public, mechanism, calibration):
    return answers.reduce(mechanism.job(public, calibration))


@pytest.mark.parametrize("design", ["unknown", "random"])
@pytest.mark.parametrize("missing", [0.1, 0.9])
def test_dense_sparse_plain_and_compiled_sums_are_the_same(design, missing, monkeypatch):
    codes = draw_codes(3, 500, STEPS, missing=missing)
    public = make_public(persons=500, design=design)
    mechanism, calibration = calibrate(public, Totals(answers=3.0))
    job = mechanism.job(public, calibration)
    store = store_codes(codes, STEPS)
    sparse = StepStore(store.nodes.take(np.arange(500)), STEPS)
    plain = job.block(store)
    monkeypatch.setattr(person_chunks, "ENTRIES", 100)
    assert np.array_equal(job.block(sparse), plain)
    assert len(list(cut_chunks(sparse, job.cells))) > 3
    assert {type(one) for one in cut_chunks(sparse, job.cells)} == {RowChunk}
    monkeypatch.setattr(person_chunks, "worth_compiling", lambda _: True)
    planes = [one for one in cut_chunks(store, job.cells) if isinstance(one, PlaneChunk)]
    assert (len(planes) > 0) == (missing < 0.5)
    assert all(one.compiled for one in planes)
    assert np.array_equal(job.block(store), plain)


def test_items_in_which_the_top_category_was_never_seen_are_read_by_the_list():
    public = make_public(persons=2, steps=(4, 2))
    mechanism, calibration = calibrate(public)
    codes = np.array([[1, 1], [0, -1]], dtype=np.int8)
    job = mechanism.job(public, calibration)
    assert np.array_equal(
        job.block(store_codes(codes, (1, 1))), job.block(store_codes(codes, (4, 2)))
    )


def write_long(path, codes, *, order):
    person, item = np.nonzero(codes >= 0)
    rows = np.arange(len(person))
    if order == "shuffled":
        rows = np.random.default_rng(1).permutation(rows)
    names = [ITEMS[i] for i in item]
    table = pa.table({"person": person, "item": names, "response": codes[person, item]})
    pq.write_table(table.take(rows), path)
    return path


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
@pytest.mark.parametrize("forms", [(), ("abcd", "defg")])
def test_memory_and_disk_give_the_same_integers_bit_for_bit(tmp_path, monkeypatch, order, forms):
    monkeypatch.setattr(batches, "TARGET_ROWS", 200)
    codes = draw_codes(4, 300, STEPS, missing=0.2)
    codes[codes.max(axis=1) < 0, 0] = 1
    if forms:
        codes[:150, 4:] = codes[150:, :3] = -1
    codes[codes.max(axis=1) < 0, 3] = 1
    public = make_public(forms=tuple(map(tuple, forms)))
    mechanism, calibration = calibrate(public, Totals(answers=3.0))
    expected = sums_of(hold(codes), public, mechanism, calibration)
    path = write_long(tmp_path / "a.parquet", codes, order=order)
    reading = Reading(model="partial-credit")
    with open_answers(path, "disk", reading=reading) as answers:
        found = sums_of(answers.select(ITEMS), public, mechanism, calibration)
    assert np.array_equal(found, expected)


def test_the_job_can_be_sent_away():
    public = make_public()
    mechanism, calibration = calibrate(public)
    job = mechanism.job(public, calibration)
    again = pickle.loads(pickle.dumps(job))  # noqa: S301
    store = store_codes(draw_codes(5, 40, STEPS), STEPS)
    assert np.array_equal(again.block(store), job.block(store))


# --- forms and the design -----------------------------------------------------------------------


def test_each_person_is_counted_in_the_first_form_with_all_the_answers():
    public = make_public(persons=4, steps=(1, 1, 1, 1), forms=(("a", "b"), ("b", "c", "d")))
    mechanism, calibration = calibrate(public)
    codes = np.array([[1, 0, -1, -1], [-1, 1, -1, -1], [-1, 1, 1, 0], [-1, -1, -1, -1]], np.int8)
    job = mechanism.job(public, calibration)
    sums = job.read(job.block(store_codes(codes, (1,) * 4)))
    assert sums["members"].tolist() == [2, 1]
    assert (sums["persons"], sums["silent"], sums["misfits"]) == (4, 1, 0)
    assert (sums["category"] / GRID).tolist() == [0, 1, 1, 1, 0, 1, 0, 1, 1, 0]


def test_answers_that_are_not_all_in_one_form_are_refused():
    public = make_public(persons=2, steps=(1, 1, 1), forms=(("a", "b"), ("b", "c")))
    codes = np.array([[1, 1, -1], [1, 0, 1]], dtype=np.int8)
    with refused(BadResponses, "people_answers_items_not", misfits="1"):
        release(hold(codes, (1, 1, 1)), public)


def test_who_is_refused_for_the_forms_is_said_of_the_answers_after_the_cap():
    """Three answers to two forms of two items: two of them are drawn, which may fit a form."""
    public = make_public(persons=1, steps=(1, 1, 1), forms=(("a", "b"), ("b", "c")), cap=2)
    answers = hold(np.array([[1, 0, 1]], dtype=np.int8), (1, 1, 1))
    refusals = []
    for seed in range(20):
        try:
            release(answers, public, seed=seed)
        except BadResponses as error:
            refusals.append(error.code)
    assert 0 < len(refusals) < 20
    assert set(refusals) == {"people_answers_items_not"}
    said = " ".join((Path(__file__).parents[2] / "docs" / "privacy.md").read_text("utf-8").split())
    assert "The cap is drawn first." in said
    assert "Answers that are in no form" not in said


@pytest.mark.parametrize("neighbours", BOTH)
def test_a_complete_design_with_a_gap_is_refused(neighbours):
    public = make_public(neighbours, persons=3, steps=(2, 1, 1), design="complete")
    codes = np.array([[2, 0, 1], [0, 1, 1], [1, -1, 0]], dtype=np.int8)
    with refused(
        BadResponses,
        "design_complete_says_everybody_answered",
        items="every listed item",
        misfits="1",
    ):
        release(hold(codes, (2, 1, 1)), public)
    whole = np.where(codes < 0, 0, codes)
    assert "takers" not in release(hold(whole, (2, 1, 1)), public).values


def test_a_complete_design_of_more_persons_than_there_are_is_refused():
    public = make_public(persons=5, steps=(2, 1, 1), design="complete", is_fixed=True)
    codes = np.zeros((3, 3), dtype=np.int8)
    with refused(BadResponses, "design_complete_says_all", persons="5", silent="2"):
        release(hold(codes, (2, 1, 1)), public)


def test_a_complete_design_leaves_no_room_for_a_cap():
    public = make_public(persons=5, steps=(2, 1, 1), design="complete", cap=2)
    with refused(BadUsage, "design_complete_says_everybody", max_answers="2", longest="3"):
        calibrate(public)


# --- what the fit is given ----------------------------------------------------------------------


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("forms", [(), ("abcd", "defg")])
def test_with_hardly_any_noise_the_fit_is_given_the_exact_statistics(neighbours, forms):
    codes = draw_codes(6, 300, STEPS, missing=0.2)
    if forms:
        codes[:150, 4:] = codes[150:, :3] = -1
    public = make_public(neighbours, forms=tuple(map(tuple, forms)))
    made = release(hold(codes), public, Totals(answers=4.0), epsilon=5e5)
    shapes = unpack_shapes(public, made.settings["forms"])
    measure = Measurer(public, shapes, has_takers=True)
    outside = [
        np.delete(codes, list(shape.columns), axis=1).max(axis=1, initial=-1) >= 0
        for shape in shapes
    ]
    free = codes.max(axis=1) >= 0
    for number, (shape, form) in enumerate(zip(shapes, read_made(made, shapes), strict=True)):
        mine = free & ~outside[number]
        free &= ~mine
        exact = measure(codes[mine][:, list(shape.columns)], number)
        noises = ("category_noise", "moment_noise", "contributing_noise", "takers_noise")
        assert all(np.all(getattr(exact, name) == 0) for name in (*noises, "persons_noise"))
        for name in ("category", "moment", "contributing", "takers"):
            assert getattr(form, name) == pytest.approx(getattr(exact, name), abs=0.5), name
        assert form.persons == pytest.approx(mine.sum() if "persons" in made.values else 300, abs=1)


@pytest.mark.parametrize("neighbours", BOTH)
def test_the_covariance_of_the_noise_is_that_of_the_released_numbers(neighbours):
    """Draw noise alone, many times, and compare with what the fit is told about one item."""
    public = make_public(neighbours, persons=2, steps=(3, 1, 2))
    mechanism, calibration = calibrate(public)
    shapes = unpack_shapes(public, calibration.settings["forms"])
    empty = hold(np.full((2, 3), -1, dtype=np.int8), (3, 1, 2))
    noise = ExactNoise(SeededSource(3))
    drawn, told = [], None
    for _ in range(600):
        made = release_statistics(
            empty, mechanism=mechanism, public=public, calibration=calibration,
            guarantee=calibration.spend.guarantee(is_private=False), noise=noise,
        )  # fmt: skip
        form = read_made(made, shapes)[0]
        told = form
        drawn.append(np.concatenate([form.category[0], form.moment, [form.contributing]]))
    found = np.cov(np.array(drawn).T)
    expected = np.zeros_like(found)
    expected[:4, :4] = told.category_noise[0]
    expected[4:, 4:] = np.diag([*told.moment_noise, told.contributing_noise])
    root = np.sqrt(np.diag(expected))
    # 36 correlations with a standard deviation of .04 each, and variances with .06.
    assert np.abs(found / np.outer(root, root) - expected / np.outer(root, root)).max() < 0.25


def test_what_is_released_does_not_depend_on_the_answers():
    public = make_public(persons=50)
    some, none = (
        release(hold(codes), public)
        for codes in (draw_codes(7, 50, STEPS), np.full((50, 7), -1, dtype=np.int8))
    )
    assert {n: v.shape for n, v in some.values.items()} == {
        n: v.shape for n, v in none.values.items()
    }
    assert all((values != 0).all() for values in none.values.values())


def test_a_number_of_persons_that_is_fixed_in_advance_is_released_with_noise():
    fixed = make_public(persons=60, is_fixed=True)
    counted = make_public(persons=60)
    assert "persons" in calibrate(fixed)[1].laws
    assert "persons" not in calibrate(counted)[1].laws


# --- a release ----------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_thresholds_come_out_of_a_release_with_little_noise(neighbours):
    answers, truth = hold_known(8, 3000, (3,) * 8)
    published = discreet.release(
        answers,
        Budget(5.0, 1e-6, neighbours),
        items=dict.fromkeys(answers.items, 3),
        mechanism="totals",
        design="complete",
    )
    estimate = published.estimate
    assert estimate.steps == (3,) * 8
    assert estimate.model == "partial-credit"
    assert np.sqrt(np.mean((estimate.thresholds - truth) ** 2)) < 0.15
    assert np.isfinite(estimate.threshold_se).all()
    assert (np.abs(estimate.thresholds - truth) < 4 * estimate.threshold_se).mean() > 0.95


def test_typical_answers_below_the_cap_make_noise_smaller():
    public = make_public()
    scales = [
        float(calibrate(public, Totals(answers=typical))[1].laws["category"].scale)
        for typical in (2.0, 7.0)
    ]
    assert scales[0] ** 2 / scales[1] ** 2 == pytest.approx(2 / 7, rel=0.01)


def test_weights_are_rounded_down_from_exact_fractions():
    shape = unpack_shapes(
        make_public(), calibrate(make_public(), Totals(answers=2.5))[1].settings["forms"]
    )[0]
    for answered, weight in enumerate(shape.weight.tolist()):
        ideal = min(Fraction(1), shape.typical / max(answered, 1)) * GRID**2
        assert weight**2 <= ideal < (weight + 1) ** 2
