"""Standard errors of items with steps, where there are too many steps for a covariance of all.

The covariance of all thresholds is there up to 2,000 steps. Above, locations have their own: of up
to 2,000 items as a covariance, of more as standard errors. Here the limit is lowered, so that the
same answers are fitted on either side of it.
"""

import warnings

import duckdb
import numpy as np
import pytest

import discreet
from discreet.answers.pack import store_codes
from discreet.answers.protocol import fold_blocks
from discreet.answers.responses import Responses
from discreet.counts import folds as fold_counts
from discreet.counts.matrix import Locations
from discreet.errors import NoStandardErrors, NotConverged, WarningKind
from discreet.models.standard_errors import folds, random_signs, sandwich
from discreet.readers import streamed
from stepped import draw_answers, draw_thresholds, hold

UNEQUAL = [1, 4, 2, 3, 1, 2, 4, 3] * 3
"""Numbers of steps: 24 items and 60 steps."""
CASES = {"partial-credit": UNEQUAL, "rating-scale": [3] * 24}


@pytest.fixture
def limit(monkeypatch):
    """Set how many items, or steps, may have a covariance."""

    def set_limit(items, persons=random_signs.EXACT_PERSONS):
        for module in (sandwich, folds):
            monkeypatch.setattr(module, "COVARIANCE_LIMIT", items)
        monkeypatch.setattr(random_signs, "EXACT_PERSONS", persons)

    return set_limit


def answer(model, persons=1500, missing=0.4, seed=3):
    common = model == "rating-scale"
    return hold(seed, persons, CASES[model], missing=missing, common=common)[0]


def scale(covariance):
    """Return what entries of a covariance are compared with."""
    return np.sqrt(np.outer(covariance.diagonal(), covariance.diagonal()))


def assert_same_locations(estimate, reference, within):
    assert estimate.se == pytest.approx(reference.se, rel=within)
    apart = np.abs(estimate.covariance - reference.covariance)
    assert (apart < 2 * within * scale(reference.covariance)).all()


def test_locations_of_unequal_steps_are_means_of_thresholds_less_their_mean():
    locations = Locations(np.array([0, 1, 1, 1, 2, 2, 4]), (1, 3, 2, 2, 1))
    values = np.array([5.0, 1.0, 2.0, 6.0, 4.0, 10.0, 1.0])
    assert locations.whole.tolist() == [0, 1, 2, 4]
    assert locations.find(values).tolist() == [1.0, -1.0, 3.0, -3.0]
    assert locations.as_columns().T @ values == pytest.approx(locations.find(values))
    part = Locations(np.array([0, 1, 1, 2, 2]), (1, 3, 2))  # one step of the second is missing
    assert part.whole.tolist() == [0, 2]
    assert part.find(np.array([1.0, 50.0, 90.0, 2.0, 6.0])).tolist() == [-1.5, 1.5]
    assert part.centre(np.array([1.0, 50.0, 90.0, 2.0, 6.0]))[1] == 47.5


@pytest.mark.parametrize("method", ["refined", "spectral"])
@pytest.mark.parametrize("model", CASES)
@pytest.mark.parametrize("persons", [10**6, 10], ids=["gathered", "mixed"])
def test_locations_have_the_covariance_that_all_thresholds_would_give(
    limit, model, persons, method
):
    answers = answer(model)
    full = discreet.fit(answers, model=model, method=method)
    limit(40, persons)
    estimate = discreet.fit(answers, model=model, method=method)
    assert estimate.ladder.covariance is None
    assert_same_locations(estimate, full, 2e-3)
    # Thresholds come from draws, whose relative error is about 2%.
    exact = persons > 10
    assert estimate.threshold_se == pytest.approx(
        full.threshold_se, rel=2e-3 if exact else 0.1, nan_ok=True
    )
    assert estimate.difficulty == pytest.approx(full.difficulty, abs=1e-12)


@pytest.mark.parametrize("model", CASES)
def test_thin_answers_give_the_same_covariance_of_locations(limit, model):
    answers = answer(model, persons=12_000, missing=0.96)
    full = discreet.fit(answers, model=model, method="refined")
    limit(40, 10)
    estimate = discreet.fit(answers, model=model, method="refined")
    assert_same_locations(estimate, full, 3e-3)


def test_both_ways_to_sum_thin_scores_agree(monkeypatch, limit):
    answers = answer("partial-credit", persons=4000, missing=0.96)
    limit(40, 10)
    monkeypatch.setattr(random_signs, "SPARSE_GAIN", 0)
    sparse = discreet.fit(answers, method="refined").covariance
    monkeypatch.setattr(random_signs, "SPARSE_GAIN", 1e9)
    monkeypatch.setattr(random_signs, "COLUMN_CELLS", 500)
    dense = discreet.fit(answers, method="refined").covariance
    assert dense == pytest.approx(sparse, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("model", CASES)
def test_many_items_with_steps_have_standard_errors_from_draws(limit, model):
    answers = answer(model)
    full = discreet.fit(answers, model=model, method="refined")
    limit(10, 10)
    estimate = discreet.fit(answers, model=model, method="refined")
    assert estimate.covariance is None
    (note,) = (note for note in estimate.solution.notes if "multiplier draws" in note)
    stated = float(note.split("relative error ")[1].rstrip("%)")) / 100
    assert stated < 0.025
    for drawn, exact in ((estimate.se, full.se), (estimate.threshold_se, full.threshold_se)):
        off = drawn / exact - 1
        assert np.sqrt(np.nanmean(off**2)) < 1.5 * stated + 0.005
    limit(10)
    gathered = discreet.fit(answers, model=model, method="refined")
    assert gathered.se == pytest.approx(full.se, rel=2e-3)


def test_answers_on_disk_have_the_standard_errors_of_memory(tmp_path, limit):
    codes = draw_answers(np.random.default_rng(5), 900, draw_steps(), missing=0.3)
    path = write_long(tmp_path / "answers.parquet", codes)
    memory = discreet.fit(str(path), method="refined")
    for persons in (10**6, 10):
        limit(8, persons)
        disk = discreet.fit(str(path), engine="disk", method="refined")
        order = [disk.items.index(item) for item in memory.items]
        assert disk.se[order] == pytest.approx(memory.se, rel=5e-3)
        cells = np.ix_(order, order)
        apart = np.abs(disk.covariance[cells] - memory.covariance)
        assert (apart < 1e-2 * scale(memory.covariance)).all()


def draw_steps():
    return draw_thresholds(np.random.default_rng(4), [1, 3, 2, 4, 2, 1])


def write_long(path, codes):
    person, item = np.nonzero(codes >= 0)
    rows = {"person": person, "item": item, "answer": codes[person, item]}
    table = duckdb.from_arrow(arrow(rows))
    table.write_parquet(str(path))
    return path


def arrow(columns):
    import pyarrow as pa

    return pa.table({name: np.asarray(values, dtype=np.int64) for name, values in columns.items()})


def test_a_query_and_counts_have_standard_errors_from_folds(tmp_path, limit, monkeypatch):
    monkeypatch.setattr(streamed, "COPIED_ROWS", 0)
    codes = draw_answers(np.random.default_rng(5), 900, draw_steps(), missing=0.3)
    path = write_long(tmp_path / "answers.parquet", codes)
    query = f"SELECT person, item, answer AS response FROM '{path}'"  # noqa: S608
    full = discreet.fit(query)
    assert full.degrees == 31
    for items, has_covariance in ((8, True), (3, False)):
        limit(items)
        for data in (query, discreet.count_pairs(query, folds=32)):
            estimate = discreet.fit(data)
            order = [estimate.items.index(item) for item in full.items]
            assert estimate.se[order] == pytest.approx(full.se, rel=1e-9)
            assert estimate.threshold_se[order] == pytest.approx(
                full.threshold_se, rel=1e-9, nan_ok=True
            )
            assert (estimate.covariance is not None) == has_covariance
    # The folds say what the persons themselves say, within what 32 of them can tell.
    ratio = full.se / discreet.fit(str(path), method="refined").se
    assert 0.6 < ratio.min() < ratio.max() < 1.6


def test_a_step_of_too_few_folds_costs_only_its_item_the_standard_error(limit):
    codes = draw_answers(np.random.default_rng(6), 2000, draw_steps())
    codes[:, 3] = np.minimum(codes[:, 3], 2)
    codes[:6, 3] = [3, 4] * 3  # the top step of one item: persons of at most six of 32 folds
    answers = Responses.from_store(store_codes(codes, [1, 3, 2, 4, 2, 1]), list("abcdef"))
    counts = discreet.count_pairs(answers, folds=32)
    for items in (2000, 8):
        limit(items)
        estimate = discreet.fit(counts)
        assert np.isnan(estimate.se).tolist() == [False, False, False, True, False, False]
        assert np.isnan(estimate.threshold_se[3]).tolist() == [False, False, False, True]
        (notice,) = (one for one in estimate.warnings if one.kind is WarningKind.NO_STANDARD_ERRORS)
        assert notice.items == ("d",)
        assert "no standard error for 1 item " in notice


def test_folds_of_a_query_that_do_not_fit_are_missed_with_advice(tmp_path, monkeypatch):
    path = write_long(
        tmp_path / "answers.parquet", draw_answers(np.random.default_rng(5), 300, draw_steps())
    )
    monkeypatch.setattr(fold_counts, "FOLD_BYTES", 8)
    monkeypatch.setattr(streamed, "COPIED_ROWS", 0)
    query = f"SELECT person, item, answer AS response FROM '{path}'"  # noqa: S608
    with pytest.warns(NoStandardErrors, match=r"13 steps of items.*Write the rows to a file"):
        estimate = discreet.fit(query)
    assert np.isnan(estimate.se).all()
    assert [one.kind for one in estimate.warnings] == [WarningKind.NO_STANDARD_ERRORS]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        discreet.fit(query, standard_errors=False)


def test_batches_of_persons_give_the_errors_of_all(monkeypatch, limit):
    """A stream is scored part by part; the signs go on from part to part."""
    codes = draw_answers(np.random.default_rng(7), 600, draw_steps(), missing=0.2)
    steps = [1, 3, 2, 4, 2, 1]
    seen, choose = {}, random_signs.ManyPlan.choose_job

    def keep(plan, n_persons):
        seen.update(plan=plan)
        return choose(plan, n_persons)

    monkeypatch.setattr(random_signs.ManyPlan, "choose_job", keep)
    parts = [store_codes(codes[start : start + 250], steps) for start in (0, 250, 500)]
    for items in (8, 3):
        limit(items, 10)
        discreet.fit(Responses.from_store(store_codes(codes, steps)), method="refined")
        results = []
        for blocks in ([store_codes(codes, steps)], parts):
            job = choose(seen["plan"], 600)
            (total,) = fold_blocks([(block, None) for block in blocks], 600, [job])
            results.append(job.finish(total))
        one, other = results
        assert one.se == pytest.approx(other.se, rel=1e-9)
        assert one.locations.se == pytest.approx(other.locations.se, rel=1e-9)


@pytest.mark.parametrize("persons", [10**6, 10])
def test_errors_that_no_solver_vouches_for_are_missed_with_a_warning(monkeypatch, limit, persons):
    def fail(*_):
        raise NotConverged("planted")

    answers = answer("partial-credit", persons=400, missing=0.0)
    limit(40, persons)
    monkeypatch.setattr(random_signs, "_choose_solver", fail)
    with pytest.warns(
        NoStandardErrors, match="no standard errors: (planted|the equations .* were not solved)"
    ):
        estimate = discreet.fit(answers, method="refined")
    assert np.isnan(estimate.se).all()
    assert np.isnan(estimate.threshold_se).all()
    assert estimate.covariance is None


@pytest.mark.parametrize("model", ["partial-credit", "rating-scale"])
def test_520_items_of_a_scale_from_1_to_5_have_errors_and_ranks(model):
    rng = np.random.default_rng(8)
    location = rng.normal(0, 1.5, 520)
    location -= location.mean()
    thresholds = location[:, None] + np.array([-0.9, -0.3, 0.3, 0.9])
    codes = draw_answers(rng, 250, thresholds)
    answers = Responses.from_store(store_codes(codes, [4] * 520))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate = discreet.fit(answers, model=model, method="refined")
    assert sum(estimate.steps) > 2000
    assert np.isfinite(estimate.se).all()
    assert estimate.covariance.shape == (520, 520)
    lower, upper = estimate.interval().T
    covered = np.mean((lower < location) & (location < upper))
    assert 0.9 < covered < 0.99
    ranking = discreet.rank(estimate, top=100)
    assert ranking.without_error == ()
    truly = {estimate.items[place] for place in np.argsort(-location)[:100]}
    assert 30 < len(ranking.surely_in) <= 100
    assert set(ranking.surely_in) <= truly <= set(ranking.possibly_in)
    assert len(ranking.possibly_in) < 200
    ranges = discreet.rank_ranges(estimate)
    rank = 1 + np.argsort(np.argsort(-location))
    true = np.array([rank[estimate.items.index(item)] for item in ranges.items])
    assert ((ranges.first <= true) & (true <= ranges.last)).all()
    assert len(ranges.groups) > 50


def test_ranks_without_standard_errors_say_so():
    answers = answer("partial-credit", persons=300, missing=0.0)
    estimate = discreet.fit(answers, method="refined", standard_errors=False)
    assert discreet.rank(estimate, top=3).without_error == estimate.items
    ranges = discreet.rank_ranges(estimate)
    assert ranges.without_error == estimate.items
    assert "none with a standard error" in ranges.describe()[0]
    known = discreet.fit(answers, method="refined")
    assert discreet.rank_ranges(known).without_error == ()
    assert "standard error" not in discreet.rank_ranges(known).describe()[0]


def test_comparisons_of_many_objects_say_that_they_have_no_standard_errors(monkeypatch):
    from discreet.answers.comparisons import Comparisons
    from discreet.models import compared

    votes = Comparisons.from_codes(
        judge=[0, 1, 2, 3, 4, 5], winner=[0, 1, 2, 1, 2, 0], loser=[1, 2, 0, 0, 1, 2],
        items=["ash", "elm", "fir"],
    )  # fmt: skip
    monkeypatch.setattr(compared, "COVARIANCE_LIMIT", 2)
    with pytest.warns(NoStandardErrors, match="3 objects"):
        strengths = compared.estimate_strengths(votes)
    assert np.isnan(strengths.se).all()
    assert [notice.kind for notice in strengths.warnings] == [WarningKind.NO_STANDARD_ERRORS]
