import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_array

from discreet.counts import PairCounts
from discreet.errors import BadUsage, DisconnectedItems
from discreet.models.connectivity import build_chain, classify, is_strongly_connected, regularise
from discreet.results.estimate import Status
from refusals import refused


def count(X):
    """Counts of an answer matrix with -1 for missing, by brute force."""
    X = np.asarray(X)
    right, wrong = (X == 1).astype(np.int64), (X == 0).astype(np.int64)
    return PairCounts(
        items=tuple(f"i{k}" for k in range(X.shape[1])),
        right_wrong=right.T @ wrong,
        answers=(X >= 0).sum(axis=0).astype(np.int64),
        right=right.sum(axis=0),
        persons=len(X),
    )


LINKED = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]]


def reachable(Y):
    reach = (Y > 0) | np.eye(len(Y), dtype=bool)
    for k in range(len(Y)):
        reach |= reach[:, [k]] & reach[[k], :]
    return reach


def test_linked_items_are_all_estimated_without_a_warning():
    status, kept, warnings = classify(count(LINKED))
    assert status == (Status.ESTIMATED,) * 3
    assert kept.tolist() == [0, 1, 2]
    assert warnings == ()


def test_each_reason_for_leaving_an_item_out_has_its_status_and_a_warning():
    X = np.full((8, 7), -1)
    X[:4, :3] = LINKED
    X[:4, 3] = 1
    X[:4, 4] = 0
    X[6:, 6] = [1, 0]
    status, kept, warnings = classify(count(X))
    assert [str(s) for s in status] == [
        "estimated",
        "estimated",
        "estimated",
        "always_right",
        "always_wrong",
        "no_answers",
        "not_connected",
    ]
    assert kept.tolist() == [0, 1, 2]
    assert len(warnings) == 4
    for name in ("i3", "i4", "i5", "i6"):
        assert sum(name in sentence for sentence in warnings) == 1


def test_a_warning_names_five_items_and_counts_the_rest():
    X = np.hstack([np.array(LINKED), np.ones((4, 9), dtype=int)])
    (warning,) = classify(count(X))[2]
    assert "9 items" in warning
    assert "and 4 more" in warning


def test_equally_large_sets_are_told_apart_by_answers_and_that_is_said():
    X = np.full((6, 4), -1)
    X[:2, :2] = [[1, 0], [0, 1]]
    X[2:, 2:] = [[1, 0], [0, 1], [0, 1], [1, 0]]
    _, kept, warnings = classify(count(X))
    assert kept.tolist() == [2, 3]
    assert any("equally large" in sentence for sentence in warnings)


def test_equally_large_sets_with_equal_answers_are_told_apart_by_order():
    X = np.full((4, 4), -1)
    X[:2, [1, 3]] = X[2:, [0, 2]] = [[1, 0], [0, 1]]
    assert classify(count(X))[1].tolist() == [0, 2]


def test_unlinked_data_raises_an_error_that_says_what_was_found():
    with refused(DisconnectedItems, "none_items_linked_another", tally="2 always_right") as caught:
        build_chain(count([[1, 1], [1, 1]]))
    assert caught.value.exit_code == 5


def test_one_item_and_no_item_are_not_identifiable():
    for columns in (0, 1):
        with refused(DisconnectedItems, "found_item_difficulty_relative", m=f"{columns}"):
            build_chain(count(np.ones((3, columns), dtype=int)))


def test_nobody_answered_is_not_identifiable():
    with refused(DisconnectedItems, "none_items_linked_another", tally="3 no_answers"):
        build_chain(count(np.full((2, 3), -1)))


def test_regularisation_gives_a_number_to_an_item_everybody_had_right():
    X = np.hstack([np.array(LINKED), np.ones((4, 1), dtype=int)])
    chain = build_chain(count(X), regularisation=0.5)
    assert chain.status == (Status.ESTIMATED,) * 4
    assert chain.rates[0, 3] == 0.5
    assert build_chain(count(X)).status[3] == Status.ALWAYS_RIGHT


def test_regularisation_leaves_pairs_nobody_compared_at_zero():
    Y = np.array([[0, 2, 0], [1, 0, 0], [0, 3, 0]])
    assert regularise(Y, 1.0).tolist() == [[0, 3, 0], [2, 0, 1], [0, 4, 0]]


@pytest.mark.parametrize("amount", [-1.0, np.nan, np.inf])
def test_a_regularisation_that_means_nothing_is_refused(amount):
    with refused(BadUsage, "regularisation_must_zero_positive"):
        build_chain(count(LINKED), regularisation=amount)


def test_spread_puts_values_back_in_the_order_of_the_input():
    X = np.insert(np.array(LINKED), 1, 1, axis=1)
    spread = build_chain(count(X)).spread(np.array([1.0, 2.0, 3.0]))
    assert np.array_equal(spread, [1.0, np.nan, 2.0, 3.0], equal_nan=True)


ANSWERS = hnp.arrays(
    np.int8, st.tuples(st.integers(1, 8), st.integers(1, 7)), elements=st.integers(-1, 1)
)


@settings(max_examples=100, deadline=None)
@given(ANSWERS)
def test_the_kept_set_is_mutually_reachable_and_no_set_is_larger(X):
    counts = count(X)
    status, kept, warnings = classify(counts)
    both = reachable(counts.right_wrong) & reachable(counts.right_wrong).T
    largest = both.sum(axis=1).max()
    if len(kept):
        assert both[np.ix_(kept, kept)].all()
    assert len(kept) == (largest if largest > 1 else 0)
    assert [i for i, s in enumerate(status) if s == Status.ESTIMATED] == kept.tolist()
    assert (len(kept) < len(status)) <= bool(warnings)


@settings(max_examples=50, deadline=None)
@given(ANSWERS)
def test_sparse_counts_are_classified_like_dense_ones(X):
    counts = count(X)

    class Sparse:
        items, answers, right = counts.items, counts.answers, counts.right
        right_wrong, persons = csr_array(counts.right_wrong), counts.persons

    dense, sparse = classify(counts), classify(Sparse())
    assert dense[0] == sparse[0]
    assert dense[1].tolist() == sparse[1].tolist()
    assert is_strongly_connected(counts.right_wrong) == is_strongly_connected(Sparse.right_wrong)
