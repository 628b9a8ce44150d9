"""The engine for graphics processors: exact, and honest where there is none.

Where PyTorch is installed its arithmetic runs on the main processor here; on a real one the
same checks run with ``python -m bench.gpu --check``.
"""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.answers import device as gpu
from discreet.answers.opening import count_pairs
from discreet.answers.responses import Responses
from discreet.counts.folds import PersonWeight
from discreet.errors import BadResponses, BadUsage


def answers(seed, persons, items, missing=0.3):
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, 2, (persons, items), dtype=np.int8)
    cells[rng.random((persons, items)) < missing] = -1
    return cells


def assert_same(found, expected):
    assert found.items == expected.items
    assert found.persons == expected.persons
    for name in ("right_wrong", "answers", "right"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_without_pytorch_it_says_so_and_counts_in_memory(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    responses = Responses.from_array(answers(0, 50, 4))
    with pytest.warns(UserWarning, match=r"\[gpu\].*counted in memory instead"):
        found = count_pairs(responses, engine="gpu")
    assert_same(found, count_pairs(responses))


def test_the_module_imports_and_counts_where_numba_is_absent():
    code = (
        "import sys; sys.modules['numba'] = None; sys.modules['torch'] = None\n"
        "import warnings; warnings.simplefilter('ignore')\n"
        "import numpy as np, discreet.answers.device as gpu\n"
        "from discreet.answers.responses import Responses\n"
        "found = gpu.DeviceAnswers(Responses.from_array(np.array([[1, 0], [1, 0]]))).count()\n"
        "print(found.right_wrong.tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[[0, 2], [0, 0]]", done.stderr


def test_something_that_is_no_matrix_is_refused():
    with pytest.raises(BadUsage, match="found dict"):
        gpu.count_on_device({}, None, "cpu")


def test_a_matrix_in_memory_is_counted_without_being_wrapped_first():
    cells = answers(1, 60, 5)
    assert_same(count_pairs(cells), count_pairs(Responses.from_array(cells)))


class TestWithPyTorch:
    """The arithmetic, on the main processor."""

    @pytest.fixture(autouse=True)
    def torch(self):
        return pytest.importorskip("torch", reason="PyTorch is not installed")

    @settings(max_examples=40, deadline=None)
    @given(st.integers(0, 2**32), st.integers(1, 300), st.integers(1, 40), st.floats(0, 1))
    def test_counts_are_those_of_the_memory_engine(self, seed, persons, items, missing):
        cells = answers(seed, persons, items, missing)
        expected = count_pairs(Responses.from_array(cells))
        assert_same(gpu.count_on_device(Responses.from_array(cells), None, "cpu"), expected)
        assert_same(gpu.count_on_device(gpu._as_tensor(cells), None, "cpu"), expected)

    @settings(max_examples=20, deadline=None)
    @given(st.integers(0, 2**32), st.integers(1, 300), st.integers(1, 12))
    def test_weights_too_and_over_several_slabs(self, seed, persons, items):
        cells = answers(seed, persons, items)
        expected = count_pairs(Responses.from_array(cells), weighting=PersonWeight())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gpu, "SLAB_PERSONS", 64)
            for source in (Responses.from_array(cells), gpu._as_tensor(cells)):
                assert_same(gpu.count_on_device(source, PersonWeight(), "cpu"), expected)

    def test_large_weights_are_exact_to_the_last_bit(self):
        cells = answers(2, 200, 6)
        responses = Responses.from_array(cells)
        expected = count_pairs(responses, weighting=large_weights)
        assert_same(gpu.count_on_device(responses, large_weights, "cpu"), expected)

    @pytest.mark.parametrize("kind", ["int8", "uint8", "int32", "int64", "float32", "bool"])
    def test_every_type_of_tensor_means_what_it_means_in_memory(self, torch, kind):
        cells = np.abs(answers(3, 70, 5, missing=0.0)).astype(kind)
        if kind == "float32":
            cells[::3, 1] = np.nan
        elif np.dtype(kind).kind == "i":
            cells[::3, 1] = -1
        expected = count_pairs(Responses.from_array(cells))
        assert_same(gpu.count_on_device(torch.from_numpy(cells), None, "cpu"), expected)

    def test_a_two_is_refused_with_its_place_beyond_the_first_slab(self, torch, monkeypatch):
        monkeypatch.setattr(gpu, "SLAB_PERSONS", 64)
        cells = answers(4, 200, 5)
        cells[150, 3] = 2
        with pytest.raises(BadResponses, match=r"Row 150, column 3.*found 2"):
            gpu.count_on_device(torch.from_numpy(cells), None, "cpu")

    def test_sparse_answers_are_counted_too(self):
        responses = Responses.from_array(answers(5, 500, 400, missing=0.99))
        assert not hasattr(responses.store, "wrong")
        assert_same(gpu.count_on_device(responses, None, "cpu"), count_pairs(responses))

    def test_a_tensor_in_main_memory_is_fitted_like_an_array(self, torch):
        cells = answers(6, 300, 5)
        found = discreet.fit(torch.from_numpy(cells))
        np.testing.assert_array_equal(found.difficulty, discreet.fit(cells).difficulty)


def large_weights(answered, right):
    return (1 << 30) - 3 * answered - right
