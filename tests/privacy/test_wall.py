"""The wall: what crosses it has noise, and nothing else crosses it."""

from dataclasses import fields, replace
from fractions import Fraction

import numpy as np
import pytest

from discreet.answers.responses import Responses
from discreet.errors import BadBudget, BadResponses, BadUsage, DiscreetError
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.mechanisms import find_mechanism, mechanisms_for
from discreet.privacy.noise import ExactNoise
from discreet.privacy.protocol import NoiseLaw, Public
from discreet.privacy.wall import Release, release_statistics
from discreet.secure import SeededSource
from refusals import refused

MECHANISMS = mechanisms_for("answers")

ITEMS = ("a", "b", "c", "d")
PURE = {"laplace-pairs", "laplace-margins", "randomized-response"}


def answers(rows=30, seed=0, items=ITEMS):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (rows, len(items))).astype(float)
    X[rng.random(X.shape) < 0.3] = np.nan
    return Responses.from_array(X, items=items)


def make_release(
    data, name="pairs", *, items=ITEMS, cap=4, relation="replace-one", epsilon=1.0, noise=None
):
    noise = noise or ExactNoise(SeededSource(5))
    budget = Budget(epsilon, 0.0 if name in PURE else 1e-6, relation)
    mechanism = find_mechanism(name)
    persons = data.n_persons if budget.neighbours is Neighbours.REPLACE_ONE else None
    public = Public(tuple(items), cap, budget.neighbours, persons)
    calibration = mechanism.calibrate(public, budget, noise.source)
    return release_statistics(
        data,
        mechanism=mechanism,
        public=public,
        calibration=calibration,
        guarantee=calibration.spend.guarantee(ledger=None, is_private=noise.is_private),
        noise=noise,
    )


def test_nobody_else_can_make_a_release():
    made = make_release(answers())
    parts = {field.name: getattr(made, field.name) for field in fields(Release)}
    with refused(DiscreetError, "release_made_discreet_privacy"):
        Release(**{**parts, "seal": object()})
    with refused(DiscreetError, "release_made_discreet_privacy"):
        replace(made, mechanism="other")


def test_pairs_nobody_answered_still_get_noise():
    empty = Responses.from_array(np.full((20, 4), np.nan), items=ITEMS)
    made = make_release(empty)
    assert made.values["right_wrong"].size == 12
    assert np.unique(made.values["right_wrong"]).size > 6


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_released_values_are_integers_and_cannot_be_changed(name):
    made = make_release(answers(), name)
    for values in made.values.values():
        assert values.dtype == np.int64
        assert not values.flags.writeable
    with pytest.raises(TypeError):
        made.values["more"] = np.zeros(1, dtype=np.int64)


@pytest.mark.parametrize("name", sorted(set(MECHANISMS) - {"randomized-response"}))
def test_the_number_of_persons_stays_inside_under_add_remove(name):
    made = make_release(answers(), name, relation="add-remove")
    assert made.public.persons is None


def test_a_release_refers_to_no_answers_and_no_exact_counts():
    data = answers()
    made = make_release(data)
    import gc

    reachable, frontier = set(), [made]
    while frontier:
        one = frontier.pop()
        for other in gc.get_referents(one):
            is_plain = not isinstance(other, type) and not callable(other)
            if id(other) not in reachable and is_plain and type(other).__name__ != "module":
                reachable.add(id(other))
                frontier.append(other)
    assert id(data) not in reachable
    assert id(data.store) not in reachable


def test_the_same_shape_is_released_whatever_the_answers_are():
    full = Responses.from_array(np.ones((30, 4)), items=ITEMS)
    empty = Responses.from_array(np.full((30, 4), np.nan), items=ITEMS)
    one = np.full((30, 4), np.nan)
    one[0, 0] = 1
    for name in set(MECHANISMS) - {"sparse-pairs"}:
        # Which items were answered is public there, and nothing at all is refused.
        other = Responses.from_array(one, items=ITEMS) if name == "randomized-response" else empty
        shapes = [
            {key: values.shape for key, values in make_release(data, name).values.items()}
            for data in (full, other)
        ]
        assert shapes[0] == shapes[1]


def test_items_outside_the_list_are_refused():
    with refused(BadResponses, "data_items_not_item", unlisted="d"):
        make_release(answers(), items=("a", "b", "c"))


def test_items_that_nobody_answered_are_released():
    made = make_release(answers(), items=(*ITEMS, "nobody"))
    assert made.public.items[-1] == "nobody"
    assert made.values["right_wrong"].size == 20


@pytest.mark.parametrize(
    ("items", "cap", "code", "facts"),
    [
        (("a",), 2, "item_list_must_name", {}),
        (("a", "b", "a"), 2, "item_list_names_more", {"twice": "a"}),
    ],
)
def test_a_list_that_means_nothing_is_refused(items, cap, code, facts):
    with refused(BadUsage, code, **facts):
        Public(items, cap, Neighbours.REPLACE_ONE, 10)


@pytest.mark.parametrize("cap", [0, 1, -3])
def test_a_cap_below_two_is_refused(cap):
    with refused(BadBudget, "max_answers_must_least"):
        Public(ITEMS, cap, Neighbours.REPLACE_ONE, 10)


def test_a_cap_above_the_number_of_items_means_all_of_them():
    assert Public(ITEMS, 100, Neighbours.REPLACE_ONE, 10).max_answers == 4


def test_the_cap_leaves_nobody_with_more_answers():
    """With almost no noise, capped counts show that each person is in one pair at most."""
    data = Responses.from_array(np.tile([1.0, 0.0, 1.0, 0.0], (1000, 1)), items=ITEMS)
    made = make_release(data, cap=2, epsilon=1000.0)
    sigma = float(made.laws["right_wrong"].scale)
    assert made.values["right_wrong"].sum() < 1000 + 10 * sigma * np.sqrt(12)


def test_a_seeded_source_is_marked_as_not_private():
    assert not make_release(answers()).guarantee.is_private
    assert make_release(answers(), noise=ExactNoise()).guarantee.is_private


def test_noise_has_the_calibrated_spread():
    empty = Responses.from_array(np.full((4, 4), np.nan), items=ITEMS)
    noise = ExactNoise(SeededSource(11))
    drawn = np.concatenate(
        [make_release(empty, noise=noise).values["right_wrong"] for _ in range(300)]
    )
    sigma = float(make_release(empty).laws["right_wrong"].scale)
    assert drawn.std() == pytest.approx(sigma, rel=0.05)


def test_the_variance_of_a_law_is_that_of_its_noise():
    noise = ExactNoise(SeededSource(2))
    for law, drawn in [
        (NoiseLaw("gaussian", Fraction(7)), noise.gaussian(Fraction(7), 200_000)),
        (NoiseLaw("laplace", Fraction(3, 2)), noise.laplace(Fraction(3, 2), 200_000)),
    ]:
        assert drawn.var() == pytest.approx(law.variance, rel=0.02)


def test_a_graph_that_cannot_be_connected_is_refused():
    from discreet.privacy.mechanisms.pairs import SparsePairs

    mechanism = SparsePairs(edge_probability=1e-6)
    public = Public(ITEMS, 4, Neighbours.REPLACE_ONE, 10)
    with refused(BadUsage, "random_graph_items_edge_probability"):
        mechanism.calibrate(public, Budget(1.0, 1e-6), SeededSource(1))
    with refused(BadUsage, "edge_probability_must_lie"):
        SparsePairs(edge_probability=0.0)


def test_randomized_response_is_for_replace_one_only():
    with refused(BadBudget, "randomized_response_protects_under"):
        make_release(answers(), "randomized-response", relation="add-remove")


def test_shuffling_needs_everyone_to_answer_everything():
    from discreet.privacy.mechanisms.response import RandomizedResponse

    mechanism = RandomizedResponse(shuffler="trusted")
    data = answers()
    public = Public(ITEMS, 4, Neighbours.REPLACE_ONE, 100_000)
    noise = ExactNoise(SeededSource(1))
    calibration = mechanism.calibrate(public, Budget(1.0, 1e-6), noise.source)
    assert calibration.spend.delta == 1e-6
    assert "shuffler" in calibration.conditions[1]
    with refused(BadResponses, "amplification_shuffling_holds_when"):
        mechanism.check_answers(data, None)


def test_randomized_answers_count_every_pair_of_answers_once():
    data = answers(200)
    made = make_release(data, "randomized-response")
    both, one, none = (made.values[n] for n in ("right_right", "right_wrong", "wrong_wrong"))
    present = np.isfinite(np.where(data.to_array() < 0, np.nan, data.to_array())).astype(int)
    together = both + one + one.T + none
    off = ~np.eye(4, dtype=bool)
    assert (together[off] == (present.T @ present)[off]).all()


@pytest.mark.parametrize("kind", ["sparse", "float"])
def test_cells_that_hide_zeros_or_carry_fractions_are_not_released(kind, monkeypatch):
    """A sparse array tells with its size which cells are zero; floats keep bits past the noise."""
    from scipy.sparse import coo_array

    from discreet.privacy.mechanisms.pairs import DensePairs

    real = DensePairs.cells

    def faulty(self, counts, calibration):
        exact = real(self, counts, calibration)["right_wrong"]
        return {"right_wrong": coo_array(exact) if kind == "sparse" else exact / 2}

    monkeypatch.setattr(DensePairs, "cells", faulty)
    with refused(
        DiscreetError,
        "mechanism_defect_discreet_nothing",
        fault="has cells of a kind that must not be released",
    ):
        make_release(answers())


@pytest.mark.parametrize("name", ["pairs", "sparse-pairs", "margins"])
def test_zeros_of_sparse_counts_are_cells_like_all_others(name):
    """With many items counts are held sparse: what is released must not show where they are."""
    from discreet.api.counting import count_pairs

    rng = np.random.default_rng(0)
    m = 2100
    cells = np.unique(np.repeat(np.arange(100), 4) * m + rng.integers(0, m, 400))
    answers = np.full(100 * m, -1)
    answers[cells] = rng.random(len(cells)) < 0.5
    data = Responses.from_array(answers.reshape(100, m))
    assert count_pairs(data).is_sparse
    mechanism = find_mechanism(name)
    public = Public(data.items, 4, Neighbours.REPLACE_ONE, 100)
    calibration = mechanism.calibrate(public, Budget(1.0, 1e-6), SeededSource(1))
    counts = count_pairs(data, weighting=mechanism.weighting(public, calibration))
    sizes = {key: len(values) for key, values in mechanism.cells(counts, calibration).items()}
    edges = len(calibration.settings.get("edges", ()))
    wanted = {
        "pairs": {"right_wrong": m * (m - 1)},
        "sparse-pairs": {"right_wrong": 2 * edges},
        "margins": {"total": m, "disagreement": m * (m - 1) // 2},
    }
    assert sizes == wanted[name]
    assert all(
        isinstance(values, np.ndarray) for values in mechanism.cells(counts, calibration).values()
    )


@pytest.mark.parametrize("name", ["pairs", "laplace-pairs", "margins", "laplace-margins"])
def test_more_items_than_fit_are_refused_from_the_list_alone(name):
    public = Public(tuple(map(str, range(20_001))), 3, Neighbours.REPLACE_ONE, 10)
    budget = Budget(1.0, 0.0 if name in PURE else 1e-6)
    with refused(BadUsage, "mechanism_goes_through_every", n_items="20,001"):
        find_mechanism(name).calibrate(public, budget, SeededSource(1))
