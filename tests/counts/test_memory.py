"""Counts that would not fit into memory are refused before anything is counted."""

import subprocess
import sys
import textwrap

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import discreet
from discreet import atomic, resources
from discreet.answers.pack import store_codes
from discreet.answers.responses import Responses
from discreet.cli.app import app
from discreet.counts import matrix, pairs
from discreet.errors import OutOfReach
from refusals import refused
from stepped import draw_codes, hold

STEPS = [3, 1, 4, 2] * 6

limits_memory = pytest.mark.skipif(
    atomic.fcntl is None, reason="Windows sets no limit to the memory of a process"
)
"""Of 24 items: 60 steps, so that an array between all of them takes 28,800 bytes."""
ARRAY = 8 * 60**2


@pytest.fixture
def free(monkeypatch):
    """Set how many bytes are free, and let 60 steps count as many."""
    monkeypatch.setattr(matrix, "SPARSE_ITEMS", 20)

    def set_free(size):
        monkeypatch.setattr(matrix, "available_memory", lambda: int(size))

    return set_free


@pytest.fixture
def uncounted(monkeypatch):
    """Fail where pairs are counted."""

    def fail(*_):
        pytest.fail("pairs were counted")

    for name in ("_count_dense", "count_compressed"):
        monkeypatch.setattr(pairs, name, fail)


def make(persons=200, missing=0.2):
    return hold(1, persons, STEPS, missing=missing)[0]


def write(path, persons=200):
    codes = draw_codes(1, persons, STEPS)
    person, item = np.nonzero(codes >= 0)
    columns = {"person": person, "item": item, "answer": codes[person, item].astype(np.int64)}
    pq.write_table(pa.table(columns), path)
    return str(path)


@pytest.mark.parametrize("place", ["memory", "disk", "query", "frame"])
def test_a_fit_is_refused_before_counting_wherever_answers_are(free, uncounted, tmp_path, place):
    path = write(tmp_path / "answers.parquet")
    sources = {
        "memory": (path, "memory"),
        "disk": (path, "disk"),
        "query": (f"SELECT person, item, answer FROM '{path}'", "auto"),  # noqa: S608
        "frame": (pq.read_table(path), "auto"),
    }
    source, engine = sources[place]
    free(6 * ARRAY)
    with refused(
        OutOfReach,
        "items_make_pairs_needs",
        items="24",
        more=" with 60 steps in all",
        nodes="60",
        nodes_2="60",
    ):
        discreet.fit(source, engine=engine, model="partial-credit", method="refined")


@pytest.mark.parametrize("method", ["refined", "spectral", "conditional", "marginal"])
def test_every_method_is_refused(free, uncounted, method):
    free(6 * ARRAY)
    with refused(OutOfReach, "items_make_pairs_needs", name="The fit"):
        discreet.fit(make(), method=method)


def test_the_refusal_names_sizes_and_remedies(free):
    free(6e9)
    sizes = {"items": "5,000", "nodes": "20,000", "needed": "22.4 GB", "free": "6.0 GB"}
    with (
        matrix.planning(matrix.FITTING),
        refused(OutOfReach, "items_make_pairs_needs", **sizes, machine="32") as refusal,
    ):
        matrix.check_room([4] * 5000, 20_000**2)
    fewer = refusal.value.facts["fewer"]
    assert "at_least= (--at-least): about 1.4 GB" in fewer
    assert "merge= (--merge): about 5.6 GB with half of the steps" in fewer
    assert refusal.value.exit_code == 2


def test_a_remedy_that_would_need_more_memory_is_not_named(free):
    """With few compared pairs 20,000 steps are sparse; half of them could fill an array."""
    free(1e9)
    with (
        matrix.planning(matrix.FITTING),
        refused(OutOfReach, "items_make_pairs_needs", needed="3.8 GB") as refusal,
    ):
        matrix.check_room([4] * 5000, 36_500_000)
    assert refusal.value.facts["fewer"].endswith("at_least= (--at-least): about 1.4 GB")


def test_right_and_wrong_answers_are_told_to_take_fewer_items(free):
    free(ARRAY)
    with refused(
        OutOfReach,
        "items_make_pairs_needs",
        items="60",
        nodes="60",
        nodes_2="60",
        fewer="take fewer items",
    ):
        discreet.fit(np.eye(60))


def test_counting_alone_needs_less_than_a_fit(free):
    answers = make()
    free(5 * ARRAY)
    counts = discreet.count_pairs(answers)
    with refused(OutOfReach, "items_make_pairs_needs", name="The fit"):
        discreet.fit(answers)
    free(3 * ARRAY)
    with refused(OutOfReach, "items_make_pairs_needs", name="Counting them"):
        discreet.count_pairs(answers)
    # The counts themselves are in memory already.
    free(6.5 * ARRAY)
    assert np.isfinite(fit_counts(counts).difficulty).all()
    free(5 * ARRAY)
    with refused(OutOfReach, "items_make_pairs_needs", name="The fit"):
        fit_counts(counts)


def fit_counts(counts):
    return discreet.fit(counts, standard_errors=False)


@pytest.mark.parametrize("mechanism", ["pairs", "margins"])
def test_a_release_is_refused_by_the_number_of_items_whatever_the_answers_are(
    free, monkeypatch, mechanism
):
    """How many pairs were compared is confidential, and so whether sparse counts would fit."""
    monkeypatch.setattr(matrix, "SPARSE_FILL", 0.5)
    names, refusals = [f"i{item}" for item in range(60)], set()
    for filled in (60, 3):
        codes = np.full((50, 60), -1)
        codes[:, :filled] = np.arange(50)[:, None] % 2 == np.arange(filled) % 2
        answers = Responses.from_array(codes, items=names)
        free(3.9 * ARRAY)
        with pytest.raises(OutOfReach) as refusal:
            release(answers, mechanism)
        refusals.add(str(refusal.value))
        free(4.1 * ARRAY)
        assert len(release(answers, mechanism).estimate.items) == 60
    (said,) = refusals
    assert "60 items make 60 x 60 pairs. A release needs about" in said


def release(answers, mechanism):
    budget = discreet.Budget(5, 1e-6)
    return discreet.release(
        answers, budget, items=answers.items, max_answers=60, mechanism=mechanism
    )


def test_enough_memory_changes_nothing(free):
    answers = make()
    before = discreet.fit(answers, method="refined")
    free(7.1 * ARRAY)
    assert (discreet.fit(answers, method="refined").difficulty == before.difficulty).all()


def test_a_rating_scale_needs_arrays_also_of_thin_answers(free):
    codes = np.full((30, 24), -1, dtype=np.int8)
    for person, row in enumerate(codes):
        row[person % 20 : person % 20 + 4] = [0, 3, 1, 2]
    thin = Responses.from_store(store_codes(codes, [3] * 24))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matrix, "SPARSE_FILL", 0.5)
        free(4 * 8 * 72**2)  # an array can be counted, seven cannot be fitted
        with refused(OutOfReach, "items_make_pairs_needs", name="The fit"):
            discreet.fit(thin, method="refined", model="rating-scale")
        with matrix.planning(matrix.FITTING):
            assert discreet.count_pairs(thin).is_sparse


def test_thin_answers_are_counted_sparsely_where_an_array_does_not_fit(free, monkeypatch):
    rng = np.random.default_rng(3)
    codes = np.full((300, 60), -1, dtype=np.int8)
    for row in codes:  # everybody has the same few neighbours, so that few pairs are compared
        start = 10 * rng.integers(6)
        row[start : start + 10] = rng.integers(0, 2, 10)
    answers = Responses.from_array(codes)
    free(1e9)
    monkeypatch.setattr(matrix, "SPARSE_FILL", 0.5)
    expected = discreet.count_pairs(answers)
    free(3.9 * ARRAY)  # not enough for the arrays of dense counting
    monkeypatch.setattr(pairs.matrix, "check_room", lambda *_: None)
    monkeypatch.setattr(pairs, "_count_dense", lambda *_: pytest.fail("counted in an array"))
    counts = discreet.count_pairs(answers)
    assert counts.is_sparse
    assert (counts.right_wrong != expected.right_wrong).nnz == 0


@pytest.mark.parametrize("share", [1.0, 0.2])
def test_compared_pairs_are_foretold_from_totals(share):
    rng = np.random.default_rng(4)
    popular = rng.lognormal(0, 1, 2500)
    popular /= popular.sum()
    right = np.zeros((2500, 2500), dtype=bool)
    totals, work = np.zeros((2, 2500), dtype=np.int64), 0
    persons = 3000
    for person in range(persons):
        chosen = rng.choice(2500, 12, replace=False, p=popular)
        good = rng.random(12) < 0.6
        right[np.ix_(chosen[good], chosen[~good])] = True
        if person < share * persons:
            totals[0, chosen[good]] += 1
            totals[1, chosen[~good]] += 1
            work += int(good.sum()) * int((~good).sum())
    foretold = matrix.expect_pairs(*totals, work / share)
    # A fifth of the persons leaves items unseen; that makes few cells out of many.
    assert foretold == pytest.approx(right.sum(), rel=0.06 if share == 1 else 0.25)


def test_the_command_line_refuses_with_exit_code_2(free, tmp_path):
    path = write(tmp_path / "answers.parquet")
    free(6 * ARRAY)
    result = CliRunner().invoke(app, ["fit", path, "--model", "partial-credit"])
    assert result.exit_code == 2
    assert "--at-least" in result.stderr
    assert not result.stdout


@limits_memory
def test_limits_of_the_process_count_as_memory():
    script = """
        import resource
        from discreet.resources import available_memory
        before = available_memory()
        pages = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (pages + 100_000_000, resource.RLIM_INFINITY))
        assert before > available_memory(), "a limit makes no difference"
        assert 50_000_000 < available_memory() <= 100_000_000
    """
    run_script(script)


def run_script(script):
    command = [sys.executable, "-c", textwrap.dedent(script)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout


@pytest.mark.parametrize("names", [entry[1:] for entry in resources.CONTAINERS])
def test_limits_of_a_container_count_as_memory(monkeypatch, tmp_path, names):
    monkeypatch.setattr(resources, "CONTAINERS", ((tmp_path / "no", *names), (tmp_path, *names)))
    for name, value in zip(names, (1000, 700), strict=True):
        (tmp_path / name).write_text(f"{value}\n")
    (tmp_path / "memory.stat").write_text("anon 500\ninactive_file 150\nactive_file 50\n")
    assert resources.available_memory() == 450
    (tmp_path / names[0]).write_text("max\n")
    assert resources.available_memory() > 1000


@limits_memory
def test_a_process_with_little_memory_is_refused_in_words():
    """Of 700 items with 4 steps a fit needs 0.4 GB; 0.25 GB are there, and one array fits."""
    script = """
        import resource
        import numpy as np
        import scipy.linalg, scipy.sparse
        import discreet
        codes = np.random.default_rng(0).integers(0, 5, (60, 700)).astype(float)
        answers = discreet.Responses.from_array(codes)
        discreet.fit(codes[:, :20], method="refined")
        pages = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (pages + 250_000_000, resource.RLIM_INFINITY))
        try:
            discreet.fit(answers, method="refined", standard_errors=False)
        except discreet.errors.OutOfReach as error:
            print(error)
    """
    said = run_script(script)
    assert said.startswith("700 items with 2,800 steps in all make 2,800 x 2,800 pairs")
    assert "a machine with 8 GB" in said
