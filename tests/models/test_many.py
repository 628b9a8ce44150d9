"""Very many persons: compiled loops give the numbers of tables."""

import numpy as np
import pytest

import discreet
from discreet.analysis import measure_fit
from discreet.answers.responses import Responses
from discreet.counts.planes import BitPlanes, SparseRows
from discreet.persons import large
from stepped import hold


def simulate(seed=0, n=1500, m=30, given=0.5, spread=1.0):
    rng = np.random.default_rng(seed)
    b = spread * rng.normal(size=m)
    cells = (rng.random((n, m)) < 1 / (1 + np.exp(b - rng.normal(size=(n, 1))))).astype(np.int8)
    cells[rng.random((n, m)) > given] = -1
    cells[0] = -1
    cells[1, :5], cells[2, :5] = 0, 1
    cells[1:3, 5:] = -1
    return Responses.from_array(cells), {str(item): value for item, value in enumerate(b)}


def both_ways(monkeypatch, compute):
    plain = compute()
    monkeypatch.setattr(large, "MANY_ANSWERS", 0)
    monkeypatch.setattr(large, "SLAB_CELLS", 1)
    monkeypatch.setattr(large, "TASK_PERSONS", 100)
    return compute(), plain


@pytest.mark.parametrize("method", ["ml", "warm"])
@pytest.mark.parametrize("spread", [1.0, 6.0])
@pytest.mark.parametrize("sparse", [False, True])
def test_abilities_are_those_of_tables(monkeypatch, method, spread, sparse):
    answers, b = simulate(n=20_000 if spread == 1.0 else 2000, m=12, spread=spread)
    if sparse:
        answers = Responses.from_store(answers.store.take(np.arange(answers.n_persons)))
    assert isinstance(answers.store, SparseRows if sparse else BitPlanes)
    ours, theirs = both_ways(monkeypatch, lambda: discreet.score(answers, b, method=method))
    assert ours.status.tolist() == theirs.status.tolist()
    for name in ("score", "answered"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name))
    # One right of two answers: the middle is a root, and rounding decides which of several.
    clear = (theirs.answered != 2) | (theirs.score != 1)
    np.testing.assert_allclose(ours.ability[clear], theirs.ability[clear], rtol=0, atol=1e-10)
    np.testing.assert_allclose(ours.se[clear], theirs.se[clear], rtol=1e-8)


@pytest.mark.parametrize("given", [0.4, 1.0])
def test_fit_is_that_of_tables(monkeypatch, given):
    answers, b = simulate(given=given)
    ours, theirs = both_ways(monkeypatch, lambda: measure_fit(answers, b))
    for part in ("items", "persons"):
        one, other = (getattr(found, part).to_dict() for found in (ours, theirs))
        for name, values in other.items():
            if isinstance(values[0], str):
                assert one[name] == values
            else:
                np.testing.assert_allclose(one[name], values, rtol=1e-7, atol=1e-9, err_msg=name)
    assert ours.person_reliability.reliability == pytest.approx(
        theirs.person_reliability.reliability, rel=1e-10
    )


def test_answers_with_steps_stay_with_tables(monkeypatch):
    monkeypatch.setattr(large, "MANY_ANSWERS", 0)
    answers, thresholds = hold(1, 50, (2, 3))
    assert not large.is_many(answers.store, thresholds)
    assert large.is_many(simulate()[0].store, thresholds[:, :1])


def test_few_answers_stay_with_tables():
    answers, _ = simulate()
    assert not large.is_many(answers.store, np.zeros((answers.n_items, 1)))
    assert large.is_varied(answers.store)
    assert not large.is_varied(Responses.from_array(np.eye(4)).store)
