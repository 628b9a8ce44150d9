"""Standard errors from a sample of persons: who is drawn, and that it changes little."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bench.felt import run_task, write

import discreet
from discreet import jit
from discreet.answers.pack import store_codes
from discreet.answers.protocol import draw_persons, hash_texts, stand_for, thin_persons
from discreet.answers.responses import Responses
from discreet.counts.planes import SparseRows
from discreet.models import standard_errors as person_scores
from discreet.models.refined import RefinedScoring
from discreet.models.standard_errors import ScorePlan, plan_draw
from discreet.models.standard_errors.sandwich import SumProducts
from discreet.readers import batches
from discreet.readers.opening import open_answers
from stepped import hold


def simulate(seed=0, n=30_000, m=20, given=1.0, rare=0):
    """Answers of which the first ``rare`` items were given to one person in a hundred."""
    rng = np.random.default_rng(seed)
    chance = 1 / (1 + np.exp(rng.normal(size=m) - rng.normal(size=(n, 1))))
    cells = (rng.random((n, m)) < chance).astype(np.int8)
    cells[rng.random((n, m)) > given] = -1
    cells[:, :rare][rng.random((n, rare)) > 0.01] = -1
    return cells


@pytest.fixture
def few(monkeypatch):
    """Let 1,000 takers of an item be enough, so that small data is sampled."""
    monkeypatch.setattr(person_scores, "ENOUGH", 1000)


def root_mean_square(ours, theirs):
    return float(np.sqrt(np.mean((ours.se / theirs.se - 1) ** 2)))


def compare(monkeypatch, cells, enough, method="refined"):
    """Fit with all persons and with a sample of them."""
    whole = discreet.fit(cells, method=method)
    monkeypatch.setattr(person_scores, "ENOUGH", enough)
    return discreet.fit(cells, method=method), whole


# -- who is drawn --------------------------------------------------------------------------------


def test_the_hash_is_that_of_the_text_in_whatever_form_ids_come():
    numbers = np.arange(-3, 2000)
    texts = [str(number) for number in numbers]
    wanted = hash_texts(numbers)
    assert len(np.unique(wanted)) == len(numbers)
    for ids in (np.array(texts, dtype=object), pa.array(texts), pa.array(["x", *texts])[1:]):
        assert np.array_equal(hash_texts(ids), wanted)
    mixed = np.array(["", "a", "ä", "a long name indeed", "a"], dtype=object)
    found = hash_texts(mixed)
    assert found[1] == found[4]
    assert len(np.unique(found)) == 4
    assert len(hash_texts(np.array([], dtype=object))) == 0


def test_about_one_of_so_many_is_drawn_whoever_the_ids_are():
    for ids in (np.arange(100_000), np.array([f"u{i:06d}" for i in range(100_000)], dtype=object)):
        hashes = hash_texts(ids)
        for number in (1, 2, 7, 50):
            drawn = draw_persons(hashes, np.full(len(hashes), number)).sum()
            assert abs(drawn - 1e5 / number) <= 4 * np.sqrt(1e5 / number * (1 - 1 / number))


@pytest.mark.parametrize("sparse", [False, True])
def test_everybody_stands_for_what_the_rarest_answered_item_allows(sparse):
    cells = simulate(n=700, m=6, given=0.3)
    store = Responses.from_array(cells).store
    if sparse:
        store = store.take(np.arange(700))
        assert isinstance(store, SparseRows)
    every = np.array([1, 5, 5, 9, 12, 12])
    wanted = np.where(cells >= 0, every, 12).min(axis=1)
    assert np.array_equal(stand_for(store, every), wanted)
    drawn = thin_persons(store, None, 0, wanted)
    kept = draw_persons(hash_texts(np.arange(700)), wanted)
    assert type(drawn) is type(store)
    assert np.array_equal(drawn.rows(0, drawn.n_persons), cells[kept])
    assert kept[(cells[:, 0] >= 0)].all()


@pytest.mark.parametrize("persons", [0, 1, 63, 64, 500, 40_000])
def test_picked_persons_keep_their_answers(persons):
    cells = simulate(n=50_000, m=3, given=0.6)
    store = Responses.from_array(cells).store
    chosen = np.sort(np.random.default_rng(1).choice(len(cells), persons, replace=False))
    picked = store.pick(chosen)
    assert picked.n_persons == persons
    assert np.array_equal(picked.rows(0, persons), cells[chosen])


def test_below_three_times_as_many_takers_as_are_enough_everybody_is_scored():
    kept, linked = np.arange(2), np.ones(2)
    assert plan_draw(np.array([59_999, 17]), kept, linked) is None
    assert plan_draw(np.array([60_000, 17]), kept, linked).every.tolist() == [3, 1]


def test_products_of_items_with_few_takers_are_those_of_all_persons(few):
    cells = simulate(n=8000, m=8, rare=3)
    answers = Responses.from_array(cells)
    taken = answers.count().answers
    b, kept = np.linspace(-1, 1, 8), np.arange(8)
    draw = plan_draw(taken, kept, np.ones(8))
    job = SumProducts(ScorePlan(b, kept, RefinedScoring(), np.full((8, 8), 1e-9), None, draw))
    some, everybody = answers.reduce(job), answers.reduce(job.of_everybody())
    assert some.shape == (9, 8)
    assert everybody.shape == (8, 8)
    assert some[:3, :8] == pytest.approx(everybody[:3], rel=1e-12, abs=1e-9)
    assert some[8, :3].tolist() == taken[:3].tolist()
    assert some[:8].diagonal() == pytest.approx(everybody.diagonal(), rel=0.15)
    assert (some[8, 3:] != taken[3:]).all()


# -- what it changes -----------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["refined", "spectral"])
def test_a_sample_of_complete_answers_is_as_sure_as_it_says(monkeypatch, method):
    ours, whole = compare(monkeypatch, simulate(m=40), 2000, method)
    assert np.array_equal(ours.difficulty, whole.difficulty)
    # 1 / sqrt(2 * 2000) = 1.6%, with a little more for scores that are not normal.
    assert 0.008 < root_mean_square(ours, whole) < 0.022
    assert ours.covariance == pytest.approx(ours.covariance.T)
    assert np.linalg.eigvalsh(ours.covariance).min() > -1e-12


def test_a_sample_is_as_sure_with_missing_answers_and_rare_items(monkeypatch):
    cells = simulate(n=60_000, m=30, given=0.5, rare=5)
    ours, whole = compare(monkeypatch, cells, 2000)
    ratio = ours.se / whole.se
    assert np.abs(ratio[:5] - 1).max() < 0.005  # all of their takers are scored
    assert 0.005 < np.sqrt(np.mean((ratio[5:] - 1) ** 2)) < 0.022


@pytest.mark.parametrize("sparse", [False, True])
def test_a_sample_of_answers_with_steps_is_as_sure(monkeypatch, sparse):
    answers, _ = hold(1, 40_000, (1, 2, 3, 2, 3, 1), missing=0.3)
    if sparse:
        answers = Responses.from_store(answers.store.take(np.arange(40_000)))
    ours, whole = compare(monkeypatch, answers, 2000)
    assert np.array_equal(ours.thresholds, whole.thresholds, equal_nan=True)
    ratio = (ours.threshold_se / whole.threshold_se)[~np.isnan(whole.thresholds)]
    assert 0.003 < np.sqrt(np.mean((ratio - 1) ** 2)) < 0.03


def test_persons_who_alone_link_two_forms_are_all_scored(monkeypatch):
    """Every item has thousands of takers, but nearly all variance comes from a few persons."""
    cells = simulate(n=20_000, m=12)
    cells[:10_000, 6:], cells[10_000:, :6] = -1, -1
    cells[:30] = simulate(n=30, m=12)
    ours, whole = compare(monkeypatch, cells, 1000)
    assert whole.se.min() > 3 * discreet.fit(cells[30:, :6], method="refined").se.max()
    assert ours.se_method.endswith("over all 20,000 persons.")
    assert ours.se == pytest.approx(whole.se, rel=1e-12)
    cells[:4000] = simulate(n=4000, m=12)  # now they are many, and a sample serves
    ours, whole = compare(monkeypatch, cells, 1000)
    assert "a sample of" in ours.se_method
    assert root_mean_square(ours, whole) < 0.04


# -- the same everywhere -------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
@pytest.mark.parametrize("named", ["numbers", "texts"])
def test_the_sample_on_disk_is_that_in_memory(tmp_path, few, monkeypatch, order, named):
    monkeypatch.setattr(batches, "TARGET_ROWS", 20_000)
    cells = simulate(n=6000, m=8, given=0.8, rare=2)
    person, item = np.nonzero(cells >= 0)
    rows = np.arange(len(person))
    if order == "shuffled":
        rows = np.random.default_rng(1).permutation(rows)
    ids = person if named == "numbers" else [f"p{number:05d}" for number in person]
    table = {"person": ids, "item": [f"q{i}" for i in item], "response": cells[person, item]}
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(table).take(rows), path)
    theirs = discreet.fit(discreet.read_responses(path), method="refined")
    with open_answers(path, "disk") as answers:
        ours = discreet.fit(answers, method="refined")
    place = [ours.items.index(name) for name in theirs.items]
    assert ours.se[place] == pytest.approx(theirs.se, rel=1e-9)
    assert "a sample of the" in ours.se_method
    assert ours.se_method == theirs.se_method


def test_numbered_persons_of_a_wide_file_are_the_same_on_disk(tmp_path, few, monkeypatch):
    monkeypatch.setattr(batches, "TARGET_ROWS", 5000)
    cells = simulate(n=5000, m=5)
    path = tmp_path / "wide.csv"
    np.savetxt(path, cells, fmt="%d", delimiter=",", header="a,b,c,d,e", comments="")
    ours, theirs = (
        discreet.fit(place, method="refined", engine=engine)
        for place, engine in ((path, "disk"), (cells, "auto"))
    )
    assert ours.se == pytest.approx(theirs.se, rel=1e-9)


def test_the_order_of_persons_and_the_number_of_threads_do_not_matter(few):
    cells = simulate(n=5000, m=6, given=0.7)
    ids = [f"p{number}" for number in range(5000)]
    turned = np.random.default_rng(2).permutation(5000)
    ours = discreet.fit(Responses.from_array(cells, persons=ids), method="refined")
    again = discreet.fit(
        Responses.from_array(cells[turned], persons=[ids[k] for k in turned]), method="refined"
    )
    assert again.se == pytest.approx(ours.se, rel=1e-9)
    other = discreet.fit(Responses.from_array(cells, persons=ids[::-1]), method="refined")
    assert other.se != pytest.approx(ours.se, rel=1e-6)


# -- what is said --------------------------------------------------------------------------------


def test_the_result_says_how_standard_errors_were_computed(few, tmp_path):
    some = discreet.fit(simulate(n=4000, m=5), method="refined")
    assert "a sample of the 4,000 persons" in some.se_method
    assert some.se_method in some.summary()
    everybody = discreet.fit(simulate(n=500, m=5), method="refined")
    assert everybody.se_method.endswith("over all 500 persons.")
    exact = discreet.fit(simulate(n=500, m=5))
    assert exact.method == "conditional"
    assert "information matrix" in exact.se_method
    counts = discreet.count_pairs(simulate(n=4000, m=5), folds=8)
    assert "folds" in discreet.fit(counts).se_method
    assert not discreet.fit(simulate(n=500, m=5), method="refined", standard_errors=False).se_method
    some.save(tmp_path / "estimate.json")
    assert discreet.Estimate.load(tmp_path / "estimate.json").se_method == some.se_method


@pytest.mark.parametrize("model", ["partial-credit", "rating-scale"])
def test_a_sample_serves_answers_with_steps_also_without_unused_categories(monkeypatch, model):
    steps = (3,) * 8
    answers, _ = hold(3, 20_000, steps, missing=0.2, common=model == "rating-scale")
    codes = answers.to_array()
    codes[codes[:, 0] == 1, 0] = 2  # nobody is in category 1 of the first item
    if model == "rating-scale":
        codes = answers.to_array()
    stepped = Responses.from_store(store_codes(codes, steps))
    whole = discreet.fit(stepped, method="refined", model=model)
    monkeypatch.setattr(person_scores, "ENOUGH", 1000)
    ours = discreet.fit(stepped, method="refined", model=model)
    assert "a sample of" in ours.se_method
    assert root_mean_square(ours, whole) < 0.04
    ratio = (ours.threshold_se / whole.threshold_se)[np.isfinite(whole.threshold_se)]
    assert 0.002 < np.sqrt(np.mean((ratio - 1) ** 2)) < 0.04


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is Linux's")
@pytest.mark.parametrize("task", ["pandas", "fit auto without errors", "measure_fit"])
def test_what_is_felt_is_measured(tmp_path, task, monkeypatch):
    monkeypatch.setattr(jit._State, "loaded", False)
    write(tmp_path, simulate(n=200, m=6, given=0.8))
    found = run_task(task, tmp_path, cpu=True)
    assert found["seconds"] >= 0
    assert found["peak"] > 1e7


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is Linux's")
def test_the_error_of_a_sample_is_measured(tmp_path, few, monkeypatch):
    monkeypatch.setattr(jit._State, "loaded", False)
    write(tmp_path, simulate(n=6000, m=6))
    assert 0.005 < run_task("all persons", tmp_path, cpu=True)["error"] < 0.05
