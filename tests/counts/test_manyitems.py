"""Sparse counts are the dense ones without the zeros: counted, added, saved, merged, fitted."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from commandline import discreet
from discreet.answers.pack import build_rows
from discreet.answers.protocol import fold_blocks
from discreet.answers.responses import Responses
from discreet.api.calibrating import fit
from discreet.api.counting import count_pairs
from discreet.counts import PairCounts, matrix, merge_counts
from discreet.counts import pairs as compressed
from discreet.counts.folds import PersonWeight
from discreet.counts.matrix import prefers_sparse
from discreet.errors import BadResponses, BadUsage, NoStandardErrors, NotConverged
from discreet.models import laplacian as hierarchy
from discreet.models.laplacian import build_laplacian
from discreet.models.refined import solve_refined
from discreet.models.standard_errors import columns
from discreet.models.standard_errors import random_signs as multipliers
from discreet.models.standard_errors import sandwich as sandwich
from discreet.readers.streamed.counting import Accumulator, count_source
from refusals import refused

CASES = st.tuples(
    st.integers(0, 60), st.integers(1, 90), st.sampled_from([0.3, 0.8, 0.97]), st.integers(0, 9)
)
quick = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def many(monkeypatch):
    """Let a handful of items be many, and any matrix be mostly empty."""
    monkeypatch.setattr(matrix, "SPARSE_ITEMS", 2)
    monkeypatch.setattr(matrix, "SPARSE_FILL", 2.0)


@pytest.fixture(params=["scipy", "compiled"])
def way(request, many, monkeypatch):
    monkeypatch.setattr(compressed, "worth_compiling", lambda _: request.param == "compiled")
    monkeypatch.setattr(compressed, "BLOCK_PAIRS", 50)
    return request.param


def draw(persons, items, missing, seed):
    rng = np.random.default_rng(seed)
    answers = rng.integers(0, 2, size=(persons, items)).astype(np.int8)
    answers[rng.random(answers.shape) < missing] = -1
    return answers


def both_stores(answers):
    person, item = np.nonzero(answers >= 0)
    rows = build_rows(person, item, answers[person, item] == 1, *answers.shape)
    return Responses.from_array(answers), Responses.from_store(rows)


def multiply(answers, weights):
    right = (answers == 1) * weights[:, None]
    return right.T @ (answers == 0).astype(np.int64)


def weigh(answered, right):
    """Weights with zeros among them, and some that need more than 32 bits to add up."""
    return np.where(answered % 3 == 0, 0, (1 << 30) - 7 * answered * right)


def is_tidy(counts):
    """Sparse, sorted, without zeros, int64: the one form that all engines give."""
    Y = counts.right_wrong
    return (
        isinstance(Y, csr_array)
        and Y.dtype == np.int64
        and bool(Y.has_canonical_format)
        and bool(Y.data.all())
    )


def identical(ours, theirs):
    parts = [
        np.array_equal(getattr(ours.right_wrong, name), getattr(theirs.right_wrong, name))
        for name in ("indptr", "indices", "data")
    ]
    return (
        all(parts)
        and ours.items == theirs.items
        and ours.persons == theirs.persons
        and ours.weighting == theirs.weighting
        and np.array_equal(ours.answers, theirs.answers)
        and np.array_equal(ours.right, theirs.right)
    )


# --- the rule -----------------------------------------------------------------------------------


def test_the_form_depends_on_items_and_pairs_only():
    assert not prefers_sparse(2000, 0)
    assert prefers_sparse(2001, 10_000)
    assert not prefers_sparse(5000, 5_000_000)
    assert prefers_sparse(50_000, 500_000_000), "a dense matrix would take 20 GB"


def test_counts_are_sparse_where_items_are_many_and_mostly_not_compared():
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(300), 10)
    rows = build_rows(person, np.concatenate([rng.choice(2500, 10, replace=False)
                      for _ in range(300)]), rng.random(3000) < 0.5, 300, 2500)  # fmt: skip
    counts = count_pairs(Responses.from_store(rows))
    assert counts.is_sparse
    assert is_tidy(counts)
    assert not count_pairs(Responses.from_array(draw(50, 30, 0.5, 0))).is_sparse


def test_the_same_numbers_settle_in_the_same_form_whoever_made_them(many):
    dense = np.array([[0, 3, 0], [1, 0, 0], [0, 0, 0]])
    untidy = csr_array((np.array([1, 2, 1, 0]), np.array([1, 1, 0, 2]), np.array([0, 2, 4, 4])))
    totals = np.array([9, 9, 9]), np.array([4, 4, 4])
    made = [PairCounts(tuple("abc"), Y, *totals, 9) for Y in (dense, untidy)]
    assert all(map(is_tidy, made))
    assert identical(*made)


# --- counting -----------------------------------------------------------------------------------


def test_sparse_counts_equal_the_plain_product(way):
    @quick
    @given(case=CASES)
    def check(case):
        answers = draw(*case)
        for responses in both_stores(answers):
            for weighting in (None, weigh):
                counts = count_pairs(responses, weighting=weighting)
                weights = np.ones(len(answers), dtype=np.int64)
                if weighting is not None:
                    weights = weigh(*responses.store.person_totals())
                if answers.shape[1] > 2:
                    assert is_tidy(counts)
                    assert np.array_equal(counts.right_wrong.toarray(), multiply(answers, weights))

    check()


def test_batches_in_which_items_appear_one_after_the_other_add_up(many, monkeypatch):
    @quick
    @given(case=CASES, cuts=st.lists(st.integers(0, 60), max_size=6), dense=st.booleans())
    def check(case, cuts, dense):
        # With a lower share some batches are sparse while the sum is not.
        monkeypatch.setattr(matrix, "SPARSE_FILL", 0.2 if dense else 2.0)
        answers = draw(*case)
        whole = Responses.from_array(answers)
        ends = sorted({min(cut, len(answers)) for cut in cuts} | {0, len(answers)})
        tally, seen = Accumulator(), 0
        for first, stop in itertools.pairwise(ends):
            part = answers[first:stop]
            used = np.flatnonzero((part >= 0).any(axis=0))
            seen = max(seen, int(used[-1]) + 1 if used.size else 0)
            if seen:
                some = Responses.from_array(part[:, :seen], items=whole.items[:seen])
                tally.add(some.items, some.store, None)
        counts, expected = tally.counts(whole.items), count_pairs(whole)
        assert counts.is_sparse == expected.is_sparse
        assert (counts.right_wrong != expected.right_wrong).sum() == 0
        assert np.array_equal(counts.answers, expected.answers)

    check()


def test_a_growing_table_stays_sparse_and_in_few_pieces(many):
    rng = np.random.default_rng(0)
    tally = Accumulator()
    for number in range(64):
        answers = np.full((20, 200), -1, dtype=np.int8)
        answers[:, number : number + 5] = rng.integers(0, 2, (20, 5))
        one = Responses.from_array(answers)
        tally.add(one.items, one.store, None)
    assert len(tally._pairs._parts) <= 8
    assert tally.counts().is_sparse


@pytest.fixture
def answer_file(tmp_path):
    path = tmp_path / "answers.csv"
    rng = np.random.default_rng(3)
    lines = [
        f"p{person:03},q{item:02},{int(rng.random() < 0.5)}"
        for person in range(60)
        for item in rng.choice(40, 5, replace=False)
    ]
    path.write_text("\n".join(["person,item,response", *rng.permutation(lines)]))
    return path


@pytest.mark.parametrize("weighting", [None, PersonWeight(), weigh])
def test_counting_out_of_core_gives_the_identical_sparse_counts(many, answer_file, weighting):
    ours = count_pairs(answer_file, engine="duckdb", weighting=weighting)
    theirs = count_pairs(answer_file, engine="memory", weighting=weighting)
    assert is_tidy(ours)
    assert identical(ours, theirs.select(ours.items))


@pytest.mark.parametrize("order", ["ordered", "shuffled"])
def test_a_sparse_run_that_stops_goes_on_without_counting_twice(
    many, answer_file, monkeypatch, order
):
    from discreet.readers import batches
    from discreet.readers import batches as buckets
    from discreet.readers.streamed import counting as checkpoint
    from discreet.tables import resources as limits

    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)
    monkeypatch.setattr(limits, "REPORT_INTERVAL", 0.0)
    monkeypatch.setattr(batches, "TARGET_ROWS", 7)
    monkeypatch.setattr(buckets, "BYTES_A_ROW", 1 << 26)
    monkeypatch.setattr(buckets, "MOST_BITS", 3)
    if order == "ordered":
        head, *lines = answer_file.read_text().split("\n")
        answer_file.write_text("\n".join([head, *sorted(lines)]))
    expected = count_pairs(answer_file, engine="duckdb")
    folder = answer_file.parent / "kept"

    class Stop(Exception):
        pass

    def stop(now):
        if now.rows > (100 if order == "ordered" else 450):
            raise Stop

    with pytest.raises(Stop):
        count_source(answer_file, checkpoint=folder, progress=stop)
    halfway = PairCounts.load(folder / "counts.npz")
    assert halfway.is_sparse
    assert 0 < halfway.persons < expected.persons
    assert identical(count_source(answer_file, checkpoint=folder), expected)


# --- adding, files ------------------------------------------------------------------------------


def test_sparse_shards_add_up_merge_and_come_back_from_files(many, tmp_path):
    @quick
    @given(case=CASES, cut=st.integers(0, 60), order=st.randoms(use_true_random=False))
    def check(case, cut, order):
        answers = draw(*case)
        whole = Responses.from_array(answers)
        names = list(whole.items)
        first, second = (count_pairs(whole_part) for whole_part in split(whole, answers, cut))
        expected = count_pairs(whole)
        assert same(first + second, expected)
        order.shuffle(names)
        path = tmp_path / "second.npz"
        second.select(names).save(path, note={"day": 2})
        back = PairCounts.load(path)
        assert back.note == {"day": 2}
        assert same(back, second.select(names))
        assert same(merge_counts([first, back]), expected)

    def split(whole, answers, cut):
        for part in (answers[:cut], answers[cut:]):
            yield Responses.from_array(part, items=whole.items)

    def same(ours, theirs):
        if theirs.is_sparse:
            return identical(ours, theirs)
        return np.array_equal(ours.right_wrong, theirs.right_wrong)

    check()


def test_a_sparse_file_is_marked_confidential_and_small(many, tmp_path):
    counts = count_pairs(Responses.from_array(draw(20, 300, 0.98, 1)))
    counts.save(tmp_path / "counts.npz")
    with np.load(tmp_path / "counts.npz") as archive:
        header = json.loads(str(archive["header"]))
        assert "confidential" in header
        assert header["version"] == 1
        assert archive["data"].dtype == np.uint8, "small counts are saved as small numbers"


def rewrite(path, header=(), drop=(), **arrays):
    """Save a file of counts again with other parts, as a vandal would."""
    with np.load(path) as archive:
        parts = {name: archive[name] for name in archive.files if name not in drop}
    head = {**json.loads(str(parts["header"])), **dict(header)}
    np.savez_compressed(path, **{**parts, **arrays, "header": np.array(json.dumps(head))})


@pytest.mark.parametrize(
    "changes",
    [
        {"indices": np.array([99], dtype=np.int32)},
        {"indptr": np.array([0, 5, 2, 1], dtype=np.int32)},
        {"data": np.array([0.5])},
        {"drop": ("indices",)},
        {"header": {"version": 2}},
        {"data": np.array([-1])},
        {"indices": np.array([0], dtype=np.int32)},
    ],
)
def test_damaged_sparse_files_are_refused(many, tmp_path, changes):
    path = tmp_path / "counts.npz"
    count_pairs(Responses.from_array(np.array([[1, 0, -1]]))).save(path)
    rewrite(path, **changes)
    with pytest.raises(BadUsage) as caught:
        PairCounts.load(path)
    assert caught.value.code in (
        "cannot_read_file_pair",
        "not_file_pair_counts",
        "holds_numbers_cannot_pair",
    )


def test_counts_with_other_weights_are_not_added():
    responses = Responses.from_array(draw(20, 4, 0.3, 1))
    plain, weighted = (count_pairs(responses, weighting=w) for w in (None, PersonWeight()))
    assert (plain.weighting, weighted.weighting) == ("none", "PersonWeight(scale=27720)")
    with refused(BadResponses, "these_counts_weighted_differently"):
        _ = plain + weighted
    with refused(BadResponses, "these_counts_weighted_differently"):
        merge_counts([count_pairs(responses, weighting=PersonWeight(9)), weighted])
    assert (weighted + weighted).weighting == weighted.weighting


def test_the_commands_count_and_merge_sparse_counts(many, answer_file, monkeypatch):
    monkeypatch.chdir(answer_file.parent)
    for name, engine in (("one.npz", "memory"), ("two.npz", "duckdb")):
        ended = discreet("table", "counts", "answers.csv", "--out", name, "--engine", engine)
        assert ended.code == 0, ended.err
    assert identical(PairCounts.load("two.npz"), PairCounts.load("one.npz"))
    ended = discreet("table", "merge", "one.npz", "two.npz", "--out", "both.npz", "--json")
    assert ended.document["persons"] == 120
    assert PairCounts.load("both.npz").is_sparse


def test_what_needs_every_pair_refuses_with_the_sizes(many, monkeypatch):
    counts = count_pairs(Responses.from_array(draw(20, 30, 0.9, 1)))
    assert np.array_equal(counts.dense("this"), counts.right_wrong.toarray())
    monkeypatch.setattr(matrix, "LARGE_ITEMS", 20)
    with refused(BadUsage, "needs_number_each_pairs", m="30", m_2="30"):
        counts.dense("a release by pairs")


# --- fitting ------------------------------------------------------------------------------------


def linked(seed, n=400, m=60, answered=8, window=60):
    rng = np.random.default_rng(seed)
    b = rng.normal(size=m)
    answers = np.full((n, m), -1, dtype=np.int8)
    for row in answers:
        first = rng.integers(0, m - window + 1)
        item = first + rng.choice(window, answered, replace=False)
        row[item] = rng.random(answered) < 1 / (1 + np.exp(b[item] - rng.normal()))
    return answers, b - b.mean()


@pytest.mark.parametrize("method", ["refined", "spectral"])
@pytest.mark.parametrize("window", [60, 10])
def test_sparse_counts_are_fitted_like_dense_ones(method, window, request):
    answers, _ = linked(1, window=window)
    dense = fit(answers, method=method)
    request.getfixturevalue("many")
    sparse = fit(answers, method=method)
    assert sparse.status == dense.status
    assert sparse.difficulty == pytest.approx(dense.difficulty, abs=1e-7, nan_ok=True)
    assert sparse.se == pytest.approx(dense.se, rel=1e-5, nan_ok=True)
    counts = count_pairs(Responses.from_array(answers))
    assert counts.is_sparse
    alone = fit(counts, method=method)
    assert alone.status == dense.status


def test_weighted_counts_are_fitted_as_the_answers_are(many):
    answers, _ = linked(2)
    responses = Responses.from_array(answers)
    counts = count_pairs(responses, weighting=PersonWeight())
    alone, whole = (fit(data, regularisation=0.3) for data in (counts, responses))
    assert alone.difficulty == pytest.approx(whole.difficulty, abs=1e-7)
    assert not any("not weighted" in note for note in alone.solution.notes)
    plain = fit(count_pairs(responses))
    assert any("not weighted" in note for note in plain.solution.notes)


def test_regularisation_of_sparse_counts_is_that_of_dense_ones(request):
    answers, _ = linked(3, n=40)
    dense = fit(answers, regularisation=0.5, standard_errors=False)
    request.getfixturevalue("many")
    sparse = fit(answers, regularisation=0.5, standard_errors=False)
    assert sparse.difficulty == pytest.approx(dense.difficulty, abs=1e-7, nan_ok=True)


def test_answers_out_of_core_are_fitted_with_weights_and_errors_too(many, answer_file, monkeypatch):
    monkeypatch.setattr(sandwich, "COVARIANCE_LIMIT", 10)
    ours, theirs = (fit(answer_file, engine=one, method="refined") for one in ("duckdb", "auto"))
    order = [ours.items.index(name) for name in theirs.items]
    assert ours.se[order] == pytest.approx(theirs.se, rel=1e-3, nan_ok=True)
    monkeypatch.setattr(multipliers, "EXACT_PERSONS", 10)
    ours = fit(answer_file, engine="duckdb", method="refined")
    assert ours.difficulty[order] == pytest.approx(theirs.difficulty, abs=1e-7, nan_ok=True)
    assert any("multiplier draws" in note for note in ours.solution.notes)
    assert ours.se[order] == pytest.approx(theirs.se, rel=0.2, nan_ok=True)


@pytest.mark.parametrize("method", ["conditional", "marginal"])
def test_methods_that_need_a_matrix_between_all_items_say_so(method, monkeypatch):
    from discreet.models import calibrate

    monkeypatch.setattr(calibrate, "MATRIX_ITEMS", 50)
    with refused(BadUsage, "method_works_matrix_between", m="60"):
        fit(linked(4)[0], method=method)


def test_a_start_that_does_not_come_back_is_an_error_with_a_name(many, monkeypatch):
    """Plant a solver that forgets the slow directions: two starts must give it away."""
    from discreet.models.laplacian import LaplacianSolver

    answers, _ = linked(5, n=900, m=80, window=8)
    rates = csr_array(count_pairs(Responses.from_array(answers)).right_wrong.astype(float))
    assert solve_refined(rates)[1].residual < 1e-6

    def forget(_self, laplacian, rhs):
        values, vectors = np.linalg.eigh(
            np.diag(laplacian.diagonal) - (laplacian.weights + laplacian.weights.T).toarray()
        )
        fast = values > 0.05 * values.max()
        return vectors[:, fast] @ ((vectors[:, fast].T @ rhs) / values[fast])

    monkeypatch.setattr(LaplacianSolver, "solve", forget)
    with refused(NotConverged, "newton_method_pairwise_likelihood"):
        solve_refined(rates)


# --- standard errors of many items --------------------------------------------------------------


def test_columns_are_solved_with_and_without_groups(monkeypatch):
    monkeypatch.setattr(hierarchy, "COARSEST", 10)
    rng = np.random.default_rng(0)
    weights = np.triu(rng.random((200, 200)) * (rng.random((200, 200)) < 0.05), 1)
    near = np.arange(199)
    weights[near, near + 1] += 0.5
    weights[:100, 100:] *= 1e-3
    laplacian = build_laplacian(csr_array(weights))
    truth = rng.normal(size=(200, 5))
    truth -= truth.mean(axis=0)
    rhs = laplacian.apply(truth)
    for few in (1000, 1):
        monkeypatch.setattr(columns, "FEW_ROUNDS", few)
        found = columns.ColumnSolver(laplacian).solve(rhs)
        assert found == pytest.approx(truth, abs=5e-3)


@pytest.mark.parametrize("method", ["refined", "spectral"])
def test_drawn_standard_errors_are_as_exact_as_they_say(many, monkeypatch, method):
    answers, _ = linked(6, n=1500, m=80, answered=10, window=80)
    exact = fit(answers, method=method).se
    monkeypatch.setattr(sandwich, "COVARIANCE_LIMIT", 10)
    monkeypatch.setattr(multipliers, "EXACT_PERSONS", 100)
    monkeypatch.setattr(multipliers, "FACTOR_ITEMS", 10)
    drawn = fit(answers, method=method)
    said = next(note for note in drawn.solution.notes if "multiplier draws" in note)
    stated = float(said.split("relative error ")[1].rstrip("%)")) / 100
    off = np.sqrt(np.mean((drawn.se / exact - 1) ** 2))
    # The leverage correction differs by up to a percent between few and many items.
    assert off < 1.5 * stated + 0.01
    assert stated < 0.05


def test_the_known_part_takes_most_of_the_chance_out_of_the_draws(many, monkeypatch):
    answers, _ = linked(7, n=1500, m=80, answered=10, window=80)
    monkeypatch.setattr(sandwich, "COVARIANCE_LIMIT", 10)
    monkeypatch.setattr(multipliers, "EXACT_PERSONS", 100)
    monkeypatch.setattr(multipliers, "FEWEST_DRAWS", 64)
    monkeypatch.setattr(multipliers, "DRAWS", 64)
    notes = fit(answers, method="refined").solution.notes
    stated = next(note for note in notes if "draws" in note)
    assert float(stated.split("relative error ")[1].rstrip("%)")) < 6, "8.8% without"


def test_standard_errors_that_nobody_can_vouch_for_are_left_out(many, monkeypatch):
    answers, _ = linked(8, n=900, m=60, window=8)
    for module, name, value in (
        (sandwich, "COVARIANCE_LIMIT", 10), (multipliers, "EXACT_PERSONS", 10),
        (multipliers, "FACTOR_ITEMS", 10), (columns, "FEW_ROUNDS", 1),
        (columns, "MANY_ROUNDS", 1), (hierarchy, "COARSEST", 5),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    with pytest.warns(NoStandardErrors):
        estimate = fit(answers, method="refined")
    assert np.isfinite(estimate.difficulty[estimate.estimated]).all()
    assert np.isnan(estimate.se).all()
    assert any(text.startswith("no standard errors") for text in estimate.warnings)


def test_batches_of_persons_give_the_standard_errors_of_all(many, monkeypatch):
    """A stream is scored part by part; the signs go on from part to part."""
    answers, _ = linked(9, n=600, m=40, window=40)
    whole = Responses.from_array(answers)

    parts = [Responses.from_array(answers[start : start + 250]).store for start in (0, 250, 500)]
    seen = {}

    choose = multipliers.ManyPlan.choose_job

    def keep(plan, n_persons):
        seen.update(plan=plan)
        return choose(plan, n_persons)

    monkeypatch.setattr(sandwich, "COVARIANCE_LIMIT", 10)
    monkeypatch.setattr(multipliers, "EXACT_PERSONS", 10)
    monkeypatch.setattr(multipliers.ManyPlan, "choose_job", keep)
    fit(answers, method="refined")

    def measure(blocks):
        job = choose(seen["plan"], 600)
        assert isinstance(job, multipliers.MixScores)
        return job.finish(fold_blocks([(block, None) for block in blocks], 600, [job])[0])

    one, two = measure([whole.store]), measure(parts)
    assert two.se == pytest.approx(one.se, rel=1e-9)
    assert one.notes == two.notes
